# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The volume groups of a plan: how much of each its volumes leave free, and which disks it lies on."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from dataclasses import dataclass

from ...module_utils.storage import lvm, overhead
from ...module_utils.storage.raid import RaidLevel, data_legs, least_legs
from ..common.errors import Mistakes


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

    def extents(self) -> int:
        """Return how many extents LVM makes of it."""
        if self.data_legs is None:
            return lvm.pv_extents(self.size, overhead.pv_head(self.encrypted))
        return lvm.pv_extents(self.size, overhead.array_pv_head(self.data_legs, self.encrypted))


def planned_groups(plan: t.Any, mistakes: Mistakes) -> list[PlannedGroup]:
    """Return the volume groups of a plan of `disk_plan`, in its order; what cannot be read is added to `mistakes`."""
    static = _mapping(plan, "plan", mistakes).get("schema")
    if not isinstance(static, Mapping):
        mistakes.add("plan.schema", "is missing; give a plan as bareon.allocator.disk_plan returns it, of one host")
        return []
    devices = _partitions(static, mistakes)
    devices.update(_arrays(static, devices, mistakes))
    devices.update(_containers(static, devices, mistakes))
    taken = _taken(static, mistakes)
    groups = []
    for place, entry in _entries(static, "vgs", mistakes):
        name = _text(entry, "name", place, mistakes)
        below = _members(entry, "pvnames", devices, place, mistakes)
        extents = sum(device.extents() for device in below)
        used = taken.get(name, 0)
        if below and used > extents:
            mistakes.add(place, f"{name} has room for {extents * lvm.EXTENT} MiB, but its volumes take {used * lvm.EXTENT}")
        disks = frozenset().union(*(device.disks for device in below))
        groups.append(PlannedGroup(name, max(0, extents - used) * lvm.EXTENT, disks))
    return groups


def _partitions(static: Mapping[str, t.Any], mistakes: Mistakes) -> dict[str, _Device]:
    devices = {}
    for place, disk in _entries(static, "parteds", mistakes):
        disk_id = _text(disk, "disk_id", place, mistakes)
        for below, partition in _entries(disk, "partitions", mistakes, f"{place}."):
            begin, end = (_mib(partition, key, below, mistakes) for key in ("begin", "end"))
            devices[_text(partition, "name", below, mistakes)] = _Device(max(0, end - begin), frozenset([disk_id]))
    return devices


def _arrays(static: Mapping[str, t.Any], devices: Mapping[str, _Device], mistakes: Mistakes) -> dict[str, _Device]:
    arrays = {}
    for place, entry in _entries(static, "mds", mistakes):
        legs = _members(entry, "devices", devices, place, mistakes)
        level, metadata = (_text(entry, key, place, mistakes) for key in ("level", "metadata"))
        if level not in set(RaidLevel):
            mistakes.add(f"{place}.level", f"must be one of {', '.join(RaidLevel)}, not {level!r}")
        elif len(legs) < least_legs(RaidLevel(level)):
            mistakes.add(f"{place}.devices", f"must be {least_legs(RaidLevel(level))} or more for {level}, not {len(legs)}")
        else:
            arrays[_text(entry, "name", place, mistakes)] = _array(legs, RaidLevel(level), metadata)
    return arrays


def _array(legs: list[_Device], level: RaidLevel, metadata: str) -> _Device:
    data = data_legs(level, len(legs))
    leg = min(device.size for device in legs)
    size = max(0, data * (leg - overhead.md_reserve(leg, metadata, data)))
    return _Device(size, frozenset().union(*(device.disks for device in legs)), data)


def _containers(static: Mapping[str, t.Any], devices: Mapping[str, _Device], mistakes: Mistakes) -> dict[str, _Device]:
    containers = {}
    for place, entry in _entries(static, "luks", mistakes):
        name, lower = (_text(entry, key, place, mistakes) for key in ("name", "device"))
        if lower and lower not in devices:
            mistakes.add(f"{place}.device", f"{lower!r} is no device of the plan")
        elif lower:
            inside = devices[lower]
            containers[f"/dev/mapper/{name}"] = _Device(inside.size, inside.disks, inside.data_legs, encrypted=True)
    return containers


def _taken(static: Mapping[str, t.Any], mistakes: Mistakes) -> dict[str, int]:
    """Return how many extents the volumes of each group take."""
    taken: dict[str, int] = {}
    for place, volume in _entries(static, "lvs", mistakes):
        group, size = _text(volume, "vgname", place, mistakes), _mib(volume, "size", place, mistakes)
        taken[group] = taken.get(group, 0) - (-size // lvm.EXTENT)
    return taken


def _members(entry: Mapping[str, t.Any], key: str, devices: Mapping[str, _Device], place: str, mistakes: Mistakes) -> list[_Device]:
    names = entry.get(key)
    if not isinstance(names, list) or not names:
        mistakes.add(f"{place}.{key}", f"must be a list of devices, not {names!r}")
        return []
    for number, name in enumerate(names):
        if not isinstance(name, str) or name not in devices:
            mistakes.add(f"{place}.{key}[{number}]", f"{name!r} is no device of the plan")
    return [devices[name] for name in names if isinstance(name, str) and name in devices]


def _entries(data: Mapping[str, t.Any], key: str, mistakes: Mistakes, above: str = "plan.schema.") -> list[tuple[str, Mapping[str, t.Any]]]:
    """Return the mappings of a list with their places; a list that is not there is empty."""
    found = data.get(key) or []
    if not isinstance(found, list):
        mistakes.add(f"{above}{key}", f"must be a list, not {found!r}")
        return []
    places = [f"{above}{key}[{number}]" for number in range(len(found))]
    return [(place, _mapping(entry, place, mistakes)) for place, entry in zip(places, found, strict=True)]


def _mapping(data: t.Any, place: str, mistakes: Mistakes) -> Mapping[str, t.Any]:
    if isinstance(data, Mapping):
        return data
    mistakes.add(place, f"must be a mapping, not {data!r}")
    return {}


def _text(entry: Mapping[str, t.Any], key: str, place: str, mistakes: Mistakes) -> str:
    value = entry.get(key)
    if isinstance(value, str) and value:
        return value
    mistakes.add(f"{place}.{key}", f"must be a text, not {value!r}" if key in entry else "is missing")
    return ""


def _mib(entry: Mapping[str, t.Any], key: str, place: str, mistakes: Mistakes) -> int:
    value = entry.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    mistakes.add(f"{place}.{key}", f"must be whole MiB from 0, not {value!r}" if key in entry else "is missing")
    return 0
