# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a placement to a valid sequence of moves: every step keeps what a guard asks for.

    guard = Guard.at_every_step(state, reserves_left(state, targets))
    found = order(state, targets, guard, Budget())
    found.moves, found.blocked

Each instance goes straight to its target, once, as soon as there is room; those whose turn is last after all others that can.
When nobody can go any more (three instances may wait for each other in a circle), one of them steps aside to where it lets another one go,
and comes from there later. If instances still wait, all start again with these first: another one may have taken the room that they pass
through.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE
from ..cluster.moves import Move, Place, copied_data, copies, possible_moves
from ..cluster.state import ClusterState
from ..metrics.limits import Bounds
from ..metrics.shared_redundancy import Reserves, SharedReserve
from ..metrics.together import torn


@dataclass(frozen=True)
class Guard:
    """What must hold while instances move: no limit of an online node worse than at a start, no more stranded by any failure.

    `on_the_way` are the bounds after a move's steps but the last, `bounds` those after the last; for `relaxed` instances
    only the hard ones among them count.
    """

    bounds: Bounds
    on_the_way: Bounds
    reserves: Reserves = field(default_factory=dict)
    relaxed: frozenset[int] = frozenset()

    @classmethod
    def at_every_step(cls, state: ClusterState, reserves: Reserves | None = None) -> Guard:
        """Return the guard by which all limits hold after each step."""
        bounds = Bounds.of_start(state)
        return cls(bounds, bounds, reserves or {})

    @classmethod
    def at_every_move(cls, state: ClusterState, reserves: Reserves | None = None, relaxed: Iterable[int] = ()) -> Guard:
        """Return the guard by which soft limits may break between two steps of a move, where there is no other way."""
        bounds = Bounds.of_start(state)
        return cls(bounds, bounds.hard(), reserves or {}, frozenset(relaxed))

    def or_as_in(self, state: ClusterState) -> Guard:
        """Return the same guard, by which limits may also be as broken as in `state`, where all of this leads."""
        bounds = self.bounds.or_as_in(state)
        return dataclasses.replace(self, bounds=bounds, on_the_way=bounds if self.on_the_way is self.bounds else self.on_the_way)

    def lenient(self) -> Guard:
        """Return the same guard, by which soft limits may break between two steps of a move."""
        return dataclasses.replace(self, on_the_way=self.on_the_way.hard())

    def strict(self) -> Guard:
        """Return the same guard with all limits at every step."""
        return dataclasses.replace(self, on_the_way=self.bounds)

    def lets(self, state: ClusterState, move: Move) -> bool:
        """Return whether every step of a move from a state that holds leads to one that does; `state` is put back."""
        flags = state.fails_n1.copy()
        at_last, on_the_way = self.bounds, self.on_the_way
        if move.instance in self.relaxed:
            at_last, on_the_way = at_last.hard(), on_the_way.hard()
        takes = move.takes()
        groups = {int(state.facts.nodes.group[node]) for node, _mirror in (move.source, *move.steps)}
        reserves = [self.reserves[group] for group in groups & self.reserves.keys()]
        try:
            for step in move.steps:
                state.place(move.instance, *step)
                if not (at_last if step == move.target else on_the_way).holds(state, takes):
                    return False
                if not all(reserve.holds(state) for reserve in reserves):
                    return False
        finally:
            state.place(move.instance, *move.source)
            state.fails_n1[:] = flags
        return True


def reserves_left(state: ClusterState, instances: Iterable[int]) -> Reserves:
    """Return what shared storage keeps for failures in each group that instances are in."""
    groups = sorted({state.group_of(instance) for instance in instances})
    found = {group: SharedReserve.of(state, group) for group in groups}
    return {group: reserve for group, reserve in found.items() if reserve.matters}


@dataclass(frozen=True)
class Budget:
    """MiB that may be copied and moves that may be made in all, None without limit; `trials` are places aside that are tried."""

    data: int | None = None
    moves: int | None = None
    trials: int = 20_000


DIRECT = Budget(trials=0)
"""Nobody steps aside."""


@dataclass(frozen=True)
class Ordered:
    """Moves in an order in which each can be made, and the instances that stay where they are."""

    moves: tuple[Move, ...]
    blocked: tuple[int, ...]


def order(state: ClusterState, targets: Mapping[int, Place], guard: Guard, budget: Budget = DIRECT) -> Ordered:
    """Return moves that bring instances to their targets, in an order that a guard lets pass; `state` stays as it is."""
    walk = _walked(state, targets, guard, budget)
    if walk.waiting:
        # What has moved may be in the way of those that wait: they go first, where that is enough.
        first = {instance: targets[instance] for instance in walk.waiting}
        again = _walked(state, first | dict(targets), guard, dataclasses.replace(budget, trials=0))
        walk = again if len(again.waiting) < len(walk.waiting) else walk
    staying = torn(state, [move.instance for move in walk.moves], walk.waiting) | frozenset(walk.waiting)
    if len(staying) == len(walk.waiting):
        return Ordered(tuple(walk.moves), tuple(walk.waiting))
    # Nobody goes without those that a rule wants together with it.
    found = order(state, {instance: place for instance, place in targets.items() if instance not in staying}, guard, budget)
    return Ordered(found.moves, tuple(instance for instance in targets if instance in staying or instance in found.blocked))


