# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A picture of moves: each row occurs twice, on the left as before, on the right as after, and arrows lead from left to right.

Heights are counted in rows, so that the page may choose how high a row is.
"""

from __future__ import annotations

import collections
import typing as t
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .....module_utils._data.units import format_mib

Plain = Mapping[str, t.Any]
_MARGIN = 0.16
"""Part of a row above the first arrow and below the last."""


@dataclass(frozen=True)
class Bar:
    """One metric of a row: parts of its capacity (0 to 1, or more when it is overcommitted) and words about it."""

    metric: str
    used: float
    reserved: float
    before: float
    words: str


@dataclass(frozen=True)
class Row:
    """What moves begin and end at, or the heading of such where `bars` are empty; `number` distinguishes it from others on the page."""

    name: str
    label: str
    number: int
    offline: bool = False
    before: tuple[Bar, ...] = ()
    after: tuple[Bar, ...] = ()
    words: tuple[str, ...] = ()
    group: str = ""


@dataclass(frozen=True)
class Line:
    """A line of an arrow, from a height on the left to one on the right; `role` is primary or mirror."""

    role: str
    start: float
    end: float


@dataclass(frozen=True)
class Arrow:
    """A move: its lines, the rows they touch, its stage counted from 1, and words about it; `weight` is 0 to 1 by its data."""

    lines: tuple[Line, ...]
    rows: tuple[int, ...]
    stage: int
    instance: str
    copies: bool
    weight: float
    words: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """What moves connect, with the rows that arrows touch, those that stay as they are, and the stages there are."""

    groups: tuple[str, ...]
    rows: tuple[Row, ...]
    still: tuple[Row, ...]
    arrows: tuple[Arrow, ...]
    stages: tuple[tuple[int, int], ...]
    """Number of a stage and how many of the arrows it has."""
    ends: int
    """The most ends of lines that lie on one side of a row."""


@dataclass(frozen=True)
class Move:
    """A move to be drawn: each of its lines as (role, name of a row, name of a row), MiB that it copies, and words about its way."""

    instance: str
    lines: tuple[tuple[str, str, str], ...]
    stage: int
    data: float
    way: str
    what: str


def draw(groups: Mapping[str, Sequence[Row]], moves: Sequence[Move], largest: float) -> Picture:
    """Return the picture of groups, each with its heading where there are several; `largest` is the most MiB of a move on the page."""
    touched = {name for move in moves for line in move.lines for name in line[1:]}
    shown: list[Row] = []
    for group, members in groups.items():
        rows = [row for row in members if row.name in touched]
        shown += [Row(group, group, -1), *rows] if rows and len(groups) > 1 else rows
    number_of = {row.name: row.number for row in shown}
    arrows = tuple(_arrow(move, lines, number_of, largest) for move, lines in zip(moves, _lines(shown, moves)))
    still = tuple(row for members in groups.values() for row in members if row.name not in touched)
    stages = collections.Counter(arrow.stage for arrow in arrows)
    return Picture(tuple(groups), tuple(shown), still, arrows, tuple(sorted(stages.items())), _most_ends(arrows))


def stage_of(plan: Plain) -> dict[int, int]:
    """Return the stage of each move by its position, counted from 1."""
    return {move: number for number, stage in enumerate(plan["stages"], start=1) for move in stage}


def part(value: float, whole: float) -> float:
    """Return how much of a whole something is; none of nothing."""
    return max(0.0, value / whole) if whole else 0.0


def change(before: Bar, after: Bar) -> str:
    """Return what is said of a metric before and after."""
    words = before.words if before.words == after.words else f"{before.words} → {after.words}"
    return f"{before.metric.replace('cpus', 'CPUs')}: {words}"


def _arrow(move: Move, lines: Sequence[Line], number_of: Mapping[str, int], largest: float) -> Arrow:
    copied = f"{format_mib(move.data)} copied" if move.data else "nothing copied"
    return Arrow(
        lines=tuple(lines),
        rows=tuple(sorted({number_of[name] for line in move.lines for name in line[1:]})),
        stage=move.stage,
        instance=move.instance,
        copies=bool(move.data),
        weight=part(move.data, largest) ** 0.5,
        words=(move.way, f"{move.what}, {copied}", f"stage {move.stage}"),
    )


def _most_ends(arrows: Sequence[Arrow]) -> int:
    lines = [line for arrow in arrows for line in arrow.lines]
    sides = (collections.Counter(int(line.start) for line in lines), collections.Counter(int(line.end) for line in lines))
    return max((count for side in sides for count in side.values()), default=0)


def _lines(rows: Sequence[Row], moves: Sequence[Move]) -> list[list[Line]]:
    """Return the lines of each move with heights such that lines that share a side of a row run in parallel, uncrossed."""
    at = {row.name: height for height, row in enumerate(rows)}
    ends = [(position, line, *end) for position, move in enumerate(moves) for line, end in enumerate(move.lines)]
    start = _fan([(at[source], at[target], position, line) for position, line, _role, source, target in ends])
    end = _fan([(at[target], at[source], position, line) for position, line, _role, source, target in ends])
    found: list[list[Line]] = [[] for _move in moves]
    for position, line, role, _source, _target in ends:
        found[position].append(Line(role, start[position, line], end[position, line]))
    return found


def _fan(ends: Iterable[tuple[int, int, int, int]]) -> dict[tuple[int, int], float]:
    """Return the heights of ends (row, row of the other end, move, line), spread over their row by where they lead."""
    by_row: dict[int, list[tuple[int, int, int]]] = {}
    for row, *others in ends:
        by_row.setdefault(row, []).append((others[0], others[1], others[2]))
    heights = {}
    for row, here in by_row.items():
        for place, (_other, position, line) in enumerate(sorted(here)):
            heights[position, line] = row + _MARGIN + (1 - 2 * _MARGIN) * (place + 0.5) / len(here)
    return heights
