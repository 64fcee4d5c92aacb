#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin disk_drift, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: disk_drift
short_description: Compare the disks of a fleet with its plans
version_added: 1.0.0
description:
  - Compares the facts of hosts with the plans that were made for them, all in one task.
  - Runs on the controller and changes nothing.
  - A host whose plan or facts cannot be read does not keep the others from being compared. The task fails then, and still returns its
    result.
  - To compare with a profile rather than with saved plans, give the plans that M(bareon.allocator.disk_plan) makes from it now.
author:
  - The bareon.allocator maintainers (@bareon)
options:
  plans:
    description:
      - The plans by host, as RV(bareon.allocator.disk_plan#module:plans), or the path of a folder with C(HOST.json) for each host, as
        O(bareon.allocator.disk_plan#module:plans_to) writes it. A path is relative to the folder in which you run the command.
      - A folder is twenty times as fast, because Ansible searches each value of a variable for templates.
    type: raw
    required: true
  hardware:
    description:
      - The facts of M(bareon.allocator.disk_facts) by host, or the path of a folder with a file for each host, C(HOST) or C(HOST.json).
      - Such a file can come from the cache C(jsonfile) (without a prefix) or from C(ansible --module-name bareon.allocator.disk_facts
        --tree FOLDER), or it has the hardware alone.
      - Default is C(bareon_hardware) of each host, from its facts or from the inventory.
    type: raw
  hosts:
    description:
      - The hosts to compare. Default is all hosts that have a plan.
    type: list
    elements: str
  unreachable:
    description:
      - What to do with hosts whose hardware is not known. V(skip) leaves them out with a warning, V(fail) fails.
    type: str
    choices: [skip, fail]
    default: skip
  root:
    description:
      - The folder where hosts mount the file system that the plan mounts at V(/).
    type: str
    default: /
  fail_on:
    description:
      - The task fails if there is a finding of these kinds, so that a pipeline can stop. It still returns its result.
    type: list
    elements: str
    choices: [could_grow, new, differs, gone]
    default: []
extends_documentation_fragment:
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
notes:
  - A partition is found by its UUID, otherwise by its start. A disk is found by its id or any of its links.
  - Values that the facts lack are not compared. An unmounted file system, an inactive volume and a closed LUKS container are not
    differences; an array that does not run is one.
seealso:
  - module: bareon.allocator.disk_facts
  - module: bareon.allocator.disk_plan
"""

EXAMPLES = r"""
---
- name: Plan the hosts, as they were planned when they were installed
  bareon.allocator.disk_plan:
    profile: general
    hosts: "{{ groups['all'] | difference(['localhost']) }}"
  register: planned

- name: Show what has become of the plans
  bareon.allocator.disk_drift:
    plans: "{{ planned.plans }}"
  register: drifted

- name: Show it as a table
  ansible.builtin.debug:
    msg: "{{ drifted.summary.splitlines() }}"

- name: Show it on the page of the fleet
  ansible.builtin.copy:
    content: "{{ planned.plans | bareon.allocator.plans_to_html(failures=drifted.failures, title='Drift') }}"
    dest: "{{ playbook_dir }}/drift.html"
    mode: "0644"

- name: Stop the pipeline where a disk is gone
  bareon.allocator.disk_drift:
    plans: "{{ planned.plans }}"
    fail_on: [gone]

- name: Keep the plans of a large fleet in files
  bareon.allocator.disk_plan:
    profile: general
    hosts: "{{ groups['all'] | difference(['localhost']) }}"
    plans_to: plans

- name: Compare them with the facts of the inventory, and stop where nothing is known about a host
  bareon.allocator.disk_drift:
    plans: plans
    unreachable: fail

- name: Compare them with facts that were kept in files
  bareon.allocator.disk_drift:
    plans: plans
    hardware: facts
    hosts: [node1]
"""

RETURN = r"""
hosts:
  description:
    - For each host its C(state), the worst of its findings or V(alike), and C(findings).
    - A finding has a C(place), which is a disk's id, an array or GROUP/VOLUME, a C(state) and a sentence C(says).
    - The states are V(could_grow), where a disk has become larger or something is smaller than planned, V(new) for a disk that the plan
      does not know, V(differs), and V(gone) for a disk that is missing.
  returned: always
  type: dict
  sample:
    node1:
      state: gone
      findings:
        - place: /dev/disk/by-id/wwn-0x5000c500a1b2c3d4
          state: gone
          says: the disk is gone
counts:
  description: How many hosts are in each state.
  returned: always
  type: dict
  sample: {alike: 11, could_grow: 0, new: 0, differs: 0, gone: 1}
summary:
  description: All findings as a table.
  returned: always
  type: str
  sample: "1 of 2 instances move in 1 stage, 1000 MiB are copied"
left_out_hosts:
  description: The hosts about which nothing is known.
  returned: always
  type: list
  elements: str
  sample: ["web9"]
unread_hosts:
  description: The hosts whose plan or facts cannot be read. RV(failures) says why.
  returned: always
  type: list
  elements: str
  sample: ["web7"]
unplanned_hosts:
  description: Those of O(hosts) without a plan.
  returned: always
  type: list
  elements: str
  sample: ["web8"]
warnings:
  description: A sentence for each host about which nothing is known, and for each host without a plan.
  returned: always
  type: list
  elements: str
  sample: ["web8: has no plan"]
origin:
  description: What was compared, by what and when, as P(bareon.allocator.plans_to_html#filter) takes it.
  returned: always
  type: dict
  contains:
    plans:
      description: Where the plans come from.
      returned: always
      type: str
      sample: the folder /srv/plans
    facts:
      description: Where the facts come from.
      returned: always
      type: str
      sample: of the hosts, as Ansible knows them
    versions:
      description: The versions of the collection and of ansible-core.
      returned: always
      type: str
      sample: bareon.allocator 1.1.0, ansible-core 2.19.0
    date:
      description: The day, in UTC.
      returned: always
      type: str
      sample: "2026-03-02"
  version_added: 1.1.0
failures:
  description: The hosts that are not as planned, each with a C(msg), as P(bareon.allocator.plans_to_html#filter) takes them.
  returned: always
  type: dict
  sample: {"node1": {"msg": "the disk is gone"}}
"""
