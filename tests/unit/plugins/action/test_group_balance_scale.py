# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""group_balance plans many groups in one process, in several, and through TLS on a real Dask cluster, with the same answer."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
import yaml
from ansible_collections.bareon.allocator.tests.support import dask_cluster

ROOT = pathlib.Path(__file__).resolve().parents[4]
BALANCE = "bareon.allocator.group_balance"
GROUPS = ["group-01", "group-02", "group-03"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, dict[str, t.Any]], str]:
    """Return the results of tasks in one playbook, by name, and what was printed."""
    directory = tmp_path_factory.mktemp("scale")
    source = {"type": "ganeti_text", "path": str(ROOT / "playbooks" / "files" / "supercluster.data")}
    certificates = dask_cluster.write_certificates(directory)
    with dask_cluster.started(directory / "dask", certificates=certificates) as address:
        ways = {
            "one process": {"workers": 1},
            "two processes": {"workers": 2},
            "dask": {"scheduler": address, "insecure": True},
            "no time": {"workers": 2, "time_limit": 0.0},
            "wrong address": {"scheduler": "tcp://127.0.0.1:9", "insecure": True},
        }
        tasks: list[dict[str, t.Any]] = [
            {"name": name, BALANCE: {"source": source, "groups": GROUPS, **way}, "register": f"r{number}", "ignore_errors": True}
            for number, (name, way) in enumerate(ways.items())
        ]
        content = "{{ {" + ", ".join(f"'{name}': r{number}" for number, name in enumerate(ways)) + "} | to_json }}"
        tasks.append({"name": "Keep", "ansible.builtin.copy": {"content": content, "dest": str(directory / "out.json"), "mode": "0600"}})
        play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}
        (directory / "play.yml").write_text(yaml.safe_dump([{**play, "vars": {"ansible_python_interpreter": sys.executable}}]))
        environment = os.environ | {
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_HOME": str(directory / "home"),
            "ANSIBLE_NOCOLOR": "1",
            "DASK_CONFIG": str(directory / "dask.yaml"),
        }
        dask_cluster.write_settings(directory / "dask.yaml", dask_cluster.client_settings(certificates))
        environment["ANSIBLE_COLLECTIONS_PATH"] = str(ROOT / ".venv" / "collections")
        command = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", "play.yml"]
        done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((directory / "out.json").read_text()), done.stdout + done.stderr


@pytest.mark.parametrize("way", ["two processes", "dask"])
def test_the_plan_does_not_depend_on_where_it_is_made(run, way):
    here, there = run[0]["one process"], run[0][way]
    assert [group["group"] for group in there["groups"]] == GROUPS
    assert there["plan"]["moves"]
    assert {key: there[key] for key in ("groups", "plan", "unfinished")} == {key: here[key] for key in ("groups", "plan", "unfinished")}


def test_groups_without_time_are_told(run):
    found = run[0]["no time"]
    assert (found["groups"], found["plan"]["moves"], found["unfinished"]) == ([], [], GROUPS)


def test_a_scheduler_that_is_not_there_is_told(run):
    found = run[0]["wrong address"]
    assert found["failed"]
    assert "scheduler tcp://127.0.0.1:9: cannot be reached as a Dask scheduler" in found["msg"]
    assert "Traceback" not in run[1]
