# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The explicit static schema of a plan as a layout: what lies on what, and which space it is of. Sizes and positions are whole MiB."""

from __future__ import annotations

import functools
import shlex
import typing as t
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....module_utils._data.containers import Values
from ....module_utils._data.errors import Mistakes
from ....module_utils._schema.table import STATIC
from ....module_utils._storage import gpt
from ....module_utils._storage.btrfs import mount_options
from ....module_utils._storage.filesystems import DEFAULT, FILESYSTEMS, NOT_MOUNTED, SWAP, fill
from ....module_utils._storage.identity import BY_ID, BY_PATH, best_id
from ....module_utils._storage.lvm import EXTENT, mapper_node
from ....module_utils._storage.options.words import wanted_words
from ....module_utils._storage.unlock import Method
from ....module_utils._storage.zfs import outer_first

_DURABLE = (BY_ID, BY_PATH, "/dev/mapper/")


@dataclass(frozen=True)
class Partition:
    """A partition: `begin` in MiB from the start of its disk, `guid` of its type, `uuid` its own (may be empty).

    `boots`: a BIOS is to start from it, by the flag that is called legacy_boot.
    """

    space: str
    device: str
    number: int
    begin: int
    size: int
    guid: str
    uuid: str
    boots: bool
    kept: bool
    label: str = ""
    """The name that it is to have in the table, where it is not that of its space."""


@dataclass(frozen=True)
class Disk:
    """A disk by its most durable name; `boots`: the machine starts from it."""

    id: str
    device: str
    boots: bool
    partitions: tuple[Partition, ...]

    @property
    def name(self) -> str:
        """A short name: the last part of its device."""
        return self.device.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Array:
    """An md array; `level` in mdadm's word, `metadata` its version or `default`."""

    space: str
    device: str
    level: str
    members: tuple[str, ...]
    spares: tuple[str, ...]
    metadata: str
    kept: bool

    @property
    def name(self) -> str:
        """Its name, without the folder."""
        return self.device.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Container:
    """A LUKS container on `below`; `unlock` is what is to open it."""

    space: str
    name: str
    below: str
    kept: bool
    unlock: tuple[Method, ...] = ()

    @property
    def device(self) -> str:
        """The node it is opened as."""
        return f"/dev/mapper/{self.name}"


@dataclass(frozen=True)
class Group:
    """A volume group; `metadata` says what is unusual about that of its physical volumes, in words that follow `with`, or is empty."""

    space: str
    name: str
    devices: tuple[str, ...]
    metadata: str
    kept: bool
    extent_size: int = EXTENT
    """In MiB."""


@dataclass(frozen=True)
class Pool:
    """A thin pool; `metadata` in MiB, None for what LVM takes by itself, `chunk` in KiB."""

    space: str
    group: str
    name: str
    size: int
    metadata: int | None
    chunk: int


@dataclass(frozen=True)
class Cache:
    """A cache of the volume `origin` of a group: all of the physical volume `device`."""

    space: str
    group: str
    origin: str
    device: str


Vdevs = tuple[tuple[str, tuple[str, ...]], ...]
"""Vdevs of a ZFS pool, each as its type and its devices."""


@dataclass(frozen=True)
class Dataset:
    """A dataset by its path below its pool ("": the pool's own). `mount` is empty where it is mounted nowhere, `own` properties are words.

    Where a dataset has no mount point of its own, `mount` is what follows from what it lies in.
    """

    name: str
    mount: str
    own: Mapping[str, str]


@dataclass(frozen=True)
class Zpool:
    """A ZFS pool with its datasets, its own first."""

    space: str
    name: str
    vdevs: Vdevs
    ashift: int
    datasets: tuple[Dataset, ...]
    logs: Vdevs = ()
    caches: tuple[str, ...] = ()
    spares: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """All its devices."""
        return (*(device for _type, devices in (*self.vdevs, *self.logs) for device in devices), *self.caches, *self.spares)


@dataclass(frozen=True)
class Volume:
    """A logical volume; `pool` is the thin pool that it is in, if any."""

    space: str
    group: str
    name: str
    size: int
    kept: bool
    pool: str = ""

    @property
    def device(self) -> str:
        """Its mapper node."""
        return mapper_node(self.group, self.name)


@dataclass(frozen=True)
class Subvolume:
    """A subvolume of a Btrfs; `mount` is empty where it is not mounted, `quota` in MiB or None."""

    name: str
    mount: str
    mount_options: str
    quota: int | None


