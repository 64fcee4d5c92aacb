# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The static schema of a plan by space: which partition, volume, array, filesystem belongs to which space."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ....module_utils._storage import gpt
from ....module_utils._storage.lvm import mapper_node

Plain = Mapping[str, t.Any]


@dataclass(frozen=True)
class StaticIndex:
    """The objects of a static schema by the id of their space; `parents` the space that a space lies in, if any.

    A space that is on several disks by itself has a file system on each.
    """

    partitions: Mapping[str, Plain]
    groups: Mapping[str, Plain]
    volumes: Mapping[str, Plain]
    pools: Mapping[str, Plain]
    caches: Mapping[str, Plain]
    arrays: Mapping[str, Plain]
    filesystems: Mapping[str, tuple[Plain, ...]]
    zpools: Mapping[str, Plain]
    zpool_parts: Mapping[str, str]
    """A partition's role in a ZFS pool, if it holds no data: log of tank, cache of tank."""
    encrypted: frozenset[str]
    parents: Mapping[str, str]
    arrays_of: Mapping[str, tuple[str, ...]]
    """Of a group that lies on several arrays: these, in the order of its PVs. It is inside none of them."""
    standing_by: Mapping[str, tuple[str, ...]]
    """Of an array or a ZFS pool with spares: the ids of the disks that stand by."""

    def kind(self, space_id: str) -> str:
        """Return the type of a space, in the words of the dynamic schema."""
        lists = {"lv": self.volumes, "thin_pool": self.pools, "raid": self.arrays, "vg": self.groups, "zpool": self.zpools}
        for kind, known in lists.items():
            if space_id in known:
                return "thin" if known[space_id].get("pool") else kind
        if any(filesystem.get("devices") for filesystem in self.filesystems.get(space_id, ())):
            return "btrfs"
        partition = self.partitions.get(space_id, {})
        if "bios_grub" in (partition.get("flags") or ()):
            return "bios_grub"
        return {gpt.ESP: "esp", gpt.BIOS_BOOT: "bios_grub"}.get(str(partition.get("guid") or "").lower(), "partition")


def index_static(static: Plain) -> StaticIndex:
    """Return the index of a static schema (`parteds`, `pvs`, `vgs`, `lvs`, `mds`, `luks`, `fss`); any of them may be absent."""
    partitions = [partition for disk in static.get("parteds") or () for partition in disk.get("partitions") or ()]
    owners = _owners_of_devices(static, partitions)
    return StaticIndex(
        partitions=_by_space(partitions),
        groups=_by_space(static.get("vgs") or ()),
        volumes=_by_space(static.get("lvs") or ()),
        pools=_by_space(static.get("thin_pools") or ()),
        caches=_by_space(static.get("caches") or ()),
        arrays=_by_space(static.get("mds") or ()),
        filesystems=_by_owner(static.get("fss") or (), owners),
        zpools=_by_space(static.get("zpools") or ()),
        zpool_parts=_zpool_parts(static, owners),
        encrypted=frozenset(_by_owner(static.get("luks") or (), owners)),
        parents=_parents(static, owners),
        arrays_of={group: arrays for group, arrays in _arrays_below(static, owners).items() if len(arrays) > 1},
        standing_by=_standing_by(static),
    )


def _space_of(item: Plain) -> str:
    return str(item.get("space_id") or str(item.get("name", "")).rsplit("/", 1)[-1])


def _by_space(items: Iterable[Plain]) -> dict[str, Plain]:
    return {_space_of(item): item for item in items}


def _by_owner(items: Iterable[Plain], owners: Mapping[str, str]) -> dict[str, tuple[Plain, ...]]:
    """Return items by the space that they name, or else by the one whose device they lie on."""
    found: dict[str, list[Plain]] = {}
    for item in items:
        space_id = item.get("space_id") or owners.get(str(item.get("device")))
        if space_id:
            found.setdefault(str(space_id), []).append(item)
    return {space_id: tuple(those) for space_id, those in found.items()}


def _owners_of_devices(static: Plain, partitions: Iterable[Plain]) -> dict[str, str]:
    owners = {str(item.get("name")): _space_of(item) for item in [*partitions, *(static.get("mds") or ())]}
    for volume in static.get("lvs") or ():
        group, name = str(volume.get("vgname")), str(volume.get("name"))
        owners[mapper_node(group, name)] = _space_of(volume)
        owners[f"/dev/{group}/{name}"] = _space_of(volume)
    for container in static.get("luks") or ():
        owner = container.get("space_id") or owners.get(str(container.get("device")))
        if owner:
            owners[f"/dev/mapper/{container.get('name')}"] = str(owner)
    return owners


def _parents(static: Plain, owners: Mapping[str, str]) -> dict[str, str]:
    """Return what each space lies in; a group on several arrays is not in one of them."""
    parents = {group: arrays[0] for group, arrays in _arrays_below(static, owners).items() if len(arrays) == 1}
    group_spaces = {str(group.get("name")): _space_of(group) for group in static.get("vgs") or ()}
    pools = {(pool.get("vgname"), pool.get("name")): _space_of(pool) for pool in static.get("thin_pools") or ()}
    for volume in (*(static.get("lvs") or ()), *(static.get("thin_pools") or ())):
        name = str(volume.get("vgname"))
        pool = pools.get((volume.get("vgname"), volume.get("pool")))
        parents[_space_of(volume)] = pool or group_spaces.get(name, name)
    return parents


def _standing_by(static: Plain) -> dict[str, tuple[str, ...]]:
    disk_of = {
        str(partition.get("name")): str(disk.get("disk_id"))
        for disk in static.get("parteds") or ()
        for partition in disk.get("partitions") or ()
    }
    able = (*(static.get("mds") or ()), *(static.get("zpools") or ()))
    spares = {_space_of(array): [str(name) for name in array.get("spares") or ()] for array in able}
    return {array: tuple(disk_of[name] for name in names if name in disk_of) for array, names in spares.items() if names}


def _zpool_parts(static: Plain, owners: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pool in static.get("zpools") or ():
        logs = [str(name) for log in pool.get("logs") or () for name in log.get("devices") or ()]
        devices = {"log": logs, "cache": [str(name) for name in pool.get("caches") or ()]}
        found |= {owners.get(name, name): f"{part} of {pool.get('name')}" for part, names in devices.items() for name in names}
    return found


def _arrays_below(static: Plain, owners: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the arrays that are PVs of each group, but for those that are caches."""
    caches = {str(cache.get("device")) for cache in static.get("caches") or ()}
    arrays = {_space_of(array) for array in static.get("mds") or ()}
    opened = {f"/dev/mapper/{container.get('name')}": str(container.get("device")) for container in static.get("luks") or ()}
    below = {}
    for group in static.get("vgs") or ():
        devices = [opened.get(str(name), str(name)) for name in group.get("pvnames") or () if name not in caches]
        below[_space_of(group)] = tuple(dict.fromkeys(owners[name] for name in devices if owners.get(name) in arrays))
    return below
