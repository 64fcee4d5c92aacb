# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""LVM in the dynamic schema: the keys of groups, thin pools and caches, and what has to be right about them."""

from __future__ import annotations

import math
import typing as t
from collections.abc import Mapping, Sequence

from ....module_utils._data.containers import Row
from ....module_utils._data.errors import Mistakes, suggest
from ....module_utils._data.kinds import Json, Kind, Text, Whole, Word, is_number
from ....module_utils._data.words import listed
from ....module_utils._storage import cache, lvm, thin
from ..model import Space, SpaceType
from .entry import Entry
from .sizes import Kib, SpaceSize, powers_of_two, text_of_size

_MOST_OVERCOMMIT = 1000
_NOT_OF_CACHES = (
    *("mount", "mount_options", "fs_type", "fs_options", "fs_label", "subvolumes", "partition_type", "per_disk", "count", "keep_data"),
    "boot",
)


class _Extent(Kind):
    """The size of a vg's extents."""

    wanted = "a power of two from 1 MiB to 16 GiB, such as 32 MiB"

    def read(self, value: t.Any) -> int:
        size = SpaceSize().read(value)
        if size.relative or size.number.denominator != 1 or not lvm.is_extent(int(size.number)):
            self.refuse(value)
        return int(size.number)

    def json_schema(self) -> Json:
        return {"anyOf": [powers_of_two(1024, lvm.LARGEST_EXTENT * 1024), text_of_size()]}


class _Overcommit(Kind):
    """How many times its room the volumes of a thin pool may come to."""

    wanted, blank = f"a number from 1 to {_MOST_OVERCOMMIT}, such as 2", 1.0

    def read(self, value: t.Any) -> float:
        if not is_number(value) or not 1 <= value <= _MOST_OVERCOMMIT:
            self.refuse(value)
        return float(value)

    def json_schema(self) -> Json:
        return {"type": "number", "minimum": 1, "maximum": _MOST_OVERCOMMIT}


_CHUNK = Kib(
    "a multiple of 64 KiB up to 1 GiB, such as 256 KiB",
    thin.is_chunk,
    {"type": "number", "minimum": thin.LEAST_CHUNK / 1024, "maximum": thin.LARGEST_CHUNK / 1024, "multipleOf": thin.LEAST_CHUNK / 1024},
)
_STRIPE_SIZE = Kib(
    f"a power of two from {lvm.LEAST_STRIPE} KiB on, such as 64 KiB",
    lvm.is_stripe,
    powers_of_two(lvm.LEAST_STRIPE, lvm.LARGEST_EXTENT * 1024),
)


class _Metadata(Kind):
    """The room for what a thin pool remembers."""

    wanted = f"a size from {thin.LEAST_METADATA} MiB to {thin.MOST_METADATA} MiB"

    def read(self, value: t.Any) -> int:
        size = SpaceSize().read(value)
        if size.relative or not thin.LEAST_METADATA <= size.number <= thin.MOST_METADATA:
            self.refuse(value)
        return math.ceil(size.number)

    def json_schema(self) -> Json:
        number = {"type": "number", "minimum": thin.LEAST_METADATA, "maximum": thin.MOST_METADATA}
        return {"anyOf": [number, text_of_size()]}


POOL_ROWS = (
    Row("overcommit", _Overcommit(), "How many times the size of a thin_pool its volumes may add up to.", default=1.0),
    Row(
        "metadata_size",
        _Metadata(),
        "The room for the metadata of a thin_pool, which LVM takes twice; by default it follows from its size.",
    ),
    Row("chunk_size", _CHUNK, "The unit in which a thin_pool gives room out; by default it follows from the size of the pool."),
    Row("cache_of", Text(filled=True), "The id of the lv or the zpool that a partition or an array is a cache of."),
    Row("cache_mode", Word(cache.MODES), "How it caches: writethrough, or writeback.", default=cache.WRITETHROUGH),
)
GROUP_ROWS = (
    Row("max_pvs", Whole(1), "On how many disks a vg may lie at most."),
    Row("extent_size", _Extent(), "The size of a vg's extents, of which its volumes are made.", default=lvm.EXTENT),
    Row("stripes", Whole(1, lvm.MOST_STRIPES), "On how many disks of its vg an lv lies in equal parts; 1 is linear, as is the default."),
    Row("stripe_size", _STRIPE_SIZE, "How much of a striped lv is on one disk before the next one begins; by default 64 KiB."),
)
KEYS: Mapping[str, frozenset[SpaceType]] = {
    **dict.fromkeys(("overcommit", "metadata_size", "chunk_size"), frozenset({SpaceType.THIN_POOL})),
    **dict.fromkeys(("max_pvs", "extent_size"), frozenset({SpaceType.VOLUME_GROUP})),
    **dict.fromkeys(("stripes", "stripe_size"), frozenset({SpaceType.LOGICAL_VOLUME})),
}
CACHE_KEYS: Mapping[str, frozenset[SpaceType]] = dict.fromkeys(("cache_of", "cache_mode"), frozenset({SpaceType.PARTITION, SpaceType.RAID}))
"""The types that keys make sense for."""
AS_THEY_ARE = (*KEYS, *CACHE_KEYS)
"""Keys that the model takes from the table without more ado."""


