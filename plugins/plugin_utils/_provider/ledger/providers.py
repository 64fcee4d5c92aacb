# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Register, change and remove providers: compares a task's declarations with the ledger, and writes the difference.

A provider whose name, parent, inventories, traits or aggregates change gets a new generation, and so does every provider below one
that moves; a provider that is as declared is not written at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ....module_utils._data.errors import InputError, Mistakes
from ..._common.libraries import sa
from ..world.model import inventory_warnings
from ..world.names import SHARING_TRAIT
from ..world.times import Drain
from .changes import Moved, ProviderChange, ProvidersChanged
from .claim_plan import Change, released
from .claims import guard_consumers, write_changes
from .clock import read_now
from .drains import write_closed, write_drains
from .expired import Key, are_used_by, read_expired
from .guards import begin_above_gone, guard_providers, guard_topology, raise_above_gone, remember_gone
from .import_world import ensure_aggregates, ensure_names
from .inventories import StillInUse, found_by, says_used, used_by, write_inventories
from .read import batches, read_children, read_identities, read_providers, read_users, read_uuids, run_batches
from .retry import LostRace
from .stored import StoredProvider
from .successors import Successions, find_successions, move_consumers, read_consumers_of
from .tables import inventories, provider_aggregates, provider_traits, providers, resource_classes, traits
from .topology import goes_below_stored, moved_numbers, numbers_below, refuse_loops, wanted_parents, write_parents, write_roots

_RENAME = sa.update(providers).where(providers.c.id == sa.bindparam("number")).values(name=sa.bindparam("new_name"))


def put_providers(connection: sa.Connection, changes: Sequence[ProviderChange]) -> ProvidersChanged:
    """Make providers what the changes say, all of them or none.

    Raises InputError (unknown parent, name taken, loop), StillInUse, GenerationMoved, LostRace.
    """
    if any(change.drained for change in changes):
        now = read_now(connection)
        changes = [change if change.drained is None else replace(change, drained=change.drained.resolved(now)) for change in changes]
    stored = _find(connection, changes)
    try:
        return _replace(connection, changes, stored)
    except InputError:
        # Another writer may have come in between two reads: its provider is no mistake of this call.
        if _identities(_find(connection, changes)) != _identities(stored):
            raise LostRace from None
        raise


def _identities(stored: Mapping[str, StoredProvider]) -> dict[str, tuple[int, str, str | None]]:
    return {reference: (provider.id, provider.name, provider.parent) for reference, provider in stored.items()}


def _replace(connection: sa.Connection, changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider]) -> ProvidersChanged:
    """Put providers, of which some may replace others."""
    plan = Successions(changes)
    if any(change.replaces for change in changes):
        plan = find_successions(connection, changes, stored)
        if plan.by_uuid:
            _ensure_names(connection, changes)
            guard_topology(connection)
            plan = find_successions(connection, changes, _find(connection, changes))
        stored = _find(connection, plan.changes)
    return _put(connection, plan, stored)


