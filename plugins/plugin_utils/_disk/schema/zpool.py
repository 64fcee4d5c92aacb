# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is asked of a ZFS pool: its disks, logs and caches, what it may be called, where it may be mounted, how small it may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....module_utils._data.errors import Mistakes, suggest
from ....module_utils._storage import zfs
from ..model import SpaceType
from .entry import Entry
from .values import ALL_DISKS, KEYS_OF_SOME

_NOT_ON_ZFS = ("/", "/boot", "/boot/efi", "/usr", "/etc")
"""Mount points that a machine needs before ZFS is there."""
_NOT_OF_PARTS = (
    *("mount", "mount_options", "fs_type", "fs_options", "fs_label", "subvolumes", "partition_type", "per_disk", "keep_data", "boot"),
    *("encrypt", "unlock"),
)


def parts_of(known: Sequence[Entry], left_out: dict[str, str], mistakes: Mistakes) -> dict[str, tuple[str, zfs.Part]]:
    """Return the pool of every space that is a log or a cache of one; what stands against that is a mistake."""
    by_id = {item.id: item for item in known}
    found: dict[str, tuple[str, zfs.Part]] = {}
    for item in known:
        for part, key in ((zfs.Part.LOG, "log_of"), (zfs.Part.CACHE, "cache_of")):
            pool = item.values[key]
            is_one = pool is not None and item.type in KEYS_OF_SOME[key] and (part is zfs.Part.LOG or _is_pool(by_id.get(pool)))
            if is_one and _may_be_part(item, part, key, by_id, left_out, mistakes):
                found[item.id] = (pool, part)
    return found


def _is_pool(entry: Entry | None) -> bool:
    return entry is not None and entry.type is SpaceType.ZPOOL


def _may_be_part(item: Entry, part: zfs.Part, key: str, by_id: Mapping[str, Entry], left_out: dict[str, str], mistakes: Mistakes) -> bool:
    place, pool = f"{item.place}.{key}", item.values[key]
    if pool in left_out:
        left_out[item.id] = f"left out because {pool} is"
        return False
    for other in _NOT_OF_PARTS:
        if item.values[other]:
            mistakes.add(place, f"cannot be combined with {other}; a {part} of a zpool holds nothing of its own")
    if part is zfs.Part.LOG and item.values["cache_of"] is not None:
        mistakes.add(place, "cannot be combined with cache_of; a partition is a log or a cache")
    if part is zfs.Part.LOG and item.given.get("cache_mode") is not None:
        mistakes.add(f"{item.place}.cache_mode", "is for caches of an lv; leave it out")
    if part is zfs.Part.CACHE and item.given.get("cache_mode") is not None:
        mistakes.add(f"{item.place}.cache_mode", "is for caches of an lv; a zpool's cache holds only what is in the pool as well")
    if part is zfs.Part.CACHE and item.type is not SpaceType.PARTITION:
        says = "a zpool's cache is a partition, for it holds only what is in the pool as well"
        mistakes.add(place, f"{says}; leave mirror out" if item.values["mirror"] else f"{says}; make it type: partition")
    if pool not in by_id:
        mistakes.add(place, f"there is no space {pool!r}{suggest(pool, by_id)}")
    elif not _is_pool(by_id[pool]):
        mistakes.add(place, f"{pool!r} has type {by_id[pool].type}; only a zpool can have a log")
    return not mistakes.has(place)


def legs_of_zpool(entry: Entry, disks: int, mistakes: Mistakes) -> int:
    """Return on how many disks a pool lies: on whole vdevs, all of one width."""
    vdev, legs, place = entry.values["vdev"], entry.values["legs"], f"{entry.place}.legs"
    if mistakes.has(f"{entry.place}.vdev") or mistakes.has(place):
        return 0
    least = zfs.LEAST_WIDTH[vdev] * (entry.values["vdevs"] or 1)
    everything, spares = legs == ALL_DISKS, entry.values["spares"]
    count: int = disks - spares if everything else legs or least
    if spares and vdev is zfs.Vdev.STRIPE:
        mistakes.add(f"{entry.place}.spares", "a stripe does not survive the loss of a disk, so a spare is of no use; leave spares out")
    shape = zfs.shape_of(vdev, count, entry.values["vdevs"])
    if count < least:
        each = f"{entry.values['vdevs']} vdevs of {vdev} need" if entry.values["vdevs"] else f"{vdev} needs"
        here = f"all is {count} here{f' without {spares} spares' if spares else ''}" if everything else f"{count} is too few"
        mistakes.add(place, f"{here}; {each} {least} disks or more")
    elif shape.legs != count and not everything:
        fits = f"{shape.legs} can, and so can {shape.legs + shape.vdevs}"
        mistakes.add(place, f"{count} cannot be divided into {shape.vdevs} vdevs of one size; {fits}")
    return shape.legs if count >= least else 0


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
