# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make everything fit by rules: what finds no room becomes smaller, or the disk that is to hold it larger.

What comes out is enough, and mostly little more than what a bound says is the least. Whole pieces come first, then pools share
what is left, as in `place.heuristic`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ..place.flow import route
from ..problem.model import Demand, Kind, Pool, Problem


class TooTight(Exception):
    """Nothing of what this may change makes room."""


@dataclass
class Squeezed:
    """What is left to do without: `less` units by demand (position), MiB `more` by disk; `areas` of whole demands when that is done."""

    areas: dict[int, tuple[int, ...]] = field(default_factory=dict)
    less: dict[int, int] = field(default_factory=dict)
    more: dict[int, int] = field(default_factory=dict)


def can_squeeze(problem: Problem) -> bool:
    """Return whether the rules know all that there is in a problem."""
    plain = all(not pool.arrays and not pool.kept and not pool.lo and pool.hi is None and pool.max_pvs is None for pool in problem.pools)
    carried = any(boot.pools for boot in problem.boot_partitions)
    return problem.has_own_drives and plain and not carried and not problem.relations


def squeeze(problem: Problem, units: Sequence[int], order: Sequence[int], *, grow: bool, dear: Collection[int] = ()) -> Squeezed:
    """Place units of all demands, whole ones in this order, and return what had to change. Raises TooTight.

    Of volumes the dear ones (positions) become smaller last.
    """
    return _Squeeze(problem, units, grow, dear).run(order)


class _Squeeze:
    def __init__(self, problem: Problem, units: Sequence[int], grow: bool, dear: Collection[int]) -> None:
        self._problem, self._units, self._grow, self._dear = problem, units, grow, dear
        self._left = [area.size for area in problem.areas]
        self._found = Squeezed()
        self._missing = [dict(boot.sizes) for boot in problem.boot_partitions]

    def run(self, order: Sequence[int]) -> Squeezed:
        for number, boot in enumerate(self._problem.boot_partitions):
            for area in [area for area, _size in boot.sizes if self._problem.areas[area].disk in boot.disks]:
                self._boot(number, area)
        for at in order:
            self._place(at, self._problem.demands[at])
        self._pour()
        return self._found

    def _place(self, at: int, demand: Demand) -> None:
        carried = [self._missing[number] for number, boot in enumerate(self._problem.boot_partitions) if at in boot.demands]
        left = {area: self._left[area] - sum(missing.get(area, 0) for missing in carried) for area in demand.areas}
        if len(left) < demand.legs:
            raise TooTight
        size = self._units[at]
        roomiest = sorted(left, key=lambda area: (-left[area], area))[: demand.legs]
        if not self._grow:
            size = max(0, min(size, left[roomiest[-1]]))
        # Where it fits, the tightest; else the roomiest, which are to become larger.
        fitting = sorted((area for area in left if left[area] >= size), key=lambda area: (left[area], area))
        chosen = fitting[: demand.legs] if len(fitting) >= demand.legs else roomiest
        if size < self._units[at]:
            self._found.less[at] = self._units[at] - size
        self._found.areas[at] = tuple(sorted(chosen))
        for area in chosen:
            for number, boot in enumerate(self._problem.boot_partitions):
                if at in boot.demands:
                    self._boot(number, area)
            self._take(area, size)

    def _boot(self, number: int, area: int) -> None:
        self._take(area, self._missing[number].pop(area, 0))

    def _take(self, area: int, mib: int) -> None:
        if mib > self._left[area]:
            if not self._grow:
                raise TooTight
            self._enlarge(area, mib - self._left[area])
        self._left[area] -= mib

    def _enlarge(self, area: int, mib: int) -> None:
        disk = self._problem.areas[area].disk
        self._found.more[disk] = self._found.more.get(disk, 0) + mib
        self._left[area] += mib

    def _pour(self) -> None:
        """Share what is left among the pools; what is short is made up for by them, or by a disk that they may use."""
        pools = [pool for pool in self._problem.pools if self._need(pool) > 0]
        owners: dict[int, int] = {}
        for row, pool in enumerate(pools):
            for area in pool.areas:
                owners[area] = owners.get(area, 0) | 1 << row
        room: dict[int, int] = {}
        for area, rows in owners.items():
            sharing = [pool for row, pool in enumerate(pools) if rows >> row & 1]
            left = self._left[area] - sum(pool.metadata_size for pool in sharing)
            extent = min(pool.extent_size for pool in sharing)
            room[rows] = room.get(rows, 0) + max(0, left) // extent * extent
        kinds = sorted(room)
        masks = [sum(1 << number for number, rows in enumerate(kinds) if rows >> row & 1) for row in range(len(pools))]
        transport, short = route([self._need(pool) for pool in pools], masks, [room[kind] for kind in kinds])
        for row in short:
            self._make_up(pools[row], self._need(pools[row]) - sum(transport.flow[row]))

    def _need(self, pool: Pool) -> int:
        return sum(self._units[volume] for volume in pool.volumes) * pool.extent_size

    def _make_up(self, pool: Pool, mib: int) -> None:
        if self._grow:
            if not pool.areas:
                raise TooTight
            # What grows already grows on, so that few disks have to be replaced.
            disk_of = self._problem.areas
            area = max(pool.areas, key=lambda area: (self._found.more.get(disk_of[area].disk, 0), self._left[area], -area))
            sharing = [other for other in self._problem.pools if area in other.areas and self._need(other) > 0]
            free = self._left[area] - sum(other.metadata_size for other in sharing)
            extent = min(other.extent_size for other in sharing)
            self._enlarge(area, -(-mib // extent) * extent - (free % extent if free > 0 else free))
            return
        extents = -(-mib // pool.extent_size)
        members = [at for at in pool.volumes if self._problem.demands[at].space is not None]
        for at in sorted(members, key=lambda at: (at in self._dear, -self._units[at], at)):
            less = min(extents, self._units[at])
            if less:
                self._found.less[at] = self._found.less.get(at, 0) + less
                extents -= less
        if extents:
            raise TooTight


def in_order(problem: Problem, units: Sequence[int], last: Collection[int] = (), first: Collection[int] = ()) -> list[int]:
    """Return whole demands: least choice first, then the largest; some of them (positions) before or after all others."""
    solid = [at for at, demand in enumerate(problem.demands) if demand.kind is not Kind.VOLUME]

    def place(at: int) -> tuple[bool, bool, float, int, int]:
        demand = problem.demands[at]
        return at in last, at not in first, len(demand.areas) / max(1, demand.legs), -units[at], at

    return sorted(solid, key=place)
