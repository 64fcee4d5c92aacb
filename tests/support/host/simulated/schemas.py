# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random static schemas, and random things to find on the disks: what other systems left, alive or not."""

from __future__ import annotations

import typing as t

from ansible_collections.bareon.allocator.plugins.module_utils._steps.partitions import TableEntry
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import BY_ID, Group, Raid, SimulatedHost, Volume, new_uuid
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import EXTENT, LUKS_START, MIB, PV_START, Block
from hypothesis import assume
from hypothesis import strategies as st

Plain = dict[str, t.Any]
Draw = t.Callable[[st.SearchStrategy[t.Any]], t.Any]
DISK_SIZES = {"sda": 1500 * MIB, "sdb": 1501 * MIB + 512 * 7, "sdc": 1400 * MIB}
BYSTANDER = "sdz"
LINUX = "0fc63daf-8483-4772-8e79-3d69d8477de4"

_CONTENTS = ("none", "ext4", "swap", "luks-ext4", "pv", "luks-pv")
_ADDED = 120
"""MiB of a disk that a change may take beyond what it had."""
_LEAST_BTRFS = 256
"""MiB: kernels grow one to no less."""
_FILESYSTEMS = ("ext4", "xfs", "btrfs", "f2fs", "vfat")


def empty_schema() -> Plain:
    return {"parteds": [], "mds": [], "luks": [], "pvs": [], "vgs": [], "lvs": [], "fss": []}


