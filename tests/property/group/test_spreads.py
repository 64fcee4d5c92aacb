# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Spreads, and rules that are not strict, against brute force: no plan makes one worse, and any placement that is better is found."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import solve_each
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import WEIGHTS, ScoreMode, Scorer
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.limits import MoveRules
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.moves import MoveEvaluator, MoveOptions, NoPrice
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline, write_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.capacity import run_capacity
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.compress import run_compress
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import report
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import place
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st

POOL = {"type": "external", "pool": "ceph"}
RACKS = {"n1": "rack:a", "n2": "rack:a", "n3": "rack:b", "n4": "rack:c"}
GROUPS = {"n1": "g1", "n2": "g1", "n3": "g1", "n4": "g2", "n5": "g2"}
EXAMPLES = settings(max_examples=examples(40), deadline=None)


def cluster(homes, rules, group_of=None, drained=(), memory=1024, tagged=()):
    names = list(group_of or RACKS)
    nodes = [
        {
            "name": name,
            "group": (group_of or {}).get(name, "g1"),
            "total_memory": 65536,
            "total_cpus": 64,
            "storage": [POOL],
            "tags": [RACKS[name]] if name in RACKS else [],
            "drained": name in drained,
        }
        for name in names
    ]
    instances = [
        {
            "name": f"i{n}",
            "memory": memory,
            "disk": 1024,
            "vcpus": 1,
            "primary": home,
            "storage": POOL,
            "tags": ["web"] if n in tagged else [],
        }
        for n, home in enumerate(homes)
    ]
    groups = [{"name": name} for name in dict.fromkeys((group_of or {}).values())] or [{"name": "g1"}]
    return {"groups": groups, "nodes": nodes, "instances": instances, "rules": rules}


def domains_of(rule, given_cluster):
    """Return the scope and the domain of every node, told by the definition alone; None for one outside."""
    found = {}
    for node in given_cluster["nodes"]:
        tags = [tag for tag in node["tags"] if tag.startswith(rule["over"])]
        by_tag = (node["group"], tags[0]) if tags else None
        found[node["name"]] = {"node": (node["group"], node["name"]), "group": ("", node["group"])}.get(rule["over"], by_tag)
    return found


def divided(rule, given_cluster, where):
    """Return by scope the counts of the domains that have a node that is up."""
    domains = domains_of(rule, given_cluster)
    up = {domains[node["name"]] for node in given_cluster["nodes"] if not node["drained"]} - {None}
    at = [domains[where[name]] for name in rule["instances"] if name in where]
    return {scope: [at.count(domain) for domain in up if domain[0] == scope] for scope in {domain[0] for domain in up}}


def skew(rule, given_cluster, where):
    """Return by how much a spread is broken, summed over its scopes, with those outside of all domains."""
    domains = domains_of(rule, given_cluster)
    outside = sum(domains[where[name]] is None for name in rule["instances"] if name in where)
    return outside + sum(max(0, max(c) - min(c) - rule.get("max_skew", 1)) for c in divided(rule, given_cluster, where).values())


def excess(rule, given_cluster, where):
    """Return how many instances are too many in their domains, as the score counts them, nodes that are up alone."""
    domains = domains_of(rule, given_cluster)
    up = {node["name"] for node in given_cluster["nodes"] if not node["drained"]}
    outside = sum(domains[where[name]] is None and where[name] in up for name in rule["instances"])
    allowed = rule.get("max_skew", 1)
    return outside + sum(max(0, one - min(c) - allowed) for c in divided(rule, given_cluster, where).values() for one in c)


def homes_of(given_cluster):
    return {one["name"]: one["primary"] for one in given_cluster["instances"]}


def walk(given_cluster, moves):
    where = homes_of(given_cluster)
    for move in moves:
        where = {**where, move["instance"]: move["to"][0]}
        yield where


def never_worse(rules, given_cluster, plan):
    """Check every state on the way, in the plan's order and with the moves of each stage turned round."""
    start = homes_of(given_cluster)
    turned = [plan["moves"][number] for stage in plan["stages"] for number in reversed(stage)]
    after = start
    for moves in (plan["moves"], turned):
        for after in walk(given_cluster, moves):
            for rule in rules:
                assert skew(rule, given_cluster, after) <= skew(rule, given_cluster, start), (rule, after)
    return after


