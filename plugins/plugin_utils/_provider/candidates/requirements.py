# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a request asks of providers, each requirement stated once: as a mask of an index, and as a condition of SQL on a row.

Texts of SQL have `?` for values and a field `{p}` for the table's alias.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ..._common.libraries import np
from ..request.model import UNSUFFIXED, Group, Preference, Request
from ..world.names import aggregate_uuid
from ..world.pieces import sql_allows_piece
from .index import Index, Mask


@dataclass(frozen=True)
class Sql:
    """A piece of SQL and the values of its question marks."""

    text: str
    values: tuple[t.Any, ...] = ()

    def of(self, alias: str) -> Sql:
        """Return it about a table with this alias."""
        return Sql(self.text.replace("{p}", alias), self.values)


@dataclass(frozen=True)
class Room:
    """That a provider has an amount of a class free in one piece, or in any piece where the amount may be split."""

    name: str
    amount: int
    split: bool
    table: t.ClassVar[str] = "inventories"

    def mask(self, index: Index) -> Mask:
        """Where it holds."""
        table = index.classes.get(self.name)
        if table is None:
            return np.zeros(index.size, dtype=bool)
        return index.mask(table.positions[table.min_unit <= table.most] if self.split else table.fits(self.amount))

    def sql(self) -> Sql:
        """Return the condition on a row of the table."""
        if self.split:
            return Sql("{p}.resource_class = ? AND {p}.most >= 1 AND {p}.min_unit <= {p}.most", (self.name,))
        text = "{p}.resource_class = ? AND {p}.most >= ? AND " + sql_allows_piece("{p}", "?")
        return Sql(text, (self.name, *[self.amount] * 4))


@dataclass(frozen=True)
class Stocked:
    """That a provider has an inventory of a class."""

    name: str
    table: t.ClassVar[str] = "inventories"

    def mask(self, index: Index) -> Mask:
        """Where it holds."""
        table = index.classes.get(self.name)
        return np.zeros(index.size, dtype=bool) if table is None else index.mask(table.positions)

    def sql(self) -> Sql:
        """Return the condition on a row of the table."""
        return Sql("{p}.resource_class = ?", (self.name,))


@dataclass(frozen=True)
class Piece:
    """That a provider gives an amount of a class to one consumer, whether it is free or not."""

    name: str
    amount: int
    table: t.ClassVar[str] = "inventories"

    def mask(self, index: Index) -> Mask:
        """Where it holds."""
        table = index.classes.get(self.name)
        return np.zeros(index.size, dtype=bool) if table is None else index.mask(table.positions[table.allows_piece(self.amount)])

    def sql(self) -> Sql:
        """Return the condition on a row of the table."""
        text = "{p}.resource_class = ? AND {p}.max_unit >= ? AND " + sql_allows_piece("{p}", "?")
        return Sql(text, (self.name, *[self.amount] * 4))


@dataclass(frozen=True)
class Trait:
    """That a provider has one of some traits."""

    names: frozenset[str]
    table: t.ClassVar[str] = "provider_traits"

    def mask(self, index: Index) -> Mask:
        """Where it holds."""
        return index.any_trait(self.names)

    def sql(self) -> Sql:
        """Return the condition on a row of the table."""
        return _one_of("trait", self.names)


@dataclass(frozen=True)
class Aggregate:
    """That a provider is in one of some aggregates, UUIDs or names."""

    names: frozenset[str]
    table: t.ClassVar[str] = "provider_aggregates"

    def mask(self, index: Index) -> Mask:
        """Where it holds."""
        return index.any_aggregate(self.names)

    def sql(self) -> Sql:
        """Return the condition on a row of the table."""
        return _one_of("aggregate", set(map(aggregate_uuid, self.names)))


@dataclass(frozen=True)
class Requirement:
    """One thing that a provider must have, or must not have; `kind` and `says` describe it to people.

    `root_counts` is set where it is enough, or too much, that the root of the tree has it.
    """

    kind: str
    says: str
    what: Room | Stocked | Piece | Trait | Aggregate
    forbidden: bool = False
    root_counts: bool = False

    def own(self, index: Index) -> Mask:
        """Where it holds for a tree's own providers."""
        has = self.what.mask(index)
        has = has | has[index.root] if self.root_counts else has
        return ~has if self.forbidden else has

    def shared(self, index: Index) -> Mask:
        """Where it holds for sharing providers of other trees, whose own root does not matter."""
        has = self.what.mask(index)
        return ~has if self.forbidden else has


