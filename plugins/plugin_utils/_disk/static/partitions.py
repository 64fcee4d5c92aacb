# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pieces of disks -> GPT partitions: where they begin and end, their numbers, names, types and identities."""

from __future__ import annotations

import math
import typing as t
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....module_utils._data.kinds import is_whole
from ....module_utils._storage import gpt, zfs
from ....module_utils._storage.filesystems import SWAP
from ....module_utils._storage.units import MIB
from ..model import Allocation, Disk, Firmware, Hardware, Piece, Schema, Space, SpaceType

_GUIDS = {SpaceType.ESP: gpt.ESP, SpaceType.BIOS_GRUB: gpt.BIOS_BOOT, SpaceType.RAID: gpt.RAID, SpaceType.ZPOOL: zfs.PARTITION_TYPE}
_FLAGS = {SpaceType.ESP: "boot", SpaceType.BIOS_GRUB: "bios_grub", SpaceType.RAID: "raid", SpaceType.VOLUME_GROUP: "lvm"}
_IDENTITIES = uuid.UUID("6f1d3a52-9c58-5b1e-8f0e-2d1c7c0b6a11")


@dataclass(frozen=True)
class Partition:
    """One partition: `disk` and `space` as positions, `begin` and `end` (exclusive) in MiB from the start of the disk."""

    disk: int
    space: int
    number: int
    begin: int
    end: int
    device: str
    type_guid: str
    uuid: str
    flags: tuple[str, ...]
    kept: bool
    exact: tuple[int, int] | None = None
    """Where one that is kept begins and ends, in bytes, if not at whole MiB."""


def partitions(hardware: Hardware, schema: Schema, allocation: Allocation, seed: str) -> tuple[Partition, ...]:
    """Return the partitions of every disk, in disk order and from its start to its end.

    The first begins at 1 MiB, each other where the last one ends; what is kept stays where it is, with its number and identity.
    Identities of new ones follow from `seed`, disk and space, so that the same plan always has the same.
    """
    by_disk: dict[int, list[Piece]] = {}
    for piece in allocation.pieces:
        if piece.size > 0 and schema.spaces[piece.space].type is not SpaceType.DISK:
            by_disk.setdefault(piece.disk, []).append(piece)
    return tuple(
        partition
        for position, pieces in sorted(by_disk.items())
        for partition in _on_disk(hardware, schema, pieces, f"{seed}/{hardware.disks[position].id}")
    )


def device_name(disk: Disk) -> str:
    """Return the path of the disk's device: its id where that is a path, else the name that the facts have for it."""
    if disk.id.startswith("/dev/"):
        return disk.id
    return f"/dev/{disk.id}" if disk.id.startswith("disk/") or not disk.dev else disk.dev


def _on_disk(hardware: Hardware, schema: Schema, pieces: Sequence[Piece], seed: str) -> Iterator[Partition]:
    disk = hardware.disks[pieces[0].disk]
    device = device_name(disk)
    there = {piece.start: _facts_at(disk, piece.start) for piece in pieces if piece.start is not None}
    # The number of every partition: those that are kept keep theirs, the others (0) get the next that is free.
    kept = [int(there[piece.start].get("number") or 0) if piece.start is not None else 0 for piece in pieces]
    free = iter([number for number in range(1, 2 * len(kept) + 1) if number not in kept])
    numbers = [number or next(free, 0) for number in kept]
    copies: dict[int, int] = {}
    cursor = gpt.HEAD
    for piece, number in zip(pieces, numbers):
        space = schema.spaces[piece.space]
        facts = there[piece.start] if piece.start is not None else {}
        begin = cursor if piece.start is None else piece.start
        copies[piece.space] = copies.get(piece.space, 0) + 1
        cursor = begin + piece.size
        yield Partition(
            disk=piece.disk,
            space=piece.space,
            number=number,
            begin=begin,
            end=cursor,
            device=gpt.partition_node(device, number),
            type_guid=_type_guid(space, schema),
            uuid=_guid(facts) or str(uuid.uuid5(_IDENTITIES, f"{seed}/{space.id}/{copies[piece.space]}")),
            flags=_flags(space, hardware.firmware),
            kept=piece.start is not None,
            exact=_exact(facts),
        )


def _facts_at(disk: Disk, start: int) -> Mapping[str, t.Any]:
    """Return what the facts say about the partition that begins at `start` MiB; nothing for one they do not number."""
    entries = disk.facts.get("partitions") or ()
    return next((entry for entry in entries if math.floor(_start(entry)) == start), {})


def _guid(facts: Mapping[str, t.Any]) -> str | None:
    """Return the identity that a partition has in a GPT."""
    try:
        return str(uuid.UUID(str(facts.get("uuid") or "")))
    except ValueError:
        return None


def _exact(facts: Mapping[str, t.Any]) -> tuple[int, int] | None:
    start, size = facts.get("start_bytes"), facts.get("size_bytes")
    if not is_whole(start) or not is_whole(size) or (start % MIB == 0 and size % MIB == 0):
        return None
    return int(start), int(start + size)


def _start(entry: Mapping[str, t.Any]) -> float:
    in_bytes = entry.get("start_bytes")
    return float(entry.get("start") or 0) if in_bytes is None else in_bytes / MIB


def _type_guid(space: Space, schema: Schema) -> str:
    if space.partition_type is not None:
        return space.partition_type
    if space.type in _GUIDS:
        return _GUIDS[space.type]
    if space.zpool is not None:
        return zfs.PARTITION_TYPE
    if is_encrypted(space, schema):
        return gpt.LUKS
    if space.type is SpaceType.VOLUME_GROUP or space.cache_of is not None:
        return gpt.LVM
    return gpt.SWAP if space.fs_type == SWAP else gpt.LINUX


def is_encrypted(space: Space, schema: Schema) -> bool:
    """Return whether LUKS lies on the space's devices. Volumes are encrypted below their vg: as soon as one is, all its PVs are."""
    if space.type is SpaceType.VOLUME_GROUP:
        return space.encrypt or any(member.encrypt for member in schema.spaces if member.volume_group == space.id)
    return space.encrypt and space.volume_group is None


def _flags(space: Space, firmware: Firmware | None) -> tuple[str, ...]:
    """Return the flags in parted's words, as Bareon has them."""
    if space.type in _FLAGS:
        return (_FLAGS[space.type],)
    return (gpt.LEGACY_BOOT,) if space.boot and firmware is Firmware.BIOS else ()
