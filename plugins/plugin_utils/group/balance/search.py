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

First things come first: instances that are down because their node is, then limits that are broken now, then N+1, then the
score. No limit gets worse than it was, neither on any node nor, on shared storage, for any failure (metrics.shared_redundancy),
but for what comes before it: what is down is started where soft limits break when there is no other way, and N+1 on shared
storage may get worse for both of them, if that is not to be kept (`Redundancy`).
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from ...common.libraries import np
from ..cluster.arrays import NOWHERE, Booleans, Floats, Integers, Quantity
from ..cluster.moves import Move, MoveKind, make_move
from ..cluster.state import ClusterState
from ..metrics.score import ScoreMode, Scorer
from ..metrics.shared_redundancy import SharedReserve
from ..metrics.together import sets_together
from ..neighbourhood.excess import Mending, MovedExcess, broken_rows, excess_of
from ..neighbourhood.exchanges import ExchangeEvaluator, arrivals
from ..neighbourhood.limits import MoveRules
from ..neighbourhood.moves import BestMoves, Evaluation, MoveEvaluator, MoveOptions
from ..neighbourhood.price import Home, PlacementPrice, Prices
from .hbal import candidates
from .queue import MoveQueue

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
_OTHER_PRICES: tuple[tuple[float, Callable[[float], float]], ...] = ((64.0, float.__neg__), (4.0, float.__pos__))
"""The same for further tries, and who comes up first in them, the largest or the smallest: where room is scarce, that decides who
stays on a node that is down."""
_PLACES = 8
"""Places that are tried for one that is down, and moves that are tried to mend a limit."""
_SMALL = 24
"""Nodes of groups in which other ways are tried when N+1 on shared storage has been in the way."""
_MAKE_ROOM = 400
"""How many instances are tried in all to make room for those that are down, and how many on each node."""
_MAKE_ROOM_AT = 4
_DEARER = 4.0
"""How many times dearer data is at first, so that what can be had for little data is not had for more."""

_LEAST_STEP = 0.01
"""Points for a TiB below which no further price is tried on the way down to one of nothing."""

_SET_TARGETS = 3
"""Nodes that are tried for those that are to be together."""
_PRIMARY_AT_TARGET = (MoveKind.FAILOVER_TO_ANY, MoveKind.REPLACE_AND_FAILOVER, MoveKind.REPLACE_PRIMARY)
"""The kinds of moves after which the target is the primary."""

_NOBODY = np.zeros(0, dtype=np.int64)


class Redundancy(StrEnum):
    """What N+1 on shared storage is worth."""

    KEEP = "keep"
    """It never gets worse."""
    PRICE = "price"
    """It gets worse only where something before it gets better."""
    OFF = "off"
    """It is not looked at, as hbal does not."""


@dataclass(frozen=True)
class BalanceOptions:
    """What is wanted; `min_gain` is the least by which score and price together must fall with each move."""

    score: ScoreMode = ScoreMode.HTOOLS
    prices: Prices = Prices()
    min_gain: float = 1e-4
    moves: MoveOptions = MoveOptions()
    evacuation_only: bool = False
    redundancy: Redundancy = Redundancy.PRICE


@dataclass(frozen=True)
class Refused:
    """An instance did not go to a node, as the failure of a node would have stranded so many MiB more on shared storage."""

    target: int
    failing: int
    more: float


@dataclass(frozen=True)
class Balanced:
    """A placement, the instances that moved, those that were down first, all moves that led there, and if it was in time.

    No failure strands more on the way than `reserve` allows; None when that is not looked at.
    """

    state: ClusterState
    reserve: SharedReserve | None
    order: tuple[int, ...]
    made: tuple[Move, ...]
    in_time: bool
    refused: Mapping[int, Refused]
    """Instances that stay where they are, as they may not go where they should."""


def balance(state: ClusterState, group: int, options: BalanceOptions, seconds: float | None = None) -> Balanced:
    """Return the best placement of a group's instances that was found, within so many seconds; `state` stays as it is."""
    until = None if seconds is None else time.monotonic() + seconds
    usual = options.prices.data
    search = _searched(state, group, options, until, (max(_REPAIR_PRICE, usual), _DEARER * usual, usual))
    for price, first in _OTHER_PRICES:
        if search.is_large() or search.late() or not (search.leaves_behind() or search.is_hindered()):
            break
        search = min(search, _searched(state, group, options, until, _descending(price, usual), first), key=lambda one: one.rank())
    moved = search.home.moved(search.state)
    met = dict.fromkeys(move.instance for move in search.made)
    first_up = sorted((i for i in met if moved[i]), key=lambda instance: not state.dark[state.primary[instance]])
    refused = {instance: why for instance, why in search.refused.items() if not moved[instance]}
    return Balanced(search.state, search.reserve, tuple(first_up), tuple(search.made), not search.late(), refused)


