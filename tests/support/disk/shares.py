# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Spaces that may be cut in pieces, as arrays, and the fair plan for them as an array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fair.solve import allocate_fair
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import Hardware, Schema
from ansible_collections.bareon.allocator.tests.support.disk.build import hardware_of, schema_of
from numpy.typing import NDArray

NO_MAXIMUM = 2**63 - 1
UNPREFERRED = 127


@dataclass(frozen=True)
class Request:
    """S spaces and D disks; sizes are MiB."""

    low: NDArray[np.int64]
    """(S,) minimums."""
    high: NDArray[np.int64]
    """(S,) maximums, NO_MAXIMUM for none."""
    weight: NDArray[np.float64]
    """(S,)"""
    allowed: NDArray[np.bool_]
    """(S, D) where a space may lie."""
    tier: NDArray[np.int64]
    """(S, D) how much a space prefers a disk: 0 best, UNPREFERRED for disks that no query names; all 0 without a preference."""
    capacity: NDArray[np.int64]
    """(D,) MiB of each disk."""

    def models(self) -> tuple[Hardware, Schema]:
        """Return machine and schema: every space is an lv straight on the disks."""
        hardware = hardware_of(*self.capacity.tolist())
        return hardware, schema_of(hardware, *(self._entry(space) for space in range(len(self.low))))

    def _entry(self, space: int) -> dict:
        tiers = [np.flatnonzero(self.tier[space] == tier).tolist() for tier in sorted({*self.tier[space].tolist()} - {UNPREFERRED})]
        return {
            "id": f"s{space}",
            "type": "lv",
            "min_size": int(self.low[space]),
            "max_size": None if self.high[space] == NO_MAXIMUM else int(self.high[space]),
            "weight": float(self.weight[space]),
            "disks": [f"d{disk}" for disk in np.flatnonzero(self.allowed[space]).tolist()],
            "best_with_disks": [[f"d{disk}" for disk in tier] for tier in tiers] if self.tier[space].any() else [],
        }


def share(request: Request) -> NDArray[np.int64]:
    """Return (S, D) how much each space has of each disk. Raises NoSolution."""
    hardware, schema = request.models()
    sizes = np.zeros(request.allowed.shape, dtype=np.int64)
    for piece in allocate_fair(hardware, schema).pieces if len(request.low) else ():
        sizes[piece.space, piece.disk] += piece.size
    return sizes


def off_preferred(request: Request, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (S,) how much of each space lies on a disk that none of its preferences names, although some name others."""
    selective = ((request.tier < UNPREFERRED) & request.allowed).any(axis=1)
    off: NDArray[np.int64] = (sizes * (request.tier >= UNPREFERRED)).sum(axis=1) * selective
    return off
