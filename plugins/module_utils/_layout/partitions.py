# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What becomes of the partition tables: which disks get a new one, which entries change, and what is in the way. Pure."""

from __future__ import annotations

import enum
import typing as t
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from .._facts.signatures import SECTOR, TablePartition
from .._facts.tree import PARTITION_TABLES, Device, Tree
from .._schema.model import DesiredPartition
from .._steps.partitions import ClearGaps, TableEntry, WritePartitionTable, table_regions
from .._steps.step import Step
from .._storage import derived
from .._storage.gpt import partition_node
from .._storage.units import MIB, in_mib
from .disks import FoundDisk

_UNKNOWN = "nothing; the kernel does not know it yet"
_HALF = "nothing; only its backup is whole"


class Status(enum.Enum):
    """What a desired partition is at present."""

    NEW = "to be made"
    UNFINISHED = "our own unfinished work"
    KEPT = "there, with the user's data"
    REMAKE = "there, but must be made again"


@dataclass(frozen=True)
class PartitionMatch:
    """A desired partition on its disk, and the present one. `problem` says why a kept one cannot stay where it is.

    `lost`: it is a part of something whose other parts are destroyed. `stranger` describes foreign contents of an unfinished partition, or
    our own contents of one without an entry, `sealed` closed contents, which only opening shows.
    """

    desired: DesiredPartition
    disk: FoundDisk
    status: Status
    device: t.Optional[Device] = None
    problem: t.Optional[str] = None
    lost: bool = False
    stranger: t.Optional[str] = None
    sealed: t.Optional[str] = None

    @property
    def node(self) -> str:
        """The node it has, or will have."""
        if self.device is not None and self.device.dev is not None:
            return self.device.dev
        return partition_node(self.disk.node, self.desired.number)

    @property
    def size(self) -> int:
        """How many bytes the present partition has; 0 when there is none. The kernel may not know yet that it grew."""
        if self.device is None:
            return 0
        return min(entry_of(self.device).size, self.device.size) if self.device.running else entry_of(self.device).size

    @property
    def unfinished(self) -> bool:
        """Whether the present one is marked as our own unfinished work, lying as desired or not."""
        return self.device is not None and entry_of(self.device).uuid == self.desired.unfinished

    @property
    def refused(self) -> t.Optional[str]:
        """Why an unfinished or missing one may not be made: somebody has used it, and its disk may not be wiped, or it keeps its data."""
        why = self.stranger or self.sealed
        if why is None or (self.disk.may_wipe and not self.desired.keep_data):
            return None
        return f"{why}; {self.disk.permission()}"

    @property
    def condemned(self) -> bool:
        """Whether the present one was to be made again by a run that was cut off."""
        return self.device is not None and entry_of(self.device).uuid == self.desired.condemned

    @property
    def receiving(self) -> bool:
        """Whether the present one takes what is moved off another disk; it may be the only copy."""
        return self.device is not None and entry_of(self.device).uuid == self.desired.receiving

    @property
    def grows(self) -> bool:
        """Whether a kept one is smaller than desired."""
        return self.status is Status.KEPT and self.size + MIB <= self.desired.size


def partitions_of(disk: FoundDisk, tree: Tree) -> tuple[Device, ...]:
    """Return the partitions that a disk's table has; the kernel may still have others."""
    numbers = {entry.number for entry in disk.device.table.partitions} if disk.device.table is not None else set()
    return tuple(child for child in tree.children(disk.device.name) if child.partition is not None and child.partition.number in numbers)


def gone_partitions(disk: FoundDisk, tree: Tree) -> tuple[Device, ...]:
    """Return the partitions that the kernel still has although they are not in the table: a run was killed before it updated the kernel."""
    there = {part.name for part in partitions_of(disk, tree)}
    return tuple(
        child for child in tree.children(disk.device.name) if child.partition is not None and child.running and child.name not in there
    )


def is_known_to_kernel(disk: FoundDisk, tree: Tree) -> bool:
    """Return whether the kernel has the partitions of a disk's table and no others: a run may be killed before it updates the kernel."""
    there = partitions_of(disk, tree)
    return not gone_partitions(disk, tree) and all(part.running and part.size == entry_of(part).size for part in there)