@st.composite
def spreads(draw, count, overs=("node", "rack:")):
    names = draw(st.lists(st.sampled_from([f"i{number}" for number in range(count)]), min_size=2, max_size=count, unique=True))
    return {"type": "spread", "instances": names, "over": draw(st.sampled_from(overs)), "max_skew": draw(st.integers(1, 2))}


@st.composite
def clusters(draw, names=tuple(RACKS), overs=("node", "rack:"), rules=2):
    count = draw(st.integers(3, 8))
    homes = draw(st.lists(st.sampled_from(names), min_size=count, max_size=count))
    return homes, draw(st.lists(spreads(count, overs), min_size=1, max_size=rules))


def wish(draw, count):
    names = draw(st.lists(st.sampled_from([f"i{number}" for number in range(count)]), min_size=2, max_size=4, unique=True))
    kind = draw(st.sampled_from(["affinity", "anti_affinity", "pin", "ignore"]))
    return {"type": kind, "instances": names} | ({"nodes": draw(st.sampled_from([["n1"], ["n2", "n4"]]))} if kind == "pin" else {})


@st.composite
def clusters_with_wishes(draw):
    homes, rules = draw(clusters())
    rules = [*rules, wish(draw, len(homes))]
    return homes, [{**rule, "strict": False, "weight": draw(st.sampled_from([0.5, 1, 4]))} for rule in rules]


def wished(rule, given_cluster, where):
    """Return how many instances are not where a wish wants them."""
    start = homes_of(given_cluster)
    nodes = [where[name] for name in rule["instances"]]
    counted = {
        "spread": lambda: excess(rule, given_cluster, where),
        "affinity": lambda: len(nodes) - max(map(nodes.count, nodes)),
        "anti_affinity": lambda: len(nodes) - len(set(nodes)),
        "pin": lambda: sum(node not in rule["nodes"] for node in nodes),
        "ignore": lambda: sum(where[name] != start[name] for name in rule["instances"]),
    }
    return counted[rule["type"]]()


@EXAMPLES
@given(clusters_with_wishes(), st.booleans(), st.sampled_from(list(ScoreMode)))
def test_scores_of_states_places_and_moves_count_rules_by_their_definition(drawn, strict, mode):
    homes, rules = drawn
    rules = [{**rule, "strict": True} if strict and rule["type"] == "spread" else rule for rule in rules]
    given_cluster = cluster(homes, rules)
    state = ClusterState.from_cluster(parse_inline(given_cluster))
    scorer = Scorer(state, mode, state.group_nodes(0))
    bare = ClusterState.from_cluster(parse_inline(cluster(homes, [])))
    points = sum(
        (50.0 if rule.get("strict", True) else rule["weight"]) * wished(rule, given_cluster, homes_of(given_cluster)) for rule in rules
    )
    base = Scorer(bare, mode, bare.group_nodes(0)).score(bare)
    assert scorer.score(state) == pytest.approx(base + WEIGHTS["pri_tags_score"] * points)
    nodes = state.online()
    for instance in range(len(homes)):
        with state.lifted(instance):
            scores = scorer.primary_scores(state, instance, nodes)
        evaluator = MoveEvaluator(state, scorer, MoveRules.of_start(state), MoveOptions())
        (block,) = evaluator.targets.blocks(state, np.array([instance]))
        costs = next(iter(evaluator.costs(evaluator.at(state, scorer.score(state)), block, NoPrice()).values()))
        for node, score, cost in zip(nodes.tolist(), scores.tolist(), costs[0].tolist()):
            after = state.copy()
            after.place(instance, node)
            assert score == pytest.approx(scorer.score(after), abs=1e-7)
            assert cost == np.inf or cost == pytest.approx(scorer.score(after), abs=1e-7)
            if node != state.primary[instance]:
                where = {**homes_of(given_cluster), f"i{instance}": state.facts.nodes.names[node]}
                hard = [rule for rule in rules if rule.get("strict", True)]
                worse = any(skew(rule, given_cluster, where) > skew(rule, given_cluster, homes_of(given_cluster)) for rule in hard)
                assert (cost == np.inf) == worse, (node, hard)


