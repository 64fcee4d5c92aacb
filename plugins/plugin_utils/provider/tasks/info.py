# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task `provider_info`: from its arguments to its result."""

from __future__ import annotations

import typing as t
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from ...common.errors import InputError, Mistake, suggest
from ...common.libraries import sa
from ...common.table import table
from ..ledger.audit import audit
from ..ledger.deadline import DEFAULT_TIMEOUT
from ..ledger.open import Ledger, open_ledger
from ..ledger.plain import Plain, plain_allocations, plain_consumer, plain_provider, plain_totals, plain_usages
from ..ledger.read import Consumer, read_consumers, read_some_names, read_trees, read_world
from ..world.model import Allocations, Provider, World
from ..world.names import canonical_uuid
from ..world.parse import find_reference
from .provider import task_ledger

_HEAD = ("provider", "class", "used", "capacity", "free", "consumers")


def summary(
    providers: Sequence[Provider],
    usages: Mapping[str, Mapping[str, Mapping[str, int]]],
    allocations: Mapping[str, Mapping[str, Mapping[str, int]]],
) -> str:
    """Return one line for each inventory, below its provider's name; providers come before those below them."""
    depths: dict[str | None, int] = {None: -1}
    rows: list[Sequence[str]] = []
    for provider in providers:
        depths[provider.uuid] = depths[provider.parent] + 1
        label = "  " * depths[provider.uuid] + provider.name
        for name, amounts in usages[provider.uuid].items():
            users = sum(1 for held in allocations.get(provider.uuid, {}).values() if name in held)
            rows.append((label, name, *(str(amounts[key]) for key in ("used", "capacity", "free")), str(users)))
            label = ""
        if label:
            rows.append((label, "", "", "", "", ""))
    return table(_HEAD, rows, right=_HEAD[2:])


def run_provider_info(arguments: Mapping[str, t.Any]) -> Plain:
    """Return the providers, usages and allocations that the filters leave. Raises InputError and Unavailable."""
    wanted = arguments["providers"]
    with task_ledger(arguments, dry_run=True) as ledger:
        world, consumers = ledger.read(lambda connection: _read(connection, wanted))
        findings = [asdict(finding) for finding in ledger.read(audit)] if arguments["audit"] else None
        warnings = [] if wanted is None else _unknown(ledger, wanted, world)
    providers = _tree_after_tree(world.providers)
    allocations = _wanted_allocations(world, consumers, arguments)
    result = describe_providers(providers, world, allocations, consumers)
    result["summary"] = summary(providers, result["usages"], result["allocations_by_provider"])
    result["warnings"] = warnings
    return result if findings is None else {**result, "audit": findings}


def _read(connection: sa.Connection, wanted: Sequence[str] | None) -> tuple[World, dict[str, Consumer]]:
    if wanted is None:
        return read_world(connection), read_consumers(connection)
    world = read_trees(connection, wanted)
    return world, read_consumers(connection, world.allocations)


def _unknown(ledger: Ledger, references: Sequence[str], world: World) -> list[str]:
    """Return a sentence for each reference that means no provider."""
    by_reference = _by_reference(world.providers)
    missing = [reference for reference in references if find_reference(reference, by_reference) is None]
    known = ledger.read(read_some_names) if missing else []
    return [f"there is no provider {reference!r}{suggest(str(reference), known)}" for reference in missing]


def describe_providers(
    providers: Sequence[Provider], world: World, allocations: Mapping[str, Allocations], consumers: Mapping[str, Consumer]
) -> Plain:
    """Return providers with all that is used of them, by provider, by consumer and by project."""
    usages = plain_usages(providers, world.usages())
    return {
        "providers": [plain_provider(provider) for provider in providers],
        "trees": _trees(providers),
        "usages": usages,
        "totals": plain_totals(usages),
        "allocations": {consumer: plain_allocations(allocations[consumer]) for consumer in sorted(allocations)},
        "allocations_by_provider": _by_provider(allocations),
        "consumers": {consumer: plain_consumer(consumers[consumer]) for consumer in sorted(allocations)},
        "projects": _by_project(allocations, consumers),
        "custom_traits": sorted(world.custom_traits),
        "custom_classes": sorted(world.custom_classes),
    }


