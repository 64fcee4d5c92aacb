# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A layout that was made by hand -> the static schema of what is there, which disk_layout takes over without a change.

Everything in the schema keeps its data. What a static schema has no words for, or what cannot be looked into, is left out of it and
stays as it is; `notes` say what that is and why. Sizes are whole MiB: a partition that ends between two of them ends before in the schema,
which disk_layout takes for the same.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..facts.host import Host
from ..facts.reader import read_devices
from ..facts.select import LEFT_OUT, Disk, find_disks
from ..facts.tree import Device
from ..schema.model import DesiredDisk, Layout
from ..schema.static import is_array_name
from ..storage import gpt
from ..storage.btrfs import BTRFS
from ..storage.cache import MODES, is_fast_part, is_part
from ..storage.filesystems import FILESYSTEMS, NOT_MOUNTED, SWAP
from ..storage.lvm import is_extent, mapper_node
from ..storage.raid import RaidLevel
from ..storage.units import MIB
from .disks import find_disks as find_layout_disks
from .partitions import describe, entry_of
from .present import LogicalVolume, Present, VolumeGroup
from .read_present import read_present

Plain = dict[str, t.Any]

_METADATA = ("1.0", "1.1", "1.2")
_SWAP_PLACE = "[SWAP]"
_KEPT: Plain = {"keep_data": True}


@dataclass
class Adopted:
    """The explicit static schema, and what was left out of it. `names` are what devices (by kernel names) are called in the schema."""

    schema: dict[str, list[Plain]] = field(
        default_factory=lambda: {name: [] for name in ("parteds", "mds", "luks", "pvs", "vgs", "lvs", "fss")}
    )
    notes: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def leave_out(self, device: str, why: str) -> None:
        """Note what is not in the schema."""
        self.notes.append(f"{device} is left out of the schema, and stays as it is: {why}")


def adopt(present: Present, disks: Sequence[Disk]) -> Adopted:
    """Return the static schema of what is on these disks."""
    found = Adopted()
    for disk in disks:
        _add_disk(found, present, disk)
    # An array can lie on nothing but partitions, a container on both, and a group on all of them; volumes can carry containers.
    for device in _running(present, "raid"):
        _add_array(found, present, device)
    _add_containers(found, present)
    for group in present.groups():
        _add_group(found, present, group)
    _add_containers(found, present)
    for device in [present.tree.devices[name] for name in found.names]:
        _add_filesystem(found, present, device)
    return found


def read_disks(host: Host, names: Sequence[str]) -> Layout:
    """Return a layout of nothing but the disks of these names, or of all that the host has to install on."""
    disks = find_disks(read_devices(host, []), [])
    own = names or [disk.id for disk in disks if disk.transport not in LEFT_OUT]
    return Layout(tuple(DesiredDisk(f"disks[{at}]", name, name, None, ()) for at, name in enumerate(own)))


def take_over(host: Host, names: Sequence[str]) -> tuple[Adopted, tuple[str, ...]]:
    """Return the static schema of what is on the disks of these names, all where there are none; and what is wrong with the names."""
    wanted = read_disks(host, names)
    present = read_present(host, wanted)
    disks, refusals = find_layout_disks(wanted, present, ())
    return adopt(present, [disk.disk for disk in disks]), refusals


def _running(present: Present, kind: str) -> Iterator[Device]:
    return (device for device in present.tree.devices.values() if device.kind.startswith(kind) and device.running and not device.inactive)


def _node(device: Device) -> str:
    return device.dev or device.name


# ---- partitions


