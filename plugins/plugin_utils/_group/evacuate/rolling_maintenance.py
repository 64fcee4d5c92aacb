# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rolling maintenance: as few sets of nodes as possible, each of which may be down together with nothing lost.

    rollout = roll(state, nodes, options)       # Rollout: sets in order, and nodes that cannot be down at all

Two nodes that hold both copies of an instance are in conflict, and there must be room for all instances that leave a set.
Sets begin as colours of the graph of conflicts, by several orders (networkx), once with and once without the conflicts that
two primaries of a common secondary have when that has no memory for both. Colours without room are split, then sets
are joined, and few nodes are arranged by trying everything. Where finding places for all that leaves takes long, sets are
first believed to have room unless sums forbid it, and only those that come out are tried; what fails is learned, and
the search starts again. Sets are meant to be done one after the other, each with its instances back before the next. The largest
comes first, the master last.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from ..._common import libraries
from ..._common.highs import Effort
from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Booleans, Floats, Integers, Quantity
from ..cluster.model import MIRRORED_OUTSIDE
from ..cluster.state import ClusterState
from ..metrics.redundancy import failure_strands_more
from ..metrics.shared_redundancy import SharedReserve
from .downtime import Departure, DowntimeOptions, Stuck, conflicts, leave, lost_copies

libraries.expect("networkx")

_TOLERANCE = 1e-6


class EvacuationRoom:
    """Sums of one state, which must not change while this is used."""

    def __init__(self, state: ClusterState) -> None:
        instances, nodes = state.facts.instances, state.facts.nodes
        outside = np.array([model.disk_template in MIRRORED_OUTSIDE for model in instances.models], dtype=bool)
        self._state = state
        self._mirrored = (state.primary != NOWHERE) & (state.secondary != NOWHERE)
        self._mobile = (state.primary != NOWHERE) & (self._mirrored | outside)
        self._groups = len(state.facts.cluster.groups)
        self._cpus = nodes.cpu_limit - state.quantities[Quantity.CPUS]
        self._load, self._allowed = np.zeros(len(nodes.names)), np.zeros(len(nodes.names))
        restarting = np.flatnonzero(instances.restarts & (state.primary != NOWHERE))
        np.add.at(self._load, state.primary[restarting], instances.memory[restarting])
        for group in {state.group_of(int(instance)) for instance in restarting}:
            members = state.group_nodes(group)
            self._allowed[members] = SharedReserve.of(state, group).allowed[members]

    def may_suffice(self, nodes: Collection[int]) -> bool:
        """Return False when the online nodes that remain in some group cannot have room for all that leaves `nodes`."""
        state, facts = self._state, self._state.facts.instances
        # One more entry, which is False, is what NOWHERE points at.
        down = np.zeros(len(state.offline) + 1, dtype=bool)
        down[list(nodes)] = True
        first = np.flatnonzero(down[state.primary] & self._mobile)
        second = np.flatnonzero(down[state.secondary] & self._mobile)
        stays = ~down[:-1] & ~state.offline
        memory = -self._leaving(first, facts.as_primary[Quantity.MEMORY])
        disk = -self._leaving(first, facts.as_primary[Quantity.DISK]) - self._leaving(second, facts.as_secondary[Quantity.DISK])
        cpus = self._leaving(first, facts.as_primary[Quantity.CPUS])
        room = (
            (memory, self._memory_room(stays, down[:-1])),
            (disk, np.maximum(state.quantities[Quantity.DISK], 0.0)),
            (cpus, np.maximum(self._cpus, 0.0)),
        )
        if any((need > self._summed(stays, left) + _TOLERANCE).any() for need, left in room):
            return False
        return self._can_restart(stays, memory, np.union1d(first, second))

    def _leaving(self, instances: Integers, need: Floats) -> Floats:
        """Return [G]: what instances need in all, by the group of their primary."""
        groups = self._state.facts.nodes.group[self._state.primary[instances]]
        total: Floats = np.bincount(groups, need[instances], minlength=self._groups).astype(float)
        return total

    def _summed(self, stays: Booleans, values: Floats) -> Floats:
        """Return [G]: the sum of the values of the nodes that stay."""
        total: Floats = np.bincount(self._state.facts.nodes.group[stays], values[stays], minlength=self._groups).astype(float)
        return total

    def _memory_room(self, stays: Booleans, down: Booleans) -> Floats:
        """Return [N]: memory without what is kept for failovers between nodes that stay; what is broken may stay as broken."""
        state = self._state
        left = state.quantities[Quantity.MEMORY]
        kept = np.zeros(len(left))
        kept[stays] = state.peers[stays][:, ~down].max(axis=1, initial=0.0)
        least = np.maximum(kept - np.maximum(state.reserved - left, 0.0), np.minimum(left, 0.0))
        room: Floats = left - least
        return room

    def _can_restart(self, stays: Booleans, memory: Floats, moved: Integers) -> bool:
        """Return whether what each node that stays carries on shared storage may find memory on the others.

        What arrives at a node by shared storage takes from what it has left as much as it adds to what must restart.
        Only moves are held to this: what the others strand without the nodes that are down, they may strand.
        """
        if not self._load.any():
            return True
        state = self._state
        group = state.facts.nodes.group
        left = state.quantities[Quantity.MEMORY]
        # A mirrored instance takes memory but does not restart elsewhere, and may even leave a node that stays.
        pure, touched = np.ones(self._groups, dtype=bool), np.zeros(self._groups, dtype=bool)
        pure[group[state.primary[moved[self._mirrored[moved]]]]] = False
        touched[group[state.primary[moved]]] = True
        after = self._summed(stays, np.maximum(left, 0.0)) - memory
        need = self._load + np.where(pure[group], np.maximum(left, 0.0), 0.0) - after[group]
        stranded = np.where(stays & touched[group], np.minimum(need, self._load), 0.0) - _TOLERANCE
        doubtful = np.flatnonzero(stranded > self._allowed).tolist()
        if not doubtful:
            return True
        remaining = state.copy()
        remaining.drain(np.flatnonzero(~stays))
        return all(failure_strands_more(remaining, (node,), float(stranded[node]), Effort(0)) for node in doubtful)


