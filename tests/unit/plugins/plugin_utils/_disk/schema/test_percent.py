# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Percentages are of what a space can have: what adds up to 100 % has a plan on disks of any size, and on their twins."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage import overhead
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.hardware import parse_hardware
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.parse import parse_schema
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st

Plain = dict[str, t.Any]

SHARES = (
    st.lists(st.integers(5, 45), min_size=1, max_size=3).filter(lambda some: sum(some) < 100).map(lambda some: [*some, 100 - sum(some)])
)
DISKS = st.integers(20_000, 8_000_000)
BOOT = {"id": "boot", "type": "partition", "size": "1 GiB", "boot": True, "mount": "/boot", "mirror": "when_possible"}


def machine(*sizes: int, **keys: t.Any) -> Plain:
    """Return a machine with SSDs of these sizes."""
    disks = [{"id": f"sd{chr(97 + at)}", "type": "ssd", "transport": "sata", "size": size} for at, size in enumerate(sizes)]
    return {"ram": 8192, "firmware": "uefi", "disks": disks, **keys}


def planned(schema: list[Plain], *sizes: int) -> Plain:
    return Planner(schema).plan(machine(*sizes))


def volumes(shares: list[int], **group: t.Any) -> list[Plain]:
    names = [f"v{at}" for at in range(len(shares))]
    return [
        {"id": "os", "type": "vg", "contains": names, **group},
        *({"id": name, "type": "lv", "size": f"{share} %"} for name, share in zip(names, shares)),
    ]


def size_of(plan: Plain, space: str) -> int:
    """Return the MiB of an lv, or of one piece of a space."""
    sizes = [lv["size"] for lv in plan["schema"]["lvs"] if lv["space_id"] == space]
    return sizes[0] if sizes else next(own["size"] for disk in plan["disks"] for own in disk["spaces"] if own["space_id"] == space)


