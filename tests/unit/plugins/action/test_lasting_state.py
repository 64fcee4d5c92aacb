# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every action that writes a file warns where a container takes it away: what a job in memory writes, and nothing else."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[4]
NODES = [{"name": name, "total_memory": "64 GiB", "total_disk": 0, "total_cpus": 16} for name in ("n1", "n2")]
STEP = {"kind": "migrate", "from": ["n1", "n2"], "to": ["n2", "n1"], "node": "n2", "online": True, "command": "gnt-instance migrate i1"}
MOVE = {"instance": "i1", "from": ["n1", "n2"], "data": 0, "steps": [STEP]}
DISK = {"id": "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", "type": "ssd", "size": 102400}
SCHEMA = [{"id": "data", "type": "partition", "size": "1 GiB", "fs_type": "xfs"}]
PROVIDER = {"name": "host", "inventories": {"VCPU": 8}}
TASKS = {
    "state": ("group_follow", {"cluster": {"nodes": NODES}, "state_file": "FOLDER/state.json"}),
    "plans": ("disk_plan", {"hardware": {"disks": [DISK]}, "schema": SCHEMA, "plans_to": "FOLDER/plans"}),
    "report": ("controller_file", {"dest": "FOLDER/report", "content": "text"}),
    "page": ("controller_file", {"dest": "FOLDER/page", "content": "text", "public": True, "named_by": "bareon_drawings"}),
    "second_page": ("controller_file", {"dest": "FOLDER/second", "content": "text", "public": True, "named_by": "bareon_drawings"}),
    "fleet": ("disk_report", {"hosts": ["localhost"], "dest": "FOLDER/fleet.html"}),
    "ledger": ("provider", {**PROVIDER, "database": "sqlite:///FOLDER/ledger.sqlite"}),
    "again": ("provider", {**PROVIDER, "database": "sqlite:///FOLDER/ledger.sqlite"}),
    "backup": ("provider_backup", {"database": "sqlite:///FOLDER/ledger.sqlite", "path": "FOLDER/backup"}),
    "journal": ("group_progress", {"plan": {"moves": [MOVE], "stages": [[0]]}, "directory": "FOLDER/journals"}),
}


@pytest.fixture(scope="module")
def results():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = pathlib.Path(name)
        tasks = []
        for register, (module, arguments) in TASKS.items():
            given = json.loads(json.dumps(arguments).replace("FOLDER", name))
            tasks.append({f"bareon.allocator.{module}": given, "name": register, "register": register})
        save = {"content": "{{ results | to_json }}", "dest": str(folder / "out.json"), "mode": "0600"}
        tasks.append({"ansible.builtin.copy": save, "vars": {"results": {register: f"{{{{ {register} }}}}" for register in TASKS}}})
        play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}
        play["vars"] = {"ansible_python_interpreter": sys.executable}
        hosts = {"all": {"hosts": {"localhost": {"ansible_connection": "local", "bareon_known_hardware": {"disks": [DISK]}}}}}
        (folder / "hosts.yml").write_text(yaml.safe_dump(hosts), encoding="utf-8")
        (folder / "play.yml").write_text(yaml.safe_dump([play], sort_keys=False), encoding="utf-8")
        environment = os.environ | {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"), "container": "podman"}
        command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.yml", "play.yml"]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads((folder / "out.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kept", ["state", "plans", "report", "page", "fleet", "ledger", "backup", "journal"])
def test_what_later_runs_need_is_a_warning(results, kept):
    assert [one for one in results[kept]["warnings"] if "/dev/shm/" in one and "on a volume" in one], results[kept]


def test_nothing_else_is(results):
    assert not results["again"].get("warnings")


def test_a_folder_has_one_warning_that_says_what_names_it(results):
    (warning,) = results["page"]["warnings"]
    assert "bareon_drawings" in warning
    assert results["second_page"]["warnings"] == [warning]
