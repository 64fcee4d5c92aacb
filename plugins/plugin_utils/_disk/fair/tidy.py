# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan without what is of no use: parts too small for what lies on each, and boot partitions of disks that do not boot.

The search opens parts and boot partitions wherever they may be needed; what for is known only when there are sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..problem.model import Placement, Problem, Sizes
from .levels import Found
from .sizes import size_fairly

_Part = tuple[int, int]
"""Pool and area."""


def tidied(problem: Problem, found: Found, sizes: Sizes) -> tuple[Found, Sizes]:
    """Return a plan with larger parts instead of slivers as far as there is room, and boot partitions only where something boots."""
    return _without_slivers(problem, *_with_few_boot_partitions(problem, found, sizes))


def _undersized_pvs(problem: Problem, sizes: Sizes) -> list[_Part]:
    """Return the parts that are too small for what is to lie on each, the smallest first."""
    small = [part for part, units in sizes.pvs.items() if 0 < units * problem.pools[part[0]].extent_size < problem.pools[part[0]].least]
    return sorted(small, key=lambda part: (sizes.pvs[part], part))


def _without_slivers(problem: Problem, found: Found, sizes: Sizes) -> tuple[Found, Sizes]:
    """Give slivers up, or else make them large enough at the cost of what else is there; what neither helps stays."""
    held: tuple[_Part, ...] = ()
    in_vain: set[_Part] = set()
    while left := [part for part in _undersized_pvs(problem, sizes) if part not in in_vain]:
        for placement, parts in ((_closed(found.placement, left[0]), held), (found.placement, (*held, left[0]))):
            sized = _sized(problem, placement, parts)
            if sized is not None:
                found, sizes, held = replace(found, placement=placement), sized, parts
                break
        else:
            in_vain.add(left[0])
    return found, sizes


def _sized(problem: Problem, placement: Placement, held: Sequence[_Part]) -> Sizes | None:
    """Return sizes in which some parts have what they need at least, taken off beforehand of their areas and of what shares them."""
    areas, demands = list(problem.areas), list(problem.demands)
    for pool, area in held:
        least, (volume,) = problem.pools[pool].least, problem.pools[pool].volumes
        areas[area] = replace(areas[area], size=areas[area].size - least)
        demand = demands[volume]
        most = None if demand.hi is None else demand.hi - least
        if areas[area].size < 0 or (most is not None and most < 0):
            return None
        demands[volume] = replace(demand, lo=max(0, demand.lo - least), hi=most)
    sizes = size_fairly(replace(problem, areas=tuple(areas), demands=tuple(demands)), placement)
    if sizes is None:
        return None
    units, pvs = list(sizes.units), dict(sizes.pvs)
    for pool, area in held:
        least, (volume,) = problem.pools[pool].least, problem.pools[pool].volumes
        units[volume] += least
        pvs[pool, area] = pvs.get((pool, area), 0) + least
    return replace(sizes, units=tuple(units), pvs=pvs)


def _closed(placement: Placement, part: _Part) -> Placement:
    pool, area = part
    pvs = tuple(tuple(own for own in areas if (at, own) != (pool, area)) for at, areas in enumerate(placement.pvs))
    return replace(placement, pvs=pvs)


def _with_few_boot_partitions(problem: Problem, found: Found, sizes: Sizes) -> tuple[Found, Sizes]:
    placement = found.placement
    needed = tuple(
        tuple(area for area in areas if problem.areas[area].disk in _booting(problem, number, placement, sizes))
        for number, areas in enumerate(placement.boot_partitions)
    )
    if needed == placement.boot_partitions:
        return found, sizes
    carrying = {pool for boot in problem.boot_partitions for pool in boot.pools}
    # On a disk without a boot partition nothing that boots may come to lie any more.
    pvs = tuple(tuple(area for area in areas if at not in carrying or sizes.pvs.get((at, area))) for at, areas in enumerate(placement.pvs))
    placement = Placement(placement.areas_of_demand, pvs, needed)
    return replace(found, placement=placement), size_fairly(problem, placement) or sizes


def _booting(problem: Problem, number: int, placement: Placement, sizes: Sizes) -> set[int]:
    boot = problem.boot_partitions[number]
    areas = {area for at in boot.demands for area in placement.areas_of_demand[at]}
    areas |= {area for (pool, area), units in sizes.pvs.items() if pool in boot.pools and units}
    return {problem.areas[area].disk for area in areas} | set(boot.disks)
