#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action group_capacity."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: group_capacity
short_description: Count how many more virtual machines of a size fit
version_added: 1.0.0
description:
  - Counts how many more instances of a size fit into each group of nodes, and into all groups that take instances. Says what keeps the
    next one out, and how many nodes must be added to fit a wanted number.
  - On request it also counts in tiers - as many as possible of the largest size that the policy allows, then of smaller and smaller
    ones.
  - It runs on the controller, without a connection to any host, and changes nothing.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.cluster
  - bareon.allocator.tolerant
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
  - bareon.allocator.parallel
options:
  spec:
    description:
      - The size to count, with keys as in O(cluster.instances), such as C(memory), C(disk), C(vcpus), C(disk_template), C(storage),
        C(tags) and C(spindle_use). What is left out is taken from the cluster's policy, its standard size and its first disk template.
    type: dict
  tiered:
    description:
      - Whether to count in tiers, too. They begin with the largest size of each interval of the cluster's policy, with what O(spec)
        gives in its place, and shrink by 64 MiB of memory, 256 MiB of disk, a CPU or a spindle.
    type: bool
    default: false
  want:
    description:
      - How many instances should fit into a group. The result then says for each group how many nodes to add, and how many it takes at
        least.
    type: int
  groups:
    description:
      - Groups to count in, by name or UUID. Default is all.
    type: list
    elements: str
  strategy:
    description:
      - How a place in a group is chosen, as in M(bareon.allocator.group_place).
    type: str
    choices: [auto, balanced, partitioned]
    default: auto
  score:
    description:
      - V(capacity) counts as many as fit, and fills nodes to the last MiB. Mirrored copies are placed by both scores, others by free
        memory.
      - V(htools) counts exactly like Ganeti's C(hspace). One MiB of each node stays free, and copies are placed by the score of the whole
        cluster, or by free memory where more can restart then.
    type: str
    choices: [htools, capacity]
    default: capacity
notes:
  - Existing problems do not lower the count. Broken limits must not get worse, and a group in trouble does not lower the count of other
    groups, whereas C(hspace) then answers 0 for all of them.
  - N+1 is kept. No copy is counted that would leave more instances on shared storage without a node when a node fails.
  - A size that needs no resource of a node is refused, since any number would fit.
seealso:
  - module: bareon.allocator.group_info
  - module: bareon.allocator.group_place
"""

EXAMPLES = r"""
---
- name: Count what still fits
  bareon.allocator.group_capacity:
    source:
      type: ganeti_text
      path: supercluster.data
    spec: {memory: 4 GiB, disk: 40 GiB, vcpus: 2, disk_template: drbd}
    want: 60
  register: capacity

- name: Show it by group, with what to add for 60 in each
  ansible.builtin.debug:
    msg: "{{ item.group }}: {{ item.count }}; add {{ item.add.nodes }} nodes like {{ item.add.like }}"
  loop: "{{ capacity.groups }}"
  loop_control:
    label: "{{ item.group }}"

- name: Count in tiers as hspace does
  bareon.allocator.group_capacity:
    source:
      type: ganeti_text
      path: supercluster.data
    score: htools
    tiered: true
    groups: [group-02]
"""

RETURN = r"""
---
spec:
  description: The size that was counted, as C(memory) and C(disk) in MiB, C(vcpus) and C(disk_template).
  type: dict
  sample: {"memory": 4096, "disk": 10240, "vcpus": 2}
  returned: success
count:
  description: How many fit into all groups that take new instances, together.
  type: int
  sample: 113
  returned: success
groups:
  description: The groups, each alone.
  type: list
  elements: dict
  returned: success
  contains:
    group:
      description: Name of the group.
      type: str
      returned: always
      sample: "group-01"
    alloc_policy:
      description: Its allocation policy. RV(count) leaves groups out that are V(unallocable).
      type: str
      returned: always
      sample: "preferred"
    count:
      description: How many fit.
      type: int
      returned: always
      sample: 8
    limits:
      description: >-
        The limits that keep the next one out, each with the number of nodes, or pairs of nodes for mirrored instances, where it does.
      type: dict
      returned: always
      sample: {"redundancy": 6}
    nodes:
      description: Number of new primaries by node.
      type: dict
      returned: always
      sample: {"node-0002.example.com": 3, "node-0003.example.com": 5}
    allocations:
      description: >-
        For a group that is given away in parts, how many of the smallest instance of each interval of its policy still fit on its
        nodes, the largest disk first.
      type: list
      elements: dict
      sample: [{"consumer": "new-1", "allocations": {}}]
      returned: when the strategy is partitioned
    tiers:
      description: As RV(tiers), for this group alone.
      type: list
      elements: dict
      sample: [{"spec": {"memory": 4096, "disk": 10240, "vcpus": 2, "disk_template": "drbd"}, "count": 8}]
      returned: with O(tiered=true)
    add:
      description: What to add so that O(want) fit.
      type: dict
      returned: with O(want)
      contains:
        nodes:
          description: How many nodes are enough, or null if no number would be.
          type: int
          returned: where a number of nodes is enough
          sample: 92
        least:
          description:
            - How many nodes it takes at least, by the sums of what nodes have. Where it is less than RV(groups[].add.nodes), a number in
              between may be enough, too.
          type: int
          returned: where a number of nodes is enough
          sample: 87
        like:
          description: The node that they are like, one of the group's most common kind. Null for a group without nodes.
          type: str
          returned: where a number of nodes is enough
          sample: "node-0001.example.com"
        each:
          description: What such a node has, as C(memory), C(disk) and C(cpus); null like RV(groups[].add.like).
          type: dict
          returned: where a number of nodes is enough
          sample: {"memory": 98304, "disk": 3145728, "cpus": 24.0}
        count:
          description: How many instances fit with them, up to O(want).
          type: int
          returned: where a number of nodes is enough
          sample: 2000
tiered_count:
  description: How many fit in tiers, all sizes together.
  type: int
  sample: 121
  returned: with O(tiered=true)
tiers:
  description: The sizes, largest first, each with its C(spec) and C(count).
  type: list
  elements: dict
  sample: [{"spec": {"memory": 4096, "disk": 10240, "vcpus": 2, "disk_template": "drbd"}, "count": 113}]
  returned: with O(tiered=true)
notes:
  description: A sentence on each node that does not answer and is not marked offline, and on each rule that cannot hold.
  type: list
  elements: str
  sample: ["rule web-apart names instances that are not there"]
  returned: success
summary:
  description: How many fit, what keeps the next one out of each group, and what to add, as a table to read.
  type: str
  sample: "1 of 2 instances move in 1 stage, 1000 MiB are copied"
  returned: success
"""
