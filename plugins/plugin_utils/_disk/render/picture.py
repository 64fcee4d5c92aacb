# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What there is to see of a plan: disks, what lies on each in order, and every space with its total. Sizes are MiB.

The tables, the SVG and the page are all made from this one reading of the plan. It takes plans as plain data (they come
back from a playbook), and a plan that says less, such as one that was written by hand, gives a picture that says less.
"""

from __future__ import annotations

import json
import re
import typing as t
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ....module_utils._data.units import format_mib, mib_or_nothing
from ....module_utils._storage import btrfs, zfs
from ....module_utils._storage.cache import WRITETHROUGH
from ....module_utils._storage.lvm import EXTENT
from ....module_utils._storage.raid import RaidLevel, data_legs, parse_level
from ..static.index import StaticIndex, index_static
from .reasons import reasons_of

Plain = Mapping[str, t.Any]

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

TRANSPORTS = {"nvme": "NVMe", "sata": "SATA", "sas": "SAS", "usb": "USB", "mmc": "eMMC", "iscsi": "iSCSI", "fc": "FC"}

_YAML_PLAIN = re.compile(r"[A-Za-z0-9/][\w/.$()<>= -]*")
"""Text that needs no quotes within a flow of YAML."""


@dataclass(frozen=True)
class Slice:
    """The part of one logical volume that is drawn inside a PV or a raid leg."""

    space_id: str
    size: float


@dataclass(frozen=True)
class Segment:
    """What one space takes of one disk; `slices` are the logical volumes inside it, `free` what no volume takes.

    `spare` says that it stands by for an array and holds nothing yet.
    """

    space_id: str
    size: int
    slices: tuple[Slice, ...] = ()
    free: float = 0
    spare: bool = False


@dataclass(frozen=True)
class DiskPicture:
    """One disk with its segments in order; `size` is the whole disk, `unallocated` what no space takes."""

    id: str
    name: str
    short_id: str
    description: str
    size: int
    unallocated: int
    segments: tuple[Segment, ...]

    def shape(self) -> tuple[t.Any, ...]:
        """Return everything but its names: disks of one shape need one drawing."""
        return (self.description, self.size, self.unallocated, self.segments)


@dataclass(frozen=True)
class SubvolumePicture:
    """A subvolume of a space with a Btrfs, or a dataset of a ZFS pool, as `what` says; `quota` in MiB."""

    name: str
    mount: str | None = None
    quota: int | None = None
    what: str = "subvolume"


@dataclass(frozen=True)
class SpacePicture:
    """One space over all disks. `size` is what it takes; of a raid, what it offers. `inside` is the space that holds it."""

    id: str
    kind: str
    label: str
    size: int
    disks: int = 0
    extent: int = EXTENT
    """Of a group: MiB below which nothing of a disk can be given out."""
    standing_by: tuple[str, ...] = ()
    """The disks whose part of an array is a spare."""
    metadata: int = 0
    """Of a thin pool: MiB that are metadata, and as many their spare; `size` includes both."""
    volumes: tuple[str, ...] = ()
    """Of a thin pool: what is in it."""
    cache: str = ""
    """Of a cache: what it is one of, and how."""
    inside: str | None = None
    lies_on: tuple[str, ...] = ()
    """Of a group that several arrays share: these."""
    mount: str | None = None
    mount_options: str | None = None
    fs_type: str | None = None
    subvolumes: tuple[SubvolumePicture, ...] = ()
    encrypted: bool = False
    reasons: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where what is on it is found: where it or its subvolumes are mounted, or that it is swap; of a thin pool what it is for."""
        if self.cache:
            return self.cache
        if self.volumes:
            return f"for {', '.join(self.volumes)}"
        mounts = (self.mount, *(subvolume.mount for subvolume in self.subvolumes))
        return ", ".join(mount for mount in mounts if mount) or ("swap" if self.fs_type == "swap" else "")


