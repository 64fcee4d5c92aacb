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
from ..world.parse import parse_world


def run_provider_candidates(arguments: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the candidates, the names of their providers, and the reasons where there are fewer than `explain_below`.

    Raises InputError and Unavailable.
    """
    return find_in_world(_world(arguments), arguments)


def find_in_world(world: World, arguments: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the same of a world that has been read already. Raises InputError."""
    _check_counts(arguments)
    index = build_index(world)
    request = _request(arguments, index)
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


def _check_counts(arguments: Mapping[str, t.Any]) -> None:
    mistakes = Mistakes()
    refuse_less(arguments, {"budget": 1, "explain_below": 0, "limit": 1}, mistakes)
    mistakes.check()


def _world(arguments: Mapping[str, t.Any]) -> World:
    return load_world(arguments["database"]) if arguments["world"] is None else parse_world(arguments["world"])


def _request(arguments: Mapping[str, t.Any], index: Index) -> Request:
    if arguments["query"] is None:
        return parse_groups(arguments, index.known)
    request = parse_query(arguments["query"], index.known)
    return request if arguments["limit"] is None else replace(request, limit=arguments["limit"])


def _names(index: Index, candidates: Iterable[Candidate]) -> dict[str, str]:
    uuids = {uuid for candidate in candidates for found in candidate["mappings"].values() for uuid in found}
    return {uuid: index.providers[index.positions[uuid]].name for uuid in sorted(uuids)}
