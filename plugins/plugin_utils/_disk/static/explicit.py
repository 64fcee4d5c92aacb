# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Allocation -> the two forms of a static schema: the seed's (sizes by disk) and Bareon's explicit one (every object to be made).

The explicit form has the objects of Bareon's `nailgun_simple` input, `{parteds, pvs, vgs, lvs, mds, fss}`, and `luks`; sizes and
positions are MiB. Unlike the converter that the seed describes it makes one PV per volume group and disk (or array).
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ....module_utils._storage import overhead, thin
from ....module_utils._storage.filesystems import FILESYSTEMS, NOT_MOUNTED, SWAP, made_on
from ....module_utils._storage.lvm import EXTENT, mapper_node
from ....module_utils._storage.raid import WRITE_MOSTLY
from ....module_utils._storage.zfs import Part, Vdev
from ..model import Allocation, Dataset, Hardware, Schema, Space, SpaceType, Subvolume
from .partitions import Partition, device_name, is_encrypted, partitions

Plain = dict[str, t.Any]


def sizes_by_disk(hardware: Hardware, schema: Schema, allocation: Allocation) -> list[Plain]:
    """Return `[{disk_id, size, spaces: [{space_id, size}], unallocated}]`, spaces in the order they lie on the disk."""
    lists: list[list[Plain]] = [[] for _unused in hardware.disks]
    for piece in allocation.pieces:
        if piece.size > 0:
            lists[piece.disk].append({"space_id": schema.spaces[piece.space].id, "size": piece.size})
    whole = {space.id for space in schema.spaces if space.type is SpaceType.DISK}
    result = []
    for disk, spaces in zip(hardware.disks, lists, strict=True):
        has_table = spaces and not schema.flat and spaces[0]["space_id"] not in whole
        room = overhead.usable(disk.size) if has_table else disk.size
        used = sum(space["size"] for space in spaces)
        result.append({"disk_id": disk.id, "size": disk.size, "spaces": spaces, "unallocated": room - used})
    return result


def whole_disks(hardware: Hardware, schema: Schema) -> list[Plain]:
    """Return `[{disk_id, device, size, space_id}]`, the disks that are left whole for spaces of the type disk."""
    return [
        {"disk_id": disk.id, "device": device_name(disk), "size": disk.size, "space_id": space.id}
        for space in schema.spaces
        if space.type is SpaceType.DISK
        for disk in (hardware.disks[position] for position in sorted(space.allowed))
    ]


def explicit_schema(hardware: Hardware, schema: Schema, allocation: Allocation, seed: str) -> dict[str, list[Plain]]:
    """Return Bareon's explicit static schema; `seed` makes the identities of partitions, see `gpt.partitions`."""
    made = partitions(hardware, schema, allocation, seed)
    devices: dict[str, list[str]] = {}
    for partition in made:
        devices.setdefault(schema.spaces[partition.space].id, []).append(partition.device)
    kept = {schema.spaces[partition.space].id for partition in made if partition.kept}
    arrays = [
        _array(space, _by_preference(space, made, schema), space.id in kept, made)
        for space in schema.spaces
        if _is_made(space, devices, SpaceType.RAID)
    ]
    devices.update({array["space_id"]: [array["name"]] for array in arrays})
    for group in schema.spaces:
        below = [array["name"] for array in arrays if array["space_id"] in group.contains]
        if below:
            devices[group.id] = [*devices.get(group.id, []), *below]
    containers = [container for space in schema.spaces for container in _containers(space, schema, devices.get(space.id, []))]
    for space in schema.spaces:
        opened = [f"/dev/mapper/{container['name']}" for container in containers if container["space_id"] == space.id]
        if opened:
            devices[space.id] = opened
    caches = [_cache(space, schema, devices[space.id][0]) for space in schema.spaces if _is_cache(space, schema, devices)]
    for cache in caches:
        devices[cache["vgname"]] = [*devices[cache["vgname"]], cache["device"]]
    volumes = _volumes(schema, allocation, devices, kept, made)
    pools = _thin_pools(schema, allocation, devices)
    zpools = [
        _zpool(
            space,
            _by_preference(space, made, schema),
            [(other, devices.get(other.id, [])) for other in schema.spaces if other.zpool == space.id],
        )
        for space in schema.spaces
        if _is_made(space, devices, SpaceType.ZPOOL)
    ]
    return {
        "parteds": _parteds(hardware, schema, made),
        "mds": arrays,
        "luks": containers,
        "pvs": [_physical_volume(device, group.id in kept) for group in _groups(schema, devices) for device in devices[group.id]],
        "vgs": [_volume_group(group, devices[group.id], group.id in kept) for group in _groups(schema, devices)],
        **({"thin_pools": pools} if pools else {}),
        "lvs": volumes,
        **({"caches": caches} if caches else {}),
        **({"zpools": zpools} if zpools else {}),
        "fss": _filesystems(schema, devices, volumes, kept),
    }


