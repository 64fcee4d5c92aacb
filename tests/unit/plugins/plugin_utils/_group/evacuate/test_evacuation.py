# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Emptied nodes: complete whenever that is possible, by moves that can be carried out, with reasons for what stays."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import AllocPolicy, DiskTemplate, Status
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.tests.support.group.policies import open_group


def run(bench, members, guests, groups=(), tags=(), **arguments):
    cluster = bench.cluster(members, guests, groups or [open_group("g")], tags)
    return run_evacuate(Loaded(cluster, {}), arguments)


def homes(result):
    return {placed["instance"]: placed["nodes"] for placed in result["placed"]}


def test_primaries_fail_over(bench):
    nodes = [bench.node(name) for name in "abc"]
    found = run(bench, nodes, [bench.instance("i", "a", "b"), bench.instance("j", "b", "a")], nodes=["a"], mode="primary")
    assert homes(found) == {"i": ["b", "a"]}
    assert found["plan"]["commands"] == ["gnt-instance migrate -f i"]


def test_a_primary_that_cannot_fail_over_goes_elsewhere(bench):
    nodes = [bench.node("a"), bench.node("b", total_cpus=0.2, total_memory=2000.0, free_memory=2000), bench.node("c")]
    found = run(bench, nodes, [bench.instance("i", "a", "b")], nodes=["a"], mode="primary")
    assert homes(found) in ({"i": ["c", "a"]}, {"i": ["c", "b"]})


def test_secondaries_are_replaced(bench):
    nodes = [bench.node(name) for name in "abc"]
    found = run(bench, nodes, [bench.instance("i", "a", "b"), bench.instance("j", "b", "a")], nodes=["b"], mode="secondary")
    assert homes(found) == {"i": ["a", "c"]}
    assert found["plan"]["moves"][0]["data"] == 1000
    assert found["plan"]["commands"] == ["gnt-instance replace-disks -n c i"]


def test_emptying_a_node_does_not_avoid_the_mirrors_of_its_instances(bench):
    """Ganeti's hail avoids every node that any of them has, and then finds none left."""
    nodes = [bench.node(name) for name in "abcd"]
    instances = [bench.instance(f"i{other}", "a", other) for other in "bcd"]
    found = run(bench, nodes, instances, nodes=["a"], mode="all")
    assert not found["unplaced"]
    assert all("a" not in placed["nodes"] for placed in found["placed"])
    assert all(move["data"] == 1000 for move in found["plan"]["moves"])
    asked = Loaded(bench.cluster(nodes, instances, [open_group("g")]), {"type": "node-evacuate", "instances": ["ib", "ic", "id"]})
    assert len(run_evacuate(asked, {"mode": "all"})["placed"]) == 3


def test_running_instances_get_the_better_places(bench):
    """In the own group there is a CPU for one of the two only; the larger one is stopped."""
    nodes = [bench.node("a"), bench.node("b", total_cpus=0.25), bench.node("c", "h"), bench.node("d", "h")]
    stopped = bench.instance("stopped", "a", memory=500, disk_template=DiskTemplate.EXT, status=Status.ADMIN_DOWN, shares_cpus=True)
    running = bench.instance("running", "a", memory=100, disk_template=DiskTemplate.EXT, shares_cpus=True)
    groups = [open_group("g"), open_group("h")]
    found = run(bench, nodes, [stopped, running], groups, nodes=["a"], across_groups="true")
    assert homes(found)["running"] == ["b"]
    assert homes(found)["stopped"] in (["c"], ["d"])


def test_an_exact_packing_is_found(bench):
    """Rooms of 500 and 700 MiB take 300 + 200 and 400 + 300, which filling by size or by balance misses."""
    nodes = [bench.node("x", total_memory=2000.0, free_memory=2000), bench.node("b", free_memory=500, total_memory=500.0)]
    nodes.append(bench.node("c", free_memory=700, total_memory=700.0))
    shared = DiskTemplate.EXT
    sizes = (400, 300, 300, 200)
    instances = [bench.instance(f"i{number}", "x", memory=memory, disk_template=shared) for number, memory in enumerate(sizes)]
    found = run(bench, nodes, instances, nodes=["x"])
    assert not found["unplaced"]
    assert sorted(tuple(sorted(memory for i, memory in zip(instances, sizes) if homes(found)[i.name] == [node])) for node in "bc") == [
        (200, 300),
        (300, 400),
    ]


