# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster as plain data, as inline.py reads it: what was read from a server once can be given to the next task."""

from __future__ import annotations

import typing as t

from ..cluster.model import Cluster, Disk, Group, Instance, Load, Node, Policy, PoolName, Spec, StoragePool


def write_inline(cluster: Cluster) -> dict[str, t.Any]:
    """Return the cluster as dictionaries and lists; parse_inline gives the same cluster back."""
    return {
        "groups": [_group(group) for group in cluster.groups],
        "nodes": [_node(node) for node in cluster.nodes],
        "instances": [_instance(instance) for instance in cluster.instances],
        "tags": list(cluster.tags),
        "ipolicy": _policy(cluster.policy),
    }


def _group(group: Group) -> dict[str, t.Any]:
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


def _node(node: Node) -> dict[str, t.Any]:
    fields = {name: getattr(node, name) for name in Node.__dataclass_fields__}
    return fields | {"tags": list(node.tags), "storage": [_pool(pool) for pool in node.storage]}


def _pool(pool: StoragePool) -> dict[str, t.Any]:
    return _pool_name(pool.name) | {name: size for name, size in (("total", pool.total), ("free", pool.free)) if size is not None}


def _pool_name(name: PoolName) -> dict[str, t.Any]:
    return {"type": str(name.kind), "pool": name.pool}


def _instance(instance: Instance) -> dict[str, t.Any]:
    fields = {name: getattr(instance, name) for name in Instance.__dataclass_fields__ if name != "storage"}
    fields |= {
        "status": str(instance.status),
        "disk_template": str(instance.disk_template),
        "disks": [_disk(disk) for disk in instance.disks],
        "tags": list(instance.tags),
        "load": {name: getattr(instance.load, name) for name in Load.__dataclass_fields__},
        "networks": list(instance.networks),
    }
    return fields if instance.storage is None else fields | {"storage": _pool_name(instance.storage)}


def _disk(disk: Disk) -> dict[str, int]:
    return {"size": disk.size} | ({} if disk.spindles is None else {"spindles": disk.spindles})
