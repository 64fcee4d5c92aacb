# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Balancing a group: the placement with the best score for the data copied and the primaries moved on the way to it.

    result = balance(state, group, aims, seconds)
    result.state, result.order          # the placement, and the instances that moved, the most useful first

Single moves, always the best one, end where hbal ends: where all nodes carry equally many instances, and any move alone
would unbalance that. From there chains of up to three moves, each judged by what they achieve together, go on; an
exchange of two instances is such a chain (ejection chains, as in Lin and Kernighan's heuristic). What single moves and
chains are worth includes their price (placement_price.py), so that a disk is only copied when that is worth it.

No limit gets worse than it was: neither on any node nor, on shared storage, for any failure (shared_reserve.py).
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass

import numpy as np

from .balance_htools import candidates
from .candidate_limits import Bounds
from .candidate_moves import BestMoves, Lookout, MoveOptions
from .facts import NOWHERE, Integers
from .moves import Move
from .placement_price import Home, PlacementPrice, Tariff
from .score import ScoreMode, Scorer
from .shared_reserve import SharedReserve
from .state import ClusterState

_WATCHED = 48
"""Instances that are looked at again after each move, until what they promise is used up."""
_STARTS = 200
_DEPTH = 3
_ROUNDS = 12
_REPAIR_PRICE = 16.0
"""Points for a TiB at which only what is wrong is worth a copy: it is put right first, by the least data, while there is room."""
_DEARER = 4.0
"""How many times dearer data is at first, so that what can be had for little data is not had for more."""


@dataclass(frozen=True)
class Aims:
    """What is wanted; `min_gain` is the least by which score and price together must fall with each move."""

    score: ScoreMode = ScoreMode.HTOOLS
    tariff: Tariff = Tariff()
    min_gain: float = 1e-4
    moves: MoveOptions = MoveOptions()
    evacuation_only: bool = False


@dataclass(frozen=True)
class Balanced:
    """A placement, the instances that moved in the order in which they first did, all moves that led there, and if it was in time."""

    state: ClusterState
    order: tuple[int, ...]
    made: tuple[Move, ...]
    in_time: bool


def balance(state: ClusterState, group: int, aims: Aims, seconds: float | None = None) -> Balanced:
    """Return the best placement of a group's instances that was found, within so many seconds; `state` stays as it is."""
    search = _Search(state.copy(), group, aims, seconds)
    if len(search.instances):
        usual = aims.tariff.data
        for data in (max(_REPAIR_PRICE, usual), _DEARER * usual, usual):
            search.set_price(dataclasses.replace(aims.tariff, data=data))
            search.descend()
        for _round in range(_ROUNDS):
            if search.late() or not search.chain():
                break
            search.descend()
    moved = search.home.moved(search.state)
    first = dict.fromkeys(move.instance for move in search.made)
    return Balanced(search.state, tuple(i for i in first if moved[i]), tuple(search.made), not search.late())


class _Search:
    """A walk from placement to placement; `cost` is the score and the price of where it is."""

    def __init__(self, state: ClusterState, group: int, aims: Aims, seconds: float | None) -> None:
        scorer = Scorer(state, aims.score, state.group_nodes(group))
        self.state, self.home = state, Home.of(state)
        self.instances = candidates(state, group, aims.evacuation_only)
        self.made: list[Move] = []
        self._aims, self._tariff = aims, aims.tariff
        self._lookout = Lookout(state, scorer, Bounds.of_start(state), aims.moves)
        self._reserve = SharedReserve.of(state, group)
        self._until = None if seconds is None else time.monotonic() + seconds
        self.cost = scorer.score(state)

    def set_price(self, tariff: Tariff) -> None:
        """Go on with other prices from where the search is."""
        before = PlacementPrice.of(self.state, self.home, self._tariff).now
        self.cost += PlacementPrice.of(self.state, self.home, tariff).now - before
        self._tariff = tariff

    def late(self) -> bool:
        """Return whether the time is over."""
        return self._until is not None and time.monotonic() > self._until

    def descend(self) -> None:
        """Make single moves, the best first, as long as there are any worth their price."""
        least = self._aims.min_gain
        while not self.late():
            best = self._best(self.instances)
            order = best.order()
            promised = self.cost - float(best.cost[order[0]]) if len(order) else 0.0
            watched = best.instances[order[:_WATCHED]]
            made = self._make_first(best, least)
            if not made:
                return
            while made and not self.late():
                made = self._make_first(self._best(watched), max(least, promised / 2))

    def chain(self) -> bool:
        """Try chains from the least bad moves; return whether any of them was worth it."""
        best = self._best(self.instances)
        improved = False
        for row in best.order()[:_STARTS].tolist():
            if self.late():
                break
            # What the first look told is stale once a chain has been made.
            now, position = (self._best(best.instances[row : row + 1]), 0) if improved else (best, row)
            if np.isfinite(now.cost[position]) and self._follow(now.move(self.state, position), float(now.cost[position])):
                improved = True
        return improved

    def _follow(self, move: Move, cost: float) -> bool:
        """Return whether a chain that starts with a move leads to something better; if not, all is as before."""
        before = self.cost
        made = [self._go(move, cost)]
        while len(made) < _DEPTH:
            best = self._best(self._near(made))
            order = best.order()
            if not len(order):
                break
            made.append(self._go(best.move(self.state, int(order[0])), float(best.cost[order[0]])))
            if self.cost <= before - self._aims.min_gain * len(made) and self._reserve.holds(self.state):
                self.made += made
                return True
        for step in reversed(made):
            self._back(step, before)
        return False

    def _near(self, made: list[Move]) -> Integers:
        """Return the instances on nodes that moves have touched, without those that moved."""
        touched = np.zeros(len(self.state.offline) + 1, dtype=bool)
        touched[[node for move in made for node in (*move.source, *move.target)]] = True
        touched[NOWHERE] = False
        around = touched[self.state.primary[self.instances]] | touched[self.state.secondary[self.instances]]
        for move in made:
            around &= self.instances != move.instance
        return self.instances[around]

    def _make_first(self, best: BestMoves, least: float) -> bool:
        """Make the best move that strands nothing and gains at least `least`; return whether there is one."""
        before = self.cost
        for row in best.order().tolist():
            if before - best.cost[row] < least:
                return False
            move = self._go(best.move(self.state, row), float(best.cost[row]))
            if self._reserve.holds(self.state):
                self.made.append(move)
                return True
            self._back(move, before)
        return False

    def _go(self, move: Move, cost: float) -> Move:
        self.state.place(move.instance, *move.target)
        self.cost = cost
        return move

    def _back(self, move: Move, cost: float) -> None:
        self.state.place(move.instance, *move.source)
        self.cost = cost

    def _best(self, instances: Integers) -> BestMoves:
        price = PlacementPrice.of(self.state, self.home, self._tariff)
        view = self._lookout.view(self.state, self.cost - price.now)
        return self._lookout.best(view, instances, price)
