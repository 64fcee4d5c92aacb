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


def mistakes(schema: list[Plain], *disks: Plain, **facts: t.Any) -> str:
    with pytest.raises(InputError) as raised:
        Planner(schema).plan({"disks": list(disks), **facts})
    return str(raised.value)


def test_a_missing_fact_names_the_disks_and_what_to_ask_for() -> None:
    one, other = {"id": "sda", "size": 900_000, "transport": "sata"}, {"id": "sdb", "size": 900_000}
    schema = [{"id": "root", "type": "partition", "disks": "yaql=$.disks.where($.transport = sata)"}]
    planner = Planner(schema)
    for first, second in (("sda", "sdb"), ("x", "y")):
        with pytest.raises(InputError) as raised:
            planner.plan({"disks": [{**one, "id": first}, {**other, "id": second}]})
        assert f"(disks without it: {second}); $.get(transport) gives null for them" in str(raised.value)
    assert "disks without it" not in mistakes([{"id": "root", "type": "partition", "size": "yaql=$.nope"}], one)


@pytest.mark.parametrize(
    "expression",
    [
        "$.disks.nope()",
        "$.disks + 1",
        "$.disks[0] + $.disks",
        "$.disks.where($).nope()",
        "$.disks.select($.size) + {a => 1}",
        "$.disks[0].nope()",
    ],
)
def test_no_message_shows_where_an_object_lies_in_memory(expression: str) -> None:
    says = mistakes([{"id": "root", "type": "partition", "disks": f"yaql={expression}"}], {"id": "sda", "size": 900_000})
    assert "0x" not in says
    assert "_ListView" not in says


@pytest.mark.parametrize("facts", [{"transport": "dasd"}, {"table": "dasd"}, {"dev": "/dev/dasda"}])
def test_a_dasd_is_left_out_by_name(facts: Plain) -> None:
    dasd = {"id": "x", "size": 900_000, **facts}
    assert "x is a DASD of IBM Z" in mistakes([{"id": "root", "type": "partition"}], dasd)
    plan = Planner([{"id": "root", "type": "partition"}]).plan({"disks": [dasd, {"id": "sda", "size": 900_000}]})
    assert [(one["disk_id"], one["kinds"]) for one in plan["left_out_disks"]] == [("x", [])]


@pytest.mark.parametrize("firmware", ["prep", "PReP", "ofw", "s390x"])
def test_firmware_that_is_not_supported_is_refused_by_name(firmware: str) -> None:
    says = mistakes([{"id": "root", "type": "partition"}], {"id": "sda", "size": 900_000}, firmware=firmware)
    assert says.startswith("hardware.firmware: ")
    assert "not supported" in says


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("type", "prep"),
        ("partition_type", "prep"),
        ("partition_type", "9E1A2D38-C612-4316-AA26-8B49521E5A8B"),
        ("partition_type", "{9e1a2d38c6124316aa268b49521e5a8b}"),
    ],
)
def test_prep_partitions_are_refused_by_name(key: str, kind: str) -> None:
    says = mistakes([{"id": "boot", "type": "partition", key: kind}], {"id": "sda", "size": 900_000})
    assert says.startswith(f"schema[0].{key}: ")
    assert "PReP (POWER) are not supported" in says


@pytest.mark.parametrize("kind", ["9e1a2d38-c612-4316-aa26-8b49521e5a8b", "9E1A2D38-C612-4316-AA26-8B49521E5A8B", "0x41"])
def test_a_disk_with_a_prep_partition_is_left_out_by_name(kind: str) -> None:
    power = {"id": "x", "size": 900_000, "partitions": [{"number": 1, "name": "", "start": 1, "size": 8, "type": kind}]}
    assert "x has a PReP partition" in mistakes([{"id": "root", "type": "partition"}], power)
    plan = Planner([{"id": "root", "type": "partition"}]).plan({"disks": [power, {"id": "sda", "size": 900_000}]})
    assert [(one["disk_id"], one["kinds"]) for one in plan["left_out_disks"]] == [("x", [])]
