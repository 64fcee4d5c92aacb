# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Maximum flow from rows of demand to pools of room, in whole numbers of any size.

The network is the bipartite one of a transportation problem: a row may send any amount to each pool of its mask. Pools
are bits of an int, so a breadth-first search looks at whole sets at once; with the handful of pools that real machines
have this is faster than a call into a library, and it is not bound to 32 bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence


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
        self._give_back(pool, amount)

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

    def _give_back(self, pool: int, amount: int) -> None:
        self.free[pool] += amount
        if self.free[pool]:
            self._open |= 1 << pool


def route(demand: Sequence[int], masks: Sequence[int], capacity: Sequence[int]) -> tuple[Transport, list[int]]:
    """Return a maximum flow of the demands (R,) and the rows that fell short (empty: all of it fits)."""
    transport = Transport(masks, capacity)
    # Rows with few pools first: they leave fewer rows to move aside later.
    order = sorted(range(len(masks)), key=lambda row: masks[row].bit_count())
    short = [row for row in order if transport.push(row, demand[row]) < demand[row]]
    return transport, short


Tiers = Mapping[int, int]
"""Tier -> pools as bits; lower tiers are better, a tier holds no pool of another."""


def split(amounts: Sequence[int], tiers: Sequence[Tiers], capacity: Sequence[int]) -> list[dict[int, int]]:
    """Return for each row how much of its amount lies in each of its tiers (zeros left out).

    The amounts must fit on the union of the tiers' pools.
    """
    ideal = [{min(row): amount} if amount else {} for row, amount in zip(tiers, amounts, strict=True)]
    if all(len(row) <= 1 for row in tiers):
        return ideal
    transport, short = route(amounts, [row[min(row)] if row else 0 for row in tiers], capacity)
    if not short:
        return ideal
    costs = _costs(tiers, sum(amounts) + 1)
    missing = {row: amounts[row] - sum(transport.flow[row]) for row in short}
    while missing:
        row, path = _cheapest_path(sorted(missing), costs, transport)
        missing[row] -= _apply(transport, path, missing[row])
        if not missing[row]:
            del missing[row]
    return [_by_tier(row, flow) for row, flow in zip(tiers, transport.flow, strict=True)]


def _by_tier(tiers: Tiers, flow: Sequence[int]) -> dict[int, int]:
    amounts = {tier: sum(flow[pool] for pool in bits(pools)) for tier, pools in tiers.items()}
    return {tier: amount for tier, amount in amounts.items() if amount}


def _costs(tiers: Sequence[Tiers], more_than_all: int) -> list[dict[int, int]]:
    """Return the cost of one unit by row and pool; the best tier of a row is free.

    As digits of a number to the base `more_than_all`: first the MiB in the worst tier, in the next one and so on; then the
    same tier by tier and row by row, so that no two ways to divide them cost the same and the answer is unique.
    """
    ranks = {tier: position for position, tier in enumerate(sorted({tier for row in tiers for tier in row}))}
    ties = len(ranks) * len(tiers)
    costs: list[dict[int, int]] = []
    for position, row in enumerate(tiers):
        by_pool: dict[int, int] = {}
        for tier, mask in row.items():
            rank = ranks[tier]
            price = more_than_all ** (ties + rank) + more_than_all ** ((rank + 1) * len(tiers) - 1 - position)
            by_pool.update(dict.fromkeys(bits(mask), 0 if tier == min(row) else price))
        costs.append(by_pool)
    return costs


def _cheapest_path(sources: Sequence[int], costs: Sequence[Mapping[int, int]], transport: Transport) -> tuple[int, list[tuple[int, int]]]:
    """Return the row a cheapest augmenting path starts at, and its (row, pool) arcs in order.

    Arcs at odd positions are given back. Costs of what is given back are negative, hence label correcting (Bellman and
    Ford) instead of Dijkstra; successive shortest paths leave no negative cycle.
    """
    row_cost: dict[int, int] = dict.fromkeys(sources, 0)
    pool_cost: dict[int, int] = {}
    row_from: dict[int, int] = {}
    pool_from: dict[int, int] = {}
    waiting = deque(sources)
    queued = set(sources)
    while waiting:
        row = waiting.popleft()
        queued.discard(row)
        for pool, price in costs[row].items():
            cost = row_cost[row] + price
            if pool in pool_cost and pool_cost[pool] <= cost:
                continue
            pool_cost[pool], pool_from[pool] = cost, row
            for other, taken in enumerate(transport.flow):
                if not taken[pool] or other == row:
                    continue
                back = cost - costs[other][pool]
                if other in row_cost and row_cost[other] <= back:
                    continue
                row_cost[other], row_from[other] = back, pool
                if other not in queued:
                    queued.add(other)
                    waiting.append(other)
    target = min((pool for pool in pool_cost if transport.free[pool]), key=lambda pool: (pool_cost[pool], pool))
    return _arcs_to(target, row_from, pool_from)


def _arcs_to(target: int, row_from: Mapping[int, int], pool_from: Mapping[int, int]) -> tuple[int, list[tuple[int, int]]]:
    arcs: list[tuple[int, int]] = []
    pool = target
    while True:
        row = pool_from[pool]
        arcs.append((row, pool))
        if row not in row_from:
            return row, arcs[::-1]
        pool = row_from[row]
        arcs.append((row, pool))


def _apply(transport: Transport, arcs: Sequence[tuple[int, int]], wanted: int) -> int:
    given_back = arcs[1::2]
    amount = min(wanted, transport.free[arcs[-1][1]], *(transport.flow[row][pool] for row, pool in given_back))
    for row, pool in given_back:
        transport.withdraw(row, pool, amount)
    for row, pool in arcs[::2]:
        transport.push_into(row, pool, amount)
    return amount