def check_kept(known: Sequence[Entry], groups: Mapping[str, str], mistakes: Mistakes) -> None:
    """Refuse kept data in a vg with a thin pool, whose data cannot be distinguished from those of its volumes."""
    pools = {groups[item.id]: item.id for item in known if item.type is SpaceType.THIN_POOL and item.id in groups}
    for item in known:
        group = groups.get(item.id, item.id)
        if item.values["keep_data"] and group in pools and item.type not in (SpaceType.THIN_POOL, SpaceType.THIN_VOLUME):
            says = f"the vg {group} has the thin pool {pools[group]}, and what is in such a vg cannot be planned around"
            mistakes.add(f"{item.place}.keep_data", f"{says}; what the same plan has made stays without it")


def check_volumes(spaces: Sequence[Space], mistakes: Mistakes) -> None:
    """Note thin pools whose volumes come to more than is allowed, and stripes that there cannot be."""
    _check_stripes(spaces, mistakes)
    for pool in spaces:
        inside = [space for space in spaces if space.thin_pool == pool.id]
        given_out = sum(space.min_size for space in inside)
        if pool.type is SpaceType.THIN_POOL and pool.max_size is not None and given_out > pool.overcommit * pool.max_size:
            times = math.ceil(given_out / pool.max_size * 100) / 100
            names = listed([space.id for space in inside])
            allowed = f"{pool.overcommit:g} times its size" if pool.overcommit != 1 else "its size"
            says = f"{names} come to {given_out} MiB, more than {allowed} of {pool.max_size} MiB"
            mistakes.add(f"{pool.place}.contains", f"{says}; make it larger, or allow that with overcommit: {times:g}")


def _check_stripes(spaces: Sequence[Space], mistakes: Mistakes) -> None:
    groups = {space.id: space for space in spaces if space.type is SpaceType.VOLUME_GROUP}
    for space in spaces:
        group = groups.get(space.volume_group or "")
        if space.stripe_size is not None and not space.is_striped:
            mistakes.add(f"{space.place}.stripe_size", "says how large stripes are, so it needs stripes of 2 or more")
        elif space.stripe_size is not None and group is not None and space.stripe_size > group.extent_size * 1024:
            says = f"{space.stripe_size} KiB are more than an extent of {group.id}, which has {group.extent_size} MiB"
            mistakes.add(f"{space.place}.stripe_size", says)
        if space.stripes is not None and group is None and not mistakes.has(space.place):
            mistakes.add(f"{space.place}.stripes", f"{space.id} is in no vg; only LVM makes stripes")


def caches_of(known: Sequence[Entry], groups: Mapping[str, str], left_out: dict[str, str], mistakes: Mistakes) -> dict[str, str]:
    """Return the vg of every space that is a cache of one of its volumes; what stands against that is a mistake."""
    by_id = {item.id: item for item in known}
    found: dict[str, str] = {}
    first: dict[str, str] = {}
    for item in known:
        place, origin = f"{item.place}.cache_of", item.values["cache_of"]
        if origin in by_id and by_id[origin].type is SpaceType.ZPOOL:
            continue
        if origin is None or item.type not in CACHE_KEYS["cache_of"]:
            if item.given.get("cache_mode") is not None and item.type in CACHE_KEYS["cache_mode"]:
                mistakes.add(f"{item.place}.cache_mode", "says how a cache works, so it needs cache_of")
            continue
        for key in _NOT_OF_CACHES:
            if item.values[key]:
                mistakes.add(place, f"cannot be combined with {key}; a cache holds nothing of its own")
        if origin in left_out:
            left_out[item.id] = f"left out because {origin} is"
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
