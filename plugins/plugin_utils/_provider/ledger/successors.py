# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Replace providers: a successor takes over the place and the consumers of a provider, which then goes.

What a new successor does not declare, it takes from the provider that it replaces, except for a drain. Providers below that one go below
the successor. Those that the same call declares below the successor replace those of the same name below the replaced one; names that begin
with that of the root are compared without it: `h2_numa0` below `h2` replaces `h1_numa0` below `h1`.

All of this is found while the topology is guarded, so that no provider moves, goes or gets another name meanwhile.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....module_utils._data.errors import Mistakes, suggest
from ....module_utils._data.words import listed
from ..._common.libraries import sa
from ..world.model import Inventory
from .changes import ROOT, Moved, ProviderChange
from .claim_plan import Change, Key, released
from .claims import why_no_piece, write_changes
from .inventories import MOST_SHOWN, StillInUse
from .read import read_children, read_guarded, read_holdings, read_parent, read_providers, read_some_names, read_users, read_uuids
from .retry import LostRace
from .stored import ConsumerState, StoredProvider, amounts_by_provider
from .topology import numbers_below


@dataclass(frozen=True)
class Succession:
    """A provider that goes, the UUID of its successor, and the generation at which the caller saw it, if it said so."""

    old: StoredProvider
    successor: str
    generation: int | None = None


@dataclass(frozen=True)
class Successions:
    """All providers that one call replaces, by UUID, and its changes, completed with what else moves."""

    changes: Sequence[ProviderChange]
    by_uuid: Mapping[str, Succession] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    @property
    def expected(self) -> dict[int, int | None]:
        """The replaced providers by their numbers, as guards take them."""
        return {each.old.id: each.generation for each in self.by_uuid.values()}

    @property
    def names(self) -> frozenset[str]:
        """The names that the replaced providers give up."""
        return frozenset(each.old.name for each in self.by_uuid.values())

    def successor_of(self, uuid: str | None) -> str | None:
        """Return what takes the place of a provider: its successor, or itself."""
        return uuid if uuid is None or uuid not in self.by_uuid else self.by_uuid[uuid].successor


@dataclass(frozen=True)
class _Entry:
    """A change, its provider's UUID and name, whether that is there already, and which provider it replaces."""

    change: ProviderChange
    uuid: str
    name: str
    is_stored: bool
    old: StoredProvider | None

    @property
    def place(self) -> str:
        return self.change.place_of("replaces")


def find_successions(connection: sa.Connection, changes: Sequence[ProviderChange], stored: Mapping[str, StoredProvider]) -> Successions:
    """Return which providers go. One that has the UUID of its successor is the successor, and stays.

    Raises InputError for a provider that is replaced twice, or declared beside its successor, or is above it.
    """
    found = read_providers(connection, [change.replaces for change in changes if change.replaces is not None])
    entries = [_entry(change, stored, found) for change in changes]
    entries = _with_those_below(connection, entries)
    _refuse_confused(connection, entries)
    by_uuid = {
        entry.old.uuid: Succession(entry.old, entry.uuid, None if entry.is_stored else entry.change.generation)
        for entry in entries
        if entry.old is not None
    }
    unknown = [entry for entry in entries if entry.change.replaces and entry.change.replaces not in found and not entry.is_stored]
    known = read_some_names(connection) if unknown else []
    warnings = [f"{each.place}: there is no provider {each.change.replaces}{_did_you_mean(each, known)}" for each in unknown]
    return _with_children(connection, entries, Successions([], by_uuid, warnings))


def _did_you_mean(entry: _Entry, known: Sequence[str]) -> str:
    return f"{suggest(entry.change.replaces or '', known)}, so {entry.name} replaces nothing"


def _entry(change: ProviderChange, stored: Mapping[str, StoredProvider], found: Mapping[str, StoredProvider]) -> _Entry:
    uuid, present = change.uuid_among(stored), stored.get(change.reference)
    old = found.get(change.replaces) if change.replaces is not None else None
    if old is not None and old.uuid == uuid:
        # Also one that gets back the name which its UUID follows from.
        change, present, old = replace(change, uuid=uuid), old, None
    name = change.name or (present.name if present else uuid)
    return _Entry(change, uuid, name, present is not None, old)


