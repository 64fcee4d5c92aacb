# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Levels of md arrays: one least number of members, whichever door a schema comes through."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.module_utils._schema.bareon.convert import read_bareon_list
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._storage.raid import (
    RaidLevel,
    data_legs,
    least_legs,
    parse_level,
    usual_legs,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.hardware import parse_hardware
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.parse import parse_schema

# What `mdadm --create` asks for, but for raid5, which it makes of two: a mirror that calls itself otherwise.
LEAST = {"raid0": 2, "raid1": 2, "raid5": 3, "raid6": 4, "raid10": 2}


def plan(level: str, legs: int) -> int:
    hardware = parse_hardware({"disks": [{"id": f"sd{number}", "size": 9000} for number in range(legs)]})
    schema = parse_schema([{"id": "data", "type": "raid", "level": level, "legs": legs, "size": 100}], hardware)
    return schema.spaces[0].legs


def by_hand(level: str, legs: int) -> int:
    parteds = [{"name": f"/dev/sd{letter}", "partitions": [{"begin": 1, "end": 101}]} for letter in "abcd"[:legs]]
    array = {"name": "/dev/md/data", "level": level, "devices": [f"/dev/sd{letter}1" for letter in "abcd"[:legs]]}
    return len(parse_static_schema({"parteds": parteds, "mds": [array]}).arrays[0].members)


def bareon(level: str, legs: int) -> int:
    disks = [{"id": f"/dev/sd{letter}", "dev": f"/dev/sd{letter}", "size": 9000} for letter in "abcd"[:legs]]
    volume = {"type": "raid", "size": "100 MiB", "level": level, "mount": "/srv"}
    entries = [{"type": "disk", "id": disk["id"], "size": "9000 MiB", "volumes": [volume]} for disk in disks]
    reading = read_bareon_list(entries, {"disks": disks})
    if reading.mistakes:
        raise ValueError("\n".join(reading.mistakes))
    return len(reading.schema["mds"][0]["devices"])


@pytest.mark.parametrize("door", [plan, by_hand, bareon])
@pytest.mark.parametrize("level", LEAST)
def test_a_level_takes_the_same_least_number_of_members_everywhere(door, level):
    assert door(level, LEAST[level]) == LEAST[level]
    with pytest.raises((InputError, SchemaMistakes, ValueError), match=f"need|{LEAST[level]}"):
        door(level, LEAST[level] - 1)


def test_nobody_asked_for_two_members_gets_a_raid10_that_is_a_mirror():
    assert usual_legs(RaidLevel.RAID10) == 4
    assert [usual_legs(level) for level in RaidLevel if level is not RaidLevel.RAID10] == [2, 2, 3, 4]


@pytest.mark.parametrize(("level", "legs", "data"), [("raid0", 4, 4), ("raid1", 3, 1), ("raid5", 4, 3), ("raid6", 6, 4), ("raid10", 6, 3)])
def test_data_legs(level, legs, data):
    assert data_legs(RaidLevel(level), legs) == data
    assert least_legs(RaidLevel(level)) == LEAST[level]


@pytest.mark.parametrize(
    ("word", "level"),
    [("raid1", "raid1"), ("1", "raid1"), (10, "raid10"), ("mirror", "raid1"), ("stripe", "raid0"), ("raid7", None), ("", None)],
)
def test_spellings(word, level):
    assert parse_level(word) == level


def test_a_level_is_written_as_mdadm_has_it():
    assert f"{RaidLevel.RAID5} {', '.join(RaidLevel)}" == "raid5 raid0, raid1, raid5, raid6, raid10"
