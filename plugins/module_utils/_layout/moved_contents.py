# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""LUKS containers, Btrfs, ZFS and single file systems that are moved off a disk. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .._facts.present import Present
from .._facts.tree import Device
from .._schema.model import DesiredFilesystem, DesiredPartition, Layout
from .._steps.btrfs import ReplaceDevice
from .._steps.filesystem import CopyContents
from .._steps.luks import OpenLuks
from .._steps.signatures import ClearSignatures
from .._steps.zfs import ReplaceVdev
from .._storage import zfs
from .._storage.btrfs import BTRFS
from .._storage.units import MIB
from .capacity import capacity
from .moving import (
    LUKS,
    MADE_ANEW,
    Found,
    Ground,
    close_container,
    counterpart,
    free_name,
    no_way,
    place_of,
    strange_on,
    too_small,
    unplanned,
)
from .replacing import Pair


def look_into(ground: Ground, found: Found, pair: Pair, device: Device) -> None:
    """Plan what becomes of a LUKS container on a partition of an old disk."""
    tree, present = ground.present.tree, ground.present
    opened = next((child for child in tree.children(device.name) if child.kind == "crypt" and child.running), None)

    def takes(part: DesiredPartition) -> bool:
        return ground.layout.container_on(part.device) is not None

    desired = counterpart(ground, found, pair, device, takes)
    container = ground.layout.container_on(desired.desired.device) if desired is not None else None
    filesystem = ground.layout.filesystem_on(container.device) if container is not None else None
    if opened is None and container is not None and (filesystem is None or filesystem.type == BTRFS):
        found.openings.append(OpenLuks(str(device.dev), free_name(ground, container, "-old"), container.name))
    elif opened is None and container is None:
        unplanned(found, pair, device, "is a closed LUKS container")
    elif opened is None:
        copy_contents(ground, found, pair, device, LUKS)
    elif opened.filesystem is not None and opened.filesystem.type == BTRFS:
        move_btrfs(ground, found, pair, device, opened)
    elif present.physical_on(opened.name) is not None:
        return
    elif opened.filesystem is not None:
        where = f"; unmount it ({opened.mountpoints[0]})" if opened.mountpoints else ""
        name = str(opened.dev).rsplit("/", 1)[-1]
        closing = f"{where}, close it (cryptsetup close {name}), and run again: a closed one is copied"
        found.refusals.append(f"{no_way(pair, device, f'is a LUKS container with {opened.filesystem.type}, and open')}{closing}")
    elif desired is not None and desired.receiving and not tree.children(opened.name) and not opened.openers:
        # What was in it has moved, and the run was cut off before it was closed.
        close_container(ground, found, opened)


def of_one_btrfs(present: Present, device: Device) -> list[Device]:
    return [other for other in present.tree.devices.values() if other.filesystem is not None and other.filesystem == device.filesystem]


def move_btrfs(ground: Ground, found: Found, pair: Pair, carrier: Device, device: Device) -> None:
    """Plan the move of a Btrfs that is on a partition, or in the container on it."""
    uuid = device.filesystem.uuid if device.filesystem is not None else None
    members = of_one_btrfs(ground.present, device)

    def takes(part: DesiredPartition) -> bool:
        wanted = ground.layout.filesystem_on(_top(ground.layout, part.device))
        return wanted is not None and wanted.type == BTRFS and (not wanted.more or _is_of(ground, wanted, members))

    names = {member.name for member in members}
    match = counterpart(ground, found, pair, carrier, takes, lambda there: bool(names & _with_children(ground, there)))
    if match is None:
        unplanned(found, pair, device, "has a btrfs")
        return
    top = _top(ground.layout, match.desired.device)
    place = place_of(ground, match, lambda there: there.filesystem is not None and there.filesystem.uuid == uuid, "")
    if place.opening is not None:
        found.openings.append(place.opening)
        return
    room = capacity(ground.layout, top)
    found.refusals += [place.strange] if place.strange else []
    found.refusals += [too_small(match, device, device.size, room)] if room < device.size else []
    found.move(carrier.name, match)
    mountpoint = next((place for member in members for place in member.mountpoints), None)
    found.steps += [*place.steps, ReplaceDevice(str(device.dev), place.node, mountpoint)]
    close_container(ground, found, device)
    found.last += place.renaming


