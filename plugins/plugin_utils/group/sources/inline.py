# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Clusters written in a playbook: plain lists of groups, nodes and instances, with every sensible default.

What is not said: one group `default` when there are none, a node's only group, free memory and disk as what the
instances leave, drbd for an instance with a secondary and plain for one without, disk that is the sum of the internal
pools.
"""

from __future__ import annotations

import collections
import dataclasses
import typing as t
from collections.abc import Sequence

from ...common.errors import Mistakes
from ..cluster.check import Places, check_cluster, check_instance, pool_names
from ..cluster.model import (
    NODE_DISK,
    AllocPolicy,
    Cluster,
    Disk,
    DiskTemplate,
    Group,
    Instance,
    Load,
    Node,
    Policy,
    PoolKind,
    PoolName,
    Spec,
    Status,
    StoragePool,
)
from .fields import Fields
from .policy import read_policy, refuse_unknown

_CLUSTER_FIELDS = ("groups", "nodes", "instances", "tags", "ipolicy")
_GROUP_FIELDS = ("name", "uuid", "alloc_policy", "tags", "networks", "ipolicy")
_NODE_FIELDS = (
    *("name", "group", "total_memory", "node_memory", "free_memory", "total_disk", "free_disk", "total_cpus", "node_cpus", "cpu_speed"),
    *("offline", "master", "tags", "exclusive_storage", "spindles", "free_spindles", "storage"),
)
_INSTANCE_FIELDS = (
    *("name", "memory", "disk", "disks", "vcpus", "status", "auto_balance", "primary", "secondary", "disk_template", "storage"),
    *("tags", "spindle_use", "spindles", "forthcoming", "load", "networks"),
)
DEFAULT_GROUP = "default"


def parse_inline(data: t.Any, place: str = "cluster") -> Cluster:
    """Return the cluster that plain data describes; raise InputError with all mistakes."""
    mistakes = Mistakes()
    fields = Fields(data, place, mistakes)
    fields.only(_CLUSTER_FIELDS)
    refuse_unknown(fields, "ipolicy")
    policy = read_policy(fields, "ipolicy", Policy())
    groups = tuple(_group(group, policy) for group in fields.children("groups")) or (Group(DEFAULT_GROUP, DEFAULT_GROUP, policy=policy),)
    instances = tuple(read_instance(instance) for instance in fields.children("instances"))
    residents = _Residents(instances)
    nodes = tuple(_node(node, groups, residents) for node in fields.children("nodes", required=True))
    cluster = Cluster(groups=groups, nodes=nodes, instances=instances, tags=fields.strings("tags"), policy=policy)
    places = Places(
        groups=[f"{place}.groups[{position}]" for position in range(len(groups))],
        nodes=[f"{place}.nodes[{position}]" for position in range(len(nodes))],
        instances=[f"{place}.instances[{position}]" for position in range(len(instances))],
        cluster=f"{place}.",
    )
    check_cluster(cluster, places, mistakes)
    mistakes.check()
    return cluster


def parse_new_instances(data: Sequence[t.Any], cluster: Cluster, place: str = "instances") -> tuple[Instance, ...]:
    """Return instances that are yet to be placed on `cluster`; raise InputError with all mistakes."""
    mistakes = Mistakes()
    taken = cluster.instance_positions()
    pools = pool_names(cluster.nodes)
    instances = []
    for position, item in enumerate(data):
        fields = Fields(item, f"{place}[{position}]", mistakes)
        instance = read_instance(fields)
        for role in ("primary", "secondary"):
            if role in fields:
                fields.wrong(role, "must not be given: the instance is yet to be placed")
        if instance.name and instance.name in taken:
            fields.wrong("name", f"there is an instance {instance.name} already")
        taken[instance.name] = position
        check_instance(instance, f"{fields.place}.", pools, mistakes)
        instances.append(instance)
    mistakes.check()
    return tuple(instances)


def read_instance(fields: Fields) -> Instance:
    """Return one instance; its node may be missing."""
    fields.only(_INSTANCE_FIELDS)
    secondary = fields.text("secondary", "")
    local = DiskTemplate.DRBD if secondary else DiskTemplate.PLAIN
    storage = _pool_name(fields.child("storage")) if "storage" in fields else None
    template = fields.word("disk_template", DiskTemplate, DiskTemplate.EXT if _outside(storage) else local)
    disks = _disks(fields)
    return Instance(
        name=fields.text("name"),
        memory=fields.size("memory"),
        disk=_disk(fields, disks),
        vcpus=fields.integer("vcpus"),
        primary=fields.text("primary", ""),
        secondary=secondary,
        status=fields.word("status", Status, Status.RUNNING),
        auto_balance=fields.truth("auto_balance", True),
        disk_template=template,
        disks=() if template == DiskTemplate.DISKLESS else disks,
        storage=storage,
        tags=fields.strings("tags"),
        spindle_use=fields.integer("spindle_use", 1),
        forthcoming=fields.truth("forthcoming", False),
        load=_load(fields.child("load")),
        networks=fields.strings("networks"),
    )


def _outside(storage: PoolName | None) -> bool:
    return storage is not None and storage.kind == PoolKind.EXTERNAL


def _disks(fields: Fields) -> tuple[Disk, ...]:
    """Return the disks; `disk` and `spindles` describe one where there is no list of them."""
    diskless = fields.raw("disk_template") == DiskTemplate.DISKLESS
    if "disks" not in fields:
        spindles = fields.integer("spindles") if "spindles" in fields else None
        return (Disk(fields.size("disk", 0 if diskless else None), spindles),)
    if "spindles" in fields:
        fields.wrong("spindles", "is given for each of `disks`, not beside them")
    disks = []
    for disk in fields.children("disks"):
        disk.only(("size", "spindles"))
        disks.append(Disk(disk.size("size"), disk.integer("spindles") if "spindles" in disk else None))
    return tuple(disks)


def _disk(fields: Fields, disks: Sequence[Disk]) -> int:
    total = sum(disk.size for disk in disks)
    return fields.size("disk", total) if "disks" in fields else total


def _load(fields: Fields) -> Load:
    fields.only(("cpu", "memory", "disk", "net"))
    return Load(
        cpu=fields.number("cpu", 1.0),
        memory=fields.number("memory", 1.0),
        disk=fields.number("disk", 1.0),
        net=fields.number("net", 1.0),
    )


def _pool_name(fields: Fields) -> PoolName:
    fields.only(("type", "pool"))
    return PoolName(fields.word("type", PoolKind, PoolKind.INTERNAL), fields.text("pool"))


def _group(fields: Fields, base: Policy) -> Group:
    fields.only(_GROUP_FIELDS)
    refuse_unknown(fields, "ipolicy")
    name = fields.text("name")
    return Group(
        name=name,
        uuid=fields.text("uuid", name),
        alloc_policy=fields.word("alloc_policy", AllocPolicy, AllocPolicy.PREFERRED),
        tags=fields.strings("tags"),
        networks=fields.strings("networks"),
        policy=read_policy(fields, "ipolicy", base),
    )


class _Residents:
    """What the instances take, by node and by pool; forthcoming ones take nothing yet."""

    def __init__(self, instances: Sequence[Instance]) -> None:
        self._memory: collections.Counter[str] = collections.Counter()
        self._disk: collections.Counter[str] = collections.Counter()
        self._spindles: collections.Counter[str] = collections.Counter()
        self._pools: collections.Counter[tuple[PoolName, str]] = collections.Counter()
        for instance in instances:
            if not instance.forthcoming:
                self._add(instance)

    def _add(self, instance: Instance) -> None:
        pool = instance.storage or (NODE_DISK if instance.on_node_disk else None)
        if instance.uses_memory:
            self._memory[instance.primary] += instance.memory
        for node in (instance.primary, instance.secondary):
            if instance.on_node_disk:
                self._disk[node] += instance.disk
                self._spindles[node] += instance.spindles or 0
            if pool is not None and pool.kind == PoolKind.INTERNAL:
                self._pools[pool, node] += instance.disk
        if pool is not None and pool.kind == PoolKind.EXTERNAL:
            self._pools[pool, ""] += instance.disk

    def left(self, node: str, memory: int, disk: int, spindles: int) -> tuple[int, int, int]:
        """Return what is left on a node of memory, disk and physical spindles, 0 where more is taken than is there."""
        return (
            max(0, memory - self._memory[node]),
            max(0, disk - self._disk[node]),
            max(0, spindles - self._spindles[node]),
        )

    def pool_left(self, node: str, pool: StoragePool) -> StoragePool:
        """Return the pool with its free space, computed when only the total is known."""
        if pool.free is not None or pool.total is None:
            return pool
        taken = self._pools[pool.name, node if pool.name.kind == PoolKind.INTERNAL else ""]
        return dataclasses.replace(pool, free=max(0, pool.total - taken))


def _node(fields: Fields, groups: Sequence[Group], residents: _Residents) -> Node:
    fields.only(_NODE_FIELDS)
    storage = tuple(_storage(pool) for pool in fields.children("storage"))
    name = fields.text("name")
    total_memory = fields.capacity("total_memory")
    node_memory = fields.size("node_memory", 0)
    total_disk = fields.capacity("total_disk", sum(pool.total or 0 for pool in storage if pool.name.kind == PoolKind.INTERNAL))
    spindles = fields.integer("spindles", 1)
    free_memory, free_disk, free_spindles = residents.left(name, total_memory - node_memory, total_disk, spindles)
    return Node(
        name=name,
        group=_group_name(fields, groups),
        total_memory=float(total_memory),
        node_memory=node_memory,
        free_memory=fields.capacity("free_memory", free_memory),
        total_disk=float(total_disk),
        free_disk=fields.capacity("free_disk", free_disk),
        total_cpus=fields.number("total_cpus"),
        node_cpus=fields.integer("node_cpus", 1),
        cpu_speed=fields.number("cpu_speed", 1.0),
        offline=fields.truth("offline", False),
        master=fields.truth("master", False),
        tags=fields.strings("tags"),
        exclusive_storage=fields.truth("exclusive_storage", False),
        spindles=spindles,
        free_spindles=fields.integer("free_spindles", free_spindles),
        storage=tuple(residents.pool_left(name, pool) for pool in storage),
    )


def _group_name(fields: Fields, groups: Sequence[Group]) -> str:
    """Return the group's name, which may be given as its uuid, and left out when there is only one."""
    given = fields.text("group", groups[0].name if len(groups) == 1 else None)
    by_uuid = {group.uuid: group.name for group in groups}
    return given if given in by_uuid.values() else by_uuid.get(given, given)


