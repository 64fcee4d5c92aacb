# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The best levels of a small machine, by an exact program that finds sizes and places at once.

The program is that of lexicographic max-min (Ogryczak and Śliwiński 2006): for k = 1, 2, ... the sum of the k lowest levels is made as
large as it can be, beside what was reached before. It shares no code with the planner but its models; SciPy solves it. It knows every
type of space, spares, copies, stripes, caches, several partitions on each disk, boot partitions, kept partitions and the reserve. Of
preferences it knows those of whole spaces, in any number of tiers, and those of groups on machines on which all can be met: minimums go
before all levels, what has a preference grows before what has none, and not where it had to go elsewhere. Metadata are left out, so that
its levels are a little higher than what can be had.
"""

from __future__ import annotations

import itertools
import typing as t
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import Allocation, Hardware, Schema, Space, SpaceType
from scipy import optimize, sparse

from .rules import BTRFS_LEGS, DATA_LEGS, ZFS_LEGS

_POOLS = (SpaceType.VOLUME_GROUP, SpaceType.PARTITIONS)
_VOLUMES = (SpaceType.LOGICAL_VOLUME, SpaceType.THIN_POOL)
_BOOT_PARTITIONS = (SpaceType.ESP, SpaceType.BIOS_GRUB)
_NO_LEVEL = (SpaceType.VOLUME_GROUP, SpaceType.THIN_VOLUME, *_BOOT_PARTITIONS)


@dataclass(frozen=True)
class Item:
    """What has a level: a space, copies of one together, or one of several partitions on a disk (position)."""

    space: int
    disk: int | None = None
    turn: int = 0


class Exact:
    """The program of one machine; sizes in GiB, so that its numbers are small."""

    def __init__(self, hardware: Hardware, schema: Schema, reserve: int = 0) -> None:
        self.hardware, self.schema = hardware, schema
        self.bounds: list[tuple[float, float]] = []
        self.rows: list[tuple[list[tuple[int, float]], float, float]] = []
        self.integral: list[int] = []
        self.kept = {at for at, space in enumerate(schema.spaces) if space.keep_data}
        self.areas = [(disk, size / 1024) for disk in range(len(hardware.disks)) for size in self.gaps(disk, reserve)]
        self.total = sum(size for _disk, size in self.areas)
        self.used: list[list[tuple[int, float]]] = [[] for _area in self.areas]
        self.size: dict[Item, int] = {}
        self.here: dict[tuple[int, int], list[int]] = {}
        """By space and disk, the choices that put the space there."""
        self.arrays: dict[int, int] = {}
        self.off: list[tuple[int, float]] = []
        """What it costs to lie off the disks that are liked best: the GiB of the minimum, times the tier."""
        for item in self.items():
            self.add(item)
        self.keep_apart()
        for at, space in enumerate(schema.spaces):
            if space.type in _POOLS and not space.per_disk and at not in self.kept:
                self.add_pool(at, space)
        for space in schema.spaces:
            if space.type in _BOOT_PARTITIONS:
                self.add_boot_partitions(space)
        for area, terms in enumerate(self.used):
            self.row(terms, high=self.areas[area][1])
        growing = [item for item in self.size if self.grows(schema.spaces[item.space])]
        self.turns = [[item for item in growing if self.prefers(schema.spaces[item.space]) is preferring] for preferring in (True, False)]

    def gaps(self, disk: int, reserve: int) -> Iterator[int]:
        """Yield the free stretches of a disk, of which the reserve takes the last ones."""
        spaces = self.hardware.disks[disk].existing
        ids = {self.schema.spaces[at].id for at in self.kept}
        there = sorted((own.start, own.size) for own in spaces if own.name in ids)
        gaps, start = [], 1
        for begin, size in there:
            gaps.append(begin - start)
            start = begin + size
        gaps.append(self.hardware.disks[disk].size - 1 - start)
        for at in reversed(range(len(gaps))):
            taken = min(reserve, max(0, gaps[at]))
            reserve -= taken
            gaps[at] -= taken
        yield from (gap for gap in gaps if gap > 0)

    def items(self) -> Iterator[Item]:
        seen = set()
        for at, space in enumerate(self.schema.spaces):
            if at in self.kept or space.type in _NO_LEVEL or (space.copy_of and space.copy_of in seen):
                continue
            seen.add(space.copy_of)
            if space.per_disk:
                yield from (Item(at, disk, turn) for disk in sorted(space.allowed) for turn in range(space.per_disk))
            else:
                yield Item(at)

    @staticmethod
    def grows(space: Space) -> bool:
        return space.weight > 0 and space.max_size != space.min_size

    @staticmethod
    def tier(space: Space, disk: int) -> int:
        """Return which tier of a space's preference a disk belongs to: 0 is liked best, and everything without a preference."""
        return next((tier for tier, disks in enumerate(space.preferred_disks) if disk in disks), len(space.preferred_disks))

    @staticmethod
    def is_off(space: Space, disk: int) -> bool:
        """Return whether a space that prefers some of its disks to others has no preference for this one."""
        liked = frozenset().union(*space.preferred_disks) & space.allowed
        return bool(liked) and disk not in liked

    def prefers(self, space: Space) -> bool:
        """Return whether a space, or the group of it, is to be on some of its disks: to rank all is no such preference."""
        own = next((group for group in self.schema.spaces if group.id == space.volume_group), space)
        return any(self.is_off(own, disk) for disk in own.allowed)

    def legs(self, space: Space) -> tuple[int, int]:
        """Return on how many disks a whole space lies, and how many parts of them hold data."""
        copies = sum(other.copy_of == space.copy_of for other in self.schema.spaces) if space.copy_of else 1
        if space.type is SpaceType.RAID:
            return (space.legs + space.spares) * copies, DATA_LEGS[str(space.level)](space.legs)
        if space.type is SpaceType.BTRFS and space.legs:
            return space.legs, BTRFS_LEGS[str(space.level)](space.legs)
        if space.type is SpaceType.ZPOOL:
            return space.legs + space.spares, ZFS_LEGS[str(space.vdev)](space.legs, space.vdevs)
        if space.is_striped:
            return space.stripes or 1, space.stripes or 1
        return (space.legs or 1) * copies, 1

    def add(self, item: Item) -> None:
        space = self.schema.spaces[item.space]
        groups = [group for group in self.schema.spaces if space.type is SpaceType.RAID and space.id in group.contains]
        high = self.total if space.max_size is None else space.max_size / 1024
        # A thin pool has room for its volumes.
        given_out = sum(other.min_size for other in self.schema.spaces if other.thin_pool == space.id) / space.overcommit
        size = self.column(max(space.min_size, given_out) / 1024, min(high, self.total))
        if groups:
            # It grows for the sake of what lies on it.
            self.arrays[item.space] = size
        else:
            self.size[item] = size
        if space.type is SpaceType.PARTITIONS and not space.per_disk:
            return
        if space.type in _VOLUMES and not space.is_striped:
            return
        legs, data = self.legs(space)
        chosen: dict[int, list[tuple[int, float]]] = {}
        for area, (disk, room) in enumerate(self.areas):
            if disk not in (space.allowed if item.disk is None else {item.disk}):
                continue
            here, amount = self.column(0, 1, whole=True), self.column(0, room)
            # Where it lies, the amount is a leg of its size.
            self.row([(amount, 1.0), (size, -1.0 / data), (here, -self.total)], low=-self.total)
            self.used[area].append((amount, 1.0))
            self.off.append((here, self.tier(space, disk) * max(space.min_size / data, 1.0) / 1024))
            if self.is_off(space, disk):
                self.row([(size, 1.0), (here, self.total)], high=self.total + max(space.min_size, 1) / 1024)
            chosen.setdefault(self.hardware.drives[disk] if legs > 1 else area, []).append((here, 1.0))
            self.here.setdefault((item.space, disk), []).append(here)
        self.row([term for terms in chosen.values() for term in terms], low=legs, high=legs)
        for terms in chosen.values() if legs > 1 else ():
            self.row(terms, high=1.0)

    def add_pool(self, at: int, space: Space) -> None:
        inside = [item for item in self.size if self.schema.spaces[item.space].volume_group == space.id]
        members = [item for item in inside if not self.schema.spaces[item.space].is_striped]
        if space.type is SpaceType.PARTITIONS:
            members = [Item(at)]
        arrays = [(self.arrays[own], 1.0) for own in self.arrays if self.schema.spaces[own].id in space.contains]
        own = [area for area, (disk, _room) in enumerate(self.areas) if disk in space.allowed and not self.is_off(space, disk)]
        parts = [] if arrays else [(area, self.column(0, self.areas[area][1])) for area in own]
        self.row([*arrays, *((column, 1.0) for _area, column in parts), *((self.size[own], -1.0) for own in members)], low=0.0)
        for area, column in parts:
            self.used[area].append((column, 1.0))
        boots = any(self.schema.spaces[item.space].boot for item in inside)
        if len({self.areas[area][0] for area, _column in parts}) == len(parts) and space.max_pvs is None and not boots:
            return
        opened: dict[int, list[tuple[int, float]]] = {}
        for area, column in parts:
            here = self.column(0, 1, whole=True)
            self.row([(column, 1.0), (here, -self.areas[area][1])], high=0.0)
            opened.setdefault(self.areas[area][0], []).append((here, 1.0))
            self.here.setdefault((at, self.areas[area][0]), []).append(here)
        for terms in opened.values() if len(opened) < len(parts) else ():
            # One part on each disk, whatever is kept between.
            self.row(terms, high=1.0)
        if space.max_pvs is not None:
            self.row([term for terms in opened.values() for term in terms], high=space.max_pvs)

    def add_boot_partitions(self, boot: Space) -> None:
        """Have one on every disk that has a part of what boots: a space, its vg, or the arrays of that."""
        spaces = self.schema.spaces
        booting = {at for at, space in enumerate(spaces) if space.boot}
        booting |= {at for at, space in enumerate(spaces) if any(spaces[own].volume_group == space.id for own in booting)}
        booting |= {at for at, space in enumerate(spaces) if any(space.id in spaces[own].contains for own in booting)}
        for disk in range(len(self.hardware.disks)):
            there = []
            for area, (own, _room) in enumerate(self.areas):
                if own == disk:
                    there.append((self.column(0, 1, whole=True), 1.0))
                    self.used[area].append((there[-1][0], boot.min_size / 1024))
            for part in (part for at in booting for part in self.here.get((at, disk), ())):
                self.row([*there, (part, -1.0)], low=0.0)

    def keep_apart(self) -> None:
        for (one, disk), here in self.here.items():
            for (other, at), there in self.here.items():
                together = self.hardware.drives[disk] == self.hardware.drives[at]
                if self.schema.spaces[other].id in self.schema.spaces[one].apart_from and together:
                    for mine in here:
                        for its in there:
                            self.row([(mine, 1.0), (its, 1.0)], high=1.0)

    def column(self, low: float = 0.0, high: float = np.inf, *, whole: bool = False) -> int:
        self.bounds.append((low, high))
        self.integral.append(int(whole))
        return len(self.bounds) - 1

    def row(self, terms: list[tuple[int, float]], low: float = -np.inf, high: float = np.inf) -> None:
        self.rows.append((terms, low, high))

    def solve(self, worth: dict[int, float]) -> t.Any:
        entries = [(row, column, factor) for row, (terms, _low, _high) in enumerate(self.rows) for column, factor in terms]
        where = tuple(zip(*((row, column) for row, column, _factor in entries)))
        matrix = sparse.csr_array(([factor for *_place, factor in entries], where), shape=(len(self.rows), len(self.bounds)))
        limits = [low for _terms, low, _high in self.rows], [high for _terms, _low, high in self.rows]
        low, high = zip(*self.bounds)
        cost = np.zeros(len(self.bounds))
        for column, value in worth.items():
            cost[column] = -value
        constraint = optimize.LinearConstraint(matrix, *limits)
        options = {"mip_rel_gap": 1e-6}
        return optimize.milp(cost, integrality=self.integral, bounds=optimize.Bounds(low, high), constraints=constraint, options=options)

    def best(self) -> list[list[float]] | None:
        """Return the sums of the one, two, three ... lowest levels in MiB, as large as can be one after the other; None without a plan.

        Those of what has a preference come first.
        """
        if any(low > high for low, high in self.bounds):
            return None
        preferences = self.solve({column: -cost for column, cost in self.off})
        if preferences.x is None or (
            preferences.fun > 1e-4 and any(self.prefers(space) for space in self.schema.spaces if space.type in _POOLS)
        ):
            return None
        self.row(self.off, high=preferences.fun + 0.5 / 1024)
        found: list[list[float]] = []
        for turn in self.turns:
            found.append([])
            for count in range(1, len(turn) + 1):
                edge = self.column(-np.inf)
                worth = {edge: float(count)}
                for item in turn:
                    below = self.column()
                    self.row([(below, 1.0), (edge, -1.0), (self.size[item], 1.0 / self.schema.spaces[item.space].weight)], low=0.0)
                    worth[below] = -1.0
                solved = self.solve(worth)
                if solved.x is None:
                    # Rounding makes the sums before a hair too large, seldom; what they say of lower levels holds.
                    return found
                found[-1].append(-solved.fun * 1024)
                self.row(list(worth.items()), low=-solved.fun * (1 - 1e-6) - 1e-3)
        return found

    def first_worse(self, allocation: Allocation, best: list[list[float]], noticed: float, slack: float) -> str:
        """Return the first level of a plan that is below the best by this part and MiB; empty when none is."""
        for turn, sums in zip(self.turns, best):
            levels = sorted(self.level(allocation, item) for item in turn)
            for count, (mine, its) in enumerate(zip(np.cumsum(levels).tolist(), sums), start=1):
                if mine < its * (1 - noticed) - slack * count:
                    return f"the {count} poorest have {mine:.0f} MiB per weight, and could have {its:.0f}"
                if mine > its * (1 + noticed) + slack * count:
                    return ""
        return ""

    def level(self, allocation: Allocation, item: Item) -> float:
        space = self.schema.spaces[item.space]
        if item.space in allocation.volumes:
            return allocation.volumes[item.space] / space.weight
        pieces = [piece for piece in allocation.pieces if piece.space == item.space and item.disk in (None, piece.disk)]
        if item.disk is not None:
            return sorted(piece.size for piece in pieces)[item.turn] / space.weight
        if space.type in _POOLS:
            return sum(piece.size for piece in pieces) / space.weight
        if any(self.is_off(space, piece.disk) for piece in pieces):
            # What it has beyond its minimum there is what nobody else could use.
            return max(space.min_size, 1) / space.weight
        return min((piece.size for piece in pieces), default=0) * self.legs(space)[1] / space.weight


