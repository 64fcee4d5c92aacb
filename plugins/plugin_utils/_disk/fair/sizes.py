# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Exact sizes once it is decided what lies where.

The placement falls apart into clusters of areas that share nothing. Each is filled by itself (`newton`, or `filling` for what that
cannot express), then rounded to whole steps (`rounding`).
"""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping, Sequence
from dataclasses import dataclass, replace

from ....module_utils._storage import overhead
from ..problem.model import GrowthOrder, Kind, Placement, Problem, Sizes, rank
from .filling import Targets, fill_areas
from .newton import fill_plain, is_plain
from .rounding import round_targets

_REPEATS = 6

Filled = MutableMapping[Hashable, Targets | None]
"""Targets of clusters of one problem by all that they depend on."""


@dataclass(frozen=True)
class Cluster:
    """Areas, demands and pools (positions) that share room with each other and with nothing else."""

    areas: tuple[int, ...]
    demands: tuple[int, ...]
    pools: tuple[int, ...]


def size_fairly(problem: Problem, placement: Placement, filled: Filled | None = None) -> Sizes | None:
    """Return whole sizes for a placement, or None when the minimums do not fit it.

    `filled` is kept by callers that try many placements of one problem, most of which have most clusters in common.
    """
    filled = {} if filled is None else filled
    problem = growth_by_place(problem, placement)
    lost = array_losses(problem, [demand.low for demand in problem.demands])
    for _repeat in range(_REPEATS):
        sizes = _size(problem, placement, lost, filled)
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
    """Return how much of every area the boot partitions leave (MiB; negative when they do not fit)."""
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
        first = root(nodes[0]) if nodes else 0
        for node in nodes[1:]:
            if owner[node] != first:
                owner[root(node)] = first

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


def _size(problem: Problem, placement: Placement, lost: Sequence[int], filled: Filled) -> Sizes | None:
    left = room(problem, placement)
    if min(left, default=0) < 0:
        return None
    steps = [float(demand.low) for demand in problem.demands]
    parts: dict[tuple[int, int], float] = {}
    for cluster in clusters(problem, placement):
        sites = tuple(placement.areas_of_demand[at] for at in cluster.demands)
        pvs = tuple(placement.pvs[pool] for pool in cluster.pools)
        free = tuple((area, left[area]) for area in cluster.areas)
        key = cluster.demands, sites, pvs, free, tuple(lost[at] for at in cluster.demands)
        if key not in filled:
            filled[key] = _fill(problem, placement, cluster, left, lost)
        targets = filled[key]
        if targets is None:
            return None
        for position in cluster.demands:
            steps[position] = targets.units[position]
        parts.update(targets.pvs)
    return round_targets(problem, placement, Targets(dict(enumerate(steps)), parts), left, lost)


def _fill(problem: Problem, placement: Placement, cluster: Cluster, left: Sequence[int], lost: Sequence[int]) -> Targets | None:
    """Return the targets of a cluster; positions are those within it while it is filled."""
    own_area = {area: own for own, area in enumerate(cluster.areas)}
    own_demand = {at: own for own, at in enumerate(cluster.demands)}
    own_pool: dict[int | None, int] = {pool: own for own, pool in enumerate(cluster.pools)}
    own = Problem(
        areas=tuple(problem.areas[area] for area in cluster.areas),
        demands=tuple(
            demand if demand.pool is None else replace(demand, pool=own_pool[demand.pool])
            for demand in (problem.demands[at] for at in cluster.demands)
        ),
        pools=tuple(
            replace(
                pool,
                areas=tuple(own_area[area] for area in pvs),
                volumes=tuple(own_demand[at] for at in pool.volumes),
                arrays=tuple(own_demand[at] for at in pool.arrays),
                preferred=tuple(frozenset(own_area[area] for area in tier if area in own_area) for tier in pool.preferred),
            )
            for pool, pvs in ((problem.pools[pool], placement.pvs[pool]) for pool in cluster.pools)
        ),
        boot_partitions=(),
    )
    own_placement = Placement(
        tuple(tuple(own_area[area] for area in placement.areas_of_demand[at]) for at in cluster.demands),
        tuple(pool.areas for pool in own.pools),
        (),
    )
    own_left, own_lost = [left[area] for area in cluster.areas], [lost[at] for at in cluster.demands]
    targets = fill_plain(own, own_placement, own_left, own_lost) if is_plain(own) else None
    if targets is None and (not is_plain(own) or any(pool.preferred for pool in own.pools)):
        targets = fill_areas(own, own_placement, own_left, own_lost)
    if targets is None:
        return None
    return Targets(
        {cluster.demands[at]: units for at, units in targets.units.items()},
        {(cluster.pools[pool], cluster.areas[area]): extents for (pool, area), extents in targets.pvs.items()},
    )
