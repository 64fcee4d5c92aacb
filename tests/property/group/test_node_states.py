# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every action, with nodes of every state: one that does not answer is neither left nor entered, and none is entered that cannot run it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import solve_each
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import (
    Cluster,
    DiskTemplate,
    Group,
    Instance,
    Node,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.capacity import run_capacity
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.compress import run_compress
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.maintenance import run_maintenance, run_squeeze
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import place
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute
from ansible_collections.bareon.allocator.tests.support.house.share import examples

NEW = {"memory": 3000, "disk": 20_000, "vcpus": 6}
STATES = [{}, {}, {"drained": True}, {"offline": True}, {"unreachable": True}]
TEMPLATES = (DiskTemplate.DRBD, DiskTemplate.PLAIN, DiskTemplate.EXT)
DRAWS = range(examples(30))


def new_instances(template):
    return {"instances": [{**NEW, "name": f"new{number}", "disk_template": template.value} for number in range(2)]}


ACTIONS = {
    "balance": lambda loaded, _node, _template: run_balance(loaded, {"workers": 1}, solve_each),
    "evacuate": lambda loaded, node, _template: run_evacuate(loaded, {"nodes": [node]}),
    "evacuate across groups": lambda loaded, node, _template: run_evacuate(loaded, {"nodes": [node], "across_groups": "true"}),
    "redistribute": lambda loaded, _node, _template: run_redistribute(loaded, {}),
    "compress": lambda loaded, _node, _template: run_compress(loaded, {}),
    "squeeze": lambda loaded, _node, _template: run_squeeze(loaded, {}),
    "maintenance": lambda loaded, _node, _template: run_maintenance(loaded, {}),
    "place": lambda loaded, _node, template: place(loaded, new_instances(template)),
    "make room": lambda loaded, _node, template: place(loaded, {**new_instances(template), "make_room": True}),
}


def drawn_cluster(seed: int, templates: Sequence[DiskTemplate] = TEMPLATES) -> tuple[Cluster, DiskTemplate]:
    """Return two groups of nodes, the first of any state and the others mostly up, half full of instances that not every node can run."""
    chance = random.Random(seed)
    template = chance.choice(templates)
    names = [f"n{number}" for number in range(chance.randint(5, 9))]
    groups = {name: f"g{int(number >= 4)}" for number, name in enumerate(names)}
    free = {name: [chance.choice([12_000, 16_000, 24_000]), 200_000] for name in names}
    totals = {name: (*map(float, both), chance.choice([4.0, 8.0])) for name, both in free.items()}
    instances = []
    for number in range(chance.randint(6, 16)):
        memory, vcpus, home = chance.choice([1000, 2000, 5000]), chance.choice([1, 2, 6]), chance.choice(names)
        peers = [name for name in names if groups[name] == groups[home] and name != home and free[name][1] >= 10_000]
        if vcpus > totals[home][2] or free[home][0] < memory or free[home][1] < 10_000 or (template is DiskTemplate.DRBD and not peers):
            continue
        second = chance.choice(peers) if template is DiskTemplate.DRBD else ""
        free[home][0] -= memory
        for name in filter(None, (home, second) if template is not DiskTemplate.EXT else ()):
            free[name][1] -= 10_000
        kind = {"disk_template": template, "tags": ("service:a",) if chance.random() < 0.2 else ()}
        instances.append(Instance(f"i{number}", memory, 10_000, vcpus, primary=home, secondary=second, **kind))
    nodes = [
        Node(name, groups[name], totals[name][0], 0, free[name][0], totals[name][1], free[name][1], totals[name][2], **state)
        for name in names
        for state in [chance.choice(STATES if name == names[0] else [{}, {}, *STATES])]
    ]
    return Cluster((Group("g0", "u0"), Group("g1", "u1")), tuple(nodes), tuple(instances), ("htools:iextags:service",)), template


def found_in(answer: object, *keys: str) -> Iterator[dict]:
    """Yield all dictionaries of an answer, at any depth, that have these keys."""
    if isinstance(answer, dict):
        if answer.keys() >= set(keys):
            yield answer
        for value in answer.values():
            yield from found_in(value, *keys)
    elif isinstance(answer, list):
        for value in answer:
            yield from found_in(value, *keys)


def faults(cluster: Cluster, answer: object) -> Iterator[tuple]:
    """Yield each move and place that there must not be."""
    nodes = {node.name: node for node in cluster.nodes}
    vcpus = {instance.name: instance.vcpus for instance in cluster.instances}
    for move in found_in(answer, "instance", "from", "to"):
        before, after = move["from"], move["to"]
        if any(nodes[name].unreachable for name in {*before, *after}):
            yield "unreachable", move["instance"], before, after
        if any(nodes[name].state != "up" for name in set(after) - set(before)):
            yield "entered", move["instance"], before, after
        if after[0] not in before and nodes[after[0]].total_cpus < vcpus[move["instance"]]:
            yield "cannot run", move["instance"], before, after
    for solution in found_in(answer, "solutions"):
        for there in found_in(solution["solutions"], "nodes"):
            if any(nodes[name].state != "up" for name in there["nodes"]) or nodes[there["nodes"][0]].total_cpus < NEW["vcpus"]:
                yield "place", there["nodes"]


@pytest.mark.parametrize("action", ACTIONS)
def test_who_does_not_answer_is_neither_left_nor_entered(action):
    found, looked_at = [], 0
    for seed in DRAWS:
        # Disks on nodes keep them from being emptied for good.
        cluster, template = drawn_cluster(seed, [DiskTemplate.EXT] if action in ("compress", "squeeze") else TEMPLATES)
        try:
            answer = ACTIONS[action](Loaded(cluster, {}), cluster.nodes[0].name, template)
        except (InputError, NoSolution):
            continue
        looked_at += len(list(found_in(answer, "instance", "from", "to"))) + len(list(found_in(answer, "score", "nodes")))
        found += [(seed, *fault) for fault in faults(cluster, answer)]
    assert found == []
    assert looked_at > len(DRAWS) // 10


def test_capacity_counts_nodes_that_take_instances():
    counted = 0
    for seed in DRAWS:
        cluster, template = drawn_cluster(seed)
        states = {node.name: node.state for node in cluster.nodes}
        answer = run_capacity(Loaded(cluster, {}), {"spec": {**NEW, "disk_template": template.value}})
        taking = {name for group in answer["groups"] for name in group["nodes"]}
        assert {states[name] for name in taking} <= {"up"}, seed
        counted += len(taking)
    assert counted > len(DRAWS) // 2
