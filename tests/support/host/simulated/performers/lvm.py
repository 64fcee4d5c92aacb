# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volume groups and volumes of a simulated host, and their moves."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ansible_collections.bareon.allocator.plugins.module_utils._steps.lvm import (
    ActivateGroup,
    CreateLogicalVolume,
    CreatePhysicalVolume,
    CreateStripedVolume,
    CreateVolumeGroup,
    DeactivateGroup,
    ExtendLogicalVolume,
    ExtendStripedVolume,
    ExtendVolumeGroup,
    FinishLogicalVolumes,
    MarkCleared,
    RemoveLogicalVolume,
    ResizePhysicalVolume,
    RewriteGroup,
    ShrinkLogicalVolume,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.pvmove import LeaveGroup, MoveExtents
from ansible_collections.bareon.allocator.plugins.module_utils._storage.lvm import CLEARED, UNFINISHED
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import Group, SimulatedHost, Volume, new_uuid
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import EXTENT, PV_START
from ansible_collections.bareon.allocator.tests.support.host.simulated.performers.basics import (
    Performers,
    Pieces,
    clean_block,
    copy_range,
    need,
)


def commit_metadata(host: SimulatedHost, group: Group) -> Pieces:
    physical = host.physical(host.blocks())
    need(all(uuid in physical for uuid, _extents in group.physical), f"{group.name} lacks a physical volume")
    group = replace(group, number=group.number + 1)
    for uuid, _extents in group.physical:
        host.media.sign(physical[uuid][0], "LVM2_member", (uuid, group))
        yield


def group_named(host: SimulatedHost, name: str) -> Group:
    found = [group for group in host.groups(host.blocks()).values() if group.name == name]
    need(len(found) == 1, f"there are {len(found)} groups {name}")
    return found[0]


def _create_physical_volume(host: SimulatedHost, step: CreatePhysicalVolume) -> Pieces:
    host.media.sign(clean_block(host, step.device), "LVM2_member", (new_uuid(), None))
    yield


