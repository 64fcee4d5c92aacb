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
import math
import typing as t
from collections.abc import Sequence

from ....module_utils._data.containers import ListOf, Row, Table, Values
from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import Name, Number, Size, Text, Truth, Whole, Word
from ..cluster.check import Places, check_cluster, check_new_instance, check_rules, pool_names
from ..cluster.model import (
    NODE_DISK,
    USUAL_LOAD,
    AllocPolicy,
    Cluster,
    Disk,
    DiskTemplate,
    Group,
    Instance,
    Load,
    Manager,
    Node,
    NodeState,
    Policy,
    PoolKind,
    PoolName,
    Rule,
    RuleKind,
    Spec,
    Status,
    StoragePool,
)
from .policy import POLICY, make_policy

DEFAULT_GROUP = "default"
_NAME, _NAMES, _STRINGS = Name(), ListOf(Name(), "names"), ListOf(Text(), "text")
_HOME = Name(blank_too=True)
_COUNT, _CAPACITY = Whole(0, digits=True), Size(math.floor)
_POLICY_ROW = Row("ipolicy", POLICY, "What instances may be, as Ganeti's instance policy; what is left out is taken from the cluster's.")
_HEAVIEST = 1e6
"""A weight above all others; scores with it still tell small gains apart."""
_TAGS = Row("tags", _STRINGS, "Ganeti's tags.", default=())

