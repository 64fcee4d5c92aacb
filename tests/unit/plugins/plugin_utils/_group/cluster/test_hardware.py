# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No task sends an instance, or a mirror of it, to a node that cannot run it: one with too few CPUs, or off a pin of the hardware."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline, write_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.capacity import run_capacity
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import report
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.maintenance import run_maintenance, run_squeeze
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import place
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute
from ansible_collections.bareon.allocator.tests.support.group.follower import Follower, solve

CPUS = {"n1": 16, "n2": 4, "n3": 16, "n4": 4}
NEW = {"name": "new", "memory": 1024, "disk": 1024, "vcpus": 8}
WAYS = {
    "CPUs": ({}, {"vcpus": 8}),
    "hardware": ({"rules": [{"type": "pin", "tags": ["gpu"], "nodes": ["n1", "n3"], "hardware": True}]}, {"vcpus": 2, "tags": ["gpu"]}),
}


def cluster(way, states=None, template="ext", count=4):
    """Return four nodes, two of which cannot run the instances, all of which are on the first."""
    more, needs = WAYS[way]
    usual = {"total_memory": 65536, "total_disk": 1048576, "node_memory": 0, "node_cpus": 0}
    nodes = [{"name": name, "total_cpus": cpus, "state": (states or {}).get(name, "up"), **usual} for name, cpus in CPUS.items()]
    mirror = {"secondary": "n3"} if template == "drbd" else {}
    guests = [
        {"name": f"big{number}", "memory": 4096, "disk": 1024, "primary": "n1", "disk_template": template, **mirror, **needs}
        for number in range(count)
    ]
    return {"nodes": nodes, "instances": guests} | more


def went_to(answer):
    """Return every node that a step of a plan leads to, as either role."""
    plans = [answer["plan"]] if "plan" in answer else [one["plan"] for one in answer["sets"]]
    return {node for plan in plans for move in plan["moves"] for step in move["steps"] for node in step["to"]}


@pytest.mark.parametrize("template", ["ext", "drbd"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("states", [{}, {"n1": "drained"}, {"n1": "offline"}])
def test_nobody_goes_where_it_cannot_run(way, template, states):
    told = cluster(way, states, template)
    told["nodes"].append({**told["nodes"][2], "name": "n5"})
    told["rules"] = [{**rule, "nodes": [*rule["nodes"], "n5"]} for rule in told.get("rules", ())]
    loaded = Loaded(parse_inline(told), {})
    answers = {
        "balance": run_balance(loaded, {"groups": ["default"]}, solve),
        "evacuate": run_evacuate(loaded, {"nodes": ["n1"]}),
        "redistribute": run_redistribute(loaded, {}),
        "maintain": run_maintenance(loaded, {}),
        "maintain, all leave": run_maintenance(loaded, {"full_evacuation": True}),
        "squeeze": run_squeeze(loaded, {"target_resources": 0, "minimal_resources": 0}),
        "follow": Follower(told, threshold=0.01).run(),
    }
    for name, answer in answers.items():
        assert not went_to(answer) & {"n2", "n4"}, name
    assert went_to(answers["evacuate"]) & {"n3", "n5"}


def test_hbal_sends_it_there():
    loaded = Loaded(parse_inline(cluster("CPUs")), {})
    assert went_to(run_balance(loaded, {"groups": ["default"], "mode": "htools"}, solve)) & {"n2", "n4"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("template", ["ext", "drbd"])
def test_a_new_one_is_placed_where_it_runs_and_says_why_not_elsewhere(way, template):
    told = cluster(way)
    new = {**NEW, "disk_template": template, **WAYS[way][1]}
    (solution,) = place(Loaded(parse_inline(told), {}), {"instances": [new]})["solutions"]
    assert set(solution["groups"][0]["nodes"]) <= {"n1", "n3"}
    small = place(Loaded(parse_inline(told), {}), {"instances": [new], "nodes": ["n2", "n4"]})["solutions"][0]
    reasons = small["rejected"][0]["reasons"]
    assert {(one["node"], one["limit"]) for one in reasons} == {("n2", "hardware"), ("n4", "hardware")}
    assert way == "hardware" or {one["short"] for one in reasons} == {4}


@pytest.mark.parametrize("way", WAYS)
def test_n1_counts_only_room_where_it_runs(way):
    """On n3 is no memory for all of n1; on n2 and n4 there is, but nothing of it starts there."""
    told = cluster(way, count=6)
    told["nodes"][2] |= {"total_memory": 9000}
    problems = report(parse_inline(told), ScoreMode.HTOOLS)["problems"]
    assert [(one["node"], one["short"]) for one in problems if one["kind"] == "shared_n1"] == [("n1", 4 * 4096)]
    told["nodes"][2] |= {"total_memory": 65536}
    assert not [one for one in report(parse_inline(told), ScoreMode.HTOOLS)["problems"] if one["kind"] == "shared_n1"]


def test_tiers_go_where_they_run():
    """Instances of 8 virtual CPUs find 2 nodes, those of 4 and fewer all of them."""
    spec = {"memory": 4096, "disk": 1024, "vcpus": 8, "disk_template": "plain"}
    loaded = Loaded(parse_inline(cluster("CPUs", count=0) | {"ipolicy": {"vcpu-ratio": 1.0}}), {})
    tiers = run_capacity(loaded, {"spec": spec, "tiered": True})["tiers"]
    assert [(one["spec"]["vcpus"], one["count"]) for one in tiers if one["spec"]["vcpus"] in (8, 4)] == [(8, 4), (4, 2)]


def test_room_counts_where_it_runs():
    spec = {"memory": 1024, "disk": 1024, "vcpus": 8, "disk_template": "ext"}
    told = cluster("CPUs", count=0) | {"ipolicy": {"vcpu-ratio": 100.0}}
    both = run_capacity(Loaded(parse_inline(told), {}), {"spec": spec, "score": "capacity"})["count"]
    told["nodes"] = [node for node in told["nodes"] if node["total_cpus"] == 16]
    assert both == run_capacity(Loaded(parse_inline(told), {}), {"spec": spec, "score": "capacity"})["count"] > 0


def test_who_is_where_it_cannot_run_is_a_problem_and_leaves():
    told = cluster("CPUs", count=1)
    told["instances"][0]["primary"] = "n2"
    problems = report(parse_inline(told), ScoreMode.HTOOLS)["problems"]
    assert [(one["kind"], one["node"]) for one in problems if one["kind"] == "hardware"] == [("hardware", "n2")]
    assert went_to(run_balance(Loaded(parse_inline(told), {}), {"groups": ["default"]}, solve)) <= {"n1", "n3"} != set()


def test_containers_share_what_there_is():
    told = cluster("CPUs")
    for one in told["instances"]:
        one["shares_cpus"] = True
    assert went_to(run_balance(Loaded(parse_inline(told), {}), {"groups": ["default"]}, solve)) & {"n2", "n4"}
    assert parse_inline(write_inline(parse_inline(told))) == parse_inline(told)
