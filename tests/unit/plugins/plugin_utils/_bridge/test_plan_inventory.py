# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan leaves free and what a host has, as providers."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, Mistakes
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.plan_inventory import plan_to_providers
from ansible_collections.bareon.allocator.plugins.plugin_utils._bridge.planned_groups import planned_groups
from ansible_collections.bareon.allocator.plugins.plugin_utils._disk.planner import Planner
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.ledger.parse import parse_changes

FACTS = {"processor_vcpus": 16, "processor_count": 1, "memtotal_mb": 31859}
SSD = {"id": "ssd1", "type": "ssd", "size": 457862}
HDDS = [{"id": f"hdd{number}", "type": "hdd", "size": 476940} for number in (1, 2, 3, 4)]
ROOT = {"id": "root", "type": "partition", "size": "50 GiB", "disks": ["ssd1"]}
GUESTS = {"id": "guests", "type": "vg", "contains": ["images"]}
IMAGES = {"id": "images", "type": "lv", "size": "20 GiB"}


def hardware(disks):
    return {"ram": 65536, "firmware": "uefi", "disks": disks}


def planned(disks, schema):
    return Planner(schema).plan(hardware(disks))


def on_ssd():
    return planned([SSD], [ROOT, GUESTS, IMAGES])


def mistakes_of(*arguments, **options):
    with pytest.raises(InputError) as raised:
        plan_to_providers(*arguments, **options)
    return {mistake.place: mistake.says for mistake in raised.value.mistakes}


def test_host_is_the_root_and_its_groups_are_below():
    # 457862 MiB less 2 for the table and 51200 for root are 406660; less 1 before the first extent 101664 extents of 4 MiB,
    # of which images takes 5120: 386176 MiB are left, 377 GiB and a bit.
    assert plan_to_providers(on_ssd(), "host1", FACTS, hardware=hardware([SSD])) == [
        {"name": "host1", "inventories": {"VCPU": {"total": 16}, "MEMORY_MB": {"total": 31859}}},
        {
            "name": "host1_vg_guests",
            "parent": "host1",
            "inventories": {"DISK_GB": {"total": 377}},
            "traits": ["CUSTOM_VG_GUESTS", "STORAGE_DISK_SSD"],
        },
    ]


def array(level, legs, **more):
    return [{"id": "data", "type": "raid", "level": level, "legs": legs, "disks": [disk["id"] for disk in HDDS], **more}]


@pytest.mark.parametrize("encrypt", [False, True])
@pytest.mark.parametrize(
    "below",
    [
        pytest.param([], id="disks"),
        *(pytest.param(array(level, 4), id=level) for level in ("raid0", "raid5", "raid6", "raid10")),
        pytest.param(array("raid5", 3), id="raid5 of 3"),
        pytest.param(array("raid1", 2), id="raid1"),
        pytest.param([*array("raid1", 2), {"id": "more", "type": "raid", "level": "raid1", "legs": 2}], id="two arrays"),
    ],
)
def test_free_space_is_what_the_planner_itself_gives_to_a_volume_without_a_limit(below, encrypt):
    members = [space["id"] for space in below]
    group = {"id": "guests", "type": "vg", "contains": [*members, "images"]}
    volume = {"id": "images", "type": "lv", "min_size": "20 GiB", "encrypt": encrypt}
    full = planned(HDDS, [*below, group, volume])
    whole = full["schema"]["lvs"][0]["size"]
    assert whole > 20480
    assert [found.free for found in planned_groups(full, Mistakes())] == [0]

    part = copy.deepcopy(full)
    part["schema"]["lvs"][0]["size"] = 20480
    (found,) = planned_groups(part, Mistakes())
    assert found.free == whole - 20480
    used = {disk["disk_id"] for disk in full["disks"] if disk["spaces"]}
    assert found.disks == used


