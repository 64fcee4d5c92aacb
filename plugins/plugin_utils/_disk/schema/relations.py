# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which spaces one is to lie apart from (`apart_from`), or together with (`together_with`)."""

from __future__ import annotations

import typing as t
from collections.abc import Collection, Mapping, Sequence

from ....module_utils._data.errors import Mistakes, suggest
from ..model import SpaceType
from .entry import Entry

_VOLUMES = (SpaceType.LOGICAL_VOLUME, SpaceType.THIN_POOL, SpaceType.THIN_VOLUME)


def related(
    entry: Entry, key: str, entries: Sequence[Entry], groups: Mapping[str, str], left_out: Collection[str], mistakes: Mistakes
) -> tuple[str, ...]:
    """Return the spaces that one is to be apart from or together with, those in a vg as the vg; the mistakes are noted."""
    place, wanted = f"{entry.place}.{key}", t.cast("tuple[str, ...]", entry.values[key])
    if not wanted or mistakes.has(place):
        return ()
    if entry.type in _VOLUMES and entry.id in groups:
        mistakes.add(place, f"a volume lies on the disks of its vg; set this on {groups[entry.id]!r}")
        return ()
    by_id = {other.id: other for other in entries if other.id}
    found: list[str] = []
    for name in wanted:
        other = by_id.get(groups.get(name, name) if name in by_id and by_id[name].type in _VOLUMES else name)
        if name in left_out:
            continue
        if other is None:
            mistakes.add(place, f"there is no space {name!r}{suggest(name, [*by_id])}")
        elif other.id == entry.id or groups.get(entry.id) == other.id or groups.get(other.id) == entry.id:
            mistakes.add(place, f"{name!r} lies where {entry.id!r} does; name another space")
        elif other.type in (SpaceType.ESP, SpaceType.BIOS_GRUB):
            mistakes.add(place, f"{name!r} lies on every disk that the machine starts from; name what it starts from")
        elif key == "together_with" and not _is_whole(other, entries):
            mistakes.add(
                place,
                f"{name!r} is split over disks as room allows; name a partition or an array, or set together_with on {name!r} instead",
            )
        elif key == "together_with" and name in entry.values["apart_from"]:
            mistakes.add(place, f"{name!r} is also in apart_from; drop one of them")
        else:
            found.append(other.id)
    return tuple(dict.fromkeys(found))


def _is_whole(entry: Entry, entries: Sequence[Entry]) -> bool:
    """Return whether a space lies in whole pieces: a vg does on arrays."""
    arrays = {other.id for other in entries if other.type is SpaceType.RAID}
    in_whole = entry.type in (SpaceType.PARTITION, SpaceType.RAID, SpaceType.BTRFS, SpaceType.ZPOOL) or (
        entry.type is SpaceType.PARTITIONS and entry.values["per_disk"]
    )
    return in_whole or any(member in arrays for member in entry.values["contains"])
