# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turn a request into levels for the search: which column is chosen when, and what narrows its choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...common.libraries import np
from ..request.model import Request
from .columns import Column, feasible_trees, request_columns, required_together
from .constraints import Apart, Constraint, Isolated, LeavesEnough, MergedSteps, NotBefore, RequiredTogether, Room, Rules, Together
from .index import Index, Integers

FEWEST_BOUNDED = 3
"""With fewer columns that compete the search itself is as quick as a bound on it."""


@dataclass(frozen=True)
class Levels:
    """All that is the same for every tree. `columns` stand in the order of choosing; the columns that may be split follow in `splits`.

    `constraints` has one tuple for each column. `trees` are the trees worth a search, ascending. `contended` holds for each class that
    several columns ask of the same providers their levels and amounts. `required_at_end` are the masks of traits which the unsuffixed
    group's providers must have together, where that is known only after splitting. From level `free_from` on nothing is narrowed.
    """

    index: Index
    request: Request
    columns: tuple[Column, ...]
    constraints: tuple[tuple[Constraint, ...], ...]
    splits: tuple[Column, ...]
    trees: Integers
    contended: dict[str, tuple[tuple[int, int], ...]]
    required_at_end: tuple[bytes, ...]
    free_from: int
    bounded: bool


Rank = Callable[[Index, Column], float]
"""Which columns are chosen first: those of the least rank."""


def mean_depth(index: Index, column: Column) -> float:
    """Columns that are chosen high in the trees come first, since an ancestor narrows its subtree's choices at once."""
    depths = index.depth[column.own]
    return float(depths.mean()) if len(depths) else 0.0


def make_levels(index: Index, request: Request, *, interchangeable_once: bool, rank: Rank = mean_depth) -> Levels:
    """Return the levels of a request; with `interchangeable_once` groups that differ in nothing but the suffix are not permuted."""
    asked = request_columns(index, request)
    feasible = np.flatnonzero(feasible_trees(index, request, asked))
    whole = _in_order(index, request, [column for column in asked if not column.can_split], rank)
    splits = tuple(column for column in asked if column.can_split)
    contended = _contended(request, whole)
    constraints: list[list[Constraint]] = [[] for _column in whole]
    if interchangeable_once:
        _add_not_before(index, request, whole, constraints)
    _add_isolated(request, whole, constraints)
    _add_room(index, whole, contended, {column.amounts[0][0] for column in splits}, constraints)
    _add_subtrees(index, request, whole, constraints)
    masks = _required_masks(index, asked)
    if not splits:
        _add_required_together(whole, masks, constraints)
    return Levels(
        index=index,
        request=request,
        columns=tuple(whole),
        constraints=tuple(map(tuple, constraints)),
        splits=splits,
        trees=feasible,
        contended=contended,
        required_at_end=masks if splits else (),
        free_from=max((level + 1 for level, found in enumerate(constraints) if found), default=0),
        bounded=sum(_competes(request, column, whole) for column in whole) >= FEWEST_BOUNDED,
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
    group = replace(column.group, suffix="", resources=tuple(sorted(column.group.resources)))
    return (group, roles, suffix in request.isolated, column.unsuffixed and column.amounts)


def _in_order(index: Index, request: Request, columns: Sequence[Column], rank: Rank) -> list[Column]:
    """Columns that nothing ties to another come last, where every combination of them is a candidate."""

    def is_free(column: Column) -> bool:
        tied = any(column.group.suffix in (*subtree.together, *subtree.apart) for subtree in request.subtrees)
        together = column.unsuffixed and bool(column.group.required)
        return not (tied or together or _competes(request, column, columns))

    return sorted(columns, key=lambda column: (is_free(column), rank(index, column)))


def _competes(request: Request, column: Column, columns: Sequence[Column]) -> bool:
    """Whether another column may want the same provider and be refused it."""
    return any(
        (are_isolated(request, column, other) or dict(column.amounts).keys() & dict(other.amounts).keys()) and _overlap(column, other)
        for other in columns
        if other is not column
    )


def _overlap(first: Column, second: Column) -> bool:
    return bool(((first.own | first.shared) & (second.own | second.shared)).any())


def _contended(request: Request, columns: Sequence[Column]) -> dict[str, tuple[tuple[int, int], ...]]:
    asked: dict[str, list[tuple[int, int]]] = {}
    for level, column in enumerate(columns):
        for name, amount in column.amounts:
            asked.setdefault(name, []).append((level, amount))
    return {
        name: tuple(levels)
        for name, levels in asked.items()
        if any(
            not are_isolated(request, columns[first], columns[second]) and _overlap(columns[first], columns[second])
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


def _add_isolated(request: Request, columns: Sequence[Column], constraints: list[list[Constraint]]) -> None:
    for level, column in enumerate(columns):
        levels = tuple(
            before for before in range(level) if are_isolated(request, columns[before], column) and _overlap(columns[before], column)
        )
        if levels:
            constraints[level].append(Isolated(levels))


def _add_room(
    index: Index,
    columns: Sequence[Column],
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
