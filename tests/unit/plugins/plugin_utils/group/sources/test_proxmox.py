# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proxmox VE's documents, as pvesh prints them."""

from __future__ import annotations

import copy
import json
import pathlib

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils.common.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.cluster.model import DiskTemplate, Status
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.sources.proxmox import RESOURCES, parse_proxmox
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.tasks.evacuate import run_evacuate

RECORDED = json.loads((pathlib.Path(__file__).resolve().parents[4] / "data" / "group" / "proxmox.json").read_text())


def test_nodes_have_what_they_report_in_mib():
    first, second, dead = parse_proxmox(RECORDED).nodes
    assert (first.total_memory, first.free_memory, first.total_cpus) == (65536, 45056, 16)
    assert first.node_memory == (20 - 18) * 1024, "what is used beyond the guests' use"
    assert second.node_memory == 12 * 1024
    assert (first.offline, dead.offline, dead.total_memory) == (False, True, 0)


def test_only_active_storage_for_guests_is_a_pool():
    first, second, dead = parse_proxmox(RECORDED).nodes
    assert [(str(pool.name), pool.total, pool.free) for pool in first.storage] == [
        ("external/ceph", 4096000, 3072000),
        ("internal/local-lvm", 819200, 614400),
    ]
    assert [str(pool.name) for pool in second.storage] == ["external/ceph", "internal/local-lvm"]
    assert (first.total_disk, first.free_disk) == (819200, 614400)
    assert dead.storage == ()


def test_guests_live_on_the_storage_that_holds_most_of_them():
    web, database, dns, template = parse_proxmox(RECORDED).instances
    assert (web.name, str(web.storage), web.disk_template, web.tags) == ("100-web", "external/ceph", DiskTemplate.EXT, ("prod", "web"))
    assert (str(database.storage), database.disk_template) == ("internal/local-lvm", DiskTemplate.PLAIN)
    assert (dns.status, dns.memory, dns.disk) == (Status.ADMIN_DOWN, 512, 8192)
    assert (template.status, template.auto_balance) == (Status.ADMIN_OFFLINE, False)


def test_only_storage_of_a_node_is_its_guests():
    documents = {name: data for name, data in RECORDED.items() if not name.endswith("content")}
    documents["/nodes/pve1/storage"] = documents["/nodes/pve1/storage"][:2]
    web, _database, dns, _template = parse_proxmox(documents).instances
    assert str(web.storage) == "external/ceph"
    assert dns.storage is None, "the other node has two"


def test_guests_of_a_dead_node_are_known_to_be_somewhere():
    documents = copy.deepcopy(RECORDED)
    documents[RESOURCES] += [
        {"id": "qemu/200", "type": "qemu", "vmid": 200, "node": "pve3", "status": "unknown", "maxmem": 2**30},
        {"id": "lxc/201", "type": "lxc", "vmid": 201, "node": "pve3", "status": "unknown", "template": 0, "tags": ""},
    ]
    *_others, bare, container = parse_proxmox(documents).instances
    assert (bare.name, bare.primary, bare.status, bare.memory, bare.vcpus, bare.disk) == (
        "200",
        "pve3",
        Status.ERROR_NODE_OFFLINE,
        1024,
        0,
        0,
    )
    assert (container.name, container.memory, container.tags) == ("201", 0, ())
    found = run_evacuate(Loaded(parse_proxmox(documents), {}), {"mode": "primary"})
    assert [left["instance"] for left in found["unplaced"]] == ["200", "201"]
    assert {reason["limit"] for left in found["unplaced"] for reason in left["reasons"]} == {"template"}


def test_a_guest_of_a_dead_node_on_shared_storage_is_started_elsewhere():
    documents = copy.deepcopy(RECORDED)
    documents[RESOURCES].append({"type": "qemu", "vmid": 200, "node": "pve3", "status": "unknown", "maxmem": 2**30, "maxcpu": 2})
    documents["/nodes/pve1/storage/ceph/content"].append({"volid": "ceph:vm-200-disk-0", "vmid": 200, "size": 2**30, "content": "images"})
    found = run_evacuate(Loaded(parse_proxmox(documents), {}), {"nodes": ["pve3"]})
    assert [(placed["instance"], placed["nodes"][0] in ("pve1", "pve2")) for placed in found["placed"]] == [("200", True)]


def test_a_cluster_of_which_little_is_told():
    documents = {
        RESOURCES: [{"type": "node", "node": "lonely"}, {"type": "pool", "pool": "x"}, {"type": "lxc", "vmid": "7", "node": "lonely"}]
    }
    cluster = parse_proxmox(documents)
    assert [(node.name, node.offline, node.total_memory, node.storage) for node in cluster.nodes] == [("lonely", True, 0, ())]
    assert [(guest.name, guest.status) for guest in cluster.instances] == [("7", Status.ADMIN_DOWN)]


def test_mistakes_name_document_and_place():
    documents = copy.deepcopy(RECORDED)
    documents[RESOURCES][3]["vmid"] = "many"
    documents[RESOURCES][4]["node"] = "pve9"
    documents["/nodes/pve1/storage"][1]["total"] = -1.5
    with pytest.raises(InputError) as caught:
        parse_proxmox(documents)
    assert [mistake.place for mistake in caught.value.mistakes] == [
        "/cluster/resources[3].vmid",
        "/nodes/pve1/storage[1].total",
        "/cluster/resources[4].primary",
    ]


def test_without_resources_there_is_no_cluster():
    with pytest.raises(InputError, match="/cluster/resources: is missing"):
        parse_proxmox({})
