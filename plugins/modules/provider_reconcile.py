#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin provider_reconcile, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: provider_reconcile
short_description: Compare the ledger with what really exists
version_added: 1.1.0
description:
  - Says which consumers of the ledger do not exist, although they still have something, and which exist without a claim.
  - Releases the former if O(release=true).
  - Run it after a restore from a backup, after a power cut of a controller with an SQLite ledger, and once in a while where jobs may die
    without giving anything back.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.database.kept
  - bareon.allocator.database.writes
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.controller
options:
  existing:
    description:
      - The consumers that exist, each by name or UUID, or as a mapping with C(consumer) and C(project).
      - An entry without C(project) stands for the consumers of that name in all projects, so that none of them is stale.
      - With O(release=true) it must not be empty.
    type: list
    elements: raw
    required: true
  project:
    description: Compare only consumers of this project.
    type: str
  user:
    description: Compare only consumers of this user.
    type: str
  consumer_type:
    description: Compare only consumers of this type.
    type: str
  providers:
    description:
      - Compare only consumers that have something in the tree of one of these providers, by UUID or name. Give this where O(existing) is
        what runs on some of the hosts.
    type: list
    elements: str
  older_than:
    description:
      - Leave consumers alone that have claimed something since, a distance such as V(15m), or a date. It keeps the claims of jobs that have
        a place and have not started yet.
      - A consumer whose time of claim is not known counts as old.
    type: str
  release:
    description:
      - Whether to release the consumers that do not exist, whatever their owner.
    type: bool
    default: false
seealso:
  - module: bareon.allocator.provider_allocation
  - module: bareon.allocator.provider_reap
  - module: bareon.allocator.provider_restore
"""

EXAMPLES = r"""
---
- name: Compare the claims on a host with what runs there
  bareon.allocator.provider_reconcile:
    existing: "{{ running }}"
    providers:
      - host1
    older_than: 15m
  register: compared

- name: Show what claims nothing real
  ansible.builtin.debug:
    msg: "{{ compared.stale | map(attribute='name') | list }}"

- name: Release it
  bareon.allocator.provider_reconcile:
    existing: "{{ running }}"
    providers:
      - host1
    older_than: 15m
    release: true
"""

RETURN = r"""
---
stale:
  description:
    - The consumers that do not exist, and were released if O(release=true), each with C(consumer), its UUID, C(name), C(generation),
      C(project), C(user), C(consumer_type), C(claimed_at), C(expires_at) and C(allocations).
  returned: success
  type: list
  elements: dict
  sample: ["train-9"]
unclaimed:
  description: The entries of O(existing) that have nothing in the ledger, each with C(consumer) and C(project).
  returned: success
  type: list
  elements: dict
  sample: [{"consumer": "x", "project": null}]
recovered:
  description:
    - Set where the task found made what it, or an earlier run of the same task, had left in doubt, because the connection was lost while
      the change was being committed. RV(ignore:changed) is then true, although this run changed nothing, so that handlers are notified.
  returned: after a change that was in doubt
  type: bool
  sample: true
"""
