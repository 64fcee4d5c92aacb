# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The least size of a space: of what it is made of, and of the file system on it, which depends on the sectors of its disks."""

from __future__ import annotations

import math
from collections.abc import Collection

from ....module_utils._data.errors import Mistakes
from ....module_utils._storage import btrfs, overhead
from ....module_utils._storage.filesystems import SECTOR, made_on
from ....module_utils._storage.raid import data_legs
from ..model import SpaceType
from .entry import Entry

_WITHOUT_CONTENT = frozenset({SpaceType.VOLUME_GROUP, SpaceType.THIN_POOL, SpaceType.ESP, SpaceType.BIOS_GRUB})


def fitting_sectors(
    entry: Entry, most: int | None, legs: int, extent: int | None, sectors: Collection[int], mistakes: Mistakes
) -> set[int]:
    """Return on which of these sectors (in bytes) there is room for a space of at most `most` MiB; a mistake where that is none.

    `extent` is that of its vg in MiB, None where it is in none.
    """
    if most is None or entry.values["keep_data"] or entry.type in _WITHOUT_CONTENT:
        return set(sectors)
    room = math.ceil(most / (extent or 1)) * (extent or 1)
    least = {sector: _least(entry, legs, sector, grouped=extent is not None) for sector in sorted(sectors)}
    fitting = {sector for sector in sectors if room >= least[sector]}
    if not fitting and sectors:
        values = entry.values
        smallest = min(sectors)
        fs_type = made_on(values["fs_type"], values["mount"])
        parts = [
            *([f"{values['level']} of {legs} legs"] if legs else []),
            *(["LUKS"] if values["encrypt"] and extent is None else []),
            *([fs_type] if fs_type else []),
        ]
        on = f" on sectors of {smallest} bytes" if least[smallest] > _least(entry, legs, SECTOR, grouped=extent is not None) else ""
        says = f"{most} MiB are too little for {' with '.join(parts)}, which takes {least[smallest]} MiB{on}"
        mistakes.add(f"{entry.place}.{'size' if values['size'] is not None else 'max_size'}", says)
    return fitting


def _least(entry: Entry, legs: int, sector: int, *, grouped: bool) -> int:
    values = entry.values
    fs_type, encrypted = made_on(values["fs_type"], values["mount"]), values["encrypt"] and not grouped
    least = overhead.least_device(fs_type, encrypted, values["fs_options"] or "", sector)
    if legs and entry.type is SpaceType.BTRFS:
        return int(least * btrfs.data_legs(values["level"], legs))
    if legs and (level := values["level"]) is not None and (data := data_legs(level, legs)) > 0:
        return overhead.least_array(least, overhead.md_metadata(values["boot"]), data)
    return least
