# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ill groups: healed inside where that is possible, with few leavers where not, and else told what is missing."""

from __future__ import annotations

import concurrent.futures
import pathlib

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import (
    AllocPolicy,
    DiskTemplate,
    Load,
    PoolKind,
    PoolName,
    StoragePool,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.text import parse_text
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.redistribute import run_redistribute
from ansible_collections.bareon.allocator.tests.support.group.policies import open_group

ROOT = pathlib.Path(__file__).resolve().parents[6]
SAN = StoragePool(PoolName(PoolKind.EXTERNAL, "san"))
NAS = StoragePool(PoolName(PoolKind.EXTERNAL, "nas"))


def nodes(bench, name, **fields):
    return [bench.node(f"{name}{number}", name, **fields) for number in (1, 2, 3)]


def run(bench, members, guests, groups=(), run_with=map, **arguments):
    names = dict.fromkeys(node.group for node in members)
    known = {given.name: given for given in groups}
    cluster = bench.cluster(members, guests, [known.get(name) or open_group(name) for name in names])
    return run_redistribute(Loaded(cluster, {}), arguments, run_with)


def ill(bench):
    """Return a group whose first node fails N+1 and whose others have no room for what causes it, and its instances."""
    members = nodes(bench, "a", total_memory=1000.0)
    guests = [bench.instance(f"big{number}", f"a{number}", f"a{number % 3 + 1}", memory=600) for number in (1, 2, 3)]
    return members, guests


def test_without_time_nothing_is_tried_and_with_enough_of_it_all_is(bench):
    members, guests = ill(bench)
    members += nodes(bench, "b", total_memory=4000.0)
    late, whole, timely = (run(bench, members, guests, **limit) for limit in ({"time_limit": 0.0}, {}, {"time_limit": 600.0}))
    assert not late["plan"]["moves"]
    assert [(one["healed"], one["complete"]) for one in late["groups"]] == [(False, False), (True, True)]
    assert "a: the time limit ended the search" in late["summary"]
    assert timely == whole
    assert all(one["complete"] for one in whole["groups"])


def test_a_healthy_cluster_stays_as_it_is(bench):
    found = run(bench, [*nodes(bench, "a"), *nodes(bench, "b")], [bench.instance("i", "a1", "a2")])
    assert found["healthy"]
    assert [told["healthy"] for told in found["groups"]] == [True, True]
    assert found["plan"]["moves"] == []


def test_what_can_be_healed_inside_leaves_nobody(bench):
    members = [*nodes(bench, "a"), *nodes(bench, "b")]
    members[0] = bench.node("a1", "a", offline=True)
    found = run(bench, members, [bench.instance("i", "a1", "a2"), bench.instance("j", "a2", "a1")])
    [told, _spare] = found["groups"]
    assert told["on_offline_nodes"] == ["i", "j"]
    assert told["healed"]
    assert told["moved_out"] == []
    assert sorted(told["moved_inside"]) == ["i", "j"]
    assert told["fewest"]


def test_the_fewest_leave_when_there_is_no_room_inside(bench):
    members, guests = ill(bench)
    found = run(bench, [*members, *nodes(bench, "b", total_memory=2000.0, free_memory=2000)], guests)
    told = found["groups"][0]
    assert len(told["n1_failing"]) == 3
    assert told["healed"]
    assert told["fewest"]
    assert len(told["moved_out"]) == 1
    assert found["plan"]["stages"]


def test_the_sample_of_three_groups_is_healed_by_three_leavers():
    cluster = parse_text((ROOT / "playbooks" / "files" / "supercluster.data").read_text())
    found = run_redistribute(Loaded(cluster, {}), {})
    told = found["groups"][0]
    assert found["healthy"]
    assert not told["healthy"]
    assert len(told["on_offline_nodes"]) > 5
    assert told["n1_failing"]
    assert len(told["moved_out"]) == 3
    assert told["fewest"]


def test_causes_come_in_the_order_of_the_design(bench):
    members, guests = ill(bench)
    members[2] = bench.node("a3", "a", offline=True)
    told = run(bench, members, [*guests, bench.instance("extra", "a2", "a1", memory=50)])["groups"][0]
    kinds = [cause["cause"] for cause in told["causes"]]
    assert kinds == sorted(kinds, key=["offline", "secondary", "primary", "shared"].index)
    assert {cause["instance"] for cause in told["causes"] if cause["cause"] == "offline"} == {"big2", "big3"}


def test_without_room_it_says_which_limit_lacks_how_much(bench):
    members, guests = ill(bench)
    tight = [bench.node(f"b{number}", "b", total_memory=550.0, free_memory=550) for number in (1, 2, 3)]
    found = run(bench, [*members, *tight], guests)
    told = found["groups"][0]
    assert not found["healthy"]
    assert not told["healed"]
    assert told["remains"]["n1_failing"]
    nearest = told["missing"][0]["groups"][0]["nearest"]
    assert (nearest["limit"], nearest["short"]) == ("memory", 50)


def test_a_group_alone_in_its_partition_is_told_so(bench):
    members = nodes(bench, "a", storage=(SAN,), total_memory=500.0, free_memory=500)
    guests = [
        bench.instance(f"i{number}", f"a{number}", disk_template=DiskTemplate.EXT, storage=SAN.name, memory=400) for number in (1, 2, 3)
    ]
    found = run(bench, [*members, *nodes(bench, "b", storage=(NAS,))], guests)
    told = found["groups"][0]
    assert told["shared_n1_failing"]
    assert told["peers"] == []
    assert told["missing"][0]["says"] == "no other healthy group shares its storage"


def test_instances_on_shared_storage_go_where_the_pool_is(bench):
    members = nodes(bench, "a", storage=(SAN,), total_memory=500.0, free_memory=500)
    guests = [
        bench.instance(f"i{number}", f"a{number}", disk_template=DiskTemplate.EXT, storage=SAN.name, memory=400) for number in (1, 2, 3)
    ]
    found = run(bench, [*members, *nodes(bench, "b", storage=(NAS,)), *nodes(bench, "c", storage=(SAN,))], guests)
    told = found["groups"][0]
    assert told["healed"]
    assert told["fewest"]
    assert [move["group"] for move in found["plan"]["moves"]] == ["c"]


def test_fragmented_memory_is_put_together_inside(bench):
    """Two small instances on two nodes leave no node for the large one's restart; together on one they do."""
    members = nodes(bench, "a", storage=(SAN,), total_memory=400.0, free_memory=400)
    sizes = {"a1": 100, "a2": 100, "a3": 400}
    guests = [
        bench.instance(f"i{name}", name, disk_template=DiskTemplate.EXT, storage=SAN.name, memory=size) for name, size in sizes.items()
    ]
    told = run(bench, [*members, *nodes(bench, "c", storage=(SAN,))], guests)["groups"][0]
    assert told["healed"]
    assert told["moved_out"] == []
    assert len(told["moved_inside"]) == 1


def test_one_who_is_well_leaves_so_that_one_who_is_down_starts_and_could_restart(bench):
    members = [bench.node(f"a{at}", "a", storage=(SAN,), total_memory=400.0, free_memory=400, offline=at == 1) for at in (1, 2, 3)]
    guests = [
        bench.instance(name, home, disk_template=DiskTemplate.EXT, storage=SAN.name, memory=size)
        for name, home, size in (("large", "a1", 400), ("small", "a2", 100))
    ]
    others = [bench.node(f"c{at}", "c", storage=(SAN,), total_memory=100.0, free_memory=100) for at in (1, 2)]
    told = run(bench, [*members, *others], guests)["groups"][0]
    assert told["healed"]
    assert told["moved_out"] == ["small"]
    assert told["moved_inside"] == ["large"]


def test_places_that_led_nowhere_are_tried_anew_when_somebody_leaves(bench):
    """The two that would have to change nodes wait for each other; when one leaves, the other one's way is free."""
    sizes = {"a1": 400, "a2": 800, "a3": 500, "b1": 400, "b2": 200}
    members = [bench.node(name, name[0], total_memory=float(size), free_memory=size) for name, size in sizes.items()]
    guests = [
        bench.instance("i", "a2", "a3", memory=400),
        bench.instance("j", "a2", "a1", memory=100),
        bench.instance("k", "a2", "a3", memory=300),
        bench.instance("l", "a1", "a3", memory=100),
    ]
    told = run(bench, members, guests)["groups"][0]
    assert told["healed"]
    assert len(told["moved_out"]) == 1


def test_room_is_kept_for_one_that_is_down_on_its_way_over_its_secondary(bench):
    """Only by a failover to a1 can `down` leave a3. Without room there it blocks moves after which no node fails N+1."""
    sizes = {"a1": 300, "a2": 700, "a3": 500, "a4": 900, "b1": 100, "b2": 100}
    members = [bench.node(n, n[0], total_memory=float(m), free_memory=m, offline=n == "a3", total_cpus=99.0) for n, m in sizes.items()]
    guests = [
        bench.instance("down", "a3", "a1", memory=100),
        bench.instance("alone", "a2", memory=400, disk_template=DiskTemplate.EXT),
        *(bench.instance(f"i{number}", "a4", memory=size, disk_template=DiskTemplate.EXT) for number, size in enumerate((200, 300, 400))),
        bench.instance("there", "a1", "a4", memory=300),
    ]
    found = run(bench, members, guests)
    assert [move["to"] for move in found["plan"]["moves"] if move["instance"] == "there"] == [["a2", "a1"]]
    assert not found["groups"][0]["remains"]["n1_failing"]


def test_where_nobody_alone_would_help_by_leaving_all_causes_say_what_they_lack(bench):
    """a1 lacks memory for the failure of a2 and for that of a3."""
    members = [bench.node("a1", "a", total_memory=400.0), *(bench.node(f"a{n}", "a", total_memory=700.0) for n in (2, 3))]
    guests = [bench.instance(f"{size}-of-{n}", f"a{n}", "a1", memory=size) for n in (2, 3) for size in (400, 300)]
    told = run(bench, [*members, *nodes(bench, "b", total_memory=200.0)], guests)["groups"][0]
    assert not told["healed"]
    assert {one["instance"] for one in told["missing"]} == {guest.name for guest in guests}


def test_groups_that_take_no_instances_get_none(bench):
    members, guests = ill(bench)
    spare = nodes(bench, "b", total_memory=2000.0, free_memory=2000)
    found = run(bench, [*members, *spare], guests, [open_group("b", alloc_policy=AllocPolicy.UNALLOCABLE)])
    assert found["groups"][0]["moved_out"] == []
    assert not found["healthy"]


def test_ill_groups_take_no_instances(bench):
    members, guests = ill(bench)
    others = [bench.node(f"b{number}", "b", total_memory=2000.0, free_memory=2000, offline=number == 3) for number in (1, 2, 3)]
    stuck = bench.instance("stuck", "b3", disk_template=DiskTemplate.PLAIN)
    found = run(bench, [*members, *others], [*guests, stuck])
    assert not any(told["healed"] for told in found["groups"])
    assert found["groups"][1]["missing"] == [{"instance": "stuck", "says": "its disks cannot be moved to another node", "groups": []}]


def test_without_across_groups_nobody_leaves(bench):
    members, guests = ill(bench)
    found = run(bench, [*members, *nodes(bench, "b", total_memory=2000.0, free_memory=2000)], guests, across_groups=False)
    assert found["groups"][0]["moved_out"] == []
    assert not found["healthy"]


def test_groups_may_be_solved_side_by_side(bench):
    members = [*nodes(bench, "a"), *nodes(bench, "b"), *nodes(bench, "c")]
    members[0], members[3] = bench.node("a1", "a", offline=True), bench.node("b1", "b", offline=True)
    guests = [bench.instance("i", "a1", "a2"), bench.instance("j", "b1", "b2")]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        beside = run(bench, members, guests, run_with=pool.map)
    assert beside == run(bench, members, guests)
    assert beside["healthy"]


def test_all_mistakes_of_the_arguments_are_told(bench):
    with pytest.raises(InputError) as error:
        run(bench, nodes(bench, "a"), [], by="load", tolerance=-1.0, max_moves=-2)
    assert {mistake.place for mistake in error.value.mistakes} == {"tolerance", "max_moves"}


def loaded(bench, name, primary, cpu, **fields):
    template = {"disk_template": DiskTemplate.EXT} | fields
    return bench.instance(name, primary, load=Load(cpu, 0, 0, 0), **template)


def test_load_is_levelled_between_groups(bench):
    guests = [loaded(bench, f"i{number}", f"a{number % 3 + 1}", 10.0) for number in range(8)]
    found = run(bench, [*nodes(bench, "a"), *nodes(bench, "b")], guests, by="load")
    assert [told["outlier"] for told in found["groups"]] == ["high", "low"]
    assert found["groups"][0]["pressure"]["cpu"] == pytest.approx(2.0)
    assert found["load_score_after"] < found["load_score_before"]
    assert [told["outlier_after"] for told in found["groups"]] == [None, None]
    assert len(found["plan"]["moves"]) == 4


def test_a_group_twice_as_strong_may_carry_twice_as_much(bench):
    strong = nodes(bench, "a", total_cpus=20.0)
    guests = [loaded(bench, f"a{number}", "a1", 10.0) for number in range(4)] + [
        loaded(bench, f"b{number}", "b1", 10.0) for number in range(2)
    ]
    found = run(bench, [*strong, *nodes(bench, "b")], guests, by="load")
    assert found["load_score_before"] == pytest.approx(0.0)
    assert found["plan"]["moves"] == []


def test_disks_are_only_copied_for_load_when_that_is_asked_for(bench):
    guests = [loaded(bench, f"i{number}", "a1", 10.0, secondary="a2", disk_template=DiskTemplate.DRBD) for number in range(4)]
    members = [*nodes(bench, "a"), *nodes(bench, "b")]
    assert run(bench, members, guests, by="load")["plan"]["moves"] == []
    assert len(run(bench, members, guests, by="load", disk_moves=True)["plan"]["moves"]) == 2


def test_no_more_moves_than_asked_for(bench):
    guests = [loaded(bench, f"i{number}", "a1", 10.0) for number in range(8)]
    members = [*nodes(bench, "a"), *nodes(bench, "b")]
    assert len(run(bench, members, guests, by="load", max_moves=1)["plan"]["moves"]) == 1


def test_measured_loads_of_instances_and_nodes_count(bench):
    guests = [loaded(bench, f"i{number}", "a1" if number < 2 else "b1", 1.0) for number in range(4)]
    members = [*nodes(bench, "a"), *nodes(bench, "b")]
    assert run(bench, members, guests, by="load")["plan"]["moves"] == []
    busy = run(bench, members, guests, by="load", load={name: {"cpu": 9} for name in ("i0", "i1")})
    assert [told["outlier"] for told in busy["groups"]] == ["high", "low"]
    assert len(busy["plan"]["moves"]) == 1
    node = run(bench, members, guests, by="load", node_load={"b1": {"cpu": 40}})
    assert [told["outlier"] for told in node["groups"]] == ["low", "high"]
    with pytest.raises(InputError) as error:
        run(bench, members, guests, by="load", load={"x": {"cpu": 1}, "i0": {"cpu": "much"}})
    assert len(error.value.mistakes) == 2
