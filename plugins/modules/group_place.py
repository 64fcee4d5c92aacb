#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action group_place."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: group_place
short_description: Find places for virtual machines in a cluster
version_added: 1.0.0
description:
  - Lists for each instance every group that can take it, best first, with the best nodes in it. For each other group it says which
    node fails which limit, and by how much.
  - It runs on the controller, without a connection to any host, and changes nothing.
  - Several instances are placed one after the other, each in the room that is left. If that leaves any out, an integer program looks for
    an arrangement that leaves out fewer.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.cluster
  - bareon.allocator.cluster.link
  - bareon.allocator.tolerant
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
  - bareon.allocator.scored
options:
  instances:
    description:
      - The instances to place, each as in O(cluster.instances) without C(primary) and C(secondary). A key C(group) restricts one of them
        to a group.
      - Default is the request in an IAllocator message.
    type: list
    elements: dict
  group:
    description:
      - Name or UUID of the only group to look at. It may be a group that takes no instances on its own (C(unallocable)).
      - The score is then that of the group alone.
    type: str
  nodes:
    description: The only nodes to look at.
    type: list
    elements: str
  strategy:
    description:
      - V(balanced) takes the place that gives the cluster the best score.
      - V(partitioned) takes the place that costs the fewest possible allocations of the largest sizes that the policy allows, and among
        these the place that leaves the least disk. It keeps room for large instances where nodes are divided into halves and quarters.
      - V(auto) is V(partitioned) in groups whose nodes all have exclusive storage, and V(balanced) in the others.
    type: str
    choices: [auto, balanced, partitioned]
    default: auto
  make_room:
    description:
      - Whether instances that do not fit are made room for. The fewest instances that are there move to other nodes of their group, and of
        these those with the least data to copy, until as many of the new ones as possible fit. All limits and rules hold at every step.
      - Instances without C(auto_balance) stay, as do those that no plan moves.
    type: bool
    default: false
notes:
  - Nodes may be filled to the last MiB. A node that already fails N+1 takes instances that do not make it worse.
  - The effects of a failing node are only checked in the group that an instance would go to, and nothing may get worse there.
    A group in trouble keeps no instance out of another group.
  - Groups are ordered by their allocation policy, then groups with exclusive storage before others, then by the cost of the place.
seealso:
  - module: bareon.allocator.group_capacity
  - module: bareon.allocator.group_evacuate
"""

EXAMPLES = r"""
---
- name: Find a place for a mirrored instance
  bareon.allocator.group_place:
    source:
      type: ganeti_text
      path: cluster.data
    instances:
      - {name: web, memory: 4 GiB, disk: 40 GiB, vcpus: 2, disk_template: drbd}
  register: places

- name: Show the best one
  ansible.builtin.debug:
    msg: "{{ places.solutions[0].groups[0].nodes | join(':') }}"

- name: Place several instances on a storage pool, or stop
  bareon.allocator.group_place:
    source:
      type: proxmox
      path: pve
    instances: "{{ wanted }}"
    score: capacity
  register: places
  failed_when: places.unplaced | length > 0

- name: Plan the moves after which a large instance fits
  bareon.allocator.group_place:
    source:
      type: ganeti_text
      path: cluster.data
    instances:
      - {name: database, memory: 16 GiB, disk: 40 GiB, vcpus: 2, disk_template: drbd}
    make_room: true
  register: places

- name: Find a host for a virtual machine among those of the ledger
  bareon.allocator.group_place:
    source:
      type: ledger
      database: sqlite:////var/lib/bareon.sqlite
    instances:
      - {name: "{{ machine }}", memory: 4 GiB, disk: 40 GiB, vcpus: 2}
  register: places

- name: Claim what it needs there
  bareon.allocator.provider_allocation:
    database: sqlite:////var/lib/bareon.sqlite
    consumer: "{{ machine }}"
    allocations: "{{ {places.solutions[0].groups[0].nodes[0]: {'VCPU': 2, 'MEMORY_MB': 4096, 'DISK_GB': 40}} }}"
"""

RETURN = r"""
---
solutions:
  description: One entry for each instance, in their order.
  type: list
  elements: dict
  returned: success
  contains:
    instance:
      description: Name of the instance.
      type: str
      returned: always
      sample: "new"
    groups:
      description: Every group that can take it, best first. The first one counts as chosen when the next instances are placed.
      type: list
      elements: dict
      returned: always
      contains:
        group:
          description: Name of the group.
          type: str
          returned: always
          sample: "group-03"
        alloc_policy:
          description: Its allocation policy.
          type: str
          returned: always
          sample: "preferred"
        nodes:
          description: The primary, and the secondary if it needs one.
          type: list
          elements: str
          returned: always
          sample: ["node-0010.example.com", "node-0011.example.com"]
        score:
          description: Score after the instance is placed there. Lower is better.
          type: float
          returned: always
          sample: 268.9559719857036
        lost:
          description: Possible allocations that are lost, for each size of the policy from the largest. V(null) where places are balanced.
          type: list
          elements: int
          returned: always
          sample: []
        free_after:
          description: Internal storage that its nodes have left, in MiB.
          type: int
          returned: always
          sample: 5984256
    rejected:
      description: Every group that cannot take it.
      type: list
      elements: dict
      returned: always
      contains:
        group:
          description: Name of the group.
          type: str
          returned: always
          sample: group-01
        reasons:
          description: What prevents it on each node.
          type: list
          elements: dict
          returned: always
          contains:
            node:
              description: Name of the node. V(null) when it is the group.
              type: str
              returned: always
              sample: node-0001.example.com
            limit:
              description: >-
                One of V(memory), V(disk), V(pool), V(spindles), V(spindle_use), V(redundancy), V(cpus), V(tags), V(rule), V(hardware),
                V(offline), V(nodes), V(shared_redundancy), V(alloc_policy), V(network), or V(policy_) and the field that the policy does
                not allow.
              type: str
              returned: always
              sample: memory
            short:
              description: What is missing, in MiB, CPUs, spindles or tags in conflict. For policies negative when something is too small.
              type: float
              returned: always
              sample: 600.0
            says:
              description: The reason in words, where the limit does not say all.
              type: str
              returned: always
              sample: it has no place in the group
moves:
  description: The moves to make before the instances are created, as C(moves) of RV(bareon.allocator.group_balance#module:plan).
  type: list
  elements: dict
  sample: []
  returned: with O(make_room=true)
plan:
  description: The same moves with their stages, as RV(bareon.allocator.group_balance#module:plan), which the role group_moves carries out.
  type: dict
  sample: {"score_before": 269.35, "score_after": 198.5, "moves": []}
  returned: with O(make_room=true)
fewest:
  description: Whether it is proven that no fewer moves make as much room. In large groups not all sets of moves are tried.
  type: bool
  sample: true
  returned: with O(make_room=true)
restarts:
  description: Instances that run, and are stopped and started again because they cannot be moved while they run.
  type: list
  elements: str
  sample: ["ct1"]
  returned: with O(make_room=true)
unplaced:
  description: Names of the instances that no group can take.
  type: list
  elements: str
  sample: ["inst-00006.example.com"]
  returned: success
notes:
  description: A sentence on each node that does not answer and is not marked offline, and on each rule that cannot hold.
  type: list
  elements: str
  sample: ["rule web-apart names instances that are not there"]
  returned: success
summary:
  description: The places as a table to read, and why the other groups cannot take an instance.
  type: str
  sample: "1 of 2 instances move in 1 stage, 1000 MiB are copied"
  returned: success
"""
