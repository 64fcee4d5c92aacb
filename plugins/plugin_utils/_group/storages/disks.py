# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks of instances: which may go to another storage of their set, and why the others stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..cluster.model import Cluster, Instance, PoolKind
from ..cluster.staying import find_staying
from .levels import Key, Storage


@dataclass(frozen=True)
class DiskMove:
    """A disk of an instance, which stays on its node, goes to another storage."""

    instance: Instance
    disk: str
    size: int
    source: Key
    target: Key


@dataclass(frozen=True)
class StayingDisk:
    """A disk that cannot go to another storage, and why."""

    instance: str
    disk: str
    storage: str
    why: str


@dataclass(frozen=True)
class Candidate:
    """A disk that may go to others of the storages `allowed`, among which is its own."""

    instance: Instance
    name: str
    size: int
    source: Key
    allowed: tuple[Key, ...]


def find_candidates(
    cluster: Cluster,
    storages: Mapping[Key, Storage],
    sets: Sequence[tuple[Key, ...]],
) -> tuple[list[Candidate], list[StayingDisk]]:
    """Return the disks that may move, and those that may not."""
    set_of = {key: members for members in sets for key in members}
    candidates, stays = [], []
    staying = {cluster.instances[position].name: one.says for position, one in find_staying(cluster).items()}
    for instance in cluster.instances:
        for position, disk in enumerate(() if instance.forthcoming else instance.disks):
            if disk.storage is None:
                continue
            name = disk.name or f"disk{position}"
            key = (disk.storage, "" if disk.storage.kind == PoolKind.EXTERNAL else instance.primary)
            allowed = tuple(other for other in set_of.get(key, ()) if other == key or storages[other].takes(disk))
            why = disk.stays or staying.get(instance.name) or _why_it_stays(instance, key in storages, len(allowed))
            if why:
                stays.append(StayingDisk(instance.name, name, disk.storage.pool, why))
            elif disk.size:
                candidates.append(Candidate(instance, name, disk.size, key, allowed))
    return candidates, stays


def _why_it_stays(instance: Instance, known: bool, choices: int) -> str:
    if not instance.auto_balance:
        return "its instance is not to be balanced"
    if not known:
        return "no node that answers reports how full its storage is"
    return "" if choices > 1 else "no other storage that the same nodes reach takes it"
