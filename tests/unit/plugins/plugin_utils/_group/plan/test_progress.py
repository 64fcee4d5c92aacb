# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans that are carried out: what may start, what was done already, what a journal keeps, which plans are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.journal import follow, read_journal
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.kept import KeptFile
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.progress import Outcome, Progress, schedule
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.read import read_plan, read_where


def move(instance, *places, after=(), data=0):
    kinds = ["replace_disks" if here[0] == there[0] else "migrate" for here, there in zip(places, places[1:])]
    steps = [{"kind": kind, "from": list(here), "to": list(there)} for kind, here, there in zip(kinds, places, places[1:])]
    return {"instance": instance, "from": list(places[0]), "to": list(places[-1]), "steps": steps, "after": list(after), "data": data}


PLAN = {
    "moves": [move("i", "ab", "ba", "bc"), move("j", "d", "e", data=5), move("k", "b", "d", after=[0, 1])],
    "stages": [[0, 1], [2]],
}


@pytest.fixture
def plan():
    return read_plan(PLAN)


def test_steps_of_a_stage_take_turns_and_the_next_stage_waits(plan):
    start = Progress.start(plan)
    assert schedule(plan, start, at_once=9) == [[(1, 0), (0, 0)], [(0, 1)], [(2, 0)]]
    assert schedule(plan, start, at_once=1) == [[(1, 0)], [(0, 0)], [(0, 1)], [(2, 0)]]


def test_a_node_takes_part_in_no_more_moves_than_asked():
    told = [move(f"i{number}", "a", "b") for number in range(3)] + [move("other", "c", "d")]
    plan = read_plan({"moves": told, "stages": [[0, 1, 2, 3]]})
    assert schedule(plan, Progress.start(plan), 4, per_node=1) == [[(0, 0), (3, 0)], [(1, 0)], [(2, 0)]]
    assert schedule(plan, Progress.start(plan), 4, per_node=2) == [[(0, 0), (1, 0), (3, 0)], [(2, 0)]]


def test_a_move_that_has_begun_goes_on_first(plan):
    begun = Progress.start(plan).noted(plan, [Outcome(0, 0)])
    assert schedule(plan, begun, at_once=1) == [[(0, 1)], [(1, 0)], [(2, 0)]]


def test_failures_are_kept_until_the_step_is_done(plan):
    failed = Progress.start(plan).noted(plan, [Outcome(0, 0), Outcome(0, 1, failed=True, message="no room"), Outcome(1, 0)])
    assert (failed.done, dict(failed.failures)) == ((1, 1, 0), {0: "no room"})
    assert not failed.tried_again().failures
    finished = failed.noted(plan, [Outcome(0, 1), Outcome(2, 0)])
    assert finished.complete(plan)
    assert not finished.failures
    assert finished.noted(plan, [Outcome(0, 0, failed=True)]) == finished, "news of a step that is done is old"


def test_a_job_is_known_until_its_step_ends(plan):
    runs = Progress.start(plan).noted(plan, [Outcome(0, 0, job="17")])
    assert dict(runs.jobs) == {0: "17"}
    assert not runs.noted(plan, [Outcome(0, 0)]).jobs
    assert not runs.seen(plan, {"i": ("b", "a"), "j": ("d",), "k": ("b",)}).jobs


@pytest.mark.parametrize(("nodes", "done"), [("ab", 0), ("ba", 1), ("bc", 2)])
def test_what_is_there_already_is_done(plan, nodes, done):
    where = read_where({"i": "|".join(nodes), "j": ["d"], "k": "b|-", "foreign": "z"})
    assert Progress.start(plan).seen(plan, where).done == (done, 0, 0)


def test_an_instance_that_comes_back_is_counted_from_where_the_journal_is():
    plan = read_plan({"moves": [move("i", "a", "b"), move("i", "b", "a", after=[0])], "stages": [[0], [1]]})
    start = Progress.start(plan)
    assert start.seen(plan, {"i": ("a",)}).done == (0, 0)
    assert start.seen(plan, {"i": ("b",)}).done == (1, 0)
    assert start.noted(plan, [Outcome(0, 0)]).seen(plan, {"i": ("a",)}).done == (1, 1)


def test_instances_astray_are_told_together(plan):
    with pytest.raises(InputError) as caught:
        Progress.start(plan).seen(plan, {"i": ("c", "a"), "k": ("b",)})
    assert str(caught.value).splitlines()[1:] == [
        "- i: is on c, a; the plan expects it on a, b or b, a or b, c, so make a new plan",
        "- j: is not in the cluster any more",
    ]
    done = Progress((2, 1, 1))
    assert done.seen(plan, {"i": ("z",)}) == done, "where they go after the plan is no concern of it"


