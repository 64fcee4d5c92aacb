# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A minimal set of named constraints that contradict each other.

What is seen at first sight, or adds up to too much (`shortage`), needs no program. For the rest a deletion filter (Chinneck,
Dravnieks 1991) leaves out block after block of names as long as what is left still contradicts itself, which mostly quick proofs and
rules decide (`place`). What is needed of disks or pieces that are alike need not be asked of each. All limits are counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace

from ..._common.highs import FREE, Limits, Undecided, maximise
from ..place.search import Search
from ..problem.model import Demand, Kind, Party, Pool, Problem, by_drive
from ..problem.program import DiskProgram, at_sizes, explaining, follows
from .shortage import Sums, summed_conflict

_PROGRAMS = 400
_FEW_NODES = 50
_RESTRICTIONS = 20
LIMITS = Limits(gap=1.0, nodes=_FEW_NODES)


def obvious_conflict(problem: Problem) -> list[str]:
    """Return the names of a minimal conflict that can be seen at first sight; empty when there is none."""
    for demand in problem.demands:
        name = demand.name
        if demand.high is not None and demand.high < demand.low and demand.space is not None:
            return [f"min:{name}", f"max:{name}"]
        if demand.kind is not Kind.VOLUME and (found := _too_large(problem, demand)):
            return found
    return []


def _too_large(problem: Problem, demand: Demand) -> list[str]:
    """Return why a whole piece, or a leg, lies on no disk: each of these disks would do if it were large enough."""
    largest = {drive: max(problem.areas[area].size for area in areas) for drive, areas in by_drive(problem, demand.areas).items()}
    if sum(size >= demand.low for size in largest.values()) >= demand.legs:
        return []
    if len(largest) < demand.legs:
        return [f"legs:{demand.name}"] if demand.kind is Kind.LEGS else [f"min:{demand.name}"]
    small = sorted(largest, key=lambda drive: (largest[drive], drive))[: len(largest) - demand.legs + 1]
    on_them = {problem.areas[area].disk for drive, areas in by_drive(problem, demand.areas).items() if drive in small for area in areas}
    disks = [f"disk:{problem.disk_names[disk]}" for disk in sorted(on_them)]
    if demand.kind is Kind.LEGS:
        return [f"legs:{demand.name}", f"min:{demand.name}", *disks]
    in_pieces = sum(problem.areas[area].size for area in demand.areas)
    return [*([f"one_disk:{demand.name}"] if in_pieces >= demand.low else []), f"min:{demand.name}", *disks]


def minimal_conflict(problem: Problem, sums: Sums | None = None) -> tuple[list[str], bool]:
    """Return names of constraints that contradict each other, empty when none do, and whether all of them are needed for that."""
    found = obvious_conflict(problem)
    if found:
        return found, True
    summed = summed_conflict(sums or Sums(problem))
    if summed and not _may_hide_another(problem, summed):
        return summed, True
    return _Filter(problem).run(summed)


def _may_hide_another(problem: Problem, summed: Sequence[str]) -> bool:
    """Return whether a few of what adds up to too much may be too much by themselves: legs lie apart, one name may be on many disks."""
    names = [demand.name for demand in problem.demands if f"min:{demand.name}" in summed]
    return len(set(names)) < len(names) or any(name.startswith("legs:") for name in summed)


def needed_restrictions(problem: Problem, constraints: Collection[str], spaces: Iterable[str]) -> list[str]:
    """Return the spaces whose restriction to some disks is needed for a conflict; without those of the others it is still one.

    After a limit of spaces the rest are returned as they are.
    """
    kept, needed = set(constraints), []
    for number, space in enumerate(spaces):
        relaxed = _on_any_disk(problem, space)
        if number < _RESTRICTIONS and _Filter(relaxed).contradict(kept):
            problem = relaxed
        else:
            needed.append(space)
    return needed


def _on_any_disk(problem: Problem, space: str) -> Problem:
    """Return the problem in which a space may use all disks; what is on every one of its disks would only be on more of them."""
    everywhere = tuple(range(len(problem.areas)))
    named = [demand for demand in problem.demands if demand.name == space and demand.areas]
    if len(named) > 1 and all(demand.kind is Kind.SINGLE for demand in named):
        return problem
    boots = tuple(
        replace(boot, sizes=tuple((area, dict(boot.sizes).get(area, max(size for _area, size in boot.sizes))) for area in everywhere))
        if boot.name == space and boot.sizes
        else boot
        for boot in problem.boot_partitions
    )
    return replace(
        problem,
        demands=tuple(replace(demand, areas=everywhere) if demand in named else demand for demand in problem.demands),
        pools=tuple(replace(pool, areas=everywhere) if pool.name == space and pool.areas else pool for pool in problem.pools),
        boot_partitions=boots,
    )


