# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read providers, inventories and allocations from plain data; every mistake is reported at once with its place."""

from __future__ import annotations

import math
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from ...common.errors import Mistakes, suggest
from .model import LARGEST_AMOUNT, LARGEST_RATIO, Allocations, Amounts, Inventory, Provider, World
from .names import canonical_uuid, provider_uuid, why_no_class, why_no_provider_name, why_no_trait, why_no_uuid

INVENTORY_FIELDS = tuple(entry.name for entry in fields(Inventory))
_LEAST = {"total": 1, "reserved": 0, "min_unit": 1, "max_unit": 1, "step_size": 1}
_PROVIDER_KEYS = frozenset({"uuid", "name", "parent", "inventories", "traits", "aggregates", "generation"})
_WORLD_KEYS = frozenset({"providers", "allocations", "custom_traits", "custom_classes"})


def parse_world(data: t.Any, place: str = "world") -> World:
    """Return the world that plain data describes; `place` is what the mistakes' places start with.

    A provider without `uuid` gets the one that belongs to its name; `parent` and the keys of an allocation are a UUID or a name.
    Raises InputError with every mistake.
    """
    mistakes = Mistakes()
    if not isinstance(data, Mapping):
        mistakes.add(place, f"must be a mapping with the key providers, not {data!r}")
        mistakes.check()
    _refuse_unknown_keys(data, _WORLD_KEYS, place, mistakes)
    entries = _as_list(data.get("providers", []), f"{place}.providers", mistakes)
    providers = [parse_provider(entry, f"{place}.providers[{number}]", mistakes) for number, entry in enumerate(entries)]
    found = [provider for provider in providers if provider is not None]
    by_reference = _references(found, place, mistakes)
    placed = _resolve_parents(found, by_reference, place, mistakes)
    allocations = _parse_all_allocations(data.get("allocations"), by_reference, f"{place}.allocations", mistakes)
    custom_traits = parse_name_list(data.get("custom_traits"), f"{place}.custom_traits", why_no_trait, mistakes)
    custom_classes = parse_name_list(data.get("custom_classes"), f"{place}.custom_classes", why_no_class, mistakes)
    mistakes.check()
    return World(tuple(placed), allocations, custom_traits, custom_classes)


def parse_provider(data: t.Any, place: str, mistakes: Mistakes) -> Provider | None:
    """Return one provider, its parent still as it was written (UUID or name); None when it has neither name nor UUID."""
    if not isinstance(data, Mapping):
        mistakes.add(place, f"must be a mapping with at least a name, not {data!r}")
        return None
    _refuse_unknown_keys(data, _PROVIDER_KEYS, place, mistakes)
    name, uuid = data.get("name"), data.get("uuid")
    says = why_no_provider_name(name if name is not None else uuid)
    if says:
        mistakes.add(f"{place}.name", says)
        return None
    name = str(name if name is not None else uuid)
    says = why_no_uuid(uuid) if uuid is not None else ""
    if says:
        mistakes.add(f"{place}.uuid", says)
    parent = data.get("parent")
    if parent is not None and not isinstance(parent, str):
        mistakes.add(f"{place}.parent", f"must be the UUID or the name of a provider, not {parent!r}")
        parent = None
    generation = data.get("generation", 0)
    if not _is_integer(generation) or generation < 0:
        mistakes.add(f"{place}.generation", f"must be a whole number from 0, not {generation!r}")
    return Provider(
        uuid=canonical_uuid(uuid) if uuid is not None and not says else provider_uuid(name),
        name=name,
        parent=parent,
        inventories=parse_inventories(data.get("inventories"), f"{place}.inventories", mistakes),
        traits=parse_name_list(data.get("traits"), f"{place}.traits", why_no_trait, mistakes),
        aggregates=parse_aggregates(data.get("aggregates"), f"{place}.aggregates", mistakes),
        generation=generation,
    )


