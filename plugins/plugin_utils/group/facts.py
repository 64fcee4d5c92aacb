# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What never changes while instances are placed and moved, as arrays; `state.ClusterState` holds what does.

N nodes, I instances, T exclusion tags, L location tags, P storage pools.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from .model import NODE_DISK, Cluster, Instance, Node, PoolKind, PoolName, StoragePool
from .tags import TagRules, chosen, read_rules, received

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

NOWHERE = -1
"""The position of the node of an instance that has none."""
ANYWHERE = -1
"""The pool of an instance whose storage no node names: on the node's own disk, or reached by every node."""


class Quantity(IntEnum):
    """What is counted per node, and what an instance adds to it; memory and disk in MiB.

    PLANNED rows also count forthcoming instances, as htools' `_forth` metrics do.
    """

    MEMORY = 0
    """Free memory by the books, less what the node reports missing."""
    MEMORY_PLANNED = 1
    """Free memory as the node reports it, less the memory of instances that are not running."""
    DISK = 2
    DISK_PLANNED = 3
    CPUS = 4
    """Virtual CPUs used."""
    CPUS_PLANNED = 5
    SPINDLE_USE = 6
    """I/O pressure of the instances on the node's own disk."""
    SPINDLE_USE_PLANNED = 7
    SPINDLES = 8
    """Free physical spindles; only meaningful with exclusive storage."""
    SPINDLES_PLANNED = 9
    CPU_LOAD = 10
    MEMORY_LOAD = 11
    DISK_LOAD = 12
    NET_LOAD = 13
    PRIMARIES = 14
    """Instances whose primary it is."""
    SECONDARIES = 15


@dataclass(frozen=True)
class NodeFacts:
    """Capacities and tags of the nodes; every array has N entries unless a shape is given."""

    names: tuple[str, ...]
    group: Integers
    total_memory: Floats
    total_disk: Floats
    total_cpus: Floats
    cpu_speed: Floats
    exclusive: Booleans
    total_spindles: Floats
    vcpu_ratio: Floats
    """Of the policy of the node's group."""
    spindle_limit: Floats
    """The most spindle use that the policy allows."""
    locations: Booleans
    """[N, L]: which failure domains the node lies in."""
    shared_locations: Integers
    """[N, N]: how many failure domains two nodes share."""
    accepts: Booleans
    """[N, N]: row may migrate to column, by migration tags."""
    pools: Booleans
    """[N, P]: whether the node reaches the pool."""


@dataclass(frozen=True)
class InstanceFacts:
    """Needs of the instances; every array has I entries unless a shape is given."""

    names: tuple[str, ...]
    models: tuple[Instance, ...]
    as_primary: Floats
    """[Quantity, I]: what placing the instance adds to its primary."""
    as_secondary: Floats
    """[Quantity, I]: what placing the instance adds to its secondary."""
    memory: Floats
    disk: Floats
    """What it takes of its pool or of the node's own disk; 0 where neither counts."""
    reserves: Floats
    """Memory that its secondary keeps for it."""
    real: Booleans
    """Not forthcoming."""
    on_node_disk: Booleans
    two_nodes: Booleans
    """Whether it needs a secondary."""
    spindles_known: Booleans
    exclusion: tuple[tuple[int, ...], ...]
    """Positions of its exclusion tags."""
    wishes: Integers
    """How many locations it desires."""
    desired: tuple[tuple[int, ...], ...]
    """Positions of those desired locations that any node has."""
    pool: Integers
    """Its pool, or ANYWHERE."""


@dataclass(frozen=True)
class Facts:
    """All that stays as it is; shared by every copy of a state."""

    cluster: Cluster
    nodes: NodeFacts
    instances: InstanceFacts
    exclusion_tags: tuple[str, ...]
    location_tags: tuple[str, ...]
    pool_names: tuple[PoolName, ...]
    pool_shared: Booleans
    """[P]: external pools, whose space is one for all nodes."""
    forthcoming: bool
    """Whether any instance is forthcoming; if not, PLANNED rows repeat the others but for memory."""


def collect_facts(cluster: Cluster, instances: Sequence[Instance]) -> Facts:
    """Return the facts of a cluster whose instances, placed or not, are `instances`."""
    rules = read_rules(cluster.tags)
    exclusion_tags = _all_tags([chosen(instance.tags, rules.exclusion) for instance in instances])
    location_tags = _all_tags([chosen(node.tags, rules.location) for node in cluster.nodes])
    pools = sorted({pool.name for node in cluster.nodes for pool in node.storage})
    return Facts(
        cluster=cluster,
        nodes=_node_facts(cluster, rules, location_tags, pools),
        instances=_instance_facts(instances, rules, exclusion_tags, location_tags, pools),
        exclusion_tags=tuple(exclusion_tags),
        location_tags=tuple(location_tags),
        pool_names=tuple(pools),
        pool_shared=np.array([pool.kind == PoolKind.EXTERNAL for pool in pools], dtype=bool),
        forthcoming=any(instance.forthcoming for instance in instances),
    )


def storage_of(node: Node) -> tuple[StoragePool, ...]:
    """Return the node's pools; one that names none has all its disk in the pool that instances use by default."""
    return node.storage or (StoragePool(NODE_DISK, int(node.total_disk), node.free_disk),)


def _all_tags(of_each: Sequence[Sequence[str]]) -> dict[str, int]:
    names = dict.fromkeys(tag for tags in of_each for tag in tags)
    return {name: position for position, name in enumerate(names)}


