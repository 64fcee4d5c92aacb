# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of one instance put into a cluster until none fits: the state for it, one step, and what failed at the end.

    room = room_for(cluster, instance)                  # a state that knows one instance only, at position 0
    attempt = next(attempts(room, groups, options, scorer))
    commit(room, attempt.place)                          # the copy stays, and the next attempt may follow
    room = resized(room, smaller_instance)
    look_at(room, smaller_instance, groups, options)    # only whether any place takes a copy, or what fails

Steps are those of Ganeti's hspace: each copy goes where the score is best afterwards, among equals to the later node; or
in groups that are given away in parts to where the fewest possible allocations are lost.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, InstanceFacts, Integers, collect_facts
from ..cluster.model import Cluster, Instance
from ..cluster.moves import Place
from ..cluster.rules import with_cpus
from ..cluster.state import ClusterState
from ..metrics.limits import Limit
from ..metrics.policy import policy_failures
from ..metrics.score import ScoreMode, Scorer
from ..metrics.verdicts import EXACT, Rules
from ..place.placement import Strategy, costs_by, is_partitioned
from ..place.places import Places, places_for
from .pairs import PairSearch, can_search

_SIZES = ("models", "as_primary", "as_secondary", "memory", "disk", "reserves", "restarts", "spindles_known")
"""The fields of InstanceFacts that follow from an instance's sizes."""


_FEW = 16
"""Nodes of a group up to which all pairs are evaluated each time."""


@dataclass(frozen=True)
class CopyOptions:
    """How a copy's place is chosen. `rules` are the limits that are kept.

    With `whole_cluster` the score is that of all groups even if copies go to one, as when the others take no new instances.
    """

    rules: Rules = EXACT
    score: ScoreMode = ScoreMode.CAPACITY
    strategy: Strategy = Strategy.AUTO
    whole_cluster: bool = False


@dataclass(frozen=True)
class Attempt:
    """The best place of a copy, or None; then `failures` counts the places (nodes or pairs) at which each limit failed first."""

    place: Place | None
    failures: collections.Counter[Limit]


@dataclass(frozen=True)
class Look:
    """Whether any place takes a copy; if not, `failures` is as in Attempt."""

    fits: bool
    failures: collections.Counter[Limit]


@dataclass(frozen=True)
class _GroupRoom:
    """A group with its online nodes; `refused` is what its policy has against the size."""

    group: int
    online: Integers
    refused: Limit | None


def room_for(cluster: Cluster, instance: Instance) -> ClusterState:
    """Return the state of a cluster in which the only instance known is a new one, at position 0."""
    state = ClusterState.from_cluster(cluster, (instance,))
    room = state.copy()
    room.facts = dataclasses.replace(state.facts, instances=_only(state.facts.instances, len(cluster.instances)))
    room.primary, room.secondary = np.array([NOWHERE]), np.array([NOWHERE])
    return room


def resized(room: ClusterState, instance: Instance) -> ClusterState:
    """Return the same state with an instance of other sizes at position 0; template, storage and tags must be the same."""
    return _sized(room, instance).copy()


def look_at(room: ClusterState, instance: Instance, groups: Sequence[int], options: CopyOptions) -> Look:
    """Return whether a copy of another size would fit anywhere, or what fails; the size differs as for `resized`."""
    sized = _sized(room, instance)
    found = []
    failures: collections.Counter[Limit] = collections.Counter()
    for here in _group_rooms(sized, groups):
        fitting = places_for(sized, 0, here.online, options.rules) if here.refused is None else None
        if fitting is not None and fitting.fits.any():
            return Look(True, failures)
        found.append((here, fitting))
    return Look(False, _failures(sized, found))


def _sized(room: ClusterState, instance: Instance) -> ClusterState:
    """Return a state with an instance of other sizes at position 0, which shares all else."""
    sizes = collect_facts(Cluster((), (), ()), (instance,)).instances
    slots, own = with_cpus(room.facts.slots, room.facts.cluster, instance, room.facts.instances.exclusion[0])
    changed = dataclasses.replace(room.facts.instances, **{name: getattr(sizes, name) for name in _SIZES}, exclusion=(own,))
    counts = np.pad(room.tag_counts, ((0, 0), (0, len(slots.names) - len(room.facts.slots.names))))
    return dataclasses.replace(room, facts=dataclasses.replace(room.facts, instances=changed, slots=slots), tag_counts=counts)


