# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A layout as curtin's storage configuration: for MAAS, and for Ubuntu's autoinstall.

After curtin's documentation, "Storage": a list of actions, each with an id that later ones refer to. Sizes are bytes. Version 1 puts every
partition right behind the one before it, and gives it a UUID and the type of its flag; what says more of partitions is version 2's alone.
"""

from __future__ import annotations

import shlex
import typing as t
from collections.abc import Iterator

from ....module_utils._schema.model import DesiredDisk, DesiredFilesystem, DesiredPartition, Layout, Thing
from ....module_utils._storage import gpt
from ....module_utils._storage.units import MIB
from .losses import (
    Losses,
    lose_array_options,
    lose_extents,
    lose_labels,
    lose_methods,
    lose_options_of_volumes,
    lose_subvolumes,
    lose_types,
    note_boot_flags,
    note_uuids,
)
from .words import make_words, mount_words
from .write import Target

Action = dict[str, t.Any]

_FILESYSTEMS = {"ext2": "ext2", "ext3": "ext3", "ext4": "ext4", "xfs": "xfs", "btrfs": "btrfs", "vfat": "fat32", "swap": "swap"}
_FLAGS = {gpt.ESP: "boot", gpt.BIOS_BOOT: "bios_grub", gpt.RAID: "raid", gpt.LVM: "lvm", gpt.SWAP: "swap"}
VERSIONS = ("1", "2")


def write(layout: Layout, losses: Losses, *, version: str, key_file: str | None) -> dict[str, t.Any]:
    """Return `{version, config: [actions]}`; `key_file` is the path of the key of LUKS where curtin runs."""
    ids = _ids(layout)
    exact = version != VERSIONS[0]
    if not exact:
        lose_types(layout, losses, "curtin's version 1 knows no such type; version=2 does", _FLAGS)
        for disk in layout.disks:
            _lose_places(disk, losses)
        note_uuids(layout, losses, "curtin's version 1")
    lose_labels(layout, losses, "curtin")
    lose_extents(layout, losses, "curtin")
    lose_subvolumes(layout, losses, "curtin")
    lose_options_of_volumes(layout, losses, "curtin")
    lose_array_options(layout, losses, "curtin")
    lose_methods(layout, losses, "curtin")
    note_boot_flags(layout, losses, "curtin")
    config = [action for disk in layout.disks for action in _disk(disk, layout, ids, exact=exact)]
    for array in layout.arrays:
        metadata = {} if array.asked_metadata == "default" else {"metadata": array.asked_metadata}
        config.append(
            {
                "id": ids[array.device],
                "type": "raid",
                "name": array.title,
                "raidlevel": array.level,
                "devices": [ids[device] for device in array.members],
                "spare_devices": [ids[device] for device in array.spares],
                "preserve": array.keep_data,
            }
            | metadata
        )
    for container in layout.containers:
        if key_file is None:
            losses.refuse(container.space, "LUKS needs a key in curtin; name a file with key_file")
        config.append(
            {
                "id": ids[container.device],
                "type": "dm_crypt",
                "dm_name": container.name,
                "volume": ids[container.below],
                "keyfile": key_file or "",
                "preserve": container.keep_data,
            }
        )
    for group in layout.groups:
        devices = [ids[device] for device in group.devices]
        config.append(
            {"id": f"vg-{group.name}", "type": "lvm_volgroup", "name": group.name, "devices": devices, "preserve": group.keep_data}
        )
    for volume in layout.volumes:
        config.append(
            {
                "id": ids[volume.device],
                "type": "lvm_partition",
                "name": volume.name,
                "volgroup": f"vg-{volume.group}",
                "size": volume.size,
                "preserve": volume.keep_data,
            }
        )
    for number, filesystem in enumerate(layout.filesystems, start=1):
        config += _filesystem(filesystem, f"format-{number}", ids, losses)
    # A mount point has to be there before what is mounted below it.
    made = [action for action in config if action["type"] != "mount"]
    mounts = sorted((action for action in config if action["type"] == "mount"), key=lambda action: action["path"].rstrip("/").count("/"))
    return {"version": int(version), "config": [*made, *mounts]}


TARGET = Target("curtin", write, keeps_data=True)


def _ids(layout: Layout) -> dict[str, str]:
    """Return the ids of actions by the device that each makes."""
    kinds: list[tuple[str, tuple[Thing, ...]]] = [
        ("partition", tuple(layout.partitions())),
        ("raid", layout.arrays),
        ("lv", layout.volumes),
    ]
    ids = {carrier.device: f"{kind}-{layout.title(carrier)}" for kind, carriers in kinds for carrier in carriers}
    ids |= {container.device: f"luks-{container.name}" for container in layout.containers}
    return ids | {disk.device: f"disk-{disk.name}" for disk in layout.disks}


def _lose_places(disk: DesiredDisk, losses: Losses) -> None:
    """Lose where partitions begin, if that is not behind each other from the first MiB on."""
    kept = any(partition.keep_data for partition in disk.partitions)
    lose = losses.refuse if kept else losses.lose
    end = gpt.HEAD
    for at, partition in enumerate(disk.partitions, start=1):
        begin = gpt.HEAD if partition.number == 1 else end
        if at == 1 and partition.number != 1:
            losses.refuse(
                partition.space, f"curtin's version 1 begins with partition 1, and this is {partition.number}; version=2 does not"
            )
        elif begin != partition.begin and not partition.keep_data:
            lose(partition.space, f"curtin's version 1 puts it at {begin} MiB, not at {partition.begin}; version=2 does not")
        end = (partition.begin if partition.keep_data else begin) + partition.mib


def _disk(disk: DesiredDisk, layout: Layout, ids: dict[str, str], *, exact: bool) -> Iterator[Action]:
    kept = any(partition.keep_data for partition in disk.partitions)
    by_disk = disk.boots and any(partition.type == gpt.BIOS_BOOT for partition in disk.partitions)
    wipe = {} if kept else {"wipe": "superblock-recursive"}
    yield {
        "id": ids[disk.device],
        "type": "disk",
        "path": disk.device,
        "ptable": "gpt",
        "preserve": kept,
        "grub_device": by_disk,
        **wipe,
    }
    for partition in disk.partitions:
        yield _partition(partition, disk, layout, ids, exact=exact)


def _partition(partition: DesiredPartition, disk: DesiredDisk, layout: Layout, ids: dict[str, str], *, exact: bool) -> Action:
    filesystem = layout.filesystem_on(partition.device)
    starts = partition.type == gpt.ESP and filesystem is not None and bool(filesystem.mount_point)
    flag = {"flag": _FLAGS[partition.type]} if partition.type in _FLAGS else {}
    return {
        "id": ids[partition.device],
        "type": "partition",
        "device": ids[disk.device],
        "number": partition.number,
        **({"offset": partition.begin * MIB} if exact else {}),
        "size": partition.mib * MIB,
        **flag,
        **({"partition_type": partition.type} if exact else {}),
        **({"uuid": partition.own_uuid} if exact and partition.own_uuid else {}),
        **({"grub_device": True} if starts else {}),
        **({} if partition.keep_data else {"wipe": "superblock"}),
        "preserve": partition.keep_data,
    }


def _filesystem(filesystem: DesiredFilesystem, name: str, ids: dict[str, str], losses: Losses) -> Iterator[Action]:
    if filesystem.type not in _FILESYSTEMS:
        losses.lose(filesystem.space, f"curtin cannot make {filesystem.type}")
        return
    made: Action = {
        "id": name,
        "type": "format",
        "fstype": _FILESYSTEMS[filesystem.type],
        "volume": ids[filesystem.device],
        "preserve": filesystem.keep_data,
    }
    if filesystem.label:
        made["label"] = filesystem.label
    if make_words(filesystem):
        made["extra_options"] = shlex.split(make_words(filesystem))
    yield made
    if filesystem.mount_point or filesystem.is_swap:
        options = {"options": mount_words(filesystem)} if mount_words(filesystem) else {}
        yield {"id": f"mount-{name}", "type": "mount", "device": name, "path": filesystem.mount_point or "none", **options}
