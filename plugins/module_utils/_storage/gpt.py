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
PREP = "9e1a2d38-c612-4316-aa26-8b49521e5a8b"
BASIC_DATA = "ebd0a0a2-b9e5-4433-87c0-68b6b72699c7"

DISCOVERABLE: Mapping[str, str] = {
    "home": "933ac7e1-2eb4-4f13-b844-0e14e2aef915",
    "linux-generic": LINUX,
    "root-arm": "69dad710-2ce4-4e3c-b16c-21a1d49abed3",
    "root-arm64": "b921b045-1df0-41c3-af44-4c6f280d3fae",
    "root-loongarch64": "77055800-792c-4f94-b39a-98c91b762bb6",
    "root-ppc64": "912ade1d-a839-4913-8964-a10eee08fbd2",
    "root-ppc64-le": "c31c45e6-3f39-412e-80fb-4809c4980599",
    "root-riscv32": "60d5a7fe-8e7d-435c-b714-3dd8162144e1",
    "root-riscv64": "72ec70a6-cf74-40e6-bd49-4bda08e8f224",
    "root-s390x": "5eead9a9-fe09-4a1e-a1d7-520d00531306",
    "root-x86": "44479540-f297-41b2-9af7-d131d5f0458a",
    "root-x86-64": "4f68bce3-e8cd-4db1-96e7-fbcaf984b709",
    "srv": "3b8f8425-20e0-4f3b-907f-1a25a76f98e8",
    "swap": SWAP,
    "tmp": "7ec6f557-3bc5-4aca-b293-16ef5df639d1",
    "user-home": "773f91ef-66d4-49b5-bd83-d683bf40ad16",
    "usr-arm": "7d0359a3-02b3-4f0a-865c-654403e70625",
    "usr-arm64": "b0e01050-ee5f-4390-949a-9101b17104e9",
    "usr-loongarch64": "e611c702-575c-4cbe-9a46-434fa0bf7e3f",
    "usr-ppc64-le": "15bb03af-77e7-4d4a-b12b-c0d084f7491c",
    "usr-riscv64": "beaec34b-8442-439b-a40b-984381ed097d",
    "usr-s390x": "8a4f5770-50aa-4ed3-874a-99b710db6fea",
    "usr-x86": "75250d76-8cc6-458e-bd66-bd47cc81a812",
    "usr-x86-64": "8484680c-9521-48c6-9c11-b0720656f69e",
    "var": "4d21b016-b534-45c2-a9fb-5c16e091fd2d",
    "xbootldr": "bc13c2ff-59e6-4262-a352-b275fd6f7172",
}
"""Types by the names of the UAPI Group's Discoverable Partitions Specification, as systemd-repart spells them."""

TYPES_BY_FLAG: Mapping[str, str] = {"bios_grub": BIOS_BOOT, "boot": ESP, "raid": RAID, "lvm": LVM}
"""Types of partitions by parted's flags."""
TYPES_OF_PREP = (PREP, "0x41")
"""PReP boot partitions of POWER, in tables of GPT and of DOS."""
LEGACY_BOOT = "legacy_boot"
"""The flag of a partition that a BIOS is to start from; it says nothing of the type."""
FLAGS_BY_TYPE: Mapping[str, str] = {guid: flag for flag, guid in TYPES_BY_FLAG.items()}

_LINK_FOLDERS = ("/dev/disk/by-", "/dev/mapper/")


_HEADER = struct.Struct("<8s4sII20x16x16s8xIII")
"""Signature, revision, size, checksum, and behind the places GUID, then number, size and checksum of the entries."""
_SIGNATURE = b"EFI PART"
_CHECKSUM = slice(16, 20)
_MOST_BYTES = 1024**2


NAME_PATTERN = rf'^\s*[^-"\s\x00-\x1f\x7f]([^"\x00-\x1f\x7f]{{0,{LONGEST_NAME - 2}}}[^"\s\x00-\x1f\x7f])?\s*$'
"""What why_no_name takes, between blanks, as a regular expression of JSON Schema, which does not know what else cannot be printed."""


def why_no_name(name: str) -> t.Optional[str]:
    """Return what stands against a name of a partition, and what would be right; None for nothing.

    sfdisk's scripts, by which partitions are made, have no way to write quotation marks.
    """
    if len(name.encode("utf-16-le", errors="replace")) // 2 > LONGEST_NAME:
        return f"{name!r} is too long; the name of a partition has at most {LONGEST_NAME} characters"
    if not name.isprintable() or '"' in name:
        return f"{name!r} has quotation marks, or what cannot be printed; leave them out"
    if name.startswith("-"):
        return f"{name!r} begins with a dash; begin with a letter or a digit"
    return None


def empty_table(sector: bytes) -> t.Optional[str]:
    """Return the GUID of a table without partitions of which this sector is the header, be it the first one or the backup; else None.

    Both checksums must match, so that a torn header counts as none. UEFI specification, 5.3.
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
