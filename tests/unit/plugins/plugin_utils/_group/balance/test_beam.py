# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chains in small groups: they reach the best of all placements where single moves end before, keep prices, and cost little."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.beam import refine_widely
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.chains import refine
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.model import BalanceOptions, Redundancy
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.balance.walk import Walk
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import Cluster
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.moves import copied_data
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.limits import Bounds
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.neighbourhood.price import Prices
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.tests.support.group.gencluster import generate

FREE = BalanceOptions(prices=Prices(data=0.0, primary=0.0, restart=0.0), min_gain=1e-9, redundancy=Redundancy.OFF)
TINY = 1e-9


def three_nodes() -> Cluster:
    nodes = [("n1", 32768, 16), ("n2", 24576, 8), ("n3", 16384, 8)]
    instances = [("i0", 3072, 10240, 2, "n3", "n2"), ("i1", 512, 20480, 1, "n3", "n2"), ("i2", 512, 10240, 2, "n2", "n1")]
    instances.append(("i3", 512, 10240, 1, "n3", "n1"))
    return parse_inline(
        {
            "nodes": [{"name": name, "total_memory": memory, "total_disk": 1048576, "total_cpus": cpus} for name, memory, cpus in nodes],
            "instances": [dict(zip(("name", "memory", "disk", "vcpus", "primary", "secondary"), one)) for one in instances],
        }
    )


def refined(cluster: Cluster, options: BalanceOptions) -> Walk:
    walk = Walk(ClusterState.from_cluster(cluster), 0, options)
    walk.descend_to_local_optimum()
    refine(walk)
    return walk


def test_the_best_of_all_placements_is_reached_where_chains_of_best_moves_end_before():
    cluster = three_nodes()
    state = ClusterState.from_cluster(cluster)
    walk, bounds = refined(cluster, FREE), Bounds.of_start(state)
    least = float("inf")
    for places in itertools.product(itertools.permutations(range(3), 2), repeat=4):
        for instance, place in enumerate(places):
            state.place(instance, *place)
        if bounds.holds(state, range(3)):
            least = min(least, walk.scorer.score(state))
    before = walk.cost
    refine_widely(walk)
    assert least + TINY < before
    assert walk.cost == pytest.approx(least, abs=TINY)
    assert walk.scorer.score(walk.state) == pytest.approx(walk.cost, abs=TINY)
    state = ClusterState.from_cluster(cluster)
    for move in walk.made:
        assert state.place_of(move.instance) == move.source
        state.place(move.instance, *move.target)
        assert bounds.holds(state, range(3))
    assert [state.place_of(instance) for instance in range(4)] == [walk.state.place_of(instance) for instance in range(4)]


def test_a_chain_that_is_not_worth_its_price_is_not_made():
    walk = refined(three_nodes(), BalanceOptions(prices=Prices(data=1e6), redundancy=Redundancy.OFF))
    cost = walk.cost
    refine_widely(walk)
    assert sum(copied_data(ClusterState.from_cluster(three_nodes()), move) for move in walk.made) == 0
    assert walk.cost <= cost


def test_looks_are_counted(monkeypatch):
    """A group of twelve nodes takes none, a small one no more than 20,000 pairs of instances and nodes allow."""
    looks = []
    cheapest = Walk.cheapest
    monkeypatch.setattr(Walk, "cheapest", lambda self, *arguments: looks.append(len(self.instances)) or cheapest(self, *arguments))
    for nodes, most in ((12, 0), (4, 20_000 // (4 * 40))):
        looks.clear()
        refine_widely(refined(parse_text(generate(nodes=nodes).text()), FREE))
        assert len(looks) <= most
    assert looks
