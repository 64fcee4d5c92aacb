# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The best at every level: plans beside an exact program, which finds sizes and places at once. `SLACK` is for metadata."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fair.solve import allocate_fair
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import Allocation, Hardware, Schema, Space, SpaceType
from ansible_collections.bareon.allocator.tests.support.disk.build import hardware_of, schema_of
from ansible_collections.bareon.allocator.tests.support.disk.exact import Exact
from ansible_collections.bareon.allocator.tests.support.disk.rules import broken
from ansible_collections.bareon.allocator.tests.support.house.share import examples

NOTICED = 0.02
"""Less than so much below the best is what levels of a percent, extents and metadata come to."""
SHARD = 16
"""MiB: nothing smaller is worth a partition."""
SLACK = 150.0
"""MiB: md keeps 129 of a leg at most."""
LEGS = {"raid0": (2, 2), "raid1": (2, 1), "raid5": (3, 2), "raid6": (4, 2), "raid10": (4, 2)}
"""Legs of an array, and how many of them hold data."""


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
    return str(faults) if faults else exact.first_worse(allocation, best, NOTICED, SLACK)


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
