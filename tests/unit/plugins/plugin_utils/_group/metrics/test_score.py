# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Scores with known values, and what the mode `capacity` promises. Against htools: tests/peers; against an oracle: tests/property."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import WEIGHTS, ScoreMode, Scorer


def metrics(state, mode, members=None):
    return {metric.name: metric.value for metric in Scorer(state, mode, members).metrics(state)}


@pytest.fixture
def lopsided(bench):
    """Two nodes, everything on the first: 300 MiB, 3000 MiB disk, 3 CPUs; the second mirrors one."""
    nodes = [bench.node("a"), bench.node("b")]
    return bench.state(nodes, [bench.instance("i", "a"), bench.instance("j", "a"), bench.instance("k", "a", "b")])


def test_values_by_hand(lopsided):
    assert metrics(lopsided, ScoreMode.HTOOLS) == pytest.approx(
        {
            "free_mem_cv": 0.15,
            "free_disk_cv": 0.1,
            "n1_cnt": 0,
            "reserved_mem_cv": 0.05,
            "offline_all_cnt": 0,
            "offline_pri_cnt": 0,
            "vcpu_ratio_cv": 0.15,
            "cpu_load_cv": 1.5,
            "mem_load_cv": 1.5,
            "disk_load_cv": 1.0,
            "net_load_cv": 1.5,
            "pri_tags_score": 0,
            "spindles_cv": 1 / 32,
            "free_mem_cv_forth": 0.15,
            "free_disk_cv_forth": 0.1,
            "vcpu_ratio_cv_forth": 0.15,
            "spindles_cv_forth": 1 / 32,
            "location_score": 0,
            "location_exclusion_score": 0,
            "reserved_mem_rtotal": 0.1,
        },
    )


def test_score_is_the_weighted_sum(lopsided):
    weighted = [WEIGHTS[name] * value for name, value in metrics(lopsided, ScoreMode.HTOOLS).items()]
    assert Scorer(lopsided, ScoreMode.HTOOLS).score(lopsided) == pytest.approx(sum(weighted))


def test_equal_nodes_have_equal_loads_in_both_modes(lopsided):
    assert metrics(lopsided, ScoreMode.CAPACITY) == pytest.approx(metrics(lopsided, ScoreMode.HTOOLS))


def test_offline_nodes_only_count_what_is_stranded(bench):
    nodes = [bench.node("a", offline=True), bench.node("b"), bench.node("c")]
    found = metrics(bench.state(nodes, [bench.instance("i", "a"), bench.instance("j", "b", "a")]), ScoreMode.HTOOLS)
    assert (found["offline_all_cnt"], found["offline_pri_cnt"]) == (2, 1)
    assert found["cpu_load_cv"] == 0.5


def test_node_twice_as_large_may_carry_twice_as_much(bench):
    large = bench.node("large", total_memory=2000.0, free_memory=2000, total_disk=20000.0, free_disk=20000, total_cpus=20.0, spindles=2)
    instances = [bench.instance("i", "small"), bench.instance("j", "large"), bench.instance("k", "large")]
    state = bench.state([bench.node("small"), large], instances)
    htools, capacity = metrics(state, ScoreMode.HTOOLS), metrics(state, ScoreMode.CAPACITY)
    assert htools["cpu_load_cv"] == 0.5
    for name in ("cpu_load_cv", "mem_load_cv", "disk_load_cv", "vcpu_ratio_cv", "free_mem_cv", "free_disk_cv", "spindles_cv"):
        assert capacity[name] == pytest.approx(0, abs=1e-12), name


def test_faster_cpus_count_as_more_capacity(bench):
    nodes = [bench.node("slow"), bench.node("fast", cpu_speed=3.0)]
    state = bench.state(nodes, [bench.instance("i", "slow"), *(bench.instance(f"j{n}", "fast") for n in range(3))])
    assert metrics(state, ScoreMode.CAPACITY)["cpu_load_cv"] == pytest.approx(0, abs=1e-12)


def test_nodes_without_a_resource_are_neutral(bench):
    """Two diskless nodes beside two half-full ones cost htools a quarter for ever; they should cost nothing."""
    full = {"total_disk": 2000.0, "free_disk": 2000}
    nodes = [bench.node("a", **full), bench.node("b", **full), *(bench.node(name, total_disk=0.0, free_disk=0) for name in "cd")]
    state = bench.state(nodes, [bench.instance("i", "a"), bench.instance("j", "b")])
    assert metrics(state, ScoreMode.HTOOLS)["free_disk_cv"] == pytest.approx(0.25)
    assert metrics(state, ScoreMode.CAPACITY)["free_disk_cv"] == 0


