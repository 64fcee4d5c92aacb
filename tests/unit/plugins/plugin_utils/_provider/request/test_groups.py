# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests from YAML and from Placement's query string are the same requests; every mistake is told at once."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.module_utils._data.kinds import HUGE
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.groups import parse_groups
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.model import MOST_CANDIDATES, Group, Request, Subtree
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.query import parse_query
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.model import LARGEST_AMOUNT
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import known_names

KNOWN = known_names(traits=["CUSTOM_A", "CUSTOM_B"])
ONE, TWO = "f743c90f-45d7-5765-af56-12889982af99", "0dc9fb10-b6d5-5f89-8473-8b5cdf7aa99f"


def mistakes(parse, given):
    with pytest.raises(InputError) as caught:
        parse(given, KNOWN)
    return [str(mistake) for mistake in caught.value.mistakes]


@pytest.mark.parametrize(
    ("query", "arguments"),
    [
        ("resources=VCPU:1,DISK_GB:10&limit=3", {"groups": {"": {"resources": {"VCPU": 1, "DISK_GB": 10}}}, "limit": 3}),
        (
            "resources_a=VCPU:1&required_a=CUSTOM_A,!CUSTOM_B&required_a=in:CUSTOM_A,CUSTOM_B&group_policy=isolate",
            {
                "groups": {
                    "_a": {
                        "resources": {"VCPU": 1},
                        "required": ["CUSTOM_A"],
                        "forbidden": ["CUSTOM_B"],
                        "any_of": [["CUSTOM_A", "CUSTOM_B"]],
                    }
                },
                "group_policy": "isolate",
            },
        ),
        (
            f"resources1=VCPU:1&member_of1={ONE}&member_of1=in:{ONE},{TWO}&member_of1=!{TWO}&in_tree1={ONE.upper()}",
            {"groups": {"1": {"resources": {"VCPU": 1}, "member_of": [ONE, [ONE, TWO]], "not_member_of": [TWO], "in_tree": ONE}}},
        ),
        (
            f"resources-=VCPU:1&required_N=CUSTOM_A&same_subtree=-,_N&same_subtree=-,!_N&isolate=_N&root_member_of=in:{ONE},{TWO}&root_member_of=!{ONE}",
            {
                "groups": {"-": {"resources": {"VCPU": 1}}, "_N": {"required": ["CUSTOM_A"]}},
                "same_subtree": [["-", "_N"], ["-", "!_N"]],
                "isolate": ["_N"],
                "root_member_of": [[ONE, TWO], f"!{ONE}"],
            },
        ),
        (
            "resources=VCPU:4&can_split=VCPU&root_required=CUSTOM_A,!CUSTOM_B",
            {
                "groups": {"": {"resources": {"VCPU": 4}}},
                "can_split": ["VCPU"],
                "root_required": ["CUSTOM_A"],
                "root_forbidden": ["CUSTOM_B"],
            },
        ),
    ],
)
def test_both_forms_make_the_same_request(query, arguments):
    assert parse_query(query, KNOWN) == parse_query(f"?{query}", KNOWN) == parse_groups(arguments, KNOWN)


def test_a_request_is_what_it_says():
    request = parse_groups(
        {
            "groups": {"A": {"resources": {"VCPU": 1}, "any_of": ["CUSTOM_A", "CUSTOM_B"]}, "B": {"resources": {"VCPU": 2}}},
            "same_subtree": ["A", "!B"],
            "isolate": [["A"], "B"],
        },
        KNOWN,
    )
    assert request == Request(
        groups=(Group("A", (("VCPU", 1),), (frozenset({"CUSTOM_A", "CUSTOM_B"}),)), Group("B", (("VCPU", 2),))),
        subtrees=(Subtree(("A",), ("B",)),),
        isolated=frozenset({"A", "B"}),
    )


def test_group_policy_defaults_to_none():
    assert parse_query("resources1=VCPU:1&resources2=VCPU:1", KNOWN).isolated == frozenset()


