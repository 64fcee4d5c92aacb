# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every request of the IAllocator protocol is answered in its format, through the executable as Ganeti calls it."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[6]
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

PROGRAM = ROOT / ".venv" / "collections" / "ansible_collections" / "bareon" / "allocator" / "playbooks" / "files" / "bareon-iallocator"
NEW = {
    "name": "new.example.com",
    "disk_space_total": 2048,
    "disks": [{"size": 2048, "mode": "w"}],
    "nics": [],
    "vcpus": 1,
    "memory": 1024,
    "disk_template": "drbd",
    "spindle_use": 1,
    "tags": [],
}


@pytest.fixture(scope="module")
def cluster():
    return generate(nodes=12, groups=2, n1ok=True, seed=3)


def call(cluster, request, *options):
    run = subprocess.run(
        [str(PROGRAM), "-", *options],
        env=os.environ | {"PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"},
        input=cluster if isinstance(cluster, str) else cluster.ialloc(request),
        capture_output=True,
        text=True,
        check=False,
    )
    return run.returncode, json.loads(run.stdout) if run.stdout else run.stderr


def answered(cluster, request, *options):
    status, answer = call(cluster, request, *options)
    assert status == 0
    assert set(answer) == {"success", "info", "result"}
    assert isinstance(answer["success"], bool)
    assert isinstance(answer["info"], str)
    if answer["success"]:
        assert_ganeti_takes(cluster, request, answer["result"])
    else:
        assert answer["result"] == []
    return answer


def is_named(value):
    return isinstance(value, str) and value != ""


def are_nodes(value):
    return isinstance(value, list) and all(map(is_named, value))


OPCODES = {
    "OP_INSTANCE_FAILOVER": {"instance_name", "target_node", "ignore_consistency", "ignore_ipolicy", "cleanup"},
    "OP_INSTANCE_MIGRATE": {
        "instance_name",
        "target_node",
        "allow_runtime_changes",
        "ignore_ipolicy",
        "cleanup",
        "allow_failover",
        "ignore_hvversions",
    },
    "OP_INSTANCE_REPLACE_DISKS": {"instance_name", "mode", "remote_node", "disks", "early_release", "ignore_ipolicy", "iallocator"},
}


def assert_ganeti_takes(cluster, request, result):
    """Check what Ganeti's master checks of a successful answer before it acts on it."""
    kind = request["type"]
    if kind == "allocate":
        assert are_nodes(result)
        assert len(result) == (2 if request["disk_template"] == "drbd" else 1)
    elif kind == "multi-allocate":
        placed, failed = result
        assert all(len(entry) == 2 and is_named(entry[0]) and are_nodes(entry[1]) for entry in placed)
        assert are_nodes(failed)
    elif kind == "relocate":
        instance = next(i for i in cluster.instances if i["name"] == request["name"])
        assert are_nodes(result)
        assert {groups_of(cluster)[node] for node in result} <= {groups_of(cluster)[instance["pnode"]]}
    elif kind == "allocate-secondary":
        assert is_named(result)
    else:
        moved, failed, jobs = result
        assert all(len(entry) == 3 and is_named(entry[0]) and is_named(entry[1]) and are_nodes(entry[2]) for entry in moved)
        assert len({entry[0] for entry in moved}) == len(moved)
        assert all(len(entry) == 2 and is_named(entry[0]) and isinstance(entry[1], str) for entry in failed)
        for opcode in (opcode for job in jobs for opcode in job):
            assert set(opcode) - {"OP_ID", "depends"} <= OPCODES[opcode["OP_ID"]]
            assert all(isinstance(number, int) and number < 0 and states == ["success"] for number, states in opcode.get("depends", []))


def groups_of(cluster):
    return {node["name"]: node["group"] for node in cluster.nodes}


def test_allocate(cluster):
    found = answered(cluster, {"type": "allocate", **NEW})
    assert found["success"]
    assert len(set(found["result"])) == 2
    assert len({groups_of(cluster)[name] for name in found["result"]}) == 1
    assert "Selected group" in found["info"]
    refused = answered(cluster, {"type": "allocate", **NEW, "memory": 16000, "disk_space_total": 500000000})
    assert (refused["success"], refused["result"]) == (False, [])
    assert "disk" in refused["info"]


def test_allocate_keeps_to_nodes_and_group(cluster):
    names = [node["name"] for node in cluster.nodes if node["group"] == cluster.nodes[-1]["group"]][:3]
    assert set(answered(cluster, {"type": "allocate", **NEW, "restrict-to-nodes": names})["result"]) <= set(names)
    for group in cluster.groups:
        result = answered(cluster, {"type": "allocate", **NEW, "group_name": group["name"]})["result"]
        assert {groups_of(cluster)[name] for name in result} == {group["uuid"]}


def test_multi_allocate_follows_each_instances_group(cluster):
    """hail reads the group's name from the request alone and puts all in one."""
    names = [group["name"] for group in cluster.groups]
    wanted = [NEW | {"name": f"i{name}", "group_name": name} for name in names] + [NEW | {"name": "huge", "memory": 10**8}]
    placed, failed = answered(cluster, {"type": "multi-allocate", "instances": wanted})["result"]
    assert failed == ["huge"]
    uuids = {group["name"]: group["uuid"] for group in cluster.groups}
    assert {name: groups_of(cluster)[nodes[0]] for name, nodes in placed} == {f"i{name}": uuids[name] for name in names}


