# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the superblock of an ext4 is torn, as a power cut leaves it that comes while the kernel writes it: one half is of before.

The halves are sectors, so that magic, UUID and geometry, all in the first of them, are whole; its checksum is not. A copy of it that is
whole says of which file system it is.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ..storage.ext4 import OFFSET, SIZE, Superblock, parse_superblock
from .host import Host

_PLACES = slice(0, 12)
"""Of a descriptor: where the bitmaps and the inodes of a group lie, which never changes and is never zero."""


@dataclass(frozen=True)
class Torn:
    """An ext4 whose first superblock is torn, and the `block` (of `block_size` bytes) with a whole copy of it."""

    uuid: str
    label: str
    block: int
    block_size: int


def find_torn(host: Host, device: str, size: int) -> t.Optional[Torn]:
    """Return what there is of an ext4 whose first superblock is torn, if a copy of it is whole; None for all else."""
    try:
        first = parse_superblock(host.read_bytes(device, OFFSET, SIZE))
        if first is None or first.whole:
            return None
        return next((Torn(first.uuid, first.label, block, first.block_size) for block in _whole_copies(host, device, size, first)), None)
    except OSError:
        return None


def _whole_copies(host: Host, device: str, size: int, first: Superblock) -> t.Iterator[int]:
    """Give the blocks that have a whole copy of this very superblock, with the descriptors of all of its groups behind it."""
    step = first.block_size
    places = host.read_bytes(device, (first.first_block + 1) * step, _PLACES.stop)
    for group, block in first.copies():
        if (block + 2) * step > size:
            return
        copy = parse_superblock(host.read_bytes(device, block * step, SIZE))
        if copy is None or not copy.whole or (copy.uuid, copy.group, copy.block_size) != (first.uuid, group, step):
            continue
        # What is being grown may have a copy that counts groups whose descriptors are not written yet.
        found = host.read_bytes(device, (block + 1) * step, copy.groups * copy.descriptor) if copy.blocks * step <= size else b""
        descriptors = [found[at : at + copy.descriptor][_PLACES] for at in range(0, len(found), copy.descriptor)]
        if descriptors[:1] == [places] and all(map(any, descriptors)):
            yield block
