# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A schema is read once for machines alike, and comes to what it would for each of them alone."""

from __future__ import annotations

import random
import typing as t

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.plan_cache import PlanCache
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.hardware import parse_hardware
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.parse import parse_schema
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES, load_profile
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.reader import SchemaReader

SSDS = "yaql=$.disks.where($.type = ssd)"
BY_QUERY = [{"id": "root", "type": "lv", "min_size": "1 GiB", "best_with_disks": SSDS, "fs_label": "yaql='r' + str($.disks.len())"}]


def facts(name: str, *disks: tuple[str, int], **more: t.Any) -> dict[str, t.Any]:
    found = [{"id": f"{name}-{at}", "path": f"p{at}", "type": kind, "size": size} for at, (kind, size) in enumerate(disks)]
    return {"ram": 4096, "firmware": "uefi", "disks": found} | more


def came_to(read: t.Callable[..., t.Any], *arguments: t.Any) -> t.Any:
    try:
        return read(*arguments)
    except (InputError, NoSolution) as error:
        return str(error)


def test_for_the_twin_of_a_machine_nothing_is_read_anew() -> None:
    reader, cache = SchemaReader(BY_QUERY), PlanCache()
    first, second = (reader.read(parse_hardware(facts(name, ("ssd", 9000), ("hdd", 9000))), cache) for name in "ab")
    assert first is second


@pytest.mark.parametrize(
    ("schema", "one", "other"),
    [
        (BY_QUERY, facts("a", ("ssd", 9000), ("hdd", 9000)), facts("a", ("ssd", 9000), ("hdd", 9001))),
        (BY_QUERY, facts("a", ("ssd", 9000), ("hdd", 9000)), facts("a", ("hdd", 9000), ("ssd", 9000))),
        (
            [{"id": "x", "type": "lv", "min_size": 1, "disks": ["a-1"]}],
            facts("a", ("ssd", 9), ("ssd", 9)),
            facts("b", ("ssd", 9), ("ssd", 9)),
        ),
        (
            [{"id": "x", "type": "lv", "min_size": 1, "disks": "yaql=$.wanted"}],
            facts("a", ("ssd", 9), ("ssd", 9), wanted="a-0"),
            facts("a", ("ssd", 9), ("ssd", 9), wanted="a-1"),
        ),
        (
            [{"id": "x", "type": "lv", "min_size": 1, "contains": "yaql=$.members"}],
            facts("a", ("ssd", 9), members=["y"]),
            facts("a", ("ssd", 9), members=[]),
        ),
        (
            [{"id": "x", "type": "lv", "min_size": 1, "disks": ["yaql=$.wanted"]}],
            facts("a", ("ssd", 9), ("ssd", 9), wanted=[{"id": "a-0"}]),
            facts("a", ("ssd", 9), ("ssd", 9), wanted=[{"id": "a-1"}]),
        ),
    ],
    ids=["a size", "an order", "a name", "a name in the facts", "a list in the facts", "a disk written out in the facts"],
)
def test_what_differs_is_told_apart(schema: t.Any, one: t.Any, other: t.Any) -> None:
    reader, cache = SchemaReader(schema), PlanCache()
    for found in (one, other, one, other):
        hardware = parse_hardware(found)
        assert came_to(reader.read, hardware, cache) == came_to(parse_schema, schema, hardware)


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.yml")), ids=lambda path: path.stem)
def test_profiles_come_to_the_same_as_read_alone(path: t.Any) -> None:
    chance, schema = random.Random(path.stem), load_profile(path)
    reader, cache = SchemaReader(schema), PlanCache()
    shapes = [
        [(chance.choice(["ssd", "hdd"]), chance.choice([60000, 900000, 905000])) for _disk in range(chance.randint(1, 5))]
        for _shape in range(4)
    ]
    for name in "ab":
        for shape in shapes:
            hardware = parse_hardware(facts(name, *shape))
            assert came_to(reader.read, hardware, cache) == came_to(parse_schema, schema, hardware)
