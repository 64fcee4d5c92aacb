# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""LVM: the extents that groups are made with, and what the nodes of volumes are called."""

from __future__ import annotations

EXTENT = 4
"""LVM's default extent, in MiB."""
LARGEST_EXTENT = 16 * 1024
PV_HEAD = 1
"""MiB before the first extent of a PV (`pe_start` of a default `pvcreate`)."""


def pv_extents(size: int, head: int = PV_HEAD, extent: int = EXTENT) -> int:
    """Return how many extents a PV of `size` MiB gives when `head` MiB come before the first one."""
    return max(0, (size - head) // extent)


def is_extent(size: int) -> bool:
    """Return whether extents may have so many MiB: LVM takes powers of two."""
    return 0 < size <= LARGEST_EXTENT and size & (size - 1) == 0


def mapper_node(group: str, name: str) -> str:
    """Return the device-mapper node of a logical volume; dashes of names are doubled."""
    return f"/dev/mapper/{group.replace('-', '--')}-{name.replace('-', '--')}"
