# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The best pair of nodes for copy after copy of a mirrored instance, without a look at all pairs.

    search = PairSearch(room, nodes, rules, scorer)      # online nodes of one group; the instance is at position 0
    search.best()                                        # (what the score would be but for a constant, place), None when no pair fits
    search.refresh(place)                                # once the copy has been put there

What a pair adds to the score is what its primary adds, what its secondary adds, and three things that hang on both: spreads that
both change (disk), memory kept for failovers, failure domains that both share. A standard deviation is a root of a sum of what both
change, and a root is nowhere below its chord, so that it has a lower bound that is a sum of what each adds. The pairs that are promising
by those bounds are evaluated exactly, until no other can be better. Limits are those of metrics.verdicts, the score is that of
metrics.score; only the order of computing is another one, so that what a copy does not touch is not computed again.
"""

from __future__ import annotations

from ..._common.libraries import np
from ..cluster.arrays import ANYWHERE, NOWHERE, Booleans, Floats, Integers, Quantity
from ..cluster.moves import Place
from ..cluster.state import ClusterState
from ..metrics.limits import LIMITED, REDUNDANCY, capacity, counted_as_used, pool_rows, usage
from ..metrics.score import WEIGHTS, ScoreMode, Scorer
from ..metrics.verdicts import Rules

_FIRST = (8, 24)
"""Primaries and secondaries that are evaluated first; four times as many each time that none of their pairs fits."""
_SPARE = 4
"""How many more of each than were promising for the last copy are evaluated for the next."""
_CLOSE = 1e-9
"""How far a bound may be off by rounding."""
_MANY = 1024
"""Number of pairs that may be evaluated without better bounds."""
_FREE = float("inf")
_EVERY = slice(None)


def can_search(room: ClusterState, rules: Rules) -> bool:
    """Return whether the pairs of a mirrored instance hang together as this search takes it."""
    facts = room.facts
    pool = int(facts.instances.pool[0])
    strict = rules.soft and not rules.excuse_failing and not rules.disk_reserve
    own_storage = pool == ANYWHERE or not facts.pool_shared[pool]
    return bool(strict and own_storage and facts.instances.real[0] and not facts.instances.exclusion[0])


class PairSearch:
    """Looks for pairs in one group; K spreads, M members of the scorer, G nodes of the group."""

    def __init__(self, room: ClusterState, nodes: Integers, rules: Rules, scorer: Scorer) -> None:
        self._room, self._nodes, self._scorer, self._rules = room, nodes, scorer, rules
        self._column = np.full(len(room.offline), NOWHERE)
        self._column[nodes] = np.arange(len(nodes))
        self._limits = _Limits(room, rules)
        self._spreads = _Spreads(room, nodes, scorer)
        self._reserved = _Reserved(room, nodes, scorer)
        self._at_primary = np.empty(len(nodes))
        """[G]: what the score gains at the node itself as the primary; infinite where it cannot be."""
        self._at_secondary = np.empty(len(nodes))
        """[G]: the least that N+1 of the node adds as the secondary; infinite where it cannot be."""
        self._sizes = _FIRST
        # [G]: how many of the locations that the instance desires each node lacks as its primary.
        facts = room.facts.instances
        met = room.facts.nodes.locations[nodes][:, list(facts.desired[0])].sum(axis=1)
        self._wishes = (facts.wishes[0] - met).astype(float)
        self._shared = room.facts.nodes.shared_locations if room.facts.location_tags else None
        self._keepable = np.empty(len(nodes))
        """[G]: the MiB that the node may keep for failovers; -inf where it cannot be the secondary."""
        self._count, self._failing = np.empty(len(nodes)), np.empty(len(nodes))
        """[G]: roles that the node has, and of how many of them it fails N+1."""
        self._judge(nodes)

    def refresh(self, place: Place) -> None:
        """Take notice of a copy at a place."""
        nodes = np.array(place)
        self._spreads.refresh(nodes)
        self._reserved.refresh(nodes)
        if self._column[place[0]] != NOWHERE:
            self._judge(nodes)

    def _judge(self, nodes: Integers) -> None:
        """Compute which roles some nodes of the group may have, and how these change N+1."""
        room, columns, least = self._room, self._column[nodes], self._scorer.least_left
        quantities = room.quantities[:, nodes]
        spare = quantities[Quantity.MEMORY] - room.reserved[nodes]
        count = quantities[Quantity.PRIMARIES] + quantities[Quantity.SECONDARIES]
        short = spare < least
        failing = count * (room.fails_n1[nodes] if self._scorer.mode == ScoreMode.HTOOLS else short)
        change = (count + 1) * (spare + room.facts.instances.as_primary[Quantity.MEMORY, 0] < least) - failing
        first, second = self._limits.fits(nodes)
        self._count[columns], self._failing[columns] = count, failing
        self._at_primary[columns] = np.where(first, WEIGHTS["n1_cnt"] * change + self._wishes[columns], _FREE)
        self._at_secondary[columns] = np.where(second, np.where(short, 0.0, -WEIGHTS["n1_cnt"] * failing), _FREE)
        # A node that fails N+1 already may continue to, but no more than now.
        keepable = np.maximum(quantities[Quantity.MEMORY] - self._rules.least_left, room.reserved[nodes])
        self._keepable[columns] = np.where(second, keepable, -_FREE)

    def best(self) -> tuple[float, Place] | None:
        """Return the pair after which the score is best, of equals that with the last primary, and of those with the last secondary."""
        self._alone = self._spreads.look() + self._at_primary, self._reserved.bounds() + self._at_secondary
        first, second = self._bounds(_EVERY, _EVERY)
        if not first.min(initial=_FREE) + second.min(initial=_FREE) < _FREE:
            return None
        rows, columns = _lowest(first, self._sizes[0]), _lowest(second, self._sizes[1])
        costs = self._costs(rows, columns)
        while not (least := float(costs.min())) < _FREE:
            if len(rows) == len(first) and len(columns) == len(second):
                return None
            rows, columns = _lowest(first, 4 * len(rows)), _lowest(second, 4 * len(columns))
            costs = self._costs(rows, columns)
        ones, others = _not_worse(first, second, least)
        sizes = int(np.count_nonzero(ones)), int(np.count_nonzero(others))
        if sizes != (np.count_nonzero(ones[rows]), np.count_nonzero(others[columns])):
            rows, columns = self._narrowed(np.flatnonzero(ones), np.flatnonzero(others), least)
            costs = self._costs(rows, columns)
        # The next copy will have about as many to choose among.
        self._sizes = _FIRST if sizes[0] * sizes[1] > _MANY else (sizes[0] + _SPARE, sizes[1] + _SPARE)
        at = costs.size - 1 - int(costs.ravel()[::-1].argmin())
        row, column = divmod(at, len(columns))
        return float(costs[row, column]), (int(self._nodes[rows[row]]), int(self._nodes[columns[column]]))

    def _narrowed(self, rows: Integers, columns: Integers, least: float) -> tuple[Integers, Integers]:
        """Return those of some positions that may make a pair that costs no more; bounds are the tighter the fewer they are for."""
        before = _FREE
        while _MANY < len(rows) * len(columns) < before / 2:
            before = len(rows) * len(columns)
            first, second = _not_worse(*self._bounds(rows, columns), least)
            rows, columns = rows[first], columns[second]
        return rows, columns

    def _bounds(self, rows: Integers | slice, columns: Integers | slice) -> tuple[Floats, Floats]:
        """Return [R] and [C]: no pair of some positions costs less than what its primary and its secondary add up to."""
        first, second = self._spreads.chords(rows, columns)
        return first + self._alone[0][rows], second + self._alone[1][columns]

    def _costs(self, rows: Integers, columns: Integers) -> Floats:
        """Return [R, C]: what pairs of positions cost, infinite where they do not fit."""
        room, primaries, secondaries = self._room, self._nodes[rows], self._nodes[columns]
        costs = self._spreads.costs(rows, columns)
        costs += self._at_primary[rows][:, None]
        kept = room.peers[secondaries, primaries[:, None]] + room.facts.instances.reserves[0]
        reserved = room.reserved[secondaries]
        np.maximum(kept, reserved, out=kept)
        costs += self._reserved.costs(kept - reserved, secondaries)
        fails = kept > room.quantities[Quantity.MEMORY, secondaries] - self._scorer.least_left
        costs += WEIGHTS["n1_cnt"] * ((self._count[columns] + 1) * fails - self._failing[columns])
        if self._shared is not None:
            costs += self._shared[primaries[:, None], secondaries]
        costs[(kept > self._keepable[columns]) | (rows[:, None] == columns)] = _FREE
        return costs


class _Limits:
    """Which nodes may be a copy's primary, and which its secondary but for what they keep for the failure of the primary."""

    def __init__(self, room: ClusterState, rules: Rules) -> None:
        facts = room.facts.instances
        most = np.array(capacity(room.facts, rules.least_left))
        disks = [q for q in LIMITED if q not in (Quantity.MEMORY, Quantity.MEMORY_PLANNED, Quantity.CPUS, Quantity.CPUS_PLANNED)]
        if not facts.on_node_disk[0]:
            most[disks] = _FREE
        elif not facts.spindles_known[0]:
            most[[Quantity.SPINDLES, Quantity.SPINDLES_PLANNED]] = np.where(room.facts.nodes.exclusive, -_FREE, _FREE)
        pools = pool_rows(room.facts)
        most[REDUNDANCY + 1 :] = _FREE
        taken = np.zeros(len(most))
        pool = int(facts.pool[0])
        if pool != ANYWHERE:
            most[pools][pool] = np.where(room.facts.nodes.pools[:, pool], 0.0, -_FREE)
            taken[pools][pool] = facts.disk[0]
        self._room = room
        self._most, self._needs = np.array([most, most]), np.array([taken, taken])[:, :, None]
        first, second = self._needs[:, :, 0]
        first[: len(LIMITED)] = counted_as_used(facts.as_primary[:, 0])
        first[REDUNDANCY] = first[Quantity.MEMORY]
        if not first[REDUNDANCY]:
            # A node that fails N+1 already does not fail it by more with a copy that needs no memory.
            self._most[0, REDUNDANCY] = _FREE
        second[: len(LIMITED)] = counted_as_used(facts.as_secondary[:, 0])
        second[Quantity.MEMORY] += facts.reserves[0]
        second[Quantity.MEMORY_PLANNED] += facts.memory[0] if facts.models[0].reserves_memory else 0.0
        self._most[1, [REDUNDANCY, Quantity.CPUS, Quantity.CPUS_PLANNED]] = _FREE

    def fits(self, nodes: Integers) -> Booleans:
        """Return [2, K]: whether some nodes may be the primary, and the secondary."""
        fits: Booleans = (usage(self._room, nodes) + self._needs <= self._most[:, :, nodes]).all(axis=1)
        return fits


