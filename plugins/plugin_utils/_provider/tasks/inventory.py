# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inventory plugin `ledger`: providers, or consumers, as hosts of Ansible with groups and variables.

Names in a ledger are given by whoever may write to it. So one is a host's name only if it is a plain host name that is not the
controller's and no group's, and stands for one thing; else the UUID takes its place. A name that is changed to make a group's name gets a
part of its hash, so that no two names make one group.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..._common.libraries import sa
from ..ledger.clock import read_now
from ..ledger.open import open_ledger
from ..ledger.plain import Plain, plain_allocations, plain_usages
from ..ledger.read import read_consumers
from ..ledger.rehearsal import rehearsed
from ..ledger.stored import Consumer
from ..ledger.worlds import read_world
from ..world.model import Provider, World
from ..world.times import shown_time

GROUPED = ("trait", "aggregate", "parent", "project")
_HOST_NAME = re.compile(r"(?=.*[a-zA-Z_])[a-zA-Z0-9_](?:[a-zA-Z0-9._-]{0,251}[a-zA-Z0-9_])?")
_RESERVED = frozenset({"all", "ungrouped", "localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"})
_PLAIN = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9-]{0,63}")
_NO_GROUP = re.compile(r"[^a-zA-Z0-9_]")
_HASHED = re.compile(r".*_[0-9a-f]{16}")
_OF_GROUPS = tuple(f"{kind}_" for kind in GROUPED)


@dataclass(frozen=True)
class Wanted:
    """What becomes a host: `hosts` is "providers" or "consumers", of consumers those of a project, a user and a type; None for any.

    With `roots` only roots are hosts. `grouped` are the kinds of groups. `reserved` are names of other groups, which no host may have.
    """

    hosts: str = "providers"
    roots: bool = False
    grouped: Sequence[str] = GROUPED
    project: str | None = None
    user: str | None = None
    consumer_type: str | None = None
    reserved: Collection[str] = ()

    @property
    def is_owned(self) -> bool:
        """Whether only what some consumers have is wanted."""
        return (self.project, self.user, self.consumer_type) != (None, None, None)

    def has(self, consumer: Consumer) -> bool:
        """Return whether a consumer is one of those that are wanted."""
        asked = (self.project, consumer.project), (self.user, consumer.user), (self.consumer_type, consumer.type)
        return all(wanted is None or wanted == own for wanted, own in asked)


def read_inventory(database: str | None, timeout: float, wanted: Wanted, rehearsal: Path | None = None) -> Plain:
    """Return {hosts: {name: variables}, groups: {name: [hosts]}, renamed: [names that are no host's]}. Raises InputError, Unavailable."""
    with open_ledger(rehearsed(database, rehearsal), dry_run=True, timeout=timeout) as ledger:
        return ledger.read(partial(_read, wanted=wanted))


def _read(connection: sa.Connection, wanted: Wanted) -> Plain:
    now = read_now(connection)
    return make_inventory(read_world(connection, now), read_consumers(connection, None, now), wanted)


def make_inventory(world: World, consumers: Mapping[str, Consumer], wanted: Wanted) -> Plain:
    """Return the same of a world and its consumers."""
    live = {uuid: consumer for uuid, consumer in consumers.items() if uuid in world.allocations and wanted.has(consumer)}
    make = _consumers_as_hosts if wanted.hosts == "consumers" else _providers_as_hosts
    entries = make(world, live, wanted)
    names = host_names({uuid: str(variables["ledger_name"]) for uuid, variables, _groups in entries}, wanted.reserved)
    groups: dict[str, list[str]] = defaultdict(list)
    for uuid, _variables, of in entries:
        for kind, name in sorted(set(of)):
            if kind in wanted.grouped:
                groups[group_name(kind, name)].append(names[uuid])
    return {
        "hosts": {names[uuid]: variables for uuid, variables, _groups in entries},
        "groups": {name: groups[name] for name in sorted(groups)},
        "renamed": sorted(str(variables["ledger_name"]) for uuid, variables, _groups in entries if names[uuid] != variables["ledger_name"]),
    }


def host_names(called: Mapping[str, str], reserved: Collection[str] = ()) -> dict[str, str]:
    """Return the name of a host for each UUID: what it is called where that is safe and unique, else the UUID.

    A host that is called like a group would be in every play for the group. What is no UUID was written into the database by hand, and is
    not a name of files either: its hash stands for it.
    """
    safe = {
        uuid: uuid if _PLAIN.fullmatch(str(uuid)) else hashlib.sha256(str(uuid).encode("utf-8", "replace")).hexdigest() for uuid in called
    }
    counted = Counter(name.lower() for name in called.values())
    owners = {name.lower(): uuid for uuid, name in safe.items()}
    kept = _RESERVED.union(name.lower() for name in reserved)

    def is_safe(uuid: str, name: str) -> bool:
        lower = name.lower()
        is_group = lower in kept or lower.startswith(_OF_GROUPS)
        return bool(_HOST_NAME.fullmatch(name)) and not is_group and counted[lower] == 1 and owners.get(lower, uuid) == uuid

    return {uuid: name if is_safe(uuid, name) else safe[uuid] for uuid, name in called.items()}


