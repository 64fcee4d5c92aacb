# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The linear program of a disk problem: what takes room where, in columns and rows. All solvers build it here.

What is fixed is said by a `Frame`: sizes (to ask whether there is a placement for them), or the placement (to ask for its
sizes), or neither, with every constraint named and minimums that may be given up (to explain why there is no plan).

There is a plan if and only if the program at the minimums has a solution in whole MiB and extents, as nothing but minimums forces
anything to take room. Rows of the same name are one constraint for the user. With `loose` no bound of a column knows the size of
a disk or a maximum: only named rows do, or these would be missing from an explanation (a big M that is as small as it can be
hides what made it small).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ....module_utils._storage.overhead import md_reserve
from ..._common.highs import FREE, Program
from ..._common.libraries import np, npt
from .model import BootPartition, Demand, GrowthOrder, Kind, Party, Placement, Pool, Problem, Relation, by_disk, by_drive, rank

Terms = list[tuple[int, float]]


@dataclass(frozen=True)
class Frame:
    """What callers fix of the program; all sequences but `room` are by demand."""

    least: Sequence[float]
    """Units of every demand at least."""
    most: Sequence[float]
    """Units at most."""
    room: Sequence[float]
    """MiB by area."""
    placement: Placement | None = None
    """What lies where, when that is decided; boot partitions are then taken off the room already."""
    lost: Sequence[int] = ()
    """MiB that an array cannot give to its vg."""
    opened: frozenset[tuple[int, int]] = frozenset()
    """PVs (pool, area) whose metadata counts whether they are used or not."""
    whole: bool = True
    """Sizes in whole units. Otherwise metadata of a PV counts by the share of the area that it takes."""
    explains: bool = False
    """Minimums may be given up and disks may grow, as soon as the bounds of these columns are raised."""
    loose: bool = False


