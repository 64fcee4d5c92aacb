# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with a cluster: work on offline nodes, failovers that would not fit, broken policies, tags and pools.

Each problem is one line of plain data that names the thing, the limit, and by how much; what Ganeti's hcheck counts can
be counted from them, instances as instances (hcheck counts offline nodes for secondaries).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ....module_utils._data.units import format_mib
from ..._common.highs import Effort
from ..._common.libraries import np
from ..cluster.arrays import ANYWHERE, NOWHERE, Quantity
from ..cluster.model import AllocPolicy
from ..cluster.rules import SpreadSlot, contradictions
from ..cluster.state import ClusterState
from ..cluster.staying import unreachable_says
from .limits import capacity, usage
from .policy import policy_failures
from .redundancy import NodeFailure, node_failures, node_reserves
from .score import WEIGHTS
from .skew import counted_domains, domain_counts, too_many

MISSING_MEMORY = 512
"""MiB that may be unaccounted for on a node before a warning, as in htools."""
MISSING_DISK = 1024


class ProblemKind(StrEnum):
    """What can be wrong."""

    UNREACHABLE = "unreachable"
    OFFLINE_PRIMARY = "offline_primary"
    OFFLINE_SECONDARY = "offline_secondary"
    N1 = "n1"
    SHARED_N1 = "shared_n1"
    TOLERANCE = "tolerance"
    TAGS = "tags"
    RULE = "rule"
    HARDWARE = "hardware"
    POLICY = "policy"
    POOL = "pool"
    CPUS = "cpus"
    SPINDLE_USE = "spindle_use"
    MEMORY = "memory"
    SPLIT = "split"
    MISSING_MEMORY = "missing_memory"
    MISSING_DISK = "missing_disk"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong; `instance` is empty for a node's own, `short` is in MiB, CPUs, spindles or tags."""

    kind: ProblemKind
    group: int
    node: str
    instance: str
    short: float
    says: str


def find_problems(state: ClusterState, failures: list[NodeFailure]) -> list[Problem]:
    """Return every problem, the nodes' first; `failures` are the node_failures of all groups."""
    finders = (
        _unreachable(state),
        _offline(state),
        _reserves(state),
        _shared(state, failures),
        _tags(state),
        _rules(state),
        _node_limits(state),
        _missing(state),
        _instances(state),
    )
    return [problem for finder in finders for problem in finder]


def instances_down(state: ClusterState, group: int) -> list[int]:
    """Return the instances of a group that are down because their node is marked offline."""
    offline_nodes = np.append(state.marked_offline & (state.facts.nodes.group == group), False)
    models = state.facts.instances.models
    return [instance for instance in np.flatnonzero(offline_nodes[state.primary]).tolist() if models[instance].uses_memory]


def instances_left_behind(state: ClusterState, group: int) -> list[int]:
    """Return the instances of a group that have a node that is marked offline or drained, but not one that is unreachable."""
    leaving = np.append(state.offline & ~state.unreachable & (state.facts.nodes.group == group), False)
    result: list[int] = np.flatnonzero(leaving[state.primary] | leaving[state.secondary]).tolist()
    return [instance for instance in result if state.primary[instance] != NOWHERE]


def _on_node(state: ClusterState, kind: ProblemKind, node: int, short: float, says: str) -> Problem:
    return Problem(kind, int(state.facts.nodes.group[node]), state.facts.nodes.names[node], "", short, says)


def _unreachable(state: ClusterState) -> Iterator[Problem]:
    """Yield every node that does not answer without being marked offline, with what is to be done."""
    for node in np.flatnonzero(state.unreachable).tolist():
        count = int(((state.primary == node) | (state.secondary == node)).sum())
        yield _on_node(state, ProblemKind.UNREACHABLE, node, count, unreachable_says(state.facts.cluster, state.facts.nodes.names[node]))


def _offline(state: ClusterState) -> Iterator[Problem]:
    names, nodes = state.facts.instances.names, state.facts.nodes
    for kind, role, homes in (
        (ProblemKind.OFFLINE_PRIMARY, "lives", state.primary),
        (ProblemKind.OFFLINE_SECONDARY, "has its secondary", state.secondary),
    ):
        placed = np.flatnonzero(homes != NOWHERE)
        for instance in placed[state.offline[homes[placed]] & ~state.unreachable[homes[placed]]].tolist():
            node = int(homes[instance])
            says = f"{names[instance]} {role} on {nodes.names[node]}, which is {state.node_state(node)}"
            yield Problem(kind, int(nodes.group[node]), nodes.names[node], names[instance], 0, says)