ORDERS = ("largest_first", "saturation_largest_first", "smallest_last", "connected_sequential_bfs")
MOST_EXACT = 9
"""Nodes up to which every arrangement is tried."""
MOST_HOPES = 12
"""How often sets are sought that are believed to have room, before each one is tried on the way."""
_Sets = list[list[int]]
_Feasible = Callable[[Collection[int]], bool]


@dataclass(frozen=True)
class NodeSet:
    """Nodes that may be down together, and what leaves them before."""

    nodes: tuple[int, ...]
    departure: Departure


@dataclass(frozen=True)
class Rollout:
    """Sets in the order in which they are maintained; `skipped` are nodes that cannot be down even alone, and why."""

    sets: tuple[NodeSet, ...]
    skipped: tuple[tuple[int, Stuck], ...]


class _Departures:
    """Remembers what leaves sets of nodes, and so which may be down together."""

    def __init__(self, state: ClusterState, options: DowntimeOptions, most_nodes: int | None) -> None:
        self._state = state
        self._options = options
        self._most_nodes = most_nodes
        self._known: dict[frozenset[int], Departure | Stuck] = {}
        self._room = EvacuationRoom(state) if options.full else None

    def of(self, nodes: Iterable[int]) -> Departure | Stuck:
        """Return what leaves the nodes, or the instances in the way."""
        down = frozenset(nodes)
        if down not in self._known:
            self._known[down] = leave(self._state, sorted(down), self._options)
        return self._known[down]

    def are_possible(self, nodes: Collection[int]) -> bool:
        """Return whether the nodes may be down together."""
        return self.may_be_possible(nodes) and isinstance(self.of(nodes), Departure)

    def may_be_possible(self, nodes: Collection[int]) -> bool:
        """Return whether nothing that is known already, or is soon seen, forbids that the nodes are down together."""
        down = frozenset(nodes)
        if self._most_nodes is not None and len(down) > self._most_nodes:
            return False
        if down in self._known:
            return isinstance(self._known[down], Departure)
        return not lost_copies(self._state, down) and (self._room is None or self._room.may_suffice(down))


def roll(state: ClusterState, nodes: Sequence[int], options: DowntimeOptions, most_nodes: int | None = None) -> Rollout:
    """Return the sets in which `nodes`, which are online, may be down; no set has more than `most_nodes`."""
    departures = _Departures(state, options, most_nodes)
    alone = {node: departures.of([node]) for node in nodes}
    skipped = tuple((node, answer) for node, answer in alone.items() if isinstance(answer, Stuck))
    able = [node for node in nodes if isinstance(alone[node], Departure)]
    for _attempt in range(MOST_HOPES if options.full else 0):
        sets = _partition(state, able, options, departures.may_be_possible)
        tried = [departures.are_possible(members) for members in sets]
        if all(tried):
            break
    else:
        sets = _partition(state, able, options, departures.are_possible)
    return Rollout(_ordered(state, sets, departures), skipped)


