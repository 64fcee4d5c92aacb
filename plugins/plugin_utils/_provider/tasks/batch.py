# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option `requests` of the task `provider_allocation`: many consumers placed and claimed in one transaction."""

from __future__ import annotations

import json
import typing as t
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ....module_utils._data.containers import Row, Table
from ....module_utils._data.errors import InputError, Mistakes, NoSolution
from ....module_utils._data.kinds import Word
from ....module_utils._data.words import listed
from ..._common.libraries import sa
from ..batch.fleet import APART, Fleet
from ..batch.gang import Gang, Outcome, Together
from ..batch.model import Entry, Placement, placement_of
from ..candidates.held import held_candidate
from ..candidates.preferred import find_preferred
from ..feasible.parts import Asker
from ..ledger.at_once import make_claims
from ..ledger.claim_plan import Claim, Claimed, ClaimRefused, Outdated
from ..ledger.claims import identified
from ..ledger.neighbours import Roots, consumers_called, read_roots_of_consumers
from ..ledger.open import Ledger
from ..ledger.owners import NotOwner, refuse_others
from ..ledger.parse import parse_claims
from ..ledger.plain import Plain, plain_allocations, plain_claimed
from ..ledger.quotas import QuotaExceeded
from ..ledger.read import read_holdings, read_numbers
from ..ledger.stored import Holding
from ..ledger.worlds import read_aggregate_names, read_known_names, read_neighbourhood
from ..request.model import Request
from ..world.names import aggregate_uuid
from ..world.parse import AGGREGATES
from .candidates import (
    explain_ranked,
    parse_request_in_database,
    placed_groups,
    refuse_unknown_trees_in_database,
    search_options,
    with_drained,
)
from .seen import seen_by

_MOST_EXPLAINED = 3
"""Number of kinds of requests whose reasons are searched for: each takes as long as a search that finds nothing."""
_MOST_SHOWN = 3

_GANG = Table("a gang", [Row("within", Word(("aggregate",))), Row("apart", Word(APART)), Row("aggregates", AGGREGATES)])


@dataclass(frozen=True)
class Batch:
    """What is asked for: whose each request is, the request as it was given, and what holds for all of them together.

    `aggregates` are those of the gang, as they were given.
    """

    claims: Sequence[Claim]
    requests: Sequence[Mapping[str, t.Any]]
    together: bool
    gang: Gang
    aggregates: Sequence[str] = ()


@dataclass(frozen=True)
class Look:
    """Where entries go, the ones that stay where they are included, and why others do not; `outcome` is that of all of them together."""

    placed: Sequence[Placement]
    kept: Sequence[Placement]
    refused: Sequence[Plain]
    outcome: Outcome | None


def parse_batch(arguments: Mapping[str, t.Any], own: Mapping[str, t.Any]) -> Batch:
    """Return what the arguments requests, all_or_nothing and gang ask for; `own` are the defaults of all. Raises InputError."""
    mistakes = Mistakes()
    entries = arguments["requests"]
    if not entries:
        mistakes.add("requests", "is empty; must be a list of consumers, each with its request")
    gang = _GANG.read_nested(arguments["gang"] or {}, "gang", mistakes)
    if arguments["gang"] is not None and not gang["within"] and not gang["apart"]:
        mistakes.add("gang", "needs within or apart")
    if gang["aggregates"] is not None and not gang["within"]:
        mistakes.add("gang.aggregates", "needs within: aggregate")
    mistakes.check()
    requests = [with_drained(entry["request"], own.get("drained")) for entry in entries]
    claims = parse_claims(
        [
            {**own, **{key: value for key, value in entry.items() if key != "request" and value is not None}, "drained": request["drained"]}
            for entry, request in zip(entries, requests, strict=True)
        ],
        "requests[{}]",
    )
    aggregates = None if gang["aggregates"] is None else tuple(dict.fromkeys(map(aggregate_uuid, gang["aggregates"])))
    together = arguments["all_or_nothing"] or arguments["gang"] is not None
    wanted = Gang(bool(gang["within"]), gang["apart"], aggregates)
    return Batch(claims, requests, together, wanted, gang["aggregates"] or ())


