# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write a whole world into an empty ledger: to work on providers given inline, or to take a fleet over at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...common.libraries import sa
from ..world.model import World
from ..world.names import SHARING_TRAIT
from .inventories import stored_inventory
from .read import batches, run_batches
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


def store_world(connection: sa.Connection, world: World) -> None:
    """Insert everything that a world has; the ledger must be empty. Capacity is not checked: a world may be over its capacity."""
    ensure_names(connection, resource_classes, world.custom_classes.union(*(provider.inventories for provider in world.providers)))
    ensure_names(connection, traits, world.custom_traits.union(*(provider.traits for provider in world.providers)))
    ensure_aggregates(connection, world.aggregate_names)
    numbers = _insert_providers(connection, world)
    _insert_belongings(connection, world, numbers)
    _insert_allocations(connection, world, numbers)


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


def _insert_providers(connection: sa.Connection, world: World) -> dict[str, int]:
    rows = ({"uuid": provider.uuid, "name": provider.name, "generation": provider.generation} for provider in world.providers)
    run_batches(connection, sa.insert(providers), rows)
    numbers = _numbers(connection, providers)
    roots = world.roots()
    placed = sa.update(providers).where(providers.c.id == sa.bindparam("number"))
    places = (
        {
            "number": numbers[provider.uuid],
            "parent": None if provider.parent is None else numbers[provider.parent],
            "root": numbers[roots[provider.uuid]],
        }
        for provider in world.providers
    )
    run_batches(connection, placed.values(parent_id=sa.bindparam("parent"), root_id=sa.bindparam("root")), places)
    return numbers


def _insert_belongings(connection: sa.Connection, world: World, numbers: dict[str, int]) -> None:
    used = world.usages()
    roots = world.roots()
    owners = [
        (
            provider,
            {
                "provider_id": numbers[provider.uuid],
                "root_id": numbers[roots[provider.uuid]],
                "sharing": int(SHARING_TRAIT in provider.traits),
            },
        )
        for provider in world.providers
    ]
    run_batches(
        connection,
        sa.insert(inventories),
        (
            {**owner, "resource_class": name, **stored_inventory(inventory), "used": used.get((provider.uuid, name), 0)}
            for provider, owner in owners
            for name, inventory in provider.inventories.items()
        ),
    )
    trait_rows = ({**owner, "trait": name} for provider, owner in owners for name in provider.traits)
    run_batches(connection, sa.insert(provider_traits), trait_rows)
    aggregate_rows = ({**owner, "aggregate": name} for provider, owner in owners for name in provider.aggregates)
    run_batches(connection, sa.insert(provider_aggregates), aggregate_rows)


def _insert_allocations(connection: sa.Connection, world: World, numbers: dict[str, int]) -> None:
    held = {uuid: parts for uuid, parts in world.allocations.items() if any(parts.values())}
    run_batches(
        connection, sa.insert(consumers), ({"uuid": uuid, "generation": 1, "name": world.consumer_names.get(uuid)} for uuid in held)
    )
    consumer_numbers = _numbers(connection, consumers)
    run_batches(
        connection,
        sa.insert(allocations),
        (
            {"consumer_id": consumer_numbers[uuid], "provider_id": numbers[provider], "resource_class": name, "used": amount}
            for uuid, parts in held.items()
            for provider, amounts in parts.items()
            for name, amount in amounts.items()
        ),
    )


def _numbers(connection: sa.Connection, table: sa.Table) -> dict[str, int]:
    return {uuid: number for number, uuid in connection.execute(sa.select(table.c.id, table.c.uuid))}
