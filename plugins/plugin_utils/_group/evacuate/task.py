# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an evacuation is asked to do with one instance, and the places where that may be done.

    tasks = tasks_of_nodes(state, nodes, mode)             # or tasks_of_instances(state, instances, mode)
    choices_of(state, now, task, across, Scorers(state, score), rules)

Costs are the copies of disks, then leaving the group, then the score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE
from ..cluster.moves import can_leave
from ..cluster.state import ClusterState
from ..metrics.score import ScoreMode, Scorer
from ..metrics.verdicts import EXACT, Rules
from ..place.places import Choices, Origin, Places, Weights, places_for, scores_of
from ..place.refusal import Refusal, group_refusal

WEIGHTS = Weights(leaving=10.0, copy=1.0, score=0.99)


class AcrossGroups(StrEnum):
    """Whether instances stay in their group, may leave it when there is no room in it, or must leave it."""

    NO = "false"
    YES = "true"
    ONLY = "only"


class EvacuationMode(StrEnum):
    """Which role the instances give up."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    ALL = "all"


@dataclass(frozen=True)
class Task:
    """An instance that must not have its primary or its secondary on these nodes; `groups` None is any group but its own."""

    instance: int
    not_primary: frozenset[int]
    not_secondary: frozenset[int]
    keeps_primary: bool = False
    groups: tuple[int, ...] | None = None


class Scorers:
    """The scorers of groups and of the whole cluster, each made once; they hold as long as no node goes on or off."""

    def __init__(self, state: ClusterState, mode: ScoreMode) -> None:
        self._state = state
        self._mode = mode
        self._known: dict[int | None, Scorer] = {}

    def of(self, group: int | None) -> Scorer:
        """Return the scorer of a group, or with None of the whole."""
        if group not in self._known:
            self._known[group] = Scorer(self._state, self._mode, None if group is None else self._state.group_nodes(group))
        return self._known[group]


def tasks_of_nodes(state: ClusterState, nodes: Sequence[int], mode: EvacuationMode) -> list[Task]:
    """Return what must move for nodes to be empty: of primaries, of secondaries, or of both."""
    leaving = frozenset(nodes)
    tasks = []
    for instance in np.flatnonzero(np.isin(state.primary, nodes) | np.isin(state.secondary, nodes)).tolist():
        task = _task(state, instance, leaving, mode)
        if task is not None:
            tasks.append(task)
    return tasks


def tasks_of_instances(state: ClusterState, instances: Sequence[int], mode: EvacuationMode) -> list[Task]:
    """Return what must move when instances are to leave the nodes of a role: those that all of them have, or else each its own."""
    homes = [_roles(state, instance, mode) - {NOWHERE} for instance in instances]
    common = frozenset(set.intersection(*homes)) if homes else frozenset()
    tasks = (_task(state, i, common or frozenset(home), mode) for i, home in zip(instances, homes))
    return [task for task in tasks if task is not None]


def _roles(state: ClusterState, instance: int, mode: EvacuationMode) -> set[int]:
    """Return the nodes of the roles that an instance gives up."""
    primary, secondary = state.place_of(instance)
    return {EvacuationMode.PRIMARY: {primary}, EvacuationMode.SECONDARY: {secondary}, EvacuationMode.ALL: {primary, secondary}}[mode]


def _task(state: ClusterState, instance: int, leaving: frozenset[int], mode: EvacuationMode) -> Task | None:
    first, second = int(state.primary[instance]) in leaving, int(state.secondary[instance]) in leaving
    if mode == EvacuationMode.PRIMARY:
        return Task(instance, leaving, frozenset()) if first else None
    if mode == EvacuationMode.SECONDARY:
        return Task(instance, frozenset(), leaving, keeps_primary=True) if second else None
    return Task(instance, leaving, leaving) if first or second else None


@dataclass(frozen=True)
class InGroups:
    """The places of an instance in each group that takes it, with the scorer that finds the best, and the groups that refuse."""

    places: list[tuple[Places, Scorer]]
    refusals: list[Refusal]


def places_in_groups(
    start: ClusterState,
    now: ClusterState,
    task: Task,
    across: AcrossGroups,
    scorers: Scorers,
    rules: Rules = EXACT,
) -> InGroups:
    """Return the places of an instance; `start` gives its present nodes, `now` the limits."""
    found = InGroups([], [])
    if not can_leave(start, task.instance):
        return found
    own = start.group_of(task.instance)
    others = [] if across == AcrossGroups.NO or task.keeps_primary else [g for g in range(len(start.facts.cluster.groups)) if g != own]
    allowed = others if task.groups is None else [group for group in others if group in task.groups]
    origin = Origin(start.place_of(task.instance), task.not_primary, task.not_secondary, task.keeps_primary)
    with now.lifted(task.instance):
        for group in [*([] if across == AcrossGroups.ONLY else [own]), *allowed]:
            refused = group_refusal(now, task.instance, group, task.groups is not None) if group != own else ()
            if refused:
                found.refusals.append(Refusal(group, refused))
            else:
                places = places_for(now, task.instance, now.group_nodes(group), rules, origin)
                found.places.append((places, scorers.of(None if allowed else group)))
    return found


def choices_of(
    start: ClusterState,
    now: ClusterState,
    task: Task,
    across: AcrossGroups,
    scorers: Scorers,
    rules: Rules,
    importance: int = 1,
) -> Choices:
    """Return the places that an instance may take, in all groups; costs are between 0 and 1."""
    home = start.place_of(task.instance)
    weights = WEIGHTS.times(1 / WEIGHTS.most)
    parts = []
    found = places_in_groups(start, now, task, across, scorers, rules)
    with now.lifted(task.instance):
        for places, scorer in found.places:
            scores = scores_of(now, task.instance, places, scorer)
            parts.append((places, weights.costs(start, home, places, scores)))
    return Choices.of(task.instance, parts, importance)
