# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether sums alone forbid that nodes are emptied into the rest of their groups: in microseconds, before places are sought.

    room = EvacuationRoom(state)        # once
    room.may_suffice(nodes)             # False: there is no way; True: it remains to be tried

What leaves must fit into what the other nodes have left all together, of memory without what they keep for failovers of
instances that stay, of disk and of CPUs; and on shared storage what any of them carries must find memory on the rest.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..cluster.arrays import NOWHERE, Booleans, Floats, Integers, Quantity
from ..cluster.model import MIRRORED_OUTSIDE
from ..cluster.state import ClusterState
from ..metrics.shared_redundancy import SharedReserve

_TOLERANCE = 1e-6


class EvacuationRoom:
    """Sums of one state, which must not change while this is used."""

    def __init__(self, state: ClusterState) -> None:
        instances, nodes = state.facts.instances, state.facts.nodes
        outside = np.array([model.disk_template in MIRRORED_OUTSIDE for model in instances.models], dtype=bool)
        self._state = state
        self._mirrored = (state.primary != NOWHERE) & (state.secondary != NOWHERE)
        self._mobile = (state.primary != NOWHERE) & (self._mirrored | outside)
        self._groups = len(state.facts.cluster.groups)
        self._cpus = nodes.vcpu_ratio * nodes.total_cpus - state.quantities[Quantity.CPUS]
        self._load, self._allowed = np.zeros(len(nodes.names)), np.zeros(len(nodes.names))
        restarting = np.flatnonzero(instances.restarts & (state.primary != NOWHERE))
        np.add.at(self._load, state.primary[restarting], instances.memory[restarting])
        for group in {state.group_of(int(instance)) for instance in restarting}:
            members = state.group_nodes(group)
            self._allowed[members] = SharedReserve.of(state, group).allowed[members]

    def may_suffice(self, nodes: Collection[int]) -> bool:
        """Return False when the online nodes that remain in some group cannot have room for all that leaves `nodes`."""
        state, facts = self._state, self._state.facts.instances
        # One more entry, which is False, is what NOWHERE points at.
        down = np.zeros(len(state.offline) + 1, dtype=bool)
        down[list(nodes)] = True
        first = np.flatnonzero(down[state.primary] & self._mobile)
        second = np.flatnonzero(down[state.secondary] & self._mobile)
        stays = ~down[:-1] & ~state.offline
        memory = -self._leaving(first, facts.as_primary[Quantity.MEMORY])
        disk = -self._leaving(first, facts.as_primary[Quantity.DISK]) - self._leaving(second, facts.as_secondary[Quantity.DISK])
        cpus = self._leaving(first, facts.as_primary[Quantity.CPUS])
        room = (
            (memory, self._memory_room(stays, down[:-1])),
            (disk, np.maximum(state.quantities[Quantity.DISK], 0.0)),
            (cpus, np.maximum(self._cpus, 0.0)),
        )
        if any((need > self._summed(stays, left) + _TOLERANCE).any() for need, left in room):
            return False
        moved = np.union1d(first, second)
        return self._can_restart(stays, memory, moved[self._mirrored[moved]])

    def _leaving(self, instances: Integers, need: Floats) -> Floats:
        """Return [G]: what instances need in all, by the group of their primary."""
        groups = self._state.facts.nodes.group[self._state.primary[instances]]
        total: Floats = np.bincount(groups, need[instances], minlength=self._groups)
        return total

    def _summed(self, stays: Booleans, values: Floats) -> Floats:
        """Return [G]: the sum of the values of the nodes that stay."""
        total: Floats = np.bincount(self._state.facts.nodes.group[stays], values[stays], minlength=self._groups)
        return total

    def _memory_room(self, stays: Booleans, down: Booleans) -> Floats:
        """Return [N]: memory without what is kept for failovers between nodes that stay; what is broken may stay as broken."""
        state = self._state
        left = state.quantities[Quantity.MEMORY]
        kept = np.zeros(len(left))
        kept[stays] = state.peers[stays][:, ~down].max(axis=1, initial=0.0)
        least = np.maximum(kept - np.maximum(state.reserved - left, 0.0), np.minimum(left, 0.0))
        room: Floats = left - least
        return room

    def _can_restart(self, stays: Booleans, memory: Floats, mirrored: Integers) -> bool:
        """Return whether what each node that stays carries on shared storage may find memory on the others.

        What arrives at a node by shared storage takes from what it has left as much as it adds to what must restart.
        """
        if not self._load.any():
            return True
        state = self._state
        group = state.facts.nodes.group
        left = state.quantities[Quantity.MEMORY]
        # A mirrored instance takes memory but does not restart elsewhere, and may even leave a node that stays.
        pure = np.ones(self._groups, dtype=bool)
        pure[group[state.primary[mirrored]]] = False
        after = self._summed(stays, np.maximum(left, 0.0)) - memory
        need = self._load - self._allowed + np.where(pure[group], np.maximum(left, 0.0), 0.0)
        return not (need > after[group] + _TOLERANCE)[stays & (self._load > self._allowed)].any()
