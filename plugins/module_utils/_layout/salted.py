# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layout with the identities that its partitions have on this host's disks: storage/derived.py says which salt is mixed in. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from .._facts.present import Present
from .._schema.model import DesiredDisk, DesiredPartition, Layout
from .._storage import derived
from .._storage.identity import is_lasting
from .disks import FoundDisk
from .partitions import is_ours, match_disk, partitions_of


def with_salts(layout: Layout, present: Present, found: Sequence[FoundDisk]) -> tuple[Layout, tuple[FoundDisk, ...]]:
    """Return the layout and its disks with the identities that they have, or get, on this host."""
    salted = tuple(_salted(disk, present) for disk in found)
    desired = {disk.desired.place: disk.desired for disk in salted}
    return replace(layout, disks=tuple(desired.get(disk.place, disk) for disk in layout.disks)), salted


def _salted(disk: FoundDisk, present: Present) -> FoundDisk:
    if is_lasting(disk.desired.id):
        return disk
    there = disk.device.table.uuid if disk.device.table is not None and disk.device.table.type == "gpt" else disk.device.begun
    kept = derived.salt_of_table(disk.desired.id, there)
    if there and kept is not None:
        return _on_table(disk, present, there, kept)
    added = _on_table(disk, present, there, there) if there else disk
    if is_ours(added, match_disk(added, present.tree), present.tree):
        return added
    new = derived.table_uuid(disk.desired.id, present.salt)
    return replace(disk, desired=_made(disk.desired, new, present.salt, ()))


def _on_table(disk: FoundDisk, present: Present, table: str, salt: str) -> FoundDisk:
    """Return the disk with a table that is there, and with its salt for all partitions but those that were made without one."""
    uuids = {part.partition.uuid for part in partitions_of(disk, present.tree) if part.partition is not None}
    before = [part for part in disk.desired.partitions if uuids & {part.uuid, part.unfinished, part.condemned, part.receiving}]
    return replace(disk, desired=_made(disk.desired, table, salt, before))


def _made(disk: DesiredDisk, table: str, salt: str, before: Collection[DesiredPartition]) -> DesiredDisk:
    partitions = tuple(part if part in before else _partition(disk.id, part, salt) for part in disk.partitions)
    return replace(disk, table=table, partitions=partitions)


def _partition(disk_id: str, part: DesiredPartition, salt: str) -> DesiredPartition:
    return replace(part, uuid=derived.partition_uuid(disk_id, part.purpose, salt)) if part.purpose else part