def test_a_full_group_has_no_inventory():
    plan = planned([SSD], [ROOT, GUESTS, {"id": "images", "type": "lv", "min_size": "20 GiB"}])
    assert plan_to_providers(plan, "host1", FACTS)[1]["inventories"] == {}


def test_less_than_a_gib_is_nothing_and_rounding_is_down():
    plan = on_ssd()
    free = 386176
    for taken, gib in ((free - 1024, 1), (free - 1020, None), (free - 2044, 1)):
        plan["schema"]["lvs"][0]["size"] = 20480 + taken
        found = plan_to_providers(plan, "host1", FACTS)[1]["inventories"]
        assert found == ({} if gib is None else {"DISK_GB": {"total": gib}})


@pytest.mark.parametrize(("kinds", "trait"), [(("ssd",), ["STORAGE_DISK_SSD"]), (("hdd",), ["STORAGE_DISK_HDD"]), (("ssd", "hdd"), [])])
def test_traits_tell_the_type_of_the_disks_if_all_are_alike(kinds, trait):
    disks = [{"id": f"disk{number}", "type": kind, "size": 100000} for number, kind in enumerate(kinds)]
    plan = planned(disks, [{"id": "my-data.1", "type": "vg", "contains": [], "disks": [disk["id"] for disk in disks]}])
    found = plan_to_providers(plan, "host1", {**FACTS, "bareon_hardware": hardware(disks)})
    assert found[1]["traits"] == ["CUSTOM_VG_MY_DATA_1", *trait]
    assert plan_to_providers(plan, "host1", FACTS)[1]["traits"] == ["CUSTOM_VG_MY_DATA_1"], "nothing tells the types"


def test_numa_nodes_have_the_cpus_and_the_memory():
    nodes = [{"cpus": "0-3,8-11", "memory": "16 GiB"}, {"cpus": 8, "memory": 15475}, {"cpus": "", "memory": 4096}]
    host, first, second, third, _group = plan_to_providers(on_ssd(), "host1", FACTS, numa=nodes)
    assert host == {"name": "host1", "inventories": {}}
    assert first == {
        "name": "host1_numa0",
        "parent": "host1",
        "inventories": {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 16384}},
        "traits": ["HW_NUMA_ROOT"],
    }
    assert second["inventories"] == {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 15475}}
    assert third["inventories"] == {"MEMORY_MB": {"total": 4096}}, "a node may have memory alone"


def test_limits_hold_for_each_provider_and_none_reserves_more_than_there_is():
    nodes = [{"cpus": 8, "memory": 16384}, {"cpus": 8, "memory": 512}]
    limits = {"MEMORY_MB": {"reserved": 1024}, "VCPU": {"allocation_ratio": 4.0, "max_unit": 8}}
    found = plan_to_providers(on_ssd(), "host1", FACTS, numa=nodes, limits=limits)
    assert found[1]["inventories"]["VCPU"] == {"total": 8, "allocation_ratio": 4.0, "max_unit": 8}
    assert [node["inventories"]["MEMORY_MB"]["reserved"] for node in found[1:3]] == [1024, 512]


def test_cpus_and_memory_from_what_else_tells_them():
    facts = {"processor_count": 2, "processor_cores": 8, "processor_threads_per_core": 2}
    found = plan_to_providers(on_ssd(), "host1", facts, hardware=hardware([SSD]))
    assert found[0]["inventories"] == {"VCPU": {"total": 32}, "MEMORY_MB": {"total": 65536}}


def test_only_chosen_groups_are_offered():
    schema = [{"id": name, "type": "vg", "contains": [], "disks": ["ssd1"]} for name in ("os", "guests")]
    plan = planned([SSD], schema)
    names = [entry["name"] for entry in plan_to_providers(plan, "host1", FACTS, volume_groups=["guests"])]
    assert names == ["host1", "host1_vg_guests"]


