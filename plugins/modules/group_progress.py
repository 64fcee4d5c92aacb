#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action group_progress."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: group_progress
short_description: Keep the journal of a plan of moves, and say what comes next
version_added: 1.0.0
description:
  - Says which steps of a plan are left and in which rounds they may be carried out, and records their outcomes in a journal.
  - The role C(bareon.allocator.group_moves) uses it. Use it yourself if you carry out moves in another way.
  - It runs on the controller, without a connection to any host. It moves nothing itself.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.kept
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
options:
  plan:
    description:
      - The plan, as RV(bareon.allocator.group_balance#module:plan) and the other group modules return it. Begins a run, in which
        steps that failed in an earlier run of the same plan are tried again.
      - Each move needs C(instance), C(from) and C(steps); each step needs C(kind) and C(to).
      - A plan may come from a file that anybody wrote. Names of instances, nodes, disks and storages may have letters, digits, C(.), C(_)
        and C(-), and begin with a letter or a digit; steps must be possible for their kind. Commands in a plan are never used.
      - Mutually exclusive with O(journal); one of them is required.
    type: dict
  directory:
    description:
      - The folder for journals, on the controller. The name of the file follows from the moves of the plan, so the same plan finds
        its journal again, and another plan gets its own.
      - Required with O(plan) for O(state=file).
    type: path
  journal:
    description:
      - The journal of a run that has begun, as RV(journal).
    type: path
  kinds:
    description:
      - The kinds of steps that can be carried out. A plan with other kinds is refused. Default is any kind.
    type: list
    elements: str
  where:
    description:
      - The nodes of instances as they are now, by name, the primary first. Each is a list, or text in which C(|), commas or blanks
        separate them. Instances that the plan does not move may be included.
      - Steps whose result already exists count as done. If an instance is on nodes that its remaining steps do not pass, the task fails,
        since the plan was made for another state.
    type: dict
  storages:
    description:
      - The storages of disks as they are now, by instance and disk, for plans that move disks, such as
        RV(bareon.allocator.group_balance#module:plan) of storages. It is needed with O(where) for these.
    type: dict
  outcomes:
    description:
      - The outcomes of steps.
    type: list
    elements: dict
    suboptions:
      move:
        description: The position of the move in the plan.
        type: int
        required: true
      step:
        description: The position of the step in the move.
        type: int
        required: true
      failed:
        description: Whether it failed.
        type: bool
        default: false
      message:
        description: Why it failed.
        type: str
        default: ""
      job:
        description:
          - The job that carries the step out in the background. The step is then neither done nor failed, and RV(rounds) has the job
            with the step, so that it is waited for rather than begun again.
        type: str
        default: ""
  round:
    description:
      - How long steps took that were under way side by side. It is kept in the journal if all of them are done, and none was begun by an
        earlier run; O(bareon.allocator.group_balance#module:link_journals) estimates by it how long later plans take.
    type: dict
    suboptions:
      steps:
        description: The steps, as RV(rounds) has them. Only C(move), C(step) and C(job) are looked at.
        type: list
        elements: dict
        required: true
      seconds:
        description: For how many seconds they were under way, from the beginning of the first to the end of the last.
        type: float
        required: true
  at_once:
    description: How many moves may be under way at a time.
    type: int
    default: 1
  per_node:
    description: How many of them may involve the same node. V(0) means any number.
    type: int
    default: 0
attributes:
  check_mode:
    details:
      - The journal is not written in check mode.
  diff_mode:
    support: none
    details:
      - What is left is shown as RV(rounds).
  idempotent:
    details:
      - An outcome that was recorded before changes nothing.
seealso:
  - module: bareon.allocator.group_evacuate
"""

EXAMPLES = r"""
---
- name: Begin, or go on with, a plan
  bareon.allocator.group_progress:
    plan: "{{ evacuation.plan }}"
    directory: journals
    at_once: 4
    per_node: 1
  register: progress

- name: Note that the first step of the first round is done
  bareon.allocator.group_progress:
    journal: "{{ progress.journal }}"
    outcomes:
      - move: "{{ progress.rounds[0][0].move }}"
        step: "{{ progress.rounds[0][0].step }}"
  register: progress

- name: Show what remains
  ansible.builtin.debug:
    msg: "{{ progress.summary.splitlines() }}"
"""

RETURN = r"""
---
journal:
  description: The journal's file. With O(state=ledger), what identifies the plan.
  type: str
  sample: /srv/journals/3f1c.json
  returned: success
complete:
  description: Whether nothing is left to do.
  type: bool
  sample: true
  returned: success
nodes:
  description: Names of all nodes that take part in the plan.
  type: list
  elements: str
  sample: ["node-0001.example.com"]
  returned: success
rounds:
  description: Steps that may be carried out side by side, round after round, until all is done.
  type: list
  elements: list
  returned: success
  contains:
    move:
      description: Position of the move in the plan.
      type: int
      returned: always
      sample: 2
    step:
      description: Position of the step in the move.
      type: int
      returned: always
      sample: 2
    instance:
      description: Name of the instance.
      type: str
      returned: always
      sample: inst-00001.example.com
    kind:
      description: What is done, V(migrate), V(failover), V(replace_disks), or another kind that the plan has.
      type: str
      returned: always
      sample: migrate
    from:
      description: The nodes before.
      type: list
      elements: str
      returned: always
      sample: ["node-0001.example.com"]
    to:
      description: The nodes after.
      type: list
      elements: str
      returned: always
      sample: ["node-0002.example.com"]
    node:
      description: The node that the instance, or its mirror, goes to.
      type: str
      returned: always
      sample: node-0001.example.com
    online:
      description: Whether the node that is left is up.
      type: bool
      returned: always
      sample: true
    command:
      description:
        - Ganeti's command for the step, to read, if the plan has commands. It is made of kind, instance and node, whatever the text of
          the plan says. Nothing runs it.
      type: str
      returned: always
      sample: gnt-instance migrate -f inst-00001.example.com
    job:
      description: The job that is already carrying it out, if any.
      type: str
      returned: always
      sample: "1234"
    disk:
      description: For a step that moves a disk, the name of the disk. It goes from the storage C(from_storage) to C(to_storage).
      type: str
      returned: always
      sample: scsi0
    says:
      description: The step in words.
      type: str
      returned: always
      sample: it has no place in the group
done:
  description: Moves that are done.
  type: list
  elements: dict
  returned: success
  contains:
    move:
      description: Position of the move in the plan.
      type: int
      returned: always
      sample: 2
    instance:
      description: Name of the instance.
      type: str
      returned: always
      sample: inst-00001.example.com
    steps:
      description: How many steps the move has.
      type: int
      returned: always
      sample: 2
    steps_done:
      description: How many of them are done.
      type: int
      returned: always
      sample: 2
    message:
      description: Why the next step failed, if it did.
      type: str
      returned: always
      sample: disk is full
failures:
  description: Moves of which a step failed in this run, with the keys of RV(done).
  type: list
  elements: dict
  sample: ["inst-00001.example.com: migrate failed: full"]
  returned: success
remaining:
  description: Moves that are not done, failed ones among them, with the keys of RV(done).
  type: list
  elements: dict
  sample: []
  returned: success
summary:
  description: What is done, what failed and what is left, in words.
  type: str
  sample: "1 of 2 instances move in 1 stage, 1000 MiB are copied"
  returned: success
"""
