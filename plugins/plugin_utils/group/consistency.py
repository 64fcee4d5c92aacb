# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks that hold for a cluster whatever source it came from: names that refer to something, sizes that make sense."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..common.errors import Mistakes, suggest
from .model import NODE_DISK, Cluster, DiskTemplate, Instance, Node, Policy, PoolName, Spec


@dataclass(frozen=True)
class Places:
    """Where each thing stands in the source, in the order of the cluster's tuples; mistakes name it."""

    groups: Sequence[str]
    nodes: Sequence[str]
    instances: Sequence[str]
    cluster: str = ""
    """What stands before the name of a field of the cluster itself."""
    separator: str = "."
    """What stands between a place and the name of a field."""


_NODE_SIZES = (
    "total_memory",
    "node_memory",
    "free_memory",
    "total_disk",
    "free_disk",
    "total_cpus",
    "node_cpus",
    "spindles",
    "free_spindles",
)
_INSTANCE_SIZES = ("memory", "disk", "vcpus", "spindle_use")
_LOADS = ("cpu", "memory", "disk", "net")
_LARGEST = 2**53
"""Beyond it floating point numbers are no longer exact."""


def check_cluster(cluster: Cluster, places: Places, mistakes: Mistakes) -> None:
    """Add every dangling name, doubled name and impossible size of `cluster` to `mistakes`."""
    _check_unique("group", [group.name for group in cluster.groups], places.groups, mistakes)
    _check_unique("group uuid", [group.uuid for group in cluster.groups], places.groups, mistakes)
    _check_unique("node", [node.name for node in cluster.nodes], places.nodes, mistakes)
    _check_unique("instance", [instance.name for instance in cluster.instances], places.instances, mistakes)
    check_policy(cluster.policy, places.cluster, mistakes)
    for group, place in zip(cluster.groups, places.groups):
        check_policy(group.policy, place + places.separator, mistakes)
    groups = cluster.group_positions()
    for node, place in zip(cluster.nodes, places.nodes):
        _check_node(node, place + places.separator, groups, mistakes)
    nodes = cluster.node_positions()
    pools = pool_names(cluster.nodes)
    for instance, place in zip(cluster.instances, places.instances):
        _check_homes(instance, place + places.separator, nodes, mistakes)
        check_instance(instance, place + places.separator, pools, mistakes)


def check_instance(instance: Instance, prefix: str, pools: frozenset[PoolName], mistakes: Mistakes) -> None:
    """Add the mistakes of one instance's own fields, which follow `prefix` in their places; it may be yet to be placed."""
    for name in _INSTANCE_SIZES:
        _check_size(getattr(instance, name), f"{prefix}{name}", mistakes)
    for name in _LOADS:
        _check_size(getattr(instance.load, name), f"{prefix}load.{name}", mistakes)
    for position, disk in enumerate(instance.disks):
        _check_size(disk.size, f"{prefix}disks[{position}].size", mistakes)
        _check_size(disk.spindles or 0, f"{prefix}disks[{position}].spindles", mistakes)
    if instance.storage is not None and instance.storage not in pools:
        says = f"no node has the storage pool {instance.storage}{suggest(str(instance.storage), map(str, pools))}"
        mistakes.add(f"{prefix}storage", says)


def check_policy(policy: Policy, prefix: str, mistakes: Mistakes) -> None:
    """Add the mistakes of a policy: no interval, a minimum above its maximum, negative ratios."""
    if not policy.intervals:
        mistakes.add(f"{prefix}ipolicy", "has no interval; give at least one pair of min and max")
    for position, interval in enumerate(policy.intervals):
        where = f"{prefix}ipolicy.minmax[{position}]"
        for name in Spec.__dataclass_fields__:
            low, high = getattr(interval.minimum, name), getattr(interval.maximum, name)
            if not 0 <= low <= high:
                mistakes.add(f"{where}.{name}", f"min {low} and max {high} must be 0 <= min <= max")
    for name in ("vcpu_ratio", "spindle_ratio"):
        _check_size(getattr(policy, name), f"{prefix}ipolicy.{name}", mistakes)


def pool_names(nodes: Iterable[Node]) -> frozenset[PoolName]:
    """Return the storage pools an instance may name: those of any node, and every node's own disk."""
    return frozenset({NODE_DISK}) | {pool.name for node in nodes for pool in node.storage}


def _check_unique(kind: str, names: Sequence[str], places: Sequence[str], mistakes: Mistakes) -> None:
    seen: dict[str, str] = {}
    for name, place in zip(names, places):
        if not name:
            mistakes.add(place, f"the {kind} has no name")
        elif name in seen:
            mistakes.add(place, f"the {kind} {name} is there twice, also at {seen[name]}")
        else:
            seen[name] = place


def _check_node(node: Node, prefix: str, groups: dict[str, int], mistakes: Mistakes) -> None:
    if node.group not in groups:
        mistakes.add(f"{prefix}group", f"unknown group {node.group!r}{suggest(node.group, groups)}")
    for name in _NODE_SIZES:
        _check_size(getattr(node, name), f"{prefix}{name}", mistakes)
    if not (math.isfinite(node.cpu_speed) and node.cpu_speed > 0):
        mistakes.add(f"{prefix}cpu_speed", f"is {node.cpu_speed}; must be above 0")
    seen: set[PoolName] = set()
    for position, pool in enumerate(node.storage):
        where = f"{prefix}storage[{position}]"
        if pool.name in seen:
            mistakes.add(where, f"the pool {pool.name} is there twice")
        seen.add(pool.name)
        _check_size(pool.total or 0, f"{where}.total", mistakes)
        _check_size(pool.free or 0, f"{where}.free", mistakes)


def _check_homes(instance: Instance, prefix: str, nodes: dict[str, int], mistakes: Mistakes) -> None:
    for role in ("primary", "secondary"):
        name = getattr(instance, role)
        if name and name not in nodes:
            mistakes.add(f"{prefix}{role}", f"unknown node {name!r}{suggest(name, nodes)}")
    if not instance.primary:
        mistakes.add(f"{prefix}primary", "is missing; name the node the instance lives on")
    elif instance.primary == instance.secondary:
        mistakes.add(f"{prefix}secondary", f"is the primary node, {instance.primary}, too; the two must differ")
    if instance.disk_template == DiskTemplate.DRBD and not instance.secondary:
        mistakes.add(f"{prefix}secondary", "is missing; disk template drbd needs a second node")


def _check_size(value: float, place: str, mistakes: Mistakes) -> None:
    if not 0 <= value <= _LARGEST:
        mistakes.add(place, f"is {value}; must be 0 or more" if value < 0 else f"is {value}; that is no usable size")
