# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What becomes of the partition tables: which disks get a new one, which entries change, and what is in the way. Pure."""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ..facts.tree import Device, Tree
from ..schema import identities as derived
from ..steps.kinds import ClearGaps, Step, TableEntry, WritePartitionTable, in_mib
from .disks import FoundDisk
from .layout_match import Spot, Status, entry_of, gone_partitions, is_empty, is_known_to_kernel, is_ours, partitions_of, stale_offsets
from .layout_words import describe, describe_one


@dataclass(frozen=True)
class TablePlan:
    """What becomes of a disk's table: steps, what of it is destroyed, and refusals."""

    disk: FoundDisk
    steps: tuple[Step, ...] = ()
    destroyed: tuple[Device, ...] = ()
    refusals: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conditions:
    """What the tables depend on beside the disks.

    `built` are the devices of wanted partitions on which everything is made. Of partitions that are not wanted those `lost` (by name) are
    parts of something that is destroyed; without `keep_unlisted` all are removed. Both only where the disk may be wiped.
    """

    tree: Tree
    built: Collection[str]
    keep_unlisted: bool
    lost: Collection[str]


def plan_table(disk: FoundDisk, spots: Sequence[Spot], conditions: Conditions) -> TablePlan:
    """Return what becomes of a disk's table."""
    tree = conditions.tree
    if is_ours(disk, spots):
        return _changed(disk, spots, conditions)
    refusals = tuple(_refusals_of_new(disk, spots, tree))
    if refusals:
        return TablePlan(disk, refusals=refusals)
    entries = tuple(_new_entry(spot) for spot in spots)
    summary = tuple(f"{entry.number}: {_called(entry)}{in_mib(entry.size)}" for entry in entries)
    table = derived.table_uuid(disk.wanted.id)
    write = WritePartitionTable(disk.node, disk.wanted.id, table, disk.device.logical_block, True, entries, (), summary)
    return TablePlan(disk, (write,), (disk.device,))


def _refusals_of_new(disk: FoundDisk, spots: Sequence[Spot], tree: Tree) -> Iterator[str]:
    if is_empty(disk, tree):
        return
    if not disk.device.read:
        yield f"{disk.words} could not be read for what is on it; that takes root, and wipefs of util-linux"
    elif not disk.may_wipe:
        there = describe(tree, disk.device)
        yield f"{disk.words} is not empty; lost would be {there}. Name {disk.wanted.id} in wipe if it may be destroyed"
    for spot in spots:
        if spot.wanted.keep_data:
            yield (
                f"{spot.wanted.place}: keeps its data, but is not on {disk.words}, where there is {describe(tree, disk.device)}; "
                "correct its place, or take keep_data away if it is to be made"
            )


def _new_entry(spot: Spot) -> TableEntry:
    wanted = spot.wanted
    return TableEntry(wanted.number, wanted.start, wanted.size, wanted.type, wanted.unfinished, wanted.label, wanted.attrs, clear=True)


def _changed(disk: FoundDisk, spots: Sequence[Spot], conditions: Conditions) -> TablePlan:
    tree = conditions.tree
    matched = {spot.device.name for spot in spots if spot.device is not None}
    remade = tuple(spot.device for spot in spots if spot.status is Status.REMAKE and spot.device is not None)
    others = [part for part in partitions_of(disk, tree) if part.name not in matched]
    in_the_way = {part.name: [spot for spot in spots if _collides(part, spot)] for part in others}
    refusals = [] if disk.may_wipe else [_refusal(disk, tree, part, in_the_way[part.name]) for part in others if in_the_way[part.name]]
    given = {part.name for part in others if disk.may_wipe and (part.name in conditions.lost or not conditions.keep_unlisted)}
    removed = tuple(part for part in others if in_the_way[part.name] or part.name in given)
    staying = tuple(part for part in others if part not in removed)
    entries = [_entry(spot, conditions.built) for spot in spots] + [_staying_entry(part) for part in staying]
    writes = _rewrites(disk, tree, tuple(sorted(entries, key=lambda entry: entry.number)), (*remade, *removed))
    offsets = stale_offsets(disk, tree) if _is_written_by_us(disk) else ()
    gaps = (ClearGaps(disk.node, disk.wanted.id, offsets),) if offsets else ()
    destroyed = (*remade, *removed, *gone_partitions(disk, tree), *(_resurrected(disk, tree) if offsets else ()))
    # What the disk as a whole was a part of would come back as soon as the kernel looks at the table.
    return TablePlan(disk, (*gaps, *writes), destroyed, tuple(refusals))


