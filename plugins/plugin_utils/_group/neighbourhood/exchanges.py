# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which two instances should change places: about what each of all exchanges would gain, the best one of every instance.

    evaluator = ExchangeEvaluator(evaluation, price, arrivals(evaluation, targets, instances))
    evaluator.best(ones, others, least)       # [Exchange], the most promising first

Where every node carries equally many instances, the least step to something better is an exchange: of the nodes of two
primaries, or of two secondaries. There are as many as pairs of instances, so that they are estimated together, from the
spreads, the memory kept for failovers, tags and locations, and the price. Limits are ignored, and what two moves
only change together of memory kept or tags is not either: they are to be evaluated one after the other before they are
believed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Floats, Integers, Singles
from ..cluster.moves import MoveKind
from ..cluster.state import ClusterState
from .effects import Role
from .excess import RepairPrice
from .moves import Evaluation
from .price import PlacementPrice
from .targets import BLOCK_CELLS, Targets


@dataclass(frozen=True)
class Exchange:
    """Two instances exchange their nodes of a role; `gain` is what that is thought to bring."""

    one: int
    other: int
    role: Role
    gain: float

    def moves(self, state: ClusterState) -> list[tuple[int, MoveKind, int]]:
        """Return both moves from a state: the instance, the kind and the target."""
        homes = state.primary if self.role == Role.PRIMARY else state.secondary
        pairs = (self.one, self.other), (self.other, self.one)
        return [(instance, self._kind(state, instance), int(homes[other])) for instance, other in pairs]

    def nodes(self, state: ClusterState) -> list[int]:
        """Return the nodes that both are on."""
        both = [self.one, self.other]
        return [node for node in (*state.primary[both].tolist(), *state.secondary[both].tolist()) if node != NOWHERE]

    def _kind(self, state: ClusterState, instance: int) -> MoveKind:
        if state.secondary[instance] == NOWHERE:
            return MoveKind.FAILOVER_TO_ANY
        return MoveKind.REPLACE_PRIMARY if self.role == Role.PRIMARY else MoveKind.REPLACE_SECONDARY


