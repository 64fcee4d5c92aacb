# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the solvers see of a machine and its schema: areas with sizes, demands, pools, names. No types of the schema.

* An *area* is one stretch of free space of a disk. A disk is one area unless data on it is kept.
* A *demand* is something that gets a size: a partition (one area), a raid (equal legs), a volume (a share of a pool).
* A *pool* is a vg, or a space that may be cut in pieces (`partitions`, an lv without a vg): PVs on areas, shared by volumes.
* A *boot partition* is an ESP or BIOS boot partition: it goes wherever its carriers go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ..model import Piece


class Kind(Enum):
    """How a demand takes room."""

    SINGLE = "single"
    LEGS = "legs"
    VOLUME = "volume"


class GrowthOrder(Enum):
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


PreferredAreas = tuple[frozenset[int], ...]
"""Areas that are liked best, next best, ...; empty without a preference."""


@dataclass(frozen=True)
class Demand:
    """Something that gets a size between `lo` and `hi` MiB (None: no maximum), in units of `unit` MiB.

    `unit` is 1 for a partition, the extent for an lv, and for a raid the number of legs that hold data: one unit is one MiB
    of every leg. `space` is the position in Schema.spaces, None for what is left free in a vg.
    """

    name: str
    space: int | None
    kind: Kind
    lo: int
    hi: int | None
    unit: int = 1
    weight: float = 1.0
    growth_order: GrowthOrder = GrowthOrder.NORMAL
    areas: tuple[int, ...] = ()
    preferred: PreferredAreas = ()
    legs: int = 1
    """On how many disks it lies, spares among them."""
    spares: int = 0
    reserve: str = ""
    """The md metadata version, for a raid."""
    metadata_size: int = 0
    """Of a raid that is a PV, and of the PVs of a striped volume: the MiB before the first extent."""
    pool: int | None = None
    """Of a volume: what it is a share of. Of a raid: what it is a PV of."""
    own: int = 0
    """Of a thin pool and a ZFS pool: how many MiB of its minimum are not for data, but `own_for` what it keeps."""
    own_for: str = "its metadata and their spare"
    data_in: Callable[[int], int] | None = None
    """For a thin pool, a ZFS pool and a striped volume: the MiB for data in a number of MiB."""
    group: int | None = None
    """Of a striped volume: the position of its vg; each leg is a part of one of its PVs, with the `metadata_size` of one."""
    copies: tuple[int, ...] = ()
    """Of what is made several times: the position of each space; the legs are those of all of them together."""
    percentages: tuple[str, str] = ("", "")
    """`lo` and `hi` as they were written, where that is a percentage."""
    floor: int = 0
    """What `lo` is at least, whatever is asked for: how many MiB what lies there needs."""

    @property
    def low(self) -> int:
        """The minimum in units."""
        return -(-self.lo // self.unit)

    @property
    def high(self) -> int | None:
        """The maximum in units; a maximum between two units gives way to the minimum."""
        if self.hi is None:
            return None
        return max(self.hi // self.unit, self.low) if self.hi >= self.lo else self.hi // self.unit


@dataclass(frozen=True)
class Pool:
    """PVs on areas, each of `metadata_size` MiB and some extents of `extent_size` MiB; their sum is shared by `volumes` (demands).

    `lo` and `hi` bound the extents' sum in MiB. `kept` are extents that are there already. With `arrays` (demands) the PVs are
    these raids, not areas. What may be cut without a vg has extents of one MiB and no metadata. Where `least` is given, each part
    holds something by itself, such as a file system, and has as many MiB at least.
    """

    name: str
    space: int
    extent_size: int
    metadata_size: int
    areas: tuple[int, ...]
    volumes: tuple[int, ...] = ()
    arrays: tuple[int, ...] = ()
    preferred: PreferredAreas = ()
    max_pvs: int | None = None
    lo: int = 0
    hi: int | None = None
    kept: int = 0
    least: int = 0
    is_group: bool = False
    """Whether it is a vg; else it is a space that may be cut in pieces."""
    percentages: tuple[str, str] = ("", "")
    """`lo` and `hi` as they were written, where that is a percentage."""


@dataclass(frozen=True)
class BootPartition:
    """A partition of fixed size (by area, as a disk with large blocks needs more) on every disk that carries one of the carriers."""

    name: str
    space: int
    sizes: tuple[tuple[int, int], ...]
    demands: tuple[int, ...]
    pools: tuple[int, ...]
    disks: tuple[int, ...] = ()
    """Disks that boot already: what carries is kept there."""
    percentage: str = ""
    """Its size as it was written, where that is a percentage."""
    floor: int = 0
    """The MiB that it has at least on every area, whatever is asked for."""


@dataclass(frozen=True)
class Party:
    """A space's parts on disks: demands and pools (positions), and disks where its data are kept."""

    demands: frozenset[int]
    pools: frozenset[int]
    disks: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Relation:
    """That a space (`name`) shares no disk with another (`apart`), or lies on disks of the other only, which has no pools then."""

    name: str
    other_name: str
    apart: bool
    one: Party
    other: Party

    @property
    def constraint(self) -> str:
        """The name of the constraint: all of one kind that a space asks for are one."""
        return f"{'apart' if self.apart else 'together'}:{self.name}"


@dataclass(frozen=True)
class Problem:
    """Everything to be placed and sized. `kept` pieces stay where they are; areas are what is left around them."""

    areas: tuple[Area, ...]
    demands: tuple[Demand, ...]
    pools: tuple[Pool, ...]
    boot_partitions: tuple[BootPartition, ...]
    kept: tuple[Piece, ...] = ()
    kept_names: tuple[str, ...] = ()
    """The space of each kept piece."""
    kept_volumes: tuple[tuple[int, int], ...] = ()
    disk_names: tuple[str, ...] = ()
    disk_sizes: tuple[int, ...] = ()
    restrictions: tuple[tuple[str, str], ...] = ()
    """Of spaces that may not use all disks: the name, and what says so, as the user wrote it."""
    warnings: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    heads: tuple[tuple[int, int], ...] = ()
    """Of vgs (positions in Schema.spaces) the MiB that were taken off their areas for what each PV keeps for itself."""
    drives: tuple[int, ...] = ()
    """By disk, where disks share a drive: the first disk of that drive. Empty where every disk is a drive of its own."""

    def drive_of(self, disk: int) -> int:
        """Return the drive of a disk: two disks with one drive fail together."""
        return self.drives[disk] if self.drives else disk

    def drives_of(self, areas: Iterable[int]) -> frozenset[int]:
        """Return the drives that some areas are on."""
        return frozenset(self.drive_of(self.areas[area].disk) for area in areas)

    @property
    def has_own_drives(self) -> bool:
        """Whether every area is on a drive of its own."""
        return len(self.drives_of(range(len(self.areas)))) == len(self.areas)


@dataclass(frozen=True)
class Placement:
    """A placement: the areas of every demand (none for a volume), the areas a pool may have PVs on, those of every boot partition."""

    areas_of_demand: tuple[tuple[int, ...], ...]
    pvs: tuple[tuple[int, ...], ...]
    boot_partitions: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Sizes:
    """Units of every demand, extents of every PV by (pool, area), and what stays free of every area in MiB."""

    units: tuple[int, ...]
    pvs: Mapping[tuple[int, int], int]
    left: tuple[int, ...]


def pool_minimum(problem: Problem, pool: Pool) -> int:
    """Return how many extents a pool needs at least, kept ones included."""
    volumes = sum(problem.demands[volume].low for volume in pool.volumes)
    return max(volumes, math.ceil(pool.lo / pool.extent_size))


def rank(tiers: PreferredAreas, area: int) -> int:
    """Return the tier of an area: 0 is best; without a preference everything is best."""
    for position, tier in enumerate(tiers):
        if area in tier:
            return position
    return len(tiers)


def by_disk(areas: Sequence[Area], chosen: Sequence[int]) -> dict[int, list[int]]:
    """Return the chosen areas grouped by disk, in their order."""
    groups: dict[int, list[int]] = {}
    for area in chosen:
        groups.setdefault(areas[area].disk, []).append(area)
    return groups


def by_drive(problem: Problem, chosen: Sequence[int]) -> dict[int, list[int]]:
    """Return the chosen areas grouped by drive, in their order."""
    groups: dict[int, list[int]] = {}
    for area in chosen:
        groups.setdefault(problem.drive_of(problem.areas[area].disk), []).append(area)
    return groups
