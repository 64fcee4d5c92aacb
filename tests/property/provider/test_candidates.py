# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On small worlds the search finds exactly what trying everything finds, for every feature and all search options."""

from __future__ import annotations

import random
import uuid

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.exclusion import restricted
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.find import SearchOptions, find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.held import held_candidate
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.groups import parse_groups
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from ansible_collections.bareon.allocator.tests.support.provider.oracle import brute_force
from ansible_collections.bareon.allocator.tests.support.provider.strategies import CLASSES, cases, crowded, subset
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])


def as_sets(candidates):
    return [
        (
            frozenset((uuid, name, amount) for uuid, amounts in candidate["allocations"].items() for name, amount in amounts.items()),
            frozenset((suffix, uuid) for suffix, uuids in candidate["mappings"].items() for uuid in uuids),
        )
        for candidate in candidates
    ]


@given(case=cases(), order=st.sampled_from(["none", "spread", "pack"]))
@settings(COMMON, max_examples=examples(600))
def test_search_agrees_with_brute_force(case, order):
    world, ask = case
    index = build_index(parse_world(world))
    try:
        request = parse_groups(ask, index.known)
    except InputError:
        assume(False)
    expected = brute_force(world, ask)
    answer = find_candidates(index, request, SearchOptions(distinct="mappings", order=order))
    found = as_sets(answer.candidates)
    assert not answer.truncated
    assert len(found) == len(set(found))
    assert set(found) == expected
    once = [allocations for allocations, _mappings in as_sets(find_candidates(index, request, SearchOptions(order=order)).candidates)]
    assert len(once) == len(set(once))
    assert set(once) == {allocations for allocations, _mappings in expected}


def roomy(world):
    """The same world with so much of everything everywhere that only the rules between providers count."""
    plenty = {"total": 1000, "reserved": 0, "min_unit": 1, "max_unit": 1000, "step_size": 1, "allocation_ratio": 1.0}
    return {
        **world,
        "providers": [{**entry, "inventories": dict.fromkeys(CLASSES, plenty)} for entry in world["providers"]],
        "allocations": {},
    }


def as_allocations(parts):
    found = {}
    for provider, name, amount in parts:
        found.setdefault(provider, {})[name] = amount
    return found


@given(case=st.one_of(cases(), crowded()), data=st.data())
@settings(COMMON, max_examples=examples(400))
def test_what_is_held_is_known_again(case, data):
    """Whatever trying everything finds is kept by who has it, full or not; what no candidate is, is not."""
    world, ask = case
    parsed = parse_world(world)
    try:
        request = parse_groups(ask, parsed.known_names())
    except InputError:
        assume(False)
    possible = {allocations for allocations, _mappings in brute_force(world, ask)}
    if possible:
        held = as_allocations(data.draw(st.sampled_from(sorted(possible, key=sorted))))
        answer = held_candidate(parsed, held, request, budget=10_000)
        assert [candidate["allocations"] for candidate in answer.candidates] == [held]
    assume(not ask.get("can_split"))
    anywhere = {allocations for allocations, _mappings in brute_force(roomy(world), ask)}
    uuids = [provider["uuid"] for provider in world["providers"]]
    guess = {uuid: {name: data.draw(st.integers(1, 4)) for name in data.draw(subset(CLASSES, 2))} for uuid in data.draw(subset(uuids, 3))}
    if anywhere and data.draw(st.booleans()):
        guess = as_allocations(data.draw(st.sampled_from(sorted(anywhere, key=sorted))))
        moved = dict(zip(uuids, data.draw(st.permutations(uuids)), strict=True))
        guess = {moved[uuid]: amounts for uuid, amounts in guess.items()}
    guess = {uuid: amounts for uuid, amounts in guess.items() if amounts}
    is_candidate = frozenset((uuid, name, amount) for uuid, amounts in guess.items() for name, amount in amounts.items()) in anywhere
    assert bool(held_candidate(parsed, guess, request, budget=10_000).candidates) == is_candidate


@given(case=crowded())
@settings(COMMON, max_examples=examples(200))
def test_bounds_and_interchange_drop_nothing_where_groups_compete(case):
    world, ask = case
    index = build_index(parse_world(world))
    request = parse_groups(ask, index.known)
    expected = brute_force(world, ask)
    assert set(as_sets(find_candidates(index, request, SearchOptions(distinct="mappings")).candidates)) == expected
    once = [allocations for allocations, _mappings in as_sets(find_candidates(index, request).candidates)]
    assert len(once) == len(set(once))
    assert set(once) == {allocations for allocations, _mappings in expected}


@given(
    case=cases(),
    order=st.sampled_from(["none", "spread", "pack"]),
    limit=st.integers(1, 5),
    distinct=st.sampled_from(["allocations", "mappings"]),
)
@settings(COMMON, max_examples=examples(150))
def test_a_limit_takes_the_first_of_one_total_order(case, order, limit, distinct):
    world, ask = case
    index = build_index(parse_world(world))
    try:
        whole = find_candidates(index, parse_groups(ask, index.known), SearchOptions(distinct=distinct, order=order)).candidates
    except InputError:
        assume(False)
    shuffled = {**world, "providers": random.Random(limit).sample(world["providers"], len(world["providers"]))}
    again = build_index(parse_world(shuffled))
    limited = find_candidates(
        again, parse_groups({**ask, "limit": limit}, again.known), SearchOptions(distinct=distinct, order=order)
    ).candidates
    assert limited == whole[:limit]


