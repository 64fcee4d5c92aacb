# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file systems of a static schema, with their subvolumes and the options that they are made and mounted with."""

from __future__ import annotations

import typing as t

from .._storage import btrfs, names
from .._storage.filesystems import DEFAULT, FILESYSTEMS, NOT_MOUNTED, SWAP, read_make_options
from .._storage.options import mounts
from .._storage.units import MIB
from .fields import Item
from .model import DesiredFilesystem, DesiredSubvolume

KEYS = (
    *("device", "mount", "fs_type", "fs_options", "fs_label", "uuid"),
    *("fstab_enabled", "fstab_options", "os_id", "keep_data", "space_id", "subvolumes", "devices", "level"),
)
SUBVOLUME_KEYS = ("name", "mount", "fstab_options", "quota")


def read_filesystem(item: Item, aliases: t.Mapping[str, str]) -> DesiredFilesystem:
    """Return a file system or swap; what is wrong with it is noted."""
    device = item.named("device", names.why_no_device)
    fs_type = item.chosen("fs_type", FILESYSTEMS, DEFAULT)
    item.flag("fstab_enabled")
    item.space()
    more = _more_devices(item, fs_type, device)
    mount = item.text("mount", NOT_MOUNTED)
    item.check("mount", mount, None if mount in (NOT_MOUNTED, SWAP) else names.why_no_mount)
    label, uuid = item.text("fs_label", ""), item.text("uuid", "")
    options: tuple[str, ...] = ()
    if item.is_right("fs_type"):
        row = FILESYSTEMS[fs_type]
        item.check("fs_label", label, lambda text: names.why_no_label(fs_type, text, row.label_length))
        item.check("uuid", uuid, lambda text: names.why_no_uuid(fs_type, text))
        options, refused = read_make_options(fs_type, item.text("fs_options", ""), several=bool(more))
        mounting = mounts.mistakes_in(fs_type, item.text("fstab_options", ""))
        for key, says in (*(("fs_options", says) for says in refused), *(("fstab_options", says) for says in mounting)):
            item.mistake(key, says)
    return DesiredFilesystem(
        place=item.place,
        device=aliases.get(device, device),
        type=fs_type,
        label=label,
        options=options,
        mount=mount,
        keep_data=item.flag("keep_data"),
        uuid=names.uuid_of(fs_type, uuid),
        subvolumes=_subvolumes(item, fs_type),
        more=more,
        level=item.text("level", "") if item.is_right("level") else "",
    )


def _more_devices(item: Item, fs_type: str, device: str) -> tuple[str, ...]:
    """Return the devices of a filesystem beside the first."""
    devices, word = item.names("devices", names.why_no_device), item.text("level", "")
    if (not devices and not word) or not item.is_right("device", "devices", "fs_type"):
        return devices[1:]
    levels = {str(level): least for level, least in btrfs.LEVELS.items()}
    if fs_type != btrfs.BTRFS:
        item.mistake("devices", f"only {btrfs.BTRFS} can lie on several devices, not {fs_type}")
    elif word not in levels and item.is_right("level"):
        item.mistake("level", f"must be one of {', '.join(levels)}, not {word!r}")
    elif len(devices) < levels.get(word, 0):
        item.mistake("devices", f"{word} needs at least {levels[word]} devices, not {len(devices)}")
    elif devices[0] != device:
        item.mistake("devices", f"has to begin with device, {device}")
    return devices[1:]


def _subvolumes(item: Item, fs_type: str) -> tuple[DesiredSubvolume, ...]:
    found = tuple(_subvolume(part) for part in item.items("subvolumes", SUBVOLUME_KEYS))
    if found and fs_type != btrfs.BTRFS and item.is_right("fs_type"):
        item.mistake("subvolumes", f"only {btrfs.BTRFS} has subvolumes, not {fs_type}")
    return found


def _subvolume(item: Item) -> DesiredSubvolume:
    text, options, mount = item.text("name"), item.text("fstab_options", ""), item.text("mount", NOT_MOUNTED)
    name = btrfs.subvolume_name(text)
    if text and name is None:
        item.mistake("name", f"must be {btrfs.NAME_WANTED}, not {text!r}")
    item.check("mount", mount, None if mount == NOT_MOUNTED else names.why_no_mount)
    misplaced = btrfs.misplaced_option(options)
    for says in [btrfs.why_misplaced(misplaced)] if misplaced is not None else mounts.mistakes_in(btrfs.BTRFS, options):
        item.mistake("fstab_options", says)
    limit = item.whole("quota", 1) * MIB if item.has("quota") else None
    return DesiredSubvolume(item.place, name or text, limit, mount)
