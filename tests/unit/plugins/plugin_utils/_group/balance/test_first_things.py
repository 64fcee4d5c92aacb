# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What comes first when a group is balanced: what is down, then limits that are broken, then N+1, then the score."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import Solved
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.group import Assignment, plan_group
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.model import BalanceOptions, Redundancy
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.walk import Walk
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.changes import after_moves
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.tests.support.group.policies import open_group
from ansible_collections.bareon.allocator.tests.support.group.troubled_clusters import troubled_cluster


def here(job, tasks, resources):
    return {name: Solved(job(task, resources.seconds), 0.0) for name, task in tasks.items()}


def shared(bench, name, node, memory, **fields):
    return bench.instance(name, node, memory=memory, disk_template=DiskTemplate.EXT, **fields)


def balanced(bench, nodes, instances, **arguments):
    told = run_balance(Loaded(bench.cluster(nodes, instances, [open_group("g")]), {}), {"groups": ["g"], **arguments}, here)
    return told, told["groups"][0], {move["instance"]: move["to"] for move in told["plan"]["moves"]}


def tight(bench, **dead):
    """Two nodes of which each can take what the other has, and a third with an instance for which then there is no room."""
    nodes = [bench.node("a"), bench.node("b"), bench.node("x", **dead)]
    return nodes, [shared(bench, "i", "a", 500), shared(bench, "j", "b", 400), shared(bench, "lost", "x", 300)]


def test_what_is_down_comes_up_before_n1_and_the_answer_says_so(bench):
    told, group, homes = balanced(bench, *tight(bench, offline=True))
    assert homes["lost"] in (["a"], ["b"])
    assert group["down"] == []
    assert [node["node"] for node in group["redundancy"]["worse"]] == ["a", "b"]
    assert group["redundancy"]["for"] == ["down"]
    assert group["redundancy"]["after"] > group["redundancy"]["before"] == 0
    assert "N+1 on shared storage gets worse, to start instances" in told["summary"]


def test_n1_can_be_kept_or_not_looked_at(bench):
    told, group, homes = balanced(bench, *tight(bench, offline=True), redundancy="keep")
    assert group["down"] == ["lost"]
    assert group["redundancy"]["worse"] == []
    assert "lost" not in homes
    assert "g: still down, because their node is marked offline: lost" in told["summary"]
    assert "lost" in balanced(bench, *tight(bench, offline=True), redundancy="off")[2]


def test_a_refusal_names_the_limit_the_node_and_the_amount(bench):
    nodes, instances = tight(bench, offline=True)
    told, group, _homes = balanced(bench, nodes, [*instances[:2], shared(bench, "lost", "x", 1100)])
    assert group["refused"] == [
        {
            "instance": "lost",
            "reasons": [{"node": "a", "limit": "memory", "short": 600}, {"node": "b", "limit": "memory", "short": 500}],
        }
    ]
    assert "g: lost cannot go where it should: a: memory short by 600 MiB" in told["summary"]


def test_n1_names_the_node_whose_failure_strands_more(bench):
    """Drained, nothing is down: where N+1 is to be kept the instance on the drained node is told why it stays, else it leaves."""
    assert "lost" in balanced(bench, *tight(bench, drained=True))[2]
    told, group, homes = balanced(bench, *tight(bench, drained=True), redundancy="keep")
    assert "lost" not in homes
    (refused,) = group["refused"]
    assert refused["instance"] == "lost"
    assert {reason["limit"] for reason in refused["reasons"]} == {"shared_redundancy"}
    assert all(reason["short"] > 0 and "would be stranded" in reason["says"] for reason in refused["reasons"])
    assert "would be stranded" in told["summary"]


def test_what_is_down_may_break_soft_limits_when_nothing_else_is_left(bench):
    nodes = [bench.node("a", total_cpus=1.0), bench.node("b", total_cpus=1.0), bench.node("x", offline=True)]
    instances = [shared(bench, "i", "a", 100, vcpus=4), shared(bench, "j", "b", 100, vcpus=4), shared(bench, "lost", "x", 100)]
    assert "lost" in balanced(bench, nodes, instances)[2]


def test_what_is_down_may_break_soft_limits_on_its_way(bench):
    """It can only leave x over b, where one that cannot be moved has its tag."""
    nodes = [bench.node("b"), bench.node("c"), bench.node("x", offline=True)]
    instances = [bench.instance("lost", "x", "b", tags=("service:a",)), bench.instance("there", "b", tags=("service:a",))]
    cluster = bench.cluster(nodes, instances, [open_group("g")], tags=("htools:iextags:service",))
    told = run_balance(Loaded(cluster, {}), {"groups": ["g"]}, here)
    assert {move["instance"]: move["to"] for move in told["plan"]["moves"]} == {"lost": ["c", "b"]}
    assert told["groups"][0]["down"] == []


