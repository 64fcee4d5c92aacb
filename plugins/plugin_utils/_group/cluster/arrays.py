# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What never changes while instances are placed and moved, as arrays; `state.ClusterState` holds what does.

N nodes, I instances, T slots of exclusion tags and rules, L location tags, P storage pools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from ..._common.libraries import np, npt
from .model import (
    MIRRORED_OUTSIDE,
    NODE_DISK,
    ON_NODE_DISK,
    Cluster,
    DiskTemplate,
    Instance,
    Node,
    PoolKind,
    PoolName,
    StoragePool,
)
from .rules import Slots, collect_slots
from .staying import Staying, find_staying
from .tags import TagRules, chosen, read_rules, received

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

NOWHERE = -1
"""The position of the node of an instance that has none."""
ANYWHERE = -1
"""The pool of an instance whose storage no node names: on the node's own disk, or reached by every node."""


_DEARER = np.array([0.0, 1.0, 30.0])
"""How many times the price of a move is by `Turn`."""


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


_PLANNED = {
    Quantity.DISK: Quantity.DISK_PLANNED,
    Quantity.CPUS: Quantity.CPUS_PLANNED,
    Quantity.SPINDLE_USE: Quantity.SPINDLE_USE_PLANNED,
    Quantity.SPINDLES: Quantity.SPINDLES_PLANNED,
}


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
    cpu_limit: Floats
    """The most virtual CPUs that the policy of the node's group allows."""
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
    restarts: Booleans
    """Whether it runs on storage that others reach, so that it can be started anywhere when its node fails."""
    along: Booleans
    """Whether its disks lie within its only node, and are copied as a whole when it moves."""
    stopped_to_move: Booleans
    """Whether it runs, and is stopped and started again to be moved."""
    spindles_known: Booleans
    turn: Integers
    """Whose turn it is to move, as `Turn`."""
    dearer: Floats
    """By how much the turn makes moves dearer."""
    stays: Booleans
    """Whether no step may be planned for it; `Facts.staying` says why."""
    exclusion: tuple[tuple[int, ...], ...]
    """Positions of its slots: exclusion tags and rules."""
    wishes: Integers
    """How many locations it desires."""
    desired: tuple[tuple[int, ...], ...]
    """Positions of those desired locations that any node has."""
    pool: Integers
    """Its pool, or ANYWHERE."""


@dataclass(frozen=True, eq=False)
class Facts:
    """All that stays as it is; shared by every copy of a state, and so known by which one it is."""

    cluster: Cluster
    nodes: NodeFacts
    instances: InstanceFacts
    slots: Slots
    """Exclusion tags and rules."""
    location_tags: tuple[str, ...]
    pool_names: tuple[PoolName, ...]
    pool_shared: Booleans
    """[P]: external pools, whose space is one for all nodes."""
    forthcoming: bool
    """Whether any instance is forthcoming; if not, PLANNED rows repeat the others but for memory."""
    staying: Mapping[int, Staying]
    """Of which instances no step may be planned, and why."""


def collect_facts(cluster: Cluster, instances: Sequence[Instance]) -> Facts:
    """Return the facts of a cluster whose instances, placed or not, are `instances`."""
    rules = read_rules(cluster.tags)
    slots = collect_slots(cluster, instances, _chosen_tags(instances, rules.exclusion))
    location_tags = _all_tags(_chosen_tags(cluster.nodes, rules.location))
    pools = sorted({pool.name for node in cluster.nodes for pool in node.storage})
    staying = find_staying(cluster)
    return Facts(
        cluster=cluster,
        nodes=_node_facts(cluster, rules, location_tags, pools),
        instances=_instance_facts(
            instances,
            slots.of_instance,
            _chosen_tags(instances, rules.desired),
            location_tags,
            pools,
            staying,
        ),
        slots=slots,
        location_tags=tuple(location_tags),
        pool_names=tuple(pools),
        pool_shared=np.array([pool.kind == PoolKind.EXTERNAL for pool in pools], dtype=bool),
        forthcoming=any(instance.forthcoming for instance in instances),
        staying=staying,
    )


