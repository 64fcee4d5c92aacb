# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON Schemas in docs/schemas: made of the tables, true of all profiles and examples, and of use against mistakes."""

from __future__ import annotations

import copy
import json
import pathlib
import typing as t

import jsonschema
import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.hardware import parse_hardware
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.parse import parse_schema
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline, write_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support import json_schemas
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = sorted(PROFILES.glob("*.yml"))
WORLDS = [
    json.loads(line.rstrip(",\n"))
    for line in (ROOT / "tests" / "unit" / "data" / "provider" / "gabbi.json").read_text().splitlines()
    if line.startswith('{"allocations"')
]
LV = {"id": "a", "type": "lv"}
FACTS = {"ram": 1000, "disks": [{"id": "sda", "size": 100000}, {"id": "sdb", "size": 100000}]}
NODE = {"name": "n", "total_memory": "4 GiB", "total_cpus": 4, "total_disk": "1 TiB"}
GUEST = {"name": "i", "memory": 1024, "disk": "10G", "vcpus": 1, "primary": "n"}


def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json_schemas.schemas()[f"{name}.json"]
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_files_are_what_the_tables_say() -> None:
    assert json_schemas.stale() == [], "run make schemas"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_profiles_are_valid_and_tell_an_editor_so(path: pathlib.Path) -> None:
    text = path.read_text()
    validator("profile").validate(yaml.safe_load(text))
    assert "# yaml-language-server: $schema=../docs/schemas/profile.json\n" in text[:200]


def test_plans_are_valid_static_schemas() -> None:
    check = validator("static-schema")
    machine = {
        "firmware": "uefi",
        "ram": 65536,
        "disks": [{"id": f"sd{letter}", "path": f"/dev/sd{letter}", "size": 500000} for letter in "abcd"],
    }
    for path in FILES:
        try:
            plan = Planner(yaml.safe_load(path.read_text())["schema"]).plan(machine)
        except InputError:
            continue
        check.validate(plan["schema"])


@pytest.mark.parametrize("options", [{}, {"extags": True, "loctags": True, "odd": True, "template": "mixed"}])
def test_clusters_are_valid(options: dict[str, t.Any]) -> None:
    check = validator("cluster")
    check.validate(write_inline(parse_text(generate(nodes=4, groups=2, per_node=2, **options).text())))
    check.validate({"nodes": [NODE], "instances": [GUEST]})


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world["id"])
def test_worlds_are_valid(world: dict[str, t.Any]) -> None:
    data = {key: world[key] for key in ("providers", "allocations", "custom_traits", "custom_classes")}
    parse_world(data)
    validator("world").validate(data)


@pytest.mark.parametrize(
    "change",
    [
        {"mim_size": 5},
        {"type": "lvm"},
        {"id": "a b"},
        {"id": "unallocated"},
        {"id": 5},
        {"min_size": -5},
        {"size": 0},
        {"size": 5, "min_size": 5},
        {"size": True},
        {"size": "lots"},
        {"size": "5 parsec"},
        {"size": [5]},
        {"weight": -1},
        {"weight": "1"},
        {"weight": 1e9},
        {"boot": "yes"},
        {"mount": "srv"},
        {"mount": "/a b"},
        {"fs_type": "ext5"},
        {"disks": 5},
        {"contains": ["b"]},
        {"level": "raid1"},
        {"type": "raid"},
        {"type": "raid", "level": 1},
        {"type": "raid", "level": "raid1", "legs": "two"},
        {"type": "vg", "max_pvs": 0},
        {"type": "esp", "encrypt": True},
        {"per_disk": True},
        {"optional": 1},
    ],
    ids=str,
)
def test_what_the_parser_refuses_of_a_space_the_schema_refuses(change: dict[str, t.Any]) -> None:
    with pytest.raises(InputError):
        parse_schema([LV | change], parse_hardware(FACTS))
    assert not validator("dynamic-schema").is_valid([LV | change])


@pytest.mark.parametrize(
    "change",
    [
        {"size": "10G"},
        {"size": "yaql=$.ram"},
        {"min_size": "30 %", "max_size": "1.5 TiB"},
        {"weight": 0},
        {"fs_type": "XFS"},
        {"disks": ["sda"]},
        {"disks": "sda"},
        {"best_with_disks": ["yaql=$.disks", ["sdb"]]},
        {"boot": "yaql=$.ram > 1", "mount": "/a//b/"},
        {"optional": True},
    ],
    ids=str,
)
def test_what_the_parser_takes_of_a_space_the_schema_takes(change: dict[str, t.Any]) -> None:
    parse_schema([LV | change], parse_hardware(FACTS))
    validator("dynamic-schema").validate([LV | change])


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("nodes", 0, "total_memory"), "4 GX"),
        (("nodes", 0, "total_cpus"), "many"),
        (("nodes", 0, "total_mem"), 5),
        (("nodes", 0), 5),
        (("instances", 0, "vcpus"), 1.5),
        (("instances", 0, "memory"), True),
        (("instances", 0, "status"), "runing"),
        (("instances", 0, "tags"), "x"),
        (("instances", 0, "disks"), [{"sise": 5}]),
        (("nodes",), None),
        (("ipolicy",), {"ratio": 5}),
    ],
)
def test_what_the_parser_refuses_of_a_cluster_the_schema_refuses(place: tuple[t.Any, ...], value: t.Any) -> None:
    data: t.Any = copy.deepcopy({"nodes": [NODE], "instances": [GUEST]})
    spot = data
    for key in place[:-1]:
        spot = spot[key]
    spot[place[-1]] = value
    with pytest.raises(InputError):
        parse_inline(data)
    assert not validator("cluster").is_valid(data)


@pytest.mark.parametrize(
    "provider",
    [
        {},
        {"name": "a", "colour": "red"},
        {"name": "a", "uuid": "b"},
        {"name": "a", "inventories": {"VCPU": {"total": "8"}}},
        {"name": "a", "inventories": {"VCPU": {}}},
        {"name": "a", "inventories": {"vcpu": 1}},
        {"name": "a", "traits": "HW_NUMA_ROOT"},
        {"name": "a", "generation": -1},
    ],
    ids=str,
)
def test_what_the_parser_refuses_of_a_world_the_schema_refuses(provider: dict[str, t.Any]) -> None:
    with pytest.raises(InputError):
        parse_world({"providers": [provider]})
    assert not validator("world").is_valid({"providers": [provider]})
