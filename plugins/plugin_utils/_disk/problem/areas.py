# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The room of a machine: what is free of each disk, in the order that decides ties."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from ....module_utils._storage import gpt
from ..existing import is_used
from ..model import Disk, Hardware, Schema
from .kept import Kept
from .model import Area


def canonical_order(disks: Sequence[Disk]) -> list[int]:
    """Return the positions of the disks in the order that decides ties: by path of attachment, else by id; never by sdX.

    Digits count as numbers, so that the tenth port comes after the second.
    """
    paths = [_natural(disk.path) for disk in disks]
    # Paths are the same from machine to machine, ids are not, so that each would be taken apart for this once.
    decided = len(set(paths)) == len(paths)
    return sorted(range(len(disks)), key=lambda position: (paths[position], () if decided else _natural(disks[position].id)))


def areas_of(hardware: Hardware, schema: Schema, kept: Kept, reserve: int) -> Iterable[Area]:
    """Give what is free between the tables of each disk and what is kept on it; the last `reserve` MiB of each disk stay free."""
    head, tail = (0, 0) if schema.flat else (gpt.HEAD, gpt.TAIL)
    # Where two disks are equal to a space, it lies on the first of them: one that nothing is on.
    for position in sorted(canonical_order(hardware.disks), key=lambda position: is_used(hardware.disks[position])):
        start, gaps = head, []
        for piece in sorted((piece for piece in kept.pieces if piece.disk == position), key=lambda piece: piece.start or 0):
            begin = piece.start or 0
            gaps.append((start, begin - start))
            start = max(start, begin + piece.size)
        gaps.append((start, hardware.disks[position].size - tail - start))
        yield from (Area(position, begin, size) for begin, size in _less(gaps, reserve) if size > 0)


def _less(gaps: Sequence[tuple[int, int]], reserve: int) -> list[tuple[int, int]]:
    # What is to stay free is taken from the end of the disk.
    left, result = reserve, []
    for begin, size in reversed(gaps):
        taken = min(left, max(size, 0))
        left -= taken
        result.append((begin, size - taken))
    return result[::-1]


@functools.lru_cache(maxsize=4096)
def _natural(text: str) -> tuple[tuple[int, int, str], ...]:
    # Compared by their length and then as text, numbers of any length are in their order without being made into numbers.
    numbers_and_words = [(number.lstrip("0"), word) for number, word in re.findall(r"([0-9]+)|([^0-9]+)", text)]
    return tuple((1, 0, word) if word else (0, len(number), number) for number, word in numbers_and_words)