@dataclass(frozen=True)
class LeftOutPicture:
    """A disk that the plan leaves alone, and why; `reason` follows its name in a sentence."""

    name: str
    short_id: str
    description: str
    size: int
    reason: str
    kinds: tuple[str, ...] = ()
    """The words of `eligible` that take it in."""

    def shape(self) -> tuple[t.Any, ...]:
        """Return everything but its names."""
        return (self.description, self.size, self.reason)


@dataclass(frozen=True)
class IdlePicture:
    """Disks alike on which nothing lies: how many, the first and the last of them, and the override that would use them."""

    count: int
    first: str
    last: str
    description: str
    size: int
    remark: str
    override: str

    def shape(self) -> tuple[t.Any, ...]:
        """Return everything but the names."""
        return (self.count, self.description, self.size, self.override)


@dataclass(frozen=True)
class HostPicture:
    """One host: its disks, its spaces (each followed by those inside it), the plan's warnings, and the disks that it leaves alone."""

    disks: tuple[DiskPicture, ...]
    spaces: tuple[SpacePicture, ...]
    warnings: tuple[str, ...]
    left_out: tuple[LeftOutPicture, ...] = ()
    idle: tuple[IdlePicture, ...] = ()
    """Disks of a profile's plan that nothing lies on."""

    @property
    def size(self) -> int:
        """All disks together."""
        return sum(disk.size for disk in self.disks)

    def by_id(self) -> dict[str, SpacePicture]:
        """Return the spaces by id."""
        return {space.id: space for space in self.spaces}

    def inside(self, container: SpacePicture) -> tuple[SpacePicture, ...]:
        """Return the spaces that lie directly inside a space."""
        return tuple(space for space in self.spaces if space.inside == container.id)

    def holds_others(self, space: SpacePicture) -> bool:
        """Return whether a space is drawn as a frame around others."""
        # What is in a thin pool has no place of its own in it.
        if space.kind == "thin_pool":
            return False
        return bool(self.inside(space)) or any(space.id in group.lies_on for group in self.spaces)

    def painted(self) -> list[str]:
        """Return the spaces that are filled with a colour: those around no others, and arrays with a disk that stands by."""
        return [space.id for space in self.spaces if space.standing_by or not (self.holds_others(space) or space.kind == "thin")]

    def depth(self, space: SpacePicture) -> int:
        """Return how many spaces lie around a space."""
        spaces = self.by_id()
        depth = 0
        while space.inside is not None and space.inside in spaces:
            space, depth = spaces[space.inside], depth + 1
        return depth

    def shape(self) -> tuple[t.Any, ...]:
        """Return everything but the names of the disks: hosts of one shape need one drawing."""
        aside = (*(disk.shape() for disk in self.left_out), *(disks.shape() for disks in self.idle))
        return (tuple(disk.shape() for disk in self.disks), self.spaces, aside)


def picture(plan: Plain, hardware: Plain | None = None, schema: Sequence[Plain] = (), why: Plain | None = None) -> HostPicture:
    """Return what there is to see of a plan.

    `hardware` adds names, models and transports of the disks; `schema` (the dynamic schema) and `why` (a profile's
    remarks by space id) the reasons of each space.
    """
    wanted = {str(space.get("id")): space for space in schema}
    spaces = _spaces(plan, index_static(plan.get("schema") or {}), wanted, why or {})
    return HostPicture(
        disks=_disks(plan, hardware or {}, spaces),
        spaces=spaces,
        warnings=tuple(str(warning) for warning in plan.get("warnings") or ()),
        left_out=tuple(_left_out(disk, hardware or {}) for disk in plan.get("left_out_disks") or ()),
        idle=tuple(_idle(disks, hardware or {}) for disks in plan.get("idle_disks") or ()),
    )


