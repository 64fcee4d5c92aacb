# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a request asks, as columns: each is one choice of a provider, and says which providers can be chosen.

Filters are also what why.py counts, so a reason is never about another rule than the search's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....module_utils._data.words import listed
from ..._common.libraries import np
from ..request.model import UNSUFFIXED, Group, Request
from .index import Index, Mask
from .requirements import column_amounts, column_requirements, preferred, root_requirements

MOST_NAMED = 3


@dataclass(frozen=True)
class Filter:
    """One constraint of one column: its kind, what it says to a reader, and where it holds.

    `own` is for a tree's own members, `shared` for sharing providers of other trees.
    """

    kind: str
    says: str
    own: Mask
    shared: Mask


@dataclass(frozen=True)
class Column:
    """One choice: for which group, which amounts it takes, and where it can be made."""

    group: Group
    amounts: tuple[tuple[str, int], ...]
    own: Mask
    shared: Mask
    can_split: bool = False

    @property
    def unsuffixed(self) -> bool:
        """Whether it is part of the group without a suffix."""
        return self.group.suffix == UNSUFFIXED


def request_columns(index: Index, request: Request) -> list[Column]:
    """Return the columns of all groups, in the request's order."""
    columns = []
    for group in request.groups:
        for amounts, split in column_amounts(group, request.can_split):
            own, shared = np.ones(index.size, dtype=bool), np.ones(index.size, dtype=bool)
            for found in column_filters(index, group, amounts, split):
                own &= found.own
                shared &= found.shared
            columns.append(Column(group, amounts, own, shared, split))
    return columns


def column_filters(index: Index, group: Group, amounts: tuple[tuple[str, int], ...], split: bool) -> Iterator[Filter]:
    """Yield every constraint that one provider of a column must satisfy by itself."""
    for asked in column_requirements(group, amounts, split=split):
        yield Filter(asked.kind, asked.says, asked.own(index), asked.shared(index))
    if index.drained.any():
        drains = listed(sorted({provider.drained for provider in index.providers if provider.drained}), MOST_NAMED)
        yield Filter("drained", f"not drained ({drains})", ~index.drained, ~index.drained)
    if group.in_tree is not None:
        tree = index.tree_mask(group.in_tree)
        shared = np.zeros(index.size, dtype=bool) if group.suffix == UNSUFFIXED else tree
        yield Filter("in_tree", f"in the tree of {group.in_tree}", tree, shared)


def required_together(group: Group, columns: list[Column]) -> tuple[frozenset[str], ...]:
    """Return the required sets of the unsuffixed group that its providers may satisfy together, not each by itself."""
    several = len(columns) > 1 or any(column.can_split for column in columns)
    return group.required if several else ()


def root_filters(index: Index, request: Request) -> Iterator[tuple[str, str, Mask]]:
    """Yield (kind, what it says, where it holds by tree) of each constraint on the root of a candidate's tree."""
    for asked in root_requirements(request):
        yield asked.kind, asked.says, asked.own(index)[index.tree_start]
    if request.roots is not None:
        yield "with", f"root is that of {listed(request.near, MOST_NAMED)}", _root_among(index, request.roots)
    if request.other_roots:
        yield "not_with", f"root is not that of {listed(request.away, MOST_NAMED)}", ~_root_among(index, request.other_roots)


def trees_with(index: Index, own: Mask, shared: Mask) -> Mask:
    """Return the trees in which some provider can be chosen: an own member, or a sharing one of another tree."""
    found = np.zeros(index.trees, dtype=bool)
    found[index.tree[own]] = True
    found[index.shared_tree[shared[index.shared_position]]] = True
    return found


def feasible_trees(index: Index, request: Request, columns: list[Column]) -> Mask:
    """Return the trees in which every column has a choice and the root satisfies its constraints."""
    feasible = np.ones(index.trees, dtype=bool)
    for _kind, _says, holds in root_filters(index, request):
        feasible &= holds
    for column in columns:
        feasible &= trees_with(index, column.own, column.shared)
    unsuffixed = [column for column in columns if column.unsuffixed]
    if unsuffixed:
        own = np.logical_or.reduce([column.own for column in unsuffixed])
        shared = np.logical_or.reduce([column.shared for column in unsuffixed])
        for choice in required_together(unsuffixed[0].group, unsuffixed):
            has = index.any_trait(choice)
            feasible &= trees_with(index, own & has, shared & has)
    if request.met:
        own = np.logical_or.reduce([column.own for column in columns])
        shared = np.logical_or.reduce([column.shared for column in columns])
        for preference in request.met:
            has = preferred(preference).own(index)
            feasible &= trees_with(index, own & has, shared & has) | has[index.tree_start]
    return feasible


def _root_among(index: Index, roots: frozenset[str]) -> Mask:
    return np.array([index.uuids[start] in roots for start in index.starts], dtype=bool)
