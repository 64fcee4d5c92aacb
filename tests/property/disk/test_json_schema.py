# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The JSON Schema of a dynamic schema beside the product: what one refuses the other refuses, but for what a JSON Schema cannot say."""

from __future__ import annotations

import random
import typing as t

import jsonschema
import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Mistakes, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.model import SpaceType
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.values import KEYS_OF_SOME, SPACE
from ansible_collections.bareon.allocator.tests.support import json_schemas
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


def refused(entry: dict[str, t.Any]) -> bool:
    """Return whether the product refuses a space for the kinds of its values, or for keys that make no sense for its type."""
    mistakes = Mistakes()
    SPACE.read_nested(entry, "schema[0]", mistakes)
    given = [key for key, value in entry.items() if value is not None]
    return bool(mistakes) or any(key in KEYS_OF_SOME and entry["type"] not in KEYS_OF_SOME[key] for key in given)


def refused_in_all(entry: dict[str, t.Any]) -> bool:
    """Return whether a plan is refused, for whatever mistake."""
    try:
        Planner([entry]).plan({"disks": [{"id": f"d{at}", "size": 10**6} for at in range(4)], "ram": 1000})
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
