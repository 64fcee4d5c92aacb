# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances whose turn is first move before all others, those whose turn is last after them, and rather, or less, than others."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.cluster_source import load_any_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import solve_each
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
