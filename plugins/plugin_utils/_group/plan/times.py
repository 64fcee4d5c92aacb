# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a plan takes at least: what its steps send, over the rate of the links.

    seconds_of(plan, rate=110.0)      # {"stages": [37.2, 9.3], "total": 46.5, "rate": 110.0}

A live migration sends the memory once, and more if it changes on the way; a copy sends a disk. All moves of a stage are under way at once,
so that those that touch a node share its link, which sends and receives at the same time. The stage takes as long as the busiest link.
"""

from __future__ import annotations

import collections
import typing as t
from collections.abc import Iterable, Sequence

from ..cluster.commands import StepKind

Plain = dict[str, t.Any]


def seconds_of(plan: Plain, rate: float, done: Sequence[int] = ()) -> Plain:
    """Return the seconds of each stage of a plan as plain data, and of all, and the `rate` in MiB a second.

    `done` are the numbers of steps of each move that are done already, and take no time.
    """
    begun = done or [0] * len(plan["moves"])
    stages = [
        busiest_link((plan["moves"][move], step) for move in stage for step in range(begun[move], len(plan["moves"][move]["steps"]))) / rate
        for stage in plan["stages"]
    ]
    return {"stages": [round(one, 1) for one in stages], "total": round(sum(stages), 1), "rate": round(rate, 1)}


def busiest_link(steps: Iterable[tuple[Plain, int]]) -> float:
    """Return the MiB that the busiest link sends or receives for steps that are under way at once: moves as plain data, and positions."""
    load: dict[tuple[str, ...], float] = collections.defaultdict(float)
    for move, number in steps:
        step = move["steps"][number]
        size = _sent(move, number)
        load[("sent", *step["from"][:1])] += size
        load["received", step["node"]] += size
    return max(load.values(), default=0.0)


def _sent(move: Plain, number: int) -> float:
    """Return the MiB that a step sends; the data of a move is divided among the steps that copy."""
    kinds = [step["kind"] for step in move["steps"]]
    copying = [position for position, kind in enumerate(kinds) if kind == StepKind.REPLACE_DISKS] or [0]
    data = move["data"] / len(copying) if number in copying else 0.0
    return float(data + (move["memory"] if kinds[number] == StepKind.MIGRATE else 0.0))
