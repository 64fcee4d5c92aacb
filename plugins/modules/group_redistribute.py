#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action group_redistribute."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: group_redistribute
short_description: Heal groups of nodes with the help of other groups, or level load across groups
version_added: 1.0.0
description:
  - Finds groups that are not healthy and plans moves that heal them. Moves inside a group come first; for the rest, as few instances
    as possible go to other groups that share the storage.
  - A group is not healthy if offline nodes still host instances, if nodes fail N+1, or if instances on shared storage could not
    restart if their node failed.
  - With O(by=load) it compares the load of whole groups with the capacity of their nodes, and plans moves that level the outliers.
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
  by:
    description:
      - The purpose. V(health) heals groups, V(load) levels the measured load of instances.
    type: str
    choices: [health, load]
    default: health
  groups:
    description:
      - Groups to heal, or whose outlying load is levelled, by name or UUID. Others may still take instances. Default is all.
    type: list
    elements: str
  across_groups:
    description:
      - Whether instances may go to other groups at all. If not, only moves inside a group are planned. Only with O(by=health).
    type: bool
    default: true
  tolerance:
    description:
      - How far a group's load, relative to its capacity, may be from that of the whole cluster before it is an outlier. V(0.2) is 20 %.
        Only with O(by=load).
    type: float
    default: 0.2
  min_gain:
    description: The least by which a move must lower the score of loads. Only with O(by=load).
    type: float
    default: 0.001
  max_moves:
    description: The greatest number of instances to move. Only with O(by=load). Default is as many as are worth it.
    type: int
  disk_moves:
    description:
      - Whether instances whose disks must be copied may move, too. Those on shared storage always may. Only with O(by=load).
    type: bool
    default: false
  load:
    description:
      - The measured load of instances by name, as in M(bareon.allocator.group_balance). Instances that are missing keep their load from
        the cluster, which is 1 of each kind by default.
    type: dict
  node_load:
    description:
      - The same for nodes. The rest is divided among their primaries, as in M(bareon.allocator.group_balance).
    type: dict
  time_limit:
    description:
      - Seconds after which the search for ways to heal groups ends, and the plan uses what was found. A program that is being solved
        is finished first. Only with O(by=health). Default is to search to the end.
    type: float
notes:
  - Causes are listed in this order - instances on offline nodes, secondaries on nodes that fail N+1, primaries on them, and others of
    a group in which instances on shared storage could not restart.
  - Only healthy groups take instances, and none of their limits gets worse, including restarts after a node's failure.
  - Instances with the disk templates C(plain) and C(file), and those without any disk that is up, cannot be moved.
seealso:
  - module: bareon.allocator.group_balance
  - module: bareon.allocator.group_compress
  - module: bareon.allocator.group_progress
  - plugin: bareon.allocator.moves_to_html
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Plan to heal all groups
  bareon.allocator.group_redistribute:
    source:
      type: ganeti_text
      path: supercluster.data
  register: healing

- name: Show what is missing where that is not possible
  ansible.builtin.debug:
    msg: "{{ healing.groups | rejectattr('healed') | map(attribute='missing') | flatten }}"

- name: Level the measured load of two groups on shared storage
  bareon.allocator.group_redistribute:
    by: load
    cluster:
      groups:
        - name: left
        - name: right
      nodes:
        - {name: left1, group: left, total_memory: 64 GiB, total_disk: 0, total_cpus: 16}
        - {name: left2, group: left, total_memory: 64 GiB, total_disk: 0, total_cpus: 16}
        - {name: right1, group: right, total_memory: 64 GiB, total_disk: 0, total_cpus: 16}
        - {name: right2, group: right, total_memory: 64 GiB, total_disk: 0, total_cpus: 16}
      instances:
        - name: busy
          memory: 4 GiB
          disk: 20 GiB
          vcpus: 2
          disk_template: rbd
          primary: left1
          load: {cpu: 1.7, memory: 4, disk: 30, net: 12}
        - name: calm
          memory: 4 GiB
          disk: 20 GiB
          vcpus: 2
          disk_template: rbd
          primary: left1
          load: {cpu: 1.6, memory: 4, disk: 28, net: 11}
  register: levelling
  failed_when: levelling.load_score_after >= levelling.load_score_before
"""

RETURN = r"""
---
healthy:
  description: Whether all groups that were asked for are healthy after the plan.
  type: bool
  sample: true
  returned: with O(by=health)
load_score_before:
  description: >-
    How unevenly the groups are loaded now; the sum over CPU, memory, disk and network of the standard deviation of their pressure.
  type: float
  sample: 3.348936283119621
  returned: with O(by=load)
load_score_after:
  description: The same after the plan.
  type: float
  sample: 3.348936283119621
  returned: with O(by=load)
