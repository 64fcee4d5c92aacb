# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Emptying nodes: new places for their instances inside the group, then in other groups, as one assignment problem.

    tasks = tasks_of_nodes(state, nodes, mode)             # or tasks_of_instances(state, instances, mode)
    result = evacuate(state, tasks, across, score)

Instances are first taken one by one, the most important first, each to where the fewest disks are copied and then the
score is best. When that leaves somebody out, an integer program places as many of the most important ones as can be:
running ones before others. A node is only avoided when it is itself to be emptied, not because some other instance in
the list has its mirror there.

Limits are those of limits.EXACT. An instance whose primary is down may, when nothing else is left, be started where
soft limits (N+1, CPUs, tags) break: that is what memory was kept for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from .assignment import Wanted, assign
from .facts import NOWHERE, Booleans, Floats, Integers
from .limits import EXACT, Limit, Rules, primary_verdict, secondary_verdict
from .model import MIRRORED_OUTSIDE
from .moves import Move, Place
from .placement import Reason, group_refusal
from .plan import order_moves
from .score import ScoreMode, Scorer
from .state import ClusterState

MOST_PLACES = 200_000
"""Places that the integer program may choose from; when there are more, each instance's best ones are offered."""
_COPY = 1.0
_OTHER_GROUP = 10.0
"""What a copy of the disks and leaving the group cost beside a score that is scaled to 0..1."""


_NO_ORDER = Reason(NOWHERE, "order", 0.0, "there is a place, but no order of moves in which each of them has room")


class EvacuationMode(StrEnum):
    """Which role the instances give up."""

    PRIMARY = "primary"
    SECONDARY = "secondary"
    ALL = "all"


class AcrossGroups(StrEnum):
    """Whether instances stay in their group, may leave it when there is no room in it, or must leave it."""

    NO = "false"
    YES = "true"
    ONLY = "only"


@dataclass(frozen=True)
class Task:
    """An instance that must not have its primary or its secondary on these nodes; `groups` None is any group but its own."""

    instance: int
    not_primary: frozenset[int]
    not_secondary: frozenset[int]
    keeps_primary: bool = False
    groups: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Unplaced:
    """An instance that stays where it is, and why."""

    instance: int
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Evacuation:
    """Moves in an order in which they can be carried out; `relaxed` are those that break soft limits."""

    moves: tuple[Move, ...]
    unplaced: tuple[Unplaced, ...]
    relaxed: tuple[int, ...]


@dataclass(frozen=True)
class _Places:
    """Every place of an instance in one group: [P, S] whether it fits, and what it costs."""

    primaries: Integers
    secondaries: Integers
    fits: Booleans
    costs: Floats
    reasons: tuple[Reason, ...] = ()


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
    primary, secondary = int(state.primary[instance]), int(state.secondary[instance])
    return {EvacuationMode.PRIMARY: {primary}, EvacuationMode.SECONDARY: {secondary}, EvacuationMode.ALL: {primary, secondary}}[mode]


def _task(state: ClusterState, instance: int, leaving: frozenset[int], mode: EvacuationMode) -> Task | None:
    first, second = int(state.primary[instance]) in leaving, int(state.secondary[instance]) in leaving
    if mode == EvacuationMode.PRIMARY:
        return Task(instance, leaving, frozenset()) if first else None
    if mode == EvacuationMode.SECONDARY:
        return Task(instance, frozenset(), leaving, keeps_primary=True) if second else None
    return Task(instance, leaving, leaving) if first or second else None


def evacuate(state: ClusterState, tasks: Sequence[Task], across: AcrossGroups, mode: ScoreMode) -> Evacuation:
    """Return moves that carry the tasks out, and for each instance that stays the reasons; `state` stays as it is."""
    tasks = sorted(tasks, key=lambda task: _rank(state, task))
    targets = _one_by_one(state, tasks, across, mode)
    if len(targets) < len(tasks):
        together = _at_once(state, tasks, across, mode)
        if _worth(state, tasks, together) > _worth(state, tasks, targets):
            targets = together
    relaxed = _relaxed(state, [task for task in tasks if task.instance not in targets], targets, across, mode)
    ordered, blocked = order_moves(state, targets | relaxed, relaxed)
    done = {move.instance for move in ordered}
    after = state.copy()
    for move in ordered:
        after.place(move.instance, *move.target)
    unplaced = []
    for task in tasks:
        if task.instance in blocked:
            unplaced.append(Unplaced(task.instance, (_NO_ORDER,)))
        elif task.instance not in done:
            unplaced.append(Unplaced(task.instance, _reasons(after, task, across, mode)))
    return Evacuation(tuple(ordered), tuple(unplaced), tuple(sorted(done & relaxed.keys())))


def _rank(state: ClusterState, task: Task) -> tuple[bool, float]:
    """Return the key of importance: running instances first, then the largest."""
    model = state.facts.instances.models[task.instance]
    return not model.uses_memory, -float(model.memory)


