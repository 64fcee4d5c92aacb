# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of recorded hosts: a virtual machine with virtio, 4Kn, SCSI and NVMe disks in several states."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.tests.support.host.hardware_facts import content, disks, facts, holders
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost

GIB = 1024**3
MIB = 1024**2


class TestFresh:
    """The machine as it was installed: one disk with the system, five with nothing on them."""

    def test_memory_and_firmware(self):
        hardware, warnings = facts("vm-fresh")

        assert (hardware["ram"], hardware["firmware"]) == (967, "uefi")
        assert warnings == ()

    def test_disks_come_in_the_order_of_where_they_are_attached(self):
        assert list(disks("vm-fresh")) == ["/dev/vda", "/dev/vdb", "/dev/vdc", "/dev/sda", "/dev/sdb", "/dev/nvme0n1"]

    def test_identities(self):
        found = disks("vm-fresh")

        assert [disk["id"].rpartition("/")[2] for disk in found.values()] == [
            "virtio-ROOT0",
            "virtio-VIRTIO-A",
            "virtio-VIRTIO-4KN",
            "wwn-0x5000c500a1b2c3d4",
            "wwn-0x5002538e40a1b2c3",
            "nvme-nvme.1b36-4e564d4530303031-51454d55204e564d65204374726c-00000001",
        ]
        assert [disk["path"].rpartition("/")[2] for disk in found.values()] == [
            "pci-0000:00:03.0",
            "pci-0000:00:04.0",
            "pci-0000:00:05.0",
            "pci-0000:00:06.0-scsi-0:0:0:0",
            "pci-0000:00:06.0-scsi-0:0:1:0",
            "pci-0000:00:07.0-nvme-1",
        ]
        assert all(disk["id"] in disk["links"] and disk["path"] in disk["links"] for disk in found.values())

    def test_a_scsi_disk_in_full(self):
        assert disks("vm-fresh")["/dev/sda"] == {
            "id": "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4",
            "path": "/dev/disk/by-path/pci-0000:00:06.0-scsi-0:0:0:0",
            "dev": "/dev/sda",
            "links": [
                "/dev/disk/by-id/scsi-35000c500a1b2c3d4",
                "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4",
                "/dev/disk/by-path/pci-0000:00:06.0-scsi-0:0:0:0",
            ],
            "type": "hdd",
            "transport": "scsi",
            "hctl": "0:0:0:0",
            "vendor": "SEAGATE",
            "model": "ST4000NM",
            "serial": "HDD0001",
            "wwn": "0x5000c500a1b2c3d4",
            "firmware_revision": "2.5+",
            "size": 4096,
            "size_bytes": 4 * GIB,
            "logical_block": 512,
            "physical_block": 512,
            "optimal_io": 0,
            "removable": False,
            "read_only": False,
            "rotational": True,
            "zoned": False,
            "multipath": False,
            "path_devices": ["/dev/sda"],
            "volume_group": None,
            "table": None,
            "table_uuid": None,
            "partitions": [],
            "content": [],
            "holders": [],
            "in_use": False,
            "used_by": [],
            "drive": "ST4000NM HDD0001",
            "enclosure": None,
            "slot": None,
            "numa_node": None,
            "twins": [],
            "mountpoints": [],
            "probed": True,
            "empty": True,
        }

    def test_media_and_transports(self):
        assert {dev: (disk["type"], disk["transport"], disk["rotational"]) for dev, disk in disks("vm-fresh").items()} == {
            "/dev/vda": ("ssd", "virtio", True),
            "/dev/vdb": ("ssd", "virtio", True),
            "/dev/vdc": ("ssd", "virtio", True),
            "/dev/sda": ("hdd", "scsi", True),
            "/dev/sdb": ("ssd", "scsi", False),
            "/dev/nvme0n1": ("ssd", "nvme", False),
        }

    def test_sectors_of_4_kib(self):
        disk = disks("vm-fresh")["/dev/vdc"]

        assert (disk["logical_block"], disk["physical_block"], disk["size_bytes"]) == (4096, 4096, 3 * GIB)

    def test_only_the_disk_of_the_system_is_in_use_and_not_empty(self):
        found = disks("vm-fresh").values()

        assert [disk["dev"] for disk in found if disk["in_use"]] == ["/dev/vda"]
        assert [disk["dev"] for disk in found if not disk["empty"]] == ["/dev/vda"]
        assert content(disks("vm-fresh")["/dev/vda"]) == [("/dev/vda", "ext4")]

    def test_patterns_match_nodes_ids_paths_and_links(self):
        patterns = {"/dev/sd?": 2, "*/wwn-0x5000c5*": 1, "*nvme-QEMU*": 1, "*pci-0000:00:0[34].0": 2, "/dev/nvme0n1": 1}

        for pattern, count in patterns.items():
            assert len(disks("vm-fresh", devices=[pattern])) == count, pattern
        assert list(disks("vm-fresh", devices=["/dev/sda", "/dev/vda"])) == ["/dev/vda", "/dev/sda"]

    def test_a_pattern_without_a_match_is_told(self):
        hardware, warnings = facts("vm-fresh", devices=["/dev/sdq", "/dev/vda"])

        assert [disk["dev"] for disk in hardware["disks"]] == ["/dev/vda"]
        assert warnings == ("no disk matches '/dev/sdq' of devices",)

    def test_names_of_the_kernel_change_neither_order_nor_identity(self):
        """In another boot of the same machine the kernel happened to detect the second SCSI disk first."""
        first, other = (facts(record)[0]["disks"] for record in ("vm-fresh", "vm-fresh-other-boot"))

        assert [disk["dev"] for disk in other] == ["/dev/vda", "/dev/vdb", "/dev/vdc", "/dev/sdb", "/dev/sda", "/dev/nvme0n1"]
        for key in ("id", "path", "links", "serial", "wwn", "type", "size_bytes", "logical_block"):
            assert [disk[key] for disk in other] == [disk[key] for disk in first]


