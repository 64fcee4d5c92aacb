# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances that may stay, move inside their group, or go to other groups: the fewest leave, then the fewest move.

    found = relocate(state, [Offer(instance, groups), ...])
    found.targets, found.unplaced, found.proven

All offered instances are assigned together, by the integer program of assignment.py. Costs are in tiers: one instance
that leaves its group costs more than all that move inside, a move more than the copies and the scores. Limits are those
of limits.EXACT; `allowed` is the state whose broken limits may stay as broken as they are there, by default `state`.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..._common.highs import Effort
from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Quantity
from ..cluster.changes import with_places
from ..cluster.model import AllocPolicy
from ..cluster.moves import Place, can_move, reachable
from ..cluster.state import ClusterState
from ..metrics.score import ScoreMode, Scorer
from ..metrics.shared_redundancy import stranded_memory
from .assignment import assign
from .places import Choices, Origin, Weights, by_primary, importances, places_for, scores_of
from .refusal import Reason, Refusal, group_refusal, stranding

MOST_PLACES = 30_000
"""Places that the integer program may choose from; when there are more, each instance's cheapest ones are offered."""
EMPTY: Mapping[int, float] = types.MappingProxyType({})


@dataclass(frozen=True)
class Offer:
    """An instance with the groups it may be in, without the nodes of `avoid` and the places of `not_at`; it may stay if `may_stay`."""

    instance: int
    groups: tuple[int, ...]
    avoid: frozenset[int] = frozenset()
    may_stay: bool = False
    not_at: frozenset[Place] = frozenset()


FEWEST_LEAVE = Weights(leaving=1.0)
"""Only the leaving counts, which is proven much sooner."""
FEWEST_MOVES = Weights(leaving=1.0, move=1.0, copy=0.25, score=0.2)


@dataclass(frozen=True)
class Relocation:
    """New places of the instances that get one; `unplaced` neither stay nor find any. `proven`: no answer is better."""

    targets: dict[int, Place]
    unplaced: tuple[int, ...]
    proven: bool