def test_the_ledger_takes_the_providers():
    nodes = [{"cpus": 8, "memory": 16384}, {"cpus": 8, "memory": 15475}]
    limits = {"DISK_GB": {"min_unit": 10, "step_size": 10}}
    found = plan_to_providers(on_ssd(), "host1", FACTS, numa=nodes, hardware=hardware([SSD]), limits=limits)
    changes = parse_changes(found, "providers[{}]")
    assert [change.parent for change in changes] == [None, "host1", "host1", "host1"]


def test_all_mistakes_are_told_at_once():
    plan = on_ssd()
    plan["schema"]["vgs"][0]["pvnames"] = ["/dev/sdz1", {}]
    plan["schema"]["lvs"][0]["size"] = "20 GiB"
    found = mistakes_of(
        plan,
        " host1",
        {"processor_vcpus": "16"},
        numa=[{"cpus": "0-", "memory": "much"}, {"cpu": 2, "memory": 3}],
        hardware=[],
        limits={"VCPUS": {}, "VCPU": {"total": 3}, "DISK_GB": {"reserved": -1}},
        volume_groups=["guest"],
    )
    assert set(found) == {
        "hardware",
        "facts.processor_vcpus",
        "numa[0].cpus",
        "numa[0].memory",
        "numa[1].cpu",
        "numa[1].cpus",
        "plan.schema.lvs[0].size",
        "plan.schema.vgs[0].pvnames",
        "plan.schema.vgs[0].pvnames[1]",
        "volume_groups[0]",
        "limits.VCPUS",
        "limits.VCPU.total",
        "limits.DISK_GB.reserved",
        "host",
    }
    assert "did you mean guests?" in found["volume_groups[0]"]


def test_facts_that_are_missing_are_asked_for():
    assert set(mistakes_of(on_ssd(), "host1", {})) == {"facts.processor_vcpus", "facts.memtotal_mb"}


def test_nodes_cannot_have_more_cpus_than_the_host():
    found = mistakes_of(on_ssd(), "host1", FACTS, numa=[{"cpus": 16, "memory": 1}, {"cpus": "16", "memory": 1}])
    assert found == {"numa": "has 17 CPUs in all, but the host has 16"}


@pytest.mark.parametrize("plan", [None, "plan", [], {}, {"schema": []}, {"host1": {"schema": {}}}])
def test_what_is_no_plan_is_refused(plan):
    assert "bareon.allocator.disk_plan" in mistakes_of(plan, "host1", FACTS)["plan.schema"]


def test_volumes_larger_than_their_group_are_refused():
    plan = on_ssd()
    plan["schema"]["lvs"][0]["size"] = 406660
    assert mistakes_of(plan, "host1", FACTS) == {"plan.schema.vgs[0]": "guests has room for 406656 MiB, but its volumes take 406660"}


@pytest.mark.parametrize("key", ["parteds", "pvs", "vgs", "lvs", "mds", "luks"])
@pytest.mark.parametrize("wrong", [7, [7], [{}], [{"name": [], "devices": [[]], "level": {}, "pvnames": 3}], {"a": 1}])
def test_damaged_plans_give_mistakes_only(key, wrong):
    plan = on_ssd()
    plan["schema"][key] = wrong
    assert mistakes_of(plan, "host1", FACTS)


NODE = {
    "cpus": 16,
    "memory": 32000,
    "numa": [{"cpus": "0-7", "memory": 16000}, {"cpus": "8-15", "memory": 16000}],
    "gpus": [
        {"address": "0000:3b:00.0", "vendor": "10de", "device": "2330", "numa_node": 1},
        {"address": "0000:c1:00.0", "numa_node": None},
    ],
    "nics": [
        {
            "name": "ens1",
            "address": "0000:1a:00.0",
            "vendor": "15b3",
            "device": "101d",
            "numa_node": 0,
            "speed": 25000,
            "vfs": 8,
            "mac": "x",
        },
        {"name": "ens2", "address": "0000:1a:00.1", "numa_node": 5, "speed": None, "vfs": 0},
    ],
}


