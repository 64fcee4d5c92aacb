# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way from a placement to moves: order, steps aside, budgets, stages; and that what is saved after them is sound."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import NOWHERE
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.changes import after_moves
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate, Status
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.moves import copied_data
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.shared_redundancy import SharedReserve
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.order import Budget, Guard, order
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.stages import stages
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text, write_text

SHARED = {"disk_template": DiskTemplate.EXT}
UNLIMITED = Budget()


def way_of(state, targets, budget=UNLIMITED):
    return order(state, targets, guard_of(state), budget)


def guard_of(state):
    return Guard.at_every_step(state, {0: SharedReserve.of(state, 0)})


def circle(bench, size, spare):
    """Return full nodes whose instances each want to go to the next one, and their targets; `spare` adds an empty node."""
    nodes = [bench.node(f"n{number}", total_cpus=99.0) for number in range(size + spare)]
    instances = [bench.instance(f"i{number}", f"n{number}", memory=1000, **SHARED) for number in range(size)]
    return bench.state(nodes, instances), {number: ((number + 1) % size, NOWHERE) for number in range(size)}


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_circle_needs_one_step_aside(bench, size):
    state, targets = circle(bench, size, spare=1)
    way = way_of(state, targets)
    assert not way.blocked
    assert len(way.moves) == size + 1
    after = after_moves(state, way.moves)
    assert {number: (int(after.primary[number]), NOWHERE) for number in range(size)} == targets


def test_a_circle_without_a_spare_node_stays(bench):
    state, targets = circle(bench, 3, spare=0)
    assert way_of(state, targets).blocked == (0, 1, 2)


def test_no_step_aside_beyond_the_moves_that_are_allowed(bench):
    state, targets = circle(bench, 3, spare=1)
    assert way_of(state, targets, Budget(moves=3)).blocked == (0, 1, 2)
    assert not way_of(state, targets, Budget(moves=4)).blocked


def full_disks(bench):
    """Two mirrored instances that want to exchange their secondaries, on nodes whose disks have room for one each."""
    nodes = [bench.node(name, total_disk=size, free_disk=size) for name, size in (("a", 9000), ("b", 1000), ("c", 1000), ("d", 1000))]
    return bench.state(nodes, [bench.instance("x", "a", "b"), bench.instance("y", "a", "c")]), {0: (0, 2), 1: (0, 1)}


def test_disks_step_aside_when_their_data_is_allowed(bench):
    state, targets = full_disks(bench)
    way = way_of(state, targets)
    assert not way.blocked
    assert sum(copied_data(state, move) for move in way.moves) == 3000
    assert not way_of(state, targets, Budget(data=3000)).blocked
    assert way_of(state, targets, Budget(data=2999)).blocked == (0, 1)


def test_moves_of_one_instance_keep_their_order(bench):
    state, targets = circle(bench, 3, spare=1)
    way = way_of(state, targets)
    plan = stages(state, way.moves, guard_of(state))
    twice = [number for number, move in enumerate(plan.moves) if [other.instance for other in plan.moves].count(move.instance) == 2]
    assert len(twice) == 2
    assert twice[0] in all_before(plan, twice[1])
    stage_of = {number: stage for stage, members in enumerate(plan.stages) for number in members}
    assert stage_of[twice[0]] < stage_of[twice[1]]


def all_before(plan, number):
    return {earlier for other in plan.after[number] for earlier in (other, *all_before(plan, other))}


def test_a_stage_touches_a_node_as_often_as_is_allowed(bench):
    nodes = [bench.node("full"), *(bench.node(f"n{number}") for number in range(4))]
    instances = [bench.instance(f"i{number}", "full", **SHARED) for number in range(6)]
    state = bench.state(nodes, instances)
    way = way_of(state, {number: (1 + number % 4, NOWHERE) for number in range(6)})
    guard = Guard.at_every_step(state)
    assert len(stages(state, way.moves, guard).stages) == 1
    assert [len(stage) for stage in stages(state, way.moves, guard, 2).stages] == [2, 2, 2]


def test_stages_wait_where_shared_storage_would_lose_its_reserve(bench):
    # At first only b could take z, afterwards only d: x must not go to b before y has left d. No node sees both.
    left = {"a": 400, "b": 700, "c": 1000, "d": 800, "e": 400}
    nodes = [bench.node(name, free_memory=free, node_memory=1000 - free, total_cpus=99.0) for name, free in left.items()]
    instances = [
        bench.instance(name, home, memory=memory, **SHARED) for name, home, memory in (("x", "a", 400), ("y", "d", 300), ("z", "c", 600))
    ]
    state = bench.state(nodes, instances)
    way = way_of(state, {0: (1, NOWHERE), 1: (4, NOWHERE)})
    assert [move.instance for move in way.moves] == [1, 0]
    assert stages(state, way.moves, Guard.at_every_step(state)).stages == ((0, 1),)
    plan = stages(state, way.moves, guard_of(state))
    assert (plan.stages, plan.after) == (((0,), (1,)), ((), (0,)))


def test_what_a_stopped_instance_frees_by_its_failover_is_waited_for(bench):
    # Its secondary keeps memory for it, and keeps it no more once it is the primary of what does not run.
    nodes = [bench.node("a"), bench.node("b", free_memory=750, node_memory=250), bench.node("c")]
    stopped = bench.instance("x", "a", "b", memory=400, status=Status.ADMIN_DOWN)
    running = [bench.instance("y", "c", "b", memory=300), bench.instance("z", "a", "b", memory=300)]
    state = bench.state(nodes, [stopped, *running])
    way = way_of(state, {0: (1, 0), 1: (1, 2)})
    assert [move.instance for move in way.moves] == [0, 1]
    assert [move.idle for move in way.moves] == [True, False]
    assert stages(state, way.moves, guard_of(state)).after == ((), (0,))


def test_a_stopped_primary_needs_room_to_become_the_secondary(bench):
    nodes = [bench.node("a", free_memory=500, node_memory=500), bench.node("b")]
    stopped = bench.state(nodes, [bench.instance("x", "a", "b", memory=600, status=Status.ADMIN_DOWN)])
    assert way_of(stopped, {0: (1, 0)}).blocked == (0,)


def test_what_is_saved_after_moves_misses_no_memory(bench):
    nodes = [bench.node("a", free_memory=900), bench.node("b"), bench.node("c")]
    state = bench.state(nodes, [bench.instance("x", "a", "b"), bench.instance("y", "a", "c", memory=300)])
    way = way_of(state, {0: (2, 1), 1: (1, 2)})
    after = after_moves(state, way.moves)
    again = ClusterState.from_cluster(parse_text(write_text(after.to_cluster())))
    assert again.missing_memory.tolist() == state.missing_memory.tolist() == [100, 0, 0]
    assert again.quantities.tolist() == after.quantities.tolist()


def test_those_that_find_no_turn_go_first(bench):
    """What restarts on b when c fails leaves no room for x on its way over b, so x goes before y."""
    nodes = [bench.node("a", offline=True), bench.node("b", total_memory=600.0, free_memory=600), bench.node("c")]
    nodes += [bench.node(name, group="h") for name in "de"]
    instances = [bench.instance("y", "a", memory=300, **SHARED), bench.instance("x", "a", "b", memory=400)]
    state = bench.state(nodes, instances)
    found = order(state, {0: (2, NOWHERE), 1: (3, 4)}, Guard.at_every_move(state, {0: SharedReserve.of(state, 0)}))
    assert not found.blocked
    assert [move.instance for move in found.moves] == [1, 0]
