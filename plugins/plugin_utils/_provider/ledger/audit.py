# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Audit: recompute from the rows alone all that the ledger promises, and report what does not fit.

Nothing here trusts the running sums, the foreign keys or the checks of a claim: a file that was edited by hand, or written by a
program with a fault, is what an audit is for.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator
from dataclasses import dataclass

from ....module_utils._data.errors import Mistakes
from ..._common.libraries import sa
from ..world.model import Inventory
from ..world.names import SHARING_TRAIT, why_no_provider_name, why_no_trait, why_no_uuid
from ..world.parse import INVENTORY, INVENTORY_FIELDS
from .drains import wrongly_closed
from .inventories import stored_inventory
from .mistyped import refuse_mistyped
from .tables import allocations, consumers, inventories, provider_aggregates, provider_traits, providers

_LABEL = sa.func.coalesce(consumers.c.name, consumers.c.uuid).label("label")


@dataclass(frozen=True)
class Finding:
    """One thing that does not fit: `kind` for programs, `says` for people, the UUID and the name of the provider or consumer it is about.

    A consumer without a name is called by its UUID.
    """

    kind: str
    about: str
    says: str
    name: str


def audit(connection: sa.Connection) -> list[Finding]:
    """Return every finding; an empty list for a ledger in order. Raises Unavailable where it cannot be computed with what is stored."""
    refuse_mistyped(connection)
    checks = (_loops, _malformed, _lost, _stocks, _pieces, _dangling_allocations, _dangling_parents, _idle_consumers)
    return [finding for check in checks for finding in check(connection)]


def _loops(connection: sa.Connection) -> Iterator[Finding]:
    rows = connection.execute(sa.select(providers.c.id, providers.c.uuid, providers.c.name, providers.c.parent_id)).all()
    parents = {row.id: row.parent_id for row in rows}
    called = {row.id: (row.uuid, row.name) for row in rows}
    rooted: set[int] = set()
    for start in parents:
        path: dict[int, None] = {}
        here: int | None = start
        while here is not None and here in parents and here not in rooted and here not in path:
            path[here] = None
            here = parents[here]
        if here in path:
            uuid, name = called[start]
            yield Finding("loop", uuid, f"provider {name} is its own ancestor, or below one that is", name)
        else:
            rooted.update(path)


def _malformed(connection: sa.Connection) -> Iterator[Finding]:
    for row in connection.execute(sa.select(providers.c.uuid, providers.c.name, providers.c.generation)):
        for says in (why_no_uuid(row.uuid), why_no_provider_name(row.name), "" if row.generation >= 0 else "has a negative generation"):
            if says:
                yield Finding("malformed", row.uuid, f"provider {row.name}: {says}", row.name)
    for consumer in connection.execute(sa.select(consumers.c.uuid, consumers.c.generation, _LABEL)):
        for says in (why_no_uuid(consumer.uuid), "" if consumer.generation >= 0 else "has a negative generation"):
            if says:
                yield Finding("malformed", consumer.uuid, f"consumer {consumer.label}: {says}", consumer.label)
    named = sa.select(provider_traits.c.trait, providers.c.uuid, providers.c.name).join_from(provider_traits, providers)
    for trait, uuid, name in connection.execute(named):
        says = why_no_trait(trait)
        if says:
            yield Finding("malformed", uuid, f"provider {name}: {says}", name)


def _lost(connection: sa.Connection) -> Iterator[Finding]:
    """Yield the providers that a search for candidates would look for in a wrong place."""
    rows = connection.execute(
        sa.select(providers.c.id, providers.c.uuid, providers.c.name, providers.c.parent_id, providers.c.root_id)
    ).all()
    parents = {row.id: row.parent_id for row in rows}
    roots = {row.id: row.root_id for row in rows}
    called = {row.id: (row.uuid, row.name) for row in rows}
    lost = {row.id for row in rows if row.root_id != (row.id if row.parent_id is None else roots.get(parents[row.id]))}
    shares = set(connection.scalars(sa.select(provider_traits.c.provider_id).where(provider_traits.c.trait == SHARING_TRAIT)))
    for table in (inventories, provider_traits, provider_aggregates):
        columns = sa.select(table.c.provider_id, table.c.root_id, table.c.sharing)
        for number, root, sharing in connection.execute(columns):
            if (root, sharing) != (roots.get(number), number in shares):
                lost.add(number)
    capacities = sa.select(inventories.c.provider_id, inventories.c.capacity, *(inventories.c[name] for name in INVENTORY_FIELDS))
    for number, capacity, *fields in connection.execute(capacities):
        if capacity != stored_inventory(Inventory(*fields))["capacity"]:
            lost.add(number)
    lost |= wrongly_closed(connection)
    for number in sorted(lost & called.keys()):
        uuid, name = called[number]
        says = f"provider {name} is not found by searches: its stored root, sharing, capacity or drain is out of date"
        yield Finding("lost", uuid, says, name)


