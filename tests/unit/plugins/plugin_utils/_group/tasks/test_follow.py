# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs of group_follow one after the other, on a cluster that changes in between."""

from __future__ import annotations

import itertools
import json

import pytest
from ansible_collections.bareon.allocator.plugins.filter.moves_to_html import moves_to_html
from ansible_collections.bareon.allocator.plugins.module_utils._data.errors import InputError
from ansible_collections.bareon.allocator.tests.support.group.follower import BEGIN, Follower, cluster

NODES = dict.fromkeys(("a", "b", "c"), "g")
NIGHT = [{"from": "22:00", "to": "05:00"}]


def crowded(count=6, memory=4096, primary="a", prefix="i"):
    return [{"name": f"{prefix}{number}", "memory": memory, "primary": primary} for number in range(count)]


def follower(instances=None, nodes=None, **arguments):
    return Follower(cluster(nodes or NODES, crowded() if instances is None else instances), **arguments)


def action(told, group="g"):
    found = next(one for one in told["groups"] if one["group"] == group)
    return found["action"], found["why"]


def test_no_more_moves_than_reach_the_target():
    one = follower(threshold=0.3, target=0.2)
    assert one.spread() == pytest.approx(0.375)
    told = one.settle()
    assert action(told) == ("balance", None)
    assert len(told["plan"]["moves"]) == told["groups"][0]["moves"] == 2
    assert told["groups"][0]["measure_after"] == pytest.approx(one.spread())
    assert one.spread() <= 0.2
    assert action(one.run(5)) == ("calm", None)


def test_between_target_and_threshold_nothing_begins_but_what_has_begun_goes_on():
    one = follower(threshold=0.3, target=0.01, max_moves=1, cooldown=600.0)
    calm = follower(crowded(4), threshold=0.3, target=0.01)
    assert (action(calm.run()), calm.spread()) == (("calm", None), 0.25)
    assert len(one.settle()["plan"]["moves"]) == 1
    waiting = one.run(5)
    assert (action(waiting), waiting["next"]) == (("wait", "cooldown"), "2026-03-02T08:10:00Z")
    while one.spread() > 0.01:
        assert action(one.settle(10)) == ("balance", None)
    assert action(one.run(10)) == ("calm", None)


def test_a_second_run_changes_nothing():
    one = follower(threshold=0.3)
    assert one.settle()["changed"]
    for _run in range(2):
        told = one.run()
        assert (told["changed"], told["plan"]["moves"], told["resumed"]) == (False, [], False)


def test_what_is_down_is_repaired_in_the_cooldown_and_out_of_hours():
    one = follower(threshold=0.3, cooldown=86400.0, windows=NIGHT, timezone="UTC", max_moves=0)
    assert action(one.run()) == ("wait", "window")
    one.settle(14 * 60, max_moves=10)
    one.told["nodes"][1]["offline"] = True
    down = [item["name"] for item in one.told["instances"] if item["primary"] == "b"]
    told = one.settle(11 * 60)
    assert action(told) == ("repair", None)
    assert [move["instance"] for move in told["plan"]["moves"]] == down
    assert told["groups"][0]["urgent"] == ["down", "drained"]
    assert not one.run(1)["plan"]["moves"]


def test_drained_nodes_are_emptied_unless_that_is_not_urgent():
    one = follower(threshold=1.0)
    one.told["nodes"][0]["drained"] = True
    assert action(one.run(urgent=["down", "limits", "n1"])) == ("calm", None)
    assert len(one.settle()["plan"]["moves"]) == 6
    assert {place[0] for place in one.places()} <= {"b", "c"}


def test_repairs_come_before_balance_elsewhere():
    nodes = {**NODES, "x": "h", "y": "h", "z": "h"}
    one = follower([*crowded(), *crowded(2, primary="x", prefix="j")], nodes, threshold=0.3)
    one.told["nodes"][3]["offline"] = True
    told = one.settle()
    assert (action(told), action(told, "h")) == (("wait", "repairs"), ("repair", None))
    assert {move["group"] for move in told["plan"]["moves"]} == {"h"}
    assert action(one.run(5)) == ("balance", None)


