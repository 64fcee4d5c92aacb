# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Balancing a group: the placement with the best score for the data copied and the primaries moved on the way to it.

    result = balance(state, group, options, seconds)
    result.state, result.order          # the placement, and the instances that moved, the most useful first

Single moves, always about the best one, end where hbal ends: where all nodes carry equally many instances, and any move
alone would unbalance that. From there exchanges of two instances go on (neighbourhood.exchanges), and chains of up to three moves,
each judged by what they achieve together (ejection chains, as in Lin and Kernighan's heuristic). What all of them are
worth includes their price (neighbourhood.price), so that a disk is only copied when that is worth it.

First things come first: instances that are down because their node is, then limits that are broken now, nodes that are to be emptied
and N+1 of mirrored instances, then N+1 on shared storage, then the score. No limit gets worse than it was, neither on any node nor, on
shared storage, for any failure (metrics.shared_redundancy), but for what comes before it: what is down is started where soft limits break
when there is no other way, and N+1 on shared storage may get worse for all of them, if that is not to be kept (`Redundancy`): where a
search that does not look at it gets further with the first things, its moves that help are made, and the search goes on from there.

In small groups where instances stay down, or N+1 on shared storage is in the way, other ways are tried, too: other prices, other
instances first, and hbal's moves as a start. What small groups end at is searched for chains more widely (beam).
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence

from ..cluster.moves import Move, MoveKind
from ..cluster.state import ClusterState
from ..metrics.limits import Bounds
from .beam import refine_widely
from .chains import refine
from .first_things import empty, mend, mend_at_any_rate, rescue
from .hbal import HbalOptions, steps_like_hbal
from .model import Balanced, BalanceOptions, Redundancy
from .sets import move_sets
from .walk import FirstThings, Walk
from .watch import Watch

_REPAIR_PRICE = 16.0
"""Points for a TiB at which only what is wrong is worth a copy: it is put right first, by the least data, while there is room."""
_OTHER_PRICES: tuple[tuple[float, Callable[[float], float]], ...] = ((64.0, float.__neg__), (4.0, float.__pos__))
"""The same for further tries, with the largest or the smallest instances brought up first: where room is scarce, that decides which
stays on a node that is down."""
_DEARER = 4.0
"""How many times dearer data is at first, so that what can be had for little data is not had for more."""
_LEAST_STEP = 0.01
"""Points for a TiB below which no further price is tried on the way down to one of nothing."""


def balance(state: ClusterState, group: int, options: BalanceOptions, seconds: float | None = None, watch: Watch | None = None) -> Balanced:
    """Return the best placement of a group's instances that was found within `seconds`; `state` is not changed."""
    until = None if seconds is None else time.monotonic() + seconds
    search = _best_found(state, group, options, until, watch)
    if options.redundancy == Redundancy.PRICE and search.reserve is not None and any(search.first_things()) and not search.late():
        search = min(search, _searched_at_any_rate(state, group, options, until, watch, search), key=lambda one: one.rank())
    moved = search.home.moved(search.state)
    met = dict.fromkeys(move.instance for move in search.made)
    first_up = sorted((i for i in met if moved[i]), key=lambda instance: not state.marked_offline[state.primary[instance]])
    refused = {instance: why for instance, why in search.refused.items() if not moved[instance]}
    return Balanced(search.state, search.reserve, tuple(first_up), tuple(search.made), not search.late(), refused)


def _best_found(state: ClusterState, group: int, options: BalanceOptions, until: float | None, watch: Watch | None) -> Walk:
    """Return the best search of those that start by several prices of data and, in small groups, in other ways."""
    usual = options.prices.data
    search = _searched(state, group, options, until, watch, (max(_REPAIR_PRICE, usual), _DEARER * usual, usual))
    for price, first in _OTHER_PRICES:
        if search.is_large() or search.late() or not (search.leaves_behind() or search.is_hindered()):
            break
        # Prices of data, in points for a TiB, from one down to the usual one, each _DEARER times the next.
        steps = itertools.takewhile(lambda step: step > max(usual, _LEAST_STEP), (price / _DEARER**number for number in itertools.count()))
        search = min(search, _searched(state, group, options, until, watch, (*steps, usual), first), key=lambda one: one.rank())
    stuck = search.is_small() and (search.leaves_behind() or search.is_hindered())
    if stuck and not (search.late() or search.sets or options.prices.limited):
        search = _better(_searched_from_hbal(state, group, options, until, watch), search)
    if search.is_small() and not (search.late() or search.sets):
        search = _better(_searched_like_hbal(state, group, options, until, watch), search)
    if search.is_small():
        refine_widely(search)
    return search


def _searched(
    state: ClusterState,
    group: int,
    options: BalanceOptions,
    until: float | None,
    watch: Watch | None,
    prices: Sequence[float],
    rescue_first: Callable[[float], float] | None = None,
) -> Walk:
    """Return a search that has gone through prices of data to its end, or to that of the time.

    Instances that are down come up during the search and the rest of them at its end, or all of them first: those with the least
    of a function of their memory before the others.
    """
    search = Walk(state.copy(), group, options, until, watch)
    if not len(search.instances):
        return search
    search.set_prices(dataclasses.replace(options.prices, data=prices[0]))
    if rescue_first is not None:
        rescue(search, rescue_first)
    mend(search)
    for data in prices:
        search.set_prices(dataclasses.replace(options.prices, data=data))
        search.descend_to_local_optimum()
        move_sets(search)
    return _finished(search)


def _finished(search: Walk) -> Walk:
    """Return a search that has gone on to its end."""
    refine(search)
    search.descend()
    if rescue(search, float.__neg__) | empty(search) | mend_at_any_rate(search):
        search.descend_to_local_optimum()
        refine(search)
    return search


def _searched_from_hbal(state: ClusterState, group: int, options: BalanceOptions, until: float | None, watch: Watch | None) -> Walk:
    """Return a search that goes on from where hbal's moves of instances on shared storage lead, without those that break a limit."""
    search = Walk(state.copy(), group, options, until, watch)
    search.keeps_redundancy = options.redundancy == Redundancy.KEEP
    bounds = Bounds.of_start(state)
    for step in steps_like_hbal(state.copy(), group, HbalOptions(options.moves, options.evacuation_only)):
        if search.late():
            break
        if step.move.kind == MoveKind.FAILOVER_TO_ANY:
            search.try_move(step.move, bounds)
    search.keeps_redundancy = search.reserve is not None
    search.take_as_given()
    search.descend_to_local_optimum()
    return _finished(search)


def _searched_like_hbal(state: ClusterState, group: int, options: BalanceOptions, until: float | None, watch: Watch | None) -> Walk:
    """Return a search that goes on from those of hbal's moves that keep all limits; where few moves decide, its way may be the better."""
    search = Walk(state.copy(), group, options, until, watch)
    for step in steps_like_hbal(state.copy(), group, HbalOptions(options.moves, options.evacuation_only, options.prices.most_moves)):
        if search.late():
            break
        search.make_again(step.move)
    mend(search)
    search.descend_to_local_optimum()
    return _finished(search)


def _searched_at_any_rate(
    state: ClusterState, group: int, options: BalanceOptions, until: float | None, watch: Watch | None, usual: Walk
) -> Walk:
    """Return a search that goes on from where one leads that does not look at N+1 on shared storage, if that puts more right.

    Of its moves those are made that strand nothing or put something right, or all of them where these do not do as much.
    """
    freely = _best_found(state, group, dataclasses.replace(options, redundancy=Redundancy.OFF), until, watch)
    aim = freely.first_things()
    if aim >= usual.first_things():
        return usual
    search = _made_again(state, group, options, until, watch, freely.made, aim, choosy=True)
    if search.first_things() > aim:
        search = _made_again(state, group, options, until, watch, freely.made, aim, choosy=False)
    if search.first_things() > aim:
        # Some of its moves break soft limits for what comes before them.
        return freely
    search.take_as_given()
    number, cost, flags = len(search.made), search.cost, search.state.fails_n1.copy()
    search.descend_to_local_optimum()
    _finished(search)
    if search.first_things() > aim:
        search.back(search.made[number:], cost, flags)
        del search.made[number:]
    if search.is_small():
        refine_widely(search)
    return search


def _made_again(
    state: ClusterState,
    group: int,
    options: BalanceOptions,
    until: float | None,
    watch: Watch | None,
    moves: Sequence[Move],
    aim: FirstThings,
    *,
    choosy: bool,
) -> Walk:
    """Return a search that has made moves again until as much is right as is aimed at; a choosy one leaves out what strands in vain."""
    search = Walk(state.copy(), group, options, until, watch)
    search.set_prices(options.prices)
    bounds = Bounds.of_start(state)
    for move in moves:
        before = search.first_things()
        if before <= aim:
            break
        search.keeps_redundancy = choosy
        if search.try_move(move, bounds) or not choosy:
            continue
        search.keeps_redundancy = False
        flags, cost = search.state.fails_n1.copy(), search.cost
        if search.try_move(move, bounds) and search.first_things() >= before:
            search.back([search.made.pop()], cost, flags)
    search.keeps_redundancy = True
    return search


def _better(one: Walk, usual: Walk) -> Walk:
    """Return one search if it is better than the usual one: for a better score alone N+1 on shared storage gets no worse."""
    if one.first_things() < usual.first_things():
        return one
    return one if one.rank() < usual.rank() and one.stranded() <= usual.stranded() else usual
