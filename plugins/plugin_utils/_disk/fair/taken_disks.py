# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disks others may take of spaces on every disk that are apart from them, and what levels that leaves at most.

The bound of a choice: what is apart shares its disks as if they were one, whatever it is, and each part of what is on every other disk
has its disk alone. No plan has levels above these.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..existing import is_used
from ..model import Hardware, Schema, Space
from ..problem.areas import canonical_order
from ..problem.formulate import formulate
from ..problem.model import Demand, GrowthOrder, Kind

Taken = Mapping[frozenset[str], frozenset[int]]
"""Disks (positions) that others take, by the spaces (ids) on every disk that are apart from them."""
Levels = tuple[float, ...]
"""MiB by weight, in ascending order."""
_HALVINGS = 40


@dataclass(frozen=True)
class Spread:
    """Spaces on every disk of a schema (ids), and from which others each of these is apart."""

    hardware: Hardware
    schema: Schema
    spaces: frozenset[str]

    @property
    def groups(self) -> Mapping[frozenset[str], frozenset[str]]:
        """The others that are not on every disk themselves, by the spaces that are apart from them: they lie on the same disks."""
        found: dict[frozenset[str], frozenset[str]] = {}
        on_every_disk = {space.id for space in self.schema.spaces if space.per_disk}
        for name in sorted({name for space in self._own for name in space.apart_from} - on_every_disk):
            spaces = frozenset(space.id for space in self._own if name in space.apart_from)
            found[spaces] = found.get(spaces, frozenset()) | {name}
        return found

    def wanted(self, spaces: Collection[str]) -> frozenset[int]:
        """Return the disks that some of the spaces may be on."""
        return frozenset().union(*(space.allowed for space in self._own if space.id in spaces))

    @property
    def _own(self) -> list[Space]:
        return [space for space in self.schema.spaces if space.id in self.spaces]

    def choices(self, count: int) -> Iterator[Taken]:
        """Yield all ways in which others may take this number of disks; of disks that are alike the first. A drive is taken as a whole."""
        wanted, groups = self.wanted(self.spaces), list(self.groups)
        kinds = _kinds(self.hardware, self.schema, wanted)
        for counts in _counts(count, list(map(len, kinds))):
            chosen = frozenset(at for many, disks in zip(counts, kinds, strict=True) for at in disks[:many])
            if chosen == on_drives_of(self.hardware, chosen) & wanted:
                some = [chosen] if len(groups) == 1 else list(_subsets(chosen))
                shared = (own for own in itertools.product(some, repeat=len(groups)) if frozenset().union(*own) == chosen)
                yield from (dict(zip(groups, own, strict=True)) for own in shared)


class Bounds:
    """The levels that a choice of disks leaves at most."""

    def __init__(self, spread: Spread, members: Mapping[frozenset[str], Collection[str]], reserve: int) -> None:
        self._spread, self._problem = spread, formulate(spread.hardware, spread.schema, reserve)
        self._room = Counter[int]()
        for area in self._problem.areas:
            self._room[area.disk] += area.size
        demands, spaces = self._problem.demands, spread.schema.spaces
        names = {at: spaces[demand.space].id for at, demand in enumerate(demands) if demand.space is not None}
        # A volume on an array takes no more than the array does.
        inside = {at for pool in self._problem.pools if pool.arrays for at in pool.volumes}
        apart = {own: [at for at, name in names.items() if name in ids and at not in inside] for own, ids in members.items()}
        everywhere = [at for at, name in names.items() if name in spread.spaces and demands[at].kind is Kind.SINGLE]
        rest = names.keys() - set(itertools.chain(everywhere, *apart.values()))
        self._apart = {own: [demands[at] for at in positions] for own, positions in apart.items()}
        self._everywhere = [(demands[at], names[at]) for at in everywhere]
        self._rest = [_most(demands[at], self._room.total()) for at in sorted(rest) if _counts_by_level(demands[at])]

    def of(self, disks: Taken, lost: Mapping[str, Collection[int]]) -> Levels | None:
        """Return the levels with others on these disks, and disks lost to each space on every disk; None where minimums do not fit."""
        levels: list[float] = []
        for own, demands in self._apart.items():
            shared = _shared(demands, sum(self._room[disk] for disk in disks[own]))
            if shared is None:
                return None
            levels += shared
        return self.with_what_is_everywhere([*levels, *self._rest], lost)

    def with_what_is_everywhere(self, levels: Sequence[float], lost: Mapping[str, Collection[int]]) -> Levels | None:
        """Return levels of all else with those that what is everywhere has at most; None where minimums do not fit."""
        found = list(levels)
        for demand, name in self._everywhere:
            there = {self._problem.areas[area].disk for area in demand.areas} - set(lost[name])
            if there:
                most = max(self._room[disk] for disk in there)
                if most < demand.low * demand.unit:
                    return None
                found += [_most(demand, most)] if _counts_by_level(demand) else []
        return tuple(sorted(found))

    def of_any(self, count: int, free: Taken) -> Levels:
        """Return levels that no choice of this number of disks exceeds: others on the largest, each space without the smallest."""
        by_size = sorted(self._spread.wanted(self._spread.spaces), key=lambda disk: self._room[disk])
        largest = {own: free[own] | frozenset(by_size[-count:]) for own in free}
        return self.of(largest, dict.fromkeys(self._spread.spaces, by_size[:count])) or ()


