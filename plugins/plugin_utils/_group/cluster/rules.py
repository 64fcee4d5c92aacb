# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on where instances run, and Ganeti's exclusion tags, as slots: counts of primaries on each node, with a limit of each.

    slots = collect_slots(cluster, instances, exclusion)      # instances that have a tag in common are on different nodes

An exclusion tag and a rule of anti-affinity let one primary come to a node. A pin lets none come to the other nodes, and any number to
its own; pins to the same nodes are one slot. So are instances with more virtual CPUs than some nodes have CPUs, and whatever else a node
must have so that an instance starts there: these slots are the hardware's. An affinity has no such limit: `together`
lists its instances. Neither has a spread, but at nodes outside of all its domains: `spreads` says which domains there are.

Slots of rules that are not strict limit nothing, and have a weight in the score.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import typing as t
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..._common.libraries import np, npt
from .model import OVER_GROUPS, OVER_NODES, Cluster, Instance, Node, NodeState, Rule, RuleKind

NO_DOMAIN = -1
"""The domain of a node that a spread does not count."""


@dataclass(frozen=True, eq=False)
class SpreadSlot:
    """A slot whose primaries are to be equally many in each domain of a scope, but for `max_skew`.

    Scopes are the groups, or all the cluster; a node lies in one domain, or in NO_DOMAIN.
    """

    slot: int
    domain: npt.NDArray[np.int64]
    """[N]"""
    scope: npt.NDArray[np.int64]
    """[D]"""
    names: tuple[str, ...]
    """[D]"""
    max_skew: int
    strict: bool


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
    """[T]: those whose primaries must all be on one node."""
    drawn: npt.NDArray[np.bool_]
    """[T]: those whose primaries had better be on one node."""
    strict: npt.NDArray[np.bool_]
    """[T]: those that are limits; exclusion tags among them."""
    weights: npt.NDArray[np.float64]
    """[T]: of those that are not strict, as how many exclusion tags in conflict an instance counts that is not where it should be."""
    spreads: tuple[SpreadSlot, ...]
    own_names: Mapping[tuple[int, int], str]
    """Of an instance and a slot that several rules share: the rules of this instance."""
    hardware: npt.NDArray[np.bool_]
    """[T]: those that say where an instance can run at all."""
    cpus: npt.NDArray[np.int64]
    """[T]: of those of virtual CPUs how many these are, 0 of others."""

    @functools.cached_property
    def hard_limit(self) -> npt.NDArray[np.float64]:
        """Return [N, T]: how many primaries a node may have; infinite for rules that are not strict."""
        return np.where(self.strict, self.limit, np.inf)

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
    found = [*(_rule_slots(cluster, instances) if cluster.rules else ()), *_cpu_slots(cluster, instances)]
    own_names = {}
    spreads = []
    for slot in found:
        for member, rules in slot.members.items():
            of_instance[member] += (len(names),)
            if len(slot.rules) > 1:
                own_names[member, len(names)] = "; ".join(rules)
        if slot.domains is not None:
            domain, scope, called = slot.domains
            spreads.append(SpreadSlot(len(names), domain, scope, called, slot.max_skew, slot.strict))
        names.append("; ".join(slot.rules))
        limits.append(slot.limit[:, None])

    def kinds(of_tags: float, of_rules: Iterable[float], dtype: type) -> npt.NDArray[t.Any]:
        return np.array([*[of_tags] * soft, *of_rules], dtype=dtype)

    return Slots(
        names=tuple(names),
        of_instance=tuple(of_instance),
        limit=np.concatenate(limits, axis=1),
        soft=soft,
        together=kinds(False, (slot.together and slot.strict for slot in found), bool),
        drawn=kinds(False, (slot.together and not slot.strict for slot in found), bool),
        strict=kinds(True, (slot.strict for slot in found), bool),
        weights=kinds(0.0, (0.0 if slot.strict else slot.weight for slot in found), float),
        spreads=tuple(spreads),
        own_names=own_names,
        hardware=kinds(False, (slot.hardware for slot in found), bool),
        cpus=kinds(0, (slot.cpus for slot in found), int),
    )


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
        drawn=np.append(slots.drawn, False),
        strict=np.append(slots.strict, True),
        weights=np.append(slots.weights, 0.0),
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
    """Return the strict rules that contradict each other, or that more instances are under than there are nodes."""
    members = {position: frozenset(of_rule) for position, of_rule in enumerate(members_of(cluster.rules, cluster.instances))}
    pinned_to = _pins(cluster, members)
    everywhere = frozenset(node.name for node in cluster.nodes)
    names = [instance.name for instance in cluster.instances]
    found = []

    def report(rules: Sequence[int], instances: frozenset[int], says: str) -> None:
        listed = ", ".join(names[one] for one in sorted(instances))
        called = tuple(cluster.rules[rule].name for rule in rules)
        found.append(Contradiction(called, tuple(names[one] for one in sorted(instances)), f"{says}: {listed}", tuple(sorted(instances))))

    for position, rule in _strict(cluster):
        if rule.kind == RuleKind.SPREAD and (domain := _overfull(cluster, rule, members[position], pinned_to)):
            report([position], members[position], f"{rule.name} cannot hold, as pins keep too many in {domain}")
        if rule.kind == RuleKind.ANTI_AFFINITY:
            allowed = frozenset().union(*(pinned_to.get(one, everywhere) for one in members[position]))
            if len(members[position]) > len(allowed):
                nodes = "1 node" if len(allowed) == 1 else f"{len(allowed)} nodes"
                report([position], members[position], f"{rule.name} keeps {len(members[position])} apart, with only {nodes}")
        if rule.kind != RuleKind.AFFINITY:
            continue
        for other, against in _strict(cluster):
            both = members[position] & members[other]
            if against.kind == RuleKind.ANTI_AFFINITY and len(both) > 1:
                report([position, other], both, f"{rule.name} keeps instances together that {against.name} keeps apart")
        pinned = {one: pinned_to.get(one, everywhere) for one in members[position]}
        if pinned and not frozenset.intersection(*pinned.values()):
            instances = frozenset(one for one, nodes in pinned.items() if len(nodes) < len(cluster.nodes))
            report([position], instances, f"{rule.name} keeps instances together that are pinned to different nodes")
    return tuple(found)


