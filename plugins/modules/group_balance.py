#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action group_balance."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: group_balance
short_description: Balance virtual machines over the nodes of groups
version_added: 1.0.0
description:
  - Plans moves that use the nodes of a group evenly and leave nothing on nodes that are down. Returns the moves, which of them
    may run side by side, and the commands for them. They improve the score of M(bareon.allocator.group_info).
  - It runs on the controller, without a connection to any host, and changes nothing.
  - With O(of=storage) it evens out storages instead of nodes.
  - Copying disks and moving primaries have a price, so that little data is copied for the score. The search first tries single moves,
    then chains of moves that only pay off together, such as exchanges.
  - The goals, in this order, are to start instances that are down with their node, to repair broken limits, to keep N+1, and to lower
    the score as far as that is worth its price.
  - No limit gets worse, neither at the end nor at any point of any order that the plan allows, except for the sake of an earlier goal.
    Limits are memory, disk, CPUs, spindles, exclusion tags, N+1 of mirrored instances and, on shared storage, the instances that would
    find no place if a node failed.
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
  - bareon.allocator.balancing
  - bareon.allocator.parallel
options:
  of:
    description:
      - V(instances) moves instances between nodes. V(storage) moves their disks between storages, so that these are filled evenly and the
        fewest MiB are copied, while instances stay on their nodes; of the options below it supports O(tolerance), O(max_moves) and
        O(max_data).
      - Disks only go to storages that the same nodes reach and that accept their C(content), from external to external and from internal
        to internal ones of the same node. Their instances can then go wherever they could before. Disks count with their whole size.
      - V(storage) needs to know the storage of each disk, from a source of type V(proxmox) or from O(cluster.instances[].disks).
    type: str
    choices: [instances, storage]
    default: instances
  tolerance:
    description:
      - With O(of=storage), how far the used share of a storage may be from even. Storages within it are left alone. Default is V(0.05).
      - Even means that all storages between which disks can move are filled to the same level, as far as immovable disks allow.
    type: float
  groups:
    description:
      - Names or UUIDs of the groups to balance. Default is the group with the worst score that can be improved.
    type: list
    elements: str
  max_groups:
    description: Without O(groups), how many groups are balanced at most, the worst first; groups that cannot be improved do not count.
    type: int
    default: 1
  mode:
    description:
      - V(score) balances by score and price, within all limits.
      - V(htools) makes exactly the moves of C(hbal) of Ganeti 3.0, which always takes the move that leads to the best score. It
        may break N+1 on shared storage, and N+1, CPUs and tags for instances on nodes that are down, and plans to copy disks from these
        nodes.
      - C(hbal) only supports O(score=htools), and its O(min_gain) is V(0.01) by default, but only below a score of 0.1.
    type: str
    choices: [score, htools]
    default: score
  max_moves:
    description: How many moves a group's plan may have. Default is as many as needed.
    type: int
  evacuation:
    description: Whether to move only instances on nodes that are down.
    type: bool
    default: false
  pareto:
    description: Whether to list the results of other data prices, to help choose O(data_price). Each group is then planned several times.
    type: bool
    default: false
  export:
    description: Returns the cluster as it is after the moves, in the named forms, as M(bareon.allocator.group_info) does.
    type: list
    elements: str
    choices: [cluster, ganeti_text]
    default: []
notes:
  - Instances with the disk templates C(plain) and C(file), those that are not to be balanced (C(auto_balance)), and mirrored ones whose
    nodes are both down do not move.
  - A disk counts once for each node that it is copied to. Only the first and the last nodes of a disk count, not those on the way.
seealso:
  - module: bareon.allocator.group_evacuate
    description: Empties nodes at any price.
"""

EXAMPLES = r"""
---
- name: Balance the worst group
  bareon.allocator.group_balance:
    source:
      type: ganeti_text
      path: supercluster.data
  register: balance

- name: Show the moves
  ansible.builtin.debug:
    msg: "{{ balance.summary.split('\\n') }}"

- name: Compare what copying more data would gain in two groups, with at most two moves at a node at a time
  bareon.allocator.group_balance:
    source:
      type: ganeti_text
      path: supercluster.data
    groups: [group-01, group-02]
    max_data: 500 GiB
    max_moves_at_node: 2
    pareto: true
  register: choices

