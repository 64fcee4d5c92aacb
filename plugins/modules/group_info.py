#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action group_info."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: group_info
short_description: Report scores, capacity and problems of a cluster of virtual machines
version_added: 1.0.0
description:
  - Reads a cluster of nodes and instances (Ganeti, Proxmox VE, or written out) and reports how evenly it is used, what would happen
    if a node failed, and what is wrong with it, for each group and for the whole.
  - It runs on the controller, without a connection to any host, and changes nothing.
  - It reports what Ganeti's C(hinfo) and C(hcheck) print, and also which limit is broken where, and by how much.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.cluster
  - bareon.allocator.tolerant
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
options:
  export:
    description:
      - Forms in which to return the cluster itself as well.
      - RV(cluster) can be given as O(cluster), so that a server is asked only once for many tasks.
      - RV(ganeti_text) is the format of O(source.type=ganeti_text) and of Ganeti's htools. It cannot express storage pools, loads and
        several disks of an instance.
    type: list
    elements: str
    choices: [cluster, ganeti_text]
    default: []
  score:
    description:
      - V(htools) gives the metrics and weights of Ganeti's htools 3.0, equal to those programs' to eight decimals.
      - V(capacity) relates loads to the capacity of each node, leaves nodes without a resource out of its metrics, and computes N+1 from
        the instances, so nodes of different size are compared fairly. With equal nodes both give the same loads.
    type: str
    choices: [htools, capacity]
    default: htools
notes:
  - A node fails N+1 if its free memory is less than the failure of the worst other node would bring to it.
    Instances on shared storage must all be able to restart elsewhere in their group, within memory, CPUs and exclusion tags. If a simple
    arrangement does not show that, integer programming decides.
  - Offline primaries and secondaries are counted as instances. C(hcheck) counts offline nodes for the latter.
  - Ganeti's own N+1 flag, which is taken from reported memory when the cluster is loaded, is what RV(metrics) uses for O(score=htools).
    RV(health) and RV(problems) are always computed from the instances.
  - A forthcoming instance with an unknown number of spindles takes none on a node with exclusive storage. C(hbal) makes the node's free
    spindles -1 instead, which is the only known difference of scores.
seealso:
  - module: bareon.allocator.group_balance
  - module: bareon.allocator.group_capacity
"""

EXAMPLES = r"""
---
- name: Look at a cluster that hbal has saved
  bareon.allocator.group_info:
    source:
      type: ganeti_text
      path: cluster.data
  register: cluster

- name: Show it as a table
  ansible.builtin.debug:
    msg: "{{ cluster.summary.splitlines() }}"

- name: Stop when a failure of a node would leave instances without a place
  ansible.builtin.assert:
    that: cluster.health.n1_fail + cluster.health.gn1_fail == 0

- name: Ask a running cluster
  bareon.allocator.group_info:
    source:
      type: ganeti_rapi
      url: https://cluster.example.com:5080
      username: reader
      password: "{{ rapi_password }}"

- name: Ask it once, and keep it for Ganeti's own programs
  bareon.allocator.group_info:
    source:
      type: ganeti_rapi
      url: https://cluster.example.com:5080
    export: [cluster, ganeti_text]
  register: asked

- name: Look at the same cluster by the other score
  bareon.allocator.group_info:
    cluster: "{{ asked.cluster }}"
    score: capacity

- name: Write it for hbal
  ansible.builtin.copy:
    content: "{{ asked.ganeti_text }}"
    dest: /tmp/cluster.data
    mode: "0644"

- name: Look at a cluster written out here
  bareon.allocator.group_info:
    score: capacity
    cluster:
      nodes:
        - {name: node1, total_memory: 64 GiB, total_disk: 1 TiB, total_cpus: 16}
        - {name: node2, total_memory: 128 GiB, total_disk: 2 TiB, total_cpus: 32}
      instances:
        - {name: web, memory: 8 GiB, disk: 40 GiB, vcpus: 4, primary: node1, secondary: node2}
        - {name: db, memory: 32 GiB, disk: 200 GiB, vcpus: 8, primary: node2, secondary: node1}
"""

RETURN = r"""
---
score:
  description: The weighted sum of the metrics of the whole cluster. Lower is better.
  type: float
  returned: success
  sample: 12.7610216
score_mode:
  description: The O(score) that it was computed with.
  type: str
  returned: success
  sample: htools
metrics:
  description: Every metric of the whole cluster.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: Name of the metric, as htools calls it.
      type: str
      returned: always
      sample: free_mem_cv
    weight:
      description: The factor of its value.
      type: float
      returned: always
      sample: 0.5
    value:
      description: Its value.
      type: float
      returned: always
      sample: 0.12625658
