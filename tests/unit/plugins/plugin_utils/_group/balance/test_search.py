# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""group_balance's answers: which groups, what they are told to keep to, measured load, choices; and bugs of hbal that are absent."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.parallel import Solved, solve_each
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance import hbal
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance import search as balance_module
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.group import Assignment, plan_group
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.hbal import HbalOptions
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.model import BalanceOptions
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.super_cluster import PRICES
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.loads import with_loads
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate, Load
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.moves import MoveKind, make_move
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.price import Prices
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.balance import run_balance
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

SHARED = {"disk_template": DiskTemplate.EXT}


def here(job, tasks, resources):
    return {name: Solved(job(task, resources.seconds), 0.0) for name, task in tasks.items()}


def balanced(cluster, solve=here, **arguments):
    return run_balance(Loaded(cluster, {}), arguments, solve)


@pytest.fixture(scope="module")
def three():
    """Three groups: the first balanced but for little, the second with all on one node, the third with less of that."""
    return parse_text(generate(nodes=15, groups=3, per_node=4, seed=2).text())


def test_the_worst_group_is_chosen(three):
    told = balanced(three)
    worst = told["scores"][0]
    assert [one["score"] for one in told["scores"]] == sorted((one["score"] for one in told["scores"]), reverse=True)
    assert [(one["group"], one["score_before"]) for one in told["groups"]] == [(worst["group"], worst["score"])]
    assert told["groups"][0]["score_after"] < worst["score"] / 2
    assert {move["group"] for move in told["plan"]["moves"]} == {worst["group"]}
    assert told["plan"]["score_after"] < told["plan"]["score_before"]


def test_a_group_that_cannot_be_improved_is_passed_over(bench):
    stuck = [bench.node(name, group="stuck") for name in ("a", "b")]
    other = [bench.node(name, group="other") for name in ("c", "d")]
    plain = [bench.instance(f"p{number}", "a") for number in range(8)]
    shared = [bench.instance(f"s{number}", "c", **SHARED) for number in range(4)]
    told = balanced(bench.cluster([*stuck, *other], [*plain, *shared]))
    assert [one["group"] for one in told["scores"]] == ["stuck", "other"]
    assert [one["group"] for one in told["groups"]] == ["other"]
    nothing = balanced(bench.cluster(stuck, plain))
    assert nothing["left_out"] == {"local_disks": 8}
    assert nothing["summary"].splitlines()[0] == "There is nothing to improve."


def test_groups_are_planned_apart_and_joined(three):
    every = balanced(three, max_groups=9)
    alone = [balanced(three, groups=[one["group"]]) for one in every["groups"]]
    assert len(alone) == 3
    assert [one["groups"][0] for one in alone] == every["groups"]
    assert len(every["plan"]["moves"]) == sum(len(one["plan"]["moves"]) for one in alone)
    first = len(alone[0]["plan"]["moves"])
    assert [move["after"] for move in every["plan"]["moves"][first:]][: len(alone[1]["plan"]["moves"])] == [
        [first + earlier for earlier in move["after"]] for move in alone[1]["plan"]["moves"]
    ]
    assert len(every["plan"]["stages"]) == max(len(one["plan"]["stages"]) for one in alone)
    assert sorted(number for stage in every["plan"]["stages"] for number in stage) == list(range(len(every["plan"]["moves"])))


def test_processes_plan_the_same(three):
    assert balanced(three, solve_each, max_groups=3, workers=2) == balanced(three, max_groups=3)


def test_without_time_groups_are_unfinished(three):
    told = balanced(three, solve_each, groups=["group-01"], time_limit=0.0)
    assert (told["unfinished"], told["groups"], told["plan"]["moves"]) == (["group-01"], [], [])


def test_limits_on_moves_and_data(three):
    free = balanced(three)["groups"][0]
    few = balanced(three, max_moves=3)["groups"][0]
    little = balanced(three, max_data="60 GiB")["groups"][0]
    none = balanced(three, disk_moves=False)["groups"][0]
    assert few["moves"] <= 3 < free["moves"]
    assert 0 < little["data"] <= 60 * 1024 < free["data"]
    assert none["data"] == 0 < none["moves"]
    assert all(one["score_after"] < one["score_before"] for one in (few, little, none))


def test_least_gain_holds_at_any_score(three):
    """hbal compares the score, which has a floor on mirrored clusters, with a limit below that floor: its least gain never counts."""
    for mode in ("score", "htools"):
        usual, picky = (balanced(three, mode=mode, **gain)["groups"][0] for gain in ({}, {"min_gain": 0.5}))
        assert picky["moves"] < usual["moves"]
        assert picky["score_before"] - picky["score_after"] >= 0.5 * picky["moves"]


def test_nodes_without_spindles_are_balanced(bench):
    """hbal's score is not a number then, so that it does nothing and says nothing."""
    nodes = [dataclasses.replace(bench.node(name), spindles=0) for name in ("a", "b", "c")]
    instances = [bench.instance(f"i{number}", "a", "b", spindle_use=0) for number in range(6)]
    for mode in ("score", "htools"):
        told = balanced(bench.cluster(nodes, instances), mode=mode)["groups"][0]
        assert told["moves"] > 0
        assert told["score_after"] < told["score_before"] < 1e6


