# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kinds of pieces, kinds of disks, and the patterns in which pieces can share a disk.

Demands of one size that may lie in the same places are one kind, and so are disks that differ in nothing. A *pattern* is how many
pieces of every kind lie on one disk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..problem.model import Demand, Kind, Pool, PreferredAreas, Problem, rank
from ..problem.program import open_everywhere, size_at
from .bounds import has_no_choice


@dataclass(frozen=True)
class Pieces:
    """Whole demands (positions) that can change places; the legs of all of them are pieces of one kind."""

    members: tuple[int, ...]
    units: int
    demand: Demand
    """One of them; they differ in name and bounds."""
    boots: frozenset[int]
    """Boot partitions (positions) that have to be on the same disk."""

    @property
    def count(self) -> int:
        """Return how many pieces there are."""
        return len(self.members) * self.demand.legs


@dataclass(frozen=True)
class Slot:
    """What `pieces` (position) of one kind take on a disk: MiB, what it costs that they prefer others, and how many there may be."""

    pieces: int
    size: int
    cost: int
    most: int
    boots: frozenset[int]


@dataclass(frozen=True)
class Disks:
    """One kind of disks: the MiB that what has no choice leaves there, and which pieces and pools (positions) may use them.

    `boot` are the MiB of boot partitions (by position) that are not there yet but may be.
    """

    room: int
    slots: tuple[Slot, ...]
    pools: tuple[int, ...]
    boot: tuple[tuple[int, int], ...]

    def patterns(self, *, maximal: bool) -> Iterator[tuple[tuple[int, ...], int]]:
        """Yield counts by slot with the MiB that are left; with `maximal` only those to which nothing can be added."""
        boot, counts = dict(self.boot), [0] * len(self.slots)
        smallest_first = sorted(range(len(self.slots)), key=lambda at: self.slots[at].size)

        def booting(slot: Slot, there: frozenset[int]) -> int:
            """Return the MiB of the boot partitions that come with the first piece of a slot in addition to existing ones."""
            return sum(boot[number] for number in slot.boots - there) if slot.boots else 0

        def takes_more(left: int, there: frozenset[int]) -> bool:
            for at in smallest_first:
                slot = self.slots[at]
                if slot.size > left:
                    return False
                if counts[at] < slot.most and slot.size + booting(slot, there) <= left:
                    return True
            return False

        def further(at: int, left: int, there: frozenset[int]) -> Iterator[tuple[tuple[int, ...], int]]:
            for place in range(at, len(self.slots)):
                slot = self.slots[place]
                extra = booting(slot, there)
                for count in range(min(slot.most, (left - extra) // max(slot.size, 1)), 0, -1):
                    counts[place] = count
                    yield from further(place + 1, left - extra - count * slot.size, there | slot.boots)
                counts[place] = 0
            if not maximal or not takes_more(left, there):
                yield tuple(counts), left

        return further(0, self.room, frozenset()) if self.room >= 0 else iter(())


@dataclass(frozen=True)
class Kinds:
    """A problem at sizes (units) of all demands: kinds of pieces, largest first, and the areas of every kind of disks."""

    problem: Problem
    units: tuple[int, ...]
    settled: tuple[int, ...]
    """Whole demands (positions) that have no choice."""
    pieces: tuple[Pieces, ...]
    disks: Mapping[Disks, tuple[int, ...]]
    needs: Mapping[int, int]
    """Extents that pools (positions) need beyond those they have."""


def suits(problem: Problem) -> bool:
    """Return whether all that matters is which pieces share a disk, and what they leave there for pools."""
    return (
        not problem.relations
        and problem.has_own_drives
        and all(open_everywhere(problem, at) and len(pool.arrays) <= 1 for at, pool in enumerate(problem.pools))
        and not any(problem.pools[at].areas for boot in problem.boot_partitions for at in boot.pools)
    )


def kinds_of(problem: Problem, units: Sequence[int]) -> Kinds:
    """Return the kinds of pieces and disks of a problem that `suits`, with arrays in `units` as large as what lies on them needs."""
    solid = [at for at, demand in enumerate(problem.demands) if demand.kind is not Kind.VOLUME]
    settled = [at for at in solid if has_no_choice(problem, problem.demands[at])]
    pieces = _pieces(problem, units, [at for at in solid if not has_no_choice(problem, problem.demands[at])])
    needs = {at: need for at, pool in enumerate(problem.pools) if pool.areas and (need := _need(pool, units)) > 0}
    disks: dict[Disks, list[int]] = {}
    for area in range(len(problem.areas)):
        disks.setdefault(_disks(problem, units, area, settled, pieces, needs), []).append(area)
    return Kinds(problem, tuple(units), tuple(settled), pieces, {own: tuple(areas) for own, areas in disks.items()}, needs)


def replaceable(demand: Demand) -> tuple[PreferredAreas, object, int]:
    """Return what two demands must have in common for the larger to take more room than the smaller wherever it lies."""
    return demand.preferred, demand.growth_order, demand.low if demand.preferred else 0


def boots_with(problem: Problem, at: int) -> frozenset[int]:
    """Return the boot partitions (positions) that come with a demand."""
    return frozenset(number for number, boot in enumerate(problem.boot_partitions) if at in boot.demands)


def _pieces(problem: Problem, units: Sequence[int], demands: Sequence[int]) -> tuple[Pieces, ...]:
    alike: dict[object, list[int]] = {}
    for at in demands:
        demand = problem.demands[at]
        kind = (units[at], demand.legs, demand.areas, replaceable(demand), boots_with(problem, at))
        alike.setdefault(kind, []).append(at)
    pieces = (Pieces(tuple(own), units[own[0]], problem.demands[own[0]], boots_with(problem, own[0])) for own in alike.values())
    return tuple(sorted(pieces, key=lambda own: (-own.units, own.members)))


def _disks(
    problem: Problem, units: Sequence[int], area: int, settled: Sequence[int], pieces: Sequence[Pieces], needs: Mapping[int, int]
) -> Disks:
    disk = problem.areas[area].disk
    there = [at for at in settled if area in problem.demands[at].areas]
    room = problem.areas[area].size - sum(_mib(problem.demands[at], area, units[at]) for at in there)
    boot = {}
    for number, partition in enumerate(problem.boot_partitions):
        size = dict(partition.sizes).get(area)
        if disk in partition.disks or any(at in partition.demands for at in there):
            room -= room + 1 if size is None else size
            boot[number] = 0
        elif size is not None:
            boot[number] = size
    slots = tuple(
        Slot(number, _mib(own.demand, area, own.units), _cost(own.demand, area), len(own.members), own.boots)
        for number, own in enumerate(pieces)
        if area in own.demand.areas and own.boots <= boot.keys()
    )
    return Disks(room, slots, tuple(at for at in needs if area in problem.pools[at].areas), tuple(boot.items()))


def _need(pool: Pool, units: Sequence[int]) -> int:
    return max(sum(units[volume] for volume in pool.volumes) - pool.kept, -(-pool.lo // pool.extent_size))


def _mib(demand: Demand, area: int, units: int) -> int:
    return math.ceil(size_at(demand, area, units))


def _cost(demand: Demand, area: int) -> int:
    return rank(demand.preferred, area) * max(demand.low, 1)