def _is_made(space: Space, devices: Mapping[str, Sequence[str]], space_type: SpaceType) -> bool:
    return space.type is space_type and bool(devices.get(space.id))


def _parteds(hardware: Hardware, schema: Schema, made: Sequence[Partition]) -> list[Plain]:
    by_disk: dict[int, list[Partition]] = {}
    for partition in made:
        by_disk.setdefault(partition.disk, []).append(partition)
    result = []
    for position, disk in enumerate(hardware.disks):
        here = by_disk.get(position)
        if here:
            name = device_name(disk)
            result.append(
                {
                    "name": name,
                    "disk_id": disk.id,
                    "label": "gpt",
                    "disk_size": disk.size,
                    "install_bootloader": any(_boots(schema.spaces[partition.space]) for partition in here),
                    "partitions": [_partition(partition, name, schema.spaces[partition.space]) for partition in here],
                }
            )
    return result


def _boots(space: Space) -> bool:
    return space.boot or space.type in (SpaceType.ESP, SpaceType.BIOS_GRUB)


def _partition(partition: Partition, disk_device: str, space: Space) -> Plain:
    return {
        "name": partition.device,
        "device": disk_device,
        "count": partition.number,
        "begin": partition.begin,
        "end": partition.end,
        "partition_type": "primary",
        "guid": partition.type_guid,
        "uuid": partition.uuid,
        "flags": list(partition.flags),
        "keep_data": partition.kept,
        "space_id": space.id,
        **({} if space.partition_label is None else {"partition_label": space.partition_label}),
        **({} if partition.exact is None else {"start_bytes": partition.exact[0], "end_bytes": partition.exact[1]}),
    }


def _by_preference(space: Space, made: Sequence[Partition], schema: Schema) -> list[str]:
    """Return the partitions of an array; where some of them stand by, those on the disks that it likes least come last."""

    def rank(partition: Partition) -> int:
        tiers = space.preferred_disks if space.spares else ()
        return next((at for at, tier in enumerate(tiers) if partition.disk in tier), len(tiers))

    return [partition.device for partition in sorted(made, key=rank) if schema.spaces[partition.space].id == space.id]


def _array(space: Space, legs: Sequence[str], kept: bool, made: Sequence[Partition]) -> Plain:
    members = len(legs) - space.spares_among(len(legs))
    asked = space.write_mostly
    slow = [] if asked is None else [part.device for part in made if part.device in legs and part.disk in asked]
    # md reads from one member at least: where all are slow, none is slower than the others.
    chosen = {} if asked is None else {WRITE_MOSTLY: slow if len(slow) < members else []}
    return {
        "name": f"/dev/md/{space.id}",
        "level": str(space.level),
        "devices": list(legs[:members]),
        "spares": list(legs[members:]),
        "metadata": overhead.md_metadata(space.boot),
        "keep_data": kept,
        "space_id": space.id,
        **space.array.given(),
        **chosen,
    }


def _containers(space: Space, schema: Schema, devices: Sequence[str]) -> Iterable[Plain]:
    if not is_encrypted(space, schema):
        return
    said = (each.unlock for each in (space, *schema.spaces) if each is space or each.volume_group == space.id)
    unlock = [method.plain() for method in next(filter(None, said), ())]
    for number, device in enumerate(devices, start=1):
        name = f"{space.id}-crypt{number if len(devices) > 1 else ''}"
        made = {"name": name, "device": device, "keep_data": space.keep_data, "space_id": space.id}
        yield {**made, "unlock": unlock} if unlock else made


def _is_cache(space: Space, schema: Schema, devices: Mapping[str, Sequence[str]]) -> bool:
    if space.cache_of is None or not devices.get(space.id):
        return False
    return bool(devices.get(schema.by_id(space.cache_of).volume_group or ""))