def is_first_copy_whole(disk: FoundDisk) -> bool:
    """Return whether a disk's GPT can be read where the kernel reads it: a power cut may have left the backup alone."""
    offsets = [offset for signature in disk.device.signatures if signature.type == "gpt" for offset in signature.offsets]
    return not offsets or disk.device.logical_block in offsets


def entry_of(device: Device) -> TablePartition:
    """Return a partition's entry in the table."""
    return t.cast(TablePartition, device.partition)


def match_disk(disk: FoundDisk, tree: Tree) -> tuple[PartitionMatch, ...]:
    """Return the desired partitions of a disk with the present ones that they match."""
    if disk.device.table is None or disk.device.table.type != "gpt" or is_overlaid(disk, tree):
        return tuple(PartitionMatch(part, disk, Status.NEW) for part in disk.desired.partitions)
    there = [part for part in partitions_of(disk, tree) if not is_given_up(disk, part)]
    return tuple(_match(part, disk, there) for part in disk.desired.partitions)


def is_given_up(disk: FoundDisk, part: Device) -> bool:
    """Return whether a partition is marked as one that is removed: a run that was permitted to do that was cut off."""
    table, entry = disk.device.table, entry_of(part)
    return table is not None and entry.uuid == derived.removed_uuid(disk.desired.id, str(table.uuid), entry.start)


def lose(match: PartitionMatch, lost: Collection[str]) -> PartitionMatch:
    """Return the match, marked when its partition is a part of something that is destroyed elsewhere."""
    return replace(match, lost=match.status is Status.KEPT and match.device is not None and match.device.name in lost)


def is_ours(disk: FoundDisk, matches: Iterable[PartitionMatch], tree: Tree) -> bool:
    """Return whether a disk carries the layout, or was begun to: its table is the plan's, or one of its partitions is there.

    A table under another signature is only a remainder.
    """
    table = disk.device.table
    if table is None or table.type != "gpt" or is_overlaid(disk, tree):
        return False
    begun = any(match.status is not Status.NEW for match in matches) or any(is_given_up(disk, part) for part in partitions_of(disk, tree))
    return begun or derived.salt_of_table(disk.desired.id, table.uuid) is not None


def is_empty(disk: FoundDisk, tree: Tree) -> bool:
    """Return whether there is nothing at all on a disk: no signature, nothing built on it, and nothing but blanks where it was read."""
    device = disk.device
    if device.remains is not None or device.openers:
        return False
    return device.read and device.table is None and not device.signatures and not tree.children(device.name) and not device.mountpoints


def is_begun(disk: FoundDisk) -> bool:
    """Return whether a run was cut off in the first write of the plan's table: it has a part of the table, and no other contents."""
    begun = disk.device.begun
    return (begun == "" or derived.salt_of_table(disk.desired.id, begun) is not None) and not disk.device.openers


def stale_signatures(disk: FoundDisk, tree: Tree) -> tuple[tuple[int, str], ...]:
    """Return where signatures of the disk as a whole are, although it has a partition table, and their types, in order."""
    extents = [(entry_of(part).start, entry_of(part).start + entry_of(part).size) for part in partitions_of(disk, tree)]
    contents = (signature for signature in disk.device.signatures if signature.type not in PARTITION_TABLES)
    found = ((offset, signature.type) for signature in contents for offset in signature.offsets)
    return tuple(sorted(one for one in found if not any(start <= one[0] < end for start, end in extents)))


def is_overlaid(disk: FoundDisk, tree: Tree) -> bool:
    """Return whether something else lies in the sectors of a disk's table, or runs on the disk as a whole.

    A RAID superblock, a label of LVM or swap is put over a table, and leaves one of its copies. An empty table of ours is not overlaid by
    what runs: what was on the disk before may come back as long as that is not cleared.
    """
    regions = table_regions(disk.device.size, disk.device.logical_block)
    inside = any(start <= offset < end for offset, _type in stale_signatures(disk, tree) for start, end in regions)
    return inside or (not is_emptied(disk) and any(child.running for child in _resurrected(disk, tree)))


