# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is on the desired partitions, up to filesystems and physical volumes: kept, complete but not marked so, or to be built. Pure.

A stack is what carries one thing: a partition, or an md array with its members. Contents of unfinished partitions are built again,
except for a physical volume that has joined its group: it carries extents of volumes from then on.
"""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from .._facts.present import Present, VolumeGroup, Zpool
from .._facts.torn import Torn
from .._facts.tree import Device, Filesystem, Tree
from .._schema.model import DesiredFilesystem, DesiredGroup, DesiredVolume, DesiredZpool, Layout
from .._steps.filesystem import RestoreSuperblock
from .._storage import zfs
from .._storage.btrfs import BTRFS
from .._storage.filesystems import EXT4, FILESYSTEMS
from .._storage.raid import FAR
from .._storage.units import in_mib
from .arrays import array_growth, is_degraded, look_at_array, members_can_grow, taking_back
from .partitions import PartitionMatch, Status, gone_partitions, rewrite_table
from .stack import Action, Found, Stack

_OVER_REMAINS = "no new one is made over its remains, even with wipe (wipefs clears them)"


def judge_stacks(layout: Layout, present: Present, matches: Mapping[str, PartitionMatch]) -> tuple[Stack, ...]:
    """Return all stacks with their actions; `matches` are by the device of the desired partition."""
    legs = {device for array in layout.arrays for device in (*array.members, *array.spares)}
    several = [filesystem for filesystem in layout.filesystems if filesystem.more]
    legs |= {device for filesystem in several for device in filesystem.devices}
    legs |= {device for pool in layout.zpools for device in pool.devices}
    arrays = [Stack(array.device, _matches(matches, (*array.members, *array.spares)), array) for array in layout.arrays]
    plain = [Stack(device, (match,)) for device, match in matches.items() if device not in legs]
    # An array with a member on a disk that is not here is refused for the disk.
    whole = [stack for stack in arrays if stack.array and len(stack.matches) == len(stack.array.members) + len(stack.array.spares)]
    spread = [Stack(each.device, _matches(matches, each.devices)) for each in several if matches.keys() >= set(each.devices)]
    judged = [_judge(layout, present, stack) for stack in (*plain, *whole, *spread)]
    return (*judged, *(stack for pool in layout.zpools for stack in _judge_zpool(layout, present, pool, matches)))


def _judge_zpool(layout: Layout, present: Present, pool: DesiredZpool, matches: Mapping[str, PartitionMatch]) -> Iterator[Stack]:
    """Give the stack of a pool's data, and one for each of its logs, caches and spares: these go where the pool goes."""
    here = [matches[device].device for device in pool.devices if device in matches]
    siblings = frozenset(device.name for device in here if device is not None)
    # What is on a disk that is not here is refused for the disk.
    if not matches.keys() >= set(pool.data_devices):
        return
    data = _judge(layout, present, Stack(pool.data_devices[0], _matches(matches, pool.data_devices), siblings=siblings))
    yield data
    parts = (part for part in pool.parts if part.devices and matches.keys() >= set(part.devices))
    for stack in (Stack(part.devices[0], _matches(matches, part.devices), part=part.part) for part in parts):
        if data.action is Action.BUILD:
            yield _judge_remade(pool, stack)
        elif any(match.status is Status.KEPT for match in stack.matches):
            yield _judge_kept(layout, present, stack)
        else:
            yield _judge_joining(present, pool, stack)


def _judge_remade(pool: DesiredZpool, stack: Stack) -> Stack:
    """Return the plan of a part of a new pool: present contents go, if they may."""
    if stack.may_wipe:
        return replace(stack, action=Action.BUILD, matches=tuple(_remade(match) for match in stack.matches))
    there = next(match.node for match in stack.matches if match.status is Status.KEPT)
    return replace(stack, problem=f"{there} is there, but the ZFS pool {pool.name} that it belongs to has yet to be made")


