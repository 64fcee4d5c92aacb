# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A walk from placement to placement of a group's instances, by single moves, each about the best there is.

Every other kind of step (first_things, sets, chains) goes on from where the walk is and keeps what it has made, or undoes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Booleans, Integers
from ..cluster.moves import Move, MoveKind, make_move
from ..cluster.state import ClusterState
from ..metrics.limits import Bounds
from ..metrics.score import Scorer
from ..metrics.shared_redundancy import SharedReserve
from ..metrics.together import sets_together
from ..neighbourhood.excess import MovedExcess, RepairPrice, hard_excess_of, tags_in_conflict
from ..neighbourhood.limits import MoveRules
from ..neighbourhood.moves import BestMoves, Evaluation, MoveEvaluator
from ..neighbourhood.price import InitialPlacement, PlacementPrice, Prices
from ..neighbourhood.spreads import SpreadValues
from .hbal import candidates
from .model import BalanceOptions, Redundancy, Refused
from .queue import MoveQueue
from .watch import Watch

_TOGETHER = 16
"""Instances that are evaluated again for the next move: those that promised most."""
_FEW = 96
"""Up to this number of nodes, all are evaluated each time."""
_INVITING = 64
"""Of more nodes, the number evaluated each time; all are in the end."""
LITTLE = 0.01
"""What part of all that it has brought a repetition must bring to be worth another."""
LITTLE_EVERYWHERE = 0.1
"""The same for looks at all nodes of large groups, which are dear."""
_SMALL = 24
"""Nodes of groups in which other ways are tried where N+1 on shared storage has been in the way, or instances stay down."""

_EXCESS_DIGITS = 9
FirstThings = tuple[int, int, float, int, int, int]
"""Running instances that are down, all that are, broken limits, instances on nodes to be emptied, nodes that fail N+1 of mirrors, tags."""
NO_INSTANCES = np.zeros(0, dtype=np.int64)


