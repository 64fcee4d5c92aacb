# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules are limits: nothing that is planned breaks one that holds, and what is broken is repaired where any placement could."""

from __future__ import annotations

import itertools

from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import solve_each
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.capacity import run_capacity
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.compress import run_compress
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import place
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st

NODES = ["n1", "n2", "n3"]
MEMORY = 32768
POOL = {"type": "external", "pool": "ceph"}
EXAMPLES = settings(max_examples=examples(40), deadline=None)


def instance(name, node, memory=1024):
    return {"name": name, "memory": memory, "disk": 1024, "vcpus": 1, "primary": node, "storage": POOL, "disk_template": "ext"}


def cluster(homes, rules, memories=None, drained=()):
    nodes = [{"name": name, "total_memory": MEMORY, "total_cpus": 32, "storage": [POOL], "drained": name in drained} for name in NODES]
    sizes = memories or [1024] * len(homes)
    return {
        "nodes": nodes,
        "instances": [instance(f"i{number}", home, size) for number, (home, size) in enumerate(zip(homes, sizes))],
        "rules": rules,
    }


def broken(rule, where):
    """How many instances are where a rule does not want them; told by the definition alone."""
    nodes = [where[name] for name in rule["instances"]]
    if rule["type"] == "affinity":
        return len(nodes) - max(nodes.count(node) for node in nodes)
    if rule["type"] == "anti_affinity":
        return len(nodes) - len(set(nodes))
    return sum(node not in rule["nodes"] for node in nodes)


@st.composite
def rules_of(draw, count):
    names = draw(st.lists(st.sampled_from([f"i{number}" for number in range(count)]), min_size=2, max_size=3, unique=True))
    kind = draw(st.sampled_from(["affinity", "anti_affinity", "pin"]))
    nodes = draw(st.lists(st.sampled_from(NODES), min_size=1, max_size=2, unique=True)) if kind == "pin" else []
    return {"type": kind, "instances": names} | ({"nodes": nodes} if nodes else {})


@st.composite
def clusters(draw, most_rules=3):
    count = draw(st.integers(4, 7))
    homes = draw(st.lists(st.sampled_from(NODES), min_size=count, max_size=count))
    memories = draw(st.lists(st.sampled_from([1024, 2048, 6144]), min_size=count, max_size=count))
    return homes, draw(st.lists(rules_of(count), min_size=1, max_size=most_rules)), memories


def walk(homes, moves):
    """Yield where instances are after each move."""
    where = {f"i{number}": home for number, home in enumerate(homes)}
    for move in moves:
        where = {**where, move["instance"]: move["to"][0]}
        yield where


@EXAMPLES
@given(clusters())
def test_balance_breaks_no_rule(given_cluster):
    homes, rules, memories = given_cluster
    start = {f"i{number}": home for number, home in enumerate(homes)}
    plan = run_balance(Loaded(parse_inline(cluster(homes, rules, memories)), {}), {}, solve_each)["plan"]
    after = start
    for where in walk(homes, plan["moves"]):
        after = where
        for rule in rules:
            # Those that are to be together go one after the other.
            assert rule["type"] == "affinity" or broken(rule, after) <= broken(rule, start)
    assert all(broken(rule, after) <= broken(rule, start) for rule in rules)


@EXAMPLES
@given(clusters(most_rules=1))
def test_a_broken_rule_is_repaired_where_any_placement_keeps_it(given_cluster):
    homes, (rule,), memories = given_cluster
    plan = run_balance(Loaded(parse_inline(cluster(homes, [rule], memories)), {}), {}, solve_each)["plan"]
    *_on_the_way, after = [{f"i{number}": home for number, home in enumerate(homes)}, *walk(homes, plan["moves"])]
    members = rule["instances"]
    best = min(broken(rule, dict(zip(members, places))) for places in itertools.product(NODES, repeat=len(members)))
    assert broken(rule, after) == best


@EXAMPLES
@given(clusters(), st.sampled_from(NODES))
def test_evacuation_breaks_no_rule_and_empties_a_node_where_brute_force_can(given_cluster, leaving):
    homes, rules, memories = given_cluster
    start = {f"i{number}": home for number, home in enumerate(homes)}
    found = run_evacuate(Loaded(parse_inline(cluster(homes, rules, memories, [leaving])), {}), {"nodes": [leaving]})
    *_on_the_way, after = [start, *walk(homes, found["plan"]["moves"])]
    assert all(broken(rule, after) <= broken(rule, start) for rule in rules)
    # What no single node could hold is stranded by the next failure once there are two nodes left, so somebody stays.
    if any(broken(rule, start) for rule in rules) or sum(memories) > MEMORY:
        return
    going = [name for name, home in start.items() if home == leaving]
    others = [node for node in NODES if node != leaving]
    can = any(
        all(broken(rule, {**start, **dict(zip(going, places))}) == 0 for rule in rules)
        for places in itertools.product(others, repeat=len(going))
    )
    assert bool(found["unplaced"]) == (not can)


