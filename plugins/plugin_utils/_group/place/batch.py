# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Places for several instances that share one state: one by one in the order given, and all at once when that fails.

    results, state = place_instances(state, [(instance, request), ...])

Each result lists the groups as they are when the instance's turn comes; the first placement of each is where it is counted
by those that follow. When one by one leaves somebody out, an assignment program looks for an arrangement that leaves out
fewer, so that the result is at least as complete as any order of the instances would give.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._common.libraries import np
from ..cluster.model import AllocPolicy
from ..cluster.state import ClusterState
from ..metrics.score import Scorer
from .assignment import assign
from .placement import PlacementRequest, PlacementResult, costs_by, find_places, placement_at
from .places import Choices, places_for, scaled
from .refusal import group_refusal

MOST_PLACES = 300_000
"""Places that an assignment program may choose from; when there are more, each instance's best ones are offered."""


def place_instances(state: ClusterState, requests: Sequence[tuple[int, PlacementRequest]]) -> tuple[list[PlacementResult], ClusterState]:
    """Return a result for each instance and the state with all that found a place in it."""
    results, after = _one_by_one(state, requests)
    if len(requests) > 1 and not all(result.placements for result in results):
        most = max(MOST_PLACES // len(requests), 1)
        places, _proven = assign(state, state, [choices_of_new(state, *asked).cheapest(most) for asked in requests])
        together, together_after = _as_assigned(state, requests, places)
        if _placed(together) > _placed(results):
            return together, together_after
    return results, after


def _placed(results: Sequence[PlacementResult]) -> int:
    return sum(bool(result.placements) for result in results)


def _one_by_one(state: ClusterState, requests: Sequence[tuple[int, PlacementRequest]]) -> tuple[list[PlacementResult], ClusterState]:
    after = state.copy()
    results = []
    for instance, request in requests:
        result = find_places(after, instance, request)
        results.append(result)
        if result.placements:
            after.place(instance, result.placements[0].primary, result.placements[0].secondary)
    return results, after


def _as_assigned(
    state: ClusterState,
    requests: Sequence[tuple[int, PlacementRequest]],
    places: Sequence[tuple[int, int] | None],
) -> tuple[list[PlacementResult], ClusterState]:
    """Return results in which an assigned place is its group's and comes first; other instances see the room that is left."""
    after = state.copy()
    found: dict[int, PlacementResult] = {}
    for position in sorted(range(len(requests)), key=lambda position: places[position] is None):
        instance, request = requests[position]
        result, place = find_places(after, instance, request), places[position]
        placement = None if place is None else placement_at(after, instance, *place, request)
        if placement is not None:
            others = tuple(other for other in result.placements if other.group != placement.group)
            refusals = tuple(refusal for refusal in result.refusals if refusal.group != placement.group)
            result = PlacementResult(instance, (placement, *others), refusals)
        found[position] = result
        if result.placements:
            after.place(instance, result.placements[0].primary, result.placements[0].secondary)
    return [found[position] for position in range(len(requests))], after


def choices_of_new(state: ClusterState, instance: int, request: PlacementRequest) -> Choices:
    """Return all places of a new instance; groups with a better allocation policy cost less, then the better place."""
    members = None if request.group is None else state.group_nodes(request.group)
    scorer = Scorer(state, request.score, members)
    policies = list(AllocPolicy)
    parts = []
    for group in range(len(state.facts.cluster.groups)) if request.group is None else [request.group]:
        if group_refusal(state, instance, group, request.group is not None):
            continue
        nodes = state.group_nodes(group)
        found = places_for(state, instance, nodes if request.nodes is None else nodes[np.isin(nodes, request.nodes)])
        policy = policies.index(state.facts.cluster.groups[group].alloc_policy)
        costs = costs_by(request.strategy, state, instance, group, found, scorer)
        parts.append((found, (policy + scaled(costs, found.fits)) / len(policies)))
    return Choices.of(instance, parts)
