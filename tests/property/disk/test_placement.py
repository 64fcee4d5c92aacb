# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fair planner on random machines and schemas of every type, against rules and an exhaustive search."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.conflict.contradiction import minimal_conflict
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.conflict.least import least_to_give_up, least_to_grow
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fair.solve import allocate_fair
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import Allocation, Hardware, Schema, Space
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.problem.formulate import formulate
from ansible_collections.bareon.allocator.tests.support.disk.build import hardware_of, schema_of
from ansible_collections.bareon.allocator.tests.support.disk.rules import DATA_LEGS, array_extents, broken, on_disks, size_of
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FEW = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def machines(draw: st.DrawFn) -> Hardware:
    return hardware_of(*draw(st.lists(st.integers(20, 400), min_size=1, max_size=4)))


@st.composite
def bounds(draw: st.DrawFn, most: int) -> dict:
    low = draw(st.integers(1, most))
    entry = {"min_size": low}
    if draw(st.booleans()):
        entry["max_size"] = low + draw(st.sampled_from([0, 0, 3, 10, 50]))
    entry["weight"] = draw(st.sampled_from([0, 1, 1, 1, 2, 0.5]))
    return entry


@st.composite
def choices(draw: st.DrawFn, disks: list[str]) -> dict:
    entry = {}
    if draw(st.integers(0, 3)) == 0:
        entry["disks"] = draw(st.lists(st.sampled_from(disks), min_size=1, unique=True))
    if draw(st.integers(0, 3)) == 0:
        entry["best_with_disks"] = draw(st.lists(st.sampled_from(disks), min_size=1, unique=True))
    return entry


@st.composite
def schemas(draw: st.DrawFn, hardware: Hardware) -> Schema:
    disks = [disk.id for disk in hardware.disks]
    entries: list[dict] = []
    for at in range(draw(st.integers(0, 3))):
        entry = {"id": f"p{at}", "type": "partition", **draw(bounds(120)), **draw(choices(disks))}
        entry["per_disk"] = draw(st.integers(0, 4)) == 0
        entry["boot"] = draw(st.integers(0, 3)) == 0
        entries.append(entry)
    if len(disks) >= 2 and draw(st.booleans()):
        level = draw(st.sampled_from(["raid0", "raid1", "raid5"] if len(disks) > 2 else ["raid0", "raid1"]))
        legs = draw(st.integers(3 if level == "raid5" else 2, len(disks)))
        spares = draw(st.integers(0, len(disks) - legs)) if level != "raid0" else 0
        array = {"id": "r", "type": "raid", "level": level, "legs": legs, "spares": spares, "boot": draw(st.booleans())}
        entries.append({**array, **draw(bounds(150))})
    extent = draw(st.sampled_from([4, 4, 4, 1, 8]))
    for at in range(draw(st.integers(0, 2))):
        members = [f"l{at}{number}" for number in range(draw(st.integers(0, 3)))]
        group = {"id": f"g{at}", "type": "vg", "contains": [*members], **draw(choices(disks))}
        if draw(st.integers(0, 2)) == 0:
            group["max_pvs"] = draw(st.integers(1, 2))
        if not members:
            group["min_size"] = draw(st.integers(1, 100))
        if at == 0 and any(entry["id"] == "r" for entry in entries) and draw(st.booleans()):
            group = {"id": "g0", "type": "vg", "contains": [*members, "r"], "min_size": group.get("min_size", 0)}
        entries.append({**group, "extent_size": extent})
        entries += [{"id": member, "type": "lv", **draw(bounds(150))} for member in members]
    if any(entry.get("boot") for entry in entries):
        entries.append({"id": "esp", "type": "esp", "size": draw(st.integers(33, 50))})
    if not entries:
        entries.append({"id": "only", "type": "partition", "min_size": 1})
    if draw(st.integers(0, 2)) == 0:
        relate(draw, entries)
    return schema_of(hardware, *entries)


