# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Placements by patterns, beside all placements of small machines."""

from __future__ import annotations

import itertools
import random

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.highs import FREE
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.place.cutting_stock import CuttingStock, TooMany
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.place.patterns import kinds_of, suits
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.place.prices import Prices, most_worth
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.problem.formulate import formulate
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.problem.model import Kind, Problem
from ansible_collections.bareon.allocator.tests.support.disk.build import hardware_of, schema_of

GROUP_SLACK = 40
"""MiB that metadata and extents of a group may take."""


def machine(chance: random.Random, *, group: bool, boots: bool) -> Problem:
    """Return disks of a few sizes with partitions and mirrors, some of them confined to the first two disks."""
    hardware = hardware_of(*(chance.choice([6000, 6000, 9000, 12_000]) for _disk in range(chance.randint(2, 4))))
    entries: list[dict] = [{"id": f"p{at}", "type": "partition", "min_size": 1} for at in range(chance.randint(1, 4))]
    entries += [{"id": f"r{at}", "type": "raid", "level": "raid1", "legs": 2, "min_size": 1} for at in range(chance.randint(0, 2))]
    for entry in entries:
        if chance.random() < 0.3:
            entry["disks"] = ["d0", "d1"]
    if boots:
        entries[0]["boot"] = True
        entries.append({"id": "esp", "type": "esp", "size": 512})
    if group:
        entries += [{"id": "g", "type": "vg", "contains": ["l"], "disks": ["d0", "d1"]}]
        entries += [{"id": "l", "type": "lv", "min_size": 4, "disks": ["d0", "d1"]}]
    return formulate(hardware, schema_of(hardware, *entries))


def sizes_of(problem: Problem, chance: random.Random) -> list[int]:
    """Return units of a few sizes only, so that some are alike."""
    return [
        0 if demand.space is None else chance.choice([100, 400, 700]) if demand.kind is Kind.VOLUME else chance.choice([1500, 2900, 4400])
        for demand in problem.demands
    ]


def left_by(problem: Problem, units: list[int], way: dict[int, tuple[int, ...]]) -> list[int]:
    """Return what every disk has left when whole demands lie so."""
    left = [area.size for area in problem.areas]
    for at, areas in way.items():
        for area in areas:
            left[area] -= units[at]
    for boot in problem.boot_partitions:
        for area in {area for at in boot.demands for area in way[at]}:
            left[area] -= dict(boot.sizes)[area]
    return left


def has_placement(problem: Problem, units: list[int], slack: int) -> bool:
    """Try all ways."""
    solid = [at for at, demand in enumerate(problem.demands) if demand.kind is not Kind.VOLUME]
    ways = [itertools.combinations(problem.demands[at].areas, problem.demands[at].legs) for at in solid]
    for way in itertools.product(*ways):
        left = left_by(problem, units, dict(zip(solid, way, strict=True)))
        if min(left) >= 0 and all(
            sum(units[volume] for volume in pool.volumes) * pool.extent_size + slack <= sum(left[area] for area in pool.areas)
            for pool in problem.pools
        ):
            return True
    return False


@pytest.mark.parametrize("seed", range(60))
def test_patterns_find_what_trying_all_ways_finds(seed: int) -> None:
    chance = random.Random(seed)
    problem = machine(chance, group=seed % 3 == 0, boots=seed % 2 == 0)
    assert suits(problem)
    for _question in range(6):
        units = sizes_of(problem, chance)
        program = CuttingStock(kinds_of(problem, units))
        proof = program.proof()
        placement = None if proof is not None else program.placement(500)
        if has_placement(problem, units, GROUP_SLACK if problem.pools else 0):
            assert placement is not None
        if placement is None:
            assert not has_placement(problem, units, GROUP_SLACK if problem.pools else 0)
            continue
        # What comes out of it is a placement, with all legs and boot partitions where they have to be.
        way = {at: areas for at, areas in enumerate(placement.areas_of_demand) if areas}
        for at, demand in enumerate(problem.demands):
            if demand.kind is not Kind.VOLUME:
                assert len(set(way[at])) == demand.legs
                assert set(way[at]) <= set(demand.areas)
        assert min(left_by(problem, units, way)) >= 0
        for boot, areas in zip(problem.boot_partitions, placement.boot_partitions, strict=True):
            assert set(areas) == {area for at in boot.demands for area in way[at]}


