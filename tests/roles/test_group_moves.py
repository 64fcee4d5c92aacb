# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role group_moves with every driver, against stand-ins that record, refuse what real clusters would, and can fail."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import typing as t

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger import states
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.open import open_ledger
from ansible_collections.bareon.allocator.tests.standins import cluster as standin
from ansible_collections.bareon.allocator.tests.support.host.lying import Lie, install

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODES = ["a", "b", "c", "d"]


def step(kind, source, target):
    """Return a step as plans have it."""
    node = target[-1] if kind == "replace_disks" else target[0]
    where = f" -n {node}" if kind == "replace_disks" or len(target) == 1 else ""
    force = "" if kind == "replace_disks" else " -f"
    command = f"gnt-instance {kind.replace('_', '-')}{force}{where} NAME"
    return {"kind": kind, "from": source, "to": target, "node": node, "online": True, "command": command}


def move(name, *steps, after=(), data=0):
    """Return a move as plans have it."""
    named = [one | {"command": one["command"].replace("NAME", name)} for one in steps]
    return {"instance": name, "from": steps[0]["from"], "to": steps[-1]["to"], "steps": named, "after": list(after), "data": data}


MIRRORED = {
    "moves": [
        move("web", step("migrate", ["a", "b"], ["b", "a"]), step("replace_disks", ["b", "a"], ["b", "c"]), data=4096),
        move("db", step("replace_disks", ["c", "d"], ["c", "a"]), data=1024),
        move("idle", step("failover", ["d", "a"], ["a", "d"]), after=[0]),
    ],
    "stages": [[0, 1], [2]],
}
DEAD = {
    "moves": [
        move(
            "web",
            step("failover", ["a", "b"], ["b", "a"]) | {"online": False, "command": "gnt-instance failover -f --ignore-consistency NAME"},
            step("replace_disks", ["b", "a"], ["b", "c"]),
        )
    ],
    "stages": [[0]],
}
SHARED = {
    "moves": [
        move("101-web", step("migrate", ["a"], ["c"])),
        move("102", step("migrate", ["b"], ["d"])),
        move("103-idle", step("failover", ["c"], ["b"]), after=[0]),
    ],
    "stages": [[0, 1], [2]],
}


@dataclasses.dataclass
class Run:
    """What a run of the role gave."""

    code: int
    text: str

    @property
    def words(self) -> str:
        """Return all that was said with long lines as they were before they were wrapped; `-vvv` shows line ends as the two characters."""
        return " ".join(self.text.replace("\\n", " ").split())

    @property
    def recap(self) -> dict[str, int]:
        """Return the figures of the last line."""
        return {name: int(figure) for name, figure in re.findall(r"(\w+)=(\d+)", self.text.splitlines()[-1])}


