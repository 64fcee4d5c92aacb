# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each kind of move does to the nodes that it concerns, as data: what a node was for the instance, and what it becomes.

    EFFECTS[kind][Node.P]            # (Part(PRIMARY, Node.S), Part(NONE)): the primary is left
    combined(kinds, at, operator.add)       # {kind: at(node, was, becomes) summed over the nodes of each kind}

Every quantity of the neighbourhood (limits, score, price) states once what changes at one node, `at(node, was, becomes)`; how these add up
to a move is read from here.
"""

from __future__ import annotations

import functools
import typing as t
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from ..cluster.arrays import NOWHERE
from ..cluster.moves import WAYS, MoveKind, Place, steps

Value = t.TypeVar("Value")


class Node(IntEnum):
    """A node of a move: the primary and the secondary before it, and the target."""

    P = 0
    S = 1
    T = 2


class Role(StrEnum):
    """What a node is for an instance."""

    NONE = "none"
    PRIMARY = "primary"
    SECONDARY = "secondary"


@dataclass(frozen=True)
class Part:
    """The role of a node for an instance, and the instance's other node, if it has one."""

    role: Role
    other: Node | None = None


Effect = tuple[Part, Part]
"""What a node was, and what it becomes."""


def _parts(place: Place) -> dict[Node, Part]:
    primary = Node(place[0])
    if place[1] == NOWHERE:
        return {primary: Part(Role.PRIMARY)}
    secondary = Node(place[1])
    return {primary: Part(Role.PRIMARY, secondary), secondary: Part(Role.SECONDARY, primary)}


def _effects(source: Place, target: Place) -> dict[Node, Effect]:
    before, after = _parts(source), _parts(target)
    none = Part(Role.NONE)
    return {node: (before.get(node, none), after.get(node, none)) for node in Node if node in before or node in after}


_MIRRORED = (Node.P, Node.S)
_OF_MIRRORED: dict[MoveKind, dict[Node, Effect]] = {
    kind: _effects(_MIRRORED, steps(_MIRRORED, changes, (Node.T,))[-1]) for kind, changes in WAYS if kind != MoveKind.REPLACE_BOTH
}
EFFECTS: Mapping[MoveKind, Mapping[Node, Effect]] = {
    **_OF_MIRRORED,
    MoveKind.FAILOVER_TO_ANY: _effects((Node.P, NOWHERE), (Node.T, NOWHERE)),
}
"""The kinds with one target at most."""
MIRRORED_KINDS = (
    MoveKind.FAILOVER,
    MoveKind.REPLACE_SECONDARY,
    MoveKind.REPLACE_AND_FAILOVER,
    MoveKind.REPLACE_PRIMARY,
    MoveKind.FAILOVER_AND_REPLACE,
)
"""The kinds of mirrored instances, in the order in which hbal tries them."""
OTHER_KINDS = (MoveKind.FAILOVER_TO_ANY,)
KINDS = (*MIRRORED_KINDS, *OTHER_KINDS)


PRIMARY_AFTER: Mapping[MoveKind, Node] = {
    kind: next(node for node, (_was, becomes) in effects.items() if becomes.role == Role.PRIMARY) for kind, effects in EFFECTS.items()
}
NODE_LEFT: Mapping[MoveKind, Node | None] = {
    kind: next((node for node, (_was, becomes) in effects.items() if becomes.role == Role.NONE), None) for kind, effects in EFFECTS.items()
}
"""The node that an instance leaves; None where both stay its nodes."""
KEEPER: Mapping[MoveKind, tuple[Node, Part, Part]] = {
    kind: next((node, was, becomes) for node, (was, becomes) in EFFECTS[kind].items() if becomes.role == Role.SECONDARY)
    for kind in MIRRORED_KINDS
}
"""The secondary node afterwards, and what happens to it."""


def _distinct(kinds: tuple[MoveKind, ...]) -> tuple[list[tuple[Node, Part, Part]], dict[MoveKind, list[int]]]:
    """Return what happens to nodes by some kinds, each once, and the positions there of each kind."""
    all_of = {kind: [(node, *effect) for node, effect in EFFECTS[kind].items()] for kind in kinds}
    distinct = list(dict.fromkeys(effect for effects in all_of.values() for effect in effects))
    return distinct, {kind: [distinct.index(effect) for effect in effects] for kind, effects in all_of.items()}


_KINDS: tuple[tuple[MoveKind, ...], ...] = (MIRRORED_KINDS, OTHER_KINDS)
_DISTINCT = {kinds: _distinct(kinds) for kinds in _KINDS}


def combined(
    kinds: tuple[MoveKind, ...], at: Callable[[Node, Part, Part], Value], join: Callable[[Value, Value], Value]
) -> dict[MoveKind, Value]:
    """Return for each kind the values at its nodes joined to one; `kinds` are MIRRORED_KINDS or OTHER_KINDS."""
    distinct, positions = _DISTINCT[kinds]
    values = [at(*effect) for effect in distinct]
    return {kind: functools.reduce(join, [values[position] for position in own]) for kind, own in positions.items()}
