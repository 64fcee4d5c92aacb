# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which demands stay poor, where that is open: the choice that lets most others rise.

A plan is better than another by its sorted levels, whichever demands have them: if one demand must stay poor, the rest
may reach more if another demand is the poor one. A program chooses a *step* for every demand (a size out of a few), so that no more are
poor than were, within the room that sets of areas have. What it chooses is tried. The demands that conflict then say
which steps cannot come together, or prices say it of many at once, and it chooses again: logic-based Benders decomposition
(Hooker and Ottosson 2003). When nothing is left to choose, it is proven that nobody could rise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..._common.highs import Limits, Program, Solved, Undecided, choose, maximise, maximise_with_prices
from ..._common.libraries import np, npt
from ..place.bounds import Bounds
from ..place.prices import Prices
from ..place.search import Search
from ..problem.model import Demand, Kind, Problem

_NODES = 50
_FEW_COLUMNS = 50
"""Up to this number the choice is the same on all versions of HiGHS; beyond, it takes too many rounds."""
_KEPT = 0.999
_MOST_KEPT = 32.0
_MOST_OF_MD = 150.0
"""MiB: more than md keeps of a leg, which another demand may have to give up for an array on its disk."""
_COARSE = 4096
_MOST_SIZES = 24
_LARGE = 10_000
"""Factors of a program."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """What becomes of offered sizes: accepted, or proven to have no placement, for what is `blamed` (positions) alone."""

    accepted: bool = False
    proven: bool = False
    blamed: frozenset[int] = frozenset()
    prices: Prices | None = None


@dataclass(frozen=True)
class Rank:
    """Demands (positions) that are compared with each other, and what they must reach in sorted order.

    `heights` ascend; at most `below[at]` of the demands may be below `heights[at + 1]`, none below the first.
    """

    demands: tuple[int, ...]
    heights: tuple[float, ...]
    below: tuple[int, ...]


def rising(demands: Sequence[int], levels: Sequence[float], level: float, wanted: float, height: float) -> Rank:
    """Return that one less than now is below `wanted`, the others reach `height`, and no demand poorer than `level` pays."""
    poor = sorted(min(own, level) for own in levels if own < wanted)
    heights, below = _steps(poor)
    return Rank(tuple(demands), (*heights, height), (*below, max(0, len(poor) - 1)) if heights else ())


def held(demands: Sequence[int], levels: Sequence[float]) -> Rank:
    """Return that demands with these levels have as much in sorted order as now."""
    return Rank(tuple(demands), *_steps(sorted(levels)))


def _steps(levels: Sequence[float]) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Return different heights, and how many of the levels are below the second, the third, ..."""
    heights: list[float] = []
    below: list[int] = []
    for at, own in enumerate(levels):
        if not heights or own > heights[-1] * (2 - _KEPT):
            heights.append(own)
            below.append(at)
    return tuple(heights), tuple(below[1:])


def kept(demand: Demand, units: int, most: float = _MOST_KEPT) -> int:
    """Return what is left of a size that is to be kept: metadata and extents that fall elsewhere must not stand in the way."""
    mib = units * demand.unit
    if mib < _COARSE:
        return units
    return max(demand.low, math.floor((mib - min(mib * (1 - _KEPT), most)) / demand.unit))


def at_level(demand: Demand, level: float) -> int:
    """Return the units of a demand at a level (MiB per weight), within its bounds."""
    wanted = max(demand.low, math.floor(level * demand.weight / demand.unit))
    return wanted if demand.high is None else min(wanted, demand.high)


def reaches(demand: Demand, level: float) -> bool:
    """Return whether the maximum of a demand lets it reach a level."""
    return demand.high is None or demand.high * demand.unit >= level * demand.weight * _KEPT