def test_evacuation_moves_only_what_is_on_nodes_that_are_down(bench):
    nodes = [bench.node("a", offline=True), *(bench.node(name) for name in "bcd")]
    instances = [bench.instance("x", "a", "b"), bench.instance("y", "b", "a"), *(bench.instance(f"z{i}", "c", "d") for i in range(5))]
    told = balanced(bench.cluster(nodes, instances), evacuation=True)
    assert {move["instance"] for move in told["plan"]["moves"]} == {"x", "y"}
    assert told["groups"][0]["offline"] == []


def test_what_cannot_leave_is_named(bench):
    nodes = [bench.node("a", offline=True), bench.node("b", offline=True), bench.node("c"), bench.node("d")]
    told = balanced(bench.cluster(nodes, [bench.instance("x", "a", "b"), bench.instance("p", "a"), bench.instance("y", "a", "c")]))
    assert told["groups"][0]["offline"] == ["x", "p"]


def test_a_group_without_a_node_that_is_up_has_no_moves(bench):
    nodes = [bench.node(name, offline=True) for name in ("a", "b")]
    for mode in ("score", "htools"):
        told = balanced(bench.cluster(nodes, [bench.instance("x", "a", "b")]), mode=mode, groups=["g"])
        assert (told["groups"][0]["moves"], told["groups"][0]["offline"]) == (0, ["x"])


def test_shared_storage_keeps_its_reserve(bench):
    """hbal makes a cluster that survives every failure one that does not, for the sake of its score."""
    nodes = [bench.node(name, total_cpus=99.0) for name in ("a", "b", "c")]
    small = [bench.instance(f"s{number}", "a", memory=120, **SHARED) for number in range(7)]
    cluster = bench.cluster(nodes, [*small, bench.instance("n", "c", memory=700, **SHARED)])
    after = parse_inline(balanced(cluster, export=["cluster"])["cluster"])
    free = {node.name: node.free_memory for node in after.nodes}
    home = {instance.name: instance.primary for instance in after.instances}
    assert max(left for name, left in free.items() if name != home["n"]) >= 700
    theirs = parse_inline(balanced(cluster, mode="htools", export=["cluster"])["cluster"])
    home = {instance.name: instance.primary for instance in theirs.instances}
    assert max(node.free_memory for node in theirs.nodes if node.name != home["n"]) < 700


def test_measured_load_is_levelled(bench):
    nodes = [bench.node(name) for name in ("a", "b")]
    names = ["busy1", "busy2", "idle1", "idle2"]
    instances = [bench.instance(name, "a" if name.startswith("busy") else "b", "b" if name.startswith("busy") else "a") for name in names]
    load = {name: {"cpu": 8.0 if name.startswith("busy") else 0.0} for name in names}
    assert balanced(bench.cluster(nodes, instances))["plan"]["moves"] == []
    told = balanced(bench.cluster(nodes, instances), load=load, disk_moves=False, export=["cluster"])
    homes = {instance["name"]: instance["primary"] for instance in told["cluster"]["instances"]}
    assert homes["busy1"] != homes["busy2"]


def test_load_of_nodes_is_shared_by_those_that_were_not_measured(bench):
    instances = [bench.instance("x", "a", vcpus=1, memory=100), bench.instance("y", "a", vcpus=3, memory=100), bench.instance("z", "a")]
    cluster = with_loads(bench.cluster([bench.node("a")], instances), {"z": Load(2.0, 0.0, 0.0, 9.0)}, {"a": Load(6.0, 1.0, 4.0, 5.0)})
    assert [instance.load for instance in cluster.instances] == [
        Load(1.0, 0.5, 2.0, 0.0),
        Load(3.0, 0.5, 2.0, 0.0),
        Load(2.0, 0.0, 0.0, 9.0),
    ]


def test_choices_are_worth_choosing_from(three):
    told = balanced(three, pareto=True)
    choices = told["pareto"]
    assert len(choices) > 2
    scores, data = [one["score"] for one in choices], [one["data"] for one in choices]
    assert scores == sorted(scores)
    for one in choices:
        assert not any(
            other["score"] < one["score"] and other["data"] < one["data"] and other["moves"] <= one["moves"] for other in choices
        )
    assert min(data) < max(data)
    chosen = next(one for one in choices if one["chosen"])
    assert (chosen["score"], chosen["data"]) == (told["groups"][0]["score_after"], told["groups"][0]["data"])


def test_the_choices_of_all_groups_are_planned_side_by_side(three):
    rounds = []

    def noting(job, tasks, resources):
        rounds.append([(task.group, task.options.prices.data) for task in tasks.values()])
        return here(job, tasks, resources)

    told = balanced(three, noting, groups=["group-02", "group-03"], pareto=True)
    own = rounds[0][0][1]
    assert rounds[-1] == [(group, price) for group in (1, 2) for price in PRICES if price != own], "a plan is not made twice"
    for group in ("group-02", "group-03"):
        alone = balanced(three, groups=[group], pareto=True)
        assert [one for one in told["pareto"] if one["group"] == group] == alone["pareto"]


