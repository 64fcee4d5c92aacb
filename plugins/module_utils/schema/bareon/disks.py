# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The partition tables of Bareon's hand-written schema: a partition for the boot loader at the head of every disk, then the volumes.

All lie in the order of the list without gaps; the one that takes what remains grows between those before and those behind it.
"""

from __future__ import annotations

import itertools
import json
import typing as t
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .bareon_disks import TABLE_HEAD, TABLE_TAIL, FoundDisk
from .bareon_mirrors import Array, mount_name
from .parse import NOT_MOUNTED, SWAP, Mistakes, Volume

Plain = dict[str, t.Any]

LOADER = 24
"""MiB of the BIOS boot partition that Bareon makes on every disk."""

_LOADER_NAME = "bios_grub"
_BIOS_BOOT = "21686148-6449-6e6f-744e-656564454649"
_LINUX = "0fc63daf-8483-4772-8e79-3d69d8477de4"
_ESP = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b"
_BASIC_DATA = "ebd0a0a2-b9e5-4433-87c0-68b6b72699c7"
_RAID = "a19d880f-05fc-4d3b-a006-743f0f84911e"
_LVM = "e6d6d379-f507-44c2-a23c-238f2a3df928"
_SWAP = "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f"
_ESP_MOUNTS = ("/boot/efi", "/efi")
_FLAGS = {_BIOS_BOOT: ["bios_grub"], _ESP: ["boot"], _RAID: ["raid"], _LVM: ["lvm"]}

_IDENTITIES = uuid.UUID("1d7f0c4e-51f0-5d5e-8a37-5a0c8f3b9a42")
_LINK_FOLDERS = ("/dev/disk/by-", "/dev/mapper/")
_LONGEST_NAME = 36


@dataclass(frozen=True)
class Piece:
    """A partition: the volume that it is made for, None for the boot loader's; `begin` and `size` in MiB."""

    volume: t.Optional[Volume]
    space: str
    number: int
    begin: int
    size: int
    device: str
    guid: str
    uuid: str
    kept: bool


@dataclass(frozen=True)
class Table:
    """The partitions of a disk and the table as the explicit schema has it."""

    pieces: tuple[Piece, ...]
    plain: Plain


def lay_out_disk(disk: FoundDisk, arrays: Sequence[Array], mistakes: Mistakes) -> Table:
    """Return the table of a disk; volumes that do not fit, and data to keep that are not where the list has them, are mistakes."""
    device = _device_name(disk)
    volumes = disk.entry.volumes
    sizes = _sizes(disk, mistakes)
    begins = [TABLE_HEAD + LOADER + sum(sizes[:position]) for position in range(len(sizes))]
    spaces = _space_names(volumes, arrays)
    there = [_existing(disk, volume, begin, size, mistakes) for volume, begin, size in zip(volumes, begins, sizes)]
    numbers = _numbers([0, *(int(facts.get("number") or 0) for facts in there)])
    pieces = [Piece(None, _LOADER_NAME, numbers[0], TABLE_HEAD, LOADER, _partition_name(device, numbers[0]), _BIOS_BOOT, "", False)]
    for volume, space, number, begin, size, facts in zip(volumes, spaces, numbers[1:], begins, sizes, there):
        own = _partition_name(device, number)
        pieces.append(Piece(volume, space, number, begin, size, own, _type_guid(volume), str(facts.get("uuid") or ""), bool(facts)))
    return Table(tuple(pieces), _plain(disk, device, pieces))


def _sizes(disk: FoundDisk, mistakes: Mistakes) -> list[int]:
    room = disk.room - LOADER
    volumes = disk.entry.volumes
    sizes = [volume.size.within(max(room, 0)) for volume in volumes]
    left = room - sum(sizes)
    remaining = [volume.size.remaining for volume in volumes]
    if left < 0 or (any(remaining) and left == 0):
        usable = int(disk.facts["size"]) - TABLE_HEAD - TABLE_TAIL
        of_what = f"{usable} MiB without its partition tables" if usable <= disk.room else f"{disk.room} MiB by {disk.entry.place}.size"
        mistakes.append(
            f"{disk.entry.place}.volumes: {sum(sizes)} MiB and {LOADER} MiB for the boot loader"
            f"{' leave nothing that remains' if left == 0 else f' are {-left} MiB more than there are'}; {_device_name(disk)} has {of_what}"
        )
    return [left if takes_rest else size for size, takes_rest in zip(sizes, remaining)]


