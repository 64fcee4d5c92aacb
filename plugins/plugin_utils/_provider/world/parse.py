# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read providers, inventories and allocations from plain data; every mistake is reported at once with its place."""

from __future__ import annotations

import time
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from ....module_utils._data.containers import Also, ListOf, MappingOf, Row, Table, Values
from ....module_utils._data.errors import Mistakes, Place, suggest
from ....module_utils._data.kinds import Anything, Checked, Json, Kind, Number, Truth, Whole, is_whole, shown
from .model import LARGEST_AMOUNT, LARGEST_RATIO, Allocations, Inventory, Provider, World
from .names import (
    AGGREGATE_PATTERN,
    CLASS_PATTERN,
    TRAIT_PATTERN,
    UUID_PATTERN,
    aggregate_uuid,
    canonical_reference,
    canonical_uuid,
    consumer_uuid,
    names_by_uuid,
    provider_uuid,
    why_no_aggregate,
    why_no_class,
    why_no_consumer,
    why_no_provider_name,
    why_no_trait,
    why_no_uuid,
)
from .times import AskedDrain, TimeKind, why_no_reason

INVENTORY_FIELDS = tuple(entry.name for entry in fields(Inventory))
_AMOUNT = Whole(1, LARGEST_AMOUNT)
UUID = Checked(why_no_uuid, "a UUID", UUID_PATTERN, canonical_uuid)
NAME = Checked(why_no_provider_name, "the name of a provider", r"^\S(.*\S)?$")
REFERENCE = Checked(why_no_provider_name, "the UUID or the name of a provider", r"^\S(.*\S)?$", canonical_reference)
CONSUMER = Checked(why_no_consumer, "the UUID or the name of a consumer", r"^\S(.*\S)?$", canonical_reference)
AGGREGATE = Checked(why_no_aggregate, "the UUID or the name of an aggregate", AGGREGATE_PATTERN, canonical_reference)
CLASS = Checked(why_no_class, "a resource class", CLASS_PATTERN)
TRAIT = Checked(why_no_trait, "a trait", TRAIT_PATTERN)
GENERATION = Whole(0)
TRAITS = ListOf(TRAIT, "traits")
AGGREGATES = ListOf(AGGREGATE, "UUIDs or names of aggregates")
AMOUNTS = MappingOf(_AMOUNT, "resource classes to amounts", CLASS, least=1)


_INVENTORY_TABLE = Table(
    "an inventory",
    [
        Row("total", _AMOUNT, "How much there is.", required=True),
        Row("reserved", Whole(0, LARGEST_AMOUNT), "How much of the total no consumer gets.", default=0),
        Row("min_unit", _AMOUNT, "The least that one consumer may have.", default=1),
        Row("max_unit", _AMOUNT, "The most that one consumer may have.", default=LARGEST_AMOUNT),
        Row("step_size", _AMOUNT, "What amounts are multiples of.", default=1),
        Row("allocation_ratio", Number(0, LARGEST_RATIO), "How often it may be given away.", default=1.0),
    ],
)


class _Inventory(Kind):
    """Reads an Inventory; none when anything about it is wrong."""

    wanted, nested = _INVENTORY_TABLE.wanted, True

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> Inventory | None:
        found = Mistakes()
        inventory = Inventory(**_INVENTORY_TABLE.read_nested(value, place, found))
        if not found and inventory.reserved > inventory.total:
            found.add((place, ".", "reserved"), f"is {inventory.reserved}, more than the total of {inventory.total}")
        mistakes.extend(found.found())
        return None if found else inventory

    def read_column(self, values: Sequence[t.Any]) -> Sequence[Inventory] | None:
        read = _INVENTORY_TABLE.read_column(values)
        inventories = [Inventory(**entry) for entry in read or ()]
        return None if read is None or any(one.reserved > one.total for one in inventories) else inventories

    def json_schema(self) -> Json:
        return _INVENTORY_TABLE.json_schema()


_DRAIN_TABLE = Table(
    "a drain",
    [Row("reason", Checked(why_no_reason, "text"), "Why.", default=""), Row("until", TimeKind(), "Until when; by default without an end.")],
    make=AskedDrain,
)


class _Drained(Kind):
    """Whether a provider is drained; or a reason, and until when."""

    wanted, nested = "true, false, or a mapping with reason and until", True

    def read_nested(self, value: t.Any, place: Place, mistakes: Mistakes) -> AskedDrain | None:
        if isinstance(value, Mapping):
            found: AskedDrain = _DRAIN_TABLE.read_nested(value, place, mistakes)
            return found
        try:
            return AskedDrain(is_drained=Truth().read(value))
        except ValueError:
            mistakes.add(place, f"is {shown(value)}; must be {self.wanted}")
            return None

    def json_schema(self) -> Json:
        return {"anyOf": [Truth().json_schema(), _DRAIN_TABLE.json_schema()]}


