# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ironic's inspection data: the inventory that its agent collects, alone or with the node's data that follow from it."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ....module_utils._data.containers import ListOf, Row, Table, Values, read_all
from ....module_utils._data.kinds import Text, Truth, Whole
from ....module_utils._storage.identity import BY_PATH
from .machine import CONTENTS, IN_USE, Recorded, RecordedDisk

_DISK = Table(
    "a disk of Ironic's",
    [
        Row("name", Text(filled=True), "Its device node.", required=True),
        Row("size", Whole(0), "Bytes.", required=True),
        Row("rotational", Truth()),
        *(Row(key, Text()) for key in ("model", "vendor", "serial", "wwn", "wwn_with_extension", "by_path")),
        Row("logical_sectors", Whole(0)),
        Row("physical_sectors", Whole(0)),
    ],
    others=True,
)
_MAP = "/dev/dm-"
_NO_PATH = f"{BY_PATH}fc---"
"""How udev begins the path of a disk on USB whose transport it mistakes: it has no port, so that all such disks have the same."""
_INVENTORY = Table(
    "an inventory of Ironic's",
    [
        Row("disks", ListOf(_DISK, "disks"), required=True),
        Row("memory", Table("memory", [Row("physical_mb", Whole(0)), Row("total", Whole(0))], others=True)),
        Row("boot", Table("boot", [Row("current_boot_mode", Text())], others=True)),
    ],
    others=True,
)


def read(data: t.Any) -> Recorded:
    """Return the machine; raises InputError with all that is wrong."""
    nested = isinstance(data, Mapping) and "inventory" in data
    values = read_all(_INVENTORY, data["inventory"] if nested else data, "inventory")
    memory = values["memory"] or {}
    boot = (values["boot"] or {}).get("current_boot_mode")
    return Recorded(
        source="Ironic's inspection",
        disks=tuple(_disk(disk) for disk in values["disks"]),
        unknown=(IN_USE, CONTENTS),
        ram=memory.get("physical_mb") or (memory.get("total") or 0) // 1024**2 or None,
        firmware=boot if boot in ("uefi", "bios") else None,
    )


def _disk(values: Values) -> RecordedDisk:
    path = values["by_path"]
    # The agent lists a map in the place of its paths, by the kernel's name for it.
    is_map = values["name"].startswith(_MAP) and bool(values["wwn"] or values["serial"])
    return RecordedDisk(
        dev=values["name"],
        size=values["size"],
        wwn=values["wwn_with_extension"] or values["wwn"],
        links=(path,) if path and path.startswith(BY_PATH) and not path.startswith(_NO_PATH) else (),
        serial=values["serial"],
        model=values["model"],
        vendor=values["vendor"],
        rotational=values["rotational"],
        logical_block=values["logical_sectors"],
        physical_block=values["physical_sectors"],
        stacked=is_map,
        more={"multipath": True} if is_map else {},
    )
