# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turn a request into levels for the search: which column is chosen when, and what narrows its choices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from ..._common.libraries import np, npt
from ..request.model import Request
from .alike import alike_subtrees, asked_by
from .columns import Column, feasible_trees, request_columns, required_together, trees_with
from .constraints import Apart, Constraint, Isolated, LeavesEnough, MergedSteps, NotBefore, RequiredTogether, Room, Rules, Together
from .index import Index, Integers

FEWEST_BOUNDED = 3
"""With fewer columns that compete the search itself is as quick as a bound on it."""


@dataclass(frozen=True)
class Levels:
    """How a tree is searched. `columns` stand in the order of choosing; the columns that may be split follow in `splits`.

    `constraints` has one tuple for each column. `contended` holds for each class that several columns ask of the same providers their
    levels and amounts. `required_at_end` are the masks of traits which the unsuffixed group's providers must have together, where that is
    known only after splitting. From level `free_from` on nothing is narrowed. `order` says which of the request's columns is at each level.
    """

    index: Index
    request: Request
    columns: tuple[Column, ...]
    constraints: tuple[tuple[Constraint, ...], ...]
    splits: tuple[Column, ...]
    contended: dict[str, tuple[tuple[int, int], ...]]
    required_at_end: tuple[bytes, ...]
    free_from: int
    bounded: bool
    order: tuple[int, ...]


@dataclass(frozen=True)
class LevelsOfTrees:
    """The trees worth a search, ascending, and the levels of each; `columns` are all of the request's."""

    index: Index
    columns: tuple[Column, ...]
    trees: Integers
    of_tree: Mapping[int, Levels]


Rank = Callable[[Index, Column], npt.NDArray[np.float64]]
"""Which columns of a tree are chosen first: those of the least rank, by tree."""


def mean_depth(index: Index, column: Column) -> npt.NDArray[np.float64]:
    """Columns that are chosen high in a tree come first, since an ancestor narrows its subtree's choices at once."""
    trees = index.tree[column.own]
    total = np.bincount(trees, weights=index.depth[column.own], minlength=index.trees)
    count = np.bincount(trees, minlength=index.trees)
    return np.divide(total, count, out=np.zeros(index.trees), where=count > 0)


def make_levels(index: Index, request: Request, *, interchangeable_once: bool, rank: Rank = mean_depth) -> LevelsOfTrees:
    """Return the levels of a request's trees; with `interchangeable_once` groups that differ in nothing but the suffix are not permuted.

    The order of a tree's levels, and so of its candidates, follows from that tree alone: it is the same whatever else the index holds.
    """
    asked = request_columns(index, request)
    trees = np.flatnonzero(feasible_trees(index, request, asked))
    whole = [column for column in asked if not column.can_split]
    splits = tuple(column for column in asked if column.can_split)
    # For each pair of columns that would compete for a provider in which of the trees there is one that both could
    # choose.
    overlaps = {
        (first, second): trees_with(index, whole[first].own & whole[second].own, whole[first].shared & whole[second].shared)[trees]
        for second in range(len(whole))
        for first in range(second)
        if _may_compete(request, whole[first], whole[second])
    }
    maker = _Maker(index, request, whole, splits, {pair for pair, found in overlaps.items() if found.any()}, interchangeable_once)
    competes = np.zeros((len(whole), len(trees)), dtype=bool)
    for (first, second), found in overlaps.items():
        competes[first] |= found
        competes[second] |= found
    ranks = np.array([rank(index, column)[trees] for column in whole]).reshape(len(whole), len(trees))
    tied = np.array([_is_tied(request, column) for column in whole], dtype=bool)[:, np.newaxis]
    orders = np.lexsort((ranks, ~(tied | competes)), axis=0) if whole else np.zeros((0, len(trees)), dtype=np.int64)
    shapes = np.vstack([orders, competes.sum(axis=0) >= FEWEST_BOUNDED]).T
    kinds: dict[tuple[int, ...], Levels] = {}
    of_tree: dict[int, Levels] = {}
    for tree, shape in zip(trees.tolist(), map(tuple, shapes.tolist()), strict=True):
        if shape not in kinds:
            kinds[shape] = maker.make(shape[:-1], bounded=bool(shape[-1]))
        of_tree[tree] = kinds[shape]
    return LevelsOfTrees(index, tuple(asked), trees, of_tree)


@dataclass(frozen=True)
class _Maker:
    """Makes levels of columns in any order; `overlaps` are the pairs that may want the same provider and be refused it."""

    index: Index
    request: Request
    columns: Sequence[Column]
    splits: tuple[Column, ...]
    overlaps: Collection[tuple[int, int]]
    interchangeable_once: bool

    def make(self, order: tuple[int, ...], *, bounded: bool) -> Levels:
        """Return the levels; `order` are numbers of columns."""
        index, request = self.index, self.request
        columns = [self.columns[number] for number in order]
        overlapping = {
            (before, level)
            for level in range(len(order))
            for before in range(level)
            if (min(order[before], order[level]), max(order[before], order[level])) in self.overlaps
        }
        contended = _contended(request, columns, overlapping)
        constraints: list[list[Constraint]] = [[] for _column in columns]
        if self.interchangeable_once:
            _add_alike_subtrees(index, request, columns, constraints)
            _add_not_before(index, request, columns, constraints)
        _add_isolated(request, columns, overlapping, constraints)
        _add_room(index, contended, {column.amounts[0][0] for column in self.splits}, constraints)
        _add_subtrees(index, request, columns, constraints)
        masks = _required_masks(index, [*columns, *self.splits])
        if not self.splits:
            _add_required_together(columns, masks, constraints)
        return Levels(
            index=index,
            request=request,
            columns=tuple(columns),
            constraints=tuple(map(tuple, constraints)),
            splits=self.splits,
            contended=contended,
            required_at_end=masks if self.splits else (),
            free_from=max((level + 1 for level, found in enumerate(constraints) if found), default=0),
            bounded=bounded,
            order=order,
        )


