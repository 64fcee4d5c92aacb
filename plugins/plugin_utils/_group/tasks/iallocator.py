# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers to Ganeti's IAllocator requests, version 2, by the same code that the tasks use.

    answer(parse_iallocator(data), ScoreMode.HTOOLS)    # {"success": bool, "info": str, "result": ...}

The formats are those of Ganeti's documentation of the protocol.
"""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Mapping

from ....module_utils._data.errors import InputError, Mistake
from ..metrics.score import ScoreMode
from ..sources.loaded import Loaded
from .envelope import failure, success
from .place import place, reasons_line

Plain = dict[str, t.Any]


def answer(loaded: Loaded, mode: ScoreMode) -> Plain:
    """Return the envelope that answers the message's request; raise InputError when the request makes no sense."""
    kind = str(loaded.request.get("type"))
    if kind not in _ANSWERS:
        raise InputError([Mistake("request.type", f"is {kind!r}; must be one of {', '.join(_ANSWERS)}")])
    return _ANSWERS[kind](loaded, mode)


def _allocate(loaded: Loaded, mode: ScoreMode) -> Plain:
    (solution,) = place(loaded, {"score": mode})["solutions"]
    lines = [*map(_group_line, solution["groups"]), *map(_refusal_line, solution["rejected"])]
    if not solution["groups"]:
        return failure(", ".join(lines))
    first = solution["groups"][0]
    return success(", ".join([f"Selected group: {first['group']}", *lines]), first["nodes"])


def _multi_allocate(loaded: Loaded, mode: ScoreMode) -> Plain:
    found = place(loaded, {"score": mode})
    placed = [[solution["instance"], solution["groups"][0]["nodes"]] for solution in found["solutions"] if solution["groups"]]
    info = f"{len(placed)} instances placed, {len(found['unplaced'])} not"
    return success(info, [placed, found["unplaced"]])


def _group_line(found: Mapping[str, t.Any]) -> str:
    return f"Group {found['group']} ({found['alloc_policy']}): score: {found['score']:.8f} for node(s) {'/'.join(found['nodes'])}"


def _refusal_line(refusal: Mapping[str, t.Any]) -> str:
    return f"Group {refusal['group']}: {reasons_line(refusal['reasons'])}"


def _of_moves(loaded: Loaded, mode: ScoreMode) -> Plain:
    # Loaded here: most requests are for new instances, and are answered in little more than it takes to load the code for them.
    from . import iallocator_moves as moves

    answers = {
        "relocate": moves.relocate,
        "node-evacuate": moves.node_evacuate,
        "change-group": moves.change_group,
        "allocate-secondary": moves.allocate_secondary,
    }
    return answers[str(loaded.request["type"])](loaded, mode)


_ANSWERS: Mapping[str, Callable[[Loaded, ScoreMode], Plain]] = {
    "allocate": _allocate,
    "multi-allocate": _multi_allocate,
    "relocate": _of_moves,
    "node-evacuate": _of_moves,
    "change-group": _of_moves,
    "allocate-secondary": _of_moves,
}
