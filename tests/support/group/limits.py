# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The limits of nodes, counted anew from the models with the books of the oracle."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Cluster
from ansible_collections.bareon.allocator.tests.support.group.oracle import Book, starts


def excess(cluster: Cluster, name: str) -> dict[str, float]:
    """Return by how much each limit of a node is broken, 0 or less where it is kept."""
    node = next(node for node in cluster.nodes if node.name == name)
    policy = next(group.policy for group in cluster.groups if group.name == node.group)
    book = Book(cluster, node)
    prefixes = [tag.removeprefix("htools:iextags:") for tag in cluster.tags if tag.startswith("htools:iextags:")]
    tags = [tag for instance in cluster.instances if instance.primary == name for tag in starts(instance.tags, prefixes)]
    found = {
        "memory": -book.memory,
        "redundancy": book.reserved - book.memory,
        "disk": -book.disk,
        "disk planned": -book.disk_planned,
        "cpus": book.cpus - policy.vcpu_ratio * node.total_cpus,
        "spindles": -book.spindles if node.exclusive_storage else 0,
        "spindle use": book.use - book.spindle_limit,
        "tags": len(tags) - len(set(tags)),
        "hardware": sum(i.vcpus > node.total_cpus for i in cluster.instances if name in (i.primary, i.secondary)),
    }
    return found | {f"pool {pool.name}": -pool.free for pool in node.storage if pool.free is not None}


def assert_nothing_worse(before: Cluster, after: Cluster, touched: set[str]) -> None:
    """Check that no limit of these nodes is broken by more than before."""
    for name in touched:
        then, now = excess(before, name), excess(after, name)
        worse = {limit: (then[limit], value) for limit, value in now.items() if value > 0 and value > then[limit]}
        assert not worse, (name, worse)
