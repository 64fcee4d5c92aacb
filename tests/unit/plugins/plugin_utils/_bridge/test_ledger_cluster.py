# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the ledger holds, as a cluster: sums of trees, what is left of them, who lives where, and which mistakes are told."""

from __future__ import annotations

import uuid

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Unavailable
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.cluster_source import load_any_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.ledger_cluster import REST, world_to_cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate, Instance
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState, Quantity
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.policy import policy_failures
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world

RACK_A, RACK_B, CEPH = (str(uuid.UUID(int=number)) for number in (10, 11, 12))
WEB, DATABASE, SHOP, VOLUME, WIDE = (str(uuid.UUID(int=number)) for number in range(1, 6))
HOST = {"VCPU": {"total": 8, "reserved": 2, "allocation_ratio": 4.0}, "MEMORY_MB": {"total": 32768, "reserved": 2048}, "DISK_GB": 500}
NUMA = {"VCPU": {"total": 4, "allocation_ratio": 2.0}, "MEMORY_MB": {"total": 16384, "reserved": 1024}}


def world(allocations=None, **changes):
    """Return a world of three hosts, one of them with NUMA nodes, and a storage that they share."""
    providers = {
        "host1": {"name": "host1", "inventories": HOST, "aggregates": [RACK_A, CEPH], "traits": ["HW_CPU_X86_AVX2"]},
        "host2": {"name": "host2", "inventories": HOST, "aggregates": [RACK_A]},
        "host3": {"name": "host3", "inventories": {"DISK_GB": 100}, "aggregates": [RACK_B, CEPH]},
        "numa0": {"name": "numa0", "parent": "host3", "inventories": NUMA, "traits": ["HW_NUMA_ROOT"]},
        "numa1": {"name": "numa1", "parent": "host3", "inventories": NUMA},
        "ceph": {"name": "ceph", "inventories": {"DISK_GB": 1000}, "aggregates": [CEPH], "traits": ["MISC_SHARES_VIA_AGGREGATE"]},
    }
    for name, change in changes.items():
        providers[name] = providers[name] | change
    return parse_world({"providers": list(providers.values()), "allocations": allocations or {}})


def nodes_of(cluster):
    return {node.name: node for node in cluster.nodes}


def instances_of(cluster):
    return {instance.name: instance for instance in cluster.instances}


def mistakes_of(given, aggregates=None):
    with pytest.raises(InputError) as caught:
        world_to_cluster(given, aggregates)
    return [str(mistake) for mistake in caught.value.mistakes]


def test_a_tree_is_one_node_with_the_sums_of_its_providers():
    nodes = nodes_of(world_to_cluster(world()))
    assert list(nodes) == ["host1", "host2", "host3"]
    host3 = nodes["host3"]
    assert (host3.total_memory, host3.node_memory, host3.free_memory) == (32768, 2048, 30720)
    assert (host3.total_cpus, host3.node_cpus) == (16, 0)
    assert (host3.total_disk, host3.free_disk) == (100 * 1024, 100 * 1024)
    assert host3.tags == ("HW_NUMA_ROOT",)


def test_reserved_amounts_and_ratios_bound_what_may_be_in_use():
    host = nodes_of(
        world_to_cluster(world(host1={"inventories": HOST | {"MEMORY_MB": {"total": 1000, "reserved": 200, "allocation_ratio": 1.5}}}))
    )
    assert host["host1"].total_cpus == (8 - 2) * 4
    assert (host["host1"].total_memory, host["host1"].node_memory, host["host1"].free_memory) == (200 + 1200, 200, 1200)


def test_what_is_left_is_capacity_less_all_allocations():
    cluster = world_to_cluster(world({WEB: {"host1": {"VCPU": 4, "MEMORY_MB": 4096, "DISK_GB": 40}}}))
    state = ClusterState.from_cluster(cluster)
    assert state.quantities[Quantity.MEMORY].tolist() == [30720 - 4096, 30720, 30720]
    assert state.quantities[Quantity.DISK].tolist() == [460 * 1024, 500 * 1024, 100 * 1024]
    assert state.quantities[Quantity.CPUS].tolist() == [4, 0, 0]
    assert state.missing_memory.tolist() == [0, 0, 0]


def test_a_consumer_on_one_node_stays_there():
    (web,) = world_to_cluster(
        world({WEB: {"numa0": {"VCPU": 1, "MEMORY_MB": 10}, "numa1": {"MEMORY_MB": 20}, "host3": {"DISK_GB": 3}}})
    ).instances
    assert (web.primary, web.secondary, web.disk_template) == ("host3", "", DiskTemplate.PLAIN)
    assert (web.memory, web.vcpus, web.disk) == (30, 1, 3 * 1024)


def test_a_consumer_with_disk_on_two_nodes_is_mirrored_from_the_one_with_memory():
    allocations = {DATABASE: {"host1": {"DISK_GB": 50}, "host2": {"VCPU": 2, "MEMORY_MB": 2048, "DISK_GB": 50}}}
    (database,) = world_to_cluster(world(allocations)).instances
    assert (database.primary, database.secondary, database.disk_template) == ("host2", "host1", DiskTemplate.DRBD)
    assert (database.memory, database.disk) == (2048, 50 * 1024)


