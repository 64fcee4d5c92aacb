# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Defects of Ganeti's htools 3.0 that are not ours; tests/peers/test_ganeti_place.py and test_ganeti_score.py show the real ones.

Each test is named after what htools does.
"""

from __future__ import annotations

import collections
import json
import pathlib
import time

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import NOWHERE, ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.iallocator import parse_iallocator
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.iallocator import answer
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import report
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import place
from ansible_collections.bareon.allocator.tests.support.group.policies import open_group

ROOT = pathlib.Path(__file__).resolve().parents[5]
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

NEW = {"disks": [{"size": 10240}], "disk_space_total": 10240, "memory": 1024, "vcpus": 1, "disk_template": "drbd", "nics": [], "tags": []}
QUARTER = 25600


def answered(cluster, request):
    return answer(parse_iallocator(json.loads(cluster.ialloc(request))), ScoreMode.HTOOLS)


def after(cluster, result):
    """Return the cluster once a planned evacuation is carried out."""
    state = ClusterState.from_cluster(cluster)
    nodes, instances = cluster.node_positions(), cluster.instance_positions()
    for placed in result["placed"]:
        homes = [nodes[name] for name in placed["nodes"]]
        state.place(instances[placed["instance"]], homes[0], homes[1] if len(homes) > 1 else NOWHERE)
    return state.to_cluster()


@pytest.fixture
def sick():
    """Return a generated cluster of three groups; in two of them a node fails N+1."""
    return generate(nodes=18, groups=3, seed=6)


def test_1_one_unhealthy_group_blocks_allocation_in_all_groups(sick):
    message = parse_iallocator(json.loads(sick.ialloc({"type": "allocate", "name": "new", **NEW})))
    told = {group["name"]: group["health"]["n1_fail"] for group in report(message.cluster, ScoreMode.HTOOLS)["groups"]}
    assert told == {"group-01": 1, "group-02": 0, "group-03": 1}
    assert len(place(message, {})["solutions"][0]["groups"]) == 3


def test_1_one_unhealthy_group_blocks_its_own_relief(sick):
    home = {node["name"]: node["group"] for node in sick.nodes}
    moving = [i["name"] for i in sick.instances if home[i["pnode"]] == sick.groups[0]["uuid"]][:5]
    moved, failed, _jobs = answered(sick, {"type": "change-group", "instances": moving, "target_groups": []})["result"]
    assert sorted(name for name, _group, _nodes in moved) == sorted(moving)
    assert failed == []
    assert {group for _name, group, _nodes in moved} <= {"group-02", "group-03"}


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_2_emptying_a_node_fails_when_its_instances_have_mirrors_on_all_others(seed):
    cluster = generate(nodes=6, n1ok=True, seed=seed)
    pairs = {node["name"]: [i for i in cluster.instances if node["name"] in (i["pnode"], i["snode"])] for node in cluster.nodes}
    name = next(name for name, members in pairs.items() if len({node for i in members for node in (i["pnode"], i["snode"])}) == 6)
    instances = [i["name"] for i in pairs[name]]
    moved, failed, _jobs = answered(cluster, {"type": "node-evacuate", "instances": instances, "evac_mode": "all"})["result"]
    assert failed == []
    assert len(moved) == len(instances) >= 10
    assert all(name not in nodes for _instance, _group, nodes in moved)


def dedicated(nodes):
    """Return a message with groups of exclusive storage; each node has this many quarters taken."""

    def spec(quarters):
        names = ("memory-size", "cpu-count", "disk-size", "disk-count", "nic-count", "spindle-use")
        return dict(zip(names, (1024 * quarters, quarters, QUARTER * quarters, 1, 1, quarters)))

    policy = {"minmax": [{"min": spec(size), "max": spec(size)} for size in (1, 2, 4)], "disk-templates": ["plain"], "vcpu-ratio": 1.0}
    groups = {name.partition("-")[0] for name in nodes}
    return {
        "nodegroups": {
            f"uuid-{name}": {"name": name, "alloc_policy": "preferred", "networks": [], "tags": [], "ipolicy": policy} for name in groups
        },
        "nodes": {
            name: {
                "group": f"uuid-{name.partition('-')[0]}",
                "offline": False,
                "drained": False,
                "tags": [],
                "ndparams": {"exclusive_storage": True},
                "total_memory": 4096,
                "reserved_memory": 0,
                "free_memory": 4096 - 1024 * taken,
                "total_disk": 4 * QUARTER,
                "free_disk": (4 - taken) * QUARTER,
                "total_cpus": 8,
                "total_spindles": 4,
                "free_spindles": 4 - taken,
            }
            for name, taken in nodes.items()
        },
        "instances": {},
        "request": {},
    }


def quarters(name, count, **fields):
    sizes = {"memory": 1024 * count, "vcpus": count, "disk_space_total": QUARTER * count}
    disks = [{"size": QUARTER * count, "spindles": count}]
    return {"name": name, **sizes, "disks": disks, "disk_template": "plain", "spindle_use": count, "nics": [], "tags": [], **fields}


def asked(message, request):
    return answer(parse_iallocator(message | {"request": request}), ScoreMode.HTOOLS)


def test_3_several_instances_in_one_request_are_put_into_the_same_room():
    message = dedicated({"a-1": 1, "a-2": 2, "a-3": 1})
    wanted = [*(quarters(f"small{number}", 1) for number in range(4)), quarters("half", 2)]
    placed, failed = asked(message, {"type": "multi-allocate", "instances": wanted, "group_name": "a"})["result"]
    assert failed == []
    used = collections.Counter()
    for (_name, (node,)), want in zip(placed, wanted, strict=True):
        used[node] += want["vcpus"]
    assert all(count <= {"a-1": 3, "a-2": 2, "a-3": 3}[node] for node, count in used.items())


def test_3_the_group_of_each_instance_of_a_request_is_ignored():
    message = dedicated({"a-1": 0, "a-2": 0, "b-1": 0, "b-2": 0})
    wanted = [quarters(f"to-{group}", 1, group_name=group) for group in ("b", "a", "b")]
    placed, failed = asked(message, {"type": "multi-allocate", "instances": wanted})["result"]
    assert failed == []
    assert [node.partition("-")[0] for _name, (node,) in placed] == ["b", "a", "b"]


def test_3_instances_that_fail_are_told_as_ganeti_does_not_accept_it():
    """Ganeti checks that the second part of the answer is a list of names."""
    message = dedicated({"a-1": 1})
    found = asked(message, {"type": "multi-allocate", "instances": [quarters("quarter", 1), quarters("whole", 4)]})
    assert found["result"] == [[["quarter", ["a-1"]]], ["whole"]]


@pytest.mark.parametrize(("size", "node"), [(1, "a-three"), (2, "a-half"), (4, "a-empty")])
def test_4_nothing_fits_exactly(size, node):
    message = dedicated({"a-empty": 0, "a-half": 2, "a-three": 3})
    assert asked(message, {"type": "allocate", **quarters("new", size)})["result"] == [node]


def test_4_memory_is_never_filled_exactly(bench):
    guests = [bench.instance("i", "a", memory=600, disk_template=DiskTemplate.EXT)]
    nodes = [bench.node("a"), bench.node("b", total_memory=600.0, free_memory=600)]
    cluster = bench.cluster(nodes, guests, [open_group("g")])
    found = run_evacuate(Loaded(cluster, {}), {"nodes": ["a"]})
    assert [placed["nodes"] for placed in found["placed"]] == [["b"]]


def test_5_mirrors_on_dead_nodes_are_counted_by_node_and_never_go_away():
    cluster = parse_iallocator(json.loads(generate(nodes=6, n1ok=True, seed=4, offline=1).ialloc({}))).cluster
    (dead,) = [node.name for node in cluster.nodes if node.offline]
    before = report(cluster, ScoreMode.HTOOLS)["health"]
    mirrors = sum(instance.secondary == dead for instance in cluster.instances)
    primaries = sum(instance.primary == dead for instance in cluster.instances)
    assert (before["offline_sec"], before["offline_pri"], before["healthy"]) == (mirrors, primaries, False)
    assert mirrors > 1
    healed = after(cluster, run_evacuate(Loaded(cluster, {}), {"nodes": [dead]}))
    health = report(healed, ScoreMode.HTOOLS)["health"]
    assert (health["offline_sec"], health["offline_pri"]) == (0, 0)


def test_5_the_final_health_repeats_the_initial_one(bench):
    nodes = [bench.node("dead", offline=True), bench.node("b"), bench.node("c")]
    cluster = bench.cluster(nodes, [bench.instance("i", "dead", "b")], [open_group("g")])
    assert not report(cluster, ScoreMode.HTOOLS)["health"]["healthy"]
    assert report(after(cluster, run_evacuate(Loaded(cluster, {}), {})), ScoreMode.HTOOLS)["health"]["healthy"]


def packing(bench, rooms, sizes, order):
    """Return a cluster whose node x is to be emptied; the other nodes have this room, and instances are listed in this order."""
    nodes = [bench.node("x", total_memory=float(sum(sizes)), free_memory=sum(sizes))]
    nodes += [bench.node(f"n{number}", total_memory=float(room), free_memory=room, total_cpus=99.0) for number, room in enumerate(rooms)]
    shared = DiskTemplate.EXT
    guests = [bench.instance(f"i{number}", "x", memory=sizes[number], vcpus=0, disk_template=shared) for number in order]
    return bench.cluster(nodes, guests, [open_group("g")])


@pytest.mark.parametrize(
    ("rooms", "sizes"),
    [
        ((5000, 7000), (2000, 3000, 3000, 4000)),
        ((900, 900, 900), (300, 300, 300, 450, 450, 450, 450)),
        ((1000, 1000, 1000, 1000), (500, 500, 400, 400, 300, 300, 200, 300, 300, 800)),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_8_whether_a_node_can_be_emptied_depends_on_the_order_of_its_instances(bench, rooms, sizes, reverse):
    assert sum(rooms) == sum(sizes), "the packing leaves nothing"
    order = range(len(sizes))
    cluster = packing(bench, rooms, sizes, reversed(order) if reverse else order)
    found = run_evacuate(Loaded(cluster, {}), {"nodes": ["x"]})
    assert found["unplaced"] == []
    used = collections.Counter()
    for placed in found["placed"]:
        used[placed["nodes"][0]] += sizes[int(placed["instance"][1:])]
    assert used == {f"n{number}": room for number, room in enumerate(rooms)}


def test_8_one_instance_that_cannot_move_stops_all(bench):
    """Ganeti gives an evacuation up when one instance fails; here the others have places and a plan of their own."""
    cluster = packing(bench, (500,), (300, 200, 400), range(3))
    found = run_evacuate(Loaded(cluster, {}), {"nodes": ["x"]})
    assert len(found["placed"]) == len(found["plan"]["moves"]) == 2
    assert [left["reasons"][0]["limit"] for left in found["unplaced"]] == ["memory"]


@pytest.mark.parametrize("template", ["mixed", "ext"])
def test_9_without_redundancy_every_pair_is_tried_for_minutes(template):
    cluster = generate(nodes=40, template=template, extags=True, loctags=True, memscale=2.0 if template == "ext" else 1.0)
    message = parse_iallocator(json.loads(cluster.ialloc({"type": "allocate", "name": "new", **NEW})))
    started = time.process_time()
    found = answer(message, ScoreMode.HTOOLS)
    assert found["success"]
    assert time.process_time() - started < 10


def test_9_a_place_that_makes_nothing_worse_is_found_in_a_group_that_is_not_redundant(bench):
    """The large one could restart nowhere; that is not the new instance's doing. What is, is refused."""
    shared = DiskTemplate.EXT
    nodes = [bench.node("a"), bench.node("b"), bench.node("c", total_memory=3000.0, free_memory=3000)]
    guests = [bench.instance("i", "a", memory=900, disk_template=shared), bench.instance("large", "c", memory=2500, disk_template=shared)]
    cluster = bench.cluster(nodes, guests, [open_group("g")])
    (failing,) = report(cluster, ScoreMode.HTOOLS)["groups"][0]["shared"]
    assert (failing["worst_node"], failing["short"]) == ("c", 2500)

    def found(memory):
        new = {"name": "new", "memory": memory, "disk": 10, "vcpus": 1, "disk_template": "ext"}
        return place(Loaded(cluster, {}), {"instances": [new]})["solutions"][0]

    assert found(50)["groups"][0]["nodes"] != ["a"]
    assert found(400)["groups"][0]["nodes"] == ["c"], "on b it would be in the way of what restarts when a fails"
    assert [reason["limit"] for reason in found(600)["rejected"][0]["reasons"]][-1] == "shared_redundancy"