def are_isolated(request: Request, first: Column, second: Column) -> bool:
    """Whether two columns must not choose the same provider; the group without a suffix is exempt."""
    if first.unsuffixed or second.unsuffixed:
        return False
    return first.group.suffix in request.isolated or second.group.suffix in request.isolated


def interchange_key(request: Request, column: Column) -> tuple[object, ...]:
    """Return what two granular groups have in common exactly if exchanging their providers changes nothing but their suffixes."""
    suffix = column.group.suffix
    roles = tuple((suffix in subtree.together, suffix in subtree.apart) for subtree in request.subtrees)
    return (*asked_by(request, column), roles, column.unsuffixed and column.amounts)


def _is_tied(request: Request, column: Column) -> bool:
    """Whether others narrow a column's choices wherever they lie; the free ones come last, where every combination is a candidate."""
    in_subtree = any(column.group.suffix in (*subtree.together, *subtree.apart) for subtree in request.subtrees)
    return in_subtree or (column.unsuffixed and bool(column.group.required))


def _may_compete(request: Request, first: Column, second: Column) -> bool:
    return are_isolated(request, first, second) or bool(dict(first.amounts).keys() & dict(second.amounts).keys())


def _contended(
    request: Request, columns: Sequence[Column], overlapping: Collection[tuple[int, int]]
) -> dict[str, tuple[tuple[int, int], ...]]:
    asked: dict[str, list[tuple[int, int]]] = {}
    for level, column in enumerate(columns):
        for name, amount in column.amounts:
            asked.setdefault(name, []).append((level, amount))
    return {
        name: tuple(levels)
        for name, levels in asked.items()
        if any(
            (first, second) in overlapping and not are_isolated(request, columns[first], columns[second])
            for place, (second, _amount) in enumerate(levels)
            for first, _first_amount in levels[:place]
        )
    }


def _add_not_before(index: Index, request: Request, columns: Sequence[Column], constraints: list[list[Constraint]]) -> None:
    families: dict[tuple[object, ...], list[int]] = {}
    for level, column in enumerate(columns):
        families.setdefault(interchange_key(request, column), []).append(level)
    for levels in families.values():
        column = columns[levels[0]]
        once = are_isolated(request, column, column)
        amounts = tuple((amount, index.classes[name].rules) for name, amount in column.amounts if name in index.classes)
        for place, level in enumerate(levels):
            if place:
                constraints[level].append(NotBefore(levels[place - 1], once))
            later = len(levels) - place - 1
            if later and (once or amounts):
                constraints[level].append(LeavesEnough(later, amounts, once))


def _add_alike_subtrees(index: Index, request: Request, columns: Sequence[Column], constraints: list[list[Constraint]]) -> None:
    for levels, rules in alike_subtrees(index, request, columns):
        for place, level in enumerate(levels):
            if place:
                constraints[level].append(NotBefore(levels[place - 1], strictly=False))
            if place + 1 < len(levels):
                constraints[level].append(LeavesEnough(len(levels) - place - 1, ((1, rules),), once=False))
            if place:
                constraints[level].append(Room(1, tuple((before, 1) for before in levels[:place]), rules))


def _add_isolated(
    request: Request, columns: Sequence[Column], overlapping: Collection[tuple[int, int]], constraints: list[list[Constraint]]
) -> None:
    for level, column in enumerate(columns):
        levels = tuple(
            before for before in range(level) if (before, level) in overlapping and are_isolated(request, columns[before], column)
        )
        if levels:
            constraints[level].append(Isolated(levels))


def _add_room(
    index: Index,
    contended: dict[str, tuple[tuple[int, int], ...]],
    split_classes: set[str],
    constraints: list[list[Constraint]],
) -> None:
    for name, levels in contended.items():
        table = index.classes.get(name)
        rules: Rules = table.rules if table else {}
        for place, (level, amount) in enumerate(levels):
            if place:
                constraints[level].append(Room(amount, levels[:place], rules))
        if table is not None and table.has_steps and name not in split_classes:
            level, amount = levels[-1]
            constraints[level].append(MergedSteps(amount, levels[:-1], rules))


def _add_subtrees(index: Index, request: Request, columns: Sequence[Column], constraints: list[list[Constraint]]) -> None:
    level_of = {column.group.suffix: level for level, column in enumerate(columns)}
    for subtree in request.subtrees:
        levels = tuple(sorted({level_of[suffix] for suffix in subtree.together}))
        for place, level in enumerate(levels):
            constraints[level].append(Together(levels[:place], levels[place + 1 :], index.ends))
        for suffix in dict.fromkeys(subtree.apart):
            other = level_of[suffix]
            here = max(*levels, other)
            constraints[here].append(Apart(levels, other, here, index.ends))


def _required_masks(index: Index, columns: Sequence[Column]) -> tuple[bytes, ...]:
    unsuffixed = [column for column in columns if column.unsuffixed]
    if not unsuffixed:
        return ()
    return tuple(index.any_trait(choice).tobytes() for choice in required_together(unsuffixed[0].group, unsuffixed))


def _add_required_together(columns: Sequence[Column], masks: tuple[bytes, ...], constraints: list[list[Constraint]]) -> None:
    if masks:
        levels = tuple(level for level, column in enumerate(columns) if column.unsuffixed)
        constraints[levels[-1]].append(RequiredTogether(levels[:-1], masks))
