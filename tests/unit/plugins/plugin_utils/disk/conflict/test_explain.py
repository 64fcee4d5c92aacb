# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why there is no plan."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.conflict.explain import (
    explain,
    least_to_give_up,
    least_to_grow,
    minimal_conflict,
    obvious_conflict,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.model import Hardware
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.problem.formulate import formulate
from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.problem.model import Problem
from ansible_collections.bareon.allocator.tests.support.disk.build import CASES, case_models, hardware_of, schema_of

INFEASIBLE = {case["id"]: case for case in CASES if not case["expect"]["feasible"]}


def posed(hardware: Hardware, *entries: dict) -> Problem:
    return formulate(hardware, schema_of(hardware, *entries))


def partition(name: str, size: int, **keys: object) -> dict:
    return {"id": name, "type": "partition", "size": size, **keys}


def constraints(problem: Problem) -> list[str]:
    names, minimal = minimal_conflict(problem)
    assert minimal
    return names


@pytest.mark.parametrize("name", INFEASIBLE)
def test_known_cases(name: str) -> None:
    case = INFEASIBLE[name]
    reference = case["expect"]["reference"]
    problem = formulate(*case_models(case))
    assert sorted(constraints(problem)) in [sorted(names) for names in reference["all_minimal_conflicts"]]
    given_up = least_to_give_up(problem)
    assert (None if given_up is None else sum(given_up.values())) == reference["short_MiB"]
    grown = least_to_grow(problem)
    if reference.get("or_grow_disks"):
        assert grown is not None
        assert sum(grown.values()) == sum(reference["or_grow_disks"].values())
    else:
        assert not grown


def test_what_has_a_plan_has_no_conflict() -> None:
    problem = posed(hardware_of(1000), partition("a", 998))
    assert minimal_conflict(problem) == ([], True)
    assert obvious_conflict(problem) == set()
    assert least_to_give_up(problem) == {}
    assert least_to_grow(problem) == {}


def test_what_does_not_matter_is_left_out() -> None:
    hardware = hardware_of(1000, 5000)
    problem = posed(
        hardware, partition("small", 10), partition("a", 600, disks=["d0"]), partition("b", 600, disks=["d0"]), partition("c", 900)
    )
    assert sorted(constraints(problem)) == ["disk:d0", "min:a", "min:b"]
    assert sum((least_to_give_up(problem) or {}).values()) == 202
    assert least_to_grow(problem) == {"d0": 202}


def test_whole_partitions_may_be_the_trouble() -> None:
    # 3 x 60 on 2 x 98 would fit in pieces only.
    problem = posed(hardware_of(100, 100), *(partition(name, 60) for name in "abc"))
    names = constraints(problem)
    assert {"disk:d0", "disk:d1", "min:a", "min:b", "min:c"} <= set(names)
    assert any(name.startswith("one_disk:") for name in names)


def test_every_name_of_a_conflict_is_needed() -> None:
    hardware = hardware_of(100, 200, 300)
    entries = [
        {"id": "r", "type": "raid", "level": "raid1", "legs": 3, "min_size": 90, "boot": True},
        {"id": "esp", "type": "esp", "size": 40},
        partition("p", 50),
    ]
    names = constraints(posed(hardware, *entries))
    assert set(names) == {"legs:r", "min:r", "boot:esp", "min:esp", "disk:d0"}


@pytest.mark.parametrize("most", [1, 2])
def test_the_number_of_pvs_can_be_the_reason(most: int) -> None:
    hardware = hardware_of(101, 101, 101)
    lv = {"id": "a", "type": "lv", "min_size": 96 * most + 4}
    problem = posed(hardware, {"id": "g", "type": "vg", "contains": ["a"], "max_pvs": most}, lv)
    assert set(constraints(problem)) == {"max_pvs:g", "min:a", "vgcap:g", "disk:d0", "disk:d1", "disk:d2"}
    assert posed(hardware, {"id": "g", "type": "vg", "contains": ["a"]}, lv)


def test_sentences_name_what_and_how_much() -> None:
    reason = explain(formulate(*case_models(INFEASIBLE["inf-seed-basic"])))
    assert reason.data["short"] == 2004
    said = {item["name"]: item["says"] for item in reason.data["constraints"]}
    assert said["disk:sda"] == "disk sda holds 4996 MiB in extents (4998 MiB without its partition table)"
    assert said["min:root"] == "root needs at least 5000 MiB"
    assert "root" in reason.message
    assert "2004 MiB short" in reason.message
    assert reason.data["remedies"] == [
        "reduce the minimum of root from 5000 to 2996 MiB (1.96 GiB less)",
        "use a disk of at least 7003 MiB instead of sda (5000 MiB, 1.96 GiB more)",
    ]


