# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Room for instances that do not fit: the fewest moves of others, of these the ones that copy least, after which as many as possible fit.

    room = make_room(state, [(instance, request), ...])
    room.moves, room.results          # the moves, in an order in which they can be made, and the places after them

The new instances and those that may move are assigned together, by the integer program of assignment.py: a new instance outweighs all
moves, a move all copies, a copy the place. That program knows neither the order of moves nor restarts on shared storage, so its answer
is checked, and where it fails sets of moves are tried, the fewest first. Movable instances stay in their group. In large groups only nodes
where the least is missing are cleared, and only nodes with the most room take what leaves them; `fewest` says whether every set was tried.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..._common.highs import Effort
from ..._common.libraries import np, npt
from ..cluster.arrays import Floats, Integers, Quantity
from ..cluster.changes import after_moves, with_places
from ..cluster.moves import Move, Place, can_move
from ..cluster.state import ClusterState
from ..metrics.limits import Bounds, Limit, broken_at_home, separated
from ..metrics.verdicts import EXACT, primary_verdict, secondary_verdict
from ..plan.order import DIRECT, Guard, order, reserves_left
from .assignment import assign
from .batch import choices_of_new, place_instances
from .placement import PlacementRequest, PlacementResult
from .places import Choices, Origin, Weights, places_for

Requests = Sequence[tuple[int, PlacementRequest]]
MOST_NODES = 24
"""Nodes that are cleared or take something; of larger groups those with the least missing, and those with the most room."""
MOST_MOVABLE = 120
"""Instances that may move, the smallest first where there are more."""
MOST_PLACES = 4_000
"""Places that the program may choose from."""
EFFORT = 100_000
MOST_TRIED = 3_000
"""Sets of moves that are tried in small groups where the program's answer does not hold."""
SMALL = 8
"""Nodes up to which they are."""
MOST_MOVES = 4
"""The largest of these sets."""
_STRICT_UP_TO = 16
"""Up to this number of moves, one more move outweighs all data that they copy."""


@dataclass(frozen=True)
class Room:
    """Moves that make room, and where the new instances go after them; `fewest`: no fewer moves make as much room."""

    moves: tuple[Move, ...]
    results: tuple[PlacementResult, ...]
    fewest: bool

    @property
    def placed(self) -> int:
        """Return how many find a place."""
        return sum(bool(result.placements) for result in self.results)


def make_room(state: ClusterState, requests: Requests) -> Room:
    """Return the fewest, cheapest moves after which as many new instances as possible have a place; `state` stays as it is."""
    results, _after = place_instances(state, requests)
    best = Room((), tuple(results), fewest=False)
    problem = _Problem.of(state, requests)
    if best.placed == len(requests) or not problem.movable:
        return dataclasses.replace(best, fewest=best.placed == len(requests) or problem.complete)
    wanted, targets, proven = problem.assigned()
    if wanted <= best.placed:
        return dataclasses.replace(best, fewest=proven)
    found = best
    for trial, is_exact in problem.attempts(targets):
        found = max(found, _checked(state, requests, trial), key=lambda room: room.placed)
        if found.placed == wanted:
            return dataclasses.replace(found, fewest=proven and is_exact)
    return found


def _checked(state: ClusterState, requests: Requests, targets: Mapping[int, Place]) -> Room:
    """Return the places after moves to targets; without moves if these have no order, or a failure of a node strands more."""
    guard = Guard.at_every_move(state, reserves_left(state, targets))
    found = order(state, targets, guard, DIRECT)
    moves = () if found.blocked else found.moves
    results, _after = place_instances(after_moves(state, moves), requests)
    return Room(moves, tuple(results), fewest=False)