def _worth(state: ClusterState, tasks: Sequence[Task], targets: dict[int, Place]) -> int:
    importance = _importances(state, tasks)
    return sum(importance[task.instance] for task in tasks if task.instance in targets)


def _importances(state: ClusterState, tasks: Sequence[Task]) -> dict[int, int]:
    """Return weights by which one running instance counts more than all others together."""
    models = state.facts.instances.models
    stopped = sum(not models[task.instance].uses_memory for task in tasks)
    return {task.instance: stopped + 1 if models[task.instance].uses_memory else 1 for task in tasks}


def _one_by_one(state: ClusterState, tasks: Sequence[Task], across: AcrossGroups, mode: ScoreMode) -> dict[int, Place]:
    now = state.copy()
    targets: dict[int, Place] = {}
    for task in tasks:
        place = _cheapest(_all_places(state, now, task, across, mode, EXACT))
        if place is not None:
            now.place(task.instance, *place)
            targets[task.instance] = place
    return targets


def _cheapest(found: Sequence[_Places]) -> Place | None:
    best: tuple[float, Place] | None = None
    for places in found:
        if not places.fits.any():
            continue
        costs = np.where(places.fits, places.costs, np.inf)
        row, column = np.unravel_index(int(costs.argmin()), costs.shape)
        cost = float(costs[row, column])
        if best is None or cost < best[0]:
            best = cost, (int(places.primaries[row]), int(places.secondaries[column]))
    return None if best is None else best[1]


def _at_once(state: ClusterState, tasks: Sequence[Task], across: AcrossGroups, mode: ScoreMode) -> dict[int, Place]:
    lifted = state.copy()
    for task in tasks:
        lifted.remove(task.instance)
    importance = _importances(state, tasks)
    most = max(MOST_PLACES // len(tasks), 1)
    wanted = []
    for task in tasks:
        parts = [_flat(places) for places in _all_places(state, lifted, task, across, mode, EXACT)]
        empty = np.zeros(0, dtype=np.int64)
        primaries, secondaries, costs = (np.concatenate([empty, *columns]) for columns in (zip(*parts) if parts else ((), (), ())))
        best = np.argsort(costs, kind="stable")[:most]
        scaled = costs[best] / (_OTHER_GROUP + 3 * _COPY)
        wanted.append(Wanted(task.instance, primaries[best], secondaries[best], scaled, importance[task.instance]))
    places, _proven = assign(state, lifted, wanted)
    return {task.instance: place for task, place in zip(tasks, places) if place is not None}


def _flat(places: _Places) -> tuple[Integers, Integers, Floats]:
    rows, columns = np.nonzero(places.fits)
    return places.primaries[rows], places.secondaries[columns], places.costs[rows, columns]


def _relaxed(
    state: ClusterState,
    tasks: Sequence[Task],
    targets: dict[int, Place],
    across: AcrossGroups,
    mode: ScoreMode,
) -> dict[int, Place]:
    """Return places for instances whose primary is down, with soft limits left aside."""
    down = [task for task in tasks if state.offline[state.primary[task.instance]]]
    now = state.copy()
    for instance, target in targets.items():
        now.place(instance, *target)
    found: dict[int, Place] = {}
    for task in down:
        place = _cheapest(_all_places(state, now, task, across, mode, EXACT.hard()))
        if place is not None:
            now.place(task.instance, *place)
            found[task.instance] = place
    return found


def _reasons(after: ClusterState, task: Task, across: AcrossGroups, mode: ScoreMode) -> tuple[Reason, ...]:
    """Return what keeps an instance from every node, once the others have moved."""
    model = after.facts.instances.models[task.instance]
    if not _movable(after, task.instance):
        return (Reason(NOWHERE, "template", 0.0, f"disks of template {model.disk_template} cannot be moved to another node"),)
    primary, secondary = int(after.primary[task.instance]), int(after.secondary[task.instance])
    if secondary != NOWHERE and after.offline[primary] and (after.offline[secondary] or task.keeps_primary):
        return (Reason(primary, "offline", 0.0, "its primary is down, so that its disks cannot be copied from there"),)
    found = _all_places(after, after, task, across, mode, EXACT)
    reasons = tuple(dict.fromkeys(reason for places in found for reason in places.reasons))
    return reasons or (Reason(NOWHERE, "nodes", 1.0, "there is no node that it may go to"),)


def _movable(state: ClusterState, instance: int) -> bool:
    return bool(state.facts.instances.two_nodes[instance]) or state.facts.instances.models[instance].disk_template in MIRRORED_OUTSIDE


def _all_places(
    start: ClusterState,
    now: ClusterState,
    task: Task,
    across: AcrossGroups,
    mode: ScoreMode,
    rules: Rules,
) -> list[_Places]:
    """Return the places of an instance in each group it may go to; where it lives is told by `start`, limits by `now`."""
    if not _movable(start, task.instance):
        return []
    home = start.group_of(task.instance)
    own = [] if across == AcrossGroups.ONLY else [home]
    others = [] if across == AcrossGroups.NO else [group for group in range(len(start.facts.cluster.groups)) if group != home]
    allowed = others if task.groups is None else [group for group in others if group in task.groups]
    found = []
    with now.lifted(task.instance):
        for group in own + ([] if task.keeps_primary else allowed):
            named = task.groups is not None
            refusal = group_refusal(now, task.instance, group, named) if group != home else ()
            if refusal:
                nothing = np.zeros((0, 0))
                found.append(_Places(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), nothing.astype(bool), nothing, refusal))
            else:
                scorer = Scorer(now, mode, None if allowed else now.group_nodes(group))
                found.append(_in_group(start, now, task, group, scorer, rules))
    return found


