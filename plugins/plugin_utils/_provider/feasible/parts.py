# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Load the trees that may satisfy a request, a few at a time, and search them until there are enough candidates."""

from __future__ import annotations

import math
import typing as t
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import cached_property, partial

from ..._common.libraries import sa
from ..candidates.find import Answer, Part, SearchOptions, find_in_parts
from ..candidates.index import Member, Rows, Stock, index_rows
from ..candidates.requirements import Sql
from ..ledger.clock import read_now, sql_now
from ..ledger.expired import expired_amounts
from ..ledger.read import read_numbers
from ..ledger.stored import Holding
from ..ledger.worlds import read_names_had, read_shared_roots
from ..request.model import Request
from ..world.names import SHARING_TRAIT
from .criteria import make_criteria, numbers_in, rows
from .roots import Counts, Finder

_FIRST_TREES, _MOST_TREES = 8, 1024
_STEPS = 8
"""The first of as many trees as candidates are wanted: each may have several. Their candidates decide how many more are loaded."""

Held = Mapping[tuple[int, str], int]
"""What counts as free although it is in use: amounts by provider's number and class."""


@dataclass(frozen=True)
class Asker:
    """Finds candidates in a database, in one read transaction; what `holding` has, or a consumer whose lease has ended, counts as free.

    `taken` is not free although it is not in use yet.
    """

    connection: sa.Connection
    holding: Holding | None = None
    counts: Counts = field(default_factory=dict, compare=False)
    taken: Held = field(default_factory=dict, compare=False)

    def find(self, request: Request, options: SearchOptions) -> Answer:
        """Return what find_candidates would return of the whole world."""
        return find_in_parts(partial(self._parts, request, options.order), request, options)

    def _parts(self, request: Request, order: str, candidates: Sized) -> Iterator[Part]:
        held, finder = self.free, self.finder(request)
        asked: Counter[str] = Counter()
        for group in request.groups:
            for name, amount in group.resources:
                asked[name] += amount
        found = finder.by_name(request.limit) if order == "none" else finder.by_share(asked, self.free_by_root, order)
        limit = _MOST_TREES if request.limit is None else request.limit
        # To spread takes one candidate of each tree, so that as many trees are needed.
        size = _within(limit if request.limit is None or order == "spread" else limit // _STEPS)
        least, loaded = _FIRST_TREES, 0
        waiting: list[int] = []
        for roots in found:
            waiting += roots
            while len(waiting) >= min(size, limit):
                yield read_part(self.connection, waiting[:size], asked, held, shares=finder.shares)
                loaded, waiting, least = loaded + len(waiting[:size]), waiting[size:], 2 * least
                many = 4 * size
                if request.limit is not None and len(candidates):
                    many = max(least, math.ceil((limit - len(candidates)) * loaded / len(candidates)))
                size = _within(many)
        if waiting:
            yield read_part(self.connection, waiting, asked, held, shares=finder.shares)

    @cached_property
    def free(self) -> Held:
        """What counts as free although it is in use; a negative amount is in use by others whose claims are yet to be made."""
        now = read_now(self.connection)
        free = Counter(expired_amounts(self.connection, now))
        ends = self.holding.consumer.expires_at if self.holding else None
        # One that has expired is among the others.
        free.update(self.holding.amounts if self.holding and (ends is None or ends > now) else {})
        free.subtract(self.taken)
        return free

    @cached_property
    def roots_of_free(self) -> dict[int, int]:
        """The providers of which something counts as free, each with its root."""
        return self._roots_of({number for number, _name in self.free})

    @cached_property
    def free_by_root(self) -> Counter[tuple[int, str]]:
        """What counts as free, by the number of a tree's root and class."""
        of_trees: Counter[tuple[int, str]] = Counter()
        for (number, name), amount in self.free.items():
            of_trees[self.roots_of_free[number], name] += amount
        return of_trees

    def finder(self, request: Request) -> Finder:
        """Return what finds the roots of the trees that may satisfy a request."""
        kept = self.roots_of_free
        criteria = make_criteria(request, self._trees(request), kept, self._sharing(kept), self._named_roots(request))
        return Finder(self.connection, criteria, self.counts)

    def _trees(self, request: Request) -> dict[str, int]:
        """Return the numbers of the roots of the trees that in_tree names."""
        named = {group.in_tree for group in request.groups if group.in_tree is not None}
        numbers = {name: number for name, (number, _uuid) in read_numbers(self.connection, named).items()} if named else {}
        roots = self._roots_of(numbers.values())
        return {name: roots[number] for name, number in numbers.items()}

    def _named_roots(self, request: Request) -> dict[str, int]:
        """Return the numbers of the roots that a request names, by UUID."""
        named = (request.roots or frozenset()) | request.other_roots
        return {uuid: number for uuid, (number, _uuid) in read_numbers(self.connection, named).items()}

    def _roots_of(self, numbers: Collection[int]) -> dict[int, int]:
        if not numbers:
            return {}
        found = rows(self.connection, Sql(f"SELECT id, root_id FROM resource_providers WHERE id IN ({numbers_in(numbers)})"))
        return dict(found)

    def _sharing(self, numbers: Collection[int]) -> list[int]:
        if not numbers:
            return []
        text = f"SELECT provider_id FROM provider_traits WHERE trait = ? AND provider_id IN ({numbers_in(numbers)})"
        return [number for (number,) in rows(self.connection, Sql(text, (SHARING_TRAIT,)))]


def _within(trees: int) -> int:
    return min(max(_FIRST_TREES, trees), _MOST_TREES)


def read_part(connection: sa.Connection, roots: Sequence[int], classes: Collection[str], held: Held, *, shares: bool) -> Part:
    """Return the trees of some roots, in that order, with the trees of all that they share; only the asked classes are loaded.

    `shares` is false where no provider of the ledger shares.
    """
    loaded = numbers_in({*roots, *(read_shared_roots(connection, roots) if shares else ())})
    drained = f"CASE WHEN closed_until > {sql_now(connection)} THEN 'it is drained' ELSE '' END"
    members = f"SELECT id, uuid, name, generation, parent_id, {drained} FROM resource_providers"
    found = rows(connection, Sql(f"{members} WHERE root_id IN ({loaded})"))
    numbers = [row[0] for row in found]
    index = index_rows(Rows(map(Member._make, found), _stocks(connection, numbers, classes, held), *read_names_had(connection, numbers)))
    places = dict(zip((index.providers[start].key for start in index.tree_start.tolist()), index.tree_start.tolist(), strict=True))
    return Part(index, [places[root] for root in roots])


def _stocks(connection: sa.Connection, numbers: Collection[int], classes: Collection[str], held: Held) -> Sequence[Stock]:
    """Return the inventories of some providers."""
    columns = "provider_id, resource_class, used, capacity, min_unit, max_unit, step_size"
    among = ", ".join("?" * len(classes))
    text = f"SELECT {columns} FROM inventories WHERE provider_id IN ({numbers_in(numbers)}) AND resource_class IN ({among})"
    found: Sequence[t.Any] = rows(connection, Sql(text, tuple(classes)))
    if not held:
        return found
    return [(number, name, used - held.get((number, name), 0), *rest) for number, name, used, *rest in found]