def is_emptied(disk: FoundDisk) -> bool:
    """Return whether a disk has the plan's table without partitions: a run was permitted to empty it, and cut off."""
    return _is_written_by_us(disk) and disk.device.table is not None and not disk.device.table.partitions


def _match(desired: DesiredPartition, disk: FoundDisk, there: Iterable[Device]) -> PartitionMatch:
    there = tuple(there)
    unfinished = next((part for part in there if entry_of(part).uuid == desired.unfinished), None)
    if unfinished is not None:
        # Where it does not lie as desired the plan has changed meanwhile; it is ours to remove.
        as_desired = not list(_differences(desired, entry_of(unfinished))) and entry_of(unfinished).size == desired.size
        return PartitionMatch(desired, disk, Status.UNFINISHED if as_desired else Status.REMAKE, unfinished)
    kept = next(_candidates(desired, there), None)
    if kept is None:
        return PartitionMatch(desired, disk, Status.NEW)
    problem = "; ".join(_problems(desired, disk, entry_of(kept)))
    return PartitionMatch(
        desired, disk, Status.KEPT, kept, f"{kept.dev or kept.name}, {desired.label or desired.device}, {problem}" if problem else None
    )


def _candidates(desired: DesiredPartition, there: Iterable[Device]) -> Iterator[Device]:
    there = tuple(there)
    yield from (part for part in there if entry_of(part).uuid in (desired.uuid, desired.condemned, desired.receiving))
    for part in there:
        entry = entry_of(part)
        same_place = entry.number == desired.number and entry.start == desired.start
        same_purpose = entry.type == desired.type and bool(desired.label) and entry.name == desired.label
        if same_place and (same_purpose or desired.keep_data):
            yield part


def _problems(desired: DesiredPartition, disk: FoundDisk, entry: TablePartition) -> Iterator[str]:
    if entry.uuid == desired.condemned:
        yield f"was to be made again by a run that was cut off; {disk.permission('so that it is')}"
    yield from _differences(desired, entry)


def _differences(desired: DesiredPartition, entry: TablePartition) -> Iterator[str]:
    """Give what is wrong with the place of a partition; that it has to grow is not.

    Schemas count in whole MiB, other tools do not: what lies within the same MiB lies as desired.
    """
    if abs(entry.start - desired.start) >= MIB:
        yield f"would have to move from {in_mib(entry.start)} to {in_mib(desired.start)}; partitions are never moved"
    elif entry.size >= desired.size + MIB:
        yield f"would have to shrink from {in_mib(entry.size)} to {in_mib(desired.size)}; nothing is ever made smaller"
    if entry.number != desired.number:
        yield f"is partition {entry.number}, and numbers are not changed to {desired.number}"


_TABLES = frozenset({"gpt", "dos"})


def describe(tree: Tree, device: Device) -> str:
    """Return what is on a device and on all that is built on it, with sizes, names and labels."""
    return "; ".join(_parts(tree, device)) or "something that cannot be read"


def _parts(tree: Tree, device: Device) -> Iterator[str]:
    children = tree.children(device.name)
    if device.table is not None:
        count = len([child for child in children if child.partition is not None])
        yield f"a {device.table.type} table with {count or 'no'} partition{'' if count == 1 else 's'}"
    for signature in device.signatures:
        if signature.type not in PARTITION_TABLES:
            yield _content(signature.type, signature.label)
        elif device.table is None and signature.type in _TABLES:
            yield f"what is left of a {signature.type} table"
    if device.mountpoints:
        yield f"mounted on {', '.join(device.mountpoints)}"
    if device.remains is not None:
        yield device.remains.words
    yield from device.uses
    if device.openers:
        yield f"open in {', '.join(device.openers)}"
    if device.claimed and not device.uses:
        yield "held by the kernel for something that is not visible here"
    for child in {child.name: child for child in _without_parts_of_pools(tree, children)}.values():
        yield describe_one(tree, child)


