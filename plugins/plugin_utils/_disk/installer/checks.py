# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has to be right about a layout before anything is written of it: one mistake, and an installer would fail halfway.

Positions in lists are those of the schema.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Iterable, Iterator, Mapping

from ....module_utils._storage.filesystems import read_make_options
from ....module_utils._storage.options.mounts import mistakes_in
from ....module_utils._storage.thin import is_chunk
from .layout import Layout

Found = tuple[str, str]
"""A place in the schema, and what is wrong there."""

CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]")
"""What a text of one line does not have."""


def broken(layout: Layout, schema: t.Any, place: str) -> Iterator[Found]:
    """Give all that refers to nothing, occurs twice, or lies where another still is."""
    yield from _control_characters(schema, place)
    yield from _references(layout, place)
    yield from _names(layout, place)
    yield from _partitions(layout, schema, place)
    yield from _options(layout, schema, place)


def _options(layout: Layout, schema: t.Any, place: str) -> Iterator[Found]:
    """Give the options that programs and mounts may not have, whoever runs them."""
    for at, (filesystem, given) in enumerate(zip(layout.filesystems, schema.get("fss") or (), strict=True)):
        _words, refused = read_make_options(filesystem.type, given.get("fs_options") or "", several=bool(filesystem.more))
        yield from ((f"{place}.fss[{at}].fs_options", says) for says in refused)
        for inside, entry in (("", given), *((f".subvolumes[{of}]", one) for of, one in enumerate(given.get("subvolumes") or ()))):
            for says in mistakes_in(filesystem.type, entry.get("fstab_options") or ""):
                yield f"{place}.fss[{at}]{inside}.fstab_options", says


def _control_characters(value: t.Any, place: str) -> Iterator[Found]:
    """Give texts of several lines: in most files that are written here the next line would be a command of its own."""
    if isinstance(value, str) and CONTROL.search(value):
        yield place, f"is {value!r}; it must have no line breaks and no other control characters"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _control_characters(item, f"{place}.{key}")
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(value):
            yield from _control_characters(item, f"{place}[{at}]")


def _references(layout: Layout, place: str) -> Iterator[Found]:
    there = {carrier.device for carrier in layout.carriers()}
    groups = {group.name for group in layout.groups}
    uses: list[Found] = []
    for at, array in enumerate(layout.arrays):
        uses += [(f"{place}.mds[{at}].devices", device) for device in (*array.members, *array.spares)]
    uses += [(f"{place}.luks[{at}].device", container.below) for at, container in enumerate(layout.containers)]
    for at, group in enumerate(layout.groups):
        uses += [(f"{place}.vgs[{at}].pvnames", device) for device in group.devices]
    uses += [
        (f"{place}.fss[{at}].device", device)
        for at, filesystem in enumerate(layout.filesystems)
        for device in (filesystem.device, *filesystem.more)
    ]
    uses += [(f"{place}.zpools[{at}].vdevs", device) for at, zpool in enumerate(layout.zpools) for device in zpool.devices]
    first: dict[str, str] = {}
    for where, device in uses:
        if device not in there:
            yield where, f"{device} is not a partition, array, LUKS container or volume of the schema"
        elif first.setdefault(device, where) != where:
            yield where, f"{device} is already used by {first[device]}"
    for at, pool in enumerate(layout.pools):
        if pool.group not in groups:
            yield f"{place}.thin_pools[{at}].vgname", f"there is no vg {pool.group}"
        if not is_chunk(pool.chunk):
            yield f"{place}.thin_pools[{at}].chunk_size", f"is {pool.chunk}; must be a multiple of 64 KiB"
    for at, volume in enumerate(layout.volumes):
        if volume.group not in groups:
            yield f"{place}.lvs[{at}].vgname", f"there is no vg {volume.group}"
        elif volume.pool and volume.pool not in {pool.name for pool in layout.pools_of(volume.group)}:
            yield f"{place}.lvs[{at}].pool", f"there is no thin pool {volume.pool} in {volume.group}"


def _names(layout: Layout, place: str) -> Iterator[Found]:
    lists: list[tuple[str, list[str]]] = [
        ("mds", [array.name for array in layout.arrays]),
        ("luks", [container.name for container in layout.containers]),
        ("vgs", [group.name for group in layout.groups]),
        ("lvs", [volume.name for volume in layout.volumes]),
        ("thin_pools", [pool.name for pool in layout.pools]),
        ("zpools", [zpool.name for zpool in layout.zpools]),
    ]
    for key, names in lists:
        for at, name in enumerate(names):
            if re.search(r"\s", name):
                yield f"{place}.{key}[{at}].name", f"is {name!r}; it must have no spaces"
    volumes = [f"{volume.group}/{volume.name}" for volume in layout.volumes]
    mounts = [(f"{place}.fss[{at}].mount", filesystem.mount) for at, filesystem in enumerate(layout.filesystems) if filesystem.mount]
    yield from _doubles((f"{place}.{key}[{at}].name", name) for key, names in lists[:3] for at, name in enumerate(names))
    yield from _doubles((f"{place}.lvs[{at}].name", name) for at, name in enumerate(volumes))
    yield from _doubles(mounts)


def _partitions(layout: Layout, schema: t.Any, place: str) -> Iterator[Found]:
    yield from _doubles((f"{place}.parteds[{at}].disk_id", disk.device) for at, disk in enumerate(layout.disks))
    sizes = [disk.get("disk_size") for disk in schema.get("parteds") or ()]
    for at, disk in enumerate(layout.disks):
        where = f"{place}.parteds[{at}]"
        yield from _doubles((f"{where}.partitions", f"partition {partition.number}") for partition in disk.partitions)
        for partition in disk.partitions:
            end = partition.begin + partition.size
            if partition.size < 1:
                yield f"{where}.partitions", f"{partition.device} ends at {end} MiB; that must be after its begin, {partition.begin}"
            if isinstance(sizes[at], int) and end > sizes[at]:
                yield f"{where}.partitions", f"{partition.device} ends at {end} MiB, and the disk has {sizes[at]}"
        for before, after in zip(disk.partitions, disk.partitions[1:]):
            if after.begin < before.begin + before.size:
                yield f"{place}.parteds", f"{after.device} begins before {before.device} ends"


def _doubles(named: Iterable[Found]) -> Iterator[Found]:
    """Give the places of names that another place has already."""
    first: dict[str, str] = {}
    for where, name in named:
        if name in first:
            yield where, f"{name} occurs twice" if first[name] == where else f"{name} is already that of {first[name]}"
        first.setdefault(name, where)