def _judge_joining(present: Present, pool: DesiredZpool, stack: Stack) -> Stack:
    """Return what becomes of a new part of a pool that is there: it may have been added before a run was cut off."""
    known = next((found for found in present.zpools if found.name == pool.name), None)
    parts = {known.part_of(match.device) for match in stack.matches if known is not None and match.device is not None}
    if parts == {pool.part_of(stack.device)}:
        return replace(stack, action=Action.FINISH)
    return replace(stack, action=Action.BUILD, problem=_why_not_added(known, pool.name))


def _why_not_added(pool: t.Optional[Zpool], name: str) -> t.Optional[str]:
    """Return why nothing is added to a pool: what it lacks may be what a new device was put in for."""
    if pool is None or pool.health in zfs.WHOLE:
        return None
    return f"the ZFS pool {name} is {pool.health}, so nothing is added to it; zpool status {name} says what it lacks"


def _matches(matches: Mapping[str, PartitionMatch], devices: Iterable[str]) -> tuple[PartitionMatch, ...]:
    return tuple(matches[device] for device in devices if device in matches)


def _judge(layout: Layout, present: Present, stack: Stack) -> Stack:
    judged = _judge_by_status(layout, present, stack)
    made_again = judged.matches if judged.action is Action.BUILD else _joining(layout, present, judged)
    refused = next((match.refused for match in made_again if match.refused), None)
    # A new physical volume of a group has no data of the group yet.
    joins = layout.group_of(top_of(layout, stack.device)) is not None
    if refused is None and judged.action is Action.BUILD and not joins and keeps_data(layout, stack):
        stranger = next((match.stranger or match.sealed for match in made_again if match.stranger or match.sealed), None)
        refused = f"{stranger}; take keep_data away if it may be destroyed" if stranger is not None else None
    return replace(judged, action=Action.KEEP, opening=None, problem=judged.problem or refused) if refused else judged


def _joining(layout: Layout, present: Present, stack: Stack) -> tuple[PartitionMatch, ...]:
    """Return the unfinished partitions that become members of what a kept stack has."""
    if stack.action is not Action.KEEP or not any(match.refused for match in stack.matches):
        return ()
    return look(layout, present, stack).joining


def _judge_by_status(layout: Layout, present: Present, stack: Stack) -> Stack:
    statuses = {match.status for match in stack.matches}
    if Status.KEPT in statuses:
        return _judge_kept(layout, present, stack)
    if statuses == {Status.UNFINISHED}:
        return _judge_unfinished(layout, present, stack)
    return replace(stack, action=Action.BUILD)


def _judge_kept(layout: Layout, present: Present, stack: Stack) -> Stack:
    found = look(layout, present, stack)
    problem = _misplaced(stack) or found.problem or _growth_problem(layout, present, stack, found.device) or _lost(stack)
    survives = _survives(present, stack)
    left = survives or _of_closed_pool(layout, present, stack) is not None
    lacks = is_degraded(present, stack)
    stays = keeps_data(layout, stack) or lacks or (left and not any(match.condemned for match in stack.matches))
    if problem is not None and stack.may_wipe and not stays:
        return replace(stack, action=Action.BUILD, matches=tuple(_remade(match) for match in stack.matches))
    if problem is not None and stack.may_wipe and lacks:
        problem = f"{stack.device} runs without a member, so it is not replaced, even with wipe: {problem}"
    elif problem is not None and stack.may_wipe and survives and stays and _OVER_REMAINS not in problem:
        problem = f"{problem}; it may be all that a failed disk left of a filesystem on several, and {_OVER_REMAINS}"
    return replace(stack, action=Action.KEEP, opening=found.opening, problem=problem, taking_back=taking_back(present, stack))


def _misplaced(stack: Stack) -> t.Optional[str]:
    return next((match.problem for match in stack.matches if match.problem), None)


def _lost(stack: Stack) -> t.Optional[str]:
    node = next((match.node for match in stack.matches if match.lost), None)
    return f"{node} belongs to something whose other parts must be made again" if node is not None else None


