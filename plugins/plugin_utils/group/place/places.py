# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every place that an instance may go to when it leaves its nodes, in each group, with what it costs.

    found = all_places(start, now, task, across, Scorers(start, mode), rules)
    by_cost(found), cheapest(found)

Costs are the copies of disks, then leaving the group, then the score, which is scaled to 0..1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ...common.libraries import np
from ..cluster.arrays import NOWHERE, Booleans, Floats, Integers
from ..cluster.moves import Place, can_leave, reachable
from ..cluster.state import ClusterState
from ..metrics.limits import Limit
from ..metrics.score import ScoreMode, Scorer
from ..metrics.verdicts import Rules, primary_verdict, secondary_verdict
from .placement import Reason, group_refusal

COPY = 1.0
OTHER_GROUP = 10.0
"""What a copy of the disks and leaving the group cost beside a score that is scaled to 0..1."""
_ALONE: Integers = np.array([NOWHERE])


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
class Places:
    """Every place of an instance in one group: [P, S] whether it fits, and what it costs."""

    primaries: Integers
    secondaries: Integers
    fits: Booleans
    costs: Floats
    reasons: tuple[Reason, ...] = ()


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


def all_places(
    start: ClusterState,
    now: ClusterState,
    task: Task,
    across: AcrossGroups,
    scorers: Scorers,
    rules: Rules,
) -> list[Places]:
    """Return the places of an instance in each group it may go to; where it lives is told by `start`, limits by `now`."""
    if not can_leave(start, task.instance):
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
                found.append(Places(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), nothing.astype(bool), nothing, refusal))
            else:
                scorer = scorers.of(None if allowed else group)
                found.append(_in_group(start, now, task, group, scorer, rules))
    return found


def _in_group(start: ClusterState, now: ClusterState, task: Task, group: int, scorer: Scorer, rules: Rules) -> Places:
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
        fits = (fits_first & (rows != primary))[:, None] & reachable(start, (primary, secondary), rows, _ALONE)
        return Places(rows, _ALONE, fits, _cost(start, task, rows, _ALONE, fits, scores), reasons)
    kept = [] if group != start.group_of(instance) else [node for node in (primary, secondary) if node not in task.not_secondary]
    columns = np.unique(np.concatenate([fresh, np.array(kept, dtype=np.int64)]))
    second = secondary_verdict(now, instance, rows, columns, rules)
    failover = (rows[:, None] == secondary) & (columns[None, :] == primary)
    down = now.offline[columns]
    # A dead primary stays the secondary after a failover; nothing is written there, so nothing needs room.
    fits_second = (second.fits & ~down[None, :]) | (failover & down[None, :])
    fits = fits_first[:, None] & fits_second & reachable(start, (primary, secondary), rows, columns)
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
    return Places(rows, columns, fits, _cost(start, task, rows, columns, fits, scores), reasons)


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
    leaves = OTHER_GROUP * (start.facts.nodes.group[rows] != home)[:, None]
    if secondary == NOWHERE:
        return np.asarray(scaled + leaves)
    copied = (~np.isin(rows, (primary, secondary)))[:, None].astype(float) + ~np.isin(columns, (primary, secondary))[None, :]
    return np.asarray(scaled + leaves + COPY * copied)


def by_cost(found: Sequence[Places]) -> Iterator[Place]:
    """Yield the places that fit, the cheapest first; all of them are only sorted for who asks for a second one."""
    best = cheapest(found)
    if best is None:
        return
    yield best
    primaries, secondaries, costs = (np.concatenate(columns) for columns in zip(*map(flat, found)))
    for position in np.argsort(costs, kind="stable").tolist():
        place = int(primaries[position]), int(secondaries[position])
        if place != best:
            yield place


def cheapest(found: Sequence[Places]) -> Place | None:
    """Return the cheapest place that fits."""
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


def flat(places: Places) -> tuple[Integers, Integers, Floats]:
    """Return primaries, secondaries and costs of the places that fit."""
    rows, columns = np.nonzero(places.fits)
    return places.primaries[rows], places.secondaries[columns], places.costs[rows, columns]
