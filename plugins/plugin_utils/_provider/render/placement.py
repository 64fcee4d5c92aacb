# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger as the requests that fill an empty OpenStack Placement: names, providers tree after tree, and what consumers have.

The requests are those of its version 1.39. Generations of new providers are known beforehand: 0, and one more with each request.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from ..._common.libraries import os_traits
from ..world.model import Provider, World
from ..world.names import STANDARD_CLASSES, STANDARD_TRAITS
from ..world.parse import parse_world

Plain = dict[str, t.Any]

VERSION = "placement 1.39"
MADE, DONE, NO_CONTENT = 201, 200, 204
_PARTS = ("providers", "allocations", "custom_traits", "custom_classes")


def placement_requests(ledger: Mapping[str, t.Any], project: str, user: str, consumer_type: str) -> list[Plain]:
    """Return [{method, path, status, body}] for what provider_info returns; the last three are for consumers that have none of their own.

    Raises InputError.
    """
    world = parse_world({name: ledger.get(name) or () for name in _PARTS if ledger.get(name)}, "ledger")
    return [*_names(world), *_providers(world), *_allocations(world, ledger.get("consumers") or {}, (project, user, consumer_type))]


def _request(method: str, path: str, status: tuple[int, ...], body: Plain | None = None) -> Plain:
    return {"method": method, "path": path, "status": list(status), **({} if body is None else {"body": body})}


def _names(world: World) -> Iterator[Plain]:
    classes = {name for provider in world.providers for name in provider.inventories}.union(world.custom_classes)
    traits = {name for provider in world.providers for name in provider.traits}.union(world.custom_traits)
    for name in sorted(classes - STANDARD_CLASSES):
        yield _request("PUT", f"/resource_classes/{name}", (MADE, NO_CONTENT))
    for name in sorted(traits - STANDARD_TRAITS):
        yield _request("PUT", f"/traits/{name}", (MADE, NO_CONTENT))


def _providers(world: World) -> Iterator[Plain]:
    waiting: dict[str | None, list[Provider]] = {}
    for provider in sorted(world.providers, key=lambda provider: provider.name, reverse=True):
        waiting.setdefault(provider.parent, []).append(provider)
    next_ones = waiting.get(None, [])
    while next_ones:
        provider = next_ones.pop()
        yield from _provider(provider)
        next_ones += waiting.get(provider.uuid, [])


def _provider(provider: Provider) -> Iterator[Plain]:
    own = {} if provider.parent is None else {"parent_provider_uuid": provider.parent}
    yield _request("POST", "/resource_providers", (DONE,), {"name": provider.name, "uuid": provider.uuid, **own})
    drained = {os_traits.COMPUTE_STATUS_DISABLED} if provider.drained is not None else set[str]()
    parts: dict[str, t.Any] = {
        "inventories": {name: asdict(provider.inventories[name]) for name in sorted(provider.inventories)},
        "traits": sorted(provider.traits | drained),
        "aggregates": sorted(provider.aggregates),
    }
    filled = {name: part for name, part in parts.items() if part}
    for generation, (name, part) in enumerate(filled.items()):
        body = {name: part, "resource_provider_generation": generation}
        yield _request("PUT", f"/resource_providers/{provider.uuid}/{name}", (DONE,), body)


def _allocations(world: World, consumers: Mapping[str, t.Any], default: tuple[str, str, str]) -> Iterator[Plain]:
    for uuid in sorted(world.allocations):
        held = {provider: {"resources": dict(amounts)} for provider, amounts in sorted(world.allocations[uuid].items()) if amounts}
        if not held:
            continue
        owner = consumers.get(uuid) or {}
        named = (owner.get(key) or other for key, other in zip(("project", "user", "consumer_type"), default))
        body = dict(zip(("project_id", "user_id", "consumer_type"), named))
        yield _request("PUT", f"/allocations/{uuid}", (NO_CONTENT,), {"allocations": held, "consumer_generation": None, **body})
