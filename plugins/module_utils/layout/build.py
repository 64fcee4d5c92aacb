# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that build: from cleared partitions over arrays, LUKS and LVM to filesystems, and what grows. Pure."""

from __future__ import annotations

import functools
import typing as t
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..facts.tree import Device
from ..schema import identities as derived
from ..schema.model import Layout, WantedArray, WantedContainer, WantedPhysicalVolume, WantedVolume
from ..steps.kinds import (
    ClearSignatures,
    CreateArray,
    CreateLogicalVolume,
    CreatePhysicalVolume,
    CreateVolumeGroup,
    ExtendLogicalVolume,
    ExtendVolumeGroup,
    FinishLogicalVolumes,
    FinishPartitions,
    FormatLuks,
    GrowFilesystem,
    MakeFilesystem,
    MakeSwap,
    OpenLuks,
    RemoveLogicalVolume,
    ResizeLuks,
    ResizePhysicalVolume,
    RewriteGroup,
    Step,
)
from ..storage.filesystems import FILESYSTEMS, SWAP
from ..storage.units import MIB
from .capacity import EXTENT, array_head, size_of
from .contents import Base, Verdict, look, look_at_volume, must_grow, top_of, unused_below
from .partitions import Spot, Status
from .present import Present
from .volume_groups import GroupPlan, VolumePlan, VolumeVerdict


@dataclass(frozen=True)
class Site:
    """What the steps are planned for, and the nodes that wanted devices have, or will have."""

    layout: Layout
    present: Present
    bases: tuple[Base, ...]
    groups: tuple[GroupPlan, ...]

    def node(self, device: str) -> str:
        """Return the node of a wanted device."""
        return self._nodes.get(device, device)

    @functools.cached_property
    def _nodes(self) -> Mapping[str, str]:
        nodes = {spot.wanted.device: spot.node for base in self.bases for spot in base.spots}
        for base in self.bases:
            if base.verdict is not Verdict.BUILD:
                found = look(self.layout, self.present, base).device
                nodes[top_of(self.layout, base.device)] = str(found.dev) if found is not None else top_of(self.layout, base.device)
        return nodes

    def lies_on_array(self, device: str) -> bool:
        """Return whether a wanted device is an array, or a LUKS container on one."""
        thing = self.layout.thing(device)
        return isinstance(thing, WantedArray) or (isinstance(thing, WantedContainer) and self.lies_on_array(thing.below))

    def is_unfinished(self, device: str) -> bool:
        """Return whether a wanted device is on partitions, or on what is built of them, that are not marked as finished."""
        bases = (base for base in self.bases if top_of(self.layout, base.device) == device)
        return any(spot.status is not Status.KEPT for base in bases for spot in base.spots)

    def carries_group(self, base: Base) -> bool:
        """Return whether a base is for a physical volume."""
        return self.layout.group_of(top_of(self.layout, base.device)) is not None


def building_steps(site: Site) -> Iterator[Step]:
    """Give all steps after those on the tables. What is alike comes together, so that udev is waited for once."""
    built = [base for base in site.bases if base.verdict is Verdict.BUILD]
    yield from _cleared(built)
    for base in built:
        yield from _array(site, base)
    for base in built:
        yield from _container(site, base.device)
    for base in site.bases:
        yield from _grown_base(site, base)
    for group in site.groups:
        yield from _group(site, group)
    for base in built:
        if not site.carries_group(base):
            yield from _filesystem(site, base.device)
    # Before there are volumes: what a user has in them must not be on a partition that counts as unfinished.
    yield from _finish(site.bases)
    for group in site.groups:
        yield from _volumes(site, group)
    for base in site.bases:
        yield from _grown_filesystem(site, base.device, _kept_device(site, base), any(spot.grows for spot in base.spots))


def removals(groups: tuple[GroupPlan, ...]) -> Iterator[Step]:
    """Give the steps that remove logical volumes."""
    for group in groups:
        replaced = (volume.wanted.name for volume in group.volumes if volume.verdict is VolumeVerdict.REPLACE)
        for name in (*(volume.name for volume in group.removed), *replaced):
            yield RemoveLogicalVolume(group.wanted.name, name)


def _cleared(bases: Sequence[Base]) -> Iterator[Step]:
    nodes: dict[int, list[str]] = {}
    for base in bases:
        for spot in base.spots:
            nodes.setdefault(_head(base, spot), []).append(spot.node)
    yield from (ClearSignatures(tuple(found), head) for head, found in nodes.items())


def _head(base: Base, spot: Spot) -> int:
    return MIB if base.array is None else array_head(spot.wanted.size, base.array.metadata)


def _array(site: Site, base: Base) -> Iterator[Step]:
    array = base.array
    if array is None:
        return
    members, spares = (tuple(site.node(device) for device in devices) for devices in (array.members, array.spares))
    yield CreateArray(array.device, array.title, array.level, members, spares, array.metadata, site.layout.identity(array.device))
    # What was on an array of before can lie in the room of this one, farther inside than clearing its members reaches.
    yield ClearSignatures((array.device,))


def _container(site: Site, device: str) -> Iterator[Step]:
    container = site.layout.container_on(device)
    if container is not None:
        uuid = derived.container_uuid(site.layout.identity(device))
        yield FormatLuks(site.node(device), uuid, site.lies_on_array(device), container.name)
        yield OpenLuks(site.node(device), container.name)


