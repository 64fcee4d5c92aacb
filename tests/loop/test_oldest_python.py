# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What runs on hosts, by the oldest Python that they may have, with no package but what Ansible sends along."""

from __future__ import annotations

import json
import subprocess
import typing as t
from pathlib import Path

import pytest
from ansible_collections.bareon.allocator.tests.loop.layout_runs import digest, new_disk, probe, run, server
from ansible_collections.bareon.allocator.tests.support.host.loop_devices import Loops
from ansible_collections.bareon.allocator.tests.support.host.sent_code import gather_code

PLUGINS = Path(__file__).parents[2] / "plugins"
MODULES = "ansible_collections.bareon.allocator.plugins.modules"
IMPORT_ALL = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]; print(*sys.version_info[:2])"


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The words before those of Python."""
    python = run(str(Path(__file__).parents[1] / "utils" / "oldest-host-python")).strip()
    return ["env", f"PYTHONPATH={gather_code(tmp_path_factory.mktemp('code'))}", python, "-s"]


def test_all_that_runs_on_hosts_can_be_imported(command: list[str]) -> None:
    files = [file.relative_to(PLUGINS).with_suffix("") for name in ("modules", "module_utils") for file in (PLUGINS / name).rglob("*.py")]
    names = [".".join([MODULES.rpartition(".")[0], *file.parts]) for file in files if file.name != "__init__"]
    assert len(names) > 100
    assert run(*command, "-c", IMPORT_ALL, *names).split() == ["3", "9"]


def test_a_layout_is_made_once_and_what_is_there_is_kept(loops: Loops, command: list[str]) -> None:
    disk, other = new_disk(loops), new_disk(loops)
    run("mkfs.ext4", "-q", "-F", other)
    before = digest(other)

    def layout(device: str, **options: t.Any) -> t.Any:
        given = json.dumps({"ANSIBLE_MODULE_ARGS": {"schema": server(device), "lock_timeout": 300, **options}})
        done = subprocess.run([*command, "-m", f"{MODULES}.disk_layout"], input=given, capture_output=True, text=True, check=False)
        assert done.stdout.startswith("\n{"), done.stdout + done.stderr
        return json.loads(done.stdout)

    shown = layout(disk, _ansible_check_mode=True, _ansible_diff=True)
    made = layout(disk, _ansible_diff=True)
    assert [step["says"] for step in shown["steps"]] == [step["says"] for step in made["steps"]]
    assert (made["changed"], made["destroys"]) == (True, [])
    again = layout(disk)
    assert (again.get("failed", False), again["changed"], again["steps"]) == (False, False, [])
    assert [probe(f"{disk}p{number}").get("TYPE") for number in range(2, 7)] == ["vfat", "ext4", "xfs", "btrfs", "swap"]
    refused = layout(other)
    assert refused["failed"]
    assert other in refused["msg"]
    assert digest(other) == before
