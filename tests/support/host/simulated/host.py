# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A simulated host: a kernel over simulated media, that can be shut off at any moment, and what the readers would find on it."""

from __future__ import annotations

import itertools
import typing as t
from dataclasses import dataclass, field, replace

from ansible_collections.bareon.allocator.plugins.module_utils._facts.present import (
    LogicalVolume,
    PhysicalVolume,
    Present,
    Zpool,
    ZpoolPart,
)
from ansible_collections.bareon.allocator.plugins.module_utils._facts.select import Disk
from ansible_collections.bareon.allocator.plugins.module_utils._facts.signatures import Signature, Table, TablePartition
from ansible_collections.bareon.allocator.plugins.module_utils._facts.stacks import Legs, Luks, Superblock
from ansible_collections.bareon.allocator.plugins.module_utils._facts.torn import Torn
from ansible_collections.bareon.allocator.plugins.module_utils._facts.tree import Device, Filesystem, Tree
from ansible_collections.bareon.allocator.plugins.module_utils._steps.partitions import TableEntry
from ansible_collections.bareon.allocator.plugins.module_utils._storage.cache import is_volume, volume_of
from ansible_collections.bareon.allocator.plugins.module_utils._storage.zfs import Part
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import (
    EXTENT,
    LUKS_START,
    PV_START,
    Block,
    Extent,
    Media,
    md_data,
)

HALF = "half "
"""Before the UUID of a file system that mkfs has begun: it has its identity, and is not whole."""
TORN = "torn"
"""Behind the UUID and the size of an ext4: its superblock is torn."""
ZPOOL_FIELDS = 6
"""Of the label of a ZFS pool: its guid, the size of the device, the name, on how many devices it is, and its datasets."""
BY_ID = "/dev/disk/by-id/wwn-"


@dataclass(frozen=True)
class Volume:
    """A logical volume: segments are (UUID of the physical volume, first extent, extents).

    A thin pool has a chunk, and of its segments some extents are metadata. What is in one has a virtual size and no segments. A name in
    brackets is that of a volume which nobody uses by itself.
    """

    name: str
    uuid: str
    tags: tuple[str, ...]
    segments: tuple[tuple[str, int, int], ...]
    chunk: int = 0
    metadata: int = 0
    pool: str = ""
    virtual: int = 0
    cache: str = ""
    mode: str = ""
    stripes: int = 1
    origin: str = ""

    @property
    def extents(self) -> int:
        return self.virtual // EXTENT or sum(count for _pv, _first, count in self.segments) - self.metadata


@dataclass(frozen=True)
class Group:
    """LVM's metadata: `physical` are (UUID, extents)."""

    name: str
    uuid: str
    number: int
    physical: tuple[tuple[str, int], ...]
    volumes: tuple[Volume, ...] = ()

    def free(self, physical: str) -> list[int]:
        extents = dict(self.physical)[physical]
        segments = (segment for volume in self.volumes for segment in volume.segments if segment[0] == physical)
        taken = {extent for _pv, first, count in segments for extent in range(first, first + count)}
        return [extent for extent in range(extents) if extent not in taken]


@dataclass(frozen=True)
class Raid:
    """What a superblock says: a mirror's identity and how many members it has. A role beyond those is that of a spare.

    `events` is what the member has seen of its array, `without` the roles that it misses.
    """

    uuid: str
    title: str
    level: str
    members: int
    metadata: str
    role: int
    size: int
    events: int = 0
    without: frozenset[int] = frozenset()


