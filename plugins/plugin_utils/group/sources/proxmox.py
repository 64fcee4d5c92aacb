# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proxmox VE: what `pvesh get PATH --output-format json` prints, by path.

    /cluster/resources                      nodes, virtual machines, containers
    /nodes/NODE/storage                     the storages of a node
    /nodes/NODE/storage/STORAGE/content     whose disks lie on a storage (optional)

Without the last a guest's storage is only known on nodes with a single one for guests' disks. The cluster is one group.
A guest on shared storage has the disk template `ext`, any other `plain`, which stays where it is; its name is its number
with its own name behind it, as names need not be unique. Bytes become MiB.
"""

from __future__ import annotations

import collections
import math
import typing as t
from collections.abc import Mapping
from dataclasses import dataclass

from ...common.errors import Mistakes
from ...common.units import MIB
from ..cluster.check import Places, check_cluster
from ..cluster.model import Cluster, Disk, DiskTemplate, Group, Instance, Node, PoolKind, PoolName, Status, StoragePool
from .fields import Fields

GROUP = "proxmox"
RESOURCES = "/cluster/resources"
_GUESTS = ("qemu", "lxc")
_STATUS = {"running": Status.RUNNING, "unknown": Status.ERROR_NODE_OFFLINE}
"""Of a guest whose node does not answer nothing is known; it is taken to have run. Any other status is that of a stopped one."""
_GUEST_CONTENT = frozenset({"images", "rootdir"})


@dataclass(frozen=True)
class _Storages:
    """The storages for guests' disks, by node, and on which of them each guest's disks lie."""

    by_node: Mapping[str, tuple[StoragePool, ...]]
    of_guest: Mapping[int, PoolName]

    def of(self, guest: int, node: str) -> PoolName | None:
        """Return the storage of a guest: where its disks were seen, else the node's only one, else None."""
        pools = self.by_node.get(node, ())
        return self.of_guest.get(guest) or (pools[0].name if len(pools) == 1 else None)


def parse_proxmox(documents: Mapping[str, t.Any]) -> Cluster:
    """Return the cluster that documents by path describe; raise InputError with all mistakes."""
    mistakes = Mistakes()
    fields = Fields(documents, "", mistakes)
    resources = fields.children(RESOURCES, required=True)
    storages = _storages(fields, [r.text("node") for r in resources if r.raw("type") == "node"])
    guests = [resource for resource in resources if resource.raw("type") in _GUESTS]
    machines = [resource for resource in resources if resource.raw("type") == "node"]
    instances = [_instance(guest, storages) for guest in guests]
    used: collections.Counter[str] = collections.Counter()
    for guest in guests:
        used[guest.text("node")] += guest.integer("mem", 0)
    nodes = [_node(machine, storages, used[machine.text("node")]) for machine in machines]
    cluster = Cluster((Group(GROUP, GROUP),), tuple(nodes), tuple(instances))
    places = Places([RESOURCES], [node.place for node in machines], [guest.place for guest in guests])
    check_cluster(cluster, places, mistakes)
    mistakes.check()
    return cluster


def _node(fields: Fields, storages: _Storages, used_by_guests: int) -> Node:
    """Return a node; what it uses beyond its guests' actual use is its own."""
    name = fields.text("node")
    pools = storages.by_node.get(name, ())
    inside = [pool for pool in pools if pool.name.kind == PoolKind.INTERNAL]
    online = fields.text("status", "unknown") == "online"
    total, used = fields.integer("maxmem", 0), fields.integer("mem", 0)
    return Node(
        name=name,
        group=GROUP,
        total_memory=float(total // MIB),
        node_memory=max(0, math.ceil((used - used_by_guests) / MIB)),
        free_memory=max(0, (total - used) // MIB),
        total_disk=float(sum(pool.total or 0 for pool in inside)),
        free_disk=sum(pool.free or 0 for pool in inside),
        total_cpus=fields.number("maxcpu", 0.0),
        node_cpus=0,
        offline=not online,
        storage=pools,
    )


def _instance(fields: Fields, storages: _Storages) -> Instance:
    number = fields.integer("vmid")
    status = _STATUS.get(fields.text("status", "stopped"), Status.ADMIN_DOWN)
    template = fields.truth("template", False)
    storage = storages.of(number, fields.text("node"))
    shared = storage is not None and storage.kind == PoolKind.EXTERNAL
    disk = math.ceil(fields.integer("maxdisk", 0) / MIB)
    return Instance(
        name=f"{number}-{fields.text('name')}" if "name" in fields else str(number),
        memory=math.ceil(fields.integer("maxmem", 0) / MIB),
        disk=disk,
        vcpus=math.ceil(fields.number("maxcpu", 0.0)),
        primary=fields.text("node"),
        status=Status.ADMIN_OFFLINE if template else status,
        auto_balance=not template,
        disk_template=DiskTemplate.EXT if shared else DiskTemplate.PLAIN,
        disks=(Disk(disk),),
        storage=storage,
        tags=tuple(tag for tag in fields.text("tags", "").replace(",", ";").split(";") if tag),
    )


def _storages(fields: Fields, nodes: list[str]) -> _Storages:
    by_node: dict[str, tuple[StoragePool, ...]] = {}
    sizes: dict[int, dict[PoolName, int]] = {}
    for node in nodes:
        pools = [_pool(storage) for storage in fields.children(f"/nodes/{node}/storage") if _for_guests(storage)]
        by_node[node] = tuple(pools)
        for pool in pools:
            for volume in fields.children(f"/nodes/{node}/storage/{pool.name.pool}/content"):
                if "vmid" in volume:
                    of_guest = sizes.setdefault(volume.integer("vmid"), collections.Counter())
                    of_guest[pool.name] += volume.integer("size", 0)
    return _Storages(by_node, {guest: max(of_guest, key=lambda pool: of_guest[pool]) for guest, of_guest in sizes.items()})


def _for_guests(fields: Fields) -> bool:
    usable = fields.truth("enabled", True) and fields.truth("active", True)
    return usable and not _GUEST_CONTENT.isdisjoint(fields.text("content", "").split(","))


def _pool(fields: Fields) -> StoragePool:
    kind = PoolKind.EXTERNAL if fields.truth("shared", False) else PoolKind.INTERNAL
    total = fields.integer("total") // MIB if "total" in fields else None
    free = fields.integer("avail") // MIB if "avail" in fields else None
    return StoragePool(PoolName(kind, fields.text("storage")), total, free)
