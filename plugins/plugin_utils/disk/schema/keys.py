# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which keys the dynamic schema has, for which types, and what file systems allow."""

from __future__ import annotations

from collections.abc import Mapping

from ..model import SpaceType

_ALL = frozenset(SpaceType)
_CARRYING_FILES = _ALL - {SpaceType.VOLUME_GROUP, SpaceType.BIOS_GRUB}

KEYS: Mapping[str, frozenset[SpaceType]] = {
    **dict.fromkeys(("id", "type", "size", "min_size", "max_size", "weight"), _ALL),
    **dict.fromkeys(("best_with_disks", "disks", "avoid_disks", "none_order", "keep_data", "boot"), _ALL),
    **dict.fromkeys(("mount", "mount_options", "fs_type", "fs_options", "fs_label"), _CARRYING_FILES),
    **dict.fromkeys(("contains", "max_pvs"), frozenset({SpaceType.VOLUME_GROUP})),
    **dict.fromkeys(("level", "legs"), frozenset({SpaceType.RAID})),
    "per_disk": frozenset({SpaceType.PARTITION, SpaceType.PARTITIONS}),
    "encrypt": _ALL - {SpaceType.ESP, SpaceType.BIOS_GRUB},
}
"""Every key of the dynamic schema and the types that it makes sense for."""

LABEL_LENGTHS: Mapping[str, int] = {"ext2": 16, "ext3": 16, "ext4": 16, "xfs": 12, "vfat": 11, "fat": 11, "btrfs": 255, "swap": 16}
"""How many bytes a label may have (mke2fs(8), mkfs.xfs(8), mkfs.fat(8), mkfs.btrfs(8), mkswap(8))."""