class Bed:
    """A folder with a cluster that stands in, and the role run against it."""

    def __init__(self, folder: pathlib.Path, plan: dict[str, t.Any]) -> None:
        self.folder, self.plan = folder, plan
        self.file = folder / "state.json"
        ids = {one["instance"]: f"{'lxc' if one['instance'].startswith('102') else 'qemu'}/{one['instance'][:3]}" for one in plan["moves"]}
        instances = {one["instance"]: {"nodes": one["from"], "id": ids[one["instance"]]} for one in plan["moves"]}
        self.change(instances=instances | {"other": {"nodes": ["d"], "id": "qemu/900"}})
        standin.install(folder / "bin", self.file)

    def state(self) -> dict[str, t.Any]:
        """Return what the stand-in has in its file."""
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def change(self, **entries: t.Any) -> None:
        """Change the stand-in's file."""
        self.file.write_text(json.dumps(self.state() | entries))

    def homes(self) -> dict[str, list[str]]:
        """Return where the instances of the plan are."""
        return {name: one["nodes"] for name, one in self.state()["instances"].items() if name != "other"}

    def targets(self) -> dict[str, list[str]]:
        """Return where the plan wants them."""
        return {one["instance"]: one["to"] for one in self.plan["moves"]}

    def log(self, word: str) -> list[str]:
        """Return lines of the log by their first word, without it."""
        return [line.partition(" ")[2] for line in self.state()["log"] if line.startswith(word)]

    def run(self, *options: str, lying: dict[str, dict[str, t.Any]] | None = None, **variables: t.Any) -> Run:
        """Run the role; `lying` are the answers of nodes that lie, by module."""
        local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        # Nobody listens at the port of `gone`.
        gone = {"gone": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9}}
        liars = {
            node: {
                "ansible_python_interpreter": str(
                    install(self.folder / "liars" / node, {module: Lie({}, answer) for module, answer in lies.items()})
                )
            }
            for node, lies in (lying or {}).items()
        }
        inventory = {"all": {"hosts": {"localhost": {}, **{node: {} for node in NODES}, **liars, **gone}, "vars": local}}
        known = {"group_moves_plan": self.plan, "group_moves_poll": 0, "group_moves_at_once": 9, "group_moves_per_node": 0}
        known |= {name: value for name, value in variables.items() if value is not None}
        play = {"hosts": "localhost", "gather_facts": False, "vars": known, "roles": ["bareon.allocator.group_moves"]}
        for name, content in (("inventory.yml", inventory), ("play.yml", [play])):
            (self.folder / name).write_text(yaml.safe_dump(content, sort_keys=False))
        environment = os.environ | {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_ASYNC_DIR": str(self.folder / "async"),
            "ANSIBLE_NOCOLOR": "1",
            # A host that lies looks at the name of the module's file, and there is none with pipelining.
            "ANSIBLE_PIPELINING": "0" if lying else "1",
        }
        command = [sys.executable, "-m", "ansible", "playbook", "-i", "inventory.yml", "play.yml", *options]
        with (self.folder / "output.txt").open("w+", encoding="utf-8") as output:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False, timeout=300
            )
            output.seek(0)
            return Run(done.returncode, output.read().strip())


@pytest.fixture
def bed(tmp_path, request) -> Bed:
    return Bed(tmp_path, getattr(request, "param", MIRRORED))


@pytest.fixture
def shared(tmp_path) -> Bed:
    return Bed(tmp_path, SHARED)


@pytest.fixture
def url(request, tmp_path):
    serving = standin.server(standin.StandIn(str(tmp_path / "state.json")))
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    serving.server_close()


def finishes(bed: Bed, **variables: t.Any) -> None:
    """Check that a run ends where the plan says."""
    done = bed.run(**variables)
    assert done.code == 0, done.text
    assert bed.homes() == bed.targets()


def stays(bed: Bed, **variables: t.Any) -> None:
    """Check that a run of a plan that is done changes nothing."""
    log = bed.state().get("log")
    again = bed.run(**variables)
    assert again.code == 0, again.text
    assert again.recap["changed"] == 0, again.text
    assert bed.state().get("log") == log, "nothing was asked to be done"


def test_ganeti_stops_and_goes_on(bed):
    rehearsal = bed.run("--check")
    assert rehearsal.code == 0, rehearsal.text
    assert "web migrate to b" in rehearsal.text
    assert rehearsal.recap["changed"] == 1
    assert bed.log("submit") == []
    bed.change(fail={"replace-disks web": 1}, polls=1)
    stopped = bed.run()
    assert stopped.code == 2
    assert "1 of 3 moves are done." in stopped.text
    assert "web: replace_disks to c failed: job 19 ended with error: ['told to fail: replace-disks web c']" in stopped.words
    assert "What remains: web (1 of 2 steps done), idle (0 of 1 steps done)." in stopped.text
    assert bed.log("submit") == ["migrate web", "replace-disks db a", "replace-disks web c"]
    finishes(bed)
    stays(bed)
    assert bed.log("done") == ["migrate web", "replace-disks db a", "replace-disks web c", "failover idle"]


def lying(plan):
    """Return a plan whose commands do something else than its steps say."""
    told = json.loads(json.dumps(plan))
    for one in told["moves"]:
        for step_of_plan in one["steps"]:
            step_of_plan["command"] = "gnt-instance failover -f --ignore-consistency other"
    told["commands"] = ["gnt-instance remove -f other"]
    return told


