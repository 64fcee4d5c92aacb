# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prices by which no placement is worth more than all disks can hold: one proof for many sizes.

That sizes have no placement is proven by prices: what is asked for is worth more than any patterns are. A piece that is larger
than another is worth no less, so the same prices speak of other sizes, too (a dual feasible function; Lueker 1983).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..problem.model import Kind
from ..problem.program import size_at
from .patterns import Disks, Kinds, boots_with, replaceable

_STEPS = 2000
_SURE = 1 + 1e-9


@dataclass(frozen=True)
class Prices:
    """What demands are worth, and what no placement is worth more than."""

    whole: tuple[tuple[tuple[int, ...], tuple[float, ...]], ...]
    """By demand: units in ascending order, and what all its legs are worth from each of them on."""
    unit: tuple[float, ...]
    """By demand: what a unit of a volume is worth."""
    most: float

    def worth(self, at: int, units: int) -> float:
        """Return what a demand of a size is worth."""
        return self.worths(at, [units])[0]

    def worths(self, at: int, sizes: Sequence[int]) -> list[float]:
        """Return what a demand is worth at each of some sizes."""
        steps, prices = self.whole[at]
        if not steps:
            return [self.unit[at] * units for units in sizes]
        before = (0.0, *prices)
        return [self.unit[at] * units + before[bisect_right(steps, units)] for units in sizes]

    def forbid(self, units: Sequence[int]) -> bool:
        """Return whether these sizes have no placement."""
        return sum(self.worth(at, own) for at, own in enumerate(units)) > self.most


def price(kinds: Kinds, of_pieces: Sequence[float], of_room: Mapping[Disks, float]) -> Prices:
    """Return what follows from any prices: of a piece of every kind, and of a MiB that is left on some disks."""
    problem = kinds.problem
    # A piece of size 0 has no finite price; it counts as 0.
    nothing = {slot.pieces for disks in kinds.disks for slot in disks.slots if slot.size <= 0}
    of_pieces = [0.0 if number in nothing else own for number, own in enumerate(of_pieces)]
    rooms = {disks: max(_room(kinds, area) for area in areas) for disks, areas in kinds.disks.items()}
    most = 0.0
    of_extents = [float("inf")] * len(problem.pools)
    for disks, areas in kinds.disks.items():
        slots = [(slot.size, of_pieces[slot.pieces]) for slot in disks.slots]
        most += len(areas) * most_worth(rooms[disks], of_room.get(disks, 0.0), slots)
        for at, pool in enumerate(problem.pools):
            extents = (rooms[disks] - pool.metadata_size) / pool.extent_size
            if extents > 0 and not frozenset(pool.areas).isdisjoint(areas):
                own = of_room.get(disks, 0.0) * (pool.extent_size + pool.metadata_size / extents)
                of_extents[at] = min(of_extents[at], own)
    of_extents = [0.0 if own == float("inf") else own for own in of_extents]
    most += sum(pool.kept * own for pool, own in zip(problem.pools, of_extents))
    whole = tuple(_steps(kinds, at, of_pieces) for at in range(len(problem.demands)))
    unit = (0.0 if demand.kind is not Kind.VOLUME or demand.pool is None else of_extents[demand.pool] for demand in problem.demands)
    return Prices(whole, tuple(unit), most * _SURE)


def _room(kinds: Kinds, area: int) -> int:
    """Return the room left in an area by demands without a choice, at their smallest."""
    demands = [kinds.problem.demands[at] for at in kinds.settled]
    return kinds.problem.areas[area].size - sum(int(size_at(own, area, own.low)) for own in demands if area in own.areas)


def _steps(kinds: Kinds, at: int, of_pieces: Sequence[float]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return from which units on a demand is worth how much: as much as any smaller piece that could lie where it does."""
    demand = kinds.problem.demands[at]
    if demand.kind is Kind.VOLUME or at in kinds.settled:
        return (), ()
    areas, boots = set(demand.areas), boots_with(kinds.problem, at)
    steps: dict[int, float] = {}
    highest = 0.0
    for pieces, own in sorted(zip(kinds.pieces, of_pieces), key=lambda item: item[0].units):
        fits = pieces.boots <= boots and replaceable(pieces.demand) == replaceable(demand)
        if fits and own > highest and areas.issubset(pieces.demand.areas):
            highest = own
            steps[pieces.units] = own * demand.legs
    return tuple(steps), tuple(steps.values())


def most_worth(room: int, of_room: float, pieces: Sequence[tuple[int, float]]) -> float:
    """Return a bound of what lies on a disk: pieces of (MiB, price), as many as fit, and what they leave at a price by MiB."""
    gains = [(size, own - of_room * size) for size, own in pieces if 0 < size <= room and own > of_room * size]
    gains.sort(key=lambda piece: -piece[1] / piece[0])
    return of_room * max(room, 0) + _Knapsack(gains).most(room)


class _Knapsack:
    """As many of each piece as fit, the dearest by MiB first; after a limit of steps a bound takes the place of the rest."""

    def __init__(self, gains: Sequence[tuple[int, float]]) -> None:
        self._gains, self._left, self._most = gains, _STEPS, 0.0

    def most(self, room: int) -> float:
        self._try(0, room, 0.0)
        return self._most

    def _try(self, at: int, room: int, gained: float) -> None:
        if at == len(self._gains):
            self._most = max(self._most, gained)
            return
        size, gain = self._gains[at]
        bound = gained + room * gain / size
        self._left -= 1
        if bound <= self._most or self._left < 0:
            self._most = max(self._most, bound)
            return
        for count in range(room // size, -1, -1):
            ended = self._left < 0
            self._try(at + 1, room - count * size, gained + count * gain)
            if ended:
                # What was bounded now is no less than what fewer of these pieces would be; there may be millions of them.
                return
