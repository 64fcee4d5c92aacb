# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Identities that a layout is to give to what it makes, and that another disk of the host has already. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._facts.present import Present
from .._facts.tree import Device
from .._schema.model import Layout
from .._storage import derived
from .disks import FoundDisk


def identity_notes(layout: Layout, present: Present, found: Sequence[FoundDisk]) -> Iterator[str]:
    """Give a warning for each identity of the layout that is on other disks and not yet on its own; for what is on both there are twins."""
    holders: dict[str, dict[str, Device]] = {}
    for disk in present.disks:
        for device in (present.tree.devices[disk.device.name], *present.tree.descendants(disk.device.name)):
            for identity in _identities(device):
                holders.setdefault(identity.lower(), {}).setdefault(disk.device.name, device)
    for identity, disks, what in _wanted(layout, found):
        having = holders.get(identity.lower(), {})
        others = ", ".join(str(device.dev) for name, device in having.items() if name not in disks)
        if others and not having.keys() & disks:
            yield (
                f"{what} is to get the identity {identity}, which {others} has already: whatever is found by it may be found there. "
                "Take that disk away, or give it other identities"
            )


def _identities(device: Device) -> Iterator[str]:
    if device.table is not None and device.table.uuid:
        yield device.table.uuid
    if device.partition is not None and device.partition.uuid:
        yield device.partition.uuid
    yield from (signature.uuid for signature in device.signatures if signature.uuid)


def _wanted(layout: Layout, found: Sequence[FoundDisk]) -> Iterator[tuple[str, frozenset[str], str]]:
    """Give identities with the disks that are to have them, and what is to get them."""
    on = {part.device: disk.device.name for disk in found for part in disk.desired.partitions}
    for disk in found:
        yield disk.desired.table, frozenset({disk.device.name}), f"the table of {disk.words}"
        yield from ((part.uuid, frozenset({disk.device.name}), part.device) for part in disk.desired.partitions)

    def disks_of(device: str) -> frozenset[str]:
        return frozenset(on[part.device] for part in layout.partitions_below(device) if part.device in on)

    for array in layout.arrays:
        yield layout.identity(array.device), disks_of(array.device), array.device
    for container in layout.containers:
        yield derived.container_uuid(layout.identity(container.below)), disks_of(container.below), container.device
    for filesystem in layout.filesystems:
        below = next((each.below for each in layout.containers if each.device == filesystem.device), filesystem.device)
        yield layout.filesystem_uuid(below, filesystem), disks_of(below), filesystem.device
