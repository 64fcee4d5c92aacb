# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An independent, slow reading of the rules of group planning, node by node and from scratch, to check the arrays against.

Written from the formulas of Ganeti's htools (its design documents and manual pages), and knows nothing of the solver:
it sees models only. Used by unit and property tests.
"""

from __future__ import annotations

import itertools
import math
import statistics

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Cluster, Instance, Node


def starts(tags, prefixes):
    return [tag for tag in dict.fromkeys(tags) if any(tag.startswith(prefix) for prefix in prefixes)]


class Book:
    """What is on one node, counted anew from the cluster."""

    def __init__(self, cluster: Cluster, node: Node) -> None:
        rules = {
            name: [tag.removeprefix(f"htools:{name}:") for tag in cluster.tags if tag.startswith(f"htools:{name}:")]
            for name in ("iextags", "nlocation", "desiredlocation")
        }
        located = [f"{name}:" for name in rules["nlocation"]]
        by_name = {other.name: other for other in cluster.nodes}
        policy = next(group.policy for group in cluster.groups if group.name == node.group)
        planned = [i for i in cluster.instances if i.primary == node.name]
        planned_seconds = [i for i in cluster.instances if i.secondary == node.name]
        self.node = node
        self.primaries = [i for i in planned if not i.forthcoming]
        self.secondaries = [i for i in planned_seconds if not i.forthcoming]
        used = sum(i.memory for i in self.primaries if i.uses_memory)
        books = math.floor(node.total_memory) - node.node_memory - used
        self.memory = books - max(0, books - node.free_memory)
        self.memory_planned = node.free_memory - sum(i.memory for i in planned if not i.uses_memory)
        self.disk = node.free_disk
        forthcoming = [i for i in (*planned, *planned_seconds) if i.forthcoming and i.disk_template in ("plain", "drbd")]
        self.disk_planned = node.free_disk - sum(i.disk for i in forthcoming)
        self.spindles = node.free_spindles
        self.spindles_planned = node.free_spindles - sum(i.spindles or 0 for i in forthcoming)
        self.cpus = node.node_cpus + sum(i.vcpus for i in self.primaries if i.status != "ADMIN_offline")
        self.cpus_planned = node.node_cpus + sum(i.vcpus for i in planned if i.status != "ADMIN_offline")
        self.use = self._use(self.primaries, self.secondaries)
        self.use_planned = self._use(planned, planned_seconds)
        self.spindle_limit = policy.spindle_ratio * node.spindles
        peers: dict[str, int] = {}
        for i in self.secondaries:
            if i.auto_balance and i.status != "ADMIN_offline":
                peers[i.primary] = peers.get(i.primary, 0) + i.memory
        self.reserved = max(peers.values(), default=0)
        self.load = {
            "cpu": sum(i.load.cpu for i in self.primaries),
            "mem": sum(i.load.memory for i in self.primaries),
            "disk": sum(i.load.disk for i in (*self.primaries, *self.secondaries)),
            "net": sum(i.load.net for i in self.primaries),
        }
        tags = [tag for i in planned for tag in starts(i.tags, rules["iextags"])]
        self.tag_conflicts = len(tags) - len(set(tags))
        self.cannot_run = sum(i.vcpus > node.total_cpus for i in planned)
        locations = set(starts(node.tags, located))
        self.location = 0
        self.location_tags = []
        for i in self.primaries:
            if i.secondary:
                self.location += len(locations & set(starts(by_name[i.secondary].tags, located)))
            self.location += len(set(starts(i.tags, rules["desiredlocation"])) - locations)
            self.location_tags += [(place, tag) for place in locations for tag in starts(i.tags, rules["iextags"])]

    def _use(self, primaries: list[Instance], secondaries: list[Instance]) -> int:
        if self.node.exclusive_storage:
            return 0
        return sum(i.spindle_use for i in (*primaries, *secondaries) if i.disk_template in ("plain", "drbd"))

    def disk_share(self, disk: int, spindles: int) -> float:
        free, total = (spindles, self.node.spindles) if self.node.exclusive_storage else (disk, self.node.total_disk)
        return free / total if total else 1.0


def least_stranded(cluster: Cluster, failing: str) -> int:
    """Return the memory that finds no node when one fails, in a cluster of shared_clusters, by trying every arrangement."""
    leaving = [instance for instance in cluster.instances if instance.primary == failing]
    others = [node for node in cluster.nodes if node.name != failing]
    staying = {node.name: [i for i in cluster.instances if i.primary == node.name] for node in others}
    least = sum(instance.memory for instance in leaving)
    for places in itertools.product([None, *staying], repeat=len(leaving)):
        full = {name: [*here, *(i for i, place in zip(leaving, places) if place == name)] for name, here in staying.items()}
        fits = all(sum(i.memory for i in here) <= 12 for here in full.values())
        tagged = {place for i, place in zip(leaving, places) if place is not None and i.tags}
        if fits and all(sum(bool(i.tags) for i in full[name]) == 1 for name in tagged):
            least = min(least, sum(i.memory for i, place in zip(leaving, places) if place is None))
    return least


def spread(values) -> float:
    values = list(values)
    return statistics.pstdev(values) if values else 0.0


def htools_metrics(cluster: Cluster) -> dict[str, float]:
    """Return htools' metrics of a freshly loaded cluster without nodes of no memory, CPUs or spindle limit."""
    books = [Book(cluster, node) for node in cluster.nodes]
    online = [book for book in books if book.node.state == "up"]
    dark = [book for book in books if book.node.state != "up"]
    pairs = [pair for book in online for pair in book.location_tags]

    def count(book):
        return len(book.primaries) + len(book.secondaries)

    def over(values):
        return spread(values(book) for book in online)

    speed = {book.node.name: book.node.total_cpus * book.node.cpu_speed for book in online}
    return {
        "free_mem_cv": over(lambda book: book.memory / book.node.total_memory),
        "free_disk_cv": over(lambda book: book.disk_share(book.disk, book.spindles)),
        "n1_cnt": sum(count(book) for book in online if book.node.free_memory < book.reserved),
        "reserved_mem_cv": over(lambda book: book.reserved / book.node.total_memory),
        "offline_all_cnt": sum(count(book) for book in dark),
        "offline_pri_cnt": sum(len(book.primaries) for book in dark),
        "vcpu_ratio_cv": over(lambda book: book.cpus / speed[book.node.name]),
        "cpu_load_cv": over(lambda book: book.load["cpu"]),
        "mem_load_cv": over(lambda book: book.load["mem"]),
        "disk_load_cv": over(lambda book: book.load["disk"]),
        "net_load_cv": over(lambda book: book.load["net"]),
        "pri_tags_score": sum(book.tag_conflicts for book in online),
        "spindles_cv": over(lambda book: book.use / book.spindle_limit),
        "free_mem_cv_forth": over(lambda book: book.memory_planned / book.node.total_memory),
        "free_disk_cv_forth": over(lambda book: book.disk_share(book.disk_planned, book.spindles_planned)),
        "vcpu_ratio_cv_forth": over(lambda book: book.cpus_planned / speed[book.node.name]),
        "spindles_cv_forth": over(lambda book: book.use_planned / book.spindle_limit),
        "location_score": sum(book.location for book in online),
        "location_exclusion_score": len(pairs) - len(set(pairs)),
        "reserved_mem_rtotal": sum(book.reserved / book.node.total_memory for book in online),
    }
