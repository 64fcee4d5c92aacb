# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables are written bit by bit where sfdisk would drop something, and only where the first copy is whole."""

from __future__ import annotations

import dataclasses
import struct
import uuid
import zlib

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.signatures import TablePartition
from ansible_collections.bareon.allocator.plugins.module_utils._storage.gpt import LINUX
from ansible_collections.bareon.allocator.plugins.module_utils._storage.gpt_bytes import (
    WrongTable,
    identified,
    pieces,
    read_raw_table,
    written,
)

SIZE, SECTOR, GUID = 10 * 1024**2, 512, "11111111-2222-4333-8444-555555555555"
ONE = TablePartition(1, 34 * 512, 512, LINUX, "one", "11111111-2222-4333-8444-000000000001")
TWO = TablePartition(2, 2048 * 512, 1024**2, LINUX, "two", "11111111-2222-4333-8444-000000000002")


def entry(part, bits=0):
    first, last = part.start // SECTOR, (part.start + part.size) // SECTOR - 1
    name = part.name.encode("utf-16-le")
    return struct.pack("<16s16sQQQ72s", uuid.UUID(part.type).bytes_le, uuid.UUID(part.uuid).bytes_le, first, last, bits, name)


def disk(*parts, bits=0, flag=0):
    """The bytes of a disk with a table of 128 entries, as the specification has it."""
    last = SIZE // SECTOR - 1
    content = bytearray(SIZE)
    entries = b"".join(entry(part, bits) for part in parts).ljust(128 * 128, b"\0")
    for own, other, place in ((1, last, 2), (last, 1, last - 32)):
        fields = (
            b"EFI PART",
            b"\0\0\1\0",
            92,
            0,
            own,
            other,
            34,
            last - 33,
            uuid.UUID(GUID).bytes_le,
            place,
            128,
            128,
            zlib.crc32(entries),
        )
        header = struct.pack("<8s4sII4xQQQQ16sQIII", *fields)
        header = header[:16] + struct.pack("<I", zlib.crc32(header)) + header[20:]
        content[own * SECTOR : own * SECTOR + 92] = header
        content[place * SECTOR : place * SECTOR + len(entries)] = entries
    content[446:462] = struct.pack("<B3sB3sII", flag, b"\0\2\0", 0xEE, b"\xff\xff\xff", 1, last)
    content[510:512] = b"\x55\xaa"
    return content


def raw(content):
    return read_raw_table(lambda start, size: bytes(content[start : start + size]), SECTOR)


def after(content, pieces):
    changed = bytearray(content)
    for start, piece in pieces:
        changed[start : start + len(piece)] = piece
    return changed


@pytest.mark.parametrize(("bits", "flag"), [(0, 0), (1 << 3, 0), (1 << 47, 0), (0, 0x80), ((1 << 64) - 1, 0x80)])
def test_the_same_entries_are_written_as_they_are(bits, flag):
    content = disk(ONE, TWO, bits=bits, flag=flag)
    table = raw(content)
    assert table.has_more_than_scripts_say == bool(flag or bits)
    assert after(content, written(table, [ONE, TWO], GUID, SIZE)) == content


@pytest.mark.parametrize("bits", [0b111, 1 << 48, 1 << 63])
def test_what_sfdisk_has_words_for_is_left_to_it(bits):
    assert not raw(disk(ONE, bits=bits)).has_more_than_scripts_say


def test_partitions_are_added_renamed_and_removed():
    content = disk(ONE, TWO, bits=(1 << 10) | (1 << 62))
    grown = dataclasses.replace(TWO, size=2 * 1024**2, uuid=GUID, attrs="LegacyBIOSBootable")
    new = TablePartition(5, 4 * 1024**2, 1024**2, LINUX, "new", "11111111-2222-4333-8444-000000000005")
    table = raw(after(content, written(raw(content), [grown, new], GUID, SIZE)))
    assert [number for number, one in enumerate(table.entries, 1) if one[:16] != bytes(16)] == [2, 5]
    assert table.entries[1] == entry(grown, (1 << 10) | (1 << 62) | (1 << 2))
    assert table.entries[4] == entry(new)
    # Another partition of the same number has no bits of the one before.
    moved = dataclasses.replace(TWO, start=3 * 1024**2)
    assert raw(after(content, written(raw(content), [moved], GUID, SIZE))).entries[1] == entry(moved)


def test_the_backup_comes_first_and_one_copy_is_whole_after_each_piece():
    content = disk(ONE, bits=1 << 10)
    pieces = written(raw(content), [ONE, TWO], GUID, SIZE)
    assert [start for start, _piece in pieces] == [SIZE - 33 * SECTOR, SIZE - SECTOR, 2 * SECTOR, SECTOR]
    for count in range(len(pieces) + 1):
        state = after(content, pieces[:count])
        backup = state[SIZE - SECTOR :] + state[SIZE - 33 * SECTOR : SIZE - SECTOR]
        sums = [struct.unpack_from("<I", state, SECTOR + 88)[0], struct.unpack_from("<I", backup, 88)[0]]
        whole = [zlib.crc32(bytes(state[1024 : 1024 + 16384])) == sums[0], zlib.crc32(bytes(backup[512:])) == sums[1]]
        assert any(whole), count


def test_a_disk_that_has_grown_has_its_backup_at_its_new_end():
    content = disk(ONE, flag=0x80) + bytes(1024**2)
    changed = after(content, written(raw(content), [ONE, TWO], GUID, len(content)))
    last = len(content) // SECTOR - 1
    assert struct.unpack_from("<QQQQ", changed, SECTOR + 24) == (1, last, 34, last - 33)
    assert struct.unpack_from("<QQQQ", changed, last * SECTOR + 24) == (last, 1, 34, last - 33)
    assert struct.unpack_from("<I", changed, 446 + 12) == (last,)
    assert changed[446] == 0x80


@pytest.mark.parametrize("at", [SECTOR, SECTOR + 30, 1024 + 40, 510])
def test_a_torn_table_is_none(at):
    content = disk(ONE, bits=1 << 10)
    content[at] ^= 0xFF
    assert raw(content) is None


def test_a_number_without_room_is_refused():
    with pytest.raises(WrongTable, match="no place|128 partitions"):
        written(raw(disk(ONE, bits=1 << 10)), [dataclasses.replace(ONE, number=129)], GUID, SIZE)


def test_an_identity_changes_alone():
    content = disk(ONE, TWO, bits=1 << 5, flag=0x80)
    new = "11111111-2222-4333-8444-00000000000a"
    changed = after(content, pieces(identified(raw(content), {2: new}), SIZE))
    expected = disk(ONE, dataclasses.replace(TWO, uuid=new), bits=1 << 5, flag=0x80)
    assert changed == expected


@pytest.mark.parametrize("number", [0, 3, 129])
def test_a_partition_that_is_not_there_gets_no_identity(number):
    with pytest.raises(WrongTable, match=f"no partition {number}"):
        identified(raw(disk(ONE, TWO)), {number: GUID})
