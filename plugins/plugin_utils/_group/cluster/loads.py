# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measured load: what instances were seen to use, and what nodes were, put into the model.

    cluster = with_loads(cluster, loads, node_loads)

An instance has the load that was measured for it. What was measured for a node beyond that is shared by those of its
primaries that have none of their own: CPU by virtual CPUs, memory by memory, disk by disk, network alike.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Callable, Iterable, Mapping, Sequence

from ....module_utils._data.containers import Row, Table
from ....module_utils._data.errors import Mistakes, suggest
from ....module_utils._data.kinds import Number
from ..._common.libraries import np
from .arrays import NOWHERE, Quantity
from .model import Cluster, Instance, Load
from .moves import Move
from .state import ClusterState

_SHARES: Mapping[str, Callable[[Instance], float]] = {
    "cpu": lambda instance: float(instance.vcpus),
    "memory": lambda instance: float(instance.memory),
    "disk": lambda instance: float(instance.disk),
    "net": lambda _instance: 1.0,
}


def with_loads(cluster: Cluster, loads: Mapping[str, Load], node_loads: Mapping[str, Load]) -> Cluster:
    """Return the cluster with measured loads of instances and nodes, by name; both may leave some out."""
    shared = {}
    for node, load in node_loads.items():
        shared.update(_shared(cluster, node, load, loads))
    found = {**shared, **loads}
    instances = tuple(dataclasses.replace(instance, load=found.get(instance.name, instance.load)) for instance in cluster.instances)
    return dataclasses.replace(cluster, instances=instances)


def _shared(cluster: Cluster, node: str, load: Load, known: Mapping[str, Load]) -> dict[str, Load]:
    """Return the loads of a node's primaries that were not measured themselves."""
    here = [instance for instance in cluster.instances if instance.primary == node]
    unknown = [instance for instance in here if instance.name not in known]
    parts: dict[str, dict[str, float]] = {instance.name: {} for instance in unknown}
    for kind, share in _SHARES.items():
        measured = sum(float(getattr(known[instance.name], kind)) for instance in here if instance.name in known)
        left = max(0.0, float(getattr(load, kind)) - measured)
        total = sum(share(instance) for instance in unknown)
        for instance in unknown:
            parts[instance.name][kind] = left * share(instance) / total if total else 0.0
    return {name: Load(**found) for name, found in parts.items()}


_LOAD = Table("a load", [Row(name, Number(0, digits=True), default=0.0) for name in _SHARES])


def read_loads(
    arguments: Mapping[str, t.Any],
    option: str,
    known: Sequence[str],
    kind: str,
    mistakes: Mistakes,
) -> dict[str, Load]:
    """Return the loads of an option by name, parts that were not measured as 0; what is wrong is added to the mistakes."""
    found = {}
    names = set(known)
    for name, given in (arguments.get(option) or {}).items():
        place = f"{option}[{name}]"
        if name not in names:
            mistakes.add(place, f"unknown {kind}{suggest(str(name), known)}")
        found[name] = Load(**_LOAD.read_nested(given, place, mistakes))
    return found


def touched_groups(state: ClusterState, moves: Iterable[Move]) -> frozenset[int]:
    """Return the groups of all nodes that moves leave or reach."""
    places = (place for move in moves for place in (move.source, *move.steps))
    return frozenset(int(state.facts.nodes.group[node]) for place in places for node in place if node != NOWHERE)


def node_loads(before: ClusterState, after: ClusterState, groups: Iterable[int]) -> list[dict[str, t.Any]]:
    """Return, for each node of the groups, its capacity and its use in two states of a cluster.

    Memory (of instances, of the node itself, and `reserved` for failovers to it) and disk are MiB, `cpus` virtual ones,
    `load` the sum of the four loads; `capacity.cpus` is how many virtual CPUs the group's policy allows.
    """
    nodes = before.facts.nodes
    return [
        {
            "node": nodes.names[node],
            "group": before.facts.cluster.groups[nodes.group[node]].name,
            "offline": bool(before.offline[node]),
            "state": str(before.node_state(node)),
            "capacity": {
                "memory": round(nodes.total_memory[node]),
                "disk": round(nodes.total_disk[node]),
                "cpus": float(nodes.cpu_limit[node]),
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
