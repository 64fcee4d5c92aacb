# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Playbooks on a test machine, over ssh on loopback with what Ansible has to be fast: pipelining, and one connection for all tasks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.bareon.allocator.tests.support.results_as_json import RESULTS_AS_JSON

from .machine import Guest

ROOT = Path(__file__).parents[3]

Plain = dict[str, t.Any]


class PlaybookFailed(Exception):
    """A playbook failed; the message has all it said."""


@dataclass(frozen=True)
class Played:
    """What came of a playbook: its `seconds`, how many tasks were carried out and changed something (items of loops are not counted)."""

    seconds: float
    tasks: int
    changed: int
    output: str


def play(machine: Guest, folder: Path, playbook: Path, variables: Plain) -> Played:
    """Run a playbook; raises PlaybookFailed."""
    inventory = folder / "inventory.json"
    inventory.write_text(json.dumps({"all": {"hosts": {"machine": machine.ansible_variables}}}), encoding="utf-8")
    given = folder / "variables.json"
    given.write_text(json.dumps(variables), encoding="utf-8")
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_HOME": str(folder / "ansible"),
        **RESULTS_AS_JSON,
        "ANSIBLE_PIPELINING": "true",
        "ANSIBLE_HOST_KEY_CHECKING": "false",
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(machine.sockets),
    }
    command = [sys.executable, "-m", "ansible", "playbook", "--inventory", str(inventory), "--extra-vars", f"@{given}", str(playbook)]
    started = time.monotonic()
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - started
    if done.returncode:
        raise PlaybookFailed(f"rc {done.returncode}\n{_failures(done.stdout)}\n{done.stderr}")
    stats = json.loads(done.stdout)["stats"]["machine"]
    return Played(seconds, stats["ok"], stats["changed"], done.stdout)


def _failures(output: str) -> str:
    try:
        tasks = json.loads(output)["tasks"]
    except ValueError:
        return output
    results = [(task["name"], result) for task in tasks for result in task["hosts"].values()]
    failed = [(name, result) for name, result in results if result.get("failed") or result.get("unreachable")]
    return "\n".join(f"{name}: {json.dumps(result, indent=1)}" for name, result in failed)
