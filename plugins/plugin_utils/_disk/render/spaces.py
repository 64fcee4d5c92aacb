# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The spaces of a plan: what its layout makes of each, by the id of the space in the dynamic schema. Sizes are MiB."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ....module_utils._data.units import format_mib
from ....module_utils._schema.model import (
    DesiredArray,
    DesiredCache,
    DesiredContainer,
    DesiredDataset,
    DesiredFilesystem,
    DesiredGroup,
    DesiredPartition,
    DesiredPool,
    DesiredSubvolume,
    DesiredVolume,
    DesiredZpool,
    Layout,
)
from ....module_utils._storage import btrfs, gpt, zfs
from ....module_utils._storage.cache import WRITETHROUGH
from ....module_utils._storage.lvm import EXTENT
from ....module_utils._storage.raid import RaidLevel, data_legs, parse_level
from ....module_utils._storage.units import MIB
from .reasons import reasons_of
from .shapes import SpacePicture, SubvolumePicture

Plain = Mapping[str, t.Any]
Made = t.Union[DesiredPartition, DesiredZpool, DesiredGroup, DesiredArray, DesiredPool, DesiredVolume]
"""What the schema makes of a space."""

LABELS = {
    "vg": "volume group",
    "lv": "logical volume",
    "thin_pool": "thin pool",
    "thin": "thin volume",
    "zpool": "ZFS pool",
    "partition": "partition",
    "partitions": "partitions",
    "esp": "EFI system partition",
    "bios_grub": "BIOS boot partition",
}
"""The words for a person; a raid is labelled with its level."""
_KINDS: tuple[tuple[type, str], ...] = (
    (DesiredPool, "thin_pool"),
    (DesiredArray, "raid"),
    (DesiredGroup, "vg"),
    (DesiredZpool, "zpool"),
)


@dataclass(frozen=True)
class _Subject:
    """A plan to draw: its layout, the sizes that each space takes of disks, the spaces of the dynamic schema and the remarks by id."""

    layout: Layout
    on_disks: Mapping[str, Sequence[int]]
    wanted: Mapping[str, Plain]
    why: Plain
    made: Mapping[str, Made]
    filesystems: Mapping[str, Sequence[DesiredFilesystem]]
    """A space that is on several disks by itself has a file system on each."""
    encrypted: frozenset[str]
    arrays_of: Mapping[str, tuple[str, ...]]
    """The arrays that are physical volumes of a group, in that order, but for those that are caches."""
    parents: Mapping[str, str]
    """The space that a space lies in, if any; a group on several arrays is inside none of them."""
    zpool_parts: Mapping[str, str]
    """A space's role in a ZFS pool, if it holds no data: log of tank, cache of tank."""


def spaces_of(layout: Layout, on_disks: Mapping[str, Sequence[int]], schema: Sequence[Plain], why: Plain) -> tuple[SpacePicture, ...]:
    """Return the spaces as they first appear on the disks, each followed by those that lie inside it.

    `on_disks` are the sizes that each takes of disks, `schema` (the dynamic schema) and `why` (remarks by space) give their reasons.
    """
    arrays_of = {group.space: _arrays_below(layout, group) for group in layout.groups}
    parents = _parents(layout, arrays_of)
    made = {thing.space: thing for thing in _things(layout)}
    subject = _Subject(
        layout,
        on_disks,
        {str(space.get("id")): space for space in schema},
        why,
        made,
        _filesystems(layout, made),
        frozenset(_owner(layout, made, container.space, container.below) for container in layout.containers),
        arrays_of,
        parents,
        dict(_zpool_parts(layout)),
    )
    children: dict[str, list[str]] = {}
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)

    def with_children(space_id: str) -> list[SpacePicture]:
        inner = [space for child in children.get(space_id, []) for space in with_children(child)]
        outer = _space(subject, space_id, inner)
        # A group has all of the array that it lies on, whatever its volumes take.
        whole = [replace(space, size=outer.size) if space.kind == "vg" and space.inside == outer.id else space for space in inner]
        return [outer, *whole]

    shared = [
        group
        for group, arrays in arrays_of.items()
        if len(arrays) > 1 and group not in on_disks and all(array in on_disks for array in arrays)
    ]
    return tuple(space for root in (*on_disks, *shared) if root not in parents for space in with_children(root))


def _things(layout: Layout) -> Iterator[Made]:
    """Give all that is made of spaces, what lies on it after each."""
    yield from layout.partitions()
    yield from layout.zpools
    yield from layout.groups
    yield from layout.arrays
    yield from layout.pools
    yield from layout.volumes


def _owner(layout: Layout, made: Mapping[str, Made], space: str, device: str) -> str:
    """Return the space of what lies on a device: its own, or where the schema names none, that of the device."""
    below = layout.thing(device)
    if space in made or below is None:
        return space
    return _owner(layout, made, below.space, below.below) if isinstance(below, DesiredContainer) else below.space


