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
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, repeat

from ..._common.libraries import np
from ..request.model import UNSUFFIXED, Request
from .columns import Column
from .constraints import Positions
from .index import Index
from .levels import Levels, Rank, interchange_key, make_levels, mean_depth
from .order import joined, option_key, ordered_trees
from .requirements import preferred
from .search import Budget, BudgetSpent, Choice, tree_choices
from .write import Candidate, candidate_writer, choice_loads

MOST_ENTRIES = 300_000
"""How many providers and groups the candidates of an answer name together, at most: each takes some 200 bytes."""


@dataclass(frozen=True)
class SearchOptions:
    """How candidates are looked for.

    `distinct`: "allocations" counts candidates that allot the same amounts to the same providers once, "mappings" keeps every assignment
    of groups. `order`: "spread" takes the tree first of which the least share will be in use, and one candidate of every tree before a
    second of any; "pack" the tree of which the most will be, and all of its candidates; "none" goes by the trees' names. `budget`: how
    many choices the search may try.
    """

    distinct: str = "allocations"
    order: str = "none"
    budget: int = 1_000_000


@dataclass(frozen=True)
class Answer:
    """The candidates that were found; `truncated` when the budget or their size ended the search before the request's limit or the last.

    `anchors` says of each candidate in which index it was found, and the position of its tree's root. `steps` counts the
    choices that were tried.
    """

    candidates: list[Candidate]
    truncated: bool
    anchors: tuple[tuple[Index, int], ...] = field(default=(), compare=False)
    steps: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Part:
    """Some trees of a world, to be searched one after the other, and an index that holds them with all that they share.

    `roots` are the positions of the trees' roots; None are all trees of the index, in the order of the search's options.
    """

    index: Index
    roots: Sequence[int] | None = None


def find_candidates(index: Index, request: Request, options: SearchOptions | None = None, rank: Rank = mean_depth) -> Answer:
    """Return at most `request.limit` candidates for a request that was checked against the index' names; columns are chosen by rank."""
    return find_in_parts(lambda _found: [Part(index)], request, options, rank)


def find_in_parts(
    parts: Callable[[Sized], Iterable[Part]], request: Request, options: SearchOptions | None = None, rank: Rank = mean_depth
) -> Answer:
    """Do the same in a world that comes in parts, which are asked for while candidates are missing.

    The candidates are those of the whole world, in its order, if the parts' trees come in that order. `parts` is given the list of the
    candidates, which grows as they are found.
    """
    options = options or SearchOptions()
    budget = Budget(options.budget)
    found: list[Candidate] = []
    searches = (search for part in parts(found) for search in _tree_searches(part, request, options, rank, budget))
    choices = budget.each(joined(searches, options.order))
    anchors: list[tuple[Index, int]] = []
    truncated, entries = False, 0
    try:
        with _paused_collection():
            for kind, tree, choice in islice(_distinct(choices), request.limit):
                if entries > MOST_ENTRIES:
                    raise BudgetSpent
                found.append(kind.write(choice))
                entries += len(found[-1]["allocations"]) + len(found[-1]["mappings"])
                anchors.append((kind.levels.index, tree))
    except BudgetSpent:
        truncated = True
    steps = options.budget - max(0, budget.left)
    return Answer(found, truncated, tuple((index, index.starts[tree]) for index, tree in anchors), steps)


def _tree_searches(
    part: Part, request: Request, options: SearchOptions, rank: Rank, budget: Budget
) -> Iterator[Iterator[tuple[_Kind, int, Choice]]]:
    """Yield the choices of each tree of a part."""
    if request.drained:
        part = replace(part, index=part.index.undrained())
    levels = make_levels(part.index, request, interchangeable_once=options.distinct == "allocations", rank=rank)
    if part.roots is None:
        trees = ordered_trees(levels, options.order)
    else:
        trees = [tree for tree in part.index.tree[list(part.roots)].tolist() if tree in levels.of_tree]
    of_column = [_ColumnOptions(part.index, column, "none" if column.can_split else options.order) for column in levels.columns]
    whole = [choices for column, choices in zip(levels.columns, of_column, strict=True) if not column.can_split]
    splits = [choices for column, choices in zip(levels.columns, of_column, strict=True) if column.can_split]
    kinds: dict[int, tuple[_Kind, list[_ColumnOptions]]] = {}
    wanted = _preferences(part.index, request)
    for tree in trees:
        of_tree = levels.of_tree[tree]
        if id(of_tree) not in kinds:
            kinds[id(of_tree)] = _kind(of_tree, levels.columns, options), [whole[number] for number in of_tree.order]
        kind, ordered = kinds[id(of_tree)]
        choices = tree_choices(of_tree, [column(tree) for column in ordered], [sorted(column(tree)) for column in splits], budget)
        if wanted:
            choices = _meeting(choices, part.index.starts[tree], wanted, budget)
        yield zip(repeat(kind), repeat(tree), choices)


