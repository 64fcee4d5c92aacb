# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Redfish: Drive resources, and Volumes, which a RAID controller shows to the system instead of the drives that they are made of."""

from __future__ import annotations

import re
import typing as t
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....module_utils._data.containers import ListOf, Row, Table, Values
from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import Anything, Number, Text, Whole, shown
from ....module_utils._storage.drives import serial_drive
from ....module_utils._storage.units import MIB
from .machine import CONTENTS, IN_USE, Recorded, RecordedDisk, whole

_IDENTIFIER = Table("an identifier", [Row("DurableName", Text()), Row("DurableNameFormat", Text())], others=True)
_STATUS = Table("a status", [Row("State", Text())], others=True)
_RESOURCE = [
    Row("@odata.id", Text()),
    Row("Id", Text(digits=True)),
    Row("Name", Text()),
    Row("CapacityBytes", Whole(0, digits=True)),
    Row("Capacity", Anything(), "Of volumes in newer releases: what the system sees of them is in Data."),
    Row("CapacityMiB", Whole(0, digits=True), "Of HPE's own resources, which have no bytes."),
    Row("VolumeUniqueIdentifier", Text(), "Of HPE's own logical drives: their NAA."),
    Row("BlockSizeBytes", Whole(0, digits=True)),
    Row("Identifiers", ListOf(_IDENTIFIER, "identifiers")),
    Row("Status", _STATUS),
    Row("Links", Anything()),
]
_DRIVE = Table(
    "a drive",
    [
        *_RESOURCE,
        *(Row(key, Text()) for key in ("MediaType", "Protocol", "InterfaceType", "Model", "Manufacturer", "SerialNumber", "Revision")),
    ],
    others=True,
)
_VOLUME = Table("a volume", [*_RESOURCE, Row("RAIDType", Text())], others=True)
_SYSTEM = Table(
    "a system",
    [
        Row("MemorySummary", Table("memory", [Row("TotalSystemMemoryGiB", Number(0))], others=True)),
        Row("Boot", Table("boot", [Row("BootSourceOverrideMode", Text())], others=True)),
    ],
    others=True,
)
_MACHINE = Table(
    "a machine of Redfish's",
    [Row("drives", ListOf(_DRIVE, "drives"), default=()), Row("volumes", ListOf(_VOLUME, "volumes"), default=()), Row("system", _SYSTEM)],
)
_WORLD_WIDE = re.compile(r"[0-9a-f]{16}(?:[0-9a-f]{16})?")
"""What a NAA, an EUI-64 and a NGUID consist of; some controllers give a number of their own in the place of one."""


def read(data: t.Any) -> Recorded:
    """Return the machine of drives alone, or of `{drives, volumes, system}`; raises InputError with all that is wrong."""
    mistakes = Mistakes()
    given = data if isinstance(data, Mapping) else {"drives": data}
    if not isinstance(data, (Mapping, list)):
        mistakes.add("", f"is {shown(data)}; must be a list of drives, or a mapping of drives, volumes and system")
    values = _MACHINE.read_nested(given, "", mistakes)
    mistakes.check()
    values = {**values, **{key: [_with_bytes(resource) for resource in values[key]] for key in ("drives", "volumes")}}
    volumes = [volume for volume in values["volumes"] if volume["CapacityBytes"]]
    volumes = [{**volume, "drives": _drives_of(volume, values["drives"])} for volume in volumes]
    behind = {link for volume in volumes for link in volume["drives"]}
    drives = [drive for drive in values["drives"] if drive["CapacityBytes"] and (drive["Status"] or {}).get("State") != "Absent"]
    seen = [drive for drive in drives if drive["@odata.id"] not in behind or not drive["@odata.id"]]
    sizeless = [
        _node(resource)
        for resource in (*values["drives"], *values["volumes"])
        if not resource["CapacityBytes"] and (resource["Status"] or {}).get("State") != "Absent"
    ]
    warnings = [f"Redfish gives no size for {name}, which is left out" for name in sizeless]
    if len(seen) < len(drives):
        warnings.append(f"{len(drives) - len(seen)} drives are hidden behind volumes of a controller; the system only sees the volumes")
    if volumes and not behind:
        warnings.append("volumes do not name their drives, so these count as disks too; give drives without them")
    kinds = {drive["@odata.id"]: (drive["MediaType"], drive["Protocol"]) for drive in drives}
    names = {drive["@odata.id"]: _drive_name(drive) for drive in drives if drive["@odata.id"]}
    system = values["system"] or {}
    memory = (system.get("MemorySummary") or {}).get("TotalSystemMemoryGiB")
    mode = (system.get("Boot") or {}).get("BootSourceOverrideMode")
    return Recorded(
        source="Redfish",
        disks=_with_names_of_their_own(
            [(_drive(drive), drive) for drive in seen] + [(_volume(volume, kinds, names), volume) for volume in volumes]
        ),
        unknown=(IN_USE, CONTENTS, "device nodes"),
        ram=int(memory * 1024) if memory else None,
        firmware={"UEFI": "uefi", "Legacy": "bios"}.get(mode or ""),
        warnings=tuple(warnings),
    )


