# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options come from wherever Ansible takes variables, in its order, and never from facts; run by Ansible with its defaults."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.support.host.lying import Lie, install

ROOT = Path(__file__).parents[4]
SOURCES = ("inventory", "play", "task", "included", "set", "extra")
"""Where a variable can be, each outranking those before it; facts outrank the inventory."""
TAKE = {"prefix": "site_", "options": [*SOURCES, "indirect", "missing", "left_out", "of_facts", "secret"]}


def play(folder: Path, facts: dict[str, t.Any], tasks: list[dict[str, t.Any]], *options: str) -> tuple[int, str]:
    """Run tasks on a host with these facts; return the exit code and the output."""
    lying = install(folder / "host", {"setup": Lie(facts, {})})
    given = {f"site_{source}": "inventory" for source in SOURCES}
    host = {
        "ansible_connection": "local",
        "ansible_python_interpreter": str(lying),
        **given,
        "keys_folder": "/keys",
        "site_indirect": "{{ keys_folder }}/{{ inventory_hostname }}",
        "site_left_out": "{{ omit }}",
        "site_of_facts": "{{ ansible_facts.hostname }}",
        "site_secret": "hunter2",
    }
    (folder / "inventory.json").write_text(json.dumps({"all": {"hosts": {"web1": host}}}), encoding="utf-8")
    (folder / "included.json").write_text(json.dumps({f"site_{source}": "included" for source in SOURCES[3:]}), encoding="utf-8")
    plays = [{"hosts": "web1", "vars": {f"site_{source}": "play" for source in SOURCES[1:]}, "tasks": tasks}]
    (folder / "play.json").write_text(json.dumps(plays), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"), "ANSIBLE_HOME": str(folder), "ANSIBLE_NOCOLOR": "1"}
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "inventory.json", "play.json", "-e", "site_extra=extra", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


PINNED = {
    "bareon.allocator.pinned_options": TAKE,
    "vars": {f"site_{source}": "task" for source in SOURCES[2:]},
    "register": "site",
}
BEFORE = [
    {"ansible.builtin.include_vars": "included.json"},
    {"ansible.builtin.set_fact": {f"site_{source}": "set" for source in SOURCES[4:]}},
]


def test_all_sources_of_variables_count_and_facts_do_not(tmp_path: Path) -> None:
    facts = {"keys_folder": "/evil", "ansible_hostname": "db"}
    shown = {"ansible.builtin.copy": {"content": "{{ site.options | to_json }}", "dest": str(tmp_path / "taken.json"), "mode": "0600"}}
    code, text = play(tmp_path, facts, [*BEFORE, PINNED, {**shown, "delegate_to": "localhost", "vars": LOCAL}], "-vvv")
    assert code == 0, text
    taken = json.loads((tmp_path / "taken.json").read_text(encoding="utf-8"))
    assert {source: taken[source] for source in SOURCES} == {source: source for source in SOURCES}
    assert taken["indirect"] == "/keys/web1"
    assert taken["of_facts"] == "db"
    assert "missing" not in taken
    assert "left_out" not in taken


LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    code, text = play(tmp_path, {"ansible_hostname": "db"}, [PINNED], "-vvv")
    assert code == 0, text
    assert "hunter2" not in text


@pytest.mark.parametrize("name", ["site_play", "inventory_hostname", "omit", "bareon_profile"])
def test_a_fact_with_the_name_of_an_option_ends_the_run(tmp_path: Path, name: str) -> None:
    code, text = play(tmp_path, {name: "/evil", "ansible_hostname": "db"}, [PINNED])
    assert code == 2, text
    assert f".ansible_facts.{name}" in text
    assert "fatal: [web1]" in text
    assert "/evil" not in text


def test_an_option_that_cannot_be_resolved_is_named(tmp_path: Path) -> None:
    code, text = play(tmp_path, {}, [PINNED])
    assert code == 2, text
    assert "site_of_facts: " in text


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("bareon_profil", "bareon_profile"),
        ("disk_layout_wip", "disk_layout_wipe"),
        ("group_moves_driwer", "group_moves_driver"),
        ("bareon_zzz", ""),
    ],
)
def test_a_variable_that_begins_as_ours_and_is_none_ends_the_run(tmp_path: Path, name: str, meant: str) -> None:
    code, text = play(tmp_path, {}, [{**PINNED, "vars": {name: "web-vm", "bareon_wipe": []}}])
    assert code == 2, text
    assert f"{name}: " in text
    assert meant in text
    assert "bareon_wipe:" not in text


def test_what_a_task_has_registered_is_no_mistake(tmp_path: Path) -> None:
    before = {"ansible.builtin.debug": {"msg": "hello"}, "register": "bareon_of_my_own"}
    code, text = play(tmp_path, {"ansible_hostname": "db"}, [before, PINNED])
    assert code == 0, text
