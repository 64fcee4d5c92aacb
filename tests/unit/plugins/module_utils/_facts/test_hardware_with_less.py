# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of hosts that tell less: without root, udev, tools, a kernel of their own, or a medium in the drive."""

from __future__ import annotations

import re

import pytest
from ansible_collections.bareon.allocator.tests.support.host.hardware_facts import content, disks, facts
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import RecordedHost

GIB = 1024**3
MIB = 1024**2


class TestUnprivileged:
    """The same machine and state, seen by the user nobody."""

    def test_what_udev_and_the_kernel_tell_is_the_same(self):
        without, with_root = disks("vm-storage-unprivileged"), disks("vm-storage")
        same = (
            "id",
            "path",
            "links",
            "type",
            "transport",
            "vendor",
            "model",
            "serial",
            "wwn",
            "size_bytes",
            "logical_block",
            "table",
            "table_uuid",
        )

        for dev, disk in with_root.items():
            assert {key: without[dev][key] for key in same} == {key: disk[key] for key in same}
            assert without[dev]["partitions"] == [{**part, "volume_group": None} for part in disk["partitions"]]
            assert [(holder["dev"], holder["uuid"]) for holder in without[dev]["holders"] if holder["type"] != "lvm"] == [
                (holder["dev"], holder["uuid"]) for holder in disk["holders"] if holder["type"] != "lvm"
            ]
            known = {holder["dev"]: holder["uuid"] for holder in without[dev]["holders"] if not holder["dev"].endswith("-tpool")}
            assert known == {holder["dev"]: holder["uuid"] for holder in disk["holders"] if holder["dev"] in known}

    def test_signatures_are_those_of_udev_without_offsets(self):
        disk = disks("vm-storage-unprivileged")["/dev/nvme0n1"]

        assert [found["type"] for found in disk["content"]] == ["gpt", "crypto_LUKS", "ext4", "btrfs", "vfat"]
        assert all(found["offsets"] == [] for found in disk["content"])

    def test_a_disk_that_was_not_read_is_not_called_empty(self):
        hardware, warnings = facts("vm-storage-unprivileged")

        assert not any(disk["probed"] or disk["empty"] for disk in hardware["disks"])
        assert any("/dev/vdb" in warning and "empty is false" in warning for warning in warnings)
        assert not disks("vm-storage-unprivileged")["/dev/vdb"]["in_use"]


class TestWithoutUdev:
    """A machine without udev whose kernel reads no partition tables, with a loop device that has one."""

    def test_loops_are_left_out_unless_asked_for(self):
        assert list(disks("no-udev")) == ["/dev/vda"]
        assert list(disks("no-udev", "loop")) == ["/dev/vda", "/dev/loop0"]

    def test_the_id_is_the_node_when_there_is_no_link(self):
        disk = disks("no-udev")["/dev/vda"]

        assert (disk["id"], disk["path"], disk["links"]) == ("/dev/vda", None, [])
        assert (disk["size_bytes"], disk["logical_block"], disk["physical_block"]) == (256 * GIB, 512, 4096)

    def test_a_disk_that_may_not_be_read_even_by_root(self):
        hardware, warnings = facts("no-udev")
        (disk,) = hardware["disks"]

        assert (disk["probed"], disk["empty"], disk["in_use"]) == (False, False, True)
        assert content(disk) == [("/dev/vda", "ext4")]
        assert any("/dev/vda" in warning for warning in warnings)

    def test_partitions_without_nodes_are_read_through_the_disk(self):
        disk = disks("no-udev", "loop")["/dev/loop0"]

        assert disk["probed"]
        assert [(part["number"], part["dev"], part["name"], part["start"], part["size"]) for part in disk["partitions"]] == [
            (1, None, "root fs", 1, 64),
            (2, None, None, 65, 100),
            (3, None, "esp", 165, 32),
        ]
        assert [(part["fs_type"], part["label"]) for part in disk["partitions"]] == [("ext4", "rootfs"), (None, None), (None, None)]
        assert content(disk) == [("/dev/loop0", "gpt"), ("/dev/loop0", "PMBR"), ("/dev/loop0#1", "ext4")]

    def test_a_pattern_for_what_is_left_out_says_so(self):
        hardware, warnings = facts("no-udev", devices=["/dev/loop*"])

        assert hardware["disks"] == []
        assert warnings == ("'/dev/loop*' of devices matches only disks that are left out; add loop to include",)