def _put(connection: sa.Connection, plan: Successions, stored: Mapping[str, StoredProvider]) -> ProvidersChanged:
    asked = plan.changes
    changes = _from_now_on(asked, stored)
    _refuse_taken_names(connection, changes, stored, plan)
    parents = {uuid: plan.successor_of(parent) for uuid, parent in wanted_parents(connection, changes, stored).items()}
    # An aggregate that was given by its UUID may get its name, though the provider stays in it.
    ensure_aggregates(connection, {uuid: name for change in changes for uuid, name in change.aggregate_names.items()})
    if not plan.by_uuid and all(
        change.reference in stored and not _differs(change, stored[change.reference], parents) for change in changes
    ):
        # As declared, which one read has seen; there is nothing to guard.
        declared = {provider.uuid: provider for provider in stored.values()}
        return ProvidersChanged(declared, declared, [*plan.warnings, *_warnings(changes, stored)])
    # New names before guards, here as everywhere: two changes that need both never wait for each other.
    _ensure_names(connection, changes)
    is_moved = moved_numbers(stored, parents) or goes_below_stored(changes, stored, parents)
    if is_moved or _renamed(changes, stored) or _drained(changes, stored):
        guard_topology(connection)
        stored = _find(connection, changes)
    moved = moved_numbers(stored, parents)
    refuse_loops(connection, changes, stored, parents)
    guards = _guard(connection, changes, stored, parents, plan)
    remember_gone(connection, plan.expected)
    raise_above_gone(connection, _renamed(changes, stored))
    remember_gone(connection, _renamed(changes, stored))
    _insert_new(connection, changes, stored, plan)
    guarded = _find(connection, changes)
    changes = _from_now_on(asked, guarded)
    _refuse_overtaken(changes, stored, guarded, parents, guards.providers, moved)
    write_parents(connection, {provider.uuid: provider.parent for provider in guarded.values()}, parents)
    present = {provider.id for provider in stored.values()}
    new = {provider.id for provider in guarded.values()} - present
    write_roots(connection, moved | new)
    drains = _drained(changes, guarded)
    write_drains(connection, drains)
    write_closed(connection, moved | new | drains.keys())
    write_inventories(connection, [(guarded[change.reference], change.inventories) for change in changes if change.inventories is not None])
    _write_sets(connection, changes, guarded)
    successors = {provider.uuid: replace(provider, name=change.name or provider.name) for change, provider in _known(changes, guarded)}
    consumers = move_consumers(connection, plan, guards.moving, guards.consumers, successors, guards.now) if plan.by_uuid else Moved()
    gone = {each.old.uuid: each.old for each in plan.by_uuid.values()}
    _delete(connection, {provider.id: provider for provider in gone.values()})
    # Last: a successor may have the name of the provider that it replaces, and the history has that name until here.
    _rename(connection, changes, guarded)
    after = read_providers(connection, {provider.uuid for provider in guarded.values()})
    before = {**gone, **{provider.uuid: provider for provider in stored.values()}}
    return ProvidersChanged(before, after, [*plan.warnings, *_warnings(changes, guarded)], consumers)


def _known(changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider]) -> list[tuple[ProviderChange, StoredProvider]]:
    return [(change, stored[change.reference]) for change in changes if change.reference in stored]


def _ensure_names(connection: sa.Connection, changes: Sequence[ProviderChange]) -> None:
    ensure_names(connection, resource_classes, {name for change in changes for name in change.inventories or ()})
    ensure_names(connection, traits, {name for change in changes for name in change.traits or ()})


def _from_now_on(changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider]) -> list[ProviderChange]:
    return [change.from_now_on(stored.get(change.reference)) for change in changes]


def remove_providers(connection: sa.Connection, changes: Sequence[ProviderChange], *, trees: bool = False) -> ProvidersChanged:
    """Remove providers with all that belongs to them, with `trees` all providers below them, too; those that are not there are as wanted.

    Raises StillInUse for providers with children that stay, or with allocations, GenerationMoved, LostRace.
    """
    found = _find(connection, changes)
    if found:
        guard_topology(connection)
    below = read_uuids(connection, numbers_below(connection, {provider.id for provider in found.values()})) if trees else ()
    found.update(read_providers(connection, set(below) - {provider.uuid for provider in found.values()}))
    leaving = {provider.id: provider for provider in found.values()}
    expected = {**dict.fromkeys(leaving), **{found[c.reference].id: c.generation for c in changes if c.reference in found}}
    _guard_without_expired(connection, expected, leaving)
    staying = {child: parent for child, parent in read_children(connection, leaving).items() if child not in leaving}
    used = [(leaving[number], name, consumers) for (number, name), consumers in sorted(read_users(connection, leaving).items())]
    lines = [f"{leaving[number].name} has a provider below it" for number in sorted(set(staying.values()))]
    lines += map(says_used, used)
    if lines:
        parents = sorted({leaving[number].uuid for number in staying.values()})
        raise StillInUse(f"cannot be removed: {'; '.join(lines)}", {"used_by": used_by(used), "with_children": parents})
    remember_gone(connection, leaving)
    _delete(connection, leaving)
    return ProvidersChanged({provider.uuid: provider for provider in found.values()}, {})


def _delete(connection: sa.Connection, leaving: Mapping[int, StoredProvider]) -> None:
    """Delete guarded providers, which nobody uses, with all that belongs to them."""
    for table in (inventories, provider_traits, provider_aggregates):
        for part in batches(leaving):
            connection.execute(sa.delete(table).where(table.c.provider_id.in_(part)))
    for part in batches(_children_first(leaving.values())):
        connection.execute(sa.delete(providers).where(providers.c.id == sa.bindparam("number")), [{"number": number} for number in part])


def _find(connection: sa.Connection, changes: Iterable[ProviderChange]) -> dict[str, StoredProvider]:
    return read_providers(connection, [change.reference for change in changes])


