# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prints answers of all solvers to random inputs, a line each: on each machine the same."""

from __future__ import annotations

import json
import random
import sys
import typing as t

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import solve_each
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.capacity import run_capacity
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute
from ansible_collections.bareon.allocator.tests.support.disk.planned import profile_plan, profiles
from ansible_collections.bareon.allocator.tests.support.group.racks import NODES, loaded, two_groups


def guests(chance: random.Random, nodes: t.Sequence[str], count: int) -> list[tuple[int, str, str | None]]:
    """Return guests (GiB, primary, secondary or None)."""
    drawn = [(chance.randint(1, 4), *chance.sample(nodes, 2)) for _guest in range(count)]
    return [(size, primary, secondary if chance.random() < 0.5 else None) for size, primary, secondary in drawn]


def answers(seed: int) -> t.Iterator[t.Any]:
    """Give the plans of a group, of two groups, what fits into one, and the plan of a machine's disks."""
    chance = random.Random(seed)
    group = loaded(guests(chance, sorted(NODES), 9), None)
    yield run_balance(group, {"score": "capacity", "redundancy": "keep"}, solve_each)["plan"]
    yield run_balance(group, {"score": "htools", "redundancy": "keep"}, solve_each)["plan"]
    yield run_capacity(group, {"spec": {"memory": 1024, "disk": 1024, "vcpus": 1}})
    yield run_redistribute(two_groups(guests(chance, ("l1", "l2", "l3"), 7), None), {"by": "load"})["plan"]
    names = profiles()
    yield profile_plan(names[seed % len(names)], "bios" if seed % 2 else "uefi")


def main() -> None:
    """Print the answers to the seeds between two numbers."""
    for seed in range(*map(int, sys.argv[1:3])):
        for number, answer in enumerate(answers(seed)):
            print(seed, number, json.dumps(answer, sort_keys=True, default=str))


if __name__ == "__main__":
    main()
