#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin provider_quota, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: provider_quota
short_description: Limit how much a project may have
version_added: 1.1.0
description:
  - Limits how much the consumers of a project may have together, by resource class.
  - Each claim for the project checks that in its own transaction, so that no number of tasks at once goes beyond it.
  - Consumers keep what they have, even if it is more than the limit. They get no more of that class then.
  - What has a lease that ended does not count.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.database.kept
  - bareon.allocator.database.writes
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.controller
options:
  project:
    description: The project, as in O(bareon.allocator.provider_allocation#module:project).
    type: str
    required: true
  limits:
    description:
      - "The most that the project may have of each class, C({class: amount}). Classes that are not named are not limited."
      - Required with O(state=present). It replaces the limits that the project had.
    type: dict
  state:
    description:
      - V(present) limits the project.
      - V(absent) lifts all of its limits.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: bareon.allocator.provider_allocation
  - module: bareon.allocator.provider_info
"""

EXAMPLES = r"""
---
- name: Let a project have 8 GPUs and 512 CPUs
  bareon.allocator.provider_quota:
    project: red
    limits:
      PGPU: 8
      VCPU: 512

- name: Lift its limits
  bareon.allocator.provider_quota:
    project: red
    state: absent
"""

RETURN = r"""
---
project:
  description: The project.
  returned: success
  type: str
  sample: "red"
limits:
  description: Its limits now, by class.
  returned: success
  type: dict
  sample: {"PGPU": 100}
used:
  description: How much it has of each class that is limited.
  returned: success
  type: dict
  sample: {"PGPU": 0}
recovered:
  description:
    - Set where the task found made what it, or an earlier run of the same task, had left in doubt, because the connection was lost while
      the change was being committed. RV(ignore:changed) is then true, although this run changed nothing, so that handlers are notified.
  returned: after a change that was in doubt
  type: bool
  sample: true
"""
