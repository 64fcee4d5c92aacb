# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves of instances that are to be together: a set goes to a node whole, or stays."""

from __future__ import annotations

from ..._common.libraries import np
from ..cluster.arrays import Floats, Integers
from ..cluster.moves import Move, MoveKind, make_move
from .walk import Walk

_SET_TARGETS = 3
"""Nodes that are tried for those that are to be together."""
_PRIMARY_AT_TARGET = (MoveKind.FAILOVER_TO_ANY, MoveKind.REPLACE_AND_FAILOVER, MoveKind.REPLACE_PRIMARY)
"""The kinds of moves after which the target is the primary."""


def move_sets(walk: Walk) -> None:
    """Move those that are to be together, set by set, and others after them."""
    while not walk.late():
        moved = [_move_set(walk, members) for members in walk.sets]
        if not any(moved):
            return
        walk.descend_to_local_optimum()


def _move_set(walk: Walk, members: Integers) -> bool:
    """Bring a set to the best of the nodes that promise most; return whether that is worth it."""
    costs = _set_costs(walk, members)
    targets = walk.apart.targets.nodes
    return any(
        _make_set(walk, members, int(targets[at])) for at in np.argsort(costs, kind="stable")[:_SET_TARGETS] if np.isfinite(costs[at])
    )


def _set_costs(walk: Walk, members: Integers) -> Floats:
    """Return [T]: about what it costs to have all of a set on each target, infinite where one of them cannot go."""
    targets = walk.apart.targets
    evaluation = walk.evaluated(walk.apart)
    total = np.zeros(len(targets.nodes))
    for block in targets.blocks(walk.state, members):
        costs = walk.apart.costs(evaluation, block, walk.price())
        to_target = [costs[kind] for kind in _PRIMARY_AT_TARGET if kind in costs]
        least = np.minimum.reduce(to_target) if to_target else np.full((len(block.instances), len(total)), np.inf)
        at_home = block.primary[:, None] == targets.nodes
        total += np.where(at_home, walk.cost, least).sum(axis=0)
    return total


def _make_set(walk: Walk, members: Integers, target: int) -> bool:
    """Bring a set to a node; return whether that is worth it. If not, all is as before."""
    before, flags = walk.cost, walk.state.fails_n1.copy()
    made: list[Move] = []
    evaluator = walk.apart.narrowed(np.array([target]))
    for instance in members.tolist():
        if walk.state.primary[instance] == target:
            continue
        evaluation = walk.evaluated(evaluator)
        costs = {kind: evaluator.cost(evaluation, instance, kind, target, walk.price()) for kind in _PRIMARY_AT_TARGET}
        kind = min(costs, key=lambda one: costs[one])
        if not np.isfinite(costs[kind]):
            walk.back(made, before, flags)
            return False
        made.append(walk.go(make_move(walk.state, instance, kind, target), costs[kind]))
    if made and walk.cost <= before - walk.options.min_gain * len(made) and walk.keeps_n1():
        walk.made += made
        return True
    walk.back(made, before, flags)
    return False
