# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Identities that follow from disks, spaces and salts."""

from __future__ import annotations

import uuid

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.derived import (
    host_salt,
    partition_uuid,
    salt_of_table,
    table_uuid,
)
from ansible_collections.bareon.allocator.plugins.module_utils._storage.identity import is_lasting

DISK = "/dev/disk/by-path/pci-0000:00:05.0-scsi-0:0:0:1"


def test_identities_without_a_salt_are_those_of_before():
    # Layouts on disks have these: they must never change.
    assert table_uuid("/dev/disk/by-id/wwn-0x5000c500a1b2c3d4") == "3d2760e1-a8be-5b29-8261-75d01aa1f70d"
    assert partition_uuid("/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", "os/1") == "11c833f4-c1eb-50d2-8178-6f12d6dde291"


def test_the_guid_of_a_table_carries_the_salt_and_proves_it():
    salt = host_salt("4c4c4544-0042-3510-8056-b8c04f4d3332", "3d1219c7c4c5404aaa1f6d2a48adfda4")
    guid = table_uuid(DISK, salt)
    assert len(salt) == 12
    assert guid.replace("-", "").startswith(salt)
    assert (uuid.UUID(guid).version, uuid.UUID(guid).variant) == (8, uuid.RFC_4122)
    assert salt_of_table(DISK, guid) == salt_of_table(DISK, guid.upper()) == salt
    assert salt_of_table(DISK, table_uuid(DISK)) == ""
    assert salt_of_table(f"{DISK}9", guid) is None


@pytest.mark.parametrize("guid", [None, "", "x", "0x1234abcd", "11111111-2222-4333-8444-555555555555", "\u0661" * 36, "zzzzzzzz" * 4])
def test_another_table_is_not_ours(guid):
    assert salt_of_table(DISK, guid) is None


FIRMWARE = ("4c4c4544-0042-3510-8056-b8c04f4d3332", "4c4c4544-0042-3510-8056-b8c04f4d3333")
MACHINE = ("3d1219c7c4c5404aaa1f6d2a48adfda4", "8a2f0c6f6f1b4d3b9d0c5f6a7b8c9d0e")
BOOT = ("9119c0f5-608d-49f7-bd2e-64c8e1c741a9", "b7c2a0de-5c1f-4a67-8f2c-0d9e8b7a6c5d")


def test_hosts_differ_and_a_host_without_identities_has_no_salt():
    salts = {host_salt(firmware, machine) for firmware in (*FIRMWARE, None) for machine in (*MACHINE, None)}
    assert len(salts) == 9
    assert host_salt(None, "") == ""
    one, other = (partition_uuid(DISK, "os/1", host_salt(firmware, None)) for firmware in FIRMWARE)
    assert len({one, other, partition_uuid(DISK, "os/1")}) == 3


def test_a_host_keeps_its_salt_over_a_start():
    assert host_salt(FIRMWARE[0], MACHINE[0], BOOT[0]) == host_salt(f"{FIRMWARE[0].upper()}\n", MACHINE[0], BOOT[1])


@pytest.mark.parametrize(
    "placeholder",
    [
        None,
        "",
        "Not Settable",
        "To Be Filled By O.E.M.",
        "03000200-0400-0500-0006-000700080009",
        "00020003-0004-0005-0006-000700080009",
        "00000000-0000-0000-0000-000000000000",
        "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        "FEFEFEFE-FEFE-FEFE-FEFE-FEFEFEFEFEFE",
        "11111111-1111-1111-1111-111111111111",
        "00010203-0405-0607-0809-0A0B0C0D0E0F",
        "12345678-1234-5678-90AB-CDDEEFAABBCC",
        "DEADBEEF-DEAD-BEEF-DEAD-BEEFDEADBEEF",
    ],
)
def test_hosts_that_share_a_placeholder_and_an_image_differ(placeholder):
    one, other = (host_salt(placeholder, MACHINE[0], boot) for boot in BOOT)
    assert len(one) == 12
    assert one != other
    assert host_salt(placeholder, "uninitialized") == ""


@pytest.mark.parametrize(
    ("name", "lasts"),
    [
        ("/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", True),
        ("/dev/disk/by-id/wwn-0x0000000000000000", False),
        ("/dev/disk/by-id/nvme-eui.0025385b71b00001", True),
        ("/dev/disk/by-id/nvme-SAMSUNG_MZVLB1T0HBLR-000L7_S4EMNX0R123456", True),
        ("/dev/disk/by-id/scsi-3600140512345678", True),
        ("/dev/disk/by-id/ata-WDC_WD40EFRX-68N32N0_WD-WCC7K0123456", True),
        ("/dev/disk/by-id/virtio-2f4e1e0a-6d1b-4a3b-9", True),
        ("/dev/disk/by-id/virtio-disk0", False),
        ("/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_drive-scsi1", False),
        ("/dev/disk/by-id/scsi-0Google_PersistentDisk_persistent-disk-0", False),
        ("/dev/disk/by-id/ata-QEMU_HARDDISK_QM00001", False),
        ("/dev/disk/by-id/usb-Generic_Flash_Disk_0123456789-0:0", False),
        ("/dev/disk/by-id/wwn-0xffffffffffffffff", False),
        ("/dev/disk/by-id/nvme-eui.0000000000000000", False),
        ("/dev/disk/by-id/nvme-uuid.11111111-1111-1111-1111-111111111111", False),
        ("/dev/disk/by-id/nvme-uuid.2f4e1e0a-6d1b-4a3b-9c1d-0a1b2c3d4e5f", True),
        ("/dev/disk/by-id/nvme-nvme.1b36-6465616462656566-51454d55204e564d65204374726c-00000001", False),
        ("/dev/disk/by-id/nvme-nvme.144d-533445-53414d53554e47-00000001", True),
        ("/dev/disk/by-id/nvme-SAMSUNG_MZVLB1T0HBLR-000L7_S4EMNX0R123456_1", True),
        ("/dev/disk/by-id/mmc-SD_0x00000000", False),
        ("/dev/disk/by-id/mmc-SD32G_0x1a2b3c4d", True),
        ("/dev/disk/by-id/ata-Generic_0123456789ABCDEF", False),
        ("/dev/disk/by-id/dm-uuid-mpath-35000c500a1b2c3d4", True),
        ("/dev/disk/by-id/dm-uuid-mpath-0QEMU_QEMU_HARDDISK_drive-scsi1", False),
        (DISK, False),
        ("/dev/vdb", False),
    ],
)
def test_which_ids_one_disk_in_the_world_has(name, lasts):
    assert is_lasting(name) is lasts