def relocate(
    state: ClusterState,
    offers: Sequence[Offer],
    allowed: ClusterState | None = None,
    mode: ScoreMode = ScoreMode.HTOOLS,
    effort: Effort | None = None,
    passing: Mapping[int, float] = EMPTY,
    weights: Weights = FEWEST_MOVES,
) -> Relocation:
    """Return places for as many of the offered instances as can be, running ones first; `state` stays as it is.

    `passing` is memory (MiB) by node that must be left at the end, apart from what is kept for failovers, for an
    instance that passes through the node on its way.
    """
    lifted = state.copy()
    for offer in offers:
        lifted.remove(offer.instance)
    allowed = state if allowed is None else allowed
    most = max(MOST_PLACES // max(len(offers), 1), 1)
    scorer = Scorer(lifted, mode)
    importance = importances(state, [offer.instance for offer in offers])
    # Weights between 0 and 1 in which leaving the group outweighs all that `count` moves can cost inside it.
    count = len(offers)
    part = 1 / (max(weights.inside, 1.0) * 2 * max(count, 1))
    inside = weights.times(part)
    tiered = dataclasses.replace(inside, leaving=weights.leaving).times(1 / (weights.leaving + 0.5))
    found = [_choices(state, lifted, offer, scorer, tiered, importance[offer.instance]) for offer in offers]
    places, proven = assign(*_with_passage(allowed, lifted, passing), [choices.cheapest(most) for choices in found], effort)
    targets = {
        offer.instance: place for offer, place in zip(offers, places) if place is not None and place != state.place_of(offer.instance)
    }
    unplaced = tuple(offer.instance for offer, place in zip(offers, places) if place is None)
    return Relocation(targets, unplaced, proven and all(len(choices) <= most for choices in found))


def _with_passage(allowed: ClusterState, lifted: ClusterState, passing: Mapping[int, float]) -> tuple[ClusterState, ClusterState]:
    """Return the two states with less memory on the nodes passed through, but as much for failovers."""
    allowed, lifted = allowed.copy(), lifted.copy()
    for node, memory in passing.items():
        short = max(allowed.reserved[node] - allowed.quantities[Quantity.MEMORY, node], 0.0)
        allowed.reserved[node] = allowed.quantities[Quantity.MEMORY, node] + short + memory
        lifted.quantities[Quantity.MEMORY, node] -= memory
    return allowed, lifted


def _choices(state: ClusterState, lifted: ClusterState, offer: Offer, scorer: Scorer, weights: Weights, importance: int) -> Choices:
    """Return every place that one instance may take."""
    own, home = state.group_of(offer.instance), state.place_of(offer.instance)
    offline_nodes = frozenset(node for node in home if node != NOWHERE and state.offline[node])
    origin = Origin(home, offer.avoid, offer.avoid | offline_nodes)
    parts = []
    for group in offer.groups if can_move(state, offer.instance) else ():
        if group != own and group_refusal(lifted, offer.instance, group, named=False):
            continue
        found = places_for(lifted, offer.instance, lifted.group_nodes(group), origin=origin)
        scores = scores_of(lifted, offer.instance, found, scorer) if weights.score else np.zeros(1)
        parts.append((found, weights.costs(state, home, found, scores)))
    choices = Choices.of(offer.instance, parts, importance).without(offer.not_at)
    return choices.staying(home) if offer.may_stay else choices


def place_elsewhere(lifted: ClusterState, instance: int, home: Place, groups: Sequence[int], mode: ScoreMode) -> Place | None:
    """Return the best place of an instance that is nowhere but comes from `home`: by allocation policy, then by score."""
    scorer = Scorer(lifted, mode)
    for policy in AllocPolicy:
        tied = [group for group in groups if lifted.facts.cluster.groups[group].alloc_policy == policy]
        answers = (place_in(lifted, instance, home, group, scorer) for group in tied)
        places = [place for place in answers if not isinstance(place, Refusal)]
        if places:
            return min(places, key=lambda place: scorer.score(with_places(lifted, {instance: place})))
    return None


def refusals_in(state: ClusterState, instance: int, groups: Sequence[int], mode: ScoreMode) -> tuple[Refusal, ...]:
    """Return what those of `groups` that do not take an instance have against it; `state` stays as it is."""
    home = state.place_of(instance)
    with state.lifted(instance):
        scorer = Scorer(state, mode)
        answers = [place_in(state, instance, home, group, scorer) for group in groups]
    return tuple(answer for answer in answers if isinstance(answer, Refusal))


def place_in(state: ClusterState, instance: int, home: Place, group: int, scorer: Scorer) -> Place | Refusal:
    """Return the best place in another group of an instance that is nowhere but comes from `home`, or why there is none.

    What the failure of a node strands is judged by best fit here, without the proofs of placement.py, so that many
    instances can be asked for; what best fit cannot restart counts as stranded.
    """
    reasons = group_refusal(state, instance, group, named=False)
    if reasons:
        return Refusal(group, reasons)
    found = places_for(state, instance, state.group_nodes(group))
    if not found.fits.any():
        return Refusal(group, found.reasons() or (Reason(NOWHERE, "nodes", 1.0, "the group has no node for it"),))
    found = found.where(reachable(state, home, found.primaries, found.secondaries))
    if not found.fits.any():
        return Refusal(group, (Reason(NOWHERE, "migration", 0.0, "no migration tag allows it to come from its group"),))
    before = stranded_memory(state, group, exact=False)
    nothing: tuple[float, tuple[int, ...]] = (np.inf, ())
    least, failing = nothing
    for row, column in by_primary(found.fits, scores_of(state, instance, found, scorer)):
        place = found.at(row, column)
        after = stranded_memory(with_places(state, {instance: place}), group, exact=False)
        worse = [(memory - before.get(nodes, 0.0), nodes) for nodes, memory in after.items()]
        if max(worse, default=(0.0, ()))[0] <= 0:
            return place
        least, failing = min((least, failing), max(worse))
    return Refusal(group, (stranding(state, failing, least),))
