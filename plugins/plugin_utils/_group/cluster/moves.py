# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How an instance gets from its nodes to others: kinds of moves, the steps they consist of, what they copy, commands.

A mirrored instance only ever swaps its two nodes or replaces its secondary, so each way to other nodes is a sequence of
those two. The kinds are those of Ganeti's hbal, and `replace_both` for both nodes at once, as moves between groups need.
Places are (primary, secondary), by position; the secondary is NOWHERE for instances on one node.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..._common.libraries import np
from .arrays import NOWHERE, Booleans, Integers
from .commands import Command, StepKind, command_of
from .model import MIRRORED_OUTSIDE, Manager
from .state import ClusterState

Place = tuple[int, int]


class MoveKind(StrEnum):
    """What is done to an instance."""

    FAILOVER = "failover"
    FAILOVER_TO_ANY = "failover_to_any"
    """To any node that reaches the storage."""
    REPLACE_SECONDARY = "replace_secondary"
    REPLACE_AND_FAILOVER = "replace_and_failover"
    """A new secondary that becomes the primary; the old primary becomes the secondary."""
    REPLACE_PRIMARY = "replace_primary"
    FAILOVER_AND_REPLACE = "failover_and_replace"
    """The secondary becomes the primary and gets a new secondary."""
    REPLACE_BOTH = "replace_both"


class Change(StrEnum):
    """What a step does to the two roles of a mirrored instance."""

    SWAP = "swap"
    """The primary and the secondary change places."""
    REPLACE = "replace"
    """Another node becomes the secondary; the disks are copied to it."""


WAYS: tuple[tuple[MoveKind, tuple[Change, ...]], ...] = (
    (MoveKind.FAILOVER, (Change.SWAP,)),
    (MoveKind.REPLACE_SECONDARY, (Change.REPLACE,)),
    (MoveKind.REPLACE_AND_FAILOVER, (Change.REPLACE, Change.SWAP)),
    (MoveKind.FAILOVER_AND_REPLACE, (Change.SWAP, Change.REPLACE)),
    (MoveKind.REPLACE_PRIMARY, (Change.SWAP, Change.REPLACE, Change.SWAP)),
    (MoveKind.REPLACE_BOTH, (Change.REPLACE, Change.SWAP, Change.REPLACE)),
    (MoveKind.REPLACE_BOTH, (Change.SWAP, Change.REPLACE, Change.SWAP, Change.REPLACE)),
)
"""The kinds of moves of mirrored instances as sequences of changes; of those that lead to one place, the cheapest first."""
_CHANGES = dict(WAYS)


@dataclass(frozen=True)
class Move:
    """An instance goes from `source` by `steps`, each a place, to `target`, the last of them.

    An `idle` one is stopped: it takes no memory where it is primary, while its secondary keeps some for it.
    """

    instance: int
    kind: MoveKind
    source: Place
    steps: tuple[Place, ...]
    idle: bool = False

    @property
    def target(self) -> Place:
        """Return where the instance is afterwards."""
        return self.steps[-1]

    def takes(self) -> frozenset[int]:
        """Return the nodes that must have room for it at any step.

        A primary that becomes the secondary needs none, unless the instance is idle: it frees as much memory as it then keeps for
        failovers.
        """
        primary, secondary = self.source
        settled = {NOWHERE} if self.idle else {primary, NOWHERE}
        nodes = set()
        for here, there in self.steps:
            nodes |= {here} - {primary}
            if there not in settled and (here, there) != (primary, secondary):
                nodes.add(there)
        return frozenset(nodes)


def steps(source: Place, changes: Sequence[Change], nodes: Sequence[int]) -> tuple[Place, ...]:
    """Return where changes lead step by step; `nodes` are the new secondaries, in turn."""
    place, arriving = source, iter(nodes)
    places = []
    for change in changes:
        place = (place[1], place[0]) if change == Change.SWAP else (place[0], next(arriving))
        places.append(place)
    return tuple(places)


