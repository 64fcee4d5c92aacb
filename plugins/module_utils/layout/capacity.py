# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much room there is: extents of volume groups, and what md and LUKS keep for themselves. Pure; bytes.

The formulas are those of the planner (plugin_utils/disk/overhead.py), which does not run on hosts.
"""

from __future__ import annotations

from ..schema.fields import MIB
from ..schema.model import Layout, WantedArray, WantedContainer, WantedPhysicalVolume, WantedVolume

EXTENT = 4 * MIB
"""LVM's default extent."""
_PV_HEAD = MIB
_LUKS_HEAD = 16 * MIB
_MD_CHUNK = MIB // 2
_MD_HEADROOM = 128 * MIB


def extents_of(layout: Layout, volume: WantedPhysicalVolume) -> int:
    """Return how many extents of 4 MiB a new physical volume gives."""
    metadata = volume.metadata_size * volume.metadata_copies
    head = max(_PV_HEAD, _alignment(layout, volume.device))
    return max(0, (capacity(layout, volume.device) - head - metadata) // EXTENT)


def capacity(layout: Layout, device: str) -> int:
    """Return how many bytes a wanted device will hold; where it is not exact it is not too much."""
    thing = layout.thing(device)
    if isinstance(thing, WantedArray):
        legs = min(capacity(layout, member) for member in thing.members)
        data = data_legs(thing.level, len(thing.members))
        return data * (leg_capacity(leg=legs, data=data, metadata=thing.metadata) // _MD_CHUNK * _MD_CHUNK)
    if isinstance(thing, WantedContainer):
        alignment = _alignment(layout, thing.below)
        return capacity(layout, thing.below) - -(-_LUKS_HEAD // alignment) * alignment
    return thing.size if thing is not None else 0


def data_legs(level: str, legs: int) -> int:
    """Return of how many members' size the capacity of an array is made."""
    return {"raid0": legs, "raid1": 1, "raid5": legs - 1, "raid6": legs - 2, "raid10": max(1, legs // 2)}[level]


def leg_capacity(leg: int, data: int, metadata: str) -> int:
    """Return how much of a member is for data; mdadm keeps up to 1/1024 of it for reshaping, and at least 1 MiB for levels with chunks."""
    if metadata == "1.0":
        return leg - MIB
    least = 0 if data == 1 else MIB
    headroom = _MD_HEADROOM
    while headroom > least and headroom * 1024 > leg:
        headroom //= 2
    return leg - (headroom if headroom >= MIB else 0) - MIB


def array_head(leg: int, metadata: str) -> int:
    """Return up to where on a member the data of an array can begin, and a MiB more."""
    if metadata == "1.0":
        return MIB
    return leg - leg_capacity(leg, data=2, metadata=metadata) + 2 * MIB


def extents_for(size: int, extent: int) -> int:
    """Return how many extents a volume of a size takes."""
    return -(-size // extent)


def size_of(volume: WantedVolume, extent: int) -> int:
    """Return the size that LVM makes of a volume's."""
    return extents_for(volume.size, extent) * extent


def _alignment(layout: Layout, device: str) -> int:
    """Return to what data are aligned on a device: to the stripes of an array, unless whole stripes make a MiB."""
    thing = layout.thing(device)
    if isinstance(thing, WantedContainer):
        return _alignment(layout, thing.below)
    if not isinstance(thing, WantedArray):
        return MIB
    stripe = data_legs(thing.level, len(thing.members)) * _MD_CHUNK
    return stripe if MIB % stripe else MIB
