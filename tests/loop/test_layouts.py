# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans made on loop devices with sfdisk, LVM, cryptsetup and mkfs.vfat: everything fits, to the MiB and to the extent."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.tests.support.host.layout_checks import FAT32_CLUSTERS, check_all

MIB = 1024**2
GIB = 1024 * MIB

Plain = dict[str, t.Any]

SCHEMAS: dict[str, list[Plain]] = {
    "partitions": [
        {"id": "boot", "type": "partition", "size": 300, "mount": "/boot", "boot": True},
        {"id": "root", "type": "partition", "min_size": 500, "mount": "/"},
        {"id": "scratch", "type": "partitions", "min_size": 100},
    ],
    "volumes": [
        {"id": "os", "type": "vg", "contains": ["root", "var"]},
        {"id": "root", "type": "lv", "min_size": 601, "max_size": 1501, "mount": "/", "boot": True},
        {"id": "var", "type": "lv", "weight": 3, "mount": "/var"},
    ],
    "two groups beside partitions": [
        {"id": "boot", "type": "partition", "size": 257, "fs_type": "ext4", "mount": "/boot", "boot": True},
        {"id": "os", "type": "vg", "contains": ["root", "swap"]},
        {"id": "root", "type": "lv", "min_size": 401, "mount": "/"},
        {"id": "swap", "type": "lv", "size": 203, "fs_type": "swap"},
        {"id": "data", "type": "vg", "contains": ["srv"], "min_size": 333},
        {"id": "srv", "type": "lv", "weight": 2, "mount": "/srv"},
        {"id": "free", "type": "vg", "size": 64},
    ],
    "encrypted": [
        {"id": "root", "type": "partition", "min_size": 401, "encrypt": True, "mount": "/"},
        {"id": "secret", "type": "vg", "contains": ["keys"], "encrypt": True},
        {"id": "keys", "type": "lv", "min_size": 100},
    ],
    "extents of other sizes": [
        {"id": "os", "type": "vg", "contains": ["root", "var"], "extent_size": "32 MiB"},
        {"id": "root", "type": "lv", "min_size": 401, "max_size": 700, "mount": "/"},
        {"id": "var", "type": "lv", "weight": 3, "mount": "/var"},
        {"id": "fine", "type": "vg", "contains": ["grain"], "extent_size": 1},
        {"id": "grain", "type": "lv", "min_size": 33, "max_size": 77},
    ],
    "one on every disk": [
        {"id": "root", "type": "partition", "size": 333, "mount": "/", "boot": True},
        {"id": "osd", "type": "partitions", "per_disk": True, "min_size": 200},
        {"id": "meta", "type": "vg", "contains": ["db"]},
        {"id": "db", "type": "lv", "min_size": 77},
    ],
}

# Whole MiB; a sector more; a sector less than one MiB more; what disks and sticks that are sold really have.
SIZES: dict[str, list[int]] = {
    "whole": [2 * GIB, 3 * GIB],
    "a sector more": [2 * GIB + 4096, 2 * GIB + 4096],
    "nearly a MiB more": [2 * GIB - 4096, 3001 * MIB - 4096, 2 * GIB],
    "sold": [500_107_862_016, 1_000_204_886_016, 15_931_539_456],
    "large": [4_000_787_030_016, 12_000_138_625_024],
    "one": [5_003_345_920],
}


def plan_of(schema: list[Plain], hardware: Plain, reserve: int = 0) -> Plain:
    return Planner(copy.deepcopy(schema), Objective.FAIR, reserve).plan(hardware)


@pytest.mark.parametrize("sector", [512, 4096])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_plan_is_made_as_it_is_written(loops, schema, sizes, sector):
    hardware = loops.hardware(SIZES[sizes], sector)
    plan = plan_of(SCHEMAS[schema], hardware)
    report = loops.make(plan["schema"])
    check_all(plan, report)
    assert sum(len(disk["partitions"]) for disk in plan["schema"]["parteds"]) == len(report["partitions"]) > 0


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("sector", [512, 4096])
def test_volumes_across_disks_fill_their_group(loops, sector, objective):
    hardware = loops.hardware([1027 * MIB, 2050 * MIB], sector)
    schema = [{"id": "all", "type": "vg", "contains": ["wide"]}, {"id": "wide", "type": "lv", "min_size": 2500}]
    plan = Planner(schema, objective, 0).plan(hardware)
    report = loops.make(plan["schema"])
    check_all(plan, report)
    # By hand: 1027 - 2 (GPT) - 1 (PV) = 1024 are 256 extents, 2050 - 3 = 2047 are 511.
    assert [volume["size"] for volume in plan["schema"]["lvs"]] == [(256 + 511) * 4]
    assert report["vgs"][0]["vg_free_count"] == "0"


