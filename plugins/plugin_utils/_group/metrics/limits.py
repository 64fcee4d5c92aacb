# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The limits of nodes as one table of rows [R, N]: how much of each is used, how much may be, and which are broken.

    usage(state, nodes)                  # [R, K]: what is used at some nodes; of what must be left: what is left, negated
    capacity(state.facts)                # [R, N]: what may be used by the policies and the hardware
    bounds = Bounds.of_start(state)      # the same, but where a limit is broken already, it may stay as broken
    bounds.holds(after, nodes)           # whether a state keeps all of them at some nodes
    bounds.broken(after, nodes)          # [Broken(node, limit, hard, over)]
    bounds.hard()                        # the same bounds of the hard limits alone

The first rows are the limited quantities, each at its own position in `Quantity`; then REDUNDANCY, a row for each
exclusion tag and rule (`tag_rows`; of a spread the skews of all its scopes) and one for each storage pool (`pool_rows`).
A limit that a node does not have is infinite: its
spindles without exclusive storage, its spindle use with it. To keep every step of a move within limits, test
`bounds.hard()` after each step that is not the last and `bounds` after the last, at the nodes that the step touches.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum

from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Booleans, Facts, Floats, Integers, Quantity
from ..cluster.state import ClusterState
from .skew import Arrivals, skews, too_many


class Limit(IntEnum):
    """What can be in the way; the order carries no meaning."""

    NONE = 0
    MEMORY = 1
    DISK = 2
    POOL = 3
    """The node does not reach the instance's storage pool."""
    SPINDLES = 4
    """Physical spindles of a node with exclusive storage."""
    SPINDLE_USE = 5
    REDUNDANCY = 6
    """Failing over another node's instances would no longer fit (N+1)."""
    CPUS = 7
    TAGS = 8
    TEMPLATE = 9
    """The disk template cannot be used so."""
    DISK_COUNT = 10
    MIGRATION = 11
    SAME_NODE = 12
    RULE = 13
    """A rule of affinity, anti-affinity, a pin, or a spread."""
    HARDWARE = 14
    """The instance cannot run there: the node has too few CPUs, or lacks what else it needs."""

    @property
    def fail_mode(self) -> str:
        """Return htools' word for it."""
        return _FAIL_MODES[self]


_FAIL_MODES = {
    Limit.NONE: "",
    Limit.MEMORY: "FailMem",
    Limit.DISK: "FailDisk",
    Limit.POOL: "FailDisk",
    Limit.SPINDLES: "FailSpindles",
    Limit.SPINDLE_USE: "FailDisk",
    Limit.REDUNDANCY: "FailMem",
    Limit.CPUS: "FailCPU",
    Limit.TAGS: "FailTags",
    Limit.TEMPLATE: "FailDisk",
    Limit.DISK_COUNT: "FailDiskCount",
    Limit.MIGRATION: "FailMig",
    Limit.SAME_NODE: "FailInternal",
    Limit.RULE: "FailTags",
    Limit.HARDWARE: "FailCPU",
}


@dataclass(frozen=True)
class Row:
    """What a row of the table is about. A hard limit holds at every step of a move, a soft one when the move is done."""

    limit: Limit
    hard: bool


_LEFT, _USED = -1.0, 1.0
_QUANTITIES = {
    Quantity.MEMORY: (Row(Limit.MEMORY, hard=True), _LEFT),
    Quantity.MEMORY_PLANNED: (Row(Limit.MEMORY, hard=False), _LEFT),
    Quantity.DISK: (Row(Limit.DISK, hard=True), _LEFT),
    Quantity.DISK_PLANNED: (Row(Limit.DISK, hard=False), _LEFT),
    Quantity.CPUS: (Row(Limit.CPUS, hard=False), _USED),
    Quantity.CPUS_PLANNED: (Row(Limit.CPUS, hard=False), _USED),
    Quantity.SPINDLE_USE: (Row(Limit.SPINDLE_USE, hard=False), _USED),
    Quantity.SPINDLE_USE_PLANNED: (Row(Limit.SPINDLE_USE, hard=False), _USED),
    Quantity.SPINDLES: (Row(Limit.SPINDLES, hard=True), _LEFT),
    Quantity.SPINDLES_PLANNED: (Row(Limit.SPINDLES, hard=False), _LEFT),
}
"""The rows of quantities, in the order of `Quantity`, and whether the quantity is what is left or what is used."""
LIMITED = tuple(_QUANTITIES)
REDUNDANCY = len(LIMITED)
"""The row of N+1: what a node keeps for failovers beyond its free memory."""
_SIGNS = [sign for _row, sign in _QUANTITIES.values()]
_WHOLE_MIB = [*(quantity for quantity, (row, _sign) in _QUANTITIES.items() if row.limit in (Limit.MEMORY, Limit.DISK)), REDUNDANCY]
TOLERANCE = 1e-6
"""By how much sums of floats may be off."""


