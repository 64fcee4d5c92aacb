# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A database gives the candidates that a search of the whole world gives, the same ones in the same order, whatever it looks at first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.find import SearchOptions, find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.held import held_candidate
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.feasible import parts, roots
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.feasible.parts import Asker
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.audit import audit
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import ledger_of
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.read import read_holdings
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.worlds import read_neighbourhood
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.groups import parse_groups
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.model import World
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from ansible_collections.bareon.allocator.tests.support.provider.refill import refill
from ansible_collections.bareon.allocator.tests.support.provider.strategies import CONSUMER, cases, crowded
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

SIZES = {
    "as they are": {},
    "one by one": {"_FIRST_PAGE": 1, "_LARGEST_PAGE": 1, "_FIRST_TREES": 1, "_MOST_TREES": 1},
    "in steps": {"_FIRST_TREES": 1, "_STEPS": 2},
    "all that do, soon": {"_FIRST_PAGE": 1, "_LARGEST_PAGE": 2, "_WALKED_AT_LEAST": 1, "_FEW": 1, "_COUNTED": (1, 2)},
    "too many to sort": {"_FIRST_PAGE": 1, "_LARGEST_PAGE": 2, "_WALKED_AT_LEAST": 1, "_FEW": 1, "_MOST_SORTED": 1},
}


@pytest.fixture(params=list(SIZES))
def sizes(request, monkeypatch):
    for name, value in SIZES[request.param].items():
        monkeypatch.setattr(parts if hasattr(parts, name) else roots, name, value)


@pytest.fixture(scope="module")
def ledger():
    with ledger_of(World(())) as opened:
        yield opened


COMMON = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture]


@given(
    case=st.one_of(cases(), crowded()),
    order=st.sampled_from(["none", "none", "spread", "pack"]),
    limit=st.sampled_from([None, 1, 2, 5]),
    distinct=st.sampled_from(["allocations", "mappings"]),
    asks_again=st.booleans(),
)
@settings(deadline=None, max_examples=examples(250), suppress_health_check=COMMON)
def test_a_database_finds_what_the_whole_world_has(ledger, sizes, case, order, limit, distinct, asks_again):
    data, ask = case
    world = parse_world(data)
    known = world.known_names()
    try:
        request = parse_groups({**ask, "limit": limit}, known)
    except InputError:
        assume(False)
    options = SearchOptions(distinct, order)
    seen = replace(world, allocations={}) if asks_again else world
    expected = find_candidates(build_index(seen), request, options)
    ledger.write(lambda connection: refill(connection, world))
    assert "lost" not in {finding.kind for finding in ledger.read(audit)}

    def find(connection):
        holding = read_holdings(connection, [CONSUMER]).get(CONSUMER) if asks_again else None
        return Asker(connection, holding).find(request, options)

    assert ledger.read(find) == expected


@given(case=st.one_of(cases(), crowded()), data=st.data())
@settings(deadline=None, max_examples=examples(150), suppress_health_check=COMMON)
def test_the_trees_around_what_is_held_tell_whether_it_is_a_candidate(ledger, case, data):
    world, ask = case
    empty = parse_world({**world, "allocations": {}})
    try:
        request = parse_groups(ask, empty.known_names())
    except InputError:
        assume(False)
    possible = find_candidates(build_index(empty), request).candidates
    assume(possible)
    held = data.draw(st.sampled_from(possible))["allocations"]
    ledger.write(lambda connection: refill(connection, replace(empty, allocations={CONSUMER: held})))
    near = ledger.read(lambda connection: read_neighbourhood(connection, read_holdings(connection, [CONSUMER])[CONSUMER]))
    assert [candidate["allocations"] for candidate in held_candidate(near, held, request, budget=10_000).candidates] == [held]
