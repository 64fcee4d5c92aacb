#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action group_follow."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: group_follow
short_description: Keep groups balanced with few moves, from a timer
version_added: 1.0.0
author:
  - The bareon.allocator maintainers (@bareon)
description:
  - Looks at a cluster each time that it is run, and plans moves only where they are needed. A group is balanced when it is uneven beyond
    O(threshold), and then until O(target), in runs that are O(cooldown) apart, each with as few moves as that takes. What is O(urgent)
    is repaired at once.
  - It runs on the controller, and moves nothing itself. The role P(bareon.allocator.group_moves#role) carries RV(plan) out.
  - What one run has to know of those before it is kept in O(state_file). Which moves have been carried out is seen from the cluster. So
    a run may be cut off at any moment, and the next one goes on. Without a change of the cluster or the clock, a second run
    changes nothing.
  - A group that no move helps is searched again only when something has changed. What is measured counts as changed by about a percent.
  - Moves never lead back and forth. Each plan makes less wrong than there was, or as little with a better score.
extends_documentation_fragment:
  - bareon.allocator.cluster
  - bareon.allocator.scored
  - bareon.allocator.balancing
  - bareon.allocator.parallel
  - bareon.allocator.planning
options:
  state_file:
    description:
      - The file on the controller in which it is kept what was decided. It is made in the first run, and replaced as a whole.
      - A file with other content is refused. Without it, all is as in the first run.
      - It belongs to one run at a time, with all tasks of its play. A file beside it, with C(.lock) after its name, names that process.
        Other runs fail until it has ended. Check mode needs no lock.
    type: path
    required: true
  groups:
    description: Names or UUIDs of the groups to follow. Default is all.
    type: list
    elements: str
  measure:
    description:
      - V(imbalance) is the largest difference between the shares that two nodes of a group use of one of O(resources). Only nodes that are
        up count.
      - V(score) is the score of the group, as in M(bareon.allocator.group_info).
    type: str
    choices: [imbalance, score]
    default: imbalance
  resources:
    description:
      - What an imbalance looks at. V(memory) and V(disk) are shares of what a node has, V(cpus) are virtual CPUs as a share of what the
        group's policy allows, or, without one, of the CPUs. V(cpu_load) is measured CPU load as a share of the CPUs, for loads that are
        measured in CPUs.
    type: list
    elements: str
    choices: [memory, disk, cpus, cpu_load]
    default: [memory, cpus]
  threshold:
    description:
      - Beyond this measure a group is balanced. Default is V(0.15), which are 15 points of a percentage, for an imbalance. A score must be
        given.
    type: float
  target:
    description: Down to this measure it is balanced then. Default is half of O(threshold).
    type: float
  confirm:
    description: For how many seconds a group must be beyond the threshold before it is balanced.
    type: float
    default: 0
  cooldown:
    description: For how many seconds a group is left alone after its last moves, except for what is urgent.
    type: float
    default: 3600
  rest:
    description: For how many seconds an instance that was moved is not moved again for the sake of balance.
    type: float
    default: 21600
  urgent:
    description:
      - What is repaired in every run, at any time of the day and without a cooldown, with as few moves as it takes, however many these are.
      - V(down) are instances whose node does not answer, V(drained) are those that have a node that is drained or down. V(limits) are
        limits that are broken, such as memory, CPUs, tags and rules, V(n1) is N+1; on shared storage it is not urgent with
        O(redundancy=off).
      - In a run that repairs a group, no other group is balanced.
    type: list
    elements: str
    choices: [down, drained, limits, n1]
    default: [down, drained, limits, n1]
  windows:
    description: When groups may be balanced. Default is always. Moves that are left of an earlier run wait for a window as well.
    type: list
    elements: dict
    default: []
    suboptions:
      days:
        description: On which days a window begins. Default is on all.
        type: list
        elements: str
        choices: [mon, tue, wed, thu, fri, sat, sun]
      from:
        description: When it begins, such as V("22:00").
        type: str
        required: true
      to:
        description: When it ends, on the next day if that is not after its beginning.
        type: str
        required: true
  timezone:
    description: The time zone of O(windows), such as V(Europe/Berlin). Default is that of the controller.
    type: str
  act:
    description:
      - Whether moves are planned. Without it, it is only noted which moves have been carried out, as is best done right after them, so that
        the cooldown begins then.
    type: bool
    default: true
  now:
    description: The time that counts as now, such as V(2026-03-01T04:00:00Z), for simulations. Default is the clock of the controller.
    type: str
  max_moves:
    description: How many moves a run may make for the sake of balance, of all groups together; the most uneven group comes first.
    type: int
    default: 10
attributes:
  check_mode:
    details:
      - The state is not written in check mode.
  diff_mode:
    support: full
    details:
      - Shows what is kept in O(state_file).
  idempotent:
    details:
      - Without a change of the cluster or the clock.
seealso:
  - module: bareon.allocator.group_balance
    description: Balances groups as far as it pays, in one go.
  - plugin: bareon.allocator.moves_to_html
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Decide whether anything is to be moved
  bareon.allocator.group_follow:
    source:
      type: ganeti_text
      path: supercluster.data
    state_file: follow.json
    threshold: 0.2
    max_moves: 4
  register: follow

- name: Show what is done, and why
  ansible.builtin.debug:
    msg: "{{ follow.summary.split('\\n') }}"

- name: Balance at night and on weekends only, and repair at any time
  bareon.allocator.group_follow:
    source:
      type: ganeti_text
      path: supercluster.data
    state_file: follow-at-night.json
    measure: score
    threshold: 3
    target: 2
    confirm: 900
    windows:
      - {from: '22:00', to: '05:00'}
      - {days: [sat, sun], from: '00:00', to: '00:00'}
    timezone: UTC
"""

RETURN = r"""
---
now:
  description: The time that counted as now.
  type: str
  returned: success
groups:
  description: What is done for each group that is followed.
  type: list
  elements: dict
  returned: success
  contains:
    group:
      description: Name of the group.
      type: str
    action:
      description: >-
        V(calm), V(wait), V(balance), V(repair), V(resume) for moves that are left of an earlier run, or V(stuck) if something is wrong
        or uneven and no move helps.
      type: str
    why:
      description: >-
        What it waits for. V(confirm) is whether it stays uneven, V(cooldown) the time since the last moves, V(window) a window,
        V(repairs) other groups that are repaired, V(moves) other moves of this run, V(look) a run with O(act).
      type: str
    until:
      description: Until when it waits, if that is known.
      type: str
    measure:
      description: How uneven it is.
      type: float
    measure_after:
      description: How uneven it is after the moves.
      type: float
      returned: when moves are planned
    score:
      description: Its score.
      type: float
    urgent:
      description: What is wrong, of O(urgent).
      type: list
      elements: str
    moves:
      description: How many moves are planned.
      type: int
    data:
      description: MiB that they copy.
      type: int
    says:
      description: All of this as a sentence.
      type: str
resumed:
  description: Whether RV(plan) is that of an earlier run. It is the very same, so that the journal of the role goes on with it.
  type: bool
  returned: success
plan:
  description: The moves, as RV(bareon.allocator.group_balance#module:plan); without any where nothing is to be done.
  type: dict
  returned: success
next:
  description: When the first of the groups that wait is due, if that is known.
  type: str
  returned: success
summary:
  description: What is done for each group, and the moves, as text.
  type: str
  returned: success
"""