def test_moves_of_a_run_are_shared_by_groups_the_most_uneven_first():
    nodes = {**NODES, "x": "h", "y": "h", "z": "h"}
    one = follower([*crowded(), *crowded(8, primary="x", prefix="j")], nodes, threshold=0.3, max_moves=4)
    told = one.settle()
    moves = {group["group"]: group["moves"] for group in told["groups"]}
    assert sum(moves.values()) <= 4
    assert moves["h"] >= moves["g"]
    assert action(told, "h") == ("balance", None)


def test_who_was_moved_rests():
    one = follower(threshold=0.3, target=0.01, max_moves=1, rest=3600.0)
    moved = set()
    for _run in range(4):
        (move,) = one.settle(5)["plan"]["moves"]
        assert move["instance"] not in moved
        moved.add(move["instance"])
    # All that are on the most crowded node were moved a short while ago.
    for item, free in zip(one.told["instances"], itertools.cycle("ac")):
        item["primary"] = "b" if item["name"] in moved else free
    assert action(one.run(5, threshold=0.1)) == ("stuck", None)
    assert {move["instance"] for move in one.run(61, threshold=0.1)["plan"]["moves"]} <= moved
    assert one.run()["resumed"]


def test_the_time_of_a_plan_is_estimated_and_of_a_resumed_one_what_is_left():
    one = follower(threshold=0.3, target=0.2)
    planned = one.run(link_rate="64 MiB")["plan"]
    assert [move["memory"] for move in planned["moves"]] == [4096, 4096]
    # Both leave the same node, side by side.
    assert planned["seconds"] == {"stages": [128.0], "total": 128.0, "rate": 64.0, "rounds": 0}
    one.carry_out(planned, most=1)
    rest = one.run(link_rate="64 MiB")
    assert (rest["resumed"], rest["plan"]["moves"]) == (True, planned["moves"])
    assert rest["plan"]["seconds"]["total"] == 64.0
    assert "seconds" not in one.run()["plan"]


def test_a_plan_that_an_earlier_version_has_kept_is_estimated_without_memory():
    one = follower(threshold=0.3, target=0.2)
    one.run()
    record = json.loads(one.text)
    for move in record["pending"]["plan"]["moves"]:
        del move["memory"]
    one.text = json.dumps(record)
    rest = one.run(link_rate="64 MiB")
    assert (rest["resumed"], rest["plan"]["seconds"]["total"]) == (True, 0.0)


def test_a_peak_has_to_last():
    one = follower(threshold=0.3, confirm=600.0)
    assert action(one.run()) == ("wait", "confirm")
    assert action(one.run(9)) == ("wait", "confirm")
    assert action(one.run(1)) == ("balance", None)


def test_what_no_move_helps_is_stuck():
    one = follower([{"name": "big", "memory": 40960, "primary": "a", "disk_template": "plain"}], threshold=0.3)
    told = one.run()
    assert (action(told), told["plan"]["moves"]) == (("stuck", None), [])
    assert "no move helps" in told["summary"]
    assert not one.run(5)["changed"]


def test_who_is_stuck_is_searched_again_only_when_something_changed():
    one = follower([{"name": "big", "memory": 40960, "primary": "a", "disk_template": "plain"}], threshold=0.3)
    one.told["nodes"][0]["free_memory"] = 24900
    assert [action(one.run(5)) for _run in range(3)] == [("stuck", None)] * 3
    assert one.searched == ["g"]
    one.told["nodes"][0]["free_memory"] -= 20
    assert (action(one.run(5)), one.searched) == (("stuck", None), ["g"])
    one.run(5, disk_moves=False)
    assert one.searched == ["g", "g"]
    one.told["instances"].append({**one.told["instances"][0], "name": "small", "memory": 4096, "disk_template": "ext"})
    assert one.settle(5)["plan"]["moves"]
    assert one.searched == ["g"] * 3


