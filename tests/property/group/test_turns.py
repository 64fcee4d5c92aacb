# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances whose turn is first move before all others, those whose turn is last after them, and rather, or less, than others."""

from __future__ import annotations

import itertools
import random

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.cluster_source import load_any_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import solve_each
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import NOWHERE
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.order import Budget, Guard, order, reserves_left
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.stages import stages
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import given, settings
from hypothesis import strategies as st

POOL = {"type": "external", "pool": "ceph"}
NODES = ["n1", "n2", "n3"]
EXAMPLES = settings(max_examples=examples(40), deadline=None)


def cluster(homes, memory=1024, drained=(), room=65536):
    nodes = [{"name": name, "total_memory": room, "total_cpus": 64, "storage": [POOL], "drained": name in drained} for name in NODES]
    instances = [
        {"name": f"i{n}", "memory": memory, "disk": 1024, "vcpus": 1, "primary": home, "storage": POOL} for n, home in enumerate(homes)
    ]
    return {"nodes": nodes, "instances": instances}


def loaded(given_cluster, first=(), last=()):
    names = {"move_first": {"instances": list(first)}, "move_last": {"instances": list(last)}}
    return load_any_cluster({"cluster": given_cluster, **{key: value for key, value in names.items() if value["instances"]}}, str)


@st.composite
def turns(draw, count):
    kinds = draw(st.lists(st.sampled_from(["first", "usual", "last"]), min_size=count, max_size=count))
    return [[f"i{n}" for n, kind in enumerate(kinds) if kind == wanted] for wanted in ("first", "last")]


def in_turn(plan, first, last):
    """Check that no stage has moves of an earlier turn than the stages before it, or of two turns."""
    turn = dict.fromkeys(first, 0) | dict.fromkeys(last, 2)
    by_stage = [{turn.get(plan["moves"][number]["instance"], 1) for number in stage} for stage in plan["stages"]]
    assert all(len(here) == 1 for here in by_stage)
    assert all(max(one) <= min(other) for one, other in itertools.pairwise(by_stage))


@EXAMPLES
@given(st.data())
def test_where_there_is_room_for_any_order_turns_are_kept(data):
    count = data.draw(st.integers(3, 8))
    homes = data.draw(st.lists(st.sampled_from(NODES), min_size=count, max_size=count))
    first, last = data.draw(turns(count))
    emptied = run_evacuate(loaded(cluster(homes, drained=["n1"]), first, last), {"nodes": ["n1"]})
    assert not emptied["unplaced"]
    in_turn(emptied["plan"], first, last)
    in_turn(run_balance(loaded(cluster(homes), first, last), {"score": "capacity"}, solve_each)["plan"], first, last)


@EXAMPLES
@given(st.integers(2, 5), st.data())
def test_of_equal_ones_those_move_whose_turn_is_first_and_never_those_whose_turn_is_last(count, data):
    homes = ["n1"] * (3 * count)
    names = [f"i{n}" for n in range(len(homes))]
    first = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2 * count, unique=True))
    last = data.draw(st.lists(st.sampled_from([name for name in names if name not in first]), max_size=count, unique=True))
    plan = run_balance(loaded(cluster(homes), first, last), {"score": "capacity"}, solve_each)["plan"]
    moved = {move["instance"] for move in plan["moves"]}
    # Two thirds leave; a third stays.
    assert len(moved) == 2 * count
    assert set(first) <= moved
    assert not moved & set(last)


@EXAMPLES
@given(st.sets(st.integers(0, 5), min_size=1, max_size=3))
def test_where_not_all_find_room_those_leave_whose_turn_is_first(first):
    given_cluster = cluster(["n1"] * 6, memory=4096, drained=["n1"], room=8192)
    names = [f"i{number}" for number in sorted(first)]
    found = run_evacuate(loaded(given_cluster, names), {"nodes": ["n1"]})
    gone = {one["instance"] for one in found["placed"]}
    assert gone
    assert len(gone & set(names)) == min(len(gone), len(names))


def by_lot(lot, is_mirrored):
    """Return a cluster with scarce memory, and the new nodes of those that move; None where the lot found no places for all."""
    names, size = [f"n{n}" for n in range(lot.randint(3, 5))], lot.choice([4, 6, 8])
    memory = [lot.choice([1, 1, 2, 3]) for _instance in range(lot.randint(4, 9))]

    def homes():
        free, found = dict.fromkeys(names, size), []
        for need in memory:
            fits = [name for name in names if free[name] >= need]
            found.append(fits and lot.choice(fits))
            if fits:
                free[found[-1]] -= need
        return [(home, lot.choice([name for name in names if name != home]) if is_mirrored else "") for home in found]

    here, there = homes(), homes()
    if not all(home for home, _mirror in here + there):
        return None
    disks = {"total_disk": 99999, "free_disk": 99999} if is_mirrored else {"storage": [POOL]}
    nodes = [{"name": name, "total_memory": size * 1024 + 1, "total_cpus": 64, **disks} for name in names]
    instances = [
        {"name": f"i{n}", "memory": need * 1024, "disk": 1024, "vcpus": 1, "primary": home}
        | ({"secondary": mirror, "disk_template": "drbd", "auto_balance": False} if is_mirrored else {"storage": POOL})
        for n, (need, (home, mirror)) in enumerate(zip(memory, here))
    ]
    kinds = [lot.choice(["first", "usual", "last"]) for _instance in instances]
    first, last = ([f"i{n}" for n, kind in enumerate(kinds) if kind == wanted] for wanted in ("first", "last"))
    state = ClusterState.from_cluster(loaded({"nodes": nodes, "instances": instances}, first, last).cluster)
    places = [(names.index(home), names.index(mirror) if mirror else NOWHERE) for home, mirror in there]
    return state, {n: place for n, place in enumerate(places) if there[n] != here[n]}


