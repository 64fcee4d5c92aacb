# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A module of Ansible that a host runs by host_answer: it does what a task of its own does, and its facts are checked."""

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
Result = dict[str, t.Any]


def play(folder: Path, tasks: list[dict[str, t.Any]], *arguments: str, python: str = sys.executable) -> dict[str, Result]:
    """Run tasks on a host whose Python Ansible has to find; return the result of each by its name, and `facts`."""
    for number, task in enumerate(tasks):
        task |= {"register": f"result{number}", "ignore_errors": True}
    shown = {f"{number}": f"{{{{ result{number} }}}}" for number in range(len(tasks))} | {"facts": "{{ ansible_facts }}"}
    kept = {"content": "{{ shown | to_json }}", "dest": str(folder / "shown.json")}
    tasks = [*tasks, {"bareon.allocator.controller_file": kept, "vars": {"shown": shown}, "check_mode": False}]
    (folder / "play.yml").write_text(json.dumps([{"hosts": "web0", "gather_facts": False, "tasks": tasks}]), encoding="utf-8")
    variables = {"ansible_connection": "apart", "ansible_interpreter_python_fallback": [python], "folder": str(folder)}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")} | {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"),
        "ANSIBLE_CONNECTION_PLUGINS": str(ROOT / "tests" / "support" / "connections"),
        **{name: str(folder / name) for name in ("ANSIBLE_HOME", "ANSIBLE_REMOTE_TMP", "ANSIBLE_LOCAL_TEMP", "ANSIBLE_ASYNC_DIR")},
    }
    command = [
        sys.executable,
        "-m",
        "ansible",
        "playbook",
        "-i",
        "web0,",
        "-e",
        json.dumps(variables),
        *arguments,
        str(folder / "play.yml"),
    ]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((folder / "shown.json").read_text(encoding="utf-8"))
    return {name: found[str(number)] for number, name in enumerate(task.get("name", "") for task in tasks[:-1])} | {"facts": found["facts"]}


def asks(module: str, name: str = "", facts: list[str] | None = None, **arguments: t.Any) -> dict[str, t.Any]:
    given = {"module": module, "arguments": arguments, **({} if facts is None else {"facts": facts})}
    return {"name": name or module, "bareon.allocator.host_answer": given}


def test_modules_do_what_tasks_of_their_own_do(tmp_path: Path) -> None:
    """Of the host, of the controller's files, with an action of their own or without one, at once or later."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "text").write_text("of the controller\n", encoding="utf-8")
    begun = asks("ansible.builtin.command", "begun", argv=["echo", "later"]) | {"async": 60, "poll": 0}
    waited = asks("ansible.builtin.async_status", "waited", jid="{{ result4.ansible_job_id }}") | {
        "until": "result5 is finished",
        "delay": 1,
    }
    found = play(
        tmp_path,
        [
            asks("ansible.builtin.shell", cmd="echo one; echo $((1 + 1))"),
            asks("ansible.builtin.command", argv=["printf", "%s", "a  b"], creates="/nothing"),
            asks("ansible.builtin.copy", src="text", dest="{{ folder }}/copied", mode="0640"),
            asks("ansible.builtin.stat", path="{{ folder }}/copied"),
            begun,
            waited,
            asks("ansible.builtin.setup", facts=["ansible_memtotal_mb"], gather_subset=["hardware"], filter=["ansible_memtotal_mb"]),
            asks("ansible.builtin.file", path="{{ folder }}/copied", state="absent"),
            asks("ansible.builtin.command", "fails", argv=["false"]),
        ],
    )
    assert found["ansible.builtin.shell"]["stdout_lines"] == ["one", "2"]
    assert found["ansible.builtin.command"]["stdout"] == "a  b"
    assert (found["ansible.builtin.stat"]["stat"]["size"], found["ansible.builtin.stat"]["stat"]["mode"]) == (18, "0640")
    assert found["waited"]["stdout"] == "later"
    assert found["facts"]["memtotal_mb"] > 0
    assert not (tmp_path / "copied").exists()
    assert (found["fails"]["rc"], found["fails"]["failed"]) == (1, True)


def test_check_mode_is_that_of_the_module(tmp_path: Path) -> None:
    tasks = [
        asks("ansible.builtin.file", path="{{ folder }}/made", state="directory"),
        asks("ansible.builtin.command", argv=["touch", "{{ folder }}/touched"]),
    ]
    found = play(tmp_path, tasks, "--check")
    assert found["ansible.builtin.file"]["changed"]
    assert found["ansible.builtin.command"]["skipped"]
    assert not (tmp_path / "made").exists()
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("module", ["command", "stat", "setup"])
def test_facts_that_nobody_has_asked_for_are_refused(tmp_path: Path, module: str) -> None:
    python = install(tmp_path / "host", {module: Lie({"ansible_remote_tmp": "$(touch pwned)", "ansible_sftp_executable": "/bin/x"}, {})})
    found = play(tmp_path, [asks(f"ansible.builtin.{module}", "asked", facts=["ansible_memtotal_mb"])], python=str(python))
    assert found["asked"]["failed"]
    lies = ["ansible_remote_tmp", "ansible_sftp_executable"]
    assert [place for place in found["asked"]["foreign_facts"] if place.rpartition(".")[2] in lies] == [
        f"web0.ansible_facts.{lie}" for lie in lies
    ]
    assert not {"remote_tmp", "sftp_executable", "memtotal_mb"} & set(found["facts"])


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"module": "ansible.builtin.nothing_there"}, "module"),
        ({"module": "ansible.builtin.command", "arguments": "true"}, "arguments"),
        ({"modul": "ansible.builtin.command"}, "modul"),
        ({}, "module"),
    ],
)
def test_what_is_no_module_is_refused(tmp_path: Path, given: dict[str, t.Any], named: str) -> None:
    found = play(tmp_path, [{"name": "asked", "bareon.allocator.host_answer": given}])
    assert found["asked"]["failed"]
    assert named in found["asked"]["msg"]


def test_an_answer_has_no_arguments_on_any_release(tmp_path: Path) -> None:
    """Releases before 2.21 return them, and a loop over what a task with `no_log` has registered shows them."""
    asked = asks("ansible.builtin.command", "asked", argv=["echo", "hello"]) | {"no_log": True}
    shown = {"name": "shown", "ansible.builtin.debug": {"msg": "seen"}, "loop": ["{{ result0 }}"]}
    found = play(tmp_path, [asked, shown], "-vvv")
    assert found["asked"]["stdout"] == "hello"
    assert "invocation" not in json.dumps(found)