class _Spreads:
    """What a pair makes of the standard deviations: those that only the primary changes, then those that both change.

    With values x centred on their mean, n of them and Q the sum of their squares, a variance is (Q + a(a + 2x) + b(b + 2y))/n -
    ((a + b)/n)^2 when a primary's value x grows by a and a secondary's y by b.
    """

    def __init__(self, room: ClusterState, nodes: Integers, scorer: Scorer) -> None:
        facts = room.facts.instances
        every = np.arange(len(room.offline))
        as_primary, as_secondary = facts.as_primary[:, 0], facts.as_secondary[:, 0]
        changed = [(spread, spread.change(as_primary, every), spread.change(as_secondary, every)) for spread in scorer.spreads]
        changed = [one for one in changed if one[1].any() or one[2].any()]
        changed.sort(key=lambda one: bool(one[2].any()))
        self._room = room
        self._own = sum(not one[2].any() for one in changed)
        members = scorer.online
        spreads = [one[0] for one in changed]
        self._weights = np.array([spread.weight for spread in spreads])
        self._position = np.full(len(room.offline), -1)
        self._position[members] = np.arange(len(members))
        self._here = None if np.array_equal(members, nodes) else self._position[nodes]
        member = np.array([spread.member[members] for spread in spreads]).reshape(len(spreads), len(members))
        self._member = None if member.all() else member
        self._count = np.maximum(member.sum(axis=1), 1).astype(float)
        self._offset = np.array([spread.offset[members] for spread in spreads]).reshape(member.shape) * member
        self._rates = np.zeros((len(members), len(spreads), len(Quantity)))
        for row, spread in enumerate(spreads):
            for quantity, rate in spread.terms:
                self._rates[:, row, quantity] += rate[members]
        self._values = np.zeros(member.shape)
        count, both = self._count[:, None], slice(self._own, None)
        first = np.array([one[1][nodes] for one in changed]).reshape(len(changed), len(nodes))
        second = np.array([one[2][nodes] for one in changed]).reshape(len(changed), len(nodes))
        # Deviations are the same of values with the other sign; what a primary adds is to be no less than 0.
        signs = np.where(first.sum(axis=1, keepdims=True) < 0, -1.0, 1.0)
        first, second = first * signs, second[both] * signs[both]
        self._offset *= signs
        self._rates *= signs
        self._first, self._first_alone = 2 * first / count, np.square(first) * (1 / count - 1 / count**2)
        self._second = 2 * second / count[both]
        self._second_alone = np.square(second) * (1 / count[both] - 1 / count[both] ** 2)
        # Both together change the mean by more than each alone; the most of that is taken from what the primary changes.
        most = second.max(axis=1, initial=0.0, keepdims=True)
        self._meeting, self._apart = 2 * first[both] / count[both] ** 2, most - second
        self._first_alone[both] -= self._meeting * most
        self._furthest = (self._meeting * (most - second.min(axis=1, initial=0.0, keepdims=True))).max(axis=1, initial=0.0)
        self._both = both
        self.refresh(members)

    def refresh(self, nodes: Integers) -> None:
        """Take notice of what has changed at some nodes."""
        positions = self._position[nodes]
        quantities = self._room.quantities[:, nodes].T
        self._values[:, positions] = self._offset[:, positions] + np.einsum("pkq,pq->kp", self._rates[positions], quantities)

    def look(self) -> Floats:
        """Look at the state as it is now; return [G]: what the spreads that only primaries change come to."""
        centred = self._values - (np.add.reduce(self._values, axis=1) / self._count)[:, None]
        if self._member is not None:
            centred *= self._member
        squares = np.einsum("kn,kn->k", centred, centred) / self._count
        if self._here is not None:
            centred = centred[:, self._here]
        own, both = self._own, self._both
        first = centred * self._first
        first += self._first_alone
        first += squares[:, None]
        second = centred[both] * self._second
        second += self._second_alone
        self._firsts, self._seconds = first[both], second
        alone = np.maximum(first[:own], 0.0)
        np.sqrt(alone, out=alone)
        self._alone = np.einsum("k,kg->g", self._weights[:own], alone)
        return self._alone

    def chords(self, rows: Integers | slice, columns: Integers | slice) -> tuple[Floats, Floats]:
        """Return [R] and [C]: bounds of what the spreads that both roles change come to, for some positions."""
        first, second, weights = self._firsts[:, rows], self._seconds[:, columns], self._weights[self._both]
        low = np.maximum(first.min(axis=1) + second.min(axis=1), 0.0)
        high = np.maximum(first.max(axis=1) + second.max(axis=1) + self._furthest, 0.0)
        low_root = np.sqrt(low)
        total = low_root + np.sqrt(high)
        slope = weights / np.where(total > 0, total, 1.0)
        least = float((weights * low_root).sum() - (slope * low).sum())
        return np.einsum("k,kr->r", slope, first) + least, np.einsum("k,kc->c", slope, second)

    def costs(self, rows: Integers, columns: Integers) -> Floats:
        """Return [R, C]: what pairs come to exactly, of positions among the group's nodes."""
        variance = self._meeting[:, rows][:, :, None] * self._apart[:, columns][:, None]
        variance += self._firsts[:, rows][:, :, None]
        variance += self._seconds[:, columns][:, None]
        np.maximum(variance, 0.0, out=variance)
        np.sqrt(variance, out=variance)
        costs: Floats = np.einsum("k,krc->rc", self._weights[self._both], variance)
        costs += self._alone[rows][:, None]
        return costs


