# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes: bytes on the host, whole MiB in plans."""

from __future__ import annotations

import typing as t

KIB = 1024
MIB = 1024**2

LEAST_BLOCK = 512
LARGEST_BLOCK = MIB


def known_block(size: t.Optional[int]) -> t.Optional[int]:
    """Return the bytes of a disk's blocks, which are a power of two from 512 on; None for what is no such size, as firmware may report."""
    if size is None or not LEAST_BLOCK <= size <= LARGEST_BLOCK or size & (size - 1):
        return None
    return size


def in_mib(size: int) -> str:
    """Return a size in bytes as words: in MiB where it is a whole number of MiB."""
    return f"{size // MIB} MiB" if size % MIB == 0 else f"{size} bytes"
