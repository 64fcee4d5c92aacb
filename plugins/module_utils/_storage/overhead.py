# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What partition tables, LVM, md, LUKS and FAT keep for themselves. Whole MiB, always rounded so that a plan fits."""

from __future__ import annotations

import math
import typing as t

from . import gpt
from .filesystems import SECTOR, least_size, read_make_options
from .lvm import PV_HEAD

LUKS_HEAD = 16
"""The header of LUKS2 with its keyslots area, as `cryptsetup luksFormat` makes it by default."""
BIOS_GRUB = 1
"""Enough for GRUB's core image."""
ESP_DEFAULT = 512
"""An ESP for which nobody asked a size."""

MD_CHUNK = 512
"""mdadm's default, in KiB; a stripe is a chunk of every leg of data."""
_MD_HEADROOM = 128
_MD_TAIL = 1
_FAT32_CLUSTERS = 65525
_KIB_OF_MIB = 1024


def usable(size: int) -> int:
    """Return how many MiB of partitions a disk of `size` MiB holds."""
    return max(0, size - gpt.HEAD - gpt.TAIL)


def pv_head(encrypted: bool) -> int:
    """Return how many MiB of a partition come before the first extent; an encrypted PV lies in LUKS."""
    return PV_HEAD + (LUKS_HEAD if encrypted else 0)


def array_pv_head(data: int, encrypted: bool) -> int:
    """Return how many MiB of an array with `data` legs of data come before the first extent, parts of a MiB counted as whole ones.

    Data begin at a multiple of the stripe, in LVM and in LUKS, unless whole stripes make a MiB, where both begin anyway
    (`md_chunk_alignment` and `data_alignment_detection` in lvm.conf; `device_topology_alignment` in cryptsetup).
    """
    alignment = array_alignment(data)
    header = math.ceil(LUKS_HEAD * _KIB_OF_MIB / alignment) * alignment if encrypted else 0
    return math.ceil((header + alignment) / _KIB_OF_MIB)


def array_alignment(data: int) -> int:
    """Return to how many KiB LVM and LUKS align what they keep on an array with `data` legs of data."""
    stripe = data * MD_CHUNK
    return stripe if _KIB_OF_MIB % stripe else _KIB_OF_MIB


def md_reserve(leg: int, metadata: str, data: int) -> int:
    """Return how many MiB of a leg of `leg` MiB md keeps for superblock, bitmap and reshaping; `data` legs are for data.

    Metadata 1.2 lies before the data: mdadm halves a headroom of 128 MiB until it is at most 1/1024 of the device and
    rounds up to the next MiB with superblock and bitmap (`super1.c`). Levels with chunks, all but mirrors with their one leg
    of data, keep a MiB of headroom at least. 1.0 lies at the end and needs some KiB only.
    """
    if metadata == "1.0":
        return _MD_TAIL
    least = 0 if data == 1 else 1
    headroom = _MD_HEADROOM
    while headroom > least and headroom * _KIB_OF_MIB > leg:
        headroom //= 2
    return headroom + 1


def least_device(fs_type: t.Optional[str], encrypted: bool, options: str = "", sector: int = SECTOR) -> int:
    """Return how many MiB a device has at least that holds a file system, or one MiB of whatever else, within LUKS if that is asked for.

    `options` are those of its program, `sector` are the bytes of a logical sector.
    """
    words = read_make_options(fs_type, options)[0] if fs_type and options else ()
    return (least_size(fs_type, words, sector) if fs_type else 1) + (LUKS_HEAD if encrypted else 0)


def least_array(content: int, metadata: str, data: int) -> int:
    """Return the least capacity of the legs of an array, `data` of them for data, which hold `content` MiB and md's metadata."""
    leg = 1
    while data * (leg - md_reserve(leg, metadata, data)) < content:
        leg += 1
    return data * leg


def md_metadata(boot: bool) -> str:
    """Return the md metadata version: what the firmware must be able to read has its superblock at the end (1.0)."""
    return "1.0" if boot else "1.2"


def esp_minimum(logical_block: int) -> int:
    """Return the least size of an ESP: FAT32 needs 65525 clusters of at least one sector, and some room for its tables.

    That is 33 MiB with sectors of 512 bytes and 260 MiB with 4096, where 257 would do for mkfs.vfat; firmware and other systems
    ask for 260.
    """
    clusters = _FAT32_CLUSTERS * logical_block / 1024**2
    tables = 1 if logical_block < 4096 else 4
    return math.ceil(clusters) + tables
