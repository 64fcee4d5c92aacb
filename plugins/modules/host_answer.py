#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The answer of a host to a module of Ansible, without facts."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: host_answer
short_description: Have a host run a module of Ansible, and take no facts of its answer
version_added: 1.1.0
description:
  - Runs a module of Ansible or of another collection, as a task with its name would, and returns what it returns.
  - A host can answer to any module with facts, whatever the module is, and Ansible makes variables of them before anybody can look at
    them. Some are settings of the connection, and the next task on the host would run a program on the controller that the host has chosen.
  - Fails if the answer has facts other than O(facts), and none of them becomes a variable.
  - Is not run for a host that has a fact whose name begins as the variables of this collection do.
  - The roles and playbooks of this collection ask hosts by it, or by modules of their own. Use it in a play of your own for hosts that
    you do not trust.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.controller
options:
  module:
    description: The full name of the module, such as V(ansible.builtin.command).
    type: str
    required: true
  arguments:
    description: The arguments of the module. A module that takes a command line has it in C(cmd).
    type: dict
    default: {}
  facts:
    description: The names of those facts that the answer may have.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    support: partial
    details:
      - As the module does.
  diff_mode:
    support: partial
    details:
      - As the module does.
  idempotent:
    support: partial
    details:
      - As the module is.
  action:
    description: Has an action plugin, so that parts of it run on the controller.
    support: full
  async:
    support: partial
    details:
      - As the module does, and only with C(poll=0). Ansible takes what it polls for by itself, with facts.
notes:
  - What C(module_defaults) says of the module is not used.
seealso:
  - module: bareon.allocator.pinned_options
"""

EXAMPLES = r"""
---
- name: Look whether a host has a file
  bareon.allocator.host_answer:
    module: ansible.builtin.stat
    arguments:
      path: /etc/fstab
  register: file

- name: Ask how much memory a host has, and nothing else
  bareon.allocator.host_answer:
    module: ansible.builtin.setup
    arguments:
      gather_subset: [hardware]
      filter: [ansible_memtotal_mb]
    facts: [ansible_memtotal_mb]
"""

RETURN = r"""
---
foreign_facts:
  description: The host, and each fact that it may not have in its answer. The other return values are those of the module.
  returned: when the answer has such facts
  type: list
  elements: str
  sample: ["web1.ansible_facts.ansible_sftp_executable"]
"""
