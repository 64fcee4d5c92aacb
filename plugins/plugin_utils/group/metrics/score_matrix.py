# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Matrices of scores, a row for each primary and a column for each secondary, made in pieces that fit the processor's cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..cluster.arrays import Floats, Integers

_BLOCK = 2**15
"""Numbers that are computed at a time: 256 KiB."""


def add_spread_after(
    scores: Floats,
    weight: float,
    centred_values: tuple[Floats, float, int],
    primaries: Integers,
    secondaries: Integers,
    add: Floats,
    add_there: Floats,
) -> None:
    """Add to [P, S] or [P, 1] the weighted standard deviation when the values of a primary and a secondary change.

    With values centred on their mean the new variance is (Q + sum d(d + 2x))/n - (sum d / n)^2, which is exact and
    has no cancellation trouble; it is an outer sum, so that only nodes, not pairs, are computed one by one.
    """
    centred, squares, count = centred_values
    if not count:
        return
    left = (add * (add + 2 * centred[primaries]) + squares) / count
    if not add_there.any():
        scores += weighted_root(left - (add / count) ** 2, weight)[:, None]
        return
    right = add_there * (add_there + 2 * centred[secondaries]) / count
    for rows in blocks(scores):
        variance = left[rows, None] + right
        shift = add[rows, None] + add_there
        shift /= count
        variance -= np.square(shift, out=shift)
        scores[rows] += weighted_root(variance, weight)


def blocks(matrix: Floats) -> Iterator[slice]:
    """Yield slices of rows that are small enough for what is computed of them to stay in the processor's cache."""
    rows = max(1, _BLOCK // max(1, matrix.shape[1]))
    for start in range(0, len(matrix), rows):
        yield slice(start, start + rows)


def weighted_root(variance: Floats, weight: float) -> Floats:
    """Return weight times the standard deviation, in place of the variance."""
    np.maximum(variance, 0.0, out=variance)
    np.sqrt(variance, out=variance)
    variance *= weight
    return variance
