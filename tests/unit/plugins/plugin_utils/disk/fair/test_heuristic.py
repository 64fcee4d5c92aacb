# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Quick placements and the bound that they are measured by."""

from __future__ import annotations

import math

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.fair.heuristic import (
    Quality,
    cannot_be_better,
    highest_level,
    is_better,
    quality,
    quick_placements,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.fair.search import find_placement
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.fair.sizes import size_fairly
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.problem.formulate import formulate
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.problem.model import Problem
from ansible_collections.bareon.allocator.tests.support.disk.build import hardware_of, schema_of


def posed(sizes: tuple[int, ...], *entries: dict) -> Problem:
    hardware = hardware_of(*sizes)
    return formulate(hardware, schema_of(hardware, *entries))


def growing(name: str, **keys: object) -> dict:
    return {"id": name, "type": "partition", "min_size": 1, **keys}


@pytest.mark.parametrize(
    ("sizes", "entries", "level"),
    [
        ((302,), [growing("a"), growing("b"), growing("c")], 100),
        ((302, 302), [growing("a"), growing("b"), growing("c")], 150),
        ((302, 302), [growing("a"), growing("b", weight=2)], 150),
        ((302, 102), [growing("a"), {"id": "r", "type": "raid", "level": "raid1", "legs": 2}], 100),
        ((302,), [growing("a", max_size=10), growing("b")], 290),
        ((302,), [growing("a", max_size=10)], math.inf),
    ],
)
def test_no_level_is_higher_than_the_bound(sizes: tuple[int, ...], entries: list[dict], level: float) -> None:
    assert highest_level(posed(sizes, *entries)) == pytest.approx(level, rel=0.02)


def test_a_quick_placement_that_meets_the_bound_is_as_good_as_a_searched_one() -> None:
    problem = posed(
        (500, 400, 300), *(growing(name) for name in "abcd"), {"id": "r", "type": "raid", "level": "raid1", "legs": 2, "size": 50}
    )
    bound = highest_level(problem)
    found = find_placement(problem, 10)
    assert found is not None
    sizes = size_fairly(problem, found.placement)
    assert sizes is not None
    searched = quality(problem, found.placement, sizes)
    assert searched.levels[1] <= bound
    levels = []
    for choice in quick_placements(problem, bound):
        quick = size_fairly(problem, choice)
        assert quick is not None
        levels.append(quality(problem, choice, quick).levels[1])
    assert max(levels) <= searched.levels[1] * 1.02


def test_there_is_no_quick_placement_of_what_does_not_fit() -> None:
    problem = posed((100, 100), *({"id": name, "type": "partition", "size": 60} for name in "abc"))
    assert quick_placements(problem, highest_level(problem)) == []


def test_preferences_count_before_levels_and_levels_before_use() -> None:
    none = math.inf
    plain = Quality(0, (none, 100), 500, 0)
    assert is_better(plain, Quality(-1, (none, 900), 900, 0))
    assert is_better(Quality(0, (none, 200), 1, 0), plain)
    assert is_better(Quality(0, (none, 99.9), 501, 0), plain)
    assert is_better(Quality(0, (20, 10), 1, 0), Quality(0, (10, 20), 1, 0))
    assert not is_better(plain, plain)
    assert cannot_be_better(plain, (none, 100.5))
    assert not cannot_be_better(plain, (none, 200))
    assert not cannot_be_better(Quality(-1, (none, 100), 500, 0), (none, 100))
    assert not cannot_be_better(Quality(0, (none, 100), 500, 50), (none, 100))