def parse_inventories(data: t.Any, place: str, mistakes: Mistakes) -> dict[str, Inventory]:
    """Return {class: Inventory} of {class: {total, reserved, ...}}."""
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        mistakes.add(place, f"must be a mapping of resource classes, not {data!r}")
        return {}
    inventories = {}
    for name, entry in data.items():
        says = why_no_class(name)
        if says:
            mistakes.add(place, says)
        inventory = parse_inventory(entry, f"{place}.{name}", mistakes)
        if inventory is not None:
            inventories[name] = inventory
    return inventories


def parse_inventory(data: t.Any, place: str, mistakes: Mistakes) -> Inventory | None:
    """Return one inventory; a mere number is its total. None when anything about it is wrong."""
    if _is_integer(data):
        data = {"total": data}
    if not isinstance(data, Mapping):
        mistakes.add(place, f"must be a mapping with the key total, not {data!r}")
        return None
    before = len(mistakes)
    _refuse_unknown_keys(data, frozenset(INVENTORY_FIELDS), place, mistakes)
    if "total" not in data:
        mistakes.add(place, "needs total")
    for key, least in _LEAST.items():
        if key in data and not (_is_integer(data[key]) and least <= data[key] <= LARGEST_AMOUNT):
            mistakes.add(f"{place}.{key}", f"must be a whole number from {least} to {LARGEST_AMOUNT}, not {data[key]!r}")
    ratio = data.get("allocation_ratio", 1.0)
    if not _is_number(ratio) or not 0 <= ratio <= LARGEST_RATIO:
        mistakes.add(f"{place}.allocation_ratio", f"must be a number from 0 to {LARGEST_RATIO:g}, not {ratio!r}")
    if len(mistakes) > before:
        return None
    inventory = Inventory(**{key: data[key] for key in INVENTORY_FIELDS if key in data})
    if inventory.reserved > inventory.total:
        mistakes.add(f"{place}.reserved", f"is {inventory.reserved}, more than the total of {inventory.total}")
        return None
    return inventory


def parse_amounts(data: t.Any, place: str, mistakes: Mistakes) -> dict[str, int]:
    """Return {class: amount}, amounts from 1; empty when it is no mapping."""
    if not isinstance(data, Mapping) or not data:
        mistakes.add(place, f"must be a mapping of resource classes to amounts, not {data!r}")
        return {}
    for name, amount in data.items():
        says = why_no_class(name)
        if says:
            mistakes.add(place, says)
        if not (_is_integer(amount) and 1 <= amount <= LARGEST_AMOUNT):
            mistakes.add(f"{place}.{name}", f"must be a whole number from 1 to {LARGEST_AMOUNT}, not {amount!r}")
    return dict(data)


def parse_name_list(data: t.Any, place: str, why_not: t.Callable[[t.Any], str], mistakes: Mistakes) -> frozenset[str]:
    """Return the names of a list, each of them checked by `why_not`, which says what is wrong or nothing."""
    names = _as_list(data, place, mistakes)
    for number, name in enumerate(names):
        says = why_not(name)
        if says:
            mistakes.add(f"{place}[{number}]", says)
    return frozenset(name for name in names if isinstance(name, str))


def parse_aggregates(data: t.Any, place: str, mistakes: Mistakes) -> frozenset[str]:
    """Return the aggregates' UUIDs of a list."""
    return frozenset(map(canonical_uuid, parse_name_list(data, place, why_no_uuid, mistakes)))


def _references(providers: Sequence[Provider], place: str, mistakes: Mistakes) -> dict[str, Provider]:
    by_uuid: dict[str, Provider] = {}
    by_name: dict[str, Provider] = {}
    for provider in providers:
        if provider.uuid in by_uuid:
            mistakes.add(f"{place}.providers", f"{provider.name} and {by_uuid[provider.uuid].name} have the same uuid {provider.uuid}")
        if provider.name in by_name:
            mistakes.add(f"{place}.providers", f"there are several providers with the name {provider.name}")
        by_uuid[provider.uuid] = provider
        by_name[provider.name] = provider
    return {**by_name, **by_uuid}


