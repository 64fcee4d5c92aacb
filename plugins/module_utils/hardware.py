# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The facts: a host's memory, firmware and disks as plain data, the shape that disk_plan takes.

MiB are rounded down everywhere; what is exact stands beside it in bytes.
"""

from __future__ import annotations

import fnmatch
import typing as t
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from . import identity
from .assembled import read_stacks
from .blockdev import PARTITION_TABLES, Device, Tree
from .host import Host
from .reader import Notes, is_visibly_used, read_claims, read_contents, read_devices
from .sysfs import read_firmware, read_memory

MIB = 1024**2

LEFT_OUT = ("loop", "ram", "zram", "floppy", "optical")
"""Transports of what is no disk to install on; asked for by name only."""

_SEVERAL_PATHS = frozenset({"fc", "iscsi", "sas", "scsi", "nvme"})
"""Transports over which one disk can be reached on several ways. Elsewhere (USB bridges) equal names are sloppy makers' work."""

Facts = dict[str, t.Any]


@dataclass(frozen=True)
class Disk:
    """A disk: the device to use, its identity, and the devices that are paths to it (itself when there is only one)."""

    device: Device
    id: str
    path: t.Optional[str]
    links: tuple[str, ...]
    transport: t.Optional[str]
    source: Device
    paths: tuple[Device, ...]
    multipath: bool = False

    @property
    def order(self) -> tuple[t.Any, ...]:
        """What sorts disks by where they are attached."""
        return identity.order_key(identity.attachment(self.path, self.source.row.get("devpath")), self.source.dev or "")


def read_hardware(host: Host, include: Iterable[str] = (), patterns: Sequence[str] = ()) -> tuple[Facts, tuple[str, ...]]:
    """Return the facts of a host and warnings.

    `include` names transports of LEFT_OUT to take in; `patterns` are globs of which one has to match a disk's node, id, path or a link.
    """
    notes: Notes = []
    tree = read_devices(host, notes)
    disks = select_disks(find_disks(tree, notes), include, patterns, notes)
    names = [disk.device.name for disk in disks]
    tree = read_contents(host, tree, names, notes)
    tree = read_stacks(host, tree, names, notes)
    tree = read_claims(host, tree, names)
    memory = read_memory(host)
    if memory is None:
        notes.append("/proc/meminfo cannot be read: the size of the memory is not known")
    described = [describe_disk(tree, disk) for disk in disks]
    unread = [fact["dev"] for fact in described if not fact["probed"]]
    if unread:
        notes.append(
            f"not everything on {', '.join(unread)} could be read for signatures (that takes root, and wipefs of util-linux): "
            "content is only what udev and the mounts tell, and empty is false"
        )
    return {"ram": memory, "firmware": read_firmware(host), "disks": described}, tuple(dict.fromkeys(notes))


def find_disks(tree: Tree, notes: Notes) -> tuple[Disk, ...]:
    """Return the disks of a tree in the order of where they are attached; a disk with several paths is one disk."""
    single = [_disk(device) for device in tree.roots() if identity.is_disk(device.name, device.kind)]
    mapped = [_mapped_disk(device, tree) for device in tree.devices.values() if device.kind == "mpath"]
    legs = {path.name for disk in mapped for path in disk.paths}
    plain = _join_paths([disk for disk in single if disk.device.name not in legs], notes)
    return tuple(sorted([*plain, *mapped], key=lambda disk: disk.order))


def select_disks(disks: Iterable[Disk], include: Iterable[str], patterns: Sequence[str], notes: Notes) -> tuple[Disk, ...]:
    """Return the disks that are wanted; a pattern that matches none of them is worth a note."""
    left_out = set(LEFT_OUT) - set(include)
    matching = {pattern: [disk for disk in disks if _matches(disk, pattern)] for pattern in patterns}
    for pattern, found in matching.items():
        hidden = sorted({str(disk.transport) for disk in found if disk.transport in left_out})
        if not found:
            notes.append(f"no disk matches {pattern!r} of devices")
        elif all(disk.transport in left_out for disk in found):
            notes.append(f"{pattern!r} of devices matches only disks that are left out; add {', '.join(hidden)} to include")
    wanted = {disk.device.name for found in matching.values() for disk in found}
    return tuple(disk for disk in disks if disk.transport not in left_out and (not patterns or disk.device.name in wanted))


def _matches(disk: Disk, pattern: str) -> bool:
    names = [disk.id, disk.path or "", *disk.links, *(path.dev or "" for path in (disk.device, *disk.paths))]
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)


def _disk(device: Device) -> Disk:
    row = device.row
    path = identity.best_path(device.links, row.get("id-path"))
    transport = identity.transport(device.name, device.kind, row.get("tran"), row.get("devpath"))
    return Disk(device, identity.best_id(device.links, device.dev or device.name), path, device.links, transport, device, (device,))


def _mapped_disk(device: Device, tree: Tree) -> Disk:
    """Return the disk of a multipath device: its node and links, the identity and place of its first path."""
    paths = sorted((_disk(tree.devices[name]) for name in device.parents if name in tree.devices), key=lambda disk: disk.order)
    links = tuple(sorted({*device.links, *(link for path in paths for link in path.links)}))
    first = paths[0] if paths else _disk(device)
    return replace(
        first,
        device=device,
        id=identity.best_id([*device.links, *(link for link in links if link.startswith(identity.BY_ID))], device.dev or device.name),
        links=links,
        paths=tuple(path.device for path in paths),
        multipath=True,
    )


