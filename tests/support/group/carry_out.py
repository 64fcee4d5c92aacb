# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans carried out step by step, as the role does it: the steps of a stage's moves in an order by lot, stage after stage."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.moves import Move
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.stages import Plan

Excess = Callable[[Cluster, str], Mapping[str, float]]


def carry_out(state: ClusterState, plan: Plan, lot: random.Random) -> Iterator[Move]:
    """Yield the move of which a step was just taken in `state`."""
    for stage in plan.stages:
        left = {number: list(plan.moves[number].steps) for number in stage}
        while left:
            number = lot.choice(sorted(left))
            state.place(plan.moves[number].instance, *left[number].pop(0))
            if not left[number]:
                del left[number]
            yield plan.moves[number]


def carry_out_after(state: ClusterState, plan: Plan, lot: random.Random) -> Iterator[Move]:
    """Do the same by what each move comes after, without stages."""
    left = {number: list(move.steps) for number, move in enumerate(plan.moves)}
    while left:
        number = lot.choice([number for number in sorted(left) if not set(plan.after[number]) & set(left)])
        state.place(plan.moves[number].instance, *left[number].pop(0))
        if not left[number]:
            del left[number]
        yield plan.moves[number]


def names_at(cluster: Cluster, move: Move) -> set[str]:
    """Return the nodes that a move touches and that are up."""
    nodes = {node for place in (move.source, *move.steps) for node in place if node >= 0}
    return {cluster.nodes[node].name for node in nodes if not cluster.nodes[node].offline}


def worst_in_sequence(state: ClusterState, plan: Plan, excess: Excess) -> dict[str, dict[str, float]]:
    """Return by node the most that each limit is passed by when the moves are made one after the other; 0 where never."""
    now = state.copy()
    cluster = state.facts.cluster
    start = now.to_cluster()
    worst = {node.name: {limit: max(0.0, value) for limit, value in excess(start, node.name).items()} for node in cluster.nodes}
    for move in plan.moves:
        for step in move.steps:
            now.place(move.instance, *step)
            then = now.to_cluster()
            for name in names_at(cluster, move):
                worst[name] = {limit: max(worst[name][limit], value) for limit, value in excess(then, name).items()}
    return worst


def assert_no_order_is_worse(state: ClusterState, plan: Plan, excess: Excess, lot: random.Random) -> None:
    """Assert that no step of any order that a plan allows passes a limit further than the sequence of its moves does."""
    cluster = state.facts.cluster
    worst = worst_in_sequence(state, plan, excess)
    for way in (carry_out, carry_out_after):
        now = state.copy()
        for move in way(now, plan, lot):
            then = now.to_cluster()
            for name in names_at(cluster, move):
                over = {limit: value for limit, value in excess(then, name).items() if value > worst[name][limit] + 1e-6}
                assert not over, (way.__name__, name, move, over)
