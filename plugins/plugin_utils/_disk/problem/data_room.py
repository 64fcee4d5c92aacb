# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much of what a space takes on disks is for data, where that is no plain share."""

from __future__ import annotations

import dataclasses

from ....module_utils._storage import thin, zfs


@dataclasses.dataclass(frozen=True)
class ZfsData:
    """How much of a ZFS pool is for data."""

    shape: zfs.Shape
    ashift: int
    unit: int

    def __call__(self, gross: int) -> int:
        return zfs.room(self.shape, gross // self.unit, self.ashift)


@dataclasses.dataclass(frozen=True)
class ThinData:
    """How much of a thin pool is for data."""

    extent: int
    chunk: int | None
    metadata: int | None

    def __call__(self, gross: int) -> int:
        return thin.divide(gross // self.extent * self.extent, self.extent, self.chunk, self.metadata).size


@dataclasses.dataclass(frozen=True)
class StripedData:
    """How much of the legs of a striped volume is for data: whole extents of each, after the head of its PV."""

    stripes: int
    extent: int
    head: int

    def __call__(self, gross: int) -> int:
        return max(0, gross // self.stripes - self.head) // self.extent * self.extent * self.stripes

    def legs_for(self, size: int) -> int:
        """Return the MiB of all legs together that hold this size."""
        return self.stripes * (self.head + in_extents(-(-size // self.stripes), self.extent))


def in_extents(size: int, extent: int) -> int:
    """Return a size rounded up to whole extents, in MiB."""
    return -(-size // extent) * extent
