# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Thin pools of LVM: what they keep for themselves. Whole MiB; chunks, in which a pool gives its room out, in KiB.

A pool takes its room for data, its metadata, and as much once more: LVM keeps a spare of the metadata, to repair them into.
"""

from __future__ import annotations

import re
import typing as t

LEAST_CHUNK, LARGEST_CHUNK = 64, 1024 * 1024
LEAST_METADATA, MOST_METADATA = 2, 16128
"""LVM's own bounds; dm-thin uses a little less than 16 GiB."""
_BYTES_OF_CHUNK = 64
_USUAL_METADATA = 128
"""MiB that LVM limits metadata to, by making chunks larger, unless their size is given."""
_PARTS = re.compile(r"(?:_t(?:data|meta)|-tpool|_pmspare)\Z")


def is_chunk(size: int) -> bool:
    """Return whether chunks may have `size` KiB: dm-thin takes multiples of 64."""
    return LEAST_CHUNK <= size <= LARGEST_CHUNK and size % LEAST_CHUNK == 0


def is_part(name: str) -> bool:
    """Return whether a volume of this name is a part of a pool that nobody uses by itself; LVM gives such names to nothing else."""
    return _PARTS.search(name) is not None


def metadata_of(size: int, chunk: int) -> int:
    """Return how many MiB of metadata a pool of `size` MiB needs: 64 bytes for each chunk."""
    chunks = -(-size * 1024 // chunk)
    return min(MOST_METADATA, max(LEAST_METADATA, -(-chunks * _BYTES_OF_CHUNK // 1024**2)))


class PoolParts(t.NamedTuple):
    """What the room of a pool is divided into; the metadata are there twice."""

    size: int
    metadata: int
    chunk: int


def divide(room: int, extent: int, chunk: t.Optional[int] = None, metadata: t.Optional[int] = None) -> PoolParts:
    """Return the parts of a pool that takes `room` MiB, whole extents, of its group; `chunk` and `metadata` where they are given.

    As LVM by itself, it doubles chunks until the metadata are at most 128 MiB, and at most what is given.
    """
    if chunk is None:
        chunk, most = LEAST_CHUNK, _USUAL_METADATA if metadata is None else min(_USUAL_METADATA, metadata)
        while chunk < LARGEST_CHUNK and metadata_of(room, chunk) > most:
            chunk *= 2
    kept = -(-(metadata_of(room, chunk) if metadata is None else metadata) // extent) * extent
    return PoolParts(max(0, room - 2 * kept), kept, chunk)


def room_for(size: int, extent: int, chunk: t.Optional[int] = None, metadata: t.Optional[int] = None) -> int:
    """Return the least MiB of its group that a pool takes in which `size` MiB are for data: what `divide` divides into as much or more."""
    wanted = -(-size // extent) * extent
    room = wanted
    while True:
        parts = divide(room, extent, chunk, metadata)
        if parts.size >= wanted:
            return room
        # Where LVM chooses the chunks, a little more room may have larger chunks, and so less metadata.
        room = room + extent if chunk is None and metadata is None else max(room + extent, wanted + 2 * parts.metadata)
