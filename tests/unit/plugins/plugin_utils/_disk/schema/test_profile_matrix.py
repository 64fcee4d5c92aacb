# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds of every profile on every machine: mirrors where there are twins, no mixtures, no unfit disk, nothing untold."""

from __future__ import annotations

import typing as t

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.render.text import summary
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES, load_profile, merge
from ansible_collections.bareon.allocator.tests.support.disk.machines import MACHINES
from ansible_collections.bareon.allocator.tests.support.disk.matrix import FIRMWARE, PAGE, Cell, cell, cells, page
from ansible_collections.bareon.allocator.tests.support.disk.planned import profiles
from ansible_collections.bareon.allocator.tests.support.house.terminal import too_wide

Plain = t.Mapping[str, t.Any]

SCREEN = 50
"""Lines of an editor on a laptop."""
ALMOST_EQUAL = 1.02


def planned(profile: str) -> list[Cell]:
    return [found for found in (cell(profile, machine) for machine in MACHINES) if found.plan is not None]


def kind(disk: Plain) -> tuple[str, str, int]:
    return disk["transport"], disk["type"], disk["logical_block"]


def twins(one: Plain, other: Plain) -> bool:
    small, large = sorted((one["size"], other["size"]))
    return one["id"] != other["id"] and kind(one) == kind(other) and large <= small * ALMOST_EQUAL


def qualifies(disk: Plain) -> bool:
    fixed = not (disk["removable"] or disk["read_only"] or disk["zoned"] or disk["in_use"])
    path = any(holder["type"] == "mpath" for holder in disk.get("holders", ())) and not disk["multipath"]
    return fixed and not path and disk["transport"] not in {"usb", "iscsi", "fc"}


def test_there_are_machines_of_all_shapes() -> None:
    assert len(MACHINES) >= 17
    assert all(planned(profile) for profile in profiles())


@pytest.mark.parametrize("profile", profiles())
def test_a_system_with_a_twin_is_mirrored_with_what_starts_it(profile: str) -> None:
    for found in planned(profile):
        where = found.system()
        disks = [found.facts(disk_id) for disk_id in set().union(*where.values())]
        others = [disk for disk in found.machine.hardware["disks"] if qualifies(disk)]
        has_twin = any(twins(disk, other) for disk in disks for other in others)
        told = found.machine.about
        assert all(len(on) == (2 if has_twin or profile == "software-raid-boot" else 1) for on in where.values()), told
        assert len(disks) == len(where["boot"]), told
        assert where["boot"] <= found.on(*FIRMWARE[found.machine.hardware["firmware"]]), told


@pytest.mark.parametrize("profile", profiles())
def test_no_array_and_no_group_mixes_kinds_and_no_disk_is_used_that_does_not_qualify(profile: str) -> None:
    for found in planned(profile):
        assert found.plan is not None
        static = found.plan["schema"]
        for together in (*(array["space_id"] for array in static["mds"]), *(group["space_id"] for group in static["vgs"])):
            assert len({kind(found.facts(disk_id)) for disk_id in found.on(together)}) <= 1, (found.machine.about, together)
        assert all(qualifies(found.facts(disk["disk_id"])) for disk in found.plan["disks"]), found.machine.about
        left_out = {disk["disk_id"] for disk in found.plan["left_out_disks"]}
        assert left_out == {disk["id"] for disk in found.machine.hardware["disks"] if not qualifies(disk)}


@pytest.mark.parametrize("profile", profiles())
def test_idle_disks_are_told_with_the_override_that_uses_them(profile: str) -> None:
    schema = load_profile(PROFILES / f"{profile}.yml")
    planners: dict[str, Planner] = {}
    for found in planned(profile):
        assert found.plan is not None
        idle = found.plan["idle_disks"]
        assert {disk for disks in idle for disk in disks["disk_ids"]} == {
            disk["disk_id"] for disk in found.plan["disks"] if not disk["spaces"]
        }
        if not idle:
            continue
        overrides = [disks["override"] for disks in idle]
        again = planners.setdefault(str(overrides), Planner(merge(schema, overrides))).plan(found.machine.hardware)
        for disks, override in zip(idle, overrides, strict=True):
            using = {disk["disk_id"] for disk in again["disks"] if override["id"] in {space["space_id"] for space in disk["spaces"]}}
            assert using == set(disks["disk_ids"]), (found.machine.about, override)
        before = {disk["disk_id"]: disk["spaces"] for disk in found.plan["disks"] if disk["spaces"]}
        assert {disk["disk_id"]: disk["spaces"] for disk in again["disks"] if disk["disk_id"] in before} == before


def test_what_is_told_can_be_copied_into_overrides() -> None:
    for machine in ("jbod-60", "hci", "optane", "two-unlike"):
        found = cell("general", machine)
        assert found.plan is not None
        text = summary(found.plan, found.machine.hardware)
        block = next(block for block in text.split("\n\n") if "stay idle" in block or "stays idle" in block)
        assert yaml.safe_load("\n".join(line for line in block.splitlines() if line.startswith("    "))) == [
            {key: value for key, value in disks["override"].items() if value != 0} for disks in found.plan["idle_disks"]
        ]


def test_every_plan_fits_a_terminal() -> None:
    plans = [found for found in cells() if found.plan is not None]
    assert plans
    assert [line for found in plans for line in too_wide(summary(found.plan, found.machine.hardware))] == []


def test_general_on_sixty_disks_says_what_to_choose_instead() -> None:
    found = cell("general", "jbod-60")
    text = " ".join(summary(found.plan or {}, found.machine.hardware).split())
    assert "- 60 disks (sdc to sdbj, 14.6 TiB SAS HDD each) stay idle; this override uses them:" in text
    assert "choose its profile instead" in text
    named = [profile for profile in profiles() if profile in text.split("choose its profile instead", 1)[1]]
    assert {"database", "kvm-host", "hadoop-jbod", "ceph-osd"} <= set(named)


def test_a_machine_that_a_profile_does_not_fit_is_refused_with_the_reason() -> None:
    for found in cells():
        assert found.plan is not None or found.refused.startswith(("No plan", "no disk of this machine may be used")), found.refused


@pytest.mark.parametrize("profile", profiles())
def test_a_profile_is_a_screen_long_and_copies_no_query(profile: str) -> None:
    text = (PROFILES / f"{profile}.yml").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= SCREEN
    queries = [
        str(value) for space in load_profile(PROFILES / f"{profile}.yml") for value in space.values() if str(value).startswith("yaql=")
    ]
    assert not [query for query in queries if len(query) > 200]


def test_the_page_is_what_the_planner_says() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "run make guide"