@dataclass(frozen=True)
class _Problem:
    """The movable instances, and [K] the nodes that are cleared or take something; `complete`: nothing is left out."""

    state: ClusterState
    requests: Requests
    movable: tuple[int, ...]
    nodes: Integers
    complete: bool

    @classmethod
    def of(cls, state: ClusterState, requests: Requests) -> _Problem:
        online = state.online()
        groups = {request.group for _instance, request in requests}
        if None not in groups:
            online = online[np.isin(state.facts.nodes.group[online], [group for group in groups if group is not None])]
        cleared = online if len(online) <= MOST_NODES else _least_missing(state, requests, online)
        nodes = online if len(online) <= MOST_NODES else np.union1d(cleared, _most_room(state, online))
        models = state.facts.instances.models
        here = np.flatnonzero(np.isin(state.primary, cleared) | np.isin(state.secondary, cleared)).tolist()
        able = [one for one in here if models[one].auto_balance and can_move(state, one)]
        # Where a rule does not hold, the program could leave nobody.
        settled = [one for one in able if not broken_at_home(state, one)]
        kept = sorted(settled, key=lambda one: (state.facts.instances.memory[one], one))[:MOST_MOVABLE]
        return cls(state, requests, tuple(sorted(kept)), nodes, len(nodes) == len(online) and len(kept) == len(able))

    def attempts(self, targets: dict[int, Place]) -> Iterator[tuple[dict[int, Place], bool]]:
        """Yield moves to try, the program's first, in small groups all others, then some that keep room for restarts.

        With each comes whether no fewer moves do. Nobody knows for several that restart elsewhere: their places were not all tried.
        """
        restarting = self.restarting()
        is_exact = len(restarting) < 2
        yield targets, is_exact
        if len(self.state.offline) <= SMALL:
            yield from ((some, is_exact) for some in itertools.islice(self.sets(len(targets)), MOST_TRIED))
        if restarting:
            yield self.assigned(restarting[-1:])[1], False

    def restarting(self) -> list[int]:
        """Return the new instances that restart elsewhere when their node fails, the largest last."""
        facts = self.state.facts.instances
        return sorted((new for new, _request in self.requests if facts.restarts[new]), key=lambda new: float(facts.memory[new]))

    def assigned(self, shadows: Sequence[int] = ()) -> tuple[int, dict[int, Place], bool]:
        """Return how many new instances find a place in the program's answer, the new places of others, and whether it is proven.

        `shadows` need a second place, which is kept free.
        """
        lifted = self._lifted()
        new = [self._new(lifted, *asked) for asked in self.requests]
        new += [choices for choices in new if choices.instance in shadows]
        # Nobody is to be left without the place that it has, which costs nothing.
        offers = [self._moves_of(lifted, one, len(new) + 1).staying(self.state.place_of(one)) for one in self.movable]
        most = max(MOST_PLACES // (len(new) + len(offers)), 1)
        places, proven = assign(self.state, lifted, [choices.cheapest(most) for choices in (*new, *offers)], Effort(EFFORT))
        if any(place is None for place in places[len(new) :]):
            return 0, {}, False
        found = zip(self.movable, places[len(new) :])
        targets = {one: place for one, place in found if place is not None and place != self.state.place_of(one)}
        complete = self.complete and all(len(choices) <= most for choices in (*new, *offers))
        return sum(place is not None for place in places[: len(new)]), targets, proven and complete

    def sets(self, least: int) -> Iterator[dict[int, Place]]:
        """Yield sets of moves, `least` or more, the fewest first and of these the cheapest, that break no limit."""
        bounds, online, lifted = Bounds.of_start(self.state), self.state.online().tolist(), self._lifted()
        apart = separated(self.state)
        single = []
        for instance in self.movable:
            choices = self._moves_of(lifted, instance, 1)
            pairs = zip(choices.costs.tolist(), choices.primaries.tolist(), choices.secondaries.tolist())
            single += [(cost, instance, (primary, secondary)) for cost, primary, secondary in pairs]
        single.sort()
        for count in range(least, MOST_MOVES + 1):
            together = list(itertools.islice(itertools.combinations(single, count), 20 * MOST_TRIED))
            for some in sorted(together, key=lambda moves: sum(cost for cost, _instance, _place in moves)):
                targets = {instance: place for _cost, instance, place in some}
                after = with_places(self.state, targets)
                if len(targets) == count and bounds.holds(after, online) and separated(after) <= apart:
                    yield targets

    def _lifted(self) -> ClusterState:
        """Return the state without those that may move."""
        lifted = self.state.copy()
        for instance in self.movable:
            lifted.remove(instance)
        return lifted

    def _new(self, lifted: ClusterState, instance: int, request: PlacementRequest) -> Choices:
        nodes = self.nodes if request.nodes is None else self.nodes[np.isin(self.nodes, request.nodes)]
        choices = choices_of_new(lifted, instance, dataclasses.replace(request, nodes=tuple(nodes.tolist())))
        return dataclasses.replace(choices, costs=choices.costs * 0.02 / _STRICT_UP_TO / len(self.requests))

    def _moves_of(self, lifted: ClusterState, instance: int, importance: int) -> Choices:
        """Return the places in its group that hard limits let an instance take, by what is copied; it is nowhere in `lifted`.

        Soft limits are the program's: what is broken at the start may stay so.
        """
        home, facts = self.state.place_of(instance), self.state.facts
        nodes = self.nodes[facts.nodes.group[self.nodes] == facts.nodes.group[home[0]]]
        found = places_for(lifted, instance, nodes, EXACT.hard(), Origin(home))
        disk, largest = float(facts.instances.disk[instance]), float(facts.instances.disk[list(self.movable)].max())
        copied = 0.4 / _STRICT_UP_TO * disk / (2 * max(largest, 1.0))
        restarted = 0.02 / _STRICT_UP_TO * bool(facts.instances.stopped_to_move[instance])
        move = 0.5 + restarted + copied * bool(facts.instances.along[instance])
        return Choices.of(instance, [(found, Weights(move=move, copy=copied).costs(self.state, home, found, np.zeros(1)))], importance)


def _least_missing(state: ClusterState, requests: Requests, online: Integers) -> Integers:
    """Return the nodes on which the least is missing for a new instance in relation to what it needs, as far as others may leave."""
    each = max(MOST_NODES // (2 * len(requests)), 3)
    found = [online[:0]]
    for instance, request in requests:
        nodes = online if request.nodes is None else online[np.isin(online, request.nodes)]
        nodes = nodes if request.group is None else nodes[state.facts.nodes.group[nodes] == request.group]
        first = primary_verdict(state, instance, nodes, EXACT)
        found.append(nodes[np.argsort(_missing(state, instance, first.limit, first.short), kind="stable")[:each]])
        if state.facts.instances.two_nodes[instance] and len(nodes):
            second = secondary_verdict(state, instance, found[-1], nodes, EXACT)
            missing = _missing(state, instance, second.limit, second.short).min(axis=0)
            found.append(nodes[np.argsort(missing, kind="stable")[:each]])
    return np.unique(np.concatenate(found))


def _missing(state: ClusterState, instance: int, limit: npt.NDArray[np.int8], short: Floats) -> Floats:
    """Return what is missing as a share of what an instance needs; infinite where no move helps."""
    model = state.facts.instances.models[instance]
    missing = np.where(limit == Limit.NONE, 0.0, 1.0)
    for limits, need in (((Limit.MEMORY, Limit.REDUNDANCY), model.memory), ((Limit.DISK,), model.disk), ((Limit.CPUS,), model.vcpus)):
        here = np.isin(limit, limits)
        missing[here] = short[here] / max(need, 1)
    missing[np.isin(limit, (Limit.HARDWARE, Limit.POOL, Limit.SAME_NODE, Limit.TEMPLATE))] = np.inf
    return missing


def _most_room(state: ClusterState, online: Integers) -> Integers:
    """Return the nodes with the most room, of memory and of disk in equal parts."""
    memory = state.quantities[Quantity.MEMORY, online] - state.reserved[online]
    half = MOST_NODES // 2
    first = (np.argsort(-room, kind="stable")[:half] for room in (memory, state.quantities[Quantity.DISK, online]))
    return online[np.unique(np.concatenate(list(first)))]
