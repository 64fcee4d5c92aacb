# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which of a tree's devices are the disks, one for each piece of hardware however many paths lead to it. Pure."""

from __future__ import annotations

import fnmatch
import typing as t
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .._storage import identity
from .reader import Notes
from .tree import Device, Tree

LEFT_OUT = identity.LEFT_OUT

_SEVERAL_PATHS = frozenset({"fc", "iscsi", "sas", "scsi", "nvme"})
"""Transports over which several paths can lead to one disk. Elsewhere (USB bridges) equal names are sloppy makers' work."""


@dataclass(frozen=True)
class Disk:
    """A disk: the device to use, its identity, and the devices that are paths to it (itself when there is only one).

    `twins` are the names of devices with the same WWN or serial number that may be other disks.
    """

    device: Device
    id: str
    path: t.Optional[str]
    links: tuple[str, ...]
    transport: t.Optional[str]
    source: Device
    paths: tuple[Device, ...]
    multipath: bool = False
    twins: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[t.Any, ...]:
        """What sorts disks by where they are attached."""
        return identity.order_key(identity.attachment(self.path, self.source.row.get("devpath")), self.source.dev or "")


def find_disks(tree: Tree, notes: Notes) -> tuple[Disk, ...]:
    """Return the disks of a tree in the order of where they are attached; a disk with several paths is one disk."""
    single = _named_apart([_disk(device) for device in tree.roots() if identity.is_disk(device.name, device.kind)], notes)
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


@dataclass(frozen=True)
class Selection:
    """The disks that disk_facts was asked for: `include` and `patterns` as select_disks takes them."""

    include: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    def of(self, disks: Iterable[Disk]) -> tuple[Disk, ...]:
        """Return those of some disks that it has."""
        return select_disks(tuple(disks), self.include, self.patterns, [])


ALL_DISKS = Selection()


def _matches(disk: Disk, pattern: str) -> bool:
    names = [disk.id, disk.path, *disk.links, *(path.dev for path in (disk.device, *disk.paths))]
    return any(fnmatch.fnmatchcase(name, pattern) for name in names if name)


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


def _named_apart(disks: Sequence[Disk], notes: Notes) -> list[Disk]:
    """Return the disks, those whose WWN is not theirs alone named by their serial numbers or places.

    Of two disks with one WWN either may have the link with that WWN, one at this start and the other at the next.
    """
    serials: dict[str, set[str]] = {}
    for disk in disks:
        row = disk.device.row
        if row.get("wwn") and row.get("serial"):
            serials.setdefault(str(row["wwn"]).lower(), set()).add(str(row["serial"]))
    found = []
    for disk in disks:
        wwn = str(disk.device.row.get("wwn") or "")
        shared = len(serials.get(wwn.lower(), ())) > 1
        if not wwn or (identity.is_own_wwn(wwn) and not shared):
            found.append(disk)
            continue
        name = identity.best_id([link for link in disk.links if not identity.is_made_of_wwn(link)], disk.device.dev or disk.device.name)
        if shared or name != disk.id:
            why = "is that of other disks, too" if shared else "cannot be that of one disk alone"
            notes.append(f"{disk.device.dev}: its WWN {wwn} {why}; the disk is named {name}")
        found.append(replace(disk, id=name))
    return found


def _join_paths(disks: Sequence[Disk], notes: Notes) -> list[Disk]:
    """Return the disks with those joined of which the kernel says that they are one, reached by several paths.

    Given twice it would be planned twice, and one half would overwrite the other. What only has the same identity may as well be two disks:
    a copy that a storage system made, or two of a maker that gives all disks one number.
    """
    groups: dict[t.Any, list[Disk]] = {}
    for disk in disks:
        groups.setdefault(_identity(disk) or disk.device.name, []).append(disk)
    found: list[Disk] = []
    for group in groups.values():
        found += group if len(group) == 1 else [_joined(group, notes)] if _is_one_namespace(group) else _apart(group, notes)
    return found


def _identity(disk: Disk) -> t.Optional[tuple[t.Any, ...]]:
    """Return what two devices have in common that may be one disk; None for a disk that names neither a WWN nor a serial number.

    A serial number is that of a controller with all its namespaces, or of a device with all its units.
    """
    row = disk.device.row
    wwn, serial, size = row.get("wwn"), row.get("serial"), disk.device.size
    unit = row.get("namespace") or (identity.scsi_address(row.get("devpath")) or "").rpartition(":")[2]
    return (wwn, serial, size) if wwn else (serial, row.get("model"), unit, size) if serial else None


def _is_one_namespace(group: Sequence[Disk]) -> bool:
    """Return whether all are paths to one namespace of an NVMe subsystem, which the kernel shows apart where its multipath is off."""
    places = {(disk.device.row.get("subsystem-nqn"), disk.device.row.get("namespace")) for disk in group}
    return len(places) == 1 and None not in places.pop()


def _joined(group: list[Disk], notes: Notes) -> Disk:
    group = sorted(group, key=lambda disk: (not disk.id.startswith(identity.BY_ID), disk.order))
    names = ", ".join(str(disk.device.dev) for disk in group)
    notes.append(f"{names} are one disk reached by several paths, without a multipath device: only {group[0].device.dev} is given")
    return replace(group[0], paths=tuple(disk.device for disk in group), multipath=True)


def _apart(group: list[Disk], notes: Notes) -> list[Disk]:
    """Return disks of one identity, named by their places: the link with that identity is the one's today and the other's tomorrow."""
    names = ", ".join(str(disk.device.dev) for disk in group)
    notes.append(
        f"{names} have the same WWN, serial number and size: disks with one identity, or paths to one disk without multipath. "
        "They are named by their places"
    )
    devices = [disk.device.name for disk in group]
    return [
        replace(disk, id=disk.path or disk.device.dev or disk.id, twins=tuple(name for name in devices if name != disk.device.name))
        for disk in group
    ]


def is_reached_on_paths(disk: Disk) -> bool:
    """Return whether a disk is attached in a way on which several paths can lead to one."""
    return disk.transport in _SEVERAL_PATHS
