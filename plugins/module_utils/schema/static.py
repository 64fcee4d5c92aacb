# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The explicit static schema, lists of what is to be made in MiB -> the desired layout, or every mistake in it at once.

The objects are Bareon's (its `nailgun_simple` input), as disk_plan writes them. Keys of Bareon's that say nothing here are accepted.
"""

from __future__ import annotations

import re
import shlex
import typing as t
import uuid
from collections.abc import Iterable, Iterator

from ..storage import btrfs, cache, derived, gpt, lvm, thin
from ..storage.filesystems import DEFAULT, FILESYSTEMS, NOT_MOUNTED
from ..storage.raid import RaidLevel, least_legs, parse_level
from ..storage.units import MIB
from .checks import check_layout
from .fields import Item, Mistakes
from .methods import read_methods
from .model import (
    DesiredArray,
    DesiredCache,
    DesiredContainer,
    DesiredDisk,
    DesiredFilesystem,
    DesiredGroup,
    DesiredPartition,
    DesiredPhysicalVolume,
    DesiredPool,
    DesiredSubvolume,
    DesiredVolume,
    Layout,
)
from .zpools import KEYS as ZPOOL_KEYS
from .zpools import read_zpool

LEGACY_BOOT_ATTRS = "LegacyBIOSBootable"
"""sfdisk's word for the flag."""
_FLAGS = (*gpt.TYPES_BY_FLAG, gpt.LEGACY_BOOT)

_METADATA = {"default": "1.2", "1.0": "1.0", "1.1": "1.1", "1.2": "1.2"}
_LVM_NAME = re.compile(r"^(?!-)(?!\.{1,2}$)[a-zA-Z0-9+_.-]{1,127}$")
_ARRAY_NAME = re.compile(r"^/dev/(md/[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}|md[0-9]{1,3})$")

_LISTS = ("parteds", "mds", "luks", "pvs", "vgs", "thin_pools", "lvs", "caches", "zpools", "fss")
_KEYS = {
    "parteds": ("name", "disk_id", "label", "disk_size", "install_bootloader", "partitions"),
    "partitions": (
        *("name", "device", "count", "begin", "end", "partition_type"),
        *("guid", "uuid", "flags", "keep_data", "configdrive", "space_id", "partition_label"),
    ),
    "mds": ("name", "level", "devices", "spares", "metadata", "keep_data", "space_id"),
    "luks": ("name", "device", "keep_data", "space_id", "unlock"),
    "pvs": ("name", "metadatasize", "metadatacopies", "keep_data", "space_id"),
    "vgs": ("name", "pvnames", "extent_size", "keep_data", "space_id"),
    "thin_pools": ("name", "vgname", "size", "metadata_size", "chunk_size", "keep_data", "space_id"),
    "lvs": ("name", "vgname", "size", "device", "pool", "keep_data", "space_id"),
    "caches": ("name", "vgname", "origin", "device", "mode", "keep_data", "space_id"),
    "zpools": ZPOOL_KEYS,
    "fss": (
        *("device", "mount", "fs_type", "fs_options", "fs_label", "uuid"),
        *("fstab_enabled", "fstab_options", "os_id", "keep_data", "space_id", "subvolumes", "devices", "level"),
    ),
    "subvolumes": ("name", "mount", "fstab_options", "quota"),
}


class SchemaMistakes(ValueError):
    """The schema cannot be used; `mistakes` are all that was found, each with its place."""

    def __init__(self, mistakes: Mistakes) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(
            "\n".join(mistakes) if len(mistakes) == 1 else "\n- ".join([f"{len(mistakes)} mistakes in the schema:", *mistakes])
        )


def is_array_name(device: str) -> bool:
    """Return whether an array can be called that in a schema."""
    return _ARRAY_NAME.match(device) is not None


def parse_static_schema(raw: t.Any) -> Layout:
    """Return the desired layout; raises SchemaMistakes."""
    mistakes: Mistakes = []
    schema = Item(raw, "", _LISTS, mistakes)
    lists = {name: schema.items(name, _KEYS[name]) for name in _LISTS}
    physical = {item.text("name"): _physical_volume(item) for item in lists["pvs"]}
    aliases: dict[str, str] = {}
    disks = tuple(_disk(item) for item in lists["parteds"])
    arrays = tuple(_array(item) for item in lists["mds"])
    volumes = tuple(_volume(item, aliases) for item in lists["lvs"])
    containers = tuple(_container(item, aliases) for item in lists["luks"])
    groups = tuple(_group(item, physical) for item in lists["vgs"])
    filesystems = tuple(_filesystem(item, aliases) for item in lists["fss"])
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
    device = item.text("name", item.text("disk_id", "") or None)
    disk_id = item.text("disk_id", device)
    item.flag("install_bootloader")
    size = item.whole("disk_size", 3) if item.has("disk_size") else None
    partitions = tuple(
        _partition(part, number, device, disk_id) for number, part in enumerate(item.items("partitions", _KEYS["partitions"]), 1)
    )
    return DesiredDisk(item.place, disk_id, device, size, tuple(sorted(partitions, key=lambda part: part.number)))