def rows(facts: Facts) -> tuple[Row, ...]:
    """Return what each row is about."""
    first = (*(row for row, _sign in _QUANTITIES.values()), Row(Limit.REDUNDANCY, hard=False))
    tags, rule, hardware = Row(Limit.TAGS, hard=False), Row(Limit.RULE, hard=True), Row(Limit.HARDWARE, hard=True)
    slots = facts.slots
    rules = tuple(hardware if is_hardware else rule for is_hardware in slots.hardware[slots.soft :].tolist())
    return first + (tags,) * slots.soft + rules + (Row(Limit.POOL, hard=True),) * len(facts.pool_names)


def tag_rows(facts: Facts) -> slice:
    """Return where the rows of exclusion tags and rules are."""
    return slice(REDUNDANCY + 1, REDUNDANCY + 1 + len(facts.slots.names))


def pool_rows(facts: Facts) -> slice:
    """Return where the rows of storage pools are."""
    return slice(tag_rows(facts).stop, tag_rows(facts).stop + len(facts.pool_names))


def separated(state: ClusterState) -> float:
    """Return how many primaries are not where most of those are that a strict rule wants together with them."""
    together = state.facts.slots.together
    return float(separated_by_slot(state, together).sum()) if together.any() else 0.0


def separated_by_slot(state: ClusterState, which: Booleans) -> Floats:
    """Return [T']: of some slots, [T], how many primaries are not where most of the slot's are."""
    counts = state.tag_counts[:, which]
    found: Floats = (counts.sum(axis=0) - counts.max(axis=0, initial=0)).astype(float)
    return found


def joins(state: ClusterState, instance: int, nodes: Integers) -> Booleans:
    """Return [N]: whether an instance has at least as many partners of its affinity rules at each of `nodes` as at its present node.

    One that is nowhere must come to where most of them are, if they are anywhere.
    """
    fits = np.ones(len(nodes), dtype=bool)
    home = int(state.primary[instance])
    for slot in state.facts.instances.exclusion[instance]:
        if state.facts.slots.together[slot]:
            counts = state.tag_counts[:, slot]
            fits &= counts[nodes] >= (counts.max() if home == NOWHERE else counts[home])
    return fits


def can_run(facts: Facts, instances: Integers | list[int], nodes: Integers) -> Booleans:
    """Return [R, N]: whether each instance can run on each of `nodes` at all, by the hardware that it needs."""
    able = np.ones((len(instances), len(nodes)), dtype=bool)
    hardware = np.flatnonzero(facts.slots.hardware)
    for row, instance in enumerate(np.asarray(instances).tolist() if len(hardware) else ()):
        own = [slot for slot in facts.instances.exclusion[instance] if facts.slots.hardware[slot]]
        able[row] = (facts.slots.limit[nodes][:, own] > 0).all(axis=1)
    return able


def broken_rules(state: ClusterState, instance: int, nodes: Integers) -> tuple[tuple[str, ...], Booleans]:
    """Return the names of an instance's rules, and [N, names] which of them keep it off each of `nodes`."""
    slots, home = state.facts.slots, int(state.primary[instance])
    own = [slot for slot in state.facts.instances.exclusion[instance] if slot >= slots.soft and slots.strict[slot]]
    counts = state.tag_counts[:, own]
    company = counts.max(axis=0) if home == NOWHERE else counts[home]
    broken = slots.together[own] & (counts[nodes] < company) | (counts[nodes] >= slots.hard_limit[nodes][:, own])
    for spread in slots.spreads:
        if spread.slot in own:
            broken[:, own.index(spread.slot)] |= ~Arrivals.of(state, spread, home).fits(spread, nodes)
    return tuple(slots.name_for(instance, slot) for slot in own), broken


def broken_at_home(state: ClusterState, instance: int) -> tuple[str, ...]:
    """Return the names of the strict rules that do not hold where an instance is."""
    slots, node = state.facts.slots, int(state.primary[instance])
    own = [slot for slot in state.facts.instances.exclusion[instance] if slot >= slots.soft and slots.strict[slot]]
    uneven = {spread.slot for spread in slots.spreads if spread.slot in own and too_many(state, spread) > 0}

    def is_broken(slot: int) -> bool:
        counts = state.tag_counts[:, slot]
        return bool(counts[node] < counts.sum() if slots.together[slot] else counts[node] > slots.hard_limit[node, slot])

    return tuple(slots.name_for(instance, slot) for slot in own if slot in uneven or is_broken(slot))


