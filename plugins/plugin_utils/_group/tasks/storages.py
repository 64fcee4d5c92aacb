# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What group_balance answers with `of: storage`: storages and moves of disks as plain data; the work is in the package storages."""

from __future__ import annotations

import collections
import typing as t
from collections.abc import Mapping, Sequence

from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import refuse_less
from ....module_utils._data.units import format_mib, parse_mib
from ....module_utils._data.words import listed
from ..._common.table import table
from ..cluster.model import Cluster
from ..sources.loaded import Loaded
from ..storages.disks import DiskMove
from ..storages.even import StorageOptions, StoragePlan, even_storages
from ..storages.levels import Key, Storage
from .left_out import with_notes

Plain = dict[str, t.Any]
MOVE_DISK = "move_disk"
_NOT_OF_STORAGES = (
    *("groups", "max_groups", "mode", "score", "min_gain", "data_price", "move_price", "restart_price", "disk_moves", "instance_moves"),
    *("evacuation", "load", "node_load", "max_moves_at_node", "pareto", "time_limit", "workers", "scheduler", "export"),
)
_HEAD = ("storage", "reached by", "size", "used", "after", "level", "after")
_MOST_NAMES = 4


def run_storages(loaded: Loaded, arguments: Mapping[str, t.Any], usual: Mapping[str, t.Any]) -> Plain:
    """Return what the action group_balance documents of storages; `usual` are its defaults. Raises InputError with all mistakes."""
    mistakes = Mistakes()
    refuse_less(arguments, {"max_moves": 0, "tolerance": 0}, mistakes)
    for name in _NOT_OF_STORAGES:
        if arguments.get(name) not in (None, usual.get(name)):
            mistakes.add(name, "has no meaning for storages; leave it out with of: storage")
    tolerance = StorageOptions.tolerance if arguments.get("tolerance") is None else arguments["tolerance"]
    options = StorageOptions(tolerance, _mib(arguments.get("max_data"), mistakes), arguments.get("max_moves"))
    cluster = loaded.cluster
    if cluster.instances and all(disk.storage is None for instance in cluster.instances for disk in instance.disks):
        says = "is storage, but no disk says which storage it lies in; a source of type proxmox does, or `disks` of a cluster written out"
        mistakes.add("of", says)
    mistakes.check()
    plan = even_storages(cluster, options)
    answer: Plain = {
        "storages": [_storage_to_plain(*pair) for pair in zip(plan.before, plan.after)],
        "plan": _plan_to_plain(cluster, plan),
        "stays": [{"instance": one.instance, "disk": one.disk, "storage": one.storage, "why": one.why} for one in plan.stays],
        "blocked": [f"{move.instance.name} {move.disk}" for move in plan.staged.blocked],
        "complete": plan.complete,
    }
    return with_notes(cluster, answer | {"summary": summary(plan, answer)})


def _mib(given: object, mistakes: Mistakes) -> int | None:
    try:
        return None if given is None else int(parse_mib(str(given)))
    except ValueError as error:
        mistakes.add("max_data", str(error))
        return None


def _storage_to_plain(before: Storage, after: Storage) -> Plain:
    return {
        "storage": before.name.pool,
        "type": str(before.name.kind),
        "nodes": list(before.nodes),
        "total": before.total,
        "used_before": before.used,
        "used_after": after.used,
        "level_before": before.level,
        "level_after": after.level,
    }


def _plan_to_plain(cluster: Cluster, plan: StoragePlan) -> Plain:
    """Return the plan in the shape of all plans of moves; its scores are MiB of excess."""
    group_of = {node.name: node.group for node in cluster.nodes}
    return {
        "score_before": plan.excess_before,
        "score_after": plan.excess_after,
        "moves": [
            _move_to_plain(move, group_of[move.instance.primary]) | {"after": list(earlier)}
            for move, earlier in zip(plan.moves, plan.staged.after)
        ],
        "stages": [list(stage) for stage in plan.staged.stages],
        "commands": [],
        "nodes": [],
    }


def _move_to_plain(move: DiskMove, group: str) -> Plain:
    home = [move.instance.primary]
    disk = {"disk": move.disk, "from_storage": move.source[0].pool, "to_storage": move.target[0].pool}
    step = {"kind": MOVE_DISK, "from": home, "to": home, "node": home[0], "online": True, "command": "", **disk}
    return {
        "instance": move.instance.name,
        "kind": MOVE_DISK,
        "from": home,
        "to": home,
        **disk,
        "group": group,
        "data": move.size,
        "steps": [step],
        "commands": [],
    }


def _called(key: Key) -> str:
    """Return how a storage is called where others of its name may be."""
    name, node = key
    return f"{name.pool} of {node}" if node else name.pool


def summary(plan: StoragePlan, answer: Plain) -> str:
    """Return an answer as text to read: how full the storages are, the moves, and which disks stay for which reasons."""
    changed = [pair for pair in zip(plan.before, plan.after) if pair[0].used != pair[1].used]
    others = [pair for pair in zip(plan.before, plan.after) if pair[0].used == pair[1].used]
    rows = [_level_row(*pair) for pair in (*changed, *others)]
    parts = [table(_HEAD, rows, right=_HEAD[2:])] if rows else ["No node that answers reports how full a storage is."]
    copied = format_mib(sum(move.size for move in plan.moves))
    count = len(plan.moves)
    head = (
        f"{count} disk{'' if count == 1 else 's'} move{'s' if count == 1 else ''}, {copied} are copied."
        if count
        else "No disk needs to move."
    )
    left = [f"{format_mib(plan.excess_after)} are still out of balance."] if plan.excess_after else []
    left += [f"There is a better storage for {name}, but no room on the way to it." for name in answer["blocked"]]
    left += [] if plan.complete else ["The search ended early; there may be a better plan."]
    parts += ["\n".join([head, *left])]
    if plan.moves:
        parts.append(table(("stage", "instance", "disk", "from", "to", "copied"), _move_rows(plan), right=("stage", "copied")))
    parts += ["\n".join(_staying(plan))] if plan.stays else []
    return "\n\n".join(parts)


def _level_row(before: Storage, after: Storage) -> tuple[str, ...]:
    sizes = (format_mib(before.total), format_mib(before.used), format_mib(after.used))
    return before.name.pool, listed(before.nodes, _MOST_NAMES), *sizes, f"{before.level:.1%}", f"{after.level:.1%}"


def _move_rows(plan: StoragePlan) -> list[tuple[str, ...]]:
    return [
        (str(number), move.instance.name, move.disk, _called(move.source), _called(move.target), format_mib(move.size))
        for number, stage in enumerate(plan.staged.stages, start=1)
        for move in (plan.moves[position] for position in stage)
    ]


def _staying(plan: StoragePlan) -> Sequence[str]:
    """Return a line for each reason why disks stay, with some of them."""
    by_reason: dict[str, list[str]] = collections.defaultdict(list)
    for one in plan.stays:
        by_reason[one.why].append(f"{one.instance} {one.disk}")
    return [f"stay, as {why}: {listed(names, _MOST_NAMES)}" for why, names in by_reason.items()]
