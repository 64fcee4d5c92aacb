# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The volume groups of a plan: how much of each its volumes leave free, and which disks it lies on."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...module_utils._data.containers import Row, Table, Values
from ...module_utils._data.errors import Mistakes
from ...module_utils._schema.table import STATIC
from ...module_utils._storage import lvm, overhead, thin
from ...module_utils._storage.raid import RaidLevel, data_legs, least_legs


@dataclass(frozen=True)
class PlannedGroup:
    """A volume group: `free` MiB that no volume of the plan has, and the ids of the disks below it."""

    name: str
    free: int
    disks: frozenset[str]


@dataclass(frozen=True)
class _Device:
    """What a PV can lie on: MiB that it holds, how many legs of data it has (None if it is no array), and its disks."""

    size: int
    disks: frozenset[str]
    data_legs: int | None = None
    encrypted: bool = False

    def extents(self, extent: int) -> int:
        """Return how many extents of so many MiB LVM makes of it."""
        if self.data_legs is None:
            return lvm.pv_extents(self.size, overhead.pv_head(self.encrypted), extent)
        return lvm.pv_extents(self.size, overhead.array_pv_head(self.data_legs, self.encrypted), extent)


_PLAN = Table("a plan", [Row("schema", STATIC)], others=True)


def planned_groups(plan: t.Any, mistakes: Mistakes) -> list[PlannedGroup]:
    """Return the volume groups of a plan of `disk_plan`, in its order; what cannot be read is added to `mistakes`."""
    static = _PLAN.read_nested(plan, "plan", mistakes)["schema"]
    if static is None or mistakes.told("plan.schema"):
        mistakes.add("plan.schema", "is missing; give a plan as bareon.allocator.disk_plan returns it, of one host")
        return []
    devices = _partitions(static)
    devices.update(_arrays(static, devices, mistakes))
    devices.update(_containers(static, devices, mistakes))
    groups = []
    for number, entry in enumerate(static["vgs"]):
        place = f"plan.schema.vgs[{number}]"
        below = _known(entry["pvnames"], devices, f"{place}.pvnames", mistakes)
        extent = entry["extent_size"]
        extents = sum(device.extents(extent) for device in below)
        sizes = [volume["size"] for volume in static["lvs"] if volume["vgname"] == entry["name"] and not volume["pool"]]
        for pool in (pool for pool in static["thin_pools"] if pool["vgname"] == entry["name"]):
            sizes += [pool["size"], *[pool["metadata_size"] or thin.metadata_of(pool["size"], pool["chunk_size"])] * 2]
        cached = [cache["device"] for cache in static["caches"] if cache["vgname"] == entry["name"]]
        taken = sum(devices[name].extents(extent) for name in cached if name in devices)
        used = taken + sum(-(-size // extent) for size in sizes)
        if below and used > extents:
            says = f"{entry['name']} has room for {extents * extent} MiB, but its volumes take {used * extent}"
            mistakes.add(place, says)
        disks = frozenset().union(*(device.disks for device in below))
        groups.append(PlannedGroup(entry["name"], max(0, extents - used) * extent, disks))
    return groups


def _partitions(static: Values) -> dict[str, _Device]:
    return {
        partition["name"]: _Device(max(0, partition["end"] - partition["begin"]), frozenset([disk["disk_id"]]))
        for disk in static["parteds"]
        for partition in disk["partitions"]
    }


def _arrays(static: Values, devices: Mapping[str, _Device], mistakes: Mistakes) -> dict[str, _Device]:
    arrays = {}
    for number, entry in enumerate(static["mds"]):
        place = f"plan.schema.mds[{number}].devices"
        legs, level = _known(entry["devices"], devices, place, mistakes), entry["level"]
        if level is not None and len(legs) < least_legs(level):
            mistakes.add(place, f"must be {least_legs(level)} or more for {level}, not {len(legs)}")
        elif level is not None:
            arrays[entry["name"]] = _array(legs, level, entry["metadata"])
    return arrays


def _array(legs: list[_Device], level: RaidLevel, metadata: str) -> _Device:
    data = data_legs(level, len(legs))
    leg = min(device.size for device in legs)
    size = max(0, data * (leg - overhead.md_reserve(leg, metadata, data)))
    return _Device(size, frozenset().union(*(device.disks for device in legs)), data)


def _containers(static: Values, devices: Mapping[str, _Device], mistakes: Mistakes) -> dict[str, _Device]:
    containers = {}
    for number, entry in enumerate(static["luks"]):
        inside = devices.get(entry["device"])
        if inside is None:
            mistakes.add(f"plan.schema.luks[{number}].device", f"{entry['device']!r} is not a device of the plan")
        else:
            containers[f"/dev/mapper/{entry['name']}"] = _Device(inside.size, inside.disks, inside.data_legs, encrypted=True)
    return containers


def _known(names: Sequence[str], devices: Mapping[str, _Device], place: str, mistakes: Mistakes) -> list[_Device]:
    for number, name in enumerate(names):
        if name and name not in devices:
            mistakes.add(f"{place}[{number}]", f"{name!r} is not a device of the plan")
    return [devices[name] for name in names if name in devices]
