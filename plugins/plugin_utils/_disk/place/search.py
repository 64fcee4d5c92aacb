# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Is there a placement for demands of these sizes? Rules first, then proofs, then the program.

Every answer is a placement, a proof that there is none with the demands that conflict, or a limit that was reached. Limits are
counts (rounds, nodes, programs), so that the same question has the same answer on a slow machine and under load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

from ..._common.highs import FREE, Limits, Undecided, choose, maximise, maximise_with_prices
from ..problem.model import GrowthOrder, Kind, Placement, Problem, by_disk, rank
from ..problem.program import DiskProgram, at_sizes, explaining, open_everywhere, placement_of
from ..problem.relations import holds
from .bounds import Bounds, has_no_choice
from .cutting_stock import CuttingStock, TooMany
from .heuristic import BEST, LEAST_WANTED, RULES, WORST, NoRoom, Packer, volumes_or_self
from .merge import loosen, merge, placement_apart
from .patterns import kinds_of, suits
from .prices import Prices

_NOISE = 1e-6
_ROUNDS = 20
_FEW_ROUNDS = 2
_NODES = 60
_EFFORT = 6000
_UNDECIDED = 20
_MOST_COLUMNS = 3000
_MOST_LINEAR_COLUMNS = 20_000


@dataclass(frozen=True)
class Answer:
    """`placement` when there is one; else `proven` says whether there is none, and `blamed` (positions) which demands conflict.

    `prices` say of which other sizes that is proven, too.
    """

    placement: Placement | None = None
    proven: bool = False
    blamed: frozenset[int] = frozenset()
    prices: Prices | None = None


def without_choice(problem: Problem) -> bool:
    """Return whether there is only one placement."""
    return all(has_no_choice(problem, demand) for demand in problem.demands) and all(
        open_everywhere(problem, position) for position in range(len(problem.pools))
    )


def only_placement(problem: Problem) -> Placement | None:
    """Return the placement of a problem in which nothing has a choice.

    None when a disk that boots has no room for a boot partition, or when somebody shares a disk, or shares none, against its relations.
    """
    areas_of_demand = tuple(demand.areas for demand in problem.demands)
    pvs = tuple(pool.areas for pool in problem.pools)
    boot_partitions = []
    for boot in problem.boot_partitions:
        areas = {area for at in boot.demands for area in areas_of_demand[at]} | {area for at in boot.pools for area in pvs[at]}
        disks = {problem.areas[area].disk for area in areas} | set(boot.disks)
        own = by_disk(problem.areas, [area for area, _size in boot.sizes])
        if any(len(own.get(disk, [])) == 0 for disk in disks):
            return None
        boot_partitions.append(tuple(sorted(own[disk][0] for disk in disks)))
    found = Placement(areas_of_demand, pvs, tuple(boot_partitions))
    return found if holds(problem, found) else None


def tight_placement(problem: Problem) -> tuple[Placement, bool] | None:
    """Return a placement in which the minimums fit to the MiB, with as few PVs as possible, and whether it is the best of these.

    None when there is none. Raises Undecided when a limit came first.
    """
    model = at_sizes(problem, [demand.low for demand in problem.demands], whole=True)
    cost = _off_costs(problem, model)
    for (pool, area), column in model.pvs.items():
        off = float(rank(problem.pools[pool].preferred, area))
        cost[column] = -1.0 - off
        cost[model.extents[pool, area]] = -off * problem.pools[pool].extent_size
    cost.update(dict.fromkeys(model.boot_partitions.values(), -1.0))
    solved = maximise(model.program, cost, Limits(gap=1e-4))
    if solved is None:
        return None
    exact = placement_of(problem, model, solved.values)
    pvs = tuple(tuple(area for area in pool.areas if solved.values[model.pvs[at, area]] > 0.5) for at, pool in enumerate(problem.pools))
    return replace(exact, pvs=pvs), solved.proven


def _off_costs(problem: Problem, model: DiskProgram) -> dict[int, float]:
    """Return what it costs to have a minimum off its preferred disks, by column, as worth: never positive."""
    return {
        column: -float(rank(problem.demands[at].preferred, area) * max(problem.demands[at].low, 1))
        for (at, area), column in model.disk_choice.items()
    }


def off_cost(problem: Problem, placement: Placement) -> int:
    """Return the MiB of minimums of whole demands off what they prefer, times the tier."""
    return sum(
        max(demand.low, 1) * rank(demand.preferred, area)
        for demand, areas in zip(problem.demands, placement.areas_of_demand)
        for area in areas
    )


