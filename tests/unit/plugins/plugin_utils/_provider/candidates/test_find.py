# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Candidates by hand: orders, limits, budgets, interchangeable groups, splitting, isolation, and impossible requests told quickly."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.find import SearchOptions, find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.groups import parse_groups
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import provider_uuid
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world

ROOT = Path(__file__).parents[6]
CONSUMER = "2dc5cec5-9a3e-5c00-b7d0-ec8d9303f554"


def host(name, total=8, children=(), **others):
    """A host, and children below it as {name: total}, all of VCPU."""
    return [
        {"name": name, "inventories": {"VCPU": total} if total else {}, **others},
        *({"name": child, "parent": name, "inventories": {"VCPU": inventory}} for child, inventory in dict(children).items()),
    ]


def ask(providers, manner=None, used=None, **arguments):
    index = build_index(parse_world({"providers": providers, "allocations": {CONSUMER: used} if used else {}}))
    return find_candidates(index, parse_groups(arguments, index.known), manner), {p.uuid: p.name for p in index.providers}


def named(result):
    """The allocations of an answer, in order, by the providers' names."""
    answer, names = result
    return [{names[uuid]: amounts for uuid, amounts in candidate["allocations"].items()} for candidate in answer.candidates]


ONE_VCPU = {"": {"resources": {"VCPU": 1}}}


def test_none_goes_by_name_whatever_the_order_of_the_providers():
    providers = [*host("b"), *host("c"), *host("a")]
    assert [list(found) for found in named(ask(providers, groups=ONE_VCPU))] == [["a"], ["b"], ["c"]]


@pytest.mark.parametrize(
    ("member_of", "found"),
    [(["x"], ["nic"]), (["y"], ["nic"]), (["x", "y"], ["nic"]), (["x", "z"], []), ([["x", "z"], "y"], ["nic"])],
)
def test_each_aggregate_may_be_that_of_the_provider_or_of_its_root(member_of, found):
    providers = [
        {"name": "host", "aggregates": ["y"]},
        {"name": "nic", "parent": "host", "inventories": {"VCPU": 1}, "aggregates": ["x"]},
        {"name": "other", "aggregates": ["z"]},
    ]
    unsuffixed = {"": {"resources": {"VCPU": 1}, "member_of": member_of}}
    assert [list(candidate) for candidate in named(ask(providers, groups=unsuffixed))] == [[name] for name in found]
    granular = {"_A": {"resources": {"VCPU": 1}, "member_of": member_of}}
    assert len(named(ask(providers, groups=granular))) == (member_of == ["x"])


def test_spread_takes_the_least_used_first_and_every_tree_before_a_second_of_any():
    providers = [*host("a", 0, {"a1": 8, "a2": 8}), *host("b", 0, {"b1": 8, "b2": 8})]
    used = {"a1": {"VCPU": 1}, "b1": {"VCPU": 4}, "b2": {"VCPU": 2}}
    assert [list(found) for found in named(ask(providers, SearchOptions(order="spread"), used, groups=ONE_VCPU))] == [
        ["a2"],
        ["b2"],
        ["a1"],
        ["b1"],
    ]


def test_pack_takes_the_most_used_first_and_tree_after_tree():
    providers = [*host("a", 0, {"a1": 8, "a2": 8}), *host("b", 0, {"b1": 8, "b2": 8})]
    used = {"a1": {"VCPU": 1}, "b1": {"VCPU": 4}, "b2": {"VCPU": 2}}
    assert [list(found) for found in named(ask(providers, SearchOptions(order="pack"), used, groups=ONE_VCPU))] == [
        ["b1"],
        ["b2"],
        ["a1"],
        ["a2"],
    ]


def test_what_the_request_itself_takes_counts_for_the_order():
    providers = [*host("a", 4), *host("b", 16)]
    assert [list(found) for found in named(ask(providers, SearchOptions(order="spread"), groups=ONE_VCPU))] == [["b"], ["a"]]
    assert [list(found) for found in named(ask(providers, SearchOptions(order="pack"), groups=ONE_VCPU))] == [["a"], ["b"]]


