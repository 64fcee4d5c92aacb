# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A layout whose disks have the most durable names that are known, and whose partitions lie in the order of their places."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ....module_utils._schema.model import DesiredDisk, DesiredVdev, DesiredZpool, Layout
from ....module_utils._storage import gpt
from ....module_utils._storage.identity import BY_ID, BY_PATH, best_id
from ....module_utils._storage.lvm import MAPPER

DURABLE = (BY_ID, BY_PATH, MAPPER)


def with_durable_names(layout: Layout, hardware: t.Any) -> Layout:
    """Return the layout; `hardware` (may be None) has durable names of disks where the schema has none."""
    disks = tuple(_disk(disk, hardware) for disk in layout.disks)
    nodes = {
        before.device: after.device
        for disk, renamed in zip(layout.disks, disks)
        for before in disk.partitions
        for after in renamed.partitions
        if before.number == after.number
    }

    def named(devices: Iterable[str]) -> tuple[str, ...]:
        return tuple(nodes.get(device, device) for device in devices)

    return replace(
        layout,
        disks=disks,
        arrays=tuple(replace(array, members=named(array.members), spares=named(array.spares)) for array in layout.arrays),
        containers=tuple(replace(one, below=nodes.get(one.below, one.below)) for one in layout.containers),
        groups=tuple(
            replace(group, physical=tuple(replace(one, device=nodes.get(one.device, one.device)) for one in group.physical))
            for group in layout.groups
        ),
        filesystems=tuple(replace(one, device=nodes.get(one.device, one.device), more=named(one.more)) for one in layout.filesystems),
        zpools=tuple(_zpool(zpool, nodes) for zpool in layout.zpools),
    )


def unstable_disks(layout: Layout) -> tuple[str, ...]:
    """Return the devices of disks whose names may change with the next start."""
    return tuple(disk.device for disk in layout.disks if not disk.device.startswith(DURABLE))


def world_wide_name(device: str) -> str:
    """Return the WWN, or the NVMe identifier, in a durable name: `0x5000c500a1b2c3d4`, `eui.0025388b71b04b3e`; empty where it has none."""
    link = device[len(BY_ID) :] if device.startswith(BY_ID) else ""
    named = (link[len(prefix) :] for prefix in ("wwn-", "nvme-") if link.startswith((prefix + "0x", prefix + "eui.", prefix + "nvme.")))
    return next(named, "")


def _disk(disk: DesiredDisk, hardware: t.Any) -> DesiredDisk:
    device = durable_name(disk.device, disk.id, hardware)
    partitions = sorted(disk.partitions, key=lambda part: part.start)
    if device != disk.device:
        partitions = [replace(part, device=gpt.partition_node(device, part.number)) for part in partitions]
    return replace(disk, device=device, partitions=tuple(partitions))


def durable_name(device: str, disk_id: str, hardware: t.Any) -> str:
    """Return the most durable name of a disk: its own where it is one, else what the hardware's links say."""
    if device.startswith(DURABLE) or not isinstance(hardware, Mapping):
        return device
    for disk in hardware.get("disks") or ():
        if isinstance(disk, Mapping) and {device, disk_id} & {disk.get("id"), disk.get("dev"), *(disk.get("links") or ())}:
            return best_id((str(link) for link in disk.get("links") or ()), device)
    return device


def _zpool(zpool: DesiredZpool, nodes: Mapping[str, str]) -> DesiredZpool:
    def vdevs(those: Iterable[DesiredVdev]) -> tuple[DesiredVdev, ...]:
        return tuple(replace(vdev, devices=named(vdev.devices)) for vdev in those)

    def named(devices: Iterable[str]) -> tuple[str, ...]:
        return tuple(nodes.get(device, device) for device in devices)

    return replace(zpool, vdevs=vdevs(zpool.vdevs), logs=vdevs(zpool.logs), caches=named(zpool.caches), spares=named(zpool.spares))