def counted_as_used(quantities: Floats) -> Floats:
    """Return [10, ...]: the rows of quantities, of arrays [Q, ...]; what an instance adds is turned the same way."""
    used: Floats = quantities[: len(_SIGNS)] * _signs(quantities.ndim)
    return used


@functools.cache
def _signs(dimensions: int) -> Floats:
    return np.array(_SIGNS).reshape(-1, *[1] * (dimensions - 1))


def usage(state: ClusterState, nodes: Integers | list[int] | slice = slice(None)) -> Floats:
    """Return [R, K]: how much of each limit is used at `nodes`, by default all; negative where there is room left."""
    quantities = state.quantities[:, nodes]
    redundancy = state.reserved[nodes] - quantities[Quantity.MEMORY]
    in_slots = state.tag_counts[nodes].T
    if state.facts.slots.spreads:
        in_slots = in_slots.astype(float)
        for spread in state.facts.slots.spreads:
            # The emptiest domain may be at nodes that nobody looks at, so that each node has the skews of all scopes.
            in_slots[spread.slot] = skews(state, spread)[nodes]
    return np.concatenate([counted_as_used(quantities), redundancy[None], in_slots, -state.pool_free[nodes].T])


@functools.lru_cache(maxsize=8)
def capacity(facts: Facts, left: float = 0.0) -> Floats:
    """Return [R, N]: how much of each limit may be used where `left` MiB must be left of memory and disk; infinite without limit.

    It is asked for at every place of every instance, so that the same table is given to all; it cannot be written to.
    """
    nodes = facts.nodes
    most = np.zeros((pool_rows(facts).stop, len(nodes.names)))
    most[_WHOLE_MIB] = -left
    most[[Quantity.SPINDLES, Quantity.SPINDLES_PLANNED]] = np.where(nodes.exclusive, 0.0, np.inf)
    most[[Quantity.CPUS, Quantity.CPUS_PLANNED]] = nodes.cpu_limit
    most[[Quantity.SPINDLE_USE, Quantity.SPINDLE_USE_PLANNED]] = np.where(nodes.exclusive, np.inf, nodes.spindle_limit)
    most[tag_rows(facts)] = facts.slots.hard_limit.T
    for spread in facts.slots.spreads:
        most[tag_rows(facts).start + spread.slot] = 0.0 if spread.strict else np.inf
    most.flags.writeable = False
    return most


@dataclass(frozen=True)
class Broken:
    """A limit that is broken at a node; `over` is by how much more than it may be, in the limit's unit."""

    node: int
    limit: Limit
    hard: bool
    over: float


@dataclass(frozen=True)
class Bounds:
    """How much of each limit may be used, [R, N]; infinite where there is none."""

    most: Floats
    rows: tuple[Row, ...]

    @classmethod
    def of_htools(cls, state: ClusterState) -> Bounds:
        """Return those of htools, by which one MiB is left of memory and disk."""
        return cls(capacity(state.facts, 1.0), rows(state.facts))

    @classmethod
    def of_start(cls, state: ClusterState, tolerance: float = TOLERANCE) -> Bounds:
        """Return those by which nothing gets worse than in `state`; nodes that are offline have none."""
        most = np.maximum(capacity(state.facts), usage(state)) + tolerance
        most[:, state.offline] = np.inf
        return cls(most, rows(state.facts))

    def or_as_in(self, state: ClusterState) -> Bounds:
        """Return these bounds, but where `state` breaks them they may be as broken."""
        return dataclasses.replace(self, most=np.maximum(self.most, usage(state) + TOLERANCE))

    def hard(self) -> Bounds:
        """Return the bounds of the hard limits; the others have none."""
        soft = ~np.array([row.hard for row in self.rows], dtype=bool)
        return dataclasses.replace(self, most=np.where(soft[:, None], np.inf, self.most))

    def room(self, state: ClusterState) -> Floats:
        """Return [R, N]: how much more of each limit may be used."""
        room: Floats = self.most - usage(state)
        return room

    def holds(self, state: ClusterState, nodes: Collection[int]) -> bool:
        """Return whether a state keeps the bounds at some nodes."""
        among = list(nodes)
        return bool((usage(state, among) <= self.most[:, among]).all())

    def broken(self, state: ClusterState, nodes: Collection[int]) -> list[Broken]:
        """Return what a state breaks at some nodes, in their order."""
        among = list(nodes)
        over = usage(state, among) - self.most[:, among]
        found = np.argwhere(over.T > 0).tolist()
        return [Broken(among[column], self.rows[row].limit, self.rows[row].hard, float(over[row, column])) for column, row in found]