def place_batch(ledger: Ledger, batch: Batch) -> Plain:
    """Place the consumers and claim for all of them in one transaction; those that have what they ask for keep it.

    Raises InputError, and NoSolution where not all have room and all or nothing is wanted, or others were always quicker.
    """
    looks, beyond = 0, dict[int, QuotaExceeded]()
    while True:
        looks += 1
        look = ledger.read(partial(_look, batch=batch, beyond=beyond))
        claims = [
            replace(batch.claims[each.entry.number], amounts=each.candidate["allocations"], seen=seen_by(*each.anchor, each.candidate))
            for each in look.placed
        ]
        claims += [replace(batch.claims[each.entry.number], amounts=each.candidate["allocations"]) for each in look.kept]
        if not claims:
            return _result(Claimed({}, {}), look, batch, {})
        try:
            claimed = make_claims(ledger, claims)
        except QuotaExceeded as error:
            last = {} if batch.together else _last_beyond(error, look.placed, batch.claims)
            if not last:
                raise
            beyond |= last
            looks -= 1
        except (ClaimRefused, Outdated) as error:
            if looks > ledger.policy.retries or ledger.deadline.is_over:
                raise NoSolution(f"other writers came first all {looks} times: {error}", error.conflict) from None
        else:
            return _result(claimed, look, batch, ledger.read(read_aggregate_names))


def _last_beyond(error: QuotaExceeded, placed: Sequence[Placement], claims: Sequence[Claim]) -> dict[int, QuotaExceeded]:
    """Return the last entries, by number, without which the others stay within the quotas; what gives something back comes first."""
    quotas = {(one["project"], one["resource_class"]): one for one in error.conflict["quotas"]}
    used = {key: one["used"] for key, one in quotas.items()}
    growths = [(each.entry.number, _growth(each, claims[each.entry.number].project)) for each in placed]
    found = {}
    for number, growth in sorted(growths, key=lambda row: any(more > 0 for more in row[1].values())):
        over = [{**quotas[key], "asked": more, "used": used[key]} for key, more in growth.items() if key in quotas and more > 0]
        over = [one for one in over if one["used"] + one["asked"] > one["limit"]]
        if over:
            found[number] = QuotaExceeded(over)
        else:
            used = {key: amount + growth.get(key, 0) for key, amount in used.items()}
    return found


def _growth(placement: Placement, project: str | None) -> dict[tuple[str, str], int]:
    """Return how much more its project has of each class when an entry is placed."""
    held = placement.entry.holding
    more: Counter[tuple[str, str]] = Counter()
    owner = project if project is not None or held is None else held.consumer.project
    for owned_by, amounts, sign in (
        (owner, placement.amounts, 1),
        (held.consumer.project if held else None, held.amounts if held else {}, -1),
    ):
        if owned_by is not None:
            for (_number, name), amount in amounts.items():
                more[owned_by, name] += sign * amount
    return dict(more)


def _result(claimed: Claimed, look: Look, batch: Batch, aggregate_names: Mapping[str, str]) -> Plain:
    every = sorted([*look.placed, *look.kept], key=lambda each: each.entry.number)
    placed = [_shown(each, batch) for each in every]
    result = {**plain_claimed(claimed), "placed": placed, "refused": list(look.refused)}
    if look.outcome is not None and look.outcome.aggregate is not None:
        result["aggregate"] = aggregate_names.get(look.outcome.aggregate, look.outcome.aggregate)
    if look.refused:
        result["msg"] = f"{len(placed)} of {len(batch.claims)} requests are placed; {_reasons(look.refused)}"
    return result


def _shown(placement: Placement, batch: Batch) -> Plain:
    number = placement.entry.number
    shown = {
        **_who(number, placement.entry.consumer, batch.claims[number]),
        "allocations": plain_allocations(placement.candidate["allocations"]),
        "mappings": placement.candidate["mappings"],
    }
    return shown if batch.requests[number].get("one_of") is None else {**shown, "alternative": placement.alternative}


def _who(number: int, consumer: str, claim: Claim) -> Plain:
    return {"index": number, "consumer": consumer, "name": claim.name or consumer}


