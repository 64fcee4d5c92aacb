# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Register, change and remove providers: what a task declares is compared with what is there, and the difference is written.

A provider whose name, parent, inventories, traits or aggregates change gets a new generation, and so does every provider below one
that moves; a provider that is as declared is not written at all.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from ...common.errors import Mistakes, NoSolution, suggest
from ...common.libraries import sa
from ..world.model import Inventory, inventory_warnings
from ..world.names import provider_uuid
from ..world.parse import INVENTORY_FIELDS
from .guards import guard_providers, guard_topology
from .import_world import ensure_names
from .read import StoredProvider, batches, read_children, read_numbers, read_parent, read_providers, read_users
from .tables import inventories, provider_aggregates, provider_traits, providers, resource_classes, traits

ROOT = ""
"""As a parent: none."""


@dataclass(frozen=True)
class ProviderChange:
    """What a provider shall be; None leaves a part as it is, and is nothing where the provider is new.

    At least one of `uuid` and `name` is given; `parent` is a UUID, a name or ROOT. `generation` is the one the caller saw.
    `place` is where the caller wrote it.
    """

    place: str
    uuid: str | None = None
    name: str | None = None
    parent: str | None = None
    inventories: Mapping[str, Inventory] | None = None
    traits: frozenset[str] | None = None
    aggregates: frozenset[str] | None = None
    generation: int | None = None

    @property
    def reference(self) -> str:
        """What finds the provider in the ledger."""
        return t.cast("str", self.uuid or self.name)

    def place_of(self, part: str) -> str:
        """Return where the caller wrote a part of it."""
        return f"{self.place}.{part}" if self.place else part

    def uuid_among(self, stored: Mapping[str, StoredProvider]) -> str:
        """Return the provider's UUID: its own, the one it has in the ledger, or that of its name."""
        known = stored.get(self.reference)
        return known.uuid if known else self.uuid or provider_uuid(t.cast("str", self.name))


@dataclass(frozen=True)
class ProvidersChanged:
    """Providers before and after by UUID, those that are not there left out."""

    before: Mapping[str, StoredProvider]
    after: Mapping[str, StoredProvider]
    warnings: Sequence[str] = ()

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return self.before != self.after


class StillInUse(NoSolution):
    """Something cannot be removed because it is used; `conflict` says by whom."""


_PLACE = sa.update(providers).where(providers.c.id == sa.bindparam("number")).values(parent_id=sa.bindparam("parent"))


def wanted_parents(
    connection: sa.Connection, changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider]
) -> dict[str, str | None]:
    """Return the UUID of the parent of each provider that is given one, by the provider's UUID; None for a root.

    A parent may be a provider that the same call makes. Raises InputError for those that are nowhere.
    """
    declared = {change.name: change.uuid_among(stored) for change in changes if change.name}
    declared.update((uuid, uuid) for uuid in list(declared.values()))
    asked = {change.parent for change in changes if change.parent}
    known = {reference: uuid for reference, (_number, uuid) in read_numbers(connection, asked - declared.keys()).items()}
    known.update((name, uuid) for name, uuid in declared.items() if name is not None)
    mistakes = Mistakes()
    parents: dict[str, str | None] = {}
    for change in changes:
        if change.parent == ROOT:
            parents[change.uuid_among(stored)] = None
        elif change.parent is not None and change.parent in known:
            parents[change.uuid_among(stored)] = known[change.parent]
        elif change.parent is not None:
            mistakes.add(change.place_of("parent"), f"there is no provider {change.parent!r}{suggest(change.parent, known)}")
    mistakes.check()
    return parents


def moved_numbers(stored: Mapping[str, StoredProvider], parents: Mapping[str, str | None]) -> set[int]:
    """Return the numbers of the stored providers that get another parent."""
    return {provider.id for provider in stored.values() if provider.uuid in parents and parents[provider.uuid] != provider.parent}


