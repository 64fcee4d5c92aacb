# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is read of a disk byte by byte, and of files that an image or a host brought: anybody can have written them."""

from __future__ import annotations

import os
import random
import struct
import tempfile
import typing as t
import zlib
from collections.abc import Callable

from ....plugins.module_utils._storage import bcache, btrfs, crypttab, ext4, filesystems, fstab, mdadm_conf
from ....plugins.module_utils._storage.gpt_bytes import read_raw_table

_SECTOR = 512
_ENTRIES = 4 * 128
_UUID = "f743c90f-45d7-5765-af56-12889982af99"
BYTES: dict[str, tuple[list[bytes], Callable[[bytes], t.Any]]] = {}
"""By name: sound bytes, and what reads them."""
TEXTS: dict[str, tuple[list[str], Callable[[str], t.Any]]] = {
    "crypttab": (
        ["# of the image\nroot UUID=5 none luks,discard\nswap /dev/sda2 /dev/urandom swap,cipher=aes-xts-plain64\n"],
        crypttab.read_containers,
    ),
    "fstab": ([f"UUID={_UUID} / ext4 defaults 0 1\n/dev/sda2 none swap sw 0 0\n# a\\040b\n"], fstab.read_entries),
    "mdadm.conf": ([f"MAILADDR root\nARRAY /dev/md0 metadata=1.2 UUID=5 name=h:0\nARRAY <ignore> UUID={_UUID}\n"], mdadm_conf.read_arrays),
    "subvolumes": (
        ["ID 256 gen 7 top level 5 path @\nID 257 gen 9 top level 5 path @/b c\n0/256 16384 16384 1073741824\n0/257 1 1 none\n"],
        btrfs.read_subvolumes,
    ),
}
"""By name: sound texts, and what reads them."""


def _gpt(place: int = 2) -> bytes:
    """Return the first sectors of a disk with a GPT of one partition."""
    entries = struct.pack("<16s16sQQQ72s", b"t" * 16, b"u" * 16, 2048, 4095, 0, b"n").ljust(_ENTRIES, b"\0")
    fields = (b"EFI PART", b"\0\0\1\0", 92, 0, 1, 9999, 34, 9000, b"g" * 16, place, 4, 128, zlib.crc32(entries))
    header = struct.Struct("<8s4sII4xQQQQ16sQIII")
    head = header.pack(*fields)
    head = header.pack(*fields[:3], zlib.crc32(head), *fields[4:])
    return bytes(510) + b"\x55\xaa" + head.ljust(_SECTOR, b"\0") + entries


def _read_gpt(disk: bytes) -> t.Any:
    """Read a table as of a device: what no offset of the kernel reaches cannot be asked for."""
    with tempfile.TemporaryFile() as file:
        file.write(disk)
        file.flush()
        return read_raw_table(lambda start, size: os.pread(file.fileno(), size, start), _SECTOR)


def _ext4() -> bytes:
    content = bytearray(ext4.SIZE)
    content[56:58] = b"\x53\xef"
    content[32:36] = struct.pack("<I", 32768)
    content[100:104] = struct.pack("<I", 0x400)
    return bytes(content)


def _bcache() -> bytes:
    magic = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")
    return struct.pack("<16xQ16s16x16s32xQ", 1, magic, b"s" * 16, 2 << 61)


BYTES["GPT"] = ([_gpt(), _gpt(2**63), _gpt(2**55)], _read_gpt)
BYTES["superblock of ext4"] = ([_ext4(), bytes(ext4.SIZE)], ext4.parse_superblock)
BYTES["superblock of bcache"] = ([_bcache(), bytes(bcache.SIZE)], bcache.parse_superblock)


def _measured(text: str) -> t.Any:
    measures = [one.growth.measure for one in filesystems.FILESYSTEMS.values() if one.growth is not None]
    return [(one.read(text, "/dev/sda1"), one.read_used(text), one.read_last_mount(text)) for one in measures]


TEXTS["sizes of file systems"] = (
    [
        "Block count: 1000\nFree blocks: 10\nBlock size: 4096\nLast mounted on: /srv\n",
        "data     =                       bsize=4096   blocks=26214, imaxpct=25\n",
        "devid    1 size 1073741824 used 12582912 path /dev/sda1\n",
    ],
    _measured,
)


def damage_bytes(draw: random.Random, sound: bytes) -> bytes:
    """Return bytes of which some are others, or that end too soon."""
    damaged = bytearray(sound)
    for _change in range(draw.randint(1, 4)):
        at = draw.randrange(len(damaged)) if damaged else 0
        how = draw.randrange(4)
        if how == 0:
            del damaged[at:]
        elif how == 1:
            damaged[at : at + 8] = draw.choice((b"\xff" * 8, bytes(8), b"\0" * 7 + b"\x80"))
        elif damaged:
            damaged[at % len(damaged)] = draw.randrange(256)
    return bytes(damaged)
