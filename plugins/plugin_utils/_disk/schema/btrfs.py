# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is asked of a Btrfs: its file system and level, and on how many disks it lies."""

from __future__ import annotations

from ....module_utils._data.containers import Values
from ....module_utils._data.errors import Mistakes
from ....module_utils._storage import btrfs
from ....module_utils._storage.raid import RaidLevel
from ..model import SpaceType
from .entry import Entry
from .values import ALL_DISKS


def with_btrfs(values: Values, space_type: SpaceType | None, place: str, mistakes: Mistakes) -> Values:
    """Return the values of a space whose type or whose subvolumes make its file system a Btrfs."""
    fs_type = values["fs_type"]
    if fs_type not in (None, btrfs.BTRFS) and space_type is SpaceType.BTRFS:
        mistakes.add(f"{place}.fs_type", f"is {fs_type}; a space of type: btrfs has no other file system, so leave it out")
    elif fs_type not in (None, btrfs.BTRFS):
        mistakes.add(f"{place}.subvolumes", f"only btrfs has subvolumes, {fs_type} does not; leave fs_type or subvolumes out")
    level = (values["level"] or RaidLevel.RAID1) if space_type is SpaceType.BTRFS else values["level"]
    return {**values, "fs_type": btrfs.BTRFS, "level": level}


def legs_of_btrfs(entry: Entry, level: RaidLevel, disks: int, mistakes: Mistakes) -> int:
    """Return on how many disks a Btrfs lies."""
    place, legs = f"{entry.place}.legs", entry.values["legs"]
    if level not in btrfs.LEVELS:
        says = f"is {level}, which Btrfs does not have, or which loses data in a power cut; it must be one of {', '.join(btrfs.LEVELS)}"
        mistakes.add(f"{entry.place}.level", says)
        return 0
    least = btrfs.LEVELS[level]
    if legs is None:
        return least
    everything = legs == ALL_DISKS
    count: int = disks if everything else legs
    if count < least:
        mistakes.add(place, f"{'all is ' if everything else ''}{count} is too few; {level} of Btrfs needs {least} disks or more")
    elif not everything and count != btrfs.most_legs(level, count):
        mistakes.add(place, f"{count} is odd; {level} of Btrfs is planned on disks by pairs")
    return btrfs.most_legs(level, count)
