# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`lsblk -OJ`: block devices as a tree, what is built on a disk below it. Sizes are bytes with `-b`, else rounded text."""

from __future__ import annotations

import math
import re
import typing as t
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ....module_utils._data.containers import ListOf, Row, Table, Values
from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import Anything, Kind, Text, Whole
from ....module_utils._storage.drives import drives_of
from ....module_utils._storage.units import MIB
from .machine import IN_USE, Facts, Recorded, RecordedDisk, whole

_SECTOR = 512
_MULTIPATH = "mpath"
_OF_CONTROLLERS = ("isw_raid_member", "ddf_raid_member")
"""What udev finds on the members of arrays that firmware makes, IMSM (VROC) and DDF: the system is to use the arrays."""
_MAPPED = ("mpath", "dmraid")
"""Types of disks that device mapper makes."""
_CARRIERS = {
    "lvm": "LVM2_member",
    "crypt": "crypto_LUKS",
    "mpath": "mpath_member",
    "dmraid": "raid_member",
    "md": "raid_member",
    "raid": "raid_member",
    "disk": "bcache",
}
"""What the file system type ends with of a device on which another one of that type, or that begins so, can lie."""
_UNITS = {letter: 1024**power for power, letter in enumerate("BKMGTPE")}
_SIZE = re.compile(r"([0-9]+(?:[.,][0-9]+)?)([BKMGTPE])")
_ROUNDING = 0.05
"""lsblk rounds to a tenth of the unit, up or down."""


class _Bytes(Kind):
    """Bytes, or lsblk's text, of which the least that it can stand for is taken."""

    wanted, blank = "a number of bytes, or lsblk's text such as '447.1G'", 0

    def read(self, value: t.Any) -> int:
        """Return the bytes."""
        found = _SIZE.fullmatch(value) if isinstance(value, str) else None
        if found is not None:
            least = float(found[1].replace(",", ".")) - (_ROUNDING if found[2] != "B" else 0)
            return max(0, math.floor(least * _UNITS[found[2]]))
        number = whole(value)
        return number if number is not None else self.refuse(value)


class _Flag(Kind):
    """True or false, as lsblk writes it: before 2.37 as text."""

    wanted, blank = "true, false, 0 or 1", False

    def read(self, value: t.Any) -> bool:
        """Return the truth."""
        return value in (True, "1") if value in (True, False, "0", "1") else self.refuse(value)


_DEVICE = Table(
    "a block device",
    [
        Row("name", Text(filled=True), required=True),
        Row("size", _Bytes(), required=True),
        *(Row(key, Text()) for key in ("path", "type", "wwn", "serial", "model", "vendor", "tran", "pttype", "fstype", "rev", "id-link")),
        *(Row(key, _Flag()) for key in ("rota", "rm", "ro")),
        *(Row(key, Whole(0, digits=True)) for key in ("log-sec", "phy-sec", "opt-io")),
        Row("children", Anything()),
        Row("mountpoints", Anything()),
        Row("mountpoint", Anything()),
    ],
    others=True,
)
_OUTPUT = Table("what lsblk prints", [Row("blockdevices", ListOf(_DEVICE, "block devices"), required=True)], others=True)


def read(data: t.Any) -> Recorded:
    """Return the machine; raises InputError with all that is wrong."""
    mistakes = Mistakes()
    data = _by_columns(data)
    values = _OUTPUT.read_nested(data, "", mistakes)
    mistakes.check()
    names = {device["name"] for device in values["blockdevices"]}
    roots = [device for device in values["blockdevices"] if _is_disk(device, names)]
    stacked = _stacked(roots)
    below = {id(root) for _device, roots_below in stacked for root in roots_below}
    disks = [device for device in roots if id(device) not in below]
    rounded = any(isinstance(device.get("size"), str) and not device["size"].isdecimal() for device in data["blockdevices"])
    warnings = ("lsblk was run without -b, so sizes are the smallest that its rounded figures allow",) if rounded else ()
    found = [*map(_disk, disks), *(_stacked_disk(device, under) for device, under in stacked)]
    has_mounts = any(not {"mountpoint", "mountpoints"}.isdisjoint(device) for device in _below(data["blockdevices"]))
    return Recorded(
        source="lsblk",
        disks=tuple(found if has_mounts else map(_without_false_use, found)),
        unknown=("what is on disks that neither udev nor root examined", *(() if has_mounts else (IN_USE,))),
        warnings=warnings,
    )


