# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What single moves are told to cost, where a node is left with exactly the memory that it must keep."""

from __future__ import annotations

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Status
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.moves import MoveKind
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode, Scorer
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.limits import MoveRules
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.moves import MoveEvaluator, MoveOptions, NoPrice


@pytest.mark.parametrize("mode", list(ScoreMode))
def test_a_move_that_leaves_exactly_what_is_kept_costs_what_the_score_then_says(bench, mode):
    nodes = [bench.node("a"), bench.node("b", free_memory=200), bench.node("c")]
    state = bench.state(nodes, [bench.instance("one", "a", "b"), bench.instance("two", "c", "b")])
    scorer = Scorer(state, mode, state.group_nodes(0))
    evaluator = MoveEvaluator(state, scorer, MoveRules.of_start(state), MoveOptions())
    (block,) = evaluator.targets.blocks(state, np.array([0, 1]))
    told = evaluator.costs(evaluator.at(state, scorer.score(state)), block, NoPrice())[MoveKind.FAILOVER]
    state.place(0, 1, 0)
    assert told[0] == pytest.approx(scorer.score(state))
    assert state.fails_n1[1]


FULL, ENOUGH = 199, 200
"""MiB that are free on a node that keeps 200 for a stopped instance whose secondary it is."""


@pytest.mark.parametrize(
    ("kind", "full"),
    [
        (MoveKind.REPLACE_PRIMARY, "a"),
        (MoveKind.REPLACE_PRIMARY, "c"),
        (MoveKind.REPLACE_AND_FAILOVER, "c"),
        (MoveKind.FAILOVER_AND_REPLACE, "a"),
    ],
)
@pytest.mark.parametrize(("free", "offered"), [(FULL, False), (ENOUGH, True)])
def test_a_stopped_instance_does_not_pass_a_node_that_could_not_keep_its_memory(bench, kind, full, free, offered):
    """It needs no memory as the primary of `a` or `c`, but on the way each is its secondary."""
    nodes = [bench.node("a"), bench.node("b"), bench.node("c")]
    stopped = bench.instance("one", "a", "b", memory=200, status=Status.ADMIN_DOWN)
    state = bench.state(nodes, [stopped, bench.instance("two", full, memory=1000 - free)])
    evaluator = MoveEvaluator(state, Scorer(state, ScoreMode.HTOOLS, state.group_nodes(0)), MoveRules.of_start(state), MoveOptions())
    assert evaluator.allows(state, 0, kind, 2) == offered


@pytest.mark.parametrize(("free", "offered"), [(299, False), (300, True)])
def test_its_memory_is_kept_beside_that_of_others_with_the_same_primary(bench, free, offered):
    nodes = [bench.node("a"), bench.node("b"), bench.node("c")]
    stopped = bench.instance("one", "a", "b", memory=200, status=Status.ADMIN_DOWN)
    others = [bench.instance("two", "a", "c", memory=100), bench.instance("three", "c", memory=1000 - free)]
    state = bench.state(nodes, [stopped, *others])
    evaluator = MoveEvaluator(state, Scorer(state, ScoreMode.HTOOLS, state.group_nodes(0)), MoveRules.of_start(state), MoveOptions())
    assert evaluator.allows(state, 0, MoveKind.REPLACE_AND_FAILOVER, 2) == offered
