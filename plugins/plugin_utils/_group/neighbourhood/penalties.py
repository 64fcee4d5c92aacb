# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every single move changes of a score's sums: N+1 failures, offline nodes, exclusion tags, locations.

penalties = MovedPenalties(state, scorer, targets)
penalties.changes(block, kept, needs)     # {kind: [R, T] or, where no target matters, [R, 1]}
"""

from __future__ import annotations

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Floats, Integers, Quantity
from ..cluster.moves import MoveKind
from ..cluster.state import ClusterState
from ..metrics.score import WEIGHTS, Scorer, slot_weights
from ..metrics.skew import Arrivals
from .effects import NODE_LEFT, PRIMARY_AFTER, Node, Part, Role, combined
from .targets import Block, KeptMemory, Needs, Targets


class MovedPenalties:
    """The sums of one state; see the module's docstring."""

    def __init__(self, state: ClusterState, scorer: Scorer, targets: Targets) -> None:
        self._state, self._targets = state, targets
        self._least = scorer.least_left
        self._memory = state.quantities[Quantity.MEMORY]
        counts = state.quantities[Quantity.PRIMARIES] + state.quantities[Quantity.SECONDARIES]
        self._counts = counts * targets.online
        self._failed = self._counts * scorer.failing(state)
        self._tags = _TagPenalties(state, scorer, targets)
        self._one_fails = bool(self._failed.any())
        self._plain = not (state.offline.any() or self._tags.any)

    def changes(self, block: Block, kept: KeptMemory | None, needs: Needs) -> dict[MoveKind, Floats]:
        """Return the weighted change of every move's sums, without kinds of which none changes any; `kept` is None if not mirrored."""
        found = {} if self._plain and self._targets.online[block.primary].all() else self._without_n1(block, needs)
        # Also for moves that keep N+1: the score takes a node with exactly what it must keep for one that fails.
        for kind, change in self._n1(block, kept, needs).items():
            if change.any():
                found[kind] = found[kind] + change if kind in found else change
        return found

    @property
    def follows(self) -> bool:
        """Whether any tags or locations follow the primaries."""
        return self._tags.any

    def arrivals(self, block: Block) -> Floats:
        """Return [R, T]: what tags and locations change when the primary goes to each target."""
        return self._tags.primary_at_targets(block)

    def shared_domains(self, partners: Integers, nodes: Integers) -> Floats:
        """Return the failure domains that nodes share with an instance's other node; 0 where that is NOWHERE."""
        shared: Floats = self._state.facts.nodes.shared_locations[partners, nodes] * (partners != NOWHERE).astype(float)
        return shared

    def _without_n1(self, block: Block, needs: Needs) -> dict[MoveKind, Floats]:
        real = needs.real.astype(float)
        arrives = {
            Node.P: np.zeros((1, 1)),
            Node.S: self._tags.primary_at_secondary(block)[:, None],
            Node.T: self._tags.primary_at_targets(block),
        }

        def left(node: Node, was: Part, becomes: Part) -> Floats:
            """Return what it costs less that a node is left that is offline; nothing goes to one."""
            if node == Node.T:
                return np.zeros((1, 1))
            less = WEIGHTS["offline_all_cnt"] * (becomes.role == Role.NONE)
            less += WEIGHTS["offline_pri_cnt"] * (was.role == Role.PRIMARY and becomes.role != Role.PRIMARY)
            offline_nodes = self._state.offline[block.primary if node == Node.P else block.secondary]
            return (-less * offline_nodes * real)[:, None]

        found = combined(block.kinds, left, np.add)
        shared = self._shared_locations(block, needs) if block.mirrored else {}
        return {kind: arrives[PRIMARY_AFTER[kind]] + change + shared.get(kind, 0.0) for kind, change in found.items()}

    def _shared_locations(self, block: Block, needs: Needs) -> dict[MoveKind, Floats]:
        """Return how the failure domains that both nodes share change; those of a primary that is offline do not count."""
        online = self._targets.online[block.primary][:, None]
        both: Floats = (self._state.facts.nodes.shared_locations[block.primary, block.secondary] * needs.real.astype(float))[:, None]
        by_partner = {Node.P: self._shared(block.primary, needs), Node.S: self._shared(block.secondary, needs), None: both}
        found: dict[MoveKind, Floats] = {}
        for kind in block.kinds:
            partner = {Node.S: Node.P, Node.P: Node.S, None: None}[NODE_LEFT[kind]]
            counts = online.astype(float) if PRIMARY_AFTER[kind] == Node.P else np.ones((1, 1))
            shared: Floats = by_partner[partner] * counts
            change: Floats = shared - both * online
            found[kind] = change
        return found

    def _shared(self, partner: Integers, needs: Needs) -> Floats:
        """Return [R, T]: the failure domains that each target shares with `partner`."""
        nodes = self._state.facts.nodes
        if not self._state.facts.location_tags:
            return np.zeros((1, 1))
        shared: Floats = nodes.shared_locations[np.ix_(partner, self._targets.nodes)] * needs.real[:, None].astype(float)
        return shared

    def _n1(self, block: Block, kept: KeptMemory | None, needs: Needs) -> dict[MoveKind, Floats]:
        """Return how the count of instances on nodes that fail N+1 changes."""
        used, real = needs.uses[:, None], needs.real.astype(float)[:, None]
        nodes = {Node.P: block.primary[:, None], Node.S: block.secondary[:, None], Node.T: self._targets.nodes}

        def at(node: Node, was: Part, becomes: Part) -> Floats:
            if was.role == becomes.role == Role.PRIMARY:
                return np.zeros((1, 1))
            here = nodes[node]
            freed = (was.role == Role.PRIMARY) - (becomes.role == Role.PRIMARY)
            memory = self._memory[here] + freed * used if freed else self._memory[here]
            keeps = self._state.reserved[here] if kept is None else kept.at(node, was, becomes)
            short = memory - keeps < self._least
            if not self._one_fails and not short.any():
                return np.zeros((1, 1))
            arrivals = float((becomes.role != Role.NONE) - (was.role != Role.NONE))
            after = (self._counts[here] + arrivals * self._targets.online[here]) * short
            change: Floats = WEIGHTS["n1_cnt"] * (after - self._failed[here])
            return change

        return {kind: change * real for kind, change in combined(block.kinds, at, np.add).items()}


