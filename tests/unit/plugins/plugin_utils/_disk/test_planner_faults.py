# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What goes wrong for one machine stays with it, and profiles plan facts of id and size alone."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk import planner as planning
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES, read_profile

Plain = dict[str, t.Any]
GOOD = {"disks": [{"id": "sda", "size": 900_000}, {"id": "sdb", "size": 900_000}]}


def test_a_fault_of_the_planner_is_that_of_one_host(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = planning.fingerprint

    def faulty(hardware: t.Any) -> str:
        return str(1 // 0) if hardware.ram == 13 else whole(hardware)

    monkeypatch.setattr(planning, "fingerprint", faulty)
    fleet = Planner([{"id": "root", "type": "partition"}]).plan_fleet({"a": GOOD, "b": {**GOOD, "ram": 13}, "c": GOOD})
    assert [*fleet.plans] == ["a", "c"]
    assert "a fault of the planner (ZeroDivisionError in test_planner_faults.py:" in str(fleet.failures["b"])


@pytest.mark.parametrize(
    "bad",
    [
        None,
        [],
        {"disks": []},
        {"disks": [{"id": "sda"}]},
        {"disks": [{"id": "sda", "size": -1}]},
        {"disks": [{"id": "sda", "size": 10, "drive": 3}]},
        {"disks": [{"id": "sda", "size": 10, "partitions": [3]}]},
        {"disks": [{"id": "sda", "size": 900_000, "type": "hdd"}]},
    ],
)
@pytest.mark.parametrize(
    "schema",
    [
        [{"id": "tank", "type": "zpool", "vdev": "raidz", "legs": "all", "size": "10 GiB"}],
        [{"id": "tank", "type": "zpool", "vdev": "raidz1", "legs": "all", "max_size": "10 GiB"}],
        [{"id": "data", "type": "raid", "level": "raid1", "legs": "all", "disks": 'yaql=$.disks.where($.type = "hdd")'}],
        [{"id": "data", "type": "btrfs", "level": "raid10", "legs": "all"}],
        [{"id": "data", "type": "partition", "per_disk": True, "min_size": "yaql=$.ram / 0"}],
    ],
)
def test_one_hosts_facts_keep_no_other_from_its_plan(schema: list[Plain], bad: t.Any) -> None:
    good = {"disks": [{"id": f"sd{letter}", "size": 900_000, "type": "hdd"} for letter in "abcd"], "ram": 1}
    fleet = Planner(schema).plan_fleet({"good": good, "bad": bad, "better": good})
    assert {*fleet.plans, *fleet.failures} == {"good", "bad", "better"}
    assert ("good" in fleet.plans) == ("better" in fleet.plans)
    for error in fleet.failures.values():
        assert isinstance(error, (InputError, NoSolution))
        assert "fault of the planner" not in str(error)


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.yml")), ids=lambda path: path.stem)
def test_every_profile_plans_facts_of_id_and_size_alone(path: t.Any) -> None:
    profile = read_profile(path)
    plan = Planner(profile["schema"]).plan({"disks": [{"id": f"sd{letter}", "size": 900_000} for letter in "abcd"]})
    assert any(disk["spaces"] for disk in plan["disks"])