health:
  description: Counts of problems in the whole cluster.
  type: dict
  returned: success
  contains:
    healthy:
      description: Whether all counts are 0.
      type: bool
      returned: always
      sample: false
    n1_fail:
      description: Nodes that fail N+1.
      type: int
      returned: always
      sample: 1
    conflict_tags:
      description: Nodes with several instances of the same exclusion tag.
      type: int
      returned: always
      sample: 0
    offline_pri:
      description: Instances whose primary is offline.
      type: int
      returned: always
      sample: 11
    offline_sec:
      description: Instances whose secondary is offline.
      type: int
      returned: always
      sample: 4
    gn1_fail:
      description: Nodes whose instances on shared storage could not all restart elsewhere.
      type: int
      returned: always
      sample: 0
    tolerance:
      description: Sets of nodes, counted by the first of each, whose instances find no place when they fail together as O(tolerate) says.
      type: int
      sample: 1
      returned: when there are any
    rules:
      description: Nodes where a rule is broken.
      type: int
      sample: 2
      returned: when there are any
    hardware:
      description: Nodes with instances that they cannot run.
      type: int
      sample: 2
      returned: when there are any
    unreachable:
      description: Nodes that do not answer and are not marked offline.
      type: int
      sample: 2
      returned: when there are any
    policy:
      description: Instances outside the policy of their group.
      type: int
      returned: always
      sample: 0
    pool:
      description: Instances on nodes that do not reach their storage pool.
      type: int
      returned: always
      sample: 0
    cpus:
      description: Nodes with more virtual CPUs than the policy of their group allows.
      type: int
      sample: 2
      returned: when there are any
    spindle_use:
      description: Nodes with more spindle use than the policy of their group allows.
      type: int
      sample: 2
      returned: when there are any
    memory:
      description: Nodes whose instances have more memory than there is.
      type: int
      sample: 2
      returned: when there are any
groups:
  description: Each group with C(name), C(uuid), C(alloc_policy), C(tags), C(score), RV(ignore:metrics) and C(health) as above.
  type: list
  elements: dict
  returned: success
  contains:
    nodes:
      description: How many nodes it has.
      type: int
      returned: always
      sample: 4
    offline:
      description: How many of them are not up.
      type: int
      returned: always
      sample: 1
    instances:
      description: How many instances live in it.
      type: int
      returned: always
      sample: 30
    capacity:
      description: C(total) and C(free) of C(memory) and C(disk) in MiB, and of C(cpus), which are virtual CPUs that the policy allows.
      type: dict
      returned: always
      sample: {"memory": {"total": 294912, "free": 154624}}
    failures:
      description:
        - What happens when nodes fail together as O(tolerate) says, the worst 20 sets first. Without O(tolerate) the domains of Ganeti's
          location tags (C(htools:nlocation:NAME)) are reported.
      type: list
      elements: dict
      returned: always
      contains:
        nodes:
          description: The nodes.
          type: list
          elements: str
          returned: always
          sample: ["node-0002.example.com", "node-0003.example.com"]
        short:
          description: MiB of their instances that find no place, on shared storage or for lack of memory on secondaries.
          type: int
          returned: always
          sample: 13312
        stranded:
          description: The instances on shared storage among them.
          type: list
          elements: str
          returned: always
          sample: ["inst-00006.example.com"]
        lost:
          description: Mirrored instances both of whose nodes are among the nodes.
          type: list
          elements: str
          returned: always
          sample: ["inst-00018.example.com", "inst-00022.example.com"]
        proven:
          description: Whether it is proven that no less would be stranded.
          type: bool
          returned: always
          sample: true
    shared:
      description: For each storage pool that instances of the group share, what the worst failure of a node would do.
      type: list
      elements: dict
      returned: always
      contains:
        pool:
          description: The pool, or V(null) for storage that every node reaches.
          type: str
          returned: always
          sample: ceph/rbd
        instances:
          description: How many running instances use it.
          type: int
          returned: always
          sample: 2
        worst_node:
          description: The node whose failure strands most memory.
          type: str
          returned: always
          sample: node-0001.example.com
        needed:
          description: Memory of that node's instances on the pool, in MiB.
          type: int
          returned: always
          sample: 2
        short:
          description: Memory of those of them that could not restart, in MiB.
          type: int
          returned: always
          sample: 600
        proven:
          description: Whether no arrangement strands less.
          type: bool
          returned: always
          sample: true
