# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The arrays of group planning against a slow reading of the same rules: metrics, moves, scores of places, limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import NOWHERE, Quantity
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.limits import Limit
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import RULE, WEIGHTS, ScoreMode, Scorer
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.verdicts import (
    EXACT,
    HTOOLS,
    primary_verdict,
    secondary_verdict,
)
from ansible_collections.bareon.allocator.tests.support.group.clusters import clusters, instances
from ansible_collections.bareon.allocator.tests.support.group.oracle import Book, htools_metrics
from ansible_collections.bareon.allocator.tests.support.house.share import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

few = settings(max_examples=examples(60), deadline=None)
modes = st.sampled_from(ScoreMode)
CHANGED = ("quantities", "peers", "reserved", "tag_counts", "location", "pool_free", "primary", "secondary", "missing_memory")


def homes(state, instance, draw):
    """Draw nodes of one group that suit the instance's template, online ones only."""
    group = draw(st.integers(0, len(state.facts.cluster.groups) - 1))
    nodes = [int(node) for node in state.group_nodes(group) if not state.offline[node]]
    two = bool(state.facts.instances.two_nodes[instance])
    assume(len(nodes) > two)
    chosen = draw(st.permutations(nodes))
    return chosen[0], chosen[1] if two else NOWHERE


@few
@given(clusters())
def test_metrics_are_those_of_the_oracle(cluster):
    state = ClusterState.from_cluster(cluster)
    expected = htools_metrics(cluster)
    found = {metric.name: metric.value for metric in Scorer(state, ScoreMode.HTOOLS).metrics(state)}
    assert list(found) == list(expected) == list(WEIGHTS)
    assert found == pytest.approx(expected, abs=1e-9)


@few
@given(clusters())
def test_who_cannot_run_where_it_is_counts_as_a_broken_rule_but_with_htools(cluster):
    state = ClusterState.from_cluster(cluster)
    books = [Book(cluster, node) for node in cluster.nodes if node.state == "up"]
    broken = sum(book.tag_conflicts + RULE * book.cannot_run for book in books)
    found = {metric.name: metric.value for metric in Scorer(state, ScoreMode.CAPACITY).metrics(state)}
    assert found["pri_tags_score"] == broken


@few
@given(clusters(), st.data())
def test_moves_lead_to_the_state_that_loading_the_result_gives(cluster, data):
    assume(cluster.instances)
    state = ClusterState.from_cluster(cluster)
    for _move in range(data.draw(st.integers(1, 6))):
        instance = data.draw(st.integers(0, len(cluster.instances) - 1))
        state.place(instance, *homes(state, instance, data.draw))
    assume((state.quantities[[Quantity.DISK, Quantity.SPINDLES]] >= 0).all() and (state.pool_free >= 0).all())
    again = ClusterState.from_cluster(state.to_cluster())
    for name in CHANGED:
        left, right = getattr(state, name), getattr(again, name)
        if name == "quantities":
            # Physical spindles are only known where storage is exclusive.
            keep = np.ones(left.shape, dtype=bool)
            keep[[Quantity.SPINDLES, Quantity.SPINDLES_PLANNED]] = state.facts.nodes.exclusive
            left, right = left[keep], right[keep]
        np.testing.assert_allclose(left, right, atol=1e-9, err_msg=name)


@few
@given(clusters(), st.data())
def test_lifting_an_instance_leaves_no_trace(cluster, data):
    assume(cluster.instances)
    state = ClusterState.from_cluster(cluster)
    before = state.copy()
    with state.lifted(data.draw(st.integers(0, len(cluster.instances) - 1))):
        pass
    for name in (*CHANGED, "fails_n1", "offline"):
        np.testing.assert_array_equal(getattr(state, name), getattr(before, name), err_msg=name)


@few
@given(clusters(), modes, st.booleans(), st.data())
def test_score_of_a_place_is_the_score_after_placing(cluster, mode, whole, data):
    assume(cluster.instances)
    state = ClusterState.from_cluster(cluster)
    instance = data.draw(st.integers(0, len(cluster.instances) - 1))
    members = None if whole else state.group_nodes(state.group_of(instance))
    scorer = Scorer(state, mode, members)
    nodes = scorer.members[~state.offline[scorer.members]]
    assume(len(nodes))
    with state.lifted(instance):
        if state.facts.instances.two_nodes[instance]:
            scores = scorer.pair_scores(state, instance, nodes, nodes)
            places = {(p, s): scores[row, column] for row, p in enumerate(nodes) for column, s in enumerate(nodes) if p != s}
            assert np.isinf(np.diag(scores)).all()
        else:
            scores = scorer.primary_scores(state, instance, nodes)
            places = {(p, NOWHERE): scores[row] for row, p in enumerate(nodes)}
    for (primary, secondary), score in places.items():
        trial = state.copy()
        trial.place(instance, int(primary), int(secondary))
        # A root of a variance near 0 has half the digits of the variance.
        assert score == pytest.approx(scorer.score(trial), abs=1e-7)


