# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan without what is of no use: parts that are too small or more than needed, and boot partitions of disks that do not boot.

The search opens parts and boot partitions wherever they may be needed; what for is known only when there are sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..problem.model import Placement, Pool, Problem, Sizes, rank
from ..problem.relations import holds
from .levels import Found
from .sizes import size_fairly

_Part = tuple[int, int]
"""Pool and area."""


def tidied(problem: Problem, found: Found, sizes: Sizes) -> tuple[Found, Sizes]:
    """Return a plan with larger parts instead of slivers as far as there is room, and boot partitions only where something boots.

    What fits into one part lies in one.
    """
    return _in_one_part(problem, *_without_slivers(problem, *_with_few_boot_partitions(problem, found, sizes)))


def _in_one_part(problem: Problem, found: Found, sizes: Sizes) -> tuple[Found, Sizes]:
    """Return the plan in which pools in several parts lie on one area that has room for all of it, and is liked as well."""
    carrying = {pool for boot in problem.boot_partitions for pool in boot.pools}
    for at, pool in enumerate(problem.pools):
        parts = {area: units for (position, area), units in sizes.pvs.items() if position == at}
        alone = sum(other.space == pool.space for other in problem.pools) == 1
        if len(parts) < 2 or at in carrying or not alone:
            continue
        needed = sum(parts.values()) * pool.extent_size + pool.metadata_size
        worst = min(rank(pool.preferred, area) for area in parts)
        room = {area: sizes.left[area] + _mib(pool, parts.get(area, 0)) for area in pool.areas if rank(pool.preferred, area) <= worst}
        for area in sorted((area for area, mib in room.items() if mib >= needed), key=lambda area: (area not in parts, room[area], area)):
            pvs = tuple((area,) if position == at else areas for position, areas in enumerate(found.placement.pvs))
            placement = replace(found.placement, pvs=pvs)
            if holds(problem, placement):
                left = [mib + _mib(pool, parts.get(here, 0)) - (needed if here == area else 0) for here, mib in enumerate(sizes.left)]
                others = {part: units for part, units in sizes.pvs.items() if part[0] != at}
                sizes = replace(sizes, pvs={**others, (at, area): sum(parts.values())}, left=tuple(left))
                found = replace(found, placement=placement)
                break
    return found, sizes


def _mib(pool: Pool, units: int) -> int:
    return units * pool.extent_size + pool.metadata_size if units else 0


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
