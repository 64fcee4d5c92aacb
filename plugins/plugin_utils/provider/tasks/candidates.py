# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task `provider_candidates`: from its arguments to its result."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace

from ...common.errors import Mistakes, suggest
from ...common.fields import refuse_less
from ...common.libraries import sa
from ..candidates.find import Answer, SearchOptions, find_candidates
from ..candidates.index import build_index
from ..candidates.why import explain
from ..feasible.parts import Asker
from ..feasible.why import explain_from_indexes
from ..ledger.open import open_ledger
from ..ledger.read import has_more_providers, read_known_names, read_numbers, read_some_names, read_world
from ..request.groups import parse_groups
from ..request.model import Request
from ..request.query import parse_query
from ..world.names import KnownNames, why_no_uuid
from ..world.parse import parse_world
from .provider import timeout_of

EXPLAINED_WHOLE = 20_000
"""A ledger with more providers is not loaded to say why there are no candidates."""


def run_provider_candidates(arguments: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the candidates, the names of their providers, and the reasons where there are fewer than `explain_below`.

    Raises InputError and Unavailable.
    """
    if arguments["world"] is None:
        with open_ledger(arguments["database"], dry_run=True, timeout=timeout_of(arguments)) as ledger:
            return ledger.read(lambda connection: _find_in_database(connection, arguments))
    index = build_index(parse_world(arguments["world"]))
    request = parse_request(arguments, index.known)
    refuse_unknown_trees(request, index.named, lambda: index.named)
    answer = find_candidates(index, request, search_options(arguments))
    return describe(answer, arguments, lambda: explain(index, request, have=len(answer.candidates)))


def _find_in_database(connection: sa.Connection, arguments: Mapping[str, t.Any]) -> dict[str, t.Any]:
    request = parse_request(arguments, read_known_names(connection))
    refuse_unknown_trees_in_database(connection, request)
    answer = Asker(connection).find(request, search_options(arguments))
    return describe(answer, arguments, lambda: explain_in_database(connection, request, None, len(answer.candidates)))


def refuse_unknown_trees_in_database(connection: sa.Connection, request: Request) -> None:
    """Raise InputError for an in_tree that is the name of no provider."""
    named = {group.in_tree for group in request.groups if group.in_tree is not None and why_no_uuid(group.in_tree)}
    if named:
        refuse_unknown_trees(request, read_numbers(connection, named), lambda: read_some_names(connection))


def refuse_unknown_trees(request: Request, known: Container[str], names: Callable[[], Iterable[str]]) -> None:
    """Raise InputError for an in_tree that is not among the known names; a UUID that nobody has is a tree without providers.

    `names` are those to suggest.
    """
    mistakes = Mistakes()
    for group in request.groups:
        if group.in_tree is not None and why_no_uuid(group.in_tree) and group.in_tree not in known:
            says = f"there is no provider {group.in_tree!r}{suggest(group.in_tree, names())}"
            mistakes.add(f"groups.{group.suffix or repr('')}.in_tree", says)
    mistakes.check()


def explain_in_database(connection: sa.Connection, request: Request, consumer: str | None, have: int) -> dict[str, t.Any]:
    """Return why a request has only `have` candidates; what a consumer has counts as free."""
    if has_more_providers(connection, EXPLAINED_WHOLE):
        return explain_from_indexes(connection, request, have)
    world = read_world(connection)
    others = {uuid: held for uuid, held in world.allocations.items() if uuid != consumer}
    return explain(build_index(replace(world, allocations=others)), request, have=have)


def search_options(arguments: Mapping[str, t.Any]) -> SearchOptions:
    """Return how the arguments want candidates to be looked for."""
    return SearchOptions(arguments["distinct"], arguments["order"], arguments["budget"])


def describe(answer: Answer, arguments: Mapping[str, t.Any], why: Callable[[], dict[str, t.Any]]) -> dict[str, t.Any]:
    """Return an answer as the task's result."""
    result = {"candidates": answer.candidates, "truncated": answer.truncated, "names": _names(answer)}
    if len(answer.candidates) < arguments["explain_below"]:
        reasons = why()
        result.update(why=reasons, msg=" ".join(reasons["says"]))
    return result


def parse_request(arguments: Mapping[str, t.Any], known: KnownNames) -> Request:
    """Return the request of the arguments, made of the names that exist. Raises InputError."""
    _check_counts(arguments)
    if arguments["query"] is None:
        return parse_groups(arguments, known)
    request = parse_query(arguments["query"], known)
    return request if arguments["limit"] is None else replace(request, limit=arguments["limit"])


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
