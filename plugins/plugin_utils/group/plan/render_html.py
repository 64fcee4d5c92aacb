# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan of moves as one page: nodes as bars before and after, moves as arrows. It loads nothing and runs nothing.

What is shown is worked out in plan_picture.py; how it looks is the template's affair.
"""

from __future__ import annotations

import pathlib
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...common.html import page_templates
from ...common.units import format_mib
from .page import METRICS, pictures

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
