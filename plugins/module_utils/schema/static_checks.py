# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has to hold between the parts of a layout: references, overlaps, names, one use of everything. Gives mistakes with their places."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .fields import MIB
from .model import Layout, WantedArray, WantedContainer, WantedDisk, WantedPartition, WantedVolume

_MOST_PARTITIONS = 128
_TABLE_TAIL = 1


def check_layout(layout: Layout, physical: Mapping[str, str]) -> Iterator[str]:
    """Give every mistake; `physical` are the places of physical volumes by device."""
    for disk in layout.disks:
        yield from _check_disk(disk)
    yield from _check_names(layout)
    yield from _check_references(layout, physical)
    yield from _check_uses(layout, physical)
    yield from _check_mounts(layout)


def _check_disk(disk: WantedDisk) -> Iterator[str]:
    for part in disk.partitions:
        if part.number > _MOST_PARTITIONS:
            yield f"{part.place}.count: a GPT has room for {_MOST_PARTITIONS} partitions; {part.number} is beyond"
        if disk.size is not None and part.end > (disk.size - _TABLE_TAIL) * MIB:
            last = disk.size - _TABLE_TAIL
            yield f"{part.place}.end: {part.end // MIB} is beyond {last}, where the room on a disk of {disk.size} MiB ends"
    for before, after in _pairs(sorted(disk.partitions, key=lambda part: part.start)):
        if after.start < before.end:
            yield f"{after.place}.begin: {after.start // MIB} lies in {before.place}, which ends at {before.end // MIB}"


def _pairs(parts: Sequence[WantedPartition]) -> Iterable[tuple[WantedPartition, WantedPartition]]:
    return zip(parts, parts[1:])


def _check_names(layout: Layout) -> Iterator[str]:
    """Every name that has to be unique."""
    yield from _doubles("disk_id", ((disk.place, disk.id) for disk in layout.disks))
    for disk in layout.disks:
        yield from _doubles("count", ((part.place, part.number) for part in disk.partitions))
    yield from _doubles("uuid", ((part.place, part.uuid) for part in layout.partitions()))
    yield from _doubles("name", ((thing.place, thing.device) for thing in layout.things()))
    yield from _doubles("name", ((group.place, group.name) for group in layout.groups))


def _doubles(key: str, named: Iterable[tuple[str, t.Any]]) -> Iterator[str]:
    first: dict[t.Any, str] = {}
    for place, name in named:
        if first.setdefault(name, place) != place:
            yield f"{place}.{key}: {name} is that of {first[name]} already"


def _check_references(layout: Layout, physical: Mapping[str, str]) -> Iterator[str]:
    for array in layout.arrays:
        for device in (*array.members, *array.spares):
            yield from _has_to_be(layout, f"{array.place}.devices", device, "a partition", WantedPartition)
    for container in layout.containers:
        yield from _has_to_be(
            layout, f"{container.place}.device", container.below, "a partition, array or volume", WantedPartition, WantedArray, WantedVolume
        )
    for device, place in physical.items():
        what = "a partition, an array, or a LUKS container on one"
        yield from _has_to_be(layout, f"{place}.name", device, what, WantedPartition, WantedArray, WantedContainer)
        thing = layout.thing(device)
        if isinstance(thing, WantedContainer) and isinstance(layout.thing(thing.below), WantedVolume):
            yield f"{place}.name: {device} lies on a logical volume; a physical volume cannot"
        if layout.group_of(device) is None:
            yield f"{place}.name: {device} is in no group's pvnames"
    groups = {group.name for group in layout.groups}
    for volume in layout.volumes:
        if volume.group not in groups:
            yield f"{volume.place}.vgname: there is no vg {volume.group}; there are {', '.join(sorted(groups)) or 'none'}"
    for filesystem in layout.filesystems:
        if layout.thing(filesystem.device) is None:
            yield f"{filesystem.place}.device: {filesystem.device} is no partition, array, LUKS container or volume of the schema"


def _has_to_be(layout: Layout, place: str, device: str, what: str, *kinds: type) -> Iterator[str]:
    if not isinstance(layout.thing(device), kinds):
        yield f"{place}: {device} is not {what} of the schema"


def _check_uses(layout: Layout, physical: Mapping[str, str]) -> Iterator[str]:
    """Every device carries one thing only."""
    uses = [(f"{array.place}.devices", device) for array in layout.arrays for device in (*array.members, *array.spares)]
    uses += [(f"{container.place}.device", container.below) for container in layout.containers]
    uses += [(f"{group.place}.pvnames", volume.device) for group in layout.groups for volume in group.physical]
    uses += [(f"{filesystem.place}.device", filesystem.device) for filesystem in layout.filesystems]
    first: dict[str, str] = {}
    for place, device in uses:
        if device in first:
            yield f"{place}: {device} is used by {first[device]} already"
        first.setdefault(device, place)


def _check_mounts(layout: Layout) -> Iterator[str]:
    mounted = ((filesystem.place, filesystem.mount) for filesystem in layout.filesystems if filesystem.mount.startswith("/"))
    yield from _doubles("mount", mounted)
