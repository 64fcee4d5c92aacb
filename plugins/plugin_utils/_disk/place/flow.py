# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Maximum flow from rows of demand to pools of room, in whole numbers of any size.

The network is the bipartite one of a transportation problem: a row may send any amount to each pool of its mask. Pools
are bits of an int, so a breadth-first search looks at whole sets at once; with the handful of pools that real machines
have this is faster than a call into a library, and it is not bound to 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


class Transport:
    """A flow under construction: `masks` (R,) pools open to each row, `free` (P,) room left, `flow` (R, P).

    Amounts are only ever added along augmenting paths (Ford and Fulkerson 1956, shortest first), so a push that falls
    short proves that no routing of what was pushed so far has room for the rest.
    """

    def __init__(self, masks: Sequence[int], capacity: Sequence[int]) -> None:
        self.masks = list(masks)
        self.free = list(capacity)
        self.flow = [[0] * len(self.free) for _unused in self.masks]
        self._open = sum(1 << pool for pool, room in enumerate(self.free) if room > 0)
        self._carried = [0] * len(self.free)

    def push(self, row: int, amount: int) -> int:
        """Route up to `amount` more of the row, moving other rows aside where needed; return what was placed."""
        return self._augment(row, self.masks[row], amount)

    def push_into(self, row: int, pool: int, amount: int) -> int:
        """Like `push`, but what is added to the row goes to that one pool."""
        return self._augment(row, 1 << pool, amount)

    def withdraw(self, row: int, pool: int, amount: int) -> None:
        """Take back an amount the row has on the pool; the room becomes free."""
        self._add(row, pool, -amount)
        self.free[pool] += amount
        if self.free[pool]:
            self._open |= 1 << pool

    def reserve(self, row: int, pool: int, amount: int) -> None:
        """Take an amount the row has on the pool out of the problem, together with the room it uses."""
        self._add(row, pool, -amount)

    def restore(self, row: int, pool: int, amount: int) -> None:
        """Undo `reserve`."""
        self._add(row, pool, amount)

    def reach(self, rows: Iterable[int]) -> tuple[int, int]:
        """Return what an augmenting path from these rows can reach: bits of rows, bits of pools."""
        seen_rows = 0
        seen_pools = 0
        waiting = list(rows)
        for row in waiting:
            seen_rows |= 1 << row
        while waiting:
            fresh = self.masks[waiting.pop()] & ~seen_pools
            seen_pools |= fresh
            for pool in bits(fresh):
                others = self._carried[pool] & ~seen_rows
                seen_rows |= others
                waiting.extend(bits(others))
        return seen_rows, seen_pools

    def _augment(self, row: int, mask: int, amount: int) -> int:
        placed = 0
        while placed < amount:
            direct = mask & self._open
            if direct:
                placed += self._place(row, (direct & -direct).bit_length() - 1, amount - placed)
                continue
            path = self._path(row, mask)
            if not path:
                break
            placed += self._shift(row, path, amount - placed)
        return placed

    def _path(self, pushed: int, mask: int) -> list[tuple[int, int, int]]:
        """Return moves (row, from pool, to pool), last first, that end in a pool with room; empty without one.

        The row that is pushed does not make way for itself on the pools it is pushed to.
        """
        seen_rows = 0
        seen_pools = mask
        came: dict[int, tuple[int, int]] = {}
        waiting = list(bits(mask))
        for pool in waiting:
            others = self._carried[pool] & ~seen_rows
            if mask >> pool & 1:
                others &= ~(1 << pushed)
            seen_rows |= others
            for row in bits(others):
                fresh = self.masks[row] & ~seen_pools
                seen_pools |= fresh
                for target in bits(fresh):
                    came[target] = (row, pool)
                    waiting.append(target)
                if fresh & self._open:
                    return self._trace(came, next(bits(fresh & self._open)))
        return []

    @staticmethod
    def _trace(came: dict[int, tuple[int, int]], target: int) -> list[tuple[int, int, int]]:
        moves = []
        while target in came:
            row, pool = came[target]
            moves.append((row, pool, target))
            target = pool
        return moves

    def _shift(self, row: int, path: list[tuple[int, int, int]], wanted: int) -> int:
        amount = min(wanted, self.free[path[0][2]], *(self.flow[mover][source] for mover, source, _target in path))
        for mover, source, target in path:
            self.withdraw(mover, source, amount)
            self._place(mover, target, amount)
        return self._place(row, path[-1][1], amount)

    def _place(self, row: int, pool: int, wanted: int) -> int:
        amount = min(wanted, self.free[pool])
        self.free[pool] -= amount
        if self.free[pool] == 0:
            self._open &= ~(1 << pool)
        self._add(row, pool, amount)
        return amount

    def _add(self, row: int, pool: int, amount: int) -> None:
        self.flow[row][pool] += amount
        if self.flow[row][pool]:
            self._carried[pool] |= 1 << row
        else:
            self._carried[pool] &= ~(1 << row)


def route(demand: Sequence[int], masks: Sequence[int], capacity: Sequence[int]) -> tuple[Transport, list[int]]:
    """Return a maximum flow of the demands (R,) and the rows that fell short (empty: everything fits)."""
    transport = Transport(masks, capacity)
    # Rows with few pools first: they leave fewer rows to move aside later.
    order = sorted(range(len(masks)), key=lambda row: masks[row].bit_count())
    short = [row for row in order if transport.push(row, demand[row]) < demand[row]]
    return transport, short
