# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many disks each space of a plan can lose and still have all its data."""

from __future__ import annotations

from collections.abc import Iterator

from ....module_utils._schema.model import DesiredArray, DesiredContainer, DesiredVolume, DesiredZpool, Layout
from ....module_utils._storage.raid import RaidLevel
from ....module_utils._storage.zfs import PARITY, Vdev

_PARITY = {RaidLevel.RAID5: 1, RaidLevel.RAID6: 2, RaidLevel.RAID10: 1}
"""Members that any array of the level can lose, whichever they are; a raid1 keeps its data on one."""


def redundancy_of_spaces(layout: Layout) -> dict[str, int]:
    """Return, by space, how many disks can be lost before data of the space are; of several devices the least."""
    found: dict[str, int] = {}
    for thing in layout.things():
        found[thing.space] = min(_of_device(layout, thing.device), found.get(thing.space, len(layout.disks)))
    # The partitions that one of these lies on have the name of its space, too, and each of them is on one disk.
    return found | dict(_on_several(layout))


def _on_several(layout: Layout) -> Iterator[tuple[str, int]]:
    groups = {group.name: _least(layout, group.devices) for group in layout.groups}
    yield from ((group.space, groups[group.name]) for group in layout.groups)
    yield from ((pool.space, groups.get(pool.group, 0)) for pool in layout.pools)
    yield from ((array.space, _of_device(layout, array.device)) for array in layout.arrays)
    yield from ((zpool.space, _of_zpool(layout, zpool)) for zpool in layout.zpools)
    for filesystem in layout.filesystems:
        if filesystem.more:
            yield filesystem.space, (filesystem.level != RaidLevel.RAID0) + _least(layout, filesystem.devices)


def _of_device(layout: Layout, device: str) -> int:
    thing = layout.thing(device)
    if isinstance(thing, DesiredContainer):
        return _of_device(layout, thing.below)
    if isinstance(thing, DesiredArray):
        own = len(thing.members) - 1 if thing.level == RaidLevel.RAID1 else _PARITY.get(RaidLevel(thing.level), 0)
        return own + _least(layout, thing.members)
    if isinstance(thing, DesiredVolume):
        return next((_least(layout, group.devices) for group in layout.groups if group.name == thing.group), 0)
    return 0


def _of_zpool(layout: Layout, zpool: DesiredZpool) -> int:
    own = [len(vdev.devices) - 1 if vdev.type == Vdev.MIRROR else PARITY.get(Vdev(vdev.type), 0) for vdev in zpool.vdevs]
    return min(own, default=0) + _least(layout, zpool.data_devices)


def _least(layout: Layout, devices: tuple[str, ...]) -> int:
    return min((_of_device(layout, device) for device in devices), default=0)
