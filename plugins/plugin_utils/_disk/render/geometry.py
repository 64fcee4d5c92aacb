# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How sizes become lengths: true to scale, yet nothing that is there becomes invisible."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SMALLEST_LEGIBLE = 1 / 5
"""A disk that is a smaller part of the largest one is drawn to scale and next to that magnified."""


@dataclass(frozen=True)
class Label:
    """A text that stands below a bar: it starts (or, `leftward`, ends) where its leader line comes down."""

    at: float
    width: float
    leftward: bool = False

    @property
    def start(self) -> float:
        """Left end of the text."""
        return self.at - self.width if self.leftward else self.at

    @property
    def end(self) -> float:
        """Right end of the text."""
        return self.at if self.leftward else self.at + self.width


def lengths(sizes: Sequence[float], whole: float, length: float, smallest: float) -> list[float]:
    """Return the length of each size on a line of `length` that stands for `whole`.

    Lengths are proportional. A size above zero is at least `smallest` long as far as there is room; what that takes, the
    longer ones give up in proportion, so that the sum is that of the proportional lengths.
    """
    wanted = [size / whole * length if whole > 0 else 0.0 for size in sizes]
    there = [index for index, size in enumerate(sizes) if size > 0]
    room = sum(wanted)
    smallest = min(smallest, room / len(there)) if there else 0.0
    lifted: set[int] = set()
    while True:
        rest = [index for index in there if index not in lifted]
        factor = (room - smallest * len(lifted)) / (sum(wanted[index] for index in rest) or 1.0)
        more = {index for index in rest if wanted[index] * factor < smallest}
        if not more:
            break
        lifted |= more
    return [0.0 if index not in there else smallest if index in lifted else wanted[index] * factor for index in range(len(sizes))]


def rows_of_labels(labels: Sequence[Label], most: int, gap: float) -> list[int | None]:
    """Return the row of each label below a bar (0 is nearest), None where `most` rows have no room.

    No text overlaps another, and no leader line crosses a text. Taken from the right, texts that run to the right never
    meet the leader lines of later ones; texts that run to the left are placed before, from the left.
    """
    rows: list[int | None] = [None] * len(labels)
    leftward = sorted((index for index, label in enumerate(labels) if label.leftward), key=lambda index: labels[index].at)
    rightward = sorted((index for index, label in enumerate(labels) if not label.leftward), key=lambda index: -labels[index].at)
    placed: list[tuple[Label, int]] = []
    for index in [*leftward, *rightward]:
        row = next((row for row in range(most) if _fits(labels[index], row, placed, gap)), None)
        if row is not None:
            rows[index] = row
            placed.append((labels[index], row))
    return rows


def _fits(label: Label, row: int, placed: Sequence[tuple[Label, int]], gap: float) -> bool:
    for other, other_row in placed:
        meets_text = other_row == row and label.start - gap < other.end and other.start < label.end + gap
        meets_leader = other_row > row and label.start < other.at < label.end
        leader_meets_text = other_row < row and other.start < label.at < other.end
        if meets_text or meets_leader or leader_meets_text:
            return False
    return True


def text_width(text: str, font_size: float) -> float:
    """Return about how wide a text is in a proportional sans-serif font; of common ones the widest, DejaVu Sans, is the measure."""
    return font_size * sum(_width(character) for character in text)


def _width(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    if character in " .,:;|!'()[]/il-tjf":
        return 0.37
    if character in "mwMW@%…×":
        return 0.95
    return 0.72 if character.isupper() else 0.63


COLOURS = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00")
TEXT_ON_COLOUR = "#15181c"
PATTERNS = ("plain", "stripes", "dots", "grid")

_USUAL = {"root": 0, "log": 1, "esp": 2, "efi": 2, "bios_grub": 7, "swap": 3, "boot": 4, "var": 5, "home": 6, "data": 7}
"""Spaces that most schemas have and that lie side by side: they choose first, and differ well from their neighbours."""


@dataclass(frozen=True)
class Paint:
    """A colour (`#rrggbb`) and the pattern laid over it, which distinguishes spaces of one colour."""

    colour: str
    pattern: str


def paints(space_ids: Iterable[str]) -> dict[str, Paint]:
    """Return a paint for every space: the one that its id always prefers, or the next that is free among these spaces."""
    chosen: dict[str, Paint] = {}
    taken: set[int] = set()
    ids = list(dict.fromkeys(space_ids))
    for space_id in sorted(ids, key=lambda space_id: space_id not in _USUAL):
        slot = _free_slot(_preferred(space_id), taken)
        taken.add(slot)
        chosen[space_id] = Paint(COLOURS[slot % len(COLOURS)], PATTERNS[slot // len(COLOURS) % len(PATTERNS)])
    return {space_id: chosen[space_id] for space_id in ids}


def _preferred(space_id: str) -> int:
    if space_id in _USUAL:
        return _USUAL[space_id]
    return hashlib.blake2b(space_id.encode(), digest_size=1).digest()[0] % len(COLOURS)


def _free_slot(preferred: int, taken: set[int]) -> int:
    round_start = 0
    while True:
        for step in range(len(COLOURS)):
            slot = round_start + (preferred + step) % len(COLOURS)
            if slot not in taken:
                return slot
        round_start += len(COLOURS)
