# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bytes that a step reaches, which the gate of layouts judges: whole devices, or rooms of one."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .._facts.present import Present


@dataclass(frozen=True)
class Reach:
    """Bytes of a device that a step reaches; `end` None: up to the end of the device, with all that is built on it.

    `keeps`: the step opens or changes the contents, and destroys nothing.
    """

    device: str
    start: int = 0
    end: t.Optional[int] = None
    keeps: bool = False

    def meets(self, start: int, size: int) -> bool:
        """Return whether a room of the device is reached."""
        return self.end is None or (start < self.end and self.start < start + size)


NOTHING: tuple[Reach, ...] = ()
"""What a step reaches that makes something in room that nobody has, or changes what the layout names alone."""


def whole_devices(present: Present, nodes: Iterable[str], keeps: bool = False) -> Iterator[Reach]:
    """Give the whole devices of these nodes; a node without a device is made by an earlier step, which was judged for its room."""
    for node in nodes:
        device = present.tree.by_node(node)
        if device is not None:
            yield Reach(device.name, keeps=keeps)


def rooms(present: Present, disk: str, regions: Iterable[tuple[int, int]]) -> Iterator[Reach]:
    """Give rooms of a disk, each from and to a byte."""
    device = present.tree.by_node(disk)
    if device is not None:
        yield from (Reach(device.name, start, end) for start, end in regions)
