# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A layout as a custom storage layout of MAAS, which a commissioning script writes to $MAAS_STORAGE_CONFIG_FILE.

After MAAS' "Create custom storage" and what its models do with it: MAAS knows disks by their kernel names, begins partitions at 4 MiB in
steps of 4 MiB, keeps 1 MiB at the end, and leaves out one extent for each physical volume. Sizes are texts in millions of bytes.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ....module_utils._schema.model import (
    DesiredArray,
    DesiredDisk,
    DesiredFilesystem,
    DesiredGroup,
    DesiredPartition,
    DesiredVolume,
    Layout,
)
from ....module_utils._storage import gpt
from ....module_utils._storage.lvm import EXTENT
from ....module_utils._storage.raid import RaidLevel, data_legs
from ....module_utils._storage.units import MIB
from .losses import (
    Losses,
    lose_array_options,
    lose_extents,
    lose_labels,
    lose_options_of_volumes,
    lose_subvolumes,
    lose_types,
    note_boot_flags,
    note_uuids,
)
from .words import make_words, mount_words
from .write import Target

Plain = dict[str, t.Any]

_FILESYSTEMS = ("ext2", "ext4", "xfs", "btrfs", "vfat", "swap")
_METADATA = ("default", "1.2")
_STEP, _HEAD, _TAIL, _BIOS_BOOT = 4, 4, 1, 1
"""MiB: of what partitions and volumes are multiples, and what MAAS keeps on a disk; the last one where a BIOS starts the machine."""
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]*")
"""What MAAS' schema takes as the name of a disk, an array or a volume group."""
_MILLION = 10**6


@dataclass(frozen=True)
class _Names:
    """The names in MAAS' layout: of disks and partitions by their devices; arrays, groups and volumes have their own."""

    disks: Mapping[str, str]
    devices: Mapping[str, str]


def write(layout: Layout, losses: Losses, *, known: t.Any) -> Plain:
    """Return `{layout, mounts}`; `known` is the hardware, which has the kernel names of disks (`dev`)."""
    _lose_what_maas_cannot_say(layout, losses)
    names = _names(layout, known, losses)
    sizes = _partition_sizes(layout, losses)
    made: Plain = {names.disks[disk.device]: _disk(disk, layout, names, sizes, losses) for disk in layout.disks}
    encrypted = _encrypted(layout)
    for array in layout.arrays:
        if array.device not in encrypted:
            spares = {"spares": [names.devices[device] for device in array.spares]} if array.spares else {}
            made[array.title] = {
                "type": "raid",
                "level": int(array.level.removeprefix("raid")),
                "members": [names.devices[device] for device in array.members],
                **spares,
                **_filesystem(layout.filesystem_on(array.device), losses),
            }
    for group in layout.groups:
        if encrypted.isdisjoint(group.devices):
            made[group.name] = _group(group, layout, names, sizes, losses)
    return {"layout": made, "mounts": _mounts(layout, names, encrypted)}


def _encrypted(layout: Layout) -> frozenset[str]:
    """Return the devices of LUKS containers and of all that lies on them."""
    return frozenset(device for container in layout.containers for device in layout.devices_above(container.device))


TARGET = Target("MAAS", write)


def _lose_what_maas_cannot_say(layout: Layout, losses: Losses) -> None:
    lose_types(layout, losses, "MAAS gives partitions no types", (gpt.ESP, gpt.BIOS_BOOT))
    lose_labels(layout, losses, "MAAS")
    lose_extents(layout, losses, "MAAS")
    lose_subvolumes(layout, losses, "MAAS")
    lose_options_of_volumes(layout, losses, "MAAS")
    lose_array_options(layout, losses, "MAAS")
    note_uuids(layout, losses, "MAAS")
    note_boot_flags(layout, losses, "MAAS")
    for array in layout.arrays:
        if array.asked_metadata not in _METADATA:
            losses.lose(array.space, f"MAAS makes arrays with metadata of version 1.2, not {array.asked_metadata}")
        filesystem = layout.filesystem_on(array.device)
        if filesystem is not None and filesystem.type == "vfat":
            losses.refuse(array.space, "firmware could not read an ESP on an array as MAAS makes it; plan an esp on each disk")
    encrypted = _encrypted(layout)
    for container in layout.containers:
        losses.lose(container.space, "MAAS' custom layouts have no LUKS, so that nothing is made on it; disk_layout does afterwards")
    above = [array.space for array in layout.arrays if array.device in encrypted]
    above += [volume.space for volume in layout.volumes if volume.device in encrypted]
    for space in [*above, *(group.space for group in layout.groups if not encrypted.isdisjoint(group.devices))]:
        losses.lose(space, "it lies on LUKS, which MAAS' custom layouts do not have")


