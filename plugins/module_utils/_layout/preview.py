# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is on a layout's disks as text to read, as it is and as it will be after steps: the two sides of a diff. Pure.

What will be follows from what is and the steps alone, so that check mode shows what a run will show.
"""

from __future__ import annotations

import functools
import typing as t
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from .._facts.present import LogicalVolume, Present
from .._facts.tree import Device
from .._steps import kinds
from .._steps.kinds import Step
from .._storage import zfs
from .._storage.filesystems import EXT4
from .._storage.lvm import mapper_node
from .._storage.units import MIB, in_mib

_MEMBER = "linux_raid_member"
_MEMBERSHIPS = {_MEMBER: "member of an array", "crypto_LUKS": "LUKS", "LVM2_member": "physical volume"}

_TORN = " with a torn superblock"
_ARRAYS, _MAPPINGS = "arrays", "LUKS mappings"


@dataclass(frozen=True)
class Piece:
    """A device: the heading it stands under, its place there, what it is called, what is on it, and on what (keys) it lies itself.

    `size` is bytes; 0 where it follows from what is below. `cache` says what it is cached by. `subvolumes` are those of a Btrfs with
    their limits, `uuid` is that of the filesystem, which may lie on several devices.
    """

    heading: str
    order: tuple[int, str]
    title: str
    size: int
    on: tuple[str, ...]
    holds: str = ""
    subvolumes: Mapping[str, t.Optional[int]] = field(default_factory=dict)
    uuid: str = ""
    cache: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Of a dataset: what it may have at most (quota), and has for itself (reservation)."""


Picture = Mapping[str, Piece]
"""Pieces by node; volumes by their mapper node."""


def picture_of(present: Present, disks: Iterable[str]) -> Picture:
    """Return the picture of the disks of these kernel names."""
    pieces: dict[str, Piece] = {}
    for name in disks:
        disk = present.tree.devices[name]
        identity = next((known.id for known in present.disks if known.device.name == name), str(disk.dev))
        pieces[_key(disk)] = Piece(_heading(identity, disk.table is not None), (0, ""), "", disk.size, (), _content(present, disk))
        for device in present.tree.descendants(name):
            volume = next((known for known in present.logical if known.uuid == device.uuid), None) if device.kind == "lvm" else None
            if volume is not None and volume.is_pool:
                pieces[mapper_node(volume.group, volume.name)] = _pool_piece(volume, _parents(present, device))
                continue
            if device.is_part or _is_seen_through_member(present, device):
                continue
            below = (mapper_node(volume.group, volume.pool),) if volume is not None and volume.pool else _parents(present, device)
            piece = _piece(present, device, pieces[_key(disk)].heading, below)
            uuid = str(device.filesystem.uuid) if device.filesystem is not None else ""
            cache = _cached_by(volume.cache, volume.mode) if volume is not None and volume.cache else ""
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
                found[name] = _dataset_piece(name, on, pool.datasets[dataset])
    return found


def _parents(present: Present, device: Device) -> tuple[str, ...]:
    """Return the keys of what a device is built on, through parts of volumes, which are in no picture."""
    found: dict[str, None] = {}
    for parent in (present.tree.devices[name] for name in device.parents if name in present.tree.devices):
        found.update(dict.fromkeys(_parents(present, parent) if parent.is_part else (_key(parent),)))
    return tuple(found)


def _pool_piece(pool: LogicalVolume, below: tuple[str, ...]) -> Piece:
    return Piece(_group_heading(pool.group), (0, pool.name), pool.name, pool.size, below, _holds_of_pool(pool.metadata))


def _cached_by(cache: str, mode: str) -> str:
    return f"cached by {cache} ({mode})"


def _holds_of_pool(metadata: int) -> str:
    return f"thin pool with {in_mib(metadata)} of metadata"


def after(picture: Picture, steps: Iterable[Step]) -> Picture:
    """Return the picture as the steps will have made it."""
    return functools.reduce(_apply, steps, picture)


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


def _heading(disk: str, table: bool) -> str:
    return f"disk {disk}" if table else f"disk {disk} without a partition table"


def _piece(present: Present, device: Device, disk: str, below: tuple[str, ...]) -> Piece:
    holds, title = _content(present, device), str(device.title or device.name)
    if device.partition is not None:
        entry = device.partition
        return Piece(disk, (entry.number, ""), _partition_title(entry.number, entry.name or ""), entry.size, below, holds)
    if device.kind == "lvm":
        return Piece(_group_heading(str(device.group)), (0, title), title, device.size, below, holds)
    if device.kind == "crypt":
        return Piece(_MAPPINGS, (0, title), title, 0, below, holds)
    return Piece(_ARRAYS, (0, title), f"{title.rpartition(':')[2]} {device.kind}", 0, below, holds)