def _extents(host: SimulatedHost, nodes: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    blocks = [host.by_node(node) for node in nodes]
    signatures = [host.media.signatures(block)["LVM2_member"][0] for block in blocks]
    need(all(group is None for _uuid, group in signatures), "a physical volume is in a group already")
    return tuple((uuid, (block.size - PV_START) // EXTENT) for block, (uuid, group_named) in zip(blocks, signatures))


def _create_group(host: SimulatedHost, step: CreateVolumeGroup) -> Pieces:
    need(all(group.name != step.group for group in host.groups(host.blocks()).values()), f"there is a group {step.group}")
    need(step.extent == EXTENT, "extents of another size are not simulated")
    group = Group(step.group, new_uuid(), 0, _extents(host, step.devices))
    yield from commit_metadata(host, group)
    host.active.add(group.uuid)


def _extend_group(host: SimulatedHost, step: ExtendVolumeGroup) -> Pieces:
    group = group_named(host, step.group)
    yield from commit_metadata(host, replace(group, physical=(*group.physical, *_extents(host, step.devices))))


def _rewrite_group(host: SimulatedHost, step: RewriteGroup) -> Pieces:
    yield from commit_metadata(host, group_named(host, step.group))


def _resize_physical_volume(host: SimulatedHost, step: ResizePhysicalVolume) -> Pieces:
    block = host.by_node(step.device)
    uuid, group = host.media.signatures(block)["LVM2_member"][0]
    group = group_named(host, group.name)
    physical = tuple((known, (block.size - PV_START) // EXTENT if known == uuid else extents) for known, extents in group.physical)
    yield from commit_metadata(host, replace(group, physical=physical))


def free_extents(group: Group, count: int) -> tuple[tuple[str, int, int], ...]:
    segments: list[tuple[str, int, int]] = []
    for uuid, _extents in group.physical:
        for extent in group.free(uuid):
            if count == 0:
                return tuple(segments)
            last = segments[-1] if segments else ("", 0, 0)
            if last[0] == uuid and last[1] + last[2] == extent:
                segments[-1] = (uuid, last[1], last[2] + 1)
            else:
                segments.append((uuid, extent, 1))
            count -= 1
    need(count == 0, f"{group.name} lacks {count} extents")
    return tuple(segments)


def with_volume(group: Group, volume: Volume) -> Group:
    return replace(group, volumes=(*(known for known in group.volumes if known.name != volume.name), volume))


def _create_volume(host: SimulatedHost, step: CreateLogicalVolume) -> Pieces:
    group = group_named(host, step.group)
    need(all(volume.name != step.name for volume in group.volumes), f"there is a volume {step.name}")
    volume = Volume(step.name, new_uuid(), (UNFINISHED,), free_extents(group, step.size // EXTENT))
    yield from commit_metadata(host, with_volume(group, volume))
    host.active.add(group.uuid)
    host.media.wipe(host.by_node(step.device))
    host.media.zero(host.by_node(step.device), 0, 4096)


def _allocate_striped(host: SimulatedHost, group: Group, step: CreateStripedVolume | ExtendStripedVolume, count: int) -> list[t.Any]:
    """Equal parts on as many physical volumes, those that are asked for or those with most room; real ones could cut it in segments."""
    need(count % step.stripes == 0, f"{count} extents are not in {step.stripes} equal parts")
    wanted = {host.by_node(node).name for node in step.on}
    names = {uuid: block.name for uuid, (block, group_named) in host.physical(host.blocks()).items()}
    able = [uuid for uuid, _extents in group.physical if len(group.free(uuid)) >= count // step.stripes]
    chosen = [uuid for uuid in able if names.get(uuid) in wanted]
    chosen = chosen if len(chosen) == step.stripes else sorted(able, key=lambda uuid: -len(group.free(uuid)))[: step.stripes]
    need(len(chosen) == step.stripes, f"{group.name} lacks room for {step.stripes} stripes")
    return [(uuid, extent, 1) for uuid in chosen for extent in group.free(uuid)[: count // step.stripes]]


def _create_striped(host: SimulatedHost, step: CreateStripedVolume) -> Pieces:
    group = group_named(host, step.group)
    need(all(volume.name != step.name for volume in group.volumes), f"there is a volume {step.name}")
    segments = tuple(_allocate_striped(host, group, step, step.size // EXTENT))
    yield from commit_metadata(host, with_volume(group, Volume(step.name, new_uuid(), (UNFINISHED,), segments, stripes=step.stripes)))
    host.active.add(group.uuid)
    host.media.wipe(host.by_node(step.device))
    host.media.zero(host.by_node(step.device), 0, 4096)


def _extend_striped(host: SimulatedHost, step: ExtendStripedVolume) -> Pieces:
    group, volume = group_named(host, step.group), volume_named(host, step.group, step.name)
    _need_no_snapshots(group, step.name)
    need(volume.stripes == step.stripes, f"{step.name} has {volume.stripes} stripes")
    more = _allocate_striped(host, group, step, step.size // EXTENT - volume.extents)
    yield from commit_metadata(host, with_volume(group, replace(volume, segments=(*volume.segments, *more))))


def volume_named(host: SimulatedHost, group: str, name: str) -> Volume:
    return next(volume for volume in group_named(host, group).volumes if volume.name == name)


def _need_no_snapshots(group: Group, name: str) -> None:
    need(all(volume.origin != name for volume in group.volumes), f"{name} is an origin of snapshots")


def _extend_volume(host: SimulatedHost, step: ExtendLogicalVolume) -> Pieces:
    group, volume = group_named(host, step.group), volume_named(host, step.group, step.name)
    _need_no_snapshots(group, step.name)
    if volume.pool:
        yield from commit_metadata(host, with_volume(group, replace(volume, virtual=step.size)))
        return
    more = free_extents(group, step.size // EXTENT - volume.extents)
    yield from commit_metadata(host, with_volume(group, replace(volume, segments=(*volume.segments, *more))))


def _shrink_volume(host: SimulatedHost, step: ShrinkLogicalVolume) -> Pieces:
    block = host.by_node(step.device)
    need(block.name not in host.mounts, f"{step.device} is mounted")
    (uuid, size, *more), _offsets = host.media.signatures(block)[step.type]
    host.media.sign(block, step.type, (uuid, min(size, step.size), *more))
    yield
    group, volume, left = group_named(host, step.group), volume_named(host, step.group, step.name), step.size // EXTENT
    _need_no_snapshots(group, step.name)
    kept = []
    for physical, first, count in volume.segments:
        kept.append((physical, first, min(count, left)))
        left -= kept[-1][2]
    segments = tuple(segment for segment in kept if segment[2])
    yield from commit_metadata(host, with_volume(group, replace(volume, segments=segments)))


def _remove_volume(host: SimulatedHost, step: RemoveLogicalVolume) -> Pieces:
    group = group_named(host, step.group)
    lost = {known.name for known in group.volumes if known.uuid in host.lost}
    (named,) = [known for known in group.volumes if known.name == step.name]
    need(step.begun or (named.name not in lost and named.pool not in lost), f"the pool of {step.name} cannot be activated")
    names = (step.name, f"[{named.cache}_cvol]")
    gone = [known for known in group.volumes if known.name in names or step.name in (known.pool, known.origin)]
    for known in gone:
        users = [user for user in host.users(f"dm-{known.uuid}") if user not in {f"dm-{other.uuid}" for other in gone}]
        need(not users, f"{known.name} is in use by {users}")
    yield from commit_metadata(host, replace(group, volumes=tuple(known for known in group.volumes if known not in gone)))


def _mark_cleared(host: SimulatedHost, step: MarkCleared) -> Pieces:
    for name in step.names:
        volume = volume_named(host, step.group, name)
        yield from commit_metadata(host, with_volume(group_named(host, step.group), replace(volume, tags=(*volume.tags, CLEARED))))


def _finish_volumes(host: SimulatedHost, step: FinishLogicalVolumes) -> Pieces:
    for name in step.names:
        yield from commit_metadata(host, with_volume(group_named(host, step.group), replace(volume_named(host, step.group, name), tags=())))


def _deactivate(host: SimulatedHost, step: DeactivateGroup) -> Pieces:
    groups = host.groups(host.blocks()).values()
    for group in (group for group in groups if step.uuid == group.uuid or (step.uuid is None and group.name == step.group)):
        own = {f"dm-{volume.uuid}" for volume in group.volumes}
        for volume in group.volumes:
            need(own.issuperset(host.users(f"dm-{volume.uuid}")), f"{volume.name} is in use")
        host.active.discard(group.uuid)
    yield


def _activate(host: SimulatedHost, step: ActivateGroup) -> Pieces:
    group = group_named(host, step.group)
    lost = {volume.name for volume in group.volumes if volume.uuid in host.lost}
    wanted = [volume for volume in group.volumes if not step.names or volume.name in step.names]
    need(not any(volume.name in lost or volume.pool in lost for volume in wanted), f"a pool of {step.group} must be repaired by hand")
    host.active.add(group.uuid)
    yield


def _move_extents(host: SimulatedHost, step: MoveExtents) -> Pieces:
    """Move extents as pvmove does, volume by volume: the new place is in the metadata when the data are there."""
    physical = host.physical(host.blocks())
    by_node = {block.node: uuid for uuid, (block, group_named) in physical.items()}
    source, targets = by_node[step.device], [by_node[node] for node in step.targets]
    while True:
        group = group_named(host, step.group)
        need(all(uuid in dict(group.physical) for uuid in (source, *targets)), "a physical volume is in no group")
        moving = next((volume for volume in group.volumes if any(segment[0] == source for segment in volume.segments)), None)
        if moving is None:
            return
        free = [(uuid, extent) for uuid in targets for extent in group.free(uuid)]
        segments: list[tuple[str, int, int]] = []
        for uuid, first, count in moving.segments:
            if uuid != source:
                segments.append((uuid, first, count))
                continue
            need(len(free) >= count, f"there is no room for {moving.name}")
            for extent in range(first, first + count):
                to, place = free.pop(0)
                copy_range(host, physical[source][0], PV_START + extent * EXTENT, physical[to][0], PV_START + place * EXTENT, EXTENT)
                segments.append((to, place, 1))
        yield
        yield from commit_metadata(host, with_volume(group, replace(moving, segments=_joined(segments))))


def _joined(segments: list[tuple[str, int, int]]) -> tuple[tuple[str, int, int], ...]:
    found: list[tuple[str, int, int]] = []
    for uuid, first, count in segments:
        if found and found[-1][0] == uuid and found[-1][1] + found[-1][2] == first:
            found[-1] = (uuid, found[-1][1], found[-1][2] + count)
        else:
            found.append((uuid, first, count))
    return tuple(found)


def _leave_group(host: SimulatedHost, step: LeaveGroup) -> Pieces:
    block = host.by_node(step.device)
    uuid, _metadata = host.media.signatures(block)["LVM2_member"][0]
    group = group_named(host, step.group)
    if uuid in dict(group.physical):
        need(not any(segment[0] == uuid for volume in group.volumes for segment in volume.segments), f"{block.name} is in use")
        yield from commit_metadata(host, replace(group, physical=tuple(each for each in group.physical if each[0] != uuid)))
        host.media.sign(block, "LVM2_member", (uuid, None))
        yield
    host.media.wipe(block)
    yield


PERFORMERS: Performers = {
    MoveExtents: _move_extents,
    LeaveGroup: _leave_group,
    CreatePhysicalVolume: _create_physical_volume,
    ResizePhysicalVolume: _resize_physical_volume,
    CreateVolumeGroup: _create_group,
    ExtendVolumeGroup: _extend_group,
    RewriteGroup: _rewrite_group,
    CreateLogicalVolume: _create_volume,
    CreateStripedVolume: _create_striped,
    ExtendStripedVolume: _extend_striped,
    ExtendLogicalVolume: _extend_volume,
    ShrinkLogicalVolume: _shrink_volume,
    RemoveLogicalVolume: _remove_volume,
    MarkCleared: _mark_cleared,
    FinishLogicalVolumes: _finish_volumes,
    DeactivateGroup: _deactivate,
    ActivateGroup: _activate,
}
