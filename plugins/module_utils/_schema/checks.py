# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has to be right about a layout as a whole: names that are there once, references that lead somewhere, devices with one use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .._storage import gpt
from .._storage.units import MIB
from .entry import Found, doubles
from .lvm import check_caches, check_references
from .model import (
    DesiredArray,
    DesiredContainer,
    DesiredDisk,
    DesiredPartition,
    DesiredVolume,
    DesiredZpool,
    Layout,
)


def check_layout(layout: Layout) -> Iterator[Found]:
    """Give every mistake."""
    for disk in layout.disks:
        yield from _check_disk(disk)
    yield from _check_names(layout)
    yield from _check_references(layout)
    # Every device carries one thing only.
    uses = [(f"{array.place}.devices", device) for array in layout.arrays for device in (*array.members, *array.spares)]
    uses += [(f"{container.place}.device", container.below) for container in layout.containers]
    uses += [(f"{group.place}.pvnames", volume.device) for group in layout.groups for volume in group.physical]
    uses += [(f"{filesystem.place}.device", device) for filesystem in layout.filesystems for device in filesystem.devices]
    uses += [(_place_in(zpool, device), device) for zpool in layout.zpools for device in zpool.devices]
    first: dict[str, str] = {}
    for place, device in uses:
        if device in first:
            yield place, f"{device} is already used by {first[device]}"
        first.setdefault(device, place)
    yield from check_caches(layout.groups, layout.pools, layout.volumes, layout.caches)
    yield from _check_mounts(layout)


def _check_disk(disk: DesiredDisk) -> Iterator[Found]:
    for part in disk.partitions:
        # What is kept may lie in a table of another tool, which has room for more.
        if part.number > gpt.MOST_PARTITIONS and not part.keep_data:
            yield f"{part.place}.count", f"a GPT has room for {gpt.MOST_PARTITIONS} partitions; {part.number} is too high"
        if disk.size is not None and part.end > (disk.size - gpt.TAIL) * MIB:
            last = disk.size - gpt.TAIL
            yield f"{part.place}.end", f"{part.end // MIB} is beyond {last}, where the room on a disk of {disk.size} MiB ends"
    for before, after in _pairs(sorted(disk.partitions, key=lambda part: part.start)):
        if after.start < before.end:
            yield f"{after.place}.begin", f"{after.start // MIB} lies in {before.place}, which ends at {before.end // MIB}"


def _pairs(parts: Sequence[DesiredPartition]) -> Iterable[tuple[DesiredPartition, DesiredPartition]]:
    return zip(parts, parts[1:])


def _check_names(layout: Layout) -> Iterator[Found]:
    """Every name that must be unique."""
    yield from doubles("disk_id", ((disk.place, disk.id) for disk in layout.disks))
    for disk in layout.disks:
        yield from doubles("count", ((part.place, part.number) for part in disk.partitions))
    yield from doubles("uuid", ((part.place, part.uuid) for part in layout.partitions()))
    yield from doubles("name", ((thing.place, thing.device) for thing in (*layout.things(), *layout.pools)))
    yield from doubles("name", ((group.place, group.name) for group in layout.groups))
    yield from doubles("name", ((pool.place, pool.name) for pool in layout.zpools))
    for pool in layout.zpools:
        yield from doubles("name", ((dataset.place, dataset.name) for dataset in pool.datasets))


def _check_references(layout: Layout) -> Iterator[Found]:
    for array in layout.arrays:
        for device in (*array.members, *array.spares):
            yield from _has_to_be(layout, f"{array.place}.devices", device, "a partition", DesiredPartition)
    for container in layout.containers:
        yield from _has_to_be(
            layout,
            f"{container.place}.device",
            container.below,
            "a partition, array or volume",
            DesiredPartition,
            DesiredArray,
            DesiredVolume,
        )
    for device, place in ((volume.device, volume.place) for volume in layout.physical):
        what = "a partition, an array, or a LUKS container on one"
        yield from _has_to_be(layout, f"{place}.name", device, what, DesiredPartition, DesiredArray, DesiredContainer)
        thing = layout.thing(device)
        if isinstance(thing, DesiredContainer) and isinstance(layout.thing(thing.below), DesiredVolume):
            yield f"{place}.name", f"{device} lies on a logical volume; a physical volume cannot"
        if not any(device in group.devices for group in layout.groups):
            yield f"{place}.name", f"{device} is in no group's pvnames"
    yield from check_references(layout.groups, layout.pools, layout.volumes)
    for filesystem in layout.filesystems:
        if layout.thing(filesystem.device) is None:
            yield f"{filesystem.place}.device", f"{filesystem.device} is not a partition, array, LUKS container or volume of the schema"
        for device in filesystem.devices if filesystem.more else ():
            yield from _has_to_be(layout, f"{filesystem.place}.devices", device, "a partition", DesiredPartition)
    for zpool in layout.zpools:
        for device in zpool.devices:
            yield from _has_to_be(layout, _place_in(zpool, device), device, "a partition", DesiredPartition)


def _place_in(zpool: DesiredZpool, device: str) -> str:
    part = zpool.part_of(device)
    return f"{zpool.place}.vdevs" if part is None else f"{zpool.place}.{part}s"


def _has_to_be(layout: Layout, place: str, device: str, what: str, *kinds: type) -> Iterator[Found]:
    if not isinstance(layout.thing(device), kinds):
        yield place, f"{device} is not {what} of the schema"


def _check_mounts(layout: Layout) -> Iterator[Found]:
    mounted = [
        mount
        for filesystem in layout.filesystems
        for mount in ((filesystem.place, filesystem.mount), *((subvolume.place, subvolume.mount) for subvolume in filesystem.subvolumes))
    ]
    mounted += [(dataset.place, dataset.mount) for zpool in layout.zpools for dataset in (zpool.root, *zpool.datasets)]
    yield from doubles("mount", (mount for mount in mounted if mount[1].startswith("/")))
    for filesystem in layout.filesystems:
        yield from doubles("name", ((subvolume.place, subvolume.name) for subvolume in filesystem.subvolumes))
