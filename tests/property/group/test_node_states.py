# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every action, with nodes of every state: one that does not answer is neither left nor entered, and none is entered that cannot run it.

And with rules: who is to stay keeps its mirror as well, rules that cannot hold keep their members where they are and nobody else, and
nobody comes to where a pin or missing hardware keeps it off, as a primary or as a mirror that could not take over.
"""

from __future__ import annotations

import collections
import dataclasses
import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import solve_each
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import (
    Cluster,
    DiskTemplate,
    Group,
    Instance,
    Node,
    Rule,
    RuleKind,
    Tolerance,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.rules import contradictions, members_of
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.follow.record import Record
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.capacity import run_capacity
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.compress import run_compress
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.follow import run_follow
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.maintenance import run_maintenance, run_squeeze
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import place
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute
from ansible_collections.bareon.allocator.tests.support.group.answers import found_in
from ansible_collections.bareon.allocator.tests.support.house.share import examples, share

NEW = {"memory": 3000, "disk": 20_000, "vcpus": 6}
STATES = [{}, {}, {"drained": True}, {"offline": True}, {"unreachable": True}]
TEMPLATES = (DiskTemplate.DRBD, DiskTemplate.PLAIN, DiskTemplate.EXT)
DRAWS = range(examples(30))


def new_instances(template):
    return {"instances": [{**NEW, "name": f"new{number}", "disk_template": template.value} for number in range(2)]}


def followed(loaded):
    arguments = {"urgent_polls": 1, "threshold": 0.1, "target": 0.01}
    return run_follow(loaded, arguments, Record(), datetime(2026, 3, 2, tzinfo=timezone.utc), solve_each).answer


ACTIONS = {
    "balance": lambda loaded, _node, _template: run_balance(loaded, {"workers": 1}, solve_each),
    "evacuate": lambda loaded, node, _template: run_evacuate(loaded, {"nodes": [node]}),
    "evacuate across groups": lambda loaded, node, _template: run_evacuate(loaded, {"nodes": [node], "across_groups": "true"}),
    "redistribute": lambda loaded, _node, _template: run_redistribute(loaded, {}),
    "compress": lambda loaded, _node, _template: run_compress(loaded, {}),
    "squeeze": lambda loaded, _node, _template: run_squeeze(loaded, {}),
    "redistribute load": lambda loaded, _node, _template: run_redistribute(loaded, {"by": "load"}),
    "follow": lambda loaded, _node, _template: followed(loaded),
    "maintenance": lambda loaded, _node, _template: run_maintenance(loaded, {}),
    "full maintenance": lambda loaded, _node, _template: run_maintenance(loaded, {"full_evacuation": True}),
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
        if after[0] != before[0] and nodes[after[0]].total_cpus < vcpus[move["instance"]]:
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
    assert share() > 1 or looked_at > len(DRAWS) // 10, "too few of the draws say anything"


def test_capacity_counts_nodes_that_take_instances():
    counted = 0
    for seed in DRAWS:
        cluster, template = drawn_cluster(seed)
        states = {node.name: node.state for node in cluster.nodes}
        answer = run_capacity(Loaded(cluster, {}), {"spec": {**NEW, "disk_template": template.value}})
        taking = {name for group in answer["groups"] for name in group["nodes"]}
        assert {states[name] for name in taking} <= {"up"}, seed
        counted += len(taking)
    assert share() > 1 or counted > len(DRAWS) // 2, "too few of the draws say anything"


def drawn_rules(cluster: Cluster, chance: random.Random) -> tuple[Rule, ...]:
    """Return a few rules on instances of a cluster, of every kind, some of which cannot hold; where hardware is missing nobody runs."""
    nodes, homes = [node.name for node in cluster.nodes], {one.name: (one.primary, one.secondary) for one in cluster.instances}

    def some(most: int) -> tuple[str, ...]:
        return tuple(chance.sample(sorted(homes), min(most, len(homes))))

    def pin(hardware: bool) -> Rule:
        members, allowed = some(3), set(chance.sample(nodes, chance.randint(2, len(nodes) - 1)))
        if hardware:
            allowed |= {homes[name][0] for name in members}
        return Rule("pin", RuleKind.PIN, members, tuple(sorted(allowed)), hardware=hardware)

    both, three = some(2), some(3)
    kinds = (
        (Rule("stay", RuleKind.IGNORE, some(2)),),
        (pin(hardware=True),),
        (pin(hardware=False),),
        (Rule("apart", RuleKind.ANTI_AFFINITY, some(3)),),
        (Rule("together", RuleKind.AFFINITY, some(2)),),
        (Rule("even", RuleKind.SPREAD, some(4)),),
        (Rule("wish", RuleKind.PIN, some(3), tuple(nodes[:2]), strict=False, weight=2.0),),
        (Rule("one", RuleKind.AFFINITY, three[:2]), Rule("many", RuleKind.ANTI_AFFINITY, three)),
        (Rule("here", RuleKind.PIN, both, tuple(nodes[:1])), Rule("not both", RuleKind.ANTI_AFFINITY, both)),
    )
    return tuple(rule for kind in chance.sample(kinds, chance.randint(1, 4)) for rule in kind)


def broken_rules(cluster: Cluster, answer: object, *, returns: bool) -> Iterator[tuple]:
    """Yield each move that rules forbid; what `returns` after maintenance comes to where it was, and is held to its pins there as well."""
    everywhere = frozenset(node.name for node in cluster.nodes)
    pinned, able = collections.defaultdict(lambda: everywhere), collections.defaultdict(lambda: everywhere)
    staying = {name for one in contradictions(cluster) for name in one.instances}
    for rule, members in zip(cluster.rules, members_of(cluster.rules, cluster.instances)):
        for name in (cluster.instances[member].name for member in members):
            if rule.kind is RuleKind.IGNORE:
                staying.add(name)
            if rule.kind is RuleKind.PIN and rule.strict:
                pinned[name] &= frozenset(rule.nodes)
                able[name] &= frozenset(rule.nodes) if rule.hardware else everywhere
    was_broken = {one.name for one in cluster.instances if one.primary not in pinned[one.name]}
    for move in found_in(answer, "instance", "from", "to"):
        name, before, after = move["instance"], move["from"], move["to"]
        if name in staying:
            yield "stays", name, before, after
        # Mirrors of one whose pin is broken already take over for a while.
        if after[0] != before[0] and after[0] not in pinned[name] and not (returns and len(after) > 1 and name in was_broken):
            yield "pinned", name, before, after
        if any(mirror not in able[name] for mirror in after[1:] if mirror not in before):
            yield "mirror", name, before, after


@pytest.mark.parametrize("action", ACTIONS)
def test_rules_are_kept_beside_nodes_of_every_state(action):
    found, looked_at = [], 0
    for seed in DRAWS:
        chance = random.Random(f"{action} {seed}")
        cluster, template = drawn_cluster(seed, [DiskTemplate.EXT] if action in ("compress", "squeeze") else TEMPLATES)
        tolerate = chance.choice([None, None, Tolerance(nodes=2), Tolerance(percent=30.0)])
        cluster = dataclasses.replace(cluster, rules=drawn_rules(cluster, chance), tolerate=tolerate)
        try:
            answer = ACTIONS[action](Loaded(cluster, {}), cluster.nodes[0].name, template)
        except (InputError, NoSolution):
            continue
        looked_at += len(list(found_in(answer, "instance", "from", "to"))) + len(list(found_in(answer, "score", "nodes")))
        found += [(seed, *fault) for fault in (*faults(cluster, answer), *broken_rules(cluster, answer, returns="maintenance" in action))]
    assert found == []
    assert share() > 1 or looked_at > len(DRAWS) // 20, "too few of the draws say anything"
