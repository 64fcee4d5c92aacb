# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a second plan of a host makes worse, from real plans of changed schemas; and how many disks each space can lose."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import layout_of
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.plan_diff.changes import WORSE, Change, ComparedPlan, Kind, changes
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.plan_diff.redundancy import redundancy_of_spaces
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.plan_diff.report import plan_diff
from ansible_collections.bareon.allocator.tests.support.disk.planned import hardware, make_plan, profile_plan, profiles

Plain = dict[str, t.Any]

HARDWARE = hardware([("ssd", 100)] * 4)
SCHEMA: list[Plain] = [
    {"id": "boot", "type": "raid", "level": "raid1", "legs": 2, "size": 1024, "fs_type": "ext4", "mount": "/boot"},
    {"id": "mirror", "type": "raid", "level": "raid1", "legs": 3, "size": "20 GiB"},
    {"id": "os", "type": "vg", "contains": ["mirror", "root", "home"]},
    {"id": "root", "type": "lv", "size": 4096, "fs_type": "ext4", "mount": "/"},
    {"id": "home", "type": "lv", "size": 4096, "fs_type": "xfs", "mount": "/home"},
    {"id": "data", "type": "partition", "size": "10 GiB", "fs_type": "xfs", "mount": "/srv", "encrypt": True},
    {
        "id": "pool",
        "type": "btrfs",
        "level": "raid1",
        "legs": 2,
        "size": "5 GiB",
        "mount": "/pool",
        "subvolumes": [{"name": "@a"}, {"name": "@b"}],
    },
]


def planned(**changed: Plain | None) -> Plain:
    """Return the plan of the schema with keys of spaces changed, and without those that are None."""
    schema = copy.deepcopy(SCHEMA)
    for entry in schema:
        entry |= changed.get(entry["id"]) or {}
    dropped = {space for space, keys in changed.items() if keys is None}
    for entry in schema:
        if "contains" in entry:
            entry["contains"] = [name for name in entry["contains"] if name not in dropped]
    return make_plan([entry for entry in schema if entry["id"] not in dropped], HARDWARE)


def compared(before: Plain, after: Plain, tolerance: float = 0) -> list[Change]:
    return changes(ComparedPlan(before), ComparedPlan(after), tolerance)


BEFORE = planned()


@pytest.mark.parametrize(
    ("changed", "place", "kind"),
    [
        ({"home": None}, "home", Kind.SPACE_LOST),
        ({"pool": {"subvolumes": [{"name": "@a"}]}}, "pool/@b", Kind.SPACE_LOST),
        ({"boot": {"type": "partition", "level": None, "legs": None}}, "boot", Kind.LESS_REDUNDANT),
        ({"mirror": {"legs": 2}}, "mirror", Kind.LESS_REDUNDANT),
        ({"mirror": {"legs": 2}}, "home", Kind.LESS_REDUNDANT),
        ({"pool": {"level": "raid0", "size": "10 GiB"}}, "pool", Kind.LESS_REDUNDANT),
        ({"data": {"encrypt": False}}, "data", Kind.UNENCRYPTED),
        ({"home": {"size": 4000}}, "home", Kind.SMALLER),
        ({"home": {"size": 5000}}, "home", Kind.BETTER),
        ({"boot": {"encrypt": True}}, "boot", Kind.BETTER),
        ({"boot": {"legs": 3}}, "boot", Kind.BETTER),
        ({"home": {"fs_type": "ext4"}}, "home", Kind.CHANGED),
        ({"home": {"mount_options": "nodev"}}, "home", Kind.CHANGED),
        ({"data": {"mount": "/data"}}, "data", Kind.CHANGED),
    ],
)
def test_a_change_of_the_schema_is_found_in_its_place(changed: dict[str, Plain | None], place: str, kind: Kind) -> None:
    assert (place, kind) in {(change.place, change.kind) for change in compared(BEFORE, planned(**changed))}


def test_a_new_id_at_the_same_mount_point_is_no_loss() -> None:
    schema = [{"id": "data", "type": "partition", "size": 2048, "mount": "/srv"}]
    renamed = [{**schema[0], "id": "srv"}]
    found = compared(make_plan(schema, HARDWARE), make_plan(renamed, HARDWARE))
    assert [(change.place, change.kind) for change in found] == [("data", Kind.CHANGED)]


