# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Emptying nodes: new places for their instances inside the group, then in other groups, as one assignment problem.

    tasks = tasks_of_nodes(state, nodes, mode)             # or tasks_of_instances(state, instances, mode)
    result = evacuate(state, tasks, across, score)

Instances are first taken one by one, the most important first, each to where the fewest disks are copied and then the
score is best. When that leaves somebody out, an integer program places as many of the most important ones as can be:
running ones before others. A node is only avoided when it is itself to be emptied, not because some other instance in
the list has its mirror there.

Limits are those of limits.EXACT, and for instances on shared storage that no node's failure strands more memory than
before in a group that something goes to. An instance whose primary is down may, when nothing else is left, be started
where soft limits (N+1, CPUs, tags) break: that is what memory was kept for.
"""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE
from ..cluster.changes import after_moves, with_places
from ..cluster.moves import Move, Place, can_leave
from ..cluster.state import ClusterState
from ..metrics.limits import Bounds
from ..metrics.score import ScoreMode
from ..metrics.shared_redundancy import Reserves, holds, places_that_hold, reserves_of
from ..metrics.together import left_alone
from ..metrics.verdicts import EXACT, Rules
from ..place.assignment import assign
from ..place.placement import MOST_TRIED
from ..place.places import Choices, importances
from ..place.refusal import Reason, stranding
from ..plan.order import Guard, order
from .task import AcrossGroups, Scorers, Task, choices_of, places_in_groups

MOST_COMBINATIONS = 1000
"""Combinations that are tried; where there are more, each instance is offered its cheapest places only."""


def most_that_hold(state: ClusterState, offers: Sequence[Choices], reserves: Reserves, above: int, most: int) -> dict[int, Place]:
    """Return the places with the greatest importance in all, more than `above` and at most `most`, that break no limit or rule and hold.

    Among equals those that come first in their instances' offers; empty when there are none, or too many instances to try.
    """
    bounds = Bounds.of_start(state)
    wanted = [offer.instance for offer in offers]
    for chosen in _combinations(_shortened(offers), above, most):
        if left_alone(state, chosen, [instance for instance in wanted if instance not in chosen]):
            continue
        after = with_places(state, chosen)
        if bounds.holds(after, state.online()) and holds(reserves, after, chosen):
            return chosen
    return {}


def _shortened(offers: Sequence[Choices]) -> list[tuple[Choices, list[Place]]]:
    """Return so few places of each that all combinations can be tried; nothing when even one each is too much."""
    each = min(max(map(len, offers), default=0), MOST_COMBINATIONS)
    while each and math.prod(1 + min(len(offer), each) for offer in offers) > MOST_COMBINATIONS:
        each -= 1
    return [(offer, list(itertools.islice(offer, each))) for offer in offers] if each else []


def _combinations(offers: Sequence[tuple[Choices, list[Place]]], above: int, most: int) -> Iterator[dict[int, Place]]:
    """Yield choices of a place, or none, for each, the most important first."""
    found = []
    for choice in itertools.product(*([*range(len(places)), None] for _offer, places in offers)):
        taken = [(offer, places, position) for (offer, places), position in zip(offers, choice) if position is not None]
        importance = sum(offer.importance for offer, _places, _position in taken)
        if above < importance <= most:
            found.append((-importance, sum(position for _offer, _places, position in taken), taken))
    for _importance, _cost, taken in sorted(found, key=lambda one: one[:2]):
        yield {offer.instance: places[position] for offer, places, position in taken}


MOST_PLACES = 200_000
"""Places that the integer program may choose from; when there are more, each instance's best ones are offered."""
MOST_ATTEMPTS = 5
"""How often all are assigned again, without the places that would take what shared storage keeps for failures."""
_UNUSED = Reason(NOWHERE, "plan", 0.0, "there is a place for it, but what limits moves, or what they cost, keeps it where it is")
_NO_ORDER = Reason(NOWHERE, "order", 0.0, "there is a place, but no order of moves that has room for each of them")


@dataclass(frozen=True)
class Unplaced:
    """An instance that stays where it is, and why."""

    instance: int
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Evacuation:
    """Moves in an order in which they can be carried out; `relaxed` are those that break soft limits."""

    moves: tuple[Move, ...]
    unplaced: tuple[Unplaced, ...]
    relaxed: tuple[int, ...]