def shared(bench, name, node, memory):
    return bench.instance(name, node, memory=memory, disk_template=DiskTemplate.EXT)


def test_room_to_restart_after_the_next_failure_is_left(bench):
    """On b it would take what the large one needs when c fails; the other group, which nothing goes to, is of no concern."""
    rooms = {"a": 600, "b": 900, "c": 1000, "d": 500}
    nodes = [bench.node(name, total_memory=float(room), free_memory=room) for name, room in rooms.items()]
    bad = [bench.node("x", "h"), bench.node("y", "h")]
    instances = [shared(bench, "small", "a", 300), shared(bench, "large", "c", 800), shared(bench, "on a", "a", 200)]
    instances += [shared(bench, "bad", "x", 900), shared(bench, "worse", "y", 900)]
    found = run(bench, [*nodes, *bad], instances, [open_group("g"), open_group("h")], nodes=["a"])
    assert not found["unplaced"]
    assert "b" not in [node for placed in found["placed"] for node in placed["nodes"]]


def test_what_would_leave_no_room_to_restart_stays_and_says_so(bench):
    nodes = [bench.node("a", total_memory=500.0, free_memory=500), bench.node("b"), bench.node("c")]
    instances = [shared(bench, "small", "a", 300), shared(bench, "large", "c", 900)]
    found = run(bench, nodes, instances, nodes=["a"])
    assert found["placed"] == []
    reasons = {reason["limit"]: reason for reason in found["unplaced"][0]["reasons"]}
    assert (reasons["shared_redundancy"]["node"], reasons["shared_redundancy"]["short"]) == ("b", 900)
    assert reasons["shared_redundancy"]["says"] == "if c failed, 900 MiB more of instances on shared storage would be stranded"
    dead = [bench.node("a", offline=True), *nodes[1:]]
    saved = run(bench, dead, instances, nodes=["a"])
    assert [(placed["nodes"], placed["relaxed"]) for placed in saved["placed"]] == [(["b"], True)]


def test_a_place_that_is_left_by_another_is_room_to_restart(bench):
    """Two that leave the same node, one of which makes the room that the other takes."""
    nodes = [bench.node("a"), bench.node("b"), bench.node("c", total_memory=600.0, free_memory=600)]
    instances = [shared(bench, "i", "a", 400), shared(bench, "j", "a", 500), shared(bench, "k", "b", 100)]
    found = run(bench, nodes, instances, nodes=["a"])
    assert not found["unplaced"]


def test_running_instances_come_first_and_the_others_have_reasons(bench):
    nodes = [bench.node("x"), bench.node("b", free_memory=300, total_memory=300.0)]
    instances = [
        bench.instance("stopped", "x", memory=250, disk_template=DiskTemplate.EXT, status="ADMIN_down"),
        bench.instance("running", "x", memory=200, disk_template=DiskTemplate.EXT),
    ]
    found = run(bench, nodes, instances, nodes=["x"])
    assert homes(found) == {"running": ["b"]}
    assert found["unplaced"] == [{"instance": "stopped", "reasons": [{"node": "b", "limit": "memory", "short": 150}]}]


def test_other_groups_are_used_only_when_asked(bench):
    nodes = [bench.node("a"), bench.node("b", free_disk=0), *(bench.node(name, "h") for name in "cde")]
    nodes += [bench.node(name, "closed") for name in "fg"]
    groups = [open_group("g"), open_group("h"), open_group("closed", alloc_policy=AllocPolicy.UNALLOCABLE)]
    instances = [bench.instance("i", "a", "b")]
    inside = run(bench, nodes, instances, groups, nodes=["a"])
    assert inside["unplaced"][0]["reasons"]
    across = run(bench, nodes, instances, groups, nodes=["a"], across_groups="true")
    assert across["placed"][0]["group"] == "h"
    assert across["plan"]["moves"][0]["kind"] == "replace_both"
    assert len(across["plan"]["commands"]) == 3
    assert across["plan"]["moves"][0]["data"] == 2000
    roomy = [bench.node("a"), bench.node("b"), bench.node("z"), *nodes[2:]]
    assert run(bench, roomy, instances, groups, nodes=["a"], across_groups="true")["placed"][0]["group"] == "g"
    assert run(bench, roomy, instances, groups, nodes=["a"], across_groups="only")["placed"][0]["group"] == "h"


