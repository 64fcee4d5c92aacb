# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remedies in the schema's own units: a schema with the reduced minimum has a plan, and one MiB more has none or hardly any more room."""

from __future__ import annotations

import re
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner

Plain = dict[str, t.Any]

TANK = {"id": "x", "type": "zpool", "min_size": 200_000}
POOL = {"id": "x", "type": "thin_pool", "min_size": 120_000, "contains": ["t"]}
GROUP = [{"id": "g", "type": "vg", "contains": ["x"]}, {"id": "t", "type": "thin", "size": 50_000}]


def machine(*sizes: int, **keys: t.Any) -> Plain:
    return {"ram": 8192, "disks": [{"id": f"d{at}", "type": "ssd", "size": size, **keys} for at, size in enumerate(sizes)]}


def refused(schema: list[Plain], facts: Plain) -> NoSolution:
    with pytest.raises(NoSolution) as caught:
        Planner(schema).plan(facts)
    return caught.value


@pytest.mark.parametrize(
    ("entry", "others", "sizes"),
    [
        pytest.param(TANK, [], (100_000, 100_000), id="a mirror of ZFS"),
        pytest.param({**TANK, "vdev": "raidz1", "legs": 3, "min_size": 400_000}, [], (100_000,) * 3, id="raidz1"),
        pytest.param(POOL, GROUP, (100_000,), id="a thin pool"),
        pytest.param({"id": "x", "type": "partition", "min_size": 200_000}, [], (100_000,), id="a partition"),
    ],
)
def test_the_reduced_minimum_has_a_plan(entry: Plain, others: list[Plain], sizes: tuple[int, ...]) -> None:
    said = refused([*others, entry], machine(*sizes)).conflict["remedies"][0]
    wanted, less = (int(number) for number in re.findall(r"from (\d+) to (\d+) MiB", said)[0])
    assert wanted == entry["min_size"]
    plan = Planner([*others, {**entry, "min_size": less}]).plan(machine(*sizes))
    assert plan["disks"]
    refused([*others, {**entry, "min_size": less + 100}], machine(*sizes))


def test_the_sentence_adds_up_with_spaces_that_are_in_no_conflict() -> None:
    schema = [{"id": "swap", "type": "partition", "min_size": 524_288}, {"id": "root", "type": "partition", "min_size": 20_480}]
    error = refused(schema, machine(457_862))
    assert error.conflict["short"] == 524_288 + 20_480 - 457_860
    assert all(number in str(error) for number in ("524288", "20480", "457860", "86908"))


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        pytest.param([{"id": "x", "type": "partition", "min_size": "30 %"}], "min:x", id="a partition"),
        pytest.param([{"id": "x", "type": "raid", "level": "raid1", "legs": 2, "size": "30 %"}], "min:x", id="an array"),
        pytest.param([{"id": "x", "type": "zpool", "size": "30 %"}], "min:x", id="a ZFS pool"),
        pytest.param([{"id": "x", "type": "vg", "min_size": "30 %"}], "min:x", id="a group"),
        pytest.param([GROUP[0], {**POOL, "min_size": "60 %", "contains": []}], "min:x", id="a thin pool"),
        pytest.param([{"id": "x", "type": "esp", "size": "30 %"}], "min:x", id="a boot partition"),
    ],
)
def test_a_percentage_is_said_as_it_was_written_with_its_mib(schema: list[Plain], name: str) -> None:
    other = [
        {"id": "other", "type": "vg", "contains": ["most"]},
        {"id": "most", "type": "lv", "size": 180_000},
        {"id": "boots", "type": "partition", "per_disk": True, "size": 8, "boot": True},
    ]
    conflict = refused([*schema, *other], machine(100_000, 100_000)).conflict
    says = {item["name"]: item["says"] for item in conflict["constraints"]}
    written = next(str(entry.get("size") or entry["min_size"]) for entry in schema if entry["id"] == "x")
    assert re.search(rf"{written} \(\d+ MiB\)", says[name])
    assert "%" not in says.get("min:most", "")


def test_bounds_that_contradict_each_other_are_said_as_they_were_written() -> None:
    error = refused([{"id": "x", "type": "partition", "min_size": "90 %", "max_size": "30 %"}], machine(100_000))
    says = {item["name"]: item["says"] for item in error.conflict["constraints"]}
    assert "90 % (89998 MiB)" in says["min:x"]
    assert "30 % (29999 MiB)" in says["max:x"]
    assert all("%" in remedy for remedy in error.conflict["remedies"])


def test_what_is_kept_is_named() -> None:
    there = {"number": 1, "name": "win", "start": 1, "size": 56_832}
    facts = machine(59_085, empty=False, table="gpt", partitions=[there])
    schema = [{"id": "win", "type": "partition", "keep_data": True}, {"id": "lin", "type": "partition", "size": 4096}]
    says = {item["name"]: item["says"] for item in refused(schema, facts).conflict["constraints"]}
    assert "win (56832 MiB)" in says["disk:d0"]


@pytest.mark.parametrize("legs", [40, 10_000_000])
def test_no_more_disks_are_offered_than_a_machine_takes(legs: int) -> None:
    remedies = refused([{"id": "x", "type": "raid", "level": "raid1", "legs": legs}], machine(100_000, 100_000)).conflict["remedies"]
    assert any(f"add {legs - 2} disks" in remedy for remedy in remedies) == (legs == 40)
