# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proxmox VE: what its API answers, or `pvesh get PATH --output-format json` prints, by path; all but the first may be left out.

    /cluster/resources                                     nodes, virtual machines, containers
    /nodes/NODE/storage                                    the storages of a node
    /nodes/NODE/qemu/ID/config, /nodes/NODE/lxc/ID/config  a guest's disks and devices
    /nodes/NODE/storage/STORAGE/content                    whose disks lie on a storage, where there is no config
    /nodes/NODE/qemu/ID/rrddata, /nodes/NODE/lxc/ID/rrddata  what a guest has used
    /nodes/NODE/status                                     a node's CPU flags
    /cluster/status                                        whether there is a quorum
    /cluster/replication, /cluster/mapping/..., /nodes/NODE/capabilities/qemu/machines   see requirements.py
    /cluster/options, /cluster/ha/...                      see rules.py

The cluster is one group without a policy. A guest whose disks are all shared has the disk template `ext`, one with a local disk
`plain`, which stays where it is, or `ext` where local disks may be copied. Its name is its number with its own name behind it, as
names need not be unique. Templates are left out. Bytes become MiB; memory is the most that a guest may have.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .....module_utils._data.containers import ListOf, Row, Table, Values
from .....module_utils._data.errors import Mistakes
from .....module_utils._data.kinds import Anything
from .....module_utils._data.units import MIB
from ...._common.lenient import NAME, NUMBER, TRUTH, WHOLE
from ...._common.libraries import np
from ...cluster.check import Places, check_cluster
from ...cluster.model import (
    NO_POLICY,
    USUAL_LOAD,
    Cluster,
    Disk,
    DiskTemplate,
    Group,
    Instance,
    Load,
    Manager,
    Node,
    NodeState,
    PoolKind,
    PoolName,
    Status,
    StoragePool,
)
from .config import Config, read_config
from .guests import Guests
from .requirements import read_replicas
from .rules import check_quorum, in_maintenance, managed_by_ha, read_rules

GROUP = "proxmox"
RESOURCES = "/cluster/resources"
_GUESTS = ("qemu", "lxc")
_STATUS = {"running": Status.RUNNING, "unknown": Status.ERROR_NODE_OFFLINE}
"""Of a guest whose node does not answer nothing is known; it is taken to have run. Any other status is that of a stopped one."""
_SIDS = {"qemu": "vm", "lxc": "ct"}
_CONTENT = {"qemu": "images", "lxc": "rootdir"}
"""What storages call the disks of a kind of guests."""
_GUEST_CONTENT = frozenset(_CONTENT.values())


@dataclass(frozen=True)
class Reading:
    """How a cluster is read.

    `load` is `used`, `assigned`, `pressure`, or empty for none; `local_disks` whether these may be copied; `memory` what a guest's is:
    `maximum`, `balloon` (what it keeps when memory is short) or `used`.
    """

    load: str = ""
    local_disks: bool = False
    memory: str = "maximum"
    percentile: float | None = None
    """Which percentile of what was measured counts, instead of the mean."""


@dataclass(frozen=True)
class _Storages:
    """The storages for guests' disks, by node, and on which of them each guest's disks lie where no config says so."""

    by_node: Mapping[str, tuple[StoragePool, ...]]
    of_guest: Mapping[int, frozenset[PoolName]]
    offered: Mapping[str, frozenset[str]]
    """The names of those of each node that are for anything."""
    shared: frozenset[str]
    """Those that are the same on every node, for disks or not."""
    types: Mapping[tuple[str, str], str]
    """What a storage of a node is, by both names, where the API gives it."""

    def of(self, guest: int, node: str, config: Config | None) -> frozenset[PoolName]:
        """Return the storages of a guest: by its config, where its disks were seen, or the node's only one."""
        pools = {pool.name.pool: pool.name for pool in self.by_node.get(node, ())}
        if config is not None:
            # What a node does not list is taken for its own: nothing is said to move that cannot.
            return frozenset(pools.get(name, PoolName(PoolKind.INTERNAL, name)) for name in config.storages)
        return self.of_guest.get(guest, frozenset()) or frozenset(pools.values() if len(pools) == 1 else ())

    def pools(self, node: str) -> frozenset[PoolName]:
        """Return the storages for disks that a node offers, or any where it reports none; those disabled, or not active, it does not."""
        own = self.by_node.get(node) or tuple(pool for pools in self.by_node.values() for pool in pools)
        return frozenset(pool.name for pool in own)

    def reached(self, node: str) -> frozenset[str]:
        """Return the names of a node's storages."""
        return frozenset(pool.name.pool for pool in self.by_node.get(node, ()))


