# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans of many machines, as texts to compare: of the cases, of all profiles on machines as they are met, and of random ones.

Run as a program, it prints them as JSON, for whatever Python runs it.
"""

from __future__ import annotations

import json
import random
import typing as t
from collections.abc import Iterator

from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Objective, Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.schema.profiles import PROFILES, load_profile
from ansible_collections.bareon.allocator.tests.support.disk.build import CASES
from ansible_collections.bareon.allocator.tests.support.disk.machines import MACHINES

RANDOM = 60


def random_machine(seed: int) -> tuple[dict[str, t.Any], list[dict[str, t.Any]]]:
    """Return facts and a schema of a random machine with all types of spaces, expressions among them."""
    chance = random.Random(seed)
    kinds = [chance.choice(["ssd", "hdd", "nvme"]) for _disk in range(chance.randint(2, 9))]
    disks = [{"id": f"/dev/disk/by-id/wwn-{at}", "type": kind, "size": chance.randint(200_000, 4_000_000)} for at, kind in enumerate(kinds)]
    schema: list[dict[str, t.Any]] = [{"id": "esp", "type": "esp", "size": 512}]
    for at in range(chance.randint(1, 6)):
        entry: dict[str, t.Any] = {
            "id": f"s{at}",
            "min_size": chance.randint(500, 20_000),
            "weight": chance.choice([1, 1, 2, 3]),
            "boot": at == 0,
        }
        mirrored = chance.random() < 0.4
        entry.update({"type": "raid", "level": "raid1", "legs": 2} if mirrored else {"type": "partition"})
        if chance.random() < 0.4:
            entry["best_with_disks"] = f'yaql=$.disks.where($.type = "{chance.choice(kinds)}")'
        schema.append(entry)
    schema.append({"id": "group", "type": "vg", "contains": [{"id": "one"}, {"id": "two"}]})
    schema += [
        {"id": name, "type": "lv", "min_size": chance.randint(1000, 9000), "weight": chance.randint(1, 3)} for name in ("one", "two")
    ]
    return {"ram": 16_000, "disks": disks}, schema


def plans() -> dict[str, str]:
    """Return every plan, or the reason why there is none, as a text."""
    return {name: _plan(*problem) for name, *problem in _problems()}


def _problems() -> Iterator[tuple[str, t.Any, t.Any, Objective]]:
    for case in CASES:
        for objective in Objective:
            yield f"case {case['id']}, {objective}", case["hw_info"], case["dynamic_schema"], objective
    for path in sorted(PROFILES.glob("*.yml")):
        for name, machine in MACHINES.items():
            yield f"profile {path.stem} on {name}", machine.hardware, load_profile(path), Objective.FAIR
    for seed in range(RANDOM):
        yield f"random {seed}", *random_machine(seed), Objective.FAIR


def _plan(facts: t.Any, schema: t.Any, objective: Objective) -> str:
    try:
        return json.dumps(Planner(schema, objective).plan(facts), sort_keys=True)
    except (InputError, NoSolution) as error:
        return str(error)


if __name__ == "__main__":
    print(json.dumps(plans()))