- name: Level measured load by failovers only
  bareon.allocator.group_balance:
    cluster:
      nodes:
        - {name: n1, total_memory: 64 GiB, total_disk: 1 TiB, total_cpus: 16}
        - {name: n2, total_memory: 64 GiB, total_disk: 1 TiB, total_cpus: 16}
      instances:
        - {name: web, memory: 8 GiB, disk: 40 GiB, vcpus: 4, primary: n1, secondary: n2}
        - {name: database, memory: 8 GiB, disk: 40 GiB, vcpus: 4, primary: n1, secondary: n2}
    load:
      web: {cpu: 0.5, memory: 0.2, disk: 0.1, net: 0.9}
      database: {cpu: 2.5, memory: 0.8, disk: 0.7, net: 0.2}
    disk_moves: false

- name: Even out two storages that all nodes reach
  bareon.allocator.group_balance:
    of: storage
    tolerance: 0.1
    cluster:
      nodes:
        - name: n1
          total_memory: 64 GiB
          total_cpus: 16
          storage: &storage
            - {type: external, pool: slow, total: 1000 GiB, free: 100 GiB}
            - {type: external, pool: fast, total: 1000 GiB, free: 900 GiB}
        - {name: n2, total_memory: 64 GiB, total_cpus: 16, storage: *storage}
      instances:
        - name: database
          memory: 8 GiB
          vcpus: 4
          primary: n1
          disk_template: ext
          disks:
            - {name: system, size: 100 GiB, storage: {type: external, pool: slow}, stays: it has snapshots}
            - {name: data, size: 350 GiB, storage: {type: external, pool: slow}}
"""

RETURN = r"""
---
storages:
  description: The storages whose sizes are known, in the order of nodes.
  type: list
  elements: dict
  returned: with O(of=storage)
  contains:
    storage:
      description: Name of the pool.
      type: str
      returned: always
      sample: local-lvm
    type:
      description: V(internal) or V(external).
      type: str
      returned: always
      sample: lvmthin
    nodes:
      description: The nodes that reach the storage.
      type: list
      elements: str
      returned: always
      sample: ["node-0001.example.com"]
    total:
      description: Its size in MiB.
      type: int
      returned: always
      sample: 2
    used_before:
      description: MiB that are used now.
      type: int
      returned: always
      sample: 2
    used_after:
      description: MiB that are used after the moves.
      type: int
      returned: always
      sample: 2
    level_before:
      description: The share that is used now.
      type: float
      returned: always
      sample: 0.5
    level_after:
      description: The share that is used after the moves.
      type: float
      returned: always
      sample: 0.5
stays:
  description: Disks that cannot go to another storage.
  type: list
  elements: dict
  returned: with O(of=storage)
  contains:
    instance:
      description: Name of the instance.
      type: str
      returned: always
      sample: inst-00001.example.com
    disk:
      description: Name of the disk.
      type: str
      returned: always
      sample: scsi0
    storage:
      description: The pool that it is in.
      type: str
      returned: always
      sample: local-lvm
    why:
      description: The reason.
      type: str
      returned: always
      sample: it has snapshots
blocked:
  description: Disks that a better storage would take, but for which no order of moves has the room.
  type: list
  elements: str
  sample: []
  returned: with O(of=storage)
complete:
  description: Whether the plan is proven to be the best. With hundreds of disks, whether at most half a percent less could be copied.
  type: bool
  sample: true
  returned: with O(of=storage)
scores:
  description: All groups that have nodes, the worst score first.
  type: list
  elements: dict
  returned: with O(of=instances)
  contains:
    group:
      description: Name of the group.
      type: str
      returned: always
      sample: "group-01"
    score:
      description: Its score as it is.
      type: float
      returned: always
      sample: 264.1077762499
