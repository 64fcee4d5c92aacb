# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""disk_drift as a playbook meets it: plans and facts from variables, folders, the inventory and a cache; failures, warnings."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
import yaml
from ansible_collections.bareon.allocator.tests.support.disk.planned import data_plan

ROOT = pathlib.Path(__file__).resolve().parents[4]
Plain = dict[str, t.Any]
Results = dict[str, Plain]


def facts(more: int = 0) -> Plain:
    """Return the disks of the plan, empty; `more` is what the first has grown by."""
    disks = [{"id": disk["disk_id"], "size": disk["size"], "partitions": []} for disk in data_plan()["disks"]]
    disks[0]["size"] += more
    return {"disks": disks}


GONE: Plain = {"disks": facts()["disks"][1:]}
TASKS: dict[str, Plain] = {
    "variables": {"plans": {"big": data_plan(), "small": data_plan()}},
    "given": {"plans": {"big": data_plan()}, "hardware": {"big": {"disks": []}}},
    "folders": {"plans": "plans", "hardware": "facts"},
    "inventory": {"plans": "plans"},
    "cache": {"plans": "plans", "hardware": "{{ '.' | ansible.builtin.realpath }}/cache"},
    "asked": {"plans": "plans", "hosts": ["big", "other"]},
    "must_know_all": {"plans": "plans", "unreachable": "fail"},
    "silent": {"plans": "plans", "hosts": ["dead"]},
    "unplanned": {"plans": "plans", "hosts": ["other"]},
    "gate": {"plans": "plans", "hardware": "facts", "fail_on": ["gone"]},
    "open_gate": {"plans": "plans", "hardware": "facts", "fail_on": ["new"]},
    "no_folder": {"plans": "none"},
    "no_facts_folder": {"plans": "plans", "hardware": "none"},
    "number": {"plans": 3},
    "broken": {"plans": "broken"},
    "spoilt_cache": {"plans": "plans", "hardware": "spoilt_cache"},
    "spoilt_folder": {"plans": "plans", "hardware": "spoilt_folder", "fail_on": ["gone"]},
    "spoilt_facts": {"plans": {"big": data_plan(), "small": data_plan(), "spoilt": data_plan()}},
}


SPOILT: Plain = {"big": facts(3), "small": {"disks": [{"id": ["x"], "size": {}}]}, "dead": "x" * 1000}
"""What is kept of three hosts, of which two have sent something else."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("disk_drift")
    files = {
        **{f"plans/{host}.json": data_plan() for host in ("big", "small", "dead")},
        "facts/big": {"ansible_facts": {"bareon_hardware": facts(7)}, "changed": False},
        "facts/small.json": GONE,
        "cache/s1_big": {"__payload__": json.dumps({"bareon_hardware": facts(9)})},
        "broken/big.json": {"schema": 3},
        **{f"spoilt_cache/s1_{host}": {"__payload__": json.dumps({"bareon_hardware": kept})} for host, kept in SPOILT.items()},
        **{f"spoilt_folder/{host}.json": kept for host, kept in SPOILT.items()},
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    tasks = [
        {"name": name, "bareon.allocator.disk_drift": arguments, "register": name, "ignore_errors": True}
        for name, arguments in TASKS.items()
    ]
    text = "{{ {" + ", ".join(f"'{name}': {name}" for name in TASKS) + "} | to_json }}"
    keep = {"ansible.builtin.copy": {"dest": str(folder / "results.json"), "content": text, "mode": "0600"}}
    hosts = {"big": {"bareon_hardware": facts(5)}, "small": {"bareon_known_hardware": GONE}, "other": {}, "dead": {}, "localhost": {}}
    hosts["spoilt"] = {"bareon_hardware": {"ram": 1, "disks": "x"}}
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (folder / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": local}}), encoding="utf-8")
    play = [{"hosts": "localhost", "gather_facts": False, "tasks": [*tasks, keep]}]
    (folder / "play.yml").write_text(yaml.safe_dump(play, sort_keys=False), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", "inventory.yml", "play.yml"],
        cwd=folder,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return t.cast("Results", json.loads((folder / "results.json").read_text(encoding="utf-8")))


def grown(result: Plain, host: str = "big") -> list[str]:
    return [finding["says"] for finding in result["hosts"][host]["findings"] if finding["state"] == "could_grow"]


@pytest.mark.parametrize(("task", "by"), [("variables", 5), ("folders", 7), ("inventory", 5), ("cache", 9), ("asked", 5)])
def test_facts_are_those_of_the_source_that_is_named(results: Results, task: str, by: int) -> None:
    assert grown(results[task]) == [f"the disk has {by} MiB more than the plan knows"]
    assert results[task]["changed"] is False
    assert not results[task]["failed"]


def test_what_is_given_goes_before_what_is_known(results: Results) -> None:
    assert results["given"]["counts"]["gone"] == 1
    assert results["variables"]["hosts"]["small"]["state"] == "gone"


def test_hosts_that_nothing_is_known_of_are_left_out_with_a_warning(results: Results) -> None:
    assert results["inventory"]["left_out_hosts"] == ["dead"]
    assert results["inventory"]["warnings"][0].startswith("nothing is known about dead; run bareon.allocator.disk_facts there")
    assert results["cache"]["left_out_hosts"] == ["dead", "small"]
    assert "nothing is known about dead" in results["must_know_all"]["msg"]
    assert "nothing is known about dead" in results["silent"]["msg"]


def test_hosts_without_a_plan_are_named(results: Results) -> None:
    assert results["asked"]["unplanned_hosts"] == ["other"]
    assert results["asked"]["warnings"] == ["there is no plan for other"]
    assert results["unplanned"]["msg"] == "plans: contain none of the hosts"


def test_a_gate_stops_only_at_what_it_is_for_and_has_the_whole_result(results: Results) -> None:
    assert results["gate"]["failed"]
    assert results["gate"]["msg"].startswith("1 of 2 hosts are not as planned\nhost ")
    assert results["gate"]["hosts"]["small"]["state"] == "gone"
    assert not results["open_gate"]["failed"]


@pytest.mark.parametrize(
    ("task", "wrong"), [("spoilt_cache", {"small", "dead"}), ("spoilt_folder", {"small", "dead"}), ("spoilt_facts", {"spoilt"})]
)
def test_facts_of_another_kind_keep_no_other_host_from_being_compared(results: Results, task: str, wrong: set[str]) -> None:
    result = results[task]
    assert result["failed"]
    assert set(result["unread_hosts"]) == wrong
    assert set(result["failures"]) >= wrong
    assert grown(result) == [f"the disk has {5 if task == 'spoilt_facts' else 3} MiB more than the plan knows"]
    assert result["msg"].startswith(f"{len(wrong)} of 3 hosts cannot be compared\n")


def test_what_cannot_be_read_is_named(results: Results) -> None:
    assert results["no_folder"]["msg"].startswith("plans: ")
    assert "No such file or directory" in results["no_folder"]["msg"]
    assert results["no_facts_folder"]["msg"].startswith("hardware: ")
    assert results["number"]["msg"] == "plans: must be a mapping by host, or the path of a folder with a file for each host"
    assert "plans.big.schema: " in results["broken"]["msg"]
