# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Detects a torn ext4 superblock, as a power cut during its write leaves it: one half is old, the other new.

The halves are sectors, so that magic, UUID and geometry, all in the first of them, are whole; its checksum is not. A backup that
is whole says which file system it belongs to.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._storage.ext4 import OFFSET, SIZE, Superblock, parse_superblock
from .host import Host


@dataclass(frozen=True)
class Torn:
    """An ext4 whose first superblock is torn, and the `block` (of `block_size` bytes) with a whole copy."""

    uuid: str
    label: str
    block: int
    block_size: int


def find_torn(host: Host, device: str, size: int) -> t.Optional[Torn]:
    """Return the facts of an ext4 whose first superblock is torn while a backup is whole; None for all other devices."""
    try:
        first = parse_superblock(host.read_bytes(device, OFFSET, SIZE))
        if first is None or first.whole:
            return None
        return next((Torn(first.uuid, first.label, block, first.block_size) for block in _whole_copies(host, device, size, first)), None)
    except OSError:
        return None


def _whole_copies(host: Host, device: str, size: int, first: Superblock) -> t.Iterator[int]:
    """Give the blocks that have a whole copy of this very superblock."""
    step = first.block_size
    for group, block in first.copies():
        if (block + 1) * step > size:
            return
        copy = parse_superblock(host.read_bytes(device, block * step, SIZE))
        same = copy is not None and (copy.uuid, copy.group, copy.block_size) == (first.uuid, group, step)
        if copy is not None and same and copy.whole and copy.blocks * step <= size:
            yield block
