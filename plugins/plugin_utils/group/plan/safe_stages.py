# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stages of moves on shared storage: whatever the order within a stage, no failure may strand more than is allowed.

What a node's failure strands depends on all nodes together, so that the dependencies of plan.py, which look at nodes one
by one, do not see it. For a set of moves the worst that any order can bring is that all have arrived and none has left.
Where even then every instance finds a node, the set needs no further order; if not, stages are cut smaller, and each
waits for the one before.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..cluster.moves import Move
from ..cluster.state import ClusterState
from ..metrics.shared_redundancy import SharedReserve
from .stages import Plan, stage_moves


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