_ANY = Table("a resource", [Row("type", Anything()), Row("template", TRUTH, default=False)], others=True)
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
        Row("type", NAME),
        Row("node", NAME, required=True),
        Row("name", NAME),
        Row("status", NAME, default="stopped"),
        Row("maxdisk", WHOLE, default=0),
        Row("maxmem", WHOLE, default=0),
        Row("mem", WHOLE, default=0),
        Row("memhost", WHOLE),
        Row("maxcpu", NUMBER, default=0.0),
        Row("tags", NAME, default=""),
        Row("pool", NAME, default=""),
        Row("lock", NAME, default=""),
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
            Row("type", NAME, default=""),
            Row("total", WHOLE),
            Row("avail", WHOLE),
        ],
        others=True,
    ),
    "storages",
)
_VOLUMES = ListOf(Table("a volume", [Row("vmid", WHOLE), Row("size", WHOLE, default=0)], others=True), "volumes")
_MEASURES = {
    "used": {"cpu": ("cpu",), "memory": ("mem",), "disk": ("diskread", "diskwrite"), "net": ("netin", "netout")},
    "pressure": {"cpu": ("pressurecpusome",), "memory": ("pressurememorysome",), "disk": ("pressureiosome",), "net": ()},
}
"""What of rrddata makes which load."""
_POINTS = ListOf(
    Table(
        "a point of time",
        [Row(name, NUMBER) for name in sorted({*(name for kind in _MEASURES.values() for names in kind.values() for name in names)})],
        others=True,
    ),
    "points of time",
)


def parse_proxmox(documents: Mapping[str, t.Any], reading: Reading = Reading()) -> Cluster:
    """Return the cluster that documents by path describe; raise InputError with all mistakes."""
    mistakes = Mistakes()
    table = Table("the documents", [Row(RESOURCES, ListOf(Anything(), "resources"), required=True)], others=True)
    resources = table.read_nested(documents, "", mistakes)[RESOURCES]
    if not isinstance(documents, Mapping):
        mistakes.check()
    machines, guests = {}, {}
    for place, resource in ((f"{RESOURCES}[{position}]", resource) for position, resource in enumerate(resources)):
        kind = _ANY.read_nested(resource, place, mistakes)
        if kind["type"] == "node":
            machines[place] = _NODE.read_nested(resource, place, mistakes)
        elif kind["type"] in _GUESTS and not kind["template"]:
            guests[place] = _GUEST.read_nested(resource, place, mistakes)
    names = [machine["node"] for machine in machines.values()]
    storages = _storages(documents, names, mistakes)
    configs = {guest["vmid"]: read_config(documents, guest, mistakes) for guest in guests.values()}
    check_quorum(documents, mistakes)
    drained, replicas = in_maintenance(documents, mistakes), read_replicas(documents, mistakes)
    used: collections.Counter[str] = collections.Counter()
    for guest in guests.values():
        used[guest["node"]] += _used(guest)
    nodes = tuple(_node(machine, storages, used[machine["node"]], machine["node"] in drained) for machine in machines.values())
    instances = []
    managed = managed_by_ha(documents, mistakes)
    points = _points(documents, list(guests.values()), reading.load, mistakes)
    for guest in guests.values():
        load = _load(guest, points.get(guest["vmid"], ()), reading)
        instance = _instance(guest, storages, configs[guest["vmid"]], load, reading)
        is_replicated = guest["vmid"] in replicas and guest["status"] == "running"
        instances.append(dataclasses.replace(instance, replicated=is_replicated, under_ha=instance.sid in managed))
    known = Guests(
        names={guest["vmid"]: instance.name for guest, instance in zip(guests.values(), instances)},
        values={guest["vmid"]: guest for guest in guests.values()},
        configs=configs,
        online=tuple(node.name for node in nodes if node.state == NodeState.UP),
        reached={name: storages.reached(name) for name in names},
        offered=storages.offered,
        shared=storages.shared,
        replicas=replicas,
    )
    rules = read_rules(documents, known, names, mistakes)
    group = Group(GROUP, GROUP, policy=NO_POLICY)
    cluster = Cluster((group,), nodes, tuple(instances), policy=NO_POLICY, rules=rules, manager=Manager.PROXMOX)
    check_cluster(cluster, Places([RESOURCES], list(machines), list(guests)), mistakes)
    mistakes.check()
    return cluster


