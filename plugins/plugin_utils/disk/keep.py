# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Spaces whose data is to be kept: where they lie now, so that the rest is planned around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..common.errors import Mistakes
from . import overhead
from .model import ExistingSpace, Hardware, Piece, Schema, Space, SpaceType


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

    Raises InputError for an lv that is there while its vg is not: making the vg anew would destroy it.
    """
    pieces: list[Piece] = []
    volumes: dict[int, int] = {}
    warnings: list[str] = []
    mistakes = Mistakes()
    wanted = {at for at, space in enumerate(schema.spaces) if space.keep_data}
    groups = {space.volume_group for at, space in enumerate(schema.spaces) if at in wanted and space.volume_group}
    for position, space in enumerate(schema.spaces):
        if position not in wanted and space.id not in groups:
            continue
        found = list(_existing(hardware, space))
        if not found:
            if position in wanted:
                warnings.append(f"{space.id} is to be kept, but is not on any disk yet; it will be made")
        elif space.volume_group is None:
            pieces += [Piece(position, disk, existing.size, existing.start) for disk, existing in found]
        else:
            volumes[position] = sum(existing.size for _disk, existing in found)
    kept = frozenset({piece.space for piece in pieces})
    for position in volumes:
        space = schema.spaces[position]
        if not any(schema.spaces[piece].id == space.volume_group for piece in kept):
            says = f"{space.id} is there, but no PV named {space.volume_group} (its vg) is; name the PVs' partitions after the vg"
            mistakes.add(f"{space.place}.keep_data", says)
    mistakes.check()
    return Kept(kept | frozenset(volumes), tuple(pieces), volumes, _free_extents(hardware, schema, pieces, volumes), tuple(warnings))


def _existing(hardware: Hardware, space: Space) -> Iterator[tuple[int, ExistingSpace]]:
    for position, disk in enumerate(hardware.disks):
        for existing in disk.existing:
            if existing.volume_group == space.volume_group and space.id in (existing.name, existing.label):
                yield position, existing


def _free_extents(hardware: Hardware, schema: Schema, pieces: list[Piece], volumes: Mapping[int, int]) -> dict[int, int]:
    """Return what kept vgs have for new volumes: all but the kept volumes and those that the schema does not know."""
    extents: dict[int, int] = {}
    for piece in pieces:
        space = schema.spaces[piece.space]
        if space.type is SpaceType.VOLUME_GROUP:
            members = [member for member in schema.spaces if member.volume_group == space.id]
            head = overhead.pv_head(space.encrypt or any(member.encrypt for member in members))
            extents[piece.space] = extents.get(piece.space, 0) + overhead.pv_extents(piece.size, head)
    for group in extents:
        name = schema.spaces[group].id
        staying = [size for at, size in volumes.items() if schema.spaces[at].volume_group == name]
        known = {member.id for member in schema.spaces if member.volume_group == name}
        staying += [
            there.size for disk in hardware.disks for there in disk.existing if there.volume_group == name and there.name not in known
        ]
        extents[group] = max(0, extents[group] - sum(-(-size // overhead.EXTENT) for size in staying))
    return extents