def _survives(present: Present, stack: Stack) -> bool:
    """Return whether a filesystem on several devices is on some of them, and the others are new: it may be all that a failed disk left.

    A permission to wipe is often for all disks and for good. An array takes the new member; a new file system would destroy the copy.
    Where all its present devices are here, nothing has failed: the plan is another one. A copy of one of them is none of the others.
    """
    kept = [match.device for match in stack.matches if match.status is Status.KEPT and match.device is not None]
    if stack.array is not None or len({device.member or device.name for device in kept}) == len(stack.matches):
        return False
    left = [device for device in kept if device.filesystem is not None and device.filesystem.type in (BTRFS, zfs.MEMBER)]
    if stack.part is not None:
        return any(device.filesystem is not None and device.filesystem.type == zfs.MEMBER for device in left)
    return any(_lacks_devices(present, device, len(stack.matches)) for device in left)


def condemned_by(stack: Stack) -> tuple[PartitionMatch, ...]:
    """Return the partitions of what is made again that are to be marked first: what a cut leaves may look like what a failed disk left."""
    if stack.action is not Action.BUILD or stack.array is not None:
        return ()
    remade = [match for match in stack.matches if match.status is Status.REMAKE and not match.unfinished and not match.condemned]
    return tuple(match for match in remade if _is_of_several(match.device, len(stack.matches)))


def _is_of_several(device: t.Optional[Device], wanted: int) -> bool:
    found = device.filesystem if device is not None else None
    return found is not None and (found.type == zfs.MEMBER or (found.type == BTRFS and wanted > 1))


def _lacks_devices(present: Present, device: Device, wanted: int) -> bool:
    """Return whether fewer devices of a filesystem are here than are wanted; logs of a ZFS pool, and the like, have none of its data.

    Copies of a device count as one.
    """
    pool, found = present.zpool_on(device), t.cast(Filesystem, device.filesystem)
    if pool is not None and pool.health not in zfs.WHOLE:
        return True
    others = (other for other in present.tree.devices.values() if pool is None or pool.part_of(other) is None)
    there = [(other.member or other.name, other.filesystem) for other in others if other.filesystem is not None]
    return len({name for name, other in there if (other.type, other.uuid) == (found.type, found.uuid)}) < wanted


def _of_closed_pool(layout: Layout, present: Present, stack: Stack) -> t.Optional[Device]:
    """Return a device of the wanted ZFS pool, when that exists and is not imported: only ZFS can tell whether it is as wanted."""
    desired = layout.zpool_on(stack.device)
    for device in (match.device for match in stack.matches if match.status is Status.KEPT and match.device is not None):
        there = device.filesystem
        known = desired is not None and there is not None and (there.type, there.label) == (zfs.MEMBER, desired.name)
        if known and present.zpool_on(device) is None:
            return device
    return None


def _remade(match: PartitionMatch) -> PartitionMatch:
    return replace(match, status=Status.REMAKE if match.status is Status.KEPT else match.status, problem=None, lost=False)


def _judge_unfinished(layout: Layout, present: Present, stack: Stack) -> Stack:
    if any(match.sealed and match.refused and not match.stranger for match in stack.matches):
        found = look(layout, present, stack)
        if found.opening is not None:
            return replace(stack, action=Action.FINISH, opening=found.opening)
    group = layout.group_of(top_of(layout, stack.device))
    if group is None:
        return replace(stack, action=Action.BUILD)
    found = look(layout, present, stack)
    if found.device is not None and member_of(present, found.device, group) is not None:
        return replace(stack, action=Action.FINISH, taking_back=taking_back(present, stack))
    known = [candidate for candidate in present.groups() if candidate.name == group.name]
    if found.opening is not None and any(candidate.incomplete for candidate in known):
        # It may be what the group lacks: then it has joined it and must not be made again.
        return replace(stack, action=Action.FINISH, opening=found.opening)
    return replace(stack, action=Action.BUILD)


