#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin disk_report, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: disk_report
short_description: Plan a fleet and write the page of its plans
version_added: 1.1.0
description:
  - Plans the disks of many hosts in one task, each by the profile that its variable C(bareon_profile) names, and writes one HTML page of
    all plans on the controller. Nothing is written to any disk.
  - The hardware of a host is its variable C(bareon_known_hardware), or else what M(bareon.allocator.disk_facts) has gathered before.
  - A host without a plan, or whose variables cannot be used, does not end the task. The page says why.
  - The page says by which profiles and versions the plans were made, on which day, from where the hardware is known, and for which disks
    each plan is (its fingerprint), so that it can be filed. The day is that of the last change of the page, in UTC; the environment
    variable E(SOURCE_DATE_EPOCH) takes the place of the clock.
  - The result has no plans, however many hosts there are. M(bareon.allocator.disk_plan) returns them, or writes them into files.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.controller
requirements:
  - numpy, highspy and yaql on the controller
options:
  hosts:
    description: The hosts to show, names of the inventory.
    type: list
    elements: str
    required: true
  dest:
    description: The file of the page. A relative path begins where the command was given. Everybody may read a new file (C(0644)).
    type: path
    required: true
  title:
    description: The heading of the page.
    type: str
    default: Disk layouts
  overrides:
    description: Changes to all profiles, merged by the id of the space, as O(bareon.allocator.disk_plan#module:overrides) has them.
    type: list
    elements: dict
  eligible:
    description: Kinds of disks that plans may use although they leave them alone otherwise; by default those of each profile.
    type: list
    elements: str
    choices: [in_use, removable, usb, sd_card, zoned, iscsi, fc]
  registered:
    description:
      - The variable that a task with M(bareon.allocator.disk_facts) has registered on each host. The page shows its C(msg), which is why
        the hardware of a host could not be read. If it has C(failed), the host was asked, and its answer is refused.
      - A host that was unreachable, failed or was not asked has no plan, even if a cache has facts of an earlier run. Its variable
        C(bareon_known_hardware) counts nevertheless.
      - Where the task was skipped, or without this option, gathered facts are planned whatever their age, and the page says so.
    type: str
seealso:
  - module: bareon.allocator.disk_plan
  - plugin: bareon.allocator.plans_to_html
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Read what disks there are
  bareon.allocator.disk_facts:
  register: disks_read
  ignore_unreachable: true

- name: Write a page for all hosts
  bareon.allocator.disk_report:
    hosts: "{{ ansible_play_hosts }}"
    dest: layouts.html
    title: Rack 12
    registered: disks_read
  run_once: true
"""

RETURN = r"""
---
dest:
  description: The path of the page.
  returned: success
  type: str
  sample: /home/admin/layouts.html
hosts:
  description: How many hosts the page shows.
  returned: success
  type: int
  sample: 300
without_plan:
  description: How many of them have no plan although their hardware is known, or variables that cannot be used.
  returned: success
  type: int
  sample: 2
unread:
  description: How many of them have no known hardware.
  returned: success
  type: int
  sample: 1
"""
