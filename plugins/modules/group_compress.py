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
    possible:
      description: Whether it can be emptied, or is empty.
      type: bool
    says:
      description: What it takes, or what is in the way, in words.
      type: str
    instances:
      description: How many instances it carries.
      type: int
    used:
      description: What they use, as C(memory) and C(disk) in MiB and C(cpus).
      type: dict
    free:
      description: What its online nodes have free.
      type: dict
    reclaims:
      description: Its free memory, disk and CPUs, each as a share of the cluster's, added up. The group with the highest sum is chosen.
      type: float
    moves:
      description: How many moves empty it.
      type: int
    data:
      description: MiB that they copy.
      type: int
    reasons:
      description: Why it is no candidate, as C(limit), C(short) and C(says).
      type: list
      elements: dict
    unplaced:
      description: Instances that find no place, in the form of C(missing) of M(bareon.allocator.group_redistribute).
      type: list
      elements: dict
emptied:
  description: The group that the plan empties, or null.
  type: str
  returned: success
plan:
  description: The moves, their order and stages, as RV(bareon.allocator.group_balance#module:plan).
  type: dict
  returned: success
conflict:
  description: Why a named group cannot be emptied, as C(candidates).
  type: dict
  returned: when O(group) cannot be emptied
notes:
  description: A sentence on each node that does not answer and is not marked offline, and on each rule that cannot hold.
  type: list
  elements: str
  returned: success
left_out:
  description: How many instances are left out by each reason, such as V(rule), V(ha), V(local_disks), V(unreachable) or V(auto_balance).
  type: dict
  returned: success
summary:
  description: Which groups can be emptied and what that copies, and the moves, as tables to read.
  type: str
  returned: success
"""