def _stocks(connection: sa.Connection) -> Iterator[Finding]:
    total = sa.func.coalesce(sa.func.sum(allocations.c.used), 0)
    kept = (
        providers.c.uuid,
        providers.c.name,
        inventories.c.resource_class,
        inventories.c.used,
        *(inventories.c[name] for name in INVENTORY_FIELDS),
    )
    rows = connection.execute(
        sa.select(*kept, total).select_from(inventories.join(providers).outerjoin(allocations, _same_stock())).group_by(*kept)
    )
    for uuid, called, name, used, *fields, recomputed in rows:
        stock = f"{name} of provider {called}"
        if used != recomputed:
            yield Finding("sum", uuid, f"{stock}: {used} are counted as used, but the allocations come to {recomputed}", called)
        mistakes = Mistakes()
        inventory = INVENTORY.read_nested(dict(zip(INVENTORY_FIELDS, fields, strict=True)), stock, mistakes)
        if inventory is None:
            yield Finding("inventory", uuid, f"{stock} has an inventory that no task could have declared: {fields}", called)
        elif recomputed > inventory.capacity:
            says = f"{recomputed} are in use, more than its capacity of {inventory.capacity}; its inventory may have shrunk"
            yield Finding("overfull", uuid, f"{stock}: {says}", called)


def _pieces(connection: sa.Connection) -> Iterator[Finding]:
    held = (consumers.c.uuid, _LABEL, providers.c.name, allocations.c.resource_class, allocations.c.used)
    rows = connection.execute(
        sa.select(*held, *(inventories.c[name] for name in INVENTORY_FIELDS)).select_from(
            allocations.join(consumers).join(inventories, _same_stock()).join(providers)
        )
    )
    for consumer, label, provider, name, amount, *fields in rows:
        if not Inventory(*fields).allows_piece(amount):
            says = f"consumer {label}: {amount} {name} of provider {provider} is not an amount that its inventory allows now"
            yield Finding("piece", consumer, says, label)


def _dangling_allocations(connection: sa.Connection) -> Iterator[Finding]:
    rows = connection.execute(
        sa.select(
            allocations.c.consumer_id,
            allocations.c.provider_id,
            allocations.c.resource_class,
            consumers.c.uuid,
            _LABEL,
            inventories.c.total,
        )
        .select_from(allocations.outerjoin(consumers).outerjoin(inventories, _same_stock()))
        .where((consumers.c.id.is_(None)) | (inventories.c.provider_id.is_(None)))
    )
    for consumer, provider, name, uuid, label, total in rows:
        lacks = " and no ".join(text for text, absent in (("consumer", uuid is None), ("inventory", total is None)) if absent)
        says = f"an allocation of {name} (consumer row {consumer}, provider row {provider}) has no {lacks}"
        yield Finding("dangling", uuid or str(consumer), says, label or str(consumer))


def _dangling_parents(connection: sa.Connection) -> Iterator[Finding]:
    above = providers.alias()
    rows = connection.execute(
        sa.select(providers.c.uuid, providers.c.name, providers.c.parent_id)
        .select_from(providers.outerjoin(above, above.c.id == providers.c.parent_id))
        .where(providers.c.parent_id.is_not(None), above.c.id.is_(None))
    )
    for uuid, name, parent in rows:
        yield Finding("dangling", uuid, f"provider {name} has a parent that is not there (row {parent})", name)


def _idle_consumers(connection: sa.Connection) -> Iterator[Finding]:
    rows = sa.select(consumers.c.uuid, _LABEL, consumers.c.released).outerjoin_from(consumers, allocations).distinct()
    idle = rows.where(allocations.c.consumer_id.is_(None), consumers.c.released == 0)
    for uuid, label, _released in connection.execute(idle):
        yield Finding("idle", uuid, f"consumer {label} is kept although it has nothing", label)
    for uuid, label, _released in connection.execute(rows.where(allocations.c.consumer_id.is_not(None), consumers.c.released != 0)):
        yield Finding("released", uuid, f"consumer {label} is marked as released, but has allocations", label)


def _same_stock() -> t.Any:
    return sa.and_(allocations.c.provider_id == inventories.c.provider_id, allocations.c.resource_class == inventories.c.resource_class)
