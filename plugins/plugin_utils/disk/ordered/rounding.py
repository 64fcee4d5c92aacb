# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make a solution of the seed's program whole without breaking a bound or losing a MiB.

Rounding every cell down (what the seed did) can miss a minimum by one MiB for each disk a space lies on. Here the cells are
rounded down too, but then what is missing is routed back as a flow: first what each space needs to reach its total
rounded down, then one more MiB for the totals with the largest fractions. The fractional solution is itself such a
flow, so a whole one of at least its size exists (total unimodularity).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..flat.flow import Transport
from ..flat.share import BoolArray, IntArray
from .program import OrderedRequest

# What HiGHS leaves of noise on sizes of up to 1e9 MiB, with room to spare; real fractions come from weights.
_NOISE = 1e-4


def whole(values: NDArray[np.float64], request: OrderedRequest) -> IntArray:
    """Return (S, D) whole sizes near `values` (S, D): totals are rounded down or up and stay within the bounds."""
    sizes = np.floor(values + _NOISE).astype(np.int64)
    total = values.sum(axis=1)
    least = np.clip(np.floor(total + _NOISE).astype(np.int64), request.low, request.high)
    most = np.clip(np.ceil(total - _NOISE).astype(np.int64), request.low, request.high)
    if (sizes.sum(axis=1) >= most).all():
        return sizes
    fraction = values - sizes > _NOISE
    room = (request.capacity - sizes.sum(axis=0)).tolist()
    transport = Transport([_mask(row) for row in fraction], room)
    missing = least - sizes.sum(axis=1)
    for space in np.flatnonzero(missing > 0).tolist():
        transport.push(space, int(missing[space]))
    # Equal fractions differ by noise; rounded, they are served in the order of the schema.
    urgency = np.round(least - total, 3)
    for space in sorted(np.flatnonzero(most > least).tolist(), key=lambda space: urgency[space]):
        transport.push(space, 1)
    return sizes + np.array(transport.flow, dtype=np.int64)


def _mask(row: BoolArray) -> int:
    return sum(1 << disk for disk in np.flatnonzero(row).tolist())
