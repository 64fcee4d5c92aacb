# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carries out steps on a simulated host, piece by piece: between two pieces the power can go. What real tools refuse fails here as well."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Iterator
from dataclasses import replace

from ansible_collections.bareon.allocator.plugins.module_utils._steps.btrfs import CreateSubvolumes, LimitSubvolumes, ReplaceDevice
from ansible_collections.bareon.allocator.plugins.module_utils._steps.cache import AttachCache, ChangeCacheMode, CreateCacheVolume
from ansible_collections.bareon.allocator.plugins.module_utils._steps.filesystem import (
    CopyContents,
    GrowFilesystem,
    MakeFilesystem,
    MakeSwap,
    RestoreSuperblock,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.luks import (
    CloseMapping,
    FormatLuks,
    OpenLuks,
    RenameMapping,
    ResizeLuks,
)
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
from ansible_collections.bareon.allocator.plugins.module_utils._steps.md import (
    AddMembers,
    CreateArray,
    ForgetMember,
    GrowArray,
    ReAddMembers,
    ReplaceMember,
    StartArray,
    StopArray,
    WidenArray,
)
from ansible_collections.bareon.allocator.plugins.module_utils._steps.partitions import ClearGaps, FinishPartitions, WritePartitionTable
from ansible_collections.bareon.allocator.plugins.module_utils._steps.pvmove import LeaveGroup, MoveExtents
from ansible_collections.bareon.allocator.plugins.module_utils._steps.signatures import ClearSignatures, EmptyDisk
from ansible_collections.bareon.allocator.plugins.module_utils._steps.step import Step
from ansible_collections.bareon.allocator.plugins.module_utils._steps.thin import CreateThinPool, CreateThinVolume, ExtendPoolMetadata
from ansible_collections.bareon.allocator.plugins.module_utils._steps.zfs import (
    CreateDataset,
    CreateZpool,
    ExportZpool,
    ExtendZpool,
    ReplaceVdev,
    SetProperties,
    ShrinkZpool,
)
from ansible_collections.bareon.allocator.plugins.module_utils._storage.lvm import CLEARED, UNFINISHED
from ansible_collections.bareon.allocator.tests.support.host.simulated.host import (
    HALF,
    TORN,
    Group,
    Raid,
    SimulatedHost,
    Volume,
    gpt_entries,
    new_uuid,
)
from ansible_collections.bareon.allocator.tests.support.host.simulated.media import EXTENT, LUKS_START, MIB, PV_START, Block, Mark

Pieces = Iterator[None]
MDADM_KIND = {"1.2": "md-1.2", "1.0": "md-1.0", "0.90": "md-0.90"}


class Refused(AssertionError):
    """A tool would have failed: the plan is wrong."""


def perform(host: SimulatedHost, step: Step) -> Pieces:
    """Do a step; every value that is drawn is a moment between two pieces of it."""
    done: Callable[[SimulatedHost, t.Any], Pieces] = _PERFORMERS[type(step)]
    return done(host, step)


def carry_out(host: SimulatedHost, step: Step) -> None:
    """Do a whole step."""
    for _moment in perform(host, step):
        pass


def _need(condition: object, says: str) -> None:
    if not condition:
        raise Refused(says)


def _unused(host: SimulatedHost, node: str) -> Block:
    block = host.by_node(node)
    _need(not host.users(block.name), f"{node} is in use by {host.users(block.name)}")
    return block


def _clean(host: SimulatedHost, node: str) -> Block:
    block = _unused(host, node)
    _need(not host.media.signatures(block), f"{node} has {list(host.media.signatures(block))}")
    return block


def _clear_ends(host: SimulatedHost, block: Block) -> None:
    host.media.zero(block, 0, MIB)
    host.media.zero(block, block.size - MIB, MIB)


# ---- tables


def _replace_table(host: SimulatedHost, disk: str, uuid: str, entries: tuple[t.Any, ...]) -> Pieces:
    """Write both copies of a table as sfdisk does, the backup first. A copy that changes is torn while it is written."""
    media, known = host.media, host.media.tables(disk)
    for offset in media.table_copies(disk):
        if known.get(offset) != ("gpt", uuid, entries):
            media.tear_copy(disk, offset)
            yield
            media.write_copy(disk, offset, uuid, entries)
            yield
    media.write_table(disk, uuid, entries)
    yield


def _write_table(host: SimulatedHost, step: WritePartitionTable) -> Pieces:
    name = step.disk.rsplit("/", 1)[-1]
    disk, entries = host.media.disk(name), gpt_entries(*step.entries)
    staying = {} if step.fresh else {entry.number: entry for entry in entries}
    for known in host.partitions.get(name, ()):
        kept = staying.get(known.number)
        if kept is None or kept.start != known.start or known.number in step.removed:
            _need(not host.users(f"{name}{known.number}"), f"{name}{known.number} is in use")
    table = host.media.table(name)
    left = [] if table is None or step.fresh else [entry for entry in table[2] if entry.number in step.removed]
    if step.fresh:
        left = list(host.partitions.get(name, ()))
        _unused_disk = [user for user in host.users(name) if host.blocks().get(user, disk).kind != "part"]
        _need(not _unused_disk, f"{name} is in use by {_unused_disk}")
        host.partitions.pop(name, None)
        yield
        yield from _replace_table(host, name, step.uuid, ())
        host.media.wipe(disk)
        yield
        host.media.zero(disk, 2 * 512, MIB - 2 * 512)
        host.media.zero(disk, disk.size - MIB, MIB - 512)
        yield
    for entry in step.entries:
        if entry.clear:
            _clear_ends(host, Block("", "", "part", disk.part(entry.start, entry.size)))
            yield
    for start in (place for one in left for place in (one.start, one.start + one.size - MIB) if one.size > 2 * MIB):
        if not any(entry.start < start + MIB and start < entry.start + entry.size for entry in step.entries):
            host.media.zero(disk, start, MIB)
            yield
    yield from _replace_table(host, name, step.uuid, entries)
    host.partitions[name] = entries
    yield
    host.assemble(name)


def _clear_gaps(host: SimulatedHost, step: ClearGaps) -> Pieces:
    name = step.disk.rsplit("/", 1)[-1]
    disk = host.media.disk(name)
    for offset in step.offsets:
        host.media.zero(disk, offset, 1)
    yield


def _finish_partitions(host: SimulatedHost, step: FinishPartitions) -> Pieces:
    name = step.disk.rsplit("/", 1)[-1]
    table = host.media.table(name)
    _need(table, "no table")
    _kind, uuid, entries = t.cast("tuple[str, str, tuple[t.Any, ...]]", table)
    final = dict(zip(step.numbers, step.uuids, strict=True))
    _need(final.keys() <= {entry.number for entry in entries}, "a partition is not there")
    changed = tuple(replace(entry, uuid=final.get(entry.number, entry.uuid)) for entry in entries)
    yield from _replace_table(host, name, uuid, changed)
    host.partitions[name] = changed
    yield


def _clear_signatures(host: SimulatedHost, step: ClearSignatures) -> Pieces:
    blocks = [_unused(host, device) for device in step.devices]
    for block in blocks:
        host.media.wipe(block)
        yield
    for block in blocks:
        _clear_ends(host, block)
        host.media.zero(block, 0, step.head)
        yield


# ---- md and LUKS


def _create_array(host: SimulatedHost, step: CreateArray) -> Pieces:
    _need(step.device not in host.arrays.values(), f"{step.device} is there")
    blocks = [_clean(host, node) for node in (*step.members, *step.spares)]
    for role, block in enumerate(blocks):
        raid = Raid(step.uuid, step.title, step.level, len(step.members), step.metadata, role, block.size)
        host.media.sign(block, MDADM_KIND[step.metadata], raid)
        yield
    host.arrays[step.uuid] = step.device
    # udev looks at the array as soon as it is there, and starts a volume group of before that shows on it.
    host.assemble()


def _add_members(host: SimulatedHost, step: AddMembers) -> Pieces:
    """Add members as mdadm does, as spares where it lacks none; md has built them up as soon as they are there."""
    array = host.by_node(step.device)
    there = host.members(host.blocks(), array.uuid)
    known = there[0][1]
    blocks = [_spare(host, array, node) or _clean(host, node) for node in step.members]
    roles = sorted(set(range(len(there) + len(blocks))) - {raid.role for _block, raid in there})
    for role, block in zip(roles, blocks, strict=False):
        _need(block.size >= known.size, f"{block.name} is too small")
        if role < known.members:
            host.media.copy(there[0][0], block)
        host.media.sign(block, MDADM_KIND[known.metadata], replace(known, role=role, size=block.size))
        host.left_out = _without(host.left_out, array.uuid, block.name)
        yield


def _spare(host: SimulatedHost, array: Block, node: str) -> Block | None:
    """A spare that an array was started without: mdadm takes it as it is."""
    found = [block for block, raid in host.members(host.blocks()) if (raid.uuid, block.node) == (array.uuid, node)]
    return next((block for block in found if _superblock(host, block, array).role >= _superblock(host, block, array).members), None)


def _superblock(host: SimulatedHost, block: Block, array: Block) -> Raid:
    (found,) = [raid for known, raid in host.members(host.blocks()) if (known.name, raid.uuid) == (block.name, array.uuid)]
    return found


def _re_add_members(host: SimulatedHost, step: ReAddMembers) -> Pieces:
    """Take members back as mdadm does: it overwrites what they have, and looks at nothing but whose they were."""
    array = host.by_node(step.device)
    for block in [host.by_node(node) for node in step.members]:
        there, own = host.members(host.blocks(), array.uuid), _superblock(host, block, array)
        _need(own.role < own.members and block.name in host.left_out[array.uuid], f"{block.name} was no member")
        yield
        events = max(raid.events for _block, raid in there) + 2
        host.media.zero(block, 0, block.size)
        host.media.copy(there[0][0], block)
        host.left_out = _without(host.left_out, array.uuid, block.name)
        for member, raid in [*there, (block, own)]:
            host.media.sign(member, MDADM_KIND[raid.metadata], replace(raid, events=events, without=frozenset()))
        yield


def _without(left_out: dict[str, frozenset[str]], uuid: str, name: str) -> dict[str, frozenset[str]]:
    less = {**left_out, uuid: left_out.get(uuid, frozenset()) - {name}}
    return {known: names for known, names in less.items() if names}


def _widen_array(host: SimulatedHost, step: WidenArray) -> Pieces:
    array = host.by_node(step.device)
    there = host.members(host.blocks(), array.uuid)
    _need(len(there) == there[0][1].members and there[0][1].level == "raid1", f"{step.device} is no whole mirror")
    for block, raid in there:
        host.media.sign(block, MDADM_KIND[raid.metadata], replace(raid, members=step.count))
    yield
    yield from _add_members(host, AddMembers(step.device, step.members))


def _grow_array(host: SimulatedHost, step: GrowArray) -> Pieces:
    array = host.by_node(step.device)
    for block, raid in host.members(host.blocks(), array.uuid):
        host.media.sign(block, MDADM_KIND[raid.metadata], replace(raid, size=block.size))
        yield


def _start_array(host: SimulatedHost, step: StartArray) -> Pieces:
    host.arrays[step.uuid] = step.device
    yield


def _stop_array(host: SimulatedHost, step: StopArray) -> Pieces:
    _unused(host, step.device)
    host.arrays = {uuid: node for uuid, node in host.arrays.items() if node != step.device}
    host.left_out = {uuid: names for uuid, names in host.left_out.items() if uuid in host.arrays}
    yield


def _format_luks(host: SimulatedHost, step: FormatLuks) -> Pieces:
    block = _clean(host, step.device)
    host.media.write(block, 16384, "crypto_LUKS", (step.uuid, "half"))
    yield
    key = new_uuid()
    host.media.sign(block, "crypto_LUKS", (step.uuid, key))
    yield


def _open_luks(host: SimulatedHost, step: OpenLuks) -> Pieces:
    block = _unused(host, step.device)
    _need(step.name not in host.mappings, f"{step.name} is there")
    payload, _offsets = host.media.signatures(block)["crypto_LUKS"]
    _need(payload[1] != "half", "the header is broken")
    host.mappings[step.name], host.mapping_keys[step.name] = block.name, payload[1]
    host.mapping_sizes[step.name] = block.size - LUKS_START
    yield


def _close_mapping(host: SimulatedHost, step: CloseMapping) -> Pieces:
    _unused(host, f"/dev/mapper/{step.name}")
    del host.mappings[step.name], host.mapping_keys[step.name], host.mapping_sizes[step.name]
    yield


def _resize_luks(host: SimulatedHost, step: ResizeLuks) -> Pieces:
    host.mapping_sizes[step.name] = host.blocks()[host.mappings[step.name]].size - LUKS_START
    yield


# ---- LVM


def _commit(host: SimulatedHost, group: Group) -> Pieces:
    physical = host.physical(host.blocks())
    _need(all(uuid in physical for uuid, _extents in group.physical), f"{group.name} lacks a physical volume")
    group = replace(group, number=group.number + 1)
    for uuid, _extents in group.physical:
        host.media.sign(physical[uuid][0], "LVM2_member", (uuid, group))
        yield


def _group(host: SimulatedHost, name: str) -> Group:
    found = [group for group in host.groups(host.blocks()).values() if group.name == name]
    _need(len(found) == 1, f"there are {len(found)} groups {name}")
    return found[0]


def _create_physical_volume(host: SimulatedHost, step: CreatePhysicalVolume) -> Pieces:
    host.media.sign(_clean(host, step.device), "LVM2_member", (new_uuid(), None))
    yield


def _extents(host: SimulatedHost, nodes: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    blocks = [host.by_node(node) for node in nodes]
    signatures = [host.media.signatures(block)["LVM2_member"][0] for block in blocks]
    _need(all(group is None for _uuid, group in signatures), "a physical volume is in a group already")
    return tuple((uuid, (block.size - PV_START) // EXTENT) for block, (uuid, _group) in zip(blocks, signatures))


def _create_group(host: SimulatedHost, step: CreateVolumeGroup) -> Pieces:
    _need(all(group.name != step.group for group in host.groups(host.blocks()).values()), f"there is a group {step.group}")
    _need(step.extent == EXTENT, "extents of another size are not simulated")
    group = Group(step.group, new_uuid(), 0, _extents(host, step.devices))
    yield from _commit(host, group)
    host.active.add(group.uuid)


def _extend_group(host: SimulatedHost, step: ExtendVolumeGroup) -> Pieces:
    group = _group(host, step.group)
    yield from _commit(host, replace(group, physical=(*group.physical, *_extents(host, step.devices))))


def _rewrite_group(host: SimulatedHost, step: RewriteGroup) -> Pieces:
    yield from _commit(host, _group(host, step.group))


def _resize_physical_volume(host: SimulatedHost, step: ResizePhysicalVolume) -> Pieces:
    block = host.by_node(step.device)
    uuid, group = host.media.signatures(block)["LVM2_member"][0]
    group = _group(host, group.name)
    physical = tuple((known, (block.size - PV_START) // EXTENT if known == uuid else extents) for known, extents in group.physical)
    yield from _commit(host, replace(group, physical=physical))


def _allocate(group: Group, count: int) -> tuple[tuple[str, int, int], ...]:
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
    _need(count == 0, f"{group.name} lacks {count} extents")
    return tuple(segments)


def _with_volume(group: Group, volume: Volume) -> Group:
    return replace(group, volumes=(*(known for known in group.volumes if known.name != volume.name), volume))


def _create_volume(host: SimulatedHost, step: CreateLogicalVolume) -> Pieces:
    group = _group(host, step.group)
    _need(all(volume.name != step.name for volume in group.volumes), f"there is a volume {step.name}")
    volume = Volume(step.name, new_uuid(), (UNFINISHED,), _allocate(group, step.size // EXTENT))
    yield from _commit(host, _with_volume(group, volume))
    host.active.add(group.uuid)
    host.media.wipe(host.by_node(step.device))
    host.media.zero(host.by_node(step.device), 0, 4096)


def _allocate_striped(host: SimulatedHost, group: Group, step: CreateStripedVolume | ExtendStripedVolume, count: int) -> list[t.Any]:
    """Equal parts on as many physical volumes, those that are asked for or those with most room; real ones could cut it in segments."""
    _need(count % step.stripes == 0, f"{count} extents are not in {step.stripes} equal parts")
    wanted = {host.by_node(node).name for node in step.on}
    names = {uuid: block.name for uuid, (block, _group) in host.physical(host.blocks()).items()}
    able = [uuid for uuid, _extents in group.physical if len(group.free(uuid)) >= count // step.stripes]
    chosen = [uuid for uuid in able if names.get(uuid) in wanted]
    chosen = chosen if len(chosen) == step.stripes else sorted(able, key=lambda uuid: -len(group.free(uuid)))[: step.stripes]
    _need(len(chosen) == step.stripes, f"{group.name} lacks room for {step.stripes} stripes")
    return [(uuid, extent, 1) for uuid in chosen for extent in group.free(uuid)[: count // step.stripes]]


def _create_striped(host: SimulatedHost, step: CreateStripedVolume) -> Pieces:
    group = _group(host, step.group)
    _need(all(volume.name != step.name for volume in group.volumes), f"there is a volume {step.name}")
    segments = tuple(_allocate_striped(host, group, step, step.size // EXTENT))
    yield from _commit(host, _with_volume(group, Volume(step.name, new_uuid(), (UNFINISHED,), segments, stripes=step.stripes)))
    host.active.add(group.uuid)
    host.media.wipe(host.by_node(step.device))
    host.media.zero(host.by_node(step.device), 0, 4096)


def _extend_striped(host: SimulatedHost, step: ExtendStripedVolume) -> Pieces:
    group, volume = _group(host, step.group), _volume(host, step.group, step.name)
    _need(volume.stripes == step.stripes, f"{step.name} has {volume.stripes} stripes")
    more = _allocate_striped(host, group, step, step.size // EXTENT - volume.extents)
    yield from _commit(host, _with_volume(group, replace(volume, segments=(*volume.segments, *more))))


SPARE = "[lvol0_pmspare]"


def _with_spare(host: SimulatedHost, group: str, extents: int) -> Pieces:
    """Let the spare of metadata be as large as the largest of the pools."""
    known = _group(host, group)
    spare = next((volume for volume in known.volumes if volume.name == SPARE), Volume(SPARE, new_uuid(), (), ()))
    if spare.extents < extents:
        more = _allocate(known, extents - spare.extents)
        yield from _commit(host, _with_volume(known, replace(spare, segments=(*spare.segments, *more))))


def _create_pool(host: SimulatedHost, step: CreateThinPool) -> Pieces:
    group = _group(host, step.group)
    _need(all(volume.name != step.name for volume in group.volumes), f"there is a volume {step.name}")
    metadata = step.metadata // EXTENT
    # LVM has its metadata as a plain volume of a name of its own at first, to wipe them.
    begun = Volume("lvol0", new_uuid(), (), _allocate(group, metadata))
    yield from _commit(host, _with_volume(group, begun))
    if group.uuid in host.active:
        host.media.wipe(host.by_node(f"/dev/mapper/{group.name}-lvol0"))
    yield from _with_spare(host, step.group, metadata)
    group = _group(host, step.group)
    data = _allocate(group, step.size // EXTENT)
    others = tuple(volume for volume in group.volumes if volume.name != begun.name)
    tags, segments = (UNFINISHED,), (*begun.segments, *data)
    pool = replace(begun, name=step.name, tags=tags, segments=segments, chunk=step.chunk, metadata=metadata)
    yield from _commit(host, replace(group, volumes=(*others, pool)))
    host.active.add(group.uuid)


def _extend_metadata(host: SimulatedHost, step: ExtendPoolMetadata) -> Pieces:
    yield from _with_spare(host, step.group, step.size // EXTENT)
    group, pool = _group(host, step.group), _volume(host, step.group, step.name)
    more = step.size // EXTENT - pool.metadata
    _need(pool.chunk and more > 0, f"{step.name} is no pool, or its metadata are as large")
    larger = replace(pool, segments=(*pool.segments, *_allocate(group, more)), metadata=pool.metadata + more)
    yield from _commit(host, _with_volume(group, larger))


def _create_thin_volume(host: SimulatedHost, step: CreateThinVolume) -> Pieces:
    group = _group(host, step.group)
    _need(all(volume.name != step.name for volume in group.volumes), f"there is a volume {step.name}")
    _need(_volume(host, step.group, step.pool).chunk, f"{step.pool} is no pool")
    volume = Volume(step.name, new_uuid(), (UNFINISHED,), (), pool=step.pool, virtual=step.size)
    yield from _commit(host, _with_volume(group, volume))
    host.active.add(group.uuid)


def _create_cache(host: SimulatedHost, step: CreateCacheVolume) -> Pieces:
    group = _group(host, step.group)
    _need(all(volume.name != step.name for volume in group.volumes), f"there is a volume {step.name}")
    (uuid, _group_there), _offsets = host.media.signatures(host.by_node(step.device))["LVM2_member"]
    free = group.free(uuid)
    _need(len(free) == dict(group.physical)[uuid], f"{step.device} is in use")
    volume = Volume(step.name, new_uuid(), (UNFINISHED,), ((uuid, 0, len(free)),))
    yield from _commit(host, _with_volume(group, volume))
    host.active.add(group.uuid)


def _attach_cache(host: SimulatedHost, step: AttachCache) -> Pieces:
    group, origin, cache = _group(host, step.group), _volume(host, step.group, step.name), _volume(host, step.group, step.cache)
    _need(not origin.cache, f"{step.name} has a cache")
    _need(not host.users(f"dm-{cache.uuid}"), f"{step.cache} is in use")
    others = tuple(known for known in group.volumes if known.name not in (step.name, step.cache))
    hidden = replace(cache, name=f"[{cache.name}_cvol]")
    yield from _commit(host, replace(group, volumes=(*others, replace(origin, cache=step.cache, mode=step.mode), hidden)))


def _change_cache_mode(host: SimulatedHost, step: ChangeCacheMode) -> Pieces:
    group, origin = _group(host, step.group), _volume(host, step.group, step.name)
    _need(origin.cache, f"{step.name} has no cache")
    yield from _commit(host, _with_volume(group, replace(origin, mode=step.mode)))


def _volume(host: SimulatedHost, group: str, name: str) -> Volume:
    return next(volume for volume in _group(host, group).volumes if volume.name == name)


def _extend_volume(host: SimulatedHost, step: ExtendLogicalVolume) -> Pieces:
    group, volume = _group(host, step.group), _volume(host, step.group, step.name)
    if volume.pool:
        yield from _commit(host, _with_volume(group, replace(volume, virtual=step.size)))
        return
    more = _allocate(group, step.size // EXTENT - volume.extents)
    yield from _commit(host, _with_volume(group, replace(volume, segments=(*volume.segments, *more))))


def _shrink_volume(host: SimulatedHost, step: ShrinkLogicalVolume) -> Pieces:
    block = host.by_node(step.device)
    _need(block.name not in host.mounts, f"{step.device} is mounted")
    (uuid, size, *more), _offsets = host.media.signatures(block)[step.type]
    host.media.sign(block, step.type, (uuid, min(size, step.size), *more))
    yield
    group, volume, left = _group(host, step.group), _volume(host, step.group, step.name), step.size // EXTENT
    kept = []
    for physical, first, count in volume.segments:
        kept.append((physical, first, min(count, left)))
        left -= kept[-1][2]
    segments = tuple(segment for segment in kept if segment[2])
    yield from _commit(host, _with_volume(group, replace(volume, segments=segments)))


def _remove_volume(host: SimulatedHost, step: RemoveLogicalVolume) -> Pieces:
    group = _group(host, step.group)
    lost = {known.name for known in group.volumes if known.uuid in host.lost}
    (named,) = [known for known in group.volumes if known.name == step.name]
    _need(step.begun or (named.name not in lost and named.pool not in lost), f"the pool of {step.name} cannot be activated")
    gone = [known for known in group.volumes if known.name in (step.name, f"[{named.cache}_cvol]") or known.pool == step.name]
    for known in gone:
        users = [user for user in host.users(f"dm-{known.uuid}") if user not in {f"dm-{other.uuid}" for other in gone}]
        _need(not users, f"{known.name} is in use by {users}")
    yield from _commit(host, replace(group, volumes=tuple(known for known in group.volumes if known not in gone)))


def _mark_cleared(host: SimulatedHost, step: MarkCleared) -> Pieces:
    for name in step.names:
        volume = _volume(host, step.group, name)
        yield from _commit(host, _with_volume(_group(host, step.group), replace(volume, tags=(*volume.tags, CLEARED))))


def _finish_volumes(host: SimulatedHost, step: FinishLogicalVolumes) -> Pieces:
    for name in step.names:
        yield from _commit(host, _with_volume(_group(host, step.group), replace(_volume(host, step.group, name), tags=())))


def _deactivate(host: SimulatedHost, step: DeactivateGroup) -> Pieces:
    groups = host.groups(host.blocks()).values()
    for group in (group for group in groups if step.uuid == group.uuid or (step.uuid is None and group.name == step.group)):
        own = {f"dm-{volume.uuid}" for volume in group.volumes}
        for volume in group.volumes:
            _need(own.issuperset(host.users(f"dm-{volume.uuid}")), f"{volume.name} is in use")
        host.active.discard(group.uuid)
    yield


def _activate(host: SimulatedHost, step: ActivateGroup) -> Pieces:
    group = _group(host, step.group)
    lost = {volume.name for volume in group.volumes if volume.uuid in host.lost}
    wanted = [volume for volume in group.volumes if not step.names or volume.name in step.names]
    _need(not any(volume.name in lost or volume.pool in lost for volume in wanted), f"a pool of {step.group} must be repaired by hand")
    host.active.add(group.uuid)
    yield


# ---- filesystems


def _make_filesystem(host: SimulatedHost, step: MakeFilesystem) -> Pieces:
    blocks = [_clean(host, device) for device in (step.device, *step.more)]
    for uuid in (f"{HALF}{step.uuid}", step.uuid):
        for block in blocks:
            host.media.sign(block, step.type, (uuid, block.size))
            yield


def _make_swap(host: SimulatedHost, step: MakeSwap) -> Pieces:
    block = _clean(host, step.device)
    host.media.sign(block, "swap", (step.uuid, block.size))
    yield


def _grow_filesystem(host: SimulatedHost, step: GrowFilesystem) -> Pieces:
    (uuid, _size, *_subvolumes), _offsets = host.media.signatures(host.by_node(step.device))[step.type]
    for block in _members(host, uuid) if step.several else [host.by_node(step.device)]:
        (uuid, _size, *subvolumes), _offsets = host.media.signatures(block)[step.type]
        if step.type == "ext4":
            _need(not subvolumes, f"the superblock on {step.device} is torn")
            host.media.sign(block, step.type, (uuid, block.size, TORN))
            yield
        host.media.sign(block, step.type, (uuid, block.size, *subvolumes))
        yield


def _restore_superblock(host: SimulatedHost, step: RestoreSuperblock) -> Pieces:
    block = _unused(host, step.device)
    (uuid, size, torn), _offsets = host.media.signatures(block)[step.type]
    _need(torn == TORN, f"the superblock on {step.device} is whole")
    host.media.sign(block, step.type, (uuid, size))
    yield


def _members(host: SimulatedHost, uuid: str) -> list[Block]:
    """The devices of a btrfs."""
    found = ((block, host.media.signatures(block).get("btrfs")) for block in host.blocks().values())
    return [block for block, signature in found if signature is not None and signature[0][0] == uuid]


def _create_subvolumes(host: SimulatedHost, step: CreateSubvolumes) -> Pieces:
    for name in step.names:
        payload, _offsets = host.media.signatures(host.by_node(step.device))["btrfs"]
        _need(name not in dict(payload[2:]), f"there is a subvolume {name}")
        _set_subvolume(host, payload[0], name, None)
        yield


def _set_subvolume(host: SimulatedHost, uuid: str, name: str, limit: int | None) -> None:
    """Write what is known of a subvolume on all devices at once, as a transaction of btrfs does."""
    for block in _members(host, uuid):
        (_uuid, size, *subvolumes), _offsets = host.media.signatures(block)["btrfs"]
        host.media.sign(block, "btrfs", (uuid, size, *{**dict(subvolumes), name: limit}.items()))


def _limit_subvolumes(host: SimulatedHost, step: LimitSubvolumes) -> Pieces:
    for name, limit in zip(step.names, step.limits, strict=True):
        (uuid, _size, *subvolumes), _offsets = host.media.signatures(host.by_node(step.device))["btrfs"]
        _need(name in dict(subvolumes), f"there is no subvolume {name}")
        _set_subvolume(host, uuid, name, limit)
        yield


def _create_zpool(host: SimulatedHost, step: CreateZpool) -> Pieces:
    blocks = [_clean(host, node) for node in step.devices]
    _need(all(pool.name != step.name for pool in host.present().zpools), f"there is a pool {step.name}")
    guid = new_uuid()
    vdevs = tuple(_vdev(host, number, *part) for number, part in enumerate(_parts_of(step)))
    named = {name for part, _vdev_name, names in vdevs if part not in _UNNAMED for name in names}
    label = (step.name, len(named), (("", step.properties),), vdevs)
    for block in (block for block in blocks if block.name in named):
        host.media.sign(block, "zfs_member", (guid, block.size, *label))
        yield
    host.zpools.add(guid)
    yield


_UNNAMED = ("cache", "spare")
"""Devices of a pool that do not say which one they are of."""


def _parts_of(step: CreateZpool) -> list[tuple[str, str, tuple[str, ...]]]:
    data = [("", kind, nodes) for kind, nodes in step.vdevs if kind != "stripe"]
    data += [("", kind, (node,)) for kind, nodes in step.vdevs if kind == "stripe" for node in nodes]
    return [*data, *step.parts]


def _vdev(host: SimulatedHost, number: int, part: str, kind: str, nodes: t.Sequence[str]) -> tuple[str, str, tuple[str, ...]]:
    return part, f"{kind}-{number}" if kind != "stripe" else nodes[0], tuple(host.by_node(node).name for node in nodes)


def _change_vdevs(host: SimulatedHost, pool: str, vdevs: t.Sequence[tuple[str, str, tuple[str, ...]]], new: t.Sequence[Block]) -> None:
    """Write other vdevs into the labels of a pool, at once, as a transaction does."""
    guid = next(known.guid for known in host.present().zpools if known.name == pool)
    members = [block for block in host.zpool_members()[guid] if "zfs_member" in host.media.signatures(block)]
    named = {name for part, _vdev_name, names in vdevs if part not in _UNNAMED for name in names}
    _guid, _size, name, _count, datasets, _vdevs = host.media.signatures(members[0])["zfs_member"][0]
    for block in (*members, *new):
        if block.name in named:
            host.media.sign(block, "zfs_member", (guid, block.size, name, len(named), datasets, tuple(vdevs)))
        elif block in members:
            host.media.wipe(block)


def _extend_zpool(host: SimulatedHost, step: ExtendZpool) -> Pieces:
    blocks = [_clean(host, node) for node in step.devices]
    (pool,) = [known for known in host.present().zpools if known.name == step.name]
    there = [(str(vdev.part or ""), vdev.name, vdev.devices) for vdev in pool.vdevs]
    new = [_vdev(host, len(there) + at, step.part, kind, nodes) for at, (kind, nodes) in enumerate(step.vdevs)]
    _change_vdevs(host, step.name, [*there, *new], blocks)
    yield


def _shrink_zpool(host: SimulatedHost, step: ShrinkZpool) -> Pieces:
    (pool,) = [known for known in host.present().zpools if known.name == step.name]
    _need(any(vdev.name == step.vdev and vdev.part is not None for vdev in pool.vdevs), f"{step.vdev} cannot be taken out of {step.name}")
    _change_vdevs(host, step.name, [(str(vdev.part or ""), vdev.name, vdev.devices) for vdev in pool.vdevs if vdev.name != step.vdev], ())
    yield


def _change_datasets(host: SimulatedHost, pool: str, change: Callable[[dict[str, dict[str, str]]], None]) -> None:
    """Change the datasets of an imported pool, on all its devices at once, as a transaction does."""
    guid = next(known.guid for known in host.present().zpools if known.name == pool)
    for block in (block for block in host.zpool_members()[guid] if "zfs_member" in host.media.signatures(block)):
        _guid, size, name, count, datasets, vdevs = host.media.signatures(block)["zfs_member"][0]
        found = {dataset: dict(properties) for dataset, properties in datasets}
        change(found)
        told = tuple((dataset, tuple(properties.items())) for dataset, properties in found.items())
        host.media.sign(block, "zfs_member", (guid, size, name, count, told, vdevs))


def _create_dataset(host: SimulatedHost, step: CreateDataset) -> Pieces:
    pool, _slash, dataset = step.name.partition("/")

    def change(datasets: dict[str, dict[str, str]]) -> None:
        _need(dataset not in datasets, f"{step.name} is there")
        _need(dataset.rpartition("/")[0] in datasets, f"what {step.name} is to be in is not there")
        datasets[dataset] = dict(step.properties)

    _change_datasets(host, pool, change)
    yield


def _set_properties(host: SimulatedHost, step: SetProperties) -> Pieces:
    pool, _slash, dataset = step.name.partition("/")
    for name, value in step.properties:
        _change_datasets(host, pool, lambda datasets, name=name, value=value: datasets[dataset].update({name: value}))  # type: ignore[misc]
        yield


def _export_zpool(host: SimulatedHost, step: ExportZpool) -> Pieces:
    host.zpools -= {pool.guid for pool in host.present().zpools if pool.name == step.name}
    yield


# ---- off a disk that still works


def _carry(host: SimulatedHost, source: Block, start: int, target: Block, begin: int, size: int) -> None:
    """Write what is on a part of a device onto a part of another one, through the keys of both."""
    ((disk, place),), ((to, at),) = Block("", "", "", source.part(start, size)).extents[0].places, target.part(begin, size)[0].places
    for offset, mark in list(host.media.marks.get(disk, {}).items()):
        if place <= offset < place + size and mark.keys[: len(source.keys)] == source.keys:
            there = Mark(mark.kind, mark.payload, (*target.keys, *mark.keys[len(source.keys) :]))
            host.media.replace(to, {**host.media.marks.get(to, {}), offset - place + at: there})


def _replace_member(host: SimulatedHost, step: ReplaceMember) -> Pieces:
    """Replace a member as md does: the new one is a spare first, then a copy, and only then the old one is none."""
    array = host.by_node(step.device)
    there = {block.node: (block, raid) for block, raid in host.members(host.blocks(), array.uuid)}
    _block, known = list(there.values())[0]
    _need(known.level != "raid0", "there is no other copy")
    _need(len({raid.role for _block, raid in there.values() if raid.role < raid.members}) == known.members, f"{step.device} lacks a member")
    if step.new not in there:
        new = _clean(host, step.new)
        _need(new.size >= known.size, f"{new.name} is too small")
        host.media.sign(new, MDADM_KIND[known.metadata], replace(known, role=known.members + len(there), size=new.size))
        yield
    new = host.by_node(step.new)
    if step.old not in there:
        return
    old, raid = there[step.old]
    host.media.copy(old, new)
    host.media.sign(new, MDADM_KIND[known.metadata], replace(raid, size=new.size))
    yield
    host.left_out = {**host.left_out, str(array.uuid): host.left_out.get(str(array.uuid), frozenset()) | {old.name}}
    yield
    yield from _forget_member(host, ForgetMember(step.device, step.old, step.metadata))


def _forget_member(host: SimulatedHost, step: ForgetMember) -> Pieces:
    array, old = host.by_node(step.device), host.by_node(step.old)
    _need(old.name not in array.parents, f"{old.name} is a member of {step.device}")
    host.media.wipe(old)
    host.left_out = _without(host.left_out, array.uuid, old.name)
    yield


def _move_extents(host: SimulatedHost, step: MoveExtents) -> Pieces:
    """Move extents as pvmove does, volume by volume: the new place is in the metadata when the data are there."""
    physical = host.physical(host.blocks())
    by_node = {block.node: uuid for uuid, (block, _group) in physical.items()}
    source, targets = by_node[step.device], [by_node[node] for node in step.targets]
    while True:
        group = _group(host, step.group)
        _need(all(uuid in dict(group.physical) for uuid in (source, *targets)), "a physical volume is in no group")
        moving = next((volume for volume in group.volumes if any(segment[0] == source for segment in volume.segments)), None)
        if moving is None:
            return
        free = [(uuid, extent) for uuid in targets for extent in group.free(uuid)]
        segments: list[tuple[str, int, int]] = []
        for uuid, first, count in moving.segments:
            if uuid != source:
                segments.append((uuid, first, count))
                continue
            _need(len(free) >= count, f"there is no room for {moving.name}")
            for extent in range(first, first + count):
                to, place = free.pop(0)
                _carry(host, physical[source][0], PV_START + extent * EXTENT, physical[to][0], PV_START + place * EXTENT, EXTENT)
                segments.append((to, place, 1))
        yield
        yield from _commit(host, _with_volume(group, replace(moving, segments=_joined(segments))))


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
    group = _group(host, step.group)
    if uuid in dict(group.physical):
        _need(not any(segment[0] == uuid for volume in group.volumes for segment in volume.segments), f"{block.name} is in use")
        yield from _commit(host, replace(group, physical=tuple(each for each in group.physical if each[0] != uuid)))
        host.media.sign(block, "LVM2_member", (uuid, None))
        yield
    host.media.wipe(block)
    yield


def _replace_device(host: SimulatedHost, step: ReplaceDevice) -> Pieces:
    old = next((block for block in host.blocks().values() if block.node == step.device), None)
    _need(old is not None and "btrfs" in host.media.signatures(t.cast(Block, old)), f"{step.device} has no btrfs")
    old, new = t.cast(Block, old), host.by_node(step.new)
    payload, _offsets = host.media.signatures(old)["btrfs"]
    there = host.media.signatures(new)
    _need(new.size >= old.size, f"{new.name} is too small")
    _need(set(there) <= {"btrfs"} and all(each[0][0] == payload[0] for each in there.values()), f"{new.name} has {list(there)}")
    host.media.sign(new, "btrfs", payload)
    yield
    _carry(host, old, 0, new, 0, old.size)
    yield
    host.media.wipe(old)
    yield


def _copy_contents(host: SimulatedHost, step: CopyContents) -> Pieces:
    old, new = _unused(host, step.device), _unused(host, step.new)
    _need(new.size >= step.size == old.size, f"{new.name} is too small")
    _carry(host, old, MIB, new, MIB, step.size - MIB)
    yield
    _carry(host, old, 0, new, 0, MIB)
    yield
    host.media.wipe(old)
    yield


def _rename_mapping(host: SimulatedHost, step: RenameMapping) -> Pieces:
    _need(step.name not in host.mappings, f"{step.name} is there")
    for names in (host.mappings, host.mapping_keys, host.mapping_sizes):
        names[step.name] = names.pop(step.old)  # type: ignore[attr-defined, assignment]
    for below in list(host.mappings):
        if host.mappings[below] == step.old:
            host.mappings[below] = step.name
    yield


def _empty_disk(host: SimulatedHost, step: EmptyDisk) -> Pieces:
    name = step.disk.rsplit("/", 1)[-1]
    for number in step.parts:
        block = _unused(host, f"/dev/{name}{number}")
        host.media.wipe(block)
        _clear_ends(host, block)
        yield
    host.partitions.pop(name, None)
    host.media.wipe_table(name)
    host.media.wipe(host.media.disk(name))
    yield


def _replace_vdev(host: SimulatedHost, step: ReplaceVdev) -> Pieces:
    old, new = host.by_node(step.old), host.by_node(step.new)
    (pool,) = [known for known in host.present().zpools if known.name == step.name]
    _need(any(old.name in vdev.devices for vdev in pool.vdevs), f"{old.name} is not in {step.name}")
    _need(new.size >= old.size and not host.media.signatures(new), f"{new.name} cannot take {old.name}")
    _carry(host, old, 0, new, 0, old.size)
    host.media.wipe(new)
    yield
    names = {old.name: new.name}
    vdevs = [
        (str(vdev.part or ""), names.get(vdev.name, vdev.name), tuple(names.get(name, name) for name in vdev.devices))
        for vdev in pool.vdevs
    ]
    _change_vdevs(host, step.name, vdevs, [new])
    yield


_PERFORMERS: dict[type[Step], Callable[[SimulatedHost, t.Any], Pieces]] = {
    WritePartitionTable: _write_table,
    ClearGaps: _clear_gaps,
    ClearSignatures: _clear_signatures,
    FinishPartitions: _finish_partitions,
    CreateArray: _create_array,
    AddMembers: _add_members,
    ReAddMembers: _re_add_members,
    WidenArray: _widen_array,
    GrowArray: _grow_array,
    StartArray: _start_array,
    StopArray: _stop_array,
    ReplaceMember: _replace_member,
    ForgetMember: _forget_member,
    MoveExtents: _move_extents,
    LeaveGroup: _leave_group,
    ReplaceDevice: _replace_device,
    CopyContents: _copy_contents,
    RenameMapping: _rename_mapping,
    EmptyDisk: _empty_disk,
    ReplaceVdev: _replace_vdev,
    FormatLuks: _format_luks,
    OpenLuks: _open_luks,
    CloseMapping: _close_mapping,
    ResizeLuks: _resize_luks,
    CreatePhysicalVolume: _create_physical_volume,
    ResizePhysicalVolume: _resize_physical_volume,
    CreateVolumeGroup: _create_group,
    ExtendVolumeGroup: _extend_group,
    RewriteGroup: _rewrite_group,
    CreateLogicalVolume: _create_volume,
    CreateStripedVolume: _create_striped,
    ExtendStripedVolume: _extend_striped,
    CreateThinPool: _create_pool,
    ExtendPoolMetadata: _extend_metadata,
    CreateThinVolume: _create_thin_volume,
    CreateCacheVolume: _create_cache,
    AttachCache: _attach_cache,
    ChangeCacheMode: _change_cache_mode,
    ExtendLogicalVolume: _extend_volume,
    ShrinkLogicalVolume: _shrink_volume,
    RemoveLogicalVolume: _remove_volume,
    MarkCleared: _mark_cleared,
    FinishLogicalVolumes: _finish_volumes,
    DeactivateGroup: _deactivate,
    ActivateGroup: _activate,
    MakeFilesystem: _make_filesystem,
    MakeSwap: _make_swap,
    GrowFilesystem: _grow_filesystem,
    RestoreSuperblock: _restore_superblock,
    CreateSubvolumes: _create_subvolumes,
    LimitSubvolumes: _limit_subvolumes,
    CreateZpool: _create_zpool,
    ExtendZpool: _extend_zpool,
    ShrinkZpool: _shrink_zpool,
    CreateDataset: _create_dataset,
    SetProperties: _set_properties,
    ExportZpool: _export_zpool,
}
