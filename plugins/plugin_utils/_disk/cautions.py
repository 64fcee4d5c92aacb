# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a user should know of a plan that is made all the same: its warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...module_utils._data.units import format_mib
from ...module_utils._data.words import listed
from ...module_utils._storage import overhead
from ...module_utils._storage.cache import WRITEBACK
from ...module_utils._storage.filesystems import made_on
from ...module_utils._storage.raid import RaidLevel
from .model import Allocation, Hardware, Schema, Space, SpaceType
from .schema.eligible import not_empty, same_wwn
from .static.explicit import pool_parts

_FEW = 3
_NEGLIGIBLE = 0.001


def warnings_of(hardware: Hardware, schema: Schema, allocation: Allocation, earlier: Sequence[str] = ()) -> list[str]:
    """Return all that a user should know of a plan; `earlier` was known before it was solved."""
    warnings = [*same_wwn(hardware), *schema.warnings, *earlier, *allocation.warnings]
    for position, size in allocation.off_preferred.items():
        readable = f" ({format_mib(size)})" if size >= 1024 else ""
        warnings.append(f"{schema.spaces[position].id}: {size} MiB{readable} do not fit on its preferred disks")
    if not allocation.proven:
        warnings.append(_unproven(schema, allocation))
    full = [] if not schema.flat else _without_room_for_table(hardware, allocation)
    if full:
        warnings.append(
            f"no room is left for a partition table on {', '.join(full)}, as lvs straight on disks are planned without overhead;"
            " to carry the plan out put them into a vg or reserve 2 MiB"
        )
    warnings.extend(_too_small(hardware, schema, allocation))
    warnings.extend(_overcommitted(schema, allocation))
    warnings.extend(_at_risk(schema, allocation))
    warnings.extend(_mixed_blocks(hardware, schema, allocation))
    warnings.extend(_what_is_there(hardware, schema, allocation))
    return warnings


def _unproven(schema: Schema, allocation: Allocation) -> str:
    names = [schema.spaces[position].id for position in allocation.open_level]
    level = f"the level of {', '.join(names[:_FEW])}{' and others' if len(names) > _FEW else ''}" if names else "the sizes"
    gap = f"up to {allocation.gap:.1%} more" if allocation.gap >= _NEGLIGIBLE else "a little more"
    return f"the plan is not proven to be the best: the search ended at its limits with {level} open, where {gap} may be possible"


def preferences_lvm_ignores(schema: Schema) -> Iterator[str]:
    """Warn of every group whose volumes prefer other disks than the group: LVM chooses where in the group volumes lie."""
    arrays = {space.id for space in schema.spaces if space.type is SpaceType.RAID}
    for group in schema.spaces:
        preferring = [
            space.id
            for space in schema.spaces
            if space.volume_group == group.id
            and space.preferred_disks != group.preferred_disks
            and len(space.allowed) > 1
            # The PVs of a striped volume are given to LVM.
            and not space.is_striped
        ]
        # Of a group on arrays the planner says that it does not choose its disks at all.
        if preferring and not arrays & set(group.contains):
            names = listed(preferring)
            yield (
                f"{group.id}: the disks and sizes of the plan follow best_with_disks of {names}, but LVM puts volumes"
                f" anywhere in {group.id}; set it on {group.id}, or put {names} into another vg"
            )


def _what_is_there(hardware: Hardware, schema: Schema, allocation: Allocation) -> list[str]:
    """Return warnings about disks that something new is planned on though something is there that no plan made."""
    taken = sorted({piece.disk for piece in allocation.pieces if piece.start is None and piece.size > 0})
    kept = {(piece.disk, piece.start) for piece in allocation.pieces if piece.start is not None}
    staying = {
        disk
        for disk in taken
        if (own := [there for there in hardware.disks[disk].existing if there.volume_group is None])
        and all((disk, there.start) in kept for there in own)
    }
    there = [(disk, not_empty(hardware.disks[disk])) for disk in taken if disk not in staying]
    left_whole = {piece.disk for piece in allocation.pieces if schema.spaces[piece.space].type is SpaceType.DISK}
    return [
        f"{hardware.disks[disk].id} is not empty, there is {what} on it; "
        + ("empty it before the program that gets the whole disk sees it" if disk in left_whole else "it stays until wipe names the disk")
        for disk, what in there
        if what
    ]


