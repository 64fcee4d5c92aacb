# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans that leave room idle, as a search that came to its limits would: the last check moves what could be larger, or says so."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fair import last_check
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fair.last_check import checked
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fair.levels import Found
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fair.sizes import size_fairly
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.problem.formulate import formulate
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.problem.model import Placement, Problem, Sizes
from ansible_collections.bareon.allocator.tests.support.disk.build import hardware_of, schema_of

ONE = {"id": "one", "type": "partition", "min_size": 1000}
OTHER = {"id": "other", "type": "partition", "min_size": 1000}
MIRROR = {"id": "mirror", "type": "raid", "level": "raid1", "legs": 2, "min_size": 1000}
GROUP = ({"id": "group", "type": "vg", "contains": ["volume"], "max_pvs": 1}, {"id": "volume", "type": "lv", "min_size": 1000})


def problem_of(sizes: tuple[int, ...], *entries: dict) -> Problem:
    hardware = hardware_of(*sizes)
    return formulate(hardware, schema_of(hardware, *entries))


def sized(problem: Problem, *demands: tuple[int, ...], pvs: tuple[tuple[int, ...], ...] = ()) -> tuple[Found, Sizes]:
    placement = Placement(demands, pvs, ())
    sizes = size_fairly(problem, placement)
    assert sizes is not None
    return Found(placement), sizes


def test_a_partition_moves_to_the_disk_with_more_room() -> None:
    problem = problem_of((10_000, 50_000), ONE)
    found, sizes = checked(problem, *sized(problem, (0,)))
    assert found.placement.areas_of_demand == ((1,),)
    assert sizes.units == (49_998,)
    assert found.proven


def test_an_array_moves_to_disks_on_which_all_its_legs_are_larger() -> None:
    problem = problem_of((10_000, 50_000, 50_000), MIRROR)
    found, sizes = checked(problem, *sized(problem, (0, 1)))
    assert found.placement.areas_of_demand == ((1, 2),)
    assert sizes.units == (49_998,)


def test_a_group_moves_to_the_disk_with_more_room() -> None:
    problem = problem_of((10_000, 50_000), *GROUP)
    found, sizes = checked(problem, *sized(problem, (), (), pvs=((0,),)))
    assert found.placement.pvs == ((1,),)
    assert sizes.units[0] * 4 >= 49_000


def test_what_is_full_or_has_no_better_place_stays() -> None:
    problem = problem_of((10_000, 50_000), ONE, {**OTHER, "max_size": 9000})
    plan = sized(problem, (1,), (0,))
    assert checked(problem, *plan) == plan


def test_relations_hold_after_moves() -> None:
    problem = problem_of((10_000, 50_000), ONE, {**OTHER, "max_size": 9000, "apart_from": ["one"]})
    plan = sized(problem, (0,), (1,))
    assert checked(problem, *plan) == plan


def test_where_moves_find_no_end_the_level_is_named_as_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_check, "_MOST_MOVES", 0)
    problem = problem_of((10_000, 50_000), ONE)
    found, sizes = checked(problem, *sized(problem, (0,)))
    assert sizes.units == (9998,)
    assert not found.proven
    assert found.open_at == (0,)
    assert found.gap == pytest.approx(4.0, rel=0.01)


@pytest.mark.parametrize("weight", [1e5, 1e6])
def test_no_room_is_idle_beside_what_has_the_largest_weight(weight: float) -> None:
    kinds = {"p0": "partition", "p1": "partitions", "p2": "partition"}
    schema = [{"id": name, "type": kind, "weight": weight if name == "p2" else 0.001} for name, kind in kinds.items()]
    plan = Planner(schema).plan({"disks": [{"id": "d0", "size": 2_213_224}, {"id": "d1", "size": 2_808_163}]})
    assert [disk["unallocated"] for disk in plan["disks"]] == [0, 0]
