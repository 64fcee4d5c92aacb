# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of disk planning: disks, spaces, and what was allotted. Sizes are whole MiB.

Parsers make `Hardware` and `Schema`, solvers make `Allocation`, converters read all three. Disks and spaces are known
to the solvers by their position in these tuples.
"""

from __future__ import annotations

import functools
import typing as t
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ...module_utils._storage.cache import WRITETHROUGH
from ...module_utils._storage.drives import domains
from ...module_utils._storage.lvm import EXTENT
from ...module_utils._storage.raid import ArrayOptions, RaidLevel
from ...module_utils._storage.unlock import Method
from ...module_utils._storage.zfs import ASHIFT, Part, Shape, Vdev, shape_of


class SpaceType(StrEnum):
    """The types of the dynamic schema."""

    VOLUME_GROUP = "vg"
    LOGICAL_VOLUME = "lv"
    THIN_POOL = "thin_pool"
    """Room in a vg that thin volumes take as they are written to; bounds are the room for data."""
    THIN_VOLUME = "thin"
    """A volume in a thin pool; its size is what it seems to have, and takes nothing by itself."""
    PARTITION = "partition"
    """On exactly one disk."""
    PARTITIONS = "partitions"
    """On as many disks as useful; bounds hold for the sum."""
    RAID = "raid"
    """Equal legs on distinct disks; bounds are the data capacity of the legs."""
    BTRFS = "btrfs"
    """A file system on equal partitions of distinct disks; bounds are the room for data."""
    ZPOOL = "zpool"
    """A ZFS pool on equal partitions of distinct disks; bounds are the room that its datasets share."""
    DISK = "disk"
    """Every disk of its set, whole and without a partition table, for a program that manages disks itself."""
    ESP = "esp"
    BIOS_GRUB = "bios_grub"


class Firmware(StrEnum):
    """What starts the machine, and so what a disk that boots must carry."""

    UEFI = "uefi"
    BIOS = "bios"


BOOT_PARTITIONS = {Firmware.UEFI: SpaceType.ESP, Firmware.BIOS: SpaceType.BIOS_GRUB}
"""What a disk that boots carries for each firmware."""
ESP_MOUNT = "/boot/efi"


@dataclass(frozen=True)
class ExistingSpace:
    """A partition or logical volume that is on the disk before planning; start and size in MiB, rounded outwards.

    `label` is the other name that a partition may be known by: of its file system, or of the vg or array that it is a part of.
    A logical volume (`volume_group` says of which vg) has no start, and is listed with one disk only.
    """

    name: str
    start: int
    size: int
    label: str = ""
    volume_group: str | None = None
    number: int | None = field(default=None, compare=False)
    """Of a partition, in its table."""
    uuids: tuple[str, ...] = field(default=(), compare=False)
    """Of a partition and of what is on it, in lower case."""


@dataclass(frozen=True)
class Disk:
    """One disk as the facts give it. `size` is in MiB, rounded down; `facts` is the whole mapping, for expressions."""

    id: str
    size: int
    path: str = ""
    dev: str = ""
    type: str = ""
    logical_block: int = 512
    physical_block: int = 512
    existing: tuple[ExistingSpace, ...] = ()
    drives: tuple[str, ...] = ()
    """What it fails with: the drive that a namespace is on, or those behind a controller's volume; empty where nothing is known."""
    facts: Mapping[str, t.Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class LeftOutDisk:
    """A disk that a plan does not use. `reason` follows the disk's name in a sentence; `kinds` (words of `eligible`) would take it in."""

    disk: Disk
    reason: str
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Hardware:
    """The machine that is planned. `facts` is what `$` means in an expression; `left_out` are disks that are not to be used."""

    disks: tuple[Disk, ...]
    ram: int | None = None
    firmware: Firmware | None = None
    facts: Mapping[str, t.Any] = field(default_factory=dict, compare=False)
    left_out: tuple[LeftOutDisk, ...] = ()

    @functools.cached_property
    def drives(self) -> tuple[int, ...]:
        """The drive of every disk: the position of the first disk of all those that fail together."""
        return domains([disk.drives for disk in self.disks]) if any(disk.drives for disk in self.disks) else tuple(range(len(self.disks)))


@dataclass(frozen=True)
class Subvolume:
    """A part of a Btrfs that is mounted by itself; `name` is its path below the top, `quota` the most MiB that it may refer to."""

    name: str
    mount: str | None = None
    mount_options: str | None = None
    quota: int | None = None


@dataclass(frozen=True)
class Dataset:
    """A part of a ZFS pool with properties of its own; `name` is its path below the pool, `quota` and `reservation` are MiB."""

    name: str
    mount: str | None = None
    quota: int | None = None
    reservation: int | None = None
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Space:
    """One entry of the dynamic schema with all expressions evaluated.

    `min_size` and `max_size` in MiB (`size` of the schema has become both). `allowed` are the positions of the disks it
    may use (all that `disks` and `avoid_disks` leave); `preferred_disks` the positions of `best_with_disks`, best tier first,
    empty without a preference. `volume_group` is the id of the vg that contains it, or None. `legs` is resolved
    (`all` has become a number); 0 for anything but a raid, a btrfs on several disks, a zpool and the mirrored log of one.
    """

    id: str
    type: SpaceType
    place: str
    """Where it stands in the schema, for messages: `schema[3]`."""
    min_size: int = 0
    max_size: int | None = None
    min_percentage: str = ""
    """The minimum as it was written, where that is a percentage, such as `30 %`."""
    max_percentage: str = ""
    weight: float = 1.0
    allowed: frozenset[int] = frozenset()
    sector: int = 512
    """The bytes of the largest logical sector of these disks."""
    disks_given: str = ""
    """`disks` and `avoid_disks` as they were written, for messages."""
    preferred_disks: tuple[frozenset[int], ...] = ()
    volume_group: str | None = None
    contains: tuple[str, ...] = ()
    thin_pool: str | None = None
    """Of a thin volume: the id of the pool that it is in; `volume_group` is that of the pool."""
    overcommit: float = 1.0
    """Of a thin pool: how many times its room its volumes may come to."""
    metadata_size: int | None = None
    """Of a thin pool, in MiB; None for what its size and its chunks ask for."""
    chunk_size: int | None = None
    """Of a thin pool, in KiB; None for what its size asks for."""
    stripes: int | None = None
    """Of an lv in a vg: on how many physical volumes it lies, in equal parts; None for wherever there is room."""
    stripe_size: int | None = None
    """Of a striped lv, in KiB: how much is written to one of its physical volumes before the next; None for LVM's default."""
    level: RaidLevel | None = None
    array: ArrayOptions = ArrayOptions()
    write_mostly: frozenset[int] | None = None
    """Of a raid1: the positions of disks that it is read from only where it must; None where that is left open."""
    legs: int = 0
    spares: int = 0
    """Of an array or a ZFS pool: how many disks more stand by, each with a partition as large as a leg."""
    per_disk: int = 0
    """How many partitions it has on every disk; 0 where it is not on every one."""
    max_pvs: int | None = None
    extent_size: int = EXTENT
    """Of a vg, in MiB."""
    apart_from: tuple[str, ...] = ()
    """Spaces (ids) with which it shares no disk."""
    together_with: tuple[str, ...] = ()
    """Spaces (ids) that lie on every disk that it lies on."""
    none_order: bool = False
    optional: bool = False
    priority: int = 0
    """Of optional spaces those with the highest number are left out first."""
    boot: bool = False
    encrypt: bool = False
    unlock: tuple[Method, ...] = ()
    """The unlock methods, if it or its vg is encrypted; empty if the schema has none."""
    keep_data: bool = False
    kept_at: tuple[tuple[int, int], ...] | None = None
    """Where what it keeps is, disk and start in MiB, when something else than its id says so (`keep`)."""
    copy_of: str | None = None
    """Of one of several that are alike and on disks of their own: the id that the schema has for all of them."""
    mirror_of: str | None = None
    """Of the array that was put below a vg because a mirror was wanted: the id of the vg."""
    mount: str | None = None
    mount_options: str | None = None
    fs_type: str | None = None
    fs_options: str | None = None
    fs_label: str | None = None
    subvolumes: tuple[Subvolume, ...] = ()
    """Of a space with a Btrfs."""
    cache_of: str | None = None
    """Of a partition or an array: the lv that it caches."""
    cache_mode: str = WRITETHROUGH
    vdev: Vdev = Vdev.MIRROR
    """Of a ZFS pool: how its disks are put together; `vdevs` of these it has, or as many as usual."""
    vdevs: int | None = None
    ashift: int = ASHIFT
    zpool: str | None = None
    """Of a partition: the id of the ZFS pool that it is a log or a cache of, as `zpool_part` says."""
    zpool_part: Part | None = None
    datasets: tuple[Dataset, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    """Of the pool's own dataset, which those in it inherit."""
    partition_type: str | None = None
    """The GUID of the type that its partitions are to have; None for what follows from what lies there."""
    partition_label: str | None = None
    """The name that its partitions have in the table; None for its id."""

    @property
    def wish(self) -> str:
        """The id that the schema has for it."""
        return self.copy_of or self.id

    @property
    def mounts(self) -> tuple[str, ...]:
        """Return where it and its subvolumes are mounted."""
        inside = (*(subvolume.mount for subvolume in self.subvolumes), *(dataset.mount for dataset in self.datasets))
        return tuple(mount for mount in (self.mount, *inside) if mount is not None)

    @property
    def is_striped(self) -> bool:
        """Return whether it is a volume in equal parts on several physical volumes."""
        return (self.stripes or 1) > 1

    @property
    def shape(self) -> Shape:
        """Return how a ZFS pool lies on its disks."""
        return shape_of(self.vdev, self.legs, self.vdevs)

    def spares_among(self, pieces: int) -> int:
        """Return how many of an array's pieces stand by; fewer than asked for where data is kept on an array that had none."""
        return min(self.spares, max(0, pieces - self.legs))


@dataclass(frozen=True)
class Schema:
    """The dynamic schema: spaces in the order of the input.

    `flat` says that lvs lie straight on the disks, for there is no vg: then there is no overhead to count, as in the
    seed's examples. (A schema of partitions only is not flat: partitions need a table.)
    """

    spaces: tuple[Space, ...]
    flat: bool
    warnings: tuple[str, ...] = ()
    """What the user should know about the schema on this machine, such as a preference that no disk meets."""
    mirrored: tuple[str, ...] = ()
    """Spaces that lie on a mirror because that is possible, and need not."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Optional spaces that this machine does not get, each with the reason."""

    def by_id(self, space_id: str) -> Space:
        """Return the space of that id; KeyError when there is none."""
        for space in self.spaces:
            if space.id == space_id:
                return space
        raise KeyError(space_id)


@dataclass(frozen=True)
class Piece:
    """What one space takes of one disk: positions in Schema.spaces and Hardware.disks, MiB of the disk.

    For an lv in a vg there is no piece: its vg has the pieces (the PV partitions). `start` is where a piece must begin
    (MiB from the start of the disk) because its data is kept there; None for a new piece.
    """

    space: int
    disk: int
    size: int
    start: int | None = None


@dataclass(frozen=True)
class Allocation:
    """A solver's answer, whole MiB.

    `pieces` in disk order and within a disk in the order they are to lie on it; `volumes` the sizes of lvs that
    belong to a vg (position in Schema.spaces -> MiB, a multiple of the extent), of thin pools with all that they keep for
    themselves. `proven` is False when a limit ended the search; `gap` is then by how much the spaces (positions) of `open_level`
    might be larger, relative to what they are. `off_preferred` is MiB of each space (position) that no preferred disk had room
    for.
    """

    pieces: tuple[Piece, ...]
    volumes: Mapping[int, int] = field(default_factory=dict)
    proven: bool = True
    gap: float = 0.0
    open_level: tuple[int, ...] = ()
    off_preferred: Mapping[int, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    striped: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The disks (positions) of the physical volumes that each striped volume (position) lies on."""
