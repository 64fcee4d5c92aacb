#!/usr/bin/python
# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documentation of the action plugin provider_allocation, which does the work on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: provider_allocation
short_description: Allocate resources to consumers, move them, and give them back
version_added: 1.0.0
description:
  - Declares what a consumer, such as a virtual machine, has from the providers that M(bareon.allocator.provider) has registered.
    It gets all of that, or nothing.
  - A consumer that already has something else is moved, in one step that is never visible half done.
  - Many tasks may do this at once, even on different controllers with the same database. Nothing is allocated twice.
    A transaction that lost a race against another one is repeated as a whole.
  - If an inventory shrinks below its usage, existing allocations stay, but no more can be allocated from it.
author:
  - The bareon.allocator maintainers (@bareon)
extends_documentation_fragment:
  - bareon.allocator.database
  - bareon.allocator.database.writes
  - bareon.allocator.attributes.changes
  - bareon.allocator.attributes.controller
options:
  consumer:
    description:
      - The consumer's name, up to 200 printable characters, or its UUID, 8-4-4-4-12 hexadecimal digits.
      - A name is unique in its O(project). Its UUID is the same everywhere. P(ansible.builtin.to_uuid#filter) computes it of the name,
        or, where the consumer is claimed for a project, of the project, a newline and the name. Results show both.
      - If neither O(project) nor O(user) is given, a name stands for the only consumer of that name.
      - One of O(consumer), O(consumers), O(requests) and O(inventories) is required.
    type: str
  allocations:
    description:
      - "What the consumer has from now on, C({provider: {class: amount}}). A provider is given by UUID or name."
      - A candidate of M(bareon.allocator.provider_candidates) or its C(allocations) can be given as it is.
    type: dict
  candidates:
    description:
      - Several possible O(allocations), best first, such as all that M(bareon.allocator.provider_candidates) has returned.
        The task claims the first one that is still possible, since other writers may have taken the ones before it.
      - A consumer that has one of them already keeps it.
      - Mutually exclusive with O(allocations), O(request), O(consumers), O(inventories) and O(generations).
    type: list
    elements: dict
  request:
    description:
      - What the consumer needs, with the options of M(bareon.allocator.provider_candidates) except C(database) and C(world).
        This one task looks for candidates and claims the first one that is still possible. If other writers have taken all of them, it
        looks for candidates again.
      - A consumer whose allocations already meet the request keeps them, even if an inventory has shrunk since. Otherwise its present
        allocations count as free, since it gives them back.
      - A candidate is skipped if its providers, or their roots, have changed their traits, aggregates or parents since it was found.
      - Mutually exclusive with O(allocations), O(candidates), O(consumers), O(inventories) and O(generations).
    type: dict
  requests:
    description:
      - Several consumers, each with what it needs, as a mapping with O(consumer) and O(request), and with O(project), O(user),
        O(consumer_type), O(take_over) and O(lease) where these are not those of the task.
      - All of them are placed first, one after the other, each as if those before it had claimed their places. One transaction then claims
        for all of them. If other writers have taken a place meanwhile, all are placed again.
      - A consumer that finds no place is in RV(refused), and the others are placed, unless O(all_or_nothing) or O(gang) is given.
      - What a consumer gives back because it moves is free for itself, and for others after the task.
      - Requests that would take a project beyond its quota are refused, the last ones first.
      - C(not_with) and C(with) of a request may name other consumers of the list. Then they hold for both.
      - Mutually exclusive with all other options that say what consumers have.
    type: list
    elements: dict
  all_or_nothing:
    description:
      - Whether O(requests) are placed all together or not at all.
      - If one after the other finds no room for all of up to 200 requests, up to 200000 other ways are tried.
    type: bool
    default: false
  gang:
    description:
      - What holds for all O(requests) together. They are placed all together, or not at all.
      - "C(within: aggregate) has all roots in one aggregate, such as a rack. C(aggregates) lists the ones to try, by name or UUID, best
        first. By default all are tried. The one where most consumers are already comes first, and then the one with the fewest roots."
      - "C(apart: root) has no two of them on one root, C(apart: provider) on one provider that is not shared."
    type: dict
  consumers:
    description:
      - Several consumers, each a mapping with the keys O(consumer), O(allocations), O(project), O(user), O(consumer_type),
        O(consumer_generation), O(take_over), O(lease) and O(drained). O(project), O(user), O(consumer_type), O(take_over), O(lease) and
        O(drained) of the task are the defaults.
      - To take everything back, the name or the UUID of a consumer is enough in place of a mapping.
      - All of them get what they claim, or none. Sums are checked together, so consumers may change places.
      - "A consumer with C(allocations: {}) gives everything back in the same transaction, so that others can have it."
    type: list
    elements: raw
  inventories:
    description:
      - "Inventories to change in the same transaction, C({provider: {class: inventory}}), in the form of
        M(bareon.allocator.provider). They replace all inventories of these providers."
      - If a class is removed, the same task must move its consumers.
    type: dict
  state:
    description:
      - V(present) gives the consumers what they claim.
      - V(absent) takes back everything they have.
    type: str
    choices: [present, absent]
    default: present
  consumer_generation:
    description:
      - The generation at which the caller saw the consumer, or 0 if it must not exist now. If there is something to change and the
        generation differs, the task fails.
      - It never goes back. A consumer that is released and claimed again goes on from its last generation.
    type: int
  generations:
    description:
      - The generations at which the caller saw providers, by UUID or name. The task fails if that of a provider differs that the claim
        takes from or gives back to.
    type: dict
  project:
    description:
      - The project that owns the consumer. By default it stays as it was.
      - A consumer of another project or O(user) is neither changed nor released, and the refusal names its owner; see O(take_over).
        Anybody may claim or release a consumer without an owner.
      - If M(bareon.allocator.provider_quota) limits the project, the claim is refused that would go beyond.
      - With O(state=absent), only a consumer of this project is released, or one without a project.
    type: str
  user:
    description:
      - The user it was claimed for. By default it stays as it was. Otherwise as O(project).
    type: str
  take_over:
    description:
      - Whether to change or release a consumer that belongs to another O(project) or O(user). It belongs to these from then on.
      - If O(project) has no consumer of the name, that of the only other project that has one is taken over.
    type: bool
    default: false
  lease:
    description:
      - How long the consumer has it, from now on, such as V(90m), V(2h) or V(7d), with C(s), C(m), C(h), C(d) or C(w); or a date, such as
        V(2030-12-31) or V(2030-12-31T18:00:00Z), which is in UTC unless it names a zone; or V(none) for no end.
      - Given again, it counts from then, so a task with a time from now always changes something, and one with a date does not. By default
        the end stays as it was, and a new consumer has none.
      - A consumer whose lease has ended holds nothing, and no daemon is needed for that. Its room counts as free, and other claims take it
        in the same transaction; RV(ended) says whose it was. Until then the consumer gets it back by claiming again.
      - The clock is that of the database.
    type: str
  drained:
    description:
      - Whether more of drained providers may be claimed, see O(bareon.allocator.provider#module:drained).
      - What a consumer has of them stays its own in either case.
    type: str
    choices: [exclude, include]
    default: exclude
  consumer_type:
    description:
      - What the consumer is, such as V(INSTANCE), V(MIGRATION) or V(CONTAINER), 1 to 255 of A-Z, 0-9 and _.
        M(bareon.allocator.provider_info) adds up usages by it. By default it stays as it was.
    type: str
  retries:
    description:
      - How often a transaction that has lost a race is repeated, after a random pause, and how often the search for candidates of
        O(request) is repeated. O(timeout) may end this earlier.
    type: int
    default: 40
seealso:
  - module: bareon.allocator.provider_candidates
  - module: bareon.allocator.provider_info
"""

EXAMPLES = r"""
---
- name: Claim two CPUs for a virtual machine
  bareon.allocator.provider_allocation:
    consumer: vm1
    allocations:
      host1:
        VCPU: 2
        MEMORY_MB: 2048
    project: web

- name: Find places for another one
  bareon.allocator.provider_candidates:
    groups:
      "":
        resources:
          VCPU: 4
    limit: 10
  register: found

- name: Claim the first of them that is still free
  bareon.allocator.provider_allocation:
    consumer: vm2
    candidates: "{{ found.candidates }}"

- name: Find a place and claim it in one task
  bareon.allocator.provider_allocation:
    consumer: vm3
    request:
      groups:
        "":
          resources:
            VCPU: 4
            DISK_GB: 40
      order: spread

- name: Let two virtual machines change places
  bareon.allocator.provider_allocation:
    consumers:
      - consumer: vm1
        allocations:
          host2:
            VCPU: 2
      - consumer: vm2
        allocations:
          host1:
            VCPU: 4

- name: Let a virtual machine take over what was held for its migration, and leave the old host
  bareon.allocator.provider_allocation:
    consumers:
      - consumer: migration of vm1
        allocations: {}
      - consumer: vm1
        allocations:
          host3:
            VCPU: 2

- name: Turn the CPUs of a host into those of its NUMA node, together with what is allotted of them
  bareon.allocator.provider_allocation:
    inventories:
      host1: {}
      host1_numa0:
        VCPU: 8
    consumer: vm2
    allocations:
      host1_numa0:
        VCPU: 4

- name: Claim a GPU for two hours; a job that lasts longer does so again
  bareon.allocator.provider_allocation:
    consumer: nightly
    project: red
    lease: 2h
    request:
      groups:
        "":
          resources:
            VCPU: 1

- name: Take everything back, unless another project has it
  bareon.allocator.provider_allocation:
    consumer: vm1
    project: web
    state: absent

- name: Place a second one on another host than the first
  bareon.allocator.provider_allocation:
    consumer: vm4
    request:
      groups:
        "":
          resources:
            VCPU: 1
      not_with:
        - vm3

- name: Place the workers of a job in one rack, each on a host of its own, or none of them
  bareon.allocator.provider_allocation:
    requests:
      - consumer: worker1
        request: &worker
          groups:
            "":
              resources:
                VCPU: 1
          root_required: [CUSTOM_WORKERS]
      - consumer: worker2
        request: *worker
    project: simulation
    gang:
      within: aggregate
      apart: root
"""

RETURN = r"""
---
consumers:
  description:
    - By consumer's UUID, its C(name), C(allocations), C(generation), C(project), C(user) and C(consumer_type) now, and since when and until
      when it has them, as C(claimed_at) and C(expires_at). Those that have nothing left are not there.
  returned: success
  type: dict
  sample: {"train-1": {"generation": 1}}
generations:
  description: The new generations of the providers that were changed, by UUID.
  returned: success
  type: dict
  sample: {"0310c24e-15a2-5561-a931-2aff721ebc8d": 1}
names:
  description: The names of the providers that the claim concerns, by UUID.
  returned: success
  type: dict
  sample: {"0310c24e-15a2-5561-a931-2aff721ebc8d": "r01-h08"}
candidate:
  description: The number of the candidate that was claimed, from 0.
  returned: with O(candidates)
  type: int
  sample: 2
mappings:
  description: By the suffix of each group of the request, the UUIDs of the providers that it was given.
  returned: with O(request)
  type: dict
  sample: {"": ["gpu1"]}
alternative:
  description: The number of the request of C(one_of) that was satisfied, from 0.
  returned: with O(request) that has C(one_of)
  type: int
  sample: 2
placed:
  description:
    - The requests that are satisfied, each with C(index) (its number in O(requests)), C(consumer) (a UUID), C(name), C(allocations),
      C(mappings), and C(alternative) where it has C(one_of).
  returned: with O(requests)
  type: list
  elements: dict
  sample: ["train-1"]
aggregate:
  description: The name or the UUID of the aggregate in which all of them are.
  returned: with O(gang) that has C(within)
  type: str
  sample: rack7
refused:
  description:
    - Why each of the candidates before that one could not be had.
    - With O(requests), those that are not satisfied, each with C(index), C(consumer), C(name), C(says), and C(why) as
      M(bareon.allocator.provider_candidates) returns it. C(why) is looked for of three kinds of requests. It is missing where the requests
      before took all that would fit.
  returned: with O(candidates), O(request) or O(requests)
  type: list
  elements: raw
  sample: ["train-2"]
inventories:
  description: The inventories that were changed along, by provider's UUID.
  returned: with O(inventories)
  type: dict
  sample: {"gpu1": {"PGPU": 8}}
ended:
  description:
    - The consumers whose O(lease) had ended and that were released because their room was needed, each with C(consumer), its UUID, C(name),
      C(generation), C(project), C(user), C(consumer_type), C(claimed_at), C(expires_at) and C(allocations).
  returned: success
  type: list
  elements: dict
  sample: ["train-1"]
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
    - Why it cannot be had.
    - C(refused) lists each amount with C(consumer), C(consumer_name), C(provider), C(provider_name), C(resource_class), C(reason) and
      C(says). The reason is V(full), with what is C(asked) and C(free), V(piece), V(drained), V(no_inventory) or V(unknown_provider).
    - C(candidates) has the same for each of the candidates.
    - C(generations) has each generation that was expected and that was found.
    - C(owners) lists consumers that belong to others, with C(consumer), C(name), C(project) and C(user). C(consumers) are the UUIDs of
      consumers with the same name.
    - C(quotas) lists what is beyond the quota of a project, with C(project), C(resource_class), C(asked), C(used) and C(limit).
    - C(why) has the reasons why a request has no candidates, as M(bareon.allocator.provider_candidates) returns them.
    - With O(all_or_nothing) or O(gang), C(refused) are the requests without a place, as RV(refused) has them, C(fits) is how many of them
      have room together, and C(nearest) the aggregate that comes nearest, with C(aggregate), C(name) and C(fits).
    - C(attempts) says how often the transaction lost a race.
  returned: failure, when the input is sound
  type: dict
  sample:
    refused:
      - asked: 4
        consumer: 25a47fe7-23d2-59cc-ae5c-fb8b3d4f0d58
        consumer_name: vm1
        free: 2
        provider: 3b1cf9cd-3a0f-5a7a-8a3f-7d4e0a6f2c11
        provider_name: host1
        reason: full
        resource_class: VCPU
        says: "VCPU of host1: 4 more requested, 2 of 24 free"
"""
