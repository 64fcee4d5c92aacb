# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bareon's hand-written schema on given disks: what its user guide promises, checked by hand."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.hardware import read_hardware
from ansible_collections.bareon.allocator.plugins.module_utils._schema.bareon.convert import read_bareon_list
from ansible_collections.bareon.allocator.plugins.module_utils._schema.bareon.form import is_bareon_list
from ansible_collections.bareon.allocator.tests.support.host.bareon_lists import (
    GUIDE,
    LINUX,
    disk,
    mistakes,
    one_disk,
    partitions,
    read,
)
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost


def test_the_example_of_the_guide():
    schema = read(GUIDE).schema
    table = schema["parteds"][0]

    assert {key: value for key, value in table.items() if key != "partitions"} == {
        "name": "/dev/disk/by-id/ata-sda",
        "disk_id": "/dev/disk/by-id/ata-sda",
        "label": "gpt",
        "disk_size": 20000,
        "install_bootloader": True,
    }
    assert [(part["space_id"], part["begin"], part["end"], part["flags"]) for part in table["partitions"]] == [
        ("bios_grub", 1, 25, ["bios_grub"]),
        ("root", 25, 5001, []),
        ("opt", 5001, 7001, []),
        ("home", 7001, 10001, ["lvm"]),
    ]
    assert table["partitions"][1] == {
        "name": "/dev/disk/by-id/ata-sda-part2",
        "device": "/dev/disk/by-id/ata-sda",
        "count": 2,
        "begin": 25,
        "end": 5001,
        "partition_type": "primary",
        "guid": LINUX,
        "uuid": table["partitions"][1]["uuid"],
        "flags": [],
        "keep_data": False,
        "space_id": "root",
    }
    home = "/dev/disk/by-id/ata-sda-part4"
    # 64 MiB for metadata: two copies of (64 - 8) / 2.
    assert schema["pvs"] == [{"name": home, "metadatasize": 28, "metadatacopies": 2, "keep_data": False}]
    assert schema["vgs"] == [{"name": "home", "pvnames": [home], "keep_data": False, "space_id": "home"}]
    assert schema["lvs"] == [
        {"name": "home", "vgname": "home", "device": "/dev/mapper/home-home", "size": 2936, "keep_data": False, "space_id": "home"}
    ]
    assert [(fs["device"], fs["mount"], fs["fs_type"], fs["fstab_enabled"], fs["fstab_options"]) for fs in schema["fss"]] == [
        ("/dev/disk/by-id/ata-sda-part2", "/", "ext4", True, "defaults"),
        ("/dev/disk/by-id/ata-sda-part3", "/opt", "ext4", True, "defaults"),
        ("/dev/mapper/home-home", "/home", "ext3", True, "defaults"),
    ]
    assert schema["mds"] == schema["luks"] == []


def test_the_same_input_gives_the_same_identities_and_another_disk_others():
    identities = [part["uuid"] for part in read(GUIDE).schema["parteds"][0]["partitions"]]
    assert identities == [part["uuid"] for part in read(GUIDE).schema["parteds"][0]["partitions"]]
    assert len(set(identities)) == 4
    other = [part["uuid"] for part in read(GUIDE, disk("sda", 20000, serial="other")).schema["parteds"][0]["partitions"]]
    assert set(identities).isdisjoint(other)


def test_a_whole_deploy_configuration_is_read_and_what_is_not_about_disks_is_noted():
    document = {"partitions_policy": "clean", "images": [{"name": "centos"}], "partitions": copy.deepcopy(GUIDE)}
    document["partitions"][0]["volumes"][0]["images"] = ["centos"]
    reading = read(document)
    assert reading.schema == read(GUIDE).schema
    assert [note.split(":")[0] for note in reading.notes] == [
        "schema.partitions_policy",
        "schema.images",
        "schema.partitions[0].volumes[0].images",
    ]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [(GUIDE, True), ({"partitions": GUIDE}, True), ({"parteds": [], "fss": []}, False), ({}, False), ("text", False)],
)
def test_the_two_forms_are_told_apart(schema, expected):
    assert is_bareon_list(schema) is expected