@given(case=cases())
@settings(COMMON, max_examples=examples(100))
def test_isolating_every_suffix_is_group_policy_isolate(case):
    world, ask = case
    suffixes = [suffix for suffix in ask["groups"] if suffix]
    assume(suffixes)
    index = build_index(parse_world(world))
    plain = {key: value for key, value in ask.items() if key not in ("isolate", "group_policy")}
    try:
        subsets = find_candidates(index, parse_groups({**plain, "isolate": [suffixes]}, index.known), SearchOptions(distinct="mappings"))
    except InputError:
        assume(False)
    policy = find_candidates(index, parse_groups({**plain, "group_policy": "isolate"}, index.known), SearchOptions(distinct="mappings"))
    assert subsets == policy


@given(case=cases())
@settings(COMMON, max_examples=examples(100))
def test_affinity_and_anti_affinity_part_the_candidates(case):
    world, _ask = case
    index = build_index(parse_world(world))
    asked = {"X": {"resources": {"VCPU": 1}}, "Y": {"resources": {"DISK_GB": 1}}}
    try:
        free, together, apart = (
            as_sets(
                find_candidates(
                    index, parse_groups({"groups": asked, **subtree}, index.known), SearchOptions(distinct="mappings")
                ).candidates
            )
            for subtree in ({}, {"same_subtree": [["X", "Y"]]}, {"same_subtree": [["X", "!Y"]]})
        )
    except InputError:
        pytest.fail("the requests are sound")
    assert set(free) == set(together) | set(apart)
    assert not set(together) & set(apart)


@given(case=cases(), budget=st.integers(1, 30))
@settings(COMMON, max_examples=examples(100))
def test_a_spent_budget_gives_a_prefix_and_says_so(case, budget):
    world, ask = case
    index = build_index(parse_world(world))
    try:
        request = parse_groups(ask, index.known)
    except InputError:
        assume(False)
    whole = find_candidates(index, request)
    part = find_candidates(index, request, SearchOptions(budget=budget))
    assert part.candidates == whole.candidates[: len(part.candidates)]
    assert part.truncated or part == whole


@st.composite
def alike_entries(draw):
    """A host with nodes and devices at random places, and a request for some pairs or triples that ask for the same."""
    names = [f"p{number}" for number in range(draw(st.integers(3, 5)))]
    providers = [
        {
            "uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
            "name": name,
            "parent": None if number == 0 else str(uuid.uuid5(uuid.NAMESPACE_DNS, draw(st.sampled_from(names[:number])))),
            "inventories": {
                each: {"total": total, "reserved": 0, "min_unit": 1, "max_unit": 9, "step_size": 1, "allocation_ratio": 1.0}
                for each in CLASSES[:2]
                if (total := draw(st.integers(0, 3)))
            },
            "traits": [],
            "aggregates": [],
        }
        for number, name in enumerate(names)
    ]
    entries, devices = draw(st.sampled_from([(2, 1), (2, 2), (3, 1)]))
    amounts = [draw(st.integers(1, 2)) for _unused in range(devices + 1)]
    classes = [draw(st.sampled_from(CLASSES[:2])) for _unused in range(devices + 1)]
    groups, same_subtree = {}, []
    for entry in range(entries):
        suffixes = [f"_{entry}_{number}" for number in range(devices + 1)]
        groups.update((suffix, {"resources": {name: amount}}) for suffix, name, amount in zip(suffixes, classes, amounts, strict=True))
        same_subtree.append(suffixes)
    ask = {"groups": groups, "same_subtree": same_subtree}
    if draw(st.booleans()):
        ask["isolate"] = [[suffix for suffixes in same_subtree for suffix in suffixes]]
    return {"providers": providers, "allocations": {}, "custom_traits": [], "custom_classes": []}, ask


@given(case=alike_entries())
@settings(COMMON, max_examples=150)
def test_entries_of_same_subtree_that_ask_for_the_same_lose_no_candidate(case):
    world, ask = case
    index = build_index(parse_world(world))
    request = parse_groups(ask, index.known)
    expected = {allocations for allocations, _mappings in brute_force(world, ask)}
    once = [allocations for allocations, _mappings in as_sets(find_candidates(index, request).candidates)]
    assert len(once) == len(set(once))
    assert set(once) == expected


@given(case=cases(), data=st.data())
@settings(COMMON, max_examples=examples(100))
def test_fewer_groups_are_never_harder_to_satisfy(case, data):
    """So where some of the groups have no candidate, it is these that exclude each other."""
    world, ask = case
    index = build_index(parse_world(world))
    try:
        request = parse_groups({**ask, "limit": 1}, index.known)
    except InputError:
        assume(False)
    assume(find_candidates(index, request).candidates)
    smaller = restricted(request, data.draw(st.sets(st.sampled_from([group.suffix for group in request.groups]), min_size=1)))
    assume(any(group.resources for group in smaller.groups))
    assert find_candidates(index, smaller).candidates