def _resolve_parents(providers: Sequence[Provider], by_reference: Mapping[str, Provider], place: str, mistakes: Mistakes) -> list[Provider]:
    placed = []
    for provider in providers:
        if provider.parent is None:
            placed.append(provider)
            continue
        parent = find_reference(provider.parent, by_reference)
        if parent is None:
            hint = suggest(provider.parent, by_reference)
            mistakes.add(f"{place}.providers", f"the parent {provider.parent!r} of {provider.name} is no provider{hint}")
            continue
        placed.append(provider if provider.parent == parent.uuid else replace(provider, parent=parent.uuid))
    looped = _in_loops({provider.uuid: provider.parent for provider in placed})
    for provider in placed:
        if provider.uuid in looped:
            mistakes.add(f"{place}.providers", f"{provider.name} is its own ancestor; parents must not form a loop")
    return placed


def _in_loops(parents: Mapping[str, str | None]) -> set[str]:
    """Return the UUIDs from which the walk to the root never ends."""
    ends: set[str] = set()
    endless: set[str] = set()
    for uuid in parents:
        path: dict[str, None] = {}
        here: str | None = uuid
        while here is not None and here in parents and here not in path and here not in ends and here not in endless:
            path[here] = None
            here = parents[here]
        (endless if here in path or here in endless else ends).update(path)
    return endless


def find_reference(reference: t.Any, by_reference: Mapping[str, Provider]) -> Provider | None:
    """Return the provider that a UUID (in any spelling) or a name means, None when there is none."""
    if not isinstance(reference, str):
        return None
    return by_reference.get(reference) or by_reference.get(canonical_uuid(reference))


def _parse_all_allocations(data: t.Any, by_reference: Mapping[str, Provider], place: str, mistakes: Mistakes) -> dict[str, Allocations]:
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        mistakes.add(place, f"must be a mapping of consumers, not {data!r}")
        return {}
    found: dict[str, Allocations] = {}
    for consumer, entry in data.items():
        says = why_no_uuid(consumer)
        if says:
            mistakes.add(place, f"the consumer {says}")
            continue
        found[canonical_uuid(consumer)] = _parse_allocations(entry, by_reference, f"{place}.{consumer}", mistakes)
    return found


def _parse_allocations(data: t.Any, by_reference: Mapping[str, Provider], place: str, mistakes: Mistakes) -> dict[str, Amounts]:
    if not isinstance(data, Mapping):
        mistakes.add(place, f"must be a mapping of providers to amounts, not {data!r}")
        return {}
    allocations: dict[str, Amounts] = {}
    for reference, entry in data.items():
        provider = find_reference(reference, by_reference)
        if provider is None:
            mistakes.add(place, f"there is no provider {reference!r}")
            continue
        amounts = parse_amounts(entry, f"{place}.{reference}", mistakes)
        for name in amounts.keys() - provider.inventories.keys():
            mistakes.add(f"{place}.{reference}", f"{provider.name} has no inventory of {name}")
        allocations[provider.uuid] = amounts
    return allocations


def _refuse_unknown_keys(data: Mapping[t.Any, t.Any], known: frozenset[str], place: str, mistakes: Mistakes) -> None:
    for key in data:
        if key not in known:
            mistakes.add(place, f"has the unknown key {key!r}{suggest(str(key), known)}; known are {', '.join(sorted(known))}")


def _as_list(data: t.Any, place: str, mistakes: Mistakes) -> Sequence[t.Any]:
    if data is None:
        return []
    if not isinstance(data, (list, tuple, set, frozenset)):
        mistakes.add(place, f"must be a list, not {data!r}")
        return []
    return list(data)


def _is_integer(value: t.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: t.Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