class ExchangeEvaluator:
    """Looks at exchanges from one state, which must not change while this is used."""

    def __init__(self, evaluation: Evaluation, price: PlacementPrice | RepairPrice, arrivals: Floats | None) -> None:
        self._evaluation, self._state, self._price, self._arrivals = evaluation, evaluation.state, price, arrivals
        # [I]: MiB that the secondary of each keeps without it.
        state = evaluation.state
        mirrored = np.flatnonzero(state.secondary != NOWHERE)
        primary, secondary = state.primary[mirrored], state.secondary[mirrored]
        rest = state.peers.copy()
        rows, first = np.arange(len(rest)), rest.argmax(axis=1)
        rest[rows, first] = -np.inf
        of_others = np.where(first[secondary] == primary, rest.max(axis=1)[secondary], state.peers[rows, first][secondary])
        without = np.zeros(len(state.primary))
        without[mirrored] = np.maximum(of_others, state.peers[secondary, primary] - state.facts.instances.reserves[mirrored])
        self._without = without.astype(np.float32)
        # Estimates need no more than seven digits, and tables of one memory order are looked up and added up much faster.
        self._peers = evaluation.state.peers.astype(np.float32)
        self._peers_by_primary = np.ascontiguousarray(self._peers.T)
        self._memory = evaluation.state.facts.instances.reserves.astype(np.float32)

    def best(self, ones: Integers, others: Integers, least: float) -> list[Exchange]:
        """Return of every one the exchange with another that promises most, if that is at least `least`, the most promising first."""
        found = []
        for role, homes in ((Role.PRIMARY, self._state.primary), (Role.SECONDARY, self._state.secondary)):
            movable, partners = (self._somewhere(instances, homes) for instances in (ones, others))
            for rows in _blocks(movable, len(partners)):
                change = self._changes(rows, partners, role)
                best = change.argmin(axis=1)
                gains = -change[np.arange(len(rows)), best]
                found += [
                    Exchange(int(rows[row]), int(partners[best[row]]), role, float(gains[row])) for row in np.flatnonzero(gains >= least)
                ]
        return sorted(found, key=lambda exchange: -exchange.gain)

    def _somewhere(self, instances: Integers, homes: Integers) -> Integers:
        """Return those instances that have a home, on a node that is up."""
        nodes = homes[instances]
        known: Integers = instances[(nodes != NOWHERE) & ~self._state.offline[nodes]]
        return known

    def _changes(self, ones: Integers, others: Integers, role: Role) -> Singles:
        """Return [R, C]: about how score and price change with each exchange; infinite where there is none."""
        moving, staying = self._state.primary, self._state.secondary
        change_of, kept_of, keepers = self._evaluation.spreads.exchanged_primaries, self._kept_of_primaries, staying
        if role == Role.SECONDARY:
            moving, staying = staying, moving
            change_of, kept_of, keepers = self._evaluation.spreads.exchanged_secondaries, self._kept_by_secondaries, moving
        here, there = moving[ones], moving[others]
        change = change_of(ones, here, others, there)
        change += self._evaluation.reserves.exchanged(*kept_of(ones, others), keepers[ones], keepers[others])
        change += self._price.exchanged(ones, here, others, there, primary=role == Role.PRIMARY)
        if self._state.facts.location_tags:
            change += (
                self._evaluation.penalties.shared_domains(staying[ones][:, None], there)
                - self._evaluation.penalties.shared_domains(staying[ones], here)[:, None]
            )
            change += self._evaluation.penalties.shared_domains(staying[others], here[:, None]) - self._evaluation.penalties.shared_domains(
                staying[others], there
            )
        if role == Role.PRIMARY and self._arrivals is not None:
            change += self._arrivals[np.ix_(ones, there)] + self._arrivals[np.ix_(others, here)].T
        same = here[:, None] == there
        same |= staying[ones][:, None] == there
        same |= here[:, None] == staying[others]
        change[same] = np.inf
        return change

    def _kept_of_primaries(self, ones: Integers, others: Integers) -> tuple[Singles, Singles]:
        """Return [R, C] twice: MiB that the secondaries of each keep when the primaries are exchanged."""
        at_one, at_other = self._kept_for_each_other(ones, others)
        at_one += self._memory[ones][:, None]
        at_other += self._memory[others]
        return self._at_least(at_one, at_other, ones, others)

    def _kept_for_each_other(self, ones: Integers, others: Integers) -> tuple[Singles, Singles]:
        """Return [R, C] twice: MiB that the secondary of each keeps for the primary of the other now."""
        state = self._state
        at_one = self._peers[state.secondary[ones]].take(state.primary[others], axis=1)
        return at_one, self._peers_by_primary[state.primary[ones]].take(state.secondary[others], axis=1)

    def _at_least(self, at_one: Singles, at_other: Singles, ones: Integers, others: Integers) -> tuple[Singles, Singles]:
        """Return the same, but no less than what is kept without the instances."""
        np.maximum(at_one, self._without[ones][:, None], out=at_one)
        return at_one, np.maximum(at_other, self._without[others], out=at_other)

    def _kept_by_secondaries(self, ones: Integers, others: Integers) -> tuple[Singles, Singles]:
        """Return [R, C] twice: MiB that the secondaries keep when they are exchanged."""
        state = self._state
        memory = self._memory
        at_one, at_other = self._kept_for_each_other(ones, others)
        at_one += memory[others]
        at_other += memory[ones][:, None]
        rows, columns = np.nonzero(state.primary[ones][:, None] == state.primary[others])
        at_one[rows, columns] -= memory[ones][rows]
        at_other[rows, columns] -= memory[others][columns]
        return self._at_least(at_one, at_other, ones, others)


def arrivals(evaluation: Evaluation, targets: Targets, instances: Integers) -> Floats | None:
    """Return [I, N]: what tags and locations change when an instance's primary goes to each node; None where there are neither."""
    if not evaluation.penalties.follows:
        return None
    found = np.zeros((len(evaluation.state.primary), len(evaluation.state.offline)))
    for block in targets.blocks(evaluation.state, instances):
        found[np.ix_(block.instances, targets.nodes)] = evaluation.penalties.arrivals(block)
    return found


def _blocks(instances: Integers, width: int) -> Iterator[Integers]:
    """Yield instances in blocks of convenient size for tables so wide."""
    size = max(BLOCK_CELLS // max(width, 1), 1)
    for start in range(0, len(instances) if width else 0, size):
        yield instances[start : start + size]
