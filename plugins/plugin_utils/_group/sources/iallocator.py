# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ganeti's IAllocator message, version 2: the cluster and the request. Answers are written elsewhere.

Drained nodes are taken to answer, although not every release of Ganeti reports anything of them.
As in hail, an instance is taken to be balanced automatically, and on a KVM cluster the node's own memory is a fixed amount, since what
KVM nodes report contains the instances' memory.
"""

from __future__ import annotations

import functools
import json
import typing as t
from collections.abc import Mapping

from ....module_utils._data.containers import ByName, ListOf, MappingOf, Row, Table
from ....module_utils._data.errors import InputError, Mistake, Mistakes
from ....module_utils._data.kinds import Anything, Word
from ..._common.lenient import NAME, NUMBER, STRINGS, WHOLE
from ..cluster.check import Places, check_cluster, check_new_instance, pool_names
from ..cluster.model import Cluster, Disk, DiskTemplate, Instance, Node, Policy, Status
from . import ganeti
from .loaded import Loaded
from .policy import GANETI_POLICY, make_policy

ADMIN_STATES = {"up": Status.RUNNING, "down": Status.ADMIN_DOWN, "offline": Status.ADMIN_OFFLINE}
_GROUP = Table(
    "a group",
    [
        Row("name", NAME, required=True),
        ganeti.ALLOC_POLICY,
        ganeti.TAGS,
        Row("networks", STRINGS, default=()),
        Row("ipolicy", GANETI_POLICY),
    ],
    others=True,
)
_NODE = Table("a node", [Row("group", NAME, required=True), *ganeti.NODE_ROWS, Row("total_memory", Anything())], others=True)
_REPORT = ganeti.Report(
    total_memory=Row("total_memory", NUMBER, required=True),
    node_memory=Row("reserved_memory", WHOLE, required=True),
    free_memory=Row("free_memory", WHOLE, required=True),
    total_disk=Row("total_disk", NUMBER, required=True),
    free_disk=Row("free_disk", WHOLE, required=True),
    total_cpus=Row("total_cpus", NUMBER, required=True),
    node_cpus=Row("reserved_cpus", WHOLE, default=0),
    spindles=Row("total_spindles", WHOLE, default=0),
    free_spindles=Row("free_spindles", WHOLE, default=0),
)
_NODES, _REPORTS = MappingOf(_NODE), MappingOf(_REPORT.table)
# Disks of a cluster are much alike: equal ones are one.
_DISK = Table("a disk", [Row("size", WHOLE, required=True), Row("spindles", WHOLE)], others=True, make=functools.lru_cache(Disk))
_NIC = Table("a network interface", [Row("network", NAME)], others=True, make=lambda network: network)
_INSTANCE_ROWS = [
    Row("memory", WHOLE, required=True),
    Row("disk_space_total", WHOLE, required=True),
    Row("vcpus", WHOLE, required=True),
    Row("admin_state", Word(ADMIN_STATES), default="up"),
    ganeti.DISK_TEMPLATE,
    Row("disks", ListOf(_DISK, "disks"), default=()),
    ganeti.TAGS,
    ganeti.SPINDLE_USE,
    ganeti.FORTHCOMING,
    Row("nics", ListOf(_NIC, "network interfaces"), default=()),
]


def _instance(
    name: str,
    memory: int,
    disk: int,
    vcpus: int,
    admin_state: str,
    template: DiskTemplate,
    disks: tuple[Disk, ...],
    tags: tuple[str, ...],
    spindle_use: int,
    forthcoming: bool,
    networks: tuple[str | None, ...],
    nodes: tuple[str, ...] = (),
) -> Instance:
    """Return an instance of the values of its rows; one without nodes is yet to be placed."""
    return Instance(
        name,
        memory,
        disk,
        vcpus,
        nodes[0] if nodes else "",
        nodes[1] if len(nodes) > 1 else "",
        status=ADMIN_STATES[admin_state],
        disk_template=template,
        disks=disks,
        tags=tags,
        spindle_use=spindle_use,
        forthcoming=forthcoming,
        networks=tuple([network for network in networks if network is not None]) if networks else (),
    )


_INSTANCE = Table("an instance", [*_INSTANCE_ROWS, Row("nodes", STRINGS, required=True)], others=True)
_NEW_INSTANCE = Table("an instance", [Row("name", NAME, required=True), *_INSTANCE_ROWS], others=True, make=_instance)
_MESSAGE = Table(
    "a message",
    [
        Row("ipolicy", GANETI_POLICY),
        Row("nodegroups", MappingOf(_GROUP, "groups by UUID"), required=True),
        Row("enabled_hypervisors", STRINGS, default=()),
        Row("nodes", MappingOf(Anything(), "nodes by name"), required=True),
        Row("instances", ByName(_INSTANCE, _instance, "instances by name"), required=True),
        Row("cluster_tags", STRINGS, default=()),
        Row("request", MappingOf(Anything(), "the request's keys"), default={}),
    ],
    others=True,
)
_REQUEST = Table(
    "a request", [Row("type", NAME, required=True), Row("instances", ListOf(Anything(), "instances"), default=())], others=True
)


def parse_json(text: str) -> t.Any:
    """Return what a JSON text says; raise InputError when it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError([Mistake("", f"the text is not JSON: {error}")]) from None