@dataclass(repr=False)
class SimulatedHost:
    """The kernel's state: partitions it knows, arrays that run (UUID: node), open containers (name: device), active groups, mounts."""

    media: Media
    partitions: dict[str, tuple[t.Any, ...]] = field(default_factory=dict)
    arrays: dict[str, str] = field(default_factory=dict)
    mappings: dict[str, str] = field(default_factory=dict)
    active: set[str] = field(default_factory=set)
    mounts: dict[str, str] = field(default_factory=dict)
    data: dict[str, tuple[int, ...]] = field(default_factory=dict)
    mapping_keys: dict[str, str] = field(default_factory=dict)
    mapping_sizes: dict[str, int] = field(default_factory=dict)
    zpools: set[str] = field(default_factory=set)
    """ZFS pools (guids) that are imported."""
    left_out: dict[str, frozenset[str]] = field(default_factory=dict)
    """The members (devices) without which arrays (UUIDs) were started."""
    lost: frozenset[str] = frozenset()
    """Thin pools (UUIDs) that have not been finished before the power went, which is when their metadata may be lost."""
    _known: tuple[t.Any, dict[str, Block]] = field(default_factory=lambda: (None, {}))

    @classmethod
    def with_disks(cls, sizes: dict[str, int]) -> SimulatedHost:
        return cls(Media(sizes))

    # ---- devices

    def blocks(self) -> dict[str, Block]:
        """All devices that the kernel has, each after what it is built on."""
        state = (self.partitions, self.arrays, self.mappings, self.mapping_sizes, self.left_out)
        key = (self.media.version, *(tuple(part.items()) for part in state), frozenset(self.active), self.lost)
        if self._known[0] != key:
            self._known = (key, self._find_blocks())
        return dict(self._known[1])

    def _find_blocks(self) -> dict[str, Block]:
        found = {name: self.media.disk(name) for name in self.media.sizes}
        for disk, entries in self.partitions.items():
            for entry in entries:
                name = f"{disk}{entry.number}"
                found[name] = Block(
                    name, f"/dev/{name}", "part", found[disk].part(entry.start, entry.size), (disk,), uuid=str(entry.number)
                )
        known = 0
        while known != len(found):
            known = len(found)
            self._add_arrays(found)
            self._add_mappings(found)
            self._add_volumes(found)
        return found

    def _add_arrays(self, found: dict[str, Block]) -> None:
        for uuid, node in self.arrays.items():
            members = self.members(found, uuid)
            name = f"md-{uuid}"
            if not members or name in found:
                continue
            raid = members[0][1]
            legs = []
            for block, own in members:
                if own.role >= raid.members:
                    continue
                begin, size = md_data(own.size, raid.metadata)
                legs.append(block.part(begin, size))
            size = min(sum(extent.size for extent in leg) for leg in legs)
            copies = tuple(place for leg in legs for place in leg[0].places)
            parents = tuple(block.name for block, _raid in members)
            found[name] = Block(name, node, raid.level, (Extent(size, copies),), parents, title=raid.title, uuid=uuid)

    def members(self, found: dict[str, Block], uuid: str | None = None) -> list[tuple[Block, Raid]]:
        """Members with their superblocks, by their roles: all that are there, or those of an array, as far as it was started with them."""
        result = []
        left_out = self.left_out.get(uuid or "", frozenset())
        for block in (block for block in found.values() if block.name not in left_out):
            for kind, (raid, _offsets) in self.media.signatures(block).items():
                # A superblock at the end of the last partition is one of the disk as well; md compares its size.
                # One at the begin stays good when the partition grows.
                fits = kind.startswith("md-") and (raid.size == block.size or (raid.metadata == "1.2" and raid.size < block.size))
                if fits and uuid in (None, raid.uuid):
                    result.append((block, raid))
        return sorted(result, key=lambda member: member[1].role)

    def _add_mappings(self, found: dict[str, Block]) -> None:
        for name, below in self.mappings.items():
            block = found.get(below)
            if block is not None and name not in found:
                key = self.mapping_keys[name]
                extents = block.part(LUKS_START, block.size - LUKS_START)
                if name in self.mapping_sizes:
                    extents = Block("", "", "", extents).part(0, self.mapping_sizes[name])
                found[name] = Block(name, f"/dev/mapper/{name}", "crypt", extents, (below,), (*block.keys, key), name, key)

    def physical(self, found: dict[str, Block]) -> dict[str, tuple[Block, Group | None]]:
        """Physical volumes by UUID with the metadata that is on them; LVM passes over members of arrays."""
        result = {}
        for block in found.values():
            signatures = self.media.signatures(block)
            if (
                "LVM2_member" in signatures
                and not any(kind.startswith("md-") for kind in signatures)
                and block.kind != "disk"
                or "LVM2_member" in signatures
                and block.kind == "disk"
                and self.media.table(block.name) is None
            ):
                result[signatures["LVM2_member"][0][0]] = (block, signatures["LVM2_member"][0][1])
        return result

    def groups(self, found: dict[str, Block]) -> dict[str, Group]:
        """The newest metadata of every group."""
        newest: dict[str, Group] = {}
        for _block, group in self.physical(found).values():
            if group is not None and group.number > newest.get(group.uuid, replace(group, number=-1)).number:
                newest[group.uuid] = group
        return newest

    def reduce_group(self, group: Group, lacking: t.Collection[str]) -> None:
        """What vgreduce --removemissing --force does: physical volumes that are lost leave the group, and volumes on them are removed."""
        staying = tuple(volume for volume in group.volumes if not any(uuid in lacking for uuid, _first, _count in volume.segments))
        physical = tuple((uuid, extents) for uuid, extents in group.physical if uuid not in lacking)
        reduced = replace(group, number=group.number + 1, physical=physical, volumes=staying)
        there = self.physical(self.blocks())
        for uuid, _extents in physical:
            self.media.sign(there[uuid][0], "LVM2_member", (uuid, reduced))

    def _add_volumes(self, found: dict[str, Block]) -> None:
        physical = self.physical(found)
        for group in self.groups(found).values():
            if group.uuid not in self.active or any(uuid not in physical for uuid, _extents in group.physical):
                continue
            lost = {pool.name for pool in group.volumes if pool.uuid in self.lost}
            # What a cached volume lies on comes before it.
            for volume in sorted(group.volumes, key=lambda known: not _is_cache(known)):
                hidden = volume.name.startswith("[") and not _is_cache(volume)
                if hidden or volume.name in lost or volume.pool in lost:
                    continue
                name = f"dm-{volume.uuid}"
                extents, parents = [], []
                for uuid, first, count in volume.segments:
                    extents.extend(physical[uuid][0].part(PV_START + first * EXTENT, count * EXTENT))
                    parents.append(physical[uuid][0].name)
                name_of_node = volume.name.strip("[]").replace("-", "--")
                node = f"/dev/mapper/{group.name.replace('-', '--')}-{name_of_node}"
                by = next((known.uuid for known in group.volumes if volume.cache and known.name == f"[{volume_of(volume.cache)}]"), None)
                parents += [f"dm-{by}"] if by is not None else []
                segments = volume.segments
                if volume.pool:
                    # Where a pool has its chunks is its own affair; here each volume has a place of its own, as large as it seems.
                    pool = next(known for known in group.volumes if known.name == volume.pool)
                    extents, parents, segments = [Extent(volume.virtual, ((f"in-{volume.uuid}", 0),))], [f"dm-{pool.uuid}"], pool.segments
                # Through LUKS below the physical volumes every one has its own key; volumes here never span two of them.
                keys = physical[segments[0][0]][0].keys
                built = Block(name, node, "lvm", tuple(extents), tuple(dict.fromkeys(parents)), keys, volume.name, volume.uuid, group.name)
                found.setdefault(name, built)

    def by_node(self, node: str) -> Block:
        found = [block for block in self.blocks().values() if block.node == node]
        if len(found) != 1:
            raise LookupError(f"there are {len(found)} {node}")
        return found[0]

    def users(self, name: str) -> list[str]:
        """What is built on a device, or uses it."""
        built = [block.name for block in self.blocks().values() if name in block.parents]
        pools = [guid for guid, members in self.zpool_members().items() if name in {block.name for block in members}]
        return built + pools + ([self.mounts[name]] if name in self.mounts else [])

    def zpool_members(self) -> dict[str, list[Block]]:
        """The devices of the ZFS pools that are imported."""
        found: dict[str, list[Block]] = {guid: [] for guid in self.zpools}
        for block in self.blocks().values():
            signature = self.media.signatures(block).get("zfs_member")
            if signature is not None and signature[0][0] in found and block.kind != "disk":
                found[signature[0][0]].append(block)
        for members in found.values():
            # Caches and spares do not say which pool they are of.
            vdevs = self.media.signatures(members[0])["zfs_member"][0][5] if members else ()
            beside = [name for part, _name, names in vdevs if part in ("cache", "spare") for name in names]
            members += [self.blocks()[name] for name in beside if name in self.blocks()]
        return found

    # ---- starting

    def start_all(self, late: str | None = None) -> None:
        """What a boot does: partitions, arrays and groups come up where they are complete; containers stay closed.

        Where a disk comes late, mirrors are started without their members there. Of a GPT the kernel reads the first copy only: where just
        the backup is whole it knows no partitions.
        """
        self.partitions = {disk: table[2] for disk in self.media.sizes for table in [self.media.first_table(disk)] if table is not None}
        self.arrays, self.mappings, self.active, self.mounts, self.left_out = {}, {}, set(), {}, {}
        self.mapping_keys, self.mapping_sizes = {}, {}
        if late is not None:
            self._start_without(late)
        self.assemble()
        self.import_zpools()
        self.lost = frozenset(volume.uuid for group in self._written_groups() for volume in group.volumes if volume.chunk and volume.tags)

    def _written_groups(self) -> t.Iterable[Group]:
        """The newest metadata of every group that are written anywhere, in containers that are closed as well: they were all open."""
        newest: dict[str, Group] = {}
        for mark in (mark for marks in self.media.marks.values() for mark in marks.values() if mark.kind == "LVM2_member"):
            group = mark.payload[1]
            if group is not None and group.number > newest.get(group.uuid, replace(group, number=-1)).number:
                newest[group.uuid] = group
        return newest.values()

    def import_zpools(self) -> None:
        """What ZFS does at a start, or zpool import later: import the pools that it remembers, where they are whole."""
        known: dict[str, list[tuple[t.Any, ...]]] = {}
        for block in self.blocks().values():
            signature = self.media.signatures(block).get("zfs_member")
            if signature is not None and block.kind == "part" and len(signature[0]) == ZPOOL_FIELDS:
                known.setdefault(signature[0][0], []).append(signature[0])
        self.zpools = {guid for guid, labels in known.items() if len(labels) == labels[0][3]}

    def _start_without(self, disk: str) -> None:
        found = self.blocks()
        for uuid in {raid.uuid for _block, raid in self.members(found)}:
            members = self.members(found, uuid)
            late = {block.name for block, raid in members if disk in self.disks_below(found, block.name)}
            on_time = [raid for block, raid in members if block.name not in late and raid.role < raid.members]
            if late and on_time:
                self.arrays[uuid], self.left_out[uuid] = f"/dev/md/{on_time[0].title}", frozenset(late)

    def use_array(self, uuid: str, events: int) -> None:
        """Have an array count events, and its members note which others they miss."""
        there = self.members(self.blocks(), uuid)
        missed = frozenset(range(there[0][1].members)) - {raid.role for _block, raid in there}
        for block, raid in there:
            kind = next(kind for kind, (known, _offsets) in self.media.signatures(block).items() if known == raid)
            self.media.sign(block, kind, replace(raid, events=raid.events + events, without=missed))

    def assemble(self, disk: str | None = None) -> None:
        """What udev does: start what is complete; with a disk only what has a member there."""
        before = -1
        while before != len(self.arrays) + len(self.active):
            before = len(self.arrays) + len(self.active)
            found = self.blocks()
            for uuid in {raid.uuid for _block, raid in self.members(found)}:
                members = self.members(found, uuid)
                if len(members) >= members[0][1].members and (
                    disk is None or any(self.disks_below(found, block.name) == {disk} for block, _raid in members)
                ):
                    self.arrays.setdefault(uuid, f"/dev/md/{members[0][1].title}")
            found = self.blocks()
            physical = self.physical(found)
            for group in self.groups(found).values():
                here = [physical[uuid][0].name for uuid, _extents in group.physical if uuid in physical]
                if len(here) == len(group.physical) and (disk is None or any(disk in self.disks_below(found, name) for name in here)):
                    self.active.add(group.uuid)

    def disks_below(self, found: dict[str, Block], name: str) -> set[str]:
        parents = found[name].parents
        return {disk for parent in parents for disk in self.disks_below(found, parent)} if parents else {name}

    # ---- what the readers would find

    def present(self) -> Present:
        found = self.blocks()
        devices = {name: self._device(block) for name, block in found.items()}
        for disk in self.media.sizes:
            self._add_table(devices, disk)
        self._add_stopped(devices, found)
        tree = Tree(devices)
        disks = tuple(self._disk(devices[name]) for name in self.media.sizes)
        physical, logical = self._lvm(found)
        sizes = {name: device.row["fssize"] for name, device in devices.items() if device.row.get("fssize")}
        btrfs = {device.filesystem.uuid: dict(device.row["subvolumes"]) for device in devices.values() if "subvolumes" in device.row}
        spares, zpools = self._spares(found), self._zpools()
        torn = {
            name: Torn(str(device.filesystem.uuid), "", 8193, 1024)
            for name, device in devices.items()
            if device.filesystem is not None and device.row.get(TORN)
        }
        blocks = {} if not self.left_out else {block.name: raid for block, raid in self.members(found)}
        superblocks = {
            name: Superblock(raid.uuid, raid.events, raid.role if raid.role < raid.members else None, raid.without)
            for name, raid in blocks.items()
            if raid.uuid in self.left_out
        }
        return Present(
            tree,
            disks,
            physical,
            logical,
            sizes,
            subvolumes=btrfs,
            spares=spares,
            zpools=zpools,
            torn=torn,
            superblocks=superblocks,
            loose={disk: self._loose(disk) for disk in self.media.sizes},
        )

    def _loose(self, disk: str) -> tuple[Signature, ...]:
        """What has a signature that begins on a whole MiB, and lies in no partition of a table of the disk."""
        table = self.media.table(disk)
        if table is None or table[0] != "gpt":
            return ()
        taken = [(entry.start, entry.start + entry.size) for entry in table[2]]
        return tuple(
            Signature(kind, None, None, (place,))
            for place, kind in self.media.beginnings(disk)
            if not any(start <= place < end for start, end in taken)
        )

    def _zpools(self) -> tuple[Zpool, ...]:
        labels = [(guid, self.media.signatures(blocks[0])["zfs_member"][0]) for guid, blocks in self.zpool_members().items()]
        return tuple(
            Zpool(
                label[2],
                guid,
                "ONLINE" if all(name in self.blocks() for _part, _name, names in label[5] for name in names) else "DEGRADED",
                {name: dict(properties) for name, properties in label[4]},
                vdevs=tuple(ZpoolPart(Part(part) if part else None, name, names) for part, name, names in label[5]),
            )
            for guid, label in labels
        )

    def _device(self, block: Block) -> Device:
        signatures = self.media.signatures(block)
        named = tuple(
            Signature("linux_raid_member" if kind.startswith("md-") else kind, self._uuid(kind, payload), None, offsets)
            for kind, (payload, offsets) in signatures.items()
        )
        table = self.media.table(block.name) if block.kind == "disk" else None
        if block.kind == "disk" and table is not None:
            named = (Signature(table[0], table[1], None, self.media.table_offsets(block.name)), *named)
        contents = [signature for signature in named if signature.type not in ("gpt", "dos")]
        row: dict[str, t.Any] = {"log-sec": 512, "wwn": f"wwn-{block.name}", "serial": f"serial-{block.name}"}
        part = self._part(block)
        if part is not None:
            row["dm-uuid"], named, contents = f"LVM-{'0' * 64}-{part}", (), []
        if contents and contents[0].type in ("ext4", "xfs", "btrfs", "f2fs"):
            row["fssize"] = signatures[contents[0].type][0][1] if not _is_torn(signatures) else None
            row[TORN] = _is_torn(signatures)
            row.update({"subvolumes": signatures["btrfs"][0][2:]} if contents[0].type == "btrfs" else {})
        return Device(
            name=block.name,
            dev=block.node,
            kind=block.kind,
            size=block.size,
            parents=block.parents,
            row=row,
            mountpoints=(self.mounts[block.name],) if block.name in self.mounts else (),
            filesystem=Filesystem(contents[0].type, contents[0].uuid, self._label(signatures, contents[0])) if contents else None,
            signatures=named,
            partition=TablePartition(int(str(block.uuid)), self._start(block), block.size, None) if block.kind == "part" else None,
            title=block.title,
            uuid=block.uuid if block.kind != "part" else None,
            group=block.group,
            metadata=self._metadata(block),
            slots=next((raid.members for _member, raid in self.members(self.blocks(), block.uuid)), None)
            if block.kind == "raid1"
            else None,
            legs=self._legs(block),
            luks=Luks(2, None, 1, LUKS_START) if block.kind == "crypt" else None,
            read=True,
        )

    def _part(self, block: Block) -> str | None:
        """Return which part of a volume it is that nobody uses by itself, if it is one."""
        if block.kind != "lvm":
            return None
        groups = self.groups(self.blocks()).values()
        (volume,) = [volume for group in groups for volume in group.volumes if volume.uuid == block.uuid]
        return "tpool" if volume.chunk else "cvol" if volume.name.startswith("[") else None

    def _metadata(self, block: Block) -> str | None:
        """The version of the superblocks of an array."""
        if not block.kind.startswith("raid"):
            return None
        return next(raid.metadata for known, raid in self.members(self.blocks(), block.uuid))

    def _legs(self, block: Block) -> Legs | None:
        """What an array takes of its members."""
        if not block.kind.startswith("raid"):
            return None
        own = [md_data(raid.size, raid.metadata) for _member, raid in self.members(self.blocks(), block.uuid)]
        return Legs(min(size for _begin, size in own), max(begin for begin, _size in own))

    @staticmethod
    def _start(block: Block) -> int:
        return block.extents[0].places[0][1]

    @staticmethod
    def _label(signatures: dict[str, t.Any], content: Signature) -> str | None:
        payload = signatures[content.type][0] if content.type == "zfs_member" else ()
        return payload[2] if len(payload) == ZPOOL_FIELDS else None

    @staticmethod
    def _uuid(kind: str, payload: t.Any) -> str:
        return payload.uuid if kind.startswith("md-") else str(payload[0]).removeprefix(HALF)

    def _add_table(self, devices: dict[str, Device], disk: str) -> None:
        table = self.media.table(disk)
        if table is None:
            return
        entries = tuple(
            TablePartition(entry.number, entry.start, entry.size, entry.type, entry.name or None, entry.uuid, entry.attrs)
            for entry in table[2]
        )
        devices[disk] = replace(devices[disk], table=Table(table[0], table[1], entries))
        for entry in entries:
            known = devices.get(f"{disk}{entry.number}")
            if known is not None:
                devices[known.name] = replace(known, partition=entry)
                continue
            window = Block("", "", "part", self.media.disk(disk).part(entry.start, entry.size), (disk,), uuid=str(entry.number))
            seen = self._device(window)
            name = f"{disk}#{entry.number}"
            devices[name] = replace(seen, name=name, dev=None, parents=(disk,), partition=entry)

    def _add_stopped(self, devices: dict[str, Device], found: dict[str, Block]) -> None:
        for uuid in {raid.uuid for _block, raid in self.members(found)} - (set(self.arrays) - set(self.left_out)):
            members = [(block, raid) for block, raid in self.members(found) if raid.uuid == uuid and self._is_stopped(uuid, block)]
            names = tuple(block.name for block, _raid in members)
            devices[f"md:{uuid}"] = Device(
                f"md:{uuid}", None, members[0][1].level, 0, names, title=members[0][1].title, uuid=uuid, metadata=members[0][1].metadata
            )
        for block in found.values():
            if "crypto_LUKS" in self.media.signatures(block) and block.name not in self.mappings.values():
                slots = 0 if self.media.signatures(block)["crypto_LUKS"][0][1] == "half" else 1
                luks = Luks(2, None, slots, LUKS_START)
                devices[f"luks:{block.name}"] = Device(f"luks:{block.name}", None, "crypt", 0, (block.name,), luks=luks)
        physical = self.physical(found)
        for group in self.groups(found).values():
            for volume in (volume for volume in group.volumes if not volume.name.startswith("[")):
                if f"dm-{volume.uuid}" not in found:
                    segments = next((known.segments for known in group.volumes if known.name == volume.pool), volume.segments)
                    on = tuple(dict.fromkeys(physical[uuid][0].name for uuid, _first, _count in segments if uuid in physical))
                    size = volume.extents * EXTENT
                    name = f"lv:{volume.uuid}"
                    devices[name] = Device(name, None, "lvm", size, on, title=volume.name, uuid=volume.uuid, group=group.name)

    def _is_stopped(self, uuid: str, block: Block) -> bool:
        return uuid not in self.arrays or block.name in self.left_out[uuid]

    def _lvm(self, found: dict[str, Block]) -> tuple[tuple[PhysicalVolume, ...], tuple[LogicalVolume, ...]]:
        physical, groups = self.physical(found), self.groups(found)
        in_groups = [(group, uuid, extents) for group in groups.values() for uuid, extents in group.physical]
        known = {uuid for _group, uuid, _extents in in_groups}
        volumes = [
            PhysicalVolume(
                physical[uuid][0].name if uuid in physical else None,
                group.name,
                group.uuid,
                extents * EXTENT,
                physical[uuid][0].size if uuid in physical else 0,
                PV_START,
                len(group.free(uuid)) * EXTENT,
                EXTENT,
            )
            for group, uuid, extents in in_groups
        ]
        orphans = [(block, uuid) for uuid, (block, _group) in physical.items() if uuid not in known]
        volumes += [PhysicalVolume(block.name, None, None, block.size, block.size, 0, block.size, 0) for block, _uuid in orphans]
        logical = [
            LogicalVolume(
                group.name,
                group.uuid,
                volume.name,
                volume.uuid,
                volume.extents * EXTENT,
                volume.tags,
                pool=volume.pool,
                metadata=volume.metadata * EXTENT,
                chunk=volume.chunk,
                cache=volume.cache,
                mode=volume.mode,
                stripes=(volume.stripes,),
                origin=volume.origin,
                extents={
                    physical[uuid][0].name: sum(count for own, _first, count in volume.segments if own == uuid)
                    for uuid in dict.fromkeys(own for own, _first, _count in volume.segments)
                    if uuid in physical
                },
            )
            for group in groups.values()
            for volume in group.volumes
            if not volume.name.startswith("[")
        ]
        return tuple(volumes), tuple(logical)

    def _spares(self, found: dict[str, Block]) -> dict[str, int]:
        hidden = ((group, volume) for group in self.groups(found).values() for volume in group.volumes if volume.name.endswith("_pmspare]"))
        return {group.uuid: volume.extents * EXTENT for group, volume in hidden}

    @staticmethod
    def _disk(device: Device) -> Disk:
        return Disk(device, f"{BY_ID}{device.name}", None, (f"{BY_ID}{device.name}",), "sata", device, (device,))


def _is_cache(volume: Volume) -> bool:
    return is_volume(volume.name.strip("[]"))


def _is_torn(signatures: dict[str, t.Any]) -> bool:
    return "ext4" in signatures and signatures["ext4"][0][2:] == (TORN,)


_COUNTER = itertools.count(1)


def new_uuid() -> str:
    """A UUID as tools give by chance; here by count."""
    return f"00000000-0000-4000-8000-{next(_COUNTER):012x}"


def gpt_entries(*entries: TableEntry) -> tuple[TableEntry, ...]:
    """The entries of a table as they are stored."""
    return tuple(replace(entry, clear=False) for entry in entries)
