# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine of MAAS, or the list of its block devices, as its API returns it."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ....module_utils._data.containers import ListOf, Row, Table, Values, read_all
from ....module_utils._data.kinds import Anything, Text, Whole
from ....module_utils._storage.identity import BY_ID, BY_PATH
from .machine import CONTENTS, IN_USE, Facts, Recorded, RecordedDisk, whole

_DISK = Table(
    "a block device of MAAS",
    [
        Row("name", Text(filled=True), required=True),
        Row("size", Whole(0, digits=True), "Bytes.", required=True),
        Row("block_size", Whole(0, digits=True)),
        Row("numa_node", Anything()),
        *(Row(key, Text()) for key in ("type", "id_path", "model", "serial", "firmware_version")),
        Row("tags", ListOf(Text(), "tags"), default=()),
    ],
    others=True,
)
_MACHINE = Table(
    "a machine of MAAS",
    [
        Row("physicalblockdevice_set", ListOf(_DISK, "block devices")),
        Row("blockdevice_set", ListOf(_DISK, "block devices")),
        Row("memory", Whole(0, digits=True), "MiB."),
        Row("bios_boot_method", Text()),
    ],
    others=True,
)
_TRANSPORTS = ("nvme", "sata", "sas", "usb")


def read(data: t.Any) -> Recorded:
    """Return the machine; raises InputError with all that is wrong."""
    values = read_all(_MACHINE, {"blockdevice_set": data} if isinstance(data, list) else data, "machine")
    disks = values["physicalblockdevice_set"] or [disk for disk in values["blockdevice_set"] or () if disk["type"] in (None, "physical")]
    method = values["bios_boot_method"]
    return Recorded(
        source="MAAS",
        disks=tuple(_disk(disk) for disk in disks),
        unknown=(IN_USE, CONTENTS, "physical blocks"),
        ram=values["memory"] or None,
        firmware={"uefi": "uefi", "pxe": "bios"}.get(method or ""),
    )


def _disk(values: Values) -> RecordedDisk:
    tags = {tag.lower() for tag in values["tags"]}
    link = values["id_path"]
    rotational = True if "rotary" in tags else False if "ssd" in tags else None
    return RecordedDisk(
        dev=f"/dev/{values['name']}",
        size=values["size"],
        links=(link,) if link and link.startswith((BY_ID, BY_PATH)) else (),
        serial=values["serial"],
        model=values["model"],
        transport=next((word for word in _TRANSPORTS if word in tags), None),
        rotational=rotational,
        logical_block=values["block_size"],
        more=({"firmware_revision": values["firmware_version"]} if values["firmware_version"] else {}) | _numa_node(values["numa_node"]),
    )


def _numa_node(value: t.Any) -> Facts:
    """Return the node as a fact: a number or, in newer releases, a mapping with one."""
    number = whole(value.get("index")) if isinstance(value, Mapping) else whole(value)
    return {} if number is None else {"numa_node": number}
