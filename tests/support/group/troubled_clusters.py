# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random groups in which much is wrong at once: unlike nodes, some full, one drained, tags in conflict, shared and mirrored disks."""

from __future__ import annotations

import random
import typing as t

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline

TAGS = ["htools:iextags:service"]


def troubled_cluster(seed: int) -> Cluster:
    """Return a group of unlike nodes, some full, one of them drained at times, with instances on shared storage, mirrored or both."""
    draw = random.Random(seed)
    names = [f"n{number:02}" for number in range(draw.randint(3, 7))]
    nodes: dict[str, dict[str, t.Any]] = {
        name: {
            "total_memory": draw.choice([32, 64, 64, 128]) * 1024,
            "total_disk": draw.choice([1, 2]) * 2**20,
            "total_cpus": draw.choice([16, 32]),
        }
        for name in names
    }
    if len(names) > 3 and draw.random() < 0.4:
        nodes[draw.choice(names)]["state"] = "drained"
    tagged, fill, shared = draw.random() < 0.4, draw.choice([0.4, 0.6, 0.8, 0.95]), draw.choice([1.0, 0.6, 0.3])
    wanted = fill * sum(node["total_memory"] - 1024 for node in nodes.values() if "state" not in node)
    weights = [draw.expovariate(1) + 0.05 for _name in names]
    free = {name: (node["total_memory"] - 1024) * 1.02 for name, node in nodes.items()}
    instances: list[dict[str, t.Any]] = []
    for _try in range(400):
        memory, primary = draw.choice([512, 1024, 2048, 2048, 4096, 8192]), draw.choices(names, weights)[0]
        if wanted <= 0 or len(instances) == 90:
            break
        if memory > free[primary]:
            continue
        free[primary] -= memory
        wanted -= memory
        one = {
            "name": f"i{len(instances):03}",
            "memory": memory,
            "disk": draw.choice([10240, 20480, 51200]),
            "vcpus": draw.choice([1, 1, 2, 4]),
        }
        one |= {"primary": primary, "status": draw.choice(["running"] * 8 + ["ADMIN_down"])}
        on_shared = draw.random() < shared
        one |= {"disk_template": "ext"} if on_shared else {"secondary": draw.choice([name for name in names if name != primary])}
        instances.append(one | ({"tags": [f"service:{draw.randint(0, 5)}"]} if tagged and draw.random() < 0.4 else {}))
    machines = [{"name": name, "node_memory": 1024, **node} for name, node in nodes.items()]
    return parse_inline({"nodes": machines, "instances": instances, "tags": TAGS if tagged else []})
