# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Balancing with the decisions of Ganeti's hbal: always the one move after which the score is best.

    for step in steps_like_hbal(state, group, options): ...      # changes `state` move by move

The loop, the limits (section by section those of htools 3.0) and what wins among equals are hbal's; only the way the
best move is found is not: all of them are evaluated at once (neighbourhood), and those that come out equal up to
rounding are computed once more with full precision, in hbal's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Floats, Integers
from ..cluster.moves import Move
from ..cluster.state import ClusterState
from ..metrics.score import ScoreMode, Scorer
from ..neighbourhood.limits import MoveRules
from ..neighbourhood.moves import BestMoves, Evaluation, MoveEvaluator, MoveOptions, NoPrice

_CLOSE = 1e-7
"""Scores that differ by less may be equal: a root of a variance near 0 has half the digits of the variance."""
_EQUAL = 1e-12
"""Scores that differ by less are equal: sums of floats in another order are off by as much, and what is at rest moves nothing."""
_LEAST_SCORE = 1e-9


@dataclass(frozen=True)
class HbalOptions:
    """hbal's options by its own names; `max_moves` None is without limit."""

    moves: MoveOptions = MoveOptions()
    evacuation_only: bool = False
    max_moves: int | None = None
    min_gain: float = 0.01
    min_gain_limit: float = 0.1


@dataclass(frozen=True)
class Step:
    """A move that was made and the score that it led to."""

    move: Move
    score: float


def steps_like_hbal(state: ClusterState, group: int, options: HbalOptions) -> Iterator[Step]:
    """Yield moves one by one, each made in `state` before it is yielded."""
    scorer = Scorer(state, ScoreMode.HTOOLS, state.group_nodes(group))
    evaluator = MoveEvaluator(state, scorer, MoveRules.of_htools(state), options.moves)
    least = _least_possible(state, group) + _LEAST_SCORE
    score = scorer.score(state)
    made = 0
    while score > least and (options.max_moves is None or made < options.max_moves):
        step = _best_step(evaluator.at(state, score), evaluator, candidates(state, group, options.evacuation_only))
        if step is None or step.score > score - _EQUAL or (score <= options.min_gain_limit and score - step.score < options.min_gain):
            return
        state.place(step.move.instance, *step.move.target)
        score = step.score
        made += 1
        yield step


def candidates(state: ClusterState, group: int, evacuation_only: bool) -> Integers:
    """Return the instances that balancing a group may move: kept by nothing, movable, wanted to be balanced, and wholly in the group."""
    models, groups = state.facts.instances.models, state.facts.nodes.group
    placed = np.flatnonzero((state.primary != NOWHERE) & ~state.facts.instances.stays)
    here = placed[groups[state.primary[placed]] == group]
    other = state.secondary[here]
    here = here[(other == NOWHERE) | (groups[other] == group)]
    if evacuation_only:
        other = state.secondary[here]
        here = here[state.offline[state.primary[here]] | ((other != NOWHERE) & state.offline[other])]
    wanted = [models[instance].movable and models[instance].auto_balance for instance in here.tolist()]
    return here[np.array(wanted, dtype=bool)]


def _best_step(evaluation: Evaluation, evaluator: MoveEvaluator, instances: Integers) -> Step | None:
    best = evaluator.best(evaluation, instances, NoPrice())
    if not len(best.instances) or not np.isfinite(best.cost.min()):
        return None
    close = np.flatnonzero(best.cost <= best.cost.min() + _CLOSE)
    close = close[np.argsort(best.instances[close], kind="stable")]
    scores = _exact(evaluation.state, evaluator.scorer, best, close)
    first = int(np.flatnonzero(scores <= scores.min() + _EQUAL)[0])
    return Step(best.move(evaluation.state, int(close[first])), float(scores[first]))


def _exact(state: ClusterState, scorer: Scorer, best: BestMoves, rows: Integers) -> Floats:
    """Return the score after each row's move, without the shortcuts of evaluating all at once."""
    scores = []
    for row in rows.tolist():
        move = best.move(state, row)
        trial = state.copy()
        trial.place(move.instance, *move.target)
        scores.append(scorer.score(trial))
    return np.array(scores)


def _least_possible(state: ClusterState, group: int) -> float:
    """Return the score that no placement can be below: reserved memory spread as evenly as it can be."""
    nodes = state.group_nodes(group)
    if len(nodes) < 2:
        return 0.0
    memory = state.facts.nodes.total_memory[nodes]
    kept = float(state.peers[nodes].sum())
    without_largest = float(memory.sum() - memory.max())
    return 0.25 * (kept / without_largest - kept / float(memory.sum())) if without_largest > 0 else 0.0
