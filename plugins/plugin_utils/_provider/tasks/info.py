# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task `provider_info`: from its arguments to its result."""

from __future__ import annotations

import typing as t
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from ....module_utils._data.errors import InputError, Mistake, suggest
from ....module_utils._data.words import listed
from ..._common.libraries import sa
from ..._common.table import table
from ..feasible.matching import read_matching
from ..ledger.audit import audit
from ..ledger.clock import read_now
from ..ledger.deadline import DEFAULT_TIMEOUT
from ..ledger.inventories import MOST_SHOWN
from ..ledger.open import Ledger, open_ledger
from ..ledger.plain import Plain, plain_allocations, plain_consumer, plain_provider, plain_totals, plain_usages
from ..ledger.quotas import read_limits, read_used
from ..ledger.read import read_consumers, read_numbers, read_some_names, read_uuids
from ..ledger.rehearsal import rehearsed
from ..ledger.stored import Consumer
from ..ledger.usages import Usages, read_total_usages, read_usages
from ..ledger.worlds import read_known_names, read_tree_numbers, read_trees, read_trees_of, read_world
from ..request.groups import parse_group
from ..world.model import Allocations, Provider, World
from ..world.names import canonical_reference
from ..world.parse import find_reference
from ..world.times import shown_time
from .candidates import refuse_unknown_trees_in_database
from .provider import task_ledger

_OWNERS = {"projects": "project", "users": "user", "consumer_types": "type"}
"""Options that choose consumers, and what of a consumer they name; an empty name stands for none."""

_HEAD = ("provider", "class", "used", "capacity", "free", "used by")


def summary(
    providers: Sequence[Provider],
    usages: Mapping[str, Mapping[str, Mapping[str, int]]],
    allocations: Mapping[str, Mapping[str, Mapping[str, int]]],
    labels: Mapping[str, str],
) -> str:
    """Return one line for each inventory, below its provider's name; providers come before those below them.

    `labels` are what consumers are called, by UUID.
    """
    depths: dict[str | None, int] = {None: -1}
    rows: list[Sequence[str]] = []
    for provider in providers:
        depths[provider.uuid] = depths[provider.parent] + 1
        label = "  " * depths[provider.uuid] + provider.name
        for name, amounts in usages[provider.uuid].items():
            users = [labels[uuid] for uuid, held in allocations.get(provider.uuid, {}).items() if name in held]
            rows.append((label, name, *(str(amounts[key]) for key in ("used", "capacity", "free")), listed(sorted(users), MOST_SHOWN)))
            label = ""
        if label:
            rows.append((label, "", "", "", "", ""))
    return table(_HEAD, rows, right=_HEAD[2:5])


def run_provider_info(arguments: Mapping[str, t.Any], *, rehearsal: Path | None = None) -> Plain:
    """Return the providers, usages and allocations that the filters leave. Raises InputError and Unavailable."""
    wanted = arguments["providers"]
    matching = arguments["matching"]
    if arguments["world"] is None:
        arguments = {**arguments, "database": rehearsed(arguments["database"], rehearsal)}
    # All within: it knows why what it holds cannot be computed with.
    with task_ledger(arguments, dry_run=True) as ledger:
        world, consumers, chosen = ledger.read(lambda connection: _read(connection, wanted, matching))
        findings = [asdict(finding) for finding in ledger.read(audit)] if arguments["audit"] else None
        warnings = [*_unknown(ledger, wanted or (), world, matching), *_unknown_consumers(arguments["consumers"] or (), world, consumers)]
        providers = _tree_after_tree(world.providers)
        if chosen is not None:
            providers = [provider for provider in providers if provider.uuid in chosen]
            # A world with what is allotted of some providers alone.
            held = {
                consumer: {provider: amounts for provider, amounts in parts.items() if provider in chosen}
                for consumer, parts in world.allocations.items()
            }
            world = replace(world, allocations=held)
        allocations = _wanted_allocations(world, consumers, arguments)
        result = describe_providers(providers, world, allocations, consumers)
        labels = {uuid: consumers[uuid].label for uuid in allocations}
        result["summary"] = summary(_placed(providers, world), result["usages"], result["allocations_by_provider"], labels)
        result["warnings"] = warnings
        result["quotas"] = ledger.read(partial(_quotas, projects=arguments["projects"]))
        result["read_at"] = shown_time(ledger.read(read_now))
        return result if findings is None else {**result, "audit": findings}