def _cache(space: Space, schema: Schema, device: str) -> Plain:
    group = schema.by_id(space.cache_of or "").volume_group
    named = {"name": space.id, "vgname": group, "origin": space.cache_of, "device": device}
    return {**named, "mode": space.cache_mode, "keep_data": False, "space_id": space.id}


def _groups(schema: Schema, devices: Mapping[str, Sequence[str]]) -> list[Space]:
    return [space for space in schema.spaces if _is_made(space, devices, SpaceType.VOLUME_GROUP)]


def _physical_volume(device: str, kept: bool) -> Plain:
    # 0 is LVM's own default: one copy of the metadata, the first extent at 1 MiB.
    return {"name": device, "metadatasize": 0, "metadatacopies": 1, "keep_data": kept}


def _volume_group(group: Space, devices: Sequence[str], kept: bool) -> Plain:
    made = {"name": group.id, "pvnames": list(devices), "keep_data": kept, "space_id": group.id}
    return made if group.extent_size == EXTENT else {**made, "extent_size": group.extent_size}


def _volumes(
    schema: Schema, allocation: Allocation, devices: Mapping[str, Sequence[str]], kept: set[str], made: Sequence[Partition]
) -> list[Plain]:
    result = []
    for position, space in enumerate(schema.spaces):
        size = _thin_size(schema, allocation, space) if space.thin_pool else allocation.volumes.get(position, 0)
        if space.type is not SpaceType.THIN_POOL and space.volume_group is not None and size > 0 and devices.get(space.volume_group):
            result.append(
                {
                    "name": space.id,
                    "vgname": space.volume_group,
                    "device": mapper_node(space.volume_group, space.id),
                    "size": size,
                    "keep_data": space.keep_data and space.volume_group in kept,
                    "space_id": space.id,
                    **({"pool": space.thin_pool} if space.thin_pool else {}),
                    **_striping(space, _on_disks(schema, space, devices, made, allocation.striped.get(position, ()))),
                }
            )
    return result


def _on_disks(
    schema: Schema, space: Space, devices: Mapping[str, Sequence[str]], made: Sequence[Partition], disks: Sequence[int]
) -> list[str]:
    """Return the physical volumes of a volume's group on these disks: partitions, or the LUKS containers on them."""
    own = [partition.disk for partition in made if schema.spaces[partition.space].id == space.volume_group]
    on = dict(zip(own, devices[space.volume_group or ""]))
    return [on[disk] for disk in disks]


def _striping(space: Space, devices: Sequence[str]) -> Plain:
    given = {"stripes": space.stripes, "stripe_size": space.stripe_size, "devices": list(devices)}
    return {key: value for key, value in given.items() if value}


def _thin_pools(schema: Schema, allocation: Allocation, devices: Mapping[str, Sequence[str]]) -> list[Plain]:
    result = []
    for position, space in enumerate(schema.spaces):
        if space.type is SpaceType.THIN_POOL and devices.get(space.volume_group or "") and position in allocation.volumes:
            parts = pool_parts(schema, allocation, position)
            made = {"name": space.id, "vgname": space.volume_group, "size": parts.size, "metadata_size": parts.metadata}
            result.append({**made, "chunk_size": parts.chunk, "keep_data": False, "space_id": space.id})
    return result


def pool_parts(schema: Schema, allocation: Allocation, position: int) -> thin.PoolParts:
    """Return what the room of the thin pool at that position is divided into."""
    pool = schema.spaces[position]
    extent = schema.by_id(pool.volume_group or "").extent_size
    return thin.divide(allocation.volumes[position], extent, pool.chunk_size, pool.metadata_size)


def _zpool(space: Space, legs: Sequence[str], parts: Sequence[tuple[Space, Sequence[str]]]) -> Plain:
    """Return a ZFS pool; `parts` are its logs and caches with their devices."""
    width, members = space.shape.width, len(legs) - space.spares_among(len(legs))
    made = [(part.zpool_part, devices) for part, devices in parts if devices]
    others = {
        "logs": [_vdev(Vdev.MIRROR if len(devices) > 1 else Vdev.STRIPE, devices) for part, devices in made if part is Part.LOG],
        "caches": [device for part, devices in made if part is Part.CACHE for device in devices],
        "spares": list(legs[members:]),
    }
    return {
        "name": space.id,
        "vdevs": [_vdev(space.vdev, legs[at : at + width]) for at in range(0, members, width)],
        **{key: devices for key, devices in others.items() if devices},
        "ashift": space.ashift,
        "mount": space.mount or NOT_MOUNTED,
        "properties": dict(space.properties),
        "datasets": [_dataset(dataset) for dataset in space.datasets],
        "space_id": space.id,
    }


