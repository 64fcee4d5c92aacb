# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task `provider_candidates`: from its arguments to its result."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ...common.errors import Mistakes
from ...common.fields import refuse_less
from ..candidates.find import SearchOptions, find_candidates
from ..candidates.index import Index, build_index
from ..candidates.why import explain
from ..candidates.write import Candidate
from ..ledger.open import load_world
from ..request.groups import parse_groups
from ..request.model import Request
from ..request.query import parse_query
from ..world.model import World
from ..world.names import KnownNames
from ..world.parse import parse_world
from .provider import timeout_of


def run_provider_candidates(arguments: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the candidates, the names of their providers, and the reasons where there are fewer than `explain_below`.

    Raises InputError and Unavailable.
    """
    index = build_index(_world(arguments))
    return find_in_index(index, parse_request(arguments, index.known), arguments)


def find_in_index(index: Index, request: Request, arguments: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the same of a world and a request that have been read already."""
    answer = find_candidates(index, request, SearchOptions(arguments["distinct"], arguments["order"], arguments["budget"]))
    result = {
        "candidates": answer.candidates,
        "truncated": answer.truncated,
        "names": _names(index, answer.candidates),
    }
    if len(answer.candidates) < arguments["explain_below"]:
        why = explain(index, request, have=len(answer.candidates))
        result.update(why=why, msg=" ".join(why["says"]))
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


def _world(arguments: Mapping[str, t.Any]) -> World:
    return load_world(arguments["database"], timeout_of(arguments)) if arguments["world"] is None else parse_world(arguments["world"])


def _names(index: Index, candidates: Iterable[Candidate]) -> dict[str, str]:
    uuids = {uuid for candidate in candidates for found in candidate["mappings"].values() for uuid in found}
    return {uuid: index.providers[index.positions[uuid]].name for uuid in sorted(uuids)}
