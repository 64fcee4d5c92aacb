# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one table of the static schema: what each list holds, in words, and what its values may be. Sizes and positions are whole MiB.

Hosts and controller read a schema by it, and docs/schemas/static-schema.json is made from it. The objects are Bareon's (its
`nailgun_simple` input), as disk_plan writes them; keys of Bareon's that say nothing here are accepted.
"""

from __future__ import annotations

import typing as t

from .._data.containers import ListOf, Row, Table
from .._data.kinds import Anything, Text, Truth, Whole, Word, shown
from .._storage import btrfs, crypttab, gpt, names, zfs
from .._storage.btrfs import LEVELS
from .._storage.filesystems import FILESYSTEMS, NOT_MOUNTED, SWAP
from .._storage.lvm import MAPPER
from .._storage.names import why_no_mapping
from .kinds import DEVICES, KEPT, NODE, NODE_IF_ANY, NODES, Amount, Guid, Named, Properties
from .lvm import CACHE, GROUP, PHYSICAL_VOLUME, POOL, VOLUME
from .md import ARRAY
from .unlock import Unlock


def _why_no_container(text: str) -> t.Optional[str]:
    return why_no_mapping(text[len(MAPPER) :] if text.startswith(MAPPER) else text)


def _why_no_mount(text: str) -> t.Optional[str]:
    return None if text == NOT_MOUNTED else names.why_no_mount(text)


def _why_no_mount_or_swap(text: str) -> t.Optional[str]:
    return None if text == SWAP else _why_no_mount(text)


def _why_no_pool(text: str) -> t.Optional[str]:
    return None if zfs.is_pool_name(text) else f"must be {zfs.POOL_WANTED}, not {shown(text)}"


def _why_no_dataset(text: str) -> t.Optional[str]:
    return None if zfs.is_dataset_name(text) else f"must be {zfs.DATASET_WANTED}, not {shown(text)}"


def _why_no_subvolume(text: str) -> t.Optional[str]:
    return None if btrfs.subvolume_name(text) is not None else f"must be {btrfs.NAME_WANTED}, not {shown(text)}"


_TEXT, _FLAG, _UUID = Text(), Truth(), "A UUID; by default derived from the names of the layout."
_MOUNT = Named(_why_no_mount, filled=False)
_KEY_FILE, _CRYPTTAB_OPTIONS = Named(crypttab.why_no_key_file, filled=False), Named(crypttab.why_no_options, filled=False)
_PARTITION = Table(
    "a partition",
    [
        Row("name", NODE, "Its device node; by default that of its number on its disk."),
        Row("device", NODE_IF_ANY, "The node of its disk."),
        Row("count", Amount(1), "Its number; by default its position."),
        Row("begin", Amount(0), "The MiB where it begins; 0 only with start_bytes.", required=True),
        Row("end", Amount(1), "The MiB where it ends, exclusively.", required=True),
        Row("start_bytes", Amount(1), "Where one that is kept begins, within the MiB of begin."),
        Row("end_bytes", Amount(1), "Where one that is kept ends, within the MiB before end."),
        Row("partition_type", Word(("primary",)), "A GPT knows no other."),
        Row("guid", Guid(), "The GUID of its type; by default that of its flags, else Linux data."),
        Row("uuid", Guid(), _UUID),
        Row("partition_label", _TEXT, "Its name in the table; by default that of its space."),
        Row("flags", ListOf(Word((*gpt.TYPES_BY_FLAG, gpt.LEGACY_BOOT)), "flags"), "parted's flags.", default=()),
        Row("configdrive", Anything(), "Bareon's; says nothing here."),
        *KEPT,
    ],
)
_DISK = Table(
    "a disk",
    [
        Row("name", NODE_IF_ANY, "Its device node."),
        Row("disk_id", Named(names.why_no_disk_id), "Its id in plans; by default its name."),
        Row("label", Word(("gpt",)), "Its partition table."),
        Row("disk_size", Amount(3), "Its size, which the disk must have."),
        Row("install_bootloader", _FLAG, "Whether the machine boots from it.", default=False),
        Row("partitions", ListOf(_PARTITION, "partitions"), "Its partitions.", default=()),
    ],
)
_CONTAINER = Table(
    "a LUKS container",
    [
        Row("name", Named(_why_no_container), "What it is opened as.", required=True),
        Row("device", NODE, "What it lies on.", required=True),
        Row("unlock", Unlock(), "What opens it, each by itself.", default=()),
        Row(
            "key_file",
            _KEY_FILE,
            "The key file in crypttab, where the option key_files has no other; none takes it away.",
        ),
        Row(
            "crypttab_options",
            _CRYPTTAB_OPTIONS,
            "Options for crypttab, added to those of the container's line; a dash before an option removes it.",
        ),
        Row("crypttab_enabled", _FLAG, "Whether crypttab names it.", default=True),
        *KEPT,
    ],
)
_SUBVOLUME = Table(
    "a subvolume",
    [
        Row("name", Named(_why_no_subvolume), "Its path below the top of the file system.", required=True),
        Row("mount", _MOUNT, "Where it is mounted; none or an absolute path."),
        Row("fstab_options", _TEXT, "Options of its mount, after those of the file system."),
        Row("quota", Amount(1), "The most MiB that it may hold."),
    ],
)
_FILESYSTEM = Table(
    "a file system",
    [
        Row("device", NODE, "What it lies on.", required=True),
        Row("mount", Named(_why_no_mount_or_swap, filled=False), "Where it is mounted; none, swap or an absolute path."),
        Row("fs_type", Word(FILESYSTEMS), "Its kind."),
        Row("fs_options", _TEXT, "Options of the program that makes it."),
        Row("fs_label", _TEXT, "Its label."),
        Row("uuid", _TEXT, _UUID),
        Row("fstab_enabled", _FLAG, "Whether it is mounted when the machine starts.", default=True),
        Row("fstab_options", _TEXT, "Mount options, added to those of the line in fstab; a dash before an option removes it."),
        Row("os_id", Anything(), "Bareon's; says nothing here."),
        Row("devices", NODES, "Of a Btrfs on several devices: all of them, device first.", default=()),
        Row("level", Word([str(level) for level in LEVELS]), "How a Btrfs lies on several devices."),
        Row("subvolumes", ListOf(_SUBVOLUME, "subvolumes"), "Those of a Btrfs.", default=()),
        *KEPT,
    ],
)
_VDEV = Table(
    "a vdev",
    [
        Row("type", Word([str(kind) for kind in zfs.Vdev]), "How its devices are put together.", required=True),
        Row("devices", DEVICES, "Its devices.", required=True),
    ],
)
_LOG = Table(
    "a log",
    [
        Row("type", Word([str(kind) for kind in zfs.LOG_KINDS]), "How its devices are put together.", required=True),
        Row("devices", DEVICES, "Its devices.", required=True),
    ],
)
_DATASET = Table(
    "a dataset",
    [
        Row("name", Named(_why_no_dataset), "Its path below the pool.", required=True),
        Row("mount", _MOUNT, "Where it is mounted; none, an absolute path, or by default below what it lies in."),
        Row("quota", Amount(1), "The most MiB that it and all in it may hold."),
        Row("reservation", Amount(1), "The MiB that it has for itself."),
        Row("properties", Properties(), "Its properties, as zfs has them.", default=()),
    ],
)
_ZPOOL = Table(
    "a ZFS pool",
    [
        Row("name", Named(_why_no_pool), "What it is called.", required=True),
        Row("vdevs", ListOf(_VDEV, "vdevs", least=1), "What it lies on.", required=True),
        Row("logs", ListOf(_LOG, "logs"), "The devices that keep synchronous writes until these are in place.", default=()),
        Row("caches", NODES, "The devices that keep what is read most.", default=()),
        Row("spares", NODES, "The devices that stand by.", default=()),
        Row("ashift", Whole(zfs.LEAST_ASHIFT, zfs.LARGEST_ASHIFT), "Its sectors, as a power of two.", default=zfs.ASHIFT),
        Row("mount", _MOUNT, "Where its own dataset is mounted; none or an absolute path."),
        Row("properties", Properties(), "Properties of its own dataset, which those in it inherit.", default=()),
        Row("datasets", ListOf(_DATASET, "datasets"), "Those in it.", default=()),
        Row("space_id", Named(names.why_no_text, filled=False), "The id of its space in the dynamic schema."),
    ],
)
STATIC = Table(
    "a static schema",
    [
        Row("parteds", ListOf(_DISK, "disks"), "Disks and their partitions.", default=()),
        Row("mds", ListOf(ARRAY, "arrays"), "Arrays of md.", default=()),
        Row("luks", ListOf(_CONTAINER, "LUKS containers"), "LUKS containers.", default=()),
        Row("pvs", ListOf(PHYSICAL_VOLUME, "physical volumes"), "LVM's physical volumes.", default=()),
        Row("vgs", ListOf(GROUP, "volume groups"), "LVM's volume groups.", default=()),
        Row("thin_pools", ListOf(POOL, "thin pools"), "LVM's thin pools.", default=()),
        Row("lvs", ListOf(VOLUME, "logical volumes"), "LVM's logical volumes.", default=()),
        Row("caches", ListOf(CACHE, "caches"), "Caches of logical volumes.", default=()),
        Row("zpools", ListOf(_ZPOOL, "ZFS pools"), "ZFS pools and the datasets in them.", default=()),
        Row("fss", ListOf(_FILESYSTEM, "file systems"), "File systems and swap.", default=()),
    ],
)
