# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""libvirt: what `virsh` prints on each node, as virsh.py asks for it, read into a `Cluster`.

    {"kvm1": {"nodeinfo": "...", "capabilities": "<capabilities>...", "domains": ["<domain>..."], "pools": ["<pool>..."], ...},
     "kvm2": {"unreachable": "why"}}

The cluster is one group without a policy. A guest whose disks are all shared has the disk template `ext`, one with a local disk `plain`,
which stays where it is, or `ext` where local disks may be copied. Memory is the most that a guest may have. A node that does not answer is
unreachable; what it has, and who is on it, is unknown.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from .....module_utils._data.containers import ListOf, MappingOf, Row, Table, Values
from .....module_utils._data.errors import Mistakes
from .....module_utils._data.kinds import Name, Text
from .....module_utils._data.units import MIB
from ...cluster.check import Places, check_cluster
from ...cluster.model import NO_POLICY, Cluster, Group, Manager, Node, PoolKind
from .domain import read_domain, read_statistics
from .guests import Guest, Storages, make_guest, once_each
from .host import Host, read_host
from .markup import in_mib
from .pools import Pool, read_pools, read_volumes, shared_names
from .rules import read_rules

GROUP = "libvirt"
_TEXTS = ("nodeinfo", "nodememstats", "freepages", "capabilities", "domcapabilities", "networks", "snapshots", "domstats")
_LISTS = ("domains", "pools", "volumes")
_ANSWERS = MappingOf(
    Table(
        "the answers of a node",
        [
            Row("unreachable", Text(), default=""),
            *(Row(name, Text(), default="") for name in _TEXTS),
            *(Row(name, ListOf(Text(), "texts"), default=()) for name in _LISTS),
        ],
    ),
    "nodes",
    Name(),
    least=1,
)


_URIS = MappingOf(Text(filled=True), "nodes to URIs of libvirt", Name(), least=1)


@dataclass(frozen=True)
class Reading:
    """How a cluster is read: whether local disks may be copied, and the pools that are the same on all nodes, whatever their type."""

    local_disks: bool = False
    shared_pools: Collection[str] = ()


def read_uris(given: t.Any) -> dict[str, str]:
    """Return the URI of each node; raise InputError with all mistakes."""
    mistakes = Mistakes()
    uris: dict[str, str] = _URIS.read_nested(given, "source.uris", mistakes)
    mistakes.check()
    return uris


def parse_libvirt(documents: Mapping[str, t.Any], reading: Reading = Reading()) -> Cluster:
    """Return the cluster that the answers of nodes describe; raise InputError with all mistakes."""
    mistakes = Mistakes()
    answers = _ANSWERS.read_nested(documents, "source.uris", mistakes)
    up = {node: values for node, values in answers.items() if not values["unreachable"]}
    hosts = {node: read_host(values, node, mistakes) for node, values in up.items()}
    pools = {node: read_pools(values["pools"], reading.shared_pools, node, mistakes) for node, values in up.items()}
    volumes = {node: read_volumes(values["volumes"], pools[node]) for node, values in up.items()}
    storages = Storages(pools, volumes, shared_names(pools))
    guests = once_each([guest for node, values in up.items() for guest in _guests(node, values, storages, reading, mistakes)])
    mistakes.check()
    nodes = tuple(_node(node, hosts.get(node), pools.get(node, ()), storages.shared, guests) for node in answers)
    rules = read_rules(guests, hosts, list(answers))
    group = Group(GROUP, GROUP, policy=NO_POLICY)
    instances = tuple(guest.as_instance() for guest in guests)
    cluster = Cluster((group,), nodes, instances, policy=NO_POLICY, rules=rules, manager=Manager.LIBVIRT)
    check_cluster(cluster, Places([GROUP], [f"source.uris.{node}" for node in answers], [guest.place for guest in guests]), mistakes)
    mistakes.check()
    return cluster


def _guests(node: str, values: Values, storages: Storages, reading: Reading, mistakes: Mistakes) -> list[Guest]:
    statistics, snapshots = read_statistics(values["domstats"]), frozenset(values["snapshots"].split())
    found = []
    for position, text in enumerate(values["domains"]):
        place = f"{node}.domains[{position}]"
        domain = read_domain(text, place, mistakes)
        own = statistics.get(domain.name, {})
        found.append(make_guest(domain, node, place, own, storages, domain.uuid in snapshots, reading.local_disks))
    return found


def _node(name: str, host: Host | None, pools: Sequence[Pool], shared: frozenset[str], guests: Sequence[Guest]) -> Node:
    """Return a node; the memory that is in use beyond its guests' is its own."""
    own = [guest for guest in guests if guest.node == name and guest.runs]
    storage = tuple(pool.as_storage(shared) for pool in pools)
    inside = [pool for pool in storage if pool.name.kind == PoolKind.INTERNAL]
    total, available = (0, 0) if host is None else (host.memory, host.available)
    if available is None:
        available = max(0, total - sum(guest.domain.memory for guest in own))
        node_memory = 0
    else:
        node_memory = max(0, in_mib(total - available - sum(guest.used for guest in own)))
    return Node(
        name=name,
        group=GROUP,
        total_memory=float(total // MIB),
        node_memory=node_memory,
        free_memory=available // MIB,
        total_disk=float(sum(pool.total or 0 for pool in inside)),
        free_disk=sum(pool.free or 0 for pool in inside),
        total_cpus=0.0 if host is None else float(host.cpus),
        node_cpus=0,
        unreachable=host is None,
        storage=storage,
    )
