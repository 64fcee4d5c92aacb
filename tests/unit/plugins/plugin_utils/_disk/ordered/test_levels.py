# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Levels and whole sizes beside slow and simple ways to find them."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.ordered.levels import Grower, common_level, fill, whole_weights
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.place.flow import route
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("weights", "expected"),
    [([1.0, 0.5], [2, 1]), ([0.1, 0.2, 0.3], [1, 2, 3]), ([0.0, 3.0], [0, 3]), ([1e-3, 1.0], [1, 1000]), ([], [])],
)
def test_whole_weights(weights: list[float], expected: list[int]) -> None:
    assert whole_weights(weights) == expected


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(200), deadline=None)
def test_common_level_adds_up(seed: int) -> None:
    source = random.Random(seed)
    growers = []
    for _unused in range(source.randint(1, 8)):
        low = source.choice([0, source.randint(0, 100)])
        growers.append(Grower(0, source.choice([0, 1, 1, 2, 7]), low, low + source.randint(0, 200)))
    lows = sum(grower.low for grower in growers)
    most = sum(grower.high if grower.weight else grower.low for grower in growers)
    total = source.randint(lows, most)
    level = common_level(growers, total)
    assert sum(Fraction(grower.scaled(level), level.denominator) for grower in growers) == total


def one_by_one(growers: list[Grower], fixed: list[int], masks: list[int], capacity: list[int]) -> list[int]:
    """Grow MiB by MiB: always the poorest that still can, which is what max-min fair means for whole numbers."""
    sizes = [grower.low for grower in growers]
    stuck: set[int] = set()
    while True:
        able = [at for at, grower in enumerate(growers) if at not in stuck and grower.weight and sizes[at] < grower.high]
        if not able:
            return sizes
        poorest = min(able, key=lambda at: Fraction(sizes[at] + 1, growers[at].weight))
        demand = list(fixed)
        for at, grower in enumerate(growers):
            demand[grower.row] += sizes[at] - grower.low + (at == poorest)
        if route(demand, masks, capacity)[1]:
            stuck.add(poorest)
        else:
            sizes[poorest] += 1


def made(source: random.Random) -> tuple[list[Grower], list[int], list[int], list[int]]:
    """Return growers, fixed demands, masks and capacities of a problem whose fixed demands fit."""
    while True:
        pools = source.randint(1, 4)
        masks = [source.randint(1, 2**pools - 1) for _unused in range(source.randint(1, 4))]
        capacity = [source.randint(0, 40) for _unused in range(pools)]
        growers = []
        fixed = [0] * len(masks)
        for _unused in range(source.randint(1, 6)):
            row = source.randrange(len(masks))
            low = source.choice([0, 0, 3])
            fixed[row] += low
            growers.append(Grower(row, source.choice([0, 1, 1, 2, 3]), low, low + source.choice([2, 10, 1000])))
        if not route(fixed, masks, capacity)[1]:
            return growers, fixed, masks, capacity


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(150), deadline=None)
def test_fill_is_as_fair_as_growing_one_by_one(seed: int) -> None:
    problem = made(random.Random(seed))
    sizes = fill(*problem)
    slow = one_by_one(*problem)
    assert sum(sizes) == sum(slow)
    for size, other in zip(sizes, slow, strict=True):
        # Both are within one MiB of the same fraction; who gets the last MiB is a matter of ties.
        assert abs(size - other) <= 1