def _partition(state: ClusterState, nodes: Sequence[int], options: DowntimeOptions, feasible: _Feasible) -> _Sets:
    """Return the fewest feasible sets that are found."""
    sets = min((_improved(found, feasible) for found in _colourings(state, nodes, options, feasible)), key=len, default=[])
    return _exact(nodes, sets, feasible) if len(nodes) <= MOST_EXACT else sets


def _ordered(state: ClusterState, sets: _Sets, departures: _Departures) -> tuple[NodeSet, ...]:
    """Return the largest set first, and the master last in the last."""
    master = [node.master for node in state.facts.cluster.nodes]
    ordered = sorted(sets, key=lambda members: (any(master[node] for node in members), -len(members), min(members)))
    found = []
    for members in ordered:
        departure = departures.of(members)
        if isinstance(departure, Departure):
            found.append(NodeSet(tuple(sorted(members, key=lambda node: (master[node], node))), departure))
    return tuple(found)


def _colourings(state: ClusterState, nodes: Sequence[int], options: DowntimeOptions, feasible: _Feasible) -> list[_Sets]:
    """Return partitions of the nodes into feasible sets, by every order of colouring of both graphs."""
    if not nodes:
        return []
    networkx = libraries.networkx
    graph = networkx.Graph()
    graph.add_nodes_from(nodes)
    members = set(nodes)
    graph.add_edges_from(pair for pair in conflicts(state) if members.issuperset(pair))
    graphs = [graph]
    if not options.offline:
        crowded = graph.copy()
        crowded.add_edges_from(_crowded(state, members))
        graphs.append(crowded)
    found = []
    for conflict_graph, order in itertools.product(graphs, ORDERS):
        colours = networkx.greedy_color(conflict_graph, strategy=order)
        classes = [[node for node in nodes if colours[node] == colour] for colour in sorted(set(colours.values()))]
        found.append([part for members_of in classes for part in _split(members_of, feasible)])
    return found


def _crowded(state: ClusterState, members: set[int]) -> list[tuple[int, int]]:
    """Return pairs of primaries with a common secondary that has no memory for the running instances of both."""
    models = state.facts.instances.models
    brings: dict[tuple[int, int], float] = {}
    for instance, (primary, secondary) in enumerate(zip(state.primary.tolist(), state.secondary.tolist())):
        if secondary != NOWHERE and models[instance].uses_memory and primary in members:
            brings[secondary, primary] = brings.get((secondary, primary), 0.0) + models[instance].memory
    free = state.quantities[Quantity.MEMORY]
    by_secondary: dict[int, list[int]] = {}
    for secondary, primary in brings:
        by_secondary.setdefault(secondary, []).append(primary)
    return [
        (first, second)
        for secondary, primaries in by_secondary.items()
        for first, second in itertools.combinations(primaries, 2)
        if brings[secondary, first] + brings[secondary, second] > free[secondary]
    ]


def _split(members: Sequence[int], feasible: _Feasible) -> _Sets:
    """Return feasible parts, each node in the first that takes it."""
    if feasible(members):
        return [list(members)]
    parts: _Sets = []
    for node in members:
        part = next((part for part in parts if feasible([*part, node])), None)
        if part is None:
            parts.append([node])
        else:
            part.append(node)
    return parts


def _improved(sets: _Sets, feasible: _Feasible) -> _Sets:
    """Return fewer sets, if the nodes of some set find places in the others; the smallest are tried first."""
    improved = True
    while improved:
        improved = False
        for victim in sorted(sets, key=len):
            others = [list(members) for members in sets if members is not victim]
            if _absorbed(victim, others, feasible):
                sets, improved = others, True
                break
    return sets


def _absorbed(victim: Sequence[int], others: _Sets, feasible: _Feasible) -> bool:
    """Put every node of `victim` into one of `others`, which are changed, and return whether that was possible."""
    for node in victim:
        home = next((members for members in others if feasible([*members, node])), None)
        if home is None:
            return False
        home.append(node)
    return True


def _exact(nodes: Sequence[int], best: _Sets, feasible: _Feasible) -> _Sets:
    """Return a partition into the fewest feasible sets, found by trying all that has fewer sets than `best`."""

    def search(position: int, sets: _Sets, limit: int) -> _Sets | None:
        if position == len(nodes):
            return [list(members) for members in sets]
        for members in sets:
            if feasible([*members, nodes[position]]):
                members.append(nodes[position])
                found = search(position + 1, sets, limit)
                members.pop()
                if found is not None:
                    return found
        if len(sets) < limit:
            return search(position + 1, [*sets, [nodes[position]]], limit)
        return None

    for limit in range(1, len(best)):
        found = search(0, [], limit)
        if found is not None:
            return found
    return best
