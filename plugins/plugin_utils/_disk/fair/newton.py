# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Weighted max-min fair sizes over several areas, by Newton's method on cuts instead of linear programs.

The level of all that grow is lowered from above until no constraint is broken: what lies whole on one area, then what a set of
pools needs of the areas that it may use (a maximum flow, whose minimum cut is the broken constraint). What a constraint asks
for is convex in the level, so each step lands on or above the answer (discrete Newton, Radzik 1998). What a full constraint
holds keeps its size, the rest goes on. A hundred times as fast as `filling`, for all that it can say (`is_plain`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..._common.libraries import np, npt
from ..place.flow import Transport, bits, route
from ..place.lay_out import Item, Shelf, lay
from ..problem.model import GrowthOrder, Kind, Placement, Problem, rank
from .filling import Targets

Floats = npt.NDArray[np.float64]

_EXACT = 1e-9
_SLACK = 1e-6
_STEPS = 200


def is_plain(problem: Problem) -> bool:
    """Return whether every vg lies on areas that it likes alike, or on one array without a maximum, and all count in the same extents."""
    one_tier = all(len(pool.preferred) <= 1 for pool in problem.pools)
    same_extents = len({pool.extent_size for pool in problem.pools}) <= 1
    carriers = [problem.demands[array] for pool in problem.pools for array in pool.arrays]
    unbounded = all(demand.high is None for demand in carriers)
    return one_tier and same_extents and unbounded and all(len(pool.arrays) <= 1 for pool in problem.pools)


def fill_plain(problem: Problem, placement: Placement, left: Sequence[int], lost: Sequence[int]) -> Targets | None:
    """Return the targets of a placement; None when its minimums do not fit, or fit only off what is preferred.

    `left` is MiB by area, `lost` MiB by demand that an array cannot give to its pool.
    """
    filling = _Filling(problem, placement, left, lost)
    if not filling.fits():
        return None
    for turn in (GrowthOrder.PREFERRED, GrowthOrder.NORMAL):
        filling.grow(turn)
    if filling.gains_by_closing():
        filling.close_unused_pvs()
        # Where no PV came to lie its metadata leave room.
        for turn in (GrowthOrder.PREFERRED, GrowthOrder.NORMAL):
            filling.grow(turn)
    filling.grow(GrowthOrder.LEFTOVER)
    return filling.targets()


class _Filling:
    """Sizes under way, in MiB of one piece of each demand."""

    def __init__(self, problem: Problem, placement: Placement, left: Sequence[int], lost: Sequence[int]) -> None:
        self._problem, self._placement, self._lost = problem, placement, lost
        demands = problem.demands
        self._room = np.array(left, dtype=np.float64)
        # A piece of an array is a leg, so its size is in units; what the weight speaks of is data.
        self._scale = np.array([1.0 if demand.kind is Kind.LEGS else float(demand.unit) for demand in demands])
        self._low = np.array([float(demand.low) for demand in demands]) * self._scale
        self._high = np.array([math.inf if demand.high is None else float(demand.high) for demand in demands]) * self._scale
        self._speed = np.array([demand.weight / demand.unit for demand in demands]) * self._scale
        self._size = self._low.copy()
        self._solid = [at for at, demand in enumerate(demands) if demand.kind is not Kind.VOLUME and demand.pool is None]
        self._on = np.zeros((len(left), len(demands)))
        for at in self._solid:
            self._on[list(placement.areas_of_demand[at]), at] = 1.0
        pools = problem.pools
        self._shares = np.zeros((len(pools), len(demands)))
        for position, pool in enumerate(pools):
            self._shares[position, list(pool.volumes)] = 1.0
        self._kept = np.array([float(pool.kept * pool.extent_size) for pool in pools])
        self._least = np.array([float(-(-pool.lo // pool.extent_size) * pool.extent_size) for pool in pools])
        self._divided = [position for position, pool in enumerate(problem.pools) if not pool.arrays]
        self._rows: list[list[int]] = []
        """Divided pools (positions) that may use the same areas: in a flow they are one."""
        self._on_array = [position for position, pool in enumerate(problem.pools) if pool.arrays]
        self._set_pvs(placement.pvs, liked_only=True)

    def _set_pvs(self, pvs: Sequence[Sequence[int]], *, liked_only: bool) -> None:
        """Say where pools may have PVs; metadata counts wherever one is possible."""
        self._pvs = [tuple(areas) for areas in pvs]
        # The most MiB of every pool beyond those that are there.
        self._caps = np.array(
            [
                0.0
                if not pool.arrays and not own
                else math.inf
                if pool.hi is None
                else float(pool.hi // pool.extent_size * pool.extent_size)
                for pool, own in zip(self._problem.pools, self._pvs)
            ]
        )
        self._capacity = self._room.copy()
        rows: dict[tuple[int, ...], list[int]] = {}
        for position in self._divided:
            pool = self._problem.pools[position]
            for area in self._pvs[position] if pool.metadata_size else ():
                if self._room[area] > pool.metadata_size + pool.extent_size:
                    self._capacity[area] -= pool.metadata_size
            some = liked_only and pool.preferred
            own = tuple(area for area in self._pvs[position] if rank(pool.preferred, area) == 0) if some else self._pvs[position]
            rows.setdefault(own, []).append(position)
        self._rows = list(rows.values())
        masks: dict[int, int] = {}
        for row, areas in enumerate(rows):
            for area in areas:
                masks[area] = masks.get(area, 0) | 1 << row
        self._masks = masks
        areas_of_kind: dict[int, list[int]] = {}
        for area, mask in masks.items():
            areas_of_kind.setdefault(mask, []).append(area)
        self._kinds = sorted(areas_of_kind)
        self._areas_of_kind = [np.array(areas_of_kind[kind], dtype=np.int64) for kind in self._kinds]
        self._open_to = [sum(1 << number for number, kind in enumerate(self._kinds) if kind >> row & 1) for row in range(len(self._rows))]

    def fits(self) -> bool:
        """Return whether the minimums fit."""
        if (self._low > self._high).any():
            return False
        return self._violated(self._size, self._still()) is None

    def _still(self) -> Floats:
        return np.zeros(len(self._size))

    def _taken(self, sizes: Floats) -> Floats:
        """Return (P,) the MiB that volumes take beyond those that are there."""
        taken: Floats = self._shares @ sizes - self._kept
        return taken

    def _needs(self, sizes: Floats) -> Floats:
        """Return (P,) the MiB that pools need beyond those they have."""
        needs: Floats = np.maximum(self._taken(sizes), self._least)
        return needs

    def _slopes(self, sizes: Floats, slopes: Floats) -> Floats:
        """Return (P,) how fast the needs grow with the level."""
        grown: Floats = np.where(self._taken(sizes) >= self._least, self._shares @ slopes, 0.0)
        return grown

    def _loads(self, sizes: Floats, slopes: Floats) -> tuple[Floats, Floats]:
        """Return what lies whole on every area, and how fast that grows with the level."""
        load, slope = self._on @ sizes, self._on @ slopes
        needs, growing = (self._needs(sizes), self._slopes(sizes, slopes)) if self._on_array else (load, slope)
        for position in self._on_array:
            pool = self._problem.pools[position]
            array = pool.arrays[0]
            demand = self._problem.demands[array]
            leg = (needs[position] + self._lost[array]) / demand.unit
            areas = list(self._placement.areas_of_demand[array])
            grows = leg > sizes[array]
            load[areas] += leg if grows else sizes[array]
            slope[areas] += growing[position] / demand.unit if grows else slopes[array]
        return load, slope

    def _violated(self, sizes: Floats, slopes: Floats) -> tuple[float, float] | None:
        """Return by how much a constraint is broken and how fast that grows with the level; None when none is."""
        load, slope = self._loads(sizes, slopes)
        over = load - self._capacity
        broken = np.flatnonzero(over > _SLACK)
        if len(broken):
            steps = over[broken] / np.maximum(slope[broken], 1e-300)
            worst = broken[int(np.argmax(steps))]
            return float(over[worst]), float(slope[worst])
        excess = self._taken(sizes) - self._caps
        beyond = np.flatnonzero(excess > _SLACK)
        if len(beyond):
            return float(excess[beyond[0]]), float(self._slopes(sizes, slopes)[beyond[0]])
        return self._broken_cut(sizes, slopes, load, slope)

    def _flow(self, sizes: Floats, load: Floats) -> tuple[Transport, list[int]]:
        """Return the flow from pools to areas, in millionths of a MiB so that it is exact."""
        spare = np.maximum(self._capacity - load, 0.0)
        room = [int(spare[areas].sum() * 1e6) + 1 for areas in self._areas_of_kind]
        exact = [max(0, int(need * 1e6)) for need in self._needs(sizes).tolist()]
        needs = [sum(exact[position] for position in row) for row in self._rows]
        return route(needs, self._open_to, room)

    def _broken_cut(self, sizes: Floats, slopes: Floats, load: Floats, slope: Floats) -> tuple[float, float] | None:
        if not self._divided:
            return None
        transport, short = self._flow(sizes, load)
        if not short:
            return None
        rows, kinds = transport.reach(short)
        pools = [position for row in bits(rows) for position in self._rows[row]]
        areas = [self._areas_of_kind[kind] for kind in bits(kinds)]
        excess = float(self._needs(sizes)[pools].sum()) - sum(float((self._capacity - load)[own].sum()) for own in areas)
        if excess <= _SLACK * (1 + len(areas)):
            return None
        return excess, float(self._slopes(sizes, slopes)[pools].sum()) + sum(float(slope[own].sum()) for own in areas)

    def grow(self, turn: GrowthOrder) -> None:
        """Raise everything whose turn it is until everything is blocked."""
        demands = self._problem.demands
        active = [
            at
            for at, demand in enumerate(demands)
            if demand.growth_order is turn and self._size[at] < self._high[at] and (demand.pool is None or demand.kind is Kind.VOLUME)
        ]
        while active:
            chosen = np.zeros(len(demands), dtype=bool)
            chosen[active] = True
            level, sizes = self._highest(chosen)
            blocked = np.asarray(chosen & ((sizes >= self._high * (1 - _EXACT)) | self._stuck(sizes)))
            if not blocked.any():
                blocked = chosen
            self._size[blocked] = sizes[blocked]
            active = [at for at in active if not blocked[at]]

    def _highest(self, active: npt.NDArray[np.bool_]) -> tuple[float, Floats]:
        """Return the highest level for all that are active that breaks nothing, or at which one of them is full; and the sizes."""
        speed = np.where(active, self._speed, 0.0)
        there = sum(pool.kept * pool.extent_size for pool in self._problem.pools)
        everything = float(self._room.sum() + self._low.sum()) + there
        # No higher than what the one with the largest weight can have: from further above, its size would be lost in what is rounded.
        level = min(float((self._high[active] / self._speed[active]).min()), (everything + 1.0) / float(self._speed[active].max()))
        sizes = self._size
        for _step in range(_STEPS):
            sizes = np.where(active, np.clip(level * self._speed, self._size, self._high), self._size)
            slopes = np.where(active & (sizes > self._size), speed, 0.0)
            violated = self._violated(sizes, slopes)
            if violated is None:
                break
            excess, slope = violated
            if slope <= 0:
                sizes = self._size.copy()
                break
            level -= excess / slope
        return level, sizes

    def _stuck(self, sizes: Floats) -> npt.NDArray[np.bool_]:
        """Return the demands that cannot grow at these sizes because an area, a pool's maximum or a set of pools and areas is full."""
        load, _slope = self._loads(sizes, self._still())
        full = self._capacity - load <= _SLACK * 10
        stuck = np.asarray((self._on[full] > 0).any(axis=0)) if full.any() else np.zeros(len(sizes), dtype=bool)
        needs = self._needs(sizes)
        for position in self._on_array:
            pool = self._problem.pools[position]
            legs = list(self._placement.areas_of_demand[pool.arrays[0]])
            grows = (needs[position] + self._lost[pool.arrays[0]]) / self._problem.demands[pool.arrays[0]].unit
            if full[legs].any() and grows >= sizes[pool.arrays[0]] - _SLACK * 10:
                stuck[list(pool.volumes)] = True
        stuck |= (self._shares[self._taken(sizes) >= self._caps - _SLACK * 10] > 0).any(axis=0)
        return stuck | self._stuck_in_flow(sizes, load)

    def _stuck_in_flow(self, sizes: Floats, load: Floats) -> npt.NDArray[np.bool_]:
        stuck = np.zeros(len(sizes), dtype=bool)
        if not self._divided:
            return stuck
        transport, _short = self._flow(sizes, load)
        # Rounding leaves crumbs on both sides of a full set; a demand that can grow places more than these.
        crumbs = int(_SLACK * 20 * 1e6) * (1 + len(self._kinds)) + 1
        for row, positions in enumerate(self._rows):
            if transport.push(row, crumbs) < crumbs:
                _rows, kinds = transport.reach([row])
                stuck[[at for position in positions for at in self._problem.pools[position].volumes]] = True
                for kind in bits(kinds):
                    # What lies whole on an area that a full set of pools needs cannot grow, either.
                    stuck |= (self._on[self._areas_of_kind[kind]] > 0).any(axis=0)
                    self._block_arrays(stuck, self._areas_of_kind[kind])
        return stuck

    def _block_arrays(self, stuck: npt.NDArray[np.bool_], areas: npt.NDArray[np.int64]) -> None:
        for position in self._on_array:
            pool = self._problem.pools[position]
            if not set(areas.tolist()).isdisjoint(self._placement.areas_of_demand[pool.arrays[0]]):
                stuck[list(pool.volumes)] = True

    def gains_by_closing(self) -> bool:
        """Return whether giving up unused PVs frees metadata, or lets pools grow off what they prefer."""
        return any(self._problem.pools[position].metadata_size or self._problem.pools[position].preferred for position in self._divided)

    def close_unused_pvs(self) -> None:
        """Lay out what has been found on few PVs and give up the others."""
        used = self._laid()
        self._set_pvs(
            [tuple(area for area in areas if (pool, area) in used) for pool, areas in enumerate(self._pvs)],
            liked_only=False,
        )

    def _laid(self) -> dict[tuple[int, int], int]:
        """Return the extents of every PV: whole ones, on few areas, first pools on first areas."""
        load, _slope = self._loads(self._size, self._still())
        order = sorted(self._masks)
        # Everything counts in the same extents (`is_plain`), and so does the flow.
        extent = self._problem.pools[self._divided[0]].extent_size if self._divided else 1
        spare = np.maximum(0.0, self._capacity - load + _SLACK * 100)[order].astype(np.int64)
        numbers = {kind: number for number, kind in enumerate(self._kinds)}
        shelf = Shelf(tuple(numbers[self._masks[area]] for area in order), tuple((spare // extent * extent).tolist()))
        open_to = {position: mask for row, mask in zip(self._rows, self._open_to) for position in row}
        needs = self._needs(self._size).tolist()
        exact = [max(0.0, needs[position]) / extent for position in self._divided]
        whole = [math.floor(extents + _SLACK) for extents in exact]
        transport, _short = route([extents * extent for extents in whole], [open_to[at] for at in self._divided], shelf.pool_room())
        # What rounding has cost most is made up for first, as far as there are extents.
        cost = [round(extents - floor, 3) for extents, floor in zip(exact, whole)]
        for row in sorted((row for row, missing in enumerate(cost) if missing > 0), key=lambda row: (-cost[row], row)):
            transport.push(row, extent)
        items = [Item(row, open_to[at], sum(flow)) for row, (at, flow) in enumerate(zip(self._divided, transport.flow))]
        return {(self._divided[row], order[disk]): amount // extent for (row, disk), amount in lay(items, shelf).items()}

    def targets(self) -> Targets:
        """Return the sizes as they are now, with as few PVs as hold them."""
        units = self._size / self._scale
        pvs: Mapping[tuple[int, int], int] = self._laid()
        needs = self._needs(self._size)
        for position in self._on_array:
            array = self._problem.pools[position].arrays[0]
            leg = (needs[position] + self._lost[array]) / self._problem.demands[array].unit
            units[array] = max(units[array], math.ceil(leg - _SLACK))
        return Targets(dict(enumerate(units.tolist())), {pv: float(extents) for pv, extents in pvs.items()})
