# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Other room of a plan than that of volume groups: thin pools, ZFS pools, and the Btrfs and partitions that are offered.

Each says what it holds, and what of that the plan gives out: volumes of a thin pool by the sizes that they show, datasets by their quotas
and reservations, subvolumes by their limits.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...module_utils._data.errors import Mistakes, suggest
from ...module_utils._schema.model import DesiredDataset, DesiredFilesystem, DesiredVolume, DesiredZpool, Layout
from ...module_utils._schema.static import read_layout
from ...module_utils._storage import btrfs, overhead, zfs
from ...module_utils._storage.raid import RaidLevel
from ...module_utils._storage.units import MIB
from .planned_groups import planned_device

_HELD = ("quota", "reservation", "refreservation")


@dataclass(frozen=True)
class PlannedRoom:
    """Room for guests: `kind` is pool, zpool, btrfs or partition, `size` what it holds, `given` what the plan gives out, both in MiB.

    `group` is the volume group that a thin pool lies in, `disks` are the ids of the disks below. `space` is what several partitions have in
    common.
    """

    kind: str
    name: str
    size: int
    given: int
    disks: frozenset[str]
    group: str | None = None
    space: str = ""


def planned_rooms(plan: t.Any, offered: Collection[str], mistakes: Mistakes) -> list[PlannedRoom]:
    """Return the thin pools and ZFS pools of a plan, and its Btrfs and partitions whose space is among `offered`.

    Adds to `mistakes` spaces that are neither; what else is wrong with the plan is for planned_groups to say.
    """
    schema, wrong = plan.get("schema") if isinstance(plan, Mapping) else None, Mistakes()
    if not isinstance(schema, Mapping):
        return []
    layout = read_layout(schema, "plan.schema", wrong)
    if wrong:
        return []
    return [*_thin_pools(layout), *map(_zpool(layout), layout.zpools), *_offered(layout, offered, mistakes)]


def _thin_pools(layout: Layout) -> Iterator[PlannedRoom]:
    groups = {group.name: group for group in layout.groups}
    for pool in layout.pools:
        group = groups[pool.group]
        given = sum(volume.size for volume in layout.volumes_of(pool.group) if volume.pool == pool.name)
        disks = frozenset[str]().union(*(planned_device(device, layout).disks for device in group.devices))
        yield PlannedRoom("pool", pool.name, pool.size // MIB, -(-given // MIB), disks, pool.group)


def _zpool(layout: Layout) -> t.Callable[[DesiredZpool], PlannedRoom]:
    def planned(pool: DesiredZpool) -> PlannedRoom:
        sizes, disks = _devices(layout, pool.data_devices)
        kind = zfs.Vdev(pool.vdevs[0].type)
        shape = zfs.Shape(kind, len(sizes), 1) if kind is zfs.Vdev.STRIPE else zfs.Shape(kind, len(pool.vdevs), len(pool.vdevs[0].devices))
        return PlannedRoom("zpool", pool.name, zfs.room(shape, min(sizes), pool.ashift), -(-_given_out(pool.datasets) // MIB), disks)

    return planned


def _given_out(datasets: Iterable[DesiredDataset]) -> int:
    """Return how many bytes datasets may have or are sure of; what lies in one that has a limit is part of that."""
    limits: dict[str, int] = {}
    for dataset in sorted(datasets, key=lambda dataset: dataset.name):
        values = [zfs.plain_value(dict(dataset.properties).get(name, "none")) for name in _HELD]
        held = max((int(value) for value in values if value.isdigit()), default=0)
        if held and not any(dataset.name.startswith(f"{outer}/") for outer in limits):
            limits[dataset.name] = held
    return sum(limits.values())


def _offered(layout: Layout, offered: Collection[str], mistakes: Mistakes) -> Iterator[PlannedRoom]:
    filesystems = {each.space: each for each in layout.filesystems if each.type == btrfs.BTRFS}
    partitions = [part for part in layout.partitions() if layout.is_bare(part.device) or layout.filesystem_on(part.device)]
    spaces = {*filesystems, *(part.space for part in partitions)}
    for number, space in enumerate(offered):
        if space not in spaces:
            mistakes.add(f"offered[{number}]", f"{space} is no Btrfs, and no partition of its own, of the plan{suggest(space, spaces)}")
        elif space in filesystems:
            yield _btrfs(layout, filesystems[space])
        else:
            for part in partitions:
                if part.space == space:
                    disks = planned_device(part.device, layout).disks
                    yield PlannedRoom("partition", layout.title(part), part.mib, 0, disks, space=space)


def _btrfs(layout: Layout, filesystem: DesiredFilesystem) -> PlannedRoom:
    sizes, disks = _devices(layout, filesystem.devices)
    data = btrfs.data_legs(RaidLevel(filesystem.level), len(sizes)) if filesystem.level else 1
    given = sum(subvolume.limit or 0 for subvolume in filesystem.subvolumes)
    return PlannedRoom("btrfs", filesystem.space, data * min(sizes), -(-given // MIB), disks)


def _devices(layout: Layout, names: Iterable[str]) -> tuple[list[int], frozenset[str]]:
    """Return how many MiB devices hold, and the disks that they lie on."""
    sizes, disks = [], set[str]()
    for name in names:
        thing = layout.thing(name)
        if isinstance(thing, DesiredVolume):
            sizes.append(thing.size // MIB)
            below = {part.device for part in layout.partitions_below(name)}
            disks.update(disk.id for disk in layout.disks for part in disk.partitions if part.device in below)
        else:
            device = planned_device(name, layout)
            sizes.append(device.size - (overhead.LUKS_HEAD if device.encrypted else 0))
            disks |= device.disks
    return sizes, frozenset(disks)