def test_every_mistake_of_a_plan_is_told():
    wrong = {
        "moves": [
            {"instance": "i", "from": ["a"], "steps": []},
            {"from": ["a"]},
            {"instance": "i", "from": ["a"], "data": "much", "steps": [{"kind": "migrate", "to": ["b"]}]},
            {"instance": "i", "from": ["a"], "steps": [{"kind": "teleport", "to": ["b"]}, {"kind": "migrate", "from": ["a"], "to": ["c"]}]},
            {"instance": "i", "from": ["a"], "steps": [{"kind": "migrate", "to": []}]},
        ],
    }
    with pytest.raises(InputError) as caught:
        read_plan(wrong, ["migrate", "failover"])
    assert [mistake.place for mistake in caught.value.mistakes] == [
        "plan.moves[0].steps",
        "plan.moves[1]",
        "plan.moves[2].data",
        "plan.moves[3].steps[0].kind",
        "plan.moves[3].steps[1].from",
        "plan.moves[4].steps[0]",
        "plan.stages",
    ]


@pytest.mark.parametrize(
    ("stages", "place"),
    [
        ([[0, 1]], "plan.moves[2]"),
        ([[0, 1, 2]], "plan.moves[2].after"),
        ([[2], [0, 1]], "plan.moves[2].after"),
        ([[0, 1], [2], [0]], "plan.stages[2]"),
        ([[0, 1], [2, 7]], "plan.stages[1]"),
        ([[0, 1], 2, "x"], "plan.stages[2]"),
    ],
)
def test_stages_must_fit_the_moves(stages, place):
    with pytest.raises(InputError) as caught:
        read_plan(PLAN | {"stages": stages})
    assert place in [mistake.place for mistake in caught.value.mistakes]


def test_only_what_is_done_tells_plans_apart(plan):
    again = read_plan(json.loads(json.dumps(PLAN | {"score_before": 7.0, "commands": []})))
    assert again.digest() == plan.digest()
    assert read_plan(PLAN | {"stages": [[0], [1], [2]]}).digest() != plan.digest()


def test_the_journal_carries_a_plan_through_failure_and_restart(tmp_path):
    first = follow({"plan": PLAN, "directory": tmp_path, "at_once": 2}, write=True)
    assert (first["changed"], first["complete"], len(first["rounds"])) == (False, False, 3)
    assert first["rounds"][0][0] == {
        "move": 1,
        "step": 0,
        "instance": "j",
        "kind": "migrate",
        "from": ["d"],
        "to": ["e"],
        "node": "e",
        "online": True,
        "command": "",
        "job": "",
        "says": "j migrate to e",
    }
    journal = first["journal"]
    outcomes = [{"move": 1, "step": 0}, {"move": 0, "step": 0, "failed": True, "message": "no quorum"}]
    stopped = follow({"journal": journal, "outcomes": outcomes}, write=True)
    assert stopped["changed"]
    assert [move["instance"] for move in stopped["done"]] == ["j"]
    assert stopped["failures"] == [{"move": 0, "instance": "i", "steps": 2, "steps_done": 0, "message": "no quorum"}]
    assert stopped["summary"].splitlines() == [
        "1 of 3 moves are done.",
        "i: migrate to b failed: no quorum",
        "What remains: i (0 of 2 steps done), k (0 of 1 steps done).",
    ]
    again = follow({"plan": PLAN, "directory": tmp_path, "where": {"i": "b,a", "k": "b"}}, write=True)
    assert (again["failures"], [[step["instance"] for step in steps] for steps in again["rounds"]]) == ([], [["i"], ["k"]])
    last = follow({"journal": journal, "outcomes": [{"move": 0, "step": 1}, {"move": 2, "step": 0}]}, write=True)
    assert (last["complete"], last["rounds"], last["remaining"], last["summary"]) == (True, [], [], "3 of 3 moves are done.")
    assert follow({"plan": PLAN, "directory": tmp_path}, write=True)["changed"] is False
    assert [file.name for file in tmp_path.iterdir()] == [f"{read_plan(PLAN).digest()}.json"]


def test_a_plan_that_was_undone_is_carried_out_once_more(tmp_path):
    """As a timer does whose plan is the same as last month's; what is done in part, or elsewhere, is not begun anew."""
    arguments = {"plan": PLAN, "directory": str(tmp_path)}
    outcomes = [{"move": 0, "step": 0}, {"move": 0, "step": 1}, {"move": 1, "step": 0}, {"move": 2, "step": 0}]
    told = follow(arguments | {"outcomes": outcomes}, write=True)
    assert told["complete"]
    there = {"i": ["b", "c"], "j": ["e"], "k": ["d"]}
    assert follow(arguments | {"where": there}, write=True)["complete"]
    assert follow(arguments | {"where": there | {"k": ["b"]}}, write=True)["complete"], "one alone may have been moved by somebody"
    again = follow(arguments | {"where": {"i": ["a", "b"], "j": ["d"], "k": ["b"]}}, write=True)
    assert (again["complete"], again["done"], again["changed"]) == (False, [], True)


