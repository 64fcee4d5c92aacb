# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads whether somebody has used what an earlier run made and did not finish: unfinished partitions and volumes, and all on them.

Closed or stopped devices are judged from outside first: a container into which nothing was written, an array that never
ran, has nobody's data. Others have to be opened.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .._facts.host import Host
from .._facts.present import Present
from .._facts.stacks import parse_superblock, superblock_command
from .._facts.tree import Device
from .._facts.untouched import BEFORE, ZEROS, Left, left_by_tool, trace_in_closed, trace_in_opened, trace_of_use
from .._schema.model import DesiredArray, DesiredFilesystem, DesiredGroup, Layout, User
from .._storage.lvm import CLEARED
from .._storage.overhead import LUKS_HEAD
from .._storage.units import MIB
from .disks import find_disks
from .salted import with_salts

_LUKS, _MEMBER, _PHYSICAL, _ZFS = "crypto_LUKS", "linux_raid_member", "LVM2_member", "zfs_member"
_ARRAYS = ("raid", "linear", "md")
_SNAPSHOTS = ".zfs"
"""What ZFS shows in each dataset with `snapdir=visible`."""


@dataclass(frozen=True)
class _Begun:
    """What a run leaves on an unfinished partition or volume, and in the LUKS container on it."""

    outside: Left
    inside: Left


def read_traces(host: Host, present: Present, layout: Layout) -> tuple[dict[str, str], dict[str, str]]:
    """Return by device name traces of use on unfinished devices, and unfinished devices that are closed and have contents."""
    traces: dict[str, str] = {}
    sealed: dict[str, str] = {}
    for name, begun in dict(_begun(present, layout)).items():
        own = present.tree.devices[name]
        for device in (own, *present.tree.descendants(name)):
            if device.dev is None or device.is_part or device.inactive or device.row.get("suspended"):
                continue
            if present.zpool_on(device) is not None:
                trace = _trace_in_pool(host, present, layout, device)
            else:
                trace = _trace(host, device, begun.outside) if device is own else _trace_in(host, present, device, begun.inside)
            traces.update({} if trace is None else {device.name: trace})
            closed = _closed(host, present, device)
            sealed.update({} if closed is None else {device.name: closed})
    return traces, sealed


def _begun(present: Present, layout: Layout) -> Iterator[tuple[str, _Begun]]:
    """Give the names of unfinished partitions and volumes of a layout, and what a run leaves on them."""
    listed, _refusals = find_disks(layout, present, ())
    layout, listed = with_salts(layout, present, listed)
    below = [device for disk in listed for device in present.tree.descendants(disk.device.name)]
    # Disk by disk: a cut of the power may leave each disk at another moment of the run, and a copied table has the same PARTUUIDs.
    for disk in listed:
        there = [(child.partition.uuid, child.name) for child in present.tree.children(disk.device.name) if child.partition is not None]
        yield from _in_turn(
            layout,
            [
                (part.device, name)
                for part in disk.desired.partitions
                for uuid, name in there
                if uuid is not None and uuid in (part.unfinished, part.receiving)
            ],
        )
    nodes = {device.uuid: device.name for device in below if device.kind == "lvm" and not device.is_part}
    # Another host's disk may have a group with the same names.
    begun = [volume for volume in present.logical if volume.uuid in nodes and volume.unfinished and CLEARED in volume.tags]
    cleared = {(volume.group, volume.name): volume.uuid for volume in begun}
    for group in layout.groups:
        uuids = ((volume.device, cleared.get((volume.group, volume.name))) for volume in layout.volumes_of(group.name))
        yield from _in_turn(layout, [(device, nodes[uuid]) for device, uuid in uuids if uuid in nodes])


def _in_turn(layout: Layout, unfinished: Sequence[tuple[str, str]]) -> Iterator[tuple[str, _Begun]]:
    """Give what a run leaves on devices of one disk or group that it fills one after the other, each finished before the next is begun.

    Each is a desired device and the name of the present one. Only the first file system that is not finished can be half made; those on
    arrays and on several devices come after all others.
    """
    first: t.Optional[str] = None
    for device, name in unfinished:
        container = layout.container_on(device)
        top = container.device if container is not None else device
        user = layout.lies_on(top)
        if isinstance(user, DesiredFilesystem):
            first = first or (None if user.more else device)
            inside = left_by_tool(user.type, user.options) if user.more or first == device else ZEROS
        else:
            inside = ZEROS if user is None else left_by_tool(_kind(user))
        yield name, _Begun(inside if container is None else left_by_tool(_LUKS), inside)


def _kind(user: User) -> str:
    return _MEMBER if isinstance(user, DesiredArray) else _PHYSICAL if isinstance(user, DesiredGroup) else _ZFS


def _trace(host: Host, device: Device, left: Left) -> t.Optional[str]:
    kind = device.filesystem.type if device.filesystem is not None else None
    return trace_of_use(host, str(device.dev), device.size, kind, left)


def _trace_in_pool(host: Host, present: Present, layout: Layout, device: Device) -> t.Optional[str]:
    """Return what shows that the imported ZFS pool of a device was used: ZFS mounts what a run makes in it."""
    pool = present.zpool_on(device)
    desired = next((each for each in layout.zpools if pool is not None and each.name == pool.name), None)
    if pool is None or desired is None:
        return None
    own = [f"{dataset.name}/" for dataset in desired.datasets]
    strange = next((name for name in pool.datasets if name and not any(each.startswith(f"{name}/") for each in own)), None)
    if strange is not None:
        return f"no run of this layout has made the dataset {pool.name}/{strange}"
    for place in pool.mounted:
        below = {other[len(place) :].lstrip("/").partition("/")[0] for other in pool.mounted if other.startswith(f"{place.rstrip('/')}/")}
        if set(host.names(place)) - below - {_SNAPSHOTS}:
            return f"there are files in it, on {place}"
    return None


def _trace_in(host: Host, present: Present, device: Device, left: Left) -> t.Optional[str]:
    """Return what shows that something that is built on an unfinished device was used; volumes of LVM have marks of their own."""
    if device.filesystem is not None or device.kind.startswith(_ARRAYS):
        return _trace(host, device, BEFORE)
    below = next((present.tree.devices[name].dev for name in device.parents if name in present.tree.devices), None)
    begin = device.luks.data_start if device.luks is not None else None
    if below is None or begin is None:
        return None
    return trace_in_opened(host, str(device.dev), device.size, below, begin, left)


def _closed(host: Host, present: Present, device: Device) -> t.Optional[str]:
    """Return what is closed or stopped on a device and has something in it, in words."""
    kind = device.filesystem.type if device.filesystem is not None else None
    children = present.tree.children(device.name)
    if kind == _LUKS and not any(child.kind == "crypt" and child.running for child in children):
        header = next((child.luks for child in children if child.kind == "crypt"), None)
        if header is not None and not header.key_slots:
            return None
        begin = header.data_start if header is not None and header.data_start is not None else LUKS_HEAD * MIB
        trace = trace_in_closed(host, str(device.dev), device.size, begin)
        return None if trace is None else f"a closed LUKS container, and {trace}"
    if kind == _MEMBER and not any(child.kind.startswith(_ARRAYS) and child.running for child in children):
        outcome = host.run(superblock_command(str(device.dev)))
        superblock = parse_superblock(outcome.stdout) if outcome is not None and outcome.code == 0 else None
        return "a member of an array that ran, and is stopped" if superblock is None or superblock.events else None
    return None