def storage_of(node: Node) -> tuple[StoragePool, ...]:
    """Return the node's pools; one that names none has all its disk in the pool that instances use by default."""
    return node.storage or (StoragePool(NODE_DISK, int(node.total_disk), node.free_disk),)


def _chosen_tags(owners: Sequence[Instance] | Sequence[Node], prefixes: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the tags of each owner that start with one of the prefixes; most clusters have no such rule."""
    return tuple(chosen(owner.tags, prefixes) for owner in owners) if prefixes else ((),) * len(owners)


def _all_tags(of_each: Iterable[Sequence[str]]) -> dict[str, int]:
    names = dict.fromkeys(tag for tags in of_each for tag in tags)
    return {name: position for position, name in enumerate(names)}


def _positions(of_each: Iterable[Sequence[str]], known: dict[str, int]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(known[tag] for tag in tags if tag in known) if tags else () for tags in of_each)


def _node_facts(cluster: Cluster, rules: TagRules, location_tags: dict[str, int], pools: list[PoolName]) -> NodeFacts:
    nodes = cluster.nodes
    groups = cluster.group_positions()
    group = np.array([groups[node.group] for node in nodes], dtype=np.int64)
    vcpu_ratio = np.array([member.policy.vcpu_ratio for member in cluster.groups], dtype=float)
    total_cpus = np.array([node.total_cpus for node in nodes], dtype=float)
    spindle_ratio = np.array([member.policy.spindle_ratio for member in cluster.groups], dtype=float)
    total_spindles = np.array([node.spindles for node in nodes], dtype=float)
    locations = np.zeros((len(nodes), len(location_tags)), dtype=bool)
    reach = np.zeros((len(nodes), len(pools)), dtype=bool)
    for position, tags in enumerate(_positions(_chosen_tags(nodes, rules.location), location_tags)):
        locations[position, tags] = True
    if pools:
        for position, node in enumerate(nodes):
            reach[position, [pools.index(pool.name) for pool in storage_of(node) if pool.name in pools]] = True
    counted = locations.astype(np.int64)
    shared = counted @ counted.T if location_tags else np.zeros((len(nodes), len(nodes)), dtype=np.int64)
    return NodeFacts(
        names=tuple(node.name for node in nodes),
        group=group,
        total_memory=np.array([node.total_memory for node in nodes], dtype=float),
        total_disk=np.array([node.total_disk for node in nodes], dtype=float),
        total_cpus=total_cpus,
        cpu_speed=np.array([node.cpu_speed for node in nodes], dtype=float),
        exclusive=np.array([node.exclusive_storage for node in nodes], dtype=bool),
        total_spindles=total_spindles,
        cpu_limit=vcpu_ratio[group] * total_cpus,
        spindle_limit=spindle_ratio[group] * total_spindles,
        locations=locations,
        shared_locations=shared,
        accepts=_acceptance(cluster, rules),
        pools=reach,
    )


def _acceptance(cluster: Cluster, rules: TagRules) -> Booleans:
    """Return [N, N]: every migration tag of the row is received by the column."""
    own = _chosen_tags(cluster.nodes, rules.migration)
    names = _all_tags(own)
    if not names:
        return np.ones((len(own), len(own)), dtype=bool)
    sent = np.zeros((len(own), len(names)), dtype=np.int64)
    refused = np.ones((len(own), len(names)), dtype=np.int64)
    for position, node in enumerate(cluster.nodes):
        sent[position, [names[tag] for tag in own[position]]] = 1
        refused[position, [names[tag] for tag in received(node.tags, rules) if tag in names]] = 0
    accepts: Booleans = (sent @ refused.T) == 0
    return accepts


@dataclass(frozen=True)
class _Basics:
    """What several facts of the instances are made of; arrays of I."""

    real: Booleans
    running: Booleans
    on_node_disk: Booleans
    memory: Floats
    disk: Floats
    spindles: Sequence[int | None]


def _instance_facts(
    instances: Sequence[Instance],
    exclusion: tuple[tuple[int, ...], ...],
    desired: Sequence[Sequence[str]],
    location_tags: dict[str, int],
    pools: list[PoolName],
    staying: Mapping[int, Staying],
) -> InstanceFacts:
    basics = _Basics(
        real=~_truths([instance.forthcoming for instance in instances]),
        running=_truths([instance.uses_memory for instance in instances]),
        on_node_disk=_truths([instance.disk_template in ON_NODE_DISK for instance in instances]),
        memory=_numbers([instance.memory for instance in instances]),
        disk=_numbers([instance.disk for instance in instances]),
        spindles=[instance.spindles for instance in instances],
    )
    as_primary, as_secondary = _needs(instances, basics)
    reserved = _truths([instance.reserves_memory for instance in instances])
    stays = np.zeros(len(instances), dtype=bool)
    stays[list(staying)] = True
    return InstanceFacts(
        names=tuple([instance.name for instance in instances]),
        models=tuple(instances),
        as_primary=as_primary,
        as_secondary=as_secondary,
        memory=basics.memory,
        disk=basics.disk,
        reserves=basics.memory * (reserved & basics.real),
        real=basics.real,
        on_node_disk=basics.on_node_disk,
        two_nodes=_truths([instance.disk_template is DiskTemplate.DRBD for instance in instances]),
        restarts=basics.running
        & _truths([instance.disk_template in MIRRORED_OUTSIDE and not instance.takes_disk_along for instance in instances]),
        along=_truths([instance.takes_disk_along and not instance.replicated for instance in instances]),
        stopped_to_move=_truths([instance.runs and not instance.live for instance in instances]),
        spindles_known=_truths([spindles is not None for spindles in basics.spindles]),
        turn=(turn := np.array([instance.turn for instance in instances], dtype=np.int64)),
        dearer=_DEARER[turn],
        stays=stays,
        exclusion=exclusion,
        wishes=np.array([len(tags) for tags in desired], dtype=np.int64),
        desired=_positions(desired, location_tags),
        pool=_pools(instances, pools),
    )


def _numbers(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)


def _truths(values: Sequence[bool]) -> Booleans:
    return np.array(values, dtype=np.bool_)


def _pools(instances: Sequence[Instance], pools: list[PoolName]) -> Integers:
    """Return each instance's pool; where no node names any there is nothing to look for."""
    if not pools:
        return np.full(len(instances), ANYWHERE, dtype=np.int64)
    named = (instance.storage or (NODE_DISK if instance.on_node_disk else None) for instance in instances)
    return np.array([pools.index(storage) if storage in pools else ANYWHERE for storage in named], dtype=np.int64)


def _needs(instances: Sequence[Instance], basics: _Basics) -> tuple[Floats, Floats]:
    """Return what each instance adds to a primary and to a secondary, [Quantity, I] each."""
    real, local = basics.real, basics.on_node_disk
    on_disk = {
        Quantity.DISK: -basics.disk * local,
        Quantity.SPINDLE_USE: _numbers([instance.spindle_use for instance in instances]) * local,
        Quantity.SPINDLES: -_numbers([spindles or 0 for spindles in basics.spindles]) * local,
    }
    once = {
        Quantity.CPUS: _numbers([instance.vcpus if instance.uses_cpus else 0 for instance in instances]),
        **on_disk,
    }
    loads = {
        Quantity.CPU_LOAD: _numbers([instance.load.cpu for instance in instances]),
        Quantity.MEMORY_LOAD: _numbers([instance.load.memory for instance in instances]),
        Quantity.DISK_LOAD: _numbers([instance.load.disk for instance in instances]),
        Quantity.NET_LOAD: _numbers([instance.load.net for instance in instances]),
    }
    primary = np.zeros((len(Quantity), len(instances)))
    secondary = np.zeros((len(Quantity), len(instances)))
    primary[Quantity.MEMORY] = -basics.memory * basics.running
    primary[Quantity.MEMORY_PLANNED] = -basics.memory
    for quantity, need in once.items():
        primary[quantity] = need * real
        primary[_PLANNED[quantity]] = need
    for quantity, need in on_disk.items():
        secondary[quantity] = need * real
        secondary[_PLANNED[quantity]] = need
    for quantity, need in loads.items():
        primary[quantity] = need * real
    secondary[Quantity.DISK_LOAD] = loads[Quantity.DISK_LOAD] * real
    primary[Quantity.PRIMARIES] = real
    secondary[Quantity.SECONDARIES] = real
    return primary, secondary