def _walked(state: ClusterState, targets: Mapping[int, Place], guard: Guard, budget: Budget) -> _Walk:
    """Return a walk that has gone as far as it can."""
    walk = _Walk(state.copy(), targets, budget)
    guards = (guard,) if guard.on_the_way is guard.bounds else (guard.strict(), guard)
    while any(walk.advance(one) for one in guards) or walk.step_aside(guards[-1]):
        continue
    return walk


def follow(state: ClusterState, moves: Sequence[Move], guard: Guard, budget: Budget) -> tuple[Move, ...]:
    """Return as many of the moves, from the first on, as the guard lets pass and the budget allows."""
    now = state.copy()
    data = 0
    for number, move in enumerate(moves):
        data += copied_data(state, move)
        too_much = (budget.data is not None and data > budget.data) or (budget.moves is not None and number >= budget.moves)
        if too_much or not guard.lets(now, move):
            return tuple(moves[:number])
        now.place(move.instance, *move.target)
    return tuple(moves)


class _Walk:
    """Moves made so far, and the instances that wait."""

    def __init__(self, state: ClusterState, targets: Mapping[int, Place], budget: Budget) -> None:
        self.state = state
        self.moves: list[Move] = []
        self._turn = state.facts.instances.turn
        waiting = (instance for instance, target in targets.items() if target != state.place_of(instance))
        self.waiting = sorted(waiting, key=lambda instance: self._turn[instance])
        self._targets = targets
        self._aside: set[int] = set()
        self._trials = budget.trials
        needed = sum(self._missing(instance, state.place_of(instance)) for instance in self.waiting)
        self._spare_data = np.inf if budget.data is None else budget.data - needed
        self._spare_moves = np.inf if budget.moves is None else budget.moves - len(self.waiting)

    def advance(self, guard: Guard) -> bool:
        """Make every move that can be made, of the first turn of which any can; return whether there was any."""
        return any(self._advance_turn(turn, guard) for turn in sorted(set(self._turn[self.waiting].tolist())))

    def _advance_turn(self, turn: int, guard: Guard) -> bool:
        before = len(self.waiting)
        for instance in [waiting for waiting in self.waiting if self._turn[waiting] == turn]:
            move = self._next(instance, self._targets[instance], guard)
            if move is not None:
                self._make(move)
                self.waiting.remove(instance)
        return len(self.waiting) < before

    def step_aside(self, guard: Guard) -> bool:
        """Let one waiting instance go somewhere from where it lets another one, or itself, go on; return whether one can."""
        if self._spare_moves < 1:
            return False
        for instance in self.waiting:
            if instance in self._aside:
                continue
            for place in self._places_aside(instance):
                self._trials -= 1
                if self._trials < 0:
                    return False
                move = self._next(instance, place, guard)
                if move is not None and self._helps(move, guard):
                    self._make(move)
                    self._aside.add(instance)
                    self._spare_moves -= 1
                    return True
        return False

    def _helps(self, move: Move, guard: Guard) -> bool:
        self.state.place(move.instance, *move.target)
        found = any(self._next(other, self._targets[other], guard) is not None for other in self.waiting)
        self.state.place(move.instance, *move.source)
        return found

    def _next(self, instance: int, place: Place, guard: Guard) -> Move | None:
        """Return the cheapest move to a place that can be made and paid for."""
        for move in possible_moves(self.state, instance, place):
            if self._extra(move) <= self._spare_data and guard.lets(self.state, move):
                return move
        return None

    def _make(self, move: Move) -> None:
        self._spare_data -= self._extra(move)
        self.state.place(move.instance, *move.target)
        self.moves.append(move)

    def _extra(self, move: Move) -> float:
        """Return MiB that a move copies beyond what the shortest way to the instance's target would."""
        disk = float(self.state.facts.instances.disk[move.instance])
        detour = self._missing(move.instance, move.target) - self._missing(move.instance, move.source)
        return copies(move) * disk + detour

    def _missing(self, instance: int, place: Place) -> float:
        """Return MiB that must be copied from a place to the instance's target, at least."""
        if place[1] == NOWHERE:
            return 0.0
        return len(set(self._targets[instance]) - set(place)) * float(self.state.facts.instances.disk[instance])

    def _places_aside(self, instance: int) -> Iterator[Place]:
        """Yield places near to where an instance is, those without a copy of its disks first."""
        primary, secondary = self.state.place_of(instance)
        group = self.state.facts.nodes.group[self._targets[instance][0]]
        others = [node for node in self.state.group_nodes(int(group)).tolist() if not self.state.offline[node]]
        if secondary == NOWHERE:
            yield from ((node, NOWHERE) for node in others if node != primary)
            return
        yield secondary, primary
        for node in others:
            if node not in (primary, secondary):
                yield from ((primary, node), (secondary, node), (node, primary), (node, secondary))
