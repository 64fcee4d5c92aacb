# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What single moves are told to cost, where a node is left with exactly the memory that it must keep."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Status
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.moves import MoveKind
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
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


@pytest.mark.parametrize(("free", "offered"), [(199, False), (200, True)])
def test_a_stopped_instance_does_not_pass_a_node_that_could_not_keep_its_memory(bench, free, offered):
    """It needs no memory as the primary of `c`, but on the way there `c` is its secondary."""
    # What runs on `c` has not taken its memory yet.
    nodes = [bench.node("a"), bench.node("b"), bench.node("c", total_memory=1000.0, node_memory=0, free_memory=1000)]
    stopped = bench.instance("one", "a", "b", memory=200, status=Status.ADMIN_DOWN)
    cluster = bench.cluster(nodes, [stopped, bench.instance("two", "c", "a", memory=1000 - free)])
    state = ClusterState.from_cluster(dataclasses.replace(cluster, nodes=(*cluster.nodes[:2], nodes[2])))
    evaluator = MoveEvaluator(state, Scorer(state, ScoreMode.HTOOLS, state.group_nodes(0)), MoveRules.of_start(state), MoveOptions())
    assert evaluator.allows(state, 0, MoveKind.REPLACE_PRIMARY, 2) == offered
