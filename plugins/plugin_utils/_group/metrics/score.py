# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The score of a cluster or a group: how unevenly its nodes are used, and what is wrong with it. Lower is better.

    scorer = Scorer(state, ScoreMode.HTOOLS)                   # the whole cluster, as hail allocates
    scorer = Scorer(state, ScoreMode.HTOOLS, state.group_nodes(g))   # one group, as hbal and evacuation do
    scorer.score(state), scorer.metrics(state)                 # a number; every metric by name
    scorer.primary_scores(state, instance, primaries)          # [len(primaries)]: score with the instance put on each
    scorer.pair_scores(state, instance, primaries, secondaries)    # [len(primaries), len(secondaries)]

The last two want an instance that is nowhere (`with state.lifted(i):` for one that lives somewhere) and targets that
are online members. They read the state and leave it alone. A scorer is made for a state's capacities, its members and
which nodes are offline; make a new one when a node goes offline, not after a move.

Mode `htools` has the metrics, weights and values of Ganeti's htools 3.0. Mode `capacity` differs where those mislead:
loads are relative to the node's share of the members' capacity (CPU: cores times speed, memory: MiB, disk: spindles),
so that a node twice as large is expected to carry twice as much; a node without a resource takes no part in its
metrics; N+1 follows the books and accepts an exact fit. With equal nodes both give the same spread of loads. No mode
ever gives NaN: a node without spindles takes no part in `spindles_cv`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Booleans, Facts, Floats, Integers, Quantity
from ..cluster.state import ClusterState
from .limits import separated_by_slot
from .skew import Arrivals, too_many

_BLOCK = 2**15
"""Numbers that are computed at a time: 256 KiB."""


def add_spread_after(
    scores: Floats,
    weight: float,
    centred_values: tuple[Floats, float, int],
    primaries: Integers,
    secondaries: Integers,
    add: Floats,
    add_there: Floats,
) -> None:
    """Add to [P, S] or [P, 1] the weighted standard deviation when the values of a primary and a secondary change.

    With values centred on their mean the new variance is (Q + sum d(d + 2x))/n - (sum d / n)^2, which is exact and
    has no cancellation trouble; it is an outer sum, so that only nodes, not pairs, are computed one by one.
    """
    centred, squares, count = centred_values
    if not count:
        return
    left = (add * (add + 2 * centred[primaries]) + squares) / count
    if not add_there.any():
        scores += weighted_root(left - (add / count) ** 2, weight)[:, None]
        return
    right = add_there * (add_there + 2 * centred[secondaries]) / count
    for rows in blocks(scores):
        variance = left[rows, None] + right
        shift = add[rows, None] + add_there
        shift /= count
        variance -= np.square(shift, out=shift)
        scores[rows] += weighted_root(variance, weight)