def test_relocate(cluster):
    instance = cluster.instances[0]
    request = {"type": "relocate", "name": instance["name"], "required_nodes": 1, "relocate_from": [instance["snode"]]}
    (node,) = answered(cluster, request)["result"]
    assert node not in (instance["pnode"], instance["snode"])
    wrong = answered(cluster, request | {"relocate_from": [instance["pnode"]]})
    assert not wrong["success"]


@pytest.mark.parametrize(("mode", "roles"), [("primary-only", ["pnode"]), ("secondary-only", ["snode"]), ("all", ["pnode", "snode"])])
def test_node_evacuate(cluster, mode, roles):
    name = cluster.nodes[0]["name"]
    instances = [i["name"] for i in cluster.instances if name in [i[role] for role in roles]]
    moved, failed, jobs = answered(cluster, {"type": "node-evacuate", "instances": instances, "evac_mode": mode})["result"]
    assert not failed
    assert sorted(instance for instance, _group, _nodes in moved) == sorted(instances)
    emptied = {"primary-only": slice(0, 1), "secondary-only": slice(1, 2), "all": slice(0, 2)}[mode]
    assert all(name not in nodes[emptied] for _instance, _group, nodes in moved)
    assert len(jobs) == len(moved)
    kinds = {"OP_INSTANCE_MIGRATE", "OP_INSTANCE_REPLACE_DISKS"}
    assert all(opcode["OP_ID"] in kinds for job in jobs for opcode in job)


def test_jobs_depend_on_earlier_jobs_of_the_answer(cluster):
    name = cluster.nodes[0]["name"]
    instances = [i["name"] for i in cluster.instances if name in (i["pnode"], i["snode"])]
    _moved, _failed, jobs = answered(cluster, {"type": "node-evacuate", "instances": instances, "evac_mode": "all"})["result"]
    relative = [(number, other) for number, job in enumerate(jobs) for other, _states in job[0].get("depends", [])]
    assert relative
    assert all(-number <= other < 0 for number, other in relative)


def test_change_group(cluster):
    instance = next(i for i in cluster.instances if groups_of(cluster)[i["pnode"]] == cluster.groups[0]["uuid"])
    for targets in ([], [cluster.groups[1]["uuid"]]):
        request = {"type": "change-group", "instances": [instance["name"]], "target_groups": targets}
        moved, failed, jobs = answered(cluster, request)["result"]
        assert (moved[0][:2], failed) == ([instance["name"], cluster.groups[1]["name"]], [])
        assert [opcode["OP_ID"] for opcode in jobs[0]] == [
            "OP_INSTANCE_REPLACE_DISKS",
            "OP_INSTANCE_MIGRATE",
            "OP_INSTANCE_REPLACE_DISKS",
        ]


def test_allocate_secondary():
    plain = generate(nodes=8, template="plain", seed=2)
    instance = plain.instances[0]
    found = answered(plain, {"type": "allocate-secondary", "name": instance["name"]}, "--score", "capacity")
    assert found["result"] in {node["name"] for node in plain.nodes} - {instance["pnode"]}


def test_nodes_without_room_for_a_mirror_tell_why():
    full = generate(nodes=4, template="plain", seed=2)
    for node in full.nodes:
        node["fdsk"] = 0
    refused = answered(full, {"type": "allocate-secondary", "name": full.instances[0]["name"]})
    assert not refused["success"]
    assert "disk short by" in refused["info"]


def test_a_mirrored_instance_gets_no_second_mirror(cluster):
    assert not answered(cluster, {"type": "allocate-secondary", "name": cluster.instances[0]["name"]})["success"]


@pytest.mark.parametrize(
    "request_",
    [
        {"type": "multi-evacuate"},
        {"type": "node-evacuate", "instances": ["nobody"], "evac_mode": "all"},
        {"type": "node-evacuate", "instances": "x", "evac_mode": "half"},
        {"type": "relocate", "name": "nobody"},
        {"type": "allocate", "name": "x"},
        {"type": "allocate", **NEW, "restrict-to-nodes": "node-0001.example.com"},
        {"type": "allocate", **NEW, "restrict-to-nodes": ["nowhere", 5]},
        {"type": "allocate", **NEW, "group_name": ["group-01"]},
        {"type": "multi-allocate", "instances": [NEW | {"group_name": "nowhere"}]},
        {"type": "multi-allocate", "instances": [3]},
        {"type": "change-group", "instances": [], "target_groups": ["nowhere"]},
        {},
    ],
)
def test_requests_without_sense_are_told(cluster, request_):
    status, told = call(cluster, request_)
    assert status == 1
    assert told.startswith("Error: ")
    assert "request" in told
    assert "Traceback" not in told


@pytest.mark.parametrize("text", ["", "{", "[]", '{"request": 3}'])
def test_texts_that_are_no_message_are_told(text):
    status, told = call(text, {})
    assert status == 1
    assert told.startswith("Error: ")
    assert "Traceback" not in told