@few
@given(clusters(), modes)
def test_no_metric_is_ever_nan(cluster, mode):
    state = ClusterState.from_cluster(cluster)
    state.facts.nodes.total_memory[::2] = 0
    state.facts.nodes.total_cpus[::2] = 0
    state.facts.nodes.spindle_limit[1::2] = 0
    state.facts.nodes.total_spindles[1::2] = 0
    assert all(math.isfinite(metric.value) for metric in Scorer(state, mode).metrics(state))


@few
@given(clusters(pools=False), st.data())
def test_verdict_on_a_primary_is_what_placing_it_shows(cluster, data):
    new = data.draw(instances("new", [], False))
    state = ClusterState.from_cluster(cluster, (new,))
    instance = len(cluster.instances)
    nodes = state.online()
    verdict = primary_verdict(state, instance, nodes, EXACT)
    for node, limit in zip(nodes.tolist(), verdict.limit.tolist()):
        trial = state.copy()
        trial.place(instance, node)
        broken = broken_limits(trial, state, node, new)
        assert (limit == Limit.NONE) == (not broken), (Limit(limit), broken)
        if limit != Limit.NONE:
            assert Limit(limit) in broken


@few
@given(clusters(pools=False), st.data())
def test_verdict_on_a_secondary_is_what_placing_it_shows(cluster, data):
    new = data.draw(instances("new", ["a", "b"], False).filter(lambda found: found.disk_template == "drbd"))
    state = ClusterState.from_cluster(cluster, (new,))
    instance = len(cluster.instances)
    nodes = state.online()
    verdict = secondary_verdict(state, instance, nodes, nodes, EXACT)
    for row, primary in enumerate(nodes.tolist()):
        for column, secondary in enumerate(nodes.tolist()):
            limit = Limit(int(verdict.limit[row, column]))
            if primary == secondary:
                assert limit == Limit.SAME_NODE
                continue
            trial = state.copy()
            trial.place(instance, primary, secondary)
            broken = broken_limits(trial, state, secondary, new, second=True)
            assert (limit == Limit.NONE) == (not broken), (limit, broken)
            if limit != Limit.NONE:
                assert limit in broken


def broken_limits(after, before, node, new, second=False):
    """Return the limits that a node breaks after a placement and did not break as badly before, by the oracle's books."""
    model = after.facts.cluster.nodes[node]
    quantity, old = after.quantities[:, node], before.quantities[:, node]
    local = new.disk_template in ("plain", "drbd")
    checks = {
        Limit.MEMORY: quantity[Quantity.MEMORY_PLANNED] < 0,
        Limit.DISK: local and quantity[Quantity.DISK_PLANNED] < 0,
        Limit.SPINDLES: local and model.exclusive_storage and quantity[Quantity.SPINDLES_PLANNED] < 0,
        Limit.SPINDLE_USE: local and not model.exclusive_storage and quantity[Quantity.SPINDLE_USE_PLANNED] > 32.0 * model.spindles,
        Limit.HARDWARE: new.vcpus > model.total_cpus,
        Limit.CPUS: not second and quantity[Quantity.CPUS_PLANNED] > 4.0 * model.total_cpus,
        Limit.TAGS: not second and (after.tag_counts[node] > np.maximum(before.tag_counts[node], 1))[: after.facts.slots.soft].any(),
    }
    if second:
        kept = new.memory if new.reserves_memory else 0
        checks[Limit.MEMORY] = kept > old[Quantity.MEMORY_PLANNED]
    if not new.forthcoming:
        checks[Limit.MEMORY] |= (kept > old[Quantity.MEMORY]) if second else bool(quantity[Quantity.MEMORY] < 0)
        checks[Limit.DISK] |= local and quantity[Quantity.DISK] < 0
        checks[Limit.SPINDLES] |= local and model.exclusive_storage and quantity[Quantity.SPINDLES] < 0
        short, was = after.reserved[node] - quantity[Quantity.MEMORY], before.reserved[node] - old[Quantity.MEMORY]
        checks[Limit.REDUNDANCY] = short > 0 and short > was
    return {limit for limit, fails in checks.items() if fails}


@few
@given(clusters(pools=False), st.data())
def test_rules_of_htools_are_never_looser_than_hard_limits(cluster, data):
    new = data.draw(instances("new", [], False))
    state = ClusterState.from_cluster(cluster, (new,))
    nodes = state.online()
    strict = primary_verdict(state, len(cluster.instances), nodes, HTOOLS)
    hard = primary_verdict(state, len(cluster.instances), nodes, HTOOLS.hard())
    assert not (strict.fits & ~hard.fits).any()
    assert (strict.short[~strict.fits & (strict.limit != Limit.SPINDLES)] > 0).all()


@few
@given(clusters())
def test_books_of_every_node_agree(cluster):
    state = ClusterState.from_cluster(cluster)
    for position, node in enumerate(cluster.nodes):
        book = Book(cluster, node)
        assert state.quantities[Quantity.MEMORY, position] == book.memory
        assert state.quantities[Quantity.PRIMARIES, position] == len(book.primaries)
        assert state.reserved[position] == book.reserved
        assert state.fails_n1[position] == (node.free_memory < book.reserved)
