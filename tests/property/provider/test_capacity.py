# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many consumers with a request fit, against trying every way to place one after the other."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.capacity import count_copies
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.find import find_candidates
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.candidates.index import build_index
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.request.groups import parse_groups
from ansible_collections.bareon.allocator.plugins.plugin_utils._provider.world.parse import parse_world
from ansible_collections.bareon.allocator.tests.support.house.share import examples


def brute_force(world, request, known):
    """Place one consumer in every way that there is, then the next one; `known` are the answers by what is in use."""
    key = frozenset(world.usages().items())
    if key not in known:
        found = find_candidates(build_index(world), request).candidates
        counts = (brute_force(with_one_more(world, candidate), request, known) for candidate in found)
        known[key] = max((1 + count for count in counts), default=0)
    return known[key]


def with_one_more(world, candidate):
    return replace(world, allocations={**world.allocations, f"c{len(world.allocations)}": candidate["allocations"]})


def random_world(draw):
    providers = []
    for host in range(draw.randint(1, 2)):
        stock = {"VCPU": draw.randint(1, 6), "DISK_GB": draw.randint(1, 4)}
        providers.append({"name": f"h{host}", "inventories": draw.choice([stock, {"DISK_GB": stock["DISK_GB"]}]), "aggregates": ["rack"]})
        for child in range(draw.randint(0, 3)):
            inventory = {"total": draw.randint(1, 5), "max_unit": draw.choice([2, 5]), "step_size": draw.choice([1, 1, 2])}
            traits = draw.sample(["CUSTOM_A", "CUSTOM_B"], draw.randint(0, 2))
            providers.append({"name": f"h{host}c{child}", "parent": f"h{host}", "inventories": {"VCPU": inventory}, "traits": traits})
    if draw.random() < 0.4:
        shares = {"traits": ["MISC_SHARES_VIA_AGGREGATE"], "aggregates": ["rack"]}
        providers.append({"name": "pool", "inventories": {"DISK_GB": draw.randint(1, 5)}, **shares})
    return parse_world({"providers": providers, "custom_traits": ["CUSTOM_A", "CUSTOM_B"]})


def random_request(draw, known):
    groups = {"": {"resources": draw.choice([{"VCPU": 1}, {"VCPU": 2, "DISK_GB": 1}, {"DISK_GB": 2}])}}
    for suffix in ("_A", "_B")[: draw.randint(0, 2)]:
        groups[suffix] = {"resources": {"VCPU": draw.choice([1, 2])}, "required": draw.choice([[], ["CUSTOM_A"]])}
    return parse_groups({"groups": groups, "group_policy": draw.choice(["none", "isolate"])}, known)


@pytest.mark.parametrize("seed", range(examples(60)))
def test_the_count_is_that_of_brute_force(seed):
    draw = random.Random(seed)
    world = random_world(draw)
    request = random_request(draw, world.known_names())
    capacity = count_copies(find_candidates(build_index(world), request))
    assert capacity.count == capacity.most == brute_force(world, request, {})
