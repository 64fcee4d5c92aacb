# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Place a consumer: look for candidates and claim the first that can be had; look again when others were quicker with all of them."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...common.errors import InputError, Mistake, NoSolution
from ..ledger.claim_first import Chosen, claim_first
from ..ledger.claims import Claim
from ..ledger.open import Ledger
from ..ledger.read import read_world
from ..world.model import Allocations, World
from .candidates import find_in_world

_LOOKS = 5
_TRIED_AT_ONCE = 20
"""How many candidates are tried before the ledger is looked at again; what was found before that is likely gone."""


@dataclass(frozen=True)
class Placed:
    """What was claimed, and the candidate it was."""

    chosen: Chosen
    candidate: Mapping[str, t.Any]


def place(ledger: Ledger, claim: Claim, request: Mapping[str, t.Any]) -> Placed:
    """Give a consumer what a request (arguments of provider_candidates) asks for; one that has it already keeps it.

    What the consumer has counts as free, for it is given back when it moves. Raises InputError, and NoSolution with the reasons when
    nothing fits or others were always quicker.
    """
    lost: NoSolution | None = None
    for _look in range(_LOOKS):
        world = ledger.read(read_world)
        without = replace(world, allocations={uuid: held for uuid, held in world.allocations.items() if uuid != claim.consumer})
        found = _candidates(without, world.allocations.get(claim.consumer), request)
        try:
            chosen = claim_first(ledger, [replace(claim, amounts=candidate["allocations"]) for candidate in found])
        except NoSolution as error:
            if "candidates" not in error.conflict:
                raise
            lost = error
        else:
            return Placed(chosen, found[chosen.index])
    raise NoSolution(f"others were quicker each of {_LOOKS} times: {lost}", lost.conflict if lost else {})


def _candidates(world: World, held: Allocations | None, request: Mapping[str, t.Any]) -> list[Mapping[str, t.Any]]:
    """Return the candidate that is held, or else the best ones. Raises NoSolution with `why` when there is none."""
    if held:
        near = _near(world, held)
        for candidate in _find(near, {**request, "limit": None, "explain_below": 0})["candidates"]:
            if candidate["allocations"] == held:
                return [candidate]
    found = _find(world, {**request, "limit": request["limit"] or _TRIED_AT_ONCE})
    if not found["candidates"]:
        raise NoSolution(found.get("msg") or "there is no candidate", {"why": found.get("why", {})})
    return list(found["candidates"])


def _find(world: World, request: Mapping[str, t.Any]) -> dict[str, t.Any]:
    try:
        return find_in_world(world, request)
    except InputError as error:
        raise InputError(Mistake(f"request.{mistake.place}", mistake.says) for mistake in error.mistakes) from None


def _near(world: World, held: Allocations) -> World:
    """Return the world without the trees that a consumer has nothing of; whether it has what is asked for shows in the others."""
    parents = {provider.uuid: provider.parent for provider in world.providers}
    roots = {uuid: _root(uuid, parents) for uuid in parents}
    wanted = {roots[uuid] for uuid in held}
    near = {uuid for uuid, root in roots.items() if root in wanted}
    allocations = {
        consumer: {uuid: amounts for uuid, amounts in parts.items() if uuid in near} for consumer, parts in world.allocations.items()
    }
    known = world.known_names()
    return World(tuple(entry for entry in world.providers if entry.uuid in near), allocations, known.traits, known.classes)


def _root(uuid: str, parents: Mapping[str, str | None]) -> str:
    above = parents[uuid]
    while above is not None:
        uuid, above = above, parents[above]
    return uuid
