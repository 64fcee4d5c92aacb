# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The contents of a layout's disks as text, before and after steps: the two sides of a diff. Pure.

The second follows from the first and the steps alone, so that check mode shows what a run will show.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import replace

from .._facts.present import Present
from .._facts.tree import Device
from .._steps import luks, md
from .._steps.cache import cached_by
from .._steps.filesystem import TORN
from .._steps.lvm import physical_volume, volume_piece
from .._steps.partitions import disk_heading, partition_title
from .._steps.picture import Picture, Piece, labelled
from .._steps.step import Step
from .._steps.thin import pool_content
from .._steps.zfs import dataset_piece
from .._storage import zfs
from .._storage.filesystems import EXT4
from .._storage.lvm import mapper_node
from .._storage.units import MIB, in_mib

_MEMBER = "linux_raid_member"
_MEMBERSHIPS = {_MEMBER: md.MEMBER, "crypto_LUKS": luks.HEADER}


def picture_of(present: Present, disks: Iterable[str]) -> Picture:
    """Return the picture of the disks of these kernel names."""
    pieces: dict[str, Piece] = {}
    for name in disks:
        disk = present.tree.devices[name]
        identity = next((known.id for known in present.disks if known.device.name == name), str(disk.dev))
        pieces[_key(disk)] = Piece(disk_heading(identity, disk.table is not None), (0, ""), "", disk.size, (), _content(present, disk))
        for device in present.tree.descendants(name):
            volume = next((known for known in present.logical if known.uuid == device.uuid), None) if device.kind == "lvm" else None
            if volume is not None and volume.is_pool:
                below, holds = _parents(present, device), pool_content(volume.metadata)
                pieces[mapper_node(volume.group, volume.name)] = volume_piece(volume.group, volume.name, volume.size, below, holds)
                continue
            if device.is_part or _is_seen_through_member(present, device):
                continue
            below = (mapper_node(volume.group, volume.pool),) if volume is not None and volume.pool else _parents(present, device)
            if volume is not None and volume.origin:
                below = (mapper_node(volume.group, volume.origin),)
            piece = _piece(present, device, pieces[_key(disk)].heading, below)
            uuid = str(device.filesystem.uuid) if device.filesystem is not None else ""
            cache = cached_by(volume.cache, volume.mode) if volume is not None and volume.cache else ""
            pieces[_key(device)] = replace(piece, subvolumes=present.subvolumes.get(uuid, {}), uuid=uuid, cache=cache)
    return {**pieces, **_zpool_pieces(present, pieces)}


def _zpool_pieces(present: Present, pieces: Picture) -> Picture:
    """Return the datasets of imported ZFS pools that are on these pieces."""
    found: dict[str, Piece] = {}
    for pool in present.zpools:
        members = [_key(device) for device in present.tree.devices.values() if present.zpool_on(device) is pool]
        if pieces.keys() & set(members):
            for dataset in zfs.outer_first(pool.datasets):
                name = f"{pool.name}/{dataset}" if dataset else pool.name
                on = (name.rpartition("/")[0],) if dataset else tuple(members)
                found[name] = dataset_piece(name, on, pool.datasets[dataset])
    return found


def _parents(present: Present, device: Device) -> tuple[str, ...]:
    """Return the keys of what a device is built on, through parts of volumes, which are in no picture."""
    found: dict[str, None] = {}
    for parent in (present.tree.devices[name] for name in device.parents if name in present.tree.devices):
        found.update(dict.fromkeys(_parents(present, parent) if parent.is_part else (_key(parent),)))
    return tuple(found)


def after(picture: Picture, steps: Iterable[Step]) -> Picture:
    """Return the picture after the steps."""
    return functools.reduce(lambda before, step: step.after(before), steps, picture)


def render(picture: Picture) -> str:
    """Return the picture as text: disks first, then what is built on them, each with its parts in their order."""
    headings: dict[str, list[Piece]] = {}
    for piece in picture.values():
        headings.setdefault(piece.heading, []).append(piece)
    ordered = sorted(headings, key=lambda heading: (all(piece.on for piece in headings[heading]), heading))
    lines = [line for heading in ordered for line in (heading, *_lines(headings[heading]))]
    return "".join(f"{line}\n" for line in lines)


def _lines(pieces: Iterable[Piece]) -> list[str]:
    parts = sorted((piece for piece in pieces if piece.title or piece.holds), key=lambda piece: piece.order)
    return [f"  {_line(piece)}" for piece in parts]


def _line(piece: Piece) -> str:
    size = f"{piece.size // MIB} MiB" if piece.size and piece.title else ""
    holds = f"{piece.holds} with {_listed_subvolumes(piece)}" if piece.holds and piece.subvolumes else piece.holds
    limits = [f"{name} {in_mib(piece.sizes[name])}" for name in sorted(piece.sizes)]
    return ", ".join(part for part in (piece.title, size, holds or "nothing on it", *limits, piece.cache) if part)


def _listed_subvolumes(piece: Piece) -> str:
    limits = ((name, piece.subvolumes[name]) for name in sorted(piece.subvolumes))
    return " ".join(name if limit is None else f"{name} ({in_mib(limit)} at most)" for name, limit in limits)


def _key(device: Device) -> str:
    if device.kind == "lvm" and device.group and device.title:
        return mapper_node(device.group, device.title)
    return device.dev or device.name


def _piece(present: Present, device: Device, disk: str, below: tuple[str, ...]) -> Piece:
    holds, title = _content(present, device), str(device.title or device.name)
    if device.partition is not None:
        entry = device.partition
        return Piece(disk, (entry.number, ""), partition_title(entry.number, entry.name or ""), entry.size, below, holds)
    if device.kind == "lvm":
        return volume_piece(str(device.group), title, device.size, below, holds)
    if device.kind == "crypt":
        return luks.mapping_piece(title, below, holds)
    return md.array_piece(title, device.kind, below, holds)


def _is_member(device: Device) -> bool:
    return any(signature.type == _MEMBER for signature in device.signatures)


def _is_seen_through_member(present: Present, device: Device) -> bool:
    """Return whether a closed container is only visible on a mirror's leg: with metadata at its end the leg begins as the array does."""
    parents = (present.tree.devices[parent] for parent in device.parents if parent in present.tree.devices)
    return device.kind == "crypt" and not device.running and any(_is_member(parent) for parent in parents)


def _content(present: Present, device: Device) -> str:
    if _is_member(device):
        return _MEMBERSHIPS[_MEMBER]
    pool = present.zpool_on(device)
    if pool is not None:
        return labelled(zfs.MEMBER, pool.name)
    torn = present.torn.get(device.name)
    if torn is not None:
        return f"{labelled(EXT4, torn.label)}{TORN}"
    if device.filesystem is None:
        return ""
    kind, label = device.filesystem.type, device.filesystem.label
    if kind == "LVM2_member":
        volume = present.physical_on(device.name)
        return physical_volume(volume.group if volume is not None else None)
    return _MEMBERSHIPS.get(kind) or labelled(kind, label or "")
