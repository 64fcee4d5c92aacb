# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What must move for a set of nodes to be down together with nothing lost, and whether there is room for it.

    leave(state, nodes, options)        # Departure, whose moves may be done in any order, or Stuck

While nodes are down, mirrored instances run on their secondaries, and those on shared storage on any node of the group
that reaches their pool. Hard limits hold (memory, disk, pools, physical spindles, rules); N+1, CPUs and exclusion tags may break
meanwhile, since that is what memory is kept for, but are kept where that is possible. A full evacuation, which is not over so soon,
keeps all limits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Integers, Quantity
from ..cluster.changes import after_moves
from ..cluster.model import MIRRORED_OUTSIDE
from ..cluster.moves import Move, Place, possible_moves
from ..cluster.state import ClusterState
from ..cluster.staying import HA
from ..metrics.limits import broken_at_home
from ..metrics.score import ScoreMode
from ..metrics.together import sets_together
from ..metrics.verdicts import EXACT, Rules, primary_verdict
from .evacuation import evacuate
from .task import AcrossGroups, EvacuationMode, tasks_of_nodes


class NonRedundant(StrEnum):
    """What becomes of instances whose disks are on one node only."""

    MOVE = "move"
    """Their disks are copied to another node first."""
    SKIP = "skip"
    """Nodes that have any are left out."""
    IGNORE = "ignore"
    """They are down with their node."""


@dataclass(frozen=True)
class DowntimeOptions:
    """How nodes are prepared. `offline`: instances are down with their primary, only data stays up. `full`: secondaries leave, too."""

    offline: bool = False
    full: bool = False
    non_redundant: NonRedundant = NonRedundant.MOVE


@dataclass(frozen=True)
class Departure:
    """What leaves the nodes of a set; `carried` are instances on one node's disk, with the node they are copied to."""

    moves: tuple[Move, ...] = ()
    carried: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Stuck:
    """Why nodes cannot be down together: the instance that is in the way."""

    instance: int
    says: str


def conflicts(state: ClusterState) -> set[tuple[int, int]]:
    """Return the pairs of nodes that hold the two copies of some instance's disks, the smaller position first."""
    mirrored = np.flatnonzero((state.primary != NOWHERE) & (state.secondary != NOWHERE))
    pairs = np.sort(np.stack([state.primary[mirrored], state.secondary[mirrored]]), axis=0)
    return set(map(tuple, pairs.T.tolist()))


def leave(state: ClusterState, nodes: Collection[int], options: DowntimeOptions) -> Departure | Stuck:
    """Return what must leave for all of `nodes` to be down; `state` stays as it is."""
    down = set(nodes)
    lost = lost_copies(state, down)
    if lost:
        return Stuck(lost[0], "both copies of its disks would be down")
    stuck = _stays_alone(state, down, options)
    if stuck is not None:
        return Stuck(stuck, "its disks are on this node only")
    if options.offline:
        return Departure()
    return _all_leave(state, down, options) if options.full else _primaries_leave(state, down, options)


def lost_copies(state: ClusterState, down: Collection[int]) -> list[int]:
    """Return the instances whose two nodes would be down, counting those that are offline already."""
    offline_nodes = np.zeros(len(state.offline), dtype=bool)
    offline_nodes[list(down)] = True
    mirrored = np.flatnonzero((state.primary != NOWHERE) & (state.secondary != NOWHERE))
    primary, secondary = state.primary[mirrored], state.secondary[mirrored]
    off = offline_nodes | state.marked_offline | state.unreachable
    lost = mirrored[(offline_nodes[primary] | offline_nodes[secondary]) & off[primary] & off[secondary]]
    return lost.tolist()


def _residents(state: ClusterState, down: Iterable[int]) -> list[int]:
    return np.flatnonzero(np.isin(state.primary, list(down)) & state.facts.instances.real).tolist()


def _is_alone(state: ClusterState, instance: int) -> bool:
    """Return whether an instance's disks are on one node only."""
    return state.secondary[instance] == NOWHERE and state.facts.instances.models[instance].disk_template not in MIRRORED_OUTSIDE


def _is_left_to_ha(state: ClusterState, instance: int) -> bool:
    """Return whether HA takes an instance away from a node in maintenance, so that no move is planned for it."""
    return instance in state.facts.staying and state.facts.staying[instance].reason == HA


def _why_it_stays(state: ClusterState, instance: int) -> str:
    """Return what keeps an instance where it is, whatever is planned; empty where nothing does."""
    return state.facts.staying[instance].says if instance in state.facts.staying else ""


def _stays_alone(state: ClusterState, down: Iterable[int], options: DowntimeOptions) -> int | None:
    if options.non_redundant != NonRedundant.SKIP:
        return None
    return next((instance for instance in _residents(state, down) if _is_alone(state, instance)), None)


