# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Capacity in tiers: copies of the largest instance first, then of ever smaller ones, until nothing fits.

    count = count_tiers(cluster, [largest], groups, options)      # Count, whose copies have the sizes they got

When a copy does not fit, the resource that is short at most places is taken back by one unit (64 MiB of memory, 256 MiB of
disk, a CPU, a spindle), and again until a copy fits or the resource is used up; then, from the smallest size back to the
larger ones, any one resource is tried that is enough alone. The sequence is that of Ganeti's hspace.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from .capacity import MOST_COPIES, Copy, Count, fill, scorer_for, without_stranding
from .copies import Attempt, CopyOptions, resized, room_for, try_copy
from .model import Cluster, Instance
from .score import Scorer
from .state import ClusterState

UNIT_MEMORY, UNIT_DISK, UNIT_CPU, UNIT_SPINDLE = 64, 256, 1, 1
FAIL_MODES = ("FailMem", "FailDisk", "FailCPU", "FailN1", "FailTags", "FailMig", "FailDiskCount", "FailSpindles", "FailInternal")
"""htools' words in their order, by which ties between equally frequent failures are broken."""


def count_tiers(cluster: Cluster, instances: Sequence[Instance], groups: Sequence[int], options: CopyOptions) -> Count:
    """Return the copies of each of `instances` and of what it shrinks to, in the order in which they were placed.

    The instances differ in their sizes only.
    """
    room = room_for(cluster, instances[0])
    scorer = scorer_for(room, groups, options)
    copies: list[Copy] = []
    attempt = try_copy(room, groups, options, scorer)
    for instance in instances:
        wanted: Instance | None = instance
        while wanted is not None and len(copies) < MOST_COPIES:
            room = resized(room, wanted)
            added, attempt = fill(room, groups, scorer, options, MOST_COPIES - len(copies))
            copies += added
            wanted = _next_size(room, groups, options, scorer)
    return without_stranding(cluster, groups, Count(tuple(copies), attempt.failures), options)


def _next_size(room: ClusterState, groups: Sequence[int], options: CopyOptions, scorer: Scorer) -> Instance | None:
    """Return the next smaller size of which a copy fits."""
    chain = [(room.facts.instances.models[0], try_copy(room, groups, options, scorer))]
    while (smaller := shrunk(chain[-1][0], _ranked(chain[-1][1])[0])) is not None:
        attempt = try_copy(resized(room, smaller), groups, options, scorer)
        if attempt.place is not None:
            return smaller
        chain.append((smaller, attempt))
    for size, attempt in reversed(chain):
        for mode in _ranked(attempt):
            enough = _enough(room, size, attempt, mode, groups, options, scorer)
            if enough is not None:
                return enough
    return None


def _ranked(attempt: Attempt) -> list[str]:
    """Return htools' fail modes, the most frequent first; the later of equals first."""
    counts = dict.fromkeys(FAIL_MODES, 0)
    for limit, count in attempt.failures.items():
        counts[limit.fail_mode] += count
    return sorted(FAIL_MODES, key=lambda mode: (-counts[mode], -FAIL_MODES.index(mode)))


def _enough(
    room: ClusterState,
    size: Instance,
    attempt: Attempt,
    mode: str,
    groups: Sequence[int],
    options: CopyOptions,
    scorer: Scorer,
) -> Instance | None:
    """Return the size at which taking back one resource alone lets a copy fit; None when something else is in the way before.

    The further a resource is taken back, the fewer places lack it and the more fit, so that halving finds the turn.
    """
    if not _is_short(attempt, mode):
        return None
    sizes = list(_shrinking(size, mode))

    def turned(position: int) -> bool:
        found = try_copy(resized(room, sizes[position]), groups, options, scorer)
        return found.place is not None or not _is_short(found, mode)

    low, high = -1, len(sizes)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if turned(middle) else (middle, high)
    if high == len(sizes):
        return None
    return sizes[high] if try_copy(resized(room, sizes[high]), groups, options, scorer).place is not None else None


def _is_short(attempt: Attempt, mode: str) -> bool:
    return any(limit.fail_mode == mode for limit in attempt.failures)


def _shrinking(size: Instance, mode: str) -> Iterator[Instance]:
    smaller = shrunk(size, mode)
    while smaller is not None:
        yield smaller
        smaller = shrunk(smaller, mode)


def shrunk(instance: Instance, mode: str) -> Instance | None:
    """Return an instance with one unit less of what a fail mode is about, or None when less than a unit would be left."""
    if mode == "FailMem":
        memory = instance.memory - UNIT_MEMORY
        return dataclasses.replace(instance, memory=memory) if memory >= UNIT_MEMORY else None
    if mode == "FailCPU":
        vcpus = instance.vcpus - UNIT_CPU
        return dataclasses.replace(instance, vcpus=vcpus) if vcpus >= UNIT_CPU else None
    if mode == "FailDisk":
        return _less_disk(instance)
    if mode == "FailSpindles":
        return _fewer_spindles(instance)
    return None


def _less_disk(instance: Instance) -> Instance | None:
    disks = tuple(dataclasses.replace(disk, size=disk.size - UNIT_DISK) for disk in instance.disks)
    if not disks or any(disk.size < UNIT_DISK for disk in disks):
        return None
    return dataclasses.replace(instance, disk=instance.disk - UNIT_DISK * len(disks), disks=disks)


def _fewer_spindles(instance: Instance) -> Instance | None:
    if len(instance.disks) != 1 or instance.disks[0].spindles is None or instance.disks[0].spindles - UNIT_SPINDLE < UNIT_SPINDLE:
        return None
    disk = dataclasses.replace(instance.disks[0], spindles=instance.disks[0].spindles - UNIT_SPINDLE)
    return dataclasses.replace(instance, disks=(disk,))