def _too_small(hardware: Hardware, schema: Schema, allocation: Allocation) -> Iterator[str]:
    """Give a warning for each partition of those spread over disks that is too small for what is to lie on it."""
    for piece in allocation.pieces:
        space = schema.spaces[piece.space]
        if space.type is SpaceType.PARTITIONS and piece.start is None:
            kind, sector = made_on(space.fs_type, space.mount), hardware.disks[piece.disk].logical_block
            least = overhead.least_device(kind, space.encrypt, space.fs_options or "", sector)
            if 0 < piece.size < least:
                yield (
                    f"{space.id}: its partition on {hardware.disks[piece.disk].id} has {piece.size} MiB, of the {least} MiB that what lies"
                    " there takes, so it cannot be made; let it be smaller, or use fewer disks"
                )


def _overcommitted(schema: Schema, allocation: Allocation) -> list[str]:
    """Return warnings about thin pools whose volumes seem to have more than there is."""
    warnings = []
    for position, pool in enumerate(schema.spaces):
        if pool.type is SpaceType.THIN_POOL and position in allocation.volumes:
            size = pool_parts(schema, allocation, position).size
            inside = [space for space in schema.spaces if space.thin_pool == pool.id]
            given_out = sum(space.min_size for space in inside)
            if given_out > size:
                says = (
                    f"{pool.id}: {listed([space.id for space in inside])} may come to {format_mib(given_out)}, {given_out / size:.2f} times"
                )
                warnings.append(f"{says} the {format_mib(size)} that there are; when they are full, writes to all its volumes fail")
    return warnings


def _at_risk(schema: Schema, allocation: Allocation) -> list[str]:
    """Return warnings about caches that hold the only copy of what was written, on one disk."""
    made = {piece.space for piece in allocation.pieces if piece.size > 0}
    return [
        f"{space.id}: with writeback, unflushed writes to {space.cache_of} are lost if this disk fails; mirror: required puts it on two"
        for at, space in enumerate(schema.spaces)
        if space.cache_of is not None and space.cache_mode == WRITEBACK and at in made and not _is_mirrored(space)
    ]


def _is_mirrored(space: Space) -> bool:
    return space.type is SpaceType.RAID and space.level is not RaidLevel.RAID0


def _mixed_blocks(hardware: Hardware, schema: Schema, allocation: Allocation) -> list[str]:
    """Return warnings about vgs on disks of different logical blocks: a file system made for the smaller ones fails on the larger."""
    blocks: dict[int, set[int]] = {}
    for piece in allocation.pieces:
        blocks.setdefault(piece.space, set()).add(hardware.disks[piece.disk].logical_block)
    return [
        f"{schema.spaces[position].id}: its disks have logical blocks of {listed([str(size) for size in sorted(sizes)])} bytes,"
        " which LVM only joins with a special option; keep them apart with disks or best_with_disks and logical_block"
        for position, sizes in blocks.items()
        if schema.spaces[position].type is SpaceType.VOLUME_GROUP and len(sizes) > 1
    ] + list(_larger_blocks(schema, blocks))


def _larger_blocks(schema: Schema, blocks: Mapping[int, set[int]]) -> Iterator[str]:
    """Give warnings about caches on disks with larger logical blocks than those that they cache: what is cached gets them, too."""
    on = {schema.spaces[position].id: max(sizes) for position, sizes in blocks.items()}
    for space in schema.spaces:
        if space.cache_of is None or space.id not in on:
            continue
        group = schema.by_id(schema.by_id(space.cache_of).volume_group or "")
        slow = [on[name] for name in (group.id, *group.contains) if name in on]
        if slow and on[space.id] > max(slow):
            yield (
                f"{space.id}: its disk has logical blocks of {on[space.id]} bytes, that of {space.cache_of} of {max(slow)}; a file system"
                " made for these cannot be mounted any more once it is cached, so choose another disk for the cache"
            )


def _without_room_for_table(hardware: Hardware, allocation: Allocation) -> list[str]:
    used = [0] * len(hardware.disks)
    for piece in allocation.pieces:
        used[piece.disk] += piece.size
    return [disk.id for disk, size in zip(hardware.disks, used, strict=True) if size > disk.size - 2]
