# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where an instance can go: every group that can take it, best first, and for the others what is in the way.

    result = find_places(state, instance, PlacementRequest())
    result.placements[0].primary, result.refusals[0].reasons

The instance must be nowhere. Groups are ordered by allocation policy and then by how good their best place is, as
the seed design for node groups asks; all of them are returned. In a group the best place is the one with the best score
of the whole cluster after it (strategy `balanced`), or the least loss of possible allocations (`partitioned`, see
partitioned.py). Ties go to the later node, as in Ganeti's hail.

Limits are those of limits.EXACT, and for instances on shared storage that the failure of any node of the same group
strands no more memory than before. Nothing is asked of other groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ...common.libraries import np, npt
from ..cluster.arrays import NOWHERE, Booleans, Floats, Integers
from ..cluster.model import AllocPolicy
from ..cluster.state import ClusterState
from ..metrics.limits import Limit
from ..metrics.policy import policy_failures
from ..metrics.score import ScoreMode, Scorer
from ..metrics.shared_redundancy import STRANDS_MORE, stranded_memory, strands_more_than
from ..metrics.verdicts import EXACT, primary_verdict, secondary_verdict
from .lost_allocations import LeastSize, Losses, least_sizes, losses

MOST_TRIED = 64
"""How many places of a group are tried when what must survive the failure of a node is in the way."""
_ALONE: Integers = np.array([NOWHERE])


class Strategy(StrEnum):
    """How the best place in a group is chosen; AUTO is partitioned where every node has exclusive storage."""

    AUTO = "auto"
    BALANCED = "balanced"
    PARTITIONED = "partitioned"


@dataclass(frozen=True)
class PlacementRequest:
    """How places are looked for. `group` restricts to one group, even one that takes no instances by itself.

    The score is then that of the group alone, as hail does. `nodes` restricts to these nodes.
    """

    strategy: Strategy = Strategy.AUTO
    score: ScoreMode = ScoreMode.HTOOLS
    group: int | None = None
    nodes: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Reason:
    """Why a node, or with node NOWHERE the whole group, cannot take an instance; `short` in the limit's unit."""

    node: int
    limit: str
    short: float
    says: str = ""


@dataclass(frozen=True)
class GroupPlacement:
    """The best place in a group. `lost` is None for balanced groups; `disk_left` is on its nodes together, in MiB."""

    group: int
    primary: int
    secondary: int
    score: float
    lost: tuple[int, ...] | None
    sizes: tuple[LeastSize, ...]
    disk_left: int

    @property
    def nodes(self) -> tuple[int, ...]:
        """Return one node or two, the primary first."""
        return (self.primary,) if self.secondary == NOWHERE else (self.primary, self.secondary)


@dataclass(frozen=True)
class Refusal:
    """A group that cannot take an instance."""

    group: int
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class PlacementResult:
    """All groups: those that can take the instance, best first, and those that cannot."""

    instance: int
    placements: tuple[GroupPlacement, ...]
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True)
class Candidates:
    """Every place in a group that keeps the limits of its nodes: fits is [P, S], or [P, 1] with one node."""

    primaries: Integers
    secondaries: Integers
    fits: Booleans
    reasons: tuple[Reason, ...]


def find_places(state: ClusterState, instance: int, request: PlacementRequest) -> PlacementResult:
    """Return where an instance that is nowhere can go."""
    placements, refusals = [], []
    members = None if request.group is None else state.group_nodes(request.group)
    scorer = Scorer(state, request.score, members)
    for group in range(len(state.facts.cluster.groups)) if request.group is None else [request.group]:
        found = _find_in_group(state, instance, group, request, scorer)
        if isinstance(found, Refusal):
            refusals.append(found)
        else:
            placements.append(found)
    return PlacementResult(instance, tuple(_ranked(state, placements)), tuple(refusals))


def group_refusal(state: ClusterState, instance: int, group: int, named: bool) -> tuple[Reason, ...]:
    """Return why a group as a whole does not take an instance: its policies and networks; empty when it does."""
    model, owner = state.facts.instances.models[instance], state.facts.cluster.groups[group]
    reasons = []
    if owner.alloc_policy == AllocPolicy.UNALLOCABLE and not named:
        reasons.append(Reason(NOWHERE, "alloc_policy", 0.0, "the group takes no new instances"))
    missing = [network for network in model.networks if network not in owner.networks]
    if missing:
        reasons.append(Reason(NOWHERE, "network", float(len(missing)), f"the group is not connected to {', '.join(missing)}"))
    nodes = state.group_nodes(group)
    exclusive = bool(len(nodes)) and bool(state.facts.nodes.exclusive[nodes].all())
    failures = policy_failures(model, owner.policy, exclusive)
    reasons += [Reason(NOWHERE, f"policy_{failure.limit.name.lower()}", float(failure.short), failure.says) for failure in failures]
    return tuple(reasons)