@dataclass
class DiskProgram:
    """The program, the names of its rows (empty: structural) and where its columns are."""

    program: Program = field(default_factory=Program)
    names: list[str] = field(default_factory=list)
    units: list[int] = field(default_factory=list)
    """By demand: the column of its size."""
    given_up: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By the name of a minimum: the column of the units given up, and the MiB of one unit."""
    grown: dict[int, int] = field(default_factory=dict)
    """By disk: the column of the MiB that it grows."""
    disk_choice: dict[tuple[int, int], int] = field(default_factory=dict)
    """By (demand, area): whether it lies there."""
    pvs: dict[tuple[int, int], int] = field(default_factory=dict)
    """By (pool, area): whether there is a PV."""
    extents: dict[tuple[int, int], int] = field(default_factory=dict)
    """By (pool, area): how many extents it has."""
    boot_partitions: dict[tuple[int, int], int] = field(default_factory=dict)

    def row(self, name: str, terms: Terms, low: float = -FREE, high: float = FREE) -> int:
        """Add a row with a name and return its position."""
        self.names.append(name)
        return self.program.row(terms, low, high)


def explaining(problem: Problem, *, loose: bool) -> DiskProgram:
    """Return the program at the minimums with everything that could be given up or grown fixed at 0."""
    lows = [float(demand.low) for demand in problem.demands]
    room = [float(area.size) for area in problem.areas]
    return build(problem, Frame([0.0] * len(lows), lows, room, explains=True, loose=loose))


def at_sizes(problem: Problem, units: Sequence[int], *, whole: bool) -> DiskProgram:
    """Return the program that asks for a placement of demands of these sizes; an array that is a PV may be larger."""
    most = [FREE if follows(demand) else float(size) for demand, size in zip(problem.demands, units)]
    return build(problem, Frame([float(size) for size in units], most, [float(area.size) for area in problem.areas], whole=whole))


def build(problem: Problem, frame: Frame) -> DiskProgram:
    """Return the program of a problem within a frame."""
    return _Builder(problem, frame).build()


def follows(demand: Demand) -> bool:
    """Return whether a demand is as large as what lies on it makes it: an array that is a PV."""
    return demand.kind is Kind.LEGS and demand.pool is not None


def size_at(demand: Demand, area: int, units: float) -> float:
    """Return the size of a demand on an area: what prefers other disks has its minimum there, for it grows on these only."""
    if demand.growth_order is GrowthOrder.PREFERRED and rank(demand.preferred, area) == len(demand.preferred):
        return min(units, float(demand.low))
    return units


def open_everywhere(problem: Problem, position: int) -> bool:
    """Return whether it costs nothing but its metadata to have a PV of the pool on every area."""
    pool = problem.pools[position]
    one_each = len({problem.areas[area].disk for area in pool.areas}) == len(pool.areas)
    carries = any(position in boot_partition.pools for boot_partition in problem.boot_partitions)
    if any(position in (*relation.one.pools, *relation.other.pools) for relation in problem.relations):
        return False
    return one_each and (pool.max_pvs is None or pool.max_pvs >= len(pool.areas)) and (not carries or len(pool.areas) <= 1)


def placement_of(problem: Problem, model: DiskProgram, values: npt.NDArray[np.float64]) -> Placement:
    """Return the placement of a solution; pools keep exactly the PVs it has, or all where one more costs nothing."""

    def chosen(columns: dict[tuple[int, int], int], position: int, areas: Sequence[int]) -> tuple[int, ...]:
        return tuple(area for area in areas if (column := columns.get((position, area))) is not None and values[column] > 0.5)

    free = [open_everywhere(problem, position) for position in range(len(problem.pools))]
    areas_of_demand = tuple(chosen(model.disk_choice, position, demand.areas) for position, demand in enumerate(problem.demands))
    pvs = tuple(pool.areas if free[position] else chosen(model.pvs, position, pool.areas) for position, pool in enumerate(problem.pools))
    boot_partitions = []
    for position, boot in enumerate(problem.boot_partitions):
        there = chosen(model.boot_partitions, position, [area for area, _size in boot.sizes])
        carrying = {area for at in boot.demands for area in areas_of_demand[at]} | {area for at in boot.pools for area in pvs[at]}
        disks = {problem.areas[area].disk for area in carrying} | set(boot.disks)
        # The program does not mind one too many.
        boot_partitions.append(tuple(area for area in there if problem.areas[area].disk in disks))
    return Placement(areas_of_demand, pvs, tuple(boot_partitions))


class _Builder:
    def __init__(self, problem: Problem, frame: Frame) -> None:
        self._problem, self._frame, self._model = problem, frame, DiskProgram()
        self._used: list[Terms] = [[] for _area in problem.areas]

    def build(self) -> DiskProgram:
        problem, model = self._problem, self._model
        for position, demand in enumerate(problem.demands):
            model.units.append(self._demand(position, demand))
        for position in range(len(problem.pools)):
            self._pool(position)
        if self._frame.placement is None:
            for position, boot_partition in enumerate(problem.boot_partitions):
                self._boot_partition(position, boot_partition)
            for relation in problem.relations:
                self._relate(relation)
        if self._frame.explains:
            for disk in sorted({area.disk for area in problem.areas}):
                model.grown[disk] = model.program.column(0.0, 0.0, integral=True)
        for area, terms in enumerate(self._used):
            disk = problem.areas[area].disk
            grown = [(model.grown[disk], -1.0)] if self._frame.explains else []
            model.row(f"disk:{problem.disk_names[disk]}" if problem.disk_names else "", [*terms, *grown], high=self._frame.room[area])
        return model

    def _demand(self, position: int, demand: Demand) -> int:
        """Add the columns and rows of a demand and return the column of its size."""
        if self._frame.placement is not None:
            least, most = self._frame.least[position], self._frame.most[position]
            units = self._model.program.column(least, max(most, least), integral=self._frame.whole)
            for area in self._frame.placement.areas_of_demand[position]:
                self._used[area].append((units, 1.0))
            return units
        if demand.kind is Kind.VOLUME:
            return self._volume(position, demand)
        if not self._frame.explains and not follows(demand):
            return self._of_fixed_size(position, demand)
        return self._single(position, demand) if demand.kind is Kind.SINGLE else self._legs(position, demand)

    def _volume(self, position: int, demand: Demand) -> int:
        least, most = self._frame.least[position], self._frame.most[position]
        units = self._model.program.column(least, most, integral=self._frame.whole)
        if self._frame.explains and demand.space is not None:
            self._bounds(demand, [(units, 1.0)])
        return units

    def _of_fixed_size(self, position: int, demand: Demand) -> int:
        size = self._frame.least[position]
        self._choose_areas(position, demand)
        for area in demand.areas:
            self._used[area].append((self._model.disk_choice[position, area], size_at(demand, area, size)))
        return self._model.program.column(size, size)

    def _single(self, position: int, demand: Demand) -> int:
        """Add one piece that would be cut but for a row that says on how many disks it lies."""
        model, amounts = self._model, []
        for area in demand.areas:
            here = model.disk_choice[position, area] = model.program.column(0.0, 1.0, integral=True)
            most = self._largest(demand.low, area)
            amount = model.program.column(0.0, most)
            model.row("", [(amount, 1.0), (here, -most)], high=0.0)
            self._used[area].append((amount, 1.0))
            amounts.append((amount, 1.0))
        here_or_there = [(model.disk_choice[position, area], 1.0) for area in demand.areas]
        model.row(f"one_disk:{demand.name}", here_or_there or [(self._nothing(), 1.0)], high=1.0)
        self._bounds(demand, amounts)
        return self._nothing()

    def _legs(self, position: int, demand: Demand) -> int:
        """Add legs that are equal where they lie, and nothing elsewhere."""
        most = float(demand.low)
        if demand.pool is not None:
            # As a PV an array may have to be larger than its own minimum: up to all that its vg needs.
            most = max(most, self._frame.least[position]) + self._most_for_pool(demand)
        units = self._model.program.column(self._frame.least[position], most, integral=self._frame.whole)
        self._choose_areas(position, demand)
        amounts = []
        for area in demand.areas:
            largest = self._largest(most, area)
            amount = self._model.program.column(0.0, largest)
            self._model.row("", [(amount, 1.0), (self._model.disk_choice[position, area], -largest)], high=0.0)
            self._model.row("", [(amount, 1.0), (units, -1.0)], high=0.0)
            self._used[area].append((amount, 1.0))
            amounts.append((amount, 1.0))
        # Nothing is more than a leg, and all together are that many: a tighter program than one that says how much a leg is at least.
        self._model.row(f"legs:{demand.name}", [*amounts, (units, -float(demand.legs))], low=0.0)
        if self._frame.explains:
            self._bounds(demand, [(units, 1.0)])
        return units

    def _largest(self, most: float, area: int) -> float:
        """Return the most that lies on an area; a program that explains may not know how large that is."""
        return most if self._frame.loose else min(most, max(0.0, self._frame.room[area]))

    def _choose_areas(self, position: int, demand: Demand) -> None:
        model = self._model
        for area in demand.areas:
            model.disk_choice[position, area] = model.program.column(0.0, 1.0, integral=True)
        here = [(model.disk_choice[position, area], 1.0) for area in demand.areas]
        model.row(f"legs:{demand.name}", here or [(self._nothing(), 1.0)], low=demand.legs, high=demand.legs)
        for areas in by_drive(self._problem, demand.areas).values():
            if len(areas) > 1 and demand.legs > 1:
                model.row("", [(model.disk_choice[position, area], 1.0) for area in areas], high=1.0)

    def _nothing(self) -> int:
        return self._model.program.column(0.0, 0.0)

    def _bounds(self, demand: Demand, size: Terms) -> None:
        name = f"min:{demand.name}"
        self._model.row(name, [*size, (self._given_up(name, demand.unit), 1.0)], low=demand.low)
        if demand.high is not None:
            self._model.row(f"max:{demand.name}", size, high=demand.high)

    def _given_up(self, name: str, unit: int) -> int:
        """Return the column of what may be given up of a minimum; all rows of one minimum share it."""
        given_up = self._model.given_up
        if name not in given_up:
            given_up[name] = (self._model.program.column(0.0, 0.0, integral=True), unit)
        return given_up[name][0]

    def _pool(self, position: int) -> None:
        frame, model, pool = self._frame, self._model, self._problem.pools[position]
        areas = pool.areas if frame.placement is None else frame.placement.pvs[position]
        need = max(1.0, self._need(pool))
        for area in areas:
            self._pv(position, pool, area, need)
        given: Terms = [(model.extents[position, area], 1.0) for area in areas]
        if frame.placement is None:
            for same in by_disk(self._problem.areas, areas).values():
                if len(same) > 1:
                    model.row("", [(model.pvs[position, area], 1.0) for area in same], high=1.0)
            if pool.max_pvs is not None:
                model.row(f"max_pvs:{pool.name}", [(model.pvs[position, area], 1.0) for area in areas], high=pool.max_pvs)
        given += [(self._array_extents(pool, array, need), 1.0) for array in pool.arrays]
        taken = [(model.units[volume], -1.0) for volume in pool.volumes]
        model.row(f"vgcap:{pool.name}" if pool.is_group else "", [*given, *taken] or [(self._nothing(), 1.0)], low=-pool.kept)
        if pool.hi is not None and given:
            model.row(f"max:{pool.name}", given, high=pool.hi // pool.extent_size)
        if pool.lo:
            name = f"min:{pool.name}"
            elastic = [(self._given_up(name, pool.extent_size), 1.0)] if frame.explains else []
            model.row(name, [*given, *elastic] or [(self._nothing(), 1.0)], low=-(-pool.lo // pool.extent_size))

    def _need(self, pool: Pool) -> float:
        """Return the most extents that are ever asked of a pool."""
        if self._frame.placement is not None:
            return FREE
        return max(sum(self._frame.most[volume] for volume in pool.volumes), -(-pool.lo // pool.extent_size))

    def _pv(self, position: int, pool: Pool, area: int, need: float) -> None:
        frame, model = self._frame, self._model
        metadata = float(pool.metadata_size)
        most = FREE if frame.loose else max(0.0, frame.room[area] - metadata) / pool.extent_size
        most = min(need, float(most // 1) if frame.whole and most < FREE else most)
        there = (position, area) in frame.opened
        is_choice = frame.whole or (frame.placement is None and not open_everywhere(self._problem, position))
        here = model.pvs[position, area] = model.program.column(float(there), 1.0, integral=is_choice)
        extents = model.extents[position, area] = model.program.column(0.0, need, integral=frame.whole)
        if not there:
            model.row("", [(extents, 1.0), (here, -most)], high=0.0)
        self._used[area] += [(extents, float(pool.extent_size)), (here, metadata)]

    def _array_extents(self, pool: Pool, array: int, need: float) -> int:
        """Add what an array that is a PV offers."""
        frame, demand, units = self._frame, self._problem.demands[array], self._model.units[array]
        extents = self._model.program.column(0.0, need, integral=frame.whole)
        lost = float(frame.lost[array]) if frame.placement is not None else float(self._array_loss(demand))
        size = float(pool.extent_size)
        self._model.row("", [(extents, size), (units, -float(demand.unit))], high=-lost)
        if frame.placement is not None and pool.hi is not None:
            # What an array offers is all in its vg, used or not.
            self._model.row("", [(extents, -size), (units, float(demand.unit))], high=lost + (size - 1.0 if frame.whole else 0.0))
        return extents

    def _most_for_pool(self, demand: Demand) -> float:
        """Return how many units an array needs at most to hold all of its vg."""
        if demand.pool is None:
            return 0.0
        pool = self._problem.pools[demand.pool]
        return -(-self._pool_mib(pool) // demand.unit) + self._array_loss(demand)

    def _pool_mib(self, pool: Pool) -> int:
        return int(self._need(pool)) * pool.extent_size

    def _array_loss(self, demand: Demand) -> int:
        """Return what of an array's capacity cannot hold extents when it is as small as its vg allows."""
        return 0 if demand.pool is None else array_loss(demand, self._pool_mib(self._problem.pools[demand.pool]))

    def _boot_partition(self, position: int, boot_partition: BootPartition) -> None:
        model, name = self._model, f"min:{boot_partition.name}"
        for area, size in boot_partition.sizes:
            here = model.boot_partitions[position, area] = model.program.column(0.0, 1.0, integral=True)
            if self._frame.explains:
                amount = model.program.column(0.0, size)
                model.row(name, [(amount, 1.0), (self._given_up(name, 1), 1.0), (here, -size)], low=0.0)
                self._used[area].append((amount, 1.0))
            else:
                self._used[area].append((here, float(size)))
        own = by_disk(self._problem.areas, [area for area, _size in boot_partition.sizes])
        for disk, column in self._carriers(boot_partition):
            there = [(model.boot_partitions[position, area], 1.0) for area in own.get(disk, [])]
            model.row(f"boot:{boot_partition.name}", [*there, (column, -1.0)], low=0.0)
        for disk in boot_partition.disks:
            there = [(model.boot_partitions[position, area], 1.0) for area in own.get(disk, [])]
            model.row(f"boot:{boot_partition.name}", there or [(self._nothing(), 1.0)], low=1.0)
        if self._frame.explains and own:
            # It stays when all that boots is given up.
            model.row(
                f"boot:{boot_partition.name}",
                [(column, 1.0) for (at, _area), column in model.boot_partitions.items() if at == position],
                low=1.0,
            )

    def _relate(self, relation: Relation) -> None:
        """Say of every drive that only one of two may lie there, or of every disk that one may only where the other does."""
        if relation.apart:
            self._keep_apart(relation)
            return
        one, other = self._presence(relation.one), self._presence(relation.other)
        for disk in sorted({*one, *other, *relation.one.disks} - relation.other.disks):
            for column in one.get(disk, []):
                self._model.row(relation.constraint, [*((there, 1.0) for there in other.get(disk, [])), (column, -1.0)], low=0.0)

    def _keep_apart(self, relation: Relation) -> None:
        of = self._problem.drive_of
        one, other = (self._presence(party, of) for party in (relation.one, relation.other))
        kept, others_kept = ({of(disk) for disk in party.disks} for party in (relation.one, relation.other))
        for drive in sorted({*one, *other}):
            own, others = one.get(drive, []), other.get(drive, [])
            for column in [*(own if drive in others_kept else []), *(others if drive in kept else [])]:
                self._model.row(relation.constraint, [(column, 1.0)], high=0.0)
            for column, other_column in itertools.product(own, others):
                self._model.row(relation.constraint, [(column, 1.0), (other_column, 1.0)], high=1.0)

    def _presence(self, party: Party, place: Callable[[int], int] = int) -> dict[int, list[int]]:
        """Return the columns that say whether any part of a party lies on a disk, by disk or by `place` of the disk."""
        problem, model = self._problem, self._model
        solid = [(area, model.disk_choice[at, area]) for at in sorted(party.demands) for area in problem.demands[at].areas]
        divided = [(area, model.pvs[at, area]) for at in sorted(party.pools) for area in problem.pools[at].areas]
        found: dict[int, list[int]] = {}
        for area, column in solid + divided:
            found.setdefault(place(problem.areas[area].disk), []).append(column)
        return found

    def _carriers(self, boot_partition: BootPartition) -> list[tuple[int, int]]:
        """Return disk and column of everything that makes a disk boot."""
        problem, model = self._problem, self._model
        solid = [(area, model.disk_choice[at, area]) for at in boot_partition.demands for area in problem.demands[at].areas]
        divided = [(area, model.pvs[at, area]) for at in boot_partition.pools for area in problem.pools[at].areas]
        return [(problem.areas[area].disk, column) for area, column in solid + divided]


def array_loss(demand: Demand, needed: int) -> int:
    """Return what of an array's capacity cannot hold extents when it is as small as `needed` MiB of extents allow."""
    return demand.unit * md_reserve(least_leg(demand, needed), demand.reserve, demand.unit) + demand.metadata_size


def least_leg(demand: Demand, needed: int) -> int:
    """Return the least MiB of a leg of an array on which `needed` MiB of extents lie."""
    needed += demand.metadata_size
    leg = max(demand.low, 1)
    while demand.unit * (leg - md_reserve(leg, demand.reserve, demand.unit)) < needed:
        leg = -(-needed // demand.unit) + md_reserve(leg, demand.reserve, demand.unit) if leg < -(-needed // demand.unit) else leg + 1
    return leg
