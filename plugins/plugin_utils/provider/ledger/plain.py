# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the ledger holds as plain data, in the shapes that tasks take and return."""

from __future__ import annotations

import typing as t
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from ..world.model import Inventory, Provider, World
from .claims import Claimed, ConsumerState
from .read import Consumer, StoredProvider

Plain = dict[str, t.Any]


def plain_inventories(inventories: Mapping[str, Inventory]) -> dict[str, Plain]:
    """Return {class: {total, reserved, ...}}, by class in the order of their names."""
    return {name: asdict(inventories[name]) for name in sorted(inventories)}


def plain_provider(provider: Provider) -> Plain:
    """Return a provider as `world` takes it."""
    return {
        "uuid": provider.uuid,
        "name": provider.name,
        "parent": provider.parent,
        "generation": provider.generation,
        "inventories": plain_inventories(provider.inventories),
        "traits": sorted(provider.traits),
        "aggregates": sorted(provider.aggregates),
    }


def plain_stored(provider: StoredProvider) -> Plain:
    """Return a provider of the ledger as `world` takes it."""
    inventories = {name: stock.inventory for name, stock in provider.inventories.items()}
    return plain_provider(
        Provider(provider.uuid, provider.name, provider.parent, inventories, provider.traits, provider.aggregates, provider.generation)
    )


def plain_world(world: World) -> Plain:
    """Return a whole world in the shape of the option `world`."""
    return {
        "providers": [plain_provider(provider) for provider in world.providers],
        "allocations": {consumer: plain_allocations(parts) for consumer, parts in world.allocations.items()},
        "custom_traits": sorted(world.custom_traits),
        "custom_classes": sorted(world.custom_classes),
    }


def plain_allocations(allocations: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Return {provider: {class: amount}}, in the order of their names."""
    return {provider: {name: allocations[provider][name] for name in sorted(allocations[provider])} for provider in sorted(allocations)}


def plain_consumer(consumer: Consumer) -> Plain:
    """Return whose a consumer is, and its generation."""
    return {"generation": consumer.generation, "project": consumer.project, "user": consumer.user}


def plain_states(states: Mapping[str, ConsumerState]) -> dict[str, Plain]:
    """Return {consumer: {generation, project, user, allocations}}."""
    return {
        uuid: {**plain_consumer(states[uuid].consumer), "allocations": plain_allocations(states[uuid].amounts)} for uuid in sorted(states)
    }


def plain_claimed(claimed: Claimed) -> Plain:
    """Return the result of claims: what all of their consumers have now, and the new generations of the providers."""
    before, after = plain_states(claimed.before), plain_states(claimed.after)
    return {
        "changed": claimed.changed,
        "consumers": after,
        "generations": dict(sorted(claimed.generations.items())),
        "diff": {"before": before, "after": after},
    }


def plain_usages(providers: Sequence[Provider], used: Mapping[tuple[str, str], int]) -> dict[str, dict[str, dict[str, int]]]:
    """Return {provider: {class: {capacity, used, free}}} of each inventory."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for provider in providers:
        found[provider.uuid] = {}
        for name in sorted(provider.inventories):
            capacity, amount = provider.inventories[name].capacity, used.get((provider.uuid, name), 0)
            found[provider.uuid][name] = {"capacity": capacity, "used": amount, "free": max(0, capacity - amount)}
    return found


def plain_totals(usages: Mapping[str, Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    """Return {class: {capacity, used, free}} over all providers."""
    totals: dict[str, dict[str, int]] = defaultdict(lambda: {"capacity": 0, "used": 0, "free": 0})
    for classes in usages.values():
        for name, amounts in classes.items():
            for key, amount in amounts.items():
                totals[name][key] += amount
    return {name: totals[name] for name in sorted(totals)}