class _Filter:
    """The deletion filter over one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._model = explaining(problem, loose=True)
        self._by_program = any(follows(demand) for demand in problem.demands)
        names = dict.fromkeys(name for name in self._model.names if name)
        self._names = sorted(names, key=self._size)
        self._programs = _PROGRAMS

    def run(self, known: Sequence[str] = ()) -> tuple[list[str], bool]:
        """Return a minimal part of a known conflict, or of all names, and whether it is sure that it is minimal."""
        for suspected in (set(known), self._suspected(), set(self._names)):
            if suspected and self.contradict(suspected):
                kept, minimal = self._without_needless([name for name in self._names if name in suspected], suspected == set(known))
                return [name for name in dict.fromkeys(self._model.names) if name in kept], minimal
        return [], True

    def _size(self, name: str) -> tuple[bool, int]:
        """Return the order in which names are left out: small minimums first, then the rest, large disks first."""
        problem, (kind, subject) = self._problem, name.split(":", 1)
        if kind == "disk":
            return True, -max(area.size for area in problem.areas if problem.disk_names[area.disk] == subject)
        least = [demand.low * demand.unit for demand in problem.demands if demand.name == subject]
        return kind != "min", max(least, default=0)

    def _suspected(self) -> set[str]:
        """Return the names whose demands prove quickly that there is no placement; empty without such a proof."""
        problem = self._problem
        blamed = Search(problem).impossible([demand.low for demand in problem.demands])
        owners = {problem.demands[at].name for at in blamed}
        owners |= {pool.name for pool in problem.pools if blamed & {*pool.volumes, *pool.arrays}}
        return {name for name in self._names if blamed and (name.startswith("disk:") or name.split(":", 1)[1] in owners)}

    def _without_needless(self, names: Sequence[str], known: bool) -> tuple[set[str], bool]:
        """Leave out block after block of names as long as the rest contradicts itself; stop after a limit of programs."""
        needed: set[str] = set()
        pending = self._relevant(names, set(names))
        # Of what is known to be a conflict most is needed.
        block = 1 if known else max(1, len(pending) // 2)
        while pending and self._programs:
            self._programs -= 1
            trial, rest = pending[:block], pending[block:]
            if self.contradict({*needed, *rest}):
                pending = self._relevant(rest, {*needed, *rest})
                block = max(1, min(block * 2, len(pending) // 2))
            elif len(trial) == 1:
                needed |= {trial[0], *self._needed_as_well(trial[0], rest, {*needed, *pending})}
                pending = [name for name in rest if name not in needed]
            else:
                block = max(1, len(trial) // 2)
        return {*needed, *pending}, not pending

    def _relevant(self, names: Iterable[str], kept: set[str]) -> list[str]:
        """Leave out names that say nothing when others are gone: how a space lies that needs nothing, disks that nobody needs."""
        if self._by_program:
            return list(names)
        reduced = reduced_to(self._problem, kept)
        there = {demand.name for demand in reduced.demands} | {pool.name for pool in reduced.pools}
        there |= {boot.name for boot in reduced.boot_partitions}
        used = {area for demand in reduced.demands for area in demand.areas} | {area for pool in reduced.pools for area in pool.areas}
        used |= {area for boot in reduced.boot_partitions for area, _size in boot.sizes}
        disks = {self._problem.disk_names[self._problem.areas[area].disk] for area in used}
        return [name for name in names if name.split(":", 1)[1] in (disks if name.startswith("disk:") else there)]

    def _needed_as_well(self, name: str, others: Sequence[str], kept: set[str]) -> list[str]:
        """Return what is needed as one of the others is: smaller disks like it, and larger pieces, which could take its place."""
        kind = name.split(":", 1)[0]
        if self._by_program or kind not in ("disk", "min"):
            return []
        likeness = self._likeness(kept)
        if name not in likeness:
            return []
        like, size = likeness[name]
        alike = [(other, likeness[other][1]) for other in others if other in likeness and likeness[other][0] == like]
        return [other for other, own in alike if (own <= size if kind == "disk" else own >= size)]

    def _likeness(self, kept: set[str]) -> dict[str, tuple[object, int]]:
        """Return of disks with one area, and of minimums with one demand, what they are alike in, and their size."""
        problem = self._problem
        found: dict[str, tuple[object, int]] = {}
        claims: list[list[object]] = [[] for _area in problem.areas]
        for number, areas in enumerate([*(demand.areas for demand in problem.demands), *(pool.areas for pool in problem.pools)]):
            for area in areas:
                claims[area].append(number)
        for number, boot in enumerate(problem.boot_partitions):
            for area, size in boot.sizes:
                claims[area].append((number, size, problem.areas[area].disk in boot.disks))
        for relation in problem.relations:
            for position, here in enumerate(problem.areas):
                claims[position].append((here.disk in relation.one.disks, here.disk in relation.other.disks))
        drives = Counter(problem.drive_of(area.disk) for area in problem.areas)
        for position, one in enumerate(problem.areas):
            if drives[problem.drive_of(one.disk)] == 1:
                found[f"disk:{problem.disk_names[one.disk]}"] = ("disk", tuple(claims[position])), one.size
        names = [demand.name for demand in problem.demands]
        for at, demand in enumerate(problem.demands):
            if names.count(demand.name) == 1 and demand.space is not None:
                boots = tuple(number for number, boot in enumerate(problem.boot_partitions) if at in boot.demands)
                ways = tuple(f"{way}:{demand.name}" in kept for way in ("one_disk", "legs", "max"))
                ways += tuple(at in relation.one.demands | relation.other.demands for relation in problem.relations)
                found[f"min:{demand.name}"] = (demand.kind, demand.areas, demand.legs, demand.unit, demand.pool, boots, ways), demand.low
        return found

    def contradict(self, kept: set[str]) -> bool:
        """Return whether the kept constraints are proven to contradict each other."""
        if self._by_program:
            return self._contradict_by_program(kept)
        reduced = reduced_to(self._problem, kept)
        if obvious_conflict(reduced):
            return True
        lows = [demand.low for demand in reduced.demands]
        search = Search(reduced)
        if search.impossible(lows):
            return True
        return search.pack(lows) is None and _infeasible(at_sizes(reduced, lows, whole=True))

    def _contradict_by_program(self, kept: set[str]) -> bool:
        program = self._model.program
        low, high = program.row_low, program.row_high
        program.row_low = [bound if not name or name in kept else -FREE for bound, name in zip(low, self._model.names)]
        program.row_high = [bound if not name or name in kept else FREE for bound, name in zip(high, self._model.names)]
        try:
            return _infeasible(self._model)
        finally:
            program.row_low, program.row_high = low, high


def _infeasible(model: DiskProgram) -> bool:
    try:
        return maximise(model.program, {}, LIMITS) is None
    except Undecided:
        return False


def reduced_to(problem: Problem, kept: Container[str]) -> Problem:
    """Return the problem in which only the kept constraints hold: the others need nothing, hold all, or may be cut."""
    endless = 1 + sum(demand.low * max(demand.unit, demand.legs) for demand in problem.demands) + sum(area.size for area in problem.areas)
    areas = [area if f"disk:{problem.disk_names[area.disk]}" in kept else replace(area, size=endless) for area in problem.areas]
    there = [at for at, demand in enumerate(problem.demands) if _still_needs(problem, demand, kept)]
    number = {at: position for position, at in enumerate(there)}
    demands, pools = [], [_reduced_pool(pool, number, kept) for pool in problem.pools]
    cut: dict[int, int] = {}
    for at in there:
        demand = problem.demands[at]
        demand = demand if f"max:{demand.name}" in kept else replace(demand, hi=None)
        if demand.kind is Kind.SINGLE and f"one_disk:{demand.name}" not in kept:
            cut[at] = len(pools)
            pools.append(Pool(demand.name, -1, 1, 0, demand.areas, volumes=(number[at],)))
            demand = replace(demand, kind=Kind.VOLUME, areas=(), pool=cut[at])
        demands.append(demand)
    boots = []
    for boot in problem.boot_partitions:
        if f"boot:{boot.name}" in kept:
            sizes = boot.sizes if f"min:{boot.name}" in kept else tuple((area, 0) for area, _size in boot.sizes)
            solid = tuple(number[at] for at in boot.demands if at in number and at not in cut)
            boots.append(replace(boot, sizes=sizes, demands=solid, pools=(*boot.pools, *(cut[at] for at in boot.demands if at in cut))))

    def left_of(party: Party) -> Party:
        solid = frozenset(number[at] for at in party.demands if at in number and at not in cut)
        return replace(party, demands=solid, pools=party.pools | {cut[at] for at in party.demands if at in cut})

    relations = [
        replace(relation, one=left_of(relation.one), other=left_of(relation.other))
        for relation in problem.relations
        # With what may lie anywhere in pieces, or needs nothing, nobody can be together.
        if relation.constraint in kept and (relation.apart or relation.other.demands <= number.keys() - cut.keys())
    ]
    return replace(
        problem,
        areas=tuple(areas),
        demands=tuple(demands),
        pools=tuple(pools),
        boot_partitions=tuple(boots),
        relations=tuple(relations),
    )


def _still_needs(problem: Problem, demand: Demand, kept: Container[str]) -> bool:
    if follows(demand):
        return True
    if demand.space is None or f"min:{demand.name}" not in kept:
        return False
    if demand.kind is Kind.VOLUME:
        return demand.pool is None or f"vgcap:{problem.pools[demand.pool].name}" in kept or not problem.pools[demand.pool].is_group
    return demand.kind is Kind.SINGLE or f"legs:{demand.name}" in kept


def _reduced_pool(pool: Pool, number: Mapping[int, int], kept: Container[str]) -> Pool:
    return replace(
        pool,
        volumes=tuple(number[at] for at in pool.volumes if at in number),
        arrays=tuple(number[at] for at in pool.arrays),
        max_pvs=pool.max_pvs if f"max_pvs:{pool.name}" in kept else None,
        lo=pool.lo if f"min:{pool.name}" in kept else 0,
        hi=pool.hi if f"max:{pool.name}" in kept else None,
    )