def _without_parts_of_pools(tree: Tree, devices: Iterable[Device]) -> Iterator[Device]:
    """Give devices, and in place of what a thin pool keeps for itself what is built on that."""
    for device in devices:
        if device.is_part:
            yield from _without_parts_of_pools(tree, tree.children(device.name))
        else:
            yield device


def describe_one(tree: Tree, device: Device) -> str:
    """Return a device with its size, its name and what is on it."""
    size = f" ({in_mib(device.size)})" if device.size else ""
    inside = "; ".join(_parts(tree, device))
    return f"{_name(device)}{size}{f': {inside}' if inside else ''}"


def _name(device: Device) -> str:
    if device.partition is not None:
        entry = entry_of(device)
        return f"partition {entry.number}{f' {entry.name!r}' if entry.name else ''}"
    if device.kind == "lvm":
        return f"volume {device.group}/{device.title}"
    return f"{device.kind} {device.dev or device.title or device.name}"


def _content(kind: str, label: t.Optional[str]) -> str:
    return f"{kind}{f' {label!r}' if label else ''}"


@dataclass(frozen=True)
class TablePlan:
    """The plan of a disk's table: steps, destroyed partitions, and refusals.

    `marked` are the partitions of those that are destroyed which are to be marked as removed, before anything on them is.
    `restoring` is the write that comes before all others, in a round of its own, where only the backup of the table is whole.
    `cleared` are the signatures of the disk as a whole that go: where, and of which type.
    """

    disk: FoundDisk
    steps: tuple[Step, ...] = ()
    destroyed: tuple[Device, ...] = ()
    refusals: tuple[str, ...] = ()
    marked: tuple[Device, ...] = ()
    restoring: t.Optional[WritePartitionTable] = None
    cleared: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Conditions:
    """What the tables depend on in addition to the disks.

    `built` are the devices of desired partitions on which everything is made. Of partitions that are not desired those `lost` (by name) are
    parts of something that is destroyed; without `keep_unlisted` all are removed. Both only where the disk may be wiped. Those `condemned`
    (by name) are marked as to be made again before, on all disks. `keeping` are the devices of desired partitions that keep their data.
    """

    tree: Tree
    built: Collection[str]
    keep_unlisted: bool
    lost: Collection[str]
    condemned: Collection[str] = ()
    keeping: Collection[str] = ()


def plan_table(disk: FoundDisk, matches: Sequence[PartitionMatch], conditions: Conditions) -> TablePlan:
    """Return what becomes of a disk's table."""
    tree = conditions.tree
    if is_ours(disk, matches, tree):
        return _changed(disk, matches, conditions)
    refusals = tuple(_refusals_of_new(disk, matches, conditions))
    if refusals:
        return TablePlan(disk, refusals=refusals)
    return TablePlan(disk, (new_table(disk, matches),), (disk.device,))


def new_table(disk: FoundDisk, matches: Iterable[PartitionMatch]) -> WritePartitionTable:
    """Return the write of a new table with all desired partitions, whatever is on the disk."""
    entries = tuple(_new_entry(match) for match in matches)
    summary = tuple(f"{entry.number}: {_called(entry)}{in_mib(entry.size)}" for entry in entries)
    return WritePartitionTable(disk.node, disk.desired.id, disk.desired.table, disk.device.logical_block, True, entries, (), summary)


def occupied(disk: FoundDisk, tree: Tree) -> Iterator[str]:
    """Give why a disk that is not empty gets no new table: it cannot be read, or may not be wiped."""
    if not disk.device.read:
        yield f"{disk.words} could not be searched for what is on it; that needs root, and wipefs from util-linux"
    elif disk.device.remains is not None and disk.device.remains.error:
        yield f"{disk.words} has {disk.device.remains.words}; a disk that cannot be read is never written to, whether wipe names it or not"
    elif not disk.may_wipe:
        there = describe(tree, disk.device)
        yield f"{disk.words} is not empty; wiping it would destroy {there}; {disk.permission()}"


