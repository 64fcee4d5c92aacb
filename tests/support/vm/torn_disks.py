# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks whose caches forget: every write and flush is kept in its order, so that of one run there are as many power cuts as one likes.

After a cut a disk has all that was written before its last flush. Of what came later each write is there or not, whatever its order, and
some only in parts: a write that was overtaken by another one may be all that is left of the two. Sectors are whole, as those of disks are.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = 4096
_SURVIVAL = (0.0, 0.2, 0.5, 0.8, 1.0)
"""How likely each write is to be there: caches that lose nearly all, or next to nothing, leave other states than those in between."""
_TORN = 0.25

Content = dict[int, bytes]
"""The pages of a disk that are not all zeros, by their numbers."""


@dataclass(frozen=True)
class Write:
    """`data` at `offset` of a disk; None stands for `size` bytes of zeros. With `through` it is on the disk when it is acknowledged."""

    disk: str
    offset: int
    size: int
    data: bytes | None
    through: bool = False


@dataclass(frozen=True)
class Flush:
    """All that the disk acknowledged before is on it."""

    disk: str


Event = Write | Flush


def read(content: Content, offset: int, size: int) -> bytes:
    first, last = offset // PAGE, (offset + size - 1) // PAGE
    pages = b"".join(content.get(number, bytes(PAGE)) for number in range(first, last + 1))
    return pages[offset - first * PAGE :][:size]


def write(content: Content, event: Write) -> None:
    """Change a content as a write does."""
    end = event.offset + event.size
    if event.data is None and event.size > len(content) * PAGE:
        touched: Iterable[int] = [number for number in content if number * PAGE < end and (number + 1) * PAGE > event.offset]
    else:
        touched = range(event.offset // PAGE, -(-end // PAGE))
    for number in touched:
        begin = number * PAGE
        start, stop = max(event.offset, begin), min(end, begin + PAGE)
        new = bytes(stop - start) if event.data is None else event.data[start - event.offset : stop - event.offset]
        if len(new) < PAGE:
            old = content.get(number, bytes(PAGE))
            new = old[: start - begin] + new + old[stop - begin :]
        if any(new):
            content[number] = new
        else:
            content.pop(number, None)


def after_cut(before: Content, events: Sequence[Event], sector: int, chance: random.Random) -> Content:
    """Return what one disk has after a power cut behind these events, all of them its own; `sector` bytes are written whole or not."""
    content = dict(before)
    flushed = max((at for at, event in enumerate(events) if isinstance(event, Flush)), default=0)
    for event in events[:flushed]:
        if isinstance(event, Write):
            write(content, event)
    survival = chance.choice(_SURVIVAL)
    for event in events[flushed:]:
        if isinstance(event, Write) and (event.through or chance.random() < survival):
            write(content, event if event.through or chance.random() >= _TORN else _torn(event, sector, chance))
    return content


def _torn(event: Write, sector: int, chance: random.Random) -> Write:
    """Return a run of whole sectors of a write."""
    sectors = event.size // sector
    if sectors < 2:
        return event
    first, last = sorted(chance.sample(range(sectors + 1), 2))
    data = None if event.data is None else event.data[first * sector : last * sector]
    return Write(event.disk, event.offset + first * sector, (last - first) * sector, data)


def moment(events: Sequence[Event], chance: random.Random) -> int:
    """Return how many of these events there are before a power cut: any number, or any of those between two flushes.

    A file system that is made takes more writes than all tables and headers together, and is flushed once.
    """
    if chance.random() < 0.5:
        return chance.randint(1, len(events))
    flushes = [0, *(at for at, event in enumerate(events) if isinstance(event, Flush)), len(events)]
    number = chance.randrange(len(flushes) - 1)
    return chance.randint(flushes[number], flushes[number + 1])


def of_disks(events: Iterable[Event], disks: Iterable[str]) -> list[Event]:
    """Return the events of some disks only."""
    names = set(disks)
    return [event for event in events if event.disk in names]


def signature(file: Path) -> str:
    """Return what a disk in a file is known by as a whole; of a table that can be read one copy may be torn."""
    table, types = (
        subprocess.run([*command, str(file)], capture_output=True, text=True, check=False).stdout
        for command in (["sfdisk", "--json"], ["wipefs", "--noheadings", "--output", "TYPE"])
    )
    return table + " ".join(sorted(set(types.split()) - {"gpt", "PMBR"}))


def save(contents: Mapping[int, bytes], size: int, file: Path) -> None:
    """Write a disk into a sparse file."""
    with open(file, "wb") as raw:
        raw.truncate(size)
        for number, page in contents.items():
            raw.seek(number * PAGE)
            raw.write(page[: max(0, size - number * PAGE)])
