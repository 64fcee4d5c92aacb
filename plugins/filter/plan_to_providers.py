# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes providers of a plan and the facts of its host."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_to_providers
short_description: Convert a plan and the facts of its host to resource providers
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Returns a host in the form that O(bareon.allocator.provider#module:providers) takes, from its facts and a plan of
    M(bareon.allocator.disk_plan) that was carried out on it.
  - The host is the root of a tree, with its C(VCPU) and C(MEMORY_MB).
  - Each NUMA node is a provider HOST_numaN below it, with the trait V(HW_NUMA_ROOT). If there are any, they have the CPUs and the memory
    instead of the host.
  - Each volume group is a provider HOST_vg_GROUP below the host. Its C(DISK_GB) is what the volumes of the plan leave free, in whole GiB,
    rounded down. A group with less than one GiB left has no inventory.
  - Each thin pool is a provider HOST_vg_GROUP_pool_POOL below its group, each ZFS pool a provider HOST_zpool_POOL below the host. Of the
    spaces in O(offered), a Btrfs is a provider HOST_btrfs_ID, and each partition a provider HOST_partition_ID, with a number if there are
    several. Their C(DISK_GB) is what they hold, and what the plan gives out is C(reserved), that is, the sizes that the volumes of a thin
    pool show, quotas and reservations of datasets, and limits of subvolumes. They have the traits C(CUSTOM_POOL_POOL),
    C(CUSTOM_ZPOOL_POOL), C(CUSTOM_BTRFS_ID) or C(CUSTOM_PARTITION_ID), the same for all partitions of a space.
  - A volume group has the trait C(CUSTOM_VG_GROUP), its name in capitals, with V(_) for everything that is not a letter or digit. If all of
    its disks are known to be of one type, it also has V(STORAGE_DISK_SSD) or V(STORAGE_DISK_HDD).
  - Each GPU is a provider HOST_gpu_ADDRESS with one C(PGPU). Each network card is a provider HOST_nic_NAME with as many C(SRIOV_NET_VF) as
    it supports, and the speed of its link as C(NET_BW_EGR_KILOBIT_PER_SEC) and C(NET_BW_IGR_KILOBIT_PER_SEC). They are below their NUMA
    node, or else below the host, and have the trait C(CUSTOM_PCI_VENDOR_DEVICE) of their model, such as C(CUSTOM_PCI_10DE_2330). A network
    card that supports virtual functions has V(HW_NIC_SRIOV).
  - Volumes that a group with O(bareon.allocator.disk_plan#module:schema[].keep_data) has, but that are not in the plan, are not known. Give
    them as C(reserved) in O(limits).
positional: _input
requirements:
  - os-traits and os-resource-classes on the controller
options:
  _input:
    description:
      - The plan of one host, as RV(bareon.allocator.disk_plan#module:plan).
    type: dict
    required: true
  host:
    description:
      - The name of the host. Its providers are named after it.
    type: str
    required: true
  facts:
    description:
      - What M(ansible.builtin.setup) returns as C(ansible_facts). It uses C(processor_vcpus), or else C(processor_count) times
        C(processor_cores) times C(processor_threads_per_core), and C(memtotal_mb).
    type: dict
    required: true
  numa:
    description:
      - The NUMA nodes, each with C(cpus), a number or a list in the kernel's format such as V(0-3,8-11), and C(memory), in MiB or as text
        with a unit.
      - Default is those of O(node), if it has more than one.
    type: list
    elements: dict
    default: []
  hardware:
    description:
      - The hardware, as M(bareon.allocator.disk_facts) returns it. Gives the types of disks, and the memory if O(facts) do not.
      - Default is C(bareon_hardware) of O(facts).
    type: dict
  node:
    description:
      - What M(bareon.allocator.node_facts) returns. Gives GPUs, network cards and NUMA nodes, and CPUs and memory if O(facts) do not.
      - Default is C(bareon_node) of O(facts).
    type: dict
  limits:
    description:
      - By resource class C(VCPU), C(MEMORY_MB), C(DISK_GB), C(PGPU), C(SRIOV_NET_VF), C(NET_BW_EGR_KILOBIT_PER_SEC) or
        C(NET_BW_IGR_KILOBIT_PER_SEC), further keys of O(bareon.allocator.provider#module:inventories), such as C(reserved),
        C(allocation_ratio) or C(max_unit). They apply to each provider that has the class.
      - C(reserved) is at most what the provider has.
    type: dict
    default: {}
  volume_groups:
    description:
      - The names of the volume groups to offer, with their thin pools. Default is all.
    type: list
    elements: str
  offered:
    description:
      - The IDs of spaces to offer, too, each a Btrfs or partitions on which nothing but a file system lies.
    type: list
    elements: str
    version_added: 1.1.0
  overcommit:
    description:
      - How many times its size a thin pool gives, from 1 to 1000. It becomes C(allocation_ratio) of its C(DISK_GB). The capacity is the
        size times this, less the sizes that the volumes of the plan show.
    type: float
    default: 1.0
    version_added: 1.1.0
seealso:
  - module: bareon.allocator.disk_plan
  - module: bareon.allocator.provider
"""

EXAMPLES = r"""
---
- name: Plan the disks and leave room for guests
  bareon.allocator.disk_plan:
    schema:
      - id: root
        type: partition
        size: 50 GiB
        mount: /
        boot: true
      - id: guests
        type: vg
        contains: [images]
      - id: images
        type: lv
        size: 20 GiB
        mount: /var/lib/libvirt/images
  register: planned

- name: Register the host with what is left
  bareon.allocator.provider:
    providers: >-
      {{ planned.plan | bareon.allocator.plan_to_providers(inventory_hostname, ansible_facts, limits=limits, volume_groups=['guests']) }}
  vars:
    limits:
      VCPU:
        allocation_ratio: 4.0
      MEMORY_MB:
        reserved: 512

- name: Look at a host with a GPU
  ansible.builtin.debug:
    msg: "{{ planned.plan | bareon.allocator.plan_to_providers('host1', {}, node=node) }}"
  vars:
    node:
      cpus: 32
      memory: 131072
      gpus:
        - address: "0000:3b:00.0"
          vendor: 10de
          device: "2330"

- name: Look at a host with two NUMA nodes
  ansible.builtin.debug:
    msg: "{{ planned.plan | bareon.allocator.plan_to_providers('host1', {}, numa=nodes) }}"
  vars:
    nodes:
      - cpus: 0-7,16-23
        memory: 64 GiB
      - cpus: 8-15,24-31
        memory: 64 GiB
"""

RETURN = r"""
_value:
  description:
    - The providers, the host first.
  type: list
  elements: dict
  returned: always
  sample:
    - name: host1
      inventories: {}
    - name: host1_numa0
      parent: host1
      inventories:
        VCPU:
          total: 16
        MEMORY_MB:
          total: 65536
      traits:
        - HW_NUMA_ROOT
    - name: host1_vg_guests
      parent: host1
      inventories:
        DISK_GB:
          total: 426
      traits:
        - CUSTOM_VG_GUESTS
        - STORAGE_DISK_SSD
"""

import typing as t

from ansible.errors import AnsibleFilterError

from ..module_utils._data.errors import InputError
from ..plugin_utils._bridge import plan_inventory
from ..plugin_utils._common.libraries import MissingLibraries, refuse_missing
from ..plugin_utils._common.plain import plain


def plan_to_providers(*given: t.Any, **details: t.Any) -> list[dict[str, t.Any]]:
    """Return the providers of a host; AnsibleFilterError with everything that is wrong with the input."""
    try:
        refuse_missing("ledger")
        return plan_inventory.plan_to_providers(*map(plain, given), **{name: plain(value) for name, value in details.items()})
    except (InputError, MissingLibraries, TypeError) as error:
        raise AnsibleFilterError(f"plan_to_providers: {error}") from error


class FilterModule:
    """What Ansible looks for in this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return the filters by name."""
        return {"plan_to_providers": plan_to_providers}
