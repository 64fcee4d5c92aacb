# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the ledger: the whole world, its consumers, and the rows that a change starts from."""

from __future__ import annotations

import typing as t
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice

from ..._common.libraries import sa
from ..world.model import Allocations, Inventory, Provider, World
from ..world.names import SHARING_TRAIT, STANDARD_CLASSES, STANDARD_TRAITS, KnownNames, canonical_uuid, consumer_uuid, known_names
from ..world.times import FOREVER, Drain
from .clock import read_now, sql_now
from .statements import Statement, among, fill, padded, select_rows, slots
from .tables import allocations, consumers, inventories, provider_aggregates, provider_traits, providers

_BATCH = 4096
"""How many values one statement names; SQLite takes 32,766 parameters, PostgreSQL 65,535."""

_MOST_SUGGESTED = 20_000

Value = t.TypeVar("Value")

_INVENTORY_COLUMNS = (
    inventories.c.total,
    inventories.c.reserved,
    inventories.c.min_unit,
    inventories.c.max_unit,
    inventories.c.step_size,
    inventories.c.allocation_ratio,
)


# Built once: SQLAlchemy takes as long to build a statement as SQLite takes to run it.
_PARENTS = providers.alias("parents")
_PROVIDERS = (
    sa.select(
        providers.c.id,
        providers.c.uuid,
        providers.c.name,
        providers.c.generation,
        _PARENTS.c.uuid.label("parent"),
        _PARENTS.c.name.label("parent_name"),
        providers.c.drain_reason,
        providers.c.drained_until,
    )
    .select_from(providers.outerjoin(_PARENTS, _PARENTS.c.id == providers.c.parent_id))
    .order_by(providers.c.id)
)
_CONSUMER_COLUMNS = (
    consumers.c.uuid,
    consumers.c.generation,
    consumers.c.project,
    consumers.c.user,
    consumers.c.type,
    consumers.c.name,
    consumers.c.claimed_at,
    consumers.c.expires_at,
)
_CONSUMER_WIDTH = len(_CONSUMER_COLUMNS)
_GUARDED = sa.select(
    providers.c.id,
    providers.c.generation,
    providers.c.name,
    providers.c.closed_until,
    inventories.c.resource_class,
    *_INVENTORY_COLUMNS,
    inventories.c.used,
).select_from(providers.outerjoin(inventories))


@dataclass(frozen=True)
class Consumer:
    """A consumer: `generation` counts changes of its allocations, `project` and `user` own it, `type` is its kind.

    `claimed_at` is since when it has something, `expires_at` until when, by the database's clock; None where that is not known or has no
    end.
    """

    uuid: str
    generation: int
    project: str | None = None
    user: str | None = None
    type: str | None = None
    name: str | None = None
    claimed_at: int | None = None
    expires_at: int | None = None

    @property
    def label(self) -> str:
        """What people call it."""
        return self.name or self.uuid


@dataclass(frozen=True)
class ConsumerState:
    """A consumer and what it has."""

    consumer: Consumer
    amounts: Allocations


@dataclass(frozen=True)
class StoredInventory:
    """An inventory and how much is in use."""

    inventory: Inventory
    used: int


@dataclass(frozen=True)
class StoredProvider:
    """One provider's row and all that belongs to it; `id` is the ledger's own number, `parent` a UUID, and that one's name."""

    id: int
    uuid: str
    name: str
    generation: int
    parent: str | None
    inventories: Mapping[str, StoredInventory]
    traits: frozenset[str]
    aggregates: frozenset[str]
    parent_name: str | None = None
    drained: Drain | None = None


@dataclass(frozen=True)
class Holding:
    """What one consumer has: amounts by (provider's number, class), and those providers' UUIDs and names by number.

    `is_released` is true of a consumer that has given everything back, whose row alone is left. One that `is_expired` holds nothing any
    more, although its allocations are still counted until somebody needs their room.
    """

    id: int
    consumer: Consumer
    amounts: Mapping[tuple[int, str], int]
    uuids: Mapping[int, str]
    names: Mapping[int, str]
    is_released: bool = False
    is_expired: bool = False

    @property
    def is_live(self) -> bool:
        """Whether the consumer holds anything now."""
        return not (self.is_released or self.is_expired)

    @property
    def by_provider(self) -> Allocations:
        """The amounts by provider's UUID and class."""
        return amounts_by_provider(self.amounts, self.uuids)