def _reasons(refused: Sequence[Plain]) -> str:
    """Return why entries were refused, each reason once."""
    names: dict[str, list[str]] = {}
    for entry in refused:
        names.setdefault(entry["says"], []).append(entry["name"])
    lines = [f"{listed(entries, _MOST_SHOWN)}: {says}" for says, entries in names.items()]
    return "; ".join(lines[:_MOST_SHOWN]) + (f" (and {len(lines) - _MOST_SHOWN} more)" if len(lines) > _MOST_SHOWN else "")


def _look(connection: sa.Connection, batch: Batch, beyond: Mapping[int, QuotaExceeded]) -> Look:
    """Return where the consumers of a batch go; those in `beyond` go nowhere, for their projects have no more quota."""
    claims = identified(connection, batch.claims)
    _refuse_doubles(claims)
    requests = _parse(connection, batch)
    holdings = read_holdings(connection, [claim.consumer for claim in claims])
    refused: list[Plain] = []
    entries: list[Entry] = []
    for number, (claim, asked) in enumerate(zip(claims, requests, strict=True)):
        if number in beyond:
            refused.append({**_who(number, claim.consumer, claim), "says": str(beyond[number]), "conflict": beyond[number].conflict})
            continue
        try:
            refuse_others([claim.asked], holdings)
        except NotOwner as error:
            if batch.together:
                raise
            refused.append({**_who(number, claim.consumer, claim), "says": str(error), "conflict": error.conflict})
            continue
        holding = holdings.get(claim.consumer)
        if holding is None or not holding.is_live:
            holding = None
        near, away = (_named(connection, names, claim.project) for names in ([one.near for one in asked], [one.away for one in asked]))
        entries.append(Entry(number, claim.consumer, tuple(asked), search_options(batch.requests[number]), near, away, holding))
    roots = read_roots_of_consumers(connection, {uuid for entry in entries for uuids in (*entry.near, *entry.away) for uuid in uuids})
    waiting: list[Entry] = []
    kept: list[Placement] = []
    for entry in entries:
        held = None if entry.holding is None else _held(connection, entry, entry.holding, roots, batch.requests[entry.number])
        if held is None:
            waiting.append(entry)
        else:
            kept.append(held)
    if batch.together:
        outcome = Together(connection, waiting, kept, roots, batch.gang).place()
        if outcome.placed is None:
            raise _no_room(connection, outcome, batch, roots)
        places = {each.entry.number for each in outcome.placed}
        return Look(outcome.placed, [each for each in kept if each.entry.number not in places], refused, outcome)
    fleet = Fleet(connection, [*(each.entry for each in kept), *waiting], roots)
    for placement in kept:
        fleet.keep(placement)
    found = [(entry, fleet.place(entry)) for entry in waiting]
    missing = [entry for entry, placement in found if placement is None]
    refused += _explained(connection, missing, batch, roots)
    refused.sort(key=lambda each: each["index"])
    return Look([placement for _entry, placement in found if placement is not None], kept, refused, None)


def _named(connection: sa.Connection, references: Sequence[Sequence[str]], project: str | None) -> tuple[frozenset[str], ...]:
    """Return for each alternative the UUIDs of the consumers that it names."""
    return tuple(frozenset(consumers_called(connection, some, project).values()) if some else frozenset() for some in references)


def _refuse_doubles(claims: Sequence[Claim]) -> None:
    first: dict[str, int] = {}
    mistakes = Mistakes()
    for number, claim in enumerate(claims):
        if first.setdefault(claim.consumer, number) != number:
            says = f"{claim.name or claim.consumer} is the consumer of requests[{first[claim.consumer]}], too; give it once"
            mistakes.add(f"requests[{number}].consumer", says)
    mistakes.check()


def _parse(connection: sa.Connection, batch: Batch) -> list[list[Request]]:
    """Return the alternatives of each request; equal ones are read once."""
    known: dict[str, list[Request]] = {}
    found, mistakes = [], Mistakes()
    for number, request in enumerate(batch.requests):
        key = json.dumps(request, sort_keys=True, default=str)
        if key not in known:
            try:
                known[key] = parse_request_in_database(connection, request)
                refuse_unknown_trees_in_database(connection, placed_groups(known[key]))
            except InputError as error:
                for mistake in error.mistakes:
                    mistakes.add(f"requests[{number}].request.{mistake.place}", mistake.says)
                known[key] = []
        found.append(known[key])
    names = read_known_names(connection) if batch.aggregates else None
    for aggregate in batch.aggregates:
        if names is not None and (says := names.why_not_aggregate(aggregate)):
            mistakes.add("gang.aggregates", says)
    mistakes.check()
    return found


