# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves told step by step, as data that a driver can carry out without reading commands."""

from __future__ import annotations

import numpy as np
import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.model import DiskTemplate, Status
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.moves import (
    can_move,
    commands,
    possible_moves,
    reachable,
    steps_to_plain,
)

NODES = "abcd"


def told(bench, instance, target, offline="", drained=""):
    state = bench.state([bench.node(name, offline=name in offline, drained=name in drained) for name in NODES], [instance])
    move = possible_moves(state, 0, target)[0]
    steps = steps_to_plain(state, move)
    assert [step["command"] for step in steps] == commands(state, move)
    return steps


def test_a_replaced_primary_takes_three_steps(bench):
    steps = told(bench, bench.instance("i", "a", "b"), (2, 1))
    assert [(step["kind"], step["from"], step["to"], step["node"]) for step in steps] == [
        ("migrate", ["a", "b"], ["b", "a"], "b"),
        ("replace_disks", ["b", "a"], ["b", "c"], "c"),
        ("migrate", ["b", "c"], ["c", "b"], "c"),
    ]
    assert steps[0]["command"] == "gnt-instance migrate -f i"
    assert all(step["online"] for step in steps)


def test_shared_storage_names_the_node_to_go_to(bench):
    (step,) = told(bench, bench.instance("my i", "a", disk_template=DiskTemplate.EXT), (2, -1))
    assert step == {
        "kind": "migrate",
        "from": ["a"],
        "to": ["c"],
        "node": "c",
        "online": True,
        "command": "gnt-instance migrate -f -n c 'my i'",
    }


@pytest.mark.parametrize(("offline", "option"), [("", ""), ("a", "--ignore-consistency ")])
def test_what_does_not_run_is_failed_over(bench, offline, option):
    (step,) = told(bench, bench.instance("i", "a", "b", status="ADMIN_down"), (1, 0), offline)
    assert (step["kind"], step["online"], step["command"]) == ("failover", not offline, f"gnt-instance failover -f {option}i")


def test_what_runs_on_a_drained_node_is_migrated_and_its_disks_are_copied_from_there(bench):
    first, second, third = told(bench, bench.instance("i", "a", "b"), (2, 3), drained="a")
    assert (first["kind"], first["from"], first["online"]) == ("replace_disks", ["a", "b"], True)
    assert (second["kind"], second["command"], second["online"]) == ("migrate", "gnt-instance migrate -f i", True)
    assert (third["kind"], third["node"]) == ("replace_disks", "d")
    (shared,) = told(bench, bench.instance("s", "a", disk_template=DiskTemplate.EXT), (1, -1), drained="a")
    assert (shared["kind"], shared["command"]) == ("migrate", "gnt-instance migrate -f -n b s")


@pytest.mark.parametrize("status", ["ADMIN_down", "ERROR_down", "ERROR_nodedown", "ERROR_nodeoffline"])
def test_what_does_not_run_on_a_drained_node_is_failed_over_from_consistent_disks(bench, status):
    (step,) = told(bench, bench.instance("i", "a", "b", status=Status(status)), (1, 0), drained="a")
    assert (step["kind"], step["online"], step["command"]) == ("failover", True, "gnt-instance failover -f i")


def test_nothing_goes_to_a_drained_node_and_both_copies_on_lost_nodes_are_lost(bench):
    def ways(target, **fields):
        state = bench.state([bench.node(name, **fields.get(name, {})) for name in NODES], [bench.instance("i", "a", "b")])
        assert bool(reachable(state, (0, 1), np.array([target[0]]), np.array([target[1]]))[0, 0]) == bool(possible_moves(state, 0, target))
        return can_move(state, 0), [str(move.kind) for move in possible_moves(state, 0, target)]

    off, drained = {"offline": True}, {"drained": True}
    assert ways((0, 2), b=drained) == (True, ["replace_secondary"])
    assert ways((1, 0), b=drained) == (True, [])
    assert ways((2, 3), a=drained, b=off) == (True, ["replace_both"])
    assert ways((2, 3), a=off, b=drained) == (False, [])


def test_a_dead_primary_is_told(bench):
    first, second = told(bench, bench.instance("i", "a", "b"), (1, 2), "a")
    assert (first["kind"], first["online"]) == ("failover", False)
    assert (second["kind"], second["online"], second["node"]) == ("replace_disks", True, "c")
