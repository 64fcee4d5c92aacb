# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ZFS pools of a static schema, with their vdevs and datasets."""

from __future__ import annotations

from .._storage import zfs
from .._storage.units import MIB
from .entry import Entry
from .model import DesiredDataset, DesiredVdev, DesiredZpool


def zpool_of(item: Entry) -> DesiredZpool:
    """Return a pool; what is wrong with it is noted."""
    vdevs, logs = (tuple(_vdev(part) for part in item.items(key)) for key in ("vdevs", "logs"))
    root = (("mountpoint", item["mount"] or zfs.NOT_MOUNTED), *item["properties"])
    datasets = tuple(_dataset(part) for part in item.items("datasets"))
    return DesiredZpool(
        item.place,
        item["name"],
        vdevs,
        item["ashift"],
        DesiredDataset(item.place, "", root),
        datasets,
        logs,
        item["caches"],
        item["spares"],
        item.space,
    )


def _vdev(item: Entry) -> DesiredVdev:
    word, devices = item["type"], item["devices"]
    least = zfs.LEAST_WIDTH[zfs.Vdev(word)]
    if len(devices) < least and item.is_right("type", "devices"):
        item.mistake("devices", f"{word} needs at least {least} devices, not {len(devices)}")
    return DesiredVdev(word, devices)


def _dataset(item: Entry) -> DesiredDataset:
    own = [("mountpoint", item["mount"])] if item["mount"] else []
    own += [(key, str(item[key] * MIB)) for key in ("quota", "reservation") if item[key] is not None]
    return DesiredDataset(item.place, item["name"], (*own, *item["properties"]))