class Walk:
    """Where the search is: `state`, what was `made` to get there, and its `cost`, which is the score and the price."""

    def __init__(
        self, state: ClusterState, group: int, options: BalanceOptions, until: float | None = None, watch: Watch | None = None
    ) -> None:
        scorer = Scorer(state, options.score, state.group_nodes(group))
        self.state, self.home = state, InitialPlacement.of(state)
        self.instances = candidates(state, group, options.evacuation_only)
        self.made: list[Move] = []
        self.options, self._prices = options, options.prices
        self.evaluator = MoveEvaluator(state, scorer, MoveRules.of_start(state), options.moves)
        self.reserve = None if options.redundancy == Redundancy.OFF else SharedReserve.of(state, group)
        self.keeps_redundancy = options.redundancy != Redundancy.OFF
        self.refused: dict[int, Refused] = {}
        self.repairing = NO_INSTANCES
        self._group, self.scorer, self._until, self._watch = group, scorer, until, watch
        self.sets = sets_together(state, self.instances)
        self.apart = MoveEvaluator(state, scorer, MoveRules.of_start(state, apart=True), options.moves) if self.sets else self.evaluator
        self.cost = scorer.score(state)

    def set_prices(self, prices: Prices) -> None:
        """Go on with other prices from where the search is."""
        before = PlacementPrice.of(self.state, self.home, self._prices).now
        self.cost += PlacementPrice.of(self.state, self.home, prices).now - before
        self._prices = prices

    def late(self) -> bool:
        """Return whether the time is over, after the progress was shown."""
        if self._watch is not None:
            self._watch.look(lambda: (int(self.home.moved(self.state).sum()), self.cost - self.price().now))
        return self._until is not None and time.monotonic() > self._until

    def is_large(self) -> bool:
        """Return whether there are too many nodes to look at all of them each time."""
        return len(self.evaluator.targets.nodes) > _FEW

    def leaves_behind(self) -> bool:
        """Return whether an instance that may move still has a node that is offline."""
        return bool(self.left_behind())

    def left_behind(self) -> list[int]:
        """Return the instances that may move and still have a node that is offline or drained."""
        offline_nodes = np.append(self.state.offline, False)
        found: list[int] = self.instances[
            offline_nodes[self.state.primary[self.instances]] | offline_nodes[self.state.secondary[self.instances]]
        ].tolist()
        return found

    def is_small(self) -> bool:
        """Return whether there are so few nodes that several ways can be tried."""
        return len(self.evaluator.targets.nodes) <= _SMALL

    def is_hindered(self) -> bool:
        """Return whether N+1 on shared storage has been in the way in a group that is small enough to try other ways."""
        return bool(self.refused) and self.is_small()

    def first_things(self) -> FirstThings:
        """Return how much is left of what comes before N+1 on shared storage and the score, the less the better."""
        state, members = self.state, self.scorer.members
        down = self.down()
        running = sum(state.facts.instances.models[instance].uses_memory for instance in down)
        excess = round(hard_excess_of(state, members), _EXCESS_DIGITS)
        failing = int(state.fails_n1[self.scorer.online].sum())
        return running, len(down), excess, len(self.left_behind()), failing, tags_in_conflict(state, members)

    def rank(self) -> tuple[FirstThings, float]:
        """Return how good the placement is, the less the better: the first things, then its cost."""
        return self.first_things(), self.cost

    def stranded(self) -> float:
        """Return MiB on shared storage that the failures of all nodes would strand, each by itself; 0 if N+1 is ignored."""
        if self.reserve is None:
            return 0.0
        now = SharedReserve.of(self.state, self._group)
        return float(now.allowed.sum() + now.sets.allowed.sum())

    def down(self) -> list[int]:
        """Return the instances that may move and whose primary does not answer; forthcoming ones are not down where moves are scarce."""
        found: list[int] = self.instances[self.state.marked_offline[self.state.primary[self.instances]]].tolist()
        if not self.options.prices.limited:
            return found
        models = self.state.facts.instances.models
        return [instance for instance in found if not models[instance].forthcoming]

    def take_as_given(self) -> None:
        """Let nothing get worse than it is now; a failure may still strand what it would have at the start."""
        rules = MoveRules.of_start(self.state), MoveRules.of_start(self.state, apart=True)
        own, apart = (MoveEvaluator(self.state, self.scorer, rule, self.options.moves) for rule in rules)
        self.evaluator, self.apart = own, apart if self.sets else own
        if self.reserve is not None:
            self.reserve = self.reserve.at_most(SharedReserve.of(self.state, self._group))

    def keeps_n1(self, move: Move | None = None) -> bool:
        """Return whether no failure strands more than it may; if it does and a move alone has led there, that is noted."""
        beyond = self.reserve.beyond(self.state) if self.keeps_redundancy and self.reserve is not None else None
        if beyond is not None and move is not None:
            self.refused.setdefault(move.instance, Refused(move.target[0], *beyond))
        return beyond is None

    def descend_to_local_optimum(self) -> None:
        """Make single moves, the best first."""
        self.repeat(lambda: self._sweep(self.best_near(self.instances, NO_INSTANCES)))

    def descend(self) -> None:
        """Make single moves to any of the nodes."""
        self.repeat(self._sweep_everywhere, LITTLE_EVERYWHERE)

    def _sweep_everywhere(self) -> None:
        if self._sweep(self.best(self.instances, self.evaluator)):
            self.descend_to_local_optimum()

    def repeat(self, improve: Callable[[], object], little: float = LITTLE) -> None:
        """Improve as long as that brings more than a little of what it has brought so far."""
        before = last = self.cost
        while not self.late():
            improve()
            if last - self.cost <= little * (before - self.cost):
                return
            last = self.cost

    def _sweep(self, best: BestMoves) -> bool:
        """Make the moves worth at least half as much as the best of those of all instances; return whether there are any."""
        queue = MoveQueue.of(best, self.cost, len(self.state.primary))
        least = max(self.options.min_gain, queue.promise / 2)
        made = self._make_first(best, self.options.min_gain)
        while made and not self.late() and self._make_next(queue, least):
            continue
        return made

    def _make_next(self, queue: MoveQueue, least: float) -> bool:
        """Make one of the moves that promise most and keep it, at least `least`; return whether there is one."""
        while len(instances := queue.next(least, _TOGETHER)):
            best = self.best_near(instances, queue.targets[instances])
            queue.record(best, self.cost)
            if self._make_first(best, least):
                if self.is_large() and not self._counts_together():
                    # Make further moves of a look whose nodes no move has touched since: what they gain and may do is
                    # about as it was.
                    touched = {*self.made[-1].source, *self.made[-1].target}
                    for row in best.order().tolist():
                        move = best.move(self.state, row)
                        nodes = {*move.source, *move.target} - {NOWHERE}
                        if nodes & touched:
                            continue
                        before, flags = self.cost, self.state.fails_n1.copy()
                        self.state.place(move.instance, *move.target)
                        self.count()
                        if before - self.cost >= least and self.keeps_n1(move):
                            self.made.append(move)
                            touched |= nodes
                        else:
                            self.back([move], before, flags)
                return True
            queue.drop(instances)
        return False

    def _counts_together(self) -> bool:
        """Return whether moves on different nodes may rule each other out: by a common bound on costs, or by affinity."""
        return self._prices.limited or bool(self.sets) or len(self.repairing) > 0

    def _make_first(self, best: BestMoves, least: float) -> bool:
        """Make the best move that strands nothing and gains at least `least`; return whether there is one."""
        before, flags = self.cost, self.state.fails_n1.copy()
        for row in best.order().tolist():
            if before - best.cost[row] < least:
                return False
            move = self.go(best.move(self.state, row), float(best.cost[row]))
            if self.keeps_n1(move):
                self.made.append(move)
                return True
            self.back([move], before, flags)
        return False

    def try_move(self, move: Move, bounds: Bounds) -> bool:
        """Make a move whatever it gains, if the instance is where it starts and its nodes keep the bounds; return whether it is made."""
        if self.state.place_of(move.instance) != move.source:
            return False
        before, flags = self.cost, self.state.fails_n1.copy()
        self.state.place(move.instance, *move.target)
        self.count()
        if bounds.holds(self.state, {*move.source, *move.target} - {NOWHERE}) and self.keeps_n1():
            self.made.append(move)
            return True
        self.back([move], before, flags)
        return False

    def cheapest(self, instances: Integers, evaluator: MoveEvaluator, most: int | None = None) -> list[tuple[float, int, MoveKind, int]]:
        """Return moves that limits let pass, `most` at most: cost, instance, kind and target, the cheapest first."""
        found, evaluation, price = [], self.evaluated(evaluator), self.price()
        for block in evaluator.targets.blocks(self.state, instances):
            for kind, costs in evaluator.costs(evaluation, block, price).items():
                targets = np.array([NOWHERE]) if kind == MoveKind.FAILOVER else evaluator.targets.nodes
                flat = costs.ravel()
                cells = np.argsort(flat, kind="stable")[:most]
                cells = cells[np.isfinite(flat[cells])]
                rows, columns = np.unravel_index(cells, costs.shape)
                found += [
                    (cost, instance, kind, target)
                    for cost, instance, target in zip(flat[cells].tolist(), block.instances[rows].tolist(), targets[columns].tolist())
                ]
        return sorted(found, key=lambda move: move[0])[:most]

    def make_again(self, move: Move) -> None:
        """Make a move of another search whatever it gains, if all limits let it pass from where the instance is."""
        before, flags = self.cost, self.state.fails_n1.copy()
        for cost, _instance, kind, target in self.cheapest(np.array([move.instance]), self.evaluator):
            here = make_move(self.state, move.instance, kind, target)
            if here == move:
                self.go(here, cost)
                if self.keeps_n1(here):
                    self.made.append(here)
                else:
                    self.back([here], before, flags)
                return

    def go(self, move: Move, cost: float) -> Move:
        self.state.place(move.instance, *move.target)
        self.cost = cost
        return move

    def count(self) -> float:
        """Take down what the placement costs, and return it; infinite where it exceeds what may be moved."""
        price = self.price()
        self.cost = np.inf if price.exceeded else self.scorer.score(self.state) + price.now
        return self.cost

    def back(self, made: Sequence[Move], cost: float, flags: Booleans) -> None:
        """Undo moves; N+1 flags are not what they were by that alone, as a node's own report counts until it is touched."""
        for move in reversed(made):
            self.state.place(move.instance, *move.source)
        self.state.fails_n1[:] = flags
        self.cost = cost

    def best(self, instances: Integers, evaluator: MoveEvaluator, values: SpreadValues | None = None) -> BestMoves:
        price = self.price()
        return evaluator.best(evaluator.at(self.state, self.cost - price.now, values), instances, price)

    def best_near(self, instances: Integers, targets: Integers) -> BestMoves:
        """Return the best moves to the nodes that most invite them and to some others; to all where there are few."""
        if not self.is_large():
            return self.best(instances, self.evaluator)
        values = self.evaluator.values(self.state)
        wanted = np.zeros(len(self.state.offline) + 1, dtype=bool)
        wanted[targets] = True
        wanted[self.evaluator.inviting(values, _INVITING)] = True
        return self.best(instances, self.evaluator.narrowed(np.flatnonzero(wanted[:-1] & self.evaluator.targets.online)), values)

    def evaluated(self, evaluator: MoveEvaluator) -> Evaluation:
        return evaluator.at(self.state, self.cost - self.price().now)

    def price(self) -> PlacementPrice | RepairPrice:
        price = PlacementPrice.of(self.state, self.home, self._prices)
        return RepairPrice(price, MovedExcess.of(self.state, self.scorer.members, self.repairing)) if len(self.repairing) else price
