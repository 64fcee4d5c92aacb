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
from collections.abc import Callable, Mapping

from .model import Cluster, Instance, Load

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
