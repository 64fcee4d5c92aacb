# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The traces that use leaves on devices, in bytes as the kernels' headers have them; tests/loop mounts real file systems."""

from __future__ import annotations

import struct

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._facts.untouched import (
    BEFORE,
    ZEROS,
    Left,
    left_by_tool,
    trace_in_closed,
    trace_in_opened,
    trace_of_use,
)

MIB = 1024**2
SIZE = 8 * MIB
MEMBER = left_by_tool("linux_raid_member")


class Content:
    """A host with one device. It can do nothing but read it."""

    def __init__(self, *parts: tuple[int, bytes], error: OSError | None = None) -> None:
        self.bytes, self.error = bytearray(SIZE), error
        for start, part in parts:
            self.bytes[start : start + len(part)] = part

    def read_bytes(self, _path: str, start: int, size: int) -> bytes:
        if self.error is not None:
            raise self.error
        return bytes(self.bytes[start : start + size])

    def run(self, _command: list[str]) -> None:
        """No tool is there."""


def trace(content: Content, kind: str | None, left: Left = MEMBER, size: int = SIZE) -> str | None:
    return trace_of_use(content, "/dev/sda1", size, kind, left)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["ext2", "ext3", "ext4"])
@pytest.mark.parametrize(("mounted", "count", "used"), [(0, 0, False), (1795650355, 1, True), (1795650355, 0, True)])
def test_ext_knows_when_it_was_mounted_last(kind, mounted, count, used):
    superblock = struct.pack("<44xI4xH", mounted, count)
    assert (trace(Content((1024, superblock)), kind) == "it was mounted") is used


@pytest.mark.parametrize("used", [False, True])
def test_xfs_has_one_record_in_its_log_until_it_is_mounted(used):
    group, block, log = 512, 4096, 3
    bits = 9
    superblock = struct.pack(">4sI40xQ28xI8xI24xB", b"XFSB", block, (1 << bits) + log, group, 64, bits)
    begin = (group + log) * block
    record = struct.pack(">I8xI", 0xFEEDBABE, 512).ljust(1024, b"\1")
    parts = [(0, superblock), (begin, record), *([(begin + 1024, b"next")] if used else [])]
    assert (trace(Content(*parts), "xfs") == "it was mounted") is used


@pytest.mark.parametrize("generation", [0, 7])
def test_btrfs_keeps_a_tree_of_uuids_from_the_first_mount_on(generation):
    content = Content((65536 + 0x233, struct.pack("<Q", generation)))
    assert (trace(content, "btrfs") == "it was mounted") is bool(generation)


@pytest.mark.parametrize("version", [0, 2])
def test_f2fs_writes_a_second_checkpoint_when_it_was_mounted(version):
    superblock = bytearray(128)
    for offset, value in ((0, 0xF2F52010), (16, 12), (20, 9), (76, 2)):
        struct.pack_into("<I", superblock, offset, value)
    content = Content((1024, bytes(superblock)), ((2 + 512) * 4096, struct.pack("<Q", version)))
    assert (trace(content, "f2fs") == "it was mounted") is bool(version)


@pytest.mark.parametrize(
    ("entries", "used"), [([], False), ([(b"EFI        ", 0x08)], False), ([(b"EFI        ", 0x08), (b"BOOT       ", 0x10)], True)]
)
@pytest.mark.parametrize("bits", [16, 32])
def test_a_fat_without_files_is_unused(bits, entries, used):
    head = struct.pack("<11xHBHBHHBHHHII", 512, 1, 32, 2, 512 if bits == 16 else 0, 0, 0xF8, 100 if bits == 16 else 0, 32, 8, 0, 70000)
    sectors = head + (struct.pack("<IHHI", 100, 0, 0, 2) if bits == 32 else b"\x80\0\x29volume")
    root = b"".join(struct.pack("<11sB20x", name, kind) for name, kind in entries)
    content = Content((0, sectors), ((32 + 2 * 100) * 512, root))
    assert (trace(content, "vfat") == "there are files in it") is used


@pytest.mark.parametrize(
    ("written", "used"),
    [
        ([], False),
        ([(0, 0), (4, 1795650355), (5, 1795650356), (9, 1795650370)], False),
        ([(4, 1795650355), (40, 1795650535)], True),
        ([(900, 1795650355), (901, 1795650355)], True),
    ],
)
@pytest.mark.parametrize("order", ["<", ">"])
def test_a_pool_that_nobody_imported_was_written_to_for_seconds(order, written, used):
    parts = [
        (128 * 1024 + 4096 * at, struct.pack(f"{order}QQQQQ", 0x00BAB10C, 5000, group, 7, seconds))
        for at, (group, seconds) in enumerate(written)
    ]
    assert (trace(Content(*parts), "zfs_member") == "it was imported, and written to") is used


