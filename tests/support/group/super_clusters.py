# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Clusters of two groups, one in trouble and one with room, small enough to try every arrangement of their instances."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Cluster, DiskTemplate, Instance, Node
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.tests.support.group.limits import excess
from ansible_collections.bareon.allocator.tests.support.group.policies import open_group
from hypothesis import strategies as st

GROUPS = tuple(open_group(name) for name in ("ill", "spare"))


@st.composite
def super_clusters(draw, kinds=("shared", "mirrored", "both")):
    """Two groups: one in trouble more often than not, one with some room."""
    kind = draw(st.sampled_from(kinds))
    ill = [f"a{number}" for number in range(3)]
    spare = [f"b{number}" for number in range(2)]
    sizes = {name: draw(st.integers(4, 9)) for name in ill} | {name: draw(st.integers(1, 8)) for name in spare}
    instances = []
    for number in range(draw(st.integers(1, 4))):
        primary, secondary = draw(st.permutations(ill))[:2]
        shared = kind == "shared" or kind == "both" and draw(st.booleans())
        template = DiskTemplate.EXT if shared else DiskTemplate.DRBD
        memory = draw(st.integers(1, 4))
        instances.append(Instance(f"i{number}", memory, 1, 1, primary, "" if shared else secondary, disk_template=template))
    used = {name: sum(i.memory for i in instances if i.primary == name) for name in sizes}
    dark = draw(st.sampled_from(["", "", *ill]))
    nodes = [
        Node(name, "ill" if name in ill else "spare", float(size), 0, size - used[name], 100.0, 50, 99.0, offline=name == dark)
        for name, size in ((name, max(size, used[name])) for name, size in sizes.items())
    ]
    return Cluster(GROUPS, tuple(nodes), tuple(instances))


def moved(state: ClusterState, homes: Iterable[tuple[str, str]]) -> ClusterState:
    """Return the state with its instances on these pairs of nodes, in their order."""
    after = state.copy()
    positions = state.facts.cluster.node_positions() | {"": -1}
    for number, (primary, secondary) in enumerate(homes):
        after.place(number, positions[primary], positions[secondary])
    return after


def is_allowed(start: Cluster, now: Cluster) -> bool:
    """Return whether no limit of an online node is broken by more than at the start."""
    for node in now.nodes:
        if node.offline:
            continue
        before, after = excess(start, node.name), excess(now, node.name)
        if any(value > max(0, before[limit]) for limit, value in after.items()):
            return False
    return True