def _refusals_of_new(disk: FoundDisk, matches: Sequence[PartitionMatch], conditions: Conditions) -> Iterator[str]:
    tree = conditions.tree
    if is_empty(disk, tree) or is_begun(disk):
        return
    yield from occupied(disk, tree)
    for match in matches:
        if match.desired.device in conditions.keeping:
            yield (
                f"{match.desired.place}: keeps its data, but is not on {disk.words}, where there is {describe(tree, disk.device)}; "
                "correct its place, or take keep_data away to have it made"
            )


def _new_entry(match: PartitionMatch) -> TableEntry:
    desired = match.desired
    return TableEntry(
        desired.number, desired.start, desired.size, desired.type, desired.unfinished, desired.label, desired.attrs, clear=True
    )


def _changed(disk: FoundDisk, matches: Sequence[PartitionMatch], conditions: Conditions) -> TablePlan:
    tree = conditions.tree
    matched = {match.device.name for match in matches if match.device is not None}
    remade = tuple(match.device for match in matches if match.status is Status.REMAKE and match.device is not None)
    others = [part for part in partitions_of(disk, tree) if part.name not in matched]
    in_the_way = {part.name: [match for match in matches if _collides(part, match)] for part in others}
    given = {part.name for part in others if is_given_up(disk, part)}
    refused = [part for part in others if in_the_way[part.name] and part.name not in given and not disk.may_wipe]
    refusals = [_refusal(disk, tree, part, in_the_way[part.name]) for part in refused]
    refusals += list(_without_slot(disk, matches))
    refusals += [_elsewhere(disk, part) for part in partitions_of(disk, tree) if _is_elsewhere(part)]
    refusals += [
        _kept_elsewhere(disk, tree, part, match)
        for part in others
        for match in in_the_way[part.name]
        if match.status is Status.NEW and match.desired.device in conditions.keeping and part.name not in given
    ]
    given |= {part.name for part in others if disk.may_wipe and (part.name in conditions.lost or not conditions.keep_unlisted)}
    removed = tuple(part for part in others if in_the_way[part.name] or part.name in given)
    staying = tuple(part for part in others if part not in removed)
    entries = [_entry(match, conditions.built) for match in matches] + [_staying_entry(part) for part in staying]
    writes = _rewrites(disk, tree, tuple(sorted(entries, key=lambda entry: entry.number)), (*remade, *removed))
    refusals += list(_overlaps(disk, entries)) if writes else []
    stale = stale_signatures(disk, tree) if _is_written_by_us(disk) else ()
    clears = bool(stale) and (disk.may_wipe or is_emptied(disk))
    if stale and writes and not clears:
        refusals += [_beside(disk, stale)]
    # What the disk as a whole was a part of would come back as soon as the kernel looks at the table.
    gaps = (ClearGaps(disk.node, disk.desired.id, tuple(offset for offset, _type in stale)),) if clears else ()
    destroyed = (*remade, *removed, *gone_partitions(disk, tree), *(_resurrected(disk, tree) if clears else ()))
    marked = tuple(part for part in (*remade, *removed) if not is_given_up(disk, part) and part.name not in conditions.condemned)
    condemned = [part for part in remade if part.name in conditions.condemned]
    marks = (mark_for_loss(disk, tree, (), condemned),) if condemned else ()
    return TablePlan(disk, (*gaps, *marks, *writes), destroyed, tuple(refusals), marked, _restoring(disk, tree), stale if clears else ())


def _overlaps(disk: FoundDisk, entries: Iterable[TableEntry]) -> Iterator[str]:
    """Give the partitions that reach into others: one that stays may have a part of a MiB more than the layout says, and its data there."""
    in_turn = sorted(entries, key=lambda entry: entry.start)
    for one, other in zip(in_turn, in_turn[1:]):
        if one.start + one.size > other.start:
            yield (
                f"{disk.words}: partition {one.number} ends at byte {one.start + one.size}, behind byte {other.start} where partition "
                f"{other.number} begins; nothing is made smaller, so let partition {other.number} begin at the next whole MiB"
            )


