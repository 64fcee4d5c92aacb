# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ganeti's IAllocator message, version 2: the cluster, and what is asked of it. Answers are written elsewhere.

Nodes that are offline or drained, or cannot run instances, are offline here; what they do not report is 0, and of
drained ones not every release of Ganeti tells anything. As in hail, an instance is taken to be balanced automatically,
and on a KVM cluster the node's own memory is a fixed amount, since what KVM nodes report contains the instances' memory.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t
from collections.abc import Collection, Mapping

from ...common.errors import InputError, Mistake, Mistakes
from ..cluster.check import Places, check_cluster, check_instance, pool_names
from ..cluster.model import AllocPolicy, Cluster, Disk, DiskTemplate, Group, Instance, Node, Policy, Status
from .fields import Fields
from .loaded import Loaded
from .policy import read_policy
from .shape import Shape

ADMIN_STATES = {"up": Status.RUNNING, "down": Status.ADMIN_DOWN, "offline": Status.ADMIN_OFFLINE}
_NODE = Shape(
    {
        "group": str,
        "offline": bool,
        "drained": bool,
        "vm_capable": bool,
        "tags": list,
        "ndparams": dict,
        "total_memory": int,
        "reserved_memory": int,
        "free_memory": int,
        "total_disk": int,
        "free_disk": int,
        "total_cpus": int,
        "reserved_cpus": int,
        "total_spindles": int,
        "free_spindles": int,
    },
    {"vm_capable": True, "reserved_cpus": 0, "total_spindles": 0, "free_spindles": 0},
)
_NODE_PARAMETERS = Shape({"exclusive_storage": bool, "spindle_count": int}, {"exclusive_storage": False, "spindle_count": 1})
_INSTANCE = Shape(
    {
        "memory": int,
        "disk_space_total": int,
        "vcpus": int,
        "admin_state": str,
        "disk_template": str,
        "disks": list,
        "tags": list,
        "spindle_use": int,
        "forthcoming": bool,
        "nics": list,
        "nodes": list,
    },
    {"admin_state": "up", "spindle_use": 1, "forthcoming": False},
)
_TEMPLATES = {str(template): template for template in DiskTemplate}
_STRINGS = {str}
_LARGEST_EXACT = 2**53
"""Larger whole numbers have no equal among floating point numbers."""


def usual_node(name: str, record: t.Any, groups: Mapping[str, str], kvm_memory: int | None) -> Node | None:
    """Return a node that reports all of itself as Ganeti writes it; None for any other."""
    values = _NODE.read(record)
    parameters = None if values is None else _NODE_PARAMETERS.read(values[5])
    if values is None or parameters is None:
        return None
    uuid, offline, drained, capable, tags, _parameters, memory, own_memory, free_memory, disk, free_disk, cpus, own_cpus, spindles, free = (
        values
    )
    exclusive, spindle_count = parameters
    if offline or not capable or not _all_strings(tags) or max(memory, disk, cpus) > _LARGEST_EXACT:
        return None
    return Node(
        name=name,
        group=groups.get(uuid, uuid),
        total_memory=float(memory),
        node_memory=own_memory if kvm_memory is None else kvm_memory,
        free_memory=free_memory,
        total_disk=float(disk),
        free_disk=free_disk,
        total_cpus=float(cpus),
        node_cpus=own_cpus,
        offline=drained,
        tags=tuple(tags),
        exclusive_storage=exclusive,
        spindles=spindles if exclusive else spindle_count,
        free_spindles=free,
    )


def usual_instance(name: str, record: t.Any) -> Instance | None:
    """Return an instance as Ganeti writes it; None for any other."""
    values = _INSTANCE.read(record)
    if values is None:
        return None
    memory, disk, vcpus, state, template, disks, tags, spindle_use, forthcoming, nics, nodes = values
    sizes, networks = _usual_disks(disks), _usual_networks(nics)
    known = state in ADMIN_STATES and template in _TEMPLATES
    if not known or sizes is None or networks is None or not nodes or not _all_strings(nodes) or not _all_strings(tags):
        return None
    return Instance(
        name,
        memory,
        disk,
        vcpus,
        nodes[0],
        nodes[1] if len(nodes) > 1 else "",
        status=ADMIN_STATES[state],
        disk_template=_TEMPLATES[template],
        disks=sizes,
        tags=tuple(tags),
        spindle_use=spindle_use,
        forthcoming=forthcoming,
        networks=networks,
    )


def _usual_disks(disks: list[t.Any]) -> tuple[Disk, ...] | None:
    found = []
    for disk in disks:
        if disk.__class__ is not dict:
            return None
        size, spindles = disk.get("size"), disk.get("spindles")
        if size.__class__ is not int or (spindles is not None and spindles.__class__ is not int):
            return None
        found.append(Disk(size, spindles))
    return tuple(found)


def _usual_networks(nics: list[t.Any]) -> tuple[str, ...] | None:
    if not nics:
        return ()
    if not all(nic.__class__ is dict for nic in nics):
        return None
    networks = tuple(nic["network"] for nic in nics if nic.get("network") is not None)
    return networks if _all_strings(networks) else None


def _all_strings(values: Collection[t.Any]) -> bool:
    return not values or set(map(type, values)) == _STRINGS


KVM_NODE_MEMORY = 4096
"""MiB that a KVM node is taken to need for itself; htools' default of --static-kvm-node-memory."""


