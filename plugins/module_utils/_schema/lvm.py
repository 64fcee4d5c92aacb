# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""LVM in the static schema: what a volume group, a thin pool, a volume and a cache are in it, and what has to be right about them.

Sizes in the schema are MiB, those of the model bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .._data.containers import Row, Table
from .._data.kinds import Whole, Word
from .._storage import names, thin
from .._storage.cache import MODES, WRITETHROUGH
from .._storage.lvm import EXTENT, LARGEST_EXTENT, LEAST_STRIPE, MOST_STRIPES, is_extent, is_stripe, mapper_node, stripe_options
from .._storage.thin import LARGEST_CHUNK, LEAST_CHUNK, LEAST_METADATA
from .._storage.units import KIB, MIB
from .entry import Entry, Found, doubles
from .kinds import DEVICES, KEPT, NODE, NODE_IF_ANY, NODES, Amount, Named

_LVM_NAME = Named(names.why_no_lvm_name)
PHYSICAL_VOLUME = Table(
    "a physical volume",
    [
        Row("name", NODE, "The device that it is.", required=True),
        Row("metadatasize", Amount(0), "MiB of metadata; 0 is LVM's default."),
        Row("metadatacopies", Whole(0, 2), "How many copies of the metadata there are."),
        *KEPT,
    ],
)
GROUP = Table(
    "a volume group",
    [
        Row("name", _LVM_NAME, "What it is called.", required=True),
        Row("pvnames", DEVICES, "Its physical volumes.", required=True),
        Row("extent_size", Whole(1, LARGEST_EXTENT), "MiB of an extent, a power of two.", default=EXTENT),
        *KEPT,
    ],
)
POOL = Table(
    "a thin pool",
    [
        Row("name", _LVM_NAME, "What it is called.", required=True),
        Row("vgname", _LVM_NAME, "Its volume group.", required=True),
        Row("size", Amount(1), "Its room for data.", required=True),
        Row("metadata_size", Amount(LEAST_METADATA), "The room for its metadata; LVM takes as much once more, for a spare."),
        Row("chunk_size", Whole(LEAST_CHUNK, LARGEST_CHUNK), "What it gives out at once: KiB, a multiple of 64.", default=LEAST_CHUNK),
        *KEPT,
    ],
)
VOLUME = Table(
    "a logical volume",
    [
        Row("name", _LVM_NAME, "What it is called.", required=True),
        Row("vgname", _LVM_NAME, "Its volume group.", required=True),
        Row("size", Amount(1), "Its size; in a thin pool, the size that it shows.", required=True),
        Row("pool", Named(names.why_no_lvm_name, filled=False), "The thin pool that it is in."),
        Row("device", NODE_IF_ANY, "Its device node."),
        Row("stripes", Whole(1, MOST_STRIPES), "In how many stripes it is made, each on a physical volume of its own; 1 is linear."),
        Row("stripe_size", Whole(LEAST_STRIPE), "KiB of a stripe before the next begins, a power of two.", default=0),
        Row("devices", NODES, "The physical volumes for its stripes, if there is room; by default those with most room.", default=()),
        *KEPT,
    ],
)
CACHE = Table(
    "a cache",
    [
        Row("name", _LVM_NAME, "What it is called.", required=True),
        Row("vgname", _LVM_NAME, "Its volume group.", required=True),
        Row("origin", _LVM_NAME, "The volume that it caches.", required=True),
        Row("device", NODE, "The physical volume of the group that is all its own.", required=True),
        Row("mode", Word(MODES), "How it caches.", default=WRITETHROUGH),
        *KEPT,
    ],
)


@dataclass(frozen=True)
class DesiredPhysicalVolume:
    """A physical volume; `metadata_size` 0 is LVM's default."""

    device: str
    metadata_size: int = 0
    metadata_copies: int = 1
    place: str = ""


@dataclass(frozen=True)
class DesiredGroup:
    """A volume group."""

    place: str
    name: str
    physical: tuple[DesiredPhysicalVolume, ...]
    keep_data: bool = False
    extent: int = EXTENT * MIB
    """Of one that is made; one that is there keeps its own."""
    space: str = ""

    @property
    def devices(self) -> tuple[str, ...]:
        """Its physical volumes."""
        return tuple(volume.device for volume in self.physical)


