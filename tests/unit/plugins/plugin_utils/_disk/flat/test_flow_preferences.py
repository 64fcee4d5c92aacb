# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Amounts divided over tiers, beside all other ways to divide them."""

from __future__ import annotations

import itertools
import random

from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.flat.flow import route, split
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st


def test_without_contention_all_lies_in_the_best_tier() -> None:
    assert split([5, 0, 7], [{0: 0b01, 1: 0b10}, {0: 0b01}, {3: 0b10}], [10, 10]) == [{0: 5}, {}, {3: 7}]


def test_the_worst_tier_is_spared_before_the_next() -> None:
    # To keep both of the first row's units out of tier 2, the second row leaves its best pool for tier 1.
    assert split([2, 2], [{0: 0b001, 2: 0b100}, {0: 0b001, 1: 0b010}], [2, 2, 2]) == [{0: 2}, {1: 2}]


def test_ties_go_to_the_earlier_row() -> None:
    assert split([2, 2], [{0: 0b01, 1: 0b10}, {0: 0b01, 1: 0b10}], [3, 9]) == [{0: 2}, {0: 1, 1: 1}]


def made(source: random.Random) -> tuple[list[int], list[dict[int, int]], list[int]]:
    """Return amounts, tiers and capacities of a problem that has a solution."""
    while True:
        pools = source.randint(1, 4)
        tiers = []
        for _unused in range(source.randint(1, 3)):
            rank = [source.choice([0, 1, 2, None]) for _unused in range(pools)]
            tiers.append({tier: sum(1 << pool for pool in range(pools) if rank[pool] == tier) for tier in (0, 1, 2) if tier in rank})
        amounts = [source.randint(0, 4) if row else 0 for row in tiers]
        capacity = [source.randint(0, 5) for _unused in range(pools)]
        if not route(amounts, [sum(row.values()) for row in tiers], capacity)[1]:
            return amounts, tiers, capacity


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(120), deadline=None)
def test_no_way_to_divide_is_better(seed: int) -> None:
    amounts, tiers, capacity = made(random.Random(seed))
    parts = split(amounts, tiers, capacity)
    assert [sum(part.values()) for part in parts] == amounts
    assert fits(parts, tiers, capacity)
    ways = [list(divisions(amount, row)) for amount, row in zip(amounts, tiers, strict=True)]
    best = min(worth(way, tiers) for way in itertools.product(*ways) if fits(way, tiers, capacity))
    assert worth(parts, tiers) == best


def divisions(amount: int, tiers: dict[int, int]) -> list[dict[int, int]]:
    names = sorted(tiers)
    counts = itertools.product(range(amount + 1), repeat=len(names))
    return [dict(zip(names, count, strict=True)) for count in counts if sum(count) == amount]


def fits(parts: list[dict[int, int]], tiers: list[dict[int, int]], capacity: list[int]) -> bool:
    cells = [(amount, tiers[row][tier]) for row, part in enumerate(parts) for tier, amount in part.items()]
    return not route([amount for amount, _mask in cells], [mask for _amount, mask in cells], capacity)[1]


def worth(parts: list[dict[int, int]], tiers: list[dict[int, int]]) -> tuple[list[int], list[int]]:
    """Return what is to be as small as possible: amounts by tier, worst first; then the same row by row.

    The best tier of a row costs nothing, whichever it is.
    """
    ranks = sorted({tier for row in tiers for tier in row}, reverse=True)
    costly = [
        [part.get(tier, 0) if tier != min(row, default=tier) else 0 for part, row in zip(parts, tiers, strict=True)] for tier in ranks
    ]
    return [sum(row) for row in costly], [amount for row in costly for amount in row]
