# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Spaces on every disk: several of them, all but the disks of others, and empty disks before used ones."""

from __future__ import annotations

import itertools
import random
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner

Plain = dict[str, t.Any]


def machine(*sizes: int, **facts: list[t.Any]) -> Plain:
    return {
        "disks": [{"id": f"d{at}", "size": size, **{key: values[at] for key, values in facts.items()}} for at, size in enumerate(sizes)]
    }


def disks_of(hardware: Plain, schema: list[Plain]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for disk in Planner(schema).plan(hardware)["disks"]:
        for space in disk["spaces"]:
            found.setdefault(space["space_id"], []).append(disk["disk_id"])
    return found


OSD = {"id": "osd", "type": "partition", "per_disk": True}


def test_a_number_is_that_many_on_each_disk() -> None:
    schema = [{"id": "db", "type": "partition", "per_disk": 6, "size": 1000}, {"id": "root", "type": "partition"}]
    planned = Planner(schema).plan(machine(50000, 60000))
    for disk in planned["disks"]:
        assert [space["size"] for space in disk["spaces"] if space["space_id"] == "db"] == [1000] * 6
    numbers = [row["count"] for table in planned["schema"]["parteds"] for row in table["partitions"] if row["space_id"] == "db"]
    uuids = [row["uuid"] for table in planned["schema"]["parteds"] for row in table["partitions"]]
    assert len(numbers) == 12
    assert len(set(uuids)) == len(uuids)


def test_several_on_each_disk_grow_alike() -> None:
    planned = Planner([{"id": "db", "type": "partition", "per_disk": 3, "mount": "/srv"}]).plan(machine(50000, 90002))
    assert [[space["size"] for space in disk["spaces"]] for disk in planned["disks"]] == [[16666] * 3, [30000] * 3]
    assert [fs["mount"] for fs in planned["schema"]["fss"]] == [f"/srv{at}" for at in range(1, 7)]


@pytest.mark.parametrize("value", [0, -1, 101, "2", 1.5])
def test_other_numbers_are_mistakes(value: t.Any) -> None:
    with pytest.raises(InputError, match=r"schema\[0\].per_disk"):
        Planner([{**OSD, "per_disk": value}]).plan(machine(50000))


@pytest.mark.parametrize(
    ("others", "taken"),
    [
        ([{"id": "os", "type": "partition", "size": 1000}], 1),
        ([{"id": "os", "type": "raid", "level": "raid1", "size": 1000}], 2),
        ([{"id": "os", "type": "vg", "contains": ["root"]}, {"id": "root", "type": "lv", "min_size": 1000}], 1),
        ([{"id": "os", "type": "vg", "contains": ["root"]}, {"id": "root", "type": "lv", "min_size": 150000}], 2),
        ([{"id": "os", "type": "partitions", "min_size": 1000}], 1),
        ([{"id": "os", "type": "partition", "size": 1000, "count": 2}], 2),
        ([{"id": "os", "type": "vg", "contains": ["root"], "mirror": "required"}, {"id": "root", "type": "lv", "min_size": 1000}], 2),
    ],
)
def test_it_is_on_all_disks_but_those_of_the_others(others: list[Plain], taken: int) -> None:
    found = disks_of(machine(100000, 100000, 100000, 100000), [{**OSD, "apart_from": ["os"]}, *others])
    mine = {disk for name, disks in found.items() if name != "osd" for disk in disks}
    assert len(mine) == taken
    assert set(found["osd"]) == {"d0", "d1", "d2", "d3"} - mine


def test_the_others_do_with_smaller_disks_where_it_needs_the_large_ones() -> None:
    schema = [{**OSD, "min_size": 90000, "apart_from": ["os"]}, {"id": "os", "type": "partition", "weight": 9}]
    assert disks_of(machine(100000, 20000, 95000), schema) == {"os": ["d1"], "osd": ["d0", "d2"]}


def test_namespaces_of_one_drive_are_one_disk_to_it() -> None:
    found = disks_of(
        machine(50000, 50000, 50000, 50000, drive=["x", "x", "y", "y"]), [{**OSD, "apart_from": ["os"]}, {"id": "os", "type": "partition"}]
    )
    assert (found["os"], found["osd"]) == (["d0"], ["d2", "d3"])


def test_others_that_leave_no_disk_are_the_reason() -> None:
    schema = [{**OSD, "apart_from": ["os"]}, {"id": "os", "type": "raid", "level": "raid1"}]
    with pytest.raises(NoSolution) as raised:
        Planner(schema).plan(machine(50000, 50000))
    assert [one["name"] for one in raised.value.conflict["constraints"]] == ["apart:osd"]
    planned = Planner([{**schema[0], "optional": True}, schema[1]]).plan(machine(50000, 50000))
    assert [one["id"] for one in planned["left_out"]] == ["osd"]


@pytest.mark.parametrize("several", [{"per_disk": True}, {"per_disk": 2, "size": 1000}, {"type": "partitions", "per_disk": True}])
def test_what_is_on_every_disk_itself_keeps_all_disks_that_it_may_use(several: Plain) -> None:
    other = {"id": "log", "type": "partition", **several}
    hardware = machine(50000, 50000, 50000, drive=["x", "y", "y"])
    found = disks_of(hardware, [{**OSD, "apart_from": ["log"]}, {**other, "disks": ["d0"]}])
    assert ({*found["log"]}, found["osd"]) == ({"d0"}, ["d1", "d2"])
    for disks in (["d0", "d1"], None):
        with pytest.raises(NoSolution) as raised:
            Planner([{**OSD, "apart_from": ["log"]}, {**other, "disks": disks}]).plan(hardware)
        assert [one["name"] for one in raised.value.conflict["constraints"]] == ["apart:osd"]


def test_it_is_apart_from_what_is_on_every_disk_and_from_others() -> None:
    everywhere = {"id": "log", "type": "partition", "per_disk": True, "disks": ["d0", "d1"]}
    schema = [{**OSD, "apart_from": ["os", "log"]}, everywhere, {"id": "os", "type": "partition", "size": 1000}]
    found = disks_of(machine(50000, 50000, 50000, 50000), schema)
    assert found["log"] == ["d0", "d1"]
    assert set(found["osd"]) == {"d2", "d3"} - set(found["os"])


@pytest.mark.parametrize("empty", [*itertools.product([True, False], repeat=3)])
def test_of_equal_disks_the_first_empty_one_is_taken(empty: tuple[bool, ...]) -> None:
    table = [{"partitions": [] if one else [{"number": 1, "start": 1, "size": 100}]} for one in empty]
    hardware = {"disks": [{"id": f"d{at}", "size": 50000, "empty": one, **table[at]} for at, one in enumerate(empty)]}
    wanted = next((f"d{at}" for at, one in enumerate(empty) if one), "d0")
    for schema in (
        [{"id": "root", "type": "partition"}],
        [{"id": "root", "type": "vg", "contains": ["a"], "max_pvs": 1}, {"id": "a", "type": "lv", "size": 1000}],
        [{"id": "root", "type": "partition", "disks": "yaql=$.disks.orderForSystem().limit(1)"}],
    ):
        assert disks_of(hardware, schema)["root"] == [wanted]
    assert [disk["disk_id"] for disk in Planner([{"id": "root", "type": "partition"}]).plan(hardware)["disks"]] == ["d0", "d1", "d2"]


def test_what_is_on_disks_does_not_change_how_large_spaces_are() -> None:
    chance = random.Random(3)
    for _round in range(40):
        sizes = [chance.choice([50000, 70000, 90000]) for _disk in range(chance.randint(1, 4))]
        schema = [
            {"id": f"s{at}", "type": chance.choice(["partition", "partitions"]), "weight": chance.choice([1, 2])}
            for at in range(chance.randint(1, 4))
        ]
        levels = []
        for used in (False, True):
            empties = [not (used and chance.random() < 0.5) for _disk in sizes]
            planned = Planner(schema).plan(machine(*sizes, empty=empties))
            totals: dict[str, int] = {}
            for disk in planned["disks"]:
                for space in disk["spaces"]:
                    totals[space["space_id"]] = totals.get(space["space_id"], 0) + space["size"]
            levels.append(sorted(size / next(one["weight"] for one in schema if one["id"] == name) for name, size in totals.items()))
        assert levels[0] == pytest.approx(levels[1], rel=0.001, abs=4)
