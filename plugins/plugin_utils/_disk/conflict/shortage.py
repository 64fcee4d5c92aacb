# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is short when minimums merely add up to too much: a minimum cut between spaces and disks, in milliseconds at any size.

Everything is taken as if it could be cut in pieces, arrays by the sum of their legs. Whatever contradicts itself then does so
in truth; and by the names of the constraints it is exact, for what may not be cut is a constraint of another name.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..place.flow import bits, route
from ..problem.model import Kind, Problem


class Sums:
    """Minimums by the set of areas that they may use, and areas by the demands that may use them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.names: list[tuple[str, ...]] = []
        """Of every row the names without which it is not there."""
        self.needs: list[int] = []
        self.step: list[int] = []
        """Of every row the MiB in which it can be given up."""
        self._rows_on: dict[tuple[int, ...], int] = {}
        """Rows as bits by the areas that they may use, for many have the same."""
        for demand in self.problem.demands:
            if demand.kind is Kind.VOLUME or demand.space is None or demand.low <= 0 or demand.pool is not None:
                continue
            names = (f"min:{demand.name}", f"legs:{demand.name}") if demand.kind is Kind.LEGS else (f"min:{demand.name}",)
            self._add(names, demand.low * demand.legs, demand.legs, demand.areas)
        self._add_volumes()
        self.room = self._rooms()
        owners = [0] * len(problem.areas)
        for areas, rows in self._rows_on.items():
            for area in areas:
                owners[area] |= rows
        self.kinds = sorted(set(owners))
        number = {mask: position for position, mask in enumerate(self.kinds)}
        self.kind_of = [number[mask] for mask in owners]
        self.masks = [sum(1 << kind for kind, rows in enumerate(self.kinds) if rows >> row & 1) for row in range(len(self.needs))]
        self.rooms = [0] * len(self.kinds)
        for area, kind in enumerate(self.kind_of):
            self.rooms[kind] += self.room[area]

    def _add_volumes(self) -> None:
        for pool in self.problem.pools:
            if pool.arrays or pool.kept:
                continue
            capped = (f"vgcap:{pool.name}",) if pool.is_group else ()
            for volume in pool.volumes:
                demand = self.problem.demands[volume]
                if demand.space is not None and demand.low > 0:
                    self._add((f"min:{demand.name}", *capped), demand.low * demand.unit, demand.unit, pool.areas)

    def _add(self, names: tuple[str, ...], need: int, step: int, areas: tuple[int, ...]) -> None:
        self._rows_on[areas] = self._rows_on.get(areas, 0) | 1 << len(self.needs)
        self.names.append(names)
        self.needs.append(need)
        self.step.append(step)

    def _rooms(self) -> list[int]:
        """Return MiB by area; where nothing but extents may lie, what extents can use."""
        problem = self.problem
        mixed: set[int] = set()
        for areas in {demand.areas for demand in problem.demands} | {pool.areas for pool in problem.pools if not pool.is_group}:
            mixed.update(areas)
        for boot in problem.boot_partitions:
            mixed.update(area for area, _size in boot.sizes)
        room = [area.size for area in problem.areas]
        least: dict[int, tuple[int, int]] = {}
        for areas, lost, extent in {(pool.areas, pool.metadata_size, pool.extent_size) for pool in problem.pools}:
            for area in areas:
                least[area] = min(least.get(area, (lost, extent)), (lost, extent))
        for area, (lost, extent) in least.items():
            if area not in mixed:
                room[area] = max(0, room[area] - lost) // extent * extent
        return room

    def overflow(self) -> int:
        """Return by how many MiB all minimums together exceed the room."""
        return sum(self.short(range(len(self.needs)), self.rooms).values())

    def short(self, rows: Sequence[int], rooms: Sequence[int]) -> dict[int, int]:
        """Return the MiB for which there is no room, by row; rows of one set of areas are routed as one."""
        by_mask: dict[int, int] = {}
        for row in rows:
            by_mask[self.masks[row]] = by_mask.get(self.masks[row], 0) + self.needs[row]
        masks = list(by_mask)
        transport, short = route([by_mask[mask] for mask in masks], masks, rooms)
        missing = {masks[at]: by_mask[masks[at]] - sum(transport.flow[at]) for at in short}
        found = {}
        for row in reversed(rows):
            taken = min(missing.get(self.masks[row], 0), self.needs[row])
            if taken:
                found[row] = taken
                missing[self.masks[row]] -= taken
        return found


def summed_conflict(sums: Sums) -> list[str]:
    """Return the names of minimums and disks of a minimal set that adds up to too much; empty when none does."""
    rooms = list(sums.rooms)
    rows = list(range(len(sums.needs)))
    if not sums.short(rows, rooms):
        return []
    endless = sum(sums.needs) + 1
    kept: set[int] = set()
    for row in sorted(rows, key=lambda row: (sums.needs[row], -row)):
        # Where one is needed, so is every larger one of the same areas.
        if sums.masks[row] not in kept:
            rest = [other for other in rows if other != row]
            if sums.short(rest, rooms):
                rows = rest
            else:
                kept.add(sums.masks[row])
    needed = []
    for kind in range(len(sums.kinds)):
        wider = [*rooms]
        wider[kind] = endless
        if sums.short(rows, wider):
            rooms = wider
        else:
            needed.append(kind)
    reach = 0
    for row in rows:
        reach |= sums.masks[row]
    used = set(bits(reach)) & set(needed)
    disks = {sums.problem.areas[area].disk for area, kind in enumerate(sums.kind_of) if kind in used}
    named = dict.fromkeys(name for row in rows for name in sums.names[row])
    return [*named, *(f"disk:{sums.problem.disk_names[disk]}" for disk in sorted(disks))]


def is_divisible(problem: Problem) -> bool:
    """Return whether a minimum cut says exactly what is short: nothing but volumes, and one vg at most on every disk."""
    contradictory = any(demand.high is not None and demand.high < demand.low for demand in problem.demands)
    if contradictory or problem.boot_partitions or problem.relations or any(demand.kind is not Kind.VOLUME for demand in problem.demands):
        return False
    if any(pool.arrays or pool.kept or pool.lo or pool.hi is not None or pool.max_pvs is not None for pool in problem.pools):
        return False
    if len({area.disk for area in problem.areas}) < len(problem.areas):
        return False
    extents = {pool.extent_size for pool in problem.pools}
    return len(extents) == 1 and (extents == {1} or _one_group_each(problem))


def _one_group_each(problem: Problem) -> bool:
    spaces: list[set[int]] = [set() for _area in problem.areas]
    for pool in problem.pools:
        for area in pool.areas:
            spaces[area].add(pool.space)
    return all(len(own) <= 1 for own in spaces)


def least_given_up(sums: Sums, blamed: Sequence[str] = ()) -> dict[str, int]:
    """Return the MiB by which minimums must be lowered at least, by name of the minimum, of a divisible problem.

    Of equal ways one that lowers blamed minimums.
    """
    found: dict[str, int] = {}
    rows = sorted(range(len(sums.needs)), key=lambda row: (sums.names[row][0] in blamed, row))
    for row, missing in sums.short(rows, sums.rooms).items():
        name = sums.names[row][0]
        found[name] = found.get(name, 0) + -(-missing // sums.step[row]) * sums.step[row]
    return found


def least_grown(sums: Sums, blamed: Sequence[str]) -> dict[str, int] | None:
    """Return one disk of a conflict of a divisible problem that is to be larger by all that is short; None where several must be."""
    problem, rows = sums.problem, range(len(sums.needs))
    short = sums.overflow()
    if not short:
        return {}
    # Of disks with the same owners one answers for all.
    tried: set[int] = set()
    for disk in (name.split(":", 1)[1] for name in blamed if name.startswith("disk:")):
        at = next(at for at, area in enumerate(problem.areas) if problem.disk_names[area.disk] == disk)
        if sums.kind_of[at] in tried:
            continue
        tried.add(sums.kind_of[at])
        extent = max((pool.extent_size for pool in problem.pools if at in pool.areas), default=1)
        rooms = list(sums.rooms)
        rooms[sums.kind_of[at]] += -(-short // extent) * extent
        if not sums.short(rows, rooms):
            # What is less than an extent is there already, or the metadata is not even.
            free = problem.areas[at].size - max((pool.metadata_size for pool in problem.pools if at in pool.areas), default=0)
            return {disk: -(-short // extent) * extent - (free % extent if free > 0 else free)}
    return None
