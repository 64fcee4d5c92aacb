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

No limit gets worse than it was: neither on any node nor, on shared storage, for any failure (metrics.shared_redundancy).
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...common.libraries import np
from ..cluster.arrays import NOWHERE, Booleans, Floats, Integers
from ..cluster.moves import Move, MoveKind, make_move
from ..cluster.state import ClusterState
from ..metrics.score import ScoreMode, Scorer
from ..metrics.shared_redundancy import SharedReserve
from ..metrics.together import sets_together
from ..neighbourhood.exchanges import ExchangeEvaluator, arrivals
from ..neighbourhood.limits import MoveRules
from ..neighbourhood.moves import BestMoves, Evaluation, MoveEvaluator, MoveOptions
from ..neighbourhood.price import Home, PlacementPrice, Prices
from .hbal import candidates


@dataclass(frozen=True)
class MoveQueue:
    """What the best move of each instance gained when it was looked at last; changed in place."""

    gains: Floats
    """[I]: -inf for one that has no move or is not to be looked at."""
    targets: Integers
    """[I]: where that move went, or NOWHERE."""

    @classmethod
    def of(cls, best: BestMoves, cost: float, instances: int) -> MoveQueue:
        """Return the queue of what was found from a placement of that cost, in a cluster with so many instances."""
        queue = cls(np.full(instances, -np.inf), np.full(instances, NOWHERE))
        queue.tell(best, cost)
        return queue

    @property
    def promise(self) -> float:
        """Return the most that any move promises; -inf without any."""
        return float(self.gains.max(initial=-np.inf))

    def next(self, least: float, most: int) -> Integers:
        """Return the instances that promise most, `most` at most, in their order, without those that promise less than `least`."""
        size = len(self.gains)
        first = np.argpartition(-self.gains, most)[:most] if most < size else np.arange(size)
        worthy: Integers = np.sort(first[self.gains[first] >= least])
        return worthy

    def tell(self, best: BestMoves, cost: float) -> None:
        """Take down what was found from a placement of that cost."""
        self.gains[best.instances] = cost - best.cost
        self.targets[best.instances] = best.target

    def drop(self, instances: Integers | int) -> None:
        """Do not look at instances any more."""
        self.gains[instances] = -np.inf


_TOGETHER = 16
"""Instances that are looked at again for the next move: those that promised most."""
_FEW = 96
"""Nodes that are all looked at each time."""
_INVITING = 64
"""Of more nodes, those that are looked at each time; all are in the end."""
_LITTLE = 0.01
"""What part of all that it has brought a repetition must bring to be worth another."""
_LITTLE_EVERYWHERE = 0.1
"""The same for looks at all nodes of large groups, which are dear."""
_ABREAST = 100
"""Instances whose exchanges are looked at together."""
_PARTNERS = 2000
"""With how many an instance may exchange nodes at most; of more, each time with others."""
_PATIENCE = 12
"""How many starts of chains, or exchanges, in a row may lead nowhere."""
_DEPTH = 3
_REPAIR_PRICE = 16.0
"""Points for a TiB at which only what is wrong is worth a copy: it is put right first, by the least data, while there is room."""
_OTHER_PRICES = (64.0, 4.0)
"""The same for further tries: where room is scarce, which of it is taken first decides who stays on a node that is down."""
_DEARER = 4.0
"""How many times dearer data is at first, so that what can be had for little data is not had for more."""

_LEAST_STEP = 0.01
"""Points for a TiB below which no further price is tried on the way down to one of nothing."""

_SET_TARGETS = 3
"""Nodes that are tried for those that are to be together."""
_PRIMARY_AT_TARGET = (MoveKind.FAILOVER_TO_ANY, MoveKind.REPLACE_AND_FAILOVER, MoveKind.REPLACE_PRIMARY)
"""The kinds of moves after which the target is the primary."""

_NOBODY = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class BalanceOptions:
    """What is wanted; `min_gain` is the least by which score and price together must fall with each move."""

    score: ScoreMode = ScoreMode.HTOOLS
    prices: Prices = Prices()
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