def _node(values: Values, storages: _Storages, used_by_guests: int, drained: bool) -> Node:
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
        unreachable=values["status"] != "online",
        drained=drained,
        storage=pools,
    )


def _instance(values: Values, storages: _Storages, config: Config | None, load: Load, reading: Reading) -> Instance:
    pools = storages.of(values["vmid"], values["node"], config)
    offered = pools & storages.pools(values["node"])
    local = sorted(pool for pool in offered if pool.kind == PoolKind.INTERNAL)
    storage = min(local or offered, default=None)
    why = _why_it_stays(values, storages, config, [pool.pool for pool in local], reading)
    disks = _disks(values, pools, config)
    return Instance(
        name=str(values["vmid"]) if values["name"] is None else f"{values['vmid']}-{values['name']}",
        memory=_memory(values, config, reading.memory),
        disk=sum(disk.size for disk in disks),
        vcpus=math.ceil(values["maxcpu"]),
        primary=values["node"],
        status=_STATUS.get(values["status"], Status.ADMIN_DOWN),
        disk_template=DiskTemplate.PLAIN if why or offered < pools or (config is None and not pools) else DiskTemplate.EXT,
        disks=disks,
        storage=storage,
        tags=_tags(values),
        load=load,
        live=values["type"] != "lxc",
        shares_cpus=values["type"] == "lxc",
        stays=why,
        sid=f"{_SIDS[values['type']]}:{values['vmid']}",
    )


def _why_it_stays(values: Values, storages: _Storages, config: Config | None, local: Sequence[str], reading: Reading) -> str:
    """Return why disks on local storages keep a guest on its node, if they do."""
    if not local:
        return ""
    if config is None:
        return f"it has disks on {', '.join(local)}, which is local to its node, and its configuration is unknown"
    if not reading.local_disks:
        names = ", ".join(disk.name for disk in config.disks if disk.storage in local)
        return f"{names} on {', '.join(local)}, which is local to its node, is copied only with source.local_disks"
    if values["type"] == "lxc" and config.devices:
        return f"{config.devices[0]}, so that its disks on {', '.join(local)} are not copied"
    return config.why_not_copied({name: storages.types.get((values["node"], name), "") for name in local}, values)


def _memory(values: Values, config: Config | None, mode: str) -> int:
    """Return the MiB that a guest counts with: the most that it may have, unless it runs and less is asked for and known."""
    most = _in_mib(values["maxmem"])
    if values["status"] != "running":
        return most
    if mode == "used":
        return min(most, _in_mib(_used(values))) or most
    return config.balloon if mode == "balloon" and config is not None and 0 < config.balloon < most else most


def _used(values: Values) -> int:
    """Return the bytes that a guest takes of its node, as the node sees them where the API gives that."""
    used: int = values["mem"] if values["memhost"] is None else values["memhost"]
    return used


def _disks(values: Values, pools: frozenset[PoolName], config: Config | None) -> tuple[Disk, ...]:
    """Return the disks of a guest; without its config all disks count as one, on an unknown storage."""
    if config is None:
        return (Disk(_in_mib(values["maxdisk"])),)
    by_name = {pool.pool: pool for pool in pools}
    content = _CONTENT[values["type"]]
    return tuple(Disk(disk.size, None, disk.name, by_name[disk.storage], content, disk.stays) for disk in config.disks)


def _tags(values: Values) -> tuple[str, ...]:
    """Return a guest's tags, and its pool as `pool:NAME`."""
    tags = [tag for tag in values["tags"].replace(",", ";").split(";") if tag]
    return (*tags, f"pool:{values['pool']}") if values["pool"] else tuple(tags)


