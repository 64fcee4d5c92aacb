# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads what lies in room that partitions of the layout take and the table of their disk gives to none: somebody may have deleted them."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Sequence

from .._facts.host import Host
from .._facts.present import Present
from .._facts.select import Disk
from .._facts.signatures import SECTOR, Signature, TablePartition, parse_probe, probe_command
from .._facts.tree import Device
from .._schema.model import DesiredPartition, Layout
from .._storage.boot_sectors import BOOT_SECTORS, size_in_boot_sector
from .._storage.units import KIB, MIB
from .disks import names_of

_ENDS = 128 * KIB
"""In so much of either end all signatures lie."""

Missing = dict[tuple[str, int], Signature]


def read_missing(host: Host, present: Present, layout: Layout, listed: Sequence[Disk]) -> Missing:
    """Return what has a signature in the room of a partition that is missing, by the name of the disk and the offset in bytes."""
    found: Missing = {}
    for disk in listed:
        device = present.tree.devices[disk.device.name]
        table = device.table
        if table is None or table.type != "gpt" or device.dev is None:
            continue
        for part in _without_entry(layout, disk, table.partitions):
            signature = _in_room(host, device.dev, part)
            found.update({} if signature is None else {(device.name, part.start): signature})
    return found


def read_loose(host: Host, present: Present, layout: Layout, listed: Sequence[Disk]) -> dict[str, tuple[Signature, ...]]:
    """Return by the name of its disk what has a signature in free room that partitions of the layout take, new ones and those that grow."""
    found: dict[str, tuple[Signature, ...]] = {}
    for disk in listed:
        device = present.tree.devices[disk.device.name]
        rooms = _free_rooms(layout, disk, device.table.partitions) if device.table is not None and device.table.type == "gpt" else ()
        if not rooms or device.dev is None:
            continue
        # Hosts get sources, and compile in each run what they import: this only where it is used.
        from .._facts.loose import find_loose

        loose = [one for start, end in rooms for one in find_loose(host, device.dev, start, min(end, device.size))]
        found[device.name] = (*loose, *_in_forgotten(host, present, device), *_ends_in(host, present, layout, disk, rooms))
    return found


def _ends_in(host: Host, present: Present, layout: Layout, disk: Disk, rooms: Sequence[tuple[int, int]]) -> Iterator[Signature]:
    """Give the ends of what is larger than its partition, and goes on in free rooms: somebody made the partition smaller alone.

    A partition that grows to its former size gets back what is its own.
    """
    grown = {part.start // MIB: part.end for desired in layout.disks if desired.id in names_of(disk) for part in desired.partitions}
    for child in present.tree.children(disk.device.name):
        entry = child.partition
        if entry is None:
            continue
        size, kind = _content_size(host, present, child)
        begin = max(entry.start + entry.size, grown.get(entry.start // MIB, 0))
        for start, end in rooms:
            place = max(begin, start)
            if place < min(end, entry.start + size):
                yield Signature(f"the end of the {kind} of {child.dev or child.name}", offsets=(place,))


def _content_size(host: Host, present: Present, device: Device) -> tuple[int, str]:
    """Return up to where content is on a device, in bytes, as far as that is known, and what it is; an open container is looked into."""
    opened = next((child for child in present.tree.children(device.name) if child.kind == "crypt" and child.luks is not None), None)
    if opened is not None and opened.luks is not None:
        size, kind = _content_size(host, present, opened)
        return size + (opened.luks.data_start or 0), f"{kind} in the LUKS container"
    kind, physical = device.filesystem.type if device.filesystem is not None else "", present.physical_on(device.name)
    if physical is not None:
        return physical.device_size - physical.unused, "physical volume"
    known = present.filesystem_sizes.get(device.name)
    if known is None and kind in BOOT_SECTORS and device.dev is not None:
        try:
            known = size_in_boot_sector(kind, host.read_bytes(device.dev, 0, SECTOR))
        except OSError:
            known = None
    return known or 0, kind


def _in_forgotten(host: Host, present: Present, disk: Device) -> Iterator[Signature]:
    """Give what lies, with or without a signature, at both ends of partitions that the kernel has and the table has not.

    A run has the kernel forget a partition before it takes its entry away. So somebody else has deleted it, while another one was in use.
    """
    numbers = {entry.number for entry in disk.table.partitions} if disk.table is not None else set()
    for part in (child.partition for child in present.tree.children(disk.name) if child.partition is not None and child.running):
        for place in () if part.number in numbers else dict.fromkeys((part.start, max(part.start, part.start + part.size - _ENDS))):
            try:
                content = host.read_bytes(str(disk.dev), place, min(_ENDS, part.size))
            except OSError as error:
                yield Signature(f"something unreadable ({error.strerror or 'error'})", offsets=(place,))
                continue
            if content.count(0) != len(content):
                yield Signature(f"data of partition {part.number}, which the kernel still has,", offsets=(place,))


def _free_rooms(layout: Layout, disk: Disk, entries: Sequence[TablePartition]) -> tuple[tuple[int, int], ...]:
    """Return from where to where partitions of the layout lie on a disk and none of its table does, by whole MiB; neighbours are one."""
    parts = [part for desired in layout.disks if desired.id in names_of(disk) for part in desired.partitions]
    rooms: list[tuple[int, int]] = []
    for start, end in sorted((part.start, part.end) for part in parts):
        for entry in sorted(entries, key=lambda entry: entry.start):
            if entry.start < end and start < entry.start + entry.size:
                rooms.append((start, entry.start))
                start = entry.start + entry.size
        rooms.append((start, end))
    joined: list[tuple[int, int]] = []
    for start, end in rooms:
        if joined and joined[-1][1] == start < end:
            joined[-1] = joined[-1][0], end
        elif end - start >= MIB:
            joined.append((start, end))
    return tuple(joined)


def _without_entry(layout: Layout, disk: Disk, entries: Sequence[TablePartition]) -> Iterator[DesiredPartition]:
    """Give the partitions of the layout on a disk in whose room its table has none."""
    for part in (part for desired in layout.disks if desired.id in names_of(disk) for part in desired.partitions):
        if not any(entry.start < part.end and part.start < entry.start + entry.size for entry in entries):
            yield part


def _in_room(host: Host, node: str, part: DesiredPartition) -> t.Optional[Signature]:
    try:
        ends = (host.read_bytes(node, place, _ENDS) for place in (part.start, max(part.start, part.end - _ENDS)))
        if not any(content.count(0) != len(content) for content in ends):
            return None
    except OSError:
        return None
    outcome = host.run(probe_command(node, part.start, part.size))
    said = parse_probe(outcome.stdout) if outcome is not None and outcome.code == 0 else {}
    return Signature(said["TYPE"], said.get("UUID"), said.get("LABEL"), (part.start,)) if "TYPE" in said else None
