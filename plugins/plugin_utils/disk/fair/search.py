# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lies where: a mixed-integer program with binaries for placement only, sizes continuous.

Lexicographic: as few MiB of the minimums as possible off preferred disks; the highest level for the poorest that grows; then
most MiB in use, fewest pieces, first spaces on first disks. What has no placement never gets a binary, and where nothing has a
placement there is no program at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...common.highs import FREE, Limits, Program, Solved, Undecided, maximise
from ..problem.model import BootPartition, Demand, GrowthOrder, Kind, Placement, Pool, Problem, by_disk, rank
from ..problem.program import choice_of, minimum_program, tight

_PIECE = 8.0
"""MiB: what one piece less is worth."""
_ORDER = 1.0
"""MiB: what first spaces on first disks are worth, all together for one space."""
_MOST_BINARIES = 150
_GROWS = (GrowthOrder.PREFERRED, GrowthOrder.NORMAL)


@dataclass(frozen=True)
class Found:
    """A placement; `proven` is False when a limit ended the search, `gap` then the relative distance to the bound."""

    placement: Placement
    proven: bool = True
    gap: float = 0.0


def find_placement(problem: Problem, time_limit: float) -> Found | None:
    """Return the best placement for continuous sizes; None when not even these fit or the limit came first."""
    try:
        return _Search(problem, time_limit).run()
    except Undecided:
        return None


def find_tight_placement(problem: Problem, time_limit: float) -> Found | None:
    """Return a placement in which the minimums fit to the MiB, with as few pieces as possible; None when there is none.

    Raises Undecided when the limit came first.
    """
    model = minimum_program(problem, tight(problem))
    cost = {column: -_rank_cost(problem.demands[at].preferred, area, problem.demands[at].lo) for (at, area), column in model.site.items()}
    cost.update({column: -_rank_cost(problem.pools[at].preferred, area, 1) - 1.0 for (at, area), column in model.part.items()})
    cost.update(dict.fromkeys(model.boot_partition.values(), -1.0))
    solved = maximise(model.program, cost, Limits(gap=1e-4, seconds=time_limit))
    if solved is None:
        return None
    return Found(choice_of(problem, model, solved.values), solved.proven, solved.gap)


def _rank_cost(tiers: tuple[frozenset[int], ...], area: int, size: int) -> float:
    return float(rank(tiers, area) * max(size, 1))


def _fixed(problem: Problem, demand: Demand) -> bool:
    """Tell whether a demand has no placement."""
    if demand.kind is Kind.VOLUME:
        return True
    disks = len(by_disk(problem.areas, demand.areas))
    return disks == len(demand.areas) and disks == demand.legs


def _open_everywhere(problem: Problem, position: int, pool: Pool) -> bool:
    """Tell whether it costs nothing but its head to have a part of the pool on every area."""
    one_each = len(by_disk(problem.areas, pool.areas)) == len(pool.areas)
    carries = any(position in boot_partition.pools for boot_partition in problem.boot_partitions)
    return one_each and (pool.max_pvs is None or pool.max_pvs >= len(pool.areas)) and (not carries or len(pool.areas) <= 1)


def worth_searching(problem: Problem) -> bool:
    """Tell whether a search has a chance to end within seconds."""
    columns = sum(len(demand.areas) for demand in problem.demands if not _fixed(problem, demand))
    columns += sum(len(pool.areas) for at, pool in enumerate(problem.pools) if not _open_everywhere(problem, at, pool))
    return columns <= _MOST_BINARIES


def without_placement(problem: Problem) -> bool:
    """Tell whether there is only one placement."""
    return all(_fixed(problem, demand) for demand in problem.demands) and all(
        _open_everywhere(problem, at, pool) for at, pool in enumerate(problem.pools)
    )


def only_placement(problem: Problem) -> Found | None:
    """Return the placement of a problem in which nothing has a choice; None when a disk that boots has no room for a boot partition."""
    sites = tuple(demand.areas for demand in problem.demands)
    parts = tuple(pool.areas for pool in problem.pools)
    boot_partitions = []
    for boot_partition in problem.boot_partitions:
        areas = {area for at in boot_partition.demands for area in sites[at]} | {area for at in boot_partition.pools for area in parts[at]}
        disks = {problem.areas[area].disk for area in areas} | set(boot_partition.disks)
        own = by_disk(problem.areas, [area for area, _size in boot_partition.sizes])
        if any(len(own.get(disk, [])) == 0 for disk in disks):
            return None
        boot_partitions.append(tuple(sorted(own[disk][0] for disk in disks)))
    return Found(Placement(sites, parts, tuple(boot_partitions)))


