# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conflicts are minimal, as brute force over all placements says: all constraints together leave none, and without any one there is one.

The brute force knows partitions and arrays, their disks and `apart_from`; it shares no code with the planner. A space without its minimum
need not be there.
"""

from __future__ import annotations

import itertools
import random
import typing as t
from collections.abc import Collection, Iterator, Sequence

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.tests.support.house.share import examples

Plain = dict[str, t.Any]

TABLE = 2
"""MiB of a disk that a partition table takes."""
ENDLESS = 10**9
Lies = tuple[int, ...]


def machine(seed: int) -> tuple[dict[str, int], list[Plain]]:
    """Return disks and a schema that is mostly too large for them."""
    chance = random.Random(seed)
    disks = {f"d{at}": chance.choice([10_000, 20_000, 40_000]) + chance.randint(0, 900) for at in range(chance.randint(2, 4))}
    schema: list[Plain] = []
    for at in range(chance.randint(1, 4)):
        space: Plain = {"id": f"s{at}", "min_size": chance.randint(1_000, 30_000), "type": "partition"}
        if chance.random() < 0.5:
            space |= {"type": "raid", "level": "raid1", "legs": chance.randint(2, min(3, len(disks)))}
        if chance.random() < 0.6:
            space["disks"] = sorted(chance.sample(sorted(disks), chance.randint(1, len(disks))))
        schema.append(space)
    if len(schema) > 1 and chance.random() < 0.4:
        schema[0]["apart_from"] = [schema[1]["id"]]
    return disks, schema


def places(space: Plain, disks: Sequence[str], kept: Collection[str]) -> Iterator[tuple[Lies, bool]]:
    """Give where a space may lie, as positions of disks, and whether it is whole (on each of them) or cut (over all of them)."""
    name = space["id"]
    allowed = [at for at, disk in enumerate(disks) if f"disks:{name}" not in kept or disk in space.get("disks", disks)]
    legs = space.get("legs", 0) if f"legs:{name}" in kept else 0
    if len(allowed) < legs:
        # Whatever its size, such an array cannot be.
        return
    if f"min:{name}" not in kept or ("legs" in space and not legs):
        yield (), True
    elif legs:
        yield from ((lies, True) for lies in itertools.combinations(allowed, legs))
    elif f"one_disk:{name}" in kept:
        yield from (((at,), True) for at in allowed)
    else:
        yield from ((lies, False) for count in range(1, len(allowed) + 1) for lies in itertools.combinations(allowed, count))


def has_placement(disks: dict[str, int], schema: Sequence[Plain], kept: Collection[str]) -> bool:
    """Return whether there is a placement that meets the constraints kept; what else the schema says does not matter."""
    names = [space["id"] for space in schema]
    needs = [space["min_size"] if f"min:{space['id']}" in kept else 0 for space in schema]
    room = [size - TABLE if f"disk:{disk}" in kept else ENDLESS for disk, size in disks.items()]
    apart = [
        (names.index(space["id"]), names.index(other))
        for space in schema
        for other in space.get("apart_from", ())
        if f"apart:{space['id']}" in kept
    ]
    for chosen in itertools.product(*(list(places(space, list(disks), kept)) for space in schema)):
        if any(set(chosen[one][0]) & set(chosen[other][0]) for one, other in apart):
            continue
        left = list(room)
        for (lies, whole), need in zip(chosen, needs, strict=True):
            for at in lies if whole else ():
                left[at] -= need
        cut = [(set(lies), need) for (lies, whole), need in zip(chosen, needs, strict=True) if not whole]
        if min(left) >= 0 and all(
            sum(need for _lies, need in some) <= sum(left[at] for at in set().union(*(lies for lies, _need in some)))
            for count in range(1, len(cut) + 1)
            for some in itertools.combinations(cut, count)
        ):
            return True
    return False


def fault(seed: int) -> str | None:
    """Return what is wrong with the conflict of a problem; nothing where it has a plan or a minimal conflict."""
    disks, schema = machine(seed)
    try:
        Planner(schema).plan({"disks": [{"id": disk, "size": size} for disk, size in disks.items()]})
    except NoSolution as error:
        names = {constraint["name"] for constraint in error.conflict["constraints"]}
        if has_placement(disks, schema, names):
            return f"no conflict: {sorted(names)}"
        needless = [name for name in sorted(names) if not has_placement(disks, schema, names - {name})]
        return f"{needless} of {sorted(names)} are not needed" if needless else ""
    return None


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_every_constraint_of_a_conflict_is_needed(first: int) -> None:
    found = {seed: fault(seed) for seed in range(first, first + examples(100))}
    assert {seed: says for seed, says in found.items() if says} == {}
    assert sum(says is not None for says in found.values()) > 2, "some have no plan"
