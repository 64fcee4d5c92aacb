# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The linear program of the seed, to the letter: its variables, rows and coefficients.

Columns: MiB of each space on each disk, an artificial space `unallocated` last. Rows: the minimum and the maximum of each
space over all disks, the size of each disk, and for spaces with the same minimum, maximum and preferred disks the
equality of size / weight. The objective is to be maximised: 1/a of a slowly growing sequence a, disk by disk and within
a disk space by space, so that order decides between equals; 2 more on the disks a space is best with; 1 for `unallocated`. SciPy solves it
on a sparse matrix; it is loaded here only, as that takes longer than most plans.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..._common import libraries
from ..._common.highs import Program
from ..._common.libraries import np, npt

if t.TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

libraries.expect("scipy")

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Groups = tuple[tuple[int, ...], ...]
"""Positions of the spaces whose sizes are tied by their weights."""

NO_MAXIMUM = 2**63 - 1

_BEST = 2.0
_UNALLOCATED = 1.0
# The coefficients of neighbours differ by some 1e-11 with 60 disks and 40 spaces, far below the 1e-7 at which HiGHS takes
# reduced costs for zero: unscaled it returns hundreds of inversions of the order. A power of two keeps them exact.
_SCALE = 2.0**23
_NOISE = 1e-4
_GAP = 1e-6
_MOST_NODES = 500


@dataclass(frozen=True)
class OrderedRequest:
    """S spaces in schema order and D disks in order; sizes in MiB."""

    low: IntArray
    """(S,) minimums."""
    high: IntArray
    """(S,) maximums, NO_MAXIMUM for none."""
    weight: FloatArray
    """(S,) for the equalities; 0 takes no part in them."""
    best: BoolArray
    """(S, D) disks a space is best with; all False for a space without a preference."""
    allowed: BoolArray
    """(S, D) where a space may lie."""
    none_order: BoolArray
    """(S,) whether a space takes no part in ordering."""
    single: BoolArray
    """(S,) whether a space must lie on one disk."""
    capacity: IntArray
    """(D,)"""
    stripes: IntArray
    """(S,) on how many disks a space lies in equal parts; 1 for one that may lie anywhere."""


@dataclass(frozen=True)
class Pinned:
    """Where spaces may lie (S, D) once every single one has its disk; `proven` and `gap` as in Ordered."""

    allowed: BoolArray
    proven: bool
    gap: float


