# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Superblocks of bcache, written field by field as the kernel's header has them."""

from __future__ import annotations

import struct
import uuid

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._storage.bcache import SIZE, Superblock, parse_superblock

SET = uuid.UUID("0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f0")
MAGIC = bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81")


def superblock(version: int, state: int = 0, magic: bytes = MAGIC) -> bytes:
    checksum_and_offset = struct.pack("<QQ", 0x1234, 8)
    own = uuid.UUID(int=7).bytes
    return checksum_and_offset + struct.pack("<Q", version) + magic + own + SET.bytes + bytes(32) + struct.pack("<QQ", 1 | state << 61, 3)


@pytest.mark.parametrize("version", [1, 4, 6])
@pytest.mark.parametrize(("state", "dirty"), [(0, False), (1, False), (2, True), (3, False)])
def test_a_backing_device_says_whether_it_is_dirty(version: int, state: int, dirty: bool) -> None:
    assert len(superblock(version)) == SIZE
    assert parse_superblock(superblock(version, state)) == Superblock(str(SET), True, dirty)


@pytest.mark.parametrize("version", [0, 3, 5])
def test_a_cache_is_never_dirty_by_itself(version: int) -> None:
    assert parse_superblock(superblock(version, 2)) == Superblock(str(SET), False, False)


@pytest.mark.parametrize("raw", [b"", bytes(SIZE), superblock(1)[:60], superblock(1, magic=bytes(16))])
def test_other_bytes_are_no_superblock(raw: bytes) -> None:
    assert parse_superblock(raw) is None
