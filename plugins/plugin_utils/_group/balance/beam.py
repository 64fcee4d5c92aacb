# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chains in small groups, by beam search: of all placements that a number of moves leads to, only the cheapest are gone on from.

Chains elsewhere (chains.py) begin with the best move of an instance and go on with the best move of all. Where few instances decide, most
of what is better begins with another move: three instances of four on three nodes have to change places at once, for instance.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..._common.libraries import np
from ..cluster.moves import Move, make_move
from .chains import refine
from .walk import Walk

_DEPTH = 3
_WIDTH = 20
"""Placements that are gone on from at each depth."""
_CELLS = 20_000
"""How many pairs of an instance and a node are tried, each as often as the group allows; larger groups find no more this way."""
_LOOKS = 1 + _WIDTH * (_DEPTH - 1)
"""Looks at all moves that one beam takes."""

_Chain = tuple[float, tuple[Move, ...]]
"""What a placement costs, and the moves that lead there."""


def refine_widely(walk: Walk) -> None:
    """Make chains as long as any is worth its price, if the group is small enough to look at all of its moves that often."""
    affordable = _CELLS // max(len(walk.instances) * len(walk.evaluator.targets.nodes), 1)
    looks = iter(range(affordable if affordable >= _LOOKS else 0))
    while not walk.late() and _improve(walk, looks):
        walk.descend_to_local_optimum()
        refine(walk)


def _improve(walk: Walk, looks: Iterator[int]) -> bool:
    """Make the first chain found that is worth its price, the shortest first; return whether there is one."""
    before, flags = walk.cost, walk.state.fails_n1.copy()
    beam: list[_Chain] = [(before, ())]
    for _depth in range(_DEPTH):
        beam = _extended(walk, beam, looks)
        for cost, moves in beam:
            if cost > before - walk.options.min_gain * len(moves):
                continue
            _make(walk, moves, cost)
            if walk.keeps_n1():
                walk.made += moves
                return True
            walk.back(moves, before, flags)
    return False


def _extended(walk: Walk, beam: list[_Chain], looks: Iterator[int]) -> list[_Chain]:
    """Return the cheapest chains with a move more, one for each placement; no more once no look is left."""
    before, flags = walk.cost, walk.state.fails_n1.copy()
    cheapest: dict[frozenset[tuple[int, tuple[int, int]]], _Chain] = {}
    for cost, moves in beam:
        if walk.late() or next(looks, None) is None:
            break
        _make(walk, moves, cost)
        others = walk.instances[~np.isin(walk.instances, [move.instance for move in moves])]
        for then, instance, kind, target in walk.cheapest(others, walk.evaluator, _WIDTH):
            longer = *moves, make_move(walk.state, instance, kind, target)
            placement = frozenset((move.instance, move.target) for move in longer)
            if placement not in cheapest or then < cheapest[placement][0]:
                cheapest[placement] = then, longer
        walk.back(moves, before, flags)
    return sorted(cheapest.values(), key=lambda chain: chain[0])[:_WIDTH]


def _make(walk: Walk, moves: tuple[Move, ...], cost: float) -> None:
    for move in moves:
        walk.state.place(move.instance, *move.target)
    walk.cost = cost
