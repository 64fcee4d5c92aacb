# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Partition tables: whole tables in one sfdisk write, and every partition announced to the kernel.

Old signatures are zeroed through the disk before the kernel, and with it udev, learns of a partition.
"""

from __future__ import annotations

import posixpath
import typing as t
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from .._facts.present import Present
from .._facts.signatures import SECTOR, Table, TablePartition, parse_table, table_command
from .._storage.gpt import partition_node
from .._storage.samples import SAMPLE, between_ends, places_of_copies
from .._storage.units import MIB
from .machine import CommandFailed, Machine, Region, StepFailed
from .needs import Tool
from .picture import Picture, Piece, changed, without_dependents
from .reach import Reach, rooms, whole_devices
from .step import Step, Writes

if t.TYPE_CHECKING:
    from .._storage.gpt_bytes import RawTable

SFDISK = Tool("sfdisk", "fdisk", "util-linux")
PARTX = Tool("partx", "util-linux", "util-linux")
WIPEFS = Tool("wipefs", "util-linux", "util-linux")
KPARTX = Tool("kpartx", "kpartx", "kpartx")
DMSETUP = Tool("dmsetup", "dmsetup", "device-mapper")

_BOOT_CODE = 440
"""Bytes of the protective MBR before what tables are in, which sfdisk keeps as they are."""

_LEAST_ENTRIES = 128
_ENTRY_BYTES = 128
_ATTEMPTS = 20

_QUIETLY = ("--quiet", "--no-reread", "--no-tell-kernel")
"""Without these, sfdisk has the kernel reread the whole table, which fails while a partition is in use: partx updates each partition."""


@dataclass(frozen=True)
class TableEntry:
    """A partition of a GPT. `attrs` is sfdisk's text, as read, or None.

    `clear`: the partition is new, its previous contents are garbage: its first and last MiB, and samples in between, are zeroed *through
    the disk*, before the kernel (and udev, which would put old arrays and groups together again) learns of the partition.
    """

    number: int
    start: int
    size: int
    type: str
    uuid: str
    name: str = ""
    attrs: t.Optional[str] = None
    clear: bool = False


_Entry = t.Union[TablePartition, TableEntry]


@dataclass(frozen=True)
class WritePartitionTable(Step):
    """Write the whole GPT of a disk in one sfdisk call; `entries` are all its partitions, in the order of their numbers.

    With `fresh` nothing on the disk counts: a new table with `uuid`, `first-lba` at 1 MiB, all signatures of the whole disk wiped, and
    zeros everywhere else where one can be outside of partitions (the rest of the first MiB, and of the last before the backup).
    Otherwise the present table is changed: first-lba and table-length stay; the backup goes to the end of the disk.
    The kernel learns by `partx --update` and `--delete` (other partitions may be in use); `node(number)` names what has to appear.
    `summary` lists the differences: one line each, for the diff.
    """

    disk: str
    disk_id: str
    uuid: str
    sector: int
    fresh: bool
    entries: tuple[TableEntry, ...]
    removed: tuple[int, ...] = ()
    summary: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        """See Described."""
        what = "write a new partition table" if self.fresh else "change the partition table"
        return f"{what} on {self.disk_id}: {'; '.join(self.summary) or 'no partitions'}"

    def node(self, number: int) -> str:
        """Return the node of a partition."""
        return partition_node(self.disk, number)

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return (SFDISK, WIPEFS, *((KPARTX, DMSETUP) if _is_mapped(self.disk) else (PARTX,)))

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        if self.fresh:
            yield from whole_devices(present, [self.disk])
            return
        yield from _table_on(present, self.disk, max((entry.number for entry in self.entries), default=0))
        yield from rooms(present, self.disk, ((entry.start, entry.start + entry.size) for entry in self.entries if entry.clear))
        yield from rooms(present, self.disk, self._gained(present))
        yield from whole_devices(present, (self.node(number) for number in self.removed))

    def _gained(self, present: Present) -> Iterator[tuple[int, int]]:
        """Give from where to where partitions grow."""
        disk = present.tree.by_node(self.disk)
        there = [child.partition for child in present.tree.children(disk.name)] if disk is not None else []
        sizes = {(known.number, known.start): known.size for known in there if known is not None}
        for entry in self.entries:
            before = sizes.get((entry.number, entry.start), entry.size)
            if before < entry.size and not entry.clear:
                yield entry.start + before, entry.start + entry.size

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.disk,))

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        before = picture[self.disk].heading
        old = {key: piece for key, piece in picture.items() if piece.heading == before and key != self.disk}
        kept = {self.node(entry.number): old.get(self.node(entry.number)) for entry in self.entries if not entry.clear}
        gone = [self.disk] if self.fresh else [key for key in old if key not in kept]
        left = {key: piece for key, piece in without_dependents(picture, gone).items() if key not in old}
        new = {}
        for entry in self.entries:
            node, title = self.node(entry.number), partition_title(entry.number, entry.name)
            there = kept.get(node)
            holds = there.holds if there is not None else ""
            new[node] = Piece(disk_heading(self.disk_id, table=True), (entry.number, ""), title, entry.size, (self.disk,), holds)
        return {**changed(left, self.disk, heading=disk_heading(self.disk_id, table=True), **({"holds": ""} if self.fresh else {})), **new}

    def run(self, machine: Machine) -> None:
        """Write the table, update the kernel's, and compare both with the entries."""
        size = device_size(machine, self.disk)
        old = _kernel_partitions(machine, self.disk)
        gone = old if self.fresh else tuple(number for number in self.removed if number in old)
        with machine.locked(self.disk):
            table = None if self.fresh else read_table(machine, self.disk, self.sector)
            headers = kept_headers(table) if table is not None else [f"first-lba: {MIB // self.sector}"]
            left = _rooms_in_kernel(machine, self.disk, old) if table is None else _rooms_of(table, self.removed)
            _forget(machine, self.disk, gone)
            outside = self._take_over(headers, machine, size) if self.fresh else ()
            new = [region for entry in self.entries if entry.clear for region in _room(entry)]
            new += [region for region in left if not any(_overlap(region, entry) for entry in self.entries)]
            # Every time that a disk is closed after writing udev reads the whole disk again.
            machine.zero(self.disk, (*outside, *new), exclusively=self.fresh)
            _write_entries(self.disk, self.uuid, self.sector, headers, self.entries, machine)
            _update_kernel(machine, self.disk, [entry.number for entry in self.entries])
        machine.settle()
        machine.wait_for(self.node(entry.number) for entry in self.entries)
        _compare(read_table(machine, self.disk, self.sector), self.disk, self.uuid, self.entries)
        for entry in self.entries:
            size = device_size(machine, self.node(entry.number))
            if size != entry.size:
                raise StepFailed(f"the kernel has {self.node(entry.number)} with {size} bytes instead of {entry.size}")

    def _take_over(self, headers: Sequence[str], machine: Machine, size: int) -> tuple[Region, ...]:
        """Make a disk ours by an empty table over its contents, and return the other regions to clear.

        The table is written first: a run that is cut off behind it needs no permission any more, and shows none of the old contents,
        for there are no partitions. All that is wiped before it would be lost of a disk that still seems to be somebody else's.
        """
        _insist_on_unused(machine, self.disk)
        _write(self.disk, table_script(self.uuid, self.sector, headers, ()), machine)
        machine.change(["wipefs", "--all", "--quiet", "--types", "nogpt,noPMBR", self.disk])
        beside_head = (Region(0, _BOOT_CODE), *([Region(SECTOR, self.sector - SECTOR)] if self.sector > SECTOR else []))
        return (*beside_head, *gaps(size, _table_room(self.sector, _LEAST_ENTRIES), ()))


