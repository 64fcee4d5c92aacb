# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which volume each cache is one of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....module_utils._data.errors import Mistakes, suggest
from ..model import SpaceType
from .entry import Entry
from .values import KEYS_OF_SOME

_NOT_OF_CACHES = (
    *("mount", "mount_options", "fs_type", "fs_options", "fs_label", "subvolumes", "partition_type", "per_disk", "count", "keep_data"),
    "boot",
)


def caches_of(known: Sequence[Entry], groups: Mapping[str, str], left_out: dict[str, str], mistakes: Mistakes) -> dict[str, str]:
    """Return the vg of every space that is a cache of one of its volumes; what stands against that is a mistake."""
    by_id = {item.id: item for item in known}
    found: dict[str, str] = {}
    first: dict[str, str] = {}
    for item in known:
        place, origin = f"{item.place}.cache_of", item.values["cache_of"]
        if origin in by_id and by_id[origin].type is SpaceType.ZPOOL:
            continue
        if origin is None or item.type not in KEYS_OF_SOME["cache_of"]:
            if item.given.get("cache_mode") is not None and item.type in KEYS_OF_SOME["cache_mode"]:
                mistakes.add(f"{item.place}.cache_mode", "says how a cache works, so it needs cache_of")
            continue
        for key in _NOT_OF_CACHES:
            if item.values[key]:
                mistakes.add(place, f"cannot be combined with {key}; a cache holds nothing of its own")
        if origin in left_out:
            left_out[item.id] = f"what it is a cache of, {origin}, is left out"
        elif origin not in by_id:
            mistakes.add(place, f"there is no space {origin!r}{suggest(origin, by_id)}")
        elif by_id[origin].type is not SpaceType.LOGICAL_VOLUME or origin not in groups:
            mistakes.add(place, f"{origin!r} has type {by_id[origin].type}; only an lv in a vg and a zpool can have a cache")
        elif item.id in groups:
            mistakes.add(place, f"{item.id!r} is in the vg {groups[item.id]!r}; a cache is in that of its lv by itself")
        elif first.setdefault(origin, item.id) != item.id:
            mistakes.add(place, f"{origin!r} already has the cache {first[origin]!r}; it has one at most")
        else:
            found[item.id] = groups[origin]
    return found
