# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""group_follow as a playbook meets it: its state in a file or a ledger, check mode, the diff, and files that are none."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[4]
NODES = [{"name": name, "total_memory": "64 GiB", "total_disk": 0, "total_cpus": 16} for name in ("n1", "n2")]
GUESTS = [{"name": f"i{n}", "memory": "8 GiB", "disk": 0, "vcpus": 1, "disk_template": "rbd", "primary": "n1"} for n in range(3)]
USUAL = {"cluster": {"nodes": NODES, "instances": GUESTS}, "state_file": "state.json", "now": "2026-03-02T08:00:00Z"}
TASKS = {
    "checked": ({}, {"check_mode": True}),
    "found": ({}, {"register": "stat", "stat": True}),
    "first": ({}, {"diff": True}),
    "second": ({"now": "2026-03-02T09:00:00+01:00"}, {}),
    "broken": ({"state_file": "broken.json"}, {}),
    "late": ({"now": "noon"}, {}),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("follow")
    (folder / "broken.json").write_text('{"version": 1, "gruops": {}}', encoding="utf-8")
    tasks = []
    for name, (arguments, more) in TASKS.items():
        task = {"bareon.allocator.group_follow": {**USUAL, **arguments}, **more}
        if "stat" in more:
            task = {"ansible.builtin.stat": {"path": str(folder / "state.json")}}
        tasks.append({**task, "name": name, "register": name, "ignore_errors": True})
    save = {"content": "{{ results | to_json }}", "dest": str(folder / "out.json"), "mode": "0600"}
    tasks.append({"ansible.builtin.copy": save, "vars": {"results": {name: f"{{{{ {name} }}}}" for name in TASKS}}})
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}
    play["vars"] = {"ansible_python_interpreter": sys.executable}
    (folder / "play.yml").write_text(yaml.safe_dump([play], sort_keys=False), encoding="utf-8")
    environment = os.environ | {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"), "ANSIBLE_LOCALHOST_WARNING": "0"}
    command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", "play.yml"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "out.json").read_text(encoding="utf-8")) | {"state": json.loads((folder / "state.json").read_text())}


def test_check_mode_tells_all_and_keeps_nothing(results):
    assert results["checked"]["changed"]
    assert results["checked"]["plan"] == results["first"]["plan"]
    assert not results["found"]["stat"]["exists"]


def test_what_is_kept_is_shown(results):
    assert json.loads(results["first"]["diff"]["after"]) == results["state"]
    assert json.loads(results["first"]["diff"]["before"])["pending"] is None
    assert results["state"]["pending"]["plan"]["moves"] == results["first"]["plan"]["moves"]
    assert results["state"]["pending"]["made"] == "2026-03-02T08:00:00Z"


def test_a_second_run_at_the_same_time_changes_nothing(results):
    second = results["second"]
    assert (second["changed"], second["resumed"], second["now"]) == (False, True, "2026-03-02T08:00:00Z")
    assert second["diff"]["before"] == second["diff"]["after"] == ""


def test_what_cannot_be_used_is_told(results):
    assert results["broken"]["msg"].startswith("state_file: ")
    assert "gruops: is not a key of the record (did you mean groups?)" in results["broken"]["msg"]
    assert results["late"]["msg"] == "now: is 'noon'; must be a time with its zone, such as 2026-03-01T04:00:00Z"


MOVE = {"line": "{{ move.instance }} {{ move.node }}", "create": True, "mode": "0600"}


def follow_job(tmp_path, number, *options, **variables):
    """Run the playbook follow in a folder and a home of its own, as a job in a container does."""
    folder = tmp_path / f"job{number}"
    folder.mkdir()
    tasks = [{"name": "Move it", "ansible.builtin.lineinfile": {**MOVE, "path": str(tmp_path / "moved")}}]
    (folder / "move.yml").write_text(yaml.safe_dump(tasks), encoding="utf-8")
    given = {
        "follow_cluster": USUAL["cluster"],
        "follow_now": "2026-03-02T08:00:00Z",
        "follow_state": "ledger",
        "follow_state_name": "prod",
        "follow_carry_out": True,
        "ansible_connection": "local",
        "group_moves_driver": "tasks",
        "group_moves_tasks_file": str(folder / "move.yml"),
        "ansible_python_interpreter": sys.executable,
        **variables,
    }
    environment = os.environ | {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"),
        "ANSIBLE_LOCALHOST_WARNING": "0",
        "HOME": str(folder),
        "BAREON_DATABASE": f"sqlite:///{tmp_path}/ledger.sqlite",
    }
    command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", "bareon.allocator.follow"]
    command += ["--extra-vars", json.dumps(given), *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300)
    return done, folder


def test_jobs_that_lose_their_files_follow_a_cluster_by_a_ledger(tmp_path):
    rehearsed, _folder = follow_job(tmp_path, 0, "--check")
    assert rehearsed.returncode == 0, rehearsed.stdout + rehearsed.stderr
    assert not (tmp_path / "ledger.sqlite").exists()
    first, folder = follow_job(tmp_path, 1)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "goes to" in first.stdout
    assert not (folder / "follow" / "state.json").exists()
    assert not (folder / "follow" / "journals").exists()
    (moved,) = (tmp_path / "moved").read_text(encoding="utf-8").splitlines()
    name, node = moved.split()
    guests = [guest | {"primary": node} if guest["name"] == name else guest for guest in GUESTS]
    # More memory on the other node would be balanced at once, were it not for the pause that the first job's record asks for.
    guests += [{**GUESTS[0], "name": f"j{number}", "primary": "n2"} for number in range(3)]
    second, _folder = follow_job(tmp_path, 2, follow_cluster={"nodes": NODES, "instances": guests}, follow_now="2026-03-02T08:10:00Z")
    assert second.returncode == 0, second.stdout + second.stderr
    assert "2026-03-02T09:10:00Z" in second.stdout, "the end of the pause, from when the moves were seen to be done"
    assert (tmp_path / "moved").read_text(encoding="utf-8").splitlines() == [moved]
    unnamed, _folder = follow_job(tmp_path, 3, follow_state_name=None)
    assert unnamed.returncode != 0
    assert "state_name: is missing" in unnamed.stdout + unnamed.stderr
