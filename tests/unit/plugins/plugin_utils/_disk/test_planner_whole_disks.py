# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Spaces of the type disk: disks that are left whole, and that nothing else uses."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.fair.solve import allocate_fair
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.text import summary
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.hardware import parse_hardware
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.parse import parse_schema
from ansible_collections.bareon.allocator.tests.support.disk.planned import hardware, make_plan
from ansible_collections.bareon.allocator.tests.support.disk.rules import broken

Plain = dict[str, t.Any]

FACTS = hardware([("ssd", 48), ("ssd", 48), ("hdd", 120), ("hdd", 120)])
OSD = {"id": "osd", "type": "disk", "disks": "yaql=$.disks.where($.type = hdd)"}
ROOT = {"id": "root", "type": "partition", "size": 2000, "boot": True, "fs_type": "ext4", "mount": "/"}
HDDS = {disk["id"] for disk in FACTS["disks"] if disk["type"] == "hdd"}


def test_whole_disks_have_no_table_and_nothing_else_on_them() -> None:
    plan = make_plan([OSD, ROOT, {"id": "data", "type": "partitions"}, {"id": "rest", "type": "vg", "weight": 2}], FACTS)
    assert {disk["disk_id"] for disk in plan["whole_disks"]} == HDDS
    assert {disk["space_id"] for disk in plan["whole_disks"]} == {"osd"}
    assert not HDDS & {disk["disk_id"] for disk in plan["schema"]["parteds"]}
    for disk in plan["disks"]:
        if disk["disk_id"] in HDDS:
            assert disk["spaces"] == [{"space_id": "osd", "size": disk["size"]}]
            assert disk["unallocated"] == 0
    assert "osd" in summary(plan, FACTS)
    assert "whole_disks" not in make_plan([ROOT], FACTS)


def test_an_allocation_breaks_no_rule() -> None:
    facts = parse_hardware(FACTS)
    schema = parse_schema([OSD, ROOT, {"id": "rest", "type": "vg"}, {"id": "data", "type": "partitions"}], facts)
    assert broken(facts, schema, allocate_fair(facts, schema)) == []


def test_preferences_and_mirrors_pass_whole_disks_over() -> None:
    facts = hardware([("ssd", 48), ("hdd", 120), ("hdd", 120)])
    whole = {"id": "osd", "type": "disk", "disks": [facts["disks"][1]["id"]]}
    plan = make_plan([whole, {**ROOT, "mirror": "when_possible", "best_with_disks": "yaql=$.disks.where($.type = hdd)"}], facts)
    assert {disk["disk_id"] for disk in plan["schema"]["parteds"]} == {facts["disks"][2]["id"]}
    with pytest.raises(NoSolution):
        make_plan([whole, {**ROOT, "mirror": "required"}], facts)


def test_where_no_disk_is_left_there_is_no_plan_or_the_space_is_left_out() -> None:
    with pytest.raises(NoSolution, match="osd"):
        make_plan([ROOT, {**OSD, "disks": "yaql=$.disks.where($.type = tape)"}], FACTS)
    with pytest.raises(NoSolution, match="root"):
        make_plan([ROOT, {"id": "osd", "type": "disk"}], FACTS)
    plan = make_plan([ROOT, {**OSD, "disks": "yaql=$.disks.where($.type = tape)", "optional": True}], FACTS)
    assert [left["id"] for left in plan["left_out"]] == ["osd"]


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ([OSD, {**OSD, "id": "more"}], "schema[1].disks"),
        ([{**OSD, "size": 100}], "schema[0].size"),
        ([{**OSD, "fs_type": "xfs"}], "schema[0].fs_type"),
        ([{**OSD, "encrypt": True}], "schema[0].encrypt"),
        ([{**OSD, "keep_data": True}], "schema[0].keep_data"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(schema: list[Plain], place: str) -> None:
    with pytest.raises(InputError) as error:
        make_plan(schema, FACTS)
    assert place in {mistake.place for mistake in error.value.mistakes}


def test_what_is_kept_on_a_whole_disk_is_an_error() -> None:
    facts = copy.deepcopy(FACTS)
    facts["disks"][2] |= {"table": "gpt", "partitions": [{"number": 1, "name": "old", "start": 1, "size": 1000}], "empty": False}
    with pytest.raises(InputError, match=r"schema\[0\].disks"):
        Planner([OSD, ROOT], keep_existing=True).plan(facts)
    assert [says for says in Planner([OSD, ROOT]).plan(facts)["warnings"] if "not empty" in says and "whole" in says]


def test_the_objective_ordered_refuses_the_type() -> None:
    with pytest.raises(InputError):
        Planner([OSD, {"id": "root", "type": "lv", "size": 100}], Objective.ORDERED).plan(FACTS)


def test_volumes_of_a_group_that_is_left_out_are_left_out() -> None:
    group = {"id": "fast", "type": "vg", "contains": ["slots"], "optional": True, "disks": "yaql=$.disks.where($.type = tape)"}
    plan = make_plan([ROOT, group, {"id": "slots", "type": "lv", "size": 1000}], FACTS)
    assert [left["id"] for left in plan["left_out"]] == ["fast", "slots"]
    plan = make_plan([ROOT, {**group, "disks": "yaql=$.get(nothing)"}, {"id": "slots", "type": "lv", "size": 1000}], FACTS)
    assert [left["id"] for left in plan["left_out"]] == ["fast", "slots"]
