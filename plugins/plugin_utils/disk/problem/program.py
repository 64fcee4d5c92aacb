# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The problem at its minimums, in whole MiB and extents, every constraint with a name.

There is a plan if and only if this program has a solution, as nothing but minimums forces anything to take room. Rows of the
same name are one constraint for the user. No bound of a column knows the size of a disk or a maximum: only named rows do, or
these would be missing from an explanation (a big M that is as small as it can be hides what made it small).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ....module_utils.storage.overhead import md_reserve
from ...common.highs import FREE, Program
from ...common.libraries import np, npt
from .model import BootPartition, Demand, Kind, Placement, Pool, Problem, by_disk, pool_minimum

Terms = list[tuple[int, float]]


@dataclass
class Minimum:
    """The program, the names of its rows (empty: structural) and where its columns are."""

    program: Program = field(default_factory=Program)
    names: list[str] = field(default_factory=list)
    given_up: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By the name of a minimum: the column of what is given up, and MiB of one unit of it."""
    grown: dict[int, int] = field(default_factory=dict)
    """By disk: the column of the MiB that it grows."""
    site: dict[tuple[int, int], int] = field(default_factory=dict)
    part: dict[tuple[int, int], int] = field(default_factory=dict)
    boot_partition: dict[tuple[int, int], int] = field(default_factory=dict)

    def row(self, name: str, terms: Terms, low: float = -FREE, high: float = FREE) -> None:
        """Add a row with a name."""
        self.program.row(terms, low, high)
        self.names.append(name)


def loose(problem: Problem) -> list[float]:
    """Return what a part may take of each area as far as columns are concerned: anything, so that only rows know the disks."""
    return [FREE for _area in problem.areas]


def tight(problem: Problem) -> list[float]:
    """Return the same as small as it can be, which solves faster and explains nothing."""
    return [float(area.size) for area in problem.areas]


def minimum_program(problem: Problem, reach: Sequence[float]) -> Minimum:
    """Return the program with everything that could be given up or grown fixed at 0; `reach` is `loose` or `tight`."""
    model = Minimum()
    used: dict[int, Terms] = {area: [] for area in range(len(problem.areas))}
    steps = {}
    for at, demand in enumerate(problem.demands):
        if demand.kind is Kind.SINGLE:
            _single(model, used, at, demand)
        elif demand.kind is Kind.LEGS:
            steps[at] = _legs(model, used, problem, at, demand)
        else:
            steps[at] = _volume(model, demand)
    for position in range(len(problem.pools)):
        _pool(model, used, problem, steps, reach, position)
    for position, boot_partition in enumerate(problem.boot_partitions):
        _boot_partition(model, used, problem, position, boot_partition)
    for disk in sorted({area.disk for area in problem.areas}):
        model.grown[disk] = model.program.column(0.0, 0.0, integral=True)
    for area, terms in used.items():
        disk = problem.areas[area].disk
        model.row(f"disk:{problem.disk_names[disk]}", [*terms, (model.grown[disk], -1.0)], high=problem.areas[area].size)
    return model


def choice_of(problem: Problem, model: Minimum, values: npt.NDArray[np.float64]) -> Placement:
    """Return the placement of a solution; pools keep exactly the parts it has."""
    sites = [tuple(area for area in demand.areas if values[model.site[at, area]] > 0.5) for at, demand in _placed(problem)]
    by_position = dict(zip((at for at, _demand in _placed(problem)), sites))
    return Placement(
        areas_of_demand=tuple(by_position.get(at, ()) for at in range(len(problem.demands))),
        pvs=tuple(tuple(area for area in pool.areas if values[model.part[at, area]] > 0.5) for at, pool in enumerate(problem.pools)),
        boot_partitions=tuple(
            tuple(area for area, _size in boot_partition.sizes if values[model.boot_partition[at, area]] > 0.5)
            for at, boot_partition in enumerate(problem.boot_partitions)
        ),
    )


def _placed(problem: Problem) -> list[tuple[int, Demand]]:
    return [(at, demand) for at, demand in enumerate(problem.demands) if demand.kind is not Kind.VOLUME]


def _less(model: Minimum, name: str, unit: int) -> int:
    """Return the column of what may be given up of a minimum; all rows of one minimum share it."""
    if name not in model.given_up:
        model.given_up[name] = (model.program.column(0.0, 0.0, integral=True), unit)
    return model.given_up[name][0]


def _single(model: Minimum, used: dict[int, Terms], at: int, demand: Demand) -> None:
    amounts = []
    for area in demand.areas:
        here = model.site[at, area] = model.program.column(0.0, 1.0, integral=True)
        amount = model.program.column(0.0, demand.low)
        model.row("", [(amount, 1.0), (here, -demand.low)], high=0.0)
        used[area].append((amount, 1.0))
        amounts.append((amount, 1.0))
    model.row(f"one_disk:{demand.name}", [(model.site[at, area], 1.0) for area in demand.areas], high=1.0)
    model.row(f"min:{demand.name}", [*amounts, (_less(model, f"min:{demand.name}", 1), 1.0)], low=demand.low)
    if demand.high is not None:
        model.row(f"max:{demand.name}", amounts, high=demand.high)


def _legs(model: Minimum, used: dict[int, Terms], problem: Problem, at: int, demand: Demand) -> int:
    # As a PV an array may have to be larger than its own minimum: up to all that its vg needs.
    most = float(demand.low)
    if demand.pool is not None:
        pool = problem.pools[demand.pool]
        most += -(-pool_minimum(problem, pool) * pool.extent_size // demand.unit) + _array_loss(problem, demand)
    step = model.program.column(0.0, most, integral=True)
    for area in demand.areas:
        here = model.site[at, area] = model.program.column(0.0, 1.0, integral=True)
        amount = model.program.column(0.0, most)
        model.row("", [(amount, 1.0), (step, -1.0), (here, -most)], low=-most)
        used[area].append((amount, 1.0))
    for areas in by_disk(problem.areas, demand.areas).values():
        model.row("", [(model.site[at, area], 1.0) for area in areas], high=1.0)
    legs = [(model.site[at, area], 1.0) for area in demand.areas]
    model.row(f"legs:{demand.name}", legs or [(step, 0.0)], low=demand.legs, high=demand.legs)
    model.row(f"min:{demand.name}", [(step, 1.0), (_less(model, f"min:{demand.name}", demand.unit), 1.0)], low=demand.low)
    if demand.high is not None:
        model.row(f"max:{demand.name}", [(step, 1.0)], high=demand.high)
    return step


def _volume(model: Minimum, demand: Demand) -> int:
    step = model.program.column(0.0, demand.low, integral=True)
    if demand.space is not None:
        model.row(f"min:{demand.name}", [(step, 1.0), (_less(model, f"min:{demand.name}", demand.unit), 1.0)], low=demand.low)
        if demand.high is not None:
            model.row(f"max:{demand.name}", [(step, 1.0)], high=demand.high)
    return step


def _pool(model: Minimum, used: dict[int, Terms], problem: Problem, steps: dict[int, int], reach: Sequence[float], position: int) -> None:
    pool = problem.pools[position]
    need = max(1, pool_minimum(problem, pool))
    given: Terms = []
    for area in pool.areas:
        here = model.part[position, area] = model.program.column(0.0, 1.0, integral=True)
        units = model.program.column(0.0, need, integral=True)
        model.row("", [(units, 1.0), (here, -min(float(need), reach[area] / pool.extent_size))], high=0.0)
        used[area] += [(units, pool.extent_size), (here, pool.metadata_size)]
        given.append((units, 1.0))
    for areas in by_disk(problem.areas, pool.areas).values():
        if len(areas) > 1:
            model.row("", [(model.part[position, area], 1.0) for area in areas], high=1.0)
    if pool.max_pvs is not None:
        model.row(f"max_pvs:{pool.name}", [(model.part[position, area], 1.0) for area in pool.areas], high=pool.max_pvs)
    for array in pool.arrays:
        given.append((_array_units(model, problem, steps[array], problem.demands[array], pool), 1.0))
    taken = [(steps[volume], -1.0) for volume in pool.volumes]
    divisible = pool.metadata_size == 0 and pool.extent_size == 1
    model.row("" if divisible else f"vgcap:{pool.name}", [*given, *taken], low=-pool.kept)
    if pool.hi is not None:
        model.row(f"max:{pool.name}", given, high=pool.hi // pool.extent_size)
    if pool.lo:
        name = f"min:{pool.name}"
        model.row(name, [*given, (_less(model, name, pool.extent_size), 1.0)], low=-(-pool.lo // pool.extent_size))


def _array_loss(problem: Problem, demand: Demand) -> int:
    """Return what of an array's capacity cannot hold extents when it is as small as its vg allows."""
    if demand.pool is None:
        return 0
    pool = problem.pools[demand.pool]
    needed = pool_minimum(problem, pool) * pool.extent_size + demand.metadata_size
    leg = max(demand.low, 1)
    while demand.unit * (leg - md_reserve(leg, demand.reserve, demand.unit)) < needed:
        leg = -(-needed // demand.unit) + md_reserve(leg, demand.reserve, demand.unit) if leg < -(-needed // demand.unit) else leg + 1
    return demand.unit * md_reserve(leg, demand.reserve, demand.unit) + demand.metadata_size


def _array_units(model: Minimum, problem: Problem, step: int, demand: Demand, pool: Pool) -> int:
    units = model.program.column(0.0, max(1, pool_minimum(problem, pool)), integral=True)
    model.row("", [(units, pool.extent_size), (step, -demand.unit)], high=-_array_loss(problem, demand))
    return units


def _boot_partition(model: Minimum, used: dict[int, Terms], problem: Problem, position: int, boot_partition: BootPartition) -> None:
    name = f"min:{boot_partition.name}"
    for area, size in boot_partition.sizes:
        here = model.boot_partition[position, area] = model.program.column(0.0, 1.0, integral=True)
        amount = model.program.column(0.0, size)
        model.row(name, [(amount, 1.0), (_less(model, name, 1), 1.0), (here, -size)], low=0.0)
        used[area].append((amount, 1.0))
    own = by_disk(problem.areas, [area for area, _size in boot_partition.sizes])
    for disk, column in _carried(problem, model, boot_partition):
        there = [(model.boot_partition[position, area], 1.0) for area in own.get(disk, [])]
        model.row(f"boot:{boot_partition.name}", [*there, (column, -1.0)], low=0.0)
    for disk in boot_partition.disks:
        there = [(model.boot_partition[position, area], 1.0) for area in own.get(disk, [])]
        model.row(f"boot:{boot_partition.name}", there, low=1.0)


def _carried(problem: Problem, model: Minimum, boot_partition: BootPartition) -> list[tuple[int, int]]:
    """Return disk and column of everything that makes a disk boot."""
    carriers = [(problem.areas[area].disk, model.site[at, area]) for at in boot_partition.demands for area in problem.demands[at].areas]
    carriers += [(problem.areas[area].disk, model.part[at, area]) for at in boot_partition.pools for area in problem.pools[at].areas]
    return carriers
