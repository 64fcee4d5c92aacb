# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers as text to read: of redistribution, compression, maintenance and squeezing. The data holds the same."""

from __future__ import annotations

import typing as t
from collections.abc import Sequence

from ....module_utils._data.units import format_mib
from ....module_utils._data.words import listed
from ..._common.table import table
from .place import moves_table

Plain = dict[str, t.Any]
_MOST_NAMES = 6
"""How many names a line has at most."""


def redistribution_summary(answer: Plain) -> str:
    """Return what redistribution for health answers: each group, what remains wrong, the instances without a place, and the moves."""
    rows = [
        (
            one["group"],
            "healthy" if one["healthy"] else "healed" if one["healed"] else "not healthy",
            str(len(one["on_offline_nodes"])),
            format_mib(sum(node["short"] for node in one["n1_failing"])),
            format_mib(sum(node["short"] for node in one["shared_n1_failing"])),
            str(len(one["moved_inside"])),
            str(len(one["moved_out"])),
        )
        for one in answer["groups"]
    ]
    head = ("group", "is", "on offline nodes", "N+1 short", "shared N+1 short", "moved inside", "moved out")
    missing = [f"{instance['instance']}: {instance['says']}" for one in answer["groups"] for instance in one["missing"][:_MOST_NAMES]]
    late = [one["group"] for one in answer["groups"] if not one["complete"]]
    missing += [f"{listed(late, _MOST_NAMES)}: the time limit ended the search; more time may find more"] if late else []
    return _parts(table(head, rows, right=head[2:]), "\n".join(missing), _plan(answer["plan"]))


def load_summary(answer: Plain) -> str:
    """Return what redistribution for load answers: each group's greatest pressure before and after, and the moves."""
    rows = [
        (
            one["group"],
            *(f"{max(one[pressure].values()):.2f}" for pressure in ("pressure", "pressure_after")),
            one["outlier"] or "",
            one["outlier_after"] or "",
        )
        for one in answer["groups"]
    ]
    head = ("group", "pressure", "after", "outlier", "then")
    return _parts(table(head, rows, right=head[1:3]), _plan(answer["plan"]))


def compression_summary(answer: Plain) -> str:
    """Return what compression answers: which groups can be emptied, what that reclaims, and the moves that empty the chosen one."""
    rows = [
        ("*" if one["group"] == answer["emptied"] else "", one["group"], str(one["instances"]), format_mib(one["data"]), one["says"])
        for one in answer["candidates"]
    ]
    head = ("", "group", "instances", "copied", "")
    last = f"{answer['emptied']} is emptied." if answer["emptied"] else "No group can be emptied."
    return _parts(table(head, rows, right=head[2:4]), last, _plan(answer["plan"]))


def maintenance_summary(answer: Plain) -> str:
    """Return what maintenance answers: the sets of nodes, one after the other, and the instances that keep a node out of them."""
    rows = [
        (
            str(number),
            listed(one["nodes"], _MOST_NAMES),
            str(len(one["plan"]["moves"]) + len(one["carried"])),
            format_mib(sum(move["data"] for move in (*one["plan"]["moves"], *one["carried"]))),
            str(len(one["back"]["moves"])),
        )
        for number, one in enumerate(answer["sets"], start=1)
    ]
    head = ("set", "nodes", "moves away", "copied", "moves back")
    left = [f"{one['node']} is left out: {one['instance']}: {one['says']}" for one in answer["left_out"]]
    return _parts(table(head, rows, right=("set", *head[2:])) if rows else "", "\n".join(left)) or "There is no node to maintain."


def squeeze_summary(answer: Plain) -> str:
    """Return what squeezing answers: the nodes to switch off or on, those that lack, and the moves."""
    lines = [
        f"{says}: {listed(answer[key], _MOST_NAMES)}"
        for key, says in (
            ("power_off", "can be switched off"),
            ("power_on", "must be switched on"),
            ("lacking", "still lack the minimal room"),
        )
        if answer[key]
    ]
    return _parts("\n".join(lines) or "All nodes stay as they are.", _plan(answer["plan"]))


def _plan(plan: Plain) -> str:
    return moves_table(plan) if plan["moves"] else ""


def _parts(*parts: str) -> str:
    kept: Sequence[str] = [part for part in parts if part]
    return "\n\n".join(kept)