def _is_written_by_us(disk: FoundDisk) -> bool:
    """Return whether the table as a whole is ours: signatures beside it are refuse then, not the metadata of a RAID controller."""
    return disk.device.table is not None and disk.device.table.uuid == derived.table_uuid(disk.wanted.id)


def _collides(part: Device, spot: Spot) -> bool:
    entry, wanted = entry_of(part), spot.wanted
    if spot.status is Status.KEPT and spot.device is not None:
        return spot.grows and entry.start < wanted.end and entry.start + entry.size > entry_of(spot.device).start
    return entry.number == wanted.number or (entry.start < wanted.end and entry.start + entry.size > wanted.start)


def _refusal(disk: FoundDisk, tree: Tree, part: Device, spots: Sequence[Spot]) -> str:
    wanted = ", ".join(spot.wanted.label or spot.wanted.device for spot in spots)
    return f"on {disk.words} {describe_one(tree, part)} is in the way of {wanted}; name {disk.wanted.id} in wipe if it may be destroyed"


def _entry(spot: Spot, built: Collection[str]) -> TableEntry:
    wanted = spot.wanted
    if spot.device is None or spot.status is Status.REMAKE:
        return _new_entry(spot)
    there = entry_of(spot.device)
    return TableEntry(
        number=there.number,
        start=there.start,
        size=wanted.size if spot.grows else there.size,
        type=str(there.type) if wanted.keep_data else wanted.type,
        uuid=str(there.uuid),
        name=there.name or "",
        attrs=_with_attrs(there.attrs, wanted.attrs),
        clear=spot.status is Status.UNFINISHED and wanted.device in built,
    )


def _with_attrs(there: t.Optional[str], wanted: t.Optional[str]) -> t.Optional[str]:
    if wanted is None or (there is not None and wanted in there):
        return there
    return f"{there} {wanted}" if there else wanted


def _staying_entry(part: Device) -> TableEntry:
    there = entry_of(part)
    return TableEntry(there.number, there.start, there.size, str(there.type), str(there.uuid), there.name or "", there.attrs)


def _rewrites(disk: FoundDisk, tree: Tree, entries: tuple[TableEntry, ...], removed: tuple[Device, ...]) -> tuple[WritePartitionTable, ...]:
    """Return the writes of the table; none when it and the kernel have all entries as they are to be.

    What is removed goes by a write of its own: cut off behind it, the room belongs to nobody, and can be cleared without a permission
    before a new partition is there that would show what was in it.
    """
    there = {entry_of(part).number: part for part in partitions_of(disk, tree)}
    gone = {entry_of(part).number: part for part in removed}
    staying = tuple(_staying_entry(part) for number, part in sorted(there.items()) if number not in gone)
    changes = tuple(_changes({number: part for number, part in there.items() if number not in gone}, entries))
    if not gone and not changes and not is_known_to_kernel(disk, tree):
        changes = ("nothing; the kernel does not know it yet",)
    removals = tuple(f"remove {describe_one(tree, part)}" for part in removed)
    forgotten = {entry_of(part).number for part in gone_partitions(disk, tree)}
    first = (_write(disk, staying, tuple(sorted({*gone, *forgotten})), removals),) if gone else ()
    return (*first, *((_write(disk, entries, () if gone else tuple(sorted(forgotten)), changes),) if changes else ()))


def _write(disk: FoundDisk, entries: tuple[TableEntry, ...], removed: tuple[int, ...], summary: tuple[str, ...]) -> WritePartitionTable:
    table = str(disk.device.table.uuid) if disk.device.table is not None else derived.table_uuid(disk.wanted.id)
    return WritePartitionTable(disk.node, disk.wanted.id, table, disk.device.logical_block, False, entries, removed, summary)


def _changes(there: t.Mapping[int, Device], entries: Sequence[TableEntry]) -> Iterator[str]:
    for entry in entries:
        before = entry_of(there[entry.number]) if entry.number in there else None
        if before is None or before.uuid != entry.uuid:
            yield f"{entry.number}: {_called(entry)}{in_mib(entry.size)}"
        elif before.size != entry.size:
            yield f"{entry.number}: {_called(entry)}grows from {in_mib(before.size)} to {in_mib(entry.size)}"
        elif before.type != entry.type:
            yield f"{entry.number}: {_called(entry)}type {entry.type} instead of {before.type}"
        elif before.attrs != entry.attrs:
            yield f"{entry.number}: {_called(entry)}attributes {entry.attrs}"


def _called(entry: TableEntry) -> str:
    return f"{entry.name} " if entry.name else ""


def _resurrected(disk: FoundDisk, tree: Tree) -> tuple[Device, ...]:
    """Return what was put together of signatures of the disk as a whole, which are refuse since it has the plan's table."""
    return tuple(child for child in tree.children(disk.device.name) if child.partition is None)