def keeps_data(layout: Layout, stack: Stack) -> bool:
    """Return whether anything on a stack is to keep its data, with the volumes of its group."""
    top = top_of(layout, stack.device)
    group = layout.group_of(top)
    items = (stack.array, layout.container_on(stack.device), group, layout.filesystem_on(top))
    volumes = layout.volumes_of(group.name) if group is not None else ()
    kept = any(item is not None and item.keep_data for item in (*items, *(match.desired for match in stack.matches)))
    return kept or any(keeps_volume(layout, volume) for volume in volumes)


def keeps_volume(layout: Layout, volume: DesiredVolume) -> bool:
    """Return whether a volume, or anything on it, is to keep its data."""
    items = (volume, layout.container_on(volume.device), layout.filesystem_on(top_of(layout, volume.device)))
    return any(item is not None and item.keep_data for item in items)


def top_of(layout: Layout, device: str) -> str:
    """Return the device on which the filesystem or physical volume is: the LUKS container on a device, if there is to be one."""
    container = layout.container_on(device)
    return container.device if container is not None else device


def look(layout: Layout, present: Present, stack: Stack) -> Found:
    """Return what is on a stack of which at least one partition is there."""
    unknown = next((match.disk for match in stack.matches if _is_unknown(present, match)), None)
    if unknown is not None:
        return Found(opening=rewrite_table(unknown, present.tree))
    if stack.array is not None:
        there = look_at_array(present, stack)
    else:
        joining = joining_vdevs(layout, present, stack)
        rest = replace(stack, matches=tuple(match for match in stack.matches if match not in joining))
        closed = _of_closed_pool(layout, present, stack)
        there = Found(closed or rest.matches[0].device) if closed or len(rest.matches) == 1 else _several_devices(rest)
        there = _with_unplanned_members(layout, present, stack, replace(there, joining=joining))
    return _look_inside(layout, present, stack.device, there) if there.problem is None and there.opening is None else there


def _is_unknown(present: Present, match: PartitionMatch) -> bool:
    """Return whether the kernel does not know a partition, so that nothing on it can be opened, started or measured.

    A power cut may have left the backup of a table alone, which the kernel does not read. Where the kernel has others of before in their
    place, these are to be closed first, with all steps on tables.
    """
    return match.device is not None and not match.device.running and not gone_partitions(match.disk, present.tree)


def look_at_volume(layout: Layout, present: Present, device: str, there: Device) -> Found:
    """Return what is on a logical volume."""
    return _look_inside(layout, present, device, Found(there))


def _several_devices(stack: Stack) -> Found:
    """Return the first of the devices of a filesystem on several, where it is on all of them."""
    devices = [match.device for match in stack.matches]
    uuids = {device.filesystem.uuid if device is not None and device.filesystem is not None else None for device in devices}
    if None in uuids or len(uuids) > 1:
        nodes = ", ".join(match.node for match in stack.matches)
        return Found(
            problem=f"{nodes} should carry one filesystem, but not all of them do; devices of an existing one are not added, replaced or "
            f"removed here ({_by_hand(devices)}), and {_OVER_REMAINS}"
        )
    if len({device.member or device.name for device in devices if device is not None}) < len(devices):
        nodes = ", ".join(match.node for match in stack.matches)
        return Found(problem=f"{nodes} should carry one filesystem, but some of them are copies of one of its devices; attach the others")
    return Found(devices[0])


def _with_unplanned_members(layout: Layout, present: Present, stack: Stack, there: Found) -> Found:
    """Return what was found, with what is wrong where a ZFS pool has other devices as well."""
    device = there.device
    pool = present.zpool_on(device) if device is not None else None
    if layout.zpool_on(stack.device) is None or device is None or pool is None or stack.part is not None:
        return there
    others = [other for other in present.tree.devices.values() if present.zpool_on(other) is pool and other.name not in stack.siblings]
    # Logs, caches and spares that the schema does not have stay, as other partitions do.
    strangers = [other.dev or other.name for other in others if other.table is None and pool.part_of(other) is None]
    if not strangers:
        return there
    says = f"the ZFS pool {pool.name} also has {', '.join(strangers)}, which is not removed here"
    return Found(problem=f"{says} ({_by_hand([device])})")