def on_drives_of(hardware: Hardware, disks: Collection[int]) -> frozenset[int]:
    """Return all disks on the drives of some."""
    drives = {hardware.drives[disk] for disk in disks}
    return frozenset(disk for disk, drive in enumerate(hardware.drives) if drive in drives)


def _kinds(hardware: Hardware, schema: Schema, among: Collection[int]) -> list[list[int]]:
    """Return disks by what they are alike in; those that are used last."""
    shared = Counter(hardware.drives)
    kinds: dict[Hashable, list[int]] = {}
    for at in sorted(canonical_order(hardware.disks), key=lambda at: is_used(hardware.disks[at])):
        if at in among:
            disk, drive = hardware.disks[at], hardware.drives[at]
            may_use = tuple((at in space.allowed, *(at in tier for tier in space.preferred_disks)) for space in schema.spaces)
            alike = disk.size, disk.logical_block, disk.existing, is_used(disk), may_use, drive if shared[drive] > 1 else None
            kinds.setdefault(alike, []).append(at)
    return list(kinds.values())


def _counts(total: int, most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all ways to make a total of numbers that are bounded."""
    if not most:
        yield from [()] if total == 0 else []
        return
    for first in range(min(total, most[0]), -1, -1):
        yield from ((first, *rest) for rest in _counts(total - first, most[1:]))


def _subsets(disks: Collection[int]) -> Iterator[frozenset[int]]:
    for many in range(len(disks) + 1):
        yield from map(frozenset, itertools.combinations(sorted(disks), many))


def _counts_by_level(demand: Demand) -> bool:
    return demand.growth_order is GrowthOrder.NORMAL


def _most(demand: Demand, room: int) -> float:
    """Return the level of a demand that has this room (MiB) alone."""
    units = room // _mib(demand)
    return (units if demand.high is None else min(units, demand.high)) * demand.unit / demand.weight


def _mib(demand: Demand) -> int:
    """Return what a unit of a demand takes, on all disks together."""
    return demand.legs if demand.kind is Kind.LEGS else demand.unit


def _shared(demands: Sequence[Demand], room: int) -> list[float] | None:
    """Return the levels of demands that share this room (MiB) as if it could be cut anywhere; None where their minimums are larger."""
    if sum(demand.low * _mib(demand) for demand in demands) > room:
        return None

    def taken(level: float) -> float:
        return sum(_units_at(demand, level) * _mib(demand) for demand in demands)

    low, high = 0.0, max((room * demand.unit / demand.weight for demand in demands), default=0.0)
    for _halving in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if taken(middle) <= room else (low, middle)
    return [_units_at(demand, high) * demand.unit / demand.weight for demand in demands if _counts_by_level(demand)]


def _units_at(demand: Demand, level: float) -> float:
    units = max(demand.low, level * demand.weight / demand.unit) if _counts_by_level(demand) else demand.low
    return units if demand.high is None else min(units, demand.high)
