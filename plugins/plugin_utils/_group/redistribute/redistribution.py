# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes unhealthy groups healthy: by moves inside first, then by as few instances as possible in other groups of the partition.

    repairs, after = redistribute(state, groups, across=True, mode=ScoreMode.HTOOLS)

The seed design's "Redistribution" removes causes one by one until the group is healthy; here the causes are assigned
together, so that what can be cured inside leaves nobody, and else the fewest leave. Only groups that are healthy take
instances, and no limit of theirs, restarts on shared storage included, gets worse. Groups that moves inside can heal are
independent of each other and solved through `run`, any function like the built-in `map`.

Efforts are counts. Where a user limits the time, nothing more is tried for a group once it is over, and what was found is kept.
"""

from __future__ import annotations

import dataclasses
import functools
import time
import typing as t
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..._common.highs import Effort
from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Quantity
from ..cluster.changes import after_moves, carry_out, with_places
from ..cluster.moves import Move, Place, can_move
from ..cluster.state import ClusterState
from ..evacuate.evacuation import evacuate
from ..evacuate.task import AcrossGroups, EvacuationMode, tasks_of_nodes
from ..metrics.health import Cause, Health, causes, group_health, peer_groups, target_groups
from ..metrics.score import ScoreMode
from ..metrics.shared_redundancy import strands_more
from ..place.refusal import Refusal
from ..place.relocation import FEWEST_LEAVE, Offer, Relocation, place_elsewhere, refusals_in, relocate
from ..plan.order import Budget, Guard, Ordered, order, reserves_left
from .shared_storage import Search

Answer = t.TypeVar("Answer")
MOST_WIDENED = 30_000
"""Places up to which instances that cause nothing are asked to move, too, so that fewer leave the group."""
LEAVE_EFFORT, MOVE_EFFORT = 600_000, 100_000
"""How far the programs of all attempts may look for the fewest members moved out, and then each for the fewest moves."""
MOST_ATTEMPTS = 8
"""How many assignments are tried when moves to the places of one find no order."""
MOST_SEARCHED = 8
"""Instances on offline nodes up to which all ways are tried to place them so that those on shared storage could restart."""
MOST_MIXED = 6
"""Instances of a group on mirrored and on shared storage up to which other places of both are tried together."""
MOST_WELL = 1
"""Members without a violation that may leave an unhealthy group, on top of one for each with a violation; each more multiplies the sets."""
MOST_ASIDE = 1000
"""Places aside that are tried for instances which wait for each other."""
QUICK = Effort(0)
"""No proofs: what best fit cannot restart counts as stranded."""


class Run(t.Protocol):
    """Calls a function for each group, possibly side by side; the built-in `map` is one."""

    def __call__(self, work: Callable[[int], Answer], groups: Iterable[int], /) -> Iterable[Answer]:
        """Return the answers in the order of the groups."""


@dataclass(frozen=True)
class Missing:
    """An instance that should leave but finds no place: what each group that could take it has against it."""

    instance: int
    says: str
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class Repair:
    """What was done for a group. `moves` can be carried out in their order; `proven`: nobody leaves without need."""

    group: int
    before: Health
    causes: dict[int, Cause]
    moves: tuple[Move, ...]
    after: Health
    missing: tuple[Missing, ...]
    proven: bool
    in_time: bool = True
    """Whether all was tried that is to be tried."""


def redistribute(
    state: ClusterState,
    groups: Sequence[int],
    across: bool,
    mode: ScoreMode,
    run: Run = map,
    until: float | None = None,
) -> tuple[list[Repair], ClusterState]:
    """Return a repair for each ill one of `groups`, definitely ill ones first, and the state after all of them.

    `until` is when to end, in seconds as time.time gives them, which processes on other machines know, too.
    """
    health = {group: group_health(state, group) for group in range(len(state.facts.cluster.groups))}
    ill = sorted((group for group in groups if not health[group].healthy), key=lambda group: not health[group].offline)
    inside = dict(zip(ill, run(functools.partial(repair_inside, state, mode, until), ill)))
    after = state.copy()
    repairs = {}
    for group in ill:
        repair = inside[group]
        if not repair.after.healthy:
            healthy = tuple(other for other, found in health.items() if across and other != group and found.healthy)
            late = _is_over(until)
            repair = dataclasses.replace(repair, in_time=False) if late else _repair_across(after, repair, healthy, mode, until)
        carry_out(after, repair.moves)
        health[group] = repair.after
        repairs[group] = repair
    return [repairs[group] for group in ill], after


def _is_over(until: float | None) -> bool:
    return until is not None and time.time() >= until


def repair_inside(state: ClusterState, mode: ScoreMode, until: float | None, group: int) -> Repair:
    """Return the repair of a group by moves inside it, as far as they get."""
    before = group_health(state, group)
    reasons = causes(state, before)
    if _is_over(until):
        return Repair(group, before, reasons, (), before, (), proven=False, in_time=False)
    repair = _assigned(state, before, reasons, list(reasons), (), mode, until)
    if repair.after.healthy or _is_over(until):
        return repair
    evacuated = _repair(state, before, reasons, _evacuated(state, before, mode), proven=False)
    return min(repair, evacuated, key=lambda found: _worth(state, found))


def _repair_across(state: ClusterState, inside: Repair, healthy: tuple[int, ...], mode: ScoreMode, until: float | None) -> Repair:
    """Return the repair of a group with the help of `healthy` ones, or when that heals nothing what is missing for it."""
    peers = tuple(group for group in peer_groups(state, inside.group) if group in healthy)
    best = min([inside, *_together(state, inside, peers, mode, until)], key=lambda repair: _worth(state, repair))
    if not (best.after.healthy and best.proven):
        if _is_over(until):
            return dataclasses.replace(best, in_time=False)
        best = min(best, _one_by_one(state, inside, peers, mode), key=lambda repair: _worth(state, repair))
    if _is_over(until) and not (best.after.healthy and best.proven):
        return dataclasses.replace(best, in_time=False)
    few_are_dark = bool(inside.before.offline) and len(inside.causes) <= MOST_SEARCHED and _shares_storage(state, inside.group)
    if (inside.before.stranded or few_are_dark) and not (best.after.healthy and best.proven):
        settled = {move.instance: move.target for move in inside.moves}
        best = min(best, _searched(state, best, settled, peers, mode), key=lambda repair: _worth(state, repair))
    is_small = np.isin(state.primary, state.group_nodes(inside.group)).sum() <= MOST_MIXED
    if is_small and _is_mixed(state, inside.group) and not (best.after.healthy and best.proven):
        best = min(best, _searched(state, best, {}, peers, mode, mirrored=True), key=lambda repair: _worth(state, repair))
    if best.after.healthy:
        return best
    return dataclasses.replace(best, missing=_missing(state, best, peers, mode))


def _shares_storage(state: ClusterState, group: int) -> bool:
    """Return whether anything in the group would restart elsewhere when its node fails."""
    restarts = state.facts.instances.restarts
    return bool(np.isin(state.primary[restarts], state.group_nodes(group)).any())


def _is_mixed(state: ClusterState, group: int) -> bool:
    """Return whether a group has mirrored instances beside those that would restart elsewhere."""
    here = np.isin(state.primary, state.group_nodes(group))
    return bool((here & (state.secondary != NOWHERE)).any()) and _shares_storage(state, group)


def moved_out(state: ClusterState, repair: Repair) -> list[int]:
    """Return the instances that a repair moves to other groups."""
    group = state.facts.nodes.group
    return [move.instance for move in repair.moves if group[move.target[0]] != repair.group]


def _worth(state: ClusterState, repair: Repair) -> tuple[tuple[int, int, int], int, bool, int]:
    """Return what is compared between repairs, smaller is better."""
    return repair.after.illness, len(moved_out(state, repair)), not repair.proven, len(repair.moves)


def _together(state: ClusterState, inside: Repair, peers: tuple[int, ...], mode: ScoreMode, until: float | None) -> list[Repair]:
    """Return the assignment of the causes, and of all that lives in the group, if that is not too much."""
    before, reasons = inside.before, inside.causes
    here = np.flatnonzero(np.isin(state.primary, state.group_nodes(before.group))).tolist()
    others = [instance for instance in here if instance not in reasons and can_move(state, instance)]
    first = _assigned(state, before, reasons, list(reasons), peers, mode, until)
    if not others:
        return [first]
    width = sum(len(state.group_nodes(group)) for group in (before.group, *peers))
    if (len(reasons) + len(others)) * width**2 > MOST_WIDENED or _is_over(until):
        return [dataclasses.replace(first, proven=False)]
    return [dataclasses.replace(first, proven=False), _assigned(state, before, reasons, [*reasons, *others], peers, mode, until)]


def _assigned(
    state: ClusterState,
    before: Health,
    reasons: dict[int, Cause],
    instances: Sequence[int],
    peers: tuple[int, ...],
    mode: ScoreMode,
    until: float | None,
) -> Repair:
    """Return the best repair by places for `instances` under which the group keeps N+1 and which moves can reach in some order."""
    offline_nodes = frozenset(node for node in state.group_nodes(before.group).tolist() if state.offline[node])
    dead_ends: dict[int, frozenset[Place]] = dict.fromkeys(instances, frozenset())
    passing: dict[int, float] = {}
    effort = Effort(LEAVE_EFFORT)
    leaving: frozenset[int] = frozenset()
    repairs = []
    for _attempt in range(MOST_ATTEMPTS):
        offers = [
            Offer(
                instance=instance,
                groups=(before.group, *target_groups(state, instance, peers)),
                avoid=offline_nodes,
                may_stay=instance not in before.offline,
                not_at=dead_ends[instance],
            )
            for instance in instances
        ]
        allowed = _kept(state, before.group)
        found = _assign_fewest(state, offers, allowed, passing, mode, effort)
        blocked = _ordered(state, found.targets).blocked
        now_leaving = _leaving(state, found.targets)
        if blocked and now_leaving - leaving:
            # Where others left, places led nowhere that may be reached now.
            repeated = _settled(state, [dataclasses.replace(offer, not_at=frozenset()) for offer in offers], found, allowed, passing, mode)
            if not _ordered(state, repeated.targets).blocked:
                found, blocked = repeated, ()
        leaving = now_leaving
        repairs.append(_repair(state, before, reasons, found.targets, found.proven and not passing and not any(dead_ends.values())))
        if found.unplaced or not blocked or _is_over(until):
            break
        wider = _wider(state, blocked, passing)
        if wider == passing:
            dead_ends |= {instance: dead_ends[instance] | {found.targets[instance]} for instance in blocked}
        passing = wider
    best = min(repairs, key=lambda repair: _worth(state, repair))
    return dataclasses.replace(best, in_time=best.after.healthy or not _is_over(until))


def _assign_fewest(
    state: ClusterState, offers: Sequence[Offer], allowed: ClusterState, passing: dict[int, float], mode: ScoreMode, effort: Effort
) -> Relocation:
    """Return places with the fewest members moved out, which is proven, and then with few moves, searched with little effort."""
    if all(offer.groups == (state.group_of(offer.instance),) for offer in offers):
        inside = relocate(state, offers, allowed, mode, Effort(MOVE_EFFORT), passing)
        if not inside.unplaced:
            # Nobody can leave, so that there is nothing to prove.
            return dataclasses.replace(inside, proven=True)
    first = relocate(state, offers, allowed, mode, effort, passing, FEWEST_LEAVE)
    if first.unplaced:
        return first
    return _settled(state, offers, first, allowed, passing, mode)


def _settled(
    state: ClusterState, offers: Sequence[Offer], first: Relocation, allowed: ClusterState, passing: dict[int, float], mode: ScoreMode
) -> Relocation:
    """Return places with few moves for the instances that leave in `first`, in the same groups; `first` if that places fewer."""
    leaving = _leaving(state, first.targets)
    group = state.facts.nodes.group
    fixed = []
    for offer in offers:
        leaves = offer.instance in leaving
        groups = (int(group[first.targets[offer.instance][0]]),) if leaves else (state.group_of(offer.instance),)
        fixed.append(dataclasses.replace(offer, groups=groups, may_stay=offer.may_stay and not leaves))
    second = relocate(state, fixed, allowed, mode, Effort(MOVE_EFFORT), passing)
    return first if len(second.unplaced) > len(first.unplaced) else dataclasses.replace(second, proven=first.proven)


def _leaving(state: ClusterState, targets: Mapping[int, Place]) -> frozenset[int]:
    """Return the instances whose targets are in other groups."""
    group = state.facts.nodes.group
    return frozenset(instance for instance, place in targets.items() if group[place[0]] != state.group_of(instance))


def _wider(state: ClusterState, blocked: Sequence[int], passing: dict[int, float]) -> dict[int, float]:
    """Return `passing` with room on the secondaries of blocked instances whose primary is down: there is no other way for them."""
    wider = dict(passing)
    for instance in blocked:
        primary, secondary = state.place_of(instance)
        if secondary != NOWHERE and not state.answers(primary):
            wider[secondary] = max(wider.get(secondary, 0.0), float(state.facts.instances.memory[instance]))
    return wider


def _kept(state: ClusterState, group: int) -> ClusterState:
    """Return a state in which every node of a group has the memory that it keeps: what an assignment is to reach there."""
    kept = state.copy()
    nodes = state.group_nodes(group)
    kept.reserved[nodes] = 0.0
    kept.quantities[Quantity.MEMORY, nodes] = np.maximum(kept.quantities[Quantity.MEMORY, nodes], 0.0)
    return kept


def _repair(state: ClusterState, before: Health, reasons: dict[int, Cause], targets: dict[int, Place], proven: bool) -> Repair:
    """Return a repair by what can be ordered of `targets`; none when another group would strand more than before."""
    found = _ordered(state, targets)
    moves = found.moves
    after = after_moves(state, moves)
    # Whether another group strands more than before: instances on shared storage that could not restart.
    changed = set(np.flatnonzero((state.primary != after.primary) | (state.secondary != after.secondary)).tolist())
    groups = {after.group_of(instance) for instance in changed} - {before.group}
    if any(strands_more(state, after, other) for other in groups):
        moves, after, proven = (), state, False
    return Repair(before.group, before, reasons, moves, group_health(after, before.group), (), proven and not found.blocked)


def _ordered(state: ClusterState, targets: Mapping[int, Place]) -> Ordered:
    """Return moves to the targets that keep what shared storage has for failures in the groups that they leave."""
    return order(state, targets, Guard.at_every_move(state, reserves_left(state, targets)), Budget(trials=MOST_ASIDE))


def _evacuated(state: ClusterState, before: Health, mode: ScoreMode) -> dict[int, Place]:
    """Return places for what is on the group's offline nodes, as many as find one, with N+1 left as it is."""
    offline_nodes = [node for node in state.group_nodes(before.group).tolist() if state.offline[node]]
    found = evacuate(state, tasks_of_nodes(state, offline_nodes, EvacuationMode.ALL), AcrossGroups.NO, mode) if offline_nodes else None
    return {} if found is None else {move.instance: move.target for move in found.moves if move.instance not in found.relaxed}