def _with_those_below(connection: sa.Connection, entries: Sequence[_Entry]) -> list[_Entry]:
    """Return the entries with what those below a successor replace."""
    declared = {reference: entry for entry in entries for reference in (entry.name, entry.uuid)}
    below: dict[str, dict[str, StoredProvider]] = {}
    for entry in entries:
        if entry.old is not None:
            found = read_providers(connection, read_uuids(connection, numbers_below(connection, {entry.old.id})))
            below[entry.uuid] = {_without(each.name, entry.old.name): each for each in found.values()}
    taken = {entry.uuid for entry in entries} | {entry.old.uuid for entry in entries if entry.old is not None}
    completed = []
    for entry in entries:
        root = _nearest(entry, declared, below) if entry.old is None and entry.change.replaces is None else None
        old = below[root.uuid].get(_without(entry.name, root.name)) if root is not None else None
        if old is None or old.uuid in taken:
            completed.append(entry)
        else:
            taken.add(old.uuid)
            completed.append(replace(entry, old=old))
    return completed


def _nearest(entry: _Entry, declared: Mapping[str, _Entry], among: Mapping[str, object]) -> _Entry | None:
    """Return the nearest of some entries that another one is declared to be below."""
    seen = {entry.uuid}
    above = declared.get(entry.change.parent or ROOT)
    while above is not None and above.uuid not in seen:
        if above.uuid in among:
            return above
        seen.add(above.uuid)
        above = declared.get(above.change.parent or ROOT)
    return None


def _without(name: str, root: str) -> str:
    return name[len(root) :] if name.startswith(root) else name


def _refuse_confused(connection: sa.Connection, entries: Sequence[_Entry]) -> None:
    mistakes = Mistakes()
    declared = {entry.uuid: entry for entry in entries}
    replaced: dict[str, _Entry] = {}
    for entry in entries:
        if entry.old is None:
            continue
        first = replaced.setdefault(entry.old.uuid, entry)
        if first is not entry:
            mistakes.add(entry.place, f"{entry.old.name} is replaced by {first.change.place} already; leave one of the two out")
        if entry.old.uuid in declared:
            mistakes.add(entry.place, f"{entry.old.name} goes, but is declared in {declared[entry.old.uuid].change.place}; leave that out")
        if entry.is_stored and entry.old.uuid in _ancestors(connection, entry.uuid):
            mistakes.add(entry.place, f"{entry.old.name} is above {entry.name}; put {entry.name} elsewhere first")
    mistakes.check()


def _ancestors(connection: sa.Connection, uuid: str) -> list[str]:
    found: list[str] = []
    above = read_parent(connection, uuid)
    while above is not None and above not in found:
        found.append(above)
        above = read_parent(connection, above)
    return found


def _with_children(connection: sa.Connection, entries: Sequence[_Entry], plan: Successions) -> Successions:
    """Return the plan with completed changes, and with what is below replaced providers put below their successors."""
    successors = {succession.old.id: succession.successor for succession in plan.by_uuid.values()}
    declared = {entry.uuid: entry for entry in entries}
    parents = read_children(connection, successors)
    below = read_providers(connection, read_uuids(connection, numbers_below(connection, successors)))
    above = {provider.uuid: successors[parents[provider.id]] for provider in below.values() if provider.id in parents}
    changes = []
    for entry in entries:
        change = entry.change
        if entry.old is not None and not entry.is_stored:
            change = _completed(change, entry.old, plan)
        changes.append(replace(change, parent=above[entry.uuid]) if change.parent is None and entry.uuid in above else change)
    kept = [provider for provider in below.values() if provider.uuid not in declared and provider.uuid not in plan.by_uuid]
    kept.sort(key=lambda provider: provider.id)
    changes += [
        ProviderChange(place=declared[above[each.uuid]].change.place, uuid=each.uuid, parent=above[each.uuid])
        for each in kept
        if each.uuid in above
    ]
    warnings = list(plan.warnings)
    references = {reference for entry in entries if entry.uuid in successors.values() for reference in (entry.name, entry.uuid)}
    if kept and any(entry.change.parent in references for entry in entries):
        # Of a tree that is declared, what is missing may be what the new server does not have.
        names = listed([each.name for each in kept], MOST_SHOWN)
        warnings.append(f"not declared, so kept below the successor: {names}; remove what the new server lacks")
    return replace(plan, changes=changes, warnings=warnings)


def _completed(change: ProviderChange, old: StoredProvider, plan: Successions) -> ProviderChange:
    """Return the change of a new successor, which has what the replaced provider has, where nothing is declared."""
    change = change.from_now_on(old)
    return replace(
        change,
        parent=plan.successor_of(old.parent) or ROOT if change.parent is None else change.parent,
        inventories=_present(old) if change.inventories is None else change.inventories,
        traits=old.traits if change.traits is None else change.traits,
        aggregates=old.aggregates if change.aggregates is None else change.aggregates,
    )