def candidates(state: ClusterState, instance: int, nodes: Integers) -> Candidates:
    """Return which places on `nodes` keep every limit; offline nodes are told among the reasons."""
    offline = tuple(Reason(int(node), "offline", 0.0) for node in nodes[state.offline[nodes]])
    online = nodes[~state.offline[nodes]]
    first = primary_verdict(state, instance, online, EXACT)
    reasons = _verdict_reasons(online, first.limit, first.short)
    if not state.facts.instances.two_nodes[instance]:
        return Candidates(online, _ALONE, first.fits[:, None], offline + reasons)
    second = secondary_verdict(state, instance, online, online, EXACT)
    fits = first.fits[:, None] & second.fits
    lonely = online[first.fits] if not fits.any() else online[:0]
    if len(lonely) == 1 and len(online) == 1:
        reasons = (*reasons, Reason(int(lonely[0]), "nodes", 1.0, "a second node is needed"))
    elif len(lonely):
        reasons += _partner_reasons(online, second.limit[first.fits], second.short[first.fits])
    return Candidates(online, online, fits, offline + reasons)


def _partner_reasons(nodes: Integers, limits: npt.NDArray[np.int8], short: Floats) -> tuple[Reason, ...]:
    """Return why no node can be the secondary of any possible primary: for each the way in which least is missing."""
    other = limits != Limit.SAME_NODE
    least = np.where(other, short, np.inf).argmin(axis=0)
    columns = np.arange(len(nodes))
    kept = other.any(axis=0)
    return tuple(
        Reason(int(nodes[column]), Limit(int(limits[row, column])).name.lower(), float(short[row, column]), "as the secondary")
        for row, column in zip(least[kept], columns[kept])
        if limits[row, column] != Limit.NONE
    )


def _verdict_reasons(nodes: Integers, limits: npt.NDArray[np.int8], short: Floats) -> tuple[Reason, ...]:
    return tuple(
        Reason(int(node), Limit(int(limit)).name.lower(), float(missing))
        for node, limit, missing in zip(nodes, limits, short)
        if limit != Limit.NONE
    )


def is_partitioned(state: ClusterState, group: int, strategy: Strategy) -> bool:
    """Return whether places in a group are chosen by lost allocations."""
    if strategy != Strategy.AUTO:
        return strategy == Strategy.PARTITIONED
    nodes = state.group_nodes(group)
    return bool(len(nodes)) and bool(state.facts.nodes.exclusive[nodes].all())


def placement_at(state: ClusterState, instance: int, primary: int, secondary: int, request: PlacementRequest) -> GroupPlacement | None:
    """Return a place that is asked for by its nodes, or None when it cannot be taken."""
    group = int(state.facts.nodes.group[primary])
    if group_refusal(state, instance, group, request.group is not None):
        return None
    alone = secondary == NOWHERE
    found = candidates(state, instance, np.array([primary] if alone else [primary, secondary]))
    row = np.flatnonzero(found.primaries == primary)
    column = np.flatnonzero(found.secondaries == secondary)
    exactly = Candidates(found.primaries[row], found.secondaries[column], found.fits[np.ix_(row, column)], found.reasons)
    members = None if request.group is None else state.group_nodes(request.group)
    chosen = _choose(state, instance, group, request, Scorer(state, request.score, members), exactly)
    return chosen if isinstance(chosen, GroupPlacement) else None


def _find_in_group(state: ClusterState, instance: int, group: int, request: PlacementRequest, scorer: Scorer) -> GroupPlacement | Refusal:
    reasons = group_refusal(state, instance, group, request.group is not None)
    if reasons:
        return Refusal(group, reasons)
    nodes = state.group_nodes(group)
    if request.nodes is not None:
        nodes = nodes[np.isin(nodes, request.nodes)]
    return _choose(state, instance, group, request, scorer, candidates(state, instance, nodes))


