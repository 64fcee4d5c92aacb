# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why there is no plan: a minimal set of named constraints, how many MiB short, and what would help.

The set comes from a deletion filter (Chinneck, Dravnieks 1991) over the names of the minimum program; blocks are tried before
single names. What is short is the optimum of the elastic program, in which minimums may be given up.
"""

from __future__ import annotations

import time
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ....module_utils.storage import lvm
from ...common.highs import FREE, Limits, Solved, Undecided, maximise, maximise_with_prices
from ...common.units import format_mib
from .model import BootPartition, Demand, Kind, Pool, Problem
from .program import Minimum, loose, minimum_program, tight

_NOTHING = 1e-6
_FEW = 4
_FEW_NODES = 50


@dataclass(frozen=True)
class Reason:
    """A sentence and the data of a conflict: `short` (MiB or None), `constraints` [{name, says}], `remedies` [sentence]."""

    message: str
    data: Mapping[str, t.Any]


def explain(problem: Problem, time_limit: float = 10.0) -> Reason:
    """Return why a problem has no plan. `time_limit` (seconds) ends the search for fewer constraints; the sentence then says so."""
    limits = Limits(gap=0.0, seconds=time_limit)
    constraints, minimal = minimal_conflict(problem, limits)
    given_up = least_to_give_up(problem, limits, constraints)
    grown = least_to_grow(problem, limits)
    short = None if given_up is None else sum(given_up.values())
    said = [{"name": name, "says": _says(problem, name)} for name in constraints]
    data = {"short": short, "constraints": said, "remedies": _remedies(problem, given_up, grown)}
    missing = "" if short is None else f", {short} MiB short"
    doubt = "" if minimal else " (the time was too short to leave out all that does not matter)"
    return Reason(f"No plan{missing}: {'; '.join(_sentences(problem, said))}{doubt}", data)


def obvious_conflict(problem: Problem) -> set[str]:
    """Return names that contradict each other at first sight, not all of them needed perhaps; empty when nothing is obvious."""
    for demand in problem.demands:
        name = demand.name
        if demand.high is not None and demand.high < demand.low and demand.space is not None:
            return {f"min:{name}", f"max:{name}"}
        if demand.kind is Kind.VOLUME:
            continue
        largest: dict[int, int] = {}
        for area in demand.areas:
            disk = problem.areas[area].disk
            largest[disk] = max(largest.get(disk, 0), problem.areas[area].size)
        if sum(size >= demand.low for size in largest.values()) < demand.legs:
            return {f"min:{name}", f"one_disk:{name}", f"legs:{name}", *(f"disk:{problem.disk_names[disk]}" for disk in largest)}
    return set()


def minimal_conflict(problem: Problem, limits: Limits) -> tuple[list[str], bool]:
    """Return names of constraints that contradict each other, empty when none do, and whether all of them are needed for that."""
    model = minimum_program(problem, loose(problem))
    names = list(dict.fromkeys(name for name in model.names if name))
    suspects = [obvious_conflict(problem), _binding(model), set(names)]
    for suspected in suspects:
        if suspected and _contradict(model, suspected, limits):
            return _without_needless(model, [name for name in names if name in suspected], limits)
    return [], True


def _binding(model: Minimum) -> set[str]:
    """Return the names of the rows that bind when as little as possible is given up, whole units or not: a proof if there is one."""
    columns = [column for column, _unit in model.given_up.values()]
    for column in columns:
        model.program.upper[column] = FREE
    solved = maximise_with_prices(model.program, {column: -float(unit) for column, unit in model.given_up.values()})
    for column in columns:
        model.program.upper[column] = 0.0
    if solved is None or solved[0].objective > -_NOTHING:
        return set()
    return {name for name, price in zip(model.names, solved[1]) if name and price > _NOTHING}


def _without_needless(model: Minimum, names: Sequence[str], limits: Limits) -> tuple[list[str], bool]:
    """Leave out block after block of names as long as the rest contradicts itself; stop at the time limit."""
    end = time.monotonic() + limits.seconds
    needed: list[str] = []
    pending = list(reversed(names))
    block = max(1, len(pending) // 2)
    while pending and time.monotonic() < end:
        trial, rest = pending[:block], pending[block:]
        if _contradict(model, {*needed, *rest}, limits):
            pending = rest
        elif len(trial) == 1:
            needed.append(trial[0])
            pending = rest
        else:
            block = max(1, len(trial) // 2)
            continue
        block = max(1, min(block * 2, len(pending) // 2))
    return [name for name in names if name in needed or name in pending], not pending


def least_to_give_up(problem: Problem, limits: Limits, blamed: Sequence[str] = ()) -> dict[str, int] | None:
    """Return the MiB by which minimums must be lowered at least, by name of the minimum; None when that does not help.

    Of equal ways the one that lowers most of the blamed minimums.
    """
    model = minimum_program(problem, tight(problem))
    for column, _unit in model.given_up.values():
        model.program.upper[column] = FREE
    cost = {column: -float(unit) for column, unit in model.given_up.values()}
    solved = _or_none(model, cost, limits)
    if solved is None:
        return None
    others = {column: cost[column] for name, (column, _unit) in model.given_up.items() if name not in blamed}
    if blamed and others:
        least = sum(cost[column] * round(solved[column]) for column in cost)
        model.row("", list(cost.items()), low=least)
        solved = _or_none(model, others, replace(limits, seconds=limits.seconds / 4, nodes=_FEW_NODES)) or solved
    return {name: mib for name, (column, unit) in model.given_up.items() if (mib := round(solved[column]) * unit)}


def least_to_grow(problem: Problem, limits: Limits) -> dict[str, int] | None:
    """Return the MiB by which disks must be larger at least, by the disk's id; None when that does not help."""
    model = minimum_program(problem, loose(problem))
    for column in model.grown.values():
        model.program.upper[column] = FREE
    solved = _or_none(model, dict.fromkeys(model.grown.values(), -1.0), limits)
    if solved is None:
        return None
    return {problem.disk_names[disk]: mib for disk, column in model.grown.items() if (mib := round(solved[column]))}


