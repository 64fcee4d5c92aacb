# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What must stay is touched by no task: instances of a node that is silent, of rules to ignore them, of rules that cannot hold."""

from __future__ import annotations

import json

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text, write_text
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.capacity import run_capacity
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.compress import run_compress
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import report
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.maintenance import run_maintenance, run_squeeze
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import place
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute
from ansible_collections.bareon.allocator.tests.support.group.follower import Follower, solve

USUAL = {"total_memory": 65536, "total_disk": 2097152, "total_cpus": 16, "node_memory": 0, "node_cpus": 0}
HERE = ("n1", "n2", "n3", "n4")
THERE = ("m1", "m2")
NEW = {"name": "new", "memory": 1024, "disk": 1024, "vcpus": 1, "disk_template": "ext"}


def guest(name, primary, secondary="", **more):
    template = "drbd" if secondary else "ext"
    return {
        "name": name,
        "memory": 4096,
        "disk": 10240,
        "vcpus": 1,
        "primary": primary,
        "secondary": secondary,
        "disk_template": template,
    } | more


def cluster(states=None, rules=(), **more):
    """Return two groups, the first uneven: three guests with a role on n3, others on n1 and n2."""
    nodes = [{"name": name, "group": "g", **USUAL} for name in HERE] + [{"name": name, "group": "h", **USUAL} for name in THERE]
    guests = [guest("shared", "n3"), guest("left", "n3", "n4"), guest("mirrored", "n1", "n3", tags=["web"])]
    guests += [guest("other", "n2"), guest("twin", "n1", "n2", tags=["web"])] + [guest(f"many{number}", "n1", "n2") for number in range(6)]
    for node in nodes:
        node |= {"state": (states or {}).get(node["name"], "up")}
    return {"groups": [{"name": "g"}, {"name": "h"}], "nodes": nodes, "instances": guests, "rules": list(rules)} | more


def tasks(told):
    """Return what every task answers about a cluster."""
    loaded = Loaded(parse_inline(told), {})
    follower = Follower(json.loads(json.dumps(told)), threshold=0.01)
    return {
        "evacuate the node": run_evacuate(loaded, {"nodes": ["n3"], "across_groups": "true"}),
        "evacuate all": run_evacuate(loaded, {}),
        "balance": run_balance(loaded, {"groups": ["g"]}, solve),
        "balance without N+1": run_balance(loaded, {"groups": ["g"], "redundancy": "off"}, solve),
        "balance like hbal": run_balance(loaded, {"groups": ["g"], "mode": "htools"}, solve),
        "redistribute": run_redistribute(loaded, {}),
        "redistribute by load": run_redistribute(loaded, {"by": "load"}),
        "compress": run_compress(loaded, {}),
        "squeeze": run_squeeze(loaded, {}),
        "follow": follower.run(),
        "maintain": run_maintenance(loaded, {}),
        "maintain, all leave": run_maintenance(loaded, {"full_evacuation": True}),
    }


def touched(answer):
    """Return instances and nodes of the steps of every plan in an answer."""
    plans = [answer["plan"]] if "plan" in answer else [plan for one in answer["sets"] for plan in (one["plan"], one["back"])]
    moves = [move for plan in plans for move in plan["moves"]]
    steps = [step for move in moves for step in move["steps"]]
    return {move["instance"] for move in moves}, {node for step in steps for node in (*step["from"], *step["to"])}, steps


def test_a_silent_node_is_neither_left_nor_entered():
    told = cluster({"n3": "unreachable"})
    moved = set()
    for name, answer in tasks(told).items():
        instances, nodes, steps = touched(answer)
        assert not instances & {"shared", "left", "mirrored"}, name
        assert "n3" not in nodes, name
        assert all(step["online"] and "--ignore-consistency" not in step["command"] for step in steps), name
        assert any("n3" in line and "gnt-node modify -O yes n3" in line for line in answer.get("notes", [answer])) or "evacuate" in name, (
            name
        )
        moved |= instances
    assert moved & {f"many{number}" for number in range(6)}, "all else is planned"


def test_it_is_a_problem_and_room_there_is_none():
    whole, silent = cluster(), cluster({"n3": "unreachable"})
    found = report(parse_inline(silent), ScoreMode.HTOOLS)
    assert [(one["node"], one["short"]) for one in found["problems"] if one["kind"] == "unreachable"] == [("n3", 3)]
    assert not [one for one in found["problems"] if one["kind"].startswith("offline")]
    assert (found["health"]["unreachable"], found["health"]["healthy"]) == (1, False)
    assert {node["name"]: node["state"] for node in found["nodes"]}["n3"] == "unreachable"
    counts = [run_capacity(Loaded(parse_inline(told), {}), {"spec": {"memory": 4096, "vcpus": 1}})["count"] for told in (silent, whole)]
    assert counts[0] < counts[1]
    where = place(Loaded(parse_inline(silent), {}), {"instances": [NEW]})["solutions"][0]
    assert all("n3" not in group["nodes"] for group in where["groups"])


def test_its_guests_are_evacuated_once_it_is_marked():
    emptied = run_evacuate(Loaded(parse_inline(cluster({"n3": "offline"})), {}), {})
    _instances, _nodes, steps = touched(emptied)
    assert {one["instance"] for one in emptied["placed"]} == {"shared", "left", "mirrored"}
    assert [step["online"] for step in steps if step["from"][0] == "n3"] == [False, False]


