# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page of a plan: its pictures, and what is said around them."""

from __future__ import annotations

import collections
import pathlib
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .....module_utils._data.units import format_mib
from ...._common.html import page_templates, script_digest
from .draw import Move, Picture, Plain, Row
from .nodes import METRICS as NODE_METRICS
from .nodes import node_parts, node_pictures
from .overview import STEPS, overview
from .storages import METRICS as STORAGE_METRICS
from .storages import storage_parts, storage_pictures

TEMPLATES = pathlib.Path(__file__).parents[2] / "templates"
_MOST_ARROWS = 60
"""How many arrows a board can have and still be read; plans with more are shown as an overview."""
_MOST_BOARDS = 12
_NO_ROOM = "there is a better storage, but no room on the way to it"


@dataclass(frozen=True)
class Problem:
    """What a plan leaves where it is, and why, one line for each reason."""

    name: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class _Subject:
    """What moves and between what, each as one and as several; the metrics of rows, and the score before and after in words."""

    moving: tuple[str, str]
    row: tuple[str, str]
    metrics: tuple[str, ...]
    score: tuple[str, str, str]


def moves_page(result: Plain, title: str = "Moves") -> str:
    """Return the HTML page of what a group action returns; of one that moves disks `storages` are needed.

    Raises KeyError, TypeError or the like for other data.
    """
    plan = result["plan"]
    if result.get("storages") is not None:
        score = ("off even levels", format_mib(plan["score_before"]), format_mib(plan["score_after"]))
        subject = _Subject(("disk", "disks"), ("storage", "storages"), STORAGE_METRICS, score)
        pictures = storage_pictures(plan, result["storages"])
        return _page(result, title, subject, pictures, storage_parts(plan, result["storages"]))
    score = ("score of the cluster", f"{plan['score_before']:.4g}", f"{plan['score_after']:.4g}")
    subject = _Subject(("instance", "instances"), ("node", "nodes"), NODE_METRICS, score)
    return _page(result, title, subject, node_pictures(plan), node_parts(plan))


def _page(result: Plain, title: str, subject: _Subject, pictures: Sequence[Picture], parts: tuple[Sequence[Row], Sequence[Move]]) -> str:
    plan, templates = result["plan"], page_templates(TEMPLATES)
    groups = [one for one in result.get("groups") or () if "score_after" in one]
    said: Plain = {
        "title": title,
        "subject": subject,
        "moves": len(plan["moves"]),
        "stages": len(plan["stages"]),
        "data": format_mib(sum(move["data"] for move in plan["moves"])),
        "group_scores": {one["group"]: (one["score_before"], one["score_after"]) for one in groups},
        "problems": _problems(result),
        "staying": _staying(result),
    }
    boards = sum(1 for picture in pictures if picture.arrows)
    if boards <= _MOST_BOARDS and all(len(picture.arrows) <= _MOST_ARROWS for picture in pictures):
        return templates.get_template("moves_boards.html.j2").render(said, pictures=pictures, digest="")
    digest = script_digest(templates.get_template("moves.js.j2").render())
    return templates.get_template("moves_overview.html.j2").render(said, overview=overview(*parts), steps=STEPS, digest=digest)


def _problems(result: Plain) -> list[Problem]:
    unplaced = [Problem(one["instance"], tuple(map(_reason, one["reasons"]))) for one in result.get("unplaced") or ()]
    return unplaced + [Problem(name, (_NO_ROOM,)) for name in result.get("blocked") or ()]


def _staying(result: Plain) -> Mapping[str, Sequence[str]]:
    """Return the disks that stay, by the reason."""
    found: dict[str, list[str]] = collections.defaultdict(list)
    for one in result.get("stays") or ():
        found[one["why"]].append(f"{one['instance']} {one['disk']}")
    return found


def _reason(reason: Mapping[str, t.Any]) -> str:
    short = f", {reason['short']:g} short" if reason.get("short") else ""
    says = f": {reason['says']}" if reason.get("says") else ""
    return f"{reason.get('node') or 'all nodes'}: {reason['limit'].replace('_', ' ')}{short}{says}"
