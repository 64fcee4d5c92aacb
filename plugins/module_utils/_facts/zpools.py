# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ZFS pools that a host has imported, as facts. They are asked for only where a disk has a device of one."""

from __future__ import annotations

import typing as t
from collections.abc import Sequence

from .._storage import zfs
from .host import Host
from .tree import Tree

Facts = dict[str, t.Any]


def describe_zpools(host: Host, tree: Tree) -> t.Optional[list[Facts]]:
    """Return the pools with their vdevs and datasets; None where no disk has a device of one, or ZFS does not answer."""
    found = (device.filesystem for device in tree.devices.values())
    if not any(filesystem is not None and filesystem.type == zfs.MEMBER for filesystem in found):
        return None
    said = _said(host, zfs.LIST_POOLS)
    return None if said is None else [_describe(host, *row) for row in zfs.read_rows(said, 3)]


def _describe(host: Host, name: str, guid: str, health: str) -> Facts:
    status = next(filter(None, (_said(host, (*command, name)) for command in zfs.STATUS_COMMANDS)), "")
    own = zfs.read_properties(_said(host, zfs.get_own_properties(name)) or "")
    rows = zfs.read_rows(_said(host, zfs.list_datasets(name)) or "", 3)
    return {
        "name": name,
        "guid": guid,
        "health": health,
        "vdevs": [
            {"name": vdev.name, "part": str(vdev.part or "data"), "devices": list(vdev.devices)} for vdev in zfs.read_status(status, name)
        ],
        "datasets": [
            {"name": dataset, "mounted": mounted == "yes", "mountpoint": place, "properties": own.get(dataset, {})}
            for dataset, mounted, place in rows
        ],
    }


def _said(host: Host, command: Sequence[str]) -> t.Optional[str]:
    outcome = host.run(command)
    return outcome.stdout if outcome is not None and outcome.code == 0 else None
