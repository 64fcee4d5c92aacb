# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Converting an allocation to the seed's and to Bareon's static schema."""

from __future__ import annotations

import typing as t
import uuid

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.gpt import LUKS, partition_node
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import Allocation, Disk, Piece
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.hardware import parse_hardware
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.parse import parse_schema
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static import partitions as made_partitions
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.static.explicit import explicit_schema, sizes_by_disk

BY_ID = "/dev/disk/by-id/wwn-1"


def convert(
    facts: dict[str, t.Any], entries: list[dict[str, t.Any]], allocation: Allocation
) -> tuple[list[dict[str, t.Any]], dict[str, list[dict[str, t.Any]]]]:
    hardware = parse_hardware(facts)
    schema = parse_schema(entries, hardware)
    return sizes_by_disk(hardware, schema, allocation), explicit_schema(hardware, schema, allocation, "seed")


@pytest.mark.parametrize(
    ("disk", "device", "partition"),
    [
        (Disk(BY_ID, 1), BY_ID, f"{BY_ID}-part3"),
        (Disk("/dev/disk/by-path/pci-0", 1, dev="/dev/sda"), "/dev/disk/by-path/pci-0", "/dev/disk/by-path/pci-0-part3"),
        (Disk("/dev/mapper/mpatha", 1), "/dev/mapper/mpatha", "/dev/mapper/mpatha-part3"),
        (Disk("/dev/sda", 1), "/dev/sda", "/dev/sda3"),
        (Disk("/dev/nvme0n1", 1), "/dev/nvme0n1", "/dev/nvme0n1p3"),
        (Disk("/dev/mmcblk0", 1), "/dev/mmcblk0", "/dev/mmcblk0p3"),
        (Disk("sda", 1), "/dev/sda", "/dev/sda3"),
        (Disk("first", 1, dev="/dev/sdc"), "/dev/sdc", "/dev/sdc3"),
        (Disk("disk/by-id/wwn-1", 1, dev="/dev/sdc"), BY_ID, f"{BY_ID}-part3"),
    ],
)
def test_names_of_devices(disk: Disk, device: str, partition: str) -> None:
    assert made_partitions.device_name(disk) == device
    assert partition_node(device, 3) == partition


def test_a_common_server() -> None:
    facts = {"firmware": "uefi", "disks": [{"id": BY_ID, "size": 10_000}, {"id": "/dev/nvme0n1", "size": 5000}]}
    entries = [
        {
            "id": "boot",
            "type": "partition",
            "mount": "/boot",
            "fs_type": "ext4",
            "fs_label": "boot",
            "fs_options": "-O ^64bit",
            "boot": True,
        },
        {"id": "os", "type": "vg", "contains": ["root", "my-swap"]},
        {"id": "root", "type": "lv", "mount": "/", "mount_options": "noatime"},
        {"id": "my-swap", "type": "lv", "fs_type": "swap"},
        {"id": "esp", "type": "esp", "mount": "/boot/efi"},
    ]
    pieces = (Piece(4, 0, 512), Piece(0, 0, 1024), Piece(1, 0, 8460), Piece(1, 1, 4998))
    disks, static = convert(facts, entries, Allocation(pieces, {2: 9000, 3: 400}))

    assert disks == [
        {
            "disk_id": BY_ID,
            "size": 10_000,
            "spaces": [{"space_id": "esp", "size": 512}, {"space_id": "boot", "size": 1024}, {"space_id": "os", "size": 8460}],
            "unallocated": 2,
        },
        {"disk_id": "/dev/nvme0n1", "size": 5000, "spaces": [{"space_id": "os", "size": 4998}], "unallocated": 0},
    ]
    first, second = static["parteds"]
    assert (first["name"], first["label"], first["install_bootloader"], second["install_bootloader"]) == (BY_ID, "gpt", True, False)
    rows = [(p["count"], p["name"], p["begin"], p["end"], p["space_id"], p["guid"], p["flags"]) for p in first["partitions"]]
    assert rows == [
        (1, f"{BY_ID}-part1", 1, 513, "esp", "c12a7328-f81f-11d2-ba4b-00a0c93ec93b", ["boot"]),
        (2, f"{BY_ID}-part2", 513, 1537, "boot", "0fc63daf-8483-4772-8e79-3d69d8477de4", []),
        (3, f"{BY_ID}-part3", 1537, 9997, "os", "e6d6d379-f507-44c2-a23c-238f2a3df928", ["lvm"]),
    ]
    assert [p["name"] for p in second["partitions"]] == ["/dev/nvme0n1p1"]
    assert [pv["name"] for pv in static["pvs"]] == [f"{BY_ID}-part3", "/dev/nvme0n1p1"]
    assert static["vgs"] == [{"name": "os", "pvnames": [f"{BY_ID}-part3", "/dev/nvme0n1p1"], "keep_data": False, "space_id": "os"}]
    assert [(lv["name"], lv["vgname"], lv["size"], lv["device"]) for lv in static["lvs"]] == [
        ("root", "os", 9000, "/dev/mapper/os-root"),
        ("my-swap", "os", 400, "/dev/mapper/os-my--swap"),
    ]
    assert static["mds"] == static["luks"] == []
    rows = [(fs["device"], fs["mount"], fs["fs_type"], fs["fstab_options"], fs["fstab_enabled"]) for fs in static["fss"]]
    assert rows == [
        (f"{BY_ID}-part2", "/boot", "ext4", "defaults", True),
        ("/dev/mapper/os-root", "/", "xfs", "noatime", True),
        ("/dev/mapper/os-my--swap", "swap", "swap", "defaults", True),
        (f"{BY_ID}-part1", "/boot/efi", "vfat", "defaults", True),
    ]
    assert (static["fss"][0]["fs_label"], static["fss"][0]["fs_options"]) == ("boot", "-O ^64bit")


