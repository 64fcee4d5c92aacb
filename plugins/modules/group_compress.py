#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action group_compress."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: group_compress
short_description: Find groups of nodes that could be emptied, and plan how
version_added: 1.0.0
description:
  - After many instances are gone, no group may be empty, although the others have room for all instances of one of them. Says which
    groups could be emptied and why the others could not, and plans the moves that empty the group that reclaims most, or a named one.
  - It runs on the controller, without a connection to any host, and changes nothing.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.cluster
  - bareon.allocator.cluster.link
  - bareon.allocator.tolerant
  - bareon.allocator.cluster.turns
  - bareon.allocator.cluster.only
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
  - bareon.allocator.scored
  - bareon.allocator.parallel
options:
  groups:
    description:
      - Groups that may be emptied, by name or UUID. Default is all. Others may still take instances.
    type: list
    elements: str
  group:
    description:
      - The group to empty. If that is not possible, the task fails, and RV(conflict) has what RV(candidates) would have.
      - Mutually exclusive with O(groups).
    type: str
notes:
  - A group is a candidate if others share storage with it and have enough free memory, disk and CPUs for its instances. The module then
    looks for places for all of them.
  - No limit of the groups that take instances gets worse, including restarts after a node's failure.
  - Groups that are already empty are listed as such, but not chosen.
seealso:
  - module: bareon.allocator.group_redistribute
  - module: bareon.allocator.group_evacuate
  - plugin: bareon.allocator.moves_to_html
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: See which groups could be emptied
  bareon.allocator.group_compress:
    source:
      type: ganeti_text
      path: supercluster.data
  register: compression

- name: Show them
  ansible.builtin.debug:
    msg: "{{ compression.candidates | items2dict(key_name='group', value_name='says') }}"

- name: Plan to empty one of them
  bareon.allocator.group_compress:
    source:
      type: ganeti_text
      path: supercluster.data
    group: group-03
  register: emptying
  failed_when: emptying.plan.moves | length == 0
"""

RETURN = r"""
---
candidates:
  description: The groups that were asked for.
  type: list
  elements: dict
  returned: success
  contains:
    group:
      description: Name of the group.
      type: str
      returned: always
      sample: "group-01"
    possible:
      description: Whether it can be emptied, or is empty.
      type: bool
      returned: always
      sample: true
    says:
      description: What it takes, or what is in the way, in words.
      type: str
      returned: always
      sample: "it can be emptied by 30 moves"
    instances:
      description: How many instances it carries.
      type: int
      returned: always
      sample: 30
    used:
      description: What they use, as C(memory) and C(disk) in MiB and C(cpus).
      type: dict
      returned: always
      sample: {"memory": 231424, "disk": 2437120, "cpus": 58}
    free:
      description: What its online nodes have free.
      type: dict
      returned: always
      sample: {"memory": 154624, "disk": 7645184, "cpus": 250}
    reclaims:
      description: Its free memory, disk and CPUs, each as a share of the cluster's, added up. The group with the highest sum is chosen.
      type: float
      returned: always
      sample: 0.6006747159090909
    moves:
      description: How many moves empty it.
      type: int
      returned: always
      sample: 30
    data:
      description: MiB that they copy.
      type: int
      returned: always
      sample: 2437120
    reasons:
      description: Why it is no candidate, as C(limit), C(short) and C(says).
      type: list
      elements: dict
      returned: always
      sample: [{"node": "node-0001.example.com", "limit": "memory", "short": 600}]
    unplaced:
      description: Instances that find no place, in the form of C(missing) of M(bareon.allocator.group_redistribute).
      type: list
      elements: dict
      returned: always
      sample: ["inst-00006.example.com"]
emptied:
  description: The group that the plan empties, or null.
  type: str
  sample: "group-03"
  returned: success
plan:
  description: The moves, their order and stages, as RV(bareon.allocator.group_balance#module:plan).
  type: dict
  sample: {"score_before": 269.35, "score_after": 198.5, "moves": []}
  returned: success
conflict:
  description: Why a named group cannot be emptied, as C(candidates).
  type: dict
  sample: {"says": "the groups exclude each other"}
  returned: when O(group) cannot be emptied
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
  description: Which groups can be emptied and what that copies, and the moves, as tables to read.
  type: str
  sample: "1 of 2 instances move in 1 stage, 1000 MiB are copied"
  returned: success
"""
