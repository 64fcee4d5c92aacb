# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a machine stays: the spaces whose data is to be kept, and what their vgs have for others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ....module_utils._data.errors import Mistakes
from ....module_utils._storage import lvm, overhead
from ....module_utils._storage.raid import data_legs
from ..existing import are_close, describe
from ..model import ExistingSpace, Hardware, Piece, Schema, Space, SpaceType


@dataclass(frozen=True)
class Kept:
    """What stays: `spaces` (positions) as `pieces` with a start, and `volumes` (position -> MiB).

    `extents` of kept vgs (by position) are those that no kept volume takes.
    """

    spaces: frozenset[int] = frozenset()
    pieces: tuple[Piece, ...] = ()
    volumes: Mapping[int, int] = field(default_factory=dict)
    extents: Mapping[int, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def find_kept(hardware: Hardware, schema: Schema) -> Kept:
    """Return where the spaces with `keep_data` are now; those that are not there yet are planned as new, with a warning.

    A vg stays with the first of its volumes that does, and with the arrays it is on. Raises InputError for an lv that is there
    while its vg is not: creating the vg would destroy it; and for a name that is not there while one much like it is.
    """
    wanted = {at for at, space in enumerate(schema.spaces) if space.keep_data}
    _check_near_misses(hardware, schema, wanted)
    needed = {space.volume_group for at, space in enumerate(schema.spaces) if at in wanted and space.volume_group}
    staying = [at for at, space in enumerate(schema.spaces) if at in wanted or space.id in needed]
    found = {at: list(_existing(hardware, schema.spaces[at])) for at in staying}
    pieces = [
        Piece(at, disk, existing.size, existing.start)
        for at in staying
        if schema.spaces[at].volume_group is None
        for disk, existing in found[at]
    ]
    _check_whole_disks(hardware, schema, pieces)
    _check_doubles(hardware, schema, pieces)
    kept = {piece.space for piece in pieces}
    kept |= {at for at in staying if _arrays_of(schema, at) and _arrays_of(schema, at) <= kept}
    volumes = {at: sum(existing.size for _disk, existing in found[at]) for at in staying if schema.spaces[at].volume_group and found[at]}
    _check_groups(schema, kept, volumes)
    missing = [schema.spaces[at].id for at in staying if at in wanted and at not in kept and at not in volumes]
    return Kept(
        spaces=frozenset(kept | volumes.keys()),
        pieces=tuple(pieces),
        volumes=volumes,
        extents=_free_extents(hardware, schema, pieces, volumes),
        warnings=tuple(f"{name} is to be kept, but is not on any disk yet; it will be made" for name in missing),
    )


def _check_whole_disks(hardware: Hardware, schema: Schema, kept: Iterable[Piece]) -> None:
    """Raise InputError for disks that are to be left whole for a space while something on them is kept."""
    mistakes = Mistakes()
    for piece in kept:
        for space in schema.spaces:
            if space.type is SpaceType.DISK and piece.disk in space.allowed:
                name = hardware.disks[piece.disk].id
                says = f"takes {name} whole, on which {schema.spaces[piece.space].id} is kept; exclude this disk with disks or avoid_disks"
                mistakes.add(f"{space.place}.disks", says)
    mistakes.check()


def _check_doubles(hardware: Hardware, schema: Schema, kept: Iterable[Piece]) -> None:
    """Raise InputError for a partition that two spaces keep, one of them or both by something else than their ids."""
    mistakes = Mistakes()
    first: dict[tuple[int, int | None], Space] = {}
    for piece in kept:
        space = schema.spaces[piece.space]
        other = first.setdefault((piece.disk, piece.start), space)
        if other is not space and (space.kept_at is not None or other.kept_at is not None):
            found = next(one for one in hardware.disks[piece.disk].existing if one.start == piece.start)
            key = "keep_data" if space.kept_at is None else "keep"
            says = f"keeps {describe(hardware.disks[piece.disk], found)}, as {other.id} does; let one space keep it"
            mistakes.add(f"{space.place}.{key}", says)
    mistakes.check()


def _existing(hardware: Hardware, space: Space) -> Iterator[tuple[int, ExistingSpace]]:
    for position, disk in enumerate(hardware.disks):
        for existing in disk.existing:
            if _is_kept(space, position, existing):
                yield position, existing


def _is_kept(space: Space, disk: int, existing: ExistingSpace) -> bool:
    if existing.volume_group != space.volume_group:
        return False
    if space.kept_at is not None:
        return (disk, existing.start) in space.kept_at
    return bool({space.id, space.partition_label or space.id} & {existing.name, existing.label})


def _check_near_misses(hardware: Hardware, schema: Schema, wanted: Collection[int]) -> None:
    """Raise InputError for spaces to be kept that are not there while something is that nobody else keeps, of a name much like theirs."""
    spaces = [schema.spaces[at] for at in sorted(wanted)]
    there = [(position, existing) for position, disk in enumerate(hardware.disks) for existing in disk.existing]
    free = [(position, one) for position, one in there if not any(_is_kept(space, position, one) for space in spaces)]
    mistakes = Mistakes()
    for space in spaces:
        if space.kept_at is not None or any(_is_kept(space, *one) for one in there):
            continue
        close = [one for one in free if one[1].volume_group == space.volume_group and _is_close(space, one[1])]
        if close:
            position, existing = close[0]
            found = describe(hardware.disks[position], existing)
            number = f", with keep: {{number: {existing.number}}}" if existing.number is not None else ""
            says = f"there is no {space.id}, but {found}; name what is to be kept as it is called{number}, or drop keep_data to make it new"
            mistakes.add(f"{space.place}.keep_data", says)
    mistakes.check()


def _is_close(space: Space, existing: ExistingSpace) -> bool:
    return any(
        are_close(one, other)
        for one in (space.id, space.partition_label or space.id)
        for other in (existing.name, existing.label)
        if one and other
    )


def _arrays_of(schema: Schema, group: int) -> set[int]:
    contained = schema.spaces[group].contains
    return {at for at, space in enumerate(schema.spaces) if space.type is SpaceType.RAID and space.id in contained}


def _check_groups(schema: Schema, kept: set[int], volumes: Mapping[int, int]) -> None:
    mistakes = Mistakes()
    for position in volumes:
        space = schema.spaces[position]
        if not any(schema.spaces[at].id == space.volume_group for at in kept):
            says = f"{space.id} is there, but no PV named {space.volume_group} (its vg) is; name the PVs' partitions after the vg"
            mistakes.add(f"{space.place}.keep_data", says)
    mistakes.check()


def _free_extents(hardware: Hardware, schema: Schema, pieces: list[Piece], volumes: Mapping[int, int]) -> dict[int, int]:
    """Return what vgs on kept partitions and arrays have for new volumes: all but the kept ones and those the schema does not know."""
    extents: dict[int, int] = {}
    for group, space in enumerate(schema.spaces):
        if space.type is not SpaceType.VOLUME_GROUP:
            continue
        encrypted = space.encrypt or any(member.encrypt for member in schema.spaces if member.volume_group == space.id)
        extent = space.extent_size
        room = [lvm.pv_extents(piece.size, overhead.pv_head(encrypted), extent) for piece in pieces if piece.space == group]
        room += [_extents_on(schema.spaces[array], pieces, array, encrypted, extent) for array in _arrays_of(schema, group)]
        if any(room):
            extents[group] = sum(room) - _taken(hardware, schema, space, volumes)
    return {group: max(0, free) for group, free in extents.items()}


def _extents_on(array: Space, pieces: list[Piece], position: int, encrypted: bool, extent: int) -> int:
    """Return the extents that a kept array offers; 0 for one that is not kept."""
    legs = [piece.size for piece in pieces if piece.space == position]
    if not legs or array.level is None:
        return 0
    leg, data = min(legs), data_legs(array.level, len(legs) - array.spares_among(len(legs)))
    capacity = data * (leg - overhead.md_reserve(leg, overhead.md_metadata(array.boot), data))
    return lvm.pv_extents(capacity, overhead.array_pv_head(data, encrypted), extent)


def _taken(hardware: Hardware, schema: Schema, group: Space, volumes: Mapping[int, int]) -> int:
    staying = [size for at, size in volumes.items() if schema.spaces[at].volume_group == group.id]
    known = {member.id for member in schema.spaces if member.volume_group == group.id}
    present = [there for disk in hardware.disks for there in disk.existing if there.volume_group == group.id]
    staying += [there.size for there in present if there.name not in known]
    return sum(-(-size // group.extent_size) for size in staying)
