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
version_added: 1.0.0
description:
  - Returns how many consumers could get the same request, one beside the other, with what is free now.
  - The request has the options of M(bareon.allocator.provider_candidates).
  - Nothing is claimed, and quotas are not considered.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.database
  - bareon.allocator.database.reads
options:
  groups:
    description:
      - What is requested, as groups by suffix. A suffix has up to 64 of the characters a-z, A-Z, 0-9, V(_) and V(-). One group may have an
        empty suffix.
      - A group with a suffix is satisfied by one provider.
      - The group with the empty suffix may take each resource class from a different provider of the same tree. Together these providers
        must have the required traits; none of them may have a forbidden one.
      - A group may request no resources. It then stands for a provider with certain traits or aggregates, and must be named in
        O(same_subtree).
      - C(resources) are amounts by resource class.
      - C(required) lists traits that the provider must have, C(forbidden) those that it must not have. C(any_of) is a list of lists of
        traits; the provider must have at least one trait of each list. A plain list of traits counts as one such list.
      - C(member_of) lists aggregates, by name or UUID, that the provider must be in. Where an entry is itself a list, one of its aggregates
        is enough. C(not_member_of) lists aggregates that the provider must not be in. For the group with the empty suffix it is also enough
        if the root of the tree is in the aggregate; the root must not be in a forbidden one.
      - C(in_tree) is the UUID or the name of a provider. Only the tree that it belongs to is searched.
      - Exactly one of O(groups) and O(query) is required.
    type: dict
  same_subtree:
    description:
      - Lists of suffixes. The providers of the groups in one list must be in one subtree. That is, one of them is the ancestor of all
        others, or they are all the same provider. A plain list of suffixes counts as one such list.
      - A suffix with V(!) before it is kept apart. Its provider must not be in one subtree with the others of the list.
    type: list
    elements: raw
  root_required:
    description: Traits that the root of a candidate's tree must have, whether or not anything is taken from the root itself.
    type: list
    elements: str
  root_forbidden:
    description: Traits that the root of a candidate's tree must not have.
    type: list
    elements: str
  root_member_of:
    description:
      - Aggregates, by name or UUID, that the root of a candidate's tree must be in. Where an entry is itself a list, one of its aggregates
        is enough. An aggregate with V(!) before it is one that the root must not be in.
    type: list
    elements: raw
  group_policy:
    description:
      - With V(isolate), every group with a suffix gets a provider of its own. With V(none), the default, groups may share one.
      - Mutually exclusive with O(isolate).
    type: str
    choices: [none, isolate]
  isolate:
    description:
      - Suffixes, or lists of them. The provider of each named group satisfies no other group with a suffix, whether that other group is
        named here or not. The group with the empty suffix is exempt.
    type: list
    elements: raw
  can_split:
    description:
      - Resource classes that the group with the empty suffix may take from several providers of a tree. As few providers as possible are
        used. Each part keeps to the limits of its provider. The first provider by name gives as much as it can, then the second.
    type: list
    elements: str
  query:
    description:
      - The request as a query string of OpenStack Placement's C(GET /allocation_candidates). It replaces O(groups) and the options that
        belong to it. C(isolate), C(can_split), C(root_member_of) and C(!) in C(same_subtree) are understood as well.
    type: str
  with:
    description:
      - Consumers, by name or UUID. A candidate must be on a root where each of them has something.
      - What a consumer has of a sharing provider only counts if it has nothing else. A consumer that has nothing is on no root.
      - A name is that of a consumer without a project, or else of the only consumer of that name. In
        M(bareon.allocator.provider_allocation) it is that of a consumer of the same project first, and the consumer that is placed is left
        out, so that all members of a group can have the same list.
    type: list
    elements: str
  not_with:
    description:
      - Consumers, by name or UUID, as in O(with). A candidate must be on a root where none of them has anything.
      - It holds for this request alone, and for as long as the search takes. A later request of another consumer has to name this one.
    type: list
    elements: str
  drained:
    description:
      - Whether drained providers may be candidates, see O(bareon.allocator.provider#module:drained).
    type: str
    choices: [exclude, include]
    default: exclude
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
exact:
  description:
    - Whether no more fit. It is false if O(budget) or the size of the answer ended the search, with O(can_split), or in the rare case that
      the ways to combine candidates are too many to try.
  returned: success
  type: bool
by_root:
  description: One way to place that many, as a number by the name of the root of each tree. Trees without room are left out.
  returned: success
  type: dict
  sample:
    host1: 12
    host2: 3
"""