@dataclass(frozen=True)
class Filesystem:
    """A file system or swap; `mount` is empty where it is not mounted, `make_options` are words for mkfs."""

    space: str
    device: str
    type: str
    mount: str
    label: str
    make_options: str
    mount_options: str
    kept: bool
    subvolumes: tuple[Subvolume, ...] = ()
    more: tuple[str, ...] = ()
    """The other devices of a Btrfs on several; `level` says how it lies on them."""
    level: str = ""

    @property
    def is_swap(self) -> bool:
        """Whether it is swap."""
        return self.type == SWAP

    @property
    def options(self) -> str:
        """The options of the mount; empty where they are the usual ones."""
        return "" if self.mount_options == "defaults" else self.mount_options


User = t.Union[Filesystem, Container, Array, Group]
"""What lies on a device."""
Carrier = t.Union[Partition, Array, Container, Volume]
"""What something can lie on."""


@dataclass(frozen=True)
class Layout:
    """All that a plan makes; lists are in the plan's order."""

    disks: tuple[Disk, ...]
    arrays: tuple[Array, ...]
    containers: tuple[Container, ...]
    groups: tuple[Group, ...]
    volumes: tuple[Volume, ...]
    filesystems: tuple[Filesystem, ...]
    pools: tuple[Pool, ...] = ()
    caches: tuple[Cache, ...] = ()
    zpools: tuple[Zpool, ...] = ()

    def partitions(self) -> Iterator[Partition]:
        """Give the partitions of all disks."""
        for disk in self.disks:
            yield from disk.partitions

    def user(self, device: str) -> User | None:
        """Return what lies on a device, if anything does."""
        return self._users.get(device)

    def filesystem(self, device: str) -> Filesystem | None:
        """Return the file system that lies on a device itself."""
        user = self.user(device)
        return user if isinstance(user, Filesystem) else None

    def volumes_of(self, group: str) -> tuple[Volume, ...]:
        """Return the volumes of a group."""
        return tuple(volume for volume in self.volumes if volume.group == group)

    def pools_of(self, group: str) -> tuple[Pool, ...]:
        """Return the thin pools of a group."""
        return tuple(pool for pool in self.pools if pool.group == group)

    def carriers(self) -> Iterator[Carrier]:
        """Give all that something can lie on, what is below first."""
        yield from self.partitions()
        yield from self.arrays
        yield from self.containers
        yield from self.volumes

    def kept(self) -> tuple[str, ...]:
        """Return the spaces whose data are to be kept."""
        things: list[Carrier | User] = [*self.partitions(), *self.arrays, *self.containers, *self.groups, *self.volumes, *self.filesystems]
        return tuple(dict.fromkeys(thing.space for thing in things if thing.kept))

    def zpool_on(self, device: str) -> Zpool | None:
        """Return the ZFS pool that a device is of."""
        return next((pool for pool in self.zpools if device in pool.devices), None)

    def label(self, partition: Partition) -> str:
        """Return the name of a partition in the table."""
        return partition.label or self.title(partition)[: gpt.LONGEST_NAME]

    def title(self, carrier: Carrier) -> str:
        """Return a name that no other carrier of the same kind has: that of the space, numbered where the space has several."""
        return self._titles[carrier.device]

    @functools.cached_property
    def _users(self) -> dict[str, User]:
        users: dict[str, User] = {}
        for array in self.arrays:
            users.update(dict.fromkeys((*array.members, *array.spares), array))
        users.update({container.below: container for container in self.containers})
        for group in self.groups:
            users.update(dict.fromkeys(group.devices, group))
        users.update({device: filesystem for filesystem in self.filesystems for device in (filesystem.device, *filesystem.more)})
        return users

    @functools.cached_property
    def _titles(self) -> dict[str, str]:
        titles: dict[str, str] = {}
        for things in (tuple(self.partitions()), self.arrays, self.containers, self.volumes):
            for space in dict.fromkeys(thing.space for thing in things):
                own = [thing for thing in things if thing.space == space]
                titles.update({thing.device: space if len(own) == 1 else f"{space}-{at}" for at, thing in enumerate(own, start=1)})
        return titles


