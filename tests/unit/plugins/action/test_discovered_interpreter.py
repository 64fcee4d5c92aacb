# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts whose interpreter no variable names: Ansible searches for it in the first task, and adds it to the facts of the answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
TASKS: dict[str, dict[str, t.Any]] = {
    "disk_facts": {"devices": ["/dev/none*"]},
    "disk_plan": {"schema": [{"id": "boot", "type": "partition", "size": 1}]},
    "disk_keys": {"containers": []},
}


@pytest.mark.parametrize("name", TASKS)
def test_the_first_task_of_a_play_takes_what_ansible_adds(tmp_path: Path, name: str) -> None:
    """Whatever else it comes to: a machine may have no disks."""
    first = {
        f"bareon.allocator.{name}": TASKS[name],
        "register": "first",
        "failed_when": "'discovered_interpreter' in first.msg | default('')",
    }
    play = {"hosts": "web1", "gather_facts": False, "tasks": [first]}
    (tmp_path / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    # Names that Ansible tries first.
    (tmp_path / "bin").mkdir()
    for number in (13, 14):
        (tmp_path / "bin" / f"python3.{number}").symlink_to(sys.executable)
    command = [sys.executable, "-m", "ansible", "playbook", "--inventory", "web1,", "--connection", "local", "--check", "-v", "play.yml"]
    environment = {variable: value for variable, value in os.environ.items() if not variable.startswith("ANSIBLE_")}
    environment |= {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"), "ANSIBLE_HOME": str(tmp_path), "ANSIBLE_NOCOLOR": "1"}
    environment["PATH"] = f"{tmp_path / 'bin'}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "foreign_facts" not in done.stdout
    assert "deserialization failed" not in done.stdout
