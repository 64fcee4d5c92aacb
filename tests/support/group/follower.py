# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster that is followed: a clock that is moved by hand, a record that goes through a file's text, and moves that can be cut off."""

from __future__ import annotations

import json
import random
import typing as t
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import Solved
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.plain import plain
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.follow.record import record_from_plain, record_to_plain
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.links import with_links
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.follow import run_follow

BEGIN = datetime(2026, 3, 2, 8, 0, tzinfo=timezone.utc)
"""A Monday."""
MEMORY = 65536


def solve(job: t.Any, tasks: t.Any, resources: t.Any) -> dict[str, Solved[t.Any]]:
    """Plan groups one after the other in this process."""
    return {name: Solved(job(task, resources.seconds), 0.0) for name, task in tasks.items()}


def cluster(nodes: dict[str, str], instances: Iterable[dict[str, t.Any]], **states: str) -> dict[str, t.Any]:
    """Return a cluster of nodes (name: group) with 64 GiB, 2 TiB and 16 CPUs, and instances on shared storage unless mirrored.

    `states` are `offline` or `drained` by name.
    """
    usual = {"total_memory": MEMORY, "total_disk": 2097152, "total_cpus": 16, "node_memory": 0, "node_cpus": 0}
    return {
        "nodes": [
            {"name": name, "group": group, **usual, **({states[name]: True} if name in states else {})} for name, group in nodes.items()
        ],
        "groups": [{"name": group} for group in dict.fromkeys(nodes.values())],
        "instances": [
            {"vcpus": 1, "disk": 10240, "status": "running", "disk_template": "drbd" if one.get("secondary") else "ext", **one}
            for one in instances
        ],
    }


def by_lot(seed: int, nodes: int = 4, count: int = 14) -> dict[str, t.Any]:
    """Return an uneven cluster of one group, drawn by a seed: some instances are mirrored."""
    draw = random.Random(seed)
    names = [f"n{number}" for number in range(nodes)]
    instances = []
    for number in range(count):
        primary, secondary = draw.sample(names[: draw.choice([2, nodes])], 2)
        made = {"name": f"i{number}", "memory": draw.choice([1024, 2048, 4096]), "vcpus": draw.choice([1, 2, 4]), "primary": primary}
        instances.append({**made, "secondary": secondary} if draw.random() < 0.3 else made)
    return cluster(dict.fromkeys(names, "g"), instances)


class Follower:
    """Runs one after the other on a cluster."""

    def __init__(self, told: dict[str, t.Any], **arguments: t.Any) -> None:
        self.told, self.arguments = told, {"cooldown": 0.0, "rest": 0.0, "max_moves": 10, "urgent_polls": 1, **arguments}
        self.now, self.text = BEGIN, ""
        self.searched: list[str] = []
        """The groups for which moves were searched, one after the other."""

    def run(self, minutes: float = 0, **arguments: t.Any) -> dict[str, t.Any]:
        """Let minutes pass and run once; the record is kept, as text."""
        self.now += timedelta(minutes=minutes)
        record = record_from_plain(json.loads(self.text or '{"version": 1}'))

        def noted(job: t.Any, tasks: t.Any, resources: t.Any) -> dict[str, Solved[t.Any]]:
            self.searched += tasks
            return solve(job, tasks, resources)

        loaded = Loaded(with_links(parse_inline(self.told), arguments.get("link_rate"), ()), {})
        followed = run_follow(loaded, {**self.arguments, **arguments}, record, self.now, noted)
        before, self.text = self.text, json.dumps(record_to_plain(followed.record))
        json.dumps(plain(followed.answer))
        return followed.answer | {"changed": followed.record != record, "text": before}

    def carry_out(self, plan: dict[str, t.Any], most: int | None = None) -> None:
        """Do the steps of a plan, stage by stage, at most so many."""
        steps = [
            (plan["moves"][move]["instance"], step) for stage in plan["stages"] for move in stage for step in plan["moves"][move]["steps"]
        ]
        instances = {one["name"]: one for one in self.told["instances"]}
        for name, step in steps[:most]:
            if self.place(name) == tuple(step["from"]):
                instances[name].update(primary=step["to"][0], **({"secondary": step["to"][1]} if len(step["to"]) > 1 else {}))
        assert most is not None or all(self.place(move["instance"]) == tuple(move["to"]) for move in plan["moves"])

    def settle(self, minutes: float = 0, **arguments: t.Any) -> dict[str, t.Any]:
        """Run, carry out what it says, and note that."""
        told = self.run(minutes, **arguments)
        if told["plan"]["moves"]:
            self.carry_out(told["plan"])
            self.run(act=False)
        return told

    def place(self, name: str) -> tuple[str, ...]:
        """Return the nodes of an instance."""
        return next((one["primary"], *filter(None, [one.get("secondary")])) for one in self.told["instances"] if one["name"] == name)

    def places(self) -> tuple[tuple[str, ...], ...]:
        """Return the nodes of all instances."""
        return tuple((one["primary"], one.get("secondary") or "") for one in self.told["instances"])

    def spread(self) -> float:
        """Return the largest difference between shares of memory that nodes use, counted anew."""
        used = dict.fromkeys((node["name"] for node in self.told["nodes"] if not node.get("offline") and not node.get("drained")), 0)
        for one in self.told["instances"]:
            if one["primary"] in used:
                used[one["primary"]] += one["memory"]
        return (max(used.values()) - min(used.values())) / MEMORY
