# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state that every algorithm works on: placements, and what they leave on each node, as arrays.

    state = ClusterState.from_cluster(cluster, unplaced=new_instances)
    state.place(instance, primary, secondary)     # an allocation or a move: takes it off its old nodes first
    state.remove(instance)
    with state.lifted(instance): ...              # as if it were nowhere; put back exactly afterwards
    trial = state.copy()                          # facts are shared, O(N^2) for the reserved memory
    state.to_cluster()                            # the model again, with free memory and disk brought up to date

Instances and nodes are known by position: nodes as in `cluster.nodes`, instances as in `cluster.instances` followed
by `unplaced`. Scores of all possible places of an instance are in score.py, limits in limits.py; both look at an
instance that is nowhere, so wrap them in `lifted` for one that lives somewhere.

N nodes, I instances, Q quantities, T slots of exclusion tags and rules, P pools. Memory is 8 N^2 bytes and a few hundred bytes an instance.
The quantities are those of Ganeti's htools; `Quantity` defines them.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ..._common.libraries import np
from .arrays import ANYWHERE, NOWHERE, Booleans, Facts, Floats, Integers, Quantity, collect_facts, storage_of
from .model import Cluster, Instance, Node, NodeState


@dataclass
class ClusterState:
    """Arrays that `place` keeps up to date in O(Q + N) for each move; see the module's docstring."""

    facts: Facts
    primary: Integers
    """[I]: position of the primary node, or NOWHERE."""
    secondary: Integers
    """[I]: position of the secondary node, or NOWHERE."""
    quantities: Floats
    """[Q, N]"""
    peers: Floats
    """[N, N]: memory that row keeps for the instances whose primary is column."""
    reserved: Floats
    """[N]: the most memory any other node's failure would need here; the row maximum of `peers`."""
    fails_n1: Booleans
    """[N]: htools' N+1 flag: taken from reported free memory at first, from the books once a node is touched."""
    tag_counts: Integers
    """[N, T]: primaries in each slot."""
    location: Floats
    """[N]: htools' location score of the primaries: shared failure domains and desired locations missed."""
    offline: Booleans
    """[N]: takes nothing: drained, marked offline, or unreachable; so htools counts them."""
    drained: Booleans
    """[N]: which of those that are offline work, and answer."""
    unreachable: Booleans
    """[N]: offline nodes that do not answer without being marked: their instances stay as they are."""
    pool_free: Floats
    """[N, P]: free space; infinite where unknown. All nodes of a shared pool see the same number."""
    missing_memory: Floats
    """[N]: memory that the books say is free and the node says is not (negative: the reverse)."""

    @classmethod
    def from_cluster(cls, cluster: Cluster, unplaced: Sequence[Instance] = ()) -> ClusterState:
        """Return the state of a checked cluster; `unplaced` instances follow its own and are nowhere yet."""
        facts = collect_facts(cluster, (*cluster.instances, *unplaced))
        positions = cluster.node_positions()
        waiting = [NOWHERE] * len(unplaced)
        primary = np.array([positions.get(i.primary, NOWHERE) for i in cluster.instances] + waiting, dtype=np.int64)
        secondary = np.array([positions.get(i.secondary, NOWHERE) for i in cluster.instances] + waiting, dtype=np.int64)
        quantities, missing = _initial_quantities(facts, primary, secondary)
        peers = _initial_peers(facts, primary, secondary)
        reserved = peers.max(axis=1, initial=0.0)
        reported = np.array([node.free_memory for node in cluster.nodes], dtype=float)
        return cls(
            facts=facts,
            primary=primary,
            secondary=secondary,
            quantities=quantities,
            peers=peers,
            reserved=reserved,
            fails_n1=reported < reserved,
            tag_counts=_initial_tags(facts, primary),
            location=_initial_locations(facts, primary, secondary),
            offline=np.array([node.state != NodeState.UP for node in cluster.nodes], dtype=bool),
            drained=np.array([node.state == NodeState.DRAINED for node in cluster.nodes], dtype=bool),
            unreachable=np.array([node.state == NodeState.UNREACHABLE for node in cluster.nodes], dtype=bool),
            pool_free=_initial_pools(facts),
            missing_memory=missing,
        )

    def copy(self) -> ClusterState:
        """Return a state that can be changed without changing this one."""
        arrays = {name: value.copy() for name, value in vars(self).items() if name != "facts"}
        return ClusterState(facts=self.facts, **arrays)

    def place(self, instance: int, primary: int, secondary: int = NOWHERE) -> None:
        """Put an instance on its node or nodes, taking it off those it is on; limits are not checked."""
        self._change(instance, *self.place_of(instance), -1.0)
        self._change(instance, primary, secondary, 1.0)
        self.primary[instance] = primary
        self.secondary[instance] = secondary

    def add(self, instance: int, primary: int, secondary: int = NOWHERE) -> None:
        """Count an instance on more nodes without taking it off those it is on, for bounds on what may happen on the way."""
        self._change(instance, primary, secondary, 1.0)

    def remove(self, instance: int) -> None:
        """Take an instance off its nodes; nothing happens when it has none."""
        self._change(instance, *self.place_of(instance), -1.0)
        self.primary[instance] = NOWHERE
        self.secondary[instance] = NOWHERE

    @contextmanager
    def lifted(self, instance: int) -> Iterator[ClusterState]:
        """Within the context the instance is nowhere; afterwards all is exactly as before."""
        home = self.place_of(instance)
        flags = self.fails_n1.copy()
        self.remove(instance)
        try:
            yield self
        finally:
            self.place(instance, *home)
            self.fails_n1[:] = flags

    @property
    def marked_offline(self) -> Booleans:
        """Return [N]: which nodes are marked offline, so that nothing can be read there and what ran there is down."""
        offline_nodes: Booleans = self.offline & ~self.drained & ~self.unreachable
        return offline_nodes

    def drain(self, nodes: Sequence[int] | Integers) -> None:
        """Let nothing go to nodes any more; their instances may stay, or leave as they leave a working node."""
        self.drained[nodes] |= ~self.offline[nodes]
        self.offline[nodes] = True

    def answers(self, node: int) -> bool:
        """Return whether a node answers."""
        return not self.offline[node] or bool(self.drained[node])

    def node_state(self, node: int) -> NodeState:
        """Return a node's state."""
        if not self.offline[node]:
            return NodeState.UP
        if self.unreachable[node]:
            return NodeState.UNREACHABLE
        return NodeState.DRAINED if self.drained[node] else NodeState.OFFLINE

    def online(self) -> Integers:
        """Return the positions of the nodes that are not offline."""
        return np.flatnonzero(~self.offline)

    def group_nodes(self, group: int) -> Integers:
        """Return the positions of the nodes of a group, in order."""
        return np.flatnonzero(self.facts.nodes.group == group)

    def place_of(self, instance: int) -> tuple[int, int]:
        """Return the instance's nodes, NOWHERE for those that it does not have."""
        return self.primary.item(instance), self.secondary.item(instance)

    def group_of(self, instance: int) -> int:
        """Return the group of the instance's primary, or NOWHERE."""
        primary = int(self.primary[instance])
        return NOWHERE if primary == NOWHERE else int(self.facts.nodes.group[primary])

    def primaries(self, node: int) -> Integers:
        """Return the instances whose primary is `node`."""
        return np.flatnonzero(self.primary == node)

    def secondaries(self, node: int) -> Integers:
        """Return the instances whose secondary is `node`."""
        return np.flatnonzero(self.secondary == node)

    def to_cluster(self) -> Cluster:
        """Return the model of this state; instances that are nowhere are left out.

        Reported free memory follows the moves, so that the result, loaded again, has the same unaccounted memory.
        """
        cluster, names = self.facts.cluster, self.facts.nodes.names
        homes = zip(self.facts.instances.models, self.primary.tolist(), self.secondary.tolist())
        instances = tuple(
            dataclasses.replace(instance, primary=names[primary], secondary="" if secondary == NOWHERE else names[secondary])
            for instance, primary, secondary in homes
            if primary != NOWHERE
        )
        nodes = tuple(self._node(position, node) for position, node in enumerate(cluster.nodes))
        return dataclasses.replace(cluster, nodes=nodes, instances=instances)

    def _node(self, position: int, node: Node) -> Node:
        quantity = self.quantities[:, position]
        by_the_books = quantity[Quantity.MEMORY] + max(0.0, self.missing_memory[position])
        pools = dict(zip(self.facts.pool_names, self.pool_free[position]))
        return dataclasses.replace(
            node,
            free_memory=int(by_the_books - self.missing_memory[position]),
            free_disk=int(quantity[Quantity.DISK]),
            free_spindles=int(quantity[Quantity.SPINDLES]) if node.exclusive_storage else node.free_spindles,
            offline=self.node_state(position) == NodeState.OFFLINE,
            drained=bool(self.offline[position]) and (node.drained or bool(self.drained[position])),
            unreachable=bool(self.offline[position]) and node.unreachable,
            storage=tuple(
                pool if pool.free is None or pool.name not in pools else dataclasses.replace(pool, free=int(pools[pool.name]))
                for pool in node.storage
            ),
        )

    def _change(self, instance: int, primary: int, secondary: int, sign: float) -> None:
        facts = self.facts.instances
        pool = int(facts.pool[instance])
        if primary != NOWHERE:
            self.quantities[:, primary] += sign * facts.as_primary[:, instance]
            for tag in facts.exclusion[instance]:
                self.tag_counts[primary, tag] += int(sign)
            if cost := location_cost(self.facts, instance, primary, secondary):
                self.location[primary] += sign * cost
        if secondary != NOWHERE:
            self.quantities[:, secondary] += sign * facts.as_secondary[:, instance]
            self._reserve(secondary, primary, sign * float(facts.reserves[instance]))
        is_real = bool(facts.real[instance])
        for node in (primary, secondary):
            if node == NOWHERE:
                continue
            if pool != ANYWHERE:
                disk = sign * float(facts.disk[instance])
                if self.facts.pool_shared[pool]:
                    self.pool_free[:, pool] -= disk
                else:
                    self.pool_free[node, pool] -= disk
            if is_real:
                self.fails_n1[node] = self.quantities[Quantity.MEMORY, node] <= self.reserved[node]

    def _reserve(self, secondary: int, primary: int, memory: float) -> None:
        self.peers[secondary, primary] += memory
        if memory > 0:
            self.reserved[secondary] = max(self.reserved[secondary], self.peers[secondary, primary])
        elif memory < 0:
            self.reserved[secondary] = np.maximum.reduce(self.peers[secondary])


