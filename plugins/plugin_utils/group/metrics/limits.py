# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which nodes can take an instance, and for those that cannot: the first limit that fails, and by how much.

    verdict = primary_verdict(state, instance, primaries, rules)                    # arrays [P]
    verdict = secondary_verdict(state, instance, primaries, secondaries, rules)     # arrays [P, S]
    verdict.fits, verdict.limit, verdict.short
    policy_failures(instance_model, policy, exclusive)                              # the group's policy

The instance must be nowhere (`state.lifted`). Limits are tested in htools' order, hard ones before and among soft ones,
so that with the rules HTOOLS the first failing one is the one that htools names (`Limit.fail_mode`). The rules EXACT are
the collection's own: a node may be filled to the last MiB, and a node that already fails N+1 is no free-for-all, it
must not get worse.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import IntEnum

from ...common.libraries import np, npt
from ..cluster.arrays import ANYWHERE, Booleans, Floats, Integers, Quantity
from ..cluster.model import DiskTemplate, Instance, Policy, Spec
from ..cluster.state import ClusterState


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
}


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


@dataclass(frozen=True)
class PolicyFailure:
    """A field of an instance that lies outside the policy; `short` is by how much, negative when it is too small."""

    limit: Limit
    says: str
    short: int


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
    need = facts.as_primary[:, instance]
    left = state.quantities[:, primaries] + need[:, None]
    _check_pool(trial, state, instance, primaries)
    if facts.real[instance]:
        trial.refuse(Limit.MEMORY, rules.least_left - left[Quantity.MEMORY])
        _check_storage(trial, state, instance, primaries, left, rules)
        if rules.soft:
            before = state.quantities[Quantity.MEMORY, primaries]
            _check_redundancy(trial, state, primaries, before, left[Quantity.MEMORY], state.reserved[primaries], rules)
            _check_cpus(trial, state, primaries, left[Quantity.CPUS])
    if rules.soft:
        # A forthcoming instance that would break an exclusion when it comes is refused before it comes.
        conflicts = (state.tag_counts[primaries][:, list(facts.exclusion[instance])] > 0).sum(axis=1).astype(float)
        trial.refuse(Limit.TAGS, conflicts)
        trial.refuse(Limit.MEMORY, rules.least_left - left[Quantity.MEMORY_PLANNED])
        if state.facts.forthcoming:
            _check_planned_storage(trial, state, instance, primaries, left, rules)
            _check_cpus(trial, state, primaries, left[Quantity.CPUS_PLANNED])
    return trial.verdict()


def secondary_verdict(state: ClusterState, instance: int, primaries: Integers, secondaries: Integers, rules: Rules) -> Verdict:
    """Return [P, S]: whether each of `secondaries` can be the secondary while the primary is the row's node."""
    facts = state.facts.instances
    trial = _Trial((len(primaries), len(secondaries)))
    same = primaries[:, None] == secondaries[None, :]
    trial.refuse(Limit.SAME_NODE, np.ones(1), same)
    if not facts.two_nodes[instance]:
        trial.refuse(Limit.TEMPLATE, np.zeros(1), np.ones(same.shape, dtype=bool))
    left = state.quantities[:, secondaries] + facts.as_secondary[:, instance][:, None]
    memory = state.quantities[Quantity.MEMORY, secondaries]
    _check_pool(trial, state, instance, secondaries)
    if facts.real[instance]:
        _check_storage(trial, state, instance, secondaries, left, rules)
        if rules.soft:
            need = facts.reserves[instance]
            trial.refuse(Limit.MEMORY, need + rules.least_left - memory)
            after = state.peers.T[np.ix_(primaries, secondaries)]
            after += need
            np.maximum(after, state.reserved[secondaries], out=after)
            _check_redundancy(trial, state, secondaries, memory, memory, after, rules)
    if rules.soft:
        model = facts.models[instance]
        need = facts.memory[instance] if model.reserves_memory else 0.0
        if state.facts.forthcoming:
            _check_planned_storage(trial, state, instance, secondaries, left, rules)
        trial.refuse(Limit.MEMORY, need + rules.least_left - state.quantities[Quantity.MEMORY_PLANNED, secondaries])
    return trial.verdict()


def policy_failures(instance: Instance, policy: Policy, exclusive: bool) -> tuple[PolicyFailure, ...]:
    """Return what keeps an instance out of a policy: nothing, or the failures of the interval it comes closest to.

    Raises nothing; an interval is close when few of its fields fail. On nodes with `exclusive` storage the physical
    spindles are compared, elsewhere the spindle use.
    """
    closest = min((_outside(instance, interval.minimum, interval.maximum, exclusive) for interval in policy.intervals), key=len)
    if instance.disk_template in policy.disk_templates:
        return closest
    allowed = ", ".join(policy.disk_templates)
    return (*closest, PolicyFailure(Limit.TEMPLATE, f"disk template {instance.disk_template} is none of {allowed}", 0))


