# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""LVM's caches (dm-cache): a volume on fast disks, all of a physical volume of its own, that keeps what is used of one on slow disks."""

from __future__ import annotations

import re

WRITETHROUGH, WRITEBACK = "writethrough", "writeback"
MODES = (WRITETHROUGH, WRITEBACK)
LEAST = 64
"""MiB of the smallest useful cache: a part is metadata."""
_END = "_cvol"
_VOLUME = re.compile(rf"\[?(?P<name>.*?)(?:{_END})?\]?")
_FAST_PARTS = re.compile(rf"{_END}(?:-c(?:data|meta))?\Z")
_SLOW_PART = "_corig"


def name_of(volume: str) -> str:
    """Return the name that a cache was made with, from that which `lvs` has for it as long as it is one (`[fast_cvol]`)."""
    found = _VOLUME.fullmatch(volume)
    return found["name"] if found is not None else volume


def volume_of(name: str) -> str:
    """Return the name that the volume of a cache has as long as it is one."""
    return f"{name}{_END}"


def is_volume(name: str) -> bool:
    """Return whether that is the name of the volume of a cache that is one."""
    return name.endswith(_END)


def is_part(name: str) -> bool:
    """Return whether a volume of this name is a part of a cached one that nobody uses by itself."""
    return is_fast_part(name) or name.endswith(_SLOW_PART)


def is_fast_part(name: str) -> bool:
    """Return whether a volume of this name is a cache, or a part of one."""
    return _FAST_PARTS.search(name) is not None
