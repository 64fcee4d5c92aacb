# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that build: from cleared partitions over arrays, LUKS and LVM to filesystems, and what grows. Pure."""

from __future__ import annotations

import functools
import typing as t
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .._facts.present import Present
from .._facts.tree import Device
from .._schema.model import DesiredArray, DesiredContainer, DesiredFilesystem, DesiredPhysicalVolume, DesiredVolume, DesiredZpool, Layout
from .._steps.btrfs import CreateSubvolumes, LimitSubvolumes
from .._steps.cache import AttachCache, ChangeCacheMode, CreateCacheVolume
from .._steps.filesystem import GrowFilesystem, MakeFilesystem, MakeSwap
from .._steps.luks import FormatLuks, OpenLuks, ResizeLuks
from .._steps.lvm import (
    CreatePhysicalVolume,
    CreateVolumeGroup,
    ExtendLogicalVolume,
    ExtendVolumeGroup,
    FinishLogicalVolumes,
    MarkCleared,
    RemoveLogicalVolume,
    ResizePhysicalVolume,
    RewriteGroup,
    ShrinkLogicalVolume,
)
from .._steps.md import AddMembers, CreateArray, GrowArray, WidenArray
from .._steps.partitions import FinishPartitions
from .._steps.signatures import ClearSignatures
from .._steps.step import Step
from .._steps.thin import CreateThinPool, ExtendPoolMetadata
from .._steps.zfs import CreateDataset, CreateZpool, ExtendZpool, SetProperties
from .._storage import derived, zfs
from .._storage.btrfs import outer_first
from .._storage.filesystems import FILESYSTEMS, SWAP
from .._storage.lvm import UNFINISHED
from .._storage.units import MIB
from .arrays import array_growth, array_of, changed_options, joining_of
from .capacity import EXTENT, array_head, container_head, extents_for, size_of
from .contents import has_small_member, joining_vdevs, look, look_at_volume, must_grow, top_of, unused_below
from .partitions import PartitionMatch, Status
from .stack import Action, Stack
from .volume_groups import GroupPlan, PoolPlan, VolumeAction, VolumePlan


@dataclass(frozen=True)
class Site:
    """What the steps are planned for, and the nodes that desired devices have, or will have."""

    layout: Layout
    present: Present
    stacks: tuple[Stack, ...]
    groups: tuple[GroupPlan, ...]

    def node(self, device: str) -> str:
        """Return the node of a desired device."""
        return self._nodes.get(device, device)

    @functools.cached_property
    def _nodes(self) -> Mapping[str, str]:
        nodes = {match.desired.device: match.node for stack in self.stacks for match in stack.matches}
        for stack in self.stacks:
            if stack.action is not Action.BUILD:
                found = look(self.layout, self.present, stack).device
                nodes[top_of(self.layout, stack.device)] = str(found.dev) if found is not None else top_of(self.layout, stack.device)
        return nodes

    def lies_on_array(self, device: str) -> bool:
        """Return whether a desired device is an array, or a LUKS container on one."""
        thing = self.layout.thing(device)
        return isinstance(thing, DesiredArray) or (isinstance(thing, DesiredContainer) and self.lies_on_array(thing.below))

    def is_unfinished(self, device: str) -> bool:
        """Return whether a desired device is on partitions, or on what is built of them, that are not marked as finished."""
        stacks = (stack for stack in self.stacks if top_of(self.layout, stack.device) == device)
        return any(match.status is not Status.KEPT for stack in stacks for match in stack.matches)

    def is_in_zpool(self, stack: Stack) -> bool:
        """Return whether a stack belongs to a ZFS pool."""
        return self.layout.zpool_on(stack.device) is not None

    def carries_group(self, stack: Stack) -> bool:
        """Return whether a stack is for a physical volume."""
        return self.layout.group_of(top_of(self.layout, stack.device)) is not None


