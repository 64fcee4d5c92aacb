# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sets of nodes that may be down together, and nodes that can be powered off: nothing is lost, and there is room."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.arrays import Quantity
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import (
    DiskTemplate,
    PoolKind,
    PoolName,
    Spec,
    StoragePool,
)
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.state import ClusterState
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.evacuate.downtime import Departure, DowntimeOptions, back, leave
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.evacuate.rolling_maintenance import EvacuationRoom
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.maintenance import run_maintenance, run_squeeze
from ansible_collections.bareon.allocator.tests.support.group.policies import OPEN, open_group

STANDARD = dataclasses.replace(OPEN, standard=Spec(100, 1, 100, 1, 1, 1))
SAN = StoragePool(PoolName(PoolKind.EXTERNAL, "san"))


def message(bench, members, guests):
    names = dict.fromkeys(node.group for node in members)
    cluster = bench.cluster(members, guests, [open_group(name, policy=STANDARD) for name in names])
    return Loaded(dataclasses.replace(cluster, policy=STANDARD), {})


def run(bench, members, guests, **arguments):
    return run_maintenance(message(bench, members, guests), arguments)


def sets(found):
    return [told["nodes"] for told in found["sets"]]


def shared(bench, name, primary, **fields):
    return bench.instance(name, primary, disk_template=DiskTemplate.EXT, **fields)


def test_two_copies_are_never_down_together(bench):
    members = [bench.node(name) for name in "abcd"]
    found = run(bench, members, [bench.instance("i", "a", "b"), bench.instance("j", "c", "d")])
    assert len(sets(found)) == 2
    assert not any({"a", "b"} <= set(nodes) or {"c", "d"} <= set(nodes) for nodes in sets(found))
    moved = {move["instance"] for told in found["sets"] for move in told["plan"]["moves"]}
    assert moved == {"i", "j"}


def test_primaries_of_one_secondary_may_be_down_together_when_it_has_memory_for_both(bench):
    """Ganeti's hroller never lets them; N+1 asks for the memory of one of them only."""
    small = [bench.node("a"), bench.node("b"), bench.node("c", total_memory=600.0, free_memory=600)]
    guests = [bench.instance("i", "a", "c", memory=300), bench.instance("j", "b", "c", memory=300)]
    assert sets(run(bench, small, guests)) == [["a", "b"], ["c"]]
    guests[1] = dataclasses.replace(guests[1], memory=301)
    assert len(sets(run(bench, small, guests))) == 3 or ["a", "b"] not in sets(run(bench, small, guests))


def test_bug_10_shared_storage_is_movable_and_replaced_secondaries_leave_the_primary_alone(bench):
    """hroller books a replaced secondary on the primary, and takes instances on shared storage for lost."""
    members = [bench.node(name) for name in "abcd"]
    guests = [bench.instance("i", "a", "b", memory=200, disk=3000), shared(bench, "s", "b", memory=300)]
    state_of = message(bench, members, guests).cluster
    state = ClusterState.from_cluster(state_of)
    departure = leave(state, [1], DowntimeOptions(full=True))
    assert isinstance(departure, Departure)
    assert {state.facts.instances.names[move.instance] for move in departure.moves} == {"i", "s"}
    after = state.copy()
    for move in departure.moves:
        after.place(move.instance, *move.target)
    assert after.primary[0] == 0
    assert after.secondary[0] in (2, 3)
    assert after.quantities[Quantity.DISK].tolist()[:2] == [7000, 10000]
    assert after.quantities[Quantity.MEMORY, 0] == state.quantities[Quantity.MEMORY, 0]
    assert after.quantities[Quantity.PRIMARIES, 1] == after.quantities[Quantity.SECONDARIES, 1] == 0
    found = run(bench, members, guests, non_redundant="skip")
    assert found["left_out"] == []


def test_those_on_shared_storage_need_room_and_the_pool(bench):
    members = [bench.node("a", storage=(SAN,)), bench.node("b", storage=(SAN,)), bench.node("c")]
    found = run(bench, members, [shared(bench, "s", "a", storage=SAN.name)])
    assert [move["to"] for told in found["sets"] for move in told["plan"]["moves"]] == [["b"]]
    assert all({"a", "b"} - set(nodes) for nodes in sets(found))
    full = [members[0], bench.node("b", total_memory=50.0, free_memory=50, storage=(SAN,)), members[2]]
    skipped = run(bench, full, [shared(bench, "s", "a", storage=SAN.name)])["left_out"]
    assert skipped == [{"node": "a", "instance": "s", "says": "no other node of its group has room for it"}]


