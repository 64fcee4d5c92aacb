# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many more copies of an instance fit, into one group or into all of them, and what to add so that more do.

    found = count_in(cluster, instance, groups, options)        # CopyOptions; Count
    nodes_to_add(cluster, instance, group, wanted, options)     # Addition

One copy after the other is placed until none fits, as Ganeti's hspace does. Nothing that is wrong already is in the way:
limits that are broken must not get worse, and no group is asked about another. Where instances on shared storage live,
copies are only counted as long as the failure of no node strands more of them than before.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...common.highs import Effort
from ...common.libraries import np
from ..cluster.arrays import ANYWHERE, Quantity
from ..cluster.model import MIRRORED_OUTSIDE, Cluster, Instance, Node, NodeState
from ..cluster.moves import Place
from ..cluster.state import ClusterState
from ..metrics.limits import REDUNDANCY, Limit, capacity, counted_as_used, usage
from ..metrics.score import ScoreMode, Scorer
from ..metrics.shared_redundancy import stranded_memory, strands_more_than
from .copies import Attempt, CopyOptions, attempts, commit, places_of, room_for

MOST_COPIES = 200_000
"""Where counting ends; nobody asks for more copies of one instance, and what needs nothing would fit without end."""
MOST_ADDED = 512
TAIL_TRIALS, TAIL_EFFORT = 1_000, 100_000
"""How many other nodes copies may be tried at once the best one would strand instances on shared storage, and for which proofs."""


@dataclass(frozen=True)
class Copy:
    """One copy that was counted."""

    instance: Instance
    place: Place


@dataclass(frozen=True)
class Count:
    """Copies in the order in which they were placed, and which limits, at how many places, kept the next one out."""

    copies: tuple[Copy, ...]
    failures: collections.Counter[Limit]
    stranding: bool = False
    """Whether the next copy would fit, but strand instances on shared storage when a node fails."""


@dataclass(frozen=True)
class Addition:
    """Nodes like `like` with which `count` copies fit into a group; `nodes` None when no number of them would do."""

    group: int
    like: int
    nodes: int | None
    count: int


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
    """Return how many copies fit into `groups` together; scores are those of the whole cluster, or of a group that is alone."""
    room = room_for(cluster, instance)
    copies, attempt = fill(room, groups, scorer_for(room, groups, options), options, most)
    return without_stranding(cluster, groups, Count(tuple(copies), attempt.failures), options)


def best_count(cluster: Cluster, instance: Instance, groups: Sequence[int], options: CopyOptions, most: int = MOST_COPIES) -> Count:
    """Return the larger of the counts that the two scores lead to: which node is taken first decides what fits in the end."""
    counts: list[Count] = []
    for score in ScoreMode:
        counts.append(count_in(cluster, instance, groups, dataclasses.replace(options, score=score), most))
        if len(counts[-1].copies) >= most:
            break
    return max(counts, key=lambda count: len(count.copies))


def scorer_for(room: ClusterState, groups: Sequence[int], options: CopyOptions) -> Scorer:
    """Return the scorer of one group, or of the whole cluster for several."""
    return Scorer(room, options.score, room.group_nodes(groups[0]) if len(groups) == 1 else None)


def fill(room: ClusterState, groups: Sequence[int], scorer: Scorer, options: CopyOptions, most: int) -> tuple[list[Copy], Attempt]:
    """Put copies into `room`, which is changed, and return them with the attempt at the next one."""
    copies: list[Copy] = []
    model = room.facts.instances.models[0]
    tries = attempts(room, groups, options, scorer)
    while (attempt := next(tries)).place is not None and len(copies) < most:
        commit(room, attempt.place)
        copies.append(Copy(model, attempt.place))
    return copies, attempt


def without_stranding(cluster: Cluster, groups: Sequence[int], count: Count, options: CopyOptions) -> Count:
    """Return the copies up to the first that would strand instances on shared storage, and more at other nodes if there are any."""
    if not any(_shares_storage(cluster, cluster.groups[group].name, count.copies) for group in groups):
        return count
    before = ClusterState.from_cluster(cluster, [_with_number(copy.instance, number) for number, copy in enumerate(count.copies)])
    first = len(cluster.instances)
    stranded = {group: stranded_memory(before, group, exact=True) for group in groups}

    def with_copies(number: int) -> ClusterState:
        state = before.copy()
        for position in range(number):
            state.place(first + position, *count.copies[position].place)
        return state

    def is_too_many(number: int) -> bool:
        after = with_copies(number)
        return any(strands_more_than(after, group, stranded[group]) for group in groups)

    low, high = 0, len(count.copies)
    if not is_too_many(high):
        return count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_too_many(middle) else (middle, high)
    tail = _tail(stranded, with_copies(low), first + low, count.copies[low:], options)
    return Count((*count.copies[:low], *tail), count.failures, stranding=True)


def _tail(
    stranded: Mapping[int, dict[int, float]],
    now: ClusterState,
    position: int,
    waiting: Sequence[Copy],
    options: CopyOptions,
) -> list[Copy]:
    """Return copies at nodes that are not the best, one by one, as long as nobody is stranded, within TAIL_TRIALS.

    `stranded` is what may be, by group and failing node.
    """
    trials, effort = itertools.count(), Effort(TAIL_EFFORT)
    tail: list[Copy] = []
    for copy in waiting:
        places = places_of(now, position, list(stranded), options)
        tried = itertools.takewhile(lambda _place: next(trials) < TAIL_TRIALS, places)
        place = next((place for place in tried if not _strands(stranded, now, position, place, effort)), None)
        if place is None:
            break
        now.place(position, *place)
        tail.append(Copy(copy.instance, place))
        position += 1
    return tail