@pytest.mark.parametrize("mode", ScoreMode)
def test_nodes_without_spindles_do_not_make_the_score_nan(bench, mode):
    state = bench.state([bench.node("a", spindles=0), bench.node("b", spindles=0)], [bench.instance("i", "a")])
    assert math.isfinite(Scorer(state, mode).score(state))


@pytest.mark.parametrize("mode", ScoreMode)
def test_nothing_online_scores_without_error(bench, mode):
    state = bench.state([bench.node("a", offline=True)], [bench.instance("i", "a")])
    assert Scorer(state, mode).score(state) == 20


def test_group_score_sees_its_members_only(bench):
    nodes = [bench.node("a"), bench.node("b"), bench.node("c", "other")]
    state = bench.state(nodes, [bench.instance("i", "a"), bench.instance("j", "b"), *(bench.instance(f"k{n}", "c") for n in range(5))])
    assert Scorer(state, ScoreMode.HTOOLS, state.group_nodes(0)).score(state) == pytest.approx(0, abs=1e-12)
    assert Scorer(state, ScoreMode.HTOOLS).score(state) > 1


def test_capacity_mode_counts_n1_by_the_books_and_accepts_an_exact_fit(bench):
    """c keeps 500 MiB for a; it has just that by the books, and reports 300 less."""
    nodes = [bench.node("a"), bench.node("c", total_memory=500.0, free_memory=500)]
    state = bench.state(nodes, [bench.instance("i", "a", "c", memory=500)])
    assert metrics(state, ScoreMode.CAPACITY)["n1_cnt"] == 0
    missing = bench.state([nodes[0], dataclasses.replace(nodes[1], free_memory=200)], [bench.instance("i", "a", "c", memory=500)])
    assert metrics(missing, ScoreMode.CAPACITY)["n1_cnt"] == 1
    assert metrics(missing, ScoreMode.HTOOLS)["n1_cnt"] == 1


def test_exclusion_tags_and_failure_domains_are_counted(bench):
    tags = ["htools:iextags:s", "htools:nlocation:rack", "htools:desiredlocation:rack"]
    nodes = [bench.node("a", tags=("rack:1",)), bench.node("b", tags=("rack:1",)), bench.node("c", tags=("rack:2",))]
    instances = [
        bench.instance("i", "a", "b", tags=("s:1",)),
        bench.instance("j", "a", "c", tags=("s:1", "rack:2")),
        bench.instance("k", "b", tags=("s:1",)),
    ]
    found = metrics(bench.state(nodes, instances, tags=tags), ScoreMode.HTOOLS)
    assert found["pri_tags_score"] == 1
    assert found["location_score"] == 1 + 1, "i's two nodes share a rack; j does not live where it wants to"
    assert found["location_exclusion_score"] == 2, "three instances of one service in one rack"


def test_service_that_meets_itself_in_a_failure_domain_costs_one_for_each_domain(bench):
    tags = ["htools:iextags:s", "htools:nlocation:rack", "htools:nlocation:power"]
    nodes = [bench.node("a", tags=("rack:1", "power:1")), bench.node("b", tags=("rack:1", "power:1")), bench.node("c", tags=("rack:2",))]
    state = bench.state(nodes, [bench.instance("there", "a", tags=("s:1",))], [bench.instance("new", tags=("s:1",))], tags=tags)
    scorer = Scorer(state, ScoreMode.HTOOLS)
    scores = scorer.primary_scores(state, 1, state.online())
    assert scores[1] - scores[2] == pytest.approx(2), "b shares rack and power with the one that is there, and is as empty as c"
    for node, score in enumerate(scores):
        trial = state.copy()
        trial.place(1, node)
        assert scorer.score(trial) == pytest.approx(score)


def test_scores_of_places_leave_the_state_alone(lopsided):
    before = lopsided.copy()
    scorer = Scorer(lopsided, ScoreMode.HTOOLS)
    with lopsided.lifted(2):
        scores = scorer.pair_scores(lopsided, 2, lopsided.online(), lopsided.online())
    assert np.isinf(np.diag(scores)).all()
    assert scores[1, 0] < scores[0, 1], "better on the idle node"
    np.testing.assert_array_equal(lopsided.quantities, before.quantities)
