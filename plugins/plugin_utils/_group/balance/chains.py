# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves that are only worth it together: exchanges of two instances, and chains of up to three moves.

Chains are ejection chains, as in Lin and Kernighan's heuristic.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Floats, Integers
from ..cluster.moves import Move, MoveKind, make_move
from ..neighbourhood.exchanges import ExchangeEvaluator, arrivals
from .walk import LITTLE, LITTLE_EVERYWHERE, NO_INSTANCES, Walk

_ABREAST = 100
"""Instances whose exchanges are evaluated together."""
_ALL = 2000
"""Up to this number of instances, each may exchange nodes with any other."""
_PARTNERS = 1500
"""Of more instances, with how many each may: each time with others."""
_PATIENCE = 12
"""How many starts of chains, or exchanges, in a row may lead nowhere."""
_DEPTH = 3


def refine(walk: Walk) -> None:
    """Make moves that are only worth it together: exchanges, and chains that exchanges do not cover."""
    _exchange_to_the_end(walk)
    walk.repeat(lambda: _chain_and_exchange(walk))


def _chain_and_exchange(walk: Walk) -> None:
    before = walk.cost
    # Try chains from the least bad moves.
    best = walk.best_near(walk.instances, NO_INSTANCES)
    improved, failed = False, 0
    for row in best.order().tolist():
        if walk.late() or failed == _PATIENCE:
            break
        failed += 1
        # The first evaluation is stale once a chain has been made.
        now, position = best, row
        if improved:
            now, position = walk.best_near(best.instances[row : row + 1], best.target[row : row + 1]), 0
        if np.isfinite(now.cost[position]) and _follow(walk, now.move(walk.state, position), float(now.cost[position])):
            improved, failed = True, 0
    if walk.cost < before:
        walk.descend_to_local_optimum()
        _exchange_to_the_end(walk)


def _exchange_to_the_end(walk: Walk) -> None:
    walk.repeat(lambda: _exchange_all(walk), LITTLE if _shares(walk) == 1 else LITTLE_EVERYWHERE)


def _shares(walk: Walk) -> int:
    """Return in how many parts the partners of an exchange are evaluated."""
    return 1 if len(walk.instances) <= _ALL else -(-len(walk.instances) // _PARTNERS)


def _exchange_all(walk: Walk) -> None:
    """Let instances exchange nodes, two at a time, where that is worth its price."""
    by_place = arrivals(walk.evaluated(walk.evaluator), walk.evaluator.targets, walk.instances)
    shares = _shares(walk)
    for number, start in enumerate(range(0, len(walk.instances), _ABREAST), len(walk.made)):
        _exchange(walk, walk.instances[start : start + _ABREAST], walk.instances[number % shares :: shares], by_place)


def _exchange(walk: Walk, instances: Integers, partners: Integers, by_place: Floats | None) -> None:
    """Make the best exchanges of some instances with any of the partners."""
    evaluator = ExchangeEvaluator(walk.evaluated(walk.evaluator), walk.price(), by_place)
    # What was estimated is stale where another exchange has been made since.
    fresh = np.ones(len(walk.state.offline), dtype=bool)
    failed = 0
    for found in evaluator.best(instances, partners, 2 * walk.options.min_gain):
        nodes = found.nodes(walk.state)
        if not fresh[nodes].all():
            continue
        if walk.late() or failed == _PATIENCE:
            return
        if any(_make_both(walk, moves) for moves in itertools.permutations(found.moves(walk.state))):
            fresh[nodes] = False
            failed = 0
        else:
            failed += 1


def _make_both(walk: Walk, wanted: Sequence[tuple[int, MoveKind, int]]) -> bool:
    """Make moves that are worth it together; return whether they are. If not, all is as before."""
    before, flags = walk.cost, walk.state.fails_n1.copy()
    made: list[Move] = []
    for instance, kind, target in wanted:
        if not walk.evaluator.narrowed(np.array([target])).allows(walk.state, instance, kind, target):
            break
        made.append(make_move(walk.state, instance, kind, target))
        walk.state.place(instance, *made[-1].target)
    worth = len(made) == len(wanted) and walk.count() <= before - walk.options.min_gain * len(made)
    if worth and walk.keeps_n1():
        walk.made += made
        return True
    walk.back(made, before, flags)
    return False


def _follow(walk: Walk, move: Move, cost: float) -> bool:
    """Return whether a chain that starts with a move leads to something better; if not, all is as before."""
    before, flags = walk.cost, walk.state.fails_n1.copy()
    made = [walk.go(move, cost)]
    while len(made) < _DEPTH:
        touched = np.array([node for move in made for node in (*move.source, *move.target)])
        best = walk.best_near(_near(walk, made), touched)
        order = best.order()
        if not len(order):
            break
        made.append(walk.go(best.move(walk.state, int(order[0])), float(best.cost[order[0]])))
        if walk.cost <= before - walk.options.min_gain * len(made) and walk.keeps_n1():
            walk.made += made
            return True
    walk.back(made, before, flags)
    return False


def _near(walk: Walk, made: list[Move]) -> Integers:
    """Return the instances on nodes that moves have touched, without those that moved."""
    touched = np.zeros(len(walk.state.offline) + 1, dtype=bool)
    touched[[node for move in made for node in (*move.source, *move.target)]] = True
    touched[NOWHERE] = False
    around = touched[walk.state.primary[walk.instances]] | touched[walk.state.secondary[walk.instances]]
    for move in made:
        around &= walk.instances != move.instance
    return walk.instances[around]
