# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a group cannot carry more copies of an instance than, as it is and with nodes added to it.

like = cluster.nodes[usual_node(cluster, group)]
bound = Bound.of(with_nodes(cluster, like, 1), instance, group, options)
bound.most(0), bound.most(7)            # copies, as it is and with seven nodes like that
"""

from __future__ import annotations

import collections
import dataclasses
import math
from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import Floats, Integers, Quantity
from ..cluster.model import Cluster, Instance, Node, NodeState
from ..cluster.state import ClusterState
from ..metrics.limits import REDUNDANCY, capacity, counted_as_used, usage
from ..metrics.shared_redundancy import stranded_memory
from .copies import CopyOptions, room_for


@dataclass(frozen=True)
class _Restarts:
    """What bounds copies on shared storage: what is on a node that fails has to fit into what the others have left. All in MiB."""

    left: float
    """What other nodes have left if the node whose failure needs most fails, less that need."""
    all_left: float
    """What all have left."""
    brings: float
    """What an added node has."""
    memory: float
    """What a copy needs."""

    @classmethod
    def of(cls, cluster: Cluster, group: int, nodes: Integers, free: Floats, memory: float) -> _Restarts:
        """Return the bound for the nodes of a group, the last of which is an added one; `free` is what they have left."""
        state = ClusterState.from_cluster(cluster)
        allowed = stranded_memory(state, group, exact=True)
        load = np.zeros(len(state.offline) + 1)
        restarts = state.facts.instances.restarts
        np.add.at(load, state.primary[restarts], state.facts.instances.memory[restarts])
        here = nodes[:-1]
        all_left = float(free[:-1].sum())
        spare = all_left - free[:-1] - load[here] + [allowed.get(node, 0.0) for node in here.tolist()]
        return cls(float(spare.min(initial=np.inf)), all_left, float(free[-1]), memory)

    def most(self, number: int) -> float:
        """Return the bound with `number` added nodes, any of which may fail as well."""
        left = self.left + number * self.brings
        left = min(left, self.all_left + (number - 1) * self.brings) if number else left
        return left // self.memory


@dataclass(frozen=True)
class Bound:
    """How many copies a group cannot carry more than, by what follows from the sums of what nodes have."""

    each: float
    """Copies of an added node by its own limits."""
    here: float
    """Those of all others together."""
    restarts: _Restarts | None
    mirrored: tuple[float, float, float, float, int] | None
    """MiB left but for what mirrors keep, MiB that each added node brings, MiB of a copy and of its mirror, and the nodes."""

    @classmethod
    def of(cls, cluster: Cluster, instance: Instance, group: int, options: CopyOptions) -> Bound:
        """Return the bound of a cluster whose last node is an added one."""
        room = room_for(cluster, instance)
        nodes = room.group_nodes(group)
        nodes = nodes[~room.offline[nodes]]
        most = _most_by_node(room, nodes, options)
        free = room.quantities[Quantity.MEMORY, nodes]
        memory = float(counted_as_used(room.facts.instances.as_primary[:, 0])[Quantity.MEMORY])
        restarts = mirrored = None
        if memory > 0 and room.facts.instances.restarts[0]:
            restarts = _Restarts.of(cluster, group, nodes, np.maximum(free, 0.0), memory)
        if memory > 0 and room.facts.instances.two_nodes[0]:
            short = np.maximum(room.reserved[nodes] - free, 0.0).sum()
            mirrored = (float(free[:-1].sum() + short), float(free[-1]), memory, float(room.facts.instances.reserves[0]), len(nodes) - 1)
        return cls(float(most[-1]), float(most[:-1].sum()), restarts, mirrored)

    def most(self, number: int) -> float:
        """Return the bound with `number` added nodes."""
        bounds = [self.here + (number * self.each if number else 0.0)]
        bounds += [] if self.restarts is None else [self.restarts.most(number)]
        if self.mirrored is not None:
            left, brings, memory, mirror, nodes = self.mirrored
            # One of the nodes has no fewer primaries than all have on average, and the others keep memory for all of these.
            bounds.append(math.floor((left + number * brings) / (memory + mirror / (nodes + number))))
        return max(min(bounds), 0.0)


def _most_by_node(room: ClusterState, nodes: Integers, options: CopyOptions) -> Floats:
    """Return [K]: how many copies each node has memory, CPUs and disk for, infinite where they need none of these."""
    needs = counted_as_used(room.facts.instances.as_primary[:, 0])
    left = capacity(room.facts, options.rules.least_left)[:, nodes] - usage(room, nodes)
    rows = [(row, needs[row]) for row in (Quantity.MEMORY, Quantity.CPUS)] + [(REDUNDANCY, needs[Quantity.MEMORY])]
    rows += [(Quantity.DISK, needs[Quantity.DISK])] if room.facts.instances.on_node_disk[0] else []
    most = [np.floor(np.maximum(left[row], 0.0) / need) for row, need in rows if need > 0]
    found: Floats = np.min(most, axis=0) if most else np.full(len(nodes), np.inf)
    return found


def usual_node(cluster: Cluster, group: int) -> int:
    """Return a node of the hardware that most of a group's nodes have; online ones before others."""
    name = cluster.groups[group].name
    members = [position for position, node in enumerate(cluster.nodes) if node.group == name]
    usual = collections.Counter(_hardware(cluster.nodes[position]) for position in members)
    return max(
        members, key=lambda position: (usual[_hardware(cluster.nodes[position])], cluster.nodes[position].state == NodeState.UP, -position)
    )


def _hardware(node: Node) -> tuple[float, ...]:
    return node.total_memory, node.total_disk, node.total_cpus, node.cpu_speed, node.spindles


def with_nodes(cluster: Cluster, like: Node, number: int) -> Cluster:
    """Return a cluster with empty nodes of the same make added."""
    storage = tuple(pool if pool.name.kind == "external" else dataclasses.replace(pool, free=pool.total) for pool in like.storage)
    empty = dataclasses.replace(
        like,
        free_memory=int(like.total_memory) - like.node_memory,
        free_disk=int(like.total_disk),
        free_spindles=like.spindles if like.exclusive_storage else like.free_spindles,
        offline=False,
        drained=False,
        unreachable=False,
        master=False,
        storage=storage,
    )
    added = tuple(dataclasses.replace(empty, name=f"{like.name}+{position + 1}") for position in range(number))
    return dataclasses.replace(cluster, nodes=(*cluster.nodes, *added))