def _kept_elsewhere(disk: FoundDisk, tree: Tree, part: Device, match: PartitionMatch) -> str:
    """Return why nothing is made that keeps its data: the other partition may have them, under another number or in another place."""
    return (
        f"{match.desired.place}: keeps its data, but is not on {disk.words} as the schema has it, and in its way is "
        f"{describe_one(tree, part)}; correct its place and number, or take keep_data away to have it made"
    )


def _is_elsewhere(part: Device) -> bool:
    """Return whether the kernel has a partition in room that its entry in the table has not: somebody has changed the table since.

    What is read by its node is not what lies where the entry says, and what is in use may lie where the table shows nothing. Runs leave no
    such state: they have the kernel forget a partition first, except for one that grows.
    """
    start = part.row.get("start")
    elsewhere = start is not None and int(start) * SECTOR != entry_of(part).start
    return part.running and (elsewhere or part.size > entry_of(part).size)


def _elsewhere(disk: FoundDisk, part: Device) -> str:
    entry, start = entry_of(part), part.row.get("start")
    begin = f" from {in_mib(int(start) * SECTOR)} on" if start is not None else ""
    return (
        f"{disk.words}: the kernel has {part.dev} with {in_mib(part.size)}{begin}, and the table has it with {in_mib(entry.size)} "
        f"from {in_mib(entry.start)} on: somebody changed the table while the disk was in use; have the kernel read it again "
        f"(partprobe {disk.node}, or blockdev --rereadpt {disk.node}), or restart the host, and run again"
    )


def _without_slot(disk: FoundDisk, matches: Iterable[PartitionMatch]) -> Iterator[str]:
    """Give the partitions for which the table of another tool has no entry: UEFI has tables with less than 128."""
    slots = disk.device.table.slots if disk.device.table is not None else None
    for match in matches:
        if slots is not None and match.desired.number > slots and match.status is Status.NEW:
            yield (
                f"{match.desired.place}: the table of {disk.words} has room for {slots} partitions, and none for number "
                f"{match.desired.number}; give it a free number up to {slots}, or make the table larger (sgdisk --resize-table)"
            )


def _restoring(disk: FoundDisk, tree: Tree) -> t.Optional[WritePartitionTable]:
    """Return the write of a table as it is where only its backup is whole: a change begins with the backup, and a cut could leave neither.

    Partitions that only the kernel still has are to be closed first, with all steps on tables: then it is the first of these.
    """
    return rewrite_table(disk, tree) if not is_first_copy_whole(disk) and not gone_partitions(disk, tree) else None


def mark_for_loss(disk: FoundDisk, tree: Tree, rebuilt: Iterable[PartitionMatch], removed: Iterable[Device]) -> WritePartitionTable:
    """Return the write that marks partitions as what is to be made again, or removed; all stays where it is, and may be in use."""
    again = {match.device.name: match.desired.condemned for match in rebuilt if match.device is not None}
    table = str(disk.device.table.uuid) if disk.device.table is not None else disk.desired.table
    gone = {part.name: derived.removed_uuid(disk.desired.id, table, entry_of(part).start) for part in removed}
    marks = {**again, **gone}
    entries = [replace(_staying_entry(part), uuid=marks.get(part.name, str(entry_of(part).uuid))) for part in partitions_of(disk, tree)]
    summary = [f"mark partition {entry.number} as to be made again" for entry in entries if entry.uuid in again.values()]
    summary += [f"mark partition {entry.number} as to be removed" for entry in entries if entry.uuid in gone.values()]
    return _write(disk, tuple(sorted(entries, key=lambda entry: entry.number)), (), tuple(summary))


def rewrite_table(disk: FoundDisk, tree: Tree) -> WritePartitionTable:
    """Return the step that rewrites a table unchanged, which repairs a torn copy, and updates the kernel; nothing is lost."""
    entries = sorted((_staying_entry(part) for part in partitions_of(disk, tree)), key=lambda entry: entry.number)
    return _write(disk, tuple(entries), (), (_HALF if is_known_to_kernel(disk, tree) else _UNKNOWN,))


