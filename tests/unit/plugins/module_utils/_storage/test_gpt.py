# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import struct
import uuid
import zlib

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage import gpt


@pytest.mark.parametrize(
    ("disk", "node"),
    [
        ("/dev/sda", "/dev/sda3"),
        ("/dev/nvme0n1", "/dev/nvme0n1p3"),
        ("/dev/mapper/mpatha", "/dev/mapper/mpatha-part3"),
        ("/dev/disk/by-id/wwn-0x50", "/dev/disk/by-id/wwn-0x50-part3"),
    ],
)
def test_nodes_of_partitions(disk, node):
    assert gpt.partition_node(disk, 3) == node


def test_a_type_has_one_flag_and_back():
    assert {gpt.TYPES_BY_FLAG[flag]: flag for flag in gpt.TYPES_BY_FLAG} == gpt.FLAGS_BY_TYPE


GUID = "0c1f6a2e-0d4c-5b1e-8c0e-5d4b6e1b7f11"


def header(entries=bytes(128 * 128), number=128, sector=512):
    """A header as UEFI 2.10 has it in table 5-5, field by field."""
    fields = [b"EFI PART", struct.pack("<I", 0x10000), struct.pack("<I", 92), bytes(4), bytes(4)]
    fields += [struct.pack("<Q", value) for value in (1, 204799, 34, 204766)]
    fields += [uuid.UUID(GUID).bytes_le, struct.pack("<Q", 2)]
    fields += [struct.pack("<I", value) for value in (number, 128, zlib.crc32(entries))]
    text = bytearray(b"".join(fields))
    text[16:20] = struct.pack("<I", zlib.crc32(bytes(text)))
    return bytes(text).ljust(sector, b"\0")


def test_the_header_of_an_empty_table_names_its_guid():
    assert gpt.empty_table(header()) == GUID
    assert gpt.empty_table(header(sector=4096)) == GUID


@pytest.mark.parametrize(
    "sector",
    [
        b"",
        bytes(512),
        b"EFI PART" + bytes(504),
        header(entries=b"x" + bytes(128 * 128 - 1)),
        header()[:16] + b"torn" + header()[20:],
        header()[:60] + b"torn" + header()[64:],
        header(number=2**31),
    ],
)
def test_no_other_sector_does(sector):
    assert gpt.empty_table(sector) is None


def test_names_of_partitions_have_room_in_the_table_and_can_be_written() -> None:
    assert gpt.why_no_name("") is None
    assert gpt.why_no_name("ä" * 36) is None
    assert "too long" in (gpt.why_no_name("\N{FLOPPY DISK}" * 19) or "")
    assert "quotation marks" in (gpt.why_no_name('a"b') or "")
    assert "cannot be printed" in (gpt.why_no_name("a\nb") or "")
