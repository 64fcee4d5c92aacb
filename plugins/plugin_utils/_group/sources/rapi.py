# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ganeti's remote API (RAPI, version 2): four documents about cluster, groups, nodes and instances.

They come from a running cluster, or from files that hold what it answered (`info.json`, `groups.json`, `nodes.json`,
`instances.json`, as htools' `file://` takes them).
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ....module_utils._data.containers import ListOf, Row, Table, Values
from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import Anything, Whole, Word, is_number, is_whole, shown
from ..._common.lenient import NAME, NUMBER, STRINGS, TRUTH, WHOLE
from ..._common.urls import join_url
from ..cluster.check import Places, check_cluster
from ..cluster.model import Cluster, Disk, Instance, Node, Policy, Status
from . import ganeti
from .policy import GANETI_POLICY, make_policy
from .server import Server

RESOURCES = {"info": join_url("", 2, "info")} | {name: join_url("", 2, name, bulk=1) for name in ("groups", "nodes", "instances")}
"""What is asked for, by the name of the document."""


def fetch_rapi(server: Server) -> Cluster:
    """Return the cluster that a RAPI server describes; raise Unavailable when it cannot be asked, InputError when not understood."""
    return parse_rapi({name: server.get(path) for name, path in RESOURCES.items()})


_GROUP = Table(
    "a group",
    [
        Row("name", NAME, required=True),
        Row("uuid", NAME, required=True),
        ganeti.ALLOC_POLICY,
        ganeti.TAGS,
        Row("ipolicy", GANETI_POLICY),
    ],
    others=True,
)
_NODE = Table(
    "a node",
    [
        Row("name", NAME, required=True),
        Row("group.uuid", NAME, required=True),
        *ganeti.NODE_ROWS,
        Row("mtotal", Anything()),
    ],
    others=True,
)
_REPORT = ganeti.Report(
    total_memory=Row("mtotal", NUMBER, required=True),
    node_memory=Row("mnode", WHOLE, required=True),
    free_memory=Row("mfree", WHOLE, required=True),
    total_disk=Row("dtotal", NUMBER, default=0.0),
    free_disk=Row("dfree", WHOLE, default=0),
    total_cpus=Row("ctotal", NUMBER, required=True),
    node_cpus=Row("cnos", WHOLE, default=0),
    spindles=Row("sptotal", WHOLE, default=0),
    free_spindles=Row("spfree", WHOLE, default=0),
)
_BACKEND = Table(
    "backend parameters",
    [
        Row("vcpus", WHOLE, required=True),
        Row("auto_balance", TRUTH, default=True),
        ganeti.SPINDLE_USE,
        Row("memory", WHOLE),
        Row("maxmem", WHOLE),
    ],
    others=True,
)
_INSTANCE = Table(
    "an instance",
    [
        Row("name", NAME, required=True),
        Row("disk_usage", WHOLE, required=True),
        Row("pnode", NAME, required=True),
        Row("snodes", STRINGS, default=()),
        Row("status", Word(Status), required=True),
        ganeti.DISK_TEMPLATE,
        Row("disk.sizes", ListOf(Whole(), "whole numbers"), default=()),
        Row("disk.spindles", ListOf(Anything(), "whole numbers"), default=()),
        Row("oper_ram", Anything()),
        ganeti.TAGS,
        ganeti.FORTHCOMING,
        Row("beparams", _BACKEND, required=True),
    ],
    others=True,
)
_INFO = Table(
    "a cluster",
    [
        Row("ipolicy", GANETI_POLICY),
        Row("default_hypervisor", NAME, default=""),
        Row("master", NAME, default=""),
        ganeti.TAGS,
    ],
    others=True,
)
_DOCUMENTS = Table(
    "RAPI's documents",
    [
        Row("info", _INFO, default=_INFO.blank),
        Row("groups", ListOf(_GROUP, "groups"), required=True),
        Row("nodes", ListOf(Anything(), "nodes"), required=True),
        Row("instances", ListOf(_INSTANCE, "instances"), required=True),
    ],
    others=True,
)


def parse_rapi(documents: Mapping[str, t.Any]) -> Cluster:
    """Return the cluster in the documents of RESOURCES; raise InputError with all mistakes."""
    mistakes = Mistakes()
    values = _DOCUMENTS.read_nested(documents, "", mistakes)
    info = values["info"]
    policy = make_policy(info["ipolicy"], Policy())
    groups = [ganeti.make_group(group["uuid"], group, policy) for group in values["groups"]]
    names = {group.uuid: group.name for group in groups}
    memory = ganeti.node_memory(info["default_hypervisor"])
    places = Places(
        groups=[f"groups[{position}]" for position in range(len(groups))],
        nodes=[f"nodes[{position}]" for position in range(len(values["nodes"]))],
        instances=[f"instances[{position}]" for position in range(len(values["instances"]))],
    )
    nodes = [_node(node, place, names, info["master"], memory, mistakes) for node, place in zip(values["nodes"], places.nodes)]
    instances = [_instance(one, place, mistakes) for one, place in zip(values["instances"], places.instances)]
    cluster = Cluster(tuple(groups), tuple(nodes), tuple(instances), info["tags"], policy)
    check_cluster(cluster, places, mistakes)
    mistakes.check()
    return cluster


def _node(data: t.Any, place: str, groups: Mapping[str, str], master: str, own_memory: int | None, mistakes: Mistakes) -> Node:
    """Return a node, with what it reports if it is to run instances and answers. `groups` are names by UUID."""
    values = _NODE.read_nested(data, place, mistakes)
    live = ganeti.may_run(values) and values["mtotal"] is not None
    report = _REPORT.fields(_REPORT.table.read_nested(data, place, mistakes) if live else None)
    if live and own_memory is not None:
        report["node_memory"] = own_memory
    group = groups.get(values["group.uuid"], values["group.uuid"])
    unreachable, name = ganeti.may_run(values) and not live, values["name"]
    return ganeti.make_node(name, group, values, report, unreachable=unreachable, master=name == master)


def _instance(values: Values, place: str, mistakes: Mistakes) -> Instance:
    backend = values["beparams"]
    sizes = values["disk.sizes"]
    spindles = [_spindles(count, f"{place}.disk.spindles[{number}]", mistakes) for number, count in enumerate(values["disk.spindles"])]
    return Instance(
        name=values["name"],
        memory=_memory(values, place, mistakes),
        disk=values["disk_usage"],
        vcpus=backend["vcpus"],
        primary=values["pnode"],
        secondary=values["snodes"][0] if values["snodes"] else "",
        status=values["status"],
        auto_balance=backend["auto_balance"],
        disk_template=values["disk_template"],
        disks=tuple(Disk(size, count) for size, count in zip(sizes, [*spindles, *(None for _size in sizes)])),
        tags=values["tags"],
        spindle_use=backend["spindle_use"],
        forthcoming=values["forthcoming"],
    )


def _spindles(count: t.Any, place: str, mistakes: Mistakes) -> int | None:
    """Return the spindles of a disk; Ganeti has null where it counts none."""
    if count is None or is_whole(count):
        return count
    mistakes.add(place, f"is {shown(count)}; must be a whole number")
    return None


def _memory(values: Values, place: str, mistakes: Mistakes) -> int:
    """Return what it uses while it runs, else what it may use at most."""
    if is_number(values["oper_ram"]):
        return int(values["oper_ram"])
    backend = values["beparams"]
    most: int | None = backend["maxmem"] if backend["memory"] is None else backend["memory"]
    if most is None and not mistakes.has(f"{place}.beparams"):
        mistakes.add(f"{place}.beparams.maxmem", "is missing; must be a whole number")
    return most or 0
