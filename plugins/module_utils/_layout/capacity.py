# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much room there is: extents of volume groups, and what md and LUKS keep for themselves. Pure; bytes."""

from __future__ import annotations

from .._schema.model import DesiredArray, DesiredContainer, DesiredPhysicalVolume, DesiredVolume, Layout
from .._storage import lvm, overhead
from .._storage.raid import RaidLevel, data_legs
from .._storage.units import MIB

EXTENT = lvm.EXTENT * MIB
_CHUNK = overhead.MD_CHUNK * 1024


def extents_of(layout: Layout, volume: DesiredPhysicalVolume, extent: int) -> int:
    """Return how many extents of that size a new physical volume gives."""
    metadata = volume.metadata_size * volume.metadata_copies
    return max(0, (capacity(layout, volume.device) - _alignment(layout, volume.device) - metadata) // extent)


def capacity(layout: Layout, device: str) -> int:
    """Return how many bytes a desired device will hold; where it is not exact it is not too much."""
    thing = layout.thing(device)
    if isinstance(thing, DesiredArray):
        legs = min(capacity(layout, member) for member in thing.members)
        data = data_legs(RaidLevel(thing.level), len(thing.members))
        return data * ((legs - _md_reserve(legs, thing.metadata, data)) // _CHUNK * _CHUNK)
    if isinstance(thing, DesiredContainer):
        return capacity(layout, thing.below) - _luks_data(layout, thing.below)
    return thing.size if thing is not None else 0


def _md_reserve(leg: int, metadata: str, data: int) -> int:
    return overhead.md_reserve(leg // MIB, metadata, data) * MIB


def array_head(leg: int, metadata: str) -> int:
    """Return up to where on a member the data of an array can begin, and a MiB more."""
    if metadata == "1.0":
        return MIB
    return _md_reserve(leg, metadata, data=2) + 2 * MIB


def container_head(layout: Layout, device: str) -> int:
    """Return up to where on a device the data of a LUKS container on it begin, and a MiB more; a MiB where there is to be none."""
    return MIB + (_luks_data(layout, device) if layout.container_on(device) is not None else 0)


def _luks_data(layout: Layout, below: str) -> int:
    alignment = _alignment(layout, below)
    return -(-overhead.LUKS_HEAD * MIB // alignment) * alignment


def extents_for(size: int, extent: int) -> int:
    """Return how many extents a volume of a size takes."""
    return -(-size // extent)


def size_of(volume: DesiredVolume, extent: int) -> int:
    """Return the size that LVM makes of a volume's."""
    return extents_for(volume.size, extent) * extent


def _alignment(layout: Layout, device: str) -> int:
    """Return to what data are aligned on a device: to the stripes of an array, unless whole stripes make a MiB."""
    thing = layout.thing(device)
    if isinstance(thing, DesiredContainer):
        return _alignment(layout, thing.below)
    if not isinstance(thing, DesiredArray):
        return MIB
    return overhead.array_alignment(data_legs(RaidLevel(thing.level), len(thing.members))) * 1024
