# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the rows of the ledger that a change starts from: providers and consumers, with what they have."""

from __future__ import annotations

import typing as t
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice

from ..._common.libraries import sa
from ..world.model import Inventory
from ..world.names import canonical_uuid, consumer_uuid
from .clock import read_now, sql_now
from .statements import Statement, among, fill, padded, select_rows, slots
from .stored import INVENTORY_COLUMNS, Consumer, Guarded, Holding, Namesake, StoredInventory, StoredProvider, read_drain, sets_of
from .tables import allocations, consumers, inventories, provider_aggregates, provider_traits, providers

_BATCH = 4096
"""How many values one statement names; SQLite takes 32,766 parameters, PostgreSQL 65,535."""
_MOST_SUGGESTED = 20_000
Value = t.TypeVar("Value")
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
    *INVENTORY_COLUMNS,
    inventories.c.used,
).select_from(providers.outerjoin(inventories))


def has_more_providers(connection: sa.Connection, count: int) -> bool:
    """Return whether there are more than `count` providers."""
    return connection.scalar(sa.select(providers.c.id).order_by(providers.c.id).offset(count).limit(1)) is not None


def read_uuids(connection: sa.Connection, numbers: Collection[int]) -> set[str]:
    """Return the UUIDs of providers."""
    return {uuid for part in batches(numbers) for uuid in connection.scalars(sa.select(providers.c.uuid).where(providers.c.id.in_(part)))}


def read_consumers(connection: sa.Connection, uuids: Collection[str] | None = None, now: int | None = None) -> dict[str, Consumer]:
    """Return consumers by UUID: all that hold something, or those among `uuids`; `now` as in read_world."""
    now = read_now(connection) if now is None else now
    columns = sa.select(*_CONSUMER_COLUMNS).where(holds_something(now))
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


def holds_something(now: int) -> sa.ColumnElement[bool]:
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
        trait_sets.update(sets_of(connection.execute(chosen)))
        members = sa.select(provider_aggregates.c.provider_id, provider_aggregates.c.aggregate)
        aggregate_sets.update(sets_of(connection.execute(members.where(provider_aggregates.c.provider_id.in_(part)))))
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
