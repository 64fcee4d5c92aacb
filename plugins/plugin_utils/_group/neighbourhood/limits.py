# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which single moves keep all limits, as arrays of truth over a block.

    limits = MovedLimits(state, targets, rules)
    limits.allowed(block, kept, needs)      # {kind: [R, T] or, where no target matters, [R, 1]}

The bounds of metrics/limits.py say how far limits may be used: those of hbal leave one MiB; those of a start keep
what is broken there from getting worse, and let nothing else be broken, so that every state on the way is as good as it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import ANYWHERE, Booleans, Floats, Integers, Quantity
from ..cluster.moves import MoveKind
from ..cluster.state import ClusterState
from ..metrics.limits import REDUNDANCY, Bounds, can_run, joins, pool_rows
from ..metrics.skew import evens
from .effects import Node, Part, Role, combined
from .targets import Block, KeptMemory, Needs, Targets


@dataclass(frozen=True)
class MoveRules:
    """How far limits may be used, and whether hbal's exceptions hold.

    `like_hbal`: a node that already fails N+1 takes anything, an instance on an offline node may break soft limits, disks
    are copied although their primary is offline, and exclusion tags of forthcoming instances are ignored.
    """

    bounds: Bounds
    like_hbal: bool
    apart: bool = False
    """Whether those that are to be together may be apart for now, because all of them will move."""
    rescues: bool = False
    """Whether what is on nodes that are marked offline may break soft limits."""
    empties: bool = False
    """Whether what is on drained nodes may."""

    @classmethod
    def of_htools(cls, state: ClusterState) -> MoveRules:
        """Return hbal's."""
        return cls(Bounds.of_htools(state), like_hbal=True)

    @classmethod
    def of_start(cls, state: ClusterState, *, apart: bool = False, rescues: bool = False, empties: bool = False) -> MoveRules:
        """Return those by which nothing gets worse than in `state`."""
        return cls(Bounds.of_start(state), like_hbal=False, apart=apart, rescues=rescues, empties=empties)