def _existing(disk: FoundDisk, volume: Volume, begin: int, size: int, mistakes: Mistakes) -> Mapping[str, t.Any]:
    """Return the facts of the partition to keep; nothing where nothing is to be kept, or nothing is there yet."""
    partitions = list(disk.facts.get("partitions") or ())
    if not volume.keep_data or not partitions:
        return {}
    # As Bareon compares: within one MiB.
    for facts in partitions:
        if abs(int(facts["start"]) - begin) <= 1 and abs(int(facts["size"]) - size) <= 1:
            return t.cast("Mapping[str, t.Any]", facts)
    found = ", ".join(f"{facts['number']} ({facts['start']} MiB, {facts['size']} MiB)" for facts in partitions)
    mistakes.append(
        f"{volume.place}.keep_data: its partition would begin at {begin} MiB and have {size} MiB, but there is none like it"
        f" on {_device_name(disk)} to keep; there are {found} (begin, size)"
    )
    return {}


def _space_names(volumes: Sequence[Volume], arrays: Sequence[Array]) -> list[str]:
    """Return what the partitions of a disk are called: by name, group, array or mount point, each once."""
    names: list[str] = []
    for volume in volumes:
        array = next((array.name for array in arrays if volume in array.legs), None)
        mount = None if volume.files.mount == NOT_MOUNTED else mount_name(volume.files.mount)
        wanted = (array or volume.name or volume.group or mount or volume.kind)[:_LONGEST_NAME]
        same = sum(name == wanted or name.startswith(f"{wanted[: _LONGEST_NAME - 3]}-") for name in names)
        names.append(wanted if wanted not in names else f"{wanted[: _LONGEST_NAME - 3]}-{same + 1}")
    return names


def _numbers(kept: Sequence[int]) -> list[int]:
    free = itertools.filterfalse(set(kept).__contains__, itertools.count(1))
    return [number or next(free) for number in kept]


def _type_guid(volume: Volume) -> str:
    if volume.guid is not None:
        return volume.guid
    if volume.kind in ("raid", "pv"):
        return _RAID if volume.kind == "raid" else _LVM
    if volume.files.type == "vfat":
        return _ESP if volume.files.mount in _ESP_MOUNTS else _BASIC_DATA
    return _SWAP if volume.files.type == SWAP else _LINUX


def _plain(disk: FoundDisk, device: str, pieces: Sequence[Piece]) -> Plain:
    return {
        "name": device,
        "disk_id": disk.facts["id"],
        "label": "gpt",
        "disk_size": int(disk.facts["size"]),
        "install_bootloader": True,
        "partitions": [
            {
                "name": piece.device,
                "device": device,
                "count": piece.number,
                "begin": piece.begin,
                "end": piece.begin + piece.size,
                "partition_type": "primary",
                "guid": piece.guid,
                "uuid": piece.uuid or _identity(disk, piece.space),
                "flags": ["legacy_boot"] if piece.volume is not None and piece.volume.kind == "boot" else _FLAGS.get(piece.guid, []),
                "keep_data": piece.kept,
                "space_id": piece.space,
            }
            for piece in pieces
        ],
    }


def _identity(disk: FoundDisk, space: str) -> str:
    """Return the identity of a new partition: the same at every run for the same disk and name, so that a cut-off run is recognised."""
    facts = disk.facts
    own = [facts["id"], facts.get("wwn") or "", facts.get("serial") or "", facts.get("size_bytes") or facts["size"], space]
    return str(uuid.uuid5(_IDENTITIES, json.dumps(own)))


def _device_name(disk: FoundDisk) -> str:
    name = str(disk.facts["id"])
    return name if name.startswith("/dev/") else str(disk.facts.get("dev") or f"/dev/{name}")


def _partition_name(device: str, number: int) -> str:
    """Return the path of a partition as udev and the kernel name it."""
    if device.startswith(_LINK_FOLDERS):
        return f"{device}-part{number}"
    return f"{device}p{number}" if device[-1].isdigit() else f"{device}{number}"