def _choose(
    state: ClusterState, instance: int, group: int, request: PlacementRequest, scorer: Scorer, found: Candidates
) -> GroupPlacement | Refusal:
    """Return the best of the places that fit."""
    if not found.fits.any():
        return Refusal(group, found.reasons or (Reason(NOWHERE, "nodes", 1.0, "the group has no node for it"),))
    scores = scores_of(state, instance, found, scorer)
    lost: Losses | None = None
    sizes: tuple[LeastSize, ...] = ()
    if is_partitioned(state, group, request.strategy):
        sizes = least_sizes(state.facts.cluster.groups[group].policy)
        lost = losses(state, instance, found.primaries, found.secondaries, sizes)
    place = _first_redundant(state, instance, group, found, by_primary(found.fits, scores if lost is None else rank_losses(lost)))
    if place is None:
        strands = Reason(NOWHERE, "shared_redundancy", float(state.facts.instances.memory[instance]), STRANDS_MORE)
        return Refusal(group, (*found.reasons, strands))
    row, column = place
    primary, secondary = int(found.primaries[row]), int(found.secondaries[column])
    left = losses(state, instance, found.primaries[[row]], found.secondaries[[column]], ()).disk_left
    return GroupPlacement(
        group=group,
        primary=primary,
        secondary=secondary,
        score=float(scores[row, column]),
        lost=None if lost is None else tuple(lost.lost[row, column].tolist()),
        sizes=sizes,
        disk_left=int(left[0, 0]),
    )


def scores_of(state: ClusterState, instance: int, found: Candidates, scorer: Scorer) -> Floats:
    """Return the score after each place, shaped like `found.fits`, infinite where it does not fit."""
    if not state.facts.instances.two_nodes[instance]:
        scores = scorer.primary_scores(state, instance, found.primaries)[:, None]
    else:
        scores = scorer.pair_scores(state, instance, found.primaries, found.secondaries)
    return np.where(found.fits, scores, np.inf)


def rank_losses(found: Losses) -> Floats:
    """Return for each place how many are better: by lost allocations, the largest size first, then disk left; equals share a rank."""
    keys = np.concatenate([found.lost.astype(float), found.disk_left[..., None]], axis=-1)
    _unique, ranks = np.unique(keys.reshape(-1, keys.shape[-1]), axis=0, return_inverse=True)
    return np.reshape(ranks, found.disk_left.shape).astype(float)


def by_primary(fits: Booleans, costs: Floats) -> Iterator[tuple[int, int]]:
    """Yield for each primary its best place, cheapest first; among equals the later."""
    costs = np.where(fits, costs, np.inf)
    columns = costs.shape[1] - 1 - costs[:, ::-1].argmin(axis=1)
    best = costs[np.arange(len(costs)), columns]
    for row in np.lexsort((-np.arange(len(best)), best)):
        if np.isfinite(best[row]):
            yield int(row), int(columns[row])


def _first_redundant(
    state: ClusterState,
    instance: int,
    group: int,
    found: Candidates,
    places: Iterator[tuple[int, int]],
) -> tuple[int, int] | None:
    """Return the first place after which no node's failure strands more than before."""
    if not _shares_storage(state, instance, group):
        return next(places, None)
    before = stranded_memory(state, group, exact=True)
    for _number, (row, column) in zip(range(MOST_TRIED), places):
        trial = state.copy()
        trial.place(instance, int(found.primaries[row]), int(found.secondaries[column]))
        if not strands_more_than(trial, group, before):
            return row, column
    return None


def _shares_storage(state: ClusterState, instance: int, group: int) -> bool:
    """Return whether anything in the group, the new instance included, would restart elsewhere when its node fails."""
    restarts = state.facts.instances.restarts
    return bool(restarts[instance]) or bool(np.isin(state.primary[restarts], state.group_nodes(group)).any())


def _ranked(state: ClusterState, placements: list[GroupPlacement]) -> list[GroupPlacement]:
    """Return the placements by allocation policy, groups with exclusive storage first, and by what the place costs.

    Who fits into a partitioned group has asked for spindles of its own. Losses of groups with different policies are
    compared size by size from the largest disk of any of them.
    """
    policies = list(AllocPolicy)
    disks = sorted({size.disk for placement in placements for size in placement.sizes}, reverse=True)

    def cost(placement: GroupPlacement) -> tuple[float, ...]:
        if placement.lost is None:
            return (placement.score,)
        by_disk = dict.fromkeys(disks, 0)
        for size, lost in zip(placement.sizes, placement.lost):
            by_disk[size.disk] += lost
        return (*by_disk.values(), placement.disk_left)

    def place(placement: GroupPlacement) -> tuple[int, bool, tuple[float, ...]]:
        policy = state.facts.cluster.groups[placement.group].alloc_policy
        return policies.index(policy), placement.lost is None, cost(placement)

    return sorted(placements, key=place)
