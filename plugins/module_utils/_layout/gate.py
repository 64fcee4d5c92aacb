# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one gate for every step of a plan: it refuses what reaches anything foreign on a disk that `wipe` does not name. Pure.

For each kind of step stands here which bytes of which devices it reaches: all of a device, the sectors of a partition table, the room of a
new partition, single places. What was found there passes where its disks may be wiped, or where it is our own unfinished work; a step that
only changes or opens something has to do that to what the layout has. A plan that is refused here has no steps.
"""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .._facts.present import Present
from .._facts.tree import PARTITION_TABLES, Device
from .._steps import kinds
from .._steps.kinds import Step
from .._storage.units import in_mib
from .disks import FoundDisk
from .partitions import table_regions


@dataclass(frozen=True)
class Given:
    """What steps may reach without a permission.

    `own` are names of devices whose content is our own unfinished work, or nobody's; `kept` of those that the layout has, which may be
    opened and changed in place.
    """

    own: Collection[str]
    kept: Collection[str]


@dataclass(frozen=True)
class Reach:
    """Bytes of a device that a step reaches; `end` None: up to the end of the device, with all that is built on it.

    `keeps`: the step opens or changes what is there, and destroys nothing.
    """

    device: str
    start: int = 0
    end: t.Optional[int] = None
    keeps: bool = False

    def meets(self, start: int, size: int) -> bool:
        """Return whether a room of the device is reached."""
        return self.end is None or (start < self.end and self.start < start + size)


@dataclass(frozen=True)
class Finding:
    """Something on a device: in words, and at which offset where that is known."""

    device: Device
    words: str
    offset: t.Optional[int] = None


def check_steps(present: Present, disks: Sequence[FoundDisk], given: Given, steps: Iterable[Step]) -> Iterator[str]:
    """Give a refusal for everything foreign that a step reaches; no refusal means that all steps may be done."""
    wiped = frozenset(disk.device.name for disk in disks if disk.may_wipe)
    for step in steps:
        for reach in REACHES[type(step)](present, step):
            for finding in _findings(present, reach):
                if not _is_given(present, reach, finding, given, wiped):
                    yield _refusal(present, disks, step, finding)


def _is_given(present: Present, reach: Reach, finding: Finding, given: Given, wiped: frozenset[str]) -> bool:
    if reach.keeps and finding.device.name in given.kept:
        return True
    return finding.device.name in given.own or wiped.issuperset(present.disks_below(finding.device.name))


def _refusal(present: Present, disks: Sequence[FoundDisk], step: Step, finding: Finding) -> str:
    place = f" at {in_mib(finding.offset)}" if finding.offset is not None else ""
    known = {disk.device.name: disk for disk in disks}
    below = [known[name] for name in present.disks_below(finding.device.name) if name in known]
    node = finding.device.dev or finding.device.title or finding.device.name
    says = "; ".join(disk.permission() for disk in below) or "it is on no disk of the schema"
    return f"{node} has {finding.words}{place}, which would be lost to this: {step.says}; {says}"


def _findings(present: Present, reach: Reach) -> Iterator[Finding]:
    """Give what was found in the bytes that are reached."""
    device, tree = present.tree.devices[reach.device], present.tree
    if reach.end is None:
        for each in (device, *tree.descendants(device.name)):
            yield from _content(each)
        return
    for signature in device.signatures:
        if signature.type not in PARTITION_TABLES:
            yield from (Finding(device, signature.type, offset) for offset in signature.offsets if reach.start <= offset < reach.end)
    for child in tree.children(device.name):
        if child.partition is None and child.running:
            yield Finding(child, f"{child.kind} running on the disk as a whole")
        elif child.partition is not None and reach.meets(child.partition.start, child.partition.size):
            for each in (child, *tree.descendants(child.name)):
                yield from _content(each)


def _content(device: Device) -> Iterator[Finding]:
    """Give what is on a device itself."""
    for signature in device.signatures:
        label = f" {signature.label!r}" if signature.label else ""
        yield Finding(device, f"{signature.type}{label}", signature.offsets[0] if signature.offsets else None)
    if device.remains is not None:
        yield Finding(device, device.remains.words)
    if device.mountpoints:
        yield Finding(device, f"something mounted on {', '.join(device.mountpoints)}")
    if device.uses:
        yield Finding(device, f"something that is {' and '.join(device.uses)}")
    if device.openers:
        yield Finding(device, f"something that is open in {', '.join(device.openers)}")
    if device.claimed:
        yield Finding(device, "something that the kernel holds")
    if device.running and device.partition is None and device.parents and not device.is_part:
        yield Finding(device, f"{device.kind} running on it")


# ---- which bytes a step reaches


def _named(present: Present, nodes: Iterable[str], keeps: bool = False) -> Iterator[Reach]:
    """Give all of the devices of these nodes; what has no device yet is made by an earlier step, which was let through for its room."""
    for node in nodes:
        device = present.tree.by_node(node)
        if device is not None:
            yield Reach(device.name, keeps=keeps)


def _on_disk(present: Present, disk: str, regions: Iterable[tuple[int, int]]) -> Iterator[Reach]:
    device = present.tree.by_node(disk)
    if device is not None:
        yield from (Reach(device.name, start, end) for start, end in regions)


def _table_of(present: Present, disk: str, highest: int) -> Iterator[Reach]:
    device = present.tree.by_node(disk)
    if device is not None:
        yield from (Reach(device.name, start, end) for start, end in table_regions(device, highest))


def _table(present: Present, step: kinds.WritePartitionTable) -> Iterator[Reach]:
    if step.fresh:
        yield from _named(present, [step.disk])
        return
    yield from _table_of(present, step.disk, max((entry.number for entry in step.entries), default=0))
    yield from _on_disk(present, step.disk, ((entry.start, entry.start + entry.size) for entry in step.entries if entry.clear))
    yield from _named(present, (step.node(number) for number in step.removed))


def _finished(present: Present, step: kinds.FinishPartitions) -> Iterator[Reach]:
    # A disk that gets a new table in the same plan is let through for that, as a whole.
    yield from _table_of(present, step.disk, max(step.numbers))


def _gaps(present: Present, step: kinds.ClearGaps) -> Iterator[Reach]:
    yield from _on_disk(present, step.disk, ((offset, offset + 1) for offset in step.offsets))


def _device(present: Present, step: t.Any) -> Iterator[Reach]:
    yield from _named(present, [step.device])


def _filesystem(present: Present, step: kinds.MakeFilesystem) -> Iterator[Reach]:
    yield from _named(present, (step.device, *step.more))


def _devices(present: Present, step: t.Any) -> Iterator[Reach]:
    yield from _named(present, step.devices)


def _members(present: Present, step: t.Any) -> Iterator[Reach]:
    yield from _named(present, (*step.members, *getattr(step, "spares", ())))


def _kept_device(present: Present, step: t.Any) -> Iterator[Reach]:
    yield from _named(present, [step.device], keeps=True)


def _kept_members(present: Present, step: t.Any) -> Iterator[Reach]:
    yield from _named(present, step.members, keeps=True)


def _volumes(present: Present, group: str, names: Collection[str], keeps: bool) -> Iterator[Reach]:
    """Give the devices of volumes, with a pool those of all that is in it."""
    known = [volume for volume in present.logical if volume.group == group and volume.name in names]
    inside = [other for volume in known for other in present.volumes_in(volume)]
    yield from (Reach(device.name, keeps=keeps) for volume in (*inside, *known) for device in present.devices_of(volume))


def _volume(present: Present, step: t.Any) -> Iterator[Reach]:
    yield from _volumes(present, step.group, [step.name], keeps=False)


def _kept_volume(present: Present, step: t.Any) -> Iterator[Reach]:
    yield from _volumes(present, step.group, [step.name], keeps=True)


def _kept_volumes(present: Present, step: t.Any) -> Iterator[Reach]:
    yield from _volumes(present, step.group, step.names, keeps=True)


def _cache(present: Present, step: kinds.AttachCache) -> Iterator[Reach]:
    yield from _volumes(present, step.group, [step.cache], keeps=False)


def _mapping(present: Present, step: t.Any) -> Iterator[Reach]:
    yield from _named(present, [f"/dev/mapper/{step.name}"])


def _kept_mapping(present: Present, step: t.Any) -> Iterator[Reach]:
    yield from _named(present, [f"/dev/mapper/{step.name}"], keeps=True)


def _group(present: Present, step: kinds.DeactivateGroup) -> Iterator[Reach]:
    """Give the devices of all volumes of a group: what is closed is destroyed later."""
    volumes = [volume for volume in present.logical if volume.group == step.group and step.uuid in (None, volume.group_uuid)]
    yield from (Reach(device.name) for volume in volumes for device in present.devices_of(volume) if device.running)


def _nothing(_present: Present, _step: Step) -> Iterator[Reach]:
    """Give nothing: the step makes something in room that nobody has, or changes what the layout names alone."""
    return iter(())


REACHES: Mapping[type[Step], Callable[[Present, t.Any], Iterator[Reach]]] = {
    kinds.WritePartitionTable: _table,
    kinds.ClearGaps: _gaps,
    kinds.ClearSignatures: _devices,
    kinds.FinishPartitions: _finished,
    kinds.CreateArray: _members,
    # What joins was cleared before; a spare that comes back is a member.
    kinds.AddMembers: _kept_members,
    kinds.ReAddMembers: _kept_members,
    kinds.WidenArray: _members,
    kinds.GrowArray: _kept_device,
    kinds.StartArray: _kept_members,
    kinds.StopArray: _kept_device,
    kinds.FormatLuks: _device,
    kinds.OpenLuks: _kept_device,
    kinds.CloseMapping: _mapping,
    kinds.ResizeLuks: _kept_mapping,
    kinds.CreatePhysicalVolume: _device,
    kinds.ResizePhysicalVolume: _kept_device,
    kinds.CreateVolumeGroup: _devices,
    kinds.ExtendVolumeGroup: _devices,
    # Groups are named as the layout has them, and judged by their physical volumes.
    kinds.RewriteGroup: _nothing,
    kinds.ActivateGroup: _nothing,
    kinds.DeactivateGroup: _group,
    kinds.CreateLogicalVolume: _nothing,
    kinds.CreateThinPool: _nothing,
    kinds.CreateThinVolume: _nothing,
    kinds.CreateCacheVolume: _nothing,
    kinds.ExtendPoolMetadata: _kept_volume,
    kinds.ExtendLogicalVolume: _kept_volume,
    kinds.ShrinkLogicalVolume: _kept_volume,
    kinds.ChangeCacheMode: _kept_volume,
    kinds.AttachCache: _cache,
    kinds.RemoveLogicalVolume: _volume,
    kinds.MarkCleared: _kept_volumes,
    kinds.FinishLogicalVolumes: _kept_volumes,
    kinds.MakeFilesystem: _filesystem,
    kinds.MakeSwap: _device,
    kinds.GrowFilesystem: _kept_device,
    kinds.RestoreSuperblock: _kept_device,
    kinds.CreateSubvolumes: _kept_device,
    kinds.LimitSubvolumes: _kept_device,
    kinds.CreateZpool: _devices,
    kinds.ExtendZpool: _devices,
    # Pools are imported, and judged by their devices.
    kinds.ShrinkZpool: _nothing,
    kinds.CreateDataset: _nothing,
    kinds.SetProperties: _nothing,
    kinds.ExportZpool: _nothing,
}
"""What every kind of step reaches."""
