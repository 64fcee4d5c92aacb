#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin disk_plan_diff, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: disk_plan_diff
short_description: Compare plans of a fleet before and after a change
version_added: 1.1.0
description:
  - Compares two plans of each host, and lists what the second makes worse, better or otherwise different.
  - In a pipeline, the first plans are those of the main branch, the second those of a change of schemas, both for recorded hardware.
  - Runs on the controller and changes nothing. It needs no library.
author:
  - The bareon.allocator maintainers (@bareon)
options:
  before:
    description:
      - The plans before the change, by host, as RV(bareon.allocator.disk_plan#module:plans), or the path of a folder with C(HOST.json)
        for each host, as O(bareon.allocator.disk_plan#module:plans_to) writes it. A path is relative to the folder in which you run the
        command.
    type: raw
    required: true
  after:
    description:
      - The plans after the change, in the same form.
    type: raw
    required: true
  hosts:
    description:
      - The hosts to compare. Default is all that have a plan before or after the change.
      - A host that you have taken out of the inventory on purpose is not among them. A warning names it.
    type: list
    elements: str
  tolerance:
    description:
      - By how many per cent a space may become smaller and still count as V(changed) instead of V(smaller).
    type: float
    default: 0
  fail_on:
    description:
      - The task fails if there is a change of these kinds, so that a pipeline can stop. It still returns its result.
      - A plan is worse with V(smaller), V(unencrypted), V(less_redundant), V(space_lost) or V(no_plan).
    type: list
    elements: str
    choices: [changed, better, smaller, unencrypted, less_redundant, space_lost, no_plan]
    default: []
extends_documentation_fragment:
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
notes:
  - A space is found by its id, otherwise by its mount point, so that a new id is no loss.
seealso:
  - module: bareon.allocator.disk_plan
  - module: bareon.allocator.disk_drift
"""

EXAMPLES = r"""
---
- name: Compare the plans of two branches, and stop where one is worse
  bareon.allocator.disk_plan_diff:
    before: plans/main
    after: plans/change
    tolerance: 5
    fail_on: [smaller, unencrypted, less_redundant, space_lost, no_plan]
  register: compared

- name: Show the changes as a table
  ansible.builtin.debug:
    msg: "{{ compared.summary.splitlines() }}"
"""

RETURN = r"""
hosts:
  description:
    - For each host C(kind), that of its worst change or V(alike), and C(changes), worst first.
    - A change has a C(place), which is a space or SPACE/SUBVOLUME, a C(kind) and a sentence C(says).
  returned: always
  type: dict
  sample:
    web1:
      kind: smaller
      changes:
        - place: root
          kind: smaller
          says: 32 GiB instead of 40 GiB (-8192 MiB)
counts:
  description: How many hosts have each kind as their worst change.
  returned: always
  type: dict
  sample: {alike: 11, changed: 0, better: 0, smaller: 1, unencrypted: 0, less_redundant: 0, space_lost: 0, no_plan: 0}
worse:
  description: The hosts whose plans are worse.
  returned: always
  type: list
  elements: str
  sample: ["web1"]
left_out_hosts:
  description: The hosts that had a plan before and are not among O(hosts).
  returned: always
  type: list
  elements: str
  sample: ["web9"]
summary:
  description: All changes as a table, hosts with the worst ones first.
  returned: always
  type: str
  sample: "12 hosts: 1 worse, 0 otherwise changed, 11 alike"
warnings:
  description: A sentence if hosts with a plan are left out.
  returned: always
  type: list
  elements: str
  sample: ["there was a plan for web9, not among the hosts to compare"]
"""