def _kept_device(site: Site, base: Base) -> t.Optional[Device]:
    return look(site.layout, site.present, base).device if base.verdict is Verdict.KEEP else None


def _grown_base(site: Site, base: Base) -> Iterator[Step]:
    """Let LUKS and the physical volume on a kept base follow what is below."""
    device = _kept_device(site, base)
    if device is None:
        return
    grown = any(spot.grows for spot in base.spots)
    if grown or unused_below(site.present, device) >= EXTENT:
        container = site.layout.container_on(base.device)
        if container is not None:
            yield ResizeLuks(_mapping_name(device))
            grown = True
    volume = site.present.physical_on(device.name)
    if site.carries_group(base) and volume is not None and (grown or volume.unused >= volume.extent_size > 0):
        yield ResizePhysicalVolume(str(device.dev))


def _mapping_name(device: Device) -> str:
    return str(device.dev).rsplit("/", 1)[-1]


def _group(site: Site, group: GroupPlan) -> Iterator[Step]:
    new = [volume for volume in group.wanted.physical if volume.device in group.new]
    yield from (_physical_volume(site, volume) for volume in new)
    nodes = tuple(site.node(volume.device) for volume in new)
    if nodes and group.present is None:
        yield CreateVolumeGroup(group.wanted.name, nodes)
    elif nodes:
        yield ExtendVolumeGroup(group.wanted.name, nodes)
    elif group.present is not None and any(site.is_unfinished(volume.device) for volume in group.wanted.physical):
        # Whoever cut the run off may have done so while LVM wrote to one physical volume after the other.
        yield RewriteGroup(group.wanted.name)


def _physical_volume(site: Site, volume: WantedPhysicalVolume) -> Step:
    aligned = site.lies_on_array(volume.device)
    return CreatePhysicalVolume(site.node(volume.device), volume.metadata_size, volume.metadata_copies, aligned)


def _finish(bases: Sequence[Base]) -> Iterator[Step]:
    """Give one step for each disk that has partitions which are not marked as finished."""
    spots: dict[str, list[Spot]] = {}
    for spot in (spot for base in bases for spot in base.spots if spot.status is not Status.KEPT):
        spots.setdefault(spot.disk.node, []).append(spot)
    for disk, found in spots.items():
        wanted = sorted((spot.wanted for spot in found), key=lambda partition: partition.number)
        numbers, uuids = tuple(partition.number for partition in wanted), tuple(partition.uuid for partition in wanted)
        yield FinishPartitions(disk, found[0].disk.device.logical_block, numbers, uuids)


def _filesystem(site: Site, device: str) -> Iterator[Step]:
    """Give the step that makes the filesystem wanted on a device, or in the LUKS container on it."""
    top = top_of(site.layout, device)
    wanted = site.layout.filesystem_on(top)
    if wanted is None:
        return
    uuid = wanted.uuid or derived.filesystem_uuid(wanted.type, site.layout.identity(device))
    if wanted.type == SWAP:
        yield MakeSwap(site.node(top), uuid, wanted.label, wanted.options)
    else:
        yield MakeFilesystem(site.node(top), wanted.type, uuid, wanted.label, wanted.options)


def _volumes(site: Site, group: GroupPlan) -> Iterator[Step]:
    extent = group.present.extent_size if group.present is not None else EXTENT
    for volume in group.volumes:
        if volume.verdict is VolumeVerdict.KEEP:
            yield from _kept_volume(site, volume, size_of(volume.wanted, extent))
    made = [volume for volume in group.volumes if volume.verdict is not VolumeVerdict.KEEP]
    for wanted in (volume.wanted for volume in made if volume.verdict is not VolumeVerdict.REFILL):
        yield CreateLogicalVolume(wanted.group, wanted.name, size_of(wanted, extent), wanted.device)
    yield from _filled(site, group.wanted.name, [volume.wanted for volume in made])


def _filled(site: Site, group: str, volumes: Sequence[WantedVolume]) -> Iterator[Step]:
    """Give the steps that make all that is on unfinished volumes, and take their mark off."""
    if not volumes:
        return
    yield ClearSignatures(tuple(wanted.device for wanted in volumes))
    for wanted in volumes:
        yield from _container(site, wanted.device)
    for wanted in volumes:
        yield from _filesystem(site, wanted.device)
    yield FinishLogicalVolumes(group, tuple(wanted.name for wanted in volumes))


def _kept_volume(site: Site, volume: VolumePlan, size: int) -> Iterator[Step]:
    wanted, before = volume.wanted, volume.present
    if before is None or volume.device is None:
        return
    grows = before.size < size
    if grows:
        yield ExtendLogicalVolume(wanted.group, wanted.name, size, before.size)
    top = look_at_volume(site.layout, site.present, wanted.device, volume.device).device
    if top is not None and top is not volume.device and (grows or unused_below(site.present, top) >= EXTENT):
        yield ResizeLuks(_mapping_name(top))
        grows = True
    yield from _grown_filesystem(site, wanted.device, top, grows)


def _grown_filesystem(site: Site, device: str, there: t.Optional[Device], grows: bool) -> Iterator[Step]:
    """Give the step that grows a kept filesystem where it has to."""
    wanted = site.layout.filesystem_on(top_of(site.layout, device))
    if wanted is None or there is None or FILESYSTEMS[wanted.type].growth is None:
        return
    if must_grow(site.present, wanted, there, grows):
        yield GrowFilesystem(str(there.dev), wanted.type, there.mountpoints[0] if there.mountpoints else None)