def location_cost(facts: Facts, instance: int, primary: int, secondary: int) -> float:
    """Return what an instance adds to the location score of its primary; forthcoming ones add nothing."""
    if not facts.instances.real[instance] or not (facts.location_tags or facts.instances.wishes[instance]):
        return 0.0
    shared = 0 if secondary == NOWHERE else int(facts.nodes.shared_locations[primary, secondary])
    met = int(facts.nodes.locations[primary, list(facts.instances.desired[instance])].sum())
    return float(shared + int(facts.instances.wishes[instance]) - met)


def _placed(homes: Integers) -> t.Any:
    return np.flatnonzero(homes != NOWHERE)


def _initial_quantities(facts: Facts, primary: Integers, secondary: Integers) -> tuple[Floats, Floats]:
    """Return [Q, N] and the memory that is missing on each node."""
    nodes, instances = facts.cluster.nodes, facts.instances
    used = np.zeros((len(Quantity), len(nodes)))
    for homes, needs in ((primary, instances.as_primary), (secondary, instances.as_secondary)):
        placed = _placed(homes)
        for quantity in Quantity:
            used[quantity] += np.bincount(homes[placed], weights=needs[quantity, placed], minlength=len(nodes))
    by_the_books = np.floor(facts.nodes.total_memory) - [node.node_memory for node in nodes] + used[Quantity.MEMORY]
    reported = np.array([node.free_memory for node in nodes], dtype=float)
    missing = by_the_books - reported
    quantities = used.copy()
    quantities[Quantity.MEMORY] = by_the_books - np.maximum(0.0, missing)
    # A running instance's memory is already gone from what the node reports.
    quantities[Quantity.MEMORY_PLANNED] = reported + used[Quantity.MEMORY_PLANNED] - used[Quantity.MEMORY]
    for real, planned, left in (
        (Quantity.DISK, Quantity.DISK_PLANNED, [node.free_disk for node in nodes]),
        (Quantity.SPINDLES, Quantity.SPINDLES_PLANNED, [node.free_spindles for node in nodes]),
    ):
        quantities[real] = left
        quantities[planned] = left + used[planned] - used[real]
    for quantity in (Quantity.CPUS, Quantity.CPUS_PLANNED):
        quantities[quantity] += [node.node_cpus for node in nodes]
    return quantities, missing