def test_others_make_room_for_what_is_down(bench):
    nodes = [bench.node("a"), bench.node("b", total_memory=700.0, free_memory=700), bench.node("x", offline=True)]
    instances = [shared(bench, "small", "a", 300), shared(bench, "lost", "x", 900)]
    _told, group, homes = balanced(bench, nodes, instances)
    assert homes == {"small": ["b"], "lost": ["a"]}
    assert group["down"] == []


def test_limits_that_are_broken_are_mended_before_n1(bench):
    """Node a has more virtual CPUs than it may; room for one of them is only where N+1 breaks."""
    nodes = [bench.node("a", total_cpus=1.0), bench.node("b"), bench.node("c", total_memory=1600.0, free_memory=1600)]
    instances = [shared(bench, "i", "a", 100, vcpus=3), shared(bench, "j", "a", 100, vcpus=3)]
    instances += [shared(bench, "k", "b", 950), shared(bench, "l", "c", 100)]
    _told, group, homes = balanced(bench, nodes, instances)
    assert {"i", "j"} & homes.keys()
    assert group["redundancy"]["for"] in ([], ["limits"])


def test_cpus_do_not_count_when_a_node_has_failed(bench):
    """By its CPUs nothing of node a could restart on b, as each is full; htools does not ask for that, and the score may fall."""
    nodes = [bench.node(name, total_cpus=2.0) for name in "abc"]
    instances = [shared(bench, f"i{number}", "a", 100, vcpus=2) for number in range(4)]
    _told, group, homes = balanced(bench, nodes, instances)
    assert homes
    assert group["redundancy"] == {"before": 0, "after": 0, "worse": [], "for": []}


@pytest.mark.parametrize("state", [{"drained": True}, {"offline": True}])
def test_a_node_of_a_group_of_two_is_emptied(bench, state):
    cluster = bench.cluster([bench.node("a", **state), bench.node("b")], [shared(bench, "i", "a", 300), shared(bench, "j", "b", 300)])
    found = run_evacuate(Loaded(cluster, {}), {"nodes": ["a"]})
    assert [placed["nodes"] for placed in found["placed"]] == [["b"]]
    assert not found["unplaced"]


def with_a_dead_node(bench):
    """A running instance and a forthcoming one on a node that is down, and one whose mirror is there."""
    nodes = [bench.node(name, total_disk=2048, free_disk=1024) for name in "abc"] + [bench.node("x", offline=True, total_disk=2048)]
    mirrored = {"memory": 100, "disk": 10, "disk_template": DiskTemplate.DRBD}
    return nodes, [
        bench.instance("lost", "x", "a", **mirrored),
        bench.instance("coming", "x", "b", **mirrored, forthcoming=True),
        bench.instance("half", "a", "x", **mirrored),
    ]


def test_where_moves_are_scarce_what_does_not_exist_yet_does_not_come_first(bench):
    _told, group, homes = balanced(bench, *with_a_dead_node(bench), max_moves=2)
    assert homes.keys() == {"lost", "half"}
    assert "coming" in balanced(bench, *with_a_dead_node(bench))[2]
    assert group["down"] == []


def test_who_stays_for_want_of_moves_is_not_said_to_have_no_node(bench):
    told, group, homes = balanced(bench, *with_a_dead_node(bench), max_moves=1)
    assert homes.keys() == {"lost"}
    (reason,) = next(one["reasons"] for one in group["refused"] if one["instance"] == "half")
    assert reason["limit"] == "plan"
    assert "half cannot go where it should: there is a place for it, but what limits moves" in told["summary"]


def first_things(cluster, redundancy):
    """Return what is left of what comes before N+1 on shared storage."""
    options = BalanceOptions(redundancy=redundancy)
    found = plan_group(Assignment(cluster, 0, options))
    return Walk(after_moves(ClusterState.from_cluster(cluster), found.plan.moves), 0, options).first_things()


def test_price_leaves_nothing_that_off_repairs():
    """Without a look at N+1, three tags more find room; only the whole search for that, by all prices, gets so far."""
    cluster = troubled_cluster(219)
    assert first_things(cluster, Redundancy.PRICE) <= first_things(cluster, Redundancy.OFF)