groups:
  description: The groups that were planned, in the order in which they were chosen.
  type: list
  elements: dict
  returned: with O(of=instances)
  contains:
    group:
      description: Name of the group.
      type: str
      returned: always
      sample: "group-01"
    score_before:
      description: Its score now.
      type: float
      returned: always
      sample: 264.1077762499
    score_after:
      description: Its score after the moves.
      type: float
      returned: always
      sample: 43.22481836485119
    moves:
      description: How many moves there are.
      type: int
      returned: always
      sample: 20
    data:
      description: MiB that are copied.
      type: int
      returned: always
      sample: 839680
    blocked:
      description: Instances that have a better place, but no order of moves gets them there within all limits.
      type: list
      elements: str
      returned: always
      sample: []
    restarts:
      description: Running instances that their moves stop and start again.
      type: list
      elements: str
      returned: always
      sample: ["ct1"]
    offline:
      description: Instances that are still on a node that is down or drained.
      type: list
      elements: str
      returned: always
      sample: ["inst-00006.example.com"]
    down:
      description: Instances that stay down because their node is marked offline.
      type: list
      elements: str
      returned: always
      sample: ["inst-00006.example.com"]
    redundancy:
      description: What node failures would strand on shared storage.
      type: dict
      returned: always
      contains:
        before:
          description: Memory of instances that could not restart, in MiB, summed over the failure of each node.
          type: int
          returned: always
          sample: 0
        after:
          description: The same after the moves.
          type: int
          returned: always
          sample: 0
        worse:
          description: The nodes whose failure strands more than before, with MiB C(before) and C(after).
          type: list
          elements: dict
          returned: always
          contains:
            node:
              description: Name of the node.
              type: str
              returned: always
              sample: node-0001.example.com
            before:
              description: MiB that its failure strands now.
              type: int
              returned: always
              sample: 2
            after:
              description: MiB that it strands after the moves.
              type: int
              returned: always
              sample: 2
        for:
          description: >-
            What improves in return. V(down) are instances that start, V(limits) are limits that were broken; otherwise it is V(score).
          type: list
          elements: str
          returned: always
          sample: ["inst-00006.example.com"]
    refused:
      description: Instances that stay where they should not be, and those that only N+1 on shared storage keeps from a better place.
      type: list
      elements: dict
      returned: always
      contains:
        instance:
          description: Name of the instance.
          type: str
          returned: always
          sample: "inst-00006.example.com"
        reasons:
          description: Why, for each C(node), with the C(limit), how much is C(short) and, where that does not explain it, what it C(says).
          type: list
          elements: dict
          returned: always
          sample: [{"node": "node-0001.example.com", "limit": "redundancy", "short": 37888}]
    complete:
      description: Whether the search finished within O(time_limit).
      type: bool
      returned: always
      sample: true
unfinished:
  description: Groups that were not planned because time ran out.
  type: list
  elements: str
  sample: ["group-03"]
  returned: with O(of=instances)
pareto:
  description:
    - For each group, the plans that no other plan beats in score, data and number of moves at once, the best score first.
    - If one at another price beats the plan at O(data_price), that one is taken.
  type: list
  elements: dict
  returned: when O(pareto) is set
  contains:
    group:
      description: Name of the group.
      type: str
      returned: always
      sample: "group-01"
    price:
      description: The O(data_price) that it was planned with.
      type: float
      returned: always
      sample: 0.0125
    score:
      description: The group's score after it.
      type: float
      returned: always
      sample: 43.224533937329696
    data:
      description: MiB that are copied.
      type: int
      returned: always
      sample: 870400
    moves:
      description: How many moves there are.
      type: int
      returned: always
      sample: 22
    chosen:
      description: Whether RV(plan) is this one.
      type: bool
      returned: always
      sample: true
