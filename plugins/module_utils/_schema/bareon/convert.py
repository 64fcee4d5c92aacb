# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bareon's hand-written schema (`partitions`) -> the explicit one, `{parteds, pvs, vgs, lvs, mds, luks, fss}`, for one host's disks.

What Bareon's user guide says of the format holds. Where its program does otherwise by mistake, this does what the guide means:
the level of an array is read, a file system without a mount point is made, a vg's PVs and a file system's device are named by their
devices, partition_guid is the type of a partition. Two things differ on purpose: what exists is kept unless the disk may be wiped,
so that partitions_policy says nothing, and images are not deployed. Sizes and positions are MiB.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..._storage.filesystems import NOT_MOUNTED, SWAP
from ..._storage.lvm import EXTENT, PV_HEAD, mapper_node, pv_extents
from .disks import Array, Piece, Table, find_disks, gather_arrays, lay_out_disk
from .parse import DiskEntry, Entry, GroupEntry, Mistakes, Volume, closest, parse_entries

Plain = dict[str, t.Any]

_COPIES = 2

Mounted = tuple[str, str, bool, Volume]
"""A device, its space, whether its data are kept, and the volume with its file system."""


def lay_out_groups(
    groups: Sequence[GroupEntry], physical: Sequence[Piece], mistakes: Mistakes
) -> tuple[list[Plain], list[Plain], list[Plain], list[Mounted]]:
    """Return PVs, VGs and LVs as the explicit schema has them, and the volumes with what becomes of them."""
    pvs: list[Plain] = []
    vgs: list[Plain] = []
    lvs: list[Plain] = []
    mounted: list[Mounted] = []
    for group in groups:
        members = [piece for piece in physical if _group_of(piece) == group.name]
        kept = any(piece.kept for piece in members)
        pvs.extend(
            {"name": piece.device, "metadatasize": _metadata(piece), "metadatacopies": _COPIES, "keep_data": piece.kept}
            for piece in members
        )
        vgs.append({"name": group.name, "pvnames": [piece.device for piece in members], "keep_data": kept, "space_id": group.name})
        for volume, size in zip(group.volumes, _sizes(group, members, mistakes)):
            lvs.append(_logical_volume(group.name, volume, size, kept and volume.keep_data))
            mounted.append((str(lvs[-1]["device"]), str(lvs[-1]["space_id"]), bool(lvs[-1]["keep_data"]), volume))
    return pvs, vgs, lvs, mounted


def _group_of(piece: Piece) -> t.Optional[str]:
    return piece.volume.group if piece.volume is not None else None


def _metadata(piece: Piece) -> int:
    return piece.volume.metadata if piece.volume is not None else 0


def _sizes(group: GroupEntry, members: Sequence[Piece], mistakes: Mistakes) -> list[int]:
    room = sum(pv_extents(piece.size, PV_HEAD + _COPIES * _metadata(piece)) for piece in members) * EXTENT
    sizes = [volume.size.within(room, EXTENT) for volume in group.volumes]
    left = room - sum(sizes)
    remaining = [volume.size.remaining for volume in group.volumes]
    if left < 0:
        mistakes.append(
            f"{group.place}.volumes: {sum(sizes)} MiB in whole extents are {-left} MiB more than the vg {group.name} has ({room} MiB)"
        )
    elif left == 0 and any(remaining):
        mistakes.append(f"{group.place}.volumes: {sum(sizes)} MiB leave nothing of the {room} MiB of the vg {group.name} for 'remaining'")
    return [left if takes_rest else size for size, takes_rest in zip(sizes, remaining)]


def _logical_volume(group: str, volume: Volume, size: int, kept: bool) -> Plain:
    name = str(volume.name)
    return {
        "name": name,
        "vgname": group,
        "device": mapper_node(group, name),
        "size": size,
        "keep_data": kept,
        "space_id": name,
    }


Facts = Mapping[str, t.Any]


_OTHER_KEYS = ("images", "partitions_policy", "image_deploy_flags", "deploy_data", "on_fail_script")
_FIRMWARE_READS = ("/boot", "/boot/efi", "/efi")


