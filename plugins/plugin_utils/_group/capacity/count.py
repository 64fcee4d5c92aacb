# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many more copies of an instance fit, into one group or into all of them.

    found = count_in(cluster, instance, groups, options)        # CopyOptions; Count
    found = best_count(cluster, instance, groups, options)      # the largest that several orders lead to

One copy after the other is placed until none fits, as Ganeti's hspace does. Nothing that is wrong already is in the way:
limits that are broken must not get worse, and no group is asked about another. Where instances on shared storage live,
copies are only counted as long as the failure of no node strands more of them than before.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import ANYWHERE
from ..cluster.model import Cluster, Instance
from ..cluster.state import ClusterState
from ..metrics.limits import Limit
from ..metrics.score import ScoreMode, Scorer
from ..place.placement import is_partitioned
from .bound import Bound, usual_node, with_nodes
from .copies import Attempt, CopyOptions, attempts, commit, room_for
from .level import can_level, level
from .stranding import Copy, holding, largest_restart

_MANY, _NEARLY = 5_000, 0.99
"""From this number of copies on one order is enough, if the count is this share of a bound."""
MOST_COPIES = 200_000
"""Where counting ends; nobody asks for more copies of one instance, and what needs nothing would fit without end."""
MOST_ADDED = 512


@dataclass(frozen=True)
class Count:
    """Copies in the order in which they were placed, and which limits, at how many places, kept the next one out."""

    copies: tuple[Copy, ...]
    failures: collections.Counter[Limit]
    stranding: bool = False
    """Whether the next copy would fit, but strand instances on shared storage when a node fails."""


def allocable(cluster: Cluster) -> tuple[int, ...]:
    """Return the groups that take new instances by themselves."""
    return tuple(position for position, group in enumerate(cluster.groups) if group.alloc_policy != "unallocable")


def is_bounded(cluster: Cluster, instance: Instance) -> bool:
    """Return whether an instance needs anything that a node can run out of."""
    if instance.memory > 0 or (instance.vcpus > 0 and instance.uses_cpus):
        return True
    if instance.on_node_disk:
        return instance.disk > 0
    pools = [pool for node in cluster.nodes for pool in node.storage if pool.name == instance.storage]
    return instance.disk > 0 and bool(pools) and all(pool.free is not None for pool in pools)


def count_in(cluster: Cluster, instance: Instance, groups: Sequence[int], options: CopyOptions, most: int = MOST_COPIES) -> Count:
    """Return how many copies fit into `groups` together; scores are those of the whole cluster, or of a group that is alone.

    Where the score leads to copies that would strand instances on shared storage, they are put by free memory if more fit then.
    """
    room = room_for(cluster, instance)
    by_memory = _is_levelled(room, groups, options)
    copies, attempt = fill(room, groups, scorer_for(room, groups, options), options, most)
    count = without_stranding(cluster, groups, Count(tuple(copies), attempt.failures))
    if not count.stranding or not by_memory:
        return count
    return max(count, _levelled(cluster, instance, groups, options, most), key=lambda one: len(one.copies))


def best_count(cluster: Cluster, instance: Instance, groups: Sequence[int], options: CopyOptions, most: int = MOST_COPIES) -> Count:
    """Return the largest of the counts that several orders lead to: which node is taken first decides what fits in the end.

    Copies that take one node each are put by free memory, others by both scores.
    """
    if _is_levelled(room_for(cluster, instance), groups, options):
        return _levelled(cluster, instance, groups, options, most)
    counts: list[Count] = []
    for score in (ScoreMode.CAPACITY, ScoreMode.HTOOLS):
        counts.append(count_in(cluster, instance, groups, dataclasses.replace(options, score=score), most))
        number = len(counts[-1].copies)
        if number >= most or (number >= _MANY and number >= _NEARLY * _bound(cluster, instance, groups, options)):
            break
    return max(reversed(counts), key=lambda count: len(count.copies))


def _bound(cluster: Cluster, instance: Instance, groups: Sequence[int], options: CopyOptions) -> float:
    """Return a number of copies that groups cannot carry more than."""
    inhabited = {node.group for node in cluster.nodes}
    likes = [(group, cluster.nodes[usual_node(cluster, group)]) for group in groups if cluster.groups[group].name in inhabited]
    return sum(Bound.of(with_nodes(cluster, like, 1), instance, group, options).most(0) for group, like in likes)


def _is_levelled(room: ClusterState, groups: Sequence[int], options: CopyOptions) -> bool:
    """Return whether copies may be put by free memory."""
    return can_level(room) and not any(is_partitioned(room, group, options.strategy) for group in groups)


def _levelled(cluster: Cluster, instance: Instance, groups: Sequence[int], options: CopyOptions, most: int) -> Count:
    """Return the count of copies that are put by free memory."""
    room = room_for(cluster, instance)
    model = room.facts.instances.models[0]
    places = level(room, groups, options, most, largest_restart(cluster, instance))
    attempt = next(attempts(room, groups, options, scorer_for(room, groups, options)))
    return without_stranding(cluster, groups, Count(tuple(Copy(model, place) for place in places), attempt.failures))


def scorer_for(room: ClusterState, groups: Sequence[int], options: CopyOptions) -> Scorer:
    """Return the scorer of one group, or of the whole cluster for several, or where options say so."""
    return Scorer(room, options.score, room.group_nodes(groups[0]) if len(groups) == 1 and not options.whole_cluster else None)


def fill(room: ClusterState, groups: Sequence[int], scorer: Scorer, options: CopyOptions, most: int) -> tuple[list[Copy], Attempt]:
    """Put copies into `room`, which is changed, and return them with the attempt at the next one."""
    copies: list[Copy] = []
    model = room.facts.instances.models[0]
    tries = attempts(room, groups, options, scorer)
    while (attempt := next(tries)).place is not None and len(copies) < most:
        commit(room, attempt.place)
        copies.append(Copy(model, attempt.place))
    return copies, attempt


def without_stranding(cluster: Cluster, groups: Sequence[int], count: Count) -> Count:
    """Return the copies up to the first that would strand instances on shared storage."""
    kept = holding(cluster, groups, count.copies)
    return count if kept == len(count.copies) else Count(count.copies[:kept], count.failures, stranding=True)


def pool_limit(cluster: Cluster, instance: Instance) -> float:
    """Return how many copies a storage pool outside the nodes has room for; infinite where there is none or it is not known."""
    room = room_for(cluster, instance)
    pool = int(room.facts.instances.pool[0])
    if pool == ANYWHERE or not room.facts.pool_shared[pool] or not instance.disk:
        return math.inf
    free = float(room.pool_free[:, pool].min(initial=np.inf))
    return free if math.isinf(free) else max(free, 0.0) // instance.disk
