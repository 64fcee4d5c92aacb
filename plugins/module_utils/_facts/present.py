# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The present state of a host, which a layout is compared with: the tree of block devices, the disks, LVM, ZFS, and filesystems' sizes.

Sizes are bytes. Devices are called by their kernel names, as in the tree.
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from dataclasses import dataclass, field

from .._storage import zfs
from .lvm import LogicalVolume, PhysicalVolume, VolumeGroup
from .select import Disk
from .signatures import Signature
from .stacks import Superblock
from .torn import Torn
from .tree import Device, Tree


@dataclass(frozen=True)
class ZpoolPart:
    """A vdev of a ZFS pool: `part` None holds data; `name` is what ZFS's tools call it, `devices` are names of devices in the tree."""

    part: t.Optional[zfs.Part]
    name: str
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Zpool:
    """A ZFS pool that is imported; `mounted` are the mount points of its datasets, `vdevs` what it lies on.

    `datasets` are its datasets by their paths below it ("": its own), each with its properties as `zfs get -p` has them.
    """

    name: str
    guid: str
    health: str
    datasets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    mounted: tuple[str, ...] = ()
    vdevs: tuple[ZpoolPart, ...] = ()

    def vdev_of(self, device: Device) -> t.Optional[ZpoolPart]:
        """Return the vdev that a device belongs to."""
        return next((vdev for vdev in self.vdevs if device.name in vdev.devices), None)

    def part_of(self, device: Device) -> t.Optional[zfs.Part]:
        """Return a device's role in its pool, such as log or cache; None for data."""
        vdev = self.vdev_of(device)
        return vdev.part if vdev is not None else None


@dataclass(frozen=True)
class Present:
    """The state; `filesystem_sizes` and `last_mounts` are by device name, where the file system has them. `notes` say what is unreadable.

    `filesystem_uses` are, in the same way, the bytes that are in use of those that can be made smaller.
    `subvolumes` are, by UUID, those of each Btrfs with their limits (None: no limit); only where the layout has some.
    """

    tree: Tree
    disks: tuple[Disk, ...]
    physical: tuple[PhysicalVolume, ...] = ()
    logical: tuple[LogicalVolume, ...] = ()
    filesystem_sizes: Mapping[str, int] = field(default_factory=dict)
    last_mounts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    subvolumes: Mapping[str, Mapping[str, t.Optional[int]]] = field(default_factory=dict)
    filesystem_uses: Mapping[str, int] = field(default_factory=dict)
    spares: Mapping[str, int] = field(default_factory=dict)
    """The spare of thin pools' metadata in each volume group, by its UUID."""
    zpools: tuple[Zpool, ...] = ()
    torn: Mapping[str, Torn] = field(default_factory=dict)
    """By device name each ext4 with a torn superblock; only where the layout has an ext4 there."""
    salt: str = ""
    """What follows from the identity of the host, for the identities of new tables; empty where it has none."""
    unflushed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the name of a cache of bcache the names of the devices some of whose data are in that cache alone."""
    superblocks: Mapping[str, Superblock] = field(default_factory=dict)
    """By device name those of the members of each array that runs without some of them, and of these."""
    traces: Mapping[str, str] = field(default_factory=dict)
    """By device name what shows that somebody has used what an earlier run made and did not finish."""
    sealed: Mapping[str, str] = field(default_factory=dict)
    """By the name of what carries it, on unfinished partitions and volumes: what is closed or stopped, and has something in it."""
    missing: Mapping[tuple[str, int], Signature] = field(default_factory=dict)
    """By the name of a disk and an offset what lies where a partition of the layout begins that the table does not have."""
    loose: Mapping[str, tuple[Signature, ...]] = field(default_factory=dict)
    """By the name of a disk what has a signature in room that no partition has, and that one of the layout takes."""
    seeds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the name of a seed device of Btrfs the names of devices whose file systems may have data there."""

    def groups(self) -> tuple[VolumeGroup, ...]:
        """Return the volume groups; there can be two of one name."""
        found: dict[str, list[PhysicalVolume]] = {}
        for volume in self.physical:
            if volume.group_uuid is not None:
                found.setdefault(volume.group_uuid, []).append(volume)
        return tuple(
            VolumeGroup(
                name=str(members[0].group),
                uuid=uuid,
                extent_size=members[0].extent_size,
                physical=tuple(members),
                volumes=tuple(volume for volume in self.logical if volume.group_uuid == uuid),
                spare=self.spares.get(uuid, 0),
            )
            for uuid, members in found.items()
        )

    def physical_on(self, device: str) -> t.Optional[PhysicalVolume]:
        """Return the physical volume on a device."""
        return next((volume for volume in self.physical if volume.device == device), None)

    def device_of(self, volume: LogicalVolume) -> t.Optional[Device]:
        """Return a logical volume's device; one that is not active has no node."""
        return next((device for device in self.devices_of(volume) if not device.is_part), None)

    def devices_of(self, volume: LogicalVolume) -> tuple[Device, ...]:
        """Return all devices of a logical volume: a thin pool has its own, and a hidden one that its volumes lie on."""
        return tuple(device for device in self.tree.devices.values() if device.kind == "lvm" and device.uuid == volume.uuid)

    def volumes_in(self, pool: LogicalVolume) -> tuple[LogicalVolume, ...]:
        """Return the volumes in a thin pool; none for what is no pool."""
        if not pool.is_pool:
            return ()
        return tuple(volume for volume in self.logical if (volume.group_uuid, volume.pool) == (pool.group_uuid, pool.name))

    def snapshots_of(self, origin: LogicalVolume) -> tuple[LogicalVolume, ...]:
        """Return the snapshots of a volume that are not thin."""
        return tuple(volume for volume in self.logical if (volume.group_uuid, volume.origin) == (origin.group_uuid, origin.name))

    def removed_with(self, volume: LogicalVolume) -> tuple[LogicalVolume, ...]:
        """Return the volumes that LVM removes with one: those in it if it is a thin pool, and all snapshots that are not thin."""
        inside = self.volumes_in(volume)
        return tuple(each for one in (*inside, volume) for each in (*self.snapshots_of(one), *((one,) if one is not volume else ())))

    def zpool_on(self, device: Device) -> t.Optional[Zpool]:
        """Return the imported ZFS pool that a device belongs to."""
        found = device.filesystem
        guid = found.uuid if found is not None and found.type == zfs.MEMBER else None
        # Caches and spares do not say which pool they are of: only the pool does.
        return next((pool for pool in self.zpools if pool.guid == guid or pool.vdev_of(device) is not None), None)

    def whole_disk(self, name: str) -> t.Optional[Disk]:
        """Return the disk that a disk or partition of this kernel name is, or is on."""
        device = self.tree.devices.get(name)
        names = {name, *(device.parents if device is not None and device.partition is not None else ())}
        return next((disk for disk in self.disks if disk.device.name in names), None)

    def disks_below(self, name: str) -> tuple[str, ...]:
        """Return the kernel names of the disks that a device is or lies on; one with several paths is one, by its own name."""
        device = self.tree.devices.get(name)
        if device is None or not device.parents or any(disk.device.name == name for disk in self.disks):
            return (name,)
        return tuple(dict.fromkeys(disk for parent in device.parents for disk in self.disks_below(parent)))
