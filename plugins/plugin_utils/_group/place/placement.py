# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where an instance can go: every group that can take it, best first, and for the others what is in the way.

    result = find_places(state, instance, PlacementRequest())
    result.placements[0].primary, result.refusals[0].reasons

The instance must be nowhere. Groups are ordered by allocation policy and then by how good their best place is, as
the seed design for node groups asks; all of them are returned. In a group the best place is the one with the best score
of the whole cluster after it (strategy `balanced`), or the least loss of possible allocations (`partitioned`, see
lost_allocations.py). Ties go to the later node, as in Ganeti's hail.

Limits are those of limits.EXACT, and for instances on shared storage that the failure of any node of the same group
strands no more memory than before. Nothing is asked of other groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Floats
from ..cluster.changes import with_places
from ..cluster.model import AllocPolicy
from ..cluster.state import ClusterState
from ..metrics.score import ScoreMode, Scorer
from ..metrics.shared_redundancy import n1_deficit_exceeds, stranded_memory
from .lost_allocations import LeastSize, Losses, least_sizes, losses
from .places import Places, by_primary, places_for, scores_of
from .refusal import Reason, Refusal, group_refusal, stranding

MOST_TRIED = 64
"""How many places of a group are tried when what must survive the failure of a node is in the way."""


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
class PlacementResult:
    """All groups: those that can take the instance, best first, and those that cannot."""

    instance: int
    placements: tuple[GroupPlacement, ...]
    refusals: tuple[Refusal, ...]


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
    found = places_for(state, instance, np.array([primary] if alone else [primary, secondary]))
    exactly = found.where(found.is_at((primary, secondary)))
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
    return _choose(state, instance, group, request, scorer, places_for(state, instance, nodes))


def _choose(
    state: ClusterState, instance: int, group: int, request: PlacementRequest, scorer: Scorer, found: Places
) -> GroupPlacement | Refusal:
    """Return the best of the places that fit."""
    if not found.fits.any():
        return Refusal(group, found.reasons() or (Reason(NOWHERE, "nodes", 1.0, "the group has no node for it"),))
    scores = scores_of(state, instance, found, scorer)
    lost: Losses | None = None
    sizes: tuple[LeastSize, ...] = ()
    if is_partitioned(state, group, request.strategy):
        sizes = least_sizes(state.facts.cluster.groups[group].policy)
        lost = losses(state, instance, found.primaries, found.secondaries, sizes)
    place = _first_redundant(state, instance, group, found, by_primary(found.fits, scores if lost is None else rank_losses(lost)))
    if place is None:
        return Refusal(group, (*found.reasons(), *_strands(state, instance, group, found, by_primary(found.fits, scores))))
    row, column = place
    primary, secondary = found.at(row, column)
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


def costs_by(strategy: Strategy, state: ClusterState, instance: int, group: int, found: Places, scorer: Scorer) -> Floats:
    """Return what places in a group cost: their rank by lost allocations where these decide, else the score after them."""
    if not is_partitioned(state, group, strategy):
        return scores_of(state, instance, found, scorer)
    return rank_losses(losses(state, instance, found.primaries, found.secondaries, least_sizes(state.facts.cluster.groups[group].policy)))


def rank_losses(found: Losses) -> Floats:
    """Return for each place how many are better: by lost allocations, the largest size first, then disk left; equals share a rank."""
    keys = np.concatenate([found.lost.astype(float), found.disk_left[..., None]], axis=-1)
    _unique, ranks = np.unique(keys.reshape(-1, keys.shape[-1]), axis=0, return_inverse=True)
    return np.reshape(ranks, found.disk_left.shape).astype(float)


def _first_redundant(
    state: ClusterState,
    instance: int,
    group: int,
    found: Places,
    places: Iterator[tuple[int, int]],
) -> tuple[int, int] | None:
    """Return the first place after which no node's failure strands more than before."""
    if not _shares_storage(state, instance, group):
        return next(places, None)
    before = stranded_memory(state, group, exact=True)
    for _number, (row, column) in zip(range(MOST_TRIED), places):
        trial = state.copy()
        trial.place(instance, *found.at(row, column))
        if not n1_deficit_exceeds(trial, group, before):
            return row, column
    return None


def _strands(state: ClusterState, instance: int, group: int, found: Places, places: Iterator[tuple[int, int]]) -> tuple[Reason, ...]:
    """Return which node's failure keeps an instance from the first of its places."""
    first = next(places, None)
    if first is None:
        return ()
    before = stranded_memory(state, group, exact=True)
    after = stranded_memory(with_places(state, {instance: found.at(*first)}), group, exact=True)
    more = {node: memory - before.get(node, 0.0) for node, memory in after.items()}
    worst = max(more, key=lambda node: more[node], default=None)
    return () if worst is None else (stranding(state, worst, more[worst]),)


def _shares_storage(state: ClusterState, instance: int, group: int) -> bool:
    """Return whether anything in the group, the new instance included, would restart elsewhere when its node fails."""
    restarts = state.facts.instances.restarts
    if state.facts.cluster.tolerate is not None:
        return True
    return bool(restarts[instance]) or bool(np.isin(state.primary[restarts], state.group_nodes(group)).any())


def _ranked(state: ClusterState, placements: list[GroupPlacement]) -> list[GroupPlacement]:
    """Return the placements by allocation policy, groups with exclusive storage first, and by what the place costs.

    An instance that fits into a partitioned group asks for spindles of its own. Losses of groups with different policies are
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
