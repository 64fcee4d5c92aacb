# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file systems of a static schema, with their subvolumes and the options that they are made and mounted with."""

from __future__ import annotations

import typing as t

from .._storage import btrfs, names
from .._storage.filesystems import DEFAULT, FILESYSTEMS, NOT_MOUNTED, SWAP, read_make_options
from .._storage.units import MIB
from .entry import Entry
from .model import DesiredFilesystem, DesiredSubvolume


def filesystem_of(item: Entry, aliases: t.Mapping[str, str]) -> DesiredFilesystem:
    """Return a file system or swap; what is wrong with it is noted."""
    mount = item["mount"] or NOT_MOUNTED
    fs_type = item["fs_type"] or (SWAP if mount == SWAP else DEFAULT)
    more = _more_devices(item, fs_type)
    label, uuid, make, mounting = (item[key] or "" for key in ("fs_label", "uuid", "fs_options", "fstab_options"))
    options: tuple[str, ...] = ()
    if item.is_right("fs_type"):
        item.mistake("fs_label", names.why_no_label(fs_type, label, FILESYSTEMS[fs_type].label_length) if label else None)
        item.mistake("uuid", names.why_no_uuid(fs_type, uuid) if uuid else None)
        options, refused = read_make_options(fs_type, make, several=bool(more))
        for key, found in (("fs_options", refused), ("fstab_options", _wrong_mount_options(fs_type, mounting))):
            for says in found:
                item.mistake(key, says)
    return DesiredFilesystem(
        place=item.place,
        device=aliases.get(item["device"], item["device"]),
        type=fs_type,
        label=label,
        options=options,
        mount=mount,
        keep_data=item["keep_data"],
        uuid=names.uuid_of(fs_type, uuid),
        subvolumes=_subvolumes(item, fs_type),
        more=more,
        level=item["level"] or "",
        space=item.space,
        mount_options=mounting,
        make_text=make,
        in_fstab=item["fstab_enabled"],
    )


def _wrong_mount_options(fs_type: str, text: str) -> t.Iterable[str]:
    if not text:
        return ()
    # Hosts get sources, and compile in each run what they import: this only where it is used.
    from .._storage.options import mounts

    return mounts.mistakes_in(fs_type, text)


def _more_devices(item: Entry, fs_type: str) -> tuple[str, ...]:
    """Return the devices of a filesystem after the first."""
    devices, level = item["devices"], item["level"]
    if (devices or level) and item.is_right("device", "devices", "fs_type", "level"):
        least = {str(each): width for each, width in btrfs.LEVELS.items()}
        if fs_type != btrfs.BTRFS:
            item.mistake("devices", f"only {btrfs.BTRFS} can lie on several devices, not {fs_type}")
        elif level is None:
            item.mistake("level", f"is missing; must be one of {', '.join(least)}")
        elif len(devices) < least[level]:
            item.mistake("devices", f"{level} needs at least {least[level]} devices, not {len(devices)}")
        elif devices[0] != item["device"]:
            item.mistake("devices", f"has to begin with device, {item['device']}")
    return tuple(devices[1:])


def _subvolumes(item: Entry, fs_type: str) -> tuple[DesiredSubvolume, ...]:
    found = tuple(_subvolume(part, in_fstab=item["fstab_enabled"]) for part in item.items("subvolumes"))
    if found and fs_type != btrfs.BTRFS and item.is_right("fs_type"):
        item.mistake("subvolumes", f"only {btrfs.BTRFS} has subvolumes, not {fs_type}")
    return found


def _subvolume(item: Entry, *, in_fstab: bool) -> DesiredSubvolume:
    options = item["fstab_options"] or ""
    misplaced = btrfs.misplaced_option(options)
    for says in [btrfs.why_misplaced(misplaced)] if misplaced is not None else _wrong_mount_options(btrfs.BTRFS, options):
        item.mistake("fstab_options", says)
    limit = None if item["quota"] is None else item["quota"] * MIB
    name = btrfs.subvolume_name(item["name"]) or ""
    return DesiredSubvolume(item.place, name, limit, item["mount"] or NOT_MOUNTED, options, in_fstab)
