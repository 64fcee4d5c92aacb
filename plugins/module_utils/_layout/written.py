# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disks steps write to, and the refusals where one of them may not be written to: it is protected, or read-only. Pure.

A step that changes an array, a volume group or a ZFS pool writes to all of its devices, also on disks that are not in the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from .._facts.present import Present
from .._facts.select import Disk
from .._facts.tree import Device
from .._schema.model import Layout
from .._steps.step import Judged
from .._storage.btrfs import BTRFS
from .._storage.gpt import partition_node
from .disks import FoundDisk
from .protected import Protection, protections_of

_MOST_STEPS = 5


def write_refusals(
    layout: Layout, present: Present, found: Sequence[FoundDisk], steps: Iterable[Judged], protections: Sequence[Protection]
) -> Iterator[str]:
    """Give a refusal for each disk that a step writes to although it may not be written to."""
    steps_on = _steps_by_disk(layout, present, found, steps)
    words = {disk.device.name: disk.words for disk in found}
    for disk in present.disks:
        says = steps_on.get(disk.device.name)
        if not says:
            continue
        name = words.get(disk.device.name) or (disk.id if disk.id == disk.device.dev else f"{disk.id} ({disk.device.dev})")
        by = protections_of(disk, present.tree, protections)
        listed = ", ".join(dict.fromkeys(says[:_MOST_STEPS])) + (f", and {len(says) - _MOST_STEPS} more" if len(says) > _MOST_STEPS else "")
        if by:
            yield (
                f"{name} is protected by {' and '.join(each.words for each in by)}, so that nothing on it is changed, whatever wipe says; "
                f"this run would {listed}"
            )
        device = present.tree.devices[disk.device.name]
        if device.uses:
            yield f"{name} is {' and '.join(device.uses)}, so that nothing on it is changed; this run would {listed}"
        if device.row.get("ro"):
            yield f"{name} is read-only; this run would {listed}"


def _steps_by_disk(layout: Layout, present: Present, found: Sequence[FoundDisk], steps: Iterable[Judged]) -> dict[str, list[str]]:
    places = _Places(layout, present, found)
    by_disk: dict[str, list[str]] = {}
    for step in steps:
        for disk in places.written_by(step):
            by_disk.setdefault(disk, []).append(step.says)
    return by_disk


class _Places:
    """On which disks nodes, groups and pools are: those that are there, and those that the layout is to have."""

    def __init__(self, layout: Layout, present: Present, found: Sequence[FoundDisk]) -> None:
        self.layout, self.present = layout, present
        self.paths: Mapping[str, Disk] = {device.name: disk for disk in present.disks for device in (disk.device, *disk.paths)}
        self.partitions = {part.device: disk.device.name for disk in found for part in disk.desired.partitions}
        self.nodes = {partition_node(disk.node, part.number): {disk.device.name} for disk in found for part in disk.desired.partitions}

    def written_by(self, step: Judged) -> frozenset[str]:
        """Return the names of the disks that a step writes to."""
        writes = step.writes()
        disks = {disk for node in writes.nodes for disk in self._on_node(node)}
        disks |= self._on_group(writes.group) if writes.group is not None else set()
        return frozenset(disks | self._on_pool(writes.zpool) if writes.zpool is not None else disks)

    def _on_node(self, node: str) -> set[str]:
        """Return the disks of what has a node, and of what is to get it."""
        device = self.present.tree.by_node(node)
        there = {disk for each in (self._of_one_filesystem(device) if device is not None else ()) for disk in self._disks_below(each.name)}
        parts = self.layout.partitions_below(node) if self.layout.thing(node) is not None else ()
        return there | {self.partitions[part.device] for part in parts if part.device in self.partitions} | self.nodes.get(node, set())

    def _of_one_filesystem(self, device: Device) -> Iterator[Device]:
        """Give a device, and the others of a Btrfs on several: what changes it is written to all of them."""
        yield device
        found = device.filesystem
        if found is not None and found.type == BTRFS:
            yield from (other for other in self.present.tree.devices.values() if other.filesystem == found)

    def _on_group(self, name: str) -> set[str]:
        physical = [volume.device for volume in self.present.physical if volume.group == name and volume.device is not None]
        there = {disk for device in physical for disk in self._disks_below(device)}
        desired = next((group for group in self.layout.groups if group.name == name), None)
        return there.union(*(self._on_node(volume.device) for volume in desired.physical)) if desired is not None else there

    def _on_pool(self, name: str) -> set[str]:
        pool = next((pool for pool in self.present.zpools if pool.name == name), None)
        there = {disk for vdev in (pool.vdevs if pool else ()) for device in vdev.devices for disk in self._disks_below(device)}
        if pool is not None:
            of_pool = (device for device in self.present.tree.devices.values() if self.present.zpool_on(device) is pool)
            there |= {disk for device in of_pool for disk in self._disks_below(device.name)}
        desired = next((each for each in self.layout.zpools if each.name == name), None)
        return there.union(*(self._on_node(device) for device in desired.devices)) if desired is not None else there

    def _disks_below(self, name: str) -> Iterator[str]:
        for disk in self.present.disks_below(name):
            yield self.paths[disk].device.name if disk in self.paths else disk
