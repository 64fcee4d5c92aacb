# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan of moves as the plain data that actions return, by names."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Sequence

from ..cluster.arrays import NOWHERE
from ..cluster.changes import after_moves
from ..cluster.commands import StepKind
from ..cluster.loads import node_loads, touched_groups
from ..cluster.model import Cluster
from ..cluster.moves import Move, Place, commands, copied_data, kind_of, steps_to_plain
from ..cluster.state import ClusterState
from ..metrics.score import ScoreMode, Scorer
from .stages import Plan
from .times import seconds_of


def plan_to_plain(state: ClusterState, plan: Plan, mode: ScoreMode) -> dict[str, t.Any]:
    """Return a plan from `state` as plain data: score_before, score_after, moves, stages and commands; seconds where links have a rate."""
    scorer = Scorer(state, mode)
    after = after_moves(state, plan.moves)
    plain = {
        "score_before": scorer.score(state),
        "score_after": scorer.score(after),
        "moves": [move_to_plain(state, move) | {"after": list(earlier)} for move, earlier in zip(plan.moves, plan.after)],
        "stages": [list(stage) for stage in plan.stages],
        "commands": [line for move in plan.moves for line in commands(state, move)],
        "nodes": node_loads(state, after, touched_groups(state, plan.moves)),
    }
    return with_seconds(state.facts.cluster, plain)


def with_seconds(cluster: Cluster, plan: dict[str, t.Any], done: Sequence[int] = ()) -> dict[str, t.Any]:
    """Return a plan as plain data with the time it takes where links have a rate; `done` are the steps of each move that are done."""
    if cluster.link_rate is None:
        return plan
    return plan | {"seconds": seconds_of(plan, cluster.link_rate, done) | {"rounds": cluster.link_rounds}}


def move_to_plain(state: ClusterState, move: Move) -> dict[str, t.Any]:
    """Return a move as plain data, by names."""
    facts = state.facts
    steps = steps_to_plain(state, move)
    is_live = any(step["kind"] == StepKind.MIGRATE for step in steps)
    return {
        "instance": facts.instances.names[move.instance],
        "kind": kind_of(state, move),
        "from": node_names(state, move.source),
        "to": node_names(state, move.target),
        "group": facts.cluster.groups[facts.nodes.group[move.target[0]]].name,
        "data": copied_data(state, move),
        "memory": facts.cluster.instances[move.instance].memory if is_live else 0,
        "steps": steps,
        "commands": commands(state, move),
    }


def node_names(state: ClusterState, place: Place) -> list[str]:
    """Return the names of a place's nodes."""
    return [state.facts.nodes.names[node] for node in place if node != NOWHERE]


def restarted(state: ClusterState, moves: Iterable[Move]) -> list[int]:
    """Return the instances that run, and are stopped and started again when they change their primary."""
    left = dict.fromkeys(move.instance for move in moves if move.target[0] != move.source[0])
    return [instance for instance in left if state.facts.instances.stopped_to_move[instance]]
