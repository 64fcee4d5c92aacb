# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a placement costs in addition to its score: disks copied and primaries moved, against where everything was at first.

    price = PlacementPrice.of(state, home, prices)     # for the moves from `state`
    price.now                                          # what `state` itself costs

Data is what the shortest way copies: one copy for each node of an instance that it did not have at first. The cost of a
move is the score it leads to plus the price of the placement after it, so that a disk which goes on to another node, or
back home, costs nothing more, or less. Limits on moves and data make what exceeds them infinitely dear.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Booleans, Floats, Integers, Singles
from ..cluster.moves import MoveKind
from ..cluster.state import ClusterState
from .effects import NODE_LEFT, PRIMARY_AFTER, Node
from .targets import Block, Targets

_TIB = 1024**2


@dataclass(frozen=True)
class Prices:
    """Prices in points of the score: of a TiB copied, of a primary moved, of one that is stopped and started again for it.

    The most MiB and the most instances moved are None without limit.
    """

    data: float = 0.04
    primary: float = 0.001
    restart: float = 0.01
    most_data: int | None = None
    most_moves: int | None = None

    @property
    def limited(self) -> bool:
        """Return whether there is a limit to all that is moved together."""
        return self.most_data is not None or self.most_moves is not None


@dataclass(frozen=True)
class InitialPlacement:
    """Where every instance was at first, [I] each."""

    primary: Integers
    secondary: Integers

    @classmethod
    def of(cls, state: ClusterState) -> InitialPlacement:
        """Return where instances are."""
        return cls(state.primary.copy(), state.secondary.copy())

    def moved(self, state: ClusterState) -> Booleans:
        """Return [I]: which instances are not where they were."""
        moved: Booleans = (state.primary != self.primary) | (state.secondary != self.secondary)
        return moved

    def data(self, state: ClusterState) -> int:
        """Return MiB that the shortest way to a state copies."""
        return self.copied(state, ((state.secondary != NOWHERE) | state.facts.instances.along) & self.moved(state))

    def copied(self, state: ClusterState, which: Booleans) -> int:
        """Return the same for some instances, [I], whose disks go along."""
        primary, secondary, disk = state.primary, state.secondary, state.facts.instances.disk
        first = which & (primary != self.primary) & (primary != self.secondary)
        second = which & (secondary != self.primary) & (secondary != self.secondary) & (secondary != NOWHERE)
        return int(disk @ first + disk @ second)

    def is_new(self, instances: Integers, nodes: Integers) -> Floats:
        """Return 1 where an instance was not on the node at first, else 0."""
        new: Floats = ((nodes != self.primary[instances]) & (nodes != self.secondary[instances])).astype(float)
        return new


