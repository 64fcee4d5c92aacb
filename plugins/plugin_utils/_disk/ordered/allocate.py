# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The seed's linear program, made integral.

The program itself is in `seed_program`. Around it:

* Spaces that must lie on one disk get theirs first, by the same program with a yes or no for every disk; after that
  they are like all others with one disk to choose from. So do those in equal parts on several disks, which are whole then first of all.
* Where the equalities of weight alone leave no solution, the groups that cannot keep them share in proportion as far as
  their bounds allow, which is what the seed's text asks for ("a fair allocation between spaces with same requirements").
* The solution is rounded by an exact flow: every minimum, maximum and exact size holds, and as many MiB are placed as the
  program had placed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..._common.libraries import np, npt
from ..place.flow import Transport, route
from .levels import Grower, fill, whole_weights
from .program import (
    NO_MAXIMUM,
    BoolArray,
    Groups,
    IntArray,
    OrderedRequest,
    broken_groups,
    coefficients,
    pin,
    solve_program,
    weight_groups,
)

# What HiGHS leaves of noise on sizes of up to 1e9 MiB, with room to spare; real fractions come from weights.
_NOISE = 1e-4


def whole(values: npt.NDArray[np.float64], request: OrderedRequest) -> IntArray:
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


@dataclass(frozen=True)
class Ordered:
    """Whole sizes (S, D) of every space on every disk; what is not in them is `unallocated`.

    `loosened` are the groups (positions of spaces) whose weights could not be kept exactly. `proven` is False when a limit
    ended the search for the disks of partitions; `gap` is then the relative distance to the best bound.
    """

    sizes: IntArray
    loosened: Groups = ()
    proven: bool = True
    gap: float = 0.0


class Infeasible(Exception):
    """The minimums do not fit, even in pieces."""


class DoesNotPack(Exception):
    """The minimums fit, but not with each of the spaces at these positions on a single disk."""

    def __init__(self, spaces: tuple[int, ...]) -> None:
        super().__init__(f"{len(spaces)} spaces do not fit with each of them on one disk")
        self.spaces = spaces


def allocate(request: OrderedRequest) -> Ordered:
    """Return the seed's allocation.

    Raises Infeasible when the minimums do not fit, DoesNotPack when it is the single disks that do not.
    """
    if route(request.low.tolist(), [_mask(row) for row in request.allowed], request.capacity.tolist())[1]:
        raise Infeasible
    groups, striped = weight_groups(request), request.stripes > 1
    if not request.single.any() and not striped.any():
        return _allocate_divisible(request, groups)
    pinned = pin(request, groups) or pin(request, ())
    if pinned is None:
        raise DoesNotPack(tuple(np.flatnonzero(request.single | striped).tolist()))
    fixed = replace(request, allowed=pinned.allowed)
    allocated = _allocate_striped(fixed, groups) if striped.any() else _allocate_divisible(fixed, groups)
    return replace(allocated, proven=pinned.proven, gap=pinned.gap)


def _allocate_striped(request: OrderedRequest, groups: Groups) -> Ordered:
    """Return the allocation where each striped space has the disks that it lies on: its parts are whole first, then the rest is shared."""
    loosened: Groups = ()
    values = solve_program(request, groups)
    if values is None:
        loosened = broken_groups(request, groups)
        values = solve_program(request, tuple(group for group in groups if group not in loosened))
    if values is None:
        loosened, values = groups, solve_program(request, ())
    if values is None:
        raise ArithmeticError("HiGHS found no solution to a program that has one")
    striped = request.stripes > 1
    parts = np.floor(values + _NOISE).astype(np.int64) * striped[:, None]
    # A solution may be off by so little; equal parts are the smallest of them.
    least = np.where(request.allowed, parts, NO_MAXIMUM).min(axis=1, initial=NO_MAXIMUM)
    parts = np.where(request.allowed & striped[:, None], np.minimum(parts, least[:, None]), 0)
    rest = np.flatnonzero(~striped)
    if not len(rest):
        return Ordered(parts, loosened)
    names = ("low", "high", "weight", "best", "allowed", "none_order", "single", "stripes")
    others = replace(request, capacity=request.capacity - parts.sum(axis=0), **{name: getattr(request, name)[rest] for name in names})
    answer = _allocate_divisible(others, weight_groups(others))
    parts[rest] = answer.sizes
    return replace(
        answer, sizes=parts, loosened=tuple(dict.fromkeys((*loosened, *(tuple(rest[list(group)].tolist()) for group in answer.loosened))))
    )


def _allocate_divisible(request: OrderedRequest, groups: Groups) -> Ordered:
    values = solve_program(request, groups)
    if values is not None:
        return Ordered(whole(values, request))
    broken = broken_groups(request, groups)
    kept = tuple(group for group in groups if group not in broken)
    values = solve_program(request, kept)
    if values is None:
        broken, values = groups, solve_program(request, ())
    if values is None:
        raise ArithmeticError("HiGHS found no solution to a program that has one")
    totals = _share_within(request, broken, whole(values, request).sum(axis=1))
    placed = solve_program(replace(request, low=totals, high=totals), ())
    if placed is None:
        raise ArithmeticError("HiGHS found no solution to a program that has one")
    return Ordered(whole(placed, replace(request, low=totals, high=totals)), loosened=broken)


def _share_within(request: OrderedRequest, groups: Groups, totals: IntArray) -> IntArray:
    """Return totals in which each group shares what the other spaces leave, in proportion as far as bounds allow."""
    masks = [_mask(row) for row in request.allowed]
    growth = [_mask(row) for row in request.allowed & (coefficients(request)[:-1] >= 1)]
    limits = np.minimum(request.high, request.capacity.sum()).tolist()
    low = request.low.tolist()
    weights = whole_weights(request.weight.tolist())
    sizes: list[int] = totals.tolist()
    for group in groups:
        spaces = range(len(sizes))
        fixed = [low[space] if space in group else sizes[space] for space in spaces] + [0] * len(sizes)
        growers = [Grower(len(sizes) + space, weights[space], low[space], limits[space]) for space in group]
        for space, size in zip(group, fill(growers, fixed, masks + growth, request.capacity.tolist()), strict=True):
            sizes[space] = size
    return np.array(sizes, dtype=np.int64)
