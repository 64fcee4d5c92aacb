#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin provider_candidates, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: provider_candidates
short_description: Find which resource providers can satisfy a request
version_added: 1.0.0
description:
  - Returns allocation candidates, as OpenStack Placement does. Each is a complete way to satisfy a request from a tree of resource
    providers. If there are none, it says why.
  - Changes nothing. To claim a candidate, hand its C(allocations) to M(bareon.allocator.provider_allocation).
  - An amount fits an inventory if it is free, from C(min_unit) to C(max_unit), and either C(min_unit) itself or a multiple of C(step_size).
    If several groups take from one provider, their sum is checked as well.
  - A provider with the trait C(MISC_SHARES_VIA_AGGREGATE) can be used by every tree that has an aggregate in common with it.
  - All mistakes in a request are reported at once, each with its place.
  - Exactly one of O(groups), O(query) and O(one_of) is required.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.database
  - bareon.allocator.database.reads
  - bareon.allocator.attributes.reads
  - bareon.allocator.attributes.controller
  - bareon.allocator.request
requirements:
  - numpy on the controller
options:
  prefer:
    description:
      - "What is better to have than not, up to 8 of C({trait: X, weight: n}) or C({aggregate: X, weight: n}). A weight is 1 to 1000000, by
        default 1."
      - A candidate has it if one of its providers, or the root of its tree, has the trait or is in the aggregate. The candidates with the
        largest sum of weights come first, and those of equal weight are sorted by O(order).
    type: list
    elements: dict
  one_of:
    description:
      - Requests in order of preference, each with O(groups) or O(query) and the options that belong to these, O(with), O(not_with) and
        O(prefer). The candidates of the first come before those of the second.
      - O(with), O(not_with) and O(prefer) of the task are those of every request that does not say its own.
      - Mutually exclusive with O(groups), O(query) and the options that belong to these.
    type: list
    elements: dict
  limit:
    description:
      - The most candidates to return. The search stops when it has them.
      - Takes precedence over the C(limit) of O(query). If neither is given, it is 1000.
    type: int
  distinct:
    description:
      - With V(allocations), candidates that take the same amounts from the same providers count as one.
      - With V(mappings), every assignment of groups to providers is a candidate, as in OpenStack Placement.
    type: str
    choices: [allocations, mappings]
    default: allocations
  order:
    description:
      - V(none) sorts candidates by the name of their tree.
      - V(spread) puts trees, and providers within a tree, first where the smallest share will be in use. Every tree gives one candidate
        before any tree gives a second.
      - V(pack) puts those first where the largest share will be in use. A tree gives all its candidates before the next tree.
      - The order depends on nothing but the providers and the request, so it is the same in every run.
    type: str
    choices: [none, spread, pack]
    default: none
  budget:
    description:
      - The most choices that the search tries. If it stops for this reason, RV(truncated) is true.
      - The search also stops when the candidates name 300,000 providers and groups together, so that they fit into memory.
    type: int
    default: 5000000
  explain_below:
    description:
      - Return RV(why) if there are fewer candidates than this number.
      - A database with more than 20,000 providers is not read as a whole for this. Providers are counted by indexes, up to 100,000, and
        RV(why.roots), RV(why.combination) and RV(why.relax) are empty.
    type: int
    default: 1
  summaries:
    description:
      - Whether to return RV(summaries), a description of all providers in the trees that candidates take something from.
    type: bool
    default: false
seealso:
  - module: bareon.allocator.provider
  - module: bareon.allocator.provider_allocation
  - module: bareon.allocator.provider_info
"""

EXAMPLES = r"""
---
- name: Register a host with two NUMA nodes, one of which has an accelerator
  bareon.allocator.provider:
    providers:
      - name: host1
      - name: host1 numa0
        parent: host1
        inventories:
          VCPU: {total: 8}
          MEMORY_MB: {total: 16384}
      - name: host1 numa1
        parent: host1
        inventories:
          VCPU: {total: 8}
          MEMORY_MB: {total: 16384}
      - name: host1 fpga
        parent: host1 numa1
        inventories:
          FPGA: {total: 1}

- name: Find processors, memory and an accelerator of the same NUMA node
  bareon.allocator.provider_candidates:
    groups:
      _COMPUTE:
        resources:
          VCPU: 2
          MEMORY_MB: 512
      _ACCEL:
        resources:
          FPGA: 1
    same_subtree:
      - [_COMPUTE, _ACCEL]
    order: spread
    limit: 5
  register: found

- name: Claim the first of them
  bareon.allocator.provider_allocation:
    consumer: 0f5e1c1c-93f5-4a9b-9c0c-6cbd7e8b9a01
    allocations: "{{ found.candidates[0].allocations }}"

- name: Ask the same question in the words of OpenStack Placement
  bareon.allocator.provider_candidates:
    query: resources_COMPUTE=VCPU:2,MEMORY_MB:512&resources_ACCEL=FPGA:1&same_subtree=_COMPUTE,_ACCEL
  register: none_left

- name: Read why nothing fits any more
  ansible.builtin.debug:
    msg: "{{ none_left.why.says }}"