def test_the_worst_comes_first() -> None:
    found = [change.kind for change in compared(BEFORE, planned(home=None, data={"encrypt": False}, root={"size": 5000}))]
    assert found[:2] == [Kind.SPACE_LOST, Kind.UNENCRYPTED]
    assert found.index(Kind.BETTER) > 1


@pytest.mark.parametrize(("tolerance", "kind"), [(2, Kind.SMALLER), (3, Kind.CHANGED)])
def test_a_little_less_is_tolerated_where_that_is_asked_for(tolerance: float, kind: Kind) -> None:
    (change,) = (change for change in compared(BEFORE, planned(home={"size": 4000}), tolerance) if change.place == "home")
    assert change.kind is kind


@pytest.mark.parametrize("profile", profiles())
def test_a_plan_is_no_worse_than_itself(profile: str) -> None:
    assert compared(profile_plan(profile), copy.deepcopy(profile_plan(profile))) == []


def test_how_many_disks_each_space_can_lose() -> None:
    found = redundancy_of_spaces(layout_of(BEFORE["schema"]))
    assert {space: found[space] for space in ("boot", "mirror", "os", "root", "home", "data", "pool")} == {
        "boot": 1,
        "mirror": 2,
        "os": 2,
        "root": 2,
        "home": 2,
        "data": 0,
        "pool": 1,
    }


@pytest.mark.parametrize(
    ("space", "number"),
    [
        ({"type": "raid", "level": "raid0", "legs": 2}, 0),
        ({"type": "raid", "level": "raid5", "legs": 3}, 1),
        ({"type": "raid", "level": "raid6", "legs": 4}, 2),
        ({"type": "raid", "level": "raid10", "legs": 4}, 1),
        ({"type": "zpool", "vdev": "mirror", "legs": "all"}, 1),
        ({"type": "zpool", "vdev": "raidz2", "legs": "all"}, 2),
        ({"type": "zpool", "vdev": "stripe", "legs": "all"}, 0),
    ],
)
def test_levels(space: Plain, number: int) -> None:
    plan = make_plan([{"id": "x", "min_size": "8 GiB", **space}], HARDWARE)
    assert redundancy_of_spaces(layout_of(plan["schema"]))["x"] == number


def fleet(**plans: t.Any) -> tuple[t.Any, t.Any]:
    return plans.keys(), plans.get


def test_a_fleet_has_hosts_that_lose_their_plans_gain_one_or_are_left_out() -> None:
    found = plan_diff(
        fleet(a=BEFORE, b=BEFORE, c=BEFORE, d=BEFORE), fleet(a=BEFORE, b=planned(home=None), e=BEFORE), ["a", "b", "c", "e"], 0
    )
    assert {host: found.kind(host) for host in found.changes} == {
        "a": Kind.ALIKE,
        "b": Kind.SPACE_LOST,
        "c": Kind.NO_PLAN,
        "e": Kind.CHANGED,
    }
    assert found.left_out == ("d",)
    assert found.with_kinds(WORSE) == ["b", "c"]
    assert found.to_plain()["worse"] == ["b", "c"]


def test_without_a_plan_before_nothing_is_compared() -> None:
    with pytest.raises(InputError, match="before"):
        plan_diff(fleet(), fleet(a=BEFORE), None, 0)


def test_what_is_no_plan_is_named_for_all_hosts_at_once() -> None:
    with pytest.raises(InputError) as raised:
        plan_diff(fleet(a={"disks": 3, "schema": {}}, b=[1]), fleet(a=BEFORE, b={"schema": {}}), None, 0)
    assert [mistake.place for mistake in raised.value.mistakes] == ["before.a.disks", "before.b", "after.b.disks"]


def test_what_is_no_plan_below_its_known_parts_is_a_mistake_of_that_plan() -> None:
    wrong = planned() | {"left_out_disks": ["sdc"]}
    with pytest.raises(InputError) as raised:
        plan_diff((["web1"], lambda _host: BEFORE), (["web1"], lambda _host: wrong), None, 0)
    assert [mistake.place for mistake in raised.value.mistakes] == ["after.web1"]
