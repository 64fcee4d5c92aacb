# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The search inside one tree: every way to choose the columns' providers, depth first, one at a time.

A tree is searched only as far as its candidates are asked for, so a limit costs no more than what it lets through.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product, repeat

from .can_split import Part, Source, fillings
from .constraints import Choices, Rules, keeps_step, loads_of
from .levels import Plan, are_isolated


def cannot_hold(plan: Plan, options: Sequence[Choices]) -> bool:
    """Whether some of the columns certainly cannot be satisfied together in a tree with these options."""
    sets = [frozenset(choices) for choices in options]
    distinct = set(sets)
    return any(_lacks_room(plan, sets, union) or _lacks_providers(plan, sets, union) for union in distinct)


def _lacks_room(plan: Plan, sets: Sequence[frozenset[int]], union: frozenset[int]) -> bool:
    """Whether the columns that choose only within `union` ask more of a class than is free there, or more pieces than can be cut.

    Pieces are counted for each size: those of at least that size are at most as many as pieces of exactly that size could be cut.
    """
    for name, levels in plan.contended.items():
        amounts = sorted((amount for level, amount in levels if sets[level] <= union), reverse=True)
        rules: Rules = plan.index.classes[name].rules
        free = [max(0, rules[position][0]) for position in union if position in rules]
        if sum(amounts) > sum(free):
            return True
        if any(count > sum(most // amount for most in free) for count, amount in enumerate(amounts, start=1)):
            return True
    return False


def _lacks_providers(plan: Plan, sets: Sequence[frozenset[int]], union: frozenset[int]) -> bool:
    """Whether more columns that must all differ choose only within `union` than it has providers."""
    if not plan.request.isolated:
        return False
    inside = [plan.columns[level] for level, choices in enumerate(sets) if choices <= union and not plan.columns[level].unsuffixed]
    alone = [column for column in inside if column.group.suffix in plan.request.isolated]
    others = any(not are_isolated(plan.request, column, column) for column in inside)
    return len(alone) + others > len(union)


Pick = tuple[tuple[int, ...], tuple[tuple[Part, ...], ...]]
"""One candidate as positions: of each of the plan's columns, and of each split column its parts."""


class BudgetSpent(Exception):
    """The search looked at as many choices as it may."""


class Budget:
    """How many choices a search may still look at."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Take steps off; raise BudgetSpent when there are none left."""
        self.left -= steps
        if self.left < 0:
            raise BudgetSpent

    def each(self, picks: Iterator[Pick]) -> Iterator[Pick]:
        """Yield the picks, a step for each of them."""
        for pick in picks:
            self.spend(1)
            yield pick


def tree_picks(plan: Plan, options: Sequence[Choices], split_options: Sequence[Choices], budget: Budget) -> Iterator[Pick]:
    """Return the picks of one tree whose options are given by level, and by split column. Raises BudgetSpent while they are taken."""
    if plan.bounded and cannot_hold(plan, options):
        return iter(())
    choices = _choose(plan, options, budget)
    if plan.splits:
        return (pick for positions in choices for pick in _split_picks(plan, positions, split_options, budget))
    return zip(choices, repeat(()))


def _choose(plan: Plan, options: Sequence[Choices], budget: Budget) -> Iterator[tuple[int, ...]]:
    """Return the choices of all levels. From the level on where nothing narrows any more, every combination is one."""
    free = plan.free_from
    if free == 0:
        return product(*options)
    chosen = [0] * len(plan.columns)
    narrowings = plan.narrowings

    def extend(level: int) -> Iterator[tuple[int, ...]]:
        choices = options[level]
        for narrow in narrowings[level]:
            choices = narrow(choices, chosen, options)
        budget.spend(len(choices))
        for position in choices:
            chosen[level] = position
            if level + 1 < free:
                yield from extend(level + 1)
            else:
                before = tuple(chosen[:free])
                for rest in product(*options[free:]):
                    yield before + rest

    return extend(0)


def _split_picks(plan: Plan, positions: tuple[int, ...], split_options: Sequence[Choices], budget: Budget) -> Iterator[Pick]:
    for parts in _fillings_of_all(plan, positions, split_options, budget):
        if _have_required(plan, positions, parts):
            yield positions, parts


def _fillings_of_all(
    plan: Plan, positions: tuple[int, ...], split_options: Sequence[Choices], budget: Budget, start: int = 0
) -> Iterator[tuple[tuple[Part, ...], ...]]:
    if start == len(plan.splits):
        yield ()
        return
    name, amount = plan.splits[start].amounts[0]
    before = [(level, taken) for level, column in enumerate(plan.columns) for asked, taken in column.amounts if asked == name]
    loads = loads_of(before, positions)
    rules = plan.index.classes[name].rules
    broken = {position for position, load in loads.items() if not keeps_step(load, rules[position])}
    sources = [Source(position, *rules[position], load=loads.get(position, 0)) for position in split_options[start]]
    for filling in fillings(amount, sources, budget.spend):
        if broken.issubset(position for position, _part in filling):
            for rest in _fillings_of_all(plan, positions, split_options, budget, start + 1):
                yield (filling, *rest)


def _have_required(plan: Plan, positions: tuple[int, ...], parts: tuple[tuple[Part, ...], ...]) -> bool:
    providers = [position for column, position in zip(plan.columns, positions, strict=True) if column.unsuffixed]
    providers.extend(position for filling in parts for position, _amount in filling)
    return all(any(mask[position] for position in providers) for mask in plan.required_at_end)
