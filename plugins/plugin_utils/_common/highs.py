# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Linear programs with integers, built row by row: the one door to HiGHS.

    program = Program()
    first, second = program.column(0, 1, integral=True), program.column()
    program.row([(first, 5.0), (second, 1.0)], high=7.0)
    solved = maximise(program, {first: 5.0, second: 2.0})

One thread, one seed, limits that are counts and one minor series of HiGHS (requirements.txt): the same program has the same solution on
a fast and on a slow machine.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from . import libraries
from .libraries import np, npt

if t.TYPE_CHECKING:
    import highspy

libraries.expect("highspy")

FREE = float("inf")
_MANY_COLUMNS = 100
_MOST_NODES = 2000
_FEW_COLUMNS = 200

Floats: t.TypeAlias = npt.NDArray[np.float64]
Integers: t.TypeAlias = npt.NDArray[np.int64]
Objective: t.TypeAlias = Mapping[int, float] | Floats
"""What a unit of each column is worth; columns that a mapping leaves out are worth nothing."""


@dataclass(frozen=True)
class Solved:
    """Values of all columns. `proven` is False when a limit ended the search, `gap` then the relative distance to the bound."""

    values: Floats
    objective: float
    proven: bool = True
    gap: float = 0.0
    nodes: int = 0
    """Nodes of the search; 0 where there was none."""


@dataclass(frozen=True)
class Limits:
    """When a search may end: at a relative gap, and after a number of nodes.

    Nodes are a count, so that the same input ends at the same plan on a fast and on a slow machine. There is no limit of time.
    """

    gap: float = 1e-9
    nodes: int = 500
    searches: bool = True
    """Whether HiGHS tries rules of its own for a solution, too: they can take as long as all else."""


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

    def copy(self) -> Program:
        """Return a program that can be changed without changing this one."""
        other = Program()
        for name, values in vars(self).items():
            setattr(other, name, list(values))
        return other

    def column(self, lower: float = 0.0, upper: float = FREE, *, integral: bool = False) -> int:
        """Add a column and return its position."""
        self.lower.append(lower)
        self.upper.append(upper)
        self.integral.append(int(integral))
        return len(self.lower) - 1

    @property
    def size(self) -> int:
        """Return how many factors the rows have."""
        return len(self._factor)

    def columns(self, lower: Floats, upper: Floats, *, integral: bool = False) -> Integers:
        """Add a column for each of the bounds and return their positions."""
        first = len(self.lower)
        self.lower += lower.tolist()
        self.upper += upper.tolist()
        self.integral += [int(integral)] * len(lower)
        return np.arange(first, len(self.lower))

    def row(self, terms: Iterable[tuple[int, float]], low: float = -FREE, high: float = FREE) -> int:
        """Add a row and return its position. A column that occurs twice counts twice."""
        position = len(self.row_low)
        known = list(terms)
        self._row_of += [position] * len(known)
        self._column_of += [column for column, _factor in known]
        self._factor += [factor for _column, factor in known]
        self.row_low.append(low)
        self.row_high.append(high)
        return position

    def rows(self, row_of: Integers, columns: Integers, factors: Floats, high: Sequence[float] | Floats) -> None:
        """Add a row `sum <= high` for each of `high`, with `factors` at `columns`, each in that one of them that `row_of` says."""
        first = len(self.row_low)
        self._row_of += (row_of + first).tolist()
        self._column_of += columns.tolist()
        self._factor += factors.tolist()
        self.row_high += np.asarray(high, dtype=float).tolist()
        self.row_low += [-FREE] * (len(self.row_high) - first)

    def entries(self) -> tuple[Integers, Integers, Floats]:
        """Return the rows in compressed form: where each begins, columns in ascending order, and their factors."""
        width = max(len(self.lower), 1)
        places = np.array(self._row_of, dtype=np.int64) * width + np.array(self._column_of, dtype=np.int64)
        distinct, where = np.unique(places, return_inverse=True)
        factors: Floats = np.bincount(where, weights=np.array(self._factor, dtype=float), minlength=len(distinct)).astype(float)
        begins = np.searchsorted(distinct, np.arange(len(self.row_low) + 1) * width)
        return begins, distinct % width, factors


