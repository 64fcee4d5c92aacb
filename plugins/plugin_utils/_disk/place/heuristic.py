# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Placements of demands of given sizes by simple rules: first, best and worst fit, and best fit where pools need least.

Most servers have a placement that one of them finds; then there is no program to solve. A demand that found no room is blamed, so that
it can come earlier the next time (squeaky wheel optimisation, Joslin and Clements 1999).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass

from ..._common.libraries import np, npt
from ..problem.model import BootPartition, Demand, GrowthOrder, Kind, Placement, Pool, Problem, by_disk, rank
from ..problem.program import follows, least_leg
from ..problem.relations import barred, holds, in_turn
from .flow import route

FIRST, BEST, WORST, LEAST_WANTED = range(4)
RULES = (BEST, FIRST, WORST, LEAST_WANTED)

Floats = npt.NDArray[np.float64]


class NoRoom(Exception):
    """These demands (positions) found no room."""

    def __init__(self, blamed: Sequence[int]) -> None:
        super().__init__(f"{len(blamed)} demands find no room")
        self.blamed = tuple(blamed)


@dataclass(frozen=True)
class _Solid:
    """What is placed in whole: its areas, their ranks, and how much less a disk has for it that must boot first."""

    demand: Demand
    areas: npt.NDArray[np.int64]
    ranks: npt.NDArray[np.int64]
    off: npt.NDArray[np.bool_]
    booting: tuple[int, ...]


@dataclass(frozen=True)
class _Kind:
    """Areas that are open to the same pools: MiB of metadata on each, and the least MiB that a pool takes at a time."""

    areas: npt.NDArray[np.int64]
    metadata: int
    extent: int