def test_arrays_carry_groups_and_what_boots_has_its_metadata_at_the_end() -> None:
    facts = {"firmware": "bios", "disks": [{"id": "sda", "size": 1000}, {"id": "sdb", "size": 1000}]}
    entries = [
        {"id": "boot", "type": "raid", "level": "raid1", "boot": True, "mount": "/boot", "fs_type": "ext4"},
        {"id": "body", "type": "raid", "level": "raid1"},
        {"id": "os", "type": "vg", "contains": ["body", "root"]},
        {"id": "root", "type": "lv", "mount": "/"},
        {"id": "grub", "type": "bios_grub"},
    ]
    pieces = tuple(Piece(space, disk, size) for disk in (0, 1) for space, size in ((4, 1), (0, 100), (1, 800)))
    _disks, static = convert(facts, entries, Allocation(pieces, {3: 700}))
    assert static["parteds"][1]["partitions"][0]["flags"] == ["bios_grub"]
    assert [table["install_bootloader"] for table in static["parteds"]] == [True, True]
    rows = [(md["name"], md["level"], md["devices"], md["metadata"]) for md in static["mds"]]
    assert rows == [
        ("/dev/md/boot", "raid1", ["/dev/sda2", "/dev/sdb2"], "1.0"),
        ("/dev/md/body", "raid1", ["/dev/sda3", "/dev/sdb3"], "1.2"),
    ]
    assert [pv["name"] for pv in static["pvs"]] == ["/dev/md/body"]
    assert static["vgs"][0]["pvnames"] == ["/dev/md/body"]
    assert [(fs["device"], fs["mount"]) for fs in static["fss"]] == [("/dev/md/boot", "/boot"), ("/dev/mapper/os-root", "/")]


@pytest.mark.parametrize("encrypted", ["os", "root"])
def test_volumes_are_encrypted_below_their_group(encrypted: str) -> None:
    facts = {"disks": [{"id": "sda", "size": 1000}, {"id": "sdb", "size": 1000}]}
    entries = [{"id": "os", "type": "vg", "contains": ["root"]}, {"id": "root", "type": "lv", "mount": "/"}]
    entries = [{**entry, "encrypt": True} if entry["id"] == encrypted else entry for entry in entries]
    _disks, static = convert(facts, entries, Allocation((Piece(0, 0, 998), Piece(0, 1, 998)), {1: 1900}))
    assert {p["guid"] for table in static["parteds"] for p in table["partitions"]} == {LUKS}
    assert [(luks["name"], luks["device"]) for luks in static["luks"]] == [("os-crypt1", "/dev/sda1"), ("os-crypt2", "/dev/sdb1")]
    assert static["vgs"][0]["pvnames"] == ["/dev/mapper/os-crypt1", "/dev/mapper/os-crypt2"]
    assert static["fss"][0]["device"] == "/dev/mapper/os-root"


def test_encrypted_partitions_and_arrays() -> None:
    facts = {"disks": [{"id": "sda", "size": 1000}, {"id": "sdb", "size": 1000}]}
    entries = [
        {"id": "data", "type": "partition", "mount": "/data", "encrypt": True},
        {"id": "r", "type": "raid", "level": "raid1", "mount": "/srv", "encrypt": True},
    ]
    _disks, static = convert(facts, entries, Allocation((Piece(0, 0, 100), Piece(1, 0, 500), Piece(1, 1, 500))))
    assert [(luks["name"], luks["device"]) for luks in static["luks"]] == [("data-crypt", "/dev/sda1"), ("r-crypt", "/dev/md/r")]
    assert [fs["device"] for fs in static["fss"]] == ["/dev/mapper/data-crypt", "/dev/mapper/r-crypt"]