def _points(documents: Mapping[str, t.Any], guests: Sequence[Values], mode: str, mistakes: Mistakes) -> dict[int, tuple[Values, ...]]:
    """Return what was measured of each guest; a load that no running guest reports is a mistake, or all would seem to have none."""
    if mode not in _MEASURES:
        return {}
    found = {
        guest["vmid"]: _document(documents, f"/nodes/{guest['node']}/{guest['type']}/{guest['vmid']}/rrddata", _POINTS, mistakes)
        for guest in guests
    }
    running = [guest["vmid"] for guest in guests if guest["status"] == "running"]
    names = [name for names in _MEASURES[mode].values() for name in names]
    if running and not any(point[name] is not None for number in running for point in found[number] for name in names):
        needed = "; it needs release 9 or later" if mode == "pressure" else ""
        mistakes.add("source.load.mode", f"is {mode}, which no running guest has in its rrddata{needed}")
    return found


def _load(guest: Values, points: Sequence[Values], reading: Reading) -> Load:
    """Return what a guest uses: cores, GiB, MiB a second; or by pressure the share of time in which it waits."""
    mode = reading.load
    if not mode:
        return USUAL_LOAD
    if mode == "assigned":
        return Load(cpu=float(guest["maxcpu"]), memory=guest["maxmem"] / MIB / 1024, disk=0.0, net=0.0)
    found = {kind: _measured(points, names, reading.percentile) for kind, names in _MEASURES[mode].items()}
    if mode == "pressure":
        return Load(**found)
    cores, memory = found["cpu"] * guest["maxcpu"], found["memory"] / MIB / 1024
    return Load(cpu=cores, memory=memory, disk=found["disk"] / MIB, net=found["net"] / MIB)


def _measured(points: Sequence[Values], names: Sequence[str], percentile: float | None) -> float:
    """Return the mean or a percentile of what was measured, several series together; some points of time have nothing."""
    if percentile is None:
        means = ([point[name] for point in points if point[name] is not None] for name in names)
        return sum(math.fsum(values) / len(values) for values in means if values)
    sums = [sum(point[name] or 0.0 for name in names) for point in points if any(point[name] is not None for name in names)]
    return float(np.percentile(sums, percentile)) if sums else 0.0


def _in_mib(size: int) -> int:
    return -(-size // MIB)


def _storages(documents: Mapping[str, t.Any], nodes: Sequence[str], mistakes: Mistakes) -> _Storages:
    by_node: dict[str, tuple[StoragePool, ...]] = {}
    found: dict[int, set[PoolName]] = collections.defaultdict(set)
    shared: set[str] = set()
    offered: dict[str, frozenset[str]] = {}
    types: dict[tuple[str, str], str] = {}
    for node in nodes:
        listed = _document(documents, f"/nodes/{node}/storage", _STORAGES, mistakes)
        offered[node] = frozenset(storage["storage"] for storage in listed if storage["enabled"] and storage["active"])
        types |= {(node, storage["storage"]): storage["type"] for storage in listed}
        shared |= {storage["storage"] for storage in listed if storage["shared"]}
        by_node[node] = pools = tuple(_pool(storage) for storage in listed if _for_guests(storage))
        for pool in pools:
            for volume in _document(documents, f"/nodes/{node}/storage/{pool.name.pool}/content", _VOLUMES, mistakes):
                if volume["vmid"] is not None:
                    found[volume["vmid"]].add(pool.name)
    return _Storages(by_node, {guest: frozenset(pools) for guest, pools in found.items()}, offered, frozenset(shared), types)


def _document(documents: Mapping[str, t.Any], path: str, kind: ListOf, mistakes: Mistakes) -> tuple[Values, ...]:
    """Return the entries of a document, none where it is missing."""
    return () if documents.get(path) is None else kind.read_nested(documents[path], path, mistakes)


def _for_guests(storage: Values) -> bool:
    return storage["enabled"] and storage["active"] and not _GUEST_CONTENT.isdisjoint(storage["content"].split(","))


def _pool(storage: Values) -> StoragePool:
    kind = PoolKind.EXTERNAL if storage["shared"] else PoolKind.INTERNAL
    total, free = (None if storage[name] is None else storage[name] // MIB for name in ("total", "avail"))
    content = tuple(sorted(_GUEST_CONTENT.intersection(storage["content"].split(","))))
    return StoragePool(PoolName(kind, storage["storage"]), total, free, content)
