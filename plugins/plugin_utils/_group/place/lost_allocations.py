# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Placement for nodes that are given away in large parts: lose as few possible allocations of the largest sizes as can be.

    sizes = least_sizes(policy)
    losses(state, instance, primaries, secondaries, sizes)      # Losses: [P, S, K] lost allocations, [P, S] disk left

The rules are those of Ganeti's design "Allocation for Partitioned Ganeti": the allocation vector of a node counts, for
each interval of the policy from the largest disk down, how many instances of the interval's minimum still fit; what an
instance costs is the vector's loss, compared lexicographically, then the disk that is left. Rules that the design
does not state: a node may be filled to the last MiB, physical spindles count like any other resource, and an interval
whose minimum needs nothing counts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Floats, Integers, Quantity
from ..cluster.model import NODE_DISK, Policy
from ..cluster.state import ClusterState


@dataclass(frozen=True)
class LeastSize:
    """The smallest instance of a policy interval: MiB, CPUs, spindles."""

    disk: int
    memory: int
    cpus: int
    spindles: int


@dataclass(frozen=True)
class Losses:
    """What each place costs: lost allocations of each size, [P, S, K], and MiB of disk left on its nodes, [P, S]."""

    lost: Integers
    disk_left: Floats


@dataclass(frozen=True)
class _Room:
    """What instances may still take; arrays of one shape."""

    memory: Floats
    disk: Floats
    cpus: Floats
    spindles: Floats


def least_sizes(policy: Policy) -> tuple[LeastSize, ...]:
    """Return the minimum of every interval, the largest disk first."""
    sizes = {
        LeastSize(low.disk_size * low.disk_count, low.memory, low.cpus, low.spindle_use)
        for low in (interval.minimum for interval in policy.intervals)
    }
    usable = [size for size in sizes if size.disk or size.memory or size.cpus or size.spindles]
    return tuple(sorted(usable, key=lambda size: (size.disk, size.memory, size.cpus, size.spindles), reverse=True))


def allocation_vectors(state: ClusterState, nodes: Integers, sizes: Sequence[LeastSize]) -> Integers:
    """Return [len(nodes), K]: how many instances of each size fit on each node as it is."""
    return _vectors(_room(state, nodes, np.zeros(len(Quantity)), 0.0, state.reserved[nodes]), sizes)


def losses(state: ClusterState, instance: int, primaries: Integers, secondaries: Integers, sizes: Sequence[LeastSize]) -> Losses:
    """Return what the instance, which must be nowhere, costs on each pair; for one node `secondaries` is [NOWHERE].

    With a secondary, losses and disk left of both nodes are added up.
    """
    facts = state.facts.instances
    need = facts.as_primary[:, instance]
    # What the instance takes of the pool that new instances would use by default.
    pool = int(state.facts.instances.pool[instance])
    disk = float(state.facts.instances.disk[instance]) if pool != NOWHERE and state.facts.pool_names[pool] == NODE_DISK else 0.0
    after = _vectors(_room(state, primaries, need, disk, state.reserved[primaries]), sizes)
    lost = (allocation_vectors(state, primaries, sizes) - after)[:, None, :]
    left = (state.quantities[Quantity.DISK, primaries] + need[Quantity.DISK])[:, None]
    if len(secondaries) == 1 and secondaries[0] == NOWHERE:
        return Losses(lost, left)
    need_there = facts.as_secondary[:, instance]
    kept = state.peers[np.ix_(secondaries, primaries)].T + facts.reserves[instance]
    reserved = np.maximum(state.reserved[secondaries], kept)
    after_there = _vectors(_room(state, secondaries, need_there, disk, reserved), sizes)
    lost_there = allocation_vectors(state, secondaries, sizes)[None, :, :] - after_there
    left_there = state.quantities[Quantity.DISK, secondaries] + need_there[Quantity.DISK]
    return Losses(lost + lost_there, left + left_there[None, :])


def _room(state: ClusterState, nodes: Integers, change: Floats, pool_need: float, reserved: Floats) -> _Room:
    """Return the room on `nodes` once their quantities have changed by `change`; shaped like `reserved`."""
    facts = state.facts.nodes
    left = state.quantities[:, nodes] + change[:, None]
    disk = np.minimum(left[Quantity.DISK], left[Quantity.DISK_PLANNED])
    if NODE_DISK in state.facts.pool_names:
        disk = np.minimum(disk, state.pool_free[nodes, state.facts.pool_names.index(NODE_DISK)] - pool_need)
    used_cpus = np.maximum(left[Quantity.CPUS], left[Quantity.CPUS_PLANNED])
    physical = np.minimum(left[Quantity.SPINDLES], left[Quantity.SPINDLES_PLANNED])
    pressure = facts.spindle_limit[nodes] - np.maximum(left[Quantity.SPINDLE_USE], left[Quantity.SPINDLE_USE_PLANNED])
    shape = reserved.shape
    return _Room(
        memory=np.minimum(left[Quantity.MEMORY] - reserved, left[Quantity.MEMORY_PLANNED]),
        disk=np.broadcast_to(disk, shape),
        cpus=np.broadcast_to(facts.cpu_limit[nodes] - used_cpus, shape),
        spindles=np.broadcast_to(np.where(facts.exclusive[nodes], physical, pressure), shape),
    )


def _vectors(room: _Room, sizes: Sequence[LeastSize]) -> Integers:
    vectors = np.zeros((*room.memory.shape, len(sizes)), dtype=np.int64)
    for column, size in enumerate(sizes):
        needs = ((room.disk, size.disk), (room.memory, size.memory), (room.cpus, size.cpus), (room.spindles, size.spindles))
        counts = [np.floor(there / need) for there, need in needs if need]
        vectors[..., column] = np.maximum(np.minimum.reduce(counts), 0)
    return vectors