def test_score_is_the_mean_share_in_use_afterwards():
    answer, _names = ask([*host("a", 8), *host("b", 16)], used={"a": {"VCPU": 3}}, groups=ONE_VCPU)
    assert [candidate["score"] for candidate in answer.candidates] == [4 / 8, 1 / 16]
    groups = {"A": {"resources": {"VCPU": 1}}, "B": {"resources": {"VCPU": 1}}}
    answer, _names = ask(host("a", 8), groups=groups)
    assert [candidate["score"] for candidate in answer.candidates] == [2 / 8]


def test_interchangeable_groups_are_counted_once():
    providers = host("a", 0, {f"gpu{number}": 1 for number in range(8)})
    groups = {f"G{number}": {"resources": {"VCPU": 1}} for number in range(6)}
    answer, _names = ask(providers, groups=groups)
    assert len(answer.candidates) == 28
    answer, _names = ask(providers, SearchOptions(distinct="mappings"), groups=groups, limit=100)
    assert len(answer.candidates) == 100


@pytest.mark.parametrize("distinct", ["allocations", "mappings"])
@pytest.mark.parametrize("policy", ["none", "isolate"])
@pytest.mark.parametrize("devices", [8, 30])
def test_one_group_too_many_is_seen_at_once(distinct, policy, devices):
    providers = host("a", 0, {f"gpu{number:02}": 1 if policy == "none" else 100 for number in range(devices)})
    groups = {f"G{number}": {"resources": {"VCPU": 1}} for number in range(devices + 1)}
    start = time.process_time()
    answer, _names = ask(providers, SearchOptions(distinct=distinct), groups=groups, group_policy=policy)
    assert answer.candidates == []
    assert not answer.truncated
    assert time.process_time() - start < 1


def test_isolated_groups_that_leave_no_provider_for_the_others_are_seen_at_once():
    providers = host("a", 0, {f"gpu{number}": 100 for number in range(10)})
    groups = {f"G{number}": {"resources": {"VCPU": 1 + number}} for number in range(11)}
    isolated = [f"G{number}" for number in range(10)]
    answer, _names = ask(providers, SearchOptions(distinct="mappings", budget=1000), groups=groups, isolate=isolated)
    assert answer.candidates == []
    assert not answer.truncated


@pytest.mark.parametrize("distinct", ["allocations", "mappings"])
def test_too_many_large_pieces_are_seen_at_once_even_if_the_sum_is_free(distinct):
    providers = host("a", 0, {f"gpu{number}": 3 for number in range(10)})
    groups = {f"G{number}": {"resources": {"VCPU": 1 if number < 6 else 2}} for number in range(18)}
    answer, _names = ask(providers, SearchOptions(distinct=distinct, budget=1000), groups=groups)
    assert answer.candidates == []
    assert not answer.truncated


def test_as_many_interchangeable_groups_as_devices_have_one_candidate():
    providers = host("a", 0, {f"gpu{number:02}": 1 for number in range(30)})
    answer, _names = ask(providers, groups={f"G{number}": {"resources": {"VCPU": 1}} for number in range(30)})
    assert len(answer.candidates) == 1
    assert not answer.truncated


def test_a_provider_that_shrank_below_its_use_does_not_count_against_the_others():
    providers = [
        {"name": "a"},
        {"name": "full", "parent": "a", "inventories": {"VCPU": {"total": 50}, "FPGA": 1}},
        {"name": "free", "parent": "a", "inventories": {"VCPU": 4, "FPGA": 1}},
    ]
    groups = {f"G{number}": {"resources": {"VCPU": 1}} for number in range(3)}
    groups.update({f"F{number}": {"resources": {"FPGA": 1}} for number in range(2)})
    (found,) = named(ask(providers, used={"full": {"VCPU": 60}}, groups=groups))
    assert found == {"free": {"VCPU": 3, "FPGA": 1}, "full": {"FPGA": 1}}


def test_a_spent_budget_is_told():
    providers = host("a", 0, {f"gpu{number}": 100 for number in range(8)})
    groups = {f"G{number}": {"resources": {"VCPU": number + 1}} for number in range(8)}
    answer, _names = ask(providers, SearchOptions(distinct="mappings", budget=5000), groups=groups)
    assert answer.truncated
    assert 0 < len(answer.candidates) <= 5000


