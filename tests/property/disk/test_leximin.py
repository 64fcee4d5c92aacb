# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The best at every level: plans beside an exact program, which finds sizes and places at once.

The program is that of lexicographic max-min (Ogryczak and Śliwiński 2006): for k = 1, 2, ... the sum of the k lowest levels is made as
large as it can be, beside what was reached before. It shares no code with the planner; SciPy solves it. Metadata are left out, which is
what `SLACK` is for.
"""

from __future__ import annotations

import random
import typing as t
from dataclasses import replace

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fair.solve import allocate_fair
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import Allocation, Hardware, Schema, Space, SpaceType
from ansible_collections.bareon.allocator.tests.support.disk.build import hardware_of, schema_of
from ansible_collections.bareon.allocator.tests.support.disk.rules import broken, size_of
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from scipy import optimize, sparse

NOTICED = 0.02
"""Less than so much below the best is what levels of a percent, extents and metadata come to."""
SHARD = 16
"""MiB: nothing smaller is worth a partition."""
SLACK = 150.0
"""MiB: md keeps 129 of a leg at most."""
LEGS = {"raid0": (2, 2), "raid1": (2, 1), "raid5": (3, 2), "raid6": (4, 2), "raid10": (4, 2)}
"""Legs of an array, and how many of them hold data."""


class Exact:
    """The program of one machine; sizes in GiB, so that its numbers are small."""

    def __init__(self, hardware: Hardware, schema: Schema) -> None:
        self.schema, self.bounds, self.rows = schema, [], []
        self.integral: list[int] = []
        room = [(disk.size - 2) / 1024 for disk in hardware.disks]
        used: list[list[tuple[int, float]]] = [[] for _disk in room]
        self.size: dict[int, int] = {}
        self.here: dict[tuple[int, int], int] = {}
        total = sum(room)
        for at, space in enumerate(schema.spaces):
            if space.type is SpaceType.VOLUME_GROUP:
                continue
            high = total if space.max_size is None else space.max_size / 1024
            self.size[at] = self.column(space.min_size / 1024, min(high, total))
            if space.volume_group is None and space.type is not SpaceType.PARTITIONS:
                legs, data = LEGS[str(space.level)] if space.type is SpaceType.RAID else (1, 1)
                chosen = []
                for disk in sorted(space.allowed):
                    here, amount = self.column(0, 1, whole=True), self.column(0, room[disk])
                    # Where it lies, the amount is a leg of its size.
                    self.row([(amount, 1.0), (self.size[at], -1.0 / data), (here, -total)], low=-total)
                    used[disk].append((amount, 1.0))
                    chosen.append((here, 1.0))
                    self.here[at, disk] = here
                self.row(chosen, low=legs, high=legs)
                for drive in set(hardware.drives) if legs > 1 else ():
                    here = [term for term, disk in zip(chosen, sorted(space.allowed), strict=True) if hardware.drives[disk] == drive]
                    self.row(here, high=1.0)
        self.keep_apart(hardware)
        for at, space in enumerate(schema.spaces):
            if space.type not in (SpaceType.VOLUME_GROUP, SpaceType.PARTITIONS):
                continue
            parts = [(disk, self.column(0, room[disk])) for disk in sorted(space.allowed)]
            members = [own for own, other in enumerate(schema.spaces) if other.volume_group == space.id] or [at]
            self.row([*((column, 1.0) for _disk, column in parts), *((self.size[own], -1.0) for own in members)], low=0.0)
            for disk, column in parts:
                used[disk].append((column, 1.0))
        for disk, terms in enumerate(used):
            self.row(terms, high=room[disk])
        self.growing = [at for at in self.size if schema.spaces[at].max_size != schema.spaces[at].min_size]

    def keep_apart(self, hardware: Hardware) -> None:
        for (one, disk), here in self.here.items():
            for (other, at), there in self.here.items():
                if self.schema.spaces[other].id in self.schema.spaces[one].apart_from and hardware.drives[disk] == hardware.drives[at]:
                    self.row([(here, 1.0), (there, 1.0)], high=1.0)

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
        return optimize.milp(cost, integrality=self.integral, bounds=optimize.Bounds(low, high), constraints=constraint)

    def best(self) -> list[float] | None:
        """Return the sums of the one, two, three ... lowest levels in MiB, as large as can be one after the other; None without a plan."""
        if self.solve({}).x is None:
            return None
        found: list[float] = []
        for count in range(1, len(self.growing) + 1):
            edge = self.column(-np.inf)
            worth = {edge: float(count)}
            for at in self.growing:
                below = self.column()
                self.row([(below, 1.0), (edge, -1.0), (self.size[at], 1.0 / self.schema.spaces[at].weight)], low=0.0)
                worth[below] = -1.0
            solved = self.solve(worth)
            assert solved.x is not None
            found.append(-solved.fun * 1024)
            self.row(list(worth.items()), low=-solved.fun * (1 - 1e-6) - 1e-4)
        return found


def machine(seed: int) -> tuple[Hardware, Schema]:
    """Return a machine of up to four disks with up to six spaces of all types: fixed, bounded, weighted, on some disks only."""
    chance = random.Random(seed)
    alike = chance.random() < 0.4
    sizes = [chance.choice([60_000, 228_936, 476_940, 953_869]) for _disk in range(chance.randint(2, 4))]
    sizes = [sizes[0]] * len(sizes) if alike else [size + chance.randint(0, size // 3) for size in sizes]
    hardware = hardware_of(*sizes)
    names = [disk.id for disk in hardware.disks]

    def keys(share: float) -> dict:
        bound = int(chance.uniform(0.05, share) * min(sizes))
        kind = chance.random()
        keys: dict = {"weight": chance.choice([1, 1, 1, 2, 3]), "min_size": chance.choice([1000, 1000, 5000])}
        if kind < 0.3:
            keys = {"size": bound}
        elif kind < 0.6:
            keys["max_size"] = max(6000, bound)
        return keys

    def where() -> dict:
        return {"disks": sorted(chance.sample(names, chance.randint(1, len(names))))} if chance.random() < 0.2 else {}

    entries: list[dict] = []
    for at in range(chance.randint(2, 5)):
        kind = chance.choice(["partition", "partition", "partitions", "raid", "vg"])
        if kind == "raid":
            level = chance.choice([level for level, (legs, _data) in LEGS.items() if legs <= len(names)])
            entries.append({"id": f"s{at}", "type": "raid", "level": level, "legs": LEGS[level][0], **keys(0.4)})
        elif kind == "vg":
            members = [f"s{at}{own}" for own in range(chance.randint(1, 2))]
            here = where()
            entries.append({"id": f"s{at}", "type": "vg", "contains": members, **here})
            entries += [{"id": member, "type": "lv", **keys(0.3), **here} for member in members]
        else:
            entries.append({"id": f"s{at}", "type": kind, **keys(0.9), **where()})
    chance.shuffle(entries)
    return hardware, schema_of(hardware, *entries)


def on_shared_drives(seed: int, hardware: Hardware) -> Hardware:
    """Return the machine with some of its disks on one drive, or with drives in common."""
    chance = random.Random(seed)
    drives = [tuple({chance.choice("abcde") for _name in range(chance.choice([1, 1, 1, 2]))}) for _disk in hardware.disks]
    return replace(hardware, disks=tuple(replace(disk, drives=own) for disk, own in zip(hardware.disks, drives, strict=True)))


def apart(seed: int, schema: Schema) -> Schema:
    """Return the schema with two of its whole spaces apart from each other."""
    whole = [at for at, space in enumerate(schema.spaces) if space.type in (SpaceType.PARTITION, SpaceType.RAID)]
    if len(whole) < 2:
        return schema
    one, other = random.Random(seed).sample(whole, 2)
    spaces = list(schema.spaces)
    spaces[one] = replace(spaces[one], apart_from=(spaces[other].id,))
    return replace(schema, spaces=tuple(spaces))


def without_minimums(seed: int, schema: Schema) -> Schema:
    """Return the schema with spaces that may be left out or hold swap, most of them without a minimum."""
    chance = random.Random(seed)

    def changed(space: Space) -> Space:
        if space.min_size == space.max_size or space.type is SpaceType.VOLUME_GROUP:
            return space
        least = 0 if chance.random() < 0.7 else space.min_size
        return replace(space, min_size=least, fs_type=chance.choice([None, None, "swap", "ext4"]))

    return replace(schema, spaces=tuple(map(changed, schema.spaces)))


def needless_parts(hardware: Hardware, schema: Schema, allocation: Allocation) -> list[str]:
    """Return which spaces are cut although one disk has room for all of them, or into parts that are not worth a partition."""
    found = []
    for at, space in enumerate(schema.spaces):
        own = {piece.disk: piece.size for piece in allocation.pieces if piece.space == at}
        if space.type not in (SpaceType.VOLUME_GROUP, SpaceType.PARTITIONS) or len(own) < 2:
            continue
        used = [sum(piece.size for piece in allocation.pieces if piece.disk == disk) for disk in range(len(hardware.disks))]
        free = {disk: hardware.disks[disk].size - 2 - used[disk] + own.get(disk, 0) for disk in space.allowed}
        if max(free.values()) >= sum(own.values()):
            found.append(f"{space.id}: in {len(own)} parts")
        if min(own.values()) < SHARD:
            found.append(f"{space.id}: a part of {min(own.values())} MiB")
    return found


def first_worse(schema: Schema, allocation: Allocation, exact: Exact, best: list[float]) -> str:
    """Return the first level that is noticeably below the best; empty when none is."""
    levels = sorted(size_of(schema, allocation, at) / schema.spaces[at].weight for at in exact.growing)
    for count, (mine, its) in enumerate(zip(np.cumsum(levels).tolist(), best), start=1):
        if mine < its * (1 - NOTICED) - SLACK * count:
            return f"the {count} poorest have {mine:.0f} MiB per weight, and could have {its:.0f}"
        if mine > its * (1 + NOTICED) + SLACK * count:
            break
    return ""


def fault(seed: int, *, shared: bool = False, loose: bool = False) -> str:
    """Return what is wrong with the plan of one random machine; empty when nothing is.

    Disks may share drives (`shared`), spaces have no minimum (`loose`).
    """
    hardware, schema = machine(seed)
    if shared:
        hardware, schema = on_shared_drives(seed, hardware), apart(seed, schema)
    schema = without_minimums(seed, schema) if loose else schema
    exact = Exact(hardware, schema)
    best = exact.best()
    try:
        allocation = allocate_fair(hardware, schema)
    except NoSolution as error:
        return "" if best is None else f"no plan: {error}"
    if best is None:
        return ""
    faults = [*broken(hardware, schema, allocation), *needless_parts(hardware, schema, allocation)]
    return str(faults) if faults else first_worse(schema, allocation, exact, best)


@pytest.mark.parametrize("first", range(0, 1200, 100))
def test_no_plan_is_worse_than_the_best_at_any_level(first: int) -> None:
    # A share of the seeds in quick runs, all of them otherwise.
    faults = {seed: said for seed in range(first, first + examples(100)) if (said := fault(seed))}
    assert faults == {}


@pytest.mark.parametrize("first", range(2000, 3000, 100))
def test_spaces_without_a_minimum_get_what_they_can_have(first: int) -> None:
    faults = {seed: said for seed in range(first, first + examples(100)) if (said := fault(seed, loose=True))}
    assert faults == {}


@pytest.mark.parametrize("first", range(1000, 1600, 100))
def test_no_plan_on_shared_drives_is_worse_than_the_best(first: int) -> None:
    faults = {seed: said for seed in range(first, first + examples(100)) if (said := fault(seed, shared=True))}
    assert faults == {}
