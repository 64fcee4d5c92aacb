# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks that hold for a cluster whatever source it came from: names that are names and refer to something, sizes that make sense."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ....module_utils._data.errors import Mistakes, suggest
from ....module_utils._data.kinds import Name
from .model import (
    NODE_DISK,
    OVER_GROUPS,
    OVER_NODES,
    USUAL_LOAD,
    Cluster,
    DiskTemplate,
    Instance,
    Node,
    Policy,
    PoolName,
    Rule,
    RuleKind,
    Spec,
)


@dataclass(frozen=True)
class Places:
    """Where each thing stands in the source, in the order of the cluster's tuples; mistakes name it."""

    groups: Sequence[str]
    nodes: Sequence[str]
    instances: Sequence[str]
    cluster: str = ""
    """What stands before the name of a field of the cluster itself."""
    whole: bool = True
    """Whether everything could be read; if not, a name that seems to refer to nothing may refer to what is missing."""
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
_NAME = Name()
_sizes_of = operator.attrgetter(*_NODE_SIZES)
_INSTANCE_SIZES = ("memory", "disk", "vcpus", "spindle_use")
_LOADS = ("cpu", "memory", "disk", "net")
_LARGEST = 2**53
"""Beyond it floating point numbers are no longer exact."""


def check_cluster(cluster: Cluster, places: Places, mistakes: Mistakes) -> None:
    """Add every dangling name, doubled name and impossible size of `cluster` to `mistakes`.

    May be called on what could be read of an input with mistakes: places that have one already get no second.
    """
    found = Mistakes()
    _check_letters(cluster, places, found)
    _check_names(cluster, places, found)
    check_policy(cluster.policy, places.cluster, found)
    for group, place in zip(cluster.groups, places.groups):
        check_policy(group.policy, place + places.separator, found)
    for node, place in zip(cluster.nodes, places.nodes):
        _check_node(node, place + places.separator, found)
    pools = pool_names(cluster.nodes)
    for instance, place in zip(cluster.instances, places.instances):
        if not _is_usual(instance):
            check_instance(instance, place + places.separator, pools, found)
    reported = {_spot(mistake.place) for mistake in mistakes.found()}
    mistakes.extend(mistake for mistake in found.found() if reported.isdisjoint((_spot(mistake.place), mistake.place.rpartition(".")[0])))


def _spot(place: str) -> str:
    """Return the place, of a policy as a whole: one wrong number in it makes others look wrong."""
    return place.partition("ipolicy")[0] if "ipolicy" in place else place


def _check_letters(cluster: Cluster, places: Places, mistakes: Mistakes) -> None:
    """Refuse what is called by more than a name: names become arguments of commands, parts of URLs, hosts that tasks are delegated to."""
    dot = places.separator
    if _NAME.read_column(list({name for _place, name in _all_names(cluster, places)})) is not None:
        return
    for place, name in _all_names(cluster, places):
        _check_name(name, f"{place[0]}{dot}{place[1]}", mistakes)


def _check_name(name: str, place: str, mistakes: Mistakes) -> None:
    """Add a mistake for an invalid name; a missing one is reported by its reader."""
    try:
        Name(blank_too=True).read(name)
    except ValueError as error:
        mistakes.add(place, str(error))


