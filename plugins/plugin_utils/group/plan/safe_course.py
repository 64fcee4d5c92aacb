# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves of several groups in an order, and in stages, during which no node's failure strands more than at the start.

    moves, blocked = order_safely(state, targets)
    plan = stage_together(state, [moves_of_one_group, moves_of_the_next, ...])

Where nothing would restart elsewhere, orders and stages are those of plan.py. Groups that only take instances need no more
care than that: what they strand only grows until all have arrived, and then it has been checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..cluster.moves import Move, Place
from ..cluster.state import ClusterState
from ..metrics.shared_redundancy import SharedReserve
from .order import Budget, Guard, find_way
from .safe_stages import stage_safely
from .stages import Plan, order_moves, stage_moves


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