def test_a_consumer_on_shared_storage_runs_wherever_that_is_reached():
    cluster = world_to_cluster(world({SHOP: {"host1": {"VCPU": 1, "MEMORY_MB": 1024}, "ceph": {"DISK_GB": 100}}}))
    (shop,) = cluster.instances
    assert (shop.disk_template, str(shop.storage), shop.disk) == (DiskTemplate.EXT, "external/ceph", 0)
    pools = {node.name: [(str(pool.name), pool.total, pool.free) for pool in node.storage] for node in cluster.nodes}
    shared = ("external/ceph", 1000 * 1024, 900 * 1024)
    assert pools == {
        "host1": [("internal/lvm", 500 * 1024, 500 * 1024), shared],
        "host2": [],
        "host3": [("internal/lvm", 100 * 1024, 100 * 1024), shared],
    }


def test_what_is_no_instance_is_in_use_all_the_same():
    allocations = {VOLUME: {"ceph": {"DISK_GB": 400}, "host2": {"DISK_GB": 100}}}
    cluster = world_to_cluster(world(allocations))
    assert cluster.instances == ()
    assert nodes_of(cluster)["host1"].storage[1].free == 600 * 1024
    assert nodes_of(cluster)["host2"].free_disk == 400 * 1024


def test_a_consumer_on_many_nodes_counts_on_all_and_stays():
    allocations = {WIDE: {name: {"VCPU": 1, "MEMORY_MB": size} for name, size in (("host1", 100), ("host2", 300), ("numa0", 200))}}
    cluster = world_to_cluster(world(allocations))
    assert (cluster.instances[0].primary, cluster.instances[0].disk_template) == ("host2", DiskTemplate.PLAIN)
    assert ClusterState.from_cluster(cluster).quantities[Quantity.MEMORY].tolist() == [30620, 30420, 30520]


def test_more_in_use_than_there_is_leaves_nothing():
    allocations = {WEB: {"host1": {"VCPU": 30, "MEMORY_MB": 40000, "DISK_GB": 600}}}
    cluster = world_to_cluster(world(allocations))
    assert (nodes_of(cluster)["host1"].free_memory, nodes_of(cluster)["host1"].free_disk) == (0, 0)
    assert ClusterState.from_cluster(cluster).quantities[Quantity.MEMORY, 0] == 30720 - 40000


def test_a_disabled_host_is_drained():
    cluster = world_to_cluster(world(host2={"traits": ["COMPUTE_STATUS_DISABLED"]}))
    assert [node.state for node in cluster.nodes] == ["up", "drained", "up"]


def test_without_aggregates_all_are_one_group():
    cluster = world_to_cluster(world())
    assert [group.name for group in cluster.groups] == [REST]
    assert {node.group for node in cluster.nodes} == {REST}


def test_aggregates_that_are_told_are_groups_and_the_others_the_rest():
    both = world_to_cluster(world(), {"a": RACK_A, "b": RACK_B.upper()})
    assert {node.name: node.group for node in both.nodes} == {"host1": "a", "host2": "a", "host3": "b"}
    assert [group.name for group in both.groups] == ["a", "b"]
    one = world_to_cluster(world(), {"b": RACK_B})
    assert {node.name: node.group for node in one.nodes} == {"host1": REST, "host2": REST, "host3": "b"}


def test_all_mistakes_of_groups_are_told_together():
    told = mistakes_of(world(), {"a": RACK_A, "again": RACK_A, "ceph": CEPH, "x": "rack-a", "y": 5})
    assert [line.partition(":")[0] for line in told] == [
        "source.aggregates.again",
        "source.aggregates.x",
        "source.aggregates.y",
        "provider host1",
    ]
    assert "several groups: a, ceph" in told[3]


def test_a_ledger_without_hosts_is_told():
    assert "VCPU or MEMORY_MB" in mistakes_of(parse_world({"providers": [{"name": "disk", "inventories": {"DISK_GB": 5}}]}))[0]


def test_every_size_keeps_to_the_policy():
    policy = world_to_cluster(world()).groups[0].policy
    for memory, disk, spindles in ((0, 0, 0), (2**31, 2**41, 10**6)):
        assert policy_failures(Instance("i", memory, disk, 10**5, spindle_use=spindles), policy, exclusive=False) == ()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"type": "ledger", "path": "x"}, "source.path: does not go with a source of type ledger"),
        ({"type": "ganeti_text", "path": "x", "database": "sqlite://"}, "source.database: does not go with"),
        ({"type": "proxmox"}, "source.url: must be like https://pve1.example.com:8006"),
        ({"type": "ganeti_rapi"}, "source: needs path or url"),
        ({"type": "ledger", "database": "nonsense"}, "database: is not a URL"),
    ],
)
def test_what_does_not_go_together_is_told(source, words):
    with pytest.raises(InputError, match=words):
        load_any_cluster({"cluster": None, "source": source}, str)


def test_a_damaged_database_is_told_in_one_sentence(tmp_path):
    (tmp_path / "broken.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(Unavailable, match="is a file of another kind"):
        load_any_cluster({"source": {"type": "ledger", "database": f"sqlite:///{tmp_path}/broken.sqlite"}}, str)