class TestSizes:
    @pytest.mark.parametrize(
        ("size", "mib"),
        [
            ("500 MiB", 500),
            ("500MiB", 500),
            ("500", 500),
            (500, 500),
            ("1 GiB", 1024),
            ("1.5 GiB", 1536),
            ("1 GB", 954),  # 1000^3 / 1024^2 = 953.7: at least what was asked for
            ("2097152 s", 1024),
            ("1048576 B", 1),
            ("1048577 B", 2),
            ("0.01 TB", 9537),
        ],
    )
    def test_amounts(self, size, mib):
        assert partitions(read([one_disk({"type": "partition", "size": size})]))[1] == ("partition", 25, 25 + mib)

    def test_shares_are_of_what_can_be_shared(self):
        # 10026 - 2 for the tables - 24 for the boot loader = 10000.
        reading = read(
            [one_disk({"type": "partition", "size": "33.3%", "mount": "/a"}, {"type": "partition", "size": "50 %"})], disk("sda", 10026)
        )
        assert partitions(reading)[1:] == [("a", 25, 3355), ("partition", 3355, 8355)]

    def test_what_remains_lies_between_its_neighbours(self):
        volumes = [{"type": "partition", "size": size, "name": name} for name, size in (("a", "100"), ("b", "remaining"), ("c", "200"))]
        reading = read([one_disk(*volumes)], disk("sda", 1000))
        # The last MiB belongs to the copy of the table.
        assert partitions(reading) == [("bios_grub", 1, 25), ("a", 25, 125), ("b", 125, 799), ("c", 799, 999)]

    def test_a_disk_is_used_as_far_as_its_entry_says(self):
        reading = read([one_disk({"type": "partition", "size": "remaining", "mount": "/"}, size="5000 MiB")])
        assert partitions(reading) == [("bios_grub", 1, 25), ("root", 25, 5001)]

    def test_volumes_are_whole_extents(self):
        volumes = [{"type": "lv", "name": name, "size": size} for name, size in (("a", "101"), ("b", "10%"), ("c", "remaining"))]
        pv = {"type": "pv", "size": "1057", "vg": "os", "lvm_meta_size": "24 MiB"}
        reading = read([one_disk(pv), {"type": "vg", "id": "os", "volumes": volumes}])
        # Two copies of 8: 1057 - 1 - 16 = 1040 are 260 extents; 104, 26 extents, the rest.
        assert [volume["size"] for volume in reading.schema["lvs"]] == [104, 104, 832]

    def test_metadata_counts_for_each_pv(self):
        pvs = [{"type": "pv", "size": "1057", "vg": "os"}, {"type": "pv", "size": "1060", "vg": "os"}]
        entries = [one_disk(*pvs), {"type": "vg", "id": "os", "volumes": [{"type": "lv", "name": "all", "size": "100%"}]}]
        # 1057 - 57 = 1000, 250 extents; 1060 - 57 = 1003, 250 too.
        assert read(entries).schema["lvs"][0]["size"] == 2000


class TestDisks:
    def test_by_name_path_and_link(self):
        sda = disk("sda", 1000, links=["/dev/disk/by-id/wwn-0x1"])
        partition = {"type": "partition", "size": "100"}
        for identity in (
            {"type": "name", "value": "sda"},
            {"type": "name", "value": "/dev/sda"},
            {"type": "path", "value": "disk/by-path/pci-sda"},
            {"type": "path", "value": "/dev/disk/by-path/pci-sda"},
            {"type": "path", "value": "disk/by-id/wwn-0x1"},
            "/dev/disk/by-id/wwn-0x1",
        ):
            entry = {"type": "disk", "id": identity, "size": "1000 MiB", "volumes": [partition]}
            assert read([entry], disk("sdb", 900), sda).schema["parteds"][0]["disk_id"] == "/dev/disk/by-id/ata-sda"

    def test_by_scsi_address_of_a_recorded_host(self):
        facts = read_hardware(RecordedHost.load("vm-fresh.json"))[0]
        entry = {
            "type": "disk",
            "id": {"type": "scsi", "value": "0:0:0:0"},
            "size": "4 GiB",
            "volumes": [{"type": "partition", "size": "100"}],
        }
        reading = read_bareon_list([entry], facts)
        assert reading.mistakes == ()
        assert reading.schema["parteds"][0]["name"] == "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"
        assert reading.schema["parteds"][0]["partitions"][1]["name"] == "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part2"

    def test_nodes_without_links(self):
        loop = disk("loop0", 500, id="/dev/loop0", path="/dev/loop0")
        reading = read([one_disk({"type": "partition", "size": "100"}, name="loop0")], loop)
        assert [part["name"] for part in reading.schema["parteds"][0]["partitions"]] == ["/dev/loop0p1", "/dev/loop0p2"]

    def test_disks_that_are_not_there_or_not_clear(self):
        found = mistakes(
            [
                one_disk(name="sdz"),
                {"type": "disk", "id": {"type": "scsi", "value": "1:0:0:0"}, "size": "1", "volumes": []},
                one_disk(name="sda"),
                {"type": "disk", "id": "/dev/disk/by-id/ata-sda", "size": "10", "volumes": []},
                one_disk(name="sdb", size="3000"),
            ],
            disk("sda", 1000, hctl="0:0:0:0"),
            disk("sdb", 2000),
        )
        assert found == [
            "schema[0].id: no disk has the name 'sdz'; there are /dev/sda, /dev/sdb",
            "schema[1].id: no disk has the scsi '1:0:0:0'; there are /dev/sda (0:0:0:0), /dev/sdb (no SCSI address)",
            "schema[3].id: is the disk /dev/disk/by-id/ata-sda of schema[2]; put all volumes of a disk into one entry",
            "schema[4].size: is 3000 MiB, but /dev/sdb has only 2000 MiB",
        ]

    def test_a_link_of_two_disks(self):
        both = [disk("sda", 1000, links=["/dev/disk/by-id/same"]), disk("sdb", 1000, links=["/dev/disk/by-id/same"])]
        entry = {"type": "disk", "id": "/dev/disk/by-id/same", "size": "10", "volumes": []}
        assert mistakes([entry], *both) == [
            "schema[0].id: the path '/dev/disk/by-id/same' is that of several disks: /dev/disk/by-id/ata-sda, /dev/disk/by-id/ata-sdb"
        ]


