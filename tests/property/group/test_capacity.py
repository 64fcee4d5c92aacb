# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Counted copies keep every limit, whatever the cluster, no further one fits, and small counts are the most there can be."""

from __future__ import annotations

import dataclasses

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.capacity.bound import Bound, usual_node, with_nodes
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.capacity.copies import CopyOptions
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.capacity.count import best_count, is_bounded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.capacity.tiered import count_tiers
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Cluster, Disk, DiskTemplate, Instance, Node
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.health import group_health
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.place.placement import Strategy
from ansible_collections.bareon.allocator.tests.support.group.clusters import clusters, instances
from ansible_collections.bareon.allocator.tests.support.group.limits import assert_nothing_worse
from ansible_collections.bareon.allocator.tests.support.group.policies import open_group, opened
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

MODEST = settings(max_examples=examples(50), deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def questions(draw):
    cluster = draw(clusters(most_nodes=5, most_instances=5))
    cluster = opened(cluster)
    pools = {pool.name for node in cluster.nodes for pool in node.storage}
    spec = draw(instances("new", [], bool(pools)))
    spec = dataclasses.replace(spec, storage=spec.storage if spec.storage in pools else None, forthcoming=False)
    return cluster, spec, CopyOptions(strategy=draw(st.sampled_from(list(Strategy))))


def with_copies(cluster: Cluster, count) -> ClusterState:
    copies = [dataclasses.replace(copy.instance, name=f"copy{number}") for number, copy in enumerate(count.copies)]
    state = ClusterState.from_cluster(cluster, copies)
    for number, copy in enumerate(count.copies):
        state.place(len(cluster.instances) + number, *copy.place)
    return state


@MODEST
@given(questions())
def test_no_limit_gets_worse(question):
    cluster, spec, options = question
    assume(is_bounded(cluster, spec))
    before = ClusterState.from_cluster(cluster)
    for group in range(len(cluster.groups)):
        for count in (best_count(cluster, spec, (group,), options, 60), count_tiers(cluster, [spec], (group,), options)):
            after = with_copies(cluster, count)
            touched = {cluster.nodes[node].name for copy in count.copies for node in copy.place if node >= 0}
            assert all(node.state == "up" for node in cluster.nodes if node.name in touched)
            assert_nothing_worse(before.to_cluster(), after.to_cluster(), touched)
            stranded = group_health(before, group).stranded
            assert all(memory <= stranded.get(node, 0) for node, memory in group_health(after, group).stranded.items())


@settings(MODEST, max_examples=examples(20))
@given(questions())
def test_no_count_is_beyond_the_bound(question):
    cluster, spec, options = question
    assume(is_bounded(cluster, spec))
    for group in {cluster.group_positions()[node.group] for node in cluster.nodes}:
        like = cluster.nodes[usual_node(cluster, group)]
        bound = Bound.of(with_nodes(cluster, like, 1), spec, group, options)
        assert len(best_count(cluster, spec, (group,), options, 60).copies) <= bound.most(0)
        count = best_count(with_nodes(cluster, like, 2), spec, (group,), options, 60)
        assert len(count.copies) <= bound.most(2)


@MODEST
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60)), min_size=1, max_size=5), st.integers(1, 9), st.integers(1, 9))
def test_on_one_node_each_the_count_is_the_sum_of_what_each_node_takes(rooms, memory, disk):
    nodes = [Node(f"n{n}", "g", float(room), 0, room, float(space), space, 99.0) for n, (room, space) in enumerate(rooms)]
    cluster = Cluster((open_group("g"),), tuple(nodes), ())
    spec = Instance("new", memory, disk, 0, disk_template=DiskTemplate.PLAIN, disks=(Disk(disk, 1),), spindle_use=0)
    count = best_count(cluster, spec, (0,), CopyOptions(), 10_000)
    assert len(count.copies) == sum(min(room // memory, space // disk) for room, space in rooms)


@MODEST
@given(st.lists(st.integers(1, 12), min_size=2, max_size=3), st.integers(1, 5))
def test_of_mirrored_instances_as_many_fit_as_any_sequence_of_pairs_allows(rooms, memory):
    """Every sequence is tried; a step more or less than the best is allowed for, since the score only steers."""
    nodes = [Node(f"n{n}", "g", float(room), 0, room, 1e6, 10**6, 99.0, spindles=9) for n, room in enumerate(rooms)]
    cluster = Cluster((open_group("g"),), tuple(nodes), ())
    spec = Instance("new", memory, 1, 0, disks=(Disk(1, 1),), spindle_use=0)
    count = len(best_count(cluster, spec, (0,), CopyOptions(), 10_000).copies)
    assert count <= most_pairs(rooms, memory) <= count + 1


def most_pairs(rooms: list[int], memory: int) -> int:
    """Return the most mirrored instances by trying every number of them on each ordered pair."""
    pairs = [(p, s) for p in range(len(rooms)) for s in range(len(rooms)) if p != s]

    def fits(numbers: dict) -> bool:
        for node, room in enumerate(rooms):
            used = sum(memory * number for (p, _s), number in numbers.items() if p == node)
            kept = max((memory * number for (_p, s), number in numbers.items() if s == node), default=0)
            if used + kept > room:
                return False
        return True

    def search(position: int, numbers: dict) -> int:
        if position == len(pairs):
            return sum(numbers.values())
        best, number = 0, 0
        while fits({**numbers, pairs[position]: number}):
            best = max(best, search(position + 1, {**numbers, pairs[position]: number}))
            number += 1
        return best

    return search(0, {})
