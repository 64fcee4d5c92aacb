# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Failures of nodes: drbd's N+1, and restarts of instances on shared storage, against trying every arrangement."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.highs import Effort
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import NOWHERE
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate, PoolKind, PoolName, StoragePool
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.redundancy import node_failures, node_reserves, pool_reserves
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SAN, NAS = (PoolName(PoolKind.EXTERNAL, name) for name in ("san", "nas"))


def shared(bench, name, primary, **fields):
    return bench.instance(name, primary, disk_template=DiskTemplate.EXT, **fields)


def test_reserve_is_for_the_worst_other_node(bench):
    nodes = [bench.node("a"), bench.node("b"), bench.node("c", total_memory=450.0, free_memory=450)]
    instances = [
        bench.instance("i", "a", "c", memory=300),
        bench.instance("j", "b", "c", memory=200),
        bench.instance("k", "b", "c", memory=200),
    ]
    reserves = node_reserves(bench.state(nodes, instances))
    assert [(r.reserved, r.short, r.worst) for r in reserves] == [(0, 0, NOWHERE), (0, 0, NOWHERE), (400, 0, 1)]
    (last,) = node_reserves(bench.state(nodes, [*instances, bench.instance("l", "c", memory=60)]))[2:]
    assert (last.free, last.short) == (390, 10)


def test_best_fit_is_not_the_last_word(bench):
    """Best fit puts 5 on the node of 7 and 4 and 3 on that of 8, and has no room for the last 3; 4+3 and 5+3 fit."""
    nodes = [bench.node("failing"), *(bench.node(f"n{size}", total_memory=float(size), free_memory=size) for size in (7, 8))]
    state = bench.state(nodes, [shared(bench, f"i{n}", "failing", memory=memory) for n, memory in enumerate([5, 4, 3, 3])])
    assert [(failure.stranded, failure.proven) for failure in node_failures(state, 0, Effort(0))] == [((3,), False)]
    assert [(failure.stranded, failure.proven) for failure in node_failures(state, 0)] == [((), True)]


def test_without_time_the_answer_is_not_called_proven(bench):
    nodes = [bench.node("failing"), bench.node("small", total_memory=10.0, free_memory=10)]
    state = bench.state(nodes, [shared(bench, "i", "failing", memory=6), shared(bench, "j", "failing", memory=5)])
    (failure,) = node_failures(state, 0, Effort(0))
    assert (failure.stranded, failure.proven) == ((1,), False)


def test_failover_of_mirrored_instances_comes_first(bench):
    nodes = [bench.node("a"), bench.node("b", total_memory=150.0, free_memory=150)]
    instances = [bench.instance("mirrored", "a", "b", memory=100), shared(bench, "i", "a", memory=60)]
    (failure,) = node_failures(bench.state(nodes, instances), 0)
    assert failure.stranded == (1,)


def test_pools_limit_where_instances_restart(bench):
    nodes = [
        bench.node("a", storage=(StoragePool(SAN), StoragePool(NAS))),
        bench.node("b", storage=(StoragePool(SAN),)),
        bench.node("c", "other", storage=(StoragePool(NAS),)),
    ]
    instances = [
        shared(bench, "i", "a", storage=SAN),
        shared(bench, "j", "a", storage=NAS, memory=70),
        shared(bench, "k", "c", storage=NAS),
    ]
    state = bench.state(nodes, instances)
    reserves = pool_reserves(state, 0, node_failures(state, 0))
    assert [(r.pool, r.instances, r.needed, r.short, r.worst) for r in reserves] == [(NAS, 1, 70, 70, 0), (SAN, 1, 100, 0, 0)]
    assert node_failures(state, 1)[0].stranded == (2,), "it is alone in its group"


def test_stopped_instances_and_offline_nodes_do_not_count(bench):
    nodes = [bench.node("a"), bench.node("b", offline=True)]
    state = bench.state(nodes, [shared(bench, "i", "a", status="ADMIN_down"), shared(bench, "j", "b")])
    assert node_failures(state, 0) == []


def test_exclusion_tags_keep_instances_apart(bench):
    nodes = [bench.node(name) for name in "abc"]
    instances = [shared(bench, f"i{n}", "a", tags=("s:1",)) for n in range(2)]
    assert node_failures(bench.state(nodes, instances, tags=["htools:iextags:s"]), 0)[0].stranded == ()
    instances.append(shared(bench, "j", "b", tags=("s:1",)))
    assert len(node_failures(bench.state(nodes, instances, tags=["htools:iextags:s"]), 0)[0].stranded) == 1


def least_stranded(memories, tags, rooms):
    """Return the least memory that any arrangement leaves out, by trying all."""
    best = sum(memories)
    for places in itertools.product(range(len(rooms) + 1), repeat=len(memories)):
        groups = [[i for i, place in enumerate(places) if place == node] for node in range(len(rooms))]
        fits = all(
            sum(memories[i] for i in group) <= room and len({tags[i] for i in group if tags[i]}) == len([i for i in group if tags[i]])
            for group, room in zip(groups, rooms)
        )
        if fits:
            best = min(best, sum(memory for memory, place in zip(memories, places) if place == len(rooms)))
    return best


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_arrangement_strands_less(bench, data):
    count = data.draw(st.integers(1, 5))
    memories = data.draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))
    cpus = data.draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))
    tags = data.draw(st.lists(st.sampled_from(["", "", "s:1", "s:2"]), min_size=count, max_size=count))
    rooms = data.draw(st.lists(st.integers(1, 15), min_size=1, max_size=3))
    nodes = [
        bench.node("failing", total_cpus=10.0),
        *(bench.node(f"n{n}", total_memory=float(room), free_memory=room, total_cpus=1.0) for n, room in enumerate(rooms)),
    ]
    instances = [
        shared(bench, f"i{n}", "failing", memory=memory, vcpus=cpu, shares_cpus=True, tags=(tag,) if tag else ())
        for n, (memory, cpu, tag) in enumerate(zip(memories, cpus, tags))
    ]
    (failure,) = node_failures(bench.state(nodes, instances, tags=["htools:iextags:s"]), 0)
    assert failure.proven
    stranded = sum(memories[i] for i in failure.stranded)
    assert stranded == pytest.approx(least_stranded(memories, tags, rooms))
