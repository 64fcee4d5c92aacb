# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small clusters of every kind for property tests: all templates, tags, pools, offline and odd nodes, odd instances."""

from __future__ import annotations

import dataclasses

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import (
    Cluster,
    Disk,
    DiskTemplate,
    Group,
    Instance,
    Load,
    Node,
    PoolKind,
    PoolName,
    Status,
    StoragePool,
)
from hypothesis import strategies as st

TAGS = ("htools:iextags:service", "htools:nlocation:rack", "htools:desiredlocation:rack", "htools:migration:kernel")
SAN = PoolName(PoolKind.EXTERNAL, "san")
FAST = PoolName(PoolKind.INTERNAL, "fast")


@st.composite
def nodes(draw, name, group, pools):
    disk = draw(st.sampled_from([0, 1000, 4000, 10000]))
    memory = draw(st.sampled_from([1000, 2000, 3000]))
    spindles = draw(st.integers(1, 4))
    storage = (
        StoragePool(PoolName(PoolKind.INTERNAL, "lvm")),
        *([StoragePool(SAN)] if draw(st.booleans()) else []),
        *([StoragePool(FAST, 500, draw(st.integers(0, 500)))] if draw(st.booleans()) else []),
    )
    return Node(
        name=name,
        group=group,
        total_memory=float(memory),
        node_memory=draw(st.integers(0, 200)),
        free_memory=draw(st.integers(0, memory)),
        total_disk=float(disk),
        free_disk=draw(st.integers(0, disk)),
        total_cpus=float(draw(st.integers(1, 8))),
        cpu_speed=draw(st.sampled_from([1.0, 0.5, 1.5])),
        offline=draw(st.sampled_from([False, False, False, True])),
        drained=draw(st.sampled_from([False, False, False, False, True])),
        tags=tuple(draw(st.lists(st.sampled_from(["rack:1", "rack:2", "kernel:a", "other"]), unique=True, max_size=2))),
        exclusive_storage=draw(st.sampled_from([False, False, True])),
        spindles=spindles,
        free_spindles=draw(st.integers(0, spindles)),
        storage=storage if pools else (),
    )


@st.composite
def instances(draw, name, homes, pools):
    template = draw(st.sampled_from([DiskTemplate.DRBD, DiskTemplate.DRBD, DiskTemplate.PLAIN, DiskTemplate.EXT, DiskTemplate.FILE]))
    if len(homes) < 2 and template == DiskTemplate.DRBD:
        template = DiskTemplate.PLAIN
    placed = draw(st.permutations(homes)) if homes else []
    disk = draw(st.integers(1, 800))
    storage = {DiskTemplate.EXT: SAN, DiskTemplate.PLAIN: FAST}.get(template) if pools and draw(st.booleans()) else None
    return Instance(
        name=name,
        memory=draw(st.integers(1, 600)),
        disk=disk,
        vcpus=draw(st.integers(1, 4)),
        primary=placed[0] if placed else "",
        secondary=placed[1] if placed and template == DiskTemplate.DRBD else "",
        status=draw(st.sampled_from([Status.RUNNING, Status.RUNNING, Status.ADMIN_DOWN, Status.ADMIN_OFFLINE, Status.ERROR_UP])),
        auto_balance=draw(st.sampled_from([True, True, False])),
        disk_template=template,
        disks=(Disk(disk, draw(st.integers(0, 2))),),
        storage=storage,
        tags=tuple(draw(st.lists(st.sampled_from(["service:a", "service:b", "rack:1", "rack:9"]), unique=True, max_size=2))),
        spindle_use=draw(st.integers(0, 3)),
        forthcoming=draw(st.sampled_from([False, False, False, True])),
        load=Load(*(draw(st.sampled_from([0.0, 1.0, 2.5])) for _part in range(4))),
    )


@st.composite
def clusters(draw, most_nodes=6, most_instances=8, pools=True):
    groups = tuple(Group(f"g{number}", f"uuid-{number}") for number in range(draw(st.integers(1, 2))))
    members = [draw(nodes(f"n{number}", draw(st.sampled_from(groups)).name, pools)) for number in range(draw(st.integers(2, most_nodes)))]
    found = []
    for number in range(draw(st.integers(0, most_instances))):
        group = draw(st.sampled_from(members)).group
        found.append(draw(instances(f"i{number}", [node.name for node in members if node.group == group], pools)))
    reach = {pool.name for node in members for pool in node.storage}
    found = [i for i in found if i.storage is None or i.storage in reach]
    return Cluster(groups, tuple(members), tuple(found), draw(st.sampled_from([(), TAGS])))


@st.composite
def shared_clusters(draw, policy):
    """Return a group of nodes with 12 MiB on shared storage; some of its instances exclude each other."""
    members = [Node(f"n{number}", "g", 12.0, 0, 12, 0.0, 0, 99.0) for number in range(draw(st.integers(3, 5)))]
    left = dict.fromkeys((node.name for node in members), 12)
    guests = []
    for number in range(draw(st.integers(1, 8))):
        home, memory = draw(st.sampled_from(sorted(left))), draw(st.integers(1, 7))
        if memory <= left[home]:
            left[home] -= memory
            tags = ("service:a",) if draw(st.integers(0, 3)) == 0 else ()
            guests.append(Instance(f"i{number}", memory, 1, 1, primary=home, disk_template=DiskTemplate.EXT, tags=tags))
    members = [dataclasses.replace(node, free_memory=left[node.name]) for node in members]
    return Cluster((Group("g", "u", policy=policy),), tuple(members), tuple(guests), ("htools:iextags:service",))