def test_splitting_takes_few_parts_first_and_fills_the_first_by_name():
    providers = host("a", 0, {"numa0": 4, "numa1": 8, "numa2": 2})
    found = named(ask(providers, groups={"": {"resources": {"VCPU": 6}}}, can_split=["VCPU"]))
    assert found == [
        {"numa1": {"VCPU": 6}},
        {"numa0": {"VCPU": 4}, "numa1": {"VCPU": 2}},
        {"numa0": {"VCPU": 4}, "numa2": {"VCPU": 2}},
        {"numa1": {"VCPU": 5}, "numa2": {"VCPU": 1}},
        {"numa0": {"VCPU": 4}, "numa1": {"VCPU": 1}, "numa2": {"VCPU": 1}},
    ]


def test_every_part_of_a_split_keeps_to_its_providers_units():
    providers = [
        {"name": "a"},
        {"name": "numa0", "parent": "a", "inventories": {"VCPU": {"total": 8, "min_unit": 3, "step_size": 4}}},
        {"name": "numa1", "parent": "a", "inventories": {"VCPU": {"total": 8, "max_unit": 2}}},
    ]
    found = named(ask(providers, groups={"": {"resources": {"VCPU": 5}}}, can_split=["VCPU"]))
    assert found == [{"numa0": {"VCPU": 4}, "numa1": {"VCPU": 1}}]
    found = named(ask(providers, groups={"": {"resources": {"VCPU": 7}}}, can_split=["VCPU"]))
    assert found == []


def test_isolate_some_groups_only():
    providers = host("a", 0, {"numa0": 8, "numa1": 8})
    groups = {"A": {"resources": {"VCPU": 1}}, "B": {"resources": {"VCPU": 2}}, "C": {"resources": {"VCPU": 4}}}
    found = named(ask(providers, groups=groups, isolate=["A"]))
    assert {frozenset((name, amounts["VCPU"]) for name, amounts in entry.items()) for entry in found} == {
        frozenset({("numa0", 1), ("numa1", 6)}),
        frozenset({("numa1", 1), ("numa0", 6)}),
    }


def test_a_group_kept_out_of_a_subtree():
    providers = [
        {"name": "a"},
        *({"name": f"numa{n}", "parent": "a", "inventories": {"VCPU": 4}} for n in range(2)),
        *({"name": f"fpga{n}", "parent": f"numa{n}", "inventories": {"FPGA": 1}} for n in range(2)),
    ]
    groups = {"C": {"resources": {"VCPU": 1}}, "F": {"resources": {"FPGA": 1}}}
    assert [sorted(found) for found in named(ask(providers, groups=groups, same_subtree=[["C", "F"]]))] == [
        ["fpga0", "numa0"],
        ["fpga1", "numa1"],
    ]
    assert [sorted(found) for found in named(ask(providers, groups=groups, same_subtree=[["C", "!F"]]))] == [
        ["fpga1", "numa0"],
        ["fpga0", "numa1"],
    ]


def test_no_provider_at_all():
    answer, _names = ask([], groups=ONE_VCPU)
    assert answer.candidates == []


ORDERS = """
import json
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.find import SearchOptions, find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.query import parse_query
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
children = [{"name": f"h{n}c{m}", "parent": f"h{n}", "inventories": {"VCPU": 4 + m, "MEMORY_MB": 8}} for n in range(9) for m in range(3)]
index = build_index(parse_world({"providers": [*({"name": f"h{n}"} for n in range(9)), *children]}))
request = parse_query("resources=VCPU:1&resources_A=VCPU:1,MEMORY_MB:2&resources_B=MEMORY_MB:2", index.known)
print(json.dumps([find_candidates(index, request, SearchOptions(order=order)).candidates for order in ("none", "spread", "pack")]))
"""


def test_every_process_gives_the_same_order():
    answers = {
        subprocess.run(
            [sys.executable, "-c", ORDERS],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / ".venv" / "collections")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(answers) == 1
    assert provider_uuid("h0c0") in answers.pop()
