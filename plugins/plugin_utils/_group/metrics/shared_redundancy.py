# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""N+1 on shared storage while instances move: no node's failure may strand more than it would have at the start.

    reserve = SharedReserve.of(state, group)
    reserve.holds(state_after_a_move)

Where more than a node may fail at once (cluster/failures.py), the same holds for each such set of nodes, and what mirrored instances lack
on their secondaries counts as well.

What a failure strands is a packing problem (redundancy.py). Most answers need no packing: when the nodes have at least as many
places of the size of a failing node's largest instance as it has instances, or, where some may not go everywhere, when each
has at least as many nodes with room for it as there are instances, all find one.
Only where that fails the instances are packed by best fit. What best fit strands at the start is proven by integer
programming, so that its weakness is not mistaken for room.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..._common.highs import Effort
from ..._common.libraries import np
from ..cluster.arrays import ANYWHERE, NOWHERE, Booleans, Floats, Integers, Quantity
from ..cluster.changes import with_places
from ..cluster.failures import failures_of
from ..cluster.model import MIRRORED_OUTSIDE
from ..cluster.moves import Move, Place
from ..cluster.state import ClusterState
from .limits import can_run
from .redundancy import PROOFS, failure_strands_more, n1_deficit_above, node_failures

_PROOFS_AT_START = 50_000
_PROOFS_OF_A_NODE = 5_000
"""Efforts of what the start strands, and of what one node does after a move."""
_NO_INSTANCES = np.zeros(0, dtype=np.int64)


Stranded = Mapping[tuple[int, ...], float]
"""MiB that find no place when nodes fail together; what is not listed strands nothing."""


def stranded_memory(state: ClusterState, group: int, exact: bool) -> dict[tuple[int, ...], float]:
    """Return MiB of instances on shared storage that could not restart when nodes of the group fail; the quick way gives more."""
    failures = node_failures(state, group, Effort(PROOFS if exact else 0))
    return {failure.nodes: short for failure in failures if (short := failure.short(state))}


def n1_deficit_exceeds(state: ClusterState, group: int, before: Stranded) -> bool:
    """Return whether the failure of a node of the group strands more than `before`, which is as from stranded_memory."""

    def more(after: Stranded) -> bool:
        return any(memory > before.get(node, 0.0) for node, memory in after.items())

    return more(stranded_memory(state, group, exact=False)) and more(stranded_memory(state, group, exact=True))


def strands_more(before: ClusterState, after: ClusterState, group: int) -> bool:
    """Return whether the failure of a node of the group strands more memory of instances on shared storage than before."""
    return n1_deficit_exceeds(after, group, stranded_memory(before, group, exact=True))


