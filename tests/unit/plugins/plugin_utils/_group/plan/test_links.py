# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rate of links as journals of earlier plans say it."""

from __future__ import annotations

import json

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.cluster_source import load_any_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.journal import follow, read_journal
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.kept import KeptFile
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.links import journals_in, measured_rates
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.read import read_plan
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.left_out import notes
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import evacuation_summary

POOL = {"type": "external", "pool": "ceph"}
CLUSTER = {
    "nodes": [{"name": name, "total_memory": 65536, "total_cpus": 16, "storage": [POOL]} for name in ("a", "b", "c")],
    "instances": [
        {"name": f"i{number}", "memory": 1100, "disk": 1, "vcpus": 1, "primary": "a", "storage": POOL, "status": status}
        for number, status in enumerate(["running", "running", "ADMIN_down"])
    ],
}


def move(name, *places, data=0, memory=0, **more):
    kinds = ["replace_disks" if here[0] == there[0] else "migrate" for here, there in zip(places, places[1:])]
    steps = [{"kind": kind, "from": list(here), "to": list(there)} | more for kind, here, there in zip(kinds, places, places[1:])]
    return {"instance": name, "from": list(places[0]), "steps": steps, "data": data, "memory": memory}


WEB, DB = move("web", "ab", "ba", "bc", data=9000, memory=3000), move("db", "d", "c", memory=6000)
PLAN = {"moves": [WEB, DB], "stages": [[0, 1]]}


def rates_in(path):
    return [rate for journal in journals_in(path) for rate in measured_rates(journal)]


def done(steps):
    return [{"move": move, "step": step} for move, step in steps]


@pytest.fixture
def carried_out(tmp_path):
    """Return what carries rounds of a plan out, each with its seconds, and returns the journal."""

    def carry_out(*rounds, plan=None):
        journal = follow({"plan": plan or PLAN, "directory": str(tmp_path)}, write=True)["journal"]
        for steps, seconds in rounds:
            follow({"journal": journal, "outcomes": done(steps), "round": {"steps": done(steps), "seconds": seconds}}, write=True)
        return tmp_path / journal

    return carry_out


def test_the_busiest_link_over_the_seconds_of_the_round(carried_out):
    """From a goes the memory of web, from d that of db; then web's mirror is copied from b."""
    assert rates_in(carried_out(([(0, 0), (1, 0)], 60), ([(0, 1)], 100))) == [100.0, 90.0]


def test_what_arrives_at_one_node_shares_its_link(carried_out):
    plan = {"moves": [move("i", "a", "c", memory=3000), move("j", "b", "c", memory=6000)], "stages": [[0, 1]]}
    assert rates_in(carried_out(([(0, 0), (1, 0)], 90), plan=plan)) == [100.0]


@pytest.mark.parametrize(
    ("plan", "seconds"),
    [
        pytest.param(PLAN, 59.9, id="short"),
        pytest.param({"moves": [move("db", "d", "c")], "stages": [[0]]}, 600, id="nothing is sent"),
        pytest.param(
            {
                "moves": [move("db", "d", "c", data=9000, memory=6000, disk="d0", from_storage="x", to_storage="y")],
                "stages": [[0]],
            },
            600,
            id="a disk changes its storage",
        ),
    ],
)
def test_rounds_that_say_nothing_of_links(carried_out, plan, seconds):
    assert rates_in(carried_out(([(0, 0)], seconds), plan=plan)) == []


@pytest.mark.parametrize("change", [{"failed": True, "message": "no"}, {"job": "7"}])
def test_a_round_that_is_not_complete_has_no_time(carried_out, change):
    journal = carried_out()
    outcomes = [{"move": 0, "step": 0}, {"move": 1, "step": 0, **change}]
    follow({"journal": str(journal), "outcomes": outcomes, "round": {"steps": done([(0, 0), (1, 0)]), "seconds": 90}}, write=True)
    assert not read_journal(KeptFile(journal, "journal"))[1].rounds


def test_nor_has_one_that_an_earlier_run_began(carried_out):
    journal = carried_out()
    steps = [{"move": 1, "step": 0, "job": "7"}]
    follow({"journal": str(journal), "outcomes": done([(1, 0)]), "round": {"steps": steps, "seconds": 90}}, write=True)
    assert not read_journal(KeptFile(journal, "journal"))[1].rounds


def test_times_outlast_later_runs_of_the_same_plan(carried_out, tmp_path):
    """After all was done and undone it begins again, and what was measured stays."""
    carried_out(([(0, 0), (1, 0)], 60), ([(0, 1)], 100))
    again = follow({"plan": PLAN, "directory": str(tmp_path), "where": {"web": ["a", "b"], "db": ["d"]}}, write=True)
    assert not again["done"]
    assert rates_in(tmp_path) == [100.0, 90.0]