def runs_of_alike(disks: Iterable[DiskPicture]) -> list[tuple[DiskPicture, ...]]:
    """Return neighbouring disks of one shape together, in order."""
    runs: list[list[DiskPicture]] = []
    for disk in disks:
        if runs and runs[-1][0].shape() == disk.shape():
            runs[-1].append(disk)
        else:
            runs.append([disk])
    return [tuple(run) for run in runs]


def short_id(disk_id: str, longest: int = 24) -> str:
    """Return the last part of a disk's link, with its middle left out when it is long: both ends distinguish disks."""
    name = disk_id.rsplit("/", 1)[-1]
    if len(name) <= longest:
        return name
    tail = (longest - 1) // 2
    return f"{name[: longest - 1 - tail]}…{name[-tail:]}"


def describe_disk(facts: Plain) -> str:
    """Return kind, transport, vendor and model of a disk as one phrase, as much as is known of them."""
    transport = str(facts.get("transport") or "")
    vendor, model = (" ".join(str(facts.get(key) or "").split()) for key in ("vendor", "model"))
    if vendor.lower() in {"ata", "nvme", "0x1af4"} or model.lower().startswith(vendor.lower()):
        vendor = ""
    sector = "4Kn" if facts.get("logical_block") == 4096 else ""
    words = (TRANSPORTS.get(transport, transport), str(facts.get("type") or "").upper(), sector, vendor, model)
    return " ".join(word for word in words if word)


def _spaces(plan: Plain, static: StaticIndex, wanted: Mapping[str, Plain], why: Plain) -> tuple[SpacePicture, ...]:
    """Return the spaces as they first appear on the disks, each followed by those that lie inside it."""
    on_disks = _sizes_on_disks(plan)
    children: dict[str, list[str]] = {}
    for child, parent in static.parents.items():
        children.setdefault(parent, []).append(child)

    def with_children(space_id: str) -> list[SpacePicture]:
        inner = [space for child in children.get(space_id, []) for space in with_children(child)]
        sizes = on_disks.get(space_id, [])
        wish = space_id if space_id in wanted else _wish_of_copy(space_id, wanted)
        outer = _space(space_id, sizes, inner, static, wanted.get(wish), why.get(wish))
        # A group has all of the array that it lies on, whatever its volumes take.
        whole = [replace(space, size=outer.size) if space.kind == "vg" and space.inside == outer.id else space for space in inner]
        return [outer, *whole]

    shared = [group for group in static.arrays_of if group not in on_disks and all(array in on_disks for array in static.arrays_of[group])]
    roots = [space_id for space_id in (*on_disks, *shared) if space_id not in static.parents]
    return tuple(space for root in roots for space in with_children(root))


def _wish_of_copy(space_id: str, wanted: Mapping[str, Plain]) -> str:
    """Return what a space is called in the schema that is made several times, each with its number."""
    name = space_id.rstrip("0123456789")
    return name if wanted.get(name, {}).get("count") is not None else space_id