def _or_none(model: Minimum, objective: Mapping[int, float], limits: Limits) -> Sequence[float] | None:
    """Return the best values; where a limit came first, also with every part opened, which costs a little and is much easier."""
    first = _tried(model, objective, limits)
    if first is not None and first.proven:
        return list(first.values)
    for column in model.part.values():
        model.program.lower[column] = 1.0
    second = _tried(model, objective, limits)
    for column in model.part.values():
        model.program.lower[column] = 0.0
    found = [solved for solved in (first, second) if solved is not None]
    return list(max(found, key=lambda solved: solved.objective).values) if found else None


def _tried(model: Minimum, objective: Mapping[int, float], limits: Limits) -> Solved | None:
    try:
        return maximise(model.program, objective, limits)
    except Undecided:
        return None


def _contradict(model: Minimum, kept: set[str], limits: Limits) -> bool:
    """Tell whether the kept constraints are proven to contradict each other."""
    program = model.program
    low, high = program.row_low, program.row_high
    program.row_low = [bound if not name or name in kept else -FREE for bound, name in zip(low, model.names)]
    program.row_high = [bound if not name or name in kept else FREE for bound, name in zip(high, model.names)]
    try:
        return maximise(program, {}, limits) is None
    except Undecided:
        return False
    finally:
        program.row_low, program.row_high = low, high


def _says(problem: Problem, name: str) -> str:
    kind, subject = name.split(":", 1)
    if kind == "disk":
        return _disk_says(problem, subject)
    for pool in problem.pools:
        if pool.name == subject and (kind in ("vgcap", "max_pvs") or (pool.metadata_size and kind in ("min", "max"))):
            return _pool_says(problem, pool, kind)
    for boot_partition in problem.boot_partitions:
        if boot_partition.name == subject:
            return _boot_partition_says(boot_partition, kind)
    return _demand_says(next(demand for demand in problem.demands if demand.name == subject and demand.space is not None), kind)