@pytest.mark.parametrize("bed", [lying(MIRRORED)], indirect=True)
def test_what_is_done_is_what_is_shown_whatever_commands_a_plan_has(bed):
    shown = bed.run("--check")
    assert "web migrate to b" in shown.text
    assert "--ignore-consistency" not in shown.text
    finishes(bed)
    assert bed.log("submit") == ["migrate web", "replace-disks db a", "replace-disks web c", "failover idle"]


HOSTILE_PLANS = {
    "node": {"moves": [move("101-web", step("migrate", ["a"], ["x/system?command=/tmp/evil#"]))], "stages": [[0]]},
    "source": {"moves": [move("101-web", step("migrate", ["-n"], ["b"]))], "stages": [[0]]},
    "instance": {"moves": [move("--help", step("migrate", ["a"], ["b"]))], "stages": [[0]]},
    "kind": {"moves": [move("101-web", step("remove", ["a"], ["b"]))], "stages": [[0]]},
    "shown": {"moves": [move("101-web", step("migrate", ["a"], ["b"]) | {"node": "c"})], "stages": [[0]]},
}


@pytest.mark.parametrize("driver", ["ganeti", "rapi", "proxmox", "virsh"])
@pytest.mark.parametrize("wrong", HOSTILE_PLANS)
def test_a_plan_is_data_that_is_read_before_anything_is_asked(tmp_path, wrong, driver):
    bed = Bed(tmp_path, HOSTILE_PLANS[wrong])
    done = bed.run(group_moves_driver=driver, group_moves_url="http://127.0.0.1:9" if driver == "rapi" else None)
    assert done.code == 2
    assert "plan.moves[0]" in done.text
    assert bed.state().get("log", []) == [], "no command was run"
    assert not (tmp_path / "group_moves").exists(), "no journal was begun"


@pytest.mark.parametrize("bed", [DEAD], indirect=True)
def test_ganeti_starts_from_the_mirror_of_a_node_that_does_not_answer(bed):
    bed.change(offline=["a"])
    finishes(bed)
    assert bed.log("submit") == ["failover web", "replace-disks web c"]


def rapi_at(url: str) -> dict[str, str]:
    """Return the options of the driver rapi."""
    return {"group_moves_driver": "rapi", "group_moves_url": url, "group_moves_username": "mover", "group_moves_password": "secret"}


@pytest.mark.parametrize("driver", ["ganeti", "rapi"])
@pytest.mark.parametrize("bed", [DEAD], indirect=True)
def test_consistency_is_ignored_only_for_a_node_that_the_cluster_has_marked_offline(bed, url, driver):
    options = rapi_at(url) if driver == "rapi" else {}
    for state in ({"offline": ["b"]}, {"offline": ["a"], "silent": True}):
        bed.change(**state)
        refused = bed.run("-vvv", **options)
        assert refused.code == 2, refused.text
        assert "Power it off, then gnt-node modify -O yes a" in refused.text
        assert ("as far as it can be asked" in refused.text) == ("silent" in state)
        assert "secret" not in refused.text
        assert bed.homes() == {"web": ["a", "b"]}
        assert bed.state()["log"] == [], "nothing was begun"
    bed.change(offline=["a"], silent=False)
    finishes(bed, **options)
    if driver == "rapi":
        assert bed.log("PUT") == ['failover {"ignore_consistency": true}']


@pytest.mark.short
@pytest.mark.parametrize("bed", [DEAD], indirect=True)
def test_a_master_that_cannot_be_reached_confirms_nothing(bed):
    bed.change(offline=["a"])
    refused = bed.run(group_moves_check_where=False, group_moves_master="gone")
    assert refused.code != 0, refused.text
    assert "gnt-node modify -O yes a" in refused.text
    assert bed.state().get("log", []) == []