def taking_few_disks(hardware: Hardware, schema: Schema, reserve: int = 0) -> Iterator[tuple[frozenset[int], Exact, list[list[float]]]]:
    """Yield the disks that spaces on every disk lose to those from which they are apart, with the program and the best levels of the rest.

    These are all choices of as few of their disks as have a plan; none without a plan. What the same spaces are apart from lies together.
    """
    spreading = {space.id: space for space in schema.spaces if space.per_disk and space.apart_from}
    named = sorted({name for space in spreading.values() for name in space.apart_from} - spreading.keys())
    parted = {name: frozenset(own for own, space in spreading.items() if name in space.apart_from) for name in named}
    groups = {own: frozenset().union(*(spreading[name].allowed for name in own)) for own in parted.values()}
    choices = [
        dict(zip(groups, lost, strict=True))
        for lost in itertools.product(*(list(_drives_among(hardware, wanted)) for wanted in groups.values()))
    ]
    found: int | None = None
    for lost in sorted(choices, key=lambda lost: len(frozenset().union(*lost.values()))):
        taken = frozenset().union(*lost.values())
        if found is not None and len(taken) > found:
            return
        disks = {name: lost[own] | _beside(hardware, groups[own]) for name, own in parted.items()}
        for name, space in spreading.items():
            disks[name] = space.allowed - frozenset().union(*(away for own, away in lost.items() if name in own))
        spaces = tuple(replace(space, allowed=space.allowed & disks.get(space.id, space.allowed)) for space in schema.spaces)
        exact = Exact(hardware, replace(schema, spaces=spaces), reserve)
        if all(disks[name] for name in spreading) and (best := exact.best()) is not None:
            found = len(taken)
            yield taken, exact, best


def _drives_among(hardware: Hardware, wanted: frozenset[int]) -> Iterator[frozenset[int]]:
    drives = sorted({hardware.drives[disk] for disk in wanted})
    for count in range(len(drives)):
        for lost in itertools.combinations(drives, count):
            yield frozenset(disk for disk in wanted if hardware.drives[disk] in lost)


def _beside(hardware: Hardware, wanted: frozenset[int]) -> frozenset[int]:
    """Return the disks on drives of which none is wanted."""
    drives = {hardware.drives[disk] for disk in wanted}
    return frozenset(disk for disk, drive in enumerate(hardware.drives) if drive not in drives)


def is_worse(mine: list[list[float]], best: list[list[float]], noticed: float, slack: float) -> bool:
    """Return whether some sums of lowest levels are below others, the first that differ noticeably."""
    for own, its in zip(itertools.chain(*mine), itertools.chain(*best)):
        if abs(own - its) > max(own, its) * noticed + slack:
            return own < its
    return False
