# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task `provider_allocation`: from its arguments to its result."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ....module_utils._data.errors import InputError, Mistake, Mistakes, NoSolution
from ....module_utils._data.kinds import refuse_less
from ..._common.libraries import sa
from ..candidates.held import held_candidate
from ..candidates.preferred import Ranked, find_preferred
from ..candidates.write import Candidate
from ..feasible.parts import Asker
from ..ledger.at_once import make_claims
from ..ledger.claim_first import Chosen, NoneLeft, claim_first, claim_held_or_first
from ..ledger.claim_plan import Claim
from ..ledger.claims import read_own_holding
from ..ledger.neighbours import at_neighbours
from ..ledger.open import Ledger
from ..ledger.parse import parse_claims, parse_generations, parse_reshape
from ..ledger.plain import Plain, plain_claimed, plain_inventories
from ..ledger.reshape import Reshaped, reshape
from ..ledger.retry import RetryPolicy
from ..ledger.stored import Holding
from ..ledger.worlds import read_neighbourhood
from ..request.model import Request
from ..world.model import Allocations, Inventory, World
from .batch import parse_batch, place_batch
from .candidates import (
    explain_ranked,
    parse_request,
    parse_request_in_database,
    placed_groups,
    refuse_unknown_trees_in_database,
    search_options,
    with_drained,
)
from .provider import inline_world, task_ledger
from .recovery import run_recoverably
from .seen import seen_by

_TRIED_AT_ONCE = 8
"""How many candidates are tried before the ledger is read again: as many as the trees that are loaded first have, mostly."""


@dataclass(frozen=True)
class Placed:
    """What was claimed, the candidate it was, and the number of the alternative that it satisfies."""

    chosen: Chosen
    candidate: Candidate
    alternative: int = 0


def place(ledger: Ledger, claim: Claim, request: Mapping[str, t.Any]) -> Placed:
    """Give a consumer what a request (arguments of provider_candidates) asks for; one that has it already keeps it.

    What the consumer has counts as free, for it is given back when it moves. Raises InputError, and NoSolution with the reasons when
    nothing fits or others were always quicker.
    """
    kept = _keep(ledger, claim, request)
    if kept is not None:
        return kept
    looks = 0
    while True:
        looks += 1
        ranked = ledger.read(partial(_look, claim=claim, request=request))
        found = ranked.answer.candidates
        claims = (
            replace(claim, amounts=candidate["allocations"], seen=seen_by(index, root, candidate))
            for candidate, (index, root) in zip(found, ranked.answer.anchors, strict=True)
        )
        try:
            chosen = claim_first(ledger, claims)
        except NoneLeft as error:
            if looks > ledger.policy.retries or ledger.deadline.is_over:
                raise NoSolution(f"other writers came first all {looks} times: {error}", error.conflict) from None
        else:
            return Placed(chosen, found[chosen.index], ranked.alternatives[chosen.index])


def _keep(ledger: Ledger, claim: Claim, request: Mapping[str, t.Any]) -> Placed | None:
    """Return what a consumer has if that is what the request asks for; None if it has nothing, or something else."""

    def read(connection: sa.Connection) -> tuple[Allocations, World, list[Request]] | None:
        holding = read_own_holding(connection, claim)
        if holding is None:
            return None
        world = read_neighbourhood(connection, holding)
        with _inside_request():
            asked = parse_request(request, world.known_names())
        return holding.by_provider, world, _at_neighbours(connection, asked, claim, holding)

    found = ledger.read(read)
    if found is None:
        return None
    held, world, alternatives = found
    for number, asked in enumerate(alternatives):
        answer = held_candidate(world, held, asked, request["budget"])
        if answer.truncated:
            says = "the budget is too small to find out whether the consumer has what is requested, so nothing was changed; raise budget"
            raise NoSolution(says, {"held": held})
        if answer.candidates:
            return Placed(claim_first(ledger, [replace(claim, amounts=held)]), answer.candidates[0], number)
    return None


def _at_neighbours(connection: sa.Connection, asked: Sequence[Request], claim: Claim, holding: Holding | None) -> list[Request]:
    own = claim.consumer if holding is None else holding.consumer.uuid
    return [at_neighbours(connection, request, claim.project, own) for request in asked]


def _look(connection: sa.Connection, claim: Claim, request: Mapping[str, t.Any]) -> Ranked:
    """Return the best candidates. Raises NoSolution with `why` when there is none."""
    with _inside_request():
        requests = parse_request_in_database(connection, request)
        refuse_unknown_trees_in_database(connection, placed_groups(requests))
    holding = read_own_holding(connection, claim)
    asked = [replace(one, limit=one.limit or _TRIED_AT_ONCE) for one in _at_neighbours(connection, requests, claim, holding)]
    asker = Asker(connection, holding)
    ranked = find_preferred(asker.find, asked, search_options(request))
    if not ranked.answer.candidates:
        why = explain_ranked(asker, asked, ranked) if request["explain_below"] else {}
        raise NoSolution(" ".join(why.get("says", ())) or "there is no candidate", {"why": why})
    return ranked


