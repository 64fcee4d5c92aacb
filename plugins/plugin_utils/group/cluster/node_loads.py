# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lies on the nodes before a plan and after it, as plain data: what pictures and tables of a plan are made from."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable

import numpy as np

from .arrays import NOWHERE, Quantity
from .moves import Move
from .state import ClusterState


def touched_groups(state: ClusterState, moves: Iterable[Move]) -> frozenset[int]:
    """Return the groups of all nodes that moves leave or reach."""
    places = (place for move in moves for place in (move.source, *move.steps))
    return frozenset(int(state.facts.nodes.group[node]) for place in places for node in place if node != NOWHERE)


def node_loads(before: ClusterState, after: ClusterState, groups: Iterable[int]) -> list[dict[str, t.Any]]:
    """Return, for each node of the groups, its capacity and what is used of it in two states of a cluster.

    Memory (of instances, of the node itself, and `reserved` for failovers to it) and disk are MiB, `cpus` virtual ones,
    `load` the sum of the four loads; `capacity.cpus` is how many virtual CPUs the group's policy allows.
    """
    nodes = before.facts.nodes
    return [
        {
            "node": nodes.names[node],
            "group": before.facts.cluster.groups[nodes.group[node]].name,
            "offline": bool(before.offline[node]),
            "capacity": {
                "memory": round(nodes.total_memory[node]),
                "disk": round(nodes.total_disk[node]),
                "cpus": float(nodes.total_cpus[node] * nodes.vcpu_ratio[node]),
            },
            "before": _used(before, node),
            "after": _used(after, node),
        }
        for node in np.flatnonzero(np.isin(nodes.group, list(groups))).tolist()
    ]


def _used(state: ClusterState, node: int) -> dict[str, t.Any]:
    quantity = state.quantities[:, node]
    nodes = state.facts.nodes
    loads = (Quantity.CPU_LOAD, Quantity.MEMORY_LOAD, Quantity.DISK_LOAD, Quantity.NET_LOAD)
    return {
        "memory": round(nodes.total_memory[node] - quantity[Quantity.MEMORY]),
        "reserved": round(state.reserved[node]),
        "disk": round(nodes.total_disk[node] - quantity[Quantity.DISK]),
        "cpus": round(quantity[Quantity.CPUS]),
        "load": round(float(sum(quantity[load] for load in loads)), 6),
        "primaries": round(quantity[Quantity.PRIMARIES]),
        "secondaries": round(quantity[Quantity.SECONDARIES]),
    }