@pytest.mark.parametrize("seed", range(60))
def test_a_proof_blames_enough_and_its_prices_hold_for_all_sizes(seed: int) -> None:
    chance = random.Random(seed)
    problem = machine(chance, group=seed % 3 == 0, boots=seed % 2 == 0)
    prices: list[Prices] = []
    questions = [sizes_of(problem, chance) for _question in range(12)]
    for units in questions:
        proof = CuttingStock(kinds_of(problem, units)).proof()
        if proof is None:
            continue
        least = [own if at in proof.blamed else 0 for at, own in enumerate(units)]
        assert not has_placement(problem, least, GROUP_SLACK if problem.pools else 0)
        if proof.prices is not None:
            assert proof.prices.forbid(units)
            prices.append(proof.prices)
    for units in questions:
        if has_placement(problem, units, GROUP_SLACK if problem.pools else 0):
            assert not any(own.forbid(units) for own in prices)


def test_sizes_that_sums_and_counts_allow_are_refuted() -> None:
    # Of 9, 5, 5 and 5 on 12 and 12 no two go together but 5 and 5: three disks' worth, though 24 hold 24.
    hardware = hardware_of(12_002, 12_002)
    problem = formulate(hardware, schema_of(hardware, *({"id": f"p{at}", "type": "partition", "min_size": 1} for at in range(4))))
    program = CuttingStock(kinds_of(problem, [9000, 5000, 5000, 5000]))
    proof = program.proof()
    assert proof is not None
    assert proof.prices is not None
    assert proof.prices.forbid([9500, 5000, 5200, 5000])
    assert not proof.prices.forbid([7000, 5000, 5000, 5000])


def test_too_many_patterns_are_no_program() -> None:
    hardware = hardware_of(1_000_000, 1_000_000)
    spaces = ({"id": f"p{at}", "type": "partition", "min_size": 1} for at in range(14))
    problem = formulate(hardware, schema_of(hardware, *spaces, {"id": "l", "type": "vg", "contains": ["m"]}, {"id": "m", "type": "lv"}))
    with pytest.raises(TooMany):
        CuttingStock(kinds_of(problem, [*(1000 + at for at in range(14)), 4, 0]))


def test_who_shares_no_disk_with_others_is_no_matter_of_patterns() -> None:
    hardware = hardware_of(5002, 5002)
    partitions = [{"id": f"p{at}", "type": "partition", "min_size": 100} for at in range(2)]
    assert suits(formulate(hardware, schema_of(hardware, *partitions)))
    related = formulate(hardware, schema_of(hardware, {**partitions[0], "apart_from": ["p1"]}, partitions[1]))
    assert related.relations
    assert not suits(related)


def test_what_a_preference_costs_is_limited() -> None:
    hardware = hardware_of(5002, 5002)
    spaces = [{"id": f"p{at}", "type": "partition", "min_size": 100, "best_with_disks": ["d0"]} for at in range(2)]
    problem = formulate(hardware, schema_of(hardware, *spaces))
    assert CuttingStock(kinds_of(problem, [3000, 100]), FREE).placement(50) is not None
    both = CuttingStock(kinds_of(problem, [100, 100]), 0.0).placement(50)
    assert both is not None
    assert both.areas_of_demand == ((0,), (0,))


@pytest.mark.parametrize("seed", range(100))
def test_no_disk_holds_more_than_most_worth_says(seed: int) -> None:
    chance = random.Random(seed)
    room, by_mib = chance.randint(10, 60), chance.choice([0.0, 0.01, 0.05])
    pieces = [(chance.randint(5, 30), chance.random()) for _piece in range(3)]
    counts = itertools.product(*(range(room // size + 1) for size, _price in pieces))
    held = [
        sum(count * price for count, (_size, price) in zip(own, pieces, strict=True)) + by_mib * left
        for own in counts
        if (left := room - sum(count * size for count, (size, _price) in zip(own, pieces, strict=True))) >= 0
    ]
    assert most_worth(room, by_mib, pieces) == pytest.approx(max(held), abs=1e-6)
