# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task `provider_candidates`: from its arguments to its result."""

from __future__ import annotations

import typing as t
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ....module_utils._data.errors import InputError, Mistake, Mistakes, suggest
from ....module_utils._data.kinds import refuse_less
from ..._common.libraries import sa
from ..arguments import ASKED_KEYS
from ..candidates.find import Answer, SearchOptions, find_candidates
from ..candidates.index import Index, build_index
from ..candidates.preferred import Ranked, find_preferred
from ..candidates.why import explain
from ..feasible.parts import Asker
from ..feasible.why import explain_from_indexes
from ..ledger.clock import read_now
from ..ledger.neighbours import at_neighbours, at_neighbours_in
from ..ledger.open import open_ledger
from ..ledger.read import has_more_providers, read_consumers, read_identities, read_numbers, read_some_names
from ..ledger.rehearsal import rehearsed
from ..ledger.statements import select_rows
from ..ledger.stored import Consumer
from ..ledger.worlds import read_aggregate_names, read_known_names, read_trees, read_world
from ..request.groups import parse_groups, with_wishes
from ..request.model import USUAL_LIMIT, Group, Request, bounded_limit, with_names
from ..request.query import parse_query
from ..world.model import World
from ..world.names import KnownNames, known_names, why_no_uuid
from ..world.parse import parse_world
from ..world.times import shown_time
from .provider import timeout_of

EXPLAINED_WHOLE = 20_000
"""A ledger with more providers is not loaded to say why there are no candidates."""


def run_provider_candidates(arguments: Mapping[str, t.Any], *, rehearsal: Path | None = None) -> dict[str, t.Any]:
    """Return the candidates, the names of their providers, and the reasons where there are fewer than `explain_below`.

    Raises InputError and Unavailable.
    """
    if arguments["world"] is None:
        with open_ledger(rehearsed(arguments["database"], rehearsal), dry_run=True, timeout=timeout_of(arguments)) as ledger:
            return ledger.read(lambda connection: _find_in_database(connection, arguments))
    world = parse_world(arguments["world"])
    index = build_index(world)
    requests = [at_neighbours_in(world, _limited(request)) for request in parse_request(arguments, index.known)]
    refuse_unknown_trees(placed_groups(requests), index.named, lambda: index.named)
    ranked = find_preferred(partial(find_candidates, index), requests, search_options(arguments))
    answer = ranked.answer
    result = describe(ranked, arguments, lambda: explain_each(partial(_explain, index, world), requests, ranked))
    return {**result, "summaries": summaries(_trees_of(world, _allotted(answer)))} if arguments["summaries"] else result


def _find_in_database(connection: sa.Connection, arguments: Mapping[str, t.Any]) -> dict[str, t.Any]:
    requests = [at_neighbours(connection, _limited(request)) for request in parse_request_in_database(connection, arguments)]
    refuse_unknown_trees_in_database(connection, placed_groups(requests))
    asker = Asker(connection)
    ranked = find_preferred(asker.find, requests, search_options(arguments))
    answer = ranked.answer
    result = describe(ranked, arguments, lambda: explain_ranked(asker, requests, ranked))
    return {**result, "summaries": summaries(read_trees(connection, _allotted(answer)))} if arguments["summaries"] else result


def _limited(request: Request) -> Request:
    """Return a request with a limit: its own, or the usual one."""
    return replace(request, limit=request.limit or USUAL_LIMIT)


def summaries(world: World) -> dict[str, dict[str, t.Any]]:
    """Return what the providers of some trees have and are, by UUID: Placement's provider_summaries, with names."""
    roots, used = world.roots(), world.usages()
    return {
        provider.uuid: {
            "name": provider.name,
            "parent": provider.parent,
            "root": roots[provider.uuid],
            "generation": provider.generation,
            "traits": sorted(provider.traits),
            "resources": {
                name: {"capacity": inventory.capacity, "used": used.get((provider.uuid, name), 0)}
                for name, inventory in sorted(provider.inventories.items())
            },
        }
        for provider in sorted(world.providers, key=lambda provider: provider.name)
    }


def _allotted(answer: Answer) -> set[str]:
    """Return the UUIDs of the providers that candidates take something from."""
    return {uuid for candidate in answer.candidates for uuid in candidate["allocations"]}


