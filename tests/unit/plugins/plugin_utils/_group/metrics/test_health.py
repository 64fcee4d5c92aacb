# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which groups could take the storage of which instances."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import (
    AllocPolicy,
    DiskTemplate,
    Group,
    PoolKind,
    PoolName,
    StoragePool,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.health import peer_groups, takes_storage

SAN, NAS = (PoolName(PoolKind.EXTERNAL, name) for name in ("san", "nas"))
NO_DISK = {"total_disk": 0.0, "free_disk": 0}


def on_pool(bench, name, primary, pool):
    return bench.instance(name, primary, disk_template=DiskTemplate.EXT, storage=pool)


def reaching(*pools):
    return {"storage": tuple(StoragePool(pool) for pool in pools)}


@pytest.mark.parametrize(
    ("others", "plain", "mirrored"),
    [
        pytest.param([{}, {}], True, True, id="two nodes with disks"),
        pytest.param([{}], True, False, id="one node has no second for a mirror"),
        pytest.param([{}, NO_DISK], True, False, id="one of both has a disk"),
        pytest.param([NO_DISK, NO_DISK], False, False, id="none has a disk"),
        pytest.param([{}, {"offline": True}], True, False, id="one of both is offline"),
        pytest.param([{"offline": True}], False, False, id="none answers"),
    ],
)
def test_disks_of_nodes_need_nodes_with_disks(bench, others, plain, mirrored):
    nodes = [bench.node("a"), bench.node("b"), *(bench.node(f"n{n}", "far", **fields) for n, fields in enumerate(others))]
    state = bench.state(nodes, [bench.instance("alone", "a"), bench.instance("mirrored", "a", "b")])
    assert [takes_storage(state, instance, 1) for instance in range(2)] == [plain, mirrored]
    assert peer_groups(state, 0) == ((1,) if plain or mirrored else ())
    assert peer_groups(state, 1) == ()


def test_a_pool_is_taken_where_a_node_that_answers_reaches_it(bench):
    nodes = [
        bench.node("a", **reaching(SAN, NAS)),
        bench.node("b", "near", **NO_DISK, **reaching(SAN)),
        bench.node("c", "far", **reaching(NAS)),
        bench.node("d", "far", offline=True, **reaching(SAN)),
    ]
    state = bench.state(nodes, [on_pool(bench, "i", "a", SAN), on_pool(bench, "j", "c", NAS)])
    assert [takes_storage(state, 0, group) for group in range(3)] == [True, True, False]
    assert [takes_storage(state, 1, group) for group in range(3)] == [True, False, True]
    assert [peer_groups(state, group) for group in range(3)] == [(1,), (), (0,)]


def test_a_group_that_takes_nothing_new_takes_no_storage(bench):
    groups = [Group("g", "uuid-g"), Group("closed", "uuid-closed", alloc_policy=AllocPolicy.UNALLOCABLE)]
    state = bench.state([bench.node("a"), bench.node("b", "closed")], [bench.instance("i", "a")], groups=groups)
    assert (takes_storage(state, 0, 0), takes_storage(state, 0, 1)) == (True, False)
