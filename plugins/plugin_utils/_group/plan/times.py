# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a plan takes at least: what its steps send, over the rate of the links.

    seconds_of(plan, {"web": 4096}, rate=110.0)      # {"stages": [37.2, 9.3], "total": 46.5}

A live migration sends the memory once, and more if it changes on the way; a copy sends a disk. All moves of a stage are under way at once,
so that those that touch a node share its link, which sends and receives at the same time. The stage takes as long as the busiest link.
"""

from __future__ import annotations

import collections
import typing as t
from collections.abc import Iterator, Mapping

from ..cluster.commands import StepKind

Plain = dict[str, t.Any]


def seconds_of(plan: Plain, memory: Mapping[str, float], rate: float) -> Plain:
    """Return the seconds of each stage of a plan as plain data, and of all; `memory` in MiB by instance, `rate` in MiB a second."""
    stages = [_stage([plan["moves"][position] for position in stage], memory) / rate for stage in plan["stages"]]
    return {"stages": [round(one, 1) for one in stages], "total": round(sum(stages), 1)}


def _stage(moves: list[Plain], memory: Mapping[str, float]) -> float:
    """Return the MiB that the busiest link sends or receives."""
    load: dict[tuple[str, str], float] = collections.defaultdict(float)
    for move in moves:
        for source, target, size in _transfers(move, memory.get(move["instance"], 0.0)):
            load["sent", source] += size
            load["received", target] += size
    return max(load.values(), default=0.0)


def _transfers(move: Plain, memory: float) -> Iterator[tuple[str, str, float]]:
    """Yield what goes from which node to which; the data of a move is divided among the steps that copy."""
    copying = [step for step in move["steps"] if step["kind"] == StepKind.REPLACE_DISKS] or move["steps"][:1]
    for step in move["steps"]:
        size = move["data"] / len(copying) if step in copying else 0.0
        size += memory if step["kind"] == StepKind.MIGRATE else 0.0
        if size:
            yield step["from"][0], step["node"], size
