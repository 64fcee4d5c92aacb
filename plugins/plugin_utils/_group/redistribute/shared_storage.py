# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Groups on shared storage whose instances could all restart if they lay otherwise: moves inside, and few that leave.

    search = Search(state, group)
    search.with_moves_out(peers, most)

It gives places under which no node's failure strands anybody, with as few in other groups as possible, or None; `search.complete` says
whether all was tried.

Whether everybody can restart is a packing problem for each node that may fail, so that what helps is found by trying:
sets of instances from the smallest, within a number of trials and an effort of proofs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ..._common.highs import Effort
from ..._common.libraries import np
from ..cluster.arrays import NOWHERE
from ..cluster.changes import with_places
from ..cluster.model import MIRRORED_OUTSIDE
from ..cluster.moves import Place, can_move
from ..cluster.state import ClusterState
from ..metrics.health import Health, group_health, target_groups
from ..metrics.score import ScoreMode, Scorer
from ..place.places import places_for
from ..place.refusal import Refusal
from ..place.relocation import place_in

MOST_TRIED = 600
EFFORT = 100_000


class Search:
    """Tries arrangements of one group until its trials or its proofs are used up."""

    def __init__(self, state: ClusterState, group: int, tried: int = MOST_TRIED, effort: int = EFFORT) -> None:
        self.complete = True
        self._state = state
        self._group = group
        self._left = tried
        self._effort = Effort(effort)
        models = state.facts.instances.models
        here = np.flatnonzero(np.isin(state.primary, state.group_nodes(group))).tolist()
        self._movable = [i for i in here if can_move(state, i)]
        self._shared = [i for i in self._movable if models[i].disk_template in MIRRORED_OUTSIDE]

    def with_moves_out(self, peers: Sequence[int], most: int, mode: ScoreMode) -> dict[int, Place] | None:
        """Return new places under which the group is healthy and at most that many instances are in `peers`."""
        leaving = [i for i in self._movable if target_groups(self._state, i, tuple(peers))]
        for count in range(most + 1):
            for chosen in itertools.combinations(leaving, count):
                found = self._without(chosen, peers, mode)
                if found is not None:
                    return found
                if not self.complete:
                    return None
        return None

    def _without(self, chosen: Sequence[int], peers: Sequence[int], mode: ScoreMode) -> dict[int, Place] | None:
        trial = self._state.copy()
        for instance in chosen:
            trial.remove(instance)
        staying = [instance for instance in self._shared if instance not in chosen]
        inside = {} if self._health(trial).healthy else self._repacked(trial, staying)
        if inside is None:
            return None
        for order in itertools.permutations(chosen):
            now, sent = trial.copy(), dict(inside)
            for instance in order:
                answers = (
                    place_in(now, instance, self._state.place_of(instance), group, Scorer(now, mode))
                    for group in target_groups(self._state, instance, tuple(peers))
                )
                place = next((answer for answer in answers if not isinstance(answer, Refusal)), None)
                if place is None:
                    break
                now.place(instance, *place)
                sent[instance] = place
            else:
                return sent
            if self._spent():
                return None
        return None

    def _repacked(self, state: ClusterState, instances: Sequence[int]) -> dict[int, Place] | None:
        for count in range(1, len(instances) + 1):
            for chosen in itertools.combinations(instances, count):
                for places in self._arrangements(state, chosen):
                    if self._health(with_places(state, places)).healthy:
                        return places
                    if not self.complete:
                        return None
        return None

    def _arrangements(self, state: ClusterState, chosen: Sequence[int]) -> Iterator[dict[int, Place]]:
        """Yield every way to put all of `chosen` on other nodes of the group than theirs that keeps the limits."""
        lifted = state.copy()
        for instance in chosen:
            lifted.remove(instance)
        yield from self._placed(state, lifted, chosen)

    def _placed(self, state: ClusterState, now: ClusterState, chosen: Sequence[int]) -> Iterator[dict[int, Place]]:
        if not chosen:
            yield {}
            return
        instance = chosen[0]
        home = state.place_of(instance)
        found = places_for(now, instance, now.group_nodes(self._group))
        for node in found.primaries[found.fits[:, 0]].tolist():
            if node != home[0]:
                trial = now.copy()
                trial.place(instance, node)
                yield from ({instance: (node, NOWHERE), **rest} for rest in self._placed(state, trial, chosen[1:]))

    def _health(self, trial: ClusterState) -> Health:
        self._left -= 1
        health = group_health(trial, self._group, self._effort)
        self._spent()
        return health

    def _spent(self) -> bool:
        if self._left <= 0 or self._effort.left <= 0:
            self.complete = False
        return not self.complete