def refuse_loops(
    connection: sa.Connection, changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider], parents: Mapping[str, str | None]
) -> None:
    """Raise InputError for each provider that would be its own ancestor; if stored ones move, the topology is guarded already."""
    # The way up never leads back from a stored provider to a new one, unless one of the stored ones moves.
    follow = bool(moved_numbers(stored, parents))
    mistakes = Mistakes()
    for change in changes:
        uuid = change.uuid_among(stored)
        if parents.get(uuid) is not None and _is_its_own_ancestor(connection, uuid, parents, follow_stored=follow):
            mistakes.add(change.place_of("parent"), f"{change.parent} is the provider itself or below it; parents must not form a loop")
    mistakes.check()


def numbers_below(connection: sa.Connection, numbers: Collection[int]) -> set[int]:
    """Return the numbers of all providers below some, whose roots change when those move."""
    below: set[int] = set()
    level = set(numbers)
    while level:
        level = set(read_children(connection, level)) - below
        below |= level
    return below


def write_parents(connection: sa.Connection, present: Mapping[str, str | None], wanted: Mapping[str, str | None]) -> None:
    """Put providers below their parents where they are not; all of them exist by now."""
    parents = {child: parent for child, parent in wanted.items() if present[child] != parent}
    numbers = {uuid: number for number, uuid in read_numbers(connection, {*parents, *filter(None, parents.values())}).values()}
    rows = [{"number": numbers[child], "parent": None if parent is None else numbers[parent]} for child, parent in parents.items()]
    for part in batches(rows):
        connection.execute(_PLACE, part)


def _is_its_own_ancestor(connection: sa.Connection, uuid: str, parents: Mapping[str, str | None], *, follow_stored: bool) -> bool:
    seen: set[str] = set()
    here = parents[uuid]
    while here is not None and here != uuid and here not in seen:
        seen.add(here)
        stored = read_parent(connection, here) if follow_stored and here not in parents else None
        here = parents.get(here, stored)
    return here == uuid


_RENAME = sa.update(providers).where(providers.c.id == sa.bindparam("number")).values(name=sa.bindparam("called"))
_STOCK = (inventories.c.provider_id == sa.bindparam("provider"), inventories.c.resource_class == sa.bindparam("class"))
_ALTER_INVENTORY = sa.update(inventories).where(*_STOCK).values({name: sa.bindparam(f"new_{name}") for name in INVENTORY_FIELDS})
_DROP_INVENTORY = sa.delete(inventories).where(*_STOCK)


def put_providers(connection: sa.Connection, changes: Sequence[ProviderChange]) -> ProvidersChanged:
    """Make providers what the changes say, all of them or none.

    Raises InputError (unknown parent, name taken, loop), StillInUse, GenerationMoved, LostRace.
    """
    stored = _find(connection, changes)
    _refuse_taken_names(connection, changes, stored)
    parents = wanted_parents(connection, changes, stored)
    # New names before guards, here as everywhere: two changes that need both never wait for each other.
    ensure_names(connection, resource_classes, {name for change in changes for name in change.inventories or ()})
    ensure_names(connection, traits, {name for change in changes for name in change.traits or ()})
    if moved_numbers(stored, parents):
        guard_topology(connection)
        stored = _find(connection, changes)
    refuse_loops(connection, changes, stored, parents)
    _guard(connection, changes, stored, parents)
    _insert_new(connection, changes, stored)
    guarded = _find(connection, changes)
    _rename(connection, changes, guarded)
    write_parents(connection, {provider.uuid: provider.parent for provider in guarded.values()}, parents)
    write_inventories(connection, [(guarded[change.reference], change.inventories) for change in changes if change.inventories is not None])
    _write_sets(connection, changes, guarded)
    after = read_providers(connection, {provider.uuid for provider in guarded.values()})
    return ProvidersChanged({provider.uuid: provider for provider in stored.values()}, after, _warnings(changes, guarded))


def remove_providers(connection: sa.Connection, changes: Sequence[ProviderChange]) -> ProvidersChanged:
    """Remove providers with all that belongs to them; those that are not there are as wanted.

    Raises StillInUse for providers with children that stay, or with allocations, GenerationMoved, LostRace.
    """
    found = _find(connection, changes)
    guard_providers(connection, {found[c.reference].id: c.generation for c in changes if c.reference in found})
    leaving = {provider.id: provider for provider in found.values()}
    _refuse_if_used(connection, leaving)
    for table in (inventories, provider_traits, provider_aggregates):
        for part in batches(leaving):
            connection.execute(sa.delete(table).where(table.c.provider_id.in_(part)))
    for part in batches(_children_first(leaving.values())):
        connection.execute(sa.delete(providers).where(providers.c.id == sa.bindparam("number")), [{"number": number} for number in part])
    return ProvidersChanged({provider.uuid: provider for provider in found.values()}, {})


