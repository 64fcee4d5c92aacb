# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An order in which disks move with room at any time, in stages whose moves may run side by side. Sizes are MiB.

While a disk is copied it takes room twice; what it leaves is free when it has moved. An instance has one disk under way.

A move waits for those whose room it takes: room that was free from the start is taken first, then what earlier moves have left, the
earliest first, each MiB by one move. So moves and what they wait for are together no more than twice as many as the moves, but on storages
that hold more than they have room for: there each move waits for all that relieve these.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .disks import DiskMove
from .levels import Key, Storage


@dataclass(frozen=True)
class Staged:
    """Moves in their order, the stages as positions, for each the positions of those that it waits for, and moves that never have room."""

    moves: tuple[DiskMove, ...]
    stages: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]
    blocked: tuple[DiskMove, ...]


def staged(wanted: Sequence[DiskMove], storages: Mapping[Key, Storage]) -> Staged:
    """Return the moves in stages, in each the largest first."""
    rooms = _Rooms({key: storage.total - storage.used for key, storage in storages.items()})
    left = sorted(wanted, key=lambda move: -move.size)
    latest: dict[str, int] = {}
    moves: list[DiskMove] = []
    stages, after = [], list[tuple[int, ...]]()
    while left:
        stage, later, busy = [], [], set[str]()
        for move in left:
            name = move.instance.name
            if name in busy or move.size > rooms.free[move.target]:
                later.append(move)
                continue
            busy.add(name)
            earlier = rooms.take(move.target, move.size) | ({latest[name]} if name in latest else set())
            after.append(tuple(sorted(earlier)))
            stage.append(move)
        if not stage:
            break
        for position, move in enumerate(stage, start=len(moves)):
            rooms.leave(move.source, move.size, position)
            latest[move.instance.name] = position
        stages.append(tuple(range(len(moves), len(moves) + len(stage))))
        moves += stage
        left = later
    return Staged(tuple(moves), tuple(stages), tuple(after), tuple(left))


class _Rooms:
    """What is free on each storage, and which move has left it."""

    def __init__(self, free: dict[Key, int]) -> None:
        self.free = free
        self._left: dict[Key, collections.deque[tuple[int, int | None]]] = {
            key: collections.deque([(size, None)] if size > 0 else []) for key, size in free.items()
        }
        self._relief = collections.defaultdict[Key, set[int]](set)

    def leave(self, key: Key, size: int, move: int) -> None:
        """Add what a move leaves. A storage with more on it than it holds has to be relieved of that first."""
        if self.free[key] < 0:
            self._relief[key].add(move)
        new = min(size, max(0, self.free[key] + size))
        self.free[key] += size
        if new:
            self._left[key].append((new, move))

    def take(self, key: Key, size: int) -> set[int]:
        """Take room that is there; return the moves that have left it, and those that had to relieve the storage before there was any."""
        self.free[key] -= size
        found = set(self._relief[key])
        while size:
            there, move = self._left[key].popleft()
            if move is not None:
                found.add(move)
            if there > size:
                self._left[key].appendleft((there - size, move))
            size -= min(there, size)
        return found
