# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan of moves as a picture: which nodes are rows, which moves are arrows between them, and how they fan out.

Groups that moves connect share a picture. In it, a node has one row: on the left it is as before, on the right as after
the plan, and arrows lead from left to right. Heights are counted in rows, so that the page may choose how high a row is.
"""

from __future__ import annotations

import collections
import pathlib
import typing as t
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...common.html import page_templates
from ...common.units import format_mib

Plain = Mapping[str, t.Any]
METRICS = ("memory", "disk", "cpus", "load")
_MARGIN = 0.16
"""Part of a row above the first arrow and below the last."""


@dataclass(frozen=True)
class Bar:
    """One metric of a node: parts of its capacity (0 to 1, or more when it is overcommitted) and words about it."""

    metric: str
    used: float
    reserved: float
    before: float
    words: str


@dataclass(frozen=True)
class Row:
    """A node, or the heading of a group's nodes where `bars` are empty; `number` tells it from others on the page."""

    name: str
    label: str
    number: int
    offline: bool = False
    before: tuple[Bar, ...] = ()
    after: tuple[Bar, ...] = ()
    words: tuple[str, ...] = ()


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
    """Groups that moves connect, with the rows that arrows touch, those that stay as they are, and the stages there are."""

    groups: tuple[str, ...]
    rows: tuple[Row, ...]
    still: tuple[Row, ...]
    arrows: tuple[Arrow, ...]
    stages: tuple[tuple[int, int], ...]
    """Number of a stage and how many of the arrows it has."""
    ends: int
    """The most ends of lines that lie on one side of a row."""


def pictures(plan: Plain) -> list[Picture]:
    """Return the pictures of a plan as group actions return it, in the order of the groups of its nodes."""
    nodes = {node["node"]: node for node in plan["nodes"]}
    drawn = _drawn(list(nodes.values()))
    stage_of = {move: number for number, stage in enumerate(plan["stages"], start=1) for move in stage}
    largest = max((move["data"] for move in plan["moves"]), default=0)
    found = []
    for groups in _connected(nodes, plan["moves"]):
        here = [at for at, move in enumerate(plan["moves"]) if nodes[move["from"][0]]["group"] in groups]
        moves = [plan["moves"][at] for at in here]
        touched = {name for move in moves for end in _ends(move) for name in end[1:]}
        members = [name for name, node in nodes.items() if node["group"] in groups]
        rows: list[Row] = []
        for group in groups:
            of_group = [drawn[name] for name in members if name in touched and nodes[name]["group"] == group]
            rows += [Row(group, group, -1), *of_group] if of_group and len(groups) > 1 else of_group
        arrows = tuple(_arrow(plan["moves"][at], lines, stage_of[at], drawn, largest) for at, lines in zip(here, _lines(rows, moves)))
        stages = collections.Counter(arrow.stage for arrow in arrows)
        still = tuple(drawn[name] for name in members if name not in touched)
        found.append(Picture(tuple(groups), tuple(rows), still, arrows, tuple(sorted(stages.items())), _most_ends(arrows)))
    return found


def _most_ends(arrows: Sequence[Arrow]) -> int:
    lines = [line for arrow in arrows for line in arrow.lines]
    sides = (collections.Counter(int(line.start) for line in lines), collections.Counter(int(line.end) for line in lines))
    return max((count for side in sides for count in side.values()), default=0)


def _connected(nodes: Mapping[str, Plain], moves: Iterable[Plain]) -> list[list[str]]:
    """Return the groups in sets that moves connect, each in the order of the nodes."""
    order = list(dict.fromkeys(node["group"] for node in nodes.values()))
    joined = {group: group for group in order}

    def root(group: str) -> str:
        while joined[group] != group:
            group = joined[group]
        return group

    for move in moves:
        home, *others = (root(nodes[name]["group"]) for name in (*move["from"], *move["to"]))
        for other in others:
            joined[root(other)] = root(home)
    sets: dict[str, list[str]] = {}
    for group in order:
        sets.setdefault(root(group), []).append(group)
    return list(sets.values())


def _ends(move: Plain) -> list[tuple[str, str, str]]:
    """Return the lines of a move as (role, node, node): the primary's way, and copies that become the mirror."""
    source, target = move["from"], move["to"]
    lines = [("primary", source[0], target[0])] if source[0] != target[0] else []
    lost = [name for name in source if name not in target] or [source[0]]
    gained = [name for name in target[1:] if name not in source]
    return lines + [("mirror", lost[-1], name) for name in gained]


def _lines(rows: Sequence[Row], moves: Sequence[Plain]) -> list[list[Line]]:
    """Return the lines of each move with heights such that lines that share a node's side lie beside each other, uncrossed."""
    at = {row.name: height for height, row in enumerate(rows)}
    ends = [(position, line, *end) for position, move in enumerate(moves) for line, end in enumerate(_ends(move))]
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


