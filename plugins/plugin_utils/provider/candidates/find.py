# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Allocation candidates: all ways in which a world can satisfy a request, lazily, in a stable order, within a budget.

The semantics are those of OpenStack Placement's GET /allocation_candidates and of spec "Getting On The Nested Magic Train 1" (seed 003)
with what it deferred; step_size is taken as seed 002 words it.
"""

from __future__ import annotations

import gc
import typing as t
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from ...common.libraries import np
from ..request.model import UNSUFFIXED, Request
from .columns import Column
from .constraints import Positions
from .index import Index
from .levels import Levels, Rank, interchange_key, make_levels, mean_depth
from .order import joined, option_key, ordered_trees
from .search import Budget, BudgetSpent, Choice, tree_choices
from .write import Candidate, candidate_writer, choice_loads


@dataclass(frozen=True)
class SearchOptions:
    """How candidates are looked for.

    `distinct`: "allocations" counts candidates that allot the same amounts to the same providers once, "mappings" keeps every assignment
    of groups. `order`: "spread" takes the tree first of which the least share will be in use, and one candidate of every tree before a
    second of any; "pack" the tree of which the most will be, and all of its candidates; "none" goes by the trees' names. `budget`: how
    many choices are looked at, at most.
    """

    distinct: str = "allocations"
    order: str = "none"
    budget: int = 1_000_000


@dataclass(frozen=True)
class Answer:
    """The candidates that were found; `truncated` when the budget ended the search before the request's limit or the last one."""

    candidates: list[Candidate]
    truncated: bool


def find_candidates(index: Index, request: Request, options: SearchOptions | None = None, rank: Rank = mean_depth) -> Answer:
    """Return at most `request.limit` candidates for a request that was checked against the index' names; columns are chosen by rank."""
    options = options or SearchOptions()
    levels = make_levels(index, request, interchangeable_once=options.distinct == "allocations", rank=rank)
    found: list[Candidate] = []
    try:
        with _paused_collection():
            found.extend(islice(_candidates(levels, options), request.limit))
    except BudgetSpent:
        return Answer(found, truncated=True)
    return Answer(found, truncated=False)


def _candidates(levels: Levels, options: SearchOptions) -> Iterator[Candidate]:
    """Return an iterator over the candidates, which raises BudgetSpent."""
    if not len(levels.trees):
        return iter(())
    return map(candidate_writer(levels), _distinct_choices(levels, options, _all_choices(levels, options)))


def _all_choices(levels: Levels, options: SearchOptions) -> Iterator[Choice]:
    budget = Budget(options.budget)
    trees = ordered_trees(levels, options.order)
    columns = [_ColumnOptions(levels, column, options.order) for column in levels.columns]
    splits = [_ColumnOptions(levels, column, "none") for column in levels.splits]
    searches = (
        tree_choices(levels, [column(tree) for column in columns], [sorted(column(tree)) for column in splits], budget) for tree in trees
    )
    return budget.each(joined(searches, options.order))


class _ColumnOptions:
    """The choices of one column, tree by tree."""

    def __init__(self, levels: Levels, column: Column, order: str) -> None:
        index = levels.index
        own = np.flatnonzero(column.own)
        self._own: list[int] = own.tolist()
        self._start: list[int] = np.searchsorted(own, index.tree_start).tolist()
        self._end: list[int] = np.searchsorted(own, index.tree_end).tolist()
        self._shared_with = index.shared_with if column.shared[index.shared_position].any() else {}
        self._shared = column.shared.tobytes()
        self._key = option_key(index, column, order)

    def __call__(self, tree: int) -> Positions:
        choices = self._own[self._start[tree] : self._end[tree]]
        if tree in self._shared_with:
            choices.extend(position for position in self._shared_with[tree] if self._shared[position])
        if self._key is not None and len(choices) > 1:
            choices.sort(key=self._key)
        return choices


def _distinct_choices(levels: Levels, options: SearchOptions, choices: Iterator[Choice]) -> Iterator[Choice]:
    """Drop the choices that came before: the same with another tree's root, or the same amounts for other groups."""
    always = options.distinct == "allocations" and _amounts_may_repeat(levels)
    if not always and not _all_may_share(levels):
        return choices
    if options.distinct == "allocations":
        return _first_of_each(choices, lambda choice: frozenset(choice_loads(levels, choice).items()), levels.index.sharing, always=always)
    return _first_of_each(choices, lambda choice: choice, levels.index.sharing, always=False)


def _first_of_each(
    choices: Iterator[Choice], key: t.Callable[[Choice], t.Hashable], sharing: frozenset[int], *, always: bool
) -> Iterator[Choice]:
    """Yield the first choice of each key.

    Only one made wholly of sharing providers can come again from another tree, so only those are remembered, unless all can `always`.
    """
    seen = set()
    for choice in choices:
        if always or _is_shared(choice, sharing):
            known = key(choice)
            if known in seen:
                continue
            seen.add(known)
        yield choice


def _is_shared(choice: Choice, sharing: frozenset[int]) -> bool:
    positions, parts = choice
    return sharing.issuperset(positions) and all(position in sharing for filling in parts for position, _part in filling)


def _all_may_share(levels: Levels) -> bool:
    """Whether a choice can be made wholly of sharing providers."""
    sharing = list(levels.index.sharing)
    return all(bool((column.own | column.shared)[sharing].any()) for column in (*levels.columns, *levels.splits))


def _amounts_may_repeat(levels: Levels) -> bool:
    """Whether two choices can allot the same amounts: by a group without resources, or by groups that differ but ask for the same class."""
    if any(not column.amounts for column in levels.columns):
        return True
    asked: dict[str, set[t.Hashable]] = {}
    for column in levels.columns:
        for name, _amount in column.amounts:
            asked.setdefault(name, set()).add(interchange_key(levels.request, column))
    for column in levels.splits:
        asked.setdefault(column.amounts[0][0], set()).add(UNSUFFIXED)
    return any(len(keys) > 1 for keys in asked.values())


@contextmanager
def _paused_collection() -> Iterator[None]:
    """Pause the search for reference cycles while many small results are made: there are none, and looking would double the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
