# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the solvers see of a machine and its schema: areas with sizes, demands, pools, names. No types of the schema.

* An *area* is one stretch of free space of a disk. A disk is one area unless data on it is kept.
* A *demand* is something that gets a size: a partition (one area), a raid (equal legs), a volume (a share of a pool).
* A *pool* is a vg, or a space that may be cut in pieces (`partitions`, an lv without a vg): parts on areas, shared by volumes.
* A *companion* is an ESP or BIOS boot partition: it goes wherever its carriers go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ..model import Piece


class Kind(Enum):
    """How a demand takes room."""

    SINGLE = "single"
    LEGS = "legs"
    VOLUME = "volume"


class Turn(Enum):
    """When a demand grows beyond its minimum."""

    PREFERRED = 0
    NORMAL = 1
    LEFTOVER = 2
    NEVER = 3


@dataclass(frozen=True)
class Area:
    """Free space on the disk at that position of Hardware.disks; `start` and `size` in MiB."""

    disk: int
    start: int
    size: int


Tiers = tuple[frozenset[int], ...]
"""Areas that are liked best, next best, ...; empty without a preference."""


@dataclass(frozen=True)
class Demand:
    """Something that gets a size between `lo` and `hi` MiB (None: no maximum), in steps of `unit` MiB.

    `unit` is 1 for a partition, the extent for an lv, and for a raid the number of legs that hold data: one step is one MiB
    of every leg. `space` is the position in Schema.spaces, None for what is left free in a vg.
    """

    name: str
    space: int | None
    kind: Kind
    lo: int
    hi: int | None
    unit: int = 1
    weight: float = 1.0
    turn: Turn = Turn.NORMAL
    areas: tuple[int, ...] = ()
    tiers: Tiers = ()
    legs: int = 1
    reserve: str = ""
    """The md metadata version, for a raid."""
    head: int = 0
    """Of a raid that is a PV: the MiB before the first extent."""
    pool: int | None = None
    """Of a volume: what it is a share of. Of a raid: what it is a PV of."""

    @property
    def low(self) -> int:
        """The minimum in steps."""
        return -(-self.lo // self.unit)

    @property
    def high(self) -> int | None:
        """The maximum in steps; a maximum between two steps gives way to the minimum."""
        if self.hi is None:
            return None
        return max(self.hi // self.unit, self.low) if self.hi >= self.lo else self.hi // self.unit


@dataclass(frozen=True)
class Pool:
    """Parts on areas, each of `head` MiB and some units of `grain` MiB; their sum is shared by `volumes` (demands).

    `lo` and `hi` bound the units' sum in MiB. `kept` are units that are there already. With `arrays` (demands) the parts are
    these raids, not areas.
    """

    name: str
    space: int
    grain: int
    head: int
    areas: tuple[int, ...]
    volumes: tuple[int, ...] = ()
    arrays: tuple[int, ...] = ()
    tiers: Tiers = ()
    max_parts: int | None = None
    lo: int = 0
    hi: int | None = None
    kept: int = 0


@dataclass(frozen=True)
class Companion:
    """A partition of fixed size (by area, as a disk with large blocks needs more) on every disk that carries one of the carriers."""

    name: str
    space: int
    sizes: tuple[tuple[int, int], ...]
    demands: tuple[int, ...]
    pools: tuple[int, ...]
    disks: tuple[int, ...] = ()
    """Disks that boot already: what carries is kept there."""


@dataclass(frozen=True)
class Problem:
    """Everything to be placed and sized. `kept` pieces stay where they are; areas are what is left around them."""

    areas: tuple[Area, ...]
    demands: tuple[Demand, ...]
    pools: tuple[Pool, ...]
    companions: tuple[Companion, ...]
    kept: tuple[Piece, ...] = ()
    kept_volumes: tuple[tuple[int, int], ...] = ()
    disk_names: tuple[str, ...] = ()
    disk_sizes: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()

    def areas_of_disk(self) -> dict[int, tuple[int, ...]]:
        """Return the areas of every disk that has any."""
        found: dict[int, list[int]] = {}
        for position, area in enumerate(self.areas):
            found.setdefault(area.disk, []).append(position)
        return {disk: tuple(areas) for disk, areas in found.items()}


@dataclass(frozen=True)
class Choice:
    """A placement: the areas of every demand (none for a volume), the areas a pool may have parts on, those of every companion."""

    sites: tuple[tuple[int, ...], ...]
    parts: tuple[tuple[int, ...], ...]
    companions: tuple[tuple[int, ...], ...]


def pool_minimum(problem: Problem, pool: Pool) -> int:
    """Return how many units a pool needs at least, kept ones included."""
    volumes = sum(problem.demands[volume].low for volume in pool.volumes)
    return max(volumes, math.ceil(pool.lo / pool.grain))


def liking(tiers: Tiers, area: int) -> int:
    """Return the tier of an area: 0 is best; without a preference everything is best."""
    for rank, tier in enumerate(tiers):
        if area in tier:
            return rank
    return len(tiers)


def by_disk(areas: Sequence[Area], chosen: Sequence[int]) -> dict[int, list[int]]:
    """Return the chosen areas grouped by disk, in their order."""
    groups: dict[int, list[int]] = {}
    for area in chosen:
        groups.setdefault(areas[area].disk, []).append(area)
    return groups
