# Copyright (c) 2026 bareon.allocator maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lies on nodes before and after a plan."""

from __future__ import annotations

import json

from ansible_collections.bareon.allocator.plugins.plugin_utils._common.plain import plain
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.loads import node_loads, touched_groups
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.cluster.moves import possible_moves
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.metrics.score import ScoreMode
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.order import Guard
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.plain import plan_to_plain
from ansible_collections.bareon.allocator.plugins.plugin_utils._group.plan.stages import stages


def test_what_is_used_is_told_for_the_groups_that_a_plan_touches(bench):
    nodes = [*(bench.node(name) for name in "abc"), bench.node("far", "h"), bench.node("dead", offline=True)]
    state = bench.state(nodes, [bench.instance("i", "a", "b", memory=100, disk=1000, vcpus=2), bench.instance("j", "far")])
    (move,) = possible_moves(state, 0, (1, 2))
    assert touched_groups(state, [move]) == {0}
    told = plan_to_plain(state, stages(state, [move], Guard.at_every_step(state)), ScoreMode.HTOOLS)["nodes"]
    assert [(one["node"], one["group"], one["offline"]) for one in told] == [
        ("a", "g", False),
        ("b", "g", False),
        ("c", "g", False),
        ("dead", "g", True),
    ]
    first, second, third = told[:3]
    assert first["capacity"] == {"memory": 1000, "disk": 10000, "cpus": 40.0}
    assert first["before"] == {"memory": 100, "reserved": 0, "disk": 1000, "cpus": 2, "load": 4.0, "primaries": 1, "secondaries": 0}
    assert first["after"] == {"memory": 0, "reserved": 0, "disk": 0, "cpus": 0, "load": 0.0, "primaries": 0, "secondaries": 0}
    assert second["before"] == {"memory": 0, "reserved": 100, "disk": 1000, "cpus": 0, "load": 1.0, "primaries": 0, "secondaries": 1}
    assert second["after"]["primaries"] == 1
    assert (third["after"]["reserved"], third["after"]["disk"]) == (100, 1000)
    assert json.loads(json.dumps(told)) == plain(told)


def test_a_plan_without_moves_tells_no_nodes(bench):
    state = bench.state([bench.node("a")])
    assert plan_to_plain(state, stages(state, [], Guard.at_every_step(state)), ScoreMode.HTOOLS)["nodes"] == []
    assert node_loads(state, state, [0])[0]["before"]["memory"] == 0