def _strands(stranded: Mapping[int, dict[int, float]], now: ClusterState, position: int, place: Place, effort: Effort) -> bool:
    after = now.copy()
    after.place(position, *place)
    return any(strands_more_than(after, group, before, effort) for group, before in stranded.items())


def _shares_storage(cluster: Cluster, group: str, copies: Sequence[Copy]) -> bool:
    """Return whether anything in a group, or the copies, would restart elsewhere when its node fails."""
    members = {node.name for node in cluster.nodes if node.group == group}
    here = [instance for instance in cluster.instances if instance.primary in members]
    return any(i.uses_memory and i.disk_template in MIRRORED_OUTSIDE for i in (*here, *(copy.instance for copy in copies[:1])))


def _with_number(instance: Instance, number: int) -> Instance:
    return dataclasses.replace(instance, name=f"{instance.name}-{number}")


def pool_limit(cluster: Cluster, instance: Instance) -> float:
    """Return how many copies a storage pool outside the nodes has room for; infinite where there is none or it is not known."""
    room = room_for(cluster, instance)
    pool = int(room.facts.instances.pool[0])
    if pool == ANYWHERE or not room.facts.pool_shared[pool] or not instance.disk:
        return math.inf
    free = float(room.pool_free[:, pool].min(initial=np.inf))
    return free if math.isinf(free) else max(free, 0.0) // instance.disk


def nodes_to_add(
    cluster: Cluster, instance: Instance, group: int, wanted: int, options: CopyOptions, counted: int | None = None
) -> Addition:
    """Return how many nodes like the group's most usual one let `wanted` copies fit; `counted` is the best count without any, if known."""
    like = _usual_node(cluster, group)
    model = cluster.nodes[like]

    def count(number: int) -> int:
        return len(best_count(_with_nodes(cluster, model, number), instance, (group,), options, wanted).copies)

    last = count(0) if counted is None else min(counted, wanted)
    if last >= wanted:
        return Addition(group, like, 0, last)
    low, high = 0, min(_fewest(cluster, model, instance, group, wanted, options), MOST_ADDED)
    while (found := count(high)) < wanted:
        if high >= MOST_ADDED or (found == last and high > 4):
            return Addition(group, like, None, found)
        # As many more as would do if each brought what the last ones did, but no more than twice as many.
        more = math.ceil((wanted - found) * (high - low) / (found - last)) if found > last else high
        low, high, last = high, min(high + max(1, min(more, high)), MOST_ADDED), found
    middle = high - 1
    while high - low > 1:
        low, high = (low, middle) if count(middle) >= wanted else (middle, high)
        middle = (low + high) // 2
    return Addition(group, like, high, wanted)


def _fewest(cluster: Cluster, like: Node, instance: Instance, group: int, wanted: int, options: CopyOptions) -> int:
    """Return how many nodes it takes at least, by what each could carry if nothing but its own limits counted."""
    now, then = (most_by_limits(_with_nodes(cluster, like, number), instance, group, options) for number in (0, 1))
    return max(1, math.ceil((wanted - now) / (then - now))) if then > now and math.isfinite(then) else 1


def most_by_limits(cluster: Cluster, instance: Instance, group: int, options: CopyOptions) -> float:
    """Return a number of copies that a group cannot carry more than: what each node's memory, CPUs and disk have room for."""
    room = room_for(cluster, instance)
    nodes = room.group_nodes(group)
    nodes = nodes[~room.offline[nodes]]
    needs = counted_as_used(room.facts.instances.as_primary[:, 0])
    left = capacity(room.facts, options.rules.least_left)[:, nodes] - usage(room, nodes)
    rows = [(row, needs[row]) for row in (Quantity.MEMORY, Quantity.CPUS)] + [(REDUNDANCY, needs[Quantity.MEMORY])]
    rows += [(Quantity.DISK, needs[Quantity.DISK])] if room.facts.instances.on_node_disk[0] else []
    most = [np.floor(np.maximum(left[row], 0.0) / need) for row, need in rows if need > 0]
    return float(np.min(most, axis=0).sum()) if most else math.inf


def _usual_node(cluster: Cluster, group: int) -> int:
    """Return a node of the hardware that most of a group's nodes have; online ones before others."""
    name = cluster.groups[group].name
    members = [position for position, node in enumerate(cluster.nodes) if node.group == name]
    usual = collections.Counter(_hardware(cluster.nodes[position]) for position in members)
    return max(
        members, key=lambda position: (usual[_hardware(cluster.nodes[position])], cluster.nodes[position].state == NodeState.UP, -position)
    )


def _hardware(node: Node) -> tuple[float, ...]:
    return node.total_memory, node.total_disk, node.total_cpus, node.cpu_speed, node.spindles


def _with_nodes(cluster: Cluster, like: Node, number: int) -> Cluster:
    """Return a cluster with empty nodes of the same make added."""
    storage = tuple(pool if pool.name.kind == "external" else dataclasses.replace(pool, free=pool.total) for pool in like.storage)
    empty = dataclasses.replace(
        like,
        free_memory=int(like.total_memory) - like.node_memory,
        free_disk=int(like.total_disk),
        free_spindles=like.spindles if like.exclusive_storage else like.free_spindles,
        offline=False,
        drained=False,
        master=False,
        storage=storage,
    )
    added = tuple(dataclasses.replace(empty, name=f"{like.name}+{position + 1}") for position in range(number))
    return dataclasses.replace(cluster, nodes=(*cluster.nodes, *added))