class TestMissingTools:
    def test_without_lsblk_sysfs_and_udev_tell_the_same(self):
        with_it = RecordedHost.load("vm-storage.json")
        hardware, warnings = facts(with_it.without_tools("lsblk"))

        assert hardware == facts(with_it)[0]
        assert len(warnings) == 1
        assert warnings[0].startswith("lsblk is missing")

    @pytest.mark.parametrize("tools", [("lsblk", "sfdisk", "udevadm"), ("lsblk", "udevadm"), ("sfdisk", "udevadm")], ids=", ".join)
    def test_the_kernel_and_blkid_tell_the_same(self, tools):
        host = RecordedHost.load("vm-storage.json")
        hardware, warnings = facts(host.without_tools(*tools))

        assert hardware == facts(host)[0]
        assert len(warnings) == len({"lsblk", "udevadm"} & set(tools))

    @pytest.mark.parametrize("tools", [("sfdisk",), ("lsblk", "sfdisk", "udevadm"), ("lsblk", "udevadm"), ("lsblk",)], ids=", ".join)
    def test_partitions_are_the_same_whoever_tells_of_them(self, tools):
        host = RecordedHost.load("no-udev-nodes.json")
        (disk,) = facts(host, "loop", devices=["/dev/loop*"])[0]["disks"]

        (other,) = facts(host.without_tools(*tools), "loop", devices=["/dev/loop*"])[0]["disks"]

        assert other == disk
        assert [(part["dev"], part["name"], part["fs_type"]) for part in disk["partitions"]] == [
            ("/dev/loop0p1", "root fs", "ext4"),
            ("/dev/loop0p2", None, None),
            ("/dev/loop0p3", "esp", None),
        ]

    def test_without_wipefs_nothing_is_called_empty(self):
        hardware, warnings = facts(RecordedHost.load("vm-fresh.json").without_tools("wipefs"))

        assert not any(disk["empty"] for disk in hardware["disks"])
        assert any("wipefs" in warning for warning in warnings)

    def test_with_nothing_at_all_there_are_facts_and_warnings(self):
        hardware, warnings = facts(RecordedHost({}))

        assert hardware == {"ram": None, "firmware": "bios", "disks": []}
        assert len(warnings) == 4

    @pytest.mark.parametrize("text", ["", "not JSON", "{}"])
    def test_an_lsblk_that_talks_nonsense(self, text):
        host = RecordedHost.load("vm-fresh.json")
        command = next(command for command in host.record["commands"] if command.startswith("lsblk --json"))

        hardware, warnings = facts(host.with_command(command, text))

        assert [disk["id"] for disk in hardware["disks"]] == [disk["id"] for disk in facts(host)[0]["disks"]]
        assert warnings[0].startswith("the output of lsblk cannot be used")

    @pytest.mark.parametrize("size", ["0", "3", "1099511627776"])
    def test_a_size_of_blocks_that_no_disk_has_is_unknown(self, size):
        host = RecordedHost.load("vm-fresh.json")
        command = next(command for command in host.record["commands"] if command.startswith("lsblk --json"))
        text = host.record["commands"][command]["stdout"]
        listed = re.sub(r'("(?:log|phy)-sec": *)[^,}\]]+', rf'\g<1>"{size}"', text)

        found = disks(host.with_command(command, listed))

        assert listed != text
        assert {(disk["logical_block"], disk["physical_block"]) for disk in found.values()} == {(512, 512)}

    @pytest.mark.parametrize(
        "text", ["not JSON", "{}", '{"partitiontable": {}}', '{"partitiontable": {"label": "gpt", "partitions": [{"node": "x"}]}}']
    )
    def test_an_sfdisk_that_talks_nonsense(self, text):
        hardware, warnings = facts(RecordedHost.load("vm-storage.json").with_command("sfdisk --json /dev/sda", text))

        assert any(warning.startswith("/dev/sda: the output of sfdisk cannot be used") for warning in warnings)
        assert [disk["table"] for disk in hardware["disks"] if disk["dev"] == "/dev/sda"] == ["gpt"]


class TestContainers:
    """Containers of other releases on the machine without udev: they see its devices, but not what it has mounted, and have no udevadm."""

    @pytest.mark.parametrize("record", ["container-2.36", "container-2.41"])
    def test_older_and_newer_tools_tell_the_same_as_those_of_the_machine(self, record):
        seen, outside = disks(record, "loop"), disks("no-udev-nodes", "loop")

        assert seen["/dev/loop0"] == outside["/dev/loop0"]
        assert {key: value for key, value in seen["/dev/vda"].items() if key not in ("content", "in_use", "mountpoints")} == {
            key: value for key, value in outside["/dev/vda"].items() if key not in ("content", "in_use", "mountpoints")
        }

    @pytest.mark.parametrize("record", ["container-2.36", "container-2.41"])
    def test_a_disk_of_the_machine_that_cannot_be_opened_is_not_called_empty(self, record):
        disk = disks(record)["/dev/vda"]

        assert (disk["probed"], disk["empty"], disk["content"]) == (False, False, [])

    @pytest.mark.parametrize("record", ["container-2.36", "container-2.41"])
    def test_only_udevadm_is_missing(self, record):
        first, *others = facts(record, "loop")[1]

        assert first.startswith("udevadm is missing")
        assert [warning for warning in others if "/dev/vda" not in warning] == []


class TestOptical:
    def test_a_medium_has_no_partition_table_to_look_for(self):
        files = {"/sys/class/block/sr0/size": "2048", "/sys/class/block/sr0/dev": "11:0", "/sys/class/block/sr0/removable": "1"}
        host = RecordedHost({"files": files, "directories": {"/sys/class/block": ["sr0"]}})
        host = host.with_command("wipefs --parsable /dev/sr0", "0x8001,2023-05-01,DEBIAN 12,iso9660\n0x1fe,,,dos\n")

        disk = disks(host, "optical")["/dev/sr0"]

        assert disks(host) == {}
        assert (disk["transport"], disk["removable"], disk["table"], disk["empty"]) == ("optical", True, None, False)
        assert content(disk) == [("/dev/sr0", "iso9660"), ("/dev/sr0", "dos")]