def _partition(item: Item, position: int, disk: str, disk_id: str) -> DesiredPartition:
    number = item.whole("count", 1, position)
    begin, end = item.whole("begin", 1), item.whole("end", 2)
    if end <= begin and item.is_right("begin", "end"):
        item.mistake("end", f"must be more than begin ({begin}): the MiB where the partition ends, exclusively")
    if item.text("partition_type", "primary") != "primary":
        item.mistake("partition_type", "must be primary: a GPT has no other kind")
    flags = item.texts("flags")
    for flag in flags:
        if flag not in _FLAGS:
            item.mistake("flags", f"{flag!r} is not one of {', '.join(_FLAGS)}")
    space = item.text("space_id", "")
    label = item.text("partition_label", "") or space[: gpt.LONGEST_NAME]
    says = gpt.why_no_name(label)
    if says is not None:
        item.mistake("partition_label", says)
    final = _uuid(item, "uuid") or derived.partition_uuid(disk_id, f"{space or 'partition'}/{number}")
    implied = next((gpt.TYPES_BY_FLAG[flag] for flag in flags if flag in gpt.TYPES_BY_FLAG), gpt.LINUX)
    return DesiredPartition(
        place=item.place,
        device=item.text("name", gpt.partition_node(disk, number) if disk else ""),
        number=number,
        start=begin * MIB,
        size=(end - begin) * MIB,
        type=_uuid(item, "guid") or implied,
        uuid=final,
        label=label,
        attrs=LEGACY_BOOT_ATTRS if gpt.LEGACY_BOOT in flags else None,
        keep_data=item.flag("keep_data"),
    )


def _uuid(item: Item, key: str) -> t.Optional[str]:
    text = item.text(key, "")
    if not text:
        return None
    try:
        return str(uuid.UUID(text))
    except ValueError:
        item.mistake(key, f"must be a GUID such as {gpt.LINUX}, not {text!r}")
        return None


def _array(item: Item) -> DesiredArray:
    device = item.text("name")
    title = device.rsplit("/", 1)[-1]
    if device and not is_array_name(device):
        item.mistake("name", f"must be /dev/md/NAME with at most 32 letters, digits, dots, dashes and underscores, not {device!r}")
    word, members = item.text("level"), item.texts("devices")
    level = parse_level(word)
    if word and level is None:
        item.mistake("level", f"must be one of {', '.join(RaidLevel)}, not {word!r}")
    elif level is not None and len(members) < least_legs(level):
        item.mistake("devices", f"{level} needs at least {least_legs(level)} devices, not {len(members)}")
    if level is RaidLevel.RAID0 and item.texts("spares"):
        item.mistake("spares", "raid0 cannot use a spare")
    metadata = item.chosen("metadata", _METADATA, "default")
    return DesiredArray(
        place=item.place,
        device=device,
        title=title,
        level=level.value if level else word,
        members=members,
        spares=item.texts("spares"),
        metadata=_METADATA.get(metadata, metadata),
        keep_data=item.flag("keep_data"),
    )


def _container(item: Item, aliases: t.Mapping[str, str]) -> DesiredContainer:
    name = item.text("name").rsplit("/", 1)[-1]
    if name and not re.match(r"^[A-Za-z0-9+_.#:=@-]{1,127}$", name):
        item.mistake("name", f"must be a device-mapper name of letters, digits and #+-.:=@_, not {name!r}")
    device = item.text("device")
    return DesiredContainer(item.place, name, aliases.get(device, device), item.flag("keep_data"), read_methods(item))


def _physical_volume(item: Item) -> DesiredPhysicalVolume:
    item.flag("keep_data")
    copies = item.whole("metadatacopies", 0, 1)
    if copies > 2:
        item.mistake("metadatacopies", f"must be 0, 1 or 2, not {copies}")
    return DesiredPhysicalVolume(item.text("name"), item.whole("metadatasize", 0, 0) * MIB, copies)


def _group(item: Item, physical: t.Mapping[str, DesiredPhysicalVolume]) -> DesiredGroup:
    name, devices = item.text("name"), item.texts("pvnames")
    if name and not _LVM_NAME.match(name):
        item.mistake("name", f"must be a name that LVM accepts (letters, digits and +_.-, not beginning with a dash), not {name!r}")
    if not devices:
        item.mistake("pvnames", "has to name at least one physical volume")
    for device in devices:
        if device not in physical:
            item.mistake("pvnames", f"{device} is not one of pvs")
    found = tuple(physical[device] for device in devices if device in physical)
    extent = item.whole("extent_size", 1, lvm.EXTENT)
    if not lvm.is_extent(extent):
        item.mistake("extent_size", f"must be a power of two from 1 to {lvm.LARGEST_EXTENT} MiB, not {extent}")
    return DesiredGroup(item.place, name, found, item.flag("keep_data"), extent * MIB)


