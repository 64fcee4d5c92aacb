# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the ledger holds as plain data, in the shapes that tasks take and return."""

from __future__ import annotations

import typing as t
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from ..world.model import Inventory, Provider, World
from ..world.times import Drain, shown_time
from .claim_plan import Claimed
from .owners import owner_of
from .stored import Consumer, ConsumerState, StoredProvider

Plain = dict[str, t.Any]


def plain_inventories(inventories: Mapping[str, Inventory]) -> dict[str, Plain]:
    """Return {class: {total, reserved, ...}}, by class in the order of their names."""
    return {name: asdict(inventories[name]) for name in sorted(inventories)}


def plain_provider(provider: Provider, aggregate_names: Mapping[str, str] | None = None) -> Plain:
    """Return a provider as `world` takes it, its aggregates by name where they have one."""
    called = aggregate_names or {}
    return {
        "uuid": provider.uuid,
        "name": provider.name,
        "parent": provider.parent,
        "generation": provider.generation,
        "inventories": plain_inventories(provider.inventories),
        "traits": sorted(provider.traits),
        "aggregates": sorted(called.get(aggregate, aggregate) for aggregate in provider.aggregates),
        **({} if provider.drained is None else {"drained": _plain_drain(provider.drained)}),
    }


def _plain_drain(drain: Drain) -> Plain | bool:
    """Return a drain as tasks take it."""
    given = {"reason": drain.reason, "until": shown_time(drain.until)}
    return {key: value for key, value in given.items() if value} or True


def plain_stored(provider: StoredProvider, aggregate_names: Mapping[str, str]) -> Plain:
    """Return a provider of the ledger as `world` takes it."""
    inventories = {name: stock.inventory for name, stock in provider.inventories.items()}
    return plain_provider(
        Provider(
            provider.uuid,
            provider.name,
            provider.parent,
            inventories,
            provider.traits,
            provider.aggregates,
            provider.generation,
            provider.drained,
        ),
        aggregate_names,
    )


def shown_provider(provider: StoredProvider, aggregate_names: Mapping[str, str]) -> Plain:
    """Return a provider for a diff: its parent by name."""
    return {**plain_stored(provider, aggregate_names), "parent": provider.parent_name}


def plain_world(world: World) -> Plain:
    """Return a whole world in the shape of the option `world`."""
    # Consumers of two projects may have one name.
    counted = Counter(world.consumer_names.values())
    called = {uuid: name for uuid, name in world.consumer_names.items() if counted[name] == 1}
    return {
        "providers": [plain_provider(provider, world.aggregate_names) for provider in world.providers],
        "allocations": {called.get(consumer, consumer): plain_allocations(parts) for consumer, parts in world.allocations.items()},
        "custom_traits": sorted(world.custom_traits),
        "custom_classes": sorted(world.custom_classes),
    }


def plain_allocations(allocations: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Return {provider: {class: amount}}, in the order of their names."""
    return {provider: {name: allocations[provider][name] for name in sorted(allocations[provider])} for provider in sorted(allocations)}


def plain_consumer(consumer: Consumer) -> Plain:
    """Return what a consumer is called and is, whose it is, its generation, and since when and until when it has something."""
    return {
        "name": consumer.label,
        "generation": consumer.generation,
        "project": consumer.project,
        "user": consumer.user,
        "consumer_type": consumer.type,
        "claimed_at": shown_time(consumer.claimed_at),
        "expires_at": shown_time(consumer.expires_at),
    }


def plain_states(states: Mapping[str, ConsumerState]) -> dict[str, Plain]:
    """Return {consumer: {name, generation, project, user, consumer_type, allocations}}."""
    return {
        uuid: {**plain_consumer(states[uuid].consumer), "allocations": plain_allocations(states[uuid].amounts)} for uuid in sorted(states)
    }


def shown_states(states: Mapping[str, ConsumerState], names: Mapping[str, str]) -> dict[str, Plain]:
    """Return the same for a diff: consumers and providers by name."""
    labels = _labels([state.consumer for state in states.values()])
    shown = {
        labels[uuid]: {
            **plain_consumer(state.consumer),
            "allocations": plain_allocations({names[provider]: amounts for provider, amounts in state.amounts.items()}),
        }
        for uuid, state in states.items()
    }
    return {label: shown[label] for label in sorted(shown)}


def _labels(consumers: Sequence[Consumer]) -> dict[str, str]:
    """Return what a diff calls consumers, by UUID: their names, with the owner where several have one name."""
    counted = Counter(consumer.label for consumer in consumers)
    owned = {each.uuid: f"{each.label} of {owner_of(each)}" for each in consumers}
    return {each.uuid: each.label if counted[each.label] == 1 else owned[each.uuid] for each in consumers}


def plain_claimed(claimed: Claimed) -> Plain:
    """Return the result of claims: what all of their consumers have now, and the new generations of the providers."""
    return {
        "changed": claimed.changed,
        "consumers": plain_states(claimed.after),
        "generations": dict(sorted(claimed.generations.items())),
        "names": dict(sorted(claimed.names.items())),
        "ended": plain_ended(claimed.ended),
        "diff": {"before": shown_states(claimed.before, claimed.names), "after": shown_states(claimed.after, claimed.names)},
    }


def plain_ended(ended: Iterable[ConsumerState]) -> list[Plain]:
    """Return the consumers that were released because their lease had ended, with what they had."""
    return [
        {"consumer": state.consumer.uuid, **plain_consumer(state.consumer), "allocations": plain_allocations(state.amounts)}
        for state in ended
    ]


def shown_ended(ended: Sequence[ConsumerState]) -> dict[str, Plain]:
    """Return the same for a diff, by name."""
    labels = _labels([state.consumer for state in ended])
    return {labels[each["consumer"]]: {key: value for key, value in each.items() if key != "name"} for each in plain_ended(ended)}


def plain_usages(providers: Sequence[Provider], used: Mapping[tuple[str, str], int]) -> dict[str, dict[str, dict[str, int]]]:
    """Return {provider: {class: {capacity, used, free}}} of each inventory."""
    found: dict[str, dict[str, dict[str, int]]] = {}
    for provider in providers:
        found[provider.uuid] = {}
        for name in sorted(provider.inventories):
            found[provider.uuid][name] = plain_usage(provider.inventories[name].capacity, used.get((provider.uuid, name), 0))
    return found


def plain_usage(capacity: int, used: int) -> dict[str, int]:
    """Return how much of one inventory is used and free."""
    return {"capacity": capacity, "used": used, "free": max(0, capacity - used)}


def plain_totals(usages: Mapping[str, Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    """Return {class: {capacity, used, free}} over all providers."""
    totals: dict[str, dict[str, int]] = defaultdict(lambda: {"capacity": 0, "used": 0, "free": 0})
    for classes in usages.values():
        for name, amounts in classes.items():
            for key, amount in amounts.items():
                totals[name][key] += amount
    return {name: totals[name] for name in sorted(totals)}