def commit(room: ClusterState, place: Place) -> None:
    """Put a copy at a place for good."""
    room.place(0, *place)
    room.primary[0] = room.secondary[0] = NOWHERE


def attempts(room: ClusterState, groups: Sequence[int], options: CopyOptions, scorer: Scorer) -> Iterator[Attempt]:
    """Yield the best place of a copy in any of `groups`, or what failed, without end; `room` may get that copy in between, and no other."""
    rooms = _group_rooms(room, groups)
    quick = all(_is_quick(room, here, options) for here in rooms)
    searches = [PairSearch(room, here.online, options.rules, scorer) for here in rooms] if quick else []
    while True:
        pairs = [best for best in (search.best() for search in searches) if best is not None]
        if pairs:
            _cost, place = min(pairs, key=lambda best: (best[0], -best[1][0]))
            yield Attempt(place, collections.Counter())
            for search in searches:
                search.refresh(place)
            continue
        found = [(here, places_for(room, 0, here.online, options.rules) if here.refused is None else None) for here in rooms]
        places = [_best(room, here, fitting, options, scorer) for here, fitting in found if fitting is not None and fitting.fits.any()]
        yield Attempt(min(places)[2], collections.Counter()) if places else Attempt(None, _failures(room, found))


def rooms_that_take(room: ClusterState, groups: Sequence[int]) -> list[Integers]:
    """Return the online nodes of each group whose policy takes the size."""
    return [here.online for here in _group_rooms(room, groups) if here.refused is None]


def _group_rooms(room: ClusterState, groups: Sequence[int]) -> list[_GroupRoom]:
    rooms = []
    for group in groups:
        nodes = room.group_nodes(group)
        online = nodes[~room.offline[nodes]]
        rooms.append(_GroupRoom(group, online, _policy_limit(room, group, online)))
    return rooms


def _best(room: ClusterState, here: _GroupRoom, fitting: Places, options: CopyOptions, scorer: Scorer) -> tuple[float, int, Place]:
    """Return the best place of a group with its cost; among equals the last."""
    costs = costs_by(options.strategy, room, 0, here.group, fitting, scorer)
    costs = np.where(fitting.fits, costs, np.inf)
    rows, others = np.nonzero(costs == costs.min())
    row, column = rows[-1], others[-1]
    place = fitting.at(int(row), int(column))
    return float(costs[row, column]), -place[0], place


def _is_quick(room: ClusterState, here: _GroupRoom, options: CopyOptions) -> bool:
    """Return whether a group has enough pairs that evaluating only the promising ones pays."""
    is_mirrored = here.refused is None and bool(room.facts.instances.two_nodes[0]) and can_search(room, options.rules)
    return is_mirrored and len(here.online) > _FEW and not is_partitioned(room, here.group, options.strategy)


def _failures(room: ClusterState, found: Sequence[tuple[_GroupRoom, Places | None]]) -> collections.Counter[Limit]:
    """Return at how many places each limit fails first; a policy that refuses does so at all places."""
    failures: collections.Counter[Limit] = collections.Counter()
    for here, fitting in found:
        if fitting is not None:
            limits = fitting.limits()[fitting.primaries[:, None] != fitting.secondaries]
            counts = np.bincount(limits.ravel(), minlength=len(Limit))
            failures += collections.Counter({limit: int(counts[limit]) for limit in Limit if limit != Limit.NONE and counts[limit]})
        elif here.refused is not None:
            failures[here.refused] += len(here.online) * (len(here.online) - 1 if room.facts.instances.two_nodes[0] else 1)
    return failures


def _policy_limit(room: ClusterState, group: int, online: Integers) -> Limit | None:
    """Return the limit of a group's policy that fails first, in its first interval, or None."""
    model, policy = room.facts.instances.models[0], room.facts.cluster.groups[group].policy
    exclusive = bool(len(online)) and bool(room.facts.nodes.exclusive[online].all())
    if not policy_failures(model, policy, exclusive):
        return None
    first = policy_failures(model, dataclasses.replace(policy, intervals=policy.intervals[:1]), exclusive)
    return (first or policy_failures(model, policy, exclusive))[0].limit


def _only(facts: InstanceFacts, position: int) -> InstanceFacts:
    """Return the facts of one instance alone."""
    part = slice(position, position + 1)
    return InstanceFacts(
        **{name: value[:, part] if name in ("as_primary", "as_secondary") else value[part] for name, value in vars(facts).items()}
    )