@dataclass(frozen=True)
class PlacementPrice:
    """Prices of the moves from one state; `data`, `moved` and `leaving` are of that state."""

    home: InitialPlacement
    prices: Prices
    each: Floats
    """[I]: what it costs that the instance has another primary than at first."""
    disk: Floats
    """[I]: MiB of each instance."""
    mirrored: Booleans
    moved: Booleans
    data: int
    leaving: float
    """What the primaries that moved cost."""

    @classmethod
    def of(cls, state: ClusterState, home: InitialPlacement, prices: Prices) -> PlacementPrice:
        """Return the price of a state and its moves."""
        each = np.where(state.facts.instances.stopped_to_move, prices.restart, prices.primary) * state.facts.instances.dearer
        leaving = float(each @ (state.primary != home.primary))
        mirrored = (state.secondary != NOWHERE) | state.facts.instances.along
        moved = home.moved(state)
        return cls(home, prices, each, state.facts.instances.disk, mirrored, moved, home.copied(state, mirrored & moved), leaving)

    @property
    def now(self) -> float:
        """Return what the state costs in addition to its score."""
        return self.prices.data * self.data / _TIB + self.leaving

    @property
    def exceeded(self) -> bool:
        """Return whether more is moved than may be."""
        most_data, most_moves = self.prices.most_data, self.prices.most_moves
        return most_data is not None and self.data > most_data or most_moves is not None and int(self.moved.sum()) > most_moves

    def add(self, costs: dict[MoveKind, Floats], block: Block, targets: Targets) -> None:
        """Add the price of the placement after each move to its cost, in place."""
        # By how much the cost of moved primaries changes.
        home, each = self.home.primary[block.instances], self.each[block.instances]
        was = each * (block.primary != home)
        to_s = each * (block.secondary != home) - was
        away = np.repeat((each - was)[:, None], len(targets.nodes), axis=1)
        columns = targets.column[home]
        known = columns != NOWHERE
        away[block.order[known], columns[known]] -= each[known]
        by_primary = {Node.P: np.zeros((1, 1)), Node.S: to_s[:, None], Node.T: away}
        moved = {kind: by_primary[PRIMARY_AFTER[kind]] for kind in costs}
        data = self._copied(costs, block, targets) if block.mirrored or self.mirrored[block.instances].any() else {}
        for kind in costs:
            costs[kind] += self.now + moved[kind]
            if kind in data:
                costs[kind] += self.prices.data / _TIB * data[kind]
                if self.prices.most_data is not None:
                    costs[kind][self.data + data[kind] > self.prices.most_data] = np.inf
        if self.prices.most_moves is not None and self.moved.sum() >= self.prices.most_moves:
            for table in costs.values():
                table[~self.moved[block.instances]] = np.inf

    def exchanged(self, ones: Integers, here: Integers, others: Integers, there: Integers, *, primary: bool) -> Singles:
        """Return [R, C], in single precision: how the price changes when instances exchange `primary` or else secondary nodes."""
        nodes, row = np.unique(here, return_inverse=True)
        mine = self._instead(ones, here, np.arange(there.max(initial=0) + 1), primary=primary).astype(np.float32)
        theirs = self._instead(others, there, nodes, primary=primary).T.astype(np.float32, order="C")
        change = mine.take(there, axis=1)
        change += theirs[row]
        return change

    def _instead(self, instances: Integers, before: Integers, nodes: Integers, *, primary: bool) -> Floats:
        """Return [R, K]: the change of the price when instances have each of `nodes`, in order, instead of the one `before`."""
        data = self.prices.data / _TIB * np.where(self.mirrored[instances], self.disk[instances], 0.0)
        each = self.each[instances] * primary
        home, other = self.home.primary[instances], self.home.secondary[instances]
        stays = data * (1 - self.home.is_new(instances, before)) + each * (before == home)
        change = np.repeat(stays[:, None], len(nodes), axis=1)
        for old, less in ((home, data + each), (other, data)):
            column = np.searchsorted(nodes, old)
            rows = np.flatnonzero((column < len(nodes)) & (nodes[np.minimum(column, len(nodes) - 1)] == old))
            change[rows, column[rows]] -= less[rows]
        return change

    def _copied(self, costs: dict[MoveKind, Floats], block: Block, targets: Targets) -> dict[MoveKind, Floats]:
        """Return the change of MiB copied on the shortest way from home."""
        disk = self.disk[block.instances] * self.mirrored[block.instances]
        new = np.ones((len(block.instances), len(targets.nodes)))
        for home in (self.home.primary[block.instances], self.home.secondary[block.instances]):
            columns = np.where(home == NOWHERE, NOWHERE, targets.column[home])
            known = columns != NOWHERE
            new[block.order[known], columns[known]] = 0.0
        left = {Node.S: self.home.is_new(block.instances, block.secondary), Node.P: self.home.is_new(block.instances, block.primary)}
        less = {node: (new - gone[:, None]) * disk[:, None] for node, gone in left.items()}
        return {kind: less[node] for kind in costs if (node := NODE_LEFT[kind]) is not None}
