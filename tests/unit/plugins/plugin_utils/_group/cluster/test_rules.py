# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on where instances run: what they are about, and which of them cannot hold together."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.cluster_source import load_any_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.rules import contradictions
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline, write_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import report
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import summary as info_summary
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import evacuation_summary

POOL = {"type": "external", "pool": "ceph"}


def cluster(rules, homes=("n1", "n1", "n2")):
    nodes = [{"name": name, "total_memory": 8192, "total_cpus": 8, "storage": [POOL]} for name in ("n1", "n2")]
    instances = [
        {"name": name, "memory": 1024, "disk": 1024, "vcpus": 1, "primary": home, "storage": POOL, "tags": ["all"]}
        for name, home in zip("abc", homes)
    ]
    return {"nodes": nodes, "instances": instances, "rules": rules}


def conflict(*rules):
    """Return the contradictions that are found; all of them are problems, and nothing of their members is planned."""
    loaded = load_any_cluster({"cluster": cluster(list(rules))}, str)
    found = contradictions(loaded.cluster)
    told = report(loaded.cluster, ScoreMode.HTOOLS)
    assert {f"{one.says}; they stay where they are" for one in found} <= {problem["says"] for problem in told["problems"]}
    emptied = run_evacuate(loaded, {"nodes": ["n1"]})
    stuck = {name for one in found for name in one.instances}
    assert not stuck & {move["instance"] for move in emptied["plan"]["moves"]}
    assert {one["instance"] for one in emptied["unplaced"] if [why["limit"] for why in one["reasons"]] == ["rule"]} >= stuck & {"a", "b"}
    return found


def test_more_apart_than_there_are_nodes():
    (found,) = conflict({"type": "anti_affinity", "tags": ["all"], "name": "spread"})
    assert (found.rules, found.instances) == (("spread",), ("a", "b", "c"))
    assert found.says == "spread keeps 3 apart, with only 2 nodes: a, b, c"


def test_together_and_apart():
    found = conflict({"type": "affinity", "instances": ["a", "b"]}, {"type": "anti_affinity", "instances": ["b", "a"]})
    assert [one.rules for one in found] == [("affinity rule 0", "anti_affinity rule 1")]
    assert found[0].instances == ("a", "b")


def test_together_on_different_nodes():
    pins = [{"type": "pin", "instances": [name], "nodes": [node]} for name, node in (("a", "n1"), ("b", "n2"))]
    (found,) = conflict({"type": "affinity", "instances": ["a", "b", "c"]}, *pins)
    assert (found.instances, "that are pinned to different nodes" in found.says) == (("a", "b"), True)


def test_pins_that_keep_too_many_in_one_domain_of_a_spread():
    (found,) = conflict({"type": "spread", "tags": ["all"], "name": "even"}, {"type": "pin", "tags": ["all"], "nodes": ["n1"]})
    assert (found.rules, found.instances) == (("even",), ("a", "b", "c"))
    assert found.says == "even cannot hold, as pins keep too many in n1: a, b, c"


def test_wishes_contradict_nothing_and_keep_nobody():
    wishes = [
        {"type": "anti_affinity", "tags": ["all"], "strict": False},
        {"type": "ignore", "tags": ["all"], "strict": False},
        {"type": "spread", "tags": ["all"], "strict": False},
    ]
    assert conflict(*wishes, {"type": "pin", "instances": ["a"], "nodes": ["n2"]}) == ()
    found = report(load_any_cluster({"cluster": cluster(wishes)}, str).cluster, ScoreMode.HTOOLS)
    assert found["health"]["healthy"]
    assert [(wish["rule"], wish["count"], wish["points"]) for wish in found["wishes"]] == [("anti_affinity rule 0", 1.0, 2.0)]
    assert "wish: anti_affinity rule 0: a on n1, b on n1" in info_summary(found)


def test_a_node_with_two_domains_is_a_mistake():
    given = cluster([{"type": "spread", "tags": ["all"], "over": "rack:"}])
    given["nodes"][0]["tags"] = ["rack:a", "rack:b"]
    with pytest.raises(InputError, match=r"cluster.rules\[0\].over: node n1 has several tags that begin with 'rack:': rack:a, rack:b"):
        parse_inline(given)


def test_rules_that_can_hold_are_no_conflict():
    rules = [
        {"type": "affinity", "instances": ["a", "b"]},
        {"type": "anti_affinity", "instances": ["b", "c"]},
        {"type": "ignore", "tags": ["all"]},
        {"type": "spread", "tags": ["all"], "max_skew": 3},
    ]
    loaded = load_any_cluster({"cluster": cluster(rules)}, str).cluster
    assert parse_inline(write_inline(loaded)) == loaded


def test_broken_rules_are_problems_with_their_members():
    rules = [
        {"type": "anti_affinity", "instances": ["a", "b"], "name": "apart"},
        {"type": "affinity", "instances": ["b", "c"], "name": "close"},
        {"type": "pin", "instances": ["c"], "nodes": ["n1"], "name": "here"},
        {"type": "spread", "instances": ["a", "b"], "name": "even"},
    ]
    found = report(parse_inline(cluster(rules)), ScoreMode.HTOOLS)
    assert [problem["says"] for problem in found["problems"] if problem["kind"] == "rule"] == [
        "apart does not hold on n1: a, b",
        "here does not hold on n2: c",
        "close does not hold: b on n1, c on n2",
        "even does not hold: 2 in n1, 0 in n2",
    ]
    assert not found["health"]["healthy"]


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({"type": "pin", "instances": ["a"]}, "cluster.rules[0].nodes: is missing; a pin names nodes"),
        ({"type": "affinity", "instances": ["a"], "nodes": ["n1"]}, "cluster.rules[0].nodes: does not go with affinity"),
        ({"type": "pin", "instances": ["d"], "nodes": ["n9"]}, "cluster.rules[0].nodes: unknown node 'n9'"),
        ({"type": "ignore"}, "cluster.rules[0]: names no instance; give instances or tags"),
        ({"type": "ignore", "instances": ["x"]}, "cluster.rules[0].instances: unknown instance 'x'"),
        ({"type": "spread", "tags": ["all"], "over": "rack:"}, "cluster.rules[0].over: is 'rack:'; must be node, group"),
        ({"type": "spread", "tags": ["all"], "over": ""}, "cluster.rules[0].over: is ''; must be node, group"),
        ({"type": "spread", "tags": ["all"], "max_skew": 0}, "cluster.rules[0].max_skew"),
        ({"type": "spread", "tags": ["all"], "weight": -1}, "cluster.rules[0].weight"),
        ({"type": "pin", "instances": ["a"], "nodes": ["n1"], "hardware": True, "strict": False}, "cluster.rules[0].strict: must be true"),
    ],
)
def test_mistakes_in_rules(rule, says):
    with pytest.raises(InputError) as caught:
        parse_inline(cluster([rule]))
    assert says in str(caught.value)


def test_a_refusal_names_the_rule_the_instance_and_the_node():
    rules = [
        {"name": "web-apart", "type": "anti_affinity", "instances": ["a", "c"]},
        {"name": "licence", "type": "pin", "instances": ["a"], "nodes": ["n1"]},
    ]
    found = run_evacuate(load_any_cluster({"cluster": cluster(rules)}, str), {"instances": ["a"]})
    (stays,) = found["unplaced"]
    assert [reason["says"] for reason in stays["reasons"]] == ["rules web-apart, licence keep a off n2"]
    assert "n2: rules web-apart, licence keep a off n2" in evacuation_summary(found)
