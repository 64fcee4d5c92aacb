# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No placement breaks a limit, whatever the cluster; checked by counting every node anew from the models."""

from __future__ import annotations

import itertools

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate, Instance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.place.batch import place_instances
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.place.placement import PlacementRequest, Strategy
from ansible_collections.bareon.allocator.tests.support.group.clusters import clusters, instances, shared_clusters
from ansible_collections.bareon.allocator.tests.support.group.limits import assert_nothing_worse
from ansible_collections.bareon.allocator.tests.support.group.oracle import least_stranded
from ansible_collections.bareon.allocator.tests.support.group.policies import OPEN, opened
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MODEST = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def problems(draw):
    cluster = draw(clusters(most_nodes=5, most_instances=5))
    pools = {pool.name for node in cluster.nodes for pool in node.storage}
    new = [draw(instances(f"new{number}", [], bool(pools))) for number in range(draw(st.integers(1, 3)))]
    request = PlacementRequest(strategy=draw(st.sampled_from(list(Strategy))), score=draw(st.sampled_from(list(ScoreMode))))
    new = [i for i in new if i.storage is None or i.storage in pools]
    return opened(cluster), tuple(new), request


@MODEST
@given(problems())
def test_no_limit_gets_worse(problem):
    cluster, new, request = problem
    state = ClusterState.from_cluster(cluster, new)
    first = len(cluster.instances)
    results, after = place_instances(state, [(first + number, request) for number in range(len(new))])
    touched = {cluster.nodes[node].name for result in results if result.placements for node in result.placements[0].nodes}
    assert all(node.state == "up" for node in cluster.nodes if node.name in touched)
    assert_nothing_worse(state.to_cluster(), after.to_cluster(), touched)
    for instance, result in zip(new, results):
        for placement in result.placements:
            assert len({cluster.nodes[node].group for node in placement.nodes}) == 1
            assert len(set(placement.nodes)) == (2 if instance.disk_template == "drbd" else 1)
            for node in placement.nodes:
                reached = {pool.name for pool in cluster.nodes[node].storage}
                assert instance.storage is None or instance.storage in reached


@MODEST
@given(shared_clusters(OPEN), st.lists(st.tuples(st.integers(1, 7), st.booleans()), min_size=1, max_size=2))
def test_no_failure_strands_more_than_before(cluster, sizes):
    new = [
        Instance(f"new{number}", memory, 1, 1, disk_template=DiskTemplate.EXT, tags=("service:a",) if tagged else ())
        for number, (memory, tagged) in enumerate(sizes)
    ]
    state = ClusterState.from_cluster(cluster, new)
    wishes = [(len(cluster.instances) + number, PlacementRequest()) for number in range(len(new))]
    _surveys, after = place_instances(state, wishes)
    then, now = state.to_cluster(), after.to_cluster()
    for node in cluster.nodes:
        assert least_stranded(now, node.name) <= least_stranded(then, node.name)


@MODEST
@given(problems())
def test_no_order_of_the_instances_places_more(problem):
    cluster, new, request = problem
    state = ClusterState.from_cluster(cluster, new)
    wishes = [(len(cluster.instances) + number, request) for number in range(len(new))]
    results, _after = place_instances(state, wishes)
    placed = sum(bool(result.placements) for result in results)
    for order in itertools.permutations(wishes):
        others, _state = place_instances(state, order)
        assert sum(bool(result.placements) for result in others) <= placed


@MODEST
@given(problems())
def test_every_group_is_answered_once_and_refusals_have_reasons(problem):
    cluster, new, request = problem
    state = ClusterState.from_cluster(cluster, new)
    results, _after = place_instances(state, [(len(cluster.instances) + number, request) for number in range(len(new))])
    for result in results:
        groups = [found.group for found in (*result.placements, *result.refusals)]
        assert sorted(groups) == list(range(len(cluster.groups)))
        assert all(refusal.reasons for refusal in result.refusals)