def _partition_title(number: int, name: str) -> str:
    return f"{number}: {name}" if name else f"{number}"


def _group_heading(group: str) -> str:
    return f"volume group {group}"


def _is_member(device: Device) -> bool:
    return any(signature.type == _MEMBER for signature in device.signatures)


def _is_seen_through_member(present: Present, device: Device) -> bool:
    """Return whether it is a closed container of which only the leg of a mirror tells: with metadata at its end it begins as the array."""
    parents = (present.tree.devices[parent] for parent in device.parents if parent in present.tree.devices)
    return device.kind == "crypt" and not device.running and any(_is_member(parent) for parent in parents)


def _content(present: Present, device: Device) -> str:
    if _is_member(device):
        return _MEMBERSHIPS[_MEMBER]
    pool = present.zpool_on(device)
    if pool is not None:
        return _labelled(zfs.MEMBER, pool.name)
    torn = present.torn.get(device.name)
    if torn is not None:
        return f"{_labelled(EXT4, torn.label)}{_TORN}"
    if device.filesystem is None:
        return ""
    kind, label = device.filesystem.type, device.filesystem.label
    if kind == "LVM2_member":
        volume = present.physical_on(device.name)
        return _physical_volume(volume.group if volume is not None else None)
    return _MEMBERSHIPS.get(kind) or _labelled(kind, label or "")


def _labelled(kind: str, label: str) -> str:
    return f"{kind} {label}" if label else kind


def _physical_volume(group: t.Optional[str]) -> str:
    return f"{_MEMBERSHIPS['LVM2_member']} of {group}" if group else _MEMBERSHIPS["LVM2_member"]


def _apply(picture: Picture, step: Step) -> Picture:
    change = _CHANGES.get(type(step))
    return picture if change is None else change(picture, step)


def _with(picture: Picture, key: str, **changes: t.Any) -> Picture:
    """Return the picture with something changed of a piece that it has."""
    return {**picture, key: replace(picture[key], **changes)} if key in picture else picture


def _without_what_is_on(picture: Picture, keys: Iterable[str]) -> Picture:
    """Return the picture without all that lies on these pieces."""
    gone = set(keys)
    found = {key for key, piece in picture.items() if gone & set(piece.on)}
    if not found:
        return picture
    return _without_what_is_on({key: piece for key, piece in picture.items() if key not in found}, found)


def _write_table(picture: Picture, step: kinds.WritePartitionTable) -> Picture:
    heading = picture[step.disk].heading
    old = {key: piece for key, piece in picture.items() if piece.heading == heading and key != step.disk}
    kept = {step.node(entry.number): old.get(step.node(entry.number)) for entry in step.entries if not entry.clear}
    gone = [step.disk] if step.fresh else [key for key in old if key not in kept]
    left = {key: piece for key, piece in _without_what_is_on(picture, gone).items() if key not in old}
    new = {step.node(entry.number): _entry_piece(step, entry, kept.get(step.node(entry.number))) for entry in step.entries}
    return {**_with(left, step.disk, heading=_heading(step.disk_id, table=True), **({"holds": ""} if step.fresh else {})), **new}


def _entry_piece(step: kinds.WritePartitionTable, entry: kinds.TableEntry, old: t.Optional[Piece]) -> Piece:
    title = _partition_title(entry.number, entry.name)
    holds = old.holds if old is not None else ""
    return Piece(_heading(step.disk_id, table=True), (entry.number, ""), title, entry.size, (step.disk,), holds)


def _clear(picture: Picture, step: kinds.ClearSignatures) -> Picture:
    picture = _without_what_is_on(picture, step.devices)
    return {key: replace(piece, holds="") if key in step.devices else piece for key, piece in picture.items()}


def _clear_gaps(picture: Picture, step: kinds.ClearGaps) -> Picture:
    return _with(picture, step.disk, holds="")


def _create_array(picture: Picture, step: kinds.CreateArray) -> Picture:
    members = (*step.members, *step.spares)
    for member in members:
        picture = _with(picture, member, holds=_MEMBERSHIPS[_MEMBER])
    return {**picture, step.device: Piece(_ARRAYS, (0, step.title), f"{step.title} {step.level}", 0, members)}


