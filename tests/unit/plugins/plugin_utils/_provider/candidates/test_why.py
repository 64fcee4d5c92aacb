# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reasons: the counts are those of the search's own filters, and what is said to help does help."""

from __future__ import annotations

import os

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates import why as reasons
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.columns import column_filters, request_columns
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.find import find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.why import explain, relaxations, resource_steps
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.groups import parse_groups
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import provider_uuid
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world

NUMA0 = provider_uuid("numa0")
ZONE = "f743c90f-45d7-5765-af56-12889982af99"
CONSUMER = "2dc5cec5-9a3e-5c00-b7d0-ec8d9303f554"
WORLD = {
    "providers": [
        {"name": "host1", "traits": ["COMPUTE_NODE"], "aggregates": [ZONE]},
        {"name": "numa0", "parent": "host1", "inventories": {"VCPU": 4, "MEMORY_MB": 1024}, "traits": ["HW_NUMA_ROOT"]},
        {"name": "numa1", "parent": "host1", "inventories": {"VCPU": {"total": 8, "max_unit": 6}, "MEMORY_MB": 512}},
        {"name": "host2", "inventories": {"VCPU": 16, "MEMORY_MB": 256, "FPGA": 1}},
    ],
    "allocations": {CONSUMER: {"numa0": {"VCPU": 1}}},
    "custom_traits": ["CUSTOM_RARE"],
}


def why(have=0, **arguments):
    index = build_index(parse_world(WORLD))
    request = parse_groups(arguments, index.known)
    assert len(find_candidates(index, request).candidates) == have
    return explain(index, request, have)


def lefts(entry):
    return [(constraint["kind"], constraint["left"]) for constraint in entry["constraints"]]


def test_a_funnel_for_each_group_with_the_first_empty_constraint():
    found = why(groups={"A": {"resources": {"VCPU": 5}, "required": ["HW_NUMA_ROOT"]}})
    assert lefts(found["groups"]["A"][0]) == [("inventory", 3), ("unit", 3), ("required", 1), ("room", 0)]
    first = {"where": "group", "group": "A", "kind": "room", "says": "has 5 VCPU free", "before": 1, "what": "trait HW_NUMA_ROOT"}
    assert found["first"] == first
    absent = why(groups={"A": {"resources": {"VCPU": 5}, "required": ["CUSTOM_RARE"]}})
    assert lefts(absent["groups"]["A"][0]) == [("inventory", 3), ("unit", 3), ("required", 0), ("room", 0)]
    assert absent["first"] == {"where": "group", "group": "A", "kind": "required", "says": "trait CUSTOM_RARE", "before": 3}
    assert absent["says"][0] == "Group A: no provider is left after: trait CUSTOM_RARE (3 before)."
    assert absent["busy"] == []


def test_who_uses_what_is_asked_for_is_named_with_the_claims_that_would_have_to_end():
    users = [("x", "nightly", "red", 3), ("y", "ci", None, 1)]
    keys = ("consumer", "name", "project", "amount", "user")
    used_by = [dict(zip(keys, (*user, None), strict=True)) for user in users]
    index = build_index(parse_world(WORLD))
    request = parse_groups({"groups": {"A": {"resources": {"VCPU": 4}, "required": ["HW_NUMA_ROOT"]}}}, index.known)
    found = explain(index, request, holders=lambda provider, name: used_by if (provider, name) == (NUMA0, "VCPU") else [])
    (busy,) = found["busy"]
    assert (busy["group"], busy["name"], busy["resource_class"], busy["free"]) == ("A", "numa0", "VCPU", 3)
    assert [(entry["name"], entry["enough"]) for entry in busy["used_by"]] == [("nightly", True), ("ci", True)]
    assert found["says"][:2] == [
        "Group A: 1 has trait HW_NUMA_ROOT, but none has 4 VCPU free: numa0, used by nightly (project red) and ci.",
        "There would be room without the claim of nightly (project red) on numa0 and ci on numa0.",
    ]


def test_relaxing_one_constraint_and_asking_for_less():
    found = why(groups={"A": {"resources": {"VCPU": 5}, "required": ["HW_NUMA_ROOT"]}})
    assert found["relax"] == [
        {"place": "groups.A.required", "says": "without trait HW_NUMA_ROOT"},
        {"place": "groups.A.resources.VCPU", "says": "with 3 VCPU instead of 5"},
    ]


def test_the_largest_piece_that_is_free_is_among_the_providers_that_suit_otherwise():
    (found,) = why(groups={"A": {"resources": {"VCPU": 5}, "required": ["HW_NUMA_ROOT"]}})["largest"]
    assert (found["asked"], found["free"], found["name"]) == (5, 3, "numa0")


