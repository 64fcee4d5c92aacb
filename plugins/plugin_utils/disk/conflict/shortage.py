# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is short when minimums merely add up to too much: a minimum cut between spaces and disks, in milliseconds at any size.

Everything is taken as if it could be cut in pieces, arrays by the sum of their legs. Whatever contradicts itself then does so
in truth; and by the names of the constraints it is exact, for what may not be cut is a constraint of another name.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..flat.flow import bits, route
from ..problem.model import Kind, Problem


class _Sums:
    """Minimums by the set of areas that they may use, and areas by who may use them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.names: list[tuple[str, ...]] = []
        """Of every row the names without which it is not there."""
        self.needs: list[int] = []
        self.step: list[int] = []
        """Of every row the MiB in which it can be given up."""
        owners: list[int] = [0] * len(problem.areas)
        for demand in problem.demands:
            if demand.kind is Kind.VOLUME or demand.space is None or demand.low <= 0 or demand.pool is not None:
                continue
            names = (f"min:{demand.name}", f"legs:{demand.name}") if demand.kind is Kind.LEGS else (f"min:{demand.name}",)
            self._add(names, demand.low * demand.legs, demand.legs, demand.areas, owners)
        only_extents = [True] * len(problem.areas)
        for demand in problem.demands:
            for area in demand.areas:
                only_extents[area] = False
        for boot in problem.boot_partitions:
            for area, _size in boot.sizes:
                only_extents[area] = False
        for pool in problem.pools:
            if pool.arrays or pool.kept:
                continue
            capped = () if pool.metadata_size == 0 and pool.extent_size == 1 else (f"vgcap:{pool.name}",)
            for volume in pool.volumes:
                demand = problem.demands[volume]
                if demand.space is not None and demand.low > 0:
                    self._add((f"min:{demand.name}", *capped), demand.low * demand.unit, demand.unit, pool.areas, owners)
            if pool.extent_size == 1:
                for area in pool.areas:
                    only_extents[area] = False
        self.room = [area.size for area in problem.areas]
        metadata: dict[int, tuple[int, int]] = {}
        for pool in problem.pools:
            for area in pool.areas:
                metadata[area] = min(metadata.get(area, (pool.metadata_size, pool.extent_size)), (pool.metadata_size, pool.extent_size))
        for area, (lost, extent) in metadata.items():
            if only_extents[area]:
                self.room[area] = max(0, self.room[area] - lost) // extent * extent
        self.kinds = sorted(set(owners))
        number = {mask: position for position, mask in enumerate(self.kinds)}
        self.kind_of = [number[mask] for mask in owners]
        self.masks = [sum(1 << number for number, kind in enumerate(self.kinds) if kind >> row & 1) for row in range(len(self.needs))]
        self.rooms = [0] * len(self.kinds)
        for area, kind in enumerate(self.kind_of):
            self.rooms[kind] += self.room[area]

    def _add(self, names: tuple[str, ...], need: int, step: int, areas: Sequence[int], owners: list[int]) -> None:
        for area in areas:
            owners[area] |= 1 << len(self.needs)
        self.names.append(names)
        self.needs.append(need)
        self.step.append(step)

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


def summed_conflict(problem: Problem) -> list[str]:
    """Return the names of minimums and disks of a minimal set that adds up to too much; empty when none does."""
    sums = _Sums(problem)
    rooms = list(sums.rooms)
    rows = list(range(len(sums.needs)))
    if not sums.short(rows, rooms):
        return []
    endless = sum(sums.needs) + 1
    for row in sorted(rows, key=lambda row: (sums.needs[row], -row)):
        rest = [other for other in rows if other != row]
        if sums.short(rest, rooms):
            rows = rest
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
    disks = {problem.areas[area].disk for area, kind in enumerate(sums.kind_of) if kind in used}
    named = dict.fromkeys(name for row in rows for name in sums.names[row])
    return [*named, *(f"disk:{problem.disk_names[disk]}" for disk in sorted(disks))]


def is_divisible(problem: Problem) -> bool:
    """Tell whether a minimum cut says exactly what is short: nothing but volumes, and one vg at most on every disk."""
    contradictory = any(demand.high is not None and demand.high < demand.low for demand in problem.demands)
    if contradictory or problem.boot_partitions or any(demand.kind is not Kind.VOLUME for demand in problem.demands):
        return False
    if any(pool.arrays or pool.kept or pool.lo or pool.hi is not None or pool.max_pvs is not None for pool in problem.pools):
        return False
    if len({area.disk for area in problem.areas}) < len(problem.areas):
        return False
    spaces: list[set[int]] = [set() for _area in problem.areas]
    for pool in problem.pools:
        for area in pool.areas:
            spaces[area].add(pool.space)
    extents = {pool.extent_size for pool in problem.pools}
    return len(extents) == 1 and (extents == {1} or all(len(own) <= 1 for own in spaces))


def least_given_up(problem: Problem, blamed: Sequence[str] = ()) -> dict[str, int]:
    """Return the MiB by which minimums must be lowered at least, by name of the minimum, of a divisible problem.

    Of equal ways one that lowers blamed minimums.
    """
    sums = _Sums(problem)
    found: dict[str, int] = {}
    rows = sorted(range(len(sums.needs)), key=lambda row: (sums.names[row][0] in blamed, row))
    for row, missing in sums.short(rows, sums.rooms).items():
        name = sums.names[row][0]
        found[name] = found.get(name, 0) + -(-missing // sums.step[row]) * sums.step[row]
    return found