def building_steps(site: Site) -> Iterator[Step]:
    """Give all steps after those on the tables. What is alike comes together, so that udev is waited for once."""
    built = [stack for stack in site.stacks if stack.action is Action.BUILD]
    yield from _cleared(site.layout, built)
    for stack in built:
        yield from _array(site, stack)
    for stack in built:
        yield from _container(site, stack.device)
    for stack in site.stacks:
        yield from _joined(site, stack)
    for stack in site.stacks:
        yield from _grown_stack(site, stack)
    for stack in site.stacks:
        yield from changed_options(site.present, stack)
    for group in site.groups:
        yield from _group(site, group)
    # A complete stack is marked as finished at once: after a later failure it does not count as unfinished, and may be used.
    filled = [stack for stack in built if _is_filled(site, stack)]
    yield from _finish([stack for stack in site.stacks if stack not in filled and not site.is_in_zpool(stack)])
    for stack in filled:
        yield from _filesystem(site, stack.device)
        yield from _finish([stack])
    for stack in site.stacks:
        yield from _zpool(site, stack)
    yield from _finish([stack for stack in site.stacks if site.is_in_zpool(stack)])
    for stack in filled:
        yield from _subvolumes_on(site, stack.device)
    for group in site.groups:
        yield from _volumes(site, group)
    for stack in site.stacks:
        yield from _kept_filesystem(site, stack.device, _kept_device(site, stack), _has_to_grow(site, stack))
        yield from _kept_zpool(site, stack)


def _is_filled(site: Site, stack: Stack) -> bool:
    """Return whether a filesystem is made on a stack."""
    return site.layout.filesystem_on(top_of(site.layout, stack.device)) is not None


def _has_to_grow(site: Site, stack: Stack) -> bool:
    desired = site.layout.filesystem_on(stack.device)
    small = desired is not None and has_small_member(site.present, desired, stack)
    if stack.array is not None:
        return array_growth(stack, array_of(site.present, stack)) > 0
    return small or any(match.grows for match in stack.matches)


def removals(groups: tuple[GroupPlan, ...]) -> Iterator[Step]:
    """Give the steps that remove logical volumes."""
    for group in groups:
        for volume in (*group.removed, *group.replaced):
            yield RemoveLogicalVolume(group.desired.name, volume.name, begun=volume.is_pool and UNFINISHED in volume.tags)


def _cleared(layout: Layout, stacks: Sequence[Stack]) -> Iterator[Step]:
    matches = [(match, stack) for stack in stacks for match in stack.matches]
    yield from _cleared_devices({match.node: _head(layout, stack, match) for match, stack in matches})


def _cleared_devices(heads: Mapping[str, int]) -> Iterator[Step]:
    """Give a step for all nodes of which as much is cleared at the begin."""
    for head in dict.fromkeys(heads.values()):
        yield ClearSignatures(tuple(node for node, own in heads.items() if own == head), head)


def _head(layout: Layout, stack: Stack, match: PartitionMatch) -> int:
    """Return how much is cleared at the begin: where the data begin of what is made there, nothing of before may pass for data in it."""
    if stack.array is None:
        return container_head(layout, match.desired.device)
    return array_head(match.desired.size, stack.array.metadata)


def _array(site: Site, stack: Stack) -> Iterator[Step]:
    array = stack.array
    if array is None:
        return
    members, spares = (tuple(site.node(device) for device in devices) for devices in (array.members, array.spares))
    identity = site.layout.identity(array.device)
    slow = tuple(site.node(device) for device in array.write_mostly or ())
    yield CreateArray(array.device, array.title, array.level, members, spares, array.metadata, identity, array.options, slow)
    # What was on an array of before can lie in the room of this one, farther inside than clearing its members reaches.
    yield ClearSignatures((array.device,), container_head(site.layout, array.device))


def _joined(site: Site, stack: Stack) -> Iterator[Step]:
    """Give the steps that add new partitions to an array that stays."""
    if stack.array is None or stack.action is not Action.KEEP or stack.opening is not None or stack.problem is not None:
        return
    array, joining = joining_of(site.present, stack)
    nodes = tuple(match.node for match in joining)
    if not nodes:
        return
    yield ClearSignatures(nodes, max(_head(site.layout, stack, match) for match in joining))
    if array.slots == len(stack.array.members):
        yield AddMembers(str(array.dev), nodes)
    else:
        yield WidenArray(str(array.dev), nodes, len(stack.array.members))