def test_units_count_apart_from_room():
    found = why(groups={"A": {"resources": {"VCPU": 7}, "forbidden": ["HW_NUMA_ROOT"]}, "B": {"resources": {"VCPU": 17}}})
    assert lefts(found["groups"]["A"][0])[:4] == [("inventory", 3), ("unit", 2), ("forbidden", 1), ("room", 1)]
    assert found["first"]["group"] == "B"


def test_roots():
    found = why(groups={"": {"resources": {"VCPU": 1}}}, root_required=["COMPUTE_NODE"], root_member_of=[f"!{ZONE}"])
    assert found["first"]["where"] == "roots"
    assert [entry["left"] for entry in found["roots"]["constraints"]] == [1, 0]
    assert {entry["place"] for entry in found["relax"]} == {"root_required", "root_member_of"}


def test_groups_that_exist_but_not_in_one_tree():
    found = why(groups={"A": {"resources": {"VCPU": 2}, "required": ["HW_NUMA_ROOT"]}, "F": {"resources": {"FPGA": 1}}})
    assert found["first"] == {"where": "combination", "group": "F", "says": "Group F has a provider in the same tree", "before": 1}
    assert found["relax"] == [{"place": "groups.A.required", "says": "without trait HW_NUMA_ROOT"}]


def test_groups_that_only_together_do_not_fit():
    found = why(groups={"A": {"resources": {"VCPU": 9}}, "B": {"resources": {"VCPU": 9}}})
    assert found["first"] is None
    assert found["says"][0].startswith("Groups A and B exclude each other")
    assert found["relax"] == [
        {"place": "groups.A.resources.VCPU", "says": "with 7 VCPU instead of 9"},
        {"place": "groups.B.resources.VCPU", "says": "with 7 VCPU instead of 9"},
    ]


def test_less_keeps_to_step_sizes():
    world = {"providers": [{"name": "pool", "inventories": {"DISK_GB": {"total": 100, "step_size": 20, "min_unit": 5}}}]}
    index = build_index(parse_world(world))
    found = explain(index, parse_groups({"groups": {"": {"resources": {"DISK_GB": 110}}}}, index.known))
    assert [entry["says"] for entry in found["relax"]] == ["with 100 DISK_GB instead of 110"]
    found = explain(index, parse_groups({"groups": {"": {"resources": {"DISK_GB": 19}}}}, index.known))
    assert [entry["says"] for entry in found["relax"]] == ["with 5 DISK_GB instead of 19"]


def test_same_subtree_and_isolation_are_tried_too():
    groups = {"A": {"resources": {"MEMORY_MB": 1024}}, "B": {"resources": {"VCPU": 6}}}
    assert {"place": "same_subtree[0]", "says": "without same_subtree A, B"} in why(groups=groups, same_subtree=[["A", "B"]])["relax"]
    groups = {"A": {"resources": {"FPGA": 1}}, "B": {"resources": {"VCPU": 16}}}
    assert why(groups=groups, group_policy="isolate")["relax"][0]["place"] == "isolate"


def test_few_candidates_can_be_explained_as_well():
    found = why(have=1, groups={"A": {"resources": {"VCPU": 2}, "required": ["HW_NUMA_ROOT"]}})
    assert found["first"] is None
    assert found["says"] == ["More would fit without trait HW_NUMA_ROOT (groups.A.required)."]


def test_nothing_helps():
    found = why(groups={"A": {"resources": {"VCPU": 1}, "required": ["CUSTOM_RARE", "COMPUTE_NODE"]}})
    assert found["relax"] == []
    assert found["says"][-1] == "No single change would help."


def test_an_empty_world():
    index = build_index(parse_world({"providers": []}))
    found = explain(index, parse_groups({"groups": {"": {"resources": {"VCPU": 1}}}}, index.known))
    assert found["says"] == ["There are no providers at all."]


@pytest.mark.parametrize("amount", [1, 3, 4, 6, 7, 8, 16, 17])
@pytest.mark.parametrize("split", [False, True])
def test_the_steps_of_an_amount_are_the_search_s_filter(amount, split):
    index = build_index(parse_world(WORLD))
    group = parse_groups({"groups": {"": {"resources": {"VCPU": amount}}}}, index.known).groups[0]
    (whole,) = column_filters(index, group, group.resources, split)
    steps = list(resource_steps(index, "VCPU", amount, split))
    together = steps[0].own
    for step in steps[1:]:
        together = together & step.own
    assert (together == whole.own).all()