def test_a_node_that_nothing_leaves_needs_no_room(bench):
    """The others could not restart the instance on shared storage any more, but no move makes that so."""
    members = [bench.node("a", free_memory=100), bench.node("empty", free_memory=100), bench.node("full", free_memory=0)]
    guests = [bench.instance("i", "a", memory=100, disk_template=DiskTemplate.RBD)]
    state = bench.state(members, guests)
    assert leave(state, [1], DowntimeOptions(full=True)).moves == ()
    assert EvacuationRoom(state).may_suffice([1])
    assert not EvacuationRoom(state).may_suffice([0, 1])


def test_a_node_that_is_emptied_keeps_no_room_for_the_failure_of_another(bench):
    """While `a` is down, `j` could restart on `c` only; what left `a` must not take that room."""
    members = [bench.node("a", free_memory=0), bench.node("b", free_memory=0), bench.node("c", free_memory=100)]
    guests = [shared(bench, "i", "a", memory=100), shared(bench, "j", "b", memory=100)]
    state = bench.state(members, guests)
    assert leave(state, [0], DowntimeOptions(full=True)).instance == 0
    assert not EvacuationRoom(state).may_suffice([0])
    roomy = bench.state([*members[:2], bench.node("c", free_memory=200), bench.node("d", free_memory=100)], guests)
    assert len(leave(roomy, [0], DowntimeOptions(full=True)).moves) == 1
    assert EvacuationRoom(roomy).may_suffice([0])


def test_one_of_two_nodes_may_be_emptied(bench):
    """With one node left, its instances can restart nowhere, with more beside them or not."""
    state = bench.state([bench.node("a"), bench.node("b")], [shared(bench, "i", "a"), shared(bench, "j", "b")])
    assert len(leave(state, [0], DowntimeOptions(full=True)).moves) == 1
    assert EvacuationRoom(state).may_suffice([0])


def test_shut_down_with_their_nodes_nothing_moves(bench):
    members = [bench.node(name) for name in "abc"]
    found = run(bench, members, [bench.instance("i", "a", "b"), shared(bench, "s", "c")], offline_maintenance=True)
    assert len(sets(found)) == 2
    assert not any(told["plan"]["moves"] for told in found["sets"])


@pytest.mark.parametrize(("what", "count", "skipped", "carried"), [("move", 2, 0, 1), ("skip", 1, 1, 0), ("ignore", 1, 0, 0)])
def test_disks_on_one_node(bench, what, count, skipped, carried):
    found = run(bench, [bench.node("a"), bench.node("b")], [bench.instance("p", "a")], non_redundant=what)
    assert len(found["sets"]) == count
    assert len(found["left_out"]) == skipped
    told = [one for members in found["sets"] for one in members["carried"]]
    assert len(told) == carried
    assert all(one["commands"] == ["gnt-instance move -f -n b p"] and one["data"] == 1000 for one in told)


def test_the_master_comes_last(bench):
    members = [bench.node("m", master=True), *[bench.node(name) for name in "abc"]]
    found = run(bench, members, [bench.instance("i", "m", "a")])
    assert sets(found)[-1][-1] == "m"


def test_tags_groups_and_sizes_of_sets(bench):
    members = [bench.node(name, tags=("rack:1",) if name in "ab" else ()) for name in "abcd"] + [bench.node("e", "other")]
    assert sorted(sum(sets(run(bench, members, [], node_tags=["rack:1"])), [])) == ["a", "b"]
    assert sets(run(bench, members, [], groups=["other"])) == [["e"]]
    assert sorted(map(len, sets(run(bench, members, [], max_nodes=2)))) == [1, 2, 2]
    assert sets(run(bench, members, [], nodes=["c"])) == [["c"]]
    with pytest.raises(InputError, match="max_nodes"):
        run(bench, members, [], max_nodes=0)
    with pytest.raises(InputError, match="unknown node 'x'"):
        run(bench, members, [], nodes=["x"])


