# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every place that an instance may take on some nodes, and what the places cost.

    found = places_for(state, instance, nodes)                          # of a new instance
    found = places_for(state, instance, nodes, rules, Origin(home))     # of one that comes from a place
    found.fits, found.reasons()
    costs = Weights(leaving=1.0, copy=0.1).costs(state, home, found, scores_of(state, instance, found, scorer))
    choices = Choices.of(instance, [(found, costs)])

The instance must be nowhere in `state`. P primaries, S secondaries, K places.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..._common.libraries import np, npt
from ..cluster.arrays import NOWHERE, Booleans, Floats, Integers
from ..cluster.moves import Place, reachable
from ..cluster.state import ClusterState
from ..metrics.limits import Limit
from ..metrics.score import Scorer
from ..metrics.verdicts import EXACT, Rules, Verdict, primary_verdict, secondary_verdict
from .refusal import Reason, RulesInTheWay, partner_reasons, verdict_reasons

_ALONE: Integers = np.array([NOWHERE])


@dataclass(frozen=True)
class Origin:
    """The place that an instance comes from, and which nodes it must not have as what.

    One that `keeps_primary` only gets another secondary. What it is to leave as one role it does not take up as the other,
    but for a node of its own.
    """

    home: Place
    not_primary: frozenset[int] = frozenset()
    not_secondary: frozenset[int] = frozenset()
    keeps_primary: bool = False

    def sides(self, state: ClusterState, online: Integers) -> tuple[Integers, Integers]:
        """Return which of a group's online nodes may be the primary, and which the secondary."""
        fresh = online[~np.isin(online, list(self.not_primary | self.not_secondary))]
        group_of = state.facts.nodes.group
        here = len(online) > 0 and group_of[online[0]] == group_of[self.home[0]]
        kept = [node for node in self.home if here and node != NOWHERE and node not in self.not_secondary]
        primaries = np.array(self.home[:1]) if self.keeps_primary else fresh
        return primaries, np.unique(np.concatenate([fresh, np.array(kept, dtype=np.int64)]))


@dataclass(frozen=True)
class Places:
    """Every place on some nodes, and [P, S] whether it keeps the limits; an instance on one node has NOWHERE as its only secondary."""

    primaries: Integers
    secondaries: Integers
    fits: Booleans
    first: Verdict
    """[P]: of the nodes as primaries."""
    second: Verdict | None
    """[P, S]: of the nodes as secondaries; None for an instance on one node."""
    offline: Integers
    rules: RulesInTheWay | None
    """The rules that keep the instance off nodes as primaries, if any do."""

    def where(self, allowed: Booleans) -> Places:
        """Return the places without those that are not allowed."""
        return dataclasses.replace(self, fits=self.fits & allowed)

    def at(self, row: int, column: int) -> Place:
        """Return one place."""
        return int(self.primaries[row]), int(self.secondaries[column])

    def is_at(self, place: Place) -> Booleans:
        """Return [P, S]: which place is this one."""
        return (self.primaries == place[0])[:, None] & (self.secondaries == place[1])[None, :]

    def limits(self) -> npt.NDArray[np.int8]:
        """Return [P, S]: the limit that fails first."""
        first = self.first.limit[:, None]
        return first if self.second is None else np.where(first == Limit.NONE, self.second.limit, first)

    def reasons(self) -> tuple[Reason, ...]:
        """Return what keeps nodes from being the primary and, when nothing fits, from being the secondary of those that can."""
        offline = tuple(Reason(int(node), "offline", 0.0) for node in self.offline)
        reasons = offline + verdict_reasons(self.primaries, self.first, self.rules)
        if self.second is None or self.fits.any():
            return reasons
        able = self.first.fits
        if len(self.secondaries) == 1 and self.primaries[able].tolist() == self.secondaries.tolist():
            return (*reasons, Reason(int(self.secondaries[0]), "nodes", 1.0, "a second node is needed"))
        return reasons + partner_reasons(self.secondaries, Verdict(self.second.limit[able], self.second.short[able]))


def places_for(state: ClusterState, instance: int, nodes: Integers, rules: Rules = EXACT, origin: Origin | None = None) -> Places:
    """Return the places on `nodes`, all of one group if the instance comes from somewhere; it is never offered where it was."""
    down = state.offline[nodes]
    online = nodes[~down]
    primaries, secondaries = (online, online) if origin is None else origin.sides(state, online)
    first = primary_verdict(state, instance, primaries, rules)
    second = None
    fits = first.fits[:, None]
    if not state.facts.instances.two_nodes[instance]:
        secondaries = _ALONE
    else:
        second = secondary_verdict(state, instance, primaries, secondaries, rules)
        fits = fits & second.fits
    in_the_way = RulesInTheWay.of(state, instance, primaries) if np.isin(first.limit, (Limit.RULE, Limit.HARDWARE)).any() else None
    found = Places(primaries, secondaries, fits, first, second, nodes[down] if origin is None else nodes[:0], in_the_way)
    return found if origin is None else _moved(state, found, origin.home)


def _moved(state: ClusterState, found: Places, home: Place) -> Places:
    """Return the places that moves lead to; a primary that stays needs no more room, and a dead one becomes the secondary as it is."""
    fits = found.first.fits | (found.primaries == home[0])
    if found.second is not None:
        dead = state.offline[found.secondaries]
        stays = found.is_at((home[1], home[0])) & dead
        fits = fits[:, None] & ((found.second.fits & ~dead) | stays)
    else:
        fits = fits[:, None]
    reached = reachable(state, home, found.primaries, found.secondaries)
    return dataclasses.replace(found, fits=fits & reached & ~found.is_at(home))


