# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The search inside one tree: every way to choose the columns' providers, depth first, one at a time.

A tree is searched only as far as its candidates are asked for, so a limit costs no more than what it lets through.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Sequence
from itertools import product, repeat

from .can_split import Part, Source, fillings
from .constraints import Constraint, Positions, Rules, keeps_step, loads_of
from .levels import Levels, are_isolated


def cannot_hold(levels: Levels, options: Sequence[Positions]) -> bool:
    """Whether some of the columns certainly cannot be satisfied together in a tree with these options."""
    sets = [frozenset(choices) for choices in options]
    distinct = set(sets)
    return any(_lacks_room(levels, sets, union) or _lacks_providers(levels, sets, union) for union in distinct)


def _lacks_room(levels: Levels, sets: Sequence[frozenset[int]], union: frozenset[int]) -> bool:
    """Whether the columns that choose only within `union` ask more of a class than is free there, or more pieces than can be cut.

    Pieces are counted for each size: those of at least that size are at most as many as pieces of exactly that size could be cut.
    """
    for name, asked in levels.contended.items():
        amounts = sorted((amount for level, amount in asked if sets[level] <= union), reverse=True)
        rules: Rules = levels.index.classes[name].rules
        free = [max(0, rules[position][0]) for position in union if position in rules]
        if sum(amounts) > sum(free):
            return True
        if any(count > sum(most // amount for most in free) for count, amount in enumerate(amounts, start=1)):
            return True
    return False


def _lacks_providers(levels: Levels, sets: Sequence[frozenset[int]], union: frozenset[int]) -> bool:
    """Whether more columns that must all differ choose only within `union` than it has providers."""
    if not levels.request.isolated:
        return False
    inside = [levels.columns[level] for level, choices in enumerate(sets) if choices <= union and not levels.columns[level].unsuffixed]
    alone = [column for column in inside if column.group.suffix in levels.request.isolated]
    others = any(not are_isolated(levels.request, column, column) for column in inside)
    return len(alone) + others > len(union)


T = t.TypeVar("T")

Choice = tuple[tuple[int, ...], tuple[tuple[Part, ...], ...]]
"""One candidate as positions: of each column its provider, and of each split column its parts."""


class BudgetSpent(Exception):
    """The search has used up its budget of choices."""


class Budget:
    """How many choices a search may still look at."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Take steps off; raise BudgetSpent when there are none left."""
        self.left -= steps
        if self.left < 0:
            raise BudgetSpent

    def each(self, choices: Iterator[T]) -> Iterator[T]:
        """Yield the choices, a step for each of them."""
        for choice in choices:
            self.spend(1)
            yield choice


def tree_choices(levels: Levels, options: Sequence[Positions], split_options: Sequence[Positions], budget: Budget) -> Iterator[Choice]:
    """Return the choices of one tree whose options are given by level, and by split column. Raises BudgetSpent while they are taken."""
    if levels.bounded and cannot_hold(levels, options):
        return iter(())
    choices = _choose(levels, options, budget)
    if levels.splits:
        return (choice for positions in choices for choice in _split_choices(levels, positions, split_options, budget))
    return zip(choices, repeat(()))


def _choose(levels: Levels, options: Sequence[Positions], budget: Budget) -> Iterator[tuple[int, ...]]:
    """Return the choices of all levels. From the level on where nothing narrows any more, every combination is one."""
    free = levels.free_from
    if free == 0:
        return product(*options)
    constraints = levels.constraints
    if list(map(len, options)).count(1) == len(options):
        return iter(_only_choice(constraints, options, budget))
    chosen = [0] * len(levels.columns)

    def extend(level: int) -> Iterator[tuple[int, ...]]:
        choices = options[level]
        for constraint in constraints[level]:
            choices = constraint(choices, chosen, options)
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


def _only_choice(constraints: Sequence[Sequence[Constraint]], options: Sequence[Positions], budget: Budget) -> Sequence[tuple[int, ...]]:
    """Return the same where each level has one choice, as most trees of a flat fleet have; it takes half of the time."""
    chosen = [position for (position,) in options]
    for level, narrowing in enumerate(constraints):
        for constraint in narrowing:
            if not constraint(options[level], chosen, options):
                budget.spend(level)
                return ()
    budget.spend(len(chosen))
    return (tuple(chosen),)


def _split_choices(levels: Levels, positions: tuple[int, ...], split_options: Sequence[Positions], budget: Budget) -> Iterator[Choice]:
    for parts in _fillings_of_all(levels, positions, split_options, budget):
        providers = [position for column, position in zip(levels.columns, positions, strict=True) if column.unsuffixed]
        providers.extend(position for filling in parts for position, _amount in filling)
        if all(any(mask[position] for position in providers) for mask in levels.required_at_end):
            yield positions, parts


def _fillings_of_all(
    levels: Levels, positions: tuple[int, ...], split_options: Sequence[Positions], budget: Budget, start: int = 0
) -> Iterator[tuple[tuple[Part, ...], ...]]:
    if start == len(levels.splits):
        yield ()
        return
    name, amount = levels.splits[start].amounts[0]
    before = [(level, taken) for level, column in enumerate(levels.columns) for asked, taken in column.amounts if asked == name]
    loads = loads_of(before, positions)
    rules = levels.index.classes[name].rules
    broken = {position for position, load in loads.items() if not keeps_step(load, rules[position])}
    sources = [Source(position, *rules[position], load=loads.get(position, 0)) for position in split_options[start]]
    for filling in fillings(amount, sources, budget.spend):
        if broken.issubset(position for position, _part in filling):
            for rest in _fillings_of_all(levels, positions, split_options, budget, start + 1):
                yield (filling, *rest)
