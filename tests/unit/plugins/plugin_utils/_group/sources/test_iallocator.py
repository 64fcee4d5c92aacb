# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""IAllocator messages, as Ganeti sends them."""

from __future__ import annotations

import copy
import json

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Disk, DiskTemplate, Status
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.ganeti import KVM_NODE_MEMORY
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.iallocator import (
    parse_iallocator,
    parse_json,
    requested_instances,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

NEW = {
    "name": "new",
    "memory": 512,
    "vcpus": 2,
    "disk_space_total": 1152,
    "disks": [{"size": 512, "mode": "rw"}, {"size": 512, "mode": "rw", "spindles": 2}],
    "disk_template": "drbd",
    "spindle_use": 3,
    "tags": ["a"],
    "nics": [{"mac": "aa", "network": "uuid-net"}, {"mac": "bb", "network": None}],
    "required_nodes": 2,
}
GENERATED = generate(nodes=6, groups=2, per_node=3, template="mixed", extags=True, offline=1)
MESSAGE = json.loads(GENERATED.ialloc({"type": "allocate", **NEW}))


def changed(**parts):
    data = copy.deepcopy(MESSAGE)
    for path, value in parts.items():
        *parents, last = path.split("__")
        spot = data
        for name in parents:
            spot = next(iter(spot.values())) if name == "first" else spot[name]
        spot[last] = value
    return data


def test_message_and_text_describe_the_same_cluster():
    ours, text = parse_iallocator(MESSAGE).cluster, parse_text(GENERATED.text())
    assert ours.instances == text.instances
    assert ours.groups == text.groups
    assert ours.tags == text.tags
    online = [node for node in text.nodes if not node.offline and not node.master]
    assert online == [node for node in ours.nodes if node.name in {node.name for node in online}]
    (dark,) = [node for node in ours.nodes if node.offline]
    assert (dark.total_memory, dark.total_disk, dark.total_cpus) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("change", "state"),
    [({"drained": True}, "drained"), ({"vm_capable": False}, "drained"), ({"offline": True, "drained": True}, "offline"), ({}, "up")],
)
def test_the_states_of_nodes(change, state):
    message = changed(**{f"nodes__first__{field}": value for field, value in change.items()})
    assert parse_iallocator(message).cluster.nodes[0].state == state


def test_what_other_releases_of_ganeti_send_is_understood():
    """Some tell nothing of drained nodes, some have no networks or forthcoming instances, and policies grow."""
    data = copy.deepcopy(MESSAGE)
    drained, *others = [node for node in data["nodes"].values() if "total_memory" in node]
    basic = {"offline", "group", "vm_capable", "tags", "ndparams", "primary_ip", "secondary_ip", "master_candidate", "master_capable"}
    for name in set(drained) - basic:
        del drained[name]
    drained["drained"] = True
    for node in others:
        del node["reserved_cpus"]
    for policy in (data["ipolicy"], *(group["ipolicy"] for group in data["nodegroups"].values())):
        policy["memory-ratio"] = 1.0
    for instance in data["instances"].values():
        del instance["forthcoming"]
        instance["nics"] = [{"mac": "aa:00:00:00:00:01", "ip": None, "mode": "bridged", "link": "br0", "bridge": "br0"}]
        instance["disks"] = [disk | {"spindles": None} for disk in instance["disks"]]
    ours, before = parse_iallocator(data).cluster, parse_iallocator(MESSAGE).cluster
    assert sum(node.state == "drained" for node in ours.nodes) == 1
    assert sum(node.offline for node in ours.nodes) == sum(node.offline for node in before.nodes)
    assert ours.groups == before.groups
    assert [instance.spindles for instance in ours.instances] == [None] * len(before.instances)


def test_node_memory_of_kvm_is_fixed():
    cluster = parse_iallocator(changed(enabled_hypervisors=["kvm", "xen-pvm"])).cluster
    assert {node.node_memory for node in cluster.nodes if not node.offline} == {KVM_NODE_MEMORY}


def test_exclusive_storage_counts_physical_spindles():
    cluster = parse_iallocator(changed(nodes__first__ndparams={"exclusive_storage": True, "spindle_count": 1})).cluster
    assert cluster.nodes[0].exclusive_storage
    assert cluster.nodes[0].spindles == MESSAGE["nodes"]["node-0001.example.com"]["total_spindles"]


def test_requested_instance_is_read():
    (new,) = requested_instances(parse_iallocator(MESSAGE))
    assert (new.name, new.memory, new.disk, new.vcpus, new.spindle_use) == ("new", 512, 1152, 2, 3)
    assert new.disks == (Disk(512), Disk(512, 2))
    assert (new.disk_template, new.status, new.networks, new.primary) == (DiskTemplate.DRBD, Status.RUNNING, ("uuid-net",), "")


def test_many_instances_are_read_and_other_requests_want_none():
    many = {"type": "multi-allocate", "instances": [NEW, NEW | {"name": "other"}]}
    assert [new.name for new in requested_instances(parse_iallocator(changed(request=many)))] == ["new", "other"]
    assert requested_instances(parse_iallocator(changed(request={"type": "relocate", "name": "x"}))) == ()


def test_mistakes_name_the_place():
    data = changed(nodes__first__total_memory="much", nodes__first__group=None, request={"type": "allocate"})
    del next(iter(data["instances"].values()))["memory"]
    with pytest.raises(InputError) as caught:
        parse_iallocator(data)
    assert [str(mistake) for mistake in caught.value.mistakes] == [
        "instances.inst-00001.example.com.memory: is missing; must be a whole number",
        "nodes.node-0001.example.com.group: is missing; must be text",
        "nodes.node-0001.example.com.total_memory: is 'much'; must be a number",
    ]


def test_dangling_names_are_mistakes():
    with pytest.raises(InputError, match="primary: unknown node 'nowhere'"):
        parse_iallocator(changed(instances__first__nodes=["nowhere"]))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"a": NaN'])
def test_text_that_is_not_json_is_refused(text):
    with pytest.raises(InputError, match="the text is not JSON"):
        parse_json(text)
