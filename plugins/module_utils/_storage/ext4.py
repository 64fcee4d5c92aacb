# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Superblocks of ext4: how one is known, whether it is whole, where its copies lie, and how one becomes the first again.

After the kernel's `fs/ext4/ext4.h`. Only a file system with checksums of metadata says that its superblock is torn.
"""

from __future__ import annotations

import struct
import typing as t
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

OFFSET = 1024
SIZE = 1024
"""Bytes: where the first superblock lies, and how large each is."""

_MAGIC = 0xEF53
_CHECKSUMS = 0x400
"""The feature (read-only compatible) of checksums of metadata."""
_CHECKSUM = slice(SIZE - 4, SIZE)
_GROUP = slice(0x5A, 0x5C)
_FIELDS = struct.Struct("<4xI12xII4xI20xH32xH8xI16s16s")
"""Low blocks, first data block, logarithm of the block size, blocks per group, magic, group, read-only features, UUID, label."""
_HIGH_BLOCKS = slice(0x150, 0x154)
_INCOMPATIBLE, _RECOVER = 0x60, 0x4
"""The first byte of features, and the flag for a journal that has to be replayed; replaying an empty one does nothing."""
_LARGEST_BLOCK = 6
"""The largest shift of 1024 bytes: 64 KiB."""
_COPIES = (1, 3, 5, 7, 9, 25, 27, 49, 81, 125)
"""The groups that have copies, the powers of 3, 5 and 7, as far as they are worth a look."""


@dataclass(frozen=True)
class Superblock:
    """What a superblock says; `whole` is False if its checksum does not match. `blocks` counts those of the whole file system."""

    uuid: str
    label: str
    group: int
    first_block: int
    block_size: int
    group_blocks: int
    blocks: int
    whole: bool

    def copies(self) -> Iterator[tuple[int, int]]:
        """Give the groups that have copies, and the block where each copy lies."""
        for group in _COPIES:
            yield group, group * self.group_blocks + self.first_block


def as_first(copy: bytes) -> bytes:
    """Return the first superblock of which these bytes are a copy, with its journal to be replayed: that has what is newer."""
    changed = bytearray(copy)
    changed[_GROUP] = bytes(2)
    changed[_INCOMPATIBLE] |= _RECOVER
    changed[_CHECKSUM] = _checksum(changed).to_bytes(4, "little")
    return bytes(changed)


def parse_superblock(content: bytes) -> t.Optional[Superblock]:
    """Return what these bytes say, whole or not; None where they are no superblock of an ext4 with checksums."""
    if len(content) != SIZE:
        return None
    low, first, shift, per_group, magic, group, features, identity, label = _FIELDS.unpack_from(content)
    if magic != _MAGIC or not features & _CHECKSUMS or shift > _LARGEST_BLOCK or not per_group:
        return None
    return Superblock(
        uuid=str(uuid.UUID(bytes=identity)),
        label=label.rstrip(b"\0").decode("utf-8", errors="replace"),
        group=group,
        first_block=first,
        block_size=1024 << shift,
        group_blocks=per_group,
        blocks=low | int.from_bytes(content[_HIGH_BLOCKS], "little") << 32,
        whole=int.from_bytes(content[_CHECKSUM], "little") == _checksum(content),
    )


def _checksum(content: t.Union[bytes, bytearray]) -> int:
    """Return the CRC-32C, as ext4 has it: not inverted in the end."""
    crc = 0xFFFFFFFF
    for byte in content[: _CHECKSUM.start]:
        crc ^= byte
        for _bit in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc
