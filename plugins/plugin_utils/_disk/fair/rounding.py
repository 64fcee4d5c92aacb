# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From fractional sizes to whole steps that fit to the MiB: down first, then what is left by largest remainder."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..._common.highs import Limits, maximise
from ..problem.model import Demand, GrowthOrder, Kind, Placement, Problem, Sizes, pool_minimum, rank
from ..problem.program import Frame, build
from .filling import Targets

_NOISE = 1e-3
_ROUNDS = 64
_CLOSE = 0.9995
_FEW = 16
"""Units."""


def round_targets(problem: Problem, placement: Placement, targets: Targets, left: Sequence[int], lost: Sequence[int]) -> Sizes | None:
    """Return whole sizes close to the targets; None when the parts cannot hold the minimums in whole units.

    `left` is MiB by area that boot_partitions leave, `lost` MiB by demand that an array cannot give to its pool.
    """
    rounding = _Rounding(problem, placement, targets, left, lost)
    if not rounding.cover_pools():
        rounding = _Rounding(problem, placement, targets, left, lost)
        if not rounding.solve_exactly():
            return None
    rounding.hand_out()
    return rounding.sizes()


class _Rounding:
    """Whole sizes under way: every change keeps `left` at what the areas have free."""

    def __init__(self, problem: Problem, placement: Placement, targets: Targets, left: Sequence[int], lost: Sequence[int]) -> None:
        self._problem, self._placement, self._targets, self._lost = problem, placement, targets, lost
        self._units = [max(demand.low, math.floor(targets.units[at] + _NOISE)) for at, demand in enumerate(problem.demands)]
        self._pvs = {part: math.floor(units + _NOISE) for part, units in targets.pvs.items()}
        self._areas_of_pool: dict[int, list[int]] = {}
        for pool, area in self._pvs:
            self._areas_of_pool.setdefault(pool, []).append(area)
        self._count_extents()
        self._room = list(left)
        self._left = self._what_is_left()

    def sizes(self) -> Sizes:
        """Return the result; parts without units are no parts."""
        parts = {part: units for part, units in self._pvs.items() if units}
        return Sizes(tuple(self._units), parts, tuple(self._left))

    def cover_pools(self) -> bool:
        """Make every pool hold its volumes: more units where there is room, else fewer steps of what grew most."""
        if any(left < 0 for left in self._left):
            return False
        for position, pool in enumerate(self._problem.pools):
            least = pool_minimum(self._problem, pool)
            while (there := self._extents(position)) < max(self._taken(position), least):
                # Smaller volumes do not help a pool that is below its own minimum.
                if not self._widen(position) and (there < least or not self._shrink(position)):
                    return False
        return True

    def solve_exactly(self) -> bool:
        """Find whole PVs and sizes up to the targets by an integer program; False when there are none.

        Sizes are close to the targets if such are found: what is worth most altogether need not be fair.
        """
        lows = [demand.low for demand in self._problem.demands]
        close = [max(demand.low, math.floor(units * _CLOSE) - _FEW) for demand, units in zip(self._problem.demands, self._units)]
        return self._solve_from(close) or (close != lows and self._solve_from(lows))

    def _solve_from(self, least: Sequence[int]) -> bool:
        room = [float(max(size, 0)) for size in self._room]
        model = build(self._problem, Frame(least, self._units, room, self._placement, self._lost))
        worth = {column: float(demand.unit) for column, demand in zip(model.units, self._problem.demands)}
        # Off what a pool prefers lies only what must.
        for (position, area), column in model.extents.items():
            pool = self._problem.pools[position]
            worth[column] = -2.0 * pool.extent_size * rank(pool.preferred, area)
        solved = maximise(model.program, worth, Limits(gap=1e-4))
        if solved is None:
            return False
        self._units = [round(solved.values[column]) for column in model.units]
        self._pvs = {pv: round(solved.values[column]) for pv, column in model.extents.items()}
        self._areas_of_pool = {pool: list(areas) for pool, areas in enumerate(self._placement.pvs)}
        self._count_extents()
        self._left = self._what_is_left()
        return self.cover_pools()

    def hand_out(self) -> None:
        """Give what is left step by step: by growth order, then to the demand that rounding has cost most, then in schema order."""
        for turn in (GrowthOrder.PREFERRED, GrowthOrder.NORMAL, GrowthOrder.LEFTOVER):
            growing = [at for at, demand in enumerate(self._problem.demands) if demand.growth_order is turn]
            for _round in range(_ROUNDS):
                growing.sort(key=lambda at: (-self._shortfall(at), at))
                growing = [at for at in growing if self._grow(at)]
                if not growing:
                    break

    def _what_is_left(self) -> list[int]:
        left = list(self._room)
        for at, sites in enumerate(self._placement.areas_of_demand):
            for area in sites:
                left[area] -= self._units[at]
        for (pool, area), units in self._pvs.items():
            left[area] -= self._mib(pool, units)
        return left

    def _count_extents(self) -> None:
        self._on_areas = {pool: sum(self._pvs[pool, area] for area in areas) for pool, areas in self._areas_of_pool.items()}

    def _shortfall(self, at: int) -> float:
        return round(self._targets.units[at] - self._units[at], 3)

    def _mib(self, pool: int, units: int) -> int:
        return units * self._problem.pools[pool].extent_size + self._problem.pools[pool].metadata_size if units else 0

    def _taken(self, pool: int) -> int:
        return sum(self._units[volume] for volume in self._problem.pools[pool].volumes)

    def _extents(self, position: int) -> int:
        pool = self._problem.pools[position]
        units = pool.kept + self._on_areas.get(position, 0)
        for array in pool.arrays:
            units += max(0, (self._units[array] * self._problem.demands[array].unit - self._lost[array]) // pool.extent_size)
        return units

    def _widen(self, position: int, turn: GrowthOrder | None = None) -> bool:
        """Add one unit to the part of the pool that has most room; False when there is none.

        What grows in the turn of preferences does so on what it prefers.
        """
        pool = self._problem.pools[position]
        tiers = pool.preferred if turn is GrowthOrder.PREFERRED else ()
        if pool.hi is not None and (self._extents(position) - pool.kept + 1) * pool.extent_size > pool.hi:
            return False
        # What has no room for a unit any more has none later, either.
        areas = self._areas_of_pool[position] = [
            area for area in self._areas_of_pool.get(position, ()) if self._left[area] >= pool.extent_size
        ]
        for is_new in (False, True):
            own = [area for area in areas if (self._pvs[position, area] == 0) is is_new]
            own = [area for area in own if rank(tiers, area) < len(tiers)] if tiers else own
            area = max(own, key=lambda area: (-rank(pool.preferred, area), self._left[area], -area), default=None)
            cost = pool.extent_size + (pool.metadata_size if is_new else 0)
            if area is not None and cost <= self._left[area]:
                self._pvs[position, area] += 1
                self._on_areas[position] += 1
                self._left[area] -= cost
                return True
        return any(self._grow_array(array) for array in pool.arrays)

    def _grow_array(self, array: int) -> bool:
        """Grow an array until its pool gains a unit."""
        demand, pool = self._problem.demands[array], self._problem.demands[array].pool
        if pool is None:
            return False
        before = self._extents(pool)
        needed = -(-self._problem.pools[pool].extent_size // demand.unit)
        spare = min((self._left[area] for area in self._placement.areas_of_demand[array]), default=0)
        for step in range(1, min(needed, spare) + 1):
            if not _may_grow(demand, self._units[array], step):
                return False
            self._units[array] += step
            if self._extents(pool) > before:
                for area in self._placement.areas_of_demand[array]:
                    self._left[area] -= step
                return True
            self._units[array] -= step
        return False

    def _shrink(self, pool: int) -> bool:
        """Take one step from a volume that is above its minimum; False when all are at it."""
        able = [at for at in self._problem.pools[pool].volumes if self._units[at] > self._problem.demands[at].low]
        if not able:
            return False
        # The demand that rounding has cost least so far gives next, so that equals stay equal to within a step.
        loser = min(able, key=lambda at: (self._problem.demands[at].growth_order is not GrowthOrder.LEFTOVER, self._shortfall(at), -at))
        self._units[loser] -= 1
        return True

    def _grow(self, at: int) -> bool:
        demand = self._problem.demands[at]
        if not _may_grow(demand, self._units[at], 1):
            return False
        if demand.kind is not Kind.VOLUME:
            sites = self._placement.areas_of_demand[at]
            if not sites or any(self._left[area] < 1 for area in sites):
                return False
            for area in sites:
                self._left[area] -= 1
        elif demand.pool is None or not (
            self._taken(demand.pool) < self._extents(demand.pool) or self._widen(demand.pool, demand.growth_order)
        ):
            return False
        self._units[at] += 1
        return True


def _may_grow(demand: Demand, steps: int, more: int) -> bool:
    return demand.high is None or steps + more <= demand.high
