# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Remedies as users follow them: sentences are read, schema and machine changed as they say, and planned again."""

from __future__ import annotations

import random
import re
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.tests.support.house.share import examples

Plain = dict[str, t.Any]
LOWERED = re.compile(r"reduce the minimum of (\w+) from [0-9]+ to ([0-9]+) MiB")
LEFT_OUT = re.compile(r"leave out (\w+), which needs")
GIVEN_UP = re.compile(r"leave out (\w+(?:, \w+)*(?: and \w+)?)(?=;|$)")
FEWER_LEGS = re.compile(r"let (\w+) use at least [0-9]+ disks, or plan it with fewer legs")
APART = re.compile(r"let (\w+) lie on other disks than .*?, without together_with")
LARGER = re.compile(r"use a disk of at least ([0-9]+) MiB instead of (\w+) ")
SHARED = re.compile(r"let (\w+) share disks with .*?, without apart_from")


def machine(seed: int) -> tuple[Plain, list[Plain]]:
    """Return a machine of up to four disks and a schema that is mostly too large for it."""
    chance = random.Random(seed)
    sizes = [chance.choice([60_000, 100_000, 228_936]) + chance.randint(0, 900) for _disk in range(chance.randint(1, 4))]
    disks = [{"id": f"d{at}", "size": size} for at, size in enumerate(sizes)]
    entries: list[Plain] = []
    for at in range(chance.randint(1, 4)):
        least = {"min_size": chance.randint(2_000, 150_000)}
        kind = chance.choice(["partition", "partitions", "raid", "vg", "zpool", "thin"])
        name = f"s{at}"
        if kind == "raid" and len(disks) > 1:
            entries.append({"id": name, "type": "raid", "level": chance.choice(["raid0", "raid1"]), **least})
        elif kind == "zpool" and len(disks) > 1:
            entries.append({"id": name, "type": "zpool", "vdev": chance.choice(["mirror", "stripe"]), **least})
        elif kind == "vg":
            entries += [{"id": name, "type": "vg", "contains": [f"{name}a", f"{name}b"]}, {"id": f"{name}a", "type": "lv", **least}]
            entries.append({"id": f"{name}b", "type": "lv", "size": chance.randint(1_000, 40_000)})
        elif kind == "thin":
            entries += [{"id": name, "type": "vg", "contains": [f"{name}a"]}, {"id": f"{name}a", "type": "thin_pool", **least}]
        else:
            kind = "partitions" if kind == "partitions" else "partition"
            entries.append({"id": name, "type": kind, **least})
    whole = [entry["id"] for entry in entries if entry["type"] == "partition"]
    if len(whole) > 1 and chance.random() < 0.5:
        next(entry for entry in entries if entry["id"] == whole[0])["apart_from"] = [whole[1]]
    return {"disks": disks}, entries


def followed(remedy: str, hardware: Plain, schema: list[Plain]) -> tuple[Plain, list[Plain]] | None:
    """Return machine and schema with what a sentence says; None where it says nothing exact."""
    lowered = {name: int(least) for name, least in LOWERED.findall(remedy)}
    sizes = {disk: int(size) for size, disk in LARGER.findall(remedy)}
    gone, apart = set(LEFT_OUT.findall(remedy)), set(SHARED.findall(remedy))
    gone |= {name for names in GIVEN_UP.findall(remedy) for name in re.split(", | and ", names)}
    fewer, loose = set(FEWER_LEGS.findall(remedy)), set(APART.findall(remedy))
    if not lowered and not sizes and not gone and not apart and not fewer and not loose:
        return None
    entries = []
    for entry in schema:
        name, keys = entry["id"], dict(entry)
        if name in gone:
            continue
        if name in lowered:
            keys = {**keys, "min_size": lowered[name]} | ({"max_size": keys["size"]} if "size" in keys else {})
            keys.pop("size", None)
        if name in fewer:
            keys["legs"] = len(keys["disks"])
            keys = keys if keys["legs"] > 1 else {"id": name, "type": "partition", "disks": keys["disks"]}
        if name in apart:
            keys.pop("apart_from")
        if name in loose:
            keys.pop("together_with")
        if "contains" in keys:
            keys["contains"] = [member for member in keys["contains"] if member not in gone]
        for key in ("apart_from", "together_with"):
            if key in keys:
                keys[key] = [other for other in keys[key] if other not in gone]
        entries.append(keys)
    return {"disks": [{**disk, "size": sizes.get(disk["id"], disk["size"])} for disk in hardware["disks"]]}, entries


