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

from ....common.html import page_templates
from ....common.units import format_mib
from .draw import Picture, Plain
from .nodes import METRICS as NODE_METRICS
from .nodes import node_pictures
from .storages import METRICS as STORAGE_METRICS
from .storages import storage_pictures

TEMPLATES = pathlib.Path(__file__).parents[2] / "templates"
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
        return _page(result, title, subject, storage_pictures(plan, result["storages"]))
    score = ("score of the cluster", f"{plan['score_before']:.4g}", f"{plan['score_after']:.4g}")
    subject = _Subject(("instance", "instances"), ("node", "nodes"), NODE_METRICS, score)
    return _page(result, title, subject, node_pictures(plan))


def _page(result: Plain, title: str, subject: _Subject, pictures: Sequence[Picture]) -> str:
    plan = result["plan"]
    groups = [one for one in result.get("groups") or () if "score_after" in one]
    return (
        page_templates(TEMPLATES)
        .get_template("moves.html.j2")
        .render(
            title=title,
            subject=subject,
            pictures=pictures,
            moves=len(plan["moves"]),
            stages=len(plan["stages"]),
            data=format_mib(sum(move["data"] for move in plan["moves"])),
            group_scores={one["group"]: (one["score_before"], one["score_after"]) for one in groups},
            problems=_problems(result),
            staying=_staying(result),
        )
    )


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