class _Reserved:
    """What a pair makes of the memory that nodes keep for failovers: its sum and its standard deviation."""

    def __init__(self, room: ClusterState, nodes: Integers, scorer: Scorer) -> None:
        self._room, self._nodes, self._rate = room, nodes, scorer.memory_rate
        self._part = scorer.reserving.astype(float)
        self._count = max(int(scorer.reserving.sum()), 1)
        self._values = np.zeros(len(room.offline))
        self._need = room.facts.instances.reserves[0]
        self._rate_here = self._rate[nodes]
        self.refresh(np.arange(len(room.offline)))

    def refresh(self, nodes: Integers) -> None:
        """Take notice of what has changed at some nodes."""
        self._values[nodes] = self._room.reserved[nodes] * self._rate[nodes] * self._part[nodes]

    def bounds(self) -> Floats:
        """Return [G]: the least by which each secondary changes sum and deviation, which are convex in what it keeps more."""
        centred = (self._values - np.add.reduce(self._values) / self._count) * self._part
        self._squares = float((centred * centred).sum()) / self._count
        self._centred = centred
        slope = np.full(len(self._nodes), WEIGHTS["reserved_mem_rtotal"])
        deviation = self._squares**0.5
        if deviation > 0:
            slope += centred[self._nodes] * (WEIGHTS["reserved_mem_cv"] / (self._count * deviation))
        more = np.where(slope < 0, self._need, np.maximum(self._need - self._room.reserved[self._nodes], 0.0))
        bound: Floats = slope * more * self._rate_here + WEIGHTS["reserved_mem_cv"] * deviation
        return bound

    def costs(self, more: Floats, secondaries: Integers) -> Floats:
        """Return [R, C]: what sum and deviation come to, less the sum now, when secondaries keep `more` MiB more."""
        add = more * self._rate[secondaries]
        costs: Floats = WEIGHTS["reserved_mem_rtotal"] * add
        add *= self._part[secondaries]
        variance = add + 2 * self._centred[secondaries]
        variance *= add
        variance /= self._count
        variance += self._squares
        variance -= np.square(add / self._count)
        np.maximum(variance, 0.0, out=variance)
        np.sqrt(variance, out=variance)
        variance *= WEIGHTS["reserved_mem_cv"]
        costs += variance
        return costs


def _lowest(bounds: Floats, most: int) -> Integers:
    """Return the positions of the lowest bounds, `most` at most, in their order."""
    if most >= len(bounds):
        return np.arange(len(bounds))
    found: Integers = np.sort(np.argpartition(bounds, most)[:most])
    return found


def _not_worse(first: Floats, second: Floats, least: float) -> tuple[Booleans, Booleans]:
    """Return which of both are in any pair whose bounds add up to no more."""
    most = least + _CLOSE
    return first <= most - second.min(), second <= most - first.min()
