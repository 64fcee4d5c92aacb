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
from .constraints import Choices
from .index import Index
from .levels import Plan, interchange_key, make_plan
from .order import joined, option_key, ordered_trees
from .search import Budget, BudgetSpent, Pick, tree_picks
from .write import Candidate, candidate_writer, pick_loads


@dataclass(frozen=True)
class Manner:
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


def find_candidates(index: Index, request: Request, manner: Manner | None = None) -> Answer:
    """Return at most `request.limit` candidates for a request that was checked against the index' names."""
    manner = manner or Manner()
    plan = make_plan(index, request, interchangeable_once=manner.distinct == "allocations")
    found: list[Candidate] = []
    try:
        with _paused_collection():
            found.extend(islice(_candidates(plan, manner), request.limit))
    except BudgetSpent:
        return Answer(found, truncated=True)
    return Answer(found, truncated=False)


def _candidates(plan: Plan, manner: Manner) -> Iterator[Candidate]:
    """Return an iterator over the candidates, which raises BudgetSpent."""
    if not len(plan.trees):
        return iter(())
    return map(candidate_writer(plan), _distinct_picks(plan, manner, _all_picks(plan, manner)))


def _all_picks(plan: Plan, manner: Manner) -> Iterator[Pick]:
    budget = Budget(manner.budget)
    trees = ordered_trees(plan, manner.order)
    columns = [_Options(plan, column, manner.order) for column in plan.columns]
    splits = [_Options(plan, column, "none") for column in plan.splits]
    searches = (
        tree_picks(plan, [options(tree) for options in columns], [sorted(options(tree)) for options in splits], budget) for tree in trees
    )
    return budget.each(joined(searches, manner.order))


class _Options:
    """The choices of one column, tree by tree."""

    def __init__(self, plan: Plan, column: Column, order: str) -> None:
        index = plan.index
        own = np.flatnonzero(column.own)
        self._own: list[int] = own.tolist()
        self._start: list[int] = np.searchsorted(own, index.tree_start).tolist()
        self._end: list[int] = np.searchsorted(own, index.tree_end).tolist()
        self._shared_with = index.shared_with if column.shared[index.shared_position].any() else {}
        self._shared = column.shared.tobytes()
        self._key = option_key(index, column, order)

    def __call__(self, tree: int) -> Choices:
        choices = self._own[self._start[tree] : self._end[tree]]
        if tree in self._shared_with:
            choices.extend(position for position in self._shared_with[tree] if self._shared[position])
        if self._key is not None and len(choices) > 1:
            choices.sort(key=self._key)
        return choices


def _distinct_picks(plan: Plan, manner: Manner, picks: Iterator[Pick]) -> Iterator[Pick]:
    """Drop the picks that came before: the same with another tree's root, or the same amounts for other groups."""
    always = manner.distinct == "allocations" and _amounts_may_repeat(plan)
    if not always and not _all_may_share(plan):
        return picks
    if manner.distinct == "allocations":
        return _first_of_each(picks, lambda pick: frozenset(pick_loads(plan, pick).items()), plan.index.sharing, always=always)
    return _first_of_each(picks, lambda pick: pick, plan.index.sharing, always=False)


def _first_of_each(picks: Iterator[Pick], key: t.Callable[[Pick], t.Hashable], sharing: frozenset[int], *, always: bool) -> Iterator[Pick]:
    """Yield the first pick of each key. Only a pick made wholly of sharing providers can come again from another tree, so, unless picks
    can repeat `always`, only those are remembered.
    """
    seen = set()
    for pick in picks:
        if always or _is_shared(pick, sharing):
            known = key(pick)
            if known in seen:
                continue
            seen.add(known)
        yield pick


def _is_shared(pick: Pick, sharing: frozenset[int]) -> bool:
    positions, parts = pick
    return sharing.issuperset(positions) and all(position in sharing for filling in parts for position, _part in filling)


def _all_may_share(plan: Plan) -> bool:
    """Whether a pick can be made wholly of sharing providers."""
    sharing = list(plan.index.sharing)
    return all(bool((column.own | column.shared)[sharing].any()) for column in (*plan.columns, *plan.splits))


def _amounts_may_repeat(plan: Plan) -> bool:
    """Whether two picks can allot the same amounts: by a group without resources, or by groups that differ but ask for the same class."""
    if any(not column.amounts for column in plan.columns):
        return True
    asked: dict[str, set[t.Hashable]] = {}
    for column in plan.columns:
        for name, _amount in column.amounts:
            asked.setdefault(name, set()).add(interchange_key(plan.request, column))
    for column in plan.splits:
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
