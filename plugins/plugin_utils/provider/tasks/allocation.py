# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task `provider_allocation`: from its arguments to its result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...common.errors import InputError, Mistake, Mistakes, NoSolution
from ...common.fields import refuse_less
from ..ledger.claim_first import Chosen, claim_first
from ..ledger.claims import Claim, apply_claims
from ..ledger.open import Ledger
from ..ledger.parse import parse_claims, parse_generations, parse_reshape
from ..ledger.plain import Plain, plain_claimed, plain_inventories
from ..ledger.read import read_world
from ..ledger.reshape import Reshaped, reshape
from ..ledger.retry import RetryPolicy
from ..world.model import Allocations, Inventory, World
from .candidates import find_in_world
from .provider import inline_world, task_ledger

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


_OWN = ("consumer", "allocations", "project", "user", "consumer_generation")


def run_provider_allocation(arguments: Mapping[str, t.Any], *, dry_run: bool) -> Plain:
    """Give consumers what they are to have, or take it back; several of them, and a reshape, in one transaction.

    Raises InputError, NoSolution, Unavailable.
    """
    mistakes = Mistakes()
    refuse_less(arguments, {"retries": 0, "consumer_generation": 0}, mistakes)
    mistakes.check()
    policy = RetryPolicy(retries=arguments["retries"])
    generations = parse_generations(arguments["generations"] or {}, "generations")
    if arguments["candidates"] is not None:
        wanted: t.Callable[[Ledger], Plain] = partial(_choose, candidates=_parse_candidates(arguments))
    elif arguments["request"] is not None:
        wanted = partial(_place, claim=_parse_placed(arguments), request=arguments["request"])
    elif arguments["inventories"] is not None:
        forms = parse_reshape(arguments["inventories"], "inventories")
        wanted = partial(_reshape, forms=forms, claims=_parse_claims(arguments), generations=generations)
    else:
        wanted = partial(_claim, claims=_parse_claims(arguments), generations=generations)
    with task_ledger(arguments, dry_run=dry_run, policy=policy) as ledger:
        return {**wanted(ledger), **inline_world(arguments, ledger)}


def _claim(ledger: Ledger, claims: Sequence[Claim], generations: Mapping[str, int]) -> Plain:
    return plain_claimed(ledger.write(partial(apply_claims, claims=claims, generations=generations)))


def _reshape(
    ledger: Ledger, forms: Mapping[str, Mapping[str, Inventory]], claims: Sequence[Claim], generations: Mapping[str, int]
) -> Plain:
    done: Reshaped = ledger.write(partial(reshape, inventories=forms, claims=claims, generations=generations))
    result = plain_claimed(done.claimed)
    before = {provider: plain_inventories(inventories) for provider, inventories in done.before.items()}
    after = {provider: plain_inventories(inventories) for provider, inventories in done.after.items()}
    diff = {
        "before": {"consumers": result["diff"]["before"], "inventories": before},
        "after": {"consumers": result["diff"]["after"], "inventories": after},
    }
    return {**result, "changed": done.changed, "inventories": after, "diff": diff}


def _choose(ledger: Ledger, candidates: Sequence[Claim]) -> Plain:
    chosen: Chosen = claim_first(ledger, candidates)
    return {**plain_claimed(chosen.claimed), "candidate": chosen.index, "refused": list(chosen.refused)}


def _place(ledger: Ledger, claim: Claim, request: Mapping[str, t.Any]) -> Plain:
    placed = place(ledger, claim, request)
    result = plain_claimed(placed.chosen.claimed)
    return {**result, "mappings": placed.candidate["mappings"], "refused": list(placed.chosen.refused)}


def _parse_claims(arguments: Mapping[str, t.Any]) -> list[Claim]:
    several = arguments["consumers"] is not None
    own = {key: arguments[key] for key in _OWN if arguments[key] is not None}
    entries = [own] if "consumer" in own else []
    if several:
        entries = [{**own, **(entry if isinstance(entry, Mapping) else {"consumer": entry})} for entry in arguments["consumers"]]
    claims = parse_claims(entries, "consumers[{}]" if several else "")
    if arguments["state"] == "absent":
        return [replace(claim, amounts={}) for claim in claims]
    empty = [number for number, claim in enumerate(claims) if not claim.amounts]
    if empty:
        places = [f"consumers[{number}].allocations" if several else "allocations" for number in empty]
        raise InputError(Mistake(place, "is needed; to take everything back, use state absent") for place in places)
    return claims


def _parse_placed(arguments: Mapping[str, t.Any]) -> Claim:
    _refuse_absent(arguments, "request")
    (claim,) = parse_claims([_whose(arguments)], "")
    return claim


def _parse_candidates(arguments: Mapping[str, t.Any]) -> list[Claim]:
    _refuse_absent(arguments, "candidates")
    if not arguments["candidates"]:
        raise InputError([Mistake("candidates", "has none; provider_candidates says why nothing was found")])
    return [
        claim
        for number, candidate in enumerate(arguments["candidates"])
        for claim in parse_claims([{**_whose(arguments), "allocations": candidate}], f"candidates[{number}]")
    ]


def _whose(arguments: Mapping[str, t.Any]) -> Plain:
    return {key: arguments[key] for key in _OWN if key != "allocations" and arguments[key] is not None}


def _refuse_absent(arguments: Mapping[str, t.Any], name: str) -> None:
    if arguments["state"] == "absent":
        raise InputError([Mistake(name, "is for state present; to take everything back, the consumer alone is enough")])