def _by_hand(devices: Iterable[t.Optional[Device]]) -> str:
    types = {device.filesystem.type for device in devices if device is not None and device.filesystem is not None}
    return "use zpool replace, attach or add" if zfs.MEMBER in types else "use btrfs device or btrfs replace"


def joining_vdevs(layout: Layout, present: Present, stack: Stack) -> tuple[PartitionMatch, ...]:
    """Return the new partitions of whole vdevs that an existing complete ZFS pool gets in addition to its own."""
    desired = layout.zpool_on(stack.device)
    pool = next((known for known in present.zpools if desired is not None and known.name == desired.name), None)
    if desired is None or pool is None or stack.part is not None or pool.health not in zfs.WHOLE:
        return ()
    there = {name for vdev in pool.vdevs if vdev.part is None for name in vdev.devices}
    new = {match.desired.device: match for match in stack.matches if _is_new(match, there)}
    joining = tuple(new[device] for vdev in desired.vdevs for device in vdev.devices if set(vdev.devices) <= set(new))
    fits = len(stack.matches) - len(joining) == len(there) and stack.matches[0] not in joining
    return joining if fits else ()


def _is_new(match: PartitionMatch, there: Collection[str]) -> bool:
    """Return whether a partition is to be made, or was, before a run was cut off, and nothing lies on it yet."""
    unused = match.device is None or match.device.name not in there
    return match.status is Status.NEW or (match.status is Status.UNFINISHED and unused)


def _look_inside(layout: Layout, present: Present, device: str, there: Found) -> Found:
    """Return what is on the present device `there` of the desired device `device`."""
    container = layout.container_on(device)
    if container is not None:
        there = _opened(present.tree, container.name, t.cast(Device, there.device))
    if there.device is None:
        return there
    torn = present.torn.get(there.device.name)
    if torn is not None:
        return _torn(layout, device, there.device, torn)
    problem = next(_unlike(layout, present, top_of(layout, device), there.device), None)
    return replace(there, problem=problem)


def _torn(layout: Layout, device: str, there: Device, torn: Torn) -> Found:
    """Return the plan for an ext4 whose superblock is torn: only the layout's own file system is repaired."""
    desired, node = layout.filesystem_on(top_of(layout, device)), str(there.dev)
    if desired is not None and (desired.type, layout.filesystem_uuid(device, desired)) == (EXT4, torn.uuid):
        return Found(opening=RestoreSuperblock(node, EXT4, torn.block, torn.block_size))
    return Found(
        problem=f"{node} has an ext4 with a torn superblock and the UUID {torn.uuid}, which is not what this layout has there; "
        f"if it is yours, e2fsck -b {torn.block} -B {torn.block_size} {node} mends it"
    )


def _opened(tree: Tree, name: str, below: Device) -> Found:
    if below.filesystem is None or below.filesystem.type != "crypto_LUKS":
        return Found(problem=f"{below.dev or below.name} {_holds(below)}, but LUKS is wanted there")
    opened = next((child for child in tree.children(below.name) if child.kind == "crypt"), None)
    if opened is None or not opened.running:
        # Hosts get sources, and compile in each run what they import: this only where it is used.
        from .._steps.luks import OpenLuks

        return Found(opening=OpenLuks(str(below.dev), name))
    return Found(opened)


def _unlike(layout: Layout, present: Present, top: str, device: Device) -> Iterator[str]:
    """Give what is not as desired on a device."""
    filesystem, group = layout.filesystem_on(top), layout.group_of(top)
    node = device.dev or device.name
    if filesystem is not None and (device.filesystem is None or device.filesystem.type != filesystem.type):
        yield f"{node} {_holds(device)}, but {filesystem.type} is wanted there; a filesystem is never made over another one or over data"
    if group is not None and member_of(present, device, group) is None:
        volume = present.physical_on(device.name)
        there = f"is in the volume group {volume.group}" if volume is not None and volume.group else _holds(device)
        yield f"{node} {there}, but is wanted in the volume group {group.name}"
    pool = layout.zpool_on(top)
    part = pool.part_of(top) if pool is not None else None
    if pool is not None and part is not None:
        yield from _unlike_part(present, pool, part, device)
    elif pool is not None:
        yield from _unlike_zpool(present, pool, device)
    if filesystem is not None and filesystem.uuid and device.filesystem is not None and device.filesystem.uuid != filesystem.uuid:
        yield f"{node} has a {filesystem.type} with the UUID {device.filesystem.uuid}, but the one with {filesystem.uuid} is wanted"