def read_layout(schema: t.Any, hardware: t.Any, place: str) -> Layout:
    """Return the layout of an explicit static schema; `hardware` (may be None) tells durable names where the schema has none.

    Raises InputError with every mistake and its place.
    """
    mistakes = Mistakes()
    values = STATIC.read_nested(schema, place, mistakes)
    mistakes.check()
    names = {str(disk["name"]): _durable(str(disk["name"] or disk["disk_id"]), disk["disk_id"], hardware) for disk in values["parteds"]}
    renamed = {
        part["name"]: gpt.partition_node(names[str(disk["name"])], _number(part, position))
        for disk in values["parteds"]
        for position, part in enumerate(disk["partitions"], start=1)
        if str(disk["name"]) != names[str(disk["name"])]
    }
    return Layout(
        disks=tuple(_disk(disk, names[str(disk["name"])], renamed) for disk in values["parteds"]),
        arrays=tuple(_array(array, renamed) for array in values["mds"]),
        containers=tuple(_container(container, renamed) for container in values["luks"]),
        groups=tuple(_group(group, values["pvs"], renamed) for group in values["vgs"]),
        volumes=tuple(
            Volume(_space(volume), volume["vgname"], volume["name"], volume["size"], volume["keep_data"], volume["pool"] or "")
            for volume in values["lvs"]
        ),
        caches=tuple(
            Cache(_space(cache), cache["vgname"], cache["origin"], renamed.get(cache["device"], cache["device"]))
            for cache in values["caches"]
        ),
        pools=tuple(
            Pool(_space(pool), pool["vgname"], pool["name"], pool["size"], pool["metadata_size"], pool["chunk_size"])
            for pool in values["thin_pools"]
        ),
        zpools=tuple(_zpool(entry, renamed) for entry in values["zpools"]),
        filesystems=tuple(_filesystem(entry, _nodes(values["lvs"]), renamed) for entry in values["fss"]),
    )


def _zpool(values: Values, renamed: Mapping[str, str]) -> Zpool:
    def named(devices: Sequence[str]) -> tuple[str, ...]:
        return tuple(renamed.get(device, device) for device in devices)

    vdevs, logs = (tuple((str(vdev["type"]), named(vdev["devices"])) for vdev in values[key]) for key in ("vdevs", "logs"))
    root = _dataset({"name": "", **values, "mount": values["mount"] or NOT_MOUNTED}, {})
    mounts = {"": root.mount}
    datasets = {dataset["name"]: dataset for dataset in values["datasets"]}
    made = {}
    for name in outer_first(datasets):
        made[name] = _dataset(datasets[name], mounts)
        mounts[name] = made[name].mount
    ordered = (root, *(made[name] for name in datasets))
    return Zpool(_space(values), values["name"], vdevs, values["ashift"], ordered, logs, named(values["caches"]), named(values["spares"]))


def _dataset(values: Mapping[str, t.Any], mounts: Mapping[str, str]) -> Dataset:
    """Return a dataset; `mounts` are those of what it may lie in."""
    name, given = str(values["name"]), values["mount"]
    above = next((outer for outer in _outer_names(name) if outer in mounts), "")
    inherited = f"{mounts.get(above, '').rstrip('/')}/{name[len(above) :].lstrip('/')}" if mounts.get(above) else ""
    own = {"mountpoint": given} if given else {}
    own |= {key: f"{values[key]}M" for key in ("quota", "reservation") if values.get(key)}
    own |= dict(values["properties"])
    return Dataset(name, inherited if not given else "" if given == NOT_MOUNTED else given, own)