def _refuse_taken_names(
    connection: sa.Connection, changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider], plan: Successions
) -> None:
    """Refuse a name, or a UUID that belongs to a name, that another provider has and keeps."""
    wanted = {name for change in changes for name in (change.name, change.uuid_among(stored)) if name is not None}
    owners = read_identities(connection, wanted)
    mistakes = Mistakes()
    places: dict[str, str] = {}
    for change in changes:
        uuid = change.uuid_among(stored)
        if places.setdefault(uuid, change.place) != change.place:
            mistakes.add(change.place, f"is the provider {uuid}, as is {places[uuid]}")
        _number, owner, called = owners.get(change.name or uuid, (0, uuid, None))
        if owner != uuid and called == change.name and owner not in plan.by_uuid:
            mistakes.add(change.place_of("name"), f"{change.name} is already the name of the provider {owner}")
        if change.reference not in stored and change.name is None:
            mistakes.add(change.place_of("name"), f"there is no provider {uuid}, and a new one needs a name")
        if change.reference not in stored and change.uuid is None and uuid in owners:
            mistakes.add(change.place_of("uuid"), f"give one: the uuid derived from this name already belongs to {owners[uuid][2]}")
    mistakes.check()


@dataclass(frozen=True)
class _Guards:
    """What is guarded: providers, by their numbers, and the consumers that move, with theirs by UUID."""

    providers: Collection[int]
    moving: Sequence[Change]
    consumers: Mapping[str, int]
    now: int


def _guard(
    connection: sa.Connection,
    changes: Sequence[ProviderChange],
    stored: Mapping[str, StoredProvider],
    parents: Mapping[str, str | None],
    plan: Successions,
) -> _Guards:
    """Guard the providers that differ from what is declared, all below those that move, those that are replaced, and their successors."""
    known = _known(changes, stored)
    below = numbers_below(connection, moved_numbers(stored, parents) | _drained(changes, stored).keys())
    successors = {each.successor for each in plan.by_uuid.values()}
    differing = {
        provider.id: change.generation for change, provider in known if provider.uuid in successors or _differs(change, provider, parents)
    }
    dropped = {
        (provider.id, name)
        for change, provider in known
        if change.inventories is not None
        for name in provider.inventories.keys() - change.inventories.keys()
    }
    moving = read_consumers_of(connection, plan) if plan.by_uuid else []
    expected = {**dict.fromkeys(below), **differing, **plan.expected}
    consumers, now = _guard_without_expired(connection, expected, {number for number, _name in dropped}, dropped, moving)
    return _Guards(expected.keys(), moving, consumers, now)


def _guard_without_expired(
    connection: sa.Connection,
    expected: Mapping[int, int | None],
    numbers: Collection[int],
    keys: Collection[Key] | None = None,
    moving: Collection[Change] = (),
) -> tuple[Mapping[str, int], int]:
    """Guard providers and the consumers that move, and return the numbers of these, and the present second.

    Releases the consumers whose lease has ended that still have something of some providers, or of some of their inventories.
    """
    now = read_now(connection)
    expired = read_expired(connection, now, numbers)
    chosen = expired if keys is None else are_used_by(expired, keys)
    known = {change.wanted.uuid for change in moving}
    ended = [*(change for change in moving if not change.amounts), *(released(each) for each in chosen if each.consumer.uuid not in known)]
    guarded = sorted([*ended, *(change for change in moving if change.amounts)], key=lambda change: change.wanted.uuid)
    consumers = guard_consumers(connection, guarded, now)
    guard_providers(connection, {**{number: None for change in ended for number, _name in change.touched}, **expected})
    write_changes(connection, sorted(ended, key=lambda change: change.wanted.uuid), consumers, now)
    return consumers, now


def _refuse_overtaken(
    changes: Sequence[ProviderChange],
    stored: Mapping[str, StoredProvider],
    guarded: Mapping[str, StoredProvider],
    parents: Mapping[str, str | None],
    held: Collection[int],
    moved: Collection[int],
) -> None:
    """Raise LostRace where a provider was as declared when it was read, so that it is not guarded, and has changed since."""
    for change in changes:
        provider = guarded.get(change.reference)
        if provider is None:
            raise LostRace
        if change.reference not in stored:
            continue
        has_moved = parents.get(provider.uuid, provider.parent) != provider.parent and provider.id not in moved
        if has_moved or (provider.id not in held and _differs(change, provider, parents)):
            raise LostRace