def _container(site: Site, device: str) -> Iterator[Step]:
    container = site.layout.container_on(device)
    if container is not None:
        uuid = derived.container_uuid(site.layout.identity(device))
        yield FormatLuks(site.node(device), uuid, site.lies_on_array(device), container.name)
        yield OpenLuks(site.node(device), container.name)


def _kept_device(site: Site, stack: Stack) -> t.Optional[Device]:
    return look(site.layout, site.present, stack).device if stack.action is Action.KEEP else None


def _grown_stack(site: Site, stack: Stack) -> Iterator[Step]:
    """Let the array of a kept stack, LUKS and the physical volume on it follow what is below."""
    device = _kept_device(site, stack)
    if device is None:
        return
    grown = stack.array is None and any(match.grows for match in stack.matches)
    array = array_of(site.present, stack)
    if array is not None and array_growth(stack, array):
        yield GrowArray(str(array.dev))
        grown = True
    if grown or unused_below(site.present, device) >= EXTENT:
        container = site.layout.container_on(stack.device)
        if container is not None:
            yield ResizeLuks(_mapping_name(device))
            grown = True
    volume = site.present.physical_on(device.name)
    if site.carries_group(stack) and volume is not None and (grown or volume.unused >= volume.extent_size > 0):
        yield ResizePhysicalVolume(str(device.dev))


def _mapping_name(device: Device) -> str:
    return str(device.dev).rsplit("/", 1)[-1]


def _group(site: Site, group: GroupPlan) -> Iterator[Step]:
    new = [volume for volume in group.desired.physical if volume.device in group.new]
    yield from (_physical_volume(site, volume) for volume in new)
    nodes = tuple(site.node(volume.device) for volume in new)
    if nodes and group.present is None:
        yield CreateVolumeGroup(group.desired.name, nodes, group.desired.extent)
    elif nodes:
        yield ExtendVolumeGroup(group.desired.name, nodes)
    elif group.present is not None and any(site.is_unfinished(volume.device) for volume in group.desired.physical):
        # The run may have been cut off while LVM wrote to one physical volume after the other.
        yield RewriteGroup(group.desired.name)


def _physical_volume(site: Site, volume: DesiredPhysicalVolume) -> Step:
    aligned = site.lies_on_array(volume.device)
    return CreatePhysicalVolume(site.node(volume.device), volume.metadata_size, volume.metadata_copies, aligned)


def _finish(stacks: Sequence[Stack]) -> Iterator[Step]:
    """Give one step for each disk that has partitions which are not marked as finished."""
    matches: dict[str, list[PartitionMatch]] = {}
    for match in (match for stack in stacks for match in stack.matches if match.status is not Status.KEPT or match.receiving):
        matches.setdefault(match.disk.node, []).append(match)
    for disk, found in matches.items():
        desired = sorted((match.desired for match in found), key=lambda partition: partition.number)
        numbers, uuids = tuple(partition.number for partition in desired), tuple(partition.uuid for partition in desired)
        yield FinishPartitions(disk, found[0].disk.device.logical_block, numbers, uuids)


def _filesystem(site: Site, device: str) -> Iterator[Step]:
    """Give the step that makes the filesystem desired on a device, or in the LUKS container on it."""
    top = top_of(site.layout, device)
    desired = site.layout.filesystem_on(top)
    if desired is None:
        return
    uuid = site.layout.filesystem_uuid(device, desired)
    if desired.type == SWAP:
        yield MakeSwap(site.node(top), uuid, desired.label, desired.options)
    else:
        more = tuple(site.node(device) for device in desired.more)
        yield MakeFilesystem(site.node(top), desired.type, uuid, desired.label, desired.options, more, desired.level if more else "")


def _subvolumes_on(site: Site, device: str) -> Iterator[Step]:
    """Give the steps that make the subvolumes of a filesystem that is made: it is mounted for them, so it is finished before."""
    top = top_of(site.layout, device)
    desired = site.layout.filesystem_on(top)
    if desired is not None:
        yield from _subvolumes(desired, site.node(top), {})