def test_gpus_and_network_cards_are_below_their_numa_nodes():
    found = {entry["name"]: entry for entry in plan_to_providers(on_ssd(), "host", {}, node=NODE, limits={"SRIOV_NET_VF": {"reserved": 2}})}
    assert found["host"]["inventories"] == {}
    assert found["host_numa1"]["inventories"] == {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 16000}}
    assert found["host_gpu_0000:3b:00.0"] == {
        "name": "host_gpu_0000:3b:00.0",
        "parent": "host_numa1",
        "inventories": {"PGPU": {"total": 1}},
        "traits": ["CUSTOM_PCI_10DE_2330"],
    }
    assert (found["host_gpu_0000:c1:00.0"]["parent"], found["host_gpu_0000:c1:00.0"]["traits"]) == ("host", [])
    assert found["host_nic_ens1"] == {
        "name": "host_nic_ens1",
        "parent": "host_numa0",
        "inventories": {
            "SRIOV_NET_VF": {"total": 8, "reserved": 2},
            "NET_BW_EGR_KILOBIT_PER_SEC": {"total": 25_000_000},
            "NET_BW_IGR_KILOBIT_PER_SEC": {"total": 25_000_000},
        },
        "traits": ["CUSTOM_PCI_15B3_101D", "HW_NIC_SRIOV"],
    }
    assert (found["host_nic_ens2"]["parent"], found["host_nic_ens2"]["inventories"]) == ("host", {})
    parse_changes(list(found.values()), "providers[{}]")


def test_facts_carry_the_node_and_go_before_it():
    one = {**NODE, "numa": NODE["numa"][:1]}
    found = plan_to_providers(on_ssd(), "host", {"bareon_node": one, "memtotal_mb": 31000})
    assert found[0]["inventories"] == {"VCPU": {"total": 16}, "MEMORY_MB": {"total": 31000}}
    assert {entry.get("parent") for entry in found} == {None, "host"}
    assert plan_to_providers(on_ssd(), "host", {"bareon_node": NODE}, node={**one, "gpus": [], "nics": []}) == [
        {"name": "host", "inventories": {"VCPU": {"total": 16}, "MEMORY_MB": {"total": 32000}}},
        found[1],
    ]


def test_what_is_wrong_with_a_node_is_told_at_once():
    broken = {
        "cpus": 4,
        "memory": 1,
        "gpus": [{"address": "a", "vendor": "NVIDIA"}, {"address": "a"}],
        "nics": [{"address": "b", "vfs": -1}],
    }
    assert mistakes_of(on_ssd(), "host", {}, node=broken) == {
        "node.gpus[0].vendor": "is 'NVIDIA'; must be four hexadecimal digits",
        "node.nics[0].name": "is missing; must be text",
        "node.nics[0].vfs": "is -1; must be a whole number, 0 or more",
        "node": "has gpu_a 2 times",
    }


@pytest.mark.parametrize(
    ("facts", "node", "places"),
    [
        ({**FACTS, "memtotal_mb": 10**30}, {}, {"host1.MEMORY_MB.total"}),
        ({**FACTS, "processor_vcpus": 2**31}, {}, {"host1.VCPU.total"}),
        (FACTS, {"nics": [{"address": "a", "name": "x", "vfs": 10**30}]}, {"host1_nic_x.SRIOV_NET_VF.total"}),
        (
            FACTS,
            {"nics": [{"address": "a", "name": "x", "speed": 10**30}]},
            {f"host1_nic_x.NET_BW_{way}_KILOBIT_PER_SEC.total" for way in ("EGR", "IGR")},
        ),
    ],
)
def test_what_no_ledger_takes_is_refused_for_its_host_alone(facts, node, places):
    """A fleet is registered in one transaction, which one host would end for all."""
    assert set(mistakes_of(on_ssd(), "host1", facts, node=node)) == places
