# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How an instance gets from its nodes to others: kinds of moves, the steps they consist of, what they copy, commands.

A mirrored instance only ever swaps its two nodes or replaces its secondary, so each way to other nodes is a sequence of
those two. The kinds are those of Ganeti's hbal, and `replace_both` for both nodes at once, as moves between groups need.
Places are (primary, secondary), by position; the secondary is NOWHERE for instances on one node.
"""

from __future__ import annotations

import shlex
import typing as t
from dataclasses import dataclass
from enum import StrEnum

from .arrays import NOWHERE
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


class StepKind(StrEnum):
    """What one step of a move does."""

    MIGRATE = "migrate"
    """A running instance changes its primary without being stopped."""
    FAILOVER = "failover"
    """One that is stopped, or whose primary is down, changes its primary."""
    REPLACE_DISKS = "replace_disks"
    """The disks are copied to a new secondary."""


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

    def frees(self) -> frozenset[int]:
        """Return the nodes that have more room afterwards than before, or than at some step."""
        primary, secondary = self.source
        nodes = {node for step in (self.source, *self.steps) for node in step} - {NOWHERE}
        unchanged = {primary} if self.target[0] == primary else set()
        settled = {self.target[0]} if all(step[0] != self.target[0] or step == self.target for step in self.steps) else set()
        if self.idle:
            settled -= {there for _here, there in (self.source, *self.steps)}
        arrived = {self.target[1]} - {primary, secondary}
        return frozenset(nodes - unchanged - settled - arrived)


def possible_moves(state: ClusterState, instance: int, target: Place) -> list[Move]:
    """Return the ways from where an instance is to `target`, the cheapest first; none when no disk can be read.

    Nodes that are offline can be left by a failover, but no disk is copied from or to them.
    """
    source = int(state.primary[instance]), int(state.secondary[instance])
    if source == target:
        return []
    if source[1] == NOWHERE:
        away = Move(instance, MoveKind.FAILOVER_TO_ANY, source, (target,))
        return [away] if target[1] == NOWHERE and _can_run(state, away) else []
    idle = is_idle(state, instance)
    ways = [Move(instance, kind, source, steps, idle) for kind, steps in _ways(source, target)]
    return [move for move in ways if _can_run(state, move)]


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
    return copies(move) * int(state.facts.instances.disk[move.instance])


def steps_to_plain(state: ClusterState, move: Move) -> list[dict[str, t.Any]]:
    """Return the steps of a move as plain data: kind, nodes before and after, the node it goes to, and its command.

    `online` says whether the node that is left can be reached; a failover from one that cannot starts from the mirror.
    """
    model, names = state.facts.instances.models[move.instance], state.facts.nodes.names
    places = (move.source, *move.steps)
    told = []
    for before, after in zip(places, places[1:]):
        kind = _step_kind(state, move.instance, before, after)
        node = names[after[1]] if kind == StepKind.REPLACE_DISKS else names[after[0]]
        online = not bool(state.offline[before[0]])
        told.append(
            {
                "kind": str(kind),
                "from": [names[position] for position in before if position != NOWHERE],
                "to": [names[position] for position in after if position != NOWHERE],
                "node": node,
                "online": online,
                "command": _command(kind, model.name, node, mirrored=after[1] != NOWHERE, online=online),
            }
        )
    return told


def commands(state: ClusterState, move: Move) -> list[str]:
    """Return the gnt-instance commands that carry the move out, in order."""
    return [step["command"] for step in steps_to_plain(state, move)]


def _step_kind(state: ClusterState, instance: int, before: Place, after: Place) -> StepKind:
    if _replaces(before, after):
        return StepKind.REPLACE_DISKS
    live = state.facts.instances.models[instance].uses_memory and not state.offline[before[0]]
    return StepKind.MIGRATE if live else StepKind.FAILOVER


def _command(kind: StepKind, instance: str, node: str, *, mirrored: bool, online: bool) -> str:
    name = shlex.quote(instance)
    if kind == StepKind.REPLACE_DISKS:
        return f"gnt-instance replace-disks -n {shlex.quote(node)} {name}"
    verb = "migrate -f" if kind == StepKind.MIGRATE else "failover -f" if online else "failover -f --ignore-consistency"
    # A mirrored instance can only go to its secondary.
    target = "" if mirrored else f" -n {shlex.quote(node)}"
    return f"gnt-instance {verb}{target} {name}"


def _replaces(before: Place, after: Place) -> bool:
    return before[0] == after[0] and before[1] != after[1]


def _ways(source: Place, target: Place) -> list[tuple[MoveKind, tuple[Place, ...]]]:
    """Return every known way of a mirrored instance as steps."""
    (primary, secondary), (new, other) = source, target
    failover = (secondary, primary)
    if target == failover:
        return [(MoveKind.FAILOVER, (failover,))]
    if new == primary:
        return [(MoveKind.REPLACE_SECONDARY, (target,))]
    if new == secondary:
        return [(MoveKind.FAILOVER_AND_REPLACE, (failover, target))]
    if other == primary:
        return [(MoveKind.REPLACE_AND_FAILOVER, ((primary, new), target))]
    through_new = (MoveKind.REPLACE_BOTH, ((primary, new), (new, primary), target))
    if other == secondary:
        return [(MoveKind.REPLACE_PRIMARY, (failover, (secondary, new), target)), through_new]
    return [through_new, (MoveKind.REPLACE_BOTH, (failover, (secondary, new), (new, secondary), target))]


def _can_run(state: ClusterState, move: Move) -> bool:
    """Return whether every step has a source and a target that are up, and migration tags let it pass."""
    places = (move.source, *move.steps)
    for before, after in zip(places, places[1:]):
        if state.offline[after[0]] or (_replaces(before, after) and state.offline[after[1]]):
            return False
        if before[0] != after[0] and not state.offline[before[0]] and not state.facts.nodes.accepts[before[0], after[0]]:
            return False
    return True
