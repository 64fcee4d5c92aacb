# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which instances stay where they are, all of their disks included, whatever is planned, and why.

    staying = find_staying(cluster)       # {position: Staying}
    staying[3].reason, staying[3].says

There are three causes: a node that does not answer and is not marked offline, a rule that says so, and rules that cannot hold. A node
that is silent may still run its instances, so that starting them elsewhere would run them twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from .model import Cluster, NodeState, RuleKind
from .rules import contradictions, members_of

HA = "ha"
"""The reason of instances that HA moves."""


@dataclass(frozen=True)
class Staying:
    """Why an instance stays: a word to count by, and a sentence."""

    reason: str
    says: str


def find_staying(cluster: Cluster) -> dict[int, Staying]:
    """Return the instances of a cluster that stay, by position; of several causes the first counts."""
    silent = {node.name for node in cluster.nodes if node.state == NodeState.UNREACHABLE}
    found: dict[int, Staying] = {}
    for position, instance in enumerate(cluster.instances if silent else ()):
        lost = [name for name in (instance.primary, instance.secondary) if name in silent]
        if lost:
            found[position] = Staying("unreachable", unreachable_says(cluster, lost[0]))
    if not cluster.rules:
        return found
    for rule, members in zip(cluster.rules, members_of(cluster.rules, cluster.instances)):
        for position in members if rule.kind == RuleKind.IGNORE and rule.strict else ():
            found.setdefault(position, Staying(rule.reason, f"rule {rule.name} keeps it where it is"))
    for conflict in contradictions(cluster):
        for position in conflict.members:
            found.setdefault(position, Staying("rule", f"it stays, as {conflict.says}"))
    return found


def unreachable_says(cluster: Cluster, name: str) -> str:
    """Return that a node does not answer, and what to do about it."""
    to_do = _TO_DO[cluster.manager].format(node=name)
    return f"{name} does not answer and is not marked offline, so that its instances may still run: {to_do}"


_TO_DO = {
    "ganeti": "power it off, then gnt-node modify -O yes {node}",
    "proxmox": "HA recovers its own guests once the node is fenced; bring {node} back for the others",
    "libvirt": "bring {node} back, or leave it out once it is off",
}
"""What makes a silent node one that may be left, by what runs the cluster."""
