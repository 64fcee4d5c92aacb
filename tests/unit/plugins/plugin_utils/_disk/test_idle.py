# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks on which a profile puts nothing, and what would use them; on whole machines they are in schema/test_profile_matrix.py."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.text import summary
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import parse_idle

Plain = dict[str, t.Any]

SYSTEM: Plain = {"id": "system", "type": "ssd", "size": 40_000, "transport": "sata"}
SCHEMA: tuple[Plain, ...] = ({"id": "data", "type": "partition", "disks": ["system"], "mount": "/srv/more"},)


def hdds(count: int, **facts: t.Any) -> list[Plain]:
    return [{"id": f"h{at:02}", "type": "hdd", "size": 900_000, "transport": "sas", **facts} for at in range(count)]


def overrides(*disks: Plain, schema: t.Sequence[Plain] = SCHEMA) -> list[Plain]:
    return [one["override"] for one in Planner(schema, idle="").plan({"disks": [SYSTEM, *disks]})["idle_disks"]]


@pytest.mark.parametrize(
    ("disks", "expected"),
    [
        (hdds(1), {"type": "partition"}),
        (hdds(2), {"type": "raid", "level": "raid1", "spares": 0}),
        (hdds(3), {"type": "raid", "level": "raid1", "spares": 1}),
        (hdds(5, type="ssd"), {"type": "raid", "level": "raid10", "legs": 4, "spares": 1}),
        (hdds(16), {"type": "raid", "level": "raid6", "legs": "all"}),
        (hdds(17), {"type": "partition", "per_disk": True}),
    ],
)
def test_what_is_made_of_disks_follows_from_what_they_are_and_how_many(disks: list[Plain], expected: Plain) -> None:
    (override,) = overrides(*disks)
    rest = {"id": "more2", "disks": "yaql=$.disks.dataDisks()", "mount": "/srv/more2", "fs_type": "xfs"}
    # The schema has a space called data and a mount point called more.
    assert override == {**rest, **expected}


def test_what_cannot_be_told_from_other_disks_is_named() -> None:
    schema = [{"id": "all", "type": "partition", "disks": ["h00"]}]
    assert overrides(*hdds(3), schema=schema)[0]["disks"] == ["h01", "h02"]


def test_machines_alike_share_what_is_found_but_names() -> None:
    schema = [{"id": "all", "type": "partition", "disks": "yaql=[$.disks.first()]"}]
    planner = Planner(schema, idle="")
    machines = [[{**disk, "id": f"{host}{disk['id']}"} for disk in hdds(3)] for host in "ab"]
    found = [planner.plan({"disks": disks})["idle_disks"] for disks in machines]
    assert found == [Planner(schema, idle="").plan({"disks": disks})["idle_disks"] for disks in machines]
    assert [one["override"]["disks"] for (one,) in found] == [["ah01", "ah02"], ["bh01", "bh02"]]


def test_disks_without_a_type_are_hard_disks_to_expressions() -> None:
    planner = Planner([{"id": "all", "type": "partition", "disks": "yaql=[$.disks.first()]"}], idle="")
    typed, plain = ([{"id": f"d{at}", "size": size, **kind} for at, size in enumerate((70_000, 900_000))] for kind in ({"type": ""}, {}))
    found = [planner.plan({"disks": disks})["idle_disks"][0]["override"]["disks"] for disks in (typed, plain)]
    assert found == ["yaql=$.disks.dataDisks()", "yaql=$.disks.dataDisks()"]


def test_disks_of_no_use_are_told_without_an_override() -> None:
    hardware = {"disks": [SYSTEM, *hdds(1, size=1023, dev="/dev/sdb")]}
    plan = Planner(SCHEMA, idle="").plan(hardware)
    assert plan["idle_disks"] == [{"disk_ids": ["h00"], "size": 1023, "remark": "", "override": None}]
    assert " ".join(summary(plan, hardware).split()).endswith("- sdb (1023 MiB SAS HDD) stays idle")


def test_only_plans_of_a_profile_speak_of_idle_disks() -> None:
    assert "idle_disks" not in Planner(SCHEMA).plan({"disks": [SYSTEM, *hdds(2)]})
    assert parse_idle(None) == ""
    assert parse_idle("Use\n  them.\n") == "Use them."
    with pytest.raises(InputError, match="idle: is a list; must be text"):
        parse_idle(["use them"])