def _trees_of(world: World, uuids: Collection[str]) -> World:
    roots = world.roots()
    wanted = {roots[uuid] for uuid in uuids}
    return replace(world, providers=tuple(provider for provider in world.providers if roots[provider.uuid] in wanted))


def placed_groups(requests: Sequence[Request]) -> list[tuple[str, Group]]:
    """Return the groups of a request, or of its alternatives, each with its place."""
    return [
        (f"{f'one_of[{number}].' if len(requests) > 1 else ''}groups.{group.suffix or repr('')}", group)
        for number, request in enumerate(requests)
        for group in request.groups
    ]


def refuse_unknown_trees_in_database(connection: sa.Connection, groups: Sequence[tuple[str, Group]]) -> None:
    """Raise InputError for an in_tree that is the name of no provider; groups are given with their places."""
    named = {group.in_tree for _place, group in groups if group.in_tree is not None and why_no_uuid(group.in_tree)}
    if named:
        refuse_unknown_trees(groups, read_numbers(connection, named), lambda: read_some_names(connection))


def refuse_unknown_trees(groups: Sequence[tuple[str, Group]], known: Container[str], names: Callable[[], Iterable[str]]) -> None:
    """Raise InputError for an in_tree that is not among the known names; a UUID that nobody has is a tree without providers.

    `names` are those to suggest.
    """
    mistakes = Mistakes()
    for place, group in groups:
        if group.in_tree is not None and why_no_uuid(group.in_tree) and group.in_tree not in known:
            says = f"there is no provider {group.in_tree!r}{suggest(group.in_tree, names())}"
            mistakes.add(f"{place}.in_tree", says)
    mistakes.check()


def explain_ranked(asker: Asker, requests: Sequence[Request], ranked: Ranked) -> dict[str, t.Any]:
    """Return why a request and its alternatives have only the candidates that the asker has found."""
    truncated = ranked.answer.truncated
    return explain_each(lambda request, have: _explain_in_database(asker, request, have, truncated=truncated), requests, ranked)


def explain_each(explain_one: Callable[[Request, int], dict[str, t.Any]], requests: Sequence[Request], ranked: Ranked) -> dict[str, t.Any]:
    """Return the reasons of one request; of several alternatives those of the first, and of all of them as `alternatives`."""
    counts = Counter(ranked.alternatives)
    every = [explain_one(request, counts[number]) for number, request in enumerate(requests)]
    if len(every) == 1:
        return every[0]
    says = [f"Alternative {number + 1} of {len(every)}: {' '.join(why['says'])}" for number, why in enumerate(every)]
    return {**every[0], "says": says, "alternatives": every}


def _explain_in_database(asker: Asker, request: Request, have: int, *, truncated: bool) -> dict[str, t.Any]:
    connection, holding = asker.connection, asker.holding
    if has_more_providers(connection, EXPLAINED_WHOLE):
        trees = [group.in_tree for group in request.groups if group.in_tree is not None]
        names = {reference: name for reference, (_number, _uuid, name) in read_identities(connection, trees).items()}
        named = with_names(request, read_aggregate_names(connection), names)
        return explain_from_indexes(asker, named, have, truncated=truncated, holders=partial(_read_holders, asker))
    now = read_now(connection)
    world = read_world(connection, now)
    others = {uuid: held for uuid, held in world.allocations.items() if holding is None or uuid != holding.consumer.uuid}
    owners = read_consumers(connection, others, now)
    return _explain(build_index(replace(world, allocations=others)), replace(world, allocations=others), request, have, owners)


def _explain(index: Index, world: World, request: Request, have: int, owners: Mapping[str, Consumer] | None = None) -> dict[str, t.Any]:
    """Return why a request has only `have` candidates in a world; `owners` are the consumers by UUID, where more than names is known."""

    def holders(provider: str, name: str) -> list[dict[str, t.Any]]:
        found = [(consumer, held[provider][name]) for consumer, held in world.allocations.items() if name in held.get(provider, ())]
        return [_holder((owners or {}).get(uuid) or Consumer(uuid, 0, name=world.consumer_names.get(uuid)), used) for uuid, used in found]

    return explain(index, _named_in(world, request), have, holders)