class Search:
    """Answers about one problem, and the budget for them."""

    def __init__(self, problem: Problem, most_off: float = FREE) -> None:
        self._problem, self._most_off = problem, most_off
        self._packer, self.bounds = Packer(problem), Bounds(problem)
        self._effort = _EFFORT
        self._last_good_order: tuple[list[int], int] | None = None
        self._suits = suits(problem)
        self.prices: list[Prices] = []
        """What proofs say of other sizes, too."""

    def pack(self, units: Sequence[int]) -> Placement | None:
        """Return the placement that a rule finds."""
        sizes = self._packer.with_arrays(units)
        order = self._packer.order(sizes)
        for rule in RULES:
            if (found := self._try(sizes, order, rule)[0]) is not None:
                return found
        # What came first when trying again and again helped may help again at another level.
        return None if self._last_good_order is None else self._try(sizes, *self._last_good_order)[0]

    def impossible(self, units: Sequence[int]) -> frozenset[int]:
        """Return demands that quickly prove that there is no placement; empty when they prove nothing."""
        sizes = self._packer.with_arrays(units)
        return self._with_volumes(self.bounds.overfull(sizes)) or self._violates_known_bound(sizes)

    def _violates_known_bound(self, sizes: Sequence[int]) -> frozenset[int]:
        """Return demands of which an earlier proof says that they are too large together."""
        for prices in self.prices:
            if prices.forbid(sizes):
                return self._with_volumes(frozenset(at for at, own in enumerate(sizes) if prices.worth(at, own) > 0))
        return frozenset()

    def _with_volumes(self, blamed: frozenset[int]) -> frozenset[int]:
        """Return the blamed demands, and those on the arrays among them, which determine their size."""
        return blamed.union(*(volumes_or_self(self._problem, at) for at in blamed))

    def ask(self, units: Sequence[int], nodes: int = _NODES) -> Answer:
        """Return whether there is a placement of these sizes, by a program of at most `nodes` if heuristics do not decide."""
        blamed = self.impossible(units)
        if blamed:
            return Answer(proven=True, blamed=blamed)
        found = self.pack(units)
        if found is not None:
            return Answer(found)
        program = self._cutting_stock(units)
        if program is not None:
            return self._by_patterns(program, units, nodes)
        narrowed = self.bounds.narrowed(self._packer.with_arrays(units))
        columns = sum(len(demand.areas) for demand in narrowed.demands)
        if columns > _MOST_LINEAR_COLUMNS:
            return Answer(self._retry_blamed_first(units))
        blamed = self._linear_proof(narrowed, units)
        if blamed:
            return Answer(proven=True, blamed=blamed)
        if columns > _MOST_COLUMNS or self._effort <= 0:
            return Answer(self._retry_blamed_first(units))
        # Where the program is small it is soon done; what it leaves open is worth more rounds.
        found = self._retry_blamed_first(units, _FEW_ROUNDS)
        answer = self._by_program(narrowed, units, nodes) if found is None else Answer(found)
        return answer if answer.proven or answer.placement is not None else Answer(self._retry_blamed_first(units))

    def _cutting_stock(self, units: Sequence[int]) -> CuttingStock | None:
        """Return the program by patterns; None where there is none, or too large a one."""
        if not self._suits:
            return None
        try:
            return CuttingStock(kinds_of(self._problem, self._packer.with_arrays(units)), self._most_off)
        except TooMany:
            return None

    def _by_patterns(self, program: CuttingStock, units: Sequence[int], nodes: int) -> Answer:
        proof = program.proof()
        if proof is not None:
            if proof.prices is not None:
                self.prices.append(proof.prices)
            return Answer(proven=True, blamed=self._with_volumes(proof.blamed), prices=proof.prices)
        found = self._retry_blamed_first(units, _FEW_ROUNDS if self._effort > 0 else _ROUNDS)
        if found is not None or self._effort <= 0:
            return Answer(found)
        self._effort -= len(program)
        try:
            found = program.placement(nodes)
        except Undecided:
            self._effort -= _UNDECIDED * len(program)
            return Answer(self._retry_blamed_first(units))
        return Answer(found) if found is not None else Answer(proven=True, blamed=frozenset(range(len(units))))

    def refuted(self, units: Sequence[int], relaxed: Problem, *, quickly: bool = False) -> bool:
        """Return whether it is proven that these sizes have no placement even in a problem that differs in having more room only.

        Of that problem the room counts: what may lie where, this search knows, which preferences can have restricted.
        """
        pools = tuple(replace(own, hi=larger.hi) for own, larger in zip(self._problem.pools, relaxed.pools, strict=True))
        relaxed = replace(self._problem, areas=relaxed.areas, pools=pools)
        search = copy(self)
        search._problem = relaxed
        search._packer, search.bounds = self._packer.with_room(relaxed), self.bounds.with_room(relaxed)
        search._effort = 0 if quickly else self._effort
        search._last_good_order = None
        search.prices = []
        answer = search.ask(units)
        self._effort -= 0 if quickly else self._effort - search._effort
        return answer.proven

    def _try(self, sizes: Sequence[int], order: Sequence[int], rule: int) -> tuple[Placement | None, tuple[int, ...]]:
        try:
            found = self._packer.pack(sizes, order, rule)
        except NoRoom as failure:
            return None, failure.blamed
        return (found if off_cost(self._problem, found) <= self._most_off else None), ()

    def _retry_blamed_first(self, units: Sequence[int], rounds: int = _ROUNDS) -> Placement | None:
        """Try again and again, with the demands first that were blamed before."""
        sizes = self._packer.with_arrays(units)
        usual = self._packer.order(sizes)
        for rule in (BEST, LEAST_WANTED, WORST):
            urgency: dict[int, float] = {at: -float(place) for place, at in enumerate(usual)}
            for _round in range(rounds):
                order = sorted(usual, key=lambda at: (-urgency[at], at))
                found, blamed = self._try(sizes, order, rule)
                if found is not None:
                    self._last_good_order = order, rule
                    return found
                solid = [at for at in blamed if at in urgency]
                if not solid:
                    break
                for at in solid:
                    urgency[at] += max(2.0, len(usual) / 3)
        return None

    def _model(self, narrowed: Problem, units: Sequence[int]) -> DiskProgram:
        model = at_sizes(narrowed, units, whole=False)
        if self._most_off < FREE:
            model.program.row([(column, -worth) for column, worth in _off_costs(narrowed, model).items()], high=self._most_off + 0.5)
        return model

    def _linear_proof(self, narrowed: Problem, units: Sequence[int]) -> frozenset[int]:
        """Return the demands that conflict when not even their pieces fit; empty when they do."""
        if maximise_with_prices(self._model(narrowed, units).program, {}) is not None:
            return frozenset()
        raised = [
            replace(demand, name=str(at), space=at, lo=units[at] * demand.unit, hi=None) for at, demand in enumerate(narrowed.demands)
        ]
        model = explaining(replace(narrowed, demands=tuple(raised)), loose=False)
        for column, _unit in model.given_up.values():
            model.program.upper[column] = FREE
        solved = maximise_with_prices(model.program, {column: -float(unit) for column, unit in model.given_up.values()})
        if solved is None:
            return frozenset(range(len(raised)))
        named = {name.split(":", 1)[1] for name, price in zip(model.names, solved[1]) if name.startswith("min:") and price > _NOISE}
        return frozenset(int(name) for name in named if name.isdigit()) or frozenset(range(len(raised)))

    def _by_program(self, narrowed: Problem, units: Sequence[int], nodes: int) -> Answer:
        merged = merge(self._problem, narrowed, units)
        model = self._model(merged.problem, units)
        loosen(model, merged)
        self._effort -= len(model.program.lower)
        try:
            solved = choose(model.program, nodes)
        except Undecided:
            self._effort -= _UNDECIDED * len(model.program.lower)
            return Answer()
        if solved is None:
            return Answer(proven=True, blamed=frozenset(range(len(units))))
        return Answer(placement_apart(self._problem, merged, model, solved.values))