_GROUP = Table(
    "a group",
    [
        Row("name", _NAME, "What it is called.", required=True),
        Row("uuid", _NAME, "Its UUID; by default its name."),
        Row("alloc_policy", Word(AllocPolicy), "Whether new instances may come here.", AllocPolicy.PREFERRED),
        _TAGS,
        Row("networks", _NAMES, "The networks that its nodes reach.", default=()),
        _POLICY_ROW,
    ],
)
_POOL_ROWS = [
    Row("type", Word(PoolKind), "Whether it is in the node, or outside and shared.", PoolKind.INTERNAL),
    Row("pool", _NAME, "What it is called.", required=True),
]
_POOL = Table(
    "a storage pool",
    [
        *_POOL_ROWS,
        Row("total", _CAPACITY, "Its size in MiB."),
        Row("free", _CAPACITY, "MiB that are free; by default what instances leave."),
        Row("content", _STRINGS, "The kinds of disks that it takes; by default any.", default=()),
    ],
)
_NODE = Table(
    "a node",
    [
        Row("name", _NAME, "What it is called.", required=True),
        Row("group", _NAME, "The name or UUID of its group; may be left out where there is one group."),
        Row("total_memory", _CAPACITY, "Its memory in MiB.", required=True),
        Row("node_memory", Size(), "MiB of memory that the node itself uses.", default=0),
        Row("free_memory", _CAPACITY, "MiB of memory that are free; by default what the node and instances leave."),
        Row("total_disk", _CAPACITY, "Its disk in MiB; by default the sum of its internal pools."),
        Row("free_disk", _CAPACITY, "MiB of disk that are free; by default what instances leave."),
        Row("total_cpus", Number(digits=True), "Its physical CPUs.", required=True),
        Row("node_cpus", _COUNT, "CPUs that the node itself uses.", default=1),
        Row("cpu_speed", Number(digits=True), "How fast its CPUs are relative to those of other nodes.", default=1.0),
        Row("state", Word(NodeState), "Whether it takes instances: up, drained, offline (marked so; it is off), unreachable (silent)."),
        Row("offline", Truth(words=True), "The same as the state offline.", default=False),
        Row("drained", Truth(words=True), "The same as the state drained.", default=False),
        Row("master", Truth(words=True), "Whether it is the cluster's master.", default=False),
        _TAGS,
        Row("exclusive_storage", Truth(words=True), "Whether instances have its spindles to themselves.", default=False),
        Row("spindles", _COUNT, "Its spindles.", default=1),
        Row("free_spindles", _COUNT, "Spindles that are free; by default what instances leave."),
        Row("storage", ListOf(_POOL, "storage pools"), "The storage pools that it reaches.", default=()),
    ],
)
_DISK = Table(
    "a disk",
    [
        Row("size", Size(), "Its size in MiB.", required=True),
        Row("spindles", _COUNT, "Spindles that it has to itself."),
        Row("name", _HOME, "What it is called, among the disks of its instance.", default=""),
        Row("storage", Table("a pool of a node", _POOL_ROWS), "The storage pool that it lies in."),
        Row("content", Text(), "What kind of disk it is, among those that pools take.", default=""),
        Row("stays", Text(), "Why it cannot go to another pool.", default=""),
    ],
)
_LOAD = Table("a load", [Row(name, Number(digits=True), f"The use of {name}.", default=1.0) for name in ("cpu", "memory", "disk", "net")])
_INSTANCE = Table(
    "an instance",
    [
        Row("name", _NAME, "What it is called.", required=True),
        Row("memory", Size(), "Its memory in MiB.", required=True),
        Row("disk", Size(), "MiB of disk that it takes on a node; by default the sum of its disks."),
        Row("disks", ListOf(_DISK, "disks"), "Its disks; by default one of the size `disk`."),
        Row("vcpus", _COUNT, "Its virtual CPUs.", required=True),
        Row("status", Word(Status), "What it does.", Status.RUNNING),
        Row("auto_balance", Truth(words=True), "Whether it may be moved.", default=True),
        Row("primary", _HOME, "The node that it runs on.", default=""),
        Row("secondary", _HOME, "The node that its disks are mirrored to.", default=""),
        Row(
            "disk_template",
            Word(DiskTemplate),
            "How its disks are kept; by default drbd with a secondary, ext on external pools.",
        ),
        Row("storage", Table("a pool of a node", _POOL_ROWS), "The storage pool that its disks lie in."),
        _TAGS,
        Row("spindle_use", _COUNT, "Weight of its use of spindles.", default=1),
        Row("spindles", _COUNT, "Spindles of its only disk."),
        Row("forthcoming", Truth(words=True), "Whether it takes nothing yet.", default=False),
        Row("load", _LOAD, "What it uses of CPU, memory, disk and network; 1 is the usual.", default=None),
        Row("networks", _NAMES, "The networks that it needs.", default=()),
        Row("shares_cpus", Truth(words=True), "Whether a node may have fewer CPUs than it, as with containers.", default=False),
        Row("replicated", Truth(words=True), "Whether the nodes that it may go to have replicas of its disks.", default=False),
        Row("live", Truth(words=True), "Whether it can be moved while it runs.", default=True),
        Row("stays", Text(), "Why its disks keep it on its node.", default=""),
        Row("sid", Text(), "How commands of its source call it, such as vm:101, where that is not its name.", default=""),
        Row("under_ha", Truth(words=True), "Whether HA moves it, and is to be asked to.", default=False),
    ],
)
_RULE = Table(
    "a rule",
    [
        Row("name", Text(digits=True), "What it is called; by default its type and its place in the list."),
        Row("type", Word(RuleKind), "What it says of where its instances run.", required=True),
        Row("instances", _STRINGS, "The instances that it is about.", default=()),
        Row("tags", _STRINGS, "Instances that have one of these tags belong to it, too.", default=()),
        Row("nodes", _STRINGS, "Of a pin the nodes that they may run on.", default=()),
        Row("hardware", Truth(words=True), "Of a pin: whether its instances cannot even be started elsewhere.", default=False),
        Row("strict", Truth(words=True), "Whether nothing may break it; otherwise it is a wish that counts in the score.", default=True),
        Row(
            "weight",
            Number(0, _HEAVIEST, digits=True),
            "Of a rule that is not strict: as how many exclusion tags in conflict one instance counts.",
            default=1.0,
        ),
        Row("over", Text(digits=True), "Of a spread: node, group, or the prefix of node tags; its domains.", default=Rule.over),
        Row("max_skew", Whole(1, digits=True), "Of a spread: by how many instances domains may differ.", default=Rule.max_skew),
        Row("reason", _NAME, "The word by which instances that it keeps where they are count as left out.", default=Rule.reason),
    ],
)
CLUSTER = Table(
    "a cluster",
    [
        Row("groups", ListOf(_GROUP, "groups"), f"Its groups; by default one called {DEFAULT_GROUP}.", default=()),
        Row("nodes", ListOf(_NODE, "nodes"), "Its nodes.", required=True),
        Row("instances", ListOf(_INSTANCE, "instances"), "Its instances.", default=()),
        _TAGS,
        _POLICY_ROW,
        Row("rules", ListOf(_RULE, "rules"), "Limits on where instances run.", default=()),
        Row("manager", Word(Manager), "What runs it, for commands and hints in its words.", Manager.GANETI),
    ],
)