class _TagPenalties:
    """Exclusion tags and desired locations, which follow the primary."""

    def __init__(self, state: ClusterState, scorer: Scorer, targets: Targets) -> None:
        self._state, self._targets = state, targets
        self._follows = targets.tagged | (state.facts.instances.wishes > 0)
        self._tagged = bool(state.facts.slots.names)
        self._weights = slot_weights(state.facts, scorer.mode)
        self._located = bool(state.facts.location_tags) or bool(state.facts.instances.wishes.any())
        self._by_location = scorer.tags_by_location(state) if self._tagged and state.facts.location_tags else None

    @property
    def any(self) -> bool:
        """Whether there is anything to follow."""
        return self._tagged or self._located

    def primary_at_targets(self, block: Block) -> Floats:
        """Return [R, T]: the change when the primary leaves p for each target."""
        if not self.any:
            return np.zeros((1, 1))
        found = np.zeros((len(block.instances), len(self._targets.nodes)))
        for row, (instance, primary) in enumerate(zip(block.instances.tolist(), block.primary.tolist())):
            if self._follows[instance]:
                self._add(found[row], instance, primary, self._targets.nodes)
        return found

    def primary_at_secondary(self, block: Block) -> Floats:
        """Return [R]: the change when the primary leaves p for s."""
        found = np.zeros(len(block.instances))
        if not block.mirrored or not self.any:
            return found
        for row, (instance, primary) in enumerate(zip(block.instances.tolist(), block.primary.tolist())):
            if self._follows[instance]:
                self._add(found[row : row + 1], instance, primary, block.secondary[row : row + 1])
        return found

    def _separated(self, slot: int, primary: int, nodes: Integers) -> Floats:
        """Return how many more instances of a slot are away from most of the slot when a primary goes from its node to each of `nodes`."""
        counts = self._state.tag_counts[:, slot]
        without = counts.copy()
        without[primary] -= 1
        change: Floats = (counts.max() - np.maximum(without.max(), without[nodes] + 1)).astype(float)
        return change

    def _add(self, found: Floats, instance: int, primary: int, nodes: Integers) -> None:
        facts = self._state.facts
        exclusion, desired = facts.instances.exclusion[instance], facts.instances.desired[instance]
        online = bool(self._targets.online[primary])
        if exclusion:
            tags = list(exclusion)
            counts, limit, weights = self._state.tag_counts, facts.slots.limit, self._weights[tags] * WEIGHTS["pri_tags_score"]
            found += ((counts[nodes][:, tags] >= limit[nodes][:, tags]) * weights).sum(axis=1)
            found -= online * float(((counts[primary, tags] > limit[primary, tags]) * weights).sum())
            for slot in exclusion:
                if facts.slots.together[slot] or facts.slots.drawn[slot]:
                    found += WEIGHTS["pri_tags_score"] * self._weights[slot] * self._separated(slot, primary, nodes)
            for spread in facts.slots.spreads:
                if spread.slot in exclusion:
                    arrivals = Arrivals.of(self._state, spread, primary)
                    found += WEIGHTS["pri_tags_score"] * self._weights[spread.slot] * arrivals.change(spread, nodes)
        if not facts.instances.real[instance]:
            return
        if desired:
            locations = facts.nodes.locations
            met = list(desired)
            found -= locations[nodes][:, met].sum(axis=1)
            found += float(locations[primary, met].sum()) if online else 0.0
        if not online:
            found += float(facts.instances.wishes[instance])
        if exclusion and self._by_location is not None:
            here = facts.nodes.locations[primary] & online
            without = self._by_location[:, list(exclusion)] - here[:, None]
            repeated = (without > 0).sum(axis=1).astype(float)
            found += facts.nodes.locations[nodes] @ repeated - float(repeated @ here)
