# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes that can be powered off while the others keep room for more, and nodes to power on again when room is short.

    found = squeeze(state, target, minimum, redundant)      # Squeeze

A node can be powered off when it is not the master and carries nothing but instances on shared storage, which then run
elsewhere in their group. Every node that stays on must keep room for a further instance, `target`. When some node has no
room even for `minimum`, nodes that are on standby are powered on instead, as few as are enough. The rules are those of
Ganeti's hsqueeze, except that limits are kept, and that with `redundant` no node's failure strands more instances on shared
storage than before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._common.highs import Effort
from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Integers, Quantity
from ..cluster.changes import with_places
from ..cluster.model import MIRRORED_OUTSIDE, Cluster, Disk, DiskTemplate, Instance
from ..cluster.moves import Move, Place, can_move
from ..cluster.state import ClusterState
from ..cluster.tags import STANDBY
from ..metrics.shared_redundancy import strands_more
from ..metrics.verdicts import EXACT, primary_verdict
from ..place.relocation import Offer, relocate
from ..plan.order import DIRECT, Budget, Guard, Ordered, order, reserves_left

MOST_TOGETHER = 300
"""Instances up to which they are placed together when one by one does not do."""
EFFORT = 250_000
"""How far the program for that may look."""
MOST_ASIDE = 1000
"""Places aside that are tried for instances which wait for each other."""


@dataclass(frozen=True)
class Squeeze:
    """Nodes to power off or on, and the moves that go with it: before nodes go off, after they are on."""

    power_off: tuple[int, ...]
    power_on: tuple[int, ...]
    moves: tuple[Move, ...]
    lacking: tuple[int, ...]
    """Nodes that have no room for `minimum` even then."""


@dataclass(frozen=True)
class _Levelled:
    """Moves after which every node that is on has the room that it should have."""

    moves: tuple[Move, ...]


@dataclass(frozen=True)
class _Problem:
    """The state with a further instance that lives nowhere, its position, and what must hold."""

    state: ClusterState
    extra: int
    redundant: bool


def room_wanted(cluster: Cluster, factor: float) -> Instance:
    """Return an instance of `factor` times the policy's standard size that needs no disk, as hsqueeze asks for."""
    standard = cluster.policy.standard
    return Instance(
        name=f"room for {factor:g} of the standard size",
        memory=int(factor * standard.memory),
        disk=0,
        vcpus=int(factor * standard.cpus),
        disk_template=DiskTemplate.DISKLESS,
        disks=(Disk(0),),
        spindle_use=int(factor * standard.spindle_use),
    )


def squeeze(cluster: Cluster, target: Instance, minimum: Instance, redundant: bool) -> Squeeze:
    """Return which nodes of a cluster can go off, or must come on."""
    enough = _problem(cluster, minimum, redundant)
    lacking = _lacking(enough.state, enough.extra)
    if lacking:
        return _powered_on(enough, lacking)
    problem = _problem(cluster, target, redundant)
    # Where nodes are unlike, small ones first may leave more off than those with the fewest instances.
    ways = [_emptied(problem, order) for order in dict.fromkeys(map(tuple, _candidates(problem.state)))]
    return max(ways, key=lambda way: len(way.power_off))


def _emptied(problem: _Problem, candidates: Sequence[int]) -> Squeeze:
    """Return which of the candidates can go off, each tried in its turn after those before it."""
    off: list[int] = []
    moves: tuple[Move, ...] = ()
    for node in candidates:
        answer = _without(problem, [*off, node])
        if answer is not None:
            off.append(node)
            moves = answer.moves
    return Squeeze(tuple(off), (), moves, ())


def _problem(cluster: Cluster, extra: Instance, redundant: bool) -> _Problem:
    return _Problem(ClusterState.from_cluster(cluster, (extra,)), len(cluster.instances), redundant)


def _lacking(state: ClusterState, extra: int) -> list[int]:
    """Return the online nodes that have no room for one more instance of that size."""
    online = state.online()
    fits = primary_verdict(state, extra, online, EXACT).fits
    return online[~fits].tolist()


def _candidates(state: ClusterState) -> tuple[list[int], list[int]]:
    """Return the nodes that could go off in two orders: those with the fewest instances first, and the smallest first."""
    nodes = state.facts.cluster.nodes
    count = {}
    for node in state.online().tolist():
        here = state.primaries(node).tolist()
        if not nodes[node].master and not len(state.secondaries(node)) and all(_can_follow(state, instance) for instance in here):
            count[node] = len(here)
    fewest = sorted(count, key=lambda node: (count[node], node))
    return fewest, sorted(fewest, key=lambda node: nodes[node].total_memory)


