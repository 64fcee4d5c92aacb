# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks in memory that record every write and flush in their order: torn_disks makes power cuts of these."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from .torn_disks import Content, Event, Flush, Write, read, write


@dataclass
class Served:
    """A disk: its `size` in bytes and its content."""

    size: int
    content: Content = field(default_factory=dict)


class RecordedDisks:
    """Disks by name; `events` are all writes and flushes since the disks were inserted."""

    def __init__(self) -> None:
        self.disks: Mapping[str, Served] = {}
        self.events: list[Event] = []
        self._lock = threading.Lock()

    def insert(self, disks: Mapping[str, Served]) -> None:
        """Serve copies of these disks from now on; no client may be connected."""
        self.disks = {name: Served(disk.size, dict(disk.content)) for name, disk in disks.items()}
        self.events = []

    def read(self, name: str, offset: int, size: int) -> bytes:
        with self._lock:
            return read(self.disks[name].content, offset, size)

    def write(self, name: str, offset: int, size: int, data: bytes | None, through: bool = False) -> None:
        """Write data, or zeros for None; with `through` the disk has them when this returns."""
        event = Write(name, offset, size, data if data is not None and any(data) else None, through)
        with self._lock:
            write(self.disks[name].content, event)
            self.events.append(event)

    def flush(self, name: str) -> None:
        with self._lock:
            self.events.append(Flush(name))