def _space(
    space_id: str, sizes: Sequence[int], inner: Sequence[SpacePicture], static: StaticIndex, wanted: Plain | None, remark: str | None
) -> SpacePicture:
    asked = wanted or {}
    kind = str(asked.get("type") or static.kind(space_id))
    filesystems = static.filesystems.get(space_id, ())
    filesystem = filesystems[0] if filesystems else {}
    level = str(static.arrays.get(space_id, filesystem).get("level") or asked.get("level") or "raid")
    standing_by = static.standing_by.get(space_id, ())
    pool = static.pools.get(space_id, {})
    metadata = int(pool.get("metadata_size") or 0)
    volume = {"size": int(pool["size"]) + 2 * metadata} if pool else static.volumes.get(space_id, {})
    zpool = static.zpools.get(space_id, {})
    vdevs = zpool.get("vdevs") or ()
    members = sizes[: len(sizes) - len(standing_by)]
    zpool_part = static.zpool_parts.get(space_id, "")
    if vdevs and members:
        size = _room(zpool, members)
    elif zpool_part and sizes:
        size = min(sizes)
    else:
        size = _size(kind, level, members, inner, volume)
    usual = "zfs mirror" if zpool_part and len(sizes) > 1 else LABELS.get(kind, kind)
    stripes = int(volume.get("stripes") or 1)
    usual = f"{usual}, {stripes} stripes" if stripes > 1 else usual
    return SpacePicture(
        id=space_id,
        kind=kind,
        label={"raid": level, "btrfs": f"btrfs {level}", "zpool": _zfs_words(vdevs)}.get(kind) or usual,
        size=size,
        disks=len(sizes),
        extent=int(static.groups.get(space_id, {}).get("extent_size", EXTENT)),
        standing_by=standing_by,
        metadata=metadata,
        cache=_cached(static.caches.get(space_id)) or zpool_part,
        volumes=tuple(volume.id for volume in inner) if kind == "thin_pool" else (),
        lies_on=static.arrays_of.get(space_id, ()),
        inside=static.parents.get(space_id),
        mount=_mounts(filesystems) or _mount_point(zpool.get("mount") or asked.get("mount")),
        mount_options=_given(filesystem.get("fstab_options") or asked.get("mount_options")),
        fs_type="zfs" if kind == "zpool" else _given(filesystem.get("fs_type") or asked.get("fs_type")),
        subvolumes=_datasets(zpool) if zpool else _subvolumes(filesystems),
        encrypted=space_id in static.encrypted or asked.get("encrypt") is True,
        reasons=(*_given_out(inner if kind == "thin_pool" else ()), *reasons_of(wanted, size - 2 * metadata, remark)),
    )


def _cached(cache: Plain | None) -> str:
    """Return what a cache is one of; nothing for what is none."""
    if cache is None:
        return ""
    return f"cache of {cache.get('origin')}" + (f", {cache.get('mode')}" if cache.get("mode") != WRITETHROUGH else "")


def _shape(zpool: Plain) -> zfs.Shape:
    vdevs = zpool["vdevs"]
    return zfs.Shape(zfs.Vdev(str(vdevs[0]["type"])), len(vdevs), len(vdevs[0]["devices"]))


def _room(zpool: Plain, sizes: Sequence[int]) -> int:
    """Return the room for data of a ZFS pool whose devices have these sizes."""
    return zfs.room(_shape(zpool), min(sizes), int(zpool.get("ashift") or zfs.ASHIFT))


def _zfs_words(vdevs: Sequence[Plain]) -> str:
    kind = str(vdevs[0]["type"]) if vdevs else ""
    return f"zfs {len(vdevs)} x {kind}" if len(vdevs) > 1 and kind != zfs.Vdev.STRIPE else f"zfs {kind}".strip()


def _datasets(zpool: Plain) -> tuple[SubvolumePicture, ...]:
    found = zpool.get("datasets") or ()
    quotas = (int(mib_or_nothing(dataset.get("quota"))) or None for dataset in found)
    return tuple(
        SubvolumePicture(str(dataset.get("name")), _mount_point(dataset.get("mount")), quota, "dataset")
        for dataset, quota in zip(found, quotas, strict=True)
    )


def _given_out(volumes: Sequence[SpacePicture]) -> Iterator[str]:
    """Give what the volumes in a thin pool may come to."""
    if volumes:
        named = (f"{volume.id} {format_mib(volume.size)}{f' on {volume.mount}' if volume.mount else ''}" for volume in volumes)
        yield f"its volumes may come to {format_mib(sum(volume.size for volume in volumes))}: {', '.join(named)}"