def least_off_cost(problem: Problem) -> tuple[float, Placement] | None:
    """Return the least MiB of minimums that must lie off what they prefer, times the tier, and a placement that has it.

    None when the minimums do not fit, or when a limit came before any placement was found.
    """
    model = at_sizes(problem, [demand.low for demand in problem.demands], whole=False)
    worth: Mapping[int, float] = {
        **_off_costs(problem, model),
        **{
            column: -float(rank(problem.pools[pool].preferred, area) * problem.pools[pool].extent_size)
            for (pool, area), column in model.extents.items()
        },
    }
    try:
        solved = maximise(model.program, worth, Limits(gap=1e-6))
    except Undecided:
        return None
    if solved is None:
        return None
    found = placement_of(problem, model, solved.values)
    return float(off_cost(problem, found)), found


def confined(problem: Problem, tiers: int | None = 1) -> Problem:
    """Return the problem in which what has a preference may only use its first `tiers` (None: all), if it has any areas there."""
    demands = tuple(
        replace(demand, areas=_liked(demand.areas, demand.preferred, 1)) if demand.kind is not Kind.VOLUME else demand
        for demand in problem.demands
    )
    pools = tuple(replace(pool, areas=_liked(pool.areas, pool.preferred, tiers)) for pool in problem.pools)
    return replace(problem, demands=demands, pools=pools)


def _liked(areas: tuple[int, ...], preferred: tuple[frozenset[int], ...], tiers: int | None) -> tuple[int, ...]:
    if not preferred:
        return areas
    first = frozenset().union(*preferred[:tiers])
    return tuple(area for area in areas if area in first)


def has_preferences(problem: Problem) -> bool:
    """Return whether anything prefers some of the areas it may use to others."""
    solid = any(rank(demand.preferred, area) for demand in problem.demands for area in demand.areas)
    return solid or any(rank(pool.preferred, area) for pool in problem.pools for area in pool.areas)


def grows_off_its_disks(problem: Problem, placement: Placement, at: int) -> bool:
    """Return whether a demand had to go off the disks it prefers, so that it grows last."""
    demand = problem.demands[at]
    areas = placement.areas_of_demand[at]
    return demand.growth_order is GrowthOrder.PREFERRED and any(rank(demand.preferred, area) == len(demand.preferred) for area in areas)
