# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""In which order candidates come: a total order that is the same in every process, and that never needs all candidates at once."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from ..._common.libraries import np, npt
from .columns import Column
from .index import Index
from .levels import LevelsOfTrees

T = t.TypeVar("T")

ORDERS = ("none", "spread", "pack")


_SHARES_TOLD_APART = 1e9
"""Shares that differ by less are one: they are sums of fractions, which computers round."""


def ordered_trees(levels: LevelsOfTrees, order: str) -> list[int]:
    """Return the trees worth a search: by name, or those first of which the least (spread) or the most (pack) will be in use."""
    if order == "none" or not len(levels.trees):
        return levels.trees.tolist()
    return levels.trees[share_order(_tree_shares(levels)[levels.trees], order)].tolist()


def share_order(shares: npt.NDArray[np.float64], order: str) -> npt.NDArray[np.int64]:
    """Return the places of shares as spread or pack wants them; equal ones stay as they stand."""
    return np.argsort(share_key(shares, order), kind="stable")


def share_key(shares: npt.NDArray[np.float64], order: str) -> npt.NDArray[np.float64]:
    """Return what shares are sorted by as spread or pack wants them."""
    key = np.floor(shares * _SHARES_TOLD_APART + 0.5)
    return key if order == "spread" else -key


def option_key(index: Index, column: Column, order: str) -> Callable[[int], float] | None:
    """Return what a column's choices are sorted by in one tree; None leaves them in the order of their names."""
    if order == "none" or not column.amounts:
        return None
    asked = [(index.classes[name].loads, amount) for name, amount in column.amounts if name in index.classes]
    sign = 1 if order == "spread" else -1

    def share(position: int) -> float:
        shares = 0.0
        for loads, amount in asked:
            used, capacity = loads[position]
            shares += (used + amount) / capacity
        return round(sign * shares, 9)

    return share


def joined(searches: Iterator[Iterator[T]], order: str) -> Iterator[T]:
    """Join the trees' choices: spread takes one of every tree before a second of any, the others take tree after tree."""
    return _round_robin(searches) if order == "spread" else chain.from_iterable(searches)


def _round_robin(searches: Iterator[Iterator[T]]) -> Iterator[T]:
    waiting: Sequence[Iterator[T]] | Iterator[Iterator[T]] = searches
    while True:
        alive = []
        for search in waiting:
            choice = next(search, None)
            if choice is not None:
                alive.append(search)
                yield choice
        if not alive:
            return
        waiting = alive


def _tree_shares(levels: LevelsOfTrees) -> npt.NDArray[np.float64]:
    """Return by tree how much will be in use: the mean, over the asked classes that it has, of (used + asked) / capacity."""
    index = levels.index
    asked: dict[str, int] = {}
    for column in levels.columns:
        for name, amount in column.amounts:
            asked[name] = asked.get(name, 0) + amount
    total, kinds = np.zeros(index.trees), np.zeros(index.trees)
    for name, amount in sorted(asked.items()):
        table = index.classes[name]
        trees = index.tree[table.positions]
        capacity = np.bincount(trees, weights=table.capacity, minlength=index.trees)
        used = np.bincount(trees, weights=table.used, minlength=index.trees)
        has = capacity > 0
        total[has] += (used[has] + amount) / capacity[has]
        kinds += has
    return np.divide(total, kinds, out=np.zeros(index.trees), where=kinds > 0)
