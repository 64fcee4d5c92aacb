# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disks fail together: namespaces of one NVMe, units of one device, volumes on the same drives of a controller. Pure.

A *drive* is a piece of hardware by a name that only it has. What one disk is on may be several drives.
"""

from __future__ import annotations

import re
import typing as t
from collections.abc import Mapping, Sequence

from .identity import is_own_serial, is_own_wwn

Facts = Mapping[str, t.Any]

SHARED_DRIVE = "shared_drive"
"""A fact that only expressions see: disks with the same number are on one drive."""

_ONE_UNIT = frozenset({"sata", "ata", "usb", "mmc", "pmem", "virtio", "xen", "loop"})
"""Transports on which a device is one disk, so that equal serial numbers are the work of a sloppy maker."""


def drives_of(disks: Sequence[Facts]) -> list[tuple[str, ...]]:
    """Return the drives of each disk, as its facts name them (`drive`), else by its serial number; none where both are missing."""
    units: dict[str, list[Facts]] = {}
    for disk in disks:
        units.setdefault(serial_drive(disk) or "", []).append(disk)
    devices = {name for name, own in units.items() if name and _is_one_device(own)}
    by_serial = [serial_drive(disk) for disk in disks]
    return [_said(disk) or ((name,) if name in devices else ()) for disk, name in zip(disks, by_serial)]


def domains(drives: Sequence[Sequence[str]]) -> tuple[int, ...]:
    """Return for each disk the position of the first disk with which it fails; those that share a drive with a third do, too."""
    found = list(range(len(drives)))
    owner: dict[str, int] = {}

    def first(position: int) -> int:
        while found[position] != position:
            position = found[position]
        return position

    for position, names in enumerate(drives):
        for name in names:
            one, other = sorted((first(position), first(owner.setdefault(name, position))))
            found[other] = one
    return tuple(map(first, range(len(drives))))


def _said(disk: Facts) -> tuple[str, ...]:
    said = disk.get("drive")
    names = said if isinstance(said, (list, tuple)) else [said]
    return tuple(dict.fromkeys(name.strip() for name in names if isinstance(name, str) and name.strip()))


def serial_drive(disk: Facts) -> t.Optional[str]:
    """Return the name that a drive has by its serial number; None where it has none, or one that others may have, too."""
    serial = str(disk.get("serial") or "").strip()
    if not is_own_serial(serial) or disk.get("transport") in _ONE_UNIT:
        return None
    return " ".join([*str(disk.get("model") or "").split(), serial])


def _is_one_device(units: Sequence[Facts]) -> bool:
    """Return whether disks of one serial number are one device: namespaces of an NVMe, or units with world wide names of their own."""
    return all(map(_is_namespace, units)) or all(is_own_wwn(str(unit.get("wwn") or "")) for unit in units)


def _is_namespace(disk: Facts) -> bool:
    return disk.get("transport") == "nvme" or re.match(r"(/dev/)?nvme[0-9]", str(disk.get("dev") or "")) is not None
