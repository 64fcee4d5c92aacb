# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""group_info as a playbook meets it."""

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
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

INFO = "bareon.allocator.group_info"
NODES = [{"name": name, "total_memory": "64 GiB", "total_disk": "1 TiB", "total_cpus": "{{ cpus }}"} for name in ("n1", "n2")]
WEB = {"name": "web", "memory": "8 GiB", "disk": "40 GiB", "vcpus": 4, "primary": "n1", "secondary": "n2"}
RAPI = str(ROOT / "tests" / "unit" / "data" / "group" / "rapi")
TASKS: dict[str, dict[str, t.Any]] = {
    "inline": {"cluster": {"nodes": NODES, "instances": [WEB]}},
    "capacity": {"cluster": {"nodes": NODES, "instances": [WEB]}, "score": "capacity"},
    "text": {"source": {"type": "ganeti_text", "path": "cluster.data"}},
    "exported": {"source": {"type": "ganeti_text", "path": "cluster.data"}, "export": ["cluster", "ganeti_text"]},
    "again": {"cluster": "{{ exported.cluster }}"},
    "message": {"source": {"type": "iallocator", "path": "message.json"}},
    "recorded": {"source": {"type": "ganeti_rapi", "path": RAPI}},
    "wrong": {"cluster": {"nodes": [*NODES, {"name": "n1"}], "instances": [WEB | {"primary": "n9", "vcpus": "x"}]}},
    "truncated": {"source": {"type": "ganeti_text", "path": "truncated.data"}},
    "missing": {"source": {"type": "ganeti_text", "path": "no.data"}},
    "unreachable": {"source": {"type": "ganeti_rapi", "url": "http://127.0.0.1:1", "username": "u", "password": "hidden-word"}},
    "both": {"cluster": {"nodes": NODES}, "source": {"type": "iallocator", "path": "x"}},
    "neither": {},
}


class Run(t.NamedTuple):
    """Results by name, and what Ansible printed."""

    results: dict[str, dict[str, t.Any]]
    output: str


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("group")
    generated = generate(nodes=10, per_node=4, extags=True, offline=1)
    (folder / "cluster.data").write_text(generated.text())
    (folder / "truncated.data").write_text(generated.text()[:500])
    (folder / "message.json").write_text(generated.ialloc({"type": "relocate"}))
    tasks = [{"name": name, INFO: given, "register": name, "ignore_errors": True} for name, given in TASKS.items()]
    tasks[0]["check_mode"] = True
    own = ", ".join(f"'{name}': {name}" for name in TASKS)
    content = "{{ {" + own + "} | to_json }}"
    tasks.append({"ansible.builtin.copy": {"dest": str(folder / "results.json"), "content": content, "mode": "0600"}})
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "cpus": 16}
    play = [{"hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": tasks}]
    (folder / "play.yml").write_text(yaml.safe_dump(play, sort_keys=False), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-vvv", "-i", "localhost,", "play.yml"],
        cwd=folder,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(folder / "home"), "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Run(json.loads((folder / "results.json").read_text(encoding="utf-8")), done.stdout + done.stderr)


def test_cluster_written_out(run: Run) -> None:
    result = run.results["inline"]
    assert (result["changed"], result["failed"], result["score_mode"]) == (False, False, "htools")
    assert result["health"]["healthy"] is True
    assert result["nodes"][1]["reserved_memory"] == 8192
    assert result["summary"].startswith("Cluster score ")


def test_score_is_chosen(run: Run) -> None:
    assert run.results["capacity"]["score_mode"] == "capacity"
    assert run.results["capacity"]["score"] == pytest.approx(run.results["inline"]["score"], abs=1e-9), "the nodes are equal"


def test_text_and_message_tell_the_same_where_all_is_online(run: Run) -> None:
    text, message = run.results["text"], run.results["message"]
    assert text["score"] == pytest.approx(message["score"])
    assert text["health"] == message["health"]
    assert text["health"]["offline_pri"] + text["health"]["offline_sec"] > 0


def test_exported_cluster_is_the_next_tasks_argument(run: Run) -> None:
    exported, again = run.results["exported"], run.results["again"]
    assert {name: again[name] for name in ("score", "nodes", "problems", "groups")} == {
        name: exported[name] for name in ("score", "nodes", "problems", "groups")
    }
    assert exported["ganeti_text"].startswith("group-01|uuid-group-01|preferred||\n\nnode-0001")
    assert "cluster" not in again


def test_recorded_answers(run: Run) -> None:
    assert [group["name"] for group in run.results["recorded"]["groups"]] == ["default", "spare"]


def test_all_mistakes_are_one_message(run: Run) -> None:
    result = run.results["wrong"]
    assert result["failed"]
    assert result["msg"].splitlines() == [
        "5 mistakes in the input:",
        "- cluster.nodes[2].total_memory: is missing; must be a size in MiB, or text such as '50 GiB'",
        "- cluster.nodes[2].total_cpus: is missing; must be a number",
        "- cluster.instances[0].vcpus: is 'x'; must be a whole number, 0 or more",
        "- cluster.nodes[2]: the node with the name n1 occurs twice, also at cluster.nodes[0]",
        "- cluster.instances[0].primary: unknown node 'n9'",
    ]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("truncated", "sections; missing:"),
        ("missing", "source.path: cannot read"),
        ("unreachable", "cannot ask http://127.0.0.1:1/2/info"),
        ("both", "mutually exclusive: cluster|source"),
        ("neither", "one of the following is required: cluster, source"),
    ],
)
def test_what_cannot_be_read_is_told(run: Run, name: str, says: str) -> None:
    assert run.results[name]["failed"]
    assert says in run.results[name]["msg"]


def test_no_tracebacks_and_no_passwords(run: Run) -> None:
    assert "Traceback" not in run.output
    assert "hidden-word" not in run.output
