# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Extents of a size that somebody wants: what volumes come to, and what goes to the host."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Mistakes, NoSolution
from ansible_collections.bareon.allocator.plugins.module_utils._schema.static import SchemaMistakes, parse_static_schema
from ansible_collections.bareon.allocator.plugins.module_utils._steps.lvm import CreateVolumeGroup
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.planned_groups import planned_groups
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.tests.support.disk.planned import make_plan

Plain = dict[str, t.Any]

MIB = 1024**2
GROUP: Plain = {"id": "os", "type": "vg", "contains": ["root", "var"], "extent_size": "32 MiB"}
ROOT: Plain = {"id": "root", "type": "lv", "size": 1000}
VAR: Plain = {"id": "var", "type": "lv"}


def plan(size: int, *schema: Plain) -> Plain:
    return make_plan(list(schema), {"disks": [{"id": "a", "size": size}]})


def test_volumes_are_multiples_of_the_extent() -> None:
    planned = plan(10_003, GROUP, ROOT, VAR)
    # 10003 less the table and the head of the PV are 312 extents of 32 MiB, and 16 MiB that nobody can use.
    assert [volume["size"] for volume in planned["schema"]["lvs"]] == [32 * 32, (312 - 32) * 32]
    assert planned["schema"]["vgs"][0]["extent_size"] == 32
    assert "extent_size" not in plan(10_003, {**GROUP, "extent_size": 4}, ROOT, VAR)["schema"]["vgs"][0]


def test_hosts_make_such_a_group() -> None:
    (group,) = parse_static_schema(plan(10_003, GROUP, ROOT, VAR)["schema"]).groups
    assert group.extent == 32 * MIB
    assert CreateVolumeGroup("os", ("/dev/a1",), group.extent).says == "create the volume group os on /dev/a1, with extents of 32 MiB"
    assert CreateVolumeGroup("os", ("/dev/a1",)).says == "create the volume group os on /dev/a1"


def test_what_is_left_of_a_group_counts_in_its_extents() -> None:
    mistakes = Mistakes()
    (group,) = planned_groups(plan(10_003, GROUP, ROOT, {**VAR, "size": 3200}), mistakes)
    mistakes.check()
    assert group.free == (312 - 32 - 100) * 32


def test_a_conflict_counts_in_extents() -> None:
    with pytest.raises(NoSolution, match=r"disk a holds 512 MiB in extents \(998 MiB without its partition table\)"):
        plan(1000, {**GROUP, "extent_size": 512}, {**ROOT, "size": 100}, {**VAR, "min_size": 1})


def test_mistakes_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        plan(1000, {**GROUP, "extent_size": "3 MiB"}, {**ROOT, "extent_size": 4}, VAR, {"id": "x", "type": "vg", "extent_size": "5 %"})
    assert {mistake.place: mistake.says for mistake in caught.value.mistakes} == {
        "schema[0].extent_size": "is '3 MiB'; must be a power of two from 1 MiB to 16 GiB, such as 32 MiB",
        "schema[1].extent_size": "makes no sense for the type lv; it is for vg",
        "schema[3].extent_size": "is '5 %'; must be a power of two from 1 MiB to 16 GiB, such as 32 MiB",
    }
    planned = plan(10_003, GROUP, ROOT, VAR)
    planned["schema"]["vgs"][0]["extent_size"] = 24
    with pytest.raises(SchemaMistakes, match=r"vgs\[0\].extent_size: must be a power of two from 1 to 16384 MiB, not 24"):
        parse_static_schema(planned["schema"])


def test_the_objective_ordered_does_not_know_it() -> None:
    with pytest.raises(InputError, match=r"schema\[0\].extent_size: the objective ordered does not support it"):
        Planner([GROUP, ROOT, VAR], Objective.ORDERED).plan({"disks": [{"id": "a", "size": 10_003}]})


def test_a_maximum_between_two_extents_gives_way_to_the_minimum() -> None:
    """Whatever else lies beside the group, so that rules or programs place it."""
    group = {"id": "os", "type": "vg", "contains": ["root"], "max_pvs": 1, "min_size": 73, "max_size": 73, "extent_size": 8}
    data = {"id": "data", "type": "vg", "contains": [], "max_pvs": 1, "min_size": 153}
    beside = [data, {"id": "scratch", "type": "partition", "size": 46}]
    planned = plan(805, *beside, group, {"id": "root", "type": "lv", "min_size": 1})
    assert [volume["size"] for volume in planned["schema"]["lvs"]] == [80]