def _initial_peers(facts: Facts, primary: Integers, secondary: Integers) -> Floats:
    peers = np.zeros((len(facts.nodes.names), len(facts.nodes.names)))
    mirrored = np.flatnonzero((primary != NOWHERE) & (secondary != NOWHERE))
    np.add.at(peers, (secondary[mirrored], primary[mirrored]), facts.instances.reserves[mirrored])
    return peers


def _initial_tags(facts: Facts, primary: Integers) -> Integers:
    counts = np.zeros((len(facts.nodes.names), len(facts.slots.names)), dtype=np.int64)
    for instance in _placed(primary):
        for tag in facts.instances.exclusion[instance]:
            counts[primary[instance], tag] += 1
    return counts


def _initial_locations(facts: Facts, primary: Integers, secondary: Integers) -> Floats:
    location = np.zeros(len(facts.nodes.names))
    if not facts.location_tags and not facts.instances.wishes.any():
        return location
    for instance in _placed(primary):
        location[primary[instance]] += location_cost(facts, int(instance), int(primary[instance]), int(secondary[instance]))
    return location


def _initial_pools(facts: Facts) -> Floats:
    free = np.full((len(facts.nodes.names), len(facts.pool_names)), np.inf)
    position = {name: column for column, name in enumerate(facts.pool_names)}
    for row, node in enumerate(facts.cluster.nodes):
        for pool in storage_of(node):
            if pool.free is not None and pool.name in position:
                free[row, position[pool.name]] = pool.free
    shared = facts.pool_shared
    free[:, shared] = free[:, shared].min(axis=0, initial=np.inf)
    return free