def _by_columns(data: t.Any) -> t.Any:
    """Return the output with its devices under the names of the columns, whichever way lsblk wrote them, and with nodes without folders.

    Releases differ in `log-sec` and `log_sec`; with -p a name is a path; with PATH alone there is no NAME.
    """
    if not isinstance(data, Mapping) or not isinstance(data.get("blockdevices"), list):
        return data
    top = {**data, "blockdevices": list(data["blockdevices"])}
    pending = [top["blockdevices"]]
    while pending:
        devices = pending.pop()
        for at, device in enumerate(devices):
            if isinstance(device, Mapping):
                devices[at] = own = {str(key).lower().replace("_", "-"): value for key, value in device.items()}
                named = next((own[key] for key in ("name", "path", "kname") if isinstance(own.get(key), str) and own[key]), None)
                own |= {} if named is None else {"name": named.removeprefix("/dev/")}
                if isinstance(own.get("children"), list):
                    own["children"] = list(own["children"])
                    pending.append(own["children"])
    return {**top, "blockdevices": _as_tree(top["blockdevices"])}


def _as_tree(devices: list[t.Any]) -> list[t.Any]:
    """Return a list without a tree (`--list`, `--pairs`) as the tree, in which a disk is in use if what lies on it is.

    What lies on what is told by PKNAME, by the names of partitions, and else by what a device holds: then on all that hold it.
    """
    rows: list[dict[str, t.Any]] = [device for device in devices if isinstance(device, dict) and device.get("name")]
    if any(row.get("children") for row in rows):
        return devices
    # What lies on several is printed below each.
    names = {str(row[key]).removeprefix("/dev/"): row for row in reversed(rows) for key in ("kname", "name") if row.get(key)}
    first = {id(row): names[str(row["name"])] for row in rows}
    on: dict[int, dict[int, t.Any]] = {}
    below: set[int] = set()
    for row in rows:
        own = first[id(row)]
        parents = [first[id(parent)] for parent in _parents(row, rows, names) if first[id(parent)] is not own]
        for parent in parents:
            on.setdefault(id(parent), {})[id(own)] = own
        below |= {id(own)} if parents else set()
    for row in rows:
        if id(row) in on:
            row["children"] = list(on[id(row)].values())
    return [device for device in devices if id(first.get(id(device), device)) not in below]


def _parents(row: Mapping[str, t.Any], rows: Sequence[Mapping[str, t.Any]], names: Mapping[str, t.Any]) -> list[t.Any]:
    """Return what a device of a list lies on."""
    named = names.get(str(row.get("pkname") or "").removeprefix("/dev/"))
    kind, part = str(row.get("type") or "part"), re.fullmatch(r"(.+?)p?[0-9]+", str(row["name"]))
    if named is None and kind != "disk" and part is not None:
        named = names.get(part[1])
    if named is not None and named is not row:
        return [named]
    holds = next((ends for begins, ends in _CARRIERS.items() if kind.startswith(begins)), None)
    if holds is None or (kind == "disk" and not str(row["name"]).startswith("bcache")):
        return []
    return [other for other in rows if other is not row and str(other.get("fstype") or "").endswith(holds)]


def _without_false_use(disk: RecordedDisk) -> RecordedDisk:
    """Return a disk of which nobody asked lsblk where it is mounted: that nothing is active on it does not say that it is idle."""
    return disk if disk.more["in_use"] else replace(disk, more={key: value for key, value in disk.more.items() if key != "in_use"})


def _is_disk(device: Values, names: Collection[str]) -> bool:
    """Return whether a device at the top is a disk; without a type it is one unless its name is that of a partition of another."""
    part = re.fullmatch(r"(.+?)p?[0-9]+", device["name"])
    return device["type"] == "disk" or (device["type"] is None and (part is None or part[1] not in names))


def _stacked(roots: Sequence[Values]) -> list[tuple[Values, tuple[Values, ...]]]:
    """Return the disks that are built on others, each with those: multipath maps on their paths, arrays of a controller on its members."""
    under: dict[str, list[Values]] = {}
    devices: dict[str, Mapping[str, t.Any]] = {}
    for root in roots:
        for child in root["children"] if isinstance(root["children"], list) else ():
            is_map = isinstance(child, Mapping) and child.get("type") == _MULTIPATH
            of_controller = isinstance(child, Mapping) and root["fstype"] in _OF_CONTROLLERS
            if isinstance(child, Mapping) and (is_map or of_controller):
                devices[str(child["name"])] = child
                under.setdefault(str(child["name"]), []).append(root)
    read = [(_DEVICE.read_nested(device, name, Mistakes()), tuple(under[name])) for name, device in devices.items()]
    # The container of such arrays has no size.
    return [(device, below) for device, below in read if device["size"]]