def _in_group(start: ClusterState, now: ClusterState, task: Task, group: int, scorer: Scorer, rules: Rules) -> _Places:
    instance = task.instance
    primary, secondary = int(start.primary[instance]), int(start.secondary[instance])
    nodes = now.group_nodes(group)
    online = nodes[~now.offline[nodes]]
    avoided = task.not_primary | task.not_secondary
    fresh = online[~np.isin(online, list(avoided))]
    rows = np.array([primary]) if task.keeps_primary else fresh
    first = primary_verdict(now, instance, rows, rules)
    fits_first = first.fits | (rows == primary)
    if secondary == NOWHERE:
        reasons = _told(rows, first.limit, first.short, fits_first)
        scores = scorer.primary_scores(now, instance, rows)[:, None]
        fits = (fits_first & (rows != primary))[:, None]
        return _Places(rows, np.array([NOWHERE]), fits, _cost(start, task, rows, np.array([NOWHERE]), fits, scores), reasons)
    kept = [] if group != start.group_of(instance) else [node for node in (primary, secondary) if node not in task.not_secondary]
    columns = np.unique(np.concatenate([fresh, np.array(kept, dtype=np.int64)]))
    second = secondary_verdict(now, instance, rows, columns, rules)
    failover = (rows[:, None] == secondary) & (columns[None, :] == primary)
    down = now.offline[columns]
    # A dead primary stays the secondary after a failover; nothing is written there, so nothing needs room.
    fits_second = (second.fits & ~down[None, :]) | (failover & down[None, :])
    fits = fits_first[:, None] & fits_second & _passes(start, instance, rows)[:, None]
    if now.offline[primary] and (now.offline[secondary] or task.keeps_primary):
        fits[:] = False
    alive = np.where(down, NOWHERE, columns)
    scores = np.full(fits.shape, np.inf)
    scores[:, ~down] = scorer.pair_scores(now, instance, rows, columns[~down])
    scores[:, down & (alive == NOWHERE)] = 0.0
    reasons = _told(rows, first.limit, first.short, fits_first)
    for column, node in enumerate(columns):
        if not fits_second[:, column].any() and len(rows):
            row = int(second.short[:, column].argmin())
            limit = Limit(int(second.limit[row, column]))
            if limit not in (Limit.NONE, Limit.SAME_NODE):
                reasons += (Reason(int(node), limit.name.lower(), float(second.short[row, column]), "as the secondary"),)
    return _Places(rows, columns, fits, _cost(start, task, rows, columns, fits, scores), reasons)


def _passes(start: ClusterState, instance: int, rows: Integers) -> Booleans:
    """Return which nodes an instance may migrate to by migration tags, from its primary or, when that is down, its secondary."""
    primary, secondary = int(start.primary[instance]), int(start.secondary[instance])
    source = secondary if start.offline[primary] and secondary != NOWHERE else primary
    passes: Booleans = start.facts.nodes.accepts[source, rows] | (rows == source)
    return passes


def _told(nodes: Integers, limits: np.ndarray, short: Floats, fits: Booleans) -> tuple[Reason, ...]:
    found = zip(nodes[~fits], limits[~fits], short[~fits])
    return tuple(Reason(int(node), Limit(int(limit)).name.lower(), float(missing)) for node, limit, missing in found)


def _cost(start: ClusterState, task: Task, rows: Integers, columns: Integers, fits: Booleans, scores: Floats) -> Floats:
    """Return copies of disks, whether the group is left, and the score scaled to 0..1, in one number."""
    primary, secondary = int(start.primary[task.instance]), int(start.secondary[task.instance])
    home = start.facts.nodes.group[primary]
    known = scores[fits & np.isfinite(scores)]
    low, width = (float(known.min()), float(np.ptp(known))) if len(known) else (0.0, 0.0)
    scaled = np.clip((scores - low) / width, 0.0, 0.99) if width > 0 else np.zeros(scores.shape)
    leaves = _OTHER_GROUP * (start.facts.nodes.group[rows] != home)[:, None]
    if secondary == NOWHERE:
        return np.asarray(scaled + leaves)
    copied = (~np.isin(rows, (primary, secondary)))[:, None].astype(float) + ~np.isin(columns, (primary, secondary))[None, :]
    return np.asarray(scaled + leaves + _COPY * copied)
