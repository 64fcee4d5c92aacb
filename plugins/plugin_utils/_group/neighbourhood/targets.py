# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all single moves of a set of instances have in common: which they are, where they run, what is kept for them.

    targets = Targets.of(state, scorer)             # once for a scorer
    targets.blocks(state, instances)                # [Block], each of instances that all are mirrored, or all are not
    kept = KeptMemory.of(state, targets, block)     # what nodes would keep for failovers after each kind of move

Arrays over a block are [R, T], or [R, 1] where the target does not matter: R instances, T online nodes of the group. The kinds of moves are
those of Ganeti's hbal; p and s are an instance's primary and secondary, t is the target:

    failover (s, p)   replace_secondary (p, t)   replace_and_failover (t, p)   replace_primary (t, s)
    failover_and_replace (s, t)                  failover_to_any (t), for instances on shared storage

What they do to each node is data (effects.py).
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Booleans, Floats, Integers, Quantity
from ..cluster.moves import MoveKind
from ..cluster.state import ClusterState
from ..metrics.score import Scorer
from .effects import MIRRORED_KINDS, OTHER_KINDS, Node, Part, Role

BLOCK_CELLS = 65536
"""How many instances times targets are evaluated in one go: temporaries of half a MiB stay in a core's cache."""


@dataclass(frozen=True)
class Block:
    """Instances, [R] each, with their nodes; `secondary` is NOWHERE for all or for none."""

    instances: Integers
    primary: Integers
    secondary: Integers

    @property
    def mirrored(self) -> bool:
        """Whether these have secondaries."""
        return bool(len(self.secondary)) and self.secondary[0] != NOWHERE

    @property
    def kinds(self) -> tuple[MoveKind, ...]:
        """Return the kinds of moves that these can make."""
        return MIRRORED_KINDS if self.mirrored else OTHER_KINDS

    @functools.cached_property
    def order(self) -> Integers:
        """Return [R]: 0, 1, 2 ..."""
        return np.arange(len(self.instances))


@dataclass(frozen=True)
class Targets:
    """The targets of moves, and where each node is among them."""

    nodes: Integers
    """[T]: positions of the online nodes of the group."""
    column: Integers
    """[N]: position among `nodes`, or NOWHERE."""
    online: Booleans
    """[N]: whether the node is one of them."""
    tagged: Booleans
    """[I]: whether the instance has exclusion tags."""
    open: bool
    """Whether every node accepts instances of every other."""

    @classmethod
    def of(cls, state: ClusterState, scorer: Scorer) -> Targets:
        """Return the targets of a scorer's online members."""
        column = _columns(scorer.online, len(state.offline))
        tagged = np.array([bool(tags) for tags in state.facts.instances.exclusion], dtype=bool)
        return cls(scorer.online, column, column != NOWHERE, tagged, bool(state.facts.nodes.accepts.all()))

    def narrowed(self, nodes: Integers) -> Targets:
        """Return some of the targets."""
        return dataclasses.replace(self, nodes=nodes, column=_columns(nodes, len(self.online)))

    def blocks(self, state: ClusterState, instances: Integers) -> list[Block]:
        """Return instances in blocks of convenient size, mirrored ones apart from others; none when there are no targets."""
        if not len(self.nodes):
            return []
        mirrored = state.secondary[instances] != NOWHERE
        size = max(BLOCK_CELLS // max(len(self.nodes), 1), 1)
        found = []
        for part in (instances[mirrored], instances[~mirrored]):
            for start in range(0, len(part), size):
                rows = part[start : start + size]
                found.append(Block(rows, state.primary[rows], state.secondary[rows]))
        return found

    def at_home(self, block: Block) -> tuple[Integers, Integers]:
        """Return the rows and columns of the cells, [R, T], at which an instance is already."""
        rows, nodes = np.concatenate([block.order, block.order]), np.concatenate([block.primary, block.secondary])
        columns = np.where(nodes == NOWHERE, NOWHERE, self.column[nodes])
        known = np.flatnonzero(columns != NOWHERE)
        return rows[known], columns[known]


def _columns(targets: Integers, nodes: int) -> Integers:
    column = np.full(nodes, NOWHERE)
    column[targets] = np.arange(len(targets))
    return column


@dataclass(frozen=True)
class KeptMemory:
    """MiB that a node keeps for the failure of the worst other node, as a mirrored instance changes that: [R, 1] or [R, T]."""

    now: Floats
    """[N]: what is kept now."""
    nodes: dict[Node, Integers]
    """The positions of p and s, [R], and of the targets, [T]."""
    secondary_of: dict[tuple[Node, Node], Floats]
    """What the first node keeps as the secondary of the second."""
    without: Floats
    """What s keeps when it is the secondary no more."""

    @classmethod
    def of(cls, state: ClusterState, targets: Targets, block: Block) -> KeptMemory:
        """Return what is kept after the moves of a mirrored block."""
        primary, secondary, nodes = block.primary, block.secondary, targets.nodes
        memory = state.facts.instances.reserves[block.instances]
        keeps = memory > 0
        amount = memory[:, None]
        left = state.peers[secondary]
        left[block.order, primary] -= memory
        without = np.where(keeps, left.max(axis=1), state.reserved[secondary])
        here = state.reserved[nodes]
        cells, flat = len(state.peers), state.peers.ravel()
        of_primary = flat.take(nodes * cells + primary[:, None])
        of_primary += amount
        of_secondary = flat.take(nodes * cells + secondary[:, None])
        of_secondary += amount
        for_target = state.peers[primary].take(nodes, axis=1)
        for_target += amount
        instead = left.take(nodes, axis=1)
        instead += amount
        after_failover = np.maximum(state.reserved[primary], state.peers[primary, secondary] + memory)
        secondary_of = {
            (Node.P, Node.S): after_failover[:, None],
            (Node.T, Node.P): np.maximum(here, of_primary, out=of_primary),
            (Node.T, Node.S): np.maximum(here, of_secondary, out=of_secondary),
            (Node.P, Node.T): np.maximum(state.reserved[primary][:, None], for_target, out=for_target),
            (Node.S, Node.T): np.maximum(without[:, None], instead, out=instead),
        }
        return cls(state.reserved, {Node.P: primary, Node.S: secondary, Node.T: nodes}, secondary_of, without[:, None])

    def at(self, node: Node, was: Part, becomes: Part) -> Floats:
        """Return what a node keeps; [1, T] or [R, 1] where that does not change."""
        if becomes.other is not None and becomes.role == Role.SECONDARY:
            return self.secondary_of[node, becomes.other]
        if was.role == Role.SECONDARY:
            return self.without
        kept = self.now[self.nodes[node]]
        return kept[None] if node == Node.T else kept[:, None]


@dataclass(frozen=True)
class Needs:
    """What the instances of a block add to a node, [R] each, in MiB; `uses` and `kept` are 0 or more."""

    uses: Floats
    """Memory on the primary."""
    kept: Floats
    """Memory reserved on the secondary."""
    real: Booleans

    @classmethod
    def of(cls, state: ClusterState, block: Block) -> Needs:
        """Return the needs of a block."""
        facts = state.facts.instances
        return cls(
            uses=-facts.as_primary[Quantity.MEMORY, block.instances],
            kept=facts.reserves[block.instances],
            real=facts.real[block.instances],
        )
