# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Capacity in tiers: copies of the largest instance first, then of ever smaller ones, until nothing fits.

    count = count_tiers(cluster, [largest], groups, options)      # Count, whose copies have the sizes they got

When a copy does not fit, the resource that is short at most places is taken back by one unit (64 MiB of memory, 256 MiB of
disk, a CPU, a spindle), and again until a copy fits or the resource is used up; then, from the smallest size back to the
larger ones, any one resource is tried that is enough alone. The sequence is that of Ganeti's hspace, but that it ends at the least that the
policies allow: smaller sizes are refused everywhere, and hspace goes on through all of them.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..cluster.model import Cluster, Instance, Policy, Spec
from ..cluster.state import ClusterState
from .copies import Attempt, CopyOptions, Look, look_at, resized, room_for
from .count import MOST_COPIES, Count, fill, scorer_for, without_stranding
from .stranding import Copy

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
    attempt = Attempt(None, collections.Counter())
    for instance in instances:
        wanted: Instance | None = instance
        while wanted is not None and len(copies) < MOST_COPIES:
            room = resized(room, wanted)
            added, attempt = fill(room, groups, scorer, options, MOST_COPIES - len(copies))
            copies += added
            wanted = _next_size(_Looks(room, groups, options))
    return without_stranding(cluster, groups, Count(tuple(copies), attempt.failures))


@dataclass(frozen=True)
class _Run:
    """The last of sizes of which none fits, each with less of the same than the one before; `plain` as _Looks says."""

    last: Instance
    plain: bool


class _Looks:
    """Looks at sizes in one room, which must not change while this is used."""

    def __init__(self, room: ClusterState, groups: Sequence[int], options: CopyOptions) -> None:
        self.size = room.facts.instances.models[0]
        self._room = room
        self._groups = groups
        self._options = options
        self._known: dict[Instance, Look] = {}
        self._policies = [room.facts.cluster.groups[group].policy for group in groups]
        self.least = least_size(self._policies)

    def at(self, size: Instance) -> Look:
        """Return whether a copy of a size fits anywhere, or what fails."""
        if size not in self._known:
            self._known[size] = look_at(self._room, size, self._groups, self._options)
        return self._known[size]

    def is_plain(self, size: Instance) -> bool:
        """Return whether less of a resource makes no policy refuse what it took before: the less is asked, the more places fit."""
        return all(len(policy.intervals) == 1 and _is_above(size, policy.intervals[0].minimum) for policy in self._policies)


def _is_above(size: Instance, least: Spec) -> bool:
    disks = all(disk.size >= least.disk_size and (disk.spindles or least.spindle_use) >= least.spindle_use for disk in size.disks)
    return disks and size.memory >= least.memory and size.vcpus >= least.cpus


def _next_size(looks: _Looks) -> Instance | None:
    """Return the next smaller size of which a copy fits."""
    size, mode = looks.size, _ranked(looks.at(looks.size))[0]
    runs = [_Run(size, looks.is_plain(size))]
    while (smaller := shrunk(size, mode, looks.least)) is not None:
        if looks.at(smaller).fits:
            return smaller
        runs.append(_alike(looks, smaller, mode))
        size = runs[-1].last
        mode = _ranked(looks.at(size))[0]
    tried = False
    for run in reversed(runs):
        # What no single resource cures at a size, it does not cure at a larger one.
        if tried and run.plain:
            continue
        enough = next(filter(None, (_enough(looks, run.last, mode) for mode in _ranked(looks.at(run.last)))), None)
        if enough is not None:
            return enough
        tried = tried or run.plain
    return None


def _alike(looks: _Looks, size: Instance, mode: str) -> _Run:
    """Return a size that does not fit and the smaller ones after it, as long as the same is short at most places.

    The further a resource is taken back, the fewer places lack it, so that doubling and halving find where that ends.
    """
    if not looks.is_plain(size):
        return _Run(size, plain=False)

    def alike(units: int) -> bool:
        smaller = shrunk(size, mode, looks.least, units)
        if smaller is None or not looks.is_plain(smaller):
            return False
        found = looks.at(smaller)
        return not found.fits and _ranked(found)[0] == mode

    if not alike(0):
        return _Run(size, plain=True)
    low, high = 0, 1
    while alike(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if alike(middle) else (low, middle)
    return _Run(shrunk(size, mode, looks.least, low) or size, plain=True)


def _ranked(look: Look) -> list[str]:
    """Return htools' fail modes, the most frequent first; the later of equals first."""
    counts = dict.fromkeys(FAIL_MODES, 0)
    for limit, count in look.failures.items():
        counts[limit.fail_mode] += count
    return sorted(FAIL_MODES, key=lambda mode: (-counts[mode], -FAIL_MODES.index(mode)))


def _enough(looks: _Looks, size: Instance, mode: str) -> Instance | None:
    """Return the size at which taking back one resource alone lets a copy fit; None when something else is in the way before.

    The further a resource is taken back, the fewer places lack it and the more fit, so that halving finds the turn.
    """
    if not _is_short(looks.at(size), mode):
        return None

    def less(units: int) -> Look | None:
        smaller = shrunk(size, mode, looks.least, units)
        return None if smaller is None else looks.at(smaller)

    def turned(units: int) -> bool:
        found = less(units)
        return found is None or found.fits or not _is_short(found, mode)

    low, high = 0, 1
    while not turned(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if turned(middle) else (middle, high)
    found = less(high)
    return shrunk(size, mode, looks.least, high) if found is not None and found.fits else None


def _is_short(look: Look, mode: str) -> bool:
    return any(limit.fail_mode == mode for limit in look.failures)


def least_size(policies: Iterable[Policy]) -> Spec:
    """Return the least of each resource that any interval of the policies allows, at least one unit."""
    specs = [interval.minimum for policy in policies for interval in policy.intervals]
    return Spec(
        memory=max(min((spec.memory for spec in specs), default=0), UNIT_MEMORY),
        cpus=max(min((spec.cpus for spec in specs), default=0), UNIT_CPU),
        disk_size=max(min((spec.disk_size for spec in specs), default=0), UNIT_DISK),
        disk_count=0,
        nics=0,
        spindle_use=0,
    )


def shrunk(instance: Instance, mode: str, least: Spec, units: int = 1) -> Instance | None:
    """Return an instance with `units` less of what a fail mode is about, or None when less than the least would be left."""
    if mode == "FailMem":
        memory = instance.memory - units * UNIT_MEMORY
        return dataclasses.replace(instance, memory=memory) if memory >= least.memory else None
    if mode == "FailCPU":
        vcpus = instance.vcpus - units * UNIT_CPU
        return dataclasses.replace(instance, vcpus=vcpus) if vcpus >= least.cpus else None
    if mode == "FailDisk":
        disks = tuple(dataclasses.replace(disk, size=disk.size - units * UNIT_DISK) for disk in instance.disks)
        if not disks or any(disk.size < least.disk_size for disk in disks):
            return None
        return dataclasses.replace(instance, disk=instance.disk - units * UNIT_DISK * len(disks), disks=disks)
    return _fewer_spindles(instance, units * UNIT_SPINDLE) if mode == "FailSpindles" else None


def _fewer_spindles(instance: Instance, fewer: int) -> Instance | None:
    if len(instance.disks) != 1 or instance.disks[0].spindles is None or instance.disks[0].spindles - fewer < UNIT_SPINDLE:
        return None
    disk = dataclasses.replace(instance.disks[0], spindles=instance.disks[0].spindles - fewer)
    return dataclasses.replace(instance, disks=(disk,))
