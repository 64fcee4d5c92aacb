# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Exact sizes once it is decided what lies where.

The placement falls apart into clusters of areas that share nothing. One area alone and one pool alone are closed forms; the
rest is a few linear programs (`filling`). Then whole steps (`whole_steps`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ....module_utils._storage import overhead
from ..problem.model import GrowthOrder, Kind, Placement, Pool, Problem, Sizes, rank
from .filling import Targets, fill_areas
from .newton import fill_plain, is_plain
from .rounding import round_targets

_REPEATS = 6
_NOISE = 1e-6


@dataclass(frozen=True)
class Cluster:
    """Areas, demands and pools (positions) that share room with each other and with nothing else."""

    areas: tuple[int, ...]
    demands: tuple[int, ...]
    pools: tuple[int, ...]


def size_fairly(problem: Problem, placement: Placement) -> Sizes | None:
    """Return whole sizes for a placement, or None when the minimums do not fit it."""
    problem = growth_by_place(problem, placement)
    lost = array_losses(problem, [demand.low for demand in problem.demands])
    for _repeat in range(_REPEATS):
        sizes = _size(problem, placement, lost)
        if sizes is None:
            return None
        # md keeps more of larger legs; what the legs that came out lose is known only now.
        really = array_losses(problem, sizes.units)
        if all(real <= assumed for real, assumed in zip(really, lost)):
            return sizes
        lost = [max(pair) for pair in zip(really, lost)]
    return None


def array_losses(problem: Problem, steps: Sequence[int]) -> list[int]:
    """Return for every demand what of its data capacity cannot hold extents if it is a PV: md's and LVM's share in MiB."""
    losses = []
    for demand, step in zip(problem.demands, steps):
        if demand.kind is Kind.LEGS and demand.pool is not None:
            losses.append(demand.unit * overhead.md_reserve(step, demand.reserve, demand.unit) + demand.metadata_size)
        else:
            losses.append(0)
    return losses


def growth_by_place(problem: Problem, placement: Placement) -> Problem:
    """Return the problem with what had to go off its preferred disks growing last: growth there would not serve the preference."""
    demands = list(problem.demands)
    for position, (demand, sites) in enumerate(zip(problem.demands, placement.areas_of_demand)):
        if demand.growth_order is GrowthOrder.PREFERRED and any(rank(demand.preferred, area) == len(demand.preferred) for area in sites):
            demands[position] = replace(demand, growth_order=GrowthOrder.LEFTOVER)
    return replace(problem, demands=tuple(demands))


def room(problem: Problem, placement: Placement) -> list[int]:
    """Return how much of every area is left beside the boot partitions (MiB; negative when they do not fit)."""
    left = [area.size for area in problem.areas]
    for boot_partition, areas in zip(problem.boot_partitions, placement.boot_partitions):
        sizes = dict(boot_partition.sizes)
        for area in areas:
            left[area] -= sizes[area]
    return left


def clusters(problem: Problem, placement: Placement) -> list[Cluster]:
    """Return what belongs together, in the order of the first demand of each."""
    owner = list(range(len(problem.areas) + len(problem.pools)))

    def root(node: int) -> int:
        while owner[node] != node:
            owner[node] = owner[owner[node]]
            node = owner[node]
        return node

    def join(nodes: Sequence[int]) -> None:
        for node in nodes[1:]:
            owner[root(node)] = root(nodes[0])

    first_pool = len(problem.areas)
    for pool, parts in enumerate(placement.pvs):
        join([first_pool + pool, *parts])
    nodes_of = []
    for demand, sites in zip(problem.demands, placement.areas_of_demand):
        nodes = [*sites] if demand.pool is None else [first_pool + demand.pool, *sites]
        join(nodes)
        nodes_of.append(nodes[0] if nodes else None)
    groups: dict[int, tuple[list[int], list[int], list[int]]] = {}
    for position, node in enumerate(nodes_of):
        if node is not None:
            groups.setdefault(root(node), ([], [], []))[1].append(position)
    for area in range(first_pool):
        if root(area) in groups:
            groups[root(area)][0].append(area)
    for pool in range(len(problem.pools)):
        if root(first_pool + pool) in groups:
            groups[root(first_pool + pool)][2].append(pool)
    return [Cluster(tuple(areas), tuple(demands), tuple(pools)) for areas, demands, pools in groups.values()]


def _size(problem: Problem, placement: Placement, lost: Sequence[int]) -> Sizes | None:
    left = room(problem, placement)
    if min(left, default=0) < 0:
        return None
    steps = [float(demand.low) for demand in problem.demands]
    parts: dict[tuple[int, int], float] = {}
    for cluster in clusters(problem, placement):
        targets = (
            _one_area(problem, placement, cluster, left)
            or _one_pool(problem, placement, cluster, left)
            or _several_areas(problem, placement, cluster, left, lost)
        )
        if targets is None:
            return None
        for position in cluster.demands:
            steps[position] = targets.units[position]
        parts.update(targets.pvs)
    return round_targets(problem, placement, Targets(dict(enumerate(steps)), parts), left, lost)


def _own(pool: int | None, own_pool: Mapping[int, int]) -> int | None:
    return None if pool is None else own_pool[pool]


def _several_areas(problem: Problem, placement: Placement, cluster: Cluster, left: Sequence[int], lost: Sequence[int]) -> Targets | None:
    """Return the targets of a cluster by linear programs; positions are those within it while it is solved."""
    own_area = {area: own for own, area in enumerate(cluster.areas)}
    own_demand = {at: own for own, at in enumerate(cluster.demands)}
    own_pool = {pool: own for own, pool in enumerate(cluster.pools)}
    pools = [
        replace(
            problem.pools[pool],
            areas=tuple(own_area[area] for area in placement.pvs[pool]),
            volumes=tuple(own_demand[at] for at in problem.pools[pool].volumes),
            arrays=tuple(own_demand[at] for at in problem.pools[pool].arrays),
            preferred=tuple(frozenset(own_area[area] for area in tier if area in own_area) for tier in problem.pools[pool].preferred),
        )
        for pool in cluster.pools
    ]
    own = Problem(
        areas=tuple(problem.areas[area] for area in cluster.areas),
        demands=tuple(replace(problem.demands[at], pool=_own(problem.demands[at].pool, own_pool)) for at in cluster.demands),
        pools=tuple(pools),
        boot_partitions=(),
    )
    own_placement = Placement(
        tuple(tuple(own_area[area] for area in placement.areas_of_demand[at]) for at in cluster.demands),
        tuple(pool.areas for pool in pools),
        (),
    )
    own_left, own_lost = [left[area] for area in cluster.areas], [lost[at] for at in cluster.demands]
    filled = fill_plain(own, own_placement, own_left, own_lost) if is_plain(own) else None
    filled = filled or fill_areas(own, own_placement, own_left, own_lost)
    if filled is None:
        return None
    return Targets(
        {cluster.demands[at]: units for at, units in filled.units.items()},
        {(cluster.pools[pool], cluster.areas[area]): extents for (pool, area), extents in filled.pvs.items()},
    )


def _one_area(problem: Problem, placement: Placement, cluster: Cluster, left: Sequence[int]) -> Targets | None:
    """Return the targets of one area without bounds on its pools, in closed form; None when it is not that simple."""
    if len(cluster.areas) != 1 or any(problem.demands[at].legs > 1 for at in cluster.demands):
        return None
    area = cluster.areas[0]
    pools = [problem.pools[pool] for pool in cluster.pools]
    if not all(_is_unbound(pool) for pool in pools) or any(
        pool.preferred and rank(pool.preferred, area) == len(pool.preferred) for pool in pools
    ):
        return None
    used = [pool for pool in cluster.pools if placement.pvs[pool]]
    steps = _filled(problem, cluster.demands, left[area] - sum(problem.pools[pool].metadata_size for pool in used))
    if steps is None:
        return None
    return Targets(steps, {(pool, area): sum(steps[at] for at in problem.pools[pool].volumes) for pool in used})


def _one_pool(problem: Problem, placement: Placement, cluster: Cluster, left: Sequence[int]) -> Targets | None:
    """Return the targets of a pool that has all its areas to itself, first areas used first; None when it is not that simple.

    This is the usual vg over many disks: whole units of all areas are one room.
    """
    if len(cluster.pools) != 1 or any(problem.demands[at].kind is not Kind.VOLUME for at in cluster.demands):
        return None
    position = cluster.pools[0]
    pool = problem.pools[position]
    if pool.preferred or not _is_unbound(pool):
        return None
    units = {area: max(0, left[area] - pool.metadata_size) // pool.extent_size for area in placement.pvs[position]}
    steps = _filled(problem, cluster.demands, sum(units.values()) * pool.extent_size)
    if steps is None:
        return None
    parts: dict[tuple[int, int], float] = {}
    needed = math.ceil(sum(steps.values()) - _NOISE)
    for area, there in units.items():
        parts[position, area] = min(there, needed)
        needed -= min(there, needed)
    return Targets(steps, parts)


def _is_unbound(pool: Pool) -> bool:
    return not (pool.lo or pool.arrays or pool.kept) and pool.hi is None


def _filled(problem: Problem, demands: Sequence[int], capacity: int) -> dict[int, float] | None:
    """Return the steps of demands that share `capacity` MiB; None when their minimums exceed it."""
    mib = fill(
        capacity,
        [problem.demands[at].low * problem.demands[at].unit for at in demands],
        [_top(problem, at) for at in demands],
        [problem.demands[at].weight for at in demands],
        [problem.demands[at].growth_order for at in demands],
    )
    return None if mib is None else {at: size / problem.demands[at].unit for at, size in zip(demands, mib)}


def _top(problem: Problem, position: int) -> float:
    high = problem.demands[position].high
    return math.inf if high is None else high * problem.demands[position].unit


def fill(
    capacity: float, low: Sequence[float], high: Sequence[float], weight: Sequence[float], turn: Sequence[GrowthOrder]
) -> list[float] | None:
    """Return sizes `clamp(level * weight, low, high)` that use up `capacity`, turn after turn; None when the minimums exceed it."""
    sizes = list(low)
    if sum(sizes) > capacity or any(least > most for least, most in zip(low, high)):
        return None
    for now in (GrowthOrder.PREFERRED, GrowthOrder.NORMAL, GrowthOrder.LEFTOVER):
        growing = [at for at, when in enumerate(turn) if when is now]
        spare = capacity - sum(sizes)
        if growing and spare > 0:
            shares = _clamped(spare + sum(low[at] for at in growing), [(low[at], high[at], weight[at]) for at in growing])
            for at, share in zip(growing, shares):
                sizes[at] = share
    return sizes


def _clamped(total: float, bounds: Sequence[tuple[float, float, float]]) -> list[float]:
    """Return `clamp(level * weight, low, high)` at the level where they add up to `total`, or all highs when that is less."""
    if sum(high for _low, high, _weight in bounds) <= total:
        return [high for _low, high, _weight in bounds]
    below, above = 0.0, math.inf
    for level in sorted({edge / weight for low, high, weight in bounds for edge in (low, high) if edge < math.inf}):
        if _sum_at(level, bounds) <= total:
            below = level
        else:
            above = level
            break
    # Compared as levels, the way they were made: `low / weight * weight` may miss `low` by a last bit.
    rising = [weight for low, high, weight in bounds if low / weight <= below < high / weight]
    level = below + (total - _sum_at(below, bounds)) / sum(rising) if rising else below
    level = min(level, above)
    return [min(max(level * weight, low), high) for low, high, weight in bounds]


def _sum_at(level: float, bounds: Sequence[tuple[float, float, float]]) -> float:
    return sum(min(max(level * weight, low), high) for low, high, weight in bounds)