@dataclass(frozen=True)
class FinishPartitions(Step):
    """Give partitions on which all is complete their final PARTUUIDs, in one write; their content is the user's from now on.

    `uuids` are by the order of `numbers`, `sector` is the disk's logical one. The partitions are in use as a rule.
    """

    disk: str
    sector: int
    numbers: tuple[int, ...]
    uuids: tuple[str, ...]

    words: t.ClassVar[str] = "mark partition {numbers} of {disk} as finished (PARTUUID {uuids})"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return (SFDISK,)

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step. A disk that gets a new table in the same plan is judged for that, as a whole."""
        return _table_on(present, self.disk, max(self.numbers))

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.disk,))

    def run(self, machine: Machine) -> None:
        """Give the partitions their final PARTUUIDs, in place and all in one write, and read the table back: nothing else is different.

        After the write udev has the kernel reread the table of an unused disk: the nodes of its partitions are gone for a moment.
        There are many marks: sfdisk, which is for tables of which the first copy is not whole, would be three processes for each.
        """
        final = dict(zip(self.numbers, self.uuids))
        with machine.locked(self.disk):
            there = _raw_table(self.disk, self.sector, machine)
            if there is not None:
                self._finish_in_place(there, final, machine)
                return
            table = read_table(machine, self.disk, self.sector)
            wanted = tuple(replace(entry, uuid=final.get(entry.number, entry.uuid)) for entry in table.partitions)
            if table.type != "gpt" or not final.keys() <= {entry.number for entry in wanted}:
                raise StepFailed(self._lacking())
            _write(self.disk, table_script(str(table.uuid), self.sector, kept_headers(table), wanted), machine)
        _compare(read_table(machine, self.disk, self.sector), self.disk, str(table.uuid), wanted)

    def _finish_in_place(self, there: RawTable, final: t.Mapping[int, str], machine: Machine) -> None:
        # Hosts get sources, and compile in each run what they import: this only where it is used.
        from .._storage.gpt_bytes import WrongTable, identified, pieces

        try:
            wanted = identified(there, final)
        except WrongTable as error:
            raise StepFailed(f"{self._lacking()}: {error}") from error
        machine.write(self.disk, pieces(wanted, device_size(machine, self.disk)))
        found = _raw_table(self.disk, self.sector, machine)
        if found is None or found.entries != wanted.entries:
            raise StepFailed(f"the table read back from {self.disk} differs from what was written")

    def _lacking(self) -> str:
        return f"{self.disk} has no GPT with the partitions {', '.join(map(str, self.numbers))} to be marked as finished"


@dataclass(frozen=True)
class ClearGaps(Step):
    """Zero the signatures of a whole disk that has its table and partitions already, outside of partitions, table and backup.

    `offsets` are where signatures were found, in bytes; the ends (first and last MiB) are cleared whole.
    """

    disk: str
    disk_id: str
    offsets: tuple[int, ...] = ()

    words: t.ClassVar[str] = "clear old signatures outside of the partitions of {disk_id}"

    def tools(self) -> tuple[Tool, ...]:
        """See Step."""
        return SFDISK, WIPEFS

    def reaches(self, present: Present) -> Iterator[Reach]:
        """See Step."""
        return rooms(present, self.disk, ((offset, offset + 1) for offset in self.offsets))

    def writes(self) -> Writes:
        """See Step."""
        return Writes((self.disk,))

    def after(self, picture: Picture) -> Picture:
        """See Step."""
        return changed(picture, self.disk, holds="")

    def run(self, machine: Machine) -> None:
        """Erase the magic bytes of the signatures, and zero both ends of the disk outside of table and partitions."""
        size = device_size(machine, self.disk)
        with machine.locked(self.disk):
            for offset in self.offsets:
                machine.change(["wipefs", "--force", "--quiet", "--offset", str(offset), self.disk])
            table = read_table(machine, self.disk, SECTOR)
            room = _table_room(table.sector or SECTOR, max(table.slots or 0, _LEAST_ENTRIES))
            machine.zero(self.disk, gaps(size, room, table.partitions), exclusively=False)
        machine.settle()


def disk_heading(disk: str, table: bool) -> str:
    """Return the heading of a disk in pictures."""
    return f"disk {disk}" if table else f"disk {disk} without a partition table"


def partition_title(number: int, name: str) -> str:
    """Return the title of a partition in pictures."""
    return f"{number}: {name}" if name else f"{number}"


def table_regions(size: int, sector: int, highest: int = 0) -> tuple[tuple[int, int], ...]:
    """Return where a write of a disk's GPT with partitions up to a number changes bytes, from and to; boot code in front stays."""
    room = _table_room(sector, max(highest, _LEAST_ENTRIES))
    return (_BOOT_CODE, room), (size // sector * sector - (room - sector), size)


def _table_on(present: Present, disk: str, highest: int) -> Iterator[Reach]:
    device = present.tree.by_node(disk)
    return rooms(present, disk, table_regions(device.size, device.logical_block, highest) if device is not None else ())


def _insist_on_unused(machine: Machine, disk: str) -> None:
    """Raise StepFailed while anything uses the disk: sfdisk would not ask. Opening for writing finds users that reading does not show."""
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
    from .._storage.gpt_bytes import read_raw_table

    try:
        return read_raw_table(lambda start, size: machine.read_bytes(disk, start, size), sector)
    except OSError as error:
        raise StepFailed(f"the partition table of {disk} cannot be read: {error}") from error


def _write_in_place(disk: str, there: RawTable, uuid: str, entries: Iterable[_Entry], machine: Machine) -> None:
    from .._storage.gpt_bytes import WrongTable, written

    try:
        machine.write(disk, written(there, entries, uuid, device_size(machine, disk)))
    except WrongTable as error:
        raise StepFailed(f"the partition table of {disk} cannot be changed: {error}") from error


def table_script(uuid: str, sector: int, headers: Sequence[str], entries: Iterable[_Entry]) -> str:
    """Return sfdisk's script for the whole table, with every identity."""
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


def _room(entry: TableEntry) -> Iterator[Region]:
    """Give what is zeroed of the room of a new partition. Where there are zeros no more, somebody has written something since."""
    yield from ends(entry.size, entry.start)
    yield from (Region(entry.start + place, SAMPLE) for place in between_ends(entry.size))


def _rooms_of(table: Table, numbers: Iterable[int]) -> list[Region]:
    """Return what is zeroed of partitions that go: what is found in their room from now on nobody has given away."""
    return [region for part in table.partitions if part.number in numbers for region in _forgotten(part.start, part.size)]


def _forgotten(start: int, size: int) -> Iterator[Region]:
    """Give both ends of a room, and where ext and Btrfs have copies of their superblocks."""
    yield from ends(size, start)
    yield from (Region(start + place, SAMPLE) for place in places_of_copies() if MIB <= place <= size - MIB - SAMPLE)


def _rooms_in_kernel(machine: Machine, disk: str, numbers: Iterable[int]) -> list[Region]:
    """Return the same of a whole disk, and of partitions of a table that gives way to a new one, outside of what that clears itself."""
    folder, size = _sysfs(machine, disk), device_size(machine, disk)
    found = [*_forgotten(0, size)]
    for node in (posixpath.basename(partition_node(disk, number)) for number in numbers):
        start, length = (machine.read(f"{folder}/{node}/{name}") for name in ("start", "size"))
        if start and length:
            found += _forgotten(int(start) * SECTOR, int(length) * SECTOR)
    return [region for region in found if region.start >= MIB and region.start + region.size <= size - MIB]


def _overlap(region: Region, entry: TableEntry) -> bool:
    return region.start < entry.start + entry.size and entry.start < region.start + region.size


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


def _update_kernel(machine: Machine, disk: str, numbers: Sequence[int]) -> None:
    """Update the kernel's partitions from the new table; unchanged partitions may be in use.

    partx takes the number of partitions for the highest of their numbers unless a range is given.
    """
    if _is_mapped(disk):
        machine.change(["kpartx", "-u", "-p", "-part", disk])
    elif numbers:
        machine.change(["partx", "--update", "--nr", f"1:{max(numbers)}", disk])


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