def _primaries_leave(state: ClusterState, down: set[int], options: DowntimeOptions) -> Departure | Stuck:
    """Return failovers of the running mirrored instances, then places for those on one node, the largest first."""
    now = state.copy()
    now.offline[list(down)] = True
    models = state.facts.instances.models
    moves, singles = [], list[int]()
    for instance in _residents(state, down):
        primary, secondary = state.place_of(instance)
        if _is_left_to_ha(state, instance):
            continue
        if secondary == NOWHERE:
            alone = _is_alone(state, instance)
            leaves = options.non_redundant != NonRedundant.IGNORE if alone else models[instance].uses_memory
            singles += [instance] if leaves else []
        elif models[instance].uses_memory:
            ways = possible_moves(state, instance, (secondary, primary))
            if not ways:
                return Stuck(instance, _why_it_stays(state, instance) or "it cannot migrate to its secondary")
            now.place(instance, secondary, primary)
            moves.append(ways[0])
            if now.quantities[Quantity.MEMORY, secondary] < 0:
                return Stuck(instance, "its secondary has no memory for it")
    carried = []
    for unit in _units(state, singles):
        node = None if state.facts.staying.keys() & set(unit) else _best_fit(now, unit)
        if node is None:
            stuck = next((instance for instance in unit if instance in state.facts.staying), unit[0])
            return Stuck(stuck, _why_it_stays(state, stuck) or "no other node of its group has room for it")
        for instance in unit:
            now.place(instance, node)
            if _is_alone(state, instance):
                carried.append((instance, node))
            else:
                moves.append(possible_moves(state, instance, (node, NOWHERE))[0])
    for move in moves:
        broken = () if broken_at_home(state, move.instance) else broken_at_home(now, move.instance)
        if broken:
            return Stuck(move.instance, f"on its secondary a rule would not hold: {', '.join(broken)}")
    return Departure(tuple(moves), tuple(carried))


def _units(state: ClusterState, singles: Sequence[int]) -> list[tuple[int, ...]]:
    """Return instances on one node each by themselves, those that rules keep together as one unit; the largest first."""
    memory, group = state.facts.instances.memory, state.facts.nodes.group
    sets = [tuple(members.tolist()) for members in sets_together(state, np.array(singles, dtype=np.int64))]
    units = [members for members in sets if len(set(group[state.primary[list(members)]].tolist())) == 1]
    units += [(instance,) for instance in singles if not any(instance in members for members in units)]
    return sorted(units, key=lambda members: (-sum(float(memory[one]) for one in members), members))


def _best_fit(now: ClusterState, unit: Sequence[int]) -> int | None:
    """Return the fullest node of their group that takes all of a unit, with all limits if there is one, else with the hard ones."""
    primaries = now.primary[list(unit)]
    nodes = now.group_nodes(int(now.facts.nodes.group[primaries[0]]))
    accepted: Integers = nodes[~now.offline[nodes] & now.facts.nodes.accepts[np.ix_(primaries, nodes)].all(axis=0)]
    with contextlib.ExitStack() as lifted:
        for instance in unit:
            lifted.enter_context(now.lifted(instance))
        for rules in (EXACT, EXACT.hard()):
            fitting = accepted[primary_verdict(now, unit[0], accepted, rules).fits]
            for node in fitting[np.argsort(now.quantities[Quantity.MEMORY, fitting], kind="stable")].tolist():
                if _all_come(now, unit, node, rules):
                    return int(node)
    return None


def _all_come(now: ClusterState, unit: Sequence[int], node: int, rules: Rules) -> bool:
    """Return whether a node that takes the first of a unit takes the others with it; they are nowhere."""
    if len(unit) == 1:
        return True
    trial = now.copy()
    for before, instance in zip(unit, unit[1:]):
        trial.place(before, node)
        if not primary_verdict(trial, instance, np.array([node]), rules).fits[0]:
            return False
    return True


def _all_leave(state: ClusterState, down: set[int], options: DowntimeOptions) -> Departure | Stuck:
    """Return moves that empty the nodes of both roles; instances on one node's disk are carried away as they are otherwise."""
    every = tasks_of_nodes(state, sorted(down), EvacuationMode.ALL)
    tasks = [task for task in every if not (_is_alone(state, task.instance) or _is_left_to_ha(state, task.instance))]
    # What remains while the nodes are down has to suffice: nothing restarts on them, and they are in no score.
    drained = state.copy()
    drained.drain(sorted(down))
    found = evacuate(drained, tasks, AcrossGroups.NO, ScoreMode.HTOOLS)
    if found.unplaced or found.relaxed:
        stuck = found.unplaced[0].instance if found.unplaced else found.relaxed[0]
        return Stuck(stuck, _why_it_stays(state, stuck) or "no other node of its group has room for it")
    now = after_moves(state, found.moves)
    now.offline[list(down)] = True
    carried = []
    for instance in _residents(now, down) if options.non_redundant == NonRedundant.MOVE else ():
        if _is_left_to_ha(now, instance):
            continue
        node = None if instance in now.facts.staying else _best_fit(now, (instance,))
        if node is None:
            return Stuck(instance, _why_it_stays(now, instance) or "no other node of its group has room for it")
        now.place(instance, node)
        carried.append((instance, node))
    return Departure(found.moves, tuple(carried))


def back(state: ClusterState, nodes: Collection[int], departure: Departure) -> tuple[Move, ...]:
    """Return the moves that bring the mirrored instances and those on shared storage back to where they were, from where they left `nodes`.

    Nobody goes back to where a rule does not want it, or to a node that takes nothing and was not a part of this.
    """
    closed = frozenset(np.flatnonzero(state.offline).tolist()) - set(nodes)
    return tuple(
        Move(move.instance, move.kind, move.target, (*reversed(move.steps[:-1]), move.source), move.idle)
        for move in reversed(departure.moves)
        if not (closed & set(move.source) - set(move.target) or broken_at_home(state, move.instance))
    )


def targets(departure: Departure) -> dict[int, Place]:
    """Return where all that leaves goes."""
    return {move.instance: move.target for move in departure.moves} | {instance: (node, NOWHERE) for instance, node in departure.carried}