def relate(draw: st.DrawFn, entries: list[dict]) -> None:
    """Have some spaces share no disk with others, or lie on their disks only."""
    whole = [entry["id"] for entry in entries if entry["type"] in ("partition", "raid")]
    names = whole + [entry["id"] for entry in entries if entry["type"] == "vg"]
    inside = {("g0", "r"), ("r", "g0")} if any("r" in entry.get("contains", []) for entry in entries) else set()
    for entry in entries:
        others = [name for name in names if name != entry["id"] and (name, entry["id"]) not in inside]
        if entry["id"] in names and others and draw(st.booleans()):
            key = draw(st.sampled_from(["apart_from", "apart_from", "together_with"]))
            others = [name for name in others if name in whole] if key == "together_with" else others
            entry[key] = draw(st.lists(st.sampled_from(others), min_size=1, max_size=2, unique=True)) if others else []


@st.composite
def problems(draw: st.DrawFn) -> tuple[Hardware, Schema]:
    hardware = draw(machines())
    return hardware, draw(schemas(hardware))


def planned(hardware: Hardware, schema: Schema) -> Allocation | None:
    try:
        return allocate_fair(hardware, schema)
    except NoSolution:
        return None


def fits(hardware: Hardware, schema: Schema) -> bool:
    """Tell by trying every placement of the minimums whether there is a plan."""
    esp = next((space.min_size for space in schema.spaces if space.type == "esp"), 0)
    options = []
    for space in schema.spaces:
        allowed = sorted(space.allowed)
        if space.type == "partition":
            ways = [tuple(allowed)] if space.per_disk else [(disk,) for disk in allowed]
            options.append([(space, way, space.min_size) for way in ways])
        elif space.type == "raid":
            leg = least_leg(schema, space)
            if space.max_size is not None and leg * DATA_LEGS[space.level.value](space.legs) > max(space.max_size, space.min_size + 2):
                return False
            options.append([(space, way, leg) for way in itertools.combinations(allowed, space.legs + space.spares)])
    for way in itertools.product(*options):
        left = [disk.size - 2 for disk in hardware.disks]
        booting = {disk for space, where, _size in way if space.boot for disk in where}
        for _space, where, size in way:
            for disk in where:
                left[disk] -= size
        for disk in booting:
            left[disk] -= esp
        where = {space.id: set(disks) for space, disks, _size in way}
        where |= {space.id: where["r"] for space in schema.spaces if "r" in space.contains}
        if min(left) >= 0 and related(schema, where) and pools_fit(schema, left, where):
            return True
    return False


def related(schema: Schema, where: dict[str, set[int]]) -> bool:
    """Tell whether spaces on these disks are apart and together as they are to be; of others nothing is known."""
    return all(
        not (where[space.id] & where[name] if apart else where[space.id] - where[name])
        for space in schema.spaces
        for apart, names in ((True, space.apart_from), (False, space.together_with))
        for name in names
        if space.id in where and name in where
    )


