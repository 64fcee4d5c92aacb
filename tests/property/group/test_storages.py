# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Storage balancing against every arrangement of a few disks; sizes are GiB here, MiB there."""

from __future__ import annotations

import dataclasses
import itertools

from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import (
    NO_POLICY,
    Cluster,
    Disk,
    DiskTemplate,
    Group,
    Instance,
    Node,
    PoolKind,
    PoolName,
    StoragePool,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.storages.disks import DiskMove
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.storages.even import StorageOptions, even_storages
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.storages.levels import Storage
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.storages.stages import staged
from hypothesis import given, settings
from hypothesis import strategies as st

GIB = 1024
TOLERANCE = 0.05


def external(name):
    return PoolName(PoolKind.EXTERNAL, name)


@st.composite
def clusters(draw):
    """Two or three shared storages, of which one may be for some disks only, and up to six disks, of which some stay."""
    count = draw(st.integers(2, 3))
    names = [external(f"s{number}") for number in range(count)]
    disks = []
    for _number in range(draw(st.integers(1, 6))):
        stays = draw(st.sampled_from(["", "", "", "it is held"]))
        disks.append(Disk(draw(st.integers(1, 40)) * GIB, None, "", names[draw(st.integers(0, count - 1))], "images", stays))
    pools = []
    for name in names:
        own = sum(disk.size for disk in disks if disk.storage == name)
        other = draw(st.integers(0, 50)) * GIB
        content = draw(st.sampled_from([(), ("images",), ("images", "rootdir"), ("rootdir",)]))
        total = own + other + draw(st.integers(1, 80)) * GIB
        pools.append(StoragePool(name, total, total - own - other, content))
    node = Node("n", "g", 65536.0, 0, 65536, 0.0, 0, 16.0, storage=tuple(pools))
    instances = tuple(
        Instance(f"i{number}", 1024, disk.size, 1, "n", disk_template=DiskTemplate.EXT, disks=(disk,)) for number, disk in enumerate(disks)
    )
    return Cluster((Group("g", "g", policy=NO_POLICY),), (node,), instances, policy=NO_POLICY)


def excess_of(used, totals, even):
    return sum(max(0.0, abs(used[name] - even[name] * totals[name]) - TOLERANCE * totals[name]) for name in totals)


def even_levels(fixed, totals, everything):
    """Return the level of each storage by pouring in ever thinner layers."""
    low, high = 0.0, 1.0
    for _turn in range(60):
        level = (low + high) / 2
        poured = sum(max(fixed[name], level * totals[name]) for name in totals)
        low, high = (level, high) if poured < everything else (low, level)
    return {name: max(fixed[name] / totals[name], low) for name in totals}


@settings(deadline=None)
@given(clusters())
def test_no_arrangement_has_less_excess_or_as_little_for_less_data(cluster):
    plan = even_storages(cluster, StorageOptions(TOLERANCE))
    pools = {pool.name: pool for pool in cluster.nodes[0].storage}
    totals = {name: pool.total for name, pool in pools.items()}
    used = {name: pool.total - pool.free for name, pool in pools.items()}
    disks = [instance.disks[0] for instance in cluster.instances]
    choices = [
        [
            name
            for name, pool in pools.items()
            if name == disk.storage or (not disk.stays and (not pool.content or "images" in pool.content))
        ]
        for disk in disks
    ]
    loose = [len(names) > 1 for names in choices]
    fixed = dict(used)
    for disk, free in zip(disks, loose):
        fixed[disk.storage] -= disk.size if free else 0
    even = even_levels(fixed, totals, sum(used.values()))
    best = None
    for places in itertools.product(*choices):
        after = dict(used)
        for disk, place in zip(disks, places):
            after[disk.storage] -= disk.size
            after[place] += disk.size
        if all(after[name] <= totals[name] for name in totals):
            data = sum(disk.size for disk, place in zip(disks, places) if place != disk.storage)
            best = min(filter(None, [best, (round(excess_of(after, totals, even)), data)]))
    least, data = best
    if plan.staged.blocked:
        return
    assert plan.complete
    assert abs(plan.excess_after - least) <= 3
    assert sum(move.size for move in plan.moves) <= data or plan.excess_after < least - 1
    # A disk that cannot go back counts as fixed the next time, so other levels are even then.
    sources = [pools[move.source[0]] for move in plan.moves]
    if all(not pool.content or "images" in pool.content for pool in sources):
        again = even_storages(_after(cluster, plan), StorageOptions(TOLERANCE))
        assert not again.moves, "a second run changes nothing"


def _after(cluster, plan):
    """Return the cluster as it is after a plan, room checked at every stage: what is copied lies in both storages meanwhile."""
    free = {pool.name: pool.free for pool in cluster.nodes[0].storage}
    homes = {}
    for stage in plan.staged.stages:
        moves = [plan.moves[position] for position in stage]
        assert len({move.instance.name for move in moves}) == len(moves)
        for move in moves:
            free[move.target[0]] -= move.size
        assert all(left >= 0 for left in free.values())
        for move in moves:
            free[move.source[0]] += move.size
            homes[move.instance.name] = move.target[0]
    instances = tuple(
        dataclasses.replace(one, disks=(dataclasses.replace(one.disks[0], storage=homes.get(one.name, one.disks[0].storage)),))
        for one in cluster.instances
    )
    pools = tuple(dataclasses.replace(pool, free=free[pool.name]) for pool in cluster.nodes[0].storage)
    return dataclasses.replace(cluster, instances=instances, nodes=(dataclasses.replace(cluster.nodes[0], storage=pools),))


@settings(deadline=None)
@given(clusters(), st.integers(0, 60), st.integers(0, 3))
def test_what_a_plan_may_cost_is_kept(cluster, data, moves):
    plan = even_storages(cluster, StorageOptions(TOLERANCE, data * GIB, moves))
    assert sum(move.size for move in plan.moves) <= data * GIB
    assert len(plan.moves) <= moves
    assert plan.excess_after <= plan.excess_before + 1


@st.composite
def wanted_moves(draw):
    """Three storages, some nearly full, and up to eight moves between them of up to four instances."""
    keys = [(external(f"s{number}"), "") for number in range(3)]
    moves = []
    for number in range(draw(st.integers(1, 8))):
        source, target = draw(st.permutations(keys))[:2]
        instance = Instance(f"i{draw(st.integers(0, 3))}", 1, 1, 1, "n")
        moves.append(DiskMove(instance, f"disk{number}", draw(st.integers(1, 9)), source, target))
    storages = {}
    for key in keys:
        used = sum(move.size for move in moves if move.source == key) + draw(st.integers(0, 3))
        storages[key] = Storage(*key, ("n",), max(1, used + draw(st.integers(-2, 9))), used)
    return moves, storages


@settings(deadline=None)
@given(wanted_moves(), st.data())
def test_moves_that_wait_for_those_they_name_and_for_nobody_else_have_room(given_moves, data):
    """Each begins as soon as the ones that it names have ended, and they end in any order."""
    wanted, storages = given_moves
    plan = staged(wanted, storages)
    assert sorted(map(id, [*plan.moves, *plan.blocked])) == sorted(map(id, wanted))
    if all(storage.used <= storage.total for storage in storages.values()):
        assert sum(map(len, plan.after)) <= 3 * len(plan.moves), "a MiB is waited for once"
    free = {key: storage.total - storage.used for key, storage in storages.items()}
    waiting, running, ended = list(range(len(plan.moves))), [], set()
    while waiting or running:
        for position in [position for position in waiting if ended.issuperset(plan.after[position])]:
            move = plan.moves[position]
            free[move.target] -= move.size
            assert free[move.target] >= 0
            assert move.instance.name not in {plan.moves[other].instance.name for other in running}
            waiting.remove(position)
            running.append(position)
        done = running.pop(data.draw(st.integers(0, len(running) - 1)))
        free[plan.moves[done].source] += plan.moves[done].size
        ended.add(done)
