# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is asked of a ZFS pool: on how many disks it lies, what it may be called, where it may be mounted, how small it may be."""

from __future__ import annotations

from ....module_utils.storage import zfs
from ...common.errors import Mistakes
from .entry import Entry
from .values import ALL_DISKS

_NOT_ON_ZFS = ("/", "/boot", "/boot/efi", "/usr", "/etc")
"""Mount points that a machine needs before ZFS is there."""


def legs_of_zpool(entry: Entry, disks: int, mistakes: Mistakes) -> int:
    """Return on how many disks a pool lies: on whole vdevs, all of one width."""
    vdev, legs, place = entry.values["vdev"], entry.values["legs"], f"{entry.place}.legs"
    if mistakes.told(f"{entry.place}.vdev") or mistakes.told(place):
        return 0
    least = zfs.LEAST_WIDTH[vdev] * (entry.values["vdevs"] or 1)
    everything = legs == ALL_DISKS
    count: int = disks if everything else legs or least
    shape = zfs.shape_of(vdev, count, entry.values["vdevs"])
    if count < least:
        each = f"{entry.values['vdevs']} vdevs of {vdev} need" if entry.values["vdevs"] else f"{vdev} needs"
        mistakes.add(place, f"{'all is ' if everything else ''}{count} is too few; {each} {least} disks or more")
    elif shape.legs != count and not everything:
        fits = f"{shape.legs} can, and so can {shape.legs + shape.vdevs}"
        mistakes.add(place, f"{count} cannot be divided into {shape.vdevs} vdevs of one size; {fits}")
    return shape.legs


def check_zpool(entry: Entry, mistakes: Mistakes) -> None:
    """Note names and mount points that a pool cannot have."""
    if entry.id and not zfs.is_pool_name(entry.id):
        mistakes.add(f"{entry.place}.id", f"{entry.id!r} cannot name a ZFS pool; it must be {zfs.POOL_WANTED}")
    places = [f"{entry.place}.mount", *(f"{entry.place}.datasets[{at}].mount" for at in range(len(entry.values["datasets"])))]
    for place, values in zip(places, (entry.values, *entry.values["datasets"]), strict=True):
        if values["mount"] in _NOT_ON_ZFS:
            mistakes.add(place, f"is {values['mount']!r}, which is not put on ZFS here; put it on a partition, an lv or a raid")
        elif values["mount"] == "swap":
            mistakes.add(place, "is 'swap'; a zpool holds files")


def check_least_zpool(entry: Entry, most: int, legs: int, mistakes: Mistakes) -> None:
    """Note a pool that may not be as large as the least that ZFS makes."""
    if legs:
        least = zfs.room(zfs.shape_of(entry.values["vdev"], legs, entry.values["vdevs"]), zfs.LEAST_LEG, entry.values["ashift"])
        key = "size" if entry.values["size"] is not None else "max_size"
        says = f"{most} MiB are too little for a {entry.values['vdev']} of ZFS on {legs} disks, of {zfs.LEAST_LEG} MiB each at least"
        if most < least:
            mistakes.add(f"{entry.place}.{key}", f"{says}, which has {least}")
