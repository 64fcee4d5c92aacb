# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ganeti's remote API (RAPI, version 2): four documents about cluster, groups, nodes and instances.

They come from a running cluster, or from files that hold what it answered (`info.json`, `groups.json`, `nodes.json`,
`instances.json`, as htools' `file://` takes them). What a node that is offline, or does not answer, would report is 0,
and it is offline here.
"""

from __future__ import annotations

import base64
import dataclasses
import http.client
import json
import ssl
import typing as t
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ...common.errors import InputError, Mistake, Mistakes, Unavailable
from ..cluster.check import Places, check_cluster
from ..cluster.model import AllocPolicy, Cluster, Disk, DiskTemplate, Group, Instance, Node, Policy, Status
from .fields import Fields
from .iallocator import KVM_NODE_MEMORY
from .policy import read_policy


@dataclass(frozen=True)
class Server:
    """Where to ask, and as whom; `url` is the part before the resource's path. Passwords never get into messages."""

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    validate_certs: bool = True
    timeout: float = 60.0

    def get(self, path: str) -> t.Any:
        """Return the JSON at `path`; raise Unavailable when there is no answer, or none that can be read."""
        if urlsplit(self.url).scheme not in ("http", "https"):
            raise InputError([Mistake("source.url", f"{self.url!r} must start with https:// or http://")])
        address = self.url.rstrip("/") + path
        try:
            request = urllib.request.Request(address, headers=self._headers())
            with urllib.request.urlopen(request, timeout=self.timeout, context=self._context()) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Unavailable(f"{address} answers {error.code} {error.reason}") from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error or type(error).__name__
            raise Unavailable(f"cannot ask {address}: {reason}") from error
        except (ValueError, RecursionError) as error:
            raise Unavailable(f"{address} does not answer with JSON: {error}") from error

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json"}
        if self.username:
            token = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
            headers["Authorization"] = f"Basic {token}"
        return headers

    def _context(self) -> ssl.SSLContext | None:
        if urlsplit(self.url).scheme != "https":
            return None
        context = ssl.create_default_context()
        if not self.validate_certs:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


RESOURCES = {"info": "/2/info", "groups": "/2/groups?bulk=1", "nodes": "/2/nodes?bulk=1", "instances": "/2/instances?bulk=1"}
"""What is asked for, by the name of the document."""


def fetch_rapi(server: Server) -> Cluster:
    """Return the cluster that a RAPI server describes; raise Unavailable when it cannot be asked, InputError when not understood."""
    return parse_rapi({name: server.get(path) for name, path in RESOURCES.items()})


def parse_rapi(documents: Mapping[str, t.Any]) -> Cluster:
    """Return the cluster in the documents of RESOURCES; raise InputError with all mistakes."""
    mistakes = Mistakes()
    fields = Fields(documents, "", mistakes)
    info = fields.child("info")
    policy = read_policy(info, "ipolicy", Policy())
    groups = [_group(group, policy) for group in fields.children("groups", required=True)]
    names = {group.uuid: group.name for group in groups}
    memory = KVM_NODE_MEMORY if info.text("default_hypervisor", "") == "kvm" else None
    master = info.text("master", "")
    nodes = [_node(node, names, master, memory) for node in fields.children("nodes", required=True)]
    instances = [_instance(instance) for instance in fields.children("instances", required=True)]
    cluster = Cluster(tuple(groups), tuple(nodes), tuple(instances), info.strings("tags"), policy)
    places = Places(
        groups=[f"groups[{position}]" for position in range(len(groups))],
        nodes=[f"nodes[{position}]" for position in range(len(nodes))],
        instances=[f"instances[{position}]" for position in range(len(instances))],
    )
    check_cluster(cluster, places, mistakes)
    mistakes.check()
    return cluster


def _group(fields: Fields, policy: Policy) -> Group:
    return Group(
        name=fields.text("name"),
        uuid=fields.text("uuid"),
        alloc_policy=fields.word("alloc_policy", AllocPolicy),
        tags=fields.strings("tags"),
        policy=read_policy(fields, "ipolicy", policy),
    )


def _node(fields: Fields, groups: Mapping[str, str], master: str, kvm_memory: int | None) -> Node:
    parameters = fields.child("ndparams")
    exclusive = parameters.truth("exclusive_storage", False)
    live = not fields.truth("offline") and fields.truth("vm_capable", True) and "mtotal" in fields
    name, uuid = fields.text("name"), fields.text("group.uuid")
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
        master=name == master,
        tags=fields.strings("tags"),
        exclusive_storage=exclusive,
        spindles=0 if exclusive else parameters.integer("spindle_count", 1),
    )
    return _with_report(node, fields, kvm_memory) if live else node


def _with_report(node: Node, fields: Fields, kvm_memory: int | None) -> Node:
    return dataclasses.replace(
        node,
        total_memory=fields.number("mtotal"),
        node_memory=fields.integer("mnode") if kvm_memory is None else kvm_memory,
        free_memory=fields.integer("mfree"),
        total_disk=fields.number("dtotal", 0.0),
        free_disk=fields.integer("dfree", 0),
        total_cpus=fields.number("ctotal"),
        node_cpus=fields.integer("cnos", 0),
        spindles=fields.integer("sptotal", 0) if node.exclusive_storage else node.spindles,
        free_spindles=fields.integer("spfree", 0),
    )


def _instance(fields: Fields) -> Instance:
    backend = fields.child("beparams")
    secondaries = fields.strings("snodes")
    sizes = [_whole(fields, "disk.sizes", size) for size in fields.items("disk.sizes")]
    spindles = [*fields.items("disk.spindles"), *(None for _size in sizes)]
    return Instance(
        name=fields.text("name"),
        memory=_memory(fields, backend),
        disk=fields.integer("disk_usage"),
        vcpus=backend.integer("vcpus"),
        primary=fields.text("pnode"),
        secondary=secondaries[0] if secondaries else "",
        status=fields.word("status", Status),
        auto_balance=backend.truth("auto_balance", True),
        disk_template=fields.word("disk_template", DiskTemplate),
        disks=tuple(Disk(size, None if count is None else _whole(fields, "disk.spindles", count)) for size, count in zip(sizes, spindles)),
        tags=fields.strings("tags"),
        spindle_use=backend.integer("spindle_use", 1),
        forthcoming=fields.truth("forthcoming", False),
    )


def _memory(fields: Fields, backend: Fields) -> int:
    """Return what it uses while it runs, else what it may use at most."""
    if isinstance(fields.raw("oper_ram"), (int, float)) and not isinstance(fields.raw("oper_ram"), bool):
        return fields.integer("oper_ram")
    return backend.integer("memory" if "memory" in backend else "maxmem")


def _whole(fields: Fields, name: str, value: t.Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    fields.wrong(name, f"holds {value!r}; must be whole numbers")
    return 0
