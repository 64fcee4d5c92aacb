# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Groups planned from the ledger, as a playbook meets them: hosts are registered and claimed in a database, then planned with."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import uuid

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[4]
RACK = "6e8bc430-9c3a-11d9-9669-0800200c9a66"
WEB, SHOP, NEW = (str(uuid.UUID(int=number)) for number in (1, 2, 3))
HOST = {"VCPU": {"total": 8, "reserved": 2, "allocation_ratio": 2.0}, "MEMORY_MB": {"total": 16384, "reserved": 1024}, "DISK_GB": 200}
RESOURCES = {"VCPU": 4, "MEMORY_MB": 4096, "DISK_GB": 120}
KEYWORDS = ("register", "vars", "ignore_errors")
IN_RACK = {"type": "ledger", "aggregates": {"rack": RACK}}
CLAIMS = {WEB: {"host1": {"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 100}}, SHOP: {"host1": {"VCPU": 2, "MEMORY_MB": 2048}}}


def tasks(directory):
    """Return the tasks of the play; each of those that are looked at is registered under its name."""
    hosts = [
        {"name": "host1", "inventories": HOST, "aggregates": [RACK]},
        {"name": "host2", "inventories": HOST, "aggregates": [RACK], "traits": ["HW_CPU_X86_AVX2"]},
        {"name": "host3", "inventories": HOST},
    ]
    new = {"name": NEW, "memory": "4 GiB", "vcpus": 4, "disk": "120 GiB"}
    yield {"provider": {"providers": hosts}}
    for consumer, allocations in CLAIMS.items():
        yield {"provider_allocation": {"consumer": consumer, "allocations": allocations}}
    yield {"group_info": {"source": IN_RACK}, "register": "info"}
    named = IN_RACK | {"database": "{{ lookup('env', 'BAREON_DATABASE') }}"}
    yield {"group_place": {"source": named, "instances": [new]}, "register": "places"}
    found = "{{ {places.solutions[0].groups[0].nodes[0]: resources} }}"
    yield {"provider_allocation": {"consumer": NEW, "allocations": found}, "vars": {"resources": RESOURCES}}
    yield {"group_evacuate": {"source": {"type": "ledger"}, "nodes": ["host1"]}, "register": "evacuation"}
    for name, source in (
        ("wrong", {"type": "ledger", "url": "https://cluster.example.com"}),
        ("unknown", {"type": "ledger", "aggregates": {"rack": "nonsense"}}),
        ("nothing", {"type": "ledger", "database": f"sqlite:///{directory}/none.sqlite"}),
    ):
        yield {"group_info": {"source": source}, "register": name, "ignore_errors": True}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("ledger")
    listed = [
        {name if name in KEYWORDS else f"bareon.allocator.{name}": value for name, value in task.items()} for task in tasks(directory)
    ]
    results = {task["register"]: f"{{{{ {task['register']} }}}}" for task in listed if "register" in task}
    save = {"ansible.builtin.copy": {"content": "{{ results | to_json }}", "dest": str(directory / "out.json"), "mode": "0600"}}
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "vars": {"ansible_python_interpreter": sys.executable}}
    play["tasks"] = [*listed, save | {"vars": {"results": results}}]
    (directory / "play.yml").write_text(yaml.safe_dump([play], sort_keys=False))
    environment = os.environ | {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv" / "collections"),
        "ANSIBLE_LOCALHOST_WARNING": "0",
        "BAREON_DATABASE": f"sqlite:///{directory}/ledger.sqlite",
    }
    command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", "play.yml"]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not (directory / "none.sqlite").exists()
    return json.loads((directory / "out.json").read_text())


def test_groups_and_what_is_left_of_them(run):
    groups = {group["name"]: group for group in run["info"]["groups"]}
    assert {name: group["nodes"] for name, group in groups.items()} == {"rack": 2, "default": 1}
    nodes = {node["name"]: node for node in run["info"]["nodes"]}
    assert nodes["host1"]["free_memory"] == 16384 - 1024 - 8192 - 2048
    assert "host2" in run["info"]["summary"]


def test_a_place_is_one_that_the_ledger_accepts(run):
    (solution,) = run["places"]["solutions"]
    assert [(found["group"], found["nodes"]) for found in solution["groups"]] == [("rack", ["host2"]), ("default", ["host3"])]
    assert run["places"]["unplaced"] == []


def test_what_can_move_moves_and_the_rest_has_reasons(run):
    (placed,) = run["evacuation"]["placed"]
    assert placed["instance"] == SHOP
    assert placed["nodes"][0] in ("host2", "host3")
    assert [(left["instance"], left["reasons"][0]["limit"]) for left in run["evacuation"]["unplaced"]] == [(WEB, "template")]


def test_mistakes_are_told(run):
    assert "source.url: does not go with a source of type ledger" in run["wrong"]["msg"]
    assert (
        "source.aggregates.rack: is 'nonsense'; must be the name or the UUID of an aggregate that a provider is in" in run["unknown"]["msg"]
    )
    assert "holds no provider with VCPU or MEMORY_MB" in run["nothing"]["msg"]