def _join_paths(disks: Sequence[Disk], notes: Notes) -> list[Disk]:
    """Return the disks with those joined that are one disk reached several ways without a multipath device.

    Given twice it would be planned twice, and one half would overwrite the other.
    """
    groups: dict[t.Any, list[Disk]] = {}
    for disk in disks:
        row = disk.device.row
        key = (
            (row.get("wwn"), row.get("serial"), disk.device.size)
            if row.get("wwn") and disk.transport in _SEVERAL_PATHS
            else disk.device.name
        )
        groups.setdefault(key, []).append(disk)
    return [group[0] if len(group) == 1 else _joined(group, notes) for group in groups.values()]


def _joined(group: list[Disk], notes: Notes) -> Disk:
    group = sorted(group, key=lambda disk: (not disk.id.startswith(identity.BY_ID), disk.order))
    names = ", ".join(str(disk.device.dev) for disk in group)
    notes.append(f"{names} are one disk reached several ways, and no multipath device is set up: only {group[0].device.dev} is given")
    return replace(group[0], paths=tuple(disk.device for disk in group), multipath=True)


def describe_disk(tree: Tree, disk: Disk) -> Facts:
    """Return a disk's facts."""
    device = tree.devices[disk.device.name]
    below = tree.descendants(device.name)
    content = [fact for part in (device, *below) for fact in _describe_content(part)]
    probed = all(part.read for part in (device, *below) if part.running or part.kind == "part")
    in_use = is_visibly_used(device, below) or any(part.claimed for part in (device, *below)) or _other_path_used(tree, disk)
    return {
        "id": disk.id,
        "path": disk.path,
        "dev": device.dev,
        "links": list(disk.links),
        "type": identity.media(disk.transport, disk.source.row.get("rota")),
        "transport": disk.transport,
        **_describe_maker(disk.source),
        **_describe_size(device),
        "logical_block": device.logical_block,
        "physical_block": int(device.row.get("phy-sec") or device.logical_block),
        "optimal_io": int(device.row.get("opt-io") or 0),
        **_describe_flags(device, disk),
        "volume_group": device.group,
        "table": device.table.type if device.table else None,
        "table_uuid": device.table.uuid if device.table else None,
        "partitions": [_describe_partition(part) for part in below if part.partition is not None and device.name in part.parents],
        "content": content,
        "holders": [_describe_holder(tree, part) for part in below if part.kind != "part"],
        "in_use": in_use,
        "probed": probed,
        "empty": probed and not in_use and not below and not content and device.table is None,
    }


def _other_path_used(tree: Tree, disk: Disk) -> bool:
    others = [path for path in disk.paths if path.name != disk.device.name and not disk.device.parents]
    return any(is_visibly_used(tree.devices[path.name], tree.descendants(path.name)) for path in others)


def _describe_maker(device: Device) -> Facts:
    row = device.row
    vendor = row.get("vendor")
    return {
        "vendor": None if vendor is None or vendor.startswith("0x") else vendor,
        "model": row.get("model"),
        "serial": row.get("serial"),
        "wwn": row.get("wwn"),
        "firmware_revision": row.get("rev"),
    }


def _describe_size(device: Device) -> Facts:
    return {"size": device.size // MIB, "size_bytes": device.size}


def _describe_flags(device: Device, disk: Disk) -> Facts:
    row = disk.source.row
    return {
        "removable": bool(row.get("rm")),
        "read_only": bool(device.row.get("ro")),
        "rotational": bool(row.get("rota")),
        "zoned": row.get("zoned") not in (None, "none"),
        "multipath": disk.multipath,
        "path_devices": [path.dev for path in disk.paths],
    }


def _describe_partition(device: Device) -> Facts:
    partition = t.cast(t.Any, device.partition)
    return {
        "number": partition.number,
        "dev": device.dev,
        "name": partition.name,
        "uuid": partition.uuid,
        "type": partition.type,
        "start": partition.start // MIB,
        "size": partition.size // MIB,
        "start_bytes": partition.start,
        "size_bytes": partition.size,
        "volume_group": device.group,
        **_describe_filesystem(device),
    }


def _describe_filesystem(device: Device) -> Facts:
    found = device.filesystem
    return {
        "fs_type": found.type if found else None,
        "fs_uuid": found.uuid if found else None,
        "label": found.label if found else None,
        "mountpoints": list(device.mountpoints),
    }


def _describe_content(device: Device) -> list[Facts]:
    found = [
        {
            "dev": _place(device),
            "type": signature.type,
            "uuid": signature.uuid,
            "label": signature.label,
            "offsets": list(signature.offsets),
        }
        for signature in device.signatures
    ]
    if device.table is not None and not any(signature.type in PARTITION_TABLES for signature in device.signatures):
        found.insert(0, {"dev": _place(device), "type": device.table.type, "uuid": device.table.uuid, "label": None, "offsets": []})
    return found


def _describe_holder(tree: Tree, device: Device) -> Facts:
    luks = device.luks
    return {
        "dev": device.dev,
        "name": device.title,
        "type": device.kind,
        "active": device.running,
        "members": sorted((_place(tree.devices[parent]) for parent in device.parents if parent in tree.devices), key=identity.natural_key),
        "uuid": device.uuid,
        "volume_group": device.group,
        "size": device.size // MIB if device.size else None,
        "size_bytes": device.size or None,
        **_describe_filesystem(device),
        "luks": {"version": luks.version, "cipher": luks.cipher, "key_slots": luks.key_slots} if luks else None,
    }


def _place(device: Device) -> str:
    """Return how a device is called in lists: its node; without one a partition by its disk and number, a volume by its group and name."""
    return device.dev or (
        f"/dev/{device.name}" if device.kind == "part" else f"{device.group}/{device.title}" if device.group else str(device.title)
    )
