# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries of same_subtree that ask for the same: a set of them is tried in one order only, and only where there is room for the whole set.

A request for five pairs of GPUs, each below a NUMA node, would otherwise try every order of the pairs, and every way to give two of them
one node that has GPUs for one.
"""

from __future__ import annotations

import typing as t
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ..._common.libraries import np
from ..request.model import UNSUFFIXED, Request
from .columns import Column
from .constraints import Rules
from .index import Index, Integers

_ANY = 2**31
"""How many entries a provider may take that sets no bound."""


def asked_by(request: Request, column: Column) -> tuple[object, ...]:
    """Return what the group of a column asks for, but for its suffix and its place in same_subtree."""
    suffix = column.group.suffix
    return (replace(column.group, suffix="", resources=tuple(sorted(column.group.resources))), suffix in request.isolated)


def alike_subtrees(index: Index, request: Request, columns: Sequence[Column]) -> Iterator[tuple[list[int], Rules]]:
    """Yield for each kind of entry the first level of each entry, and to how many entries each provider may be given at that level.

    Exchanging two entries exchanges their suffixes alone, as none of their groups is in another entry. Numbers of entries are in the
    form of the rules of a class.
    """
    level_of = {column.group.suffix: level for level, column in enumerate(columns)}
    counted = Counter(suffix for subtree in request.subtrees for suffix in (*subtree.together, *subtree.apart))
    alike: dict[t.Hashable, list[list[int]]] = {}
    for subtree in request.subtrees:
        if not subtree.apart and all(counted[suffix] == 1 and suffix != UNSUFFIXED for suffix in subtree.together):
            entry = sorted(level_of[suffix] for suffix in subtree.together)
            asked = Counter(asked_by(request, columns[level]) for level in entry)
            alike.setdefault(frozenset(asked.items()), []).append(entry)
    for entries in alike.values():
        # Of groups that ask for different things, none can be compared with another.
        if len(entries) > 1 and len({asked_by(request, columns[entry[0]]) for entry in entries}) == 1:
            first, *others = (columns[level] for level in entries[0])
            positions = np.flatnonzero(first.own | first.shared)
            most = _most_entries(index, request, others)[positions]
            rules = {position: (count, 1, 1) for position, count in zip(positions.tolist(), most.tolist(), strict=True)}
            yield sorted(entry[0] for entry in entries), rules


def _most_entries(index: Index, request: Request, others: Sequence[Column]) -> Integers:
    """Return at how many entries the subtree of each provider has room for the other columns of these entries.

    Where one of these columns could be given a provider above, there is no bound.
    """
    most = np.full(index.size, _ANY, dtype=np.int64)
    for name in sorted({name for column in others for name, _amount in column.amounts}):
        asking = [column for column in others if name in dict(column.amounts)]
        table = index.classes.get(name)
        if table is None:
            continue
        amount = min(dict(column.amounts)[name] for column in asking)
        pieces = np.zeros(index.size, dtype=np.int64)
        pieces[table.positions] = np.maximum(table.most, 0) // amount
        pieces[~np.logical_or.reduce([column.own | column.shared for column in asking])] = 0
        if all(column.group.suffix in request.isolated for column in asking):
            pieces = np.minimum(pieces, 1)
        below = np.concatenate(([0], np.cumsum(pieces)))
        most = np.minimum(most, (below[index.end] - below[:-1]) // len(asking))
    if others:
        covers = np.zeros(index.size + 1, dtype=np.int64)
        above = np.flatnonzero(np.logical_or.reduce([column.own | column.shared for column in others]))
        np.add.at(covers, above + 1, 1)
        np.add.at(covers, index.end[above], -1)
        most[np.cumsum(covers)[: index.size] > 0] = _ANY
    return most


def canonical(request: Request) -> t.Hashable | None:
    """Return what two requests have in common exactly if they differ in nothing but suffixes, and the order of groups and subtrees.

    None where groups are in several entries of same_subtree: these are not compared.
    """
    counted = Counter(suffix for subtree in request.subtrees for suffix in {*subtree.together, *subtree.apart})
    if any(count > 1 for count in counted.values()):
        return None
    kinds = {
        group.suffix: (
            replace(group, suffix=group.suffix and "*", resources=tuple(sorted(group.resources))),
            group.suffix in request.isolated,
        )
        for group in request.groups
    }
    entries = Counter(
        (_counted(kinds[suffix] for suffix in subtree.together), _counted(kinds[suffix] for suffix in subtree.apart))
        for subtree in request.subtrees
    )
    alone = _counted(kind for suffix, kind in kinds.items() if suffix not in counted)
    isolated = frozenset(kinds[suffix] for suffix in request.isolated)
    rest = replace(request, groups=(), subtrees=(), isolated=frozenset())
    return rest, alone, frozenset(entries.items()), isolated


def _counted(kinds: Iterable[t.Hashable]) -> frozenset[tuple[t.Hashable, int]]:
    return frozenset(Counter(kinds).items())
