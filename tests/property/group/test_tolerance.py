# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Failures of several nodes against brute force: what they strand is the least possible, and no plan makes it more."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import solve_each
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.capacity import run_capacity
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.compress import run_compress
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import report, summary
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import place
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute
from ansible_collections.bareon.allocator.tests.support.group.racks import GIB, NODES, POOL, ROOM, SIDES, loaded, two_groups
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

EXAMPLES = settings(max_examples=examples(40), deadline=None)
tolerances = st.sampled_from([{"nodes": 1}, {"nodes": 2}, {"percent": 45}, {"percent": 60}, {"domain": "rack:"}])


def failing_sets(tolerate, up, tags=None):
    """Return all sets of nodes that may fail at once, by the definition alone."""
    tags = tags or NODES
    every = [set(names) for size in range(2, len(up) + 1) for names in itertools.combinations(up, size)]
    if "domain" in tolerate:
        return [names for names in every if names == {name for name in up if tags[name] == tags[min(names)]}]
    if "nodes" in tolerate:
        return [names for names in every if len(names) == tolerate["nodes"]]
    return [names for names in every if len(names) * 100 <= tolerate["percent"] * len(up)]


def least_short(guests, failing, up):
    """Return the GiB that find no place at least when nodes fail together, by trying every arrangement."""
    left = {name: ROOM - sum(size for size, primary, _other in guests if primary == name) for name in up if name not in failing}
    for size, primary, secondary in guests:
        if primary in failing and secondary in left:
            left[secondary] -= size
    overloaded = sum(max(0, -room) for room in left.values())
    going = [size for size, primary, secondary in guests if primary in failing and not secondary]
    best = sum(going)
    for places in itertools.product([None, *left], repeat=len(going)):
        full = {name: sum(size for size, at in zip(going, places) if at == name) for name in left}
        if all(not used or used <= max(0, left[name]) for name, used in full.items()):
            best = min(best, sum(size for size, at in zip(going, places) if at is None))
    return overloaded + best


@st.composite
def guests_of(draw, most=6):
    """Draw guests that fit where they are, mirrored ones and others."""
    found = []
    for _number in range(draw(st.integers(2, most))):
        size, primary = draw(st.sampled_from([1, 2, 3, 4])), draw(st.sampled_from([*NODES]))
        secondary = draw(st.sampled_from([None, None, *(name for name in NODES if name != primary)]))
        if sum(one for one, at, _other in found if at == primary) + size <= ROOM:
            found.append((size, primary, secondary))
    assume(found)
    return found


def after_plan(guests, moves):
    """Yield the guests after each move."""
    now = list(guests)
    for move in moves:
        number = int(move["instance"][1:])
        to = [*move["to"], None][:2]
        now = [*now[:number], (now[number][0], *to), *now[number + 1 :]]
        yield now


def never_more(guests, tolerate, plan, up, leaving=()):
    """Check after each move, and with the moves of each stage turned round, that no failure strands more than before."""
    sets = [names for names in failing_sets(tolerate, up) if not names & set(leaving)]
    before = [least_short(guests, names, up) for names in sets]
    turned = [plan["moves"][number] for stage in plan["stages"] for number in reversed(stage)]
    for moves in (plan["moves"], turned):
        for now in after_plan(guests, moves):
            for names, most in zip(sets, before):
                assert len(names) == len(up) or least_short(now, names, up) <= most, (names, now)


@EXAMPLES
@given(guests_of(), tolerances)
def test_what_nodes_that_fail_together_strand_is_the_least_that_any_arrangement_strands(guests, tolerate):
    found = report(loaded(guests, tolerate).cluster, ScoreMode.CAPACITY)
    expected = {frozenset(names): least_short(guests, names, NODES) * GIB for names in failing_sets(tolerate, NODES)}
    if "percent" in tolerate:
        expected = {names: short for names, short in expected.items() if not any(names < other for other in expected)}
    expected = {names: short for names, short in expected.items() if len(names) > 1}
    (group,) = found["groups"]
    assert {frozenset(one["nodes"]): one["short"] for one in group["failures"]} == expected
    for one in group["failures"]:
        both = {f"i{n}" for n, (_size, first, second) in enumerate(guests) if {first, second} <= set(one["nodes"])}
        shared = {f"i{n}" for n, (_size, first, second) in enumerate(guests) if first in one["nodes"] and not second}
        assert set(one["lost"]) == both
        assert set(one["stranded"]) <= shared
    problems = [problem for problem in found["problems"] if problem["kind"] == "tolerance"]
    assert len(problems) == sum(short > 0 for short in expected.values())
    assert all(problem["says"] in summary(found) for problem in problems)


@EXAMPLES
@given(guests_of(), tolerances)
def test_balance_strands_no_more(guests, tolerate):
    plan = run_balance(loaded(guests, tolerate), {"score": "capacity", "redundancy": "keep"}, solve_each)["plan"]
    never_more(guests, tolerate, plan, [*NODES])


@EXAMPLES
@given(guests_of(), tolerances, st.sampled_from([*NODES]))
def test_evacuation_strands_no_more(guests, tolerate, leaving):
    found = run_evacuate(loaded(guests, tolerate, [leaving]), {"nodes": [leaving]})
    never_more(guests, tolerate, found["plan"], [name for name in NODES if name != leaving])