def machine_with_conflicts(seed: int) -> tuple[Plain, list[Plain]]:
    """Return a machine and a schema of one to three parts with disks of their own; most parts contradict themselves."""
    chance = random.Random(seed)
    disks: list[Plain] = []
    entries: list[Plain] = []
    for number in range(chance.choice([1, 2, 2, 2, 3])):
        sizes = [chance.choice([60_000, 100_000]) + chance.randint(0, 900) for _disk in range(chance.randint(1, 3))]
        own = [{"id": f"d{number}{at}", "size": size} for at, size in enumerate(sizes)]
        disks += own
        entries += _conflict(chance, f"s{number}", {"disks": [disk["id"] for disk in own]}, sizes)
    return {"disks": disks}, entries


def _conflict(chance: random.Random, name: str, there: Plain, sizes: list[int]) -> list[Plain]:
    """Return spaces that find no room on their disks, or contradict each other there."""
    most, whole = max(sizes), sum(sizes)

    def partition(suffix: str, share: float, **keys: t.Any) -> Plain:
        return {"id": name + suffix, "type": "partition", "min_size": int(most * share), **there, **keys}

    names = [f"{name}b{at}" for at in range(len(sizes))]
    return chance.choice(
        [
            [partition("a", 1.3)],
            [partition("a", 0.7), partition("b", 0.6), partition("c", 0.55)],
            [partition("a", 0.7), partition("b", 0.6, together_with=[f"{name}a"])],
            [partition("a", 0.01), *(partition(f"b{at}", 0.01, apart_from=[f"{name}a", *names[:at]]) for at in range(len(sizes)))],
            [partition("a", 0.8), {"id": f"{name}b", "type": "partitions", "min_size": int(whole * 0.7), **there}],
            [{"id": name, "type": "raid", "level": "raid1", "legs": len(sizes) + 1, **there}],
            [{"id": name, "type": "raid", "level": "raid1", "legs": 2, "min_size": int(most * 1.4), **there}],
            [
                {"id": name, "type": "vg", "contains": [f"{name}a", f"{name}b"], **there},
                {"id": f"{name}a", "type": "lv", "min_size": int(whole * 0.8)},
                {"id": f"{name}b", "type": "lv", "size": int(whole * 0.3)},
            ],
        ]
    )


def faults(hardware: Plain, schema: list[Plain]) -> tuple[int, list[str]]:
    """Return how many remedies could be followed, and those after which there is no plan."""
    try:
        Planner(schema).plan(hardware)
    except NoSolution as error:
        tried, found = 0, []
        for remedy in error.conflict["remedies"]:
            changed = followed(remedy, hardware, schema)
            if changed is not None:
                tried += 1
                try:
                    Planner(changed[1]).plan(changed[0])
                except NoSolution as again:
                    found.append(f"{remedy}: {again}")
        return tried, found if tried else [f"nothing to do: {error}"]
    return 0, []


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_every_remedy_leads_to_a_plan(first: int) -> None:
    tried = {seed: faults(*machine(seed)) for seed in range(first, first + examples(40))}
    assert {seed: found for seed, (_count, found) in tried.items() if found} == {}
    assert sum(count for count, _found in tried.values()) > 0


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_conflicts_that_have_nothing_to_do_with_each_other_are_solved_together(first: int) -> None:
    tried = {seed: faults(*machine_with_conflicts(seed)) for seed in range(first, first + examples(40))}
    assert {seed: found for seed, (_count, found) in tried.items() if found} == {}
    assert sum(count for count, _found in tried.values()) > 0


def test_disks_that_a_space_may_use_are_no_reason_where_all_would_be_too_few() -> None:
    disks = [{"id": f"d{at}", "size": 100_000} for at in range(4)]
    for legs, names in ((6, ["legs:data"]), (4, ["legs:data", "disks:data"])):
        with pytest.raises(NoSolution) as raised:
            Planner([{"id": "data", "type": "raid", "level": "raid1", "legs": legs, "disks": ["d0", "d1"]}]).plan({"disks": disks})
        assert [one["name"] for one in raised.value.conflict["constraints"]] == names


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(
            [{"id": "root", "type": "partition", "size": "30 %"}, {"id": "data", "type": "partition", "min_size": 80_000}], id="of a disk"
        ),
        pytest.param(
            [
                {"id": "os", "type": "vg", "contains": ["root", "data"]},
                {"id": "root", "type": "lv", "min_size": "30 %"},
                {"id": "data", "type": "lv", "min_size": 80_000},
            ],
            id="of a group",
        ),
        pytest.param(
            [{"id": "root", "type": "partition", "size": "50 %"}, {"id": "data", "type": "partition", "size": "60 %"}],
            id="more than a disk of any size has",
        ),
    ],
)
def test_larger_disks_are_no_remedy_where_percentages_grow_with_them(schema: list[Plain]) -> None:
    tried, found = faults({"disks": [{"id": "d0", "size": 100_000}]}, schema)
    assert (tried > 0, found) == (True, [])
