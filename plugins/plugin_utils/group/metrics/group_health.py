# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a group is healthy, what makes it ill, which instances cause that, and which groups could take them.

The words and the order of causes are those of the seed design's "Redistribution": a group is ill when offline nodes
still host instances, and weakly ill when nodes fail N+1; the causes are the instances on offline nodes, then the
secondaries, then the primaries of nodes that fail N+1. What the design leaves open is counted here as weakly ill, too:
instances on shared storage that could not restart if their node failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ..cluster.arrays import ANYWHERE, NOWHERE
from ..cluster.model import AllocPolicy
from ..cluster.state import ClusterState
from .redundancy import node_failures, node_reserves

PROOF_SECONDS = 2.0
"""How long it may take to prove that instances on shared storage are stranded; unproven counts as stranded."""


class Cause(StrEnum):
    """Why an instance is in the way of its group's health, in the order in which they are looked at."""

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


def group_health(state: ClusterState, group: int, seconds: float = PROOF_SECONDS) -> Health:
    """Return what is wrong with a group; with 0 `seconds` what best fit strands counts as stranded."""
    nodes = state.group_nodes(group)
    dark = nodes[state.offline[nodes]]
    offline = np.flatnonzero(np.isin(state.primary, dark) | np.isin(state.secondary, dark))
    members = set(nodes[~state.offline[nodes]].tolist())
    short = {reserve.node: reserve.short for reserve in node_reserves(state) if reserve.short and reserve.node in members}
    memory = state.facts.instances.memory
    failures = node_failures(state, group, seconds)
    stranded = {failure.node: int(memory[list(failure.stranded)].sum()) for failure in failures if failure.stranded}
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
        # Memory that is freed anywhere in the group helps whoever restarts, so that all its instances are to be asked.
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
    """Return those of `groups` in the instance's storage partition, besides its own."""
    own = state.group_of(instance)
    return tuple(group for group in groups if group not in (own, NOWHERE) and takes_storage(state, instance, group))
