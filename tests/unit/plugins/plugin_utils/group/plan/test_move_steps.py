# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves told step by step, as data that a driver can carry out without reading commands."""

from __future__ import annotations

import pytest
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.cluster.model import DiskTemplate
from ansible_collections.bareon.allocator.plugins.plugin_utils.group.cluster.moves import commands, possible_moves, steps_to_plain

NODES = "abcd"


def told(bench, instance, target, offline=""):
    state = bench.state([bench.node(name, offline=name in offline) for name in NODES], [instance])
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


def test_a_dead_primary_is_told(bench):
    first, second = told(bench, bench.instance("i", "a", "b"), (1, 2), "a")
    assert (first["kind"], first["online"]) == ("failover", False)
    assert (second["kind"], second["online"], second["node"]) == ("replace_disks", True, "c")
