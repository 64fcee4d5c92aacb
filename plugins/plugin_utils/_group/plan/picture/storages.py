# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pictures of disks that move between storages: storages are rows, and those that the same nodes reach share a picture."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence

from .....module_utils._data.units import format_mib
from .....module_utils._data.words import listed
from .draw import Bar, Move, Picture, Plain, Row, change, draw, part, stage_of

METRICS = ("disk",)
_OTHERS = "Other storages"
_MOST_NAMES = 4


def storage_pictures(plan: Plain, storages: Sequence[Plain]) -> list[Picture]:
    """Return the pictures of a plan of group_balance with `of: storage`, and, without moves, of what nothing moves in.

    `storages` are those of its result.
    """
    rows, moves = storage_parts(plan, storages)
    sets: dict[str, list[Row]] = collections.defaultdict(list)
    for row in rows:
        sets[row.group].append(row)
    largest = max((move.data for move in moves), default=0)
    found, others = [], list[Row]()
    for nodes, members in sets.items():
        inside = {row.name for row in members}
        here = [move for move in moves if move.lines[0][1] in inside]
        if here:
            found.append(draw({nodes: members}, here, largest))
        else:
            others += members
    return [*found, draw({_OTHERS: others}, [], largest)] if others else found


def storage_parts(plan: Plain, storages: Sequence[Plain]) -> tuple[list[Row], list[Move]]:
    """Return a row for each storage and what is drawn of each move, in the order of the plan."""
    # A row for each storage; for those with the same name the label has the node.
    counts = collections.Counter(storage["storage"] for storage in storages)
    rows = [_row(storage, number, counts[storage["storage"]] > 1) for number, storage in enumerate(storages)]
    name_of = {(storage["storage"], node): row.name for storage, row in zip(storages, rows) for node in storage["nodes"]}
    stages = stage_of(plan)
    return rows, [_move(move, stages[at], name_of) for at, move in enumerate(plan["moves"])]


def _row(storage: Plain, number: int, many: bool) -> Row:
    label = f"{storage['storage']} of {listed(storage['nodes'], 1)}" if many else storage["storage"]
    before, after = (_bar(storage, when) for when in ("before", "after"))
    words = (change(before, after), f"reached by {listed(storage['nodes'], _MOST_NAMES)}")
    return Row(
        f"{label} ({number})",
        label,
        number,
        before=(before,),
        after=(after,),
        words=words,
        group=f"Storages of {listed(storage['nodes'], _MOST_NAMES)}",
    )


def _bar(storage: Plain, when: str) -> Bar:
    used, total = storage[f"used_{when}"], storage["total"]
    words = f"{format_mib(used)} of {format_mib(total)}, {storage[f'level_{when}']:.1%}"
    return Bar("disk", part(used, total), 0, part(storage["used_before"], total), words)


def _move(move: Plain, stage: int, name_of: Mapping[tuple[str, str], str]) -> Move:
    node = move["from"][0]
    line = ("primary", name_of[move["from_storage"], node], name_of[move["to_storage"], node])
    way = f"{move['from_storage']} → {move['to_storage']}"
    return Move(f"{move['instance']} {move['disk']}", (line,), stage, move["data"], way, f"on {node}")
