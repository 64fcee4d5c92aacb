#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Text as a file on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: controller_file
short_description: Write a plan or a page on the controller
version_added: 1.1.0
description:
  - Writes text to a file on the controller. What was there before stays until the new file is complete, also if the machine loses power.
  - A new file belongs to its owner alone (C(0600)), as do missing directories above it (C(0700)). A file or directory that exists keeps its
    mode.
  - A symbolic link at the path is replaced. What it points to stays as it is.
  - The playbooks of this collection write their plans and pages with it.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.controller
options:
  dest:
    description: The file. A relative path is relative to the playbook.
    type: path
    required: true
  content:
    description: The text.
    type: str
    required: true
  public:
    description:
      - Whether everybody may read a new file (C(0644), and C(0755) for missing directories), as pages that are served need it.
      - A page of the collection keeps its date as long as nothing else on it changes.
    type: bool
    default: false
  named_by:
    description:
      - What names the place of the file in your playbook, such as a variable that O(dest) is made of. Messages say it.
      - In a container, the task warns if the file is not on a volume, and says what names another place.
    type: str
    default: dest
    version_added: 1.1.0
seealso:
  - module: bareon.allocator.disk_plan
  - plugin: bareon.allocator.plans_to_html
    plugin_type: filter
  - plugin: bareon.allocator.moves_to_html
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Plan the disks
  bareon.allocator.disk_plan:
    profile: web-vm
  register: planned

- name: Keep the plan
  bareon.allocator.controller_file:
    content: "{{ planned.plan | to_nice_json }}"
    dest: "plans/{{ inventory_hostname }}.json"

- name: Draw the plan where a web server finds it
  bareon.allocator.controller_file:
    content: "{{ planned.plan | bareon.allocator.plan_to_svg(hardware=ansible_facts.bareon_hardware, title=inventory_hostname) }}"
    dest: "/var/www/layouts/{{ inventory_hostname }}.svg"
    public: true
"""

RETURN = r"""
---
dest:
  description: The path of the file.
  returned: success
  type: str
  sample: /home/admin/plans/web1.json
"""
