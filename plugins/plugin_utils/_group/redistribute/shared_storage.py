# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Groups on shared storage whose instances could all restart if they lay otherwise: moves inside, and few that leave.

    search = Search(state, group, accepts)
    search.with_moves_out(peers, most)

It gives places under which no node's failure strands anybody, with as few in other groups as possible, or None; `search.complete` says
whether all was tried. `accepts` may refuse places, such as those that no order of moves reaches. With `mirrored`, instances with mirrored
disks may also get other places in the group.

Whether everybody can restart is a packing problem for each node that may fail, so that what helps is found by trying:
sets of instances from the smallest, within a number of trials and an effort of proofs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from ..._common.highs import Effort
from ..._common.libraries import np
from ..cluster.changes import with_places
from ..cluster.model import MIRRORED_OUTSIDE
from ..cluster.moves import Place, can_move
from ..cluster.state import ClusterState
from ..metrics.health import Health, group_health, target_groups
from ..metrics.score import ScoreMode, Scorer
from ..place.places import places_for
from ..place.refusal import Refusal
from ..place.relocation import place_in

MOST_TRIED, MOST_TRIED_MIRRORED = 600, 2500
"""Arrangements of one group. Mirrored instances have a place for each pair of nodes, so that with them each place counts."""
EFFORT = 100_000


class Search:
    """Tries arrangements of one group until its trials or its proofs are used up."""

    def __init__(self, state: ClusterState, group: int, accepts: Callable[[dict[int, Place]], bool], *, mirrored: bool = False) -> None:
        self.complete = True
        self._state = state
        self._group = group
        self._accepts = accepts
        self._mirrored = mirrored
        self._left = MOST_TRIED_MIRRORED if mirrored else MOST_TRIED
        self._effort = Effort(EFFORT)
        models = state.facts.instances.models
        here = np.flatnonzero(np.isin(state.primary, state.group_nodes(group))).tolist()
        self._movable = [i for i in here if can_move(state, i)]
        self._inside = [i for i in self._movable if mirrored or models[i].disk_template in MIRRORED_OUTSIDE]

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
        staying = [instance for instance in self._inside if instance not in chosen]
        for inside in self._repacked(trial, staying):
            found = self._sent(trial, inside, chosen, peers, mode)
            if found is not None or self._spent():
                return found
        return None

    def _sent(
        self, trial: ClusterState, inside: dict[int, Place], chosen: Sequence[int], peers: Sequence[int], mode: ScoreMode
    ) -> dict[int, Place] | None:
        """Return places inside together with places in other groups for those that leave; None when these find none that are accepted."""
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
                self._left -= 1
                if self._accepts(sent):
                    return sent
            if self._spent():
                return None
        return None

    def _repacked(self, state: ClusterState, instances: Sequence[int]) -> Iterator[dict[int, Place]]:
        """Yield healthy arrangements, those that move fewest first."""
        for count in range(len(instances) + 1):
            for chosen in itertools.combinations(instances, count):
                for places in self._arrangements(state, chosen):
                    if self._health(with_places(state, places)).healthy:
                        yield places
                    if not self.complete:
                        return

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
        self._left -= self._mirrored
        if self._spent():
            return
        instance = chosen[0]
        home = state.place_of(instance)
        found = places_for(now, instance, now.group_nodes(self._group))
        for place in (found.at(row, column) for row, column in np.argwhere(found.fits).tolist()):
            if place != home:
                trial = now.copy()
                trial.place(instance, *place)
                yield from ({instance: place, **rest} for rest in self._placed(state, trial, chosen[1:]))

    def _health(self, trial: ClusterState) -> Health:
        self._left -= 1
        health = group_health(trial, self._group, self._effort)
        self._spent()
        return health

    def _spent(self) -> bool:
        if self._left <= 0 or self._effort.left <= 0:
            self.complete = False
        return not self.complete