@pytest.mark.short
@pytest.mark.parametrize("bed", [DEAD], indirect=True)
def test_a_server_that_does_not_answer_confirms_nothing(bed):
    refused = bed.run(group_moves_check_where=False, **rapi_at("http://127.0.0.1:9"))
    assert refused.code == 2, refused.text
    assert "gnt-node modify -O yes a" in refused.text
    assert bed.state().get("log", []) == []


FENCE = [
    {
        "name": "Power it off",
        "ansible.builtin.lineinfile": {"path": "{{ playbook_dir }}/fenced", "line": "{{ group_moves_node }}", "create": True},
    },
    {"name": "Ask whether it is off", "ansible.builtin.assert": {"that": "fence_works | bool"}},
]


@pytest.mark.parametrize("bed", [DEAD], indirect=True)
def test_a_dead_node_is_fenced_before_anything_is_begun(bed):
    (bed.folder / "fence.yml").write_text(yaml.safe_dump(FENCE))
    for marked, fenced in (([], False), (["a"], True)):
        bed.change(offline=marked)
        refused = bed.run(group_moves_fence="fence.yml", fence_works=False)
        assert refused.code == 2, refused.text
        assert bed.state().get("log", []) == []
        assert (bed.folder / "fenced").exists() == fenced, "a node that the cluster has as working is not powered off"
    finishes(bed, group_moves_fence="fence.yml", fence_works=True)
    assert (bed.folder / "fenced").read_text() == "a\n"
    assert bed.log("submit") == ["failover web", "replace-disks web c"]


@pytest.mark.short
def test_nodes_that_work_are_not_fenced(bed):
    finishes(bed, group_moves_fence="nowhere.yml")


def test_a_job_that_outlasts_its_time_is_waited_for_by_the_next_run(bed):
    bed.change(polls=5)
    late = bed.run(group_moves_timeout=1)
    assert late.code == 2, late.text
    assert "web migrate to b goes on as job 17." in late.text
    finishes(bed)
    assert bed.log("submit") == ["migrate web", "replace-disks db a", "replace-disks web c", "failover idle"]


@pytest.mark.short
def test_what_others_have_done_is_seen_without_a_journal(bed):
    state = bed.state()["instances"]
    state["web"]["nodes"], state["db"]["nodes"] = ["b", "a"], ["c", "a"]
    bed.change(instances=state)
    finishes(bed)
    assert bed.log("submit") == ["replace-disks web c", "failover idle"]


@pytest.mark.short
def test_a_plan_for_another_state_is_refused(bed):
    state = bed.state()["instances"]
    state["web"]["nodes"] = ["d", "a"]
    del state["idle"]
    bed.change(instances=state)
    refused = bed.run()
    assert refused.code == 2
    assert "web: is on d, a; the plan expects it on a, b or b, a or b, c" in refused.text
    assert "idle: is not in the cluster any more" in refused.text
    assert bed.state().get("log", []) == []


@pytest.mark.short
def test_a_step_that_cannot_be_submitted_stops_the_run(tmp_path):
    bed = Bed(tmp_path, {"moves": [move("unknown", step("migrate", ["a", "b"], ["b", "a"]))], "stages": [[0]]})
    stopped = bed.run()
    assert stopped.code == 2
    assert "unknown: migrate to b failed: Failure: prerequisites not met: unknown" in stopped.text


def test_rapi(bed, url):
    access = {"group_moves_driver": "rapi", "group_moves_url": url, "group_moves_username": "mover", "group_moves_password": "secret"}
    bed.change(fail={"replace-disks db": 1}, polls=1)
    stopped = bed.run("-vvv", **access)
    assert stopped.code == 2
    assert "db: replace_disks to a failed: job 18 ended with error: ['told to fail: replace-disks db a']" in stopped.words
    assert "secret" not in stopped.text
    finishes(bed, **access)
    assert bed.log("POST") == [
        'replace-disks {"mode": "replace_new_secondary", "remote_node": "a"}',
        'replace-disks {"mode": "replace_new_secondary", "remote_node": "c"}',
        'replace-disks {"mode": "replace_new_secondary", "remote_node": "a"}',
    ]
    assert bed.log("PUT") == ["migrate {}", 'failover {"ignore_consistency": false}']