def _names(layout: Layout, hardware: t.Any, losses: Losses) -> _Names:
    disks = {disk.device: _kernel_name(disk, hardware, losses) for disk in layout.disks}
    devices = {part.device: f"{disks[disk.device]}-part{part.number}" for disk in layout.disks for part in disk.partitions}
    devices |= {array.device: array.title for array in layout.arrays} | {volume.device: volume.name for volume in layout.volumes}
    titles = [*((disk.id, disks[disk.device]) for disk in layout.disks)]
    titles += [(array.space, array.title) for array in layout.arrays] + [(group.space, group.name) for group in layout.groups]
    for space, name in titles:
        if not _NAME.fullmatch(name):
            losses.refuse(space, f"MAAS takes names of letters, digits, _ and -, that begin with a letter, so not {name!r}")
    seen: set[str] = set()
    for space, name in [*titles, *((volume.space, volume.name) for volume in layout.volumes)]:
        if name in seen:
            losses.refuse(space, f"MAAS has one list of names for disks, arrays, volume groups and volumes, and {name} is in it twice")
        seen.add(name)
    return _Names(disks, devices)


def _kernel_name(disk: DesiredDisk, hardware: t.Any, losses: Losses) -> str:
    if disk.device.startswith("/dev/") and disk.device.count("/") == len(("dev", "name")):
        return disk.name
    known = hardware.get("disks") if isinstance(hardware, Mapping) else None
    for found in known if isinstance(known, (list, tuple)) else ():
        if isinstance(found, Mapping) and {disk.id, disk.device} & _texts([found.get("id"), *_listed(found.get("links"))]):
            name = found.get("dev")
            if isinstance(name, str) and name.startswith("/dev/"):
                return name[len("/dev/") :]
    losses.refuse(disk.id, "MAAS knows disks by their kernel names; give hardware, in which each disk has its dev")
    return f"disk{disk.id}"


def _listed(links: t.Any) -> Sequence[t.Any]:
    return links if isinstance(links, (list, tuple)) else ()


def _texts(values: Iterable[t.Any]) -> set[str]:
    return {value for value in values if isinstance(value, str)}