class TestStorage:
    """The machine with GPT, md, LVM (plain, mirrored, thin), LUKS, ext4, xfs, btrfs, vfat and swap."""

    def test_nothing_to_warn_of_and_every_device_was_read(self):
        hardware, warnings = facts("vm-storage")

        assert warnings == ()
        assert all(disk["probed"] for disk in hardware["disks"])

    def test_in_use_and_empty(self):
        found = disks("vm-storage")

        assert [dev for dev, disk in found.items() if not disk["in_use"]] == ["/dev/vdb"]
        assert [dev for dev, disk in found.items() if disk["empty"]] == ["/dev/vdb"]

    def test_partitions_on_sectors_of_4_kib_are_in_the_right_place(self):
        disk = disks("vm-storage")["/dev/vdc"]

        assert disk["table"] == "gpt"
        assert [(part["number"], part["start"], part["size"], part["start_bytes"], part["size_bytes"]) for part in disk["partitions"]] == [
            (1, 1, 1024, MIB, GIB),
            (2, 1025, 256, 1025 * MIB, 256 * MIB),
        ]
        assert [(part["dev"], part["name"], part["fs_type"], part["label"], part["mountpoints"]) for part in disk["partitions"]] == [
            ("/dev/vdc1", "k4", "ext4", "fourk", ["/srv/k4"]),
            ("/dev/vdc2", "swp", "swap", "swp", ["[SWAP]"]),
        ]

    def test_content_goes_from_the_disk_outwards(self):
        assert content(disks("vm-storage")["/dev/sda"]) == [
            ("/dev/sda", "gpt"),
            ("/dev/sda", "PMBR"),
            ("/dev/sda1", "linux_raid_member"),
            ("/dev/md127", "ext4"),
            ("/dev/sda2", "LVM2_member"),
            ("/dev/mapper/vg0-data", "xfs"),
            ("/dev/mapper/vg0-th", "ext4"),
        ]

    def test_the_array(self):
        found = disks("vm-storage")
        array = holders(found["/dev/sda"])["any:r1"]

        assert array == holders(found["/dev/sdb"])["any:r1"]
        assert (array["dev"], array["type"], array["active"], array["members"]) == ("/dev/md127", "raid1", True, ["/dev/sda1", "/dev/sdb1"])
        assert (array["fs_type"], array["label"], array["mountpoints"]) == ("ext4", "mdfs", ["/srv/md"])
        assert array["uuid"] == found["/dev/sda"]["partitions"][0]["fs_uuid"]

    def test_volumes_and_what_they_lie_on(self):
        found = holders(disks("vm-storage")["/dev/sda"])

        assert {name for name, holder in found.items() if holder["volume_group"] == "vg0"} >= {"data", "mir", "th", "tp"}
        assert (found["data"]["dev"], found["data"]["size"], found["data"]["mountpoints"]) == ("/dev/mapper/vg0-data", 500, ["/srv/xfs"])
        assert set(found["mir"]["members"]) == {f"/dev/mapper/vg0-mir_r{kind}_{leg}" for kind in ("image", "meta") for leg in (0, 1)}
        assert found["th"]["members"] == ["/dev/mapper/vg0-tp-tpool"]

    @pytest.mark.parametrize("record", ["vm-storage", "vm-stopped"])
    def test_physical_volumes_name_their_group(self, record):
        partitions = [part for disk in disks(record).values() for part in disk["partitions"]]

        assert {part["dev"] for part in partitions if part["volume_group"] == "vg0"} >= {"/dev/sda2"}
        assert all(part["fs_type"] == "LVM2_member" for part in partitions if part["volume_group"] is not None)
        assert not [part for part in partitions if part["fs_type"] == "LVM2_member" and part["volume_group"] is None]

    def test_what_is_below_comes_before_what_is_on_it(self):
        for disk in disks("vm-storage").values():
            seen = {disk["dev"], *(part["dev"] for part in disk["partitions"])}
            for holder in disk["holders"]:
                assert seen & set(holder["members"]), holder["name"]
                seen.add(holder["dev"])

    def test_luks(self):
        (holder,) = disks("vm-storage")["/dev/nvme0n1"]["holders"]

        assert (holder["dev"], holder["name"], holder["type"], holder["members"]) == (
            "/dev/mapper/secret",
            "secret",
            "crypt",
            ["/dev/nvme0n1p1"],
        )
        assert holder["luks"] == {"version": 2, "cipher": "aes-xts-plain64", "key_slots": 1}
        assert holder["mountpoints"] == ["/srv/luks"]


