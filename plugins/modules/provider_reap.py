#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin provider_reap, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: provider_reap
short_description: Release claims whose lease has ended
version_added: 1.1.0
description:
  - Releases every consumer whose O(bareon.allocator.provider_allocation#module:lease) has ended, and says whose it was.
  - Nobody has to run it. A claim whose lease has ended holds nothing, and other claims take its room in their own transaction. This module
    tidies the ledger, and reports what has ended.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.database.kept
  - bareon.allocator.database.writes
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.controller
options:
  keep_history:
    description:
      - How much of the history of M(bareon.allocator.provider_history_info) is kept, such as V(365d), or from which date on. What ended
        before that is deleted.
      - By default all of it is kept.
    type: str
seealso:
  - module: bareon.allocator.provider_allocation
  - module: bareon.allocator.provider_info
"""

EXAMPLES = r"""
---
- name: Release what has ended
  bareon.allocator.provider_reap:
  register: reaped

- name: Keep what happened in the last year
  bareon.allocator.provider_reap:
    keep_history: 365d

- name: Report the owners
  ansible.builtin.debug:
    msg: "{{ item.name }} of {{ item.project }} ended at {{ item.expires_at }}"
  loop: "{{ reaped.ended }}"
  loop_control:
    label: "{{ item.name }}"
"""

RETURN = r"""
---
ended:
  description:
    - The consumers that were released, the one whose lease ended first before the others, each with C(consumer), its UUID, C(name),
      C(generation), C(project), C(user), C(consumer_type), C(claimed_at), C(expires_at) and C(allocations).
  returned: success
  type: list
  elements: dict
  sample: ["train-1"]
pruned:
  description: How many entries of the history were deleted.
  returned: success
  type: int
  sample: 0
recovered:
  description:
    - Set where the task found made what it, or an earlier run of the same task, had left in doubt, because the connection was lost while
      the change was being committed. RV(ignore:changed) is then true, although this run changed nothing, so that handlers are notified.
  returned: after a change that was in doubt
  type: bool
  sample: true
"""