def make_move(state: ClusterState, instance: int, kind: MoveKind, target: int) -> Move:
    """Return a move of a kind with one target at most from where the instance is."""
    source = state.place_of(instance)
    if kind == MoveKind.FAILOVER_TO_ANY:
        return Move(instance, kind, source, ((target, NOWHERE),))
    return Move(instance, kind, source, steps(source, _CHANGES[kind], (target,)), is_idle(state, instance))


def can_leave(state: ClusterState, instance: int) -> bool:
    """Return whether an instance may leave its nodes at all: nothing keeps it there, and its disks are mirrored or outside."""
    if state.facts.instances.stays[instance]:
        return False
    return bool(state.facts.instances.two_nodes[instance]) or state.facts.instances.models[instance].disk_template in MIRRORED_OUTSIDE


def can_move(state: ClusterState, instance: int) -> bool:
    """Return whether an instance can get to other nodes: by what keeps it, its template, its group, and a live copy of its disks."""
    primary, secondary = state.place_of(instance)
    if primary == NOWHERE or state.facts.instances.stays[instance]:
        return False
    if secondary == NOWHERE:
        reached = state.answers(primary) or not state.facts.instances.along[instance]
        return reached and state.facts.instances.models[instance].disk_template in MIRRORED_OUTSIDE
    group = state.facts.nodes.group
    return bool(group[primary] == group[secondary]) and (state.answers(primary) or not state.offline[secondary])


def reachable(state: ClusterState, source: Place, primaries: Integers, secondaries: Integers) -> Booleans:
    """Return [P, S], or [P, 1] without secondary: whether some way leads to a place, by what is up and by migration tags."""
    primary, secondary = source
    accepts, is_marked_offline = state.facts.nodes.accepts, not state.answers(primary)
    direct = accepts[primary, primaries] | (primaries == primary)
    if secondary == NOWHERE:
        return (direct | is_marked_offline)[:, None]
    over = not state.offline[secondary] and (is_marked_offline or bool(accepts[primary, secondary]))
    indirect = over & (accepts[secondary, primaries] | (primaries == secondary))
    reached: Booleans = np.where((secondaries == primary) | (primaries == primary)[:, None], False, indirect[:, None])
    # While the primary answers a new mirror can be created, which then takes over.
    return reached | (direct & (primaries != secondary))[:, None] & (not is_marked_offline) | (primaries == secondary)[:, None] & over


def possible_moves(state: ClusterState, instance: int, target: Place) -> list[Move]:
    """Return the ways from where an instance is to `target`, the cheapest first; none when no disk can be read, or it has to stay.

    Nothing goes to nodes that are offline or drained. One marked offline can be left by a failover, but no disk is copied from it.
    """
    return [move for move in conceivable_moves(state, instance, target) if _can_run(state, move)]


def conceivable_moves(state: ClusterState, instance: int, target: Place) -> list[Move]:
    """Return the same whatever the state of the nodes, as hbal has it."""
    source = state.place_of(instance)
    if source == target or state.facts.instances.stays[instance]:
        return []
    if source[1] == NOWHERE:
        return [Move(instance, MoveKind.FAILOVER_TO_ANY, source, (target,))] if target[1] == NOWHERE else []
    idle = is_idle(state, instance)
    return [Move(instance, kind, source, steps, idle) for kind, steps in _ways(source, target)]


def is_idle(state: ClusterState, instance: int) -> bool:
    """Return whether an instance is stopped, and its secondary keeps memory for it all the same."""
    instances = state.facts.instances
    is_kept = state.secondary[instance] != NOWHERE and instances.reserves[instance] > 0
    return bool(is_kept) and not instances.models[instance].uses_memory


def copies(move: Move) -> int:
    """Return how many times its disks are copied."""
    places = (move.source, *move.steps)
    return sum(_replaces(before, after) for before, after in zip(places, places[1:]))