def _size(kind: str, level: str, sizes: Sequence[int], inner: Sequence[SpacePicture], volume: Plain) -> int:
    if kind == "raid" and sizes:
        known = parse_level(level)
        return min(sizes) * (data_legs(known, len(sizes)) if known is not None else len(sizes))
    if kind == "btrfs" and sizes and level in btrfs.LEVELS:
        return min(sizes) * btrfs.data_legs(RaidLevel(level), len(sizes))
    if sizes:
        return sum(sizes)
    return int(volume["size"]) if "size" in volume else sum(space.size for space in inner)


def _disks(plan: Plain, hardware: Plain, spaces: Sequence[SpacePicture]) -> tuple[DiskPicture, ...]:
    facts = {str(disk.get("id")): disk for disk in hardware.get("disks") or ()}
    by_id = {space.id: space for space in spaces}
    volumes = {space.id: _volumes_in(space, spaces) for space in spaces}
    before: dict[str, int] = {}
    pictures = []
    for disk in plan.get("disks") or ():
        segments = []
        for space_id, size in _taken(disk):
            spare = str(disk.get("disk_id")) in by_id[space_id].standing_by
            segments.append(
                Segment(space_id, size, spare=True)
                if spare
                else _segment(by_id[space_id], size, volumes[space_id], before.get(space_id, 0))
            )
            before[space_id] = before.get(space_id, 0) + size
        pictures.append(_disk(disk, facts.get(str(disk.get("disk_id")), {}), tuple(segments)))
    return tuple(pictures)


def _disk(disk: Plain, facts: Plain, segments: tuple[Segment, ...]) -> DiskPicture:
    disk_id = str(disk.get("disk_id"))
    size = int(disk.get("size") or mib_or_nothing(facts.get("size")))
    unallocated = disk.get("unallocated")
    return DiskPicture(
        id=disk_id,
        name=str(facts.get("dev") or disk_id).rsplit("/", 1)[-1],
        short_id=short_id(disk_id),
        description=describe_disk(facts),
        size=size,
        unallocated=int(unallocated) if unallocated is not None else size - sum(segment.size for segment in segments),
        segments=segments,
    )


def _left_out(disk: Plain, hardware: Plain) -> LeftOutPicture:
    disk_id = str(disk.get("disk_id"))
    facts: Plain = next((one for one in hardware.get("disks") or () if str(one.get("id")) == disk_id), {})
    size = int(disk.get("size") or mib_or_nothing(facts.get("size")))
    name = str(facts.get("dev") or disk_id).rsplit("/", 1)[-1]
    reason, kinds = str(disk.get("reason") or "is left out"), tuple(str(kind) for kind in disk.get("kinds") or ())
    return LeftOutPicture(name, short_id(disk_id), describe_disk(facts), size, reason, kinds)


def _idle(disks: Plain, hardware: Plain) -> IdlePicture:
    ids = [str(disk_id) for disk_id in disks.get("disk_ids") or ()]
    by_id = {str(disk.get("id")): disk for disk in hardware.get("disks") or ()}
    names = [str(by_id.get(disk_id, {}).get("dev") or disk_id).rsplit("/", 1)[-1] for disk_id in ids] or [""]
    override = disks.get("override")
    return IdlePicture(
        count=len(ids),
        first=names[0],
        last=names[-1],
        description=describe_disk(by_id.get(ids[0], {})) if ids else "",
        size=int(disks.get("size") or 0),
        remark=str(disks.get("remark") or ""),
        override=_on_one_line(override) if isinstance(override, Mapping) else "",
    )


def _on_one_line(space: Plain) -> str:
    """Return a space as YAML on one line."""
    return f"{{{', '.join(f'{key}: {_yaml_word(value)}' for key, value in space.items() if value not in (0, False))}}}"


def _yaml_word(value: t.Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_yaml_word, value))}]"
    text = str(value)
    return text.lower() if isinstance(value, bool) else text if _YAML_PLAIN.fullmatch(text) else json.dumps(text)