def _storage(fields: Fields) -> StoragePool:
    fields.only(("type", "pool", "total", "free"))
    name = PoolName(fields.word("type", PoolKind, PoolKind.INTERNAL), fields.text("pool"))
    total = fields.capacity("total") if "total" in fields else None
    free = fields.capacity("free") if "free" in fields else None
    return StoragePool(name, total, free)


def write_inline(cluster: Cluster) -> dict[str, t.Any]:
    """Return the cluster as dictionaries and lists; parse_inline gives the same cluster back."""
    return {
        "groups": [_plain_group(group) for group in cluster.groups],
        "nodes": [_plain_node(node) for node in cluster.nodes],
        "instances": [_instance(instance) for instance in cluster.instances],
        "tags": list(cluster.tags),
        "ipolicy": _policy(cluster.policy),
    }


def _plain_group(group: Group) -> dict[str, t.Any]:
    return {
        "name": group.name,
        "uuid": group.uuid,
        "alloc_policy": str(group.alloc_policy),
        "tags": list(group.tags),
        "networks": list(group.networks),
        "ipolicy": _policy(group.policy),
    }


def _policy(policy: Policy) -> dict[str, t.Any]:
    return {
        "minmax": [{"min": _spec(interval.minimum), "max": _spec(interval.maximum)} for interval in policy.intervals],
        "std": _spec(policy.standard),
        "disk-templates": [str(template) for template in policy.disk_templates],
        "vcpu-ratio": policy.vcpu_ratio,
        "spindle-ratio": policy.spindle_ratio,
    }