def _present(provider: StoredProvider) -> dict[str, Inventory]:
    return {name: stock.inventory for name, stock in provider.inventories.items()}


def read_consumers_of(connection: sa.Connection, plan: Successions) -> list[Change]:
    """Return the consumers that have something of the replaced providers, as changes to be guarded; those that have expired go."""
    uuids = _users(connection, plan)
    holdings = read_holdings(connection, uuids)
    if holdings.keys() != uuids:
        raise LostRace
    return [released(each) if each.is_expired else Change(each, each.consumer, each.amounts) for each in holdings.values()]


def _users(connection: sa.Connection, plan: Successions) -> set[str]:
    return {uuid for users in read_users(connection, plan.expected).values() for uuid, _label in users}


def move_consumers(
    connection: sa.Connection,
    plan: Successions,
    guarded: Sequence[Change],
    consumers: Mapping[str, int],
    successors: Mapping[str, StoredProvider],
    now: int,
) -> Moved:
    """Give guarded consumers of successors, by UUID, what they have of the replaced providers.

    `consumers` are their numbers. Raises StillInUse for what successors cannot give, LostRace where others have claimed or changed a
    provider before it was guarded.
    """
    moving = [change for change in guarded if change.amounts]
    if _users(connection, plan) != {change.wanted.uuid for change in moving} or _have_changed(connection, plan):
        raise LostRace
    numbers = {each.old.id: successors[each.successor].id for each in plan.by_uuid.values()}
    changes = [replace(change, amounts=_renumbered(change.had, numbers)) for change in moving]
    _refuse_lack(connection, changes, {provider.id: provider for provider in successors.values()})
    write_changes(connection, changes, consumers, now)
    return _moved(changes, successors)


def _have_changed(connection: sa.Connection, plan: Successions) -> bool:
    """Whether replaced providers had already become something else when they were guarded."""
    present = read_providers(connection, plan.by_uuid)
    parts = [[(_present(each), each.traits, each.aggregates) for each in (present[uuid], plan.by_uuid[uuid].old)] for uuid in plan.by_uuid]
    return any(now != then for now, then in parts)


def _renumbered(amounts: Mapping[Key, int], numbers: Mapping[int, int]) -> dict[Key, int]:
    found: Counter[Key] = Counter()
    for (number, name), amount in amounts.items():
        found[numbers.get(number, number), name] += amount
    return dict(found)


def _refuse_lack(connection: sa.Connection, changes: Sequence[Change], successors: Mapping[int, StoredProvider]) -> None:
    stocks = read_guarded(connection, successors).stocks
    more: Counter[Key] = Counter()
    askers: dict[Key, list[str]] = defaultdict(list)
    lacking: dict[Key, str] = {}
    for change in changes:
        for key in sorted(change.touched & change.amounts.keys()):
            more[key] += change.amounts[key] - change.had.get(key, 0)
            askers[key].append(change.wanted.label)
            if says := why_no_piece(change.amounts[key], stocks.get(key)):
                lacking.setdefault(key, f"{change.wanted.label}: {says}")
    for key, amount in more.items():
        if key in stocks and stocks[key].used + amount > stocks[key].inventory.capacity:
            lacking[key] = f"{stocks[key].used + amount} claimed, but the capacity is {stocks[key].inventory.capacity}"
    if not lacking:
        return
    used: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for number, name in sorted(lacking):
        used[successors[number].name][name] = sorted(askers[number, name])
    lines = [
        f"{name} of {successors[number].name}, of which {listed(sorted(askers[number, name]), MOST_SHOWN)} would have part ({says})"
        for (number, name), says in sorted(lacking.items())
    ]
    raise StillInUse(f"the successor is too small: {'; '.join(lines)}", {"used_by": dict(used)})


def _moved(changes: Sequence[Change], successors: Mapping[str, StoredProvider]) -> Moved:
    uuids = {provider.id: uuid for uuid, provider in successors.items()}
    names: dict[str, str] = {}
    before, after = {}, {}
    for change in changes:
        if change.held is not None:
            uuids.update(change.held.uuids)
            names.update({uuid: change.held.names[number] for number, uuid in change.held.uuids.items()})
            before[change.wanted.uuid] = ConsumerState(change.held.consumer, amounts_by_provider(change.had, uuids))
            present = replace(change.wanted, generation=change.wanted.generation + 1)
            after[change.wanted.uuid] = ConsumerState(present, amounts_by_provider(change.amounts, uuids))
    return Moved(before, after, names, {**names, **{uuid: provider.name for uuid, provider in successors.items()}})
