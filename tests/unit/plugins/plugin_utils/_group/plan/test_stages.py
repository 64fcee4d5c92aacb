# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which moves may run side by side: as many as fit in any order of their steps, and no more."""

from __future__ import annotations

import itertools
import random

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import NOWHERE
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.order import Guard, order, reserves_left
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.stages import stages
from ansible_collections.bareon.allocator.tests.support.group.carry_out import carry_out

SHARED = {"disk_template": DiskTemplate.EXT}


def planned(state, targets):
    guard = Guard.at_every_step(state, reserves_left(state, targets))
    found = order(state, targets, guard)
    assert not found.blocked
    return stages(state, found.moves, guard)


@pytest.mark.parametrize("free", [20 * 4096, 512 * 1024])
def test_eight_nodes_with_twenty_instances_each_on_shared_storage(bench, free):
    """40 instances on each of four nodes become 20 on each of eight: 80 moves, which need not wait for each other."""
    size, full = 4096, 40 * 4096
    nodes = [bench.node(f"n{n}", total_memory=float(full + free), free_memory=full + free, total_cpus=999.0) for n in range(8)]
    state = bench.state(nodes, [bench.instance(f"i{n}", f"n{n % 4}", memory=size, **SHARED) for n in range(160)])
    plan = planned(state, {n: (4 + n % 4, NOWHERE) for n in range(80)})
    assert len(plan.moves) == 80
    assert len(plan.stages) <= 6
    assert_a_failure_strands_nobody_on_the_way(state, plan, size)


def assert_a_failure_strands_nobody_on_the_way(state, plan, size):
    """All instances are of one size, so that the rest of the nodes must have room for as many as the failing one has."""
    memory = [int(node.total_memory) for node in state.facts.cluster.nodes]
    for seed in range(3):
        now = state.copy()
        for _move in carry_out(now, plan, random.Random(seed)):
            counts = [int((now.primary == node).sum()) for node in range(len(memory))]
            for failing, count in enumerate(counts):
                rooms = (own // size - other for node, (own, other) in enumerate(zip(memory, counts)) if node != failing)
                assert sum(rooms) >= count


def test_who_takes_room_waits_for_who_frees_it(bench):
    nodes = [bench.node("a"), bench.node("b", total_memory=500.0, free_memory=500), bench.node("c")]
    state = bench.state(nodes, [bench.instance("x", "a", memory=300, **SHARED), bench.instance("y", "b", memory=400, **SHARED)])
    plan = planned(state, {0: (1, NOWHERE), 1: (2, NOWHERE)})
    assert [move.instance for move in plan.moves] == [1, 0]
    assert (plan.stages, plan.after) == (((0,), (1,)), ((), (0,)))


def test_who_frees_room_that_nobody_needs_is_not_waited_for(bench):
    nodes = [bench.node("a"), bench.node("b", total_memory=900.0, free_memory=900), bench.node("c")]
    state = bench.state(nodes, [bench.instance("x", "a", memory=300, **SHARED), bench.instance("y", "b", memory=400, **SHARED)])
    plan = planned(state, {0: (1, NOWHERE), 1: (2, NOWHERE)})
    assert plan.stages == ((0, 1),)


def test_groups_do_not_wait_for_each_other(bench):
    nodes = [bench.node(f"{group}{number}", group, total_memory=500.0, free_memory=500) for group, number in itertools.product("gh", "12")]
    nodes += [bench.node(f"{group}3", group) for group in "gh"]
    instances = [bench.instance(f"i{node.name}", node.name, memory=250, **SHARED) for node in nodes[:4]]
    instances += [bench.instance(f"j{group}", f"{group}1", memory=0, **SHARED) for group in "gh"]
    state = bench.state(nodes, instances)
    plan = planned(state, {0: (4, NOWHERE), 2: (5, NOWHERE)})
    assert plan.stages == ((0, 1),)
    assert plan.after == ((), ())