def _spec(spec: Spec) -> dict[str, int]:
    return {
        "memory-size": spec.memory,
        "cpu-count": spec.cpus,
        "disk-size": spec.disk_size,
        "disk-count": spec.disk_count,
        "nic-count": spec.nics,
        "spindle-use": spec.spindle_use,
    }


def _plain_node(node: Node) -> dict[str, t.Any]:
    fields = {name: getattr(node, name) for name in Node.__dataclass_fields__}
    return fields | {"tags": list(node.tags), "storage": [_pool(pool) for pool in node.storage]}


def _pool(pool: StoragePool) -> dict[str, t.Any]:
    return _pool_text(pool.name) | {name: size for name, size in (("total", pool.total), ("free", pool.free)) if size is not None}


def _pool_text(name: PoolName) -> dict[str, t.Any]:
    return {"type": str(name.kind), "pool": name.pool}


def _instance(instance: Instance) -> dict[str, t.Any]:
    fields = {name: getattr(instance, name) for name in Instance.__dataclass_fields__ if name != "storage"}
    fields |= {
        "status": str(instance.status),
        "disk_template": str(instance.disk_template),
        "disks": [_plain_disk(disk) for disk in instance.disks],
        "tags": list(instance.tags),
        "load": {name: getattr(instance.load, name) for name in Load.__dataclass_fields__},
        "networks": list(instance.networks),
    }
    return fields if instance.storage is None else fields | {"storage": _pool_text(instance.storage)}


def _plain_disk(disk: Disk) -> dict[str, int]:
    return {"size": disk.size} | ({} if disk.spindles is None else {"spindles": disk.spindles})
