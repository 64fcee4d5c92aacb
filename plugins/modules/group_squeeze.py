#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action group_squeeze."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: group_squeeze
short_description: Find nodes that can be powered off, or that must be powered on again
version_added: 1.0.0
description:
  - Finds nodes that can be powered off because their instances, all on shared storage, fit on the other nodes, and each of these still
    has room for more. If nodes lack even minimal room, finds standby nodes to power on again.
  - It runs on the controller, without a connection to any host, and changes nothing.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.cluster
  - bareon.allocator.cluster.link
  - bareon.allocator.tolerant
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
options:
  target_resources:
    description:
      - Room that every node keeps when nodes are powered off, in multiples of the standard size of the cluster's policy.
    type: float
    default: 2.0
  minimal_resources:
    description:
      - If a node has less room than this, standby nodes are powered on. In the same unit.
    type: float
    default: 2.0
  redundant:
    description:
      - Whether to keep room for restarts. If so, no node's failure may leave more instances on shared storage without a node than now.
    type: bool
    default: true
notes:
  - A node can be powered off if it is not the master, has no secondaries, and carries only instances on shared storage.
    Nodes with the fewest instances come first, or those with the least memory if more can go off then.
  - A node is on standby if it is offline and has a tag that starts with C(htools:standby:).
  - Room means memory, CPUs and spindle use, as in Ganeti's C(hsqueeze).
seealso:
  - module: bareon.allocator.group_capacity
  - module: bareon.allocator.group_balance
"""

EXAMPLES = r"""
---
- name: Find nodes to power off for the night
  bareon.allocator.group_squeeze:
    cluster:
      nodes:
        - {name: n1, total_memory: 64 GiB, total_disk: 0, total_cpus: 16, master: true}
        - {name: n2, total_memory: 64 GiB, total_disk: 0, total_cpus: 16}
        - {name: n3, total_memory: 64 GiB, total_disk: 0, total_cpus: 16}
      instances:
        - {name: web, memory: 4 GiB, disk: 20 GiB, vcpus: 2, disk_template: rbd, primary: n2}
        - {name: db, memory: 8 GiB, disk: 80 GiB, vcpus: 4, disk_template: rbd, primary: n3}
  register: night

- name: Show what to do before they go off
  ansible.builtin.debug:
    msg: "{{ night.power_off }}: {{ night.plan.commands + night.commands_after }}"
"""

RETURN = r"""
---
power_off:
  description: Nodes that can be powered off when RV(plan) is done.
  type: list
  elements: str
  sample: ["node-0003.example.com"]
  returned: success
power_on:
  description: Nodes to power on before RV(plan).
  type: list
  elements: str
  sample: []
  returned: success
lacking:
  description: Nodes that lack the minimal room even after all standby nodes are powered on.
  type: list
  elements: str
  sample: ["node-0001.example.com"]
  returned: success
plan:
  description: The moves, their order and stages, as RV(bareon.allocator.group_balance#module:plan).
  type: dict
  sample: {"score_before": 269.35, "score_after": 198.5, "moves": []}
  returned: success
commands_before:
  description: Commands that bring standby nodes back, to run before RV(plan).
  type: list
  elements: str
  sample: ["gnt-node modify --online=yes node-0003.example.com"]
  returned: success
commands_after:
  description: Commands that take nodes off and mark them as standby, to run after RV(plan).
  type: list
  elements: str
  sample: ["gnt-node modify --offline=yes node-0003.example.com"]
  returned: success
notes:
  description: A sentence on each node that does not answer and is not marked offline, and on each rule that cannot hold.
  type: list
  elements: str
  sample: ["rule web-apart names instances that are not there"]
  returned: success
left_out:
  description: How many instances are left out by each reason, such as V(rule), V(ha), V(local_disks), V(unreachable) or V(auto_balance).
  type: dict
  sample: {"order": 7, "redundancy": 4}
  returned: success
summary:
  description: The nodes to switch off or on, and the moves, as a table to read.
  type: str
  sample: "still lack the minimal room: node-0001.example.com"
  returned: success
"""
