# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No placement breaks a limit, whatever the cluster; checked by counting every node anew from the models."""

from __future__ import annotations

import dataclasses
import itertools

from ansible_collections.bareon.allocator.plugins.plugin_utils.group.cluster.model import (
    Cluster,
    DiskTemplate,
    Instance,
    Policy,
    Spec,
    SpecInterval,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.place.batch import place_instances
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.place.placement import PlacementRequest, Strategy
from ansible_collections.bareon.allocator.tests.support.group.clusters import clusters, instances, shared_clusters
from ansible_collections.bareon.allocator.tests.support.group.oracle import Book, least_stranded, starts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

OPEN = Policy(intervals=(SpecInterval(Spec(0, 0, 0, 0, 0, 0), Spec(9999, 99, 99999, 9, 9, 9)),))
MODEST = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def excess(cluster: Cluster, name: str) -> dict[str, float]:
    """Return by how much each limit of a node is broken, 0 or less where it is kept."""
    node = next(node for node in cluster.nodes if node.name == name)
    policy = next(group.policy for group in cluster.groups if group.name == node.group)
    book = Book(cluster, node)
    prefixes = [tag.removeprefix("htools:iextags:") for tag in cluster.tags if tag.startswith("htools:iextags:")]
    tags = [tag for instance in cluster.instances if instance.primary == name for tag in starts(instance.tags, prefixes)]
    found = {
        "memory": -book.memory,
        "redundancy": book.reserved - book.memory,
        "disk": -book.disk,
        "disk planned": -book.disk_planned,
        "cpus": book.cpus - policy.vcpu_ratio * node.total_cpus,
        "spindles": -book.spindles if node.exclusive_storage else 0,
        "spindle use": book.use - book.spindle_limit,
        "tags": len(tags) - len(set(tags)),
    }
    return found | {f"pool {pool.name}": -pool.free for pool in node.storage if pool.free is not None}


def assert_nothing_worse(before: Cluster, after: Cluster, touched: set[str]) -> None:
    for name in touched:
        then, now = excess(before, name), excess(after, name)
        worse = {limit: (then[limit], value) for limit, value in now.items() if value > 0 and value > then[limit]}
        assert not worse, (name, worse)


@st.composite
def problems(draw):
    cluster = draw(clusters(most_nodes=5, most_instances=5))
    pools = {pool.name for node in cluster.nodes for pool in node.storage}
    new = [draw(instances(f"new{number}", [], bool(pools))) for number in range(draw(st.integers(1, 3)))]
    groups = tuple(dataclasses.replace(group, policy=OPEN) for group in cluster.groups)
    request = PlacementRequest(strategy=draw(st.sampled_from(list(Strategy))), score=draw(st.sampled_from(list(ScoreMode))))
    new = [i for i in new if i.storage is None or i.storage in pools]
    return dataclasses.replace(cluster, groups=groups), tuple(new), request


@MODEST
@given(problems())
def test_no_limit_gets_worse(problem):
    cluster, new, request = problem
    state = ClusterState.from_cluster(cluster, new)
    first = len(cluster.instances)
    results, after = place_instances(state, [(first + number, request) for number in range(len(new))])
    touched = {cluster.nodes[node].name for result in results if result.placements for node in result.placements[0].nodes}
    assert not any(node.offline for node in cluster.nodes if node.name in touched)
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