def _filesystems(layout: Layout, made: Mapping[str, Made]) -> Mapping[str, Sequence[DesiredFilesystem]]:
    found: dict[str, list[DesiredFilesystem]] = {}
    for filesystem in layout.filesystems:
        found.setdefault(_owner(layout, made, filesystem.space, filesystem.device), []).append(filesystem)
    return found


def _arrays_below(layout: Layout, group: DesiredGroup) -> tuple[str, ...]:
    caches = {cache.device for cache in layout.caches}
    opened = {container.device: container.below for container in layout.containers}
    below = [layout.thing(opened.get(device, device)) for device in group.devices if device not in caches]
    return tuple(dict.fromkeys(array.space for array in below if isinstance(array, DesiredArray)))


def _parents(layout: Layout, arrays_of: Mapping[str, tuple[str, ...]]) -> Mapping[str, str]:
    parents = {group: arrays[0] for group, arrays in arrays_of.items() if len(arrays) == 1}
    groups = {group.name: group.space for group in layout.groups}
    pools = {(pool.group, pool.name): pool.space for pool in layout.pools}
    for volume in layout.volumes:
        parents[volume.space] = pools.get((volume.group, volume.pool)) or groups.get(volume.group, volume.group)
    for pool in layout.pools:
        parents[pool.space] = groups.get(pool.group, pool.group)
    return parents


def _zpool_parts(layout: Layout) -> Iterator[tuple[str, str]]:
    for pool in layout.zpools:
        for part in pool.parts:
            below = [layout.thing(device) for device in part.devices if part.part is not zfs.Part.SPARE]
            yield from ((thing.space, f"{part.part} of {pool.name}") for thing in below if thing is not None)


def _space(subject: _Subject, space_id: str, inner: Sequence[SpacePicture]) -> SpacePicture:
    made, sizes = subject.made.get(space_id), subject.on_disks.get(space_id, ())
    filesystems = subject.filesystems.get(space_id, ())
    first = filesystems[0] if filesystems else None
    wish = space_id if space_id in subject.wanted else _wish_of_copy(space_id, subject.wanted)
    asked = subject.wanted.get(wish, {})
    kind = str(asked.get("type") or _kind(made, filesystems))
    own_level = made.level if isinstance(made, DesiredArray) else first.level if first is not None else ""
    level = own_level or str(asked.get("level") or "raid")
    standing_by = _standing_by(subject.layout, made)
    members = sizes[: len(sizes) - len(standing_by)]
    zpool = made if isinstance(made, DesiredZpool) else None
    zpool_part = subject.zpool_parts.get(space_id, "")
    metadata = made.metadata // MIB if isinstance(made, DesiredPool) and not made.default_metadata else 0
    if zpool is not None and zpool.vdevs and members:
        size = zfs.room(_shape(zpool), min(members), zpool.ashift)
    elif zpool_part and sizes:
        size = min(sizes)
    elif isinstance(made, (DesiredPool, DesiredVolume)) and not sizes:
        size = made.size // MIB + 2 * metadata
    else:
        size = _size(kind, level, members, inner)
    arrays = subject.arrays_of.get(space_id, ())
    return SpacePicture(
        id=space_id,
        kind=kind,
        label=_label(kind, level, made, mirrored=bool(zpool_part) and len(sizes) > 1),
        size=size,
        disks=len(sizes),
        extent=made.extent // MIB if isinstance(made, DesiredGroup) else EXTENT,
        standing_by=standing_by,
        metadata=metadata,
        cache=next((_cached(cache) for cache in subject.layout.caches if cache.space == space_id), zpool_part),
        volumes=tuple(volume.id for volume in inner) if kind == "thin_pool" else (),
        lies_on=arrays if len(arrays) > 1 else (),
        inside=subject.parents.get(space_id),
        mount=_mounts([each.mount for each in filesystems])
        or _mount_point(zpool.root.mount if zpool else None)
        or _mount_point(asked.get("mount")),
        mount_options=(first.mount_options if first is not None else "") or _given(asked.get("mount_options")),
        fs_type="zfs" if kind == "zpool" else first.type if first is not None else _given(asked.get("fs_type")),
        subvolumes=tuple(map(_dataset, zpool.datasets)) if zpool else _subvolumes(filesystems),
        encrypted=space_id in subject.encrypted or asked.get("encrypt") is True,
        reasons=(
            *_given_out(inner if kind == "thin_pool" else ()),
            *reasons_of(asked or None, size - 2 * metadata, subject.why.get(wish)),
        ),
    )


