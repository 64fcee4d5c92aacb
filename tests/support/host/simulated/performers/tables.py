# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Partition tables, gaps, signatures and emptied disks of a simulated host."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ansible_collections.bareon.allocator.plugins.module_utils._steps.partitions import ClearGaps, FinishPartitions, WritePartitionTable
from ansible_collections.bareon.allocator.plugins.module_utils._steps.signatures import ClearSignatures, EmptyDisk
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import SimulatedHost, gpt_entries
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import MIB, Block
from ansible_collections.bareon.allocator.tests.support.host.simulated.performers.basics import Performers, Pieces, need, unused_block


def _clear_ends(host: SimulatedHost, block: Block) -> None:
    host.media.zero(block, 0, MIB)
    host.media.zero(block, block.size - MIB, MIB)


def _replace_table(host: SimulatedHost, disk: str, uuid: str, entries: tuple[t.Any, ...]) -> Pieces:
    """Write both copies of a table as sfdisk does, the backup first. A copy that changes is torn while it is written."""
    media, known = host.media, host.media.tables(disk)
    for offset in media.table_copies(disk):
        if known.get(offset) != ("gpt", uuid, entries):
            media.tear_copy(disk, offset)
            yield
            media.write_copy(disk, offset, uuid, entries)
            yield
    media.write_table(disk, uuid, entries)
    yield


def _write_table(host: SimulatedHost, step: WritePartitionTable) -> Pieces:
    name = step.disk.rsplit("/", 1)[-1]
    disk, entries = host.media.disk(name), gpt_entries(*step.entries)
    staying = {} if step.fresh else {entry.number: entry for entry in entries}
    for known in host.partitions.get(name, ()):
        kept = staying.get(known.number)
        if kept is None or kept.start != known.start or known.number in step.removed:
            need(not host.users(f"{name}{known.number}"), f"{name}{known.number} is in use")
    table = host.media.table(name)
    left = [] if table is None or step.fresh else [entry for entry in table[2] if entry.number in step.removed]
    if step.removed:
        host.partitions[name] = tuple(known for known in host.partitions.get(name, ()) if known.number not in step.removed)
        yield
    if step.fresh:
        left = list(host.partitions.get(name, ()))
        _unused_disk = [user for user in host.users(name) if host.blocks().get(user, disk).kind != "part"]
        need(not _unused_disk, f"{name} is in use by {_unused_disk}")
        host.partitions.pop(name, None)
        yield
        yield from _replace_table(host, name, step.uuid, ())
        host.media.wipe(disk)
        yield
        host.media.zero(disk, 2 * 512, MIB - 2 * 512)
        host.media.zero(disk, disk.size - MIB, MIB - 512)
        yield
    for entry in step.entries:
        if entry.clear:
            _clear_ends(host, Block("", "", "part", disk.part(entry.start, entry.size)))
            yield
    for start in (place for one in left for place in (one.start, one.start + one.size - MIB) if one.size > 2 * MIB):
        if not any(entry.start < start + MIB and start < entry.start + entry.size for entry in step.entries):
            host.media.zero(disk, start, MIB)
            yield
    yield from _replace_table(host, name, step.uuid, entries)
    host.partitions[name] = entries
    yield
    host.assemble(name)


def _clear_gaps(host: SimulatedHost, step: ClearGaps) -> Pieces:
    name = step.disk.rsplit("/", 1)[-1]
    disk = host.media.disk(name)
    for offset in step.offsets:
        host.media.zero(disk, offset, 1)
    yield


def _finish_partitions(host: SimulatedHost, step: FinishPartitions) -> Pieces:
    name = step.disk.rsplit("/", 1)[-1]
    table = host.media.table(name)
    need(table, "no table")
    _kind, uuid, entries = t.cast("tuple[str, str, tuple[t.Any, ...]]", table)
    final = dict(zip(step.numbers, step.uuids, strict=True))
    need(final.keys() <= {entry.number for entry in entries}, "a partition is not there")
    changed = tuple(replace(entry, uuid=final.get(entry.number, entry.uuid)) for entry in entries)
    yield from _replace_table(host, name, uuid, changed)
    host.partitions[name] = changed
    yield


def _clear_signatures(host: SimulatedHost, step: ClearSignatures) -> Pieces:
    blocks = [unused_block(host, device) for device in step.devices]
    for block in blocks:
        host.media.wipe(block)
        yield
    for block in blocks:
        _clear_ends(host, block)
        host.media.zero(block, 0, step.head)
        yield


def _empty_disk(host: SimulatedHost, step: EmptyDisk) -> Pieces:
    name = step.disk.rsplit("/", 1)[-1]
    for number in step.parts:
        block = unused_block(host, f"/dev/{name}{number}")
        host.media.wipe(block)
        _clear_ends(host, block)
        yield
    host.partitions.pop(name, None)
    host.media.wipe_table(name)
    host.media.wipe(host.media.disk(name))
    yield


PERFORMERS: Performers = {
    WritePartitionTable: _write_table,
    ClearGaps: _clear_gaps,
    ClearSignatures: _clear_signatures,
    FinishPartitions: _finish_partitions,
    EmptyDisk: _empty_disk,
}