def parse_json(text: str) -> t.Any:
    """Return what a JSON text says; raise InputError when it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError([Mistake("", f"the text is not JSON: {error}")]) from None


def parse_iallocator(data: t.Any) -> Loaded:
    """Return the cluster and the request in the mapping that the JSON text holds; raise InputError with all mistakes."""
    mistakes = Mistakes()
    fields = Fields(data, "", mistakes)
    policy = read_policy(fields, "ipolicy", Policy())
    groups = [_group(uuid, group, policy) for uuid, group in fields.named("nodegroups")]
    names = {group.uuid: group.name for group in groups}
    memory = KVM_NODE_MEMORY if fields.strings("enabled_hypervisors")[:1] == ("kvm",) else None
    nodes = [
        usual_node(name, node, names, memory) or read_node(name, fields.member("nodes", name, node), names, memory)
        for name, node in fields.pairs("nodes")
    ]
    instances = [
        usual_instance(name, instance) or read_instance(name, fields.member("instances", name, instance))
        for name, instance in fields.pairs("instances")
    ]
    cluster = Cluster(tuple(groups), tuple(nodes), tuple(instances), fields.strings("cluster_tags"), policy)
    request = fields.child("request")
    places = Places(
        groups=[f"nodegroups.{group.uuid}" for group in groups],
        nodes=[f"nodes.{node.name}" for node in nodes],
        instances=[f"instances.{instance.name}" for instance in instances],
    )
    check_cluster(cluster, places, mistakes)
    mistakes.check()
    return Loaded(cluster, {name: request.raw(name) for name in request.names()})


def requested_instances(loaded: Loaded) -> tuple[Instance, ...]:
    """Return the instances that an `allocate` or `multi-allocate` request wants placed, else none; raise InputError."""
    mistakes = Mistakes()
    request = Fields(loaded.request, "request", mistakes)
    wanted = {"allocate": [request], "multi-allocate": request.children("instances")}.get(request.text("type"), [])
    pools = pool_names(loaded.cluster.nodes)
    instances = []
    for fields in wanted:
        instance = _instance(fields.text("name"), fields)
        check_instance(instance, f"{fields.place}.", pools, mistakes)
        instances.append(instance)
    mistakes.check()
    return tuple(instances)


def _group(uuid: str, fields: Fields, policy: Policy) -> Group:
    return Group(
        name=fields.text("name"),
        uuid=uuid,
        alloc_policy=fields.word("alloc_policy", AllocPolicy),
        tags=fields.strings("tags"),
        networks=fields.strings("networks"),
        policy=read_policy(fields, "ipolicy", policy),
    )


def read_node(name: str, fields: Fields, groups: Mapping[str, str], kvm_memory: int | None) -> Node:
    """Return a node, field by field; what is wrong with it is collected. `groups` are names by UUID."""
    parameters = fields.child("ndparams")
    exclusive = parameters.truth("exclusive_storage", False)
    reports = "total_memory" in fields or not fields.truth("drained")
    live = not fields.truth("offline") and fields.truth("vm_capable", True) and reports
    uuid = fields.text("group")
    node = Node(
        name=name,
        group=groups.get(uuid, uuid),
        total_memory=0.0,
        node_memory=0,
        free_memory=0,
        total_disk=0.0,
        free_disk=0,
        total_cpus=0.0,
        node_cpus=0,
        offline=not live or fields.truth("drained"),
        tags=fields.strings("tags"),
        exclusive_storage=exclusive,
        spindles=0 if exclusive else parameters.integer("spindle_count", 1),
    )
    return _with_report(node, fields, kvm_memory) if live else node


def _with_report(node: Node, fields: Fields, kvm_memory: int | None) -> Node:
    """Return the node with what it reports of itself."""
    return dataclasses.replace(
        node,
        total_memory=fields.number("total_memory"),
        node_memory=fields.integer("reserved_memory") if kvm_memory is None else kvm_memory,
        free_memory=fields.integer("free_memory"),
        total_disk=fields.number("total_disk"),
        free_disk=fields.integer("free_disk"),
        total_cpus=fields.number("total_cpus"),
        node_cpus=fields.integer("reserved_cpus", 0),
        spindles=fields.integer("total_spindles", 0) if node.exclusive_storage else node.spindles,
        free_spindles=fields.integer("free_spindles", 0),
    )


def read_instance(name: str, fields: Fields) -> Instance:
    """Return an instance that lives somewhere, field by field; what is wrong with it is collected."""
    nodes = fields.strings("nodes", None)
    return _instance(name, fields, nodes[0] if nodes else "", nodes[1] if len(nodes) > 1 else "")


def _instance(name: str, fields: Fields, primary: str = "", secondary: str = "") -> Instance:
    state = fields.text("admin_state", "up")
    if state not in ADMIN_STATES:
        fields.wrong("admin_state", f"is {state!r}; must be one of {', '.join(ADMIN_STATES)}")
    disks = fields.children("disks")
    return Instance(
        name=name,
        memory=fields.integer("memory"),
        disk=fields.integer("disk_space_total"),
        vcpus=fields.integer("vcpus"),
        primary=primary,
        secondary=secondary,
        status=ADMIN_STATES.get(state, Status.RUNNING),
        disk_template=fields.word("disk_template", DiskTemplate),
        disks=tuple(Disk(disk.integer("size"), disk.integer("spindles") if "spindles" in disk else None) for disk in disks),
        tags=fields.strings("tags"),
        spindle_use=fields.integer("spindle_use", 1),
        forthcoming=fields.truth("forthcoming", False),
        networks=tuple(nic.text("network") for nic in fields.children("nics") if "network" in nic),
    )
