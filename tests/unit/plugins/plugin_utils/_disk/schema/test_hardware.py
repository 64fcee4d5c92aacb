# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading hardware."""

from __future__ import annotations

import math
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import ExistingSpace, Firmware
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.hardware import parse_hardware, reordered

SEED = {
    "ram": 2048,
    "disks": [
        {
            "id": "/dev/disk/by-id/id-for-sda",
            "path": "/dev/disk/by-path/path-for-sda",
            "dev": "/dev/sda",
            "type": "hdd",
            "vendor": "Hitachi",
            "size": 5000,
        }
    ],
}


def mistakes(facts: t.Any) -> dict[str, str]:
    with pytest.raises(InputError) as caught:
        parse_hardware(facts)
    return {mistake.place: mistake.says for mistake in caught.value.mistakes}


def test_the_hardware_of_the_seed_is_read() -> None:
    hardware = parse_hardware(SEED)
    disk = hardware.disks[0]
    assert (hardware.ram, hardware.firmware, hardware.facts) == (2048, None, SEED)
    assert (disk.id, disk.path, disk.dev) == ("/dev/disk/by-id/id-for-sda", "/dev/disk/by-path/path-for-sda", "/dev/sda")
    assert (disk.type, disk.size, disk.logical_block, disk.physical_block) == ("hdd", 5000, 512, 512)
    assert disk.facts["vendor"] == "Hitachi"


@pytest.mark.parametrize(
    ("written", "mib"),
    [(100, 100), (100.9, 100), ("100", 100), ("1 TB", 953674), ("2 GiB", 2048), ("1.5 GiB", 1536)],
)
def test_sizes_are_rounded_down_to_mib(written: t.Any, mib: int) -> None:
    assert parse_hardware({"disks": [{"id": "sda", "size": written}]}).disks[0].size == mib


def test_partitions_that_are_there_are_rounded_outwards() -> None:
    partitions = [
        {"number": 2, "name": "data", "start": 511, "start_bytes": 536_000_000, "size": 10, "size_bytes": 10_000_000, "label": "d"},
        {"number": 1, "start": 1, "size": 500},
    ]
    hardware = parse_hardware({"firmware": "bios", "disks": [{"id": "sda", "size": 1000, "partitions": partitions}]})
    assert hardware.firmware is Firmware.BIOS
    first, second = hardware.disks[0].existing
    assert first == ExistingSpace("", 1, 500)
    assert (second.name, second.label, second.start) == ("data", "d", math.floor(536_000_000 / 2**20))
    assert second.start + second.size == math.ceil(546_000_000 / 2**20)


def test_what_is_there_is_known_by_the_names_of_groups_arrays_and_volumes() -> None:
    volume = {"type": "lvm", "name": "root", "volume_group": "os", "size": 300}
    array = {"type": "raid1", "name": "boot", "members": ["/dev/sda2", "/dev/sdb2"], "size": 100}

    def disk(name: str) -> dict[str, t.Any]:
        partitions = [
            {"dev": f"/dev/{name}1", "start": 1, "size": 500, "name": "primary", "volume_group": "os", "label": None},
            {"dev": f"/dev/{name}2", "start": 501, "size": 100, "name": None, "volume_group": None, "label": None},
        ]
        return {"id": name, "size": 1000, "partitions": partitions, "holders": [volume, array]}

    first, second = parse_hardware({"disks": [disk("sda"), disk("sdb")]}).disks
    assert [(space.name, space.label, space.start) for space in second.existing] == [("primary", "os", 1), ("", "boot", 501)]
    assert first.existing[:2] == second.existing
    assert first.existing[2:] == (ExistingSpace("root", 0, 300, volume_group="os"),)


