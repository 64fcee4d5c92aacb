#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action group_evacuate."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: group_evacuate
short_description: Find new places for the virtual machines of nodes
version_added: 1.0.0
description:
  - Plans moves that empty nodes, or take instances away from their nodes, inside their group and, on request, to other groups. Returns
    the moves, which of them may run side by side, and the commands for them.
  - It runs on the controller, without a connection to any host, and changes nothing.
  - If moving the instances one by one leaves any out, an integer program places as many as possible of the most important ones, running
    instances first. For each instance that stays, the result has the reasons.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.cluster
  - bareon.allocator.cluster.link
  - bareon.allocator.tolerant
  - bareon.allocator.cluster.turns
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
  - bareon.allocator.scored
options:
  nodes:
    description:
      - Nodes to empty. Default is all nodes that are not up, or those in the request of an IAllocator message.
      - Mutually exclusive with O(instances).
    type: list
    elements: str
  instances:
    description:
      - Instances that leave their nodes. If all of them have a node in common, they leave only that one.
    type: list
    elements: str
  mode:
    description:
      - V(primary) moves the primaries away, by failover where that is enough. V(secondary) replaces the secondaries. V(all) does both.
    type: str
    choices: [primary, secondary, all]
    default: all
  across_groups:
    description:
      - V(false) keeps every instance in its group. V(true) uses other groups for instances that find no room in their own. V(only) moves
        all of them to other groups.
      - The first two may be given as a boolean.
    type: str
    choices: ["false", "true", only]
    default: "false"
notes:
  - Moves that copy the fewest disks are preferred, and among these the moves that lead to the best score.
  - Only the nodes to empty are avoided, not those that happen to hold the other mirror of one of the instances.
  - In a group that an instance goes to, the failure of any other node must not strand more memory of instances on shared storage than
    before. No such reserve is kept for the nodes that are emptied.
  - The commands in RV(bareon.allocator.group_balance#module:plan.commands) are in the words of what runs the cluster.
  - If no other place is left, an instance whose primary is down may be started where that breaks N+1, CPUs or exclusion tags.
    It is then marked as C(relaxed).
  - Instances with the disk templates C(plain) and C(file) cannot be moved.
seealso:
  - module: bareon.allocator.group_maintenance
  - module: bareon.allocator.group_place
  - module: bareon.allocator.group_progress
  - plugin: bareon.allocator.moves_to_html
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Plan to empty a node
  bareon.allocator.group_evacuate:
    source:
      type: ganeti_text
      path: cluster.data
    nodes: [node3.example.com]
    across_groups: true
  register: evacuation
  failed_when: evacuation.unplaced | length > 0

- name: Show the commands
  ansible.builtin.debug:
    msg: "{{ evacuation.plan.commands }}"

- name: Fail over what lives on dead nodes
  bareon.allocator.group_evacuate:
    source:
      type: ganeti_rapi
      url: https://cluster.example.com:5080
    mode: primary
"""

RETURN = r"""
---
placed:
  description: Instances that move, in an order in which they can.
  type: list
  elements: dict
  returned: success
  contains:
    instance:
      description: Name of the instance.
      type: str
      returned: always
      sample: "inst-00003.example.com"
    group:
      description: The group it is in afterwards.
      type: str
      returned: always
      sample: "group-01"
    nodes:
      description: The primary, and the secondary if it has one, afterwards.
      type: list
      elements: str
      returned: always
      sample: ["node-0002.example.com", "node-0003.example.com"]
    moves:
      description: Its moves, as in RV(bareon.allocator.group_balance#module:plan.moves).
      type: list
      elements: dict
      returned: always
      sample: []
    relaxed:
      description: Whether N+1, CPUs or tags break at the new place.
      type: bool
      returned: always
      sample: true
unplaced:
  description: Instances that stay.
  type: list
  elements: dict
  returned: success
  contains:
    instance:
      description: Name of the instance.
      type: str
      returned: always
      sample: "inst-00002.example.com"
    reasons:
      description: What prevents it on each node, as M(bareon.allocator.group_place) returns it.
      type: list
      elements: dict
      returned: always
      sample: [{"node": "node-0002.example.com", "limit": "redundancy", "short": 27648}]
plan:
  description: The moves together, in an order in which each has room, as RV(bareon.allocator.group_balance#module:plan).
  type: dict
  sample: {"score_before": 269.35, "score_after": 198.5, "moves": []}
  returned: success
restarts:
  description: Instances that run, and are stopped and started again because they cannot be moved while they run, as containers.
  type: list
  elements: str
  sample: ["ct1"]
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
  description: The moves as a table, stage by stage, which instances are restarted, and why instances stay.
  type: str
  sample: "1 of 2 instances move in 1 stage, 1000 MiB are copied"
  returned: success
"""
