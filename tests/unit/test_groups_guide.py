# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every task of the guide to groups runs, and returns what the guide says."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import place

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ROOT / "playbooks" / "files"
GUIDE = (ROOT / "docs" / "groups.md").read_text(encoding="utf-8")
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)]
TASKS = [task for block in BLOCKS if isinstance(block, list) for task in block]
SAID = {name: result for block in BLOCKS if isinstance(block, dict) for name, result in block.items()}
HOST = {"VCPU": 16, "MEMORY_MB": 65536, "DISK_GB": 500}
RACKS = ("6e8bc430-9c3a-11d9-9669-0800200c9a66", "6e8bc430-9c3a-11d9-9669-0800200c9a67")
LEDGER = {
    "name": "Register the hosts that the guide takes as given",
    "bareon.allocator.provider": {
        "database": "{{ ledger }}",
        "providers": [{"name": f"host{number}", "inventories": HOST, "aggregates": [rack]} for number, rack in enumerate(RACKS)],
    },
}


@pytest.fixture(scope="module")
def returned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guide")
    for name in ("cluster.data", "partitioned.yml"):
        shutil.copy(FILES / name, folder)
    results = {task["register"]: f"{{{{ {task['register']} }}}}" for task in TASKS if "register" in task}
    save = {"ansible.builtin.copy": {"content": "{{ results | to_json }}", "dest": str(folder / "out.json"), "mode": "0600"}}
    variables = {
        "ansible_python_interpreter": sys.executable,
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
        "machine": "7b2f1c9e-30a4-4b6d-8c1e-5f0a9d2e4b71",
    }
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "vars": variables}
    play["tasks"] = [LEDGER, *TASKS, save | {"vars": {"results": results}}]
    (folder / "play.yml").write_text(yaml.safe_dump([play], sort_keys=False))
    environment = os.environ | {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"), "ANSIBLE_LOCALHOST_WARNING": "0"}
    command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", "play.yml"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "out.json").read_text())


def assert_holds(part, whole, place):
    """Assert that what is said is in what was returned; lists are compared from their start, as far as they are told."""
    if isinstance(part, dict):
        for name, value in part.items():
            assert_holds(value, whole[name], f"{place}.{name}")
    elif isinstance(part, list) and part:
        assert len(part) <= len(whole), place
        for position, item in enumerate(part):
            assert_holds(item, whole[position], f"{place}[{position}]")
    elif isinstance(part, float):
        assert whole == pytest.approx(part, abs=1e-8), place
    else:
        assert whole == part, place


def test_the_guide_has_its_examples():
    assert len(TASKS) == 8
    assert set(SAID) == {"places", "roomy", "quarter", "pooled", "evacuation", "moved"}


@pytest.mark.parametrize("name", SAID)
def test_the_result_is_what_the_guide_says(name, returned):
    # The last task of that name would hide the first.
    assert sum(task.get("register") == name for task in TASKS) == 1
    assert_holds(SAID[name], returned[name], name)


def test_a_claim_follows_a_place(returned):
    assert returned["hosts"]["solutions"][0]["groups"][0]["nodes"][0].startswith("host")


def rows():
    """Return (instance, node, lost, left) of the guide's table of preferences."""
    found, instance = [], ""
    for line in re.findall(r"^\|(.*)\|$", GUIDE[GUIDE.index("| instance | node | lost | left |") :].partition("\n\n")[0], re.MULTILINE)[2:]:
        first, node, lost, left = (cell.strip() for cell in line.split("|"))
        instance = first or instance
        found.append((instance, node, [int(number) for number in lost.split(",")], left))
    return found


def test_the_table_of_preferences_is_what_is_found():
    cluster = yaml.safe_load((FILES / "partitioned.yml").read_text())
    names = {"three quarters full": "three-quarters", "a quarter full": "quarter", "half full": "half", "empty": "empty"}
    amounts = {"nothing": 0, "a quarter": 1, "half a node": 2, "three quarters": 3}
    sizes = {"quarter": 1, "half": 2}
    table = rows()
    assert len(table) == 7
    order = {name: [] for name in sizes}
    for instance, node, lost, left in table:
        parts = sizes[instance]
        new = {
            "name": "new",
            "memory": 16384 * parts,
            "disk": 262144 * parts,
            "vcpus": 4 * parts,
            "spindles": parts,
            "disk_template": "plain",
        }
        answer = place(Loaded(parse_inline(cluster), {}), {"instances": [new], "nodes": [names[node]]})
        (group,) = answer["solutions"][0]["groups"]
        assert (group["lost"], group["free_after"]) == (lost, 262144 * amounts[left]), (instance, node)
        order[instance].append((group["lost"], group["free_after"]))
    assert all(found == sorted(found) for found in order.values())
