# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The media of a simulated host: marks (signatures, data) at byte offsets of disks, seen through partitions, mirrors, LUKS and LVM.

What is not overwritten stays where it is, so that what a real host would find again is found again here.
"""

from __future__ import annotations

import functools
import typing as t
from dataclasses import dataclass, field

MIB = 1024**2
EXTENT = 4 * MIB
TABLE_ENTRIES = 16 * 1024
PV_START = MIB
LUKS_START = 16 * MIB

MAGIC: dict[str, t.Callable[[int], tuple[int, ...]]] = {
    "md-1.2": lambda size: (4096,),
    "md-1.0": lambda size: (size // 4096 * 4096 - 8192,),
    "md-0.90": lambda size: (size // 65536 * 65536 - 65536,),
    "crypto_LUKS": lambda size: (0, 16384),
    "LVM2_member": lambda size: (536,),
    "zfs_member": lambda size: (135168, size - 393216),
    "xfs": lambda size: (0,),
    "ext4": lambda size: (1080,),
    "btrfs": lambda size: (65600,),
    "f2fs": lambda size: (1024,),
    "vfat": lambda size: (82,),
    "swap": lambda size: (4086,),
}
"""Where the magic bytes of what blkid knows lie; in the order in which it would name the content of a device."""

BEGINS = {kind: offsets(1 << 40)[0] for kind, offsets in MAGIC.items() if offsets(1 << 40)[0] < MIB}
"""How far behind the begin of a device that is, where it does not depend on the end."""


@dataclass(frozen=True)
class Mark:
    """Something written at an offset; `keys` are the LUKS keys it was written through: read any other way it is noise."""

    kind: str
    payload: t.Any
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Extent:
    """A run of bytes of a device and the places (disk, offset) where it lies, several for a mirror."""

    size: int
    places: tuple[tuple[str, int], ...]


@dataclass
class Block:
    """A block device that the kernel has."""

    name: str
    node: str
    kind: str
    extents: tuple[Extent, ...]
    parents: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    title: str | None = None
    uuid: str | None = None
    group: str | None = None

    @functools.cached_property
    def size(self) -> int:
        return sum(extent.size for extent in self.extents)

    def part(self, start: int, size: int) -> tuple[Extent, ...]:
        """The extents of a part of the device."""
        found, position = [], 0
        for extent in self.extents:
            begin, end = max(start, position), min(start + size, position + extent.size)
            if begin < end:
                found.append(Extent(end - begin, tuple((disk, place + begin - position) for disk, place in extent.places)))
            position += extent.size
        return tuple(found)


@dataclass
class Media:
    """All disks: their sizes and what is written on them."""

    sizes: dict[str, int]
    marks: dict[str, dict[int, Mark]] = field(default_factory=dict)
    version: int = 0
    _seen: dict[t.Any, t.Any] = field(default_factory=dict)

    def disk(self, name: str) -> Block:
        return Block(name, f"/dev/{name}", "disk", (Extent(self.sizes[name], ((name, 0),)),))

    def write(self, block: Block, offset: int, kind: str, payload: t.Any) -> None:
        self._changed()
        (extent,) = block.part(offset, 1)
        for disk, place in extent.places:
            self.marks.setdefault(disk, {})[place] = Mark(kind, payload, block.keys)

    def read(self, block: Block, offset: int) -> Mark | None:
        for extent in block.extents:
            if offset < extent.size:
                disk, place = extent.places[0]
                mark = self.marks.get(disk, {}).get(place + offset)
                return mark if mark is not None and mark.keys == block.keys else None
            offset -= extent.size
        return None

    def zero(self, block: Block, start: int, size: int) -> None:
        self._changed()
        for extent in block.part(max(0, start), size):
            for disk, place in extent.places:
                there = self.marks.get(disk, {})
                for offset in [offset for offset in there if place <= offset < place + extent.size]:
                    del there[offset]

    def replace(self, disk: str, marks: dict[int, Mark]) -> None:
        """Have a disk say something else, as one does that has lost writes."""
        self._changed()
        self.marks[disk] = marks

    def copy(self, source: Block, target: Block) -> None:
        """Write all that is on one device onto another one, as md does with a new member."""
        self._changed()
        ((disk, start),), ((to, begin),) = source.extents[0].places, target.extents[0].places
        for offset, mark in list(self.marks.get(disk, {}).items()):
            if start <= offset < start + min(source.size, target.size):
                self.marks.setdefault(to, {})[offset - start + begin] = mark

    def sign(self, block: Block, kind: str, payload: t.Any) -> None:
        for offset in MAGIC[kind](block.size):
            self._tear_table_below(block, offset)
            self.write(block, offset, kind, payload)

    def _tear_table_below(self, block: Block, offset: int) -> None:
        """Spoil the copy of a table that has its entries or its header where something is written on the disk as a whole."""
        if block.kind == "disk":
            size = self.sizes[block.name]
            if 512 <= offset < 1024 + TABLE_ENTRIES:
                self.zero(block, 512, 1)
            if offset >= size - 512 - TABLE_ENTRIES:
                self.zero(block, size - 512, 1)

    def _changed(self) -> None:
        self.version += 1
        self._seen.clear()

    def signatures(self, block: Block) -> dict[str, tuple[t.Any, tuple[int, ...]]]:
        """What blkid finds: the payload and the offsets by kind."""
        key = (block.extents, block.keys)
        if key not in self._seen:
            self._seen[key] = self._probe(block)
        return dict(self._seen[key])

    def _probe(self, block: Block) -> dict[str, tuple[t.Any, tuple[int, ...]]]:
        found: dict[str, tuple[t.Any, tuple[int, ...]]] = {}
        for kind, offsets in MAGIC.items():
            for offset in offsets(block.size):
                mark = self.read(block, offset) if 0 <= offset < block.size else None
                if mark is not None and mark.kind == kind:
                    found[kind] = (mark.payload, (*found.get(kind, (None, ()))[1], offset))
        return found

    def beginnings(self, disk: str) -> list[tuple[int, str]]:
        """The whole MiB at which something has a signature as if its device began there; what has one at its end alone is not seen."""
        marks = ((offset - BEGINS.get(mark.kind, offset), mark) for offset, mark in sorted(self.marks.get(disk, {}).items()))
        return [(place, mark.kind) for place, mark in marks if place > 0 and place % MIB == 0 and not mark.keys]

    def wipe(self, block: Block) -> None:
        for _payload, offsets in self.signatures(block).values():
            for offset in offsets:
                self.zero(block, offset, 1)

    # ---- partition tables

    def table(self, disk: str) -> tuple[str, str, tuple[t.Any, ...]] | None:
        """The kind, UUID and entries of a disk's table: that of the backup where the primary is gone.

        A table of another kind counts until the protective MBR of a GPT is there, which is written last.
        """
        found = self.tables(disk)
        return next((found[offset] for offset in (510, *reversed(self.table_copies(disk))) if offset in found), None)

    def visible_table(self, disk: str) -> tuple[str, str, tuple[t.Any, ...]] | None:
        """The same, but for one of which the backup is under something else's back: no protective MBR tells of it yet, or any more."""
        under = any(512 < offset < 1024 + TABLE_ENTRIES for offset in self.marks.get(disk, {}))
        return None if under and 512 not in self.tables(disk) and 510 not in self.tables(disk) else self.table(disk)

    def table_copies(self, disk: str) -> tuple[int, int]:
        """Where the headers of a GPT are, in the order in which they are written."""
        return self.sizes[disk] - 512, 512

    def tables(self, disk: str) -> dict[int, tuple[str, str, tuple[t.Any, ...]]]:
        """All tables and copies that are whole, with their offsets."""
        block = self.disk(disk)
        marks = ((offset, self.read(block, offset)) for offset in (510, 512, block.size - 512))
        return {offset: (mark.kind, *mark.payload) for offset, mark in marks if mark is not None and mark.kind in ("gpt", "dos")}

    def first_table(self, disk: str) -> tuple[str, str, tuple[t.Any, ...]] | None:
        """The same where the kernel reads it, which does not ask for a backup."""
        offsets = self.table_offsets(disk)
        return self.table(disk) if {510, 512} & {*offsets} else None

    def table_offsets(self, disk: str) -> tuple[int, ...]:
        """Where the headers of a disk's table are whole."""
        return tuple(self.tables(disk))

    def tear_copy(self, disk: str, offset: int) -> None:
        """Leave one copy of a table half written."""
        self.zero(self.disk(disk), offset, 1)

    def write_copy(self, disk: str, offset: int, uuid: str, entries: tuple[t.Any, ...]) -> None:
        self._take_sectors(disk, offset)
        self.write(self.disk(disk), offset, "gpt", (uuid, entries))

    def tear_table(self, disk: str) -> None:
        """Leave only the backup of a table."""
        self.zero(self.disk(disk), 510, 512)

    def _take_sectors(self, disk: str, offset: int) -> None:
        """Overwrite what lies where the entries and the header of a copy come to lie; sfdisk leaves the boot code as it is."""
        begin = offset if offset == 512 else self.sizes[disk] - 512 - TABLE_ENTRIES
        self.zero(self.disk(disk), begin, 512 + TABLE_ENTRIES)

    def write_table(self, disk: str, uuid: str, entries: tuple[t.Any, ...], kind: str = "gpt") -> None:
        block = self.disk(disk)
        self.zero(block, 510, 512)
        for offset in (512, block.size - 512) if kind == "gpt" else (510,):
            if kind == "gpt":
                self._take_sectors(disk, offset)
            self.write(block, offset, kind, (uuid, entries))

    def wipe_table(self, disk: str) -> None:
        block = self.disk(disk)
        self.zero(block, 510, 512)
        self.zero(block, block.size - 512, 512)


def md_data(leg: int, metadata: str) -> tuple[int, int]:
    """Where the data of a mirror's leg begin, and how many bytes they are; after mdadm's super1.c and super0.c."""
    if metadata == "1.2":
        headroom = 128 * MIB
        while headroom * 1024 > leg and headroom > 0:
            headroom //= 2
        begin = -(-(12 * 1024 + 68 * 1024 + headroom) // MIB) * MIB
        return begin, leg - begin
    return 0, leg // 65536 * 65536 - 131072
