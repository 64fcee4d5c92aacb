# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rounding: bounds hold, nothing is lost, nothing moves far."""

from __future__ import annotations

import numpy as np
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.ordered.allocate import whole
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.ordered.program import NO_MAXIMUM, OrderedRequest
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st


def request(low: list[int], high: list[int], capacity: list[int]) -> OrderedRequest:
    shape = (len(low), len(capacity))
    return OrderedRequest(
        low=np.array(low, dtype=np.int64),
        high=np.array(high, dtype=np.int64),
        weight=np.ones(len(low)),
        best=np.zeros(shape, dtype=bool),
        allowed=np.ones(shape, dtype=bool),
        none_order=np.zeros(len(low), dtype=bool),
        single=np.zeros(len(low), dtype=bool),
        capacity=np.array(capacity, dtype=np.int64),
        stripes=np.ones(len(low), dtype=np.int64),
    )


def test_whole_values_stay_as_they_are() -> None:
    values = np.array([[3.0, 0.0], [6.99999999, 5.00000001]])
    assert whole(values, request([0, 0], [NO_MAXIMUM] * 2, [10, 5])).tolist() == [[3, 0], [7, 5]]


def test_the_largest_fraction_gets_what_is_over() -> None:
    values = np.array([[100 / 3], [200 / 3]])
    assert whole(values, request([0, 0], [NO_MAXIMUM] * 2, [100])).tolist() == [[33], [67]]


def test_equal_fractions_are_served_in_order() -> None:
    values = np.full((3, 1), 100 / 3)
    assert whole(values, request([0] * 3, [NO_MAXIMUM] * 3, [100])).tolist() == [[34], [33], [33]]


def test_an_exact_size_that_is_split_in_halves() -> None:
    values = np.array([[125.5, 125.5], [54.5, 44.5]])
    sizes = whole(values, request([0, 99], [NO_MAXIMUM, 99], [180, 170]))
    assert sizes.sum(axis=1).tolist() == [251, 99]
    assert sizes.sum(axis=0).tolist() == [180, 170]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(100), deadline=None)
def test_bounds_hold_and_nothing_is_lost(seed: int) -> None:
    """Split whole totals over disks at random: every mixture of whole layouts is a fractional one."""
    random = np.random.default_rng(seed)
    spaces, disks = random.integers(1, 7, 2)
    layouts = [random.integers(0, 50, (spaces, disks)) for _unused in range(2)]
    values = layouts[0] / 3 + layouts[1] * (2 / 3)
    total = values.sum(axis=1)
    low = np.floor(total + 1e-9).astype(int)
    high = np.ceil(total - 1e-9).astype(int)
    capacity = np.ceil(values.sum(axis=0) - 1e-9).astype(int)
    sizes = whole(values, request(low.tolist(), high.tolist(), capacity.tolist()))
    assert (sizes.sum(axis=0) <= capacity).all()
    assert (sizes.sum(axis=1) >= low).all()
    assert (sizes.sum(axis=1) <= high).all()
    assert sizes.sum() >= values.sum() - 1e-6