def test_the_way_back_leads_to_where_all_was(bench):
    members = [bench.node(name) for name in "abc"]
    state = ClusterState.from_cluster(message(bench, members, [bench.instance("i", "a", "b"), shared(bench, "s", "a")]).cluster)
    departure = leave(state, [0], DowntimeOptions())
    now = state.copy()
    for move in (*departure.moves, *back(state, [0], departure)):
        assert move.source == (now.primary[move.instance], now.secondary[move.instance])
        for step in move.steps:
            now.place(move.instance, *step)
    assert now.primary.tolist() == state.primary.tolist()
    assert now.secondary.tolist() == state.secondary.tolist()


def squeezed(bench, members, guests, **arguments):
    return run_squeeze(message(bench, members, guests), arguments)


def test_nodes_are_powered_off_while_the_others_keep_room(bench):
    members = [bench.node("m", master=True), *[bench.node(name) for name in "abc"]]
    guests = [shared(bench, f"i{name}", name) for name in "mabc"]
    found = squeezed(bench, members, guests)
    assert len(found["power_off"]) == 2
    assert "m" not in found["power_off"]
    assert {move["from"][0] for move in found["plan"]["moves"]} == set(found["power_off"])
    assert found["power_on"] == []


def test_a_node_alone_is_enough_without_redundancy(bench):
    members = [bench.node("m", master=True), *[bench.node(name) for name in "abc"]]
    guests = [shared(bench, f"i{name}", name) for name in "mabc"]
    assert sorted(squeezed(bench, members, guests, redundant=False)["power_off"]) == ["a", "b", "c"]
    assert len(squeezed(bench, members, guests, redundant=False, target_resources=6.5)["power_off"]) == 2


def test_small_nodes_go_off_rather_than_a_large_one_with_fewer_instances(bench):
    members = [bench.node("m", master=True), bench.node("large", total_memory=4000.0, free_memory=4000)]
    members += [bench.node(name) for name in "abc"]
    guests = [shared(bench, "full", "m", memory=950), shared(bench, "one", "large", memory=400)]
    guests += [shared(bench, f"{name}{number}", name, memory=260) for name in "abc" for number in range(2)]
    found = squeezed(bench, members, guests, redundant=False, target_resources=0.1, minimal_resources=0.1)
    assert sorted(found["power_off"]) == ["a", "b", "c"]


def test_nodes_with_mirrors_or_disks_stay_on(bench):
    members = [bench.node("m", master=True), *[bench.node(name) for name in "abc"]]
    found = squeezed(bench, members, [bench.instance("d", "a", "b"), bench.instance("p", "c")], redundant=False)
    assert found["power_off"] == []


def test_nodes_on_standby_come_on_when_room_is_short(bench):
    standby = [bench.node(f"s{number}", offline=True, tags=("htools:standby:auto",)) for number in range(3)]
    members = [bench.node("m", master=True), *standby, bench.node("dead", offline=True)]
    guests = [shared(bench, f"i{number}", "m") for number in range(9)]
    found = squeezed(bench, members, guests)
    assert found["power_on"] == ["s0"]
    assert found["plan"]["moves"]
    assert found["lacking"] == []
    assert found["power_off"] == []
    assert squeezed(bench, members, guests, minimal_resources=1.0, redundant=False)["power_on"] == []


def test_what_stays_short_is_told(bench):
    found = squeezed(bench, [bench.node("m", master=True)], [shared(bench, f"i{number}", "m") for number in range(9)])
    assert found["lacking"] == ["m"]
    with pytest.raises(InputError, match="target_resources"):
        squeezed(bench, [bench.node("m")], [], target_resources=-1)


def test_a_node_that_is_drained_already_is_maintained_if_it_is_named():
    """As HA's maintenance mode drains one before the other guests are planned for."""
    pool = {"type": "external", "pool": "ceph"}
    nodes = [{"name": name, "total_memory": 65536, "total_cpus": 16, "storage": [pool], "drained": name == "n1"} for name in ("n1", "n2")]
    instance = {"name": "vm", "memory": 1024, "disk": 1024, "vcpus": 1, "primary": "n1", "storage": pool}
    loaded = Loaded(parse_inline({"nodes": nodes, "instances": [instance]}), {})
    (told,) = run_maintenance(loaded, {"nodes": ["n1"]})["sets"]
    assert (told["nodes"], [move["to"] for move in told["plan"]["moves"]]) == (["n1"], [["n2"]])
    assert [move["to"] for move in told["back"]["moves"]] == [["n1"]]
    assert [members["nodes"] for members in run_maintenance(loaded, {})["sets"]] == [["n2"]]