def blocks(matrix: Floats) -> Iterator[slice]:
    """Yield slices of rows that are small enough for what is computed of them to stay in the processor's cache."""
    rows = max(1, _BLOCK // max(1, matrix.shape[1]))
    for start in range(0, len(matrix), rows):
        yield slice(start, start + rows)


def weighted_root(variance: Floats, weight: float) -> Floats:
    """Return weight times the standard deviation, in place of the variance."""
    np.maximum(variance, 0.0, out=variance)
    np.sqrt(variance, out=variance)
    variance *= weight
    return variance


class ScoreMode(StrEnum):
    """Which score; see the module's docstring."""

    HTOOLS = "htools"
    CAPACITY = "capacity"


@dataclass(frozen=True)
class Metric:
    """A metric's value and weight; it adds `weight * value` to the score."""

    name: str
    weight: float
    value: float


@dataclass(frozen=True)
class Spread:
    """A standard deviation over the online members of `offset + sum(rate * quantity)`."""

    name: str
    weight: float
    terms: tuple[tuple[Quantity, Floats], ...]
    """Rates are [N], and 0 on nodes that take no part."""
    offset: Floats
    member: Booleans
    """[N]: online members that take part."""

    def values(self, state: ClusterState) -> Floats:
        """Return [N]."""
        total = self.offset.copy()
        for quantity, rate in self.terms:
            total += rate * state.quantities[quantity]
        return total

    def change(self, need: Floats, nodes: Integers) -> Floats:
        """Return how the values of `nodes` change by a need [Q]."""
        total = np.zeros(len(nodes))
        for quantity, rate in self.terms:
            if need[quantity]:
                total += rate[nodes] * need[quantity]
        return total


WEIGHTS = {
    "free_mem_cv": 0.5,
    "free_disk_cv": 0.5,
    "n1_cnt": 1.0,
    "reserved_mem_cv": 1.0,
    "offline_all_cnt": 4.0,
    "offline_pri_cnt": 16.0,
    "vcpu_ratio_cv": 0.5,
    "cpu_load_cv": 1.0,
    "mem_load_cv": 1.0,
    "disk_load_cv": 1.0,
    "net_load_cv": 1.0,
    "pri_tags_score": 2.0,
    "spindles_cv": 0.5,
    "free_mem_cv_forth": 0.5,
    "free_disk_cv_forth": 0.5,
    "vcpu_ratio_cv_forth": 0.5,
    "spindles_cv_forth": 0.5,
    "location_score": 1.0,
    "location_exclusion_score": 1.0,
    "reserved_mem_rtotal": 0.25,
}
"""Every metric by name, in htools' order, with htools' weights."""

RULE = 50.0
"""As how many exclusion tags in conflict a broken rule counts: it is repaired before anything else but instances that are down."""

_REPEATED = {"free_disk_cv": "free_disk_cv_forth", "vcpu_ratio_cv": "vcpu_ratio_cv_forth", "spindles_cv": "spindles_cv_forth"}
"""Metrics that are equal as long as no instance is forthcoming."""


class Scorer:
    """Scores states that share facts, members and offline nodes; see the module's docstring.

    `online` are the members that count, `spreads` the standard deviations that make up the score (equal ones as one),
    `memory_rate` [N] is 1 / total memory, `reserving` [N] the nodes that take part in the spread of reserved memory, and `least_left`
    the MiB beyond what is reserved below which a node fails N+1.
    """

    def __init__(self, state: ClusterState, mode: ScoreMode, members: Integers | None = None) -> None:
        facts = state.facts
        self.mode = mode
        self.members = np.arange(len(facts.nodes.names)) if members is None else members
        self.online = self.members[~state.offline[self.members]]
        self._dark = self.members[state.offline[self.members]]
        online = np.zeros(len(facts.nodes.names), dtype=bool)
        online[self.online] = True
        self.least_left = 1 if mode == ScoreMode.HTOOLS else 0
        self._spreads = _spreads(facts, mode, online)
        self.spreads = self._spreads if facts.forthcoming else _combine(self._spreads)
        self.memory_rate = _inverse(facts.nodes.total_memory)
        self.reserving = online & (facts.nodes.total_memory > 0 if mode == ScoreMode.CAPACITY else True)

    def metrics(self, state: ClusterState) -> list[Metric]:
        """Return every metric, in the order of WEIGHTS."""
        values = {spread.name: _deviation(spread.values(state), spread.member) for spread in self._spreads}
        reserved = state.reserved * self.memory_rate
        values["reserved_mem_cv"] = _deviation(reserved, self.reserving)
        values["reserved_mem_rtotal"] = float(reserved[self.online].sum())
        values |= self._counted(state)
        return [Metric(name, weight, values[name]) for name, weight in WEIGHTS.items()]

    def _counted(self, state: ClusterState) -> dict[str, float]:
        """Return the metrics that count what is wrong, by name, in the order of WEIGHTS."""
        counts = state.quantities[Quantity.PRIMARIES] + state.quantities[Quantity.SECONDARIES]
        tagged = bool(state.facts.slots.names)
        return {
            "n1_cnt": float(counts[self.online] @ self.failing(state)[self.online]),
            "offline_all_cnt": float(counts[self._dark].sum()),
            "offline_pri_cnt": float(state.quantities[Quantity.PRIMARIES, self._dark].sum()),
            "pri_tags_score": self._tags_score(state) if tagged else 0.0,
            "location_score": float(state.location[self.online].sum()),
            "location_exclusion_score": float(np.maximum(self.tags_by_location(state) - 1, 0).sum()) if tagged else 0.0,
        }

    def _tags_score(self, state: ClusterState) -> float:
        """Return how many primaries are too many for exclusion tags and rules; a strict rule counts as RULE tags."""
        slots, weights = state.facts.slots, slot_weights(state.facts, self.mode)
        over = np.maximum(state.tag_counts[self.online] - slots.limit[self.online], 0).sum(axis=0)
        near = slots.together | slots.drawn
        apart = float((separated_by_slot(state, near) * weights[near]).sum()) if near.any() else 0.0
        return float((over * weights).sum()) + apart + sum(weights[spread.slot] * too_many(state, spread) for spread in slots.spreads)

    def score(self, state: ClusterState) -> float:
        """Return the weighted sum of all metrics."""
        return sum(metric.weight * metric.value for metric in self.metrics(state))

    def failing(self, state: ClusterState) -> Booleans:
        """Return [N]: whether a node counts as failing N+1 in this mode."""
        if self.mode == ScoreMode.HTOOLS:
            return state.fails_n1
        return self._short(state.quantities[Quantity.MEMORY], state.reserved)

    def primary_scores(self, state: ClusterState, instance: int, primaries: Integers) -> Floats:
        """Return the score with `instance` on each of `primaries` and on no second node."""
        return self._scores(state, instance, primaries, np.array([NOWHERE]))[:, 0]

    def pair_scores(self, state: ClusterState, instance: int, primaries: Integers, secondaries: Integers) -> Floats:
        """Return [len(primaries), len(secondaries)]: the score with `instance` on each pair; equal nodes are no pair (inf)."""
        scores = self._scores(state, instance, primaries, secondaries)
        scores[primaries[:, None] == secondaries[None, :]] = np.inf
        return scores

    def _scores(self, state: ClusterState, instance: int, primaries: Integers, secondaries: Integers) -> Floats:
        alone = len(secondaries) == 1 and secondaries[0] == NOWHERE
        scores = self._constant(state) + np.zeros((len(primaries), len(secondaries)))
        scores += self._primary_penalties(state, instance, primaries)[:, None]
        need = state.facts.instances.as_primary[:, instance]
        need_there = np.zeros(len(need)) if alone else state.facts.instances.as_secondary[:, instance]
        for spread in self.spreads:
            add = spread.change(need, primaries)
            add_there = np.zeros(1) if alone else spread.change(need_there, secondaries)
            add_spread_after(
                scores, spread.weight, centred_values(spread.values(state), spread.member), primaries, secondaries, add, add_there
            )
        if alone:
            return scores + self._reserved_score(state)
        for rows in blocks(scores):
            scores[rows] += self._reserved_scores_after(state, instance, primaries[rows], secondaries)
        if state.facts.instances.real[instance] and state.facts.location_tags:
            scores += state.facts.nodes.shared_locations[np.ix_(primaries, secondaries)]
        return scores

    def _constant(self, state: ClusterState) -> float:
        """Return what the metrics without a spread give before the instance is placed; all but reserved memory."""
        return sum(WEIGHTS[name] * value for name, value in self._counted(state).items())

    def _primary_penalties(self, state: ClusterState, instance: int, primaries: Integers) -> Floats:
        """Return what N+1, tags and locations add to the score on each primary."""
        facts = state.facts.instances
        tags = list(facts.exclusion[instance])
        broken = state.tag_counts[primaries][:, tags] >= state.facts.slots.limit[primaries][:, tags]
        weights = slot_weights(state.facts, self.mode)
        penalty: Floats = WEIGHTS["pri_tags_score"] * (
            (broken * weights[tags]).sum(axis=1) + self._company(state, tags, primaries, weights)
        )
        if not facts.real[instance]:
            return penalty
        need = facts.as_primary[:, instance]
        left = state.quantities[Quantity.MEMORY, primaries] + need[Quantity.MEMORY]
        penalty += self._n1_change(state, primaries, self._short(left, state.reserved[primaries]))
        nodes = state.facts.nodes
        penalty += facts.wishes[instance] - nodes.locations[primaries][:, list(facts.desired[instance])].sum(axis=1)
        if tags and nodes.locations.shape[1]:
            repeated = (self.tags_by_location(state)[:, tags] > 0).sum(axis=1)
            penalty += nodes.locations[primaries] @ repeated
        return penalty

    def _company(self, state: ClusterState, own: Sequence[int], primaries: Integers, weights: Floats) -> Floats | float:
        """Return [P]: what an instance that is nowhere adds on each primary for affinity and for spreads."""
        slots, total = state.facts.slots, np.zeros(len(primaries))
        for slot in own:
            if slots.together[slot] or slots.drawn[slot]:
                counts = state.tag_counts[:, slot]
                most = counts.max(initial=0)
                total += weights[slot] * (1 + most - np.maximum(most, counts[primaries] + 1))
        for spread in slots.spreads:
            if spread.slot in own:
                total += weights[spread.slot] * Arrivals.of(state, spread, NOWHERE).change(spread, primaries)
        return total

    def _n1_change(self, state: ClusterState, nodes: Integers, fails: Booleans) -> Floats:
        """Return the change of `n1_cnt` when one instance comes to a node, [..., len(nodes)] as `fails`, or without the first axes."""
        count = (state.quantities[Quantity.PRIMARIES] + state.quantities[Quantity.SECONDARIES])[nodes]
        before = count * self.failing(state)[nodes]
        if not fails.any():
            return -WEIGHTS["n1_cnt"] * before
        change: Floats = WEIGHTS["n1_cnt"] * ((count + 1) * fails - before)
        return change

    def _short(self, left: Floats, reserved: Floats) -> Booleans:
        short: Booleans = left - reserved < self.least_left
        return short

    def _reserved_score(self, state: ClusterState) -> float:
        reserved = state.reserved * self.memory_rate
        spread = WEIGHTS["reserved_mem_cv"] * _deviation(reserved, self.reserving)
        return spread + WEIGHTS["reserved_mem_rtotal"] * float(reserved[self.online].sum())

    def _reserved_scores_after(self, state: ClusterState, instance: int, primaries: Integers, secondaries: Integers) -> Floats:
        """Return [P, S]: reserved memory's two metrics and the secondaries' N+1 with the instance on each pair."""
        facts = state.facts.instances
        reserved = state.reserved[secondaries]
        after = state.peers.T[np.ix_(primaries, secondaries)]
        after += facts.reserves[instance]
        np.maximum(after, reserved, out=after)
        values = state.reserved * self.memory_rate
        add = after - reserved
        add *= self.memory_rate[secondaries]
        scores = add + float(values[self.online].sum())
        scores *= WEIGHTS["reserved_mem_rtotal"]
        scores += self._reserved_spread_after(values, secondaries, add)
        if facts.real[instance]:
            fails = self._short(state.quantities[Quantity.MEMORY, secondaries], after)
            scores += self._n1_change(state, secondaries, fails)
        return scores

    def _reserved_spread_after(self, values: Floats, secondaries: Integers, add: Floats) -> Floats | float:
        """Return [P, S]: what the spread of reserved memory adds to the score when `add` comes to the secondaries' values."""
        centred, squares, count = centred_values(values, self.reserving)
        if not count:
            return 0.0
        add = add * self.reserving[secondaries]
        variance = add + 2 * centred[secondaries]
        variance *= add
        variance += squares
        variance /= count
        add /= count
        variance -= np.square(add, out=add)
        return weighted_root(variance, WEIGHTS["reserved_mem_cv"])

    def tags_by_location(self, state: ClusterState) -> Integers:
        """Return [L, T]: real primaries with the tag on online members in the failure domain."""
        locations = state.facts.nodes.locations[self.online].astype(np.int64)
        counts: Integers = locations.T @ self._real_tag_counts(state)[self.online]
        # Only exclusion tags are also about failure domains.
        counts[:, state.facts.slots.soft :] = 0
        return counts

    def _real_tag_counts(self, state: ClusterState) -> Integers:
        if not state.facts.forthcoming or not state.facts.location_tags:
            return state.tag_counts
        counts = state.tag_counts.copy()
        for instance in np.flatnonzero(~state.facts.instances.real & (state.primary != NOWHERE)):
            np.subtract.at(counts, (state.primary[instance], list(state.facts.instances.exclusion[instance])), 1)
        return counts


def slot_weights(facts: Facts, mode: ScoreMode) -> Floats:
    """Return [T]: as how many exclusion tags in conflict each slot counts; htools do not compare virtual CPUs with a node's CPUs."""
    slots = facts.slots
    weights = np.where(np.arange(len(slots.names)) < slots.soft, 1.0, np.where(slots.strict, RULE, slots.weights))
    return np.where(slots.cpus > 0, 0.0, weights) if mode == ScoreMode.HTOOLS else weights


def _spreads(facts: Facts, mode: ScoreMode, online: Booleans) -> tuple[Spread, ...]:
    """Return every metric that is a standard deviation of something linear in the quantities."""
    nodes = facts.nodes
    memory, cpus = nodes.total_memory > 0, nodes.total_cpus > 0
    disk = np.where(nodes.exclusive, nodes.total_spindles > 0, nodes.total_disk > 0)
    spindles = nodes.spindle_limit > 0
    disk_rate = np.where(nodes.exclusive, 0.0, _inverse(nodes.total_disk))
    exclusive_rate = np.where(nodes.exclusive, _inverse(nodes.total_spindles), 0.0)
    spindle_rate = np.where(nodes.exclusive, 0.0, _inverse(nodes.spindle_limit))
    cpu_rate = _inverse(nodes.total_cpus * nodes.cpu_speed)
    none = np.zeros(len(nodes.names))
    diskless_is_free = np.where(disk, 0.0, 1.0)
    every = np.ones(len(nodes.names), dtype=bool)
    if mode == ScoreMode.HTOOLS:
        memory, disk, cpus = every, every, every

    def spread(name: str, part: Booleans, terms: Sequence[tuple[Quantity, Floats]], offset: Floats = none) -> Spread:
        member = online & part
        return Spread(name, WEIGHTS[name], tuple((quantity, rate * member) for quantity, rate in terms), offset, member)

    found = []
    for suffix, left, storage, physical, used, pressure in (
        ("", Quantity.MEMORY, Quantity.DISK, Quantity.SPINDLES, Quantity.CPUS, Quantity.SPINDLE_USE),
        (
            "_forth",
            Quantity.MEMORY_PLANNED,
            Quantity.DISK_PLANNED,
            Quantity.SPINDLES_PLANNED,
            Quantity.CPUS_PLANNED,
            Quantity.SPINDLE_USE_PLANNED,
        ),
    ):
        found += [
            spread(f"free_mem_cv{suffix}", memory, [(left, _inverse(nodes.total_memory))]),
            spread(f"free_disk_cv{suffix}", disk, [(storage, disk_rate), (physical, exclusive_rate)], diskless_is_free),
            spread(f"vcpu_ratio_cv{suffix}", cpus, [(used, cpu_rate)]),
            spread(f"spindles_cv{suffix}", spindles, [(pressure, spindle_rate)]),
        ]
    for name, quantity, capacity in (
        ("cpu_load_cv", Quantity.CPU_LOAD, nodes.total_cpus * nodes.cpu_speed),
        ("mem_load_cv", Quantity.MEMORY_LOAD, nodes.total_memory),
        ("disk_load_cv", Quantity.DISK_LOAD, nodes.total_spindles),
        ("net_load_cv", Quantity.NET_LOAD, np.ones(len(nodes.names))),
    ):
        part = every if mode == ScoreMode.HTOOLS else capacity > 0
        found.append(spread(name, part, [(quantity, every.astype(float) if mode == ScoreMode.HTOOLS else _share(capacity, online))]))
    return tuple(found)


def _combine(spreads: tuple[Spread, ...]) -> tuple[Spread, ...]:
    """Return the spreads with those that repeat another left out, and their weight added to it."""
    weight = {name: WEIGHTS[name] + WEIGHTS[again] for name, again in _REPEATED.items()}
    return tuple(
        Spread(spread.name, weight.get(spread.name, spread.weight), spread.terms, spread.offset, spread.member)
        for spread in spreads
        if spread.name not in _REPEATED.values()
    )


def _share(capacity: Floats, online: Booleans) -> Floats:
    """Return mean capacity of the online nodes that have any, divided by each node's."""
    part = online & (capacity > 0)
    mean = float(capacity[part].mean()) if part.any() else 0.0
    return mean * _inverse(capacity)


def _inverse(values: Floats) -> Floats:
    """Return 1/x, and 0 for 0."""
    inverse: Floats = np.divide(1.0, values, out=np.zeros(len(values)), where=values > 0)
    return inverse


def centred_values(values: Floats, member: Booleans) -> tuple[Floats, float, int]:
    """Return the values less their mean (0 outside), the sum of their squares, and how many there are."""
    count = int(np.count_nonzero(member))
    if not count:
        return np.zeros(len(values)), 0.0, 0
    centred = np.where(member, values - np.add.reduce(values[member]) / count, 0.0)
    return centred, float((centred * centred).sum()), count


def _deviation(values: Floats, member: Booleans) -> float:
    """Return the population standard deviation over the members; 0 for none."""
    _values, squares, count = centred_values(values, member)
    return float(np.sqrt(squares / count)) if count else 0.0
