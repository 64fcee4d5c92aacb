# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on where instances run, and Ganeti's exclusion tags, as slots: counts of primaries on each node, with a limit of each.

    slots = collect_slots(cluster, instances, exclusion)      # instances that have a tag in common are on different nodes

An exclusion tag and a rule of anti-affinity let one primary come to a node. A pin lets none come to the other nodes, and any number to
its own; pins to the same nodes are one slot. So are instances with more virtual CPUs than some nodes have CPUs, and whatever else a node
must have so that an instance starts there: these slots are the hardware's. An affinity has no such limit: `together`
lists its instances.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..._common.libraries import np, npt
from .model import Cluster, Instance, Rule, RuleKind


@dataclass(frozen=True)
class Slots:
    """T slots; the first are those of exclusion tags, which are soft limits, the others are rules, which are hard ones."""

    names: tuple[str, ...]
    of_instance: tuple[tuple[int, ...], ...]
    limit: npt.NDArray[np.float64]
    """[N, T]: how many primaries a node may have."""
    soft: int
    """How many are exclusion tags."""
    together: npt.NDArray[np.bool_]
    """[T]: those whose primaries are all to be on one node."""
    own_names: Mapping[tuple[int, int], str]
    """Of an instance and a slot that several rules share: the rules of this instance."""
    hardware: npt.NDArray[np.bool_]
    """[T]: those that say where an instance can run at all."""
    cpus: npt.NDArray[np.int64]
    """[T]: of those of virtual CPUs how many these are, 0 of others."""

    def name_for(self, instance: int, slot: int) -> str:
        """Return what a slot is called where one of its instances is spoken of."""
        return self.own_names.get((instance, slot), self.names[slot])


def collect_slots(cluster: Cluster, instances: Sequence[Instance], exclusion: Sequence[Sequence[str]]) -> Slots:
    """Return the slots of instances, each of which has those exclusion tags."""
    names = list(dict.fromkeys(tag for tags in exclusion for tag in tags))
    known = {name: position for position, name in enumerate(names)}
    of_instance = [tuple([known[tag] for tag in tags]) if tags else () for tags in exclusion]
    soft = len(names)
    limits = [np.ones((len(cluster.nodes), soft))]
    together, hardware, cpus = [False] * soft, [False] * soft, [0] * soft
    own_names = {}
    for slot in [*(_rule_slots(cluster, instances) if cluster.rules else ()), *_cpu_slots(cluster, instances)]:
        for member, rules in slot.members.items():
            of_instance[member] += (len(names),)
            if len(slot.rules) > 1:
                own_names[member, len(names)] = "; ".join(rules)
        names.append("; ".join(slot.rules))
        limits.append(slot.limit[:, None])
        together.append(slot.together)
        hardware.append(slot.hardware)
        cpus.append(slot.cpus)
    limit = np.concatenate(limits, axis=1)
    kinds = np.array([together, hardware], dtype=bool).reshape(2, -1)
    return Slots(tuple(names), tuple(of_instance), limit, soft, kinds[0], own_names, kinds[1], np.array(cpus, dtype=np.int64))


def with_cpus(slots: Slots, cluster: Cluster, instance: Instance, own: Sequence[int]) -> tuple[Slots, tuple[int, ...]]:
    """Return the slots of an instance with other virtual CPUs than its slots `own` are for, and all slots, which may be one more."""
    others = tuple(slot for slot in own if not slots.cpus[slot])
    needed = _cpu_slots(cluster, [instance])
    if not needed:
        return slots, others
    known = np.flatnonzero(slots.cpus == instance.vcpus)
    if len(known):
        return slots, (*others, int(known[0]))
    (slot,) = needed
    more = dataclasses.replace(
        slots,
        names=(*slots.names, *slot.rules),
        limit=np.column_stack([slots.limit, slot.limit]),
        together=np.append(slots.together, False),
        hardware=np.append(slots.hardware, True),
        cpus=np.append(slots.cpus, instance.vcpus),
    )
    return more, (*others, len(slots.names))


def members_of(rules: Iterable[Rule], instances: Sequence[Instance]) -> list[tuple[int, ...]]:
    """Return for each rule the positions of the instances that it is about."""
    by_name: dict[str, list[int]] = collections.defaultdict(list)
    by_tag: dict[str, list[int]] = collections.defaultdict(list)
    for position, instance in enumerate(instances):
        by_name[instance.name].append(position)
        for tag in instance.tags:
            by_tag[tag].append(position)
    found = []
    for rule in rules:
        named = [position for name in rule.instances for position in by_name.get(name, ())]
        tagged = [position for tag in rule.tags for position in by_tag.get(tag, ())]
        found.append(tuple(sorted({*named, *tagged})))
    return found


@dataclass(frozen=True)
class Contradiction:
    """Rules that cannot hold together, whatever moves, and their members, by name and by position."""

    rules: tuple[str, ...]
    instances: tuple[str, ...]
    says: str
    members: tuple[int, ...] = ()