@pytest.mark.parametrize(
    ("facts", "place", "says"),
    [
        (None, "hardware", "must be a mapping"),
        ([], "hardware", "is []; must be a mapping"),
        ({}, "hardware.disks", "is missing"),
        ({"disk": []}, "hardware.disks", "did you mean disk?"),
        ({"disks": []}, "hardware.disks", "is empty"),
        ({"disks": None}, "hardware.disks", "must be a list"),
        ({"disks": {"id": "sda"}}, "hardware.disks", "is a mapping"),
        ({"disks": ["sda"]}, "hardware.disks[0]", "must be a mapping with id and size"),
        ({"disks": [{"size": 10}]}, "hardware.disks[0].id", "is missing"),
        ({"disks": [{"id": 7, "size": 10}]}, "hardware.disks[0].id", "must be text"),
        ({"disks": [{"id": "sda"}]}, "hardware.disks[0].size", "is missing"),
        ({"disks": [{"id": "sda", "size": None}]}, "hardware.disks[0].size", "is missing"),
        ({"disks": [{"id": "sda", "size": 0}]}, "hardware.disks[0].size", "is 0 MiB"),
        ({"disks": [{"id": "sda", "size": 0.5}]}, "hardware.disks[0].size", "is 0 MiB"),
        ({"disks": [{"id": "sda", "size": -1}]}, "hardware.disks[0].size", "must be 0 or more"),
        ({"disks": [{"id": "sda", "size": True}]}, "hardware.disks[0].size", "must be a size"),
        ({"disks": [{"id": "sda", "size": math.inf}]}, "hardware.disks[0].size", "must be a size"),
        ({"disks": [{"id": "sda", "size": math.nan}]}, "hardware.disks[0].size", "must be a size"),
        ({"disks": [{"id": "sda", "size": "big"}]}, "hardware.disks[0].size", "is not a size"),
        ({"disks": [{"id": "sda", "size": "10 XB"}]}, "hardware.disks[0].size", "unknown unit XB"),
        ({"disks": [{"id": "sda", "size": 1}, {"id": "sda", "size": 1}]}, "hardware.disks[1].id", "already the id of hardware.disks[0]"),
        ({"disks": [{"id": "sda", "size": 1, "logical_block": 500}]}, "hardware.disks[0].logical_block", "power of two"),
        ({"disks": [{"id": "sda", "size": 1, "dev": 3}]}, "hardware.disks[0].dev", "must be text"),
        ({"disks": [{"id": "sda", "size": 1, "transport": ["sata"]}]}, "hardware.disks[0].transport", "must be text"),
        ({"disks": [{"id": "sda", "size": 1, "partitions": {}}]}, "hardware.disks[0].partitions", "must be a list"),
        ({"disks": [{"id": "sda", "size": 1, "partitions": [1]}]}, "hardware.disks[0].partitions[0]", "is 1; must be a mapping"),
        ({"disks": [{"id": "sda", "size": 1, "partitions": [{"size": 1}]}]}, "hardware.disks[0].partitions[0].start", "is missing"),
        ({"disks": [{"id": "sda", "size": 1}], "firmware": "efi"}, "hardware.firmware", "uefi or bios"),
        ({"disks": [{"id": "sda", "size": 1}], "ram": "much"}, "hardware.ram", "is not a size"),
    ],
)
def test_a_mistake_is_named_with_its_place(facts: t.Any, place: str, says: str) -> None:
    found = mistakes(facts)
    assert list(found) == [place]
    assert says in found[place]


@pytest.mark.parametrize("number", [{}, "first", -1, math.inf])
def test_what_is_no_number_of_a_partition_is_a_mistake(number: t.Any) -> None:
    disk = {"id": "sda", "size": 1000, "partitions": [{"number": number, "start": 1, "size": 10}]}
    assert list(mistakes({"disks": [disk]})) == ["hardware.disks[0].partitions[0].number"]


def test_null_is_as_good_as_no_number_and_no_transport() -> None:
    disk = {"id": "sda", "size": 1000, "transport": None, "partitions": [{"number": None, "start": 1, "size": 10}]}
    assert parse_hardware({"disks": [disk]}).disks[0].existing == (ExistingSpace("", 1, 10),)


def test_all_mistakes_are_reported_at_once() -> None:
    facts = {
        "ram": -1,
        "firmware": "x",
        "disks": [{"id": "a", "size": 0}, {"size": "?"}, 3, {"id": "b", "size": 1}, {"id": "b", "size": 1}],
    }
    assert set(mistakes(facts)) == {
        "hardware.ram",
        "hardware.firmware",
        "hardware.disks[0].size",
        "hardware.disks[1].id",
        "hardware.disks[1].size",
        "hardware.disks[2]",
        "hardware.disks[4].id",
    }


def test_reordering_reaches_the_facts_as_well() -> None:
    hardware = parse_hardware({"disks": [{"id": "b", "size": 1}, {"id": "a", "size": 2}]})
    other = reordered(hardware, [1, 0])
    assert [disk.id for disk in other.disks] == ["a", "b"]
    assert [disk["id"] for disk in other.facts["disks"]] == ["a", "b"]
    assert [disk["id"] for disk in hardware.facts["disks"]] == ["b", "a"]


def test_whole_sizes_of_partitions_that_are_text_become_whole_numbers() -> None:
    """So that whoever reads them is told of 500 MiB, not of 500.0."""
    disks = [{"id": "sda", "size": "40 GiB", "partitions": [{"number": 1, "start": "1 MiB", "size": "512.5 MiB"}]}]
    (disk,) = parse_hardware({"disks": disks}).facts["disks"]
    assert [repr(disk["partitions"][0][key]) for key in ("start", "size")] == ["1", "512.5"]
