# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has become of the moves that an earlier run decided on: done, left to do, or no longer right.

settled = settle(record, where, now)
settled.record, settled.left        # with what is done noted; the instances that are not where they should be
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ....module_utils._data.errors import InputError
from ..plan.progress import Progress
from ..plan.steps import MovePlan, Nodes, PlannedMove
from .record import Record


@dataclass(frozen=True)
class Settled:
    """The record with what is done noted; `left` are the places that instances of its pending moves have yet to reach, by name."""

    record: Record
    left: Mapping[str, Nodes]


def settle(record: Record, where: Mapping[str, Nodes], now: datetime) -> Settled:
    """Return what has become of pending moves; `where` are the nodes of all instances, the primary first.

    Moves that are all done, or that lead from somewhere where an instance no longer is, are not pending any more.
    """
    if record.pending is None:
        return Settled(record, {})
    plan = record.pending.moves()
    targets = {move.instance: move.steps[-1].target for move in _in_order(plan)}
    left = {instance: place for instance, place in targets.items() if where.get(instance) != place}
    if left and _is_on_its_way(plan, where):
        return Settled(record, left)
    return Settled(dropped(record, where, now), {})


def dropped(record: Record, where: Mapping[str, Nodes], now: datetime) -> Record:
    """Return the record without pending moves; groups and instances that they did move rest from now on."""
    if record.pending is None:
        return record
    plan, pending = record.pending.moves(), record.pending
    begun = {move.instance: move.steps[0].source for move in reversed(_in_order(plan))}
    moved = [instance for instance in begun if where.get(instance, begun[instance]) != begun[instance]]
    record = dataclasses.replace(record, pending=None, moved={**record.moved, **dict.fromkeys(moved, now)})
    if moved:
        for group in pending.groups:
            record = record.with_group(group, dataclasses.replace(record.group(group), acted=now))
    return record


def _in_order(plan: MovePlan) -> list[PlannedMove]:
    return [plan.moves[move] for stage in plan.stages for move in stage]


def _is_on_its_way(plan: MovePlan, where: Mapping[str, Nodes]) -> bool:
    try:
        Progress.start(plan).seen(plan, where)
    except InputError:
        return False
    return True
