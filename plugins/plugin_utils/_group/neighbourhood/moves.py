# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All single moves of many instances at once: what each would cost, and the best of every instance.

    evaluator = MoveEvaluator(state, scorer, rules, MoveOptions())
    evaluation = evaluator.at(state, scorer.score(state))
    best = evaluator.best(evaluation, instances, price)        # the cheapest move of each instance
    evaluator.costs(evaluation, block, price)                  # {kind: [R, T]}, infinite where a limit is in the way

One evaluation of I instances on N nodes takes some 40 passes over I N numbers, in blocks that stay in the processor's
cache; hbal, which evaluates each move by itself, needs in the order of 80 N times as many.
"""

from __future__ import annotations

import copy
import typing as t
from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Floats, Integers
from ..cluster.moves import Move, MoveKind, make_move
from ..cluster.state import ClusterState
from ..metrics.score import Scorer
from .effects import KINDS
from .limits import MovedLimits, MoveRules
from .penalties import MovedPenalties
from .reserves import MovedReserves
from .spreads import MovedSpreads, SpreadTable, SpreadValues
from .targets import Block, KeptMemory, Needs, Targets


@dataclass(frozen=True)
class MoveOptions:
    """Which kinds of moves are offered; `instance_moves` change the primary, `disk_moves` copy disks."""

    disk_moves: bool = True
    instance_moves: bool = True

    def offers(self, kind: MoveKind) -> bool:
        """Return whether a kind is offered."""
        if kind in (MoveKind.FAILOVER, MoveKind.FAILOVER_TO_ANY):
            return self.instance_moves
        return self.disk_moves and (self.instance_moves or kind == MoveKind.REPLACE_SECONDARY)


class Price(t.Protocol):
    """What moves cost in addition to the score they lead to."""

    def add(self, costs: dict[MoveKind, Floats], block: Block, targets: Targets) -> None:
        """Add the price of each move to its cost, in place; infinite for those that must not be."""


class NoPrice:
    """Nothing but the score counts."""

    def add(self, costs: dict[MoveKind, Floats], block: Block, targets: Targets) -> None:
        """Add nothing."""


@dataclass(frozen=True)
class BestMoves:
    """The cheapest move of each instance, [R] each; the cost is infinite for one that has none."""

    instances: Integers
    cost: Floats
    kind: Integers
    """Positions in KINDS."""
    target: Integers
    """The node, or NOWHERE for failover."""

    def order(self) -> Integers:
        """Return rows, the cheapest first, those of equal cost as the instances are, those without a move left out."""
        rows = np.argsort(self.cost, kind="stable")
        return rows[np.isfinite(self.cost[rows])]

    def move(self, state: ClusterState, row: int) -> Move:
        """Return the move of a row from where the instance is in `state`."""
        instance = int(self.instances[row])
        return make_move(state, instance, KINDS[self.kind[row]], int(self.target[row]))


class MoveEvaluator:
    """Looks at all single moves from states that share a scorer's members, rules and options."""

    def __init__(self, state: ClusterState, scorer: Scorer, rules: MoveRules, options: MoveOptions) -> None:
        self.scorer = scorer
        self.targets = Targets.of(state, scorer)
        self._rules, self._options = rules, options
        self._spreads = SpreadTable.of(state, scorer)

    def narrowed(self, targets: Integers) -> MoveEvaluator:
        """Return one that looks at moves to some of the nodes only."""
        narrow = copy.copy(self)
        narrow.targets = self.targets.narrowed(targets)
        return narrow

    def values(self, state: ClusterState) -> SpreadValues:
        """Return what `inviting` and `at` have in common."""
        return self._spreads.values(state)

    def inviting(self, values: SpreadValues, most: int) -> Integers:
        """Return some of the targets, `most` at most, some twice: where primaries, and where secondaries, make the score fall most."""
        targets = self.targets.nodes
        first = [np.argsort(slope[targets], kind="stable")[: most // 2] for slope in self._spreads.slopes(values)]
        return targets[np.concatenate(first)]

    def at(self, state: ClusterState, score: float, values: SpreadValues | None = None) -> Evaluation:
        """Return what is the same for all moves from a state with that score; it must not change while the evaluation is used."""
        return Evaluation(
            state=state,
            spreads=self._spreads.at(self.values(state) if values is None else values, self.targets.nodes),
            reserves=MovedReserves(state, self.scorer, self.targets),
            penalties=MovedPenalties(state, self.scorer, self.targets),
            limits=MovedLimits(state, self.targets, self._rules),
            score=score,
        )

    def cost(self, evaluation: Evaluation, instance: int, kind: MoveKind, target: int, price: Price) -> float:
        """Return the cost of one move with a target; infinite where a limit or an option is in the way."""
        (block,) = self.targets.blocks(evaluation.state, np.array([instance]))
        costs = self.costs(evaluation, block, price)
        return float(costs[kind][0, self.targets.column[target]]) if kind in costs else float("inf")

    def allows(self, state: ClusterState, instance: int, kind: MoveKind, target: int) -> bool:
        """Return whether limits and options allow a move to a target that the instance is not on."""
        (block,) = self.targets.blocks(state, np.array([instance]))
        kept = KeptMemory.of(state, self.targets, block) if block.mirrored else None
        allowed = MovedLimits(state, self.targets, self._rules).allowed(block, kept, Needs.of(state, block))
        if kind not in allowed or not self._options.offers(kind):
            return False
        row = np.broadcast_to(allowed[kind], (1, len(self.targets.nodes)))[0]
        return bool(row[self.targets.column[target]])

    def best(self, evaluation: Evaluation, instances: Integers, price: Price) -> BestMoves:
        """Return the cheapest move of each of `instances`, in blocks: mirrored ones first."""
        found = [
            _reduced(block, self.costs(evaluation, block, price), self.targets)
            for block in self.targets.blocks(evaluation.state, instances)
        ]
        if not found:
            nothing = np.zeros(0, dtype=np.int64)
            return BestMoves(nothing, np.zeros(0), nothing, nothing)
        return BestMoves(
            instances=np.concatenate([part.instances for part in found]),
            cost=np.concatenate([part.cost for part in found]),
            kind=np.concatenate([part.kind for part in found]),
            target=np.concatenate([part.target for part in found]),
        )

    def costs(self, evaluation: Evaluation, block: Block, price: Price) -> dict[MoveKind, Floats]:
        """Return the cost of every move of a block: [R, T], for failover [R, 1]."""
        state = evaluation.state
        needs = Needs.of(state, block)
        kept = KeptMemory.of(state, self.targets, block) if block.mirrored else None
        allowed = evaluation.limits.allowed(block, kept, needs)
        scores = self._scores(evaluation, block, kept, needs)
        at_home = self.targets.at_home(block)
        costs = {}
        for kind in block.kinds:
            if self._options.offers(kind):
                shape = len(block.instances), 1 if kind == MoveKind.FAILOVER else len(self.targets.nodes)
                masked = np.where(allowed[kind], scores[kind], np.inf)
                costs[kind] = masked if masked.shape == shape else np.broadcast_to(masked, shape).copy()
                if kind != MoveKind.FAILOVER:
                    costs[kind][at_home] = np.inf
        price.add(costs, block, self.targets)
        return costs

    def _scores(self, evaluation: Evaluation, block: Block, kept: KeptMemory | None, needs: Needs) -> dict[MoveKind, Floats]:
        """Return the score after every move of a block; parts that do not concern a kind are left out there."""
        spreads, rest = evaluation.spreads.after(block, evaluation.score)
        changes = evaluation.penalties.changes(block, kept, needs)
        if kept is None:
            reserved = {}
        else:
            reserved, rest = evaluation.reserves.after(block, kept), rest - evaluation.reserves.still
        return {
            kind: sum((part[kind] for part in (reserved, changes) if kind in part), start=spread) + rest for kind, spread in spreads.items()
        }


@dataclass(frozen=True)
class Evaluation:
    """A state with all that its moves have in common."""

    state: ClusterState
    spreads: MovedSpreads
    reserves: MovedReserves
    penalties: MovedPenalties
    limits: MovedLimits
    score: float


def _reduced(block: Block, costs: dict[MoveKind, Floats], targets: Targets) -> BestMoves:
    """Return the first cheapest move of each instance: by target, then by kind, a failover before all."""
    rows = block.order
    kinds = [kind for kind in KINDS if kind in costs]
    if not kinds:
        return BestMoves(block.instances, np.full(len(rows), np.inf), np.zeros(len(rows), dtype=np.int64), np.full(len(rows), NOWHERE))
    cost = np.empty((len(kinds), len(rows)))
    column = np.full(cost.shape, NOWHERE)
    for number, kind in enumerate(kinds):
        column[number] = costs[kind].argmin(axis=1)
        cost[number] = costs[kind][rows, column[number]]
        if kind == MoveKind.FAILOVER:
            column[number] = NOWHERE
    best = cost.min(axis=0)
    column[cost > best] = len(targets.nodes)
    # Of equal ones the first is taken, and kinds are in their order.
    first = column.argmin(axis=0)
    reached = np.append(targets.nodes, NOWHERE)[column[first, rows]]
    return BestMoves(block.instances, best, np.array([KINDS.index(kind) for kind in kinds])[first], reached)