def coefficients(request: OrderedRequest) -> FloatArray:
    """Return (S + 1, D) what a MiB is worth; the last row is `unallocated`."""
    spaces, disks = request.best.shape
    term = np.arange(2, disks * (spaces + 1) + 2)
    order = (1.0 / ((term + 1) // 2 * ((term + 2) // 2))).reshape(disks, spaces + 1).T
    preferring = np.asarray(request.best.any(axis=1))
    nobodys_best = ~np.asarray(request.best.any(axis=0))
    liked = np.where(preferring[:, None], request.best, nobodys_best[None, :])
    worth = order.copy()
    worth[:-1] += _BEST * liked
    worth[:-1][request.none_order] = _UNALLOCATED
    worth[-1] = _UNALLOCATED
    return worth


def weight_groups(request: OrderedRequest) -> Groups:
    """Return the groups of two and more spaces with a weight and equal minimum, maximum and preferred disks."""
    found: dict[tuple[int, int, bytes], list[int]] = {}
    for space, weight in enumerate(request.weight.tolist()):
        if weight:
            key = int(request.low[space]), int(request.high[space]), request.best[space].tobytes()
            found.setdefault(key, []).append(space)
    return tuple(tuple(group) for group in found.values() if len(group) > 1)


def solve_program(request: OrderedRequest, groups: Groups) -> FloatArray | None:
    """Return (S, D) sizes that are optimal, whole or not; None when no sizes satisfy the rows."""
    program = _bounded(request)
    _tie(program, request, groups)
    solved = _maximise(program, _worth(request, _SCALE))
    return None if solved is None else _grid(request, solved.x)


def broken_groups(request: OrderedRequest, groups: Groups) -> Groups:
    """Return the groups that deviate when the sum of all deviations from the weights is as small as can be."""
    program = _bounded(request)
    slack = [_tie_loosely(program, request, group) for group in groups]
    cost = np.zeros(len(program.lower))
    cost[[column for columns in slack for column in columns]] = -1.0
    solved = _maximise(program, cost)
    if solved is None:
        return groups
    return tuple(group for group, columns in zip(groups, slack, strict=True) if sum(solved.x[column] for column in columns) > _NOISE)


def pin(request: OrderedRequest, groups: Groups) -> Pinned | None:
    """Choose the disk of every single space, and those of every striped one; None when no choice satisfies the rows, or none was found."""
    program = _bounded(request)
    _tie(program, request, groups)
    disks = len(request.capacity)
    chosen: dict[tuple[int, int], int] = {}
    for space in np.flatnonzero(request.single | (request.stripes > 1)).tolist():
        for disk in np.flatnonzero(request.allowed[space]).tolist():
            choice = program.column(0, 1, integral=True)
            most = float(min(request.capacity[disk], request.high[space]))
            program.row([(space * disks + disk, 1.0), (choice, -most)], high=0.0)
            chosen[space, disk] = choice
        program.row([(column, 1.0) for (owner, _disk), column in chosen.items() if owner == space], high=float(request.stripes[space]))
        if request.stripes[space] > 1:
            # Nothing is more than a part, and all together are that many.
            part = program.column()
            cells = [space * disks + disk for disk in np.flatnonzero(request.allowed[space]).tolist()]
            for cell in cells:
                program.row([(cell, 1.0), (part, -1.0)], high=0.0)
            program.row([*((cell, 1.0) for cell in cells), (part, -float(request.stripes[space]))], 0.0, 0.0)
    solved = _maximise(program, _worth(request, 1.0))
    if solved is None:
        return None
    allowed = request.allowed.copy()
    for (space, disk), column in chosen.items():
        allowed[space, disk] = solved.x[column] > 0.5
    return Pinned(allowed, solved.status == 0, solved.mip_gap or 0.0)


def _bounded(request: OrderedRequest) -> Program:
    """Return the program without weights; column space * D + disk, `unallocated` is the last space."""
    spaces, disks = request.allowed.shape
    program = Program()
    for cell in np.append(request.allowed, np.ones((1, disks), dtype=bool), axis=0).ravel().tolist():
        program.column(0.0, float("inf") if cell else 0.0)
    for space in range(spaces):
        most = float("inf") if request.high[space] == NO_MAXIMUM else float(request.high[space])
        program.row([(space * disks + disk, 1.0) for disk in range(disks)], float(request.low[space]), most)
    for disk in range(disks):
        program.row([(space * disks + disk, 1.0) for space in range(spaces + 1)], high=float(request.capacity[disk]))
    for space in np.flatnonzero(request.stripes > 1).tolist():
        cells = [space * disks + disk for disk in np.flatnonzero(request.allowed[space]).tolist()]
        # With more disks than stripes the parts are equal once `pin` has chosen among them.
        for cell in cells[1:] if len(cells) == request.stripes[space] else ():
            program.row([(cells[0], 1.0), (cell, -1.0)], 0.0, 0.0)
    return program


def _tie(program: Program, request: OrderedRequest, groups: Groups) -> None:
    """Add the equalities of the groups."""
    for group in groups:
        for terms in _differences(request, group):
            program.row(terms, 0.0, 0.0)


def _tie_loosely(program: Program, request: OrderedRequest, group: Sequence[int]) -> list[int]:
    """Add the equalities of a group with columns for what each is off by, and return these columns."""
    slack: list[int] = []
    for terms in _differences(request, group):
        over, under = program.column(), program.column()
        program.row([*terms, (over, 1.0), (under, -1.0)], 0.0, 0.0)
        slack += [over, under]
    return slack


def _differences(request: OrderedRequest, group: Sequence[int]) -> Iterator[list[tuple[int, float]]]:
    """Yield for every further member of a group the terms of: size / weight of the first one less its own."""
    disks = len(request.capacity)
    first, *others = group
    for member in others:
        signs = ((first, 1.0 / float(request.weight[first])), (member, -1.0 / float(request.weight[member])))
        yield [(space * disks + disk, factor) for space, factor in signs for disk in range(disks)]


def _worth(request: OrderedRequest, scale: float) -> FloatArray:
    return (coefficients(request) * scale).ravel()


def _maximise(program: Program, worth: FloatArray) -> OptimizeResult | None:
    """Return SciPy's solution of a program; columns beyond `worth` are worth nothing. None when nothing satisfies the rows."""
    optimize, sparse = libraries.scipy_optimize, libraries.scipy_sparse
    begins, columns, factors = program.entries()
    rows = sparse.csr_array((factors, columns, begins), shape=(len(program.row_low), len(program.lower)))
    solved = optimize.milp(
        -np.append(worth, np.zeros(len(program.lower) - len(worth))),
        integrality=program.integral,
        bounds=optimize.Bounds(program.lower, program.upper),
        constraints=optimize.LinearConstraint(rows, program.row_low, program.row_high),
        options={"mip_rel_gap": _GAP, "node_limit": _MOST_NODES},
    )
    return None if solved.x is None else solved


def _grid(request: OrderedRequest, values: FloatArray) -> FloatArray:
    spaces, disks = request.allowed.shape
    return values[: spaces * disks].reshape(spaces, disks)
