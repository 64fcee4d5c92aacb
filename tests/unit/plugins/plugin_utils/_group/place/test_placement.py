# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Groups that can take an instance, in the right order; the others with every reason; many instances at once."""

from __future__ import annotations

import time

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import NOWHERE
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import (
    AllocPolicy,
    DiskTemplate,
    Policy,
    PoolKind,
    PoolName,
    Spec,
    SpecInterval,
    StoragePool,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.place.batch import place_instances
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.place.placement import PlacementRequest, find_places
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.place.refusal import Reason
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import place
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate
from ansible_collections.bareon.allocator.tests.support.group.policies import OPEN, open_group


def look(bench, nodes, instances, new, groups=(), tags=(), request=None):
    state = bench.state(nodes, instances, (new,), groups=groups or [open_group("g")], tags=tags)
    return find_places(state, len(instances), request or PlacementRequest())


def test_groups_are_ordered_by_policy_and_score(bench):
    nodes = [bench.node(f"{owner}{number}", owner) for owner in ("last", "full", "free", "closed") for number in range(2)]
    instances = [bench.instance(f"i{number}", f"full{number % 2}", memory=150) for number in range(4)]
    groups = [
        open_group("last", alloc_policy=AllocPolicy.LAST_RESORT),
        open_group("full"),
        open_group("free"),
        open_group("closed", alloc_policy=AllocPolicy.UNALLOCABLE),
    ]
    found = look(bench, nodes, instances, bench.instance("new", memory=300, disk=300), groups)
    assert [groups[placement.group].name for placement in found.placements] == ["free", "full", "last"]
    assert [(groups[refusal.group].name, refusal.reasons[0].limit) for refusal in found.refusals] == [("closed", "alloc_policy")]
    named = look(bench, nodes, instances, bench.instance("new"), groups, request=PlacementRequest(group=3))
    assert [placement.group for placement in named.placements] == [3]


def test_every_node_tells_what_it_lacks(bench):
    nodes = [
        bench.node("memory", free_memory=90),
        bench.node("disk", free_disk=400),
        bench.node("cpus", total_cpus=0.5, total_memory=2000.0, free_memory=2000),
        bench.node("off", offline=True),
    ]
    found = look(bench, nodes, [], bench.instance("new", memory=100, disk=1000, vcpus=4))
    assert not found.placements
    assert set(found.refusals[0].reasons) == {
        Reason(3, "offline", 0.0),
        Reason(0, "memory", 10.0),
        Reason(1, "disk", 600.0),
        Reason(2, "cpus", 2.0),
    }


def test_a_mirrored_instance_tells_why_no_node_can_be_the_secondary(bench):
    nodes = [bench.node("a"), bench.node("b", free_disk=500)]
    found = look(bench, nodes, [], bench.instance("new", disk_template=DiskTemplate.DRBD))
    assert Reason(1, "disk", 500.0) in found.refusals[0].reasons
    lonely = look(bench, [bench.node("a")], [], bench.instance("new", disk_template=DiskTemplate.DRBD))
    assert lonely.refusals[0].reasons == (Reason(0, "nodes", 1.0, "a second node is needed"),)


def test_networks_and_policies_keep_groups_out(bench):
    small = Policy(intervals=(SpecInterval(Spec(0, 0, 0, 0, 0, 0), Spec(50, 99, 99999, 9, 9, 9)),))
    groups = [open_group("net", networks=("blue",)), open_group("none"), open_group("small", networks=("blue",), policy=small)]
    nodes = [bench.node(owner.name, owner.name) for owner in groups]
    found = look(bench, nodes, [], bench.instance("new", networks=("blue",)), groups)
    assert [placement.group for placement in found.placements] == [0]
    assert [(refusal.group, refusal.reasons[0].limit, refusal.reasons[0].short) for refusal in found.refusals] == [
        (1, "network", 1.0),
        (2, "policy_memory", 50.0),
    ]


def test_storage_pools_filter_nodes_and_groups(bench):
    san, nas = PoolName(PoolKind.EXTERNAL, "san"), PoolName(PoolKind.EXTERNAL, "nas")
    nodes = [
        bench.node("a", "reached", storage=(StoragePool(san, 5000, 5000),)),
        bench.node("b", "reached", storage=(StoragePool(san, 5000, 5000),)),
        bench.node("c", "other", storage=(StoragePool(nas, 5000, 100),)),
    ]
    new = bench.instance("new", disk_template=DiskTemplate.EXT, storage=san)
    found = look(bench, nodes, [], new, [open_group("reached"), open_group("other")])
    assert [placement.group for placement in found.placements] == [0]
    assert found.refusals[0].reasons == (Reason(2, "pool", 1000.0),)
    other = bench.instance("new", disk_template=DiskTemplate.EXT, storage=nas)
    assert look(bench, nodes, [], other, [open_group("reached"), open_group("other")]).refusals[1].reasons == (Reason(2, "disk", 900.0),)


def test_exact_fits_are_taken(bench):
    full = bench.instance("new", memory=1000, disk=10000, vcpus=10)
    assert look(bench, [bench.node("a")], [], full, [open_group("g", policy=Policy(intervals=OPEN.intervals, vcpu_ratio=1.0))]).placements


def unhealthy(bench, name):
    """Return a group that fails N+1: what is mirrored on its second node no longer fits there."""
    nodes = [bench.node(f"{name}{number}", name) for number in range(2)]
    return nodes, [
        bench.instance(f"{name}-a", f"{name}0", f"{name}1", memory=600),
        bench.instance(f"{name}-b", f"{name}1", f"{name}0", memory=600),
    ]


def test_an_unrelated_group_in_trouble_blocks_nothing(bench):
    bad, instances = unhealthy(bench, "bad")
    nodes = [*bad, bench.node("a", "good"), bench.node("b", "good")]
    new = bench.instance("new", memory=500, disk_template=DiskTemplate.DRBD)
    found = look(bench, nodes, instances, new, [open_group("bad"), open_group("good")])
    assert [placement.group for placement in found.placements] == [1]


def test_a_node_that_fails_already_is_no_free_for_all(bench):
    bad, instances = unhealthy(bench, "bad")
    found = look(bench, bad, instances, bench.instance("new", memory=50), [open_group("bad")])
    assert not found.placements
    assert {(reason.node, reason.limit) for reason in found.refusals[0].reasons} == {(0, "redundancy"), (1, "redundancy")}


def test_what_restarts_on_shared_storage_keeps_its_room(bench):
    """Two nodes, 400 of 1000 MiB used on each: more than 200 MiB in all would leave something without a place."""
    nodes = [bench.node("a"), bench.node("b")]
    instances = [bench.instance(f"i{name}", name, memory=400, disk_template=DiskTemplate.EXT) for name in ("a", "b")]
    small = bench.instance("new", memory=200, disk_template=DiskTemplate.EXT)
    assert look(bench, nodes, instances, small).placements
    refused = look(bench, nodes, instances, bench.instance("new", memory=201, disk_template=DiskTemplate.EXT))
    assert refused.refusals[0].reasons[-1].limit == "shared_redundancy"
    plain = look(bench, nodes, instances, bench.instance("new", memory=201))
    assert plain.refusals[0].reasons[-1].limit == "shared_redundancy"


def test_the_earlier_one_makes_way_when_only_together_all_fit(bench):
    """Balance puts the small one on the larger node, which the large one needs as a whole."""
    nodes = [bench.node("large"), bench.node("small", total_memory=500.0, free_memory=500)]
    new = (bench.instance("first", memory=400, disk=100), bench.instance("second", memory=1000, disk=100))
    state = bench.state(nodes, (), new, groups=[open_group("g")])
    results, after = place_instances(state, [(0, PlacementRequest()), (1, PlacementRequest())])
    assert [found.placements[0].nodes for found in results] == [(1,), (0,)]
    assert after.primary.tolist() == [1, 0]
    assert state.primary.tolist() == [NOWHERE, NOWHERE]


def test_mirrors_are_assigned_with_what_they_keep_for_failovers(bench):
    """Six mirrors of 300 MiB on three nodes: each node carries two and keeps 300 for one failed neighbour."""
    nodes = [bench.node(f"n{number}", total_memory=900.0, free_memory=900) for number in range(3)]
    new = tuple(bench.instance(f"i{number}", memory=300, disk=100, disk_template=DiskTemplate.DRBD) for number in range(6))
    state = bench.state(nodes, (), new, groups=[open_group("g")])
    results, after = place_instances(state, [(number, PlacementRequest()) for number in range(6)])
    assert all(found.placements for found in results)
    assert np.bincount(after.primary).tolist() == [2, 2, 2]
    assert (after.reserved <= after.quantities[0]).all()


def test_who_cannot_be_placed_leaves_the_others_alone(bench):
    new = (bench.instance("huge", memory=5000), bench.instance("fine"))
    state = bench.state([bench.node("a")], (), new, groups=[open_group("g")])
    results, _after = place_instances(state, [(0, PlacementRequest()), (1, PlacementRequest())])
    assert [bool(found.placements) for found in results] == [False, True]


def test_each_instance_may_name_its_group(bench):
    cluster = bench.cluster([bench.node("a", "x"), bench.node("b", "y")], (), [open_group("x"), open_group("y")])
    items = [{"name": f"i{name}", "memory": 10, "disk": 10, "vcpus": 1, "group": name} for name in ("y", "uuid-x")]
    found = place(Loaded(cluster, {}), {"instances": items})
    assert [solution["groups"][0]["group"] for solution in found["solutions"]] == ["y", "x"]


def test_unknown_names_are_told_together(bench):
    cluster = bench.cluster([bench.node("node1")], (), [open_group("g")])
    arguments = {"instances": [{"name": "i", "memory": 1, "disk": 1, "vcpus": 1, "group": "h"}], "nodes": ["node1", "nod"], "group": "k"}
    with pytest.raises(InputError) as raised:
        place(Loaded(cluster, {}), arguments)
    assert [mistake.place for mistake in raised.value.mistakes] == ["nodes[1]", "group", "instances[0].group"]


@pytest.mark.parametrize("template", ["ext", "drbd"])
def test_a_cluster_that_is_not_redundant_is_answered_soon(template):
    """hail tries every pair, for minutes, when each of them leaves something stranded."""
    cluster = parse_text(generate(nodes=40, template="mixed", extags=True, loctags=True).text())
    assert ClusterState.from_cluster(cluster).fails_n1.any()
    wanted = [{"name": "new", "memory": 8192, "disk": 20480, "vcpus": 2, "disk_template": template}]
    started = time.process_time()
    found = place(Loaded(cluster, {}), {"instances": wanted})["solutions"][0]
    assert time.process_time() - started < 10
    assert found["groups"]