def _can_follow(state: ClusterState, instance: int) -> bool:
    model = state.facts.instances.models[instance]
    return model.disk_template in MIRRORED_OUTSIDE and can_move(state, instance) and state.secondary[instance] == NOWHERE


def _powered_on(problem: _Problem, lacking: Sequence[int]) -> Squeeze:
    """Return the fewest of the nodes on standby, in their order, with which every node has room; all of them if that is not enough."""
    nodes = problem.state.facts.cluster.nodes
    standby = [
        number
        for number, node in enumerate(nodes)
        if problem.state.marked_offline[number] and any(tag.startswith(STANDBY) for tag in node.tags)
    ]
    for count in range(len(standby) + 1):
        state = problem.state.copy()
        state.offline[standby[:count]] = False
        answer = _levelled(_Problem(state, problem.extra, problem.redundant), [])
        if answer is not None:
            return Squeeze((), tuple(standby[:count]), answer.moves, ())
    return Squeeze((), tuple(standby), (), tuple(lacking))


def _without(problem: _Problem, off: Sequence[int]) -> _Levelled | None:
    """Return the moves with which `off` can go off, or None."""
    state = problem.state.copy()
    homeless = np.flatnonzero(np.isin(state.primary, off)).tolist()
    after = state.copy()
    after.offline[list(off)] = True
    spread = _spread(after, homeless, problem.extra)
    if spread is not None:
        found = _ordered(problem, spread)
        if not found.blocked and _holds(problem, with_places(after, spread)):
            return _Levelled(found.moves)
    return _levelled(_Problem(state, problem.extra, problem.redundant), off)


def _spread(after: ClusterState, homeless: Sequence[int], extra: int) -> dict[int, Place] | None:
    """Return the emptiest node for each instance, largest first, that keeps room for `extra`; None when there is none."""
    now = after.copy()
    need = float(now.facts.instances.memory[extra])
    targets: dict[int, Place] = {}
    for instance in sorted(homeless, key=lambda i: -now.facts.instances.memory[i]):
        home, group = now.place_of(instance)[0], now.group_of(instance)
        nodes = now.group_nodes(group)
        nodes = nodes[~now.offline[nodes] & now.facts.nodes.accepts[home, nodes]]
        with now.lifted(instance):
            free: Integers = nodes[primary_verdict(now, instance, nodes, EXACT).fits]
            if not len(free):
                return None
            best = int(free[(now.quantities[Quantity.MEMORY, free] - now.reserved[free]).argmax()])
            if now.quantities[Quantity.MEMORY, best] - now.reserved[best] - now.facts.instances.memory[instance] < need:
                return None
        now.place(instance, best)
        targets[instance] = (best, NOWHERE)
    return targets


def _levelled(problem: _Problem, off: Sequence[int]) -> _Levelled | None:
    """Return the fewest moves of all that can move after which `off` are empty and every other node has room for `extra`."""
    state = problem.state
    after = state.copy()
    after.offline[list(off)] = True
    if not off and not _lacking(after, problem.extra):
        return _Levelled(())
    movable = [
        i for i in np.flatnonzero(state.primary != NOWHERE).tolist() if _can_follow(state, i) and not state.offline[state.primary[i]]
    ]
    if len(movable) > MOST_TOGETHER:
        return None
    crowded = _with_extra_everywhere(after, problem.extra)
    offers = [Offer(i, (state.group_of(i),), frozenset(off), may_stay=state.place_of(i)[0] not in off) for i in movable]
    found = relocate(crowded, offers, allowed=state, effort=Effort(EFFORT))
    if found.unplaced:
        return None
    ordered = _ordered(problem, found.targets)
    return None if ordered.blocked or not _holds(problem, with_places(after, found.targets)) else _Levelled(ordered.moves)


def _ordered(problem: _Problem, places: dict[int, Place]) -> Ordered:
    state = problem.state
    if not problem.redundant:
        return order(state, places, Guard.at_every_move(state), DIRECT)
    return order(state, places, Guard.at_every_move(state, reserves_left(state, places)), Budget(trials=MOST_ASIDE))


def _with_extra_everywhere(state: ClusterState, extra: int) -> ClusterState:
    """Return a state in which every online node carries a copy of `extra`, which is known to live nowhere."""
    crowded = state.copy()
    for node in state.online().tolist():
        crowded.place(extra, node)
        crowded.primary[extra] = NOWHERE
    return crowded


def _holds(problem: _Problem, after: ClusterState) -> bool:
    """Return whether every node that is on has room, and no failure strands more than before."""
    if _lacking(after, problem.extra):
        return False
    groups = range(len(after.facts.cluster.groups)) if problem.redundant else ()
    return not any(strands_more(problem.state, after, group) for group in groups)
