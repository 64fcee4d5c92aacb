# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the solvers are given: areas, demands, pools, boot partitions."""

from __future__ import annotations

from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import Disk
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.problem.areas import canonical_order
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.problem.formulate import formulate
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.problem.model import Area, GrowthOrder, Kind
from ansible_collections.bareon.allocator.tests.support.disk.build import hardware_of, schema_of


def test_disks_are_ordered_by_path_then_id_with_digits_as_numbers() -> None:
    disks = [Disk("b", 1, path="port-10"), Disk("a", 1, path="port-2"), Disk("sdb", 1), Disk("sda", 1)]
    assert canonical_order(disks) == [3, 2, 1, 0]


def test_a_disk_is_one_area_less_its_table_and_the_reserve() -> None:
    hardware = hardware_of(100, 50)
    schema = schema_of(hardware, {"id": "a", "type": "partition", "min_size": 1})
    assert formulate(hardware, schema, reserve=10).areas == (Area(0, 1, 88), Area(1, 1, 38))


def test_volumes_without_a_vg_lie_on_bare_disks() -> None:
    hardware = hardware_of(100)
    problem = formulate(hardware, schema_of(hardware, {"id": "a", "type": "lv", "min_size": 0}))
    assert problem.areas == (Area(0, 0, 100),)
    (pool,) = problem.pools
    assert (pool.metadata_size, pool.extent_size) == (0, 1)


def test_kept_data_cuts_a_disk_in_areas_and_the_reserve_comes_off_the_last() -> None:
    hardware = hardware_of(1000, existing={0: [("home", 300, 400)]})
    schema = schema_of(hardware, {"id": "home", "type": "partition", "keep_data": True}, {"id": "a", "type": "partition", "min_size": 1})
    problem = formulate(hardware, schema, reserve=100)
    assert problem.areas == (Area(0, 1, 299), Area(0, 700, 199))
    assert [(piece.start, piece.size) for piece in problem.kept] == [(300, 400)]
    assert [demand.name for demand in problem.demands] == ["a"]


def test_bounds_become_steps_that_keep_them() -> None:
    hardware = hardware_of(10_000, 10_000, 10_000)
    schema = schema_of(
        hardware,
        {"id": "g", "type": "vg", "contains": ["a", "b"]},
        {"id": "a", "type": "lv", "min_size": 10, "max_size": 21},
        {"id": "b", "type": "lv", "min_size": 10, "max_size": 11},
        {"id": "r", "type": "raid", "level": "raid5", "legs": 3, "min_size": 1001, "max_size": 2001},
    )
    steps = {demand.name: (demand.low, demand.high, demand.unit) for demand in formulate(hardware, schema).demands}
    assert steps["a"] == (3, 5, 4)
    # 11 MiB hold two extents only, but the minimum needs three.
    assert steps["b"] == (3, 3, 4)
    assert steps["r"] == (501, 1000, 2)


def test_one_per_disk_is_one_demand_for_every_disk() -> None:
    hardware = hardware_of(100, 100, 100)
    schema = schema_of(hardware, {"id": "osd", "type": "partition", "per_disk": True, "min_size": 5, "disks": ["d0", "d2"]})
    demands = formulate(hardware, schema).demands
    assert [(demand.kind, demand.areas, demand.lo) for demand in demands] == [(Kind.SINGLE, (0,), 5), (Kind.SINGLE, (2,), 5)]


def test_turns() -> None:
    hardware = hardware_of(100, 100)
    schema = schema_of(
        hardware,
        {"id": "g", "type": "vg", "contains": ["a"]},
        {"id": "a", "type": "lv"},
        {"id": "liked", "type": "partition", "best_with_disks": ["d1"]},
        {"id": "fixed", "type": "partition", "weight": 0},
    )
    turns = {(demand.name, demand.space): demand.growth_order for demand in formulate(hardware, schema).demands}
    assert turns == {
        ("a", 1): GrowthOrder.NORMAL,
        ("liked", 2): GrowthOrder.PREFERRED,
        ("fixed", 3): GrowthOrder.NEVER,
        ("g", None): GrowthOrder.LEFTOVER,
    }


def test_companions_follow_what_boots() -> None:
    hardware = hardware_of(1000, 1000)
    esp = {"id": "esp", "type": "esp", "size": 100}
    root = {"id": "root", "type": "partition", "min_size": 1}
    (companion,) = formulate(hardware, schema_of(hardware, {**root, "boot": True}, esp)).boot_partitions
    assert companion.demands == (0,)
    assert companion.sizes == ((0, 100), (1, 100))
    alone = formulate(hardware, schema_of(hardware, root, esp))
    assert alone.boot_partitions == ()
    assert [demand.name for demand in alone.demands] == ["root", "esp"]
