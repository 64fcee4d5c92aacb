# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A layout as `disks` and `filesystems` of a node, or a profile, of Warewulf 4, which gives them to Ignition at every start.

After internal/pkg/node/datastructure.go: numbers are texts. Warewulf has no arrays and no LUKS there, and where a partition begins does not
reach Ignition: storage.go takes the size for it. So partitions follow one another.
"""

from __future__ import annotations

import shlex
import typing as t

from ....module_utils._schema.model import DesiredDisk, DesiredFilesystem, Layout
from ....module_utils._storage import gpt
from .losses import Losses, lose_subvolumes, note_boot_flags
from .words import label_of, make_words, mount_words
from .write import Target

Plain = dict[str, t.Any]

_FILESYSTEMS = ("ext4", "btrfs", "xfs", "vfat", "swap")


def write(layout: Layout, losses: Losses, *, wipe: bool) -> Plain:
    """Return `{disks, filesystems}`; with `wipe`, each start of the node replaces all of it."""
    lose_subvolumes(layout, losses, "Ignition")
    note_boot_flags(layout, losses, "Warewulf")
    lost = [array.space for array in layout.arrays] + [container.space for container in layout.containers]
    lost += [group.space for group in layout.groups] + [volume.space for volume in layout.volumes]
    for space in dict.fromkeys(lost):
        losses.lose(
            space, "Warewulf's disks have partitions and file systems alone; plan_to_ignition writes md and LUKS for resources.ignition"
        )
    if wipe:
        losses.note("each start of the node wipes these disks")
    nodes = {part.device: f"/dev/disk/by-partuuid/{part.own_uuid}" if part.own_uuid else part.device for part in layout.partitions()}
    filesystems = {
        nodes[one.device]: _filesystem(one, losses, wipe=wipe)
        for one in layout.filesystems
        if one.device in nodes and _is_made(one, losses)
    }
    disks = {disk.device: _disk(disk, layout, losses, wipe=wipe) for disk in layout.disks}
    return {"disks": disks, **({"filesystems": filesystems} if filesystems else {})}


TARGET = Target("Warewulf", write)


def _is_made(filesystem: DesiredFilesystem, losses: Losses) -> bool:
    if filesystem.type not in _FILESYSTEMS:
        losses.lose(filesystem.space, f"Ignition cannot make {filesystem.type}")
    return filesystem.type in _FILESYSTEMS


def _disk(disk: DesiredDisk, layout: Layout, losses: Losses, *, wipe: bool) -> Plain:
    partitions: Plain = {}
    end = gpt.HEAD
    for part in disk.partitions:
        label = label_of(layout, part)
        if label in partitions:
            losses.refuse(part.space, f"Warewulf knows partitions of a disk by their labels, and {label} is there twice")
        if part.begin != end:
            losses.lose(part.space, f"Warewulf puts it at {end} MiB, right behind the one before, not at {part.begin}")
        partitions[label] = {
            "number": str(part.number),
            "size_mib": str(part.mib),
            "type_guid": part.type,
            **({"guid": part.own_uuid} if part.own_uuid else {}),
            "should_exist": True,
            "wipe_partition_entry": True,
        }
        end += part.mib
    return {**({"wipe_table": True} if wipe else {}), "partitions": partitions}


def _filesystem(filesystem: DesiredFilesystem, losses: Losses, *, wipe: bool) -> Plain:
    options = mount_words(filesystem)
    if options and filesystem.is_swap:
        losses.lose(filesystem.space, f"Warewulf takes swap into use without options, so not with {options}")
    return {
        "format": filesystem.type,
        **({"path": filesystem.mount_point} if filesystem.mount_point else {}),
        **({"label": filesystem.label} if filesystem.label else {}),
        **({"options": shlex.split(make_words(filesystem))} if make_words(filesystem) else {}),
        **({"mount_options": options} if options and filesystem.mount_point else {}),
        **({"wipe_filesystem": True} if wipe else {}),
    }
