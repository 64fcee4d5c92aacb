# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a plan for a group that somebody else has made is one: its moves are possible, and break no limit in the orders that are tried.

    plan = verified(assignment, found)          # InvalidPlan: what is wrong

A worker of a Dask cluster answers with data. What can be counted here is counted again; that a better plan exists is not looked for. Plans
like hbal's are held against the nodes of the group and the number of moves alone, for hbal copies disks of nodes that do not answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

from ..cluster.arrays import NOWHERE
from ..cluster.changes import after_moves
from ..cluster.moves import Move, Place, can_leave, conceivable_moves, copies, possible_moves
from ..cluster.state import ClusterState
from ..metrics.score import ScoreMode
from ..neighbourhood.excess import hard_excess_of
from ..plan.order import Budget, Guard, follow
from ..plan.stages import Plan, nodes_of
from .group import Assignment, GroupPlan, group_plan
from .model import BalanceOptions
from .walk import Walk

_EQUAL = 1e-9
"""Shares of a node that sums in another order may differ by."""
_Ways = Callable[[ClusterState, int, Place], list[Move]]


class InvalidPlan(Exception):
    """What is wrong with a plan."""


def verified(assignment: Assignment, found: GroupPlan) -> GroupPlan:
    """Return a plan with its figures as they are counted here. Raises InvalidPlan."""
    state, options = ClusterState.from_cluster(assignment.cluster), assignment.options
    instances, nodes = range(len(assignment.cluster.instances)), frozenset(state.group_nodes(assignment.group).tolist())
    if found.group != assignment.group or not set(found.blocked) | found.refused.keys() <= set(instances):
        raise InvalidPlan("names another group, or instances that are not there")
    if not {node for why in found.refused.values() for node in (why.target, *why.failing)} <= nodes:
        raise InvalidPlan("names nodes that are not of its group")
    mode, ways = (options.score, possible_moves) if isinstance(options, BalanceOptions) else (ScoreMode.HTOOLS, conceivable_moves)
    # Raise InvalidPlan unless each move is one of those that are possible where the moves before it have led.
    now = state.copy()
    for move in found.plan.moves:
        places = {node for place in (move.source, *move.steps) for node in place}
        if move.instance not in instances or not move.steps or not places <= nodes | {NOWHERE}:
            raise InvalidPlan("moves instances that are not there, or to nodes that are not of its group")
        possible = can_leave(now, move.instance) and move.source == now.place_of(move.instance)
        if not possible or move not in ways(now, move.instance, move.target):
            raise InvalidPlan(f"moves {state.facts.instances.names[move.instance]} in a way that is not possible")
        now.place(move.instance, *move.target)
    _refuse_stages(found.plan, assignment.most_at_node)
    if isinstance(options, BalanceOptions):
        _refuse_harm(state, found.plan, assignment.group, options)
    elif options.max_moves is not None and len(found.plan.moves) > options.max_moves:
        raise InvalidPlan("makes too many moves")
    return group_plan(state, assignment.group, found.plan, mode, found.blocked, found.in_time, found.refused)


def _refuse_stages(plan: Plan, most_at_node: int | None) -> None:
    """Raise InvalidPlan unless all moves are in stages in their order, and those that touch the same nodes come after each other."""
    numbers = [number for stage in plan.stages for number in stage]
    if numbers != list(range(len(plan.moves))) or len(plan.after) != len(plan.moves):
        raise InvalidPlan("has stages that are not those of its moves")
    before: list[set[int]] = []
    for number, earlier in enumerate(plan.after):
        if not set(earlier) <= set(range(number)):
            raise InvalidPlan("has moves that wait for later ones")
        before.append(set(earlier).union(*(before[one] for one in earlier)))
    touched = [nodes_of(move) for move in plan.moves]
    for position, stage in enumerate(plan.stages):
        at_node = [sum(node in touched[number] for number in stage) for node in set().union(*(touched[number] for number in stage))]
        if most_at_node is not None and max(at_node, default=0) > most_at_node:
            raise InvalidPlan("has too many moves at a node at once")
        earlier_stages = itertools.chain.from_iterable(plan.stages[:position])
        if any(touched[one] & touched[number] and one not in before[number] for one in earlier_stages for number in stage):
            raise InvalidPlan("has moves that do not wait for earlier ones at their nodes")


def _refuse_harm(state: ClusterState, plan: Plan, group: int, options: BalanceOptions) -> None:
    """Raise InvalidPlan for a plan that goes beyond its budget, or leaves limits broken for nothing.

    Soft limits may be as broken on the way as at the end, and between steps of a move, but only if what comes before them gets better.
    """
    after, members = after_moves(state, plan.moves), state.group_nodes(group)
    first, then = (Walk(one, group, options).first_things() for one in (state, after))
    if then > first or hard_excess_of(after, members) > hard_excess_of(state, members) + _EQUAL:
        raise InvalidPlan("leaves more limits broken than there are")
    if not options.moves.disk_moves and any(copies(move) for move in plan.moves):
        raise InvalidPlan("copies disks")
    guard = Guard.at_every_step(state)
    guard = guard.or_as_in(after).lenient() if then < first else guard
    budget = Budget(options.prices.most_data, options.prices.most_moves)
    if any(follow(state, order, guard, budget) != order for order in _orders(plan)):
        raise InvalidPlan("breaks limits of nodes, or moves more than it may")


def _orders(plan: Plan) -> Iterator[tuple[Move, ...]]:
    """Yield the moves as they stand, and with each stage the other way round."""

    def moves_of(numbers: Iterable[int]) -> tuple[Move, ...]:
        return tuple(plan.moves[number] for number in numbers)

    yield plan.moves
    yield moves_of(number for stage in plan.stages for number in reversed(stage))
