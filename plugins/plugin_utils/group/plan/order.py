# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a placement to a valid sequence of moves: every step of every move keeps all limits.

    way = find_way(state, targets, guard, budget)
    way.moves, way.blocked

Each instance goes straight to its target, once, as soon as there is room. When nobody can go any more (three instances
may wait for each other in a circle), one of them steps aside to where it lets another one go, and comes from there later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...common.libraries import np
from ..cluster.arrays import NOWHERE
from ..cluster.moves import Move, Place, copied_data, copies, possible_moves
from ..cluster.state import ClusterState
from ..metrics.limits import Bounds
from ..metrics.shared_redundancy import SharedReserve
from .stages import Plan, order_moves, stage_moves, stage_safely

_MOST_TRIALS = 20_000
"""Places aside that are tried for all waiting instances together."""


@dataclass(frozen=True)
class Guard:
    """What must hold after every step: no limit of an online node worse than at a start, and no more stranded by any failure."""

    bounds: Bounds
    reserve: SharedReserve

    @classmethod
    def of(cls, state: ClusterState, reserve: SharedReserve) -> Guard:
        """Return the guard of a start."""
        return cls(Bounds.of_start(state), reserve)

    def holds(self, state: ClusterState, nodes: list[int]) -> bool:
        """Return whether a state that differs from one that held at `nodes` only holds, too."""
        return self.bounds.holds(state, nodes) and self.reserve.holds(state)

    def lets(self, state: ClusterState, move: Move) -> bool:
        """Return whether every step of a move from a state that holds leads to one that does; `state` is put back."""
        places = (move.source, *move.steps)
        flags = state.fails_n1.copy()
        try:
            for before, after in zip(places, places[1:]):
                state.place(move.instance, *after)
                if not self.holds(state, sorted({*before, *after} - {NOWHERE})):
                    return False
        finally:
            state.place(move.instance, *move.source)
            state.fails_n1[:] = flags
        return True


@dataclass(frozen=True)
class Budget:
    """MiB that may be copied and moves that may be made in all; None without limit."""

    data: int | None = None
    moves: int | None = None


@dataclass(frozen=True)
class Way:
    """Moves in an order in which each can be made, and the instances that stay where they are."""

    moves: tuple[Move, ...]
    blocked: tuple[int, ...]


def find_way(state: ClusterState, targets: Mapping[int, Place], guard: Guard, budget: Budget) -> Way:
    """Return moves that bring instances to their targets; `state` stays as it is."""
    walk = _Walk(state.copy(), targets, guard, budget)
    while walk.advance() or walk.step_aside():
        continue
    return Way(tuple(walk.moves), tuple(walk.waiting))


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
    """Moves made so far, and who waits."""

    def __init__(self, state: ClusterState, targets: Mapping[int, Place], guard: Guard, budget: Budget) -> None:
        self.state = state
        self.moves: list[Move] = []
        self.waiting = [instance for instance, target in targets.items() if target != _place(state, instance)]
        self._targets, self._guard = targets, guard
        self._aside: set[int] = set()
        self._trials = _MOST_TRIALS
        needed = sum(self._missing(instance, _place(state, instance)) for instance in self.waiting)
        self._spare_data = np.inf if budget.data is None else budget.data - needed
        self._spare_moves = np.inf if budget.moves is None else budget.moves - len(self.waiting)

    def advance(self) -> bool:
        """Make every move that can be made; return whether there was any."""
        before = len(self.waiting)
        for instance in list(self.waiting):
            move = self._next(instance, self._targets[instance])
            if move is not None:
                self._make(move)
                self.waiting.remove(instance)
        return len(self.waiting) < before

    def step_aside(self) -> bool:
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
                move = self._next(instance, place)
                if move is not None and self._helps(move):
                    self._make(move)
                    self._aside.add(instance)
                    self._spare_moves -= 1
                    return True
        return False

    def _helps(self, move: Move) -> bool:
        self.state.place(move.instance, *move.target)
        found = any(self._next(other, self._targets[other]) is not None for other in self.waiting)
        self.state.place(move.instance, *move.source)
        return found

    def _next(self, instance: int, place: Place) -> Move | None:
        """Return the cheapest move to a place that can be made and paid for."""
        for move in possible_moves(self.state, instance, place):
            if self._extra(move) <= self._spare_data and self._guard.lets(self.state, move):
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
        primary, secondary = _place(self.state, instance)
        group = self.state.facts.nodes.group[self._targets[instance][0]]
        others = [node for node in self.state.group_nodes(int(group)).tolist() if not self.state.offline[node]]
        if secondary == NOWHERE:
            yield from ((node, NOWHERE) for node in others if node != primary)
            return
        yield secondary, primary
        for node in others:
            if node not in (primary, secondary):
                yield from ((primary, node), (secondary, node), (node, primary), (node, secondary))


def _place(state: ClusterState, instance: int) -> Place:
    return int(state.primary[instance]), int(state.secondary[instance])


def order_safely(state: ClusterState, targets: Mapping[int, Place]) -> tuple[list[Move], list[int]]:
    """Return moves that can be carried out in their order, and instances that find no turn; `state` stays as it is."""
    now = state.copy()
    moves: list[Move] = []
    blocked: list[int] = []
    for group in dict.fromkeys(state.group_of(instance) for instance in targets):
        own = {instance: place for instance, place in targets.items() if state.group_of(instance) == group}
        found, stuck = _order_group(now, group, own)
        moves += found
        blocked += stuck
        for move in found:
            now.place(move.instance, *move.target)
    return moves, blocked


def _order_group(state: ClusterState, group: int, targets: Mapping[int, Place]) -> tuple[list[Move], list[int]]:
    ordered, blocked = order_moves(state, targets)
    reserve = SharedReserve.of(state, group)
    if _holds_throughout(state, ordered, reserve):
        return ordered, blocked
    way = find_way(state, targets, Guard.of(state, reserve), Budget(None, None))
    return list(way.moves), list(way.blocked)


def _holds_throughout(state: ClusterState, moves: Sequence[Move], reserve: SharedReserve) -> bool:
    """Return whether the reserve holds after each move in turn."""
    now = state.copy()
    for move in moves if len(reserve.instances) else ():
        now.place(move.instance, *move.target)
        if not reserve.holds(now):
            return False
    return True


def stage_together(state: ClusterState, parts: Sequence[Sequence[Move]]) -> Plan:
    """Return one plan of parts that were ordered one after the other, each for one group."""
    now = state.copy()
    moves = [move for part in parts for move in part]
    after = [set(earlier) for earlier in stage_moves(moves).after]
    first = 0
    for part in parts:
        if part:
            safe = stage_safely(now, part, SharedReserve.of(now, now.group_of(part[0].instance)), None)
            for number, earlier in enumerate(safe.after):
                after[first + number] |= {first + other for other in earlier}
        for move in part:
            now.place(move.instance, *move.target)
        first += len(part)
    level: list[int] = []
    for before in after:
        level.append(1 + max((level[other] for other in before), default=-1))
    stages = tuple(tuple(number for number in range(len(moves)) if level[number] == stage) for stage in range(max(level, default=-1) + 1))
    return Plan(tuple(moves), tuple(tuple(sorted(earlier)) for earlier in after), stages)
