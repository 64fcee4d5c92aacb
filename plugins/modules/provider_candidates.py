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
version_added: 0.1.0
description:
  - Returns allocation candidates, each of them a complete way to satisfy a request with trees of resource providers,
    as OpenStack Placement does, and says why where there are none.
  - Changes nothing. A candidate's C(allocations) are what M(bareon.allocator.provider_allocation) takes.
  - An amount fits an inventory if it is free, from C(min_unit) to C(max_unit), and either C(min_unit) itself or a multiple of C(step_size).
    What several groups take of one provider is added up and checked again.
  - A provider with the trait C(MISC_SHARES_VIA_AGGREGATE) can be used by every tree that has an aggregate in common with it.
  - All mistakes of a request are reported at once, each with its place.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.database
requirements:
  - numpy on the controller
options:
  groups:
    description:
      - What is asked for, by suffix, which has up to 64 of the characters a-z, A-Z, 0-9, V(_) and V(-).
      - All that a group with a suffix asks for comes from one provider.
      - Of the group whose suffix is empty each resource class may come from another provider of the same tree. Its required traits must
        be had by its providers together; no provider of it may have a forbidden one.
      - A group may ask for no resources. Then it stands for a provider with certain traits or aggregates, and must be named
        in O(same_subtree).
      - C(resources) are amounts by resource class.
      - C(required) are traits that the provider must have, C(forbidden) those that it must not. C(any_of) is a list of lists of traits,
        of each of which the provider must have at least one; a list of traits alone is one such list.
      - C(member_of) are aggregates, by name or UUID, that the provider must be in. An entry that is a list is one of which a single
        aggregate is enough. C(not_member_of) are those that the provider must not be in. Of the group whose suffix is empty, the root of
        the tree may be in the aggregate instead, in one of the entries like in another, but must not be in a forbidden one.
      - C(in_tree) is the UUID or the name of a provider. Only its tree is looked at.
      - Exactly one of O(groups) and O(query) is required.
    type: dict
  same_subtree:
    description:
      - Lists of suffixes. The providers of a list must be in one subtree, that is, one of them is the ancestor of all others, or they
        are one and the same. A list of suffixes alone is one such list.
      - A suffix with V(!) before it is kept out. Its provider must not be in one subtree with the others of its list.
    type: list
    elements: raw
  root_required:
    description: Traits that the root of a candidate's tree must have, whether or not it gives anything.
    type: list
    elements: str
  root_forbidden:
    description: Traits that the root of a candidate's tree must not have.
    type: list
    elements: str
  root_member_of:
    description:
      - Aggregates, by name or UUID, that the root of a candidate's tree must be in. An entry that is a list is one of which a single
        aggregate is enough; an aggregate with V(!) before it is one that the root must not be in.
    type: list
    elements: raw
  group_policy:
    description:
      - With V(isolate) every group with a suffix comes from a provider of its own. With V(none), the default, groups may share one.
      - Mutually exclusive with O(isolate).
    type: str
    choices: [none, isolate]
  isolate:
    description:
      - Suffixes, or lists of them. The provider of each satisfies no other group with a suffix, whether that is named here or not.
        The group whose suffix is empty is exempt.
    type: list
    elements: raw
  can_split:
    description:
      - Resource classes of the group whose suffix is empty that may come from several providers of a tree. As few as possible are tried
        first. Each part keeps to the limits of its provider, and takes as much as it can of the first one by name, then of the second.
    type: list
    elements: str
  query:
    description:
      - The request as the query string of OpenStack Placement's C(GET /allocation_candidates), in place of O(groups) and all that
        goes with it. C(isolate), C(can_split), C(root_member_of) and C(!) in C(same_subtree) are understood, too.
    type: str
  limit:
    description:
      - How many candidates are returned, at most. No more than these are looked for.
      - Goes before the C(limit) of O(query).
    type: int
  distinct:
    description:
      - With V(allocations) candidates that take the same amounts from the same providers count as one.
      - With V(mappings) every assignment of groups to providers is a candidate, as in OpenStack Placement.
    type: str
    choices: [allocations, mappings]
    default: allocations
  order:
    description:
      - V(none) goes by the names of the trees.
      - V(spread) begins with the trees, and within them the providers, of which the least share will be in use, and takes one candidate
        of every tree before a second one of any.
      - V(pack) begins with those of which the greatest share will be in use, and takes all candidates of a tree before the next tree.
      - All of them are total orders that depend on nothing but the providers and the request.
    type: str
    choices: [none, spread, pack]
    default: none
  budget:
    description: How many choices are looked at, at most. A search that ends for this reason says so in RV(truncated).
    type: int
    default: 1000000
  explain_below:
    description:
      - Return RV(why) if there are fewer candidates than this.
      - A database with more than 20,000 providers is not read whole for that. It counts by indexes, up to 100,000, and leaves
        RV(why.roots), RV(why.combination) and RV(why.relax) empty.
    type: int
    default: 1
  summaries:
    description:
      - Whether to return what all providers have, use and are in the trees that candidates take something from, as RV(summaries).
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

- name: Ask the same as OpenStack Placement is asked
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
"""

RETURN = r"""
---
candidates:
  description: The candidates, in the order that O(order) says.
  returned: success
  type: list
  elements: dict
  contains:
    allocations:
      description: Amounts by provider and class, as M(bareon.allocator.provider_allocation) takes them.
      type: dict
      returned: success
    mappings:
      description: The providers of each group, by suffix. Only the group whose suffix is empty can have several.
      type: dict
      returned: success
    score:
      description: The mean share that will be in use, from 0 to 1, of all that the candidate takes from.
      type: float
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
truncated:
  description: Whether O(budget) ended the search, so that there may be more candidates.
  returned: success
  type: bool
names:
  description: The names of all providers of the candidates, by UUID.
  returned: success
  type: dict
summaries:
  description:
    - By UUID each provider of the trees that candidates take something from, with C(name), C(parent) and C(root) (UUIDs), C(generation),
      C(traits), and C(resources), which has the C(capacity) and what is C(used) of each class.
  returned: with O(summaries=true)
  type: dict
why:
  description: Why there are no candidates, or so few.
  returned: with fewer candidates than O(explain_below)
  type: dict
  contains:
    says:
      description: The reasons as sentences.
      type: list
      elements: str
      returned: success
    first:
      description: The first constraint that leaves nothing, or nothing if single constraints leave something everywhere.
      type: dict
      returned: success
    roots:
      description: How many trees there are, and how many are left after each constraint on roots.
      type: dict
      returned: success
    groups:
      description: By suffix, how many providers are left after each constraint, and how many trees have one of them.
      type: dict
      returned: success
    combination:
      description: How many trees have a provider for one group after the other.
      type: list
      elements: dict
      returned: success
    excluding:
      description:
        - The suffixes of C(groups) that exclude each other although each of them has a provider, as few as possible, and the constraints
          that they do it C(because) of; none where it is the amounts. Nothing where that is not the reason, or where it cannot be told.
      type: dict
      returned: success
    relax:
      description: Every single change of the request that brings more candidates, with the C(place) of the argument.
      type: list
      elements: dict
      returned: success
    largest:
      description: For each amount the largest piece that is C(free), and the provider that has it.
      type: list
      elements: dict
      returned: success
msg:
  description: The reasons in one text.
  returned: with fewer candidates than O(explain_below)
  type: str
"""