@pytest.mark.short
def test_rapi_tells_why_it_is_not_let_in(bed, url):
    access = {"group_moves_driver": "rapi", "group_moves_url": url, "group_moves_username": "mover", "group_moves_password": "wrong"}
    refused = bed.run(group_moves_check_where=False, **access)
    assert refused.code == 2
    assert "web: migrate to b failed: who are you?" in refused.text


def test_rapi_names_the_node_on_shared_storage(shared, url):
    access = {"group_moves_driver": "rapi", "group_moves_url": url, "group_moves_username": "mover", "group_moves_password": "secret"}
    finishes(shared, **access)
    assert sorted(shared.log("PUT")) == [
        'failover {"ignore_consistency": false, "target_node": "b"}',
        'migrate {"target_node": "c"}',
        'migrate {"target_node": "d"}',
    ]


def test_virsh(shared):
    uris = {"group_moves_virsh_uri": "test:///{node}", "group_moves_virsh_target": "test:///{node}"}
    shared.change(fail={"migrate 102": 1})
    stopped = shared.run(group_moves_driver="virsh", **uris)
    assert stopped.code == 2
    assert "102: migrate to d failed: told to fail: migrate 102 d" in stopped.text
    assert "1 of 3 moves are done." in stopped.text
    finishes(shared, group_moves_driver="virsh", **uris)
    assert sorted(shared.log("done")) == ["failover 103-idle b", "migrate 101-web c", "migrate 102 d"]


@pytest.mark.parametrize(
    "begun", [{"ansible_job_id": None}, {"ansible_job_id": "j1.1", "started": 1, "finished": 0}], ids=["at once", "later"]
)
def test_a_node_answers_for_no_other(shared, begun):
    """Node b says that it has moved what is to leave a, which a refuses to do."""
    uris = {"group_moves_virsh_uri": "test:///{node}", "group_moves_virsh_target": "test:///{node}"}
    shared.change(fail={"migrate 101": 1})
    taken = {"move": 0, "step": 0, "instance": "101-web", "from": ["a"], "node": "c"}
    other = {"group_moves_step": taken, "group_moves_result": {"group_moves_step": taken}, "ansible_loop_var": "x", "rc": 0}
    answer = {key: value for key, value in {**other, **begun}.items() if value is not None}
    lying = {"command": {"stdout": "102\n", **answer}, "async_status": {**other, "finished": 1}}
    done = shared.run(group_moves_driver="virsh", lying={"b": lying}, **uris)
    assert done.code == 2, done.text
    assert "101-web: migrate to c failed: told to fail: migrate 101-web c" in done.text
    assert "1 of 3 moves are done." in done.text
    (journal,) = (shared.folder / "group_moves").glob("*.json")
    assert list(json.loads(journal.read_text())["failures"]) == ["0"]


def test_an_instance_that_two_nodes_have_is_where_nobody_can_tell(shared):
    uris = {"group_moves_virsh_uri": "test:///{node}", "group_moves_virsh_target": "test:///{node}"}
    done = shared.run(group_moves_driver="virsh", lying={"d": {"command": {"stdout": "other\n 101-web \n"}}}, **uris)
    assert done.code == 2, done.text
    assert "101-web is listed by a and d." in done.text
    assert shared.state().get("log", []) == []
    finishes(shared, group_moves_driver="virsh", lying={}, **uris)


def test_moves_of_a_stage_run_side_by_side(shared):
    uris = {"group_moves_virsh_uri": "test:///{node}", "group_moves_virsh_target": "test:///{node}"}
    shared.change(seconds=12)
    done = shared.run(group_moves_driver="virsh", **uris)
    assert done.code == 0, done.text
    first = [line.split()[0] for line in shared.state()["log"]][:4]
    assert first == ["begin", "begin", "done", "done"]


