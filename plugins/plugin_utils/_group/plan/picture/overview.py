# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan with more moves than can be drawn at once, as an overview: how hard pressed each row is, and the moves as a table.

    shown = overview(rows, moves)

Pressure is the part of its scarcest capacity that a row uses, with what it keeps for failovers.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from dataclasses import dataclass

from .....module_utils._data.units import format_mib
from .draw import Bar, Move, Row

STEPS = (0.5, 0.7, 0.8, 0.9, 1.0)
"""Where one shade of heat ends and the next begins."""
_ROUNDING = 5e-4
_ROLES = {("primary", False): 0, ("primary", True): 1, ("mirror", True): 2, ("mirror", False): 2}


@dataclass(frozen=True)
class Heat:
    """Pressure as percent, and its shade as a number from 0 to the number of STEPS."""

    percent: str
    shade: int


@dataclass(frozen=True)
class HeatRow:
    """A row before and after; `metrics` are percents of each capacity in words, and how many moves leave it and come to it."""

    row: Row
    before: Heat
    after: Heat
    metrics: tuple[str, ...]
    leaving: int
    coming: int


@dataclass(frozen=True)
class MoveRow:
    """A move; `lines` is `role source target` of each of its lines, with rows by number, one after the other."""

    move: Move
    copied: str
    lines: str


@dataclass(frozen=True)
class HeatGroup:
    """A group with its rows, and how many moves and how much data begin there."""

    name: str
    rows: tuple[HeatRow, ...]
    moves: int
    data: str


@dataclass(frozen=True)
class Overview:
    """All groups, all moves in the order of their stages, and whether any move leaves its group."""

    groups: tuple[HeatGroup, ...]
    moves: tuple[MoveRow, ...]
    across: bool


def overview(rows: Sequence[Row], moves: Sequence[Move]) -> Overview:
    """Return the overview of rows and the moves between them."""
    row_of = {row.name: row for row in rows}
    leaving = collections.Counter(source for move in moves for source in {line[1] for line in move.lines})
    coming = collections.Counter(target for move in moves for target in {line[2] for line in move.lines})
    by_group: dict[str, list[Move]] = {row.group: [] for row in rows}
    for move in moves:
        by_group[row_of[move.lines[0][1]].group].append(move)
    groups = tuple(
        HeatGroup(
            name=group,
            rows=tuple(_heat_row(row, leaving[row.name], coming[row.name]) for row in rows if row.group == group),
            moves=len(here),
            data=format_mib(sum(move.data for move in here)),
        )
        for group, here in by_group.items()
    )
    ends = [(row_of[source].group, row_of[target].group) for move in moves for _role, source, target in move.lines]
    move_rows = tuple(_move_row(move, row_of) for move in sorted(moves, key=lambda move: move.stage))
    return Overview(groups, move_rows, any(source != target for source, target in ends))


def _move_row(move: Move, row_of: dict[str, Row]) -> MoveRow:
    lines = " ".join(
        f"{_ROLES[role, bool(move.data)]} {row_of[source].number} {row_of[target].number}" for role, source, target in move.lines
    )
    return MoveRow(move, format_mib(move.data) if move.data else "", lines)


def _heat_row(row: Row, leaving: int, coming: int) -> HeatRow:
    metrics = tuple(_change(before, after) for before, after in zip(_percents(row.before), _percents(row.after)))
    return HeatRow(row, _heat(row.before), _heat(row.after), metrics, leaving, coming)


def _heat(bars: Sequence[Bar]) -> Heat:
    pressure = max((drawn.used + drawn.reserved for drawn in capacities(bars)), default=0.0)
    return Heat(f"{pressure:.0%}", sum(pressure > step + _ROUNDING for step in STEPS))


def capacities(bars: Sequence[Bar]) -> list[Bar]:
    """Return the bars that are parts of a capacity; a load is drawn to the scale of the highest one."""
    return [drawn for drawn in bars if drawn.metric != "load"]


def _percents(bars: Sequence[Bar]) -> list[str]:
    return [f"{drawn.used:.0%}" for drawn in capacities(bars)]


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"