def _descending(price: float, usual: float) -> tuple[float, ...]:
    """Return prices of data, in points for a TiB, from one down to the usual one, each _DEARER times the next."""
    steps = itertools.takewhile(lambda step: step > max(usual, _LEAST_STEP), (price / _DEARER**number for number in itertools.count()))
    return *steps, usual


def _searched(
    state: ClusterState,
    group: int,
    options: BalanceOptions,
    until: float | None,
    prices: Sequence[float],
    rescue_first: Callable[[float], float] | None = None,
) -> _Search:
    """Return a search that has gone through prices of data to its end, or to that of the time.

    What is down comes up in the course of it, and what is left of it then at any rate, or all of it first: those with the least
    of a function of their memory before the others.
    """
    search = _Search(state.copy(), group, options, until)
    if not len(search.instances):
        return search
    search.set_prices(dataclasses.replace(options.prices, data=prices[0]))
    if rescue_first is not None:
        search.rescue(rescue_first)
    search.mend()
    for data in prices:
        search.set_prices(dataclasses.replace(options.prices, data=data))
        search.settle()
        search.move_sets()
    search.refine()
    search.descend()
    if search.rescue(float.__neg__) | search.mend_at_any_rate():
        search.settle()
        search.refine()
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
        self.reserve = None if options.redundancy == Redundancy.OFF else SharedReserve.of(state, group)
        self._walled = options.redundancy != Redundancy.OFF
        self.refused: dict[int, Refused] = {}
        self._mending = _NOBODY
        self._group, self._scorer, self._until = group, scorer, until
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

    def is_hindered(self) -> bool:
        """Return whether N+1 on shared storage has been in the way in a group that is small enough to try other ways."""
        return bool(self.refused) and len(self._evaluator.board.targets) <= _SMALL

    def rank(self) -> tuple[int, int, float, float]:
        """Return how good the placement is, the less the better: who is down, what is broken, then its cost."""
        down = self.down()
        running = sum(self.state.facts.instances.models[instance].uses_memory for instance in down)
        return running, len(down), excess_of(self.state, self._scorer.members), self.cost

    def down(self) -> list[int]:
        """Return the instances that may move and whose primary does not answer, running ones first."""
        models = self.state.facts.instances.models
        found: list[int] = self.instances[self.state.dark[self.state.primary[self.instances]]].tolist()
        return sorted(found, key=lambda instance: not models[instance].uses_memory)

    def rescue(self, first: Callable[[float], float]) -> bool:
        """Bring up what is down: within all limits, then where N+1 or soft limits break; return whether any of it came up.

        Running ones come before others, and of these those with the least of a function of their memory.
        """
        if not self.down():
            return False
        models = self.state.facts.instances.models
        made = len(self.made)
        lenient = MoveEvaluator(self.state, self._scorer, MoveRules.of_start(self.state, rescues=True), self._options.moves)
        kept = self._options.redundancy == Redundancy.KEEP
        for evaluator, walled in ((self._evaluator, self._walled), (self._evaluator, kept), (lenient, kept)):
            self._walled = walled
            for instance in sorted(self.down(), key=lambda one: (not models[one].uses_memory, first(float(models[one].memory)))):
                self._bring_up(instance, evaluator)
        trials = iter(range(_MAKE_ROOM))
        while any(self._make_room(instance, lenient, trials) for instance in self.down() if models[instance].uses_memory):
            continue
        if len(self.made) > made:
            self._take_as_given()
        self._walled = self.reserve is not None
        return len(self.made) > made

    def _bring_up(self, instance: int, evaluator: MoveEvaluator) -> bool:
        """Bring an instance to the cheapest of its places that holds; return whether there is one."""
        before, flags = self.cost, self.state.fails_n1.copy()
        for cost, kind, target in itertools.islice(self._places(instance, evaluator), _PLACES):
            move = self._go(make_move(self.state, instance, kind, target), cost)
            if self._strands_no_more():
                self.made.append(move)
                return True
            self._back([move], before, flags)
        return False

    def _places(self, instance: int, evaluator: MoveEvaluator) -> list[tuple[float, MoveKind, int]]:
        """Return the moves of an instance that limits let pass: cost, kind and target, the cheapest first."""
        targets = evaluator.board.targets.tolist()
        found = [
            (cost, kind, target)
            for block in evaluator.board.blocks(self.state, np.array([instance]))
            for kind, costs in evaluator.costs(self._evaluated(evaluator), block, self._price()).items()
            for cost, target in (zip(costs[0].tolist(), targets) if costs.ndim > 1 else ((float(costs[0]), NOWHERE),))
            if np.isfinite(cost)
        ]
        return sorted(found, key=lambda place: place[0])

    def _make_room(self, instance: int, lenient: MoveEvaluator, trials: Iterator[int]) -> bool:
        """Let another instance leave a node, so that one that is down comes up there; return whether there is one."""
        state, secondary = self.state, int(self.state.secondary[instance])
        targets = lenient.board.targets if secondary == NOWHERE else np.array([secondary])
        memory = state.facts.instances.memory
        short = float(memory[instance]) - state.quantities[Quantity.MEMORY, targets]
        for at in np.argsort(short, kind="stable").tolist():
            here = self.instances[state.primary[self.instances] == targets[at]]
            enough = here[-state.facts.instances.as_primary[Quantity.MEMORY, here] >= short[at]]
            for other in enough[np.argsort(memory[enough], kind="stable")][:_MAKE_ROOM_AT].tolist():
                if next(trials, None) is None:
                    return False
                before, flags, made = self.cost, self.state.fails_n1.copy(), len(self.made)
                if self._bring_up(other, self._evaluator) and self._bring_up(instance, lenient):
                    return True
                self._back(self.made[made:], before, flags)
                del self.made[made:]
        return False

    def mend(self) -> None:
        """Make the moves by which limits that are broken are so by less."""
        if len(broken_rows(self.state, self._scorer.members)):
            with self._mended():
                self.settle()

    def mend_at_any_rate(self) -> bool:
        """Let N+1 on shared storage get worse where a limit can be mended by that; return whether one is."""
        if self._options.redundancy != Redundancy.PRICE or not self._walled or not excess_of(self.state, self._scorer.members):
            return False
        before, self._walled = len(self.made), False
        with self._mended():
            while not self.late() and self._mend_one():
                continue
        self._walled = True
        return len(self.made) > before

    @contextmanager
    def _mended(self) -> Iterator[None]:
        """Within the context what is broken counts before the score; afterwards it must not get worse again."""
        before = len(self.made)
        self.cost -= self._price().now
        self._mending = broken_rows(self.state, self._scorer.members)
        self.cost += self._price().now
        yield
        self.cost -= self._price().now
        self._mending = _NOBODY
        self.cost += self._price().now
        if len(self.made) > before:
            self._take_as_given()

    def _mend_one(self) -> bool:
        """Make the best move if a limit is broken by less after it; return whether it is."""
        broken = excess_of(self.state, self._scorer.members)
        best = self._best(self.instances, self._narrowed(_NOBODY))
        before, flags = self.cost, self.state.fails_n1.copy()
        for row in best.order()[:_PLACES].tolist():
            move = self._go(best.move(self.state, row), float(best.cost[row]))
            if excess_of(self.state, self._scorer.members) < broken:
                self.made.append(move)
                return True
            self._back([move], before, flags)
        return False

    def _take_as_given(self) -> None:
        """Let nothing get worse than it is now; a failure may still strand what it would have at the start."""
        rules = MoveRules.of_start(self.state), MoveRules.of_start(self.state, apart=True)
        own, apart = (MoveEvaluator(self.state, self._scorer, rule, self._options.moves) for rule in rules)
        self._evaluator, self._apart = own, apart if self._sets else own
        if self.reserve is not None:
            now = SharedReserve.of(self.state, self._group)
            self.reserve = dataclasses.replace(self.reserve, allowed=np.maximum(self.reserve.allowed, now.allowed))

    def _strands_no_more(self, move: Move | None = None) -> bool:
        """Return whether no failure strands more than it may; if it does and a move alone has led there, that is noted."""
        beyond = self.reserve.beyond(self.state) if self._walled and self.reserve is not None else None
        if beyond is not None and move is not None:
            self.refused.setdefault(move.instance, Refused(move.target[0], *beyond))
        return beyond is None

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
        if made and self.cost <= before - self._options.min_gain * len(made) and self._strands_no_more():
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
        if worth and self._strands_no_more():
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
            if self.cost <= before - self._options.min_gain * len(made) and self._strands_no_more():
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
            if self._strands_no_more(move):
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

    def _price(self) -> PlacementPrice | Mending:
        price = PlacementPrice.of(self.state, self.home, self._prices)
        return Mending(price, MovedExcess.of(self.state, self._scorer.members, self._mending)) if len(self._mending) else price

    def _narrowed(self, targets: Integers) -> MoveEvaluator:
        """Return a look at moves to the nodes that most invite them and to some others; to all where there are few."""
        online = self._evaluator.board.targets
        if not self.is_large():
            return self._evaluator
        return self._evaluator.narrowed(np.union1d(self._evaluator.inviting(self.state, _INVITING), np.intersect1d(targets, online)))
