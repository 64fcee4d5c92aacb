# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts are large enough for what lies on each, boot partitions are where something boots, nothing is kept for PVs that are not there."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner

Plain = dict[str, t.Any]


def machine(*sizes: int, **facts: t.Any) -> Plain:
    return {"ram": 4096, "disks": [{"id": f"d{at}", "type": "hdd", "size": size} for at, size in enumerate(sizes)], **facts}


def plan_of(schema: list[Plain], facts: Plain) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Return the MiB of every space by disk, and the warnings."""
    plan = Planner(schema).plan(facts)
    on: dict[str, dict[str, int]] = {}
    for disk in plan["disks"]:
        for space in disk["spaces"]:
            on.setdefault(space["space_id"], {})[disk["disk_id"]] = space["size"]
    return on, plan["warnings"]


def test_what_is_cut_is_not_cut_into_slivers() -> None:
    """Of 1771 MiB one would lie on the first disk, beside a partition, without room for the header of LUKS."""
    schema = [
        {"id": "scratch", "type": "partitions", "size": 1771, "encrypt": True},
        {"id": "os", "type": "partition", "min_size": 33},
        {"id": "data", "type": "partition", "best_with_disks": ["d0", "d2"]},
        {"id": "bulk", "type": "vg", "contains": ["volume"], "min_size": 149100},
        {"id": "volume", "type": "lv"},
    ]
    on, warnings = plan_of(schema, machine(457862, 7880, 457862, 457862))
    assert sum(on["scratch"].values()) == 1771
    assert min(on["scratch"].values()) >= 17
    assert warnings == []


def test_disks_that_are_too_small_for_a_file_system_get_none() -> None:
    on, _warnings = plan_of([{"id": "data", "type": "partitions", "fs_type": "xfs", "min_size": 1000}], machine(200, 5000))
    assert on == {"data": {"d1": 4998}}


def test_a_sliver_that_is_needed_grows_at_the_cost_of_others() -> None:
    """The minimum takes all of one disk and a little of the other, where what else is there could do with less."""
    schema = [
        {"id": "data", "type": "partitions", "fs_type": "xfs", "min_size": 5010},
        {"id": "other", "type": "partition", "disks": ["d1"], "min_size": 100},
    ]
    on, warnings = plan_of(schema, machine(5002, 5002))
    assert on["data"]["d0"] == 5000
    assert on["data"]["d1"] >= 300
    assert on["other"]["d1"] + on["data"]["d1"] == 5000
    assert warnings == []


def test_a_sliver_that_nothing_helps_is_told() -> None:
    schema = [
        {"id": "data", "type": "partitions", "fs_type": "xfs", "min_size": 5010},
        {"id": "other", "type": "partition", "disks": ["d1"], "min_size": 4900},
    ]
    _on, (warning,) = plan_of(schema, machine(5002, 5002))
    assert re.search(r"data: its partition on d1 has \d+ MiB, of the 300 MiB", warning)


def test_the_objective_ordered_tells_of_slivers() -> None:
    schema = [{"id": "first", "type": "partition", "size": 4900}, {"id": "data", "type": "partitions", "fs_type": "xfs", "size": 1000}]
    (warning,) = Planner(schema, Objective.ORDERED).plan(machine(5002, 5002))["warnings"]
    assert "data: its partition on d0 has 100 MiB, of the 300 MiB" in warning


def test_boot_partitions_are_where_something_boots() -> None:
    schema = [
        {"id": "data", "type": "partition", "min_size": 2048, "best_with_disks": ["d1", "d2"]},
        {"id": "bulk", "type": "vg", "contains": [], "disks": ["d2"], "boot": True},
        {"id": "array", "type": "raid", "level": "raid0", "size": 41968, "disks": ["d1", "d2"], "legs": 2},
        {"id": "apart", "type": "partitions", "size": 256, "boot": True, "disks": ["d0", "d3"]},
        {"id": "os", "type": "vg", "contains": ["root", "swap"], "boot": True},
        {"id": "root", "type": "lv", "max_size": 7230},
        {"id": "swap", "type": "lv", "weight": 0.5},
        {"id": "esp", "type": "esp", "min_size": 100},
    ]
    on, _warnings = plan_of(schema, machine(47847, 953869, 47847, 47847, firmware="uefi"))
    assert set(on["esp"]) == {*on["bulk"], *on["apart"], *on["os"]}


def test_what_was_kept_for_pvs_is_given_back_where_there_are_none() -> None:
    schema = [
        {"id": "os", "type": "vg", "contains": ["root", "rest"], "encrypt": True},
        {"id": "root", "type": "lv", "size": 422368},
        {"id": "rest", "type": "lv", "weight": 0},
        {"id": "array", "type": "raid", "level": "raid1", "legs": "all"},
    ]
    on, _warnings = plan_of(schema, machine(589, 589, 589, 953869, 953869, 18500))
    assert set(on["array"].values()) == {587}


def test_what_one_disk_holds_is_not_cut() -> None:
    schema = [
        {"id": "a", "type": "partition", "disks": ["d0"], "max_size": 50000},
        {"id": "b", "type": "partition", "disks": ["d1"], "max_size": 50000},
        {"id": "group", "type": "vg", "contains": ["lv"], "max_size": 60000},
        {"id": "lv", "type": "lv"},
        {"id": "more", "type": "partitions", "max_size": 70000},
    ]
    on, _warnings = plan_of(schema, machine(100000, 100000, 200000))
    assert [len(on[name]) for name in ("group", "more")] == [1, 1]


def test_nothing_is_cut_into_parts_that_are_not_worth_a_partition() -> None:
    schema = [
        {"id": "a", "type": "partition", "disks": ["d0"], "size": 49997},
        {"id": "p", "type": "partitions"},
    ]
    on, _warnings = plan_of(schema, machine(50000, 60000))
    assert on["p"] == {"d1": 59998}
