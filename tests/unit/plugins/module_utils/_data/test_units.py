# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes from text and to text."""

from __future__ import annotations

from fractions import Fraction

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.units import format_mib, parse_bytes, parse_mib
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("512", 512),
        ("50 GiB", 51200),
        ("50gib", 51200),
        (" 1.5 GiB ", 1536),
        ("1 TiB", 1024**2),
        ("2 TB", Fraction(2 * 1000**4, 1024**2)),
        ("1048576 B", 1),
        ("10G", 10240),
        ("10g", 10240),
        ("500M", 500),
        ("1T", 1024**2),
        ("1.5 k", Fraction(1536, 1024**2)),
        ("10 GB", Fraction(10 * 1000**3, 1024**2)),
    ],
)
def test_parse_mib_is_exact(text: str, mib: Fraction) -> None:
    assert parse_mib(text) == mib


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "is not a size"), ("-5 GiB", "is not a size"), ("5 parsec", "unknown unit parsec"), ("1e3", "unknown unit|not a size")],
)
def test_what_is_no_size_says_so(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("mib", "text"),
    [
        (0, "0 MiB"),
        (512, "512 MiB"),
        (1024, "1 GiB"),
        (1536, "1.5 GiB"),
        (51200, "50 GiB"),
        (1907729, "1.82 TiB"),
        (5 * 1024**3, "5120 TiB"),
    ],
)
def test_format_mib(mib: int, text: str) -> None:
    assert format_mib(mib) == text


@given(st.integers(min_value=0, max_value=10**9))
def test_what_is_formatted_can_be_read_back_within_half_a_percent(mib: int) -> None:
    assert abs(parse_mib(format_mib(mib)) - mib) <= Fraction(mib, 200) + Fraction(1, 2)