def balance(state: ClusterState, group: int, options: BalanceOptions, seconds: float | None = None) -> Balanced:
    """Return the best placement of a group's instances that was found, within so many seconds; `state` stays as it is."""
    until = None if seconds is None else time.monotonic() + seconds
    usual = options.prices.data
    search = _searched(state, group, options, until, (max(_REPAIR_PRICE, usual), _DEARER * usual, usual))
    for price in _OTHER_PRICES:
        if search.is_large() or search.late() or not search.leaves_behind():
            break
        search = min(search, _searched(state, group, options, until, _descending(price, usual)), key=lambda one: one.cost)
    moved = search.home.moved(search.state)
    first = dict.fromkeys(move.instance for move in search.made)
    return Balanced(search.state, tuple(i for i in first if moved[i]), tuple(search.made), not search.late())


def _descending(price: float, usual: float) -> tuple[float, ...]:
    """Return prices of data, in points for a TiB, from one down to the usual one, each _DEARER times the next."""
    steps = itertools.takewhile(lambda step: step > max(usual, _LEAST_STEP), (price / _DEARER**number for number in itertools.count()))
    return *steps, usual


def _searched(state: ClusterState, group: int, options: BalanceOptions, until: float | None, prices: Sequence[float]) -> _Search:
    """Return a search that has gone through prices of data to its end, or to that of the time."""
    search = _Search(state.copy(), group, options, until)
    if len(search.instances):
        for data in prices:
            search.set_prices(dataclasses.replace(options.prices, data=data))
            search.settle()
            search.move_sets()
        search.refine()
        search.descend()
    return search


