# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""group_redistribute, group_compress, group_capacity, group_maintenance and group_squeeze as a playbook meets them."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[4]
NAME = "bareon.allocator.group_"
SOURCE = {"source": {"type": "ganeti_text", "path": str(ROOT / "playbooks" / "files" / "supercluster.data")}}
NODES = [
    {"name": f"{group}{n}", "group": group, "total_memory": "64 GiB", "total_disk": 0, "total_cpus": 16} for group in "ab" for n in (1, 2)
]
GUESTS = [
    {"name": f"i{n}", "memory": "4 GiB", "disk": "20 GiB", "vcpus": 2, "disk_template": "rbd", "primary": "a1", "load": {"cpu": 9}}
    for n in range(4)
]
CLUSTER = {"cluster": {"groups": [{"name": "a"}, {"name": "b"}], "nodes": NODES, "instances": GUESTS}}
TASKS: dict[str, dict[str, t.Any]] = {
    "healed": {"redistribute": {**SOURCE, "workers": 1}},
    "beside": {"redistribute": {**SOURCE, "workers": 2}},
    "levelled": {"redistribute": {**CLUSTER, "by": "load"}},
    "compressed": {"compress": CLUSTER},
    "not empty": {"compress": {"cluster": {**CLUSTER["cluster"], "nodes": NODES[:2], "groups": [{"name": "a"}]}, "group": "a"}},
    "counted": {"capacity": {**SOURCE, "spec": {"memory": "8 GiB", "disk": "100 GiB", "vcpus": 2}, "workers": 2}},
    "nothing": {"capacity": {**CLUSTER, "spec": {"memory": 0, "disk": 0, "vcpus": 0, "disk_template": "plain"}}},
    "rolled": {"maintenance": SOURCE},
    "squeezed": {"squeeze": CLUSTER},
    "wrong": {"redistribute": {**CLUSTER, "groups": ["c"]}},
    "unreachable": {"compress": {**CLUSTER, "scheduler": "tcp://127.0.0.1:1", "insecure": True}},
}


class Run(t.NamedTuple):
    """Results by name, and what Ansible printed."""

    results: dict[str, dict[str, t.Any]]
    output: str


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("between")
    tasks: list[dict[str, t.Any]] = []
    for number, (name, task) in enumerate(TASKS.items()):
        [(module, arguments)] = task.items()
        tasks.append({"name": name, NAME + module: arguments, "register": f"r{number}", "ignore_errors": True})
    tasks[0]["check_mode"] = True
    results = {name: f"{{{{ r{number} }}}}" for number, name in enumerate(TASKS)}
    save = {"ansible.builtin.copy": {"content": "{{ results | to_json }}", "dest": str(folder / "out.json"), "mode": "0600"}}
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [*tasks, {**save, "vars": {"results": results}}]}
    play["vars"] = {"ansible_python_interpreter": sys.executable}
    (folder / "play.yml").write_text(yaml.safe_dump([play], sort_keys=False))
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "play.yml"],
        cwd=folder,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(folder / "home"), "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Run(json.loads((folder / "out.json").read_text()), done.stdout + done.stderr)


def test_groups_are_healed_alike_in_one_process_and_in_several(run: Run) -> None:
    healed, beside = run.results["healed"], run.results["beside"]
    assert healed["healthy"]
    assert healed["changed"] is False
    assert healed["plan"] == beside["plan"]
    assert len(healed["groups"][0]["moved_out"]) == 3


def test_load_is_levelled(run: Run) -> None:
    found = run.results["levelled"]
    assert [group["outlier"] for group in found["groups"]] == ["high", "low"]
    assert len(found["plan"]["moves"]) == 2
    assert all(command.startswith("gnt-instance ") for command in found["plan"]["commands"])


def test_a_group_is_emptied_or_says_why_not(run: Run) -> None:
    assert run.results["compressed"]["emptied"] == "a"
    failed = run.results["not empty"]
    assert failed["failed"]
    assert "no other group shares its storage" in failed["msg"]
    assert failed["conflict"]["candidates"][0]["reasons"][0]["limit"] == "partition"


def test_what_fits_is_counted(run: Run) -> None:
    found = run.results["counted"]
    assert found["count"] == sum(group["count"] for group in found["groups"]) > 0
    assert "needs nothing that a node could run out of" in run.results["nothing"]["msg"]


def test_nodes_go_down_in_sets_and_off(run: Run) -> None:
    sets = [node for members in run.results["rolled"]["sets"] for node in members["nodes"]]
    assert len(sets) == len(set(sets)) > 5
    assert run.results["squeezed"]["power_off"]


def test_mistakes_are_one_message_without_a_traceback(run: Run) -> None:
    assert "groups[0]: unknown group 'c'" in run.results["wrong"]["msg"]
    assert "tcp://127.0.0.1:1" in run.results["unreachable"]["msg"]
    assert "Traceback" not in run.output
