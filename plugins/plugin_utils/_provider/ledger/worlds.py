# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the world of a ledger: all of it, or the trees that some providers belong to."""

from __future__ import annotations

import typing as t
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from ..._common.libraries import sa
from ..world.model import Allocations, Inventory, Provider, World
from ..world.names import SHARING_TRAIT, STANDARD_CLASSES, STANDARD_TRAITS, KnownNames, known_names
from .clock import read_now
from .read import batches, holds_something, read_numbers, read_providers
from .statements import among, select_rows
from .stored import INVENTORY_COLUMNS, Holding, read_drain, sets_of
from .tables import consumers, provider_aggregates


def read_world(connection: sa.Connection, now: int | None = None) -> World:
    """Return all providers in the order they were made, all allocations, and the names that exist.

    Allocations whose lease has ended `now`, by default at this second, are left out.
    """
    return _read_providers_of_world(connection, None, now)


def read_known_names(connection: sa.Connection) -> KnownNames:
    """Return every resource class and trait that exists."""
    classes, known_traits, named = _read_names(connection)
    return known_names(classes, known_traits, named.values())


def _read_names(connection: sa.Connection) -> tuple[list[str], list[str], dict[str, str]]:
    """Return the names of classes, those of traits, and those of the aggregates that have one, by UUID."""
    classes, known_traits, named = _select_each(
        connection,
        ("name, '' FROM resource_classes", "name, '' FROM traits", "name, uuid FROM aggregates"),
    )
    return [name for name, _uuid in classes], [name for name, _uuid in known_traits], {uuid: name for name, uuid in named}


def _select_each(connection: sa.Connection, texts: Sequence[str]) -> list[Sequence[t.Any]]:
    """Return the rows that each text after SELECT stands for; all have as many columns.

    A server gets one statement: to send one takes longer than to read a few rows. A file is read quicker without telling the rows apart.
    """
    if connection.dialect.name == "sqlite":
        return [select_rows(connection, f"SELECT {text}") for text in texts]
    found: list[list[t.Any]] = [[] for _text in texts]
    for place, *row in select_rows(connection, " UNION ALL ".join(f"SELECT {place}, {text}" for place, text in enumerate(texts))):
        found[place].append(row)
    return [*found]


def read_aggregate_names(connection: sa.Connection) -> dict[str, str]:
    """Return the names of the aggregates that have one, by UUID."""
    return dict(select_rows(connection, "SELECT uuid, name FROM aggregates"))


def read_trees(connection: sa.Connection, references: Iterable[str], now: int | None = None) -> World:
    """Return the same of the trees alone that some providers (by UUID or name) belong to; unknown ones have no tree."""
    numbers = {number for number, _uuid in read_numbers(connection, references).values()}
    return _read_providers_of_world(connection, read_tree_numbers(connection, numbers), now)


def read_trees_of(connection: sa.Connection, numbers: Collection[int], now: int | None = None) -> World:
    """Return the same of the trees that some providers, by their numbers, belong to."""
    return _read_providers_of_world(connection, read_tree_numbers(connection, numbers), now)


def read_tree_numbers(connection: sa.Connection, numbers: Iterable[int]) -> set[int]:
    """Return the numbers of all providers in the trees of some."""
    members: set[int] = set()
    for part in batches(numbers):
        roots = f"SELECT root_id FROM resource_providers WHERE id IN ({_listed(part)})"
        members.update(_column(connection, f"SELECT id FROM resource_providers WHERE root_id IN ({roots})"))
    return members


def read_members(connection: sa.Connection, aggregates: Iterable[str]) -> set[int]:
    """Return the numbers of the providers that are in at least one of the aggregates."""
    found: set[int] = set()
    for part in batches(aggregates):
        found.update(connection.scalars(sa.select(provider_aggregates.c.provider_id).where(provider_aggregates.c.aggregate.in_(part))))
    return found


def read_neighbourhood(connection: sa.Connection, holding: Holding) -> World:
    """Return the world of all trees that what a consumer has could belong to, and of those that these share.

    What it has belongs to the trees that it has something of; where all of that is shared, it may belong to those that share it.
    """
    stored = read_providers(connection, holding.uuids.values()).values()
    members = set(holding.uuids)
    if all(SHARING_TRAIT in provider.traits for provider in stored):
        members |= read_members(connection, frozenset().union(*(provider.aggregates for provider in stored)))
    roots: set[int] = set()
    for part in batches(members):
        roots.update(_column(connection, f"SELECT DISTINCT root_id FROM resource_providers WHERE id IN ({_listed(part)})"))
    return _read_providers_of_world(connection, read_tree_numbers(connection, roots | read_shared_roots(connection, roots)))


def read_shared_roots(connection: sa.Connection, roots: Iterable[int]) -> set[int]:
    """Return the roots of the trees of the sharing providers that are in an aggregate of the roots' trees."""
    aggregates: set[str] = set()
    for numbers in batches(roots):
        aggregates.update(_column(connection, f"SELECT DISTINCT aggregate FROM provider_aggregates WHERE root_id IN ({_listed(numbers)})"))
    found: set[int] = set()
    for part in batches(aggregates):
        wanted = among(part)
        text = f"SELECT DISTINCT root_id FROM provider_aggregates WHERE sharing = 1 AND aggregate IN ({wanted.slots})"
        found.update(root for (root,) in select_rows(connection, text, wanted.values))
    return found


