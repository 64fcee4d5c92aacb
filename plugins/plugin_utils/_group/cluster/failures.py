# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which nodes may fail at the same time, beyond the single ones that N+1 is about.

    failures_of(state, group)        # [(0, 1), (0, 2), ...]: sets of two nodes or more, each of which must not be too much
    location_domains(cluster)        # the prefixes of node tags that Ganeti's location tags name

A group of many nodes has more sets of k than anybody can check: then only those of its largest nodes count, as many as are checked.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ..._common.libraries import np
from .model import Cluster, Tolerance
from .state import ClusterState
from .tags import read_rules

MOST_FAILURES = 2500
"""Sets of nodes that are checked in each group."""
_MOST_STEPS = 200_000


def failures_of(state: ClusterState, group: int, tolerance: Tolerance | None = None) -> tuple[tuple[int, ...], ...]:
    """Return the sets of at least two nodes of a group, all of them up, that may fail together; by default as the cluster says."""
    wanted = tolerance or state.facts.cluster.tolerate
    if wanted is None:
        return ()
    nodes = [node for node in state.group_nodes(group).tolist() if not state.offline[node]]
    if wanted.domain:
        members: dict[str, list[int]] = {}
        for node in nodes:
            for tag in dict.fromkeys(state.facts.cluster.nodes[node].tags):
                if tag.startswith(wanted.domain):
                    members.setdefault(tag, []).append(node)
        return tuple(dict.fromkeys(tuple(found) for found in members.values() if len(found) > 1))
    memory = state.facts.nodes.total_memory
    if wanted.percent:
        largest = sorted(nodes, key=lambda node: (-memory[node], node))
        return _within(largest, memory.tolist(), wanted.percent / 100.0 * float(memory[nodes].sum()))
    count = min(wanted.nodes, len(nodes))
    return tuple(itertools.combinations(_few(nodes, memory.tolist(), count), count)) if count > 1 else ()


def location_domains(cluster: Cluster) -> tuple[str, ...]:
    """Return what the location tags of a cluster begin with, of those that any node has."""
    prefixes = read_rules(cluster.tags).location
    return tuple(prefix for prefix in prefixes if any(tag.startswith(prefix) for node in cluster.nodes for tag in node.tags))


def _few(nodes: Sequence[int], memory: Sequence[float], count: int) -> list[int]:
    """Return the nodes, or as many of the largest as have few enough sets."""
    most = len(nodes)
    while most > count and math.comb(most, count) > MOST_FAILURES:
        most -= 1
    return sorted(sorted(nodes, key=lambda node: (-memory[node], node))[:most])


def _within(nodes: Sequence[int], memory: Sequence[float], most: float) -> tuple[tuple[int, ...], ...]:
    """Return the largest sets of nodes with no more than so much memory, none of which is part of another; the largest nodes first."""
    found: list[tuple[int, ...]] = []
    steps = itertools.count()

    def extend(chosen: tuple[int, ...], left: float, at: int) -> None:
        if len(found) >= MOST_FAILURES or next(steps) > _MOST_STEPS:
            return
        for number in range(at, len(nodes)):
            if memory[nodes[number]] <= left:
                extend((*chosen, nodes[number]), left - memory[nodes[number]], number + 1)
        others = set(nodes) - set(chosen)
        if len(chosen) > 1 and all(memory[node] > left for node in others):
            found.append(tuple(sorted(chosen)))

    extend((), most * (1 + np.finfo(float).eps), 0)
    return tuple(dict.fromkeys(found))
