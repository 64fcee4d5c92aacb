# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One machine has one plan: alone, by seventy forks at once, with disks and keys in another order, and on any version of Python."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import multiprocessing
import random
import time
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._common import highs
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.tests.support.disk.many_plans import random_machine

FORKS = 70
MACHINES = 60
RECORDED = Path(__file__).parent / "data" / "same_plan.json"


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


def test_no_clock_changes_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    facts, schema = machine()
    expected = plan(facts, schema)
    hours = itertools.count(0, 3600)
    for clock in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        monkeypatch.setattr(time, clock, lambda: float(next(hours)))
    limits = []
    real = highs._set

    def noted(solver: t.Any, /, **options: t.Any) -> None:
        limits.append(options.get("time_limit", math.inf))
        real(solver, **options)

    monkeypatch.setattr(highs, "_set", noted)
    assert plan(facts, schema) == expected
    # Nor has HiGHS a clock to look at.
    assert set(limits) == {math.inf}


def digests() -> dict[str, str]:
    """Return a digest of the plan, or of the reason why there is none, by seed; how both are said in words is no part of it."""
    found = {}
    for seed in range(MACHINES):
        facts, schema = random_machine(seed)
        try:
            text = json.dumps(Planner(schema).plan(facts) | {"warnings": []}, sort_keys=True)
        except NoSolution as error:
            text = json.dumps([error.conflict["short"], *(one["name"] for one in error.conflict["constraints"])])
        found[str(seed)] = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    return found


def test_plans_are_what_they_were_on_other_versions_of_python() -> None:
    # Written by Python 3.13; whatever this runs on has to agree, with the series of HiGHS that requirements.txt pins.
    assert digests() == json.loads(RECORDED.read_text())


if __name__ == "__main__":
    # A change that is meant to change plans writes the digests anew:
    # PYTHONPATH=.venv/collections .venv/bin/python tests/property/disk/test_same_plan.py > tests/property/disk/data/same_plan.json
    print(json.dumps(digests(), indent=1))
