# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""By which UUIDs and nodes the things of a layout are found: those that are there and stay, and those that are to be made. Pure."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping
from dataclasses import dataclass

from .._facts.present import Present
from .._facts.tree import Device
from .._schema.model import DesiredArray, DesiredContainer, DesiredFilesystem, DesiredVolume, Layout
from .._storage import derived
from .contents import judge_stacks
from .disks import FoundDisk
from .partitions import PartitionMatch, match_disk
from .salted import with_salts
from .stack import Action, Stack
from .table_names import table_names

Plain = dict[str, t.Any]


@dataclass(frozen=True)
class _Known:
    """The layout, the state, and the present partitions and arrays of the layout that stay."""

    layout: Layout
    present: Present
    matches: Mapping[str, PartitionMatch]
    stacks: Mapping[str, Stack]
    names: Mapping[str, tuple[str, ...]]


def identities(layout: Layout, present: Present, found: tuple[FoundDisk, ...]) -> dict[str, list[Plain]]:
    """Return `{arrays, containers, filesystems}`, each thing with `device` as the schema calls it, its `uuid`, and its `node` of this boot.

    What is not there yet has the UUID that it will have, and no node. File systems have their `mountpoints`; they and containers have the
    `names` by which the host's tables may call them.
    """
    known = _known(layout, present, found)
    return {
        "arrays": [_array(known, array) for array in layout.arrays],
        "containers": [_container(known, container) for container in layout.containers],
        "filesystems": [_filesystem(known, filesystem) for filesystem in layout.filesystems],
    }


def headers(layout: Layout, present: Present, found: tuple[FoundDisk, ...]) -> dict[str, str]:
    """Return the nodes of the LUKS headers that are there and stay, by the name of their container."""
    known = _known(layout, present, found)
    below = {container.name: _below(known, container.below) for container in layout.containers}
    kept = {name: device for name, device in below.items() if device is not None and device.dev is not None}
    return {name: str(device.dev) for name, device in kept.items() if device.filesystem and device.filesystem.type == "crypto_LUKS"}


def _known(layout: Layout, present: Present, found: tuple[FoundDisk, ...]) -> _Known:
    layout, found = with_salts(layout, present, found)
    matches = {match.desired.device: match for disk in found for match in match_disk(disk, present.tree)}
    stacks = {stack.device: stack for stack in judge_stacks(layout, present, matches) if stack.action is not Action.BUILD}
    return _Known(layout, present, matches, stacks, table_names(present.tree))


def _array(known: _Known, array: DesiredArray) -> Plain:
    device = _below(known, array.device)
    uuid = device.uuid if device is not None and device.uuid else known.layout.identity(array.device)
    return {"device": array.device, "uuid": uuid, "node": _node(device)}


def _container(known: _Known, container: DesiredContainer) -> Plain:
    below = _below(known, container.below)
    there = below.filesystem if below is not None else None
    uuid = there.uuid if there is not None and there.type == "crypto_LUKS" else None
    derived_uuid = derived.container_uuid(known.layout.identity(container.below))
    unlock = [method.plain() for method in container.unlock]
    return {
        "name": container.name,
        "device": container.below,
        "uuid": uuid or derived_uuid,
        "node": _node(below),
        "unlock": unlock,
        "names": _table_names(known, below),
    }


def _filesystem(known: _Known, filesystem: DesiredFilesystem) -> Plain:
    device = _top(known, filesystem.device)
    there = device.filesystem if device is not None else None
    uuid = there.uuid if there is not None and there.type == filesystem.type else None
    container = _container_at(known, filesystem.device)
    below = known.layout.identity(container.below if container is not None else filesystem.device)
    derived_uuid = filesystem.uuid or derived.filesystem_uuid(filesystem.type, below)
    members = [_top(known, each) for each in filesystem.devices] if uuid else []
    # The kernel names one of several devices.
    mountpoints = list(dict.fromkeys(place for member in members if member is not None for place in member.mountpoints))
    return {
        "device": filesystem.device,
        "type": filesystem.type,
        "uuid": uuid or derived_uuid,
        "node": _node(device),
        "mountpoints": mountpoints,
        "names": _table_names(known, device if uuid else None),
    }


def _table_names(known: _Known, device: t.Optional[Device]) -> list[str]:
    return list(known.names.get(device.name, ())) if device is not None else []


def _node(device: t.Optional[Device]) -> t.Optional[str]:
    return device.dev if device is not None else None


def _below(known: _Known, device: str) -> t.Optional[Device]:
    """Return the present device of a partition, an array or a volume; None when there is none that stays."""
    thing = known.layout.thing(device)
    if isinstance(thing, DesiredVolume):
        disks = {match.disk.device.name for match in known.matches.values()}
        descendants = (device for name in disks for device in known.present.tree.descendants(name))
        return next((device for device in descendants if (device.group, device.title) == (thing.group, thing.name)), None)
    stack = known.stacks.get(device)
    if stack is not None and stack.array is None:
        return stack.matches[0].device
    filesystem = known.layout.filesystem_on(device)
    if filesystem is not None and device in filesystem.more:
        return known.matches[device].device if filesystem.device in known.stacks else None
    members = {match.device.name for match in stack.matches if match.device is not None} if stack is not None else set()
    children = (child for name in members for child in known.present.tree.children(name) if child.running)
    return next((child for child in children if child.kind.startswith("raid")), None)


def _top(known: _Known, device: str) -> t.Optional[Device]:
    """Return the present device on which a file system is."""
    container = _container_at(known, device)
    if container is None:
        return _below(known, device)
    below = _below(known, container.below)
    children = known.present.tree.children(below.name) if below is not None else ()
    return next((child for child in children if child.kind == "crypt" and child.running), None)


def _container_at(known: _Known, device: str) -> t.Optional[DesiredContainer]:
    return next((container for container in known.layout.containers if container.device == device), None)