class TestFileSystems:
    def files(self, **keys):
        return read([one_disk({"type": "partition", "size": "300", **keys})]).schema["fss"]

    def test_defaults(self):
        assert self.files() == []
        assert [(fs["fs_type"], fs["mount"], fs["fstab_enabled"]) for fs in self.files(mount="/srv/")] == [("xfs", "/srv", True)]
        # Bareon forgets to make it; the guide only says that it is not mounted.
        assert [(fs["fs_type"], fs["mount"], fs["fstab_enabled"]) for fs in self.files(mount="None", file_system="EXT4")] == [
            ("ext4", "none", False)
        ]

    def test_options_and_labels(self):
        (found,) = self.files(mount="/srv", file_system="ext4", disk_label="data", fstab_options="noatime,nofail", fstab_enabled=False)
        assert (found["fs_label"], found["fstab_options"], found["fstab_enabled"]) == ("data", "noatime,nofail", False)

    @pytest.mark.parametrize("keys", [{"mount": "swap"}, {"file_system": "swap"}, {"mount": "swap", "file_system": "linux-swap"}])
    def test_swap(self, keys):
        reading = read([one_disk({"type": "partition", "size": "300", **keys})])
        assert [(fs["fs_type"], fs["mount"], fs["fstab_enabled"]) for fs in reading.schema["fss"]] == [("swap", "swap", True)]
        assert reading.schema["parteds"][0]["partitions"][1]["guid"] == "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f"

    def test_types_of_partitions(self):
        volumes = [
            {"type": "partition", "size": "100", "mount": "/boot/efi", "file_system": "fat32"},
            {"type": "partition", "size": "100", "mount": "/stick", "file_system": "vfat"},
            {"type": "partition", "size": "100", "partition_guid": "BC13C2FF-59E6-4262-A352-B275FD6F7172"},
            {"type": "boot", "size": "100"},
        ]
        found = read([one_disk(*volumes)]).schema["parteds"][0]["partitions"][1:]
        assert [(part["guid"], part["flags"]) for part in found] == [
            ("c12a7328-f81f-11d2-ba4b-00a0c93ec93b", ["boot"]),
            ("ebd0a0a2-b9e5-4433-87c0-68b6b72699c7", []),
            ("bc13c2ff-59e6-4262-a352-b275fd6f7172", []),
            (LINUX, ["legacy_boot"]),
        ]


