# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a state becomes by moves, or with instances at other places; nobody else loops over moves to apply them.

state = after_moves(state, moves)              # a new state
state = with_places(state, {instance: place, ...})
carry_out(state, moves)                  # changes the state
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .moves import Move, Place
from .state import ClusterState


def after_moves(state: ClusterState, moves: Iterable[Move]) -> ClusterState:
    """Return the state after moves."""
    later = state.copy()
    carry_out(later, moves)
    return later


def with_places(state: ClusterState, places: Mapping[int, Place]) -> ClusterState:
    """Return the state with instances at places."""
    later = state.copy()
    for instance, place in places.items():
        later.place(instance, *place)
    return later


def carry_out(state: ClusterState, moves: Iterable[Move]) -> None:
    """Bring instances to the targets of moves."""
    for move in moves:
        state.place(move.instance, *move.target)
