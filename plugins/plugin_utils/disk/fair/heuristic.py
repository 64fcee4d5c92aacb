# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A quick placement: largest first, at the highest level of the poorest for which that succeeds, and how good that can be.

Most servers have a placement that meets the bound; then there is no program to solve. Where it does not, it is what a search
that had to be cut short is measured against.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..problem.model import BootPartition, Demand, GrowthOrder, Kind, Placement, Pool, PreferredAreas, Problem, Sizes, by_disk, rank

_TRIFLE = 8
"""MiB that are not worth a search."""
_HALVINGS = 32
_GOOD_ENOUGH = 0.99
_GROWS = (GrowthOrder.PREFERRED, GrowthOrder.NORMAL)

Rule = Callable[[int, int], int]
"""What is left of an area (MiB) and its position -> what to sort by, smallest first."""
_RULES: tuple[Rule, ...] = (lambda _left, area: area, lambda left, _area: left, lambda left, _area: -left)
"""First fit, best fit, worst fit."""


@dataclass(frozen=True)
class Quality:
    """How good a plan is; larger is better, one after the other, but for `idle`."""

    liked: float
    """Minus the MiB of pieces off the first tier of what they prefer."""
    levels: tuple[float, float]
    """MiB per weight of the poorest that could still grow: of the spaces with a preference, of the others."""
    used: int
    """MiB in use."""
    idle: int
    """MiB that are free although something that grows could perhaps use them."""


def grows(demand: Demand) -> bool:
    """Tell whether a demand takes part in the level."""
    return demand.growth_order in _GROWS and demand.high != demand.low


def quality(problem: Problem, placement: Placement, sizes: Sizes) -> Quality:
    """Return how good a plan is."""
    off = 0.0
    for demand, sites in zip(problem.demands, placement.areas_of_demand):
        off += sum(demand.low * rank(demand.preferred, area) for area in sites)
    for (pool, area), units in sizes.pvs.items():
        off += units * problem.pools[pool].extent_size * rank(problem.pools[pool].preferred, area)
    levels = _poorest(problem, sizes, GrowthOrder.PREFERRED), _poorest(problem, sizes, GrowthOrder.NORMAL)
    used = sum(area.size for area in problem.areas) - sum(sizes.left)
    return Quality(-off, levels, used, _idle(problem, placement, sizes, min(levels)))


def _poorest(problem: Problem, sizes: Sizes, turn: GrowthOrder) -> float:
    hungry = [
        step * demand.unit / demand.weight
        for demand, step in zip(problem.demands, sizes.units)
        if demand.growth_order is turn and grows(demand) and (demand.high is None or step < demand.high)
    ]
    return min(hungry, default=math.inf)


def is_better(one: Quality, other: Quality) -> bool:
    """Tell whether one plan is better: by preferences, by the levels if they differ by a percent, by what is in use, by the levels."""
    if one.liked != other.liked:
        return one.liked > other.liked
    for mine, yours in zip(one.levels, other.levels):
        if min(mine, yours) < _GOOD_ENOUGH * max(mine, yours):
            return mine > yours
    return (one.used, one.levels) > (other.used, other.levels)


def cannot_be_better(found: Quality, bounds: tuple[float, float]) -> bool:
    """Tell whether a plan reaches the bounds within one percent, every preference is met and nothing usable lies idle."""
    reached = all(level >= _GOOD_ENOUGH * bound for level, bound in zip(found.levels, bounds))
    return found.liked == 0 and found.idle == 0 and reached


def distance(problem: Problem, found: Quality, bounds: tuple[float, float]) -> float:
    """Return how far a plan may be from the best: relative to the bounds of the levels and to all that could be in use."""
    gaps = [(bound - level) / bound for level, bound in zip(found.levels, bounds) if level < bound < math.inf]
    return max([0.0, *gaps, found.idle / max(1, sum(area.size for area in problem.areas))])


