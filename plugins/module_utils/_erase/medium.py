# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bytes of a disk as an erasure reads and writes them: past every cache, and for writing only while nothing else has the disk."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import typing as t

from .._storage.units import MIB

CHUNK = 4 * MIB

_DISCARD = 0x1277
"""BLKDISCARD of linux/fs.h: takes the first byte and the number of bytes."""


class Medium(t.Protocol):
    """A disk that is open. Positions and sizes are bytes, multiples of its sectors; every call raises OSError."""

    size: int

    def read(self, start: int, length: int) -> bytes:
        """Return what the medium has, not what a cache has."""

    def zero(self, start: int, length: int) -> None:
        """Write zeros."""

    def discard(self, start: int, length: int) -> None:
        """Have the disk forget blocks."""

    def flush(self) -> None:
        """Bring down all that was written."""


class LocalMedium:
    """A disk of this machine. O_EXCL lets the kernel refuse while anything uses the disk or one of its partitions."""

    def __init__(self, node: str, size: int, writes: bool) -> None:
        """Open it; raises OSError."""
        self.size = size
        mode = os.O_RDWR | os.O_EXCL if writes else os.O_RDONLY
        self._handle = os.open(node, mode | os.O_DIRECT | os.O_CLOEXEC)
        # Memory of its own begins at a page, as O_DIRECT wants it.
        self._buffer = mmap.mmap(-1, CHUNK)
        self._zeros = mmap.mmap(-1, CHUNK)

    def __enter__(self) -> LocalMedium:
        """Return itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close it."""
        os.close(self._handle)

    def read(self, start: int, length: int) -> bytes:
        """See Medium."""
        pieces, end = [], start + length
        while start < end:
            with memoryview(self._buffer) as whole, whole[: min(CHUNK, end - start)] as room:
                count = os.preadv(self._handle, [room], start)
            if not count:
                raise OSError(0, "the disk ends before its size")
            pieces.append(self._buffer[:count])
            start += count
        return b"".join(pieces)

    def zero(self, start: int, length: int) -> None:
        """See Medium."""
        end = start + length
        while start < end:
            with memoryview(self._zeros) as whole, whole[: min(CHUNK, end - start)] as piece:
                start += os.pwritev(self._handle, [piece], start)

    def discard(self, start: int, length: int) -> None:
        """See Medium."""
        fcntl.ioctl(self._handle, _DISCARD, struct.pack("QQ", start, length))

    def flush(self) -> None:
        """See Medium."""
        os.fsync(self._handle)
