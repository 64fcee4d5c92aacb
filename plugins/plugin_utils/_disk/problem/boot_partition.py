# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The boot partition that the firmware of a machine needs, for schemas that have none."""

from __future__ import annotations

from dataclasses import replace

from ....module_utils._storage import overhead
from ..model import BOOT_PARTITIONS, ESP_MOUNT, Hardware, Schema, Space, SpaceType


def with_boot_partition(hardware: Hardware, schema: Schema) -> Schema:
    """Return the schema with an ESP (UEFI) or a BIOS boot partition added, if a space with `boot: true` needs one and none is there.

    Where it lies follows from the spaces that boot. Without known firmware nothing is added.
    """
    if hardware.firmware is None or not any(space.boot for space in schema.spaces):
        return schema
    needed_type = BOOT_PARTITIONS[hardware.firmware]
    if any(space.type is needed_type for space in schema.spaces) or _is_mirrored_esp(schema, needed_type):
        return schema
    return replace(schema, spaces=(*schema.spaces, _added(hardware, schema, needed_type)))


def _is_mirrored_esp(schema: Schema, needed_type: SpaceType) -> bool:
    """Return whether an array stands for the ESP: mirrored with its superblock at the end it looks like one to the firmware."""
    return needed_type is SpaceType.ESP and any(space.type is SpaceType.RAID and ESP_MOUNT in space.mounts for space in schema.spaces)


def _added(hardware: Hardware, schema: Schema, needed_type: SpaceType) -> Space:
    size = overhead.ESP_DEFAULT if needed_type is SpaceType.ESP else overhead.BIOS_GRUB
    is_esp = needed_type is SpaceType.ESP
    taken = {space.id for space in schema.spaces}
    name = needed_type.value
    while name in taken:
        name = f"{name}_added"
    return Space(
        id=name,
        type=needed_type,
        place=f"the {needed_type} that was added",
        min_size=size,
        max_size=size,
        allowed=frozenset(range(len(hardware.disks))),
        mount=ESP_MOUNT if is_esp and all(ESP_MOUNT not in space.mounts for space in schema.spaces) else None,
        fs_type="vfat" if is_esp else None,
    )
