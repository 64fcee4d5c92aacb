# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many disks have which pattern: the program that knows no single disk (cutting stock; Gilmore and Gomory 1961).

It has none to exchange for another that is alike, and even without regard to whole numbers it proves more than sums do. It is
small where few pieces fill a disk, which is where placements are hard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._common.highs import FREE, Program, choose, maximise_with_prices
from ..._common.libraries import np, npt
from ..problem.model import Placement
from .patterns import Disks, Kinds
from .prices import Prices, price

_MOST_PATTERNS = 3000
_NOISE = 1e-6

Terms = list[tuple[int, float]]


class TooMany(Exception):
    """There are more patterns than a program is worth."""


@dataclass(frozen=True)
class Proof:
    """A proof that sizes have no placement: the demands that conflict, and prices, if any, that exclude other sizes, too."""

    blamed: frozenset[int]
    prices: Prices | None = None


class CuttingStock:
    """The program of one question, which may be off what is preferred by so much. Raises TooMany."""

    def __init__(self, kinds: Kinds, most_off: float = FREE) -> None:
        self._kinds, self._program = kinds, Program()
        self._patterns: list[tuple[Disks, int, tuple[int, ...]]] = []
        """The column and the counts of every pattern."""
        self._required: list[tuple[int, int, frozenset[int]]] = []
        """For pieces, then for pools: the column of the shortfall, the row, and the demands that it belongs to."""
        self._row_of: dict[Disks, int] = {}
        """The row of what pools take of what is left."""
        self._build(most_off)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self._program.lower)

    def proof(self) -> Proof | None:
        """Return that there is no placement, even if patterns come in fractions; None when there may be one."""
        kinds = self._kinds
        if any(disks.room < 0 for disks in kinds.disks):
            return Proof(frozenset(kinds.settled))
        solved = maximise_with_prices(self._program, {column: -1.0 for column, _row, _demands in self._required})
        if solved is None:
            return Proof(frozenset(range(len(kinds.units))))
        if -solved[0].objective <= _NOISE:
            return None
        blamed = frozenset(kinds.settled).union(*(demands for _column, row, demands in self._required if solved[1][row] > _NOISE))
        prices = self._priced(solved[1])
        return Proof(blamed, prices if prices.forbid(kinds.units) else None)

    def placement(self, nodes: int) -> Placement | None:
        """Return a placement, None when there is none. Raises Undecided after `nodes`."""
        for column, _row, _demands in self._required:
            self._program.upper[column] = 0.0
        solved = choose(self._program, nodes)
        return None if solved is None else self._to_placement([round(value) for value in solved.values])

    def _build(self, most_off: float) -> None:
        """Add a column for every pattern; rows say how many disks there are, what pools take, and that nothing is missing."""
        kinds = self._kinds
        pieces: list[Terms] = [[] for _kind in kinds.pieces]
        pools: dict[int, Terms] = {at: [] for at in kinds.needs}
        for disks, areas in kinds.disks.items():
            left: Terms = []
            for counts, room in disks.patterns(maximal=not disks.pools and not any(slot.cost for slot in disks.slots)):
                if len(self._patterns) >= _MOST_PATTERNS:
                    raise TooMany
                column = self._program.column(0.0, float(len(areas)), integral=True)
                self._patterns.append((disks, column, counts))
                left.append((column, -room / max(disks.room, 1)))
                for slot, count in zip(disks.slots, counts):
                    if count:
                        pieces[slot.pieces].append((column, float(count)))
            self._program.row([(column, 1.0) for column, _left in left], high=float(len(areas)))
            for at, column in self._taken(disks, left):
                pools[at].append((column, 1.0 / kinds.needs[at]))
        for own, terms in zip(kinds.pieces, pieces):
            self._require(terms, own.count, own.members)
        for at, terms in pools.items():
            self._require(terms, 1, kinds.problem.pools[at].volumes)
        if most_off < FREE:
            self._program.row(self._costs(), high=most_off + 0.5)

    def _taken(self, disks: Disks, left: Terms) -> list[tuple[int, int]]:
        """Add what pools take of all that patterns leave on some disks; return pools and the columns of their extents."""
        taken: list[tuple[int, int]] = []
        terms = list(left)
        for at in disks.pools:
            pool = self._kinds.problem.pools[at]
            extents = min(float(self._kinds.needs[at]), max(0, disks.room - pool.metadata_size) / pool.extent_size)
            if extents > 0:
                taken.append((at, self._program.column()))
                # Metadata counts by the share of the most that a PV here can have.
                terms.append((taken[-1][1], (pool.extent_size + pool.metadata_size / extents) / max(disks.room, 1)))
        if taken:
            self._row_of[disks] = self._program.row(terms, high=0.0)
        return taken

    def _require(self, terms: Terms, count: int, demands: Sequence[int]) -> None:
        missing = self._program.column()
        row = self._program.row([*terms, (missing, 1.0)], low=float(count))
        self._required.append((missing, row, frozenset(demands)))

    def _costs(self) -> Terms:
        costs = ((column, sum(slot.cost * count for slot, count in zip(disks.slots, counts))) for disks, column, counts in self._patterns)
        return [(column, float(cost)) for column, cost in costs if cost]

    def _priced(self, prices: npt.NDArray[np.float64]) -> Prices:
        of_pieces = [float(prices[row]) for _column, row, _demands in self._required[: len(self._kinds.pieces)]]
        of_room = {disks: float(prices[row]) / max(disks.room, 1) for disks, row in self._row_of.items()}
        return price(self._kinds, of_pieces, of_room)

    def _to_placement(self, values: Sequence[int]) -> Placement:
        """Return the placement with pieces and boot partitions on the areas of their patterns."""
        kinds, problem = self._kinds, self._kinds.problem
        pieces: list[list[int]] = [[] for _kind in kinds.pieces]
        free = {disks: iter(areas) for disks, areas in kinds.disks.items()}
        for disks, column, counts in self._patterns:
            for _disk in range(values[column]):
                area = next(free[disks])
                for slot, count in zip(disks.slots, counts):
                    pieces[slot.pieces] += [area] * count
        areas = [demand.areas if at in kinds.settled else () for at, demand in enumerate(problem.demands)]
        for own, found in zip(kinds.pieces, pieces):
            # No area has more than there are members, so that every so-many-th piece lies on another.
            enough = sorted(found)[: own.count]
            for number, at in enumerate(own.members):
                areas[at] = tuple(enough[number :: len(own.members)])
        boots = []
        for boot in problem.boot_partitions:
            booting = {area for at in boot.demands for area in areas[at]}
            booting |= {area for area, _size in boot.sizes if problem.areas[area].disk in boot.disks}
            boots.append(tuple(sorted(booting)))
        return Placement(tuple(areas), tuple(pool.areas for pool in problem.pools), tuple(boots))