def _is_of(ground: Ground, wanted: DesiredFilesystem, members: Sequence[Device]) -> bool:
    """Return whether a desired Btrfs on several devices is one that is there: by those of its devices that stay, or have come."""
    names = {member.name for member in members}
    matches = [ground.matches.get(part.device) for device in wanted.devices for part in ground.layout.partitions_below(device)]
    there = [match.device.name for match in matches if match is not None and match.device is not None]
    news = {pair.new.device.name for pair in ground.pairs}
    all_new = all(match is not None and match.disk.device.name in news for match in matches)
    return all_new or any(names & _with_children(ground, ground.present.tree.devices[name]) for name in there)


def _with_children(ground: Ground, device: Device) -> set[str]:
    return {device.name, *(child.name for child in ground.present.tree.children(device.name))}


def _top(layout: Layout, device: str) -> str:
    container = layout.container_on(device)
    return container.device if container is not None else device


def move_zfs(ground: Ground, found: Found, pair: Pair, device: Device) -> None:
    pool = ground.present.zpool_on(device)
    if pool is None:
        found.refusals.append(no_way(pair, device, "belongs to a ZFS pool that is not imported"))
        return
    wanted = next((each for each in ground.layout.zpools if each.name == pool.name), None)
    match = counterpart(
        ground,
        found,
        pair,
        device,
        lambda part: wanted is not None and ground.layout.zpool_on(part.device) is wanted,
        lambda there: ground.present.zpool_on(there) is pool,
    )
    if match is None or wanted is None:
        unplanned(found, pair, device, f"belongs to the ZFS pool {pool.name}")
        return
    there = match.device is not None and ground.present.zpool_on(match.device) is pool
    strange = None if there else strange_on(match, lambda kind, uuid: kind == zfs.MEMBER and uuid == pool.guid)
    found.refusals += [strange] if strange else []
    found.refusals += [too_small(match, device, device.size, match.desired.size)] if match.desired.size < device.size else []
    found.refusals += (
        [f"replace: the ZFS pool {pool.name} is {pool.health}; complete it before"] if pool.health not in (*zfs.WHOLE, "DEGRADED") else []
    )
    found.move(device.name, match)
    found.steps += [] if there else [ClearSignatures((match.node,), MIB)]
    known = match.desired.device if match.desired.device.startswith("/dev/disk/") else match.node
    found.steps.append(ReplaceVdev(pool.name, str(device.dev), match.node, known))


def copy_contents(ground: Ground, found: Found, pair: Pair, device: Device, kind: str) -> None:
    """Plan the copy of what is on one partition alone, and in use by nobody."""
    layout = ground.layout

    def takes(part: DesiredPartition) -> bool:
        if kind == LUKS:
            return layout.container_on(part.device) is not None
        wanted = layout.filesystem_on(part.device)
        return wanted is not None and wanted.type == kind and part.type not in MADE_ANEW

    match = counterpart(ground, found, pair, device, takes)
    if match is None:
        unplanned(found, pair, device, f"has {kind}")
        return
    users = [*(f"mounted on {place}" for place in device.mountpoints), *device.uses, *(f"open in {each}" for each in device.openers)]
    if users:
        advice = f"unmount it (umount {device.mountpoints[0]})" if device.mountpoints else "end that"
        says = f"{no_way(pair, device, f'has {kind}, and is {users[0]}')} while it is in use"
        found.refusals.append(f"{says}; {advice}, and run again: it is copied then. On LVM or a mirror it would move while mounted")
        return
    uuid = device.filesystem.uuid if device.filesystem is not None else None
    strange = strange_on(match, lambda there, own: (there, own) == (kind, uuid))
    found.refusals += [strange] if strange else []
    found.refusals += [too_small(match, device, device.size, match.desired.size)] if match.desired.size < device.size else []
    found.move(device.name, match)
    found.steps.append(CopyContents(str(device.dev), match.node, device.size, kind))
