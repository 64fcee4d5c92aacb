# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Repairs of ill groups: fewest instances leave, proven against every possible arrangement, and no limit gets worse on the way."""

from __future__ import annotations

import itertools
import random

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Cluster, Instance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.health import group_health
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.order import Budget, Guard, order, reserves_left
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.stages import stages
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.redistribute.load_balancing import LoadOptions, balance_load
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.redistribute.redistribution import moved_out, redistribute
from ansible_collections.bareon.allocator.tests.support.group.carry_out import assert_no_order_is_worse
from ansible_collections.bareon.allocator.tests.support.group.clusters import clusters
from ansible_collections.bareon.allocator.tests.support.group.limits import excess
from ansible_collections.bareon.allocator.tests.support.group.policies import opened
from ansible_collections.bareon.allocator.tests.support.group.super_clusters import is_allowed, moved, super_clusters
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MODEST = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))


def arrangements(cluster: Cluster):
    """Yield every way to give each instance a place: where it is, or any online node or pair of one group."""
    groups = {name: [n.name for n in cluster.nodes if n.group == name and n.state == "up"] for name in ("ill", "spare")}
    yield from itertools.product(*([(i.primary, i.secondary), *places(groups, i)] for i in cluster.instances))


def places(groups, instance):
    for members in groups.values():
        pairs = itertools.permutations(members, 2) if instance.secondary else ((name, "") for name in members)
        yield from (pair for pair in pairs if pair != (instance.primary, instance.secondary))


def fewest(state: ClusterState) -> tuple[int, int] | None:
    """Return how few instances must leave, and then how few must move, by trying everything; None when the group cannot be healed."""
    cluster = state.facts.cluster
    start = state.to_cluster()
    spare = {node.name for node in cluster.nodes if node.group == "spare"}
    best = None
    for homes in arrangements(cluster):
        changed = [n for n in range(len(homes)) if homes[n] != home(cluster.instances[n])]
        worth = sum(primary in spare for primary, _secondary in homes), len(changed)
        if best is not None and worth >= best:
            continue
        after = moved(state, homes)
        if not group_health(after, 0).healthy or not group_health(after, 1).healthy or not is_allowed(start, after.to_cluster()):
            continue
        targets = {n: (int(after.primary[n]), int(after.secondary[n])) for n in changed}
        if not order(state, targets, Guard.at_every_move(state, reserves_left(state, targets)), Budget()).blocked:
            best = worth
    return best


def plan_of(state: ClusterState, repairs):
    moves = [move for repair in repairs for move in repair.moves]
    return stages(state, moves, Guard.at_every_step(state, reserves_left(state, [move.instance for move in moves])))


def home(instance: Instance) -> tuple[str, str]:
    return instance.primary, instance.secondary


@MODEST
@given(super_clusters())
def test_as_few_leave_as_any_arrangement_allows(cluster):
    """One more may move than must, or two where disks are mixed: who leaves is decided before what then has to move inside."""
    state = ClusterState.from_cluster(cluster)
    if group_health(state, 0).healthy:
        assert redistribute(state, [0], True, ScoreMode.HTOOLS)[0] == []
        return
    [repair], after = redistribute(state, [0], True, ScoreMode.HTOOLS)
    best = fewest(state)
    assert repair.after.healthy == (best is not None)
    assert repair.after == group_health(after, 0)
    if best is None:
        assert repair.missing
    else:
        assert len(moved_out(state, repair)) == best[0]
        is_mixed = len({instance.disk_template for instance in cluster.instances}) > 1
        assert len({move.instance for move in repair.moves}) <= best[1] + 1 + is_mixed


@MODEST
@given(clusters(most_nodes=7, most_instances=9), st.randoms(use_true_random=False))
def test_no_limit_gets_worse_in_any_order(cluster, lot: random.Random):
    cluster = opened(cluster)
    state = ClusterState.from_cluster(cluster)
    repairs, _after = redistribute(state, range(len(cluster.groups)), True, ScoreMode.HTOOLS)
    plan = plan_of(state, repairs)
    assert_no_order_is_worse(state, plan, excess, lot)
    start = state.to_cluster()
    before = {node.name: excess(start, node.name) for node in cluster.nodes}
    health = [group_health(state, group) for group in range(len(cluster.groups))]
    for stage in plan.stages:
        for number in lot.sample(stage, len(stage)):
            move = plan.moves[number]
            state.place(move.instance, *move.target)
            now = state.to_cluster()
            for name in {cluster.nodes[node].name for node in move.takes() if cluster.nodes[node].state == "up"}:
                worse = {limit: value for limit, value in excess(now, name).items() if value > max(0, before[name][limit])}
                assert not worse, (name, move, worse)
            for group, was in enumerate(health):
                then = group_health(state, group)
                kept = all(memory <= was.stranded.get(node, 0) for node, memory in then.stranded.items())
                # To leave a node that is drained or away comes first, also where nothing could restart afterwards.
                assert kept or len(then.offline) < len(was.offline), (move, then.stranded, was.stranded)
    for group, was in enumerate(health):
        assert group_health(state, group).illness <= was.illness


@MODEST
@given(clusters(most_nodes=7, most_instances=9), st.booleans(), st.randoms(use_true_random=False))
def test_levelling_lowers_the_score_and_breaks_no_limit(cluster, disk_moves, lot: random.Random):
    cluster = opened(cluster)
    state = ClusterState.from_cluster(cluster)
    found = balance_load(state, LoadOptions(disk_moves=disk_moves), ScoreMode.HTOOLS)
    assert found.after.score <= found.before.score + 1e-9
    assert disk_moves or all(move.source[1] == -1 for move in found.moves)
    plan = stages(state, found.moves, Guard.at_every_step(state))
    assert_no_order_is_worse(state, plan, excess, lot)
    start = state.to_cluster()
    for stage in plan.stages:
        for number in lot.sample(stage, len(stage)):
            state.place(plan.moves[number].instance, *plan.moves[number].target)
            now = state.to_cluster()
            for node in plan.moves[number].takes():
                before, after = excess(start, cluster.nodes[node].name), excess(now, cluster.nodes[node].name)
                assert all(value <= max(0, before[limit]) for limit, value in after.items())


@MODEST
@given(super_clusters(), st.randoms(use_true_random=False))
def test_nobody_is_stranded_on_the_way(cluster, lot: random.Random):
    state = ClusterState.from_cluster(cluster)
    health = [group_health(state, group) for group in range(2)]
    repairs, _after = redistribute(state, [0, 1], True, ScoreMode.HTOOLS)
    plan = plan_of(state, repairs)
    for stage in plan.stages:
        for number in lot.sample(stage, len(stage)):
            state.place(plan.moves[number].instance, *plan.moves[number].target)
            for group, was in enumerate(health):
                stranded = group_health(state, group).stranded
                assert all(memory <= was.stranded.get(node, 0) for node, memory in stranded.items()), (plan.moves[number], stranded)