@EXAMPLES
@given(clusters())
def test_balance_breaks_no_spread_and_repairs_one_where_a_placement_keeps_it(drawn):
    homes, rules = drawn
    given_cluster = cluster(homes, rules)
    plan = run_balance(Loaded(parse_inline(given_cluster), {}), {}, solve_each)["plan"]
    after = never_worse(rules, given_cluster, plan)
    if len(rules) == 1:
        assert skew(rules[0], given_cluster, after) == 0, "one spread can always be kept, moving one after the other"


@EXAMPLES
@given(clusters(names=tuple(GROUPS), overs=("node", "group"), rules=1))
def test_balance_of_groups_counts_each_group_by_itself(drawn):
    homes, rules = drawn
    given_cluster = cluster(homes, rules, GROUPS)
    plan = run_balance(Loaded(parse_inline(given_cluster), {}), {"groups": ["g1", "g2"]}, solve_each)["plan"]
    after = never_worse(rules, given_cluster, plan)
    assert rules[0]["over"] == "group" or skew(rules[0], given_cluster, after) == 0


@EXAMPLES
@given(clusters(), st.sampled_from(list(RACKS)))
def test_evacuation_breaks_no_spread_and_empties_a_node_where_brute_force_can(drawn, leaving):
    homes, rules = drawn
    given_cluster = cluster(homes, rules, drained=[leaving])
    found = run_evacuate(Loaded(parse_inline(given_cluster), {}), {"nodes": [leaving]})
    never_worse(rules, given_cluster, found["plan"])
    start = homes_of(given_cluster)
    going = [name for name, home in start.items() if home == leaving]
    others = [node for node in RACKS if node != leaving]
    if any(skew(rule, given_cluster, start) for rule in rules):
        return
    # One after the other: each goes to where every spread holds, those that are still to go counted where they are.
    reached = [start]
    for _turn in going:
        reached = [
            {**where, name: node}
            for where in reached
            for name in going
            for node in others
            if where[name] == leaving and not any(skew(rule, given_cluster, {**where, name: node}) for rule in rules)
        ]
        reached = [dict(pairs) for pairs in {tuple(sorted(where.items())) for where in reached}]
    assert found["unplaced"] or reached, (rules, start)
    # Where spreads share instances, places that are taken one after the other may end where others would not have.
    members = [name for rule in rules for name in rule["instances"]]
    assert not (found["unplaced"] and reached) or len(members) > len(set(members)), (rules, start)


@EXAMPLES
@given(clusters(rules=2), st.integers(1, 3))
def test_new_instances_go_to_domains_that_have_not_too_many(drawn, count):
    homes, rules = drawn
    given_cluster = cluster(homes, [{**rule, "tags": ["new"]} for rule in rules])
    new = [{"name": f"x{n}", "memory": 1024, "disk": 1024, "vcpus": 1, "storage": POOL, "tags": ["new"]} for n in range(count)]
    (solution, *_others) = place(Loaded(parse_inline(given_cluster), {}), {"instances": new[:1]})["solutions"]

    def takes(node):
        for rule in rules:
            where = {**homes_of(given_cluster), "x0": node}
            with_new = {**rule, "instances": [*rule["instances"], "x0"]}
            domains = domains_of(rule, given_cluster)
            counts = divided(with_new, given_cluster, where)[domains[node][0]]
            own = sum(domains[where[name]] == domains[node] for name in with_new["instances"])
            if own - min(counts) > rule["max_skew"]:
                return False
        return True

    can = {node for node in RACKS if takes(node)}
    nodes = {group["nodes"][0] for group in solution["groups"]}
    assert nodes <= can
    assert bool(nodes) == bool(can)
    found = place(Loaded(parse_inline(given_cluster), {}), {"instances": new})
    placed = {one["instance"]: one["groups"][0]["nodes"][0] for one in found["solutions"] if one["groups"]}
    after = {**homes_of(given_cluster), **placed}
    for rule in rules:
        start = skew(rule, given_cluster, homes_of(given_cluster))
        assert skew({**rule, "instances": [*rule["instances"], *placed]}, given_cluster, after) <= start