def _unlike_zpool(present: Present, desired: DesiredZpool, device: Device) -> Iterator[str]:
    """Give why a device is not of the desired pool, or the pool not one that can be looked into; none is imported here."""
    there, pool = device.filesystem, present.zpool_on(device)
    node = device.dev or device.name
    if there is None or there.type != zfs.MEMBER:
        yield f"{node} {_holds(device)}, but the ZFS pool {desired.name} is wanted there; no pool is made over data"
    elif pool is None:
        yield (
            f"{node} belongs to the ZFS pool {there.label or there.uuid}, which is not imported on this host: it was exported, or "
            f"last used by another host, or ZFS is not running; import it first (zpool import {there.uuid}) if it is this host's"
        )
    elif pool.name != desired.name:
        yield f"{node} belongs to the ZFS pool {pool.name}, but {desired.name} is wanted there"
    elif pool.part_of(device) is not None:
        yield f"{node} is a {pool.part_of(device)} of the ZFS pool {pool.name}, but wanted for its data"
    else:
        yield from _fixed_properties(desired, pool)


def _unlike_part(present: Present, desired: DesiredZpool, part: zfs.Part, device: Device) -> Iterator[str]:
    """Give why a device is not the log, the cache or the spare that it is wanted as; of a pool that is closed nothing is known."""
    pool, node = present.zpool_on(device), device.dev or device.name
    if not any(known.name == desired.name for known in present.zpools):
        return
    if pool is None or pool.name != desired.name:
        there = _holds(device) if pool is None else f"belongs to the ZFS pool {pool.name}"
        yield f"{node} {there}, but is wanted as a {part} of the ZFS pool {desired.name}; zpool add {desired.name} {part} {node} adds it"
    elif pool.part_of(device) is not part:
        yield f"{node} is {_named_part(pool.part_of(device))} of the ZFS pool {pool.name}, but wanted as a {part}"


def _named_part(part: t.Optional[zfs.Part]) -> str:
    return "a device for data" if part is None else f"a {part}"


def _fixed_properties(desired: DesiredZpool, pool: Zpool) -> Iterator[str]:
    for dataset in (desired.root, *desired.datasets):
        there = pool.datasets.get(dataset.name, {})
        for name, value in dataset.properties:
            if name in zfs.AT_CREATION and there.get(name, value) != value:
                yield f"{dataset.place}.properties: {name} is {there[name]} and cannot be changed to {value}: it is fixed when it is made"


def _holds(device: Device) -> str:
    if device.filesystem is not None:
        return f"holds {device.filesystem.type}"
    return "holds no filesystem" if device.read else "cannot be read"


def unused_below(present: Present, opened: Device) -> int:
    """Return by how many bytes an open LUKS container is smaller than what it lies on; 0 for anything else."""
    if opened.luks is None or opened.luks.data_start is None:
        return 0
    below = [present.tree.devices[name] for name in opened.parents if name in present.tree.devices]
    return max((device.size - opened.luks.data_start - opened.size for device in below), default=0)


def member_of(present: Present, device: Device, group: DesiredGroup) -> t.Optional[VolumeGroup]:
    """Return the volume group of a device when it is the desired one."""
    volume = present.physical_on(device.name)
    if volume is None or volume.group != group.name:
        return None
    return next((known for known in present.groups() if known.uuid == volume.group_uuid), None)


