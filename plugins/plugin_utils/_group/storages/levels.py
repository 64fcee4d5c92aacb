# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Storages, and between how many MiB each of them is as full as the others. Levels are the share of a storage that is used.

Storages that the same nodes reach are a *set*: a disk moves within its set only, so that its instance can go wherever it could before.
Local storages of one node are sets, too.

The even level of a set is water poured into its storages over what cannot be moved. What a storage has outside a band around its even
level is its *excess*.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..cluster.model import Cluster, Disk, PoolKind, PoolName

Key = tuple[PoolName, str]
"""Of a storage: its name, and its node where it lies within one."""


@dataclass(frozen=True)
class Storage:
    """A storage that disks of instances lie in; `node` is empty where it is outside of nodes, `nodes` are those that reach it."""

    name: PoolName
    node: str
    nodes: tuple[str, ...]
    total: int
    used: int
    content: tuple[str, ...] = ()

    @property
    def level(self) -> float:
        """The share of the storage that is used."""
        return self.used / self.total if self.total else 0.0

    def takes(self, disk: Disk) -> bool:
        """Return whether disks of this kind may lie here."""
        return not self.content or disk.content in self.content


def collect_storages(cluster: Cluster) -> dict[Key, Storage]:
    """Return the storages whose sizes are known, in the order of nodes; one outside of nodes is there once."""
    found: dict[Key, Storage] = {}
    for node in cluster.nodes:
        for pool in () if node.offline or node.unreachable else node.storage:
            key = (pool.name, "" if pool.name.kind == PoolKind.EXTERNAL else node.name)
            if key in found:
                known = found[key]
                found[key] = dataclasses.replace(known, nodes=(*known.nodes, node.name))
            elif pool.total and pool.free is not None:
                found[key] = Storage(*key, (node.name,), pool.total, max(0, pool.total - pool.free), pool.content)
    return found


def storage_sets(storages: Iterable[Storage]) -> list[tuple[Key, ...]]:
    """Return the storages that disks can move between: those of one kind that the same nodes reach."""
    alike: dict[tuple[PoolKind, frozenset[str]], list[Key]] = collections.defaultdict(list)
    for storage in storages:
        alike[storage.name.kind, frozenset(storage.nodes)].append((storage.name, storage.node))
    return [tuple(members) for members in alike.values()]


def even_bands(
    members: Sequence[Key],
    storages: Mapping[Key, Storage],
    fixed: Mapping[Key, int],
    tolerance: float,
) -> dict[Key, tuple[float, float]]:
    """Return between how many MiB each storage of a set is as full as the others."""
    everything = sum(storages[key].used for key in members)
    level = 0.0
    # Storages in the order in which the rising water reaches them.
    reached = sorted(members, key=lambda key: fixed[key] / storages[key].total)
    for count in range(1, len(reached) + 1):
        under = reached[:count]
        level = (everything - sum(fixed[key] for key in reached[count:])) / sum(storages[key].total for key in under)
        if count == len(reached) or level <= fixed[reached[count]] / storages[reached[count]].total:
            break
    found = {}
    for key in members:
        even = max(fixed[key] / storages[key].total, level)
        found[key] = ((even - tolerance) * storages[key].total, (even + tolerance) * storages[key].total)
    return found


def excess(members: Iterable[Key], used: Mapping[Key, int], bands: Mapping[Key, tuple[float, float]]) -> float:
    """Return the MiB that storages have too much or too little in all."""
    return math.fsum(max(0.0, bands[key][0] - used[key], used[key] - bands[key][1]) for key in members)
