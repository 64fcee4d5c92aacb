# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves in an order in which each can be carried out, and which of them may run side by side.

    ordered, blocked = order_moves(state, {instance: place, ...})
    plan = stage_moves(ordered)

A move depends on an earlier one when it takes room on a node where the other frees some, or the other way round. Moves
that only take from a node, or only free it, may run in any order: if all of them fit together, so does any part.
"""

from __future__ import annotations

import collections
import typing as t
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..cluster.arrays import NOWHERE
from ..cluster.loads import node_loads, touched_groups
from ..cluster.moves import Move, Place, commands, copied_data, possible_moves, steps_to_plain
from ..cluster.state import ClusterState
from ..metrics.limits import Bounds
from ..metrics.score import ScoreMode, Scorer
from ..metrics.shared_redundancy import SharedReserve


@dataclass(frozen=True)
class Plan:
    """Moves with, for each, the positions of those it comes after, and stages of positions."""

    moves: tuple[Move, ...]
    after: tuple[tuple[int, ...], ...]
    stages: tuple[tuple[int, ...], ...]


def order_moves(state: ClusterState, targets: Mapping[int, Place], relaxed: Collection[int] = ()) -> tuple[list[Move], list[int]]:
    """Return moves in an order in which no step makes a limit worse than in `state`, and instances that find no turn.

    For `relaxed` instances only the hard limits are kept. `state` stays as it is.
    """
    now = state.copy()
    bounds = Bounds.of_start(state)
    hard = bounds.hard()
    ordered: list[Move] = []
    waiting = list(targets)
    progress = True
    while waiting and progress:
        progress = False
        for instance in list(waiting):
            move = _feasible(now, instance, targets[instance], hard, hard if instance in relaxed else bounds)
            if move is not None:
                now.place(instance, *move.target)
                ordered.append(move)
                waiting.remove(instance)
                progress = True
    return ordered, waiting


def _feasible(now: ClusterState, instance: int, target: Place, on_the_way: Bounds, at_last: Bounds) -> Move | None:
    return next((move for move in possible_moves(now, instance, target) if _runs(now, move, on_the_way, at_last)), None)


def _runs(now: ClusterState, move: Move, on_the_way: Bounds, at_last: Bounds) -> bool:
    """Return whether every step of a move can be taken from where it starts; `now` is put back."""
    takes = move.takes()
    try:
        for step in move.steps:
            now.place(move.instance, *step)
            if not (at_last if step == move.target else on_the_way).holds(now, takes):
                return False
    finally:
        now.place(move.instance, *move.source)
    return True


def stage_moves(moves: Sequence[Move], most_at_node: int | None = None) -> Plan:
    """Return moves with what each depends on, in as few stages as that and the moves that may touch a node at once allow."""
    takes, frees = [move.takes() for move in moves], [move.frees() for move in moves]
    after: list[tuple[int, ...]] = []
    stages: list[_Stage] = []
    level: list[int] = []
    for number, move in enumerate(moves):
        earlier = tuple(
            other
            for other in range(number)
            if takes[number] & frees[other] or frees[number] & takes[other] or move.instance == moves[other].instance
        )
        after.append(earlier)
        first = 1 + max((level[other] for other in earlier), default=-1)
        nodes = {node for place in (move.source, *move.steps) for node in place} - {NOWHERE}
        while first < len(stages) and not stages[first].has_room(nodes, most_at_node):
            first += 1
        if first == len(stages):
            stages.append(_Stage([], collections.Counter()))
        stages[first].moves.append(number)
        stages[first].at_node.update(nodes)
        level.append(first)
    return Plan(tuple(moves), tuple(after), tuple(tuple(stage.moves) for stage in stages))


@dataclass
class _Stage:
    """A stage that is being filled: its moves, and how many touch each node."""

    moves: list[int]
    at_node: collections.Counter[int]

    def has_room(self, nodes: Collection[int], most: int | None) -> bool:
        """Return whether one more move may touch these nodes."""
        return most is None or all(self.at_node[node] < most for node in nodes)


def plan_to_plain(state: ClusterState, plan: Plan, mode: ScoreMode) -> dict[str, t.Any]:
    """Return a plan from `state` as plain data: score_before, score_after, moves, stages and commands."""
    scorer = Scorer(state, mode)
    after = state.copy()
    for move in plan.moves:
        after.place(move.instance, *move.target)
    return {
        "score_before": scorer.score(state),
        "score_after": scorer.score(after),
        "moves": [move_to_plain(state, move) | {"after": list(earlier)} for move, earlier in zip(plan.moves, plan.after)],
        "stages": [list(stage) for stage in plan.stages],
        "commands": [line for move in plan.moves for line in commands(state, move)],
        "nodes": node_loads(state, after, touched_groups(state, plan.moves)),
    }


def move_to_plain(state: ClusterState, move: Move) -> dict[str, t.Any]:
    """Return a move as plain data, by names."""
    facts = state.facts
    return {
        "instance": facts.instances.names[move.instance],
        "kind": str(move.kind),
        "from": node_names(state, move.source),
        "to": node_names(state, move.target),
        "group": facts.cluster.groups[facts.nodes.group[move.target[0]]].name,
        "data": copied_data(state, move),
        "steps": steps_to_plain(state, move),
        "commands": commands(state, move),
    }


def node_names(state: ClusterState, place: Place) -> list[str]:
    """Return the names of a place's nodes."""
    return [state.facts.nodes.names[node] for node in place if node != NOWHERE]


def stage_safely(state: ClusterState, moves: Sequence[Move], reserve: SharedReserve, most_at_node: int | None) -> Plan:
    """Return a plan from `state` that keeps `reserve` in every order it allows; a sequence of `moves` must keep it."""
    plan = stage_moves(moves, most_at_node)
    if reserve.holds_in_any_order(state, moves):
        return plan
    stages = _cut(state, moves, reserve, most_at_node)
    before = {number: stages[position - 1] for position, stage in enumerate(stages) if position for number in stage}
    return Plan(tuple(moves), tuple(before.get(number, ()) for number in range(len(moves))), tuple(stages))


def _cut(state: ClusterState, moves: Sequence[Move], reserve: SharedReserve, most_at_node: int | None) -> list[tuple[int, ...]]:
    """Return runs of moves, each of which may be made in any order from where the one before leads."""
    now = state.copy()
    stages: list[tuple[int, ...]] = []
    current: list[int] = []
    for number in range(len(moves)):
        trial = [moves[position] for position in (*current, number)]
        alone = len(stage_moves(trial, most_at_node).stages) == 1
        if current and not (alone and reserve.holds_in_any_order(now, trial)):
            stages.append(tuple(current))
            for position in current:
                now.place(moves[position].instance, *moves[position].target)
            current = []
        current.append(number)
    return [*stages, tuple(current)] if current else stages
