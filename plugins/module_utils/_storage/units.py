# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes: bytes on the host, whole MiB in plans."""

from __future__ import annotations

KIB = 1024
MIB = 1024**2


def in_mib(size: int) -> str:
    """Return a size in bytes as words: in MiB where it is a whole number of MiB."""
    return f"{size // MIB} MiB" if size % MIB == 0 else f"{size} bytes"
