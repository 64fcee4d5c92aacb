# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why there is no plan."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.conflict.contradiction import minimal_conflict, obvious_conflict
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.conflict.explain import explain
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.conflict.least import (
    Change,
    least_to_give_up,
    least_to_grow,
    least_to_lower,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import Hardware
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.problem.formulate import formulate
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.problem.model import Problem
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
    assert (None if given_up is None else sum(given_up.mib.values())) == reference["short_MiB"]
    assert given_up is None or given_up.proven
    grown = least_to_grow(problem)
    if reference.get("or_grow_disks"):
        assert grown is not None
        assert grown.proven
        assert sum(grown.mib.values()) == sum(reference["or_grow_disks"].values())
    else:
        assert grown is None or not grown.mib


def test_what_has_a_plan_has_no_conflict() -> None:
    problem = posed(hardware_of(1000), partition("a", 998))
    assert minimal_conflict(problem) == ([], True)
    assert obvious_conflict(problem) == []
    assert least_to_give_up(problem) == Change({})
    assert least_to_grow(problem) == Change({})


def test_what_does_not_matter_is_left_out() -> None:
    hardware = hardware_of(1000, 5000)
    problem = posed(
        hardware, partition("small", 10), partition("a", 600, disks=["d0"]), partition("b", 600, disks=["d0"]), partition("c", 900)
    )
    assert sorted(constraints(problem)) == ["disk:d0", "min:a", "min:b"]
    given_up = least_to_give_up(problem)
    assert given_up is not None
    assert sum(given_up.mib.values()) == 202
    assert least_to_grow(problem) == Change({"d0": 202})


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
    assert reason.data["remedies"] == ["add 1 or more disks, or plan r with fewer legs"]


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


def test_many_that_must_lie_on_one_disk_each_are_one_sentence() -> None:
    # Three fit on each disk, though both together have room for seven.
    reason = explain(posed(hardware_of(1000, 1000), *(partition(f"s{at}", 280) for at in range(7))))
    assert len([item for item in reason.data["constraints"] if item["name"].startswith("one_disk:")]) == 7
    assert reason.message.count("one disk") == 1
    assert "s0, s1, s2 and 4 more must each lie on one disk" in reason.message


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


def test_what_adds_up_to_too_much_is_not_blamed_where_less_of_it_is_too_much_by_itself() -> None:
    # All four need 2593 MiB of 1996; but two of them are too much for d1 already.
    entries = [
        {"id": "a", "type": "lv", "min_size": 275},
        {"id": "b", "type": "lv", "min_size": 606},
        {"id": "r", "type": "raid", "level": "raid1", "legs": 2, "min_size": 546},
        {"id": "c", "type": "lv", "min_size": 620, "disks": ["d1"]},
    ]
    assert set(constraints(posed(hardware_of(1000, 1000), *entries))) == {"legs:r", "min:r", "min:c", "disk:d1"}


def test_a_piece_that_is_larger_than_all_disks_is_told_at_once_with_what_helps() -> None:
    hardware = hardware_of(*range(1000, 1060))
    entries = [partition("huge", 2000), *(partition(f"p{at}", 300) for at in range(20)), {"id": "rest", "type": "lv", "min_size": 40_000}]
    problem = posed(hardware, *entries)
    assert obvious_conflict(problem) == ["one_disk:huge", "min:huge", *(f"disk:d{at}" for at in range(60))]
    assert least_to_give_up(problem) == Change({"min:huge": 2000 - 1059})
    assert least_to_grow(problem) == Change({"d59": 2000 - 1059})


@pytest.mark.parametrize("blamed", ["min:a", "min:b"])
def test_of_equal_ways_that_is_told_which_lowers_what_is_blamed(blamed: str) -> None:
    problem = posed(hardware_of(1000), partition("a", 600), partition("b", 600))
    assert least_to_give_up(problem, [blamed]) == Change({blamed: 1200 - 998})


def mixed(disks: int, spaces: int) -> Problem:
    """Return a machine with partitions, mirrors and volume groups whose minimums take a little more than there is."""
    chance = random.Random(disks)
    sizes = [chance.choice([228_936, 476_940, 3_815_447]) for _disk in range(disks)]
    solid = [{"id": f"s{at}", "min_size": chance.randint(20_000, 150_000)} for at in range(spaces)]
    entries: list[dict] = [
        {**entry, "type": "raid", "level": "raid1", "legs": 2} if at % 3 == 0 else {**entry, "type": "partition"}
        for at, entry in enumerate(solid)
    ]
    needed = sum(entry["min_size"] * (2 if entry["type"] == "raid" else 1) for entry in entries)
    left = sum(sizes) - needed
    entries += [{"id": "g", "type": "vg", "contains": ["a", "b"]}, {"id": "a", "type": "lv", "min_size": left // 2}]
    entries.append({"id": "b", "type": "lv", "min_size": left // 2 + 100_000})
    return posed(hardware_of(*sizes), *entries)


@pytest.mark.parametrize(("disks", "spaces"), [(12, 8), (60, 30)])
def test_what_helps_is_enough_on_machines_with_everything_mixed_and_hardly_more_than_the_least(disks: int, spaces: int) -> None:
    problem = mixed(disks, spaces)
    names, minimal = minimal_conflict(problem)
    assert minimal
    assert {name.split(":", 1)[0] for name in names} >= {"min", "legs", "vgcap", "disk"}
    given_up, grown = least_to_give_up(problem), least_to_grow(problem)
    assert given_up is not None
    assert grown is not None
    # 100,000 MiB are too much, of which a mirror saves two with each that it gives up; metadata and extents come on top.
    assert 50_000 <= sum(given_up.mib.values()) <= 50_500 + 8 * disks
    assert 100_000 <= sum(grown.mib.values()) <= 100_500 + 8 * disks


def test_what_is_not_proven_to_be_the_least_is_said_to_be_enough() -> None:
    problem = mixed(60, 30)
    given_up = least_to_give_up(problem, minimal_conflict(problem)[0])
    assert given_up is not None
    short = sum(given_up.mib.values())
    assert explain(problem).message.startswith(f"No plan, {short} MiB short" if given_up.proven else f"No plan, at most {short} MiB short")


def test_what_gives_up_everything_is_to_be_left_out() -> None:
    full = [partition("a", 98, disks=["d0"]), partition("b", 98, disks=["d1"])]
    reason = explain(posed(hardware_of(100, 100), *full, {"id": "r", "type": "raid", "level": "raid1", "legs": 2, "size": 48}))
    assert reason.data["remedies"][0] == "leave out r, which needs 48 MiB"


def test_a_boot_partition_stays_when_all_that_boots_is_left_out() -> None:
    esp = {"id": "esp", "type": "esp", "size": 512}
    reason = explain(posed(hardware_of(568), esp, partition("os", 3, boot=True), partition("data", 60)))
    assert reason.data["short"] == 3 + 512 + 60 - 566


def test_no_remedy_goes_below_what_must_be_there() -> None:
    grow = "use a disk of at least 514 MiB instead of d0 (164 MiB, 350 MiB more)"
    esp = {"id": "esp", "type": "esp"}
    # FAT32 needs 260 MiB with blocks of 4096 bytes, 33 with those of 512.
    assert explain(posed(hardware_of(164, blocks=4096), esp)).data["remedies"] == [grow]
    lower = "reduce the minimum of esp from 512 to 162 MiB (350 MiB less)"
    assert explain(posed(hardware_of(164), esp)).data["remedies"] == [lower, grow]


def test_another_remedy_takes_the_place_of_one_that_goes_too_low() -> None:
    # What is mounted has xfs unless the user says otherwise, which needs 300 MiB.
    xfs = {"type": "partition", "min_size": 400}
    reason = explain(posed(hardware_of(700), {"id": "a", "mount": "/a", **xfs}, {"id": "b", "mount": "/b", **xfs}))
    assert reason.data["short"] == 102
    assert reason.data["remedies"][0] == (
        "reduce the minimum of a from 400 to 300 MiB (100 MiB less) and reduce the minimum of b from 400 to 398 MiB (2 MiB less)"
    )


def test_a_boot_partition_is_lowered_to_what_its_file_system_needs_at_least() -> None:
    hardware = hardware_of(402, blocks=4096)
    root = {"id": "root", "type": "partition", "size": 200, "boot": True}
    problem = posed(hardware, root, {"id": "esp", "type": "esp"})
    change = least_to_lower(problem, ["min:esp"], Change({"min:esp": 312}))
    assert change is not None
    assert sum(change.mib.values()) == 312
    assert change.mib["min:esp"] <= 252


def test_a_minimum_of_several_partitions_on_a_disk_is_said_with_their_number() -> None:
    hardware = hardware_of(20_000)
    reason = explain(posed(hardware, {"id": "slots", "type": "partition", "per_disk": 3, "min_size": 8000}))
    says = {one["name"]: one["says"] for one in reason.data["constraints"]}
    assert says["min:slots"].startswith("slots needs at least 8000 MiB")
    assert " 3 " in says["min:slots"]
    assert reason.data["short"] == 3 * 8000 - 19_998
