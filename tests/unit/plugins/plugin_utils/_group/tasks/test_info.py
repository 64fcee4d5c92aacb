# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is called wrong, and the report and tables made of it."""

from __future__ import annotations

import dataclasses
import json

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._common.plain import plain
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate, PoolKind, PoolName, StoragePool
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.health import find_problems
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.redundancy import node_failures
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.info import report, summary

SAN = PoolName(PoolKind.EXTERNAL, "san")


def problems(cluster):
    state = ClusterState.from_cluster(cluster)
    failures = [failure for group in range(len(cluster.groups)) for failure in node_failures(state, group)]
    return [(str(problem.kind), problem.node, problem.instance, problem.short) for problem in find_problems(state, failures)]


def test_sound_cluster_has_no_problems(bench):
    nodes = [bench.node("a"), bench.node("b")]
    assert problems(bench.cluster(nodes, [bench.instance("i", "a", "b", memory=200, disk=2000)])) == []


@pytest.mark.parametrize(
    ("nodes", "instances", "expected"),
    [
        (
            {"a": {"offline": True}},
            [("i", "a", "b", {}), ("j", "b", "a", {})],
            [("offline_primary", "a", "i", 0), ("offline_secondary", "a", "j", 0)],
        ),
        ({"b": {"total_memory": 150.0, "free_memory": 150}}, [("i", "a", "b", {"memory": 200})], [("n1", "b", "", 50)]),
        ({}, [("i", "a", "", {"tags": ("s:1",)}), ("j", "a", "", {"tags": ("s:1",)})], [("tags", "a", "", 1)]),
        ({"b": {"group": "h"}}, [("i", "a", "b", {})], [("split", "a", "i", 0)]),
        ({}, [("i", "a", "", {"memory": 127})], [("policy", "a", "i", -1)]),
        ({"a": {"total_cpus": 1.0}}, [("i", "a", "", {"vcpus": 5, "shares_cpus": True})], [("cpus", "a", "", 1)]),
        ({}, [("i", "a", "", {"spindle_use": 33})], [("spindle_use", "a", "", 1), ("policy", "a", "i", 21)]),
        (
            {"b": {"total_memory": 100.0, "free_memory": 100}},
            [("i", "a", "", {"disk_template": DiskTemplate.EXT})],
            [("shared_n1", "a", "", 128)],
        ),
        (
            {"a": {"storage": (StoragePool(SAN),)}},
            [("i", "b", "", {"disk_template": DiskTemplate.EXT, "storage": SAN})],
            [("pool", "b", "i", 1024)],
        ),
    ],
)
def test_each_problem_is_told_with_place_and_amount(bench, nodes, instances, expected):
    made = [bench.node(name, **nodes.get(name, {})) for name in "ab"]
    sizes = {"memory": 128, "disk": 1024}
    guests = [bench.instance(name, primary, secondary, **(sizes | fields)) for name, primary, secondary, fields in instances]
    assert problems(bench.cluster(made, guests, tags=["htools:iextags:s"])) == expected


def test_what_nodes_report_is_compared_with_the_books(bench):
    cluster = bench.cluster([bench.node("a", total_memory=4000.0, free_memory=3400), bench.node("b", free_disk=8000)])
    assert problems(cluster) == [("missing_memory", "a", "", 600), ("missing_disk", "b", "", 2000)]


@pytest.fixture
def told(bench):
    nodes = [
        bench.node("a", storage=(StoragePool(SAN, 5000, 3000), StoragePool(PoolName(PoolKind.INTERNAL, "lvm"), 10000, 9000))),
        bench.node("b", total_memory=150.0, free_memory=150, master=True),
        bench.node("c", "other", offline=True),
    ]
    instances = [
        bench.instance("i", "a", "b", memory=200, disk=1024),
        bench.instance("j", "a", memory=300, disk=2000, storage=SAN, disk_template=DiskTemplate.EXT),
        bench.instance("k", "c", memory=128, disk=1024),
    ]
    return report(bench.cluster(nodes, instances), ScoreMode.HTOOLS)


def test_report_counts_per_group_and_whole(told):
    assert told["health"] == {
        **{"healthy": False, "n1_fail": 1, "conflict_tags": 0, "offline_pri": 1, "offline_sec": 0},
        **{"gn1_fail": 1, "policy": 0, "pool": 0},
    }
    first, second = told["groups"]
    assert (first["name"], first["nodes"], first["offline"], first["instances"]) == ("g", 2, 0, 2)
    assert (second["nodes"], second["offline"], second["health"]["offline_pri"], second["health"]["n1_fail"]) == (1, 1, 1, 0)
    assert first["capacity"] == {
        "memory": {"total": 1150, "free": 650},
        "disk": {"total": 20000, "free": 17952},
        "cpus": {"total": 80, "free": 78},
    }
    assert first["shared"] == [
        {"pool": "external/san", "instances": 1, "worst_node": "a", "needed": 300, "short": 300, "proven": True},
    ]


def test_report_lists_nodes_and_pools(told):
    expected = {
        **{"name": "b", "n1_fails": True, "n1_short": 50, "reserved_memory": 200, "unallocated_memory": 150},
        **{"primaries": 0, "secondaries": 1, "master": True, "load": {"cpu": 0.0, "memory": 0.0, "disk": 1.0, "net": 0.0}},
    }
    second = told["nodes"][1]
    assert {name: second[name] for name in expected} == expected
    assert told["pools"] == [
        {"pool": "external/san", "nodes": ["a"], "groups": ["g"], "instances": 1, "total": 5000, "free": 3000},
        {"pool": "internal/lvm", "nodes": ["a", "b", "c"], "groups": ["g", "other"], "instances": 2, "total": 30000, "free": 26952},
    ]


def test_report_is_plain_data_and_reads_as_tables(told):
    assert json.loads(json.dumps(plain(told), allow_nan=False))["score_mode"] == "htools"
    lines = summary(plain(told)).splitlines()
    assert lines[0].startswith(f"Cluster score {told['score']:.8f} (htools), not healthy: n1_fail 1, offline_pri 1, gn1_fail 1")
    assert any(line.split()[:3] == ["*", "b", "g"] for line in lines)
    assert any(line.split()[:3] == ["-", "c", "other"] for line in lines)
    assert "n1: b has 150 MiB free, but must keep 200 MiB in case of a failure of a" in lines


def test_long_lists_of_problems_are_cut_in_the_summary_only(bench):
    instances = [bench.instance(f"i{n}", "a", memory=1) for n in range(60)]
    cluster = bench.cluster([dataclasses.replace(bench.node("a"), total_cpus=100.0)], instances)
    told = report(cluster, ScoreMode.CAPACITY)
    assert len(told["problems"]) >= 60
    assert summary(plain(told)).splitlines()[-1] == f"... and {len(told['problems']) - 40} more"


def test_each_group_is_told_to_be_healthy_or_not(bench):
    nodes = [bench.node("a", "g"), bench.node("b", "g"), bench.node("c", "h"), bench.node("d", "h", offline=True)]
    lines = summary(plain(report(bench.cluster(nodes, [bench.instance("i", "d", "c")]), ScoreMode.HTOOLS))).splitlines()
    said = {line.split()[0]: line for line in lines if line.startswith(("g ", "h "))}
    assert said["g"].endswith(" yes")
    assert said["h"].endswith(" no")
