# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where samples of a device are taken: one costs a slow disk some milliseconds. What is longer than the room between two is met by one."""

from __future__ import annotations

from collections.abc import Iterator

from .units import MIB

SAMPLE = 4096
"""Bytes."""

_BETWEEN = 64
_GROUPS = (1, *(base**power for base in (3, 5, 7) for power in range(1, 12)))
"""The groups of ext that have copies of its superblock."""
_OF_BTRFS = (64 * MIB, 256 * 1024**3)


def spread(size: int, count: int) -> Iterator[int]:
    """Give the offsets of `count` samples, in bytes, spread evenly over a device of `size` bytes."""
    step = size // (count + 1) // SAMPLE * SAMPLE
    return (number * step for number in range(1, count + 1))


def between_ends(size: int) -> tuple[int, ...]:
    """Return the offsets of the samples that a run clears between the first and the last MiB of what becomes its own."""
    return tuple(place for place in spread(size, _BETWEEN) if MIB <= place <= size - MIB - SAMPLE)


def places_of_copies() -> Iterator[int]:
    """Give where ext, with blocks of 1, 2 and 4 KiB, and Btrfs have copies of their superblocks, in whole samples behind their begin."""
    for block in (1024, 2048, 4096):
        yield from (group * 8 * block * block for group in _GROUPS)
    yield from _OF_BTRFS
