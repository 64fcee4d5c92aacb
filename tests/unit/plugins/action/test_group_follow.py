# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""group_follow as a playbook meets it: its state file, check mode, the diff, and files that are none."""

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