def test_pvesh_is_not_trusted_with_success(shared):
    shared.change(fail={"migrate 101": 1})
    options = {"group_moves_driver": "proxmox", "group_moves_proxmox_options": ["with-local-disks=1"]}
    stopped = shared.run(**options)
    assert stopped.code == 2
    assert "101-web: migrate to c failed: told to fail: migrate 101-web c" in stopped.text
    finishes(shared, **options)
    assert json.loads(shared.log("options")[0]) == {"--online": "1", "--target": "c", "--with-local-disks": "1"}
    assert json.loads(shared.log("options")[-1]) == {"--target": "b", "--with-local-disks": "1"}


def test_proxmox_api(shared, url):
    access = {"group_moves_url": url, "group_moves_username": "mover@pve!plan", "group_moves_password": "secret"}
    shared.change(fail={"migrate 102": 1}, polls=1)
    stopped = shared.run("-vvv", group_moves_driver="proxmox", **access)
    assert stopped.code == 2
    assert "102: migrate to d failed: UPID:b:18 ended with told to fail: migrate 102 d" in stopped.words
    assert "secret" not in stopped.text
    finishes(shared, group_moves_driver="proxmox", **access)
    assert json.loads(shared.log("options")[1]) == {"restart": "1", "target": "d"}


@pytest.mark.short
def test_a_driver_refuses_what_it_cannot_do(bed):
    refused = bed.run(group_moves_driver="virsh", group_moves_check_where=False)
    assert refused.code == 2
    assert "plan.moves[0].steps[1].kind: is replace_disks, which the driver cannot do; it knows migrate, failover" in refused.text


def test_own_tasks(shared):
    own = [
        {"name": "Refuse", "ansible.builtin.fail": {"msg": "not today"}, "when": "move.instance == broken | default('')"},
        {
            "name": "Move",
            "ansible.builtin.lineinfile": {
                "path": str(shared.folder / "moved"),
                "line": "{{ move.kind }} {{ move.instance }} {{ move.from[0] }} {{ move.node }}",
                "create": True,
                "mode": "0644",
            },
        },
    ]
    (shared.folder / "own.yml").write_text(yaml.safe_dump(own))
    asks = [{"name": "Ask", "ansible.builtin.set_fact": {"group_moves_where": shared.homes()}}]
    (shared.folder / "where.yml").write_text(yaml.safe_dump(asks))
    options = {"group_moves_driver": "tasks", "group_moves_tasks_file": "own.yml"}
    told = shared.run("--tags", "plan", group_moves_where_tasks_file=str(shared.folder / "where.yml"), **options)
    assert "101-web migrate to c" in told.text, told.text
    assert not (shared.folder / "moved").exists(), "it is only told"
    stopped = shared.run(group_moves_where_tasks_file=str(shared.folder / "where.yml"), broken="101-web", **options)
    assert stopped.code == 2
    assert "101-web: migrate to c failed: not today" in stopped.text
    assert not (shared.folder / "moved").exists(), "the other step of the round was not begun"
    done = shared.run(**options)
    assert done.code == 0, done.text
    lines = ["migrate 101-web a c", "migrate 102 b d", "failover 103-idle c b"]
    assert (shared.folder / "moved").read_text().splitlines() == lines
    stays(shared, **options)


