# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which instances promise most: what the best move of each gained when it was evaluated last."""

from __future__ import annotations

from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Floats, Integers
from ..neighbourhood.moves import BestMoves


@dataclass(frozen=True)
class MoveQueue:
    """What the best move of each instance gained when it was evaluated last; changed in place."""

    gains: Floats
    """[I]: -inf for an instance that has no move or is left out."""
    targets: Integers
    """[I]: where that move went, or NOWHERE."""

    @classmethod
    def of(cls, best: BestMoves, cost: float, instances: int) -> MoveQueue:
        """Return the queue of moves found from a placement of that cost, for a number of instances."""
        queue = cls(np.full(instances, -np.inf), np.full(instances, NOWHERE))
        queue.record(best, cost)
        return queue

    @property
    def promise(self) -> float:
        """Return the most that any move promises; -inf without any."""
        return float(self.gains.max(initial=-np.inf))

    def next(self, least: float, most: int) -> Integers:
        """Return the instances that promise most, `most` at most, in their order, without those that promise less than `least`."""
        size = len(self.gains)
        first = np.argpartition(-self.gains, most)[:most] if most < size else np.arange(size)
        worthy: Integers = np.sort(first[self.gains[first] >= least])
        return worthy

    def record(self, best: BestMoves, cost: float) -> None:
        """Record the best moves that were found at a placement of that cost."""
        self.gains[best.instances] = cost - best.cost
        self.targets[best.instances] = best.target

    def drop(self, instances: Integers | int) -> None:
        """Do not look at instances any more."""
        self.gains[instances] = -np.inf
