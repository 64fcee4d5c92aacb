# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Split amounts over tiers of preferred pools so that as little as possible lies in the worst tiers.

A minimum-cost flow by successive shortest paths (Ahuja, Magnanti, Orlin 1993, 9.7) whose costs are whole numbers so far
apart that one MiB in a worse tier outweighs everything in the better ones. Ties go to earlier rows, and are never left open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from .flow import Transport, bits, route

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
