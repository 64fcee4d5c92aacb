# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes and instances of an IAllocator message that are just as Ganeti writes them: read in one go, see shape.py."""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Mapping

from ..cluster.model import Disk, DiskTemplate, Instance, Node, Status
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
