# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""As few of the moves of a plan as do.

    moves = least(state, plan.moves, guard, enough)

First the plan is cut off where it is good enough, then instances that need not have moved are left where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..cluster.changes import after_moves
from ..cluster.moves import Move
from ..cluster.state import ClusterState
from ..plan.order import Budget, Guard, follow, reserves_left

_MOST_TRIED = 60
"""Of how many moves it is tried to leave each out."""

Enough = Callable[[ClusterState], bool]


def guard_of(state: ClusterState, moves: Sequence[Move]) -> Guard:
    """Return the guard that lets moves pass which are known to be valid, and as few others as possible."""
    after = after_moves(state, moves)
    strict = Guard.at_every_step(state, reserves_left(state, (move.instance for move in moves))).or_as_in(after)
    return strict if passes(state, moves, strict) else Guard.at_every_step(state).or_as_in(after)


def passes(state: ClusterState, moves: Sequence[Move], guard: Guard) -> bool:
    """Return whether all moves can be made one after the other."""
    return len(follow(state, moves, guard, Budget())) == len(moves)


def prefixes(state: ClusterState, moves: Sequence[Move]) -> list[ClusterState]:
    """Return the states after none of the moves, after one, and so on."""
    found = [state]
    for move in moves:
        later = found[-1].copy()
        later.place(move.instance, *move.target)
        found.append(later)
    return found


def least(state: ClusterState, moves: Sequence[Move], guard: Guard, enough: Enough) -> tuple[Move, ...]:
    """Return a part of moves after which it is enough, in their order; after all of them it must be."""
    kept = tuple(moves[: _shortest(state, moves, enough)])
    if len(kept) > _MOST_TRIED:
        return kept
    for instance in dict.fromkeys(move.instance for move in reversed(kept)):
        others = tuple(move for move in kept if move.instance != instance)
        if enough(after_moves(state, others)) and passes(state, others, guard):
            kept = others
    return kept


def _shortest(state: ClusterState, moves: Sequence[Move], enough: Enough) -> int:
    """Return after how many moves it is enough: as few as there are where more moves are never worse, else some number."""
    few, many = 0, len(moves)
    while few < many:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(after_moves(state, moves[:middle])) else (middle + 1, many)
    return many