def test_a_rehearsal_writes_nothing(tmp_path):
    assert follow({"plan": PLAN, "directory": tmp_path / "new"}, write=False)["rounds"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"plan": {"moves": [], "stages": []}, "done": [], "jobs": [], "failures": {}}'])
def test_a_broken_journal_is_told(tmp_path, text):
    (tmp_path / "j.json").write_text(text)
    with pytest.raises(InputError, match="is not the journal of a plan"):
        read_journal(KeptFile(tmp_path / "j.json", "journal"))


@pytest.mark.parametrize(
    "change",
    [
        {"done": []},
        {"done": [0] * 99},
        {"done": [-1]},
        {"done": [99]},
        {"done": [True]},
        {"done": [0.5]},
        {"done": ["0"]},
        {"jobs": {"0": "--output=/etc/passwd"}},
        {"jobs": {"0": "1 2"}},
        {"jobs": {"0": "1\n"}},
        {"jobs": {"0": ""}},
        {"jobs": {"0": ["1"]}},
        {"jobs": {"99": "1"}},
        {"jobs": {"-1": "1"}},
        {"failures": {"99": "full"}},
    ],
)
def test_a_journal_that_no_run_has_written_is_refused(tmp_path, change):
    """It is a file, which somebody can edit, and what it says of jobs becomes a part of commands."""
    plan = {"moves": PLAN["moves"][:1], "stages": [[0]]}
    path = Path(follow({"plan": plan, "directory": tmp_path}, write=True)["journal"])
    written = json.loads(path.read_text())
    job = {"0": "UPID:pve1:000A:00B0:65000000:qmigrate:101:root@pam!token:"}
    path.write_text(json.dumps({**written, "jobs": job}))
    assert read_journal(KeptFile(path, "journal"))[1].jobs == {0: job["0"]}
    path.write_text(json.dumps({**written, **change}))
    with pytest.raises(InputError, match="is not the journal of a plan"):
        read_journal(KeptFile(path, "journal"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"journal": "missing.json"}, "cannot read missing.json"),
        ({"plan": PLAN, "directory": "d", "at_once": 0}, "at_once: is 0"),
        ({"plan": PLAN, "directory": "d", "per_node": -1}, "per_node: is -1"),
        ({"plan": PLAN, "directory": "d", "outcomes": [{"move": 9, "step": 0}]}, r"outcomes\[0\]: the plan has no step 0 of move 9"),
        ({"plan": PLAN, "directory": "/dev/null/d"}, "cannot write /dev/null/d"),
    ],
)
def test_what_cannot_be_used_is_told(tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=words):
        follow(arguments, write=True)


DISK = {"disk": "scsi0", "from_storage": "slow", "to_storage": "fast"}
DISK_STEP = {"kind": "move_disk", "from": ["a"], "to": ["a"], "node": "a", **DISK}
DISKS = {
    "moves": [
        {"instance": "i", "from": ["a"], "to": ["a"], "steps": [DISK_STEP], "after": []},
        {"instance": "i", "from": ["a"], "to": ["a"], "steps": [DISK_STEP | {"disk": "scsi1"}], "after": [0]},
    ],
    "stages": [[0], [1]],
}


def test_disks_of_an_instance_are_followed_each_for_itself(tmp_path):
    where, storages = {"i": ["a"]}, {"i": {"scsi0": "fast", "scsi1": "slow"}}
    found = follow({"plan": DISKS, "directory": tmp_path, "where": where, "storages": storages}, write=True)
    assert [move["move"] for move in found["done"]] == [0]
    (step,) = found["rounds"][0]
    assert (step["disk"], step["to_storage"], step["says"]) == ("scsi1", "fast", "i move_disk scsi1 to fast")
    failed = follow({"journal": found["journal"], "outcomes": [{"move": 1, "step": 0, "failed": True, "message": "full"}]}, write=True)
    assert "i: move_disk scsi1 to fast failed: full" in failed["summary"]


@pytest.mark.parametrize(
    ("where", "storages", "says"),
    [
        ({"i": ["b"]}, {"i": {"scsi0": "slow", "scsi1": "slow"}}, "is on b, slow; the plan expects it on a, slow or a, fast"),
        ({"i": ["a"]}, {"i": {"scsi0": "other", "scsi1": "slow"}}, "is on a, other; the plan expects it on a, slow or a, fast"),
        ({"i": ["a"]}, {"i": {"scsi1": "slow"}}, "is not in the cluster any more"),
        ({"i": ["a"]}, {"i": "slow"}, "must be a mapping of storages by disk"),
    ],
)
def test_a_disk_that_is_elsewhere_is_told(tmp_path, where, storages, says):
    with pytest.raises(InputError, match=says):
        follow({"plan": DISKS, "directory": tmp_path, "where": where, "storages": storages}, write=True)