def level_bounds(problem: Problem, sizes: Sizes, bound: float) -> tuple[float, float]:
    """Return levels that no placement exceeds: of spaces with a preference, and of the others beside what these got.

    `bound` is `highest_level` of the problem.
    """
    if not any(demand.growth_order is GrowthOrder.PREFERRED and grows(demand) for demand in problem.demands):
        return math.inf, bound
    liking_first = [
        _confined(demand) if demand.growth_order is GrowthOrder.PREFERRED else _settled(demand, demand.low) for demand in problem.demands
    ]
    pools = tuple(replace(pool, areas=_liked(pool.areas, pool.preferred)) for pool in problem.pools)
    others = [
        _settled(demand, step) if demand.growth_order is GrowthOrder.PREFERRED else demand
        for demand, step in zip(problem.demands, sizes.units)
    ]
    first = replace(problem, demands=tuple(liking_first), pools=pools)
    return highest_level(first), highest_level(replace(problem, demands=tuple(others)))


def _settled(demand: Demand, steps: int) -> Demand:
    return replace(demand, lo=steps * demand.unit, hi=steps * demand.unit, growth_order=GrowthOrder.NEVER)


def _confined(demand: Demand) -> Demand:
    return replace(demand, areas=_liked(demand.areas, demand.preferred))


def _liked(areas: tuple[int, ...], tiers: PreferredAreas) -> tuple[int, ...]:
    return tuple(area for area in areas if rank(tiers, area) < len(tiers)) or areas


def _idle(problem: Problem, placement: Placement, sizes: Sizes, level: float) -> int:
    """Return how many MiB are free that something growing could use; heads and less than an extent are no loss.

    A disk that is too small for a whole piece at the level of the poorest is of no use to any piece.
    """
    if level == math.inf:
        return 0
    growing = [at for at, demand in enumerate(problem.demands) if grows(demand)]
    wanted = {area for at in growing for area in placement.areas_of_demand[at]}
    wanted |= {area for at in growing if (pool := problem.demands[at].pool) is not None for area in problem.pools[pool].areas}
    piece = min((level * problem.demands[at].weight / problem.demands[at].unit for at in growing), default=math.inf)
    idle = sum(left for area, left in enumerate(sizes.left) if left >= _TRIFLE and (area in wanted or left >= piece))
    return idle if idle > sum(area.size for area in problem.areas) // 100_000 else 0


def highest_level(problem: Problem) -> float:
    """Return a level that no placement exceeds.

    Every set of areas that some demand is confined to is taken as one disk; and every demand that has a placement must lie
    somewhere, beside what has none.
    """
    bound = math.inf
    confined = [_areas_of(problem, demand) for demand in problem.demands]
    for areas in {areas for areas in confined if areas}:
        inside = [demand for demand, own in zip(problem.demands, confined) if own and own <= areas]
        bound = min(bound, _level_in([problem.areas[area].size for area in areas], inside))
    settled = {area: [demand for demand, own in zip(problem.demands, confined) if own == {area}] for area in range(len(problem.areas))}
    for demand, areas in zip(problem.demands, confined):
        if demand.kind is not Kind.VOLUME and len(areas) > 1:
            levels = sorted(
                (_level_in([problem.areas[area].size], [*settled[area], replace(demand, legs=1)]) for area in areas), reverse=True
            )
            if len(levels) >= demand.legs:
                bound = min(bound, levels[demand.legs - 1])
    return bound


def quick_placements(problem: Problem, bound: float) -> list[Placement]:
    """Return the placements that simple rules find at the highest level that any of them reaches, best first; at worst none."""
    found = [(rule, trial) for rule in _RULES if (trial := _best_level(problem, rule, bound)) is not None]
    if not found:
        return []
    found.sort(key=lambda item: -item[1][0])
    level = found[0][1][0] * (1 - 1e-3)
    choices = [found[0][1][1]]
    for rule in _RULES:
        placement = _Packing(problem, level, rule).run()
        if placement is not None and placement not in choices:
            choices.append(placement)
    return choices


