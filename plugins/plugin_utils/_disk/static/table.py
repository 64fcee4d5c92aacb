# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a static schema may hold, by tables: the `schema` of a plan, which disk_layout makes. Sizes and positions are whole MiB.

The host has its own reader, which needs nothing but Python (module_utils/_schema/static.py) and asks for more; a test compares the keys.
"""

from __future__ import annotations

import typing as t
import uuid

from ....module_utils._data.containers import ListOf, Row, Table
from ....module_utils._data.kinds import Anything, Json, Kind, Text, Truth, Whole, Word
from ....module_utils._storage import gpt, zfs
from ....module_utils._storage.btrfs import LEVELS
from ....module_utils._storage.cache import MODES, WRITETHROUGH
from ....module_utils._storage.filesystems import FILESYSTEMS
from ....module_utils._storage.lvm import EXTENT, LARGEST_EXTENT
from ....module_utils._storage.raid import RaidLevel, parse_level
from ....module_utils._storage.thin import LARGEST_CHUNK, LEAST_CHUNK, LEAST_METADATA
from ..schema.datasets import Properties
from ..unlock import Unlock


class _Level(Kind):
    """A RAID level, in any spelling of mdadm's."""

    wanted = f"one of {', '.join(RaidLevel)}"

    def read(self, value: t.Any) -> RaidLevel:
        return (parse_level(value) if isinstance(value, str) else None) or self.refuse(value)

    def json_schema(self) -> Json:
        return {"enum": [*RaidLevel, *(level.removeprefix("raid") for level in RaidLevel), "stripe", "mirror"]}


class _Guid(Kind):
    """A GUID; it may be empty, which leaves it open."""

    wanted, blank = f"a GUID such as {gpt.LINUX}", ""

    def read(self, value: t.Any) -> str:
        if not isinstance(value, str):
            self.refuse(value)
        try:
            return str(uuid.UUID(value)) if value else ""
        except ValueError:
            self.refuse(value)

    def json_schema(self) -> Json:
        return {"type": "string"}


