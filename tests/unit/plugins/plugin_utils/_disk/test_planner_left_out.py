# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nothing is silently dropped: what a plan does not have is in `left_out` with the reason, or there is no plan."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner

NO_SSD = "yaql=$.disks.where($.type = ssd)"
Schema = list[dict[str, t.Any]]


def machine(*sizes: int, prefix: str = "d", **facts: t.Any) -> dict[str, t.Any]:
    disks = [{"id": f"{prefix}{at}", "path": f"p{at}", "type": "hdd", "size": size} for at, size in enumerate(sizes)]
    return {"ram": 4096, "disks": disks, **facts}


def partition(name: str, **keys: t.Any) -> dict[str, t.Any]:
    return {"id": name, "type": "partition", **keys}


def optional(name: str, priority: int | None = None, **keys: t.Any) -> dict[str, t.Any]:
    return partition(name, optional=True, **({} if priority is None else {"priority": priority}), **keys)


def left_out(schema: Schema, *sizes: int) -> dict[str, str]:
    return {item["id"]: item["reason"] for item in Planner(schema).plan(machine(*sizes))["left_out"]}


def test_the_highest_priority_number_goes_first() -> None:
    schema = [optional("a", 5, min_size=9000), optional("b", 1, min_size=9000), partition("os", min_size=9000)]
    found = left_out(schema, 20000)
    assert list(found) == ["a"]
    assert found["a"].startswith("there is no room for it: 7002 MiB short: a needs at least 9000 MiB")


def test_of_equals_the_last_one_goes_first() -> None:
    schema = [optional("a", min_size=9000), optional("b", min_size=9000), partition("os", min_size=9000)]
    assert list(left_out(schema, 20000)) == ["b"]


def test_as_many_go_as_must() -> None:
    schema = [optional(name, number, min_size=6000) for number, name in enumerate("abc")] + [partition("os", min_size=9000)]
    assert list(left_out(schema, 20000)) == ["b", "c"]
    assert list(left_out(schema, 12000)) == ["a", "b", "c"]
    assert left_out(schema, 40000) == {}


def test_what_went_in_vain_comes_back() -> None:
    """The second disk has room for what is first in the order, and leaving it out helps nobody on the first disk."""
    schema = [
        optional("scratch", 9, disks=["d1"], min_size=5000),
        optional("cache", 1, disks=["d0"], min_size=9000),
        partition("os", disks=["d0"], min_size=15000),
    ]
    assert list(left_out(schema, 20000, 10000)) == ["cache"]


def test_a_group_takes_its_volumes_with_it() -> None:
    schema = [
        {"id": "g", "type": "vg", "contains": ["l"], "optional": True},
        {"id": "l", "type": "lv", "min_size": 90000},
        partition("os"),
    ]
    found = left_out(schema, 20000)
    assert list(found) == ["g", "l"]
    assert found["l"] == "its vg is left out"


def test_without_room_for_what_is_not_optional_there_is_no_plan() -> None:
    schema = [optional("a", min_size=9000), partition("os", min_size=30000)]
    with pytest.raises(NoSolution) as caught:
        Planner(schema).plan(machine(20000))
    assert [item["name"] for item in caught.value.conflict["constraints"]] == ["min:os", "disk:d0"]
    with pytest.raises(NoSolution, match="a needs at least 90000 MiB"):
        Planner([optional("a", min_size=90000)]).plan(machine(20000))


def test_reasons_name_the_disks_of_the_machine_they_are_for() -> None:
    planner = Planner([optional("a", min_size=30000), partition("os", min_size=1000)])
    reasons = [planner.plan(machine(20000, prefix=prefix))["left_out"][0]["reason"] for prefix in ("d", "e")]
    assert "disk d0 holds 19998 MiB" in reasons[0]
    assert "disk e0 holds 19998 MiB" in reasons[1]


def test_priority_is_for_optional_spaces() -> None:
    with pytest.raises(InputError, match=r"schema\[0\]\.priority: .*optional: true"):
        Planner([partition("os", priority=3)]).plan(machine(20000))
    with pytest.raises(InputError, match=r"schema\[0\]\.priority: .*whole number"):
        Planner([optional("os", 2**31)]).plan(machine(20000))


def test_per_disk_with_a_minimum_and_no_disk_fails() -> None:
    with pytest.raises(NoSolution, match=r"disks: yaql=\$\.disks\.where\(\$\.type = ssd\) names no disk for osd"):
        Planner([partition("osd", per_disk=True, min_size=100, disks=NO_SSD)]).plan(machine(20000))


@pytest.mark.parametrize("keys", [{"type": "partition", "per_disk": True}, {"type": "partitions"}], ids=["per_disk", "partitions"])
def test_without_a_minimum_it_is_told(keys: dict[str, t.Any]) -> None:
    assert left_out([{"id": "osd", "disks": NO_SSD, **keys}, partition("os")], 20000) == {"osd": "no disk of this machine is left for it"}