def copied_data(state: ClusterState, move: Move) -> int:
    """Return MiB that are copied."""
    along = move.kind == MoveKind.FAILOVER_TO_ANY and bool(state.facts.instances.along[move.instance])
    return (copies(move) + along) * int(state.facts.instances.disk[move.instance])


def steps_to_plain(state: ClusterState, move: Move) -> list[dict[str, t.Any]]:
    """Return the steps of a move as plain data: kind, nodes before and after, the node it goes to, and its command.

    `online` says whether the node that is left is not marked offline; a failover from one that is starts from the mirror.
    """
    model, names, manager = state.facts.instances.models[move.instance], state.facts.nodes.names, state.facts.cluster.manager
    places = (move.source, *move.steps)
    plain = []
    for before, after in zip(places, places[1:]):
        kind = _step_kind(state, move.instance, before, after)
        node = names[after[1]] if kind == StepKind.REPLACE_DISKS else names[after[0]]
        online = not bool(state.marked_offline[before[0]])
        plain.append(
            {
                "kind": str(kind),
                "from": [names[position] for position in before if position != NOWHERE],
                "to": [names[position] for position in after if position != NOWHERE],
                "node": node,
                "online": online,
                "command": command_of(manager, Command(kind, model, node, after[1] != NOWHERE, online)),
            }
        )
    return plain


def commands(state: ClusterState, move: Move) -> list[str]:
    """Return the commands that carry the move out, in order, in the words of what runs the cluster."""
    return [step["command"] for step in steps_to_plain(state, move) if step["command"]]


def kind_of(state: ClusterState, move: Move) -> str:
    """Return what a move is called: a mirrored instance's by its kind, any other's by what is done to it (migrate, restart, failover)."""
    if move.kind != MoveKind.FAILOVER_TO_ANY:
        return str(move.kind)
    model = state.facts.instances.models[move.instance]
    if not state.answers(move.source[0]):
        return str(StepKind.FAILOVER)
    if model.runs:
        return str(StepKind.MIGRATE) if model.live else "restart"
    return str(StepKind.FAILOVER if state.facts.cluster.manager == Manager.GANETI else StepKind.MIGRATE)


def _step_kind(state: ClusterState, instance: int, before: Place, after: Place) -> StepKind:
    if _replaces(before, after):
        return StepKind.REPLACE_DISKS
    model = state.facts.instances.models[instance]
    live = model.runs and model.live and state.answers(before[0])
    return StepKind.MIGRATE if live else StepKind.FAILOVER


def _replaces(before: Place, after: Place) -> bool:
    return before[0] == after[0] and before[1] != after[1]


def _ways(source: Place, target: Place) -> Iterator[tuple[MoveKind, tuple[Place, ...]]]:
    """Yield the ways of a mirrored instance as kinds and steps; each step leads somewhere else, and the last to the target."""
    if target == source[::-1]:
        yield MoveKind.FAILOVER, (target,)
        return
    fresh = [node for node in target if node not in source]
    for kind, changes in WAYS:
        replacing = changes.count(Change.REPLACE)
        if kind == MoveKind.REPLACE_BOTH or len(fresh) == replacing:
            places = steps(source, changes, target if replacing > 1 else fresh)
            if places[-1] == target and all(before != after and after[0] != after[1] for before, after in zip((source, *places), places)):
                yield kind, places


def _can_run(state: ClusterState, move: Move) -> bool:
    """Return whether disks are copied from nodes that answer, nothing comes to one that takes nothing, and migration tags let it pass."""
    places = (move.source, *move.steps)
    for before, after in zip(places, places[1:]):
        replaced, answers = _replaces(before, after), state.answers(before[0])
        if state.offline[after[1] if replaced else after[0]]:
            return False
        if not (answers if replaced else not answers or state.facts.nodes.accepts[before[0], after[0]]):
            return False
    return True
