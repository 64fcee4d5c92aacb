# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which size comes next when a copy does not fit; the sequences here are those that hspace gives, too."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.capacity import tiered
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.capacity.copies import look_at
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate, Policy, Spec, SpecInterval
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.capacity import run_capacity
from ansible_collections.bareon.allocator.tests.support.group.policies import open_group

SIZES = SpecInterval(Spec(64, 1, 256, 1, 1, 1), Spec(640, 1, 2560, 1, 1, 12))
POLICY = Policy(intervals=(SIZES,), disk_templates=(DiskTemplate.PLAIN,))


def clustered(bench, nodes):
    return dataclasses.replace(bench.cluster(nodes, groups=[open_group("g", policy=POLICY)]), policy=POLICY)


def tiers(bench, nodes):
    found = run_capacity(Loaded(clustered(bench, nodes), {}), {"spec": {"disk_template": "plain"}, "tiered": True, "score": "htools"})
    return [(tier["spec"]["memory"], tier["spec"]["disk"], tier["count"]) for tier in found["tiers"]]


def node(bench, name, memory, disk):
    return bench.node(name, total_memory=float(memory), free_memory=memory, total_disk=float(disk), free_disk=disk)


def test_what_is_short_at_most_places_is_taken_back_first(bench):
    assert tiers(bench, [node(bench, name, 1000, 1100) for name in "ab"]) == [(640, 1024, 2)]


def test_where_that_is_not_enough_another_resource_alone_is_tried_from_the_smallest_size_on(bench):
    """Disk is short at two nodes of three, which have none at all; a copy fits the third with less memory."""
    nodes = [*(node(bench, name, 1000, 100) for name in "ab"), node(bench, "c", 600, 9000)]
    assert tiers(bench, nodes) == [(576, 256, 1)]


def test_nothing_fits_where_two_resources_are_short_at_every_place(bench):
    assert tiers(bench, [node(bench, name, 50, 100) for name in "ab"]) == []


def test_a_size_far_beyond_every_policy_takes_few_looks(bench, monkeypatch):
    """A petabyte is four million units of disk more than the policy allows."""
    looks = []
    monkeypatch.setattr(tiered, "look_at", lambda room, size, *more: looks.append(size) or look_at(room, size, *more))
    spec = {"memory": "4 TiB", "disk": "1 PiB", "vcpus": 4000, "disk_template": "plain"}
    cluster = clustered(bench, [node(bench, name, 1000, 1100) for name in "ab"])
    found = run_capacity(Loaded(cluster, {}), {"spec": spec, "tiered": True, "score": "htools"})
    assert [(tier["spec"]["memory"], tier["spec"]["disk"], tier["count"]) for tier in found["tiers"]] == [(640, 1024, 2)]
    assert len(looks) < 500


@pytest.mark.parametrize("gib", [4, 32, 128])
def test_tiers_end_at_the_least_that_the_policy_allows(bench, gib, monkeypatch):
    """A least size near the largest: two nodes, one with room for two of them, and looks that do not grow with the sizes."""
    looks = []
    monkeypatch.setattr(tiered, "look_at", lambda room, size, *more: looks.append(size) or look_at(room, size, *more))
    largest, least = Spec(gib * 1024, 4, gib * 8192, 16, 8, 12), Spec(gib * 1024 - 2048, 4, gib * 8192 - 1024, 1, 1, 1)
    policy = Policy(intervals=(SpecInterval(least, largest),), disk_templates=(DiskTemplate.PLAIN,))
    nodes = [node(bench, "a", 2 * gib * 1024 + 1, 16 * gib * 1024), node(bench, "b", gib * 1536, 16 * gib * 1024)]
    cluster = dataclasses.replace(bench.cluster(nodes, groups=[open_group("g", policy=policy)]), policy=policy)
    found = run_capacity(Loaded(cluster, {}), {"spec": {"disk_template": "plain"}, "tiered": True, "score": "htools"})
    assert sum(tier["count"] for tier in found["tiers"]) == 3
    assert len(looks) < 100
    assert all(size.memory >= least.memory and size.disk >= least.disk_size and size.vcpus >= least.cpus for size in looks)
