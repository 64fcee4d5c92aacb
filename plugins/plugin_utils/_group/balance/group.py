# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan that balances one group: moves with stages, what they gain and copy, and the instances that could not reach their targets.

    found = plan_group(Assignment(cluster, group, options, most_at_node), seconds)

It starts from the cluster's model and names groups, instances and nodes by position, so that it can be made in another
process.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..cluster.changes import after_moves
from ..cluster.model import Cluster
from ..cluster.moves import Move, copied_data
from ..cluster.state import ClusterState
from ..metrics.limits import separated
from ..metrics.score import ScoreMode, Scorer
from ..plan.order import Budget, Guard, follow, order
from ..plan.stages import Plan, stages
from .hbal import HbalOptions, steps_like_hbal
from .model import BalanceOptions, Redundancy, Refused
from .search import balance
from .walk import FirstThings, Walk
from .watch import Watch


@dataclass(frozen=True)
class GroupPlan:
    """How a group is balanced; scores are the group's own, `data` is MiB copied, `blocked` are instances that find no turn."""

    group: int
    plan: Plan
    score_before: float
    score_after: float
    data: int
    blocked: tuple[int, ...]
    in_time: bool
    refused: Mapping[int, Refused] = field(default_factory=dict)
    """Instances that stay where they are, because of N+1 on shared storage."""


@dataclass(frozen=True)
class Assignment:
    """A group to balance, with our options or hbal's; `most_at_node` bounds the moves that touch a node at once."""

    cluster: Cluster
    group: int
    options: BalanceOptions | HbalOptions
    most_at_node: int | None = None


def plan_group(assignment: Assignment, seconds: float | None = None, watch: Watch | None = None) -> GroupPlan:
    """Return the plan for a group; `seconds` bounds the search for a placement."""
    state = ClusterState.from_cluster(assignment.cluster)
    if isinstance(assignment.options, HbalOptions):
        return _plan_like_hbal(state, assignment, assignment.options)
    return _plan_balanced(state, assignment, assignment.options, seconds, watch)


def _plan_balanced(
    state: ClusterState, assignment: Assignment, options: BalanceOptions, seconds: float | None, watch: Watch | None
) -> GroupPlan:
    """Return a plan that keeps all limits in every order that it allows."""
    found = balance(state, assignment.group, options, seconds, watch)
    targets = {instance: found.state.place_of(instance) for instance in found.order}
    reserves = {assignment.group: found.reserve} if found.reserve is not None and found.reserve.matters else {}
    guard = Guard.at_every_step(state, reserves).or_as_in(found.state)
    budget = Budget(options.prices.most_data, options.prices.most_moves)
    # Nothing is copied to step aside either.
    in_order = budget if options.moves.disk_moves else dataclasses.replace(budget, data=0)
    way = order(state, targets, guard, in_order)
    moves = way.moves
    freer = [dataclasses.replace(guard, reserves={})] if reserves and options.redundancy == Redundancy.PRICE else []
    freest = freer[0] if freer else guard
    for other in (*freer, freest.lenient()) if way.blocked else ():
        # What comes before N+1 on shared storage may cost some N+1 on the way, too, and what is down may break soft limits.
        found_way = order(state, targets, other, in_order)
        if _left_wrong(state, found_way.moves, assignment.group, options) < _left_wrong(state, moves, assignment.group, options):
            way, moves, guard = found_way, found_way.moves, other
    if way.blocked:
        # The search itself has found a way, which copies more: some of its instances move more than once.
        scorer = Scorer(state, options.score, state.group_nodes(assignment.group))
        longer = follow(state, found.made, guard, budget)
        if separated(after_moves(state, longer)) > separated(state):
            longer = ()
        moves = min(
            way.moves, longer, key=lambda one: (_left_wrong(state, one, assignment.group, options), _cost(state, scorer, one, options))
        )
    plan = stages(state, moves, guard, assignment.most_at_node)
    return group_plan(state, assignment.group, plan, options.score, way.blocked if moves is way.moves else (), found.in_time, found.refused)


def _left_wrong(state: ClusterState, moves: tuple[Move, ...], group: int, options: BalanceOptions) -> FirstThings:
    """Return how much is wrong of the first things after moves."""
    return Walk(after_moves(state, moves), group, options).first_things()


def _cost(state: ClusterState, scorer: Scorer, moves: tuple[Move, ...], options: BalanceOptions) -> float:
    """Return the score that moves lead to with the price of what they copy."""
    data = sum(copied_data(state, move) for move in moves)
    return scorer.score(after_moves(state, moves)) + options.prices.data * data / 1024**2


def _plan_like_hbal(state: ClusterState, assignment: Assignment, options: HbalOptions) -> GroupPlan:
    """Return hbal's moves, with the stages that their order allows."""
    moves = [step.move for step in steps_like_hbal(state.copy(), assignment.group, options)]
    return group_plan(
        state, assignment.group, stages(state, moves, Guard.at_every_step(state), assignment.most_at_node), ScoreMode.HTOOLS, (), True
    )


def group_plan(
    state: ClusterState,
    group: int,
    plan: Plan,
    mode: ScoreMode,
    blocked: tuple[int, ...],
    in_time: bool,
    refused: Mapping[int, Refused] = types.MappingProxyType({}),
) -> GroupPlan:
    """Return a plan with what it gains and copies."""
    scorer = Scorer(state, mode, state.group_nodes(group))
    after = after_moves(state, plan.moves)
    data = sum(copied_data(state, move) for move in plan.moves)
    return GroupPlan(group, plan, scorer.score(state), scorer.score(after), data, blocked, in_time, dict(refused))