def scores_of(state: ClusterState, instance: int, found: Places, scorer: Scorer) -> Floats:
    """Return the score after each place, shaped like `found.fits`, infinite where it does not fit."""
    if found.second is None:
        return np.where(found.fits, scorer.primary_scores(state, instance, found.primaries)[:, None], np.inf)
    up = ~state.offline[found.secondaries]
    if up.all():
        return np.where(found.fits, scorer.pair_scores(state, instance, found.primaries, found.secondaries), np.inf)
    # A dead primary that becomes the secondary is the only way to start an instance without a copy: nothing is better.
    scores = np.zeros(found.fits.shape)
    scores[:, up] = scorer.pair_scores(state, instance, found.primaries, found.secondaries[up])
    return np.where(found.fits, scores, np.inf)


def by_primary(fits: Booleans, costs: Floats) -> Iterator[tuple[int, int]]:
    """Yield for each primary its best place as row and column, cheapest first; among equals the later."""
    costs = np.where(fits, costs, np.inf)
    columns = costs.shape[1] - 1 - costs[:, ::-1].argmin(axis=1)
    best = costs[np.arange(len(costs)), columns]
    for row in np.lexsort((-np.arange(len(best)), best)):
        if np.isfinite(best[row]):
            yield int(row), int(columns[row])


def scaled(values: Floats, fits: Booleans) -> Floats:
    """Return values of places between 0 and 1, from the best that fits to the worst."""
    known = values[fits & np.isfinite(values)]
    low, width = (float(known.min()), float(np.ptp(known))) if len(known) else (0.0, 0.0)
    if not width > 0:
        return np.zeros(values.shape)
    result: Floats = np.clip((values - low) / width, 0.0, 1.0)
    return result


@dataclass(frozen=True)
class Weights:
    """What a place costs an instance that comes from another: for leaving its group, moving, each copy of its disks, the worst score."""

    leaving: float = 0.0
    move: float = 0.0
    copy: float = 0.0
    score: float = 0.0

    @property
    def inside(self) -> float:
        """Return the most that a place can cost apart from leaving."""
        return self.move + 2 * self.copy + self.score

    @property
    def most(self) -> float:
        """Return the most that a place can cost."""
        return self.leaving + self.inside

    def times(self, factor: float) -> Weights:
        """Return the same weights in another unit."""
        return Weights(self.leaving * factor, self.move * factor, self.copy * factor, self.score * factor)

    def costs(self, state: ClusterState, home: Place, found: Places, scores: Floats) -> Floats:
        """Return [P, S] what the places cost; `scores` may be of any shape that fits, and is read only if it counts."""
        group_of = state.facts.nodes.group
        costs = np.full(found.fits.shape, self.move)
        costs += self.leaving * (group_of[found.primaries] != group_of[home[0]])[:, None]
        if found.second is not None:
            costs += self.copy * ~np.isin(found.primaries, home)[:, None]
            costs += self.copy * ~np.isin(found.secondaries, home)[None, :]
        return costs + self.score * scaled(scores, found.fits) if self.score else costs


@dataclass(frozen=True)
class Choices:
    """Places that an instance may take, with their costs; `importance` is a whole number above 0."""

    instance: int
    primaries: Integers
    secondaries: Integers
    """NOWHERE for places with one node."""
    costs: Floats
    importance: int = 1

    @classmethod
    def of(cls, instance: int, parts: Iterable[tuple[Places, Floats]], importance: int = 1) -> Choices:
        """Return the places that fit, of all parts."""
        primaries, secondaries, costs = [_NOBODY], [_NOBODY], [np.zeros(0)]
        for found, cost in parts:
            rows, columns = np.nonzero(found.fits)
            primaries.append(found.primaries[rows])
            secondaries.append(found.secondaries[columns])
            costs.append(cost[rows, columns])
        return cls(instance, np.concatenate(primaries), np.concatenate(secondaries), np.concatenate(costs), importance)

    def __len__(self) -> int:
        return len(self.costs)

    def __iter__(self) -> Iterator[Place]:
        """Yield the places, the cheapest first; they are sorted only when a second one is asked for."""
        if not len(self):
            return
        best = int(self.costs.argmin())
        yield int(self.primaries[best]), int(self.secondaries[best])
        for at in np.argsort(self.costs, kind="stable")[1:].tolist():
            yield int(self.primaries[at]), int(self.secondaries[at])

    def staying(self, place: Place) -> Choices:
        """Return the choices with a place that costs nothing."""
        return dataclasses.replace(
            self,
            primaries=np.append(self.primaries, place[0]),
            secondaries=np.append(self.secondaries, place[1]),
            costs=np.append(self.costs, 0.0),
        )

    def without(self, places: Iterable[Place]) -> Choices:
        """Return the choices that are none of these places."""
        left = np.ones(len(self), dtype=bool)
        for primary, secondary in places:
            left &= (self.primaries != primary) | (self.secondaries != secondary)
        return self._at(np.flatnonzero(left))

    def cheapest(self, most: int) -> Choices:
        """Return at most `most` choices in the order of their costs."""
        return self._at(np.argsort(self.costs, kind="stable")[:most])

    def _at(self, positions: Integers) -> Choices:
        return dataclasses.replace(
            self,
            primaries=self.primaries[positions],
            secondaries=self.secondaries[positions],
            costs=self.costs[positions],
        )


_NOBODY: Integers = np.zeros(0, dtype=np.int64)


def importances(state: ClusterState, instances: Iterable[int]) -> dict[int, int]:
    """Return weights by which one running instance counts more than all that are stopped together."""
    runs = {instance: state.facts.instances.models[instance].uses_memory for instance in instances}
    stopped = list(runs.values()).count(False)
    return {instance: stopped + 1 if running else 1 for instance, running in runs.items()}
