# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Evacuations of any cluster: what must be left is left, no limit gets worse at any point of any order the stages allow."""

from __future__ import annotations

import dataclasses
import itertools
import random

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Cluster, DiskTemplate, Instance, Node
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.evacuate.evacuation import evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.evacuate.task import AcrossGroups, EvacuationMode, tasks_of_nodes
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.order import Guard
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.stages import stages
from ansible_collections.bareon.allocator.tests.support.group.carry_out import assert_no_order_is_worse
from ansible_collections.bareon.allocator.tests.support.group.clusters import clusters, shared_clusters
from ansible_collections.bareon.allocator.tests.support.group.limits import excess
from ansible_collections.bareon.allocator.tests.support.group.oracle import least_stranded
from ansible_collections.bareon.allocator.tests.support.group.policies import OPEN, open_group, opened
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

MODEST = settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def problems(draw):
    cluster = draw(clusters(most_nodes=6, most_instances=8))
    cluster = opened(cluster)
    nodes = draw(st.lists(st.integers(0, len(cluster.nodes) - 1), min_size=1, max_size=2, unique=True))
    return cluster, nodes, draw(st.sampled_from(list(EvacuationMode))), draw(st.sampled_from(list(AcrossGroups)))


@MODEST
@given(problems(), st.randoms(use_true_random=False))
def test_moves_leave_the_nodes_and_break_nothing_in_any_order(problem, order: random.Random):
    cluster, nodes, mode, across = problem
    state = ClusterState.from_cluster(cluster)
    tasks = tasks_of_nodes(state, nodes, mode)
    found = evacuate(state, tasks, across, ScoreMode.HTOOLS)
    placed = [move.instance for move in found.moves]
    assert sorted([*placed, *(unplaced.instance for unplaced in found.unplaced)]) == sorted(task.instance for task in tasks)
    assert all(unplaced.reasons for unplaced in found.unplaced)
    emptied = {cluster.nodes[node].name for node in nodes}
    groups = {node.name: node.group for node in cluster.nodes}
    start = state.to_cluster()
    before = {node.name: excess(start, node.name) for node in cluster.nodes}
    plan = stages(state, found.moves, Guard.at_every_step(state))
    assert_no_order_is_worse(state, plan, excess, order)
    for stage in plan.stages:
        for number in order.sample(stage, len(stage)):
            move = plan.moves[number]
            state.place(move.instance, *move.target)
            now = state.to_cluster()
            for name in {cluster.nodes[node].name for node in move.takes() if cluster.nodes[node].state == "up"}:
                if found.relaxed:
                    continue
                worse = {limit: value for limit, value in excess(now, name).items() if value > max(0, before[name][limit])}
                assert not worse, (name, move, worse)
    for instance in (state.to_cluster().instances[number] for number in placed):
        was = next(old for old in cluster.instances if old.name == instance.name)
        if mode != EvacuationMode.SECONDARY:
            assert instance.primary not in emptied
        if mode != EvacuationMode.PRIMARY:
            assert instance.secondary not in emptied
        if mode == EvacuationMode.SECONDARY:
            assert instance.primary == was.primary
        if across == AcrossGroups.NO:
            assert groups[instance.primary] == groups[was.primary]
        if across == AcrossGroups.ONLY:
            assert groups[instance.primary] != groups[was.primary]
        if instance.secondary and was.secondary and groups[was.primary] == groups[was.secondary]:
            assert groups[instance.primary] == groups[instance.secondary]


@MODEST
@given(shared_clusters(OPEN))
def test_no_failure_strands_more_than_before(cluster):
    state = ClusterState.from_cluster(cluster)
    found = evacuate(state, tasks_of_nodes(state, [0], EvacuationMode.ALL), AcrossGroups.NO, ScoreMode.HTOOLS)
    after = state.copy()
    for move in found.moves:
        after.place(move.instance, *move.target)
    then, now = state.to_cluster(), after.to_cluster()
    for node in cluster.nodes[1:]:
        assert least_stranded(now, node.name) <= least_stranded(then, node.name)


def with_places(cluster: Cluster, places: dict[str, str]) -> Cluster:
    return dataclasses.replace(
        cluster, instances=tuple(dataclasses.replace(i, primary=places.get(i.name, i.primary)) for i in cluster.instances)
    )


def keeps_limits(before: Cluster, after: Cluster, name: str) -> bool:
    """Return whether a node of a shared cluster is not overfull, and no more instances on it exclude each other than did."""
    here, there = ([i for i in cluster.instances if i.primary == name] for cluster in (after, before))
    return sum(i.memory for i in here) <= 12 and sum(bool(i.tags) for i in here) <= max(1, sum(bool(i.tags) for i in there))


@settings(MODEST, max_examples=examples(60))
@given(shared_clusters(OPEN))
def test_all_move_whenever_that_strands_nothing(cluster):
    leaving = [i.name for i in cluster.instances if i.primary == "n0"]
    assume(2 <= len(leaving) <= 4 and len(cluster.nodes) <= 4)
    state = ClusterState.from_cluster(cluster)
    found = evacuate(state, tasks_of_nodes(state, [0], EvacuationMode.ALL), AcrossGroups.NO, ScoreMode.HTOOLS)
    others = [node.name for node in cluster.nodes[1:]]
    allowed = {name: least_stranded(cluster, name) for name in others}
    for places in itertools.product([None, *others], repeat=len(leaving)):
        after = with_places(cluster, {name: place for name, place in zip(leaving, places) if place is not None})
        if sum(place is not None for place in places) > len(found.moves) and all(keeps_limits(cluster, after, name) for name in others):
            assert any(least_stranded(after, name) > allowed[name] for name in others), places


@MODEST
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
    st.lists(st.integers(1, 20), min_size=1, max_size=3),
)
def test_a_packing_is_found_whenever_there_is_one(sizes, rooms):
    nodes = [Node("x", "g", 100.0, 0, 100 - sum(sizes), 0.0, 0, 99.0)]
    nodes += [Node(f"n{number}", "g", float(room), 0, room, 0.0, 0, 99.0) for number, room in enumerate(rooms)]
    shared = DiskTemplate.EXT
    instances = [Instance(f"i{number}", size, 1, 1, primary="x", disk_template=shared) for number, size in enumerate(sizes)]
    state = ClusterState.from_cluster(Cluster((open_group("g"),), tuple(nodes), tuple(instances)))
    found = evacuate(state, tasks_of_nodes(state, [0], EvacuationMode.ALL), AcrossGroups.NO, ScoreMode.HTOOLS)
    most = 0
    for places in itertools.product(range(len(rooms) + 1), repeat=len(sizes)):
        used = [sum(size for size, place in zip(sizes, places) if place == node) for node in range(len(rooms))]
        if all(use <= room for use, room in zip(used, rooms)):
            most = max(most, sum(place < len(rooms) for place in places))
    assert len(found.moves) == most
