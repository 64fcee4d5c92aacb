# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every field of every source and request, one by one, with values of every wrong kind: an answer or one message, nothing else."""

from __future__ import annotations

import copy
import json
import math
import pathlib

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.iallocator import parse_iallocator
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.libvirt.documents import parse_libvirt
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.proxmox.documents import parse_proxmox
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.rapi import parse_rapi
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.evacuate import run_evacuate
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.iallocator import answer
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import report
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.place import place
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

WRONG = (None, -1, 0.5, float("nan"), 2**70, 10**400, "x", True, [], {}, [1], [None], {"a": None}, [[]])
DATA = pathlib.Path(__file__).resolve().parents[2] / "unit" / "data" / "group"
CLUSTER = generate(nodes=4, groups=2, per_node=2, template="mixed", extags=True, loctags=True, n1ok=True)
MIRRORED = next(instance for instance in CLUSTER.instances if instance["snode"])
ALONE = next(instance for instance in CLUSTER.instances if instance["dt"] == "plain")
HOMES = {node["name"]: node["group"] for node in CLUSTER.nodes}
NEW = {
    "name": "new",
    "disk_space_total": 2048,
    "disks": [{"size": 2048, "mode": "w", "spindles": 1}],
    "nics": [{"network": None}],
    "vcpus": 1,
    "memory": 1024,
    "disk_template": "plain",
    "spindle_use": 1,
    "tags": ["a"],
}
REQUESTS = [
    {"type": "allocate", **NEW, "group_name": "group-01", "restrict-to-nodes": [CLUSTER.nodes[0]["name"]]},
    {"type": "multi-allocate", "instances": [NEW | {"group_name": "group-02"}], "group_name": "group-01"},
    {"type": "relocate", "name": MIRRORED["name"], "required_nodes": 1, "relocate_from": [MIRRORED["snode"]]},
    {"type": "node-evacuate", "instances": [MIRRORED["name"]], "evac_mode": "all"},
    {"type": "change-group", "instances": [MIRRORED["name"]], "target_groups": ["uuid-group-01"]},
    {"type": "allocate-secondary", "name": ALONE["name"]},
]
LONG = 3
"""How many entries of a list or mapping are changed; the others are like them."""


def places(data, place=()):
    """Yield the path of every value in nested data, without the later ones of long lists and mappings."""
    if place:
        yield place
    keys = list(data)[:LONG] if isinstance(data, dict) and all(isinstance(value, dict) for value in data.values()) else data
    if isinstance(data, dict):
        for key in keys:
            yield from places(data[key], (*place, key))
    elif isinstance(data, list):
        for number, item in enumerate(data[:LONG]):
            yield from places(item, (*place, number))


def changed(data, place, value):
    data = copy.deepcopy(data)
    spot = data
    for key in place[:-1]:
        spot = spot[key]
    spot[place[-1]] = value
    return data


def check_message(error):
    assert error.mistakes
    assert all(mistake.says for mistake in error.mistakes)


def try_all(data, work):
    """Do the work with every value replaced by every wrong one; return how often it was refused."""
    refused = 0
    for place_ in places(data):
        for wrong in WRONG:
            try:
                work(changed(data, place_, wrong))
            except InputError as error:
                refused += 1
                check_message(error)
    return refused


def looked_at(cluster):
    assert math.isfinite(report(cluster, ScoreMode.CAPACITY)["score"])


@pytest.mark.parametrize("request_", REQUESTS, ids=[request["type"] for request in REQUESTS])
def test_requests(request_):
    message = json.loads(CLUSTER.ialloc(request_))

    def work(request):
        read = parse_iallocator(message | {"request": request})
        told = answer(read, ScoreMode.HTOOLS)
        assert set(told) == {"success", "info", "result"}
        json.dumps(told)
        if request_["type"] == "node-evacuate":
            run_evacuate(read, {})

    work(request_)
    assert try_all(request_, work) > 5


def test_iallocator_messages():
    small = generate(nodes=2, per_node=1, template="mixed", extags=True, odd=True)
    assert try_all(json.loads(small.ialloc({})), lambda data: looked_at(parse_iallocator(data).cluster)) > 500


def test_rapi():
    documents = {name: json.loads((DATA / "rapi" / f"{name}.json").read_text()) for name in ("info", "groups", "nodes", "instances")}
    for number in (0, 1):
        one = {name: found[number : number + 1] if name == "instances" else found for name, found in documents.items()}
        assert try_all(one, parse_rapi) > 200


def test_proxmox():
    assert try_all(json.loads((DATA / "proxmox.json").read_text()), lambda data: looked_at(parse_proxmox(data))) > 100


def test_libvirt():
    assert try_all(json.loads((DATA / "libvirt.json").read_text()), lambda data: looked_at(parse_libvirt(data))) > 100


NODE = {"name": "n", "group": "a", "total_memory": "4 GiB", "node_memory": 1, "free_memory": 3, "total_disk": 9, "free_disk": 5} | {
    "total_cpus": 4,
    "node_cpus": 1,
    "cpu_speed": 1.0,
    "offline": False,
    "master": True,
    "tags": ["x"],
    "exclusive_storage": True,
    "spindles": 2,
    "free_spindles": 1,
    "storage": [{"pool": "lvm", "total": "1 TiB"}, {"type": "external", "pool": "san", "free": 5}],
}
GUEST = {"name": "i", "memory": 100, "disk": "1 GiB", "vcpus": 1, "primary": "n", "secondary": "m", "status": "running"} | {
    "auto_balance": True,
    "disk_template": "drbd",
    "disks": [{"size": 5, "spindles": 1}],
    "spindle_use": 1,
    "forthcoming": False,
    "load": {"cpu": 0.5, "memory": 1, "disk": 1, "net": 1},
    "networks": ["n"],
    "storage": {"type": "internal", "pool": "lvm"},
    "tags": ["a"],
}
SPEC = {"memory-size": 1, "cpu-count": 1, "disk-size": 1, "disk-count": 1, "nic-count": 1, "spindle-use": 1}
POLICY = {"minmax": [{"min": SPEC, "max": SPEC}], "std": SPEC, "disk-templates": ["plain"], "vcpu-ratio": 4.0, "spindle-ratio": 32.0}
GROUP = {"name": "a", "uuid": "u", "alloc_policy": "preferred", "tags": ["t"], "networks": ["n"], "ipolicy": POLICY}
PLAIN = {"groups": [GROUP], "nodes": [NODE, {**NODE, "name": "m", "master": False}], "instances": [GUEST], "tags": ["t"], "ipolicy": POLICY}


def test_plain_data():
    assert try_all(PLAIN, lambda data: looked_at(parse_inline(data))) > 500


def test_new_instances():
    message = Loaded(parse_inline(PLAIN | {"instances": []}), {})
    new = {name: value for name, value in GUEST.items() if name not in ("primary", "secondary")} | {"name": "j", "group": "a"}
    assert try_all(new, lambda data: place(message, {"instances": [data]})) > 50


def test_data_that_contains_itself():
    data = {"nodes": [NODE], "instances": []}
    data["nodes"].append(data)
    data["instances"].append(data["instances"])
    data["groups"] = data["nodes"]
    with pytest.raises(InputError) as caught:
        parse_inline(data)
    assert len(caught.value.mistakes) > 2