def _segment(space: SpacePicture, size: int, volumes: Sequence[SpacePicture], before: int) -> Segment:
    if not volumes:
        return Segment(space.id, size)
    slices = _shares_of_leg(space, size, volumes) if space.kind == "raid" else _fill_in_order(size, volumes, before)
    free = max(0.0, size - sum(part.size for part in slices))
    return Segment(space.id, size, slices, free if free >= space.extent or space.extent == EXTENT else 0.0)


def _fill_in_order(size: int, volumes: Sequence[SpacePicture], before: int) -> tuple[Slice, ...]:
    """Return the volumes as they fill the PVs of their group one after the other.

    LVM decides where each extent lies, so this shows how large each volume is, not where it is.
    """
    slices = []
    position = 0
    for volume in volumes:
        inside = min(before + size, position + volume.size) - max(before, position)
        if inside > 0:
            slices.append(Slice(volume.id, inside))
        position += volume.size
    return tuple(slices)


def _shares_of_leg(array: SpacePicture, size: int, volumes: Sequence[SpacePicture]) -> tuple[Slice, ...]:
    """Return the volumes on one leg: every leg of an array carries its share of each."""
    return tuple(Slice(volume.id, size * volume.size / array.size) for volume in volumes if array.size)


def _volumes_in(space: SpacePicture, spaces: Sequence[SpacePicture]) -> list[SpacePicture]:
    found = _volumes_shared(space, spaces)
    for inner in spaces:
        if inner.inside == space.id:
            found.extend([inner] if inner.kind in {"lv", "thin_pool"} else _volumes_in(inner, spaces))
    return found


def _volumes_shared(array: SpacePicture, spaces: Sequence[SpacePicture]) -> list[SpacePicture]:
    """Return what one of the arrays under a group holds of its volumes, which fill the arrays one after the other."""
    by_id = {space.id: space for space in spaces}
    found = []
    for group in spaces:
        if array.id in group.lies_on:
            before = sum(by_id[name].size for name in group.lies_on[: group.lies_on.index(array.id)])
            parts = _fill_in_order(array.size, _volumes_in(group, spaces), before)
            found += [replace(by_id[part.space_id], size=int(part.size)) for part in parts]
    return found


def _sizes_on_disks(plan: Plain) -> dict[str, list[int]]:
    sizes: dict[str, list[int]] = {}
    for disk in plan.get("disks") or ():
        for space_id, size in _taken(disk):
            sizes.setdefault(space_id, []).append(size)
    return sizes


def _taken(disk: Plain) -> list[tuple[str, int]]:
    return [
        (str(space["space_id"]), int(space["size"]))
        for space in disk.get("spaces") or ()
        if space["space_id"] != "unallocated" and int(space["size"]) > 0
    ]


def _mounts(filesystems: Sequence[Plain]) -> str | None:
    """Return where a space is mounted; one that is on several disks by itself, from the first to the last."""
    mounts = [mount for mount in (_mount_point(filesystem.get("mount")) for filesystem in filesystems) if mount]
    return f"{mounts[0]} … {mounts[-1]}" if len(mounts) > 1 else mounts[0] if mounts else None


def _subvolumes(filesystems: Sequence[Plain]) -> tuple[SubvolumePicture, ...]:
    """Return the subvolumes of a space; where it has a file system on each of several disks, mounted from the first to the last."""
    first = (filesystems[0].get("subvolumes") or ()) if filesystems else ()
    same = [
        [filesystem["subvolumes"][at] for filesystem in filesystems if len(filesystem.get("subvolumes") or ()) > at]
        for at in range(len(first))
    ]
    return tuple(
        SubvolumePicture(str(subvolume.get("name")), _mounts(those), int(mib_or_nothing(subvolume.get("quota"))) or None)
        for subvolume, those in zip(first, same, strict=True)
    )


def _mount_point(value: t.Any) -> str | None:
    return None if value in ("none", "swap") else _given(value)


def _given(value: t.Any) -> str | None:
    return None if value in (None, "") else str(value)