def evacuate(state: ClusterState, tasks: Sequence[Task], across: AcrossGroups, mode: ScoreMode) -> Evacuation:
    """Return moves that carry the tasks out, and for each instance that stays the reasons; `state` stays as it is."""
    tasks = sorted(tasks, key=lambda task: _rank(state, task))
    groups = range(len(state.facts.cluster.groups)) if across != AcrossGroups.NO else {state.group_of(task.instance) for task in tasks}
    leaving = sorted(frozenset().union(*(task.not_primary | task.not_secondary for task in tasks)))
    reserves = reserves_of(state, [task.instance for task in tasks], groups, leaving)
    scorers = Scorers(state, mode)
    movable = [task for task in tasks if can_leave(state, task.instance)]
    targets = _in_company(state, tasks, reserves, _one_by_one(state, movable, across, scorers, reserves))
    if len(targets) < len(movable):
        together = _together(state, movable, across, scorers, reserves)
        if _worth(state, tasks, together) > _worth(state, tasks, targets):
            targets = together
    relaxed = _relaxed(state, [task for task in tasks if task.instance not in targets], targets, across, scorers)
    ordered = _in_order(state, tasks, targets, relaxed, reserves)
    done = {move.instance for move in ordered}
    staying = [task for task in tasks if task.instance not in done]
    after = after_moves(state, ordered) if staying else state
    unplaced = []
    for task in staying:
        if task.instance in targets or task.instance in relaxed:
            unplaced.append(Unplaced(task.instance, (_NO_ORDER,)))
        else:
            unplaced.append(Unplaced(task.instance, reasons_to_stay(after, task, across, scorers, EXACT, reserves)))
    return Evacuation(ordered, tuple(unplaced), tuple(sorted(done & relaxed.keys())))


def _in_order(
    state: ClusterState, tasks: Sequence[Task], targets: dict[int, Place], relaxed: dict[int, Place], reserves: Reserves
) -> tuple[Move, ...]:
    """Return moves in order, without those that find no turn, and those after which N+1 or a rule breaks while the former stay."""
    ordered = order(state, targets | relaxed, Guard.at_every_move(state, relaxed=relaxed))
    blocked = ordered.blocked
    moved = {instance: place for instance, place in targets.items() if instance not in blocked}
    fewer = _in_company(state, tasks, reserves, places_that_hold(reserves, state, moved)) if blocked else moved
    return ordered.moves if len(fewer) == len(moved) else _in_order(state, tasks, fewer, relaxed, reserves)


def _rank(state: ClusterState, task: Task) -> tuple[int, bool, float]:
    """Return the key of importance: those whose turn is first, then running instances, then the largest."""
    model = state.facts.instances.models[task.instance]
    return model.turn, not model.uses_memory, -float(model.memory)


def _worth(state: ClusterState, tasks: Sequence[Task], targets: dict[int, Place]) -> int:
    importance = importances(state, [task.instance for task in tasks])
    return sum(importance[task.instance] for task in tasks if task.instance in targets)


def _one_by_one(
    state: ClusterState,
    tasks: Sequence[Task],
    across: AcrossGroups,
    scorers: Scorers,
    reserves: Reserves,
) -> dict[int, Place]:
    """Return places that are taken one after the other. What found none is tried again: a spread may have made room since."""
    now = state.copy()
    targets: dict[int, Place] = {}
    left = list(tasks)
    while left:
        staying = []
        for task in left:
            home = now.place_of(task.instance)
            for place in _most_tried_in_groups(state, choices_of(state, now, task, across, scorers, EXACT)):
                now.place(task.instance, *place)
                if holds(reserves, now, {task.instance: place}):
                    targets[task.instance] = place
                    break
                now.place(task.instance, *home)
            else:
                staying.append(task)
        if len(staying) == len(left) or not state.facts.cluster.rules:
            break
        left = staying
    return targets


def _most_tried_in_groups(state: ClusterState, places: Iterable[Place]) -> Iterator[Place]:
    """Yield the first MOST_TRIED places of each group, so that a large group does not keep out what is good in another."""
    tried: collections.Counter[int] = collections.Counter()
    group_of = state.facts.nodes.group
    for place in places:
        group = int(group_of[place[0]])
        tried[group] += 1
        if tried[group] <= MOST_TRIED:
            yield place


def _in_company(state: ClusterState, tasks: Sequence[Task], reserves: Reserves, targets: dict[int, Place]) -> dict[int, Place]:
    """Return the targets without instances that would leave a partner of an affinity rule behind."""
    alone = left_alone(state, targets, [task.instance for task in tasks if task.instance not in targets])
    if not alone:
        return targets
    fewer = {instance: place for instance, place in targets.items() if instance not in alone}
    return _in_company(state, tasks, reserves, places_that_hold(reserves, state, fewer))


