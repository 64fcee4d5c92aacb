#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action group_maintenance."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: group_maintenance
short_description: Plan rolling maintenance of nodes, in sets that may be down together
version_added: 1.0.0
description:
  - Divides nodes into as few sets as possible, each of which may be down together without losing anything. Returns the moves that empty
    each set first, with their commands, and the way back.
  - While nodes are down, mirrored instances run on their secondaries, and those on shared storage on other nodes of their group that
    reach the storage.
  - It runs on the controller, without a connection to any host, and changes nothing.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.cluster
  - bareon.allocator.cluster.link
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
options:
  nodes:
    description:
      - Nodes to maintain. Default is all that are neither offline nor drained. Offline nodes are always left out; a drained one, for
        example by HA's maintenance mode of Proxmox VE, is included if you name it.
    type: list
    elements: str
  groups:
    description:
      - Only nodes of these groups, by name or UUID.
    type: list
    elements: str
  node_tags:
    description:
      - Only nodes with at least one of these tags.
    type: list
    elements: str
  offline_maintenance:
    description:
      - Whether instances are shut down together with their primary. Then nothing moves, and only one copy of all disks must stay up.
    type: bool
    default: false
  full_evacuation:
    description:
      - Whether secondaries leave the nodes, too, so that they are empty. This copies disks, and keeps N+1, CPUs and tags.
    type: bool
    default: false
  non_redundant:
    description:
      - What to do with instances whose disks are on one node only, with the disk templates C(plain) and C(file).
      - V(move) copies them to another node first. V(skip) leaves out nodes that have any. V(ignore) lets them go down with their node.
    type: str
    choices: [move, skip, ignore]
    default: move
  max_nodes:
    description: The greatest number of nodes in a set.
    type: int
notes:
  - Maintain one set after the other, and bring its instances back before the next. The largest set comes first. The set with the master
    comes last, and the master is the last node in it.
  - Memory, disk, storage pools, physical spindles and strict rules are kept at any time, and no instance fails over to a node that cannot
    run it; a rule that is broken already keeps no node from maintenance. If there is no other way, N+1, CPUs and exclusion tags may
    break while nodes are down; that is the case for which N+1 keeps memory free.
  - Ganeti's C(hroller) treats instances on shared storage as lost with their node, and never lets two primaries with a common secondary
    be down together, even when that has the memory for both.
seealso:
  - module: bareon.allocator.group_evacuate
  - module: bareon.allocator.group_progress
"""

EXAMPLES = r"""
---
- name: Plan to restart all nodes
  bareon.allocator.group_maintenance:
    source:
      type: ganeti_text
      path: supercluster.data
  register: rollout

- name: Show the sets
  ansible.builtin.debug:
    msg: "{{ rollout.sets | map(attribute='nodes') }}"

- name: Plan to replace hardware of one group, two nodes at a time, with everything away from them
  bareon.allocator.group_maintenance:
    source:
      type: ganeti_text
      path: supercluster.data
    groups: [group-02]
    full_evacuation: true
    max_nodes: 2
"""

RETURN = r"""
---
sets:
  description: Sets of nodes, in the order in which they are maintained.
  type: list
  elements: dict
  returned: success
  contains:
    nodes:
      description: The nodes, the master last.
      type: list
      elements: str
      returned: always
      sample: ["node-0005.example.com", "node-0007.example.com", "node-0009.example.com"]
    plan:
      description: The moves that empty them first, as a plan of M(bareon.allocator.group_evacuate).
      type: dict
      returned: always
      sample: {"score_before": 269.353729760533}
    carried:
      description: >-
        Instances with disks on one node that are copied to another, each with C(instance), C(from), C(to), C(data) and C(commands).
      type: list
      elements: dict
      returned: always
      sample: []
    back:
      description: >-
        A plan that brings what RV(sets[].plan) moves back when the nodes are up again, but for what would go to another drained node,
        or to where a rule does not want it.
      type: dict
      returned: always
      sample: {"score_before": 271.1372225718576}
left_out:
  description: Nodes that cannot be down even by themselves, each with the C(instance) that prevents it and the reason in C(says).
  type: list
  elements: dict
  sample: [{"node": "node-0001.example.com", "instance": "inst-00006.example.com", "says": "it has no other node"}]
  returned: success
notes:
  description: A sentence on each node that does not answer and is not marked offline, and on each rule that cannot hold.
  type: list
  elements: str
  sample: ["rule web-apart names instances that are not there"]
  returned: success
summary:
  description: The sets of nodes with what is moved away and back, as a table to read, and which instances keep nodes out of them.
  type: str
  sample: "1 of 2 instances move in 1 stage, 1000 MiB are copied"
  returned: success
"""