def test_several_partitions_of_one_space_get_numbered_mounts_and_labels() -> None:
    facts = {"disks": [{"id": "sda", "size": 1000}, {"id": "sdb", "size": 1000}]}
    entries = [
        {"id": "data", "type": "partition", "per_disk": True, "mount": "/data", "fs_label": "elevenchars!", "fs_type": "xfs"},
        {"id": "esp", "type": "esp", "mount": "/boot/efi"},
        {"id": "raw", "type": "partitions"},
    ]
    pieces = tuple(Piece(space, disk, 100) for disk in (0, 1) for space in (1, 0, 2))
    _disks, static = convert(facts, entries, Allocation(pieces))
    assert [(fs["mount"], fs["fs_label"]) for fs in static["fss"]] == [
        ("/data1", "elevenchars1"),
        ("/data2", "elevenchars2"),
        ("/boot/efi", ""),
        ("none", ""),
    ]
    assert [fs["fstab_enabled"] for fs in static["fss"]] == [True, True, True, False]


def test_what_is_kept_keeps_place_number_and_identity() -> None:
    there = [
        {"number": 1, "name": "old", "start": 1, "size": 99, "uuid": "11111111-1111-1111-1111-111111111111"},
        {"number": 2, "name": "data", "start": 300, "size": 200, "uuid": "22222222-2222-2222-2222-222222222222"},
    ]
    facts = {"disks": [{"id": "sda", "size": 1000, "partitions": there}]}
    entries = [
        {"id": "data", "type": "partition", "keep_data": True, "mount": "/data"},
        {"id": "a", "type": "partition"},
        {"id": "b", "type": "partition"},
        {"id": "c", "type": "partition"},
    ]
    pieces = (Piece(1, 0, 150), Piece(2, 0, 149), Piece(0, 0, 200, start=300), Piece(3, 0, 499))
    _disks, static = convert(facts, entries, Allocation(pieces))
    rows = [(p["count"], p["begin"], p["end"], p["space_id"], p["keep_data"]) for p in static["parteds"][0]["partitions"]]
    assert rows == [(1, 1, 151, "a", False), (3, 151, 300, "b", False), (2, 300, 500, "data", True), (4, 500, 999, "c", False)]
    assert static["parteds"][0]["partitions"][2]["uuid"] == "22222222-2222-2222-2222-222222222222"
    assert [fs["keep_data"] for fs in static["fss"]] == [True]


def test_identities_follow_from_plan_disk_and_space() -> None:
    facts = {"disks": [{"id": "sda", "size": 1000}, {"id": "sdb", "size": 1000}]}
    hardware = parse_hardware(facts)
    schema = parse_schema([{"id": "a", "type": "partitions"}], hardware)

    def identities(seed: str, size: int) -> list[str]:
        made = made_partitions.partitions(hardware, schema, Allocation((Piece(0, 0, size), Piece(0, 1, size))), seed)
        return [str(uuid.UUID(partition.uuid)) for partition in made]

    assert identities("x", 10) == identities("x", 20)
    assert len({*identities("x", 10), *identities("y", 10)}) == 4


def test_lvs_straight_on_disks_are_partitions() -> None:
    disks, static = convert(
        {"disks": [{"id": "sda", "size": 100}]}, [{"id": "a", "type": "lv", "mount": "/"}], Allocation((Piece(0, 0, 60),))
    )
    assert disks == [{"disk_id": "sda", "size": 100, "spaces": [{"space_id": "a", "size": 60}], "unallocated": 40}]
    assert static["lvs"] == static["vgs"] == []
    assert (static["parteds"][0]["partitions"][0]["begin"], static["fss"][0]["device"]) == (1, "/dev/sda1")


def test_what_got_nothing_is_left_out() -> None:
    entries = [{"id": "g", "type": "vg", "contains": ["a"]}, {"id": "a", "type": "lv", "mount": "/"}]
    disks, static = convert({"disks": [{"id": "sda", "size": 100}]}, entries, Allocation((Piece(0, 0, 0),), {1: 0}))
    assert disks[0] == {"disk_id": "sda", "size": 100, "spaces": [], "unallocated": 100}
    assert all(not objects for objects in static.values())
