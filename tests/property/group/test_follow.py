# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Following a cluster is calm: it comes to rest where nothing changes, and where load is noisy it moves no more than it may."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import typing as t
from collections.abc import Iterator
from datetime import timedelta

from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.tests.support.group.follower import Follower, by_lot
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FEW = settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
SEEDS = st.integers(0, 10_000)
EVERY = 5
"""Minutes between two runs."""


@FEW
@given(SEEDS, st.sampled_from(["imbalance", "score"]), st.integers(1, 4), st.booleans())
def test_what_does_not_change_comes_to_rest_and_is_never_as_it_was(seed, measure, most, dead):
    told = by_lot(seed)
    if dead:
        told["nodes"][-1]["offline"] = True
    follower = Follower(told, measure=measure, threshold=0.05, max_moves=most)
    seen = [follower.places()]
    for _run in range(60):
        plan = follower.settle(EVERY)["plan"]
        if not plan["moves"]:
            break
        assert follower.places() not in seen, "it leads back to where it was"
        seen.append(follower.places())
    assert not plan["moves"], "it does not come to rest"
    again = [follower.run(EVERY) for _run in range(3)]
    assert not any(one["plan"]["moves"] or one["changed"] for one in again[1:])


def noise(draw: random.Random, base: dict[str, float], amplitude: float) -> dict[str, dict[str, float]]:
    return {name: {"cpu": max(0.0, value + draw.uniform(-amplitude, amplitude))} for name, value in base.items()}


def measured(follower: Follower, load: dict[str, dict[str, float]]) -> float:
    """Return how unevenly the nodes of 16 CPUs are loaded, counted anew."""
    nodes = {node["name"]: 0.0 for node in follower.told["nodes"]}
    for one in follower.told["instances"]:
        nodes[one["primary"]] += load[one["name"]]["cpu"] / 16
    return max(nodes.values()) - min(nodes.values())


@FEW
@given(SEEDS, st.floats(0.05, 0.6))
def test_noise_moves_no_more_than_hysteresis_and_cooldown_allow(seed, amplitude):
    draw = random.Random(seed)
    told = by_lot(seed)
    base = {one["name"]: draw.uniform(0.2, 2.0) for one in told["instances"]}
    follower = Follower(
        told, resources=["cpu_load"], threshold=0.2, target=0.1, cooldown=1800.0, rest=7200.0, max_moves=2, urgent=[], data_price=0.0
    )
    acted, moved, on_the_way = [], {}, False
    for _run in range(36):
        load = noise(draw, base, amplitude)
        before = measured(follower, load)
        plan = follower.settle(EVERY, load=load)["plan"]
        on_the_way = on_the_way and before > 0.1
        if not plan["moves"]:
            continue
        assert before > 0.2 or on_the_way, "below the threshold only what has begun goes on"
        on_the_way = True
        assert len(plan["moves"]) <= 2
        assert all(follower.now - last >= timedelta(seconds=1800) for last in acted[-1:])
        acted.append(follower.now)
        for move in plan["moves"]:
            last = moved.get(move["instance"])
            assert last is None or follower.now - last >= timedelta(seconds=7200)
            moved[move["instance"]] = follower.now
    assert len(acted) <= 1 + 36 * EVERY // 30


@FEW
@given(SEEDS)
def test_noise_below_the_threshold_moves_nothing(seed):
    draw = random.Random(seed)
    told = by_lot(seed)
    base = {one["name"]: draw.uniform(0.2, 2.0) for one in told["instances"]}
    follower = Follower(told, resources=["cpu_load"], threshold=0.2, target=0.1, urgent=[], data_price=0.0)
    quiet = {name: {"cpu": value} for name, value in base.items()}
    for _run in range(8):
        follower.settle(EVERY, load=quiet)
    if measured(follower, quiet) > 0.1:
        return
    # Fourteen instances: two nodes together differ by less than 14 / 16 of the amplitude.
    for _run in range(8):
        assert not follower.settle(EVERY, load=noise(draw, base, 0.1))["plan"]["moves"]


@FEW
@given(SEEDS, st.integers(0, 6))
def test_a_run_that_is_cut_off_goes_on_with_the_same_plan(seed, steps):
    whole, cut = (Follower(by_lot(seed), threshold=0.05, cooldown=3600.0) for _one in range(2))
    first = whole.settle()["plan"]
    begun = cut.run()["plan"]
    assert begun["moves"] == first["moves"]
    cut.carry_out(begun, steps)
    pending = json.loads(cut.text)["pending"]
    again = cut.run(EVERY)
    if again["resumed"]:
        assert (again["plan"]["moves"], again["plan"]["stages"]) == (first["moves"], first["stages"])
        assert json.loads(cut.text)["pending"] == pending
    else:
        # All is done, or what is left would make the group no better: the cooldown has begun.
        assert not again["plan"]["moves"]
        assert cut.places() == whole.places() or whole.run()["groups"][0]["score"] >= again["groups"][0]["score"]
        return
    cut.carry_out(first)
    assert cut.places() == whole.places()
    assert not cut.run(EVERY)["plan"]["moves"], "the cooldown has begun"


ODD = (
    None,
    True,
    -1,
    0,
    1e22,
    10**400,
    float("nan"),
    "",
    "x",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-12:00",
    "\ud800",
    [],
    {},
    [[]],
    ["x"],
)


def places(told: t.Any, path: tuple[t.Any, ...] = ()) -> Iterator[tuple[t.Any, ...]]:
    """Yield the way to everything that a record holds."""
    for key, value in told.items() if isinstance(told, dict) else enumerate(told) if isinstance(told, list) else ():
        yield (*path, key)
        yield from places(value, (*path, key))


def written() -> tuple[Follower, dict[str, t.Any]]:
    """Return a follower with a record that has something of everything."""
    follower = Follower(by_lot(3), threshold=0.05, cooldown=3600.0, rest=7200.0, max_moves=2, urgent=[])
    follower.settle()
    follower.run(61)
    told = json.loads(follower.text)
    told["groups"].setdefault("g", {})["fruitless"] = {"repair": "0123456789abcdef"}
    return follower, told


FOLLOWER, WRITTEN = written()


@settings(max_examples=examples(40), deadline=None)
@given(st.sampled_from(list(places(WRITTEN))), st.sampled_from(ODD))
def test_a_damaged_record_is_used_or_refused_with_a_sentence(path, odd):
    damaged: t.Any = copy.deepcopy(WRITTEN)
    inner = damaged
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = odd
    follower = Follower(FOLLOWER.told, **FOLLOWER.arguments)
    follower.now, follower.text = FOLLOWER.now, json.dumps(damaged)
    with contextlib.suppress(InputError):
        follower.run(1)
