# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sizes of file systems that begin with a boot sector of DOS: FAT, exFAT and NTFS, whose tools a host need not have."""

from __future__ import annotations

import struct

_FAT, _EXFAT, _NTFS = struct.Struct("<11xH6xH11xL"), struct.Struct("<72xQ28xB"), struct.Struct("<11xH27xQ")
BOOT_SECTORS = ("vfat", "exfat", "ntfs")
"""libblkid's words for them."""


def size_in_boot_sector(kind: str, sector: bytes) -> int:
    """Return the bytes of a file system as the first 512 of its device say. NTFS has its last sector behind what it counts."""
    if kind == "exfat":
        sectors, shift = _EXFAT.unpack_from(sector)
        return int(sectors) << int(shift)
    if kind == "ntfs":
        size, sectors = _NTFS.unpack_from(sector)
        return int(size) * (int(sectors) + 1)
    size, few, many = _FAT.unpack_from(sector)
    return int(size) * int(few or many)
