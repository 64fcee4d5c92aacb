# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Problems in which everything may be cut: no placement to search, the divisible solver says all at once."""

from __future__ import annotations

import numpy as np

from ..fair.rounding import Sizes
from ..problem.model import Choice, Problem
from .share import NO_MAXIMUM, UNPREFERRED, BoolArray, Infeasible, IntArray, Request, share


def only_divisible(problem: Problem) -> bool:
    """Tell whether nothing but pools without heads, one volume each, is to be laid on disks of one area each."""
    one_each = len({area.disk for area in problem.areas}) == len(problem.areas)
    loose = all(pool.head == 0 and pool.grain == 1 and len(pool.volumes) == 1 for pool in problem.pools)
    return one_each and loose and len(problem.demands) == len(problem.pools) and not problem.companions


def share_out(problem: Problem) -> tuple[Choice, Sizes] | None:
    """Return placement and sizes of a divisible problem, or None when its minimums do not fit."""
    volumes = [problem.demands[pool.volumes[0]] for pool in problem.pools]
    if any(volume.hi is not None and volume.hi < volume.lo for volume in volumes):
        return None
    allowed, tier = _cells(problem)
    request = Request(
        low=np.array([volume.lo for volume in volumes], dtype=np.int64),
        high=np.array([NO_MAXIMUM if volume.hi is None else volume.hi for volume in volumes], dtype=np.int64),
        weight=np.array([volume.weight for volume in volumes], dtype=np.float64),
        allowed=allowed,
        tier=tier,
        capacity=np.array([area.size for area in problem.areas], dtype=np.int64),
    )
    try:
        shared = share(request)
    except Infeasible:
        return None
    parts = {(pool, area): int(shared[pool, area]) for pool, area in zip(*(positions.tolist() for positions in np.nonzero(shared)))}
    steps = [0] * len(problem.demands)
    for position, pool in enumerate(problem.pools):
        steps[pool.volumes[0]] = int(shared[position].sum())
    left = tuple(int(size) for size in request.capacity - shared.sum(axis=0))
    choice = Choice(
        sites=((),) * len(problem.demands),
        parts=tuple(tuple(area for area in pool.areas if (at, area) in parts) for at, pool in enumerate(problem.pools)),
        companions=(),
    )
    return choice, Sizes(tuple(steps), parts, left)


def _cells(problem: Problem) -> tuple[BoolArray, IntArray]:
    """Return where each pool may lie and how much it likes each area, both (pools, areas)."""
    shape = len(problem.pools), len(problem.areas)
    allowed = np.zeros(shape, dtype=np.bool_)
    tier = np.zeros(shape, dtype=np.int64)
    for position, pool in enumerate(problem.pools):
        allowed[position, list(pool.areas)] = True
        if pool.tiers:
            tier[position] = UNPREFERRED
        for rank in reversed(range(len(pool.tiers))):
            tier[position, sorted(pool.tiers[rank])] = rank
    return allowed, tier
