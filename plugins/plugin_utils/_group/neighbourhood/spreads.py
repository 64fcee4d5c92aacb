# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The spreads of a score after every single move: each standard deviation as one product of small matrices and a root.

    table = SpreadTable.of(state, scorer)             # once: which metrics there are
    values = table.values(state)                      # of one state
    spreads = table.at(values, targets)               # for the moves from it to these nodes
    spreads.after(block, score)                       # their sum after every kind of move, and the rest of the score

A move takes something off one node and puts it on another. With a metric's values centred on their mean, c, of n nodes
whose squares sum to Q, taking dx off node x and adding dt to node t gives the variance

    n var = Q + dx(dx + 2 c_x) + dt(dt + 2 c_t) - (dx + dt)^2 / n

which is exact and has no cancellation trouble. dt is an instance's need times a node's rate, so that all variances of a
block are the product of an [R, 4] and a [4, T] matrix. A need of the primary alone goes from p to t or from p to s, a
need of both roles alike from s or p to t, so that two matrices at most serve all kinds of moves. Metrics that are equal
on every node and change alike are computed once, with their weights added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import Booleans, Floats, Integers, Singles
from ..cluster.moves import MoveKind
from ..cluster.state import ClusterState
from ..metrics.score import Scorer, Spread, centred_values
from .effects import NODE_LEFT, PRIMARY_AFTER, Node
from .targets import Block


@dataclass(frozen=True)
class Transfers:
    """Weighted sums of spreads after a block's moves: what goes from p to t, from s to t, [R, T], from p to s, [R]; `still` without any."""

    primary_to_target: Floats
    secondary_to_target: Floats
    primary_to_secondary: Floats
    still: float


@dataclass(frozen=True)
class SpreadTable:
    """The metrics that are spreads: of what only a primary needs, and of what both roles need."""

    one_role: _Metrics
    both_roles: _Metrics

    @classmethod
    def of(cls, state: ClusterState, scorer: Scorer) -> SpreadTable:
        """Return the metrics of a scorer, equal ones as one."""
        shared = [spread for spread in scorer.spreads if _both_roles(state, spread)]
        alone = [spread for spread in scorer.spreads if not _both_roles(state, spread)]
        return cls(_Metrics.of(state, alone), _Metrics.of(state, shared))

    def values(self, state: ClusterState) -> SpreadValues:
        """Return the metrics' values in one state."""
        return SpreadValues(self.one_role.centred(state), self.both_roles.centred(state))

    def at(self, values: SpreadValues, targets: Integers) -> MovedSpreads:
        """Return the spreads of the state that has these values."""
        return MovedSpreads(_Centred.of(self.one_role, values.one_role, targets), _Centred.of(self.both_roles, values.both_roles, targets))

    def slopes(self, values: SpreadValues) -> tuple[Floats, Floats]:
        """Return [N] each: by how much the spreads rise, about, when an average instance comes to a node as primary, as secondary."""
        both = self.both_roles.slope(values.both_roles)
        return self.one_role.slope(values.one_role) + both, both


@dataclass(frozen=True)
class SpreadValues:
    """The values of metrics in one state less their mean, [K, N] each."""

    one_role: Floats
    both_roles: Floats


@dataclass(frozen=True)
class MovedSpreads:
    """The spreads of one state, which must not change while this is used."""

    _one_role: _Centred
    _both_roles: _Centred

    def after(self, block: Block, score: float) -> tuple[dict[MoveKind, Floats], float]:
        """Return the sum of the spreads after every kind of move, and what the score of the state is without them."""
        one = self._one_role.transfers(block, from_secondary=False)
        both = self._both_roles.transfers(block, from_secondary=block.mirrored)
        # What only a primary needs goes from p to where the primary goes; what both need goes from the node that is left to the target.
        of_primary = {Node.T: one.primary_to_target, Node.S: one.primary_to_secondary[:, None], Node.P: np.full((1, 1), one.still)}
        of_both = {Node.P: both.primary_to_target, Node.S: both.secondary_to_target, None: np.full((1, 1), both.still)}
        return {kind: of_both[NODE_LEFT[kind]] + of_primary[PRIMARY_AFTER[kind]] for kind in block.kinds}, score - one.still - both.still

    def exchanged_primaries(self, ones: Integers, here: Integers, others: Integers, there: Integers) -> Singles:
        """Return [R, C]: the change when each of `ones`, primary on `here`, and each of `others`, primary on `there`, exchange nodes."""
        return self._one_role.exchanged(ones, here, others, there) + self._both_roles.exchanged(ones, here, others, there)

    def exchanged_secondaries(self, ones: Integers, here: Integers, others: Integers, there: Integers) -> Singles:
        """Return the same for secondaries."""
        return self._both_roles.exchanged(ones, here, others, there)


