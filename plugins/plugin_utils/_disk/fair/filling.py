# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Weighted max-min fair sizes over several areas, by progressive filling with linear programs.

One level is raised for everything that still grows, `T = clamp(level * weight, lo, hi)`, until something is blocked; what is
blocked keeps its size, the rest goes on (systemd-repart's rule, generalised to several disks). What is blocked shows in the
duals: a row with a positive dual is tight in every optimum, so a mere tie never holds anything back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..._common.highs import FREE, maximise_with_prices
from ..problem.model import GrowthOrder, Placement, Problem, rank
from ..problem.program import DiskProgram, Frame, build, follows

_TINY = 1e-9
_MEANS_NOTHING = 1e-6
_MISSING = 1e-4


@dataclass(frozen=True)
class Targets:
    """Fractional units by demand and extents by (pool, area)."""

    units: Mapping[int, float]
    pvs: Mapping[tuple[int, int], float]


def fill_areas(problem: Problem, placement: Placement, left: Sequence[int], lost: Sequence[int]) -> Targets | None:
    """Return the targets of a placement, or None when its minimums do not fit.

    `left` is MiB by area, `lost` MiB by demand that an array cannot give to its pool.
    """
    filling = _Filling(problem, placement, left, lost)
    if not filling.begin():
        return None
    filling.grow(GrowthOrder.PREFERRED)
    filling.grow(GrowthOrder.NORMAL)
    if not filling.close_unused_pvs():
        return None
    filling.grow(GrowthOrder.LEFTOVER)
    return filling.targets()


class _Filling:
    """The state while areas are filled: bounds of every demand, PVs that may be there, limits off the preferred disks."""

    def __init__(self, problem: Problem, placement: Placement, left: Sequence[int], lost: Sequence[int]) -> None:
        self._problem, self._placement, self._left, self._lost = problem, placement, left, lost
        pvs = [(pool, area) for pool, areas in enumerate(placement.pvs) for area in areas]
        # Metadata counts in full wherever a PV is possible, unless that is too much.
        self._opened = {
            (pool, area) for pool, area in pvs if left[area] > problem.pools[pool].metadata_size + problem.pools[pool].extent_size
        }
        self._off: dict[int, float] = {}
        self._least: list[float] = []
        self._most: list[float] = []
        self._built: DiskProgram | None = None
        self._forget_sizes()

    def begin(self) -> bool:
        """Find out whether the minimums fit, and how much of them must lie off preferred areas; False when they do not fit."""
        if self._settle_preferences():
            return True
        self._opened, self._built = set(), None
        return self._settle_preferences()

    def _settle_preferences(self) -> bool:
        liked = [position for position, pool in enumerate(self._problem.pools) if pool.preferred]
        model = self._program()
        cost = {column: -float(self._rank(pool, area)) for (pool, area), column in model.extents.items() if pool in liked}
        solved = maximise_with_prices(model.program, cost)
        if solved is None:
            return False
        for pool in liked:
            self._off[pool] = sum(float(solved[0].values[column]) for column in self._unliked(model, pool)) + _MEANS_NOTHING
        self._built = None
        return True

    def _forget_sizes(self) -> None:
        self._least = [float(demand.low) for demand in self._problem.demands]
        self._most = [FREE if demand.high is None else float(demand.high) for demand in self._problem.demands]

    def grow(self, turn: GrowthOrder) -> None:
        """Raise everything whose turn it is until everything is blocked."""
        if turn is GrowthOrder.LEFTOVER and self._off:
            self._off.clear()
            self._built = None
        demands = self._problem.demands
        active = [at for at, demand in enumerate(demands) if demand.growth_order is turn and self._least[at] < self._most[at]]
        while active:
            model = self._program()
            ceiling = min(self._most[at] * demands[at].unit / demands[at].weight for at in active)
            level = model.program.column(0.0, ceiling)
            rows = {at: model.program.row([(model.units[at], demands[at].unit), (level, -demands[at].weight)], low=0.0) for at in active}
            solved = maximise_with_prices(model.program, {level: 1.0})
            if solved is None:
                return
            reached, prices = solved
            height = reached.objective
            full = {at for at in active if self._most[at] * demands[at].unit <= height * demands[at].weight * (1 + _TINY)}
            blocked = full | {at for at in active if prices[rows[at]] > _TINY}
            for at in blocked:
                size = min(max(height * demands[at].weight / demands[at].unit, self._least[at]), self._most[at])
                self._least[at], self._most[at] = max(size - _MEANS_NOTHING, float(demands[at].low)), size
            active = [at for at in active if at not in blocked] if blocked else []

    def close_unused_pvs(self) -> bool:
        """Lay out what has been found on few PVs, first areas first, and give up the others; False when it fits no more."""
        targets = self.targets()
        if targets is None:
            return False
        needed = {pv for pv, extents in targets.pvs.items() if extents > _MEANS_NOTHING}
        counted = needed <= self._opened
        self._opened = needed
        pvs = tuple(tuple(area for area in areas if (pool, area) in needed) for pool, areas in enumerate(self._placement.pvs))
        self._placement, self._built = Placement(self._placement.areas_of_demand, pvs, self._placement.boot_partitions), None
        if counted:
            return True
        # Metadata in full takes more than the share that was counted so far.
        self._forget_sizes()
        if maximise_with_prices(self._program().program, {}) is None:
            return False
        self.grow(GrowthOrder.PREFERRED)
        self.grow(GrowthOrder.NORMAL)
        return True

    def targets(self) -> Targets | None:
        """Return the sizes as they are now, with PVs on the first areas for the first pools."""
        model = self._program(exactly=True)
        cost = {column: -self._place_cost(pool, area) for (pool, area), column in model.extents.items()}
        # Crumbs on PVs that have been given up since find no room on full disks: as much may be missing.
        dear = 3.0 + max((len(pool.preferred) for pool in self._problem.pools), default=0)
        for at, demand in enumerate(self._problem.demands):
            column = model.units[at]
            model.program.lower[column] = max(float(demand.low), model.program.lower[column] - _MISSING)
            cost[column] = dear * demand.unit
        cost.update({model.units[at]: -1.0 for at, demand in enumerate(self._problem.demands) if follows(demand)})
        solved = maximise_with_prices(model.program, cost)
        if solved is None:
            return None
        values = solved[0].values
        return Targets(
            {at: float(values[column]) for at, column in enumerate(model.units)},
            {pv: float(values[column]) for pv, column in model.extents.items()},
        )

    def _place_cost(self, pool: int, area: int) -> float:
        # An inverse Monge array: its cheapest flow is the north-west corner, first pools on first areas, in few PVs.
        pools, areas = len(self._problem.pools), len(self._problem.areas)
        order = (pools - pool) * (areas - area) / (pools * areas)
        return self._problem.pools[pool].extent_size * (1.0 + self._rank(pool, area) - 0.5 * order)

    def _rank(self, pool: int, area: int) -> int:
        return rank(self._problem.pools[pool].preferred, area)

    def _unliked(self, model: DiskProgram, pool: int) -> list[int]:
        tiers = self._problem.pools[pool].preferred
        return [column for (owner, area), column in model.extents.items() if owner == pool and rank(tiers, area) == len(tiers)]

    def _program(self, *, exactly: bool = False) -> DiskProgram:
        """Return the program with the sizes free between their bounds, or `exactly` at the sizes found so far.

        An array that is a PV has no size of its own before what lies on it is laid out: it follows.
        """
        most = [
            least if exactly and not follows(demand) else most
            for demand, least, most in zip(self._problem.demands, self._least, self._most)
        ]
        # Sizes are bounds of columns and nothing else, so that the rows are the same from one level to the next.
        self._built = self._built or self._build()
        program = self._built.program.copy()
        for column, lower, upper in zip(self._built.units, self._least, most):
            program.lower[column], program.upper[column] = lower, max(lower, upper)
        return replace(self._built, program=program)

    def _build(self) -> DiskProgram:
        room = [float(size) for size in self._left]
        frame = Frame(self._least, self._most, room, self._placement, self._lost, frozenset(self._opened), whole=False)
        model = build(self._problem, frame)
        for pool, most_off in self._off.items():
            model.program.row([(column, 1.0) for column in self._unliked(model, pool)], high=most_off)
        return model
