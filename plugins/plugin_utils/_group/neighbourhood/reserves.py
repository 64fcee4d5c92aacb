# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The score's part for memory that nodes keep for failovers, after every single move of a mirrored block.

A move changes what at most two nodes keep. Both its spread and its sum are relative to the nodes' memory, so that the
same change serves both. With x and y as the changes of two nodes' values, c their centred values, n times the variance is
Q + x(x + 2 c_x) + y(y + 2 c_y) - (x + y)^2 / n, as in spreads.py.
"""

from __future__ import annotations

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Floats, Integers, Singles
from ..cluster.moves import MoveKind
from ..cluster.state import ClusterState
from ..metrics.score import WEIGHTS, Scorer, centred_values
from .effects import KEEPER, Node
from .targets import Block, KeptMemory, Targets


class MovedReserves:
    """Reserved memory of one state; `still` is the score's part for it without any move."""

    def __init__(self, state: ClusterState, scorer: Scorer, targets: Targets) -> None:
        self._kept = state.reserved
        self._rate = scorer.memory_rate * scorer.reserving
        self._targets = targets.nodes
        values = state.reserved * self._rate
        self._centred, self._squares, count = centred_values(values, scorer.reserving)
        self._count = max(count, 1)
        self._total = WEIGHTS["reserved_mem_rtotal"] * float(values.sum())
        self.still = self._total + WEIGHTS["reserved_mem_cv"] * float(np.sqrt(self._squares / self._count))

    def after(self, block: Block, kept: KeptMemory) -> dict[MoveKind, Floats]:
        """Return the score's part after each kind of move of a mirrored block."""
        s = block.secondary[:, None]
        left = (kept.without - self._kept[s]) * self._rate[s]
        without = self._squares + left * (left + 2 * self._centred[s])
        none, squares = np.zeros((1, 1)), np.full((1, 1), self._squares)
        nodes = {Node.P: block.primary[:, None], Node.S: s, Node.T: self._targets}
        found = {}
        for kind in block.kinds:
            keeper = KEEPER[kind]
            others = (none, squares) if keeper[0] == Node.S else (left, without)
            found[kind] = self._scores(nodes[keeper[0]], kept.at(*keeper), *others)
        return found

    def exchanged(self, kept: Singles, kept_there: Singles, nodes: Integers, nodes_there: Integers) -> Singles:
        """Return [R, C]: the change of the score's part when `nodes` [R] keep `kept` and `nodes_there` [C] keep `kept_there`, [R, C] each.

        Nodes that are NOWHERE do not count. Estimates in single precision.
        """
        precision = np.float32
        one = kept - self._kept[nodes].astype(precision)[:, None]
        one *= (self._rate[nodes] * (nodes != NOWHERE))[:, None].astype(precision)
        other = kept_there - self._kept[nodes_there].astype(precision)
        other *= (self._rate[nodes_there] * (nodes_there != NOWHERE)).astype(precision)
        both = one + other
        variance = one + (2 * self._centred[nodes]).astype(precision)[:, None]
        variance *= one
        variance += self._squares
        variance += np.multiply(other + (2 * self._centred[nodes_there]).astype(precision), other, out=other)
        variance -= np.multiply(both, both / self._count, out=one)
        variance *= WEIGHTS["reserved_mem_cv"] ** 2 / self._count
        np.maximum(variance, 0.0, out=variance)
        np.sqrt(variance, out=variance)
        both *= WEIGHTS["reserved_mem_rtotal"]
        variance += both
        variance -= self.still - self._total
        return variance

    def _scores(self, nodes: Integers, kept: Floats, left: Floats, squares: Floats) -> Floats:
        """Return the score's part when `nodes` keep `kept`, another node's value has changed by `left`, and Q is `squares` with that."""
        count = self._count
        change = (kept - self._kept[nodes]) * self._rate[nodes]
        variance = (count - 1) * change
        variance += 2 * (count * self._centred[nodes] - left)
        variance *= change
        variance += count * squares - left**2
        np.maximum(variance, 0.0, out=variance)
        np.sqrt(variance, out=variance)
        variance *= WEIGHTS["reserved_mem_cv"] / count
        change *= WEIGHTS["reserved_mem_rtotal"]
        variance += change
        variance += self._total + WEIGHTS["reserved_mem_rtotal"] * left
        return variance