def _together(
    state: ClusterState,
    tasks: Sequence[Task],
    across: AcrossGroups,
    scorers: Scorers,
    reserves: Reserves,
) -> dict[int, Place]:
    """Return the best assignment that leaves the reserves: places that would break them are forbidden, and all are assigned again."""
    best: dict[int, Place] = {}
    # The places that each task may take once all have left.
    lifted = state.copy()
    for task in tasks:
        lifted.remove(task.instance)
    importance = importances(state, [task.instance for task in tasks])
    offers = [choices_of(state, lifted, task, across, scorers, EXACT, importance[task.instance]) for task in tasks]
    forbidden: set[tuple[int, Place]] = set()
    most = 0
    for _attempt in range(MOST_ATTEMPTS):
        found = _at_once(state, offers, forbidden)
        most = max(most, _worth(state, tasks, found))
        kept = _in_company(state, tasks, reserves, places_that_hold(reserves, state, found))
        if _worth(state, tasks, kept) > _worth(state, tasks, best):
            best = kept
        if len(kept) == len(found):
            break
        forbidden |= found.items() - kept.items()
    worth = _worth(state, tasks, best)
    if worth == most:
        return best
    return most_that_hold(state, offers, reserves, worth, most) or best


def _at_once(state: ClusterState, offers: Sequence[Choices], forbidden: Collection[tuple[int, Place]]) -> dict[int, Place]:
    """Return the best places of all together."""
    lifted = state.copy()
    for offer in offers:
        lifted.remove(offer.instance)
    most = max(MOST_PLACES // len(offers), 1)
    wanted = [offer.without(place for instance, place in forbidden if instance == offer.instance).cheapest(most) for offer in offers]
    places, _proven = assign(state, lifted, wanted)
    return {offer.instance: place for offer, place in zip(offers, places) if place is not None}


def _relaxed(
    state: ClusterState,
    tasks: Sequence[Task],
    targets: dict[int, Place],
    across: AcrossGroups,
    scorers: Scorers,
) -> dict[int, Place]:
    """Return places for instances whose primary is down, with soft limits left aside."""
    down = [task for task in tasks if not state.answers(int(state.primary[task.instance]))]
    now = with_places(state, targets)
    found: dict[int, Place] = {}
    for task in down:
        place = next(iter(choices_of(state, now, task, across, scorers, EXACT.hard())), None)
        if place is not None:
            now.place(task.instance, *place)
            found[task.instance] = place
    return found


def reasons_to_stay(
    after: ClusterState, task: Task, across: AcrossGroups, scorers: Scorers, rules: Rules, reserves: Reserves
) -> tuple[Reason, ...]:
    """Return what keeps an instance from every node, once the others have moved."""
    model = after.facts.instances.models[task.instance]
    if task.instance in after.facts.staying:
        staying = after.facts.staying[task.instance]
        return (Reason(NOWHERE, staying.reason, 0.0, staying.says),)
    if not can_leave(after, task.instance):
        return (Reason(NOWHERE, "template", 0.0, model.why_it_stays),)
    primary, secondary = after.place_of(task.instance)
    if secondary != NOWHERE and not after.answers(primary) and (after.offline[secondary] or task.keeps_primary):
        return (Reason(primary, "offline", 0.0, "its primary is down, so its disks cannot be copied from there"),)
    found = places_in_groups(after, after, task, across, scorers, rules)
    refused = [reason for refusal in found.refusals for reason in refusal.reasons]
    reasons = tuple(dict.fromkeys([*(reason for places, _scorer in found.places for reason in places.reasons()), *refused]))
    for places, _scorer in found.places:
        rows, columns = np.nonzero(places.fits)
        for row, column in zip(rows[:MOST_TRIED].tolist(), columns[:MOST_TRIED].tolist()):
            reasons += _strands(after, task.instance, places.at(row, column), reserves)
    if not reasons and any(places.fits.any() for places, _scorer in found.places):
        return (_UNUSED,)
    return reasons or (Reason(NOWHERE, "nodes", 1.0, "there is no node that it may go to"),)


def _strands(after: ClusterState, instance: int, place: Place, reserves: Reserves) -> tuple[Reason, ...]:
    """Return which node's failure keeps an instance from a place, named at that place."""
    reserve = reserves.get(int(after.facts.nodes.group[place[0]]))
    trial = with_places(after, {instance: place})
    beyond = None if reserve is None else reserve.beyond(trial)
    if beyond is None:
        return ()
    stranded = stranding(after, *beyond)
    return (Reason(place[0], stranded.limit, stranded.short, stranded.says),)
