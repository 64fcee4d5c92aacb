# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lexicographically max-min placement: level after level, over all placements.

A *level* is MiB per weight. The poorest that still grow are raised first: as far as a placement is found, up to a proof that
there is none a percent higher. They then keep what they have, and the poorest of the others are next, until nobody is left
(Megiddo 1974 for flows; Radunović and Le Boudec 2007 for max-min fairness in general). Preferences come before all levels,
and what has a preference grows before what has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from ..problem.model import Demand, GrowthOrder, Placement, Problem, Sizes, rank
from ..problem.program import open_everywhere
from .search import Search, confined, grows_off_its_disks, has_preferences, least_off_cost, off_cost
from .sizes import size_fairly

_STEP = 1.01
"""A level is done when it is proven that there is none a percent higher."""
_SAME = 0.005
_HALVINGS = 10
_KEPT = 0.999
"""What is left of a size that is to be kept: metadata and extents that fall elsewhere must not stand in the way of a level."""
_COARSE = 4096
_QUESTIONS = 300
_PROOFS = 6
_EXCHANGES = 60


@dataclass(frozen=True)
class Found:
    """A placement; `proven` is False when a limit left a level open, `gap` then how much higher that could be, relative to what it is.

    `open_at` are the demands (positions) at that level.
    """

    placement: Placement
    proven: bool = True
    gap: float = 0.0
    open_at: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A placement with its sizes and with what it is compared by."""

    placement: Placement
    sizes: Sizes
    off: int
    """MiB off what is preferred, times the tier."""
    levels: tuple[tuple[float, ...], ...]
    """Levels in ascending order, of what has a preference and of the rest."""


def best_plan(problem: Problem) -> tuple[Found, Sizes] | None:
    """Return the best placement and its sizes; None when no placement is found whose sizes fit."""
    setting = _settle_preferences(problem)
    if setting is None:
        return None
    return _Levels(problem, *setting).run()


def _settle_preferences(problem: Problem) -> tuple[Search, Placement | None] | None:
    """Return the search among the placements that meet preferences as well as any, and one that does if it took a program."""
    if not has_preferences(problem):
        return Search(problem), None
    lows = [demand.low for demand in problem.demands]
    if Search(confined(problem)).ask(lows).placement is not None:
        # What meets every preference with its minimum grows on all that it prefers.
        return Search(confined(problem, tiers=None)), None
    found = least_off_cost(problem)
    if found is None:
        return Search(problem), None
    return Search(problem, most_off=found[0]), found[1]


def grows(demand: Demand, turn: GrowthOrder) -> bool:
    """Tell whether a demand grows in that turn."""
    return demand.growth_order is turn and demand.high != demand.low


class _Levels:
    """The plan at hand, and who is done with growing."""

    def __init__(self, problem: Problem, search: Search, first: Placement | None) -> None:
        self._problem, self._search, self._first = problem, search, first
        self._open: list[tuple[float, tuple[int, ...]]] = []
        self._questions = _QUESTIONS
        self._exchanges = _EXCHANGES
        self._done: set[int] = set()
        self._everywhere = [open_everywhere(problem, position) for position in range(len(problem.pools))]

    def run(self) -> tuple[Found, Sizes] | None:
        plan = self._begin()
        if plan is None:
            return None
        for turn in (GrowthOrder.PREFERRED, GrowthOrder.NORMAL):
            plan = self._raise_all(plan, turn)
        gap, demands = max(self._open, default=(0.0, ()))
        return Found(plan.placement, not self._open, gap, demands), plan.sizes

    def _begin(self) -> Plan | None:
        """Return a plan at the highest level of the poorest for which a rule finds a placement."""
        turns = [
            turn for turn in (GrowthOrder.PREFERRED, GrowthOrder.NORMAL) if any(grows(demand, turn) for demand in self._problem.demands)
        ]
        placements: list[Placement | None] = [self._first]
        if self._first is None:
            placements = [self._highest(lambda level: self._sizes_at(level, turns[0], None), 0.0) if turns else None]
            placements.append(self._search.pack([demand.low for demand in self._problem.demands]))
            if placements[-1] is None:
                placements.append(self._search.ask([demand.low for demand in self._problem.demands]).placement)
        plans = [self._sized(placement) for placement in placements if placement is not None]
        return next((plan for plan in plans if plan is not None), None)

    def _raise_all(self, plan: Plan, turn: GrowthOrder) -> Plan:
        while True:
            rising = self._rising(plan, turn)
            if not rising:
                break
            level = min(rising.values())
            poorest = {at for at, own in rising.items() if own <= level * _STEP}
            better = self._raised(plan, turn, level)
            if isinstance(better, Plan):
                plan = better
            else:
                self._done |= (poorest & better) or poorest
        self._done |= {at for at, demand in enumerate(self._problem.demands) if demand.growth_order is turn}
        return plan

    def _rising(self, plan: Plan, turn: GrowthOrder) -> dict[int, float]:
        """Return the levels of all that may still grow."""
        found = {}
        for at, demand in enumerate(self._problem.demands):
            full = demand.high is not None and plan.sizes.units[at] >= demand.high
            if grows(demand, turn) and at not in self._done and not full and not grows_off_its_disks(self._problem, plan.placement, at):
                found[at] = _level(demand, plan.sizes.units[at])
        return found

    def _raised(self, plan: Plan, turn: GrowthOrder, level: float) -> Plan | frozenset[int]:
        """Return a plan in which all that are not poorer reach a higher level, or who cannot."""

        def sizes_at(height: float) -> list[int]:
            return self._sizes_at(height, turn, plan, level)

        # An empty level has nothing to take a percent of.
        wanted = max(level * _STEP, level + 1.0)
        answer = self._search.ask(sizes_at(wanted)) if self._questions > 0 else None
        self._questions -= 1
        if answer is not None and answer.placement is not None:
            higher = self._highest(sizes_at, wanted)
            for placement in (higher, answer.placement):
                sized = None if placement is None else self._sized(placement)
                if sized is not None and is_better(sized, plan):
                    return sized
            return frozenset()
        if answer is None or not answer.proven:
            self._leave_open(plan, turn, level, sizes_at)
            return frozenset()
        held = frozenset(at for at, own in self._rising(plan, turn).items() if own <= level * _STEP and at in answer.blamed)
        better = self._raised_alone(plan, turn, level, wanted, held) or self._exchanged(plan, turn, level, wanted)
        return better or answer.blamed

    def _exchanged(self, plan: Plan, turn: GrowthOrder, level: float, wanted: float) -> Plan | None:
        """Return a plan in which one that is done changes places with one that has more, if that lets the rest reach a higher level.

        Who of several stays poor is arbitrary as far as their own level goes; what it costs the others shows at a later level only.
        """
        growing = {at: demand for at, demand in enumerate(self._problem.demands) if grows(demand, turn)}
        levels = {at: _level(demand, plan.sizes.units[at]) for at, demand in growing.items()}
        for rises, stays in self._pairs(levels):
            if self._exchanges == 0:
                break
            self._exchanges -= 1
            units = self._sizes_at(wanted, turn, plan, level)
            units[stays] = self._units_at(stays, levels[rises] * _KEPT)
            units[rises] = self._units_at(rises, wanted)
            placement = None if self._search.impossible(units) else self._search.pack(units)
            sized = None if placement is None else self._sized(placement)
            if sized is not None and is_better(sized, plan):
                self._done = (self._done | {stays}) - {rises}
                return sized
        return None

    def _pairs(self, levels: Mapping[int, float]) -> Iterator[tuple[int, int]]:
        """Yield who is done and poorer, each with who has more and could be as poor, the nearest first."""
        known = sorted(levels, key=lambda at: levels[at])
        for rises in known:
            for stays in known:
                low = _level(self._problem.demands[stays], self._problem.demands[stays].low)
                if rises in self._done and low <= levels[rises] and levels[stays] > levels[rises] * _STEP:
                    yield rises, stays

    def _raised_alone(self, plan: Plan, turn: GrowthOrder, level: float, wanted: float, held: frozenset[int]) -> Plan | None:
        """Return a plan in which one of those that cannot rise together rises alone; None when none can."""
        for riser in sorted(held) if len(held) > 1 else ():
            units = self._sizes_at(wanted, turn, plan, level)
            for at in held - {riser}:
                units[at] = _kept(self._problem.demands[at], plan.sizes.units[at])
            placement = None if self._search.impossible(units) else self._search.try_hard(units)
            sized = None if placement is None else self._sized(placement)
            if sized is not None and is_better(sized, plan):
                return sized
        return None

    def _leave_open(self, plan: Plan, turn: GrowthOrder, level: float, sizes_at: Callable[[float], list[int]]) -> None:
        low, high = level * _STEP, level * _STEP * 2
        while self._search.possible(sizes_at(high)) and sizes_at(high) != sizes_at(high * 2) and high < level * 128:
            low, high = high, high * 2
        for _proof in range(_PROOFS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._search.possible(sizes_at(middle)) else (low, middle)
        poorest = tuple(at for at, own in self._rising(plan, turn).items() if own <= level * _STEP)
        self._open.append((high / level - 1 if level else 1.0, poorest))

    def _highest(self, sizes_at: Callable[[float], list[int]], level: float) -> Placement | None:
        """Return the placement at the highest level for which a rule finds one, from one on that has a placement or is 0."""
        best: Placement | None = None
        low, high = level, max(2 * level, 1024.0)
        while sizes_at(low) != sizes_at(high):
            found = None if self._search.impossible(sizes_at(high)) else self._search.pack(sizes_at(high))
            if found is None:
                break
            best, low, high = found, high, high * 4
        for _halving in range(2 * _HALVINGS if low <= 0 else _HALVINGS):
            if high <= low * 1.001:
                break
            middle = (low + high) / 2
            found = None if self._search.impossible(sizes_at(middle)) else self._search.pack(sizes_at(middle))
            if found is None:
                high = middle
            else:
                best, low = found, middle
        return best

    def _sizes_at(self, height: float, turn: GrowthOrder, plan: Plan | None, level: float = 0.0) -> list[int]:
        """Return the sizes when all of a turn that are not poorer than `level` reach a height; the others keep what they have."""
        units = []
        for at, demand in enumerate(self._problem.demands):
            now = demand.low if plan is None else plan.sizes.units[at]
            off = plan is not None and grows_off_its_disks(self._problem, plan.placement, at)
            if at in self._done and not off:
                units.append(_kept(demand, now))
            elif not grows(demand, turn) or off:
                units.append(demand.low)
            elif plan is not None and _level(demand, now) < level:
                units.append(_kept(demand, now))
            else:
                units.append(self._units_at(at, height))
        return units

    def _units_at(self, at: int, level: float) -> int:
        """Return the size of a demand at a level, within its bounds."""
        demand = self._problem.demands[at]
        wanted = max(demand.low, math.floor(level * demand.weight / demand.unit))
        return wanted if demand.high is None else min(wanted, demand.high)

    def _sized(self, placement: Placement) -> Plan | None:
        # The search may know less of the pools than there is: what costs nothing but metadata is open everywhere.
        pools = self._problem.pools
        pvs = tuple(pool.areas if everywhere else own for pool, everywhere, own in zip(pools, self._everywhere, placement.pvs))
        placement = replace(placement, pvs=pvs)
        sizes = size_fairly(self._problem, placement)
        if sizes is None:
            return None
        off = off_cost(self._problem, placement)
        for (pool, area), extents in sizes.pvs.items():
            tiers = pools[pool].preferred
            off += extents * pools[pool].extent_size * len(tiers) if tiers and rank(tiers, area) == len(tiers) else 0
        return Plan(
            placement, sizes, off, tuple(_levels(self._problem, sizes, turn) for turn in (GrowthOrder.PREFERRED, GrowthOrder.NORMAL))
        )


def _kept(demand: Demand, units: int) -> int:
    return units if units * demand.unit < _COARSE else max(demand.low, math.floor(units * _KEPT))


def _level(demand: Demand, units: int) -> float:
    return units * demand.unit / demand.weight


def _levels(problem: Problem, sizes: Sizes, turn: GrowthOrder) -> tuple[float, ...]:
    return tuple(sorted(_level(demand, units) for demand, units in zip(problem.demands, sizes.units) if demand.growth_order is turn))


def is_better(one: Plan, other: Plan) -> bool:
    """Tell whether one plan is better: by preferences, by the first level that differs, by what is in use."""
    if one.off != other.off:
        return one.off < other.off
    for mine, yours in zip(one.levels, other.levels):
        for own, its in zip(mine, yours):
            if abs(own - its) > _SAME * max(own, its):
                return own > its
    return sum(one.sizes.left) < sum(other.sizes.left)