groups:
  description: The problems of each group, and what the plan does about them.
  type: list
  elements: dict
  returned: success
  contains:
    group:
      description: Name of the group.
      type: str
      returned: always
      sample: "group-01"
    healthy:
      description: Whether it has no problems now.
      type: bool
      sample: true
      returned: with O(by=health)
    peers:
      description: Groups whose storage would take at least one of its instances.
      type: list
      elements: str
      sample: ["group-02", "group-03"]
      returned: with O(by=health)
    on_offline_nodes:
      description: Instances with a role on a node that is offline.
      type: list
      elements: str
      sample: ["inst-00001.example.com", "inst-00004.example.com", "inst-00005.example.com"]
      returned: with O(by=health)
    n1_failing:
      description: Nodes that lack memory for failovers of mirrored instances, with the MiB they are C(short).
      type: list
      elements: dict
      sample: [{"node": "node-0001.example.com", "short": 23552}]
      returned: with O(by=health)
    shared_n1_failing:
      description: Nodes whose failure would leave instances on shared storage without a node, with the MiB of those as C(short).
      type: list
      elements: dict
      sample: []
      returned: with O(by=health)
    causes:
      description: >-
        Instances that cause the problems, each with its C(cause), V(offline), V(secondary), V(primary) or V(shared).
      type: list
      elements: dict
      sample: [{"instance": "inst-00001.example.com", "cause": "offline"}]
      returned: with O(by=health)
    healed:
      description: Whether the group is healthy after the plan.
      type: bool
      sample: true
      returned: with O(by=health)
    moved_inside:
      description: Instances that get other nodes of the group.
      type: list
      elements: str
      sample: ["inst-00001.example.com", "inst-00004.example.com", "inst-00007.example.com"]
      returned: with O(by=health)
    moved_out:
      description: Instances that go to other groups.
      type: list
      elements: str
      sample: ["inst-00028.example.com", "inst-00023.example.com", "inst-00029.example.com"]
      returned: with O(by=health)
    fewest:
      description: Whether it is proven that no fewer need to leave.
      type: bool
      sample: true
      returned: with O(by=health)
    complete:
      description: Whether everything was tried within O(time_limit). If not, a longer one may find more.
      type: bool
      sample: true
      returned: with O(by=health)
    remains:
      description: >-
        What is wrong after the plan, as RV(groups[].on_offline_nodes), RV(groups[].n1_failing) and RV(groups[].shared_n1_failing).
      type: dict
      sample: {"on_offline_nodes": [], "n1_failing": [], "shared_n1_failing": []}
      returned: with O(by=health)
    missing:
      description: Where a group is not healed, the instances that would have to leave it, and what every group lacks for them.
      type: list
      elements: dict
      returned: with O(by=health)
      contains:
        instance:
          description: Name of the instance.
          type: str
          returned: always
          sample: inst-00001.example.com
        says:
          description: Why it stays.
          type: str
          returned: always
          sample: it has no place in the group
        groups:
          description: The groups that share its storage.
          type: list
          elements: dict
          returned: always
          contains:
            group:
              description: Name of the group.
              type: str
              returned: always
              sample: group-01
            nearest:
              description: Where the least is missing, and how much, as C(node), C(limit) and C(short).
              type: dict
              returned: always
              sample: {"node": "node-0001.example.com", "short": 600}
            reasons:
              description: Every node's reason, as M(bareon.allocator.group_place) returns it.
              type: list
              elements: dict
              returned: always
              sample: [{"node": "node-0001.example.com", "limit": "memory", "short": 600}]
    load:
      description: Load of all its instances by kind, C(cpu), C(memory), C(disk) and C(net).
      type: dict
      sample: {"cpu": 30.0, "memory": 30.0, "disk": 60.0}
      returned: with O(by=load)
    capacity:
      description: What its online nodes can do, as cores times speed, MiB, spindles and number of nodes.
      type: dict
      sample: {"cpu": 72.0, "memory": 294912.0, "disk": 18.0}
      returned: with O(by=load)
    pressure:
      description: Load relative to capacity, where 1 is that of the whole cluster.
      type: dict
      sample: {"cpu": 2.2916666666666665, "memory": 2.2916666666666665, "disk": 2.2916666666666665}
      returned: with O(by=load)
    outlier:
      description: V(high) when it carries too much of any kind, V(low) when it carries too little of every kind, else null.
      type: str
      sample: "high"
      returned: with O(by=load)
    pressure_after:
      description: RV(groups[].pressure) after the plan.
      type: dict
      sample: {"cpu": 2.2916666666666665, "memory": 2.2916666666666665, "disk": 2.2916666666666665}
      returned: with O(by=load)
    outlier_after:
      description: RV(groups[].outlier) after the plan.
      type: str
      sample: "high"
      returned: with O(by=load)
plan:
  description: The moves, their order and stages, as RV(bareon.allocator.group_balance#module:plan).
  type: dict
  sample: {"score_before": 269.35, "score_after": 198.5, "moves": []}
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
  description: >-
    The problems of each group and what the plan does about them, which instances find no place, and the moves, as tables to read.
  type: str
  sample: "1 of 2 instances move in 1 stage, 1000 MiB are copied"
  returned: success
"""
