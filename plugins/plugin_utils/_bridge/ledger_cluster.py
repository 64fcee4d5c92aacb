# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bridge from the ledger to groups: trees of providers become nodes, consumers become instances, aggregates become groups.

    read_cluster(database, {"rack-a": "5e3c..."})      # opens the database
    world_to_cluster(world, aggregates)                # the same for a world that is there

A tree with CPUs or memory is a node with the sums of its providers. What may be in use at once counts, that is
`(total - reserved) * allocation_ratio`; so memory and disk are never overcommitted further, and every group's policy allows one
virtual CPU for each CPU of a node and instances of every size. A provider that shares its DISK_GB is an external storage pool of the
trees that have an aggregate in common with it. A tree whose root has COMPUTE_STATUS_DISABLED takes nothing new: it is drained.
"""

from __future__ import annotations

import typing as t
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...module_utils._data.errors import Mistakes, suggest
from .._common.libraries import os_traits
from .._group.cluster.check import Places, check_cluster
from .._group.cluster.model import (
    NODE_DISK,
    Cluster,
    Disk,
    DiskTemplate,
    Group,
    Instance,
    Node,
    Policy,
    PoolKind,
    PoolName,
    Spec,
    SpecInterval,
    StoragePool,
)
from .._provider.ledger.open import load_world
from .._provider.world.model import Amounts, Provider, World
from .._provider.world.names import SHARING_TRAIT, aggregate_uuid

_CPUS, _MEMORY, _DISK = "VCPU", "MEMORY_MB", "DISK_GB"
_MIB_OF_GIB = 1024
_ANY = 2**50
"""A size, in MiB or pieces, that no instance reaches."""
_SMALLEST, _LARGEST = Spec(0, 0, 0, 0, 0, 0), Spec(_ANY, _ANY, _ANY, _ANY, _ANY, _ANY)
EVERY_SIZE = Policy(intervals=(SpecInterval(_SMALLEST, _LARGEST),), standard=_SMALLEST, vcpu_ratio=1.0, spindle_ratio=float(_ANY))
"""The ledger has limits for each provider and none for a group."""
REST = "default"
"""The group of the nodes that are in none of the aggregates."""


@dataclass(frozen=True)
class _Tree:
    """A root and all providers below it; `capacity`, `reserved` and `used` by resource class."""

    root: Provider
    capacity: Amounts
    reserved: Amounts
    used: Amounts
    traits: frozenset[str]
    aggregates: frozenset[str]
    shares: bool

    def is_node(self) -> bool:
        return not self.shares and (self.capacity.get(_CPUS, 0) > 0 or self.capacity.get(_MEMORY, 0) > 0)

    def free(self, name: str) -> int:
        """Return what is left of a class; nothing where more is in use than there is."""
        return max(0, self.capacity.get(name, 0) - self.used.get(name, 0))


def read_cluster(database: str | None, aggregates: Mapping[str, t.Any] | None = None) -> Cluster:
    """Return the cluster that a database of providers holds; see world_to_cluster. Raises InputError and Unavailable."""
    return world_to_cluster(load_world(database), aggregates)


def world_to_cluster(world: World, aggregates: Mapping[str, t.Any] | None = None) -> Cluster:
    """Return the nodes, instances and groups of a world.

    `aggregates` are the groups: UUIDs or names of aggregates by the groups' names. A node in none of them is in the group REST, as are all
    without `aggregates`. Consumers with neither CPUs nor memory of a node are no instances, yet what they use is not free. Raises
    InputError for unknown aggregates, nodes in several of them, and a world without any node.
    """
    mistakes = Mistakes()
    home = world.roots()
    trees = _trees(world, home)
    nodes = [tree for tree in trees if tree.is_node()]
    if not nodes:
        mistakes.add("source.database", "holds no provider with VCPU or MEMORY_MB that could be a node")
    names = _group_names(world.providers, aggregates or {}, mistakes)
    groups = [_group_of(tree, names, mistakes) for tree in nodes]
    pools = [tree for tree in trees if tree.shares and tree.capacity.get(_DISK, 0) > 0]
    instances = _instances(world, home, nodes, pools)
    found = Cluster(
        groups=tuple(Group(name, name, policy=EVERY_SIZE) for name in (*names.values(), *([REST] if REST in groups else []))),
        nodes=tuple(_node(tree, group, pools) for tree, group in zip(nodes, groups, strict=True)),
        instances=tuple(instances),
        policy=EVERY_SIZE,
    )
    places = Places(
        groups=[f"source.aggregates.{group.name}" for group in found.groups],
        nodes=[f"provider {node.name}" for node in found.nodes],
        instances=[f"consumer {instance.name}" for instance in found.instances],
    )
    check_cluster(found, places, mistakes)
    mistakes.check()
    return found


def _trees(world: World, home: Mapping[str, str]) -> list[_Tree]:
    members: dict[str, list[Provider]] = defaultdict(list)
    for provider in world.providers:
        members[home[provider.uuid]].append(provider)
    used: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for (uuid, name), amount in world.usages().items():
        used[home[uuid]][name] += amount
    return [_tree(root, members[root.uuid], used[root.uuid]) for root in world.providers if root.parent is None]


def _tree(root: Provider, members: Sequence[Provider], used: Amounts) -> _Tree:
    capacity: dict[str, int] = defaultdict(int)
    reserved: dict[str, int] = defaultdict(int)
    for provider in members:
        for name, inventory in provider.inventories.items():
            capacity[name] += max(0, inventory.capacity)
            reserved[name] += inventory.reserved
    return _Tree(
        root=root,
        capacity=capacity,
        reserved=reserved,
        used=used,
        traits=frozenset().union(*(provider.traits for provider in members)),
        aggregates=frozenset().union(*(provider.aggregates for provider in members)),
        shares=SHARING_TRAIT in root.traits,
    )


def _group_names(providers: Iterable[Provider], aggregates: Mapping[str, t.Any], mistakes: Mistakes) -> dict[str, str]:
    """Return the names of groups by the UUIDs of their aggregates."""
    known = {aggregate for provider in providers for aggregate in provider.aggregates}
    names: dict[str, str] = {}
    for name, named in aggregates.items():
        place = f"source.aggregates.{name}"
        uuid = aggregate_uuid(named) if isinstance(named, str) else ""
        if uuid not in known:
            says = f"is {named!r}; must be the name or the UUID of an aggregate that a provider is in"
            mistakes.add(place, says + (suggest(named, known) if isinstance(named, str) else ""))
        elif uuid in names:
            mistakes.add(place, f"is the aggregate of the group {names[uuid]}, too")
        else:
            names[uuid] = str(name)
    return names


def _group_of(tree: _Tree, names: Mapping[str, str], mistakes: Mistakes) -> str:
    found = [name for uuid, name in names.items() if uuid in tree.root.aggregates]
    if len(found) > 1:
        mistakes.add(f"provider {tree.root.name}", f"is in the aggregates of several groups: {', '.join(found)}")
    return found[0] if found else REST


def _node(tree: _Tree, group: str, pools: Sequence[_Tree]) -> Node:
    reserved = tree.reserved.get(_MEMORY, 0)
    disk, free_disk = tree.capacity.get(_DISK, 0) * _MIB_OF_GIB, tree.free(_DISK) * _MIB_OF_GIB
    reached = tuple(_pool(pool) for pool in pools if pool.aggregates & tree.aggregates)
    own = (StoragePool(NODE_DISK, disk, free_disk),) if reached and disk else ()
    return Node(
        name=tree.root.name,
        group=group,
        total_memory=float(reserved + tree.capacity.get(_MEMORY, 0)),
        node_memory=reserved,
        free_memory=tree.free(_MEMORY),
        total_disk=float(disk),
        free_disk=free_disk,
        total_cpus=float(tree.capacity.get(_CPUS, 0)),
        node_cpus=0,
        drained=os_traits.COMPUTE_STATUS_DISABLED in tree.root.traits,
        tags=tuple(sorted(tree.traits)),
        storage=own + reached,
    )


def _pool(tree: _Tree) -> StoragePool:
    return StoragePool(_pool_name(tree), tree.capacity[_DISK] * _MIB_OF_GIB, tree.free(_DISK) * _MIB_OF_GIB)


def _pool_name(tree: _Tree) -> PoolName:
    return PoolName(PoolKind.EXTERNAL, tree.root.name)


def _instances(world: World, home: Mapping[str, str], nodes: Sequence[_Tree], pools: Sequence[_Tree]) -> list[Instance]:
    nodes_by_uuid = {tree.root.uuid: tree for tree in nodes}
    pools_by_uuid = {tree.root.uuid: tree for tree in pools}
    instances = []
    for consumer in sorted(world.allocations):
        parts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for provider, amounts in world.allocations[consumer].items():
            for name, amount in amounts.items():
                parts[home[provider]][name] += amount
        on_nodes = {uuid: part for uuid, part in parts.items() if uuid in nodes_by_uuid}
        shared = [pools_by_uuid[uuid] for uuid, part in parts.items() if uuid in pools_by_uuid and part.get(_DISK)]
        if any(part.get(_MEMORY) or part.get(_CPUS) for part in on_nodes.values()):
            instances.append(_instance(consumer, on_nodes, nodes_by_uuid, shared))
    return instances


def _instance(
    consumer: str,
    parts: Mapping[str, Mapping[str, int]],
    nodes: Mapping[str, _Tree],
    shared: Sequence[_Tree],
) -> Instance:
    """Return a consumer as an instance whose primary is the node with most of its memory.

    With disk on a second node it is mirrored there; with all of its disk on one shared provider, or with none at all, it can run on
    any node that reaches it; any other stays where it is.
    """
    order = sorted(parts, key=lambda uuid: (-parts[uuid].get(_MEMORY, 0), -parts[uuid].get(_CPUS, 0), nodes[uuid].root.name))
    first = parts[order[0]]
    disks = [uuid for uuid in order if parts[uuid].get(_DISK)]
    template, secondary, storage = DiskTemplate.PLAIN, "", None
    if not shared and len(disks) == len(order) == 2:
        template, secondary = DiskTemplate.DRBD, nodes[order[1]].root.name
    elif not disks and len(order) == 1 and len(shared) <= 1:
        template = DiskTemplate.EXT if shared else DiskTemplate.DISKLESS
        storage = _pool_name(shared[0]) if shared else None
    disk = max((parts[uuid][_DISK] for uuid in disks), default=0) * _MIB_OF_GIB
    return Instance(
        name=consumer,
        memory=first.get(_MEMORY, 0),
        disk=disk,
        vcpus=first.get(_CPUS, 0),
        primary=nodes[order[0]].root.name,
        secondary=secondary,
        disk_template=template,
        disks=(Disk(disk),) if disk else (),
        storage=storage,
    )
