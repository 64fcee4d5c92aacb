# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A worker that lies: plans of the right type, with other groups, ways, orders, figures, or broken limits, are refused or counted again."""

from __future__ import annotations

import dataclasses
import json

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import Solved
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.group import Assignment, plan_group
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.hbal import HbalOptions
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.model import BalanceOptions, Refused
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.verify import InvalidPlan, verified
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.moves import Move, MoveKind
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.moves import MoveOptions
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.price import Prices
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.stages import Plan
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance

SIZES = {"total_memory": 8192, "total_disk": 100000, "total_cpus": 64}
NODES = [{"name": f"{group}{number}", "group": group, **SIZES} for group in "ab" for number in range(4)]
GUESTS = [
    {"name": f"i{number}", "memory": 1500, "disk": 10000, "vcpus": 1, "primary": "a0", "secondary": "a1" if number % 2 else "a2"}
    for number in range(4)
]
CLUSTER = {"groups": [{"name": "a"}, {"name": "b"}], "nodes": NODES, "instances": GUESTS}
REPLACE = MoveKind.REPLACE_SECONDARY


def moved(instance, *places, kind=REPLACE):
    source = (0, 1 if instance % 2 else 2)
    return Move(instance, kind, source, places)


def in_stages(*moves, after=None, stages=None):
    numbers = range(len(moves))
    chain = tuple(tuple(range(number)) for number in numbers)
    return Plan(moves, chain if after is None else after, tuple((number,) for number in numbers) if stages is None else stages)


SEPARATE = moved(0, (0, 3)), moved(1, (0, 3))
LIES = {
    "an instance that is not there": in_stages(moved(99, (0, 3))),
    "a negative instance": in_stages(Move(-1, REPLACE, (0, 1), ((0, 3),))),
    "no step": in_stages(Move(0, REPLACE, (0, 2), ())),
    "another group": in_stages(moved(0, (0, 5))),
    "a node that is not there": in_stages(moved(0, (0, 400))),
    "another source": in_stages(Move(0, REPLACE, (0, 1), ((0, 3),))),
    "both on one node": in_stages(moved(0, (0, 0))),
    "a way of another kind": in_stages(moved(0, (0, 3), kind=MoveKind.FAILOVER)),
    "a detour": in_stages(moved(0, (0, 1), (0, 3))),
    "no secondary": in_stages(moved(0, (3, -1), kind=MoveKind.FAILOVER_TO_ANY)),
    "idle though it runs": in_stages(Move(0, REPLACE, (0, 2), ((0, 3),), idle=True)),
    "the same once more": in_stages(moved(0, (0, 3)), moved(0, (0, 3))),
    "stages that lack a move": in_stages(*SEPARATE, stages=((0,),)),
    "stages with a move that is not there": in_stages(*SEPARATE, stages=((0, 1), (2,))),
    "a move in two stages": in_stages(*SEPARATE, stages=((0, 1), (1,))),
    "a move that waits for itself": in_stages(*SEPARATE, after=((0,), (0,))),
    "a move that waits for nobody": in_stages(*SEPARATE, after=((), ())),
    "too many at a node": in_stages(*SEPARATE, after=((), ()), stages=((0, 1),)),
}


@pytest.fixture(scope="module")
def honest():
    assignment = Assignment(parse_inline(CLUSTER), 0, BalanceOptions(), 1)
    return assignment, plan_group(assignment)


def test_an_honest_plan_is_taken_as_it_is(honest):
    assignment, found = honest
    assert found.plan.moves
    assert verified(assignment, found) == found


@pytest.mark.parametrize("lie", LIES)
def test_a_plan_that_is_none_is_refused(honest, lie):
    assignment, found = honest
    with pytest.raises(InvalidPlan):
        verified(assignment, dataclasses.replace(found, plan=LIES[lie]))


@pytest.mark.parametrize(
    "changed",
    [
        {"group": 1},
        {"group": -1},
        {"blocked": (7,)},
        {"refused": {-1: Refused(0, (1,), 1.0)}},
        {"refused": {0: Refused(9, (1,), 1.0)}},
        {"refused": {0: Refused(0, (1, 9), 1.0)}},
    ],
)
def test_names_of_others_are_refused(honest, changed):
    assignment, found = honest
    with pytest.raises(InvalidPlan):
        verified(assignment, dataclasses.replace(found, **changed))