def _zpool(site: Site, stack: Stack) -> Iterator[Step]:
    """Give the steps that make a ZFS pool and all datasets in it, or add to it what it lacks; `stack` is that of its data."""
    desired = site.layout.zpool_on(stack.device)
    if desired is None or stack.part is not None:
        return
    built = {other.device for other in site.stacks if other.action is Action.BUILD}
    parts = tuple((str(part.part), part.type, _nodes_of(site, part.devices)) for part in desired.parts if part.devices[0] in built)
    if stack.action is Action.BUILD:
        vdevs = tuple((vdev.type, _nodes_of(site, vdev.devices)) for vdev in desired.vdevs)
        yield CreateZpool(desired.name, vdevs, desired.ashift, desired.root.properties, _lasting(site, desired), parts)
        yield from _datasets(desired, {})
        return
    joining = joining_vdevs(site.layout, site.present, stack)
    if joining:
        yield ClearSignatures(tuple(match.node for match in joining), MIB)
        devices = {match.desired.device for match in joining}
        new = tuple((vdev.type, _nodes_of(site, vdev.devices)) for vdev in desired.vdevs if set(vdev.devices) <= devices)
        yield ExtendZpool(desired.name, "", new, _lasting(site, desired, devices))
    for part, kind, nodes in parts:
        known = _lasting(site, desired, [device for device in desired.devices if site.node(device) in nodes])
        yield ExtendZpool(desired.name, part, ((kind, nodes),), known)


def _nodes_of(site: Site, devices: Sequence[str]) -> tuple[str, ...]:
    return tuple(site.node(device) for device in devices)


def _lasting(site: Site, pool: DesiredZpool, among: t.Optional[Collection[str]] = None) -> tuple[tuple[str, str], ...]:
    """Return the lasting names of nodes: kernel names are another disk's after a restart, which would confuse ZFS."""
    devices = [device for device in pool.devices if among is None or device in among]
    return tuple((site.node(device), device) for device in devices if device.startswith("/dev/disk/"))


def _kept_zpool(site: Site, stack: Stack) -> Iterator[Step]:
    """Give the steps that make the datasets which a pool lacks, and set what is set otherwise."""
    desired, device = site.layout.zpool_on(stack.device), _kept_device(site, stack)
    pool = site.present.zpool_on(device) if desired is not None and device is not None else None
    if desired is None or pool is None or stack.part is not None:
        return
    for dataset in (desired.root, *desired.datasets):
        there = pool.datasets.get(dataset.name)
        changed = tuple((name, value) for name, value in dataset.properties if there is not None and not _is_set(there, name, value))
        if changed:
            yield SetProperties(_path(desired, dataset.name), changed)
    yield from _datasets(desired, pool.datasets)


def _is_set(there: Mapping[str, str], name: str, value: str) -> bool:
    return zfs.plain_value(there.get(name, "")) == zfs.plain_value(value)


def _datasets(desired: DesiredZpool, present: Mapping[str, t.Any]) -> Iterator[Step]:
    properties = {dataset.name: dataset.properties for dataset in desired.datasets}
    for name in zfs.outer_first(name for name in properties if name not in present):
        yield CreateDataset(_path(desired, name), properties[name])


def _path(pool: DesiredZpool, dataset: str) -> str:
    return f"{pool.name}/{dataset}" if dataset else pool.name


def _volumes(site: Site, group: GroupPlan) -> Iterator[Step]:
    extent = group.present.extent_size if group.present is not None else group.desired.extent
    # First of all, so that nothing else comes to lie where a cache is to be.
    for cache in (plan.desired for plan in group.caches if plan.makes):
        yield CreateCacheVolume(cache.group, cache.name, site.node(cache.device))
    for plan in group.in_turn(extent):
        if isinstance(plan, PoolPlan):
            yield from _pool(plan, extent)
        elif plan.action is not VolumeAction.KEEP:
            yield plan.making(extent, site.node)
        elif plan.shrinks(extent):
            yield from _shrunk_volume(site, plan, size_of(plan.desired, extent))
        else:
            yield from _kept_volume(site, plan, extent)
    made = [volume for volume in group.volumes if volume.action is not VolumeAction.KEEP]
    pools = [pool.desired.name for pool in group.pools if pool.action is not VolumeAction.KEEP]
    yield from _filled(site, group.desired.name, pools, [volume.desired for volume in made])
    for each in group.caches:
        cache = each.desired
        if each.attaches:
            yield AttachCache(cache.group, cache.origin, cache.name, cache.mode)
        elif each.changes:
            yield ChangeCacheMode(cache.group, cache.origin, cache.mode)


