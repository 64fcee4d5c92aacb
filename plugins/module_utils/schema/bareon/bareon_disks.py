# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which of a host's disks the entries of Bareon's hand-written schema mean: by node, by any link, or by SCSI address."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .parse import DiskEntry, Mistakes

Facts = Mapping[str, t.Any]

TABLE_HEAD = 1
TABLE_TAIL = 1
"""MiB before the first and behind the last partition: the GPT, its copy, and the alignment."""


@dataclass(frozen=True)
class FoundDisk:
    """An entry and the facts of its disk; `room` MiB of partitions may be made."""

    entry: DiskEntry
    facts: Facts
    room: int


def find_disks(entries: Sequence[DiskEntry], hardware: Facts, mistakes: Mistakes) -> tuple[FoundDisk, ...]:
    """Return the disks of the entries; one that no or several disks match, or that is asked for twice, is a mistake."""
    known = list(hardware.get("disks") or ())
    found: list[FoundDisk] = []
    users: dict[str, str] = {}
    for entry in entries:
        if not entry.id_value:
            continue
        matching = [disk for disk in known if _matches(disk, entry)]
        if len(matching) != 1:
            mistakes.append(f"{entry.place}.id: {_says(entry, matching, known)}")
            continue
        disk = matching[0]
        if users.setdefault(str(disk["id"]), entry.place) != entry.place:
            mistakes.append(
                f"{entry.place}.id: is the disk {disk['id']} of {users[str(disk['id'])]}; put all volumes of a disk into one entry"
            )
            continue
        found.append(FoundDisk(entry, disk, _room(entry, disk, mistakes)))
    return tuple(found)


def names_of(disk: Facts) -> tuple[str, ...]:
    """Return all paths by which a disk is known, the most durable first."""
    names = (disk.get("id"), disk.get("path"), *(disk.get("links") or ()), disk.get("dev"), *(disk.get("path_devices") or ()))
    return tuple(dict.fromkeys(str(name) for name in names if name))


def _matches(disk: Facts, entry: DiskEntry) -> bool:
    if entry.id_type == "scsi":
        return str(disk.get("hctl") or "") == entry.id_value
    path = entry.id_value if entry.id_value.startswith("/") else f"/dev/{entry.id_value}"
    if entry.id_type == "name":
        return path in (disk.get("dev"), *(disk.get("path_devices") or ()))
    return path in names_of(disk) or entry.id_value == disk.get("id")


def _says(entry: DiskEntry, matching: Sequence[Facts], known: Iterable[Facts]) -> str:
    if matching:
        return f"the {entry.id_type} {entry.id_value!r} is that of several disks: {', '.join(str(disk['id']) for disk in matching)}"
    there = [_described(disk, entry.id_type) for disk in known]
    return f"no disk has the {entry.id_type} {entry.id_value!r}; there are {', '.join(there) or 'none'}"


def _described(disk: Facts, id_type: str) -> str:
    if id_type == "scsi":
        return f"{disk.get('dev') or disk['id']} ({disk.get('hctl') or 'no SCSI address'})"
    return str(disk.get("dev") or disk["id"]) if id_type == "name" else str(disk["id"])


def _room(entry: DiskEntry, disk: Facts, mistakes: Mistakes) -> int:
    """Return how many MiB of partitions there may be: what the entry says, as far as the disk has room for it."""
    size = int(disk["size"])
    usable = max(0, size - TABLE_HEAD - TABLE_TAIL)
    if entry.size.amount is None:
        return usable
    if entry.size.amount > size:
        mistakes.append(f"{entry.place}.size: is {int(entry.size.amount)} MiB, but {disk.get('dev') or disk['id']} has only {size} MiB")
    return min(usable, int(entry.size.amount))
