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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...common.errors import Mistakes
from ...common.fields import Anything, ListOf, Row, Table, Values
from ...common.units import MIB
from ..cluster.check import Places, check_cluster
from ..cluster.model import Cluster, Disk, DiskTemplate, Group, Instance, Node, PoolKind, PoolName, Status, StoragePool
from .iallocator import NAME, NUMBER, TRUTH, WHOLE

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


_ANY = Table("a resource", [Row("type", Anything())], others=True)
_NODE = Table(
    "a node",
    [
        Row("node", NAME, required=True),
        Row("status", NAME, default="unknown"),
        Row("maxmem", WHOLE, default=0),
        Row("mem", WHOLE, default=0),
        Row("maxcpu", NUMBER, default=0.0),
    ],
    others=True,
)
_GUEST = Table(
    "a guest",
    [
        Row("vmid", WHOLE, required=True),
        Row("node", NAME, required=True),
        Row("name", NAME),
        Row("status", NAME, default="stopped"),
        Row("template", TRUTH, default=False),
        Row("maxdisk", WHOLE, default=0),
        Row("maxmem", WHOLE, default=0),
        Row("mem", WHOLE, default=0),
        Row("maxcpu", NUMBER, default=0.0),
        Row("tags", NAME, default=""),
    ],
    others=True,
)
_STORAGES = ListOf(
    Table(
        "a storage",
        [
            Row("storage", NAME, required=True),
            Row("enabled", TRUTH, default=True),
            Row("active", TRUTH, default=True),
            Row("shared", TRUTH, default=False),
            Row("content", NAME, default=""),
            Row("total", WHOLE),
            Row("avail", WHOLE),
        ],
        others=True,
    ),
    "storages",
)
_VOLUMES = ListOf(Table("a volume", [Row("vmid", WHOLE), Row("size", WHOLE, default=0)], others=True), "volumes")


def parse_proxmox(documents: Mapping[str, t.Any]) -> Cluster:
    """Return the cluster that documents by path describe; raise InputError with all mistakes."""
    mistakes = Mistakes()
    table = Table("the documents", [Row(RESOURCES, ListOf(Anything(), "resources"), required=True)], others=True)
    resources = table.read_nested(documents, "", mistakes)[RESOURCES]
    machines, guests = {}, {}
    for place, resource in ((f"{RESOURCES}[{position}]", resource) for position, resource in enumerate(resources)):
        kind = _ANY.read_nested(resource, place, mistakes)["type"]
        if kind == "node":
            machines[place] = _NODE.read_nested(resource, place, mistakes)
        elif kind in _GUESTS:
            guests[place] = _GUEST.read_nested(resource, place, mistakes)
    storages = _storages(documents, [machine["node"] for machine in machines.values()], mistakes)
    used: collections.Counter[str] = collections.Counter()
    for guest in guests.values():
        used[guest["node"]] += guest["mem"]
    nodes = tuple(_node(machine, storages, used[machine["node"]]) for machine in machines.values())
    cluster = Cluster((Group(GROUP, GROUP),), nodes, tuple(_instance(guest, storages) for guest in guests.values()))
    check_cluster(cluster, Places([RESOURCES], list(machines), list(guests)), mistakes)
    mistakes.check()
    return cluster


def _node(values: Values, storages: _Storages, used_by_guests: int) -> Node:
    """Return a node; what it uses beyond its guests' actual use is its own."""
    pools = storages.by_node.get(values["node"], ())
    inside = [pool for pool in pools if pool.name.kind == PoolKind.INTERNAL]
    total, used = values["maxmem"], values["mem"]
    return Node(
        name=values["node"],
        group=GROUP,
        total_memory=float(total // MIB),
        node_memory=max(0, _in_mib(used - used_by_guests)),
        free_memory=max(0, (total - used) // MIB),
        total_disk=float(sum(pool.total or 0 for pool in inside)),
        free_disk=sum(pool.free or 0 for pool in inside),
        total_cpus=values["maxcpu"],
        node_cpus=0,
        offline=values["status"] != "online",
        storage=pools,
    )


def _instance(values: Values, storages: _Storages) -> Instance:
    storage = storages.of(values["vmid"], values["node"])
    shared = storage is not None and storage.kind == PoolKind.EXTERNAL
    disk = _in_mib(values["maxdisk"])
    return Instance(
        name=str(values["vmid"]) if values["name"] is None else f"{values['vmid']}-{values['name']}",
        memory=_in_mib(values["maxmem"]),
        disk=disk,
        vcpus=math.ceil(values["maxcpu"]),
        primary=values["node"],
        status=Status.ADMIN_OFFLINE if values["template"] else _STATUS.get(values["status"], Status.ADMIN_DOWN),
        auto_balance=not values["template"],
        disk_template=DiskTemplate.EXT if shared else DiskTemplate.PLAIN,
        disks=(Disk(disk),),
        storage=storage,
        tags=tuple(tag for tag in values["tags"].replace(",", ";").split(";") if tag),
    )


def _in_mib(size: int) -> int:
    return -(-size // MIB)


def _storages(documents: Mapping[str, t.Any], nodes: Sequence[str], mistakes: Mistakes) -> _Storages:
    by_node: dict[str, tuple[StoragePool, ...]] = {}
    sizes: dict[int, collections.Counter[PoolName]] = {}
    for node in nodes:
        found = _document(documents, f"/nodes/{node}/storage", _STORAGES, mistakes)
        by_node[node] = pools = tuple(_pool(storage) for storage in found if _for_guests(storage))
        for pool in pools:
            for volume in _document(documents, f"/nodes/{node}/storage/{pool.name.pool}/content", _VOLUMES, mistakes):
                if volume["vmid"] is not None:
                    sizes.setdefault(volume["vmid"], collections.Counter())[pool.name] += volume["size"]
    return _Storages(by_node, {guest: max(of_guest, key=lambda pool: of_guest[pool]) for guest, of_guest in sizes.items()})


def _document(documents: Mapping[str, t.Any], path: str, kind: ListOf, mistakes: Mistakes) -> tuple[Values, ...]:
    """Return the entries of a document, none where it is missing."""
    return () if documents.get(path) is None else kind.read_nested(documents[path], path, mistakes)


def _for_guests(storage: Values) -> bool:
    return storage["enabled"] and storage["active"] and not _GUEST_CONTENT.isdisjoint(storage["content"].split(","))


def _pool(storage: Values) -> StoragePool:
    kind = PoolKind.EXTERNAL if storage["shared"] else PoolKind.INTERNAL
    total, free = (None if storage[name] is None else storage[name] // MIB for name in ("total", "avail"))
    return StoragePool(PoolName(kind, storage["storage"]), total, free)