class _Search:
    """A walk from placement to placement; `cost` is the score and the price of where it is."""

    def __init__(self, state: ClusterState, group: int, options: BalanceOptions, until: float | None) -> None:
        scorer = Scorer(state, options.score, state.group_nodes(group))
        self.state, self.home = state, Home.of(state)
        self.instances = candidates(state, group, options.evacuation_only)
        self.made: list[Move] = []
        self._options, self._prices = options, options.prices
        self._evaluator = MoveEvaluator(state, scorer, MoveRules.of_start(state), options.moves)
        self._reserve = SharedReserve.of(state, group)
        self._until = until
        self._sets = sets_together(state, self.instances)
        self._apart = MoveEvaluator(state, scorer, MoveRules.of_start(state, apart=True), options.moves) if self._sets else self._evaluator
        self.cost = scorer.score(state)

    def set_prices(self, prices: Prices) -> None:
        """Go on with other prices from where the search is."""
        before = PlacementPrice.of(self.state, self.home, self._prices).now
        self.cost += PlacementPrice.of(self.state, self.home, prices).now - before
        self._prices = prices

    def late(self) -> bool:
        """Return whether the time is over."""
        return self._until is not None and time.monotonic() > self._until

    def is_large(self) -> bool:
        """Return whether there are too many nodes to look at all of them each time."""
        return len(self._evaluator.board.targets) > _FEW

    def leaves_behind(self) -> bool:
        """Return whether an instance that may move still has a node that is offline."""
        dark = np.append(self.state.offline, False)
        return bool((dark[self.state.primary[self.instances]] | dark[self.state.secondary[self.instances]]).any())

    def settle(self) -> None:
        """Make single moves, the best first."""
        self._repeat(lambda: self._sweep(self._narrowed(_NOBODY)))

    def move_sets(self) -> None:
        """Move those that are to be together, set by set, and others after them."""
        while not self.late():
            moved = [self._move_set(members) for members in self._sets]
            if not any(moved):
                return
            self.settle()

    def _move_set(self, members: Integers) -> bool:
        """Bring a set to the best of the nodes that promise most; return whether that is worth it."""
        costs = self._set_costs(members)
        targets = self._apart.board.targets
        return any(
            self._make_set(members, int(targets[at])) for at in np.argsort(costs, kind="stable")[:_SET_TARGETS] if np.isfinite(costs[at])
        )

    def _set_costs(self, members: Integers) -> Floats:
        """Return [T]: about what it costs to have all of a set on each target, infinite where one of them cannot go."""
        board = self._apart.board
        evaluation = self._evaluated(self._apart)
        total = np.zeros(len(board.targets))
        for block in board.blocks(self.state, members):
            costs = self._apart.costs(evaluation, block, self._price())
            to_target = [costs[kind] for kind in _PRIMARY_AT_TARGET if kind in costs]
            least = np.minimum.reduce(to_target) if to_target else np.full((len(block.instances), len(total)), np.inf)
            at_home = block.primary[:, None] == board.targets
            total += np.where(at_home, self.cost, least).sum(axis=0)
        return total

    def _make_set(self, members: Integers, target: int) -> bool:
        """Bring a set to a node; return whether that is worth it. If not, all is as before."""
        before, flags = self.cost, self.state.fails_n1.copy()
        made: list[Move] = []
        evaluator = self._apart.narrowed(np.array([target]))
        for instance in members.tolist():
            if self.state.primary[instance] == target:
                continue
            evaluation = self._evaluated(evaluator)
            costs = {kind: evaluator.cost(evaluation, instance, kind, target, self._price()) for kind in _PRIMARY_AT_TARGET}
            kind = min(costs, key=lambda one: costs[one])
            if not np.isfinite(costs[kind]):
                self._back(made, before, flags)
                return False
            made.append(self._go(make_move(self.state, instance, kind, target), costs[kind]))
        if made and self.cost <= before - self._options.min_gain * len(made) and self._reserve.holds(self.state):
            self.made += made
            return True
        self._back(made, before, flags)
        return False

    def refine(self) -> None:
        """Make moves that are only worth it together: exchanges, and chains that exchanges do not cover."""
        self._repeat(self._exchange_all)
        self._repeat(self._chain_and_exchange)

    def descend(self) -> None:
        """Make single moves to any of the nodes."""
        self._repeat(self._sweep_everywhere, _LITTLE_EVERYWHERE)

    def _sweep_everywhere(self) -> None:
        if self._sweep(self._evaluator):
            self.settle()

    def _chain_and_exchange(self) -> None:
        before = self.cost
        self._chain_all()
        if self.cost < before:
            self.settle()
            self._repeat(self._exchange_all)

    def _repeat(self, improve: Callable[[], object], little: float = _LITTLE) -> None:
        """Improve as long as that brings more than a little of what it has brought so far."""
        before = last = self.cost
        while not self.late():
            improve()
            if last - self.cost <= little * (before - self.cost):
                return
            last = self.cost

    def _sweep(self, evaluator: MoveEvaluator) -> bool:
        """Look at all instances and make the moves worth at least half as much as the best of them; return whether there are any."""
        best = self._best(self.instances, evaluator)
        queue = MoveQueue.of(best, self.cost, len(self.state.primary))
        least = max(self._options.min_gain, queue.promise / 2)
        made = self._make_first(best, self._options.min_gain)
        while made and not self.late() and self._make_next(queue, least):
            continue
        return made

    def _make_next(self, queue: MoveQueue, least: float) -> bool:
        """Make one of the moves that promise most and keep it, at least `least`; return whether there is one."""
        while len(instances := queue.next(least, _TOGETHER)):
            best = self._best(instances, self._narrowed(queue.targets[instances]))
            queue.tell(best, self.cost)
            if self._make_first(best, least):
                return True
            queue.drop(instances)
        return False

    def _exchange_all(self) -> None:
        """Let instances exchange nodes, two at a time, where that is worth its price."""
        by_place = arrivals(self._evaluated(self._evaluator), self._evaluator.board, self.instances)
        shares = -(-len(self.instances) // _PARTNERS)
        for number, start in enumerate(range(0, len(self.instances), _ABREAST)):
            self._exchange(self.instances[start : start + _ABREAST], self.instances[number % shares :: shares], by_place)

    def _exchange(self, instances: Integers, partners: Integers, by_place: Floats | None) -> None:
        """Make the best exchanges of some instances with any of the partners."""
        evaluator = ExchangeEvaluator(self._evaluated(self._evaluator), self._price(), by_place)
        # What was estimated is stale where another exchange has been made since.
        fresh = np.ones(len(self.state.offline), dtype=bool)
        failed = 0
        for found in evaluator.best(instances, partners, 2 * self._options.min_gain):
            nodes = found.nodes(self.state)
            if not fresh[nodes].all():
                continue
            if self.late() or failed == _PATIENCE:
                return
            if any(self._make_both(moves) for moves in itertools.permutations(found.moves(self.state))):
                fresh[nodes] = False
                failed = 0
            else:
                failed += 1

    def _make_both(self, wanted: Sequence[tuple[int, MoveKind, int]]) -> bool:
        """Make moves that are worth it together; return whether they are. If not, all is as before."""
        before, flags = self.cost, self.state.fails_n1.copy()
        made: list[Move] = []
        for instance, kind, target in wanted:
            evaluator = self._evaluator.narrowed(np.array([target]))
            cost = evaluator.cost(self._evaluated(evaluator), instance, kind, target, self._price())
            if not np.isfinite(cost):
                break
            made.append(self._go(make_move(self.state, instance, kind, target), cost))
        worth = len(made) == len(wanted) and self.cost <= before - self._options.min_gain * len(made)
        if worth and self._reserve.holds(self.state):
            self.made += made
            return True
        self._back(made, before, flags)
        return False

    def _chain_all(self) -> None:
        """Try chains from the least bad moves."""
        best = self._best(self.instances, self._narrowed(_NOBODY))
        improved, failed = False, 0
        for row in best.order().tolist():
            if self.late() or failed == _PATIENCE:
                break
            failed += 1
            # What the first look told is stale once a chain has been made.
            now, position = best, row
            if improved:
                now, position = self._best(best.instances[row : row + 1], self._narrowed(best.target[row : row + 1])), 0
            if np.isfinite(now.cost[position]) and self._follow(now.move(self.state, position), float(now.cost[position])):
                improved, failed = True, 0

    def _follow(self, move: Move, cost: float) -> bool:
        """Return whether a chain that starts with a move leads to something better; if not, all is as before."""
        before, flags = self.cost, self.state.fails_n1.copy()
        made = [self._go(move, cost)]
        while len(made) < _DEPTH:
            touched = np.array([node for move in made for node in (*move.source, *move.target)])
            best = self._best(self._near(made), self._narrowed(touched))
            order = best.order()
            if not len(order):
                break
            made.append(self._go(best.move(self.state, int(order[0])), float(best.cost[order[0]])))
            if self.cost <= before - self._options.min_gain * len(made) and self._reserve.holds(self.state):
                self.made += made
                return True
        self._back(made, before, flags)
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
        before, flags = self.cost, self.state.fails_n1.copy()
        for row in best.order().tolist():
            if before - best.cost[row] < least:
                return False
            move = self._go(best.move(self.state, row), float(best.cost[row]))
            if self._reserve.holds(self.state):
                self.made.append(move)
                return True
            self._back([move], before, flags)
        return False

    def _go(self, move: Move, cost: float) -> Move:
        self.state.place(move.instance, *move.target)
        self.cost = cost
        return move

    def _back(self, made: Sequence[Move], cost: float, flags: Booleans) -> None:
        """Undo moves; N+1 flags are not what they were by that alone, as a node's own report counts until it is touched."""
        for move in reversed(made):
            self.state.place(move.instance, *move.source)
        self.state.fails_n1[:] = flags
        self.cost = cost

    def _best(self, instances: Integers, evaluator: MoveEvaluator) -> BestMoves:
        return evaluator.best(self._evaluated(evaluator), instances, self._price())

    def _evaluated(self, evaluator: MoveEvaluator) -> Evaluation:
        return evaluator.at(self.state, self.cost - self._price().now)

    def _price(self) -> PlacementPrice:
        return PlacementPrice.of(self.state, self.home, self._prices)

    def _narrowed(self, targets: Integers) -> MoveEvaluator:
        """Return a look at moves to the nodes that most invite them and to some others; to all where there are few."""
        online = self._evaluator.board.targets
        if not self.is_large():
            return self._evaluator
        return self._evaluator.narrowed(np.union1d(self._evaluator.inviting(self.state, _INVITING), np.intersect1d(targets, online)))