@pytest.mark.parametrize("space", [{"type": "partitions"}, {"type": "vg", "contains": []}], ids=["partitions", "vg"])
def test_what_comes_out_at_nothing_is_told(space: dict[str, t.Any]) -> None:
    schema = [{"id": "rest", **space}, partition("os", size=19998)]
    assert left_out(schema, 20000) == {"rest": "the minimums of others leave no room for it"}


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"type": "raid", "level": "raid5", "max_size": 1}, "max_size: 1 MiB are too little for raid5 of 3 legs, which takes 6 MiB"),
        ({"type": "raid", "level": "raid1", "size": 1}, "size: 1 MiB are too little for raid1 of 2 legs, which takes 2 MiB"),
        ({"type": "partition", "size": 5, "encrypt": True}, "size: 5 MiB are too little for LUKS, which takes 17 MiB"),
        ({"type": "partition", "size": 5, "fs_type": "xfs"}, "size: 5 MiB are too little for xfs, which takes 300 MiB"),
        ({"type": "partition", "max_size": 299, "mount": "/srv"}, "max_size: 299 MiB are too little for xfs, which takes 300 MiB"),
        ({"type": "partition", "size": 315, "fs_type": "xfs", "encrypt": True}, "too little for LUKS with xfs, which takes 316 MiB"),
        ({"type": "raid", "level": "raid1", "size": 300, "fs_type": "xfs"}, "too little for raid1 of 2 legs with xfs, which takes 301 MiB"),
    ],
)
def test_sizes_in_which_nothing_can_be_made_are_mistakes(keys: dict[str, t.Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        Planner([{"id": "a", **keys}]).plan(machine(20000, 20000, 20000))
    (mistake,) = caught.value.mistakes
    assert says in f"{mistake.place}: {mistake.says}"


def test_a_volume_of_an_encrypted_group_needs_no_header_of_its_own() -> None:
    group = {"id": "g", "type": "vg", "contains": ["l"]}
    volume = {"id": "l", "type": "lv", "size": 300, "fs_type": "xfs", "encrypt": True}
    assert Planner([group, volume]).plan(machine(20000))["schema"]["lvs"][0]["size"] == 300
    with pytest.raises(InputError, match="296 MiB are too little for xfs, which takes 300 MiB"):
        Planner([group, volume | {"size": 296}]).plan(machine(20000))


@pytest.mark.parametrize("fs_type", ["xfs", "btrfs", "f2fs"])
def test_minimums_are_raised_to_what_can_be_made(fs_type: str) -> None:
    """Beside spaces that take all they can get."""
    least = {"xfs": 300, "btrfs": 109, "f2fs": 52}[fs_type]
    schema = [partition("a", fs_type=fs_type, weight=0.000001), partition("b", weight=1000)]
    sizes = {space["space_id"]: space["size"] for space in Planner(schema).plan(machine(20000))["disks"][0]["spaces"]}
    assert least <= sizes["a"] < least + 20


def test_boot_away_from_the_esp_is_an_error_on_uefi() -> None:
    schema = [
        {"id": "esp", "type": "esp", "disks": ["d1"]},
        partition("os", disks=["d0"], boot=True, min_size=1000),
    ]
    with pytest.raises(NoSolution) as caught:
        Planner(schema).plan(machine(20000, 20000, firmware="uefi"))
    names = {item["name"] for item in caught.value.conflict["constraints"]}
    assert names >= {"min:os", "boot:esp", "disks:os", "disks:esp"}
    assert "esp may use d1 only" in str(caught.value)


@pytest.mark.parametrize(
    ("objective", "keys", "reason"),
    [
        (Objective.FAIR, {"max_size": 9}, "its maximum of 9 MiB is less than an extent of g, which has 32 MiB"),
        (Objective.ORDERED, {}, "it has no minimum, and others take all the room before it"),
    ],
)
def test_a_volume_that_comes_out_at_nothing_is_told(objective: Objective, keys: dict[str, t.Any], reason: str) -> None:
    extents = {"extent_size": 32} if objective is Objective.FAIR else {}
    schema = [
        {"id": "g", "type": "vg", "contains": ["first", "second"], **extents},
        {"id": "first", "type": "lv", "min_size": 100},
        {"id": "second", "type": "lv", **keys},
    ]
    plan = Planner(schema, objective).plan(machine(20000))
    assert [volume["name"] for volume in plan["schema"]["lvs"]] == ["first"]
    assert plan["left_out"] == [{"id": "second", "reason": reason}]


@pytest.mark.parametrize(("firmware", "needed"), [("uefi", "esp"), ("bios", "bios_grub")])
def test_ordered_tells_that_it_plans_no_boot_partition(firmware: str, needed: str) -> None:
    plan = Planner([partition("os", boot=True)], Objective.ORDERED).plan(machine(20000, firmware=firmware))
    (warning,) = plan["warnings"]
    assert f"plans no {needed}, which the {firmware} firmware needs" in warning


def test_what_boots_and_has_no_minimum_has_its_boot_partition() -> None:
    schema = [{"id": "esp", "type": "esp"}, {"id": "os", "type": "partitions", "boot": True, "disks": ["d0"]}, partition("data")]
    plan = Planner(schema).plan(machine(20000, 20000, firmware="uefi"))
    on = {space["space_id"]: disk["disk_id"] for disk in plan["disks"] for space in disk["spaces"]}
    assert (on["esp"], on["os"], plan["left_out"]) == ("d0", "d0", [])
