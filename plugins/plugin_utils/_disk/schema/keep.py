# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Partitions that are kept, known by something else than the id of a space: `keep` with a name, a UUID or a number, and `keep_existing`."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from ....module_utils._data.containers import Row, Table, Values
from ....module_utils._data.errors import Mistakes
from ....module_utils._data.kinds import Text, Whole
from ....module_utils._data.words import listed
from ..existing import describe
from ..model import Disk, ExistingSpace, Hardware, LeftOutDisk, Schema, Space, SpaceType

_KEYS = ("partlabel", "uuid", "number")
_MOST_NAMES = 6
_MOST_PARTITIONS = 128
_LONGEST_ID = 50
_SINGLE = frozenset({SpaceType.PARTITION, SpaceType.ESP, SpaceType.BIOS_GRUB})
"""Types of which a space is one partition."""

KEEP = Table(
    "what is kept",
    [
        Row("partlabel", Text(filled=True), "The name of the partition in the table."),
        Row("uuid", Text(filled=True), "The UUID of the partition, or of the file system on it."),
        Row("number", Whole(1, _MOST_PARTITIONS), "The number of the partition in the table."),
    ],
    schema={"minProperties": 1, "maxProperties": 1},
)


def kept_at(
    values: Values, space_type: SpaceType | None, place: str, hardware: Hardware, allowed: Collection[int], mistakes: Mistakes
) -> tuple[tuple[int, int], ...] | None:
    """Return where the partitions are that `keep` of a space names, disk and start in MiB; None where it names none.

    What is not there is a mistake, unless nothing is on the disks yet: the space is made there then.
    """
    keep = values["keep"]
    if keep is None or mistakes.concern(f"{place}.keep"):
        return None
    given = {key: keep[key] for key in _KEYS if keep[key] is not None}
    if len(given) != 1:
        mistakes.add(f"{place}.keep", f"must have one of {listed(_KEYS)}; a partition is known by one of them")
        return None
    ((key, value),) = given.items()
    found = [
        (position, there)
        for position in sorted(allowed)
        for there in hardware.disks[position].existing
        if there.volume_group is None and _is_named(there, key, value)
    ]
    if len(found) > 1 and space_type in _SINGLE:
        where = listed([describe(hardware.disks[position], there) for position, there in found], _MOST_NAMES)
        mistakes.add(f"{place}.keep", f"{len(found)} partitions have the {key} {value}: {where}; say with disks which is meant")
    disks = [hardware.disks[position] for position in sorted(allowed)]
    there = [describe(disk, one) for disk in disks for one in disk.existing]
    bare = [disk.id for disk in disks if _has_content_without_table(disk)]
    if not found and there:
        mistakes.add(f"{place}.keep", f"no partition has the {key} {value}; there are {listed(there, _MOST_NAMES)}")
    elif not found and bare:
        says = f"no partition has the {key} {value}; not empty, but without a partition table: {listed(bare, _MOST_NAMES)}"
        mistakes.add(f"{place}.keep", f"{says}; exclude such disks with disks or avoid_disks to make it new")
    return tuple((position, there.start) for position, there in found)


def with_existing(schema: Schema, hardware: Hardware) -> Schema:
    """Return the schema with a space for each partition that none of its spaces keeps, so that it stays and is planned around."""
    named = {space.id for space in schema.spaces}
    kept = {place for space in schema.spaces for place in space.kept_at or ()}
    wanted = {name for space in schema.spaces if space.keep_data and space.kept_at is None for name in (space.id, space.partition_label)}
    groups = {space.volume_group for space in schema.spaces if space.keep_data and space.volume_group}
    more = []
    for position, disk in enumerate(hardware.disks):
        for there in disk.existing:
            is_kept = (position, there.start) in kept or {there.name, there.label} & (wanted | groups)
            if there.volume_group is None and not is_kept:
                more.append(_staying(there, position, named))
                named.add(more[-1].id)
    return replace(schema, spaces=(*schema.spaces, *more), flat=False) if more else schema


def without_room_for_more(hardware: Hardware) -> Iterator[LeftOutDisk]:
    """Yield the disks that are not empty and whose table cannot keep present contents next to new partitions."""
    for disk in hardware.disks:
        table = disk.facts.get("table")
        if table not in (None, "gpt") and disk.existing:
            yield LeftOutDisk(disk, f"has a table of the type {table}, to which nothing is added (keep_existing)")
        elif _has_content_without_table(disk):
            yield LeftOutDisk(disk, "has no partition table, and something on it that stays (keep_existing)")


def _has_content_without_table(disk: Disk) -> bool:
    facts = disk.facts
    is_empty = not facts.get("content") and not facts.get("holders") and facts.get("empty") is not False
    return not disk.existing and facts.get("table") is None and not is_empty


def _staying(there: ExistingSpace, disk: int, taken: Collection[str]) -> Space:
    called = re.sub(r"[^A-Za-z0-9_.]+", "_", there.label or there.name).strip("_")[:_LONGEST_ID] or f"part{there.number or ''}"
    name = f"kept_{called}"
    number = 2
    while name in taken:
        name, number = f"kept_{called}_{number}", number + 1
    return Space(
        id=name,
        type=SpaceType.PARTITION,
        place="keep_existing",
        weight=0.0,
        allowed=frozenset({disk}),
        keep_data=True,
        kept_at=((disk, there.start),),
        partition_label=there.name or None,
    )


def _is_named(there: ExistingSpace, key: str, value: t.Any) -> bool:
    if key == "number":
        return there.number == value
    return value.lower() in there.uuids if key == "uuid" else there.name == value


def kept_by(schema: t.Any) -> frozenset[str]:
    """Return the names and UUIDs by which `keep` of a dynamic schema asks for partitions, and so for the disks that they are on."""
    entries = schema if isinstance(schema, (list, tuple)) else ()
    asked = [entry["keep"] for entry in entries if isinstance(entry, Mapping) and isinstance(entry.get("keep"), Mapping)]
    texts = {str(keep[key]) for keep in asked for key in ("partlabel", "uuid") if keep.get(key)}
    return frozenset(texts | {text.lower() for text in texts})
