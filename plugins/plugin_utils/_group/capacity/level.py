# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of an instance that each take one node, put so that as much as can be may restart elsewhere when a node fails.

    places = level(room, groups, options, most)      # the room gets the copies

Where a copy takes nothing but what its own node has, the order of copies decides nothing about how many fit, so that no score is needed.
It decides for which part of them there is room elsewhere when a node fails. The largest instance that would have to restart needs a hole
of its size, so that copies first take all room outside such holes, and then hole after hole, where the most are.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._common.libraries import np
from ..cluster.arrays import ANYWHERE, NOWHERE, Booleans, Floats, Quantity
from ..cluster.moves import Place
from ..cluster.state import ClusterState
from ..place.places import places_for
from .copies import CopyOptions, commit, rooms_that_take


def can_level(room: ClusterState) -> bool:
    """Return whether copies of the room's instance take one node each, and nothing that nodes share but a pool."""
    facts = room.facts.instances
    return not facts.two_nodes[0] and not facts.exclusion[0]


def level(room: ClusterState, groups: Sequence[int], options: CopyOptions, most: int, hole: float) -> list[Place]:
    """Put at most `most` copies into `room`, as many as fit, and return their places; `hole` is the MiB of the largest that restarts."""
    facts, places = room.facts.instances, list[Place]()
    nodes = np.concatenate([np.zeros(0, dtype=np.int64), *rooms_that_take(room, groups)])
    pool = int(facts.pool[0])
    shared = pool != ANYWHERE and bool(room.facts.pool_shared[pool])
    memory = max(float(facts.memory[0]), 1.0)
    while len(nodes) and len(places) < most:
        nodes = nodes[places_for(room, 0, nodes, options.rules).fits.any(axis=1)]
        ready = nodes[_ready(room.quantities[Quantity.MEMORY, nodes], memory, max(hole, memory))]
        # What is left of a pool that nodes share is known only after each copy.
        for node in ready[: 1 if shared else most - len(places)].tolist():
            commit(room, (node, NOWHERE))
            places.append((node, NOWHERE))
    return places


def _ready(free: Floats, memory: float, hole: float) -> Booleans | slice:
    """Return which nodes take the next copy, by their free memory: one each."""
    holes = np.floor(free / hole)
    alongside: Booleans = free - holes * hole >= memory
    if alongside.any() or not len(free):
        return alongside
    if holes.max() > 1:
        fullest: Booleans = holes == holes.max()
        return fullest
    return slice(int(free.argmax()), int(free.argmax()) + 1)