def group_name(kind: str, name: str) -> str:
    """Return the name of the group of what has something in common: letters, digits and _, a different one for each name.

    A name that looks like one that was changed is changed, too.
    """
    safe = _NO_GROUP.sub("_", name)
    changed = safe != name or _HASHED.fullmatch(name)
    return f"{kind}_{safe}_{hashlib.sha256(name.encode()).hexdigest()[:16]}" if changed else f"{kind}_{safe}"


_Entry = tuple[str, Plain, list[tuple[str, str]]]
"""A host: its UUID, its variables, and (kind, name) of its groups."""


def _providers_as_hosts(world: World, consumers: Mapping[str, Consumer], wanted: Wanted) -> list[_Entry]:
    by_uuid = {provider.uuid: provider for provider in world.providers}
    roots, usages, drains = world.roots(), plain_usages(world.providers, world.usages()), world.drains()
    held: dict[str, list[str]] = defaultdict(list)
    for consumer in sorted(consumers):
        for uuid in {above for provider in world.allocations[consumer] for above in _with_ancestors(by_uuid, provider)}:
            held[uuid].append(consumer)
    found: list[_Entry] = []
    for provider in sorted(world.providers, key=lambda provider: provider.name):
        if (wanted.roots and provider.parent is not None) or (wanted.is_owned and provider.uuid not in held):
            continue
        aggregates = sorted(world.aggregate_names.get(aggregate, aggregate) for aggregate in provider.aggregates)
        parent = None if provider.parent is None else by_uuid[provider.parent].name
        variables = {
            "ledger_kind": "provider",
            "ledger_uuid": provider.uuid,
            "ledger_name": provider.name,
            "ledger_parent": parent,
            "ledger_root": by_uuid[roots[provider.uuid]].name,
            "ledger_generation": provider.generation,
            "ledger_traits": sorted(provider.traits),
            "ledger_aggregates": aggregates,
            "ledger_drained": drains.get(provider.uuid) or None,
            "ledger_inventories": usages[provider.uuid],
            "ledger_consumers": [_shown(consumers[uuid]) for uuid in held[provider.uuid]],
        }
        projects = {consumers[uuid].project for uuid in held[provider.uuid]}
        groups = [*(("trait", name) for name in provider.traits), *(("aggregate", name) for name in aggregates)]
        groups += [("project", name) for name in projects if name is not None]
        groups += [("parent", by_uuid[above].name) for above in _with_ancestors(by_uuid, provider.uuid) if above != provider.uuid]
        found.append((provider.uuid, variables, groups))
    return found


def _consumers_as_hosts(world: World, consumers: Mapping[str, Consumer], _wanted: Wanted) -> list[_Entry]:
    by_uuid = {provider.uuid: provider for provider in world.providers}
    found: list[_Entry] = []
    for uuid, consumer in sorted(consumers.items(), key=lambda entry: (entry[1].label, entry[0])):
        held = world.allocations[uuid]
        providers = sorted(
            {above for provider in held for above in _with_ancestors(by_uuid, provider)}, key=lambda each: by_uuid[each].name
        )
        roots = [each for each in providers if by_uuid[each].parent is None]
        variables = {f"ledger_{key}": value for key, value in _shown(consumer).items()}
        variables |= {
            "ledger_kind": "consumer",
            "ledger_generation": consumer.generation,
            "ledger_claimed_at": shown_time(consumer.claimed_at),
            "ledger_roots": [by_uuid[each].name for each in roots],
            "ledger_allocations": plain_allocations({by_uuid[each].name: amounts for each, amounts in held.items()}),
        }
        groups = [] if consumer.project is None else [("project", consumer.project)]
        groups += [("parent", by_uuid[each].name) for each in providers]
        groups += [("trait", name) for each in providers for name in by_uuid[each].traits]
        groups += [("aggregate", world.aggregate_names.get(name, name)) for each in providers for name in by_uuid[each].aggregates]
        found.append((uuid, variables, groups))
    return found


def _with_ancestors(by_uuid: Mapping[str, Provider], uuid: str) -> Iterable[str]:
    here: str | None = uuid
    while here is not None:
        yield here
        here = by_uuid[here].parent


def _shown(consumer: Consumer) -> Plain:
    owner = {"project": consumer.project, "user": consumer.user, "type": consumer.type, "expires_at": shown_time(consumer.expires_at)}
    return {"uuid": consumer.uuid, "name": consumer.label, **owner}
