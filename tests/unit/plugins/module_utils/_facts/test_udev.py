# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.module_utils._facts import udev
from ansible_collections.bareon.allocator.tests.support.host.recorded_host import DATA, RecordedHost


def test_recorded_properties_become_rows():
    rows = udev.parse_rows((DATA / "udevadm-info.txt").read_text(encoding="utf-8"))

    assert sorted(rows) == ["nvme0n1", "sda", "sdb", "vdb", "vdc"]
    sda = rows["sda"]
    assert (sda["vendor"], sda["model"], sda["rev"], sda["serial"], sda["wwn"]) == (
        "SEAGATE",
        "ST4000NM",
        "2.5+",
        "HDD0001",
        "0x5000c500a1b2c3d4",
    )
    assert sda["id-path"] == "pci-0000:00:06.0-scsi-0:0:0:0"
    assert rows["vdb"]["serial"] == "VIRTIO-A"
    assert rows["vdb"]["wwn"] is None
    assert rows["nvme0n1"]["serial"] == "NVME0001"
    assert rows["nvme0n1"]["wwn"].startswith("nvme.1b36-")


def test_encoded_names_are_decoded_and_preferred():
    properties = (
        "DEVNAME=/dev/sdx",
        "SUBSYSTEM=block",
        "ID_MODEL=Samsung_SSD_860",
        r"ID_MODEL_ENC=Samsung\x20SSD\x20860\x20\x20",
        "ID_BUS=usb",
    )
    text = "".join(f"E: {line}\n" for line in properties)

    row = udev.parse_rows(text)["sdx"]

    assert row["model"] == "Samsung SSD 860"
    assert row["tran"] == "usb"


def test_a_partition_and_its_filesystem():
    text = r"""
N: sda1
E: DEVNAME=/dev/sda1
E: SUBSYSTEM=block
E: ID_PART_ENTRY_NUMBER=1
E: ID_PART_ENTRY_NAME=EFI\x20System
E: ID_PART_ENTRY_UUID=4274f292-0822-4970-9687-8010da4bdf51
E: ID_PART_ENTRY_TYPE=c12a7328-f81f-11d2-ba4b-00a0c93ec93b
E: ID_FS_TYPE=vfat
E: ID_FS_UUID=70B7-8465
E: ID_FS_LABEL_ENC=E\x2fSP
"""

    row = udev.parse_rows(text)["sda1"]

    assert (row["partn"], row["partlabel"], row["fstype"], row["uuid"], row["label"]) == (1, "EFI System", "vfat", "70B7-8465", "E/SP")


def test_other_subsystems_are_none_of_our_business():
    assert udev.parse_rows("E: DEVNAME=/dev/tty0\nE: SUBSYSTEM=tty\n\nE: DEVPATH=/module/ext4\nE: SUBSYSTEM=module\n") == {}


def test_links_by_kernel_name_with_slashes_and_dangling_links():
    host = RecordedHost(
        {
            "directories": {"/dev/disk/by-id": ["cciss-3600", "dangling", "wwn-0x1"], "/dev/disk/by-path": ["pci-0000:00:01.0"]},
            "links": {
                "/dev/disk/by-id/cciss-3600": "/dev/cciss/c0d0",
                "/dev/disk/by-id/wwn-0x1": "/dev/sda",
                "/dev/disk/by-path/pci-0000:00:01.0": "/dev/sda",
            },
        }
    )

    assert udev.read_links(host) == {
        "cciss/c0d0": ("/dev/disk/by-id/cciss-3600",),
        "sda": ("/dev/disk/by-id/wwn-0x1", "/dev/disk/by-path/pci-0000:00:01.0"),
    }


def test_no_links_in_a_container_without_udev():
    assert udev.read_links(RecordedHost({})) == {}
