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

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...common.libraries import np
from ..cluster.arrays import NOWHERE, Booleans, Floats, Integers, Quantity
from ..cluster.changes import with_places
from ..cluster.model import AllocPolicy
from ..cluster.moves import Place, can_move, reachable
from ..cluster.state import ClusterState
from ..metrics.score import ScoreMode, Scorer
from ..metrics.shared_redundancy import STRANDS_MORE, stranded_memory
from .assignment import SECONDS, Wanted, assign
from .placement import Candidates, Reason, by_primary, candidates, group_refusal, scores_of

MOST_PLACES = 60_000
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


@dataclass(frozen=True)
class Weights:
    """What a new place costs: for leaving the group, and, all moves together less than one leaving, for what is done inside."""

    leaving: float = 1.0
    move: float = 1.0
    copy: float = 0.25
    score: float = 0.2

    @property
    def inside(self) -> float:
        """Return the most that a place can cost apart from leaving."""
        return self.move + 2 * self.copy + self.score


FEWEST_LEAVE = Weights(move=0.0, copy=0.0, score=0.0)
"""Only the leaving counts, which is proven much sooner."""
FEWEST_MOVES = Weights()


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
    seconds: float = SECONDS,
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
    found = [_places(state, lifted, offer, scorer, weights, len(offers)) for offer in offers]
    importance = _importances(state, offers)
    wanted = []
    for offer, weight, (primaries, secondaries, costs) in zip(offers, importance, found):
        best = np.argsort(costs, kind="stable")[:most]
        wanted.append(Wanted(offer.instance, primaries[best], secondaries[best], costs[best], weight))
    places, proven = assign(*_with_passage(allowed, lifted, passing), wanted, seconds)
    targets = {
        offer.instance: place for offer, place in zip(offers, places) if place is not None and place != home_of(state, offer.instance)
    }
    unplaced = tuple(offer.instance for offer, place in zip(offers, places) if place is None)
    return Relocation(targets, unplaced, proven and all(len(columns[0]) <= most for columns in found))


def _with_passage(allowed: ClusterState, lifted: ClusterState, passing: Mapping[int, float]) -> tuple[ClusterState, ClusterState]:
    """Return the two states with less memory on the nodes passed through, but as much for failovers."""
    allowed, lifted = allowed.copy(), lifted.copy()
    for node, memory in passing.items():
        short = max(allowed.reserved[node] - allowed.quantities[Quantity.MEMORY, node], 0.0)
        allowed.reserved[node] = allowed.quantities[Quantity.MEMORY, node] + short + memory
        lifted.quantities[Quantity.MEMORY, node] -= memory
    return allowed, lifted


def home_of(state: ClusterState, instance: int) -> Place:
    """Return where an instance is."""
    return int(state.primary[instance]), int(state.secondary[instance])


def _importances(state: ClusterState, offers: Sequence[Offer]) -> list[int]:
    """Return weights by which one running instance counts more than all that are stopped."""
    runs = [state.facts.instances.models[offer.instance].uses_memory for offer in offers]
    return [runs.count(False) + 1 if running else 1 for running in runs]


def _places(
    state: ClusterState,
    lifted: ClusterState,
    offer: Offer,
    scorer: Scorer,
    weights: Weights,
    count: int,
) -> tuple[Integers, Integers, Floats]:
    """Return primaries, secondaries and costs of every place that one instance may take."""
    own = state.group_of(offer.instance)
    home = home_of(state, offer.instance)
    parts = []
    for group in offer.groups if can_move(state, offer.instance) else ():
        if group != own and group_refusal(lifted, offer.instance, group, named=False):
            continue
        nodes = lifted.group_nodes(group)
        found = candidates(lifted, offer.instance, nodes[~np.isin(nodes, list(offer.avoid))])
        fits = found.fits & reachable(state, home, found.primaries, found.secondaries)
        for place in (home, *offer.not_at):
            fits &= ~_is(found, place)
        scores = scores_of(lifted, offer.instance, found, scorer) if weights.score else np.zeros(fits.shape)
        costs = _costs(state, offer.instance, found, np.where(fits, scores, np.inf), weights, count)
        rows, columns = np.nonzero(fits)
        parts.append((found.primaries[rows], found.secondaries[columns], costs[rows, columns]))
    if offer.may_stay:
        parts.append((np.array([home[0]]), np.array([home[1]]), np.zeros(1)))
    nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    primaries, secondaries, all_costs = zip(nothing, *parts)
    return np.concatenate(primaries), np.concatenate(secondaries), np.concatenate(all_costs)