def _read(connection: sa.Connection, wanted: Sequence[str] | None, matching: t.Any) -> tuple[World, dict[str, Consumer], set[str] | None]:
    """Return the world of what is asked for, its consumers, and the UUIDs of the providers to show; None for all of that world."""
    now = read_now(connection)
    if matching is None and wanted is None:
        return read_world(connection, now), read_consumers(connection, now=now), None
    if matching is None:
        world = read_trees(connection, wanted or (), now)
        return world, read_consumers(connection, world.allocations, now), None
    group = parse_group(matching, "matching", read_known_names(connection))
    refuse_unknown_trees_in_database(connection, [("matching", group)])
    numbers = read_matching(connection, group, now)
    if wanted is not None:
        numbers &= read_tree_numbers(connection, {number for number, _uuid in read_numbers(connection, wanted).values()})
    world = read_trees_of(connection, numbers, now)
    return world, read_consumers(connection, world.allocations, now), read_uuids(connection, numbers)


def _quotas(connection: sa.Connection, projects: Sequence[str] | None) -> Plain:
    """Return {project: {class: {limit, used}}} of the projects that have a quota, or of those that are asked for."""
    now, limits = read_now(connection), read_limits(connection)
    found: Plain = {}
    for project in sorted(limits):
        if projects is None or project in projects:
            used = read_used(connection, project, now)
            found[project] = {name: {"limit": most, "used": used[name]} for name, most in sorted(limits[project].items())}
    return found


def _placed(providers: Sequence[Provider], world: World) -> list[Provider]:
    """Return the providers, each below the nearest of those above it that is among them."""
    parents = {provider.uuid: provider.parent for provider in world.providers}
    shown = {provider.uuid for provider in providers}
    placed = []
    for provider in providers:
        above = provider.parent
        while above is not None and above not in shown:
            above = parents[above]
        placed.append(replace(provider, parent=above))
    return placed


def _unknown(ledger: Ledger, references: Sequence[str], world: World, matching: t.Any = None) -> list[str]:
    """Return a sentence for each reference that means no provider."""
    missing = _missing(references, world)
    if matching is not None and missing:
        # Its tree may be left out because nothing in it matches.
        missing = sorted(set(missing) - ledger.read(partial(read_numbers, references=missing)).keys())
    return _without_provider(ledger, missing)


def _missing(references: Sequence[str], world: World) -> list[str]:
    """Return the references that mean no provider of a world."""
    by_reference = _by_reference(world.providers)
    return [reference for reference in references if find_reference(reference, by_reference) is None]


def _without_provider(ledger: Ledger, missing: Sequence[str]) -> list[str]:
    """Return a sentence for each reference that no provider has."""
    known = ledger.read(read_some_names) if missing else []
    return [f"there is no provider {reference!r}{suggest(str(reference), known)}" for reference in missing]


def _unknown_consumers(references: Sequence[str], world: World, consumers: Mapping[str, Consumer]) -> list[str]:
    """Return a sentence for each reference that means no consumer in the world."""
    present = {reference for uuid in world.allocations for reference in _references(consumers[uuid])}
    missing = [reference for reference in references if canonical_reference(reference) not in present]
    known = [consumer.label for consumer in consumers.values()] if missing else []
    return [f"there is no consumer {reference!r} here{suggest(reference, known)}" for reference in missing]


def _references(consumer: Consumer) -> set[str]:
    """Return what means a consumer: its UUID and its name."""
    return {consumer.uuid, consumer.label}


def describe_providers(
    providers: Sequence[Provider], world: World, allocations: Mapping[str, Allocations], consumers: Mapping[str, Consumer]
) -> Plain:
    """Return providers with all that is used of them, by provider, by consumer and by project."""
    usages = plain_usages(providers, world.usages())
    return {
        "providers": [plain_provider(provider, world.aggregate_names) for provider in providers],
        "trees": _trees(_placed(providers, world)),
        "usages": usages,
        "totals": plain_totals(usages),
        "allocations": {consumer: plain_allocations(allocations[consumer]) for consumer in sorted(allocations)},
        "allocations_by_provider": _by_provider(allocations),
        "consumers": {consumer: plain_consumer(consumers[consumer]) for consumer in sorted(allocations)},
        "claims": [_claim(consumers[consumer], allocations[consumer]) for consumer in sorted(allocations)],
        "projects": _by_owner(allocations, {uuid: consumers[uuid].project for uuid in allocations}),
        "users": _by_owner(allocations, {uuid: consumers[uuid].user for uuid in allocations}),
        "consumer_types": _by_type(allocations, consumers),
        "custom_traits": sorted(world.custom_traits),
        "custom_classes": sorted(world.custom_classes),
        "aggregates": {uuid: world.aggregate_names.get(uuid, uuid) for uuid in sorted(_aggregates_of(providers))},
    }


