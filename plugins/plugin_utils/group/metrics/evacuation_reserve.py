# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""N+1 on shared storage while nodes are emptied: asked of the groups that instances go to, and only that nothing get worse.

reserves = reserves_of(state, instances, groups)
holds(reserves, state_after, {instance: place, ...})
places_that_hold(reserves, state, {instance: place, ...})
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..cluster.moves import Place
from ..cluster.state import ClusterState
from .shared_redundancy import SharedReserve

Reserves = Mapping[int, SharedReserve]
"""What must stay so, by group; groups in which nothing restarts elsewhere have none."""


def reserves_of(state: ClusterState, instances: Sequence[int], groups: Iterable[int], leaving: Sequence[int]) -> Reserves:
    """Return the reserves of groups that any of the instances may go to; the nodes they leave may fail as they like."""
    arriving = np.array([instance for instance in instances if state.facts.instances.restarts[instance]], dtype=np.int64)
    found = {}
    for group in groups:
        reserve = SharedReserve.of(state, group)
        allowed = reserve.allowed.copy()
        allowed[leaving] = np.inf
        found[group] = dataclasses.replace(reserve, allowed=allowed, instances=np.union1d(reserve.instances, arriving))
    return {group: reserve for group, reserve in found.items() if len(reserve.instances)}


def holds(reserves: Reserves, state: ClusterState, targets: Mapping[int, Place]) -> bool:
    """Return whether in no group that the targets are in a node's failure strands more than it may."""
    groups = {int(state.facts.nodes.group[primary]) for primary, _secondary in targets.values()}
    return all(reserves[group].holds(state) for group in groups & reserves.keys())


def places_that_hold(reserves: Reserves, state: ClusterState, targets: Mapping[int, Place]) -> dict[int, Place]:
    """Return the targets if they hold together, else, in their order, those that hold with the ones before them."""
    together = state.copy()
    for instance, place in targets.items():
        together.place(instance, *place)
    if holds(reserves, together, targets):
        return dict(targets)
    now = state.copy()
    kept: dict[int, Place] = {}
    for instance, place in targets.items():
        home = int(now.primary[instance]), int(now.secondary[instance])
        now.place(instance, *place)
        if holds(reserves, now, {instance: place}):
            kept[instance] = place
        else:
            now.place(instance, *home)
    return kept