@dataclass(frozen=True)
class Reading:
    """The explicit schema, what the user should know, and all mistakes; with mistakes the schema is empty."""

    schema: Plain
    notes: tuple[str, ...]
    mistakes: tuple[str, ...]


def read_bareon_list(schema: t.Any, hardware: Facts, place: str = "schema") -> Reading:
    """Return the explicit schema that a hand-written one makes of a host's disks, given as disk_facts returns them."""
    mistakes: Mistakes = []
    notes: list[str] = []
    entries = parse_entries(_entries_of(schema, place, notes, mistakes), _place_of(schema, place), mistakes)
    notes.extend(_notes_on_images(schema, _place_of(schema, place)))
    disks = [entry for entry in entries if isinstance(entry, DiskEntry)]
    groups = [entry for entry in entries if isinstance(entry, GroupEntry)]
    disks = [_keeping_groups(disk, groups) for disk in disks]
    _check_references(entries, mistakes)
    found = find_disks(disks, hardware, mistakes)
    arrays = gather_arrays(found, mistakes)
    if mistakes:
        # Sizes and positions follow from what is wrong, so that their mistakes would be about nothing.
        return Reading({}, tuple(notes), tuple(mistakes))
    tables = [lay_out_disk(disk, arrays, mistakes) for disk in found]
    kept_groups = [_keeping_volumes(group, hardware) for group in groups]
    result = _explicit(tables, arrays, kept_groups, mistakes, notes)
    return Reading({} if mistakes else result, tuple(notes), tuple(mistakes))


def _entries_of(schema: t.Any, place: str, notes: list[str], mistakes: Mistakes) -> t.Any:
    if not isinstance(schema, Mapping):
        return schema
    for key in schema:
        if key in _OTHER_KEYS:
            notes.append(f"{place}.{key}: has no meaning for disks here and is ignored")
        elif key != "partitions":
            mistakes.append(f"{place}.{key}: is not a key of a deploy configuration{closest(key, ('partitions', *_OTHER_KEYS))}")
    return schema.get("partitions")


def _place_of(schema: t.Any, place: str) -> str:
    return f"{place}.partitions" if isinstance(schema, Mapping) else place


def _notes_on_images(schema: t.Any, place: str) -> Iterable[str]:
    entries = schema.get("partitions") if isinstance(schema, Mapping) else schema
    for number, entry in enumerate(entries if isinstance(entries, (list, tuple)) else ()):
        volumes = entry.get("volumes") if isinstance(entry, Mapping) else None
        for position, volume in enumerate(volumes if isinstance(volumes, (list, tuple)) else ()):
            if isinstance(volume, Mapping) and "images" in volume:
                yield f"{place}[{number}].volumes[{position}].images: images are not deployed here, so this is ignored"


def _keeping_groups(disk: DiskEntry, groups: Iterable[GroupEntry]) -> DiskEntry:
    """Return the entry with the PVs kept of which any volume is to be kept: they hold its data."""
    kept = {group.name for group in groups if any(volume.keep_data for volume in group.volumes)}
    return replace(disk, volumes=tuple(replace(volume, keep_data=volume.keep_data or volume.group in kept) for volume in disk.volumes))


def _keeping_volumes(group: GroupEntry, hardware: Facts) -> GroupEntry:
    """Return the entry with those volumes kept that are there already."""
    holders = [holder for disk in hardware.get("disks") or () for holder in disk.get("holders") or ()]
    there = {holder.get("name") for holder in holders if holder.get("volume_group") == group.name}
    return replace(group, volumes=tuple(replace(volume, keep_data=volume.keep_data and volume.name in there) for volume in group.volumes))