def _drawn(nodes: Sequence[Plain]) -> dict[str, Row]:
    """Return the rows of all nodes by name; loads are drawn to the scale of the highest, names without what all end with."""
    scale = max((node[when]["load"] for node in nodes for when in ("before", "after")), default=0)
    suffix = _common_suffix([node["node"] for node in nodes])
    return {node["node"]: _row(node, number, scale, suffix) for number, node in enumerate(nodes)}


def _common_suffix(names: Sequence[str]) -> str:
    """Return the domain that all names share, with its dot."""
    domain = {name.partition(".")[2] for name in names}
    return f".{domain.pop()}" if len(names) > 1 and len(domain) == 1 and "" not in domain else ""


def _row(node: Plain, number: int, scale: float, suffix: str) -> Row:
    before = tuple(_bar(node, "before", metric, scale) for metric in METRICS)
    after = tuple(_bar(node, "after", metric, scale) for metric in METRICS)
    counts = [f"{node[when]['primaries']} primaries and {node[when]['secondaries']} secondaries" for when in ("before", "after")]
    words = [_change(first, second) for first, second in zip(before, after)]
    return Row(
        name=node["node"],
        label=node["node"].removesuffix(suffix),
        number=number,
        offline=node["offline"],
        before=before,
        after=after,
        words=(*words, counts[0] if counts[0] == counts[1] else " → ".join(counts)),
    )


def _change(before: Bar, after: Bar) -> str:
    words = before.words if before.words == after.words else f"{before.words} → {after.words}"
    return f"{before.metric.replace('cpus', 'CPUs')}: {words}"


def _bar(node: Plain, when: str, metric: str, scale: float) -> Bar:
    used, earlier = node[when][metric], node["before"][metric]
    whole = scale if metric == "load" else node["capacity"][metric]
    reserved = node[when]["reserved"] if metric == "memory" else 0
    if metric in ("memory", "disk"):
        words = f"{format_mib(used)} of {format_mib(whole)}" if whole else "none"
    else:
        words = f"{used:g} of {whole:g}" if metric == "cpus" else f"{used:g}"
    if reserved:
        words += f" and {format_mib(reserved)} kept for failovers"
    return Bar(metric, _part(used, whole), _part(reserved, whole), _part(earlier, whole), words)


def _part(value: float, whole: float) -> float:
    return max(0.0, value / whole) if whole else 0.0


def _arrow(move: Plain, lines: Sequence[Line], stage: int, drawn: Mapping[str, Row], largest: float) -> Arrow:
    rows = {drawn[name].number for end in _ends(move) for name in end[1:]}
    what = move["kind"].replace("_", " ")
    copied = f"{format_mib(move['data'])} copied" if move["data"] else "nothing copied"
    return Arrow(
        lines=tuple(lines),
        rows=tuple(sorted(rows)),
        stage=stage,
        instance=move["instance"],
        copies=bool(move["data"]),
        weight=(move["data"] / largest) ** 0.5 if largest else 0.0,
        words=(f"{', '.join(move['from'])} → {', '.join(move['to'])}", f"{what}, {copied}", f"stage {stage}"),
    )


TEMPLATES = pathlib.Path(__file__).parents[1] / "templates"


@dataclass(frozen=True)
class Problem:
    """An instance that the plan leaves where it is, and why, one line for each reason."""

    instance: str
    reasons: tuple[str, ...]


def moves_page(
    plan: Mapping[str, t.Any],
    unplaced: Sequence[Mapping[str, t.Any]] = (),
    title: str = "Moves",
    groups: Sequence[Mapping[str, t.Any]] = (),
) -> str:
    """Return the HTML page of a plan as group actions return it; `unplaced` is group_evacuate's, `groups` is group_balance's."""
    moves = plan["moves"]
    return (
        page_templates(TEMPLATES)
        .get_template("moves.html.j2")
        .render(
            title=title,
            pictures=pictures(plan),
            metrics=METRICS,
            moves=len(moves),
            stages=len(plan["stages"]),
            data=format_mib(sum(move["data"] for move in moves)),
            scores=(plan["score_before"], plan["score_after"]),
            group_scores={one["group"]: (one["score_before"], one["score_after"]) for one in groups if "score_after" in one},
            problems=[Problem(one["instance"], tuple(map(_reason, one["reasons"]))) for one in unplaced],
        )
    )


def _reason(reason: Mapping[str, t.Any]) -> str:
    short = f", {reason['short']:g} short" if reason.get("short") else ""
    says = f": {reason['says']}" if reason.get("says") else ""
    return f"{reason.get('node') or 'all nodes'}: {reason['limit'].replace('_', ' ')}{short}{says}"