def _read_holders(asker: Asker, provider: str, name: str) -> list[dict[str, t.Any]]:
    """Return the consumers that use a class of a provider, the asker's own left out."""
    columns = "c.uuid, a.used FROM allocations a JOIN consumers c ON c.id = a.consumer_id JOIN resource_providers p ON p.id = a.provider_id"
    text = f"SELECT {columns} WHERE p.uuid = ? AND a.resource_class = ? ORDER BY c.uuid"
    used = dict(select_rows(asker.connection, text, (provider, name)))
    owners = read_consumers(asker.connection, [uuid for uuid in used if asker.holding is None or uuid != asker.holding.consumer.uuid])
    return [_holder(owners[uuid], used[uuid]) for uuid in sorted(owners)]


def _holder(consumer: Consumer, amount: int) -> dict[str, t.Any]:
    owner = {"project": consumer.project, "user": consumer.user, "expires_at": shown_time(consumer.expires_at)}
    return {"consumer": consumer.uuid, "name": consumer.label, **owner, "amount": amount}


def _named_in(world: World, request: Request) -> Request:
    return with_names(request, world.aggregate_names, {provider.uuid: provider.name for provider in world.providers})


def with_drained(request: Mapping[str, t.Any], drained: str | None) -> Mapping[str, t.Any]:
    """Return the arguments of a request, drained providers included where these or the task's option `drained` say so."""
    return {**request, "drained": "include" if "include" in (drained, request.get("drained")) else "exclude"}


def search_options(arguments: Mapping[str, t.Any]) -> SearchOptions:
    """Return how the arguments want candidates to be looked for."""
    return SearchOptions(arguments["distinct"], arguments["order"], arguments["budget"])


def describe(ranked: Ranked, arguments: Mapping[str, t.Any], why: Callable[[], dict[str, t.Any]]) -> dict[str, t.Any]:
    """Return an answer as the task's result."""
    answer = ranked.answer
    result = {"candidates": answer.candidates, "truncated": answer.truncated, "names": _names(answer)}
    if arguments.get("one_of") is not None:
        result["alternatives"] = list(ranked.alternatives)
    if len(answer.candidates) < arguments["explain_below"]:
        reasons = why()
        result.update(why=reasons, msg=" ".join(reasons["says"]))
    return result


def parse_request(arguments: Mapping[str, t.Any], known: KnownNames) -> list[Request]:
    """Return the request of the arguments, or its alternatives, made of the names that exist. Raises InputError."""
    _check_counts(arguments)
    entries = arguments.get("one_of")
    if entries is None:
        return [_parse_one(arguments, known)]
    if not entries:
        raise InputError([Mistake("one_of", "is empty; must be a list of requests")])
    found, mistakes = [], Mistakes()
    for number, entry in enumerate(entries):
        own = {key: entry.get(key) for key in ASKED_KEYS}
        try:
            found.append(_parse_one({**arguments, **own, **_wishes(arguments, own)}, known))
        except InputError as error:
            for mistake in error.mistakes:
                mistakes.add(f"one_of[{number}].{mistake.place}", mistake.says)
    mistakes.check()
    return found


_WISHES = ("with", "not_with", "prefer")


def _wishes(arguments: Mapping[str, t.Any], own: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return what an alternative wishes: what it says itself, or else what all of them wish."""
    return {key: arguments.get(key) if own[key] is None else own[key] for key in _WISHES}


def _parse_one(arguments: Mapping[str, t.Any], known: KnownNames) -> Request:
    if arguments["query"] is None:
        request = parse_groups(arguments, known)
    else:
        request = parse_query(arguments["query"], known)
        request = request if arguments["limit"] is None else replace(request, limit=bounded_limit(arguments["limit"]))
    return replace(with_wishes(request, arguments, known), drained=arguments.get("drained") == "include")


def parse_request_in_database(connection: sa.Connection, arguments: Mapping[str, t.Any]) -> list[Request]:
    """Return the same; the database is asked for its own names only if the request has names that are not standard."""
    try:
        return parse_request(arguments, known_names())
    except InputError:
        return parse_request(arguments, read_known_names(connection))


def _check_counts(arguments: Mapping[str, t.Any]) -> None:
    mistakes = Mistakes()
    refuse_less(arguments, {"budget": 1, "explain_below": 0, "limit": 1}, mistakes)
    mistakes.check()


def _names(answer: Answer) -> dict[str, str]:
    found = {
        uuid: index.providers[index.positions[uuid]].name
        for candidate, (index, _root) in zip(answer.candidates, answer.anchors, strict=True)
        for uuids in candidate["mappings"].values()
        for uuid in uuids
    }
    return dict(sorted(found.items()))
