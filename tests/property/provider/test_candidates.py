# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On small worlds the search finds exactly what trying everything finds, for every feature and all search options."""

from __future__ import annotations

import random

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils.common.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.candidates.find import SearchOptions, find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.candidates.held import held_candidate
from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.request.groups import parse_groups
from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.world.names import provider_uuid
from ansible_collections.bareon.allocator.plugins.plugin_utils.provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.provider.oracle import SHARES, brute_force
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

CLASSES = ["VCPU", "DISK_GB"]
TRAITS = ["CUSTOM_A", "CUSTOM_B"]
AGGREGATES = [provider_uuid(f"aggregate {number}") for number in range(3)]
CONSUMER = provider_uuid("consumer")
COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])


def subset(values, most):
    return st.lists(st.sampled_from(values), max_size=most, unique=True)


@st.composite
def inventories(draw):
    found = {}
    for name in draw(st.lists(st.sampled_from(CLASSES), min_size=1, max_size=2, unique=True)):
        found[name] = {
            "total": draw(st.integers(2, 8)),
            "reserved": 0,
            "min_unit": draw(st.sampled_from([1, 1, 1, 2])),
            "max_unit": draw(st.sampled_from([100, 100, 3])),
            "step_size": draw(st.sampled_from([1, 1, 2, 3])),
            "allocation_ratio": draw(st.sampled_from([1.0, 1.0, 1.5])),
        }
    return found


@st.composite
def worlds(draw):
    count = draw(st.integers(2, 6))
    uuids = [provider_uuid(f"provider {number}") for number in range(count)]
    providers = []
    for number, uuid in enumerate(uuids):
        parent = draw(st.sampled_from([*uuids[:number], None])) if number else None
        sharing = [SHARES] if draw(st.integers(0, 4)) == 4 else []
        providers.append(
            {
                "uuid": uuid,
                "name": f"{draw(st.sampled_from('abc'))}{number}",
                "parent": parent,
                "inventories": {} if draw(st.integers(0, 5)) == 5 else draw(inventories()),
                "traits": draw(subset(TRAITS, 2)) + sharing,
                "aggregates": draw(subset(AGGREGATES, 2)),
            }
        )
    held = {}
    for provider in providers:
        amounts = {name: draw(st.integers(1, 3)) for name in provider["inventories"] if draw(st.integers(0, 3)) == 3}
        if amounts:
            held[provider["uuid"]] = amounts
    return {"providers": providers, "allocations": {CONSUMER: held} if held else {}, "custom_traits": TRAITS, "custom_classes": []}


@st.composite
def groups(draw, uuids, resourceless):
    group = {}
    if not resourceless:
        classes = draw(st.lists(st.sampled_from(CLASSES), min_size=1, max_size=2, unique=True))
        group["resources"] = {name: draw(st.sampled_from([1, 2, 3, 4])) for name in classes}
    kind = draw(st.integers(0, 11))
    if kind == 1:
        group["required"] = draw(st.lists(st.sampled_from(TRAITS), min_size=1, max_size=2, unique=True))
    elif kind == 2:
        group["any_of"] = [TRAITS]
    elif kind == 3:
        group["forbidden"] = draw(subset(TRAITS, 1))
    elif kind == 4:
        group["member_of"] = [draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=2, unique=True))]
    elif kind == 5:
        group["not_member_of"] = draw(subset(AGGREGATES, 1))
    elif kind == 6:
        group["in_tree"] = draw(st.sampled_from([*uuids, AGGREGATES[0]]))
    return group