def is_possible(state, moves, guard):
    now = state.copy()
    for move in moves:
        if now.place_of(move.instance) != move.source or not guard.lets(now, move):
            return False
        now.place(move.instance, *move.target)
    return True


def out_of_turn(state, moves):
    turn = state.facts.instances.turn
    return {(one, other) for one, other in itertools.combinations(moves, 2) if turn[one.instance] > turn[other.instance]}


def moved(moves, at, to):
    rest = [*moves[:at], *moves[at + 1 :]]
    return [*rest[:to], moves[at], *rest[to:]]


@pytest.mark.parametrize("is_mirrored", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_no_move_could_wait_for_those_of_an_earlier_turn_behind_it(seed, is_mirrored):
    """Instances change places on full nodes, in circles as well: taking any one move elsewhere in the plan helps only against limits."""
    made = by_lot(random.Random(seed), is_mirrored)
    if made is None:
        return
    state, targets = made
    guard = Guard.at_every_move(state, reserves_left(state, targets))
    found = order(state, targets, guard, Budget())
    plan = stages(state, found.moves, guard)
    moves = [plan.moves[number] for stage in plan.stages for number in stage]
    assert sorted(found.moves, key=repr) == sorted(moves, key=repr)
    strict = guard.strict() if is_possible(state, moves, guard.strict()) else guard
    assert is_possible(state, moves, strict)
    wrong = out_of_turn(state, moves)
    for one, other in itertools.combinations(range(len(moves)), 2):
        if (moves[one], moves[other]) in wrong:
            for better in (moved(moves, one, other), moved(moves, other, one)):
                assert not (out_of_turn(state, better) < wrong and is_possible(state, better, strict)), (moves[one], moves[other])


def staged(given_cluster, targets, first, last):
    """Return names of instances stage by stage, on the way to targets by name."""
    state = ClusterState.from_cluster(loaded(given_cluster, first, last).cluster)
    numbers, nodes = state.facts.cluster.instance_positions(), state.facts.cluster.node_positions()
    places = {numbers[name]: (nodes[node], NOWHERE) for name, node in targets.items()}
    guard = Guard.at_every_move(state)
    found = order(state, places, guard, Budget())
    assert not found.blocked
    plan = stages(state, found.moves, guard)
    return [[state.facts.instances.names[plan.moves[number].instance] for number in stage] for stage in plan.stages]


def test_whoever_is_last_goes_before_the_first_only_to_make_room():
    """i0 is to go where i1 is; i2 is in nobody's way."""
    given_cluster = cluster(["n1", "n2", "n1"], memory=1536, room=6000)
    given_cluster["nodes"][1]["total_memory"] = 2100
    assert staged(given_cluster, {"i0": "n2", "i1": "n3", "i2": "n3"}, ["i0"], ["i1", "i2"]) == [["i1"], ["i0"], ["i2"]]


def test_a_circle_through_a_third_node_is_closed_before_others_move():
    """i0 and i1 fill a node each and change places by way of n3, where i2 comes from."""
    given_cluster = cluster(["n1", "n2", "n3"], memory=2048, room=3000)
    given_cluster["instances"][2]["memory"] = 512
    given_cluster["nodes"].append(given_cluster["nodes"][2] | {"name": "n4"})
    found = staged(given_cluster, {"i0": "n2", "i1": "n1", "i2": "n4"}, ["i0", "i1"], [])
    assert found[-1] == ["i2"]
    assert sorted(name for stage in found[:-1] for name in stage) in (["i0", "i0", "i1"], ["i0", "i1", "i1"])


@pytest.mark.parametrize(
    ("option", "words", "says"),
    [
        ("move_first", {"instances": ["x"]}, r"move_first.instances\[0\]: x is no instance of the cluster"),
        ("move_last", {"tags": ["x"]}, r"move_last.tags\[0\]: x is a tag of no instance"),
        ("move_last", {"instances": ["i0"]}, "move_last: selects i0, which move_first selects, too"),
    ],
)
def test_mistakes(option, words, says):
    arguments = {"cluster": cluster(["n1"]), "move_first": {"instances": ["i0"]}, option: words}
    with pytest.raises(InputError, match=says):
        load_any_cluster(arguments, str)
