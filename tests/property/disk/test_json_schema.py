# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The JSON Schema of a dynamic schema beside the product: what one refuses the other refuses, except what a JSON Schema cannot say.

Spaces with values of all kinds, schemas drawn from the JSON Schema, and these damaged.
"""

from __future__ import annotations

import json
import random
import typing as t

import jsonschema
import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Mistakes, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import SpaceType
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.values import KEYS_OF_SOME, SPACE, SPACES
from ansible_collections.bareon.allocator.tests.support import json_schemas
from ansible_collections.bareon.allocator.tests.support.drawn import drawn
from ansible_collections.bareon.allocator.tests.support.fuzz.mutations import mutate
from ansible_collections.bareon.allocator.tests.support.house.share import examples

GUID = "0fc63daf-8483-4772-8e79-3d69d8477de4"
VALUES: list[t.Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        2,
        -1,
        3,
        7,
        100,
        101,
        1000,
        1001,
        1.0,
        1.5,
        -0.5,
        1e-7,
        1e7,
        2**31,
        2**31 - 1,
        -(2**31),
        2**53,
        2**70,
        1e300,
    ),
    *("", " ", "\u00a0", "x", "x\u00a0", " x", "a b", "-a", "a" * 63, "a" * 64, "unallocated", "..", "é", "0", "1", "12", "1 GiB", "1GiB"),
    *(
        "50 %",
        "0 %",
        "101 %",
        "0.0 GiB",
        "1 kB",
        "1e3",
        "٣",
        "1\u00a0GiB",
        "\u20031",
        "all",
        "ALL",
        "raid1",
        "raid 1",
        "RAID1",
        "ext4",
        "EXT4",
    ),
    *(
        "Ext4 ",
        "swap",
        "/",
        "/srv",
        "srv",
        "//",
        "/a/../b",
        "none",
        "mirror",
        "required",
        "when_possible",
        "home",
        "HOME",
        GUID,
        f"{{{GUID}}}",
    ),
    *("c12a7328-f81f-11d2-ba4b-00a0c93ec93b", "tpm2", "writeback", "stripe", "raidz1"),
    *([], ["a"], ["a", 1], [None], ["\u00a0"], [{"id": "a"}], [{"x": 1}], [{"name": "a"}], [{"name": "a", "mount": "/a"}], [["a"]]),
    *([{"method": "tpm2"}], {}, {"id": "a"}, {"number": 1}, {"uuid": "x", "number": 1}, {"name": "a"}, {"a": "b"}, {"a": 1}),
]
WHOLE = frozenset({"priority", "legs", "stripes", "count", "per_disk", "spares", "max_pvs", "vdevs", "ashift"})
"""Keys of integers: to JSON Schema 1.0 is one."""
MORE_THAN_A_PATTERN = frozenset(
    {"mount", "partition_type", "partition_label", "stripe_size", "chunk_size", "chunk", "metadata_size", "extent_size", "properties"}
)
"""Keys whose texts mean sizes that must be powers of two, names and paths: the product says more of them than a pattern can."""


SIZES = frozenset({"size", "min_size", "max_size", "quota", "reservation"})
"""Keys of sizes: a pattern does not say how much a text comes to."""


def refused(entry: dict[str, t.Any]) -> bool:
    """Return whether the product refuses a space for the kinds of its values, or for keys that make no sense for its type."""
    mistakes = Mistakes()
    SPACE.read_nested(entry, "schema[0]", mistakes)
    given = [key for key, value in entry.items() if value is not None]
    return bool(mistakes) or any(key in KEYS_OF_SOME and entry["type"] not in KEYS_OF_SOME[key] for key in given)


def refused_in_all(*entries: t.Any) -> bool:
    """Return whether a plan is refused, for whatever mistake."""
    try:
        Planner(list(entries)).plan({"disks": [{"id": f"d{at}", "size": 10**6} for at in range(4)], "ram": 1000})
    except InputError:
        return True
    except NoSolution:
        return False
    return False


def entries(seed: int) -> t.Iterator[dict[str, t.Any]]:
    chance = random.Random(seed)
    for _entry in range(examples(400)):
        kind = str(chance.choice(list(SpaceType)))
        keys = [row.name for row in SPACE.rows if row.name not in ("id", "type")]
        entry: dict[str, t.Any] = {"id": "a", "type": kind, **({"level": "raid1"} if kind == "raid" else {})}
        for key in chance.sample(keys, chance.choice([1, 1, 1, 2])):
            entry[key] = chance.choice(VALUES)
        yield entry


@pytest.mark.parametrize("seed", range(10))
def test_schema_and_product_refuse_the_same(seed: int) -> None:
    validator = jsonschema.Draft202012Validator(json_schemas.schemas()["dynamic-schema.json"])
    stricter, looser = [], []
    for entry in entries(seed):
        valid, given = validator.is_valid([entry]), [key for key in entry if key not in ("id", "type")]
        if not valid and not refused(entry) and not refused_in_all(entry):
            stricter.append(entry)
        says_more = any(key in MORE_THAN_A_PATTERN or (key in WHOLE and isinstance(entry[key], float)) for key in given)
        if valid and refused(entry) and not says_more:
            looser.append(entry)
    assert stricter == []
    assert looser == []


def faults(schema: t.Any) -> list[str]:
    """Return the places of values of wrong kinds, and of keys that make no sense for their types."""
    mistakes = Mistakes()
    SPACES.read_nested(schema, "schema", mistakes)
    entries = [entry for entry in schema if isinstance(entry, dict)] if isinstance(schema, list) else []
    senseless = [
        key
        for entry in entries
        for key, value in entry.items()
        if value is not None and key in KEYS_OF_SOME and entry.get("type") in [*SpaceType] and entry["type"] not in KEYS_OF_SOME[key]
    ]
    return [*(mistake.place for mistake in mistakes.found()), *senseless]


def is_comparable(schema: t.Any) -> bool:
    """Return whether it is JSON in UTF-8 that has no expressions, and no whole numbers with a point, which are integers to JSON Schema."""
    try:
        text = json.dumps(schema, ensure_ascii=False, allow_nan=False)
        text.encode()
    except ValueError:
        return False
    return (
        json.loads(text) == schema
        and "yaql=" not in text
        and not any(isinstance(value, float) and value.is_integer() for value in values(schema))
    )


def values(data: t.Any) -> t.Iterator[t.Any]:
    yield data
    for item in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from values(item)


def without_expressions(schema: t.Any) -> t.Any:
    if isinstance(schema, list):
        return [without_expressions(item) for item in schema if not (isinstance(item, dict) and item.get("pattern") == "^yaql=")]
    return {key: without_expressions(value) for key, value in schema.items()} if isinstance(schema, dict) else schema


def drawn_schemas(seed: int) -> t.Iterator[t.Any]:
    """Yield schemas drawn from the JSON Schema, most of them with keys that make sense for their types alone, and some of them damaged."""
    source, chance = without_expressions(json_schemas.schemas()["dynamic-schema.json"]), random.Random(seed)
    for _schema in range(examples(400)):
        found = drawn(source, chance)
        for entry in found if chance.random() < 0.8 else ():
            for key in [key for key in entry if entry["type"] not in KEYS_OF_SOME.get(key, frozenset(SpaceType))]:
                del entry[key]
        yield found if chance.random() < 0.5 else mutate(chance, found)


@pytest.mark.parametrize("seed", range(10))
def test_what_is_drawn_from_the_schema_is_refused_by_both_or_by_neither(seed: int) -> None:
    validator = jsonschema.Draft202012Validator(json_schemas.schemas()["dynamic-schema.json"])
    stricter, looser, agreed = [], [], {True: 0, False: 0}
    for schema in filter(is_comparable, drawn_schemas(seed)):
        valid, wrong = validator.is_valid(schema), faults(schema)
        if valid:
            looser += [(place, schema) for place in wrong if place.rpartition(".")[2] not in MORE_THAN_A_PATTERN | SIZES]
        elif not wrong and not refused_in_all(*schema):
            stricter.append(schema)
        agreed[valid] += valid is not bool(wrong)
    assert stricter == []
    assert looser == []
    assert min(agreed.values()) > examples(400) // 10
