# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Places, evacuations and moves as tables to read: what group_place and group_evacuate answer, and plans, as lines of text."""

from __future__ import annotations

import itertools
import typing as t
from collections.abc import Collection, Mapping, Sequence

from ...common.units import format_mib
from .report_table import table

_MOST_REASONS = 5
"""How many reasons a line has at most; all of them are in the data."""

Plain = Mapping[str, t.Any]


def place_summary(answer: Plain) -> str:
    """Return the answer of place_report.place as text: a table for each instance, and why other groups do not take it."""
    return "\n\n".join(_solution(solution) for solution in answer["solutions"])


def evacuation_summary(answer: Plain) -> str:
    """Return the answer of evacuate_report.evacuate_named as text: moves by stage, and why others stay."""
    plan, moved, left = answer["plan"], len(answer["placed"]), len(answer["unplaced"])
    copied = format_mib(sum(move["data"] for move in plan["moves"]))
    head = f"{moved} of {moved + left} instances move in {len(plan['stages'])} stages, {copied} are copied"
    scores = f"score {plan['score_before']:.8f} before, {plan['score_after']:.8f} after"
    moves = moves_table(plan) if plan["moves"] else ""
    relaxed = [f"{placed['instance']}: N+1, CPUs or tags break where it goes" for placed in answer["placed"] if placed["relaxed"]]
    stays = [f"{unplaced['instance']} stays: {reasons_line(unplaced['reasons'])}" for unplaced in answer["unplaced"]]
    return "\n\n".join(part for part in (f"{head}; {scores}", moves, "\n".join([*relaxed, *stays])) if part)


def moves_table(plan: Plain) -> str:
    """Return the moves of a plan that plan.plan_told made, by stage, with MiB that are copied; names are as short as they can be."""
    return table(("stage", "instance", "move", "from", "to", "group", "copied"), _moves(plan))


def reasons_line(reasons: Sequence[Plain]) -> str:
    """Return the first reasons in one line."""
    told = [
        (f"{reason['node']}: " if reason["node"] else "") + (reason.get("says") or f"{reason['limit']} short by {reason['short']}")
        for reason in reasons[:_MOST_REASONS]
    ]
    return "; ".join([*told, f"{len(reasons) - _MOST_REASONS} more"] if len(reasons) > _MOST_REASONS else told)


def _solution(solution: Plain) -> str:
    taken, refused = solution["groups"], solution["rejected"]
    head = f"{solution['instance']}: {len(taken)} of {len(taken) + len(refused)} groups can take it"
    columns = ("group", "policy", "nodes", "score", "lost", "disk left")
    names = _aliases({node for group in taken for node in group["nodes"]})
    rows = [
        (
            group["group"],
            group["alloc_policy"],
            ":".join(names[node] for node in group["nodes"]),
            f"{group['score']:.8f}",
            "-" if group["lost"] is None else ",".join(map(str, group["lost"])),
            format_mib(group["free_after"]),
        )
        for group in taken
    ]
    lines = [f"{refusal['group']} cannot: {reasons_line(refusal['reasons'])}" for refusal in refused]
    return "\n".join([head, *([table(columns, rows)] if rows else []), *lines])


def _moves(plan: Plain) -> list[tuple[str, ...]]:
    nodes = _aliases({node for move in plan["moves"] for node in (*move["from"], *move["to"])})
    instances = _aliases({move["instance"] for move in plan["moves"]})
    return [
        (
            str(number),
            instances[move["instance"]],
            move["kind"],
            ":".join(nodes[node] for node in move["from"]),
            ":".join(nodes[node] for node in move["to"]),
            move["group"],
            format_mib(move["data"]),
        )
        for number, stage in enumerate(plan["stages"], start=1)
        for move in (plan["moves"][position] for position in stage)
    ]


def _aliases(names: Collection[str]) -> dict[str, str]:
    """Return names without the part that all of them end with, from a dot on, as htools shows them."""
    parts = [name.split(".")[::-1] for name in names]
    common = sum(1 for _same in itertools.takewhile(lambda level: len(set(level)) == 1, zip(*parts)))
    kept = min([common, *(len(part) - 1 for part in parts)])
    return {name: ".".join(part[kept:][::-1]) for name, part in zip(names, parts)}