def test_every_mistake_is_told_at_once(three):
    with pytest.raises(InputError) as caught:
        balanced(
            three, mode="htools", groups=["group-1"], max_moves=-1, max_data="much", pareto=True, load={"nobody": {"cpus": 1, "net": "x"}}
        )
    assert {mistake.place for mistake in caught.value.mistakes} == {
        "max_moves",
        "max_data",
        "pareto",
        "groups[0]",
        "load[nobody]",
        "load[nobody].cpus",
        "load[nobody].net",
    }


def test_the_summary_shows_groups_choices_and_stages(three):
    lines = balanced(three, pareto=True)["summary"].split("\n")
    assert lines[0].split() == ["group", "score", "after", "moves", "data", "stages"]
    assert sum(line.startswith("*") for line in lines) == 1
    assert any(line.split()[:1] == ["stage"] for line in lines)


def test_the_summary_says_what_is_left_undone(bench):
    nodes = [bench.node("down", offline=True), bench.node("full"), bench.node("free")]
    stuck = [bench.instance(f"stuck{number}", "down") for number in range(8)]
    told = balanced(bench.cluster(nodes, [*stuck, *(bench.instance(f"s{number}", "full", **SHARED) for number in range(4))]))
    assert told["groups"][0]["offline"] == [f"stuck{number}" for number in range(8)]
    said = [line for line in told["summary"].splitlines() if "offline or drained" in line]
    assert said == ["g: still on a node that is offline or drained: stuck0, stuck1, stuck2, stuck3, stuck4, stuck5 and 2 more"]


def test_the_summary_names_groups_for_which_there_was_no_time(three):
    def late(job, tasks, resources):
        return {name: Solved(None, 0.0) for name in tasks}

    told = balanced(three, late, max_groups=9)
    first, second, third = told["unfinished"]
    assert told["summary"] == f"no time was left for {first}, {second} and {third}"


def test_other_ways_are_tried_where_n1_on_shared_storage_is_in_the_way(monkeypatch):
    """Which moves come first decides how far the others get."""
    cluster = parse_text(generate(nodes=4, template="mixed", seed=113, memscale=2, extags=True, homog=True).text())
    best = balanced(cluster)["groups"][0]
    monkeypatch.setattr(balance_module, "_OTHER_PRICES", ())
    monkeypatch.setattr(balance_module, "_better", lambda one, usual: usual)
    assert balanced(cluster)["groups"][0]["score_after"] > best["score_after"] + 0.5


def test_no_worse_than_hbal_where_n1_on_shared_storage_is_in_the_way_of_tags():
    cluster = parse_text(generate(nodes=6, template="ext", extags=True, seed=1115).text())
    theirs = plan_group(Assignment(cluster, 0, HbalOptions()))
    assert balanced(cluster)["groups"][0]["score_after"] <= 1.01 * theirs.score_after


@pytest.mark.parametrize(("seed", "most"), [(4, 3), (9, 3), (18, 3), (22, 3), (22, None)])
def test_no_worse_than_hbal_where_few_moves_decide(seed, most):
    """None of hbal's moves breaks a limit here, and with what they copy they once cost less than ours."""
    cluster = parse_text(generate(nodes=4, per_node=3, template="mixed", extags=True, seed=seed).text())
    theirs = plan_group(Assignment(cluster, 0, HbalOptions(max_moves=most)))
    ours = plan_group(Assignment(cluster, 0, BalanceOptions(prices=Prices(most_moves=most))))
    assert ours.score_after <= theirs.score_after + 1e-9
    assert len(ours.plan.moves) <= (most or 99)


@pytest.mark.parametrize(("gain", "moves"), [(4e-16, 0), (1e-6, 1)])
def test_hbal_moves_nothing_for_what_rounding_gains(bench, monkeypatch, gain, moves):
    state = bench.state([bench.node("a"), bench.node("b")], [bench.instance("i", "a", **SHARED)])
    move = make_move(state, 0, MoveKind.FAILOVER_TO_ANY, 1)
    monkeypatch.setattr(hbal, "_best_step", lambda evaluation, *_rest: hbal.Step(move, evaluation.score - gain))
    assert len(list(hbal.steps_like_hbal(state, 0, hbal.HbalOptions(max_moves=1, min_gain_limit=0.0)))) == moves


def test_without_disk_moves_nothing_is_copied_to_step_aside():
    """Two instances wait for each other; the search itself got there by failovers alone."""
    cluster = parse_text(generate(nodes=6, per_node=4, seed=999999, memscale=4.0).text())
    moves = balanced(cluster, disk_moves=False, data_price=0)["plan"]["moves"]
    assert moves
    assert not any(move["data"] for move in moves)
