# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""group_balance of storages, as a user reads it."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.inline import parse_inline, write_inline
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.sources.loaded import Loaded
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.tasks.storages import run_storages

USUAL = {"mode": "score", "disk_moves": True}


def node(name, *pools):
    return {"name": name, "total_memory": 65536, "total_cpus": 16, "storage": [*pools]}


def pool(name, total, free, kind="external", **more):
    return {"type": kind, "pool": name, "total": total, "free": free, **more}


def disk(size, storage, kind="external", **more):
    return {"size": size, "storage": {"type": kind, "pool": storage}, **more}


def instance(name, *disks, primary="n1", **more):
    return {"name": name, "memory": 1024, "vcpus": 1, "primary": primary, "disk_template": "ext", "disks": [*disks], **more}


def run(nodes, instances, **arguments):
    cluster = parse_inline({"nodes": nodes, "instances": instances})
    assert parse_inline(write_inline(cluster)) == cluster
    return run_storages(Loaded(cluster, {}), arguments, USUAL)


def went(told):
    return {(move["instance"], move["disk"]): (move["from_storage"], move["to_storage"]) for move in told["plan"]["moves"]}


SHARED = (pool("slow", 1000, 100), pool("fast", 1000, 900))


def test_disks_go_to_where_there_is_room():
    told = run([node("n1", *SHARED), node("n2", *SHARED)], [instance("a", disk(400, "slow", name="data"), disk(300, "slow"))])
    assert went(told) == {("a", "data"): ("slow", "fast")}
    (move,) = told["plan"]["moves"]
    assert (move["from"], move["to"], move["data"], move["steps"][0]["kind"]) == (["n1"], ["n1"], 400, "move_disk")
    assert [(one["storage"], one["used_before"], one["used_after"]) for one in told["storages"]] == [("slow", 900, 500), ("fast", 100, 500)]
    assert "1 disk moves, 400 MiB are copied." in told["summary"]


def test_the_summary_says_what_changes_and_what_is_left():
    level = pool("level", 1000, 500)
    told = run([node("n1", level, *SHARED)], [instance("a", disk(400, "slow")), instance("b", disk(300, "level"))])
    rows, moved, *_table = told["summary"].split("\n\n")
    assert [row.split()[0] for row in rows.splitlines()[1:]] == ["slow", "fast", "level"]
    assert moved == "1 disk moves, 400 MiB are copied."
    even = run([node("n1", level)], [instance("b", disk(300, "level"))])
    assert even["summary"].split("\n\n")[1].splitlines()[0] == "No disk needs to move."
    held = run([node("n1", *SHARED)], [instance("a", disk(900, "slow"))])
    assert "are still out of balance." in held["summary"]


def test_disks_of_one_instance_go_one_after_the_other():
    told = run([node("n1", *SHARED)], [instance("a", disk(200, "slow"), disk(200, "slow"))])
    assert told["plan"]["stages"] == [[0], [1]]
    assert told["plan"]["moves"][1]["after"] == [0]


@pytest.mark.parametrize(
    ("first", "second", "more", "why"),
    [
        (SHARED[0], SHARED[1], {"stays": "it has snapshots"}, "it has snapshots"),
        (pool("slow", 1000, 100), pool("fast", 1000, 900, content=["rootdir"]), {"content": "images"}, "no other storage"),
        (pool("slow", 1000, 100), pool("fast", 1000, 900, "internal"), {}, "no other storage"),
    ],
)
def test_what_stays_is_told_with_its_reason(first, second, more, why):
    told = run([node("n1", first, second)], [instance("a", disk(400, "slow", **more))])
    assert not told["plan"]["moves"]
    assert why in told["stays"][0]["why"]
    assert why in told["summary"]


def test_a_disk_goes_only_where_all_nodes_that_may_have_its_instance_reach():
    nodes = [node("n1", *SHARED), node("n2", SHARED[0])]
    assert not run(nodes, [instance("a", disk(400, "slow"))])["plan"]["moves"]


def test_local_disks_go_to_other_local_storages_of_their_node():
    pools = (pool("lvm", 1000, 100, "internal"), pool("zfs", 1000, 900, "internal"))
    told = run([node("n1", *pools), node("n2", *pools)], [instance("a", disk(400, "lvm", "internal"), primary="n2")])
    assert went(told) == {("a", "disk0"): ("lvm", "zfs")}
    assert [one["nodes"] for one in told["storages"] if one["used_before"] != one["used_after"]] == [["n2"], ["n2"]]


def test_a_storage_that_cannot_be_emptied_leaves_the_others_even():
    nodes = [node("n1", pool("stuck", 1000, 50), pool("b", 1000, 400), pool("c", 1000, 800))]
    told = run(nodes, [instance("a", disk(200, "b"))])
    assert went(told) == {("a", "disk0"): ("b", "c")}


def test_those_that_are_not_to_be_balanced_and_offline_nodes_are_left_alone():
    held = run([node("n1", *SHARED)], [instance("a", disk(400, "slow"), auto_balance=False)])
    assert "its instance is not to be balanced" in held["stays"][0]["why"]
    away = run([node("n1", *SHARED) | {"offline": True}], [instance("a", disk(400, "slow"))])
    assert "no node that answers" in away["summary"].lower()


def test_free_space_is_what_disks_leave():
    (slow, fast) = ({"type": "external", "pool": name, "total": 1000} for name in ("slow", "fast"))
    told = run([node("n1", slow, fast)], [instance("a", disk(600, "slow"), disk(200, "slow"))])
    assert [one["used_before"] for one in told["storages"]] == [800, 0]


@pytest.mark.parametrize(
    ("arguments", "place"),
    [({"mode": "htools"}, "mode"), ({"max_data": "lots"}, "max_data"), ({"tolerance": -1.0}, "tolerance"), ({"groups": ["g"]}, "groups")],
)
def test_options_that_storages_do_not_have(arguments, place):
    with pytest.raises(InputError) as caught:
        run([node("n1", *SHARED)], [instance("a", disk(400, "slow"))], **arguments)
    assert [mistake.place for mistake in caught.value.mistakes] == [place]


def test_a_cluster_that_does_not_tell_where_its_disks_lie_is_refused():
    plain = copy.deepcopy(instance("a"))
    plain["disks"] = [{"size": 10}]
    with pytest.raises(InputError, match="no disk says which storage it lies in"):
        run([node("n1", *SHARED)], [plain])