@EXAMPLES
@given(clusters(names=tuple(GROUPS), overs=("node", "group")), st.sampled_from(["health", "load"]))
def test_redistribution_breaks_no_spread(drawn, by):
    homes, rules = drawn
    given_cluster = cluster(homes, rules, GROUPS, memory=10240)
    found = run_redistribute(Loaded(parse_inline(given_cluster), {}), {"by": by, "across_groups": True})
    never_worse(rules, given_cluster, found["plan"])


@EXAMPLES
@given(clusters(names=tuple(GROUPS), overs=("node", "group")), st.sampled_from(["g1", "g2"]))
def test_compression_breaks_no_spread(drawn, group):
    homes, rules = drawn
    given_cluster = cluster(homes, rules, GROUPS)
    try:
        found = run_compress(Loaded(parse_inline(given_cluster), {}), {"group": group})
    except NoSolution:
        return
    never_worse(rules, given_cluster, found["plan"])


@EXAMPLES
@given(st.lists(st.sampled_from(list(RACKS)), max_size=6), st.sampled_from(["node", "rack:"]), st.integers(1, 2))
def test_capacity_counts_the_copies_that_a_spread_lets_in(homes, over, max_skew):
    rule = {"type": "spread", "tags": ["web"], "over": over, "max_skew": max_skew}
    given_cluster = cluster(homes, [rule], tagged=range(len(homes)))
    spec = {"memory": 20480, "disk": 1024, "vcpus": 1, "disk_template": "ext", "storage": POOL, "tags": ["web"]}
    found = run_capacity(Loaded(parse_inline(given_cluster), {}), {"spec": spec, "redundancy": False})
    room = {name: (65536 - 1024 * homes.count(name)) // 20480 for name in RACKS}
    domain = {name: name if over == "node" else RACKS[name] for name in RACKS}
    rooms = [sum(room[name] for name in RACKS if domain[name] == one) for one in dict.fromkeys(domain.values())]
    counts = [sum(domain[home] == one for home in homes) for one in dict.fromkeys(domain.values())]
    fits = 0
    while any(rooms):
        open_to = [n for n, free in enumerate(rooms) if free]
        after = [(n, [*counts[:n], counts[n] + 1, *counts[n + 1 :]]) for n in open_to]
        allowed = [(counts[n], n) for n, then in after if then[n] - min(then) <= max_skew]
        if not allowed:
            break
        _count, at = min(allowed)
        rooms[at] -= 1
        counts[at] += 1
        fits += 1
    assert found["count"] <= fits
    assert bool(found["count"]) == bool(fits)


@EXAMPLES
@given(clusters_with_wishes())
def test_wishes_are_in_nobodys_way_and_the_best_placement_of_few_is_found(drawn):
    homes, rules = drawn
    given_cluster = cluster(homes, rules)
    parsed = parse_inline(given_cluster)
    assert parse_inline(write_inline(parsed)) == parsed
    unmet = {one["rule"]: one["points"] for one in report(parsed, ScoreMode.CAPACITY)["wishes"]}
    start = homes_of(given_cluster)
    expected = {rule.name: 2 * given["weight"] * wished(given, given_cluster, start) for rule, given in zip(parsed.rules, rules)}
    # Pins and what is to stay share a line where they say the same.
    assert sum(unmet.values()) == pytest.approx(sum(expected.values()))
    leaving = homes[0]
    drained = cluster(homes, rules, drained=[leaving])
    assert not run_evacuate(Loaded(parse_inline(drained), {}), {"nodes": [leaving]})["unplaced"]
    plan = run_balance(Loaded(parsed, {}), {"score": "capacity"}, solve_each)["plan"]
    *_on_the_way, after = [start, *walk(given_cluster, plan["moves"])]

    def points(where):
        return sum(rule["weight"] * wished(rule, given_cluster, where) for rule in rules)

    assert points(after) <= points(start) + 1
    members = sorted({name for rule in rules for name in rule["instances"]})
    if len(members) <= 5:
        best = min(points({**start, **dict(zip(members, nodes))}) for nodes in itertools.product(RACKS, repeat=len(members)))
        assert points(after) <= best + 1.5, (points(after), best)
