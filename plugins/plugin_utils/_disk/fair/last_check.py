# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A last look at a plan: whether anything stays small, or is left out, while room that it may use lies idle.

This knows nothing of the search and its limits. What could be larger on other areas is moved there; where moves find no end, the plan says
which level is open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..problem.model import GrowthOrder, Kind, Placement, Problem, Sizes, rank
from ..problem.relations import holds
from .levels import Found, Plan, as_plan, is_better
from .sizes import size_fairly

_NOTICED = 1.001
_LEAST = 16
"""MiB of every leg: less is not worth another place."""
_MOST_MOVES = 20


def checked(problem: Problem, found: Found, sizes: Sizes) -> tuple[Found, Sizes]:
    """Return the plan with nothing that could be larger on idle room; what still could after many moves makes it not proven."""
    for _move in range(_MOST_MOVES):
        better = next(_better_plans(problem, found.placement, sizes), None)
        if better is None:
            return found, sizes
        found, sizes = replace(found, placement=better.placement), better.sizes
    demand, gain, _placement = next(_moves(problem, found.placement, sizes), (None, 0.0, None))
    return (found if demand is None else replace(found, proven=False, gap=max(gain, found.gap), open_at=(demand,))), sizes


def _better_plans(problem: Problem, placement: Placement, sizes: Sizes) -> Iterator[Plan]:
    """Yield better plans that differ by one move."""
    if max(sizes.left, default=0) >= _LEAST:
        now = as_plan(problem, placement, sizes)
        for _demand, _gain, there in _moves(problem, placement, sizes):
            sized = size_fairly(problem, there)
            moved = None if sized is None else as_plan(problem, there, sized)
            if moved is not None and is_better(moved, now):
                yield moved


def _moves(problem: Problem, placement: Placement, sizes: Sizes) -> Iterator[tuple[int, float, Placement]]:
    """Yield what could be larger elsewhere: a demand (position) that grows, by which part of its size, and the placement for that."""
    for at, demand in enumerate(problem.demands):
        if demand.kind is not Kind.VOLUME and demand.areas and (grows := _for_which(problem, sizes, at)) is not None:
            own = placement.areas_of_demand[at]
            gain, areas = _roomiest(problem, placement, sizes, at)
            if areas is not None and set(areas) != set(own):
                moved = tuple(areas if other == at else sites for other, sites in enumerate(placement.areas_of_demand))
                there = replace(placement, areas_of_demand=moved)
                if holds(problem, there):
                    yield grows, gain, there
    yield from _opened(problem, placement, sizes)


def _for_which(problem: Problem, sizes: Sizes, at: int) -> int | None:
    """Return the demand that would be larger if a whole demand were: itself, or a volume on the array that it is."""
    demand = problem.demands[at]
    if demand.pool is None:
        return at if _can_grow(problem, sizes, at) else None
    return next((volume for volume in problem.pools[demand.pool].volumes if _can_grow(problem, sizes, volume)), None)


def _can_grow(problem: Problem, sizes: Sizes, at: int) -> bool:
    demand = problem.demands[at]
    grows = demand.growth_order in (GrowthOrder.PREFERRED, GrowthOrder.NORMAL)
    return grows and (demand.high is None or sizes.units[at] < demand.high)


def _roomiest(problem: Problem, placement: Placement, sizes: Sizes, at: int) -> tuple[float, tuple[int, ...] | None]:
    """Return by which part the legs of a demand could be larger on the areas with the most room, and these areas; None for nowhere."""
    demand, own, units = problem.demands[at], placement.areas_of_demand[at], sizes.units[at]
    worst = max((rank(demand.preferred, area) for area in own), default=0)
    best: dict[int, tuple[int, bool, int]] = {}
    for area in demand.areas:
        room = sizes.left[area] + (units if area in own else 0)
        if rank(demand.preferred, area) <= worst and _boots_there(problem, placement, at, area):
            drive = problem.drive_of(problem.areas[area].disk) if demand.legs > 1 else area
            best[drive] = max(best.get(drive, (0, False, 0)), (room, area in own, -area))
    most = sorted(best.values(), reverse=True)[: demand.legs]
    if len(most) < demand.legs or not own:
        return 0.0, None
    possible = most[-1][0] if demand.high is None else min(most[-1][0], demand.high)
    if possible < max(units * _NOTICED, units + _LEAST):
        return 0.0, None
    return possible / units - 1 if units else 1.0, tuple(sorted(-one[-1] for one in most))


def _boots_there(problem: Problem, placement: Placement, at: int, area: int) -> bool:
    """Return whether a demand that boots finds the boot partition that it needs on the disk of an area."""
    disk = problem.areas[area].disk
    return all(
        any(problem.areas[own].disk == disk for own in areas)
        for boot, areas in zip(problem.boot_partitions, placement.boot_partitions)
        if at in boot.demands
    )


def _opened(problem: Problem, placement: Placement, sizes: Sizes) -> Iterator[tuple[int, float, Placement]]:
    """Yield volumes of pools that could have one part more on idle room, or one part where there is more room for it."""
    carrying = {at for boot in problem.boot_partitions for at in boot.pools}
    for at, pool in enumerate(problem.pools):
        volume = next((volume for volume in pool.volumes if _can_grow(problem, sizes, volume)), None)
        if volume is None or pool.arrays or at in carrying:
            continue
        parts = {area: units for (position, area), units in sizes.pvs.items() if position == at and units}
        worst = max((rank(pool.preferred, area) for area in parts), default=len(pool.preferred))
        own = {problem.areas[area].disk for area in parts}
        idle = [area for area in pool.areas if problem.areas[area].disk not in own and rank(pool.preferred, area) <= worst]
        most = max(idle, key=lambda area: (sizes.left[area], -area), default=None)
        least = max(pool.least, _LEAST, pool.extent_size)
        if most is None or sizes.left[most] < pool.metadata_size + least:
            continue
        now = sum(parts.values()) * pool.extent_size
        wider = pool.max_pvs is None or len(parts) < pool.max_pvs
        gone = None if wider else min(parts, key=lambda area: (parts[area], area))
        more = sizes.left[most] - pool.metadata_size - (parts[gone] * pool.extent_size if gone is not None else 0)
        if more < max(least, now * (_NOTICED - 1)):
            continue
        pvs = tuple(sorted({*parts, most} - {gone}))
        there = replace(placement, pvs=tuple(pvs if other == at else own for other, own in enumerate(placement.pvs)))
        if holds(problem, there):
            yield volume, more / now if now else 1.0, there