def _vdev(kind: Vdev, devices: Sequence[str]) -> Plain:
    return {"type": str(kind), "devices": list(devices)}


def _dataset(dataset: Dataset) -> Plain:
    own = {key: value for key, value in (("mount", dataset.mount), ("quota", dataset.quota), ("reservation", dataset.reservation)) if value}
    return {"name": dataset.name, **own, "properties": dict(dataset.properties)}


def _thin_size(schema: Schema, allocation: Allocation, space: Space) -> int:
    """Return the size of a thin volume, in whole extents; nothing where its pool has none."""
    pool = next(at for at, other in enumerate(schema.spaces) if other.id == space.thin_pool)
    extent = schema.by_id(space.volume_group or "").extent_size
    return -(-space.min_size // extent) * extent if allocation.volumes.get(pool) else 0


def _filesystems(schema: Schema, devices: Mapping[str, Sequence[str]], volumes: Sequence[Plain], kept: set[str]) -> list[Plain]:
    of_volumes = {volume["space_id"]: [volume["device"]] for volume in volumes}
    kept = kept | {volume["space_id"] for volume in volumes if volume["keep_data"]}
    return [
        filesystem
        for space in schema.spaces
        if space.type not in (SpaceType.VOLUME_GROUP, SpaceType.BIOS_GRUB, SpaceType.ZPOOL)
        for filesystem in _filesystems_of(space, of_volumes.get(space.id, devices.get(space.id, [])), space.id in kept)
    ]


def _filesystems_of(space: Space, devices: Sequence[str], kept: bool) -> Iterable[Plain]:
    """Return one file system per device; with several of them mount points and labels get numbers, except for ESPs: one is mounted."""
    fs_type = made_on(space.fs_type or ("vfat" if space.type is SpaceType.ESP else None), space.mount)
    if fs_type is None:
        return
    spread = devices if space.type is SpaceType.BTRFS else ()
    for number, device in enumerate(devices[:1] if spread else devices, start=1):
        suffix = str(number) if len(devices) > 1 and not spread else ""
        mount = _mount_point(space, fs_type, suffix)
        subvolumes = [_subvolume(subvolume, suffix) for subvolume in space.subvolumes]
        yield {
            "device": device,
            "mount": mount,
            "fs_type": fs_type,
            "fs_options": space.fs_options or "",
            "fs_label": _label(space.fs_label, fs_type, suffix),
            "fstab_enabled": any(thing["mount"] != NOT_MOUNTED for thing in ({"mount": mount}, *subvolumes)),
            "fstab_options": space.mount_options or "defaults",
            "os_id": [],
            "keep_data": kept,
            "space_id": space.id,
            **({"devices": list(spread), "level": str(space.level)} if spread else {}),
            **({"subvolumes": subvolumes} if subvolumes else {}),
        }


def _subvolume(subvolume: Subvolume, suffix: str) -> Plain:
    mounted = subvolume.mount not in (None, NOT_MOUNTED, SWAP)
    return {
        "name": subvolume.name,
        "mount": f"{subvolume.mount}{suffix}" if mounted else NOT_MOUNTED,
        "fstab_options": subvolume.mount_options or "defaults",
        **({} if subvolume.quota is None else {"quota": subvolume.quota}),
    }


def _mount_point(space: Space, fs_type: str, suffix: str) -> str:
    if fs_type == SWAP:
        return SWAP
    if space.mount is None or space.mount == NOT_MOUNTED:
        return NOT_MOUNTED
    if space.type is SpaceType.ESP:
        return space.mount if suffix in ("", "1") else NOT_MOUNTED
    return f"{space.mount}{suffix}"


def _label(label: str | None, fs_type: str, suffix: str) -> str:
    if label is None:
        return ""
    longest = FILESYSTEMS[fs_type].label_length
    return f"{label[: longest - len(suffix)]}{suffix}"
