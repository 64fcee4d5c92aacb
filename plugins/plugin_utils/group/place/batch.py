# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Places for several instances that share one state: one by one in the order given, and all at once when that fails.

    surveys, state = place_instances(state, [(instance, wish), ...])

Each survey lists the groups as they are when the instance's turn comes; the first option of each is where it is counted
by those that follow. When one by one leaves somebody out, an assignment program looks for an arrangement that leaves out
fewer, so that the result is at least as complete as any order of the instances would give.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...common.libraries import np
from ..cluster.arrays import Floats, Integers
from ..cluster.model import AllocPolicy
from ..cluster.state import ClusterState
from ..metrics.score import Scorer
from .assignment import Wanted, assign
from .lost_allocations import least_sizes, losses
from .placement import (
    Candidates,
    Survey,
    Wish,
    candidates,
    find_places,
    group_refusal,
    is_partitioned,
    option_at,
    rank_losses,
    scores_of,
)

MOST_PLACES = 300_000
"""Places that an assignment program may choose from; when there are more, each instance's best ones are offered."""


def place_instances(state: ClusterState, wishes: Sequence[tuple[int, Wish]]) -> tuple[list[Survey], ClusterState]:
    """Return a survey for each instance and the state with all that found a place in it."""
    surveys, after = _one_by_one(state, wishes)
    if len(wishes) > 1 and not all(survey.options for survey in surveys):
        places, _proven = assign(state, state, _wanted(state, wishes))
        together, together_after = _as_assigned(state, wishes, places)
        if _placed(together) > _placed(surveys):
            return together, together_after
    return surveys, after


def _placed(surveys: Sequence[Survey]) -> int:
    return sum(bool(survey.options) for survey in surveys)


def _one_by_one(state: ClusterState, wishes: Sequence[tuple[int, Wish]]) -> tuple[list[Survey], ClusterState]:
    after = state.copy()
    surveys = []
    for instance, wish in wishes:
        survey = find_places(after, instance, wish)
        surveys.append(survey)
        if survey.options:
            after.place(instance, survey.options[0].primary, survey.options[0].secondary)
    return surveys, after


def _as_assigned(
    state: ClusterState,
    wishes: Sequence[tuple[int, Wish]],
    places: Sequence[tuple[int, int] | None],
) -> tuple[list[Survey], ClusterState]:
    """Return surveys in which an assigned place is its group's and comes first; who has none sees what the others leave."""
    after = state.copy()
    found: dict[int, Survey] = {}
    for position in sorted(range(len(wishes)), key=lambda position: places[position] is None):
        instance, wish = wishes[position]
        survey, place = find_places(after, instance, wish), places[position]
        option = None if place is None else option_at(after, instance, *place, wish)
        if option is not None:
            others = tuple(other for other in survey.options if other.group != option.group)
            refusals = tuple(refusal for refusal in survey.refusals if refusal.group != option.group)
            survey = Survey(instance, (option, *others), refusals)
        found[position] = survey
        if survey.options:
            after.place(instance, survey.options[0].primary, survey.options[0].secondary)
    return [found[position] for position in range(len(wishes))], after


def _wanted(state: ClusterState, wishes: Sequence[tuple[int, Wish]]) -> list[Wanted]:
    most = max(MOST_PLACES // len(wishes), 1)
    return [_wanted_by(state, instance, wish, most) for instance, wish in wishes]


def _wanted_by(state: ClusterState, instance: int, wish: Wish, most: int) -> Wanted:
    members = None if wish.group is None else state.group_nodes(wish.group)
    scorer = Scorer(state, wish.score, members)
    policies = list(AllocPolicy)
    parts = []
    for group in range(len(state.facts.cluster.groups)) if wish.group is None else [wish.group]:
        if group_refusal(state, instance, group, wish.group is not None):
            continue
        nodes = state.group_nodes(group)
        found = candidates(state, instance, nodes if wish.nodes is None else nodes[np.isin(nodes, wish.nodes)])
        policy = policies.index(state.facts.cluster.groups[group].alloc_policy)
        parts.append(_places(found, policy + _costs(state, instance, group, wish, found, scorer)))
    empty = np.zeros(0, dtype=np.int64)
    primaries, secondaries, costs = (np.concatenate([empty, *columns]) for columns in (zip(*parts) if parts else ((), (), ())))
    best = np.argsort(costs, kind="stable")[:most]
    return Wanted(instance, primaries[best], secondaries[best], costs[best] / len(policies))


def _costs(state: ClusterState, instance: int, group: int, wish: Wish, found: Candidates, scorer: Scorer) -> Floats:
    """Return what the places cost, between 0 and 1."""
    if not found.fits.any():
        return np.ones(found.fits.shape)
    if is_partitioned(state, group, wish.strategy):
        sizes = least_sizes(state.facts.cluster.groups[group].policy)
        costs = rank_losses(losses(state, instance, found.primaries, found.secondaries, sizes))
    else:
        costs = scores_of(state, instance, found, scorer)
    low, high = costs[found.fits].min(), costs[found.fits].max()
    scaled: Floats = np.clip((costs - low) / (high - low if high > low else 1.0), 0.0, 1.0)
    return scaled


def _places(found: Candidates, costs: Floats) -> tuple[Integers, Integers, Floats]:
    rows, columns = np.nonzero(found.fits)
    return found.primaries[rows], found.secondaries[columns], costs[rows, columns]
