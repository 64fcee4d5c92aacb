#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin provider, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: provider
short_description: Register, change and remove resource providers
version_added: 1.0.0
description:
  - A resource provider is anything that has a limited amount of something, such as a host, a NUMA node, a network card or a
    storage pool. Providers form trees. Inventories say what a provider has; M(bareon.allocator.provider_allocation) records its use.
  - Runs on the controller and keeps the providers in a database.
  - Compares the declaration with the database. Parts that are not given stay as they are.
  - Many providers may be declared in one task, in any order. All of them are written, or none.
  - Every change raises the generation of the providers that it affects. A provider that moves takes those below it along.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.database
  - bareon.allocator.database.writes
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.controller
options:
  uuid:
    description:
      - Identity of the provider, as 8-4-4-4-12 hexadecimal digits. Needed to rename a provider.
      - Default for a new provider is derived from its name, so it is the same everywhere.
    type: str
  name:
    description:
      - Name of the provider, up to 200 printable characters. No two providers have the same one.
      - Needed for a new provider. One of O(uuid), O(name), O(providers), O(custom_traits) and O(custom_classes) is required.
    type: str
  parent:
    description:
      - UUID or name of the provider that this one is part of. The same task may register it.
      - Empty text makes the provider the root of a tree of its own.
    type: str
  inventories:
    description:
      - What the provider has, by resource class. The list is complete. A class that is missing here is removed, unless it is in use.
      - A class is a standard one of the library os-resource-classes, such as V(VCPU), V(MEMORY_MB) or V(DISK_GB), or a name of your own
        that begins with C(CUSTOM_).
      - Each class has a mapping with the keys below, or a number, which is its C(total).
      - C(total) is the amount that there is, from 1.
      - C(reserved) is the amount to keep back, default 0.
      - C(allocation_ratio) is how far the rest may be overcommitted, default 1.0.
        The capacity is (C(total) - C(reserved)) x C(allocation_ratio), rounded down.
      - C(min_unit) and C(max_unit) are the least and the most that one consumer may have, default 1 and 2147483647.
      - An amount must be a multiple of C(step_size), unless it is C(min_unit). Default is 1.
      - A warning names inventories that could never serve a request.
    type: dict
  traits:
    description:
      - Qualities of the provider, as a complete list. Standard names are those of the library os-traits, such as V(HW_CPU_X86_AVX2).
        A name of your own begins with C(CUSTOM_).
      - V(MISC_SHARES_VIA_AGGREGATE) makes its inventories available to every tree with which it has an aggregate in common.
    type: list
    elements: str
  aggregates:
    description:
      - The groups of providers that it belongs to, as a complete list, by name or by UUID.
      - A name, such as V(rack-a), stands for one UUID, which is the same everywhere. It has up to 200 letters, digits, blanks and
        C(./@+-_).
    type: list
    elements: str
  generation:
    description:
      - The generation at which the caller saw the provider. If there is something to change and the generation has risen since, the task
        fails.
    type: int
  drained:
    description:
      - Whether nothing more is given of the provider, nor of those below it, for example before it is repaired or switched off. It is
        neither a candidate nor claimed on, unless a task says O(bareon.allocator.provider_allocation#module:drained=include). What
        consumers have stays theirs.
      - V(true), V(false), or a mapping with C(reason), which refusals and C(why) show, and C(until), a time from now, such as V(2h) or
        V(7d), or a date, after which it is over by itself.
      - By default it stays as it was. The clock is that of the database.
    type: raw
  replaces:
    description:
      - UUID or name of a provider whose place this one takes, such as a server that is replaced by new hardware. In one transaction, what
        consumers have of the old provider becomes theirs of this one, the providers below the old one go below this one, and the old one
        is removed. RV(moved) names the consumers.
      - If the new server keeps the name, give its O(uuid). A provider with the same UUID is the same provider, so there is nothing to
        replace. That is also how a second run finds that there is nothing left to do.
      - If this provider is new, it has the old one's parent, inventories, traits and aggregates, except for those that are declared. The
        drain of the old one ends with it.
      - The task fails if the inventories cannot hold what consumers have. C(conflict.used_by) then has the names of all of them. Consumers
        whose lease has ended are released.
      - Providers that the same task declares below this one replace those of the same name below the old one. Where names begin with the
        name of the root, the rest is compared, so C(web2_numa0) below C(web2) replaces C(web1_numa0) below C(web1).
      - O(generation) is that of the old provider if this one is new.
      - If no provider has the name, the task warns when it registers this one. Remove the option once the server is replaced, or a
        provider that gets the name later is replaced, too.
    type: str
    version_added: 1.1.0
  add:
    description:
      - A mapping with C(inventories), C(traits) and C(aggregates) to add to those of the provider. If it already has an inventory of a
        class, that is replaced.
      - Each of the three is mutually exclusive with the option for the complete list.
    type: dict
  remove:
    description:
      - A mapping with C(inventories), a list of classes, C(traits) and C(aggregates) to remove from the provider.
        Entries that it does not have are ignored.
    type: dict
  custom_traits:
    description:
      - Traits of your own that exist although nothing uses them. With O(state=absent) they are deleted. The task fails if a provider has
        one of them, unless the same task removes that provider.
      - You need not register traits before you give them to a provider.
    type: list
    elements: str
  custom_classes:
    description: The same for resource classes of your own.
    type: list
    elements: str
  providers:
    description:
      - Several providers, each a mapping with the keys O(uuid), O(name), O(parent), O(inventories), O(traits), O(aggregates),
        O(generation), O(drained), O(replaces), O(add) and O(remove). Mutually exclusive with these options.
    type: list
    elements: dict
  tree:
    description:
      - With O(state=absent), whether the providers below go, too, in the same transaction. The task fails if one of them is in use.
    type: bool
    default: false
  state:
    description:
      - V(present) makes the providers what is declared.
      - V(absent) removes them with all they have. The task fails if one is in use, or if providers below it are not removed in the same
        task.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: bareon.allocator.provider_info
  - module: bareon.allocator.provider_candidates
  - module: bareon.allocator.provider_allocation
  - plugin: bareon.allocator.usages
    plugin_type: lookup
"""

EXAMPLES = r"""
---
- name: Register a host with 8 CPUs of which 2 are its own, overcommitted four times
  bareon.allocator.provider:
    database: sqlite:////var/lib/bareon.sqlite
    name: host1
    inventories:
      VCPU:
        total: 8
        reserved: 2
        allocation_ratio: 4.0
        max_unit: 8
      MEMORY_MB: 32768
    traits:
      - HW_CPU_X86_AVX2

- name: Register a tree in one call
  bareon.allocator.provider:
    providers:
      - name: host2
      - name: host2_numa0
        parent: host2
        inventories:
          VCPU: 16
        traits:
          - HW_NUMA_ROOT
      - name: host2_numa1
        parent: host2
        inventories:
          VCPU: 16
        traits:
          - HW_NUMA_ROOT

- name: Add a trait and an inventory to those that a host has, and take it out of an aggregate
  bareon.allocator.provider:
    name: host1
    add:
      inventories:
        CUSTOM_LICENCE: 4
      traits:
        - CUSTOM_GOLD
    remove:
      aggregates:
        - rack-a

- name: Take the licences back
  bareon.allocator.provider:
    name: host1
    remove:
      inventories:
        - CUSTOM_LICENCE

- name: Delete a resource class that is no longer used
  bareon.allocator.provider:
    custom_classes:
      - CUSTOM_LICENCE
    state: absent

- name: Remove a host
  bareon.allocator.provider:
    name: host1
    state: absent

- name: Remove a host with its NUMA nodes
  bareon.allocator.provider:
    database: sqlite:////var/lib/bareon.sqlite
    name: host2
    tree: true
    state: absent

- name: Replace a server by new hardware under the same name, with what its consumers have
  bareon.allocator.provider:
    database: sqlite:////var/lib/bareon.sqlite
    name: host1
    uuid: 0e5f5c35-98c4-4b37-9d0b-43b0c8e1b3a6
    replaces: host1
    inventories:
      VCPU: 16
      MEMORY_MB: 65536

- name: Drain a host for a repair
  bareon.allocator.provider:
    database: sqlite:////var/lib/bareon.sqlite
    name: host1
    drained:
      reason: disk replaced
      until: 2d
"""

RETURN = r"""
---
providers:
  description: The providers as they are now, in the shape that O(world) takes; none after RV(ignore:state=absent).
  returned: success
  type: list
  elements: dict
  contains:
    uuid:
      description: Identity of the provider.
      type: str
      sample: "ec227bb8-8ea4-5673-8a12-d714b06d3866"
      returned: success
    name:
      description: Its name.
      type: str
      sample: "r01-h03"
      returned: success
    parent:
      description: UUID of the provider it is part of.
      type: str
      sample: "94fdd343-0566-5ab9-a7b4-6aaf8e6c68f1"
      returned: success
    generation:
      description: How often it has changed.
      type: int
      sample: 1
      returned: success
    inventories:
      description: What it has, by class, with all keys.
      type: dict
      sample: {"PGPU": {"total": 8, "reserved": 0}}
      returned: success
    traits:
      description: What it is like.
      type: list
      elements: str
      sample: ["CUSTOM_NVLINK"]
      returned: success
    aggregates:
      description: The groups it belongs to.
      type: list
      elements: str
      sample: ["hall", "rack1"]
      returned: success
    drained:
      description: V(true), or C(reason) and C(until) of the drain.
      type: raw
      sample: {"reason": "new fan", "until": "2031-02-01T06:00:00Z"}
      returned: if the provider itself is drained
moved:
  description:
    - The consumers of replaced providers, by UUID, as RV(bareon.allocator.provider_allocation#module:consumers), with what they have now.
  returned: success
  type: dict
  sample: {"train-1": {"from": "gpu1", "to": "gpu2"}}
  version_added: 1.1.0
recovered:
  description:
    - Set where the task found made what it, or an earlier run of the same task, had left in doubt, because the connection was lost while
      the change was being committed. RV(ignore:changed) is then true, although this run changed nothing, so that handlers are notified.
  returned: after a change that was in doubt
  type: bool
  sample: true
world:
  description: What has become of the world.
  returned: with O(world)
  type: dict
  sample: {"providers": [], "consumers": []}
conflict:
  description:
    - Why the change cannot be made.
    - C(used_by) has the names of consumers, by the name of the provider and class. C(had_by) names the providers, by trait or class.
    - C(with_children) are the UUIDs of providers with others below them.
    - C(generations) has each generation that was expected and that was found.
  returned: failure, when the input is sound
  type: dict
  sample: {"says": "the groups exclude each other"}
"""
