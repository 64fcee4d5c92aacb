# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of one instance put into a cluster until none fits: the state for it, one step, and what failed at the end.

    room = room_for(cluster, instance)                  # a state that knows one instance only, at position 0
    attempt = try_copy(room, groups, options, scorer)
    stamp(room, attempt.place)                          # the copy stays, and the next may follow
    room = resized(room, smaller_instance)

Steps are those of Ganeti's hspace: each copy goes where the score is best afterwards, among equals to the later node; or
in groups that are given away in parts to where the fewest possible allocations are lost.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .facts import NOWHERE, Booleans, Floats, InstanceFacts, Integers, collect_facts
from .limits import EXACT, Limit, Rules, policy_failures, primary_verdict, secondary_verdict
from .model import Cluster, Instance
from .moves import Place
from .partitioned import least_sizes, losses
from .placement import Strategy, is_partitioned, rank_losses
from .score import ScoreMode, Scorer
from .state import ClusterState

_SIZES = ("models", "as_primary", "as_secondary", "memory", "disk", "reserves", "restarts", "spindles_known")
"""The fields of InstanceFacts that follow from an instance's sizes."""


@dataclass(frozen=True)
class CopyOptions:
    """How a copy's place is chosen. `rules` are the limits that are kept."""

    rules: Rules = EXACT
    score: ScoreMode = ScoreMode.CAPACITY
    strategy: Strategy = Strategy.AUTO


@dataclass(frozen=True)
class Attempt:
    """The best place of a copy, or None; `failures` counts the places (nodes or pairs) at which each limit failed first."""

    place: Place | None
    failures: collections.Counter[Limit]


def room_for(cluster: Cluster, instance: Instance) -> ClusterState:
    """Return the state of a cluster in which the only instance known is a new one, at position 0."""
    return _alone(ClusterState.from_cluster(cluster, (instance,)), len(cluster.instances))


def resized(room: ClusterState, instance: Instance) -> ClusterState:
    """Return the same state with an instance of other sizes at position 0; template, storage and tags must be the same."""
    sizes = collect_facts(Cluster((), (), ()), (instance,)).instances
    changed = dataclasses.replace(room.facts.instances, **{name: getattr(sizes, name) for name in _SIZES})
    copy = room.copy()
    copy.facts = dataclasses.replace(room.facts, instances=changed)
    return copy


def stamp(room: ClusterState, place: Place) -> None:
    """Put a copy at a place for good."""
    room.place(0, *place)
    room.primary[0] = room.secondary[0] = NOWHERE


def try_copy(room: ClusterState, groups: Sequence[int], options: CopyOptions, scorer: Scorer) -> Attempt:
    """Return the best place of a copy in any of `groups`, or what failed."""
    failures: collections.Counter[Limit] = collections.Counter()
    best: tuple[float, int, Place] | None = None
    for group in groups:
        nodes = room.group_nodes(group)
        online = nodes[~room.offline[nodes]]
        refused = _policy_limit(room, group, online)
        if refused is not None:
            failures[refused] += len(online) * (len(online) - 1 if room.facts.instances.two_nodes[0] else 1)
            continue
        columns, fits, failed = _fits(room, online, options.rules)
        failures += failed
        if not fits.any():
            continue
        costs = np.where(fits, _costs(room, group, online, columns, options, scorer), np.inf)
        rows, others = np.nonzero(costs == costs.min())
        row, column = max(zip(rows.tolist(), others.tolist()))
        found = float(costs[row, column]), -int(online[row]), (int(online[row]), int(columns[column]))
        best = found if best is None else min(best, found)
    return Attempt(None if best is None else best[2], failures)


def places_of(state: ClusterState, instance: int, groups: Sequence[int], options: CopyOptions) -> list[Place]:
    """Return the best place at each possible primary of an instance that is nowhere in a whole state, the best first."""
    room = _alone(state, instance)
    scorer = Scorer(room, options.score)
    found = []
    while (place := try_copy(room, groups, options, scorer).place) is not None:
        found.append(place)
        room.offline[place[0]] = True
    return found


def _fits(room: ClusterState, online: Integers, rules: Rules) -> tuple[Integers, Booleans, collections.Counter[Limit]]:
    """Return the second nodes, [P, S] whether a copy fits, and the counts of the limits that fail first."""
    first = primary_verdict(room, 0, online, rules)
    if not room.facts.instances.two_nodes[0]:
        return np.array([NOWHERE]), first.fits[:, None], _counted(first.limit)
    second = secondary_verdict(room, 0, online, online, rules)
    limits = np.where(first.fits[:, None], second.limit, first.limit[:, None])
    pairs = online[:, None] != online[None, :]
    return online, (limits == Limit.NONE) & pairs, _counted(limits[pairs])


def _counted(limits: np.ndarray) -> collections.Counter[Limit]:
    counts = np.bincount(limits.ravel(), minlength=len(Limit))
    return collections.Counter({limit: int(counts[limit]) for limit in Limit if limit != Limit.NONE and counts[limit]})


def _policy_limit(room: ClusterState, group: int, online: Integers) -> Limit | None:
    """Return the limit of a group's policy that fails first, in its first interval, or None."""
    model, policy = room.facts.instances.models[0], room.facts.cluster.groups[group].policy
    exclusive = bool(len(online)) and bool(room.facts.nodes.exclusive[online].all())
    if not policy_failures(model, policy, exclusive):
        return None
    first = policy_failures(model, dataclasses.replace(policy, intervals=policy.intervals[:1]), exclusive)
    return (first or policy_failures(model, policy, exclusive))[0].limit


def _costs(room: ClusterState, group: int, rows: Integers, columns: Integers, options: CopyOptions, scorer: Scorer) -> Floats:
    if is_partitioned(room, group, options.strategy):
        return rank_losses(losses(room, 0, rows, columns, least_sizes(room.facts.cluster.groups[group].policy)))
    if columns[0] == NOWHERE:
        return scorer.primary_scores(room, 0, rows)[:, None]
    return scorer.pair_scores(room, 0, rows, columns)


def _alone(state: ClusterState, instance: int) -> ClusterState:
    """Return a copy of a state in which one instance that is nowhere is the only one known."""
    room = state.copy()
    room.facts = dataclasses.replace(state.facts, instances=_only(state.facts.instances, instance))
    room.primary, room.secondary = np.array([NOWHERE]), np.array([NOWHERE])
    return room


def _only(facts: InstanceFacts, position: int) -> InstanceFacts:
    """Return the facts of one instance alone."""
    part = slice(position, position + 1)
    return InstanceFacts(
        **{name: value[:, part] if name in ("as_primary", "as_secondary") else value[part] for name, value in vars(facts).items()}
    )