class SchemaMaker:
    """Makes a schema piece by piece; every disk is filled from its start."""

    def __init__(self) -> None:
        self.schema = empty_schema()
        self.free: dict[str, int] = {}
        self.room: dict[str, int] = {}

    def disk(self, name: str, size: int) -> None:
        node = f"{BY_ID}{name}"
        self.schema["parteds"].append({"name": node, "disk_id": node, "disk_size": size // MIB, "partitions": []})
        self.free[name] = 1

    def partition(self, disk: str, size: int, space: str) -> str:
        table = next(table for table in self.schema["parteds"] if table["name"] == f"{BY_ID}{disk}")
        number = len(table["partitions"]) + 1
        name = f"{BY_ID}{disk}-part{number}"
        begin = self.free[disk]
        entry = {"name": name, "count": number, "begin": begin, "end": begin + size, "guid": LINUX, "space_id": space}
        table["partitions"].append(entry)
        self.free[disk] = begin + size
        return name

    def mirror(self, disks: tuple[str, str], size: int, space: str, metadata: str) -> str:
        legs = [self.partition(disk, size, space) for disk in disks]
        name = f"/dev/md/{space}"
        self.schema["mds"].append({"name": name, "level": "raid1", "devices": legs, "metadata": metadata})
        return name

    def spread(self, disks: tuple[str, ...], size: int, space: str) -> None:
        """Make a btrfs on several disks."""
        devices = [self.partition(disk, size, space) for disk in disks]
        self.schema["fss"].append({**filesystem(devices[0], "btrfs"), "devices": devices, "level": "raid1"})

    def zpool(self, disks: tuple[str, ...], size: int, name: str) -> None:
        """Make a ZFS pool on several disks, a mirror or a raidz."""
        devices = [self.partition(disk, size, name) for disk in disks]
        vdev = {"type": "mirror" if len(disks) == 2 else "raidz1", "devices": devices}
        datasets = [{"name": "home/user", "quota": 16}, {"name": "home", "properties": {"compression": "lz4"}}]
        self.schema.setdefault("zpools", []).append({"name": name, "vdevs": [vdev], "datasets": datasets})

    def log(self, disks: tuple[str, ...], size: int, name: str) -> None:
        """A log of the last pool, mirrored on several disks."""
        devices = [self.partition(disk, size, name) for disk in disks]
        self.schema["zpools"][-1].setdefault("logs", []).append({"type": "mirror" if len(disks) > 1 else "stripe", "devices": devices})

    def beside(self, what: str, disk: str, size: int, name: str) -> None:
        """A device of the last pool beside its data: `what` is caches or spares."""
        self.schema["zpools"][-1].setdefault(what, []).append(self.partition(disk, size, name))

    def fill(self, device: str, size: int, content: str, space: str, fs_type: str) -> None:
        """Put something on a device; `size` MiB are sure to be usable."""
        if content.startswith("luks-"):
            self.schema["luks"].append({"name": f"{space}-crypt", "device": device})
            device, size, content = f"/dev/mapper/{space}-crypt", size - 20, content[5:]
        if content == "pv":
            group = f"vg{len(self.room) % 2}"
            self.schema["pvs"].append({"name": device})
            known = next((known for known in self.schema["vgs"] if known["name"] == group), None)
            if known is None:
                self.schema["vgs"].append({"name": group, "pvnames": [device]})
            else:
                known["pvnames"].append(device)
            self.room[group] = self.room.get(group, 0) + (size - 8) // 4
        elif content == "swap":
            self.schema["fss"].append({"device": device, "fs_type": "swap", "mount": "swap"})
        elif content != "none":
            self.schema["fss"].append(filesystem(device, fs_type))

    def volume(self, group: str, name: str, extents: int, encrypted: bool, fs_type: str) -> None:
        self.room[group] -= extents
        device = f"/dev/mapper/{group}-{name}"
        self.schema["lvs"].append({"name": name, "vgname": group, "size": extents * 4})
        if encrypted and extents > 8:
            self.schema["luks"].append({"name": f"{name}-crypt", "device": device})
            device = f"/dev/mapper/{name}-crypt"
        self.schema["fss"].append(filesystem(device, fs_type))

    def pool(self, group: str, name: str, extents: int) -> None:
        """A thin pool whose metadata and their spare take an extent each."""
        self.room[group] -= extents + 2
        self.schema.setdefault("thin_pools", []).append({"name": name, "vgname": group, "size": extents * 4, "metadata_size": 4})

    def thin(self, group: str, pool: str, name: str, size: int, encrypted: bool, fs_type: str) -> None:
        """A volume in a thin pool, of `size` MiB."""
        device = f"/dev/mapper/{group}-{name}"
        self.schema["lvs"].append({"name": name, "vgname": group, "size": size, "pool": pool})
        if encrypted:
            self.schema["luks"].append({"name": f"{name}-crypt", "device": device})
            device = f"/dev/mapper/{name}-crypt"
        self.schema["fss"].append(filesystem(device, fs_type))

    def cache(self, group: str, origin: str, device: str) -> None:
        """A cache of a volume on a device of its own."""
        self.schema["pvs"].append({"name": device})
        next(known for known in self.schema["vgs"] if known["name"] == group)["pvnames"].append(device)
        self.schema.setdefault("caches", []).append({"name": f"{origin}_fast", "vgname": group, "origin": origin, "device": device})


def filesystem(device: str, fs_type: str) -> Plain:
    """A file system; a Btrfs with subvolumes, one of them limited, and one in another."""
    made = {"device": device, "fs_type": fs_type, "mount": "none"}
    return made | ({"subvolumes": [{"name": "@/home", "quota": 16}, {"name": "@"}]} if fs_type == "btrfs" else {})


@st.composite
def schemas(draw: st.DrawFn) -> Plain:
    """A schema on one to three disks."""
    return draw(makers()).schema


@st.composite
def makers(draw: st.DrawFn) -> SchemaMaker:
    """A schema on one to three disks, that can be added to."""
    maker = SchemaMaker()
    names = draw(st.lists(st.sampled_from(sorted(DISK_SIZES)), min_size=1, max_size=3, unique=True))
    for name in names:
        maker.disk(name, DISK_SIZES[name])
    for number in range(draw(st.integers(1, 5))):
        size = draw(st.integers(40, 260))
        space, content = f"s{number}", draw(st.sampled_from(_CONTENTS))
        fs_type = draw(st.sampled_from(_FILESYSTEMS))
        if len(names) > 1 and content == "none" and draw(st.booleans()):
            maker.spread(tuple(draw(st.permutations(names))[:2]), size, space)
        elif len(names) > 1 and content == "swap" and draw(st.booleans()):
            maker.zpool(tuple(names), size, f"pool{number}")
            if draw(st.booleans()):
                maker.log(tuple(names), 64, f"log{number}")
                maker.beside(draw(st.sampled_from(["caches", "spares"])), draw(st.sampled_from(names)), size, f"beside{number}")
        elif len(names) > 1 and draw(st.booleans()):
            first, second = draw(st.permutations(names))[:2]
            device = maker.mirror((first, second), size, space, draw(st.sampled_from(["1.0", "1.2"])))
            maker.fill(device, size - 2, content, space, fs_type)
        else:
            maker.fill(maker.partition(draw(st.sampled_from(names)), size, space), size, content, space, fs_type)
    for group in sorted(maker.room):
        for number in range(draw(st.integers(0, 3))):
            if maker.room[group] > 3:
                extents = draw(st.integers(1, maker.room[group] // 2))
                fs_type = draw(st.sampled_from((*_FILESYSTEMS, "swap")))
                maker.volume(group, f"{group}v{number}", extents, draw(st.booleans()), fs_type)
        if maker.room[group] > 5 and draw(st.booleans()):
            maker.pool(group, f"{group}pool", draw(st.integers(1, maker.room[group] - 2)))
            for number in range(draw(st.integers(0, 2))):
                size, fs_type = draw(st.integers(60, 900)), draw(st.sampled_from(_FILESYSTEMS))
                maker.thin(group, f"{group}pool", f"{group}t{number}", size, draw(st.booleans()), fs_type)
    volumes = [volume for volume in maker.schema["lvs"] if "pool" not in volume]
    if volumes and draw(st.booleans()):
        origin = draw(st.sampled_from(volumes))
        device = maker.partition(draw(st.sampled_from(names)), draw(st.integers(20, 100)), "cache")
        if draw(st.booleans()):
            maker.schema["luks"].append({"name": "cache-crypt", "device": device})
            device = "/dev/mapper/cache-crypt"
        maker.cache(origin["vgname"], origin["name"], device)
    # Logs, caches and spares of many pools may be more than fits; what is added later has to find room as well.
    assume(all(begin + _ADDED < DISK_SIZES[name] // MIB for name, begin in maker.free.items()))
    return maker


def change(draw: Draw, maker: SchemaMaker) -> None:
    """Change a schema as it may be changed after it was applied: grow what can grow, add what there is room for, take a disk in."""
    schema = maker.schema
    fixed = {leg for array in schema["mds"] for leg in array["devices"]} | devices_that_cannot_grow(schema)
    for cache in schema.get("caches", ()):
        cache["mode"] = draw(st.sampled_from(["writethrough", "writeback"]))
        fixed |= {cache["device"], *(container["device"] for container in schema["luks"] if container["name"] in cache["device"])}
    for pool in schema.get("zpools", ()):
        fixed |= {device for vdev in (*pool["vdevs"], *pool.get("logs", ())) for device in vdev["devices"]}
        fixed |= {device for what in ("caches", "spares") for device in pool.get(what, ())}
    for table in schema["parteds"]:
        last = table["partitions"][-1:] if draw(st.booleans()) else []
        for part in last:
            if part["name"] not in fixed:
                more = draw(st.integers(1, 60))
                part["end"] += more
                maker.free[disk_name(table)] += more
    for volume in schema["lvs"]:
        extents = draw(st.integers(0, 6))
        if "pool" in volume:
            volume["size"] += extents * 4 if f"/dev/mapper/{volume['vgname']}-{volume['name']}" not in fixed else 0
        elif extents <= maker.room[volume["vgname"]] and f"/dev/mapper/{volume['vgname']}-{volume['name']}" not in fixed:
            volume["size"] += extents * 4
            maker.room[volume["vgname"]] -= extents
    for pool in schema.get("thin_pools", ()):
        more, larger = draw(st.integers(0, 6)), draw(st.integers(0, 3))
        if more + 2 * larger <= maker.room[pool["vgname"]]:
            pool["size"] += more * 4
            pool["metadata_size"] += larger * 4
            maker.room[pool["vgname"]] -= more + 2 * larger
    for table in schema["parteds"]:
        if draw(st.booleans()):
            space = f"added{disk_name(table)}"
            maker.fill(
                maker.partition(disk_name(table), 50, space),
                50,
                draw(st.sampled_from(_CONTENTS)),
                space,
                draw(st.sampled_from(_FILESYSTEMS)),
            )
    for one in schema["fss"]:
        if one["fs_type"] == "btrfs" and draw(st.booleans()):
            one["subvolumes"] = [{"name": "@", "quota": 32}, {"name": "@/home", "quota": 8}, {"name": "@new"}]
    for pool in schema.get("zpools", ()):
        if draw(st.booleans()):
            pool["datasets"] = [{"name": "home", "quota": 32, "properties": {"atime": False}}, {"name": "new"}]
    unused = sorted(set(DISK_SIZES) - {disk_name(table) for table in schema["parteds"]})
    if unused and schema["vgs"] and draw(st.booleans()):
        maker.disk(unused[0], DISK_SIZES[unused[0]])
        device = maker.partition(unused[0], 300, "joins")
        schema["pvs"].append({"name": device})
        schema["vgs"][0]["pvnames"].append(device)
        maker.room[schema["vgs"][0]["name"]] += 70
    for group in sorted(maker.room):
        if maker.room[group] > 10 and draw(st.booleans()):
            maker.volume(group, f"{group}added", draw(st.integers(1, maker.room[group])), draw(st.booleans()), "ext4")


def disk_name(table: Plain) -> str:
    return str(table["name"]).rsplit("-", 1)[-1]


def devices_that_cannot_grow(schema: Plain) -> set[str]:
    """The devices of vfat and swap, and of btrfs that are small, through LUKS as well."""
    below = {f"/dev/mapper/{container['name']}": container["device"] for container in schema["luks"]}
    sizes = {part["name"]: part["end"] - part["begin"] for table in schema["parteds"] for part in table["partitions"]}
    sizes |= {f"/dev/mapper/{volume['vgname']}-{volume['name']}": volume["size"] for volume in schema["lvs"]}
    fixed = {filesystem["device"] for filesystem in schema["fss"] if filesystem["fs_type"] in ("vfat", "swap")}
    for filesystem in (filesystem for filesystem in schema["fss"] if filesystem["fs_type"] == "btrfs"):
        devices = filesystem.get("devices", [filesystem["device"]])
        small = any(sizes.get(below.get(device, device), 0) - LUKS_START // MIB < _LEAST_BTRFS for device in devices)
        fixed |= set(devices) if small else set()
    return fixed | {below[device] for device in fixed if device in below}


def _entries(disk: str, sizes: list[int]) -> tuple[TableEntry, ...]:
    begins = [1 + sum(sizes[:number]) for number in range(len(sizes))]
    return tuple(
        TableEntry(number, begin * MIB, size * MIB, LINUX, new_uuid(), f"old{number}")
        for number, (begin, size) in enumerate(zip(begins, sizes), start=1)
    )


def old_group(host: SimulatedHost, blocks: list[Block], name: str) -> None:
    """A volume group of before, with a volume that takes nearly all of it and has a filesystem."""
    physical = tuple((new_uuid(), (block.size - PV_START) // EXTENT) for block in blocks)
    segments = tuple((uuid, 0, extents - 1) for uuid, extents in physical)
    group = Group(name, new_uuid(), 1, physical, (Volume("old", new_uuid(), (), segments),))
    for block, (uuid, _extents) in zip(blocks, physical):
        host.media.sign(block, "LVM2_member", (uuid, group))
        host.media.write(block, PV_START + 1080, "ext4", (new_uuid(), block.size - PV_START))


def old_array(host: SimulatedHost, blocks: list[Block], metadata: str, title: str) -> None:
    uuid = new_uuid()
    for role, block in enumerate(blocks):
        host.media.sign(block, f"md-{metadata}", Raid(uuid, title, "raid1", len(blocks), metadata, role, block.size))


def put_old_contents(draw: Draw, host: SimulatedHost, disks: list[str]) -> None:
    """Put leftovers on disks of a host."""
    bare: list[Block] = []
    for disk in disks:
        kind = draw(st.sampled_from(["empty", "bare", "ext4", "zfs", "gpt", "dos", "stale"]))
        block = host.media.disk(disk)
        if kind == "bare":
            bare.append(block)
        elif kind in ("ext4", "zfs"):
            host.media.sign(block, {"ext4": "ext4", "zfs": "zfs_member"}[kind], (new_uuid(), block.size))
        elif kind in ("gpt", "dos", "stale"):
            entries = _entries(disk, draw(st.lists(st.integers(30, 300), min_size=1, max_size=4)))
            host.media.write_table(disk, new_uuid(), entries, "gpt" if kind == "stale" else kind)
            bare.extend(Block(f"{disk}{entry.number}", "", "part", block.part(entry.start, entry.size)) for entry in entries)
            if kind == "stale":
                host.media.wipe_table(disk)
    while bare:
        count = draw(st.integers(1, min(2, len(bare))))
        blocks, bare = bare[:count], bare[count:]
        what = draw(st.sampled_from(["group", "md-1.2", "md-1.0", "md-0.90", "xfs", "btrfs", "crypto_LUKS", "nothing"]))
        if what == "group":
            old_group(host, blocks, draw(st.sampled_from(["vg0", "old"])) + new_uuid()[-3:] * draw(st.integers(0, 1)))
        elif what.startswith("md-"):
            old_array(host, blocks, what[3:], f"m{new_uuid()[-3:]}")
        elif what != "nothing":
            host.media.sign(blocks[0], what, (new_uuid(), blocks[0].size))
