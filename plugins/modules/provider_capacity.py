#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin provider_capacity, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: provider_capacity
short_description: Count how many more consumers with a request fit
version_added: 1.1.0
description:
  - Returns how many consumers could get the same request, all at the same time, with what is free now.
  - The request has the options of M(bareon.allocator.provider_candidates). Exactly one of O(groups) and O(query) is required.
  - Nothing is claimed, and quotas are not considered.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.database
  - bareon.allocator.database.reads
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
  - bareon.allocator.request
options:
  budget:
    description:
      - The most choices that the search tries. If it stops for this reason, RV(exact) is false.
      - The search also stops when the candidates name 300,000 providers and groups together, so that they fit into memory.
    type: int
    default: 5000000
seealso:
  - module: bareon.allocator.provider_candidates
  - module: bareon.allocator.provider_allocation
"""

EXAMPLES = r"""
---
- name: Count how many more virtual machines fit
  bareon.allocator.provider_capacity:
    groups:
      "":
        resources:
          VCPU: 4
          MEMORY_MB: 8192
  register: left

- name: Warn before the fleet is full
  ansible.builtin.debug:
    msg: "There is room for {{ left.count }} more, {{ left.by_root }}"
"""

RETURN = r"""
---
count:
  description: How many consumers with this request fit. If RV(exact) is false, at least as many do.
  returned: success
  type: int
  sample: 38
exact:
  description:
    - Whether no more fit. It is false if O(budget) or the size of the answer ended the search, with O(can_split), or in the rare case that
      the ways to combine candidates are too many to try.
  returned: success
  type: bool
  sample: true
by_root:
  description: One way to place that many, as a number by the name of the root of each tree. Trees without room are left out.
  returned: success
  type: dict
  sample:
    host1: 12
    host2: 3
"""