def _check_references(entries: Sequence[Entry], mistakes: Mistakes) -> None:
    """Every vg needs a pv and the reverse; nothing may be there twice."""
    groups = {entry.name: entry for entry in entries if isinstance(entry, GroupEntry)}
    physical = [volume for entry in entries for volume in entry.volumes if volume.kind == "pv" and volume.group]
    named = {volume.group for volume in physical}
    mistakes.extend(
        f"{volume.place}.vg: there is no vg {volume.group!r}{closest(volume.group, groups)}"
        for volume in physical
        if volume.group not in groups
    )
    mistakes.extend(
        f"{entry.place}.id: no pv names the vg {name!r}, so it has no place" for name, entry in groups.items() if name and name not in named
    )
    _check_once(((entry.place + ".id", "vg", entry.name) for entry in entries if isinstance(entry, GroupEntry)), mistakes)
    for group in groups.values():
        _check_once(((volume.place + ".name", "lv", volume.name or "") for volume in group.volumes), mistakes)
    single = [
        volume for entry in entries for volume in entry.volumes if volume.kind != "raid" and volume.files.mount not in (NOT_MOUNTED, SWAP)
    ]
    _check_once(((volume.place + ".mount", "file system", volume.files.mount) for volume in single), mistakes, "is mounted at")
    for entry in entries:
        boots = [volume for volume in entry.volumes if volume.kind == "boot"]
        mistakes.extend(f"{volume.place}.type: a disk has at most one partition of the type boot" for volume in boots[1:])


def _check_once(named: Iterable[tuple[str, str, str]], mistakes: Mistakes, relation: str = "is called") -> None:
    first: dict[str, str] = {}
    for place, kind, name in named:
        if name and first.setdefault(name, place) != place:
            mistakes.append(f"{place}: another {kind} {relation} {name}, see {first[name]}")


def _explicit(
    tables: Sequence[Table], arrays: Sequence[Array], groups: Sequence[GroupEntry], mistakes: Mistakes, notes: list[str]
) -> Plain:
    pieces = [piece for table in tables for piece in table.pieces]
    physical = [piece for piece in pieces if piece.volume is not None and piece.volume.kind == "pv"]
    pvs, vgs, lvs, volumes = lay_out_groups(groups, physical, mistakes)
    mounted: list[tuple[str, str, bool, Volume]] = [
        (piece.device, piece.space, piece.kept, piece.volume)
        for piece in pieces
        if piece.volume is not None and piece.volume.kind in ("partition", "boot")
    ]
    mds = []
    for array in arrays:
        legs = [piece for piece in pieces if piece.volume in array.legs]
        if len({piece.size for piece in legs}) > 1:
            smallest = min(piece.size for piece in legs)
            notes.append(f"{array.first.place}: the legs of {array.name} differ in size; {smallest} MiB of each are used")
        mds.append(_array(array, [piece.device for piece in legs], bool(legs) and all(piece.kept for piece in legs)))
        mounted.append((str(mds[-1]["name"]), array.name, bool(mds[-1]["keep_data"]), array.first))
    mounted.extend(volumes)
    return {
        "parteds": [table.plain for table in tables],
        "mds": mds,
        "luks": [],
        "pvs": pvs,
        "vgs": vgs,
        "lvs": lvs,
        "fss": [_filesystem(*those) for those in mounted if those[3].files.type is not None],
    }


def _array(array: Array, devices: Sequence[str], kept: bool) -> Plain:
    files = array.first.files
    at_start = files.type == "vfat" or files.mount in _FIRMWARE_READS
    return {
        "name": f"/dev/md/{array.name}",
        "level": array.first.level.value,
        "devices": list(devices),
        "spares": [],
        # What the firmware or a boot loader reads has its superblock at the end.
        "metadata": "1.0" if at_start else "1.2",
        "keep_data": kept,
        "space_id": array.name,
    }


def _filesystem(device: str, space: str, kept: bool, volume: Volume) -> Plain:
    files = volume.files
    return {
        "device": device,
        "mount": files.mount,
        "fs_type": files.type,
        "fs_options": "",
        "fs_label": files.label,
        "fstab_enabled": files.in_fstab and files.mount != NOT_MOUNTED,
        "fstab_options": files.options,
        "os_id": [],
        "keep_data": kept,
        "space_id": space,
    }
