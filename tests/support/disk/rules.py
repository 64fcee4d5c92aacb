# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules of a plan, checked without any code of the planner but its models: an oracle for tests."""

from __future__ import annotations

import itertools
from collections import defaultdict

from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import Allocation, Hardware, Schema, Space, SpaceType

EXTENT = 4
DATA_LEGS = {
    "raid0": lambda legs: legs,
    "raid1": lambda _: 1,
    "raid5": lambda legs: legs - 1,
    "raid6": lambda legs: legs - 2,
    "raid10": lambda legs: legs // 2,
}
ZFS_LEGS = {
    "stripe": lambda legs, _vdevs: legs,
    "mirror": lambda legs, vdevs: vdevs or legs // 2,
    **{f"raidz{parity}": lambda legs, vdevs, parity=parity: legs - parity * (vdevs or 1) for parity in (1, 2, 3)},
}
BTRFS_LEGS = {"raid0": lambda legs: legs, "raid1": lambda legs: legs // 2, "raid10": lambda legs: legs // 2}


def broken(hardware: Hardware, schema: Schema, allocation: Allocation, reserve: int = 0) -> list[str]:
    """Return every rule that an allocation breaks."""
    return [
        *_disks(hardware, schema, allocation, reserve),
        *(fault for at, space in enumerate(schema.spaces) for fault in _space(schema, allocation, at, space)),
        *_boot(schema, allocation),
        *_relations(hardware, schema, allocation),
        *_drives(hardware, schema, allocation),
    ]


def on_disks(allocation: Allocation, position: int) -> dict[int, list[int]]:
    """Return the sizes of a space's pieces by disk."""
    found = defaultdict(list)
    for piece in allocation.pieces:
        if piece.space == position:
            found[piece.disk].append(piece.size)
    return dict(found)


def size_of(schema: Schema, allocation: Allocation, position: int) -> int:
    """Return what the bounds of a space are about: data capacity of a raid, size of a volume, sum of everything else."""
    space = schema.spaces[position]
    if position in allocation.volumes:
        return allocation.volumes[position]
    sizes = [size for sizes in on_disks(allocation, position).values() for size in sizes]
    if space.type is SpaceType.BTRFS:
        return min(sizes, default=0) * BTRFS_LEGS[space.level.value](space.legs)
    if space.type is SpaceType.ZPOOL:
        return min(sizes, default=0) * ZFS_LEGS[space.vdev.value](len(sizes), space.vdevs)
    if space.type is SpaceType.RAID:
        return min(sizes, default=0) * DATA_LEGS[space.level.value](space.legs)
    return sum(sizes)


def extents(size: int, head: int, extent: int = EXTENT) -> int:
    """Return the extents of a PV."""
    return max(0, size - head) // extent


def _fail_together(hardware: Hardware, one: int, other: int) -> bool:
    """Return whether two disks are one, share a drive, or share drives with disks that do."""
    reached, pending = {one}, [one]
    while pending:
        names = set(hardware.disks[pending.pop()].drives)
        more = {at for at, disk in enumerate(hardware.disks) if names & set(disk.drives)} - reached
        reached |= more
        pending += more
    return other in reached


def _drives(hardware: Hardware, schema: Schema, allocation: Allocation) -> list[str]:
    """Check that what is made to survive the loss of a drive has a single part on each."""
    faults = []
    for space in schema.spaces:
        if space.legs > 1 or space.copy_of:
            own = [at for at, other in enumerate(schema.spaces) if other is space or (space.copy_of and other.copy_of == space.copy_of)]
            disks = [piece.disk for piece in allocation.pieces if piece.space in own and piece.start is None]
            shared = [pair for pair in itertools.combinations(disks, 2) if _fail_together(hardware, *pair)]
            faults += [f"{space.id}: on disks {pair} of one drive" for pair in shared]
    return faults


def _relations(hardware: Hardware, schema: Schema, allocation: Allocation) -> list[str]:
    def disks_of(name: str) -> set[int]:
        names = {name, *next(space.contains for space in schema.spaces if space.id == name)}
        return {piece.disk for piece in allocation.pieces if schema.spaces[piece.space].id in names and piece.start is None}

    faults = []
    for space in schema.spaces:
        own = disks_of(space.id)
        for name in space.apart_from:
            shared = [pair for pair in itertools.product(own, disks_of(name)) if _fail_together(hardware, *pair)]
            faults += [f"{space.id}: shares the drive of disks {pair} with {name}" for pair in shared]
        faults += [f"{space.id}: on {own - disks_of(name)} without {name}" for name in space.together_with if own - disks_of(name)]
    return faults


def _disks(hardware: Hardware, schema: Schema, allocation: Allocation, reserve: int) -> list[str]:
    faults = []
    head, tail = (0, 0) if schema.flat else (1, 1)
    for at, disk in enumerate(hardware.disks):
        position = head
        pieces = [piece for piece in allocation.pieces if piece.disk == at]
        if any(schema.spaces[piece.space].type is SpaceType.DISK for piece in pieces):
            faults += [f"{disk.id}: {piece.size} of {disk.size} are left whole" for piece in pieces if piece.size != disk.size]
            continue
        for piece in pieces:
            if piece.size <= 0:
                faults.append(f"{disk.id}: a piece of {piece.size} MiB")
            if piece.start is not None and piece.start < position:
                faults.append(f"{disk.id}: what must start at {piece.start} is reached only at {position}")
            position = piece.size + (position if piece.start is None else piece.start)
        new = any(piece.start is None for piece in pieces)
        if new and not any(piece.start is not None for piece in pieces) and position > disk.size - tail - reserve:
            faults.append(f"{disk.id}: used up to {position} of {disk.size - tail - reserve}")
        if new and position > disk.size - tail:
            faults.append(f"{disk.id}: used up to {position} of {disk.size - tail}")
    return faults


def _space(schema: Schema, allocation: Allocation, at: int, space: Space) -> list[str]:
    there = on_disks(allocation, at)
    kept = any(piece.start is not None for piece in allocation.pieces if piece.space == at)
    if kept or (space.keep_data and at in allocation.volumes):
        return []
    faults = [f"{space.id}: {len(sizes)} pieces on one disk" for sizes in there.values() if len(sizes) != (space.per_disk or 1)]
    if not set(there) <= space.allowed:
        faults.append(f"{space.id}: on disks {sorted(set(there) - space.allowed)} that it may not use")
    check = {
        SpaceType.RAID: _raid,
        SpaceType.BTRFS: _btrfs,
        SpaceType.ZPOOL: _zpool,
        SpaceType.PARTITION: _partition,
        SpaceType.PARTITIONS: _partition if space.per_disk else _bounds,
        SpaceType.LOGICAL_VOLUME: _bounds if space.volume_group is None else _volume,
        SpaceType.VOLUME_GROUP: _group,
        SpaceType.ESP: _boot_partition,
        SpaceType.BIOS_GRUB: _boot_partition,
        SpaceType.DISK: _whole_disks,
    }[space.type]
    return faults + check(schema, allocation, at, space)


def _whole_disks(_schema: Schema, allocation: Allocation, at: int, space: Space) -> list[str]:
    others = {piece.disk for piece in allocation.pieces if piece.space != at}
    faults = [f"{space.id}: not on disk {disk}" for disk in space.allowed - set(on_disks(allocation, at))]
    return faults + [f"{space.id}: shares disk {disk}" for disk in space.allowed & others]


def _within(space: Space, size: int, step: int = 1) -> list[str]:
    faults = []
    if size < space.min_size:
        faults.append(f"{space.id}: {size} is less than {space.min_size}")
    if space.max_size is not None and size > max(space.max_size, -(-space.min_size // step) * step):
        faults.append(f"{space.id}: {size} is more than {space.max_size}")
    return faults


def _bounds(schema: Schema, allocation: Allocation, at: int, space: Space) -> list[str]:
    return _within(space, size_of(schema, allocation, at))


def _volume(schema: Schema, allocation: Allocation, at: int, space: Space) -> list[str]:
    size = size_of(schema, allocation, at)
    extent = next(group.extent_size for group in schema.spaces if group.id == space.volume_group)
    # Each stripe is of whole extents.
    faults = _within(space, size, extent * (space.stripes or 1))
    if size <= 0 or size % extent:
        faults.append(f"{space.id}: {size} MiB are no extents")
    return faults


def _partition(schema: Schema, allocation: Allocation, at: int, space: Space) -> list[str]:
    there = on_disks(allocation, at)
    if space.per_disk:
        faults = [] if set(there) == space.allowed else [f"{space.id}: on {sorted(there)}, not on every disk"]
        return faults + [fault for sizes in there.values() for size in sizes for fault in _within(space, size)]
    faults = [] if len(there) == 1 else [f"{space.id}: on {len(there)} disks"]
    return faults + _bounds(schema, allocation, at, space)


def _raid(schema: Schema, allocation: Allocation, at: int, space: Space) -> list[str]:
    there = on_disks(allocation, at)
    faults = [] if len(there) == space.legs + space.spares else [f"{space.id}: {len(there)} legs"]
    if len({size for sizes in there.values() for size in sizes}) > 1:
        faults.append(f"{space.id}: unequal legs {there}")
    data = DATA_LEGS[space.level.value](space.legs)
    return faults + _within(space, size_of(schema, allocation, at), data)


def _btrfs(schema: Schema, allocation: Allocation, at: int, space: Space) -> list[str]:
    there = on_disks(allocation, at)
    faults = [] if len(there) == space.legs else [f"{space.id}: on {len(there)} disks"]
    if len({size for sizes in there.values() for size in sizes}) > 1:
        faults.append(f"{space.id}: unequal parts {there}")
    return faults + _within(space, size_of(schema, allocation, at), BTRFS_LEGS[space.level.value](space.legs))


def _zpool(schema: Schema, allocation: Allocation, at: int, space: Space) -> list[str]:
    there = on_disks(allocation, at)
    faults = [] if len(there) == space.legs else [f"{space.id}: on {len(there)} disks"]
    if len({size for sizes in there.values() for size in sizes}) > 1:
        faults.append(f"{space.id}: unequal parts {there}")
    # A thirty-second stays free, and labels take more than 4 MiB.
    size = size_of(schema, allocation, at)
    if size * 31 // 32 - 4 < space.min_size:
        faults.append(f"{space.id}: {size} with all that ZFS keeps is less than {space.min_size}")
    return faults


def _group(schema: Schema, allocation: Allocation, at: int, space: Space) -> list[str]:
    members = [member for member, other in enumerate(schema.spaces) if other.volume_group == space.id]
    encrypted = space.encrypt or any(schema.spaces[member].encrypt for member in members)
    head, extent = 17 if encrypted else 1, space.extent_size
    there = on_disks(allocation, at)
    have = sum(extents(size, head, extent) for sizes in there.values() for size in sizes)
    for position, other in enumerate(schema.spaces):
        if other.type is SpaceType.RAID and other.id in space.contains:
            leg = min(size for sizes in on_disks(allocation, position).values() for size in sizes)
            have += array_extents(other, leg, encrypted, extent)
    need = sum(-(-allocation.volumes[member] // extent) for member in members)
    faults = [] if need <= have else [f"{space.id}: volumes need {need} extents, PVs have {have}"]
    if there:
        faults += _narrow(
            schema, allocation, members, extent, {disk: sum(extents(size, head, extent) for size in sizes) for disk, sizes in there.items()}
        )
    if have * extent < space.min_size:
        faults.append(f"{space.id}: {have * extent} is less than {space.min_size}")
    if space.max_size is not None and have * extent > space.max_size:
        faults.append(f"{space.id}: {have * extent} is more than {space.max_size}")
    if space.max_pvs is not None and len(there) > space.max_pvs:
        faults.append(f"{space.id}: {len(there)} PVs")
    return faults


def _narrow(schema: Schema, allocation: Allocation, members: list[int], extent: int, slots: dict[int, int]) -> list[str]:
    """Check that volumes which may use some disks only find extents there."""
    faults = []
    for disks in {schema.spaces[member].allowed for member in members}:
        inside = sum(allocation.volumes[member] // extent for member in members if schema.spaces[member].allowed <= disks)
        if inside > sum(count for disk, count in slots.items() if disk in disks):
            faults.append(f"volumes need {inside} extents on {sorted(disks)}")
    return faults


def metadata(leg: int, boot: bool, data: int) -> int:
    """Return what md keeps of a leg, from the table of what mdadm does; without mirroring alone (data > 1) it keeps 2 MiB at least."""
    if boot:
        return 1
    return 1 + next((headroom for headroom in (128, 64, 32, 16, 8, 4, 2, 1) if headroom * 1024 <= leg), 0 if data == 1 else 1)


def array_extents(array: Space, leg: int, encrypted: bool, extent: int = EXTENT) -> int:
    """Return the extents of a PV on an array, counted in chunks of half a MiB: LUKS and LVM start at a stripe, or at whole MiB."""
    data = DATA_LEGS[array.level.value](array.legs)
    step = 2 if data <= 2 else data
    luks = next(at for at in itertools.count(32 if encrypted else 0) if at % step == 0)
    lvm = next(at for at in itertools.count(2) if at % step == 0)
    return max(0, (leg - metadata(leg, array.boot, data)) * data * 2 - luks - lvm) // (extent * 2)


def _boot_partition(_schema: Schema, allocation: Allocation, at: int, space: Space) -> list[str]:
    return [fault for (size,) in on_disks(allocation, at).values() for fault in _within(space, size)]


def _boot(schema: Schema, allocation: Allocation) -> list[str]:
    faults = []
    booting = set()
    for at, space in enumerate(schema.spaces):
        if space.boot:
            carriers = {at} | {position for position, other in enumerate(schema.spaces) if other.id == space.volume_group}
            raids = {name for carrier in carriers for name in schema.spaces[carrier].contains}
            carriers |= {position for position, other in enumerate(schema.spaces) if other.id in raids and other.type is SpaceType.RAID}
            booting |= {piece.disk for piece in allocation.pieces if piece.space in carriers}
    for at, space in enumerate(schema.spaces):
        if space.type in (SpaceType.ESP, SpaceType.BIOS_GRUB) and booting and set(on_disks(allocation, at)) != booting:
            faults.append(f"{space.id}: on {sorted(on_disks(allocation, at))}, but {sorted(booting)} boot")
    return faults
