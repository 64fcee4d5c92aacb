# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""with, not_with, prefer and one_of: on small worlds they find what trying everything finds, heaviest first; databases find the same."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.find import SearchOptions, find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.preferred import find_preferred
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.feasible.parts import Asker
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.neighbours import at_neighbours, at_neighbours_in
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import ledger_of
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.groups import parse_groups, with_wishes
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.model import World
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from ansible_collections.bareon.allocator.tests.support.provider.oracle import brute_force, weights
from ansible_collections.bareon.allocator.tests.support.provider.refill import refill
from ansible_collections.bareon.allocator.tests.support.provider.strategies import wishing
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
COMMON = settings(deadline=None, suppress_health_check=SLOW)


@pytest.fixture(scope="module")
def ledger():
    with ledger_of(World(())) as opened:
        yield opened


def wished(ask, known):
    try:
        return with_wishes(parse_groups(ask, known), ask, known)
    except InputError:
        assume(False)


def as_set(candidate):
    allocations = frozenset((uuid, name, amount) for uuid, amounts in candidate["allocations"].items() for name, amount in amounts.items())
    return allocations, frozenset((suffix, uuid) for suffix, uuids in candidate["mappings"].items() for uuid in uuids)


@given(case=wishing(), order=st.sampled_from(["none", "spread", "pack"]))
@settings(COMMON, max_examples=examples(300))
def test_candidates_are_those_of_trying_everything_and_the_heaviest_come_first(case, order):
    data, ask = case
    world = parse_world(data)
    index = build_index(world)
    request = at_neighbours_in(world, wished(ask, index.known))
    found = find_preferred(partial(find_candidates, index), [request], SearchOptions("mappings", order)).answer.candidates
    every = list(map(as_set, found))
    assert len(every) == len(set(every))
    assert set(every) == {*brute_force(data, ask)}
    of = weights(data, ask)
    assert [of[one] for one in every] == sorted((of[one] for one in every), reverse=True)


@given(case=wishing(), order=st.sampled_from(["none", "spread", "pack"]), limit=st.sampled_from([None, 1, 3]))
@settings(COMMON, max_examples=examples(200))
def test_a_database_finds_what_the_whole_world_has(ledger, case, order, limit):
    data, ask = case
    world = parse_world(data)
    request = wished({**ask, "limit": limit}, world.known_names())
    options = SearchOptions(order=order)
    expected = find_preferred(partial(find_candidates, build_index(world)), [at_neighbours_in(world, request)], options)
    ledger.write(lambda connection: refill(connection, world))

    def find(connection):
        return find_preferred(Asker(connection).find, [at_neighbours(connection, request)], options)

    assert ledger.read(find) == expected


@given(case=wishing(), other=st.sampled_from(["VCPU", "DISK_GB"]), limit=st.integers(1, 4))
@settings(COMMON, max_examples=examples(100))
def test_alternatives_come_one_after_the_other_and_none_twice(case, other, limit):
    data, ask = case
    world = parse_world(data)
    index = build_index(world)
    asks = [{**ask, "limit": limit}, {"groups": {"": {"resources": {other: 1}}}, "limit": limit}]
    requests = [at_neighbours_in(world, wished(one, index.known)) for one in asks]
    find = partial(find_candidates, index)
    ranked = find_preferred(find, requests, SearchOptions())
    alone = [find_preferred(find, [request], SearchOptions()).answer.candidates for request in requests]
    expected = [*alone[0], *(one for one in alone[1] if as_set(one)[0] not in {as_set(other)[0] for other in alone[0]})]
    assert ranked.answer.candidates == expected[:limit]
    assert list(ranked.alternatives) == sorted(ranked.alternatives)
    assert ranked.alternatives.count(0) == min(limit, len(alone[0]))
