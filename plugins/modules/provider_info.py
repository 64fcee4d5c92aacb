#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin provider_info, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: provider_info
short_description: Report the inventories of resource providers and their use
version_added: 1.0.0
description:
  - Returns trees of providers with their inventories and usages, and allocations by consumer, provider and project.
  - Can also check the database for contradictions.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.database
  - bareon.allocator.database.reads
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
options:
  providers:
    description:
      - UUIDs or names of providers. Only their trees are returned, with the allocations in these trees.
      - Default is all. A warning names those that do not exist.
    type: list
    elements: str
  matching:
    description:
      - What a provider must satisfy, by itself, to be returned. It has the keys of a group of M(bareon.allocator.provider_candidates),
        C(resources), C(required), C(forbidden), C(any_of), C(member_of), C(not_member_of) and C(in_tree).
      - C(resources) are amounts that must be free now. Only allocations from these providers are returned.
    type: dict
  consumers:
    description:
      - Names or UUIDs of consumers, of all projects. Only their allocations are returned. Default is all. A warning names those that have
        none.
    type: list
    elements: str
  projects:
    description:
      - Only allocations of consumers of these projects are returned and added up. An empty string stands for consumers without a project.
        Default is all.
    type: list
    elements: str
  users:
    description: The same for users. With O(projects), a consumer must match both.
    type: list
    elements: str
  consumer_types:
    description: The same for types of consumers, such as V(INSTANCE).
    type: list
    elements: str
  audit:
    description:
      - Whether to recompute everything from the rows of the database and return contradictions as RV(audit).
    type: bool
    default: false
seealso:
  - module: bareon.allocator.provider
  - module: bareon.allocator.provider_allocation
  - plugin: bareon.allocator.usages
    plugin_type: lookup
  - plugin: bareon.allocator.ledger_to_html
    plugin_type: filter
"""

EXAMPLES = r"""
---
- name: Look at everything
  bareon.allocator.provider_info:
  register: ledger

- name: Print the use of all providers
  ansible.builtin.debug:
    msg: "{{ ledger.summary.splitlines() }}"

- name: List the GPUs that are free
  bareon.allocator.provider_info:
    matching:
      resources:
        PGPU: 1

- name: Look at what a project has on one host, and check the ledger
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
  description: The providers in the form that O(world) takes, tree by tree, parents before children.
  returned: success
  type: list
  elements: dict
  sample: [{"name": "gpu1", "inventories": {"PGPU": {"total": 8}}}]
trees:
  description: The roots, each with C(uuid), C(name) and C(children), which have the same form.
  returned: success
  type: list
  elements: dict
  sample: [{"uuid": "e168e0d7-86dc-52ed-8304-4ab1620a6234", "name": "r01-h01", "children": []}]
usages:
  description: For each provider and class, C(capacity), C(used) and C(free).
  returned: success
  type: dict
  sample:
    25a47fe7-23d2-59cc-ae5c-fb8b3d4f0d58:
      VCPU:
        capacity: 24
        free: 20
        used: 4
totals:
  description: The same for each class, over all providers that are returned.
  returned: success
  type: dict
  sample: {"DISK_GB": {"capacity": 2000, "used": 0, "free": 2000}}
allocations:
  description: Amounts by consumer, provider and class, in the form that O(world) takes.
  returned: success
  type: dict
  sample: {"037f5c68-ea5d-5e4a-83be-d5e3d6c6b843": {"b079f6f5-35b6-5376-9ea5-17af2071a569": {"PGPU": 2, "VCPU": 16}}}
allocations_by_provider:
  description: The same amounts by provider, consumer and class.
  returned: success
  type: dict
  sample: {"gpu1": {"train-1": {"PGPU": 2}}}
consumers:
  description:
    - The consumers by UUID, each with C(name), C(generation), C(project), C(user), C(consumer_type), C(claimed_at) and C(expires_at).
    - A consumer whose lease has ended has nothing, and is not among them.
  returned: success
  type: dict
  sample: {"train-1": {"project": "red"}}
claims:
  description:
    - The same allocations in the form that O(bareon.allocator.provider_allocation#module:consumers) takes, to claim them again, for example
      in another ledger.
  returned: success
  type: list
  elements: dict
  sample: [{"consumer": "train-1", "allocations": {"gpu1": {"PGPU": 2}}}]
projects:
  description: Amounts by project and class. Consumers without a project are counted under an empty name.
  returned: success
  type: dict
  sample: {"blue": {"PGPU": 34, "VCPU": 216}}
users:
  description: The same by user.
  returned: success
  type: dict
  sample: {"user0": {"PGPU": 6, "VCPU": 48}, "user1": {"PGPU": 8, "VCPU": 16}, "user2": {"PGPU": 6, "VCPU": 48}}
quotas:
  description: For each project with a quota and each class that it limits, the C(limit) and how much is C(used).
  returned: success
  type: dict
  sample: {"red": {"PGPU": {"limit": 100, "used": 0}}}
consumer_types:
  description: For each type of consumer, how many C(consumers) there are, and their amounts by class as C(usages).
  returned: success
  type: dict
  sample:
    INSTANCE:
      consumers: 2
      usages:
        VCPU: 6
aggregates:
  description: The names of the aggregates that the providers are in, by UUID. An aggregate without a name has its UUID instead.
  returned: success
  type: dict
  sample: {"10231041-1d4e-504b-9e1d-a2d1662f2c25": "hall", "5a070e3a-1f1b-5c4c-be01-cdfe39668fec": "rack1"}
custom_traits:
  description: The custom traits that exist.
  returned: success
  type: list
  elements: str
  sample: ["CUSTOM_NVLINK"]
custom_classes:
  description: The custom resource classes that exist.
  returned: success
  type: list
  elements: str
  sample: ["CUSTOM_FPGA"]
summary:
  description: Inventories and their consumers, as a table to read.
  returned: success
  type: str
  sample: "1 of 2 instances move in 1 stage, 1000 MiB are copied"
read_at:
  description: When this was read, by the clock of the database.
  returned: success
  type: str
  sample: "2026-11-26T14:00:00Z"
audit:
  description:
    - The contradictions that were found, or an empty list.
    - C(kind) is V(sum), V(overfull), V(piece), V(inventory), V(malformed), V(loop), V(dangling), V(lost), V(idle) or V(released).
      Only V(overfull) and V(piece) can be caused by tasks, which may change an inventory that is in use.
  returned: with O(audit=true)
  type: list
  elements: dict
  contains:
    kind:
      description: The kind of contradiction.
      type: str
      sample: over_capacity
      returned: success
    about:
      description: The UUID of the provider or consumer.
      type: str
      sample: provider
      returned: success
    name:
      description: The name of the provider or consumer, or the UUID of a consumer that has no name.
      type: str
      sample: gpu1
      returned: success
    says:
      description: The finding, as a sentence.
      type: str
      sample: it has no place in the group
      returned: success
"""