- name: Take memory from both NUMA nodes of a host, without any database
  bareon.allocator.provider_candidates:
    world:
      providers:
        - name: host2
        - {name: host2 numa0, parent: host2, inventories: {MEMORY_MB: {total: 4096}}}
        - {name: host2 numa1, parent: host2, inventories: {MEMORY_MB: {total: 4096}}}
    groups:
      "":
        resources:
          MEMORY_MB: 6144
    can_split:
      - MEMORY_MB

- name: Find a place for a replica, away from the first one, rather on flash, and with fewer CPUs if need be
  bareon.allocator.provider_candidates:
    one_of:
      - groups: {"": {resources: {VCPU: 8}}}
      - groups: {"": {resources: {VCPU: 4}}}
    not_with: [database1]
    prefer:
      - {trait: STORAGE_DISK_SSD, weight: 2}
    limit: 1
"""

RETURN = r"""
---
candidates:
  description: The candidates, sorted by O(order).
  returned: success
  type: list
  elements: dict
  contains:
    allocations:
      description: Amounts by provider and class, as M(bareon.allocator.provider_allocation) takes them.
      type: dict
      sample: {"e168e0d7-86dc-52ed-8304-4ab1620a6234": {"PGPU": 1}}
      returned: success
    mappings:
      description: The providers of each group, by suffix. Only the group with the empty suffix can have several.
      type: dict
      sample: {"": ["e168e0d7-86dc-52ed-8304-4ab1620a6234"]}
      returned: success
    score:
      description: The mean share, from 0 to 1, that will be in use of the inventories that the candidate takes from.
      type: float
      sample: 0.375
      returned: success
  sample:
    - allocations:
        25a47fe7-23d2-59cc-ae5c-fb8b3d4f0d58:
          MEMORY_MB: 512
          VCPU: 2
      mappings:
        _COMPUTE:
          - 25a47fe7-23d2-59cc-ae5c-fb8b3d4f0d58
      score: 0.14
alternatives:
  description: The number of the request of O(one_of) that each candidate satisfies, from 0.
  returned: with O(one_of)
  type: list
  elements: int
  sample: []
truncated:
  description: Whether O(budget) or the size of the candidates ended the search, so that there may be more of them.
  returned: success
  type: bool
  sample: false
names:
  description: The names of all providers of the candidates, by UUID.
  returned: success
  type: dict
  sample: {"2356ed08-00b0-50cd-ae36-d005387f6a20": "r01-h07"}
summaries:
  description:
    - All providers of the trees that candidates take something from, by UUID. Each has C(name), C(parent) and C(root) (both UUIDs),
      C(generation), C(traits), and C(resources), which gives C(capacity) and C(used) for each class.
  returned: with O(summaries=true)
  type: dict
  sample: {"gpu1": {"PGPU": {"capacity": 8, "used": 2}}}
why:
  description: Why there are no candidates, or so few.
  returned: with fewer candidates than O(explain_below)
  type: dict
  contains:
    says:
      description: The reasons, as sentences.
      type: list
      elements: str
      sample: ["no provider has 1000 PGPU; the most is 8"]
      returned: success
    first:
      description: The first constraint that leaves no provider. Null if every single constraint leaves some.
      type: dict
      sample: {"where": "group", "group": "", "kind": "room"}
      returned: success
    roots:
      description: How many trees there are, and how many are left after each constraint on roots.
      type: dict
      sample: {"trees": 10, "constraints": []}
      returned: success
    groups:
      description: For each suffix, how many providers are left after each constraint, and how many trees they are in.
      type: dict
      sample: {"": {"PGPU": 1000}}
      returned: success
    combination:
      description: How many trees are left as one group after the other is added.
      type: list
      elements: dict
      sample: [{"group": "", "says": "The group without a suffix has a provider in the same tree", "left": 0}]
      returned: success
    excluding:
      description:
        - The smallest set of C(groups), by suffix, that exclude each other although each of them alone has a provider. C(because) names the
          constraints that make them do so; it is empty if the amounts do. Null where this is not the reason, or where the reason is not
          known.
      type: dict
      sample: {"gpu1": 8}
      returned: success
    busy:
      description:
        - The providers that lack nothing but room, up to 20, where that is the reason, each with C(group), C(provider), C(name),
          C(resource_class), C(free) and C(used_by). The last lists C(consumer), C(name), C(project), C(user), C(expires_at) and
          C(amount), and with C(enough) whether there would be room if this one gave its amount back.
        - Empty where no provider has what is asked for, and in a database with more than 20,000 providers.
      type: list
      elements: dict
      sample: ["gpu1"]
      returned: success
    relax:
      description: Single changes to the request each of which would bring more candidates, with the C(place) of the argument.
      type: list
      elements: dict
      sample: [{"place": "groups.''.resources.PGPU", "says": "with 8 PGPU instead of 1000"}]
      returned: success
    alternatives:
      description: With O(one_of), the same for each of its requests. RV(why.says) speaks of all of them, the rest of RV(why) of the first.
      type: list
      elements: dict
      sample: []
      returned: with O(one_of)
    largest:
      description: For each amount, the largest piece that is C(free), and the provider that has it.
      type: list
      elements: dict
      sample: [{"provider": "gpu1", "PGPU": 8}]
      returned: success
msg:
  description: The reasons, as one text.
  returned: with fewer candidates than O(explain_below)
  type: str
  sample: no provider has 1000 PGPU
"""