def _add_disk(found: Adopted, present: Present, disk: Disk) -> None:
    device = present.tree.devices[disk.device.name]
    if device.table is None or device.table.type != "gpt":
        if device.table is not None or device.signatures or present.tree.children(device.name):
            found.leave_out(disk.id, f"it has no GPT, but {describe(present.tree, device)}")
        return
    partitions = tuple(_partitions(found, present, disk, device))
    if partitions:
        table = {"name": disk.id, "disk_id": disk.id, "disk_size": device.size // MIB, "label": "gpt", "partitions": list(partitions)}
        found.schema["parteds"].append(table)


def _partitions(found: Adopted, present: Present, disk: Disk, device: Device) -> Iterator[Plain]:
    free = gpt.HEAD
    parts = [part for part in present.tree.children(device.name) if part.partition is not None and part.running]
    for part in sorted(parts, key=lambda part: entry_of(part).start):
        entry = entry_of(part)
        begin = max(gpt.HEAD, entry.start // MIB)
        end = begin + max(1, entry.size // MIB)
        if begin < free or end > device.size // MIB - gpt.TAIL:
            found.leave_out(_node(part), "it does not lie in whole MiB that are its own")
            continue
        free, name = end, gpt.partition_node(disk.id, entry.number)
        found.names[part.name] = name
        label = {"partition_label": entry.name} if entry.name and gpt.why_no_name(entry.name) is None else {}
        yield {"name": name, "count": entry.number, "begin": begin, "end": end, "guid": entry.type, "uuid": entry.uuid, **label, **_KEPT}


# ---- arrays and containers


def _add_array(found: Adopted, present: Present, device: Device) -> None:
    members = [found.names[name] for name in device.parents if name in found.names]
    title = str(device.title or "").rpartition(":")[2]
    name = next((name for name in (f"/dev/md/{title}", _node(device)) if is_array_name(name)), None)
    if not members:
        return
    if len(members) < len(device.parents):
        found.leave_out(_node(device), "not all of its members are partitions of the schema")
    elif device.kind not in list(RaidLevel) or device.metadata not in _METADATA or name is None:
        found.leave_out(_node(device), f"it is {device.kind} with metadata {device.metadata}")
    elif device.slots is None or len(members) < device.slots:
        found.leave_out(_node(device), "it lacks a member")
    else:
        spares = {"spares": members[device.slots :]} if members[device.slots :] else {}
        entry = {"name": name, "level": device.kind, "devices": members[: device.slots], "metadata": device.metadata, **spares, **_KEPT}
        found.schema["mds"].append(entry)
        found.names[device.name] = name


def _add_containers(found: Adopted, present: Present) -> None:
    for name, below in tuple(found.names.items()):
        device = present.tree.devices[name]
        if device.filesystem is None or device.filesystem.type != "crypto_LUKS":
            continue
        opened = _opened(present, device)
        if opened is not None and opened.name not in found.names:
            mapping = _node(opened).rpartition("/")[2]
            found.schema["luks"].append({"name": mapping, "device": below, **_KEPT})
            found.names[opened.name] = f"/dev/mapper/{mapping}"


def _opened(present: Present, device: Device) -> t.Optional[Device]:
    return next((child for child in present.tree.children(device.name) if child.kind == "crypt" and child.running), None)


# ---- LVM


def _add_group(found: Adopted, present: Present, group: VolumeGroup) -> None:
    on = [volume.device for volume in group.physical]
    here = [found.names[device] for device in on if device in found.names]
    if not here:
        return
    if len(here) < len(on):
        found.leave_out(f"the volume group {group.name}", "not all of its physical volumes are in the schema")
    elif not is_extent(group.extent_size // MIB):
        found.leave_out(f"the volume group {group.name}", f"its extents are of {group.extent_size} bytes")
    else:
        found.schema["pvs"] += [{"name": name, **_KEPT} for name in here]
        found.schema["vgs"].append({"name": group.name, "pvnames": here, "extent_size": group.extent_size // MIB, **_KEPT})
        for volume in group.volumes:
            _add_volume(found, present, group, volume)


def _add_volume(found: Adopted, present: Present, group: VolumeGroup, volume: LogicalVolume) -> None:
    device, physical = present.device_of(volume), {known.device for known in group.physical}
    title = f"the logical volume {group.name}/{volume.name}"
    if volume.is_pool:
        parts = {"size": volume.size // MIB, "metadata_size": volume.metadata // MIB, "chunk_size": volume.chunk // 1024}
        found.schema.setdefault("thin_pools", []).append({"name": volume.name, "vgname": group.name, **parts, **_KEPT})
    elif device is None or not device.running:
        found.leave_out(title, "it is not active")
    elif volume.pool:
        entry = {"name": volume.name, "vgname": group.name, "size": volume.size // MIB, "pool": volume.pool}
        found.schema["lvs"].append({**entry, **_KEPT})
        found.names[device.name] = mapper_node(group.name, volume.name)
    elif volume.cache:
        _add_cached(found, present, group, volume, device)
    elif not set(device.parents) <= physical or any(child.kind == "lvm" for child in present.tree.children(device.name)):
        found.leave_out(title, "it is not a linear volume")
    else:
        found.schema["lvs"].append({"name": volume.name, "vgname": group.name, "size": volume.size // MIB, **_KEPT})
        found.names[device.name] = mapper_node(group.name, volume.name)


def _add_cached(found: Adopted, present: Present, group: VolumeGroup, volume: LogicalVolume, device: Device) -> None:
    """Add a volume with its cache, if the cache is all of one physical volume, and the volume linear on others."""
    slow, fast = _below_cached(present, device)
    physical = {str(known.device): known.free for known in group.physical}
    alone = len(fast) == 1 and physical.get(next(iter(fast))) == 0
    if not alone or not slow or not slow <= set(physical) - fast or volume.mode not in MODES:
        found.leave_out(f"the logical volume {group.name}/{volume.name}", "it is cached in another way than by all of one physical volume")
        return
    (on,) = fast
    found.schema["lvs"].append({"name": volume.name, "vgname": group.name, "size": volume.size // MIB, **_KEPT})
    entry = {"name": volume.cache, "vgname": group.name, "origin": volume.name, "device": found.names[on], "mode": volume.mode}
    found.schema.setdefault("caches", []).append({**entry, **_KEPT})
    found.names[device.name] = mapper_node(group.name, volume.name)


def _below_cached(present: Present, device: Device) -> tuple[set[str], set[str]]:
    """Return what a cached volume lies on, and what its cache does."""
    slow: set[str] = set()
    fast: set[str] = set()
    todo = [(present.tree.devices[name], slow) for name in device.parents]
    while todo:
        part, below = todo.pop()
        if not (part.is_part and is_part(_node(part))):
            below.add(part.name)
            continue
        below = fast if is_fast_part(_node(part)) else below
        todo += [(present.tree.devices[name], below) for name in part.parents]
    return slow, fast


# ---- file systems


def _add_filesystem(found: Adopted, present: Present, device: Device) -> None:
    there = device.filesystem
    if there is None or there.type.endswith("_member"):
        return
    if there.type == "crypto_LUKS":
        if _opened(present, device) is None:
            found.leave_out(f"the LUKS container on {_node(device)}", "it is closed; open it to have what is in it looked at")
    elif there.type not in FILESYSTEMS:
        found.leave_out(f"the {there.type} on {_node(device)}", "it is none of the file systems that are made here")
    elif there.type == BTRFS and _count(present, there.uuid) > 1:
        found.leave_out(f"the {there.type} on {_node(device)}", "it is on several devices")
    else:
        label = {"fs_label": there.label} if there.label else {}
        entry = {"device": found.names[device.name], "fs_type": there.type, "mount": _mount(device), "uuid": there.uuid}
        found.schema["fss"].append({**entry, **label, **_KEPT})


def _count(present: Present, uuid: t.Optional[str]) -> int:
    return sum(device.filesystem is not None and device.filesystem.uuid == uuid for device in present.tree.devices.values())


def _mount(device: Device) -> str:
    """Return where it is mounted; of a Btrfs subvolumes are, of which nothing is known here."""
    filesystem: Mapping[str, t.Any] = {} if device.filesystem is None else vars(device.filesystem)
    if filesystem.get("type") == SWAP:
        return SWAP if _SWAP_PLACE in device.mountpoints else NOT_MOUNTED
    places = [place for place in device.mountpoints if place.startswith("/") and filesystem.get("type") != BTRFS]
    return min(places, key=len, default=NOT_MOUNTED)
