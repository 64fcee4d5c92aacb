# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which nodes can take one instance, and for those that cannot: the first limit that fails, and by how much.

    verdict = primary_verdict(state, instance, primaries, rules)                    # arrays [P]
    verdict = secondary_verdict(state, instance, primaries, secondaries, rules)     # arrays [P, S]
    verdict.fits, verdict.limit, verdict.short

The instance must be nowhere (`state.lifted`). The limits are those of limits.py, tested in htools' order, hard ones before
and among soft ones, so that with the rules HTOOLS the first failing one is the limit that htools names (`Limit.fail_mode`).
The rules EXACT are the collection's own: a node may be filled to the last MiB, and a node that already fails N+1 is no
free-for-all, it must not get worse.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ..._common.libraries import np, npt
from ..cluster.arrays import ANYWHERE, Booleans, Floats, Integers, Quantity
from ..cluster.state import ClusterState
from .limits import Limit, can_run, capacity, counted_as_used, joins
from .skew import evens


@dataclass(frozen=True)
class Rules:
    """How strictly limits are kept.

    `least_left` is what must stay free of memory and disk (MiB). Without `soft` only the hard limits count: memory,
    disk, pools and physical spindles. `disk_reserve` is the share of a node's disk that stays free. `excuse_failing`
    lets nodes that already fail N+1 take anything.
    """

    least_left: int = 0
    soft: bool = True
    disk_reserve: float = 0.0
    excuse_failing: bool = False

    def hard(self) -> Rules:
        """Return the same rules without the soft limits, for an instance that is worse off where it is."""
        return dataclasses.replace(self, soft=False)


EXACT = Rules()
HTOOLS = Rules(least_left=1, excuse_failing=True)


@dataclass(frozen=True)
class Verdict:
    """For each place the limit that fails first (a `Limit`) and what is missing: MiB, CPUs, spindles, or tags in conflict."""

    limit: npt.NDArray[np.int8]
    short: Floats

    @property
    def fits(self) -> Booleans:
        """Return where no limit fails."""
        fits: Booleans = self.limit == Limit.NONE
        return fits


class _Trial:
    """Collects the first failing limit of each place."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._limit = np.zeros(shape, dtype=np.int8)
        self._short = np.zeros(shape)

    def refuse(self, limit: Limit, short: Floats, fails: Booleans | None = None) -> None:
        """Let `limit` fail where `fails`, by default where anything is short; earlier failures stay."""
        refused = short > 0 if fails is None else fails
        if not refused.any():
            return
        new = (self._limit == Limit.NONE) & refused
        self._limit[new] = limit
        self._short[new] = np.broadcast_to(short, new.shape)[new]

    def verdict(self) -> Verdict:
        """Return what was collected."""
        return Verdict(self._limit, self._short)


def primary_verdict(state: ClusterState, instance: int, primaries: Integers, rules: Rules) -> Verdict:
    """Return [P]: whether each node can be the instance's primary."""
    facts = state.facts.instances
    trial = _Trial((len(primaries),))
    over = _over(state, facts.as_primary[:, instance], primaries, rules)
    _check_pool(trial, state, instance, primaries)
    if facts.real[instance]:
        trial.refuse(Limit.MEMORY, over[Quantity.MEMORY])
        _check_storage(trial, state, instance, primaries, over, rules)
        if rules.soft:
            _check_redundancy(trial, state, primaries, state.reserved[primaries] + over[Quantity.MEMORY], rules)
            trial.refuse(Limit.CPUS, over[Quantity.CPUS])
    slots = state.facts.slots
    own = [slot for slot in state.facts.instances.exclusion[instance] if slot >= slots.soft]
    _check_hardware(trial, state, instance, primaries)
    if own:
        broken = (state.tag_counts[primaries][:, own] >= slots.hard_limit[primaries][:, own]).sum(axis=1)
        trial.refuse(Limit.RULE, broken.astype(float))
        trial.refuse(Limit.RULE, np.ones(len(primaries)), ~(joins(state, instance, primaries) & evens(state, instance, primaries)))
    if rules.soft:
        # A forthcoming instance that would break an exclusion when it comes is refused before it comes.
        tags = [slot for slot in facts.exclusion[instance] if slot < state.facts.slots.soft]
        conflicts = (state.tag_counts[primaries][:, tags] > 0).sum(axis=1).astype(float)
        trial.refuse(Limit.TAGS, conflicts)
        trial.refuse(Limit.MEMORY, over[Quantity.MEMORY_PLANNED])
        if state.facts.forthcoming:
            _check_planned_storage(trial, state, instance, primaries, over, rules)
            trial.refuse(Limit.CPUS, over[Quantity.CPUS_PLANNED])
    return trial.verdict()