def least_leg(schema: Schema, raid: Space) -> int:
    """Return the smallest leg that holds the minimum of a raid, its metadata, and the extents of a vg on it."""
    data = DATA_LEGS[raid.level.value](raid.legs)
    # A maximum that leaves no room for data beside what md takes of a leg is refused before; the solver keeps to it.
    least = 1 if raid.max_size is not None and raid.max_size < 2 * data else 2
    leg = max(-(-raid.min_size // data), least)
    for group in (group for group in schema.spaces if raid.id in group.contains):
        while array_extents(raid, leg, encrypted=False, extent=group.extent_size) < extents_needed(schema, group):
            leg += 1
    return leg


def extents_needed(schema: Schema, group: Space) -> int:
    """Return how many extents the volumes or the minimum of a vg need."""
    members = [space for space in schema.spaces if space.volume_group == group.id]
    extent = group.extent_size
    return max(sum(max(1, -(-member.min_size // extent)) for member in members), -(-group.min_size // extent))


def pools_fit(schema: Schema, left: list[int], where: dict[str, set[int]]) -> bool:
    """Tell whether PVs can be opened so that every vg holds its volumes' extents (Hall's condition over the vgs)."""
    groups = [space for space in schema.spaces if space.type == "vg" and "r" not in space.contains]
    needs = [extents_needed(schema, group) for group in groups]
    extent = groups[0].extent_size if groups else 4
    ways = []
    for group in groups:
        most = group.max_pvs or len(group.allowed)
        ways.append([way for count in range(most + 1) for way in itertools.combinations(sorted(group.allowed), count)])
    for way in itertools.product(*ways):
        slots = [(left[disk] - sum(disk in opened for opened in way)) // extent for disk in range(len(left))]
        if min(slots) < 0 or not related(schema, where | {group.id: set(opened) for group, opened in zip(groups, way)}):
            continue
        subsets = [subset for count in range(1, len(groups) + 1) for subset in itertools.combinations(range(len(groups)), count)]
        if all(
            sum(needs[at] for at in subset) <= sum(slots[disk] for disk in {disk for at in subset for disk in way[at]})
            for subset in subsets
        ):
            return True
    return not groups


@FEW
@given(problems())
def test_no_rule_is_broken_and_feasibility_is_exact(problem: tuple[Hardware, Schema]) -> None:
    hardware, schema = problem
    allocation = planned(hardware, schema)
    assert (allocation is not None) == fits(hardware, schema)
    if allocation is not None:
        assert broken(hardware, schema, allocation) == []
        assert allocation.proven or allocation.gap > 0


@FEW
@given(problems(), st.integers(0, 1000))
def test_the_order_of_the_facts_does_not_matter(problem: tuple[Hardware, Schema], seed: int) -> None:
    hardware, schema = problem
    order = list(range(len(hardware.disks)))
    random.Random(seed).shuffle(order)
    shuffled = dataclasses.replace(hardware, disks=tuple(hardware.disks[at] for at in order))
    place = {old: new for new, old in enumerate(order)}
    spaces = tuple(
        dataclasses.replace(
            space,
            allowed=frozenset(place[disk] for disk in space.allowed),
            preferred_disks=tuple(frozenset(place[disk] for disk in tier) for tier in space.preferred_disks),
        )
        for space in schema.spaces
    )
    first = planned(hardware, schema)
    second = planned(shuffled, dataclasses.replace(schema, spaces=spaces))
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert first.volumes == second.volumes
        assert {(piece.space, hardware.disks[piece.disk].id, piece.size) for piece in first.pieces} == {
            (piece.space, shuffled.disks[piece.disk].id, piece.size) for piece in second.pieces
        }


@FEW
@given(problems())
def test_nothing_lies_idle_that_a_partition_could_use(problem: tuple[Hardware, Schema]) -> None:
    hardware, schema = problem
    allocation = planned(hardware, schema)
    if allocation is None:
        return
    for disk, facts in enumerate(hardware.disks):
        pieces = [piece for piece in allocation.pieces if piece.disk == disk]
        idle = facts.size - 2 - sum(piece.size for piece in pieces)
        for piece in pieces:
            space = schema.spaces[piece.space]
            if idle > 0 and space.type == "partition" and space.weight > 0:
                assert space.max_size is not None
                assert piece.size == space.max_size


@FEW
@given(problems())
def test_giving_up_what_is_short_or_growing_disks_makes_a_plan(problem: tuple[Hardware, Schema]) -> None:
    hardware, schema = problem
    framed = formulate(hardware, schema)
    if minimal_conflict(framed)[0] == []:
        assert planned(hardware, schema) is not None
        return
    grown = least_to_grow(framed)
    if grown is not None:
        larger = tuple(dataclasses.replace(disk, size=disk.size + grown.mib.get(disk.id, 0)) for disk in hardware.disks)
        assert planned(dataclasses.replace(hardware, disks=larger), schema) is not None
        one_less = tuple(dataclasses.replace(disk, size=disk.size - (disk.id == next(iter(grown.mib)))) for disk in larger)
        assert not grown.proven or planned(dataclasses.replace(hardware, disks=one_less), schema) is None
    given_up = least_to_give_up(framed)
    lower = {name.split(":", 1)[1]: mib for name, mib in given_up.mib.items()} if given_up is not None else {}
    # What gives up everything is to be left out: it would still need a boot partition, say. An ESP is as large as its size says.
    if lower and "esp" not in lower and all(lower.get(space.id, 0) < max(1, space.min_size) for space in schema.spaces):
        spaces = tuple(dataclasses.replace(space, min_size=max(0, space.min_size - lower.get(space.id, 0))) for space in schema.spaces)
        assert planned(hardware, dataclasses.replace(schema, spaces=spaces)) is not None


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.integers(50, 2000), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 40), st.sampled_from([1, 1, 2, 3])), min_size=1, max_size=5),
)
def test_no_other_placement_makes_the_poorest_much_richer(disks: list[int], spaces: list[tuple[int, int]]) -> None:
    hardware = hardware_of(*disks)
    entries = [{"id": f"p{at}", "type": "partition", "min_size": low, "weight": weight} for at, (low, weight) in enumerate(spaces)]
    schema = schema_of(hardware, *entries)
    levels = []
    for way in itertools.product(range(len(disks)), repeat=len(spaces)):
        here = [[spaces[at] for at, disk in enumerate(way) if disk == number] for number in range(len(disks))]
        if all(sum(low for low, _weight in there) <= disk - 2 for there, disk in zip(here, disks, strict=True)):
            levels.append(min(poorest(disk - 2, there) for there, disk in zip(here, disks, strict=True) if there))
    allocation = planned(hardware, schema)
    assert (allocation is not None) == bool(levels)
    if allocation is not None:
        got = min(size_of(schema, allocation, at) / weight for at, (_low, weight) in enumerate(spaces))
        assert got >= 0.98 * max(levels) - 2


def poorest(room: int, spaces: list[tuple[int, int]]) -> float:
    """Return MiB per weight of the poorest when spaces (minimum, weight) share a disk fairly: found by bisection."""
    low, high = 0.0, float(room)
    for _halving in range(60):
        level = (low + high) / 2
        if sum(max(least, level * weight) for least, weight in spaces) <= room:
            low = level
        else:
            high = level
    return min(max(least, low * weight) / weight for least, weight in spaces)


@st.composite
def large_problems(draw: st.DrawFn) -> tuple[Hardware, Schema]:
    """Machines of real sizes with every type, also those that the exhaustive search leaves out."""
    hardware = hardware_of(*draw(st.lists(st.integers(20_000, 4_000_000), min_size=1, max_size=60)))
    disks = [disk.id for disk in hardware.disks]
    entries: list[dict] = [{"id": f"p{at}", "type": "partition", **draw(bounds(3000))} for at in range(draw(st.integers(0, 12)))]
    entries += [{"id": f"s{at}", "type": "partitions", **draw(bounds(9000))} for at in range(draw(st.integers(0, 3)))]
    entries += [
        {"id": f"r{at}", "type": "raid", "level": "raid1", "legs": 2, **draw(bounds(3000))}
        for at in range(draw(st.integers(0, 3)) if len(disks) > 1 else 0)
    ]
    for at in range(draw(st.integers(1, 4))):
        members = [
            {"id": f"l{at}{number}", "type": "lv", **draw(bounds(3000)), **draw(choices(disks))}
            for number in range(draw(st.integers(1, 6)))
        ]
        group = {"id": f"g{at}", "type": "vg", "contains": [member["id"] for member in members], "encrypt": draw(st.booleans())}
        entries += [group, *members]
    return hardware, schema_of(hardware, *entries)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(large_problems())
def test_large_machines(problem: tuple[Hardware, Schema]) -> None:
    hardware, schema = problem
    allocation = planned(hardware, schema)
    if allocation is not None:
        assert broken(hardware, schema, allocation) == []


@pytest.mark.parametrize("sizes", [(500, 300), (700, 200, 200)])
def test_no_divisible_space_can_grow_but_by_shrinking_a_poorer_one(sizes: tuple[int, ...]) -> None:
    hardware = hardware_of(*sizes)
    names = [disk.id for disk in hardware.disks]
    schema = schema_of(
        hardware,
        {"id": "a", "type": "lv", "min_size": 10, "disks": names[:1]},
        {"id": "b", "type": "lv", "min_size": 10, "disks": names[1:]},
        {"id": "c", "type": "lv", "min_size": 10},
        {"id": "d", "type": "lv", "min_size": 10, "max_size": 30},
    )
    allocation = allocate_fair(hardware, schema)
    assert broken(hardware, schema, allocation) == []
    assert sum(piece.size for piece in allocation.pieces) == sum(sizes)
    got = [size_of(schema, allocation, at) for at in range(4)]
    assert got[3] == 30
    for rich in range(3):
        for poor in range(3):
            # If the poorer could take from a disk that the richer is on, they would have been made equal.
            shared = set(on_disks(allocation, rich)) & schema.spaces[poor].allowed
            assert not shared or got[rich] <= got[poor] + 1
