# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Made-up clouds to measure on: flat hosts with shared disk pools, nested hosts of 9 providers, one host with many devices."""

from __future__ import annotations

import uuid

_NAMESPACE = uuid.UUID("0b8d1c52-97ad-5f0e-9d0e-5f5b3f7f2a11")
DEFAULTS = {"reserved": 0, "min_unit": 1, "max_unit": 2**31 - 1, "step_size": 1, "allocation_ratio": 1.0}


def made_uuid(name):
    """The UUID that belongs to a name."""
    return str(uuid.uuid5(_NAMESPACE, name))


def inventory(total, **others):
    """All fields of an inventory."""
    return {**DEFAULTS, "total": total, **others}


def provider(name, parent=None, inventories=None, traits=(), aggregates=()):
    """All fields of a provider; the parent and the aggregates by name."""
    return {
        "uuid": made_uuid(name),
        "name": name,
        "parent": made_uuid(parent) if parent else None,
        "inventories": inventories or {},
        "traits": list(traits),
        "aggregates": [made_uuid(aggregate) for aggregate in aggregates],
    }


def flat_world(hosts):
    """Hosts with VCPU and MEMORY_MB, half of them with a local DISK_GB, a shared disk pool for every 50, and 4 VMs on each."""
    providers, allocations = [], {}
    for number in range(hosts):
        name, pool = f"host{number:05}", f"pool{number // 50:03}"
        amounts = {"VCPU": inventory(32, allocation_ratio=4.0), "MEMORY_MB": inventory(131072, reserved=512)}
        if number % 2:
            amounts["DISK_GB"] = inventory(1000)
        traits = ["HW_CPU_X86_AVX2"] if number % 3 == 0 else []
        providers.append(provider(name, None, amounts, traits, [pool, f"zone{number % 3}"]))
        for machine in range(4):
            allocations[made_uuid(f"{name} vm{machine}")] = {made_uuid(name): {"VCPU": 4, "MEMORY_MB": 8192}}
    for number in range((hosts + 49) // 50):
        name = f"pool{number:03}"
        providers.append(provider(f"disk {name}", None, {"DISK_GB": inventory(100000)}, ["MISC_SHARES_VIA_AGGREGATE"], [name]))
    return {"providers": providers, "allocations": allocations, "custom_traits": ["CUSTOM_NOWHERE"]}


def nested_world(hosts):
    """Hosts of 9 providers: root, 2 NUMA nodes, 2 NICs, 4 physical functions; 4 VMs on each fill two thirds of the NUMA nodes."""
    providers, allocations = [], {}
    for number in range(hosts):
        host = f"host{number:05}"
        providers.append(provider(host, None, {"DISK_GB": inventory(2000)}, ["COMPUTE_VOLUME_MULTI_ATTACH"] if number % 2 else []))
        for node in range(2):
            amounts = {"VCPU": inventory(16), "MEMORY_MB": inventory(65536)}
            providers.append(provider(f"{host} numa{node}", host, amounts, ["HW_NUMA_ROOT"]))
            nic = f"{host} nic{node}"
            providers.append(provider(nic, f"{host} numa{node}", {}, ["CUSTOM_HW_NIC_ROOT"]))
            for function in range(2):
                traits = [f"CUSTOM_NET{function + 1}"]
                providers.append(provider(f"{nic} pf{function}", nic, {"SRIOV_NET_VF": inventory(8)}, traits))
        for machine in range(4):
            node = machine % 2
            vcpus, memory = ((6, 24576), (7, 31744), (8, 32768))[(number + node) % 3]
            allocations[made_uuid(f"{host} vm{machine}")] = {made_uuid(f"{host} numa{node}"): {"VCPU": vcpus, "MEMORY_MB": memory}}
    return {"providers": providers, "allocations": allocations, "custom_traits": ["CUSTOM_NOWHERE"]}


def devices_world(devices):
    """One host with as many devices, each of which one group can have."""
    children = [provider(f"gpu{number:02}", "gpu host", {"PGPU": inventory(1)}) for number in range(devices)]
    return {"providers": [provider("gpu host"), *children], "allocations": {}}


def device_groups(count):
    """A query for as many equal groups of one device each."""
    return "&".join(f"resources_D{number}=PGPU:1" for number in range(count)) + "&group_policy=none"


FLAT_QUERIES = {
    "simple": "resources=VCPU:2,MEMORY_MB:4096,DISK_GB:20",
    "filtered": f"resources=VCPU:2,MEMORY_MB:4096,DISK_GB:20&required=HW_CPU_X86_AVX2&member_of={made_uuid('zone0')}",
    "granular2": "resources_C=VCPU:2,MEMORY_MB:4096&resources_D=DISK_GB:20&group_policy=none",
    "zero": "resources=VCPU:2,MEMORY_MB:4096,DISK_GB:20&required=CUSTOM_NOWHERE",
}
NESTED_QUERIES = {
    "simple": "resources=VCPU:2,MEMORY_MB:4096,SRIOV_NET_VF:1",
    "granular2": "resources_N=VCPU:2,MEMORY_MB:4096&resources_V=SRIOV_NET_VF:1&group_policy=none&same_subtree=_N,_V",
    "granular3": (
        "resources_N=VCPU:2,MEMORY_MB:4096&resources_V1=SRIOV_NET_VF:1&resources_V2=SRIOV_NET_VF:1"
        "&required_NIC=CUSTOM_HW_NIC_ROOT&same_subtree=_V1,_V2,_NIC&group_policy=isolate"
    ),
    "zero": "resources_N=VCPU:2,MEMORY_MB:4096&resources_V=SRIOV_NET_VF:1&resources_D=DISK_GB:3000&group_policy=none",
}