def parse_inline(data: t.Any, place: str = "cluster") -> Cluster:
    """Return the cluster that plain data describes; raise InputError with all mistakes."""
    mistakes = Mistakes()
    values = CLUSTER.read_nested(data, place, mistakes)
    policy = make_policy(values["ipolicy"], Policy())
    groups = tuple(_group(group, policy) for group in values["groups"]) or (Group(DEFAULT_GROUP, DEFAULT_GROUP, policy=policy),)
    places = Places(
        groups=[f"{place}.groups[{position}]" for position in range(len(groups))],
        nodes=[f"{place}.nodes[{position}]" for position in range(len(values["nodes"]))],
        instances=[f"{place}.instances[{position}]" for position in range(len(values["instances"]))],
        cluster=f"{place}.",
    )
    instances = tuple(_instance(instance, where, mistakes) for instance, where in zip(values["instances"], places.instances))
    residents = _Residents(instances)
    nodes = tuple(_node(node, where, groups, residents, mistakes) for node, where in zip(values["nodes"], places.nodes))
    rules = tuple(_rule(rule, position) for position, rule in enumerate(values["rules"]))
    cluster = Cluster(groups, nodes, instances, values["tags"], policy, rules, values["manager"])
    check_cluster(cluster, places, mistakes)
    check_rules(cluster, f"{place}.rules", mistakes)
    mistakes.check()
    return cluster


def _rule(values: Values, position: int) -> Rule:
    kind = RuleKind(values["type"])
    return Rule(
        values["name"] or f"{kind} rule {position}",
        kind,
        values["instances"],
        values["nodes"],
        values["tags"],
        values["reason"],
        values["hardware"],
        values["strict"],
        values["weight"],
        values["over"],
        values["max_skew"],
    )


def parse_new_instances(data: Sequence[t.Any], cluster: Cluster, place: str = "instances") -> tuple[Instance, ...]:
    """Return instances that are yet to be placed on `cluster`; raise InputError with all mistakes."""
    mistakes = Mistakes()
    taken = cluster.instance_positions()
    pools = pool_names(cluster.nodes)
    instances = []
    for position, item in enumerate(data):
        where = f"{place}[{position}]"
        instance = read_new_instance(item, where, pools, mistakes)
        if instance.name and instance.name in taken:
            mistakes.add(f"{where}.name", f"an instance {instance.name} already exists")
        taken[instance.name] = position
        instances.append(instance)
    mistakes.check()
    return tuple(instances)


def read_new_instance(data: t.Any, place: str, pools: frozenset[PoolName], mistakes: Mistakes) -> Instance:
    """Return an instance that is on no node yet."""
    instance = _instance(_INSTANCE.read_nested(data, place, mistakes), place, mistakes)
    for role in ("primary", "secondary"):
        if getattr(instance, role):
            mistakes.add(f"{place}.{role}", "must not be given: the instance is yet to be placed")
    check_new_instance(instance, f"{place}.", pools, mistakes)
    return instance


