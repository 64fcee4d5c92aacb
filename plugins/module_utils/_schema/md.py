# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Arrays of md in the static schema."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._data.containers import Row, Table
from .._data.kinds import Truth, Whole, Word
from .._storage import names
from .._storage.raid import (
    ALL_LAYOUTS,
    BITMAPS,
    LARGEST_CHUNK,
    LEAST_CHUNK,
    OPTION_KEYS,
    WRITE_MOSTLY,
    ArrayOptions,
    RaidLevel,
    array_options,
    least_legs,
    write_mostly_mistake,
)
from .entry import Entry
from .kinds import DEVICES, KEPT, NODES, Level, Named

_DEFAULT_METADATA = "1.2"
ARRAY = Table(
    "an array",
    [
        Row("name", Named(names.why_no_array), "Its device node, such as /dev/md/root.", required=True),
        Row("level", Level(), "Its RAID level.", required=True),
        Row("devices", DEVICES, "The partitions that it is made of.", required=True),
        Row("spares", NODES, "The spare partitions.", default=()),
        Row("metadata", Word(("default", "1.0", "1.1", "1.2")), "The version of md's metadata.", default="default"),
        Row("bitmap", Word(BITMAPS), "Its write-intent bitmap; a new array has one unless this is none, another keeps what it has."),
        Row(
            "chunk",
            Whole(LEAST_CHUNK, LARGEST_CHUNK),
            "KiB of a chunk, a power of two; not of a raid1. An existing array keeps its own.",
        ),
        Row(
            "layout",
            Word(ALL_LAYOUTS),
            "How it lies on its members. An existing array keeps its own.",
        ),
        Row(
            WRITE_MOSTLY,
            NODES,
            "The partitions of a raid1 that md reads from only where it must. Without it, an existing array keeps what its members are.",
        ),
        Row("mdadm_conf_enabled", Truth(), "Whether mdadm.conf names it.", default=True),
        *KEPT,
    ],
)


@dataclass(frozen=True)
class DesiredArray:
    """An md array; `level` as mdadm has it (raid1)."""

    place: str
    device: str
    title: str
    level: str
    members: tuple[str, ...]
    spares: tuple[str, ...] = ()
    metadata: str = "1.2"
    keep_data: bool = False
    space: str = ""
    asked_metadata: str = "default"
    """The version of the metadata in the schema, `default` where it leaves that open."""
    in_mdadm_conf: bool = True
    options: ArrayOptions = ArrayOptions()
    write_mostly: t.Optional[tuple[str, ...]] = None
    """Those of its members that are write-mostly; None where that is left open."""


def array_of(item: Entry) -> DesiredArray:
    """Return an array."""
    level, members = item["level"], item["devices"]
    if level is not None and len(members) < least_legs(level) and item.is_right("devices"):
        item.mistake("devices", f"{level} needs at least {least_legs(level)} devices, not {len(members)}")
    if level is RaidLevel.RAID0 and item["spares"]:
        item.mistake("spares", "raid0 cannot use a spare")
    options = array_options({key: item[key] for key in OPTION_KEYS})
    for key, says in options.mistakes(level):
        item.mistake(key, says)
    slow = item[WRITE_MOSTLY]
    if slow is not None:
        strangers = [device for device in slow if device not in members]
        why = write_mostly_mistake(level, len(members), len(slow), len(item["spares"]))
        if strangers and item.is_right("devices"):
            item.mistake(WRITE_MOSTLY, f"{strangers[0]} is none of its devices")
        elif why is not None:
            item.mistake(WRITE_MOSTLY, why)
    by_default = item["metadata"] == "default"
    return DesiredArray(
        place=item.place,
        device=item["name"],
        title=item["name"].rsplit("/", 1)[-1],
        level=level.value if level else "",
        members=members,
        spares=item["spares"],
        metadata=_DEFAULT_METADATA if by_default else item["metadata"],
        keep_data=item["keep_data"],
        space=item.space,
        asked_metadata=item["metadata"],
        in_mdadm_conf=item["mdadm_conf_enabled"],
        options=options,
        write_mostly=slow,
    )