def secondary_verdict(state: ClusterState, instance: int, primaries: Integers, secondaries: Integers, rules: Rules) -> Verdict:
    """Return [P, S]: whether each of `secondaries` can be the secondary while the primary is the row's node."""
    facts = state.facts.instances
    trial = _Trial((len(primaries), len(secondaries)))
    same = primaries[:, None] == secondaries[None, :]
    trial.refuse(Limit.SAME_NODE, np.ones(1), same)
    if not facts.two_nodes[instance]:
        trial.refuse(Limit.TEMPLATE, np.zeros(1), np.ones(same.shape, dtype=bool))
    over = _over(state, facts.as_secondary[:, instance], secondaries, rules)
    _check_hardware(trial, state, instance, secondaries)
    _check_pool(trial, state, instance, secondaries)
    if facts.real[instance]:
        _check_storage(trial, state, instance, secondaries, over, rules)
        if rules.soft:
            need = facts.reserves[instance]
            trial.refuse(Limit.MEMORY, need + over[Quantity.MEMORY])
            after = state.peers.T[np.ix_(primaries, secondaries)]
            after += need
            np.maximum(after, state.reserved[secondaries], out=after)
            after += over[Quantity.MEMORY]
            _check_redundancy(trial, state, secondaries, after, rules)
    if rules.soft:
        model = facts.models[instance]
        need = facts.memory[instance] if model.reserves_memory else 0.0
        if state.facts.forthcoming:
            _check_planned_storage(trial, state, instance, secondaries, over, rules)
        trial.refuse(Limit.MEMORY, need + over[Quantity.MEMORY_PLANNED])
    return trial.verdict()


def _over(state: ClusterState, need: Floats, nodes: Integers, rules: Rules) -> Floats:
    """Return [10, len(nodes)]: by how much each limited quantity is over its limit with the instance; negative where there is room."""
    used = counted_as_used(state.quantities[:, nodes] + need[:, None])
    return used - capacity(state.facts, rules.least_left)[: len(used), nodes]


def _check_hardware(trial: _Trial, state: ClusterState, instance: int, nodes: Integers) -> None:
    """Refuse nodes that the instance cannot run on; `short` counts the CPUs that are missing."""
    if state.facts.slots.hardware.any():
        short = state.facts.instances.models[instance].vcpus - state.facts.nodes.total_cpus[nodes]
        trial.refuse(Limit.HARDWARE, np.maximum(short, 1.0), ~can_run(state.facts, [instance], nodes)[0])


def _check_pool(trial: _Trial, state: ClusterState, instance: int, nodes: Integers) -> None:
    pool = int(state.facts.instances.pool[instance])
    if pool == ANYWHERE:
        return
    disk = state.facts.instances.disk[instance]
    trial.refuse(Limit.POOL, np.full(len(nodes), disk), ~state.facts.nodes.pools[nodes, pool])
    trial.refuse(Limit.DISK, disk - state.pool_free[nodes, pool])


def _check_storage(trial: _Trial, state: ClusterState, instance: int, nodes: Integers, over: Floats, rules: Rules) -> None:
    if not state.facts.instances.on_node_disk[instance]:
        return
    trial.refuse(Limit.DISK, over[Quantity.DISK])
    if rules.soft:
        trial.refuse(Limit.DISK, over[Quantity.DISK] + _kept_disk(state, nodes, rules))
    _check_spindles(trial, state, instance, nodes, over[Quantity.SPINDLES])
    if rules.soft:
        trial.refuse(Limit.SPINDLE_USE, over[Quantity.SPINDLE_USE])


def _check_planned_storage(trial: _Trial, state: ClusterState, instance: int, nodes: Integers, over: Floats, rules: Rules) -> None:
    if not state.facts.instances.on_node_disk[instance]:
        return
    trial.refuse(Limit.DISK, over[Quantity.DISK_PLANNED] + np.maximum(0.0, _kept_disk(state, nodes, rules)))
    _check_spindles(trial, state, instance, nodes, over[Quantity.SPINDLES_PLANNED])
    trial.refuse(Limit.SPINDLE_USE, over[Quantity.SPINDLE_USE_PLANNED])


def _kept_disk(state: ClusterState, nodes: Integers, rules: Rules) -> Floats:
    """Return the MiB of disk that stay free beyond what must be left."""
    kept: Floats = np.floor(rules.disk_reserve * state.facts.nodes.total_disk[nodes]) - rules.least_left
    return kept


def _check_spindles(trial: _Trial, state: ClusterState, instance: int, nodes: Integers, over: Floats) -> None:
    if state.facts.instances.spindles_known[instance]:
        trial.refuse(Limit.SPINDLES, over)
    else:
        trial.refuse(Limit.SPINDLES, np.zeros(len(nodes)), state.facts.nodes.exclusive[nodes])


def _check_redundancy(trial: _Trial, state: ClusterState, nodes: Integers, short: Floats, rules: Rules) -> None:
    """Refuse where N+1 lacks memory, unless the rules excuse the node, or it lacks no more than it does without the instance."""
    fails = short > 0
    if not fails.any():
        return
    before = state.reserved[nodes] + rules.least_left - state.quantities[Quantity.MEMORY, nodes]
    excused = state.fails_n1[nodes] if rules.excuse_failing else short <= before
    trial.refuse(Limit.REDUNDANCY, short, fails & ~excused)