def test_journals_in_a_ledger_are_found_by_the_next_job_and_belong_to_one_at_a_time(shared):
    """Both jobs have a container of their own: nothing but the ledger is left of the first."""
    fails = {"name": "Refuse", "ansible.builtin.fail": {"msg": "not today"}, "when": "move.instance == broken | default('')"}
    moved = {"path": str(shared.folder / "moved"), "line": "{{ move.instance }} {{ move.node }}", "create": True, "mode": "0644"}
    (shared.folder / "own.yml").write_text(yaml.safe_dump([fails, {"name": "Move", "ansible.builtin.lineinfile": moved}]))
    database = f"sqlite:///{shared.folder}/ledger.sqlite"
    options = {"group_moves_driver": "tasks", "group_moves_tasks_file": "own.yml", "group_moves_check_where": False}
    options |= {"group_moves_state": "ledger", "group_moves_state_name": "prod", "group_moves_database": database}
    rehearsed = shared.run("--check", **options)
    assert rehearsed.code == 0, rehearsed.text
    assert not (shared.folder / "ledger.sqlite").exists(), rehearsed.text
    stopped = shared.run(**options, broken="102")
    assert stopped.code == 2
    assert "102: migrate to d failed: not today" in stopped.text
    assert not (shared.folder / "group_moves").exists(), "no journal is a file"
    with open_ledger(database) as ledger:
        other = '{"host": "pod-7", "pid": 12, "started": "1", "numbering": "another container"}'
        ledger.write(lambda connection: states.take(connection, "prod", other, 60, lambda _holder: False))
        refused = shared.run(**options)
        assert refused.code == 2
        assert "is in use by another run, process 12 on pod-7" in refused.text
        ledger.write(lambda connection: states.give_back(connection, "prod", other))
    done = shared.run(**options)
    assert done.code == 0, done.text
    assert (shared.folder / "moved").read_text().splitlines() == ["101-web c", "102 d", "103-idle b"], "each once"
    stays(shared, **options)
    with open_ledger(database) as ledger:
        held = ledger.read(lambda connection: connection.exec_driver_sql("SELECT holder FROM states").scalars().all())
    assert held == [None], "the next job need not wait"


def test_the_journal_says_how_long_rounds_took(shared):
    """A round that stopped on the way says nothing, nor does what own tasks do one after the other."""
    uris = {"group_moves_virsh_uri": "test:///{node}", "group_moves_virsh_target": "test:///{node}"}
    shared.change(seconds=2, fail={"migrate 102": 1})
    shared.run(group_moves_driver="virsh", **uris)
    finishes(shared, group_moves_driver="virsh", **uris)
    (journal,) = (shared.folder / "group_moves").glob("*.json")
    rounds = json.loads(journal.read_text())["rounds"]
    assert [[(step["move"], step["step"]) for step in one["steps"]] for one in rounds] == [[(1, 0)], [(2, 0)]]
    assert all(2 <= one["seconds"] < 300 for one in rounds), rounds
    journal.unlink()
    (shared.folder / "own.yml").write_text(yaml.safe_dump([{"name": "Do nothing", "ansible.builtin.meta": "noop"}]))
    done = shared.run(group_moves_driver="tasks", group_moves_tasks_file="own.yml", group_moves_check_where=False)
    assert done.code == 0, done.text
    assert [len(one["steps"]) for one in json.loads(journal.read_text())["rounds"]] in ([], [1])


@pytest.mark.short
@pytest.mark.parametrize("driver", ["rapi", "tasks"])
def test_what_a_driver_needs_is_asked_for(bed, driver):
    refused = bed.run(group_moves_driver=driver)
    assert refused.code == 2
    assert "needs group_moves_" in refused.text


@pytest.mark.short
def test_a_user_in_the_address_is_refused_and_not_shown(bed):
    refused = bed.run("-vvv", group_moves_driver="rapi", group_moves_url="https://mover:hush@cluster.example.com:5080")
    assert refused.code == 2
    assert "does not belong into group_moves_url" in refused.text
    assert "hush" not in refused.text


def test_the_playbooks_plan_show_and_move(bed):
    environment = os.environ | {
        "PATH": f"{bed.folder / 'bin'}:{os.environ['PATH']}",
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "1",
    }
    environment["ANSIBLE_HOME"] = str(bed.folder / "home")
    plan, page = bed.folder / "plan.json", bed.folder / "moves.html"

    def play(name: str, *options: str) -> str:
        command = [
            sys.executable,
            "-m",
            "ansible",
            "playbook",
            "-c",
            "local",
            f"playbooks/{name}.yml",
            "--extra-vars",
            f"plan_file={plan}",
            *options,
        ]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    play("evacuate", "--extra-vars", f"page={page}")
    assert page.read_text().count('<li class="move ') == 15
    moves = json.loads(plan.read_text())["moves"]
    bed.change(instances={move["instance"]: {"nodes": move["from"]} for move in moves})
    text = play("move", "--check")
    assert len(re.findall(r"^    - inst-\S+ \w+ to node-", text, re.MULTILINE)) == sum(len(move["steps"]) for move in moves)