def test_a_step_that_failed_without_a_word_has_an_empty_message(tmp_path):
    first = follow({"plan": PLAN, "directory": tmp_path, "where": {"i": "a,b", "j": "d", "k": "b"}}, write=True)
    outcomes = [{"move": 0, "step": 0, "failed": True, "message": None, "job": None}]
    stopped = follow({"journal": first["journal"], "outcomes": outcomes}, write=True)
    assert [move["message"] for move in stopped["failures"]] == [""]


@pytest.mark.parametrize("nodes", [5, None, True, {"a": 1}, ["a", 5], [["a"]]])
def test_where_instances_are_must_be_names(nodes):
    with pytest.raises(InputError) as caught:
        read_where({"w": nodes})
    assert [mistake.place for mistake in caught.value.mistakes] == ["where[w]"]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"instance": "-n"}, "plan.moves[0].instance"),
        ({"from": ["a;id", "b"]}, "plan.moves[0].from[0]"),
        ({"to": ["x/system?command=/tmp/evil#", "a"]}, "plan.moves[0].steps[0].to[0]"),
        ({"kind": "migrate\n"}, "plan.moves[0].steps[0].kind"),
        ({"node": "c"}, "plan.moves[0].steps[0].node"),
        # Of both nodes of a mirrored instance, one is where it does not go.
        ({"node": "a"}, "plan.moves[0].steps[0].node"),
        ({"kind": "failover", "node": "a"}, "plan.moves[0].steps[0].node"),
        ({"kind": "replace_disks", "to": ["a", "c"], "node": "a"}, "plan.moves[0].steps[0].node"),
        ({"online": "no"}, "plan.moves[0].steps[0].online"),
        ({"to": ["c", "a"]}, "plan.moves[0].steps[0].to"),
        ({"kind": "replace_disks"}, "plan.moves[0].steps[0].to"),
        ({"disk": "scsi0"}, "plan.moves[0].steps[0]"),
        ({"disk": "scsi0", "from_storage": "a", "to_storage": "--delete"}, "plan.moves[0].steps[0].to_storage"),
    ],
)
def test_a_plan_is_checked_before_anything_is_done_by_it(change, place):
    one = {"kind": "migrate", "from": ["a", "b"], "to": ["b", "a"]}
    whole = {"instance": "w", "from": ["a", "b"]} | {name: change[name] for name in ("instance", "from") if name in change}
    one |= {name: value for name, value in change.items() if name not in ("instance", "from")} | {"from": whole["from"]}
    with pytest.raises(InputError) as caught:
        read_plan({"moves": [whole | {"steps": [one]}], "stages": [[0]]})
    assert place in {mistake.place for mistake in caught.value.mistakes}


@pytest.mark.parametrize("command", ["gnt-instance remove -f other", "rm -rf /", "gnt-instance migrate -f w"])
def test_commands_are_made_of_what_a_step_is(command):
    told = {"kind": "failover", "from": ["a"], "to": ["b"], "online": False, "command": command}
    plan = read_plan({"moves": [{"instance": "w", "from": ["a"], "steps": [told]}], "stages": [[0]]})
    assert plan.moves[0].steps[0].command == "gnt-instance failover -f --ignore-consistency -n b w"


@pytest.mark.parametrize("job", ["-x", "--help", "7 8", "7\n", "\u202e7", " 7", "7" * 300, "{'a': 1}", "\u00e9"])
def test_a_cluster_names_no_job_that_the_journal_could_not_hold(tmp_path, job):
    """What a server answers in the place of a job's number would make the journal one that no run has written."""
    started = follow({"plan": PLAN, "directory": str(tmp_path)}, write=True)
    journal = Path(started["journal"])
    before = journal.read_text(encoding="utf-8")
    outcomes = [{"move": 0, "step": 0, "job": "17"}, {"move": 1, "step": 0, "job": job}]
    with pytest.raises(InputError) as raised:
        follow({"journal": str(journal), "outcomes": outcomes}, write=True)
    assert [mistake.place for mistake in raised.value.mistakes] == ["outcomes[1].job"]
    assert journal.read_text(encoding="utf-8") == before
    follow({"journal": str(journal), "outcomes": outcomes[:1]}, write=True)
    assert read_journal(KeptFile(journal, "journal"))[1].jobs == {0: "17"}