def _pool(pool: PoolPlan, extent: int) -> Iterator[Step]:
    """Give the steps that make a thin pool, or let it grow: its metadata first, which it runs out of otherwise."""
    desired, before = pool.desired, pool.present
    size, metadata = (extents_for(part, extent) * extent for part in (desired.size, desired.metadata))
    if pool.action in (VolumeAction.CREATE, VolumeAction.REPLACE):
        yield CreateThinPool(desired.group, desired.name, size, metadata, desired.chunk)
    elif pool.action is VolumeAction.KEEP and before is not None:
        if before.metadata < metadata:
            yield ExtendPoolMetadata(desired.group, desired.name, metadata, before.metadata)
        if before.size < size:
            yield ExtendLogicalVolume(desired.group, desired.name, size, before.size)


def _filled(site: Site, group: str, pools: Sequence[str], volumes: Sequence[DesiredVolume]) -> Iterator[Step]:
    """Give the steps that make all that is on unfinished volumes, and take the mark off them and off pools, of these first."""
    if volumes:
        yield from _cleared_devices({desired.device: container_head(site.layout, desired.device) for desired in volumes})
        yield MarkCleared(group, tuple(desired.name for desired in volumes))
    for desired in volumes:
        yield from _container(site, desired.device)
    if pools:
        yield FinishLogicalVolumes(group, tuple(pools))
    for desired in volumes:
        yield from _filesystem(site, desired.device)
        yield FinishLogicalVolumes(group, (desired.name,))
    for desired in volumes:
        yield from _subvolumes_on(site, desired.device)


def _shrunk_volume(site: Site, volume: VolumePlan, size: int) -> Iterator[Step]:
    """Give the step that makes a volume smaller: before others take the room."""
    desired, before, filesystem = volume.desired, volume.present, site.layout.filesystem_on(volume.desired.device)
    if before is not None and volume.device is not None and filesystem is not None:
        yield ShrinkLogicalVolume(desired.group, desired.name, size, before.size, str(volume.device.dev), filesystem.type)


def _kept_volume(site: Site, volume: VolumePlan, extent: int) -> Iterator[Step]:
    desired, before = volume.desired, volume.present
    if before is None or volume.device is None:
        return
    size = size_of(desired, extent)
    grows = before.size < size
    if grows:
        yield volume.growing(extent, before.size, site.node)
    top = look_at_volume(site.layout, site.present, desired.device, volume.device).device
    if top is not None and top is not volume.device and (grows or unused_below(site.present, top) >= EXTENT):
        yield ResizeLuks(_mapping_name(top))
        grows = True
    yield from _kept_filesystem(site, desired.device, top, grows)


def _kept_filesystem(site: Site, device: str, there: t.Optional[Device], grows: bool) -> Iterator[Step]:
    """Give the steps that grow a kept filesystem where it has to, and make the subvolumes that it lacks."""
    desired = site.layout.filesystem_on(top_of(site.layout, device))
    if desired is None or there is None:
        return
    if FILESYSTEMS[desired.type].growth is not None and must_grow(site.present, desired, there, grows):
        yield GrowFilesystem(str(there.dev), desired.type, there.mountpoints[0] if there.mountpoints else None, bool(desired.more))
    uuid = str(there.filesystem.uuid) if there.filesystem is not None else ""
    yield from _subvolumes(desired, str(there.dev), site.present.subvolumes.get(uuid, {}))


def _subvolumes(desired: DesiredFilesystem, node: str, present: Mapping[str, t.Optional[int]]) -> Iterator[Step]:
    """Give the steps that make the subvolumes that are not there, and limit those with another limit."""
    limits = {subvolume.name: subvolume.limit for subvolume in desired.subvolumes}
    lacking = outer_first(name for name in limits if name not in present)
    changed = {name: limit for name, limit in limits.items() if limit is not None and present.get(name) != limit}
    if lacking:
        yield CreateSubvolumes(node, tuple(lacking))
    if changed:
        yield LimitSubvolumes(node, tuple(changed), tuple(changed.values()))