@EXAMPLES
@given(clusters(most_rules=2))
def test_a_new_instance_goes_only_where_rules_let_it(given_cluster):
    homes, rules, memories = given_cluster
    # The last of the rules' members is yet to come, and known by its tag.
    *_others, newcomer = sorted({name for rule in rules for name in rule["instances"]})
    given_now = cluster(homes, rules, memories)
    number = int(newcomer[1:])
    new = {key: value for key, value in given_now["instances"].pop(number).items() if key != "primary"} | {"tags": ["new"]}
    start = {f"i{position}": home for position, home in enumerate(homes) if position != number}
    given_now["rules"] = [
        {**rule, "instances": [name for name in rule["instances"] if name != newcomer]}
        | ({"tags": ["new"]} if newcomer in rule["instances"] else {})
        for rule in rules
    ]
    if any(broken(rule, start) for rule in given_now["rules"] if rule["instances"]):
        return
    (solution,) = place(Loaded(parse_inline(given_now), {}), {"instances": [new]})["solutions"]
    used = {node: sum(memories[int(name[1:])] for name, home in start.items() if home == node) for node in NODES}
    roomy = [node for node in NODES if used[node] + memories[number] <= MEMORY]
    can = {node for node in roomy if not any(broken(rule, {**start, newcomer: node}) for rule in rules)}
    nodes = {group["nodes"][0] for group in solution["groups"]}
    assert nodes <= can
    assert bool(nodes) == bool(can)


GROUP_OF = {"n1": "a", "n2": "a", "n3": "b", "n4": "b"}


def two_groups(homes, rules, memories):
    """Return two groups of two nodes each that share storage; a node of 12 GiB may be too full to be failed over from."""
    nodes = [{"name": name, "group": group, "total_memory": 12288, "total_cpus": 32, "storage": [POOL]} for name, group in GROUP_OF.items()]
    return {
        "groups": [{"name": "a"}, {"name": "b"}],
        "nodes": nodes,
        "instances": [instance(f"i{number}", home, size) for number, (home, size) in enumerate(zip(homes, memories))],
        "rules": rules,
    }


@st.composite
def clusters_of_groups(draw):
    count = draw(st.integers(4, 7))
    homes = draw(st.lists(st.sampled_from([*GROUP_OF]), min_size=count, max_size=count))
    memories = draw(st.lists(st.sampled_from([512, 1024, 2048, 6144]), min_size=count, max_size=count))
    return homes, draw(st.lists(rules_of(count), min_size=1, max_size=3)), memories


def never_breaks(homes, rules, moves):
    start = {f"i{number}": home for number, home in enumerate(homes)}
    after = start
    for where in walk(homes, moves):
        after = where
        for rule in rules:
            assert rule["type"] == "affinity" or broken(rule, after) <= broken(rule, start)
    assert all(broken(rule, after) <= broken(rule, start) for rule in rules)


@EXAMPLES
@given(clusters_of_groups(), st.sampled_from(["health", "load"]))
def test_redistribution_breaks_no_rule(given_cluster, by):
    homes, rules, memories = given_cluster
    found = run_redistribute(Loaded(parse_inline(two_groups(homes, rules, memories)), {}), {"by": by, "across_groups": True})
    never_breaks(homes, rules, found["plan"]["moves"])


@EXAMPLES
@given(clusters_of_groups(), st.sampled_from(["a", "b"]))
def test_compression_breaks_no_rule(given_cluster, group):
    homes, rules, memories = given_cluster
    loaded = Loaded(parse_inline(two_groups(homes, rules, memories)), {})
    try:
        found = run_compress(loaded, {"group": group})
    except NoSolution:
        return
    never_breaks(homes, rules, found["plan"]["moves"])


@EXAMPLES
@given(
    st.lists(st.sampled_from(NODES), min_size=1, max_size=4),
    st.lists(st.sampled_from(NODES), max_size=2, unique=True),
    st.booleans(),
)
def test_no_more_copies_fit_than_rules_let_in(homes, pinned, apart):
    rules = [{"type": "anti_affinity", "instances": ["i0"], "tags": ["new"]}] if apart else []
    rules += [{"type": "pin", "tags": ["new"], "nodes": pinned}] if pinned else []
    spec = {"memory": 8192, "disk": 1024, "vcpus": 1, "disk_template": "ext", "storage": POOL, "tags": ["new"]}
    found = run_capacity(Loaded(parse_inline(cluster(homes, rules)), {}), {"spec": spec})
    free = {name: (32768 - 1024 * homes.count(name)) // 8192 for name in pinned or NODES}
    allowed = {name: min(room, 1) if apart else room for name, room in free.items() if not (apart and name == homes[0])}
    assert found["count"] <= sum(allowed.values())
    if apart:
        assert found["count"] == len(allowed), "each goes to a node of its own, and there is room for one on each"
