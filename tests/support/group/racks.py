# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One group of five nodes in three racks, and two groups of three nodes each, small enough to try every arrangement."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.cluster_source import load_any_cluster

POOL = {"type": "external", "pool": "ceph"}
GIB = 1024
NODES = {"n1": "rack:a", "n2": "rack:a", "n3": "rack:b", "n4": "rack:b", "n5": "rack:c"}
SIDES = {"l1": "rack:a", "l2": "rack:a", "l3": "rack:b", "r1": "rack:c", "r2": "rack:c", "r3": "rack:d"}
"""The nodes of two groups, left and right."""
ROOM = 12
"""GiB of each node."""


def cluster(guests, drained=(), tags=None):
    """`guests` are (GiB, primary, secondary or None); `tags` are those of the nodes."""
    tags = tags or NODES
    nodes = [
        {
            "name": name,
            "total_memory": ROOM * GIB,
            "total_disk": 1024 * GIB,
            "total_cpus": 64,
            "storage": [{"type": "internal", "pool": "lvm", "total": 1024 * GIB}, POOL],
            "tags": [tag],
            "drained": name in drained,
        }
        for name, tag in tags.items()
    ]
    instances = [
        {"name": f"i{number}", "memory": size * GIB, "disk": GIB, "vcpus": 1, "primary": primary}
        | ({"secondary": secondary} if secondary else {"storage": POOL})
        for number, (size, primary, secondary) in enumerate(guests)
    ]
    return {"nodes": nodes, "instances": instances}


def loaded(guests, tolerate, drained=()):
    return load_any_cluster({"cluster": cluster(guests, drained), "tolerate": tolerate}, str)


def two_groups(guests, tolerate):
    """Return a cluster of the two groups."""
    given = cluster(guests, tags=SIDES)
    sides = {"l": "left", "r": "right"}
    nodes = [node | {"group": sides[node["name"][0]]} for node in given["nodes"]]
    written = given | {"nodes": nodes, "groups": [{"name": name} for name in sides.values()]}
    return load_any_cluster({"cluster": written, "tolerate": tolerate}, str)