def write_inventories(connection: sa.Connection, wanted: Sequence[tuple[StoredProvider, Mapping[str, Inventory]]]) -> None:
    """Make the inventories of guarded providers those that are wanted. Raises StillInUse when one that goes is in use."""
    gone = [(provider, name) for provider, inventory in wanted for name in sorted(provider.inventories.keys() - inventory.keys())]
    _refuse_to_drop(connection, gone)
    _run(connection, _DROP_INVENTORY, ({"provider": provider.id, "class": name} for provider, name in gone))
    new, altered = [], []
    for provider, declared in wanted:
        for name in sorted(declared):
            fields = asdict(declared[name])
            if name not in provider.inventories:
                new.append({"provider_id": provider.id, "resource_class": name, "used": 0, **fields})
            elif provider.inventories[name].inventory != declared[name]:
                altered.append({"provider": provider.id, "class": name, **{f"new_{key}": value for key, value in fields.items()}})
    _run(connection, sa.insert(inventories), new)
    _run(connection, _ALTER_INVENTORY, altered)


def _find(connection: sa.Connection, changes: Iterable[ProviderChange]) -> dict[str, StoredProvider]:
    return read_providers(connection, [change.reference for change in changes])


def _refuse_taken_names(connection: sa.Connection, changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider]) -> None:
    """Refuse a name, or a UUID that belongs to a name, that another provider has."""
    wanted = {name for change in changes for name in (change.name, change.uuid_among(stored)) if name is not None}
    owners = read_providers(connection, wanted)
    mistakes = Mistakes()
    places: dict[str, str] = {}
    for change in changes:
        uuid = change.uuid_among(stored)
        if places.setdefault(uuid, change.place) != change.place:
            mistakes.add(change.place, f"is the provider {uuid}, which {places[uuid]} is already")
        owner = owners.get(change.name or uuid)
        if owner is not None and owner.uuid != uuid and owner.name == change.name:
            mistakes.add(change.place_of("name"), f"{change.name} is the name of the provider {owner.uuid} already")
        if change.reference not in stored and change.name is None:
            mistakes.add(change.place_of("name"), f"there is no provider {uuid}, and a new one needs a name")
        if change.reference not in stored and change.uuid is None and uuid in owners:
            mistakes.add(
                change.place_of("uuid"), f"give one, since the one that belongs to this name is that of {owners[uuid].name} already"
            )
    mistakes.check()


def _guard(
    connection: sa.Connection, changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider], parents: Mapping[str, str | None]
) -> None:
    known = [(change, stored[change.reference]) for change in changes if change.reference in stored]
    below = numbers_below(connection, moved_numbers(stored, parents))
    differing = {provider.id: change.generation for change, provider in known if _differs(change, provider, parents)}
    guard_providers(connection, {**dict.fromkeys(below), **differing})


def _differs(change: ProviderChange, provider: StoredProvider, parents: Mapping[str, str | None]) -> bool:
    inventory = {name: stock.inventory for name, stock in provider.inventories.items()}
    return (
        change.name not in (None, provider.name)
        or parents.get(provider.uuid, provider.parent) != provider.parent
        or change.inventories not in (None, inventory)
        or change.traits not in (None, provider.traits)
        or change.aggregates not in (None, provider.aggregates)
    )


def _insert_new(connection: sa.Connection, changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider]) -> None:
    new = [change for change in changes if change.reference not in stored]
    _run(connection, sa.insert(providers), ({"uuid": change.uuid_among(stored), "name": change.name, "generation": 0} for change in new))


def _rename(connection: sa.Connection, changes: Sequence[ProviderChange], guarded: Mapping[str, StoredProvider]) -> None:
    renamed = [(guarded[change.reference], change.name) for change in changes if change.name not in (None, guarded[change.reference].name)]
    _run(connection, _RENAME, ({"number": provider.id, "called": name} for provider, name in renamed))