@dataclass(frozen=True)
class _Metrics:
    """K metrics with up to M terms each, those with fewer filled up with a rate of 0."""

    weight: Floats
    """[K]"""
    count: Floats
    """[K]: how many nodes take part."""
    member: Booleans
    """[K, N]"""
    offset: Floats
    """[K, N]"""
    quantity: Integers
    """[M, K]"""
    rate: Floats
    """[M, K, N]"""
    need: Floats
    """[M, K, I]"""
    average: Floats
    """[K, N]: by how much the value of a node rises when an average instance comes."""
    right: Floats
    """[K, 1 + 3 M, N]: what a target contributes to the variances, but for its value."""

    @classmethod
    def of(cls, state: ClusterState, spreads: Sequence[Spread]) -> _Metrics:
        weights: list[float] = []
        kept: list[Spread] = []
        for spread in spreads:
            twin = next((number for number, other in enumerate(kept) if _equal(state, spread, other)), None)
            if not spread.member.any():
                continue
            if twin is None:
                kept.append(spread)
                weights.append(spread.weight)
            else:
                weights[twin] += spread.weight
        nodes, instances = len(state.offline), state.facts.instances.as_primary.shape[1]
        most = max((len(_terms(spread)) for spread in kept), default=0)
        quantity = np.zeros((most, len(kept)), dtype=np.int64)
        rate = np.zeros((most, len(kept), nodes))
        need = np.zeros((most, len(kept), instances))
        for number, spread in enumerate(kept):
            for term, (which, rates) in enumerate(_terms(spread)):
                quantity[term, number], rate[term, number] = which, rates
                need[term, number] = state.facts.instances.as_primary[which]
        member = np.array([spread.member for spread in kept], dtype=bool).reshape(len(kept), nodes)
        offset = np.array([spread.offset for spread in kept]).reshape(len(kept), nodes)
        average = (need.sum(axis=2)[:, :, None] / max(1, instances) * rate).sum(axis=0)
        count = member.sum(axis=1).astype(float)
        parts = [np.ones((len(kept), nodes))]
        for rates in rate:
            parts += [rates**2 * (1 - 1 / count[:, None]), 2 * rates, -2 / count[:, None] * rates]
        return cls(np.array(weights), count, member, offset, quantity, rate, need, average, np.stack(parts, axis=1))

    def centred(self, state: ClusterState) -> Floats:
        """Return [K, N]: the values of a state less their mean."""
        values = self.offset + (self.rate * state.quantities[self.quantity]).sum(axis=0)
        values *= self.member
        centred: Floats = (values - (values.sum(axis=1) / self.count)[:, None]) * self.member
        return centred

    def slope(self, centred: Floats) -> Floats:
        """Return [N]: how fast the weighted deviations rise with the needs of an average instance; 0 for those that are 0."""
        deviation = np.sqrt(np.einsum("kn,kn->k", centred, centred) / self.count)
        steep = np.divide(self.weight, self.count * deviation, out=np.zeros(len(self.weight)), where=deviation > 0)
        slope: Floats = (steep[:, None] * centred * self.average).sum(axis=0)
        return slope