def test_what_cannot_be_repaired_is_searched_once_for_each_purpose():
    one = follower([{"name": "big", "memory": 40960, "primary": "a", "disk_template": "plain"}], threshold=0.3)
    one.told["nodes"][0]["drained"] = True
    for _run in range(3):
        assert action(one.run(5)) == ("stuck", None)
    assert one.searched == ["g"]
    one.told["nodes"][0]["drained"] = False
    one.told["instances"][0]["primary"] = "b"
    one.told["nodes"][1]["total_memory"] = 32768
    for _run in range(3):
        assert action(one.run(5)) == ("stuck", None)
    assert one.searched == ["g"] * 3


def test_a_search_that_was_cut_off_is_repeated():
    one = follower([{"name": "big", "memory": 40960, "primary": "a", "disk_template": "plain"}], threshold=0.3, time_limit=0.0)
    for _run in range(2):
        one.run(5)
    assert one.searched == ["g", "g"]


def test_a_plan_that_is_left_is_told_as_it_was_made_and_drawn():
    one = follower(threshold=0.3, target=0.2)
    made = one.run()["plan"]
    one.carry_out(made, 1)
    told = one.run(5)
    assert (action(told), told["resumed"], told["changed"]) == (("resume", None), True, False)
    assert (told["plan"]["moves"], told["plan"]["stages"]) == (made["moves"], made["stages"])
    assert told["plan"]["score_after"] < told["plan"]["score_before"]
    assert made["moves"][0]["instance"] in moves_to_html(told)
    one.carry_out(made)
    noted = one.run(5, act=False)
    assert noted["changed"]
    assert action(one.run(1, cooldown=600.0, threshold=0.1, target=0.1)) == ("wait", "cooldown")


@pytest.mark.parametrize("change", ["elsewhere", "gone", "node", "others", "drained"])
def test_a_plan_that_fits_no_more_is_given_up(change):
    one = follower(threshold=0.3, target=0.2)
    made = one.run()["plan"]["moves"]
    first = next(item for item in one.told["instances"] if item["name"] == made[0]["instance"])
    if change == "elsewhere":
        first["primary"] = next(node for node in NODES if node not in (made[0]["to"][0], "a"))
    elif change == "gone":
        one.told["instances"].remove(first)
    elif change == "node":
        one.told["nodes"].remove(next(node for node in one.told["nodes"] if node["name"] == made[0]["to"][0]))
    elif change == "drained":
        next(node for node in one.told["nodes"] if node["name"] == made[0]["to"][0])["drained"] = True
    else:
        one.told["instances"] += [{**first, "name": f"n{number}{node}", "primary": node} for node in ("b", "c") for number in range(6)]
    told = one.run(5)
    assert not told["resumed"]
    assert all(move["to"][0] in {node["name"] for node in one.told["nodes"]} for move in told["plan"]["moves"])


def test_moves_that_are_left_wait_for_a_window_and_give_way_to_repairs():
    one = follower(threshold=0.3, target=0.2, windows=[{"from": "08:00", "to": "09:00"}], timezone="UTC")
    one.carry_out(one.run()["plan"], 1)
    assert action(one.run(120)) == ("wait", "window")
    assert one.now > BEGIN
    one.told["nodes"][2]["offline"] = True
    one.told["instances"].append({**one.told["instances"][0], "name": "poor", "primary": "c"})
    told = one.run(1)
    assert action(told) == ("repair", None)
    assert "poor" in {move["instance"] for move in told["plan"]["moves"]}


def test_the_score_can_be_the_measure():
    one = follower(measure="score", threshold=2.0, target=1.0)
    told = one.settle()
    assert told["groups"][0]["measure"] == told["groups"][0]["score"] > 2.0
    assert told["groups"][0]["score_after"] <= 1.0


