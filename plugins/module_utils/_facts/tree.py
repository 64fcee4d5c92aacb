# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is there: the rows of lsblk, udev and sysfs made into one tree of block devices. Pure; the readers are elsewhere.

The tree goes from disks over partitions, md arrays, LUKS, multipath and logical volumes to mount points. What is built on a disk but not
running (a group that is not active, an array that is not started) is in it, too, as a device without a node.
"""

from __future__ import annotations

import functools
import re
import typing as t
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from .._storage.identity import natural_key
from .._storage.units import LEAST_BLOCK, known_block
from .blank import Remains
from .lsblk import Row, Rows
from .mounts import Mounts
from .signatures import SECTOR, Signature, Table, TablePartition
from .stacks import Legs, Luks

PARTITION_TABLES = frozenset({"gpt", "PMBR", "dos", "bsd", "sun", "sgi", "mac", "atari", "minix", "ultrix", "unixware", "solaris_x86"})
"""Types of signatures that are partition tables; the words are libblkid's."""

_PREFERRED_SOURCE = {"serial": ("udev", "lsblk", "sysfs"), "model": ("udev", "lsblk", "sysfs")}
"""lsblk's serial of a SCSI disk changed with its version, its model of an ATA disk, too; udev's own did not."""

_SOURCES = ("lsblk", "udev", "sysfs")
_PART_OF_VOLUME = re.compile(r"LVM-[A-Za-z0-9]{64}-")
_STAND_IN = re.compile(r"LVM-[A-Za-z0-9]{64}-missing_[0-9]+_[0-9]+")


@dataclass(frozen=True)
class Filesystem:
    """What blkid names as the content of a device: a filesystem, swap, or membership in something."""

    type: str
    uuid: t.Optional[str] = None
    label: t.Optional[str] = None


@dataclass(frozen=True)
class Device:
    """A block device. Sizes are bytes.

    `name` is the kernel's name; what is not running has a name of its own that no kernel device can have, and `dev` is None.
    `kind` is lsblk's type: disk, part, loop, rom, mpath, crypt, lvm, raid1 ...
    `metadata` is the version of an md array's superblocks, `slots` how many members it is to have, spares apart,
    `legs` what it takes of them.
    `read` says whether the device itself was searched for signatures, `claimed` whether the kernel refuses to share it (None: not asked).
    `openers` are processes that have it open, `uses` what else uses it that no mount point here and no holder shows.
    `remains` is what shows a disk without any signature not to be blank.
    `begun` is the GUID of a table of which only a part was written (empty: it has none yet), where there is nothing else.
    `member` is what md, Btrfs or ZFS calls the device itself, as a member of a whole: two with one name are copies.
    """

    name: str
    dev: t.Optional[str]
    kind: str
    size: int
    parents: tuple[str, ...] = ()
    row: Mapping[str, t.Any] = field(default_factory=dict)
    links: tuple[str, ...] = ()
    mountpoints: tuple[str, ...] = ()
    filesystem: t.Optional[Filesystem] = None
    signatures: tuple[Signature, ...] = ()
    table: t.Optional[Table] = None
    partition: t.Optional[TablePartition] = None
    title: t.Optional[str] = None
    uuid: t.Optional[str] = None
    group: t.Optional[str] = None
    luks: t.Optional[Luks] = None
    metadata: t.Optional[str] = None
    slots: t.Optional[int] = None
    legs: t.Optional[Legs] = None
    read: bool = False
    claimed: t.Optional[bool] = None
    openers: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    remains: t.Optional[Remains] = None
    begun: t.Optional[str] = None
    member: t.Optional[str] = None
    details: Mapping[str, t.Any] = field(default_factory=dict)
    """Further facts from the tools of its technology."""

    @property
    def running(self) -> bool:
        """Whether the kernel has it."""
        return self.dev is not None

    @property
    def inactive(self) -> bool:
        """Whether it is an md array that the kernel has put together and not started: it holds its members, and has no size."""
        return self.running and not self.size and self.kind.startswith(("raid", "linear", "md"))

    @property
    def is_part(self) -> bool:
        """Whether it is a part of a logical volume that nobody uses by itself, as the data of a thin pool: see libblkid on DM_UUID."""
        return self.kind == "lvm" and self.running and _PART_OF_VOLUME.match(str(self.row.get("dm-uuid") or "")) is not None

    @property
    def is_stand_in(self) -> bool:
        """Whether all reading and writing there fails: LVM has put it in place of what was not there when it activated a volume."""
        return self.running and _STAND_IN.fullmatch(str(self.row.get("dm-uuid") or "")) is not None

    @property
    def logical_block(self) -> int:
        """Bytes of a logical sector."""
        return known_block(self.row.get("log-sec")) or LEAST_BLOCK