def _links(value: t.Any, *keys: str) -> set[str]:
    """Return the addresses of the resources that links name under some keys."""
    found = [value.get(key) for key in keys] if isinstance(value, Mapping) else []
    entries = [entry for resources in found if isinstance(resources, list) for entry in resources]
    return {str(entry["@odata.id"]) for entry in entries if isinstance(entry, Mapping) and "@odata.id" in entry}


def _drives_of(volume: Values, drives: Sequence[Values]) -> frozenset[str]:
    """Return the addresses of the drives behind a volume: those that it names, and those that name it."""
    named = _links(volume["Links"], "Drives", "DataDrives")
    naming = {
        str(drive["@odata.id"]) for drive in drives if drive["@odata.id"] and volume["@odata.id"] in _links(drive["Links"], "Volumes")
    }
    return frozenset(named | naming)


def _drive(values: Values) -> RecordedDisk:
    return RecordedDisk(
        dev=_node(values),
        size=values["CapacityBytes"],
        wwn=_wwn(values),
        serial=values["SerialNumber"],
        model=values["Model"],
        vendor=values["Manufacturer"],
        transport=values["Protocol"] or values["InterfaceType"],
        rotational={"HDD": True, "SMR": True, "SSD": False}.get(values["MediaType"] or ""),
        logical_block=values["BlockSizeBytes"],
        drives=(_drive_name(values),) if values["@odata.id"] else (),
        more={"firmware_revision": values["Revision"]} if values["Revision"] else {},
    )


def _drive_name(values: Values) -> str:
    """Return the name of a drive, by which others know it, too: its model and serial number, else the address of the resource."""
    values_of_drive = {"serial": values["SerialNumber"], "model": values["Model"]}
    return serial_drive(values_of_drive) or str(values["@odata.id"])


def _volume(values: Values, kinds: Mapping[str, tuple[str, str]], names: Mapping[str, str]) -> RecordedDisk:
    media = {kinds[link][0] for link in values["drives"] if link in kinds}
    return RecordedDisk(
        dev=_node(values),
        size=values["CapacityBytes"],
        wwn=_wwn(values),
        model=values["Name"],
        rotational=None if not media or None in media else media != {"SSD"},
        logical_block=values["BlockSizeBytes"],
        drives=tuple(sorted(names.get(link, link) for link in values["drives"])),
    )


def _with_names_of_their_own(disks: list[tuple[RecordedDisk, Values]]) -> tuple[RecordedDisk, ...]:
    """Return the disks, those of one name by their serial numbers or addresses: each controller counts its drives from 0."""
    count = Counter(disk.dev for disk, _values in disks)
    return tuple(
        disk if count[disk.dev] == 1 else replace(disk, dev=str(values.get("SerialNumber") or values["@odata.id"] or disk.dev).strip("/"))
        for disk, values in disks
    )


def _node(values: Values) -> str:
    """Return a stand-in for the device node, which Redfish does not know: the name of the resource."""
    return str(values["Id"] or values["Name"] or values["SerialNumber"] or "drive").replace(" ", "-")


def _wwn(values: Values) -> str | None:
    """Return the first identifier that udev makes a link of."""
    for identifier in values["Identifiers"] or ():
        name, kind = (identifier["DurableName"] or "").lower().replace(":", ""), identifier["DurableNameFormat"]
        digits = name.removeprefix("0x").removeprefix("naa.").removeprefix("eui.").replace("-", "").strip()
        if kind in ("NAA", "EUI", "NGUID"):
            if _WORLD_WIDE.fullmatch(digits):
                return f"{'0x' if kind == 'NAA' else 'eui.'}{digits}"
            continue
        if kind == "UUID" and values.get("Protocol") == "NVMe":
            return f"uuid.{name}"
    return values["VolumeUniqueIdentifier"]


def _with_bytes(resource: Values) -> Values:
    """Return a resource with its size in bytes, which HPE's own have in MiB, and some volumes as what is provisioned of them."""
    if resource["CapacityBytes"]:
        return resource
    data = resource["Capacity"].get("Data") if isinstance(resource["Capacity"], Mapping) else None
    provisioned = whole(data.get("ProvisionedBytes")) if isinstance(data, Mapping) else None
    return {**resource, "CapacityBytes": (resource["CapacityMiB"] or 0) * MIB or provisioned}
