# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Linear programs with integers: built row by row, solved by SciPy's HiGHS, which is kept from printing."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import typing as t
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .libraries import np, npt, optimize, sparse

_ONE_AT_A_TIME = threading.RLock()


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Send what C code writes to standard output nowhere while the block runs.

    HiGHS 1.12 prints a line of its own even when it is told not to display anything, and Ansible reads our standard output.
    May be nested; threads wait for each other, because there is only one standard output.
    """
    with _ONE_AT_A_TIME:
        _flush()
        try:
            kept = os.dup(1)
        except OSError:
            # Standard output is closed: nothing can be spoilt.
            yield
            return
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.close(nowhere)
            yield
        finally:
            _flush()
            os.dup2(kept, 1)
            os.close(kept)


def _flush() -> None:
    # C's own buffer: without this the text would come out after the block, when standard output is back in place.
    ctypes.CDLL(None).fflush(None)


FREE = float("inf")
_OPTIMAL, _LIMIT, _INFEASIBLE = 0, 1, 2


@dataclass(frozen=True)
class Solved:
    """Values of all columns. `proven` is False when a limit ended the search, `gap` then the relative distance to the bound."""

    values: npt.NDArray[np.float64]
    objective: float
    proven: bool = True
    gap: float = 0.0


@dataclass(frozen=True)
class Limits:
    """When a search may end: at a relative gap, after so many seconds, after so many nodes.

    Nodes come first by far, so that the same input ends at the same plan on a fast and on a slow machine.
    """

    gap: float = 1e-9
    seconds: float = 10.0
    nodes: int = 500


class Undecided(Exception):
    """A limit was reached before it was known whether there is a solution."""


class Program:
    """A program under construction: columns with bounds, rows `low <= sum <= high`, some columns integral."""

    def __init__(self) -> None:
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.integral: list[int] = []
        self.row_low: list[float] = []
        self.row_high: list[float] = []
        self._row_of: list[int] = []
        self._column_of: list[int] = []
        self._factor: list[float] = []
        self._matrix: sparse.csr_array | None = None

    def column(self, lower: float = 0.0, upper: float = FREE, *, integral: bool = False) -> int:
        """Add a column and return its position."""
        self.lower.append(lower)
        self.upper.append(upper)
        self.integral.append(int(integral))
        return len(self.lower) - 1

    def row(self, terms: Iterable[tuple[int, float]], low: float = -FREE, high: float = FREE) -> int:
        """Add a row and return its position. A column that occurs twice counts twice."""
        position = len(self.row_low)
        for column, factor in terms:
            self._row_of.append(position)
            self._column_of.append(column)
            self._factor.append(factor)
        self.row_low.append(low)
        self.row_high.append(high)
        return position

    def matrix(self) -> sparse.csr_array:
        """Return the rows as a sparse matrix."""
        shape = (len(self.row_low), len(self.lower))
        if self._matrix is None or self._matrix.shape != shape:
            self._matrix = sparse.csr_array((self._factor, (self._row_of, self._column_of)), shape=shape)
        return self._matrix


def maximise(program: Program, objective: Mapping[int, float], limits: Limits | None = None) -> Solved | None:
    """Return values that make the objective as large as possible; None when nothing satisfies the rows.

    Raises Undecided when a limit was reached before anything was found.
    """
    limits = limits or Limits()
    costs = _costs(program, objective)
    options: t.Any = {"mip_rel_gap": limits.gap, "time_limit": limits.seconds, "node_limit": limits.nodes}
    rows = optimize.LinearConstraint(program.matrix(), np.array(program.row_low), np.array(program.row_high))
    bounds = optimize.Bounds(np.array(program.lower), np.array(program.upper))
    with silence():
        result = optimize.milp(costs, integrality=np.array(program.integral), bounds=bounds, constraints=[rows], options=options)
    if result.status == _INFEASIBLE:
        return None
    if result.x is None:
        raise Undecided(result.message)
    gap = float(result.mip_gap) if result.mip_gap is not None else 0.0
    return Solved(result.x, -float(result.fun), proven=result.status == _OPTIMAL, gap=0.0 if result.status == _OPTIMAL else gap)


def maximise_with_prices(program: Program, objective: Mapping[int, float]) -> tuple[Solved, npt.NDArray[np.float64]] | None:
    """Solve without regard to integrality; return values and, for every row, how hard it binds (its dual, never negative).

    None when nothing satisfies the rows.
    """
    matrix = program.matrix()
    low, high = np.array(program.row_low), np.array(program.row_high)
    equal = low == high
    above, below = (high < FREE) & ~equal, (low > -FREE) & ~equal
    upper_rows = np.concatenate([np.flatnonzero(above), np.flatnonzero(below)])
    signs = np.concatenate([np.ones(above.sum()), -np.ones(below.sum())])
    # Typed as anything because SciPy's stubs know dense matrices only.
    rows: dict[str, t.Any] = {}
    if len(upper_rows):
        rows |= {"A_ub": matrix[upper_rows].multiply(signs[:, None]).tocsr(), "b_ub": np.concatenate([high[above], -low[below]])}
    if equal.any():
        rows |= {"A_eq": matrix[np.flatnonzero(equal)], "b_eq": low[equal]}
    bounds: t.Any = np.column_stack([program.lower, program.upper])
    with silence():
        result = optimize.linprog(_costs(program, objective), bounds=bounds, method="highs-ds", **rows)
    if result.status != _OPTIMAL or result.x is None or result.fun is None:
        return None
    prices = np.zeros(len(low))
    if len(upper_rows):
        np.add.at(prices, upper_rows, np.abs(result.ineqlin.marginals))
    if equal.any():
        prices[np.flatnonzero(equal)] = np.abs(result.eqlin.marginals)
    return Solved(result.x, -float(result.fun)), prices


def _costs(program: Program, objective: Mapping[int, float]) -> npt.NDArray[np.float64]:
    costs = np.zeros(len(program.lower))
    for column, worth in objective.items():
        costs[column] = -worth
    return costs