def _one_by_one(state: ClusterState, inside: Repair, peers: tuple[int, ...], mode: ScoreMode) -> Repair:
    """Return a repair that sends away, after moves inside, the most helpful instances until the group is healthy; none in vain."""
    start = after_moves(state, inside.moves)
    settled = {move.instance: move.target for move in inside.moves}
    sent: dict[int, Place] = {}
    now, health = start, group_health(start, inside.group, QUICK)
    while not health.healthy:
        step = _best_step(now, health, peers, mode)
        if step is None:
            break
        instance, place = step
        sent[instance] = place
        now = with_places(start, sent)
        health = group_health(now, inside.group, QUICK)
    return _repair(state, inside.before, inside.causes, settled | _needed(start, sent, health), proven=False)


def _searched(
    state: ClusterState, best: Repair, settled: dict[int, Place], peers: tuple[int, ...], mode: ScoreMode, *, mirrored: bool = False
) -> Repair:
    """Return a repair with fewer members moved out than `best`, or `best`, which is then proven when everything smaller was tried."""
    search = Search(with_places(state, settled), best.group, lambda found: not _ordered(state, settled | found).blocked, mirrored=mirrored)
    most = len(moved_out(state, best)) - 1 if best.after.healthy else len(best.causes) + MOST_WELL
    found = search.with_moves_out(peers, most, mode)
    exact = search.complete and not settled and (mirrored or not _is_mixed(state, best.group))
    if found is None:
        return dataclasses.replace(best, proven=best.proven or (exact and best.after.healthy))
    return _repair(state, best.before, best.causes, settled | found, proven=exact)