def _disk_says(problem: Problem, disk: str) -> str:
    position = problem.disk_names.index(disk)
    free = sum(area.size for area in problem.areas if area.disk == position)
    only = {pool.metadata_size for pool in problem.pools if pool.metadata_size}
    if (
        only
        and not any(demand.kind is Kind.SINGLE or demand.kind is Kind.LEGS for demand in problem.demands)
        and not problem.boot_partitions
    ):
        in_extents = sum(lvm.pv_extents(area.size, min(only)) * lvm.EXTENT for area in problem.areas if area.disk == position)
        return f"disk {disk} holds {in_extents} MiB in extents ({free} MiB without its partition table)"
    return f"disk {disk} holds {free} MiB"


def _pool_says(problem: Problem, pool: Pool, kind: str) -> str:
    members = ", ".join(problem.demands[volume].name for volume in pool.volumes if problem.demands[volume].space is not None)
    return {
        "vgcap": f"the vg {pool.name} must hold {members}",
        "max_pvs": f"the vg {pool.name} may be on {pool.max_pvs} disks at most",
        "min": f"the vg {pool.name} needs at least {pool.lo} MiB",
        "max": f"the vg {pool.name} may have {pool.hi} MiB at most",
    }[kind]


def _boot_partition_says(boot_partition: BootPartition, kind: str) -> str:
    least = max((size for _area, size in boot_partition.sizes), default=0)
    if kind == "boot":
        return f"every disk that boots needs a {boot_partition.name}"
    return f"{boot_partition.name} needs {least} MiB on every disk that boots"


def _demand_says(demand: Demand, kind: str) -> str:
    if kind == "min":
        return f"{demand.name} needs at least {demand.lo} MiB"
    if kind == "max":
        return f"{demand.name} may have {demand.hi} MiB at most"
    if kind == "legs":
        return f"{demand.name} needs {demand.legs} disks, and may use {len(demand.areas)}"
    return f"{demand.name} must lie on one disk"


def _sentences(problem: Problem, said: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the sentences of a message: many disks become one."""
    disks = [item["name"].split(":", 1)[1] for item in said if item["name"].startswith("disk:")]
    if len(disks) <= _FEW:
        return [item["says"] for item in said]
    sizes = [sum(area.size for area in problem.areas if problem.disk_names[area.disk] == disk) for disk in disks]
    others = [item["says"] for item in said if not item["name"].startswith("disk:")]
    largest, disk = max(zip(sizes, disks))
    return [*others, f"{len(disks)} disks hold {sum(sizes)} MiB, the largest of them ({disk}) {largest} MiB"]


def _remedies(problem: Problem, given_up: Mapping[str, int] | None, grown: Mapping[str, int] | None) -> list[str]:
    remedies = []
    for name, mib in (given_up or {}).items():
        space = name.split(":", 1)[1]
        minimums = [demand.lo for demand in problem.demands if demand.name == space]
        minimums += [
            size for boot_partition in problem.boot_partitions if boot_partition.name == space for _area, size in boot_partition.sizes
        ]
        wanted = max([0, *minimums, *(pool.lo for pool in problem.pools if pool.name == space)])
        remedies.append(f"reduce the minimum of {space} from {wanted} to {max(0, wanted - mib)} MiB ({format_mib(mib)} less)")
    for disk, mib in (grown or {}).items():
        size = problem.disk_sizes[problem.disk_names.index(disk)]
        remedies.append(f"use a disk of at least {size + mib} MiB instead of {disk} ({size} MiB, {format_mib(mib)} more)")
    for demand in problem.demands:
        if demand.kind is Kind.LEGS and len({problem.areas[area].disk for area in demand.areas}) < demand.legs:
            remedies.append(f"let {demand.name} use at least {demand.legs} disks, or plan it with fewer legs")
    return remedies
