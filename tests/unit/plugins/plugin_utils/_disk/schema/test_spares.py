# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks that stand by for those of an array: which they are, what they take, and what is said and drawn of them."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.html import FleetHost, fleet_page
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.picture import picture
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.svg import svg
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.text import planned_layout, summary
from ansible_collections.bareon.allocator.tests.support.disk.planned import make_plan

Plain = dict[str, t.Any]

ARRAY: Plain = {"id": "data", "type": "raid", "level": "raid5", "spares": 1, "min_size": 1000}


def plan(disks: int, *schema: Plain, **facts: t.Any) -> Plain:
    return make_plan(list(schema), {"disks": [{"id": name, "size": 50_000, **facts} for name in "abcdef"[:disks]]})


def array_of(planned: Plain) -> Plain:
    (array,) = planned["schema"]["mds"]
    return t.cast("Plain", array)


def test_a_spare_is_as_large_as_a_leg_and_holds_nothing() -> None:
    volumes = [{"id": "bulk", "type": "vg", "contains": ["data", "files"]}, {"id": "files", "type": "lv"}]
    planned = plan(4, ARRAY, *volumes)
    assert (array_of(planned)["devices"], array_of(planned)["spares"]) == (["/dev/a1", "/dev/b1", "/dev/c1"], ["/dev/d1"])
    sizes = {part["size"] for disk in planned["disks"] for part in disk["spaces"]}
    assert sizes == {49_998}
    # Of four disks two hold data: one is parity, one stands by.
    assert 0.99 * 2 * 49_998 < planned["schema"]["lvs"][0]["size"] < 2 * 49_998


def test_the_disks_that_are_liked_least_stand_by() -> None:
    planned = plan(4, {**ARRAY, "best_with_disks": ["b", "c", "d"]})
    assert array_of(planned)["spares"] == ["/dev/a1"]


def test_all_disks_but_those_that_stand_by() -> None:
    planned = plan(6, {**ARRAY, "legs": "all", "spares": 2})
    assert (len(array_of(planned)["devices"]), len(array_of(planned)["spares"])) == (4, 2)
    ten = plan(6, {**ARRAY, "level": "raid10", "legs": "all"})
    assert (len(array_of(ten)["devices"]), len(array_of(ten)["spares"])) == (4, 1)


def test_disks_alike_are_as_many_as_legs_and_spares() -> None:
    kinds = ["nvme", "nvme", "nvme", "sata", "sata", "sata", "sata"]
    disks = [{"id": f"{kind}{at}", "size": 50_000 + 40_000 * (kind == "nvme"), "transport": kind} for at, kind in enumerate(kinds)]
    planned = make_plan([{**ARRAY, "alike": True}], {"disks": disks})
    assert {disk["disk_id"] for disk in planned["disks"] if disk["spaces"]} == {"sata3", "sata4", "sata5", "sata6"}


def test_too_few_disks_are_told_with_those_that_stand_by() -> None:
    with pytest.raises(NoSolution) as caught:
        plan(3, ARRAY)
    assert str(caught.value) == "No plan: data needs 4 disks, 1 of them as spares, and may use 3"
    assert caught.value.conflict["remedies"] == ["plan data with spares: 0", "add 1 disk like a"]


def test_what_makes_no_sense_is_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        plan(
            4,
            {**ARRAY, "level": "raid0"},
            {"id": "p", "type": "partition", "spares": 1},
            {**ARRAY, "id": "minus", "spares": -1},
            {**ARRAY, "id": "all", "legs": "all", "spares": 2},
        )
    assert {mistake.place: mistake.says for mistake in caught.value.mistakes} == {
        "schema[0].spares": "raid0 does not survive the loss of a disk, so a spare is of no use; leave spares out",
        "schema[1].spares": "makes no sense for the type partition; it is for raid, zpool",
        "schema[2].spares": "is -1; must be a whole number, 0 or more",
        "schema[3].legs": "all is 2 here without 2 spares; raid5 needs 3 disks or more",
    }


def test_pictures_and_tables_show_who_stands_by() -> None:
    volumes = [{"id": "bulk", "type": "vg", "contains": ["data", "files"]}, {"id": "files", "type": "lv"}]
    planned = plan(4, ARRAY, *volumes)
    lines = [" ".join(line.split()) for line in summary(planned).splitlines()]
    assert "└─ data 48.8 GiB 100.0% raid5, 3 disks" in lines
    assert "└─ data 48.8 GiB 100.0% spare of a raid5" in lines
    assert "raid5 data of 3 with 1 spare" in planned_layout(planned)
    drawn = picture(planned, schema=[ARRAY, *volumes])
    assert [[segment.spare for segment in disk.segments] for disk in drawn.disks] == [[False], [False], [False], [True]]
    assert [bool(disk.segments[0].slices) for disk in drawn.disks] == [True, True, True, False]
    array = drawn.by_id()["data"]
    assert (array.size, array.standing_by) == (2 * 49_998, ("d",))
    assert "with one spare disk" in array.reasons
    for drawing in (svg(planned), fleet_page([FleetHost("host", planned)])):
        assert "48.8 GiB as a spare on d, 100.0 %" in drawing
    assert ">data, spare<" in svg(planned)


def test_what_is_kept_may_have_no_spare_yet() -> None:
    there = {"partitions": [{"name": "data", "number": 1, "start": 1, "size": 9000}]}
    disks = [{"id": name, "size": 50_000, **there} for name in "ab"] + [{"id": "c", "size": 50_000}]
    planned = make_plan([{**ARRAY, "level": "raid1", "keep_data": True}], {"disks": disks})
    assert (array_of(planned)["devices"], array_of(planned)["spares"]) == (["/dev/a1", "/dev/b1"], [])
