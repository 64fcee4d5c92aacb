# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What would help: the least that minimums must give up, or that disks must grow.

Of a divisible problem a minimum cut says it (`shortage`). Otherwise the elastic program without integers is a bound, and rules
(`squeeze`) find what is enough; where that is more than the bound, a program of the whole problem, if that is small, decides.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace

from ..._common.highs import FREE, Limits, Solved, Undecided, maximise, maximise_with_prices
from ..place.search import Search
from ..problem.model import Problem
from ..problem.program import DiskProgram, at_sizes, explaining
from .contradiction import reduced_to
from .shortage import Sums, is_divisible, least_given_up, least_grown
from .squeeze import Squeezed, TooTight, can_squeeze, in_order, squeeze

_NOISE = 1e-4
_TIE = 1e-7
_NODES = 50
_MOST_COLUMNS = 100
_MOST_MIB = 2**40
"""An EiB. HiGHS counts in floating point: with larger numbers it no longer distinguishes single MiB, and may not end."""
_ROUNDS = 6
_FEW = 4
_NEARLY = 1.001
_SHARES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_LIMITS = Limits(gap=0.0, nodes=_NODES)


@dataclass(frozen=True)
class Change:
    """MiB by the name of a minimum or by disk that are enough; `proven` says whether no smaller sum is enough."""

    mib: Mapping[str, int]
    proven: bool = True


def least_to_give_up(
    problem: Problem, blamed: Sequence[str] = (), sums: Sums | None = None, most: Mapping[str, int] | None = None
) -> Change | None:
    """Return the MiB by which minimums must be lowered at least, by name of the minimum; None when that does not help.

    Of equal changes it prefers those to blamed minimums. `most` has the MiB by which some may be lowered at most.
    """
    most = most or {}
    if not most and is_divisible(problem):
        return Change(least_given_up(sums or Sums(problem), blamed))
    model = explaining(problem, loose=False)
    for name, (column, unit) in model.given_up.items():
        model.program.upper[column] = most[name] // unit if name in most else FREE
    # A little dearer than what is blamed, so that of equals that is lowered.
    dearer = {name: 1.0 if name in blamed or not blamed else 1.0 + _TIE for name in model.given_up}
    cost = {column: -float(unit) * dearer[name] for name, (column, unit) in model.given_up.items()}
    relaxed = maximise_with_prices(model.program, cost)
    if relaxed is None:
        return None
    units = {name: math.ceil(relaxed[0].values[column] - _NOISE) for name, (column, _unit) in model.given_up.items()}
    found = {name: count * model.given_up[name][1] for name, count in units.items() if count}
    # The sum is a multiple of the units' common divisor.
    step = math.gcd(*(unit for _column, unit in model.given_up.values())) or 1
    least = math.ceil((-relaxed[0].objective / (1.0 + _TIE) - _NOISE) / step) * step
    if not can_squeeze(problem) and sum(found.values()) <= least and _fits(problem, found, {}):
        return Change(found)
    enough = _within(_enough_given_up(problem, found, blamed, least), most)
    if enough is not None and sum(enough.values()) <= least:
        return Change(enough)
    if _is_large(problem):
        enough = enough or _within(_lowered_until_it_fits(problem, found), most)
        return None if enough is None else Change(enough, proven=False)
    solved = _best_of(model, cost)
    if solved is None:
        return None if enough is None else Change(enough, proven=False)
    exact = {name: mib for name, (column, unit) in model.given_up.items() if (mib := round(solved.values[column]) * unit)}
    return Change(exact, solved.proven) if enough is None or sum(exact.values()) <= sum(enough.values()) else Change(enough, proven=False)


def least_to_lower(problem: Problem, blamed: Sequence[str], found: Change | None) -> Change | None:
    """Return what of minimums may be asked of the user: what was found, or else the least that lowers none below what it must have.

    What is to give up all of its minimum is left out. None where only what does not help was found.
    """
    floors = _floors(problem)
    most: dict[str, int] = {}
    for _round in range(_ROUNDS):
        if found is None:
            return None
        too_low = [name for name, mib in found.mib.items() if name in floors and floors[name][0] < mib < floors[name][1]]
        if not too_low:
            return found
        most |= {name: floors[name][0] for name in too_low}
        found = least_to_give_up(problem, blamed, most=most)
    return None


def _floors(problem: Problem) -> dict[str, tuple[int, int]]:
    """Return by how many MiB each minimum can be lowered for what lies there to still have what it must, and all that it has."""
    found: dict[str, tuple[int, int]] = {}
    owned = [(demand.name, demand.lo - demand.floor, demand.lo) for demand in problem.demands if demand.space is not None]
    owned += [(boot.name, size - boot.floor, size) for boot in problem.boot_partitions for _area, size in boot.sizes]
    for owner, loose, size in owned:
        least, largest = found.get(f"min:{owner}", (loose, size))
        found[f"min:{owner}"] = max(0, min(least, loose)), max(largest, size)
    return found


