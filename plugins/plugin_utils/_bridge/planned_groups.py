# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The volume groups of a plan: how much of each its volumes leave free, and which disks it lies on."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...module_utils._data.errors import Mistakes
from ...module_utils._schema.model import DesiredArray, DesiredContainer, DesiredGroup, Layout
from ...module_utils._schema.static import read_layout
from ...module_utils._storage import lvm, overhead
from ...module_utils._storage.raid import RaidLevel, data_legs
from ...module_utils._storage.units import MIB


@dataclass(frozen=True)
class PlannedGroup:
    """A volume group: `free` MiB that no volume of the plan has, and the ids of the disks below it."""

    name: str
    free: int
    disks: frozenset[str]


@dataclass(frozen=True)
class Device:
    """What a PV can lie on: MiB that it holds, how many legs of data it has (None if it is no array), and its disks."""

    size: int
    disks: frozenset[str]
    data_legs: int | None = None
    encrypted: bool = False

    def extents(self, extent: int) -> int:
        """Return how many extents of `extent` MiB LVM makes of the PV."""
        if self.data_legs is None:
            return lvm.pv_extents(self.size, overhead.pv_head(self.encrypted), extent)
        return lvm.pv_extents(self.size, overhead.array_pv_head(self.data_legs, self.encrypted), extent)


def planned_groups(plan: t.Any, mistakes: Mistakes) -> list[PlannedGroup]:
    """Return the volume groups of a plan of `disk_plan`, in its order; what cannot be read is added to `mistakes`.

    With mistakes the groups have their names only, for what else names groups to be checked against.
    """
    schema = plan.get("schema") if isinstance(plan, Mapping) else None
    if not isinstance(schema, Mapping):
        mistakes.add("plan.schema", "is missing; give a plan as bareon.allocator.disk_plan returns it, of one host")
        return []
    wrong = Mistakes()
    layout = read_layout(schema, "plan.schema", wrong)
    mistakes.extend(wrong.found())
    if wrong:
        return [PlannedGroup(group.name, 0, frozenset()) for group in layout.groups]
    return [_planned(group, layout, mistakes) for group in layout.groups]


def _planned(group: DesiredGroup, layout: Layout, mistakes: Mistakes) -> PlannedGroup:
    extent = group.extent // MIB
    devices = {device: planned_device(device, layout) for device in group.devices}
    extents = sum(device.extents(extent) for device in devices.values())
    sizes = [volume.size for volume in layout.volumes_of(group.name) if not volume.pool]
    for pool in layout.pools_of(group.name):
        sizes += [pool.size, pool.metadata, pool.metadata]
    taken = sum(devices[cache.device].extents(extent) for cache in layout.caches_of(group.name))
    used = taken + sum(-(-size // group.extent) for size in sizes)
    if used > extents:
        mistakes.add(group.place, f"{group.name} has room for {extents * extent} MiB, but its volumes take {used * extent}")
    disks = frozenset[str]().union(*(device.disks for device in devices.values()))
    return PlannedGroup(group.name, max(0, extents - used) * extent, disks)


def planned_device(name: str, layout: Layout) -> Device:
    """Return what a partition, an array or a LUKS container of a layout is to what lies on it."""
    thing = layout.thing(name)
    if isinstance(thing, DesiredContainer):
        return replace(planned_device(thing.below, layout), encrypted=True)
    if isinstance(thing, DesiredArray):
        legs = [planned_device(member, layout) for member in thing.members]
        leg, data = min(device.size for device in legs), data_legs(RaidLevel(thing.level), len(legs))
        size = max(0, data * (leg - overhead.md_reserve(leg, thing.asked_metadata, data)))
        return Device(size, frozenset().union(*(device.disks for device in legs)), data)
    (part,) = layout.partitions_below(name)
    disk = next(disk.id for disk in layout.disks if part in disk.partitions)
    return Device(part.mib, frozenset([disk]))
