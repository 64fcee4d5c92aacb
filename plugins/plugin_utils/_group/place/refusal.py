# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why an instance cannot go to a node, or to a group at all."""

from __future__ import annotations

from dataclasses import dataclass

from ....module_utils._data.units import format_mib
from ..._common.libraries import np
from ..cluster.arrays import NOWHERE, Booleans, Integers
from ..cluster.model import AllocPolicy
from ..cluster.state import ClusterState
from ..metrics.limits import Limit, broken_rules
from ..metrics.policy import policy_failures
from ..metrics.verdicts import Verdict


@dataclass(frozen=True)
class Reason:
    """Why a node, or with node NOWHERE the whole group, cannot take an instance; `short` in the limit's unit."""

    node: int
    limit: str
    short: float
    says: str = ""


@dataclass(frozen=True)
class Refusal:
    """A group that cannot take an instance."""

    group: int
    reasons: tuple[Reason, ...]


def stranding(state: ClusterState, failing: tuple[int, ...], more: float) -> Reason:
    """Return the reason that a failure of nodes would strand `more` MiB in addition."""
    names = ", ".join(state.facts.nodes.names[node] for node in failing)
    of_which = "of instances on shared storage would be stranded" if len(failing) == 1 else "would find no place"
    return Reason(failing[0], "shared_redundancy", more, f"if {names} failed, {format_mib(more)} more {of_which}")


def group_refusal(state: ClusterState, instance: int, group: int, named: bool) -> tuple[Reason, ...]:
    """Return why a group as a whole does not take an instance: its policies and networks; empty when it does."""
    model, owner = state.facts.instances.models[instance], state.facts.cluster.groups[group]
    reasons = []
    if owner.alloc_policy == AllocPolicy.UNALLOCABLE and not named:
        reasons.append(Reason(NOWHERE, "alloc_policy", 0.0, "the group takes no new instances"))
    missing = [network for network in model.networks if network not in owner.networks]
    if missing:
        reasons.append(Reason(NOWHERE, "network", float(len(missing)), f"the group is not connected to {', '.join(missing)}"))
    nodes = state.group_nodes(group)
    exclusive = bool(len(nodes)) and bool(state.facts.nodes.exclusive[nodes].all())
    failures = policy_failures(model, owner.policy, exclusive)
    reasons += [Reason(NOWHERE, f"policy_{failure.limit.name.lower()}", float(failure.short), failure.says) for failure in failures]
    return tuple(reasons)


@dataclass(frozen=True)
class RulesInTheWay:
    """The rules of an instance, and [N, rules] which of them keep it off each node; `nodes` are the names of all nodes."""

    instance: str
    nodes: tuple[str, ...]
    rules: tuple[str, ...]
    broken: Booleans

    @classmethod
    def of(cls, state: ClusterState, instance: int, nodes: Integers) -> RulesInTheWay:
        """Return the rules that keep an instance off `nodes`."""
        return cls(state.facts.instances.names[instance], state.facts.nodes.names, *broken_rules(state, instance, nodes))

    def says(self, row: int, node: int) -> str:
        """Return in words which rules keep the instance off a node, which is in this row."""
        names = [name for name, broken in zip(self.rules, self.broken[row].tolist()) if broken]
        verb = "rules {} keep" if len(names) > 1 else "rule {} keeps"
        return f"{verb.format(', '.join(names))} {self.instance} off {self.nodes[node]}"


def verdict_reasons(nodes: Integers, verdict: Verdict, rules: RulesInTheWay | None) -> tuple[Reason, ...]:
    """Return why nodes fail, for those that do; the verdict is [N]. Without `rules` none is in the way."""
    reasons = []
    for row in np.flatnonzero(verdict.limit != Limit.NONE).tolist():
        node, limit = int(nodes[row]), Limit(int(verdict.limit[row]))
        says = rules.says(row, node) if limit in (Limit.RULE, Limit.HARDWARE) and rules is not None else ""
        reasons.append(Reason(node, limit.name.lower(), float(verdict.short[row]), says))
    return tuple(reasons)


def partner_reasons(nodes: Integers, verdict: Verdict) -> tuple[Reason, ...]:
    """Return why nodes can be the secondary of no primary, [P, N]: for each node the way in which least is missing."""
    if not len(verdict.limit):
        return ()
    other = verdict.limit != Limit.SAME_NODE
    least = np.where(other, verdict.short, np.inf).argmin(axis=0), np.arange(len(nodes))
    kept = other.any(axis=0) & (verdict.limit[least] != Limit.NONE)
    found = zip(nodes[kept].tolist(), verdict.limit[least][kept].tolist(), verdict.short[least][kept].tolist())
    return tuple(Reason(node, Limit(limit).name.lower(), short, "as the secondary") for node, limit, short in found)
