# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ganeti's remote API, asked at a small server on this machine that replays recorded answers."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import AllocPolicy, Disk, Status
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.rapi import fetch_rapi, parse_rapi
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.server import Server
from ansible_collections.bareon.allocator.tests.support.group.replay_server import (
    RECORDED,
    recorded_answers,
    serving,
)


def test_running_cluster_is_read():
    with serving(recorded_answers(), user="reader:secret") as url:
        cluster = fetch_rapi(Server(url, "reader", "secret"))
    assert cluster == parse_rapi(RECORDED)
    assert [(group.name, group.alloc_policy) for group in cluster.groups] == [
        ("default", AllocPolicy.PREFERRED),
        ("spare", AllocPolicy.LAST_RESORT),
    ]
    assert [(node.name[:5], str(node.state), node.master, node.group) for node in cluster.nodes] == [
        ("node1", "up", True, "default"),
        ("node2", "up", False, "default"),
        ("node3", "offline", False, "default"),
        ("node4", "drained", False, "spare"),
        ("node5", "up", False, "spare"),
    ]
    assert cluster.tags == ("htools:iextags:service",)


def test_nodes_carry_what_they_report():
    first, _second, dead, drained, exclusive = parse_rapi(RECORDED).nodes
    assert (first.total_memory, first.node_memory, first.free_memory, first.total_cpus, first.spindles) == (65536, 1024, 46080, 16, 4)
    assert (dead.total_memory, dead.total_disk) == (0, 0)
    assert drained.total_memory == 65536
    assert (exclusive.exclusive_storage, exclusive.spindles, exclusive.free_spindles) == (True, 8, 6)


def test_instances_use_running_memory_or_else_what_they_may():
    web, database, lost, own = parse_rapi(RECORDED).instances
    assert (web.memory, web.status, web.secondary, web.disk) == (18432, Status.RUNNING, "node2.example.com", 20608)
    assert (database.memory, database.status, database.auto_balance, database.spindle_use) == (8192, Status.ADMIN_DOWN, False, 2)
    assert (lost.memory, lost.status, lost.secondary) == (4096, Status.ERROR_NODE_OFFLINE, "")
    assert own.disks == (Disk(30000, 1), Disk(20000, 1))


def test_node_that_does_not_answer_is_unreachable_drained_or_not():
    documents = copy.deepcopy(RECORDED)
    assert [node.state for node in parse_rapi(documents).nodes[:4]] == ["up", "up", "offline", "drained"]
    for number in (1, 3):
        documents["nodes"][number]["mtotal"] = None
    assert [node.state for node in parse_rapi(documents).nodes[:4]] == ["up", "unreachable", "offline", "unreachable"]


def test_all_mistakes_come_in_one_message():
    documents = copy.deepcopy(RECORDED)
    documents["groups"][0]["alloc_policy"] = "sometimes"
    documents["nodes"][0]["mfree"] = "lots"
    documents["instances"][0]["status"] = "tired"
    documents["instances"][1]["disk.sizes"] = ["big"]
    with pytest.raises(InputError) as caught:
        parse_rapi(documents)
    places = [mistake.place for mistake in caught.value.mistakes]
    assert places == ["groups[0].alloc_policy", "instances[0].status", "instances[1].disk.sizes[0]", "nodes[0].mfree"]