def _is_written_by_us(disk: FoundDisk) -> bool:
    """Return whether the table as a whole is ours: then other signatures are garbage, not the metadata of a RAID controller."""
    table = disk.device.table
    return table is not None and derived.salt_of_table(disk.desired.id, table.uuid) is not None


def _collides(part: Device, match: PartitionMatch) -> bool:
    entry, desired = entry_of(part), match.desired
    if match.status is Status.KEPT and match.device is not None:
        return match.grows and entry.start < desired.end and entry.start + entry.size > entry_of(match.device).start
    return entry.number == desired.number or (entry.start < desired.end and entry.start + entry.size > desired.start)


def _beside(disk: FoundDisk, stale: Sequence[tuple[int, str]]) -> str:
    there = ", ".join(f"{kind} at {in_mib(offset)}" for offset, kind in stale)
    return f"{disk.words} has {there} as a whole, outside of its partitions; {disk.permission('if that may be destroyed')}"


def _refusal(disk: FoundDisk, tree: Tree, part: Device, matches: Sequence[PartitionMatch]) -> str:
    desired = ", ".join(match.desired.label or match.desired.device for match in matches)
    return f"on {disk.words} {describe_one(tree, part)} is in the way of {desired}; {disk.permission()}"


def _entry(match: PartitionMatch, built: Collection[str]) -> TableEntry:
    desired = match.desired
    if match.device is None or match.status is Status.REMAKE:
        return _new_entry(match)
    there = entry_of(match.device)
    return TableEntry(
        number=there.number,
        start=there.start,
        size=desired.end - there.start if match.grows else there.size,
        type=str(there.type) if desired.keep_data else desired.type,
        uuid=str(there.uuid),
        name=there.name or "",
        attrs=_with_attrs(there.attrs, desired.attrs),
        clear=match.status is Status.UNFINISHED and desired.device in built,
    )


def _with_attrs(there: t.Optional[str], desired: t.Optional[str]) -> t.Optional[str]:
    if desired is None or (there is not None and desired in there):
        return there
    return f"{there} {desired}" if there else desired


def _staying_entry(part: Device) -> TableEntry:
    there = entry_of(part)
    return TableEntry(there.number, there.start, there.size, str(there.type), str(there.uuid), there.name or "", there.attrs)


def _rewrites(disk: FoundDisk, tree: Tree, entries: tuple[TableEntry, ...], removed: tuple[Device, ...]) -> tuple[WritePartitionTable, ...]:
    """Return the writes of the table; none when it and the kernel have all entries as they are to be.

    What is removed is marked before, so that a run that is cut off needs no permission any more; it goes with the write that brings what is
    new, so that no room which may have something of before is ever without an entry. A table of which only the backup is whole is written
    as it is before.
    """
    there = {entry_of(part).number: part for part in partitions_of(disk, tree)}
    gone = {entry_of(part).number: part for part in removed}
    changes = tuple(_changes({number: part for number, part in there.items() if number not in gone}, entries))
    if not gone and not changes and not is_known_to_kernel(disk, tree):
        changes = (_UNKNOWN,)
    removals = tuple(f"remove {describe_one(tree, part)}" for part in removed)
    forgotten = {entry_of(part).number for part in gone_partitions(disk, tree)}
    # A change begins with the backup: where that alone is whole, a cut could leave neither.
    repairing: tuple[WritePartitionTable, ...] = ()
    if forgotten and not is_first_copy_whole(disk):
        repairing = (replace(rewrite_table(disk, tree), removed=tuple(sorted(forgotten)), summary=(_HALF,)),)
        forgotten = set()
    if not gone and not changes:
        return repairing
    return (*repairing, _write(disk, entries, tuple(sorted({*gone, *forgotten})), (*removals, *changes)))


def _write(disk: FoundDisk, entries: tuple[TableEntry, ...], removed: tuple[int, ...], summary: tuple[str, ...]) -> WritePartitionTable:
    table = str(disk.device.table.uuid) if disk.device.table is not None else disk.desired.table
    return WritePartitionTable(disk.node, disk.desired.id, table, disk.device.logical_block, False, entries, removed, summary)


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