@dataclass(frozen=True)
class Namesake:
    """A consumer that has a name; `is_live` is false where it has given everything back, or its lease has ended."""

    consumer: Consumer
    is_live: bool


@dataclass(frozen=True)
class Guarded:
    """What does not change until the transaction ends: providers' generations and names by number, inventories by (number, class).

    `closed` says until when nothing is given of the providers that are drained, or have been.
    """

    generations: Mapping[int, int]
    names: Mapping[int, str]
    stocks: Mapping[tuple[int, str], StoredInventory]
    closed: Mapping[int, int] = field(default_factory=dict)


def amounts_by_provider(amounts: Mapping[tuple[int, str], int], uuids: Mapping[int, str]) -> dict[str, dict[str, int]]:
    """Return amounts by provider's UUID and class of those by its number and class."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for (number, name), amount in amounts.items():
        found[uuids[number]][name] = amount
    return dict(found)


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


def has_more_providers(connection: sa.Connection, count: int) -> bool:
    """Return whether there are more than `count` providers."""
    return connection.scalar(sa.select(providers.c.id).order_by(providers.c.id).offset(count).limit(1)) is not None


def read_trees(connection: sa.Connection, references: Iterable[str], now: int | None = None) -> World:
    """Return the same of the trees alone that some providers (by UUID or name) belong to; unknown ones have no tree."""
    numbers = {number for number, _uuid in read_numbers(connection, references).values()}
    return _read_providers_of_world(connection, read_tree_numbers(connection, numbers), now)


def read_trees_of(connection: sa.Connection, numbers: Collection[int], now: int | None = None) -> World:
    """Return the same of the trees that some providers, by their numbers, belong to."""
    return _read_providers_of_world(connection, read_tree_numbers(connection, numbers), now)


def read_uuids(connection: sa.Connection, numbers: Collection[int]) -> set[str]:
    """Return the UUIDs of providers."""
    return {uuid for part in batches(numbers) for uuid in connection.scalars(sa.select(providers.c.uuid).where(providers.c.id.in_(part)))}


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
    columns = ", ".join(column.name for column in _INVENTORY_COLUMNS)
    stocks = _inventories_of(_rows(connection, f"SELECT provider_id, resource_class, {columns} FROM inventories", "provider_id", numbers))
    if numbers is None:
        trait_sets = _sets_of(connection.exec_driver_sql("SELECT provider_id, trait FROM provider_traits"))
        aggregate_sets = _sets_of(connection.exec_driver_sql("SELECT provider_id, aggregate FROM provider_aggregates"))
    else:
        trait_sets, aggregate_sets = map(_sets_of, read_names_had(connection, numbers))
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


def read_consumers(connection: sa.Connection, uuids: Collection[str] | None = None, now: int | None = None) -> dict[str, Consumer]:
    """Return consumers by UUID: all that hold something, or those among `uuids`; `now` as in read_world."""
    now = read_now(connection) if now is None else now
    columns = sa.select(*_CONSUMER_COLUMNS).where(_holds_something(now))
    if uuids is None:
        return {row.uuid: Consumer(*row) for row in connection.execute(columns)}
    return {row.uuid: Consumer(*row) for part in batches(uuids) for row in connection.execute(columns.where(consumers.c.uuid.in_(part)))}


def read_providers(connection: sa.Connection, references: Iterable[str]) -> dict[str, StoredProvider]:
    """Return the providers that UUIDs or names mean, by reference; those that mean none are left out."""
    wanted = set(references)
    rows: dict[int, t.Any] = {}
    for part in batches(wanted):
        matches = sa.or_(providers.c.uuid.in_([canonical_uuid(reference) for reference in part]), providers.c.name.in_(part))
        rows.update((row.id, row) for row in connection.execute(_PROVIDERS.where(matches)))
    stored = _with_belongings(connection, rows.values())
    by_name = {provider.name: provider for provider in stored}
    by_uuid = {provider.uuid: provider for provider in stored}
    found = {reference: by_uuid.get(canonical_uuid(reference)) or by_name.get(reference) for reference in wanted}
    return {reference: provider for reference, provider in found.items() if provider is not None}


def read_numbers(connection: sa.Connection, references: Iterable[str]) -> dict[str, tuple[int, str]]:
    """Return the ledger's own number and the UUID of each provider that a UUID or name means; unknown ones are left out."""
    return {reference: (number, uuid) for reference, (number, uuid, _name) in read_identities(connection, references).items()}