def _preferences(index: Index, request: Request) -> list[tuple[bytes, bool]]:
    """Return where each preference is met, and whether it is to be; nothing where that does not matter."""
    if request.met is None:
        return []
    return [(preferred(preference).own(index).tobytes(), preference in request.met) for preference in request.prefer]


def _meeting(choices: Iterator[Choice], root: int, wanted: Sequence[tuple[bytes, bool]], budget: Budget) -> Iterator[Choice]:
    """Yield the choices that meet exactly the wanted preferences, by one of their providers or the root."""
    for choice in choices:
        positions, parts = choice
        chosen = {root, *positions, *(position for filling in parts for position, _part in filling)}
        if all(any(mask[position] for position in chosen) == is_wanted for mask, is_wanted in wanted):
            yield choice
        else:
            budget.spend(1)


@dataclass(frozen=True, eq=False)
class _Kind:
    """What becomes of the choices of trees that are searched alike; `may_repeat` is None where none of them can come again."""

    levels: Levels
    write: Callable[[Choice], Candidate]
    key: Callable[[Choice], t.Hashable]
    may_repeat: Callable[[Choice], bool] | None


def _kind(levels: Levels, columns: Sequence[Column], options: SearchOptions) -> _Kind:
    of_amounts = options.distinct == "allocations"
    key = _key_of_amounts(levels) if of_amounts else _key_of_mappings(levels)
    if of_amounts and _amounts_may_repeat(levels.request, columns):
        return _Kind(levels, candidate_writer(levels), key, lambda _choice: True)
    # Only one made wholly of sharing providers can come again from another tree.
    sharing = levels.index.sharing
    return _Kind(levels, candidate_writer(levels), key, partial(_is_shared, sharing) if _all_may_share(levels) else None)


def _key_of_amounts(levels: Levels) -> Callable[[Choice], t.Hashable]:
    uuids = levels.index.uuids
    return lambda choice: frozenset((uuids[position], name, amount) for (position, name), amount in choice_loads(levels, choice).items())


def _key_of_mappings(levels: Levels) -> Callable[[Choice], t.Hashable]:
    uuids = levels.index.uuids
    places = sorted(range(len(levels.order)), key=levels.order.__getitem__)

    def key(choice: Choice) -> t.Hashable:
        positions, parts = choice
        split = tuple(tuple((uuids[position], amount) for position, amount in filling) for filling in parts)
        return tuple(uuids[positions[place]] for place in places), split

    return key


def _distinct(choices: Iterator[tuple[_Kind, int, Choice]]) -> Iterator[tuple[_Kind, int, Choice]]:
    """Drop the choices that came before: the same with another tree's root, or the same amounts for other groups."""
    seen = set()
    for kind, tree, choice in choices:
        if kind.may_repeat is not None and kind.may_repeat(choice):
            known = kind.key(choice)
            if known in seen:
                continue
            seen.add(known)
        yield kind, tree, choice


class _ColumnOptions:
    """The choices of one column, tree by tree."""

    def __init__(self, index: Index, column: Column, order: str) -> None:
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


def _is_shared(sharing: frozenset[int], choice: Choice) -> bool:
    positions, parts = choice
    return sharing.issuperset(positions) and all(position in sharing for filling in parts for position, _part in filling)


def _all_may_share(levels: Levels) -> bool:
    """Whether a choice can be made wholly of sharing providers."""
    sharing = list(levels.index.sharing)
    return all(bool((column.own | column.shared)[sharing].any()) for column in (*levels.columns, *levels.splits))


def _amounts_may_repeat(request: Request, columns: Sequence[Column]) -> bool:
    """Whether two choices can allot the same amounts: by a group without resources, or by groups that differ but ask for the same class."""
    if any(not column.amounts for column in columns):
        return True
    asked: dict[str, set[t.Hashable]] = {}
    for column in columns:
        for name, _amount in column.amounts:
            asked.setdefault(name, set()).add(UNSUFFIXED if column.can_split else interchange_key(request, column))
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