def test_a_dead_node_is_left_by_failovers(bench):
    nodes = [bench.node("a", offline=True), bench.node("b"), bench.node("c")]
    instances = [bench.instance("i", "a", "b"), bench.instance("j", "b", "a")]
    found = run(bench, nodes, instances)
    assert {name: sorted(places) for name, places in homes(found).items()} == {"i": ["b", "c"], "j": ["b", "c"]}
    of_i = [line for line in found["plan"]["commands"] if line.endswith(" i")]
    assert of_i[:2] == ["gnt-instance failover -f --ignore-consistency i", "gnt-instance replace-disks -n c i"]
    assert [move["data"] for move in found["plan"]["moves"]] == [1000, 1000]
    primary = run(bench, nodes, instances, mode="primary")
    assert homes(primary) == {"i": ["b", "a"]}


def test_a_drained_node_is_left_live_and_within_all_limits(bench):
    nodes = [bench.node("a", drained=True), bench.node("b"), bench.node("c")]
    instances = [bench.instance("i", "a", "b"), bench.instance("j", "b", "a"), bench.instance("off", "a", "c", status="ADMIN_down")]
    found = run(bench, nodes, instances)
    assert {name: sorted(places) for name, places in homes(found).items()} == {name: ["b", "c"] for name in ("i", "j", "off")}
    assert "ignore-consistency" not in " ".join(found["plan"]["commands"])
    assert {line for line in found["plan"]["commands"] if "failover" in line} == {"gnt-instance failover -f off"}
    assert any(line.startswith("gnt-instance migrate -f") and line.endswith(" i") for line in found["plan"]["commands"])
    assert {node["node"]: node["state"] for node in found["plan"]["nodes"]} == {"a": "drained", "b": "up", "c": "up"}
    full = [nodes[0], bench.node("b"), bench.node("c", free_disk=0)]
    kept = [bench.instance("i", "a", "b", memory=500, disk=100), bench.instance("k", "c", "b", memory=600, disk=0)]
    assert run(bench, full, kept, mode="primary")["placed"] == []


def test_after_a_failure_soft_limits_give_way_and_that_is_told(bench):
    """Starting both on b leaves no room for the failure of c, which is what the room was for."""
    nodes = [bench.node("a", offline=True), bench.node("b"), bench.node("c", free_disk=0)]
    instances = [bench.instance("i", "a", "b", memory=500, disk=100), bench.instance("k", "c", "b", memory=600, disk=0)]
    found = run(bench, nodes, instances, mode="primary")
    assert [(placed["instance"], placed["nodes"], placed["relaxed"]) for placed in found["placed"]] == [("i", ["b", "a"], True)]


@pytest.mark.parametrize(("state", "leaves"), [("drained", []), ("offline", [("small", ["n2"])])])
def test_who_is_to_be_with_one_that_has_no_place_stays_with_it_while_their_node_answers(state, leaves):
    def node(name, memory, **state):
        return {"name": name, "total_memory": memory, "total_cpus": 32, "storage": [{"type": "external", "pool": "san"}], **state}

    def guest(name, memory):
        return {
            "name": name,
            "memory": memory,
            "disk": 1,
            "vcpus": 1,
            "primary": "n1",
            "storage": {"type": "external", "pool": "san"},
            "disk_template": "ext",
        }

    given = {
        "nodes": [node("n1", 65536, **{state: True}), node("n2", 8192)],
        "instances": [guest("large", 32768), guest("small", 1024)],
        "rules": [{"type": "affinity", "instances": ["large", "small"]}],
    }
    found = run_evacuate(Loaded(parse_inline(given), {}), {"nodes": ["n1"]})
    assert [(move["instance"], move["to"]) for move in found["plan"]["moves"]] == leaves
    reasons = {one["instance"]: [reason.get("says", reason["limit"]) for reason in one["reasons"]] for one in found["unplaced"]}
    assert reasons["large"] == ["memory"]
    assert reasons.get("small", []) == ([] if leaves else ["rule affinity rule 0 keeps small off n2"])