plan:
  description: The moves together.
  type: dict
  returned: success
  contains:
    score_before:
      description: Score of the whole cluster now; with O(of=storage), by how many MiB storages are too full or too empty, summed up.
      type: float
      returned: always
      sample: 269.353729760533
    score_after:
      description: The same afterwards.
      type: float
      returned: always
      sample: 60.42266688312113
    moves:
      description: All moves, in an order in which each has room.
      type: list
      elements: dict
      returned: always
      contains:
        instance:
          description: Name of the instance.
          type: str
          returned: always
          sample: "inst-00001.example.com"
        kind:
          description: >-
            Of a mirrored instance V(failover), V(replace_secondary), V(replace_and_failover), V(replace_primary),
            V(failover_and_replace) or V(replace_both), after hbal. Of others V(migrate) while it runs, V(restart) if it is stopped for that
            and started again, or V(failover). With O(of=storage), V(move_disk).
          type: str
          returned: always
          sample: "failover_and_replace"
        disk:
          description: For V(move_disk), the name of the disk.
          type: str
          returned: always
          sample: scsi0
        from_storage:
          description: For V(move_disk), the pool that the disk leaves.
          type: str
          returned: always
          sample: local-lvm
        to_storage:
          description: For V(move_disk), the pool that the disk goes to.
          type: str
          returned: always
          sample: fast
        from:
          description: Its nodes before.
          type: list
          elements: str
          returned: always
          sample: ["node-0004.example.com", "node-0003.example.com"]
        to:
          description: Its nodes after.
          type: list
          elements: str
          returned: always
          sample: ["node-0003.example.com", "node-0001.example.com"]
        group:
          description: Its group after.
          type: str
          returned: always
          sample: "group-01"
        data:
          description: MiB that are copied.
          type: int
          returned: always
          sample: 10240
        memory:
          description: MiB of memory that each live migration among the steps sends; 0 without one.
          type: int
          returned: always
          sample: 4096
        steps:
          description: The steps of the move, in order.
          type: list
          elements: dict
          returned: always
          contains:
            kind:
              description: >-
                One of V(migrate), V(failover), V(replace_disks), or V(move_disk), which also has C(disk), C(from_storage), C(to_storage).
              type: str
              returned: always
              sample: "failover"
            from:
              description: The nodes before the step.
              type: list
              elements: str
              returned: always
              sample: ["node-0004.example.com", "node-0003.example.com"]
            to:
              description: The nodes after the step.
              type: list
              elements: str
              returned: always
              sample: ["node-0003.example.com", "node-0004.example.com"]
            node:
              description: The new primary, or for V(replace_disks) the new secondary.
              type: str
              returned: always
              sample: "node-0003.example.com"
            online:
              description: Whether the node that is left is not marked offline.
              type: bool
              returned: always
              sample: true
            command:
              description: The command, in the words of what runs the cluster - C(gnt-instance), C(qm), C(pct), C(ha-manager) or C(virsh).
              type: str
              returned: always
              sample: "gnt-instance failover -f --ignore-consistency inst-00001.example.com"
        after:
          description: Positions of the moves that must be done first.
          type: list
          elements: int
          returned: always
          sample: [0, 1, 2]
        commands:
          description: Commands for this move.
          type: list
          elements: str
          returned: always
          sample: ["gnt-instance failover -f --ignore-consistency inst-00001.example.com"]
    stages:
      description: Positions of moves that may run side by side, stage by stage.
      type: list
      elements: list
      returned: always
      sample: [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14], [15, 16, 17, 18], [19]]
    seconds:
      description:
        - How long the plan takes at least, with O(link_rate), or with O(link_journals) that have long rounds. It is exact where links are
          the bottleneck, all moves of a stage run side by side, and memory does not change on the way.
      type: dict
      returned: with a rate of links
      sample: {stages: [37.3, 9.4], total: 46.7, rate: 110.0, rounds: 0}
      contains:
        stages:
          description: Seconds of each stage.
          type: list
          elements: float
          returned: always
          sample: [37.3, 9.4]
        total:
          description: Seconds of all stages, one after the other.
          type: float
          returned: always
          sample: 46.7
        rate:
          description: What a link takes, in MiB a second in each direction.
          type: float
          returned: always
          sample: 110.0
        rounds:
          description: In how many rounds of earlier plans the rate was measured; V(0) where it is O(link_rate).
          type: int
          returned: always
          sample: 0
    commands:
      description: Commands for all moves, in order, in the words of what runs the cluster. They are to be read; a driver makes its own.
      type: list
      elements: str
      returned: always
      sample: ["gnt-instance failover -f --ignore-consistency inst-00001.example.com"]
    nodes:
      description: The nodes of the groups that the moves touch, for pictures such as P(bareon.allocator.moves_to_html#filter) makes.
      type: list
      elements: dict
      returned: always
      contains:
        node:
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
          description: V(up), V(drained), V(offline) or V(unreachable). A drained node works, but takes nothing new.
          type: str
          returned: always
          sample: "up"
        capacity:
          description: Its memory and disk in MiB, and how many virtual CPUs it may carry.
          type: dict
          returned: always
          sample: {"memory": 98304, "disk": 3145728, "cpus": 96.0}
        before:
          description: >-
            What is used now, as C(memory), C(reserved) for failovers, C(disk), C(cpus), C(load), and how many C(primaries) and
            C(secondaries) there are.
          type: dict
          returned: always
          sample: {"memory": 68608, "reserved": 53248, "disk": 901120}
        after:
          description: The same after the moves.
          type: dict
          returned: always
          sample: {"memory": 87040, "reserved": 49152, "disk": 788480}
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
  description: The groups, the choices and the moves as tables to read.
  type: str
  sample: "1 of 2 instances move in 1 stage, 1000 MiB are copied"
  returned: success
cluster:
  description: The cluster after the moves as plain data, which C(cluster) of all modules of this kind takes.
  type: dict
  sample: {"nodes": [], "instances": [], "groups": []}
  returned: when O(export) contains V(cluster)
ganeti_text:
  description: The cluster after the moves in the text format of Ganeti's htools.
  type: str
  sample: "group-01|uuid-group-01|preferred||\n"
  returned: when O(export) contains V(ganeti_text)
"""
