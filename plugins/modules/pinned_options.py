#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values of variables that no fact can change."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: pinned_options
short_description: Take the values of variables before a host is asked
version_added: 1.1.0
description:
  - Returns the values of variables of the host, as Ansible merges them without the facts of the host.
  - By default Ansible makes a variable of every fact. Such a variable replaces one of the inventory or of the defaults of a role, so that a
    host could change an option by its answer to any module. A play reads its options from the result of this module instead.
  - Fails if a variable begins as the variables of this collection do, and none of its playbooks and roles knows it, for it may be a typing
    mistake.
  - Fails if the host has a fact whose name is that of an option, or begins as the variables of this collection do.
  - Fails for a host whose name is a path, with C(/), or C(.) or C(..), as playbooks name files after hosts.
  - The roles and playbooks of this collection begin with it. Use it in a play of your own that reads options from variables.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
options:
  options:
    description: The names of the variables. One that is not defined is not in the result.
    type: list
    elements: str
    required: true
  prefix:
    description: What the names of the variables begin with. It is not in the names of the result.
    type: str
    default: ""
notes:
  - The options may be secrets, so Ansible does not show the result.
  - An option can use facts on purpose, by C(ansible_facts), or by the name of a fact with C(ansible_).
seealso:
  - module: bareon.allocator.host_answer
"""

EXAMPLES = r"""
---
- name: Take the options before the host is asked
  bareon.allocator.pinned_options:
    prefix: site_
    options: [profile, report]
  register: site

- name: Read what disks there are
  bareon.allocator.disk_facts:

- name: Say what the host is for, whatever its facts say
  ansible.builtin.debug:
    msg: "{{ site.options.profile | default('general') }}"
"""

RETURN = r"""
---
options:
  description: The values of those variables that are defined, by the names in O(options).
  returned: success
  type: dict
  sample: {"profile": "kafka-jbod"}
"""
