# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A GPT byte by byte: UEFI specification, 5.3. For what sfdisk's scripts have no words for, which sfdisk drops as it writes a table.

That is the boot flag in the protective MBR (parted's `pmbr_boot`, without which some firmwares do not start from the disk) and the
attribute bits 3 to 47 of partitions.
"""

from __future__ import annotations

import struct
import typing as t
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from .units import MIB

Piece = tuple[int, bytes]
"""Where bytes are written, and the bytes."""

_HEADER = struct.Struct("<8s4sII4xQQQQ16sQIII")
"""Signature, revision, size, checksum; this header, the other, first and last usable sector; GUID; place, number, size, sum of entries."""
_ENTRY = struct.Struct("<16s16sQQQ72s")
"""Type, GUID, first and last sector, attributes, name."""
_SIGNATURE = b"EFI PART"
_LEAST_ENTRY = 128
_TYPE_BYTES = 16
"""A type comes first in an entry, and then a GUID of as many bytes."""
_CHECKSUM = slice(16, 20)
_MBR = 512
_MBR_SIGNATURE = b"\x55\xaa"
_RECORDS = (446, 462, 478, 494)
_RECORD_TYPE, _RECORD_SIZE = 4, slice(12, 16)
_PROTECTIVE = 0xEE
_ACTIVE = 0x80
_LEGACY_BOOT_BIT = 2
_WITHOUT_WORDS = ((1 << 48) - 1) & ~0b111
"""Bits 3 to 47: sfdisk has words for the first three, and numbers for those of the type."""
_LARGEST_LBA32 = 0xFFFFFFFF
_LAST_OFFSET = (1 << 63) - 1 - MIB
"""Behind it nothing can be read: the kernel's offsets are signed."""


class WrongTable(ValueError):
    """A partition has no place in the table."""


class Entry(t.Protocol):
    """What an entry of a table has, in bytes."""

    @property
    def number(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def type(self) -> t.Optional[str]: ...
    @property
    def uuid(self) -> t.Optional[str]: ...
    @property
    def name(self) -> t.Optional[str]: ...
    @property
    def attrs(self) -> t.Optional[str]: ...


@dataclass(frozen=True)
class RawTable:
    """A table whose first copy is whole: `mbr` is the first sector, `entries` are all entries, used or not."""

    sector: int
    mbr: bytes
    header: bytes
    entries: tuple[bytes, ...]

    @property
    def has_more_than_scripts_say(self) -> bool:
        """Whether there is something that sfdisk would drop."""
        active = any(self.mbr[at] & _ACTIVE for at in _RECORDS if self.mbr[at + _RECORD_TYPE])
        return active or any(_ENTRY.unpack_from(entry)[4] & _WITHOUT_WORDS for entry in self.entries)


def read_raw_table(read: Callable[[int, int], bytes], sector: int) -> t.Optional[RawTable]:
    """Return the first copy of a table by its bytes (`read` takes an offset and a size); None where it is not whole."""
    head = read(0, 2 * sector)
    mbr, header = head[:_MBR], head[sector:]
    if len(head) < 2 * sector or mbr[-2:] != _MBR_SIGNATURE or not header.startswith(_SIGNATURE):
        return None
    fields = _HEADER.unpack_from(header)
    size, place, count, entry_size, of_entries = fields[2], fields[9], fields[10], fields[11], fields[12]
    if not _HEADER.size <= size <= sector or entry_size < _LEAST_ENTRY or count * entry_size > MIB or place * sector > _LAST_OFFSET:
        return None
    header = header[:size]
    entries = read(place * sector, count * entry_size)
    if zlib.crc32(_with_checksum(header, 0)) != fields[3] or zlib.crc32(entries) != of_entries or len(entries) < count * entry_size:
        return None
    return RawTable(sector, mbr, header, tuple(entries[at : at + entry_size] for at in range(0, len(entries), entry_size)))


def written(table: RawTable, entries: Iterable[Entry], guid: str, size: int) -> tuple[Piece, ...]:
    """Return what a table with these entries on a disk of `size` bytes is written as, in the order in which it has to be.

    Of a partition that stays where it is all stays that `entries` do not say. First comes the copy at the end of the disk: a cut leaves
    one of both whole. Raises WrongTable.
    """
    made = tuple(_made(table, {entry.number: entry for entry in entries}))
    return _pieces(replace(table, entries=made), uuid.UUID(guid).bytes_le, size)


def identified(table: RawTable, uuids: Mapping[int, str]) -> RawTable:
    """Return a table with other GUIDs of these partitions, and all else as it is; raises WrongTable for one that it does not have."""
    absent = [number for number in uuids if not 1 <= number <= len(table.entries) or not any(table.entries[number - 1][:_TYPE_BYTES])]
    if absent:
        raise WrongTable(f"the table has no partition {absent[0]}")
    entries = list(table.entries)
    for number, guid in uuids.items():
        there = entries[number - 1]
        entries[number - 1] = there[:_TYPE_BYTES] + uuid.UUID(guid).bytes_le + there[2 * _TYPE_BYTES :]
    return replace(table, entries=tuple(entries))


def pieces(table: RawTable, size: int) -> tuple[Piece, ...]:
    """Return what a table is written as on a disk of `size` bytes; see `written`."""
    return _pieces(table, _HEADER.unpack_from(table.header)[8], size)


def _pieces(table: RawTable, guid: bytes, size: int) -> tuple[Piece, ...]:
    last = size // table.sector - 1
    content = b"".join(table.entries)
    room = -(-len(content) // table.sector)
    fields = list(_HEADER.unpack_from(table.header))
    fields[7], fields[8], fields[12] = last - room - 1, guid, zlib.crc32(content)
    first_entries = fields[9]
    backup = _header(table, fields, (last, 1), last - room)
    first = _header(table, fields, (1, last), first_entries)
    places = ((last - room, content), (last, backup), (first_entries, content), (1, first))
    return (*((place * table.sector, piece) for place, piece in places), *_protective(table.mbr, last))


def _made(table: RawTable, entries: Mapping[int, Entry]) -> Iterator[bytes]:
    beyond = [number for number in entries if not 1 <= number <= len(table.entries)]
    if beyond:
        raise WrongTable(f"the table has room for {len(table.entries)} partitions, and none for number {beyond[0]}")
    for number, there in enumerate(table.entries, 1):
        yield _entry(table.sector, there, entries[number]) if number in entries else bytes(len(there))


def _entry(sector: int, there: bytes, wanted: Entry) -> bytes:
    """Return the bytes of an entry; bits and what lies behind the name stay where a partition does."""
    first, last = wanted.start // sector, (wanted.start + wanted.size) // sector - 1
    stays = _ENTRY.unpack_from(there)[2] == first
    bits = _ENTRY.unpack_from(there)[4] if stays else 0
    bits |= (1 << _LEGACY_BOOT_BIT) if "LegacyBIOSBootable" in (wanted.attrs or "") else 0
    name = (wanted.name or "").encode("utf-16-le", "surrogatepass")
    head = _ENTRY.pack(uuid.UUID(wanted.type).bytes_le, uuid.UUID(wanted.uuid).bytes_le, first, last, bits, name)
    return head + (there[_ENTRY.size :] if stays else bytes(len(there) - _ENTRY.size))


def _header(table: RawTable, fields: list[t.Any], places: tuple[int, int], entries: int) -> bytes:
    own = [*fields[:4], *places, *fields[6:9], entries, *fields[10:]]
    header = _HEADER.pack(*own) + table.header[_HEADER.size :]
    return _with_checksum(header, zlib.crc32(_with_checksum(header, 0)))


def _with_checksum(header: bytes, checksum: int) -> bytes:
    return header[: _CHECKSUM.start] + struct.pack("<I", checksum) + header[_CHECKSUM.stop :]


def _protective(mbr: bytes, last: int) -> Iterator[Piece]:
    """Give the size of the disk in the protective MBR, where that is another one now."""
    for at in _RECORDS:
        size = struct.pack("<I", min(last, _LARGEST_LBA32))
        place = at + _RECORD_SIZE.start
        whole = mbr[at + _RECORD_TYPE] == _PROTECTIVE and mbr[at + 8 : at + 12] == struct.pack("<I", 1)
        if whole and mbr[place : at + _RECORD_SIZE.stop] not in (size, struct.pack("<I", _LARGEST_LBA32)) and _is_alone(mbr):
            yield place, size


def _is_alone(mbr: bytes) -> bool:
    """Return whether there is no other record: of a hybrid table others say how large it is."""
    return sum(mbr[at + _RECORD_TYPE] != 0 for at in _RECORDS) == 1