def column_amounts(group: Group, can_split: frozenset[str]) -> list[tuple[tuple[tuple[str, int], ...], bool]]:
    """Return (amounts, may be split) of each of a group's columns.

    A granular group is one column. The group without a suffix is one column for each of its classes, since each may come from another
    provider.
    """
    if group.suffix != UNSUFFIXED:
        return [(group.resources, False)]
    return [((entry,), entry[0] in can_split) for entry in group.resources]


def column_requirements(group: Group, amounts: tuple[tuple[str, int], ...], *, split: bool) -> Iterator[Requirement]:
    """Yield what one provider of a column must satisfy by itself, but for drains and `in_tree`."""
    unsuffixed = group.suffix == UNSUFFIXED
    for name, amount in amounts:
        fits = f"has a piece of {name} free" if split else f"has {amount} {name} free at once (min_unit, max_unit, step_size)"
        yield Requirement("room", fits, Room(name, amount, split))
    if not unsuffixed or (len(group.resources) == 1 and not split):
        yield from map(required_trait, group.required)
    if group.forbidden:
        yield Requirement("forbidden", f"not trait {', '.join(sorted(group.forbidden))}", Trait(group.forbidden), forbidden=True)
    for choice in group.member_of:
        yield Requirement("member_of", f"in aggregate {' or '.join(sorted(choice))}", Aggregate(choice), root_counts=unsuffixed)
    if group.not_member_of:
        says = f"not in aggregate {', '.join(sorted(group.not_member_of))}"
        yield Requirement("not_member_of", says, Aggregate(group.not_member_of), forbidden=True, root_counts=unsuffixed)


def stock_requirements(name: str, amount: int, *, split: bool) -> Iterator[Requirement]:
    """Yield what asking for one amount means, step by step; together they are what the search asks for."""
    yield Requirement("inventory", f"has an inventory of {name}", Stocked(name))
    if split:
        yield Requirement("room", f"has a piece of {name} free", Room(name, amount, split=True))
    else:
        yield Requirement("unit", f"gives {amount} {name} at once (min_unit, max_unit, step_size)", Piece(name, amount))
        yield Requirement("room", f"has {amount} {name} free", Room(name, amount, split=False))


def required_trait(choice: frozenset[str]) -> Requirement:
    """Return the requirement of one of some traits."""
    return Requirement("required", f"trait {' or '.join(sorted(choice))}", Trait(choice))


def root_requirements(request: Request) -> Iterator[Requirement]:
    """Yield what the root of a candidate's tree must satisfy, but for the consumers to be with or not."""
    for trait in sorted(request.root_required):
        yield Requirement("root_required", f"root has trait {trait}", Trait(frozenset([trait])))
    if request.root_forbidden:
        says = f"root does not have trait {', '.join(sorted(request.root_forbidden))}"
        yield Requirement("root_forbidden", says, Trait(request.root_forbidden), forbidden=True)
    for choice in request.root_member_of:
        yield Requirement("root_member_of", f"root is in aggregate {' or '.join(sorted(choice))}", Aggregate(choice))
    unsuffixed = request.group(UNSUFFIXED)
    outside = {"root_member_of": request.root_not_member_of, "not_member_of": unsuffixed.not_member_of if unsuffixed else frozenset()}
    for kind, names in outside.items():
        if names:
            yield Requirement(kind, f"root is not in aggregate {', '.join(sorted(names))}", Aggregate(names), forbidden=True)


def preferred(preference: Preference) -> Requirement:
    """Return what is preferred as a requirement."""
    having = Trait if preference.kind == "trait" else Aggregate
    return Requirement("prefer", f"{preference.kind} {preference.name}", having(frozenset([preference.name])))


def _one_of(column: str, names: Collection[str]) -> Sql:
    values = tuple(sorted(names))
    return Sql(f"{{p}}.{column} IN ({', '.join('?' * len(values))})", values)