@dataclass(frozen=True)
class _Centred:
    """The metrics' values in one state, less their mean: `centred` [K, N], the sum of their squares [K]."""

    metrics: _Metrics
    centred: Floats
    squares: Floats
    right: Floats
    """[K, 1 + 3 M, T]: what a target contributes to the variances."""

    @classmethod
    def of(cls, metrics: _Metrics, centred: Floats, targets: Integers) -> _Centred:
        right = metrics.right.take(targets, axis=2)
        right[:, 2::3] *= centred.take(targets, axis=1)[:, None]
        return cls(metrics, centred, np.einsum("kn,kn->k", centred, centred), right)

    def transfers(self, block: Block, from_secondary: bool) -> Transfers:
        metrics = self.metrics
        still = metrics.weight * np.sqrt(self.squares / metrics.count)
        need = metrics.need.take(block.instances, axis=2)
        loud = np.asarray(need.any(axis=(0, 2)))
        quiet = float(still[~loud].sum())
        numbers = np.flatnonzero(loud)
        taken = self._taken(need, block.primary)
        to_target = self._to_targets(need, taken, numbers, quiet)
        from_s = self._to_targets(need, self._taken(need, block.secondary), numbers, quiet) if from_secondary else to_target
        return Transfers(to_target, from_s, self._to_nodes(need, taken, block, loud) + quiet, float(still.sum()))

    def exchanged(self, ones: Integers, here: Integers, others: Integers, there: Integers) -> Singles:
        """Return [R, C], in single precision: how the weighted deviations change when instances exchange the nodes that they are on."""
        metrics = self.metrics
        change = np.zeros((len(ones), len(others)), dtype=np.float32)
        variance = np.empty_like(change)
        for number in np.flatnonzero(np.ptp(metrics.need[:, :, others], axis=2).any(axis=0)).tolist():
            left, right = self._exchanged(number, ones, here, others, there)
            _multiply(left.T, right, variance)
            np.maximum(variance, 0.0, out=variance)
            change += np.sqrt(variance, out=variance)
            change -= metrics.weight[number] * np.sqrt(self.squares[number] / metrics.count[number])
        return change

    def _exchanged(self, number: int, ones: Integers, here: Integers, others: Integers, there: Integers) -> tuple[Singles, Singles]:
        """Return [F, R] and [F, C], whose product is a metric's squared weighted deviation after each exchange.

        The value of the one node changes by (n' - n) rate, that of the other by (n - n') rate', if the instances need n and n': each is
        a product of what is known of the one and of the other. So the variance is one, too: the mean of squares less the square of
        the mean.
        """
        metrics = self.metrics
        count, centred = metrics.count[number], self.centred[number]
        need, rate = metrics.need[:, number], metrics.rate[:, number]
        mine, own = _with_sum(rate[:, here], -need[:, ones]), _with_sum(need[:, ones])
        theirs, their_own = _with_sum(need[:, others]), _with_sum(rate[:, there], -need[:, others])
        at_one, at_other = (1 - 1 / count) * _products(mine, mine), (1 - 1 / count) * _products(their_own, their_own)
        at_one[0] += 2 * centred[here] * mine
        at_one[0, 0] += self.squares[number]
        at_other[0] += 2 * centred[there] * their_own
        left = np.concatenate([at_one, _products(own, own), -2 / count * _products(mine, own)])
        right = np.concatenate([_products(theirs, theirs), at_other, _products(theirs, their_own)])
        left *= metrics.weight[number] ** 2 / count
        return left.reshape(-1, len(ones)).astype(np.float32), right.reshape(-1, len(others)).astype(np.float32)

    def _taken(self, need: Floats, nodes: Integers) -> tuple[Floats, Floats]:
        """Return [K, R]: what leaves `nodes` as a change of their values, and n times the variance's part for it."""
        change = -(need * self.metrics.rate.take(nodes, axis=2)).sum(axis=0)
        return change, self.squares[:, None] + change * (change + 2 * self.centred.take(nodes, axis=1))

    def _to_targets(self, need: Floats, taken: tuple[Floats, Floats], numbers: Integers, quiet: float) -> Floats:
        """Return [R, T]: the weighted deviations with the needs taken off nodes (`_taken`) and put on each target."""
        count = self.metrics.count[:, None]
        change, base = taken
        scale = self.metrics.weight[:, None] ** 2 / count
        parts = [scale * (base - change**2 / count)]
        for amount in need:
            parts += [scale * amount**2, scale * amount, scale * amount * change]
        left = np.stack(parts, axis=2)
        total = np.full((left.shape[1], self.right.shape[2]), quiet)
        variance = np.empty_like(total)
        for number in numbers.tolist():
            _multiply(left[number], self.right[number], variance)
            np.maximum(variance, 0.0, out=variance)
            total += np.sqrt(variance, out=variance)
        return total

    def _to_nodes(self, need: Floats, taken: tuple[Floats, Floats], block: Block, loud: Booleans) -> Floats:
        """Return [R]: the weighted deviations of the metrics that are `loud`, with the needs taken from p to s."""
        if not block.mirrored:
            return np.zeros(len(block.instances))
        count = self.metrics.count[:, None]
        change, base = taken
        put = (need * self.metrics.rate.take(block.secondary, axis=2)).sum(axis=0)
        variance = (base + put * (put + 2 * self.centred.take(block.secondary, axis=1)) - (change + put) ** 2 / count) / count
        deviations = self.metrics.weight[:, None] * np.sqrt(np.maximum(variance, 0.0))
        result: Floats = deviations[loud].sum(axis=0)
        return result


def _multiply(left: Floats | Singles, right: Floats | Singles, out: Floats | Singles) -> None:
    """Write the product of two matrices [R, F] and [F, C] into `out`, term by term.

    BLAS adds in another order on each kind of CPU, and what is as good as something else would win on one machine and lose on another.
    """
    np.multiply(left[:, :1], right[:1], out=out)
    term = np.empty_like(out)
    for number in range(1, len(right)):
        out += np.multiply(left[:, number, None], right[number], out=term)


def _with_sum(terms: Floats, times: Floats | None = None) -> Floats:
    """Return [1 + M, R]: before terms [M, R] the sum of their products with others, or 1."""
    first = np.ones(terms.shape[1]) if times is None else (terms * times).sum(axis=0)
    return np.concatenate([first[None], terms])


def _products(one: Floats, other: Floats) -> Floats:
    """Return [P, Q, R] of [P, R] and [Q, R]: all products."""
    products: Floats = one[:, None] * other
    return products


def _terms(spread: Spread) -> list[tuple[int, Floats]]:
    return [(int(quantity), rate) for quantity, rate in spread.terms if rate.any()]


def _both_roles(state: ClusterState, spread: Spread) -> bool:
    return any(state.facts.instances.as_secondary[quantity].any() for quantity, _rate in spread.terms)


def _equal(state: ClusterState, spread: Spread, other: Spread) -> bool:
    """Return whether two metrics are equal now and change alike with every move."""
    needs = state.facts.instances.as_primary
    terms, others = _terms(spread), _terms(other)
    return (
        np.array_equal(spread.member, other.member)
        and len(terms) == len(others)
        and all(np.array_equal(a[1], b[1]) and np.array_equal(needs[a[0]], needs[b[0]]) for a, b in zip(terms, others))
        and np.array_equal(centred_values(spread.values(state), spread.member)[0], centred_values(other.values(state), other.member)[0])
    )