def _growth_problem(layout: Layout, present: Present, stack: Stack, there: t.Optional[Device]) -> t.Optional[str]:
    growing = next((match for match in stack.matches if match.grows), None)
    if growing is not None and layout.zpool_on(stack.device) is not None:
        return f"{growing.node} would have to grow, but it belongs to a ZFS pool, which only grows by hand (zpool online -e)"
    if growing is not None and stack.array is not None and there is not None:
        array = look_at_array(present, stack).device
        if array is not None and not members_can_grow(array):
            layout_of = f" and the layout {FAR}" if array.details.get("layout") == FAR else ""
            return f"{growing.node} would have to grow, but members of {array.kind} with metadata {array.metadata}{layout_of} cannot"
    filesystem = layout.filesystem_on(top_of(layout, stack.device))
    node = growing.node if growing is not None else None
    if stack.array is None and len(stack.matches) > 1:
        larger = next(filter(None, (outsized(present, match.device, match.size) for match in stack.matches)), None)
    else:
        larger = outsized(present, there, _least_when_grown(present, stack, there))
    return larger or cannot_grow(present, filesystem, there, node, _least_when_grown(present, stack, there))


def outsized(present: Present, device: t.Optional[Device], size: int) -> t.Optional[str]:
    """Return why a filesystem cannot stay on a device that has `size` bytes, or gets them: somebody made that smaller beneath it."""
    there = present.filesystem_sizes.get(device.name) if device is not None else None
    if device is None or device.filesystem is None or there is None or there <= size:
        return None
    return (
        f"{device.dev or device.name} has {in_mib(size)}, but the {device.filesystem.type} on it {in_mib(there)}: somebody made the device "
        "smaller and not the filesystem, whose end lies in room that looks free; make the device as large again"
    )


def _least_when_grown(present: Present, stack: Stack, there: t.Optional[Device]) -> int:
    """Return how many bytes the smallest device of a kept filesystem has when all below it has grown."""
    sizes = [match.desired.size if match.grows else match.size for match in stack.matches]
    if there is None or (stack.array is None and len(sizes) > 1):
        return min(sizes)
    array = look_at_array(present, stack).device if stack.array is not None else None
    gain = array_growth(stack, array) if stack.array is not None else sizes[0] - stack.matches[0].size
    return there.size + unused_below(present, there) + gain


def has_small_member(present: Present, filesystem: DesiredFilesystem, stack: Stack) -> bool:
    """Return whether a filesystem on several devices does not use all of one of them."""
    members = [match.device for match in stack.matches if match.device is not None]
    return len(members) > 1 and any(must_grow(present, filesystem, member, grows=False) for member in members)


def must_grow(present: Present, filesystem: DesiredFilesystem, device: Device, grows: bool) -> bool:
    """Return whether a kept filesystem has to grow: its device does, or has room that it does not use, for a run was cut off in between."""
    growth = FILESYSTEMS[filesystem.type].growth
    if growth is None:
        return grows
    size = present.filesystem_sizes.get(device.name)
    return grows or (size is not None and device.size - size >= growth.slack)


def cannot_grow(
    present: Present, filesystem: t.Optional[DesiredFilesystem], device: t.Optional[Device], growing: t.Optional[str], size: int
) -> t.Optional[str]:
    """Return why the filesystem on a kept device cannot grow when it has to.

    `growing` is what its device grows with, if it does; `size` is how many bytes the smallest of its devices has then.
    """
    if filesystem is None or device is None or not must_grow(present, filesystem, device, growing is not None):
        return None
    growth, what = FILESYSTEMS[filesystem.type].growth, growing or device.dev or device.name
    if growth is None:
        return f"{what} would have to grow, but {filesystem.type} cannot"
    if device.mountpoints and not growth.mounted:
        return f"{what} would have to grow, but {filesystem.type} cannot while it is mounted (on {device.mountpoints[0]}); unmount it"
    if size < growth.least:
        least, wanted = in_mib(growth.least), in_mib(size)
        return f"{what} would have to grow, but kernels grow {filesystem.type} to no less than {least}, not to {wanted}; give it {least}"
    return None