def _outside(instance: Instance, low: Spec, high: Spec, exclusive: bool) -> tuple[PolicyFailure, ...]:
    diskless = instance.disk_template == DiskTemplate.DISKLESS
    sizes = [disk.size for disk in instance.disks] or ([] if diskless else [instance.disk])
    checks = [(Limit.MEMORY, "memory", instance.memory, low.memory, high.memory)]
    checks += [(Limit.DISK, f"disk {number}", size, low.disk_size, high.disk_size) for number, size in enumerate(sizes)]
    checks += [(Limit.CPUS, "vcpus", instance.vcpus, low.cpus, high.cpus)]
    failures = [_bounded(*check) for check in checks]
    if not exclusive:
        failures.append(_bounded(Limit.SPINDLE_USE, "spindle use", instance.spindle_use, low.spindle_use, high.spindle_use))
    elif instance.spindles is None:
        failures.append(PolicyFailure(Limit.SPINDLES, "spindles are unknown, but the node has exclusive storage", 0))
    else:
        failures.append(_bounded(Limit.SPINDLES, "spindles", instance.spindles, low.spindle_use, high.spindle_use))
    if not diskless:
        failures.append(_bounded(Limit.DISK_COUNT, "number of disks", len(sizes), low.disk_count, high.disk_count))
    return tuple(failure for failure in failures if failure is not None)


def _bounded(limit: Limit, name: str, value: int, low: int, high: int) -> PolicyFailure | None:
    if low <= value <= high:
        return None
    return PolicyFailure(limit, f"{name} {value} is not within {low} and {high}", value - high if value > high else value - low)


def _check_pool(trial: _Trial, state: ClusterState, instance: int, nodes: Integers) -> None:
    pool = int(state.facts.instances.pool[instance])
    if pool == ANYWHERE:
        return
    disk = state.facts.instances.disk[instance]
    trial.refuse(Limit.POOL, np.full(len(nodes), disk), ~state.facts.nodes.pools[nodes, pool])
    trial.refuse(Limit.DISK, disk - state.pool_free[nodes, pool])


def _check_storage(trial: _Trial, state: ClusterState, instance: int, nodes: Integers, left: Floats, rules: Rules) -> None:
    if not state.facts.instances.on_node_disk[instance]:
        return
    facts = state.facts.nodes
    trial.refuse(Limit.DISK, rules.least_left - left[Quantity.DISK])
    if rules.soft:
        trial.refuse(Limit.DISK, np.floor(rules.disk_reserve * facts.total_disk[nodes]) - left[Quantity.DISK])
    _check_spindles(trial, state, instance, nodes, left[Quantity.SPINDLES])
    if rules.soft:
        use = np.where(facts.exclusive[nodes], 0.0, left[Quantity.SPINDLE_USE])
        trial.refuse(Limit.SPINDLE_USE, use - facts.spindle_limit[nodes])


def _check_planned_storage(trial: _Trial, state: ClusterState, instance: int, nodes: Integers, left: Floats, rules: Rules) -> None:
    if not state.facts.instances.on_node_disk[instance]:
        return
    facts = state.facts.nodes
    reserve = np.maximum(rules.least_left, np.floor(rules.disk_reserve * facts.total_disk[nodes]))
    trial.refuse(Limit.DISK, reserve - left[Quantity.DISK_PLANNED])
    _check_spindles(trial, state, instance, nodes, left[Quantity.SPINDLES_PLANNED])
    use = np.where(facts.exclusive[nodes], 0.0, left[Quantity.SPINDLE_USE_PLANNED])
    trial.refuse(Limit.SPINDLE_USE, use - facts.spindle_limit[nodes])


def _check_spindles(trial: _Trial, state: ClusterState, instance: int, nodes: Integers, left: Floats) -> None:
    exclusive = state.facts.nodes.exclusive[nodes]
    if state.facts.instances.spindles_known[instance]:
        trial.refuse(Limit.SPINDLES, -left * exclusive)
    else:
        trial.refuse(Limit.SPINDLES, np.zeros(len(nodes)), exclusive)


def _check_redundancy(
    trial: _Trial,
    state: ClusterState,
    nodes: Integers,
    memory_before: Floats,
    memory_after: Floats,
    reserved_after: Floats,
    rules: Rules,
) -> None:
    short = reserved_after - (memory_after - rules.least_left)
    fails = short > 0
    if not fails.any():
        return
    excused = state.fails_n1[nodes] if rules.excuse_failing else short <= state.reserved[nodes] + rules.least_left - memory_before
    trial.refuse(Limit.REDUNDANCY, short, fails & ~excused)


def _check_cpus(trial: _Trial, state: ClusterState, nodes: Integers, used: Floats) -> None:
    facts = state.facts.nodes
    trial.refuse(Limit.CPUS, used - facts.vcpu_ratio[nodes] * facts.total_cpus[nodes])