def _all_names(cluster: Cluster, places: Places) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield every name that a cluster gives, or refers to, with the place of its owner and the field."""
    for group, place in zip(cluster.groups, places.groups):
        yield (place, "name"), group.name
        yield (place, "uuid"), group.uuid
        yield from (((place, f"networks[{number}]"), name) for number, name in enumerate(group.networks))
    for node, place in zip(cluster.nodes, places.nodes):
        yield (place, "name"), node.name
        yield (place, "group"), node.group
        yield from (((place, f"storage[{number}].pool"), pool.name.pool) for number, pool in enumerate(node.storage))
    for instance, place in zip(cluster.instances, places.instances):
        yield from (((place, field), name) for field, name in _instance_names(instance))


def _instance_names(instance: Instance) -> Iterator[tuple[str, str]]:
    """Yield every name of an instance with its field."""
    yield "name", instance.name
    if instance.primary:
        yield "primary", instance.primary
    if instance.secondary:
        yield "secondary", instance.secondary
    if instance.storage is not None:
        yield "storage.pool", instance.storage.pool
    for number, name in enumerate(instance.networks):
        yield f"networks[{number}]", name
    for number, disk in enumerate(instance.disks):
        if disk.name:
            yield f"disks[{number}].name", disk.name
        if disk.storage is not None:
            yield f"disks[{number}].storage.pool", disk.storage.pool


def _check_names(cluster: Cluster, places: Places, mistakes: Mistakes) -> None:
    """Check that names are there, are unique, and refer to something, as far as everything could be read."""
    separator = places.separator
    _check_unique("group", "name", [group.name for group in cluster.groups], places.groups, separator, mistakes)
    _check_unique("group", "uuid", [group.uuid for group in cluster.groups], places.groups, separator, mistakes)
    _check_unique("node", "name", [node.name for node in cluster.nodes], places.nodes, separator, mistakes)
    _check_unique("instance", "name", [instance.name for instance in cluster.instances], places.instances, separator, mistakes)
    groups, nodes = cluster.group_positions(), cluster.node_positions()
    if not places.whole or "" in groups or "" in nodes:
        return
    for node, place in zip(cluster.nodes, places.nodes):
        if node.group not in groups:
            mistakes.add(f"{place}{separator}group", f"unknown group {node.group!r}{suggest(node.group, groups)}")
    for instance, place in zip(cluster.instances, places.instances):
        if not _has_homes(instance, nodes):
            prefix = place + separator
            for role in ("primary", "secondary"):
                name = getattr(instance, role)
                if name and name not in nodes:
                    mistakes.add(f"{prefix}{role}", f"unknown node {name!r}{suggest(name, nodes)}")
            if not instance.primary:
                mistakes.add(f"{prefix}primary", "is missing; name the node the instance lives on")
            elif instance.primary == instance.secondary:
                mistakes.add(f"{prefix}secondary", f"is also the primary node, {instance.primary}; the two must differ")
            if instance.disk_template == DiskTemplate.DRBD and not instance.secondary:
                mistakes.add(f"{prefix}secondary", "is missing; disk template drbd needs a second node")


def check_rules(cluster: Cluster, place: str, mistakes: Mistakes) -> None:
    """Add names in rules that refer to nothing, and rules that say nothing."""
    instances, nodes = cluster.instance_positions(), cluster.node_positions()
    for position, rule in enumerate(cluster.rules):
        where = f"{place}[{position}]"
        if not rule.instances and not rule.tags:
            mistakes.add(where, "names no instance; give instances or tags")
        if bool(rule.nodes) != (rule.kind == RuleKind.PIN):
            mistakes.add(
                f"{where}.nodes", "is missing; a pin names nodes" if rule.kind == RuleKind.PIN else f"does not go with {rule.kind}"
            )
        if rule.hardware and not rule.strict:
            mistakes.add(f"{where}.strict", "must be true with hardware, which no instance can do without")
        if rule.kind == RuleKind.SPREAD:
            _check_spread(cluster, rule, where, mistakes)
        for name in rule.instances:
            if name not in instances:
                mistakes.add(f"{where}.instances", f"unknown instance {name!r}{suggest(name, instances)}")
        for name in rule.nodes:
            if name not in nodes:
                mistakes.add(f"{where}.nodes", f"unknown node {name!r}{suggest(name, nodes)}")


def _check_spread(cluster: Cluster, rule: Rule, where: str, mistakes: Mistakes) -> None:
    """Check that a spread over tags has domains, and each node one of them at most."""
    if rule.over in (OVER_NODES, OVER_GROUPS):
        return
    tagged = {node.name: [tag for tag in node.tags if rule.over and tag.startswith(rule.over)] for node in cluster.nodes}
    if not any(tagged.values()):
        says = f"is {rule.over!r}; must be {OVER_NODES}, {OVER_GROUPS}, or what tags of nodes begin with, and no node has such a tag"
        mistakes.add(f"{where}.over", says)
    for name, tags in tagged.items():
        if len(tags) > 1:
            mistakes.add(f"{where}.over", f"node {name} has several tags that begin with {rule.over!r}: {', '.join(tags)}; must have one")


def check_instance(instance: Instance, prefix: str, pools: frozenset[PoolName], mistakes: Mistakes) -> None:
    """Add the mistakes of sizes of one instance, whose fields follow `prefix` in their places."""
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


def check_new_instance(instance: Instance, prefix: str, pools: frozenset[PoolName], mistakes: Mistakes) -> None:
    """Add the mistakes of an instance that is in no cluster yet, whose names are not checked yet."""
    for field, name in _instance_names(instance):
        _check_name(name, f"{prefix}{field}", mistakes)
    check_instance(instance, prefix, pools, mistakes)


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


def _check_unique(kind: str, field: str, values: Sequence[str], places: Sequence[str], separator: str, mistakes: Mistakes) -> None:
    distinct = set(values)
    if len(distinct) == len(values) and "" not in distinct:
        return
    seen: dict[str, str] = {}
    for value, place in zip(values, places):
        if not value:
            mistakes.add(f"{place}{separator}{field}", "is missing")
        elif value in seen:
            mistakes.add(place, f"the {kind} with the {field} {value} occurs twice, also at {seen[value]}")
        else:
            seen[value] = place


def _check_node(node: Node, prefix: str, mistakes: Mistakes) -> None:
    sizes = _sizes_of(node)
    if not all(0 <= size <= _LARGEST for size in sizes):
        for name, size in zip(_NODE_SIZES, sizes):
            _check_size(size, f"{prefix}{name}", mistakes)
    if not (math.isfinite(node.cpu_speed) and node.cpu_speed > 0):
        mistakes.add(f"{prefix}cpu_speed", f"is {node.cpu_speed}; must be above 0")
    seen: set[PoolName] = set()
    for position, pool in enumerate(node.storage):
        where = f"{prefix}storage[{position}]"
        if pool.name in seen:
            mistakes.add(where, f"the pool {pool.name} occurs twice")
        seen.add(pool.name)
        _check_size(pool.total or 0, f"{where}.total", mistakes)
        _check_size(pool.free or 0, f"{where}.free", mistakes)


def _is_usual(instance: Instance) -> bool:
    """Return whether an instance needs no closer look, as nearly all do; spelled out, since clusters have thousands."""
    for disk in instance.disks:
        if not 0 <= disk.size <= _LARGEST or (disk.spindles is not None and not 0 <= disk.spindles <= _LARGEST):
            return False
    return (
        0 <= instance.memory <= _LARGEST
        and 0 <= instance.disk <= _LARGEST
        and 0 <= instance.vcpus <= _LARGEST
        and 0 <= instance.spindle_use <= _LARGEST
        and instance.load is USUAL_LOAD
        and instance.storage is None
    )


def _has_homes(instance: Instance, nodes: dict[str, int]) -> bool:
    if instance.primary not in nodes:
        return False
    if instance.secondary:
        return instance.secondary != instance.primary and instance.secondary in nodes
    return instance.disk_template is not DiskTemplate.DRBD


def _check_size(value: float, place: str, mistakes: Mistakes) -> None:
    if not 0 <= value <= _LARGEST:
        mistakes.add(place, f"is {value}; must be 0 or more" if value < 0 else f"is {value}; that is not a usable size")
