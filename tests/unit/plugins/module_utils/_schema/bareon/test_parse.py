# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mistakes in Bareon's hand-written schema: every one with its place, all at once."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.tests.support.host.bareon_lists import (
    GUIDE,
    disk,
    mistakes,
    one_disk,
)


class TestMistakes:
    def test_all_at_once_with_their_places(self):
        entries = [
            {"type": "disc", "id": 1},
            "sda",
            {
                "type": "disk",
                "id": {"type": "nam", "value": 7},
                "size": "50%",
                "volumes": [
                    {"type": "partition", "mount": "srv", "file_sytem": "ext4"},
                    {"type": "partition", "size": "12 XB", "fstab_enabled": "yes", "fstab_options": "a b"},
                    {"type": "partition", "size": "0", "disk_label": "x", "partition_guid": "Linux"},
                    {"type": "pv", "size": True, "lvm_meta_size": "8 MiB"},
                    {"type": "partition", "size": "1", "mount": "/x", "disk_label": "much-too-long"},
                    {"type": "partition", "size": "120%", "mount": "swap", "file_system": "ext4", "name": "a b"},
                    {"type": "raid", "size": "1", "level": "7", "keep_data": 1},
                    {"type": "lvm_meta_pool", "size": "0"},
                    {"type": "partition", "size": "1", "file_system": "ext5"},
                ],
            },
            {"type": "vg", "volumes": [{"type": "lv", "size": "1"}, {"type": "pv"}]},
            {"type": "vg", "id": "os", "volumes": 3},
        ]
        assert mistakes(entries) == [
            "schema[0].type: has the unknown type 'disc' (did you mean disk?); here it is one of disk, vg",
            "schema[1]: is 'sda'; an entry is a dictionary with a type, one of disk, vg",
            "schema[2].id.type: is 'nam' (did you mean name?); known are name, path, scsi",
            "schema[2].id.value: is 7; write the name of the disk as text",
            "schema[2].size: a disk's own size is an amount, or 'remaining' for the whole disk; shares are for its volumes",
            "schema[2].volumes[0].file_sytem: is not a key of the type partition (did you mean file_system?); known are type, size, name,"
            " partition_guid, mount, file_system, disk_label, fstab_options, fstab_enabled, keep_data, images",
            "schema[2].volumes[0].size: is missing; the type partition needs it",
            "schema[2].volumes[0].mount: is 'srv'; write an absolute path without blanks, 'swap' or 'none'",
            "schema[2].volumes[1].size: '12 XB' has the unknown unit 'XB'; known are %, s, B, KB to YB and KiB to YiB",
            "schema[2].volumes[1].fstab_options: is 'a b'; write mount options as text without blanks, such as noatime,nodev",
            "schema[2].volumes[1].fstab_enabled: is 'yes'; write true or false",
            "schema[2].volumes[2].size: '0' is not a usable size; leave the entry out",
            "schema[2].volumes[2].disk_label: 'x' is the label of a file system, but there is none; give a file_system or a mount",
            "schema[2].volumes[2].partition_guid: 'Linux' is not a partition type GUID, such as 0fc63daf-8483-4772-8e79-3d69d8477de4",
            "schema[2].volumes[3].vg: is missing; the type pv needs it",
            "schema[2].volumes[3].size: True is not a size; write '50 GiB', '2 TB', '40%', 'remaining', or a number of MiB",
            "schema[2].volumes[3].lvm_meta_size: is '8 MiB'; it is an amount of 10 MiB or more",
            "schema[2].volumes[4].disk_label: 'much-too-long' is too long: a label of xfs has at most 12 bytes",
            "schema[2].volumes[5].size: '120%' is more than 100%",
            "schema[2].volumes[5].name: 'a b' is no name; up to 36 letters, digits and any of + _ . - make one, and it does not"
            " begin with a dash",
            "schema[2].volumes[5].mount: 'swap' and the file system 'ext4' do not go together; either both are swap, or neither is",
            "schema[2].volumes[6].keep_data: is 1; write true or false",
            "schema[2].volumes[6].level: is '7'; known are raid0, raid1, raid5, raid6, raid10",
            "schema[2].volumes[8].file_system: is 'ext5' (did you mean ext4?); known are ext2, ext3, ext4, xfs, btrfs, f2fs, vfat, swap",
            "schema[3].id: is missing; the type vg needs it",
            "schema[3].volumes[0].name: is missing; the type lv needs it",
            "schema[3].volumes[1].type: has the unknown type 'pv'; here it is one of lv",
            "schema[4].volumes: is not a list",
            "schema[4].id: no pv names the vg 'os', so it has no place",
        ]

    def test_references_and_names(self):
        entries = [
            one_disk(
                {"type": "pv", "size": "100", "vg": "so"},
                {"type": "pv", "size": "100", "vg": "os"},
                {"type": "boot", "size": "1", "mount": "/a"},
                {"type": "boot", "size": "1", "mount": "/a/"},
            ),
            {"type": "vg", "id": "os", "volumes": [{"type": "lv", "name": "x", "size": "4"}, {"type": "lv", "name": "x", "size": "4"}]},
            {"type": "vg", "id": "os", "volumes": []},
        ]
        assert mistakes(entries) == [
            "schema[0].volumes[0].vg: there is no vg 'so'",
            "schema[2].id: another vg is called os, see schema[1].id",
            "schema[0].volumes[3].mount: another file system is mounted at /a, see schema[0].volumes[2].mount",
            "schema[0].volumes[3].type: a disk has at most one partition of the type boot",
        ]

    def test_twice_the_same_volume(self):
        volumes = [{"type": "lv", "name": "x", "size": "4"}, {"type": "lv", "name": "x", "size": "4"}]
        entries = [one_disk({"type": "pv", "size": "100", "vg": "os"}), {"type": "vg", "id": "os", "volumes": volumes}]
        assert mistakes(entries) == ["schema[1].volumes[1].name: another lv is called x, see schema[1].volumes[0].name"]

    def test_what_does_not_fit(self):
        big = {"type": "partition", "size": "900"}
        rest = {"type": "partition", "size": "remaining"}
        assert mistakes([one_disk(big)], disk("sda", 925)) == [
            "schema[0].volumes: 900 MiB and 24 MiB for the boot loader are 1 MiB more than there are; /dev/disk/by-id/ata-sda has 923 MiB"
            " without its partition tables"
        ]
        assert mistakes([one_disk(big, rest)], disk("sda", 926)) == [
            "schema[0].volumes: 900 MiB and 24 MiB for the boot loader leave nothing that remains; /dev/disk/by-id/ata-sda has 924 MiB"
            " without its partition tables"
        ]
        assert mistakes([one_disk(big, size="910")], disk("sda", 1000)) == [
            "schema[0].volumes: 900 MiB and 24 MiB for the boot loader are 14 MiB more than there are; /dev/disk/by-id/ata-sda has 910 MiB"
            " by schema[0].size"
        ]
        assert mistakes([one_disk(rest, rest)]) == ["schema[0].volumes: volumes[0], volumes[1] ask for the rest; only one can have it"]

    def test_a_group_that_is_too_small(self):
        group = {"type": "vg", "id": "os", "volumes": [{"type": "lv", "name": "a", "size": "1001"}]}
        assert mistakes([one_disk({"type": "pv", "size": "1057", "vg": "os"}), group]) == [
            "schema[1].volumes: 1004 MiB in whole extents are 4 MiB more than the vg os has (1000 MiB)"
        ]

    @pytest.mark.parametrize(
        ("schema", "expected"),
        [
            ([], "schema: names no disk; at least one entry has to have the type disk"),
            ({"partitions": None}, "schema.partitions: is not a list of disks and volume groups"),
            ({"partitions": GUIDE, "imags": []}, "schema.imags: is not a key of a deploy configuration (did you mean images?)"),
        ],
    )
    def test_the_whole(self, schema, expected):
        assert mistakes(schema) == [expected]
