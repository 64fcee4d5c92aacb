# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write a whole world into an empty ledger: to work on providers given inline, or to take a fleet over at once.

Providers come as a stream and are written in parts, so that memory follows the part and not the fleet; the caller's transaction holds
them all.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..._common.libraries import sa
from ..world.model import Allocations, Provider, World
from ..world.names import SHARING_TRAIT
from ..world.times import Drain
from .drains import write_closed, write_drains
from .inventories import STORED_FIELDS, stored_inventory
from .read import batches, read_roots, run_batches
from .statements import insert_rows
from .tables import (
    aggregates,
    allocations,
    consumers,
    inventories,
    provider_aggregates,
    provider_traits,
    providers,
    resource_classes,
    traits,
)
from .topology import write_roots


def store_world(connection: sa.Connection, world: World) -> None:
    """Insert everything that a world has; the ledger must be empty. Capacity is not checked: a world may be over its capacity."""
    ensure_names(connection, resource_classes, world.custom_classes)
    ensure_names(connection, traits, world.custom_traits)
    ensure_aggregates(connection, world.aggregate_names)
    store_providers(connection, world.providers, world.usages())
    held = ((uuid, parts) for uuid, parts in world.allocations.items() if any(parts.values()))
    for part in batches(held):
        _insert_allocations(connection, part, world.consumer_names)


def store_providers(connection: sa.Connection, found: Iterable[Provider], used: Mapping[tuple[str, str], int] | None = None) -> None:
    """Insert providers, none of which is there yet, with all that belongs to them; `used` is what is in use by (UUID, class).

    Reads each provider once and holds a few thousand of them, and those that come before their parents.
    """
    early: list[_Placed] = []
    drains: dict[int, Drain | None] = {}
    for part in batches(found):
        placed = _placed(connection, part)
        early += [each for each in placed if each.comes_early]
        _insert_providers(connection, placed)
        _insert_belongings(connection, placed, used or {})
        drains.update((each.number, each.provider.drained) for each in placed if each.provider.drained)
    _place_early(connection, early)
    write_drains(connection, drains)
    write_closed(connection, drains)


def ensure_names(connection: sa.Connection, table: sa.Table, names: Iterable[str]) -> None:
    """Insert the classes or traits that are not there yet."""
    wanted = set(names)
    known: set[str] = set()
    for part in batches(wanted):
        known.update(connection.scalars(sa.select(table.c.name).where(table.c.name.in_(part))))
    run_batches(connection, sa.insert(table), ({"name": name} for name in sorted(wanted - known)))


def ensure_aggregates(connection: sa.Connection, names: Mapping[str, str]) -> None:
    """Insert the names of aggregates, by UUID, that are not there yet; a name belongs to its UUID, so that none is ever another's."""
    known: set[str] = set()
    for part in batches(names):
        known.update(connection.scalars(sa.select(aggregates.c.uuid).where(aggregates.c.uuid.in_(part))))
    run_batches(connection, sa.insert(aggregates), ({"uuid": uuid, "name": names[uuid]} for uuid in sorted(names.keys() - known)))


@dataclass(frozen=True, slots=True)
class _Placed:
    """A provider, its number, and those of its parent and its root; one that comes before its parent stands for a root until then."""

    provider: Provider
    number: int
    parent: int | None
    root: int

    @property
    def comes_early(self) -> bool:
        """Whether its parent is still to come."""
        return self.parent is None and self.provider.parent is not None


def _placed(connection: sa.Connection, part: Sequence[Provider]) -> list[_Placed]:
    known = read_roots(connection, {provider.parent for provider in part if provider.parent is not None})
    found = []
    for provider, number in zip(part, _new_numbers(connection, providers, len(part)), strict=True):
        parent, root = (None, number) if provider.parent is None else known.get(provider.parent, (None, number))
        known[provider.uuid] = (number, root)
        found.append(_Placed(provider, number, parent, root))
    return found


def _new_numbers(connection: sa.Connection, table: sa.Table, count: int) -> Sequence[int]:
    """Return numbers for new rows, in rising order, so that nothing has to be read back."""
    if connection.dialect.name == "postgresql":
        sequence = sa.func.pg_get_serial_sequence(table.name, "id")
        numbers = connection.scalars(sa.select(sa.func.nextval(sequence)).select_from(sa.func.generate_series(1, count)))
        return sorted(numbers)
    # The only writer of a file; on MariaDB an insert from elsewhere in between is a race, and this is run again.
    first = (connection.scalar(sa.select(sa.func.max(table.c.id))) or 0) + 1
    return range(first, first + count)


def _insert_providers(connection: sa.Connection, placed: Iterable[_Placed]) -> None:
    rows = ((each.number, each.provider.uuid, each.provider.name, each.provider.generation, each.parent, each.root) for each in placed)
    insert_rows(connection, providers, ("id", "uuid", "name", "generation", "parent_id", "root_id"), rows)


def _insert_belongings(connection: sa.Connection, placed: Sequence[_Placed], used: Mapping[tuple[str, str], int]) -> None:
    found = [each.provider for each in placed]
    ensure_names(connection, resource_classes, (name for provider in found for name in provider.inventories))
    ensure_names(connection, traits, (name for provider in found for name in provider.traits))
    owner = ("provider_id", "root_id", "sharing")
    stocks = (
        (*_owner(each), name, used.get((each.provider.uuid, name), 0), *stored_inventory(inventory).values())
        for each in placed
        for name, inventory in each.provider.inventories.items()
    )
    insert_rows(connection, inventories, (*owner, "resource_class", "used", *STORED_FIELDS), stocks)
    trait_rows = ((*_owner(each), name) for each in placed for name in each.provider.traits)
    insert_rows(connection, provider_traits, (*owner, "trait"), trait_rows)
    aggregate_rows = ((*_owner(each), name) for each in placed for name in each.provider.aggregates)
    insert_rows(connection, provider_aggregates, (*owner, "aggregate"), aggregate_rows)


def _owner(placed: _Placed) -> tuple[int, int, int]:
    return placed.number, placed.root, int(SHARING_TRAIT in placed.provider.traits)


def _place_early(connection: sa.Connection, early: Sequence[_Placed]) -> None:
    """Put providers below parents that came after them."""
    parents = read_roots(connection, {each.provider.parent for each in early if each.provider.parent is not None})
    rows = [{"own": each.number, "parent": parents[t.cast("str", each.provider.parent)][0]} for each in early]
    below = sa.update(providers).where(providers.c.id == sa.bindparam("own")).values(parent_id=sa.bindparam("parent"))
    run_batches(connection, below, rows)
    write_roots(connection, [each.number for each in early])


def _insert_allocations(connection: sa.Connection, part: Sequence[tuple[str, Allocations]], names: Mapping[str, str]) -> None:
    numbers = _new_numbers(connection, consumers, len(part))
    rows = ((number, uuid, 1, names.get(uuid)) for number, (uuid, _held) in zip(numbers, part, strict=True))
    insert_rows(connection, consumers, ("id", "uuid", "generation", "name"), rows)
    owners = read_roots(connection, {provider for _uuid, held in part for provider in held})
    held_rows = (
        (number, owners[provider][0], name, amount)
        for number, (_uuid, held) in zip(numbers, part, strict=True)
        for provider, amounts in held.items()
        for name, amount in amounts.items()
    )
    insert_rows(connection, allocations, ("consumer_id", "provider_id", "resource_class", "used"), held_rows)
