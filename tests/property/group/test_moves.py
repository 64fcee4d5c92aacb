# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Single moves, evaluated all at once, cost what a fresh count says they cost, and keep the limits that it says are kept."""

from __future__ import annotations

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.hbal import candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import NOWHERE
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.moves import MoveKind, make_move, possible_moves
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode, Scorer
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.verdicts import EXACT, primary_verdict, secondary_verdict
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.limits import MoveRules
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.moves import MoveEvaluator, MoveOptions, NoPrice
from ansible_collections.bareon.allocator.tests.support.group.clusters import clusters
from ansible_collections.bareon.allocator.tests.support.group.limits import excess
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MODEST = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))


def every_move(evaluator, state, group):
    """Yield every move that is not refused, with its cost."""
    evaluation = evaluator.at(state, evaluator.scorer.score(state))
    targets = evaluator.targets
    for block in targets.blocks(state, candidates(state, group, evacuation_only=False)):
        for kind, costs in evaluator.costs(evaluation, block, NoPrice()).items():
            table = costs if costs.ndim > 1 else costs[:, None]
            for row, column in np.argwhere(np.isfinite(table)).tolist():
                target = NOWHERE if kind == MoveKind.FAILOVER else int(targets.nodes[column])
                yield make_move(state, int(block.instances[row]), kind, target), float(table[row, column])


@MODEST
@given(clusters(), st.sampled_from(list(ScoreMode)), st.booleans())
def test_every_move_costs_the_score_that_it_leads_to(cluster, mode, like_hbal):
    state = ClusterState.from_cluster(cluster)
    rules = MoveRules.of_htools(state) if like_hbal else MoveRules.of_start(state)
    for group in range(len(cluster.groups)):
        scorer = Scorer(state, mode, state.group_nodes(group))
        for move, cost in every_move(MoveEvaluator(state, scorer, rules, MoveOptions()), state, group):
            after = state.copy()
            after.place(move.instance, *move.target)
            assert cost == pytest.approx(scorer.score(after), abs=1e-6), (move, group)


def keeps_all(start, before, state, move):
    """Return whether no step of a move makes a limit of any online node worse than at the start, counted anew from the model."""
    trial = state.copy()
    for step in move.steps:
        trial.place(move.instance, *step)
        now = trial.to_cluster()
        for node in start.nodes:
            worse = {limit for limit, value in excess(now, node.name).items() if value > max(0, before[node.name][limit])}
            if worse and node.state == "up":
                return False
    return True


@MODEST
@given(clusters())
def test_moves_that_are_offered_keep_all_limits_at_every_step(cluster):
    state = ClusterState.from_cluster(cluster)
    start = state.to_cluster()
    before = {node.name: excess(start, node.name) for node in start.nodes}
    for group in range(len(cluster.groups)):
        scorer = Scorer(state, ScoreMode.HTOOLS, state.group_nodes(group))
        offered = {move for move, _cost in every_move(MoveEvaluator(state, scorer, MoveRules.of_start(state), MoveOptions()), state, group)}
        assert all(keeps_all(start, before, state, move) for move in offered)


def has_room(state, move):
    """Return whether each place on the way takes an instance that comes from nowhere; a down primary that becomes the secondary does."""
    with state.lifted(move.instance):
        for primary, secondary in move.steps:
            nodes = np.array([primary]), np.array([secondary])
            if not primary_verdict(state, move.instance, nodes[0], EXACT).fits.all():
                return False
            copied = secondary != NOWHERE and not state.offline[secondary]
            if copied and not secondary_verdict(state, move.instance, *nodes, EXACT).fits.all():
                return False
    return True


@MODEST
@given(clusters())
def test_every_move_for_which_there_is_room_is_offered(cluster):
    state = ClusterState.from_cluster(cluster)
    for group in range(len(cluster.groups)):
        scorer = Scorer(state, ScoreMode.HTOOLS, state.group_nodes(group))
        offered = {move for move, _cost in every_move(MoveEvaluator(state, scorer, MoveRules.of_start(state), MoveOptions()), state, group)}
        for instance in candidates(state, group, evacuation_only=False).tolist():
            home = int(state.primary[instance]), int(state.secondary[instance])
            nodes = scorer.online.tolist()
            pairs = [(a, NOWHERE) for a in nodes] if home[1] == NOWHERE else [(a, b) for a in nodes for b in (*nodes, home[0]) if a != b]
            for place in pairs:
                if place != home and set(place) & set(home):
                    expected = {move for move in possible_moves(state, instance, place) if has_room(state, move)}
                    assert {move for move in expected if move.kind != MoveKind.REPLACE_BOTH} <= offered
