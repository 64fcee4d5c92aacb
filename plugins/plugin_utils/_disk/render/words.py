# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Words for what is drawn: the lines of a tooltip, shares, mounts. Sizes are MiB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....module_utils._data.units import format_mib
from .shapes import DiskPicture, IdlePicture, LeftOutPicture, Segment, SpacePicture, SubvolumePicture


def tip(space: SpacePicture, disk: DiskPicture, size: float) -> list[str]:
    """Return what there is to say of the part of a space that lies on one disk, its name first."""
    lines = [space.id, f"{label(space)}{f' in {space.inside}' if space.inside else ''}"]
    spare = disk.id in space.standing_by
    lines.append(f"{format_mib(size)}{' as a spare' if spare else ''} on {disk.name}, {percent(size, disk.size)}")
    if round(size) != space.size:
        lines.append(f"{format_mib(space.size)} in all")
    if space.mount or space.fs_type:
        lines.append(mount(space))
    if space.cache:
        lines.append(space.cache)
    return [*lines, *(subvolume_words(subvolume) for subvolume in space.subvolumes), *space.reasons]


def subvolume_words(subvolume: SubvolumePicture) -> str:
    """Return where a subvolume or dataset is mounted, and how much it may hold."""
    limit = f"{format_mib(subvolume.quota)} at most" if subvolume.quota else None
    return ", ".join(word for word in (f"{subvolume.what} {subvolume.name}", subvolume.mount, limit) if word)


def unallocated_tip(disk: DiskPicture) -> list[str]:
    """Return what there is to say of the room that no space takes."""
    return ["unallocated", f"{format_mib(disk.unallocated)} of {disk.name}, {percent(disk.unallocated, disk.size)}"]


def free_tip(segment: Segment) -> list[str]:
    """Return what there is to say of the room in a group that no volume takes."""
    return ["free", f"{format_mib(segment.free)} in {segment.space_id}"]


def strip(spaces: Mapping[str, SpacePicture], segment: Segment) -> str:
    """Return the heading of what holds volumes."""
    space = spaces[segment.space_id]
    return f"{strip_name(spaces, segment)}, {label(space)}, {format_mib(segment.size)}"


def strip_name(spaces: Mapping[str, SpacePicture], segment: Segment) -> str:
    """Return the name of what holds volumes; of an array with the group that lies on it."""
    group = next((spaces[part.space_id].inside for part in segment.slices), None)
    return segment.space_id if group in (None, segment.space_id) else f"{segment.space_id} with {group}"


def label(space: SpacePicture) -> str:
    """Return what kind of space it is."""
    return f"{space.label}, encrypted" if space.encrypted else space.label


def mount(space: SpacePicture) -> str:
    """Return where and as what a space is mounted."""
    options = space.mount_options if space.mount_options != "defaults" else None
    return ", ".join(word for word in (space.mount, space.fs_type, options) if word)


def left_out_words(disk: LeftOutPicture) -> str:
    """Return the sentence about a disk that the plan leaves alone."""
    name = disk.name if disk.name == disk.short_id else f"{disk.name} {disk.short_id}"
    described = ", ".join(word for word in (format_mib(disk.size), disk.description) if word)
    asking = f"; eligible: [{', '.join(disk.kinds)}] takes it in" if disk.kinds else ""
    return f"{name} ({described}) is left out: it {disk.reason}{asking}"


def idle_words(disks: IdlePicture) -> str:
    """Return the sentence about disks that a profile puts nothing on; where it ends with a colon the override follows."""
    described = " ".join(word for word in (format_mib(disks.size), disks.description) if word)
    if disks.count == 1:
        says, them = f"{disks.first} ({described}) stays idle", "it"
    else:
        names = f"{disks.first} {'and' if disks.count == 2 else 'to'} {disks.last}"
        says, them = f"{disks.count} disks ({names}, {described} each) stay idle", "them"
    return f"{says}; this override uses {them}:" if disks.override else says


def remarks(idle: Sequence[IdlePicture]) -> list[str]:
    """Return what a profile says of idle disks, once."""
    return list(dict.fromkeys(disks.remark for disks in idle if disks.remark))


def percent(size: float, whole: float) -> str:
    """Return a share as a person reads it."""
    share = 100 * size / whole if whole else 0.0
    return "less than 0.1 %" if 0 < share < 0.1 else f"{share:.1f} %"


def run_name(run: Sequence[DiskPicture]) -> str:
    """Return the name of disks that are drawn together."""
    return f"{run[0].name} … {run[-1].name}" if len(run) > 1 else run[0].name


def run_size(run: Sequence[DiskPicture]) -> str:
    """Return size and description of disks that are drawn together."""
    size = format_mib(run[0].size)
    return f"{len(run)} × {size} {run[0].description}" if len(run) > 1 else f"{size} {run[0].description}"


def run_link(run: Sequence[DiskPicture]) -> str:
    """Return the shortened link of a disk that is drawn alone."""
    return run[0].short_id if len(run) == 1 and run[0].short_id != run[0].name else ""