def read_identities(connection: sa.Connection, references: Iterable[str]) -> dict[str, tuple[int, str, str]]:
    """Return the same with the name of each provider."""
    wanted = set(references)
    by_uuid: dict[str, tuple[int, str, str]] = {}
    by_name: dict[str, tuple[int, str, str]] = {}
    for part in batches(wanted):
        uuids, named = among([canonical_uuid(entry) for entry in part]), among(part)
        text = f"SELECT id, uuid, name FROM resource_providers WHERE uuid IN ({uuids.slots}) OR name IN ({named.slots})"
        for number, uuid, name in select_rows(connection, text, (*uuids.values, *named.values)):
            by_uuid[uuid] = by_name[name] = (number, uuid, name)
    found = {reference: by_uuid.get(canonical_uuid(reference)) or by_name.get(reference) for reference in wanted}
    return {reference: numbered for reference, numbered in found.items() if numbered is not None}


def read_generations(connection: sa.Connection, uuids: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the ledger's own number and the generation of each provider, by UUID; unknown ones are left out."""
    found: dict[str, tuple[int, int]] = {}
    for part in batches(set(uuids)):
        wanted = among(part)
        text = f"SELECT id, uuid, generation FROM resource_providers WHERE uuid IN ({wanted.slots})"
        rows = select_rows(connection, text, wanted.values)
        found.update((uuid, (number, generation)) for number, uuid, generation in rows)
    return found


def read_roots(connection: sa.Connection, uuids: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the ledger's own numbers of each provider and of the root of its tree, by UUID; unknown ones are left out."""
    found: dict[str, tuple[int, int]] = {}
    for part in batches(set(uuids)):
        wanted = among(part)
        rows = select_rows(connection, f"SELECT id, uuid, root_id FROM resource_providers WHERE uuid IN ({wanted.slots})", wanted.values)
        found.update((uuid, (number, root)) for number, uuid, root in rows)
    return found


def read_some_names(connection: sa.Connection) -> list[str]:
    """Return names of providers to suggest; not all of them where they are very many."""
    return list(connection.scalars(sa.select(providers.c.name).order_by(providers.c.id).limit(_MOST_SUGGESTED)))


def read_parent(connection: sa.Connection, uuid: str) -> str | None:
    """Return the UUID of a provider's parent, None at a root."""
    child = providers.alias()
    return connection.scalar(
        sa.select(providers.c.uuid).join_from(child, providers, child.c.parent_id == providers.c.id).where(child.c.uuid == uuid)
    )


def read_parents(connection: sa.Connection, numbers: Iterable[int]) -> dict[int, int | None]:
    """Return the number of each provider's parent by its own, None at a root."""
    found: dict[int, int | None] = {}
    for part in batches(numbers):
        rows = connection.execute(sa.select(providers.c.id, providers.c.parent_id).where(providers.c.id.in_(part)))
        found.update((row.id, row.parent_id) for row in rows)
    return found


def read_children(connection: sa.Connection, numbers: Iterable[int]) -> dict[int, int]:
    """Return the numbers of the children of providers, each with its parent's."""
    found: dict[int, int] = {}
    for part in batches(numbers):
        rows = connection.execute(sa.select(providers.c.id, providers.c.parent_id).where(providers.c.parent_id.in_(part)))
        found.update((row.id, row.parent_id) for row in rows)
    return found


def read_guarded(connection: sa.Connection, numbers: Iterable[int]) -> Guarded:
    """Return the generations and inventories of guarded providers."""
    generations: dict[int, int] = {}
    names: dict[int, str] = {}
    closed: dict[int, int] = {}
    stocks: dict[tuple[int, str], StoredInventory] = {}
    for part in batches(numbers):
        for number, generation, called, until, name, *fields, used in _guarded_of(padded(len(part))).rows(connection, fill("number", part)):
            generations[number] = generation
            names[number] = called
            if until is not None:
                closed[number] = until
            if name is not None:
                stocks[number, name] = StoredInventory(Inventory(*fields), used)
    return Guarded(generations, names, stocks, closed)


def read_holdings(connection: sa.Connection, uuids: Iterable[str]) -> dict[str, Holding]:
    """Return the consumers that exist among `uuids`, each with all it has; one statement sees both.

    Most are new. They are asked for first, by themselves: a server may have planned to read all allocations for a join.
    """
    present: dict[str, tuple[int, Consumer, bool, bool]] = {}
    amounts: dict[str, dict[tuple[int, str], int]] = defaultdict(dict)
    provider_uuids: dict[str, dict[int, str]] = defaultdict(dict)
    provider_names: dict[str, dict[int, str]] = defaultdict(dict)
    for part in batches(uuids):
        wanted = among(part)
        known = [uuid for (uuid,) in select_rows(connection, f"SELECT uuid FROM consumers WHERE uuid IN ({wanted.slots})", wanted.values)]
        statement = _holdings_of(padded(len(known)), sql_now(connection)) if known else None
        for number, *row in statement.rows(connection, fill("uuid", known)) if statement is not None else ():
            consumer = Consumer(*row[:_CONSUMER_WIDTH])
            uuid = consumer.uuid
            released, expired, provider, name, used, provider_uuid, provider_name = row[_CONSUMER_WIDTH:]
            present[uuid] = (number, consumer, bool(released), bool(expired))
            if provider is not None:
                amounts[uuid][provider, name] = used
                provider_uuids[uuid][provider] = provider_uuid
                provider_names[uuid][provider] = provider_name
    return {
        uuid: Holding(number, consumer, amounts[uuid], provider_uuids[uuid], provider_names[uuid], is_released, is_expired)
        for uuid, (number, consumer, is_released, is_expired) in present.items()
    }


def read_namesakes(connection: sa.Connection, names: Collection[tuple[str, str | None]]) -> dict[str, list[Namesake]]:
    """Return the consumers of each name, in all projects; also one without a name whose UUID is that of a name (in a project)."""
    by_uuid = {consumer_uuid(name, project): name for name, own in names for project in (None, own)}
    found: dict[str, list[Namesake]] = defaultdict(list)
    chosen = sa.select(*_CONSUMER_COLUMNS, consumers.c.released, _has_expired(sql_now(connection))).order_by(consumers.c.project)
    matches: list[sa.ColumnElement[bool]] = [consumers.c.name.in_(part) for part in batches({name for name, _project in names})]
    matches += [sa.and_(consumers.c.uuid.in_(part), consumers.c.name.is_(None)) for part in batches(by_uuid)]
    for match in matches:
        for *fields, released, expired in connection.execute(chosen.where(match)):
            consumer = Consumer(*fields)
            found[consumer.name or by_uuid[consumer.uuid]].append(Namesake(consumer, not (released or expired)))
    return found


def read_used_uuids(connection: sa.Connection, uuids: Collection[str]) -> set[str]:
    """Return those of the UUIDs that consumers have, also consumers that have given everything back."""
    chosen = sa.select(consumers.c.uuid)
    return {uuid for part in batches(uuids) for uuid in connection.scalars(chosen.where(consumers.c.uuid.in_(part)))}


def read_users(connection: sa.Connection, numbers: Iterable[int]) -> dict[tuple[int, str], list[tuple[str, str]]]:
    """Return the UUIDs and the labels of the consumers of each (provider's number, class) that is in use."""
    found: dict[tuple[int, str], list[tuple[str, str]]] = defaultdict(list)
    columns = sa.select(allocations.c.provider_id, allocations.c.resource_class, consumers.c.uuid, consumers.c.name)
    chosen = columns.join_from(allocations, consumers).order_by(consumers.c.uuid)
    for part in batches(numbers):
        for number, name, uuid, called in connection.execute(chosen.where(allocations.c.provider_id.in_(part))):
            found[number, name].append((uuid, called or uuid))
    return dict(found)


def batches(values: Iterable[Value]) -> Iterator[list[Value]]:
    """Return values in parts that one statement can name; none when there are no values. No more than one part is held."""
    rest = iter(values)
    while part := list(islice(rest, _BATCH)):
        yield part


def run_batches(connection: sa.Connection, statement: sa.Executable, rows: Iterable[Mapping[str, t.Any]]) -> None:
    """Run a statement once for each row of values; never where there are none, which SQLAlchemy takes for one row of defaults."""
    for part in batches(rows):
        connection.execute(statement, part)


def _holds_something(now: int) -> sa.ColumnElement[bool]:
    """Return the condition on a consumer that it has something, and that its lease, if it has one, has not ended."""
    return sa.and_(consumers.c.released == 0, sa.or_(consumers.c.expires_at.is_(None), consumers.c.expires_at > now))


def _has_expired(now: str) -> sa.ColumnElement[int]:
    """Return 1 for a consumer whose lease has ended, else 0; `now` is SQL."""
    return sa.case((consumers.c.expires_at <= sa.literal_column(now, sa.BigInteger), 1), else_=0)


@cache
def _holdings_of(count: int, now: str) -> Statement:
    columns = sa.select(
        consumers.c.id,
        *_CONSUMER_COLUMNS,
        consumers.c.released,
        _has_expired(now),
        allocations.c.provider_id,
        allocations.c.resource_class,
        allocations.c.used,
        providers.c.uuid.label("provider"),
        providers.c.name.label("provider_name"),
    )
    joined = columns.select_from(consumers.outerjoin(allocations).outerjoin(providers, providers.c.id == allocations.c.provider_id))
    return Statement(joined.where(consumers.c.uuid.in_(slots(consumers.c.uuid, "uuid", count))))


@cache
def _guarded_of(count: int) -> Statement:
    return Statement(_GUARDED.where(providers.c.id.in_(slots(providers.c.id, "number", count))))


def _with_belongings(connection: sa.Connection, rows: Collection[sa.Row[t.Any]]) -> list[StoredProvider]:
    numbers = [row.id for row in rows]
    stocks: dict[int, dict[str, StoredInventory]] = defaultdict(dict)
    for (number, name), stock in read_guarded(connection, numbers).stocks.items():
        stocks[number][name] = stock
    trait_sets: dict[int, frozenset[str]] = {}
    aggregate_sets: dict[int, frozenset[str]] = {}
    for part in batches(numbers):
        chosen = sa.select(provider_traits.c.provider_id, provider_traits.c.trait).where(provider_traits.c.provider_id.in_(part))
        trait_sets.update(_sets_of(connection.execute(chosen)))
        members = sa.select(provider_aggregates.c.provider_id, provider_aggregates.c.aggregate)
        aggregate_sets.update(_sets_of(connection.execute(members.where(provider_aggregates.c.provider_id.in_(part)))))
    nothing: frozenset[str] = frozenset()
    now = read_now(connection) if any(row.drained_until is not None for row in rows) else 0
    return [
        StoredProvider(
            id=row.id,
            uuid=row.uuid,
            name=row.name,
            generation=row.generation,
            parent=row.parent,
            inventories=stocks.get(row.id, {}),
            traits=trait_sets.get(row.id, nothing),
            aggregates=aggregate_sets.get(row.id, nothing),
            parent_name=row.parent_name,
            drained=read_drain(row.drain_reason, row.drained_until, now),
        )
        for row in rows
    ]


def read_drain(reason: str | None, until: int | None, now: int) -> Drain | None:
    """Return the drain that columns say, None where there is none or it is over `now`."""
    return None if until is None or until <= now else Drain(reason or "", None if until == FOREVER else until)


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


def _sets_of(rows: Iterable[t.Any]) -> dict[int, frozenset[str]]:
    members: dict[int, list[str]] = defaultdict(list)
    for number, member in rows:
        members[number].append(member)
    return {number: frozenset(names) for number, names in members.items()}


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
    columns = sa.select(consumers.c.uuid, consumers.c.name).where(consumers.c.name.is_not(None), _holds_something(now))
    if uuids is None:
        return {row.uuid: row.name for row in connection.execute(columns)}
    return {uuid: name for part in batches(uuids) for uuid, name in connection.execute(columns.where(consumers.c.uuid.in_(part)))}