def _instance(values: Values, place: str, mistakes: Mistakes) -> Instance:
    storage = _pool_name(values["storage"])
    outside = storage is not None and storage.kind == PoolKind.EXTERNAL
    local = DiskTemplate.DRBD if values["secondary"] else DiskTemplate.PLAIN
    template = values["disk_template"] or (DiskTemplate.EXT if outside else local)
    disks = _disks(values, template == DiskTemplate.DISKLESS, place, mistakes)
    return Instance(
        name=values["name"],
        memory=values["memory"],
        disk=sum(disk.size for disk in disks) if values["disk"] is None else values["disk"],
        vcpus=values["vcpus"],
        primary=values["primary"],
        secondary=values["secondary"],
        status=values["status"],
        auto_balance=values["auto_balance"],
        disk_template=template,
        disks=() if template == DiskTemplate.DISKLESS else disks,
        storage=storage,
        tags=values["tags"],
        spindle_use=values["spindle_use"],
        forthcoming=values["forthcoming"],
        load=USUAL_LOAD if values["load"] is None else Load(**values["load"]),
        networks=values["networks"],
        live=values["live"],
        shares_cpus=values["shares_cpus"],
        replicated=values["replicated"],
        stays=values["stays"],
        sid=values["sid"],
        under_ha=values["under_ha"],
    )


def _disks(values: Values, diskless: bool, place: str, mistakes: Mistakes) -> tuple[Disk, ...]:
    """Return the disks; `disk` and `spindles` describe one where there is no list of them."""
    if values["disks"] is None:
        if values["disk"] is None and not diskless and not mistakes.has(f"{place}.disk"):
            mistakes.add(f"{place}.disk", f"is missing; must be {Size.wanted}")
        return (Disk(values["disk"] or 0, values["spindles"]),)
    if values["spindles"] is not None:
        mistakes.add(f"{place}.spindles", "is given for each of `disks`, not next to them")
    return tuple(Disk(**disk | {"storage": _pool_name(disk["storage"])}) for disk in values["disks"])


def _pool_name(values: Values | None) -> PoolName | None:
    return None if values is None else PoolName(values["type"], values["pool"])