def maximise(program: Program, objective: Objective, limits: Limits | None = None) -> Solved | None:
    """Return values that make the objective as large as possible; None when nothing satisfies the rows.

    Raises Undecided when a limit was reached before anything was found.
    """
    limits, highspy = limits or Limits(), libraries.highspy
    solver = _loaded(program, objective, program.integral)
    _set(solver, mip_rel_gap=limits.gap, mip_max_nodes=limits.nodes)
    _set(
        solver,
        mip_heuristic_run_rins=limits.searches,
        mip_heuristic_run_rens=limits.searches,
        mip_heuristic_run_root_reduced_cost=limits.searches,
        # It takes 6 ms however small the program is.
        mip_heuristic_run_feasibility_jump=limits.searches and len(program.lower) > _MANY_COLUMNS,
    )
    solver.run()
    status, ended = solver.getModelStatus(), highspy.HighsModelStatus
    if status == ended.kInfeasible and any(program.integral) and len(program.lower) <= _FEW_COLUMNS:
        status = _without_presolve(solver)
    if status == ended.kInfeasible:
        return None
    info = solver.getInfo()
    if status == ended.kOptimal:
        return Solved(_values(solver), -info.objective_function_value, nodes=max(info.mip_node_count, 0))
    # Without a limit nothing but integers leaves a solution behind that can be used.
    if not any(program.integral) or info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        raise Undecided(f"HiGHS ended with: {solver.modelStatusToString(status)}")
    return Solved(_values(solver), -info.objective_function_value, proven=False, gap=info.mip_gap, nodes=max(info.mip_node_count, 0))


def choose(program: Program, nodes: int) -> Solved | None:
    """Return the first values found that satisfy the rows; None when nothing does. Raises Undecided when nothing was found."""
    return maximise(program, {}, Limits(gap=1.0, nodes=nodes, searches=False))


class Effort:
    """What several programs may cost together: each costs its columns, once for every node of its search. `left` goes down."""

    def __init__(self, most: int) -> None:
        self.left = most

    def affords(self, columns: int) -> bool:
        """Return whether a program with `columns` can be begun; after the first refusal none can."""
        if columns > self.left:
            self.left = 0
        return self.left > 0

    def maximise(self, program: Program, objective: Objective, gap: float) -> Solved | None:
        """Return what `maximise` does within the effort that is left. Raises Undecided where it affords not even one node, too."""
        columns = max(len(program.lower), 1)
        if not self.affords(columns):
            raise Undecided("no effort is left")
        nodes = min(self.left // columns, _MOST_NODES)
        try:
            solved = maximise(program, objective, Limits(gap, nodes=nodes))
        except Undecided:
            self.left -= columns * nodes
            raise
        self.left -= columns * max(solved.nodes if solved is not None else 1, 1)
        return solved


def maximise_with_prices(program: Program, objective: Objective) -> tuple[Solved, Floats] | None:
    """Solve without regard to integrality; return values and, for every row, how hard it binds (its dual, never negative).

    None when nothing satisfies the rows.
    """
    solver = _loaded(program, objective, [0] * len(program.integral))
    _set(solver, solver="simplex")
    solver.run()
    if solver.getModelStatus() != libraries.highspy.HighsModelStatus.kOptimal:
        return None
    prices = np.abs(np.array(solver.getSolution().row_dual, dtype=float))
    return Solved(_values(solver), -solver.getInfo().objective_function_value), prices


def _loaded(program: Program, objective: Objective, integral: Sequence[int]) -> highspy.Highs:
    """Return HiGHS with the program in it, as one that is to be minimised.

    It uses the class below `Highs`: from 1.16 on, `Highs` prints a banner before that can be switched off, also where an answer in
    JSON is expected.
    """
    highspy = libraries.highspy
    solver: highspy.Highs = highspy._Highs()  # type: ignore[attr-defined]  # its stubs leave it out
    _set(solver, output_flag=False, threads=1, random_seed=0)
    begins, columns, factors = program.entries()
    solver.passModel(
        len(program.lower),
        len(program.row_low),
        len(factors),
        highspy.MatrixFormat.kRowwise.value,
        highspy.ObjSense.kMinimize.value,
        0.0,
        _costs(program, objective),
        np.array(program.lower, dtype=float),
        np.array(program.upper, dtype=float),
        np.array(program.row_low, dtype=float),
        np.array(program.row_high, dtype=float),
        begins.astype(np.int32),
        columns.astype(np.int32),
        factors,
        np.array(integral, dtype=np.int32),
    )
    return solver


def _without_presolve(solver: highspy.Highs) -> highspy.HighsModelStatus:
    """Return how a program ends that seems to be infeasible: presolve, in 1.16 still, says so of some that are not.

    It stays infeasible where nodes come to an end before there is a solution.
    """
    _set(solver, presolve="off")
    solver.clearSolver()
    solver.run()
    found = solver.getInfo().primal_solution_status == libraries.highspy.SolutionStatus.kSolutionStatusFeasible
    return solver.getModelStatus() if found else libraries.highspy.HighsModelStatus.kInfeasible


def _set(highs: highspy.Highs, **options: t.Any) -> None:
    for name, value in options.items():
        highs.setOptionValue(name, value)


def _values(solver: highspy.Highs) -> Floats:
    return np.array(solver.getSolution().col_value, dtype=float)


def _costs(program: Program, objective: Objective) -> Floats:
    costs = np.zeros(len(program.lower))
    if isinstance(objective, Mapping):
        for column, worth in objective.items():
            costs[column] = -worth
    else:
        costs[:] = -objective
    return costs
