#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of a server other than its disks."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: node_facts
short_description: Gather the CPUs, memory, NUMA nodes, GPUs and network cards of a server
version_added: 1.0.0
description:
  - Gathers the CPUs, memory, NUMA nodes, GPUs and network cards of a server. For its disks there is M(bareon.allocator.disk_facts).
  - The filter P(bareon.allocator.plan_to_providers#filter) takes the result, to register the server as a tree of resource providers.
  - Reads sysfs and C(/proc/meminfo), needs no tool, and works without root.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.linux
  - bareon.allocator.attributes.facts
options: {}
seealso:
  - module: bareon.allocator.disk_facts
  - plugin: bareon.allocator.plan_to_providers
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Read what the server has
  bareon.allocator.node_facts:

- name: Show its GPUs
  ansible.builtin.debug:
    var: ansible_facts.bareon_node.gpus
"""

RETURN = r"""
---
ansible_facts:
  description: The facts.
  returned: always
  type: dict
  contains:
    bareon_node:
      description: What the server has.
      returned: always
      type: dict
      contains:
        cpus:
          description: The number of CPUs that are online. Null if it is not known.
          returned: always
          type: int
          sample: 64
        memory:
          description: The memory that the kernel manages, in MiB. Null if it is not known.
          returned: always
          type: int
          sample: 257612
        numa:
          description: The NUMA nodes, by number.
          returned: always
          type: list
          elements: dict
          contains:
            cpus:
              description: Its CPUs, in the kernel's list format. Empty for a node without CPUs.
              returned: always
              type: str
              sample: 0-15,32-47
            memory:
              description: Its memory, in MiB.
              returned: always
              type: int
              sample: 128806
        gpus:
          description:
            - The GPUs and other accelerators, by PCI address. Display controllers count if NVIDIA or AMD made them; others are the
              console of a server or part of its CPU. Virtual functions do not count.
          returned: always
          type: list
          elements: dict
          contains: &pci
            address:
              description: The PCI address.
              returned: always
              type: str
              sample: "0000:3b:00.0"
            vendor:
              description: The PCI vendor ID, four hexadecimal digits.
              returned: always
              type: str
              sample: 10de
            device:
              description: The PCI device ID, four hexadecimal digits.
              returned: always
              type: str
              sample: "2330"
            numa_node:
              description: The number of its NUMA node. Null if it is not known.
              returned: always
              type: int
              sample: 0
        nics:
          description: The network interfaces of physical cards, by name. Bridges, bonds, virtual functions and the like are left out.
          returned: always
          type: list
          elements: dict
          contains:
            <<: *pci
            name:
              description: The name of the interface.
              returned: always
              type: str
              sample: ens1f0np0
            mac:
              description: Its MAC address.
              returned: always
              type: str
              sample: "08:c0:eb:00:00:01"
            speed:
              description: The current speed of its link, in Mbit/s. Null without a link.
              returned: always
              type: int
              sample: 25000
            vfs:
              description: The number of virtual functions (SR-IOV) that it supports.
              returned: always
              type: int
              sample: 127
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.bareon.allocator.plugins.module_utils._facts.host import LocalHost
from ansible_collections.bareon.allocator.plugins.module_utils._facts.node import read_node


def main() -> t.NoReturn:
    """Gather the facts and leave."""
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    module.exit_json(changed=False, ansible_facts={"bareon_node": read_node(LocalHost())})


if __name__ == "__main__":
    main()
