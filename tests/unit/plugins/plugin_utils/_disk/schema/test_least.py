# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Spaces are as large as what is made on them takes, with its options and on the sectors of their disks: by the table of disk_layout."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.module_utils._storage.filesystems import FILESYSTEMS, SWAP, least_size
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner

Plain = dict[str, t.Any]


def machine(*blocks: int) -> Plain:
    disks = [
        {"id": f"disk-{number}", "path": f"p{number}", "type": "hdd", "size": 20000, "logical_block": block, "physical_block": 4096}
        for number, block in enumerate(blocks)
    ]
    return {"ram": 4096, "firmware": "bios", "disks": disks}


def sizes(plan: Plain) -> dict[str, tuple[str, int]]:
    """Return the disk and the MiB of each space on disks."""
    return {space["space_id"]: (disk["disk_id"], space["size"]) for disk in plan["disks"] for space in disk["spaces"]}


def space(fs_type: str, **keys: t.Any) -> Plain:
    return {"id": "a", "type": "partition", "fs_type": fs_type, **keys}


@pytest.mark.parametrize("sector", [512, 4096])
@pytest.mark.parametrize("fs_type", [name for name in FILESYSTEMS if name != SWAP])
def test_the_least_is_planned_and_less_is_a_mistake(fs_type: str, sector: int) -> None:
    least = least_size(fs_type, (), sector)
    assert sizes(Planner([space(fs_type, size=least)]).plan(machine(sector))) == {"a": ("disk-0", least)}
    if least > 1:
        with pytest.raises(InputError, match=f"{least - 1} MiB are too little for {fs_type}, which takes {least} MiB"):
            Planner([space(fs_type, max_size=least - 1)]).plan(machine(sector))


@pytest.mark.parametrize(("sector", "least"), [(512, 33), (4096, 257)])
def test_a_minimum_is_raised_to_the_least(sector: int, least: int) -> None:
    schema = [space("vfat", weight=0.000001), {"id": "b", "type": "partition", "weight": 1000}]
    assert least <= sizes(Planner(schema).plan(machine(sector)))["a"][1] < least + 20


def test_what_is_too_small_for_large_sectors_goes_to_a_disk_with_small_ones() -> None:
    schema = [space("vfat", size=100, best_with_disks=["disk-0"])]
    assert sizes(Planner(schema).plan(machine(4096, 512))) == {"a": ("disk-1", 100)}


@pytest.mark.parametrize(("options", "least"), [("-F 16", 9), ("-F 12", 1)])
def test_options_of_the_program_count(options: str, least: int) -> None:
    assert sizes(Planner([space("vfat", size=least, fs_options=options)]).plan(machine(512)))["a"] == ("disk-0", least)


def test_volumes_are_as_large_as_the_sectors_of_their_group_ask_for() -> None:
    group = {"id": "g", "type": "vg", "contains": ["a"], "disks": ["disk-0"]}
    volume = space("ext4", type="lv")
    assert Planner([group, {**volume, "size": 4}]).plan(machine(512, 4096))["schema"]["lvs"][0]["size"] == 4
    with pytest.raises(InputError, match="4 MiB are too little for ext4, which takes 8 MiB on sectors of 4096 bytes"):
        Planner([group, {**volume, "size": 4}]).plan(machine(4096, 512))
