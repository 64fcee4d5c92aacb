# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which present partition is which wanted one, and what it means for it. Pure.

A wanted partition is there when a partition has its final PARTUUID, or its number, start, type and name; one that keeps data may have
another type and name. With the PARTUUID that stands for unfinished work it is our own and holds nothing of the user's.
"""

from __future__ import annotations

import enum
import typing as t
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from ..facts.signatures import TablePartition
from ..facts.tree import PARTITION_TABLES, Device, Tree
from ..schema import identities as derived
from ..schema.model import WantedPartition
from ..steps.kinds import in_mib, partition_node
from .disks import FoundDisk


class Status(enum.Enum):
    """What a wanted partition is at present."""

    NEW = "to be made"
    UNFINISHED = "our own unfinished work"
    KEPT = "there, with the user's data"
    REMAKE = "there, but to be made anew"


@dataclass(frozen=True)
class Spot:
    """A wanted partition on its disk, and the present one. `problem` says why a kept one cannot stay as it is."""

    wanted: WantedPartition
    disk: FoundDisk
    status: Status
    device: t.Optional[Device] = None
    problem: t.Optional[str] = None

    @property
    def node(self) -> str:
        """The node it has, or will have."""
        if self.device is not None and self.device.dev is not None:
            return self.device.dev
        return partition_node(self.disk.node, self.wanted.number)

    @property
    def size(self) -> int:
        """How many bytes the present partition has; 0 when there is none. The kernel may not know yet that it grew."""
        if self.device is None:
            return 0
        return min(entry_of(self.device).size, self.device.size) if self.device.running else entry_of(self.device).size

    @property
    def grows(self) -> bool:
        """Whether a kept one is smaller than wanted."""
        return self.status is Status.KEPT and self.size < self.wanted.size


def partitions_of(disk: FoundDisk, tree: Tree) -> tuple[Device, ...]:
    """Return the partitions that a disk's table has; the kernel may still have others."""
    numbers = {entry.number for entry in disk.device.table.partitions} if disk.device.table is not None else set()
    return tuple(child for child in tree.children(disk.device.name) if child.partition is not None and child.partition.number in numbers)


def gone_partitions(disk: FoundDisk, tree: Tree) -> tuple[Device, ...]:
    """Return the partitions that the kernel still has although they are not in the table: a run was killed before it told the kernel."""
    there = {part.name for part in partitions_of(disk, tree)}
    return tuple(
        child for child in tree.children(disk.device.name) if child.partition is not None and child.running and child.name not in there
    )


def is_known_to_kernel(disk: FoundDisk, tree: Tree) -> bool:
    """Return whether the kernel has the partitions of a disk's table and no others: a run may have been killed before it was told."""
    there = partitions_of(disk, tree)
    return not gone_partitions(disk, tree) and all(part.running and part.size == entry_of(part).size for part in there)


def entry_of(device: Device) -> TablePartition:
    """Return a partition's entry in the table."""
    return t.cast(TablePartition, device.partition)


def match_disk(disk: FoundDisk, tree: Tree) -> tuple[Spot, ...]:
    """Return the wanted partitions of a disk with what is there of them."""
    if disk.device.table is None or disk.device.table.type != "gpt":
        return tuple(Spot(part, disk, Status.NEW) for part in disk.wanted.partitions)
    there = partitions_of(disk, tree)
    return tuple(_spot(part, disk, there) for part in disk.wanted.partitions)


def lose(spot: Spot, lost: Collection[str]) -> Spot:
    """Return the spot, with a problem when its partition is a part of something that is destroyed elsewhere."""
    if spot.status is not Status.KEPT or spot.device is None or spot.device.name not in lost:
        return spot
    return replace(spot, problem=spot.problem or f"{spot.node} is a part of something of which other parts are to be made anew")


def is_ours(disk: FoundDisk, spots: Iterable[Spot]) -> bool:
    """Return whether a disk carries the layout, or was begun to: its table is the plan's, or one of its partitions is there."""
    table = disk.device.table
    if table is None or table.type != "gpt":
        return False
    return table.uuid == derived.table_uuid(disk.wanted.id) or any(spot.status is not Status.NEW for spot in spots)


def is_empty(disk: FoundDisk, tree: Tree) -> bool:
    """Return whether there is nothing at all on a disk, as far as can be seen."""
    device = disk.device
    return device.read and device.table is None and not device.signatures and not tree.children(device.name) and not device.mountpoints


def stale_offsets(disk: FoundDisk, tree: Tree) -> tuple[int, ...]:
    """Return where signatures of the disk as a whole are, although it has a partition table: what is left of what was there before."""
    extents = [(entry_of(part).start, entry_of(part).start + entry_of(part).size) for part in partitions_of(disk, tree)]
    offsets = (offset for signature in disk.device.signatures if signature.type not in PARTITION_TABLES for offset in signature.offsets)
    return tuple(sorted(offset for offset in offsets if not any(start <= offset < end for start, end in extents)))


def _spot(wanted: WantedPartition, disk: FoundDisk, there: Iterable[Device]) -> Spot:
    there = tuple(there)
    unfinished = next((part for part in there if entry_of(part).uuid == wanted.unfinished), None)
    if unfinished is not None:
        # Where it does not lie as wanted the plan has changed meanwhile; it is ours to remove.
        as_wanted = not list(_differences(wanted, entry_of(unfinished))) and entry_of(unfinished).size == wanted.size
        return Spot(wanted, disk, Status.UNFINISHED if as_wanted else Status.REMAKE, unfinished)
    kept = next(_candidates(wanted, there), None)
    if kept is None:
        return Spot(wanted, disk, Status.NEW)
    problem = "; ".join(_differences(wanted, entry_of(kept)))
    return Spot(
        wanted, disk, Status.KEPT, kept, f"{kept.dev or kept.name}, {wanted.label or wanted.device}, {problem}" if problem else None
    )


def _candidates(wanted: WantedPartition, there: Iterable[Device]) -> Iterator[Device]:
    there = tuple(there)
    yield from (part for part in there if entry_of(part).uuid == wanted.uuid)
    for part in there:
        entry = entry_of(part)
        same_place = entry.number == wanted.number and entry.start == wanted.start
        same_purpose = entry.type == wanted.type and bool(wanted.label) and entry.name == wanted.label
        if same_place and (same_purpose or wanted.keep_data):
            yield part


def _differences(wanted: WantedPartition, entry: TablePartition) -> Iterator[str]:
    """Give what is wrong with the place of a partition; that it has to grow is not."""
    if entry.start != wanted.start:
        yield f"would have to move from {in_mib(entry.start)} to {in_mib(wanted.start)}, and partitions are not moved"
    elif entry.size > wanted.size:
        yield f"would have to shrink from {in_mib(entry.size)} to {in_mib(wanted.size)}, and nothing is made smaller"
    if entry.number != wanted.number:
        yield f"is partition {entry.number}, and numbers are not changed to {wanted.number}"
