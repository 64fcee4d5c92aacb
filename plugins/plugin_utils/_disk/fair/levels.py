# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lexicographically max-min placement: level after level, over all placements.

A *level* is MiB per weight. The poorest that still grow are raised first: as far as a placement is found, up to a proof that
there is none a percent higher. They then keep what they have, and the poorest of the others are next, until nobody is left
(Megiddo 1974 for flows; Radunović and Le Boudec 2007 for max-min fairness in general). Preferences come before all levels,
and what has a preference grows before what has none. Steps of a tenth of a percent follow, for which no richer level pays much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..place.search import Answer, Search, confined, grows_off_its_disks, has_preferences, least_off_cost, off_cost
from ..problem.model import Demand, GrowthOrder, Placement, Problem, Sizes, rank
from ..problem.program import open_everywhere
from ..problem.relations import widened
from .exchange import Exchange, Verdict, at_level, held, kept, reaches, rising
from .sizes import Filled, size_fairly

_STEP = 1.01
"""A level is done when it is proven that there is none a percent higher: in finer steps the poorest would gain what rounding leaves, at any
cost for the next.
"""
_SAME = 0.005
_FINE_STEP = 1.001
_SAME_FINE = 0.0005
_NOTICED = 0.001
_MOST_PAID = 10
"""How many times the part that the poorest gain by a fine step a richer level may lose: a tenth of a percent is not worth half a disk."""
_MOST_FINE_STEPS = 40
_FINE_STEPS_BY_PLACES = 4000
"""A fine step costs with the number of areas times demands."""
_HALVINGS = 10
_LEAST_STEP = 1.0
"""MiB per weight: an empty level has nothing to take a percent of."""
_MORE_THAN_KEPT = 256.0
"""MiB: a step that is less finds room in what others need not keep, and would leave them none when all have their sizes."""
_QUESTIONS = 300
_PROOFS = 6
_LEAST_ROUNDS, _MOST_ROUNDS = 24, 100
_DISKS_BY_DEMANDS = 12_000
"""A round costs with their number, so that many rounds are for small problems only; half of them for one level."""
_FEW_NODES = 20