def _partition_sizes(layout: Layout, losses: Losses) -> Mapping[str, int]:
    """Return the MiB of each partition as MAAS makes it, by device; BIOS boot partitions, which MAAS makes by itself, are not in it."""
    by_bios = not any(part.type == gpt.ESP for part in layout.partitions())
    sizes: dict[str, int] = {}
    for disk in layout.disks:
        own = {part.device: part.mib // _STEP * _STEP for part in disk.partitions if part.type != gpt.BIOS_BOOT}
        if disk.size is not None and own:
            room = (disk.size - _HEAD - _TAIL - (_BIOS_BOOT if by_bios else 0)) // _STEP * _STEP
            largest = max(own, key=lambda device: own[device])
            own[largest] -= max(0, sum(own.values()) - room)
        for part in disk.partitions:
            if part.device in own and own[part.device] < max(part.mib, _STEP):
                says = f"MAAS begins at {_HEAD} MiB, goes in steps of {_STEP} MiB and keeps the end, so it gets {own[part.device]} MiB"
                (losses.lose if own[part.device] >= _STEP else losses.refuse)(part.space, f"{says}, not {part.mib}")
        sizes |= own
    return sizes


def _disk(disk: DesiredDisk, layout: Layout, names: _Names, sizes: Mapping[str, int], losses: Losses) -> Plain:
    parts = [_partition(part, layout, names, sizes[part.device], losses) for part in disk.partitions if part.device in sizes]
    first = next((each for each in layout.disks if each.boots), None)
    boots = {"boot": True} if disk is first else {}
    return {"type": "disk", "ptable": "gpt", **boots, "partitions": parts}


def _partition(part: DesiredPartition, layout: Layout, names: _Names, mib: int, losses: Losses) -> Plain:
    bootable = {"bootable": True} if part.type == gpt.ESP else {}
    return {
        "name": names.devices[part.device],
        "size": as_text(mib * MIB),
        **bootable,
        **_filesystem(layout.filesystem_on(part.device), losses),
    }


def as_text(size: int) -> str:
    """Return a size of bytes as a text that MAAS, which multiplies floats and cuts off what follows the point, reads as the same size."""
    text = f"{size // _MILLION}.{size % _MILLION:06d}".rstrip("0").rstrip(".")
    return f"{text if int(float(text) * _MILLION) == size else f'{size // _MILLION}.{size % _MILLION:06d}5'}M"


def _filesystem(filesystem: DesiredFilesystem | None, losses: Losses) -> Plain:
    if filesystem is None:
        return {}
    if filesystem.type not in _FILESYSTEMS:
        losses.lose(filesystem.space, f"MAAS cannot make {filesystem.type}")
        return {}
    if filesystem.label:
        losses.lose(filesystem.space, f"MAAS' custom layouts give file systems no labels, so not {filesystem.label}")
    if make_words(filesystem):
        losses.lose(filesystem.space, f"MAAS makes file systems without options, so not with {make_words(filesystem)}")
    return {"fs": filesystem.type}


def _group(group: DesiredGroup, layout: Layout, names: _Names, sizes: Mapping[str, int], losses: Losses) -> Plain:
    volumes = layout.volumes_of(group.name)
    own = {volume.device: volume.size // MIB // _STEP * _STEP for volume in volumes}
    if own:
        largest = max(own, key=lambda device: own[device])
        own[largest] -= max(0, sum(own.values()) - _room(group, layout, sizes, volumes))
    for volume in volumes:
        if own[volume.device] * MIB < volume.size:
            says = f"MAAS makes its group smaller, or volumes in steps of {_STEP} MiB, so it gets {own[volume.device]} MiB"
            (losses.lose if own[volume.device] >= _STEP else losses.refuse)(volume.space, f"{says}, not {volume.size // MIB}")
    made = [
        {"name": volume.name, "size": as_text(max(own[volume.device], 0) * MIB), **_filesystem(layout.filesystem_on(volume.device), losses)}
        for volume in volumes
    ]
    return {"type": "lvm", "members": [names.devices[device] for device in group.devices], "volumes": made}


def _room(group: DesiredGroup, layout: Layout, sizes: Mapping[str, int], volumes: Sequence[DesiredVolume]) -> int:
    """Return the MiB of a group's volumes: by MAAS' account, and not more than is left of the plan's where arrays have become smaller."""
    total, lost = 0, 0
    for device in group.devices:
        thing = layout.thing(device)
        if isinstance(thing, DesiredArray):
            legs = data_legs(RaidLevel(thing.level), len(thing.members))
            before = min(part.mib for part in layout.partitions_below(device))
            after = min(sizes[part.device] for part in layout.partitions_below(device))
            total += legs * after - 1
            lost += legs * -(-(before - after) // EXTENT) * EXTENT
        else:
            total += sizes[device]
    account = (total // EXTENT - len(group.devices)) * EXTENT
    return min(account, sum(volume.size for volume in volumes) // MIB - lost) if lost else account


def _mounts(layout: Layout, names: _Names, encrypted: Collection[str]) -> Plain:
    made: Plain = {}
    for filesystem in layout.filesystems:
        if filesystem.type in _FILESYSTEMS and filesystem.device not in encrypted:
            device = names.devices[filesystem.device]
            # MAAS takes any key for swap that is no path, and each key once.
            path = f"swap-{device}" if filesystem.is_swap else filesystem.mount_point
            if path:
                options = {"options": mount_words(filesystem)} if mount_words(filesystem) else {}
                made[path] = {"device": device, **options}
    return made
