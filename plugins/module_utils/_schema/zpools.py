# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ZFS pools of a static schema, with their vdevs and datasets."""

from __future__ import annotations

from collections.abc import Sequence

from .._storage import zfs
from .._storage.names import why_no_device, why_no_mount
from .._storage.units import MIB
from .fields import Item
from .model import DesiredDataset, DesiredVdev, DesiredZpool

KEYS = ("name", "vdevs", "logs", "caches", "spares", "ashift", "mount", "properties", "datasets", "space_id")
_OF_VDEVS = ("type", "devices")
_OF_DATASETS = ("name", "mount", "quota", "reservation", "properties")


def read_zpool(item: Item) -> DesiredZpool:
    """Return a pool; what is wrong with it is noted."""
    item.space()
    name, ashift = item.text("name"), item.whole("ashift", zfs.LEAST_ASHIFT, zfs.ASHIFT)
    if name and not zfs.is_pool_name(name):
        item.mistake("name", f"must be {zfs.POOL_WANTED}, not {name!r}")
    if ashift > zfs.LARGEST_ASHIFT:
        item.mistake("ashift", f"must be from {zfs.LEAST_ASHIFT} to {zfs.LARGEST_ASHIFT}, not {ashift}")
    vdevs = tuple(_vdev(part, tuple(zfs.Vdev)) for part in item.items("vdevs", _OF_VDEVS))
    logs = tuple(_vdev(part, zfs.LOG_KINDS) for part in item.items("logs", _OF_VDEVS))
    caches, spares = (item.names(key, why_no_device) for key in ("caches", "spares"))
    if not vdevs and item.is_right("vdevs"):
        item.mistake("vdevs", "has to be a list of at least one vdev, each with type and devices")
    root = (("mountpoint", _mount(item, zfs.NOT_MOUNTED)), *_properties(item))
    datasets = tuple(_dataset(part) for part in item.items("datasets", _OF_DATASETS))
    return DesiredZpool(item.place, name, vdevs, ashift, DesiredDataset(item.place, "", root), datasets, logs, caches, spares)


def _vdev(item: Item, kinds: Sequence[zfs.Vdev]) -> DesiredVdev:
    word, devices = item.text("type"), item.names("devices", why_no_device)
    least = {str(kind): width for kind, width in zfs.LEAST_WIDTH.items() if kind in kinds}
    if word and word not in least:
        item.mistake("type", f"must be one of {', '.join(least)}, not {word!r}")
    elif word and len(devices) < least[word] and item.is_right("devices"):
        item.mistake("devices", f"{word} needs at least {least[word]} devices, not {len(devices)}")
    return DesiredVdev(word, devices)


def _dataset(item: Item) -> DesiredDataset:
    name = item.text("name")
    if name and not zfs.is_dataset_name(name):
        item.mistake("name", f"must be {zfs.DATASET_WANTED}, not {name!r}")
    own = [("mountpoint", _mount(item, zfs.NOT_MOUNTED))] if item.has("mount") else []
    own += [(key, str(item.whole(key, 1) * MIB)) for key in ("quota", "reservation") if item.has(key)]
    return DesiredDataset(item.place, name, (*own, *_properties(item)))


def _mount(item: Item, default: str) -> str:
    mount = item.text("mount", default)
    item.check("mount", mount, None if mount == zfs.NOT_MOUNTED else why_no_mount)
    return mount


def _properties(item: Item) -> tuple[tuple[str, str], ...]:
    found = item.words("properties")
    for name, value in found.items():
        says = zfs.why_no_property(name, value)
        if says is not None:
            item.mistake("properties", says)
    return tuple(sorted(found.items()))