def _differs(change: ProviderChange, provider: StoredProvider, parents: Mapping[str, str | None]) -> bool:
    inventory = {name: stock.inventory for name, stock in provider.inventories.items()}
    return (
        change.name not in (None, provider.name)
        or parents.get(provider.uuid, provider.parent) != provider.parent
        or change.inventories not in (None, inventory)
        or change.traits not in (None, provider.traits)
        or change.aggregates not in (None, provider.aggregates)
        or (change.drained is not None and change.drained.at(0) != provider.drained)
    )


def _insert_new(
    connection: sa.Connection, changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider], plan: Successions
) -> None:
    """Insert new providers; one that waits for the name of a replaced one gets a name that no provider can have, for as long."""
    new = {change.uuid_among(stored): change.name for change in changes if change.reference not in stored}
    new = {uuid: f"\n{uuid}" if name in plan.names else name for uuid, name in new.items()}
    run_batches(connection, sa.insert(providers), ({"uuid": uuid, "name": name, "generation": 0} for uuid, name in new.items()))
    begin_above_gone(connection, new)


def _renamed(changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider]) -> dict[int, str]:
    """Return the new names of the stored providers that lose theirs, by number."""
    return {provider.id: change.name for change, provider in _known(changes, stored) if change.name not in (None, provider.name)}


def _drained(changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider]) -> dict[int, Drain | None]:
    """Return what becomes of the stored providers that are drained, or not any more, by number."""
    asked = [(stored[change.reference], change.drained.at(0)) for change in changes if change.drained and change.reference in stored]
    return {provider.id: drain for provider, drain in asked if drain != provider.drained}


def _rename(connection: sa.Connection, changes: Sequence[ProviderChange], guarded: Mapping[str, StoredProvider]) -> None:
    run_batches(connection, _RENAME, ({"number": number, "new_name": name} for number, name in _renamed(changes, guarded).items()))


def _write_sets(connection: sa.Connection, changes: Sequence[ProviderChange], guarded: Mapping[str, StoredProvider]) -> None:
    """Write traits and aggregates where they are declared."""
    known = [(change, guarded[change.reference]) for change in changes]
    trait_sets = [(provider.id, provider.traits, change.traits) for change, provider in known if change.traits is not None]
    aggregate_sets = [(provider.id, provider.aggregates, change.aggregates) for change, provider in known if change.aggregates is not None]
    _write_members(connection, provider_traits, "trait", trait_sets)
    _write_members(connection, provider_aggregates, "aggregate", aggregate_sets)
    _write_sharing(connection, [(number, wanted) for number, present, wanted in trait_sets if SHARING_TRAIT in present ^ wanted])


def _write_sharing(connection: sa.Connection, changed: Sequence[tuple[int, frozenset[str]]]) -> None:
    """Say in all rows of the providers, by their numbers, whether they share from now on."""
    rows = [{"provider": number, "shares": int(SHARING_TRAIT in wanted)} for number, wanted in changed]
    for table in (inventories, provider_traits, provider_aggregates):
        written = sa.update(table).where(table.c.provider_id == sa.bindparam("provider")).values(sharing=sa.bindparam("shares"))
        run_batches(connection, written, rows)


def _write_members(
    connection: sa.Connection, table: sa.Table, column: str, sets: Sequence[tuple[int, frozenset[str], frozenset[str]]]
) -> None:
    """Write the difference between the members that each provider, by its number, has and those it shall have."""
    keys = (table.c.provider_id == sa.bindparam("provider"), table.c[column] == sa.bindparam("member"))
    gone = ({"provider": number, "member": name} for number, present, wanted in sets for name in sorted(present - wanted))
    new = ({"provider": number, "member": name} for number, present, wanted in sets for name in sorted(wanted - present))
    run_batches(connection, sa.delete(table).where(*keys), gone)
    provider: sa.BindParameter[int] = sa.bindparam("provider")
    made = sa.insert(table).values({"provider_id": provider, column: sa.bindparam("member"), **found_by(provider)})
    run_batches(connection, made, new)


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


def _children_first(leaving: Iterable[StoredProvider]) -> list[int]:
    """Return numbers in an order in which each row can be deleted: MariaDB checks foreign keys row by row."""
    by_uuid = {provider.uuid: provider for provider in leaving}

    def depth(provider: StoredProvider) -> int:
        steps, above = 0, provider.parent
        while above in by_uuid:
            steps, above = steps + 1, by_uuid[above].parent
        return steps

    return [provider.id for provider in sorted(by_uuid.values(), key=lambda provider: (-depth(provider), provider.id))]