@dataclass(frozen=True)
class Found:
    """A placement; `proven` is False when a limit left a level open, `gap` then how much higher that could be, relative to what it is.

    `open_at` are the demands (positions) at that level.
    """

    placement: Placement
    proven: bool = True
    gap: float = 0.0
    open_at: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A placement with its sizes and with what it is compared by."""

    placement: Placement
    sizes: Sizes
    off: int
    """MiB off what is preferred, times the tier."""
    levels: tuple[tuple[float, ...], ...]
    """Levels in ascending order, of what has a preference and of the rest."""
    grows_last: frozenset[int]
    """Demands (positions) that are off the disks they prefer, so that they grow last."""


def best_plan(problem: Problem) -> tuple[Found, Sizes] | None:
    """Return the best placement and its sizes; None when no placement is found whose sizes fit."""
    setting = _settle_preferences(problem)
    if setting is None:
        return None
    return _Levels(problem, *setting).run()


def _settle_preferences(problem: Problem) -> tuple[Search, Placement | None] | None:
    """Return the search among the placements that meet preferences as well as any, and one that does if it took a program."""
    if not has_preferences(problem):
        return Search(problem), None
    lows = [demand.low for demand in problem.demands]
    if Search(confined(problem)).ask(lows).placement is not None:
        # What meets every preference with its minimum grows on all that it prefers.
        return Search(confined(problem, tiers=None)), None
    found = least_off_cost(problem)
    if found is None:
        return Search(problem), None
    return Search(problem, most_off=found[0]), found[1]


def grows(demand: Demand, turn: GrowthOrder) -> bool:
    """Return whether a demand grows in that turn."""
    return demand.growth_order is turn and demand.high != demand.low


class _Levels:
    """The plan at hand, and up to which level it is settled."""

    def __init__(self, problem: Problem, search: Search, first: Placement | None) -> None:
        self._problem, self._search, self._first = problem, search, first
        self._open: list[tuple[float, tuple[int, ...]]] = []
        self._questions = _QUESTIONS
        self._filled: Filled = {}
        self._rounds = max(_LEAST_ROUNDS, min(_MOST_ROUNDS, _DISKS_BY_DEMANDS // max(1, len(problem.areas) * len(problem.demands))))
        self._rounds_of_a_level = self._rounds // 2
        self._fine_steps = min(_MOST_FINE_STEPS, _FINE_STEPS_BY_PLACES // max(1, len(problem.areas) * len(problem.demands)))
        self._everywhere = [open_everywhere(problem, position) for position in range(len(problem.pools))]
        self._growing = {turn: frozenset(at for at, demand in enumerate(problem.demands) if grows(demand, turn)) for turn in GrowthOrder}

    def run(self) -> tuple[Found, Sizes] | None:
        plan = self._begin()
        if plan is None:
            return None
        for turn in (GrowthOrder.PREFERRED, GrowthOrder.NORMAL):
            plan = self._raise_all(plan, turn)
        for turn in (GrowthOrder.PREFERRED, GrowthOrder.NORMAL):
            plan = self._raise_finely(plan, turn)
        gap, demands = max(self._open, default=(0.0, ()))
        return Found(plan.placement, not self._open, gap, demands), plan.sizes

    def _begin(self) -> Plan | None:
        """Return a plan at the highest level of the poorest for which a rule finds a placement."""
        turns = [
            turn for turn in (GrowthOrder.PREFERRED, GrowthOrder.NORMAL) if any(grows(demand, turn) for demand in self._problem.demands)
        ]
        placements: list[Placement | None] = [self._first]
        if self._first is None:
            placements = [self._highest(lambda level: self._sizes_at(level, turns[0], None), 0.0) if turns else None]
            placements.append(self._search.pack([demand.low for demand in self._problem.demands]))
            if placements[-1] is None:
                placements.append(self._search.ask([demand.low for demand in self._problem.demands]).placement)
        plans = [self._sized(placement) for placement in placements if placement is not None]
        return next((plan for plan in plans if plan is not None), None)

    def _raise_all(self, plan: Plan, turn: GrowthOrder) -> Plan:
        settled = 0.0
        while levels := [own for own in self._to_raise(plan, turn) if own > settled or not settled]:
            level = min(levels)
            better = self._raised(plan, turn, level)
            if better is None:
                # The next in the same percent may rise alone.
                settled = max(level * _FINE_STEP, level + _LEAST_STEP)
            else:
                plan = better
        return plan

    def _raise_finely(self, plan: Plan, turn: GrowthOrder) -> Plan:
        """Return the plan with levels raised by tenths of a percent, as far as that is worth what richer levels pay."""
        settled = 0.0
        while self._fine_steps > 0 and (levels := [own for own in self._to_raise(plan, turn) if own > settled or not settled]):
            level = min(levels)
            wanted = max(level * _FINE_STEP, level + _LEAST_STEP)
            better = next(self._finer_plans(plan, turn, level, wanted), None)
            if better is None:
                settled = wanted
            else:
                plan = better
        return plan

    def _finer_plans(self, plan: Plan, turn: GrowthOrder, level: float, wanted: float) -> Iterator[Plan]:
        """Yield better plans in which the poorest from a level on reach one a fine step higher.

        All of them do, or one alone, or all while one that is little richer takes the place of the poorest, or while all that are richer
        fall as far as that.
        """
        stuck, rising = set(self._stuck(plan, turn, wanted)), self._rising(plan, turn)
        risers = [at for at, own in rising.items() if level <= own < wanted and at not in stuck]
        payers = [at for at, own in rising.items() if wanted <= own < level * _STEP**2] if len(risers) > 1 else []
        for rise, payer in (
            (risers, None),
            *(([at], None) for at in risers if len(risers) > 1),
            *((risers, at) for at in payers),
            ([], None),
        ):
            if not risers or self._fine_steps <= 0:
                return
            self._fine_steps -= 1
            if not rise:
                units = self._sizes_at(wanted, turn, plan, level)
                for at in stuck:
                    units[at] = min(units[at], kept(self._problem.demands[at], plan.sizes.units[at]))
            else:
                units = [
                    self._held_finely(at, plan.sizes.units[at], level) if at not in rise else at_level(demand, wanted)
                    for at, demand in enumerate(self._problem.demands)
                ]
                if payer is not None:
                    units[payer] = at_level(self._problem.demands[payer], level)
            found = self._search.ask(units, _FEW_NODES).placement
            sized = None if found is None else self._sized(found)
            if sized is not None and is_worth_its_price(sized, plan):
                yield sized

    def _held_finely(self, at: int, units: int, level: float) -> int:
        """Return what a demand that does not rise keeps at least: all if it is as poor as the level, else as much as it may not pay."""
        demand = self._problem.demands[at]
        if demand.growth_order is GrowthOrder.LEFTOVER:
            return demand.low
        if not demand.weight or _level(demand, units) <= level * _FINE_STEP:
            return kept(demand, units)
        return max(demand.low, math.floor(units * (1 - _MOST_PAID * (_FINE_STEP - 1))))

    def _to_raise(self, plan: Plan, turn: GrowthOrder) -> list[float]:
        """Return the levels of all that could grow, and of those that are full but in the place of a poorer demand that could pass them."""
        rising = self._rising(plan, turn)
        if not rising:
            return []
        poorest = min(rising.values())
        full = [_level(self._problem.demands[at], plan.sizes.units[at]) for at in self._taking_part(plan, turn) if at not in rising]
        return [*rising.values(), *(own for own in full if own > poorest)]

    def _rising(self, plan: Plan, turn: GrowthOrder) -> dict[int, float]:
        """Return the levels of all that could grow if there were room."""
        units, taking_part = plan.sizes.units, self._taking_part(plan, turn)
        return {
            at: _level(demand, units[at])
            for at, demand in enumerate(self._problem.demands)
            if at in taking_part and (demand.high is None or units[at] < demand.high)
        }

    def _taking_part(self, plan: Plan | None, turn: GrowthOrder) -> frozenset[int]:
        """Return the demands (positions) that grow in a turn."""
        return self._growing[turn] if plan is None else self._growing[turn] - plan.grows_last

    def _raised(self, plan: Plan, turn: GrowthOrder, level: float) -> Plan | None:
        """Return a plan in which more than now reach a level a percent higher, with all that are poorer; None when none is found."""
        wanted = self._next(plan, turn, level)
        better = self._raised_to(plan, turn, level, wanted)
        if better is None and wanted < level + _MORE_THAN_KEPT:
            better = self._raised_to(plan, turn, level, level + _MORE_THAN_KEPT)
        return better

    def _raised_to(self, plan: Plan, turn: GrowthOrder, level: float, wanted: float) -> Plan | None:
        """Return a plan in which more than now reach a wanted level, with all that are poorer than another; None when none is found."""
        answer, units = Answer(), self._sizes_at(wanted, turn, plan, level)
        stuck = self._stuck(plan, turn, wanted)
        if len(stuck) >= self._below(plan, turn, wanted):
            return None
        for at in stuck:
            units[at] = min(units[at], kept(self._problem.demands[at], plan.sizes.units[at]))
        if self._questions > 0:
            self._questions -= 1
            answer = self._search.ask(units)
        if answer.placement is not None:
            higher = self._highest(lambda height: self._sizes_at(height, turn, plan, level), wanted)
            for placement in (higher, answer.placement):
                sized = None if placement is None else self._sized(placement)
                if sized is not None and is_better(sized, plan):
                    return sized
        exchange = self._exchange(plan, turn, level, wanted, wanted)
        if answer.proven and (not exchange.forbid(units, answer.blamed, answer.prices) or exchange.exhausted()):
            return None
        if self._search.refuted(exchange.at_best(), exchange.relaxed()):
            return None
        better = self._raised_alone(plan, turn, level, wanted)
        if better is None and not (self._open and answer.proven):
            better, sure = self._exchanged(plan, exchange)
            if better is None and not sure:
                self._leave_open(plan, turn, level, wanted)
        return better

    def _next(self, plan: Plan, turn: GrowthOrder, level: float) -> float:
        """Return the level a percent higher, at which each of the poorest that could grow is larger by a unit at least."""
        wanted = max(level * _STEP, level + _LEAST_STEP)
        poorest = (at for at, own in self._rising(plan, turn).items() if level <= own < wanted)
        return max([wanted, *(_level(self._problem.demands[at], plan.sizes.units[at] + 1) for at in poorest)])

    def _stuck(self, plan: Plan, turn: GrowthOrder, wanted: float) -> list[int]:
        """Return the demands (positions) that are below a level whatever the others do."""
        return [
            at
            for at in sorted(self._taking_part(plan, turn))
            if not reaches(demand := self._problem.demands[at], wanted) or at_level(demand, wanted) > self._search.bounds.highest(at)
        ]

    def _below(self, plan: Plan, turn: GrowthOrder, wanted: float) -> int:
        """Return how many are below a level in a plan."""
        return sum(_level(self._problem.demands[at], plan.sizes.units[at]) < wanted for at in self._taking_part(plan, turn))

    def _raised_alone(self, plan: Plan, turn: GrowthOrder, level: float, wanted: float) -> Plan | None:
        """Return a plan in which one of the poorest rises with all that are richer; None when no rule finds one."""
        poorest = [at for at, own in self._rising(plan, turn).items() if level <= own <= wanted]
        for riser in poorest if len(poorest) > 1 else ():
            units = self._sizes_at(wanted, turn, plan, level)
            for at in poorest:
                if at != riser:
                    units[at] = kept(self._problem.demands[at], plan.sizes.units[at])
            placement = self._packed(units)
            sized = None if placement is None else self._sized(placement)
            if sized is not None and is_better(sized, plan):
                return sized
        return None

    def _exchanged(self, plan: Plan, exchange: Exchange) -> tuple[Plan | None, bool]:
        """Return a plan in which others stay poor, so that more reach a higher level; and whether it is sure that there is none."""
        found: list[Plan] = []

        def accept(units: Sequence[int]) -> Verdict:
            answer = self._search.ask(units, _FEW_NODES)
            if answer.placement is None:
                return Verdict(proven=answer.proven, blamed=answer.blamed, prices=answer.prices)
            sized = self._sized(answer.placement)
            if sized is None or not is_better(sized, plan):
                return Verdict(proven=True)
            found.append(sized)
            return Verdict(accepted=True)

        sure, rounds = exchange.run(accept, min(self._rounds, self._rounds_of_a_level))
        self._rounds -= rounds
        return (found[0] if found else None), sure

    def _exchange(self, plan: Plan, turn: GrowthOrder, level: float, wanted: float, height: float) -> Exchange:
        """Return the choice of demands that stay below a height when one less than now may be below `wanted`."""
        units = plan.sizes.units
        ranks = []
        for each in (GrowthOrder.PREFERRED, GrowthOrder.NORMAL):
            own = sorted(self._taking_part(plan, each))
            levels = [_level(self._problem.demands[at], units[at]) for at in own]
            if each is turn:
                ranks.append(rising(own, levels, level, wanted, height))
                break
            ranks.append(held(own, levels))
        return Exchange(self._problem, self._search, [demand.low for demand in self._problem.demands], ranks)

    def _leave_open(self, plan: Plan, turn: GrowthOrder, level: float, wanted: float) -> None:
        """Note which demands could have more, and how much more the quick proofs leave possible."""

        def possible(height: float) -> bool:
            exchange = self._exchange(plan, turn, level, wanted, height)
            return not exchange.exhausted() and not self._search.refuted(exchange.at_best(), exchange.relaxed(), quickly=True)

        low, high = wanted, wanted * 2
        while high < wanted * 128 and possible(high):
            low, high = high, high * 2
        for _proof in range(_PROOFS):
            middle = (low + high) / 2
            low, high = (middle, high) if possible(middle) else (low, middle)
        poorest = tuple(at for at, own in self._rising(plan, turn).items() if level <= own <= wanted)
        self._open.append((high / level - 1 if level else 1.0, poorest))

    def _highest(self, sizes_at: Callable[[float], list[int]], level: float) -> Placement | None:
        """Return the placement at the highest level for which a rule finds one, from one on that has a placement or is 0."""
        best: Placement | None = None
        low, high = level, max(2 * level, 1024.0)
        while (units := sizes_at(high)) != sizes_at(low):
            found = self._packed(units)
            if found is None:
                break
            best, low, high = found, high, high * 4
        for _halving in range(2 * _HALVINGS if low <= 0 else _HALVINGS):
            if high <= low * 1.001:
                break
            middle = (low + high) / 2
            found = self._packed(sizes_at(middle))
            if found is None:
                high = middle
            else:
                best, low = found, middle
        return best

    def _packed(self, units: Sequence[int]) -> Placement | None:
        """Return the placement that a rule finds; quick proofs spare the rules."""
        return None if self._search.impossible(units) else self._search.pack(units)

    def _sizes_at(self, height: float, turn: GrowthOrder, plan: Plan | None, level: float = 0.0) -> list[int]:
        """Return the sizes when all of a turn that are not poorer than `level` reach a height; the others keep what they have."""
        units, taking_part = [], self._taking_part(plan, turn)
        before = self._taking_part(plan, GrowthOrder.PREFERRED) if turn is GrowthOrder.NORMAL else frozenset()
        for at, demand in enumerate(self._problem.demands):
            now = demand.low if plan is None else plan.sizes.units[at]
            if at in taking_part:
                units.append(kept(demand, now) if plan is not None and _level(demand, now) < level else at_level(demand, height))
            else:
                units.append(kept(demand, now) if at in before else demand.low)
        return units

    def _sized(self, placement: Placement) -> Plan | None:
        # The search may know less of the pools than there is: what costs nothing but metadata is open everywhere.
        pools = self._problem.pools
        pvs = tuple(pool.areas if everywhere else own for pool, everywhere, own in zip(pools, self._everywhere, placement.pvs))
        placement = widened(self._problem, replace(placement, pvs=pvs)) if self._problem.relations else replace(placement, pvs=pvs)
        sizes = size_fairly(self._problem, placement, self._filled)
        if sizes is None:
            return None
        return as_plan(self._problem, placement, sizes)


def as_plan(problem: Problem, placement: Placement, sizes: Sizes) -> Plan:
    """Return a placement with its sizes and what it is compared by."""
    off = off_cost(problem, placement)
    for (pool, area), extents in sizes.pvs.items():
        tiers = problem.pools[pool].preferred
        off += extents * problem.pools[pool].extent_size * len(tiers) if tiers and rank(tiers, area) == len(tiers) else 0
    behind = frozenset(
        at
        for at, demand in enumerate(problem.demands)
        if grows(demand, GrowthOrder.PREFERRED) and grows_off_its_disks(problem, placement, at)
    )
    # What these have beyond their minimums is what nobody else could use, and no reason for a plan.
    units = [demand.low if at in behind else own for at, (demand, own) in enumerate(zip(problem.demands, sizes.units))]
    levels = tuple(_levels(problem, units, turn) for turn in (GrowthOrder.PREFERRED, GrowthOrder.NORMAL))
    return Plan(placement, sizes, off, levels, behind)


def _level(demand: Demand, units: int) -> float:
    return units * demand.unit / demand.weight


def _levels(problem: Problem, units: Sequence[int], turn: GrowthOrder) -> tuple[float, ...]:
    return tuple(sorted(_level(demand, own) for demand, own in zip(problem.demands, units) if demand.growth_order is turn))


def is_worth_its_price(one: Plan, other: Plan) -> bool:
    """Return whether one plan is better by the first level that differs finely.

    A gain that nobody would notice is not worth many times as much of a level above.
    """
    gain = 0.0
    for own, its in ((own, its) for mine, yours in zip(one.levels, other.levels) for own, its in zip(mine, yours)):
        if 0 < gain <= _NOTICED and own < its * (1 - _MOST_PAID * gain):
            return False
        if not gain and abs(own - its) > _SAME_FINE * max(own, its):
            if own < its:
                return False
            gain = (own - its) / max(its, _LEAST_STEP)
    return gain > 0 and one.off <= other.off


def is_better(one: Plan, other: Plan) -> bool:
    """Return whether one plan is better: by preferences, by the first level that differs, by what is in use."""
    if one.off != other.off:
        return one.off < other.off
    for mine, yours in zip(one.levels, other.levels):
        for own, its in zip(mine, yours):
            if abs(own - its) > _SAME * max(own, its):
                return own > its
    return sum(one.sizes.left) < sum(other.sizes.left)