class _Search:
    """The program and where its columns are."""

    def __init__(self, problem: Problem, time_limit: float) -> None:
        self._problem, self._time_limit = problem, time_limit
        self._program = Program()
        self._used: list[list[tuple[int, float]]] = [[] for _area in problem.areas]
        self._site: dict[tuple[int, int], int] = {}
        self._part: dict[tuple[int, int], int] = {}
        self._boot_partition: dict[tuple[int, int], int] = {}
        self._steps: list[int] = []
        self._off: dict[int, float] = {}
        self._proven, self._gap = True, 0.0
        for at, demand in enumerate(problem.demands):
            self._steps.append(self._demand(at, demand))
        for at, pool in enumerate(problem.pools):
            self._pool(at, pool)
        for at, boot_partition in enumerate(problem.boot_partitions):
            self._carry(at, boot_partition)
        for area, terms in enumerate(self._used):
            self._program.row(terms, high=problem.areas[area].size)

    def run(self) -> Found | None:
        """Solve one aim after the other, each kept while the next is sought."""
        solved: Solved | None = None
        if self._off:
            solved = self._solve({column: -cost for column, cost in self._off.items()}, gap=1e-6)
            if solved is None:
                return None
            self._program.row(self._off.items(), high=-solved.objective * (1 + 1e-6) + 1e-3)
        growing = [at for at, demand in enumerate(self._problem.demands) if demand.growth_order in _GROWS and demand.low != demand.high]
        if growing:
            level = self._level(growing)
            solved = self._solve({level: 1.0}, gap=1e-2)
            if solved is None:
                return None
            self._program.lower[level] = max(0.0, solved.objective * (1 - 1e-4))
        try:
            best = self._solve(self._worth(), gap=1e-5)
        except Undecided:
            best = solved
            self._proven = False
        if best is None:
            return None
        return Found(self._placement(best), self._proven, self._gap)

    def _solve(self, objective: dict[int, float], gap: float) -> Solved | None:
        solved = maximise(self._program, objective, Limits(gap=gap, seconds=self._time_limit))
        if solved is not None and not solved.proven:
            self._proven, self._gap = False, max(self._gap, solved.gap)
        return solved

    def _demand(self, at: int, demand: Demand) -> int:
        """Add a demand's columns and rows, and return the column of its steps."""
        high = FREE if demand.high is None or demand.growth_order is GrowthOrder.NEVER else float(demand.high)
        if demand.growth_order in (GrowthOrder.NEVER, GrowthOrder.LEFTOVER) and demand.pool is None:
            high = float(demand.low)
        if demand.kind is Kind.VOLUME and demand.growth_order not in _GROWS:
            high = float(demand.low)
        steps = self._program.column(float(demand.low), high)
        if demand.kind is not Kind.VOLUME:
            self._place(at, demand, steps, high)
        return steps

    def _place(self, at: int, demand: Demand, steps: int, high: float) -> None:
        program, areas = self._program, demand.areas
        fixed = _fixed(self._problem, demand)
        amounts = []
        widest = min(high, float(max((self._problem.areas[area].size for area in areas), default=0)))
        for area in areas:
            here = self._site[at, area] = program.column(float(fixed), 1.0, integral=True)
            if demand.preferred and rank(demand.preferred, area):
                self._off[here] = rank(demand.preferred, area) * float(demand.low)
            if demand.low == high:
                self._used[area].append((here, high))
                continue
            most = min(high, float(self._problem.areas[area].size))
            amount = program.column()
            amounts.append((amount, 1.0))
            self._used[area].append((amount, 1.0))
            program.row([(amount, 1.0), (here, -most)], high=0.0)
            program.row([(amount, 1.0), (here, -float(demand.low))], low=0.0)
            if demand.legs > 1:
                program.row([(amount, 1.0), (steps, -1.0), (here, -widest)], low=-widest)
        if amounts:
            program.row([*amounts, (steps, -float(demand.legs))], low=0.0, high=0.0)
        program.row([(self._site[at, area], 1.0) for area in areas] or [(steps, 0.0)], low=demand.legs, high=demand.legs)
        for same in by_disk(self._problem.areas, areas).values():
            if len(same) > 1:
                program.row([(self._site[at, area], 1.0) for area in same], high=1.0)

    def _pool(self, at: int, pool: Pool) -> None:
        program = self._program
        free = _open_everywhere(self._problem, at, pool)
        given: list[tuple[int, float]] = []
        for area in pool.areas:
            here = self._part[at, area] = program.column(0.0, 1.0, integral=not free)
            units = program.column()
            if pool.preferred and rank(pool.preferred, area):
                self._off[units] = rank(pool.preferred, area) * float(pool.extent_size)
            most = max(self._problem.areas[area].size - pool.metadata_size, 0)
            program.row([(units, pool.extent_size), (here, -float(most))], high=0.0)
            self._used[area] += [(units, pool.extent_size), (here, pool.metadata_size)]
            given.append((units, 1.0))
        for same in by_disk(self._problem.areas, pool.areas).values():
            if len(same) > 1:
                program.row([(self._part[at, area], 1.0) for area in same], high=1.0)
        if pool.max_pvs is not None:
            program.row([(self._part[at, area], 1.0) for area in pool.areas], high=pool.max_pvs)
        given += [(self._steps[array], self._problem.demands[array].unit / pool.extent_size) for array in pool.arrays]
        program.row([*given, *((self._steps[volume], -1.0) for volume in pool.volumes)], low=-pool.kept)
        if pool.lo or pool.hi is not None:
            program.row(
                given, low=-(-pool.lo // pool.extent_size), high=FREE if pool.hi is None or pool.arrays else pool.hi // pool.extent_size
            )

    def _carry(self, at: int, boot_partition: BootPartition) -> None:
        for area, size in boot_partition.sizes:
            here = self._boot_partition[at, area] = self._program.column(0.0, 1.0, integral=True)
            self._used[area].append((here, float(size)))
        own = by_disk(self._problem.areas, [area for area, _size in boot_partition.sizes])
        carriers = [(area, self._site[demand, area]) for demand in boot_partition.demands for area in self._problem.demands[demand].areas]
        carriers += [(area, self._part[pool, area]) for pool in boot_partition.pools for area in self._problem.pools[pool].areas]
        for area, carrier in carriers:
            there = [(self._boot_partition[at, own_area], 1.0) for own_area in own.get(self._problem.areas[area].disk, [])]
            self._program.row([*there, (carrier, -1.0)], low=0.0)
        for disk in boot_partition.disks:
            there = [(self._boot_partition[at, area], 1.0) for area in own.get(disk, [])]
            self._program.row(there or [(self._steps[0], 0.0)], low=1.0)

    def _level(self, growing: list[int]) -> int:
        """Add the level of the poorest: every growing demand is at it or at its own maximum."""
        demands, program = self._problem.demands, self._program
        total = float(sum(area.size for area in self._problem.areas))
        open_weight = sum(demands[at].weight for at in growing if demands[at].high is None)
        tops = {at: float(high * demands[at].unit) for at in growing if (high := demands[at].high) is not None}
        ceiling = total / open_weight if open_weight else max(top / demands[at].weight for at, top in tops.items())
        level = program.column(0.0, ceiling)
        for at in growing:
            demand, steps = demands[at], self._steps[at]
            top = tops.get(at, FREE)
            terms = [(steps, float(demand.unit)), (level, -demand.weight)]
            if top < ceiling * demand.weight:
                full = program.column(0.0, 1.0, integral=True)
                program.row([(steps, float(demand.unit)), (full, -top)], low=0.0)
                terms.append((full, ceiling * demand.weight))
            program.row(terms, low=0.0)
        return level

    def _worth(self) -> dict[int, float]:
        """Return what everything is worth when level and preferences are settled, in MiB of disk."""
        worth: dict[int, float] = {}
        areas, spaces = len(self._problem.areas), len(self._problem.demands)
        for at, demand in enumerate(self._problem.demands):
            if demand.growth_order in _GROWS:
                worth[self._steps[at]] = float(demand.legs if demand.kind is Kind.LEGS else demand.unit)
        for (at, area), column in self._site.items():
            worth[column] = -_ORDER * area / areas * (1 - at / (spaces + 1))
        for (pool, area), column in self._part.items():
            worth[column] = -_PIECE - _ORDER * area / areas * (1 - pool / (spaces + 1))
        for (_at, area), column in self._boot_partition.items():
            worth[column] = -_PIECE - _ORDER * area / areas
        return worth

    def _placement(self, solved: Solved) -> Placement:
        values, problem = solved.values, self._problem
        parts = []
        for at, pool in enumerate(problem.pools):
            free = _open_everywhere(problem, at, pool)
            parts.append(tuple(area for area in pool.areas if free or values[self._part[at, area]] > 0.5))
        sites = []
        for at, demand in enumerate(problem.demands):
            sites.append(tuple(area for area in demand.areas if values[self._site[at, area]] > 0.5))
        return Placement(
            areas_of_demand=tuple(sites),
            pvs=tuple(parts),
            boot_partitions=tuple(
                tuple(area for area, _size in boot_partition.sizes if values[self._boot_partition[at, area]] > 0.5)
                for at, boot_partition in enumerate(problem.boot_partitions)
            ),
        )
