# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A playbook that registers, then claims, in check mode: each task sees what those before it would have changed, and nothing is changed."""

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
REQUEST = {"groups": {"": {"resources": {"CUSTOM_LICENCE": 2}, "required": ["CUSTOM_GOLD"]}}}
REGISTER = {"name": "host", "inventories": {"CUSTOM_LICENCE": 4}, "traits": ["CUSTOM_GOLD"]}
MODULE = "bareon.allocator."
TASKS: dict[str, tuple[str, dict[str, t.Any]]] = {
    "before": ("provider_info", {}),
    "registered": ("provider", REGISTER),
    "again": ("provider", REGISTER),
    "found": ("provider_candidates", REQUEST),
    "claimed": ("provider_allocation", {"consumer": "web1", "request": REQUEST}),
    "kept": ("provider_allocation", {"consumer": "web1", "request": REQUEST}),
    "too_much": ("provider_allocation", {"consumer": "web2", "allocations": {"host": {"CUSTOM_LICENCE": 3}}}),
    "told": ("provider_info", {"audit": True}),
}


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    looked = {"name": "look up", "set_fact": {"free": "{{ lookup('bareon.allocator.usages', 'host', database=url).CUSTOM_LICENCE.free }}"}}
    shown = "{{ {" + ", ".join(f"'{name}': {name}" for name in (*TASKS, "free", "unwritten")) + "} | to_json }}"
    copied: dict[str, t.Any] = {"dest": str(tmp_path / "results.json"), "content": shown, "mode": "0600"}
    first = list(TASKS)[:5]
    tasks = {
        name: {"name": name, MODULE + module: given, "register": name, "ignore_errors": True} for name, (module, given) in TASKS.items()
    }
    common = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "url": f"sqlite:///{tmp_path}/x.sqlite"},
        "module_defaults": {"group/bareon.allocator.provider": {"database": "{{ url }}"}},
    }
    single = {"name": "alone", MODULE + "provider_info": {}, "check_mode": False, "register": "unwritten"}
    rest = [tasks[name] for name in TASKS if name not in first]
    last = [looked, single, {"ansible.builtin.copy": copied, "check_mode": False, "diff": False}]
    plays = [{**common, "tasks": [tasks[name] for name in first]}, {**common, "tasks": [*rest, *last]}]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(plays, sort_keys=False), encoding="utf-8")
    return tmp_path


def play(folder: pathlib.Path, *options: str) -> dict[str, t.Any]:
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", *options, "play.yml"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return t.cast("dict[str, t.Any]", json.loads((folder / "results.json").read_text(encoding="utf-8")))


def without_times(consumers):
    return {uuid: {**consumer, "claimed_at": None} for uuid, consumer in consumers.items()}


def test_check_mode_plays_a_whole_playbook_through(folder: pathlib.Path) -> None:
    checked = play(folder, "--check")
    assert checked["before"]["providers"] == []
    assert checked["registered"]["changed"]
    assert not checked["again"]["changed"]
    assert len(checked["found"]["candidates"]) == 1
    assert checked["claimed"]["changed"]
    assert not checked["kept"]["changed"]
    assert checked["too_much"]["failed"]
    assert [entry["name"] for entry in checked["told"]["consumers"].values()] == ["web1"]
    assert (checked["told"]["audit"], checked["free"]) == ([], 2)
    assert checked["unwritten"]["providers"] == []
    assert not (folder / "x.sqlite").exists()
    assert not list((folder / "home").rglob("bareon-*"))
    played = play(folder)
    # A claim is made when it is made.
    assert without_times(played["claimed"]["consumers"]) == without_times(checked["claimed"]["consumers"])
    assert not play(folder, "--check")["claimed"]["changed"]
    assert played["unwritten"]["consumers"] == play(folder)["unwritten"]["consumers"]
