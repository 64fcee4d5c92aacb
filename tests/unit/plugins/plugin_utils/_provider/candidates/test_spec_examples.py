# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The examples of seed 002 (step_size) and seed 003 (same_subtree, resourceless groups, group_policy), as they are written there."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.find import SearchOptions, find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.groups import parse_groups
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.query import parse_query
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.names import provider_uuid
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world

NUMA = {
    "providers": [
        {"name": "compute node"},
        {"name": "numa0", "parent": "compute node", "inventories": {"VCPU": 4, "MEMORY_MB": 2048}},
        {"name": "numa1", "parent": "compute node", "inventories": {"VCPU": 4, "MEMORY_MB": 2048}},
        {"name": "fpga0_0", "parent": "numa0", "inventories": {"FPGA": 1}},
        {"name": "fpga1_0", "parent": "numa1", "inventories": {"FPGA": 1}},
        {"name": "fpga1_1", "parent": "numa1", "inventories": {"FPGA": 1}},
    ],
    "allocations": {"2dc5cec5-9a3e-5c00-b7d0-ec8d9303f554": {"numa0": {"VCPU": 2}}},
}


def nics(*, vfs, networks):
    """The compute node with two NICs; VFs of each PF by NIC, and the traits of the PFs."""
    providers = [{"name": "compute node"}]
    for nic, total in vfs.items():
        providers.append({"name": nic, "parent": "compute node", "traits": ["CUSTOM_HW_NIC_ROOT"]})
        for number, network in enumerate(networks, start=1):
            name = f"pf{nic[-1]}_{number}"
            providers.append({"name": name, "parent": nic, "traits": network, "inventories": {"SRIOV_NET_VF": total}})
    return {"providers": providers}


def names(world, candidates):
    """The candidates' allocations by the providers' names, as a set."""
    by_uuid = {provider_uuid(provider["name"]): provider["name"] for provider in world["providers"]}
    return {
        frozenset((by_uuid[uuid], name, amount) for uuid, amounts in candidate["allocations"].items() for name, amount in amounts.items())
        for candidate in candidates
    }


def answer(world, query):
    index = build_index(parse_world(world))
    candidates = find_candidates(index, parse_query(query, index.known)).candidates
    found = names(world, candidates)
    assert len(found) == len(candidates)
    return found


def test_same_subtree_two_cpus_and_an_fpga_of_one_numa_node():
    found = answer(NUMA, "resources_COMPUTE=VCPU:2,MEMORY_MB:512&resources_ACCEL=FPGA:1&same_subtree=_COMPUTE,_ACCEL")
    assert found == {
        frozenset({("numa0", "VCPU", 2), ("numa0", "MEMORY_MB", 512), ("fpga0_0", "FPGA", 1)}),
        frozenset({("numa1", "VCPU", 2), ("numa1", "MEMORY_MB", 512), ("fpga1_0", "FPGA", 1)}),
        frozenset({("numa1", "VCPU", 2), ("numa1", "MEMORY_MB", 512), ("fpga1_1", "FPGA", 1)}),
    }


def test_resourceless_group_two_vfs_of_one_nic_on_two_networks():
    world = nics(vfs={"nic1": 4, "nic2": 2}, networks=[["CUSTOM_NET1"], ["CUSTOM_NET2"]])
    found = answer(
        world,
        "resources_VIF_NET1=SRIOV_NET_VF:1&required_VIF_NET1=CUSTOM_NET1&resources_VIF_NET2=SRIOV_NET_VF:1&required_VIF_NET2=CUSTOM_NET2"
        "&required_NIC_AFFINITY=CUSTOM_HW_NIC_ROOT&same_subtree=_VIF_NET1,_VIF_NET2,_NIC_AFFINITY",
    )
    assert found == {
        frozenset({("pf1_1", "SRIOV_NET_VF", 1), ("pf1_2", "SRIOV_NET_VF", 1)}),
        frozenset({("pf2_1", "SRIOV_NET_VF", 1), ("pf2_2", "SRIOV_NET_VF", 1)}),
    }


BOTH = frozenset({("pf1_1", "SRIOV_NET_VF", 1), ("pf1_2", "SRIOV_NET_VF", 1)})
TWO_VFS = (
    "resources_VIF1=SRIOV_NET_VF:1&resources_VIF2=SRIOV_NET_VF:1"
    "&required_NIC_AFFINITY=CUSTOM_HW_NIC_ROOT&same_subtree=_VIF1,_VIF2,_NIC_AFFINITY"
)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("&group_policy=isolate", {BOTH}),
        ("&group_policy=none", {BOTH, frozenset({("pf1_1", "SRIOV_NET_VF", 2)}), frozenset({("pf1_2", "SRIOV_NET_VF", 2)})}),
        ("", {BOTH, frozenset({("pf1_1", "SRIOV_NET_VF", 2)}), frozenset({("pf1_2", "SRIOV_NET_VF", 2)})}),
    ],
)
def test_group_policy_two_vfs_of_one_nic(policy, expected):
    world = nics(vfs={"nic1": 4}, networks=[[], []])
    assert answer(world, TWO_VFS + policy) == expected


def test_group_policy_every_mapping_counts_when_asked_for():
    index = build_index(parse_world(nics(vfs={"nic1": 4}, networks=[[], []])))
    request = parse_query(TWO_VFS + "&group_policy=isolate", index.known)
    assert len(find_candidates(index, request, SearchOptions(distinct="mappings")).candidates) == 2


@pytest.mark.parametrize(
    ("inventory", "name", "allowed", "refused"),
    [
        ({"total": 2000, "min_unit": 5, "max_unit": 1000, "step_size": 10}, "DISK_GB", [5, 10, 20, 1000], [1, 6, 7, 8, 15, 1010]),
        ({"total": 64, "min_unit": 1, "max_unit": 16, "step_size": 2}, "VCPU", [1, 2, 4, 16], [3, 5, 17, 18]),
    ],
)
def test_step_size_binds_above_min_unit(inventory, name, allowed, refused):
    index = build_index(parse_world({"providers": [{"name": "pool", "inventories": {name: inventory}}]}))
    for amount in allowed + refused:
        request = parse_groups({"groups": {"": {"resources": {name: amount}}}}, index.known)
        assert bool(find_candidates(index, request).candidates) == (amount in allowed), amount


def test_step_size_is_checked_again_on_merged_amounts():
    disk = {"total": 2000, "min_unit": 5, "max_unit": 1000, "step_size": 10}
    index = build_index(parse_world({"providers": [{"name": "pool", "inventories": {"DISK_GB": disk}}]}))

    def fits(first, second):
        groups = {"A": {"resources": {"DISK_GB": first}}, "B": {"resources": {"DISK_GB": second}}}
        return bool(find_candidates(index, parse_groups({"groups": groups}, index.known)).candidates)

    assert fits(5, 5)
    assert fits(10, 20)
    assert not fits(5, 10)
    assert not fits(1000, 10)
