# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Share disks among divisible spaces: feasible, preferences first, weighted max-min fair, exact in MiB.

Four steps, each on whole numbers only:

1. *Feasibility.* The minimums are a maximum flow from spaces to disks; the minimum cut is the proof when they do not fit.
2. *Preferences.* Of the minimums, as few MiB as possible lie off the preferred disks (worst tier first, then schema order).
3. *Sizes.* First the spaces with a preference grow, on their preferred disks only; then the others, on all that is left.
   Both times `T = clamp(level * weight, low, high)` with the highest level that fits: progressive filling of a polymatroid
   (Megiddo 1974: lexicographically optimal flows), see `levels`.
4. *Layout.* Totals are laid on disks in few pieces, see `layout_pieces`.

Source of the formulation: the analysis of the seed's program; its semantics of clamped shares are systemd-repart's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

NO_MAXIMUM = int(np.iinfo(np.int64).max)
UNPREFERRED = 127


@dataclass(frozen=True)
class Request:
    """S divisible spaces and D disks; sizes are whole units (MiB, or extents when all of them are).

    Spaces are in schema order and disks in their stable order: both decide ties.
    """

    low: IntArray
    """(S,) minimums."""
    high: IntArray
    """(S,) maximums, NO_MAXIMUM for none."""
    weight: NDArray[np.float64]
    """(S,) share of what is left; 0 never grows."""
    allowed: BoolArray
    """(S, D) where a space may lie."""
    tier: IntArray
    """(S, D) how much a space likes a disk: 0 best, 1 next ..., UNPREFERRED for disks no query of the space names.

    All 0 for a space without a preference.
    """
    capacity: IntArray
    """(D,) what the spaces may use of each disk."""


class Infeasible(Exception):
    """The minimums do not fit; the minimum cut proves it.

    `spaces` (positions) may lie on no other disks than `disks` (positions) and need `need`, but these hold `room`.
    """

    def __init__(self, spaces: tuple[int, ...], disks: tuple[int, ...], need: int, room: int) -> None:
        super().__init__(f"{len(spaces)} spaces need {need} MiB on {len(disks)} disks that hold {room} MiB")
        self.spaces = spaces
        self.disks = disks
        self.need = need
        self.room = room
        self.short = need - room