def test_who_is_to_be_with_one_that_the_next_failure_keeps_out_stays_with_it():
    """Without n1 its neighbours cannot hold all after a failure, so that somebody has to stay."""
    pool = {"type": "external", "pool": "san"}
    shared = {"disk": 1024, "vcpus": 1, "storage": pool, "disk_template": "ext"}
    nodes = [{"name": name, "total_memory": 32768, "total_cpus": 32, "storage": [pool]} for name in ("n1", "n2", "n3")]
    homes = {"a": ("n1", 1024), "b": ("n1", 2048), "c": ("n1", 6144), "d": ("n2", 6144), "e": ("n3", 6144)}
    homes |= {"f": ("n2", 6144), "g": ("n2", 6144)}
    given = {
        "nodes": [{**nodes[0], "drained": True}, *nodes[1:]],
        "instances": [{"name": name, "primary": node, "memory": memory, **shared} for name, (node, memory) in homes.items()],
        "rules": [{"type": "affinity", "instances": ["a", "b"]}],
    }
    found = run_evacuate(Loaded(parse_inline(given), {}), {"nodes": ["n1"]})
    going = {move["instance"]: move["to"][0] for move in found["plan"]["moves"]}
    assert going.get("a") == going.get("b")
    assert going
    assert {one["instance"] for one in found["unplaced"]} == {"a", "b", "c"} - going.keys()


def test_what_cannot_move_says_so(bench):
    nodes = [bench.node("a"), bench.node("b")]
    found = run(bench, nodes, [bench.instance("i", "a")], nodes=["a"])
    assert found["unplaced"][0]["reasons"][0]["limit"] == "template"
    dead = [bench.node("a", offline=True), bench.node("b", offline=True), bench.node("c"), bench.node("d")]
    lost = run(bench, dead, [bench.instance("i", "a", "b")])
    assert lost["unplaced"][0]["reasons"] == [
        {"node": "a", "limit": "offline", "short": 0, "says": "its primary is down, so its disks cannot be copied from there"},
    ]


def test_stages_hold_moves_that_do_not_need_each_other(bench):
    nodes = [bench.node(name) for name in "abcdef"]
    instances = [bench.instance("i", "a", "b"), bench.instance("j", "a", "c"), bench.instance("k", "a", "d")]
    found = run(bench, nodes, instances, nodes=["a"], mode="primary")
    assert found["plan"]["stages"] == [[0, 1, 2]]
    assert [move["after"] for move in found["plan"]["moves"]] == [[], [], []]


def test_migration_tags_are_kept(bench):
    nodes = [bench.node("a", tags=("hv:new",)), bench.node("b"), bench.node("c", tags=("hv:new",))]
    found = run(bench, nodes, [bench.instance("i", "a", "b")], (), ("htools:migration:hv",), nodes=["a"], mode="primary")
    assert homes(found)["i"][0] == "c"


def test_nothing_to_do_is_an_empty_plan(bench):
    found = run(bench, [bench.node("a")], [])
    assert (found["placed"], found["unplaced"], found["plan"]["moves"], found["plan"]["stages"]) == ([], [], [], [])


@pytest.mark.parametrize(
    ("arguments", "place"),
    [({"nodes": ["x", "b"]}, "nodes[0]"), ({"instances": ["y"]}, "instances[0]"), ({"nodes": []}, "nodes")],
)
def test_unknown_names_are_told(bench, arguments, place):
    with pytest.raises(InputError) as raised:
        run(bench, [bench.node("b")], [], **arguments)
    assert [mistake.place for mistake in raised.value.mistakes] == [place]
