# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Superblocks of bcache: a device's set, and whether some of its data are in the cache alone. After the kernel's `bcache_ondisk.h`."""

from __future__ import annotations

import struct
import typing as t
import uuid
from dataclasses import dataclass

OFFSET = 4096
SIZE = 120
"""Bytes: where the superblock lies, and how much is read."""

_MAGIC = uuid.UUID("c68573f6-4e1a-45ca-8265-f57f48ba6d81").bytes
_FIELDS = struct.Struct("<16xQ16s16x16s32xQ")
"""Version, magic, UUID of the set, flags."""
_BACKING = frozenset({1, 4, 6})
"""Versions of superblocks of backing devices; the others are caches'."""
_STATE = 61
_DIRTY = 2


@dataclass(frozen=True)
class Superblock:
    """A device's role in its set; `dirty`: a backing device some of whose data are in the cache alone."""

    set_uuid: str
    backing: bool
    dirty: bool


def parse_superblock(raw: bytes) -> t.Optional[Superblock]:
    """Return what a superblock says; None for what is none."""
    if len(raw) < _FIELDS.size:
        return None
    version, magic, set_uuid, flags = _FIELDS.unpack_from(raw)
    backing = version in _BACKING
    return Superblock(str(uuid.UUID(bytes=set_uuid)), backing, backing and flags >> _STATE & 3 == _DIRTY) if magic == _MAGIC else None
