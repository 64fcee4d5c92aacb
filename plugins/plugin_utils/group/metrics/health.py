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

import numpy as np

from ..cluster.arrays import ANYWHERE, NOWHERE, Quantity
from ..cluster.state import ClusterState
from .limits import policy_failures
from .redundancy import NodeFailure, node_reserves

MISSING_MEMORY = 512
"""MiB that may be unaccounted for on a node before it is told, as in htools."""
MISSING_DISK = 1024


class ProblemKind(StrEnum):
    """What can be wrong."""

    OFFLINE_PRIMARY = "offline_primary"
    OFFLINE_SECONDARY = "offline_secondary"
    N1 = "n1"
    SHARED_N1 = "shared_n1"
    TAGS = "tags"
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
        _offline(state),
        _reserves(state),
        _shared(state, failures),
        _tags(state),
        _node_limits(state),
        _missing(state),
        _instances(state),
    )
    return [problem for finder in finders for problem in finder]


def _on_node(state: ClusterState, kind: ProblemKind, node: int, short: float, says: str) -> Problem:
    return Problem(kind, int(state.facts.nodes.group[node]), state.facts.nodes.names[node], "", short, says)


def _offline(state: ClusterState) -> Iterator[Problem]:
    names, nodes = state.facts.instances.names, state.facts.nodes
    for kind, role, homes in (
        (ProblemKind.OFFLINE_PRIMARY, "lives", state.primary),
        (ProblemKind.OFFLINE_SECONDARY, "has its secondary", state.secondary),
    ):
        placed = np.flatnonzero(homes != NOWHERE)
        for instance in placed[state.offline[homes[placed]]].tolist():
            node = int(homes[instance])
            says = f"{names[instance]} {role} on {nodes.names[node]}, which is offline"
            yield Problem(kind, int(nodes.group[node]), nodes.names[node], names[instance], 0, says)


def _reserves(state: ClusterState) -> Iterator[Problem]:
    names = state.facts.nodes.names
    for reserve in node_reserves(state):
        if reserve.short and not state.offline[reserve.node]:
            node = names[reserve.node]
            says = f"{node} has {reserve.free} MiB free, but keeps {reserve.reserved} MiB for a failure of {names[reserve.worst]}"
            yield _on_node(state, ProblemKind.N1, reserve.node, reserve.short, says)


def _shared(state: ClusterState, failures: list[NodeFailure]) -> Iterator[Problem]:
    facts = state.facts
    for failure in failures:
        if failure.stranded:
            short = sum(int(facts.instances.memory[instance]) for instance in failure.stranded)
            who = ", ".join(facts.instances.names[instance] for instance in failure.stranded)
            doubt = "" if failure.proven else " (the best arrangement found in time)"
            says = f"if {facts.nodes.names[failure.node]} fails, {who} cannot restart in its group{doubt}"
            yield _on_node(state, ProblemKind.SHARED_N1, failure.node, short, says)


def _tags(state: ClusterState) -> Iterator[Problem]:
    for node, tag in np.argwhere(state.tag_counts > 1).tolist():
        count = int(state.tag_counts[node, tag])
        says = f"{count} instances with the exclusion tag {state.facts.exclusion_tags[tag]} live on {state.facts.nodes.names[node]}"
        yield _on_node(state, ProblemKind.TAGS, node, count - 1, says)


def _node_limits(state: ClusterState) -> Iterator[Problem]:
    nodes = state.facts.nodes
    pressure = np.where(nodes.exclusive, 0.0, state.quantities[Quantity.SPINDLE_USE])
    for kind, used, limit, says in (
        (
            ProblemKind.CPUS,
            state.quantities[Quantity.CPUS],
            nodes.vcpu_ratio * nodes.total_cpus,
            "{node} carries {used:g} virtual CPUs; its policy allows {limit:g}",
        ),
        (
            ProblemKind.SPINDLE_USE,
            pressure,
            nodes.spindle_limit,
            "{node} carries a spindle use of {used:g}; its policy allows {limit:g}",
        ),
        (
            ProblemKind.MEMORY,
            -state.quantities[Quantity.MEMORY],
            np.zeros(len(nodes.names)),
            "the instances on {node} have {used:g} MiB more memory than there is",
        ),
    ):
        for node in np.flatnonzero((used > limit) & ~state.offline).tolist():
            told = says.format(node=nodes.names[node], used=used[node], limit=limit[node])
            yield _on_node(state, kind, node, float(used[node] - limit[node]), told)


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
            says = f"{nodes.names[node]} reports {missing[node]:g} MiB of {what} less than its instances leave"
            yield _on_node(state, kind, node, float(missing[node]), says)


def _instances(state: ClusterState) -> Iterator[Problem]:
    facts = state.facts
    groups = facts.cluster.groups
    for instance in np.flatnonzero(state.primary != NOWHERE).tolist():
        model = facts.instances.models[instance]
        primary, secondary = int(state.primary[instance]), int(state.secondary[instance])
        group, node = int(facts.nodes.group[primary]), facts.nodes.names[primary]
        for failure in policy_failures(model, groups[group].policy, bool(facts.nodes.exclusive[primary])):
            says = f"{model.name}: {failure.says}, against the policy of {groups[group].name}"
            yield Problem(ProblemKind.POLICY, group, node, model.name, failure.short, says)
        if secondary != NOWHERE and facts.nodes.group[secondary] != group:
            says = f"{model.name}: primary and secondary are in different groups, so it cannot be moved"
            yield Problem(ProblemKind.SPLIT, group, node, model.name, 0, says)
        pool = int(facts.instances.pool[instance])
        for home in (primary, secondary):
            if pool != ANYWHERE and home != NOWHERE and not facts.nodes.pools[home, pool]:
                says = f"{model.name}: {facts.nodes.names[home]} does not reach its storage pool {facts.pool_names[pool]}"
                yield Problem(ProblemKind.POOL, group, facts.nodes.names[home], model.name, model.disk, says)
