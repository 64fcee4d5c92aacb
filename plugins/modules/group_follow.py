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
  - What a run must know about earlier ones is kept in O(state_file), or in a ledger with O(state=ledger). The cluster shows which moves
    have been carried out. So a run may be cut off at any moment, and the next one goes on. Without a change of the cluster or the clock, a
    second run changes nothing.
  - A group that no move helps is searched again only when something has changed. What is measured counts as changed by about a percent.
  - Moves never go back and forth. After each plan there are fewer problems than before, or as many with a better score.
extends_documentation_fragment:
  - bareon.allocator.cluster
  - bareon.allocator.tolerant
  - bareon.allocator.cluster.turns
  - bareon.allocator.cluster.only
  - bareon.allocator.cluster.link
  - bareon.allocator.scored
  - bareon.allocator.balancing
  - bareon.allocator.parallel
  - bareon.allocator.kept
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
options:
  state_file:
    description:
      - The file on the controller that keeps what was decided. The first run creates it. It is always replaced as a whole.
      - A file with other content is refused. If it is missing, the run is treated as the first.
      - One run at a time holds it, until its play ends. A file next to it, with C(.lock) after its name, names the process.
        Other runs fail until it has ended. Check mode needs no lock.
      - Required for O(state=file).
    type: path
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
      - What an imbalance is measured in. V(memory) and V(disk) are shares of what a node has, V(cpus) are virtual CPUs as a share of what
        the group's policy allows, or, without one, of the CPUs. V(cpu_load) is measured CPU load as a share of the CPUs, for loads that are
        measured in CPUs.
    type: list
    elements: str
    choices: [memory, disk, cpus, cpu_load]
    default: [memory, cpus]
  above:
    description:
      - Per cents of a node. A group is balanced while one of its nodes that are up uses more than that, and until none does, with as few
        moves as that takes. How uneven the group is does not matter then.
      - RV(groups[].measure) is how far the worst node is above, as a share of the node, and 0 where none is.
      - Replaces O(measure), O(resources), O(threshold) and O(target).
    type: dict
    suboptions:
      memory:
        description: Of the memory that the node has.
        type: float
      disk:
        description: Of the disk that the node has.
        type: float
      cpu:
        description:
          - Of the CPUs that the node has, for load that the source or O(load) measures in CPUs. Where no load is measured, virtual CPUs as
            a share of what the group's policy allows, or, without one, of the CPUs.
        type: float
  threshold:
    description:
      - A group beyond this measure is balanced. For an imbalance, the default is V(0.15), or 15 percentage points. For a score, it must be
        given.
    type: float
  target:
    description: The measure at which balancing stops. Default is half of O(threshold).
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
      - What every run repairs, at any time and without a cooldown. It takes as few moves as possible, with no limit on their number.
      - V(down) are instances whose node is marked offline, V(drained) are those with a node that is drained or so. V(limits) are
        limits that are broken, such as memory, CPUs, tags and rules, V(n1) is N+1; on shared storage it is not urgent with
        O(redundancy=off).
      - A node that does not answer, and is not marked offline, is never left or entered. The summary names it and says what to do.
      - In a run that repairs a group, no other group is balanced.
    type: list
    elements: str
    choices: [down, drained, limits, n1]
    default: [down, drained, limits, n1]
  urgent_polls:
    description:
      - In how many runs in a row the worst of O(urgent) must be wrong before it is repaired. A single look may be a mistake.
      - Runs without O(act) do not count.
    type: int
    default: 2
  windows:
    description: When groups may be balanced. Default is always. Moves left over from an earlier run also wait for a window.
    type: list
    elements: dict
    default: []
    suboptions:
      days:
        description: On which days a window begins. Default is every day.
        type: list
        elements: str
        choices: [mon, tue, wed, thu, fri, sat, sun]
      from:
        description: When it begins, such as V("22:00").
        type: str
        required: true
      to:
        description: When it ends. If that is not after O(windows[].from), it ends on the next day.
        type: str
        required: true
  timezone:
    description: The time zone of O(windows), such as V(Europe/Berlin). Default is that of the controller.
    type: str
  act:
    description:
      - Whether moves are planned. If not, the run only notes which moves have been carried out. Do so right after them, so that
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
      - Shows what is kept for later runs.
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
  sample: "2026-11-26T14:35:50Z"
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
      returned: always
      sample: "group-01"
    action:
      description: >-
        V(calm), V(wait), V(balance), V(repair), V(resume) for moves that are left over from an earlier run, or V(stuck) if something is
        wrong or uneven and no move helps.
      type: str
      returned: always
      sample: "wait"
    why:
      description: >-
        What it waits for. V(confirm) is to see whether it stays so, V(cooldown) is time since the last moves, V(window) is the next
        window, V(repairs) is the repair of other groups, V(moves) are other moves of this run, and V(look) is a run with O(act).
      type: str
      returned: always
      sample: "confirm"
    until:
      description: Until when it waits, if that is known.
      type: str
      returned: always
      sample: "2026-03-02T22:00:00Z"
    measure:
      description: How uneven it is.
      type: float
      returned: always
      sample: 0.479167
    measure_after:
      description: How uneven it is after the moves.
      type: float
      sample: 0.0938
      returned: when moves are planned
    score:
      description: Its score.
      type: float
      returned: always
      sample: 264.107776
    urgent:
      description: Which of O(urgent) are wrong.
      type: list
      elements: str
      returned: always
      sample: ["down", "drained", "n1"]
    polls:
      description: In how many runs in a row the worst of RV(groups[].urgent) was wrong, and how many are needed. None if nothing is.
      type: list
      elements: int
      returned: always
      sample: [1, 2]
    down:
      description: Instances that are down, and stay so after the moves.
      type: list
      elements: str
      returned: always
      sample: ["inst-00001.example.com", "inst-00004.example.com", "inst-00005.example.com"]
    moves:
      description: How many moves are planned.
      type: int
      returned: always
      sample: 0
    data:
      description: MiB that they copy.
      type: int
      returned: always
      sample: 0
    says:
      description: All of this as a sentence.
      type: str
      returned: always
      sample: "down, drained, n1 wrong, seen in 1 of 2 runs in a row; waits whether it stays so"
resumed:
  description: Whether RV(plan) is that of an earlier run. It is unchanged, so the role continues its journal.
  type: bool
  sample: false
  returned: success
plan:
  description: >-
    The moves, as RV(bareon.allocator.group_balance#module:plan). There are none if nothing has to be done. If RV(resumed), the time in
    C(seconds) is that of what is left to do.
  type: dict
  sample: {"score_before": 269.35, "score_after": 198.5, "moves": []}
  returned: success
next:
  description: When the first waiting group is due, if that is known.
  type: str
  sample: "2026-03-02T22:00:00Z"
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
  description: What is done for each group, and the moves, as text.
  type: str
  sample: "1 of 2 instances move in 1 stage, 1000 MiB are copied"
  returned: success
"""
