# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Emptied groups are empty, nothing gets worse on the way, and small groups are emptied whenever any arrangement allows it."""

from __future__ import annotations

import itertools
import random

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.health import group_health
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.order import Guard, order
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.stages import stages
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.redistribute.compression import compress
from ansible_collections.bareon.allocator.tests.support.group.carry_out import assert_no_order_is_worse
from ansible_collections.bareon.allocator.tests.support.group.clusters import clusters
from ansible_collections.bareon.allocator.tests.support.group.limits import excess
from ansible_collections.bareon.allocator.tests.support.group.policies import opened
from ansible_collections.bareon.allocator.tests.support.group.super_clusters import is_allowed, moved, super_clusters
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MODEST = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))


@MODEST
@given(clusters(most_nodes=7, most_instances=9), st.randoms(use_true_random=False))
def test_emptied_groups_are_empty_and_no_limit_gets_worse(cluster, lot: random.Random):
    cluster = opened(cluster)
    state = ClusterState.from_cluster(cluster)
    start = state.to_cluster()
    for found in compress(state, range(len(cluster.groups)), ScoreMode.HTOOLS):
        assert found.possible or not found.moves
        now = state.copy()
        plan = stages(state, found.moves, Guard.at_every_step(state))
        assert_no_order_is_worse(state, plan, excess, lot)
        for stage in plan.stages:
            for number in lot.sample(stage, len(stage)):
                now.place(plan.moves[number].instance, *plan.moves[number].target)
                then = now.to_cluster()
                for node in plan.moves[number].takes():
                    if cluster.nodes[node].state == "up":
                        before, after = excess(start, cluster.nodes[node].name), excess(then, cluster.nodes[node].name)
                        assert all(value <= max(0, before[limit]) for limit, value in after.items())
        if found.possible:
            nodes = set(state.group_nodes(found.group).tolist())
            assert not nodes & ({*now.primary.tolist()} | {*now.secondary.tolist()})
            others = [group for group in range(len(cluster.groups)) if group != found.group]
            assert all(group_health(now, group).illness <= group_health(state, group).illness for group in others)


def can_be_emptied(state: ClusterState) -> bool:
    """Return whether any arrangement of all instances in the second group keeps its limits and its health."""
    cluster = state.facts.cluster
    spare = [node.name for node in cluster.nodes if node.group == "spare" and node.state == "up"]
    start = state.to_cluster()
    for homes in itertools.product(
        *(itertools.permutations(spare, 2) if i.secondary else [(n, "") for n in spare] for i in cluster.instances)
    ):
        after = moved(state, homes)
        if group_health(after, 1).healthy and is_allowed(start, after.to_cluster()):
            targets = {n: (int(after.primary[n]), int(after.secondary[n])) for n in range(len(homes))}
            if not order(state, targets, Guard.at_every_move(state)).blocked:
                return True
    return False


@MODEST
@given(super_clusters())
def test_a_group_is_emptied_whenever_that_is_possible(cluster):
    state = ClusterState.from_cluster(cluster)
    [found] = compress(state, [0], ScoreMode.HTOOLS)
    assert found.possible == can_be_emptied(state)