def _claim(consumer: Consumer, held: Allocations) -> Plain:
    """Return what a consumer has as provider_allocation claims it."""
    owner = {"project": consumer.project, "user": consumer.user, "consumer_type": consumer.type}
    named = {key: value for key, value in {**owner, "lease": shown_time(consumer.expires_at)}.items() if value is not None}
    return {"consumer": consumer.label, "allocations": plain_allocations(held), **named}


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
    wanted = None if arguments["consumers"] is None else set(map(canonical_reference, arguments["consumers"]))
    owners = [(key, set(arguments[option])) for option, key in _OWNERS.items() if arguments[option] is not None]
    return {
        consumer: parts
        for consumer, parts in world.allocations.items()
        if parts
        and (wanted is None or not wanted.isdisjoint(_references(consumers[consumer])))
        and all((getattr(consumers[consumer], key) or "") in chosen for key, chosen in owners)
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


def _by_owner(allocations: Mapping[str, Allocations], owners: Mapping[str, str | None]) -> dict[str, dict[str, int]]:
    """Return {owner: {class: amount}}; consumers of nobody are counted under an empty name."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for consumer, parts in allocations.items():
        for amounts in parts.values():
            for name, amount in amounts.items():
                found[owners[consumer] or ""][name] += amount
    return {owner: dict(sorted(found[owner].items())) for owner in sorted(found)}


def _by_type(allocations: Mapping[str, Allocations], consumers: Mapping[str, Consumer]) -> dict[str, Plain]:
    """Return {type: {consumers: how many, usages: {class: amount}}}; consumers of no type are counted under an empty name."""
    types = {uuid: consumers[uuid].type for uuid in allocations}
    counts = Counter(kind or "" for kind in types.values())
    return {kind: {"consumers": counts[kind], "usages": usages} for kind, usages in _by_owner(allocations, types).items()}


def look_up_usages(
    references: Sequence[str], database: str | None, timeout: float = DEFAULT_TIMEOUT, rehearsal: Path | None = None
) -> list[Usages]:
    """Return {class: {capacity, used, free}} of each provider; without references, that of all providers together.

    Raises InputError for unknown providers, Unavailable.
    """
    wanted = list(map(str, references))
    with open_ledger(rehearsed(database, rehearsal), dry_run=True, timeout=timeout, snapshots=False) as ledger:
        if not wanted:
            return [ledger.read(read_total_usages)]
        found = ledger.read(partial(read_usages, references=wanted))
        _refuse_missing(ledger, [reference for reference in wanted if reference not in found])
    return [found[reference] for reference in wanted]


def look_up_tree_usages(
    references: Sequence[str], database: str | None, timeout: float = DEFAULT_TIMEOUT, rehearsal: Path | None = None
) -> list[Usages]:
    """Return the same as look_up_usages, but that of each provider together with all below it."""
    wanted = list(map(str, references))
    if not wanted:
        return look_up_usages(wanted, database, timeout, rehearsal)
    with open_ledger(rehearsed(database, rehearsal), dry_run=True, timeout=timeout) as ledger:
        world = ledger.read(partial(read_trees, references=wanted))
        _refuse_missing(ledger, _missing(wanted, world))
        usages = plain_usages(world.providers, world.usages())
        children: dict[str | None, list[str]] = defaultdict(list)
        for provider in world.providers:
            children[provider.parent].append(provider.uuid)
        return [plain_totals({uuid: usages[uuid] for uuid in _subtree(provider.uuid, children)}) for provider in _find_all(wanted, world)]


def _refuse_missing(ledger: Ledger, missing: Sequence[str]) -> None:
    """Raise InputError for references that mean no provider."""
    if missing:
        raise InputError(Mistake("usages", says) for says in _without_provider(ledger, missing))


def _find_all(references: Sequence[str], world: World) -> list[Provider]:
    by_reference = _by_reference(world.providers)
    return [provider for reference in references if (provider := find_reference(reference, by_reference)) is not None]


def _aggregates_of(providers: Sequence[Provider]) -> frozenset[str]:
    return frozenset().union(*(provider.aggregates for provider in providers))


def _by_reference(providers: Sequence[Provider]) -> dict[str, Provider]:
    return {**{provider.name: provider for provider in providers}, **{provider.uuid: provider for provider in providers}}


def _subtree(root: str, children: Mapping[str | None, Sequence[str]]) -> list[str]:
    found = [root]
    for uuid in found:
        found.extend(children.get(uuid, ()))
    return found