def test_all_mistakes_are_told_at_once():
    with pytest.raises(InputError) as error:
        follower().run(target=3.0, groups=["nope"], max_data="much", min_gain=-1.0)
    assert sorted(mistake.place for mistake in error.value.mistakes) == ["groups[0]", "max_data", "min_gain", "target"]


def test_moves_that_are_left_give_way_to_repairs_of_another_group():
    nodes = {**NODES, "x": "h", "y": "h"}
    one = follower([*crowded(), *crowded(1, primary="x", prefix="j")], nodes, threshold=0.3, target=0.2)
    one.carry_out(one.run()["plan"], 1)
    one.told["nodes"][3]["offline"] = True
    told = one.settle(5)
    assert (action(told, "h"), told["resumed"]) == (("repair", None), False)
    assert [move["instance"] for move in told["plan"]["moves"]] == ["j0"]


@pytest.mark.parametrize(
    ("first", "later", "leaves"),
    [
        ("drained", {"state": "drained"}, True),
        ("offline", {"state": "offline"}, True),
        ("drained", {"state": "unreachable"}, False),
        ("offline", {"state": "unreachable"}, False),
        ("offline", {"state": "up"}, False),
        ("drained", {"rules": True}, False),
    ],
    ids=str,
)
def test_repairs_that_are_left_leave_no_node_that_has_fallen_silent_and_take_nobody_who_is_to_stay(first, later, leaves):
    one = follower(threshold=1.0)
    one.told["nodes"][0]["state"] = first
    one.carry_out(one.run()["plan"], 2)
    left = {item["name"] for item in one.told["instances"] if item["primary"] == "a"}
    assert len(left) == 4
    one.told["nodes"][0]["state"] = later.get("state", first)
    if "rules" in later:
        one.told["rules"] = [{"name": "stay", "type": "ignore", "instances": sorted(left)}]
    told = one.run(5)
    assert told["resumed"] == leaves
    assert bool(left & {move["instance"] for move in told["plan"]["moves"]}) == leaves


def test_repairs_that_are_left_are_planned_as_failovers_once_their_node_is_marked_offline():
    one = follower(threshold=1.0)
    one.told["nodes"][0]["state"] = "drained"
    one.carry_out(one.run()["plan"], 2)
    one.told["nodes"][0]["state"] = "offline"
    told = one.run(5)
    assert not told["resumed"]
    assert {step["online"] for move in told["plan"]["moves"] for step in move["steps"]} == {False}


def test_nodes_above_a_limit_are_relieved_and_no_further():
    one = follower(above={"memory": 20.0})
    told = one.settle()
    assert action(told) == ("balance", None)
    assert told["groups"][0]["measure"] == pytest.approx(0.175)
    assert told["groups"][0]["measure_after"] == 0
    assert len(told["plan"]["moves"]) == 3
    assert action(one.run(5)) == ("calm", None)
    # As uneven as it was, but nobody is above.
    assert action(follower(above={"memory": 80.0}).run()) == ("calm", None)


@pytest.mark.parametrize(("load", "expected"), [({}, "calm"), ({"i0": {"cpu": 14.0}}, "balance")])
def test_cpu_is_measured_load_where_there_is_some(load, expected):
    assert action(follower(above={"cpu": 80.0}, load=load).run())[0] == expected


def test_nodes_that_are_offline_are_above_nothing():
    one = follower(above={"memory": 20.0}, urgent=[])
    one.told["nodes"][0]["offline"] = True
    assert one.run()["groups"][0]["measure"] == 0


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        ({"above": {}}, ["above"]),
        ({"above": {"memory": 0.0, "cpu": 1001.0}}, ["above.memory", "above.cpu"]),
        ({"above": {"memory": float("nan")}}, ["above.memory"]),
        ({"above": {"memory": 80.0}, "threshold": 0.2, "target": 0.1}, ["threshold", "target"]),
    ],
)
def test_what_is_wrong_with_limits_is_said(arguments, places):
    with pytest.raises(InputError) as caught:
        follower(**arguments).run()
    assert [mistake.place for mistake in caught.value.mistakes] == places
