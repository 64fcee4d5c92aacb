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
  - bareon.allocator.planning
  - bareon.allocator.scored
options:
  nodes:
    description:
      - Nodes to empty. Default is all nodes that are offline or drained, or those in the request of an IAllocator message.
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
  - The commands in RV(plan.commands) are those of Ganeti, whatever the cluster is.
  - If no other place is left, an instance whose primary is down may be started where that breaks N+1, CPUs or exclusion tags.
    It is then marked as C(relaxed).
  - Instances with the disk templates C(plain) and C(file) cannot be moved.
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
    group:
      description: The group it is in afterwards.
      type: str
    nodes:
      description: The primary, and the secondary if it has one, afterwards.
      type: list
      elements: str
    moves:
      description: Its moves, as in RV(plan.moves).
      type: list
      elements: dict
    relaxed:
      description: Whether N+1, CPUs or tags break at the new place.
      type: bool
unplaced:
  description: Instances that stay.
  type: list
  elements: dict
  returned: success
  contains:
    instance:
      description: Name of the instance.
      type: str
    reasons:
      description: What is in the way on each node, as M(bareon.allocator.group_place) returns it.
      type: list
      elements: dict
plan:
  description: The moves together.
  type: dict
  returned: success
  contains:
    score_before:
      description: Score of the whole cluster now.
      type: float
    score_after:
      description: Score of the whole cluster afterwards.
      type: float
    moves:
      description: All moves, in an order in which each has room.
      type: list
      elements: dict
      contains:
        instance:
          description: Name of the instance.
          type: str
        kind:
          description: >-
            One of V(failover), V(failover_to_any), V(replace_secondary), V(replace_and_failover), V(replace_primary),
            V(failover_and_replace), V(replace_both).
          type: str
        from:
          description: Its nodes before.
          type: list
          elements: str
        to:
          description: Its nodes after.
          type: list
          elements: str
        group:
          description: Its group after.
          type: str
        data:
          description: MiB that are copied.
          type: int
        steps:
          description: What the move consists of, in order.
          type: list
          elements: dict
          contains:
            kind:
              description: One of V(migrate), V(failover), V(replace_disks).
              type: str
            from:
              description: The nodes before the step.
              type: list
              elements: str
            to:
              description: The nodes after the step.
              type: list
              elements: str
            node:
              description: The new primary, or for V(replace_disks) the new secondary.
              type: str
            online:
              description: Whether the node that is left is up.
              type: bool
            command:
              description: The C(gnt-instance) command.
              type: str
        after:
          description: Positions of the moves that must be done before.
          type: list
          elements: int
        commands:
          description: Commands for this move.
          type: list
          elements: str
    stages:
      description: Positions of moves that may run side by side, stage by stage.
      type: list
      elements: list
    commands:
      description: C(gnt-instance) commands for all moves, in order.
      type: list
      elements: str
    nodes:
      description: The nodes of the groups that the moves touch, for pictures such as P(bareon.allocator.moves_to_html#filter) makes.
      type: list
      elements: dict
      contains:
        node:
          description: Name of the node.
          type: str
        group:
          description: Its group.
          type: str
        offline:
          description: Whether it takes nothing, being down or drained.
          type: bool
        state:
          description: V(up), V(drained) or V(offline). One that is drained works, but takes nothing new.
          type: str
        capacity:
          description: Its memory and disk in MiB, and how many virtual CPUs it may carry.
          type: dict
        before:
          description: >-
            What is used now, as C(memory), C(reserved) for failovers, C(disk), C(cpus), C(load), and how many C(primaries) and
            C(secondaries) there are.
          type: dict
        after:
          description: The same after the moves.
          type: dict
restarts:
  description: Instances that run, and are stopped and started again because they cannot be moved while they run, as containers.
  type: list
  elements: str
  returned: success
summary:
  description: The moves as a table, stage by stage, which instances are restarted, and why instances stay.
  type: str
  returned: success
"""