def test_every_mistake_of_groups_is_told_at_once():
    found = mistakes(
        parse_groups,
        {
            "groups": {
                "": {"required": ["CUSTOM_A"]},
                "A B": {"resources": {"VCPU": 0}},
                "C": {"resources": {"VCPUS": 1}, "required": ["CUSTOM_C"], "colour": "red"},
                "D": {"resources": {"VCPU": 1}, "any_of": [["CUSTOM_A"]], "forbidden": ["CUSTOM_A"], "member_of": ["x"], "in_tree": " y"},
                "E": {"required": ["CUSTOM_A"]},
            },
            "same_subtree": [["C", "X"], ["!C"], ["C", "!C"]],
            "isolate": ["Y"],
            "group_policy": "isolate",
            "can_split": ["VCPU"],
            "root_required": ["CUSTOM_A"],
            "root_forbidden": ["CUSTOM_A"],
            "limit": 0,
        },
    )
    for expected in (
        "groups['']: the group without a suffix must ask for resources",
        "groups: 'A B' is not a suffix",
        "groups.A B.resources.VCPU: is 0; must be a whole number from 1 to 2147483647",
        "groups.C.resources: 'VCPUS' is not a standard resource class (did you mean VCPU?)",
        "groups.C.required: there is no trait 'CUSTOM_C'",
        "groups.C.colour: is not a key of a group",
        "groups.D: requires and forbids CUSTOM_A",
        "groups.D.member_of: there is no aggregate 'x'",
        "groups.D.in_tree: ' y' must be printable characters, without blanks around them",
        "groups.E: asks for no resources",
        "same_subtree[0]: names 'X'",
        "same_subtree[1]: needs at least one suffix without !",
        "same_subtree[2]: names 'C' both with and without !",
        "isolate: cannot be combined with group_policy",
        "can_split: names 'VCPU', which the group without a suffix does not ask for",
        "root_required: requires and forbids CUSTOM_A",
        "limit: is 0; must be a whole number, 1 or more",
    ):
        assert any(line.startswith(expected) for line in found), (expected, found)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("resources=VCPU", "resources: 'VCPU' is not CLASS:AMOUNT"),
        ("resources=VCPU:1&resources1=VCPU:1&isolate=1&group_policy=none", "isolate: cannot be combined with group_policy"),
        ("resources=VCPU:1&isolate=2", "isolate: names '2'"),
        (
            "resources=VCPU:99999999999999999999",
            "resources: 'VCPU:99999999999999999999' is not CLASS:AMOUNT with an amount from 1 to 2147483647",
        ),
        ("resources=VCPU:1&limit=abc&limit=5", "limit: must be a whole number from 1, not 'abc'"),
        ("resources=VCPU:1&required=in:CUSTOM_A,!CUSTOM_B", "required: '!CUSTOM_B' cannot be forbidden inside in:"),
        ("resources=VCPU:1&root_member_of=x", "root_member_of: 'x' is not a UUID"),
        ("resources1=VCPU:1&same_subtree=!1", "same_subtree[0]: needs at least one suffix without !"),
        ("resources=VCPU:0", "resources: 'VCPU:0' is not CLASS:AMOUNT"),
        ("resources=VCPU:2147483648", "resources: 'VCPU:2147483648' is not CLASS:AMOUNT"),
        (f"resources=VCPU:{'1' * 5000}", "resources: 'VCPU:111"),
    ],
)
def test_mistakes_of_a_query(query, says):
    assert any(line.startswith(says) for line in mistakes(parse_query, query))


def test_an_empty_choice_of_traits_is_one_mistake():
    assert mistakes(parse_query, "resources=VCPU:1&required=in:") == ["required: '' has an empty item"]


def test_amounts_may_have_blanks_a_sign_and_zeros_before_them():
    request = parse_query(f"resources=VCPU:%2B0001,DISK_GB: {LARGEST_AMOUNT} ", KNOWN)
    assert request.groups[0].resources == (("VCPU", 1), ("DISK_GB", LARGEST_AMOUNT))


@pytest.mark.parametrize("limit", [MOST_CANDIDATES + 1, 2**63, 2**64, 10**400])
def test_a_limit_beyond_all_counting_is_the_largest(limit):
    assert parse_query(f"resources=VCPU:1&limit={limit}", KNOWN).limit == MOST_CANDIDATES
    if limit < HUGE:
        assert parse_groups({"groups": {"": {"resources": {"VCPU": 1}}}, "limit": limit}, KNOWN).limit == MOST_CANDIDATES


@pytest.mark.parametrize("groups", [None, {}, [], "VCPU:1"])
def test_groups_must_be_given(groups):
    (told,) = [line for line in mistakes(parse_groups, {"groups": groups}) if line.startswith("groups: is ")]
    assert "must be a mapping of suffixes" in told
