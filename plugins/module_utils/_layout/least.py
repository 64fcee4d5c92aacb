# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""File systems and LUKS containers that are to be made on less than their programs take: found before anything is written. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from .._schema.model import DesiredContainer, DesiredFilesystem, DesiredVolume, Layout
from .._storage.filesystems import SECTOR, least_size
from .._storage.units import MIB
from .capacity import capacity, container_head, size_of


def too_small(layout: Layout) -> Iterator[str]:
    """Give what holds less than it takes, with its place: LUKS containers, and file systems on sectors of 512 bytes; what is kept may."""
    for container in layout.containers:
        size, least = _size(layout, container.below), container_head(layout, container.below)
        if not container.keep_data and size < least:
            yield (
                f"{container.place}.device: {container.below} has {size // MIB} MiB; make it larger: "
                f"a LUKS container takes {least // MIB} or more, for its header and a MiB of data"
            )
    for filesystem in layout.filesystems:
        if not filesystem.keep_data:
            yield from _without_room(layout, filesystem, SECTOR)


def too_small_here(layout: Layout, sectors: Mapping[str, int], made: Collection[str]) -> Iterator[str]:
    """Give the same on disks with larger sectors, for those file systems that a run makes, by their UUIDs.

    `sectors` are the bytes of a sector by the ids of disks.
    """
    for filesystem in layout.filesystems:
        sector = max(_sector(layout, device, sectors) for device in filesystem.devices)
        if sector > SECTOR and _uuid(layout, filesystem) in made:
            yield from _without_room(layout, filesystem, sector)


def _without_room(layout: Layout, filesystem: DesiredFilesystem, sector: int) -> Iterator[str]:
    least = least_size(filesystem.type, filesystem.options, sector)
    on = f" on sectors of {sector} bytes" if sector != SECTOR else ""
    for device in filesystem.devices:
        size = _size(layout, device) // MIB
        if size < least:
            yield f"{filesystem.place}.device: {device} has {size} MiB; make it larger: {filesystem.type} takes {least} or more{on}"


def _uuid(layout: Layout, filesystem: DesiredFilesystem) -> str:
    thing = layout.thing(filesystem.device)
    return layout.filesystem_uuid(thing.below if isinstance(thing, DesiredContainer) else filesystem.device, filesystem)


def _size(layout: Layout, device: str) -> int:
    """Return the bytes of a device; volumes are of whole extents."""
    thing = layout.thing(device)
    group = next((group for group in layout.groups if isinstance(thing, DesiredVolume) and group.name == thing.group), None)
    return capacity(layout, device) if group is None or not isinstance(thing, DesiredVolume) else size_of(thing, group.extent)


def _sector(layout: Layout, device: str, sectors: Mapping[str, int]) -> int:
    below = set(layout.partitions_below(device))
    found = [sectors.get(disk.id, SECTOR) for disk in layout.disks if below & set(disk.partitions)]
    return max(found, default=SECTOR)
