# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volume groups that are moved off disks: each as a whole, from all its old physical volumes to its new ones, while it is in use. Pure."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Sequence

from .._facts.present import PhysicalVolume, VolumeGroup
from .._facts.tree import Device
from .._schema.model import DesiredPhysicalVolume
from .._steps.lvm import CreatePhysicalVolume, ExtendVolumeGroup
from .._steps.pvmove import LeaveGroup, MoveExtents
from .._storage.units import in_mib
from .capacity import EXTENT, extents_of
from .moving import ARRAYS, PHYSICAL, Found, Ground, Place, close_container, place_of, unplanned
from .partitions import PartitionMatch
from .replacing import Pair

_ROOTS = frozenset({"/", "/usr"})


def move_groups(ground: Ground, found: Found) -> None:
    present, planned = ground.present, {group.name: group for group in ground.layout.groups}
    orphans = [volume for volume in present.physical if volume.group is None and _old_source(ground, volume) is not None]
    for known in present.groups():
        sources = [volume for volume in known.physical if _old_source(ground, volume) is not None]
        desired = planned.get(known.name)
        targets = [volume for volume in desired.physical if ground.on_new(volume.device) is not None] if desired is not None else []
        if sources and (desired is None or not targets):
            for volume in sources:
                device = present.tree.devices[str(volume.device)]
                unplanned(found, t.cast(Pair, ground.pair_of(device.name)), device, f"is a physical volume of {known.name}")
        elif desired is not None and targets:
            _move_group(ground, found, known, sources, targets, orphans)
    there = {known.name for known in present.groups()}
    for desired in (group for group in ground.layout.groups if group.name not in there) if orphans else ():
        # It may be as a whole in a container that a start did not open.
        matches = [
            match for match in (ground.on_new(volume.device) for volume in desired.physical) if match is not None and match.receiving
        ]
        places = [place_of(ground, match, lambda _device: False, PHYSICAL) for match in matches]
        found.openings += [place.opening for place in places if place.opening is not None]


def _old_source(ground: Ground, volume: PhysicalVolume) -> t.Optional[Device]:
    """Return the device of a physical volume that lies on an old disk alone, and in no array, whose members are replaced."""
    device = ground.present.tree.devices.get(str(volume.device)) if volume.device is not None else None
    if device is None or device.kind.startswith(ARRAYS) or ground.pair_of(device.name) is None:
        return None
    below = [ground.present.tree.devices[name] for name in device.parents if name in ground.present.tree.devices]
    return None if any(each.kind.startswith(ARRAYS) for each in below) else device


def _move_group(
    ground: Ground,
    found: Found,
    known: VolumeGroup,
    sources: Sequence[PhysicalVolume],
    targets: Sequence[DesiredPhysicalVolume],
    orphans: list[PhysicalVolume],
) -> None:
    devices = [t.cast(Device, _old_source(ground, volume)) for volume in sources]
    matches = [t.cast(PartitionMatch, ground.on_new(volume.device)) for volume in targets]
    places = [place_of(ground, match, lambda device: _is_in(ground, device, known), PHYSICAL) for match in matches]
    moving = bool(sources) or any(place.there for place in places)
    if not moving:
        return
    openings = [place.opening for place in places if place.opening is not None]
    if openings:
        # It may be in the group already.
        found.openings += openings
        return
    if sources and known.incomplete:
        found.refusals.append(
            f"replace: the volume group {known.name} lacks a physical volume; nothing is moved in it until it is complete"
        )
        return
    found.refusals += [place.strange for place in places if place.strange and sources]
    found.refusals += _too_little_room(ground, known, sources, targets, places)
    if sources:
        found.receiving += matches
        found.moved.update({_carrier_of(source): match for source, match in zip(devices, matches)})
        encrypted = [device.kind == "crypt" for device in devices]
        found.vague |= encrypted != [ground.layout.container_on(match.desired.device) is not None for match in matches]
        found.refusals += _starts_from(ground, known, devices)
        for volume, place in zip(targets, places):
            found.steps += place.steps
            if not place.there:
                found.steps.append(CreatePhysicalVolume(place.node, volume.metadata_size, volume.metadata_copies, False))
        joining = tuple(place.node for place in places if not place.there)
        found.steps += [ExtendVolumeGroup(known.name, joining)] if joining else []
        nodes = [place.node for place in places]
        for at, (source, device) in enumerate(zip(sources, devices)):
            to = (nodes[at],) if len(nodes) == len(sources) else tuple(nodes)
            found.steps += [MoveExtents(known.name, str(device.dev), to)] if source.free < source.size else []
            found.steps.append(LeaveGroup(known.name, str(device.dev)))
            close_container(ground, found, device)
    while orphans and any(place.there for place in places):
        # It left the group, and the run was cut off before it was no physical volume any more.
        device = t.cast(Device, _old_source(ground, orphans.pop()))
        found.steps.append(LeaveGroup(known.name, str(device.dev)))
        close_container(ground, found, device)
    found.last += [step for place in places for step in place.renaming]


def _is_in(ground: Ground, device: Device, group: VolumeGroup) -> bool:
    volume = ground.present.physical_on(device.name)
    return volume is not None and volume.group_uuid == group.uuid


def _starts_from(ground: Ground, known: VolumeGroup, sources: Sequence[Device]) -> Iterator[str]:
    """Give a refusal where the machine starts from a group in LUKS: after a power cut nothing opens the new container early enough."""
    if not any(device.kind == "crypt" for device in sources):
        return
    devices = [device for volume in known.volumes for device in ground.present.devices_of(volume)]
    every = [each for device in devices for each in (device, *ground.present.tree.descendants(device.name))]
    if any(_ROOTS & set(each.mountpoints) for each in every):
        yield (
            f"replace: the volume group {known.name} lies in LUKS, and this machine runs from it: were it cut off in the middle, it would "
            "not start any more, for nothing opens the new container that early; move it from a rescue system"
        )


def _carrier_of(device: Device) -> str:
    """Return the name of the partition that a container is on, or of the device itself."""
    return device.parents[0] if device.kind == "crypt" and device.parents else device.name


def _too_little_room(
    ground: Ground,
    known: VolumeGroup,
    sources: Sequence[PhysicalVolume],
    targets: Sequence[DesiredPhysicalVolume],
    places: Sequence[Place],
) -> Iterator[str]:
    """Give a refusal where what the group has on old disks does not fit onto the new ones."""
    extent = known.extent_size or EXTENT
    used = sum((volume.size - volume.free) // extent for volume in sources)
    here = {volume.device: volume for volume in known.physical}
    room = 0
    for volume, place in zip(targets, places):
        device = ground.present.tree.by_node(place.node) if place.there else None
        joined = here.get(device.name) if device is not None else None
        if joined is None:
            room += extents_of(ground.layout, volume, extent)
            continue
        moving = min(_hidden(known, joined, extent), sum(_hidden(known, source, extent) for source in sources))
        room += joined.free // extent + moving
    if used > room:
        yield (
            f"replace: the volume group {known.name} has {used} extents of {in_mib(extent)} to be moved, but "
            f"{', '.join(each.device for each in targets)} room for {room}: {in_mib((used - room) * extent)} too few"
        )


def _hidden(known: VolumeGroup, volume: PhysicalVolume, extent: int) -> int:
    """Return the extents of a physical volume that no visible logical volume has: pvmove has those of a move that was cut off, on both."""
    seen = sum(each.extents.get(volume.device or "", 0) for each in known.volumes)
    return max(0, (volume.size - volume.free) // extent - seen)