def _reserves(state: ClusterState) -> Iterator[Problem]:
    names = state.facts.nodes.names
    for reserve in node_reserves(state):
        if reserve.short and not state.offline[reserve.node]:
            node = names[reserve.node]
            free, kept = format_mib(reserve.free), format_mib(reserve.reserved)
            says = f"{node} has {free} free, but must keep {kept} in case of a failure of {names[reserve.worst]}"
            yield _on_node(state, ProblemKind.N1, reserve.node, reserve.short, says)


def _shared(state: ClusterState, failures: list[NodeFailure]) -> Iterator[Problem]:
    facts = state.facts
    for failure in failures:
        if len(failure.nodes) > 1:
            yield from _together(state, failure)
        elif failure.stranded:
            short = sum(int(facts.instances.memory[instance]) for instance in failure.stranded)
            stranded = ", ".join(facts.instances.names[instance] for instance in failure.stranded)
            doubt = "" if failure.proven else " (the best arrangement that was found)"
            says = f"if {facts.nodes.names[failure.node]} fails, {stranded} cannot restart in its group{doubt}"
            yield _on_node(state, ProblemKind.SHARED_N1, failure.node, short, says)


def _together(state: ClusterState, failure: NodeFailure) -> Iterator[Problem]:
    """Yield what nodes that may fail together would strand."""
    short = failure.short(state)
    if short:
        names = " and ".join(state.facts.nodes.names[node] for node in failure.nodes)
        doubt = "" if failure.proven else " (the best arrangement that was found)"
        says = f"if {names} fail together, {format_mib(short)} of their instances find no place in the group{doubt}"
        yield _on_node(state, ProblemKind.TOLERANCE, failure.node, short, says)


def _tags(state: ClusterState) -> Iterator[Problem]:
    slots = state.facts.slots
    for node, tag in np.argwhere(state.tag_counts[:, : slots.soft] > 1).tolist():
        count = int(state.tag_counts[node, tag])
        says = f"{count} instances with the exclusion tag {slots.names[tag]} live on {state.facts.nodes.names[node]}"
        yield _on_node(state, ProblemKind.TAGS, node, count - 1, says)


def _rules(state: ClusterState) -> Iterator[Problem]:
    """Yield every rule that cannot hold, then every one that does not, at the node where it does not, with its members there."""
    for conflict in contradictions(state.facts.cluster) if state.facts.cluster.rules else ():
        home = int(state.primary[conflict.members[0]])
        yield _on_node(state, ProblemKind.RULE, home, 0, f"{conflict.says}; they stay where they are")
    slots, names = state.facts.slots, state.facts.instances.names
    if len(slots.names) == slots.soft:
        return
    over = state.tag_counts - slots.hard_limit
    for node, slot in np.argwhere(over[:, slots.soft :] > 0).tolist():
        here = [i for i in state.primaries(node).tolist() if slots.soft + slot in state.facts.instances.exclusion[i]]
        broken = "; ".join(dict.fromkeys(slots.name_for(i, slots.soft + slot) for i in here))
        says = f"{broken} does not hold on {state.facts.nodes.names[node]}: {', '.join(names[i] for i in here)}"
        kind = ProblemKind.HARDWARE if slots.hardware[slots.soft + slot] else ProblemKind.RULE
        yield _on_node(state, kind, node, float(over[node, slots.soft + slot]), says)
    for slot in np.flatnonzero(slots.together).tolist():
        counts = state.tag_counts[:, slot]
        if (counts > 0).sum() > 1:
            members = [i for i in range(len(names)) if slot in state.facts.instances.exclusion[i] and state.primary[i] != NOWHERE]
            where = ", ".join(f"{names[i]} on {state.facts.nodes.names[state.primary[i]]}" for i in members)
            says = f"{slots.names[slot]} does not hold: {where}"
            yield _on_node(state, ProblemKind.RULE, int(counts.argmax()), float(counts.sum() - counts.max()), says)
    for spread in slots.spreads:
        if spread.strict and (count := too_many(state, spread)):
            domains = domain_counts(state, spread)
            fullest = np.flatnonzero(spread.domain == int(domains.argmax()))
            says = f"{slots.names[spread.slot]} does not hold: {_divided(state, spread)}"
            yield _on_node(state, ProblemKind.RULE, int(fullest[0]), count, says)


def _divided(state: ClusterState, spread: SpreadSlot) -> str:
    """Return how many instances each domain has."""
    counted = counted_domains(state, spread)
    counts = domain_counts(state, spread).astype(int).tolist()
    return ", ".join(
        f"{count} in {name}" + ("" if is_counted else ", which has no node that is up")
        for name, count, is_counted in zip(spread.names, counts, counted)
        if count or is_counted
    )


