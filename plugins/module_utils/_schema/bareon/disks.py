# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The partition tables of Bareon's hand-written schema: a partition for the boot loader at the head of every disk, then the volumes.

All lie in the order of the list without gaps; the volume of size `remaining` fills the space between those before and behind.
"""

from __future__ import annotations

import itertools
import json
import typing as t
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..._storage import gpt
from ..._storage.filesystems import NOT_MOUNTED, SWAP
from ..._storage.names import LONGEST_ARRAY, why_no_array
from ..._storage.overhead import usable
from ..._storage.raid import least_legs
from .parse import DiskEntry, Mistakes, Volume

Facts = Mapping[str, t.Any]


@dataclass(frozen=True)
class FoundDisk:
    """An entry and the facts of its disk; `room` MiB of partitions may be made."""

    entry: DiskEntry
    facts: Facts
    room: int


def find_disks(entries: Sequence[DiskEntry], hardware: Facts, mistakes: Mistakes) -> tuple[FoundDisk, ...]:
    """Return the disks of the entries; one that no or several disks match, or that is asked for twice, is a mistake."""
    known = list(hardware.get("disks") or ())
    found: list[FoundDisk] = []
    users: dict[str, str] = {}
    for entry in entries:
        if not entry.id_value:
            continue
        matching = [disk for disk in known if _matches(disk, entry)]
        if len(matching) != 1:
            mistakes.append(f"{entry.place}.id: {_message(entry, matching, known)}")
            continue
        disk = matching[0]
        if users.setdefault(str(disk["id"]), entry.place) != entry.place:
            mistakes.append(
                f"{entry.place}.id: is the disk {disk['id']} of {users[str(disk['id'])]}; put all volumes of a disk into one entry"
            )
            continue
        found.append(FoundDisk(entry, disk, _room(entry, disk, mistakes)))
    return tuple(found)


def names_of(disk: Facts) -> tuple[str, ...]:
    """Return all paths by which a disk is known, the most durable first."""
    names = (disk.get("id"), disk.get("path"), *(disk.get("links") or ()), disk.get("dev"), *(disk.get("path_devices") or ()))
    return tuple(dict.fromkeys(str(name) for name in names if name))


def _matches(disk: Facts, entry: DiskEntry) -> bool:
    if entry.id_type == "scsi":
        return str(disk.get("hctl") or "") == entry.id_value
    path = entry.id_value if entry.id_value.startswith("/") else f"/dev/{entry.id_value}"
    if entry.id_type == "name":
        return path in (disk.get("dev"), *(disk.get("path_devices") or ()))
    return path in names_of(disk) or entry.id_value == disk.get("id")


def _message(entry: DiskEntry, matching: Sequence[Facts], known: Iterable[Facts]) -> str:
    if matching:
        return f"the {entry.id_type} {entry.id_value!r} is that of several disks: {', '.join(str(disk['id']) for disk in matching)}"
    there = [_described(disk, entry.id_type) for disk in known]
    return f"no disk has the {entry.id_type} {entry.id_value!r}; there are {', '.join(there) or 'none'}"


def _described(disk: Facts, id_type: str) -> str:
    if id_type == "scsi":
        return f"{disk.get('dev') or disk['id']} ({disk.get('hctl') or 'no SCSI address'})"
    return str(disk.get("dev") or disk["id"]) if id_type == "name" else str(disk["id"])


def _room(entry: DiskEntry, disk: Facts, mistakes: Mistakes) -> int:
    """Return how many MiB of partitions there may be: what the entry says, as far as the disk has room for it."""
    size = int(disk["size"])
    if entry.size.amount is None:
        return usable(size)
    if entry.size.amount > size:
        mistakes.append(f"{entry.place}.size: is {int(entry.size.amount)} MiB, but {disk.get('dev') or disk['id']} has only {size} MiB")
    return min(usable(size), int(entry.size.amount))


@dataclass(frozen=True)
class Array:
    """An array; its first leg says what the array holds, as in Bareon."""

    name: str
    legs: tuple[Volume, ...]

    @property
    def first(self) -> Volume:
        """The leg that comes first in the schema."""
        return self.legs[0]


def gather_arrays(disks: Sequence[FoundDisk], mistakes: Mistakes) -> tuple[Array, ...]:
    """Return the arrays, ordered by what their legs have in common; legs that contradict each other or are too few are mistakes."""
    legs: dict[str, list[Volume]] = {}
    places: dict[str, list[str]] = {}
    for disk in disks:
        for volume in disk.entry.volumes:
            if volume.kind != "raid":
                continue
            common = volume.name if volume.files.mount == NOT_MOUNTED else volume.files.mount
            if common is None:
                mistakes.append(f"{volume.place}.mount: the legs of an array share a mount, or a name where it is not mounted; give either")
                continue
            legs.setdefault(common, []).append(volume)
            places.setdefault(common, []).append(disk.entry.place)
    for common, volumes in legs.items():
        _check(common, volumes, places[common], mistakes)
    arrays = tuple(Array(_name(volumes), tuple(volumes)) for _common, volumes in sorted(legs.items()))
    for array in arrays:
        if why_no_array(f"/dev/md/{array.name}") is not None:
            says = f"{array.name} is no name of an array; give it one of up to {LONGEST_ARRAY} letters, digits and any of _ . -"
            mistakes.append(f"{array.first.place}.name: {says}")
    names = [array.name for array in arrays]
    mistakes.extend(f"{array.first.place}.name: two arrays are called {array.name}" for array in arrays if names.count(array.name) > 1)
    return arrays


def _check(common: str, volumes: Sequence[Volume], places: Sequence[str], mistakes: Mistakes) -> None:
    first = volumes[0]
    need = least_legs(first.level)
    if len(volumes) < need:
        mistakes.append(f"{first.place}: the array at {common} has {len(volumes)} of the {need} legs that a {first.level} needs at least")
    mistakes.extend(
        f"{volume.place}: the array at {common} already has a leg on that disk; see {volumes[places.index(place)].place}"
        for number, (volume, place) in enumerate(zip(volumes, places))
        if place in places[:number]
    )
    for volume in volumes[1:]:
        for key, own, other in (
            ("name", volume.name, first.name),
            ("level", volume.level.value, first.level.value),
            ("file_system", volume.files.type, first.files.type),
        ):
            if own is not None and own != other:
                mistakes.append(f"{volume.place}.{key}: is {own!r}, but {first.place} says {other!r} for the same array")


def _name(volumes: Sequence[Volume]) -> str:
    named = next((volume.name for volume in volumes if volume.name), None)
    return named or mount_name(volumes[0].files.mount)


def mount_name(mount: str) -> str:
    """Return what a mount point is called where a path cannot stand: `/` is root, `/var/log` is var-log."""
    return "root" if mount == "/" else mount.strip("/").replace("/", "-")


Plain = dict[str, t.Any]

LOADER = 24
"""MiB of the BIOS boot partition that Bareon makes on every disk."""

_LOADER_NAME = "bios_grub"
_ESP_MOUNTS = ("/boot/efi", "/efi")

_IDENTITIES = uuid.UUID("1d7f0c4e-51f0-5d5e-8a37-5a0c8f3b9a42")


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
    begins = [gpt.HEAD + LOADER + sum(sizes[:position]) for position in range(len(sizes))]
    spaces = _space_names(volumes, arrays)
    there = [_existing(disk, volume, begin, size, mistakes) for volume, begin, size in zip(volumes, begins, sizes)]
    kept = [0, *(int(facts.get("number") or 0) for facts in there)]
    free = itertools.filterfalse(set(kept).__contains__, itertools.count(1))
    numbers = [number or next(free) for number in kept]
    pieces = [Piece(None, _LOADER_NAME, numbers[0], gpt.HEAD, LOADER, gpt.partition_node(device, numbers[0]), gpt.BIOS_BOOT, "", False)]
    for volume, space, number, begin, size, facts in zip(volumes, spaces, numbers[1:], begins, sizes, there):
        own = gpt.partition_node(device, number)
        pieces.append(Piece(volume, space, number, begin, size, own, _type_guid(volume), str(facts.get("uuid") or ""), bool(facts)))
    return Table(tuple(pieces), _plain(disk, device, pieces))


def _sizes(disk: FoundDisk, mistakes: Mistakes) -> list[int]:
    room = disk.room - LOADER
    volumes = disk.entry.volumes
    sizes = [volume.size.within(max(room, 0)) for volume in volumes]
    left = room - sum(sizes)
    remaining = [volume.size.remaining for volume in volumes]
    if left < 0 or (any(remaining) and left == 0):
        most = usable(int(disk.facts["size"]))
        of_what = f"{most} MiB without its partition tables" if most <= disk.room else f"{disk.room} MiB by {disk.entry.place}.size"
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
        wanted = (array or volume.name or volume.group or mount or volume.kind)[: gpt.LONGEST_NAME]
        same = sum(name == wanted or name.startswith(f"{wanted[: gpt.LONGEST_NAME - 3]}-") for name in names)
        names.append(wanted if wanted not in names else f"{wanted[: gpt.LONGEST_NAME - 3]}-{same + 1}")
    return names


def _type_guid(volume: Volume) -> str:
    if volume.guid is not None:
        return volume.guid
    if volume.kind in ("raid", "pv"):
        return gpt.RAID if volume.kind == "raid" else gpt.LVM
    if volume.files.type == "vfat":
        return gpt.ESP if volume.files.mount in _ESP_MOUNTS else gpt.BASIC_DATA
    return gpt.SWAP if volume.files.type == SWAP else gpt.LINUX


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
                "flags": _flags(piece),
                "keep_data": piece.kept,
                "space_id": piece.space,
            }
            for piece in pieces
        ],
    }


def _flags(piece: Piece) -> list[str]:
    if piece.volume is not None and piece.volume.kind == "boot":
        return [gpt.LEGACY_BOOT]
    return [gpt.FLAGS_BY_TYPE[piece.guid]] if piece.guid in gpt.FLAGS_BY_TYPE else []


def _identity(disk: FoundDisk, space: str) -> str:
    """Return the identity of a new partition: the same at every run for the same disk and name, so that a cut-off run is recognised."""
    facts = disk.facts
    own = [facts["id"], facts.get("wwn") or "", facts.get("serial") or "", facts.get("size_bytes") or facts["size"], space]
    return str(uuid.uuid5(_IDENTITIES, json.dumps(own)))


def _device_name(disk: FoundDisk) -> str:
    name = str(disk.facts["id"])
    return name if name.startswith("/dev/") else str(disk.facts.get("dev") or f"/dev/{name}")