def _within(mib: dict[str, int] | None, most: Mapping[str, int]) -> dict[str, int] | None:
    """Return what lowers nothing by more than it may be; None otherwise."""
    return None if mib is None or any(mib.get(name, 0) > bound for name, bound in most.items()) else mib


def least_to_grow(problem: Problem, blamed: Sequence[str] = (), sums: Sums | None = None) -> Change | None:
    """Return the MiB by which disks must be larger at least, by the disk's id; None when that does not help."""
    if is_divisible(problem) and (grown := least_grown(sums or Sums(problem), blamed)) is not None:
        return Change(grown)
    model = explaining(problem, loose=True)
    for column in model.grown.values():
        model.program.upper[column] = FREE
    worth = dict.fromkeys(model.grown.values(), -1.0)
    relaxed = maximise_with_prices(model.program, worth)
    if relaxed is None:
        return None
    found = {disk: mib for disk, column in model.grown.items() if (mib := math.ceil(relaxed[0].values[column] - _NOISE))}
    least = max(math.ceil(-relaxed[0].objective - _NOISE), _least_for_one(problem))
    if not can_squeeze(problem) and sum(found.values()) <= least and _fits(problem, {}, found):
        return _of_disks(problem, found, proven=True)
    enough = _enough_grown(problem, least)
    if enough is not None and sum(enough.values()) <= least:
        return _of_disks(problem, enough, proven=True)
    if _is_large(problem):
        enough = enough or _grown_until_it_fits(problem, found)
        return None if enough is None else _of_disks(problem, enough, proven=False)
    solved = _best_of(model, worth)
    if solved is None:
        return None if enough is None else _of_disks(problem, enough, proven=False)
    exact = {disk: mib for disk, column in model.grown.items() if (mib := round(solved.values[column]))}
    # Nobody replaces many disks to save a few MiB.
    fewer = enough is not None and len(exact) > max(_FEW, len(enough)) and sum(enough.values()) <= _NEARLY * sum(exact.values())
    better = not fewer and (enough is None or sum(exact.values()) <= sum(enough.values()))
    return _of_disks(problem, exact, solved.proven) if better else _of_disks(problem, enough or {}, proven=False)


def _least_for_one(problem: Problem) -> int:
    """Return by how much disks must grow at least so that each whole demand fits if it were alone."""
    least = 0
    for demand in problem.demands:
        largest: dict[int, int] = {}
        for area in demand.areas:
            largest[problem.areas[area].disk] = max(largest.get(problem.areas[area].disk, 0), problem.areas[area].size)
        roomiest = sorted(largest.values(), reverse=True)[: demand.legs]
        least = max(least, sum(max(0, demand.low - size) for size in roomiest))
    return least


def _of_disks(problem: Problem, mib: Mapping[int, int], proven: bool) -> Change:
    return Change({problem.disk_names[disk]: mib[disk] for disk in sorted(mib)}, proven)


def _is_large(problem: Problem) -> bool:
    """Return whether the least for whole pieces would take too many nodes, or numbers that are too large."""
    largest = max((demand.lo for demand in problem.demands), default=0), max((area.size for area in problem.areas), default=0)
    return max(largest) > _MOST_MIB or sum(len(demand.areas) for demand in problem.demands) > _MOST_COLUMNS