@dataclass(frozen=True)
class Wish:
    """A rule that is not strict and does not hold: by how many instances, and what that adds to the score."""

    rule: str
    weight: float
    count: float
    points: float
    says: str


def unmet_wishes(state: ClusterState) -> list[Wish]:
    """Return the rules that are not strict and do not hold, in their order; nodes that are not up count."""
    slots, names, nodes = state.facts.slots, state.facts.instances.names, state.facts.nodes.names
    spreads = {spread.slot: spread for spread in slots.spreads}
    found = []
    for slot in np.flatnonzero(~slots.strict).tolist():
        counts = state.tag_counts[:, slot]
        over = np.maximum(counts - slots.limit[:, slot], 0)
        count = float(over.sum())
        here = [i for i, own in enumerate(state.facts.instances.exclusion) if slot in own and state.primary[i] != NOWHERE]
        if slots.drawn[slot]:
            count += float(counts.sum() - counts.max(initial=0))
        elif slot in spreads:
            count += too_many(state, spreads[slot])
        else:
            here = [i for i in here if over[state.primary[i]]]
        if count:
            where = ", ".join(f"{names[i]} on {nodes[state.primary[i]]}" for i in here)
            says = _divided(state, spreads[slot]) if slot in spreads else where
            weight = float(slots.weights[slot])
            found.append(Wish(slots.names[slot], weight, count, WEIGHTS["pri_tags_score"] * weight * count, f"{slots.names[slot]}: {says}"))
    return found


def _node_limits(state: ClusterState) -> Iterator[Problem]:
    names, used, most = state.facts.nodes.names, usage(state), capacity(state.facts)
    for kind, row, says in (
        (ProblemKind.CPUS, Quantity.CPUS, "{node} carries {used:g} virtual CPUs; its policy allows {limit:g}"),
        (ProblemKind.SPINDLE_USE, Quantity.SPINDLE_USE, "{node} carries a spindle use of {used:g}; its policy allows {limit:g}"),
        (ProblemKind.MEMORY, Quantity.MEMORY, "the instances on {node} have {mib} more memory than there is"),
    ):
        for node in np.flatnonzero((used[row] > most[row]) & ~state.offline).tolist():
            sentence = says.format(node=names[node], used=used[row, node], limit=most[row, node], mib=format_mib(used[row, node]))
            yield _on_node(state, kind, node, float(used[row, node] - most[row, node]), sentence)


def _missing(state: ClusterState) -> Iterator[Problem]:
    nodes = state.facts.nodes
    disk = np.zeros(len(nodes.names))
    for homes, needs in (
        (state.primary, state.facts.instances.as_primary),
        (state.secondary, state.facts.instances.as_secondary),
    ):
        placed = np.flatnonzero(homes != NOWHERE)
        np.add.at(disk, homes[placed], needs[Quantity.DISK, placed])
    unaccounted = nodes.total_disk + disk - state.quantities[Quantity.DISK]
    for kind, what, missing, most in (
        (ProblemKind.MISSING_MEMORY, "memory", state.missing_memory, MISSING_MEMORY),
        (ProblemKind.MISSING_DISK, "disk", unaccounted, MISSING_DISK),
    ):
        for node in np.flatnonzero((missing > most) & ~state.offline).tolist():
            says = f"{nodes.names[node]} reports {format_mib(missing[node])} of {what} less than its instances leave"
            yield _on_node(state, kind, node, float(missing[node]), says)


def _instances(state: ClusterState) -> Iterator[Problem]:
    facts = state.facts
    groups = facts.cluster.groups
    for instance in np.flatnonzero(state.primary != NOWHERE).tolist():
        model = facts.instances.models[instance]
        primary, secondary = state.place_of(instance)
        group, node = int(facts.nodes.group[primary]), facts.nodes.names[primary]
        for failure in policy_failures(model, groups[group].policy, bool(facts.nodes.exclusive[primary])):
            says = f"{model.name}: {failure.says}, which violates the policy of {groups[group].name}"
            yield Problem(ProblemKind.POLICY, group, node, model.name, failure.short, says)
        if secondary != NOWHERE and facts.nodes.group[secondary] != group:
            says = f"{model.name}: primary and secondary are in different groups, so it cannot be moved"
            yield Problem(ProblemKind.SPLIT, group, node, model.name, 0, says)
        pool = int(facts.instances.pool[instance])
        for home in (primary, secondary):
            if pool != ANYWHERE and home != NOWHERE and not facts.nodes.pools[home, pool]:
                says = f"{model.name}: {facts.nodes.names[home]} does not reach its storage pool {facts.pool_names[pool]}"
                yield Problem(ProblemKind.POOL, group, facts.nodes.names[home], model.name, model.disk, says)


