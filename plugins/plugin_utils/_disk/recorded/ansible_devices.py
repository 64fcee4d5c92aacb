# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ansible's own facts: `ansible_devices`, and how much memory there is. Sectors are of 512 bytes there, whatever the disk's are."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace

from ....module_utils._data.containers import MappingOf, Row, Table, Values
from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import Anything, Text, Truth, Whole, is_whole
from ....module_utils._storage.identity import BY_ID, is_left_out
from ....module_utils._storage.units import MIB
from .machine import IN_USE, Facts, Recorded, RecordedDisk, whole

_SECTOR = 512
_DEVICE = Table(
    "a device of Ansible's",
    [
        Row("sectors", Whole(0, digits=True), "Of 512 bytes.", required=True),
        Row("sectorsize", Whole(0, digits=True)),
        *(Row(key, Text()) for key in ("model", "vendor", "serial", "wwn")),
        *(Row(key, Truth(words=True)) for key in ("rotational", "removable")),
        Row("links", Anything()),
        Row("partitions", Anything()),
        Row("holders", Anything()),
    ],
    others=True,
)
_DEVICES = MappingOf(_DEVICE, "devices")
_MAP_NAME, _MAP_UUID = "dm-name-", "dm-uuid-mpath-"
"""Links by which udev knows a multipath map."""


def read(data: t.Any) -> Recorded:
    """Return the machine of `ansible_facts`, or of `ansible_devices` alone; raises InputError with all that is wrong."""
    facts = data if isinstance(data, Mapping) else {}
    wrapped = next((key for key in ("devices", "ansible_devices") if key in facts), None)
    devices = facts[wrapped] if wrapped else data
    memory = next((facts[key] for key in ("memtotal_mb", "ansible_memtotal_mb") if wrapped and is_whole(facts.get(key))), None)
    if isinstance(devices, Mapping):
        devices = {
            name: {**device, **{key: device[key] in ("1", 1, True) for key in ("rotational", "removable") if key in device}}
            if isinstance(device, Mapping)
            else device
            for name, device in devices.items()
            if not is_left_out(str(name)) or _is_map(device)
        }
    mistakes = Mistakes()
    found = _DEVICES.read_nested(devices, "devices", mistakes)
    mistakes.check()
    mounts = next((facts[key] for key in ("mounts", "ansible_mounts") if wrapped and isinstance(facts.get(key), list)), None)
    mounted = {str(mount.get("device")) for mount in mounts or () if isinstance(mount, Mapping)}
    in_use = IN_USE if mounts is None else "whether disks without mounts are in use"
    return Recorded(
        source="Ansible",
        disks=tuple(_disks(found, mounted)),
        unknown=(in_use, "what is on disks without partitions", "physical blocks"),
        ram=memory,
    )


def _is_map(device: t.Any) -> bool:
    return isinstance(device, Mapping) and any(one.startswith(_MAP_UUID) for one in _links(device, "ids"))


def _disks(devices: Mapping[str, Values], mounted: Container[str]) -> Iterator[RecordedDisk]:
    """Give the disks: a multipath map with the identity of its paths in the place of these."""
    paths = {name: [path for path, values in devices.items() if name in _links(values, "masters")] for name in devices if is_left_out(name)}
    below = {path for own in paths.values() for path in own}
    for name, values in devices.items():
        if name in paths:
            called = next((one.removeprefix(_MAP_NAME) for one in _links(values, "ids") if one.startswith(_MAP_NAME)), None)
            first = devices[paths[name][0]] if paths[name] else values
            own = {**values, **{key: first[key] for key in ("serial", "wwn", "model", "vendor") if first[key]}}
            disk = _disk(name, own, mounted)
            more = {**disk.more, "multipath": True, "path_devices": [f"/dev/{path}" for path in paths[name]]}
            yield replace(disk, dev=f"/dev/mapper/{called}" if called else disk.dev, stacked=True, more=more)
        elif name not in below:
            yield _disk(name, values, mounted)


def _disk(name: str, values: Values, mounted: Container[str]) -> RecordedDisk:
    ids = _links(values, "ids")
    parts = values["partitions"] if isinstance(values["partitions"], Mapping) else {}
    partitions = [found for part, about in parts.items() if (found := _partition(str(part), about)) is not None]
    holders = bool(values["holders"]) or any(isinstance(about, Mapping) and about.get("holders") for about in parts.values())
    in_use = holders or any(f"/dev/{part}" in mounted for part in (name, *parts))
    return RecordedDisk(
        dev=f"/dev/{name}",
        size=values["sectors"] * _SECTOR,
        wwn=values["wwn"],
        links=tuple(f"{BY_ID}{one}" for one in ids),
        serial=values["serial"],
        model=values["model"],
        vendor=values["vendor"],
        rotational=values["rotational"],
        logical_block=values["sectorsize"],
        removable=values["removable"],
        more={"partitions": partitions, **({"in_use": True} if in_use else {})},
    )


def _links(about: Mapping[str, t.Any], kind: str) -> list[str]:
    """Return the links of a kind that a device or a partition has."""
    links = about.get("links")
    found = links.get(kind) if isinstance(links, Mapping) else None
    return [one for one in (found if isinstance(found, (list, tuple)) else ()) if isinstance(one, str)]


def _partition(name: str, about: t.Any) -> Facts | None:
    first, sectors = (whole(about.get(key)) if isinstance(about, Mapping) else None for key in ("start", "sectors"))
    if first is None or sectors is None:
        return None
    start, size = first * _SECTOR, sectors * _SECTOR
    number = re.search(r"(?<![0-9])([0-9]{1,9})\Z", name)
    label = next(iter(_links(about, "labels")), "")
    numbered = {"number": int(number[1])} if number else {}
    return {**numbered, "start": start // MIB, "start_bytes": start, "size": size // MIB, "size_bytes": size, "label": label}