def _node_facts(cluster: Cluster, rules: TagRules, location_tags: dict[str, int], pools: list[PoolName]) -> NodeFacts:
    nodes = cluster.nodes
    groups = cluster.group_positions()
    group = np.array([groups[node.group] for node in nodes], dtype=np.int64)
    vcpu_ratio = np.array([policy.vcpu_ratio for policy in (member.policy for member in cluster.groups)], dtype=float)
    spindle_ratio = np.array([member.policy.spindle_ratio for member in cluster.groups], dtype=float)
    total_spindles = np.array([node.spindles for node in nodes], dtype=float)
    locations = np.zeros((len(nodes), len(location_tags)), dtype=bool)
    reach = np.zeros((len(nodes), len(pools)), dtype=bool)
    for position, node in enumerate(nodes):
        locations[position, [location_tags[tag] for tag in chosen(node.tags, rules.location)]] = True
        reach[position, [pools.index(pool.name) for pool in storage_of(node) if pool.name in pools]] = True
    counted = locations.astype(np.int64)
    return NodeFacts(
        names=tuple(node.name for node in nodes),
        group=group,
        total_memory=np.array([node.total_memory for node in nodes], dtype=float),
        total_disk=np.array([node.total_disk for node in nodes], dtype=float),
        total_cpus=np.array([node.total_cpus for node in nodes], dtype=float),
        cpu_speed=np.array([node.cpu_speed for node in nodes], dtype=float),
        exclusive=np.array([node.exclusive_storage for node in nodes], dtype=bool),
        total_spindles=total_spindles,
        vcpu_ratio=vcpu_ratio[group],
        spindle_limit=spindle_ratio[group] * total_spindles,
        locations=locations,
        shared_locations=counted @ counted.T,
        accepts=_acceptance(cluster, rules),
        pools=reach,
    )


def _acceptance(cluster: Cluster, rules: TagRules) -> Booleans:
    """Return [N, N]: every migration tag of the row is received by the column."""
    own = [chosen(node.tags, rules.migration) for node in cluster.nodes]
    names = _all_tags(own)
    sent = np.zeros((len(own), len(names)), dtype=np.int64)
    refused = np.ones((len(own), len(names)), dtype=np.int64)
    for position, node in enumerate(cluster.nodes):
        sent[position, [names[tag] for tag in own[position]]] = 1
        refused[position, [names[tag] for tag in received(node.tags, rules) if tag in names]] = 0
    accepts: Booleans = (sent @ refused.T) == 0
    return accepts


def _instance_facts(
    instances: Sequence[Instance],
    rules: TagRules,
    exclusion_tags: dict[str, int],
    location_tags: dict[str, int],
    pools: list[PoolName],
) -> InstanceFacts:
    desired = [chosen(instance.tags, rules.desired) for instance in instances]
    as_primary, as_secondary = _needs(instances)
    real = np.array([not instance.forthcoming for instance in instances], dtype=bool)
    memory = np.array([instance.memory for instance in instances], dtype=float)
    reserved = np.array([instance.reserves_memory for instance in instances], dtype=bool)
    return InstanceFacts(
        names=tuple(instance.name for instance in instances),
        models=tuple(instances),
        as_primary=as_primary,
        as_secondary=as_secondary,
        memory=memory,
        disk=np.array([instance.disk for instance in instances], dtype=float),
        reserves=memory * (reserved & real),
        real=real,
        on_node_disk=np.array([instance.on_node_disk for instance in instances], dtype=bool),
        two_nodes=np.array([instance.disk_template == "drbd" for instance in instances], dtype=bool),
        spindles_known=np.array([instance.spindles is not None for instance in instances], dtype=bool),
        exclusion=tuple(tuple(exclusion_tags[tag] for tag in chosen(instance.tags, rules.exclusion)) for instance in instances),
        wishes=np.array([len(tags) for tags in desired], dtype=np.int64),
        desired=tuple(tuple(location_tags[tag] for tag in tags if tag in location_tags) for tags in desired),
        pool=np.array([_pool(instance, pools) for instance in instances], dtype=np.int64),
    )


def _pool(instance: Instance, pools: list[PoolName]) -> int:
    storage = instance.storage or (NODE_DISK if instance.on_node_disk else None)
    return pools.index(storage) if storage in pools else ANYWHERE


def _needs(instances: Sequence[Instance]) -> tuple[Floats, Floats]:
    """Return what each instance adds to a primary and to a secondary, [Quantity, I] each."""
    primary = np.zeros((len(Quantity), len(instances)))
    secondary = np.zeros((len(Quantity), len(instances)))
    for position, instance in enumerate(instances):
        primary[:, position], secondary[:, position] = _need(instance)
    return primary, secondary


def _need(instance: Instance) -> tuple[Sequence[float], Sequence[float]]:
    real = not instance.forthcoming
    disk = -instance.disk if instance.on_node_disk else 0
    pressure = instance.spindle_use if instance.on_node_disk else 0
    spindles = -(instance.spindles or 0) if instance.on_node_disk else 0
    cpus = instance.vcpus if instance.uses_cpus else 0
    load = instance.load
    primary = (
        -instance.memory if instance.uses_memory else 0,
        -instance.memory,
        disk * real,
        disk,
        cpus * real,
        cpus,
        pressure * real,
        pressure,
        spindles * real,
        spindles,
        load.cpu * real,
        load.memory * real,
        load.disk * real,
        load.net * real,
        real,
        0,
    )
    secondary = (0, 0, disk * real, disk, 0, 0, pressure * real, pressure, spindles * real, spindles, 0, 0, load.disk * real, 0, 0, real)
    return primary, secondary
