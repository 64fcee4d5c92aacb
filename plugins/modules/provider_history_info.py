#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin provider_history_info, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: provider_history_info
short_description: Report past allocations, with their begin and end
version_added: 1.1.0
description:
  - Returns the allocations that consumers have and have had, each with its beginning and its end.
  - The transaction that changes an allocation writes its past. M(bareon.allocator.provider_reap) prunes the past by age.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.database.kept
  - bareon.allocator.database.reads
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
options:
  since:
    description:
      - Only what ended after this, or has no end yet. A distance into the past, such as V(90m), V(2h) or V(7d), or a date, such as
        V(2030-12-31) or V(2030-12-31T18:00:00Z), which is in UTC unless it names a zone.
    type: str
  until:
    description: Only what began before this. Otherwise as O(since).
    type: str
  project:
    description: Only what belonged to this project. An empty string stands for consumers without a project.
    type: str
  provider:
    description: Only what was of this provider, by UUID or by the name that it had. Providers below it are not included.
    type: str
  limit:
    description: The most entries to return, the latest ones.
    type: int
    default: 10000
seealso:
  - module: bareon.allocator.provider_info
  - module: bareon.allocator.provider_reap
"""

EXAMPLES = r"""
---
- name: Look for consumers of a host in the last week
  bareon.allocator.provider_history_info:
    provider: host1
    since: 7d
  register: past

- name: Print it
  ansible.builtin.debug:
    msg: "{{ item.name }} had {{ item.amount }} {{ item.resource_class }} from {{ item.from }} until {{ item.until or 'now' }}"
  loop: "{{ past.history }}"
  loop_control:
    label: "{{ item.name }}"
"""

RETURN = r"""
---
history:
  description: What consumers have, the latest first, then what they have had, the last end first.
  returned: success
  type: list
  elements: dict
  contains:
    consumer:
      description: The UUID of the consumer.
      type: str
      sample: "037f5c68-ea5d-5e4a-83be-d5e3d6c6b843"
      returned: success
    name:
      description: Its name, or its UUID where it has none.
      type: str
      sample: "train-r01-h06-0"
      returned: success
    project:
      description: The project that it belonged to.
      type: str
      sample: "blue"
      returned: success
    user:
      description: The user that it belonged to.
      type: str
      sample: "user6"
      returned: success
    provider:
      description: The UUID of the provider.
      type: str
      sample: "b079f6f5-35b6-5376-9ea5-17af2071a569"
      returned: success
    provider_name:
      description: The name of the provider at the end.
      type: str
      sample: "r01-h06"
      returned: success
    resource_class:
      description: The resource class.
      type: str
      sample: "PGPU"
      returned: success
    amount:
      description: How much it was.
      type: int
      sample: 2
      returned: success
    from:
      description: Since when the consumer had this amount, null where an earlier release has written it.
      type: str
      sample: "2026-11-26T14:35:52Z"
      returned: success
    until:
      description: Until when, null while it still has it.
      type: str
      sample: "2026-11-26T14:35:54Z"
      returned: success
truncated:
  description: Whether there are more entries than O(limit).
  returned: success
  type: bool
  sample: false
"""