def _group(values: Values, base: Policy) -> Group:
    return Group(
        name=values["name"],
        uuid=values["name"] if values["uuid"] is None else values["uuid"],
        alloc_policy=values["alloc_policy"],
        tags=values["tags"],
        networks=values["networks"],
        policy=make_policy(values["ipolicy"], base),
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
        taken = [(disk.storage, disk.size) for disk in instance.disks if disk.storage is not None]
        if pool is not None:
            taken.append((pool, max(0, instance.disk - sum(size for _name, size in taken))))
        for name, size in taken:
            for node in ("",) if name.kind == PoolKind.EXTERNAL else (instance.primary, instance.secondary):
                self._pools[name, node] += size

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


def _node(values: Values, place: str, groups: Sequence[Group], residents: _Residents, mistakes: Mistakes) -> Node:
    storage = tuple(
        StoragePool(PoolName(pool["type"], pool["pool"]), pool["total"], pool["free"], pool["content"]) for pool in values["storage"]
    )
    internal = sum(pool.total or 0 for pool in storage if pool.name.kind == PoolKind.INTERNAL)
    total_disk = internal if values["total_disk"] is None else values["total_disk"]
    memory = values["total_memory"] - values["node_memory"]
    free_memory, free_disk, free_spindles = residents.left(values["name"], memory, total_disk, values["spindles"])
    state = values["state"]
    node = Node(
        name=values["name"],
        group=_group_name(values["group"], place, groups, mistakes),
        total_memory=float(values["total_memory"]),
        node_memory=values["node_memory"],
        free_memory=free_memory if values["free_memory"] is None else values["free_memory"],
        total_disk=float(total_disk),
        free_disk=free_disk if values["free_disk"] is None else values["free_disk"],
        total_cpus=values["total_cpus"],
        node_cpus=values["node_cpus"],
        cpu_speed=values["cpu_speed"],
        offline=values["offline"] or state == NodeState.OFFLINE,
        drained=values["drained"] or state == NodeState.DRAINED,
        unreachable=state == NodeState.UNREACHABLE,
        master=values["master"],
        tags=values["tags"],
        exclusive_storage=values["exclusive_storage"],
        spindles=values["spindles"],
        free_spindles=free_spindles if values["free_spindles"] is None else values["free_spindles"],
        storage=tuple(residents.pool_left(values["name"], pool) for pool in storage),
    )
    if state is not None and node.state != state:
        mistakes.add(f"{place}.state", f"is {state}, while offline or drained say that it is {node.state}; give the state alone")
    return node


def _group_name(given: str | None, place: str, groups: Sequence[Group], mistakes: Mistakes) -> str:
    """Return the group's name, which may be given as its uuid, and left out when there is only one."""
    if given is None:
        if len(groups) > 1 and not mistakes.has(f"{place}.group"):
            mistakes.add(f"{place}.group", "is missing; must be the name of one of several groups")
        return groups[0].name
    by_uuid = {group.uuid: group.name for group in groups}
    return given if given in by_uuid.values() else by_uuid.get(given, given)


def write_inline(cluster: Cluster) -> dict[str, t.Any]:
    """Return the cluster as dictionaries and lists; parse_inline gives the same cluster back."""
    return {
        "groups": [_plain_group(group) for group in cluster.groups],
        "nodes": [_plain_node(node) for node in cluster.nodes],
        "instances": [_plain_instance(instance) for instance in cluster.instances],
        "tags": list(cluster.tags),
        "ipolicy": _policy(cluster.policy),
        "rules": [_plain_rule(rule) for rule in cluster.rules],
        "manager": str(cluster.manager),
    }


def _plain_rule(rule: Rule) -> dict[str, t.Any]:
    members = {"instances": list(rule.instances), "tags": list(rule.tags), "nodes": list(rule.nodes)}
    of_spread = {"over": rule.over, "max_skew": rule.max_skew} if rule.kind == RuleKind.SPREAD else {}
    return {
        "name": rule.name,
        "type": str(rule.kind),
        "reason": rule.reason,
        "hardware": rule.hardware,
        "strict": rule.strict,
        "weight": rule.weight,
        **of_spread,
        **{name: value for name, value in members.items() if value},
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
    fields = {name: getattr(node, name) for name in Node.__dataclass_fields__ if name != "unreachable"}
    return fields | {"state": str(node.state), "tags": list(node.tags), "storage": [_pool(pool) for pool in node.storage]}


def _pool(pool: StoragePool) -> dict[str, t.Any]:
    sizes = {name: size for name, size in (("total", pool.total), ("free", pool.free)) if size is not None}
    return _pool_text(pool.name) | sizes | ({"content": list(pool.content)} if pool.content else {})


def _pool_text(name: PoolName) -> dict[str, t.Any]:
    return {"type": str(name.kind), "pool": name.pool}


def _plain_instance(instance: Instance) -> dict[str, t.Any]:
    fields = {name: getattr(instance, name) for name in Instance.__dataclass_fields__ if name not in ("storage", "turn")}
    fields |= {
        "status": str(instance.status),
        "disk_template": str(instance.disk_template),
        "disks": [_plain_disk(disk) for disk in instance.disks],
        "tags": list(instance.tags),
        "load": {name: getattr(instance.load, name) for name in Load.__dataclass_fields__},
        "networks": list(instance.networks),
    }
    return fields if instance.storage is None else fields | {"storage": _pool_text(instance.storage)}


def _plain_disk(disk: Disk) -> dict[str, t.Any]:
    words = {name: getattr(disk, name) for name in ("name", "content", "stays") if getattr(disk, name)}
    spindles = {} if disk.spindles is None else {"spindles": disk.spindles}
    return {"size": disk.size} | spindles | words | ({} if disk.storage is None else {"storage": _pool_text(disk.storage)})
