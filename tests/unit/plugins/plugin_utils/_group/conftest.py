# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Short ways to write clusters for tests: nodes of 1000 MiB, 10000 MiB disk and 10 CPUs, instances of 100 MiB."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import (
    Cluster,
    Disk,
    DiskTemplate,
    Group,
    Instance,
    Node,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState


class Bench:
    """Makes nodes, instances and states; free memory and disk are kept right."""

    def node(self, name, group="g", **fields):
        known = {"total_memory": 1000.0, "total_disk": 10000.0, "total_cpus": 10.0, "node_cpus": 0, "free_memory": 1000, "free_disk": 10000}
        return Node(**{"name": name, "group": group, "node_memory": 0, **known, **fields})

    def instance(self, name, primary="", secondary="", **fields):
        template = DiskTemplate.DRBD if secondary else DiskTemplate.PLAIN
        sizes = {"memory": 100, "disk": 1000, "vcpus": 1, "disk_template": template}
        made = Instance(**{"name": name, "primary": primary, "secondary": secondary, **sizes, **fields})
        return made if made.disks or made.disk_template == DiskTemplate.DISKLESS else dataclasses.replace(made, disks=(Disk(made.disk),))

    def cluster(self, nodes, instances=(), groups=(), tags=()):
        names = dict.fromkeys(node.group for node in nodes)
        made = [group for group in groups if group.name in names] or [Group(name, f"uuid-{name}") for name in names]
        return Cluster(tuple(made), tuple(self._with_free(node, instances) for node in nodes), tuple(instances), tuple(tags))

    def state(self, nodes, instances=(), new=(), **fields):
        return ClusterState.from_cluster(self.cluster(nodes, instances, **fields), new)

    @staticmethod
    def _with_free(node, instances):
        here = [i for i in instances if i.primary == node.name and i.uses_memory]
        local = [i for i in instances if node.name in (i.primary, i.secondary) and i.on_node_disk and not i.forthcoming]
        return dataclasses.replace(
            node,
            free_memory=node.free_memory - sum(i.memory for i in here),
            free_disk=node.free_disk - sum(i.disk for i in local),
        )


@pytest.fixture
def bench():
    return Bench()
