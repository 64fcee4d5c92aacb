# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The explicit static schema, lists of what is to be made in MiB -> the desired layout, or every mistake in it at once.

The objects are Bareon's (its `nailgun_simple` input), as disk_plan writes them. Keys of Bareon's that say nothing here are accepted.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Iterator

from .._storage import cache, crypttab, derived, gpt, lvm, names, thin
from .._storage.raid import RaidLevel, least_legs, parse_level
from .._storage.units import MIB
from .checks import check_layout
from .fields import Item, Mistakes
from .filesystems import KEYS as FILESYSTEM_KEYS
from .filesystems import SUBVOLUME_KEYS, read_filesystem
from .methods import read_methods
from .model import (
    DesiredArray,
    DesiredCache,
    DesiredContainer,
    DesiredDisk,
    DesiredGroup,
    DesiredPartition,
    DesiredPhysicalVolume,
    DesiredPool,
    DesiredVolume,
    Layout,
)
from .zpools import KEYS as ZPOOL_KEYS
from .zpools import read_zpool

LEGACY_BOOT_ATTRS = "LegacyBIOSBootable"
"""sfdisk's word for the flag."""
_FLAGS = (*gpt.TYPES_BY_FLAG, gpt.LEGACY_BOOT)

_MAPPER = "/dev/mapper/"
_METADATA = {"default": "1.2", "1.0": "1.0", "1.1": "1.1", "1.2": "1.2"}

_LISTS = ("parteds", "mds", "luks", "pvs", "vgs", "thin_pools", "lvs", "caches", "zpools", "fss")
_KEYS = {
    "parteds": ("name", "disk_id", "label", "disk_size", "install_bootloader", "partitions"),
    "partitions": (
        *("name", "device", "count", "begin", "end", "start_bytes", "end_bytes", "partition_type"),
        *("guid", "uuid", "flags", "keep_data", "configdrive", "space_id", "partition_label"),
    ),
    "mds": ("name", "level", "devices", "spares", "metadata", "keep_data", "space_id", "mdadm_conf_enabled"),
    "luks": ("name", "device", "keep_data", "space_id", "unlock", "key_file", "crypttab_options", "crypttab_enabled"),
    "pvs": ("name", "metadatasize", "metadatacopies", "keep_data", "space_id"),
    "vgs": ("name", "pvnames", "extent_size", "keep_data", "space_id"),
    "thin_pools": ("name", "vgname", "size", "metadata_size", "chunk_size", "keep_data", "space_id"),
    "lvs": ("name", "vgname", "size", "device", "pool", "keep_data", "space_id"),
    "caches": ("name", "vgname", "origin", "device", "mode", "keep_data", "space_id"),
    "zpools": ZPOOL_KEYS,
    "fss": FILESYSTEM_KEYS,
    "subvolumes": SUBVOLUME_KEYS,
}


class SchemaMistakes(ValueError):
    """The schema cannot be used; `mistakes` are all that was found, each with its place."""

    def __init__(self, mistakes: Mistakes) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(
            "\n".join(mistakes) if len(mistakes) == 1 else "\n- ".join([f"{len(mistakes)} mistakes in the schema:", *mistakes])
        )


def parse_static_schema(raw: t.Any) -> Layout:
    """Return the desired layout; raises SchemaMistakes."""
    mistakes: Mistakes = []
    schema = Item(raw, "", _LISTS, mistakes)
    lists = {name: schema.items(name, _KEYS[name]) for name in _LISTS}
    read = [_physical_volume(item) for item in lists["pvs"]]
    physical = {volume.device: volume for volume in read}
    aliases: dict[str, str] = {}
    disks = tuple(_disk(item) for item in lists["parteds"])
    arrays = tuple(_array(item) for item in lists["mds"])
    volumes = tuple(_volume(item, aliases) for item in lists["lvs"])
    containers = tuple(_container(item, aliases) for item in lists["luks"])
    groups = tuple(_group(item, physical) for item in lists["vgs"])
    filesystems = tuple(read_filesystem(item, aliases) for item in lists["fss"])
    pools = tuple(_pool(item) for item in lists["thin_pools"])
    caches = tuple(_cache(item) for item in lists["caches"])
    zpools = tuple(read_zpool(item) for item in lists["zpools"])
    layout = Layout(disks, arrays, containers, groups, volumes, filesystems, pools, caches, zpools)
    if not mistakes:
        mistakes.extend(check_layout(layout, {device: item.place for device, item in zip(physical, lists["pvs"])}))
    if mistakes:
        raise SchemaMistakes(mistakes)
    return layout


