# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Colours of spaces: told apart by everybody, readable under dark text, and the same for a space wherever it is drawn.

The colours are the "light" qualitative scheme of Paul Tol, "Colour Schemes", technical note SRON/EPS/TN/09-002, which is
made for labelled areas and checked against the colour-vision deficiencies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

COLOURS = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00")
TEXT_ON_COLOUR = "#15181c"
PATTERNS = ("plain", "stripes", "dots", "grid")

_USUAL = {"root": 0, "log": 1, "esp": 2, "efi": 2, "bios_grub": 7, "swap": 3, "boot": 4, "var": 5, "home": 6, "data": 7}
"""Spaces that most schemas have and that lie side by side: they choose first, and differ well from their neighbours."""


@dataclass(frozen=True)
class Paint:
    """A colour (`#rrggbb`) and the pattern laid over it, which tells spaces of one colour apart."""

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