class Exchange:
    """The choice of steps for one problem; `fixed` are the units of all that have no choice."""

    def __init__(self, problem: Problem, search: Search, fixed: Sequence[int], ranks: Sequence[Rank]) -> None:
        self._problem, self._search, self._fixed, self._ranks = problem, search, list(fixed), ranks
        self._program = Program()
        self._chosen: tuple[int, Floats | None] | None = None
        """How many rows there were, and what was chosen."""
        self._linear: tuple[int, bool] | None = None
        """How many rows there were, and whether the linear program has no solution."""
        self._steps: dict[int, list[tuple[int, int, int]]] = {}
        """By demand: columns with units and the position of the height, highest first."""
        self._columns: list[int] = []
        for place in ranks:
            self._choose_steps(place)
        self._hold_together(search.bounds)
        # Let of demands that are alike the first be no poorer, for the program need not try both ways.
        alike: dict[object, int] = {}
        for at, steps in self._steps.items():
            kind = (self._search.bounds.kind(at), tuple((units, number) for _column, units, number in steps))
            before = alike.get(kind)
            alike[kind] = at
            if before is not None and len(steps) > 1:
                terms = [(column, float(number)) for column, _units, number in self._steps[before]]
                self._program.row([*terms, *((column, -float(number)) for column, _units, number in steps)], low=0.0)
        for prices in search.prices:
            self._price(prices)

    def forbid(self, units: Sequence[int], blamed: frozenset[int], prices: Prices | None = None) -> bool:
        """Rule out that all blamed demands have as much as they had, or what prices say; False when that rules out everything."""
        if prices is not None and prices.forbid(units):
            self._price(prices)
            return True
        if any(self._at_most_units(at) < units[at] for at in blamed):
            # That much is not offered anyway.
            return True
        terms: list[tuple[int, float]] = []
        count = 0
        for at in sorted(blamed & set(self._steps)):
            if len(self._steps[at]) > 1 and self._steps[at][-1][1] < units[at]:
                count += 1
                terms += [(column, 1.0) for column, own, _number in self._steps[at] if own >= units[at]]
        if not terms:
            return False
        self._program.row(terms, high=float(count - 1))
        return True

    def _price(self, prices: Prices) -> None:
        """Rule out what is worth more than any placement."""
        left = prices.most - sum(prices.worth(at, units) for at, units in enumerate(self._fixed) if at not in self._steps)
        scale = max(abs(prices.most), 1e-6)
        terms: list[tuple[int, float]] = []
        for at, own in self._steps.items():
            worth = prices.worths(at, [units for _column, units, _number in own])
            terms += [(column, its / scale) for (column, _units, _number), its in zip(own, worth, strict=True) if its]
        self._program.row(terms, high=left / scale)

    def _at_most_units(self, at: int) -> int:
        """Return the most units that a demand can be offered."""
        steps = self._steps.get(at)
        return self._fixed[at] if steps is None else steps[0][1] if steps else -1

    def exhausted(self) -> bool:
        """Return whether it is proven that nothing is left to choose; of a large program the linear one alone is asked."""
        if self._program.size > _LARGE:
            return self._refuted()
        try:
            return self._choose() is None
        except Undecided:
            return False

    def _refuted(self) -> bool:
        """Return whether the linear program proves that nothing is left; it takes a tenth of the time of the other."""
        rows = len(self._program.row_low)
        if self._linear is None or self._linear[0] != rows:
            self._linear = rows, maximise_with_prices(self._program, {}) is None
        return self._linear[1]

    def _choose(self) -> Floats | None:
        """Return the values of a choice, the same until another row is added; None when nothing is left. Raises Undecided."""
        rows = len(self._program.row_low)
        if self._chosen is None or self._chosen[0] != rows:
            solved = None if self._program.size > _LARGE and self._refuted() else self._cheapest()
            self._chosen = rows, None if solved is None else solved.values
        return self._chosen[1]

    def _cheapest(self) -> Solved | None:
        """Return the choice that takes least of all room, the likeliest to have a placement; of a large program any choice."""
        if len(self._program.lower) > _FEW_COLUMNS:
            return choose(self._program, _NODES)
        room = float(max(1, sum(area.size for area in self._problem.areas)))
        _inside, mib, _totals = self._search.bounds.sums()
        worth = {column: -units * float(mib[at]) / room for at, own in self._steps.items() for column, units, _number in own}
        return maximise(self._program, worth, Limits(gap=0.0, nodes=_NODES, searches=False))

    def run(self, accept: Callable[[Sequence[int]], Verdict], rounds: int) -> tuple[bool, int]:
        """Offer sizes until they are accepted or open; return whether none can be accepted for sure, and how many rounds it took."""
        for taken in range(rounds):
            try:
                values = self._choose()
            except Undecided:
                return False, taken + 1
            if values is None:
                return True, taken
            units = self._units(values)
            verdict = accept(units)
            if verdict.accepted or not verdict.proven:
                return False, taken + 1
            if not self.forbid(units, verdict.blamed or frozenset(range(len(units))), verdict.prices):
                return True, taken + 1
        return False, rounds

    def _choose_steps(self, place: Rank) -> None:
        at_height: list[list[tuple[int, float]]] = [[] for _height in place.heights]
        for at in place.demands:
            demand = self._problem.demands[at]
            highest = self._search.bounds.highest(at)
            steps: list[tuple[int, int, int]] = []
            for number in range(len(place.heights) - 1, -1, -1):
                height = place.heights[number]
                units = at_level(demand, height)
                if number < len(place.heights) - 1 or len(place.heights) == 1:
                    units = kept(demand, units, _MOST_OF_MD)
                if units <= highest and (number == 0 or reaches(demand, height)) and (not steps or units < steps[-1][1]):
                    column = self._program.column(0.0, 1.0, integral=True)
                    steps.append((column, units, number))
                    at_height[number].append((column, 1.0))
            self._steps[at] = steps
            # A demand without any step makes the program infeasible, as it is.
            self._program.row([(column, 1.0) for column, _units, _number in steps] or [(self._program.column(0.0, 0.0), 1.0)], 1.0, 1.0)
        poorer: list[tuple[int, float]] = []
        for own, most in zip(at_height, place.below):
            poorer += own
            self._program.row(poorer, high=float(most))

    def _hold_together(self, bounds: Bounds) -> None:
        """Add what sets of areas hold: in sum, and in whole pieces by their number."""
        steps = [(column, units, at) for at, own in self._steps.items() for column, units, _number in own]
        if not steps:
            return
        columns, units, owner = (np.array(values, dtype=np.int64) for values in zip(*steps, strict=True))
        others = np.array(self._fixed, dtype=np.int64)
        others[list(self._steps)] = 0
        most = others.copy()
        np.maximum.at(most, owner, units)
        inside, mib, totals = bounds.sums()
        for row in np.flatnonzero(inside @ (most * mib) > totals).tolist():
            own = np.flatnonzero(inside[row][owner])
            left = int(totals[row]) - int((inside[row] * others * mib).sum())
            scale = max(1, int(totals[row]))
            self._at_most(columns[own], units[own] * mib[owner[own]] / scale, left / scale)
        for solid, legs, room in bounds.counts():
            own = np.flatnonzero(np.isin(owner, solid) & (units > 0))
            for size in np.unique(units[own])[-_MOST_SIZES:].tolist():
                # A piece N times as large counts as N.
                pieces = units[own] // size * legs[owner[own]]
                held = int((room // size).sum()) - int((others[solid] // size * legs[solid]).sum())
                if int((most[solid] // size * legs[solid]).sum()) > held:
                    self._at_most(columns[own], pieces.astype(np.float64), float(held))

    def _at_most(self, columns: npt.NDArray[np.int64], factors: Floats, high: float) -> None:
        used = np.flatnonzero(factors)
        self._program.rows(np.zeros(len(used), dtype=np.int64), columns[used], factors[used], [high])

    def at_best(self) -> list[int]:
        """Return the units when everybody is as high as each could be."""
        units = list(self._fixed)
        for at, steps in self._steps.items():
            units[at] = steps[0][1] if steps else 0
        return units

    def relaxed(self) -> Problem:
        """Return the problem with as much more room everywhere as demands that stay poor can save there.

        What has no placement `at_best` even there has none, whichever demands stay poor. If N of those on an area may be below a
        height with all that cannot reach it, its heaviest N save most there (summed over heights).
        """
        problem = self._problem
        on_area, on_pool = [0.0] * len(problem.areas), [0.0] * len(problem.pools)
        for place in self._ranks:
            # MiB by weight between every height and the next, and how many may be below by choice.
            best = [self._steps[at][0][2] if self._steps[at] else 0 for at in place.demands]
            rows = [
                (place.heights[number + 1] - place.heights[number], max(0, most - sum(own <= number for own in best)))
                for number, most in enumerate(place.below)
            ]
            saved: dict[tuple[tuple[int, float], ...], float] = {}
            for area, demands in enumerate(self._demands_by_area(place)):
                there = tuple(demands)
                if there not in saved:
                    saved[there] = _saved(rows, there)
                on_area[area] += saved[there]
            for position, pool in enumerate(problem.pools):
                members = [(at, problem.demands[at].weight) for at in pool.volumes if at in place.demands]
                on_pool[position] += _saved(rows, members)
        areas = [replace(area, size=area.size + math.ceil(more)) for area, more in zip(problem.areas, on_area, strict=True)]
        pools = [
            replace(pool, hi=None if pool.hi is None else pool.hi + math.ceil(more))
            for pool, more in zip(problem.pools, on_pool, strict=True)
        ]
        return replace(problem, areas=tuple(areas), pools=tuple(pools))

    def _demands_by_area(self, place: Rank) -> list[list[tuple[int, float]]]:
        """Return by area the demands that may take room there, and MiB by level."""
        problem = self._problem
        on: list[list[tuple[int, float]]] = [[] for _area in problem.areas]
        for at in place.demands:
            demand = problem.demands[at]
            areas = set(demand.areas)
            if demand.pool is not None:
                pool = problem.pools[demand.pool]
                areas |= {*pool.areas, *(area for array in pool.arrays for area in problem.demands[array].areas)}
            for area in areas:
                on[area].append((at, demand.weight / (demand.unit if demand.kind is Kind.LEGS else 1)))
        return on

    def _units(self, values: Floats) -> list[int]:
        units = list(self._fixed)
        for at, steps in self._steps.items():
            units[at] = max(steps, key=lambda step: values[step[0]])[1]
        return units


def _saved(rows: Sequence[tuple[float, int]], demands: Sequence[tuple[int, float]]) -> float:
    heaviest = sorted((weight for _at, weight in demands), reverse=True)
    return sum(width * sum(heaviest[:most]) for width, most in rows)
