# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out the steps on partition tables: whole tables in one sfdisk write, and the kernel told of every partition.

Old signatures are zeroed through the disk before the kernel, and with it udev, learns of a partition.
"""

from __future__ import annotations

import posixpath
import typing as t
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .._facts.signatures import SECTOR, Table, TablePartition, parse_table, table_command
from .._storage.gpt import partition_node
from .._storage.gpt_bytes import RawTable, WrongTable, read_raw_table, written
from .._storage.units import MIB
from .kinds import ClearGaps, FinishPartitions, TableEntry, WritePartitionTable
from .machine import CommandFailed, Machine, Region, StepFailed

_BOOT_CODE = 440
"""Bytes of the protective MBR before what tables are in, which sfdisk keeps as they are."""

_LEAST_ENTRIES = 128
_ENTRY_BYTES = 128

_Entry = t.Union[TablePartition, TableEntry]

_ATTEMPTS = 20

_QUIETLY = ("--quiet", "--no-reread", "--no-tell-kernel")
"""sfdisk would have the kernel drop and find all partitions anew, which fails while one of them is in use: partx tells of each."""


def write_partition_table(step: WritePartitionTable, machine: Machine) -> None:
    """Write the table, tell the kernel, and compare both with what was wanted."""
    size = device_size(machine, step.disk)
    old = _kernel_partitions(machine, step.disk)
    gone = old if step.fresh else tuple(number for number in step.removed if number in old)
    with machine.locked(step.disk):
        headers = [f"first-lba: {MIB // step.sector}"] if step.fresh else kept_headers(read_table(machine, step.disk, step.sector))
        _forget(machine, step.disk, gone)
        beside = _take_over(step, headers, machine, size) if step.fresh else ()
        new = [region for entry in step.entries if entry.clear for region in ends(entry.size, entry.start)]
        # Every time that a disk is closed after writing udev looks at all of it again.
        machine.zero(step.disk, (*beside, *new), exclusively=step.fresh)
        _write_entries(step.disk, step.uuid, step.sector, headers, step.entries, machine)
        _tell_kernel(machine, step.disk, [entry.number for entry in step.entries])
    machine.settle()
    machine.wait_for(step.node(entry.number) for entry in step.entries)
    _check(step, machine)


def _take_over(step: WritePartitionTable, headers: Sequence[str], machine: Machine, size: int) -> tuple[Region, ...]:
    """Make a disk ours by an empty table over what it had, and return what is to be cleared of that beside the table.

    The table is written first: a run that is cut off behind it needs no permission any more, and shows nothing of what was there before,
    for there are no partitions. All that is wiped before it would be lost of a disk that still seems to be somebody else's.
    """
    _insist_on_unused(machine, step.disk)
    _write(step.disk, table_script(step.uuid, step.sector, headers, ()), machine)
    machine.change(["wipefs", "--all", "--quiet", "--types", "nogpt,noPMBR", step.disk])
    beside_head = (Region(0, _BOOT_CODE), *([Region(SECTOR, step.sector - SECTOR)] if step.sector > SECTOR else []))
    return (*beside_head, *gaps(size, _table_room(step.sector, _LEAST_ENTRIES), ()))


def _insist_on_unused(machine: Machine, disk: str) -> None:
    """Raise StepFailed while anything uses the disk: sfdisk would not ask. Where reading does not tell, opening it for writing does."""
    claimed = machine.claimed(disk)
    if claimed:
        raise StepFailed(f"{disk} is in use by the kernel; nothing was written")
    if claimed is None:
        machine.zero(disk, (), exclusively=True)


def _write(disk: str, script: str, machine: Machine) -> None:
    """Have sfdisk write a table, and only that: were it to wipe first, a cut between would leave half of the old table."""
    machine.change(["sfdisk", *_QUIETLY, "--wipe=never", "--wipe-partitions=never", disk], script.encode())


def _write_entries(disk: str, uuid: str, sector: int, headers: Sequence[str], entries: Sequence[_Entry], machine: Machine) -> None:
    """Write a table with these entries, by sfdisk where its scripts say all that the table has, else in place."""
    there = _raw_table(disk, sector, machine)
    if there is None or not there.has_more_than_scripts_say:
        _write(disk, table_script(uuid, sector, headers, entries), machine)
    else:
        _write_in_place(disk, there, uuid, entries, machine)


def _raw_table(disk: str, sector: int, machine: Machine) -> t.Optional[RawTable]:
    try:
        return read_raw_table(lambda start, size: machine.read_bytes(disk, start, size), sector)
    except OSError as error:
        raise StepFailed(f"the partition table of {disk} cannot be read: {error}") from error


def _write_in_place(disk: str, there: RawTable, uuid: str, entries: Iterable[_Entry], machine: Machine) -> None:
    try:
        machine.write(disk, written(there, entries, uuid, device_size(machine, disk)))
    except WrongTable as error:
        raise StepFailed(f"the partition table of {disk} cannot be changed: {error}") from error


def table_script(uuid: str, sector: int, headers: Sequence[str], entries: Iterable[_Entry]) -> str:
    """Return the script that sfdisk makes the table of: all of it, with every identity."""
    lines = (_script_line(entry, sector) for entry in entries)
    return "\n".join(["label: gpt", f"label-id: {uuid}", "unit: sectors", *headers, *lines, ""])


def _script_line(entry: _Entry, sector: int) -> str:
    fields = [f"start={entry.start // sector}", f"size={entry.size // sector}", f"type={entry.type}", f"uuid={entry.uuid}"]
    fields += [f'name="{_quoted(entry.name)}"'] if entry.name else []
    fields += [f'attrs="{entry.attrs}"'] if entry.attrs else []
    return f"{entry.number}: {', '.join(fields)}"


def _quoted(name: str) -> str:
    """Return a name as sfdisk reads it between quotes: bytes that it would take for its own syntax in hexadecimal."""
    return "".join(f"\\x{ord(letter):02x}" if letter in '"\\' else letter for letter in name)


def ends(size: int, start: int = 0) -> tuple[Region, ...]:
    """Return the first and the last MiB of a room, where signatures of all kinds lie; one region when they touch."""
    if size <= 2 * MIB:
        return (Region(start, size),)
    return Region(start, MIB), Region(start + size - MIB, MIB)


def finish_partitions(step: FinishPartitions, machine: Machine) -> None:
    """Give the partitions their final PARTUUIDs, in place and all in one write, and read the table back: nothing else is different.

    udev has the kernel find the partitions of an unused disk anew when it was written: their nodes are gone for a moment.
    """
    final = dict(zip(step.numbers, step.uuids))
    with machine.locked(step.disk):
        table = read_table(machine, step.disk, step.sector)
        wanted = tuple(replace(entry, uuid=final.get(entry.number, entry.uuid)) for entry in table.partitions)
        if table.type != "gpt" or not final.keys() <= {entry.number for entry in wanted}:
            raise StepFailed(f"{step.disk} has no GPT with the partitions {', '.join(map(str, step.numbers))} to be marked as finished")
        there = _raw_table(step.disk, step.sector, machine)
        if there is None:
            _write(step.disk, table_script(str(table.uuid), step.sector, kept_headers(table), wanted), machine)
        else:
            # Only identities change, and there are many marks: sfdisk would be one process more for each.
            _write_in_place(step.disk, there, str(table.uuid), wanted, machine)
    _compare(read_table(machine, step.disk, step.sector), step.disk, str(table.uuid), wanted)


def clear_gaps(step: ClearGaps, machine: Machine) -> None:
    """Erase the magic bytes where signatures were found, and zero both ends of the disk outside of table and partitions."""
    size = device_size(machine, step.disk)
    with machine.locked(step.disk):
        for offset in step.offsets:
            machine.change(["wipefs", "--force", "--quiet", "--offset", str(offset), step.disk])
        table = read_table(machine, step.disk, SECTOR)
        room = _table_room(table.sector or SECTOR, max(table.slots or 0, _LEAST_ENTRIES))
        machine.zero(step.disk, gaps(size, room, table.partitions), exclusively=False)
    machine.settle()


def gaps(size: int, table: int, partitions: Iterable[TablePartition]) -> tuple[Region, ...]:
    """Return what lies in the first and last MiB of a disk between a GPT of `table` bytes, its backup and the partitions.

    The protective MBR before the header counts to `table`; the backup is shorter by it, and taking it for as long spares a sector.
    """
    partitions = tuple(partitions)
    first = min((partition.start for partition in partitions), default=size)
    last = max((partition.start + partition.size for partition in partitions), default=0)
    head = Region(table, min(MIB, first) - table)
    start = max(size - MIB, last, table)
    tail = Region(start, size - table - start)
    return tuple(region for region in (head, tail) if region.size > 0)


def read_table(machine: Machine, disk: str, sector: int) -> Table:
    """Return the table that is on a disk; `sector` counts where sfdisk does not name the disk's own. Raises StepFailed."""
    outcome = machine.run(table_command(disk))
    if outcome is None or outcome.code:
        raise StepFailed(f"the partition table of {disk} cannot be read back: {outcome.stderr.strip() if outcome else 'no sfdisk'}")
    try:
        return parse_table(outcome.stdout, sector)
    except ValueError as error:
        raise StepFailed(f"the partition table of {disk} cannot be read back: {error}") from error