def _best_step(now: ClusterState, health: Health, peers: tuple[int, ...], mode: ScoreMode) -> tuple[int, Place] | None:
    """Return the instance whose move out removes most violations of the group, with its target; None when no move out helps."""
    best: tuple[tuple[tuple[int, int, int], float], int, Place] | None = None
    for instance in causes(now, health):
        if not can_move(now, instance):
            continue
        home = now.place_of(instance)
        with now.lifted(instance):
            illness = group_health(now, health.group, QUICK).illness
            cost = (illness, float(now.facts.instances.disk[instance]))
            if illness >= health.illness or (best is not None and cost >= best[0]):
                continue
            place = place_elsewhere(now, instance, home, peers, mode)
        if place is not None:
            best = cost, instance, place
    return None if best is None else (best[1], best[2])


def _needed(start: ClusterState, sent: dict[int, Place], reached: Health) -> dict[int, Place]:
    """Return `sent` without instances that can stay while the group's health stays at `reached`."""
    for instance in reversed(list(sent)):
        fewer = {other: place for other, place in sent.items() if other != instance}
        if group_health(with_places(start, fewer), reached.group, QUICK).illness <= reached.illness:
            sent = fewer
    return sent


def _missing(state: ClusterState, repair: Repair, peers: tuple[int, ...], mode: ScoreMode) -> tuple[Missing, ...]:
    """Return for the remaining causes why no group takes them now: for the instances that would help by leaving alone, if there are any."""
    now = after_moves(state, repair.moves)
    remaining = causes(now, repair.after)
    helping = [instance for instance, cause in remaining.items() if _helps(now, repair, instance, cause)]
    missing = []
    for instance in helping or remaining:
        if not can_move(now, instance):
            missing.append(Missing(instance, "its disks cannot be moved to another node"))
            continue
        refusals = refusals_in(now, instance, peers, mode)
        alone = "no other healthy group shares its storage" if not peers else ""
        open_door = "a group has room for it alone" if len(refusals) < len(peers) else "no group has room for it"
        missing.append(Missing(instance, alone or open_door, refusals))
    return tuple(missing)


def _helps(now: ClusterState, repair: Repair, instance: int, cause: Cause) -> bool:
    """Return whether the group has fewer violations without an instance; true for one that cannot move or whose node is offline."""
    if cause == Cause.OFFLINE or not can_move(now, instance):
        return True
    with now.lifted(instance):
        return group_health(now, repair.group, QUICK).illness < repair.after.illness