class TestStopped:
    """The same disks with everything unmounted, deactivated and closed."""

    def test_only_the_system_is_in_use_but_nothing_else_is_empty(self):
        found = disks("vm-stopped")

        assert [dev for dev, disk in found.items() if disk["in_use"]] == ["/dev/vda"]
        assert [dev for dev, disk in found.items() if disk["empty"]] == ["/dev/vdb"]

    def test_what_does_not_run_is_listed_all_the_same(self):
        found = disks("vm-stopped")
        listed = holders(found["/dev/sda"])

        assert {name: (holder["type"], holder["active"], holder["dev"]) for name, holder in listed.items()} == {
            "any:r1": ("raid1", False, None),
            "data": ("lvm", False, None),
            "mir": ("lvm", False, None),
            "th": ("lvm", False, None),
            "tp": ("lvm", False, None),
        }
        assert listed["any:r1"]["members"] == ["/dev/sda1", "/dev/sdb1"]
        assert listed["mir"]["members"] == ["/dev/sda2", "/dev/sdb2"]
        assert (listed["data"]["size"], listed["data"]["volume_group"], listed["data"]["members"]) == (500, "vg0", ["/dev/sda2"])
        assert set(listed["tp"]["members"]) == {"/dev/sda2", "/dev/sdb2"}

    def test_identities_are_those_of_when_it_ran(self):
        running, stopped = disks("vm-storage"), disks("vm-stopped")

        for name, holder in holders(stopped["/dev/sda"]).items():
            assert holder["uuid"] == holders(running["/dev/sda"])[name]["uuid"]

    def test_closed_luks(self):
        (holder,) = disks("vm-stopped")["/dev/nvme0n1"]["holders"]

        assert (holder["dev"], holder["active"], holder["size"]) == (None, False, None)
        assert holder["luks"]["version"] == 2
        assert holder["name"] == f"luks-{holder['uuid']}"

    @pytest.mark.parametrize(
        ("tools", "lost", "warning"),
        [
            (("mdadm",), {"any:r1": "raid"}, "the level of its array"),
            (("pvs",), {"data": None}, "volume groups and volumes that are not active"),
            (("lvs",), {"data": None}, "volume groups and volumes that are not active"),
        ],
    )
    def test_a_missing_tool_costs_only_what_it_tells(self, tools, lost, warning):
        hardware, warnings = facts(RecordedHost.load("vm-stopped.json").without_tools(*tools))
        found = {disk["dev"]: disk for disk in hardware["disks"]}

        assert {name: holders(found["/dev/sda"]).get(name, {}).get("type") for name in lost} == lost
        assert any(warning in said for said in warnings)
        assert content(found["/dev/sda"]) == content(disks("vm-stopped")["/dev/sda"])

    def test_without_cryptsetup_the_header_is_not_known(self):
        hardware, warnings = facts(RecordedHost.load("vm-stopped.json").without_tools("cryptsetup"))

        (holder,) = hardware["disks"][-1]["holders"]
        assert holder["luks"] is None
        assert any("cryptsetup" in warning for warning in warnings)


