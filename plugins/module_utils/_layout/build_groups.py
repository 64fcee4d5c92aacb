# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that build volume groups and volumes with all on them, and remove volumes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._schema.model import DesiredPhysicalVolume, DesiredVolume
from .._steps.cache import AttachCache, ChangeCacheMode, CreateCacheVolume
from .._steps.luks import ResizeLuks
from .._steps.lvm import (
    CreatePhysicalVolume,
    CreateVolumeGroup,
    ExtendLogicalVolume,
    ExtendVolumeGroup,
    FinishLogicalVolumes,
    MarkCleared,
    RemoveLogicalVolume,
    RewriteGroup,
    ShrinkLogicalVolume,
)
from .._steps.step import Step
from .._steps.thin import CreateThinPool, ExtendPoolMetadata
from .._storage.lvm import UNFINISHED
from .build_contents import (
    Site,
    cleared_devices,
    kept_filesystem,
    mapping_name,
    new_container,
    new_filesystem,
    new_subvolumes,
)
from .capacity import EXTENT, container_head, extents_for, size_of
from .contents import look_at_volume, unused_below
from .volume_groups import GroupPlan, PoolPlan, VolumeAction, VolumePlan


def removals_from(group: GroupPlan) -> Iterator[Step]:
    """Give the steps that remove logical volumes of a group."""
    for volume in (*group.removed, *group.replaced):
        yield RemoveLogicalVolume(group.desired.name, volume.name, begun=volume.is_pool and UNFINISHED in volume.tags)


def group_steps(site: Site, group: GroupPlan) -> Iterator[Step]:
    """Give the steps that make a group, or add to it, without its volumes."""
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


def volume_steps(site: Site, group: GroupPlan) -> Iterator[Step]:
    """Give the steps that make the volumes of a group, let them grow or shrink, and make all on them."""
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
        yield from cleared_devices({desired.device: container_head(site.layout, desired.device) for desired in volumes})
        yield MarkCleared(group, tuple(desired.name for desired in volumes))
    for desired in volumes:
        yield from new_container(site, desired.device)
    if pools:
        yield FinishLogicalVolumes(group, tuple(pools))
    for desired in volumes:
        yield from new_filesystem(site, desired.device)
        yield FinishLogicalVolumes(group, (desired.name,))
    for desired in volumes:
        yield from new_subvolumes(site, desired.device)


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
        yield ResizeLuks(mapping_name(top))
        grows = True
    yield from kept_filesystem(site, desired.device, top, grows)
