# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A valid sequence of moves with those of a later turn behind those of an earlier one, as far as every step keeps what a guard asks for.

An order follows from room: an instance that had to wait for one other comes after all that could be moved meanwhile. Here
neighbours change places as long as both can still be made.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence

from ..cluster.arrays import Booleans, Integers
from ..cluster.moves import Move
from ..cluster.state import ClusterState
from .order import Guard

MOST_EXCHANGES = 20_000
"""Exchanges that are tried; after these the sequence stays as it is by then."""


def in_turn(state: ClusterState, moves: Sequence[Move], guard: Guard) -> Sequence[Move]:
    """Return a valid sequence from `state` by turns; `state` stays as it is."""
    turns = state.facts.instances.turn
    if not _out_of_turn(turns, moves):
        return moves
    sequence, before = _Sequence(state.copy(), moves, guard), len(moves) ** 2
    while (now := _out_of_turn(turns, sequence.moves)) < before:
        before = now
        for first in reversed(range(len(moves))):
            at = first
            while sequence.has_earlier_turn_behind(at) and sequence.exchange(at):
                at += 1
        for last in range(len(moves)):
            at = last
            while sequence.has_later_turn_before(at) and sequence.exchange(at - 1):
                at -= 1
    return sequence.moves


def _out_of_turn(turns: Integers, moves: Sequence[Move]) -> int:
    """Return how many pairs of moves have the later turn first."""
    before: collections.Counter[int] = collections.Counter()
    found = 0
    for move in moves:
        turn = int(turns[move.instance])
        found += sum(count for other, count in before.items() if other > turn)
        before[turn] += 1
    return found


class _Sequence:
    """Moves of which neighbours change places; the state is the one before some of them."""

    def __init__(self, state: ClusterState, moves: Sequence[Move], guard: Guard) -> None:
        self.moves = list(moves)
        self._state = state
        self._turn = state.facts.instances.turn
        self._flags: list[Booleans] = []
        """Of the nodes before each move that is made."""
        self._tries = MOST_EXCHANGES
        self._guards: dict[Move, Guard] = {}
        for at, move in enumerate(moves):
            self._go_to(at)
            # What keeps soft limits at every step still does.
            self._guards[move] = next((one for one in (guard.strict(), guard) if one.lets(state, move)), guard)

    def has_earlier_turn_behind(self, at: int) -> bool:
        """Return whether a move behind this one has an earlier turn."""
        own = self._turn[self.moves[at].instance]
        return any(self._turn[move.instance] < own for move in self.moves[at + 1 :])

    def has_later_turn_before(self, at: int) -> bool:
        """Return whether a move before this one has a later turn."""
        own = self._turn[self.moves[at].instance]
        return any(self._turn[move.instance] > own for move in self.moves[:at])

    def exchange(self, at: int) -> bool:
        """Have a move and the next one, whose turn is not later, change places; return False where that cannot be."""
        first, second = self.moves[at : at + 2]
        if first.instance == second.instance or self._turn[first.instance] < self._turn[second.instance]:
            return False
        self._tries -= 1
        if self._tries < 0:
            return False
        self._go_to(at)
        if not self._guards[second].lets(self._state, second):
            return False
        self.moves[at : at + 2] = second, first
        self._go_to(at + 1)
        if self._guards[first].lets(self._state, first):
            return True
        self._go_to(at)
        self.moves[at : at + 2] = first, second
        return False

    def _go_to(self, at: int) -> None:
        """Make moves, or take them back, until those before a position are made."""
        while len(self._flags) < at:
            move = self.moves[len(self._flags)]
            self._flags.append(self._state.fails_n1.copy())
            self._state.place(move.instance, *move.target)
        while len(self._flags) > at:
            move = self.moves[len(self._flags) - 1]
            self._state.place(move.instance, *move.source)
            self._state.fails_n1[:] = self._flags.pop()
