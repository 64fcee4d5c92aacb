# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mounts and swap as the kernel lists them, which no version of lsblk is needed for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .._storage.fstab import without_escapes
from .host import Host

SWAP = "[SWAP]"
"""What stands for swap among mount points, as in lsblk."""


@dataclass(frozen=True)
class Mounts:
    """What is mounted, by device: by `major:minor`, and by the device's path where the kernel names a source."""

    targets: Mapping[str, tuple[str, ...]]
    types: Mapping[str, str]


def read_mounts(host: Host) -> Mounts:
    """Return the mounts, swap among them."""
    mounts = parse_mounts(host.read("/proc/self/mountinfo") or "")
    swaps = parse_swaps(host.read("/proc/swaps") or "")
    targets = {source: (*mounts.targets.get(source, ()), SWAP) for source in swaps}
    return Mounts({**mounts.targets, **targets}, {**mounts.types, **dict.fromkeys(swaps, "swap")})


def parse_mounts(mountinfo: str) -> Mounts:
    """Return the mounts of /proc/self/mountinfo; btrfs mounts carry a number of no device, so their source counts."""
    targets: dict[str, tuple[str, ...]] = {}
    types: dict[str, str] = {}
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        fields, origin = before.split(), after.split()
        if not separator or len(fields) < 5 or len(origin) < 2:
            continue
        source = without_escapes(origin[1])
        for key in (fields[2], source) if source.startswith("/dev/") else (fields[2],):
            targets[key] = tuple(dict.fromkeys((*targets.get(key, ()), without_escapes(fields[4]))))
            types[key] = origin[0]
    return Mounts(targets, types)


def parse_swaps(swaps: str) -> tuple[str, ...]:
    """Return the devices of /proc/swaps."""
    lines = swaps.splitlines()[1:]
    return tuple(without_escapes(line.split()[0]) for line in lines if line.startswith("/dev/"))