def test_each_relaxation_drops_exactly_one_constraint():
    index = build_index(parse_world(WORLD))
    arguments = {
        "groups": {
            "A": {
                "resources": {"VCPU": 1},
                "required": ["HW_NUMA_ROOT"],
                "any_of": [["CUSTOM_RARE", "COMPUTE_NODE"]],
                "forbidden": ["CUSTOM_RARE"],
            },
            "B": {"resources": {"VCPU": 1}, "member_of": [ZONE], "not_member_of": [ZONE], "in_tree": ZONE},
        },
        "same_subtree": [["A", "B"]],
        "isolate": ["A"],
        "root_required": ["COMPUTE_NODE"],
        "root_forbidden": ["CUSTOM_RARE"],
        "root_member_of": [ZONE, f"!{ZONE}"],
    }
    request = parse_groups(arguments, index.known)
    found = list(relaxations(request))
    assert [relaxation.place for relaxation in found] == [
        "groups.A.required",
        "groups.A.required",
        "groups.A.forbidden",
        "groups.B.member_of",
        "groups.B.not_member_of",
        "groups.B.in_tree",
        "same_subtree[0]",
        "isolate",
        "root_required",
        "root_forbidden",
        "root_member_of",
        "root_member_of",
    ]
    assert len({relaxation.request for relaxation in found}) == len(found)
    assert len(request_columns(index, request)) == 2


def vcpu(amount, **more):
    return {"resources": {"VCPU": amount}, **more}


def test_groups_that_exclude_each_other_are_named_with_the_reason():
    fpga = {"resources": {"FPGA": 1}}
    apart = why(groups={"A": vcpu(1), "B": {"resources": {"MEMORY_MB": 1000}}, "C": vcpu(6)}, same_subtree=[["A", "B"], ["B", "C"]])
    assert apart["excluding"] == {"groups": ["B", "C"], "because": ["same_subtree[1] (B, C)"]}
    assert apart["says"][0] == "Groups B and C exclude each other, because of same_subtree[1] (B, C)."
    isolated = why(groups={"A": vcpu(9), "B": fpga}, group_policy="isolate")
    assert isolated["excluding"]["groups"] == ["A", "B"]
    assert isolated["says"][0] == "Groups A and B exclude each other, because of isolate."
    full = why(groups={"A": vcpu(9), "B": {"resources": {"FPGA": 1}}, "C": vcpu(8)})
    assert full["excluding"] == {"groups": ["A", "C"], "because": []}
    assert full["says"][0].startswith("Groups A and C exclude each other: all groups come from one tree")


def test_a_group_may_exclude_itself():
    found = why(groups={"": {"resources": {"VCPU": 5, "MEMORY_MB": 600}, "required": ["HW_NUMA_ROOT", "COMPUTE_NODE"]}})
    assert found["first"] or found["excluding"] == {"groups": [""], "because": []}


def test_nobody_is_excluded_where_one_constraint_leaves_nothing():
    assert why(groups={"A": vcpu(5, required=["HW_NUMA_ROOT"]), "B": vcpu(1)})["excluding"] is None


def pairs(nodes, cards, count):
    """A host with cards below its nodes, and pairs of cards each below a node of its own."""
    providers = [{"name": "host"}]
    for node in range(nodes):
        providers.append({"name": f"node{node}", "parent": "host", "inventories": {"MEMORY_MB": 100}})
        providers += [{"name": f"card{node}_{card}", "parent": f"node{node}", "inventories": {"PGPU": 1}} for card in range(cards)]
    groups, same_subtree = {}, []
    for number in range(count):
        suffixes = [f"_{letter}{number}" for letter in "NAB"]
        groups |= {suffixes[0]: {"resources": {"MEMORY_MB": 10}}, **{each: {"resources": {"PGPU": 1}} for each in suffixes[1:]}}
        same_subtree.append(suffixes)
    index = build_index(parse_world({"providers": providers}))
    return index, parse_groups({"groups": groups, "same_subtree": same_subtree}, index.known)


def test_reasons_of_alike_groups_are_looked_for_once():
    index, request = pairs(8, 3, 9)
    begun = sum(os.times()[:2])
    found = explain(index, request)
    assert sum(os.times()[:2]) - begun < 5
    assert len(found["excluding"]["groups"]) == 27, "each pair is needed, as any eight of them fit"
    assert {entry["place"] for entry in found["relax"]} == {f"same_subtree[{number}]" for number in range(9)}


def test_a_search_that_ended_at_its_limit_does_not_say_that_nothing_helps(monkeypatch):
    monkeypatch.setattr(reasons, "TRIAL_BUDGET", 1)
    found = explain(*pairs(2, 3, 3))
    assert not found["relax"]
    assert "limit" in found["says"][-1]