def parse_iallocator(data: t.Any) -> Loaded:
    """Return the cluster and the request in the mapping that the JSON text holds; raise InputError with all mistakes."""
    mistakes = Mistakes()
    values = _MESSAGE.read_nested(data, "", mistakes)
    policy = make_policy(values["ipolicy"], Policy())
    groups = [ganeti.make_group(uuid, group, policy) for uuid, group in values["nodegroups"].items()]
    names = {group.uuid: group.name for group in groups}
    memory = ganeti.node_memory(next(iter(values["enabled_hypervisors"]), ""))
    nodes = _nodes(values["nodes"], names, memory, mistakes)
    cluster = Cluster(tuple(groups), tuple(nodes), values["instances"], values["cluster_tags"], policy)
    places = Places(
        groups=[f"nodegroups.{group.uuid}" for group in groups],
        nodes=[f"nodes.{node.name}" for node in nodes],
        instances=[f"instances.{instance.name}" for instance in cluster.instances],
    )
    check_cluster(cluster, places, mistakes)
    mistakes.check()
    return Loaded(cluster, values["request"])


def requested_instances(loaded: Loaded) -> tuple[Instance, ...]:
    """Return the instances that an `allocate` or `multi-allocate` request wants placed, else none; raise InputError."""
    mistakes = Mistakes()
    request = _REQUEST.read_nested(loaded.request, "request", mistakes)
    several = [(f"request.instances[{position}]", one) for position, one in enumerate(request["instances"])]
    wanted = {"allocate": [("request", loaded.request)], "multi-allocate": several}.get(request["type"], [])
    pools = pool_names(loaded.cluster.nodes)
    instances = []
    for place, data in wanted:
        instance = _NEW_INSTANCE.read_nested(data, place, mistakes)
        check_new_instance(instance, f"{place}.", pools, mistakes)
        instances.append(instance)
    mistakes.check()
    return tuple(instances)


def _nodes(given: Mapping[str, t.Any], groups: Mapping[str, str], own_memory: int | None, mistakes: Mistakes) -> list[Node]:
    """Return the nodes, with what those report that are to run instances and answer. `groups` are names by UUID."""
    read = _NODES.read_nested(given, "nodes", mistakes)
    live = {name: given[name] for name, values in read.items() if ganeti.may_run(values) and values["total_memory"] is not None}
    reports = _REPORTS.read_nested({name: data for name, data in live.items() if isinstance(data, Mapping)}, "nodes", mistakes)
    nodes = []
    for name, values in read.items():
        report = _REPORT.fields(reports.get(name))
        if name in reports and own_memory is not None:
            report["node_memory"] = own_memory
        unreachable = name not in reports and ganeti.may_run(values) and not values["drained"]
        nodes.append(ganeti.make_node(name, groups.get(values["group"], values["group"]), values, report, unreachable=unreachable))
    return nodes
