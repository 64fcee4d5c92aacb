# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why there is no plan: a minimal set of named constraints, how many MiB short, and what would help.

What only adds up to too much is answered by a minimum cut (`shortage`), whatever the number of spaces and disks. For the rest the set
comes from a deletion filter (Chinneck, Dravnieks 1991) over the names of the program's rows, begun with those that bind its
linear relaxation; blocks are tried before single names. What is short is the optimum of the elastic program, in which minimums
may be given up. All limits are counts.
"""

from __future__ import annotations

import math
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ....module_utils.storage import lvm
from ...common.highs import FREE, Limits, Solved, Undecided, maximise, maximise_with_prices
from ...common.units import format_mib
from ..problem.model import BootPartition, Demand, Kind, Pool, Problem
from ..problem.program import DiskProgram, at_sizes, explaining
from .shortage import is_divisible, least_given_up, summed_conflict

_NOTHING = 1e-6
_NOISE = 1e-4
_TIE = 1e-7
_FEW = 4
_NAMED = 3
_FEW_NODES = 50
_MOST_COLUMNS = 100
_SHARES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_PROGRAMS = 400
LIMITS = Limits(gap=0.0, seconds=FREE, nodes=_FEW_NODES)


@dataclass(frozen=True)
class Reason:
    """A sentence and the data of a conflict: `short` (MiB or None), `constraints` [{name, says}], `remedies` [sentence]."""

    message: str
    data: Mapping[str, t.Any]


def explain(problem: Problem) -> Reason:
    """Return why a problem has no plan. Where a limit ended the search for fewer constraints, the sentence says so."""
    nowhere = _without_disks(problem)
    if nowhere:
        return nowhere
    constraints, minimal = minimal_conflict(problem)
    given_up = least_to_give_up(problem, constraints)
    grown = least_to_grow(problem, constraints)
    short = None if given_up is None else sum(given_up.values())
    said = [{"name": name, "says": _says(problem, name)} for name in constraints]
    said += _restrictions(problem, constraints)
    data = {"short": short, "constraints": said, "remedies": _remedies(problem, given_up, grown)}
    missing = "" if short is None else f", {short} MiB short"
    doubt = "" if minimal else " (the search ended before all was left out that does not matter)"
    return Reason(f"No plan{missing}: {'; '.join(_sentences(problem, said))}{doubt}", data)


def _without_disks(problem: Problem) -> Reason | None:
    """Return the reason when what must be made may use no disk at all."""
    restricted = dict(problem.restrictions)
    lost = [demand for demand in problem.demands if demand.kind is not Kind.VOLUME and not demand.areas and demand.space is not None]
    lost_names = [demand.name for demand in lost if demand.lo > 0]
    for pool in problem.pools:
        needed = pool.lo > 0 or any(problem.demands[at].lo > 0 for at in pool.volumes)
        if needed and not pool.areas and not pool.arrays and not pool.kept:
            lost_names.append(pool.name)
    said = [{"name": f"disks:{name}", "says": f"{restricted[name]} names no disk for {name}"} for name in lost_names if name in restricted]
    if not said:
        return None
    remedies = [f"let {item['name'].split(':', 1)[1]} use disks that this machine has" for item in said]
    return Reason(f"No plan: {'; '.join(item['says'] for item in said)}", {"short": None, "constraints": said, "remedies": remedies})


def _restrictions(problem: Problem, constraints: Sequence[str]) -> list[dict[str, str]]:
    """Return `disks:` of those in a conflict that may not use all disks: with these out of the way there would be more room."""
    restricted = dict(problem.restrictions)
    involved = dict.fromkeys(name.split(":", 1)[1] for name in constraints if not name.startswith("disk:"))
    contradictory = any(name.startswith("max:") and f"min:{name[4:]}" in constraints for name in constraints) and len(constraints) == 2
    found = []
    for name in involved if not contradictory else ():
        if name in restricted:
            areas = {area for demand in problem.demands if demand.name == name for area in demand.areas}
            areas |= {area for pool in problem.pools if pool.name == name for area in pool.areas}
            areas |= {area for boot in problem.boot_partitions if boot.name == name for area, _size in boot.sizes}
            disks = sorted({problem.disk_names[problem.areas[area].disk] for area in areas})
            listed = ", ".join(disks[:_FEW]) + (f" and {len(disks) - _FEW} more" if len(disks) > _FEW else "")
            found.append({"name": f"disks:{name}", "says": f"{name} may use {listed} only ({restricted[name]})"})
    return found


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


def minimal_conflict(problem: Problem) -> tuple[list[str], bool]:
    """Return names of constraints that contradict each other, empty when none do, and whether all of them are needed for that."""
    obvious = obvious_conflict(problem)
    summed = [] if obvious else summed_conflict(problem)
    if summed:
        return summed, True
    model = explaining(problem, loose=True)
    names = list(dict.fromkeys(name for name in model.names if name))
    for suspected in (obvious, _binding(model), set(names)):
        if suspected and _contradict(model, suspected):
            return _without_needless(model, [name for name in names if name in suspected])
    return [], True


def _binding(model: DiskProgram) -> set[str]:
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


def _without_needless(model: DiskProgram, names: Sequence[str]) -> tuple[list[str], bool]:
    """Leave out block after block of names as long as the rest contradicts itself; stop after so many programs."""
    needed: list[str] = []
    pending = list(reversed(names))
    block = max(1, len(pending) // 2)
    programs = _PROGRAMS
    while pending and programs:
        programs -= 1
        trial, rest = pending[:block], pending[block:]
        if _contradict(model, {*needed, *rest}):
            pending = rest
        elif len(trial) == 1:
            needed.append(trial[0])
            pending = rest
        else:
            block = max(1, len(trial) // 2)
            continue
        block = max(1, min(block * 2, len(pending) // 2))
    return [name for name in names if name in needed or name in pending], not pending


def least_to_give_up(problem: Problem, blamed: Sequence[str] = ()) -> dict[str, int] | None:
    """Return the MiB by which minimums must be lowered at least, by name of the minimum; None when that does not help.

    Of equal ways the one that lowers most of the blamed minimums.
    """
    if is_divisible(problem):
        return least_given_up(problem, blamed)
    model = explaining(problem, loose=False)
    for column, _unit in model.given_up.values():
        model.program.upper[column] = FREE
    # A little dearer than what is blamed, so that of equals that is lowered.
    dearer = {name: 1.0 if name in blamed or not blamed else 1.0 + _TIE for name in model.given_up}
    cost = {column: -float(unit) * dearer[name] for name, (column, unit) in model.given_up.items()}
    relaxed = maximise_with_prices(model.program, cost)
    if relaxed is None:
        return None
    units = {name: math.ceil(relaxed[0].values[column] - _NOISE) for name, (column, _unit) in model.given_up.items()}
    found = {name: count * model.given_up[name][1] for name, count in units.items() if count}
    least = -relaxed[0].objective / (1.0 + _TIE) - _NOISE
    if sum(found.values()) < least + min((model.given_up[name][1] for name in found), default=1) and _fits(problem, found, {}):
        return found
    if _is_large(problem):
        return _lowered_until_it_fits(problem, found)
    solved = _or_none(model, cost)
    if solved is None:
        return None
    return {name: mib for name, (column, unit) in model.given_up.items() if (mib := round(solved[column]) * unit)}


def _is_large(problem: Problem) -> bool:
    """Tell whether the least for whole pieces would take too many nodes; then it is sought from the least for pieces on."""
    return sum(len(demand.areas) for demand in problem.demands) > _MOST_COLUMNS


def _lowered_until_it_fits(problem: Problem, found: dict[str, int]) -> dict[str, int] | None:
    """Return the least for what could be cut, raised in steps until there is a plan with whole pieces."""
    minimums = {f"min:{demand.name}": demand.lo for demand in problem.demands if demand.space is not None}
    for share in _SHARES:
        raised = {name: min(minimums.get(name, mib), mib + math.ceil(share * minimums.get(name, mib))) for name, mib in found.items()}
        if _fits(problem, raised, {}):
            return raised
    return None


def _grown_until_it_fits(problem: Problem, found: dict[int, int]) -> dict[str, int] | None:
    for share in _SHARES:
        raised = {disk: mib + math.ceil(share * problem.disk_sizes[disk]) for disk, mib in found.items()}
        if _fits(problem, {}, raised):
            return {problem.disk_names[disk]: mib for disk, mib in raised.items()}
    return None


def _fits(problem: Problem, given_up: Mapping[str, int], grown: Mapping[int, int]) -> bool:
    """Tell whether there is a plan when minimums are lower by so many MiB, and disks larger."""
    left = dict(given_up)
    demands = []
    for demand in problem.demands:
        less = min(left.get(f"min:{demand.name}", 0), demand.lo) if demand.space is not None else 0
        left[f"min:{demand.name}"] = left.get(f"min:{demand.name}", 0) - less
        demands.append(replace(demand, lo=demand.lo - less))
    pools = tuple(replace(pool, lo=max(0, pool.lo - left.get(f"min:{pool.name}", 0))) for pool in problem.pools)
    areas = tuple(replace(area, size=area.size + grown.get(area.disk, 0)) for area in problem.areas)
    lowered = replace(problem, demands=tuple(demands), pools=pools, areas=areas)
    try:
        model = at_sizes(lowered, [demand.low for demand in demands], whole=True)
        return maximise(model.program, {}, replace(LIMITS, gap=1.0)) is not None
    except Undecided:
        return False


def least_to_grow(problem: Problem, blamed: Sequence[str] = ()) -> dict[str, int] | None:
    """Return the MiB by which disks must be larger at least, by the disk's id; None when that does not help."""
    if is_divisible(problem) and (grown := _grown_disk(problem, blamed or summed_conflict(problem))) is not None:
        return grown
    model = explaining(problem, loose=True)
    for column in model.grown.values():
        model.program.upper[column] = FREE
    worth = dict.fromkeys(model.grown.values(), -1.0)
    relaxed = maximise_with_prices(model.program, worth)
    if relaxed is None:
        return None
    found = {disk: mib for disk, column in model.grown.items() if (mib := math.ceil(relaxed[0].values[column] - _NOISE))}
    if sum(found.values()) < -relaxed[0].objective + 1.0 - _NOISE and _fits(problem, {}, found):
        return {problem.disk_names[disk]: mib for disk, mib in found.items()}
    if _is_large(problem):
        return _grown_until_it_fits(problem, found)
    solved = _or_none(model, worth)
    if solved is None:
        return None
    return {problem.disk_names[disk]: mib for disk, column in model.grown.items() if (mib := round(solved[column]))}


