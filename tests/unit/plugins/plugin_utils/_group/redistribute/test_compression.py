# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Groups that can be emptied are found, the one that reclaims most is emptied, and the others have their reasons."""

from __future__ import annotations

import concurrent.futures

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError, NoSolution
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate, PoolKind, PoolName, StoragePool
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.compress import run_compress
from ansible_collections.bareon.allocator.tests.support.group.policies import open_group

SAN = StoragePool(PoolName(PoolKind.EXTERNAL, "san"))
NAS = StoragePool(PoolName(PoolKind.EXTERNAL, "nas"))


def run(bench, members, guests, run_with=map, **arguments):
    names = dict.fromkeys(node.group for node in members)
    cluster = bench.cluster(members, guests, [open_group(name) for name in names])
    return run_compress(Loaded(cluster, {}), arguments, run_with)


def nodes(bench, name, **fields):
    return [bench.node(f"{name}{number}", name, **fields) for number in (1, 2)]


def half_empty(bench):
    members = [*nodes(bench, "a"), *nodes(bench, "b"), *nodes(bench, "c", total_memory=3000.0, free_memory=3000)]
    guests = [bench.instance(f"i{name}", f"{name}1", f"{name}2", memory=300) for name in "abc"]
    return members, guests


def test_the_group_that_reclaims_most_is_emptied(bench):
    found = run(bench, *half_empty(bench))
    assert [told["possible"] for told in found["candidates"]] == [True, True, True]
    assert found["emptied"] == "c"
    assert [move["instance"] for move in found["plan"]["moves"]] == ["ic"]
    assert found["plan"]["moves"][0]["group"] in "ab"
    assert found["candidates"][2]["data"] == 2000


def test_a_named_group_is_emptied(bench):
    assert run(bench, *half_empty(bench), group="a")["emptied"] == "a"


def test_a_group_that_is_empty_is_not_chosen(bench):
    members, guests = half_empty(bench)
    found = run(bench, [*members, *nodes(bench, "d", total_memory=9000.0, free_memory=9000)], guests)
    assert found["emptied"] == "c"
    assert found["candidates"][3]["says"] == "it is empty"


def test_too_little_room_elsewhere_is_told_by_resource(bench):
    members = [*nodes(bench, "a"), *nodes(bench, "b", total_memory=350.0, free_memory=350)]
    found = run(bench, members, [bench.instance(f"i{n}", "a1", "a2", memory=400) for n in range(2)], groups=["a"])
    [told] = found["candidates"]
    assert not told["possible"]
    assert told["reasons"] == [
        {"node": None, "limit": "memory", "short": 100, "says": "its instances use more memory than the other groups have free"},
    ]
    assert found["emptied"] is None


def test_room_in_pieces_is_told_by_instance(bench):
    members = [*nodes(bench, "a"), *[bench.node(f"b{n}", "b", total_memory=450.0, free_memory=450) for n in range(4)]]
    found = run(bench, members, [bench.instance("i", "a1", "a2", memory=500)], groups=["a"])
    [told] = found["candidates"]
    assert found["emptied"] is None
    assert told["unplaced"][0]["instance"] == "i"
    assert told["unplaced"][0]["groups"][0]["nearest"]["short"] == 50


def test_a_packing_that_one_by_one_misses_is_found(bench):
    members = [
        *nodes(bench, "a"),
        bench.node("b1", "b", total_memory=600.0, free_memory=600),
        bench.node("b2", "b", total_memory=600.0, free_memory=600),
    ]
    members += [bench.node("b3", "b", total_memory=5000.0, free_memory=5000, total_cpus=0.0)]
    sizes = (300, 300, 200, 200, 200)
    guests = [bench.instance(f"i{n}", "a1", disk_template=DiskTemplate.EXT, memory=size, vcpus=0) for n, size in enumerate(sizes)]
    found = run(bench, members, guests, groups=["a"])
    assert found["emptied"] == "a"


def test_storage_keeps_partitions_apart(bench):
    members = [*nodes(bench, "a", storage=(SAN,)), *nodes(bench, "b", storage=(NAS,))]
    guests = [bench.instance("i", "a1", disk_template=DiskTemplate.EXT, storage=SAN.name)]
    found = run(bench, members, guests)
    assert found["candidates"][0]["reasons"][0]["limit"] == "partition"
    with pytest.raises(NoSolution) as error:
        run(bench, members, guests, group="a")
    assert error.value.conflict["candidates"][0]["group"] == "a"
    assert "no other group shares its storage" in str(error.value)


def test_plain_disks_cannot_leave(bench):
    members = [*nodes(bench, "a"), *nodes(bench, "b")]
    told = run(bench, members, [bench.instance("i", "a1")], groups=["a"])["candidates"][0]
    assert told["unplaced"][0]["says"] == "its disks cannot be moved to another node"


def test_candidates_may_be_tried_side_by_side(bench):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert run(bench, *half_empty(bench), run_with=pool.map) == run(bench, *half_empty(bench))


def test_an_unknown_group_is_refused(bench):
    with pytest.raises(InputError, match="unknown group 'x'"):
        run(bench, *half_empty(bench), group="x")


def test_fewer_workers_than_none_are_refused(bench):
    with pytest.raises(InputError, match="workers: is -1; must be 0 or more"):
        run(bench, *half_empty(bench), workers=-1)