@EXAMPLES
@given(guests_of(), tolerances, st.sampled_from([1, 4, 8]))
def test_a_new_instance_goes_where_a_place_strands_no_more_and_nowhere_else(guests, tolerate, size):
    new = {"name": "x", "memory": size * GIB, "disk": GIB, "vcpus": 1, "storage": POOL}
    (solution,) = place(loaded(guests, tolerate), {"instances": [new]})["solutions"]
    sets = [{name} for name in NODES] + failing_sets(tolerate, NODES)

    def holds(node):
        used = sum(one for one, primary, _other in guests if primary == node) + size
        after = [*guests, (size, node, None)]
        kept = sum(one for one, primary, other in guests if other == node)
        return used + kept <= ROOM and all(least_short(after, names, NODES) <= least_short(guests, names, NODES) for names in sets)

    nodes = {group["nodes"][0] for group in solution["groups"]}
    can = {name for name in NODES if holds(name)}
    assert bool(nodes) >= bool(can)
    for node in nodes:
        after = [*guests, (size, node, None)]
        assert all(least_short(after, names, NODES) <= least_short(guests, names, NODES) for names in sets)


@EXAMPLES
@given(guests_of(4), tolerances)
def test_counted_copies_strand_no_more(guests, tolerate):
    spec = {"memory": 4 * GIB, "disk": GIB, "vcpus": 1, "disk_template": "ext", "storage": POOL}
    plain = run_capacity(loaded(guests, None), {"spec": spec})["count"]
    found = run_capacity(loaded(guests, tolerate), {"spec": spec})["count"]
    assert found <= plain
    sets = failing_sets(tolerate, NODES)
    before = sum(size for size, _primary, _secondary in guests)
    for names in sets if found else ():
        left = ROOM * (len(NODES) - len(names))
        assert before + 4 * found - least_short(guests, names, NODES) - sum(s for s, p, q in guests if {p, q} <= names) <= left


@EXAMPLES
@given(guests_of(), tolerances)
def test_redistribution_strands_no_more(guests, tolerate):
    never_more(guests, tolerate, run_redistribute(loaded(guests, tolerate), {"by": "load"})["plan"], [*NODES])


def stranded_in_both(guests, tolerate):
    """Return the GiB that each failure strands in its group, whose instances cannot go to the other one."""
    found = []
    for side in "lr":
        up = [name for name in SIDES if name[0] == side]
        own = [guest for guest in guests if guest[1][0] == side]
        found += [least_short(own, names, up) for names in failing_sets(tolerate, up, SIDES)]
    return found


def strands_more(guests, tolerate, plan):
    """Return whether a move of a plan of two groups has a failure strand more than before."""
    before = stranded_in_both(guests, tolerate)
    after = (stranded_in_both(now, tolerate) for now in after_plan(guests, plan["moves"]))
    return any(later > first for now in after for first, later in zip(before, now))


def balanced(guests, tolerate):
    return run_balance(loaded(guests, tolerate), {"score": "capacity", "redundancy": "keep"}, solve_each)["plan"]


def redistributed(guests, tolerate):
    return run_redistribute(two_groups(guests, tolerate), {"by": "load"})["plan"]


def compressed(guests, tolerate):
    return run_compress(two_groups(guests, tolerate), {"groups": ["left", "right"]})["plan"]


SHARP_BALANCES = [
    (
        {"nodes": 2},
        [
            *((2, "n1", None), (4, "n5", "n2"), (1, "n2", "n5"), (4, "n1", "n4"), (2, "n1", "n2"), (2, "n1", "n2")),
            *((2, "n2", "n4"), (1, "n1", "n5"), (2, "n2", None)),
        ],
    ),
    (
        {"percent": 60},
        [
            *((4, "n2", None), (3, "n3", None), (3, "n1", None), (2, "n4", "n5"), (4, "n3", "n5"), (3, "n1", "n5")),
            *((4, "n2", "n3"), (1, "n2", "n5")),
        ],
    ),
    (
        {"domain": "rack:"},
        [(1, "n4", None), (3, "n1", "n5"), (4, "n5", "n2"), (3, "n1", None), (2, "n1", "n3"), (3, "n1", "n2"), (1, "n5", None)],
    ),
]
"""Clusters that a balance makes worse which does not know what may fail at once."""
FULL = [
    *((4, "l1", "l2"), (4, "r1", "r2"), (4, "l3", "l2"), (2, "r2", None), (3, "l2", None), (3, "r2", "r3"), (2, "l3", None)),
]
"""Of which a group can be emptied, but not if two nodes of the other one are to fail at once."""
UNEVEN = [
    *((2, "l2", None), (4, "r3", None), (4, "l1", None), (1, "l3", None)),
    *((3, "l3", None), (3, "l1", None), (2, "l1", None), (3, "r1", None)),
]
both_groups = pytest.mark.parametrize("tolerate", [{"nodes": 2}, {"percent": 70}, {"domain": "rack:"}])


@pytest.mark.parametrize(("tolerate", "guests"), SHARP_BALANCES)
def test_balance_would_strand_more_otherwise(tolerate, guests):
    with pytest.raises(AssertionError):
        never_more(guests, tolerate, balanced(guests, None), [*NODES])
    plan = balanced(guests, tolerate)
    assert plan["moves"]
    never_more(guests, tolerate, plan, [*NODES])


@both_groups
def test_redistribution_would_strand_more_otherwise(tolerate):
    assert strands_more(UNEVEN, tolerate, redistributed(UNEVEN, None))
    plan = redistributed(UNEVEN, tolerate)
    assert plan["moves"]
    assert not strands_more(UNEVEN, tolerate, plan)


@both_groups
def test_compression_would_strand_more_otherwise(tolerate):
    assert strands_more(FULL, tolerate, compressed(FULL, None))
    assert not compressed(FULL, tolerate)["moves"]
