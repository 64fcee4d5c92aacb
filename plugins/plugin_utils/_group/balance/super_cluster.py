# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Balancing a super cluster: which of its groups are balanced, and one plan for all of them.

    plans = worst_groups(cluster, score_mode, most, planner)       # or planner(groups)
    plan = joined_plan(plans)

Without groups asked for, the one with the worst score is planned, and the next worst when it cannot be improved, as the
seed design of htools 2.3 has it ("Balancing changes"), until as many as wanted can be improved. Groups share neither
nodes nor limits, so that their plans are made and carried out side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..cluster.model import Cluster
from ..cluster.state import ClusterState
from ..metrics.score import ScoreMode, Scorer
from ..plan.stages import Plan
from .group import GroupPlan

Planner = Callable[[Sequence[int]], Sequence[GroupPlan]]
"""Returns the plans of groups, in their order; it may leave out those for which there was no time."""


def rank_groups(cluster: Cluster, mode: ScoreMode) -> list[tuple[int, float]]:
    """Return each group with nodes and its score, the worst first."""
    state = ClusterState.from_cluster(cluster)
    members = [(group, state.group_nodes(group)) for group in range(len(cluster.groups))]
    scores = [(group, Scorer(state, mode, nodes).score(state)) for group, nodes in members if len(nodes)]
    return sorted(scores, key=lambda found: -found[1])


def worst_groups(cluster: Cluster, mode: ScoreMode, most: int, planner: Planner) -> list[GroupPlan]:
    """Return the plans of the worst groups that can be improved, `most` of them at most, the worst first."""
    waiting = [group for group, _score in rank_groups(cluster, mode)]
    chosen: list[GroupPlan] = []
    while waiting and len(chosen) < most:
        missing = most - len(chosen)
        batch, waiting = waiting[:missing], waiting[missing:]
        chosen += [found for found in planner(batch) if found.plan.moves]
    return chosen


def joined_plan(found: Sequence[GroupPlan]) -> Plan:
    """Return one plan of many: the groups' first stages are its first stage, and so on."""
    moves = tuple(move for part in found for move in part.plan.moves)
    after: list[tuple[int, ...]] = []
    stages: list[list[int]] = []
    first = 0
    for part in found:
        after += [tuple(first + number for number in earlier) for earlier in part.plan.after]
        for position, stage in enumerate(part.plan.stages):
            if position == len(stages):
                stages.append([])
            stages[position] += [first + number for number in stage]
        first += len(part.plan.moves)
    return Plan(moves, tuple(after), tuple(tuple(stage) for stage in stages))


PRICES = (0.0, 0.004, 0.0125, 0.04, 0.125, 0.4, 1.25, 4.0)
"""Points of the score for a TiB copied."""


@dataclass(frozen=True)
class Choice:
    """A plan and the price of data that led to it."""

    price: float
    plan: GroupPlan

    @property
    def merits(self) -> tuple[float, int, int]:
        """Return score, MiB copied and moves: each the better the less."""
        return self.plan.score_after, self.plan.data, len(self.plan.plan.moves)


def not_beaten(choices: Sequence[Choice]) -> list[Choice]:
    """Return the plans that no other one beats in score, data and moves alike, the best score first."""
    kept: list[Choice] = []
    for choice in sorted(choices, key=lambda one: one.merits):
        if not any(_beats(other, choice) for other in kept):
            kept.append(choice)
    return kept


def preferred(plan: GroupPlan, kept: Sequence[Choice]) -> GroupPlan:
    """Return a plan or, where it is not among those that are not beaten, the best of those that beat it in everything."""
    own = Choice(0.0, plan)
    beating = [choice.plan for choice in kept if choice.plan is not plan and _beats(choice, own)]
    return plan if any(choice.plan is plan for choice in kept) or not beating else beating[0]


def _beats(one: Choice, other: Choice) -> bool:
    """Return whether one is at least as good in everything."""
    return all(mine <= theirs for mine, theirs in zip(one.merits, other.merits))
