# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kinds of steps that lead from a host's present state to a layout. Data only: the package layout plans them, others carry them out.

Sizes and positions are bytes. Devices are nodes of this very boot (`/dev/sda1`), which hold for one run; what is made by a step is named
by the node that it will have (`/dev/md/mirror`, `/dev/mapper/vg0-root`). No step contains a key or a passphrase.

What is unfinished is marked where a power cut cannot part it from the thing itself: a new partition has a PARTUUID derived from its final
one until FinishPartitions, a new logical volume the tag UNFINISHED until FinishLogicalVolumes.
"""

from __future__ import annotations

import typing as t
from dataclasses import asdict, dataclass

from .._storage.gpt import partition_node
from .._storage.lvm import EXTENT
from .._storage.units import MIB, in_mib


@dataclass(frozen=True)
class Step:
    """One thing to do. `says` is one line for humans (made of the kind's `words`), `plain` the step as data for results."""

    words: t.ClassVar[str] = ""

    @property
    def says(self) -> str:
        """What is done, in the imperative."""
        return self.words.format_map({name: _worded(name, value) for name, value in vars(self).items()})

    def plain(self) -> dict[str, t.Any]:
        """Return the step as plain data: `step` (the name of its kind), its fields, and `says`."""
        return {"step": type(self).__name__, **asdict(self), "says": self.says}


# ---- to see: these change nothing that is stored; what they open has to be read, and planned, again


@dataclass(frozen=True)
class StartArray(Step):
    """Assemble a stopped md array from these members (nodes) under the node `device`; `uuid` is written as libblkid does."""

    device: str
    members: tuple[str, ...]
    uuid: str

    words: t.ClassVar[str] = "start the array {device} on {members}"


@dataclass(frozen=True)
class ActivateGroup(Step):
    """Activate all logical volumes of a group, or those with `names`, where there are others that cannot be."""

    group: str
    names: tuple[str, ...] = ()

    words: t.ClassVar[str] = "activate the volume group {group}"

    @property
    def says(self) -> str:
        """What is done, in the imperative."""
        return super().says + (f": {', '.join(self.names)}" if self.names else "")


# ---- to close: nothing stored is changed either


@dataclass(frozen=True)
class DeactivateGroup(Step):
    """Deactivate all logical volumes of a group; it may lack physical volumes. `uuid` tells groups of one name apart."""

    group: str
    uuid: t.Optional[str] = None

    words: t.ClassVar[str] = "deactivate the volume group {group}"


@dataclass(frozen=True)
class CloseMapping(Step):
    """Close an open LUKS container; `name` is its device-mapper name."""

    name: str

    words: t.ClassVar[str] = "close the LUKS mapping {name}"


@dataclass(frozen=True)
class StopArray(Step):
    """Stop a running md array by its node, without touching its members' superblocks."""

    device: str

    words: t.ClassVar[str] = "stop the array {device}"


# ---- tables


@dataclass(frozen=True)
class TableEntry:
    """A partition of a GPT. `attrs` is sfdisk's text, as read, or None.

    `clear`: the partition is new, whatever was there before is refuse: its first and last MiB are zeroed *through the disk*, before the
    kernel (and udev, which would put old arrays and groups together again) learns of the partition.
    """

    number: int
    start: int
    size: int
    type: str
    uuid: str
    name: str = ""
    attrs: t.Optional[str] = None
    clear: bool = False


@dataclass(frozen=True)
class WritePartitionTable(Step):
    """Write the whole GPT of a disk in one sfdisk call; `entries` are all its partitions, in the order of their numbers.

    With `fresh` nothing of what is on the disk counts: a new table with `uuid`, `first-lba` at 1 MiB, all signatures of the whole disk
    wiped, and zeros where else one can be outside of partitions (the rest of the first MiB, and of the last before the backup).
    Otherwise the present table is changed: first-lba and table-length stay; the backup goes to the end of the disk.
    The kernel is told by `partx --update` and `--delete` (other partitions may be in use); `node(number)` names what has to appear.
    `summary` says what becomes different: one line each, for the diff.
    """

    disk: str
    disk_id: str
    uuid: str
    sector: int
    fresh: bool
    entries: tuple[TableEntry, ...]
    removed: tuple[int, ...] = ()
    summary: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        """See Step."""
        what = "write a new partition table" if self.fresh else "change the partition table"
        return f"{what} on {self.disk_id}: {'; '.join(self.summary) or 'no partitions'}"

    def node(self, number: int) -> str:
        """Return the node of a partition."""
        return partition_node(self.disk, number)


@dataclass(frozen=True)
class ClearGaps(Step):
    """Zero the signatures of a whole disk that has its table and partitions already: what lies outside of partitions, table and backup.

    `offsets` are where signatures were found, in bytes; the ends (first and last MiB) are cleared whole.
    """

    disk: str
    disk_id: str
    offsets: tuple[int, ...] = ()

    words: t.ClassVar[str] = "clear old signatures outside of the partitions of {disk_id}"


@dataclass(frozen=True)
class ClearSignatures(Step):
    """Remove every signature of devices that are ours and unfinished: wipefs, then zeros over their first `head` bytes and last MiB.

    Gone have to be md superblocks of all versions, PV labels, LUKS headers, a partition table inside it, ZFS labels, btrfs. Members of an
    array have a longer head: to behind the place where the array's data will begin, for the array would bring back what is there.
    Copies farther inside (btrfs at 64 MiB and 256 GiB, LUKS2's second header up to 4 MiB) are cleared as well where a device has room.
    """

    devices: tuple[str, ...]
    head: int = MIB

    words: t.ClassVar[str] = "clear old signatures at both ends of {devices}"


@dataclass(frozen=True)
class FinishPartitions(Step):
    """Give partitions on which all is complete their final PARTUUIDs, in one write; their content is the user's from now on.

    `uuids` are by the order of `numbers`, `sector` is the disk's logical one. The partitions are in use as a rule.
    """

    disk: str
    sector: int
    numbers: tuple[int, ...]
    uuids: tuple[str, ...]

    words: t.ClassVar[str] = "mark partition {numbers} of {disk} as finished (PARTUUID {uuids})"


# ---- md and LUKS


@dataclass(frozen=True)
class CreateArray(Step):
    """Create an md array on devices that are cleared.

    `device` is `/dev/md/NAME`, `title` the NAME, `level` as mdadm has it (raid1), `metadata` 1.2, 1.0, 0.90 or default, `uuid` as libblkid
    writes it (mdadm wants it with colons: fields of 8 hexadecimal digits). Levels other than raid0 get an internal bitmap.
    """

    device: str
    title: str
    level: str
    members: tuple[str, ...]
    spares: tuple[str, ...]
    metadata: str
    uuid: str

    words: t.ClassVar[str] = "create the array {device}, {level} on {members}"

    @property
    def says(self) -> str:
        """What is done, in the imperative."""
        return super().says + (f", with {', '.join(self.spares)} as spare" if self.spares else "")


@dataclass(frozen=True)
class AddMembers(Step):
    """Add cleared devices to a running array: md builds those up in the background that take places of members, the others stand by."""

    device: str
    members: tuple[str, ...]

    words: t.ClassVar[str] = "add {members} to the array {device}, for missing members and spares"


@dataclass(frozen=True)
class ReAddMembers(Step):
    """Take members back that a running array started without: md brings over to them what was written since."""

    device: str
    members: tuple[str, ...]

    words: t.ClassVar[str] = "re-add {members} to the array {device}, which started without"


@dataclass(frozen=True)
class WidenArray(Step):
    """Add cleared devices to a running array, so that it has `count` members: copies of a mirror, or room that md spreads parity over."""

    device: str
    members: tuple[str, ...]
    count: int

    words: t.ClassVar[str] = "add {members} to the array {device}, {count} members in all"


@dataclass(frozen=True)
class GrowArray(Step):
    """Let a running array take the whole of its members, which have grown, when md has built it up."""

    device: str

    words: t.ClassVar[str] = "grow the array {device} to the size of its members, when it is built up"


@dataclass(frozen=True)
class FormatLuks(Step):
    """Write a LUKS2 header with this UUID.

    `aligned`: the device is an array, whose stripes cryptsetup follows; else data begin at 16 MiB. `name` is that of the container, which
    tells its key.
    """

    device: str
    uuid: str
    aligned: bool
    name: str = ""

    words: t.ClassVar[str] = "encrypt {device} (LUKS)"


@dataclass(frozen=True)
class OpenLuks(Step):
    """Open a LUKS container as `/dev/mapper/NAME`."""

    device: str
    name: str

    words: t.ClassVar[str] = "open {device} as /dev/mapper/{name}"


@dataclass(frozen=True)
class ResizeLuks(Step):
    """Let an open LUKS container take the whole of its device, which has grown."""

    name: str

    words: t.ClassVar[str] = "grow the LUKS mapping {name} to the size of its device"


# ---- LVM


@dataclass(frozen=True)
class CreatePhysicalVolume(Step):
    """Make a device a physical volume. `metadata_size` in bytes, 0 for LVM's default.

    `aligned`: it is on an array, whose stripes LVM follows; else the data alignment is 1 MiB.
    """

    device: str
    metadata_size: int
    metadata_copies: int
    aligned: bool

    words: t.ClassVar[str] = "make {device} a physical volume"


@dataclass(frozen=True)
class ResizePhysicalVolume(Step):
    """Let a physical volume take the whole of its device, which has grown."""

    device: str

    words: t.ClassVar[str] = "grow the physical volume {device} to the size of its device"


@dataclass(frozen=True)
class CreateVolumeGroup(Step):
    """Make a volume group of physical volumes, with extents of so many bytes."""

    group: str
    devices: tuple[str, ...]
    extent: int = EXTENT * MIB

    words: t.ClassVar[str] = "create the volume group {group} on {devices}"

    @property
    def says(self) -> str:
        """What is done, in the imperative."""
        return super().says + (f", with extents of {in_mib(self.extent)}" if self.extent != EXTENT * MIB else "")


@dataclass(frozen=True)
class ExtendVolumeGroup(Step):
    """Let physical volumes join a volume group."""

    group: str
    devices: tuple[str, ...]

    words: t.ClassVar[str] = "extend the volume group {group} by {devices}"


@dataclass(frozen=True)
class RewriteGroup(Step):
    """Write a group's metadata to all its physical volumes: a run that was cut off may have left some without."""

    group: str

    words: t.ClassVar[str] = "write the metadata of the volume group {group} to all its physical volumes"


@dataclass(frozen=True)
class CreateLogicalVolume(Step):
    """Make a linear logical volume with the tag UNFINISHED, without looking at what is inside; `device` is its mapper node."""

    group: str
    name: str
    size: int
    device: str

    words: t.ClassVar[str] = "create the logical volume {group}/{name} with {size}"


@dataclass(frozen=True)
class CreateThinPool(Step):
    """Make a thin pool with the tag UNFINISHED, `size` for data and `metadata` for its own; LVM makes or grows their spare by itself."""

    group: str
    name: str
    size: int
    metadata: int
    chunk: int

    words: t.ClassVar[str] = "create the thin pool {group}/{name} with {size}, {metadata} of metadata and chunks of {chunk}"


@dataclass(frozen=True)
class ExtendPoolMetadata(Step):
    """Grow the metadata of a thin pool to `size`, online."""

    group: str
    name: str
    size: int
    before: int

    words: t.ClassVar[str] = "grow the metadata of the thin pool {group}/{name} from {before} to {size}"


@dataclass(frozen=True)
class CreateThinVolume(Step):
    """Make a volume in a thin pool with the tag UNFINISHED; `size` is what it seems to have, `device` its mapper node."""

    group: str
    name: str
    pool: str
    size: int
    device: str

    words: t.ClassVar[str] = "create the thin volume {group}/{name} with {size} in {pool}"


@dataclass(frozen=True)
class CreateCacheVolume(Step):
    """Make a volume of all of a physical volume, with the tag UNFINISHED: it becomes a cache."""

    group: str
    name: str
    device: str

    words: t.ClassVar[str] = "create the cache {group}/{name} on {device}"


@dataclass(frozen=True)
class AttachCache(Step):
    """Let a volume be cached by one that was made for it, which is none of its own any more; it may be in use."""

    group: str
    name: str
    cache: str
    mode: str

    words: t.ClassVar[str] = "cache the logical volume {group}/{name} by {cache}, {mode}"


@dataclass(frozen=True)
class ChangeCacheMode(Step):
    """Change how a volume is cached; what writeback has not written yet is written first."""

    group: str
    name: str
    mode: str

    words: t.ClassVar[str] = "change the cache of the logical volume {group}/{name} to {mode}"


@dataclass(frozen=True)
class ExtendLogicalVolume(Step):
    """Grow a logical volume, or the data of a thin pool, to `size`, online; its filesystem grows by a step of its own."""

    group: str
    name: str
    size: int
    before: int

    words: t.ClassVar[str] = "grow the logical volume {group}/{name} from {before} to {size}"


@dataclass(frozen=True)
class ShrinkLogicalVolume(Step):
    """Make the filesystem on a logical volume (`device` is its node), which is not mounted, no larger than `size`, then the volume."""

    group: str
    name: str
    size: int
    before: int
    device: str
    type: str

    words: t.ClassVar[str] = "shrink the {type} on the logical volume {group}/{name}, and then the volume, from {before} to {size}"


@dataclass(frozen=True)
class RemoveLogicalVolume(Step):
    """Remove a logical volume (to be made anew, or not wanted any more), a thin pool with all that is in it.

    `begun`: it is a pool that a run was cut off at, and that may be such that nothing can activate it.
    """

    group: str
    name: str
    begun: bool = False

    words: t.ClassVar[str] = "remove the logical volume {group}/{name}"


@dataclass(frozen=True)
class MarkCleared(Step):
    """Give unfinished logical volumes that were cleared the tag CLEARED."""

    group: str
    names: tuple[str, ...]

    words: t.ClassVar[str] = "mark {names} in {group} as cleared"


@dataclass(frozen=True)
class FinishLogicalVolumes(Step):
    """Take the tags UNFINISHED and CLEARED off logical volumes; their content is the user's from now on."""

    group: str
    names: tuple[str, ...]

    words: t.ClassVar[str] = "mark {names} in {group} as finished"


# ---- filesystems


def _given(options: t.Sequence[str]) -> str:
    return f", with {' '.join(options)}" if options else ""


@dataclass(frozen=True)
class MakeFilesystem(Step):
    """Make an ext2, ext3, ext4, xfs, btrfs or vfat. `uuid` as blkid shows it (vfat: `1A2B-3C4D`); `options` are words for mkfs.

    `more` are the other devices of a btrfs on several, `level` how it lies on them.
    """

    device: str
    type: str
    uuid: str
    label: str
    options: tuple[str, ...]
    more: tuple[str, ...] = ()
    level: str = ""

    words: t.ClassVar[str] = "make {type} on {device}{label}"

    @property
    def says(self) -> str:
        """What is done, in the imperative."""
        return super().says + (f", {self.level} with {', '.join(self.more)}" if self.more else "") + _given(self.options)


@dataclass(frozen=True)
class MakeSwap(Step):
    """Make swap; it is not switched on."""

    device: str
    uuid: str
    label: str
    options: tuple[str, ...]

    words: t.ClassVar[str] = "make swap on {device}{label}"

    @property
    def says(self) -> str:
        """What is done, in the imperative."""
        return super().says + _given(self.options)


@dataclass(frozen=True)
class GrowFilesystem(Step):
    """Let an ext*, xfs or btrfs take the whole of its device.

    `mountpoint` is where it is mounted, else None: it is mounted then for the time of the growing, in a place of its own.
    `several`: it is a btrfs on several devices, and takes the whole of each.
    """

    device: str
    type: str
    mountpoint: t.Optional[str]
    several: bool = False

    words: t.ClassVar[str] = "grow the {type} on {device} to the size of its device"


@dataclass(frozen=True)
class RestoreSuperblock(Step):
    """Have an ext4 that is not mounted its first superblock again, which is torn, by the whole copy in a block; and check it."""

    device: str
    type: str
    block: int
    block_size: int

    words: t.ClassVar[str] = "restore the torn superblock of the {type} on {device} from its copy in block {block}"


@dataclass(frozen=True)
class CreateSubvolumes(Step):
    """Make subvolumes of a Btrfs, by their paths below its top, outer ones first; folders between them are made as well.

    It is mounted for it where nobody else sees that, whether it is mounted elsewhere or not.
    """

    device: str
    names: tuple[str, ...]

    words: t.ClassVar[str] = "create subvolumes in the btrfs on {device}: {names}"


@dataclass(frozen=True)
class LimitSubvolumes(Step):
    """Have a Btrfs keep quotas, and let subvolumes refer to so many bytes at most; `limits` are by the order of `names`."""

    device: str
    names: tuple[str, ...]
    limits: tuple[int, ...]

    words: t.ClassVar[str] = "limit subvolumes of the btrfs on {device}"

    @property
    def says(self) -> str:
        """What is done, in the imperative."""
        each = (f"{name} to {in_mib(limit)}" for name, limit in zip(self.names, self.limits))
        return f"{super().says}: {', '.join(each)}"


# ---- ZFS


@dataclass(frozen=True)
class CreateZpool(Step):
    """Make a ZFS pool of cleared partitions; ZFS remembers it for the next start, and mounts it where it has a mount point.

    `vdevs` are (type, nodes), where stripe is each node for itself. `names` are lasting names of nodes, by which the pool is to know them.
    `properties` are those of its own dataset. `parts` are (what for, type, nodes) beside the data: log, cache, spare.
    """

    name: str
    vdevs: tuple[tuple[str, tuple[str, ...]], ...]
    ashift: int
    properties: tuple[tuple[str, str], ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    parts: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """All nodes."""
        return tuple(node for *_kinds, nodes in (*self.vdevs, *self.parts) for node in nodes)

    @property
    def says(self) -> str:
        """What is done, in the imperative."""
        each = [f"{kind} of {', '.join(nodes)}" for kind, nodes in self.vdevs]
        each += [_part_in_words(part, kind, nodes) for part, kind, nodes in self.parts]
        return f"create the ZFS pool {self.name}: {'; '.join(each)}{_with_properties(self.properties)}"


@dataclass(frozen=True)
class ExtendZpool(Step):
    """Add cleared partitions to a ZFS pool that is there: a log, a cache or a spare, or with an empty `part` further vdevs for data."""

    name: str
    part: str
    vdevs: tuple[tuple[str, tuple[str, ...]], ...]
    names: tuple[tuple[str, str], ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """All nodes."""
        return tuple(node for _kind, nodes in self.vdevs for node in nodes)

    @property
    def says(self) -> str:
        """What is done, in the imperative."""
        return f"add to the ZFS pool {self.name}: {'; '.join(_part_in_words(self.part, kind, nodes) for kind, nodes in self.vdevs)}"


@dataclass(frozen=True)
class ShrinkZpool(Step):
    """Take a log, a cache or a spare, `vdev` as ZFS calls it, out of a ZFS pool, which loses no data by that."""

    name: str
    part: str
    vdev: str

    words: t.ClassVar[str] = "take the {part} {vdev} out of the ZFS pool {name}"


@dataclass(frozen=True)
class CreateDataset(Step):
    """Make a dataset, by its path with that of its pool; ZFS mounts it where it has a mount point."""

    name: str
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def says(self) -> str:
        """What is done, in the imperative."""
        return f"create the dataset {self.name}{_with_properties(self.properties)}"


@dataclass(frozen=True)
class SetProperties(Step):
    """Set properties of a dataset that is there."""

    name: str
    properties: tuple[tuple[str, str], ...]

    @property
    def says(self) -> str:
        """What is done, in the imperative."""
        return f"set on the dataset {self.name}: {_in_words(self.properties)}"


@dataclass(frozen=True)
class ExportZpool(Step):
    """Have ZFS let go of a pool, whose datasets are unmounted."""

    name: str

    words: t.ClassVar[str] = "export the ZFS pool {name}"


def _part_in_words(part: str, kind: str, nodes: tuple[str, ...]) -> str:
    listed = ", ".join(nodes)
    if not part:
        return f"{kind} of {listed}"
    return f"{part} {listed}" if kind == "stripe" else f"{part} {kind} of {listed}"


def _with_properties(properties: tuple[tuple[str, str], ...]) -> str:
    return f", with {_in_words(properties)}" if properties else ""


def _in_words(properties: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name}={in_mib(int(value)) if name in _IN_BYTES else value}" for name, value in properties)


_IN_BYTES = ("quota", "reservation")


def _worded(name: str, value: t.Any) -> t.Any:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if name == "label":
        return f", label {value}" if value else ""
    if name == "chunk":
        return f"{value // 1024} KiB"
    return in_mib(value) if name in ("size", "before", "metadata") and isinstance(value, int) else value