def _outer_names(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def unstable_disks(layout: Layout) -> tuple[str, ...]:
    """Return the devices of disks whose names may change with the next start."""
    return tuple(disk.device for disk in layout.disks if not disk.device.startswith(_DURABLE))


def _durable(name: str, disk_id: str, hardware: t.Any) -> str:
    """Return the most durable name of a disk: its own where it is one, else what the hardware's links say."""
    device = name if name.startswith("/") else f"/dev/{name}"
    if device.startswith(_DURABLE) or not isinstance(hardware, Mapping):
        return device
    for disk in hardware.get("disks") or ():
        if isinstance(disk, Mapping) and {device, disk_id} & {disk.get("id"), disk.get("dev"), *(disk.get("links") or ())}:
            return best_id((str(link) for link in disk.get("links") or ()), device)
    return device


def _number(part: Values, position: int) -> int:
    return part["count"] or position


def _space(values: Values) -> str:
    return values["space_id"] or str(values.get("name") or values.get("device")).rsplit("/", 1)[-1]


def _disk(values: Values, device: str, renamed: Mapping[str, str]) -> Disk:
    partitions = [
        Partition(
            space=_space(part),
            device=renamed.get(part["name"], part["name"]),
            number=_number(part, position),
            begin=part["begin"],
            size=part["end"] - part["begin"],
            guid=_type_guid(part),
            uuid=(part["uuid"] or "").lower(),
            boots=gpt.LEGACY_BOOT in part["flags"],
            kept=part["keep_data"],
            label=part["partition_label"] or "",
        )
        for position, part in enumerate(values["partitions"], start=1)
    ]
    return Disk(values["disk_id"], device, values["install_bootloader"], tuple(sorted(partitions, key=lambda part: part.begin)))


def _type_guid(part: Values) -> str:
    by_flag = next((gpt.TYPES_BY_FLAG[flag] for flag in part["flags"] if flag in gpt.TYPES_BY_FLAG), gpt.LINUX)
    return str(part["guid"] or by_flag).lower()


def _array(values: Values, renamed: Mapping[str, str]) -> Array:
    return Array(
        space=_space(values),
        device=values["name"],
        level=str(values["level"]),
        members=tuple(renamed.get(name, name) for name in values["devices"]),
        spares=tuple(renamed.get(name, name) for name in values["spares"]),
        metadata=values["metadata"],
        kept=values["keep_data"],
    )


def _container(values: Values, renamed: Mapping[str, str]) -> Container:
    below = renamed.get(values["device"], values["device"])
    return Container(_space(values), values["name"], below, values["keep_data"], values["unlock"])


def _group(values: Values, volumes: Sequence[Values], renamed: Mapping[str, str]) -> Group:
    words = [word for volume in volumes if volume["name"] in values["pvnames"] for word in _unusual_metadata(volume)]
    names = tuple(renamed.get(name, name) for name in values["pvnames"])
    return Group(_space(values), values["name"], names, " and ".join(dict.fromkeys(words)), values["keep_data"], values["extent_size"])


def _unusual_metadata(volume: Values) -> Iterator[str]:
    size, copies = volume["metadatasize"], volume["metadatacopies"]
    if size:
        yield f"{size} MiB of metadata"
    if copies not in (None, 1):
        yield f"{copies} copies of the metadata"


def _nodes(volumes: Sequence[Values]) -> dict[str, str]:
    """Return the mapper nodes of volumes by the other names they have."""
    nodes = {f"/dev/{volume['vgname']}/{volume['name']}": mapper_node(volume["vgname"], volume["name"]) for volume in volumes}
    return nodes | {volume["device"]: mapper_node(volume["vgname"], volume["name"]) for volume in volumes if volume["device"]}


def _filesystem(values: Values, nodes: Mapping[str, str], renamed: Mapping[str, str]) -> Filesystem:
    mount = values["mount"] or NOT_MOUNTED
    device = values["device"]
    kind = values["fs_type"] or (SWAP if mount == SWAP else DEFAULT)
    return Filesystem(
        space=_space(values),
        device=renamed.get(device, nodes.get(device, device)),
        type=kind,
        mount=mount if mount.startswith("/") and values["fstab_enabled"] else "",
        label=values["fs_label"] or "",
        make_options=" ".join([*_identity(kind, values["uuid"]), *([values["fs_options"]] if values["fs_options"] else [])]),
        mount_options=wanted_words(values["fstab_options"] or ""),
        kept=values["keep_data"],
        subvolumes=tuple(_subvolume(subvolume, values) for subvolume in values["subvolumes"]),
        more=tuple(renamed.get(name, name) for name in values["devices"][1:]),
        level=values["level"] or "",
    )


def _subvolume(values: Values, filesystem: Values) -> Subvolume:
    """Return a subvolume; its options are all that it is mounted with, but for its name."""
    mount = values["mount"] or NOT_MOUNTED
    own, of_all = (wanted_words(one["fstab_options"] or "") for one in (values, filesystem))
    options = mount_options(of_all, own, values["name"])
    return Subvolume(
        name=values["name"].strip("/"),
        mount=mount if mount.startswith("/") and filesystem["fstab_enabled"] else "",
        mount_options=options.rpartition("subvol=")[0].rstrip(","),
        quota=values["quota"],
    )


def _identity(kind: str, uuid: str | None) -> list[str]:
    """Return the options of mkfs that give a file system its UUID; none where the schema leaves that open."""
    if not uuid:
        return []
    _program, *words = FILESYSTEMS[kind].make
    # The words that do not depend on it are about what is printed, but for vfat, of which every target makes FAT32 as well.
    named = [at for at, word in enumerate(words) if "{" in word]
    return [shlex.quote(word) for at in named for word in fill(tuple(words[at - 1 : at + 1]), uuid=uuid, serial=uuid.replace("-", ""))]
