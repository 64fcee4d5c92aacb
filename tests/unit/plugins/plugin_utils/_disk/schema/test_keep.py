# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is kept by something else than the id of a space, all that is there, and names that nearly fit."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import parse_static_schema
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner

Plain = dict[str, t.Any]
WINDOWS = [
    {"number": 1, "name": "EFI system partition", "start": 1, "size": 100, "fs_type": "vfat", "uuid": "AAAA-1"},
    {"number": 2, "name": "Microsoft reserved partition", "start": 101, "size": 16},
    {
        "number": 3,
        "name": "Basic data partition",
        "start": 117,
        "size": 400000,
        "fs_type": "ntfs",
        "label": "Windows",
        "fs_uuid": "01D9-EE",
    },
]
ROOT = {"id": "root", "type": "partition", "min_size": "40 GiB", "mount": "/"}


def disk(name: str = "sda", size: int = 976762, partitions: t.Any = None, **more: t.Any) -> Plain:
    partitions = WINDOWS if partitions is None else partitions
    return {"id": name, "size": size, "empty": not partitions, "table": "gpt" if partitions else None, "partitions": partitions, **more}


def plan(schema: list[Plain], *disks: Plain, **options: t.Any) -> Plain:
    return Planner(schema, **options).plan({"disks": list(disks)})


def spaces(planned: Plain) -> dict[str, list[tuple[str, int]]]:
    return {one["disk_id"]: [(space["space_id"], space["size"]) for space in one["spaces"]] for one in planned["disks"]}


def mistake(schema: list[Plain], *disks: Plain) -> str:
    with pytest.raises(InputError) as raised:
        plan(schema, *disks)
    return str(raised.value)


@pytest.mark.parametrize(
    ("keep", "size"),
    [
        ({"number": 3}, 400000),
        ({"partlabel": "Basic data partition"}, 400000),
        ({"uuid": "01d9-ee"}, 400000),
        ({"uuid": "aaaa-1"}, 100),
        ({"number": 1, "uuid": None}, 100),
    ],
)
def test_a_partition_is_kept_by_its_name_its_uuid_or_its_number(keep: Plain, size: int) -> None:
    planned = plan([{"id": "win", "type": "partition", "keep": keep}, ROOT], disk())
    entry = next(row for row in planned["schema"]["parteds"][0]["partitions"] if row["space_id"] == "win")
    assert ("win", size) in spaces(planned)["sda"]
    assert entry["keep_data"]
    assert (entry["begin"], entry["count"]) == ((117, 3) if size == 400000 else (1, 1))
    parse_static_schema(planned["schema"])


@pytest.mark.parametrize(
    ("keep", "says"),
    [
        ({"number": 4}, "schema[0].keep: no partition has the number 4; there are partition 1 of sda ('EFI system partition'), "),
        ({"partlabel": "basic data partition"}, "no partition has the partlabel basic data partition"),
        ({"uuid": "beef"}, "no partition has the uuid beef"),
        ({}, "schema[0].keep: must have one of partlabel, uuid and number"),
        ({"number": 1, "uuid": "x"}, "schema[0].keep: must have one of"),
        ({"number": 0}, "schema[0].keep.number"),
        ({"label": "x"}, "schema[0].keep.label: is not a key of what is kept"),
        (3, "schema[0].keep: is 3; must be a mapping"),
    ],
)
def test_what_cannot_be_kept_is_a_mistake(keep: t.Any, says: str) -> None:
    assert says in mistake([{"id": "win", "type": "partition", "keep": keep}, ROOT], disk())


def test_a_single_partition_is_one_of_several_disks() -> None:
    kept = {"id": "win", "type": "partition", "keep": {"number": 3}}
    assert "2 partitions have the number 3: partition 3 of sda" in mistake([kept, ROOT], disk(), disk("sdb"))
    planned = plan([{**kept, "disks": ["sdb"]}, {**ROOT, "disks": ["sda"]}], disk(), disk("sdb"))
    assert ("win", 400000) in spaces(planned)["sdb"]
    assert "win" not in dict(spaces(planned)["sda"])


@pytest.mark.parametrize("second", [{"keep": {"uuid": "AAAA-1"}}, {"keep": {"partlabel": "EFI system partition"}}])
def test_a_partition_that_two_spaces_keep_is_a_mistake(second: Plain) -> None:
    schema = [{"id": "efi", "type": "partition", "keep": {"number": 1}}, {"id": "other", "type": "partition", **second}, ROOT]
    says = mistake(schema, disk())
    assert "schema[1].keep" in says
    assert "efi" in says


def test_on_empty_disks_it_is_made() -> None:
    planned = plan([{"id": "win", "type": "partition", "keep": {"number": 3}, "size": 1000}, ROOT], disk(partitions=[]))
    assert ("win", 1000) in spaces(planned)["sda"]
    assert any("win is to be kept, but is not on any disk yet" in warning for warning in planned["warnings"])


@pytest.mark.parametrize("keep", [{"partlabel": "data"}, {"uuid": "beef"}, {"number": 1}])
def test_on_a_disk_with_something_and_no_table_nothing_can_be_kept(keep: Plain) -> None:
    bare = disk(partitions=[], table=None, empty=False, content=[{"dev": "/dev/sda", "type": "ext4", "label": "data"}])
    schema = [{"id": "data", "type": "partition", "keep": keep}, ROOT]
    says = mistake(schema, bare)
    assert "schema[0].keep" in says
    assert "sda" in says
    planned = plan([{**schema[0], "disks": ["sdb"]}, {**ROOT, "disks": ["sdb"]}], bare, disk("sdb", partitions=[]))
    assert "data" in dict(spaces(planned)["sdb"])


