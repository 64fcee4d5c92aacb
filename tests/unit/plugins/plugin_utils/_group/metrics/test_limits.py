# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of limits: what a state breaks, what may stay broken, and which of it counts at every step of a move."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import Quantity
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate, PoolKind, PoolName, StoragePool
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.limits import Bounds, Limit, capacity, pool_rows, rows, usage

SAN = PoolName(PoolKind.EXTERNAL, "san")
TAGS = ["htools:iextags:s"]
FITS = {"shares_cpus": True, "memory": 1000, "disk": 10000, "vcpus": 40, "spindle_use": 32}


def broken(bench, node=None, here=(), **fields):
    """Return (limit, hard, over) of all that an instance breaks when it comes to the first of two nodes, where others live."""
    nodes = [node or bench.node("a"), bench.node("b")]
    state = bench.state(nodes, here, [bench.instance("new", **fields)], tags=TAGS)
    bounds = Bounds.of_start(state)
    state.place(len(here), 0)
    assert bounds.holds(state, [0, 1]) == (not bounds.broken(state, [0, 1]))
    assert bounds.holds(state, [1])
    return [(found.limit, found.hard, round(found.over, 3)) for found in bounds.broken(state, [0, 1]) if found.node == 0]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        ({"memory": 1001}, [(Limit.MEMORY, True, 1), (Limit.MEMORY, False, 1), (Limit.REDUNDANCY, False, 1)]),
        ({"disk": 10001}, [(Limit.DISK, True, 1), (Limit.DISK, False, 1)]),
        ({"vcpus": 42}, [(Limit.CPUS, False, 2), (Limit.CPUS, False, 2)]),
        ({"vcpus": 42, "forthcoming": True}, [(Limit.CPUS, False, 2)]),
        ({"spindle_use": 33}, [(Limit.SPINDLE_USE, False, 1), (Limit.SPINDLE_USE, False, 1)]),
    ],
)
def test_what_an_instance_breaks_that_just_does_not_fit(bench, fields, expected):
    assert broken(bench, **(FITS | fields)) == expected


def test_memory_kept_for_failovers_is_a_soft_limit(bench):
    mirrored = bench.instance("there", "b", "a", memory=700)
    assert broken(bench, here=[mirrored], memory=400) == [(Limit.REDUNDANCY, False, 100)]


def test_two_instances_with_one_exclusion_tag_break_it(bench):
    assert broken(bench, here=[bench.instance("there", "a", tags=("s:1",))], tags=("s:1", "s:2")) == [(Limit.TAGS, False, 1)]


def test_physical_spindles_count_with_exclusive_storage_alone_and_spindle_use_without_it(bench):
    wide = {"spindle_use": 99, "disks": (dataclasses.replace(bench.instance("x").disks[0], spindles=3),)}
    exclusive = bench.node("a", exclusive_storage=True, spindles=2, free_spindles=2)
    assert broken(bench, exclusive, **wide) == [(Limit.SPINDLES, True, 1), (Limit.SPINDLES, False, 1)]
    assert {limit for limit, _hard, _over in broken(bench, **wide)} == {Limit.SPINDLE_USE}


def test_the_space_of_a_shared_pool_is_a_hard_limit_at_every_node(bench):
    nodes = [bench.node(name, storage=(StoragePool(SAN, 5000, 1000),)) for name in "ab"]
    state = bench.state(nodes, [], [bench.instance("new", disk=1500, disk_template=DiskTemplate.EXT, storage=SAN)])
    bounds = Bounds.of_start(state)
    state.place(0, 0)
    assert [(found.node, found.limit, found.hard) for found in bounds.broken(state, [0, 1])] == [
        (0, Limit.POOL, True),
        (1, Limit.POOL, True),
    ]
    assert usage(state)[pool_rows(state.facts)].tolist() == [[500, 500]]


def test_what_is_broken_may_stay_as_broken_but_not_get_worse(bench):
    here = [bench.instance("one", "a", memory=600), bench.instance("two", "a", memory=600)]
    state = bench.state([bench.node("a"), bench.node("b")], here, [bench.instance("new", memory=1)])
    bounds = Bounds.of_start(state)
    assert bounds.holds(state, [0, 1])
    state.place(2, 0)
    assert {(found.limit, round(found.over)) for found in bounds.broken(state, [0, 1])} == {(Limit.MEMORY, 1), (Limit.REDUNDANCY, 1)}
    state.place(0, 1)
    assert bounds.holds(state, [0, 1])


def test_nodes_that_are_offline_have_no_limits(bench):
    state = bench.state([bench.node("a", offline=True), bench.node("b")], [], [bench.instance("new", memory=5000)])
    bounds = Bounds.of_start(state)
    state.place(0, 0)
    assert bounds.holds(state, [0, 1])


def test_the_bounds_of_hard_limits_let_soft_ones_be_broken(bench):
    state = bench.state([bench.node("a")], [], [bench.instance("wide", vcpus=41, shares_cpus=True), bench.instance("big", memory=1001)])
    bounds = Bounds.of_start(state)
    hard = bounds.hard()
    state.place(0, 0)
    assert hard.holds(state, [0])
    assert not bounds.holds(state, [0])
    state.place(1, 0)
    assert [found.limit for found in hard.broken(state, [0])] == [Limit.MEMORY]


def test_rows_of_usage_capacity_and_names_are_the_same(bench):
    nodes = [bench.node(name, storage=(StoragePool(SAN, 5000, 1000),)) for name in "abc"]
    state = bench.state(nodes, [bench.instance("there", "a", tags=("s:1",))], tags=TAGS)
    assert usage(state).shape == capacity(state.facts).shape == (len(rows(state.facts)), 3)
    assert usage(state, [2, 0])[Quantity.CPUS].tolist() == [0, 1]
    least = {Limit.MEMORY: -1.0, Limit.DISK: -1.0, Limit.REDUNDANCY: -1.0, Limit.TAGS: 1.0, Limit.POOL: 0.0}
    for row, most in zip(rows(state.facts), Bounds.of_htools(state).most):
        assert row.limit not in least or most.tolist() == [least[row.limit]] * 3
