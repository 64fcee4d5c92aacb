# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One machine has one plan: alone, by seventy forks at once, and with disks and keys in another order."""

from __future__ import annotations

import json
import multiprocessing
import random
import typing as t

from ansible_collections.bareon.allocator.plugins.plugin_utils.disk.planner import Planner

FORKS = 70


def machine() -> tuple[dict[str, t.Any], list[dict[str, t.Any]]]:
    """Return facts and a schema that rules alone do not settle: arrays and partitions of which some must share a disk."""
    chance = random.Random(7)
    sizes = [chance.choice([228_936, 476_940, 3_815_447, 7_630_885]) for _disk in range(6)]
    disks = [{"id": f"/dev/disk/by-id/wwn-{at}", "type": "hdd", "size": size} for at, size in enumerate(sizes)]
    schema: list[dict[str, t.Any]] = []
    for at in range(7):
        entry = {"min_size": chance.randint(1000, 20_000), "weight": chance.choice([1, 1, 2, 3])}
        kind = {"type": "raid", "level": "raid1", "legs": 2} if chance.random() < 0.3 else {"type": "partition"}
        schema.append({"id": f"s{at}", **kind, **entry})
    schema.append({"id": "group", "type": "vg", "contains": [{"id": "one"}, {"id": "two"}]})
    schema += [{"id": name, "type": "lv", "min_size": 5000} for name in ("one", "two")]
    return {"ram": 16_000, "disks": disks}, schema


def plan(facts: dict[str, t.Any], schema: list[dict[str, t.Any]]) -> str:
    return json.dumps(Planner(schema).plan(facts), sort_keys=True)


def plan_again(_number: int) -> str:
    return plan(*machine())


def test_seventy_forks_at_once_find_the_plan_of_one() -> None:
    with multiprocessing.get_context("fork").Pool(FORKS) as pool:
        found = pool.map(plan_again, range(FORKS), chunksize=1)
    assert set(found) == {plan(*machine())}


def test_the_order_of_disks_and_keys_does_not_matter() -> None:
    facts, schema = machine()
    expected = plan(facts, schema)
    for seed in range(5):
        chance = random.Random(seed)
        disks = [dict(chance.sample(sorted(disk.items()), len(disk))) for disk in chance.sample(facts["disks"], len(facts["disks"]))]
        keys = [dict(chance.sample(list(entry.items()), len(entry))) for entry in schema]
        assert plan({"disks": disks, "ram": facts["ram"]}, keys) == expected