def _read_providers_of_world(connection: sa.Connection, numbers: Collection[int] | None, now: int | None = None) -> World:
    now = read_now(connection) if now is None else now
    own = "id, uuid, name, generation, parent_id, drain_reason, drained_until"
    rows = list(_rows(connection, f"SELECT {own} FROM resource_providers", "id", numbers, "ORDER BY id"))
    uuids = {row[0]: row[1] for row in rows}
    columns = ", ".join(column.name for column in INVENTORY_COLUMNS)
    stocks = _inventories_of(_rows(connection, f"SELECT provider_id, resource_class, {columns} FROM inventories", "provider_id", numbers))
    if numbers is None:
        trait_sets = sets_of(connection.exec_driver_sql("SELECT provider_id, trait FROM provider_traits"))
        aggregate_sets = sets_of(connection.exec_driver_sql("SELECT provider_id, aggregate FROM provider_aggregates"))
    else:
        trait_sets, aggregate_sets = map(sets_of, read_names_had(connection, numbers))
    nothing: frozenset[str] = frozenset()
    found = tuple(
        Provider(
            uuid=uuid,
            name=name,
            parent=uuids.get(parent),
            inventories=stocks.get(number, {}),
            traits=trait_sets.get(number, nothing),
            aggregates=aggregate_sets.get(number, nothing),
            generation=generation,
            drained=None if until is None else read_drain(reason, until, now),
        )
        for number, uuid, name, generation, parent, reason, until in rows
    )
    classes, known_traits, named = _read_names(connection)
    held = _read_allocations(connection, uuids, numbers, now)
    consumer_names = _read_consumer_names(connection, None if numbers is None else held, now)
    return World(found, held, frozenset(known_traits) - STANDARD_TRAITS, frozenset(classes) - STANDARD_CLASSES, consumer_names, named)


def read_names_had(connection: sa.Connection, numbers: Collection[int]) -> tuple[list[t.Any], list[t.Any]]:
    """Return (provider's number, trait) and (provider's number, aggregate) of all that some providers have."""
    found: tuple[list[t.Any], list[t.Any]] = ([], [])
    for part in batches(sorted(numbers)):
        among = f"WHERE provider_id IN ({_listed(part)})"
        texts = (
            f"provider_id, trait FROM provider_traits {among}",
            f"provider_id, aggregate FROM provider_aggregates {among}",
        )
        for every, rows in zip(found, _select_each(connection, texts), strict=True):
            every += rows
    return found


def _rows(connection: sa.Connection, chosen: str, column: str, numbers: Collection[int] | None, order: str = "") -> Iterable[t.Any]:
    """Return all rows, or those of some providers."""
    if numbers is None:
        return connection.exec_driver_sql(f"{chosen} {order}")
    parts = (select_rows(connection, f"{chosen} WHERE {column} IN ({_listed(part)}) {order}") for part in batches(sorted(numbers)))
    return [row for part in parts for row in part]


def _column(connection: sa.Connection, chosen: str) -> list[t.Any]:
    """Return the one column that is selected."""
    return [value for (value,) in select_rows(connection, chosen)]


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _inventories_of(rows: Iterable[t.Any]) -> dict[int, dict[str, Inventory]]:
    found: dict[int, dict[str, Inventory]] = defaultdict(dict)
    # A fleet has few kinds of inventory: equal ones are made once, which is half the time of reading it.
    kinds: dict[tuple[t.Any, ...], Inventory] = {}
    for row in rows:
        fields = row[2:]
        inventory = kinds.get(fields)
        if inventory is None:
            inventory = kinds[fields] = Inventory(*fields)
        found[row[0]][row[1]] = inventory
    return found


def _read_allocations(
    connection: sa.Connection, uuids: Mapping[int, str], numbers: Collection[int] | None, now: int
) -> dict[str, Allocations]:
    found: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    holding = f"SELECT id, uuid FROM consumers WHERE expires_at IS NULL OR expires_at > {now}"
    columns = f"SELECT c.uuid, a.provider_id, a.resource_class, a.used FROM allocations a JOIN ({holding}) c ON c.id = a.consumer_id"
    for consumer, number, name, used in _rows(connection, columns, "a.provider_id", numbers):
        # An audit tells of those whose provider was taken away by hand.
        if number in uuids:
            found[consumer][uuids[number]][name] = used
    return {consumer: dict(amounts) for consumer, amounts in found.items()}


def _read_consumer_names(connection: sa.Connection, uuids: Collection[str] | None, now: int) -> dict[str, str]:
    """Return the names of those consumers that have one, by UUID: of all, or among `uuids`."""
    columns = sa.select(consumers.c.uuid, consumers.c.name).where(consumers.c.name.is_not(None), holds_something(now))
    if uuids is None:
        return {row.uuid: row.name for row in connection.execute(columns)}
    return {uuid: name for part in batches(uuids) for uuid, name in connection.execute(columns.where(consumers.c.uuid.in_(part)))}