def _strict(cluster: Cluster) -> list[tuple[int, Rule]]:
    return [(position, rule) for position, rule in enumerate(cluster.rules) if rule.strict]


def _overfull(cluster: Cluster, rule: Rule, members: frozenset[int], pinned_to: Mapping[int, frozenset[str]]) -> str:
    """Return a domain that pins keep more members in than a spread lets in, wherever the others go; empty if there is none."""
    domain, scope, names = _domains(cluster, rule)
    up = {domain[position] for position, node in enumerate(cluster.nodes) if node.state == NodeState.UP} - {NO_DOMAIN}
    of_node = {node.name: domain[position] for position, node in enumerate(cluster.nodes)}
    for one_scope in sorted({scope[number] for number in up}):
        here = sorted(number for number in up if scope[number] == one_scope)
        allowed = [{of_node[name] for name in pinned_to.get(one, of_node)} & set(here) for one in sorted(members)]
        for number in here if len(here) > 1 else ():
            forced = sum(domains == {number} for domains in allowed)
            others = [sum(other in domains for domains in allowed) for other in here if other != number]
            at_most = min(*others, (sum(bool(domains) for domains in allowed) - forced) // len(others))
            if forced - at_most > rule.max_skew:
                return names[number]
    return ""


def _pins(cluster: Cluster, members: Mapping[int, frozenset[int]]) -> dict[int, frozenset[str]]:
    """Return the nodes that pins leave to each pinned instance."""
    found: dict[int, frozenset[str]] = {}
    for position, rule in _strict(cluster):
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
    strict: bool = True
    weight: float = 1.0
    domains: _Domains | None = None
    max_skew: int = 0


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
    pins: dict[tuple[frozenset[str], bool, bool, float], dict[int, list[str]]] = {}
    everywhere = frozenset(cluster.node_positions())
    for rule, members in zip(cluster.rules, members_of(cluster.rules, instances)):
        if rule.kind in (RuleKind.AFFINITY, RuleKind.ANTI_AFFINITY):
            together = rule.kind == RuleKind.AFFINITY
            limit = np.full(len(cluster.nodes), np.inf if together else 1.0)
            if len(members) > 1:
                own = dict.fromkeys(members, (rule.name,))
                found.append(_RuleSlot((rule.name,), limit, together, own, strict=rule.strict, weight=rule.weight))
            continue
        if rule.kind == RuleKind.SPREAD:
            found += [_spread_slot(cluster, rule, members)] if members else []
            continue
        for member in members:
            # An instance without a node may go anywhere, and is left there.
            home = instances[member].primary
            allowed = frozenset(rule.nodes) if rule.kind == RuleKind.PIN else frozenset({home}) if home else everywhere
            names = pins.setdefault((allowed, rule.hardware, rule.strict, rule.weight), {}).setdefault(member, [])
            if rule.name not in names:
                names.append(rule.name)
    for (allowed, hardware, strict, weight), pinned in pins.items():
        column = np.array([np.inf if node.name in allowed else 0.0 for node in cluster.nodes])
        rules = tuple(dict.fromkeys(name for names in pinned.values() for name in names))
        found.append(_RuleSlot(rules, column, False, pinned, hardware, strict=strict, weight=weight))
    return found


_Domains = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], tuple[str, ...]]
"""The domain of each node, [N], the scope of each domain, [D], and its name."""


def _spread_slot(cluster: Cluster, rule: Rule, members: Sequence[int]) -> _RuleSlot:
    domains = _domains(cluster, rule)
    limit = np.where(domains[0] == NO_DOMAIN, 0.0, np.inf)
    own = dict.fromkeys(members, (rule.name,))
    return _RuleSlot((rule.name,), limit, False, own, strict=rule.strict, weight=rule.weight, domains=domains, max_skew=rule.max_skew)


def _domains(cluster: Cluster, rule: Rule) -> _Domains:
    groups = cluster.group_positions()
    keys = [_domain_of(node, groups[node.group], rule.over) for node in cluster.nodes]
    known = {key: number for number, key in enumerate(dict.fromkeys(key for key in keys if key is not None))}
    domain = np.array([NO_DOMAIN if key is None else known[key] for key in keys], dtype=np.int64)
    return domain, np.array([scope for scope, _name in known], dtype=np.int64), tuple(name for _scope, name in known)


def _domain_of(node: Node, group: int, over: str) -> tuple[int, str] | None:
    """Return the scope and the name of a node's domain."""
    if over == OVER_NODES:
        return group, node.name
    if over == OVER_GROUPS:
        return 0, node.group
    tag = next((tag for tag in node.tags if tag.startswith(over)), None)
    return None if tag is None else (group, tag)
