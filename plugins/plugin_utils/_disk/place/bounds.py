# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Quick proofs that demands of some sizes have no placement, and what follows for where they can lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from ..._common.libraries import np, npt
from ..problem.model import Demand, Kind, Problem, by_drive, rank
from ..problem.program import follows, size_at

_MOST_SETS = 64


def has_no_choice(problem: Problem, demand: Demand) -> bool:
    """Return whether a demand can lie in one way only."""
    if demand.kind is Kind.VOLUME:
        return True
    return len(demand.areas) == demand.legs == len(problem.drives_of(demand.areas))


class Bounds:
    """Proofs about one problem; what does not depend on sizes is computed once."""

    def __init__(self, problem: Problem) -> None:
        self._drive = np.array([problem.drive_of(area.disk) for area in problem.areas], dtype=np.int64)
        self._own = [_areas_of(problem, demand) for demand in problem.demands]
        self._settled = [has_no_choice(problem, demand) for demand in problem.demands]
        self._mib = np.array([demand.unit if demand.kind is Kind.VOLUME else demand.legs for demand in problem.demands], dtype=np.int64)
        self._sets = _closed_under_union({areas for areas in self._own if areas})
        self._inside = np.array([[bool(own) and own <= areas for own in self._own] for areas in self._sets], dtype=bool)
        self._legs = np.array([0 if demand.kind is Kind.VOLUME else demand.legs for demand in problem.demands], dtype=np.int64)
        self._set_room(problem)
        self._choices = {at: self._choice(demand) for at, demand in enumerate(problem.demands) if self._has_choice(at)}

    def _set_room(self, problem: Problem) -> None:
        self._problem = problem
        self._room = np.array([area.size for area in problem.areas], dtype=np.int64)
        rooms = [self._room[sorted(areas)] for areas in self._sets]
        # On one area alone the sum says all.
        solid = [(np.flatnonzero(inside & (self._legs > 0)), room) for inside, room in zip(self._inside, rooms)]
        self._solid_inside = [(pieces, room) for pieces, room in solid if len(room) > 1 and len(pieces)]
        self._totals = np.array([room.sum() for room in rooms], dtype=np.int64)
        self._highest: dict[int, float] = {}

    def with_room(self, problem: Problem) -> Bounds:
        """Return the proofs about a problem that differs in the sizes of areas and pools only."""
        other = copy(self)
        other._set_room(problem)
        return other

    def _has_choice(self, position: int) -> bool:
        return self._problem.demands[position].kind is not Kind.VOLUME and not self._settled[position]

    def _choice(self, demand: Demand) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return areas of a demand, their drives, and where it has no more than its minimum (`size_at`)."""
        areas = np.array(demand.areas, dtype=np.int64)
        off = [size_at(demand, area, math.inf) < math.inf for area in demand.areas] if demand.preferred else [False] * len(areas)
        return areas, self._drive[areas], np.array(off, dtype=np.bool_)

    def overfull(self, units: Sequence[int]) -> frozenset[int]:
        """Return demands (positions) that cannot have these sizes all together, empty when no such are found.

        Every set of areas that some demands are confined to holds them in sum, and whole pieces of every size by their number.
        """
        return self._exceeds_caps(units) or self._exceeds_sums(units) or self._exceeds_counts(units) or self._unplaceable(units)

    def sums(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return which demands lie inside of every set of areas (S, D), MiB by unit (D), and MiB that each set holds (S)."""
        return self._inside, self._mib, self._totals

    def counts(self) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Return of every set of several areas the whole demands inside, the legs of all demands, and MiB of each area."""
        return [(solid, self._legs, room) for solid, room in self._solid_inside]

    def highest(self, position: int) -> float:
        """Return the units that a demand could have if all others had their minimum."""
        if position not in self._highest:
            self._highest[position] = self._highest_of(position)
        return self._highest[position]

    def _highest_of(self, position: int) -> float:
        problem, demand = self._problem, self._problem.demands[position]
        if follows(demand) or any(rank(demand.preferred, area) == len(demand.preferred) > 0 for area in demand.areas):
            return math.inf
        if demand.kind is not Kind.VOLUME:
            largest = sorted((max(self._room[areas]) for areas in by_drive(problem, demand.areas).values()), reverse=True)
            return float(largest[demand.legs - 1]) if len(largest) >= demand.legs else 0.0
        if demand.pool is None or problem.pools[demand.pool].arrays:
            return math.inf
        pool = problem.pools[demand.pool]
        extents = int((np.maximum(0, self._room[list(pool.areas)] - pool.metadata_size) // pool.extent_size).sum())
        if pool.hi is not None:
            extents = min(extents, pool.hi // pool.extent_size)
        return float(pool.kept + extents - sum(problem.demands[other].low for other in pool.volumes if other != position))

    def kind(self, position: int) -> Demand:
        """Return a demand without its bounds and name: of two with the same either can lie where the other does."""
        boots = tuple(number for number, boot in enumerate(self._problem.boot_partitions) if position in boot.demands)
        related = tuple(
            (number, position in relation.one.demands, position in relation.other.demands)
            for number, relation in enumerate(self._problem.relations)
        )
        return replace(self._problem.demands[position], name=repr((boots, related)), space=None, lo=0, hi=None)

    def _exceeds_caps(self, units: Sequence[int]) -> frozenset[int]:
        for pool in self._problem.pools:
            taken = sum(units[volume] for volume in pool.volumes)
            without_room = not pool.areas and not pool.arrays
            if (pool.hi is not None and taken > pool.kept + pool.hi // pool.extent_size) or (without_room and taken > pool.kept):
                return frozenset(pool.volumes)
        return frozenset()

    def _exceeds_sums(self, units: Sequence[int]) -> frozenset[int]:
        if not self._sets:
            return frozenset()
        needs = self._inside @ (np.array(units, dtype=np.int64) * self._mib)
        over = np.flatnonzero(needs > self._totals)
        return frozenset(np.flatnonzero(self._inside[over[0]]).tolist()) if len(over) else frozenset()

    def _exceeds_counts(self, units: Sequence[int]) -> frozenset[int]:
        sizes = np.array(units, dtype=np.int64)
        for solid, room in self._solid_inside:
            pieces = solid[np.argsort(-sizes[solid], kind="stable")]
            pieces = pieces[sizes[pieces] > 0]
            counts = np.cumsum(self._legs[pieces])
            short = np.flatnonzero((room[None, :] // sizes[pieces][:, None]).sum(axis=1) < counts)
            if len(short):
                return frozenset(pieces[: int(short[0]) + 1].tolist())
        return frozenset()

    def _unplaceable(self, units: Sequence[int]) -> frozenset[int]:
        left, settled_on = self._room_beyond_settled(units)
        for position, (areas, drives, off) in self._choices.items():
            demand = self._problem.demands[position]
            needed = np.where(off, min(units[position], demand.low), units[position])
            if len(set(drives[needed <= left[areas]].tolist())) < demand.legs:
                return frozenset({position}.union(*(settled_on.get(area, ()) for area in demand.areas)))
        return frozenset()

    def _room_beyond_settled(self, units: Sequence[int]) -> tuple[npt.NDArray[np.int64], dict[int, list[int]]]:
        """Return the room left in every area by demands without a choice, and those demands."""
        left = self._room.copy()
        settled_on: dict[int, list[int]] = {}
        for position, demand in enumerate(self._problem.demands):
            if demand.kind is not Kind.VOLUME and self._settled[position]:
                for area in demand.areas:
                    left[area] -= units[position]
                    settled_on.setdefault(area, []).append(position)
        return left, settled_on

    def narrowed(self, units: Sequence[int]) -> Problem:
        """Return the problem without the areas that a demand of its size cannot use, or need not.

        Of disks that are alike in all, the first piece needs to try only the first, the next piece the first two, and so on.
        """
        left, _settled_on = self._room_beyond_settled(units)
        alike = self._alike(left) if self._problem.has_own_drives else {}
        demands = list(self._problem.demands)
        pieces = 0
        for position, demand in enumerate(self._problem.demands):
            if demand.kind is Kind.VOLUME or self._settled[position]:
                continue
            pieces += demand.legs
            areas = [area for area in demand.areas if size_at(demand, area, units[position]) <= left[area]]
            demands[position] = replace(demand, areas=tuple(area for area in areas if alike.get(area, 0) < pieces))
        return replace(self._problem, demands=tuple(demands))

    def _alike(self, left: npt.NDArray[np.int64]) -> dict[int, int]:
        """Return of every area how many before it are the same for everything that is to be placed."""
        signatures: list[list[object]] = [[int(size), int(self._room[area])] for area, size in enumerate(left)]
        owners = [(demand.areas, demand.preferred) for demand in self._problem.demands if demand.kind is not Kind.VOLUME]
        owners += [(pool.areas, pool.preferred) for pool in self._problem.pools]
        for number, (areas, preferred) in enumerate(owners):
            for area in areas:
                signatures[area].append((number, rank(preferred, area)))
        for number, boot_partition in enumerate(self._problem.boot_partitions):
            for area, size in boot_partition.sizes:
                signatures[area].append((number, size, self._problem.areas[area].disk in boot_partition.disks, "boot"))
        for relation in self._problem.relations:
            for area, signature in enumerate(signatures):
                disk = self._problem.areas[area].disk
                signature.append((disk in relation.one.disks, disk in relation.other.disks))
        seen: dict[tuple[object, ...], int] = {}
        before = {}
        for area, signature in enumerate(signatures):
            kind = tuple(signature)
            before[area] = seen[kind] = seen.get(kind, -1) + 1
        return before


def _areas_of(problem: Problem, demand: Demand) -> frozenset[int]:
    """Return the areas that hold all of a demand; empty when something else may hold it, too."""
    if follows(demand):
        return frozenset()
    if demand.kind is not Kind.VOLUME or demand.pool is None:
        return frozenset(demand.areas)
    pool = problem.pools[demand.pool]
    return frozenset() if pool.arrays or pool.kept else frozenset(pool.areas)


def _closed_under_union(sets: set[frozenset[int]]) -> list[frozenset[int]]:
    """Return the sets and as many unions of them as may be worth a look, smallest first."""
    found = sorted(sets, key=lambda areas: (len(areas), sorted(areas)))
    known = set(found)
    for one in list(found):
        for other in list(found):
            if len(found) < _MOST_SETS and (union := one | other) not in known:
                known.add(union)
                found.append(union)
    everything = frozenset().union(*known)
    if everything not in known:
        found.append(everything)
    return sorted(found, key=lambda areas: (len(areas), sorted(areas)))