class TestArrays:
    def leg(self, **keys):
        return {"type": "raid", "size": "500", **keys}

    def two(self, first, second):
        return [one_disk(first, name="sda"), one_disk(second, name="sdb")], disk("sda", 1000), disk("sdb", 1000)

    def test_legs_with_one_mount_are_one_array(self):
        schema = read(*self.two(self.leg(mount="/boot", file_system="ext2"), self.leg(mount="/boot", file_system="ext2"))).schema
        assert schema["mds"] == [
            {
                "name": "/dev/md/boot",
                "level": "raid1",
                "devices": ["/dev/disk/by-id/ata-sda-part2", "/dev/disk/by-id/ata-sdb-part2"],
                "spares": [],
                "metadata": "1.0",
                "keep_data": False,
                "space_id": "boot",
            }
        ]
        assert [(fs["device"], fs["fs_type"]) for fs in schema["fss"]] == [("/dev/md/boot", "ext2")]
        assert [table["partitions"][1]["flags"] for table in schema["parteds"]] == [["raid"], ["raid"]]

    def test_level_and_name_are_read(self):
        schema = read(*self.two(self.leg(mount="/srv", level=0, name="fast"), self.leg(mount="/srv", level="raid0"))).schema
        assert [(array["name"], array["level"], array["metadata"]) for array in schema["mds"]] == [("/dev/md/fast", "raid0", "1.2")]

    def test_legs_of_several_sizes_are_noted(self):
        reading = read(*self.two(self.leg(mount="/"), self.leg(mount="/", size="400")))
        assert reading.notes == ("schema[0].volumes[0]: the legs of root differ in size; 400 MiB of each are used",)

    def test_mistakes(self):
        leg = self.leg
        assert mistakes([one_disk(leg(mount="/"))]) == [
            "schema[0].volumes[0]: the array at / has 1 of the 2 legs that a raid1 needs at least"
        ]
        assert mistakes([one_disk(leg(), leg(mount="none"))]) == [
            f"schema[0].volumes[{number}].mount: the legs of an array share a mount, or a name where it is not mounted; give either"
            for number in (0, 1)
        ]
        assert mistakes([one_disk(leg(mount="/"), leg(mount="/"))]) == [
            "schema[0].volumes[1]: the array at / already has a leg on that disk; see schema[0].volumes[0]"
        ]
        assert mistakes(*self.two(leg(mount="/", level=1), leg(mount="/", level=0, file_system="ext4"))) == [
            "schema[1].volumes[0].level: is 'raid0', but schema[0].volumes[0] says 'raid1' for the same array",
            "schema[1].volumes[0].file_system: is 'ext4', but schema[0].volumes[0] says 'xfs' for the same array",
        ]


class TestKeptData:
    def facts(self):
        there = [
            {"number": 1, "start": 1, "size": 24, "uuid": "grub", "volume_group": None},
            {"number": 5, "start": 25, "size": 1000, "uuid": "old", "volume_group": "data"},
        ]
        holders = [{"name": "files", "volume_group": "data", "type": "lvm"}]
        return disk("sda", 20000, partitions=there, holders=holders)

    def entries(self, size="1000", **pv):
        volumes = [
            {"type": "lv", "name": "files", "size": "100", "mount": "/files", "keep_data": True},
            {"type": "lv", "name": "new", "size": "100", "mount": "/new", "keep_data": True},
        ]
        return [one_disk({"type": "pv", "size": size, "vg": "data", **pv}), {"type": "vg", "id": "data", "volumes": volumes}]

    def test_what_lies_where_the_list_has_it_is_kept(self):
        schema = read(self.entries(), self.facts()).schema
        kept = schema["parteds"][0]["partitions"][1]
        assert (kept["uuid"], kept["count"], kept["name"], kept["keep_data"]) == ("old", 5, "/dev/disk/by-id/ata-sda-part5", True)
        assert schema["pvs"][0]["keep_data"] is schema["vgs"][0]["keep_data"] is True
        assert [(volume["name"], volume["keep_data"]) for volume in schema["lvs"]] == [("files", True), ("new", False)]
        assert [(fs["mount"], fs["keep_data"]) for fs in schema["fss"]] == [("/files", True), ("/new", False)]

    def test_on_an_empty_disk_there_is_nothing_to_keep(self):
        schema = read(self.entries()).schema
        assert not any(item["keep_data"] for kind in ("pvs", "vgs", "lvs", "fss") for item in schema[kind])

    def test_data_that_are_not_there_are_a_mistake(self):
        assert mistakes(self.entries(size="1002"), self.facts()) == [
            "schema[0].volumes[0].keep_data: its partition would begin at 25 MiB and have 1002 MiB, but there is none like it on"
            " /dev/disk/by-id/ata-sda to keep; there are 1 (1 MiB, 24 MiB), 5 (25 MiB, 1000 MiB) (begin, size)"
        ]