@dataclass(frozen=True)
class DesiredPool:
    """A thin pool: `size` is its room for data, `metadata` that for its own, `chunk` what it gives out at once. Nothing lies on it."""

    place: str
    group: str
    name: str
    size: int
    metadata: int
    chunk: int
    space: str = ""
    default_metadata: bool = False
    """Whether the schema leaves the room for metadata open."""

    @property
    def device(self) -> str:
        """Its mapper node."""
        return mapper_node(self.group, self.name)


@dataclass(frozen=True)
class DesiredCache:
    """A cache of the volume `origin`: all of the physical volume `device` of the group; `mode` is LVM's word."""

    place: str
    group: str
    name: str
    origin: str
    device: str
    mode: str
    space: str = ""


@dataclass(frozen=True)
class DesiredVolume:
    """A logical volume; `may_shrink`: an existing larger volume may be made smaller.

    A volume in a thin pool, `pool`, takes only the space of written data from the pool; its size is the one that users see.
    """

    place: str
    group: str
    name: str
    size: int
    keep_data: bool = False
    may_shrink: bool = False
    pool: str = ""
    space: str = ""
    stripes: int = 0
    """In how many stripes it is made, 1 is linear; 0 leaves one that is there as it is, and is linear for another."""
    stripe_size: int = 0
    """0 for LVM's default."""
    devices: tuple[str, ...] = ()
    """The physical volumes for its stripes."""

    @property
    def device(self) -> str:
        """Its mapper node."""
        return mapper_node(self.group, self.name)

    @property
    def title(self) -> str:
        """Its name with that of its group, as LVM's tools take it."""
        return f"{self.group}/{self.name}"

    @property
    def options(self) -> tuple[str, ...]:
        """Further options for lvcreate, after its name, its size and its pool."""
        return stripe_options(self.stripes, self.stripe_size) if self.is_striped else ()

    @property
    def is_striped(self) -> bool:
        """Whether it is made in several stripes."""
        return self.stripes > 1


def physical_volume_of(item: Entry) -> DesiredPhysicalVolume:
    """Return a physical volume."""
    copies = 1 if item["metadatacopies"] is None else item["metadatacopies"]
    return DesiredPhysicalVolume(item["name"], (item["metadatasize"] or 0) * MIB, copies, item.place)


def group_of(item: Entry, physical: Mapping[str, DesiredPhysicalVolume]) -> DesiredGroup:
    """Return a group on some of the physical volumes."""
    for device in item["pvnames"]:
        if device and device not in physical:
            item.mistake("pvnames", f"{device} is not one of pvs")
    found = tuple(physical.get(device) or DesiredPhysicalVolume(device) for device in item["pvnames"])
    extent = item["extent_size"]
    if not is_extent(extent):
        item.mistake("extent_size", f"must be a power of two from 1 to {LARGEST_EXTENT} MiB, not {extent}")
    return DesiredGroup(item.place, item["name"], found, item["keep_data"], extent * MIB, item.space)


def pool_of(item: Entry) -> DesiredPool:
    """Return a thin pool."""
    chunk, metadata = item["chunk_size"], item["metadata_size"]
    if not thin.is_chunk(chunk):
        item.mistake("chunk_size", f"must be a multiple of {thin.LEAST_CHUNK} KiB up to {thin.LARGEST_CHUNK}, not {chunk}")
        chunk = thin.LEAST_CHUNK
    room = thin.metadata_of(item["size"], chunk) if metadata is None else metadata
    sizes = (item["size"] * MIB, room * MIB, chunk * 1024)
    return DesiredPool(item.place, item["vgname"], item["name"], *sizes, space=item.space, default_metadata=metadata is None)


def cache_of(item: Entry) -> DesiredCache:
    """Return a cache."""
    return DesiredCache(item.place, item["vgname"], item["name"], item["origin"], item["device"], item["mode"], item.space)