def why_not_shrink(layout: Layout, names: Iterable[str]) -> Iterator[str]:
    """Give what is wrong with the names of volumes that may be made smaller."""
    known = [volume.title for volume in layout.volumes]
    for name in names:
        if name not in known:
            yield f"allow_shrink: there is no logical volume {name} in the schema; there are {', '.join(known) or 'none'}"


def _disk(item: Item) -> DesiredDisk:
    label = item.text("label", "gpt")
    if label != "gpt":
        item.mistake("label", f"must be gpt, not {label!r}: in other tables a partition has no identity that survives a power cut")
    disk_id = item.named("disk_id", names.why_no_disk_id, "")
    device = item.named("name", names.why_no_device, disk_id or None)
    disk_id = disk_id or device
    item.flag("install_bootloader")
    size = item.whole("disk_size", 3) if item.has("disk_size") else None
    partitions = tuple(
        _partition(part, number, device, disk_id) for number, part in enumerate(item.items("partitions", _KEYS["partitions"]), 1)
    )
    in_order = tuple(sorted(partitions, key=lambda part: part.number))
    return DesiredDisk(item.place, disk_id, device, size, in_order, derived.table_uuid(disk_id))


def _partition(item: Item, position: int, disk: str, disk_id: str) -> DesiredPartition:
    number = item.whole("count", 1, position)
    keep_data = item.flag("keep_data")
    start, stop = _extent(item, keep_data)
    if item.text("partition_type", "primary") != "primary":
        item.mistake("partition_type", "must be primary: a GPT has no other kind")
    flags = item.texts("flags")
    for flag in flags:
        if flag not in _FLAGS:
            item.mistake("flags", f"{flag!r} is not one of {', '.join(_FLAGS)}")
    space = item.space()
    item.named("device", names.why_no_device, "")
    label = item.text("partition_label", "") or space[: gpt.LONGEST_NAME]
    if item.is_right("space_id"):
        item.check("partition_label", label, gpt.why_no_name)
    given, purpose = _uuid(item, "uuid"), f"{space or 'partition'}/{number}"
    implied = next((gpt.TYPES_BY_FLAG[flag] for flag in flags if flag in gpt.TYPES_BY_FLAG), gpt.LINUX)
    return DesiredPartition(
        place=item.place,
        device=item.named("name", names.why_no_device, gpt.partition_node(disk, number) if disk else ""),
        number=number,
        start=start,
        size=stop - start,
        type=_uuid(item, "guid") or implied,
        uuid=given or derived.partition_uuid(disk_id, purpose),
        label=label,
        attrs=LEGACY_BOOT_ATTRS if gpt.LEGACY_BOOT in flags else None,
        keep_data=keep_data,
        purpose="" if given else purpose,
    )


def _extent(item: Item, keep_data: bool) -> tuple[int, int]:
    """Return where a partition begins and ends, in bytes; one that is kept may do so within the first and the last of its MiB."""
    exact = {key: item.whole(key, 1) for key in ("start_bytes", "end_bytes") if item.has(key)}
    begin, end = item.whole("begin", 0 if exact else 1), item.whole("end", 1 if exact else 2)
    if end <= begin and item.is_right("begin", "end"):
        item.mistake("end", f"must be more than begin ({begin}): the MiB where the partition ends, exclusively")
    for key, first in (("start_bytes", begin), ("end_bytes", end - 1)):
        lies = exact.get(key, first * MIB) - (key == "end_bytes" and key in exact)
        if key in exact and not keep_data:
            item.mistake(key, "is only for a partition with keep_data; others begin and end at whole MiB")
        elif item.is_right(key, "begin", "end") and not first * MIB <= lies < (first + 1) * MIB:
            where = "begin" if key == "start_bytes" else "end"
            item.mistake(key, f"is {exact[key]}, which is not in the MiB that {where} says; leave {key} out, or {where} as it was")
    return exact.get("start_bytes", begin * MIB), exact.get("end_bytes", end * MIB)


def _uuid(item: Item, key: str) -> t.Optional[str]:
    text = item.text(key, "")
    found = names.guid_of(text)
    if text and found is None:
        item.mistake(key, f"{names.GUID_WANTED}, not {text!r}")
    return found