@pytest.mark.parametrize("sector", [512, 4096])
@pytest.mark.parametrize("over", [0, 1, 3])
def test_an_exact_fit_fits_and_an_extent_more_does_not(loops, sector, over):
    hardware = loops.hardware([(1003 + over) * MIB], sector)
    fitting = 1000
    schema = [{"id": "all", "type": "vg", "contains": ["a", "b"]}, {"id": "a", "type": "lv", "size": 400}, {"id": "b", "type": "lv"}]
    schema[2]["size"] = fitting - 400
    plan = plan_of(schema, hardware)
    report = loops.make(plan["schema"])
    check_all(plan, report)
    assert report["vgs"][0]["vg_free_count"] == "0"
    schema[2]["size"] = fitting - 400 + 4
    with pytest.raises(NoSolution):
        plan_of(schema, hardware)
    plan["schema"]["lvs"][1]["size"] += 4
    assert "insufficient free space" in loops.make(plan["schema"])["failed"]


@pytest.mark.parametrize("sector", [512, 4096])
def test_partitions_to_the_last_mib_fit_and_a_mib_more_does_not(loops, sector):
    hardware = loops.hardware([700 * MIB], sector)
    schema = [{"id": "a", "type": "partition", "size": 300}, {"id": "b", "type": "partition", "size": 398}]
    plan = plan_of(schema, hardware)
    check_all(plan, loops.make(plan["schema"]))
    schema[1]["size"] = 399
    with pytest.raises(NoSolution):
        plan_of(schema, hardware)
    plan["schema"]["parteds"][0]["partitions"][1]["end"] += 1
    assert "sfdisk" in loops.make(plan["schema"])["failed"]


@pytest.mark.parametrize("sector", [512, 4096])
def test_volumes_straight_on_disks_fit_with_room_left_for_the_table(loops, sector):
    hardware = loops.hardware([1001 * MIB, 2003 * MIB], sector)
    schema = [{"id": "root", "type": "lv", "min_size": 500}, {"id": "data", "type": "lv", "weight": 2}]
    plan = plan_of(schema, hardware, reserve=2)
    check_all(plan, loops.make(plan["schema"]))
    assert plan["warnings"] == []
    taken = sum(part["end"] - part["begin"] for disk in plan["schema"]["parteds"] for part in disk["partitions"])
    assert taken == 999 + 2001


@pytest.mark.parametrize("sector", [512, 4096])
def test_many_small_disks(loops, sector):
    hardware = loops.hardware([(67 + 3 * number) * MIB + number * 4096 for number in range(14)], sector)
    schema = [
        {"id": "parts", "type": "partitions", "per_disk": True, "size": 11},
        {"id": "all", "type": "vg", "contains": ["wide", "rest"]},
        {"id": "wide", "type": "lv", "min_size": 401},
        {"id": "rest", "type": "lv", "weight": 0.3},
    ]
    plan = plan_of(schema, hardware)
    report = loops.make(plan["schema"])
    check_all(plan, report)
    assert len(report["pvs"]) == 14
    assert report["vgs"][0]["vg_free_count"] == "0"


@pytest.mark.parametrize(("sector", "least", "too_small"), [(512, 33, 32), (4096, 260, 256)])
def test_the_least_esp_is_fat32_and_a_smaller_one_is_not(loops, sector, least, too_small):
    """With 4096 byte sectors 257 MiB would do for mkfs.vfat; 260 are what makers of firmware and systems ask for."""
    hardware = loops.hardware([2 * GIB], sector)
    schema = [{"id": "esp", "type": "esp", "size": least}, {"id": "root", "type": "partition", "mount": "/", "boot": True}]
    plan = plan_of(schema, hardware)
    report = loops.make(plan["schema"])
    check_all(plan, report)
    assert len(report["fats"]) == 1
    assert plan["warnings"] == []
    schema[0]["size"] = too_small
    plan = plan_of(schema, hardware)
    assert any("FAT32" in warning for warning in plan["warnings"])
    (fat,) = loops.make(plan["schema"])["fats"].values()
    assert fat["clusters"] < FAT32_CLUSTERS


def test_volume_groups_over_disks_of_both_sector_sizes(loops):
    """LVM makes such a group when it is told to; the extents are those that were counted on."""
    hardware = loops.hardware([1 * GIB], 512)
    hardware["disks"] += loops.hardware([1 * GIB], 4096)["disks"]
    plan = plan_of([{"id": "all", "type": "vg", "contains": ["a"]}, {"id": "a", "type": "lv", "min_size": 1500}], hardware)
    check_all(plan, loops.make(plan["schema"]))
