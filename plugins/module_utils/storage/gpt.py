# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GUID partition tables: types of partitions, the room that the table takes, and what the nodes of partitions are called."""

from __future__ import annotations

import struct
import typing as t
import uuid
import zlib
from collections.abc import Mapping

HEAD = 1
"""MiB before the first partition: the table (34 sectors of 512 bytes, 6 of 4096) and the alignment."""
TAIL = 1
"""MiB behind the last one: the backup (33 sectors of 512 bytes, 5 of 4096), rounded up to the alignment."""
MOST_PARTITIONS = 128
LONGEST_NAME = 36
"""UTF-16 units of a partition's name."""

LINUX = "0fc63daf-8483-4772-8e79-3d69d8477de4"
SWAP = "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f"
ESP = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b"
BIOS_BOOT = "21686148-6449-6e6f-744e-656564454649"
RAID = "a19d880f-05fc-4d3b-a006-743f0f84911e"
LVM = "e6d6d379-f507-44c2-a23c-238f2a3df928"
LUKS = "ca7d7ccb-63ed-4c53-861c-1742536059cc"
BASIC_DATA = "ebd0a0a2-b9e5-4433-87c0-68b6b72699c7"

TYPES_BY_FLAG: Mapping[str, str] = {"bios_grub": BIOS_BOOT, "boot": ESP, "raid": RAID, "lvm": LVM}
"""Types of partitions by parted's flags."""
LEGACY_BOOT = "legacy_boot"
"""The flag of a partition that a BIOS is to start from; it says nothing of the type."""
FLAGS_BY_TYPE: Mapping[str, str] = {guid: flag for flag, guid in TYPES_BY_FLAG.items()}

_LINK_FOLDERS = ("/dev/disk/by-", "/dev/mapper/")


_HEADER = struct.Struct("<8s4sII20x16x16s8xIII")
"""Signature, revision, size, checksum, and behind the places GUID, then number, size and checksum of the entries."""
_SIGNATURE = b"EFI PART"
_CHECKSUM = slice(16, 20)
_MOST_BYTES = 1024**2


def empty_table(sector: bytes) -> t.Optional[str]:
    """Return the GUID of a table without partitions of which this sector is the header, be it the first one or the backup; else None.

    Both checksums are looked at, so that a header that was torn counts as none. UEFI specification, 5.3.
    """
    if len(sector) < _HEADER.size or not sector.startswith(_SIGNATURE):
        return None
    _signature, _revision, size, checksum, guid, number, entry, of_entries = _HEADER.unpack_from(sector)
    if not _HEADER.size <= size <= len(sector) or number * entry > _MOST_BYTES:
        return None
    header = bytearray(sector[:size])
    header[_CHECKSUM] = bytes(4)
    if zlib.crc32(header) != checksum or zlib.crc32(bytes(number * entry)) != of_entries:
        return None
    return str(uuid.UUID(bytes_le=guid))


def partition_node(disk: str, number: int) -> str:
    """Return the path of a partition: `-partN` for udev's links and device-mapper's nodes, `pN` after a digit (`nvme0n1`), else `N`."""
    if disk.startswith(_LINK_FOLDERS):
        return f"{disk}-part{number}"
    return f"{disk}p{number}" if disk[-1].isdigit() else f"{disk}{number}"