def _stacked_disk(values: Values, under: Sequence[Values]) -> RecordedDisk:
    """Return a multipath map with the identity of its paths, or an array with the drives of its members."""
    first = _disk(under[0])
    is_map = values["type"] == _MULTIPATH
    own = _disk(values)
    node = f"/dev/mapper/{values['name'].removeprefix('mapper/')}" if values["type"] in _MAPPED else own.dev
    if not is_map:
        drives = tuple(names[0] if names else f"/dev/{member['name']}" for member, names in zip(under, drives_of([*map(_told, under)])))
        return replace(own, dev=node, rotational=any(member["rota"] for member in under), drives=drives, stacked=True)
    more = {**own.more, "multipath": True, "path_devices": [f"/dev/{path['name']}" for path in under]}
    return replace(
        first,
        dev=node,
        size=own.size,
        stacked=True,
        more=more,
        logical_block=own.logical_block or first.logical_block,
        physical_block=own.physical_block or first.physical_block,
    )


def _told(values: Values) -> Facts:
    return {"dev": values["name"], "transport": values["tran"], **{key: values[key] for key in ("serial", "model", "wwn")}}


def _disk(values: Values) -> RecordedDisk:
    below = list(_below(values["children"]))
    mounts = [mount for device in [values, *below] for mount in _mounts(device)]
    partitions = [found for child in below if child.get("type") == "part" and (found := _partition(child)) is not None]
    content = sorted({str(device["fstype"]) for device in [values, *below] if device.get("fstype")})
    # What is active on a disk uses it, be it mounted or not: a volume may be the disk of a guest.
    active = any(device.get("type") not in (None, "part") for device in below)
    more: Facts = {"partitions": partitions, "in_use": bool(mounts) or active, "empty": not (values["pttype"] or content or below)}
    more |= {"mountpoints": _mounts(values)} if _mounts(values) else {}
    more |= {"table": values["pttype"]} if values["pttype"] else {}
    more |= {"read_only": values["ro"]} if values["ro"] is not None else {}
    more |= {"firmware_revision": values["rev"].strip()} if values["rev"] else {}
    more |= {"optimal_io": values["opt-io"]} if values["opt-io"] else {}
    link = values["id-link"]
    return RecordedDisk(
        dev=values["path"] or f"/dev/{values['name']}",
        size=values["size"],
        wwn=values["wwn"],
        links=(f"/dev/disk/by-id/{link}",) if link else (),
        serial=values["serial"],
        model=values["model"],
        vendor=(values["vendor"] or "").strip() or None,
        transport=values["tran"],
        rotational=values["rota"],
        logical_block=values["log-sec"],
        physical_block=values["phy-sec"],
        removable=values["rm"],
        more=more,
    )


def _below(children: t.Any) -> Iterator[Mapping[str, t.Any]]:
    stack = list(children) if isinstance(children, list) else []
    while stack:
        device = stack.pop(0)
        if isinstance(device, Mapping):
            yield device
            more = device.get("children")
            stack += more if isinstance(more, list) else []


def _mounts(device: Mapping[str, t.Any]) -> list[str]:
    found = device.get("mountpoints") or [device.get("mountpoint")]
    return [mount for mount in (found if isinstance(found, (list, tuple)) else [found]) if isinstance(mount, str) and mount]


def _partition(device: Mapping[str, t.Any]) -> Facts | None:
    """Return a partition as disk_facts has it; None where lsblk is too old to print where it begins."""
    start, size = (whole(device.get(key)) for key in ("start", "size"))
    number = re.search(r"(?<![0-9])([0-9]{1,9})\Z", str(device.get("name", "")))
    if start is None or size is None:
        return None
    facts: Facts = {
        "number": int(number[1]) if number else None,
        "start": start * _SECTOR // MIB,
        "start_bytes": start * _SECTOR,
        "size": size // MIB,
        "size_bytes": size,
        "name": device.get("partlabel") or "",
        "uuid": device.get("partuuid"),
        "type": device.get("parttype"),
        "fs_type": device.get("fstype"),
        "label": device.get("label"),
        "mountpoints": _mounts(device),
    }
    return {key: value for key, value in facts.items() if value is not None}