def _re_add_members(picture: Picture, step: kinds.ReAddMembers) -> Picture:
    """What was left out looked like an array of its own, which does not run."""
    left_out = [key for key, piece in picture.items() if piece.heading == _ARRAYS and piece.on and set(piece.on) <= set(step.members)]
    return _add_members({key: piece for key, piece in picture.items() if key not in left_out}, step)


def _add_members(picture: Picture, step: t.Union[kinds.AddMembers, kinds.ReAddMembers, kinds.WidenArray]) -> Picture:
    for member in step.members:
        picture = _with(picture, member, holds=_MEMBERSHIPS[_MEMBER])
    array = picture.get(step.device)
    return _with(picture, step.device, on=(*array.on, *step.members)) if array is not None else picture


def _format_luks(picture: Picture, step: kinds.FormatLuks) -> Picture:
    return _with(picture, step.device, holds=_MEMBERSHIPS["crypto_LUKS"])


def _open_luks(picture: Picture, step: kinds.OpenLuks) -> Picture:
    closed = {key: piece for key, piece in picture.items() if not (piece.heading == _MAPPINGS and piece.on == (step.device,))}
    return {**closed, f"/dev/mapper/{step.name}": Piece(_MAPPINGS, (0, step.name), step.name, 0, (step.device,))}


def _restore_superblock(picture: Picture, step: kinds.RestoreSuperblock) -> Picture:
    there = picture.get(step.device)
    return picture if there is None else _with(picture, step.device, holds=there.holds.replace(_TORN, ""))


def _create_physical_volume(picture: Picture, step: kinds.CreatePhysicalVolume) -> Picture:
    return _with(picture, step.device, holds=_physical_volume(None))


def _join_group(picture: Picture, step: t.Union[kinds.CreateVolumeGroup, kinds.ExtendVolumeGroup]) -> Picture:
    for device in step.devices:
        picture = _with(picture, device, holds=_physical_volume(step.group))
    return picture


def _create_volume(picture: Picture, step: kinds.CreateLogicalVolume) -> Picture:
    members = tuple(key for key, piece in picture.items() if piece.holds == _physical_volume(step.group))
    return {**picture, step.device: Piece(_group_heading(step.group), (0, step.name), step.name, step.size, members)}


def _create_pool(picture: Picture, step: kinds.CreateThinPool) -> Picture:
    members = tuple(key for key, piece in picture.items() if piece.holds == _physical_volume(step.group))
    holds = _holds_of_pool(step.metadata)
    return {
        **picture,
        mapper_node(step.group, step.name): Piece(_group_heading(step.group), (0, step.name), step.name, step.size, members, holds),
    }


def _extend_metadata(picture: Picture, step: kinds.ExtendPoolMetadata) -> Picture:
    return _with(picture, mapper_node(step.group, step.name), holds=_holds_of_pool(step.size))


def _create_thin_volume(picture: Picture, step: kinds.CreateThinVolume) -> Picture:
    pool = mapper_node(step.group, step.pool)
    return {**picture, step.device: Piece(_group_heading(step.group), (0, step.name), step.name, step.size, (pool,))}


def _create_cache(picture: Picture, step: kinds.CreateCacheVolume) -> Picture:
    key = mapper_node(step.group, step.name)
    return {**picture, key: Piece(_group_heading(step.group), (0, step.name), step.name, 0, (step.device,))}


def _attach_cache(picture: Picture, step: kinds.AttachCache) -> Picture:
    gone = mapper_node(step.group, step.cache)
    left = {key: piece for key, piece in picture.items() if key != gone}
    return _with(left, mapper_node(step.group, step.name), cache=_cached_by(step.cache, step.mode))


def _change_cache_mode(picture: Picture, step: kinds.ChangeCacheMode) -> Picture:
    origin = picture.get(mapper_node(step.group, step.name))
    by = origin.cache.partition(" (")[0].removeprefix("cached by ") if origin is not None else ""
    return _with(picture, mapper_node(step.group, step.name), cache=_cached_by(by, step.mode))


def _resize_volume(picture: Picture, step: t.Union[kinds.ExtendLogicalVolume, kinds.ShrinkLogicalVolume]) -> Picture:
    return _with(picture, mapper_node(step.group, step.name), size=step.size)


def _remove_volume(picture: Picture, step: kinds.RemoveLogicalVolume) -> Picture:
    gone = mapper_node(step.group, step.name)
    return {key: piece for key, piece in _without_what_is_on(picture, [gone]).items() if key != gone}