def test_keep_and_keep_data_agree() -> None:
    kept = {"id": "win", "type": "partition", "keep": {"number": 3}}
    assert "schema[0].keep_data: is false together with keep" in mistake([{**kept, "keep_data": False}, ROOT], disk())
    assert "schema[0].keep: makes no sense for the type lv" in mistake([{**kept, "type": "lv"}, ROOT], disk())


def test_a_disk_with_what_is_kept_by_name_or_uuid_is_used_though_it_is_on_usb() -> None:
    kept = {"id": "win", "type": "partition", "keep": {"uuid": "01D9-EE"}}
    assert plan([kept], disk(transport="usb"))["left_out_disks"] == []


@pytest.mark.parametrize("name", ["windows", "WINDOWS", "Win-dows", "Windwos", "basicdatapartition"])
def test_a_near_miss_on_a_disk_that_is_not_empty_is_a_mistake(name: str) -> None:
    says = mistake([{"id": name, "type": "partition", "keep_data": True}, ROOT], disk())
    assert says.startswith(f"schema[0].keep_data: there is no {name}, but partition 3 of sda ('Basic data partition' and 'Windows')")
    assert "keep: {number: 3}" in says


@pytest.mark.parametrize("name", ["data", "home", "win", "w"])
def test_another_name_is_no_near_miss(name: str) -> None:
    planned = plan([{"id": name, "type": "partition", "keep_data": True, "size": 1000}, ROOT], disk())
    assert name in dict(spaces(planned)["sda"])


def test_what_differs_in_a_number_or_is_kept_by_another_space_is_no_near_miss() -> None:
    there = [{"number": 1, "name": "data1", "start": 1, "size": 100}, {"number": 2, "name": "homes", "start": 101, "size": 100}]
    schema = [
        {"id": "data2", "type": "partition", "keep_data": True, "size": 50},
        {"id": "homes", "type": "partition", "keep_data": True},
        {"id": "home", "type": "partition", "keep_data": True, "size": 50},
    ]
    assert {"data2", "home", "homes"} <= dict(spaces(plan(schema, disk(partitions=there)))["sda"]).keys()


def test_all_that_is_there_stays_and_is_planned_around() -> None:
    planned = plan([ROOT], disk(), keep_existing=True)
    assert spaces(planned) == {
        "sda": [("kept_EFI_system_partition", 100), ("kept_Microsoft_reserved_partition", 16), ("kept_Windows", 400000), ("root", 576644)]
    }
    rows = planned["schema"]["parteds"][0]["partitions"]
    assert [(row["count"], row["begin"], row["keep_data"]) for row in rows] == [
        (1, 1, True),
        (2, 101, True),
        (3, 117, True),
        (4, 400117, False),
    ]
    assert not any("is not empty" in warning for warning in planned["warnings"])
    parse_static_schema(planned["schema"])


def test_all_that_is_there_stays_beside_what_spaces_keep() -> None:
    schema = [{"id": "Windows", "type": "partition", "keep_data": True}, {"id": "boot", "type": "esp", "keep": {"number": 1}}, ROOT]
    named = dict(spaces(plan(schema, disk(), keep_existing=True))["sda"])
    assert named.keys() == {"Windows", "boot", "kept_Microsoft_reserved_partition", "root"}


def test_partitions_of_one_name_get_names_of_their_own() -> None:
    there = [{"number": at, "start": at * 1000, "size": 100, "name": "data"} for at in (1, 2)] + [{"start": 5000, "size": 10}]
    named = [name for name, _size in spaces(plan([ROOT], disk(partitions=there), keep_existing=True))["sda"]]
    assert set(named) == {"kept_data", "kept_data_2", "kept_part", "root"}


def test_what_is_kept_keeps_its_bytes() -> None:
    there = [
        {"number": 1, "start": 1, "size": 500, "start_bytes": 1064960, "size_bytes": 524288000},
        {"number": 14, "start_bytes": 17408, "size_bytes": 1031168},
    ]
    rows = plan([ROOT], disk(partitions=there), keep_existing=True)["schema"]["parteds"][0]["partitions"]
    assert {row["count"]: (row.get("start_bytes"), row.get("end_bytes")) for row in rows if row["keep_data"]} == {
        14: (17408, 1048576),
        1: (1064960, 525352960),
    }
    parse_static_schema({**plan([ROOT], disk(partitions=there), keep_existing=True)["schema"]})


def test_disks_in_which_nothing_can_stay_beside_something_new_are_left_out() -> None:
    planned = plan(
        [ROOT], disk("a", table="dos"), disk("b", partitions=[], empty=False, content=[{"type": "ext4"}]), disk("c"), keep_existing=True
    )
    assert [one["disk_id"] for one in planned["left_out_disks"]] == ["a", "b"]
    with pytest.raises(InputError, match="no disk of this machine may be used: a has a table of the type dos"):
        plan([ROOT], disk("a", table="dos"), keep_existing=True)


def test_without_room_what_stays_is_named() -> None:
    with pytest.raises(NoSolution, match="which stays"):
        plan([{**ROOT, "min_size": "900 GiB"}], disk(), keep_existing=True)


def test_machines_whose_partitions_differ_are_not_one_problem() -> None:
    planner = Planner([{"id": "win", "type": "partition", "keep": {"uuid": "u"}}, ROOT])
    sizes = []
    for number in (1, 2, 1):
        there = [{"number": at, "start": at * 50000, "size": 40000 + at, "uuid": "U" if at == number else "V"} for at in (1, 2)]
        sizes.append(dict(spaces(planner.plan({"disks": [disk(partitions=there)]}))["sda"])["win"])
    assert sizes == [40001, 40002, 40001]