def _wish_of_copy(space_id: str, wanted: Mapping[str, Plain]) -> str:
    """Return what a space is called in the schema that is made several times, each with its number."""
    name = space_id.rstrip("0123456789")
    return name if wanted.get(name, {}).get("count") is not None else space_id


def _kind(made: Made | None, filesystems: Sequence[DesiredFilesystem]) -> str:
    """Return the type of a space, in the words of the dynamic schema."""
    if isinstance(made, DesiredVolume):
        return "thin" if made.pool else "lv"
    if isinstance(made, DesiredPartition):
        several = any(filesystem.level for filesystem in filesystems)
        return "btrfs" if several else {gpt.ESP: "esp", gpt.BIOS_BOOT: "bios_grub"}.get(made.type, "partition")
    return next((kind for each, kind in _KINDS if isinstance(made, each)), "partition")


def _standing_by(layout: Layout, made: Made | None) -> tuple[str, ...]:
    """Return the disks whose partitions are spares of an array or a ZFS pool."""
    spares = made.spares if isinstance(made, (DesiredArray, DesiredZpool)) else ()
    return tuple(disk.id for name in spares for disk in layout.disks if any(part.device == name for part in disk.partitions))


def _label(kind: str, level: str, made: Made | None, *, mirrored: bool) -> str:
    if kind == "raid":
        return level
    if kind == "btrfs":
        return f"btrfs {level}"
    if kind == "zpool":
        return _zfs_words(made) if isinstance(made, DesiredZpool) else "zfs"
    usual = "zfs mirror" if mirrored else LABELS.get(kind, kind)
    return f"{usual}, {made.stripes} stripes" if isinstance(made, DesiredVolume) and made.is_striped else usual


def _zfs_words(zpool: DesiredZpool) -> str:
    kind = zpool.vdevs[0].type if zpool.vdevs else ""
    return f"zfs {len(zpool.vdevs)} x {kind}" if len(zpool.vdevs) > 1 and kind != zfs.Vdev.STRIPE else f"zfs {kind}".strip()


def _shape(zpool: DesiredZpool) -> zfs.Shape:
    return zfs.Shape(zfs.Vdev(zpool.vdevs[0].type), len(zpool.vdevs), len(zpool.vdevs[0].devices))


def _size(kind: str, level: str, sizes: Sequence[int], inner: Sequence[SpacePicture]) -> int:
    """Return what a space offers that takes these sizes of disks, or that others lie in."""
    if kind == "raid" and sizes:
        known = parse_level(level)
        return min(sizes) * (data_legs(known, len(sizes)) if known is not None else len(sizes))
    if kind == "btrfs" and sizes and level in btrfs.LEVELS:
        return min(sizes) * btrfs.data_legs(RaidLevel(level), len(sizes))
    return sum(sizes) if sizes else sum(space.size for space in inner)


def _cached(cache: DesiredCache) -> str:
    """Return what a cache is one of, and how."""
    return f"cache of {cache.origin}" + (f", {cache.mode}" if cache.mode != WRITETHROUGH else "")


def _given_out(volumes: Sequence[SpacePicture]) -> Iterator[str]:
    """Give what the volumes in a thin pool may come to."""
    if volumes:
        named = (f"{volume.id} {format_mib(volume.size)}{f' on {volume.mount}' if volume.mount else ''}" for volume in volumes)
        yield f"its volumes may come to {format_mib(sum(volume.size for volume in volumes))}: {', '.join(named)}"


def _dataset(dataset: DesiredDataset) -> SubvolumePicture:
    return SubvolumePicture(dataset.name, _mount_point(dataset.mount), _quota(dataset.quota), "dataset")


def _subvolumes(filesystems: Sequence[DesiredFilesystem]) -> tuple[SubvolumePicture, ...]:
    """Return the subvolumes of a space; where it has a file system on each of several disks, mounted from the first to the last."""
    first = filesystems[0].subvolumes if filesystems else ()
    return tuple(
        _subvolume(own, [each.subvolumes[at] for each in filesystems if len(each.subvolumes) > at]) for at, own in enumerate(first)
    )


def _subvolume(first: DesiredSubvolume, same: Sequence[DesiredSubvolume]) -> SubvolumePicture:
    return SubvolumePicture(first.name, _mounts([each.mount for each in same]), _quota(first.limit))


def _quota(size: int | None) -> int | None:
    return None if size is None else size // MIB


def _mounts(places: Sequence[str]) -> str | None:
    """Return where a space is mounted; one that is on several disks by itself, from the first to the last."""
    mounts = [mount for mount in map(_mount_point, places) if mount]
    return f"{mounts[0]} … {mounts[-1]}" if len(mounts) > 1 else mounts[0] if mounts else None


def _mount_point(value: t.Any) -> str | None:
    return None if value in ("none", "swap") else _given(value)


def _given(value: t.Any) -> str | None:
    return None if value in (None, "") else str(value)