def device_size(machine: Machine, device: str) -> int:
    """Return the bytes of a block device as the kernel has them; raises StepFailed."""
    sectors = machine.read(f"{_sysfs(machine, device)}/size")
    if sectors is None:
        raise StepFailed(f"the kernel does not say how large {device} is")
    return int(sectors) * SECTOR


def _sysfs(machine: Machine, device: str) -> str:
    name = posixpath.basename(machine.resolve(device) or device)
    return f"/sys/class/block/{name}"


def _kernel_partitions(machine: Machine, disk: str) -> tuple[int, ...]:
    folder = _sysfs(machine, disk)
    found = (machine.read(f"{folder}/{name}/partition") for name in machine.names(folder))
    return tuple(sorted(int(number) for number in found if number))


def kept_headers(table: Table) -> list[str]:
    """Return what a changed table keeps of the present one; its last sector follows from the size of the disk, which may have grown."""
    known = {"first-lba": table.first_lba, "table-length": table.slots}
    return [f"{name}: {value}" for name, value in known.items() if value is not None]


def _table_room(sector: int, entries: int) -> int:
    return 2 * sector + -(-entries * _ENTRY_BYTES // sector) * sector


def _is_mapped(disk: str) -> bool:
    return disk.startswith("/dev/mapper/")


def _forget(machine: Machine, disk: str, numbers: Iterable[int]) -> None:
    """Have the kernel forget partitions; it refuses while one is in use, and nothing is written yet."""
    if _is_mapped(disk):
        for number in numbers:
            machine.change(["dmsetup", "remove", partition_node(disk, number)])
        return
    for number in numbers:
        _insist(machine, ["partx", "--delete", "--nr", str(number), disk])


def _insist(machine: Machine, command: Sequence[str]) -> None:
    """Run a command that fails while anybody has the device open, for some seconds; what holds it for good makes it fail in the end."""
    for _attempt in range(_ATTEMPTS - 1):
        try:
            machine.change(command)
            return
        except CommandFailed:
            machine.give_way()
    machine.change(command)


def _tell_kernel(machine: Machine, disk: str, numbers: Sequence[int]) -> None:
    """Tell the kernel of the table as it is now; what did not change may be in use.

    partx takes the number of partitions for the highest of their numbers unless it is told.
    """
    if _is_mapped(disk):
        machine.change(["kpartx", "-u", "-p", "-part", disk])
    elif numbers:
        machine.change(["partx", "--update", "--nr", f"1:{max(numbers)}", disk])


def _check(step: WritePartitionTable, machine: Machine) -> None:
    """Compare the table that is on the disk, and the rooms that the kernel has, with what was wanted."""
    _compare(read_table(machine, step.disk, step.sector), step.disk, step.uuid, step.entries)
    for entry in step.entries:
        size = device_size(machine, step.node(entry.number))
        if size != entry.size:
            raise StepFailed(f"the kernel has {step.node(entry.number)} with {size} bytes instead of {entry.size}")


def _compare(table: Table, disk: str, uuid: str, entries: Iterable[_Entry]) -> None:
    found = {partition.number: _comparable(partition) for partition in table.partitions}
    wanted = {entry.number: _comparable(entry) for entry in entries}
    if (table.type, table.uuid, found) != ("gpt", uuid.lower(), wanted):
        raise StepFailed(f"the table read back from {disk} differs from what was written: {found} instead of {wanted}")


def _comparable(partition: _Entry) -> tuple[t.Any, ...]:
    return (
        partition.start,
        partition.size,
        (partition.type or "").lower(),
        (partition.uuid or "").lower(),
        partition.name or "",
    )