def _areas_of(problem: Problem, demand: Demand) -> frozenset[int]:
    if demand.kind is not Kind.VOLUME or demand.pool is None:
        return frozenset(demand.areas)
    pool = problem.pools[demand.pool]
    if pool.arrays or pool.kept:
        return frozenset()
    return frozenset(pool.areas)


def _per_step(demand: Demand) -> int:
    """Return how many MiB of disks one step takes."""
    return demand.unit if demand.kind is Kind.VOLUME else demand.legs


def _steps_at(demand: Demand, level: float) -> int:
    if not grows(demand):
        return demand.low
    steps = max(demand.low, math.floor(level * demand.weight / demand.unit)) if level < math.inf else demand.low
    return steps if demand.high is None else min(steps, demand.high)


def _level_in(sizes: Sequence[int], demands: Sequence[Demand]) -> float:
    growing = [demand for demand in demands if grows(demand)]
    if not growing:
        return math.inf
    low, high = 0.0, sum(sizes) / min(demand.weight for demand in growing) + 1.0
    if _may_fit(sizes, demands, high):
        return math.inf
    for _halving in range(_HALVINGS):
        middle = (low + high) / 2
        if _may_fit(sizes, demands, middle):
            low = middle
        else:
            high = middle
    return high


def _may_fit(sizes: Sequence[int], demands: Sequence[Demand], level: float) -> bool:
    """Tell whether demands may fit at a level: by their sum, and whole pieces of every size by their number."""
    if sum(_steps_at(demand, level) * _per_step(demand) for demand in demands) > sum(sizes):
        return False
    pieces = sorted(
        (_steps_at(demand, level) for demand in demands if demand.kind is not Kind.VOLUME for _leg in range(demand.legs)), reverse=True
    )
    return all(sum(size // piece for size in sizes) >= count for count, piece in enumerate(pieces, start=1) if piece)


def _best_level(problem: Problem, rule: Rule, bound: float) -> tuple[float, Placement] | None:
    placement = _Packing(problem, 0.0, rule).run()
    if placement is None:
        return None
    low, high = 0.0, bound
    if high == math.inf:
        top = max((demand.high * demand.unit / demand.weight for demand in problem.demands if grows(demand) and demand.high), default=0.0)
        high = max(top, float(max((area.size for area in problem.areas), default=0)))
    whole = _Packing(problem, high, rule).run()
    if whole is not None:
        return high, whole
    for _halving in range(_HALVINGS):
        if high - low <= low * 1e-3:
            break
        middle = (low + high) / 2
        trial = _Packing(problem, middle, rule).run()
        if trial is None:
            high = middle
        else:
            low, placement = middle, trial
    return low, placement


class _Packing:
    """One attempt to place everything at a level."""

    def __init__(self, problem: Problem, level: float, rule: Rule) -> None:
        self._problem, self._rule = problem, rule
        self._steps = [_steps_at(demand, level) for demand in problem.demands]
        self._left = [area.size for area in problem.areas]
        self._sites: dict[int, tuple[int, ...]] = {}
        self._parts: dict[int, tuple[int, ...]] = {}
        self._boot_partitions: list[dict[int, int]] = [{} for _boot_partition in problem.boot_partitions]
        self._own = [by_disk(problem.areas, [area for area, _size in boot_partition.sizes]) for boot_partition in problem.boot_partitions]

    def run(self) -> Placement | None:
        """Return a placement, or None when this way something finds no room."""
        problem = self._problem
        for at, boot_partition in enumerate(problem.boot_partitions):
            for disk in boot_partition.disks:
                if not self._boot(at, boot_partition, disk):
                    return None
        solid = [at for at, demand in enumerate(problem.demands) if demand.kind is not Kind.VOLUME]
        # What has least placement comes first, then what is largest.
        solid.sort(key=lambda at: (len(problem.demands[at].areas) > problem.demands[at].legs, -self._steps[at], at))
        if not all(self._place(at, problem.demands[at]) for at in solid):
            return None
        pools = sorted(range(len(problem.pools)), key=lambda at: (len(problem.pools[at].areas), at))
        if not all(self._spread(at, problem.pools[at]) for at in pools):
            return None
        return Placement(
            areas_of_demand=tuple(self._sites.get(at, ()) for at in range(len(problem.demands))),
            pvs=tuple(self._parts[at] for at in range(len(problem.pools))),
            boot_partitions=tuple(tuple(sorted(there.values())) for there in self._boot_partitions),
        )

    def _place(self, at: int, demand: Demand) -> bool:
        size = self._steps[at]
        booting = [number for number, boot_partition in enumerate(self._problem.boot_partitions) if at in boot_partition.demands]
        chosen: list[int] = []
        disks: set[int] = set()
        # Equal legs go where most is left, so that they can be large.
        rule = self._rule if demand.legs == 1 else _RULES[2]
        for area in sorted(demand.areas, key=lambda area: (rank(demand.preferred, area), rule(self._left[area], area), area)):
            disk = self._problem.areas[area].disk
            if disk not in disks and len(chosen) < demand.legs and size + self._missing(booting, area) <= self._left[area]:
                chosen.append(area)
                disks.add(disk)
        if len(chosen) < demand.legs:
            return False
        for area in chosen:
            self._left[area] -= size
        self._sites[at] = tuple(sorted(chosen))
        return all(
            self._boot(number, self._problem.boot_partitions[number], self._problem.areas[area].disk)
            for number in booting
            for area in chosen
        )

    def _missing(self, booting: Sequence[int], area: int) -> int:
        """Return what boot partitions that are not there yet would take of the area itself."""
        disk = self._problem.areas[area].disk
        return sum(
            dict(self._problem.boot_partitions[number].sizes)[area]
            for number in booting
            if disk not in self._boot_partitions[number] and area in self._own[number].get(disk, [])
        )

    def _boot(self, number: int, boot_partition: BootPartition, disk: int) -> bool:
        if disk in self._boot_partitions[number]:
            return True
        sizes = dict(boot_partition.sizes)
        for area in self._own[number].get(disk, []):
            if sizes[area] <= self._left[area]:
                self._left[area] -= sizes[area]
                self._boot_partitions[number][disk] = area
                return True
        return False

    def _spread(self, at: int, pool: Pool) -> bool:
        if pool.arrays or not pool.areas:
            # Whether it holds its volumes is known only with the exact size of the arrays.
            self._parts[at] = ()
            return True
        least = max(sum(self._steps[volume] for volume in pool.volumes), -(-pool.lo // pool.extent_size))
        booting = [number for number, boot_partition in enumerate(self._problem.boot_partitions) if at in boot_partition.pools]
        limited = bool(booting) or pool.max_pvs is not None
        order = sorted(pool.areas, key=lambda area: (rank(pool.preferred, area), -self._left[area] if limited else 0, area))
        chosen: list[int] = []
        disks: set[int] = set()
        for area in order:
            disk = self._problem.areas[area].disk
            room = (self._left[area] - pool.metadata_size - self._missing(booting, area)) // pool.extent_size
            if least <= 0 or room <= 0 or disk in disks or (pool.max_pvs is not None and len(chosen) >= pool.max_pvs):
                continue
            units = min(least, room)
            least -= units
            self._left[area] -= units * pool.extent_size + pool.metadata_size
            chosen.append(area)
            disks.add(disk)
            if not all(self._boot(number, self._problem.boot_partitions[number], disk) for number in booting):
                return False
        others = [] if limited else [area for area in pool.areas if self._problem.areas[area].disk not in disks]
        self._parts[at] = tuple(sorted([*chosen, *(areas[0] for areas in by_disk(self._problem.areas, others).values())]))
        return least <= 0