@dataclass(frozen=True)
class Tree:
    """All block devices by name."""

    devices: Mapping[str, Device]

    def children(self, name: str) -> tuple[Device, ...]:
        """Return what is built directly on a device, partitions by number, the rest in natural order of their names."""
        return self._built_on.get(name, ())

    def descendants(self, name: str) -> tuple[Device, ...]:
        """Return all that is built on a device, each once, what lies below before what lies on it."""
        found: dict[str, Device] = {}
        pending = list(reversed(self.children(name)))
        while pending:
            device = pending.pop()
            found.pop(device.name, None)
            found[device.name] = device
            pending.extend(reversed(self.children(device.name)))
        return tuple(found.values())

    def lacks_part(self, device: Device) -> bool:
        """Return whether a volume was activated without all that it lies on, and has not been refreshed since."""
        below = [self.devices[name] for name in device.parents if name in self.devices]
        return any(each.is_stand_in or self.lacks_part(each) for each in below)

    def roots(self) -> tuple[Device, ...]:
        """Return the devices that are built on no other."""
        return tuple(device for device in self.devices.values() if not device.parents)

    def by_node(self, node: str) -> t.Optional[Device]:
        """Return the device of a node such as /dev/sda1 or /dev/mapper/vg0-data."""
        return self.devices.get(node.removeprefix("/dev/")) or self._by_node.get(node)

    @functools.cached_property
    def _built_on(self) -> dict[str, tuple[Device, ...]]:
        found: dict[str, list[Device]] = {}
        for device in sorted(self.devices.values(), key=_sibling_key):
            for parent in device.parents:
                found.setdefault(parent, []).append(device)
        return {name: tuple(devices) for name, devices in found.items()}

    @functools.cached_property
    def _by_node(self) -> dict[str, Device]:
        return {device.dev: device for device in self.devices.values() if device.dev is not None}

    def with_devices(self, changed: Iterable[Device]) -> Tree:
        """Return the tree with devices added, or put in the place of those of the same name."""
        return Tree({**self.devices, **{device.name: device for device in changed}})


def merge_rows(lsblk: Rows, udev: Rows, sysfs: Rows) -> Rows:
    """Return one row for every device, each value from the source to be trusted most that has it.

    udev's rows only add to devices that lsblk or sysfs know: its database can be of another moment.
    """
    sources = {"lsblk": lsblk, "udev": udev, "sysfs": sysfs}
    return {name: _merge([(source, sources[source].get(name, {})) for source in _SOURCES]) for name in {**lsblk, **sysfs}}


def _merge(found: list[tuple[str, Row]]) -> Row:
    by_source = dict(found)
    merged: Row = {}
    for column in dict.fromkeys(column for _source, row in found for column in row):
        order = _PREFERRED_SOURCE.get(column, _SOURCES)
        values = (by_source[source].get(column) for source in order)
        merged[column] = next((value for value in values if value is not None), None)
    for column in ("parents", "mountpoints"):
        merged[column] = tuple(dict.fromkeys(value for _source, row in found for value in row.get(column) or ()))
    return merged


def build_tree(rows: Rows, links: Mapping[str, tuple[str, ...]], mounts: Mounts) -> Tree:
    """Return the tree of the devices that have a size, and of arrays that hold members without one; `links` are by kernel name."""
    devices = [_device(name, row, links.get(name, ()), mounts) for name, row in rows.items() if row.get("size") or row.get("parents")]
    return Tree({device.name: device for device in devices if device.size or device.inactive})


def _device(name: str, row: Row, links: tuple[str, ...], mounts: Mounts) -> Device:
    node = row.get("path") or f"/dev/{name}"
    keys = tuple(dict.fromkeys((row.get("maj:min") or "", node, f"/dev/{name}")))
    targets = (*row["mountpoints"], *(target for key in keys for target in mounts.targets.get(key, ())))
    kind = row.get("fstype") or next((mounts.types[key] for key in keys if key in mounts.types), None)
    return Device(
        name=name,
        dev=node,
        kind=row["type"],
        size=row["size"] or 0,
        parents=row["parents"],
        row=row,
        links=links,
        mountpoints=tuple(dict.fromkeys(targets)),
        filesystem=Filesystem(kind, row.get("uuid"), row.get("label")) if kind else None,
        partition=_kernel_partition(name, row),
        uuid=row.get("dm-uuid"),
        title=row.get("dm-name") or row.get("name"),
    )


def _kernel_partition(name: str, row: Row) -> t.Optional[TablePartition]:
    if row["type"] != "part":
        return None
    digits = re.search(r"[0-9]+\Z", name)
    return TablePartition(
        number=row.get("partn") or int(digits[0] if digits else 0),
        start=(row.get("start") or 0) * SECTOR,
        size=row["size"],
        type=row.get("parttype"),
        name=row.get("partlabel"),
        uuid=row.get("partuuid"),
    )


def share_btrfs_mounts(tree: Tree) -> Tree:
    """Return the tree in which a mounted btrfs is mounted on all of its devices: the kernel names only one of them."""
    mounted: dict[t.Optional[str], tuple[str, ...]] = {}
    for device in tree.devices.values():
        if device.mountpoints and device.filesystem is not None and device.filesystem.type == "btrfs":
            mounted[device.filesystem.uuid] = device.mountpoints
    changed = [
        replace(device, mountpoints=mounted[device.filesystem.uuid])
        for device in tree.devices.values()
        if device.filesystem is not None
        and device.filesystem.type == "btrfs"
        and not device.mountpoints
        and device.filesystem.uuid in mounted
    ]
    return tree.with_devices(changed)


def _sibling_key(device: Device) -> tuple[t.Any, ...]:
    number = device.partition.number if device.partition is not None else 0
    return (number, not device.running, natural_key(device.title or device.name))