@dataclass(frozen=True)
class SharedReserve:
    """What must stay so: `instances` are those that restart elsewhere when their node fails."""

    nodes: Integers
    """Positions of the online nodes of the group."""
    instances: Integers
    allowed: Floats
    """[N]: MiB that may be stranded when the node fails."""
    mirrored_tags: Integers
    """[T]: how many mirrored instances have each exclusion tag."""
    sets: FailingSets

    @property
    def matters(self) -> bool:
        """Whether a failure could strand anything."""
        return bool(len(self.instances)) or bool(self.sets.failures)

    @classmethod
    def of(cls, state: ClusterState, group: int) -> SharedReserve:
        """Return the reserve of a group as it is."""
        members = state.group_nodes(group)
        models = state.facts.instances.models
        allowed = np.zeros(len(state.offline))
        restarting = [
            instance
            for instance in np.flatnonzero(np.isin(state.primary, members)).tolist()
            if models[instance].uses_memory and models[instance].disk_template in MIRRORED_OUTSIDE
        ]
        nodes = members[~state.offline[members]]
        sets = FailingSets.of(state, group, nodes)
        found = cls(nodes, np.array(restarting, dtype=np.int64), allowed, _mirrored_tags(state), sets)
        if len(nodes) == 1:
            # Instances of an only node can restart nowhere, however many more it gets.
            allowed[nodes] = np.inf
        elif len(found._doubtful(state)) or len(found._doubtful_sets(state)):
            for failure in node_failures(state, group, Effort(_PROOFS_AT_START)):
                if len(failure.nodes) == 1:
                    allowed[failure.node] = failure.short(state)
                else:
                    row = sets.failures.index(failure.nodes)
                    sets.allowed[row] = max(sets.allowed[row], failure.short(state))
        return found

    def holds(self, state: ClusterState) -> bool:
        """Return whether no failure would strand more than is allowed."""
        return self.beyond(state) is None

    def beyond(self, state: ClusterState) -> tuple[tuple[int, ...], float] | None:
        """Return the first nodes whose failure would strand more than is allowed, and how many MiB more; None without any."""
        doubtful = [((node,), self.allowed[node]) for node in self._doubtful(state).tolist()]
        doubtful += [(self.sets.failures[row], self.sets.allowed[row]) for row in self._doubtful_sets(state).tolist()]
        for failing, allowed in doubtful:
            more = n1_deficit_above(state, failing, allowed, Effort(_PROOFS_OF_A_NODE))
            if more > 0:
                return failing, more
        return None

    def without(self, leaving: Sequence[int]) -> SharedReserve:
        """Return the reserve by which nodes that are left may fail as they like."""
        allowed = self.allowed.copy()
        allowed[leaving] = np.inf
        return dataclasses.replace(self, allowed=allowed, sets=self.sets.without(leaving))

    def at_most(self, other: SharedReserve) -> SharedReserve:
        """Return the reserve by which as much may be stranded as either allows."""
        sets = dataclasses.replace(self.sets, allowed=np.maximum(self.sets.allowed, other.sets.allowed))
        return dataclasses.replace(self, allowed=np.maximum(self.allowed, other.allowed), sets=sets)

    def holds_in_any_order(self, state: ClusterState, moves: Sequence[Move]) -> bool:
        """Return whether `holds` is sure after any part of the moves: even with all arrived and none gone."""
        if not self.matters:
            return True
        worst = state.copy()
        for move in moves:
            for step in move.steps:
                worst.add(move.instance, *step)
        arrivals = [move for move in moves if move.target[1] == NOWHERE]
        instances = np.array([move.instance for move in arrivals], dtype=np.int64)
        nodes = np.array([move.target[0] for move in arrivals], dtype=np.int64)
        running = np.isin(instances, self.instances)
        instances, nodes = instances[running], nodes[running]
        doubtful = self._doubtful(worst, instances, nodes)
        doubtful_sets = self._doubtful_sets(worst, instances, nodes)
        if len(arrivals) < len(moves) and state.facts.slots.soft:
            # Mirrored instances that arrive would take tags along to their mirrors, which only the sums above count.
            return not len(doubtful) and not len(doubtful_sets)
        asked = [((node,), self.allowed[node]) for node in doubtful.tolist()]
        asked += [(self.sets.failures[row], self.sets.allowed[row]) for row in doubtful_sets.tolist()]
        # What fits with all arrived and none gone fits with any of them: fewer instances need more room no more.
        return not any(failure_strands_more(worst, failing, most, Effort(0), instances[np.isin(nodes, failing)]) for failing, most in asked)

    def _doubtful(self, state: ClusterState, more: Integers = _NO_INSTANCES, at: Integers = _NO_INSTANCES) -> Integers:
        """Return the nodes whose instances, with `more` on the nodes `at`, may not all find a place, judged by counting places."""
        if not len(self.instances):
            return _NO_INSTANCES
        instances, homes = np.append(self.instances, more), np.append(state.primary[self.instances], at)
        needs = _Needs.of(state, self, instances, homes)
        room = state.quantities[Quantity.MEMORY, self.nodes][:, None] - state.peers[np.ix_(self.nodes, self.nodes)]
        # What may go anywhere finds places of its size side by side; what is barred from some nodes is promised one place on each.
        takes = np.maximum(room >= needs.memory, room // np.maximum(needs.memory, 1.0) * (needs.barred == 0))
        np.fill_diagonal(takes, 0.0)
        enough = takes.sum(axis=0) - needs.barred >= needs.count
        return self.nodes[(needs.count > 0) & ~enough]

    def _doubtful_sets(self, state: ClusterState, more: Integers = _NO_INSTANCES, at: Integers = _NO_INSTANCES) -> Integers:
        """Return the rows of sets whose instances, with `more` on the nodes `at`, may not all find a place, judged by counting places."""
        if not self.sets.failures:
            return _NO_INSTANCES
        fails = self.sets.fails
        instances, homes = np.append(self.instances, more), np.append(state.primary[self.instances], at)
        needs = _Needs.of(state, self, instances, homes)
        room = state.quantities[Quantity.MEMORY, self.nodes] - fails.astype(float) @ state.peers[np.ix_(self.nodes, self.nodes)].T
        largest = np.where(fails, needs.memory, 0.0).max(axis=1)[:, None]
        barred = np.where(fails, needs.barred, 0).max(axis=1)
        takes = np.maximum(room >= largest, np.maximum(room, 0.0) // np.maximum(largest, 1.0) * (barred == 0)[:, None]) * ~fails
        enough = takes.sum(axis=1) - barred >= fails @ needs.count
        overloaded = ((room < 0) & ~fails).any(axis=1)
        return np.flatnonzero(~enough | overloaded)


@dataclass(frozen=True)
class FailingSets:
    """Sets of nodes that may fail together: F sets, K nodes of the group that are up."""

    failures: tuple[tuple[int, ...], ...]
    fails: Booleans
    """[F, K]"""
    allowed: Floats
    """[F]: MiB that may be stranded."""

    @classmethod
    def of(cls, state: ClusterState, group: int, nodes: Integers) -> FailingSets:
        """Return the sets of a group, as if none stranded anything."""
        failures = failures_of(state, group)
        fails = np.array([np.isin(nodes, failing) for failing in failures], dtype=bool).reshape(len(failures), len(nodes))
        # What all nodes of a group carry has no other place, however many more come.
        return cls(failures, fails, np.where(fails.all(axis=1), np.inf, 0.0))

    def without(self, leaving: Sequence[int]) -> FailingSets:
        """Return the sets that have none of some nodes."""
        kept = [row for row, failing in enumerate(self.failures) if not set(failing) & set(leaving)]
        return FailingSets(tuple(self.failures[row] for row in kept), self.fails[kept], self.allowed[kept])


@dataclass(frozen=True)
class _Needs:
    """For each node of the group as the failing one, [K]: its instances, the most that one of them needs, and nodes barred to any."""

    count: Integers
    memory: Floats
    barred: Integers

    @classmethod
    def of(cls, state: ClusterState, reserve: SharedReserve, instances: Integers, homes: Integers) -> _Needs:
        nodes = reserve.nodes
        column = np.full(len(state.offline), NOWHERE)
        column[nodes] = np.arange(len(nodes))
        facts = state.facts.instances
        at = column[homes]
        here, at = instances[at != NOWHERE], at[at != NOWHERE]
        memory = np.zeros(len(nodes))
        np.maximum.at(memory, at, facts.memory[here])
        barred = np.zeros(len(nodes), dtype=np.int64)
        np.maximum.at(barred, at, _barred(state, reserve, here))
        count = np.bincount(at, minlength=len(nodes))
        return cls(count, memory, barred)


def _barred(state: ClusterState, reserve: SharedReserve, instances: Integers) -> Integers:
    """Return [len(instances)]: how many nodes an instance may not use for its tags, its pool or the hardware that it needs, at most."""
    facts, nodes = state.facts, reserve.nodes
    barred = np.zeros(len(instances), dtype=np.int64)
    pool = facts.instances.pool[instances]
    named = pool != ANYWHERE
    barred[named] = (~facts.nodes.pools[np.ix_(nodes, pool[named])]).sum(axis=0)
    if facts.slots.hardware.any():
        barred += (~can_run(facts, instances, nodes)).sum(axis=1)
    soft = facts.slots.soft
    if not soft:
        return barred
    # A failover of the same node may bring a tag along, too: one more node for each tag's use anywhere.
    users = (state.tag_counts[nodes] > 0).sum(axis=0) + reserve.mirrored_tags
    for position, instance in enumerate(instances.tolist()):
        barred[position] += int(users[[tag for tag in facts.instances.exclusion[instance] if tag < soft]].sum())
    return barred


def _mirrored_tags(state: ClusterState) -> Integers:
    """Return how many mirrored instances have each exclusion tag."""
    counts = np.zeros(len(state.facts.slots.names), dtype=np.int64)
    for instance in np.flatnonzero(state.secondary != NOWHERE).tolist() if counts.size else ():
        counts[list(state.facts.instances.exclusion[instance])] += 1
    return counts


Reserves = Mapping[int, SharedReserve]
"""What must stay so, by group; groups in which nothing restarts elsewhere have none."""


def reserves_of(state: ClusterState, instances: Sequence[int], groups: Iterable[int], leaving: Sequence[int]) -> Reserves:
    """Return the reserves of groups that any of the instances may go to; the nodes they leave may fail as they like."""
    arriving = np.array([instance for instance in instances if state.facts.instances.restarts[instance]], dtype=np.int64)
    found = {}
    for group in groups:
        reserve = SharedReserve.of(state, group).without(leaving)
        found[group] = dataclasses.replace(reserve, instances=np.union1d(reserve.instances, arriving))
    return {group: reserve for group, reserve in found.items() if reserve.matters}


def holds(reserves: Reserves, state: ClusterState, targets: Mapping[int, Place]) -> bool:
    """Return whether in no group that the targets are in a node's failure strands more than it may."""
    groups = {int(state.facts.nodes.group[primary]) for primary, _secondary in targets.values()}
    return all(reserves[group].holds(state) for group in groups & reserves.keys())


def places_that_hold(reserves: Reserves, state: ClusterState, targets: Mapping[int, Place]) -> dict[int, Place]:
    """Return the targets if they hold together, else, in their order, those that hold with the ones before them."""
    if holds(reserves, with_places(state, targets), targets):
        return dict(targets)
    now = state.copy()
    kept: dict[int, Place] = {}
    for instance, place in targets.items():
        home = now.place_of(instance)
        now.place(instance, *place)
        if holds(reserves, now, {instance: place}):
            kept[instance] = place
        else:
            now.place(instance, *home)
    return kept
