# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Exchanges gain what they promise: score and price counted anew after both moves."""

from __future__ import annotations

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.queue import MoveQueue
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import NOWHERE
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode, Scorer
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.exchanges import ExchangeEvaluator, Role, arrivals
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.limits import MoveRules
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.moves import MoveEvaluator, MoveOptions, make_move
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.price import InitialPlacement, PlacementPrice, Prices
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

KINDS = {
    "drbd": {"template": "drbd", "n1ok": True},
    "shared": {"template": "ext"},
    "mixed": {"template": "mixed", "extags": True, "loctags": True},
}


def wandered(seed: int, kind: str) -> tuple[ClusterState, InitialPlacement]:
    """Return a state in which some instances are not at home any more, and where all were at first."""
    state = ClusterState.from_cluster(parse_text(generate(nodes=8, per_node=5, seed=seed, **KINDS[kind]).text()))
    home = InitialPlacement.of(state)
    draw = np.random.default_rng(seed)
    for instance in draw.permutation(len(state.primary))[:10].tolist():
        mirrored = state.secondary[instance] != NOWHERE
        nodes = draw.permutation(len(state.offline))[:2].tolist()
        state.place(instance, nodes[0], nodes[1] if mirrored else NOWHERE)
    return state, home


def meet(state: ClusterState, one: int, other: int, role: Role) -> bool:
    """Return whether the instances have something in common that both moves change together: the node that keeps memory, or a tag."""
    facts = state.facts.instances
    tags = bool(set(facts.exclusion[one]) & set(facts.exclusion[other]))
    keepers = state.secondary[[one, other]]
    pairs = set(zip(state.primary[[one, other]].tolist(), keepers.tolist()))
    crossed = any((primary, secondary) in pairs for secondary, primary in pairs)
    return tags or crossed or (role == Role.PRIMARY and keepers[0] == keepers[1] != NOWHERE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_exchanges_gain_what_they_promise(seed, kind):
    state, home = wandered(seed, kind)
    scorer = Scorer(state, ScoreMode.HTOOLS, state.group_nodes(0))
    prices = Prices(data=0.5, primary=0.01)
    evaluator = MoveEvaluator(state, scorer, MoveRules.of_start(state), MoveOptions())
    before = scorer.score(state)
    evaluation, price = evaluator.at(state, before), PlacementPrice.of(state, home, prices)
    instances = np.arange(len(state.primary))
    found = ExchangeEvaluator(evaluation, price, arrivals(evaluation, evaluator.targets, instances)).best(instances, instances, 1e-6)
    assert [exchange.gain for exchange in found] == sorted((exchange.gain for exchange in found), reverse=True)
    checked = 0
    for exchange in found:
        if meet(state, exchange.one, exchange.other, exchange.role):
            continue
        trial = state.copy()
        for instance, move_kind, target in exchange.moves(state):
            trial.place(instance, *make_move(trial, instance, move_kind, target).target)
        if (trial.fails_n1 != state.fails_n1).any():
            continue
        gain = before + price.now - scorer.score(trial) - PlacementPrice.of(trial, home, prices).now
        # Estimates are made in single precision.
        assert gain == pytest.approx(exchange.gain, abs=1e-6 * before), exchange
        checked += 1
    assert checked > 3


def test_the_queue_gives_those_that_promised_most(bench):
    nodes = [bench.node(name) for name in "abc"]
    state = bench.state(nodes, [bench.instance(f"i{number}", "a", disk_template="ext") for number in range(5)])
    scorer = Scorer(state, ScoreMode.HTOOLS, state.group_nodes(0))
    evaluator = MoveEvaluator(state, scorer, MoveRules.of_start(state), MoveOptions())
    price = PlacementPrice.of(state, InitialPlacement.of(state), Prices())
    score = scorer.score(state)
    best = evaluator.best(evaluator.at(state, score), np.arange(5), price)
    queue = MoveQueue.of(best, score, 5)
    assert queue.promise == pytest.approx(score - best.cost.min())
    assert len(queue.next(queue.promise / 2, 2)) == 2
    queue.drop(np.arange(1, 5))
    assert queue.next(0.0, 5).tolist() == [0]
    assert queue.targets[0] == best.target[0]
    queue.drop(0)
    assert queue.promise == -np.inf
    assert not len(queue.next(-1e9, 5))