def _is(found: Candidates, place: Place) -> Booleans:
    return (found.primaries == place[0])[:, None] & (found.secondaries == place[1])[None, :]


def _costs(state: ClusterState, instance: int, found: Candidates, scores: Floats, weights: Weights, count: int) -> Floats:
    """Return costs between 0 and 1 in which leaving the group outweighs `count` moves inside it."""
    home = home_of(state, instance)
    known = scores[np.isfinite(scores)]
    low, width = (float(known.min()), float(np.ptp(known))) if len(known) else (0.0, 0.0)
    scaled = np.clip((np.where(np.isfinite(scores), scores, low) - low) / (width or 1.0), 0.0, 1.0)
    copied = np.zeros(scores.shape)
    if home[1] != NOWHERE:
        copied += ~np.isin(found.primaries, home)[:, None]
        copied += ~np.isin(found.secondaries, home)[None, :]
    leaves = state.facts.nodes.group[found.primaries] != state.group_of(instance)
    inside = (weights.move + weights.copy * copied + weights.score * scaled) / max(weights.inside, 1.0)
    costs: Floats = (weights.leaving * leaves[:, None] + inside / (2 * count)) / (weights.leaving + 0.5)
    return costs


@dataclass(frozen=True)
class Refused:
    """Why a group does not take an instance."""

    reasons: tuple[Reason, ...]


def place_elsewhere(lifted: ClusterState, instance: int, home: Place, groups: Sequence[int], mode: ScoreMode) -> Place | None:
    """Return the best place of an instance that is nowhere but comes from `home`: by allocation policy, then by score."""
    scorer = Scorer(lifted, mode)
    for policy in AllocPolicy:
        tied = [group for group in groups if lifted.facts.cluster.groups[group].alloc_policy == policy]
        answers = (place_in(lifted, instance, home, group, scorer) for group in tied)
        places = [place for place in answers if not isinstance(place, Refused)]
        if places:
            return min(places, key=lambda place: scorer.score(with_places(lifted, {instance: place})))
    return None


def place_in(state: ClusterState, instance: int, home: Place, group: int, scorer: Scorer) -> Place | Refused:
    """Return the best place in a group of an instance that is nowhere but comes from `home`, or why there is none.

    What the failure of a node strands is judged by best fit here, without the proofs of placement.py, so that many
    instances can be asked for; what best fit cannot restart counts as stranded.
    """
    reasons = group_refusal(state, instance, group, named=False)
    if reasons:
        return Refused(reasons)
    found = candidates(state, instance, state.group_nodes(group))
    if not found.fits.any():
        return Refused(found.reasons or (Reason(NOWHERE, "nodes", 1.0, "the group has no node for it"),))
    fits = found.fits & reachable(state, home, found.primaries, found.secondaries)
    if not fits.any():
        return Refused((Reason(NOWHERE, "migration", 0.0, "no migration tag lets it come from where it is"),))
    before = stranded_memory(state, group, exact=False)
    least = np.inf
    for row, column in by_primary(fits, scores_of(state, instance, found, scorer)):
        place = int(found.primaries[row]), int(found.secondaries[column])
        after = stranded_memory(with_places(state, {instance: place}), group, exact=False)
        worse = [memory - before.get(node, 0.0) for node, memory in after.items()]
        if max(worse, default=0.0) <= 0:
            return place
        least = min(least, max(worse))
    return Refused((Reason(NOWHERE, "shared_redundancy", least, STRANDS_MORE),))