class TestMbr:
    """A disk with primary, extended and logical partitions, and one with a file system on the whole of it."""

    def test_partitions(self):
        disk = disks("vm-mbr")["/dev/vdb"]

        assert disk["table"] == "dos"
        assert [(part["number"], part["type"], part["size"], part["fs_type"], part["label"]) for part in disk["partitions"]] == [
            (1, "0x83", 100, "ext4", "my, root"),
            (2, "0x5", 500, None, None),
            (5, "0x83", 50, None, None),
            (6, "0x82", 60, "swap", None),
        ]
        assert all(part["uuid"].endswith(f"-0{part['number']}") for part in disk["partitions"])

    def test_a_partition_that_does_not_start_on_a_mebibyte_is_rounded_down(self):
        logical = disks("vm-mbr")["/dev/vdb"]["partitions"][2]

        assert logical["start"] == logical["start_bytes"] // MIB
        assert logical["size"] * MIB <= logical["size_bytes"]

    def test_a_kernel_that_shows_only_the_head_of_the_extended_partition_is_no_disagreement(self):
        assert not any("start or size in the kernel differ" in warning for warning in facts("vm-mbr")[1])


class TestNested:
    def test_partitions_of_an_array_are_among_what_is_built_on_the_disk(self):
        files = {
            "sda/size": "8388608",
            "sda/dev": "8:0",
            "md0/size": "8380416",
            "md0/md/level": "raid1",
            "md0p1/size": "2048",
            "md0p1/partition": "1",
        }
        files = {**files, "md0p1/start": "2048", "md0p1/dev": "259:1"}
        host = RecordedHost(
            {
                "files": {
                    **{f"/sys/class/block/{name}": text for name, text in files.items()},
                    "/proc/self/mountinfo": "1 1 259:1 / /mnt rw - ext4 x rw",
                },
                "directories": {"/sys/class/block": ["md0", "md0p1", "sda"], "/sys/class/block/md0/slaves": ["sda"]},
                "links": {"/sys/class/block/md0p1": "/sys/devices/virtual/block/md0/md0p1"},
            }
        )

        disk = disks(host)["/dev/sda"]

        assert disk["partitions"] == []
        assert [(holder["dev"], holder["type"], holder["members"], holder["mountpoints"]) for holder in disk["holders"]] == [
            ("/dev/md0", "raid1", ["/dev/sda"], []),
            ("/dev/md0p1", "part", ["/dev/md0"], ["/mnt"]),
        ]
        assert disk["in_use"]


class TestInUse:
    def test_a_disk_that_something_invisible_holds_is_in_use_and_not_empty(self):
        host = RecordedHost.load("vm-fresh.json").with_files(claimed={"/dev/sda": True})

        disk = disks(host)["/dev/sda"]

        assert disk["in_use"]
        assert not disk["empty"]

    def test_the_kernel_and_the_table_disagree(self):
        host = RecordedHost.load("vm-storage.json")
        outcome = host.record["commands"]["sfdisk --json /dev/vdc"]
        changed = outcome["stdout"].replace('"size": 262144', '"size": 131072').replace("/dev/vdc2", "/dev/vdc3")

        hardware, warnings = facts(host.with_command("sfdisk --json /dev/vdc", changed))

        disk = next(disk for disk in hardware["disks"] if disk["dev"] == "/dev/vdc")
        assert [(part["number"], part["size"], part["dev"]) for part in disk["partitions"]][0] == (1, 512, "/dev/vdc1")
        assert any("/dev/vdc1: start or size in the kernel differ" in warning for warning in warnings)
        assert any("/dev/vdc2: the kernel still has it" in warning for warning in warnings)
        assert disk["in_use"]