_NAME, _TEXT, _FLAG, _UUID = Text(filled=True), Text(), Truth(), "A UUID; by default one that follows from what it is of."
_DEVICES = ListOf(_NAME, "devices", least=1)
_KEPT = [
    Row("keep_data", _FLAG, "Whether what is there now stays.", default=False),
    Row("space_id", _TEXT, "The space of the dynamic schema that it is of."),
]
_PARTITION = Table(
    "a partition",
    [
        Row("name", _NAME, "Its device node.", required=True),
        Row("device", _TEXT, "The node of its disk."),
        Row("count", Whole(1), "Its number; by default its position."),
        Row("begin", Whole(0), "The MiB where it begins; 0 only with start_bytes.", required=True),
        Row("end", Whole(1), "The MiB where it ends, exclusively.", required=True),
        Row("start_bytes", Whole(1), "Where one that is kept begins, within the MiB of begin."),
        Row("end_bytes", Whole(1), "Where one that is kept ends, within the MiB before end."),
        Row("partition_type", Word(("primary",)), "A GPT knows no other."),
        Row("guid", _Guid(), "The GUID of its type; by default that of its flags, else Linux data."),
        Row("uuid", _Guid(), _UUID),
        Row("partition_label", _TEXT, "Its name in the table; by default that of its space."),
        Row("flags", ListOf(Word((*gpt.TYPES_BY_FLAG, gpt.LEGACY_BOOT)), "flags"), "parted's flags.", default=()),
        Row("configdrive", Anything(), "Bareon's; says nothing here."),
        *_KEPT,
    ],
)
_DISK = Table(
    "a disk",
    [
        Row("name", _TEXT, "Its device node."),
        Row("disk_id", _NAME, "Its id in plans.", required=True),
        Row("label", Word(("gpt",)), "Its partition table."),
        Row("disk_size", Whole(3), "Its size, which the disk must have."),
        Row("install_bootloader", _FLAG, "Whether the machine boots from it.", default=False),
        Row("partitions", ListOf(_PARTITION, "partitions"), "Its partitions.", default=()),
    ],
)
_ARRAY = Table(
    "an array",
    [
        Row("name", _NAME, "Its device node, such as /dev/md/root.", required=True),
        Row("level", _Level(), "Its RAID level.", required=True),
        Row("devices", _DEVICES, "The partitions that it is made of.", required=True),
        Row("spares", ListOf(_NAME, "devices"), "The spare partitions.", default=()),
        Row("metadata", Word(("default", "1.0", "1.1", "1.2")), "The version of md's metadata.", default="default"),
        Row("mdadm_conf_enabled", _FLAG, "Whether mdadm.conf names it.", default=True),
        *_KEPT,
    ],
)
_CONTAINER = Table(
    "a LUKS container",
    [
        Row("name", _NAME, "What it is opened as.", required=True),
        Row("device", _NAME, "What it lies on.", required=True),
        Row("unlock", Unlock(), "What opens it, each by itself.", default=()),
        Row("key_file", _TEXT, "The key file in crypttab, where the option key_files has no other; none takes it away."),
        Row("crypttab_options", _TEXT, "Options in crypttab, beside those that its line has; a dash before one takes it away."),
        Row("crypttab_enabled", _FLAG, "Whether crypttab names it.", default=True),
        *_KEPT,
    ],
)
_PHYSICAL_VOLUME = Table(
    "a physical volume",
    [
        Row("name", _NAME, "The device that it is.", required=True),
        Row("metadatasize", Whole(0), "MiB of metadata; 0 is LVM's default."),
        Row("metadatacopies", Whole(0, 2), "How many copies of the metadata there are."),
        *_KEPT,
    ],
)
_GROUP = Table(
    "a volume group",
    [
        Row("name", _NAME, "What it is called.", required=True),
        Row("pvnames", _DEVICES, "Its physical volumes.", required=True),
        Row("extent_size", Whole(1, LARGEST_EXTENT), "MiB of an extent, a power of two.", default=EXTENT),
        *_KEPT,
    ],
)
_POOL = Table(
    "a thin pool",
    [
        Row("name", _NAME, "What it is called.", required=True),
        Row("vgname", _NAME, "Its volume group.", required=True),
        Row("size", Whole(1), "Its room for data.", required=True),
        Row("metadata_size", Whole(LEAST_METADATA), "The room for its metadata; LVM takes as much once more, for a spare."),
        Row("chunk_size", Whole(LEAST_CHUNK, LARGEST_CHUNK), "What it gives out at once: KiB, a multiple of 64.", default=LEAST_CHUNK),
        *_KEPT,
    ],
)
_VOLUME = Table(
    "a logical volume",
    [
        Row("name", _NAME, "What it is called.", required=True),
        Row("vgname", _NAME, "Its volume group.", required=True),
        Row("size", Whole(1), "Its size; in a thin pool, the size that it shows.", required=True),
        Row("pool", _TEXT, "The thin pool that it is in."),
        Row("device", _TEXT, "Its device node."),
        *_KEPT,
    ],
)
_CACHE = Table(
    "a cache",
    [
        Row("name", _NAME, "What it is called.", required=True),
        Row("vgname", _NAME, "Its volume group.", required=True),
        Row("origin", _NAME, "The volume that it caches.", required=True),
        Row("device", _NAME, "The physical volume of the group that is all its own.", required=True),
        Row("mode", Word(MODES), "How it caches.", default=WRITETHROUGH),
        *_KEPT,
    ],
)
_SUBVOLUME = Table(
    "a subvolume",
    [
        Row("name", _NAME, "Its path below the top of the file system.", required=True),
        Row("mount", _TEXT, "Where it is mounted; none or an absolute path."),
        Row("fstab_options", _TEXT, "Options of its mount, after those of the file system."),
        Row("quota", Whole(1), "The most MiB that it may hold."),
    ],
)
_FILESYSTEM = Table(
    "a file system",
    [
        Row("device", _NAME, "What it lies on.", required=True),
        Row("mount", _TEXT, "Where it is mounted; none, swap or an absolute path."),
        Row("fs_type", Word(FILESYSTEMS), "Its kind."),
        Row("fs_options", _TEXT, "Options of the program that makes it."),
        Row("fs_label", _TEXT, "Its label."),
        Row("uuid", _TEXT, _UUID),
        Row("fstab_enabled", _FLAG, "Whether it is mounted when the machine starts.", default=True),
        Row("fstab_options", _TEXT, "Options of the mount, beside those that its line has; a dash before one takes it away."),
        Row("os_id", Anything(), "Bareon's; says nothing here."),
        Row("devices", ListOf(_NAME, "devices"), "Of a Btrfs on several devices: all of them, device first.", default=()),
        Row("level", Word([str(level) for level in LEVELS]), "How a Btrfs lies on several devices."),
        Row("subvolumes", ListOf(_SUBVOLUME, "subvolumes"), "Those of a Btrfs.", default=()),
        *_KEPT,
    ],
)
_VDEV = Table(
    "a vdev",
    [
        Row("type", Word([str(kind) for kind in zfs.Vdev]), "How its devices are put together.", required=True),
        Row("devices", _DEVICES, "Its devices.", required=True),
    ],
)
_LOG = Table(
    "a log",
    [
        Row("type", Word([str(kind) for kind in zfs.LOG_KINDS]), "How its devices are put together.", required=True),
        Row("devices", _DEVICES, "Its devices.", required=True),
    ],
)
_DATASET = Table(
    "a dataset",
    [
        Row("name", _NAME, "Its path below the pool.", required=True),
        Row("mount", _TEXT, "Where it is mounted; none, an absolute path, or by default below what it lies in."),
        Row("quota", Whole(1), "The most MiB that it and all in it may hold."),
        Row("reservation", Whole(1), "The MiB that it has for itself."),
        Row("properties", Properties(), "Its properties, as zfs has them.", default=()),
    ],
)
_ZPOOL = Table(
    "a ZFS pool",
    [
        Row("name", _NAME, "What it is called.", required=True),
        Row("vdevs", ListOf(_VDEV, "vdevs", least=1), "What it lies on.", required=True),
        Row("logs", ListOf(_LOG, "logs"), "The devices that keep synchronous writes until these are in place.", default=()),
        Row("caches", ListOf(_NAME, "devices"), "The devices that keep what is read most.", default=()),
        Row("spares", ListOf(_NAME, "devices"), "The devices that stand by.", default=()),
        Row("ashift", Whole(zfs.LEAST_ASHIFT, zfs.LARGEST_ASHIFT), "Its sectors, as a power of two.", default=zfs.ASHIFT),
        Row("mount", _TEXT, "Where its own dataset is mounted; none or an absolute path."),
        Row("properties", Properties(), "Properties of its own dataset, which those in it inherit.", default=()),
        Row("datasets", ListOf(_DATASET, "datasets"), "Those in it.", default=()),
        Row("space_id", _TEXT, "The space that it is of."),
    ],
)
STATIC = Table(
    "a static schema",
    [
        Row("parteds", ListOf(_DISK, "disks"), "Disks and their partitions.", default=()),
        Row("mds", ListOf(_ARRAY, "arrays"), "Arrays of md.", default=()),
        Row("luks", ListOf(_CONTAINER, "LUKS containers"), "LUKS containers.", default=()),
        Row("pvs", ListOf(_PHYSICAL_VOLUME, "physical volumes"), "LVM's physical volumes.", default=()),
        Row("vgs", ListOf(_GROUP, "volume groups"), "LVM's volume groups.", default=()),
        Row("thin_pools", ListOf(_POOL, "thin pools"), "LVM's thin pools.", default=()),
        Row("lvs", ListOf(_VOLUME, "logical volumes"), "LVM's logical volumes.", default=()),
        Row("caches", ListOf(_CACHE, "caches"), "Caches of logical volumes.", default=()),
        Row("zpools", ListOf(_ZPOOL, "ZFS pools"), "ZFS pools and the datasets in them.", default=()),
        Row("fss", ListOf(_FILESYSTEM, "file systems"), "File systems and swap.", default=()),
    ],
)