def _tree_after_tree(providers: Sequence[Provider]) -> list[Provider]:
    """Return the providers tree after tree by name, each before those below it."""
    children: dict[str | None, list[Provider]] = defaultdict(list)
    for provider in sorted(providers, key=lambda provider: provider.name, reverse=True):
        children[provider.parent].append(provider)
    found: list[Provider] = []
    waiting = list(children[None])
    while waiting:
        here = waiting.pop()
        found.append(here)
        waiting.extend(children[here.uuid])
    return found


def _wanted_allocations(world: World, consumers: Mapping[str, Consumer], arguments: Mapping[str, t.Any]) -> dict[str, Allocations]:
    wanted = None if arguments["consumers"] is None else set(map(canonical_uuid, arguments["consumers"]))
    projects = None if arguments["projects"] is None else set(arguments["projects"])
    return {
        consumer: parts
        for consumer, parts in world.allocations.items()
        if parts and (wanted is None or consumer in wanted) and (projects is None or consumers[consumer].project in projects)
    }


def _trees(providers: Sequence[Provider]) -> list[Plain]:
    nodes: dict[str, Plain] = {provider.uuid: {"uuid": provider.uuid, "name": provider.name, "children": []} for provider in providers}
    for provider in providers:
        if provider.parent is not None:
            nodes[provider.parent]["children"].append(nodes[provider.uuid])
    return [nodes[provider.uuid] for provider in providers if provider.parent is None]


def _by_provider(allocations: Mapping[str, Allocations]) -> dict[str, dict[str, dict[str, int]]]:
    found: dict[str, dict[str, dict[str, int]]] = defaultdict(dict)
    for consumer in sorted(allocations):
        for provider, amounts in plain_allocations(allocations[consumer]).items():
            found[provider][consumer] = amounts
    return dict(found)


def _by_project(allocations: Mapping[str, Allocations], consumers: Mapping[str, Consumer]) -> dict[str, dict[str, int]]:
    """Return {project: {class: amount}}; consumers of no project are counted under an empty name."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for consumer, parts in allocations.items():
        for amounts in parts.values():
            for name, amount in amounts.items():
                found[consumers[consumer].project or ""][name] += amount
    return {project: dict(sorted(found[project].items())) for project in sorted(found)}


Usages = Mapping[str, Mapping[str, int]]


def look_up_usages(references: Sequence[str], database: str | None, timeout: float = DEFAULT_TIMEOUT) -> list[Usages]:
    """Return {class: {capacity, used, free}} of each provider; without references, that of all providers together.

    Raises InputError for unknown providers, Unavailable.
    """
    world = _load(references, database, timeout)
    usages = plain_usages(world.providers, world.usages())
    if not references:
        return [plain_totals(usages)]
    return [usages[provider.uuid] for provider in _find_all(references, world)]


def look_up_tree_usages(references: Sequence[str], database: str | None, timeout: float = DEFAULT_TIMEOUT) -> list[Usages]:
    """Return the same as look_up_usages, but that of each provider together with all below it."""
    world = _load(references, database, timeout)
    usages = plain_usages(world.providers, world.usages())
    if not references:
        return [plain_totals(usages)]
    children: dict[str | None, list[str]] = defaultdict(list)
    for provider in world.providers:
        children[provider.parent].append(provider.uuid)
    return [plain_totals({uuid: usages[uuid] for uuid in _subtree(provider.uuid, children)}) for provider in _find_all(references, world)]


def _load(references: Sequence[str], database: str | None, timeout: float) -> World:
    """Return the trees of the providers, or everything without any. Raises InputError for unknown ones."""
    with open_ledger(database, dry_run=True, timeout=timeout) as ledger:
        if not references:
            return ledger.read(read_world)
        world = ledger.read(lambda connection: read_trees(connection, list(map(str, references))))
        unknown = _unknown(ledger, references, world)
    if unknown:
        raise InputError(Mistake("usages", says) for says in unknown)
    return world


def _find_all(references: Sequence[str], world: World) -> list[Provider]:
    by_reference = _by_reference(world.providers)
    return [provider for reference in references if (provider := find_reference(reference, by_reference)) is not None]


def _by_reference(providers: Sequence[Provider]) -> dict[str, Provider]:
    return {**{provider.name: provider for provider in providers}, **{provider.uuid: provider for provider in providers}}


def _subtree(root: str, children: Mapping[str | None, Sequence[str]]) -> list[str]:
    found = [root]
    for uuid in found:
        found.extend(children.get(uuid, ()))
    return found
