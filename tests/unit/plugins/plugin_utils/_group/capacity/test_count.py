# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many more fit: exactly, in every group, whatever is wrong elsewhere; what keeps the next one out, and what to add."""

from __future__ import annotations

import concurrent.futures
import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import (
    AllocPolicy,
    DiskTemplate,
    Group,
    Policy,
    PoolKind,
    PoolName,
    Spec,
    SpecInterval,
    StoragePool,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.capacity import run_capacity
from ansible_collections.bareon.allocator.tests.support.group.policies import OPEN, open_group

SAN = PoolName(PoolKind.EXTERNAL, "san")
SMALL = {"memory": 100, "disk": 1000, "vcpus": 1, "disk_template": "plain"}


def run(bench, members, guests=(), groups=(), run_with=map, policy=OPEN, **arguments):
    known = {group.name: group for group in groups}
    names = dict.fromkeys(node.group for node in members)
    made = [known.get(name) or Group(name, f"uuid-{name}", policy=policy) for name in names]
    cluster = dataclasses.replace(bench.cluster(members, guests, made), policy=policy)
    return run_capacity(Loaded(cluster, {}), {"spec": SMALL} | arguments, run_with)


def test_nodes_are_filled_to_the_last_mib(bench):
    found = run(bench, [bench.node("a"), bench.node("b", total_disk=3500.0, free_disk=3500)])
    assert found["count"] == 13
    assert found["groups"][0]["nodes"] == {"a": 10, "b": 3}
    assert found["groups"][0]["limits"] == {"memory": 1, "disk": 1}


def test_as_hspace_counts_a_mib_stays_free(bench):
    assert run(bench, [bench.node("a")], score="htools")["count"] == 9


def test_mirrored_instances_keep_memory_for_failovers(bench):
    found = run(bench, [bench.node(name, total_disk=1e6, free_disk=10**6) for name in "ab"], spec=SMALL | {"disk_template": "drbd"})
    assert found["count"] == 10
    assert found["groups"][0]["limits"] == {"redundancy": 2}


def test_an_ill_group_makes_no_count_zero(bench):
    """Ganeti's hspace answers 0 for all groups when one node fails N+1."""
    members = [bench.node(name) for name in ("a1", "a2")] + [bench.node(name, "b") for name in ("b1", "b2")]
    ill = [bench.instance(f"i{n}", "a1", "a2", memory=600) for n in range(1)] + [bench.instance("j", "a2", "a1", memory=500)]
    found = run(bench, members, ill)
    assert {told["group"]: told["count"] for told in found["groups"]} == {"g": 0, "b": 20}
    assert found["count"] == 20


def test_a_failing_node_takes_what_makes_it_no_worse(bench):
    members = [bench.node("a1"), bench.node("a2"), bench.node("a3")]
    ill = [bench.instance("i", "a1", "a2", memory=600), bench.instance("j", "a2", "a1", memory=500)]
    assert run(bench, members, ill)["groups"][0]["nodes"] == {"a3": 10}


def test_groups_that_take_no_instances_are_counted_but_not_in_the_whole(bench):
    members = [bench.node("a"), bench.node("b", "closed")]
    closed = open_group("closed", alloc_policy=AllocPolicy.UNALLOCABLE)
    found = run(bench, members, groups=[closed])
    assert [told["count"] for told in found["groups"]] == [10, 10]
    assert found["count"] == 10


def test_a_pool_shared_by_groups_is_counted_once(bench):
    pool = (StoragePool(SAN, 9000, 7000),)
    members = [bench.node(f"{name}{n}", name, storage=pool, total_memory=9000.0, free_memory=9000) for name in "ab" for n in range(2)]
    spec = {"memory": 10, "disk": 1000, "vcpus": 1, "disk_template": "ext", "storage": {"type": "external", "pool": "san"}}
    found = run(bench, members, spec=spec)
    assert [told["count"] for told in found["groups"]] == [7, 7]
    assert found["count"] == 7


def test_those_on_shared_storage_must_be_able_to_restart(bench):
    spec = SMALL | {"disk_template": "ext", "vcpus": 0}
    found = run(bench, [bench.node(name) for name in "abc"], spec=spec)
    assert found["count"] == 20
    assert found["groups"][0]["limits"] == {"shared_redundancy": 1}


def test_the_policy_of_a_group_keeps_sizes_out(bench):
    narrow = Policy(intervals=(SpecInterval(Spec(200, 1, 1, 1, 1, 1), Spec(500, 9, 9999, 9, 9, 9)),))
    found = run(bench, [bench.node("a")], groups=[Group("g", "u", policy=narrow)])
    assert found["count"] == 0
    assert found["groups"][0]["limits"] == {"memory": 1}


def test_what_is_left_out_comes_from_the_policy(bench):
    policy = dataclasses.replace(OPEN, standard=Spec(250, 1, 100, 1, 1, 1), disk_templates=(DiskTemplate.PLAIN,))
    found = run(bench, [bench.node("a")], policy=policy, spec=None)
    assert found["spec"] == {"memory": 250, "disk": 100, "vcpus": 1, "disk_template": "plain"}
    assert found["count"] == 4


def test_the_smallest_tier_is_one_unit(bench):
    policy = dataclasses.replace(OPEN, intervals=(SpecInterval(OPEN.intervals[0].minimum, Spec(128, 1, 512, 1, 1, 1)),))
    tight = bench.node("a", total_memory=64.0, free_memory=64, total_disk=256.0, free_disk=256)
    found = run(bench, [tight], policy=policy, spec={"disk_template": "plain"}, tiered=True)
    assert [(tier["spec"]["memory"], tier["spec"]["disk"], tier["count"]) for tier in found["tiers"]] == [(64, 256, 1)]


def test_tiers_begin_with_the_largest_size(bench):
    policy = Policy(intervals=(SpecInterval(Spec(64, 1, 256, 1, 1, 1), Spec(640, 2, 2560, 1, 1, 2)),), disk_templates=(DiskTemplate.PLAIN,))
    found = run(bench, [bench.node("a")], policy=policy, spec=None, tiered=True)
    assert [(tier["spec"]["memory"], tier["count"]) for tier in found["tiers"]] == [(640, 1), (320, 1)]
    assert found["tiered_count"] == 2


def test_the_summary_says_how_many_where_and_what_is_in_the_way(bench):
    found = run(bench, [bench.node("a")], spec={"memory": 400, "disk": 100, "vcpus": 1, "disk_template": "plain"}, want=5, tiered=True)
    assert found["summary"].splitlines()[:5] == [
        "2 more of 400 MiB memory, 100 MiB disk and 1 CPU (plain) fit.",
        "",
        "group  more  what keeps the next one out  nodes to add for 5",
        "g         2  memory at 1 node             2 like a",
        "",
    ]
    assert found["summary"].splitlines()[5] == f"In tiers {found['tiered_count']} fit, the largest first:"


def test_what_to_add_for_more(bench):
    found = run(bench, [bench.node("a"), bench.node("b")], want=45)
    add = found["groups"][0]["add"]
    assert (add["nodes"], add["like"], add["count"]) == (3, "a", 45)
    assert add["each"] == {"memory": 1000, "disk": 10000, "cpus": 10.0}
    assert run(bench, [bench.node("a")], want=5)["groups"][0]["add"]["nodes"] == 0


def test_no_number_of_nodes_helps_against_a_policy(bench):
    narrow = Policy(intervals=(SpecInterval(Spec(200, 1, 1, 1, 1, 1), Spec(500, 9, 9999, 9, 9, 9)),))
    assert run(bench, [bench.node("a")], groups=[Group("g", "u", policy=narrow)], want=5)["groups"][0]["add"]["nodes"] is None


def test_a_group_without_nodes_has_none_to_be_like(bench):
    cluster = dataclasses.replace(bench.cluster([bench.node("a")]), groups=(open_group("g"), open_group("empty")), policy=OPEN)
    found = run_capacity(Loaded(cluster, {}), {"spec": SMALL, "want": 5})
    assert found["groups"][1]["add"] == {"nodes": None, "least": None, "like": None, "each": None, "count": 0}
    assert "no number is enough" in found["summary"]


def part(disk):
    return SpecInterval(Spec(0, 0, disk, 1, 1, 0), Spec(99999, 99, disk, 1, 9, 9))


def dedicated(bench, **arguments):
    """Nodes that are given away whole, in halves and in quarters: one empty, one half full, one a quarter full."""
    parts = Policy(intervals=(part(10000), part(5000), part(2500)))
    members = [bench.node(name, exclusive_storage=True, spindles=4, free_spindles=free) for name, free in (("a", 4), ("b", 2), ("c", 3))]
    old = [bench.instance("half", "b", disk=5000), bench.instance("quarter", "c", disk=2500)]
    spec = {"memory": 10, "vcpus": 0, "disks": [{"size": arguments.pop("size"), "spindles": 1}], "disk_template": "plain"}
    return run(bench, members, old, groups=[Group("g", "u", policy=parts)], spec=spec, **arguments)


def test_nodes_given_away_in_parts_are_counted_with_their_allocations(bench):
    found = dedicated(bench, size=2500)
    assert found["count"] == 9
    assert [(size["disk"], size["count"]) for size in found["groups"][0]["allocations"]] == [(10000, 1), (5000, 4), (2500, 9)]
    assert dedicated(bench, size=10000)["count"] == 1


def test_parts_are_taken_where_the_least_is_lost(bench):
    """The first five quarters fill what is broken already, so that the empty node stays whole until there is no other."""
    assert dedicated(bench, size=5000)["count"] == 4
    assert dedicated(bench, size=2500, strategy="partitioned", want=5)["groups"][0]["add"]["nodes"] == 0


def test_bug_12_an_instance_that_needs_nothing_is_refused_instead_of_counted_for_ever(bench):
    """Ganeti's hspace and hail count without end when a policy's smallest size is zero."""
    nothing = {"memory": 0, "disk": 0, "vcpus": 0, "disk_template": "plain"}
    with pytest.raises(InputError, match="needs nothing that a node could run out of"):
        run(bench, [bench.node("a")], spec=nothing)
    zero = Policy(intervals=(SpecInterval(Spec(0, 0, 0, 0, 0, 0), Spec(100, 1, 1000, 1, 1, 1)),), standard=Spec(0, 0, 0, 1, 1, 0))
    with pytest.raises(InputError, match="any number fits"):
        run(bench, [bench.node("a")], spec=None, policy=zero)
    members = [bench.node("a", exclusive_storage=True, spindles=4, free_spindles=4)]
    found = run(bench, members, policy=zero, strategy="partitioned", spec=SMALL | {"spindle_use": 1}, tiered=True)
    assert found["count"] == 10
    assert found["groups"][0]["allocations"] == []
    assert found["tiered_count"] == 4


def test_all_mistakes_are_told(bench):
    with pytest.raises(InputError) as error:
        run(bench, [bench.node("a")], spec={"memory": "x", "vcpus": -1, "primary": "a"}, want=0)
    assert {mistake.place for mistake in error.value.mistakes} >= {"spec.memory", "spec.vcpus", "spec.primary", "want"}


def test_groups_may_be_counted_side_by_side(bench):
    members = [bench.node("a"), bench.node("b", "b")]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert run(bench, members, run_with=pool.map, tiered=True) == run(bench, members, tiered=True)