def contradictions(cluster: Cluster) -> tuple[Contradiction, ...]:
    """Return the rules that contradict each other, or that more instances are under than there are nodes."""
    members = {position: frozenset(of_rule) for position, of_rule in enumerate(members_of(cluster.rules, cluster.instances))}
    pinned_to = _pins(cluster, members)
    everywhere = frozenset(node.name for node in cluster.nodes)
    names = [instance.name for instance in cluster.instances]
    found = []

    def report(rules: Sequence[int], instances: frozenset[int], says: str) -> None:
        listed = ", ".join(names[one] for one in sorted(instances))
        called = tuple(cluster.rules[rule].name for rule in rules)
        found.append(Contradiction(called, tuple(names[one] for one in sorted(instances)), f"{says}: {listed}", tuple(sorted(instances))))

    for position, rule in enumerate(cluster.rules):
        if rule.kind == RuleKind.ANTI_AFFINITY:
            allowed = frozenset().union(*(pinned_to.get(one, everywhere) for one in members[position]))
            if len(members[position]) > len(allowed):
                nodes = "1 node" if len(allowed) == 1 else f"{len(allowed)} nodes"
                report([position], members[position], f"{rule.name} keeps {len(members[position])} apart, with only {nodes}")
        if rule.kind != RuleKind.AFFINITY:
            continue
        for other, against in enumerate(cluster.rules):
            both = members[position] & members[other]
            if against.kind == RuleKind.ANTI_AFFINITY and len(both) > 1:
                report([position, other], both, f"{rule.name} keeps instances together that {against.name} keeps apart")
        pinned = {one: pinned_to.get(one, everywhere) for one in members[position]}
        if pinned and not frozenset.intersection(*pinned.values()):
            instances = frozenset(one for one, nodes in pinned.items() if len(nodes) < len(cluster.nodes))
            report([position], instances, f"{rule.name} keeps instances together that are pinned to different nodes")
    return tuple(found)


def _pins(cluster: Cluster, members: Mapping[int, frozenset[int]]) -> dict[int, frozenset[str]]:
    """Return the nodes that pins leave to each pinned instance."""
    found: dict[int, frozenset[str]] = {}
    for position, rule in enumerate(cluster.rules):
        for one in members[position] if rule.kind == RuleKind.PIN else ():
            found[one] = found.get(one, frozenset(rule.nodes)) & frozenset(rule.nodes)
    return found


@dataclass(frozen=True)
class _RuleSlot:
    """A slot: the rules that it stands for, limits [N], whether its members are to be together, and of each member its own rules.

    One of `hardware` says where its members can run at all.
    """

    rules: tuple[str, ...]
    limit: npt.NDArray[np.float64]
    together: bool
    members: Mapping[int, Sequence[str]]
    hardware: bool = False
    cpus: int = 0


def _cpu_slots(cluster: Cluster, instances: Sequence[Instance]) -> list[_RuleSlot]:
    """Return a slot for each number of virtual CPUs that some nodes have fewer CPUs than; nodes without a number may have any."""
    if cluster.more_cpus_than_node:
        return []
    cpus = np.array([node.total_cpus if node.total_cpus > 0 else np.inf for node in cluster.nodes])
    least = cpus.min(initial=np.inf)
    large: dict[int, list[int]] = {}
    for position, instance in enumerate(instances):
        if instance.vcpus > least and not instance.shares_cpus:
            large.setdefault(instance.vcpus, []).append(position)
    found = []
    for count, members in sorted(large.items()):
        names = (f"{count} virtual CPUs need a node with as many CPUs",)
        found.append(_RuleSlot(names, np.where(cpus >= count, np.inf, 0.0), False, dict.fromkeys(members, names), True, count))
    return found


def _rule_slots(cluster: Cluster, instances: Sequence[Instance]) -> list[_RuleSlot]:
    found = []
    pins: dict[tuple[frozenset[str], bool], dict[int, list[str]]] = {}
    everywhere = frozenset(cluster.node_positions())
    for rule, members in zip(cluster.rules, members_of(cluster.rules, instances)):
        if rule.kind in (RuleKind.AFFINITY, RuleKind.ANTI_AFFINITY):
            together = rule.kind == RuleKind.AFFINITY
            limit = np.full(len(cluster.nodes), np.inf if together else 1.0)
            if len(members) > 1:
                found.append(_RuleSlot((rule.name,), limit, together, dict.fromkeys(members, (rule.name,))))
            continue
        for member in members:
            # An instance without a node may go anywhere, and is left there.
            home = instances[member].primary
            allowed = frozenset(rule.nodes) if rule.kind == RuleKind.PIN else frozenset({home}) if home else everywhere
            names = pins.setdefault((allowed, rule.hardware), {}).setdefault(member, [])
            if rule.name not in names:
                names.append(rule.name)
    for (allowed, hardware), pinned in pins.items():
        column = np.array([np.inf if node.name in allowed else 0.0 for node in cluster.nodes])
        rules = tuple(dict.fromkeys(name for names in pinned.values() for name in names))
        found.append(_RuleSlot(rules, column, False, pinned, hardware))
    return found
