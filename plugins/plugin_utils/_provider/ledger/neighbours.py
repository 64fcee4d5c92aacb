# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On which roots the consumers are that a request is to be with, or not with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from ..._common.libraries import sa
from ..request.model import Request
from ..world.model import World
from ..world.names import SHARING_TRAIT, consumer_uuid, why_no_uuid
from .clock import sql_now
from .owners import Asked, find_consumers
from .read import batches
from .statements import among, select_rows

Roots = Mapping[str, frozenset[str]]
"""The UUIDs of the roots of what consumers have, by consumer's UUID; those that have nothing are left out."""


def at_neighbours(connection: sa.Connection, request: Request, project: str | None = None, own: str | None = None) -> Request:
    """Return a request with the roots of the consumers that it is to be with, or not with; `own` is the consumer that asks.

    Names are those of consumers of the project, or else of nobody's. Raises NameNotUnique.
    """
    if not request.near and not request.away:
        return request
    uuids = consumers_called(connection, {*request.near, *request.away}, project)
    return with_roots(request, uuids, read_roots_of_consumers(connection, uuids.values()), own)


def consumers_called(connection: sa.Connection, references: Collection[str], project: str | None) -> dict[str, str]:
    """Return the UUIDs of consumers, by what they are called; one that is not there has that of its name. Raises NameNotUnique."""
    ordered = sorted(references)
    return dict(zip(ordered, find_consumers(connection, [_asked(reference, project) for reference in ordered]), strict=True))


def at_neighbours_in(world: World, request: Request) -> Request:
    """Return the same of a world; names are unique there."""
    if not request.near and not request.away:
        return request
    names = {name: uuid for uuid, name in world.consumer_names.items()}
    uuids = {reference: names.get(reference, consumer_uuid(reference)) for reference in {*request.near, *request.away}}
    roots, sharing = world.roots(), {provider.uuid for provider in world.providers if SHARING_TRAIT in provider.traits}
    held = ((consumer, [(roots[uuid], uuid in sharing) for uuid in parts]) for consumer, parts in world.allocations.items())
    return with_roots(request, uuids, {consumer: _own_roots(found) for consumer, found in held if found})


def with_roots(request: Request, uuids: Mapping[str, str], roots: Roots, own: str | None = None) -> Request:
    """Return a request with the roots that it may be on; `uuids` are those of the consumers that it names, by what it calls them."""
    nowhere: frozenset[str] = frozenset()
    near = [roots.get(uuids[reference], nowhere) for reference in request.near if uuids[reference] != own]
    away = [roots.get(uuids[reference], nowhere) for reference in request.away if uuids[reference] != own]
    return replace(request, roots=frozenset.intersection(*near) if near else None, other_roots=nowhere.union(*away))


def read_roots_of_consumers(connection: sa.Connection, uuids: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the roots of the trees of what consumers have, by consumer's UUID.

    What they have of a shared provider counts only where they have nothing else: it is used from other trees.
    """
    found: dict[str, list[tuple[str, bool]]] = {}
    for part in batches(uuids):
        wanted = among(part)
        text = (
            "SELECT DISTINCT c.uuid, r.uuid, i.sharing FROM consumers c JOIN allocations a ON a.consumer_id = c.id "
            "JOIN inventories i ON i.provider_id = a.provider_id AND i.resource_class = a.resource_class "
            f"JOIN resource_providers r ON r.id = i.root_id WHERE c.uuid IN ({wanted.slots}) "
            f"AND (c.expires_at IS NULL OR c.expires_at > {sql_now(connection)})"
        )
        for consumer, root, sharing in select_rows(connection, text, wanted.values):
            found.setdefault(consumer, []).append((root, bool(sharing)))
    return {consumer: _own_roots(entries) for consumer, entries in found.items()}


def _own_roots(entries: Collection[tuple[str, bool]]) -> frozenset[str]:
    return frozenset(root for root, sharing in entries if not sharing) or frozenset(root for root, _sharing in entries)


def _asked(reference: str, project: str | None) -> Asked:
    name = reference if why_no_uuid(reference) else None
    return Asked(consumer_uuid(reference, project), name, project, None, take_over=False)
