# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The task `provider_capacity`: from its arguments to its result."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..._common.libraries import sa
from ..arguments import REQUEST_ARGUMENTS
from ..candidates.capacity import count_copies
from ..candidates.find import SearchOptions
from ..feasible.parts import Asker
from ..ledger.neighbours import at_neighbours
from ..ledger.plain import Plain
from ..request.model import MOST_CANDIDATES
from .candidates import parse_request_in_database, placed_groups, refuse_unknown_trees_in_database
from .provider import task_ledger

_USUAL = {name: spec.get("default") for name, spec in REQUEST_ARGUMENTS.items()}


def run_provider_capacity(arguments: Mapping[str, t.Any], *, rehearsal: Path | None = None) -> Plain:
    """Return how many consumers with a request fit. Raises InputError and Unavailable."""
    with task_ledger(arguments, dry_run=True, rehearsal=rehearsal) as ledger:
        return ledger.read(lambda connection: _count(connection, {**_USUAL, **arguments}))


def _count(connection: sa.Connection, arguments: Mapping[str, t.Any]) -> Plain:
    requests = parse_request_in_database(connection, arguments)
    refuse_unknown_trees_in_database(connection, placed_groups(requests))
    (request,) = requests
    asked = replace(at_neighbours(connection, request), limit=MOST_CANDIDATES)
    answer = Asker(connection).find(asked, SearchOptions(budget=arguments["budget"]))
    capacity = count_copies(answer)
    # Of what is split, the search finds the fewest parts alone.
    exact = not answer.truncated and not request.can_split and capacity.count == capacity.most
    return {"changed": False, "count": capacity.count, "exact": exact, "by_root": dict(capacity.by_root)}
