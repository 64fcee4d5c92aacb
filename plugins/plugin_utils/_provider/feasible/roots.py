# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The roots of the trees that may satisfy a request, in the order in which the search wants them.

The first roots by name are checked, many at once. Where few of them fit, one statement finds all that fit, led by the
rarest criterion; where those are too many to sort, enough of them are found by checking on.
"""

from __future__ import annotations

import typing as t
from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from ..._common.libraries import np, npt, sa
from ..candidates.order import share_order
from ..candidates.requirements import Sql
from .criteria import Atom, Criteria, Criterion, conjunction, numbers_in, rows

_FIRST_PAGE, _LARGEST_PAGE = 64, 4096
_WALKED_AT_LEAST = 256
"""The first names may be of another kind than the hosts, such as pools that they share."""
_FEW = 16
"""Fewer than one fitting root in this number is few: then all that fit are searched for at once."""
_MOST_SORTED = 20_000
_SORTED_FOR_ONE = 4
"""This number of roots with a rare trait or aggregate is checked and sorted sooner than one fitting root is met in order."""
_COUNTED = (1_024, 4_096, 100_000)
"""How far criteria are counted to find the rarest."""


Counts = dict[tuple[str, Sql, int], int]
"""How many rows of a table are as said, counted no further than a number: known for the whole transaction."""


@dataclass
class Finder:
    """Finds roots in one read transaction; what it learns of aggregates and criteria serves all its searches."""

    connection: sa.Connection
    criteria: Criteria
    counts: Counts = field(default_factory=dict)
    _offers: dict[int, dict[str, bool]] = field(default_factory=dict)
    _passed: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of how many roots a criterion held, and of how many it was asked.

    Both go by the criteria's ids: to hash all that a criterion says takes longer than a statement.
    """

    def by_name(self, limit: int | None) -> Iterator[list[int]]:
        """Yield the roots' numbers in the order of their names, in pieces; about `limit` are wanted, None for all."""
        if limit is None or self._trees is not None or self._are_at_most(_SORTED_FOR_ONE * limit):
            yield self._by_name(self._complete(None) or [], "")
            return
        last, size, walked, hits, looked = "", max(_FIRST_PAGE, min(16 * limit, 256), min(2 * limit, 1024)), 0, 0, False
        while page := self._page(last, size):
            found = self._filtered([number for number, _name in page])
            yield [number for number, _name in page if number in found]
            last, walked, hits = page[-1][1], walked + len(page), hits + len(found)
            if not looked and walked >= _WALKED_AT_LEAST and hits * _FEW < walked:
                looked = True
                every = self._complete(_MOST_SORTED)
                if every is not None:
                    yield self._by_name(every, last)
                    return
            size = min(4 * size, _LARGEST_PAGE)

    def by_share(self, asked: dict[str, int], kept: dict[tuple[int, str], int], order: str) -> Iterator[list[int]]:
        """Yield all roots at once, those first of which the least (spread) or the most (pack) will be in use.

        `asked` are amounts by class, `kept` what counts as free by root and class.
        """
        found, shares = self.with_shares(asked, kept)
        if found:
            yield np.array(found)[share_order(shares, order)].tolist()

    def with_shares(self, asked: dict[str, int], kept: dict[tuple[int, str], int]) -> tuple[list[int], npt.NDArray[np.float64]]:
        """Return all roots by name, and which share of each will be in use; the arithmetic is that of a search of the whole world."""
        found = self._by_name(self._complete(None) or [], "")
        places = {number: place for place, number in enumerate(found)}
        total, kinds = np.zeros(len(found)), np.zeros(len(found))
        for name, amount in sorted(asked.items()):
            at, capacities, uses = array("q"), array("d"), array("d")
            for part in _pages(found, _LARGEST_PAGE):
                columns = f"SELECT root_id, capacity, used FROM inventories WHERE resource_class = ? AND root_id IN ({numbers_in(part)})"
                for root, capacity, used in rows(self.connection, Sql(columns, (name,))):
                    at.append(places[root])
                    capacities.append(capacity)
                    uses.append(used)
            capacity = np.bincount(np.array(at, dtype=np.int64), weights=np.array(capacities), minlength=len(found))
            used = np.bincount(np.array(at, dtype=np.int64), weights=np.array(uses), minlength=len(found))
            for (root, of_class), held in kept.items():
                if of_class == name and root in places:
                    used[places[root]] -= held
            has = capacity > 0
            total[has] += (used[has] + amount) / capacity[has]
            kinds += has
        return found, np.divide(total, kinds, out=np.zeros(len(found)), where=kinds > 0)

    @property
    def _trees(self) -> Collection[int] | None:
        """The only roots that can do, because in_tree names their trees, or a consumer to be with is there; None for all."""
        only: set[int] | None = None if self.criteria.roots is None else set(self.criteria.roots)
        for criterion in self.criteria.wanted:
            if criterion.tree is not None and not self._is_offered(criterion):
                only = {criterion.tree} if only is None else only & {criterion.tree}
        return only

    def _are_at_most(self, most: int) -> bool:
        """Whether a trait or an aggregate leaves at most `most` roots; where few are wanted, counting is not worth it."""
        return most >= _SORTED_FOR_ONE * _WALKED_AT_LEAST and any(
            self._count(atom, max(most + 1, _COUNTED[0])) <= most
            for criterion in self.criteria.wanted
            if not self._is_offered(criterion)
            for atom in criterion.atoms
            if atom.table != "inventories"
        )

    def _page(self, last: str, size: int) -> Sequence[t.Any]:
        text = "SELECT id, name FROM resource_providers WHERE parent_id IS NULL AND name > ? ORDER BY parent_id, name LIMIT ?"
        return rows(self.connection, Sql(text, (last, size)))

    def _by_name(self, numbers: Collection[int], last: str) -> list[int]:
        """Return roots in the order of their names, those up to a name left out."""
        found: list[tuple[str, int]] = []
        for part in _pages(list(numbers), _LARGEST_PAGE):
            for number, name in rows(self.connection, Sql(f"SELECT id, name FROM resource_providers WHERE id IN ({numbers_in(part)})")):
                if name > last:
                    found.append((name, number))
        return [number for _name, number in sorted(found)]

    def _filtered(self, roots: Sequence[int]) -> set[int]:
        """Return those of some roots that may do."""
        left = set(roots) - self.criteria.other_roots
        if self.criteria.roots is not None:
            left &= self.criteria.roots
        for atom in self.criteria.unwanted:
            says = atom.says.of("d")
            text = f"SELECT d.provider_id FROM {atom.table} d WHERE {says.text} AND d.provider_id IN ({numbers_in(left)})"
            left -= {number for (number,) in rows(self.connection, Sql(text, says.values))}
        for criterion in self._strictest_first():
            if not left:
                break
            asked, left = len(left), left & self._having(criterion, left)
            before = self._passed.get(id(criterion), (0, 0))
            self._passed[id(criterion)] = (before[0] + len(left), before[1] + asked)
        return left | (self.criteria.held & set(roots))

    def _strictest_first(self) -> list[Criterion]:
        """Return the criteria in the order in which they leave the least to ask of the others, those that may be shared last."""

        def share(criterion: Criterion) -> tuple[bool, float]:
            # Most hosts have room; not all have a trait.
            passed, asked = self._passed.get(id(criterion), (1, 1 if criterion.atoms[0].table == "inventories" else 2))
            return self._is_offered(criterion), passed / asked

        return sorted(self.criteria.wanted, key=share)

    def _having(self, criterion: Criterion, roots: set[int]) -> set[int]:
        says = criterion.found("d")
        offered = self._is_offered(criterion)
        having = "" if offered else _having(criterion, "d")
        text = f"SELECT d.root_id FROM {criterion.atoms[0].table} d WHERE {says.text} AND d.root_id IN ({numbers_in(roots)})"
        found = {number for (number,) in rows(self.connection, Sql(f"{text} GROUP BY d.root_id{having}", says.values))}
        return found | self._reaching(criterion, roots - found) if offered else found

    def _reaching(self, criterion: Criterion, roots: set[int]) -> set[int]:
        """Return the roots of the trees that reach a sharing provider that will do."""
        if not roots:
            return set()
        text = f"SELECT DISTINCT root_id, aggregate FROM provider_aggregates WHERE root_id IN ({numbers_in(roots)})"
        reached = rows(self.connection, Sql(text))
        known = self._offers.setdefault(id(criterion), {})
        unknown = sorted({aggregate for _root, aggregate in reached} - known.keys())
        for part in _pages(unknown, _LARGEST_PAGE):
            offers = _offers(criterion, f"s.aggregate IN ({', '.join('?' * len(part))}) AND ", tuple(part))
            offering = {aggregate for (aggregate,) in rows(self.connection, offers)}
            known.update((aggregate, aggregate in offering) for aggregate in part)
        return {root for root, aggregate in reached if known[aggregate]}

    def _is_offered(self, criterion: Criterion) -> bool:
        """Whether sharing providers of other trees may do: there is one for each of the atoms."""
        if criterion.shared is None or not self.shares:
            return False
        known = self._offers.setdefault(id(criterion), {})
        if "" not in known:
            known[""] = all(self._is_shared(atom) for atom in criterion.atoms)
        return known[""]

    @cached_property
    def shares(self) -> bool:
        """Whether any provider shares: it has a trait that says so."""
        return bool(rows(self.connection, Sql("SELECT 1 FROM provider_traits WHERE sharing = 1 LIMIT 1")))

    def _is_shared(self, atom: Atom) -> bool:
        if atom.kept:
            return True
        says = atom.says.of("d")
        text = f"SELECT 1 FROM {atom.table} d WHERE d.sharing = 1 AND {says.text} LIMIT 1"
        return bool(rows(self.connection, Sql(text, says.values)))

    def _complete(self, most: int | None) -> set[int] | None:
        """Return all roots that may do, None if they are more than `most`."""
        leading = self._rarest() if self.criteria.roots is None else None
        table, conditions = "resource_providers", [Sql("d.parent_id IS NULL")]
        if self.criteria.roots is not None:
            conditions.append(Sql(f"d.root_id IN ({numbers_in(self.criteria.roots)})"))
        elif leading is not None:
            criterion, number, count = leading
            if not count:
                return set(self.criteria.held)
            atom = criterion.atoms[number]
            table = atom.table
            found = criterion.found("d", number)
            conditions = [Sql(_by_room(atom) + found.text, found.values)]
        for criterion in self.criteria.wanted:
            if leading is None or criterion is not leading[0] or criterion.least > 1 or criterion.total:
                conditions.append(self._of_root(criterion))
        if self.criteria.other_roots:
            conditions.append(Sql(f"d.root_id NOT IN ({numbers_in(self.criteria.other_roots)})"))
        for atom in self.criteria.unwanted:
            says = atom.says.of("u")
            text = f"NOT EXISTS (SELECT 1 FROM {atom.table} u WHERE u.provider_id = d.root_id AND {says.text})"
            conditions.append(Sql(text, says.values))
        every = conjunction(conditions)
        limit = "" if most is None else f" LIMIT {most + 1}"
        statement = Sql(f"SELECT DISTINCT d.root_id FROM {table} d WHERE {every.text}{limit}", every.values)
        every_root = {number for (number,) in rows(self.connection, statement)}
        return None if most is not None and len(every_root) > most else every_root | self.criteria.held

    def _of_root(self, criterion: Criterion) -> Sql:
        """Return the condition on a row `d` that the tree of its root will do."""
        says = criterion.found("o")
        of_tree = f"FROM {criterion.atoms[0].table} o WHERE o.root_id = d.root_id AND {says.text}"
        if self._is_offered(criterion):
            offers = _offers(criterion, "", ())
            reach = f"EXISTS (SELECT 1 FROM provider_aggregates a WHERE a.root_id = d.root_id AND a.aggregate IN ({offers.text}))"
            return Sql(f"(EXISTS (SELECT 1 {of_tree}) OR {reach})", (*says.values, *offers.values))
        if criterion.least > 1:
            return Sql(f"(SELECT COUNT(*) {of_tree}) >= {criterion.least}", says.values)
        if criterion.total:
            return Sql(f"(SELECT SUM(o.most) {of_tree}) >= {criterion.total}", says.values)
        return Sql(f"EXISTS (SELECT 1 {of_tree})", says.values)

    def _rarest(self) -> tuple[Criterion, int, int] | None:
        """Return the criterion and its atom that the fewest rows have, and how many; None where sharing providers may always do."""
        atoms = [
            (criterion, number)
            for criterion in self.criteria.wanted
            if not self._is_offered(criterion)
            for number in range(len(criterion.atoms))
        ]
        # Few hosts with a trait are quickly asked for room; to count those that have room takes longer.
        named = [(criterion, number) for criterion, number in atoms if criterion.atoms[number].table != "inventories"]
        for most, some in product(_COUNTED, (named, atoms)):
            counts = [(self._count(criterion.atoms[number], most), place) for place, (criterion, number) in enumerate(some)]
            if counts and (min(counts)[0] < most or (most == _COUNTED[-1] and some is atoms)):
                count, place = min(counts)
                return (*some[place], count)
        return None

    def count_together(self, criterion: Criterion, most: int) -> int:
        """Return how many providers have all of a criterion's atoms, and are as it says, counted no further than `most`."""
        if len(criterion.atoms) == 1 and not criterion.own:
            return self._count(criterion.atoms[0], most)
        found = self.together(criterion, most)
        return int(rows(self.connection, Sql(f"SELECT COUNT(*) FROM ({found.text}) counted", found.values))[0][0])

    def find_together(self, criterion: Criterion, most: int) -> list[int]:
        """Return the numbers of such providers, at most `most`."""
        return [number for (number,) in rows(self.connection, self.together(criterion, most))]

    def together(self, criterion: Criterion, most: int) -> Sql:
        """Return the statement that finds their numbers."""
        _count, leading = min((self._count(atom, most), number) for number, atom in enumerate(criterion.atoms))
        atom, says = criterion.atoms[leading], criterion.found("d", leading)
        return Sql(f"SELECT d.provider_id FROM {atom.table} d WHERE {_by_room(atom)}{says.text} LIMIT {most}", says.values)

    def _count(self, atom: Atom, most: int) -> int:
        known = atom.table, atom.says, most
        if known not in self.counts:
            self.counts[known] = self._counted(atom, most)
        return self.counts[known]

    def _counted(self, atom: Atom, most: int) -> int:
        says = atom.says.of("d")
        text = f"SELECT COUNT(*) FROM (SELECT 1 FROM {atom.table} d WHERE {_by_room(atom)}{says.text} LIMIT {most}) counted"
        return int(rows(self.connection, Sql(text, says.values))[0][0])


def _by_room(atom: Atom) -> str:
    """Return what lets an index find inventories by what is free: it has those that share apart."""
    return "d.sharing IN (0, 1) AND " if atom.table == "inventories" else ""


def _having(criterion: Criterion, alias: str) -> str:
    if criterion.least > 1:
        return f" HAVING COUNT(*) >= {criterion.least}"
    return f" HAVING SUM({alias}.most) >= {criterion.total}" if criterion.total else ""


def _offers(criterion: Criterion, among: str, values: tuple[str, ...]) -> Sql:
    """Return the statement for the aggregates by which sharing providers offer what a criterion asks for."""
    says = criterion.offered("d")
    joined = f"provider_aggregates s JOIN {criterion.atoms[0].table} d ON d.provider_id = s.provider_id"
    return Sql(f"SELECT DISTINCT s.aggregate FROM {joined} WHERE s.sharing = 1 AND {among}{says.text}", (*values, *says.values))


Value = t.TypeVar("Value")


def _pages(values: Sequence[Value], size: int) -> Iterator[Sequence[Value]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