def volume_of(item: Entry, aliases: dict[str, str]) -> DesiredVolume:
    """Return a volume; `aliases` gets the other names of its device."""
    group, name, size = item["vgname"], item["name"], item["size"] * MIB
    stripes, stripe_size = item["stripes"] or 0, item["stripe_size"]
    if item["stripe_size"] and not is_stripe(item["stripe_size"]) and item.is_right("stripe_size"):
        item.mistake("stripe_size", f"must be a power of two from {LEAST_STRIPE} KiB on, not {item['stripe_size']}")
    for key in ("stripe_size", "devices"):
        if item[key] and stripes < 2:
            item.mistake(key, "is for a volume in stripes; needs stripes of 2 or more")
    if stripes > 1 and item["pool"]:
        item.mistake("stripes", "is not for a volume in a thin pool, which lies where the pool does")
    if item["devices"] and len(set(item["devices"])) != stripes > 1:
        item.mistake("devices", f"must be {stripes} physical volumes, as many as stripes, not {len(set(item['devices']))}")
    striping = {"stripes": stripes, "stripe_size": stripe_size * KIB, "devices": item["devices"]}
    volume = DesiredVolume(item.place, group, name, size, item["keep_data"], pool=item["pool"] or "", space=item.space, **striping)
    if item.is_right("name", "vgname"):
        item.mistake("name", names.why_no_mapper_node(volume.device))
    aliases.update(dict.fromkeys((f"/dev/{group}/{name}", item["device"] or volume.device), volume.device))
    return volume


def check_references(groups: Sequence[DesiredGroup], pools: Sequence[DesiredPool], volumes: Sequence[DesiredVolume]) -> Iterator[Found]:
    """Give what is wrong with the groups and pools that volumes name."""
    known = {group.name for group in groups}
    for place, name in [(thing.place, thing.group) for thing in pools] + [(thing.place, thing.group) for thing in volumes]:
        if name not in known:
            yield f"{place}.vgname", f"there is no vg {name}; there are {', '.join(sorted(known)) or 'none'}"
    yield from _check_stripes(groups, volumes)
    for volume in volumes:
        inside = sorted(pool.name for pool in pools if pool.group == volume.group)
        if volume.pool and volume.pool not in inside:
            yield f"{volume.place}.pool", f"there is no thin pool {volume.pool} in {volume.group}; there are {', '.join(inside) or 'none'}"


def _check_stripes(groups: Sequence[DesiredGroup], volumes: Sequence[DesiredVolume]) -> Iterator[Found]:
    by_name = {group.name: group for group in groups}
    for volume in volumes:
        group = by_name.get(volume.group)
        if group is None or not volume.is_striped:
            continue
        if len(group.physical) < volume.stripes:
            says = f"{volume.stripes} stripes need as many physical volumes, and {group.name} has {len(group.physical)}"
            yield f"{volume.place}.stripes", says
        for device in volume.devices:
            if device not in group.devices:
                yield f"{volume.place}.devices", f"{device} is not one of the pvnames of {group.name}"
        each = volume.stripes * group.extent
        if volume.size % each:
            what = f"{volume.stripes} extents of {group.extent // MIB} MiB, one for each stripe"
            yield f"{volume.place}.size", f"must be a multiple of {each // MIB} MiB ({what}), not {volume.size // MIB}"


def check_caches(
    all_groups: Sequence[DesiredGroup], pools: Sequence[DesiredPool], volumes: Sequence[DesiredVolume], caches: Sequence[DesiredCache]
) -> Iterator[Found]:
    """Give what is wrong with caches."""
    groups = {group.name: group for group in all_groups}
    taken = {(thing.group, thing.name) for thing in volumes} | {(thing.group, thing.name) for thing in pools}
    for one in caches:
        group = groups.get(one.group)
        origin = next((volume for volume in volumes if (volume.group, volume.name) == (one.group, one.origin) and not volume.pool), None)
        if group is None:
            yield f"{one.place}.vgname", f"there is no vg {one.group}; there are {', '.join(sorted(groups)) or 'none'}"
        elif one.device not in {volume.device for volume in group.physical}:
            yield f"{one.place}.device", f"{one.device} is not one of the pvnames of {one.group}"
        elif origin is None:
            yield f"{one.place}.origin", f"there is no volume {one.origin} in {one.group} that is in no thin pool"
        elif (one.group, one.name) in taken:
            yield f"{one.place}.name", f"{one.group} has a volume {one.name} already"
    yield from doubles("origin", ((one.place, f"{one.group}/{one.origin}") for one in caches))
    yield from doubles("device", ((one.place, one.device) for one in caches))
    yield from doubles("name", ((one.place, f"{one.group}/{one.name}") for one in caches))