DRAINED = _Drained()
INVENTORY = Also(_Inventory(), lambda value: {"total": value} if is_whole(value) else value, _AMOUNT)
INVENTORIES = MappingOf(INVENTORY, "resource classes", CLASS)
PROVIDER_ROWS = {
    row.name: row
    for row in (
        Row("uuid", UUID, "Its UUID; by default one that belongs to its name."),
        Row("name", NAME, "What it is called; by default its UUID."),
        Row("parent", Also(NAME, str, Anything({"type": "null"})), "The UUID or the name of the provider that it is below."),
        Row("inventories", INVENTORIES, "What it has, by resource class; a mere number is a total."),
        Row("traits", TRAITS, "Qualities that requests can require or forbid."),
        Row("aggregates", AGGREGATES, "The aggregates that it is in."),
        Row("generation", GENERATION, "How often it has changed."),
        Row("drained", DRAINED, "Whether neither it nor those below it give anything more; or why, and until when."),
    )
}
_PROVIDER = Table(
    "a provider",
    PROVIDER_ROWS.values(),
    schema={"anyOf": [{"required": ["name"]}, {"required": ["uuid"]}]},
)
WORLD = Table(
    "a world",
    [
        Row("providers", ListOf(_PROVIDER, "providers"), "All providers.", default=()),
        Row(
            "allocations",
            MappingOf(MappingOf(AMOUNTS, "providers to amounts"), "consumers", CONSUMER),
            "What consumers have: amounts by resource class, by provider, by consumer (UUID or name).",
            default={},
        ),
        Row("custom_traits", TRAITS, "Traits that exist although nothing uses them.", default=()),
        Row("custom_classes", ListOf(CLASS, "resource classes"), "Resource classes that exist although nothing uses them.", default=()),
    ],
)


def parse_world(data: t.Any, place: str = "world") -> World:
    """Return the world that plain data describes; `place` is what the mistakes' places start with.

    A provider without `uuid` gets the one that belongs to its name; `parent`, aggregates and the keys of allocations are UUIDs or names.
    Raises InputError with every mistake.
    """
    mistakes = Mistakes()
    values = WORLD.read_nested(data, place, mistakes)
    entries = [(f"{place}.providers[{number}]", entry) for number, entry in enumerate(values["providers"])]
    found = [provider for where, entry in entries for provider in [_provider(entry, where, mistakes)] if provider is not None]
    by_reference = _references(found, place, mistakes)
    placed = _resolve_parents(found, by_reference, place, mistakes)
    held = values["allocations"]
    allocations = {
        consumer_uuid(consumer): _allocations(entry, by_reference, f"{place}.allocations.{consumer}", mistakes)
        for consumer, entry in held.items()
    }
    for consumer in held if len(allocations) < len(held) else ():
        if consumer_uuid(consumer) in held and consumer_uuid(consumer) != consumer:
            mistakes.add(f"{place}.allocations.{consumer}", f"is given again, as {consumer_uuid(consumer)}")
    mistakes.check()
    return World(
        tuple(placed),
        allocations,
        frozenset(values["custom_traits"]),
        frozenset(values["custom_classes"]),
        names_by_uuid(held, consumer_uuid),
        names_by_uuid((name for entry in values["providers"] for name in entry["aggregates"] or ()), aggregate_uuid),
    )


def _provider(values: Values, place: str, mistakes: Mistakes) -> Provider | None:
    """Return one provider, its parent still as it was written (UUID or name); None when it has neither name nor UUID."""
    name, uuid = values["name"], values["uuid"]
    if not name and not uuid:
        if not mistakes.has(place) and not mistakes.has(f"{place}.name") and not mistakes.has(f"{place}.uuid"):
            mistakes.add(f"{place}.name", "is missing; a provider needs a name or a uuid")
        return None
    name = name or uuid
    return Provider(
        uuid=uuid or provider_uuid(name),
        name=name,
        parent=values["parent"],
        inventories={key: inventory for key, inventory in (values["inventories"] or {}).items() if inventory is not None},
        traits=frozenset(values["traits"] or ()),
        aggregates=frozenset(map(aggregate_uuid, values["aggregates"] or ())),
        generation=values["generation"] or 0,
        drained=None if values["drained"] is None else values["drained"].at(int(time.time())),
    )


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
            mistakes.add(f"{place}.providers", f"the parent {provider.parent!r} of {provider.name} is not a provider{hint}")
            continue
        placed.append(provider if provider.parent == parent.uuid else replace(provider, parent=parent.uuid))
    # The UUIDs from which the walk to the root never ends.
    parents = {provider.uuid: provider.parent for provider in placed}
    ends: set[str] = set()
    looped: set[str] = set()
    for uuid in parents:
        path: dict[str, None] = {}
        here: str | None = uuid
        while here is not None and here in parents and here not in path and here not in ends and here not in looped:
            path[here] = None
            here = parents[here]
        (looped if here in path or here in looped else ends).update(path)
    for provider in placed:
        if provider.uuid in looped:
            mistakes.add(f"{place}.providers", f"{provider.name} is its own ancestor; parents must not form a loop")
    return placed


def find_reference(reference: t.Any, by_reference: Mapping[str, Provider]) -> Provider | None:
    """Return the provider that a UUID (in any spelling) or a name means, None when there is none."""
    if not isinstance(reference, str):
        return None
    return by_reference.get(reference) or by_reference.get(canonical_uuid(reference))


def _allocations(
    entries: Mapping[str, Mapping[str, int]], by_reference: Mapping[str, Provider], place: str, mistakes: Mistakes
) -> Allocations:
    """Return what one consumer has, by the UUIDs of providers."""
    allocations: dict[str, Mapping[str, int]] = {}
    for reference, amounts in entries.items():
        provider = find_reference(reference, by_reference)
        if provider is None:
            mistakes.add(place, f"there is no provider {reference!r}")
            continue
        for name in amounts.keys() - provider.inventories.keys():
            mistakes.add(f"{place}.{reference}", f"{provider.name} has no inventory of {name}")
        allocations[provider.uuid] = amounts
    return allocations