class Cause(StrEnum):
    """Why an instance is in the way of its group's health, in the order in which reasons are tried."""

    OFFLINE = "offline"
    SECONDARY = "secondary"
    PRIMARY = "primary"
    SHARED = "shared"


@dataclass(frozen=True)
class Health:
    """What is wrong with a group. `short` is MiB that a node lacks for failovers, `stranded` MiB that could not restart."""

    group: int
    offline: tuple[int, ...]
    """Instances with a role on an offline node."""
    short: dict[int, int]
    stranded: dict[int, int]

    @property
    def healthy(self) -> bool:
        """Return whether nothing is wrong."""
        return not (self.offline or self.short or self.stranded)

    @property
    def illness(self) -> tuple[int, int, int]:
        """Return how ill the group is: instances on offline nodes first, then missing MiB."""
        return len(self.offline), sum(self.short.values()), sum(self.stranded.values())


def group_health(state: ClusterState, group: int, effort: Effort | None = None) -> Health:
    """Return what is wrong with a group; what cannot be disproved within the effort, by default PROOFS, counts as stranded."""
    nodes = state.group_nodes(group)
    offline_nodes = nodes[state.offline[nodes] & ~state.unreachable[nodes]]
    offline = np.flatnonzero(np.isin(state.primary, offline_nodes) | np.isin(state.secondary, offline_nodes))
    members = set(nodes[~state.offline[nodes]].tolist())
    short = {reserve.node: reserve.short for reserve in node_reserves(state) if reserve.short and reserve.node in members}
    stranded: dict[int, int] = {}
    for failure in node_failures(state, group, effort):
        if more := failure.short(state):
            stranded[failure.node] = max(stranded.get(failure.node, 0), int(more))
    return Health(group, tuple(offline.tolist()), short, stranded)


def causes(state: ClusterState, health: Health) -> dict[int, Cause]:
    """Return the instances that make a group ill, each with the first of its causes, in the order of the causes."""
    found = dict.fromkeys(health.offline, Cause.OFFLINE)
    for cause, homes, nodes in (
        (Cause.SECONDARY, state.secondary, list(health.short)),
        (Cause.PRIMARY, state.primary, list(health.short)),
    ):
        for instance in np.flatnonzero(np.isin(homes, nodes)).tolist():
            found.setdefault(instance, cause)
    if health.stranded:
        # Memory that is freed anywhere in the group helps instances that restart, so that all its instances count.
        for instance in np.flatnonzero(np.isin(state.primary, state.group_nodes(health.group))).tolist():
            found.setdefault(instance, Cause.SHARED)
    return found


def peer_groups(state: ClusterState, group: int) -> tuple[int, ...]:
    """Return the other groups that share a storage method with a group: that could take one of its instances' storage."""
    here = np.flatnonzero(np.isin(state.primary, state.group_nodes(group))).tolist()
    methods = {(state.facts.instances.models[i].disk_template, int(state.facts.instances.pool[i])): i for i in here}
    others = (other for other in range(len(state.facts.cluster.groups)) if other != group)
    return tuple(other for other in others if any(takes_storage(state, i, other) for i in methods.values()))


def takes_storage(state: ClusterState, instance: int, group: int) -> bool:
    """Return whether a group takes new instances with this disk template, and reaches this storage pool."""
    owner, model = state.facts.cluster.groups[group], state.facts.instances.models[instance]
    nodes = state.group_nodes(group)
    online = nodes[~state.offline[nodes]]
    if owner.alloc_policy == AllocPolicy.UNALLOCABLE or model.disk_template not in owner.policy.disk_templates:
        return False
    pool = int(state.facts.instances.pool[instance])
    reached = state.facts.nodes.pools[online, pool] if pool != ANYWHERE else np.ones(len(online), dtype=bool)
    if model.on_node_disk:
        reached = reached & (state.facts.nodes.total_disk[online] > 0)
    return int(reached.sum()) > int(model.disk_template == "drbd")


def target_groups(state: ClusterState, instance: int, groups: tuple[int, ...]) -> tuple[int, ...]:
    """Return those of `groups` in the instance's storage partition, without its own group."""
    own = state.group_of(instance)
    return tuple(group for group in groups if group not in (own, NOWHERE) and takes_storage(state, instance, group))
