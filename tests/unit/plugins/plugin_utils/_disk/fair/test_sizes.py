# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The closed form for one area: `clamp(level * weight, low, high)` at one common level."""

from __future__ import annotations

import math

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fair.sizes import fill
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.problem.model import GrowthOrder
from hypothesis import given
from hypothesis import strategies as st

BOUNDS = st.tuples(
    st.integers(0, 20000), st.one_of(st.just(math.inf), st.integers(0, 40000)), st.sampled_from([0.1, 0.5, 1, 2, 3, 7.25, 1 / 3])
)


@given(st.lists(BOUNDS, min_size=1, max_size=8), st.integers(0, 100000))
def test_everybody_stands_at_one_level(bounds: list[tuple[int, float, float]], spare: int) -> None:
    low = [least for least, _more, _weight in bounds]
    high = [least + more for least, more, _weight in bounds]
    weight = [share for _least, _more, share in bounds]
    capacity = sum(low) + spare
    sizes = fill(capacity, low, high, weight, [GrowthOrder.NORMAL] * len(bounds))
    assert sizes is not None
    assert sum(sizes) == pytest.approx(min(capacity, sum(high)))
    inner = [size / share for size, least, most, share in zip(sizes, low, high, weight) if least + 1e-6 < size < most - 1e-6]
    level = max(inner, default=None)
    for size, least, most, share in zip(sizes, low, high, weight):
        assert least <= size <= most
        if level is not None:
            assert size == pytest.approx(min(max(level * share, least), most), rel=1e-9)


def test_a_weight_that_is_no_binary_fraction_of_the_minimum_loses_nobody_its_growth() -> None:
    sizes = fill(9869, [3714, 2775], [math.inf, math.inf], [7.25, 7.25], [GrowthOrder.NORMAL] * 2)
    assert sizes == pytest.approx([4934.5, 4934.5])