def test_why_an_instance_stays_is_taken_with_all_nodes_whose_failure_it_names(honest):
    assignment, plan = honest
    refused = dataclasses.replace(plan, refused={0: Refused(3, (1, 2), 1.0)})
    assert verified(assignment, refused) == refused


def test_figures_are_counted_again(honest):
    assignment, found = honest
    assert verified(assignment, dataclasses.replace(found, score_before=9.0, score_after=0.0, data=-5)) == found


@pytest.mark.parametrize(
    "options",
    [
        BalanceOptions(prices=Prices(most_moves=0)),
        BalanceOptions(prices=Prices(most_data=0)),
        BalanceOptions(moves=MoveOptions(disk_moves=False)),
        HbalOptions(max_moves=0),
    ],
)
def test_a_budget_is_kept(honest, options):
    assignment, found = honest
    assert any(len(move.steps) > 1 or move.kind == REPLACE for move in found.plan.moves)
    with pytest.raises(InvalidPlan):
        verified(dataclasses.replace(assignment, options=options), found)


def of_instances(*instances, most_at_node=None):
    """Return an assignment with five nodes and a plan of it; each instance is (primary, secondary, memory, disk)."""
    nodes = [{"name": f"n{number}", "group": "a", **SIZES} for number in range(5)]
    guests = [
        {"name": f"i{number}", "primary": f"n{one}", "secondary": f"n{other}", "memory": memory, "disk": disk, "vcpus": 1}
        for number, (one, other, memory, disk) in enumerate(instances)
    ]
    cluster = parse_inline({"groups": [{"name": "a"}], "nodes": nodes, "instances": guests})
    assignment = Assignment(cluster, 0, BalanceOptions(), most_at_node)
    return assignment, plan_group(assignment)


@pytest.mark.parametrize(
    ("instances", "moves"),
    [
        # More disk than there is.
        ([(0, 2, 1000, 60000), (1, 3, 1000, 60000)], [Move(0, REPLACE, (0, 2), ((0, 3),))]),
        # More memory than there is, where two of the same node would start if it failed.
        ([(0, 2, 3000, 100), (0, 3, 3000, 100), (1, 4, 4000, 100)], [Move(n, REPLACE, (0, 2 + n), ((0, 1),)) for n in (0, 1)]),
        # More memory than there is, now.
        ([(0, 2, 5000, 100), (1, 3, 5000, 100)], [Move(0, MoveKind.REPLACE_AND_FAILOVER, (0, 2), ((0, 1), (1, 0)))]),
    ],
)
def test_limits_are_kept(instances, moves):
    assignment, found = of_instances(*instances)
    with pytest.raises(InvalidPlan, match="limits"):
        verified(assignment, dataclasses.replace(found, plan=in_stages(*moves)))


def test_limits_are_kept_in_other_orders_too():
    """One leaves a node that is full before another one comes; at the same time there would be no room."""
    assignment, found = of_instances((0, 3, 1000, 60000), (1, 2, 1000, 60000))
    moves = Move(0, REPLACE, (0, 3), ((0, 4),)), Move(1, REPLACE, (1, 2), ((1, 3),))
    assert verified(assignment, dataclasses.replace(found, plan=in_stages(*moves))).plan.moves == moves
    with pytest.raises(InvalidPlan, match="limits"):
        verified(assignment, dataclasses.replace(found, plan=in_stages(*moves, after=((), ()), stages=((0, 1),))))


def test_group_balance_believes_no_worker_of_a_cluster(honest):
    _assignment, found = honest
    lie = dataclasses.replace(found, plan=LIES["another group"])
    arguments = {"groups": ["a"], "scheduler": "tls://h:8786"}

    def solve(job, tasks, resources):
        return {name: Solved(lie, 0.0) for name in tasks}

    with pytest.raises(Unavailable, match="a worker of the Dask cluster answers for a"):
        run_balance(Loaded(parse_inline(CLUSTER), {}), arguments, solve)
    answer = run_balance(
        Loaded(parse_inline(CLUSTER), {}),
        arguments,
        lambda job, tasks, _resources: {name: Solved(job(one, None), 0.0) for name, one in tasks.items()},
    )
    assert json.dumps(answer["plan"]["moves"])