def _write_sets(connection: sa.Connection, changes: Sequence[ProviderChange], guarded: Mapping[str, StoredProvider]) -> None:
    """Write traits and aggregates where they are declared."""
    known = [(change, guarded[change.reference]) for change in changes]
    trait_sets = [(provider.id, provider.traits, change.traits) for change, provider in known if change.traits is not None]
    aggregate_sets = [(provider.id, provider.aggregates, change.aggregates) for change, provider in known if change.aggregates is not None]
    _write_members(connection, provider_traits, "trait", trait_sets)
    _write_members(connection, provider_aggregates, "aggregate", aggregate_sets)


def _write_members(
    connection: sa.Connection, table: sa.Table, column: str, sets: Sequence[tuple[int, frozenset[str], frozenset[str]]]
) -> None:
    """Write the difference between the members that each provider, by its number, has and those it shall have."""
    keys = (table.c.provider_id == sa.bindparam("provider"), table.c[column] == sa.bindparam("member"))
    gone = ({"provider": number, "member": name} for number, present, wanted in sets for name in sorted(present - wanted))
    new = ({"provider_id": number, column: name} for number, present, wanted in sets for name in sorted(wanted - present))
    _run(connection, sa.delete(table).where(*keys), gone)
    _run(connection, sa.insert(table), new)


def _warnings(changes: Sequence[ProviderChange], guarded: Mapping[str, StoredProvider]) -> list[str]:
    found = []
    for change in changes:
        wanted = change.inventories or {}
        found += inventory_warnings(wanted, change.place_of("inventories"))
        found += [
            f"{change.place_of('inventories')}.{name}: {stock.used} in use, over its capacity {wanted[name].capacity}; no more can be taken"
            for name, stock in guarded[change.reference].inventories.items()
            if name in wanted and stock.used > wanted[name].capacity
        ]
    return found


def _refuse_to_drop(connection: sa.Connection, gone: Sequence[tuple[StoredProvider, str]]) -> None:
    users = read_users(connection, {provider.id for provider, _name in gone})
    used = [(provider, name, users[provider.id, name]) for provider, name in gone if (provider.id, name) in users]
    if used:
        lines = [f"{name} of {provider.name} is used by {len(consumers)} consumers" for provider, name, consumers in used]
        raise StillInUse(f"the inventory cannot go: {'; '.join(lines)}", {"used_by": _by_provider(used)})


def _refuse_if_used(connection: sa.Connection, leaving: Mapping[int, StoredProvider]) -> None:
    staying = {child: parent for child, parent in read_children(connection, leaving).items() if child not in leaving}
    used = [(leaving[number], name, consumers) for (number, name), consumers in sorted(read_users(connection, leaving).items())]
    lines = [f"{leaving[number].name} has a provider below it" for number in sorted(set(staying.values()))]
    lines += [f"{name} of {provider.name} is used by {len(consumers)} consumers" for provider, name, consumers in used]
    if lines:
        parents = sorted({leaving[number].uuid for number in staying.values()})
        raise StillInUse(f"cannot be removed: {'; '.join(lines)}", {"used_by": _by_provider(used), "with_children": parents})


def _by_provider(used: Iterable[tuple[StoredProvider, str, list[str]]]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for provider, name, consumers in used:
        found.setdefault(provider.uuid, {})[name] = consumers
    return found


def _children_first(leaving: Iterable[StoredProvider]) -> list[int]:
    """Return numbers in an order in which each row can be deleted: MariaDB checks foreign keys row by row."""
    by_uuid = {provider.uuid: provider for provider in leaving}

    def depth(provider: StoredProvider) -> int:
        steps, above = 0, provider.parent
        while above in by_uuid:
            steps, above = steps + 1, by_uuid[above].parent
        return steps

    return [provider.id for provider in sorted(by_uuid.values(), key=lambda provider: (-depth(provider), provider.id))]


def _run(connection: sa.Connection, statement: sa.Insert | sa.Update | sa.Delete, rows: Iterable[Mapping[str, object]]) -> None:
    for part in batches(rows):
        connection.execute(statement, part)
