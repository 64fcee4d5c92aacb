# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What no plan of a cluster touches, for the end of every summary: how many instances by the reason, nodes and rules to look after.

answer = with_notes(cluster, answer)             # adds `notes`, and their lines to the summary
answer = with_left_out(answer, left_out_of_balance(cluster))     # or left_out_of_moves, which do not ask for auto_balance
"""

from __future__ import annotations

import collections
import typing as t
from collections.abc import Iterable, Mapping

from ..cluster.model import Cluster, DiskTemplate, Instance, NodeState
from ..cluster.rules import contradictions
from ..cluster.staying import find_staying, unreachable_says

Plain = dict[str, t.Any]


def notes(cluster: Cluster) -> list[str]:
    """Return a sentence on every node that does not answer and is not marked, every rule that cannot hold, and every damaged journal."""
    silent = [unreachable_says(cluster, node.name) for node in cluster.nodes if node.state == NodeState.UNREACHABLE]
    return [
        *silent,
        *(f"{one.says}; they stay where they are" for one in (contradictions(cluster) if cluster.rules else ())),
        *cluster.link_notes,
    ]


def with_notes(cluster: Cluster, answer: Plain) -> Plain:
    """Return an answer with the notes on its cluster, which end its summary."""
    found = notes(cluster)
    return answer | {"notes": found, "summary": "\n\n".join(part for part in (answer["summary"], "\n".join(found)) if part)}


def with_left_out(answer: Plain, counts: Mapping[str, int]) -> Plain:
    """Return an answer with how many instances are left out by each reason, and a last line that says so."""
    line = f"Left out: {', '.join(f'{count} {reason}' for reason, count in counts.items())}." if counts else ""
    return answer | {"left_out": dict(counts), "summary": "\n\n".join(part for part in (answer["summary"], line) if part)}


def left_out_of_balance(cluster: Cluster) -> dict[str, int]:
    """Return how many instances balancing does not move, by the reason."""
    staying = find_staying(cluster)
    reasons = (
        staying[position].reason if position in staying else _own_reason(instance) for position, instance in enumerate(cluster.instances)
    )
    return _counted(filter(None, reasons))


def left_out_of_moves(cluster: Cluster) -> dict[str, int]:
    """Return how many instances no move takes to another node, by the reason; auto_balance is a matter of balancing."""
    return {reason: count for reason, count in left_out_of_balance(cluster).items() if reason != "auto_balance"}


def left_out_of_evacuation(answer: Plain) -> dict[str, int]:
    """Return how many instances of an evacuation stay, by the limit that is named first."""
    return _counted(one["reasons"][0]["limit"] for one in answer["unplaced"] if one["reasons"])


def _own_reason(instance: Instance) -> str:
    if instance.disk_template == DiskTemplate.DISKLESS:
        return "diskless"
    if not instance.movable:
        return "local_disks"
    return "" if instance.auto_balance else "auto_balance"


def _counted(reasons: Iterable[str]) -> dict[str, int]:
    return dict(sorted(collections.Counter(reasons).items()))