nodes:
  description: Each node with the values that C(hinfo) prints. Sizes in MiB.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: Name of the node.
      type: str
      returned: always
      sample: "node-0001.example.com"
    group:
      description: Its group.
      type: str
      returned: always
      sample: "group-01"
    offline:
      description: Whether it takes no instances because it is not up.
      type: bool
      returned: always
      sample: true
    state:
      description: >-
        V(up), V(drained), V(offline) or V(unreachable). A drained node works, but takes nothing new, and everything should leave it. One
        that is unreachable does not answer, and nobody has marked it offline, so that its instances may still run.
      type: str
      returned: always
      sample: "up"
    master:
      description: Whether it is the master.
      type: bool
      returned: always
      sample: true
    n1_fails:
      description: Whether it fails N+1.
      type: bool
      returned: always
      sample: true
    n1_short:
      description: How much memory it lacks for N+1.
      type: int
      returned: always
      sample: 23552
    total_memory:
      description: All memory.
      type: int
      returned: always
      sample: 98304
    node_memory:
      description: Memory the node itself uses.
      type: int
      returned: always
      sample: 1024
    instance_memory:
      description: Memory of the running instances.
      type: int
      returned: always
      sample: 67584
    missing_memory:
      description: Memory that should be free but is not reported so; negative when more is free.
      type: int
      returned: always
      sample: 0
    free_memory:
      description: Memory reported as free.
      type: int
      returned: always
      sample: 29696
    unallocated_memory:
      description: Memory that can be given to instances.
      type: int
      returned: always
      sample: 29696
    reserved_memory:
      description: Memory kept for failovers.
      type: int
      returned: always
      sample: 53248
    total_disk:
      description: All internal storage.
      type: int
      returned: always
      sample: 3145728
    free_disk:
      description: The free part.
      type: int
      returned: always
      sample: 2244608
    total_cpus:
      description: Physical CPUs.
      type: float
      returned: always
      sample: 24.0
    used_cpus:
      description: Virtual CPUs in use.
      type: int
      returned: always
      sample: 14
    primaries:
      description: Instances that live here.
      type: int
      returned: always
      sample: 8
    secondaries:
      description: Instances mirrored here.
      type: int
      returned: always
      sample: 12
    load:
      description: Sum of the loads C(cpu), C(memory), C(disk) and C(net).
      type: dict
      returned: always
      sample: {"cpu": 8.0, "memory": 8.0, "disk": 20.0}
pools:
  description: Each storage pool that a node names. Sizes in MiB, V(null) where unknown.
  type: list
  elements: dict
  returned: success
  contains:
    pool:
      description: Kind and name.
      type: str
      returned: always
      sample: external/san
    nodes:
      description: Nodes that reach it.
      type: list
      elements: str
      returned: always
      sample: ["node-0001.example.com"]
    groups:
      description: Their groups.
      type: list
      elements: str
      returned: always
      sample: ["group-01"]
    instances:
      description: How many instances use it.
      type: int
      returned: always
      sample: 2
    total:
      description: Its size; for internal pools, the sum over all nodes.
      type: int
      returned: always
      sample: 2
    free:
      description: What is free.
      type: int
      returned: always
      sample: 2
problems:
  description: Every problem.
  type: list
  elements: dict
  returned: success
  contains:
    kind:
      description: >-
        One of V(unreachable), V(offline_primary), V(offline_secondary), V(n1), V(shared_n1), V(tolerance), V(tags), V(rule), V(hardware),
        V(policy), V(pool), V(cpus), V(spindle_use), V(memory), V(split), V(missing_memory), V(missing_disk).
      type: str
      returned: always
      sample: "offline_primary"
    group:
      description: Group it is in.
      type: str
      returned: always
      sample: "group-01"
    node:
      description: Node it is on.
      type: str
      returned: always
      sample: "node-0004.example.com"
    instance:
      description: Instance it concerns, V(null) for a problem of the node.
      type: str
      returned: always
      sample: "inst-00001.example.com"
    short:
      description: By how much a limit is broken, in MiB, CPUs, spindles or tags.
      type: float
      returned: always
      sample: 23552
    says:
      description: The problem in a sentence.
      type: str
      returned: always
      sample: "inst-00001.example.com lives on node-0004.example.com, which is offline"
wishes:
  description: Rules that are not strict and do not hold. They are no problems.
  type: list
  elements: dict
  returned: success
  contains:
    rule:
      description: Name of the rule, or of all that say the same of the nodes.
      type: str
      returned: always
      sample: web-apart
    weight:
      description: Its weight.
      type: float
      returned: always
      sample: 0.5
    count:
      description: Instances that are not where it wants them.
      type: float
      returned: always
      sample: 0.5
    points:
      description: What that adds to the score.
      type: float
      returned: always
      sample: 0.5
    says:
      description: The same in a sentence.
      type: str
      returned: always
      sample: it has no place in the group
cluster:
  description: The cluster in the form of O(cluster).
  type: dict
  sample: {"nodes": [], "instances": [], "groups": []}
  returned: with O(export)
ganeti_text:
  description: The cluster in the text format of Ganeti's htools.
  type: str
  sample: "group-01|uuid-group-01|preferred||\n"
  returned: with O(export)
summary:
  description: The same as tables to read, for C(debug).
  type: str
  sample: "1 of 2 instances move in 1 stage, 1000 MiB are copied"
  returned: success
"""
