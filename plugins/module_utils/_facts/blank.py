# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a disk is blank: what no tool knows the signature of is data all the same.

Read are both ends, where nearly everything has its beginning, the MiB where a first partition begins that a lost table no longer names,
and samples in between. Blank is what has zeros everywhere, or one pattern of some bytes: disks that were discarded or tested read so.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .._storage.gpt import empty_table
from .._storage.samples import SAMPLE, spread
from .._storage.units import MIB, in_mib
from .host import Host

_SAMPLES = 256
"""Raw data of a 256th of the disk in one piece are always met by one, less by chance."""
_PATTERN_BYTES = 8


@dataclass(frozen=True)
class Remains:
    """What keeps a disk from being blank: data at `offset`, or with `error` the kernel's word for what could not be read there."""

    offset: int
    error: t.Optional[str] = None

    @property
    def words(self) -> str:
        """What it is, for a list of what would be lost."""
        place = in_mib(self.offset // 512 * 512)
        return f"something unreadable at {place} ({self.error})" if self.error else f"unknown data at {place}"


def find_remains(host: Host, device: str, size: int, head: int = 0, places: Iterable[int] = ()) -> t.Optional[Remains]:
    """Return what shows a device of `size` bytes not to be blank behind the `head`: an error of reading, else the first data, or None.

    `places` are where a run clears a MiB, at the begin and the end of partitions: those of a lost table may have lain there as well.
    """
    pattern = b""
    found: t.Optional[Remains] = None
    for start, length in (*_regions(size, head), *((place, MIB) for place in places if 2 * MIB <= place < size)):
        try:
            content = host.read_bytes(device, start, length)
        except OSError as error:
            return Remains(start, error.strerror or "error")
        pattern = pattern or content[:_PATTERN_BYTES]
        expected = pattern * (len(content) // _PATTERN_BYTES + 1)
        if found is None and content != expected[: len(content)]:
            found = Remains(start + next(at for at, (one, other) in enumerate(zip(content, expected)) if one != other))
    return found


def begun_table(host: Host, device: str, size: int, sector: int, places: Iterable[int] = ()) -> t.Optional[str]:
    """Return the GUID of a GPT without partitions of which one header alone is there; empty for a protective MBR on a blank disk.

    A cut in the first write of a table leaves that. None: there is something else, or it cannot be read.
    """
    try:
        found = [empty_table(host.read_bytes(device, start, sector)) for start in (size // sector * sector - sector, sector)]
    except OSError:
        return None
    guid = next(filter(None, found), None)
    return "" if guid is None and find_remains(host, device, size, sector, places) is None else guid


def _regions(size: int, head: int) -> Iterator[tuple[int, int]]:
    """Give starts, all multiples of a sector, and lengths."""
    yield from ((max(start, head), min(MIB, size - start) - (head if start == 0 else 0)) for start in (0, MIB) if start < size)
    yield (max(0, size - MIB), min(MIB, size))
    yield from ((place, SAMPLE) for place in spread(size, _SAMPLES) if 2 * MIB <= place <= size - SAMPLE)