class Packer:
    """Packs one problem; what does not depend on sizes and rules is computed once."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._room = np.array([area.size for area in problem.areas], dtype=np.float64)
        self._disk = np.array([area.disk for area in problem.areas], dtype=np.int64)
        self._drive = np.array([problem.drive_of(area.disk) for area in problem.areas], dtype=np.int64)
        self._solid = {at: self._solid_of(at, demand) for at, demand in enumerate(problem.demands) if demand.kind is not Kind.VOLUME}
        self._own = [by_disk(problem.areas, [area for area, _size in boot.sizes]) for boot in problem.boot_partitions]
        self._one_each = len(set(self._disk.tolist())) == len(problem.areas)
        self._own_drives = problem.has_own_drives
        self._shared: dict[tuple[tuple[int, tuple[int, ...]], ...], tuple[list[int], list[_Kind]]] = {}

    def with_room(self, problem: Problem) -> Packer:
        """Return the packer of a problem that differs in the sizes of areas and pools only."""
        other = copy(self)
        other.problem = problem
        other._room = np.array([area.size for area in problem.areas], dtype=np.float64)
        return other

    def shared(self, pvs: tuple[tuple[int, tuple[int, ...]], ...]) -> tuple[list[int], list[_Kind]]:
        """Return for pools (positions) with their areas the kinds that are open to each, as bits, and the kinds."""
        if pvs not in self._shared:
            self._shared[pvs] = self._kinds(pvs)
        return self._shared[pvs]

    def _kinds(self, pvs: tuple[tuple[int, tuple[int, ...]], ...]) -> tuple[list[int], list[_Kind]]:
        masks: dict[int, int] = {}
        for row, (_at, areas) in enumerate(pvs):
            for area in areas:
                masks[area] = masks.get(area, 0) | 1 << row
        kinds = sorted(set(masks.values()))
        found = []
        for kind in kinds:
            sharing = [self.problem.pools[at] for row, (at, _areas) in enumerate(pvs) if kind >> row & 1]
            there = np.array([area for area, mask in masks.items() if mask == kind], dtype=np.int64)
            found.append(_Kind(there, sum(pool.metadata_size for pool in sharing), min(pool.extent_size for pool in sharing)))
        return [sum(1 << number for number, kind in enumerate(kinds) if kind >> row & 1) for row in range(len(pvs))], found

    def _solid_of(self, at: int, demand: Demand) -> _Solid:
        ranks = np.array(
            [rank(demand.preferred, area) for area in demand.areas] if demand.preferred else [0] * len(demand.areas), dtype=np.int64
        )
        stays_small = demand.growth_order is GrowthOrder.PREFERRED
        booting = tuple(number for number, boot in enumerate(self.problem.boot_partitions) if at in boot.demands)
        return _Solid(demand, np.array(demand.areas, dtype=np.int64), ranks, (ranks == len(demand.preferred)) & stays_small, booting)

    def order(self, units: Sequence[int]) -> list[int]:
        """Return the whole demands in the usual order: least choice first, then the largest."""
        return sorted(self._solid, key=lambda at: (len(self._solid[at].areas) / self._solid[at].demand.legs, -units[at], at))

    def pack(self, units: Sequence[int], order: Sequence[int], rule: int) -> Placement:
        """Return a placement of these sizes. Raises NoRoom."""
        return _Packing(self, units, rule).run(order)

    def wanted(self, units: Sequence[int]) -> Floats:
        """Return which share of every area, in steps of a twentieth, pools will need if they take their areas evenly."""
        wanted = np.zeros(len(self._room))
        for pool in self.problem.pools:
            areas = np.array(pool.areas, dtype=np.int64)
            need = max(sum(units[volume] for volume in pool.volumes) - pool.kept, 0) * pool.extent_size
            if need and len(areas):
                wanted[areas] += need / max(1.0, float(self._room[areas].sum()))
        steps: Floats = np.round(wanted * 20)
        return steps

    def with_arrays(self, units: Sequence[int]) -> list[int]:
        """Return the sizes with arrays that are PVs large enough for what lies on them, in equal parts."""
        sizes = list(units)
        for pool in self.problem.pools:
            need = max(sum(units[volume] for volume in pool.volumes), -(-pool.lo // pool.extent_size)) - pool.kept
            for array in pool.arrays:
                share = -(-max(need, 0) // len(pool.arrays))
                sizes[array] = max(sizes[array], least_leg(self.problem.demands[array], share * pool.extent_size))
        return sizes


class _Packing:
    """One attempt to place everything."""

    def __init__(self, packer: Packer, units: Sequence[int], rule: int) -> None:
        self._packer, self._problem, self._units, self._rule = packer, packer.problem, units, rule
        self._left = packer._room.copy()
        self._wanted = packer.wanted(units)
        self._areas: dict[int, tuple[int, ...]] = {}
        self._pvs: dict[int, tuple[int, ...]] = {}
        self._boots: list[dict[int, int]] = [{} for _boot in self._problem.boot_partitions]
        self._missing = [self._sizes_of(boot) for boot in self._problem.boot_partitions]

    def _sizes_of(self, boot: BootPartition) -> Floats:
        sizes = np.zeros(len(self._left))
        for area, size in boot.sizes:
            sizes[area] = size
        return sizes

    def run(self, order: Sequence[int]) -> Placement:
        """Place everything, whole demands in this order."""
        problem = self._problem
        for number, boot in enumerate(problem.boot_partitions):
            for disk in boot.disks:
                self._boot(number, disk, blamed=())
        for at in in_turn(problem, order) if problem.relations else order:
            self._place(at, self._packer._solid[at])
        limited = [at for at, pool in enumerate(problem.pools) if self._is_limited(at, pool)]
        for at in sorted(limited, key=lambda at: (len(problem.pools[at].areas), at)):
            self._choose_pvs(at, problem.pools[at])
        self._pour([at for at in range(len(problem.pools)) if at not in limited])
        found = Placement(
            tuple(self._areas.get(at, ()) for at in range(len(problem.demands))),
            tuple(self._pvs[at] for at in range(len(problem.pools))),
            tuple(tuple(sorted(there.values())) for there in self._boots),
        )
        if problem.relations and not holds(problem, found):
            raise NoRoom(tuple(at for relation in problem.relations for at in sorted(relation.one.demands)))
        return found

    def _barred(self, *, demand: int | None = None, pool: int | None = None) -> frozenset[int]:
        """Return the disks where something may not lie for what lies there already, or is missing there."""
        return barred(self._problem, demand, pool, self._areas, self._pvs) if self._problem.relations else frozenset()

    def _is_limited(self, at: int, pool: Pool) -> bool:
        for relation in self._problem.relations:
            if at in relation.one.pools and relation.other.pools and relation.apart:
                return True
        carries = any(at in boot.pools for boot in self._problem.boot_partitions)
        return bool(pool.areas) and (carries or (pool.max_pvs is not None and pool.max_pvs < len(pool.areas)))

    def _place(self, at: int, solid: _Solid) -> None:
        areas, legs = solid.areas, solid.demand.legs
        size = float(self._units[at])
        needed = np.where(solid.off, min(size, float(solid.demand.low)), size)
        left = self._left[areas]
        for number in solid.booting:
            needed = needed + self._missing[number][areas]
        fits = np.flatnonzero(needed <= left)
        if shut := self._barred(demand=at):
            fits = fits[~np.isin(self._packer._disk[areas[fits]], list(shut))]
        if len(fits) < legs:
            raise NoRoom((at,))
        by_rule = {BEST: left, FIRST: areas, WORST: -left, LEAST_WANTED: self._wanted[areas]}[self._rule]
        # Of equals the fullest, then the first.
        chosen = fits[np.lexsort((fits, left[fits], by_rule[fits], solid.ranks[fits]))]
        if legs > 1 and not self._packer._own_drives:
            _drives, firsts = np.unique(self._packer._drive[areas[chosen]], return_index=True)
            chosen = chosen[np.sort(firsts)]
            if len(chosen) < legs:
                raise NoRoom((at,))
        taken = chosen[:legs]
        self._areas[at] = tuple(sorted(areas[taken].tolist()))
        self._left[areas[taken]] -= np.where(solid.off[taken], min(size, float(solid.demand.low)), size)
        for number in solid.booting:
            for area in self._areas[at]:
                self._boot(number, int(self._packer._disk[area]), (at,))

    def _boot(self, number: int, disk: int, blamed: tuple[int, ...]) -> None:
        """Put a boot partition on a disk that has none yet."""
        if disk in self._boots[number]:
            return
        for area in self._packer._own[number].get(disk, []):
            if self._missing[number][area] <= self._left[area]:
                self._left[area] -= self._missing[number][area]
                self._boots[number][disk] = area
                self._missing[number][self._packer._own[number][disk]] = 0.0
                return
        raise NoRoom(blamed)

    def _need(self, pool: Pool) -> int:
        """Return how many extents a pool needs beyond those it has."""
        return max(sum(self._units[volume] for volume in pool.volumes) - pool.kept, -(-pool.lo // pool.extent_size))

    def _choose_pvs(self, at: int, pool: Pool) -> None:
        """Open PVs where most is left until the need of a pool is met that may not open them everywhere."""
        booting = [number for number, boot in enumerate(self._problem.boot_partitions) if at in boot.pools]
        least = self._need(pool)
        chosen: list[int] = []
        disks: set[int] = set(self._barred(pool=at))
        missing = sum((self._missing[number] for number in booting), np.zeros(len(self._left)))
        for area in sorted(pool.areas, key=lambda area: (rank(pool.preferred, area), missing[area] - self._left[area], area)):
            disk = int(self._packer._disk[area])
            taken = sum(float(self._missing[number][area]) for number in booting)
            room = int(self._left[area] - pool.metadata_size - taken) // pool.extent_size
            if least <= 0 or room <= 0 or disk in disks or (pool.max_pvs is not None and len(chosen) >= pool.max_pvs):
                continue
            extents = min(least, room)
            least -= extents
            self._left[area] -= extents * pool.extent_size + pool.metadata_size
            chosen.append(area)
            disks.add(disk)
            for number in booting:
                self._boot(number, disk, pool.volumes)
        self._pvs[at] = tuple(sorted(chosen))
        if least > 0:
            raise NoRoom(pool.volumes)

    def _pour(self, pools: Sequence[int]) -> None:
        """Share what is left among the pools that may use all their areas; a flow finds whether it is enough."""
        rows: list[int] = []
        needs: list[int] = []
        for at in pools:
            pool = self._problem.pools[at]
            shut = self._barred(pool=at)
            self._pvs[at] = tuple(area for area in self._one_per_disk(pool) if self._problem.areas[area].disk not in shut)
            need = self._need(pool)
            if not pool.arrays and need > 0:
                rows.append(at)
                needs.append(need * pool.extent_size)
        open_to, kinds = self._packer.shared(tuple((at, self._pvs[at]) for at in rows))
        room = [int((np.maximum(self._left[own.areas] - own.metadata, 0) // own.extent * own.extent).sum()) for own in kinds]
        transport, short = route(needs, open_to, room)
        if short:
            starved, _kinds = transport.reach(short)
            raise NoRoom([volume for row, at in enumerate(rows) if starved >> row & 1 for volume in self._problem.pools[at].volumes])

    def _one_per_disk(self, pool: Pool) -> tuple[int, ...]:
        if pool.arrays or self._packer._one_each:
            return () if pool.arrays else pool.areas
        on_disks: Mapping[int, list[int]] = by_disk(self._problem.areas, pool.areas)
        return tuple(sorted(max(areas, key=lambda area: (self._left[area], -area)) for areas in on_disks.values()))


def volumes_or_self(problem: Problem, at: int) -> tuple[int, ...]:
    """Return the demands to blame when one finds no room: with an array that is a PV also those that lie on it."""
    demand = problem.demands[at]
    return (at, *problem.pools[demand.pool].volumes) if follows(demand) and demand.pool is not None else (at,)