POOL = {"type": "external", "pool": "ceph"}


def ruled(rules, instances, drained=(), cpus=(16, 16, 16)):
    """Return a cluster of three nodes with instances of two names, of which those with a mirror are mirrored."""
    nodes = [
        {"name": f"n{number}", "total_memory": 65536, "total_disk": 65536, "total_cpus": count, "storage": [POOL]}
        | {"drained": f"n{number}" in drained}
        for number, count in enumerate(cpus)
    ]
    usual = {"memory": 1024, "disk": 1024, "vcpus": 4}
    guests = [
        {"name": name, **usual, "primary": home[0]}
        | ({"secondary": home[1], "disk_template": "drbd"} if len(home) > 1 else {"disk_template": "ext", "storage": POOL})
        for name, home in instances.items()
    ]
    return Loaded(parse_inline({"nodes": nodes, "instances": guests, "rules": rules}), {})


@pytest.mark.parametrize(
    ("rules", "cpus"),
    [
        ([{"type": "pin", "instances": ["a"], "nodes": ["n0", "n2"]}], (16, 16, 16)),
        ([{"type": "anti_affinity", "instances": ["a", "b"]}], (16, 16, 16)),
        ([], (16, 2, 16)),
    ],
    ids=["pin", "apart", "cpus"],
)
def test_nobody_fails_over_to_a_mirror_that_rules_or_cpus_keep_it_off(rules, cpus):
    told = run_maintenance(ruled(rules, {"a": ["n0", "n1"], "b": ["n1"]}, cpus=cpus), {"nodes": ["n0"]})
    assert [(one["node"], one["instance"]) for one in told["left_out"]] == [("n0", "a")]
    assert told["sets"] == []
    # A rule that is broken anyway keeps no node from being maintained.
    broken = [{"type": "pin", "instances": ["a"], "nodes": ["n2"]}]
    assert run_maintenance(ruled(broken, {"a": ["n0", "n1"], "b": ["n1"]}), {"nodes": ["n0"]})["left_out"] == []


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("homes", [{"a": ["n0"], "b": ["n0"]}, {"a": ["n0", "n1"], "b": ["n0"]}], ids=["shared", "one mirrored"])
def test_those_that_belong_together_leave_together_and_come_back(homes, full):
    told = run_maintenance(ruled([{"type": "affinity", "instances": ["a", "b"]}], homes), {"nodes": ["n0"], "full_evacuation": full})
    (one,) = told["sets"]
    assert len({move["to"][0] for move in one["plan"]["moves"]}) == 1
    assert {move["instance"] for move in one["plan"]["moves"]} == {"a", "b"}
    assert {move["instance"]: move["to"] for move in one["back"]["moves"]} == homes


def test_mirrors_on_different_nodes_tear_nobody_apart():
    told = run_maintenance(
        ruled([{"type": "affinity", "instances": ["a", "b"]}], {"a": ["n0", "n1"], "b": ["n0", "n2"]}), {"nodes": ["n0"]}
    )
    assert told["sets"] == []
    assert [one["instance"] for one in told["left_out"]] == ["a"]


def test_nobody_comes_back_to_a_drained_node_or_to_where_its_pin_is_broken():
    homes = {"mirrored": ["n0", "n2"], "shared": ["n0"]}
    pin = [{"type": "pin", "instances": ["shared"], "nodes": ["n1", "n2"]}]
    (told,) = run_maintenance(ruled(pin, homes, drained=["n2"], cpus=[16] * 4), {"nodes": ["n0"], "full_evacuation": True})["sets"]
    assert {move["instance"]: set(move["to"]) for move in told["plan"]["moves"]} == {"mirrored": {"n1", "n3"}, "shared": {"n1"}}
    assert told["back"]["moves"] == []