class MovedLimits:
    """The limits of one state; see the module's docstring."""

    def __init__(self, state: ClusterState, targets: Targets, rules: MoveRules) -> None:
        self._state, self._targets, self._like_hbal = state, targets, rules.like_hbal
        self._room = rules.bounds.room(state)
        self._keepable = state.quantities[Quantity.MEMORY] + rules.bounds.most[REDUNDANCY]
        self._excused = state.fails_n1 & rules.like_hbal
        self._planned = state.facts.forthcoming
        self._apart = rules.apart
        self._rescued = state.offline & rules.like_hbal | state.marked_offline & rules.rescues | state.drained & rules.empties

    def allowed(self, block: Block, kept: KeptMemory | None, needs: Needs) -> dict[MoveKind, Booleans]:
        """Return which moves of a block keep the limits; `kept` is None for a block that is not mirrored."""
        targets = self._targets.nodes
        rescued = self._rescued[block.primary][:, None]
        stored, pressed = self._storage_at(block, needs, targets), self._pressure_at(block, needs, targets)
        hard, soft = self._primary_at(block, needs, targets, stored, pressed)
        to_t = self._accepted(block.primary, targets) | self._is_marked_offline(block)
        if kept is None:
            return {MoveKind.FAILOVER_TO_ANY: hard & (soft | rescued) & to_t}
        rescued_mirror = (self._state.offline[block.secondary] & self._like_hbal)[:, None]
        hard_mirror, soft_mirror = stored & self._able(block, targets), self._mirror_at(block, needs, targets, pressed)
        can_be_primary = self._primary_at_s(block, kept, needs, rescued[:, 0])[:, None]
        anything = np.ones((1, 1), dtype=bool)

        def at(node: Node, was: Part, becomes: Part) -> Booleans:
            """Return whether a node keeps its limits; what leaves a node that takes nothing may break soft ones."""
            beside_s = Node.S in (node, becomes.other)
            excused = rescued if beside_s else rescued_mirror
            if becomes.role == Role.NONE:
                return anything
            if node == Node.S:
                return can_be_primary if becomes.role == Role.PRIMARY else self._mirror_at_s(block, needs, kept) | rescued
            if node == Node.P:
                stays = becomes.role == Role.PRIMARY
                return self._stays(block)[:, None] if stays else self._mirror_at_p(block, needs, kept.at(node, was, becomes), excused)
            if becomes.role == Role.SECONDARY:
                return hard_mirror & (soft_mirror & self._spare(targets, kept.at(node, was, becomes)) | excused)
            return hard & (soft | rescued) if beside_s else hard & soft

        # On the way: the secondary takes over first, or the disks are copied from a primary that answers.
        fails_over = self._fails_over(block) & can_be_primary
        copies = ~self._is_marked_offline(block)
        # Of what is stopped a primary needs no memory, but on its way there the mirror keeps some.
        excused_mirror = self._like_hbal | rescued
        from_p = self._spare(targets, kept.secondary_of[Node.T, Node.P]) | excused_mirror
        from_s = self._spare(targets, kept.secondary_of[Node.T, Node.S]) | excused_mirror
        swaps = fails_over & (self._mirror_at_p(block, needs, kept.secondary_of[Node.P, Node.S], rescued) | self._like_hbal)
        on_the_way = {
            MoveKind.FAILOVER: fails_over,
            MoveKind.REPLACE_SECONDARY: copies,
            MoveKind.REPLACE_AND_FAILOVER: copies & to_t & from_p,
            MoveKind.REPLACE_PRIMARY: swaps & self._accepted(block.secondary, targets) & from_s,
            MoveKind.FAILOVER_AND_REPLACE: swaps,
        }
        return {kind: on_the_way[kind] & held for kind, held in combined(block.kinds, at, np.logical_and).items()}

    def _is_marked_offline(self, block: Block) -> Booleans:
        """Return [R, 1]: whether primaries do not answer; hbal does not ask."""
        is_marked_offline: Booleans = (self._state.marked_offline[block.primary] & (not self._like_hbal))[:, None]
        return is_marked_offline

    def _fails_over(self, block: Block) -> Booleans:
        """Return [R, 1]: whether secondaries take instances, and their primaries' migration tags let them."""
        p, s = block.primary, block.secondary
        passes: Booleans = ~self._state.offline[s] & (self._state.facts.nodes.accepts[p, s])
        return passes[:, None] | (~self._state.offline[s])[:, None] & self._is_marked_offline(block)

    def _able(self, block: Block, nodes: Integers) -> Booleans:
        """Return [R, T], or [1, 1] when all are: whether instances can run on nodes."""
        if not self._state.facts.slots.hardware.any():
            return np.ones((1, 1), dtype=bool)
        return can_run(self._state.facts, block.instances, nodes)

    def _accepted(self, homes: Integers, nodes: Integers) -> Booleans:
        """Return [R, T], or [1, 1] when all are: whether nodes accept instances that run on others."""
        accepts = self._state.facts.nodes.accepts
        return np.ones((1, 1), dtype=bool) if self._targets.open else accepts[np.ix_(homes, nodes)]

    def _primary_at(self, block: Block, needs: Needs, nodes: Integers, stored: Booleans, soft: Booleans) -> tuple[Booleans, Booleans]:
        """Return whether hard and soft limits let the instances be primaries of nodes that they are not on, [R, T].

        `stored` and `soft` are what those of storage say.
        """
        facts, rows = self._state.facts.instances, block.instances
        hard = self._fits(needs.uses, needs.real, Quantity.MEMORY, nodes) & stored
        spare = self._keepable[nodes] - self._state.reserved[nodes]
        soft = soft & ((needs.uses[:, None] <= spare) | self._excused[nodes] | ~needs.real[:, None])
        soft &= self._fits(facts.as_primary[Quantity.CPUS, rows], needs.real, Quantity.CPUS, nodes)
        every = np.ones(len(rows), dtype=bool)
        soft &= self._fits(-facts.as_primary[Quantity.MEMORY_PLANNED, rows], every, Quantity.MEMORY_PLANNED, nodes)
        if self._planned:
            soft &= self._fits(facts.as_primary[Quantity.CPUS_PLANNED, rows], every, Quantity.CPUS_PLANNED, nodes)
        slots = self._state.facts.slots
        for row in self._tagged(block):
            tags = list(facts.exclusion[rows[row]])
            full = self._state.tag_counts[np.ix_(nodes, tags)] >= slots.hard_limit[np.ix_(nodes, tags)]
            is_soft = np.array(tags) < slots.soft
            soft[row] &= ~full[:, is_soft].any(axis=1)
            if not is_soft.all():
                hard = np.array(np.broadcast_to(hard, soft.shape))
                hard[row] &= ~full[:, ~is_soft].any(axis=1)
                hard[row] &= self._apart or joins(self._state, int(rows[row]), nodes)
                hard[row] &= evens(self._state, int(rows[row]), nodes)
        return hard, soft

    def _mirror_at(self, block: Block, needs: Needs, nodes: Integers, soft: Booleans) -> Booleans:
        """Return whether soft limits but N+1 let nodes that they are not on be their secondaries, [R, T]; `soft` are those of storage."""
        rows = block.instances
        soft = soft & self._fits(needs.kept, needs.real, Quantity.MEMORY, nodes)
        every = np.ones(len(rows), dtype=bool)
        result: Booleans = soft & self._fits(self._kept_planned(rows), every, Quantity.MEMORY_PLANNED, nodes)
        return result

    def _kept_planned(self, rows: Integers) -> Floats:
        """Return [R]: what a secondary keeps for them, now or, for those that are forthcoming, later."""
        facts = self._state.facts.instances
        if not self._planned:
            return facts.reserves[rows]
        reserves = np.array([facts.models[row].reserves_memory for row in rows.tolist()], dtype=bool)
        return np.where(reserves, facts.memory[rows], 0.0)

    def _primary_at_s(self, block: Block, kept: KeptMemory, needs: Needs, rescued: Booleans) -> Booleans:
        """Return [R]: whether the secondary can become the primary."""
        facts, rows, s = self._state.facts.instances, block.instances, block.secondary
        memory = self._state.quantities[Quantity.MEMORY]
        hard = (needs.uses <= self._room[Quantity.MEMORY][s]) & self._stored(block, s)
        without = kept.without[:, 0]
        spare = needs.uses <= self._keepable[s] - without
        spare |= self._like_hbal & (memory[s] - without < 1)
        soft = self._presses(s) & spare & (facts.as_primary[Quantity.CPUS, rows] <= self._room[Quantity.CPUS][s])
        hard, soft = hard | ~needs.real, soft | ~needs.real
        soft = soft & self._planned_at(s) & (-facts.as_primary[Quantity.MEMORY_PLANNED, rows] <= self._room[Quantity.MEMORY_PLANNED][s])
        if self._planned:
            soft &= facts.as_primary[Quantity.CPUS_PLANNED, rows] <= self._room[Quantity.CPUS_PLANNED][s]
        slots = self._state.facts.slots
        for row in self._tagged(block):
            tags = list(facts.exclusion[rows[row]])
            full = self._state.tag_counts[s[row], tags] >= slots.hard_limit[s[row], tags]
            is_soft = np.array(tags) < slots.soft
            soft[row] &= not full[is_soft].any()
            hard[row] &= not full[~is_soft].any()
            hard[row] &= self._apart or bool(joins(self._state, int(rows[row]), s[row : row + 1])[0])
            hard[row] &= bool(evens(self._state, int(rows[row]), s[row : row + 1])[0])
        return hard & (soft | rescued)

    def _mirror_at_p(self, block: Block, needs: Needs, kept: Floats, rescued: Booleans) -> Booleans:
        """Return [R, T]: whether the primary can become the secondary, when it would then keep `kept`; `rescued` is [R, 1]."""
        p = block.primary
        memory = self._state.quantities[Quantity.MEMORY][p] + needs.uses
        spare = kept <= (self._keepable[p] + needs.uses)[:, None]
        spare |= (self._like_hbal & (memory - self._state.reserved[p] < 1))[:, None]
        fits = self._presses(p) & (needs.kept - needs.uses <= self._room[Quantity.MEMORY][p])
        soft = (spare & fits[:, None]) | ~needs.real[:, None]
        planned = self._kept_planned(block.instances) + self._state.facts.instances.as_primary[Quantity.MEMORY_PLANNED, block.instances]
        soft &= (self._planned_at(p) & (planned <= self._room[Quantity.MEMORY_PLANNED][p]))[:, None]
        hard = self._stored(block, p) | self._state.offline[p] | ~needs.real
        result: Booleans = hard[:, None] & (soft | rescued)
        return result

    def _mirror_at_s(self, block: Block, needs: Needs, kept: KeptMemory) -> Booleans:
        """Return [R, T]: whether the secondary can be that of the target instead."""
        s = block.secondary
        memory = self._state.quantities[Quantity.MEMORY][s]
        excused = self._like_hbal & (memory[:, None] - kept.without < 1)
        spare = (kept.secondary_of[Node.S, Node.T] <= self._keepable[s][:, None]) | excused
        fits = self._presses(s) & self._stored(block, s) & (needs.kept <= self._room[Quantity.MEMORY][s])
        planned = self._planned_at(s) & (self._kept_planned(block.instances) <= self._room[Quantity.MEMORY_PLANNED][s])
        result: Booleans = ((spare & fits[:, None]) | ~needs.real[:, None]) & planned[:, None]
        return result

    def _stays(self, block: Block) -> Booleans:
        """Return [R]: whether the primary keeps the hard limits as it is."""
        p = block.primary
        return (self._room[Quantity.MEMORY][p] >= 0) & self._stored(block, p) | ~self._state.facts.instances.real[block.instances]

    def _spare(self, nodes: Integers, kept: Floats) -> Booleans:
        """Return where nodes have as much memory as they would keep."""
        spare: Booleans = (kept <= self._keepable[nodes]) | self._excused[nodes]
        return spare

    def _fits(self, need: Floats, counts: Booleans, quantity: Quantity, nodes: Integers) -> Booleans:
        """Return whether the need of each row fits on each node; rows that do not count always fit."""
        fits: Booleans = np.where(counts, need, -np.inf)[:, None] <= self._room[quantity][nodes]
        return fits

    def _storage_at(self, block: Block, needs: Needs, nodes: Integers) -> Booleans:
        """Return whether disks fit on nodes that they are not on."""
        facts = self._state.facts.instances
        local = facts.on_node_disk[block.instances] & needs.real
        fits = self._fits(-facts.as_primary[Quantity.DISK, block.instances], local, Quantity.DISK, nodes)
        if self._state.facts.nodes.exclusive.any():
            fits &= self._spindles_at(block, local, Quantity.SPINDLES, nodes)
        return fits & self._reaches(block, nodes)

    def _spindles_at(self, block: Block, counts: Booleans, quantity: Quantity, nodes: Integers) -> Booleans:
        facts, rows = self._state.facts.instances, block.instances
        need = np.where(facts.spindles_known[rows], -facts.as_primary[quantity, rows], np.inf)
        fits: Booleans = self._fits(need, counts, quantity, nodes) | ~self._state.facts.nodes.exclusive[nodes]
        return fits

    def _reaches(self, block: Block, nodes: Integers) -> Booleans:
        facts = self._state.facts
        pool = facts.instances.pool[block.instances]
        named = pool != ANYWHERE
        if not named.any():
            return np.ones((1, 1), dtype=bool)
        reached = facts.nodes.pools[nodes, pool[:, None]]
        need = np.where(facts.pool_shared[pool], -np.inf, facts.instances.disk[block.instances])[:, None]
        room = self._room[pool_rows(facts)][pool[:, None], nodes]
        result: Booleans = (reached & (need <= room)) | ~named[:, None]
        return result

    def _stored(self, block: Block, nodes: Integers) -> Booleans:
        """Return [R]: whether the node of each row that already has its disks keeps the hard limits of storage."""
        facts = self._state.facts
        exclusive = facts.nodes.exclusive[nodes]
        known = facts.instances.spindles_known[block.instances] & (self._room[Quantity.SPINDLES][nodes] >= 0)
        result: Booleans = (self._room[Quantity.DISK][nodes] >= 0) & (known | ~exclusive) | ~facts.instances.on_node_disk[block.instances]
        return result

    def _pressure_at(self, block: Block, needs: Needs, nodes: Integers) -> Booleans:
        """Return whether the soft limits of storage are kept."""
        facts, rows = self._state.facts.instances, block.instances
        local = facts.on_node_disk[rows]
        fits = self._fits(facts.as_primary[Quantity.SPINDLE_USE, rows], local & needs.real, Quantity.SPINDLE_USE, nodes)
        if self._planned:
            fits &= self._fits(-facts.as_primary[Quantity.DISK_PLANNED, rows], local, Quantity.DISK_PLANNED, nodes)
            fits &= self._fits(facts.as_primary[Quantity.SPINDLE_USE_PLANNED, rows], local, Quantity.SPINDLE_USE_PLANNED, nodes)
            if self._state.facts.nodes.exclusive.any():
                fits &= self._spindles_at(block, local, Quantity.SPINDLES_PLANNED, nodes)
        return fits

    def _presses(self, nodes: Integers) -> Booleans:
        """Return [R]: whether nodes keep the limit of spindle use with what is on them."""
        presses: Booleans = self._room[Quantity.SPINDLE_USE][nodes] >= 0
        return presses

    def _planned_at(self, nodes: Integers) -> Booleans:
        """Return [R]: whether nodes keep the limits of storage with what is on them and what is to come."""
        if not self._planned:
            return np.ones(len(nodes), dtype=bool)
        kept = [self._room[q][nodes] >= 0 for q in (Quantity.DISK_PLANNED, Quantity.SPINDLES_PLANNED, Quantity.SPINDLE_USE_PLANNED)]
        every: Booleans = np.logical_and.reduce(kept)
        return every

    def _tagged(self, block: Block) -> list[int]:
        """Return the rows whose exclusion tags count."""
        counts = self._state.facts.instances.real | (not self._like_hbal)
        rows: list[int] = np.flatnonzero((self._targets.tagged & counts)[block.instances]).tolist()
        return rows
