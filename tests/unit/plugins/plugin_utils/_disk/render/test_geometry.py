# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How sizes become lengths, where labels come to stand, which colours spaces get."""

from __future__ import annotations

import colorsys
import itertools

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.geometry import (
    COLOURS,
    PATTERNS,
    Label,
    lengths,
    paints,
    rows_of_labels,
)
from hypothesis import given
from hypothesis import strategies as st

SIZES = st.lists(st.integers(0, 20_000_000), min_size=1, max_size=30)


@given(SIZES, st.floats(1, 1000), st.floats(0, 5))
def test_lengths_keep_their_sum_and_their_order(sizes, length, smallest):
    whole = sum(sizes) or 1
    result = lengths(sizes, whole, length, smallest)
    assert sum(result) == pytest.approx(length * sum(sizes) / whole)
    assert all(value == 0 for value, size in zip(result, sizes) if size == 0)
    for (one, first), (other, second) in itertools.combinations(zip(sizes, result), 2):
        assert (one - other) * (first - second) >= -1e-6 * max(one, other, 1)


@given(SIZES)
def test_lengths_are_proportional_where_nothing_is_small(sizes):
    whole = sum(sizes) or 1
    assert lengths(sizes, whole, 900, 0) == pytest.approx([900 * size / whole for size in sizes])


def test_what_is_small_stays_visible():
    esp, rest = lengths([512, 17_000_000], 17_000_512, 912, 3)
    assert esp == 3
    assert rest == pytest.approx(909)


def test_even_too_many_small_ones_fit():
    assert sum(lengths([1] * 100, 100, 100, 3)) == pytest.approx(100)


LABELS = st.lists(st.builds(Label, st.floats(0, 900), st.floats(20, 200), st.booleans()), max_size=12)


@given(LABELS, st.integers(1, 8))
def test_no_label_meets_another_or_its_line(labels, most):
    rows = rows_of_labels(labels, most, gap=8)
    placed = [(label, row) for label, row in zip(labels, rows) if row is not None]
    assert all(row in range(most) for _label, row in placed)
    for (one, row), (other, other_row) in itertools.permutations(placed, 2):
        if row == other_row:
            assert one.end <= other.start or other.end <= one.start
        if other_row > row:
            assert not one.start < other.at < one.end


def test_crowded_labels_make_stairs():
    assert rows_of_labels([Label(at, 80) for at in (10, 14, 18)], 8, gap=8) == [2, 1, 0]


def test_colours_are_steady_and_never_the_same_twice():
    few = paints(["root", "var", "anything"])
    many = paints(["esp", "boot", "anything", "root", "swap", "home", "var", *(f"db{at}" for at in range(20))])
    assert few["root"] == many["root"]
    assert few["var"] == many["var"]
    assert len(set(many.values())) == len(many)


def test_more_spaces_than_paints_still_get_one():
    assert len(paints(map(str, range(3 * len(COLOURS) * len(PATTERNS))))) == 3 * len(COLOURS) * len(PATTERNS)


def luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", COLOURS)
def test_text_on_colours_has_the_contrast_that_wcag_asks(colour):
    assert (luminance(colour) + 0.05) / (luminance("#15181c") + 0.05) >= 4.5
    assert colorsys.rgb_to_hsv(*(int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)))[2] > 0.6
