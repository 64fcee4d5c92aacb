# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which limit fails, by how much, and the differences between htools' rules and ours."""

from __future__ import annotations

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import (
    Disk,
    DiskTemplate,
    Policy,
    PoolKind,
    PoolName,
    Spec,
    SpecInterval,
    Status,
    StoragePool,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.limits import Limit
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.policy import policy_failures
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.verdicts import (
    EXACT,
    HTOOLS,
    Rules,
    primary_verdict,
    secondary_verdict,
)

FAST = PoolName(PoolKind.INTERNAL, "fast")
SAN = PoolName(PoolKind.EXTERNAL, "san")


def on_primary(bench, node, new, instances=(), rules=EXACT, **fields):
    state = bench.state([node, bench.node("other")], instances, [new], **fields)
    verdict = primary_verdict(state, len(instances), np.array([0]), rules)
    return Limit(int(verdict.limit[0])), float(verdict.short[0])


@pytest.mark.parametrize(
    ("fields", "limit", "short"),
    [
        ({"memory": 1001}, Limit.MEMORY, 1),
        ({"disk": 10300}, Limit.DISK, 300),
        ({"vcpus": 43}, Limit.CPUS, 3),
        ({"spindle_use": 40}, Limit.SPINDLE_USE, 8),
        ({"tags": ("s:1", "s:2")}, Limit.TAGS, 2),
        ({"memory": 1000, "disk": 10000, "vcpus": 40, "spindle_use": 32}, Limit.NONE, 0),
        ({"disk": 10300, "disk_template": DiskTemplate.EXT}, Limit.NONE, 0),
        ({"memory": 1001, "status": Status.ADMIN_DOWN}, Limit.MEMORY, 1),
        ({"memory": 2000, "disk": 20000}, Limit.MEMORY, 1000),
    ],
)
def test_first_limit_that_fails_and_by_how_much(bench, fields, limit, short):
    there = bench.instance("there", "n", memory=0, disk=0, vcpus=0, spindle_use=0, tags=("s:1", "s:2"))
    found = on_primary(bench, bench.node("n"), bench.instance("new", shares_cpus=True, **fields), [there], tags=["htools:iextags:s"])
    assert found == (limit, short)


@pytest.mark.parametrize(("field", "whole"), [("memory", 1000), ("disk", 10000)])
def test_node_may_be_filled_exactly_but_not_by_htools(bench, field, whole):
    new = bench.instance("new", **{field: whole})
    assert on_primary(bench, bench.node("n"), new) == (Limit.NONE, 0)
    assert on_primary(bench, bench.node("n"), new, rules=HTOOLS) == (Limit[field.upper()], 1)


def test_htools_lets_a_failing_node_fail_worse_and_we_do_not(bench):
    nodes = [bench.node("n", total_memory=600.0, free_memory=600), bench.node("p")]
    there = [bench.instance("mirrored", "p", "n", memory=700)]
    state = bench.state(nodes, there, [bench.instance("new")])
    assert primary_verdict(state, 1, np.array([0]), HTOOLS).fits.all()
    verdict = primary_verdict(state, 1, np.array([0]), EXACT)
    assert (verdict.limit[0], verdict.short[0]) == (Limit.REDUNDANCY, 200)


def test_instance_that_takes_no_memory_may_stay_with_a_failing_node(bench):
    nodes = [bench.node("n", total_memory=600.0, free_memory=600), bench.node("p")]
    state = bench.state(nodes, [bench.instance("mirrored", "p", "n", memory=700)], [bench.instance("new", status=Status.ADMIN_DOWN)])
    assert primary_verdict(state, 1, np.array([0]), EXACT).fits.all()


def test_secondary_keeps_memory_for_the_worst_of_its_peers(bench):
    nodes = [bench.node(name) for name in "abc"]
    there = [bench.instance("i", "a", "c", memory=600), bench.instance("j", "c", memory=300)]
    state = bench.state(nodes, there, [bench.instance("new", secondary="?", memory=150)])
    verdict = secondary_verdict(state, 2, np.array([0, 1]), np.array([2, 0]), EXACT)
    assert [Limit(limit) for limit in verdict.limit.ravel().tolist()] == [Limit.REDUNDANCY, Limit.SAME_NODE, Limit.NONE, Limit.NONE]
    assert verdict.short[0, 0] == 50, "600 and 150 of a, but 700 left"


def test_only_drbd_has_a_secondary(bench):
    state = bench.state([bench.node("a"), bench.node("b")], [], [bench.instance("new")])
    assert secondary_verdict(state, 0, np.array([0]), np.array([1]), EXACT).limit[0, 0] == Limit.TEMPLATE


def test_soft_limits_can_be_left_out_and_hard_ones_not(bench):
    new = bench.instance("new", vcpus=100, shares_cpus=True)
    assert on_primary(bench, bench.node("n"), new)[0] == Limit.CPUS
    assert on_primary(bench, bench.node("n"), new, rules=EXACT.hard())[0] == Limit.NONE
    assert on_primary(bench, bench.node("n"), bench.instance("new", memory=5000), rules=EXACT.hard())[0] == Limit.MEMORY


def test_part_of_the_disk_can_be_kept_free(bench):
    assert on_primary(bench, bench.node("n"), bench.instance("new", disk=9500), rules=Rules(disk_reserve=0.1)) == (Limit.DISK, 500)


@pytest.mark.parametrize(
    ("spindles", "limit", "short"),
    [(2, Limit.NONE, 0), (3, Limit.SPINDLES, 1), (None, Limit.SPINDLES, 0)],
)
def test_exclusive_storage_gives_away_whole_spindles(bench, spindles, limit, short):
    node = bench.node("n", exclusive_storage=True, spindles=4, free_spindles=2)
    assert on_primary(bench, node, bench.instance("new", disks=(Disk(1000, spindles),))) == (limit, short)


def test_pool_must_be_reached_and_have_room(bench):
    node = bench.node("n", storage=(StoragePool(FAST, 500, 300), StoragePool(SAN)))
    assert on_primary(bench, node, bench.instance("new", disk=300, storage=FAST)) == (Limit.NONE, 0)
    assert on_primary(bench, node, bench.instance("new", disk=400, storage=FAST)) == (Limit.DISK, 100)
    assert on_primary(bench, node, bench.instance("new", disk=400, storage=SAN, disk_template=DiskTemplate.EXT)) == (Limit.NONE, 0)
    state = bench.state([node, bench.node("other")], [], [bench.instance("new", storage=SAN, disk_template=DiskTemplate.EXT)])
    assert primary_verdict(state, 0, np.array([0, 1]), EXACT).limit.tolist() == [Limit.NONE, Limit.POOL]


def test_node_that_names_no_pools_is_one_itself(bench):
    lvm = bench.node("n", storage=(StoragePool(FAST, 500, 500), StoragePool(PoolName(PoolKind.INTERNAL, "lvm"), 9500, 700)))
    state = bench.state([lvm, bench.node("other")], [], [bench.instance("new", disk=800)])
    verdict = primary_verdict(state, 0, np.array([0, 1]), EXACT)
    assert (verdict.limit.tolist(), verdict.short.tolist()) == ([Limit.DISK, Limit.NONE], [100, 0])


def test_forthcoming_instances_are_planned_for_but_take_nothing_yet(bench):
    coming = bench.instance("coming", "n", memory=600, disk=6000, forthcoming=True)
    assert on_primary(bench, bench.node("n"), bench.instance("new", memory=500), [coming]) == (Limit.MEMORY, 100)
    assert on_primary(bench, bench.node("n"), bench.instance("new", disk=5000), [coming]) == (Limit.DISK, 1000)
    assert on_primary(bench, bench.node("n"), bench.instance("new", memory=500), [coming], EXACT.hard()) == (Limit.NONE, 0)


def spec(memory, cpus, disk):
    return Spec(memory, cpus, disk, 1, 1, 1)


POLICY = Policy(
    intervals=(SpecInterval(spec(100, 1, 100), spec(200, 2, 200)), SpecInterval(spec(1000, 4, 1000), Spec(2000, 8, 2000, 2, 8, 2))),
    disk_templates=(DiskTemplate.PLAIN,),
)


@pytest.mark.parametrize(
    ("fields", "failures"),
    [
        ({"memory": 150, "vcpus": 2, "disk": 200}, []),
        ({"memory": 1500, "vcpus": 8, "disk": 1000}, []),
        ({"memory": 1500, "vcpus": 2, "disk": 1000}, [(Limit.CPUS, -2)]),
        ({"memory": 2100, "vcpus": 4, "disk": 1000}, [(Limit.MEMORY, 100)]),
        ({"memory": 150, "vcpus": 2, "disks": (Disk(150), Disk(150))}, [(Limit.DISK_COUNT, 1)]),
        ({"memory": 1500, "vcpus": 4, "disks": (Disk(1000), Disk(2500))}, [(Limit.DISK, 500)]),
        ({"memory": 1500, "vcpus": 4, "disk": 1000, "spindle_use": 3}, [(Limit.SPINDLE_USE, 1)]),
        ({"memory": 150, "vcpus": 2, "disk": 200, "disk_template": DiskTemplate.EXT}, [(Limit.TEMPLATE, 0)]),
    ],
)
def test_policy_is_told_by_the_interval_that_comes_closest(bench, fields, failures):
    found = policy_failures(bench.instance("i", **fields), POLICY, exclusive=False)
    assert [(failure.limit, failure.short) for failure in found] == failures


def test_policy_counts_physical_spindles_where_storage_is_exclusive(bench):
    known, unknown = bench.instance("i", memory=150, disks=(Disk(150, 5),)), bench.instance("i", memory=150, disk=150)
    assert [(f.limit, f.short) for f in policy_failures(known, POLICY, exclusive=True)] == [(Limit.SPINDLES, 4)]
    assert [(f.limit, f.short) for f in policy_failures(unknown, POLICY, exclusive=True)] == [(Limit.SPINDLES, 0)]


def test_diskless_instances_have_no_disks_to_check(bench):
    diskless = bench.instance("i", memory=150, disk=0, disk_template=DiskTemplate.DISKLESS)
    assert [failure.limit for failure in policy_failures(diskless, POLICY, exclusive=False)] == [Limit.TEMPLATE]


def test_every_limit_has_a_word_of_htools():
    assert {limit.fail_mode for limit in Limit} == {
        *("", "FailMem", "FailDisk", "FailSpindles", "FailCPU", "FailTags", "FailDiskCount", "FailMig", "FailInternal"),
    }