def test_many_disks_are_one_sentence() -> None:
    reason = explain(posed(hardware_of(*range(100, 110)), partition("big", 500)))
    assert "10 disks hold 1025 MiB, the largest of them (d9) 107 MiB" in reason.message
    assert len([item for item in reason.data["constraints"] if item["name"].startswith("disk:")]) == 10


def test_too_few_disks_for_the_legs() -> None:
    reason = explain(posed(hardware_of(100, 100), {"id": "r", "type": "raid", "level": "raid1", "legs": 3, "min_size": 10}))
    assert reason.data["short"] is None
    assert [item["name"] for item in reason.data["constraints"]] == ["legs:r"]
    assert reason.data["remedies"] == ["let r use at least 3 disks, or plan it with fewer legs"]


def test_a_conflict_without_any_of_its_names_is_none() -> None:
    hardware = hardware_of(300, 200)
    entries = [partition("a", 250), partition("b", 150), partition("c", 120)]
    names = constraints(posed(hardware, *entries))
    # Each partition alone, and each pair, finds room: what was blamed must be all three.
    for pair in itertools.combinations(entries, 2):
        assert minimal_conflict(posed(hardware, *pair))[0] == []
    assert {"min:a", "min:b", "min:c"} <= set(names)


def test_many_minimums_that_add_up_are_one_sentence_with_the_sum_and_the_largest() -> None:
    hardware = hardware_of(1000, 1000)
    entries = [{"id": f"s{at}", "type": "lv", "min_size": 100 + at} for at in range(40)]
    reason = explain(posed(hardware, *entries))
    assert reason.data["short"] == sum(100 + at for at in range(40)) - 2000
    # The smallest can be left out of the reason as long as the others are too much.
    assert len([item for item in reason.data["constraints"] if item["name"].startswith("min:")]) == 16
    assert "s39 (139 MiB), s38 (138 MiB), s37 (137 MiB)" in reason.message
    assert "disk d0 holds 1000 MiB; disk d1 holds 1000 MiB" in reason.message


def restricted(hardware: Hardware, given: str, *entries: dict) -> Problem:
    schema = schema_of(hardware, *entries)
    spaces = tuple(
        dataclasses.replace(space, disks_given=given if len(space.allowed) < len(hardware.disks) else "") for space in schema.spaces
    )
    return formulate(hardware, dataclasses.replace(schema, spaces=spaces))


@pytest.mark.parametrize("entry", [partition("logs", 100, disks=[]), {"id": "logs", "type": "partitions", "min_size": 100, "disks": []}])
def test_disks_that_name_no_disk_are_the_reason(entry: dict) -> None:
    reason = explain(restricted(hardware_of(1000), 'disks: yaql=$.disks.where($.type = "ssd")', entry))
    assert reason.message == 'No plan: disks: yaql=$.disks.where($.type = "ssd") names no disk for logs'
    assert [item["name"] for item in reason.data["constraints"]] == ["disks:logs"]
    assert reason.data["short"] is None


def test_disks_of_a_space_in_a_conflict_are_said_as_they_were_written() -> None:
    reason = explain(restricted(hardware_of(1000, 5000), "avoid_disks: d1", partition("a", 1200, disks=["d0"])))
    assert {"name": "disks:a", "says": "a may use d0 only (avoid_disks: d1)"} in reason.data["constraints"]


@pytest.mark.parametrize(("disks", "spaces"), [(60, 40), (500, 100)])
def test_what_is_short_is_right_to_the_mib_at_any_size(disks: int, spaces: int) -> None:
    hardware = hardware_of(*(200_000 + 7919 * at % 900_000 for at in range(disks)))
    half = [disk.id for disk in hardware.disks[: disks // 2]]
    room, first = sum(disk.size for disk in hardware.disks), sum(disk.size for disk in hardware.disks[: disks // 2])
    each = room // spaces
    entries = [{"id": f"s{at}", "type": "lv", "min_size": each + (at % 7), **({"disks": half} if at % 4 else {})} for at in range(spaces)]
    confined = sum(entry["min_size"] for entry in entries if "disks" in entry)
    reason = explain(posed(hardware, *entries))
    assert reason.data["short"] == confined - first
    names = {item["name"] for item in reason.data["constraints"]}
    assert {f"disk:{disk}" for disk in half} == {name for name in names if name.startswith("disk:")}