def _make_filesystem(picture: Picture, step: kinds.MakeFilesystem) -> Picture:
    for device in (step.device, *step.more):
        picture = _with(picture, device, holds=_labelled(step.type, step.label), subvolumes={}, uuid=step.uuid)
    return picture


def _create_subvolumes(picture: Picture, step: kinds.CreateSubvolumes) -> Picture:
    return _with_subvolumes(picture, step.device, dict.fromkeys(step.names))


def _limit_subvolumes(picture: Picture, step: kinds.LimitSubvolumes) -> Picture:
    return _with_subvolumes(picture, step.device, dict(zip(step.names, step.limits)))


def _with_subvolumes(picture: Picture, device: str, limits: Mapping[str, t.Optional[int]]) -> Picture:
    """Return the picture with subvolumes on all devices of the filesystem that a device is of."""
    uuid = picture[device].uuid if device in picture else ""
    members = [key for key, piece in picture.items() if piece.uuid == uuid and uuid]
    return {**picture, **{key: replace(picture[key], subvolumes={**picture[key].subvolumes, **limits}) for key in members}}


def _make_swap(picture: Picture, step: kinds.MakeSwap) -> Picture:
    return _with(picture, step.device, holds=_labelled("swap", step.label))


def _create_zpool(picture: Picture, step: kinds.CreateZpool) -> Picture:
    for device in step.devices:
        picture = _with(picture, device, holds=_labelled(zfs.MEMBER, step.name))
    return {**picture, step.name: _dataset_piece(step.name, step.devices, dict(step.properties))}


def _extend_zpool(picture: Picture, step: kinds.ExtendZpool) -> Picture:
    for device in step.devices:
        picture = _with(picture, device, holds=_labelled(zfs.MEMBER, step.name))
    return picture


def _create_dataset(picture: Picture, step: kinds.CreateDataset) -> Picture:
    above = step.name.rpartition("/")[0]
    return {**picture, step.name: _dataset_piece(step.name, (above,), dict(step.properties))}


def _set_properties(picture: Picture, step: kinds.SetProperties) -> Picture:
    there = picture.get(step.name)
    return picture if there is None else _with(picture, step.name, sizes={**there.sizes, **_sizes_among(dict(step.properties))})


def _dataset_piece(name: str, on: tuple[str, ...], properties: Mapping[str, str]) -> Piece:
    """Return a dataset; of its properties the picture has those that are sizes."""
    return Piece(f"ZFS pool {name.partition('/')[0]}", (0, name), name, 0, on, "dataset", sizes=_sizes_among(properties))


def _sizes_among(properties: Mapping[str, str]) -> dict[str, int]:
    found = {name: zfs.plain_value(properties[name]) for name in ("quota", "reservation") if name in properties}
    return {name: int(value) for name, value in found.items() if value.isdigit() and value != "0"}


_CHANGES: Mapping[type[Step], Callable[[Picture, t.Any], Picture]] = {
    kinds.WritePartitionTable: _write_table,
    kinds.ClearSignatures: _clear,
    kinds.ClearGaps: _clear_gaps,
    kinds.CreateArray: _create_array,
    kinds.AddMembers: _add_members,
    kinds.ReAddMembers: _re_add_members,
    kinds.WidenArray: _add_members,
    kinds.FormatLuks: _format_luks,
    kinds.OpenLuks: _open_luks,
    kinds.CreatePhysicalVolume: _create_physical_volume,
    kinds.CreateVolumeGroup: _join_group,
    kinds.ExtendVolumeGroup: _join_group,
    kinds.CreateLogicalVolume: _create_volume,
    kinds.CreateThinPool: _create_pool,
    kinds.ExtendPoolMetadata: _extend_metadata,
    kinds.CreateThinVolume: _create_thin_volume,
    kinds.CreateCacheVolume: _create_cache,
    kinds.AttachCache: _attach_cache,
    kinds.ChangeCacheMode: _change_cache_mode,
    kinds.ExtendLogicalVolume: _resize_volume,
    kinds.ShrinkLogicalVolume: _resize_volume,
    kinds.RemoveLogicalVolume: _remove_volume,
    kinds.MakeFilesystem: _make_filesystem,
    kinds.MakeSwap: _make_swap,
    kinds.RestoreSuperblock: _restore_superblock,
    kinds.CreateSubvolumes: _create_subvolumes,
    kinds.LimitSubvolumes: _limit_subvolumes,
    kinds.CreateZpool: _create_zpool,
    kinds.ExtendZpool: _extend_zpool,
    kinds.CreateDataset: _create_dataset,
    kinds.SetProperties: _set_properties,
}