def test_follow_repairs_what_a_marked_node_leaves_at_the_second_look():
    follower = Follower(cluster({"n3": "offline"}), threshold=9, urgent_polls=2)
    first, looked, second = follower.run(), follower.run(5, act=False), follower.run(5)
    assert [first["groups"][0]["action"], first["groups"][0]["why"], first["plan"]["moves"]] == ["wait", "confirm", []]
    assert (looked["plan"]["moves"], second["groups"][0]["action"]) == ([], "repair")
    assert {move["instance"] for move in second["plan"]["moves"]} == {"shared", "left", "mirrored"}


def test_follow_tells_who_stays_down():
    told = cluster({"n3": "offline"})
    told["instances"][0] |= {"disk_template": "plain"}
    follower = Follower(told, threshold=0.01, urgent=["limits"])
    answer = follower.run()
    assert (answer["groups"][0]["action"], answer["groups"][0]["down"]) == ("balance", ["shared"])
    assert "still down: shared" in answer["summary"]


@pytest.mark.parametrize("members", [{"instances": ["mirrored", "shared"]}, {"tags": ["web"]}])
def test_who_is_ignored_keeps_its_mirror_too(members):
    ignored = set(members.get("instances", ["mirrored", "twin"]))
    for name, answer in tasks(cluster({"n3": "drained"}, [{"type": "ignore", **members}])).items():
        assert not touched(answer)[0] & ignored, name


WEB = [guest(f"web{number}", home, tags=["apart"]) for number, home in enumerate(("n1", "n2", "n3", "n1", "n4"))]
CONFLICTS = {
    "more than nodes": [{"type": "anti_affinity", "tags": ["apart"]}, {"type": "pin", "tags": ["apart"], "nodes": list(HERE)}],
    "together and apart": [{"type": "affinity", "tags": ["apart"]}, {"type": "anti_affinity", "instances": ["web0", "web1"]}],
    "pinned apart": [
        {"type": "affinity", "instances": ["web0", "web1"]},
        {"type": "pin", "instances": ["web0"], "nodes": ["n1"]},
        {"type": "pin", "instances": ["web1"], "nodes": ["n2"]},
    ],
}


@pytest.mark.parametrize("conflict", CONFLICTS)
def test_a_rule_that_cannot_hold_is_a_problem_of_its_members(conflict):
    told = cluster({"n3": "drained"}, CONFLICTS[conflict])
    told["instances"] += WEB
    stuck = {"web0", "web1"} if conflict != "more than nodes" else {one["name"] for one in WEB}
    found = report(parse_inline(told), ScoreMode.HTOOLS)
    assert any(one["kind"] == "rule" and all(name in one["says"] for name in stuck) for one in found["problems"])
    moved = set()
    for name, answer in tasks(told).items():
        instances = touched(answer)[0]
        assert not instances & stuck, name
        assert any(all(member in line for member in stuck) for line in answer.get("notes", [" ".join(sorted(stuck))])), name
        moved |= instances
    assert {"shared", "left", "mirrored"} <= moved, "all else is planned"
    assert place(Loaded(parse_inline(told), {}), {"instances": [NEW]})["unplaced"] == []


def test_balance_counts_who_is_left_out():
    told = cluster(
        {"n4": "unreachable"}, [{"type": "ignore", "instances": ["other"]}, {"type": "ignore", "instances": ["twin"], "reason": "ha"}]
    )
    told["instances"] += [guest("plain", "n1", disk_template="plain"), guest("kept", "n1", auto_balance=False)]
    answer = run_balance(Loaded(parse_inline(told), {}), {"groups": ["g"]}, solve)
    assert answer["left_out"] == {"auto_balance": 1, "ha": 1, "local_disks": 1, "rule": 1, "unreachable": 1}
    assert answer["summary"].splitlines()[-1] == "Left out: 1 auto_balance, 1 ha, 1 local_disks, 1 rule, 1 unreachable."


@pytest.mark.parametrize("state", ["up", "drained", "offline", "unreachable"])
def test_text_keeps_the_state_of_a_node(state):
    told = parse_inline(cluster({"n3": state}))
    again = parse_text(write_text(told))
    assert again.nodes[2].state == state
    assert ClusterState.from_cluster(again).marked_offline[2] == (state == "offline")


def test_maintenance_leaves_to_ha_what_ha_takes_away():
    kept = {"type": "ignore", "instances": ["shared", "left"]}
    for arguments in ({}, {"full_evacuation": True}):
        by_ha = run_maintenance(Loaded(parse_inline(cluster(rules=[{**kept, "reason": "ha"}])), {}), {"nodes": ["n3"], **arguments})
        assert [one["nodes"] for one in by_ha["sets"]] == [["n3"]]
        assert not touched(by_ha)[0] & {"shared", "left"}
        (stuck,) = run_maintenance(Loaded(parse_inline(cluster(rules=[kept])), {}), {"nodes": ["n3"], **arguments})["left_out"]
        assert (stuck["node"], "keeps it where it is" in stuck["says"]) == ("n3", True)
