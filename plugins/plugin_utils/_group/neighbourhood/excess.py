# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""By how much limits are broken now, and how every single move changes that: repaired before scores count.

    excess_of(state, nodes)                            # shares of what the nodes have, summed; 0 where nothing is broken
    price = RepairPrice(PlacementPrice.of(...), MovedExcess.of(state, nodes, rows))      # in the place of a price

Tags and rules that are broken are part of the score, so that no price is needed for them. What is only planned (forthcoming or stopped
instances) is no emergency.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import Facts, Floats, Integers, Quantity, Singles
from ..cluster.moves import MoveKind
from ..cluster.state import ClusterState
from ..metrics.limits import LIMITED, TOLERANCE, capacity, counted_as_used
from .effects import Node, Part, Role, combined
from .price import PlacementPrice
from .targets import Block, Targets

_WEIGHT = 1e5
"""Points for a limit that is broken by a node's whole capacity: a score cannot fall by enough to outweigh the smallest repair."""
_REPAIRED = np.isin(LIMITED, (Quantity.MEMORY, Quantity.DISK, Quantity.CPUS, Quantity.SPINDLE_USE, Quantity.SPINDLES))


def excess_of(state: ClusterState, nodes: Integers) -> float:
    """Return by how much limits are broken at nodes that are up: shares of what each node has, tags and rules in conflict as one each."""
    return float(_over(state, nodes).sum() + _slots_over(state, nodes).sum())


def hard_excess_of(state: ClusterState, nodes: Integers) -> float:
    """Return the same without exclusion tags, which are soft."""
    return float(_over(state, nodes).sum() + _slots_over(state, nodes)[:, state.facts.slots.soft :].sum())


def tags_in_conflict(state: ClusterState, nodes: Integers) -> int:
    """Return how many primaries too many nodes that are up have for exclusion tags."""
    return int(_slots_over(state, nodes)[:, : state.facts.slots.soft].sum())


def _slots_over(state: ClusterState, nodes: Integers) -> Floats:
    """Return [K, T]: how many primaries too many there are for tags and rules; none at nodes that are offline."""
    over: Floats = np.maximum(state.tag_counts[nodes] - state.facts.slots.hard_limit[nodes], 0) * ~state.offline[nodes][:, None]
    return over


def broken_rows(state: ClusterState, nodes: Integers) -> Integers:
    """Return the rows of limits.LIMITED that are broken at some nodes; by the bounds of that state no other will be."""
    rows: Integers = np.flatnonzero(_over(state, nodes).any(axis=1))
    return rows


def _over(state: ClusterState, nodes: Integers) -> Floats:
    """Return [10, K]: the shares by which quantities are over their limits; nothing at nodes that are offline."""
    used = counted_as_used(state.quantities[:, nodes]) - capacity(state.facts)[: len(LIMITED), nodes]
    return _shares(used, _sizes(state.facts)[:, nodes]) * ~state.offline[nodes] * _REPAIRED[:, None]


def _shares(over: Floats, sizes: Floats) -> Floats:
    shares: Floats = np.where(over > TOLERANCE, over, 0.0) / sizes
    return shares


def _sizes(facts: Facts) -> Floats:
    """Return [10, N]: what each node has of the limited quantities, at least 1."""
    nodes = facts.nodes
    sizes = np.ones((len(LIMITED), len(nodes.names)))
    for quantities, size in (
        ((Quantity.MEMORY, Quantity.MEMORY_PLANNED), nodes.total_memory),
        ((Quantity.DISK, Quantity.DISK_PLANNED), nodes.total_disk),
        ((Quantity.CPUS, Quantity.CPUS_PLANNED), nodes.cpu_limit),
        ((Quantity.SPINDLE_USE, Quantity.SPINDLE_USE_PLANNED), nodes.spindle_limit),
        ((Quantity.SPINDLES, Quantity.SPINDLES_PLANNED), nodes.total_spindles),
    ):
        sizes[list(quantities)] = np.maximum(size, 1.0)
    return sizes


@dataclass(frozen=True)
class MovedExcess:
    """K limits in one state, which must not change while this is used."""

    total: float
    over: Floats
    """[K, N]: what is used beyond each limit; negative where there is room, -inf at nodes that do not count."""
    now: Floats
    """[N]: the shares by which a node's limits are broken."""
    sizes: Floats
    as_primary: Floats
    """[K, I]"""
    as_secondary: Floats

    @classmethod
    def of(cls, state: ClusterState, nodes: Integers, rows: Integers) -> MovedExcess:
        """Return what is broken of some rows at some nodes."""
        over = (counted_as_used(state.quantities) - capacity(state.facts)[: len(LIMITED)])[rows]
        counts = np.zeros(len(state.offline), dtype=bool)
        counts[nodes] = ~state.offline[nodes]
        over = np.where(counts, over, -np.inf)
        sizes = _sizes(state.facts)[rows]
        now = _shares(over, sizes).sum(axis=0)
        facts = state.facts.instances
        return cls(float(now.sum()), over, now, sizes, counted_as_used(facts.as_primary)[rows], counted_as_used(facts.as_secondary)[rows])

    def changes(self, block: Block, targets: Integers) -> dict[MoveKind, Floats]:
        """Return the change of what is broken by every kind of move: [R, T] or, where no target matters, [R, 1]."""
        rows = block.instances
        needs = {
            Role.NONE: np.zeros((len(self.over), len(rows))),
            Role.PRIMARY: self.as_primary[:, rows],
            Role.SECONDARY: self.as_secondary[:, rows],
        }

        def at(node: Node, was: Part, becomes: Part) -> Floats:
            more = needs[becomes.role] - needs[was.role]
            if node == Node.T:
                return self._at_targets(targets, more)
            return self._at(block.primary if node == Node.P else block.secondary, more)[:, None]

        return combined(block.kinds, at, np.add)

    def _at(self, nodes: Integers, more: Floats) -> Floats:
        """Return [R]: the change at the node of each row when it carries so much more, [K, R]."""
        change: Floats = _shares(self.over[:, nodes] + more, self.sizes[:, nodes]).sum(axis=0) - self.now[nodes]
        return change

    def _at_targets(self, nodes: Integers, more: Floats) -> Floats:
        """Return [R, T]: the change at each target when it carries what each row adds, [K, R]."""
        after = np.zeros((more.shape[1], len(nodes)))
        for over, size, need in zip(self.over[:, nodes], self.sizes[:, nodes], more):
            after += _shares(over + need[:, None], size)
        return after - self.now[nodes]


@dataclass(frozen=True)
class RepairPrice:
    """The price of placements while limits are repaired: broken limits count before all else."""

    price: PlacementPrice
    excess: MovedExcess

    @property
    def now(self) -> float:
        """Return what the state costs in addition to its score."""
        return self.price.now + _WEIGHT * self.excess.total

    @property
    def exceeded(self) -> bool:
        """Return whether more is moved than may be."""
        return self.price.exceeded

    def add(self, costs: dict[MoveKind, Floats], block: Block, targets: Targets) -> None:
        """Add the price of the placement after each move to its cost, in place."""
        self.price.add(costs, block, targets)
        for kind, change in self.excess.changes(block, targets.nodes).items():
            if kind in costs:
                costs[kind] += _WEIGHT * (self.excess.total + change)

    def exchanged(self, ones: Integers, here: Integers, others: Integers, there: Integers, *, primary: bool) -> Singles:
        """Return about what exchanges change of the price; what they mend is seen when they are made."""
        return self.price.exchanged(ones, here, others, there, primary=primary)
