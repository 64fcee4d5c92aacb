# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Weighted max-min fair sizes over several areas, by progressive filling with linear programs.

One level is raised for everything that still grows, `T = clamp(level * weight, lo, hi)`, until something is blocked; what is
blocked keeps its size, the rest goes on (systemd-repart's rule, generalised to several disks). What is blocked shows in the
duals: a row with a positive dual is tight in every optimum, so a mere tie never holds anything back.
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...common.highs import FREE, Program, maximise_with_prices
from ..problem.model import GrowthOrder, Kind, Placement, Problem, rank

_TINY = 1e-9
_MEANS_NOTHING = 1e-6


@dataclass(frozen=True)
class Targets:
    """Fractional units by demand and extents by (pool, area)."""

    units: Mapping[int, float]
    pvs: Mapping[tuple[int, int], float]


class Parts(t.Protocol):
    """The positions that belong to one cluster."""

    @property
    def areas(self) -> tuple[int, ...]: ...
    @property
    def demands(self) -> tuple[int, ...]: ...
    @property
    def pools(self) -> tuple[int, ...]: ...


def fill_cluster(problem: Problem, placement: Placement, cluster: Parts, left: Sequence[int], lost: Sequence[int]) -> Targets | None:
    """Return the targets of a cluster, or None when its minimums do not fit.

    `left` is MiB by area, `lost` MiB by demand that an array cannot give to its pool.
    """
    filling = _Filling(problem, placement, cluster, left, lost)
    if not filling.begin():
        return None
    filling.grow(GrowthOrder.PREFERRED)
    filling.grow(GrowthOrder.NORMAL)
    if not filling.close_unused_parts():
        return None
    filling.grow(GrowthOrder.LEFTOVER)
    return filling.targets()


class _Filling:
    """The state of one cluster while it is filled: bounds of every demand, open parts, limits off the preferred disks."""

    def __init__(self, problem: Problem, placement: Placement, cluster: Parts, left: Sequence[int], lost: Sequence[int]) -> None:
        self._problem, self._placement, self._cluster, self._left, self._lost = problem, placement, cluster, left, lost
        self._parts = [(pool, area) for pool in cluster.pools for area in placement.pvs[pool]]
        # Heads count in full wherever a part is possible, unless that is too much.
        self._opened = {
            (pool, area) for pool, area in self._parts if left[area] > problem.pools[pool].metadata_size + problem.pools[pool].extent_size
        }
        self._off: dict[int, float] = {}
        self._least: dict[int, float] = {}
        self._most: dict[int, float] = {}
        self._forget_sizes()

    def begin(self) -> bool:
        """Find out whether the minimums fit, and how much of them must lie off preferred areas; False when they do not fit."""
        if self._settle_preferences():
            return True
        self._opened = set()
        return self._settle_preferences()

    def _settle_preferences(self) -> bool:
        liked = [pool for pool in self._cluster.pools if self._problem.pools[pool].preferred]
        program, _steps, parts = self._program()
        cost = {column: -float(self._rank(pool, area)) for (pool, area), column in parts.items() if pool in liked}
        solved = maximise_with_prices(program, cost)
        if solved is None:
            return False
        for pool in liked:
            unliked = [column for (owner, area), column in parts.items() if owner == pool and self._is_off(pool, area)]
            self._off[pool] = sum(float(solved[0].values[column]) for column in unliked) + _MEANS_NOTHING
        return True

    def _forget_sizes(self) -> None:
        demands = self._problem.demands
        self._least = {at: float(demands[at].low) for at in self._cluster.demands}
        highs = {at: demands[at].high for at in self._cluster.demands}
        self._most = {at: FREE if high is None else float(high) for at, high in highs.items()}

    def grow(self, turn: GrowthOrder) -> None:
        """Raise everything whose turn it is until all of it is blocked."""
        if turn is GrowthOrder.LEFTOVER:
            self._off.clear()
        demands = self._problem.demands
        active = [at for at in self._cluster.demands if demands[at].growth_order is turn and self._least[at] < self._most[at]]
        while active:
            program, steps, _parts = self._program()
            ceiling = min(self._most[at] * demands[at].unit / demands[at].weight for at in active)
            level = program.column(0.0, ceiling)
            rows = {at: program.row([(steps[at], demands[at].unit), (level, -demands[at].weight)], low=0.0) for at in active}
            solved = maximise_with_prices(program, {level: 1.0})
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

    def close_unused_parts(self) -> bool:
        """Lay out what has been found in few parts, first areas first, and give up the others; False when it fits no more."""
        targets = self.targets()
        if targets is None:
            return False
        needed = {part for part, units in targets.pvs.items() if units > _MEANS_NOTHING}
        counted = needed <= self._opened
        self._opened = needed
        self._parts = [part for part in self._parts if part in needed]
        if counted:
            return True
        # Whole heads take more than the share of them that was counted so far.
        self._forget_sizes()
        if maximise_with_prices(self._program()[0], {}) is None:
            return False
        self.grow(GrowthOrder.PREFERRED)
        self.grow(GrowthOrder.NORMAL)
        return True

    def targets(self) -> Targets | None:
        """Return the sizes as they are now, with parts on the first areas for the first pools."""
        program, steps, parts = self._program(exactly=True)
        cost = {column: -self._place_cost(pool, area) for (pool, area), column in parts.items()}
        cost.update({steps[at]: -1.0 for at in self._cluster.demands if self._follows(at)})
        solved = maximise_with_prices(program, cost)
        if solved is None:
            return None
        values = solved[0].values
        return Targets(
            {at: float(values[column]) for at, column in steps.items()}, {part: float(values[column]) for part, column in parts.items()}
        )

    def _place_cost(self, pool: int, area: int) -> float:
        # An inverse Monge array: its cheapest flow is the north-west corner, first pools on first areas, in few parts.
        pools, areas = len(self._problem.pools), len(self._problem.areas)
        order = (pools - pool) * (areas - area) / (pools * areas)
        return self._problem.pools[pool].extent_size * (1.0 + self._rank(pool, area) - 0.5 * order)

    def _rank(self, pool: int, area: int) -> int:
        return rank(self._problem.pools[pool].preferred, area)

    def _is_off(self, pool: int, area: int) -> bool:
        return self._rank(pool, area) == len(self._problem.pools[pool].preferred)

    def _program(self, *, exactly: bool = False) -> tuple[Program, dict[int, int], dict[tuple[int, int], int]]:
        """Return the program of the cluster with the columns of steps and parts; `exactly` at the sizes found so far.

        An array that is a PV has no size of its own before what lies on it is laid out: it follows.
        """
        program = Program()
        fixed = {at for at in self._cluster.demands if exactly and not self._follows(at)}
        most = {at: self._least[at] if at in fixed else self._most[at] for at in self._cluster.demands}
        steps = {at: program.column(self._least[at], max(most[at], self._least[at])) for at in self._cluster.demands}
        parts = {part: program.column() for part in self._parts}
        self._area_rows(program, steps, parts)
        for pool in self._cluster.pools:
            self._pool_rows(program, pool, steps, parts)
        return program, steps, parts

    def _follows(self, at: int) -> bool:
        demand = self._problem.demands[at]
        return demand.kind is Kind.LEGS and demand.pool is not None

    def _area_rows(self, program: Program, steps: Mapping[int, int], parts: Mapping[tuple[int, int], int]) -> None:
        for area in self._cluster.areas:
            capacity = float(self._left[area])
            terms = [(steps[at], 1.0) for at in self._cluster.demands if area in self._placement.areas_of_demand[at]]
            for (pool, where), column in parts.items():
                if where == area:
                    head, extent_size = self._problem.pools[pool].metadata_size, self._problem.pools[pool].extent_size
                    if (pool, area) in self._opened:
                        capacity -= head
                        terms.append((column, extent_size))
                    else:
                        # As long as it is open whether there is a part, its head counts by the share of the area it takes.
                        terms.append((column, extent_size * (1.0 + head / max(self._left[area] - head, 1))))
            program.row(terms, high=capacity)

    def _pool_rows(self, program: Program, position: int, steps: Mapping[int, int], parts: Mapping[tuple[int, int], int]) -> None:
        pool = self._problem.pools[position]
        given = [(column, 1.0) for (owner, _area), column in parts.items() if owner == position]
        lost = 0.0
        for array in pool.arrays:
            given.append((steps[array], self._problem.demands[array].unit / pool.extent_size))
            lost += self._lost[array] / pool.extent_size
        taken = [(steps[volume], 1.0) for volume in pool.volumes]
        program.row([*taken, *((column, -factor) for column, factor in given)], high=pool.kept - lost)
        high = FREE if pool.hi is None else pool.hi // pool.extent_size + lost
        low = -(-pool.lo // pool.extent_size) + lost
        if pool.lo or pool.hi is not None:
            program.row(given, low=low, high=high)
        if position in self._off:
            unliked = [(column, 1.0) for (owner, area), column in parts.items() if owner == position and self._is_off(position, area)]
            program.row(unliked, high=self._off[position])
