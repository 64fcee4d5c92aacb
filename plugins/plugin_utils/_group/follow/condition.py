# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The condition of a group: how uneven it is, and what is wrong with it that must not wait.

gauge = Gauge(...)
condition = gauge.read(state, group)
condition.value, condition.problems       # the measure; what is wrong, the worst first, 0 where nothing is
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..._common.libraries import np
from ..cluster.arrays import Floats, Integers, Quantity
from ..cluster.model import NO_POLICY
from ..cluster.state import ClusterState
from ..metrics.health import instances_down, instances_left_behind
from ..metrics.score import ScoreMode, Scorer
from ..metrics.shared_redundancy import stranded_memory
from ..neighbourhood.excess import excess_of

_DIGITS = 6


class Measure(StrEnum):
    """How the imbalance of a group is measured."""

    IMBALANCE = "imbalance"
    """The largest difference between what two nodes use of what they have."""
    SCORE = "score"


class Resource(StrEnum):
    """What an imbalance looks at."""

    MEMORY = "memory"
    DISK = "disk"
    CPUS = "cpus"
    CPU_LOAD = "cpu_load"


class Urgent(StrEnum):
    """What may not wait, the worst first."""

    DOWN = "down"
    DRAINED = "drained"
    LIMITS = "limits"
    N1 = "n1"


@dataclass(frozen=True)
class Condition:
    """The measure, the score, how much is wrong of each kind that is asked for, and which kinds are wrong, the worst first."""

    value: float
    score: float
    problems: tuple[float, ...]
    wrong: tuple[str, ...] = ()

    @property
    def is_urgent(self) -> bool:
        """Return whether anything is wrong."""
        return any(self.problems)

    @property
    def worst(self) -> str:
        """Return the worst kind of which something is wrong; empty where nothing is."""
        return self.wrong[0] if self.wrong else ""


@dataclass(frozen=True)
class Gauge:
    """What is examined; with `shared_n1` N+1 is that of shared storage as well."""

    measure: Measure
    resources: tuple[Resource, ...]
    urgent: tuple[Urgent, ...]
    score: ScoreMode
    shared_n1: bool
    above: tuple[tuple[Resource, float], ...] = ()
    """Shares of a node that none is to use more of; with any, the measure is how far the fullest node is above one of them."""

    def read(self, state: ClusterState, group: int) -> Condition:
        """Return the condition of a group."""
        nodes = state.group_nodes(group)
        score = Scorer(state, self.score, nodes).score(state)
        value = self._value(state, nodes, score)
        problems = self.problems(state, group)
        kinds = [str(kind) for kind in Urgent if kind in self.urgent]
        wrong = tuple(kind for kind, amount in zip(kinds, problems) if amount)
        return Condition(round(value, _DIGITS), round(score, _DIGITS), problems, wrong)

    def _value(self, state: ClusterState, nodes: Integers, score: float) -> float:
        if self.above:
            return excess_above(state, nodes, self.above)
        return score if self.measure == Measure.SCORE else imbalance(state, nodes, self.resources)

    def problems(self, state: ClusterState, group: int) -> tuple[float, ...]:
        """Return how much is wrong of each kind."""
        nodes = state.group_nodes(group)
        found: Mapping[Urgent, Callable[[], float]] = {
            Urgent.DOWN: lambda: len(instances_down(state, group)),
            Urgent.DRAINED: lambda: len(instances_left_behind(state, group)),
            Urgent.LIMITS: lambda: excess_of(state, nodes),
            Urgent.N1: lambda: self._n1(state, group, nodes),
        }
        return tuple(round(float(found[kind]()), _DIGITS) for kind in Urgent if kind in self.urgent)

    def _n1(self, state: ClusterState, group: int, nodes: Integers) -> float:
        """Return how many nodes lack memory for a failover to them, and MiB on shared storage that failures would strand."""
        fails = float((state.fails_n1[nodes] & ~state.offline[nodes]).sum())
        return fails + (sum(stranded_memory(state, group, exact=True).values()) if self.shared_n1 else 0.0)


def imbalance(state: ClusterState, nodes: Integers, resources: Sequence[Resource]) -> float:
    """Return the largest difference between the used shares of two nodes that are up, of any of the resources."""
    online = nodes[~state.offline[nodes]]
    shares = [_shares(state, online, resource) for resource in resources]
    return max((float(share.max() - share.min()) for share in shares if len(share)), default=0.0)


def excess_above(state: ClusterState, nodes: Integers, above: Sequence[tuple[Resource, float]]) -> float:
    """Return the most by which the used share of a node that is up exceeds its limit for a resource; 0 where no node exceeds one."""
    online = nodes[~state.offline[nodes]]
    return max((float((_shares(state, online, resource) - limit).max(initial=0.0)) for resource, limit in above), default=0.0)


def _shares(state: ClusterState, nodes: Integers, resource: Resource) -> Floats:
    """Return what each node that has any uses of a resource."""
    facts, quantities = state.facts.nodes, state.quantities[:, nodes]
    total_cpus = facts.total_cpus[nodes]
    limited = facts.cpu_limit[nodes] < NO_POLICY.vcpu_ratio
    used, total = {
        Resource.MEMORY: (facts.total_memory[nodes] - quantities[Quantity.MEMORY], facts.total_memory[nodes]),
        Resource.DISK: (facts.total_disk[nodes] - quantities[Quantity.DISK], facts.total_disk[nodes]),
        Resource.CPUS: (quantities[Quantity.CPUS], np.where(limited, facts.cpu_limit[nodes], total_cpus)),
        Resource.CPU_LOAD: (quantities[Quantity.CPU_LOAD], total_cpus),
    }[resource]
    there = total > 0
    shares: Floats = used[there] / total[there]
    return shares
