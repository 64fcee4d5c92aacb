# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Groups that could be emptied because the others have room for all that is in them, and the moves that empty one.

    found = compress(state, groups, mode)
    best = most_reclaimed(found)

The seed design's "Compression": a group is a candidate when it shares storage with others and uses less memory, disk and
CPUs than the others have free; then its instances are really placed, one by one from the largest, and if that leaves
somebody out, together. No limit of the groups that take them gets worse, restarts on shared storage included. Each
candidate is tried on its own, through `run`, any function like the built-in `map`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Floats, Quantity
from ..cluster.changes import with_places
from ..cluster.moves import Move, Place, can_move, copied_data
from ..cluster.state import ClusterState
from ..metrics.health import peer_groups, target_groups
from ..metrics.score import ScoreMode
from ..metrics.shared_redundancy import strands_more
from ..place.refusal import Reason
from ..place.relocation import Offer, place_elsewhere, refusals_in, relocate
from ..plan.order import Guard, order
from .redistribution import Missing, Run

RESOURCES = ("memory", "disk", "cpus")
MOST_TOGETHER = 400
"""Instances up to which they are also placed together."""


@dataclass(frozen=True)
class Emptying:
    """What emptying a group takes. `reasons` and `unplaced` say why it cannot be; `used` and `free` are by RESOURCES."""

    group: int
    instances: tuple[int, ...]
    used: tuple[int, ...]
    free: tuple[int, ...]
    reclaims: float
    """Free resources as shares of the whole cluster's, summed up: what the design ranks groups by."""
    data: int
    moves: tuple[Move, ...]
    reasons: tuple[Reason, ...]
    unplaced: tuple[Missing, ...]

    @property
    def possible(self) -> bool:
        """Return whether the moves empty the group."""
        return not (self.reasons or self.unplaced)


def compress(state: ClusterState, groups: Sequence[int], mode: ScoreMode, run: Run = map) -> list[Emptying]:
    """Return for each of `groups` how it would be emptied, or why it cannot be; `state` stays as it is."""
    return list(run(functools.partial(empty_group, state, mode), groups))


def most_reclaimed(found: Iterable[Emptying]) -> Emptying | None:
    """Return the group with the most free resources of those that can be emptied and are not empty already."""
    able = [emptying for emptying in found if emptying.possible and emptying.instances]
    return max(able, key=lambda emptying: (emptying.reclaims, -emptying.data, -emptying.group), default=None)


def empty_group(state: ClusterState, mode: ScoreMode, group: int) -> Emptying:
    """Return how one group is emptied."""
    nodes = state.group_nodes(group)
    instances = np.flatnonzero(np.isin(state.primary, nodes) | np.isin(state.secondary, nodes)).tolist()
    reasons = _refusals(state, group, instances)
    moves: tuple[Move, ...] = ()
    unplaced: tuple[Missing, ...] = ()
    if not reasons:
        moves, unplaced = _emptied(state, group, instances, mode)
    used, free, total = _resources(state, group)
    return Emptying(
        group=group,
        instances=tuple(instances),
        used=_whole(used),
        free=_whole(free),
        reclaims=float(np.divide(free, total, out=np.zeros(len(total)), where=total > 0).sum()),
        data=sum(copied_data(state, move) for move in moves),
        moves=moves,
        reasons=reasons,
        unplaced=unplaced,
    )


def _whole(amounts: Floats) -> tuple[int, ...]:
    return tuple(int(amount) for amount in amounts)


def _resources(state: ClusterState, group: int) -> tuple[Floats, Floats, Floats]:
    """Return what the group's instances use and what its online nodes have free, and the whole cluster's total, by RESOURCES."""
    total, free = _totals(state)
    member = state.facts.nodes.group == group
    here = np.flatnonzero(np.isin(state.primary, np.flatnonzero(member)))
    there = np.flatnonzero(np.isin(state.secondary, np.flatnonzero(member)))
    facts = state.facts.instances
    rows = [Quantity.MEMORY, Quantity.DISK, Quantity.CPUS]
    used = np.abs(facts.as_primary[rows][:, here]).sum(axis=1) + np.abs(facts.as_secondary[rows][:, there]).sum(axis=1)
    return used, free[:, member].sum(axis=1), total.sum(axis=1)


def _totals(state: ClusterState) -> tuple[Floats, Floats]:
    """Return [3, N]: what online nodes have in all, and what they have free."""
    nodes = state.facts.nodes
    online = ~state.offline
    free = np.array([state.quantities[Quantity.MEMORY], state.quantities[Quantity.DISK], nodes.cpu_limit - state.quantities[Quantity.CPUS]])
    return np.array([nodes.total_memory, nodes.total_disk, nodes.cpu_limit]) * online, np.maximum(free, 0.0) * online


def _refusals(state: ClusterState, group: int, instances: Sequence[int]) -> tuple[Reason, ...]:
    """Return why a group is no candidate."""
    if not instances:
        return ()
    if not peer_groups(state, group):
        return (Reason(NOWHERE, "partition", 0.0, "no other group shares its storage"),)
    used, own, _total = _resources(state, group)
    _all, free = _totals(state)
    elsewhere = free.sum(axis=1) - own
    return tuple(
        Reason(NOWHERE, name, float(need - left), f"its instances use more {name} than the other groups have free")
        for name, need, left in zip(RESOURCES, used, elsewhere)
        if need > left
    )


def _emptied(state: ClusterState, group: int, instances: Sequence[int], mode: ScoreMode) -> tuple[tuple[Move, ...], tuple[Missing, ...]]:
    """Return moves of all instances in order, or why some cannot move."""
    stuck = [i for i in instances if not can_move(state, i)]
    if stuck:
        return (), tuple(Missing(instance, "its disks cannot be moved to another node") for instance in stuck)
    others = tuple(range(len(state.facts.cluster.groups)))
    groups = {instance: target_groups(state, instance, others) for instance in instances}
    targets = _one_by_one(state, groups, mode)
    if len(targets) < len(instances) and len(instances) <= MOST_TOGETHER:
        together = relocate(state, [Offer(instance, groups[instance]) for instance in instances], mode=mode).targets
        after = with_places(state, together)
        if len(together) > len(targets) and not any(strands_more(state, after, other) for other in others if other != group):
            targets = together
    found = order(state, targets, Guard.at_every_move(state))
    missing = [_unplaced(state, targets, instance, groups[instance], mode) for instance in instances if instance not in targets]
    missing += [Missing(instance, "there is a place, but no order of moves that has room for each of them") for instance in found.blocked]
    return (() if missing else found.moves), tuple(missing)


def _one_by_one(state: ClusterState, groups: dict[int, tuple[int, ...]], mode: ScoreMode) -> dict[int, Place]:
    """Return places of instances that are taken from the largest memory down."""
    now = state.copy()
    targets: dict[int, Place] = {}
    for instance in sorted(groups, key=lambda i: (-state.facts.instances.memory[i], -state.facts.instances.disk[i], i)):
        home = now.place_of(instance)
        with now.lifted(instance):
            place = place_elsewhere(now, instance, home, groups[instance], mode)
        if place is not None:
            now.place(instance, *place)
            targets[instance] = place
    return targets


def _unplaced(state: ClusterState, targets: dict[int, Place], instance: int, groups: tuple[int, ...], mode: ScoreMode) -> Missing:
    """Return why an instance finds no place once the others have moved."""
    refusals = refusals_in(with_places(state, targets), instance, groups, mode)
    return Missing(instance, "no group has room for it when the others have moved", refusals)
