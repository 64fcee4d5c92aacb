# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The desired layout: what the explicit static schema asks for, checked. Sizes and positions are bytes.

Devices are named as in the schema; every name means exactly one thing in the layout. `space` is the id of a thing's space in the dynamic
schema; where the schema has none, the last part of the thing's own name. Options of mounts and of crypttab are texts,
as the schema has them.
"""

from __future__ import annotations

import functools
import typing as t
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from .._storage import btrfs, derived, lvm
from .._storage.filesystems import NOT_MOUNTED, SWAP
from .._storage.units import MIB
from .._storage.unlock import Method
from .._storage.zfs import Part, Vdev
from .lvm import DesiredCache, DesiredGroup, DesiredPhysicalVolume, DesiredPool, DesiredVolume
from .md import DesiredArray


@dataclass(frozen=True)
class DesiredPartition:
    """A partition. `uuid` is its final PARTUUID, `label` its name in the table (empty: it does not matter), `attrs` sfdisk's text."""

    place: str
    device: str
    number: int
    start: int
    size: int
    type: str
    uuid: str
    label: str = ""
    attrs: t.Optional[str] = None
    keep_data: bool = False
    purpose: str = ""
    """What `uuid` follows from, with the disk; empty where the schema has it."""
    space: str = ""
    named: bool = False
    """Whether `label` is in the schema; else it follows from the space."""

    @property
    def end(self) -> int:
        """Where it ends, exclusively."""
        return self.start + self.size

    @property
    def begin(self) -> int:
        """The MiB in which it begins."""
        return self.start // MIB

    @property
    def mib(self) -> int:
        """How many MiB it reaches into."""
        return -(-self.end // MIB) - self.begin

    @property
    def own_uuid(self) -> str:
        """The UUID in the schema, empty where there is none."""
        return "" if self.purpose else self.uuid

    @property
    def own_label(self) -> str:
        """The label in the schema, empty where there is none."""
        return self.label if self.named else ""

    @property
    def boots(self) -> bool:
        """Whether a BIOS is to start from it, by the flag that is called legacy_boot."""
        return self.attrs is not None

    @property
    def unfinished(self) -> str:
        """The PARTUUID it has until all on it is complete."""
        return derived.unfinished_uuid(self.uuid)

    @property
    def condemned(self) -> str:
        """The PARTUUID that marks an existing partition for rebuild."""
        return derived.condemned_uuid(self.uuid)

    @property
    def receiving(self) -> str:
        """The PARTUUID it has while it takes what is moved off another disk."""
        return derived.receiving_uuid(self.uuid)


@dataclass(frozen=True)
class DesiredDisk:
    """A disk to be used; `id` is what the plan calls it, `size` its size in MiB as the plan has it (None: not checked)."""

    place: str
    id: str
    device: str
    size: t.Optional[int]
    partitions: tuple[DesiredPartition, ...]
    table: str = ""
    """The GUID of the partition table, which stays or is new."""
    boots: bool = False
    """Whether the machine starts from it."""

    @property
    def name(self) -> str:
        """A short name: the last part of its device."""
        return self.device.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class DesiredContainer:
    """A LUKS container on `below`, opened as /dev/mapper/NAME; `unlock` is what is to open it in the end."""

    place: str
    name: str
    below: str
    keep_data: bool = False
    unlock: tuple[Method, ...] = ()
    space: str = ""
    key_file: str = ""
    """The key file in its line of crypttab: empty where the schema has none, `none` to take it away."""
    crypttab_options: str = ""
    in_crypttab: bool = True

    @property
    def device(self) -> str:
        """The node it is opened as."""
        return f"{lvm.MAPPER}{self.name}"


@dataclass(frozen=True)
class DesiredSubvolume:
    """A subvolume of a Btrfs, by its path below the top; `limit` is the most that it may refer to, None where that does not matter."""

    place: str
    name: str
    limit: t.Optional[int] = None
    mount: str = "none"
    mount_options: str = ""
    in_fstab: bool = True

    @property
    def mount_point(self) -> str:
        """Where it is mounted when the machine starts, empty where it is not."""
        return self.mount if self.mount.startswith("/") and self.in_fstab else ""


@dataclass(frozen=True)
class Mount:
    """A file system or a subvolume where it is mounted, or swap, `path` "swap"; `options` as the schema has them."""

    filesystem: DesiredFilesystem
    path: str
    options: str


@dataclass(frozen=True)
class DesiredFilesystem:
    """A filesystem or swap; `uuid` None: derived from what it lies on. `options` are words for mkfs."""

    place: str
    device: str
    type: str
    label: str = ""
    options: tuple[str, ...] = ()
    mount: str = "none"
    keep_data: bool = False
    uuid: t.Optional[str] = None
    subvolumes: tuple[DesiredSubvolume, ...] = ()
    more: tuple[str, ...] = ()
    """The other devices of a Btrfs on several; `level` says how it lies on them."""
    level: str = ""
    space: str = ""
    mount_options: str = ""
    make_text: str = ""
    """The options of mkfs, as the schema has them."""
    in_fstab: bool = True

    @property
    def mount_point(self) -> str:
        """Where it is mounted when the machine starts, empty where it is not."""
        return self.mount if self.mount.startswith("/") and self.in_fstab else ""

    @property
    def is_swap(self) -> bool:
        """Whether it is swap."""
        return self.type == SWAP

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """Where it and its subvolumes are mounted, and its use as swap; none where fstab does not name it."""
        own = Mount(self, self.mount, self.mount_options)
        inner = (
            Mount(self, subvolume.mount, btrfs.mount_options(self.mount_options, subvolume.mount_options, subvolume.name))
            for subvolume in self.subvolumes
        )
        return tuple(mount for mount in (own, *inner) if self.in_fstab and mount.path != NOT_MOUNTED)

    @property
    def devices(self) -> tuple[str, ...]:
        """All devices that it lies on."""
        return (self.device, *self.more)


@dataclass(frozen=True)
class DesiredDataset:
    """A dataset by its path below its pool ("": the pool's own); `properties` are what `zfs create` takes, the mount point among them."""

    place: str
    name: str
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def mount(self) -> str:
        """Where it is mounted; "none" also where that follows from what it lies in."""
        return dict(self.properties).get("mountpoint", "none")

    @property
    def quota(self) -> t.Optional[int]:
        """The most that it and all in it may hold."""
        quota = dict(self.properties).get("quota")
        return None if quota is None else int(quota)


@dataclass(frozen=True)
class DesiredVdev:
    """Devices of a ZFS pool that are put together; `type` is mirror, raidz1, raidz2, raidz3, or stripe: each for itself."""

    type: str
    devices: tuple[str, ...]


@dataclass(frozen=True)
class DesiredPart:
    """A log, a cache or a spare of a ZFS pool; `type` is stripe, or mirror for a log."""

    part: Part
    type: str
    devices: tuple[str, ...]


@dataclass(frozen=True)
class DesiredZpool:
    """A ZFS pool; `root` is its own dataset, `datasets` are those in it."""

    place: str
    name: str
    vdevs: tuple[DesiredVdev, ...]
    ashift: int
    root: DesiredDataset
    datasets: tuple[DesiredDataset, ...] = ()
    logs: tuple[DesiredVdev, ...] = ()
    caches: tuple[str, ...] = ()
    spares: tuple[str, ...] = ()
    space: str = ""

    @property
    def data_devices(self) -> tuple[str, ...]:
        """The devices that its data lie on."""
        return tuple(device for vdev in self.vdevs for device in vdev.devices)

    @property
    def parts(self) -> tuple[DesiredPart, ...]:
        """The logs, caches and spares of the pool, each of which can be added and removed by itself."""
        logs = tuple(DesiredPart(Part.LOG, log.type, log.devices) for log in self.logs)
        singles = ((Part.CACHE, self.caches), (Part.SPARE, self.spares))
        return (*logs, *(DesiredPart(part, Vdev.STRIPE, (device,)) for part, devices in singles for device in devices))

    @property
    def devices(self) -> tuple[str, ...]:
        """All its devices, those of its data first."""
        return (*self.data_devices, *(device for part in self.parts for device in part.devices))

    def part_of(self, device: str) -> t.Optional[Part]:
        """Return a device's role in the pool, such as log or cache; None for data."""
        return next((part.part for part in self.parts if device in part.devices), None)


Thing = t.Union[DesiredPartition, DesiredArray, DesiredContainer, DesiredVolume]
"""What something else can lie on."""
User = t.Union[DesiredFilesystem, DesiredContainer, DesiredArray, DesiredGroup, DesiredZpool]
"""What lies on a device."""


@dataclass(frozen=True)
class Layout:
    """Everything that is desired."""

    disks: tuple[DesiredDisk, ...] = ()
    arrays: tuple[DesiredArray, ...] = ()
    containers: tuple[DesiredContainer, ...] = ()
    groups: tuple[DesiredGroup, ...] = ()
    volumes: tuple[DesiredVolume, ...] = ()
    filesystems: tuple[DesiredFilesystem, ...] = ()
    pools: tuple[DesiredPool, ...] = ()
    caches: tuple[DesiredCache, ...] = ()
    zpools: tuple[DesiredZpool, ...] = ()
    physical: tuple[DesiredPhysicalVolume, ...] = ()
    """All physical volumes, those of groups as well."""

    def partitions(self) -> Iterator[DesiredPartition]:
        """Give all partitions."""
        for disk in self.disks:
            yield from disk.partitions

    def things(self) -> Iterator[Thing]:
        """Give all that something else can lie on."""
        yield from self.partitions()
        yield from self.arrays
        yield from self.containers
        yield from self.volumes

    def thing(self, device: str) -> t.Optional[Thing]:
        """Return what has this device name."""
        return self._things.get(device)

    def lies_on(self, device: str) -> t.Optional[User]:
        """Return what lies on a device: an array that it is a member or a spare of, a group that it is a physical volume of ..."""
        return self._users.get(device)

    def array_of(self, device: str) -> t.Optional[DesiredArray]:
        """Return the array that a device is a member or a spare of."""
        user = self.lies_on(device)
        return user if isinstance(user, DesiredArray) else None

    def container_on(self, device: str) -> t.Optional[DesiredContainer]:
        """Return the LUKS container on a device."""
        user = self.lies_on(device)
        return user if isinstance(user, DesiredContainer) else None

    def group_of(self, device: str) -> t.Optional[DesiredGroup]:
        """Return the group that a device is a physical volume of."""
        user = self.lies_on(device)
        return user if isinstance(user, DesiredGroup) else None

    def filesystem_on(self, device: str) -> t.Optional[DesiredFilesystem]:
        """Return the filesystem on a device."""
        user = self.lies_on(device)
        return user if isinstance(user, DesiredFilesystem) else None

    def zpool_on(self, device: str) -> t.Optional[DesiredZpool]:
        """Return the ZFS pool that a device belongs to."""
        user = self.lies_on(device)
        return user if isinstance(user, DesiredZpool) else None

    def devices_above(self, device: str) -> Iterator[str]:
        """Give a device and all that lie on it: arrays, containers, and the volumes of a group."""
        yield device
        user = self.lies_on(device)
        above: tuple[Thing, ...] = (user,) if isinstance(user, (DesiredArray, DesiredContainer)) else ()
        for thing in self.volumes_of(user.name) if isinstance(user, DesiredGroup) else above:
            yield from self.devices_above(thing.device)

    def mounts(self) -> tuple[Mount, ...]:
        """Return all file systems and subvolumes that are mounted, and swap."""
        return tuple(mount for filesystem in self.filesystems for mount in filesystem.mounts)

    def is_bare(self, device: str) -> bool:
        """Return whether nothing is made on a device."""
        return self.lies_on(device) is None

    def title(self, thing: Thing) -> str:
        """Return a name that no other thing of the same kind has: that of the space, numbered where the space has several."""
        return self._titles[thing.device]

    def kept(self) -> tuple[str, ...]:
        """Return the spaces whose data are to be kept."""
        things = (*self.things(), *self.groups, *self.filesystems)
        return tuple(dict.fromkeys(thing.space for thing in things if thing.keep_data))

    def volumes_of(self, group: str) -> tuple[DesiredVolume, ...]:
        """Return a group's logical volumes in the order of the schema."""
        return tuple(volume for volume in self.volumes if volume.group == group)

    def pools_of(self, group: str) -> tuple[DesiredPool, ...]:
        """Return a group's thin pools in the order of the schema."""
        return tuple(pool for pool in self.pools if pool.group == group)

    def caches_of(self, group: str) -> tuple[DesiredCache, ...]:
        """Return a group's caches in the order of the schema."""
        return tuple(cache for cache in self.caches if cache.group == group)

    def partitions_below(self, device: str) -> tuple[DesiredPartition, ...]:
        """Return the partitions that a device lies on; for a logical volume those of its whole group."""
        thing = self.thing(device)
        if isinstance(thing, DesiredPartition):
            return (thing,)
        if isinstance(thing, DesiredContainer):
            return self.partitions_below(thing.below)
        if isinstance(thing, DesiredArray):
            return tuple(part for member in (*thing.members, *thing.spares) for part in self.partitions_below(member))
        group = next((group for group in self.groups if isinstance(thing, DesiredVolume) and group.name == thing.group), None)
        return tuple(part for volume in (group.physical if group else ()) for part in self.partitions_below(volume.device))

    def with_shrinking(self, names: Collection[str]) -> Layout:
        """Return the layout with these volumes (GROUP/NAME) allowed to be made smaller."""
        return replace(self, volumes=tuple(replace(volume, may_shrink=volume.title in names) for volume in self.volumes))

    @functools.cached_property
    def _things(self) -> dict[str, Thing]:
        return {thing.device: thing for thing in self.things()}

    @functools.cached_property
    def _users(self) -> dict[str, User]:
        users: dict[str, User] = {}
        for user, devices in self._uses():
            for device in devices:
                users.setdefault(device, user)
        return users

    def _uses(self) -> Iterator[tuple[User, tuple[str, ...]]]:
        """Give all that lies on devices, each with these."""
        yield from ((array, (*array.members, *array.spares)) for array in self.arrays)
        yield from ((container, (container.below,)) for container in self.containers)
        yield from ((group, group.devices) for group in self.groups)
        yield from ((filesystem, filesystem.devices) for filesystem in self.filesystems)
        yield from ((zpool, zpool.devices) for zpool in self.zpools)

    @functools.cached_property
    def _titles(self) -> dict[str, str]:
        titles: dict[str, str] = {}
        kinds: tuple[tuple[Thing, ...], ...] = (tuple(self.partitions()), self.arrays, self.containers, self.volumes)
        for things in kinds:
            for space in dict.fromkeys(thing.space for thing in things):
                own = [thing for thing in things if thing.space == space]
                titles.update({thing.device: space if len(own) == 1 else f"{space}-{at}" for at, thing in enumerate(own, start=1)})
        return titles

    def filesystem_uuid(self, device: str, desired: DesiredFilesystem) -> str:
        """Return the UUID with which a filesystem is made on a device, or in the LUKS container on it: the schema's, or a derived one."""
        return desired.uuid or derived.filesystem_uuid(desired.type, self.identity(device))

    def identity(self, device: str) -> str:
        """Return what the UUIDs of all that lies on a device derive from."""
        thing = self.thing(device)
        if isinstance(thing, DesiredPartition):
            return thing.uuid
        below = self.partitions_below(device)
        if isinstance(thing, DesiredVolume):
            return derived.volume_identity(thing.group, thing.name, below[0].uuid)
        return derived.array_uuid(tuple(part.uuid for part in below))