@settings(max_examples=examples(60), deadline=None)
@given(SHARES, st.lists(DISKS, min_size=1, max_size=3))
def test_volumes_of_a_hundred_percent_fill_their_vg(shares: list[int], sizes: list[int]) -> None:
    plan = planned(volumes(shares), *sizes)
    whole = sum((size - 3) // 4 * 4 for size in sizes)
    for at, share in enumerate(shares):
        assert size_of(plan, f"v{at}") == whole * share // 400 * 4


@settings(max_examples=examples(60), deadline=None)
@given(SHARES, DISKS)
def test_partitions_of_a_hundred_percent_fill_a_disk(shares: list[int], size: int) -> None:
    plan = planned([{"id": f"p{at}", "type": "partition", "size": f"{share} %"} for at, share in enumerate(shares)], size)
    assert [size_of(plan, f"p{at}") for at in range(len(shares))] == [(size - 2) * share // 100 for share in shares]


@settings(max_examples=examples(40), deadline=None)
@given(SHARES, st.sampled_from(["raid0", "raid1", "raid5"]), st.integers(4, 6), DISKS)
def test_arrays_of_a_hundred_percent_fill_their_legs(shares: list[int], level: str, disks: int, size: int) -> None:
    some = {"legs": 2, "disks": ["sda", "sdb"]} if level == "raid1" else {"legs": disks}
    schema = [{"id": f"r{at}", "type": "raid", "level": level, "size": f"{share} %", **some} for at, share in enumerate(shares)]
    plan = planned(schema, *[size] * disks)
    assert [size_of(plan, f"r{at}") for at in range(len(shares))] == [(size - 2) * share // 100 for share in shares]


PARTITIONS = {"type": "partition"}


@settings(max_examples=examples(60), deadline=None)
@given(
    SHARES,
    st.sampled_from(["raid0", "raid1", "raid5"]),
    DISKS,
    st.sampled_from([{"size": "50 %"}, {"size": "9001 MiB"}, {"max_size": "9002 MiB"}]),
    st.booleans(),
)
def test_volumes_of_a_hundred_percent_fit_a_vg_on_an_array_with_bounds(
    shares: list[int], level: str, size: int, bounds: Plain, encrypt: bool
) -> None:
    group, *inside = volumes(shares, encrypt=encrypt)
    array = {"id": "r", "type": "raid", "level": level, "legs": "all", **bounds}
    plan = planned([array, {**group, "contains": ["r", *group["contains"]]}, *inside], size, size, size)
    assert {lv["space_id"] for lv in plan["schema"]["lvs"]} == {volume["id"] for volume in inside}


MIRRORS = {"type": "raid", "level": "raid1", "legs": 2}


@settings(max_examples=examples(60), deadline=None)
@given(SHARES, st.sampled_from([PARTITIONS, MIRRORS]), st.sampled_from([None, 600]), st.booleans(), DISKS, st.integers(1, 2))
def test_a_hundred_percent_leave_room_for_boot_partitions(
    shares: list[int], kind: Plain, esp: int | None, uefi: bool, size: int, disks: int
) -> None:
    schema = [{"id": f"p{at}", "size": f"{share} %", "boot": not at, **kind} for at, share in enumerate(shares)]
    schema += [{"id": "esp", "type": "esp", "size": esp}] if esp else []
    sizes = [size] * max(disks, kind.get("legs", 1))
    plan = Planner(schema).plan(machine(*sizes, firmware="uefi" if uefi else "bios"))
    added = overhead.ESP_DEFAULT if uefi else overhead.BIOS_GRUB
    taken = added if esp is None else esp + (0 if uefi else added)
    assert not [warning for warning in plan["warnings"] if "no room" in warning]
    whole = size - 2 - taken
    assert [size_of(plan, f"p{at}") for at in range(len(shares))] == [whole * share // 100 for share in shares]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param({"type": "partition", "size": "100 %", "disks": ["sdb"]}, 5000, id="nothing boots from its disk"),
        pytest.param({"type": "partition", "size": "50 %", "disks": ["sda"]}, 7250, id="half of what the boot partition leaves"),
        pytest.param({"type": "partition", "size": "10 %", "per_disk": True}, 500, id="on each disk, the smallest of which does not boot"),
        pytest.param({"type": "partition", "size": "10 %", "per_disk": True, "disks": ["sda"]}, 1450, id="on each disk that boots"),
        pytest.param({"type": "partitions", "size": "50 %"}, 9750, id="on any disks"),
        pytest.param({"type": "btrfs", "level": "raid0", "legs": 2, "size": "50 %", "disks": ["sda", "sdb"]}, 5000, id="on two disks"),
    ],
)
def test_boot_partitions_come_off_the_whole(entry: Plain, expected: int) -> None:
    schema = [{"id": "esp", "type": "esp", "size": 500}, {"id": "root", "type": "partition", "size": 20, "boot": True, "disks": ["sda"]}]
    hardware = parse_hardware(machine(15_002, 5002))
    (space,) = [space for space in parse_schema([*schema, {"id": "x", **entry}], hardware).spaces if space.id == "x"]
    assert space.min_size == expected


@settings(max_examples=examples(40), deadline=None)
@given(SHARES, DISKS)
def test_what_fits_one_disk_fits_with_its_twin(shares: list[int], size: int) -> None:
    schema = [BOOT, *volumes(shares, mirror="when_possible")]
    alone, mirrored = planned(schema, size), planned(schema, size, size)
    assert mirrored["warnings"] == []
    assert len(mirrored["schema"]["mds"]) == 2
    for at in range(len(shares)):
        # md keeps 129 MiB of a leg at most, the vg an extent or two more.
        assert 0 <= size_of(alone, f"v{at}") - size_of(mirrored, f"v{at}") <= 140


@pytest.mark.parametrize(
    ("entry", "sizes", "expected"),
    [
        pytest.param(
            {"type": "raid", "level": "raid1", "max_size": "60 %"}, [457_862, 457_862], 274_716, id="an array, of the data of its legs"
        ),
        pytest.param({"type": "raid", "level": "raid5", "legs": 3, "size": "50 %"}, [1002, 2002, 3002], 500, id="of the smallest leg"),
        pytest.param({"type": "partition", "size": "100 %"}, [1002, 5002], 5000, id="a partition, of the largest disk"),
        pytest.param(
            {"type": "partition", "size": "100 %", "count": 2}, [1002, 5002, 3002], 3000, id="copies, of the smallest they lie on"
        ),
        pytest.param({"type": "btrfs", "level": "raid1", "legs": 2, "size": "100 %"}, [3002, 5002], 3000, id="Btrfs, of its legs"),
    ],
)
def test_what_a_percentage_is_of(entry: Plain, sizes: list[int], expected: int) -> None:
    plan = planned([{"id": "x", **entry}], *sizes)
    assert {own["size"] for disk in plan["disks"] for own in disk["spaces"]} == {expected}


def test_thin_pools_and_zpools_of_a_hundred_percent_fit() -> None:
    thin = [
        {"id": "g", "type": "vg", "contains": ["one", "two"]},
        {"id": "one", "type": "thin_pool", "size": "40 %", "contains": ["a"]},
        {"id": "two", "type": "thin_pool", "size": "60 %", "contains": ["b"]},
        {"id": "a", "type": "thin", "size": 1000},
        {"id": "b", "type": "thin", "size": 1000},
    ]
    assert {lv["space_id"] for lv in planned(thin, 100_001)["schema"]["lvs"]} >= {"a", "b"}
    pools = [{"id": "tank", "type": "zpool", "size": "35 %"}, {"id": "pond", "type": "zpool", "size": "65 %"}]
    assert {own["space_id"] for own in planned(pools, 100_001, 100_001)["disks"][0]["spaces"]} >= {"tank", "pond"}


@settings(max_examples=examples(120), deadline=None)
@given(SHARES, st.lists(DISKS, min_size=1, max_size=4), st.booleans(), st.integers(0, 9), st.booleans(), st.data())
def test_striped_volumes_of_a_hundred_percent_fit_extents_of_every_size(
    shares: list[int], sizes: list[int], alike: bool, power: int, encrypt: bool, data: st.DataObject
) -> None:
    sizes = sizes[:1] * len(sizes) if alike else sizes
    group, *inside = volumes(shares, extent_size=2**power, encrypt=encrypt)
    striped = [{**volume, "stripes": data.draw(st.integers(1, len(sizes)))} for volume in inside]
    plan = planned([group, *striped], *sizes)
    assert {lv["space_id"] for lv in plan["schema"]["lvs"]} == {volume["id"] for volume in inside}


def test_a_striped_volume_leaves_no_room_out_where_extents_are_of_one_mib() -> None:
    schema = volumes([10, 48, 42], extent_size=1)
    schema[1]["stripes"] = 2
    plan = planned(schema, 1_545_514, 1_545_514)
    whole = 1_545_511
    assert size_of(plan, "v0") == whole * 10 // 100 * 2
    assert [size_of(plan, name) for name in ("v1", "v2")] == [2 * whole * share // 100 for share in (48, 42)]