def _enough_given_up(problem: Problem, found: Mapping[str, int], blamed: Sequence[str], least: int) -> dict[str, int] | None:
    """Return the least that rules find to be enough, beginning with what would do if everything could be cut."""
    if not can_squeeze(problem):
        return None
    highs = [demand.low if demand.high is None else min(demand.low, demand.high) for demand in problem.demands]
    lowered = [max(0, high - found.get(f"min:{demand.name}", 0) // demand.unit) for demand, high in zip(problem.demands, highs)]
    dear = {at for at, demand in enumerate(problem.demands) if f"min:{demand.name}" not in blamed}
    best: dict[str, int] | None = None
    where: Mapping[int, tuple[int, ...]] = {}
    for units in (lowered, highs):
        soft = {at for at in range(len(units)) if lowered[at] < highs[at]}
        first: set[int] = set()
        for _round in range(_ROUNDS):
            squeezed = _squeezed(problem, units, in_order(problem, units, soft - first, first), dear)
            if squeezed is None:
                break
            own = _by_minimum(problem, [size - squeezed.less.get(at, 0) for at, size in enumerate(units)])
            if best is None or sum(own.values()) < sum(best.values()):
                best, where = own, squeezed.areas
            smaller = {at for at in squeezed.less if problem.demands[at].areas} - first
            if not smaller or sum(best.values()) <= least:
                break
            first |= smaller
    return best if best is not None and _fits(problem, best, {}, where) else None


def _squeezed(problem: Problem, units: Sequence[int], order: Sequence[int], dear: Collection[int]) -> Squeezed | None:
    try:
        return squeeze(problem, units, order, grow=False, dear=dear)
    except TooTight:
        return None


def _by_minimum(problem: Problem, units: Sequence[int]) -> dict[str, int]:
    """Return MiB by which minimums must be lower for such units; what is on every disk has one minimum for all."""
    found: dict[str, int] = {}
    for demand, size in zip(problem.demands, units):
        name = f"min:{demand.name}"
        if size < demand.low and demand.space is not None:
            found[name] = max(found.get(name, 0), (demand.low - size) * demand.unit)
    return found


def _enough_grown(problem: Problem, least: int) -> dict[int, int] | None:
    """Return the least that rules find to be enough."""
    if not can_squeeze(problem):
        return None
    lows = [demand.low for demand in problem.demands]
    best: dict[int, int] | None = None
    where: Mapping[int, tuple[int, ...]] = {}
    first: set[int] = set()
    for position in range(_ROUNDS):
        order = in_order(problem, lows, first=first)
        if position % 2:
            order = sorted(order, key=lambda at: (-lows[at], at))
        try:
            squeezed = squeeze(problem, lows, order, grow=True)
        except TooTight:
            return None
        if best is None or sum(squeezed.more.values()) < sum(best.values()):
            best, where = squeezed.more, squeezed.areas
        if sum(best.values()) <= least:
            break
        first |= set(order[-(position + 1) :])
    return best if best is not None and _fits(problem, {}, best, where) else None


def _lowered_until_it_fits(problem: Problem, found: Mapping[str, int]) -> dict[str, int] | None:
    """Return the least for what could be cut, raised in steps until there is a plan with whole pieces."""
    minimums = {f"min:{demand.name}": demand.lo for demand in problem.demands if demand.space is not None}
    for share in _SHARES:
        raised = {name: min(minimums.get(name, mib), mib + math.ceil(share * minimums.get(name, mib))) for name, mib in found.items()}
        if _fits(problem, raised, {}):
            return raised
    return None


def _grown_until_it_fits(problem: Problem, found: Mapping[int, int]) -> dict[int, int] | None:
    for share in _SHARES:
        raised = {disk: mib + math.ceil(share * problem.disk_sizes[disk]) for disk, mib in found.items()}
        if _fits(problem, {}, raised):
            return raised
    return None


class _AllBut(Container[str]):
    """All names of constraints but some."""

    def __init__(self, missing: Container[str]) -> None:
        self._missing = missing

    def __contains__(self, name: object) -> bool:
        return not isinstance(name, str) or name not in self._missing


def _fits(
    problem: Problem, given_up: Mapping[str, int], grown: Mapping[int, int], where: Mapping[int, tuple[int, ...]] | None = None
) -> bool:
    """Return whether there is a plan when minimums are lower and disks larger by `given_up` MiB; with some demands on certain areas."""
    less = [given_up.get(f"min:{demand.name}", 0) if demand.space is not None else 0 for demand in problem.demands]
    demands = [
        replace(demand, lo=max(0, demand.lo - less[at]), areas=(where or {}).get(at, demand.areas))
        for at, demand in enumerate(problem.demands)
    ]
    pools = tuple(replace(pool, lo=max(0, pool.lo - given_up.get(f"min:{pool.name}", 0))) for pool in problem.pools)
    boots = tuple(
        replace(boot, sizes=tuple((area, max(0, size - given_up.get(f"min:{boot.name}", 0))) for area, size in boot.sizes))
        for boot in problem.boot_partitions
    )
    areas = tuple(replace(area, size=area.size + grown.get(area.disk, 0)) for area in problem.areas)
    # What gives up all that it needs is not there.
    gone = {f"min:{demand.name}" for demand, before in zip(demands, problem.demands) if not demand.lo and before.lo}
    lowered = reduced_to(replace(problem, demands=tuple(demands), pools=pools, boot_partitions=boots, areas=areas), _AllBut(gone))
    lows = [demand.low for demand in lowered.demands]
    search = Search(lowered)
    if any(demand.high is not None and demand.high < demand.low for demand in lowered.demands) or search.impossible(lows):
        return False
    if search.pack(lows) is not None:
        return True
    try:
        return maximise(at_sizes(lowered, lows, whole=True).program, {}, replace(_LIMITS, gap=1.0)) is not None
    except Undecided:
        return False


def _best_of(model: DiskProgram, objective: Mapping[int, float]) -> Solved | None:
    """Return the best values; where a limit came first, also with every PV opened, which costs a little and is much easier."""
    first = _tried(model, objective)
    if first is not None and first.proven:
        return first
    for column in model.pvs.values():
        model.program.lower[column] = 1.0
    second = _tried(model, objective)
    for column in model.pvs.values():
        model.program.lower[column] = 0.0
    found = [solved for solved in (first, second) if solved is not None]
    return replace(max(found, key=lambda solved: solved.objective), proven=False) if found else None


def _tried(model: DiskProgram, objective: Mapping[int, float]) -> Solved | None:
    try:
        return maximise(model.program, objective, _LIMITS)
    except Undecided:
        return None
