# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Thin pools and caches of a simulated host."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.bareon.allocator.plugins.module_utils._steps.cache import AttachCache, ChangeCacheMode, CreateCacheVolume
from ansible_collections.bareon.allocator.plugins.module_utils._steps.thin import CreateThinPool, CreateThinVolume, ExtendPoolMetadata
from ansible_collections.bareon.allocator.plugins.module_utils._storage.lvm import UNFINISHED
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import SimulatedHost, Volume, new_uuid
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import EXTENT
from ansible_collections.bareon.allocator.tests.support.host.simulated.performers.basics import Performers, Pieces, need
from ansible_collections.bareon.allocator.tests.support.host.simulated.performers.lvm import (
    commit_metadata,
    free_extents,
    group_named,
    volume_named,
    with_volume,
)

SPARE = "[lvol0_pmspare]"


def _with_spare(host: SimulatedHost, group: str, extents: int) -> Pieces:
    """Let the spare of metadata be as large as the largest of the pools."""
    known = group_named(host, group)
    spare = next((volume for volume in known.volumes if volume.name == SPARE), Volume(SPARE, new_uuid(), (), ()))
    if spare.extents < extents:
        more = free_extents(known, extents - spare.extents)
        yield from commit_metadata(host, with_volume(known, replace(spare, segments=(*spare.segments, *more))))


def _create_pool(host: SimulatedHost, step: CreateThinPool) -> Pieces:
    group = group_named(host, step.group)
    need(all(volume.name != step.name for volume in group.volumes), f"there is a volume {step.name}")
    metadata = step.metadata // EXTENT
    # LVM has its metadata as a plain volume of a name of its own at first, to wipe them.
    begun = Volume("lvol0", new_uuid(), (), free_extents(group, metadata))
    yield from commit_metadata(host, with_volume(group, begun))
    if group.uuid in host.active:
        host.media.wipe(host.by_node(f"/dev/mapper/{group.name}-lvol0"))
    yield from _with_spare(host, step.group, metadata)
    group = group_named(host, step.group)
    data = free_extents(group, step.size // EXTENT)
    others = tuple(volume for volume in group.volumes if volume.name != begun.name)
    tags, segments = (UNFINISHED,), (*begun.segments, *data)
    pool = replace(begun, name=step.name, tags=tags, segments=segments, chunk=step.chunk, metadata=metadata)
    yield from commit_metadata(host, replace(group, volumes=(*others, pool)))
    host.active.add(group.uuid)


def _extend_metadata(host: SimulatedHost, step: ExtendPoolMetadata) -> Pieces:
    yield from _with_spare(host, step.group, step.size // EXTENT)
    group, pool = group_named(host, step.group), volume_named(host, step.group, step.name)
    more = step.size // EXTENT - pool.metadata
    need(pool.chunk and more > 0, f"{step.name} is no pool, or its metadata are as large")
    larger = replace(pool, segments=(*pool.segments, *free_extents(group, more)), metadata=pool.metadata + more)
    yield from commit_metadata(host, with_volume(group, larger))


def _create_thin_volume(host: SimulatedHost, step: CreateThinVolume) -> Pieces:
    group = group_named(host, step.group)
    need(all(volume.name != step.name for volume in group.volumes), f"there is a volume {step.name}")
    need(volume_named(host, step.group, step.pool).chunk, f"{step.pool} is no pool")
    volume = Volume(step.name, new_uuid(), (UNFINISHED,), (), pool=step.pool, virtual=step.size)
    yield from commit_metadata(host, with_volume(group, volume))
    host.active.add(group.uuid)


def _create_cache(host: SimulatedHost, step: CreateCacheVolume) -> Pieces:
    group = group_named(host, step.group)
    need(all(volume.name != step.name for volume in group.volumes), f"there is a volume {step.name}")
    (uuid, _group_there), _offsets = host.media.signatures(host.by_node(step.device))["LVM2_member"]
    free = group.free(uuid)
    need(len(free) == dict(group.physical)[uuid], f"{step.device} is in use")
    volume = Volume(step.name, new_uuid(), (UNFINISHED,), ((uuid, 0, len(free)),))
    yield from commit_metadata(host, with_volume(group, volume))
    host.active.add(group.uuid)


def _attach_cache(host: SimulatedHost, step: AttachCache) -> Pieces:
    group, origin, cache = (
        group_named(host, step.group),
        volume_named(host, step.group, step.name),
        volume_named(host, step.group, step.cache),
    )
    need(not origin.cache, f"{step.name} has a cache")
    need(not host.users(f"dm-{cache.uuid}"), f"{step.cache} is in use")
    others = tuple(known for known in group.volumes if known.name not in (step.name, step.cache))
    hidden = replace(cache, name=f"[{cache.name}_cvol]")
    yield from commit_metadata(host, replace(group, volumes=(*others, replace(origin, cache=step.cache, mode=step.mode), hidden)))


def _change_cache_mode(host: SimulatedHost, step: ChangeCacheMode) -> Pieces:
    group, origin = group_named(host, step.group), volume_named(host, step.group, step.name)
    need(origin.cache, f"{step.name} has no cache")
    yield from commit_metadata(host, with_volume(group, replace(origin, mode=step.mode)))


PERFORMERS: Performers = {
    CreateThinPool: _create_pool,
    ExtendPoolMetadata: _extend_metadata,
    CreateThinVolume: _create_thin_volume,
    CreateCacheVolume: _create_cache,
    AttachCache: _attach_cache,
    ChangeCacheMode: _change_cache_mode,
}