def _array(item: Item) -> DesiredArray:
    device = item.named("name", names.why_no_array)
    title = device.rsplit("/", 1)[-1]
    word, members, spares = item.text("level"), item.names("devices", names.why_no_device), item.names("spares", names.why_no_device)
    level = parse_level(word)
    if word and level is None:
        item.mistake("level", f"must be one of {', '.join(RaidLevel)}, not {word!r}")
    elif level is not None and len(members) < least_legs(level) and item.is_right("devices"):
        item.mistake("devices", f"{level} needs at least {least_legs(level)} devices, not {len(members)}")
    if level is RaidLevel.RAID0 and spares:
        item.mistake("spares", "raid0 cannot use a spare")
    metadata = item.chosen("metadata", _METADATA, "default")
    item.space()
    item.flag("mdadm_conf_enabled")
    return DesiredArray(
        place=item.place,
        device=device,
        title=title,
        level=level.value if level else word,
        members=members,
        spares=spares,
        metadata=_METADATA.get(metadata, metadata),
        keep_data=item.flag("keep_data"),
    )


def _container(item: Item, aliases: t.Mapping[str, str]) -> DesiredContainer:
    name = item.text("name")
    if name.startswith(_MAPPER):
        name = name[len(_MAPPER) :]
    item.check("name", name, names.why_no_mapping)
    device = item.named("device", names.why_no_device)
    item.space()
    for key, why_not in (("key_file", crypttab.why_no_key_file), ("crypttab_options", crypttab.why_no_options)):
        item.check(key, item.text(key, ""), why_not)
    item.flag("crypttab_enabled")
    return DesiredContainer(item.place, name, aliases.get(device, device), item.flag("keep_data"), read_methods(item))


def _physical_volume(item: Item) -> DesiredPhysicalVolume:
    item.flag("keep_data")
    item.space()
    copies = item.whole("metadatacopies", 0, 1)
    if copies > 2:
        item.mistake("metadatacopies", f"must be 0, 1 or 2, not {copies}")
    return DesiredPhysicalVolume(item.named("name", names.why_no_device), item.whole("metadatasize", 0, 0) * MIB, copies)


def _group(item: Item, physical: t.Mapping[str, DesiredPhysicalVolume]) -> DesiredGroup:
    name, devices = item.named("name", names.why_no_lvm_name), item.names("pvnames", names.why_no_device)
    item.space()
    if not devices and item.is_right("pvnames"):
        item.mistake("pvnames", "has to name at least one physical volume")
    for device in devices:
        if device not in physical and item.is_right("pvnames"):
            item.mistake("pvnames", f"{device} is not one of pvs")
    found = tuple(physical[device] for device in devices if device in physical)
    extent = item.whole("extent_size", 1, lvm.EXTENT)
    if not lvm.is_extent(extent):
        item.mistake("extent_size", f"must be a power of two from 1 to {lvm.LARGEST_EXTENT} MiB, not {extent}")
    return DesiredGroup(item.place, name, found, item.flag("keep_data"), extent * MIB)


def _pool(item: Item) -> DesiredPool:
    name, size = item.named("name", names.why_no_lvm_name), item.whole("size", 1)
    chunk = item.whole("chunk_size", thin.LEAST_CHUNK, thin.LEAST_CHUNK)
    item.flag("keep_data")
    if not thin.is_chunk(chunk):
        item.mistake("chunk_size", f"must be a multiple of {thin.LEAST_CHUNK} KiB up to {thin.LARGEST_CHUNK}, not {chunk}")
        chunk = thin.LEAST_CHUNK
    metadata = item.whole("metadata_size", thin.LEAST_METADATA, thin.metadata_of(size, chunk))
    item.space()
    group = item.named("vgname", names.why_no_lvm_name)
    return DesiredPool(item.place, group, name, size * MIB, metadata * MIB, chunk * 1024)


def _cache(item: Item) -> DesiredCache:
    item.flag("keep_data")
    item.space()
    name, group, origin = (item.named(key, names.why_no_lvm_name) for key in ("name", "vgname", "origin"))
    mode = item.chosen("mode", cache.MODES, cache.WRITETHROUGH)
    return DesiredCache(item.place, group, name, origin, item.named("device", names.why_no_device), mode)


def _volume(item: Item, aliases: dict[str, str]) -> DesiredVolume:
    name, group = (item.named(key, names.why_no_lvm_name) for key in ("name", "vgname"))
    pool = item.named("pool", names.why_no_lvm_name, "")
    item.space()
    volume = DesiredVolume(item.place, group, name, item.whole("size", 1) * MIB, item.flag("keep_data"), pool=pool)
    if item.is_right("name", "vgname"):
        item.check("name", volume.device, names.why_no_mapper_node)
    known = item.named("device", names.why_no_device, volume.device if name and group else "")
    aliases.update(dict.fromkeys((f"/dev/{group}/{name}", known), volume.device))
    return volume