def test_a_journal_keeps_the_last_thousand(carried_out):
    journal = carried_out()
    document = json.loads(journal.read_text())
    document["rounds"] = [{"steps": done([(1, 0)]), "seconds": 1.0 + number} for number in range(1000)]
    journal.write_text(json.dumps(document))
    follow({"journal": str(journal), "outcomes": done([(1, 0)]), "round": {"steps": done([(1, 0)]), "seconds": 5000}}, write=True)
    rounds = read_journal(KeptFile(journal, "journal"))[1].rounds
    assert (len(rounds), rounds[0].seconds, rounds[-1].seconds) == (1000, 2.0, 5000.0)


def test_memory_does_not_make_another_plan():
    """A plan of an earlier version, which had none, finds its journal."""
    without = [{name: value for name, value in move.items() if name != "memory"} for move in PLAN["moves"]]
    assert read_plan(PLAN).digest() == read_plan(PLAN | {"moves": without}).digest()


def test_a_plan_is_estimated_by_the_median_of_a_folder(carried_out, tmp_path):
    """Rates of 55, 25 and 100 MiB a second: 2200 MiB leave a."""
    carried_out(([(0, 0)], 60), ([(0, 1)], 360))
    carried_out(([(0, 0)], 60), plan={"moves": [move("k", "a", "b", memory=3300)], "stages": [[0]]})
    carried_out(([(0, 0)], 60), plan={"moves": [move("l", "a", "b", memory=6000)], "stages": [[0]]})
    given = {"cluster": CLUSTER, "link_journals": str(tmp_path), "link_rate": "110 MiB"}
    answer = run_evacuate(load_any_cluster(given, str), {"nodes": ["a"]})
    assert {move["instance"]: move["memory"] for move in answer["plan"]["moves"]} == {"i0": 1100, "i1": 1100, "i2": 0}
    # Of 25, 50, 55 and 100 the lower one in the middle.
    assert {name: answer["plan"]["seconds"][name] for name in ("total", "rate", "rounds")} == {"total": 44.0, "rate": 50.0, "rounds": 4}
    assert "4 rounds" in evacuation_summary(answer)


@pytest.mark.parametrize("there", [False, True])
def test_as_long_as_nothing_was_measured_the_given_rate_holds(carried_out, tmp_path, there):
    folder = carried_out(([(1, 0)], 5)).parent if there else tmp_path / "later"
    given = {"cluster": CLUSTER, "link_journals": str(folder), "link_rate": 110}
    answer = run_evacuate(load_any_cluster(given, str), {"nodes": ["a"]})
    assert {name: answer["plan"]["seconds"][name] for name in ("total", "rate", "rounds")} == {"total": 20.0, "rate": 110.0, "rounds": 0}
    without = run_evacuate(load_any_cluster({"cluster": CLUSTER, "link_journals": str(folder)}, str), {"nodes": ["a"]})
    assert "seconds" not in without["plan"]


@pytest.mark.parametrize(
    "rounds",
    [
        7,
        [7],
        [{}],
        [{"steps": 7, "seconds": 90}],
        [{"steps": [{"move": 2, "step": 0}], "seconds": 90}],
        [{"steps": [{"move": 0, "step": True}], "seconds": 90}],
        [{"steps": [{"move": 0, "step": 0}, {"move": 0, "step": 1}], "seconds": 90}],
        [{"steps": [], "seconds": float("nan")}],
        [{"steps": [], "seconds": float("inf")}],
        [{"steps": [], "seconds": -1}],
        [{"steps": [], "seconds": "90"}],
        [{"steps": [], "seconds": 10**400}],
    ],
)
def test_a_journal_with_other_rounds_is_left_out_and_named(carried_out, rounds):
    """The plan is made all the same, with the rate of the journals that can be read."""
    journal = carried_out()
    journal.write_text(json.dumps(json.loads(journal.read_text()) | {"rounds": rounds}))
    sound = carried_out(([(0, 0)], 60), plan={"moves": [move("k", "a", "b", memory=3300)], "stages": [[0]]})
    loaded = load_any_cluster({"cluster": CLUSTER, "link_journals": str(journal.parent)}, str)
    assert [(journal.name in note, sound.name in note) for note in notes(loaded.cluster)] == [(True, False)]
    seconds = run_evacuate(loaded, {"nodes": ["a"]})["plan"]["seconds"]
    assert {name: seconds[name] for name in ("rate", "rounds")} == {"rate": 55.0, "rounds": 1}


def test_a_round_that_is_reported_is_of_the_plan(carried_out):
    journal = str(carried_out())
    with pytest.raises(InputError) as refused:
        follow({"journal": journal, "round": {"steps": done([(5, 0)]), "seconds": float("nan")}}, write=True)
    assert [mistake.place for mistake in refused.value.mistakes] == ["round.steps[0]", "round.seconds"]