def _grown_disk(problem: Problem, blamed: Sequence[str]) -> dict[str, int] | None:
    """Return one disk of a conflict that is to be larger by all that is short; None where several must be."""
    short = sum(least_given_up(problem).values())
    if not short:
        return {}
    for disk in (name.split(":", 1)[1] for name in blamed if name.startswith("disk:")):
        at = next(at for at, area in enumerate(problem.areas) if problem.disk_names[area.disk] == disk)
        pool = next((pool for pool in problem.pools if at in pool.areas), None)
        # What is less than an extent is there already.
        spare = 0 if pool is None else (problem.areas[at].size - pool.metadata_size) % pool.extent_size
        areas = list(problem.areas)
        areas[at] = replace(areas[at], size=areas[at].size + short - spare)
        if not least_given_up(replace(problem, areas=tuple(areas))):
            return {disk: short - spare}
    return None


def _or_none(model: DiskProgram, objective: Mapping[int, float]) -> Sequence[float] | None:
    """Return the best values; where a limit came first, also with every PV opened, which costs a little and is much easier."""
    first = _tried(model, objective)
    if first is not None and first.proven:
        return list(first.values)
    for column in model.pvs.values():
        model.program.lower[column] = 1.0
    second = _tried(model, objective)
    for column in model.pvs.values():
        model.program.lower[column] = 0.0
    found = [solved for solved in (first, second) if solved is not None]
    return list(max(found, key=lambda solved: solved.objective).values) if found else None


