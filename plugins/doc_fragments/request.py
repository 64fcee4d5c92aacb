# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of a request for resources."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragment `request`; REQUEST_ARGUMENTS of plugin_utils/_provider/arguments.py has the matching arguments."""

    DOCUMENTATION = r"""
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
"""
