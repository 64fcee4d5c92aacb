# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""group_place and group_evacuate as a playbook meets them, and the playbooks that the collection ships."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import typing as t

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[4]
COLLECTION = ROOT / ".venv" / "collections" / "ansible_collections" / "bareon" / "allocator"
PLACE, EVACUATE = "bareon.allocator.group_place", "bareon.allocator.group_evacuate"
NODES = [{"name": name, "total_memory": "64 GiB", "total_disk": "1 TiB", "total_cpus": 16} for name in ("n1", "n2", "n3")]
WEB = {"name": "web", "memory": "8 GiB", "disk": "40 GiB", "vcpus": 4}
CLUSTER = {"nodes": NODES, "instances": [WEB | {"name": "old", "primary": "n1", "secondary": "n2"}]}
TASKS: dict[str, dict[str, t.Any]] = {
    "placed": {PLACE: {"cluster": CLUSTER, "instances": [WEB | {"disk_template": "drbd"}]}},
    "wrong": {PLACE: {"cluster": CLUSTER, "instances": [{"name": "old", "memory": -1, "disk": 1, "vcpus": "x"}]}},
    "unknown": {PLACE: {"cluster": CLUSTER, "instances": [WEB | {"group": "g9"}], "nodes": ["n9"]}},
    "nothing": {PLACE: {"cluster": CLUSTER}},
    "emptied": {EVACUATE: {"cluster": CLUSTER, "nodes": ["n1"], "across_groups": True}},
    "unknown node": {EVACUATE: {"cluster": CLUSTER, "nodes": ["n8", "n9"]}},
    "both": {EVACUATE: {"cluster": CLUSTER, "nodes": ["n1"], "instances": ["old"]}},
}


def ansible(playbook: pathlib.Path, directory: pathlib.Path, *options: str) -> str:
    environment = os.environ | {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"), "ANSIBLE_LOCALHOST_WARNING": "0"}
    command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", str(playbook), *options]
    run = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout + run.stderr


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, dict[str, t.Any]], str]:
    directory = tmp_path_factory.mktemp("group")
    tasks = [{"name": name, **task, "register": f"r{number}", "ignore_errors": True} for number, (name, task) in enumerate(TASKS.items())]
    results = {name: f"{{{{ r{number} }}}}" for number, name in enumerate(TASKS)}
    save = {"ansible.builtin.copy": {"content": "{{ results | to_json }}", "dest": str(directory / "out.json"), "mode": "0600"}}
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [*tasks, {**save, "vars": {"results": results}}]}
    play["vars"] = {"ansible_python_interpreter": sys.executable}
    (directory / "play.yml").write_text(yaml.safe_dump([play], sort_keys=False))
    output = ansible(directory / "play.yml", directory)
    return json.loads((directory / "out.json").read_text()), output


def test_places_are_found(run):
    found = run[0]["placed"]
    assert found["changed"] is False
    assert found["unplaced"] == []
    best = found["solutions"][0]["groups"][0]
    assert (best["group"], len(best["nodes"]), best["lost"]) == ("default", 2, None)


def test_a_node_is_emptied(run):
    found = run[0]["emptied"]
    assert [placed["instance"] for placed in found["placed"]] == ["old"]
    assert "n1" not in found["placed"][0]["nodes"]
    assert found["plan"]["stages"] == [[0]]
    assert found["plan"]["commands"] == found["plan"]["moves"][0]["commands"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wrong", ["instances[0].name", "instances[0].memory", "instances[0].vcpus"]),
        ("unknown", ["nodes[0]: unknown node 'n9'", "instances[0].group: unknown group 'g9'"]),
        ("nothing", ["there is nothing to place"]),
        ("unknown node", ["nodes[0]: unknown node 'n8'", "nodes[1]: unknown node 'n9'"]),
        ("both", ["mutually exclusive"]),
    ],
)
def test_mistakes_are_told_together_and_without_a_traceback(run, name, words):
    results, output = run
    assert results[name]["failed"]
    assert all(word in results[name]["msg"] for word in words), results[name]["msg"]
    assert "Traceback" not in output


def test_the_shipped_playbooks_run():
    placed = ansible(pathlib.Path("playbooks/place.yml"), COLLECTION)
    for line in (
        r"small: 1 of 1 groups can take it",
        r"dedicated +preferred +three-quarters +\S+ +0,0,1 +0 MiB",
        r"dedicated +preferred +half +\S+ +0,1,2 +0 MiB",
        r"dedicated +preferred +empty +\S+ +1,2,4 +0 MiB",
        r"group-02 +preferred +node-0005:node-0007 +17.66",
    ):
        assert re.search(line, placed), placed
    evacuated = ansible(pathlib.Path("playbooks/evacuate.yml"), COLLECTION)
    assert "15 of 15 instances move in 1 stage, " in evacuated
    assert re.search(r"1 +inst-\d+ +replace_and_failover +group-01 +\d+ GiB\W+node-\d+:node-\d+ -> node-\d+", evacuated)
    assert "gnt-instance replace-disks -n" in evacuated
    assert "WARNING" not in placed + evacuated
