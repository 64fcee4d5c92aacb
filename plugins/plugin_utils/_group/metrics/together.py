# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sets of instances that rules of affinity want on one node: nobody of them moves without the others."""

from __future__ import annotations

from collections.abc import Collection

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Integers
from ..cluster.state import ClusterState


def sets_together(state: ClusterState, instances: Integers) -> tuple[Integers, ...]:
    """Return the sets whose members all are among `instances`; rules that have an instance in common make one set."""
    if not state.facts.slots.together.any():
        return ()
    able = frozenset(instances.tolist())
    found = (frozenset(members) for members in _sets(state))
    return tuple(np.array(sorted(members)) for members in found if members <= able)


def torn(state: ClusterState, moving: Collection[int], staying: Collection[int]) -> frozenset[int]:
    """Return those of the moving that are to be together with one of those that stay against their will."""
    if not staying or not state.facts.slots.together.any():
        return frozenset()
    left, going = frozenset(staying), frozenset(moving)
    return frozenset(member for members in _sets(state) if left & members for member in members & going)


def left_alone(state: ClusterState, moving: Collection[int], staying: Collection[int]) -> frozenset[int]:
    """Return those of the moving that would leave one that stays on their node, which answers, though a rule wants them together.

    That they are up is more than that they are together, so all may leave a node that is down.
    """
    kept = frozenset(instance for instance in staying if state.answers(int(state.primary[instance])))
    going = torn(state, moving, kept)
    return frozenset(instance for members in _sets(state) for instance in members & going if _is_with(state, instance, members & kept))


def _is_with(state: ClusterState, instance: int, others: Collection[int]) -> bool:
    return int(state.primary[instance]) in {int(state.primary[other]) for other in others}


def _sets(state: ClusterState) -> list[frozenset[int]]:
    """Return the sets of all instances that are somewhere."""
    together = state.facts.slots.together
    found: list[frozenset[int]] = []
    for slot in np.flatnonzero(together).tolist():
        members = frozenset(i for i in np.flatnonzero(state.primary != NOWHERE).tolist() if slot in state.facts.instances.exclusion[i])
        common = [other for other in found if other & members]
        found = [other for other in found if not other & members] + [members.union(*common)]
    return sorted((members for members in found if members), key=min)
