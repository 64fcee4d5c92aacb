# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The facts: a host's memory, firmware and disks as plain data, the shape that disk_plan takes.

MiB are rounded down everywhere; exact sizes are given in bytes as well.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Sequence

from .._storage import identity
from .._storage.drives import drives_of
from .._storage.units import MIB, known_block
from .assembled import read_stacks
from .attached import read_attachment, read_slots
from .health import read_health
from .host import Host
from .reader import Notes, is_visibly_used, read_claims, read_contents, read_devices
from .select import Disk, find_disks, select_disks
from .signatures import TablePartition
from .sysfs import read_firmware, read_memory
from .tree import PARTITION_TABLES, Device, Tree
from .twins import Twin, find_twins, twin_notes
from .uses import read_uses
from .zpools import describe_zpools

Facts = dict[str, t.Any]


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
    tree = read_uses(host, tree, disks)
    tree = read_claims(host, tree, names)
    memory = read_memory(host)
    if memory is None:
        notes.append("/proc/meminfo cannot be read: the size of the memory is unknown")
    twins = find_twins(tree, disks)
    notes.extend(twin_notes(tree, disks, names))
    slots = read_slots(host)
    described = [
        {
            **describe_disk(tree, disk),
            **read_attachment(host, disk.source.name, disk.source.row.get("devpath"), slots),
            "twins": _describe_twins(tree, twins.get(disk.device.name, ())),
        }
        for disk in disks
    ]
    described = [{**disk, "drive": drives[0] if drives else disk["id"]} for disk, drives in zip(described, drives_of(described))]
    unread = [fact["dev"] for fact in described if not fact["probed"]]
    if unread:
        notes.append(
            f"not all signatures on {', '.join(unread)} could be read, which needs root, wipefs of util-linux and, "
            "in a container, the right to open them: content is only known from udev and mounts, and empty is false"
        )
    facts = {"ram": memory, "firmware": read_firmware(host), "disks": described}
    zpools = describe_zpools(host, tree)
    return facts if zpools is None else {**facts, "zpools": zpools}, tuple(dict.fromkeys(notes))


def with_health(host: Host, facts: Facts) -> Facts:
    """Return the facts with the `health` of every disk, which takes a tool for each; none of a disk that no tool can ask."""
    asked = [(disk, read_health(host, disk["dev"], disk["transport"]) if disk["dev"] else None) for disk in facts["disks"]]
    return {**facts, "disks": [{**disk, "health": health} for disk, health in asked]}


def describe_disk(tree: Tree, disk: Disk) -> Facts:
    """Return a disk's facts."""
    device = tree.devices[disk.device.name]
    below = tree.descendants(device.name)
    partitions = [part for part in below if part.partition is not None and device.name in part.parents]
    return {
        "id": disk.id,
        "path": disk.path,
        "dev": device.dev,
        "links": list(disk.links),
        "type": identity.media(disk.transport, disk.source.row.get("rota")),
        "transport": disk.transport,
        "hctl": identity.scsi_address(disk.source.row.get("devpath")),
        **_describe_maker(disk.source),
        **{"size": device.size // MIB, "size_bytes": device.size},
        "logical_block": device.logical_block,
        "physical_block": known_block(device.row.get("phy-sec")) or device.logical_block,
        "optimal_io": int(device.row.get("opt-io") or 0),
        **_describe_flags(device, disk),
        "volume_group": device.group,
        "table": device.table.type if device.table else None,
        "table_uuid": device.table.uuid if device.table else None,
        "partitions": [_describe_partition(part) for part in partitions],
        "content": [fact for part in (device, *below) for fact in _describe_content(part)],
        "holders": [_describe_holder(tree, part) for part in below if part not in partitions],
        **_describe_use(tree, disk),
    }


def _describe_twins(tree: Tree, twins: Iterable[Twin]) -> list[Facts]:
    return [
        {"kind": twin.kind, "identity": twin.identity, "dev": _place(tree.devices[twin.name]), "other": _place(tree.devices[twin.other])}
        for twin in twins
    ]


def _describe_use(tree: Tree, disk: Disk) -> Facts:
    device = tree.devices[disk.device.name]
    below = tree.descendants(device.name)
    probed = all(part.read for part in (device, *below) if part.running or part.kind == "part")
    hidden = any(part.claimed or part.uses for part in (device, *below))
    in_use = is_visibly_used(device, below) or hidden or _other_path_used(tree, disk)
    return {
        "in_use": in_use,
        "used_by": [{"dev": _place(part), "use": use} for part in (device, *below) for use in part.uses],
        "mountpoints": list(device.mountpoints),
        "probed": probed,
        "empty": probed and not in_use and not below and not device.signatures and device.table is None,
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
    partition = t.cast(TablePartition, device.partition)
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
        **device.details,
    }


def _place(device: Device) -> str:
    """Return how a device is called in lists: its node; without one a partition by its disk and number, a volume by its group and name."""
    return device.dev or (
        f"/dev/{device.name}" if device.kind == "part" else f"{device.group}/{device.title}" if device.group else str(device.title)
    )
