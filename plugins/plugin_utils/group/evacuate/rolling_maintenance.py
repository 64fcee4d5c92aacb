# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rolling maintenance: as few sets of nodes as possible, each of which may be down together with nothing lost.

    rollout = roll(state, nodes, options)       # Rollout: sets in order, and nodes that cannot be down at all

Two nodes that hold both copies of an instance are in conflict; besides there must be room for all that leaves a set.
Sets begin as colours of the graph of conflicts, by several orders (networkx), once with and once without the conflicts that
two primaries of a common secondary have when that has no memory for both. Colours without room are split, then sets
are joined, and few nodes are arranged by trying everything. Where finding places for all that leaves takes long, sets are
first believed to have room unless sums forbid it, and only those that come out are tried; what fails is learned, and
the search begins anew. Sets are meant to be done one after the other, each with its instances back before the next. The largest
comes first, the master last.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import networkx

from ..cluster.arrays import NOWHERE, Quantity
from ..cluster.state import ClusterState
from .downtime import Departure, DowntimeOptions, Stuck, conflicts, leave, lost_copies
from .evacuation_room import EvacuationRoom

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
        """Return what leaves the nodes, or who is in the way."""
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