def _held(connection: sa.Connection, entry: Entry, holding: Holding, roots: Roots, request: Mapping[str, t.Any]) -> Placement | None:
    """Return what an entry has if that is what it asks for."""
    world = read_neighbourhood(connection, holding)
    for number in range(len(entry.alternatives)):
        answer = held_candidate(world, holding.by_provider, _with_roots(entry, number, roots), request["budget"])
        if answer.truncated:
            says = "the budget is too small to find out whether the consumer has what is requested, so nothing was changed; raise budget"
            raise NoSolution(f"{holding.consumer.label}: {says}", {"held": holding.by_provider})
        if answer.candidates:
            index, root = answer.anchors[0]
            named = {
                index.uuids[position]
                for uuid in holding.by_provider
                for position in (index.positions[uuid], index.root[index.positions[uuid]])
            }
            numbers = {uuid: number for uuid, (number, _uuid) in read_numbers(connection, named).items()}
            return placement_of(entry, answer.candidates[0], number, (index, root), numbers)
    return None


def _with_roots(entry: Entry, number: int, roots: Roots) -> Request:
    """Return an alternative of an entry with the roots on which the consumers are in the ledger that it names."""
    nowhere: frozenset[str] = frozenset()
    near = [roots.get(uuid, nowhere) for uuid in entry.near[number] - {entry.consumer}]
    away = [roots.get(uuid, nowhere) for uuid in entry.away[number] - {entry.consumer}]
    only = frozenset.intersection(*near) if near else None
    return replace(entry.alternatives[number], roots=only, other_roots=nowhere.union(*away))


def _explained(connection: sa.Connection, missing: Sequence[Entry], batch: Batch, roots: Roots) -> list[Plain]:
    """Return the entries that fit nowhere, each with the reasons; these are looked for of the first few kinds alone."""
    reasons: dict[object, Plain] = {}
    found = []
    for entry in missing:
        kind = entry.alternatives, entry.options
        if kind not in reasons:
            wanted = batch.requests[entry.number]["explain_below"] and len(reasons) < _MOST_EXPLAINED
            reasons[kind] = _why(connection, entry, roots) if wanted else {"says": "nothing fits"}
        found.append({**_who(entry.number, entry.consumer, batch.claims[entry.number]), **reasons[kind]})
    return found


def _why(connection: sa.Connection, entry: Entry, roots: Roots) -> Plain:
    asker = Asker(connection, entry.holding)
    numbers = range(len(entry.alternatives))
    requests = [replace(_with_roots(entry, number, roots), limit=1, prefer=()) for number in numbers]
    ranked = find_preferred(asker.find, requests, entry.options)
    if ranked.answer.candidates:
        return {"says": "the requests before it in this task take all that would fit"}
    why = explain_ranked(asker, requests, ranked)
    return {"says": " ".join(why["says"]), "why": why}


def _no_room(connection: sa.Connection, outcome: Outcome, batch: Batch, roots: Roots) -> NoSolution:
    """Return why not all entries have room together."""
    count = len(batch.claims)
    refused = _explained(connection, outcome.missing, batch, roots)
    conflict: Plain = {"refused": refused, "fits": outcome.fits, "requests": count}
    apart = f", each on a {batch.gang.apart} of its own" if batch.gang.apart else ""
    unsure = "" if outcome.is_sure else " Not every way was tried: a limit ended the search."
    if not batch.gang.within:
        says = f"not all of {count} requests have room together{apart}; {outcome.fits} have: {_reasons(refused)}"
    elif outcome.aggregate is None:
        says = f"there is no aggregate for {count} requests to be in{apart}"
    else:
        name = read_aggregate_names(connection).get(outcome.aggregate, outcome.aggregate)
        conflict["nearest"] = {"aggregate": outcome.aggregate, "name": name, "fits": outcome.fits}
        says = f"no aggregate has room for all of {count} requests{apart}; {name} comes nearest, with room for {outcome.fits}"
    return NoSolution(says + (f".{unsure}" if unsure else ""), conflict)