@pytest.mark.parametrize(
    ("start", "size", "left", "said"),
    [
        (0, 0, ZEROS, None),
        (0, 1, ZEROS, "there are data without a signature at 0 MiB"),
        (8192, 1, ZEROS, "there are data without a signature at 8192 bytes"),
        (SIZE - 1, 1, ZEROS, f"there are data without a signature at {SIZE - 4096} bytes"),
        (2 * MIB, 4096, ZEROS, None),
        (2 * MIB, SIZE // 64, ZEROS, "there are data without a signature at 2158592 bytes"),
        (2 * MIB, 4 * MIB, left_by_tool("ext4"), "there are data without a signature at 2158592 bytes"),
        (2 * MIB, MIB, left_by_tool("ext4"), None),
        (2 * MIB, 4 * MIB, MEMBER, None),
        (512, MIB // 2, MEMBER, None),
        (511, 1, MEMBER, "there are data without a signature at 0 MiB"),
        (512, MIB, MEMBER, "there are data without a signature at 0 MiB"),
        (SIZE - MIB, MIB, MEMBER, f"there are data without a signature at {SIZE // MIB - 1} MiB"),
        (512, SIZE - 512, BEFORE, None),
        (0, 1, BEFORE, "there are data without a signature at 0 MiB"),
    ],
)
def test_data_without_a_signature_where_a_run_left_zeros(start, size, left, said):
    assert trace(Content((start, b"\1" * size)), None, left) == said


@pytest.mark.parametrize(("start", "said"), [(512, None), (0, "there are data without a signature at 0 MiB")])
def test_the_descriptors_of_a_large_ext4_may_fill_a_mebibyte_but_for_its_first_sector(start, said):
    assert trace(Content((start, b"\1" * MIB)), None, left_by_tool("ext4")) == said


@pytest.mark.parametrize("size", [SIZE, 1024**4])
@pytest.mark.parametrize(
    ("kind", "options", "blocks", "taken"),
    [
        ("xfs", (), 64, True),
        ("xfs", (), 65, False),
        ("xfs", ("-d", "agcount=8"), 65, True),
        ("swap", (), 5, False),
        ("LVM2_member", (), 5, False),
    ],
)
def test_a_tool_leaves_no_more_than_it_writes(kind, options, blocks, taken, size):
    """Whatever the device holds."""
    found = trace(Content((4096, b"\1" * 4096 * blocks)), None, left_by_tool(kind, options), size)
    assert (found is None) is taken


class Mapped(Content):
    """A host with a container: what is read of /dev/mapper/x is in it, all else the ciphertext below it."""

    def __init__(self, plain: Content, *cipher: tuple[int, bytes]) -> None:
        super().__init__(*cipher)
        self.plain = plain

    def read_bytes(self, path: str, start: int, size: int) -> bytes:
        return (self.plain if path.startswith("/dev/mapper/") else super()).read_bytes(path, start, size)


@pytest.mark.parametrize(
    ("written", "plain", "said"),
    [
        # Nothing was ever written: what shows is zeros that were decrypted.
        ((0, 0), (0, SIZE - MIB), None),
        # A tool that was cut off writes zeros over the first sectors, and something behind them.
        ((0, 64 * 1024), (4096, 60 * 1024), None),
        ((0, 4096), (0, 1), "there are data without a signature at 0 MiB"),
        ((512, MIB), (512, SIZE - MIB - 512), "there are data without a signature at 0 MiB"),
    ],
)
def test_in_a_container_only_that_counts_which_was_written(written, plain, said):
    inside = Content((plain[0], b"\3" * plain[1]))
    host = Mapped(inside, (MIB + written[0], b"\5" * written[1]))
    assert trace_in_opened(host, "/dev/mapper/x", SIZE - MIB, "/dev/sda1", MIB, MEMBER) == said


@pytest.mark.parametrize(("place", "found"), [(0, False), (2 * MIB - 1, False), (2 * MIB, True), (SIZE - 1, True), (4 * MIB, False)])
def test_a_closed_container_with_zeros_at_the_ends_of_its_data_has_nothing_in_it(place, found):
    content = Content((place, b"\1"))
    assert (trace_in_closed(content, "/dev/sda1", SIZE, 2 * MIB) is not None) is found


def test_what_cannot_be_read_is_no_unfinished_work():
    assert trace(Content(error=OSError(5, "Input/output error")), "ext4") == "it cannot be read (Input/output error)"


def test_other_kinds_and_broken_superblocks_tell_nothing():
    assert trace(Content((0, b"\1" * MIB)), "swap") is None
    for kind in ("xfs", "btrfs", "f2fs", "vfat"):
        assert trace(Content(), kind) is None