def _pool(item: Item) -> DesiredPool:
    name, size, chunk = _volume_name(item), item.whole("size", 1), item.whole("chunk_size", thin.LEAST_CHUNK, thin.LEAST_CHUNK)
    item.flag("keep_data")
    if not thin.is_chunk(chunk):
        item.mistake("chunk_size", f"must be a multiple of {thin.LEAST_CHUNK} KiB up to {thin.LARGEST_CHUNK}, not {chunk}")
        chunk = thin.LEAST_CHUNK
    metadata = item.whole("metadata_size", thin.LEAST_METADATA, thin.metadata_of(size, chunk))
    return DesiredPool(item.place, item.text("vgname"), name, size * MIB, metadata * MIB, chunk * 1024)


def _cache(item: Item) -> DesiredCache:
    item.flag("keep_data")
    mode = item.chosen("mode", cache.MODES, cache.WRITETHROUGH)
    return DesiredCache(item.place, item.text("vgname"), _volume_name(item), item.text("origin"), item.text("device"), mode)


def _volume_name(item: Item) -> str:
    name = item.text("name")
    if name and not _LVM_NAME.match(name):
        item.mistake("name", f"must be a name that LVM accepts (letters, digits and +_.-, not beginning with a dash), not {name!r}")
    return name


def _volume(item: Item, aliases: dict[str, str]) -> DesiredVolume:
    name, group = _volume_name(item), item.text("vgname")
    volume = DesiredVolume(item.place, group, name, item.whole("size", 1) * MIB, item.flag("keep_data"), pool=item.text("pool", ""))
    aliases.update(dict.fromkeys((f"/dev/{group}/{name}", item.text("device", volume.device)), volume.device))
    return volume


def _filesystem(item: Item, aliases: t.Mapping[str, str]) -> DesiredFilesystem:
    device, label = item.text("device"), item.text("fs_label", "")
    fs_type = item.chosen("fs_type", FILESYSTEMS, DEFAULT)
    item.flag("fstab_enabled")
    longest = FILESYSTEMS[fs_type].label_length if fs_type in FILESYSTEMS else len(label.encode())
    if len(label.encode()) > longest:
        item.mistake("fs_label", f"{label!r} is too long: {fs_type} takes {longest} bytes")
    try:
        options = tuple(shlex.split(item.text("fs_options", "")))
    except ValueError as error:
        item.mistake("fs_options", f"cannot be split into words: {error}")
        options = ()
    return DesiredFilesystem(
        place=item.place,
        device=aliases.get(device, device),
        type=fs_type,
        label=label,
        options=options,
        mount=item.text("mount", NOT_MOUNTED),
        keep_data=item.flag("keep_data"),
        uuid=item.text("uuid", "") or None,
        subvolumes=_subvolumes(item, fs_type),
        more=_more_devices(item, fs_type, device),
        level=item.text("level", ""),
    )


def _more_devices(item: Item, fs_type: str, device: str) -> tuple[str, ...]:
    """Return the devices of a filesystem beside the first."""
    devices, word = item.texts("devices"), item.text("level", "")
    if not devices and not word:
        return ()
    levels = {str(level): least for level, least in btrfs.LEVELS.items()}
    if fs_type != btrfs.BTRFS:
        item.mistake("devices", f"only {btrfs.BTRFS} can lie on several devices, not {fs_type}")
    elif word not in levels:
        item.mistake("level", f"must be one of {', '.join(levels)}, not {word!r}")
    elif len(devices) < levels[word]:
        item.mistake("devices", f"{word} needs at least {levels[word]} devices, not {len(devices)}")
    elif devices[0] != device:
        item.mistake("devices", f"has to begin with device, {device}")
    return devices[1:]


def _subvolumes(item: Item, fs_type: str) -> tuple[DesiredSubvolume, ...]:
    found = tuple(_subvolume(part) for part in item.items("subvolumes", _KEYS["subvolumes"]))
    if found and fs_type != btrfs.BTRFS:
        item.mistake("subvolumes", f"only {btrfs.BTRFS} has subvolumes, not {fs_type}")
    return found


def _subvolume(item: Item) -> DesiredSubvolume:
    text, options = item.text("name"), item.text("fstab_options", "")
    name = btrfs.subvolume_name(text)
    if text and name is None:
        item.mistake("name", f"must be {btrfs.NAME_WANTED}, not {text!r}")
    misplaced = btrfs.misplaced_option(options)
    if misplaced is not None:
        item.mistake("fstab_options", btrfs.why_misplaced(misplaced))
    limit = item.whole("quota", 1) * MIB if item.has("quota") else None
    return DesiredSubvolume(item.place, name or text, limit, item.text("mount", NOT_MOUNTED))
