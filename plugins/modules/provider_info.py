#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin provider_info, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: provider_info
short_description: Report what resource providers have and who uses it
version_added: 0.1.0
description:
  - Returns trees of providers with their inventories and usages, and allocations by consumer, by provider and by project.
  - Can check whether everything in the database fits together.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.database
options:
  providers:
    description:
      - UUIDs or names of providers. Only the trees that they belong to are returned, and what is allotted of these.
      - Default is all. One that is not there has no tree, and is warned of.
    type: list
    elements: str
  matching:
    description:
      - What a provider must satisfy by itself to be returned, with the keys of a group of M(bareon.allocator.provider_candidates),
        C(resources), C(required), C(forbidden), C(any_of), C(member_of), C(not_member_of) and C(in_tree).
      - C(resources) are amounts that it has free at once now. Only what is allotted of these providers is returned.
    type: dict
  consumers:
    description:
      - Names or UUIDs of consumers. Only what these have is returned as allocations. Default is all. One that has nothing here is warned
        of.
    type: list
    elements: str
  projects:
    description:
      - Only what the consumers of these projects have is returned as allocations, and added up. An empty text stands for consumers of no
        project. Default is all.
    type: list
    elements: str
  users:
    description: The same by the users for whom consumers were claimed. Together with O(projects), what fits both.
    type: list
    elements: str
  consumer_types:
    description: The same by the types of consumers, such as V(INSTANCE).
    type: list
    elements: str
  audit:
    description:
      - Whether to recompute everything from the rows of the database, and return what does not fit as RV(audit).
    type: bool
    default: false
attributes:
  action:
    description: Has an action plugin, so that it runs on the controller.
    support: full
  check_mode:
    description: Can run in check mode and return what it would return otherwise.
    support: full
    details:
      - Nothing is ever changed.
      - With C(--check) it sees what M(bareon.allocator.provider) and M(bareon.allocator.provider_allocation) would have changed before.
  diff_mode:
    description: Returns what has changed, or would, when in diff mode.
    support: N/A
    details:
      - Nothing is ever changed.
  idempotent:
    description: A second run changes nothing.
    support: full
    details:
      - Nothing is ever changed.
seealso:
  - module: bareon.allocator.provider
  - module: bareon.allocator.provider_allocation
  - plugin: bareon.allocator.usages
    plugin_type: lookup
"""

EXAMPLES = r"""
---
- name: Look at everything
  bareon.allocator.provider_info:
  register: ledger

- name: Print who uses what
  ansible.builtin.debug:
    msg: "{{ ledger.summary.splitlines() }}"

- name: List the GPUs that are free
  bareon.allocator.provider_info:
    matching:
      resources:
        PGPU: 1

- name: Look at what a project has on one host, and whether the books are right
  bareon.allocator.provider_info:
    providers:
      - host1
    projects:
      - web
    audit: true
"""

RETURN = r"""
---
providers:
  description: The providers, tree after tree, each before those below it, in the shape that O(world) takes.
  returned: success
  type: list
  elements: dict
trees:
  description: The roots, each with C(uuid), C(name) and C(children), which are of the same shape.
  returned: success
  type: list
  elements: dict
usages:
  description: By provider and class, its C(capacity), and how much is C(used) and C(free).
  returned: success
  type: dict
  sample:
    25a47fe7-23d2-59cc-ae5c-fb8b3d4f0d58:
      VCPU:
        capacity: 24
        free: 20
        used: 4
totals:
  description: The same by class, over all providers that are returned.
  returned: success
  type: dict
allocations:
  description: Amounts by consumer, provider and class, in the shape that O(world) takes.
  returned: success
  type: dict
allocations_by_provider:
  description: The same amounts by provider, consumer and class.
  returned: success
  type: dict
consumers:
  description: By consumer's UUID, its C(name), C(generation), C(project), C(user) and C(consumer_type).
  returned: success
  type: dict
claims:
  description:
    - The same as O(bareon.allocator.provider_allocation#module:consumers) takes it, so that it can be claimed again, in another ledger for
      example.
  returned: success
  type: list
  elements: dict
projects:
  description: Amounts by project and class. Consumers of no project are counted under an empty name.
  returned: success
  type: dict
users:
  description: The same by user.
  returned: success
  type: dict
consumer_types:
  description: By type of consumers, how many C(consumers) there are, and the amounts by class that they have as C(usages).
  returned: success
  type: dict
  sample:
    INSTANCE:
      consumers: 2
      usages:
        VCPU: 6
aggregates:
  description: The names of the aggregates that the providers are in, by UUID; the UUID again for one without a name.
  returned: success
  type: dict
custom_traits:
  description: Traits of your own that exist.
  returned: success
  type: list
  elements: str
custom_classes:
  description: Resource classes of your own that exist.
  returned: success
  type: list
  elements: str
summary:
  description: Who uses what, as a table to read.
  returned: success
  type: str
audit:
  description:
    - What does not fit; empty when everything does.
    - C(kind) is V(sum), V(overfull), V(piece), V(inventory), V(malformed), V(loop), V(dangling), V(lost) or V(idle). Only V(overfull)
      and V(piece) can come of tasks, by changing the inventory under what is allotted of it.
  returned: with O(audit=true)
  type: list
  elements: dict
  contains:
    kind:
      description: What sort of thing it is.
      type: str
      returned: success
    about:
      description: The UUID of the provider or consumer.
      type: str
      returned: success
    name:
      description: Its name, or the UUID of a consumer without one.
      type: str
      returned: success
    says:
      description: The finding as a sentence.
      type: str
      returned: success
"""
