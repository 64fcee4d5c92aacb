# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The volume groups of Bareon's hand-written schema: how much they hold, and the volumes in them."""

from __future__ import annotations

import typing as t
from collections.abc import Sequence

from .disks import Piece
from .parse import GroupEntry, Mistakes, Volume

Plain = dict[str, t.Any]

EXTENT = 4
"""LVM's default extent, in MiB."""
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
        pvs.extend(_physical_volume(piece) for piece in members)
        vgs.append({"name": group.name, "pvnames": [piece.device for piece in members], "keep_data": kept, "space_id": group.name})
        for volume, size in zip(group.volumes, _sizes(group, members, mistakes)):
            lvs.append(_logical_volume(group.name, volume, size, kept and volume.keep_data))
            mounted.append((str(lvs[-1]["device"]), str(lvs[-1]["space_id"]), bool(lvs[-1]["keep_data"]), volume))
    return pvs, vgs, lvs, mounted


def _group_of(piece: Piece) -> t.Optional[str]:
    return piece.volume.group if piece.volume is not None else None


def _metadata(piece: Piece) -> int:
    return piece.volume.metadata if piece.volume is not None else 0


def _extents(piece: Piece) -> int:
    """Return how many extents a PV gives: the first begins a MiB behind the metadata, and their copy lies at the end."""
    return max(0, (piece.size - 1 - _COPIES * _metadata(piece)) // EXTENT)


def _physical_volume(piece: Piece) -> Plain:
    return {"name": piece.device, "metadatasize": _metadata(piece), "metadatacopies": _COPIES, "keep_data": piece.kept}


def _sizes(group: GroupEntry, members: Sequence[Piece], mistakes: Mistakes) -> list[int]:
    room = sum(_extents(piece) for piece in members) * EXTENT
    sizes = [volume.size.within(room, EXTENT) for volume in group.volumes]
    left = room - sum(sizes)
    remaining = [volume.size.remaining for volume in group.volumes]
    if left < 0:
        mistakes.append(
            f"{group.place}.volumes: {sum(sizes)} MiB in whole extents are {-left} MiB more than the vg {group.name} has ({room} MiB)"
        )
    elif left == 0 and any(remaining):
        mistakes.append(f"{group.place}.volumes: {sum(sizes)} MiB leave nothing that remains of the {room} MiB of the vg {group.name}")
    return [left if takes_rest else size for size, takes_rest in zip(sizes, remaining)]


def _logical_volume(group: str, volume: Volume, size: int, kept: bool) -> Plain:
    name = str(volume.name)
    return {
        "name": name,
        "vgname": group,
        "device": f"/dev/mapper/{group.replace('-', '--')}-{name.replace('-', '--')}",
        "size": size,
        "keep_data": kept,
        "space_id": name,
    }
