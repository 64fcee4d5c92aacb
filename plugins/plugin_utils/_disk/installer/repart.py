# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The partitions of one disk as files for systemd-repart: repart.d/NN-NAME.conf.

After repart.d(5). Sizes are bytes there; the smallest and the largest are the same, so that nothing is left to systemd-repart.
"""

from __future__ import annotations

from ....module_utils._schema.model import (
    DesiredArray,
    DesiredContainer,
    DesiredDisk,
    DesiredFilesystem,
    DesiredGroup,
    DesiredPartition,
    Layout,
)
from ....module_utils._storage import gpt
from ....module_utils._storage.units import MIB
from ....module_utils._storage.unlock import TPM2
from .losses import Losses, lose_methods, lose_quotas, note_registers
from .words import label_of, make_words, mount_words, subvolume_words
from .write import Target

ENCRYPTIONS = ("key-file", "tpm2", "key-file+tpm2")
_LEGACY_BOOT = 1 << 2
"""The attribute of a GPT partition that a BIOS is to start from (UEFI specification, 5.3.3)."""
_FILESYSTEMS = ("ext2", "ext3", "ext4", "xfs", "btrfs", "vfat", "swap")


def write(layout: Layout, losses: Losses, *, disk: str | None, encrypt: str) -> dict[str, str]:
    """Return the text of each file by its name, for the disk of that id or device, which may be None where there is one only."""
    chosen = _choose(layout, losses, disk)
    if chosen is None:
        return {}
    lose_quotas(layout, losses, "systemd-repart")
    lose_methods(layout, losses, "systemd-repart", (TPM2,) if TPM2 in encrypt else ())
    note_registers(layout, losses)
    files = {}
    # The order of names is that of partitions.
    width = max(3, len(str(len(chosen.partitions) * 10)))
    for at, partition in enumerate(chosen.partitions):
        following = chosen.partitions[at + 1].begin if at + 1 < len(chosen.partitions) else None
        lines = [*_partition(partition, layout, losses, encrypt), *_padding(partition, following)]
        # A percent sign by itself would be a specifier.
        text = "\n".join(["[Partition]", *lines, ""]).replace("%", "%%")
        files[f"{(at + 1) * 10:0{width}d}-{layout.title(partition)}.conf"] = text
    return files


TARGET = Target("systemd-repart", write)


def _choose(layout: Layout, losses: Losses, disk: str | None) -> DesiredDisk | None:
    found = [one for one in layout.disks if disk is None or disk in (one.id, one.device, one.name)]
    known = ", ".join(one.id for one in layout.disks)
    if disk is not None and not found:
        losses.refuse("disk", f"the plan makes nothing on {disk}; there are {known}")
    elif not found:
        losses.refuse("disk", "the plan makes nothing on any disk")
    elif len(found) > 1:
        losses.refuse("disk", f"systemd-repart knows one disk; choose one of {known}")
    else:
        if found[0].partitions and found[0].partitions[0].begin != gpt.HEAD:
            losses.lose(found[0].partitions[0].space, "systemd-repart leaves no gap before the first partition")
        return found[0]
    return None


def _partition(partition: DesiredPartition, layout: Layout, losses: Losses, encrypt: str) -> list[str]:
    user = layout.lies_on(partition.device)
    encrypted = isinstance(user, DesiredContainer)
    if isinstance(user, DesiredContainer):
        losses.note(f"{user.space}: systemd-repart gives the LUKS container no name, which is {user.name} in the plan")
        user = layout.lies_on(user.device)
    if isinstance(user, (DesiredArray, DesiredGroup)):
        kind = "md array" if isinstance(user, DesiredArray) else "LVM"
        losses.lose(user.space, f"systemd-repart cannot make {kind}; on {partition.device} it makes a partition without content")
        encrypted = False
    filesystem = user if isinstance(user, DesiredFilesystem) else None
    if filesystem is not None and filesystem.type not in _FILESYSTEMS:
        losses.lose(filesystem.space, f"systemd-repart cannot make {filesystem.type}")
        filesystem = None
    if filesystem is not None and filesystem.label and partition.own_label not in ("", filesystem.label):
        losses.lose(partition.space, f"systemd-repart names a partition as its file system, {filesystem.label}, not {partition.own_label}")
    size = partition.mib * MIB
    lines = [
        f"Type={partition.type}",
        f"Label={filesystem.label if filesystem is not None and filesystem.label else label_of(layout, partition)}",
        *([f"UUID={partition.own_uuid}"] if partition.own_uuid else []),
        *([f"Flags={_LEGACY_BOOT:#x}"] if partition.boots else []),
        f"SizeMinBytes={size}",
        f"SizeMaxBytes={size}",
    ]
    return [*lines, *(_filesystem(filesystem, losses) if filesystem is not None else []), *([f"Encrypt={encrypt}"] if encrypted else [])]


def _filesystem(filesystem: DesiredFilesystem, losses: Losses) -> list[str]:
    if make_words(filesystem):
        losses.lose(filesystem.space, f"systemd-repart takes options of mkfs from its environment only, such as {make_words(filesystem)}")
    options = f":{mount_words(filesystem)}" if mount_words(filesystem) else ""
    mount = filesystem.mount_point
    if ":" in mount:
        losses.lose(filesystem.space, f"systemd-repart allows no colon in {mount}, so it is not mounted there")
        mount = ""
    mounted = [f"MountPoint={mount}{options}"] if mount else []
    return [f"Format={filesystem.type}", *mounted, *_subvolumes(filesystem, losses)]


def _subvolumes(filesystem: DesiredFilesystem, losses: Losses) -> list[str]:
    if not filesystem.subvolumes:
        return []
    losses.note(f"{filesystem.space}: systemd-repart makes subvolumes from version 255 on, and knows nothing of them before")
    names = " ".join(f"/{subvolume.name}" for subvolume in filesystem.subvolumes)
    lines = [f"Subvolumes={names}"]
    for subvolume in filesystem.subvolumes:
        if ":" in subvolume.mount_point:
            losses.lose(
                filesystem.space, f"systemd-repart allows no colon in {subvolume.mount_point}, where {subvolume.name} is to be mounted"
            )
        elif subvolume.mount_point:
            options = ",".join(filter(None, (subvolume_words(filesystem, subvolume), f"subvol={subvolume.name}")))
            lines.append(f"MountPoint={subvolume.mount_point}:{options}")
    return lines


def _padding(partition: DesiredPartition, following: int | None) -> list[str]:
    gap = 0 if following is None else following - partition.begin - partition.mib
    return [f"PaddingMinBytes={gap * MIB}", f"PaddingMaxBytes={gap * MIB}"] if gap else []