@st.composite
def requests(draw, world):
    uuids = [provider["uuid"] for provider in world["providers"]]
    suffixes = ["A", "B", "C"][: draw(st.sampled_from([2, 3, 1, 0]))]
    resourceless = [suffix for suffix in suffixes[1:] if draw(st.integers(0, 4)) == 4]
    asked = {suffix: draw(groups(uuids, suffix in resourceless)) for suffix in suffixes}
    if not suffixes or draw(st.booleans()):
        asked[""] = draw(groups(uuids, False))
    if len(suffixes) > 1 and draw(st.integers(0, 3)) == 3:
        asked[suffixes[1]] = {**asked[suffixes[0]]}
    ask = {"groups": asked}
    subtrees = draw(st.lists(st.lists(st.sampled_from(suffixes), min_size=1, max_size=3, unique=True), max_size=2)) if suffixes else []
    lonely = [suffix for suffix in resourceless if not asked[suffix].get("resources") and all(suffix not in entry for entry in subtrees)]
    if lonely:
        subtrees.append([suffixes[0], *lonely])
    if subtrees:
        ask["same_subtree"] = [_deny_some(draw, entry) for entry in subtrees]
    kind = draw(st.integers(0, 4))
    if kind == 1:
        ask["group_policy"] = "isolate"
    elif kind == 2 and suffixes:
        ask["isolate"] = [draw(st.lists(st.sampled_from(suffixes), min_size=1, max_size=2, unique=True))]
    kind = draw(st.integers(0, 12))
    if kind == 1:
        ask["root_required"] = draw(subset(TRAITS, 1))
    elif kind == 2:
        ask["root_forbidden"] = draw(subset(TRAITS, 1))
    elif kind == 3:
        ask["root_member_of"] = [draw(st.sampled_from([AGGREGATES[:1], AGGREGATES[0], f"!{AGGREGATES[0]}"]))]
    if "" in asked and draw(st.integers(0, 3)) == 0:
        ask["can_split"] = draw(st.lists(st.sampled_from(sorted(asked[""]["resources"])), min_size=1, max_size=2, unique=True))
    return ask


def _deny_some(draw, suffixes):
    return [suffixes[0], *(f"!{suffix}" if draw(st.integers(0, 3)) == 0 else suffix for suffix in suffixes[1:])]


def as_sets(candidates):
    return [
        (
            frozenset((uuid, name, amount) for uuid, amounts in candidate["allocations"].items() for name, amount in amounts.items()),
            frozenset((suffix, uuid) for suffix, uuids in candidate["mappings"].items() for uuid in uuids),
        )
        for candidate in candidates
    ]


@st.composite
def cases(draw):
    world = draw(worlds())
    return world, draw(requests(world))


@given(case=cases(), order=st.sampled_from(["none", "spread", "pack"]))
@settings(COMMON, max_examples=600)
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


@st.composite
def crowded(draw):
    """One host with devices, and more groups that want them than comfortable."""
    host = provider_uuid("host")
    providers = [{"uuid": host, "name": "host", "parent": None, "inventories": {}, "traits": [], "aggregates": []}]
    fields = {"reserved": 0, "min_unit": 1, "max_unit": 100, "allocation_ratio": 1.0}
    for number in range(draw(st.integers(1, 4))):
        inventory = {**fields, "total": draw(st.integers(1, 5)), "step_size": draw(st.sampled_from([1, 1, 1, 2]))}
        device = {"uuid": provider_uuid(f"device{number}"), "name": f"device{number}", "parent": host, "traits": draw(subset(TRAITS, 1))}
        providers.append({**device, "inventories": {"VCPU": inventory}, "aggregates": []})
    used = {providers[1]["uuid"]: {"VCPU": draw(st.integers(1, 6))}} if draw(st.booleans()) else {}
    world = {"providers": providers, "allocations": {CONSUMER: used} if used else {}, "custom_traits": TRAITS, "custom_classes": []}
    asked = {}
    for suffix in "ABCDE"[: draw(st.integers(3, 5))]:
        asked[suffix] = {"resources": {"VCPU": draw(st.sampled_from([1, 1, 2, 3]))}}
        if draw(st.integers(0, 4)) == 4:
            asked[suffix]["required"] = TRAITS[:1]
    ask = {"groups": asked}
    kind = draw(st.integers(0, 3))
    if kind == 1:
        ask["group_policy"] = "isolate"
    elif kind == 2:
        ask["isolate"] = [draw(st.lists(st.sampled_from(sorted(asked)), min_size=1, max_size=2, unique=True))]
    return world, ask


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
    for uuid, name, amount in parts:
        found.setdefault(uuid, {})[name] = amount
    return found


@given(case=st.one_of(cases(), crowded()), data=st.data())
@settings(COMMON, max_examples=400)
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
@settings(COMMON, max_examples=200)
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
@settings(COMMON, max_examples=150)
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
@settings(COMMON, max_examples=100)
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
@settings(COMMON, max_examples=100)
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
@settings(COMMON, max_examples=100)
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
