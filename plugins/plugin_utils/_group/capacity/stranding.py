# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many copies there may be until the failure of a node would strand more instances on shared storage than it would without them.

failures = Failures.of(state, groups)
failures.strand(state_with_copies)          # whether any failure strands more

holding(cluster, groups, copies)            # how many of the copies, in their order; all where nothing shares storage
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..._common.highs import Effort
from ..._common.libraries import np
from ..cluster.arrays import ANYWHERE, Booleans, Floats, Integers, Quantity
from ..cluster.failures import failures_of
from ..cluster.model import MIRRORED_OUTSIDE, Cluster, Instance
from ..cluster.moves import Place
from ..cluster.state import ClusterState
from ..metrics.redundancy import failure_strands_more
from ..metrics.shared_redundancy import Stranded, stranded_memory

PROOFS = 20_000
"""The effort of all exact proofs of one count: what it does not reach counts as stranded."""


@dataclass(frozen=True)
class Copy:
    """One copy that was counted."""

    instance: Instance
    place: Place


@dataclass(frozen=True)
class Failures:
    """What failures may strand in MiB, by group."""

    allowed: Mapping[int, Stranded]
    effort: Effort

    @classmethod
    def of(cls, state: ClusterState, groups: Sequence[int]) -> Failures:
        """Return what failures strand now, so that it becomes no more."""
        return cls({group: stranded_memory(state, group, exact=True) for group in groups}, Effort(PROOFS))

    def strand(self, state: ClusterState) -> bool:
        """Return whether the failure of any node strands more than it may; what is not disproved within the effort counts so."""
        return any(self._strand(state, group, allowed) for group, allowed in self.allowed.items())

    def _strand(self, state: ClusterState, group: int, allowed: Stranded) -> bool:
        nodes = state.group_nodes(group)
        nodes = nodes[~state.offline[nodes]]
        most = np.array([allowed.get((node,), 0.0) for node in nodes.tolist()])
        load, largest = _loads(state, nodes)
        room = np.maximum(state.quantities[Quantity.MEMORY, nodes][:, None] - state.peers[np.ix_(nodes, nodes)], 0.0)
        np.fill_diagonal(room, 0.0)
        spare = room.sum(axis=0) + most - load
        if ((spare < 0) & (load > 0)).any():
            return True
        doubtful = (load > 0) & ~self._sure(state, nodes, load, np.maximum(room - largest, 0.0).sum(axis=0))
        # Where least is left it fails first.
        order = np.flatnonzero(doubtful)[np.argsort(spare[doubtful], kind="stable")]
        asked: list[tuple[tuple[int, ...], float]] = [((int(nodes[row]),), float(most[row])) for row in order]
        asked += [(failing, allowed.get(failing, 0.0)) for failing in failures_of(state, group)]
        return any(failure_strands_more(state, failing, least, self.effort) for failing, least in asked)

    @staticmethod
    def _sure(state: ClusterState, nodes: Integers, load: Floats, placed: Floats) -> Booleans:
        """Return of which nodes all instances find room in any order: one that did not would find less than its size left everywhere."""
        here = np.isin(state.primary, nodes) & state.facts.instances.restarts
        unlimited = not state.facts.slots.soft and not state.facts.slots.hardware.any()
        plain = unlimited and bool((state.facts.instances.pool[here] == ANYWHERE).all())
        sure: Booleans = (load <= placed) & plain
        return sure


def _loads(state: ClusterState, nodes: Integers) -> tuple[Floats, Floats]:
    """Return [K]: the MiB on each node that have to restart elsewhere when it fails, and the most that one instance of them needs."""
    restarts = np.flatnonzero(state.facts.instances.restarts)
    homes, memory = state.primary[restarts], state.facts.instances.memory[restarts]
    load, largest = np.zeros(len(state.offline) + 1), np.zeros(len(state.offline) + 1)
    np.add.at(load, homes, memory)
    np.maximum.at(largest, homes, memory)
    return load[nodes], largest[nodes]


def holding(cluster: Cluster, groups: Sequence[int], copies: Sequence[Copy]) -> int:
    """Return how many of the copies, in their order, there may be."""
    shared = [group for group in groups if shares_storage(cluster, cluster.groups[group].name, copies)]
    if not shared or not copies:
        return len(copies)
    first = len(cluster.instances)
    named = [dataclasses.replace(copy.instance, name=f"{copy.instance.name}-{number}") for number, copy in enumerate(copies)]
    low_state, low, high = ClusterState.from_cluster(cluster, named), 0, len(copies)
    failures = Failures.of(low_state, shared)

    def with_copies(number: int) -> ClusterState:
        state = low_state.copy()
        for position in range(low, number):
            state.place(first + position, *copies[position].place)
        return state

    if not failures.strand(with_copies(high)):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        state = with_copies(middle)
        if failures.strand(state):
            high = middle
        else:
            low_state, low = state, middle
    return low


def shares_storage(cluster: Cluster, group: str, copies: Sequence[Copy]) -> bool:
    """Return whether anything in a group, or the copies, would restart elsewhere when its node fails."""
    if cluster.tolerate is not None:
        return True
    members = {node.name for node in cluster.nodes if node.group == group}
    here = [instance for instance in cluster.instances if instance.primary in members]
    return any(i.uses_memory and i.disk_template in MIRRORED_OUTSIDE for i in (*here, *(copy.instance for copy in copies[:1])))


def largest_restart(cluster: Cluster, instance: Instance) -> float:
    """Return the MiB of the largest instance on shared storage, or of another one if it would be larger."""
    return float(
        max((i.memory for i in (*cluster.instances, instance) if i.uses_memory and i.disk_template in MIRRORED_OUTSIDE), default=0)
    )
