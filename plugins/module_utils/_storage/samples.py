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


def spread(size: int, count: int) -> Iterator[int]:
    """Give the offsets of `count` samples, in bytes, spread evenly over a device of `size` bytes."""
    step = size // (count + 1) // SAMPLE * SAMPLE
    return (number * step for number in range(1, count + 1))


def between_ends(size: int) -> tuple[int, ...]:
    """Return the offsets of the samples that a run clears between the first and the last MiB of what becomes its own."""
    return tuple(place for place in spread(size, _BETWEEN) if MIB <= place <= size - MIB - SAMPLE)