@contextmanager
def _inside_request() -> Iterator[None]:
    """Say of mistakes that they are in the request."""
    try:
        yield
    except InputError as error:
        raise InputError(Mistake(f"request.{mistake.place}", mistake.says) for mistake in error.mistakes) from None


_OWN = ("consumer", "allocations", "project", "user", "consumer_type", "consumer_generation", "take_over", "lease", "drained")


def run_provider_allocation(arguments: Mapping[str, t.Any], *, dry_run: bool, rehearsal: Path | None = None) -> Plain:
    """Give consumers what they are to have, or take it back; several of them, and a reshape, in one transaction.

    Raises InputError, NoSolution, Unavailable.
    """
    mistakes = Mistakes()
    refuse_less(arguments, {"retries": 0, "consumer_generation": 0}, mistakes)
    mistakes.check()
    policy = RetryPolicy(retries=arguments["retries"])
    generations = parse_generations(arguments["generations"] or {}, "generations")
    if arguments.get("requests") is not None:
        _refuse_absent(arguments, "requests")
        own = {key: arguments[key] for key in ("project", "user", "consumer_type", "take_over", "lease") if arguments[key] is not None}
        wanted: t.Callable[[Ledger], Plain] = partial(place_batch, batch=parse_batch(arguments, own))
    elif arguments["candidates"] is not None:
        wanted = partial(_choose, candidates=_parse_candidates(arguments))
    elif arguments["request"] is not None:
        request = with_drained(arguments["request"], arguments.get("drained"))
        wanted = partial(_place, claim=_parse_placed({**arguments, "drained": request.get("drained")}), request=request)
    elif arguments["inventories"] is not None:
        forms = parse_reshape(arguments["inventories"], "inventories")
        wanted = partial(_reshape, forms=forms, claims=_parse_claims(arguments), generations=generations)
    else:
        wanted = partial(_claim, claims=_parse_claims(arguments), generations=generations)
    with task_ledger(arguments, dry_run=dry_run, policy=policy, rehearsal=rehearsal) as ledger:
        return {**run_recoverably(ledger, arguments, wanted), **inline_world(arguments, ledger)}


def _claim(ledger: Ledger, claims: Sequence[Claim], generations: Mapping[str, int]) -> Plain:
    return plain_claimed(make_claims(ledger, claims, generations))


def _reshape(
    ledger: Ledger, forms: Mapping[str, Mapping[str, Inventory]], claims: Sequence[Claim], generations: Mapping[str, int]
) -> Plain:
    done: Reshaped = ledger.write(partial(reshape, inventories=forms, claims=claims, generations=generations))
    result = plain_claimed(done.claimed)
    names = done.claimed.names
    shown = {
        side: {
            "consumers": result["diff"][side],
            "inventories": {names[provider]: plain_inventories(found) for provider, found in inventories.items()},
        }
        for side, inventories in (("before", done.before), ("after", done.after))
    }
    after = {provider: plain_inventories(inventories) for provider, inventories in done.after.items()}
    return {**result, "changed": done.changed, "inventories": after, "diff": shown}


def _choose(ledger: Ledger, candidates: Sequence[Claim]) -> Plain:
    chosen: Chosen = claim_held_or_first(ledger, candidates)
    return {**plain_claimed(chosen.claimed), "candidate": chosen.index, "refused": list(chosen.refused)}


def _place(ledger: Ledger, claim: Claim, request: Mapping[str, t.Any]) -> Plain:
    placed = place(ledger, claim, request)
    result = plain_claimed(placed.chosen.claimed)
    shown = {**result, "mappings": placed.candidate["mappings"], "refused": list(placed.chosen.refused)}
    return shown if request.get("one_of") is None else {**shown, "alternative": placed.alternative}


def _parse_claims(arguments: Mapping[str, t.Any]) -> list[Claim]:
    several = arguments["consumers"] is not None
    own = {key: arguments[key] for key in _OWN if arguments.get(key) is not None}
    entries = [own] if "consumer" in own else []
    if several:
        entries = [{**own, **(entry if isinstance(entry, Mapping) else {"consumer": entry})} for entry in arguments["consumers"]]
    claims = parse_claims(entries, "consumers[{}]" if several else "")
    if arguments["state"] == "absent":
        if any(claim.lease is not None for claim in claims):
            raise InputError([Mistake("lease", "only applies to state present")])
        return [replace(claim, amounts={}) for claim in claims]
    empty = [number for number, claim in enumerate(claims) if not claim.amounts and not (several and _gives_back(entries[number]))]
    if empty:
        hint = ", or allocations: {} for this consumer" if several else ""
        places = [f"consumers[{number}].allocations" if several else "allocations" for number in empty]
        raise InputError(Mistake(place, f"is needed; to give everything back, use state absent{hint}") for place in places)
    return claims


def _gives_back(entry: Mapping[str, t.Any]) -> bool:
    """Return whether an entry takes everything from its consumer: an empty mapping, not a missing one."""
    return entry.get("allocations") == {}


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
    return {key: arguments[key] for key in _OWN if key != "allocations" and arguments.get(key) is not None}


def _refuse_absent(arguments: Mapping[str, t.Any], name: str) -> None:
    if arguments["state"] == "absent":
        raise InputError([Mistake(name, "only applies to state present; to give everything back, name only the consumer")])