def _tried(model: DiskProgram, objective: Mapping[int, float]) -> Solved | None:
    try:
        return maximise(model.program, objective, LIMITS)
    except Undecided:
        return None


def _contradict(model: DiskProgram, kept: set[str]) -> bool:
    """Tell whether the kept constraints are proven to contradict each other."""
    program = model.program
    low, high = program.row_low, program.row_high
    program.row_low = [bound if not name or name in kept else -FREE for bound, name in zip(low, model.names)]
    program.row_high = [bound if not name or name in kept else FREE for bound, name in zip(high, model.names)]
    try:
        return maximise(program, {}, LIMITS) is None
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
        return f"every disk that boots needs its own {boot_partition.name}"
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
    """Return the sentences of a message: many disks become one, and many minimums."""
    disks = [item["name"].split(":", 1)[1] for item in said if item["name"].startswith("disk:")]
    minimums = [item for item in said if item["name"].startswith("min:")]
    many = {kind for kind, count in (("disk", len(disks)), ("min", len(minimums))) if count > _FEW}
    # What is said of the sum makes up for what is said of each.
    many_too = {"vgcap", "disks", "legs"} if "min" in many else set()
    sentences = [item["says"] for item in said if item["name"].split(":", 1)[0] not in many | many_too]
    if "min" in many:
        needs = {item["name"].split(":", 1)[1]: _least_of(problem, item["name"].split(":", 1)[1]) for item in minimums}
        largest = sorted(needs, key=lambda name: -needs[name])[:_NAMED]
        named = ", ".join(f"{name} ({needs[name]} MiB)" for name in largest)
        sentences.append(f"{len(needs)} spaces need {sum(needs.values())} MiB in all, most of them {named}")
    if "disk" in many:
        sizes = [sum(area.size for area in problem.areas if problem.disk_names[area.disk] == disk) for disk in disks]
        size, disk = max(zip(sizes, disks))
        sentences.append(f"{len(disks)} disks hold {sum(sizes)} MiB, the largest of them ({disk}) {size} MiB")
    return sentences


def _least_of(problem: Problem, name: str) -> int:
    """Return the minimum of a space; of one on every disk that of all together, of an array what its legs take."""
    sizes = [demand.low * (demand.legs if demand.kind is Kind.LEGS else demand.unit) for demand in problem.demands if demand.name == name]
    sizes += [size for boot in problem.boot_partitions if boot.name == name for _area, size in boot.sizes[:1]]
    return sum(sizes) or sum(pool.lo for pool in problem.pools if pool.name == name)


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
