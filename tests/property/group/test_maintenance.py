# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever the cluster: sets of nodes lose nothing and are as few as can be, and squeezing breaks no limit."""

from __future__ import annotations

import dataclasses
import random

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import MIRRORED_OUTSIDE
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.evacuate.downtime import (
    Departure,
    DowntimeOptions,
    NonRedundant,
    leave,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.evacuate.rolling_maintenance import EvacuationRoom, roll
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.evacuate.squeezing import room_wanted, squeeze
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.health import group_health
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.order import Guard
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.stages import stages
from ansible_collections.bareon.allocator.tests.support.group.clusters import clusters
from ansible_collections.bareon.allocator.tests.support.group.limits import excess
from ansible_collections.bareon.allocator.tests.support.group.policies import opened
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MODEST = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
HARD = ("memory", "disk", "spindles")


@MODEST
@given(
    clusters(most_nodes=6, most_instances=8),
    st.sampled_from([DowntimeOptions(), DowntimeOptions(offline=True), DowntimeOptions(full=True)]),
    st.sampled_from(list(NonRedundant)),
    st.randoms(use_true_random=False),
)
def test_nothing_is_lost_while_a_set_is_down(cluster, options, non_redundant, order: random.Random):
    options = dataclasses.replace(options, non_redundant=non_redundant)
    cluster = opened(cluster)
    state = ClusterState.from_cluster(cluster)
    online = state.online().tolist()
    rollout = roll(state, online, options)
    told = [node for members in rollout.sets for node in members.nodes] + [node for node, _stuck in rollout.skipped]
    assert sorted(told) == online
    start = state.to_cluster()
    for members in rollout.sets:
        now = state.copy()
        plan = stages(state, members.departure.moves, Guard.at_every_step(state))
        for stage in plan.stages:
            for number in order.sample(stage, len(stage)):
                now.place(plan.moves[number].instance, *plan.moves[number].target)
                assert_hard_limits(start, now.to_cluster(), {cluster.nodes[node].name for node in plan.moves[number].takes()})
        for instance, node in members.departure.carried:
            now.place(instance, node)
        assert_hard_limits(start, now.to_cluster(), {cluster.nodes[node].name for _instance, node in members.departure.carried})
        down = set(members.nodes) | {at for at, node in enumerate(cluster.nodes) if node.offline}
        for position, instance in enumerate(cluster.instances):
            lived, mirrored = int(state.primary[position]), int(state.secondary[position])
            primary, secondary = int(now.primary[position]), int(now.secondary[position])
            touched = lived in members.nodes or mirrored in members.nodes
            assert not (touched and secondary >= 0 and {primary, secondary} <= down), "both copies are down"
            alone = secondary < 0 and instance.disk_template not in MIRRORED_OUTSIDE
            if lived in members.nodes and instance.uses_memory and not options.offline and not (alone and non_redundant == "ignore"):
                assert primary not in down, "a running instance is down"
            if options.full and not alone:
                assert not {primary, secondary} & set(members.nodes)


@settings(MODEST, max_examples=examples(200))
@given(clusters(most_nodes=6, most_instances=8), st.data())
def test_sums_forbid_no_set_that_can_be_emptied(cluster, data):
    state = ClusterState.from_cluster(opened(cluster))
    room = EvacuationRoom(state)
    online = state.online().tolist()
    nodes = data.draw(st.lists(st.sampled_from(online), unique=True, min_size=1)) if online else []
    if isinstance(leave(state, nodes, DowntimeOptions(full=True)), Departure):
        assert room.may_suffice(nodes)


def assert_hard_limits(start, now, names):
    for name in names:
        before, after = excess(start, name), excess(now, name)
        assert all(after[limit] <= max(0, before[limit]) for limit in after if limit in HARD or limit.startswith("pool"))


@MODEST
@given(clusters(most_nodes=5, most_instances=8), st.booleans())
def test_no_other_division_has_fewer_sets(cluster, offline):
    options = DowntimeOptions(offline=offline)
    state = ClusterState.from_cluster(opened(cluster))
    rollout = roll(state, state.online().tolist(), options)
    able = [node for members in rollout.sets for node in members.nodes]

    def fewest(rest):
        if not rest:
            return 0
        first, others = rest[0], rest[1:]
        best = len(rest)
        for mask in range(2 ** len(others)):
            together = [first, *(node for bit, node in enumerate(others) if mask >> bit & 1)]
            if isinstance(leave(state, together, options), Departure):
                best = min(best, 1 + fewest([node for node in others if node not in together]))
        return best

    assert len(rollout.sets) == fewest(able)


@MODEST
@given(clusters(most_nodes=6, most_instances=7), st.sampled_from([0.0, 0.5, 1.0]), st.booleans())
def test_squeezing_empties_nodes_and_breaks_no_limit(cluster, factor, redundant):
    cluster = opened(cluster)
    state = ClusterState.from_cluster(cluster)
    wanted = room_wanted(cluster, factor)
    found = squeeze(cluster, wanted, wanted, redundant)
    start, before = state.to_cluster(), [group_health(state, group) for group in range(len(cluster.groups))]
    state.offline[list(found.power_on)] = False
    plan = stages(state, found.moves, Guard.at_every_step(state))
    for stage in plan.stages:
        for number in stage:
            state.place(plan.moves[number].instance, *plan.moves[number].target)
            now = state.to_cluster()
            for node in plan.moves[number].takes():
                then, after = excess(start, cluster.nodes[node].name), excess(now, cluster.nodes[node].name)
                assert all(value <= max(0, then[limit]) for limit, value in after.items())
    assert not set(found.power_off) & ({*state.primary.tolist()} | {*state.secondary.tolist()})
    state.offline[list(found.power_off)] = True
    if redundant and found.power_off:
        for group, was in enumerate(before):
            stranded = group_health(state, group).stranded
            assert all(memory <= was.stranded.get(node, 0) for node, memory in stranded.items())
    if found.power_off:
        left = state.to_cluster()
        for node in left.nodes:
            if node.state == "up":
                room = dataclasses.replace(wanted, name="room", primary=node.name)
                tight = ClusterState.from_cluster(dataclasses.replace(left, instances=(*left.instances, room))).to_cluster()
                # The room is not yet off what the node reports.
                reported = next(other for other in tight.nodes if other.name == node.name)
                fields = {"free_memory": reported.free_memory - wanted.memory}
                nodes = tuple(dataclasses.replace(other, **fields) if other.name == node.name else other for other in tight.nodes)
                then, after = excess(left, node.name), excess(dataclasses.replace(tight, nodes=nodes), node.name)
                assert all(after[limit] <= max(0, then[limit]) for limit in ("memory", "redundancy", "cpus"))
