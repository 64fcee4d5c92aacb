# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Questions about placements, and what is kept from one to the next."""

from __future__ import annotations

import dataclasses
import random

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.place.bounds import Bounds
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.place.search import Search
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.problem.formulate import formulate
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.problem.model import Problem
from ansible_collections.bareon.allocator.tests.support.disk.build import hardware_of, schema_of


def problem(*sizes: int) -> Problem:
    hardware = hardware_of(*sizes)
    entries = [{"id": f"p{at}", "type": "partition", "min_size": 100, "max_size": 5000 + at} for at in range(3)]
    entries += [{"id": "m", "type": "raid", "level": "raid1", "legs": 2, "min_size": 100}]
    entries += [{"id": "g", "type": "vg", "contains": ["l"], "disks": ["d0", "d1"]}, {"id": "l", "type": "lv", "min_size": 100}]
    return formulate(hardware, schema_of(hardware, *entries))


def with_more_room(small: Problem, more: int) -> Problem:
    return dataclasses.replace(small, areas=tuple(dataclasses.replace(area, size=area.size + more) for area in small.areas))


@pytest.mark.parametrize("seed", range(20))
def test_proofs_with_more_room_are_those_of_the_larger_machine(seed: int) -> None:
    chance = random.Random(seed)
    small = problem(*(chance.randint(2000, 9000) for _disk in range(3)))
    relaxed = with_more_room(small, chance.randint(1, 3000))
    kept, new = Bounds(small).with_room(relaxed), Bounds(relaxed)
    for _question in range(20):
        units = [chance.randint(demand.low, 4000) for demand in small.demands]
        assert kept.overfull(units) == new.overfull(units)
        assert [kept.highest(at) for at in range(len(units))] == [new.highest(at) for at in range(len(units))]


def test_what_is_refuted_on_a_small_machine_is_not_on_one_with_room() -> None:
    small = problem(4000, 4000, 4000)
    units = [3000 if demand.legs == 1 and demand.space is not None and demand.pool is None else demand.low for demand in small.demands]
    search = Search(small)
    assert search.refuted([2 * own for own in units], small)
    assert not search.refuted([2 * own for own in units], with_more_room(small, 9000))
    # The search itself still speaks of the small machine.
    assert search.ask([2 * own for own in units]).proven
